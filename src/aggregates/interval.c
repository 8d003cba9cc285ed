/*
 * interval.c
 *	  Sums and averages of intervals: serialized states for all releases, and all functions before
 *	  PostgreSQL 17.
 *
 * In PostgreSQL 17, core's functions changed from a state of SQL types to an internal one, which
 * supports infinite intervals. gpu_sum(interval) and gpu_avg(interval) must be the same objects in
 * all releases. Therefore the library has its own version of core's newer functions for older
 * releases. They add and divide with core's operators, so their results equal those of sum and avg.
 *
 * Serialized states have the same form in all releases, because servers of different releases
 * exchange them. The form is a version byte, followed by what core writes since 17: the number of
 * finite intervals, their sum, and the numbers of infinite and minus infinite intervals.
 */
#include "postgres.h"

#include "fmgr.h"
#include "libpq/pqformat.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/timestamp.h"

#include "aggregates/aggcall.h"
#include "aggregates/interval_steps.h"
#include "aggregates/portable.h"
#include "common/compat.h"

#define FORM 1

PG_FUNCTION_INFO_V1(gpuagg_interval_avg_serialize);
PG_FUNCTION_INFO_V1(gpuagg_interval_avg_deserialize);

/* The contents of a serialized state. */
typedef struct SerializedIntervals
{
	int64 n;
	Interval sum;
	int64 infinite;
	int64 minus_infinite;
} SerializedIntervals;

/* Reads and checks a serialized state, which may come from anywhere. */
static SerializedIntervals
read_serialized(bytea *bytes)
{
	SerializedIntervals s;
	StringInfoData buf;

	portable_read(&buf, bytes);
	portable_check_format(pq_getmsgbyte(&buf), FORM);
	s.n = pq_getmsgint64(&buf);
	s.sum.time = pq_getmsgint64(&buf);
	s.sum.day = pq_getmsgint(&buf, 4);
	s.sum.month = pq_getmsgint(&buf, 4);
	s.infinite = pq_getmsgint64(&buf);
	s.minus_infinite = pq_getmsgint64(&buf);
	pq_getmsgend(&buf);
	if (s.n < 0 || s.infinite < 0 || s.minus_infinite < 0)
		portable_invalid("count");
	return s;
}

#if COMPAT_INTERVAL_STATES

/*
 * The state is core's own. The library's serialized form is a version byte and core's serialized
 * form.
 */
Datum
gpuagg_interval_avg_serialize(PG_FUNCTION_ARGS)
{
	bytea *core = DatumGetByteaPP(interval_avg_serialize(fcinfo));
	StringInfoData buf;

	pq_begintypsend(&buf);
	pq_sendbyte(&buf, FORM);
	pq_sendbytes(&buf, VARDATA_ANY(core), VARSIZE_ANY_EXHDR(core));
	PG_RETURN_BYTEA_P(pq_endtypsend(&buf));
}

Datum
gpuagg_interval_avg_deserialize(PG_FUNCTION_ARGS)
{
	bytea *bytes = PG_GETARG_BYTEA_PP(0);
	SerializedIntervals s = read_serialized(bytes);
	StringInfoData core;

	/* a finite interval of an older server may be an infinite one here */
	if (INTERVAL_NOT_FINITE(&s.sum))
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE), errmsg("interval out of range")));
	pq_begintypsend(&core);
	pq_sendbytes(&core, VARDATA_ANY(bytes) + 1, VARSIZE_ANY_EXHDR(bytes) - 1);
	fcinfo->args[0].value = PointerGetDatum(pq_endtypsend(&core));
	return interval_avg_deserialize(fcinfo);
}

#else

PG_FUNCTION_INFO_V1(gpuagg_interval_avg_accum);
PG_FUNCTION_INFO_V1(gpuagg_interval_avg_accum_inv);
PG_FUNCTION_INFO_V1(gpuagg_interval_avg_combine);
PG_FUNCTION_INFO_V1(gpuagg_interval_avg);
PG_FUNCTION_INFO_V1(gpuagg_interval_sum);

/* The transition state: the number and the sum of the intervals. */
typedef struct IntervalState
{
	int64 n;
	Interval sum;
} IntervalState;

/* Returns argument i as a state, or NULL. */
#define STATE_ARG(i) (PG_ARGISNULL(i) ? NULL : (IntervalState *) PG_GETARG_POINTER(i))

/* Returns a new, empty state in the aggregate's context. */
static IntervalState *
new_state(FunctionCallInfo fcinfo)
{
	return MemoryContextAllocZero(aggregate_context(fcinfo), sizeof(IntervalState));
}

/* Adds n intervals whose sum is *sum (interval_pl, n > 0), or removes -n of them (interval_mi). */
static void
change_state(IntervalState *state, PGFunction operator, Interval * sum, int64 n)
{
	state->sum = *DatumGetIntervalP(
		DirectFunctionCall2(operator, IntervalPGetDatum(&state->sum), IntervalPGetDatum(sum)));
	state->n += n;
}

bool
interval_state_step(Datum value, const NullableDatum *args)
{
	IntervalState *state = (IntervalState *) DatumGetPointer(value);

	if (args[0].isnull || !interval_add(&state->sum, DatumGetIntervalP(args[0].value)))
		return false;
	state->n++;
	return true;
}

/* Transition function of gpu_sum and gpu_avg of interval. Skips NULLs. */
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

/* Inverse transition function, for moving windows. Skips NULLs. */
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

/* Combine function of gpu_sum and gpu_avg of interval. */
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

/* Returns the serialized form of a state. */
static bytea *
write_serialized(const SerializedIntervals *s)
{
	StringInfoData buf;

	pq_begintypsend(&buf);
	pq_sendbyte(&buf, FORM);
	pq_sendint64(&buf, s->n);
	pq_sendint64(&buf, s->sum.time);
	pq_sendint32(&buf, s->sum.day);
	pq_sendint32(&buf, s->sum.month);
	pq_sendint64(&buf, s->infinite);
	pq_sendint64(&buf, s->minus_infinite);
	return pq_endtypsend(&buf);
}

Datum
gpuagg_interval_avg_serialize(PG_FUNCTION_ARGS)
{
	IntervalState *state = (IntervalState *) PG_GETARG_POINTER(0);
	SerializedIntervals s = {.n = state->n, .sum = state->sum};

	PG_RETURN_BYTEA_P(write_serialized(&s));
}

Datum
gpuagg_interval_avg_deserialize(PG_FUNCTION_ARGS)
{
	SerializedIntervals s = read_serialized(PG_GETARG_BYTEA_PP(0));
	IntervalState *state = palloc(sizeof(IntervalState));

	aggregate_context(fcinfo);
	if (s.infinite > 0 || s.minus_infinite > 0)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("partial state contains infinite intervals"),
				 errdetail("This version of PostgreSQL does not support infinite intervals.")));
	state->n = s.n;
	state->sum = s.sum;
	PG_RETURN_POINTER(state);
}

/* Final function of gpu_avg of interval. NULL if no row counts. */
Datum
gpuagg_interval_avg(PG_FUNCTION_ARGS)
{
	IntervalState *state = STATE_ARG(0);

	if (state == NULL || state->n == 0)
		PG_RETURN_NULL();
	return DirectFunctionCall2(interval_div, IntervalPGetDatum(&state->sum),
							   Float8GetDatum((double) state->n));
}

/* Final function of gpu_sum of interval. NULL if no row counts. */
Datum
gpuagg_interval_sum(PG_FUNCTION_ARGS)
{
	IntervalState *state = STATE_ARG(0);
	Interval *result;

	if (state == NULL || state->n == 0)
		PG_RETURN_NULL();
	result = palloc(sizeof(Interval));
	*result = state->sum;
	PG_RETURN_INTERVAL_P(result);
}

#endif /* COMPAT_INTERVAL_STATES */
