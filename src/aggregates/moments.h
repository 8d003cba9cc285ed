/*
 * moments.h
 *	  Statistics of central moments, for gpu_skewness and gpu_kurtosis and for gpu_summary.
 */
#ifndef GPUAGG_MOMENTS_H
#define GPUAGG_MOMENTS_H

#include "postgres.h"

#include <math.h>

#include "operators/monoid.h"

/* Values count as equal if their variance is not greater: its square would lose digits. */
#define MOMENTS_LEAST_VARIANCE 1e-140

/*
 * Returns whether the state has at least this many values, and they are not all equal. Sets *n to
 * their number and *variance to their variance, which is NaN if a value is not finite.
 */
static inline bool
moments_variance(const gpuagg_moments *state, double least, double *n, double *variance)
{
	*n = state->n;
	*variance = state->m2 / state->n;
	return state->n >= least && !(*variance <= MOMENTS_LEAST_VARIANCE);
}

/* Sets *result to the skewness of a sample. Returns false if it has none. */
static inline bool
moments_skewness(const gpuagg_moments *state, double *result)
{
	double n, variance;

	if (!moments_variance(state, 3, &n, &variance))
		return false;
	*result = state->m3 / n / (variance * sqrt(variance)) * (sqrt(n * (n - 1)) / (n - 2));
	return true;
}

/* Sets *result to the excess kurtosis of a sample. Returns false if it has none. */
static inline bool
moments_kurtosis(const gpuagg_moments *state, double *result)
{
	double n, variance, excess;

	if (!moments_variance(state, 4, &n, &variance))
		return false;
	excess = state->m4 / n / (variance * variance) - 3;
	*result = (n - 1) / ((n - 2) * (n - 3)) * ((n + 1) * excess + 6);
	return true;
}

#endif /* GPUAGG_MOMENTS_H */
