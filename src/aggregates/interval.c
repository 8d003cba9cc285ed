/*
 * interval.c
 *	  Sums and averages of intervals, before PostgreSQL 17.
 *
 * Core's own functions changed there from a state of SQL types to an internal one,
 * which knows infinite intervals.  So that gpu_sum(interval) and gpu_avg(interval) are the
 * same objects in all releases, the library has core's newer functions where core
 * does not; they add and divide by core's operators, and so agree with sum and avg.
 */
#include "postgres.h"

#include "common/compat.h"

#if !COMPAT_INTERVAL_STATES

#include "fmgr.h"
#include "libpq/pqformat.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "aggregates/interval_steps.h"

PG_FUNCTION_INFO_V1(gpuagg_interval_avg_accum);
PG_FUNCTION_INFO_V1(gpuagg_interval_avg_accum_inv);
PG_FUNCTION_INFO_V1(gpuagg_interval_avg_combine);
PG_FUNCTION_INFO_V1(gpuagg_interval_avg_serialize);
PG_FUNCTION_INFO_V1(gpuagg_interval_avg_deserialize);
PG_FUNCTION_INFO_V1(gpuagg_interval_avg);
PG_FUNCTION_INFO_V1(gpuagg_interval_sum);

typedef struct IntervalState
{
	int64		n;
	Interval	sum;
} IntervalState;

/* Argument i as a state; NULL for none. */
#define STATE_ARG(i) (PG_ARGISNULL(i) ? NULL : (IntervalState *) PG_GETARG_POINTER(i))

static IntervalState *
new_state(FunctionCallInfo fcinfo)
{
	MemoryContext cxt;

	if (!AggCheckCallContext(fcinfo, &cxt))
		elog(ERROR, "aggregate function called in non-aggregate context");
	return MemoryContextAllocZero(cxt, sizeof(IntervalState));
}

/* Adds n intervals of a sum, or takes them away, by interval_pl or interval_mi. */
static void
change_state(IntervalState *state, PGFunction operator, Interval *sum, int64 n)
{
	state->sum = *DatumGetIntervalP(DirectFunctionCall2(operator, IntervalPGetDatum(&state->sum),
														 IntervalPGetDatum(sum)));
	state->n += n;
}

bool
interval_state_step(Datum value, Datum summand)
{
	IntervalState *state = (IntervalState *) DatumGetPointer(value);

	if (!interval_add(&state->sum, DatumGetIntervalP(summand)))
		return false;
	state->n++;
	return true;
}

Datum
gpuagg_interval_avg_accum(PG_FUNCTION_ARGS)
{
	IntervalState *state = STATE_ARG(0);

	if (state == NULL)
		state = new_state(fcinfo);
	if (!PG_ARGISNULL(1))
		change_state(state, interval_pl, PG_GETARG_INTERVAL_P(1), 1);
	PG_RETURN_POINTER(state);
}

Datum
gpuagg_interval_avg_accum_inv(PG_FUNCTION_ARGS)
{
	IntervalState *state = STATE_ARG(0);

	if (state == NULL)
		elog(ERROR, "gpuagg_interval_avg_accum_inv called with NULL state");
	if (!PG_ARGISNULL(1))
		change_state(state, interval_mi, PG_GETARG_INTERVAL_P(1), -1);
	PG_RETURN_POINTER(state);
}

Datum
gpuagg_interval_avg_combine(PG_FUNCTION_ARGS)
{
	IntervalState *state = STATE_ARG(0);
	IntervalState *other = STATE_ARG(1);

	if (other == NULL)
	{
		if (state == NULL)
			PG_RETURN_NULL();
		PG_RETURN_POINTER(state);
	}
	if (state == NULL)
		state = new_state(fcinfo);
	change_state(state, interval_pl, &other->sum, other->n);
	PG_RETURN_POINTER(state);
}

Datum
gpuagg_interval_avg_serialize(PG_FUNCTION_ARGS)
{
	IntervalState *state = (IntervalState *) PG_GETARG_POINTER(0);
	StringInfoData buf;

	pq_begintypsend(&buf);
	pq_sendint64(&buf, state->n);
	pq_sendint64(&buf, state->sum.time);
	pq_sendint32(&buf, state->sum.day);
	pq_sendint32(&buf, state->sum.month);
	PG_RETURN_BYTEA_P(pq_endtypsend(&buf));
}

Datum
gpuagg_interval_avg_deserialize(PG_FUNCTION_ARGS)
{
	bytea	   *bytes = PG_GETARG_BYTEA_PP(0);
	IntervalState *state = palloc(sizeof(IntervalState));
	StringInfoData buf;

	if (!AggCheckCallContext(fcinfo, NULL))
		elog(ERROR, "aggregate function called in non-aggregate context");
	initStringInfo(&buf);
	appendBinaryStringInfo(&buf, VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes));
	state->n = pq_getmsgint64(&buf);
	state->sum.time = pq_getmsgint64(&buf);
	state->sum.day = pq_getmsgint(&buf, 4);
	state->sum.month = pq_getmsgint(&buf, 4);
	pq_getmsgend(&buf);
	PG_RETURN_POINTER(state);
}

Datum
gpuagg_interval_avg(PG_FUNCTION_ARGS)
{
	IntervalState *state = STATE_ARG(0);

	if (state == NULL || state->n == 0)
		PG_RETURN_NULL();
	return DirectFunctionCall2(interval_div, IntervalPGetDatum(&state->sum),
							   Float8GetDatum((double) state->n));
}

Datum
gpuagg_interval_sum(PG_FUNCTION_ARGS)
{
	IntervalState *state = STATE_ARG(0);
	Interval   *result;

	if (state == NULL || state->n == 0)
		PG_RETURN_NULL();
	result = palloc(sizeof(Interval));
	*result = state->sum;
	PG_RETURN_INTERVAL_P(result);
}

#endif							/* !COMPAT_INTERVAL_STATES */
