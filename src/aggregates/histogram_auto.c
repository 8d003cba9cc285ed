/*
 * histogram_auto.c
 *	  gpu_histogram_auto: a histogram of values whose range is not known before.
 *
 * Bin i of width w = 2^e has the values x with floor(x / w) = i. The exponent e is the least one
 * for which
 *
 *	(a)	w is at least the distance of the greatest absolute value from the next larger double
 *		(so |i| <= 2^53, and the bounds of bins are exact doubles), and
 *	(b)	at most nbins bins reach from the least to the greatest value.
 *
 * There is one, because from e = 1024 on there are two bins, -1 and 0, and nbins is at least 2.
 *
 * The state depends only on the multiset of the values, in whatever order they come or states are
 * combined. Proof: least and greatest value, call them the range, are those of the multiset. A
 * larger range has a larger greatest absolute value and, at any e, no fewer bins, so whatever
 * exponents satisfy (a) and (b) for it satisfy them for the range within. So e never shrinks when
 * values are added, and the search for e may begin at the exponent that the state already has.
 * Counts at e follow from those at any lower exponent, since floor(floor(x / 2^d) / 2^(e - d)) =
 * floor(x / 2^e): when a width doubles, bins 2i and 2i + 1 become bin i. So, by induction, the
 * counts are those of all values at the exponent that belongs to the range of all.
 *
 * By (b), more than nbins bins of half the width would be needed, unless (a) decides: the width is
 * less than 2 * (greatest - least) / (nbins - 1), or each value within 2^53 of its size has its own
 * bin.
 *
 * NULLs, NaN and infinities are counted apart. -0 is 0.
 *
 * The engines have no monoid for it: it is a fallback aggregate.
 */
#include "postgres.h"

#include <math.h>

#include "common/int.h"
#include "fmgr.h"
#include "funcapi.h"
#include "libpq/pqformat.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/float.h"
#include "utils/tuplestore.h"

#include "aggregates/aggcall.h"
#include "aggregates/bin_rows.h"
#include "aggregates/bin_window.h"
#include "aggregates/histogram.h"
#include "aggregates/partial_state.h"
#include "aggregates/portable.h"
#include "common/compat.h"

PG_FUNCTION_INFO_V1(gpuagg_histogram_auto_transfn);
PG_FUNCTION_INFO_V1(gpuagg_histogram_auto_combine);
PG_FUNCTION_INFO_V1(gpuagg_histogram_auto_serialize);
PG_FUNCTION_INFO_V1(gpuagg_histogram_auto_deserialize);
PG_FUNCTION_INFO_V1(gpuagg_histogram_auto_final);
PG_FUNCTION_INFO_V1(gpu_histogram_auto_bins);
PG_FUNCTION_INFO_V1(gpu_histogram_auto_info);
PG_FUNCTION_INFO_V1(gpu_histogram_auto_quantile);

#define LEAST_BINS 2
#define LEAST_EXPONENT (-1074)

/* The transition state. */
typedef struct AutoHistogram
{
	int nbins;
	int exponent; /* bins are 2^exponent wide */
	int64 values; /* number of values that are not NULL */
	int64 nulls;
	int64 infinite[2]; /* [0]: -infinity, [1]: infinity */
	int64 nans;
	double min, max; /* of the finite values; infinity and -infinity if there is none */
	BinWindow bins;
} AutoHistogram;

/* Returns an empty state in cxt. */
static AutoHistogram *
create_state(MemoryContext cxt, int nbins)
{
	AutoHistogram *h = MemoryContextAllocZero(cxt, sizeof(AutoHistogram));

	h->nbins = nbins;
	h->exponent = LEAST_EXPONENT;
	h->min = get_float8_infinity();
	h->max = -get_float8_infinity();
	bin_window_init(&h->bins, cxt);
	return h;
}

/* Returns argument i as a state; NULL if it is NULL. */
static AutoHistogram *
state_argument(FunctionCallInfo fcinfo, int i)
{
	return PG_ARGISNULL(i) ? NULL : (AutoHistogram *) PG_GETARG_POINTER(i);
}

/* ---- bins ------------------------------------------------------------------------ */

/* Returns floor(x / 2^exponent), which is at most 2^53 in size. */
static int64
bin_of(double x, int exponent)
{
	double scaled = ldexp(x, -exponent);
	int64 bin = (int64) scaled;

	/* the quotient of a small x may have become 0 */
	return x < 0 && (scaled == 0 || (double) bin > scaled) ? bin - 1 : bin;
}

/* Returns the exponent for a range, which is known to be `least` or more. */
static int
exponent_of(double min, double max, int nbins, int least)
{
	double greatest = Max(-min, max);
	int exponent = least;

	/* a double ends DBL_MANT_DIG bits below the next power of two, if it is not subnormal */
	if (greatest > 0)
	{
		(void) frexp(greatest, &exponent);
		exponent = Max(exponent - DBL_MANT_DIG, least);
	}
	return exponent + bin_window_shift(bin_of(min, exponent), bin_of(max, exponent), nbins);
}

/* Extends the range to [min, max], and doubles the width as often as needed. */
static void
extend_range(AutoHistogram *h, double min, double max, int least)
{
	int exponent;

	h->min = Min(h->min, min);
	h->max = Max(h->max, max);
	exponent = exponent_of(h->min, h->max, h->nbins, Max(h->exponent, least));
	bin_window_coarsen(&h->bins, exponent - h->exponent);
	h->exponent = exponent;
}

/* Adds a value that is not NULL. */
static void
add_value(AutoHistogram *h, double x)
{
	h->values++;
	if (isnan(x))
		h->nans++;
	else if (isinf(x))
		h->infinite[x > 0]++;
	else
	{
		/* removes the sign of zero */
		x += 0.0;
		if (x < h->min || x > h->max)
			extend_range(h, x, x, LEAST_EXPONENT);
		bin_window_add(&h->bins, bin_of(x, h->exponent), 1);
	}
}

/* ---- states ------------------------------------------------------------------------ */

/* Raises an error: rows of one group have different nbins. */
static void
report_changed_nbins(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("nbins of %s must be the same in all rows of a group", "gpu_histogram_auto")));
}

/* Returns argument 2, the number of bins. Raises an error if it is NULL or out of range. */
static int
nbins_argument(FunctionCallInfo fcinfo)
{
	if (PG_ARGISNULL(2))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("nbins of %s must not be null", "gpu_histogram_auto")));
	if (PG_GETARG_INT32(2) < LEAST_BINS || PG_GETARG_INT32(2) > HISTOGRAM_MAX_BINS)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("nbins of %s must be between %d and %d", "gpu_histogram_auto", LEAST_BINS,
						HISTOGRAM_MAX_BINS),
				 errdetail("It is %d.", PG_GETARG_INT32(2)),
				 errhint("A histogram has at most nbins bins, and mostly more than half of them.")));
	return PG_GETARG_INT32(2);
}

/* Transition function of gpu_histogram_auto: (state, x, nbins). Counts NULLs. */
Datum
gpuagg_histogram_auto_transfn(PG_FUNCTION_ARGS)
{
	MemoryContext cxt = aggregate_context(fcinfo);
	int nbins = nbins_argument(fcinfo);
	AutoHistogram *h = PG_ARGISNULL(0) ? create_state(cxt, nbins) : state_argument(fcinfo, 0);

	if (h->nbins != nbins)
		report_changed_nbins();
	if (PG_ARGISNULL(1))
		h->nulls++;
	else
		add_value(h, PG_GETARG_FLOAT8(1));
	PG_RETURN_POINTER(h);
}

/* Adds the values of *from to *to. */
static void
merge_values(AutoHistogram *to, const AutoHistogram *from)
{
	if (pg_add_s64_overflow(to->values, from->values, &to->values) ||
		pg_add_s64_overflow(to->nulls, from->nulls, &to->nulls))
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE), errmsg("bigint out of range")));
	to->infinite[0] += from->infinite[0];
	to->infinite[1] += from->infinite[1];
	to->nans += from->nans;
	if (from->min > from->max)
		return;
	extend_range(to, from->min, from->max, from->exponent);
	bin_window_merge(&to->bins, &from->bins, to->exponent - from->exponent);
}

/* Combine function of gpu_histogram_auto. */
Datum
gpuagg_histogram_auto_combine(PG_FUNCTION_ARGS)
{
	MemoryContext cxt = aggregate_context(fcinfo);
	AutoHistogram *to = state_argument(fcinfo, 0);
	AutoHistogram *from = state_argument(fcinfo, 1);

	if (from == NULL)
		RETURN_STATE_UNCHANGED();
	if (to == NULL)
		to = create_state(cxt, from->nbins);
	else if (to->nbins != from->nbins)
		report_changed_nbins();
	merge_values(to, from);
	PG_RETURN_POINTER(to);
}

/*
 * Returns a serialized state: nbins, the numbers of NULLs, -infinity, infinity and NaN, the least
 * and the greatest finite value, and the counts of the bins from the one to the other. The exponent
 * and the number of bins follow from the range.
 */
static bytea *
serialize(const AutoHistogram *h)
{
	StringInfoData buf;

	pq_begintypsend(&buf);
	pq_sendint32(&buf, h->nbins);
	pq_sendint64(&buf, h->nulls);
	pq_sendint64(&buf, h->infinite[0]);
	pq_sendint64(&buf, h->infinite[1]);
	pq_sendint64(&buf, h->nans);
	pq_sendfloat8(&buf, h->min);
	pq_sendfloat8(&buf, h->max);
	bin_window_put(&buf, &h->bins);
	return pq_endtypsend(&buf);
}

/* Serialization function of gpu_histogram_auto. */
Datum
gpuagg_histogram_auto_serialize(PG_FUNCTION_ARGS)
{
	aggregate_context(fcinfo);
	PG_RETURN_BYTEA_P(serialize((AutoHistogram *) PG_GETARG_POINTER(0)));
}

/* Reads a number of values and adds it to *sum. Raises an error if it is not valid. */
static int64
get_values(StringInfo buf, int64 *sum)
{
	int64 count = pq_getmsgint64(buf);

	if (count < 0 || pg_add_s64_overflow(*sum, count, sum))
		portable_invalid("count");
	return count;
}

/* Reads the range, and the bins that belong to it. */
static void
get_bins(StringInfo buf, AutoHistogram *h)
{
	double min = pq_getmsgfloat8(buf);
	double max = pq_getmsgfloat8(buf);
	int64 before = h->values;
	int64 first, n;

	if (min == h->min && max == h->max)
		return;
	if (!isfinite(min) || !isfinite(max) || min > max)
		portable_invalid("range");
	extend_range(h, min + 0.0, max + 0.0, LEAST_EXPONENT);
	first = bin_of(h->min, h->exponent);
	n = bin_of(h->max, h->exponent) - first + 1;
	if (buf->len - buf->cursor != n * (int64) sizeof(int64))
		portable_invalid("number of bins");
	bin_window_get(buf, &h->bins, first, n, &h->values);
	if (min < max && h->values - before < 2)
		portable_invalid("count");
}

/*
 * Deserialization function of gpu_histogram_auto. States may come from anywhere (partial_state.c),
 * so everything that is read is checked.
 */
Datum
gpuagg_histogram_auto_deserialize(PG_FUNCTION_ARGS)
{
	StringInfoData buf;
	AutoHistogram *h;
	int nbins;

	aggregate_context(fcinfo);
	portable_read(&buf, PG_GETARG_BYTEA_PP(0));
	nbins = (int) pq_getmsgint(&buf, 4);
	if (nbins < LEAST_BINS || nbins > HISTOGRAM_MAX_BINS)
		portable_invalid("number of bins");
	h = create_state(CurrentMemoryContext, nbins);
	(void) get_values(&buf, &h->nulls);
	h->infinite[0] = get_values(&buf, &h->values);
	h->infinite[1] = get_values(&buf, &h->values);
	h->nans = get_values(&buf, &h->values);
	get_bins(&buf, h);
	if (h->values == 0 && h->nulls == 0)
		portable_invalid("count");
	pq_getmsgend(&buf);
	PG_RETURN_POINTER(h);
}

/* Final function of gpu_histogram_auto: the state. NULL without rows. */
Datum
gpuagg_histogram_auto_final(PG_FUNCTION_ARGS)
{
	AutoHistogram *h = state_argument(fcinfo, 0);

	if (h == NULL)
		PG_RETURN_NULL();
	PG_RETURN_DATUM(partial_make(PARTIAL_HISTOGRAM_AUTO, serialize(h)));
}

/* ---- readers ------------------------------------------------------------------------ */

/* Returns the histogram in argument 0. Raises an error if it is the state of another aggregate. */
static AutoHistogram *
histogram_argument(FunctionCallInfo fcinfo, const char *function)
{
	bytea *state = PG_GETARG_BYTEA_PP(0);

	if (partial_state_kind(state) != PARTIAL_HISTOGRAM_AUTO)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument of %s is the state of another aggregate", function),
				 errhint("Pass the result of %s.", "gpu_histogram_auto")));
	return (AutoHistogram *) DatumGetPointer(partial_load(state));
}

/* Returns the lower bound of a bin, which is the upper bound of the bin before. */
static double
edge_of(const AutoHistogram *h, int64 bin)
{
	return ldexp((double) bin, h->exponent) + 0.0;
}

/* (state): a row for each bin; infinities and NaN, if there are some, have rows without a number */
Datum
gpu_histogram_auto_bins(PG_FUNCTION_ARGS)
{
	AutoHistogram *h = histogram_argument(fcinfo, "gpu_histogram_auto_bins");
	BinRows rows;

	bin_rows_begin(&rows, fcinfo);
	for (int64 bin = h->bins.first; bin <= h->bins.last; bin++)
		bin_rows_measure(&rows, *bin_window_at(&h->bins, bin));
	bin_rows_measure_special(&rows, h->infinite, h->nans);
	bin_rows_put_special(&rows, -get_float8_infinity(), h->infinite[0]);
	for (int64 bin = h->bins.first; bin <= h->bins.last; bin++)
		bin_rows_put(&rows, Int32GetDatum((int32) (bin - h->bins.first + 1)), edge_of(h, bin),
					 edge_of(h, bin + 1), *bin_window_at(&h->bins, bin));
	bin_rows_put_special(&rows, get_float8_infinity(), h->infinite[1]);
	bin_rows_put_special(&rows, get_float8_nan(), h->nans);
	return (Datum) 0;
}

/* (state): its number of bins, the width of a bin, numbers of values and NULLs, and the range */
Datum
gpu_histogram_auto_info(PG_FUNCTION_ARGS)
{
	AutoHistogram *h = histogram_argument(fcinfo, "gpu_histogram_auto_info");
	bool empty = h->min > h->max;
	TupleDesc desc;
	Datum values[6] = {Int32GetDatum(h->nbins), Float8GetDatum(ldexp(1, h->exponent)),
					   Int64GetDatum(h->values), Int64GetDatum(h->nulls), Float8GetDatum(h->min),
					   Float8GetDatum(h->max)};
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
	AutoHistogram *h = histogram_argument(fcinfo, "gpu_histogram_auto_quantile");
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
			PG_RETURN_FLOAT8(histogram_interpolate(Max(edge_of(h, bin), h->min),
												   Min(edge_of(h, bin + 1), h->max),
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
