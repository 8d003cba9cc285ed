/*
 * exp_buckets.c
 *	  Buckets of exponential histograms; see exp_buckets.h.
 */
#include "postgres.h"

#include <float.h>
#include <math.h>

#include "aggregates/exp_buckets.h"
#include "operators/log_edges.h"

/*
 * The position of a value among the bounds, by log2() of the C library, is off by less than
 * 2^EXP_MOST_SCALE times some units of the last digit. Values closer to a bound are compared with
 * it.
 */
#define CERTAIN_DISTANCE 1e-5

/* Returns the double nearest to 2^(i / 2^scale), for 0 <= i <= 2^scale. */
static double
root_power(int64 i, int scale)
{
	static gpuagg_log_range range;

	if (range.n == 0)
		range = gpuagg_log_range_of(1, 2, 1 << EXP_MOST_SCALE);
	return gpuagg_log_edge(&range, (int) (i << (EXP_MOST_SCALE - scale)));
}

/* Returns the bucket of a value from 1 up to before 2, for a scale above 0. */
static int64
bucket_of_mantissa(double x, int scale)
{
	double place = log2(x) * (double) (1 << scale);
	double bound = rint(place);

	if (fabs(place - bound) > CERTAIN_DISTANCE)
		return (int64) place;
	return x > root_power((int64) bound, scale) ? (int64) bound : (int64) bound - 1;
}

int64
exp_bucket(double x, int scale)
{
	int exponent;
	double mantissa = frexp(x, &exponent) * 2;
	int64 power = exponent - 1;

	if (scale <= 0)
		return (power - (mantissa == 1)) >> -scale;
	return power * (1 << scale) + (mantissa == 1 ? -1 : bucket_of_mantissa(mantissa, scale));
}

double
exp_bound(int64 i, int scale)
{
	int64 power = scale <= 0 ? i * (1 << -scale) : i >> scale;
	double mantissa = scale <= 0 ? 1 : root_power(i - power * (1 << scale), scale);
	double bound;

	power = Max(Min(power, 2000), -2000);
	bound = ldexp(mantissa, (int) power);
	/* a subnormal number may have been rounded up */
	if (bound < DBL_MIN && ldexp(bound, (int) -power) > mantissa)
		return nextafter(bound, 0);
	return bound;
}

double
exp_interpolate(int64 i, int scale, double share)
{
	/* the last bucket has no infinity */
	double lower = exp_bound(i, scale), upper = Min(exp_bound(i + 1, scale), DBL_MAX);
	double value = exp2(ldexp((double) i + share, -scale));

	return share <= 0 || value < lower ? lower : share >= 1 || value > upper ? upper : value;
}
