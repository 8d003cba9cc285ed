/*
 * engines.h
 *	  The engines there are, and which of them runs a query.
 */
#ifndef GPUAGG_ENGINES_H
#define GPUAGG_ENGINES_H

#include "postgres.h"

#include "engine.h"

struct config_enum_entry;

/* What the choice of an engine depends on. */
typedef struct EngineQuery
{
	const AggSpec *spec; /* NULL before execution */
	EngineInput input;
	bool fallbacks;    /* there are fallback aggregates, whose transition functions are called */
	bool ordered_sets; /* there are aggregates of ordered sets */
	int engines;       /* that get all rows, one for each of several sets of keys */
	EngineWork work;
} EngineQuery;

/* The options of gpuagg.engine. */
extern const struct config_enum_entry *engines_options(void);

/* The engine that runs every query, and that any query can start over with. */
extern const EngineOps *engines_default(void);

/*
 * The engine that a spec is to be built for: the first one that may and can be used, if only for
 * some queries.
 */
extern const EngineOps *engines_candidate(void);

/*
 * The engine that runs the query.  `reason` is for EXPLAIN: the engine's device, or
 * why no other engine than the default one was taken; empty if gpuagg.engine says so.
 * It is an error if gpuagg.engine names an engine that is not available, but not if
 * that engine cannot run the query.
 */
extern const EngineOps *engines_choose(const EngineQuery *query, char *reason, size_t reason_size);

/* What the planner expects the engine to cost. */
extern Cost engines_cost(const EngineQuery *query);

/* Is the planner to expect an engine that takes rows of which it has copies? */
extern bool engines_can_take_resident(const EngineQuery *query);

/* EngineOps.explain and EngineOps.release of all engines. */
extern void engines_explain(const EngineStats *stats, ExplainState *es);
extern void engines_release(EState *estate, bool in_steps);

#endif /* GPUAGG_ENGINES_H */
