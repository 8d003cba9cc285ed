/*
 * histogram.c
 *	  gpu_histogram, gpu_histogram_log and gpu_histogram2d as ordinary aggregates.
 *
 * The transition state has the parameters and one count or sum for each bin. The first row that
 * counts creates it in the aggregate's context; other rows update it in place. Rows whose value (or
 * weight) is NULL do not count, whatever their parameters. All others must have the parameters of
 * the first one. The result is NULL if no row counts.
 *
 * A log-spaced histogram has thresholds, the edges of its bins. lo and hi of its BinSpec are the
 * parameters from which they were computed.
 *
 * A histogram of two dimensions has a grid of bins: the bins of x times those of y, by rows of x.
 *
 * Errors are worded like those of core's width_bucket functions, with the names of the SQL function
 * and of its arguments.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "common/int.h"
#include "fmgr.h"
#include "libpq/pqformat.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/float.h"

#include "aggregates/aggcall.h"
#include "aggregates/histogram.h"
#include "aggregates/portable.h"
#include "aggregates/state_forms.h"
#include "analysis/width_bucket.h"
#include "operators/bins.h"
#include "operators/log_edges.h"

PG_FUNCTION_INFO_V1(gpuagg_histogram_accum);
PG_FUNCTION_INFO_V1(gpuagg_histogram_accum_weighted);
PG_FUNCTION_INFO_V1(gpuagg_histogram_accum_thresholds);
PG_FUNCTION_INFO_V1(gpuagg_histogram_combine);
PG_FUNCTION_INFO_V1(gpuagg_histogram_serialize);
PG_FUNCTION_INFO_V1(gpuagg_histogram_deserialize);
PG_FUNCTION_INFO_V1(gpuagg_histogram_counts);
PG_FUNCTION_INFO_V1(gpuagg_histogram_weights);
PG_FUNCTION_INFO_V1(gpuagg_histogram_accum_log);
PG_FUNCTION_INFO_V1(gpuagg_histogram2d_accum);
PG_FUNCTION_INFO_V1(gpuagg_histogram2d_accum_weighted);
PG_FUNCTION_INFO_V1(gpuagg_histogram2d_counts);
PG_FUNCTION_INFO_V1(gpuagg_histogram2d_weights);
PG_FUNCTION_INFO_V1(gpu_histogram_log_thresholds);

/* The transition state. */
typedef struct Histogram
{
	BinSpec bins; /* its thresholds, if any, are in the state's context */
	BinSpec y;    /* BIN_NONE: the histogram has one dimension */
	bool weighted;
	bool log; /* a state of gpu_histogram_log */
	int width;
	union
	{
		int64 *counts;
		double *weights;
	} u;
} Histogram;

/* ---- parameters --------------------------------------------------------- */

bool
histogram_uniform_valid(double lo, double hi, int n)
{
	return isfinite(lo) && isfinite(hi) && lo != hi && n >= 1 && n <= HISTOGRAM_MAX_BINS;
}

/* Raises the error `message`, with a hint about the bounds of equal or log-spaced bins. */
static void
report_invalid_bounds(char *message, bool log)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_ARGUMENT_FOR_WIDTH_BUCKET_FUNCTION), errmsg("%s", message),
			 log ? errhint("There are nbins bins from lo up to hi, each wider than the one before "
						   "by the same factor.") :
				   errhint("There are nbins equal bins from lo to hi, upwards or downwards.")));
}

/*
 * Raises an error if the parameters are invalid for both kinds of bins. most: maximum number of
 * bins.
 */
static void
check_bounds(const char *function, double lo, double hi, int n, int most, bool log)
{
	if (n <= 0)
		report_invalid_bounds(psprintf("nbins of %s must be greater than zero", function), log);
	if (n > most)
		report_invalid_bounds(psprintf("nbins of %s must not be greater than %d", function, most),
							  log);
	if (isnan(lo) || isnan(hi))
		report_invalid_bounds(psprintf("lo and hi of %s cannot be NaN", function), log);
	if (isinf(lo) || isinf(hi))
		report_invalid_bounds(psprintf("lo and hi of %s must be finite", function), log);
}

void
histogram_check_uniform(const char *function, double lo, double hi, int n)
{
	check_bounds(function, lo, hi, n, HISTOGRAM_MAX_BINS, false);
	if (lo == hi)
		report_invalid_bounds(psprintf("lo of %s cannot equal hi", function), false);
}

bool
histogram_grid_fits(int nx, int ny)
{
	return (nx + 2) * (int64) (ny + 2) <= HISTOGRAM_MAX_BINS;
}

void
histogram_check_grid(const char *function, const BinSpec *x, const BinSpec *y)
{
	histogram_check_uniform(psprintf("%s over x", function), x->lo, x->hi, x->n);
	histogram_check_uniform(psprintf("%s over y", function), y->lo, y->hi, y->n);
	if (!histogram_grid_fits(x->n, y->n))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_ARGUMENT_FOR_WIDTH_BUCKET_FUNCTION),
				 errmsg("bins of %s must not be more than %d", function, HISTOGRAM_MAX_BINS),
				 errdetail("(nx + 2) * (ny + 2) is %lld.", (x->n + 2) * (long long) (y->n + 2))));
}

int
histogram_formula(double lo, double hi, int n)
{
	GpuaggBinFormula formula = core_bin_formula();

	/* before release 16, core's width_bucket has no sensible result where the product overflows */
	return formula == GPUAGG_BINS_PRODUCT && !gpuagg_bins_valid(lo, hi, n, formula) ?
		GPUAGG_BINS_QUOTIENT :
		formula;
}

int
histogram_uniform_bin(const BinSpec *bins, double x)
{
	int bin;

	if (likely(bins->formula < GPUAGG_BIN_FORMULAS))
		return gpuagg_bin_uniform(x, bins->lo, bins->hi, bins->n, bins->formula);
	if (isnan(x))
		return bins->lo < bins->hi ? bins->n + 1 : 0;
	bin = core_width_bucket(x, bins->lo, bins->hi, bins->n);
	return Min(Max(bin, 0), bins->n + 1);
}

bool
histogram_log_valid(double lo, double hi, int n)
{
	return isfinite(lo) && isfinite(hi) && lo > 0 && lo < hi && n >= 1 &&
		n <= HISTOGRAM_MAX_LOG_BINS;
}

void
histogram_check_log(const char *function, double lo, double hi, int n)
{
	check_bounds(function, lo, hi, n, HISTOGRAM_MAX_LOG_BINS, true);
	if (lo <= 0)
		report_invalid_bounds(psprintf("lo of %s must be greater than zero", function), true);
	if (lo >= hi)
		report_invalid_bounds(psprintf("lo of %s must be less than hi", function), true);
}

double *
histogram_log_thresholds(double lo, double hi, int n)
{
	double *t = palloc((n + 1) * sizeof(double));
	gpuagg_log_range range = gpuagg_log_range_of(lo, hi, n);

	for (int i = 0; i <= n; i++)
	{
		t[i] = gpuagg_log_edge(&range, i);
		if (i % 1024 == 0)
			CHECK_FOR_INTERRUPTS();
	}
	return t;
}

/*
 * Returns whether the values ascend in PostgreSQL's order, in which NaN is the greatest; equal
 * neighbours are allowed.
 */
static bool
is_ascending(const double *t, int n)
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
	if (*n > HISTOGRAM_MAX_BINS || !is_ascending(t, *n))
		return NULL;
	return t;
}

const double *
histogram_check_thresholds(const char *function, ArrayType *array, int *n)
{
	const double *t = histogram_thresholds(array, n);

	if (t)
		return t;
	if (ARR_NDIM(array) > 1)
		ereport(ERROR,
				(errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
				 errmsg("thresholds of %s must be a one-dimensional array", function)));
	if (ARR_NDIM(array) == 0)
		ereport(ERROR,
				(errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
				 errmsg("thresholds of %s must not be empty", function),
				 errhint("One threshold makes two bins: values below it, and all others.")));
	if (array_contains_nulls(array))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("thresholds of %s must not contain nulls", function)));
	if (*n > HISTOGRAM_MAX_BINS)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_ARGUMENT_FOR_WIDTH_BUCKET_FUNCTION),
				 errmsg("thresholds of %s must not have more than %d elements", function,
						HISTOGRAM_MAX_BINS),
				 errdetail("The array has %d elements.", *n)));
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_ARGUMENT_FOR_WIDTH_BUCKET_FUNCTION),
			 errmsg("thresholds of %s must be sorted in ascending order", function),
			 errhint("NaN comes after all other numbers.")));
}

/* ---- states -------------------------------------------------------------- */

/*
 * Creates an empty histogram in `cxt`, with a copy of the thresholds. y: the bins of the second
 * dimension, or NULL.
 */
static Histogram *
histogram_create(MemoryContext cxt, const BinSpec *bins, const BinSpec *y, bool weighted)
{
	Histogram *h = MemoryContextAllocZero(cxt, sizeof(Histogram));

	h->bins = *bins;
	h->weighted = weighted;
	h->width = spec_bins_width(bins);
	if (y && y->kind != BIN_NONE)
	{
		h->y = *y;
		h->y.formula = histogram_formula(y->lo, y->hi, y->n);
		h->width *= spec_bins_width(y);
	}
	h->u.counts = MemoryContextAllocZero(cxt, h->width * sizeof(int64));
	if (bins->kind == BIN_THRESHOLDS)
	{
		double *t = MemoryContextAlloc(cxt, bins->n * sizeof(double));

		memcpy(t, bins->thresholds, bins->n * sizeof(double));
		h->bins.thresholds = t;
	}
	else
		h->bins.formula = histogram_formula(bins->lo, bins->hi, bins->n);
	return h;
}

/* Returns whether two histograms have the same bins. */
static bool
same_parameters(const BinSpec *a, const BinSpec *b)
{
	if (a->kind != b->kind || a->n != b->n)
		return false;
	if (a->kind == BIN_NONE)
		return true;
	if (a->kind == BIN_UNIFORM)
		return a->lo == b->lo && a->hi == b->hi;
	return memcmp(a->thresholds, b->thresholds, a->n * sizeof(double)) == 0;
}

/* Raises an error: rows of one group have different parameters. */
static void
report_changed_parameters(const char *names)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_ARGUMENT_FOR_WIDTH_BUCKET_FUNCTION),
			 errmsg("%s must not change within a group", names),
			 errhint("Add the columns on which they depend to GROUP BY.")));
}

/* Returns the names of the parameters, for error messages. */
static const char *
parameter_names(const Histogram *h)
{
	return h->y.kind != BIN_NONE    ? "bounds and numbers of bins of gpu_histogram2d" :
		h->log                      ? "lo, hi, and nbins of gpu_histogram_log" :
		h->bins.kind == BIN_UNIFORM ? "lo, hi, and nbins of gpu_histogram" :
									  "thresholds of gpu_histogram";
}

/*
 * Returns the state in argument 0, or a new one for the first row. Raises an error if the row's
 * parameters, which are valid, are not those of the state.
 */
static Histogram *
state_for_row(FunctionCallInfo fcinfo, const BinSpec *bins, const BinSpec *y, bool weighted)
{
	MemoryContext cxt = aggregate_context(fcinfo);
	Histogram *h = aggregate_state(fcinfo, 0);

	if (h == NULL)
		return histogram_create(cxt, bins, y, weighted);
	if (!same_parameters(&h->bins, bins) || (y && !same_parameters(&h->y, y)))
		report_changed_parameters(parameter_names(h));
	return h;
}

/*
 * Returns the bounds in arguments 2 and 3 and the number of bins in argument 4. Raises an error if
 * one is NULL.
 */
static BinSpec
bounds_arguments(FunctionCallInfo fcinfo, const char *function)
{
	BinSpec bins = {BIN_UNIFORM};

	if (PG_ARGISNULL(2) || PG_ARGISNULL(3) || PG_ARGISNULL(4))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("lo, hi, and nbins of %s cannot be null", function)));
	bins.lo = PG_GETARG_FLOAT8(2);
	bins.hi = PG_GETARG_FLOAT8(3);
	bins.n = PG_GETARG_INT32(4);
	return bins;
}

/*
 * Returns the parameters of gpu_histogram in arguments 2 to 4. Raises an error if they are
 * invalid.
 */
static BinSpec
uniform_arguments(FunctionCallInfo fcinfo)
{
	BinSpec bins = bounds_arguments(fcinfo, "gpu_histogram");

	histogram_check_uniform("gpu_histogram", bins.lo, bins.hi, bins.n);
	return bins;
}

/* (internal, value, lo, hi, nbins) */
Datum
gpuagg_histogram_accum(PG_FUNCTION_ARGS)
{
	BinSpec bins;
	Histogram *h;

	if (PG_ARGISNULL(1))
		RETURN_STATE_UNCHANGED();
	bins = uniform_arguments(fcinfo);
	h = state_for_row(fcinfo, &bins, NULL, false);
	h->u.counts[histogram_uniform_bin(&h->bins, PG_GETARG_FLOAT8(1))]++;
	PG_RETURN_POINTER(h);
}

/* (internal, value, lo, hi, nbins, weight) */
Datum
gpuagg_histogram_accum_weighted(PG_FUNCTION_ARGS)
{
	BinSpec bins;
	Histogram *h;
	double *sum;

	if (PG_ARGISNULL(1) || PG_ARGISNULL(5))
		RETURN_STATE_UNCHANGED();
	bins = uniform_arguments(fcinfo);
	h = state_for_row(fcinfo, &bins, NULL, true);
	sum = &h->u.weights[histogram_uniform_bin(&h->bins, PG_GETARG_FLOAT8(1))];
	*sum = float8_pl(*sum, PG_GETARG_FLOAT8(5));
	PG_RETURN_POINTER(h);
}

/* (internal, value, thresholds) */
Datum
gpuagg_histogram_accum_thresholds(PG_FUNCTION_ARGS)
{
	BinSpec bins = {BIN_THRESHOLDS};
	ArrayType *array;
	Histogram *h;

	if (PG_ARGISNULL(1))
		RETURN_STATE_UNCHANGED();
	if (PG_ARGISNULL(2))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("thresholds of gpu_histogram cannot be null")));
	array = PG_GETARG_ARRAYTYPE_P(2);
	bins.thresholds = histogram_check_thresholds("gpu_histogram", array, &bins.n);
	h = state_for_row(fcinfo, &bins, NULL, false);
	h->u.counts[gpuagg_bin_thresholds(PG_GETARG_FLOAT8(1), bins.thresholds, bins.n)]++;
	PG_FREE_IF_COPY(array, 2);
	PG_RETURN_POINTER(h);
}

/*
 * Returns the bins of a log-spaced histogram, with their edges. Raises an error if the parameters
 * are invalid. The bins are kept in fn_extra for the next group with the same parameters.
 */
static const BinSpec *
log_bins(FmgrInfo *flinfo, const BinSpec *parameters)
{
	BinSpec *kept = flinfo->fn_extra;
	MemoryContext old;

	if (kept && kept->lo == parameters->lo && kept->hi == parameters->hi &&
		kept->n == parameters->n + 1)
		return kept;
	histogram_check_log("gpu_histogram_log", parameters->lo, parameters->hi, parameters->n);
	old = MemoryContextSwitchTo(flinfo->fn_mcxt);
	if (kept)
		pfree(unconstify(double *, kept->thresholds));
	else
		kept = palloc(sizeof(BinSpec));
	/* no edges until all are computed, which may be cancelled */
	flinfo->fn_extra = NULL;
	*kept = *parameters;
	kept->kind = BIN_THRESHOLDS;
	kept->n = parameters->n + 1;
	kept->thresholds = histogram_log_thresholds(kept->lo, kept->hi, parameters->n);
	flinfo->fn_extra = kept;
	MemoryContextSwitchTo(old);
	return kept;
}

/* (internal, value, lo, hi, nbins) */
Datum
gpuagg_histogram_accum_log(PG_FUNCTION_ARGS)
{
	Histogram *h = aggregate_state(fcinfo, 0);
	BinSpec bins;

	if (PG_ARGISNULL(1))
		RETURN_STATE_UNCHANGED();
	bins = bounds_arguments(fcinfo, "gpu_histogram_log");
	if (h == NULL)
	{
		MemoryContext cxt = aggregate_context(fcinfo);

		h = histogram_create(cxt, log_bins(fcinfo->flinfo, &bins), NULL, false);
		h->log = true;
	}
	else if (bins.lo != h->bins.lo || bins.hi != h->bins.hi || bins.n != h->bins.n - 1)
	{
		histogram_check_log("gpu_histogram_log", bins.lo, bins.hi, bins.n);
		report_changed_parameters(parameter_names(h));
	}
	h->u.counts[gpuagg_bin_thresholds(PG_GETARG_FLOAT8(1), h->bins.thresholds, h->bins.n)]++;
	PG_RETURN_POINTER(h);
}

/*
 * Returns the state for a row of gpu_histogram2d, with the row's bin in *bin. Raises an error if
 * the parameters in arguments 2 to 4 and 6 to 8 are invalid, or not those of the state.
 */
static Histogram *
grid_state_for_row(FunctionCallInfo fcinfo, bool weighted, int *bin)
{
	BinSpec x = {BIN_UNIFORM}, y = {BIN_UNIFORM};
	Histogram *h;

	for (int i = 2; i < 9; i++)
		if (PG_ARGISNULL(i))
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("bounds and numbers of bins of gpu_histogram2d cannot be null")));
	x.lo = PG_GETARG_FLOAT8(2);
	x.hi = PG_GETARG_FLOAT8(3);
	x.n = PG_GETARG_INT32(4);
	y.lo = PG_GETARG_FLOAT8(6);
	y.hi = PG_GETARG_FLOAT8(7);
	y.n = PG_GETARG_INT32(8);
	/* the parameters of a state are valid */
	h = aggregate_state(fcinfo, 0);
	if (h == NULL || !same_parameters(&h->bins, &x) || !same_parameters(&h->y, &y))
	{
		histogram_check_grid("gpu_histogram2d", &x, &y);
		h = state_for_row(fcinfo, &x, &y, weighted);
	}
	*bin = histogram_uniform_bin(&h->bins, PG_GETARG_FLOAT8(1)) * spec_bins_width(&y) +
		histogram_uniform_bin(&h->y, PG_GETARG_FLOAT8(5));
	return h;
}

/* (internal, x, xlo, xhi, nx, y, ylo, yhi, ny) */
Datum
gpuagg_histogram2d_accum(PG_FUNCTION_ARGS)
{
	Histogram *h;
	int bin;

	aggregate_context(fcinfo);
	if (PG_ARGISNULL(1) || PG_ARGISNULL(5))
		RETURN_STATE_UNCHANGED();
	h = grid_state_for_row(fcinfo, false, &bin);
	h->u.counts[bin]++;
	PG_RETURN_POINTER(h);
}

/* (internal, x, xlo, xhi, nx, y, ylo, yhi, ny, weight) */
Datum
gpuagg_histogram2d_accum_weighted(PG_FUNCTION_ARGS)
{
	Histogram *h;
	int bin;

	aggregate_context(fcinfo);
	if (PG_ARGISNULL(1) || PG_ARGISNULL(5) || PG_ARGISNULL(9))
		RETURN_STATE_UNCHANGED();
	h = grid_state_for_row(fcinfo, true, &bin);
	h->u.weights[bin] = float8_pl(h->u.weights[bin], PG_GETARG_FLOAT8(9));
	PG_RETURN_POINTER(h);
}

/*
 * Combine function of histograms of all kinds. Raises an error if the states have different
 * parameters.
 */
Datum
gpuagg_histogram_combine(PG_FUNCTION_ARGS)
{
	MemoryContext cxt = aggregate_context(fcinfo);
	Histogram *a = aggregate_state(fcinfo, 0);
	Histogram *b = aggregate_state(fcinfo, 1);

	if (b == NULL)
		RETURN_STATE_UNCHANGED();
	if (a == NULL)
	{
		a = histogram_create(cxt, &b->bins, &b->y, b->weighted);
		a->log = b->log;
	}
	if (!same_parameters(&a->bins, &b->bins) || !same_parameters(&a->y, &b->y) ||
		a->weighted != b->weighted)
		report_changed_parameters(parameter_names(a));
	for (int i = 0; i < a->width; i++)
	{
		if (a->weighted)
			a->u.weights[i] = float8_pl(a->u.weights[i], b->u.weights[i]);
		else
		{
			if (pg_add_s64_overflow(a->u.counts[i], b->u.counts[i], &a->u.counts[i]))
				ereport(
					ERROR,
					(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE), errmsg("bigint out of range")));
		}
	}
	PG_RETURN_POINTER(a);
}

/* ---- serialized states --------------------------------------------------------- */

enum
{
	STATE_WEIGHTED = 1,
	STATE_THRESHOLDS = 2,
	STATE_LOG = 4,
	STATE_GRID = 8
};

/*
 * See histogram.h. A serialized state is the parameters and then the bins, in network order. A
 * log-spaced histogram is written without its edges.
 */
bytea *
histogram_state(const BinSpec *bins, const BinSpec *y, bool weighted, bool log, const void *values)
{
	bool grid = y->kind != BIN_NONE;
	int width = spec_bins_width(bins) * (grid ? spec_bins_width(y) : 1);
	const uint64 *words = values;
	StringInfoData buf;

	pq_begintypsend(&buf);
	pq_sendbyte(&buf,
				(weighted ? STATE_WEIGHTED : 0) |
					(bins->kind == BIN_THRESHOLDS ? STATE_THRESHOLDS : 0) | (log ? STATE_LOG : 0) |
					(grid ? STATE_GRID : 0));
	pq_sendint32(&buf, bins->n);
	if (bins->kind == BIN_UNIFORM || log)
	{
		pq_sendfloat8(&buf, bins->lo);
		pq_sendfloat8(&buf, bins->hi);
	}
	else
		for (int i = 0; i < bins->n; i++)
			pq_sendfloat8(&buf, bins->thresholds[i]);
	if (grid)
	{
		pq_sendint32(&buf, y->n);
		pq_sendfloat8(&buf, y->lo);
		pq_sendfloat8(&buf, y->hi);
	}
	enlargeStringInfo(&buf, width * sizeof(uint64));
	for (int i = 0; i < width; i++)
		pq_writeint64(&buf, words[i]);
	return pq_endtypsend(&buf);
}

/* Serialization function of histograms of all kinds. */
Datum
gpuagg_histogram_serialize(PG_FUNCTION_ARGS)
{
	Histogram *h = (Histogram *) PG_GETARG_POINTER(0);

	aggregate_context(fcinfo);
	PG_RETURN_BYTEA_P(histogram_state(&h->bins, &h->y, h->weighted, h->log, h->u.counts));
}

/*
 * Returns the bins that a serialized state has, and advances buf to their counts. Raises an error
 * if they are invalid. Edges of log-spaced bins are kept for the next state (log_bins).
 */
static const BinSpec *
read_bins(FunctionCallInfo fcinfo, StringInfo buf, int flags)
{
	BinSpec *bins = palloc0(sizeof(BinSpec));
	double *t;

	bins->n = (int) pq_getmsgint(buf, 4);
	if (!(flags & STATE_THRESHOLDS) || (flags & STATE_LOG))
	{
		bins->kind = BIN_UNIFORM;
		bins->lo = pq_getmsgfloat8(buf);
		bins->hi = pq_getmsgfloat8(buf);
		if (flags & STATE_LOG)
		{
			/* check the length before edges are computed from a few bytes */
			if (bins->n < 2 || bins->n > HISTOGRAM_MAX_BINS ||
				buf->len - buf->cursor != (bins->n + 1) * sizeof(uint64))
				portable_invalid("histogram");
			bins->n--;
			if (!histogram_log_valid(bins->lo, bins->hi, bins->n))
				portable_invalid("histogram");
			return log_bins(fcinfo->flinfo, bins);
		}
		if (!histogram_uniform_valid(bins->lo, bins->hi, bins->n))
			portable_invalid("histogram");
		return bins;
	}
	if (bins->n < 1 || bins->n > HISTOGRAM_MAX_BINS ||
		bins->n > (buf->len - buf->cursor) / (int) sizeof(float8))
		portable_invalid("histogram");
	bins->kind = BIN_THRESHOLDS;
	bins->thresholds = t = palloc(bins->n * sizeof(double));
	for (int i = 0; i < bins->n; i++)
		t[i] = pq_getmsgfloat8(buf);
	if (!is_ascending(t, bins->n))
		portable_invalid("histogram");
	return bins;
}

/*
 * Deserialization function of histograms of all kinds. Raises an error if the bytes are not a
 * valid state.
 */
Datum
gpuagg_histogram_deserialize(PG_FUNCTION_ARGS)
{
	StringInfoData buf;
	Histogram *h;
	int flags;
	const BinSpec *bins;
	BinSpec y = {BIN_NONE};
	int64 width;

	aggregate_context(fcinfo);
	portable_read(&buf, PG_GETARG_BYTEA_PP(0));
	flags = pq_getmsgbyte(&buf);
	if (flags & ~(STATE_WEIGHTED | STATE_THRESHOLDS | STATE_LOG | STATE_GRID) ||
		((flags & STATE_LOG) && flags != (STATE_LOG | STATE_THRESHOLDS)) ||
		((flags & STATE_GRID) && (flags & STATE_THRESHOLDS)))
		portable_invalid("histogram");
	bins = read_bins(fcinfo, &buf, flags);
	width = spec_bins_width(bins);
	if (flags & STATE_GRID)
	{
		y = *read_bins(fcinfo, &buf, 0);
		if (!histogram_grid_fits(bins->n, y.n))
			portable_invalid("histogram");
		width *= spec_bins_width(&y);
	}
	if (buf.len - buf.cursor != width * sizeof(uint64))
		portable_invalid("histogram");
	h = histogram_create(CurrentMemoryContext, bins, &y, flags & STATE_WEIGHTED);
	h->log = flags & STATE_LOG;
	for (int i = 0; i < h->width; i++)
	{
		h->u.counts[i] = pq_getmsgint64(&buf);
		if (!h->weighted && h->u.counts[i] < 0)
			portable_invalid("histogram");
	}
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
	Datum array = form_array(FLOAT8OID, weights, width);
	double *w = (double *) ARR_DATA_PTR((ArrayType *) DatumGetPointer(array));

	/* an empty bin shows 0, also if its sum started at -0 */
	for (int i = 0; i < width; i++)
		w[i] += 0.0;
	return array;
}

Datum
histogram_grid_array(Datum array, const BinSpec *x, const BinSpec *y)
{
	int dims[2] = {spec_bins_width(x), spec_bins_width(y)};
	int bounds[2] = {1, 1};
	ArrayType *flat = DatumGetArrayTypeP(array);
	Oid type = ARR_ELEMTYPE(flat);
	Size bytes = (Size) dims[0] * dims[1] * sizeof(int64);
	Size size = ARR_OVERHEAD_NONULLS(2) + bytes;
	ArrayType *grid = palloc0(size);

	SET_VARSIZE(grid, size);
	grid->ndim = 2;
	grid->elemtype = type;
	memcpy(ARR_DIMS(grid), dims, sizeof(dims));
	memcpy(ARR_LBOUND(grid), bounds, sizeof(bounds));
	memcpy(ARR_DATA_PTR(grid), ARR_DATA_PTR(flat), bytes);
	pfree(flat);
	PG_RETURN_ARRAYTYPE_P(grid);
}

/* Final function of histograms of counts. NULL if no row counts. */
Datum
gpuagg_histogram_counts(PG_FUNCTION_ARGS)
{
	Histogram *h = aggregate_state(fcinfo, 0);

	if (h == NULL)
		PG_RETURN_NULL();
	/* gpuagg_finish() may pass a state of another aggregate */
	if (h->weighted || h->y.kind != BIN_NONE)
		portable_invalid("histogram");
	PG_RETURN_DATUM(histogram_count_array(h->u.counts, h->width));
}

/* Final function of gpu_histogram with weights. NULL if no row counts. */
Datum
gpuagg_histogram_weights(PG_FUNCTION_ARGS)
{
	Histogram *h = aggregate_state(fcinfo, 0);

	if (h == NULL)
		PG_RETURN_NULL();
	if (!h->weighted || h->y.kind != BIN_NONE)
		portable_invalid("histogram");
	PG_RETURN_DATUM(histogram_weight_array(h->u.weights, h->width));
}

/* Final function of gpu_histogram2d. NULL if no row counts. */
Datum
gpuagg_histogram2d_counts(PG_FUNCTION_ARGS)
{
	Histogram *h = aggregate_state(fcinfo, 0);

	if (h == NULL)
		PG_RETURN_NULL();
	if (h->weighted || h->y.kind == BIN_NONE)
		portable_invalid("histogram");
	return histogram_grid_array(histogram_count_array(h->u.counts, h->width), &h->bins, &h->y);
}

/* Final function of gpu_histogram2d with weights. NULL if no row counts. */
Datum
gpuagg_histogram2d_weights(PG_FUNCTION_ARGS)
{
	Histogram *h = aggregate_state(fcinfo, 0);

	if (h == NULL)
		PG_RETURN_NULL();
	if (!h->weighted || h->y.kind == BIN_NONE)
		portable_invalid("histogram");
	return histogram_grid_array(histogram_weight_array(h->u.weights, h->width), &h->bins, &h->y);
}

/* (lo, hi, nbins): returns the edges of a log-spaced histogram */
Datum
gpu_histogram_log_thresholds(PG_FUNCTION_ARGS)
{
	double lo = PG_GETARG_FLOAT8(0);
	double hi = PG_GETARG_FLOAT8(1);
	int n = PG_GETARG_INT32(2);

	histogram_check_log("gpu_histogram_log_thresholds", lo, hi, n);
	PG_RETURN_DATUM(form_array(FLOAT8OID, histogram_log_thresholds(lo, hi, n), n + 1));
}
