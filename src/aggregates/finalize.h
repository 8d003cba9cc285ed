/*
 * finalize.h
 *	  From numbers to datums that core's functions understand.
 */
#ifndef GPUAGG_FINALIZE_H
#define GPUAGG_FINALIZE_H

#include "postgres.h"

#include "operators/monoid.h"

/* A one-dimensional array of `n` 8-byte values of a pass-by-value type, no NULLs. */
extern Datum finalize_array(Oid elemtype, const void *values, int n);

/*
 * Serialised forms of core's internal transition states, of `n` inputs: those of
 * sum and avg over bigint, of variance over smallint and integer, of variance
 * over bigint, and of sum and avg over numerics that display `scale` digits.
 */
extern Datum lower_int8_avg_state(int64 n, gpuagg_i128 sum);
extern Datum finalize_poly_state(int64 n, gpuagg_i128 sum, gpuagg_i128 sumsq);
extern Datum finalize_numeric_var_state(int64 n, gpuagg_i128 sum, gpuagg_i192 sumsq);
extern Datum finalize_numeric_avg_state(int64 n, gpuagg_i128 sum, int scale);

#endif							/* GPUAGG_FINALIZE_H */
