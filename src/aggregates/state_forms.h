/*
 * state_forms.h
 *	  Transition values as core keeps or serializes them.
 */
#ifndef GPUAGG_STATE_FORMS_H
#define GPUAGG_STATE_FORMS_H

#include "postgres.h"

#include "operators/monoid.h"

/* A one-dimensional array of `n` 8-byte values of a pass-by-value type, no NULLs. */
extern Datum form_array(Oid elemtype, const void *values, int n);

/*
 * Serialized forms of core's internal transition states, of `n` inputs: those of
 * sum and avg over bigint, of variance over smallint and integer, of variance
 * over bigint, and of sum and avg over numerics, whose sum is an integer times 10^-scale and which
 * display up to `dscale` digits.
 */
extern Datum form_int8_avg(int64 n, gpuagg_i128 sum);
extern Datum form_poly_var(int64 n, gpuagg_i128 sum, gpuagg_i128 sumsq);
extern Datum form_numeric_var(int64 n, gpuagg_i128 sum, gpuagg_i192 sumsq);
extern Datum form_numeric_avg(int64 n, gpuagg_i128 sum, int scale, int dscale);

#endif /* GPUAGG_STATE_FORMS_H */
