/*
 * composite.c
 *	  Chooses the composite engine for a spec; see composite.h.
 */
#include "postgres.h"

#include "composite/composite.h"
#include "composite/distinct.h"
#include "composite/grouping_sets.h"
#include "composite/ordered_engine.h"

Engine *
composite_open(const EngineOps *ops, const AggSpec *spec, const EngineEnv *env, bool choose)
{
	/*
	 * the engine of each grouping set, and the inner engine of ordered sets, are opened here, too
	 */
	if (spec->nsets > 0)
		return grouping_sets_open(ops, spec, env, composite_open);
	if (ops->runs_sets)
		return ops->open(spec, env);
	if (spec->nordered_sets > 0)
		return ordered_engine_open(ops, spec, env, composite_open);
	if (spec->ndistincts > 0)
		return distinct_open(ops, spec, env, choose);
	return ops->open(spec, env);
}

int
composite_count_row_engines(const EngineOps *ops, const AggSpec *spec, bool parallel)
{
	return spec->nsets == 0 ? 1 : grouping_sets_count_row_engines(ops, spec, parallel);
}

int
composite_set_source(const Engine *engine, int set)
{
	return grouping_sets_source(engine, set);
}
