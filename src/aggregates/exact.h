/*
 * exact.h
 *	  Exact aggregates of floats: what the engine calls instead of their SQL functions.
 */
#ifndef GPUAGG_EXACT_H
#define GPUAGG_EXACT_H

#include "postgres.h"

#include "fmgr.h"

#include "aggregates/exact_state.h"

/* Results: the link symbols of the final functions are gpuagg_exact_NAME. */
#define EXACT_RESULTS(X) \
	X(SUM, sum) \
	X(SUM4, sum4) \
	X(AVG, avg) \
	X(VAR_POP, var_pop) \
	X(VAR_SAMP, var_samp) \
	X(STDDEV_POP, stddev_pop) \
	X(STDDEV_SAMP, stddev_samp) \
	X(REGR_SXX, regr_sxx) \
	X(REGR_SYY, regr_syy) \
	X(REGR_SXY, regr_sxy) \
	X(REGR_AVGX, regr_avgx) \
	X(REGR_AVGY, regr_avgy) \
	X(REGR_R2, regr_r2) \
	X(REGR_SLOPE, regr_slope) \
	X(REGR_INTERCEPT, regr_intercept) \
	X(COVAR_POP, covar_pop) \
	X(COVAR_SAMP, covar_samp) \
	X(CORR, corr)

typedef enum ExactResult
{
	EXACT_NO_RESULT,
#define X(NAME, name) EXACT_RESULT_##NAME,
	EXACT_RESULTS(X)
#undef X
} ExactResult;

/* Returns the result that a final function computes, or EXACT_NO_RESULT. */
extern ExactResult exact_result_of(const FmgrInfo *finalfn);

/*
 * Returns a result of a state, rounded once to float8, or to float4 for EXACT_RESULT_SUM4.
 * *isnull: it is NULL, as core's is.  *overflow: it is infinite though no input is, which is an
 * error.
 */
extern double exact_result(const ExactState *state, ExactResult result, bool *isnull,
						   bool *overflow);

/* Returns the kind of states of a transition function; 0 if it is none of an exact aggregate. */
extern ExactKind exact_kind_of(const FmgrInfo *transfn);

#endif /* GPUAGG_EXACT_H */
