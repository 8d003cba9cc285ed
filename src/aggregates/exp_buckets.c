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

/* Fields of a double, and the bits of 1.0. */
#define FRACTION_BITS ((UINT64CONST(1) << (DBL_MANT_DIG - 1)) - 1)
#define BITS_OF_ONE ((uint64) (DBL_MAX_EXP - 1) << (DBL_MANT_DIG - 1))

/* Buckets at scales from 1 to this one are looked up in tables. */
#define TABLE_SCALE 8

/*
 * The buckets of the values from 1 up to before 2 at a scale s. These values are divided into 2^(s
 * + 1) intervals, by the first bits of their fractions. Buckets are wider than intervals, because
 * ln 2 > 1 / 2. So an interval has at most one bound.
 */
typedef struct BucketTable
{
	bool ready;
	int16 first[2 << TABLE_SCALE];         /* the bucket of an interval's least value */
	double bounds[(1 << TABLE_SCALE) + 1]; /* lower bounds of the buckets, and 2 */
} BucketTable;

/* Makes the table of a scale. */
static pg_noinline void
fill_table(BucketTable *table, int scale)
{
	int bucket = -1;

	for (int i = 0; i <= 1 << scale; i++)
		table->bounds[i] = root_power(i, scale);
	for (int i = 0; i < 2 << scale; i++)
	{
		if (table->bounds[bucket + 1] < 1 + ldexp(i, -(scale + 1)))
			bucket++;
		table->first[i] = bucket;
	}
	table->ready = true;
}

/* Returns the bucket of a value from 1 up to before 2, for a scale that has a table. */
static inline int64
look_up_bucket(double x, int scale)
{
	static BucketTable tables[TABLE_SCALE + 1];
	BucketTable *table = &tables[scale];
	uint64 bits;
	int bucket;

	if (unlikely(!table->ready))
		fill_table(table, scale);
	memcpy(&bits, &x, sizeof(bits));
	bucket = table->first[bits >> (DBL_MANT_DIG - 1 - (scale + 1)) & ((2 << scale) - 1)];
	return bucket + (x > table->bounds[bucket + 1]);
}

/*
 * Returns the bucket of a value from 1 up to before 2, for a scale above 0. The bucket of 1 is -1.
 */
static int64
bucket_of_mantissa(double x, int scale)
{
	double place, bound;

	if (scale <= TABLE_SCALE)
		return look_up_bucket(x, scale);
	if (x == 1)
		return -1;
	place = log2(x) * (double) (1 << scale);
	bound = rint(place);
	if (fabs(place - bound) > CERTAIN_DISTANCE)
		return (int64) place;
	return x > root_power((int64) bound, scale) ? (int64) bound : (int64) bound - 1;
}

/* Returns the power of two in a finite value above 0, and the value divided by it. */
static inline int
split_value(double x, double *mantissa)
{
	uint64 bits;
	int exponent;

	memcpy(&bits, &x, sizeof(bits));
	exponent = (int) (bits >> (DBL_MANT_DIG - 1));
	if (unlikely(exponent == 0))
	{
		/* a subnormal number */
		*mantissa = frexp(x, &exponent) * 2;
		return exponent - 1;
	}
	bits = (bits & FRACTION_BITS) | BITS_OF_ONE;
	memcpy(mantissa, &bits, sizeof(bits));
	return exponent - (DBL_MAX_EXP - 1);
}

int64
exp_bucket(double x, int scale)
{
	double mantissa;
	int64 power = split_value(x, &mantissa);

	if (scale <= 0)
		return (power - (mantissa == 1)) >> -scale;
	return power * (1 << scale) + bucket_of_mantissa(mantissa, scale);
}

/* Returns b^i, rounded; Infinity beyond the doubles. */
static double
power_of_base(int64 i, int scale)
{
	int64 power = scale <= 0 ? i * (1 << -scale) : i >> scale;
	double mantissa = scale <= 0 ? 1 : root_power(i - power * (1 << scale), scale);
	double rounded;

	power = Max(Min(power, 2000), -2000);
	rounded = ldexp(mantissa, (int) power);
	/* a subnormal number may have been rounded up */
	if (rounded < DBL_MIN && ldexp(rounded, (int) -power) > mantissa)
		return nextafter(rounded, 0);
	return rounded;
}

double
exp_lower_bound(int64 i, int scale)
{
	return power_of_base(i, scale);
}

double
exp_upper_bound(int64 i, int scale)
{
	return Min(power_of_base(i + 1, scale), DBL_MAX);
}

double
exp_interpolate(int64 i, int scale, double share)
{
	double lower = exp_lower_bound(i, scale), upper = exp_upper_bound(i, scale);
	double value = exp2(ldexp((double) i + share, -scale));

	return share <= 0 || value < lower ? lower : share >= 1 || value > upper ? upper : value;
}
