/*
 * agg_step.h
 *	  Transitions without a function call.
 */
#ifndef GPUAGG_AGG_STEP_H
#define GPUAGG_AGG_STEP_H

#include "postgres.h"

#include "fmgr.h"

#include "aggregates/aggcall.h"

/*
 * Returns the step that replaces most calls of a transition function, or NULL. The function's
 * expression has the types of the arguments.
 */
extern AggStep agg_step(const FmgrInfo *transfn);

/* Returns the function that replaces such steps of consecutive rows, or NULL. */
extern AggSteps agg_steps(const FmgrInfo *transfn);

#endif /* GPUAGG_AGG_STEP_H */
