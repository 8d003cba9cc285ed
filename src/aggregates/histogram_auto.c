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
 * If (a) allows half the width, more than nbins bins of it would be needed. So the width is less
 * than 2 * (greatest - least) / (nbins - 1), or the least one that (a) allows.
 *
 * NULLs, NaN and infinities are counted apart. -0 is 0.
 *
 * The engines have no monoid for it: it is a fallback aggregate. histogram_auto_read.c has its
 * final function.
 */
#include "postgres.h"

#include <math.h>

#include "common/int.h"
#include "fmgr.h"
#include "libpq/pqformat.h"
#include "utils/float.h"

#include "aggregates/aggcall.h"
#include "aggregates/histogram.h"
#include "aggregates/histogram_auto.h"
#include "aggregates/portable.h"

PG_FUNCTION_INFO_V1(gpuagg_histogram_auto_transfn);
PG_FUNCTION_INFO_V1(gpuagg_histogram_auto_combine);
PG_FUNCTION_INFO_V1(gpuagg_histogram_auto_serialize);
PG_FUNCTION_INFO_V1(gpuagg_histogram_auto_deserialize);

#define LEAST_BINS 2
#define LEAST_EXPONENT (-1074)

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

/* Adds so many rows with a value that is not NULL. */
static void
add_value(AutoHistogram *h, double x, int64 count)
{
	h->values += count;
	if (isnan(x))
		h->nans += count;
	else if (isinf(x))
		h->infinite[x > 0] += count;
	else
	{
		/* removes the sign of zero */
		x += 0.0;
		if (x < h->min || x > h->max)
			extend_range(h, x, x, LEAST_EXPONENT);
		bin_window_add(&h->bins, bin_of(x, h->exponent), count);
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
		ereport(
			ERROR,
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
	AutoHistogram *h = PG_ARGISNULL(0) ? create_state(cxt, nbins) : aggregate_state(fcinfo, 0);

	if (h->nbins != nbins)
		report_changed_nbins();
	if (PG_ARGISNULL(1))
		h->nulls++;
	else
		add_value(h, PG_GETARG_FLOAT8(1), 1);
	PG_RETURN_POINTER(h);
}

static bool
takes_nbins(Datum nbins)
{
	return DatumGetInt32(nbins) >= LEAST_BINS && DatumGetInt32(nbins) <= HISTOGRAM_MAX_BINS;
}

static void *
create_for_tally(MemoryContext cxt, Oid type, Oid collation, Datum nbins)
{
	return create_state(cxt, DatumGetInt32(nbins));
}

static void
add_counted(void *state, Datum value, int64 count)
{
	add_value(state, DatumGetFloat8(value), count);
}

static void
add_nulls(void *state, int64 count)
{
	((AutoHistogram *) state)->nulls += count;
}

/* The range decides how wide bins are. */
static void
narrow(void *state, const double *values, int64 n, int64 rows)
{
	for (int64 i = 0; i < n; i++)
		add_value(state, values[i], 0);
}

static bool
in_one_bin(void *state, double first, int64 from, double last, int64 to)
{
	const AutoHistogram *h = state;

	return isfinite(first) && isfinite(last) &&
		bin_of(first, h->exponent) == bin_of(last, h->exponent);
}

static size_t
state_bytes(Datum nbins, int64 values)
{
	/* a window that doubles its bins is there twice for a moment */
	return sizeof(AutoHistogram) +
		2 * bin_window_most_bytes(values < 2 ? values : DatumGetInt32(nbins));
}

const AggTally *
histogram_auto_tally(const FmgrInfo *transfn)
{
	static const AggTally tally = {
		takes_nbins,      create_for_tally,        add_counted, add_nulls, state_bytes,
		.narrow = narrow, .in_one_bin = in_one_bin};

	return transfn->fn_addr == gpuagg_histogram_auto_transfn ? &tally : NULL;
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
	AutoHistogram *to = aggregate_state(fcinfo, 0);
	AutoHistogram *from = aggregate_state(fcinfo, 1);

	if (from == NULL)
		RETURN_STATE_UNCHANGED();
	if (to == NULL)
		to = create_state(cxt, from->nbins);
	else if (to->nbins != from->nbins)
		report_changed_nbins();
	merge_values(to, from);
	PG_RETURN_POINTER(to);
}

bytea *
histogram_auto_serialized(const AutoHistogram *h)
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
	PG_RETURN_BYTEA_P(histogram_auto_serialized((AutoHistogram *) PG_GETARG_POINTER(0)));
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
	(void) portable_add_rows(&buf, &h->nulls);
	h->infinite[0] = portable_add_rows(&buf, &h->values);
	h->infinite[1] = portable_add_rows(&buf, &h->values);
	h->nans = portable_add_rows(&buf, &h->values);
	get_bins(&buf, h);
	if (h->values == 0 && h->nulls == 0)
		portable_invalid("count");
	pq_getmsgend(&buf);
	PG_RETURN_POINTER(h);
}
