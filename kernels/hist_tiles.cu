/*
 * hist_tiles.cu
 *	  Histograms of several operators at once: what a program computes of columns goes to bins
 *	  and sums without a way through memory, tile by tile.
 *
 * A thread has four rows in a row of a tile for itself, so that nothing waits for another thread; each step, of the
 * program or of an operator, is chosen once for all rows of a tile.  The words, limbs and states are
 * those of the other kernels in shared memory.  A result that only the next instruction reads stays in
 * registers; others are temporaries in shared memory, behind the bins.  Behind these are the columns of two tiles,
 * as far as there is room: of the one that is computed, and of the next, on their way meanwhile.
 */
/* values of rows are in registers if loops over them and calls vanish */
#define VECTOR_INLINE
#ifdef __CUDA_ARCH__
#define VECTOR_UNROLL _Pragma("unroll")
#endif
#include "operators/vector_run.h"

#include "hist_add.cuh"

#define THREADS HIST_THREADS
#define ITEMS 4
#define ALL_ITEMS ((1u << ITEMS) - 1)
#define TILE_ROWS (THREADS * ITEMS)

/* Values and states of a thread's rows, these two bits each: a state of all rows is one number. */
struct Lanes
{
	int64_t		v[ITEMS];
	u32			s;
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
	u32			bits = 0;

#pragma unroll
	for (int j = 0; j < ITEMS; j++)
		bits |= states >> LANE_BITS * j & state ? 1u << j : 0;
	return bits;
}

/* The rows that have a value. */
static __device__ __forceinline__ u32
rows_of_values(u32 states)
{
	return states == 0 ? ALL_ITEMS : ALL_ITEMS & ~rows_of_state(states, VECTOR_NULL | VECTOR_UNTOLD);
}

/* The rows whose value is not 0. */
static __device__ __forceinline__ u32
rows_of_truth(const int64_t (&v)[ITEMS])
{
	u32			bits = 0;

#pragma unroll
	for (int j = 0; j < ITEMS; j++)
		bits |= v[j] != 0 ? 1u << j : 0;
	return bits;
}

#define MOST_STAGED 16
#define NOT_STAGED (~0u)

/* What is copied of a thread's rows at a time: all of a column of up to 4 bytes, half of one of 8. */
struct alignas(16) Piece
{
	const char *values;			/* of the call's first row */
	u32			width;			/* of the column */
	u32			offset;			/* in a stage */
};

/* Columns that are copied to shared memory before their tile's turn, and where in that: a stage. */
struct Staged
{
	Piece		piece[MOST_STAGED];
	int			n;
	u32			bytes;			/* of a stage, so far */
	/* offsets of what is read, or NOT_STAGED */
	u32			input[GPUAGG_MAX_INPUTS];
	u32			bin[GPUAGG_MAX_KEYS];
	u32			slot[GPUAGG_MAX_SLOTS];
};

/* Where a thread is. */
struct Tile
{
	const GpuaggProgram *program;	/* these are in shared memory */
	const Staged *staged;
	const char *stage;			/* of this tile */
	ulonglong2 *values;
	uint8_t    *states;
	u32			row;			/* the first one, */
	u32			input;			/* and of the program's inputs, less that */
	u32			there;			/* a bit for each row that there is */
	bool		more;			/* there are as many rows in the next tile */
};

/* Bytes behind the bins and the entries of hot ones. */
static __host__ __device__ __forceinline__ size_t
program_bytes(const HistArgs &args)
{
	return ((sizeof(GpuaggProgram) + 15) & ~(size_t) 15) + (size_t) args.temporaries * THREADS * (ITEMS * 8 + 1);
}

size_t
hist_tile_bytes(const HistArgs &args)
{
	return program_bytes(args) + 16;
}

static __host__ __device__ __forceinline__ size_t
program_at(const HistArgs &args)
{
	return (words_before_hot(args) * sizeof(u32) + (size_t) (THREADS / 32) * args.hot_entries * sizeof(HotEntry) + 15) & ~(size_t) 15;
}

/* Two stages behind all that. */
static __host__ __device__ __forceinline__ size_t
stages_at(const HistArgs &args)
{
	return (program_at(args) + program_bytes(args) + 15) & ~(size_t) 15;
}

/* ---- columns ------------------------------------------------------------------- */

/* A place in the stages for a column, which may have one already. */
static __device__ __forceinline__ u32
stage_column(Staged &s, const GpuaggColumn &c, size_t first, u32 room)
{
	u32			width = hist_type_bytes(c.type);
	u32			offset = s.bytes;
	const char *values = (const char *) c.values + first * width;

	if (c.values == nullptr)
		return NOT_STAGED;
	for (int i = 0; i < s.n; i++)
		if (s.piece[i].values == values && s.piece[i].width == width)
			return s.piece[i].offset;
	if (s.n + 2 > MOST_STAGED || offset + TILE_ROWS * width > room)
		return NOT_STAGED;
	s.piece[s.n++] = {values, width, offset};
	if (width == 8)
		s.piece[s.n++] = {values + 16, width, offset + THREADS * 16};
	s.bytes += TILE_ROWS * width;
	return offset;
}

static __device__ __forceinline__ u32
input_bit(u32 operand)
{
	return operand - GPUAGG_INPUT < GPUAGG_MAX_INPUTS ? 1u << (operand - GPUAGG_INPUT) : 0;
}

/* By a warp: finds the columns that are read, those that come first in a tile first. */
static __device__ __noinline__ void
find_columns(const HistArgs &args, const GpuaggProgram &p, u32 room, Staged &s)
{
	u32			inputs = 0;

	for (u32 i = threadIdx.x % 32; i < p.steps.ninstructions; i += 32)
	{
		const VectorInstruction &in = p.steps.instructions[i];

		inputs |= input_bit(in.a) | input_bit(in.b) | input_bit(in.c);
	}
	for (int i = threadIdx.x % 32; i < p.nchecks; i += 32)
		inputs |= input_bit(p.check[i].operand);
	for (int c = 0; c < args.bins.ncolumns; c++)
		if (args.bins.column[c].computed)
			inputs |= input_bit(args.bins.column[c].operand);
	for (int i = 0; i < args.nslots; i++)
	{
		if (args.slot[i].x.computed)
			inputs |= input_bit(args.slot[i].x.operand);
		if (args.slot[i].filter_operand >= 0)
			inputs |= input_bit(args.slot[i].filter_operand);
	}
	inputs = __reduce_or_sync(~0u, inputs | input_bit(p.steps.filter));
	if (threadIdx.x % 32 != 0)
		return;
	s.n = 0;
	s.bytes = 0;
	for (int i = 0; i < GPUAGG_MAX_INPUTS; i++)
		s.input[i] = inputs >> i & 1 ? stage_column(s, p.input[i], args.input_row, room) : NOT_STAGED;
	for (int c = 0; c < args.bins.ncolumns; c++)
		s.bin[c] = stage_column(s, args.bins.column[c], 0, room);
	for (int i = 0; i < args.nslots; i++)
		s.slot[i] = stage_column(s, args.slot[i].x, 0, room);
}

/* Has a thread's rows on their way to a stage, if there are ITEMS of them, as one group of copies. */
static __device__ __forceinline__ void
copy_ahead(const Staged &s, u32 stage_at, u64 row, u64 end)
{
	if (row + ITEMS <= end)
#pragma unroll 1
		for (int i = 0; i < s.n; i++)
		{
			Piece		p = s.piece[i];
			const char *from = p.values + (u64) (u32) row * p.width;
			u32			to = stage_at + p.offset;

			if (p.width >= 4)
				asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" : : "r"(to + threadIdx.x * 16), "l"(from) : "memory");
			else if (p.width == 2)
				asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" : : "r"(to + threadIdx.x * 8), "l"(from) : "memory");
			else
				asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" : : "r"(to + threadIdx.x * 4), "l"(from) : "memory");
		}
	asm volatile("cp.async.commit_group;" : : : "memory");
}

/*
 * A thread's rows of a column, where they are staged or where they are stored.  Of the latter it has the next tile's line
 * under way; one lane does for each, as an instruction takes its lanes one by one.
 */
template <typename T> static __device__ __forceinline__ T
fetch(const Tile &tile, const void *values, u32 staged, int width, int piece)
{
	const T    *p;

	if (staged != NOT_STAGED)
		return ((const T *) (tile.stage + staged))[piece * THREADS + threadIdx.x];
	p = (const T *) ((const char *) values + (size_t) tile.row * width) + piece;
	if (tile.more && piece == 0 && threadIdx.x % (32 / width) == 0)
		asm volatile("prefetch.global.L2 [%0];" : : "l"((const char *) p + THREADS * ITEMS * width));
	return __ldg(p);
}

/* Values as registers of programs have them. */
static __device__ __forceinline__ void
load_values(const Tile &tile, const GpuaggColumn &c, u32 staged, int64_t (&v)[ITEMS])
{
	if (tile.there != ALL_ITEMS)
	{
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
		{
			v[j] = 0;
			if (tile.there >> j & 1)
				v[j] = c.type == GPUAGG_VALUE_F32 ? (int64_t) ((const u32 *) c.values)[tile.row + j]
					: load_integer(c.values, c.type, tile.row + j);
		}
		return;
	}
	switch (c.type)
	{
		case GPUAGG_VALUE_I8:
			{
				u32			w = fetch<u32>(tile, c.values, staged, 1, 0);

#pragma unroll
				for (int j = 0; j < ITEMS; j++)
					v[j] = (int8_t) (w >> 8 * j);
				break;
			}
		case GPUAGG_VALUE_I16:
			{
				uint2		w = fetch<uint2>(tile, c.values, staged, 2, 0);

				v[0] = (int16_t) w.x;
				v[1] = (int16_t) (w.x >> 16);
				v[2] = (int16_t) w.y;
				v[3] = (int16_t) (w.y >> 16);
				break;
			}
		case GPUAGG_VALUE_I32:
		case GPUAGG_VALUE_F32:
			{
				int4		w = fetch<int4>(tile, c.values, staged, 4, 0);
				int64_t		mask = c.type == GPUAGG_VALUE_F32 ? INT64_C(0xffffffff) : INT64_C(-1);

				v[0] = w.x & mask;
				v[1] = w.y & mask;
				v[2] = w.z & mask;
				v[3] = w.w & mask;
				break;
			}
		default:
			{
				ulonglong2	w[2] = {fetch<ulonglong2>(tile, c.values, staged, 8, 0),
					fetch<ulonglong2>(tile, c.values, staged, 8, 1)};

				v[0] = w[0].x;
				v[1] = w[0].y;
				v[2] = w[1].x;
				v[3] = w[1].y;
			}
	}
}

/* The rows that are not NULL. */
static __device__ __forceinline__ u32
load_validity(const Tile &tile, const uint8_t *validity)
{
	return validity && tile.there ? validity[tile.row / 8] >> (tile.row & 7) & ALL_ITEMS : ALL_ITEMS;
}

/* The rows of those there whose byte is not 0. */
static __device__ __forceinline__ u32
load_filter(const Tile &tile, const uint8_t *filter)
{
	u32			bits = 0;

	if (tile.there == ALL_ITEMS)
	{
		u32			w = fetch<u32>(tile, filter, NOT_STAGED, 1, 0);

#pragma unroll
		for (int j = 0; j < ITEMS; j++)
			bits |= (w >> 8 * j & 0xff) ? 1u << j : 0;
		return bits;
	}
#pragma unroll
	for (int j = 0; j < ITEMS; j++)
		if ((tile.there >> j & 1) && filter[tile.row + j])
			bits |= 1u << j;
	return bits;
}

/* ---- the program ----------------------------------------------------------------- */

static __device__ __forceinline__ void
put_temporary(const Tile &tile, int r, const Lanes &from)
{
	tile.values[2 * r * THREADS + threadIdx.x] = make_ulonglong2(from.v[0], from.v[1]);
	tile.values[(2 * r + 1) * THREADS + threadIdx.x] = make_ulonglong2(from.v[2], from.v[3]);
	tile.states[r * THREADS + threadIdx.x] = (uint8_t) from.s;
}

static __device__ __forceinline__ void
load_lanes(const Tile &tile, int input, Lanes &to)
{
	const GpuaggColumn &c = tile.program->input[input];
	Tile		there = tile;

	there.row += tile.input;
	to.s = 0;
	if (c.validity)
	{
		u32			valid = load_validity(there, c.validity);

#pragma unroll
		for (int j = 0; j < ITEMS; j++)
			to.s |= (valid >> j & 1 ? VECTOR_VALUE : VECTOR_NULL) << LANE_BITS * j;
	}
	load_values(there, c, tile.staged->input[input], to.v);
}

static __device__ __forceinline__ void
get_operand(const Tile &tile, int operand, const Lanes &last, Lanes &to)
{
	if (operand == GPUAGG_LAST)
		to = last;
	else if (operand >= VECTOR_CONSTANT)
	{
		const VectorConstant &c = tile.program->steps.constants[operand - VECTOR_CONSTANT];

#pragma unroll
		for (int j = 0; j < ITEMS; j++)
			to.v[j] = c.bits;
		to.s = c.state * ALL_STATES;
	}
	else if (operand >= GPUAGG_INPUT)
		load_lanes(tile, operand - GPUAGG_INPUT, to);
	else
	{
		ulonglong2	low = tile.values[2 * operand * THREADS + threadIdx.x],
					high = tile.values[(2 * operand + 1) * THREADS + threadIdx.x];

		to.v[0] = low.x;
		to.v[1] = low.y;
		to.v[2] = high.x;
		to.v[3] = high.y;
		to.s = tile.states[operand * THREADS + threadIdx.x];
	}
}

static __device__ __forceinline__ void
look_up(const Tile &tile, const VectorInstruction &in, const Lanes &a, Lanes &to)
{
	const GpuaggProgram *p = tile.program;
	VectorTable t = p->tables[in.data];

	to.s = 0;
#pragma unroll
	for (int j = 0; j < ITEMS; j++)
	{
		VectorCell	cell = vector_table_cell(t, p->cells, p->cell_states, a.v[j], (uint8_t) lane_state(a.s, j));

		to.v[j] = cell.value;
		to.s |= (u32) cell.state << LANE_BITS * j;
	}
}

/* An instruction over operands that, if not STATES, all have values. */
template <bool STATES> static __device__ __forceinline__ void
apply(const VectorInstruction &in, const VectorConstant *list, const Lanes &a, const Lanes &b, const Lanes &c, Lanes &r)
{
	uint8_t		sa[ITEMS],
				sb[ITEMS],
				sc[ITEMS],
				sr[ITEMS];
	VectorOperand oa = {a.v, sa, 0, 0},
				ob = {b.v, sb, 0, 0},
				oc = {c.v, sc, 0, 0};

#pragma unroll
	for (int j = 0; j < ITEMS; j++)
	{
		sa[j] = STATES ? (uint8_t) lane_state(a.s, j) : VECTOR_VALUE;
		sb[j] = STATES ? (uint8_t) lane_state(b.s, j) : VECTOR_VALUE;
		sc[j] = STATES ? (uint8_t) lane_state(c.s, j) : VECTOR_VALUE;
	}
	vector_apply(&in, list, oa, ob, oc, r.v, sr, 0, 1, ITEMS);
	r.s = 0;
#pragma unroll
	for (int j = 0; j < ITEMS; j++)
		r.s |= (u32) sr[j] << LANE_BITS * j;
}

/* Which rows count, so far. */
struct Conditions
{
	u32			hold;			/* those where all conditions were true */
	u32			open;			/* where none was false */
	u32			unclear;		/* where one was untold before any was false */
};

static __device__ __forceinline__ void
meet_condition(const Lanes &x, Conditions &c)
{
	u32			truth = rows_of_truth(x.v);

	if (x.s)
	{
		u32			values = rows_of_values(x.s);

		c.unclear |= c.open & rows_of_state(x.s, VECTOR_UNTOLD);
		c.open &= truth | ~values;
		c.hold &= truth & values;
	}
	else
	{
		c.open &= truth;
		c.hold &= truth;
	}
}

/* Runs all instructions; `last` has the result of the last one. */
static __device__ __forceinline__ void
run_steps(const Tile &tile, Lanes &last, Conditions &conditions)
{
	const VectorProgram &steps = tile.program->steps;

#pragma unroll 1
	for (u32 p = 0; p < steps.ninstructions; p++)
	{
		VectorInstruction in = steps.instructions[p];
		bool		condition = in.op & GPUAGG_CONDITION;
		Lanes		a,
					b,
					c,
					r;

		in.op &= ~GPUAGG_CONDITION;
		get_operand(tile, in.a, last, a);
		b.s = c.s = a.s;
		if (in.op == VECTOR_LOOKUP)
			look_up(tile, in, a, r);
		else
		{
			const VectorConstant *list = steps.constants + (in.b >= VECTOR_CONSTANT ? in.b - VECTOR_CONSTANT : 0);

			if (in.b != VECTOR_NONE)
				get_operand(tile, in.b, last, b);
			if (in.op == VECTOR_SELECT || in.op == VECTOR_DISTINCT || in.op == VECTOR_GREATEST)
				get_operand(tile, in.c, last, c);
			if (__any_sync(~0u, a.s | b.s | c.s))
				apply<true>(in, list, a, b, c, r);
			else
				apply<false>(in, list, a, b, c, r);
		}
		last = r;
		if (condition)
		{
			meet_condition(last, conditions);
			/* what follows is of no row */
			if (!__any_sync(~0u, conditions.open | conditions.unclear))
				return;
		}
		if (in.r != VECTOR_NONE)
			put_temporary(tile, in.r, last);
	}
}

/* The rows of `wanted` that count, after the program; untold: how many of them only core can tell. */
static __device__ __forceinline__ u32
rows_that_count(const Tile &tile, const Lanes &last, Conditions &conditions, u32 &untold)
{
	const GpuaggProgram *p = tile.program;
	u32			unclear = 0;
	Lanes		x;

	if (p->steps.filter != VECTOR_NONE)
	{
		get_operand(tile, p->steps.filter, last, x);
		meet_condition(x, conditions);
	}
	for (int c = 0; c < p->nchecks; c++)
	{
		get_operand(tile, p->check[c].operand, last, x);
		unclear |= rows_of_state(x.s, p->check[c].nullable ? VECTOR_UNTOLD : VECTOR_UNTOLD | VECTOR_NULL);
	}
	untold += __popc(conditions.unclear | (unclear & conditions.hold));
	return conditions.hold & ~unclear;
}

/* ---- bins and inputs ---------------------------------------------------------------- */

/* A column's values as load_items has them, and the rows that have one. */
static __device__ __forceinline__ u32
column_values(const Tile &tile, const GpuaggColumn &c, u32 staged, const Lanes &last, u64 (&v)[ITEMS])
{
	int64_t		raw[ITEMS];
	u32			valid = 0;

	if (c.computed)
	{
		Lanes		x;

		get_operand(tile, c.operand, last, x);
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
			raw[j] = x.v[j];
		valid = rows_of_values(x.s);
	}
	else
	{
		valid = load_validity(tile, c.validity);
		if (c.values)
			load_values(tile, c, staged, raw);
		else
#pragma unroll
			for (int j = 0; j < ITEMS; j++)
				raw[j] = 0;
	}
#pragma unroll
	for (int j = 0; j < ITEMS; j++)
		v[j] = (u64) raw[j];
	if (c.type == GPUAGG_VALUE_F32)
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
			v[j] = __double_as_longlong((double) __uint_as_float((u32) raw[j]));
	return valid;
}

/* As find_bins. */
static __device__ __forceinline__ u32
tile_bins(const Tile &tile, const GpuaggBins &b, const Lanes &last, u32 ok, int32_t (&bin)[ITEMS], u32 &outside)
{
	u32			out = 0;

#pragma unroll
	for (int j = 0; j < ITEMS; j++)
		bin[j] = 0;
	for (int c = 0; c < b.ncolumns; c++)
	{
		u64			v[ITEMS];
		u32			valid = column_values(tile, b.column[c], tile.staged->bin[c], last, v);
		u32			values = (u32) (b.extent[c] - (b.null_bin[c] != 0));

		if (!b.null_bin[c])
			ok &= valid;
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
		{
			u64			k = v[j] - (u64) b.min[c];
			bool		is_value = valid >> j & 1;

			if (is_value && k >= values)
				out |= 1u << j;
			bin[j] = (int32_t) ((u32) bin[j] * (u32) b.extent[c] + (is_value ? (u32) k : values));
		}
	}
	out &= ok;
	outside += __popc(out);
	return ok & ~out;
}

/* ---- operators ---------------------------------------------------------------------- */

static __device__ __forceinline__ void
tile_maxima(int op, const FastShared &place, const u32 (&at)[ITEMS], const u64 (&v)[ITEMS], u32 in)
{
	u32			code[ITEMS];

#pragma unroll
	for (int j = 0; j < ITEMS; j++)
		code[j] = (u32) max_code(op, v[j]);
	add_maxima(place, at, code, in);
}

template <int DIGITS> static __device__ __forceinline__ void
tile_fixes(const HistArgs &args, const FastArgs &fast, const FastShared &place, int e0, const u32 (&at)[ITEMS],
		   const u64 (&v)[ITEMS], u32 in)
{
	FixWindow<DIGITS> window(e0, args.slot[fast.slot].max_shift);
	HotBin<DIGITS> none = {NO_BIN, 0, {}};
	double		x[ITEMS];

#pragma unroll
	for (int j = 0; j < ITEMS; j++)
		x[j] = __longlong_as_double(v[j]);
	add_fixes<DIGITS, ITEMS, false>(args, fast, place, window, at, x, in, 0, none);
}

/* Deviations and squares, whose code is long: row after row. */
static __device__ __forceinline__ void
tile_squares(const HistArgs &args, int s, const FastShared &place, int e0, const int32_t (&bin)[ITEMS], const u64 (&v)[ITEMS],
			 u32 in)
{
	const HistSlot &slot = args.slot[s];
	u64			lo[ITEMS],
				hi[ITEMS];

#pragma unroll
	for (int j = 0; j < ITEMS; j++)
	{
		lo[j] = v[j];
		hi[j] = 0;
	}
	row_after_row<ITEMS>(in, bin, lo, hi, [&](bool has, int32_t b, u64 l, u64 h) {
		u32			at = ((u32) b << place.log2_copies) | place.copy;
		bool		out_of_window = false;

		if (slot.form == HIST_INTSQ)
		{
			if (has)
				add_square(slot, place.words + at, place.plane, l);
		}
		else
		{
			FixPart		f;
			bool		fits = fix_split(l, e0, slot.max_shift, f);
			u32			address = place.words_at + at * (u32) sizeof(u32),
						plane = place.plane * (u32) sizeof(u32);

			if (has && fits && slot.digit_bits == 24)
				add_moments<24>(args, slot, (u32) b, address, plane, f);
			else if (has && fits)
				add_moments<28>(args, slot, (u32) b, address, plane, f);
			out_of_window = has && !fits;
			__syncwarp();
		}
		if (__any_sync(~0u, out_of_window))
			change_rows<CHANGE_OUT_OF_WINDOW>(args, s, bin_of_block(args, s, b), out_of_window, l, h);
	});
}

static __device__ __forceinline__ void
add_slot(const HistArgs &args, int s, const FastShared &place, int e0, const u32 (&at)[ITEMS], const int32_t (&bin)[ITEMS],
		 const u64 (&v)[ITEMS], u32 in)
{
	FastArgs	fast = {{}, -1, -1, s};

	switch (args.slot[s].tile)
	{
		case TILE_COUNT:
#pragma unroll
			for (int j = 0; j < ITEMS; j++)
				if (in >> j & 1)
					shared_count(place.words_at + at[j] * (u32) sizeof(u32));
			break;
		case TILE_INT_I32:
			{
				int32_t		w[ITEMS];

#pragma unroll
				for (int j = 0; j < ITEMS; j++)
					w[j] = (int32_t) v[j];
				add_integers(args, fast, place, at, w, in);
				break;
			}
		case TILE_INT_I64:
			add_wide_integers(args, fast, place, at, v, in);
			break;
		case TILE_FIX3:
			tile_fixes<3>(args, fast, place, e0, at, v, in);
			break;
		case TILE_FIX4:
			tile_fixes<4>(args, fast, place, e0, at, v, in);
			break;
		case TILE_MAX32:
			tile_maxima(args.slot[s].op, place, at, v, in);
			break;
		case TILE_MAX64:
			add_extremes(args, s, place, at, v, in);
			break;
		default:				/* TILE_SQUARES */
			tile_squares(args, s, place, e0, bin, v, in);
	}
}

/* All slots. */
static __device__ __forceinline__ void
add_slots(const HistArgs &args, const Tile &tile, u32 *shared, const int *window, int lc, const Lanes &last,
		  const int32_t (&bin)[ITEMS], u32 ok)
{
	u32			plane = args.pass_bins << lc,
				copy = threadIdx.x & ((1u << lc) - 1),
				valid = ALL_ITEMS;
	u32			at[ITEMS];
	u64			v[ITEMS];

#pragma unroll
	for (int j = 0; j < ITEMS; j++)
	{
		at[j] = ((u32) bin[j] << lc) | copy;
		v[j] = 0;
	}
#pragma unroll 1
	for (int s = 0; s < args.nslots; s++)
	{
		const HistSlot &slot = args.slot[s];
		u32			in = ok;
		FastShared	place = {};

		if (slot.tile == TILE_COUNT && !slot.x.computed)
			valid = load_validity(tile, slot.x.validity);
		else if (!slot.again)
			valid = column_values(tile, slot.x, tile.staged->slot[s], last, v);
		in &= valid;
		if (slot.filter)
			in &= load_filter(tile, slot.filter);
		else if (slot.filter_operand >= 0)
		{
			Lanes		x;

			get_operand(tile, slot.filter_operand, last, x);
			in &= rows_of_truth(x.v) & rows_of_values(x.s);
		}
		place.word = slot.word;
		place.words = shared + slot.word * plane;
		place.words_at = shared_address(place.words);
		place.plane = plane;
		place.nbins = (u32) args.bins.nbins;
		place.log2_copies = lc;
		place.copy = copy;
		add_slot(args, s, place, window[2 * s], at, bin, v, in);
	}
}

/* ---- the kernel ---------------------------------------------------------------------- */

/* Copies the program to shared memory. */
static __device__ __forceinline__ void
fetch_program(const HistArgs &args, u32 *shared, Tile &tile)
{
	char	   *at = (char *) shared + program_at(args);
	size_t		bytes = (sizeof(GpuaggProgram) + 15) & ~(size_t) 15;

	for (u32 i = threadIdx.x; i < sizeof(GpuaggProgram) / sizeof(u64); i += THREADS)
		((u64 *) at)[i] = ((const u64 *) args.program)[i];
	tile.program = (const GpuaggProgram *) at;
	tile.values = (ulonglong2 *) (at + bytes);
	tile.states = (uint8_t *) (at + bytes + (size_t) args.temporaries * THREADS * ITEMS * sizeof(int64_t));
}

static __global__ void __launch_bounds__(THREADS, 1)
tiles_kernel(const __grid_constant__ HistArgs args, u32 stage_bytes)
{
	extern __shared__ __align__(16) u32 shared[];
	__shared__ int window[2 * GPUAGG_MAX_SLOTS];
	__shared__ Staged staged;
	char	   *stages = (char *) shared + stages_at(args);
	u32			stage = 0;
	/* equal shares, in whole rows of warps */
	u64			lines = ((u64) args.nrows + 127) / 128,
				begin = lines * blockIdx.x / gridDim.x * 128,
				end = min(lines * (blockIdx.x + 1) / gridDim.x * 128, (u64) args.nrows);
	u32			outside = 0,
				untold = 0;
	int			lc;
	Tile		tile = Tile();

	let_successor_start();
	hot_begin(args);
	clear_shared(shared, (size_t) args.words * (args.pass_bins << args.log2_most));
	wait_for_predecessor();
	if (threadIdx.x < 2 * args.nslots)
		window[threadIdx.x] = args.window[threadIdx.x];
	fetch_program(args, shared, tile);
	__syncthreads();
	if (threadIdx.x < 32)
		find_columns(args, *tile.program, stage_bytes, staged);
	__syncthreads();
	tile.staged = &staged;
	lc = log2_copies(args);
	copy_ahead(staged, shared_address(stages), begin + threadIdx.x * ITEMS, end);
	for (u64 base = begin; base < end; base += TILE_ROWS)
	{
		u64			row = base + threadIdx.x * ITEMS;
		Lanes		last = Lanes();
		int32_t		bin[ITEMS];
		Conditions	conditions;
		u32			ok;

		/* a thread reads only what it copied itself, so no other has to be waited for */
		tile.stage = stages + stage;
		stage ^= stage_bytes;
		copy_ahead(staged, shared_address(stages) + stage, row + TILE_ROWS, end);
		asm volatile("cp.async.wait_group 1;" : : : "memory");
		tile.row = (u32) row;
		tile.input = args.input_row;
		tile.there = row >= end ? 0 : end - row >= ITEMS ? ALL_ITEMS : (1u << (end - row)) - 1;
		tile.more = row + TILE_ROWS + ITEMS <= end;
		ok = tile.there;
		if (args.bins.filter)
			ok &= load_filter(tile, args.bins.filter);
		conditions = {ok, ok, 0};
		run_steps(tile, last, conditions);
		ok = rows_that_count(tile, last, conditions, untold);
		if (!__any_sync(~0u, ok))
			continue;
		ok = tile_bins(tile, args.bins, last, ok, bin, outside);
		add_slots(args, tile, shared, window, lc, last, bin, ok);
	}
	if (outside)
		atomicAdd(&args.status->outside, (u64) outside);
	if (untold)
		atomicAdd(tile.program->untold, (unsigned long long) untold);
	__syncthreads();
	flush_to_limbs(args, shared, lc, (u32) args.bins.nbins, args.limb, 0);
	hot_end(args);
}

/* Bytes of a tile's columns, at most. */
static u32
columns_bytes(const HistArgs &args)
{
	u32			bytes = (u32) args.input_bytes;

	for (int c = 0; c < args.bins.ncolumns; c++)
		if (args.bins.column[c].values)
			bytes += hist_type_bytes(args.bins.column[c].type);
	for (int s = 0; s < args.nslots; s++)
		if (args.slot[s].x.values && !args.slot[s].again)
			bytes += hist_type_bytes(args.slot[s].x.type);
	return TILE_ROWS * bytes;
}

GpuaggCudaStatus
hist_launch_tiles(const HistArgs &args, const DeviceFacts &facts, cudaStream_t stream)
{
	size_t		bytes = stages_at(args),
				most = facts.smem_per_block - SHARED_RESERVE,
				stage = min((size_t) columns_bytes(args), most > bytes ? (most - bytes) / 2 : 0) & ~(size_t) 15;

	CUDA_TRY(allow_shared(tiles_kernel, facts));
	CUDA_TRY(launch_early(tiles_kernel, facts.sms, THREADS, bytes + 2 * stage, facts, stream, args, (u32) stage));
	return hist_launch_fold(args, facts, stream);
}
