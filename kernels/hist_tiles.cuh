/*
 * hist_tiles.cuh
 *	  Histograms of several operators at once: what a program computes of columns goes to bins
 *	  and sums without a way through memory, tile by tile.
 *
 * A thread has four rows in a row of a tile for itself, a warp 128, so that nothing waits for
 * another warp; each step, of the program or of an operator, is chosen once for all rows of a tile.
 * The words, limbs and states are those of the other kernels in shared memory.  A result that only
 * the next instruction reads stays in registers; others are temporaries in shared memory, behind
 * the bins.  Behind these are the columns of two tiles, as far as there is room: of the one that is
 * computed, and of the next, on their way meanwhile.
 *
 * The fewer operations a kernel knows, the fewer registers it needs, and the more warps run: there
 * are several (TileKernel), of which hist_tiles.cu chooses.
 */
#ifndef GPUAGG_HIST_TILES_CUH
#define GPUAGG_HIST_TILES_CUH

/* values of rows are in registers if loops over them and calls vanish */
#define VECTOR_INLINE
#ifdef __CUDA_ARCH__
#define VECTOR_UNROLL _Pragma("unroll")
#endif
#include "operators/vector_run.h"

#include "hist_add.cuh"
#include "hist_tiles_table.cuh"

#define ALL_ITEMS ((1u << TILES_ROWS_PER_THREAD) - 1)
/* Rows of a warp in a tile. */
#define LINE_ROWS (32 * TILES_ROWS_PER_THREAD)
/* Values and states of a thread's rows, these two bits each: a state of all rows is one number. */
struct Lanes
{
	int64_t v[TILES_ROWS_PER_THREAD];
	u32 s;
};

#define LANE_BITS 2
/* The states of rows that are all NULL, times a VectorState. */
#define ALL_STATES 0x55u

static __device__ __forceinline__ u32
lane_state(u32 states, int j)
{
	return states >> LANE_BITS * j & 3;
}

/* A bit for each row whose state has that bit. */
static __device__ __forceinline__ u32
rows_of_state(u32 states, u32 state)
{
	u32 bits = 0;

#pragma unroll
	for (int j = 0; j < TILES_ROWS_PER_THREAD; j++)
		bits |= states >> LANE_BITS * j & state ? 1u << j : 0;
	return bits;
}

/* The rows that have a value. */
static __device__ __forceinline__ u32
rows_of_values(u32 states)
{
	return states == 0 ? ALL_ITEMS :
						 ALL_ITEMS & ~rows_of_state(states, VECTOR_NULL | VECTOR_UNDETERMINED);
}

/* The rows whose value is not 0. */
static __device__ __forceinline__ u32
rows_of_truth(const int64_t (&v)[TILES_ROWS_PER_THREAD])
{
	u32 bits = 0;

#pragma unroll
	for (int j = 0; j < TILES_ROWS_PER_THREAD; j++)
		bits |= v[j] != 0 ? 1u << j : 0;
	return bits;
}

/* Where a thread is. */
template <int THREADS> struct Tile
{
	const GpuaggProgram *program;
	const TileTable *table; /* these are in shared memory */
	const char *stage;      /* of this tile */
	u32 thread;             /* of the block */
	ulonglong2 *values;
	uint8_t *states;
	u32 row;   /* the first one */
	u32 there; /* a bit for each row that there is */
	bool more; /* there are as many rows in the next tile */
};

/* ---- columns ------------------------------------------------------------------- */

/* The rows of a warp that are fewer than a line, the others as zeros; one by one. */
static __device__ __forceinline__ void
copy_rest(const TileTable &t, char *stage, u32 row, u32 end)
{
#pragma unroll 1
	for (u32 i = 0; i < t.npieces; i++)
#pragma unroll 1
		for (u32 k = threadIdx.x % 32; k < LINE_ROWS; k += 32)
		{
			Piece p = t.piece[i];
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
 * Has a warp's line of rows on its way to a stage, as one group of copies.  In the stage rows lie
 * as in the column, since copies to places in another order come one by one.
 */
template <int THREADS>
static __device__ __forceinline__ void
copy_ahead(const Tile<THREADS> &tile, char *stage, u32 line, u32 end_line, u32 nrows)
{
	const TileTable &t = *tile.table;
	u32 row = line * LINE_ROWS;

	if (line < end_line && nrows - row < LINE_ROWS)
		copy_rest(t, stage, row, nrows);
	else if (line < end_line)
	{
		u32 n = t.npieces, lane = tile.thread % 32, warp_row = tile.thread / 32 * LINE_ROWS,
			stage_at = shared_address(stage);

#pragma unroll 1
		for (u32 i = 0; i < n; i++)
		{
			Piece p = t.piece[i];
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

/* Of a stage, a thread's rows of a column of 4 bytes; */
template <typename Tile>
static __device__ __forceinline__ int4
staged_int4(const Tile &tile, u32 offset)
{
	return *(const int4 *) (tile.stage + (offset + tile.thread * 16));
}

/* half of those of one of 8. */
template <typename Tile>
static __device__ __forceinline__ ulonglong2
staged_int8(const Tile &tile, u32 offset, u32 half)
{
	return *(const ulonglong2 *) (tile.stage + (offset + tile.thread * 32 + half * 16));
}

/*
 * A thread's rows of a column as it is stored.  It has the next tile's line under way; one lane
 * does for each, as an instruction takes its lanes one by one.
 */
template <typename T, typename Tile>
static __device__ __forceinline__ T
fetch(const Tile &tile, const void *values, int width, int piece, u32 tile_rows)
{
	const T *p = (const T *) ((const char *) values + (size_t) tile.row * width) + piece;

	if (tile.more && piece == 0 && tile.thread % (32 / width) == 0)
		asm volatile("prefetch.global.L2 [%0];" : : "l"((const char *) p + tile_rows * width));
	return __ldg(p);
}

/* Values as registers of programs have them. */
template <int THREADS>
static __device__ __forceinline__ void
load_values(const Tile<THREADS> &tile, const Source &c, int64_t (&v)[TILES_ROWS_PER_THREAD])
{
	bool staged = c.staged != NOT_STAGED;

	if (!staged && tile.there != ALL_ITEMS)
	{
#pragma unroll
		for (int j = 0; j < TILES_ROWS_PER_THREAD; j++)
		{
			v[j] = 0;
			if (tile.there >> j & 1)
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
			u32 w = staged ? *(const u32 *) (tile.stage + (c.staged + tile.thread * 4)) :
							 fetch<u32>(tile, c.values, 1, 0, THREADS * TILES_ROWS_PER_THREAD);

#pragma unroll
			for (int j = 0; j < TILES_ROWS_PER_THREAD; j++)
				v[j] = (int8_t) (w >> 8 * j);
			break;
		}
		case GPUAGG_VALUE_I16:
		{
			uint2 w = staged ? *(const uint2 *) (tile.stage + (c.staged + tile.thread * 8)) :
							   fetch<uint2>(tile, c.values, 2, 0, THREADS * TILES_ROWS_PER_THREAD);

			v[0] = (int16_t) w.x;
			v[1] = (int16_t) (w.x >> 16);
			v[2] = (int16_t) w.y;
			v[3] = (int16_t) (w.y >> 16);
			break;
		}
		case GPUAGG_VALUE_I32:
		case GPUAGG_VALUE_F32:
		{
			int4 w = staged ? staged_int4(tile, c.staged) :
							  fetch<int4>(tile, c.values, 4, 0, THREADS * TILES_ROWS_PER_THREAD);
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
				w[half] = staged ?
					staged_int8(tile, c.staged, half) :
					fetch<ulonglong2>(tile, c.values, 8, half, THREADS * TILES_ROWS_PER_THREAD);
			v[0] = w[0].x;
			v[1] = w[0].y;
			v[2] = w[1].x;
			v[3] = w[1].y;
		}
	}
}

/* The rows that are not NULL. */
template <typename Tile>
static __device__ __forceinline__ u32
load_validity(const Tile &tile, const uint8_t *validity)
{
	return validity && tile.there ? validity[tile.row / 8] >> (tile.row & 7) & ALL_ITEMS :
									ALL_ITEMS;
}

/* The rows of those there whose byte is not 0. */
template <int THREADS>
static __device__ __forceinline__ u32
load_filter(const Tile<THREADS> &tile, const uint8_t *filter)
{
	u32 bits = 0;

	if (tile.there == ALL_ITEMS)
	{
		u32 w = fetch<u32>(tile, filter, 1, 0, THREADS * TILES_ROWS_PER_THREAD);

#pragma unroll
		for (int j = 0; j < TILES_ROWS_PER_THREAD; j++)
			bits |= (w >> 8 * j & 0xff) ? 1u << j : 0;
		return bits;
	}
#pragma unroll
	for (int j = 0; j < TILES_ROWS_PER_THREAD; j++)
		if ((tile.there >> j & 1) && filter[tile.row + j])
			bits |= 1u << j;
	return bits;
}

/* ---- the program ----------------------------------------------------------------- */

template <int THREADS>
static __device__ __forceinline__ void
put_temporary(const Tile<THREADS> &tile, u32 r, const Lanes &from)
{
	tile.values[2 * r * THREADS + tile.thread] = make_ulonglong2(from.v[0], from.v[1]);
	tile.values[(2 * r + 1) * THREADS + tile.thread] = make_ulonglong2(from.v[2], from.v[3]);
	tile.states[r * THREADS + tile.thread] = (uint8_t) from.s;
}

template <int THREADS>
static __device__ __forceinline__ void
get_column(const Tile<THREADS> &tile, const Source &c, Lanes &to)
{
	to.s = 0;
	if (c.validity)
	{
		u32 valid = load_validity(tile, c.validity);

#pragma unroll
		for (int j = 0; j < TILES_ROWS_PER_THREAD; j++)
			to.s |= (valid >> j & 1 ? VECTOR_VALUE : VECTOR_NULL) << LANE_BITS * j;
	}
	load_values(tile, c, to.v);
}

template <int THREADS>
static __device__ __forceinline__ void
get_operand(const Tile<THREADS> &tile, u32 word, const Lanes &last, Lanes &to)
{
	u32 number = word >> OPERAND_BITS;

	to.s = 0;
	switch (word & ((1u << OPERAND_BITS) - 1))
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
			to.s = c.state * ALL_STATES;
			break;
		}
		case OPERAND_TEMPORARY:
		{
			ulonglong2 low = tile.values[2 * number * THREADS + tile.thread],
					   high = tile.values[(2 * number + 1) * THREADS + tile.thread];

			to.v[0] = low.x;
			to.v[1] = low.y;
			to.v[2] = high.x;
			to.v[3] = high.y;
			to.s = tile.states[number * THREADS + tile.thread];
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
			get_column(tile, tile.table->source[number], to);
			break;
		default: /* there is none */
#pragma unroll
			for (int j = 0; j < TILES_ROWS_PER_THREAD; j++)
				to.v[j] = 0;
	}
}

template <int THREADS>
static __device__ __forceinline__ void
look_up(const Tile<THREADS> &tile, u32 table, const Lanes &a, Lanes &to)
{
	const GpuaggProgram *p = tile.program;
	VectorTable t = tile.table->table[table];

	to.s = 0;
#pragma unroll
	for (int j = 0; j < TILES_ROWS_PER_THREAD; j++)
	{
		VectorCell cell =
			vector_table_cell(t, p->cells, p->cell_states, a.v[j], (uint8_t) lane_state(a.s, j));

		to.v[j] = cell.value;
		to.s |= (u32) cell.state << LANE_BITS * j;
	}
}

/* An instruction over operands that, if not STATES, all have values. */
template <bool STATES>
static __device__ __forceinline__ void
apply_any(const VectorInstruction &in, const VectorConstant *list, const Lanes &a, const Lanes &b,
		  const Lanes &c, Lanes &r)
{
	uint8_t sa[TILES_ROWS_PER_THREAD], sb[TILES_ROWS_PER_THREAD], sc[TILES_ROWS_PER_THREAD],
		sr[TILES_ROWS_PER_THREAD];
	VectorOperand oa = {a.v, sa, 0, 0}, ob = {b.v, sb, 0, 0}, oc = {c.v, sc, 0, 0};

#pragma unroll
	for (int j = 0; j < TILES_ROWS_PER_THREAD; j++)
	{
		sa[j] = STATES ? (uint8_t) lane_state(a.s, j) : VECTOR_VALUE;
		sb[j] = STATES ? (uint8_t) lane_state(b.s, j) : VECTOR_VALUE;
		sc[j] = STATES ? (uint8_t) lane_state(c.s, j) : VECTOR_VALUE;
	}
	vector_apply(&in, list, oa, ob, oc, r.v, sr, 0, 1, TILES_ROWS_PER_THREAD);
	r.s = 0;
#pragma unroll
	for (int j = 0; j < TILES_ROWS_PER_THREAD; j++)
		r.s |= (u32) sr[j] << LANE_BITS * j;
}

/* The same by a kernel that knows some operations only. */
template <int KERNEL, bool STATES>
static __device__ __forceinline__ void
apply(VectorInstruction in, const VectorConstant *list, const Lanes &a, const Lanes &b,
	  const Lanes &c, Lanes &r)
{
	if constexpr (KERNEL == TILES_LIGHT)
		switch (in.op)
		{
#define LIGHT(OP) \
	case OP: \
		in.op = OP; \
		apply_any<STATES>(in, list, a, b, c, r); \
		break;
			TILES_LIGHT_OPERATIONS
#undef LIGHT
		}
	else
		apply_any<STATES>(in, list, a, b, c, r);
}

/* Which rows count, so far. */
struct Conditions
{
	u32 hold;    /* those where all conditions were true */
	u32 unclear; /* where all were true before one that was undetermined */
};

static __device__ __forceinline__ void
meet_condition(const Lanes &x, Conditions &c)
{
	if (x.s)
	{
		c.unclear |= c.hold & rows_of_state(x.s, VECTOR_UNDETERMINED);
		c.hold &= rows_of_values(x.s);
	}
	c.hold &= rows_of_truth(x.v);
}

/* Runs all instructions; `last` has the result of the last one. */
template <int KERNEL, int THREADS>
static __device__ __forceinline__ void
run_steps(const Tile<THREADS> &tile, Lanes &last, Conditions &conditions)
{
	const TileTable *t = tile.table;

#pragma unroll 1
	for (u32 p = 0; p < t->nsteps; p++)
	{
		uint4 step = t->step[p];
		u32 op = step.x & (GPUAGG_CONDITION - 1), result = step.y >> RESULT_SHIFT;
		Lanes a, b, c, r;

		get_operand(tile, step.y & ((1u << RESULT_SHIFT) - 1), last, a);
		b.s = c.s = a.s;
		if (op == VECTOR_LOOKUP)
			look_up(tile, step.x >> 16, a, r);
		else
		{
			VectorInstruction in = {
				(uint16_t) op, 0, 0, 0, (uint16_t) step.w, (uint16_t) (step.x >> 16)};
			const VectorConstant *list = t->constant + (step.z >> OPERAND_BITS);

			if ((step.z & OPERAND_LIST) != OPERAND_LIST)
				get_operand(tile, step.z, last, b);
			if (KERNEL != TILES_LIGHT &&
				(op == VECTOR_SELECT || op == VECTOR_DISTINCT || op == VECTOR_GREATEST))
				get_operand(tile, step.w, last, c);
			if (__any_sync(~0u, a.s | b.s | c.s))
				apply<KERNEL, true>(in, list, a, b, c, r);
			else
				apply<KERNEL, false>(in, list, a, b, c, r);
		}
		last = r;
		if (step.x & GPUAGG_CONDITION)
		{
			meet_condition(last, conditions);
			/* what follows is of no row */
			if (!__any_sync(~0u, conditions.hold))
				return;
		}
		if (result != NO_RESULT)
			put_temporary(tile, result, last);
	}
}

/*
 * The rows of `wanted` that count, after the program; undetermined: how many of them only core can
 * tell.
 */
template <int THREADS>
static __device__ __forceinline__ u32
rows_that_count(const Tile<THREADS> &tile, const Lanes &last, Conditions &conditions,
				u32 &undetermined)
{
	const TileTable *t = tile.table;
	u32 unclear = 0;
	Lanes x;

	if (t->filter != OPERAND_NONE)
	{
		get_operand(tile, t->filter, last, x);
		meet_condition(x, conditions);
	}
#pragma unroll 1
	for (u32 c = 0; c < t->nchecks; c++)
	{
		get_operand(tile, t->check[c], last, x);
		unclear |= rows_of_state(
			x.s, t->nullable[c] ? VECTOR_UNDETERMINED : VECTOR_UNDETERMINED | VECTOR_NULL);
	}
	undetermined += __popc(conditions.unclear | (unclear & conditions.hold));
	return conditions.hold & ~unclear;
}

/* ---- bins and inputs ---------------------------------------------------------------- */

/* As find_bins. */
template <int THREADS>
static __device__ __forceinline__ u32
tile_bins(const Tile<THREADS> &tile, int nkeys, const Lanes &last, u32 ok,
		  int32_t (&bin)[TILES_ROWS_PER_THREAD], u32 &outside)
{
	u32 out = 0;

#pragma unroll
	for (int j = 0; j < TILES_ROWS_PER_THREAD; j++)
		bin[j] = 0;
#pragma unroll 1
	for (int c = 0; c < nkeys; c++)
	{
		TileKey key = tile.table->key[c];
		u32 null_bin = key.word >> 31, values = key.extent - null_bin, valid;
		Lanes x;

		get_operand(tile, key.word & ~NULL_HAS_BIN, last, x);
		valid = rows_of_values(x.s);
		if (!null_bin)
			ok &= valid;
#pragma unroll
		for (int j = 0; j < TILES_ROWS_PER_THREAD; j++)
		{
			u64 k = (u64) x.v[j] - (u64) key.min;
			bool is_value = valid >> j & 1;

			if (is_value && k >= values)
				out |= 1u << j;
			bin[j] = (int32_t) ((u32) bin[j] * key.extent + (is_value ? (u32) k : values));
		}
	}
	out &= ok;
	outside += __popc(out);
	return ok & ~out;
}

/* ---- operators ---------------------------------------------------------------------- */

static __device__ __forceinline__ void
tile_maxima(int op, const FastShared &place, const u32 (&at)[TILES_ROWS_PER_THREAD],
			const u64 (&v)[TILES_ROWS_PER_THREAD], u32 in)
{
	u32 code[TILES_ROWS_PER_THREAD];

#pragma unroll
	for (int j = 0; j < TILES_ROWS_PER_THREAD; j++)
		code[j] = (u32) max_code(op, v[j]);
	add_maxima(place, at, code, in);
}

template <int DIGITS>
static __device__ __forceinline__ void
tile_fixes(const HistArgs &args, const FastArgs &fast, const FastShared &place, int e0,
		   const u32 (&at)[TILES_ROWS_PER_THREAD], const u64 (&v)[TILES_ROWS_PER_THREAD], u32 in)
{
	FixWindow<DIGITS> window(e0, args.slot[fast.slot].max_shift);
	HotBin<DIGITS> none = {NO_BIN, 0, {}};
	double x[TILES_ROWS_PER_THREAD];

#pragma unroll
	for (int j = 0; j < TILES_ROWS_PER_THREAD; j++)
		x[j] = __longlong_as_double(v[j]);
	add_fixes<DIGITS, TILES_ROWS_PER_THREAD, false>(args, fast, place, window, at, x, in, 0, none);
}

/* Deviations and squares, whose code is long: row after row. */
static __device__ __forceinline__ void
tile_squares(const HistArgs &args, int s, const FastShared &place, int e0,
			 const int32_t (&bin)[TILES_ROWS_PER_THREAD], const u64 (&v)[TILES_ROWS_PER_THREAD],
			 u32 in)
{
	const HistSlot &slot = args.slot[s];
	u64 lo[TILES_ROWS_PER_THREAD], hi[TILES_ROWS_PER_THREAD];

#pragma unroll
	for (int j = 0; j < TILES_ROWS_PER_THREAD; j++)
	{
		lo[j] = v[j];
		hi[j] = 0;
	}
	for_each_row_of_warp<TILES_ROWS_PER_THREAD>(
		in, bin, lo, hi,
		[&](bool has, int32_t b, u64 l, u64 h)
		{
			u32 at = ((u32) b << place.log2_copies) | place.copy;
			bool out_of_window = false;

			if (slot.form == HIST_INTSQ)
			{
				if (has)
					add_square(slot, place.words + at, place.plane, l);
			}
			else
			{
				FixValue f;
				bool fits = fix_from_double(l, e0, slot.max_shift, f);
				u32 address = place.words_at + at * (u32) sizeof(u32),
					plane = place.plane * (u32) sizeof(u32);

				if (has && fits && slot.digit_bits == 24)
					add_moments<24>(args, slot, (u32) b, address, plane, f);
				else if (has && fits)
					add_moments<28>(args, slot, (u32) b, address, plane, f);
				out_of_window = has && !fits;
				__syncwarp();
			}
			if (__any_sync(~0u, out_of_window))
				change_rows<CHANGE_OUT_OF_WINDOW>(args, s, bin_in_block_copy(args, s, b),
												  out_of_window, l, h);
		});
}

template <int KERNEL>
static __device__ __forceinline__ void
add_slot(const HistArgs &args, int s, int tile, const FastShared &place, int e0,
		 const u32 (&at)[TILES_ROWS_PER_THREAD], const int32_t (&bin)[TILES_ROWS_PER_THREAD],
		 const u64 (&v)[TILES_ROWS_PER_THREAD], u32 in)
{
	FastArgs fast = {{}, -1, -1, s};

	if (tile == TILE_COUNT)
	{
#pragma unroll
		for (int j = 0; j < TILES_ROWS_PER_THREAD; j++)
			if (in >> j & 1)
				shared_count(place.words_at + at[j] * (u32) sizeof(u32));
	}
	else if (tile == TILE_INT_I32)
	{
		int32_t w[TILES_ROWS_PER_THREAD];

#pragma unroll
		for (int j = 0; j < TILES_ROWS_PER_THREAD; j++)
			w[j] = (int32_t) v[j];
		add_integers(args, fast, place, at, w, in);
	}
	else if (tile == TILE_INT_I64)
		add_wide_integers(args, fast, place, at, v, in);
	else if (tile == TILE_MAX32)
		tile_maxima(args.slot[s].op, place, at, v, in);
	if constexpr (KERNEL != TILES_LIGHT)
		switch (tile)
		{
			case TILE_FIX3:
				tile_fixes<3>(args, fast, place, e0, at, v, in);
				break;
			case TILE_FIX4:
				tile_fixes<4>(args, fast, place, e0, at, v, in);
				break;
			case TILE_MAX64:
				add_extremes(args, s, place, at, v, in);
				break;
		}
	if constexpr (KERNEL == TILES_FULL)
		if (tile == TILE_SQUARES)
			tile_squares(args, s, place, e0, bin, v, in);
}

/* All slots. */
template <int KERNEL, int THREADS>
static __device__ __forceinline__ void
add_slots(const HistArgs &args, const Tile<THREADS> &tile, u32 *shared, const int *window, int lc,
		  const Lanes &last, const int32_t (&bin)[TILES_ROWS_PER_THREAD], u32 ok)
{
	u32 plane = args.pass_bins << lc, copy = tile.thread & ((1u << lc) - 1), valid = ALL_ITEMS;
	u32 at[TILES_ROWS_PER_THREAD];
	u64 v[TILES_ROWS_PER_THREAD];

#pragma unroll
	for (int j = 0; j < TILES_ROWS_PER_THREAD; j++)
	{
		at[j] = ((u32) bin[j] << lc) | copy;
		v[j] = 0;
	}
#pragma unroll 1
	for (int s = 0; s < args.nslots; s++)
	{
		TileSlot slot = tile.table->slot[s];
		u32 in = ok;
		FastShared place = {};

		if (slot.what & SLOT_NO_VALUES)
			valid = slot.what & SLOT_VALIDITY ? load_validity(tile, args.slot[s].x.validity) :
												ALL_ITEMS;
		else if (!(slot.what & SLOT_AGAIN))
		{
			Lanes x;

			get_operand(tile, slot.word, last, x);
			valid = rows_of_values(x.s);
#pragma unroll
			for (int j = 0; j < TILES_ROWS_PER_THREAD; j++)
				v[j] = (u64) x.v[j];
			if (KERNEL != TILES_LIGHT && (slot.what & SLOT_F32))
#pragma unroll
				for (int j = 0; j < TILES_ROWS_PER_THREAD; j++)
					v[j] = __double_as_longlong((double) __uint_as_float((u32) x.v[j]));
		}
		in &= valid;
		if (slot.what & SLOT_FILTER)
			in &= load_filter(tile, args.slot[s].filter);
		else if (slot.filter != OPERAND_NONE)
		{
			Lanes x;

			get_operand(tile, slot.filter, last, x);
			in &= rows_of_truth(x.v) & rows_of_values(x.s);
		}
		place.word = args.slot[s].word;
		place.words = (u32 *) ((char *) shared + slot.words);
		place.words_at = shared_address(shared) + slot.words;
		place.plane = plane;
		place.nbins = (u32) args.bins.nbins;
		place.log2_copies = lc;
		place.copy = copy;
		add_slot<KERNEL>(args, s, (int) (slot.what & 0xff), place, window[2 * s], at, bin, v, in);
	}
}

/* Not inlined, as it takes registers from the loop before it. */
static __device__ __noinline__ void
end_hot(const HistArgs &args)
{
	hot_entries_flush(args);
}

/* ---- the kernel ---------------------------------------------------------------------- */

template <int KERNEL, int THREADS>
__global__ void
__launch_bounds__(THREADS, 1) tiles_kernel(const __grid_constant__ HistArgs args, u32 stage_bytes)
{
	extern __shared__ __align__(16) u32 shared[];
	__shared__ int window[2 * GPUAGG_MAX_SLOTS];
	TileTable *table = (TileTable *) ((char *) shared + program_at(args, THREADS));
	char *stages = (char *) shared + stages_at(args, THREADS);
	u32 stage = 0;
	/* equal shares of lines, one of a warp each */
	u32 lines = (u32) (((u64) args.nrows + LINE_ROWS - 1) / LINE_ROWS),
		line = (u32) ((u64) lines * blockIdx.x / gridDim.x) + threadIdx.x / 32,
		end = (u32) ((u64) lines * (blockIdx.x + 1) / gridDim.x);
	u32 outside = 0, undetermined = 0;
	int lc;
	Tile<THREADS> tile = Tile<THREADS>();

	let_successor_start();
	if (KERNEL != TILES_LIGHT)
		hot_entries_init(args);
	clear_shared(shared, (size_t) args.words * (args.pass_bins << args.log2_max_copies));
	wait_for_predecessor();
	if (threadIdx.x < 2 * args.nslots)
		window[threadIdx.x] = args.window[threadIdx.x];
	lc = log2_copies(args);
	make_table(args, stage_bytes, lc, *table);
	/* not threadIdx.x, which is read anew wherever registers are scarce */
	asm volatile("mov.u32 %0, %%tid.x;" : "=r"(tile.thread));
	tile.program = args.program;
	tile.table = table;
	tile.values = (ulonglong2 *) (table + 1);
	tile.states = (uint8_t *) (tile.values + (size_t) args.temporaries * THREADS * 2);
	copy_ahead(tile, stages, line, end, args.nrows);
	for (; line < end; line += THREADS / 32)
	{
		Lanes last = Lanes();
		int32_t bin[TILES_ROWS_PER_THREAD];
		Conditions conditions;
		u32 ok;

		/* a warp reads only what it copied itself, so no other has to be waited for */
		tile.stage = stages + stage;
		stage ^= stage_bytes;
		__syncwarp();
		copy_ahead(tile, stages + stage, line + THREADS / 32, end, args.nrows);
		asm volatile("cp.async.wait_group 1;" : : : "memory");
		__syncwarp();
		tile.row = line * LINE_ROWS + tile.thread % 32 * TILES_ROWS_PER_THREAD;
		tile.there = tile.row >= args.nrows                ? 0 :
			args.nrows - tile.row >= TILES_ROWS_PER_THREAD ? ALL_ITEMS :
															 (1u << (args.nrows - tile.row)) - 1;
		tile.more = line + THREADS / 32 < end;
		ok = tile.there;
		if (args.bins.filter)
			ok &= load_filter(tile, args.bins.filter);
		conditions = {ok, 0};
		run_steps<KERNEL>(tile, last, conditions);
		ok = rows_that_count(tile, last, conditions, undetermined);
		if (!__any_sync(~0u, ok))
			continue;
		ok = tile_bins(tile, args.bins.ncolumns, last, ok, bin, outside);
		add_slots<KERNEL>(args, tile, shared, window, lc, last, bin, ok);
	}
	if (outside)
		atomicAdd(&args.status->outside, (u64) outside);
	if (undetermined)
		atomicAdd(args.program->undetermined, (unsigned long long) undetermined);
	__syncthreads();
	flush_to_limbs(args, shared, lc, (u32) args.bins.nbins, args.limb, 0);
	if (KERNEL != TILES_LIGHT)
		end_hot(args);
}

#endif /* GPUAGG_HIST_TILES_CUH */
