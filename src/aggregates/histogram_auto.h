/*
 * histogram_auto.h
 *	  States of gpu_histogram_auto, for its aggregate and the functions that read it.
 */
#ifndef GPUAGG_HISTOGRAM_AUTO_H
#define GPUAGG_HISTOGRAM_AUTO_H

#include "postgres.h"

#include "fmgr.h"

#include "aggregates/agg_tally.h"
#include "aggregates/bin_window.h"

/* The transition state. */
typedef struct AutoHistogram
{
	int nbins;
	int exponent; /* bins are 2^exponent wide */
	int64 values; /* number of values that are not NULL */
	int64 nulls;
	int64 infinite[2]; /* [0]: -infinity, [1]: infinity */
	int64 nans;
	/* the least and the greatest finite value; infinity and -infinity if there is none */
	double min, max;
	BinWindow bins;
} AutoHistogram;

/*
 * Returns a serialized state: nbins, the numbers of NULLs, -infinity, infinity and NaN, the least
 * and the greatest finite value, and the counts of the bins from the one to the other. The exponent
 * and the number of bins follow from the range.
 */
extern bytea *histogram_auto_serialized(const AutoHistogram *h);

/* Returns how states of gpu_histogram_auto are made of counts; else NULL. */
extern const AggTally *histogram_auto_tally(const FmgrInfo *transfn);

#endif /* GPUAGG_HISTOGRAM_AUTO_H */
