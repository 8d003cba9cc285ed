/*
 * quantiles.h
 *	  Buckets of doubles, for sketches of quantiles.
 *
 * At level L a bucket has the doubles whose codes (select_code_f64) are equal but for the last L
 * bits.  Up to level 52 the values of a bucket are of one sign and one power of two, 2^(52 - L)
 * buckets to each; buckets of a level are made of two of the level before.
 */
#ifndef GPUAGG_QUANTILES_H
#define GPUAGG_QUANTILES_H

#include "operators/select.h"

/* Most buckets of a sketch; at this level no values have more of them. */
#define QUANTILES_BUCKETS 2048
#define QUANTILES_MAX_LEVEL 53

/* The bucket of a value, which is neither zero nor infinite nor NaN. */
GPUAGG_HD uint64_t
quantiles_bucket(double x, int level)
{
	return select_code_f64(x) >> level;
}

/* The value in the middle of a bucket. */
GPUAGG_HD double
quantiles_value(uint64_t bucket, int level)
{
	uint64_t half = level == 0 ? 0 : UINT64_C(1) << (level - 1);

	return select_f64_of((bucket << level) + half);
}

#endif /* GPUAGG_QUANTILES_H */
