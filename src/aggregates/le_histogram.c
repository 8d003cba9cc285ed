/*
 * le_histogram.c
 *	  gpu_le_histogram_quantile: quantiles of Prometheus' classic histograms.
 *
 * Such a histogram has buckets with upper bounds, the last of which is infinity, and cumulative
 * counts: how many values are less than or equal to each bound. The quantile is that of Prometheus'
 * histogram_quantile(): values lie evenly within a bucket; the first bucket begins at 0 if its
 * bound is above 0; the result is the last finite bound if the quantile is above it.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type_d.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/float.h"

#include "aggregates/histogram.h"
#include "common/interruptible.h"

PG_FUNCTION_INFO_V1(gpu_le_histogram_quantile);

#define FUNCTION "gpu_le_histogram_quantile"

/* Returns the elements of an array of numbers as doubles. what: the argument's name, for errors. */
static double *
read_numbers(ArrayType *array, const char *what, int *n)
{
	Oid type = ARR_ELEMTYPE(array);
	Datum *elements;
	double *numbers;

	if (type != INT8OID && type != FLOAT8OID)
		ereport(
			ERROR,
			(errcode(ERRCODE_DATATYPE_MISMATCH),
			 errmsg("%s of %s must be of type bigint[] or double precision[]", what, FUNCTION)));
	if (ARR_NDIM(array) > 1)
		ereport(ERROR,
				(errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
				 errmsg("%s of %s must be a one-dimensional array", what, FUNCTION)));
	if (array_contains_nulls(array))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("%s of %s must not contain nulls", what, FUNCTION)));
	deconstruct_array(array, type, 8, FLOAT8PASSBYVAL, TYPALIGN_DOUBLE, &elements, NULL, n);
	numbers = palloc((*n + 1) * sizeof(double));
	INTERRUPTIBLE_FOR (i, 0, *n)
		numbers[i] =
			type == INT8OID ? (double) DatumGetInt64(elements[i]) : DatumGetFloat8(elements[i]);
	return numbers;
}

/* Raises an error if n bounds do not ascend to infinity. */
static void
check_bounds(const double *bounds, int n)
{
	if (n < 2 || bounds[n - 1] != get_float8_infinity())
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("bounds of %s must be at least two, and the last one infinity", FUNCTION),
				 errhint("The last bucket of a histogram has the label le=\"+Inf\".")));
	INTERRUPTIBLE_FOR (i, 0, n)
		if (isnan(bounds[i]) || (i > 0 && bounds[i] <= bounds[i - 1]))
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("bounds of %s must be sorted in ascending order, without NaN and "
							"duplicates",
							FUNCTION)));
}

/* Raises an error if cumulative counts are no numbers of values. */
static void
check_counts(const double *counts, int n)
{
	INTERRUPTIBLE_FOR (i, 0, n)
	{
		if (!(counts[i] >= 0) || isinf(counts[i]))
			ereport(ERROR,
					(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
					 errmsg("counts of %s must be finite and not negative", FUNCTION),
					 errdetail("Element %d is %g.", (int) i + 1, counts[i])));
		if (i > 0 && counts[i] < counts[i - 1])
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("counts of %s must not decrease", FUNCTION),
					 errdetail("Element %d is %g, element %d is %g.", (int) i, counts[i - 1],
							   (int) i + 1, counts[i]),
					 errhint("Each element counts the values up to its bound, with those of the "
							 "elements before.")));
	}
}

/* (bounds, counts, fraction): NULL without values */
Datum
gpu_le_histogram_quantile(PG_FUNCTION_ARGS)
{
	double fraction = PG_GETARG_FLOAT8(2);
	int n, ncounts, at = 0;
	double *bounds = read_numbers(PG_GETARG_ARRAYTYPE_P(0), "bounds", &n);
	double *counts = read_numbers(PG_GETARG_ARRAYTYPE_P(1), "counts", &ncounts);
	double target, before, lower;

	check_bounds(bounds, n);
	if (n != ncounts)
		ereport(ERROR,
				(errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
				 errmsg("%s must have as many counts as bounds", FUNCTION),
				 errdetail("There are %d bounds and %d counts.", n, ncounts)));
	check_counts(counts, n);
	histogram_check_fraction(FUNCTION, fraction);
	if (counts[n - 1] == 0)
		PG_RETURN_NULL();
	target = fraction * counts[n - 1];
	while (at < n - 1 && !(counts[at] > 0 && counts[at] >= target))
		at++;
	if (at == n - 1)
		PG_RETURN_FLOAT8(bounds[n - 2]);
	if (at == 0 && bounds[0] <= 0)
		PG_RETURN_FLOAT8(bounds[0]);
	before = at > 0 ? counts[at - 1] : 0;
	lower = at > 0 ? bounds[at - 1] : 0;
	PG_RETURN_FLOAT8(
		histogram_interpolate(lower, bounds[at], (target - before) / (counts[at] - before)));
}
