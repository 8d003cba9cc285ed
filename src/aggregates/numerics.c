/*
 * numerics.c
 *	  gpu_product and gpu_max_subarray_sum of numeric, as ordinary aggregates.
 *
 * Both are as exact as core's numeric arithmetic.
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/fmgrprotos.h"
#include "utils/numeric.h"

#include "aggregates/aggcall.h"

PG_FUNCTION_INFO_V1(gpuagg_numeric_mul);
PG_FUNCTION_INFO_V1(gpuagg_maxsub_numeric_transfn);
PG_FUNCTION_INFO_V1(gpuagg_maxsub_numeric_final);

/*
 * Transition function of gpu_product: (numeric, numeric), strict. Products with many digits take
 * long, so it checks for interrupts.
 */
Datum
gpuagg_numeric_mul(PG_FUNCTION_ARGS)
{
	CHECK_FOR_INTERRUPTS();
	return numeric_mul(fcinfo);
}

/*
 * Like maxsub_f64 in monoid_ordered.h. Flags record inputs that are not finite; minus infinity also
 * ends a sum.
 */
typedef struct MaxSubarray
{
	Numeric suffix; /* largest sum of rows that ends with the last row, or 0 */
	Numeric best;
	bool nan;
	bool infinite;
	bool minus_infinite;
} MaxSubarray;

/* Returns whether a > b. */
static bool
is_greater(Numeric a, Numeric b)
{
	return DatumGetBool(DirectFunctionCall2(numeric_gt, NumericGetDatum(a), NumericGetDatum(b)));
}

/* Replaces *to by a copy of `value` in cxt. */
static void
replace_numeric(Numeric *to, Numeric value, MemoryContext cxt)
{
	MemoryContext old = MemoryContextSwitchTo(cxt);

	if (*to)
		pfree(*to);
	*to = DatumGetNumeric(datumCopy(NumericGetDatum(value), false, -1));
	MemoryContextSwitchTo(old);
}

/* Adds the value of the next row to the state; copies of numerics go to cxt. */
static void
add_maxsub_value(MaxSubarray *s, Numeric x, MemoryContext cxt)
{
	Numeric zero = int64_to_numeric(0);
	Numeric sum;

	if (numeric_is_nan(x))
		s->nan = true;
	else if (!numeric_is_inf(x))
	{
		sum = DatumGetNumeric(
			DirectFunctionCall2(numeric_add, NumericGetDatum(s->suffix), NumericGetDatum(x)));
		replace_numeric(&s->suffix, is_greater(sum, zero) ? sum : zero, cxt);
		if (is_greater(s->suffix, s->best))
			replace_numeric(&s->best, s->suffix, cxt);
	}
	else if (is_greater(x, zero))
		s->infinite = true;
	else
	{
		s->minus_infinite = true;
		replace_numeric(&s->suffix, zero, cxt);
	}
}

/* Transition function of gpu_max_subarray_sum of numeric. Skips NULLs. */
Datum
gpuagg_maxsub_numeric_transfn(PG_FUNCTION_ARGS)
{
	MemoryContext cxt = aggregate_context(fcinfo);
	MaxSubarray *s;

	CHECK_FOR_INTERRUPTS();
	if (PG_ARGISNULL(1))
		RETURN_STATE_UNCHANGED();
	if (PG_ARGISNULL(0))
	{
		s = MemoryContextAllocZero(cxt, sizeof(MaxSubarray));
		replace_numeric(&s->suffix, int64_to_numeric(0), cxt);
		replace_numeric(&s->best, s->suffix, cxt);
	}
	else
		s = (MaxSubarray *) PG_GETARG_POINTER(0);
	add_maxsub_value(s, PG_GETARG_NUMERIC(1), cxt);
	PG_RETURN_POINTER(s);
}

/* Returns the numeric "NaN" or "Infinity". */
static Datum
special_numeric(const char *text)
{
	return DirectFunctionCall3(numeric_in, CStringGetDatum(text), ObjectIdGetDatum(InvalidOid),
							   Int32GetDatum(-1));
}

/* Final function of gpu_max_subarray_sum of numeric. NULL if no row counts. */
Datum
gpuagg_maxsub_numeric_final(PG_FUNCTION_ARGS)
{
	MaxSubarray *s;

	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	s = (MaxSubarray *) PG_GETARG_POINTER(0);
	if (s->nan || (s->infinite && s->minus_infinite))
		PG_RETURN_DATUM(special_numeric("NaN"));
	if (s->infinite)
		PG_RETURN_DATUM(special_numeric("Infinity"));
	/* the state may be used again */
	PG_RETURN_DATUM(datumCopy(NumericGetDatum(s->best), false, -1));
}
