/*
 * exp_histogram_read.c
 *	  Exponential histograms as states: results of the aggregates, and their sum; from the columns
 *	  in which exporters store them, and back; their buckets as rows; their quantiles.
 */
#include "postgres.h"

#include <float.h>

#include "access/htup_details.h"
#include "catalog/pg_type_d.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/float.h"

#include "aggregates/bin_rows.h"
#include "aggregates/exp_buckets.h"
#include "aggregates/exp_histogram.h"
#include "aggregates/histogram.h"
#include "aggregates/partial_state.h"
#include "aggregates/state_forms.h"
#include "common/compat.h"
#include "common/interruptible.h"

PG_FUNCTION_INFO_V1(gpuagg_exp_histogram_merge);
PG_FUNCTION_INFO_V1(gpuagg_exp_histogram_final);
PG_FUNCTION_INFO_V1(gpu_exp_histogram_of);
PG_FUNCTION_INFO_V1(gpu_exp_histogram_info);
PG_FUNCTION_INFO_V1(gpu_exp_histogram_buckets);
PG_FUNCTION_INFO_V1(gpu_exp_histogram_quantile);

#define CONSTRUCTOR "gpu_exp_histogram_of"

/* ---- states ----------------------------------------------------------------------- */

/* Returns the histogram of a state. Raises an error if it is the state of another aggregate. */
static ExpHistogram *
histogram_of(Datum state)
{
	bytea *bytes = DatumGetByteaPP(state);

	if (partial_state_kind(bytes) != PARTIAL_EXP_HISTOGRAM)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("state does not belong to aggregate %s", "gpu_exp_histogram")));
	return (ExpHistogram *) DatumGetPointer(partial_load(bytes));
}

/* Returns the histogram as a state. */
static Datum
state_of(const ExpHistogram *h)
{
	return partial_make(PARTIAL_EXP_HISTOGRAM, exp_histogram_serialized(h));
}

/* Final function of gpu_exp_histogram: the state. NULL without rows. */
Datum
gpuagg_exp_histogram_final(PG_FUNCTION_ARGS)
{
	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	return state_of((ExpHistogram *) PG_GETARG_POINTER(0));
}

/* (state, histogram): transition and combine function of gpu_exp_histogram_merge. Skips NULLs. */
Datum
gpuagg_exp_histogram_merge(PG_FUNCTION_ARGS)
{
	ExpHistogram *sum = NULL;

	for (int i = 0; i < 2; i++)
		if (!PG_ARGISNULL(i))
			sum =
				exp_histogram_combine(CurrentMemoryContext, sum, histogram_of(PG_GETARG_DATUM(i)));
	if (sum == NULL)
		PG_RETURN_NULL();
	return state_of(sum);
}

/* ---- constructor ------------------------------------------------------------------ */

/* Returns the elements of an array of counts, and their number in *n. Raises an error for NULLs. */
static Datum *
counts_of(ArrayType *array, int *n)
{
	Datum *counts;

	*n = 0;
	if (ARR_NDIM(array) == 0)
		return NULL;
	if (ARR_NDIM(array) != 1)
		ereport(ERROR,
				(errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
				 errmsg("counts of %s must be a one-dimensional array", CONSTRUCTOR)));
	if (array_contains_nulls(array))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("counts of %s must not contain nulls", CONSTRUCTOR)));
	deconstruct_array(array, INT8OID, 8, FLOAT8PASSBYVAL, TYPALIGN_DOUBLE, &counts, NULL, n);
	return counts;
}

/* Raises an error if a count is negative. */
static void
check_count(int64 count)
{
	if (count < 0)
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("counts of %s must not be negative", CONSTRUCTOR),
				 errdetail("One is %lld.", (long long) count)));
}

/* Adds buckets of one sign, from bucket `offset` on, at this scale, which is not below h's. */
static void
add_buckets(ExpHistogram *h, int side, int scale, int64 offset, ArrayType *array)
{
	int64 least = exp_bucket(DBL_TRUE_MIN, scale), most = exp_bucket(DBL_MAX, scale);
	int n;
	Datum *counts = counts_of(array, &n);

	INTERRUPTIBLE_FOR (i, 0, n)
	{
		int64 count = DatumGetInt64(counts[i]);

		check_count(count);
		if (count == 0)
			continue;
		if (offset + i < least || offset + i > most)
			ereport(
				ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("offset of %s is out of range", CONSTRUCTOR),
				 errdetail("Values of type double precision have the buckets %lld to %lld at "
						   "scale %d, and bucket %lld has a count.",
						   (long long) least, (long long) most, scale, (long long) (offset + i))));
		exp_histogram_add(h, side, (offset + i) >> (scale - h->scale), count);
	}
}

/*
 * (scale, zero_count, positive_offset, positive_counts, negative_offset, negative_counts): returns
 * a histogram. NULL for a NULL scale; other NULLs stand for no values.
 */
Datum
gpu_exp_histogram_of(PG_FUNCTION_ARGS)
{
	ExpHistogram *h;
	int scale;

	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	scale = PG_GETARG_INT32(0);
	exp_histogram_check_scale(CONSTRUCTOR, scale);
	h = exp_histogram_create(CurrentMemoryContext, scale);
	if (!PG_ARGISNULL(1))
	{
		check_count(PG_GETARG_INT64(1));
		exp_histogram_add_values(h, &h->zeros, PG_GETARG_INT64(1));
	}
	for (int side = 0; side < 2; side++)
	{
		int arg = side == 1 ? 2 : 4;

		if (PG_ARGISNULL(arg + 1))
			continue;
		add_buckets(h, side, scale, PG_ARGISNULL(arg) ? 0 : PG_GETARG_INT32(arg),
					PG_GETARG_ARRAYTYPE_P(arg + 1));
	}
	return state_of(h);
}

/* ---- readers ------------------------------------------------------------------------ */

/* Returns the counts from the first to the last bucket as an array. */
static Datum
count_array(const BinWindow *buckets)
{
	int64 counts[EXP_MOST_BUCKETS];
	int64 n = bin_window_width(buckets);

	if (n == 0)
		PG_RETURN_ARRAYTYPE_P(construct_empty_array(INT8OID));
	for (int64 i = 0; i < n; i++)
		counts[i] = *bin_window_at(buckets, buckets->first + i);
	return form_array(INT8OID, counts, n);
}

/* (state): the columns from which gpu_exp_histogram_of makes it, and other numbers of values */
Datum
gpu_exp_histogram_info(PG_FUNCTION_ARGS)
{
	ExpHistogram *h = histogram_of(PG_GETARG_DATUM(0));
	TupleDesc desc;
	Datum values[10] = {Int32GetDatum(h->scale),
						Int64GetDatum(h->zeros),
						Int32GetDatum((int32) h->sides[1].first),
						count_array(&h->sides[1]),
						Int32GetDatum((int32) h->sides[0].first),
						count_array(&h->sides[0]),
						Int64GetDatum(h->infinite[0]),
						Int64GetDatum(h->infinite[1]),
						Int64GetDatum(h->nans),
						Int64GetDatum(h->values)};
	bool nulls[10] = {false};

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE ||
		desc->natts != lengthof(values))
		elog(ERROR, "result type of gpu_exp_histogram_info does not have its columns");
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls)));
}

/* (state): a row for each bucket; zeros, infinities and NaN have rows without a number */
Datum
gpu_exp_histogram_buckets(PG_FUNCTION_ARGS)
{
	ExpHistogram *h = histogram_of(PG_GETARG_DATUM(0));
	const BinWindow *below = &h->sides[0], *above = &h->sides[1];
	BinRows rows;

	bin_rows_begin(&rows, fcinfo);
	bin_rows_measure(&rows, h->zeros);
	bin_rows_measure_special(&rows, h->infinite, h->nans);
	for (int side = 0; side < 2; side++)
		for (int64 i = h->sides[side].first; i <= h->sides[side].last; i++)
			bin_rows_measure(&rows, *bin_window_at(&h->sides[side], i));
	bin_rows_put_special(&rows, -get_float8_infinity(), h->infinite[0]);
	/* differences, since -0 is no bound */
	for (int64 i = below->last; i >= below->first; i--)
		bin_rows_put(&rows, Int32GetDatum((int32) i), 0 - exp_upper_bound(i, h->scale),
					 0 - exp_lower_bound(i, h->scale), *bin_window_at(below, i));
	bin_rows_put_special(&rows, 0, h->zeros);
	for (int64 i = above->first; i <= above->last; i++)
		bin_rows_put(&rows, Int32GetDatum((int32) i), exp_lower_bound(i, h->scale),
					 exp_upper_bound(i, h->scale), *bin_window_at(above, i));
	bin_rows_put_special(&rows, get_float8_infinity(), h->infinite[1]);
	bin_rows_put_special(&rows, get_float8_nan(), h->nans);
	return (Datum) 0;
}

/* A walk through the values in ascending order, up to the one that is wanted. */
typedef struct Walk
{
	double target; /* the number of values up to the wanted one */
	int64 before;  /* number of values that have been passed */
} Walk;

/*
 * Passes `count` values. If the wanted one is among them, returns true and sets *share to the part
 * of them up to it.
 */
static bool
walk_reaches(Walk *walk, int64 count, double *share)
{
	if (count > 0 && (double) (walk->before + count) >= walk->target)
	{
		*share = (walk->target - (double) walk->before) / (double) count;
		return true;
	}
	walk->before += count;
	return false;
}

/*
 * (state, fraction): the value at a fraction of the values, interpolated on a logarithmic scale
 * within its bucket; NULL without values
 */
Datum
gpu_exp_histogram_quantile(PG_FUNCTION_ARGS)
{
	ExpHistogram *h = histogram_of(PG_GETARG_DATUM(0));
	const BinWindow *below = &h->sides[0], *above = &h->sides[1];
	double fraction = PG_GETARG_FLOAT8(1);
	Walk walk = {fraction * (double) h->values, 0};
	double share;

	histogram_check_fraction("gpu_exp_histogram_quantile", fraction);
	if (h->values == 0)
		PG_RETURN_NULL();
	if (walk_reaches(&walk, h->infinite[0], &share))
		PG_RETURN_FLOAT8(-get_float8_infinity());
	for (int64 i = below->last; i >= below->first; i--)
		if (walk_reaches(&walk, *bin_window_at(below, i), &share))
			PG_RETURN_FLOAT8(0 - exp_interpolate(i, h->scale, 1 - share));
	if (walk_reaches(&walk, h->zeros, &share))
		PG_RETURN_FLOAT8(0);
	for (int64 i = above->first; i <= above->last; i++)
		if (walk_reaches(&walk, *bin_window_at(above, i), &share))
			PG_RETURN_FLOAT8(exp_interpolate(i, h->scale, share));
	if (walk_reaches(&walk, h->infinite[1], &share))
		PG_RETURN_FLOAT8(get_float8_infinity());
	PG_RETURN_FLOAT8(get_float8_nan());
}
