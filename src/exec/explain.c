/*
 * explain.c
 *	  Prints EXPLAIN's lines of a custom scan.
 *
 * Before execution these are the engine and strategy that would be used.  After it (ANALYZE) they
 * are those that were used, with their statistics.  In a guarded plan, where rows may be hidden
 * from the user, only planned properties are printed: all others may depend on hidden rows.
 */
#include "postgres.h"

#include "executor/nodeHash.h"
#include "nodes/nodeFuncs.h"
#include "utils/lsyscache.h"
#include "utils/ruleutils.h"

#include "common/compat.h"
#include "composite/composite.h"
#include "exec/exec.h"
#include "settings.h"

/* Returns the keys of a grouping set as in a query. */
static char *
set_text(const KeySet *set, List *keys)
{
	StringInfoData text;
	int k = -1;

	initStringInfo(&text);
	while ((k = bms_next_member(set->keys, k)) >= 0)
		appendStringInfo(&text, "%s%s", text.len > 0 ? ", " : "", (char *) list_nth(keys, k));
	return psprintf("(%s)", text.data);
}

/* Prints the grouping sets, and after execution the set that each was made from. */
static void
explain_sets(GpuAggState *state, List *keys, ExplainState *es)
{
	GpuAggPlan *plan = state->plan;
	List *sets = NIL;

	for (int s = plan->nsets - 1; s >= 0; s--)
	{
		char *text = set_text(&plan->sets[s], keys);
		int source = state->engine && !plan->guarded ? composite_set_source(state->engine, s) : -1;

		if (source >= 0)
			text = psprintf("%s from %s", text, set_text(&plan->sets[source], keys));
		sets = lappend(sets, text);
	}
	ExplainPropertyList("Grouping Sets", sets, es);
}

/* Prints the group keys or the grouping sets, if there are any. */
static void
explain_keys(GpuAggState *state, List *ancestors, ExplainState *es)
{
	CustomScan *cscan = (CustomScan *) state->css.ss.ps.plan;
	List *context;
	List *keys = NIL;
	bool prefix = compat_explain_rtable_size(es) > 1 || es->verbose;

	if (state->plan->nkeys == 0 && state->plan->nsets == 0)
		return;
	context = set_deparse_context_plan(es->deparse_cxt, (Plan *) cscan, ancestors);
	for (int k = 0; k < state->plan->nkeys; k++)
	{
		TargetEntry *tle = list_nth_node(TargetEntry, cscan->custom_scan_tlist, k);

		keys = lappend(keys, deparse_expression((Node *) tle->expr, context, prefix, true));
	}
	if (state->plan->nsets > 0)
		explain_sets(state, keys, es);
	else
		ExplainPropertyList("Group Key", keys, es);
}

/* Prints LIMIT plus OFFSET, and the sort keys that choose groups. */
static void
explain_limit(GpuAggState *state, List *ancestors, ExplainState *es)
{
	CustomScan *cscan = (CustomScan *) state->css.ss.ps.plan;
	GpuAggPlan *plan = state->plan;
	bool prefix = compat_explain_rtable_size(es) > 1 || es->verbose;
	List *context;
	StringInfoData text;

	if (plan->nlimit == 0)
		return;
	context = set_deparse_context_plan(es->deparse_cxt, (Plan *) cscan, ancestors);
	initStringInfo(&text);
	for (int i = 0; i < 2; i++)
	{
		Const *expr = list_nth(cscan->custom_exprs, plan->nconsts + i);
		bool zero = IsA(expr, Const) && (expr->constisnull || DatumGetInt64(expr->constvalue) == 0);

		if (i == 0 && IsA(expr, Const) && !expr->constisnull)
			appendStringInfo(&text, INT64_FORMAT, DatumGetInt64(expr->constvalue));
		else if (i == 0 || !zero)
			appendStringInfo(&text, "%s%s", i > 0 ? " + " : "",
							 IsA(expr, Const) ?
								 psprintf(INT64_FORMAT, DatumGetInt64(expr->constvalue)) :
								 deparse_expression((Node *) expr, context, prefix, true));
	}
	appendStringInfoString(&text, " by ");
	for (int i = 0; i < plan->nlimit; i++)
	{
		const int *key = plan->limit + 3 * i;
		TargetEntry *tle = list_nth_node(TargetEntry, cscan->custom_scan_tlist, key[0]);

		appendStringInfo(&text, "%s%s%s", i > 0 ? ", " : "",
						 deparse_expression((Node *) tle->expr, context, prefix, true),
						 key[1] ? " DESC" : "");
		if (key[1] != key[2])
			appendStringInfoString(&text, key[2] ? " NULLS FIRST" : " NULLS LAST");
	}
	if (plan->limit_ties)
		appendStringInfoString(&text, ", with ties");
	ExplainPropertyText("Top-N", text.data, es);
}

/* Prints the engine that ran, or in other cases the planned one, and why it was chosen. */
static void
explain_engine(GpuAggState *state, ExplainState *es)
{
	char reason[sizeof(state->engine_reason)];
	const EngineOps *ops;

	if (state->engine && !state->plan->guarded)
	{
		ops = state->engine->ops;
		strlcpy(reason, state->engine_reason, sizeof(reason));
	}
	else
		ops = exec_planned_engine(state, reason, sizeof(reason));
	if (es->format != EXPLAIN_FORMAT_TEXT)
	{
		ExplainPropertyText("Engine", ops->name, es);
		if (reason[0])
			ExplainPropertyText("Engine Reason", reason, es);
	}
	else
		ExplainPropertyText("Engine",
							reason[0] ? psprintf("%s (%s)", ops->name, reason) : ops->name, es);
}

/* Returns whether all keys are of integer types, so that they may be KEY_RAW. */
static bool
are_keys_integer(GpuAggState *state)
{
	CustomScan *cscan = (CustomScan *) state->css.ss.ps.plan;
	int16 scale;

	for (int k = 0; k < state->plan->nkeys; k++)
	{
		TargetEntry *tle = list_nth_node(TargetEntry, cscan->custom_scan_tlist, k);

		if (!column_is_integer(spec_column_type(exprType((Node *) tle->expr),
												exprTypmod((Node *) tle->expr), &scale)))
			return false;
	}
	return true;
}

/* Prints the strategy that the planner's estimates suggest.  The rows may suggest another one. */
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
	input.keys_integer = are_keys_integer(state);
	input.grouped = plan->grouped || plan->norder > 0;
	input.rows = plan->est_rows;
	input.groups = plan->est_groups;
	input.state_bytes = 16 * plan->naggs;
	input.key_bytes = 8 * plan->nkeys;
	strategy_choose(&device, &input, &choice);
	ExplainPropertyText("Strategy", psprintf("%s (planned)", strategy_name(choice.strategy)), es);
}

/* Prints the statistics of an execution. */
static void
explain_stats(GpuAggState *state, const EngineStats *stats, ExplainState *es)
{
	bool text = es->format == EXPLAIN_FORMAT_TEXT;

	ExplainPropertyText("Strategy", stats->strategy, es);
	if (stats->changes > 0 || !text)
		ExplainPropertyInteger("Strategy Changes", NULL, stats->changes, es);
	ExplainPropertyUInteger("Input Rows", NULL, stats->rows, es);
	ExplainPropertyUInteger("Batches", NULL, stats->batches, es);
	ExplainPropertyUInteger("Groups", NULL, stats->groups, es);
	if (state->plan->nlimit > 0)
		ExplainPropertyUInteger("Groups Kept", NULL, stats->returned, es);
	ExplainPropertyUInteger("Memory", "kB", (stats->mem_peak + 1023) / 1024, es);
	if (stats->spilled_bytes > 0 || !text)
	{
		ExplainPropertyUInteger("Spilled", "kB", (stats->spilled_bytes + 1023) / 1024, es);
		ExplainPropertyInteger("Spill Partitions", NULL, stats->spill_partitions, es);
	}
	if (stats->early > 0)
		ExplainPropertyInteger("Groups Exchanged Early", NULL, stats->early, es);
	if (stats->parts > 0)
		ExplainPropertyInteger("Merged Parts", NULL, stats->parts, es);
	if (state->have_stats)
		ExplainPropertyInteger("Participants", NULL, state->participants, es);
	engines_explain(stats, es);
}

/* Prints how rows are read and sorted. */
static void
explain_feed(GpuAggState *state, ExplainState *es)
{
	const char *why = exec_tuples_reason(state);
	const FeedStats *stats = state->plan->guarded ? NULL :
		state->have_stats                         ? &state->feed_stats :
		state->feed                               ? &state->feed->stats :
													NULL;
	bool ran = state->feed && !state->plan->guarded;

	if (state->feed)
		state->feed->ops->explain(state->feed, stats, es);
	else
		feed_describe(state->child, why == NULL, state->plan->read_once, stats, es);
	if (!ran && state->plan->norder > 0)
		ExplainPropertyText("Sort", "by keys and order", es);
	else if (ran && state->plan->norder > 0 && state->engine->ops->sorts)
		ExplainPropertyText("Sort", psprintf("on %s", state->engine->ops->place), es);
	if (why != NULL && es->verbose)
		ExplainPropertyText("Heap Feed", psprintf("no: %s", why), es);
	if (why != NULL && state->plan->no_lookups && es->verbose)
		ExplainPropertyText("Join Not a Lookup", state->plan->no_lookups, es);
}

/* Prints the aggregates whose transition functions were called for each row, if there are any. */
static void
explain_called_aggregates(GpuAggState *state, ExplainState *es)
{
	const AggSpec *spec = state->spec;
	bool on_device = state->engine && !state->engine->ops->runs_fallbacks;
	List *names = NIL;

	if (!es->verbose || spec == NULL || state->plan->guarded)
		return;
	for (int f = 0; f < spec->nfallbacks; f++)
	{
		const FallbackAgg *fallback = &spec->fallbacks[f];

		if (!fallback->exact && fallback->top_n == 0 && fallback->tally == NULL &&
			!(fallback->ranked && on_device) && !fallback->unrepresentable_only &&
			spec_set_of_fallback(spec, f) < 0)
			names = lappend(names, get_func_name(fallback->aggfnoid));
	}
	if (names != NIL)
		ExplainPropertyList("Aggregates Row by Row", names, es);
}

/* Resets the instrumentation of a node and of the nodes below it. */
static bool
forget_counts(PlanState *node, void *context)
{
	check_stack_depth();
	if (node->instrument)
		compat_reset_instrumentation(node->instrument);
	return planstate_tree_walker(node, forget_counts, context);
}

/*
 * Prints what a guarded plan may show after execution.  Nodes below do not count rows that are
 * cached on the device, so their counts would reveal which rows those were.
 */
static void
explain_guarded(GpuAggState *state, ExplainState *es)
{
	char reason[sizeof(state->engine_reason)];

	explain_planned_strategy(state, es);
	ExplainPropertyText("Counts", "not told, as rows may be hidden", es);
	if (exec_planned_engine(state, reason, sizeof(reason))->take_resident)
		forget_counts(state->child, NULL);
}

void
explain_scan(CustomScanState *node, List *ancestors, ExplainState *es)
{
	GpuAggState *state = (GpuAggState *) node;
	EngineStats stats;

	explain_keys(state, ancestors, es);
	explain_limit(state, ancestors, es);
	explain_engine(state, es);
	explain_feed(state, es);
	explain_called_aggregates(state, es);
	if (es->analyze && state->plan->guarded)
		explain_guarded(state, es);
	else if (es->analyze && state->have_stats)
		explain_stats(state, &state->stats, es);
	else if (es->analyze && exec_stats(state, &stats))
		explain_stats(state, &stats, es);
	else
		explain_planned_strategy(state, es);
}
