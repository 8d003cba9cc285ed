/*
 * hist_tiles_table.cuh
 *	  What a block of histograms by tiles finds before its first tile: where operands, keys and
 * slots are, and which columns go to shared memory ahead of their tile's turn.
 */
#ifndef GPUAGG_HIST_TILES_TABLE_CUH
#define GPUAGG_HIST_TILES_TABLE_CUH

#include "hist_change.cuh"
#include "hist_tiles_args.h"

#define MOST_STAGED 16
#define NOT_STAGED (~0u)

/* A column, from the call's first row on. */
struct Source
{
	const char *values;
	const uint8_t *validity;
	u32 type;   /* GpuaggValueType */
	u32 staged; /* offset in a stage, or NOT_STAGED */
};

#define INPUT_SOURCES 0
#define BIN_SOURCES GPUAGG_MAX_INPUTS
#define SLOT_SOURCES (BIN_SOURCES + GPUAGG_MAX_KEYS)
#define SOURCES (SLOT_SOURCES + GPUAGG_MAX_SLOTS)

/* Where an operand is: a number, and in the lowest bits, which it is. */
enum OperandKind
{
	OPERAND_LAST,      /* the last result */
	OPERAND_CONSTANT,  /* a constant's number */
	OPERAND_TEMPORARY, /* a temporary's */
	OPERAND_INT4,      /* int32 without NULLs at this offset in a stage */
	OPERAND_INT8,      /* 8 bytes without NULLs */
	OPERAND_COLUMN,    /* any column: a source's number */
	OPERAND_LIST,      /* constants from a number on, which the operation reads by itself */
	OPERAND_NONE
};

#define OPERAND_BITS 3
/* An instruction's register is in the word of its operand a, from this bit on. */
#define RESULT_SHIFT 24
#define NO_RESULT 0xffu

/* A column that is copied to shared memory before its tile's turn. */
struct alignas(16) Piece
{
	const char *values;
	u32 width;
	u32 offset; /* in a stage */
};

/* A key's column, and what of it are bins. */
struct alignas(16) TileKey
{
	int64_t min;
	u32 extent;
	u32 word; /* the operand, and NULL_HAS_BIN */
};

#define NULL_HAS_BIN (1u << 31)

struct alignas(16) TileSlot
{
	u32 word;   /* the operand */
	u32 filter; /* that of a filter, or OPERAND_NONE */
	u32 words;  /* bytes to its words in shared memory */
	u32 what;   /* HistTile, and these: */
};

#define SLOT_AGAIN 0x100     /* of the slot before, values are */
#define SLOT_NO_VALUES 0x200 /* a count, which needs none: */
#define SLOT_VALIDITY 0x400  /* but whether they are NULL */
#define SLOT_FILTER 0x800    /* a column of bytes */
#define SLOT_F32 0x1000

/* What a block knows of a program, in shared memory. */
struct alignas(16) TileTable
{
	uint4 step[VECTOR_MAX_INSTRUCTIONS]; /* operation and data, operands a, b, c */
	VectorConstant constant[VECTOR_MAX_CONSTANTS];
	VectorTable table[GPUAGG_MAX_TABLES];
	Piece piece[MOST_STAGED];
	Source source[SOURCES];
	u32 npieces;
	u32 stage_bytes; /* of a stage, so far */
	u32 nsteps;
	u32 nchecks;
	u32 filter;
	u32 check[GPUAGG_MAX_CHECKS];
	TileKey key[GPUAGG_MAX_KEYS];
	TileSlot slot[GPUAGG_MAX_SLOTS];
	bool nullable[GPUAGG_MAX_CHECKS];
};

/* Bytes behind the bins and the entries of hot ones. */
static __host__ __device__ __forceinline__ size_t
program_bytes(const HistArgs &args, int threads)
{
	return sizeof(TileTable) +
		(size_t) args.temporaries * threads * (TILES_ROWS_PER_THREAD * 8 + 1);
}

static __host__ __device__ __forceinline__ size_t
program_at(const HistArgs &args, int threads)
{
	return (words_before_hot(args) * sizeof(u32) +
			(size_t) (threads / 32) * args.hot_entries * sizeof(HotEntry) + 15) &
		~(size_t) 15;
}

/* Two stages behind all that. */
static __host__ __device__ __forceinline__ size_t
stages_at(const HistArgs &args, int threads)
{
	return (program_at(args, threads) + program_bytes(args, threads) + 127) & ~(size_t) 127;
}

static __device__ __forceinline__ u32
operand_word(int kind, u32 number)
{
	return (u32) kind | number << OPERAND_BITS;
}

static __device__ __forceinline__ Source
make_source(const GpuaggColumn &c, u64 first)
{
	const char *values = (const char *) c.values;

	return {values ? values + first * hist_type_bytes(c.type) : nullptr,
			c.validity ? c.validity + first / 8 : nullptr, (u32) c.type, NOT_STAGED};
}

/* A place in the stages for a column, which may have one already. */
static __device__ __forceinline__ void
stage_column(TileTable &t, Source &s, u32 rows, u32 room)
{
	u32 width = hist_type_bytes((GpuaggValueType) s.type);

	if (s.values == nullptr)
		return;
	for (u32 i = 0; i < t.npieces; i++)
		if (t.piece[i].values == s.values && t.piece[i].width == width)
		{
			s.staged = t.piece[i].offset;
			return;
		}
	if (t.npieces == MOST_STAGED || t.stage_bytes + rows * width > room)
		return;
	s.staged = t.stage_bytes;
	t.piece[t.npieces++] = {s.values, width, t.stage_bytes};
	t.stage_bytes += rows * width;
}

static __device__ __forceinline__ u32
input_bit(u32 operand)
{
	return operand - GPUAGG_INPUT < GPUAGG_MAX_INPUTS ? 1u << (operand - GPUAGG_INPUT) : 0;
}

/* By a warp: finds the columns that are read, those that come first in a tile first. */
static __device__ __noinline__ void
stage_columns(const HistArgs &args, const GpuaggProgram &p, u32 rows, u32 room, TileTable &t)
{
	u32 inputs = 0;

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
	t.npieces = 0;
	t.stage_bytes = 0;
	for (int i = 0; i < GPUAGG_MAX_INPUTS; i++)
		if (inputs >> i & 1)
			stage_column(t, t.source[INPUT_SOURCES + i], rows, room);
	for (int c = 0; c < args.bins.ncolumns; c++)
		stage_column(t, t.source[BIN_SOURCES + c], rows, room);
	for (int i = 0; i < args.nslots; i++)
		stage_column(t, t.source[SLOT_SOURCES + i], rows, room);
}

static __device__ __forceinline__ u32
source_word(const TileTable &t, int i)
{
	const Source &s = t.source[i];

	if (s.values == nullptr)
		return OPERAND_NONE;
	if (s.staged != NOT_STAGED && s.validity == nullptr && s.type == GPUAGG_VALUE_I32)
		return operand_word(OPERAND_INT4, s.staged);
	if (s.staged != NOT_STAGED && s.validity == nullptr &&
		(s.type == GPUAGG_VALUE_I64 || s.type == GPUAGG_VALUE_F64))
		return operand_word(OPERAND_INT8, s.staged);
	return operand_word(OPERAND_COLUMN, i);
}

static __device__ __forceinline__ u32
word_of(const TileTable &t, u32 operand)
{
	if (operand == VECTOR_NONE)
		return OPERAND_NONE;
	if (operand == GPUAGG_LAST)
		return OPERAND_LAST;
	if (operand >= VECTOR_CONSTANT)
		return operand_word(OPERAND_CONSTANT, operand - VECTOR_CONSTANT);
	return operand >= GPUAGG_INPUT ?
		source_word(t, INPUT_SOURCES + (int) (operand - GPUAGG_INPUT)) :
		operand_word(OPERAND_TEMPORARY, operand);
}

/* A column of bins or slots. */
static __device__ __forceinline__ u32
column_word(const TileTable &t, const GpuaggColumn &c, int source)
{
	return c.computed ? word_of(t, c.operand) : source_word(t, source);
}

static __device__ __forceinline__ uint4
make_step(const TileTable &t, VectorInstruction in)
{
	u32 condition = in.op & GPUAGG_CONDITION, b = word_of(t, in.b), c = OPERAND_NONE;

	in.op &= ~GPUAGG_CONDITION;
	in = vector_simplify(in);
	if (in.op == VECTOR_IN || in.op == VECTOR_BUCKET)
	{
		b = operand_word(OPERAND_LIST, in.b - VECTOR_CONSTANT);
		c = in.c;
	}
	else if (in.op == VECTOR_SELECT || in.op == VECTOR_DISTINCT || in.op == VECTOR_GREATEST)
		c = word_of(t, in.c);
	return make_uint4(in.op | condition | (u32) in.data << 16,
					  word_of(t, in.a) | (in.r == VECTOR_NONE ? NO_RESULT : in.r) << RESULT_SHIFT,
					  b, c);
}

static __device__ __forceinline__ TileSlot
make_slot(const TileTable &t, const HistArgs &args, int s, int lc)
{
	const HistSlot &slot = args.slot[s];
	u32 what = (u32) slot.tile;

	if (slot.tile == TILE_COUNT && !slot.x.computed)
		what |= SLOT_NO_VALUES | (slot.x.validity ? SLOT_VALIDITY : 0);
	else if (slot.repeats_x)
		what |= SLOT_AGAIN;
	if (slot.filter)
		what |= SLOT_FILTER;
	if (slot.x.type == GPUAGG_VALUE_F32)
		what |= SLOT_F32;
	return {column_word(t, slot.x, SLOT_SOURCES + s),
			slot.filter_operand < 0 ? (u32) OPERAND_NONE : word_of(t, (u32) slot.filter_operand),
			slot.word * (args.pass_bins << lc) * (u32) sizeof(u32), what};
}

/* By the block: fills in the table; room: of a stage. */
static __device__ __noinline__ void
make_table(const HistArgs &args, u32 room, int lc, TileTable &t)
{
	const GpuaggProgram &p = *args.program;
	u32 i = threadIdx.x;

	for (u32 k = i; k < VECTOR_MAX_CONSTANTS; k += blockDim.x)
		t.constant[k] = p.steps.constants[k];
	if (i < GPUAGG_MAX_INPUTS)
		t.source[INPUT_SOURCES + i] = make_source(p.input[i], args.input_row);
	if (i < GPUAGG_MAX_KEYS)
		t.source[BIN_SOURCES + i] = make_source(args.bins.column[i], 0);
	if (i < GPUAGG_MAX_SLOTS)
		t.source[SLOT_SOURCES + i] = make_source(args.slot[i].x, 0);
	if (i < GPUAGG_MAX_TABLES)
		t.table[i] = p.tables[i];
	__syncthreads();
	if (i < 32)
		stage_columns(args, p, blockDim.x * TILES_ROWS_PER_THREAD, room, t);
	__syncthreads();
	for (u32 k = i; k < p.steps.ninstructions; k += blockDim.x)
		t.step[k] = make_step(t, p.steps.instructions[k]);
	if (i < (u32) p.nchecks)
	{
		t.check[i] = word_of(t, p.check[i].operand);
		t.nullable[i] = p.check[i].nullable;
	}
	if (i < (u32) args.bins.ncolumns)
		t.key[i] = {args.bins.min[i], (u32) args.bins.extent[i],
					column_word(t, args.bins.column[i], BIN_SOURCES + (int) i) |
						(args.bins.null_bin[i] ? NULL_HAS_BIN : 0)};
	if (i < (u32) args.nslots)
		t.slot[i] = make_slot(t, args, (int) i, lc);
	if (i == 0)
	{
		t.filter = word_of(t, p.steps.filter);
		t.nsteps = p.steps.ninstructions;
		t.nchecks = (u32) p.nchecks;
	}
	__syncthreads();
}

#endif /* GPUAGG_HIST_TILES_TABLE_CUH */
