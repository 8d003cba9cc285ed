/*
 * ordered_set.h
 *	  Ordered-set aggregates: percentiles and modes.
 */
#ifndef GPUAGG_ORDERED_SET_H
#define GPUAGG_ORDERED_SET_H

#include "postgres.h"

#include "engine.h"

/*
 * An engine for a spec with ordered sets, made around one of these ops for its other aggregates;
 * env->fraction is called for each group when all rows are there.
 */
extern Engine *ordered_set_open(const EngineOps *ops, const AggSpec *spec, const EngineEnv *env);

#endif /* GPUAGG_ORDERED_SET_H */
