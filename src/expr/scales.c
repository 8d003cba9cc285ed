/*
 * scales.c
 *	  Vectors of display scales, and decimals brought to another scale.
 *
 * A vector of decimals has integers of one scale: the largest display scale that the expression can
 * have (analysis/decimal_scales.c).  If some values may display fewer digits, a second vector of
 * integers (Vec.scales) has the display scale of each value.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "utils/fmgroids.h"

#include "columns/decimal.h"
#include "expr/expr_internal.h"
#include "expr/program.h"
#include "operators/decode_numeric.h"
#include "spec.h"

/* ---- vectors ----------------------------------------------------------------- */

/*
 * r = a * 10^n: decimals in a larger scale. data: the power of ten.  Rows that overflow take the
 * scalar fallback.
 */
static void
run_rescale(const ExprOp *op, int n)
{
	const gpuagg_i128 *a = op->a->values;
	gpuagg_i128 *r = op->r->values;
	gpuagg_i128 factor = *(gpuagg_i128 *) op->data;
	uint8 fallback[EXPR_ROWS];
	uint8 any = 0;

	for (int i = 0; i < n; i++)
	{
		fallback[i] = 0;
		if ((int64) a[i] == a[i] && (int64) factor == factor)
			r[i] = (gpuagg_i128) (int64) a[i] * (int64) factor;
		else
			any |= fallback[i] = __builtin_mul_overflow(a[i], factor, &r[i]);
	}
	expr_strict(op, n, any ? fallback : NULL);
}

/*
 * r: the scale of vector a in every row, as the display scales of decimals that all have the same
 * one.
 */
static void
run_one_scale(const ExprOp *op, int n)
{
	int32 *r = op->r->values;

	for (int i = 0; i < n; i++)
		r[i] = op->a->scale;
	expr_strict(op, n, NULL);
}

/*
 * r = a + b: display scales of products.  The addition is unsigned because rows that are not values
 * may hold anything.
 */
static void
run_scale_sum(const ExprOp *op, int n)
{
	const int32 *a = op->a->values;
	const int32 *b = op->b->values;
	int32 *r = op->r->values;

	for (int i = 0; i < n; i++)
		r[i] = (uint32) a[i] + (uint32) b[i];
	expr_strict(op, n, NULL);
}

/* r = the larger of a and b: display scales of sums, differences and remainders. */
static void
run_scale_max(const ExprOp *op, int n)
{
	const int32 *a = op->a->values;
	const int32 *b = op->b->values;
	int32 *r = op->r->values;

	for (int i = 0; i < n; i++)
		r[i] = Max(a[i], b[i]);
	expr_strict(op, n, NULL);
}

/* Emits an operation that computes display scales. */
static Vec *
emit_scales(ExprSet *set, int stage, void (*run)(const ExprOp *, int), Vec *a, Vec *b, Vec *c)
{
	return expr_emit(set, stage, run, expr_new_vec(set, COLUMN_I32, 0, INT4OID, NULL, stage), a, b,
					 c, NULL);
}

Vec *
expr_scales_vec(ExprSet *set, Vec *vec, int stage)
{
	return vec->scales ? vec->scales : emit_scales(set, stage, run_one_scale, vec, NULL, NULL);
}

Vec *
expr_rescale(ExprSet *set, Vec *vec, int16 scale, int stage)
{
	gpuagg_i128 *factor;
	Vec *r;

	if (vec->scale == scale)
		return vec;
	factor = expr_alloc(sizeof(gpuagg_i128));
	*factor = decimal_power10(scale - vec->scale);
	r = expr_new_vec(set, COLUMN_DEC, scale, vec->typid, NULL, stage);
	r->least_scale = vec->least_scale;
	expr_emit(set, stage, run_rescale, r, vec, NULL, NULL, factor);
	r->scales = expr_scales_vec(set, vec, stage);
	return r;
}

Vec *
expr_scales_of_two(ExprSet *set, Vec *r, Vec *a, Vec *b, bool product, int stage)
{
	r->least_scale =
		product ? a->least_scale + b->least_scale : Max(a->least_scale, b->least_scale);
	if (r->least_scale < r->scale)
		r->scales =
			emit_scales(set, stage, product ? run_scale_sum : run_scale_max,
						expr_scales_vec(set, a, stage), expr_scales_vec(set, b, stage), NULL);
	return r;
}

Vec *
expr_scales_of_choice(ExprSet *set, Vec *r, void (*run)(const ExprOp *, int), Vec *a, Vec *b,
					  Vec *c, int stage)
{
	Vec *args[] = {a, b, c};

	if (r->type != COLUMN_DEC)
		return r;
	for (int i = 0; i < lengthof(args); i++)
		if (args[i] && args[i]->type == COLUMN_DEC)
			r->least_scale = Min(r->least_scale, args[i]->least_scale);
	if (r->least_scale == r->scale)
		return r;
	for (int i = 0; i < lengthof(args); i++)
		if (args[i] && args[i]->type == COLUMN_DEC)
			args[i] = expr_scales_vec(set, args[i], stage);
	r->scales = emit_scales(set, stage, run, args[0], args[1], args[2]);
	return r;
}

/* ---- for the GPU ------------------------------------------------------------------ */

uint16
expr_translate_rescaled(ExprProgram *p, Vec *vec, int16 scale)
{
	uint16 a = expr_program_vec(p, vec);

	if (scale - vec->scale > 18)
		return expr_program_reject(
			p, "decimals whose scales are that far apart are not supported on the GPU");
	return scale == vec->scale ?
		a :
		expr_program_emit(p, VECTOR_DEC_RESCALE, scale - vec->scale, a, 0, 0);
}

/*
 * Translates the operations of this file, see expr_internal.h.  Scales are integers, and a
 * register of the GPU holds integers in the same form as decimals.
 */
bool
expr_translate_scales(ExprProgram *p, const ExprOp *op, uint16 *r)
{
	uint16 a, b;

	if (op->run == run_rescale)
		*r = expr_translate_rescaled(p, op->a, op->r->scale);
	else if (op->run == run_one_scale)
	{
		a = expr_program_vec(p, op->a);
		*r = expr_program_emit(p, VECTOR_DEC_MUL, 0,
							   expr_program_emit(p, VECTOR_PRESENCE, 0, a, 0, 0),
							   expr_program_constant(p, op->a->scale, false), 0);
	}
	else if (op->run == run_scale_sum || op->run == run_scale_max)
	{
		a = expr_program_vec(p, op->a);
		b = expr_program_vec(p, op->b);
		if (op->run == run_scale_max)
		{
			uint16 more = expr_program_emit(p, VECTOR_DEC_COMPARE, 4, a, b, 0);

			/* max(a, b) = b + (a - b if a > b) */
			a = expr_program_emit(p, VECTOR_DEC_MUL, 0,
								  expr_program_emit(p, VECTOR_DEC_SUB, 0, a, b, 0), more, 0);
		}
		*r = expr_program_emit(p, VECTOR_DEC_ADD, 0, a, b, 0);
	}
	else
		return false;
	return true;
}
