/*
 * bins.h
 *	  From a value to its histogram bin, defined once for gcc and nvcc.
 *
 * The arithmetic is that of core's width_bucket (PostgreSQL 17), rounding
 * included: compile with contraction off, as monoid.h says.  Every double gives
 * a bin inside the array, so callers need no check: NaN, which sorts above
 * everything in PostgreSQL, falls where values above all bounds fall, as
 * in width_bucket(value, thresholds).  Bounds and thresholds have been checked
 * by the caller.
 */
#ifndef GPUAGG_BINS_H
#define GPUAGG_BINS_H

#include <math.h>

#include "operators/monoid.h"

/*
 * width_bucket(x, lo, hi, n): bins 1 .. n between the bounds, 0 before lo,
 * n + 1 at or past hi; lo > hi counts downwards.  lo and hi are finite and not
 * equal, 0 < n < INT_MAX.
 */
GPUAGG_HD int
gpuagg_bin_uniform(double x, double lo, double hi, int n)
{
	double		part;
	int			bin;

	if (isnan(x))
		return lo < hi ? n + 1 : 0;
	if (lo < hi)
	{
		if (x < lo)
			return 0;
		if (x >= hi)
			return n + 1;
		/* halves where the width itself is beyond the greatest double */
		part = isinf(hi - lo) ? (x / 2 - lo / 2) / (hi / 2 - lo / 2) : (x - lo) / (hi - lo);
	}
	else
	{
		if (x > lo)
			return 0;
		if (x <= hi)
			return n + 1;
		part = isinf(lo - hi) ? (lo / 2 - x / 2) / (lo / 2 - hi / 2) : (lo - x) / (lo - hi);
	}
	/* the quotient may have rounded up to 1 */
	bin = (int) (n * part);
	return (bin >= n ? n - 1 : bin) + 1;
}

/*
 * width_bucket(x, t): how many of the n thresholds, ascending with NaN last,
 * are not above x.
 */
GPUAGG_HD int
gpuagg_bin_thresholds(double x, const double *t, int n)
{
	int			left = 0,
				right = n;

	if (isnan(x))
		return n;
	while (left < right)
	{
		int			mid = left + (right - left) / 2;

		if (isnan(t[mid]) || x < t[mid])
			right = mid;
		else
			left = mid + 1;
	}
	return left;
}

#endif							/* GPUAGG_BINS_H */
