/*
 * engines.h
 *	  The list of engines, and the choice of one for a query.
 */
#ifndef GPUAGG_ENGINES_H
#define GPUAGG_ENGINES_H

#include "postgres.h"

#include "engine.h"

struct config_enum_entry;

/* A query as far as the choice of its engine depends on it. */
typedef struct EngineQuery
{
	const AggSpec *spec; /* NULL before execution */
	EngineInput input;
	Oid fallback;      /* a fallback aggregate other than the following, and exact ones; 0: none */
	bool ordered_sets; /* there are ordered-set aggregates */
	bool top_n;        /* there are gpu_max_n and its like (FallbackAgg.top_n) */
	bool tallies;      /* there are aggregates of counted values (FallbackAgg.tally) */
	bool ranked;       /* there are min() or max() of texts (FallbackAgg.ranked) */
	int row_engines;   /* engines that get all rows, see composite_count_row_engines() */
	EngineWork work;
} EngineQuery;

/* Returns the options of gpuagg.engine. */
extern const struct config_enum_entry *engines_options(void);

/* Returns the default engine, which runs every query, and with which any query can start over. */
extern const EngineOps *engines_default(void);

/*
 * Returns the engine that is most likely to be chosen, so that a spec is built for it first: the
 * first one that gpuagg.engine allows and that is available.
 */
extern const EngineOps *engines_candidate(void);

/*
 * Returns the engine for the query.  `reason` is for EXPLAIN: the engine's device, or the reason
 * why the default engine was chosen; empty if gpuagg.engine names that one.  Raises an error if
 * gpuagg.engine names an engine that is not available, but not if that engine cannot run the
 * query.
 */
extern const EngineOps *engines_choose(const EngineQuery *query, char *reason, size_t reason_size);

/* Returns the planner's estimate of the cost of the cheapest engine. */
extern Cost engines_cost(const EngineQuery *query);

/* Returns whether an engine may run the query that takes rows cached on its device. */
/*
 * Adds rows that an engine can take without reading them: a fraction of all rows, for which
 * `scanned` rows of tables are read.
 */
extern void engines_add_resident_work(EngineWork *work, double resident, double scanned);
extern bool engines_can_take_resident(const EngineQuery *query);

/* Call EngineOps.explain and EngineOps.release of all engines. */
extern void engines_explain(const EngineStats *stats, ExplainState *es);
extern void engines_release(EState *estate, bool in_steps);

#endif /* GPUAGG_ENGINES_H */
