/*
 * bins.h
 *	  From a value to its histogram bin, defined once for gcc and nvcc.
 *
 * The arithmetic is that of core's width_bucket, rounding included: compile with
 * contraction off, as monoid.h says.  Releases of PostgreSQL round differently, so
 * the caller says which formula is the running server's (expr/bucket.h).  Every
 * double gives a bin inside the array, so callers need no check: NaN, which sorts
 * above everything in PostgreSQL, falls where values above all bounds fall, as in
 * width_bucket(value, thresholds).  Bounds and thresholds have been checked by the
 * caller.
 */
#ifndef GPUAGG_BINS_H
#define GPUAGG_BINS_H

#include <math.h>

#include "operators/monoid.h"

typedef enum GpuaggBinFormula
{
	GPUAGG_BINS_PRODUCT,  /* PostgreSQL 15: n * (x - lo) / (hi - lo) + 1, truncated */
	GPUAGG_BINS_QUOTIENT, /* from 16 on: n * ((x - lo) / (hi - lo)), truncated, at most n - 1; plus
							 1 */
	GPUAGG_BIN_FORMULAS   /* none of these */
} GpuaggBinFormula;

/* Can gpuagg_bin_uniform() compute bins between these bounds?  The product must not overflow. */
GPUAGG_HD int
gpuagg_bins_valid(double lo, double hi, int n, int formula)
{
	if (!(isfinite(lo) && isfinite(hi) && lo != hi && n > 0 && n < INT32_MAX))
		return 0;
	return formula == GPUAGG_BINS_QUOTIENT ||
		(formula == GPUAGG_BINS_PRODUCT && isfinite(n * (hi - lo)));
}

/*
 * width_bucket(x, lo, hi, n): bins 1 .. n between the bounds, 0 before lo, n + 1 at or past hi; lo
 * > hi counts downwards.  The product may round to n + 1 just before hi.  For parameters that are
 * not valid it is any number. There are no branches on x, so that loops vectorize.
 */
GPUAGG_HD int
gpuagg_bin_uniform(double x, double lo, double hi, int n, int formula)
{
	/*
	 * downwards is upwards with all signs changed; halves where the width is beyond the greatest
	 * double: both are exact
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
		/* the quotient may have rounded up to 1 */
		bin = bin < bins - 1 ? bin : bins - 1;
		bin = bin > 0 ? bin : 0;
		bin = (double) (int) bin + 1;
	}
	bin = at < from ? 0 : bin;
	bin = at < to ? bin : bins + 1;
	/* NaN is above all bounds, and so before the first bin downwards */
	bin = x == x || factor > 0 ? bin : 0;
	return (int) bin;
}

/*
 * width_bucket(x, t): how many of the n thresholds, ascending with NaN last,
 * are not above x.
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
