/*
 * regression.c
 *	  Core's functions of corr(), covar_pop(), regr_slope() and the like under names of the library.
 *
 * Up to 18, core's state of these aggregates has six values: the number of pairs, and the sums of
 * X, of squared deviations of X, of Y, of squared deviations of Y, and of products of deviations.
 * From 19 on, it has two more: the value that all X have, and the value that all Y have, or NaN
 * if they differ.  The extension's aggregates have an initial state of six values in every
 * release, and servers of different releases exchange states.  So these functions accept both
 * numbers of values, and pass core what it expects.  Core checks everything else, and raises an
 * error.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "utils/array.h"
#include "utils/float.h"
#include "utils/fmgrprotos.h"

#include "aggregates/state_forms.h"
#include "common/compat.h"

/*
 * Replaces the state in this argument by one with as many values as core expects, unless it is no
 * state of either form.  Two values are added to six: core's initial ones if there are no pairs;
 * else NaN, as it is not known whether the values are equal.
 */
static void
adapt_state(FunctionCallInfo fcinfo, int argument)
{
	ArrayType *array = DatumGetArrayTypeP(fcinfo->args[argument].value);
	int n = ARR_NDIM(array) == 1 ? ARR_DIMS(array)[0] : 0;
	double values[8];

	fcinfo->args[argument].value = PointerGetDatum(array);
	if (n == COMPAT_REGR_VALUES || (n != 6 && n != 8) || ARR_ELEMTYPE(array) != FLOAT8OID ||
		ARR_HASNULL(array))
		return;
	memcpy(values, ARR_DATA_PTR(array), n * sizeof(double));
	if (n == 6)
		values[6] = values[7] = values[0] == 0 ? 0 : get_float8_nan();
	fcinfo->args[argument].value = form_array(FLOAT8OID, values, COMPAT_REGR_VALUES);
}

/* Functions whose first `states` arguments are states. */
#define CORE(name, states) \
	PG_FUNCTION_INFO_V1(gpuagg_##name); \
	Datum gpuagg_##name(PG_FUNCTION_ARGS) \
	{ \
		for (int i = 0; i < (states); i++) \
			adapt_state(fcinfo, i); \
		return name(fcinfo); \
	}
CORE(float8_corr, 1)
CORE(float8_covar_pop, 1)
CORE(float8_covar_samp, 1)
CORE(float8_regr_accum, 1)
CORE(float8_regr_avgx, 1)
CORE(float8_regr_avgy, 1)
CORE(float8_regr_combine, 2)
CORE(float8_regr_intercept, 1)
CORE(float8_regr_r2, 1)
CORE(float8_regr_slope, 1)
CORE(float8_regr_sxx, 1)
CORE(float8_regr_sxy, 1)
CORE(float8_regr_syy, 1)
#undef CORE
