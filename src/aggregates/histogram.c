/*
 * histogram.c
 *	  gpu_histogram as an ordinary aggregate, and gpu_histogram_bins.
 *
 * The transition state holds the parameters and one count or sum for each bin.
 * It is created by the first row that counts, in the aggregate's context, and
 * updated in place.  Rows whose value (or weight) is NULL do not count, whatever
 * their parameters; all others must have the parameters of the first.  The result
 * of a group without rows that count is NULL.
 *
 * Errors are worded like those of core's width_bucket functions.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "funcapi.h"
#include "libpq/pqformat.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/float.h"

#include "aggregates/aggcall.h"
#include "aggregates/histogram.h"
#include "aggregates/state_forms.h"
#include "operators/bins.h"

PG_FUNCTION_INFO_V1(gpuagg_histogram_accum);
PG_FUNCTION_INFO_V1(gpuagg_histogram_accum_weighted);
PG_FUNCTION_INFO_V1(gpuagg_histogram_accum_thresholds);
PG_FUNCTION_INFO_V1(gpuagg_histogram_combine);
PG_FUNCTION_INFO_V1(gpuagg_histogram_serialize);
PG_FUNCTION_INFO_V1(gpuagg_histogram_deserialize);
PG_FUNCTION_INFO_V1(gpuagg_histogram_counts);
PG_FUNCTION_INFO_V1(gpuagg_histogram_weights);
PG_FUNCTION_INFO_V1(gpu_histogram_bins);

typedef struct Histogram
{
	BinSpec		bins;			/* its thresholds, if any, are in the state's context */
	bool		weighted;
	int			width;
	union
	{
		int64	   *counts;
		double	   *weights;
	}			u;
} Histogram;

/* ---- parameters --------------------------------------------------------- */

bool
histogram_uniform_valid(double lo, double hi, int n)
{
	return isfinite(lo) && isfinite(hi) && lo != hi && n >= 1 && n <= HISTOGRAM_MAX_BINS;
}

static void
check_uniform(double lo, double hi, int n)
{
	const char *message;

	if (histogram_uniform_valid(lo, hi, n))
		return;
	if (n <= 0)
		message = "count must be greater than zero";
	else if (n > HISTOGRAM_MAX_BINS)
		message = "count must not be greater than 1000000";
	else if (isnan(lo) || isnan(hi))
		message = "lower bound and upper bound cannot be NaN";
	else if (isinf(lo) || isinf(hi))
		message = "lower and upper bounds must be finite";
	else
		message = "lower bound cannot equal upper bound";
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_ARGUMENT_FOR_WIDTH_BUCKET_FUNCTION),
			 errmsg("%s", message)));
}

/* In PostgreSQL's order, where NaN is the greatest. */
static bool
ascending(const double *t, int n)
{
	for (int i = 1; i < n; i++)
		if (float8_lt(t[i], t[i - 1]))
			return false;
	return true;
}

const double *
histogram_thresholds(ArrayType *array, int *n)
{
	const double *t;

	if (ARR_NDIM(array) != 1 || array_contains_nulls(array))
		return NULL;
	*n = ARR_DIMS(array)[0];
	t = (const double *) ARR_DATA_PTR(array);
	if (*n > HISTOGRAM_MAX_BINS || !ascending(t, *n))
		return NULL;
	return t;
}

static const double *
check_thresholds(ArrayType *array, int *n)
{
	const double *t = histogram_thresholds(array, n);

	if (t)
		return t;
	if (ARR_NDIM(array) > 1)
		ereport(ERROR,
				(errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
				 errmsg("thresholds must be one-dimensional array")));
	if (ARR_NDIM(array) == 0)
		ereport(ERROR,
				(errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
				 errmsg("thresholds array must not be empty")));
	if (array_contains_nulls(array))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("thresholds array must not contain NULLs")));
	if (*n > HISTOGRAM_MAX_BINS)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_ARGUMENT_FOR_WIDTH_BUCKET_FUNCTION),
				 errmsg("thresholds array must not have more than %d elements",
						HISTOGRAM_MAX_BINS)));
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_ARGUMENT_FOR_WIDTH_BUCKET_FUNCTION),
			 errmsg("thresholds array must be sorted in ascending order")));
}

/* ---- states -------------------------------------------------------------- */

/* An empty histogram in `cxt`, with a copy of the thresholds. */
static Histogram *
histogram_create(MemoryContext cxt, const BinSpec *bins, bool weighted)
{
	Histogram  *h = MemoryContextAllocZero(cxt, sizeof(Histogram));

	h->bins = *bins;
	h->weighted = weighted;
	h->width = spec_bins_width(bins);
	h->u.counts = MemoryContextAllocZero(cxt, h->width * sizeof(int64));
	if (bins->kind == BIN_THRESHOLDS)
	{
		double	   *t = MemoryContextAlloc(cxt, bins->n * sizeof(double));

		memcpy(t, bins->thresholds, bins->n * sizeof(double));
		h->bins.thresholds = t;
	}
	return h;
}

static bool
same_parameters(const BinSpec *a, const BinSpec *b)
{
	if (a->kind != b->kind || a->n != b->n)
		return false;
	if (a->kind == BIN_UNIFORM)
		return a->lo == b->lo && a->hi == b->hi;
	return memcmp(a->thresholds, b->thresholds, a->n * sizeof(double)) == 0;
}

static void
check_same_parameters(const BinSpec *a, const BinSpec *b)
{
	if (same_parameters(a, b))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_ARGUMENT_FOR_WIDTH_BUCKET_FUNCTION),
			 a->kind == BIN_UNIFORM ?
			 errmsg("bounds and count must not change within a group") :
			 errmsg("thresholds must not change within a group")));
}

static Histogram *
state_argument(FunctionCallInfo fcinfo, int i)
{
	return PG_ARGISNULL(i) ? NULL : (Histogram *) PG_GETARG_POINTER(i);
}

/* The state for a row with these parameters, which are checked. */
static Histogram *
state_for_row(FunctionCallInfo fcinfo, const BinSpec *bins, bool weighted)
{
	MemoryContext cxt = aggregate_context(fcinfo);
	Histogram  *h = state_argument(fcinfo, 0);

	if (h)
		check_same_parameters(&h->bins, bins);
	else
		h = histogram_create(cxt, bins, weighted);
	return h;
}

/* Reads and checks the bounds in arguments 2 and 3 and the count in 4. */
static void
uniform_arguments(FunctionCallInfo fcinfo, BinSpec *bins)
{
	if (PG_ARGISNULL(2) || PG_ARGISNULL(3) || PG_ARGISNULL(4))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("lower bound, upper bound, and count cannot be null")));
	memset(bins, 0, sizeof(*bins));
	bins->kind = BIN_UNIFORM;
	bins->lo = PG_GETARG_FLOAT8(2);
	bins->hi = PG_GETARG_FLOAT8(3);
	bins->n = PG_GETARG_INT32(4);
	check_uniform(bins->lo, bins->hi, bins->n);
}

/* (internal, value, lo, hi, nbins) */
Datum
gpuagg_histogram_accum(PG_FUNCTION_ARGS)
{
	BinSpec		bins;
	Histogram  *h;

	if (PG_ARGISNULL(1))
		RETURN_STATE_UNCHANGED();
	uniform_arguments(fcinfo, &bins);
	h = state_for_row(fcinfo, &bins, false);
	h->u.counts[gpuagg_bin_uniform(PG_GETARG_FLOAT8(1), bins.lo, bins.hi, bins.n)]++;
	PG_RETURN_POINTER(h);
}

/* (internal, value, lo, hi, nbins, weight) */
Datum
gpuagg_histogram_accum_weighted(PG_FUNCTION_ARGS)
{
	BinSpec		bins;
	Histogram  *h;
	double	   *sum;

	if (PG_ARGISNULL(1) || PG_ARGISNULL(5))
		RETURN_STATE_UNCHANGED();
	uniform_arguments(fcinfo, &bins);
	h = state_for_row(fcinfo, &bins, true);
	sum = &h->u.weights[gpuagg_bin_uniform(PG_GETARG_FLOAT8(1), bins.lo, bins.hi, bins.n)];
	*sum = float8_pl(*sum, PG_GETARG_FLOAT8(5));
	PG_RETURN_POINTER(h);
}

/* (internal, value, thresholds) */
Datum
gpuagg_histogram_accum_thresholds(PG_FUNCTION_ARGS)
{
	BinSpec		bins = {BIN_THRESHOLDS};
	ArrayType  *array;
	Histogram  *h;

	if (PG_ARGISNULL(1))
		RETURN_STATE_UNCHANGED();
	if (PG_ARGISNULL(2))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("thresholds array cannot be null")));
	array = PG_GETARG_ARRAYTYPE_P(2);
	bins.thresholds = check_thresholds(array, &bins.n);
	h = state_for_row(fcinfo, &bins, false);
	h->u.counts[gpuagg_bin_thresholds(PG_GETARG_FLOAT8(1), bins.thresholds, bins.n)]++;
	PG_FREE_IF_COPY(array, 2);
	PG_RETURN_POINTER(h);
}

Datum
gpuagg_histogram_combine(PG_FUNCTION_ARGS)
{
	MemoryContext cxt = aggregate_context(fcinfo);
	Histogram  *a = state_argument(fcinfo, 0);
	Histogram  *b = state_argument(fcinfo, 1);

	if (b == NULL)
		RETURN_STATE_UNCHANGED();
	if (a == NULL)
		a = histogram_create(cxt, &b->bins, b->weighted);
	check_same_parameters(&a->bins, &b->bins);
	for (int i = 0; i < a->width; i++)
	{
		if (a->weighted)
			a->u.weights[i] = float8_pl(a->u.weights[i], b->u.weights[i]);
		else
			a->u.counts[i] += b->u.counts[i];
	}
	PG_RETURN_POINTER(a);
}

/* Bytes for another process of the same server: the struct, thresholds, bins. */
Datum
gpuagg_histogram_serialize(PG_FUNCTION_ARGS)
{
	Histogram  *h = (Histogram *) PG_GETARG_POINTER(0);
	StringInfoData buf;

	aggregate_context(fcinfo);
	pq_begintypsend(&buf);
	pq_sendbytes(&buf, (char *) h, sizeof(*h));
	if (h->bins.kind == BIN_THRESHOLDS)
		pq_sendbytes(&buf, (char *) h->bins.thresholds, h->bins.n * sizeof(double));
	pq_sendbytes(&buf, (char *) h->u.counts, h->width * sizeof(int64));
	PG_RETURN_BYTEA_P(pq_endtypsend(&buf));
}

Datum
gpuagg_histogram_deserialize(PG_FUNCTION_ARGS)
{
	bytea	   *data = PG_GETARG_BYTEA_PP(0);
	const char *p = VARDATA_ANY(data);
	Histogram	head;
	double	   *thresholds = NULL;
	Histogram  *h;

	aggregate_context(fcinfo);
	memcpy(&head, p, sizeof(head));
	p += sizeof(head);
	if (head.bins.kind == BIN_THRESHOLDS)
	{
		thresholds = palloc(head.bins.n * sizeof(double));
		memcpy(thresholds, p, head.bins.n * sizeof(double));
		p += head.bins.n * sizeof(double);
		head.bins.thresholds = thresholds;
	}
	h = histogram_create(CurrentMemoryContext, &head.bins, head.weighted);
	memcpy(h->u.counts, p, h->width * sizeof(int64));
	PG_RETURN_POINTER(h);
}

/* ---- results -------------------------------------------------------------- */

Datum
histogram_count_array(const int64 *counts, int width)
{
	return form_array(INT8OID, counts, width);
}

Datum
histogram_weight_array(const double *weights, int width)
{
	Datum		array = form_array(FLOAT8OID, weights, width);
	double	   *w = (double *) ARR_DATA_PTR((ArrayType *) DatumGetPointer(array));

	/* an empty bin shows 0, also where sums start at -0 */
	for (int i = 0; i < width; i++)
		w[i] += 0.0;
	return array;
}

Datum
gpuagg_histogram_counts(PG_FUNCTION_ARGS)
{
	Histogram  *h = state_argument(fcinfo, 0);

	if (h == NULL)
		PG_RETURN_NULL();
	PG_RETURN_DATUM(histogram_count_array(h->u.counts, h->width));
}

Datum
gpuagg_histogram_weights(PG_FUNCTION_ARGS)
{
	Histogram  *h = state_argument(fcinfo, 0);

	if (h == NULL)
		PG_RETURN_NULL();
	PG_RETURN_DATUM(histogram_weight_array(h->u.weights, h->width));
}

/* ---- gpu_histogram_bins ----------------------------------------------------- */

#define BAR_CHARS 40

/*
 * A bar of `share` (0 to 1) of BAR_CHARS characters, in eighths of a block; where
 * the encoding has no blocks, in number signs.  Any share above 0 has a bar.
 */
static text *
make_bar(double share)
{
	StringInfoData buf;
	bool		blocks = GetDatabaseEncoding() == PG_UTF8;
	int			parts = blocks ? 8 : 1;
	int			length;

	initStringInfo(&buf);
	length = share > 0 ? Max((int) rint(share * BAR_CHARS * parts), 1) : 0;
	for (int i = 0; i < length / parts; i++)
		appendStringInfoString(&buf, blocks ? "\342\226\210" : "#");
	if (length % parts)
	{
		/* U+2589 is seven eighths, U+258F is one */
		appendStringInfoString(&buf, "\342\226");
		appendStringInfoChar(&buf, (char) (0x8F - (length % parts - 1)));
	}
	return cstring_to_text_with_len(buf.data, buf.len);
}

/* Boundary i of n bins between lo and hi: lo for 0, hi for n. */
static double
bin_edge(double lo, double hi, int n, int i)
{
	double		weighted = lo * (n - i) + hi * i;

	/* one rounding at the end shows -0.9, not -0.8999999999999999 */
	if (isfinite(weighted))
		return weighted / n;
	return lo * ((double) (n - i) / n) + hi * ((double) i / n);
}

/* Sets the bounds of bin `bin` of 0 .. n + 1 so that *lower < *upper. */
static void
bin_bounds(double lo, double hi, int n, int bin, double *lower, double *upper)
{
	bool		down = lo > hi;
	double		outside = get_float8_infinity();
	double		first = bin == 0 ? (down ? outside : -outside) : bin_edge(lo, hi, n, bin - 1);
	double		second = bin == n + 1 ? (down ? -outside : outside) : bin_edge(lo, hi, n, bin);

	*lower = down ? second : first;
	*upper = down ? first : second;
}

/* The array's values as doubles, NULLs as 0. */
static double *
bar_lengths(Oid elemtype, const Datum *values, const bool *nulls, int n)
{
	double	   *length = palloc(n * sizeof(double));

	for (int i = 0; i < n; i++)
		length[i] = nulls[i] ? 0 : elemtype == INT8OID ?
			(double) DatumGetInt64(values[i]) : DatumGetFloat8(values[i]);
	return length;
}

Datum
gpu_histogram_bins(PG_FUNCTION_ARGS)
{
	double		lo = PG_GETARG_FLOAT8(0);
	double		hi = PG_GETARG_FLOAT8(1);
	ArrayType  *array = PG_GETARG_ARRAYTYPE_P(2);
	Oid			elemtype = ARR_ELEMTYPE(array);
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	Datum	   *counts;
	bool	   *nulls;
	double	   *length;
	double		longest = 0;
	int			n;

	if (elemtype != INT8OID && elemtype != FLOAT8OID)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("counts must be of type bigint[] or double precision[]")));
	if (ARR_NDIM(array) != 1 || ARR_DIMS(array)[0] < 3)
		ereport(ERROR,
				(errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
				 errmsg("counts must be a one-dimensional array of at least three elements")));
	deconstruct_array(array, elemtype, 8, true, TYPALIGN_DOUBLE, &counts, &nulls, &n);
	check_uniform(lo, hi, n - 2);
	length = bar_lengths(elemtype, counts, nulls, n);
	for (int i = 0; i < n; i++)
		if (length[i] > longest)
			longest = length[i];

	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; i < n; i++)
	{
		double		lower,
					upper;
		Datum		row[5];
		bool		rownulls[5] = {false, false, false, nulls[i], false};

		bin_bounds(lo, hi, n - 2, i, &lower, &upper);
		row[0] = Int32GetDatum(i);
		row[1] = Float8GetDatum(lower);
		row[2] = Float8GetDatum(upper);
		row[3] = counts[i];
		/* infinity over infinity is a full bar */
		row[4] = PointerGetDatum(make_bar(length[i] == longest && longest > 0 ? 1.0 :
										  length[i] > 0 ? length[i] / longest : 0.0));
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, row, rownulls);
		CHECK_FOR_INTERRUPTS();
	}
	return (Datum) 0;
}
