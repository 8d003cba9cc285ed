/*
 * bucket.c
 *	  width_bucket(float8, lo, hi, n) with constant bounds as a vector operation.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "nodes/primnodes.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"

#include "analysis/width_bucket.h"
#include "expr/expr_internal.h"
#include "expr/program.h"

/* Data of run_bucket(): the constant arguments of width_bucket(). */
typedef struct BucketOp
{
	double lo, hi;
	int n;
	GpuaggBinFormula formula;
} BucketOp;

/*
 * Sets r[i] to the bin of x[i] for n rows.  Marks NaN and infinities in fallback[]; returns whether
 * there are any.  A constant `formula` makes the loop branch-free.
 */
static inline uint8
bucket_rows(const BucketOp *b, const double *x, GpuaggBinFormula formula, int32 *restrict r,
			uint8 *restrict fallback, int n)
{
	uint8 any = 0;

	for (int i = 0; i < n; i++)
		r[i] = gpuagg_bin_uniform(x[i], b->lo, b->hi, b->n, formula);
	for (int i = 0; i < n; i++)
	{
		fallback[i] = !(x[i] - x[i] == 0);
		any |= fallback[i];
	}
	return any;
}

/* r = width_bucket(a, lo, hi, n); data: BucketOp */
static void
run_bucket(const ExprOp *op, int n)
{
	const BucketOp *b = op->data;
	uint8 fallback[EXPR_ROWS];
	uint8 any;

	/* the compiler makes a branch-free loop of each call */
	if (b->formula == GPUAGG_BINS_PRODUCT)
		any = bucket_rows(b, op->a->values, GPUAGG_BINS_PRODUCT, op->r->values, fallback, n);
	else
		any = bucket_rows(b, op->a->values, GPUAGG_BINS_QUOTIENT, op->r->values, fallback, n);
	expr_strict(op, n, any ? fallback : NULL);
}

Vec *
expr_compile_bucket(ExprSet *set, Oid funcid, Expr *expr, List *args, int stage)
{
	BucketOp b;
	BucketOp *data;
	Vec *a;

	if (funcid != F_WIDTH_BUCKET_FLOAT8_FLOAT8_FLOAT8_INT4)
		return NULL;
	for (int i = 1; i < 4; i++)
		if (!IsA(list_nth(args, i), Const) || ((Const *) list_nth(args, i))->constisnull)
			return NULL;
	b.lo = DatumGetFloat8(((Const *) lsecond(args))->constvalue);
	b.hi = DatumGetFloat8(((Const *) lthird(args))->constvalue);
	b.n = DatumGetInt32(((Const *) lfourth(args))->constvalue);
	b.formula = core_bin_formula();
	if (!gpuagg_bins_valid(b.lo, b.hi, b.n, b.formula))
		return NULL;
	a = expr_compile_as(set, linitial(args), COLUMN_F64, stage);
	if (a == NULL)
		return NULL;
	data = palloc(sizeof(BucketOp));
	*data = b;
	return expr_emit(set, stage, run_bucket, expr_new_vec(set, COLUMN_I32, 0, INT4OID, expr, stage),
					 a, NULL, NULL, data);
}

/* Returns whether an expression is float8eq(x, NaN). */
static bool
is_nan_test(const Expr *expr, const Expr *x)
{
	const FuncExpr *test = (const FuncExpr *) expr;
	const Const *nan;

	if (!IsA(expr, FuncExpr) || test->funcid != F_FLOAT8EQ || !IsA(lsecond(test->args), Const))
		return false;
	nan = lsecond_node(Const, test->args);
	return !nan->constisnull && isnan(DatumGetFloat8(nan->constvalue)) &&
		equal(linitial(test->args), x);
}

Vec *
expr_compile_guarded_bucket(ExprSet *set, CaseExpr *expr, int stage)
{
	FuncExpr *bucket = (FuncExpr *) expr->defresult;
	const CaseWhen *when = linitial_node(CaseWhen, expr->args);

	if (expr->arg || list_length(expr->args) != 1 || bucket == NULL || !IsA(bucket, FuncExpr) ||
		bucket->args == NIL || !is_nan_test(when->expr, linitial(bucket->args)) ||
		!IsA(when->result, Const) || expr_facts(set, (Expr *) expr).case_value)
		return NULL;
	return expr_compile_bucket(set, bucket->funcid, (Expr *) expr, bucket->args, stage);
}

bool
expr_translate_bucket(ExprProgram *p, const ExprOp *op, uint16 *r)
{
	const BucketOp *b = op->data;
	int64 constants[3];
	uint16 a;

	if (op->run != run_bucket)
		return false;
	memcpy(&constants[0], &b->lo, sizeof(int64));
	memcpy(&constants[1], &b->hi, sizeof(int64));
	constants[2] = b->n;
	a = expr_program_vec(p, op->a);
	*r = expr_program_emit(p, VECTOR_BUCKET, b->formula, a, expr_program_constants(p, 3, constants),
						   0);
	return true;
}
