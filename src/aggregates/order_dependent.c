/*
 * order_dependent.c
 *	  Aggregates that depend on the order of rows, as ordinary aggregates: gpu_max_subarray_sum,
 *	  gpu_longest_run, gpu_longest_ascending_run, gpu_compose_linear and gpu_matrix_product.
 *
 * They are called with ORDER BY, and process rows in the order in which they arrive. They have no
 * combine function, because a parallel plan does not keep the order. States are allocated in the
 * aggregate's memory context.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "utils/array.h"
#include "utils/datum.h"
#include "utils/float.h"

#include "aggregates/aggcall.h"
#include "aggregates/argtype.h"
#include "aggregates/matrix.h"
#include "aggregates/state_forms.h"
#include "common/compat.h"
#include "operators/monoid.h"

PG_FUNCTION_INFO_V1(gpuagg_maxsub_int8_transfn);
PG_FUNCTION_INFO_V1(gpuagg_maxsub_int8_final);
PG_FUNCTION_INFO_V1(gpuagg_maxsub_float8_transfn);
PG_FUNCTION_INFO_V1(gpuagg_maxsub_float8_final);
PG_FUNCTION_INFO_V1(gpuagg_longest_run_transfn);
PG_FUNCTION_INFO_V1(gpuagg_longest_run_final);
PG_FUNCTION_INFO_V1(gpuagg_longest_ascending_transfn);
PG_FUNCTION_INFO_V1(gpuagg_longest_ascending_final);
PG_FUNCTION_INFO_V1(gpuagg_compose_linear_transfn);
PG_FUNCTION_INFO_V1(gpuagg_compose_linear_final);
PG_FUNCTION_INFO_V1(gpuagg_matrix_product_transfn);
PG_FUNCTION_INFO_V1(gpuagg_matrix_product_final);

/* Returns the state in argument 0, or a new one of zeros in the first call. */
static void *
ordered_state(FunctionCallInfo fcinfo, Size size)
{
	MemoryContext cxt = aggregate_context(fcinfo);

	if (PG_ARGISNULL(0))
		return MemoryContextAllocZero(cxt, size);
	return PG_GETARG_POINTER(0);
}

/* ---- maximum subarray sum ---------------------------------------------- */

/*
 * Transition function of gpu_max_subarray_sum of bigint. Skips NULLs. An overflow is marked in the
 * state; see maxsub_i64 in monoid_ordered.h.
 */
Datum
gpuagg_maxsub_int8_transfn(PG_FUNCTION_ARGS)
{
	gpuagg_maxsub_i64 *state;

	if (PG_ARGISNULL(1))
		RETURN_STATE_UNCHANGED();
	state = ordered_state(fcinfo, sizeof(gpuagg_maxsub_i64));
	*state = maxsub_i64_step(*state, PG_GETARG_INT64(1));
	PG_RETURN_POINTER(state);
}

/*
 * Final function of gpu_max_subarray_sum of bigint. The empty subarray has the sum 0. NULL if no
 * row counts. Raises an error if a sum overflowed.
 */
Datum
gpuagg_maxsub_int8_final(PG_FUNCTION_ARGS)
{
	gpuagg_maxsub_i64 *state;

	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	state = (gpuagg_maxsub_i64 *) PG_GETARG_POINTER(0);
	if (state->best < 0)
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE), errmsg("bigint out of range")));
	PG_RETURN_INT64(state->best);
}

/* Transition function of gpu_max_subarray_sum of double precision. Skips NULLs. */
Datum
gpuagg_maxsub_float8_transfn(PG_FUNCTION_ARGS)
{
	gpuagg_maxsub_f64 *state;

	if (PG_ARGISNULL(1))
		RETURN_STATE_UNCHANGED();
	state = ordered_state(fcinfo, sizeof(gpuagg_maxsub_f64));
	*state = maxsub_f64_step(*state, PG_GETARG_FLOAT8(1));
	PG_RETURN_POINTER(state);
}

/*
 * Final function of gpu_max_subarray_sum of double precision. NULL if no row counts. Raises an
 * error if a sum overflowed.
 */
Datum
gpuagg_maxsub_float8_final(PG_FUNCTION_ARGS)
{
	double best;

	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	best = maxsub_f64_best(*(gpuagg_maxsub_f64 *) PG_GETARG_POINTER(0));
	if (isinf(best) && ((gpuagg_maxsub_f64 *) PG_GETARG_POINTER(0))->flags == 0)
		float_overflow_error();
	PG_RETURN_FLOAT8(best);
}

/* ---- runs --------------------------------------------------------------- */

/* Transition function of gpu_longest_run. A NULL condition is not true and ends a run. */
Datum
gpuagg_longest_run_transfn(PG_FUNCTION_ARGS)
{
	gpuagg_run *state = ordered_state(fcinfo, sizeof(gpuagg_run));
	bool holds = !PG_ARGISNULL(1) && PG_GETARG_BOOL(1);

	*state = longest_run_step(*state, holds);
	PG_RETURN_POINTER(state);
}

/* Final function of gpu_longest_run. NULL if there are no rows. */
Datum
gpuagg_longest_run_final(PG_FUNCTION_ARGS)
{
	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	PG_RETURN_INT64(((gpuagg_run *) PG_GETARG_POINTER(0))->best);
}

/*
 * The longest strictly ascending run, of any type with a btree order. A NULL ends a run and belongs
 * to none.
 */
typedef struct AscendingState
{
	int64 current;
	int64 best;
	Datum last; /* valid if current > 0 */
} AscendingState;

/* Transition function of gpu_longest_ascending_run. A NULL ends a run and belongs to none. */
Datum
gpuagg_longest_ascending_transfn(PG_FUNCTION_ARGS)
{
	AscendingState *state = ordered_state(fcinfo, sizeof(AscendingState));
	TypeCacheEntry *type = fcinfo->flinfo->fn_extra;
	Datum x = PG_GETARG_DATUM(1);
	bool ascends;

	if (type == NULL)
	{
		type = argtype_comparable(get_fn_expr_argtype(fcinfo->flinfo, 1));
		fcinfo->flinfo->fn_extra = type;
	}
	ascends = state->current > 0 && !PG_ARGISNULL(1) &&
		DatumGetInt32(
			FunctionCall2Coll(&type->cmp_proc_finfo, PG_GET_COLLATION(), state->last, x)) < 0;
	if (!type->typbyval && state->current > 0)
		pfree(DatumGetPointer(state->last));
	if (PG_ARGISNULL(1))
		state->current = 0;
	else
	{
		MemoryContext old = MemoryContextSwitchTo(aggregate_context(fcinfo));

		state->last = datumCopy(x, type->typbyval, type->typlen);
		MemoryContextSwitchTo(old);
		state->current = ascends ? state->current + 1 : 1;
		state->best = Max(state->best, state->current);
	}
	PG_RETURN_POINTER(state);
}

/* Final function of gpu_longest_ascending_run. NULL if there are no rows. */
Datum
gpuagg_longest_ascending_final(PG_FUNCTION_ARGS)
{
	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	PG_RETURN_INT64(((AscendingState *) PG_GETARG_POINTER(0))->best);
}

/* ---- linear maps and matrices ------------------------------------------- */

/* Transition function of gpu_compose_linear. Skips rows in which a or b is NULL. */
Datum
gpuagg_compose_linear_transfn(PG_FUNCTION_ARGS)
{
	gpuagg_f64x2 *state;
	gpuagg_f64x2 in;

	if (PG_ARGISNULL(1) || PG_ARGISNULL(2))
		RETURN_STATE_UNCHANGED();
	in.x = PG_GETARG_FLOAT8(1);
	in.y = PG_GETARG_FLOAT8(2);
	state = ordered_state(fcinfo, sizeof(gpuagg_f64x2));
	*state = PG_ARGISNULL(0) ? in : linear_step(*state, in);
	PG_RETURN_POINTER(state);
}

/* Final function of gpu_compose_linear. NULL if no row counts. */
Datum
gpuagg_compose_linear_final(PG_FUNCTION_ARGS)
{
	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	PG_RETURN_DATUM(form_array(FLOAT8OID, PG_GETARG_POINTER(0), 2));
}

/* The product so far: a k x k matrix. k is 0 before the first row. */
typedef struct MatrixState
{
	int k;
	union
	{
		double m[MATRIX_MAX * MATRIX_MAX];
		gpuagg_mat2 m2;
		gpuagg_mat3 m3;
		gpuagg_mat4 m4;
		gpuagg_mat5 m5;
	} u;
} MatrixState;

/*
 * Returns the number of rows of a square matrix. Raises an error if the array is not a valid
 * matrix.
 */
static int
matrix_size(ArrayType *array)
{
	int k;

	if (ARR_NDIM(array) != 2 || ARR_DIMS(array)[0] != ARR_DIMS(array)[1])
		ereport(ERROR,
				(errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
				 errmsg("matrix must be a square two-dimensional array")));
	k = ARR_DIMS(array)[0];
	if (k > MATRIX_MAX)
		ereport(
			ERROR,
			(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("matrix has %d rows", k),
			 errdetail("gpu_matrix_product multiplies matrices of at most %d rows.", MATRIX_MAX)));
	if (array_contains_nulls(array))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("matrix must not contain nulls")));
	return k;
}

int
matrix_read(Datum value, double *m)
{
	ArrayType *array = DatumGetArrayTypeP(value);
	int k = matrix_size(array);

	memcpy(m, ARR_DATA_PTR(array), sizeof(double) * k * k);
	if ((Pointer) array != DatumGetPointer(value))
		pfree(array);
	return k;
}

Datum
matrix_datum(const double *m, int size)
{
	int dims[2] = {size, size};
	int lbs[2] = {1, 1};
	Datum elems[MATRIX_MAX * MATRIX_MAX];

	for (int i = 0; i < size * size; i++)
		elems[i] = Float8GetDatum(m[i]);
	return PointerGetDatum(construct_md_array(elems, NULL, 2, dims, lbs, FLOAT8OID, sizeof(float8),
											  FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
}

/*
 * Transition function of gpu_matrix_product. Skips NULL matrices. The first matrix determines the
 * size; another size raises an error.
 */
Datum
gpuagg_matrix_product_transfn(PG_FUNCTION_ARGS)
{
	MatrixState *state;
	MatrixState in;

	if (PG_ARGISNULL(1))
		RETURN_STATE_UNCHANGED();
	in.k = matrix_read(PG_GETARG_DATUM(1), in.u.m);
	state = ordered_state(fcinfo, sizeof(MatrixState));
	if (state->k == 0)
		*state = in;
	else if (state->k != in.k)
		ereport(ERROR,
				(errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
				 errmsg("cannot multiply matrices of different sizes"),
				 errdetail("A %d by %d matrix follows one of %d by %d.", in.k, in.k, state->k,
						   state->k)));
	else
	{
		switch (in.k)
		{
			case 1:
				state->u.m[0] *= in.u.m[0];
				break;
			case 2:
				state->u.m2 = mat2_step(state->u.m2, in.u.m2);
				break;
			case 3:
				state->u.m3 = mat3_step(state->u.m3, in.u.m3);
				break;
			case 4:
				state->u.m4 = mat4_step(state->u.m4, in.u.m4);
				break;
			default:
				state->u.m5 = mat5_step(state->u.m5, in.u.m5);
				break;
		}
	}
	PG_RETURN_POINTER(state);
}

/* Final function of gpu_matrix_product. NULL if no row counts. */
Datum
gpuagg_matrix_product_final(PG_FUNCTION_ARGS)
{
	MatrixState *state;

	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	state = (MatrixState *) PG_GETARG_POINTER(0);
	PG_RETURN_DATUM(matrix_datum(state->u.m, state->k));
}
