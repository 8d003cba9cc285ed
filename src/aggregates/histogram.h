/*
 * histogram.h
 *	  What the custom scan and the functions that read histograms share with the ordinary
 *	  aggregates.
 */
#ifndef GPUAGG_HISTOGRAM_H
#define GPUAGG_HISTOGRAM_H

#include "postgres.h"

#include "utils/array.h"

#include "spec.h"

/* Most bins between the bounds, and most thresholds. */
#define HISTOGRAM_MAX_BINS 1000000

/* The edges of log-spaced bins are thresholds; there is one more edge than bins. */
#define HISTOGRAM_MAX_LOG_BINS (HISTOGRAM_MAX_BINS - 1)

/* Return whether these are valid parameters of a histogram with equal or log-spaced bins. */
extern bool histogram_uniform_valid(double lo, double hi, int n);
extern bool histogram_log_valid(double lo, double hi, int n);

/* Returns how bins between these bounds are computed: a GpuaggBinFormula (operators/bins.h). */
extern int histogram_formula(double lo, double hi, int n);

/* Returns the bin of a value. If core uses an unknown formula, calls core's function. */
extern int histogram_uniform_bin(const BinSpec *bins, double x);

/* Returns the thresholds of an array, in its memory; NULL if they are not valid. */
extern const double *histogram_thresholds(ArrayType *array, int *n);

/* Check the parameters and raise an error that names the SQL function if they are not valid. */
extern void histogram_check_uniform(const char *function, double lo, double hi, int n);
extern void histogram_check_log(const char *function, double lo, double hi, int n);
extern const double *histogram_check_thresholds(const char *function, ArrayType *array, int *n);

/*
 * Returns a bar of `share` (0 to 1) of 40 characters, in eighths of a block. Where the encoding has
 * no block characters, it consists of number signs. A share above 0 always has a bar.
 */
extern text *histogram_bar(double share);

/*
 * Returns the value at `share` of the way from `lower` to `upper`: `lower` for 0, `upper` for 1.
 * In between, the result is infinite if a bound is.
 */
extern double histogram_interpolate(double lower, double upper, double share);

/* Raises an error that names the SQL function if a fraction is not between 0 and 1. */
extern void histogram_check_fraction(const char *function, double fraction);

/* Returns whether a grid of bins is not too large. */
extern bool histogram_grid_fits(int nx, int ny);

/* Checks the parameters of both dimensions of a grid as the functions above do. */
extern void histogram_check_grid(const char *function, const BinSpec *x, const BinSpec *y);

/* Returns the n + 1 edges of n log-spaced bins, which are the thresholds of gpu_histogram_log. */
extern double *histogram_log_thresholds(double lo, double hi, int n);

/*
 * Returns the serialized state of a histogram. `values` has a count or a weight for each bin. y:
 * the bins of the second dimension, or BIN_NONE.
 */
extern bytea *histogram_state(const BinSpec *bins, const BinSpec *y, bool weighted, bool log,
							  const void *values);

/* Return one-dimensional arrays of all bins. */
extern Datum histogram_count_array(const int64 *counts, int width);
extern Datum histogram_weight_array(const double *weights, int width);

/*
 * Returns a one-dimensional array of a grid's bins with the grid's two dimensions. Frees the
 * former.
 */
extern Datum histogram_grid_array(Datum array, const BinSpec *x, const BinSpec *y);

/*
 * Sets the bounds of a bin; *lower is not above *upper. With `exact`, a uniform bin has exactly the
 * values from *lower up to before *upper (if bins count downwards: from *upper down to before
 * *lower). Without, bounds may differ by a rounding, but are the numbers that a user would write.
 */
extern void histogram_bounds(const BinSpec *bins, int bin, bool exact, double *lower,
							 double *upper);

#endif /* GPUAGG_HISTOGRAM_H */
