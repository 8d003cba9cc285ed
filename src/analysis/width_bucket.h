/*
 * width_bucket.h
 *	  Which formula of operators/bins.h gives the bins of core's width_bucket().
 *
 * Core's function is called to find out, because a minor release may change its formula.
 */
#ifndef GPUAGG_WIDTH_BUCKET_H
#define GPUAGG_WIDTH_BUCKET_H

#include "operators/bins.h"

/*
 * Returns the result of core's width_bucket() for doubles.  Raises core's error if x is NaN or the
 * bounds are invalid.
 */
extern int core_width_bucket(double x, double lo, double hi, int n);

/* Returns core's formula, or GPUAGG_BIN_FORMULAS if it is none of the known ones. */
extern GpuaggBinFormula core_bin_formula(void);

#endif /* GPUAGG_WIDTH_BUCKET_H */
