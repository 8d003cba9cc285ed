/*
 * quotient.c
 *	  Quotients of numerics whose scales are known beforehand.
 *
 * The display scale of a quotient depends on both values: core wants at least 16 significant digits
 * (select_div_scale).  So results are numerics, not decimals of one scale; they are in an array of the operation
 * (by-reference values of a page), in the stored form that decode_numeric.h reads.  Divisions by zero, and quotients
 * of which a step leaves 128 bits, take the scalar fallback.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/fmgroids.h"

#include "columns/decimal.h"
#include "expr/internal.h"

/* Core's NUMERIC_MIN_SIG_DIGITS and digits of the base 10000. */
#define LEAST_DIGITS 16
#define BASE 10000
#define BASE_DIGITS 4
#define MOST_POWER 38
#define MOST_SCALE 30
/* Digits of base 10000 of a quotient below 2^112, with up to three zeros appended. */
#define MOST_DIGITS 12

typedef struct Magnitude
{
	int			weight;			/* of the first digit of base 10000, which is not 0; 0 of zero */
	int			first;			/* that digit */
} Magnitude;

/* Of value times 10^-scale; `shift` is 10^n that makes the scale a multiple of 4.  False: beyond 128 bits. */
static inline bool
get_magnitude(gpuagg_u128 value, int scale, gpuagg_u128 shift, Magnitude *m)
{
	gpuagg_u128 wide;
	uint64		v;
	int			groups = (scale + BASE_DIGITS - 1) / BASE_DIGITS;
	int			ndigits = 1;

	*m = (Magnitude) {0, 0};
	if (value == 0)
		return true;
	if (__builtin_mul_overflow(value, shift, &wide))
		return false;
	while (wide >> 64 != 0)
	{
		wide /= BASE;
		ndigits++;
	}
	for (v = (uint64) wide; v >= BASE; v /= BASE)
		ndigits++;
	m->weight = ndigits - 1 - groups;
	m->first = (int) v;
	return true;
}

/* A numeric of a small scale and weight. */
typedef struct Quotient
{
	int32		header;			/* of the varlena */
	uint16		form;			/* sign, display scale and weight */
	uint16		digit[MOST_DIGITS];
} Quotient;

typedef struct QuotientOp
{
	gpuagg_u128 shift[2];		/* see get_magnitude */
	gpuagg_u128 power[MOST_POWER + 1];	/* of ten */
	Quotient	results[EXPR_ROWS];
} QuotientOp;

/* value times 10^-scale, below 2^112, as core stores it */
static inline Datum
make_numeric(const QuotientOp *data, Quotient *to, gpuagg_u128 value, bool negative, int scale)
{
	const uint64 chunk = UINT64CONST(10000000000000000);	/* four digits */
	int			groups = (scale + BASE_DIGITS - 1) / BASE_DIGITS;
	uint16		digit[MOST_DIGITS];
	int			first = MOST_DIGITS;
	int			last = MOST_DIGITS;
	int			weight = 0;

	value *= data->power[groups * BASE_DIGITS - scale];
	while (value != 0)
	{
		gpuagg_u128 next = value >> 64 == 0 ? (uint64) value / chunk : value / chunk;
		uint64		rest = (uint64) value - (uint64) next * chunk;
		uint32		high = (uint32) (rest / (BASE * BASE));
		uint32		low = (uint32) (rest - (uint64) high * (BASE * BASE));

		first -= 4;
		digit[first] = high / BASE;
		digit[first + 1] = high % BASE;
		digit[first + 2] = low / BASE;
		digit[first + 3] = low % BASE;
		value = next;
	}
	/* no zero digits at either end */
	while (first < last && digit[first] == 0)
		first++;
	weight = MOST_DIGITS - first - 1 - groups;
	while (last > first && digit[last - 1] == 0)
		last--;
	if (first == last)
		weight = negative = 0;
	to->form = 0x8000 | (negative ? 0x2000 : 0) | scale << 7 | (weight & 0x7F);
	memcpy(to->digit, digit + first, (last - first) * sizeof(uint16));
	SET_VARSIZE(to, offsetof(Quotient, digit) + (last - first) * sizeof(uint16));
	return PointerGetDatum(to);
}

/* The size of the quotient of two numbers of these scales in *q, with *scale digits; false: core must tell. */
static inline bool
divide(const QuotientOp *data, gpuagg_i128 a, int sa, gpuagg_i128 b, int sb, gpuagg_u128 *q, int *scale)
{
	gpuagg_u128 ua = a < 0 ? -(gpuagg_u128) a : (gpuagg_u128) a;
	gpuagg_u128 ub = b < 0 ? -(gpuagg_u128) b : (gpuagg_u128) b;
	gpuagg_u128 dividend,
				quotient,
				rest;
	Magnitude	ma,
				mb;
	int			weight;

	if (b == 0 || !get_magnitude(ua, sa, data->shift[0], &ma) || !get_magnitude(ub, sb, data->shift[1], &mb))
		return false;
	weight = ma.weight - mb.weight - (ma.first <= mb.first);
	*scale = Max(Max(LEAST_DIGITS - weight * BASE_DIGITS, 0), Max(sa, sb));
	if (*scale > MOST_SCALE || *scale - sa + sb > MOST_POWER ||
		__builtin_mul_overflow(ua, data->power[*scale - sa + sb], &dividend))
		return false;
	quotient = dividend / ub;
	rest = dividend - quotient * ub;
	/* halves away from zero */
	quotient += rest >= ub - rest;
	*q = quotient;
	return quotient >> 112 == 0;
}

static void
run_quotient(const ExprOp *op, int n)
{
	const gpuagg_i128 *as = op->a->values;
	const gpuagg_i128 *bs = op->b->values;
	QuotientOp *data = op->data;
	uint8		fallback[EXPR_ROWS];
	uint8		any = 0;

	expr_strict(op, n, NULL);
	for (int i = 0; i < n; i++)
	{
		gpuagg_u128 q;
		int			scale;

		fallback[i] = 0;
		if (expr_state(op->r, i) != VEC_VALUE)
			continue;
		if (divide(data, as[i], op->a->scale, bs[i], op->b->scale, &q, &scale))
			((Datum *) op->r->values)[i] = make_numeric(data, &data->results[i], q, (as[i] < 0) != (bs[i] < 0), scale);
		else
			fallback[i] = any = 1;
	}
	if (any)
		expr_strict(op, n, fallback);
}

Vec *
expr_compile_quotient(ExprSet *set, Oid funcid, Expr *expr, List *args, int stage)
{
	QuotientOp *data;
	int16		scale;
	Vec		   *a;
	Vec		   *b;

	/* other numerics are divided by core, row by row */
	if (funcid != F_NUMERIC_DIV || !expr_decimal_shape(linitial(args), &scale) ||
		!expr_decimal_shape(lsecond(args), &scale))
		return NULL;
	a = expr_compile_as(set, linitial(args), COLUMN_DEC, stage);
	b = a ? expr_compile_as(set, lsecond(args), COLUMN_DEC, stage) : NULL;
	if (b == NULL)
		return NULL;
	data = expr_alloc(sizeof(QuotientOp));
	set->bytes += sizeof(QuotientOp);
	for (int n = 0; n <= MOST_POWER; n++)
		data->power[n] = decimal_power10(n);
	data->shift[0] = decimal_power10((BASE_DIGITS - a->scale % BASE_DIGITS) % BASE_DIGITS);
	data->shift[1] = decimal_power10((BASE_DIGITS - b->scale % BASE_DIGITS) % BASE_DIGITS);
	return expr_emit(set, stage, run_quotient, expr_new_vec(set, COLUMN_DATUM, 0, NUMERICOID, expr, stage), a, b, NULL,
					 data);
}
