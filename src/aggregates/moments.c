/*
 * moments.c
 *	  gpu_skewness, gpu_skewness_pop, gpu_kurtosis and gpu_kurtosis_pop as ordinary aggregates.
 *
 * The transition value is a double precision[] of the members of gpuagg_moments (monoid.h), which
 * the engines compute as well. Servers exchange it, so its form is checked; any numbers in it are
 * harmless.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "utils/array.h"
#include "utils/float.h"

#include "aggregates/aggmap.h"
#include "aggregates/moments.h"
#include "aggregates/state_forms.h"
#include "operators/monoid.h"

PG_FUNCTION_INFO_V1(gpuagg_moments_accum);
PG_FUNCTION_INFO_V1(gpuagg_moments_combine);
PG_FUNCTION_INFO_V1(gpuagg_skewness_pop);
PG_FUNCTION_INFO_V1(gpuagg_skewness_samp);
PG_FUNCTION_INFO_V1(gpuagg_kurtosis_pop);
PG_FUNCTION_INFO_V1(gpuagg_kurtosis_samp);

#define MEMBERS 5

/* Returns the moments in argument i. Raises an error if the array is no state. */
static gpuagg_moments
moments_argument(FunctionCallInfo fcinfo, int i)
{
	ArrayType *array = PG_GETARG_ARRAYTYPE_P(i);
	gpuagg_moments state;

	if (ARR_NDIM(array) != 1 || ARR_DIMS(array)[0] != MEMBERS || ARR_HASNULL(array) ||
		ARR_ELEMTYPE(array) != FLOAT8OID)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("state of %s must be an array of %d numbers", "gpu_skewness", MEMBERS)));
	memcpy(&state, ARR_DATA_PTR(array), sizeof(state));
	return state;
}

/*
 * Returns the new state: argument 0 itself with new elements if the caller is an aggregate, which
 * owns it; else an array.
 */
static Datum
result_state(FunctionCallInfo fcinfo, const gpuagg_moments *state)
{
	if (AggCheckCallContext(fcinfo, NULL))
	{
		ArrayType *array = PG_GETARG_ARRAYTYPE_P(0);

		memcpy(ARR_DATA_PTR(array), state, sizeof(*state));
		return PointerGetDatum(array);
	}
	return form_array(FLOAT8OID, state, MEMBERS);
}

/* Transition function of the four aggregates: (double precision[], double precision), strict. */
Datum
gpuagg_moments_accum(PG_FUNCTION_ARGS)
{
	gpuagg_moments state = moments_argument(fcinfo, 0);
	double x = PG_GETARG_FLOAT8(1);
	gpuagg_moments result = moments_f64_step(state, x);

	aggmap_raise(moments_f64_error(state, moments_f64_lift(x), result));
	return result_state(fcinfo, &result);
}

/* Combine function of the four aggregates: (double precision[], double precision[]), strict. */
Datum
gpuagg_moments_combine(PG_FUNCTION_ARGS)
{
	gpuagg_moments a = moments_argument(fcinfo, 0);
	gpuagg_moments b = moments_argument(fcinfo, 1);
	gpuagg_moments result = moments_f64_combine(a, b);

	aggmap_raise(moments_f64_error(a, b, result));
	return result_state(fcinfo, &result);
}

/* Final function of gpu_skewness_pop. NULL if all values are equal. */
Datum
gpuagg_skewness_pop(PG_FUNCTION_ARGS)
{
	gpuagg_moments state = moments_argument(fcinfo, 0);
	double n, variance;

	if (!moments_variance(&state, 2, &n, &variance))
		PG_RETURN_NULL();
	PG_RETURN_FLOAT8(state.m3 / n / (variance * sqrt(variance)));
}

/* Final function of gpu_skewness. NULL if there are less than three values, or all are equal. */
Datum
gpuagg_skewness_samp(PG_FUNCTION_ARGS)
{
	gpuagg_moments state = moments_argument(fcinfo, 0);
	double result;

	if (!moments_skewness(&state, &result))
		PG_RETURN_NULL();
	PG_RETURN_FLOAT8(result);
}

/* Final function of gpu_kurtosis_pop. NULL if all values are equal. */
Datum
gpuagg_kurtosis_pop(PG_FUNCTION_ARGS)
{
	gpuagg_moments state = moments_argument(fcinfo, 0);
	double n, variance;

	if (!moments_variance(&state, 2, &n, &variance))
		PG_RETURN_NULL();
	PG_RETURN_FLOAT8(state.m4 / n / (variance * variance) - 3);
}

/* Final function of gpu_kurtosis. NULL if there are less than four values, or all are equal. */
Datum
gpuagg_kurtosis_samp(PG_FUNCTION_ARGS)
{
	gpuagg_moments state = moments_argument(fcinfo, 0);
	double result;

	if (!moments_kurtosis(&state, &result))
		PG_RETURN_NULL();
	PG_RETURN_FLOAT8(result);
}
