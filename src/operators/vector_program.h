/*
 * vector_program.h
 *	  Programs of vector operations, which the GPU and the CPU run in the same way.
 *
 * A program computes registers for each row of a tile.  First, loads copy stored columns to
 * registers; then operations compute registers from registers and constants.  A register has a
 * value of 64 bits and a state (VectorState) for each row.
 *
 * The operations are those of expr/eval.c, with the same values and states: the scalar ones are the
 * rows of vector_ops.h, and logic is three-valued.  One thing differs: decimals are integers of 64
 * bits here.  Larger ones are VECTOR_UNDETERMINED.
 *
 * In a register, integers are sign-extended, also unsigned ones of 32 bits.  A float4's 32 bits are
 * zero-extended.
 *
 * vector_run.h runs instructions.  Plain C for gcc and nvcc.
 */
#ifndef GPUAGG_VECTOR_PROGRAM_H
#define GPUAGG_VECTOR_PROGRAM_H

#include <stdint.h>

#ifdef __CUDACC__
#define VECTOR_SHARED static inline __host__ __device__
#else
#define VECTOR_SHARED static inline
#endif

#define VECTOR_MAX_INSTRUCTIONS 128
#define VECTOR_MAX_REGISTERS 24
#define VECTOR_MAX_CONSTANTS 64

/* The state of a value. */
typedef enum VectorState
{
	VECTOR_VALUE = 0,
	VECTOR_NULL = 1,
	VECTOR_UNDETERMINED = 2 /* only core has the result: an error, or a rare case */
} VectorState;

/*
 * r, a, b and c are members of the instruction.  A strict operation is NULL or VECTOR_UNDETERMINED
 * if an argument is; VECTOR_UNDETERMINED wins.  See vector_run.h for the states of other
 * operations.
 */
typedef enum VectorOp
{
	VECTOR_LOAD,   /* loads stored column a into r; data: its WireType. Not run by vector_run() */
	VECTOR_LOOKUP, /* the cell of table `data` for integer a, or for NULL; run by vector_lookup() */
	VECTOR_FIND,   /* strict: the entry of integer a in table `data`, which has slots, or NULL; run
					  by vector_lookup() */

	/* logic, as core evaluates it; booleans are 0 or 1 */
	VECTOR_AND, /* a AND b */
	VECTOR_OR,
	VECTOR_NOT, /* strict */
	VECTOR_ISNULL,
	VECTOR_ISNOTNULL,
	VECTOR_IS_TRUE, /* the six tests are in the order of core's BoolTestType */
	VECTOR_IS_NOT_TRUE,
	VECTOR_IS_FALSE,
	VECTOR_IS_NOT_FALSE,
	VECTOR_IS_UNKNOWN,
	VECTOR_IS_NOT_UNKNOWN,

	/* choices, of values of any type */
	VECTOR_SELECT,   /* CASE WHEN a THEN b ELSE c */
	VECTOR_COALESCE, /* COALESCE(a, b) */
	VECTOR_NULLIF,   /* a, but NULL if b is true; b: whether a equals the other argument */
	VECTOR_DISTINCT, /* a IS DISTINCT FROM b; c: whether they are equal */
	VECTOR_GREATEST, /* GREATEST or LEAST of a and b; c: whether b replaces a */
	VECTOR_IN,       /* tests integer a for membership in constants b .. b + c - 1, ascending; data:
						VECTOR_IN_* */

	/* decimals; strict */
	VECTOR_DEC_RESCALE, /* a * 10^data; data is at most VECTOR_MOST_POWER */
	VECTOR_DEC_ADD,
	VECTOR_DEC_SUB,
	VECTOR_DEC_MUL,
	VECTOR_DEC_NEGATE,
	VECTOR_DEC_ABS,
	VECTOR_DEC_SIGN,    /* -1, 0 or 1 */
	VECTOR_DEC_MOD,     /* a % b, with the sign of a; undetermined if b is 0 */
	VECTOR_DEC_ROUND,   /* a / 10^n as an integer; data: n, at most VECTOR_MOST_POWER, and
						   VectorRounding << VECTOR_ROUND_SHIFT */
	VECTOR_DEC_COMPARE, /* data: result for "<" (bit 0), "=" (bit 1), ">" (bit 2) */
	VECTOR_DEC_FLOAT8,  /* a, of scale `data` (at most 22), as a float8 */

	/* others; strict */
	VECTOR_TIME,     /* a field of a: a date, or a timestamp in a zone whose local time is b
						microseconds ahead of UTC; data: VECTOR_TIME_* */
	VECTOR_BUCKET,   /* width_bucket(a, constants b, b + 1, b + 2: float8, float8, int4); data: a
						GpuaggBinFormula */
	VECTOR_KEY_PART, /* (a - constant b + 2) * constant b + 3; NULL if integer a is not between
						constants b and b + 1 */
	VECTOR_TRUTH,    /* a "char" as a boolean */
	VECTOR_UNSIGNED, /* an unsigned integer of 32 bits as one of 64 bits */
	VECTOR_F32_CODE, /* gpuagg_f64_code() of a float4; data 1: -0 has the code of 0 */
	VECTOR_F64_CODE,
	VECTOR_F32_BELOW, /* a, if |a| < b (float8), and a is not -0 or data is 0; else undetermined */
	VECTOR_F64_BELOW,
	VECTOR_F32_PART, /* a part of a float4 (exact_parts.h); data: twice the unit, and 1 for the high
						part. Undetermined if the value does not fit */
	VECTOR_F64_PART,

	/* states as values */
	VECTOR_PRESENCE,   /* strict: 1 */
	VECTOR_DETERMINED, /* true; undetermined if a is */

#define OP1(FUNC, ...) VECTOR_##FUNC,
#define OP2(FUNC, ...) VECTOR_##FUNC,
#define HOST1(...)
#define HOST2(...)
#include "operators/vector_ops.h"
#undef OP1
#undef OP2
#undef HOST1
#undef HOST2
	VECTOR_OPS
} VectorOp;

/* The largest power of ten in signed 64 bits. */
#define VECTOR_MOST_POWER 18

/* Modes of VECTOR_DEC_ROUND. */
typedef enum VectorRounding
{
	VECTOR_ROUND_HALF, /* to the nearest integer, halves away from zero */
	VECTOR_ROUND_TRUNC,
	VECTOR_ROUND_FLOOR,
	VECTOR_ROUND_CEIL
} VectorRounding;

#define VECTOR_ROUND_SHIFT 5
#define VECTOR_ROUND_DIGITS 0x1f

#define VECTOR_IN_NEGATE 1 /* NOT IN */
#define VECTOR_IN_NULL 2   /* the list also has a NULL */

#define VECTOR_TIME_FIELD 0x0f /* VectorField */
#define VECTOR_TIME_TRUNC \
	0x10 /* date_trunc: the result is a time; else an integer, times 10^6 for fractions */
#define VECTOR_TIME_DATE 0x20  /* a is a date */
#define VECTOR_TIME_FLOAT 0x40 /* date_part: the result is a float8 */

/* Operands from here on are constants: the number is operand - VECTOR_CONSTANT. */
#define VECTOR_CONSTANT 0x8000
#define VECTOR_NONE 0xffff

/* One instruction: r = op(a, b, c). */
typedef struct VectorInstruction
{
	uint16_t op;
	uint16_t r; /* result register */
	uint16_t a, /* operands */
		b, c;
	uint16_t data; /* depends on the operation */
} VectorInstruction;

typedef struct VectorConstant
{
	int64_t bits; /* in the form of a register */
	uint32_t state;
	uint32_t pad;
} VectorConstant;

/* The forms of a table's cells.  Each other form is the bytes of a cell: 1, 2 or 4. */
#define VECTOR_CELLS_BITS 0 /* a bit: 1 is the value `least`, and 0 is NULL */
#define VECTOR_CELLS_WIDE 8 /* 8 bytes; behind all of them, the VectorState of each, a byte */
/* Slots of a hash table, of 8 and of 16 bytes; see VECTOR_FIND. */
#define VECTOR_SLOTS_NARROW 9
#define VECTOR_SLOTS_WIDE 16

/* The most slots of a hash table that are read for one key. */
#define VECTOR_MOST_PROBES 512

/*
 * A lookup table.  Cells 0 .. n - 1 are for integers base .. base + n - 1.  Cell n is for NULL.  A
 * cell of 1, 2 or 4 bytes is an unsigned number: 0 is NULL, and x is the value least + (x - 1).
 *
 * A hash table has n + 1 slots, and `least` is the seed of its hashes.  A slot has a key and its
 * entry plus 1; 0: it is empty.  A narrow slot has 32 bits for each, and the key less `base`; a
 * wide one has 64.  The next slots of a key follow, after the last one the first.
 */
typedef struct VectorTable
{
	int64_t base;
	int64_t least;
	uint32_t first; /* of cells that several tables share: offset of cell 0, in units of 8 bytes */
	uint32_t n;
	uint16_t form;
	uint16_t others; /* cell n is also for integers outside; else they are undetermined */
	uint32_t pad;
} VectorTable;

/* Returns the bytes of a table's cells, as a multiple of 8. */
VECTOR_SHARED uint64_t
vector_table_bytes(const VectorTable *t)
{
	uint64_t n = (uint64_t) t->n + 1;
	uint64_t bytes = t->form == VECTOR_CELLS_BITS ? (n + 7) / 8 :
		t->form == VECTOR_CELLS_WIDE              ? n * 9 :
		t->form == VECTOR_SLOTS_NARROW            ? n * 8 :
													n * t->form;

	return (bytes + 7) / 8 * 8;
}

/* Returns whether a table of this form has slots of a hash table, not cells. */
VECTOR_SHARED int
vector_has_slots(int form)
{
	return form == VECTOR_SLOTS_NARROW || form == VECTOR_SLOTS_WIDE;
}

/* Returns whether an operation reads a table. */
VECTOR_SHARED int
vector_reads_table(int op)
{
	return op == VECTOR_LOOKUP || op == VECTOR_FIND;
}

/* Returns whether operand b of an operation is a list of constants. */
VECTOR_SHARED int
vector_has_list(int op)
{
	return op == VECTOR_IN || op == VECTOR_BUCKET || op == VECTOR_KEY_PART;
}

/* A program: instructions in their order, and the constants that they read. */
typedef struct VectorProgram
{
	uint32_t ninstructions;
	uint32_t nregisters;
	uint32_t nconstants;
	uint16_t
		filter; /* a boolean operand: rows for which it is not true are left out; or VECTOR_NONE */
	uint16_t pad;
	VectorInstruction instructions[VECTOR_MAX_INSTRUCTIONS];
	VectorConstant constants[VECTOR_MAX_CONSTANTS];
} VectorProgram;

/* Returns how many of a, b and c are operands (registers or constants) of an operation. */
VECTOR_SHARED int
vector_operands(int op)
{
	switch (op)
	{
		case VECTOR_SELECT:
		case VECTOR_DISTINCT:
		case VECTOR_GREATEST:
			return 3;
		case VECTOR_AND:
		case VECTOR_OR:
		case VECTOR_COALESCE:
		case VECTOR_NULLIF:
		case VECTOR_IN: /* c is a number, not an operand */
		case VECTOR_DEC_ADD:
		case VECTOR_DEC_SUB:
		case VECTOR_DEC_MUL:
		case VECTOR_DEC_MOD:
		case VECTOR_DEC_COMPARE:
		case VECTOR_TIME:
		case VECTOR_BUCKET:
		case VECTOR_KEY_PART:
		case VECTOR_F32_BELOW:
		case VECTOR_F64_BELOW:
#define OP1(...)
#define OP2(FUNC, ...) case VECTOR_##FUNC:
#define HOST1(...)
#define HOST2(...)
#include "operators/vector_ops.h"
#undef OP1
#undef OP2
#undef HOST1
#undef HOST2
			return 2;
		default:
			return 1;
	}
}

/*
 * Replaces operations by equivalent ones, to have fewer.  Comparisons of signed integers of any
 * width become VECTOR_DEC_COMPARE, because registers hold them extended to 64 bits.
 */
VECTOR_SHARED VectorInstruction
vector_simplify(VectorInstruction in)
{
	int data = 0;

	switch (in.op)
	{
#define VECTOR_EQUALITY(P) \
	case VECTOR_##P##EQ: \
		data = 2; \
		break; \
	case VECTOR_##P##NE: \
		data = 5; \
		break;
#define VECTOR_COMPARISON(P) \
	VECTOR_EQUALITY(P) \
	case VECTOR_##P##LT: \
		data = 1; \
		break; \
	case VECTOR_##P##LE: \
		data = 3; \
		break; \
	case VECTOR_##P##GT: \
		data = 4; \
		break; \
	case VECTOR_##P##GE: \
		data = 6; \
		break;
		VECTOR_COMPARISON(F_INT2)
		VECTOR_COMPARISON(F_INT4)
		VECTOR_COMPARISON(F_INT8)
		VECTOR_COMPARISON(F_INT24)
		VECTOR_COMPARISON(F_INT42)
		VECTOR_COMPARISON(F_INT28)
		VECTOR_COMPARISON(F_INT82)
		VECTOR_COMPARISON(F_INT48)
		VECTOR_COMPARISON(F_INT84)
		VECTOR_COMPARISON(F_BOOL)
		VECTOR_COMPARISON(F_DATE_)
		VECTOR_COMPARISON(F_TIME_)
		VECTOR_COMPARISON(F_TIMESTAMP_)
		VECTOR_COMPARISON(F_TIMESTAMPTZ_)
		VECTOR_COMPARISON(F_CASH_)
		VECTOR_EQUALITY(F_CHAR)
		VECTOR_EQUALITY(F_OID)
		VECTOR_EQUALITY(F_ENUM_)
#undef VECTOR_EQUALITY
#undef VECTOR_COMPARISON
		default:
			return in;
	}
	in.op = VECTOR_DEC_COMPARE;
	in.data = (uint16_t) data;
	return in;
}

/*
 * Returns whether the operand is a constant that exists, or a register that an earlier instruction
 * has set (bit in `set`).
 */
static inline int
vector_operand_valid(const VectorProgram *p, uint64_t set, int operand)
{
	return operand >= VECTOR_CONSTANT ? operand - VECTOR_CONSTANT < (int) p->nconstants :
										operand < VECTOR_MAX_REGISTERS && (set >> operand & 1);
}

/*
 * Returns whether running the instruction reads only stored columns, registers and constants that
 * exist. set: bit r says whether register r has a value; ntypes: number of wire types.
 */
static inline int
vector_instruction_valid(const VectorProgram *p, uint64_t set, const VectorInstruction *in,
						 int nstored, int ntypes)
{
	int n = vector_operands(in->op);

	if (in->op >= VECTOR_OPS || in->r >= p->nregisters)
		return 0;
	if (in->op == VECTOR_LOAD)
		return in->a < nstored && in->data < ntypes;
	if (!vector_operand_valid(p, set, in->a) || (n > 1 && !vector_operand_valid(p, set, in->b)) ||
		(n > 2 && !vector_operand_valid(p, set, in->c)))
		return 0;
	switch (in->op)
	{
		case VECTOR_IN:
			return in->b >= VECTOR_CONSTANT && in->c <= p->nconstants - (in->b - VECTOR_CONSTANT);
		case VECTOR_BUCKET:
			return in->b >= VECTOR_CONSTANT && 3 <= p->nconstants - (in->b - VECTOR_CONSTANT);
		case VECTOR_KEY_PART:
			return in->b >= VECTOR_CONSTANT && 4 <= p->nconstants - (in->b - VECTOR_CONSTANT);
		case VECTOR_DEC_RESCALE:
			return in->data <= VECTOR_MOST_POWER;
		case VECTOR_DEC_ROUND:
			return (in->data & VECTOR_ROUND_DIGITS) <= VECTOR_MOST_POWER &&
				in->data >> VECTOR_ROUND_SHIFT <= VECTOR_ROUND_CEIL;
		case VECTOR_DEC_FLOAT8:
			return in->data <= 22;
		default:
			return 1;
	}
}

/*
 * Returns whether the program can be run over nstored columns of types below ntypes.  *set: bit r
 * is set if register r has a value afterwards.
 */
static inline int
vector_program_valid(const VectorProgram *p, int nstored, int ntypes, uint64_t *set)
{
	*set = 0;
	if (p->ninstructions > VECTOR_MAX_INSTRUCTIONS || p->nregisters > VECTOR_MAX_REGISTERS ||
		p->nconstants > VECTOR_MAX_CONSTANTS)
		return 0;
	for (uint32_t i = 0; i < p->nconstants; i++)
		if (p->constants[i].state > VECTOR_UNDETERMINED)
			return 0;
	for (uint32_t i = 0; i < p->ninstructions; i++)
	{
		if (!vector_instruction_valid(p, *set, &p->instructions[i], nstored, ntypes))
			return 0;
		*set |= UINT64_C(1) << p->instructions[i].r;
	}
	return p->filter == VECTOR_NONE || vector_operand_valid(p, *set, p->filter);
}

#endif /* GPUAGG_VECTOR_PROGRAM_H */
