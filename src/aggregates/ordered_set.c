/*
 * ordered_set.c
 *	  Ordered-set aggregates: their specs, ranks and results; see ordered_set.h.
 *
 * The arithmetic, the order of checks, and errors are those of core's orderedsetaggs.c.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "parser/parse_oper.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/float.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

#include "aggregates/ordered_set.h"
#include "common/compat.h"

/* ---- specs -------------------------------------------------------------- */

static const struct
{
	Oid finalfn;
	OrderedSetKind kind;
	bool array;
} forms[] = {
	{F_PERCENTILE_DISC_FINAL, ORDERED_SET_DISC, false},
	{F_PERCENTILE_CONT_FLOAT8_FINAL, ORDERED_SET_CONT, false},
	{F_PERCENTILE_CONT_INTERVAL_FINAL, ORDERED_SET_CONT_INTERVAL, false},
	{F_PERCENTILE_DISC_MULTI_FINAL, ORDERED_SET_DISC, true},
	{F_PERCENTILE_CONT_FLOAT8_MULTI_FINAL, ORDERED_SET_CONT, true},
	{F_PERCENTILE_CONT_INTERVAL_MULTI_FINAL, ORDERED_SET_CONT_INTERVAL, true},
	{F_MODE_FINAL, ORDERED_SET_MODE, false},
};

bool
ordered_set_is_final(Oid finalfn)
{
	for (int i = 0; i < lengthof(forms); i++)
		if (forms[i].finalfn == finalfn)
			return true;
	return false;
}

/*
 * Transition and combine function of the fallback aggregate that carries the result of an ordered
 * set. It is strict, and a group has one row with a result, whose value becomes the state without
 * a call. When it is called, the state has the result already, and is returned unchanged.
 */
static Datum
return_result(PG_FUNCTION_ARGS)
{
	return PG_GETARG_DATUM(0);
}

/*
 * Makes *fallback a fallback aggregate whose state is the value in its column, for the result of
 * ordered set number `set`.
 */
static void
make_result_fallback(FallbackAgg *fallback, const Aggref *aggref, int set)
{
	FmgrInfo keep = {.fn_addr = return_result,
					 .fn_oid = aggref->aggfnoid,
					 .fn_nargs = 2,
					 .fn_strict = true,
					 .fn_mcxt = CurrentMemoryContext};

	fallback->transfn = fallback->combinefn = keep;
	fallback->transtype = aggref->aggtype;
	get_typlenbyval(aggref->aggtype, &fallback->translen, &fallback->transbyval);
	fallback->initval = (Datum) 0;
	fallback->initnull = true;
	fallback->nargs = 1;
	/* makes it different from others until the executor sets a column */
	fallback->argcol[0] = -1 - set;
	fallback->filter = -1;
}

/*
 * Returns the "<" operator of the order of the aggregate's values. Sets *desc to whether the order
 * is descending.
 */
static Oid
ascending_operator(const Aggref *aggref, Oid typid, bool *desc)
{
	*desc = false;
	/* gpu_median */
	if (aggref->aggorder == NIL)
		return lookup_type_cache(typid, TYPECACHE_LT_OPR)->lt_opr;
	return compat_ascending_operator(linitial_node(SortGroupClause, aggref->aggorder)->sortop,
									 desc);
}

int
ordered_set_add(AggSpec *spec, const Aggref *aggref, Oid finalfn, int input, int filter,
				FallbackAgg *fallback)
{
	Node *expr = (Node *) linitial_node(TargetEntry, aggref->args)->expr;
	OrderedSetSpec set = {.kind = ORDERED_SET_CONT};
	ValuesSpec values = {.filter = filter, .collation = exprCollation(expr)};
	ColumnSpec col = {.input = input};
	Oid base = getBaseType(exprType(expr));

	col.typid = exprType(expr);
	col.typmod = exprTypmod(expr);
	col.collation = exprCollation(expr);
	get_typlenbyval(col.typid, &col.typlen, &col.typbyval);
	values.ltop = ascending_operator(aggref, base, &set.desc);
	values.coded = spec_type_has_codes(base) &&
		values.ltop == lookup_type_cache(base, TYPECACHE_LT_OPR)->lt_opr;
	col.type = values.coded ? spec_column_type(col.typid, col.typmod, &col.scale) : COLUMN_DATUM;
	values.col = spec_add_column(spec, &col);
	set.values = spec_add_values(spec, &values);
	set.median = aggref->aggorder == NIL;
	if (set.median)
		set.kind = base == INTERVALOID ? ORDERED_SET_CONT_INTERVAL : ORDERED_SET_CONT;
	for (int i = 0; i < lengthof(forms) && !set.median; i++)
		if (forms[i].finalfn == finalfn)
		{
			set.kind = forms[i].kind;
			set.array = forms[i].array;
		}
	make_result_fallback(fallback, aggref, spec->nordered_sets);
	set.fallback = spec_add_fallback(spec, fallback);
	spec_add_ordered_set(spec, &set);
	return set.fallback;
}

/* ---- ranks -------------------------------------------------------------- */

double
ordered_set_check_fraction(double fraction)
{
	if (fraction < 0 || fraction > 1 || isnan(fraction))
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("percentile value %g is not between 0 and 1", fraction)));
	return fraction;
}

/*
 * Sets ranks[0] and ranks[1] to the ranks between which the fraction of n values lies, from 0 in
 * the aggregate's order. They are equal if one value alone is the result.
 */
static void
fraction_ranks(OrderedSetKind kind, double fraction, int64 n, int64 *ranks)
{
	if (kind == ORDERED_SET_DISC)
		ranks[0] = ranks[1] = Max((int64) ceil(fraction * n), 1) - 1;
	else
	{
		ranks[0] = (int64) floor(fraction * (n - 1));
		ranks[1] = (int64) ceil(fraction * (n - 1));
	}
}

/*
 * Sets the fractions of *call from the array of fractions. Raises core's error if one is out of
 * range.
 */
static void
read_fractions(OrderedSetCall *call, Datum fraction)
{
	Datum *elements;

	call->shape = DatumGetArrayTypeP(fraction);
	deconstruct_array(call->shape, FLOAT8OID, sizeof(float8), FLOAT8PASSBYVAL, TYPALIGN_DOUBLE,
					  &elements, &call->nulls, &call->nfractions);
	call->fractions = palloc(sizeof(double) * (call->nfractions + 1));
	for (int i = 0; i < call->nfractions; i++)
		if (!call->nulls[i])
		{
			call->fractions[i] = DatumGetFloat8(elements[i]);
			ordered_set_check_fraction(call->fractions[i]);
		}
}

void
ordered_set_begin(OrderedSetCall *call, const OrderedSetSpec *set, Datum fraction, bool isnull,
				  int64 n)
{
	memset(call, 0, sizeof(*call));
	call->set = set;
	/* core reads an array of fractions only if there are values */
	call->isnull = n == 0;
	if (set->kind == ORDERED_SET_MODE)
		return;
	if (isnull || (set->array && n == 0))
	{
		call->isnull = true;
		return;
	}
	if (set->array)
		read_fractions(call, fraction);
	else
	{
		call->nfractions = 1;
		call->fractions = palloc(sizeof(double));
		call->nulls = palloc0(sizeof(bool));
		call->fractions[0] = DatumGetFloat8(fraction);
		ordered_set_check_fraction(call->fractions[0]);
	}
	call->ranks = palloc0(sizeof(int64) * (2 * call->nfractions + 1));
	for (int i = 0; i < call->nfractions && n > 0; i++)
	{
		int64 *ranks = &call->ranks[2 * i];

		if (call->nulls[i])
			continue;
		fraction_ranks(set->kind, call->fractions[i], n, ranks);
		for (int j = 0; j < 2 && set->desc; j++)
			ranks[j] = n - 1 - ranks[j];
	}
}

/* Comparator of qsort_interruptible */
static int
compare_ranks(const void *a, const void *b, void *arg)
{
	int64 x = *(const int64 *) a;
	int64 y = *(const int64 *) b;

	return (x > y) - (x < y);
}

int
ordered_set_ranks(const OrderedSetCall *calls, int ncalls, int64 **ranks)
{
	int most = 0, n = 0, unique = 0;

	for (int c = 0; c < ncalls; c++)
		most += 2 * calls[c].nfractions;
	*ranks = palloc(sizeof(int64) * (most + 1));
	for (int c = 0; c < ncalls; c++)
		for (int i = 0; !calls[c].isnull && i < 2 * calls[c].nfractions; i++)
			if (!calls[c].nulls[i / 2])
				(*ranks)[n++] = calls[c].ranks[i];
	qsort_interruptible(*ranks, n, sizeof(int64), compare_ranks, NULL);
	for (int i = 0; i < n; i++)
		if (i == 0 || (*ranks)[i] != (*ranks)[unique - 1])
			(*ranks)[unique++] = (*ranks)[i];
	return unique;
}

/* ---- results ------------------------------------------------------------ */

/* Returns values[i] for the i with ranks[i] = rank, which must exist. ranks ascend. */
static Datum
value_of_rank(const int64 *ranks, const Datum *values, int nranks, int64 rank)
{
	int left = 0, right = nranks - 1;

	while (left < right)
	{
		int mid = (left + right) / 2;

		if (ranks[mid] < rank)
			left = mid + 1;
		else
			right = mid;
	}
	Assert(ranks[left] == rank);
	return values[left];
}

/* Returns lo + part * (hi - lo), as core's float8_lerp and interval_lerp compute it. */
static Datum
interpolate(OrderedSetKind kind, Datum lo, Datum hi, double part)
{
	Datum difference;

	if (kind == ORDERED_SET_CONT)
		return Float8GetDatum(DatumGetFloat8(lo) +
							  (part * (DatumGetFloat8(hi) - DatumGetFloat8(lo))));
	difference = DirectFunctionCall2(interval_mi, hi, lo);
	return DirectFunctionCall2(
		interval_pl, DirectFunctionCall2(interval_mul, difference, Float8GetDatum(part)), lo);
}

/* Returns the percentile for fraction i of n values. values[k] has the rank ranks[k]. */
static Datum
fraction_value(const OrderedSetCall *call, int i, int64 n, const int64 *ranks, const Datum *values,
			   int nranks)
{
	const int64 *wanted = &call->ranks[2 * i];
	Datum first = value_of_rank(ranks, values, nranks, wanted[0]);
	double place;

	if (wanted[0] == wanted[1])
		return first;
	place = call->fractions[i] * (n - 1);
	return interpolate(call->set->kind, first, value_of_rank(ranks, values, nranks, wanted[1]),
					   place - floor(place));
}

Datum
ordered_set_result(const OrderedSetCall *call, int64 n, const int64 *ranks, const Datum *values,
				   int nranks, Datum mode, Oid typid, bool *isnull)
{
	Datum *elements;
	int16 typlen;
	bool typbyval;
	char typalign;

	*isnull = call->isnull;
	if (call->isnull)
		return (Datum) 0;
	if (call->set->kind == ORDERED_SET_MODE)
		return mode;
	if (!call->set->array)
		return fraction_value(call, 0, n, ranks, values, nranks);
	if (call->nfractions == 0)
		return PointerGetDatum(construct_empty_array(typid));
	elements = palloc0(sizeof(Datum) * call->nfractions);
	for (int i = 0; i < call->nfractions; i++)
	{
		if (i % 65536 == 0)
			CHECK_FOR_INTERRUPTS();
		if (!call->nulls[i])
			elements[i] = fraction_value(call, i, n, ranks, values, nranks);
	}
	get_typlenbyvalalign(typid, &typlen, &typbyval, &typalign);
	return PointerGetDatum(construct_md_array(elements, call->nulls, ARR_NDIM(call->shape),
											  ARR_DIMS(call->shape), ARR_LBOUND(call->shape), typid,
											  typlen, typbyval, typalign));
}
