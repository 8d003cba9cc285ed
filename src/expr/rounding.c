/*
 * rounding.c
 *	  Vector operations of decimals that core rounds: round, trunc, ceil, floor, remainders and
 *	  signs.
 *
 * A rounded result has one display scale, whatever the scales of its arguments are.  If the number
 * of digits is not a constant, core's function is called row by row.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/fmgroids.h"
#include "utils/numeric.h"

#include "columns/decimal.h"
#include "expr/expr_internal.h"
#include "expr/program.h"
#include "operators/vector_run.h"

typedef gpuagg_i128 i128;
typedef gpuagg_u128 u128;

/* The largest power of ten in signed 128 bits. Half of the next one is larger than any value. */
#define MOST_POWER 38

/* Data of run_round(). */
typedef struct RoundOp
{
	VectorRounding mode;
	int digits;  /* number of digits to be removed from the integer */
	int zeros;   /* number of zeros to be appended then */
	u128 unit;   /* 10^digits; 0: more than twice any value */
	i128 factor; /* 10^zeros */
} RoundOp;

/* Returns a without its last digits, rounded by the mode. */
static inline i128
remove_digits(const RoundOp *d, i128 a)
{
	u128 magnitude = a < 0 ? -(u128) a : (u128) a;
	u128 quotient;
	u128 rest;

	if (d->digits == 0)
		return a;
	if (d->unit == 0)
		return 0;
	if ((magnitude | d->unit) >> 64 == 0)
	{
		quotient = (uint64) magnitude / (uint64) d->unit;
		rest = (uint64) magnitude - (uint64) quotient * (uint64) d->unit;
	}
	else
	{
		quotient = magnitude / d->unit;
		rest = magnitude - quotient * d->unit;
	}
	quotient += vector_rounds_away(d->mode, a < 0, rest != 0, rest >= d->unit - rest);
	return a < 0 ? -(i128) quotient : (i128) quotient;
}

/* r: a rounded as the RoundOp in `data` says. Rows that overflow take the scalar fallback. */
static void
run_round(const ExprOp *op, int n)
{
	const RoundOp *d = op->data;
	const i128 *a = op->a->values;
	i128 *r = op->r->values;
	uint8 fallback[EXPR_ROWS];
	uint8 any = 0;

	for (int i = 0; i < n; i++)
	{
		r[i] = remove_digits(d, a[i]);
		any |= fallback[i] = d->zeros > 0 && __builtin_mul_overflow(r[i], d->factor, &r[i]);
	}
	expr_strict(op, n, any ? fallback : NULL);
}

/*
 * r: remainder of a / b, for decimals of the same scale.  Rows with b = 0 take the scalar fallback.
 */
static void
run_mod(const ExprOp *op, int n)
{
	const i128 *a = op->a->values;
	const i128 *b = op->b->values;
	i128 *r = op->r->values;
	uint8 fallback[EXPR_ROWS];
	uint8 any = 0;

	for (int i = 0; i < n; i++)
	{
		/* core raises the error; -2^127 / -1 is not an error */
		any |= fallback[i] = b[i] == 0;
		if ((int64) a[i] == a[i] && (int64) b[i] == b[i])
			r[i] = b[i] == 0 || b[i] == -1 ? 0 : (int64) a[i] % (int64) b[i];
		else
			r[i] = b[i] == 0 || b[i] == -1 ? 0 : a[i] % b[i];
	}
	expr_strict(op, n, any ? fallback : NULL);
}

/* r = -1, 0 or 1, the sign of a, as decimals of scale 0. */
static void
run_sign(const ExprOp *op, int n)
{
	const i128 *a = op->a->values;
	i128 *r = op->r->values;

	for (int i = 0; i < n; i++)
		r[i] = (a[i] > 0) - (a[i] < 0);
	expr_strict(op, n, NULL);
}

/* Returns whether this file has operations for the function, for some arguments. */
static bool
is_rounding(Oid funcid)
{
	switch (funcid)
	{
		case F_ROUND_NUMERIC_INT4:
		case F_TRUNC_NUMERIC_INT4:
		case F_CEIL_NUMERIC:
		case F_CEILING_NUMERIC:
		case F_FLOOR_NUMERIC:
		case F_NUMERIC_MOD:
		case F_MOD_NUMERIC_NUMERIC:
		case F_SIGN_NUMERIC:
			return true;
		default:
			return false;
	}
}

bool
expr_is_rounding(Oid funcid, List *args)
{
	int16 least, most;
	int32 n = 0;

	return is_rounding(funcid) && expr_decimal_scales(linitial(args), &least, &most) &&
		(list_length(args) == 1 || expr_const_int4(lsecond(args), &n) ||
		 expr_decimal_scales(lsecond(args), &least, &most)) &&
		n <= EXPR_MAX_SCALE && n >= -NUMERIC_MAX_PRECISION;
}

/* Returns decimals a rounded to n digits after the point; n < 0 rounds digits before the point. */
static Vec *
compile_round(ExprSet *set, Expr *expr, Vec *a, int n, VectorRounding mode, int stage)
{
	RoundOp *d;

	if (n == a->scale && a->scales == NULL)
		return a;
	d = expr_alloc(sizeof(RoundOp));
	d->mode = mode;
	d->digits = Max(a->scale - n, 0);
	d->zeros = n < 0 ? -n : Max(n - a->scale, 0);
	d->unit = d->digits <= MOST_POWER ? (u128) decimal_power10(d->digits) : 0;
	d->factor = d->digits <= MOST_POWER ? decimal_power10(d->zeros) : 1;
	return expr_emit(set, stage, run_round,
					 expr_new_vec(set, COLUMN_DEC, Max(n, 0), NUMERICOID, expr, stage), a, NULL,
					 NULL, d);
}

/* Compiles the remainder of two decimals; NULL if an argument is not a decimal. */
static Vec *
compile_mod(ExprSet *set, Expr *expr, List *args, int stage)
{
	Vec *a = expr_compile_as(set, linitial(args), COLUMN_DEC, stage);
	Vec *b = a ? expr_compile_as(set, lsecond(args), COLUMN_DEC, stage) : NULL;
	int16 scale;
	Vec *r;

	if (b == NULL)
		return NULL;
	scale = Max(a->scale, b->scale);
	a = expr_rescale(set, a, scale, stage);
	b = expr_rescale(set, b, scale, stage);
	r = expr_emit(set, stage, run_mod,
				  expr_new_vec(set, COLUMN_DEC, scale, NUMERICOID, expr, stage), a, b, NULL, NULL);
	return expr_scales_of_two(set, r, a, b, false, stage);
}

Vec *
expr_compile_rounding(ExprSet *set, Oid funcid, Expr *expr, List *args, int stage)
{
	VectorRounding mode = VECTOR_ROUND_HALF;
	int32 n = 0;
	Vec *a;

	if (!expr_is_rounding(funcid, args))
		return NULL;
	switch (funcid)
	{
		case F_NUMERIC_MOD:
		case F_MOD_NUMERIC_NUMERIC:
			return compile_mod(set, expr, args, stage);
		case F_ROUND_NUMERIC_INT4:
		case F_TRUNC_NUMERIC_INT4:
			expr_const_int4(lsecond(args), &n);
			mode = funcid == F_TRUNC_NUMERIC_INT4 ? VECTOR_ROUND_TRUNC : VECTOR_ROUND_HALF;
			break;
		case F_CEIL_NUMERIC:
		case F_CEILING_NUMERIC:
			mode = VECTOR_ROUND_CEIL;
			break;
		case F_FLOOR_NUMERIC:
			mode = VECTOR_ROUND_FLOOR;
			break;
		default:
			break;
	}
	a = expr_compile_as(set, linitial(args), COLUMN_DEC, stage);
	if (a == NULL)
		return NULL;
	if (funcid != F_SIGN_NUMERIC)
		return compile_round(set, expr, a, n, mode, stage);
	return expr_emit(set, stage, run_sign,
					 expr_new_vec(set, COLUMN_DEC, 0, NUMERICOID, expr, stage), a, NULL, NULL,
					 NULL);
}

/* ---- for the GPU ------------------------------------------------------------ */

bool
expr_translate_rounding(ExprProgram *p, const ExprOp *op, uint16 *r)
{
	const RoundOp *d = op->data;
	uint16 a;

	if (op->run == run_round)
	{
		a = expr_program_vec(p, op->a);
		if (d->digits > VECTOR_MOST_POWER || d->zeros > VECTOR_MOST_POWER)
			*r = expr_program_reject(p, "rounding by that many digits is not supported on the GPU");
		else
		{
			*r = d->digits == 0 ?
				a :
				expr_program_emit(p, VECTOR_DEC_ROUND, d->digits | d->mode << VECTOR_ROUND_SHIFT, a,
								  0, 0);
			if (d->zeros > 0)
				*r = expr_program_emit(p, VECTOR_DEC_RESCALE, d->zeros, *r, 0, 0);
		}
	}
	else if (op->run == run_mod)
	{
		a = expr_program_vec(p, op->a);
		*r = expr_program_emit(p, VECTOR_DEC_MOD, 0, a, expr_program_vec(p, op->b), 0);
	}
	else if (op->run == run_sign)
		*r = expr_program_emit(p, VECTOR_DEC_SIGN, 0, expr_program_vec(p, op->a), 0, 0);
	else
		return false;
	return true;
}
