/*
 * bins.h
 *	  Computes the histogram bin of a value; for gcc and nvcc.
 *
 * The arithmetic is the one of core's width_bucket(), rounding included: compile with contraction
 * of floats off, as monoid.h says.  Releases of PostgreSQL round differently, so the caller says
 * which formula the running server uses (analysis/width_bucket.h).
 *
 * Every double gives a bin inside the array, so callers need no check.  NaN, which PostgreSQL sorts
 * above all other values, gets the bin of values above all bounds, as in width_bucket(value,
 * thresholds).  The caller has checked bounds and thresholds.
 */
#ifndef GPUAGG_BINS_H
#define GPUAGG_BINS_H

#include <math.h>

#include "operators/monoid.h"

/* Formulas of core's width_bucket(), by release. */
typedef enum GpuaggBinFormula
{
	GPUAGG_BINS_PRODUCT,  /* PostgreSQL 15: n * (x - lo) / (hi - lo) + 1, truncated */
	GPUAGG_BINS_QUOTIENT, /* from 16 on: n * ((x - lo) / (hi - lo)), truncated, at most n - 1; plus
							 1 */
	GPUAGG_BIN_FORMULAS   /* none of these formulas */
} GpuaggBinFormula;

/*
 * Returns whether gpuagg_bin_uniform() can compute bins between these bounds.  The product must not
 * overflow.
 */
GPUAGG_HD int
gpuagg_bins_valid(double lo, double hi, int n, int formula)
{
	if (!(isfinite(lo) && isfinite(hi) && lo != hi && n > 0 && n < INT32_MAX))
		return 0;
	return formula == GPUAGG_BINS_QUOTIENT ||
		(formula == GPUAGG_BINS_PRODUCT && isfinite(n * (hi - lo)));
}

/*
 * Computes width_bucket(x, lo, hi, n). Returns bins 1 .. n between the bounds, 0 before lo, n + 1
 * at or after hi. If lo > hi, bins count downwards. The product may round to n + 1 just before hi.
 * For invalid parameters the result is any number. There are no branches on x, so that loops
 * vectorize.
 */
GPUAGG_HD int
gpuagg_bin_uniform(double x, double lo, double hi, int n, int formula)
{
	/*
	 * Counting downwards is counting upwards with all signs changed.  If the width exceeds the
	 * greatest double, all values are halved.  Both are exact.
	 */
	double factor = (lo < hi ? 1.0 : -1.0) * (isinf(hi - lo) ? 0.5 : 1.0);
	double from = lo * factor, to = hi * factor, bins = n;
	double at = x * factor;
	double bin;

	if (formula == GPUAGG_BINS_PRODUCT)
		bin = bins * (at - from) / (to - from) + 1;
	else
	{
		bin = bins * ((at - from) / (to - from));
		/* the quotient may have been rounded up to 1 */
		bin = bin < bins - 1 ? bin : bins - 1;
		bin = bin > 0 ? bin : 0;
		bin = (double) (int) bin + 1;
	}
	bin = at < from ? 0 : bin;
	bin = at < to ? bin : bins + 1;
	/* NaN is above all bounds: before the first bin if bins count downwards */
	bin = x == x || factor > 0 ? bin : 0;
	return (int) bin;
}

/*
 * Computes width_bucket(x, t): returns how many of the n thresholds are not above x.  Thresholds
 * are ascending with NaN last.
 */
GPUAGG_HD int
gpuagg_bin_thresholds(double x, const double *t, int n)
{
	int left = 0, right = n;

	if (isnan(x))
		return n;
	while (left < right)
	{
		int mid = left + (right - left) / 2;

		if (isnan(t[mid]) || x < t[mid])
			right = mid;
		else
			left = mid + 1;
	}
	return left;
}

#endif /* GPUAGG_BINS_H */
