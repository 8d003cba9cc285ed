/*
 * moments.h
 *	  Statistics of central moments, for gpu_skewness and gpu_kurtosis and for gpu_summary.
 */
#ifndef GPUAGG_MOMENTS_H
#define GPUAGG_MOMENTS_H

#include "postgres.h"

#include "operators/monoid.h"

/* Set *result to that of a sample. Return false if there are too few values, or all are equal. */
extern bool moments_skewness(const gpuagg_moments *state, double *result);
extern bool moments_kurtosis(const gpuagg_moments *state, double *result);

#endif /* GPUAGG_MOMENTS_H */
