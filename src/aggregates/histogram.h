/*
 * histogram.h
 *	  What the custom scan shares with the ordinary aggregate gpu_histogram.
 */
#ifndef GPUAGG_HISTOGRAM_H
#define GPUAGG_HISTOGRAM_H

#include "postgres.h"

#include "utils/array.h"

#include "spec.h"

/* Most bins between the bounds, and most thresholds. */
#define HISTOGRAM_MAX_BINS 1000000

/* Are these the parameters of a histogram? */
extern bool histogram_uniform_valid(double lo, double hi, int n);

/* The thresholds of an array, sharing its memory; NULL if they are not valid. */
extern const double *histogram_thresholds(ArrayType *array, int *n);

/* How many bins there are in all. */
extern int	histogram_width(const BinSpec *bins);

/* One-dimensional arrays of all bins. */
extern Datum histogram_count_array(const int64 *counts, int width);
extern Datum histogram_weight_array(const double *weights, int width);

#endif							/* GPUAGG_HISTOGRAM_H */
