/*
 * distinct.h
 *	  Aggregates of DISTINCT values, and of rows in orders of their own.
 */
#ifndef GPUAGG_DISTINCT_H
#define GPUAGG_DISTINCT_H

#include "postgres.h"

#include "nodes/primnodes.h"

#include "engine.h"

/*
 * For an aggregate of distinct values, or one whose rows are sorted for it: adds the set of its
 * rows to the spec, and returns its number, as in SlotSpec.set; 0 for any other one.  args and
 * filter are inputs as for aggmap_build().
 */
extern int distinct_add(AggSpec *spec, Aggref *aggref, const int *args, int filter, bool sorts);

/*
 * An engine for a spec with sets, made of engines of these ops; choose: those of sets may be
 * others, that suit them better.
 */
extern Engine *distinct_open(const EngineOps *ops, const AggSpec *spec, const EngineEnv *env,
							 bool choose);

#endif /* GPUAGG_DISTINCT_H */
