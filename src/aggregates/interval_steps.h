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
 * Changes a transition value that is there, and the caller's own, by an argument that is not NULL, as the
 * transition function would; false: only that can tell, and nothing is changed.
 */
typedef bool (*AggStep) (Datum state, Datum value);

/* The step for a transition function, or NULL. */
extern AggStep interval_step(const FmgrInfo *transfn);

/* Adds to a sum; false, and nothing is changed: core's interval_pl must. */
extern bool interval_add(Interval *sum, const Interval *x);

/* Of the library's own states, before PostgreSQL 17; see interval.c. */
extern Datum gpuagg_interval_avg_accum(PG_FUNCTION_ARGS);
extern bool interval_state_step(Datum value, Datum summand);

#endif							/* GPUAGG_INTERVAL_STEPS_H */
