/*
 * interval_steps.h
 *	  Transitions of interval aggregates without a function call.
 */
#ifndef GPUAGG_INTERVAL_STEPS_H
#define GPUAGG_INTERVAL_STEPS_H

#include "postgres.h"

#include "fmgr.h"
#include "utils/timestamp.h"

#include "aggregates/aggcall.h"
#include "common/compat.h"

/* Returns the step that replaces a transition function of intervals, or NULL. */
extern AggStep interval_step(const FmgrInfo *transfn);

/*
 * Adds an interval to a sum. Returns false, and changes nothing, if core's interval_pl must do it.
 */
static inline bool
interval_add(Interval *sum, const Interval *x)
{
	Interval r;

	if (compat_interval_may_be_infinite(x) || compat_interval_may_be_infinite(sum) ||
		__builtin_add_overflow(sum->month, x->month, &r.month) ||
		__builtin_add_overflow(sum->day, x->day, &r.day) ||
		__builtin_add_overflow(sum->time, x->time, &r.time) || compat_interval_may_be_infinite(&r))
		return false;
	*sum = r;
	return true;
}

/*
 * Functions of the library's own states, before PostgreSQL 17; see interval.c. The second one is an
 * AggStep.
 */
extern Datum gpuagg_interval_avg_accum(PG_FUNCTION_ARGS);
extern bool interval_state_step(Datum value, const NullableDatum *args);

#endif /* GPUAGG_INTERVAL_STEPS_H */
