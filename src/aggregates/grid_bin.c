/*
 * grid_bin.c
 *	  The bin of gpu_histogram2d as an expression, for slots.
 *
 * The bins of x and y are numbered from 0, row by row: bin x * (ny + 2) + bin y. Slots have this
 * number as the value that determines their bin. It is an expression of core's functions, such as
 * width_bucket(), so that everything that computes expressions computes it.
 *
 * Core's width_bucket() raises an error for NaN, which has a bin here: CASE tests for it.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/float.h"
#include "utils/fmgroids.h"

#include "aggregates/aggmap_internal.h"
#include "aggregates/histogram.h"
#include "analysis/analysis.h"
#include "analysis/width_bucket.h"

/* Index of the first argument of y; those of x begin at 0. */
#define GRID_Y 4

/* Returns argument i of the aggregate. */
static Expr *
argument(const Aggref *aggref, int i)
{
	return list_nth_node(TargetEntry, aggref->args, i)->expr;
}

/*
 * Sets the bins of the dimension whose arguments begin at `first`. Returns false if the parameters
 * are not constant, if they are not valid, or if core's function has other bins.
 */
static bool
dimension(const Aggref *aggref, int first, BinSpec *bins)
{
	for (int i = first + 1; i <= first + 3; i++)
		if (!IsA(argument(aggref, i), Const) || ((Const *) argument(aggref, i))->constisnull)
			return false;
	*bins = (BinSpec){.kind = BIN_UNIFORM};
	bins->lo = DatumGetFloat8(((Const *) argument(aggref, first + 1))->constvalue);
	bins->hi = DatumGetFloat8(((Const *) argument(aggref, first + 2))->constvalue);
	bins->n = DatumGetInt32(((Const *) argument(aggref, first + 3))->constvalue);
	bins->formula = core_bin_formula();
	return histogram_uniform_valid(bins->lo, bins->hi, bins->n) &&
		bins->formula < GPUAGG_BIN_FORMULAS &&
		gpuagg_bins_valid(bins->lo, bins->hi, bins->n, bins->formula);
}

bool
aggmap_grid_parameters(const Aggref *aggref, BinSpec *x, BinSpec *y)
{
	return dimension(aggref, 0, x) && dimension(aggref, GRID_Y, y) &&
		histogram_grid_fits(x->n, y->n);
}

/* Returns a call of one of core's functions with a result of type int4. */
static Expr *
int4_call(Oid function, List *args)
{
	return (Expr *) makeFuncExpr(function, INT4OID, args, InvalidOid, InvalidOid,
								 COERCE_EXPLICIT_CALL);
}

/* Returns a constant of type int4. */
static Expr *
int4_constant(int value)
{
	return (Expr *) makeConst(INT4OID, -1, InvalidOid, sizeof(int32), Int32GetDatum(value), false,
							  true);
}

/* Returns whether an expression is never NaN. */
static bool
is_never_nan(Expr *expr)
{
	Oid function = IsA(expr, FuncExpr) ? ((FuncExpr *) expr)->funcid : InvalidOid;

	return function == F_FLOAT8_INT2 || function == F_FLOAT8_INT4 || function == F_FLOAT8_INT8;
}

/* Returns the bin in the dimension whose arguments begin at `first`. */
static Expr *
dimension_bin(const Aggref *aggref, int first, const BinSpec *bins)
{
	Expr *value = argument(aggref, first);
	Expr *bucket = int4_call(F_WIDTH_BUCKET_FLOAT8_FLOAT8_FLOAT8_INT4,
							 list_make4(value, argument(aggref, first + 1),
										argument(aggref, first + 2), argument(aggref, first + 3)));
	Expr *nan = (Expr *) makeConst(FLOAT8OID, -1, InvalidOid, sizeof(float8),
								   Float8GetDatum(get_float8_nan()), false, FLOAT8PASSBYVAL);
	CaseWhen *when;
	CaseExpr *choice;

	if (is_never_nan(value))
		return bucket;
	when = makeNode(CaseWhen);
	when->expr = (Expr *) makeFuncExpr(F_FLOAT8EQ, BOOLOID, list_make2(copyObject(value), nan),
									   InvalidOid, InvalidOid, COERCE_EXPLICIT_CALL);
	when->result = int4_constant(bins->lo < bins->hi ? bins->n + 1 : 0);
	when->location = -1;
	choice = makeNode(CaseExpr);
	choice->casetype = INT4OID;
	choice->args = list_make1(when);
	choice->defresult = bucket;
	choice->location = -1;
	return (Expr *) choice;
}

Node *
aggmap_grid_bin(const Aggref *aggref)
{
	List *values;
	BinSpec x, y;
	Expr *row;

	if (!aggmap_grid_parameters(aggref, &x, &y))
		return NULL;
	/* the arguments are inputs, too: users would notice two calls for a row */
	values = list_make2(argument(aggref, 0), argument(aggref, GRID_Y));
	if (contain_volatile_functions((Node *) values) || expr_calls_users_function((Node *) values))
		return NULL;
	row = int4_call(F_INT4MUL,
					list_make2(dimension_bin(aggref, 0, &x), int4_constant(spec_bins_width(&y))));
	return (Node *) int4_call(F_INT4PL, list_make2(row, dimension_bin(aggref, GRID_Y, &y)));
}
