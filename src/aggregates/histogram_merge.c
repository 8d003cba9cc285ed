/*
 * histogram_merge.c
 *	  gpu_histogram_merge: the sum of histograms, element by element.
 *
 * The transition value is the sum so far, an array like the inputs, so the transition function is
 * its own combine function. Sums of bigint and double precision are updated in place when an
 * aggregate calls, as core's avg(integer) does with its state. NULL arrays are skipped.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "common/int.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/float.h"
#include "utils/numeric.h"

#include "aggregates/aggcall.h"
#include "aggregates/state_forms.h"

PG_FUNCTION_INFO_V1(gpuagg_histogram_merge_int8);
PG_FUNCTION_INFO_V1(gpuagg_histogram_merge_float8);
PG_FUNCTION_INFO_V1(gpuagg_histogram_merge_numeric);

/* Raises an error if an array has not one dimension or contains NULLs. */
static void
check_array(ArrayType *array)
{
	if (ARR_NDIM(array) != 1)
		ereport(ERROR,
				(errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
				 ARR_NDIM(array) == 0 ?
					 errmsg("counts of gpu_histogram_merge must not be empty") :
					 errmsg("counts of gpu_histogram_merge must be a one-dimensional array")));
	if (array_contains_nulls(array))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("counts of gpu_histogram_merge must not contain nulls")));
}

/*
 * Checks both arguments. The sum so far may not come from this function: it may be the INITCOND of
 * a user's aggregate.
 */
static void
check_input(ArrayType *array, ArrayType *sum)
{
	check_array(array);
	if (sum)
		check_array(sum);
	if (sum && ARR_DIMS(sum)[0] != ARR_DIMS(array)[0])
		ereport(ERROR,
				(errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
				 errmsg("gpu_histogram_merge cannot merge histograms of different lengths"),
				 errdetail("One array has %d elements, another one has %d.", ARR_DIMS(array)[0],
						   ARR_DIMS(sum)[0]),
				 errhint("Only histograms that were made with the same arguments can be merged.")));
}

/*
 * Sets the arrays of both arguments, which are checked. *sum is NULL if there is no sum yet; else
 * it may be written to. Returns false if the second argument is NULL.
 */
static bool
merge_arguments(FunctionCallInfo fcinfo, ArrayType **sum, ArrayType **array)
{
	CHECK_FOR_INTERRUPTS();
	aggregate_context(fcinfo);
	if (PG_ARGISNULL(1))
		return false;
	*sum = PG_ARGISNULL(0) ? NULL : PG_GETARG_ARRAYTYPE_P(0);
	*array = PG_GETARG_ARRAYTYPE_P(1);
	check_input(*array, *sum);
	return true;
}

/* (sum, counts) of bigint[] */
Datum
gpuagg_histogram_merge_int8(PG_FUNCTION_ARGS)
{
	ArrayType *sum, *array;
	int64 *a, *b;

	if (!merge_arguments(fcinfo, &sum, &array))
		RETURN_STATE_UNCHANGED();
	b = (int64 *) ARR_DATA_PTR(array);
	if (sum == NULL)
		PG_RETURN_DATUM(form_array(INT8OID, b, ARR_DIMS(array)[0]));
	a = (int64 *) ARR_DATA_PTR(sum);
	for (int i = 0; i < ARR_DIMS(sum)[0]; i++)
		if (unlikely(pg_add_s64_overflow(a[i], b[i], &a[i])))
			ereport(ERROR,
					(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE), errmsg("bigint out of range")));
	PG_FREE_IF_COPY(array, 1);
	PG_RETURN_ARRAYTYPE_P(sum);
}

/* (sum, weights) of double precision[] */
Datum
gpuagg_histogram_merge_float8(PG_FUNCTION_ARGS)
{
	ArrayType *sum, *array;
	double *a, *b;

	if (!merge_arguments(fcinfo, &sum, &array))
		RETURN_STATE_UNCHANGED();
	b = (double *) ARR_DATA_PTR(array);
	if (sum == NULL)
		PG_RETURN_DATUM(form_array(FLOAT8OID, b, ARR_DIMS(array)[0]));
	a = (double *) ARR_DATA_PTR(sum);
	for (int i = 0; i < ARR_DIMS(sum)[0]; i++)
		a[i] = float8_pl(a[i], b[i]);
	PG_FREE_IF_COPY(array, 1);
	PG_RETURN_ARRAYTYPE_P(sum);
}

/* (sum, weights) of numeric[] */
Datum
gpuagg_histogram_merge_numeric(PG_FUNCTION_ARGS)
{
	ArrayType *sum, *array;
	Datum *a, *b;
	int n;

	if (!merge_arguments(fcinfo, &sum, &array))
		RETURN_STATE_UNCHANGED();
	deconstruct_array(array, NUMERICOID, -1, false, TYPALIGN_INT, &b, NULL, &n);
	if (sum)
	{
		deconstruct_array(sum, NUMERICOID, -1, false, TYPALIGN_INT, &a, NULL, &n);
		for (int i = 0; i < n; i++)
		{
			b[i] = DirectFunctionCall2(numeric_add, a[i], b[i]);
			if (i % 4096 == 0)
				CHECK_FOR_INTERRUPTS();
		}
	}
	PG_RETURN_ARRAYTYPE_P(construct_array(b, n, NUMERICOID, -1, false, TYPALIGN_INT));
}
