/*
 * exp_histogram.c
 *	  gpu_exp_histogram and gpu_exp_histogram_merge: exponential histograms, as OpenTelemetry's
 *	  data model and Prometheus' native histograms have them.
 *
 * A histogram counts zeros, and values in buckets (exp_buckets.h): positive ones, and the absolute
 * values of negative ones. There are EXP_MOST_BUCKETS of each at most, from the first to the last
 * one in use. If there were more, the scale is lowered, which makes one bucket of two. The scale is
 * the greatest one that is not above the scale of any row or histogram, and at which the buckets
 * are enough for all values. As more values need no fewer buckets, and bucket i at one scale is
 * bucket i >> d at a scale that is lower by d, the state depends only on the multiset of values and
 * scales, in whatever order they come or are combined (histogram_auto.c has the same argument).
 *
 * Scales are never below EXP_LEAST_SCALE: from -4 on, all doubles need no more buckets than there
 * are.
 *
 * NULLs are skipped. NaN and infinities, for which that data model has no place, are counted apart.
 *
 * The engines have no monoid for it: these are fallback aggregates. exp_histogram_read.c has what
 * needs the type gpuagg_state: the final function, and that of gpu_exp_histogram_merge.
 */
#include "postgres.h"

#include <float.h>
#include <math.h>

#include "common/int.h"
#include "fmgr.h"
#include "libpq/pqformat.h"
#include "miscadmin.h"

#include "aggregates/aggcall.h"
#include "aggregates/exp_buckets.h"
#include "aggregates/exp_histogram.h"
#include "aggregates/portable.h"

PG_FUNCTION_INFO_V1(gpuagg_exp_histogram_transfn);
PG_FUNCTION_INFO_V1(gpuagg_exp_histogram_combine);
PG_FUNCTION_INFO_V1(gpuagg_exp_histogram_serialize);
PG_FUNCTION_INFO_V1(gpuagg_exp_histogram_deserialize);

/* ---- histograms ----------------------------------------------------------------- */

ExpHistogram *
exp_histogram_create(MemoryContext cxt, int scale)
{
	ExpHistogram *h = MemoryContextAllocZero(cxt, sizeof(ExpHistogram));

	h->scale = scale;
	bin_window_init(&h->sides[0], cxt);
	bin_window_init(&h->sides[1], cxt);
	return h;
}

void
exp_histogram_lower_scale(ExpHistogram *h, int scale)
{
	if (scale >= h->scale)
		return;
	bin_window_coarsen(&h->sides[0], h->scale - scale);
	bin_window_coarsen(&h->sides[1], h->scale - scale);
	h->scale = scale;
}

/* Adds to the number of values. Raises an error if it overflows. */
static void
count_values(ExpHistogram *h, int64 count)
{
	if (pg_add_s64_overflow(h->values, count, &h->values))
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE), errmsg("bigint out of range")));
}

void
exp_histogram_add_values(ExpHistogram *h, int64 *number, int64 count)
{
	/* no number is above the sum of all */
	count_values(h, count);
	*number += count;
}

/* Lowers the scale so that a bucket, of the current scale, fits. Returns what becomes of it. */
static int64
fit_bucket(ExpHistogram *h, int side, int64 bucket)
{
	int shift = bin_window_shift_with(&h->sides[side], bucket, EXP_MOST_BUCKETS);

	if (shift > 0)
		exp_histogram_lower_scale(h, h->scale - shift);
	return bucket >> shift;
}

void
exp_histogram_add(ExpHistogram *h, int side, int64 bucket, int64 count)
{
	const BinWindow *buckets = &h->sides[side];

	if (bucket < buckets->first || bucket > buckets->last)
		bucket = fit_bucket(h, side, bucket);
	count_values(h, count);
	/* no count is above the number of values */
	if (bucket >= buckets->first && bucket <= buckets->last)
		*bin_window_at(buckets, bucket) += count;
	else
		bin_window_add(&h->sides[side], bucket, count);
}

/* Adds the values of *from to *to. */
static void
merge(ExpHistogram *to, const ExpHistogram *from)
{
	exp_histogram_add_values(to, &to->zeros, from->zeros);
	exp_histogram_add_values(to, &to->infinite[0], from->infinite[0]);
	exp_histogram_add_values(to, &to->infinite[1], from->infinite[1]);
	exp_histogram_add_values(to, &to->nans, from->nans);
	exp_histogram_lower_scale(to, from->scale);
	for (int side = 0; side < 2; side++)
	{
		const BinWindow *buckets = &from->sides[side];

		for (int64 bucket = buckets->first; bucket <= buckets->last; bucket++)
			if (*bin_window_at(buckets, bucket) != 0)
				exp_histogram_add(to, side, bucket >> (from->scale - to->scale),
								  *bin_window_at(buckets, bucket));
	}
}

/* ---- aggregates ------------------------------------------------------------------ */

void
exp_histogram_check_scale(const char *function, int scale)
{
	if (scale < EXP_LEAST_SCALE || scale > EXP_MOST_SCALE)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("scale of %s must be between %d and %d", function, EXP_LEAST_SCALE,
						EXP_MOST_SCALE),
				 errdetail("It is %d.", scale),
				 errhint("Each power of two has 2 ^ scale buckets.")));
}

/* Adds so many rows with a value. */
static void
add_value(ExpHistogram *h, double x, int64 count)
{
	if (isnan(x))
		exp_histogram_add_values(h, &h->nans, count);
	else if (isinf(x))
		exp_histogram_add_values(h, &h->infinite[x > 0], count);
	else if (x == 0)
		exp_histogram_add_values(h, &h->zeros, count);
	else
		exp_histogram_add(h, x > 0, exp_bucket(fabs(x), h->scale), count);
}

/* Transition function of gpu_exp_histogram: (state, x, scale). Skips NULL values. */
Datum
gpuagg_exp_histogram_transfn(PG_FUNCTION_ARGS)
{
	MemoryContext cxt = aggregate_context(fcinfo);
	ExpHistogram *h = aggregate_state(fcinfo, 0);

	if (PG_ARGISNULL(1))
		RETURN_STATE_UNCHANGED();
	if (PG_ARGISNULL(2))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("scale of %s must not be null", "gpu_exp_histogram")));
	exp_histogram_check_scale("gpu_exp_histogram", PG_GETARG_INT32(2));
	if (h == NULL)
		h = exp_histogram_create(cxt, PG_GETARG_INT32(2));
	exp_histogram_lower_scale(h, PG_GETARG_INT32(2));
	add_value(h, PG_GETARG_FLOAT8(1), 1);
	PG_RETURN_POINTER(h);
}

/* Step of gpu_exp_histogram: (x, scale). */
static bool
step(Datum state, const NullableDatum *args)
{
	ExpHistogram *h = (ExpHistogram *) DatumGetPointer(state);

	if (args[0].isnull || args[1].isnull || DatumGetInt32(args[1].value) < h->scale ||
		DatumGetInt32(args[1].value) > EXP_MOST_SCALE)
		return false;
	add_value(h, DatumGetFloat8(args[0].value), 1);
	return true;
}

AggStep
exp_histogram_step(const FmgrInfo *transfn)
{
	return transfn->fn_addr == gpuagg_exp_histogram_transfn ? step : NULL;
}

static bool
takes_scale(Datum scale)
{
	return DatumGetInt32(scale) >= EXP_LEAST_SCALE && DatumGetInt32(scale) <= EXP_MOST_SCALE;
}

static void *
create_for_tally(MemoryContext cxt, Oid type, Oid collation, Datum scale)
{
	return exp_histogram_create(cxt, DatumGetInt32(scale));
}

static void
add_counted(void *state, Datum value, int64 count)
{
	add_value(state, DatumGetFloat8(value), count);
}

/* The buckets decide which scale they have. */
static void
narrow(void *state, const double *values, int64 n, int64 rows)
{
	for (int64 i = 0; i < n; i++)
		add_value(state, values[i], 0);
}

static bool
in_one_bin(void *state, double first, int64 from, double last, int64 to)
{
	const ExpHistogram *h = state;

	return isfinite(first) && isfinite(last) && first != 0 && last != 0 &&
		(first > 0) == (last > 0) &&
		exp_bucket(fabs(first), h->scale) == exp_bucket(fabs(last), h->scale);
}

static size_t
state_bytes(Datum scale, int64 values)
{
	return sizeof(ExpHistogram) + 2 * bin_window_most_bytes(EXP_MOST_BUCKETS);
}

const AggTally *
exp_histogram_tally(const FmgrInfo *transfn)
{
	static const AggTally tally = {
		takes_scale,      create_for_tally,        add_counted, NULL, state_bytes,
		.narrow = narrow, .in_one_bin = in_one_bin};

	return transfn->fn_addr == gpuagg_exp_histogram_transfn ? &tally : NULL;
}

ExpHistogram *
exp_histogram_combine(MemoryContext cxt, ExpHistogram *to, const ExpHistogram *from)
{
	CHECK_FOR_INTERRUPTS();
	if (to == NULL)
		to = exp_histogram_create(cxt, from->scale);
	merge(to, from);
	return to;
}

/* Combine function of gpu_exp_histogram. */
Datum
gpuagg_exp_histogram_combine(PG_FUNCTION_ARGS)
{
	MemoryContext cxt = aggregate_context(fcinfo);

	if (PG_ARGISNULL(1))
		RETURN_STATE_UNCHANGED();
	PG_RETURN_POINTER(
		exp_histogram_combine(cxt, aggregate_state(fcinfo, 0), aggregate_state(fcinfo, 1)));
}

/* ---- states ------------------------------------------------------------------------ */

bytea *
exp_histogram_serialized(const ExpHistogram *h)
{
	StringInfoData buf;

	pq_begintypsend(&buf);
	pq_sendint32(&buf, h->scale);
	pq_sendint64(&buf, h->zeros);
	pq_sendint64(&buf, h->infinite[0]);
	pq_sendint64(&buf, h->infinite[1]);
	pq_sendint64(&buf, h->nans);
	for (int side = 0; side < 2; side++)
	{
		pq_sendint32(&buf, (int32) h->sides[side].first);
		pq_sendint32(&buf, (int32) bin_window_width(&h->sides[side]));
		bin_window_put(&buf, &h->sides[side]);
	}
	return pq_endtypsend(&buf);
}

/* Serialization function of gpu_exp_histogram. */
Datum
gpuagg_exp_histogram_serialize(PG_FUNCTION_ARGS)
{
	aggregate_context(fcinfo);
	PG_RETURN_BYTEA_P(exp_histogram_serialized((ExpHistogram *) PG_GETARG_POINTER(0)));
}

/*
 * Deserialization function of gpu_exp_histogram. States may come from anywhere, so
 * everything that is read is checked.
 */
Datum
gpuagg_exp_histogram_deserialize(PG_FUNCTION_ARGS)
{
	StringInfoData buf;
	ExpHistogram *h;
	int scale;

	aggregate_context(fcinfo);
	portable_read(&buf, PG_GETARG_BYTEA_PP(0));
	scale = (int) pq_getmsgint(&buf, 4);
	if (scale < EXP_LEAST_SCALE || scale > EXP_MOST_SCALE)
		portable_invalid("scale");
	h = exp_histogram_create(CurrentMemoryContext, scale);
	h->zeros = portable_add_rows(&buf, &h->values);
	h->infinite[0] = portable_add_rows(&buf, &h->values);
	h->infinite[1] = portable_add_rows(&buf, &h->values);
	h->nans = portable_add_rows(&buf, &h->values);
	for (int side = 0; side < 2; side++)
	{
		int64 first = (int32) pq_getmsgint(&buf, 4);
		int n = portable_get_count(&buf, sizeof(int64), EXP_MOST_BUCKETS, "number of buckets");

		if (n == 0 ? first != 0 :
					 first < exp_bucket(DBL_TRUE_MIN, scale) ||
					first + n - 1 > exp_bucket(DBL_MAX, scale))
			portable_invalid("bucket");
		bin_window_get(&buf, &h->sides[side], first, n, &h->values);
	}
	pq_getmsgend(&buf);
	PG_RETURN_POINTER(h);
}
