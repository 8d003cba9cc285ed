/*
 * hist_tiles_program.cuh
 *	  The program of a tiled histogram: loads a thread's items of columns, and runs the steps,
 *	  conditions and checks on them.
 *
 * See hist_tiles.cuh for items, lines and tiles, and hist_tiles_table.cuh for the program in shared
 * memory.  Before its first tile, a kernel calls make_tile_table(), fills in a Tile and issues
 * copy_line_async() for its first line.  For each tile, it calls copy_line_async() for the next
 * line, run_steps() and counted_items().  All lanes of a warp must call these functions together.
 */
#ifndef GPUAGG_HIST_TILES_PROGRAM_CUH
#define GPUAGG_HIST_TILES_PROGRAM_CUH

/*
 * Inlines vector_run.h and unrolls its loops, so that arrays of a thread's items are in registers.
 */
#define VECTOR_INLINE
#ifdef __CUDA_ARCH__
#define VECTOR_UNROLL _Pragma("unroll")
#endif
#include "operators/vector_run.h"

#include "hist_tiles_table.cuh"

#define ALL_ITEMS ((1u << TILES_ROWS_PER_THREAD) - 1)
/* Rows of a warp in a tile. */
#define LINE_ROWS (32 * TILES_ROWS_PER_THREAD)

/* A register of the program: the values of a thread's items, and their VectorStates. */
struct ItemValues
{
	int64_t v[TILES_ROWS_PER_THREAD];
	/* STATE_BITS for each item, the first one lowest; 0 if all items have values */
	u32 states;
};

#define STATE_BITS 2
/* ALL_STATES times a VectorState is ItemValues.states if all items have this state. */
#define ALL_STATES 0x55u

/* Returns the VectorState of item j. */
static __device__ __forceinline__ u32
item_state(u32 states, int j)
{
	return states >> STATE_BITS * j & 3;
}

/* Returns the items, one bit each, whose state has at least one of the bits of `state`. */
static __device__ __forceinline__ u32
items_with_state(u32 states, u32 state)
{
	u32 bits = 0;

#pragma unroll
	for (int j = 0; j < TILES_ROWS_PER_THREAD; j++)
		bits |= states >> STATE_BITS * j & state ? 1u << j : 0;
	return bits;
}

/* Returns the items that have a value, one bit each. */
static __device__ __forceinline__ u32
items_with_value(u32 states)
{
	return states == 0 ? ALL_ITEMS :
						 ALL_ITEMS & ~items_with_state(states, VECTOR_NULL | VECTOR_UNDETERMINED);
}

/* Returns the items whose value is not 0, one bit each. */
static __device__ __forceinline__ u32
nonzero_items(const int64_t (&v)[TILES_ROWS_PER_THREAD])
{
	u32 bits = 0;

#pragma unroll
	for (int j = 0; j < TILES_ROWS_PER_THREAD; j++)
		bits |= v[j] != 0 ? 1u << j : 0;
	return bits;
}

/* A thread's view of the current tile. */
template <int THREADS> struct Tile
{
	const GpuaggProgram *program; /* in device memory */
	const TileTable *table;       /* in shared memory, as all below */
	const char *stage;            /* the staged columns of this tile */
	u32 thread;                   /* number of the thread in the block */
	ulonglong2 *temporary_values; /* [temporary][half of the items][thread] */
	uint8_t *temporary_states;    /* [temporary][thread] */
	u32 row;                      /* the thread's first row in the call */
	u32 present;                  /* one bit for each item: whether the row exists */
	bool has_next;                /* the warp has another line */
};

/* ---- columns ------------------------------------------------------------------- */

/*
 * Copies a warp's last line, which has fewer than LINE_ROWS rows, to a stage, and fills it up with
 * zeros.  Copies single values, without cp.async.  row: the line's first row; end: rows of the
 * call.
 */
static __device__ __forceinline__ void
copy_partial_line(const TileTable &t, char *stage, u32 row, u32 end)
{
#pragma unroll 1
	for (u32 i = 0; i < t.nstaged; i++)
#pragma unroll 1
		for (u32 k = threadIdx.x % 32; k < LINE_ROWS; k += 32)
		{
			StagedColumn p = t.staged_column[i];
			char *to = stage + p.offset + (threadIdx.x / 32 * LINE_ROWS + k) * p.width;
			bool is = row + k < end;

			if (p.width == 8)
				*(u64 *) to = is ? ((const u64 *) p.values)[row + k] : 0;
			else if (p.width == 4)
				*(u32 *) to = is ? ((const u32 *) p.values)[row + k] : 0;
			else if (p.width == 2)
				*(uint16_t *) to = is ? ((const uint16_t *) p.values)[row + k] : 0;
			else
				*to = is ? p.values[row + k] : 0;
		}
}

/*
 * Issues cp.async for one warp's rows of all staged columns, as one commit group; the group is
 * empty if the line is not below end_line.  A stage keeps the order of a column's rows, since
 * hardware serializes copies to shared memory in another order.
 */
template <int THREADS>
static __device__ __forceinline__ void
copy_line_async(const Tile<THREADS> &tile, char *stage, u32 line, u32 end_line, u32 nrows)
{
	const TileTable &t = *tile.table;
	u32 row = line * LINE_ROWS;

	if (line < end_line && nrows - row < LINE_ROWS)
		copy_partial_line(t, stage, row, nrows);
	else if (line < end_line)
	{
		u32 n = t.nstaged, lane = tile.thread % 32, warp_row = tile.thread / 32 * LINE_ROWS,
			stage_at = shared_address(stage);

#pragma unroll 1
		for (u32 i = 0; i < n; i++)
		{
			StagedColumn p = t.staged_column[i];
			const char *from = p.values + (u64) row * p.width;
			u32 to = stage_at + p.offset + warp_row * p.width;

			if (p.width >= 4)
			{
				from += lane * 16;
				to += lane * 16;
				asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
							 :
							 : "r"(to), "l"(from)
							 : "memory");
				if (p.width == 8)
					asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
								 :
								 : "r"(to + 512), "l"(from + 512)
								 : "memory");
			}
			else if (p.width == 2)
				asm volatile("cp.async.ca.shared.global [%0], [%1], 8;"
							 :
							 : "r"(to + lane * 8), "l"(from + lane * 8)
							 : "memory");
			else
				asm volatile("cp.async.ca.shared.global [%0], [%1], 4;"
							 :
							 : "r"(to + lane * 4), "l"(from + lane * 4)
							 : "memory");
		}
	}
	asm volatile("cp.async.commit_group;" : : : "memory");
}

/* Returns a thread's items of a staged column of 4-byte values. */
template <typename Tile>
static __device__ __forceinline__ int4
staged_int4(const Tile &tile, u32 offset)
{
	return *(const int4 *) (tile.stage + (offset + tile.thread * 16));
}

/* Returns one half of a thread's items of a staged column of 8-byte values. */
template <typename Tile>
static __device__ __forceinline__ ulonglong2
staged_int8(const Tile &tile, u32 offset, u32 half)
{
	return *(const ulonglong2 *) (tile.stage + (offset + tile.thread * 32 + half * 16));
}

/*
 * Returns a thread's items of a column in device memory, as stored; for 8-byte values half of them,
 * half 0 or 1.  width: bytes of a value.  Also prefetches the items of the warp's next line to the
 * L2 cache.  One lane does so for each 128 bytes, since hardware serializes the lanes of a
 * prefetch.
 */
template <typename T, typename Tile>
static __device__ __forceinline__ T
load_vector(const Tile &tile, const void *values, int width, int half, u32 tile_rows)
{
	const T *p = (const T *) ((const char *) values + (size_t) tile.row * width) + half;

	if (tile.has_next && half == 0 && tile.thread % (32 / width) == 0)
		asm volatile("prefetch.global.L2 [%0];" : : "l"((const char *) p + tile_rows * width));
	return __ldg(p);
}

/*
 * Loads a thread's items of a column, in the form of a program's register: integers sign-extended,
 * float4 zero-extended.  Items that do not exist are 0.
 */
template <int THREADS>
static __device__ __forceinline__ void
load_values(const Tile<THREADS> &tile, const SourceColumn &c, int64_t (&v)[TILES_ROWS_PER_THREAD])
{
	bool staged = c.stage_offset != NOT_STAGED;

	if (!staged && tile.present != ALL_ITEMS)
	{
#pragma unroll
		for (int j = 0; j < TILES_ROWS_PER_THREAD; j++)
		{
			v[j] = 0;
			if (tile.present >> j & 1)
				v[j] = c.type == GPUAGG_VALUE_F32 ?
					(int64_t) ((const u32 *) c.values)[tile.row + j] :
					load_integer(c.values, (GpuaggValueType) c.type, tile.row + j);
		}
		return;
	}
	switch (c.type)
	{
		case GPUAGG_VALUE_I8:
		{
			u32 w = staged ?
				*(const u32 *) (tile.stage + (c.stage_offset + tile.thread * 4)) :
				load_vector<u32>(tile, c.values, 1, 0, THREADS * TILES_ROWS_PER_THREAD);

#pragma unroll
			for (int j = 0; j < TILES_ROWS_PER_THREAD; j++)
				v[j] = (int8_t) (w >> 8 * j);
			break;
		}
		case GPUAGG_VALUE_I16:
		{
			uint2 w = staged ?
				*(const uint2 *) (tile.stage + (c.stage_offset + tile.thread * 8)) :
				load_vector<uint2>(tile, c.values, 2, 0, THREADS * TILES_ROWS_PER_THREAD);

			v[0] = (int16_t) w.x;
			v[1] = (int16_t) (w.x >> 16);
			v[2] = (int16_t) w.y;
			v[3] = (int16_t) (w.y >> 16);
			break;
		}
		case GPUAGG_VALUE_I32:
		case GPUAGG_VALUE_F32:
		{
			int4 w = staged ?
				staged_int4(tile, c.stage_offset) :
				load_vector<int4>(tile, c.values, 4, 0, THREADS * TILES_ROWS_PER_THREAD);
			int64_t mask = c.type == GPUAGG_VALUE_F32 ? INT64_C(0xffffffff) : INT64_C(-1);

			v[0] = w.x & mask;
			v[1] = w.y & mask;
			v[2] = w.z & mask;
			v[3] = w.w & mask;
			break;
		}
		default:
		{
			ulonglong2 w[2];

#pragma unroll
			for (int half = 0; half < 2; half++)
				w[half] = staged ? staged_int8(tile, c.stage_offset, half) :
								   load_vector<ulonglong2>(tile, c.values, 8, half,
														   THREADS * TILES_ROWS_PER_THREAD);
			v[0] = w[0].x;
			v[1] = w[0].y;
			v[2] = w[1].x;
			v[3] = w[1].y;
		}
	}
}

/* Returns the items that are not NULL, one bit each. */
template <typename Tile>
static __device__ __forceinline__ u32
load_validity(const Tile &tile, const uint8_t *validity)
{
	return validity && tile.present ? validity[tile.row / 8] >> (tile.row & 7) & ALL_ITEMS :
									  ALL_ITEMS;
}

/* Returns the items that exist and whose byte in the filter is not 0, one bit each. */
template <int THREADS>
static __device__ __forceinline__ u32
load_filter(const Tile<THREADS> &tile, const uint8_t *filter)
{
	u32 bits = 0;

	if (tile.present == ALL_ITEMS)
	{
		u32 w = load_vector<u32>(tile, filter, 1, 0, THREADS * TILES_ROWS_PER_THREAD);

#pragma unroll
		for (int j = 0; j < TILES_ROWS_PER_THREAD; j++)
			bits |= (w >> 8 * j & 0xff) ? 1u << j : 0;
		return bits;
	}
#pragma unroll
	for (int j = 0; j < TILES_ROWS_PER_THREAD; j++)
		if ((tile.present >> j & 1) && filter[tile.row + j])
			bits |= 1u << j;
	return bits;
}

/* ---- the program ----------------------------------------------------------------- */

/* Stores the values and states of a thread's items in temporary r. */
template <int THREADS>
static __device__ __forceinline__ void
store_temporary(const Tile<THREADS> &tile, u32 r, const ItemValues &from)
{
	tile.temporary_values[2 * r * THREADS + tile.thread] = make_ulonglong2(from.v[0], from.v[1]);
	tile.temporary_values[(2 * r + 1) * THREADS + tile.thread] =
		make_ulonglong2(from.v[2], from.v[3]);
	tile.temporary_states[r * THREADS + tile.thread] = (uint8_t) from.states;
}

/* Loads a thread's items of a column, NULLs included. */
template <int THREADS>
static __device__ __forceinline__ void
load_column(const Tile<THREADS> &tile, const SourceColumn &c, ItemValues &to)
{
	to.states = 0;
	if (c.validity)
	{
		u32 valid = load_validity(tile, c.validity);

#pragma unroll
		for (int j = 0; j < TILES_ROWS_PER_THREAD; j++)
			to.states |= (valid >> j & 1 ? VECTOR_VALUE : VECTOR_NULL) << STATE_BITS * j;
	}
	load_values(tile, c, to.v);
}

/* Loads an operand.  operand: its code, see OperandKind; last: the result of the last step. */
template <int THREADS>
static __device__ __forceinline__ void
load_operand(const Tile<THREADS> &tile, u32 operand, const ItemValues &last, ItemValues &to)
{
	u32 number = operand >> OPERAND_BITS;

	to.states = 0;
	switch (operand & ((1u << OPERAND_BITS) - 1))
	{
		case OPERAND_LAST:
			to = last;
			break;
		case OPERAND_CONSTANT:
		{
			const VectorConstant &c = tile.table->constant[number];

#pragma unroll
			for (int j = 0; j < TILES_ROWS_PER_THREAD; j++)
				to.v[j] = c.bits;
			to.states = c.state * ALL_STATES;
			break;
		}
		case OPERAND_TEMPORARY:
		{
			ulonglong2 low = tile.temporary_values[2 * number * THREADS + tile.thread],
					   high = tile.temporary_values[(2 * number + 1) * THREADS + tile.thread];

			to.v[0] = low.x;
			to.v[1] = low.y;
			to.v[2] = high.x;
			to.v[3] = high.y;
			to.states = tile.temporary_states[number * THREADS + tile.thread];
			break;
		}
		case OPERAND_INT4:
		{
			int4 w = staged_int4(tile, number);

			to.v[0] = w.x;
			to.v[1] = w.y;
			to.v[2] = w.z;
			to.v[3] = w.w;
			break;
		}
		case OPERAND_INT8:
		{
			ulonglong2 low = staged_int8(tile, number, 0), high = staged_int8(tile, number, 1);

			to.v[0] = low.x;
			to.v[1] = low.y;
			to.v[2] = high.x;
			to.v[3] = high.y;
			break;
		}
		case OPERAND_COLUMN:
			load_column(tile, tile.table->source[number], to);
			break;
		default: /* OPERAND_NONE */
#pragma unroll
			for (int j = 0; j < TILES_ROWS_PER_THREAD; j++)
				to.v[j] = 0;
	}
}

/* Returns whether all integers that a lookup table has cells for are int32. */
static __device__ __forceinline__ bool
has_int32_keys(const VectorTable &t)
{
	return t.base >= INT32_MIN && t.base <= INT32_MAX && t.base + t.n <= INT32_MAX;
}

/*
 * Finds the cells of a lookup table for a thread's items, as vector_table_index() does.  int4:
 * whether the items are of an int32 column without NULLs.
 */
static __device__ __forceinline__ void
find_cells(const VectorTable &t, const ItemValues &a, bool int4, u32 (&at)[TILES_ROWS_PER_THREAD])
{
	if (int4 && has_int32_keys(t))
	{
		u32 base = (u32) t.base, other = t.others ? t.n : VECTOR_NO_CELL;

#pragma unroll
		for (int j = 0; j < TILES_ROWS_PER_THREAD; j++)
		{
			u32 d = (u32) a.v[j] - base;

			at[j] = d < t.n ? d : other;
		}
		return;
	}
#pragma unroll
	for (int j = 0; j < TILES_ROWS_PER_THREAD; j++)
		at[j] = vector_table_index(&t, a.v[j], (uint8_t) item_state(a.states, j));
}

/*
 * Replaces the numbers of cells by the cells, of a narrow form.  Cells are in device memory, from
 * `from` on, and are read only for the items `wanted`; others get 1, the cell of a value.  All
 * cells must exist.
 */
static __device__ __forceinline__ void
load_cells(const VectorTable &t, const uint8_t *from, u32 wanted, u32 (&at)[TILES_ROWS_PER_THREAD])
{
	/* the items' loads are independent, so that they run concurrently */
	if (t.form == 1)
#pragma unroll
		for (int j = 0; j < TILES_ROWS_PER_THREAD; j++)
			at[j] = wanted >> j & 1 ? from[at[j]] : 1;
	else if (t.form == 2)
#pragma unroll
		for (int j = 0; j < TILES_ROWS_PER_THREAD; j++)
			at[j] = wanted >> j & 1 ? ((const uint16_t *) from)[at[j]] : 1;
	else if (t.form == 4)
#pragma unroll
		for (int j = 0; j < TILES_ROWS_PER_THREAD; j++)
			at[j] = wanted >> j & 1 ? ((const u32 *) from)[at[j]] : 1;
	else
#pragma unroll
		for (int j = 0; j < TILES_ROWS_PER_THREAD; j++)
			at[j] = wanted >> j & 1 ? from[at[j] / 8] >> at[j] % 8 & 1 : 1;
}

/*
 * Runs VECTOR_LOOKUP: looks a thread's items up in a table.  int4: see find_cells(); wanted: the
 * items whose result is used.
 */
template <int THREADS>
static __device__ __forceinline__ void
apply_lookup(const Tile<THREADS> &tile, u32 table, const ItemValues &a, bool int4, u32 wanted,
			 ItemValues &to)
{
	const VectorTable &t = tile.table->table[table];
	const uint8_t *from = tile.table->cells[table];
	u32 at[TILES_ROWS_PER_THREAD];
	bool undetermined = false;

	find_cells(t, a, int4, at);
#pragma unroll
	for (int j = 0; j < TILES_ROWS_PER_THREAD; j++)
		undetermined |= at[j] == VECTOR_NO_CELL;
	to.states = 0;
	if (undetermined || t.form == VECTOR_CELLS_WIDE)
	{
#pragma unroll
		for (int j = 0; j < TILES_ROWS_PER_THREAD; j++)
		{
			VectorCell cell = vector_table_cell(&t, from, at[j]);

			to.v[j] = cell.value;
			to.states |= (u32) cell.state << STATE_BITS * j;
		}
		return;
	}
	load_cells(t, from, wanted, at);
#pragma unroll
	for (int j = 0; j < TILES_ROWS_PER_THREAD; j++)
	{
		VectorCell cell = vector_narrow_cell(&t, at[j]);

		to.v[j] = cell.value;
		to.states |= (u32) cell.state << STATE_BITS * j;
	}
}

/* Runs VECTOR_FIND for a thread's items; wanted: the items whose result is used. */
template <int THREADS>
static __device__ __forceinline__ void
apply_find(const Tile<THREADS> &tile, u32 table, const ItemValues &a, u32 wanted, ItemValues &to)
{
	const VectorTable &t = tile.table->table[table];
	const uint8_t *from = tile.table->cells[table];
	VectorSlot slot[TILES_ROWS_PER_THREAD];

	/* the first slots' loads are independent, so that they run concurrently */
#pragma unroll
	for (int j = 0; j < TILES_ROWS_PER_THREAD; j++)
	{
		slot[j].key = slot[j].entry = 0;
		if ((wanted >> j & 1) && item_state(a.states, j) == VECTOR_VALUE)
			slot[j] = vector_slot(&t, from, vector_first_slot(&t, vector_slot_key(&t, a.v[j])));
	}
	to.states = 0;
#pragma unroll
	for (int j = 0; j < TILES_ROWS_PER_THREAD; j++)
	{
		u32 state = item_state(a.states, j);
		u64 key = vector_slot_key(&t, a.v[j]);
		VectorCell cell = vector_find_entry(&t, from, key, vector_first_slot(&t, key), slot[j]);

		to.v[j] = cell.value;
		to.states |= (state == VECTOR_VALUE ? cell.state : state) << STATE_BITS * j;
	}
}

/*
 * Runs one instruction that reads no table on a thread's items.  list: the constants that the
 * operation reads by number.  Without STATES, all items of all operands must have values.
 */
template <bool STATES>
static __device__ __forceinline__ void
apply_operation(const VectorInstruction &in, const VectorConstant *list, const ItemValues &a,
				const ItemValues &b, const ItemValues &c, ItemValues &r)
{
	uint8_t sa[TILES_ROWS_PER_THREAD], sb[TILES_ROWS_PER_THREAD], sc[TILES_ROWS_PER_THREAD],
		sr[TILES_ROWS_PER_THREAD];
	VectorOperand oa = {a.v, sa, 0, 0}, ob = {b.v, sb, 0, 0}, oc = {c.v, sc, 0, 0};

#pragma unroll
	for (int j = 0; j < TILES_ROWS_PER_THREAD; j++)
	{
		sa[j] = STATES ? (uint8_t) item_state(a.states, j) : VECTOR_VALUE;
		sb[j] = STATES ? (uint8_t) item_state(b.states, j) : VECTOR_VALUE;
		sc[j] = STATES ? (uint8_t) item_state(c.states, j) : VECTOR_VALUE;
	}
	vector_apply(&in, list, oa, ob, oc, r.v, sr, 0, 1, TILES_ROWS_PER_THREAD);
	r.states = 0;
#pragma unroll
	for (int j = 0; j < TILES_ROWS_PER_THREAD; j++)
		r.states |= (u32) sr[j] << STATE_BITS * j;
}

/*
 * Calls apply_operation() for an operation that the kernel supports.  In the light kernel, each
 * operation is a separate instance of apply_operation(), with a constant `op`; code of other
 * operations is left out.
 */
template <int KERNEL, bool STATES>
static __device__ __forceinline__ void
apply_supported(VectorInstruction in, const VectorConstant *list, const ItemValues &a,
				const ItemValues &b, const ItemValues &c, ItemValues &r)
{
	if constexpr (KERNEL == TILES_LIGHT)
		switch (in.op)
		{
#define LIGHT(OP) \
	case OP: \
		in.op = OP; \
		apply_operation<STATES>(in, list, a, b, c, r); \
		break;
			TILES_LIGHT_OPERATIONS
#undef LIGHT
		}
	else
		apply_operation<STATES>(in, list, a, b, c, r);
}

/* The outcome of the conditions so far, one bit for each item. */
struct Conditions
{
	u32 passed;       /* all conditions were true */
	u32 undetermined; /* the first condition that was not true was undetermined */
};

/* Applies a condition, with result x, to the items that passed all conditions before it. */
static __device__ __forceinline__ void
apply_condition(const ItemValues &x, Conditions &c)
{
	if (x.states)
	{
		c.undetermined |= c.passed & items_with_state(x.states, VECTOR_UNDETERMINED);
		c.passed &= items_with_value(x.states);
	}
	c.passed &= nonzero_items(x.v);
}

/* Runs a STEP_WITHIN. */
template <int THREADS>
static __device__ __forceinline__ void
apply_within(const Tile<THREADS> &tile, uint4 step, Conditions &c)
{
	int4 w = staged_int4(tile, step.y);
	u32 v[TILES_ROWS_PER_THREAD] = {(u32) w.x, (u32) w.y, (u32) w.z, (u32) w.w}, within = 0;

#pragma unroll
	for (int j = 0; j < TILES_ROWS_PER_THREAD; j++)
		within |= v[j] - step.z <= step.w ? 1u << j : 0;
	c.passed &= step.x >> 16 ? ~within : within;
}

/*
 * Runs the steps of the program and applies their conditions.  `last` gets the result of the last
 * step.  Returns early, with `last` and temporaries incomplete, if no item of the warp passes.
 */
template <int KERNEL, int THREADS>
static __device__ __forceinline__ void
run_steps(const Tile<THREADS> &tile, ItemValues &last, Conditions &conditions)
{
	const TileTable *t = tile.table;

#pragma unroll 1
	for (u32 p = 0; p < t->nsteps; p++)
	{
		uint4 step = t->step[p];
		u32 op = step.x & (GPUAGG_CONDITION - 1), result = step.y >> RESULT_SHIFT,
			operand = step.y & ((1u << RESULT_SHIFT) - 1);
		ItemValues a, b, c, r;

		if (op == STEP_WITHIN)
		{
			apply_within(tile, step, conditions);
			if (!__any_sync(~0u, conditions.passed))
				return;
			continue;
		}
		load_operand(tile, operand, last, a);
		b.states = c.states = a.states;
		if (op == VECTOR_LOOKUP)
			apply_lookup(tile, step.x >> 16, a,
						 (operand & ((1u << OPERAND_BITS) - 1)) == OPERAND_INT4, conditions.passed,
						 r);
		else if (KERNEL != TILES_LIGHT && op == VECTOR_FIND)
			apply_find(tile, step.x >> 16, a, conditions.passed, r);
		else
		{
			VectorInstruction in = {
				(uint16_t) op, 0, 0, 0, (uint16_t) step.w, (uint16_t) (step.x >> 16)};
			const VectorConstant *list = t->constant + (step.z >> OPERAND_BITS);

			if ((step.z & OPERAND_LIST) != OPERAND_LIST)
				load_operand(tile, step.z, last, b);
			if (KERNEL != TILES_LIGHT &&
				(op == VECTOR_SELECT || op == VECTOR_DISTINCT || op == VECTOR_GREATEST))
				load_operand(tile, step.w, last, c);
			if (__any_sync(~0u, a.states | b.states | c.states))
				apply_supported<KERNEL, true>(in, list, a, b, c, r);
			else
				apply_supported<KERNEL, false>(in, list, a, b, c, r);
		}
		last = r;
		if (step.x & GPUAGG_CONDITION)
		{
			apply_condition(last, conditions);
			if (!__any_sync(~0u, conditions.passed))
				return;
		}
		if (result != NO_RESULT)
			store_temporary(tile, result, last);
	}
}

/*
 * Applies the program's filter and its checks.  Returns the items that count, one bit each.  Adds
 * to `undetermined` the number of items whose outcome is undetermined: a condition was, or an item
 * that passed all conditions failed a check.
 */
template <int THREADS>
static __device__ __forceinline__ u32
counted_items(const Tile<THREADS> &tile, const ItemValues &last, Conditions &conditions,
			  u32 &undetermined)
{
	const TileTable *t = tile.table;
	u32 unclear = 0;
	ItemValues x;

	if (t->filter != OPERAND_NONE)
	{
		load_operand(tile, t->filter, last, x);
		apply_condition(x, conditions);
	}
#pragma unroll 1
	for (u32 c = 0; c < t->nchecks; c++)
	{
		load_operand(tile, t->check[c], last, x);
		unclear |= items_with_state(
			x.states, t->nullable[c] ? VECTOR_UNDETERMINED : VECTOR_UNDETERMINED | VECTOR_NULL);
	}
	undetermined += __popc(conditions.undetermined | (unclear & conditions.passed));
	return conditions.passed & ~unclear;
}

#endif /* GPUAGG_HIST_TILES_PROGRAM_CUH */
