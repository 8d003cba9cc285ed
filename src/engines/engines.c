/*
 * engines.c
 *	  The list of engines, and the choice of one for a query.
 *
 * Planner and executor do not depend on particular engines: EngineOps say what an engine can run,
 * what that costs, and what EXPLAIN prints of it.  A new engine is a folder with its EngineOps,
 * and a line in the list below.
 */
#include "postgres.h"

#include "utils/guc.h"
#include "utils/lsyscache.h"

#include "engine_cpu/engine_cpu.h"
#include "engine_cuda/engine_cuda.h"
#include "engines/engines.h"
#include "settings.h"

/* The last one is the default engine: it is always available, and runs every query. */
static const EngineOps *const engines[] = {&engine_cuda_ops, &engine_cpu_ops};

/* Engines before the default one. */
#define OTHERS (lengthof(engines) - 1)

/* Most engines of a query that get all rows, unless they are default ones: each needs a session. */
#define MOST_ROW_ENGINES 4

const EngineOps *
engines_default(void)
{
	return engines[OTHERS];
}

const struct config_enum_entry *
engines_options(void)
{
	static struct config_enum_entry options[lengthof(engines) + 2];

	options[0].name = "auto";
	options[0].val = GPUAGG_ENGINE_AUTO;
	for (int e = 0; e < lengthof(engines); e++)
	{
		options[e + 1].name = engines[e]->name;
		options[e + 1].val = GPUAGG_ENGINE_AUTO + e + 1;
	}
	return options;
}

/* Returns whether gpuagg.engine allows this engine, which is not the default one. */
static bool
is_allowed(int e)
{
	return gpuagg_engine == GPUAGG_ENGINE_AUTO || gpuagg_engine == GPUAGG_ENGINE_AUTO + e + 1;
}

static bool
is_available(const EngineOps *ops, char *note, size_t note_size)
{
	return ops->available == NULL || ops->available(note, note_size);
}

/*
 * Returns why the engine cannot compute the query's DISTINCT aggregates, ordered sets and
 * aggregates of the n best or of counted values itself, or NULL.
 */
static const char *
sets_unsupported_reason(const EngineOps *ops, const EngineQuery *query)
{
	const AggSpec *spec = query->spec;
	bool sets = spec ? spec_has_sets(spec) : query->ordered_sets;

	if (query->tallies && !ops->support.tallies)
		return "counts of values are not supported by this engine";
	if (!sets && !query->top_n && !query->tallies)
		return NULL;
	if (!ops->runs_sets)
		return !sets ? "the n best of a group are not supported by this engine" :
			spec && spec->ndistincts > 0 ?
					   "DISTINCT aggregates are not supported by this engine" :
					   "ordered-set aggregates are not supported by this engine";
	if (query->input.parallel)
		return "all distinct or ordered values must fit into memory, and the input of a parallel "
			   "plan cannot be read twice";
	if (query->input.read_once)
		return "all distinct or ordered values must fit into memory, and the input cannot be read "
			   "twice";
	return NULL;
}

/* Returns why the engine cannot run the query, or NULL. */
static const char *
unsupported_reason(const EngineOps *ops, const EngineQuery *query)
{
	if (query->input.grouped && !ops->keeps_order)
		return "sorted input is not supported by this engine";
	if (query->spec && query->spec->ordered_floats && !ops->adds_in_order)
		return "a sum of floats with DISTINCT or an ORDER BY must be added in that order";
	if (ops != engines_default() && sets_unsupported_reason(ops, query))
		return sets_unsupported_reason(ops, query);
	if (query->row_engines > MOST_ROW_ENGINES && ops != engines_default())
		return "too many grouping sets cannot be computed from one another";
	if (OidIsValid(query->fallback) && !ops->runs_fallbacks)
		return psprintf("%s needs its own transition function, which runs only on the CPU",
						get_func_name(query->fallback));
	if (query->ranked && !ops->runs_fallbacks && query->work.resident == 0)
		return "the least or greatest text is found on the GPU only among rows that it has cached";
	/* participants of a parallel plan may have agreed on the support of another engine */
	if (query->spec && query->spec->mixed_scales && !ops->support.usual_scales)
		return "sums of numerics without a declared scale are not supported";
	return query->spec && ops->unsupported_reason ?
		ops->unsupported_reason(query->spec, &query->input) :
		NULL;
}

const EngineOps *
engines_candidate(void)
{
	char note[256];

	for (int e = 0; e < OTHERS; e++)
		if (is_allowed(e) && is_available(engines[e], note, sizeof(note)))
			return engines[e];
	return engines_default();
}

/*
 * Returns whether the engine can run the query, and is cheaper than `cost`, or named by
 * gpuagg.engine.  `note` gets the name of its device, or the reason why not.
 */
static bool
is_better(const EngineOps *ops, const EngineQuery *query, Cost cost, char *note, size_t note_size)
{
	const char *why;

	strlcpy(note, "", note_size);
	if (!is_available(ops, note, note_size))
	{
		if (gpuagg_engine != GPUAGG_ENGINE_AUTO)
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("engine \"%s\" is not available", ops->name),
					 errdetail("The reason is: %s.", note),
					 errhint("Set \"%s\" to \"auto\" or \"%s\".", "gpuagg.engine",
							 engines_default()->name)));
		return false;
	}
	why = unsupported_reason(ops, query);
	if (why)
		strlcpy(note, why, note_size);
	else if (gpuagg_engine == GPUAGG_ENGINE_AUTO && ops->cost(&query->work) >= cost)
	{
		EngineWork reduced = query->work;

		reduced.returned = 0;
		snprintf(note, note_size,
				 ops->cost(&reduced) < cost ? "too many groups to return from %s" :
											  "too few rows for %s",
				 ops->place);
	}
	else
		return true;
	return false;
}

const EngineOps *
engines_choose(const EngineQuery *query, char *reason, size_t reason_size)
{
	const EngineOps *best = engines_default();
	char note[256];

	strlcpy(reason, "", reason_size);
	for (int e = 0; e < OTHERS; e++)
	{
		bool better = is_allowed(e) &&
			is_better(engines[e], query, best->cost(&query->work), note, sizeof(note));

		if (better || (is_allowed(e) && best == engines_default()))
			strlcpy(reason, note, reason_size);
		if (better)
			best = engines[e];
	}
	return best;
}

void
engines_add_resident_work(EngineWork *work, double resident, double scanned)
{
	work->resident = resident;
	work->scanned = scanned;
	work->read = scanned * gpuagg_cache_row_cost;
}

bool
engines_can_take_resident(const EngineQuery *query)
{
	Cost cost = engines_default()->cost(&query->work);
	char note[256];

	for (int e = 0; e < OTHERS; e++)
		if (is_allowed(e) && engines[e]->take_resident &&
			unsupported_reason(engines[e], query) == NULL &&
			(gpuagg_engine != GPUAGG_ENGINE_AUTO || engines[e]->cost(&query->work) < cost) &&
			is_available(engines[e], note, sizeof(note)))
			return true;
	return false;
}

Cost
engines_cost(const EngineQuery *query)
{
	Cost cost = engines_default()->cost(&query->work);
	char note[256];

	/* whether an engine is available is examined last, as that takes the longest */
	for (int e = 0; e < OTHERS; e++)
		if (is_allowed(e) && engines[e]->cost(&query->work) < cost &&
			unsupported_reason(engines[e], query) == NULL &&
			is_available(engines[e], note, sizeof(note)))
			cost = engines[e]->cost(&query->work);
	return cost;
}

void
engines_explain(const EngineStats *stats, ExplainState *es)
{
	for (int e = 0; e < lengthof(engines); e++)
		if (engines[e]->explain)
			engines[e]->explain(stats, es);
}

void
engines_release(EState *estate, bool in_steps)
{
	for (int e = 0; e < lengthof(engines); e++)
		if (engines[e]->release)
			engines[e]->release(estate, in_steps);
}
