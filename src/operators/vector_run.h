/*
 * vector_run.h
 *	  Runs an instruction of a vector program (vector_program.h) over the rows of a tile.
 *
 * Values and states are those of expr/eval.c, except for decimals beyond 64 bits.  Values of rows
 * that are NULL or undetermined may be anything.  Compile with contraction of floats off.
 */
#ifndef GPUAGG_VECTOR_RUN_H
#define GPUAGG_VECTOR_RUN_H

#include <math.h>

#include "operators/bins.h"
#include "operators/exact_parts.h"
#include "operators/gpu_hash.h"
#include "operators/vector_functions.h"
#include "operators/vector_program.h"

#if defined(__CUDACC__) && defined(VECTOR_INLINE)
#define VECTOR_FUNCTION static __forceinline__ __host__ __device__
#elif defined(__CUDACC__)
#define VECTOR_FUNCTION static inline __host__ __device__
#else
#define VECTOR_FUNCTION static inline
#endif

/* Written before loops over rows. An includer that has a fixed number of rows can define it. */
#ifndef VECTOR_UNROLL
#define VECTOR_UNROLL
#endif

/* ---- values of a register -------------------------------------------------- */

typedef int8_t vector_I8;
typedef int16_t vector_I16;
typedef int32_t vector_I32;
typedef uint32_t vector_U32;
typedef int64_t vector_I64;
typedef float vector_F32;
typedef double vector_F64;

/*
 * vector_get_TYPE() returns the bits of a register as a value of a column type, and
 * vector_bits_TYPE() returns the bits of a value.
 */
#define VECTOR_INTEGER(NAME) \
	GPUAGG_HD vector_##NAME vector_get_##NAME(int64_t bits) \
	{ \
		return (vector_##NAME) bits; \
	} \
	GPUAGG_HD int64_t vector_bits_##NAME(vector_##NAME value) \
	{ \
		return value; \
	}
VECTOR_INTEGER(I8)
VECTOR_INTEGER(I16)
VECTOR_INTEGER(I32)
VECTOR_INTEGER(I64)
#undef VECTOR_INTEGER

GPUAGG_HD vector_U32
vector_get_U32(int64_t bits)
{
	return (uint32_t) bits;
}

GPUAGG_HD int64_t
vector_bits_U32(vector_U32 value)
{
	return (int32_t) value;
}

GPUAGG_HD float
vector_get_F32(int64_t bits)
{
	uint32_t low = (uint32_t) bits;
	float value;

	memcpy(&value, &low, sizeof(value));
	return value;
}

GPUAGG_HD int64_t
vector_bits_F32(float value)
{
	uint32_t low;

	memcpy(&low, &value, sizeof(low));
	return low;
}

GPUAGG_HD double
vector_get_F64(int64_t bits)
{
	double value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

GPUAGG_HD int64_t
vector_bits_F64(double value)
{
	int64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

/* ---- operands -------------------------------------------------------------- */

/* An operand of an instruction: a register for all rows of a tile, or a constant. */
typedef struct VectorOperand
{
	const int64_t *values; /* [row of the tile]; NULL: a constant */
	const uint8_t *states;
	int64_t value;
	uint8_t state;
} VectorOperand;

/*
 * Returns an operand by its number in the instruction.  The values and states of register x begin
 * at x * tile.
 */
GPUAGG_HD VectorOperand
vector_operand(int operand, const VectorConstant *constants, const int64_t *values,
			   const uint8_t *states, int tile)
{
	VectorOperand o = {0, 0, 0, 0};

	if (operand >= VECTOR_CONSTANT)
	{
		o.value = constants[operand - VECTOR_CONSTANT].bits;
		o.state = (uint8_t) constants[operand - VECTOR_CONSTANT].state;
	}
	else
	{
		o.values = values + (size_t) operand * tile;
		o.states = states + (size_t) operand * tile;
	}
	return o;
}

/* Returns the operand's value for a row of the tile. */
GPUAGG_HD int64_t
vector_value(const VectorOperand *o, int row)
{
	return o->values ? o->values[row] : o->value;
}

/* Returns the operand's state for a row of the tile. */
GPUAGG_HD uint8_t
vector_state(const VectorOperand *o, int row)
{
	return o->values ? o->states[row] : o->state;
}

/* ---- operations that are not scalar functions, for one row each ------------------ */

/* A value and its state. */
typedef struct VectorCell
{
	int64_t value;
	uint8_t state;
} VectorCell;

/* Returns a cell with this value and state. */
GPUAGG_HD VectorCell
vector_cell(int64_t value, int state)
{
	VectorCell r;

	r.value = value;
	r.state = (uint8_t) state;
	return r;
}

/* The operands of one row. An operand that the operation does not have is a copy of a. */
typedef struct VectorRow
{
	VectorCell a, b, c;
} VectorRow;

/*
 * Returns `value` as the result of a strict operation on a and b: NULL or undetermined if an
 * operand is; also undetermined if the last argument says so.
 */
GPUAGG_HD VectorCell
vector_strict(VectorRow x, int64_t value, int undetermined)
{
	int state = x.a.state > x.b.state ? x.a.state : x.b.state;

	return vector_cell(value, state == VECTOR_VALUE && undetermined ? VECTOR_UNDETERMINED : state);
}

/*
 * Returns a AND b (stop = 0) or a OR b (stop = 1).  If a is `stop`, b is not evaluated: an error of
 * b does not occur.
 */
GPUAGG_HD VectorCell
vector_junction(VectorRow x, int stop)
{
	int higher = x.a.state > x.b.state ? x.a.state : x.b.state;

	if (x.a.state == VECTOR_VALUE && (x.a.value != 0) == stop)
		return vector_cell(stop, VECTOR_VALUE);
	if (higher == VECTOR_UNDETERMINED)
		return vector_cell(0, VECTOR_UNDETERMINED);
	if (x.b.state == VECTOR_VALUE && (x.b.value != 0) == stop)
		return vector_cell(stop, VECTOR_VALUE);
	return vector_cell(!stop, higher);
}

/* Returns `value` as the result of a test of a that is never NULL. It is undetermined if a is. */
GPUAGG_HD VectorCell
vector_test(VectorRow x, int value)
{
	return vector_cell(value,
					   x.a.state == VECTOR_UNDETERMINED ? VECTOR_UNDETERMINED : VECTOR_VALUE);
}

/* Returns a IS [NOT] TRUE, FALSE or UNKNOWN; op says which. */
GPUAGG_HD VectorCell
vector_boolean_test(VectorRow x, int op)
{
	int unknown = x.a.state == VECTOR_NULL;
	int yes = !unknown && x.a.value != 0;
	int no = !unknown && x.a.value == 0;

	switch (op)
	{
		case VECTOR_IS_TRUE:
			return vector_test(x, yes);
		case VECTOR_IS_NOT_TRUE:
			return vector_test(x, !yes);
		case VECTOR_IS_FALSE:
			return vector_test(x, no);
		case VECTOR_IS_NOT_FALSE:
			return vector_test(x, !no);
		case VECTOR_IS_UNKNOWN:
			return vector_test(x, unknown);
		default:
			return vector_test(x, !unknown);
	}
}

/* Returns a IS DISTINCT FROM b; c: the result of a = b. */
GPUAGG_HD VectorCell
vector_distinct(VectorRow x)
{
	int undetermined = x.a.state == VECTOR_UNDETERMINED || x.b.state == VECTOR_UNDETERMINED;
	int differ = x.a.state != x.b.state;

	if (x.a.state == VECTOR_VALUE && x.b.state == VECTOR_VALUE)
	{
		undetermined = x.c.state == VECTOR_UNDETERMINED;
		differ = x.c.value == 0;
	}
	return vector_cell(differ, undetermined ? VECTOR_UNDETERMINED : VECTOR_VALUE);
}

/* Returns GREATEST or LEAST of a and b; c: true if b replaces a. */
GPUAGG_HD VectorCell
vector_greatest(VectorRow x)
{
	if (x.a.state == VECTOR_UNDETERMINED || x.b.state == VECTOR_UNDETERMINED)
		return vector_cell(0, VECTOR_UNDETERMINED);
	if (x.a.state == VECTOR_NULL)
		return x.b;
	if (x.b.state == VECTOR_NULL)
		return x.a;
	return x.c.state == VECTOR_UNDETERMINED ? vector_cell(0, VECTOR_UNDETERMINED) :
		x.c.value                           ? x.b :
											  x.a;
}

/* Returns the result of VECTOR_SELECT, COALESCE, NULLIF, DISTINCT or GREATEST; op says which. */
GPUAGG_HD VectorCell
vector_choice(VectorRow x, int op)
{
	switch (op)
	{
		case VECTOR_SELECT:
			return x.a.state == VECTOR_UNDETERMINED    ? x.a :
				x.a.state == VECTOR_VALUE && x.a.value ? x.b :
														 x.c;
		case VECTOR_COALESCE:
			return x.a.state == VECTOR_NULL ? x.b : x.a;
		case VECTOR_NULLIF:
			return x.b.state == VECTOR_UNDETERMINED    ? x.b :
				x.b.state == VECTOR_VALUE && x.b.value ? vector_cell(0, VECTOR_NULL) :
														 x.a;
		case VECTOR_DISTINCT:
			return vector_distinct(x);
		default:
			return vector_greatest(x);
	}
}

/* Returns a IN or NOT IN the n constants of the list; data: VECTOR_IN_*. */
GPUAGG_HD VectorCell
vector_in(VectorCell a, const VectorConstant *list, int n, int data)
{
	int negate = (data & VECTOR_IN_NEGATE) != 0;
	int found = 0;

	for (int i = 0; i < n; i++)
		found |= list[i].bits == a.value;
	if (a.state != VECTOR_VALUE)
		return a;
	return vector_cell(found != negate,
					   !found && (data & VECTOR_IN_NULL) ? VECTOR_NULL : VECTOR_VALUE);
}

/* Returns the part of integer a in the number that stands for a key; list: see VECTOR_KEY_PART. */
GPUAGG_HD VectorCell
vector_key_part(VectorCell a, const VectorConstant *list)
{
	int inside = a.value >= list[0].bits && a.value <= list[1].bits;

	return vector_cell(
		(int64_t) (((uint64_t) a.value - (uint64_t) list[2].bits) * (uint64_t) list[3].bits),
		a.state == VECTOR_VALUE && !inside ? VECTOR_NULL : a.state);
}

/* Returns 10^n for n up to 18. */
GPUAGG_HD int64_t
vector_power10(int n)
{
	int64_t r = 1;

	while (n-- > 0)
		r *= 10;
	return r;
}

/*
 * Returns the result of an operation VECTOR_DEC_* on a and b.  It is undetermined if it exceeds 64
 * bits.
 */
GPUAGG_HD VectorCell
vector_decimal(VectorRow x, int op, int data)
{
	int64_t a = x.a.value;
	int64_t b = op == VECTOR_DEC_RESCALE ? vector_power10(data) : x.b.value;
	int64_t r;

	switch (op)
	{
		case VECTOR_DEC_RESCALE:
		case VECTOR_DEC_MUL:
			return vector_strict(x, (int64_t) ((uint64_t) a * (uint64_t) b),
								 vector_mul_overflows(a, b));
		case VECTOR_DEC_ADD:
			r = (int64_t) ((uint64_t) a + (uint64_t) b);
			return vector_strict(x, r, ((a ^ r) & (b ^ r)) < 0);
		case VECTOR_DEC_SUB:
			r = (int64_t) ((uint64_t) a - (uint64_t) b);
			return vector_strict(x, r, ((a ^ b) & (a ^ r)) < 0);
		case VECTOR_DEC_NEGATE:
			return vector_strict(x, a == INT64_MIN ? a : -a, a == INT64_MIN);
		case VECTOR_DEC_ABS:
			return vector_strict(x, a < 0 && a != INT64_MIN ? -a : a, a == INT64_MIN);
		case VECTOR_DEC_SIGN:
			return vector_strict(x, (a > 0) - (a < 0), 0);
		case VECTOR_DEC_MOD:
			return vector_strict(x, b == 0 || b == -1 ? 0 : a % b, b == 0);
		default:
			return vector_strict(x, data >> (a < b ? 0 : a == b ? 1 : 2) & 1, 0);
	}
}

/*
 * Returns whether a quotient is rounded away from zero.  negative: its sign; inexact: there is a
 * remainder; half: the remainder is half of the divisor or more.
 */
GPUAGG_HD int
vector_rounds_away(int mode, int negative, int inexact, int half)
{
	return mode == VECTOR_ROUND_HALF ?
		half :
		inexact && mode == (negative ? VECTOR_ROUND_FLOOR : VECTOR_ROUND_CEIL);
}

/* Returns a / 10^n, rounded to an integer; data: n and the mode, see VECTOR_DEC_ROUND. */
GPUAGG_HD VectorCell
vector_decimal_round(VectorRow x, int data)
{
	int64_t unit = vector_power10(data & VECTOR_ROUND_DIGITS);
	int64_t a = x.a.value;
	int64_t r = a / unit;
	int64_t rest = a - r * unit; /* has the sign of a */
	uint64_t far = rest < 0 ? -(uint64_t) rest : (uint64_t) rest;

	if (vector_rounds_away(data >> VECTOR_ROUND_SHIFT, a < 0, rest != 0,
						   far >= (uint64_t) unit - far))
		r += a < 0 ? -1 : 1;
	return vector_strict(x, r, 0);
}

/*
 * Returns decimal a of this scale as a float8.  The result is correctly rounded if both the integer
 * and the power of ten are exact in a double: then the division rounds only once.  Larger integers
 * are undetermined.
 */
GPUAGG_HD VectorCell
vector_decimal_float8(VectorRow x, int scale)
{
	int64_t a = x.a.value;
	double divisor = (double) vector_power10(scale > 18 ? 18 : scale);

	/* exact up to 10^22 */
	for (int s = 18; s < scale; s++)
		divisor *= 10;
	return vector_strict(x, vector_bits_F64((double) a / divisor),
						 a > (INT64_C(1) << 53) || a < -(INT64_C(1) << 53));
}

/*
 * Returns a field of a, or a truncated to it, as VECTOR_TIME_* in data say. a: the date or
 * timestamp; b: the offset of its zone from UTC.  Undetermined if the time is out of range.
 */
GPUAGG_HD VectorCell
vector_time(VectorRow x, int data)
{
	VectorField field = (VectorField) (data & VECTOR_TIME_FIELD);
	int trunc = (data & VECTOR_TIME_TRUNC) != 0;
	int64_t ts = data & VECTOR_TIME_DATE ? vector_day_time(vector_get_I32(x.a.value)) : x.a.value;
	int64_t local;
	int64_t r;

	if (!vector_local_time(ts, x.b.value, &local))
		return vector_strict(x, 0, 1);
	if (field < VECTOR_DAY)
		r = vector_time_of_day(field, trunc, field == VECTOR_EPOCH ? ts : local);
	else
	{
		r = vector_calendar(field, trunc, (int32_t) VECTOR_FLOORDIV(local, VECTOR_DAY_USECS));
		r = trunc ? r * VECTOR_DAY_USECS : r;
	}
	if (data & VECTOR_TIME_FLOAT)
		return vector_strict(x, vector_bits_F64(vector_date_part(field, r)), 0);
	return vector_strict(x, trunc ? (int64_t) ((uint64_t) r - (uint64_t) x.b.value) : r, 0);
}

/* Returns width_bucket(a, lo, hi, n); constants: lo, hi, n. Undetermined for infinities and NaN. */
GPUAGG_HD VectorCell
vector_bucket_of(VectorRow x, const VectorConstant *constants, int formula)
{
	double v = vector_get_F64(x.a.value);

	x.b.state = VECTOR_VALUE;
	return vector_strict(x,
						 gpuagg_bin_uniform(v, vector_get_F64(constants[0].bits),
											vector_get_F64(constants[1].bits),
											vector_get_I32(constants[2].bits), formula),
						 !(v - v == 0));
}

/* Returns the gpuagg_f64_code() of `value`, operand a as a double. data 1: -0 has the code of 0. */
GPUAGG_HD VectorCell
vector_code(VectorRow x, double value, int data)
{
	/* adding 0.0 changes -0 to 0; adding -0.0 changes nothing */
	return vector_strict(x, gpuagg_f64_code(value + (data ? 0.0 : -0.0)), 0);
}

/*
 * Returns a, whose value as a double is `value`, if |value| < b.  Else, and for -0 if data is 1, it
 * is undetermined.
 */
GPUAGG_HD VectorCell
vector_below(VectorRow x, double value, int data)
{
	return vector_strict(x, x.a.value,
						 !(fabs(value) < vector_get_F64(x.b.value)) ||
							 (data && value == 0 && vector_bits_F64(value) != 0));
}

/* Returns a part of operand a, whose value as a double is `value`; see VECTOR_F64_PART. */
GPUAGG_HD VectorCell
vector_part(VectorRow x, double value, int data)
{
	GpuaggParts parts = gpuagg_exact_parts(value, data >> 1);

	return vector_strict(x, data & 1 ? parts.high : parts.low, !parts.fits);
}

/* Returns the result of the remaining operations on one row. */
GPUAGG_HD VectorCell
vector_other(VectorRow x, int op, int data)
{
	switch (op)
	{
		case VECTOR_AND:
			return vector_junction(x, 0);
		case VECTOR_OR:
			return vector_junction(x, 1);
		case VECTOR_NOT:
			return vector_strict(x, x.a.value == 0, 0);
		case VECTOR_ISNULL:
			return vector_test(x, x.a.state == VECTOR_NULL);
		case VECTOR_ISNOTNULL:
			return vector_test(x, x.a.state != VECTOR_NULL);
		case VECTOR_TRUTH:
			return vector_strict(x, vector_get_I8(x.a.value) != 0, 0);
		case VECTOR_UNSIGNED:
			return vector_strict(x, vector_get_U32(x.a.value), 0);
		case VECTOR_F32_CODE:
			return vector_code(x, vector_get_F32(x.a.value), data);
		case VECTOR_F64_CODE:
			return vector_code(x, vector_get_F64(x.a.value), data);
		case VECTOR_F32_BELOW:
			return vector_below(x, vector_get_F32(x.a.value), data);
		case VECTOR_F64_BELOW:
			return vector_below(x, vector_get_F64(x.a.value), data);
		case VECTOR_F32_PART:
			return vector_part(x, vector_get_F32(x.a.value), data);
		case VECTOR_F64_PART:
			return vector_part(x, vector_get_F64(x.a.value), data);
		case VECTOR_PRESENCE:
			return vector_strict(x, 1, 0);
		case VECTOR_DETERMINED:
			return vector_test(x, 1);
		default:
			return vector_cell(0, VECTOR_UNDETERMINED);
	}
}

/* ---- instructions ---------------------------------------------------------- */

/*
 * Applies an operation for rows first, first + step, ... below n of its operands.  ob is oa if
 * there is only one operand.  list: the constants from operand b on.
 */
VECTOR_FUNCTION void
vector_apply(const VectorInstruction *in, const VectorConstant *list, VectorOperand oa,
			 VectorOperand ob, VectorOperand oc, int64_t *to, uint8_t *to_states, int first,
			 int step, int n)
{
#define VECTOR_ROWS(...) \
	VECTOR_UNROLL for (int i = first; i < n; i += step) \
	{ \
		VectorRow x; \
		VectorCell r; \
\
		x.a = vector_cell(vector_value(&oa, i), vector_state(&oa, i)); \
		x.b = vector_cell(vector_value(&ob, i), vector_state(&ob, i)); \
		x.c = vector_cell(vector_value(&oc, i), vector_state(&oc, i)); \
		r = __VA_ARGS__; \
		to[i] = r.value; \
		to_states[i] = r.state; \
	} \
	break

#define VECTOR_SCALAR(R, condition, formula, ...) \
	VECTOR_UNROLL for (int i = first; i < n; i += step) \
	{ \
		uint8_t sa = vector_state(&oa, i); \
		uint8_t sb = vector_state(&ob, i); \
		__VA_ARGS__ \
		vector_##R r = (vector_##R)(formula); \
\
		sa = sa > sb ? sa : sb; \
		to_states[i] = sa == VECTOR_VALUE && (condition) ? VECTOR_UNDETERMINED : sa; \
		to[i] = vector_bits_##R(r); \
	} \
	break;

	switch (in->op)
	{
		case VECTOR_LOAD:
		case VECTOR_LOOKUP:
		case VECTOR_FIND:
			break;
		case VECTOR_IS_TRUE:
		case VECTOR_IS_NOT_TRUE:
		case VECTOR_IS_FALSE:
		case VECTOR_IS_NOT_FALSE:
		case VECTOR_IS_UNKNOWN:
		case VECTOR_IS_NOT_UNKNOWN:
			VECTOR_ROWS(vector_boolean_test(x, in->op));
		case VECTOR_SELECT:
		case VECTOR_COALESCE:
		case VECTOR_NULLIF:
		case VECTOR_DISTINCT:
		case VECTOR_GREATEST:
			VECTOR_ROWS(vector_choice(x, in->op));
		case VECTOR_IN:
			VECTOR_ROWS(vector_in(x.a, list, in->c, in->data));
		case VECTOR_DEC_RESCALE:
		case VECTOR_DEC_ADD:
		case VECTOR_DEC_SUB:
		case VECTOR_DEC_MUL:
		case VECTOR_DEC_NEGATE:
		case VECTOR_DEC_ABS:
		case VECTOR_DEC_SIGN:
		case VECTOR_DEC_MOD:
		case VECTOR_DEC_COMPARE:
			VECTOR_ROWS(vector_decimal(x, in->op, in->data));
		case VECTOR_DEC_ROUND:
			VECTOR_ROWS(vector_decimal_round(x, in->data));
		case VECTOR_DEC_FLOAT8:
			VECTOR_ROWS(vector_decimal_float8(x, in->data));
		case VECTOR_TIME:
			VECTOR_ROWS(vector_time(x, in->data));
		case VECTOR_BUCKET:
			VECTOR_ROWS(vector_bucket_of(x, list, in->data));
		case VECTOR_KEY_PART:
			VECTOR_ROWS(vector_key_part(x.a, list));
#define OP1(FUNC, R, A, condition, formula) \
	case VECTOR_##FUNC: \
		VECTOR_SCALAR(R, condition, formula, vector_##A a = vector_get_##A(vector_value(&oa, i));)
#define OP2(FUNC, R, A, B, condition, formula) \
	case VECTOR_##FUNC: \
		VECTOR_SCALAR(R, condition, formula, vector_##A a = vector_get_##A(vector_value(&oa, i)); \
					  vector_##B b = vector_get_##B(vector_value(&ob, i));)
#define HOST1(...)
#define HOST2(...)
#include "operators/vector_ops.h"
#undef OP1
#undef OP2
#undef HOST1
#undef HOST2
		default:
			VECTOR_ROWS(vector_other(x, in->op, in->data));
	}
#undef VECTOR_ROWS
#undef VECTOR_SCALAR
}

/*
 * Runs one instruction for rows first, first + step, ... below n of a tile.  The value of register
 * x is values[x * tile + row], and its state states[x * tile + row].
 */
VECTOR_FUNCTION void
vector_run(const VectorInstruction *in, const VectorConstant *constants, int64_t *values,
		   uint8_t *states, int tile, int first, int step, int n)
{
	int operands = vector_operands(in->op);
	VectorOperand oa = vector_operand(in->a, constants, values, states, tile);
	VectorOperand ob =
		vector_operand(operands > 1 ? in->b : in->a, constants, values, states, tile);
	VectorOperand oc =
		vector_operand(operands > 2 ? in->c : in->a, constants, values, states, tile);

	vector_apply(in, constants + (in->b >= VECTOR_CONSTANT ? in->b - VECTOR_CONSTANT : 0), oa, ob,
				 oc, values + (size_t) in->r * tile, states + (size_t) in->r * tile, first, step,
				 n);
}

/* The number of a cell that does not exist. */
#define VECTOR_NO_CELL UINT32_MAX

/*
 * Returns the number of a lookup table's cell for an integer, or for NULL; VECTOR_NO_CELL if the
 * result is undetermined.
 */
GPUAGG_HD uint32_t
vector_table_index(const VectorTable *t, int64_t value, uint8_t state)
{
	uint64_t at = state == VECTOR_NULL ? t->n : (uint64_t) value - (uint64_t) t->base;

	if (state == VECTOR_UNDETERMINED)
		return VECTOR_NO_CELL;
	if (at > t->n || (state == VECTOR_VALUE && at == t->n))
		return t->others ? t->n : VECTOR_NO_CELL;
	return (uint32_t) at;
}

/* Returns the value of a cell of a narrow form. */
GPUAGG_HD VectorCell
vector_narrow_cell(const VectorTable *t, uint32_t x)
{
	return vector_cell((int64_t) ((uint64_t) t->least + (x - UINT64_C(1))),
					   x == 0 ? VECTOR_NULL : VECTOR_VALUE);
}

/* Returns cell `at` of a lookup table. from: its cells. */
GPUAGG_HD VectorCell
vector_table_cell(const VectorTable *t, const uint8_t *from, uint32_t at)
{
	if (at == VECTOR_NO_CELL)
		return vector_cell(0, VECTOR_UNDETERMINED);
	switch (t->form)
	{
		case VECTOR_CELLS_BITS:
			return vector_narrow_cell(t, from[at / 8] >> at % 8 & 1);
		case 1:
			return vector_narrow_cell(t, from[at]);
		case 2:
			return vector_narrow_cell(t, ((const uint16_t *) from)[at]);
		case 4:
			return vector_narrow_cell(t, ((const uint32_t *) from)[at]);
		default:
			return vector_cell(((const int64_t *) from)[at], from[((size_t) t->n + 1) * 8 + at]);
	}
}

/* A slot of a hash table. */
typedef struct VectorSlot
{
	uint64_t key;
	uint64_t entry; /* plus 1; 0: the slot is empty */
} VectorSlot;

/* Returns slot `at` of a hash table. from: its slots. */
GPUAGG_HD VectorSlot
vector_slot(const VectorTable *t, const uint8_t *from, uint32_t at)
{
	const uint64_t *words = (const uint64_t *) from;
	VectorSlot slot;

	if (t->form == VECTOR_SLOTS_NARROW)
	{
		slot.key = (uint32_t) words[at];
		slot.entry = words[at] >> 32;
	}
	else
	{
		slot.key = words[2 * (size_t) at];
		slot.entry = words[2 * (size_t) at + 1];
	}
	return slot;
}

/* Returns an integer as the keys of slots are. */
GPUAGG_HD uint64_t
vector_slot_key(const VectorTable *t, int64_t value)
{
	return t->form == VECTOR_SLOTS_NARROW ? (uint64_t) value - (uint64_t) t->base :
											(uint64_t) value;
}

/* Returns the first slot of a key. */
GPUAGG_HD uint32_t
vector_first_slot(const VectorTable *t, uint64_t key)
{
	uint64_t hash = gpuagg_mix64(key ^ (uint64_t) t->least);

	return (uint32_t) ((hash >> 32) * ((uint64_t) t->n + 1) >> 32);
}

/* Returns the slot after a slot. */
GPUAGG_HD uint32_t
vector_next_slot(const VectorTable *t, uint32_t at)
{
	return at == t->n ? 0 : at + 1;
}

/* Returns the entry of a key; slot: slot `at`, the key's first one. */
GPUAGG_HD VectorCell
vector_find_entry(const VectorTable *t, const uint8_t *from, uint64_t key, uint32_t at,
				  VectorSlot slot)
{
	for (int probes = 1; slot.entry != 0 && slot.key != key; probes++)
	{
		if (probes == VECTOR_MOST_PROBES)
			return vector_cell(0, VECTOR_NULL);
		at = vector_next_slot(t, at);
		slot = vector_slot(t, from, at);
	}
	return vector_cell((int64_t) (slot.entry - 1), slot.entry == 0 ? VECTOR_NULL : VECTOR_VALUE);
}

/* Returns the result of VECTOR_FIND. from: the table's slots. */
GPUAGG_HD VectorCell
vector_find(const VectorTable *t, const uint8_t *from, VectorCell a)
{
	uint64_t key = vector_slot_key(t, a.value);
	uint32_t at = vector_first_slot(t, key);

	return a.state == VECTOR_VALUE ? vector_find_entry(t, from, key, at, vector_slot(t, from, at)) :
									 a;
}

/* Runs an instruction that reads a table, as vector_run() runs the others. cells: [table] */
VECTOR_FUNCTION void
vector_lookup(const VectorInstruction *in, const VectorTable *tables, const uint8_t *const *cells,
			  const VectorConstant *constants, int64_t *values, uint8_t *states, int tile,
			  int first, int step, int n)
{
	VectorOperand oa = vector_operand(in->a, constants, values, states, tile);
	const VectorTable *t = &tables[in->data];
	int64_t *to = values + (size_t) in->r * tile;
	uint8_t *to_states = states + (size_t) in->r * tile;

	for (int i = first; i < n; i += step)
	{
		VectorCell a = vector_cell(vector_value(&oa, i), vector_state(&oa, i));
		VectorCell cell = in->op == VECTOR_FIND ?
			vector_find(t, cells[in->data], a) :
			vector_table_cell(t, cells[in->data], vector_table_index(t, a.value, a.state));

		to[i] = cell.value;
		to_states[i] = cell.state;
	}
}

#endif /* GPUAGG_VECTOR_RUN_H */
