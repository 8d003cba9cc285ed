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
 * Computes the results of groups from the i-th chosen one on, and returns how many, at most
 * GROUP_ROWS.  Row j of the arrays is the (i + j)-th group; they are valid as long as none of
 * these or a later group is stored or computed.  Returns 0 if some results cannot be computed
 * ahead.
 */
extern int tuples_compute(Tuples *tuples, int i, const Datum **values, const bool **nulls);

/*
 * Stores the i-th of the chosen groups in the slot; i grows from call to call.  By-reference values
 * are in the current context, or valid until the next call.
 */
extern void tuples_store(Tuples *tuples, TupleTableSlot *slot, int i);

#endif /* GPUAGG_TUPLES_H */
