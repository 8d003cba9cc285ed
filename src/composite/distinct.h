/*
 * distinct.h
 *	  Aggregates of DISTINCT values, and of rows in an order of their own.
 */
#ifndef GPUAGG_DISTINCT_H
#define GPUAGG_DISTINCT_H

#include "postgres.h"

#include "engine.h"

/*
 * Opens an engine for a spec with distincts.  The inner engine has these ops.  With `choose` each
 * set of distinct values gets the engine that engines_choose() prefers for it, otherwise one of
 * these ops, too.
 */
extern Engine *distinct_open(const EngineOps *ops, const AggSpec *spec, const EngineEnv *env,
							 bool choose);

#endif /* GPUAGG_DISTINCT_H */
