/*
 * bucket.c
 *	  width_bucket(float8, lo, hi, n) with constant bounds as a vector operation.
 *
 * Minor releases of PostgreSQL differ in how they round, so a call of core's function
 * tells which formula it has.  The operation is used only if its results are core's
 * around up to MAX_PROBES boundaries of bins; otherwise core's function is called row
 * by row.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "nodes/primnodes.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"

#include "expr/internal.h"
#include "expr/program.h"
#include "operators/vector_functions.h"

#define MAX_PROBES 500

/* See vector_bucket(). */
typedef enum BucketFormula
{
	BUCKET_PRODUCT,
	BUCKET_QUOTIENT
} BucketFormula;

typedef struct BucketOp
{
	double		lo,
				hi;
	int			n;
	BucketFormula formula;
} BucketOp;

static inline int32
bucket(const BucketOp *b, double x, BucketFormula formula)
{
	return vector_bucket(x, b->lo, b->hi, b->n, formula == BUCKET_QUOTIENT);
}

static inline uint8
bucket_rows(const BucketOp *b, const double *x, BucketFormula formula, int32 *restrict r,
			uint8 *restrict fallback, int n)
{
	uint8		any = 0;

	for (int i = 0; i < n; i++)
		r[i] = bucket(b, x[i], formula);
	for (int i = 0; i < n; i++)
	{
		fallback[i] = !(x[i] - x[i] == 0);
		any |= fallback[i];
	}
	return any;
}

static void
run_bucket(const ExprOp *op, int n)
{
	const BucketOp *b = op->data;
	uint8		fallback[EXPR_ROWS];
	uint8		any;

	if (b->formula == BUCKET_PRODUCT)
		any = bucket_rows(b, op->a->values, BUCKET_PRODUCT, op->r->values, fallback, n);
	else
		any = bucket_rows(b, op->a->values, BUCKET_QUOTIENT, op->r->values, fallback, n);
	expr_strict(op, n, any ? fallback : NULL);
}

static int32
core_bucket(double x, double lo, double hi, int n)
{
	return DatumGetInt32(DirectFunctionCall4(width_bucket_float8, Float8GetDatum(x),
											 Float8GetDatum(lo), Float8GetDatum(hi),
											 Int32GetDatum(n)));
}

/* Just below 1, adding 1 rounds up to 2. */
static BucketFormula
core_formula(void)
{
	return core_bucket(nextafter(1, 0), 0, 1, 1) == 2 ? BUCKET_PRODUCT : BUCKET_QUOTIENT;
}

/* Does the formula agree with core at the boundaries of bins and around them? */
static bool
agrees(const BucketOp *b)
{
	for (int i = 0; i <= MAX_PROBES; i++)
	{
		int			bin = (int) ((double) b->n * i / MAX_PROBES);
		double		x = b->lo + (b->hi - b->lo) * bin / b->n;

		for (int side = -1; side <= 1; side++)
		{
			double		probe = side == 0 ? x : nextafter(x, side * HUGE_VAL);

			if (core_bucket(probe, b->lo, b->hi, b->n) != bucket(b, probe, b->formula))
				return false;
		}
	}
	return true;
}

Vec *
expr_compile_bucket(ExprSet *set, Oid funcid, Expr *expr, List *args, int stage)
{
	BucketOp	b;
	BucketOp   *data;
	Vec		   *a;

	if (funcid != F_WIDTH_BUCKET_FLOAT8_FLOAT8_FLOAT8_INT4)
		return NULL;
	for (int i = 1; i < 4; i++)
		if (!IsA(list_nth(args, i), Const) || ((Const *) list_nth(args, i))->constisnull)
			return NULL;
	b.lo = DatumGetFloat8(((Const *) lsecond(args))->constvalue);
	b.hi = DatumGetFloat8(((Const *) lthird(args))->constvalue);
	b.n = DatumGetInt32(((Const *) lfourth(args))->constvalue);
	if (b.n < 1 || b.n == PG_INT32_MAX || !(b.lo < b.hi) || !isfinite(b.lo) || !isfinite(b.hi) ||
		!isfinite(b.hi - b.lo) || !isfinite(b.n * (b.hi - b.lo)))
		return NULL;
	b.formula = core_formula();
	if (!agrees(&b))
		return NULL;
	a = expr_compile_as(set, linitial(args), COLUMN_F64, stage);
	if (a == NULL)
		return NULL;
	data = palloc(sizeof(BucketOp));
	*data = b;
	return expr_emit(set, stage, run_bucket, expr_new_vec(set, COLUMN_I32, 0, INT4OID, expr, stage), a,
					 NULL, NULL, data);
}

bool
expr_translate_bucket(ExprProgram *p, const ExprOp *op, uint16 *r)
{
	const BucketOp *b = op->data;
	int64		constants[3];
	uint16		a;

	if (op->run != run_bucket)
		return false;
	memcpy(&constants[0], &b->lo, sizeof(int64));
	memcpy(&constants[1], &b->hi, sizeof(int64));
	constants[2] = b->n;
	a = expr_program_vec(p, op->a);
	*r = expr_program_emit(p, VECTOR_BUCKET, b->formula == BUCKET_QUOTIENT, a, expr_program_constants(p, 3, constants), 0);
	return true;
}
