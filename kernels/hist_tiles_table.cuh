/*
 * hist_tiles_table.cuh
 *	  TileTable: the program of a tiled histogram, in shared memory, with all operands, keys and
 *	  slots located; and the layout of a block's shared memory.
 *
 * A block builds the table once, before its first tile, so that a tile reads one record for each
 * step, key and slot.  The table also says which columns are staged.  A staged column is copied to
 * shared memory asynchronously, one tile ahead of its use; other columns are read from device
 * memory when they are used.
 *
 * Dynamic shared memory of a block, in this order:
 *	 - the bins: args.words planes of 32-bit words, then the entries of hot bins (hist_change.cuh);
 *	 - from program_offset() on, the program area: the TileTable, then the temporaries, which are
 *	   program registers that later steps read: TILES_ROWS_PER_THREAD values of 8 bytes and one byte
 *	   of states for each thread;
 *	 - from stages_offset() on, two stages: the staged columns of the current and the next tile.
 */
#ifndef GPUAGG_HIST_TILES_TABLE_CUH
#define GPUAGG_HIST_TILES_TABLE_CUH

#include "hist_change.cuh"
#include "hist_tiles_args.h"

/* Most columns that are staged. */
#define MOST_STAGED 16
#define NOT_STAGED (~0u)

/* A column that the program, the bins or a slot reads. Element 0 is the call's first row. */
struct SourceColumn
{
	const char *values;      /* in device memory; NULL: no column */
	const uint8_t *validity; /* Arrow bits, or NULL if there are no NULLs */
	u32 type;                /* GpuaggValueType */
	u32 stage_offset;        /* where the column is in a stage, or NOT_STAGED */
};

/* The elements of TileTable.source: program inputs, then columns of keys, then columns of slots. */
#define INPUT_SOURCES 0
#define BIN_SOURCES GPUAGG_MAX_INPUTS
#define SLOT_SOURCES (BIN_SOURCES + GPUAGG_MAX_KEYS)
#define SOURCES (SLOT_SOURCES + GPUAGG_MAX_SLOTS)

/*
 * The location of an operand.  An operand code has the kind in its lowest OPERAND_BITS bits and a
 * number, whose meaning depends on the kind, in the bits above.
 */
enum OperandKind
{
	OPERAND_LAST,      /* the result of the last step; no number */
	OPERAND_CONSTANT,  /* number of a constant */
	OPERAND_TEMPORARY, /* number of a temporary */
	OPERAND_INT4,      /* offset of a staged int32 column without NULLs */
	OPERAND_INT8,      /* offset of a staged column of 8-byte values without NULLs */
	OPERAND_COLUMN,    /* number of any other column in TileTable.source */
	OPERAND_LIST,      /* number of the first of several constants, which the operation reads */
	OPERAND_NONE       /* no operand */
};

#define OPERAND_BITS 3
/* The code of operand a also has the step's result temporary, or NO_RESULT, from this bit on. */
#define RESULT_SHIFT 24
#define NO_RESULT 0xffu

/*
 * The step that make_step() makes of a condition on a staged int32 column without NULLs: the value
 * is one of z .. z + w; or it is not, if data is 1.  y: the column's offset in a stage.  The step
 * decodes no operands, and has no result.
 */
#define STEP_WITHIN VECTOR_OPS

/* A column that every tile copies to a stage. */
struct alignas(16) StagedColumn
{
	const char *values;
	u32 width;  /* bytes of a value: 1, 2, 4 or 8 */
	u32 offset; /* where the column is in a stage, in bytes */
};

/* A grouping key with its range (GPUAGG_BIN_RANGE). */
struct alignas(16) TileKey
{
	int64_t min;
	u32 extent;  /* number of values in the range, plus 1 if NULL has a bin */
	u32 operand; /* operand code of the key, plus NULL_HAS_BIN if NULL has a bin */
};

#define NULL_HAS_BIN (1u << 31)

/* A slot: one operator and its input. */
struct alignas(16) TileSlot
{
	u32 operand;      /* operand code of the input */
	u32 filter;       /* operand code of a computed filter, or OPERAND_NONE */
	u32 words_offset; /* where the slot's words are in shared memory, in bytes */
	u32 flags;        /* HistTile, and SLOT_* */
};

#define SLOT_AGAIN 0x100     /* the input is that of the slot before */
#define SLOT_NO_VALUES 0x200 /* a count of rows or of a column: reads no values */
#define SLOT_VALIDITY 0x400  /* such a count that leaves out the column's NULLs */
#define SLOT_FILTER 0x800    /* the filter is a column of bytes, HistSlot.filter */
#define SLOT_F32 0x1000      /* the input is float4 */

/*
 * The program, keys and slots of a block.  Read-only after make_tile_table(), so threads read it
 * without synchronization.
 */
struct alignas(16) TileTable
{
	/* x: VectorOp | GPUAGG_CONDITION | data << 16; y, z, w: codes of the operands a, b, c, but w is
	   the number of constants for VECTOR_IN; or a STEP_WITHIN */
	uint4 step[VECTOR_MAX_INSTRUCTIONS];
	VectorConstant constant[VECTOR_MAX_CONSTANTS];
	VectorTable table[GPUAGG_MAX_TABLES];
	const uint8_t *cells[GPUAGG_MAX_TABLES]; /* cells of each table, in device memory */
	StagedColumn staged_column[MOST_STAGED];
	SourceColumn source[SOURCES];
	u32 nstaged;
	u32 stage_bytes; /* bytes of a stage that the staged columns take */
	u32 nsteps;
	u32 nchecks;
	u32 filter;                   /* operand code of the program's filter, or OPERAND_NONE */
	u32 check[GPUAGG_MAX_CHECKS]; /* operand codes of the checks */
	TileKey key[GPUAGG_MAX_KEYS];
	TileSlot slot[GPUAGG_MAX_SLOTS];
	bool nullable[GPUAGG_MAX_CHECKS]; /* the operand of the check may be NULL */
};

/* Returns the bytes of the program area, for a block of `threads`. */
static __host__ __device__ __forceinline__ size_t
program_bytes(const HistArgs &args, int threads)
{
	return sizeof(TileTable) +
		(size_t) args.temporaries * threads * (TILES_ROWS_PER_THREAD * 8 + 1);
}

/* Returns the offset of the program area in a block's shared memory: a multiple of 16. */
static __host__ __device__ __forceinline__ size_t
program_offset(const HistArgs &args, int threads)
{
	return (words_before_hot(args) * sizeof(u32) +
			(size_t) (threads / 32) * args.hot_entries * sizeof(HotEntry) + 15) &
		~(size_t) 15;
}

/* Returns the offset of the two stages in a block's shared memory: a multiple of 128. */
static __host__ __device__ __forceinline__ size_t
stages_offset(const HistArgs &args, int threads)
{
	return (program_offset(args, threads) + program_bytes(args, threads) + 127) & ~(size_t) 127;
}

/* Returns the operand code of a kind and its number. */
static __device__ __forceinline__ u32
make_operand(int kind, u32 number)
{
	return (u32) kind | number << OPERAND_BITS;
}

/*
 * Returns a column as a SourceColumn that begins at row `first`, a multiple of 8.  It is not staged
 * yet.
 */
static __device__ __forceinline__ SourceColumn
make_source(const GpuaggColumn &c, u64 first)
{
	const char *values = (const char *) c.values;

	return {values ? values + first * hist_type_bytes(c.type) : nullptr,
			c.validity ? c.validity + first / 8 : nullptr, (u32) c.type, NOT_STAGED};
}

/*
 * Stages a column if a stage has room for `rows` rows of it.  room: bytes of a stage.  A column
 * that is staged already is shared.  Does nothing if there is no column.
 */
static __device__ __forceinline__ void
stage_column(TileTable &t, SourceColumn &s, u32 rows, u32 room)
{
	u32 width = hist_type_bytes((GpuaggValueType) s.type);

	if (s.values == nullptr)
		return;
	for (u32 i = 0; i < t.nstaged; i++)
		if (t.staged_column[i].values == s.values && t.staged_column[i].width == width)
		{
			s.stage_offset = t.staged_column[i].offset;
			return;
		}
	if (t.nstaged == MOST_STAGED || t.stage_bytes + rows * width > room)
		return;
	s.stage_offset = t.stage_bytes;
	t.staged_column[t.nstaged++] = {s.values, width, t.stage_bytes};
	t.stage_bytes += rows * width;
}

/* Returns the bit of the program input that the operand is; 0 if it is something else. */
static __device__ __forceinline__ u32
input_bit(u32 operand)
{
	return operand - GPUAGG_INPUT < GPUAGG_MAX_INPUTS ? 1u << (operand - GPUAGG_INPUT) : 0;
}

/*
 * Stages the columns that the program, the keys and the slots read, in the order in which a tile
 * reads them, while a stage has room.  Called by all lanes of one warp.  rows: of a tile; room:
 * bytes of a stage.
 */
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
	t.nstaged = 0;
	t.stage_bytes = 0;
	for (int i = 0; i < GPUAGG_MAX_INPUTS; i++)
		if (inputs >> i & 1)
			stage_column(t, t.source[INPUT_SOURCES + i], rows, room);
	for (int c = 0; c < args.bins.ncolumns; c++)
		stage_column(t, t.source[BIN_SOURCES + c], rows, room);
	for (int i = 0; i < args.nslots; i++)
		stage_column(t, t.source[SLOT_SOURCES + i], rows, room);
}

/* Returns the operand code of column i of t.source; OPERAND_NONE if there is no column. */
static __device__ __forceinline__ u32
encode_source(const TileTable &t, int i)
{
	const SourceColumn &s = t.source[i];

	if (s.values == nullptr)
		return OPERAND_NONE;
	if (s.stage_offset != NOT_STAGED && s.validity == nullptr && s.type == GPUAGG_VALUE_I32)
		return make_operand(OPERAND_INT4, s.stage_offset);
	if (s.stage_offset != NOT_STAGED && s.validity == nullptr &&
		(s.type == GPUAGG_VALUE_I64 || s.type == GPUAGG_VALUE_F64))
		return make_operand(OPERAND_INT8, s.stage_offset);
	return make_operand(OPERAND_COLUMN, i);
}

/* Returns the operand code of a program's operand. */
static __device__ __forceinline__ u32
encode_operand(const TileTable &t, u32 operand)
{
	if (operand == VECTOR_NONE)
		return OPERAND_NONE;
	if (operand == GPUAGG_LAST)
		return OPERAND_LAST;
	if (operand >= VECTOR_CONSTANT)
		return make_operand(OPERAND_CONSTANT, operand - VECTOR_CONSTANT);
	return operand >= GPUAGG_INPUT ?
		encode_source(t, INPUT_SOURCES + (int) (operand - GPUAGG_INPUT)) :
		make_operand(OPERAND_TEMPORARY, operand);
}

/* Returns the operand code of a key or a slot's input. source: its number in t.source. */
static __device__ __forceinline__ u32
encode_column(const TileTable &t, const GpuaggColumn &c, int source)
{
	return c.computed ? encode_operand(t, c.operand) : encode_source(t, source);
}

/* Returns whether anything reads the result of instruction k as GPUAGG_LAST. */
static __device__ __forceinline__ bool
is_last_read(const HistArgs &args, const GpuaggProgram &p, u32 k)
{
	if (k + 1 < p.steps.ninstructions)
	{
		const VectorInstruction &next = p.steps.instructions[k + 1];

		return next.a == GPUAGG_LAST || next.b == GPUAGG_LAST || next.c == GPUAGG_LAST;
	}
	for (int i = 0; i < p.nchecks; i++)
		if (p.check[i].operand == GPUAGG_LAST)
			return true;
	for (int c = 0; c < args.bins.ncolumns; c++)
		if (args.bins.column[c].computed && args.bins.column[c].operand == GPUAGG_LAST)
			return true;
	for (int s = 0; s < args.nslots; s++)
		if ((args.slot[s].x.computed && args.slot[s].x.operand == GPUAGG_LAST) ||
			args.slot[s].filter_operand == GPUAGG_LAST)
			return true;
	return p.steps.filter == GPUAGG_LAST;
}

/*
 * Makes a STEP_WITHIN of a condition.  in: simplified, without GPUAGG_CONDITION.  Returns false if
 * there is no such step.
 */
static __device__ __forceinline__ bool
make_range(const TileTable &t, const VectorInstruction &in, uint4 &step)
{
	u32 a = encode_operand(t, in.a);
	int64_t c, least = INT32_MIN, greatest = INT32_MAX;

	if (in.op != VECTOR_DEC_COMPARE || in.r != VECTOR_NONE ||
		(a & ((1u << OPERAND_BITS) - 1)) != OPERAND_INT4 || in.b < VECTOR_CONSTANT ||
		in.b == VECTOR_NONE || t.constant[in.b - VECTOR_CONSTANT].state != VECTOR_VALUE)
		return false;
	c = t.constant[in.b - VECTOR_CONSTANT].bits;
	if (c <= INT32_MIN || c >= INT32_MAX)
		return false;
	switch (in.data)
	{
		case 1:
			greatest = c - 1;
			break;
		case 3:
			greatest = c;
			break;
		case 4:
			least = c + 1;
			break;
		case 6:
			least = c;
			break;
		case 2:
		case 5:
			least = greatest = c;
			break;
		default:
			return false;
	}
	step = make_uint4(STEP_WITHIN | (in.data == 5) << 16, a >> OPERAND_BITS, (u32) least,
					  (u32) (greatest - least));
	return true;
}

/* Returns the record of instruction k for TileTable.step. */
static __device__ __forceinline__ uint4
make_step(const TileTable &t, const HistArgs &args, const GpuaggProgram &p, u32 k)
{
	VectorInstruction in = p.steps.instructions[k];
	u32 condition = in.op & GPUAGG_CONDITION, b, c = OPERAND_NONE;
	uint4 range;

	in.op &= ~GPUAGG_CONDITION;
	in = vector_simplify(in);
	if (condition && make_range(t, in, range) && !is_last_read(args, p, k))
		return range;
	b = encode_operand(t, in.b);
	if (vector_has_list(in.op))
	{
		b = make_operand(OPERAND_LIST, in.b - VECTOR_CONSTANT);
		c = in.c;
	}
	else if (in.op == VECTOR_SELECT || in.op == VECTOR_DISTINCT || in.op == VECTOR_GREATEST)
		c = encode_operand(t, in.c);
	return make_uint4(
		in.op | condition | (u32) in.data << 16,
		encode_operand(t, in.a) | (in.r == VECTOR_NONE ? NO_RESULT : in.r) << RESULT_SHIFT, b, c);
}

/* Returns the record of slot s. lc: log2 of the copies of a bin. */
static __device__ __forceinline__ TileSlot
make_tile_slot(const TileTable &t, const HistArgs &args, int s, int lc)
{
	const HistSlot &slot = args.slot[s];
	u32 flags = (u32) slot.tile;

	if (slot.tile == TILE_COUNT && !slot.x.computed)
		flags |= SLOT_NO_VALUES | (slot.x.validity ? SLOT_VALIDITY : 0);
	else if (slot.repeats_x)
		flags |= SLOT_AGAIN;
	if (slot.filter)
		flags |= SLOT_FILTER;
	if (slot.x.type == GPUAGG_VALUE_F32)
		flags |= SLOT_F32;
	return {encode_column(t, slot.x, SLOT_SOURCES + s),
			slot.filter_operand < 0 ? (u32) OPERAND_NONE :
									  encode_operand(t, (u32) slot.filter_operand),
			slot.word * (args.pass_bins << lc) * (u32) sizeof(u32), flags};
}

/*
 * Fills in the table.  Called by all threads of the block; ends with a barrier.  room: bytes of a
 * stage; lc: log2 of the copies of a bin.
 */
static __device__ __noinline__ void
make_tile_table(const HistArgs &args, u32 room, int lc, TileTable &t)
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
	{
		t.table[i] = p.tables[i];
		t.cells[i] = p.cells[i];
	}
	__syncthreads();
	if (i < 32)
		stage_columns(args, p, blockDim.x * TILES_ROWS_PER_THREAD, room, t);
	__syncthreads();
	for (u32 k = i; k < p.steps.ninstructions; k += blockDim.x)
		t.step[k] = make_step(t, args, p, k);
	if (i < (u32) p.nchecks)
	{
		t.check[i] = encode_operand(t, p.check[i].operand);
		t.nullable[i] = p.check[i].nullable;
	}
	if (i < (u32) args.bins.ncolumns)
		t.key[i] = {args.bins.min[i], (u32) args.bins.extent[i],
					encode_column(t, args.bins.column[i], BIN_SOURCES + (int) i) |
						(args.bins.null_bin[i] ? NULL_HAS_BIN : 0)};
	if (i < (u32) args.nslots)
		t.slot[i] = make_tile_slot(t, args, (int) i, lc);
	if (i == 0)
	{
		t.filter = encode_operand(t, p.steps.filter);
		t.nsteps = p.steps.ninstructions;
		t.nchecks = (u32) p.nchecks;
	}
	__syncthreads();
}

#endif /* GPUAGG_HIST_TILES_TABLE_CUH */
