/*
 * histogram_read.c
 *	  Functions that read the array of a histogram: gpu_histogram_bins, gpu_histogram_log_bins and
 *	  gpu_histogram_quantile.
 *
 * The array has no information about its bins. The caller also passes the arguments of the
 * histogram.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "funcapi.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/float.h"
#include "utils/tuplestore.h"

#include "aggregates/histogram.h"
#include "operators/select.h"

PG_FUNCTION_INFO_V1(gpu_histogram_bins);
PG_FUNCTION_INFO_V1(gpu_histogram_bins_checked);
PG_FUNCTION_INFO_V1(gpu_histogram_bins_thresholds);
PG_FUNCTION_INFO_V1(gpu_histogram_log_bins);
PG_FUNCTION_INFO_V1(gpu_histogram_quantile);
PG_FUNCTION_INFO_V1(gpu_histogram_quantiles);
PG_FUNCTION_INFO_V1(gpu_histogram_quantile_thresholds);
PG_FUNCTION_INFO_V1(gpu_histogram_quantiles_thresholds);

/* The array of a histogram, of bigint or double precision. */
typedef struct Counts
{
	const char *function; /* for error messages */
	Oid elemtype;
	int n;
	Datum *values;
	bool *nulls;
	double *numbers; /* the values as doubles; NULLs are 0 */
} Counts;

/* ---- arguments ------------------------------------------------------------ */

/*
 * Returns the array in argument `arg`. Raises an error if it is not a histogram of at least
 * `least` elements. function: name of the SQL function, for errors.
 */
static Counts
read_counts(FunctionCallInfo fcinfo, int arg, const char *function, int least)
{
	ArrayType *array = PG_GETARG_ARRAYTYPE_P(arg);
	Counts c = {function, ARR_ELEMTYPE(array)};

	if (c.elemtype != INT8OID && c.elemtype != FLOAT8OID)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("counts of %s must be of type bigint[] or double precision[]", function)));
	if (ARR_NDIM(array) != 1)
		ereport(ERROR,
				(errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
				 ARR_NDIM(array) == 0 ?
					 errmsg("counts of %s must not be empty", function) :
					 errmsg("counts of %s must be a one-dimensional array", function)));
	deconstruct_array(array, c.elemtype, 8, true, TYPALIGN_DOUBLE, &c.values, &c.nulls, &c.n);
	if (c.n < least)
		ereport(ERROR,
				(errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
				 errmsg("counts of %s must have at least %d elements", function, least),
				 errdetail("The array has %d elements.", c.n),
				 errhint("The first element counts values before the bins, the last one values "
						 "after them.")));
	c.numbers = palloc(c.n * sizeof(double));
	for (int i = 0; i < c.n; i++)
		c.numbers[i] = c.nulls[i] ? 0 :
			c.elemtype == INT8OID ? (double) DatumGetInt64(c.values[i]) :
									DatumGetFloat8(c.values[i]);
	return c;
}

/* Raises an error if the number of counts does not match the bins. */
static void
check_length(const Counts *c, const BinSpec *bins, const char *parameters)
{
	int width = spec_bins_width(bins);

	if (c->n != width)
		ereport(ERROR,
				(errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
				 errmsg("counts of %s do not match %s", c->function, parameters),
				 errdetail("A histogram of %d %s has %d elements, not %d.", bins->n,
						   bins->kind == BIN_UNIFORM ? "bins" : "thresholds", width, c->n),
				 errhint("Call %s with the arguments of the histogram.", c->function)));
}

/* Returns equal bins between the bounds in arguments 0 and 1; the counts determine their number. */
static BinSpec
uniform_bins(FunctionCallInfo fcinfo, const Counts *c)
{
	BinSpec bins = {BIN_UNIFORM, PG_GETARG_FLOAT8(0), PG_GETARG_FLOAT8(1), c->n - 2};

	histogram_check_uniform(c->function, bins.lo, bins.hi, bins.n);
	bins.formula = histogram_formula(bins.lo, bins.hi, bins.n);
	return bins;
}

/* Returns bins between the thresholds in argument 0. */
static BinSpec
threshold_bins(FunctionCallInfo fcinfo, const Counts *c)
{
	BinSpec bins = {BIN_THRESHOLDS};

	bins.thresholds = histogram_check_thresholds(c->function, PG_GETARG_ARRAYTYPE_P(0), &bins.n);
	check_length(c, &bins, "thresholds");
	return bins;
}

/* ---- bounds of bins --------------------------------------------------------- */

/* Returns edge i of n equal bins, up to a rounding: lo for 0, hi for n. Bin i + 1 begins there. */
static double
edge_estimate(double lo, double hi, int n, int i)
{
	double weighted = lo * (n - i) + hi * i;

	/* a single rounding, unless it overflows */
	if (isfinite(weighted))
		return weighted / n;
	return lo * ((double) (n - i) / n) + hi * ((double) i / n);
}

/*
 * Returns whether the value with this code (select.h) is in `bin` or after it. If bins count
 * downwards, the value's sign is changed.
 */
static bool
has_reached(const BinSpec *bins, int bin, uint64 code)
{
	double x = select_f64_of(code);

	return histogram_uniform_bin(bins, bins->lo < bins->hi ? x : -x) >= bin;
}

/*
 * Returns the first value of a bin from 1 on: the least value that is in it or in a later bin
 * (downwards: the greatest). Bins are computed with a rounding, so this may differ from
 * edge_estimate().
 */
static double
first_value(const BinSpec *bins, int bin)
{
	double sign = bins->lo < bins->hi ? 1 : -1;
	uint64 least = select_code_f64(sign * bins->lo), most = select_code_f64(sign * bins->hi),
		   code = select_code_f64(sign * edge_estimate(bins->lo, bins->hi, bins->n, bin - 1));
	uint64 step = 1;

	/*
	 * `most` has reached all bins, values before `least` are in no bin: search around the estimate
	 */
	code = Min(Max(code, least), most);
	if (code == most || has_reached(bins, bin, code))
	{
		most = code;
		while (most - least >= step && has_reached(bins, bin, most - step))
		{
			most -= step;
			step *= 2;
		}
		least = most - least >= step ? most - step + 1 : least;
	}
	else
	{
		least = code + 1;
		while (most - least >= step && !has_reached(bins, bin, least + step - 1))
		{
			least += step;
			step *= 2;
		}
		most = most - least >= step ? least + step - 1 : most;
	}
	while (least < most)
	{
		uint64 middle = least + (most - least) / 2;

		if (has_reached(bins, bin, middle))
			most = middle;
		else
			least = middle + 1;
	}
	/* removes the sign of zero */
	return sign * select_f64_of(most) + 0.0;
}

/* histogram_bounds() for equal bins. */
static void
uniform_bounds(const BinSpec *bins, int bin, bool exact, double *lower, double *upper)
{
	int n = bins->n;
	double before = bins->lo < bins->hi ? -get_float8_infinity() : get_float8_infinity();
	double first = bin == 0 ? before :
		exact               ? first_value(bins, bin) :
							  edge_estimate(bins->lo, bins->hi, n, bin - 1);
	double next = bin == n + 1 ? -before :
		exact                  ? first_value(bins, bin + 1) :
								 edge_estimate(bins->lo, bins->hi, n, bin);

	*lower = Min(first, next);
	*upper = Max(first, next);
}

/* histogram_bounds() for n thresholds t. */
static void
threshold_bounds(const double *t, int n, int bin, double *lower, double *upper)
{
	*lower = bin == 0 ? -get_float8_infinity() : t[bin - 1];
	/* values that are not below NaN are NaN */
	*upper = bin < n ? t[bin] : isnan(*lower) ? *lower : get_float8_infinity();
}

void
histogram_bounds(const BinSpec *bins, int bin, bool exact, double *lower, double *upper)
{
	if (bins->kind == BIN_UNIFORM)
		uniform_bounds(bins, bin, exact, lower, upper);
	else
		threshold_bounds(bins->thresholds, bins->n, bin, lower, upper);
}

/* ---- rows ------------------------------------------------------------------- */

#define BAR_CHARS 40

text *
histogram_bar(double share)
{
	StringInfoData buf;
	text *bar;
	bool blocks = GetDatabaseEncoding() == PG_UTF8;
	int parts = blocks ? 8 : 1;
	int length;

	initStringInfo(&buf);
	length = share > 0 ? Max((int) rint(share * BAR_CHARS * parts), 1) : 0;
	for (int i = 0; i < length / parts; i++)
		appendStringInfoString(&buf, blocks ? "\342\226\210" : "#");
	if (length % parts)
	{
		/* U+2589 is seven eighths, U+258F is one eighth */
		appendStringInfoString(&buf, "\342\226");
		appendStringInfoChar(&buf, (char) (0x8F - (length % parts - 1)));
	}
	bar = cstring_to_text_with_len(buf.data, buf.len);
	pfree(buf.data);
	return bar;
}

/*
 * Result of the set-returning functions: one row for each bin, with its number, bounds, count and
 * a bar.
 */
static Datum
bin_rows(FunctionCallInfo fcinfo, const BinSpec *bins, const Counts *c)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	double longest = 0;

	for (int i = 0; i < c->n; i++)
		if (c->numbers[i] > longest)
			longest = c->numbers[i];

	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; i < c->n; i++)
	{
		double length = c->numbers[i];
		double lower, upper;
		Datum row[5];
		bool rownulls[5] = {false, false, false, c->nulls[i], false};

		histogram_bounds(bins, i, true, &lower, &upper);
		row[0] = Int32GetDatum(i);
		row[1] = Float8GetDatum(lower);
		row[2] = Float8GetDatum(upper);
		row[3] = c->values[i];
		/* infinity divided by infinity is a full bar */
		row[4] = PointerGetDatum(histogram_bar(length == longest && longest > 0 ? 1.0 :
												   length > 0                   ? length / longest :
																				  0.0));
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, row, rownulls);
		pfree(DatumGetPointer(row[4]));
		CHECK_FOR_INTERRUPTS();
	}
	return (Datum) 0;
}

/* (lo, hi, counts) */
Datum
gpu_histogram_bins(PG_FUNCTION_ARGS)
{
	Counts c = read_counts(fcinfo, 2, "gpu_histogram_bins", 3);
	BinSpec bins = uniform_bins(fcinfo, &c);

	return bin_rows(fcinfo, &bins, &c);
}

/* (lo, hi, nbins, counts) */
Datum
gpu_histogram_bins_checked(PG_FUNCTION_ARGS)
{
	Counts c = read_counts(fcinfo, 3, "gpu_histogram_bins", 1);
	BinSpec bins = {BIN_UNIFORM, PG_GETARG_FLOAT8(0), PG_GETARG_FLOAT8(1), PG_GETARG_INT32(2)};

	histogram_check_uniform(c.function, bins.lo, bins.hi, bins.n);
	bins.formula = histogram_formula(bins.lo, bins.hi, bins.n);
	check_length(&c, &bins, "nbins");
	return bin_rows(fcinfo, &bins, &c);
}

/* (thresholds, counts) */
Datum
gpu_histogram_bins_thresholds(PG_FUNCTION_ARGS)
{
	Counts c = read_counts(fcinfo, 1, "gpu_histogram_bins", 1);
	BinSpec bins = threshold_bins(fcinfo, &c);

	return bin_rows(fcinfo, &bins, &c);
}

/* (lo, hi, counts) of gpu_histogram_log */
Datum
gpu_histogram_log_bins(PG_FUNCTION_ARGS)
{
	Counts c = read_counts(fcinfo, 2, "gpu_histogram_log_bins", 3);
	double lo = PG_GETARG_FLOAT8(0);
	double hi = PG_GETARG_FLOAT8(1);
	BinSpec bins = {BIN_THRESHOLDS};

	histogram_check_log(c.function, lo, hi, c.n - 2);
	bins.n = c.n - 1;
	bins.thresholds = histogram_log_thresholds(lo, hi, c.n - 2);
	return bin_rows(fcinfo, &bins, &c);
}

/* ---- quantiles --------------------------------------------------------------- */

/* Bins in ascending order of their values. */
typedef struct Quantiles
{
	const BinSpec *bins;
	const char *function;
	bool down; /* bins count downwards: they are read from the last to the first */
	int n;
	double *cumulative; /* [bin] sum of the counts up to this bin */
} Quantiles;

/*
 * Returns the bins with the running sums of their counts. Raises an error if a count is NULL,
 * negative or not finite.
 */
static Quantiles
make_quantiles(const BinSpec *bins, const Counts *c)
{
	Quantiles q = {bins, c->function, bins->kind == BIN_UNIFORM && bins->lo > bins->hi, c->n};
	double sum = 0;

	q.cumulative = palloc(c->n * sizeof(double));
	for (int i = 0; i < c->n; i++)
	{
		int bin = q.down ? c->n - 1 - i : i;

		if (c->nulls[bin])
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("counts of %s must not contain nulls", c->function)));
		if (!(c->numbers[bin] >= 0) || isinf(c->numbers[bin]))
			ereport(ERROR,
					(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
					 errmsg("counts of %s must be finite and not negative", c->function),
					 errdetail("Element %d is %g.", bin + 1, c->numbers[bin])));
		sum = float8_pl(sum, c->numbers[bin]);
		q.cumulative[i] = sum;
	}
	return q;
}

double
histogram_interpolate(double lower, double upper, double share)
{
	double value;

	if (share <= 0)
		return lower;
	if (share >= 1)
		return upper;
	if (isinf(lower) && lower > 0)
		return lower;
	if (isinf(lower) || isinf(upper))
		return lower + upper;
	value = lower + (upper - lower) * share;
	if (isinf(value))
		value = lower * (1 - share) + upper * share;
	return value < lower ? lower : value > upper ? upper : value;
}

void
histogram_check_fraction(const char *function, double fraction)
{
	if (!(fraction >= 0 && fraction <= 1))
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("fraction of %s must be between 0 and 1", function),
				 errdetail("The fraction is %g.", fraction), errhint("0.5 is the median.")));
}

/*
 * Returns the quantile for a fraction. Raises an error if the fraction is not between 0 and 1. The
 * sum of all counts must be above 0.
 */
static double
quantile_of_fraction(const Quantiles *q, double fraction)
{
	double target;
	double before;
	double lower, upper;
	int left = 0, right = q->n - 1;

	histogram_check_fraction(q->function, fraction);
	/* find the first bin, with counts, up to which there are enough */
	target = fraction * q->cumulative[q->n - 1];
	while (left < right)
	{
		int mid = (left + right) / 2;

		if (q->cumulative[mid] > 0 && q->cumulative[mid] >= target)
			right = mid;
		else
			left = mid + 1;
	}
	before = left > 0 ? q->cumulative[left - 1] : 0;
	histogram_bounds(q->bins, q->down ? q->n - 1 - left : left, false, &lower, &upper);
	return histogram_interpolate(lower, upper, (target - before) / (q->cumulative[left] - before));
}

/* Returns the quantile of the fraction in argument `arg`; NULL if all counts are 0. */
static Datum
one_quantile(FunctionCallInfo fcinfo, const BinSpec *bins, const Counts *c, int arg)
{
	Quantiles q = make_quantiles(bins, c);

	if (q.cumulative[q.n - 1] == 0)
		PG_RETURN_NULL();
	PG_RETURN_FLOAT8(quantile_of_fraction(&q, PG_GETARG_FLOAT8(arg)));
}

/*
 * Returns an array of quantiles in the shape of the array of fractions; NULL where a fraction is
 * NULL.
 */
static Datum
many_quantiles(FunctionCallInfo fcinfo, const BinSpec *bins, const Counts *c, int arg)
{
	Quantiles q = make_quantiles(bins, c);
	ArrayType *fractions = PG_GETARG_ARRAYTYPE_P(arg);
	Datum *values;
	bool *nulls;
	int n;

	if (q.cumulative[q.n - 1] == 0)
		PG_RETURN_NULL();
	if (ARR_NDIM(fractions) == 0)
		PG_RETURN_ARRAYTYPE_P(construct_empty_array(FLOAT8OID));
	deconstruct_array(fractions, FLOAT8OID, 8, FLOAT8PASSBYVAL, TYPALIGN_DOUBLE, &values, &nulls,
					  &n);
	for (int i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (!nulls[i])
			values[i] = Float8GetDatum(quantile_of_fraction(&q, DatumGetFloat8(values[i])));
	}
	PG_RETURN_ARRAYTYPE_P(construct_md_array(values, nulls, ARR_NDIM(fractions),
											 ARR_DIMS(fractions), ARR_LBOUND(fractions), FLOAT8OID,
											 8, FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
}

/* (lo, hi, counts, fraction) */
Datum
gpu_histogram_quantile(PG_FUNCTION_ARGS)
{
	Counts c = read_counts(fcinfo, 2, "gpu_histogram_quantile", 3);
	BinSpec bins = uniform_bins(fcinfo, &c);

	return one_quantile(fcinfo, &bins, &c, 3);
}

/* (lo, hi, counts, fractions) */
Datum
gpu_histogram_quantiles(PG_FUNCTION_ARGS)
{
	Counts c = read_counts(fcinfo, 2, "gpu_histogram_quantile", 3);
	BinSpec bins = uniform_bins(fcinfo, &c);

	return many_quantiles(fcinfo, &bins, &c, 3);
}

/* (thresholds, counts, fraction) */
Datum
gpu_histogram_quantile_thresholds(PG_FUNCTION_ARGS)
{
	Counts c = read_counts(fcinfo, 1, "gpu_histogram_quantile", 1);
	BinSpec bins = threshold_bins(fcinfo, &c);

	return one_quantile(fcinfo, &bins, &c, 2);
}

/* (thresholds, counts, fractions) */
Datum
gpu_histogram_quantiles_thresholds(PG_FUNCTION_ARGS)
{
	Counts c = read_counts(fcinfo, 1, "gpu_histogram_quantile", 1);
	BinSpec bins = threshold_bins(fcinfo, &c);

	return many_quantiles(fcinfo, &bins, &c, 2);
}
