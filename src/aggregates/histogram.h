/*
 * histogram.h
 *	  What the custom scan and functions of histograms share with the ordinary aggregates.
 */
#ifndef GPUAGG_HISTOGRAM_H
#define GPUAGG_HISTOGRAM_H

#include "postgres.h"

#include "utils/array.h"

#include "spec.h"

/* Most bins between the bounds, and most thresholds. */
#define HISTOGRAM_MAX_BINS 1000000

/* The edges of log-spaced bins are thresholds. */
#define HISTOGRAM_MAX_LOG_BINS (HISTOGRAM_MAX_BINS - 1)

/* Are these the parameters of a histogram? */
extern bool histogram_uniform_valid(double lo, double hi, int n);
extern bool histogram_log_valid(double lo, double hi, int n);

/* How the bins between such bounds are found: a GpuaggBinFormula (operators/bins.h). */
extern int histogram_formula(double lo, double hi, int n);

/* The bin of a value; core's function finds it where the formula is none that we know. */
extern int histogram_uniform_bin(const BinSpec *bins, double x);

/* The thresholds of an array, sharing its memory; NULL if they are not valid. */
extern const double *histogram_thresholds(ArrayType *array, int *n);

/* The same, with an error that names the SQL function if they are not valid. */
extern void histogram_check_uniform(const char *function, double lo, double hi, int n);
extern void histogram_check_log(const char *function, double lo, double hi, int n);
extern const double *histogram_check_thresholds(const char *function, ArrayType *array, int *n);

/* The n + 1 edges of n log-spaced bins, which are the thresholds of gpu_histogram_log. */
extern double *histogram_log_thresholds(double lo, double hi, int n);

/* The serialized state of a histogram, of a count or a weight for each bin. */
extern bytea *histogram_state(const BinSpec *bins, bool weighted, bool log, const void *values);

/* One-dimensional arrays of all bins. */
extern Datum histogram_count_array(const int64 *counts, int width);
extern Datum histogram_weight_array(const double *weights, int width);

#endif /* GPUAGG_HISTOGRAM_H */
