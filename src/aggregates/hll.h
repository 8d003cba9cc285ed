/*
 * hll.h
 *	  The sketch of gpu_approx_count_distinct.
 */
#ifndef GPUAGG_AGGREGATES_HLL_H
#define GPUAGG_AGGREGATES_HLL_H

#include "postgres.h"

#include "fmgr.h"
#include "lib/stringinfo.h"

#include "aggregates/aggcall.h"

typedef struct HllState HllState;

/* Returns a new, empty sketch in cxt. */
extern HllState *hll_create(MemoryContext cxt);

/* Adds a value with this hash. */
extern void hll_add_hash(HllState *state, uint64 hash);

/* Merges sketch `from` into `into`. */
extern void hll_merge(HllState *into, HllState *from);

/* Append a sketch to buf, and read it. Reading raises an error if the bytes are invalid. */
extern void hll_put(StringInfo buf, HllState *state);
extern HllState *hll_get(StringInfo buf);

/* Returns the approximate number of distinct values. */
extern int64 hll_estimate(HllState *state);

/* Returns the step that replaces the transition function of gpu_approx_count_distinct, or NULL. */
extern AggStep hll_step(const FmgrInfo *transfn);

#endif /* GPUAGG_AGGREGATES_HLL_H */
