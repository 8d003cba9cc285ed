/*
 * quantiles.h
 *	  Buckets of doubles, for quantile sketches.
 *
 * At level L, a bucket has the doubles whose codes (select_code_f64) differ only in the last L
 * bits.  Up to level 52, the values of a bucket have the same sign and the same power of two, with
 * 2^(52 - L) buckets for each.  A bucket of a level consists of two buckets of the level before.
 */
#ifndef GPUAGG_QUANTILES_H
#define GPUAGG_QUANTILES_H

#include "operators/select.h"

/* Maximum number of buckets of a sketch. At the maximum level no values need more. */
#define QUANTILES_BUCKETS 2048
#define QUANTILES_MAX_LEVEL 53

/* Returns the bucket of a value that is neither zero nor infinite nor NaN. */
GPUAGG_HD uint64_t
quantiles_bucket(double x, int level)
{
	return select_code_f64(x) >> level;
}

/* Returns the value in the middle of a bucket. */
GPUAGG_HD double
quantiles_value(uint64_t bucket, int level)
{
	uint64_t half = level == 0 ? 0 : UINT64_C(1) << (level - 1);

	return select_f64_of((bucket << level) + half);
}

#endif /* GPUAGG_QUANTILES_H */
