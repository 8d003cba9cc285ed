/*
 * explain.c
 *	  What EXPLAIN prints of a custom scan, and of a query that is not taken.
 *
 * Before execution the engine and strategy are those that would be used; after
 * it (ANALYZE) they are those that were, with what they did.
 */
#include "postgres.h"

#include "executor/nodeHash.h"
#include "nodes/nodeFuncs.h"
#include "utils/builtins.h"
#include "utils/ruleutils.h"

#include "engine_cuda/engine_cuda.h"
#include "exec/exec.h"
#include "gpuagg.h"

/* ---- lines of the custom scan ------------------------------------------ */

static void
explain_keys(GpuAggState *state, List *ancestors, ExplainState *es)
{
	CustomScan *cscan = (CustomScan *) state->css.ss.ps.plan;
	List	   *context;
	List	   *keys = NIL;
	bool		prefix = compat_explain_rtable_size(es) > 1 || es->verbose;

	if (state->plan->nkeys == 0)
		return;
	context = set_deparse_context_plan(es->deparse_cxt, (Plan *) cscan, ancestors);
	for (int k = 0; k < state->plan->nkeys; k++)
	{
		TargetEntry *tle = list_nth_node(TargetEntry, cscan->custom_scan_tlist, k);

		keys = lappend(keys, deparse_expression((Node *) tle->expr, context, prefix, true));
	}
	ExplainPropertyList("Group Key", keys, es);
}

/* Has the query an aggregate without slots, which the GPU cannot run? */
static bool
runs_itself(GpuAggState *state)
{
	CustomScan *cscan = (CustomScan *) state->css.ss.ps.plan;
	Oid			transfn;

	for (int a = 0; a < state->plan->naggs; a++)
	{
		TargetEntry *tle = list_nth(cscan->custom_scan_tlist, state->plan->nkeys + a);

		if (aggmap_is_fallback(castNode(Aggref, tle->expr)->aggfnoid, &transfn))
			return true;
	}
	return false;
}

static void
explain_engine(GpuAggState *state, ExplainState *es)
{
	char		reason[sizeof(state->engine_reason)];
	const EngineOps *ops;

	if (state->engine)
	{
		ops = state->engine->ops;
		strlcpy(reason, state->engine_reason, sizeof(reason));
	}
	else
		ops = gpuagg_choose_engine(NULL, state->plan->est_rows, state->plan->grouped, reason,
								   sizeof(reason));
	if (state->engine == NULL && ops != &engine_cpu_ops && runs_itself(state))
	{
		ops = &engine_cpu_ops;
		strlcpy(reason, REASON_FALLBACK_AGGREGATE, sizeof(reason));
	}
	if (es->format != EXPLAIN_FORMAT_TEXT)
	{
		ExplainPropertyText("Engine", ops->name, es);
		if (reason[0])
			ExplainPropertyText("Engine Reason", reason, es);
	}
	else
		ExplainPropertyText("Engine", reason[0] ? psprintf("%s (%s)", ops->name, reason) :
							ops->name, es);
}

/* Is every key compared by its bits?  As in exec.c, from the types alone. */
static bool
keys_integer(GpuAggState *state)
{
	CustomScan *cscan = (CustomScan *) state->css.ss.ps.plan;
	int16		scale;

	for (int k = 0; k < state->plan->nkeys; k++)
	{
		TargetEntry *tle = list_nth_node(TargetEntry, cscan->custom_scan_tlist, k);

		if (!column_is_integer(spec_column_type(exprType((Node *) tle->expr),
												exprTypmod((Node *) tle->expr), &scale)))
			return false;
	}
	return true;
}

/* The strategy that the planner's estimates suggest; the data may suggest another. */
static void
explain_planned_strategy(GpuAggState *state, ExplainState *es)
{
	GpuAggPlan *plan = state->plan;
	StrategyDevice device = {0};
	StrategyInput input = {0};
	StrategyChoice choice = {0};

	device.l2_bytes = 1024 * 1024;
	device.memory_bytes = get_hash_memory_limit();
	input.forced = gpuagg_strategy;
	input.nkeys = plan->nkeys;
	input.keys_integer = keys_integer(state);
	input.grouped = plan->grouped || plan->norder > 0;
	input.rows = plan->est_rows;
	input.groups = plan->est_groups;
	input.state_bytes = 16 * plan->naggs;
	input.key_bytes = 8 * plan->nkeys;
	strategy_choose(&device, &input, &choice);
	ExplainPropertyText("Strategy", psprintf("%s (planned)", strategy_name(choice.strategy)), es);
}

static void
explain_device(const EngineStats *stats, ExplainState *es)
{
	/* numerics that the GPU cannot hold, or new keys beyond hash memory, with their batches */
	if (stats->rows_aside > 0)
		ExplainPropertyUInteger("Rows on CPU", NULL, stats->rows_aside, es);
	if (stats->device_memory == 0)
		return;
	ExplainPropertyUInteger("Device Memory", "kB", (stats->device_memory + 1023) / 1024, es);
	ExplainPropertyUInteger("To Device", "kB", (stats->bytes_to_device + 1023) / 1024, es);
	ExplainPropertyUInteger("From Device", "kB", (stats->bytes_from_device + 1023) / 1024, es);
	if (es->timing)
	{
		ExplainPropertyFloat("Copy Time", "ms", stats->copy_ms, 3, es);
		ExplainPropertyFloat("Kernel Time", "ms", stats->kernel_ms, 3, es);
	}
	if (stats->retries > 0)
		ExplainPropertyInteger("Retries", NULL, stats->retries, es);
}

static void
explain_stats(GpuAggState *state, const EngineStats *stats, ExplainState *es)
{
	bool		text = es->format == EXPLAIN_FORMAT_TEXT;

	ExplainPropertyText("Strategy", stats->strategy, es);
	if (stats->changes > 0 || !text)
		ExplainPropertyInteger("Strategy Changes", NULL, stats->changes, es);
	ExplainPropertyUInteger("Input Rows", NULL, stats->rows, es);
	ExplainPropertyUInteger("Batches", NULL, stats->batches, es);
	ExplainPropertyUInteger("Groups", NULL, stats->groups, es);
	ExplainPropertyUInteger("Memory", "kB", (stats->mem_peak + 1023) / 1024, es);
	if (stats->spilled_bytes > 0 || !text)
	{
		ExplainPropertyUInteger("Spilled", "kB", (stats->spilled_bytes + 1023) / 1024, es);
		ExplainPropertyInteger("Spill Partitions", NULL, stats->spill_partitions, es);
	}
	if (state->have_stats)
		ExplainPropertyInteger("Participants", NULL, state->participants, es);
	explain_device(stats, es);
}

static void
explain_feed(GpuAggState *state, ExplainState *es)
{
	const char *why = exec_tuples_reason(state);

	if (state->feed)
		state->feed->ops->explain(state->feed, es);
	else if (why == NULL)
		feed_heap_describe(state->child, es);
	else
		ExplainPropertyText("Feed", "tuples from the child plan", es);
	if (state->feed == NULL && state->plan->norder > 0)
		ExplainPropertyText("Sort", "by keys and order", es);
	else if (state->feed && state->plan->norder > 0 && state->engine->ops != &engine_cpu_ops)
		ExplainPropertyText("Sort", "on the GPU", es);
	if (why != NULL && es->verbose)
		ExplainPropertyText("Heap Feed", psprintf("no: %s", why), es);
}

void
explain_scan(CustomScanState *node, List *ancestors, ExplainState *es)
{
	GpuAggState *state = (GpuAggState *) node;
	EngineStats stats;

	explain_keys(state, ancestors, es);
	explain_engine(state, es);
	explain_feed(state, es);
	if (es->analyze && state->have_stats)
		explain_stats(state, &state->stats, es);
	else if (es->analyze && exec_stats(state, &stats))
		explain_stats(state, &stats, es);
	else
		explain_planned_strategy(state, es);
}

/* ---- reasons why a query was not taken --------------------------------- */

static ExplainOneQuery_hook_type prev_explain_one_query_hook;

/* While EXPLAIN (VERBOSE) plans a query: the reasons so far.  NULL otherwise. */
static StringInfo refusals = NULL;

void
explain_note_refusal(const char *why)
{
	if (refusals && strstr(refusals->data, why) == NULL)
		appendStringInfo(refusals, "%s%s", refusals->len > 0 ? "; " : "", why);
}

/*
 * In text format alone: the others have closed the query's group when we get to
 * it, and their readers expect nothing after it.
 */
static void
explain_one_query(Query *query, int cursorOptions, IntoClause *into, ExplainState *es,
				  const char *queryString, ParamListInfo params, QueryEnvironment *queryEnv)
{
	StringInfo	outer = refusals;
	StringInfo	mine = es->verbose && es->format == EXPLAIN_FORMAT_TEXT ? makeStringInfo() : NULL;

	refusals = mine;
	PG_TRY();
	{
		if (prev_explain_one_query_hook)
			prev_explain_one_query_hook(query, cursorOptions, into, es, queryString, params,
										queryEnv);
		else
			compat_explain_one_query(query, cursorOptions, into, es, queryString, params,
									 queryEnv);
	}
	PG_FINALLY();
	{
		refusals = outer;
	}
	PG_END_TRY();
	if (mine && mine->len > 0)
		ExplainPropertyText("GpuAgg", psprintf("not used: %s", mine->data), es);
}

void
explain_install_hooks(void)
{
	prev_explain_one_query_hook = ExplainOneQuery_hook;
	ExplainOneQuery_hook = explain_one_query;
}
