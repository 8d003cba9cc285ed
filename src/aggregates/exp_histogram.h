/*
 * exp_histogram.h
 *	  States of gpu_exp_histogram, for its aggregates and the functions that read it.
 */
#ifndef GPUAGG_EXP_HISTOGRAM_H
#define GPUAGG_EXP_HISTOGRAM_H

#include "postgres.h"

#include "fmgr.h"

#include "aggregates/agg_tally.h"
#include "aggregates/aggcall.h"
#include "aggregates/bin_window.h"

/* Most buckets for positive values, and for negative ones. */
#define EXP_MOST_BUCKETS 160

/* The transition state. */
typedef struct ExpHistogram
{
	int scale;
	int64 values; /* number of values that are not NULL */
	int64 zeros;
	int64 infinite[2]; /* [0]: -infinity, [1]: infinity */
	int64 nans;
	BinWindow sides[2]; /* [0]: buckets of the absolute values of negative ones, [1]: positive */
} ExpHistogram;

/* Returns an empty histogram in cxt. */
extern ExpHistogram *exp_histogram_create(MemoryContext cxt, int scale);

/* Lowers the scale to this one, unless it is lower. */
extern void exp_histogram_lower_scale(ExpHistogram *h, int scale);

/*
 * Adds `count` values to a bucket. The scale is lowered until there are no more than
 * EXP_MOST_BUCKETS. Raises an error if numbers overflow.
 */
extern void exp_histogram_add(ExpHistogram *h, int side, int64 bucket, int64 count);

/* Adds `count` to *number and to the number of values. Raises an error if they overflow. */
extern void exp_histogram_add_values(ExpHistogram *h, int64 *number, int64 count);

/* Raises an error that names the SQL function if the scale is out of range. */
extern void exp_histogram_check_scale(const char *function, int scale);

/* Returns the combination of two histograms in cxt, where *to is, if it is not NULL. */
extern ExpHistogram *exp_histogram_combine(MemoryContext cxt, ExpHistogram *to,
										   const ExpHistogram *from);

/*
 * Returns a serialized state: the scale, the numbers of zeros, -infinity, infinity and NaN, and of
 * negative and then of positive values the first bucket, the number of buckets, and their counts.
 */
extern bytea *exp_histogram_serialized(const ExpHistogram *h);

/* Returns the step that replaces the transition function of gpu_exp_histogram; else NULL. */
extern AggStep exp_histogram_step(const FmgrInfo *transfn);

/* Returns how states of gpu_exp_histogram are made of counts; else NULL. */
extern const AggTally *exp_histogram_tally(const FmgrInfo *transfn);

#endif /* GPUAGG_EXP_HISTOGRAM_H */
