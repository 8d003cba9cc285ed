/*
 * state_forms.h
 *	  Transition values in the form in which core keeps or serializes them.
 *
 * Results are allocated in the current context.
 */
#ifndef GPUAGG_STATE_FORMS_H
#define GPUAGG_STATE_FORMS_H

#include "postgres.h"

#include "operators/monoid.h"

/* Returns a one-dimensional array of `n` 8-byte values of a pass-by-value type, without NULLs. */
extern Datum form_array(Oid elemtype, const void *values, int n);

/*
 * Return serialized forms (portable ones, see poly_states.h) of core's internal transition states
 * of `n` inputs: for sum and avg over bigint; variance over smallint and integer; variance over
 * bigint; sum and avg over numeric. The last one's sum is an integer times 10^-scale and displays
 * up to `dscale` digits.
 */
extern Datum form_int8_avg(int64 n, gpuagg_i128 sum);
extern Datum form_poly_var(int64 n, gpuagg_i128 sum, gpuagg_i128 sumsq);
extern Datum form_numeric_var(int64 n, gpuagg_i128 sum, gpuagg_i192 sumsq);
extern Datum form_numeric_avg(int64 n, gpuagg_i128 sum, int scale, int dscale);

#endif /* GPUAGG_STATE_FORMS_H */
