/*
 * tuples.h
 *	  Makes tuples of groups.
 */
#ifndef GPUAGG_TUPLES_H
#define GPUAGG_TUPLES_H

#include "postgres.h"

#include "executor/tuptable.h"

struct GpuAggState;
typedef struct Tuples Tuples;

/* Allocates what tuples of state->outputs need, in the current context. */
extern Tuples *tuples_open(struct GpuAggState *state);

/* Called when state->groups or state->run.chosen has changed. */
extern void tuples_restart(Tuples *tuples);

/*
 * Stores the i-th of the chosen groups in the slot; i grows from call to call.  By-reference values
 * are in the current context, or valid until the next call.
 */
extern void tuples_store(Tuples *tuples, TupleTableSlot *slot, int i);

#endif /* GPUAGG_TUPLES_H */
