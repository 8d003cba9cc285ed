/*
 * histogram_auto_read.c
 *	  Results of gpu_histogram_auto, and functions that read them: bins, quantiles.
 */
#include "postgres.h"

#include <float.h>
#include <math.h>

#include "access/htup_details.h"
#include "fmgr.h"
#include "funcapi.h"
#include "utils/float.h"

#include "aggregates/bin_rows.h"
#include "aggregates/histogram.h"
#include "aggregates/histogram_auto.h"
#include "aggregates/partial_state.h"

PG_FUNCTION_INFO_V1(gpuagg_histogram_auto_final);
PG_FUNCTION_INFO_V1(gpu_histogram_auto_bins);
PG_FUNCTION_INFO_V1(gpu_histogram_auto_info);
PG_FUNCTION_INFO_V1(gpu_histogram_auto_quantile);

/* Final function of gpu_histogram_auto: the state. NULL without rows. */
Datum
gpuagg_histogram_auto_final(PG_FUNCTION_ARGS)
{
	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	return partial_make(PARTIAL_HISTOGRAM_AUTO,
						histogram_auto_serialized((AutoHistogram *) PG_GETARG_POINTER(0)));
}

/* Returns the histogram in argument 0. Raises an error if it is the state of another aggregate. */
static AutoHistogram *
histogram_argument(FunctionCallInfo fcinfo)
{
	bytea *state = PG_GETARG_BYTEA_PP(0);

	if (partial_state_kind(state) != PARTIAL_HISTOGRAM_AUTO)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("state does not belong to aggregate %s", "gpu_histogram_auto")));
	return (AutoHistogram *) DatumGetPointer(partial_load(state));
}

/* Returns the upper bound of a bin, which its values are below; Infinity stands for 2^1024. */
static double
upper_bound(const AutoHistogram *h, int64 bin)
{
	return ldexp((double) (bin + 1), h->exponent) + 0.0;
}

/*
 * Returns the lower bound of a bin, which its values are not below. In the place of -2^1024 it is
 * the least finite value, since -Infinity is in no bin.
 */
static double
lower_bound(const AutoHistogram *h, int64 bin)
{
	return Max(upper_bound(h, bin - 1), -DBL_MAX);
}

/* (state): a row for each bin; infinities and NaN, if there are some, have rows without a number */
Datum
gpu_histogram_auto_bins(PG_FUNCTION_ARGS)
{
	AutoHistogram *h = histogram_argument(fcinfo);
	BinRows rows;

	bin_rows_begin(&rows, fcinfo);
	for (int64 bin = h->bins.first; bin <= h->bins.last; bin++)
		bin_rows_measure(&rows, *bin_window_at(&h->bins, bin));
	bin_rows_measure_special(&rows, h->infinite, h->nans);
	bin_rows_put_special(&rows, -get_float8_infinity(), h->infinite[0]);
	for (int64 bin = h->bins.first; bin <= h->bins.last; bin++)
		bin_rows_put(&rows, Int32GetDatum((int32) (bin - h->bins.first + 1)), lower_bound(h, bin),
					 upper_bound(h, bin), *bin_window_at(&h->bins, bin));
	bin_rows_put_special(&rows, get_float8_infinity(), h->infinite[1]);
	bin_rows_put_special(&rows, get_float8_nan(), h->nans);
	return (Datum) 0;
}

/* (state): its number of bins, the width of a bin, numbers of values and NULLs, and the range */
Datum
gpu_histogram_auto_info(PG_FUNCTION_ARGS)
{
	AutoHistogram *h = histogram_argument(fcinfo);
	bool empty = h->min > h->max;
	TupleDesc desc;
	Datum values[6] = {Int32GetDatum(h->nbins),  Float8GetDatum(ldexp(1, h->exponent)),
					   Int64GetDatum(h->values), Int64GetDatum(h->nulls),
					   Float8GetDatum(h->min),   Float8GetDatum(h->max)};
	bool nulls[6] = {false, empty, false, false, empty, empty};

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE ||
		desc->natts != lengthof(values))
		elog(ERROR, "result type of gpu_histogram_auto_info does not have its columns");
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls)));
}

/*
 * (state, fraction): the value at a fraction of the values, interpolated within its bin; NULL
 * without values
 */
Datum
gpu_histogram_auto_quantile(PG_FUNCTION_ARGS)
{
	AutoHistogram *h = histogram_argument(fcinfo);
	double fraction = PG_GETARG_FLOAT8(1);
	double target = fraction * (double) h->values;
	int64 before = h->infinite[0];

	histogram_check_fraction("gpu_histogram_auto_quantile", fraction);
	if (h->values == 0)
		PG_RETURN_NULL();
	if (before > 0 && (double) before >= target)
		PG_RETURN_FLOAT8(-get_float8_infinity());
	for (int64 bin = h->bins.first; bin <= h->bins.last; bin++)
	{
		int64 count = *bin_window_at(&h->bins, bin);

		if (count > 0 && (double) (before + count) >= target)
			PG_RETURN_FLOAT8(histogram_interpolate(Max(lower_bound(h, bin), h->min),
												   Min(upper_bound(h, bin), h->max),
												   (target - (double) before) / (double) count));
		before += count;
	}
	before += h->infinite[1];
	if (h->infinite[1] > 0 && ((double) before >= target || h->nans == 0))
		PG_RETURN_FLOAT8(get_float8_infinity());
	if (h->nans > 0)
		PG_RETURN_FLOAT8(get_float8_nan());
	PG_RETURN_FLOAT8(h->max);
}
