/*
 * expr_bucket.c
 *	  width_bucket(float8, lo, hi, n) with constant bounds as a vector operation.
 *
 * Core has changed how it rounds within minor releases, so the server at hand
 * is asked: a formula is used only if it gives core's answer for values around
 * every boundary of bins that is probed; else core is called for each row.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "nodes/primnodes.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"

#include "expr.h"

#define MAX_PROBES 500

typedef struct BucketOp
{
	double		lo,
				hi;
	int			n;
	bool		quotient_first; /* n * ((x - lo) / (hi - lo)), else (n * (x - lo)) / (hi - lo) */
} BucketOp;

static inline int32
bucket(const BucketOp *b, double x, bool quotient_first)
{
	double		span = b->hi - b->lo;
	double		r;

	if (x < b->lo)
		return 0;
	if (x >= b->hi)
		return b->n + 1;
	r = quotient_first ? b->n * ((x - b->lo) / span) : (b->n * (x - b->lo)) / span;
	return (int32) Min(r, b->n - 1) + 1;
}

static void
run_bucket(const ExprOp *op, int n)
{
	const BucketOp *b = op->data;
	const double *x = op->a->values;
	int32	   *r = op->r->values;
	uint8		ask[EXPR_ROWS];
	uint8		any = 0;

	for (int i = 0; i < n; i++)
	{
		ask[i] = !(x[i] - x[i] == 0);
		any |= ask[i];
		r[i] = ask[i] ? 0 : bucket(b, x[i], b->quotient_first);
	}
	expr_strict(op->r, op->a, NULL, n);
	if (any)
		expr_mark_asks(op->r, ask, n);
}

/* Does the formula agree with core at the boundaries of bins and around them? */
static bool
agrees(const BucketOp *b, bool quotient_first)
{
	for (int i = 0; i <= MAX_PROBES; i++)
	{
		int			bin = (int) ((double) b->n * i / MAX_PROBES);
		double		x = b->lo + (b->hi - b->lo) * bin / b->n;

		for (int side = -1; side <= 1; side++)
		{
			double		probe = side == 0 ? x : nextafter(x, side * HUGE_VAL);
			Datum		core = DirectFunctionCall4(width_bucket_float8, Float8GetDatum(probe),
												   Float8GetDatum(b->lo), Float8GetDatum(b->hi),
												   Int32GetDatum(b->n));

			if (DatumGetInt32(core) != bucket(b, probe, quotient_first))
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
	Vec		   *a,
			   *r;

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
	b.quotient_first = agrees(&b, true);
	if (!b.quotient_first && !agrees(&b, false))
		return NULL;
	a = expr_compile(set, linitial(args), stage);
	if (a == NULL || a->type != COLUMN_F64)
		return NULL;
	data = palloc(sizeof(BucketOp));
	*data = b;
	r = expr_new_vec(set, COLUMN_I32, 0, INT4OID, expr, stage);
	expr_emit(set, stage, run_bucket, r, a, NULL, NULL, data);
	return r;
}
