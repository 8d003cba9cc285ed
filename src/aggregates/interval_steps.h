/*
 * interval_steps.h
 *	  Transitions of interval aggregates without a call.
 */
#ifndef GPUAGG_INTERVAL_STEPS_H
#define GPUAGG_INTERVAL_STEPS_H

#include "postgres.h"

#include "fmgr.h"
#include "utils/timestamp.h"

/*
 * Changes a transition value that is there, and the caller's own, by an argument that is not NULL,
 * as the transition function would; false: only that can tell, and nothing is changed.
 */
typedef bool (*AggStep)(Datum state, Datum value);

/* The step for a transition function, or NULL. */
extern AggStep interval_step(const FmgrInfo *transfn);

/* The values that are infinite in newer releases. */
static inline bool
interval_is_edge(const Interval *i)
{
	return (i->month == PG_INT32_MAX || i->month == PG_INT32_MIN) &&
		(i->day == PG_INT32_MAX || i->day == PG_INT32_MIN);
}

/* Adds to a sum; false, and nothing is changed: core's interval_pl must. */
static inline bool
interval_add(Interval *sum, const Interval *x)
{
	Interval r;

	if (interval_is_edge(x) || interval_is_edge(sum) ||
		__builtin_add_overflow(sum->month, x->month, &r.month) ||
		__builtin_add_overflow(sum->day, x->day, &r.day) ||
		__builtin_add_overflow(sum->time, x->time, &r.time) || interval_is_edge(&r))
		return false;
	*sum = r;
	return true;
}

/* Of the library's own states, before PostgreSQL 17; see interval.c. */
extern Datum gpuagg_interval_avg_accum(PG_FUNCTION_ARGS);
extern bool interval_state_step(Datum value, Datum summand);

#endif /* GPUAGG_INTERVAL_STEPS_H */
