/*
 * bucket.h
 *	  Which of the formulas of bins (operators/bins.h) is that of core's width_bucket.
 *
 * The running server is asked, not the one that the library was compiled for: a minor release may
 * change it.
 */
#ifndef GPUAGG_BUCKET_H
#define GPUAGG_BUCKET_H

#include "operators/bins.h"

/* Core's width_bucket of doubles; x is not NaN, and the bounds are what it takes. */
extern int core_width_bucket(double x, double lo, double hi, int n);

/* GPUAGG_BIN_FORMULAS: none of those that we know. */
extern GpuaggBinFormula core_bin_formula(void);

#endif /* GPUAGG_BUCKET_H */
