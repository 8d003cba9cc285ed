/*
 * tuples.h
 *	  Groups as tuples.
 */
#ifndef GPUAGG_TUPLES_H
#define GPUAGG_TUPLES_H

#include "postgres.h"

#include "executor/tuptable.h"

struct GpuAggState;
typedef struct Tuples Tuples;

/* For state->spec and its outputs, in the current context. */
extern Tuples *tuples_open(struct GpuAggState *state);

/* state->groups, or what is chosen of them, are others than before. */
extern void tuples_restart(Tuples *tuples);

/*
 * Puts the i-th of the chosen groups into the slot; i grows from call to call.  Values by reference
 * are in the current context, or last until the next call.
 */
extern void tuples_store(Tuples *tuples, TupleTableSlot *slot, int i);

#endif /* GPUAGG_TUPLES_H */
