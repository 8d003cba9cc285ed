/*
 * interval_steps.c
 *	  Transitions of interval aggregates without a function call: sums, averages and extremes.
 *
 * A sum is updated in place, where core's functions make a new interval or array for each row.
 * Overflows and infinities are left to core. Before PostgreSQL 17 an average has an array of its
 * sum and count; since then, an internal state of core's.
 */
#include "postgres.h"

#include "utils/array.h"
#include "utils/fmgroids.h"
#include "utils/timestamp.h"

#include "aggregates/interval_steps.h"
#include "common/compat.h"
#include "operators/monoid.h"

/* Returns the value by which core compares intervals. */
static inline gpuagg_i128
compared_value(const Interval *x)
{
	return x->time + ((int64) x->month * DAYS_PER_MONTH + x->day) * (gpuagg_i128) USECS_PER_DAY;
}

/* Step of min(interval). Among equal intervals, takes the later one, as core does. */
static bool
step_smaller(Datum state, const NullableDatum *args)
{
	Interval *least = DatumGetIntervalP(state);
	const Interval *x = DatumGetIntervalP(args[0].value);

	if (args[0].isnull)
		return false;
	if (compared_value(least) >= compared_value(x))
		*least = *x;
	return true;
}

/* Step of max(interval). Among equal intervals, takes the later one, as core does. */
static bool
step_larger(Datum state, const NullableDatum *args)
{
	Interval *greatest = DatumGetIntervalP(state);
	const Interval *x = DatumGetIntervalP(args[0].value);

	if (args[0].isnull)
		return false;
	if (compared_value(greatest) <= compared_value(x))
		*greatest = *x;
	return true;
}

/* Step of sum(interval). */
static bool
step_sum(Datum state, const NullableDatum *args)
{
	return !args[0].isnull &&
		interval_add(DatumGetIntervalP(state), DatumGetIntervalP(args[0].value));
}

#ifdef F_INTERVAL_ACCUM
/*
 * Step of avg(interval) before PostgreSQL 17. The state is an array of the sum and, as the time of
 * an interval, the count.
 */
static bool
step_average(Datum state, const NullableDatum *args)
{
	ArrayType *array = (ArrayType *) DatumGetPointer(state);
	Interval *sums = (Interval *) ARR_DATA_PTR(array);

	if (args[0].isnull || VARATT_IS_EXTENDED(array) || ARR_NDIM(array) != 1 ||
		ARR_DIMS(array)[0] != 2 || ARR_HASNULL(array) ||
		!interval_add(&sums[0], DatumGetIntervalP(args[0].value)))
		return false;
	sums[1].time++;
	return true;
}
#endif

AggStep
interval_step(const FmgrInfo *transfn)
{
	switch (transfn->fn_oid)
	{
		case F_INTERVAL_SMALLER:
			return step_smaller;
		case F_INTERVAL_LARGER:
			return step_larger;
		case F_INTERVAL_PL:
			return step_sum;
#ifdef F_INTERVAL_ACCUM
		case F_INTERVAL_ACCUM:
			return step_average;
#endif
		default:
#if !COMPAT_INTERVAL_STATES
			if (transfn->fn_addr == gpuagg_interval_avg_accum)
				return interval_state_step;
#endif
			return NULL;
	}
}
