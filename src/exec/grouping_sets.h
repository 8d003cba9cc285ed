/*
 * grouping_sets.h
 *	  GROUPING SETS, ROLLUP and CUBE.
 */
#ifndef GPUAGG_GROUPING_SETS_H
#define GPUAGG_GROUPING_SETS_H

#include "postgres.h"

#include "engine.h"

/* An engine for a spec with sets, made of engines: of these ops where rows are reduced. */
extern Engine *grouping_sets_open(const EngineOps *ops, const AggSpec *spec, const EngineEnv *env);

/* How many engines of these ops would rows go to?  1 for a spec without sets. */
extern int grouping_sets_engines(const EngineOps *ops, const AggSpec *spec, bool parallel);

/*
 * The set that this set's groups are made from by an engine of grouping_sets_open(), or -1: from
 * rows.
 */
extern int grouping_sets_source(const Engine *engine, int set);

#endif /* GPUAGG_GROUPING_SETS_H */
