/*
 * exp_buckets.h
 *	  Buckets of exponential histograms, as OpenTelemetry's data model and Prometheus' native
 *	  histograms have them.
 *
 * At scale s, bucket i has the values x with b^i < x <= b^(i + 1), where b = 2^(2^-s). At the next
 * lower scale, b is squared, and buckets 2i and 2i + 1 are bucket i.
 *
 * For s > 0, most powers b^i are not doubles. The bound between two buckets is the double nearest
 * to the power (log_edges.h), so that it is the same at all scales that have this bound, and on
 * every machine. Values are compared with it. Subnormal bounds are rounded down, which leaves the
 * comparison as it is.
 */
#ifndef GPUAGG_EXP_BUCKETS_H
#define GPUAGG_EXP_BUCKETS_H

#include "postgres.h"

#define EXP_LEAST_SCALE (-10)
#define EXP_MOST_SCALE 20

/* Returns the bucket of a finite value above 0. */
extern int64 exp_bucket(double x, int scale);

/* Returns the bound of a bucket that its values are above, as a double: b^i. */
extern double exp_lower_bound(int64 i, int scale);

/*
 * Returns the bound of a bucket that its values do not exceed: b^(i + 1), or the greatest finite
 * double, since no bucket has infinities.
 */
extern double exp_upper_bound(int64 i, int scale);

/* Returns the value at `share`, from 0 to 1, of bucket i on a logarithmic scale. */
extern double exp_interpolate(int64 i, int scale, double share);

#endif /* GPUAGG_EXP_BUCKETS_H */
