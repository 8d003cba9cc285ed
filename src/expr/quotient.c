/*
 * quotient.c
 *	  Quotients of numerics whose scales are known in advance.
 *
 * The display scale of a quotient depends on both values: core computes at least 16 significant
 * digits (select_div_scale).  Results are decimals of EXPR_QUOTIENT_SCALE or more, and their
 * display scales are a vector.  The following take the scalar fallback: division by zero, quotients
 * that display more digits, and steps that overflow 128 bits.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "port/pg_bitutils.h"
#include "utils/fmgroids.h"

#include "columns/decimal.h"
#include "expr/expr_internal.h"

/* Decimal digits in a digit of base 10000. */
#define BASE_DIGITS 4
#define MOST_POWER 38

/* The most significant digit of base 10000 of a number. */
typedef struct FirstDigit
{
	int weight; /* its power of 10000; 0 if the value is zero */
	int digit;  /* the first digit of base 10000 that is not 0; 0 if the value is zero */
} FirstDigit;

/*
 * Finds the first digit of value * 10^-scale.  Multiplying by `shift`, a power of ten, makes the
 * scale a multiple of 4, namely `groups` * 4.  Returns false if that overflows 128 bits.
 */
static inline bool
find_first_digit(gpuagg_u128 value, int groups, uint64 shift, FirstDigit *first)
{
	gpuagg_u128 wide;

	*first = (FirstDigit){0, 0};
	if (value == 0)
		return true;
	if (value >> 64 == 0)
		wide = value * shift;
	else if (__builtin_mul_overflow(value, (gpuagg_u128) shift, &wide))
		return false;
	first->digit = decimal_first_digit(wide, groups, &first->weight);
	return true;
}

/* Data of run_quotient(). */
typedef struct QuotientOp
{
	int scale;     /* scale of results */
	Vec *scales;   /* display scales of results */
	int groups[2]; /* [argument] see find_first_digit */
	uint64 shift[2];
	gpuagg_u128 power[MOST_POWER + 1]; /* [n] 10^n */
} QuotientOp;

/*
 * Sets q = a * 10^digits / b for b < 2^60.  Halves are rounded away from zero.  False: overflows
 * 127 bits.
 */
static inline bool
divide_small(const QuotientOp *data, uint64 a, int digits, uint64 b, gpuagg_u128 *q)
{
	/*
	 * Appends as many digits at a time as the product of a remainder and a power of ten fits into
	 * 64 bits; log10(2) is above 1233 / 4096.
	 */
	int most = (63 - pg_leftmost_one_pos64(b)) * 1233 >> 12;
	gpuagg_u128 quotient = a / b;
	uint64 rest = a % b;

	while (digits > 0)
	{
		int n = Min(digits, most);
		uint64 power = (uint64) data->power[n];

		rest *= power;
		if (quotient >> 64 == 0)
			quotient = (gpuagg_u128) (uint64) quotient * power;
		else if (__builtin_mul_overflow(quotient, (gpuagg_u128) power, &quotient) ||
				 quotient >> 127 != 0)
			return false;
		quotient += rest / b;
		rest %= b;
		digits -= n;
	}
	*q = quotient + (rest >= b - rest);
	return true;
}

/*
 * As divide_small(), but for any b and for negative `digits`.  Returns false on overflow of 128
 * bits.
 */
static inline bool
divide_large(const QuotientOp *data, gpuagg_u128 a, int digits, gpuagg_u128 b, gpuagg_u128 *q)
{
	gpuagg_u128 quotient;
	gpuagg_u128 rest;

	if (digits > MOST_POWER || digits < -MOST_POWER ||
		(digits >= 0 ? __builtin_mul_overflow(a, data->power[digits], &a) :
					   __builtin_mul_overflow(b, data->power[-digits], &b)))
		return false;
	quotient = a / b;
	rest = a - quotient * b;
	*q = quotient + (rest >= b - rest);
	return true;
}

/*
 * Sets *r to a / b in scale data->scale, and *scale to its display scale. sa, sb: scales of the
 * integers a and b; da, db: their display scales.  Returns false if the row must take the scalar
 * fallback.
 */
static inline bool
divide_decimals(const QuotientOp *data, gpuagg_i128 a, int sa, int da, gpuagg_i128 b, int sb,
				int db, gpuagg_i128 *r, int32 *scale)
{
	gpuagg_u128 ua = a < 0 ? -(gpuagg_u128) a : (gpuagg_u128) a;
	gpuagg_u128 ub = b < 0 ? -(gpuagg_u128) b : (gpuagg_u128) b;
	gpuagg_u128 quotient;
	FirstDigit first_a, first_b;
	int digits;

	if (b == 0 || !find_first_digit(ua, data->groups[0], data->shift[0], &first_a) ||
		!find_first_digit(ub, data->groups[1], data->shift[1], &first_b))
		return false;
	*scale = decimal_quotient_scale(first_a.digit, first_a.weight, first_b.digit, first_b.weight,
									Max(da, db));
	if (*scale > data->scale)
		return false;
	digits = *scale - sa + sb;
	if (digits >= 0 && ua >> 64 == 0 && ub >> 60 == 0)
	{
		if (!divide_small(data, (uint64) ua, digits, (uint64) ub, &quotient))
			return false;
	}
	else if (!divide_large(data, ua, digits, ub, &quotient))
		return false;
	if (*scale < data->scale &&
		__builtin_mul_overflow(quotient, data->power[data->scale - *scale], &quotient))
		return false;
	*r = (a < 0) != (b < 0) ? -(gpuagg_i128) quotient : (gpuagg_i128) quotient;
	return quotient >> 127 == 0;
}

/* r = a / b for decimals; also sets data->scales to the display scales. */
static void
run_quotient(const ExprOp *op, int n)
{
	const gpuagg_i128 *as = op->a->values;
	const gpuagg_i128 *bs = op->b->values;
	const int32 *as_scales = op->a->scales ? op->a->scales->values : NULL;
	const int32 *bs_scales = op->b->scales ? op->b->scales->values : NULL;
	QuotientOp *data = op->data;
	gpuagg_i128 *r = op->r->values;
	int32 *scales = data->scales->values;
	uint8 fallback[EXPR_ROWS];
	uint8 any = 0;

	expr_strict(op, n, NULL);
	for (int i = 0; i < n; i++)
	{
		fallback[i] = 0;
		if (expr_state(op->r, i) != VEC_VALUE)
			continue;
		if (!divide_decimals(data, as[i], op->a->scale, as_scales ? as_scales[i] : op->a->scale,
							 bs[i], op->b->scale, bs_scales ? bs_scales[i] : op->b->scale, &r[i],
							 &scales[i]))
			fallback[i] = any = 1;
	}
	if (any)
		expr_strict(op, n, fallback);
	data->scales->all_values = op->r->all_values;
	if (!op->r->all_values)
		memcpy(data->scales->state, op->r->state, n);
}

Vec *
expr_compile_quotient(ExprSet *set, Oid funcid, Expr *expr, List *args, int stage)
{
	QuotientOp *data;
	int16 least, scale;
	Vec *a;
	Vec *b;
	Vec *r;

	/* other numerics are divided by core, row by row */
	if (funcid != F_NUMERIC_DIV || !expr_decimal_scales(linitial(args), &least, &scale) ||
		!expr_decimal_scales(lsecond(args), &least, &scale))
		return NULL;
	a = expr_compile_as(set, linitial(args), COLUMN_DEC, stage);
	b = a ? expr_compile_as(set, lsecond(args), COLUMN_DEC, stage) : NULL;
	if (b == NULL)
		return NULL;
	data = expr_alloc(sizeof(QuotientOp));
	data->scale = Max(Max(a->scale, b->scale), EXPR_QUOTIENT_SCALE);
	for (int n = 0; n <= MOST_POWER; n++)
		data->power[n] = decimal_power10(n);
	for (int i = 0; i < 2; i++)
	{
		int s = i == 0 ? a->scale : b->scale;

		data->groups[i] = (s + BASE_DIGITS - 1) / BASE_DIGITS;
		data->shift[i] = (uint64) data->power[data->groups[i] * BASE_DIGITS - s];
	}
	r = expr_new_vec(set, COLUMN_DEC, data->scale, NUMERICOID, expr, stage);
	r->least_scale = Max(a->least_scale, b->least_scale);
	data->scales = expr_new_vec(set, COLUMN_I32, 0, INT4OID, NULL, stage);
	if (r->least_scale < r->scale)
		r->scales = data->scales;
	return expr_emit(set, stage, run_quotient, r, a, b, NULL, data);
}
