/*
 * open.c
 *	  Opens spec, engine and feed of a scan.
 *
 * The spec depends on the engine, as engines support different slots (SlotSupport).  The choice of
 * the engine depends on the spec.  So a spec is first built for the engine that is likely to be
 * chosen, and built again if another one is chosen.
 */
#include "postgres.h"

#include "catalog/pg_type_d.h"
#include "executor/executor.h"
#include "executor/nodeHash.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "aggregates/agg_tally.h"
#include "aggregates/partial_call.h"
#include "composite/composite.h"
#include "exec/exec.h"
#include "feed/sorted_feed.h"
#include "key_spec.h"
#include "settings.h"

/* Cost of sorting a row for an engine that does not sort, as a number of slots. */
#define SORT_WORK 16

/* ---- the spec ---------------------------------------------------------- */

/*
 * Adds the order of rows within a group, which the aggregates demand, and its columns to the spec.
 */
static void
add_order(GpuAggState *state, AggSpec *spec)
{
	GpuAggPlan *plan = state->plan;
	TupleDesc child = ExecGetResultType(state->child);

	spec->norder = plan->norder;
	spec->order = palloc0(sizeof(OrderSpec) * (plan->norder + 1));
	for (int o = 0; o < plan->norder; o++)
	{
		ColumnSpec col = {.input = plan->order[3 * o]};

		col.typid = TupleDescAttr(child, plan->input_resno[col.input] - 1)->atttypid;
		col.typid = getBaseType(col.typid);
		col.typmod = -1;
		get_typlenbyval(col.typid, &col.typlen, &col.typbyval);
		col.type = spec_column_type(col.typid, col.typmod, &col.scale);
		spec->order[o].col = spec_add_column(spec, &col);
		spec->order[o].desc = plan->order[3 * o + 1];
		spec->order[o].nulls_first = plan->order[3 * o + 2];
	}
}

/*
 * Adds the rows of an aggregate to the spec's row sets, if it has DISTINCT values, or if its rows
 * are sorted for it.  Returns the number of the set as in SlotSpec.set, else 0.  `args` and
 * `filter` are inputs, as for aggmap_build().
 */
static int
add_row_set(AggSpec *spec, Aggref *aggref, const int *args, int filter, bool sorts)
{
	DistinctSpec set = {.all_rows = sorts, .sorted = sorts};
	List *clauses = sorts ? aggref->aggorder : aggref->aggdistinct;
	int n = list_length(clauses);
	ListCell *lc;

	if (n == 0)
		return 0;
	set.values = palloc0(sizeof(KeySpec) * n);
	set.sortops = palloc0(sizeof(Oid) * n);
	set.nulls_first = palloc0(sizeof(bool) * n);
	set.filter = -1;
	foreach (lc, clauses)
	{
		SortGroupClause *clause = lfirst_node(SortGroupClause, lc);
		TargetEntry *tle = get_sortgroupclause_tle(clause, aggref->args);
		Node *expr = (Node *) tle->expr;
		Oid eqfunc = InvalidOid, hashfunc = InvalidOid;

		/* a sort needs neither */
		if (!sorts && !key_hash_functions(clause->eqop, exprType(expr), &eqfunc, &hashfunc))
			elog(ERROR, "equality operator %u is not hashable", clause->eqop);
		set.sortops[set.nvalues] = clause->sortop;
		set.nulls_first[set.nvalues] = clause->nulls_first;
		key_spec_init(spec, &set.values[set.nvalues++], expr, args[tle->resno - 1], eqfunc,
					  hashfunc, exprCollation(expr));
	}
	if (filter >= 0)
	{
		ColumnSpec col = {.input = filter,
						  .type = COLUMN_I8,
						  .typid = BOOLOID,
						  .typmod = -1,
						  .typlen = 1,
						  .typbyval = true};

		set.filter = spec_add_column(spec, &col);
	}
	return spec_add_distinct(spec, &set) + 1;
}

/* Returns the column of the child plan that is this input. */
static Form_pg_attribute
input_column(const GpuAggState *state, int input)
{
	return TupleDescAttr(ExecGetResultType(state->child), state->plan->input_resno[input] - 1);
}

/* Translates the plan into a spec.  Evaluates the parameters of aggregates, such as bounds. */
static void
build_spec(GpuAggState *state, const SlotSupport *support)
{
	GpuAggPlan *plan = state->plan;
	CustomScan *cscan = (CustomScan *) state->css.ss.ps.plan;
	AggSpec *spec = palloc0(sizeof(AggSpec));

	spec->support = *support;
	spec->usual_scale = plan->input_scale;
	spec->nsets = plan->nsets;
	spec->sets = plan->sets;
	spec->nkeys = plan->nkeys;
	spec->keys = palloc0(sizeof(KeySpec) * (plan->nkeys + 1));
	for (int k = 0; k < plan->nkeys; k++)
		key_spec_init(spec, &spec->keys[k],
					  (Node *) list_nth_node(TargetEntry, cscan->custom_scan_tlist, k)->expr,
					  plan->key_input[k], plan->key_eq[k], plan->key_hash[k],
					  plan->key_collation[k]);
	add_order(state, spec);
	state->outputs = palloc0(sizeof(AggOutput *) * (plan->naggs + 1));
	state->fractions = palloc0(sizeof(ExprState *) * (plan->naggs + 1));
	for (int a = 0; a < plan->naggs; a++)
	{
		Aggref *aggref = castNode(
			Aggref, list_nth_node(TargetEntry, cscan->custom_scan_tlist, plan->nkeys + a)->expr);
		PartialCall call = partial_call(aggref);
		const LinearArgument *linear = plan->agg_linear[a];
		int set =
			add_row_set(spec, aggref, plan->agg_args[a], plan->agg_filter[a], plan->agg_sorts[a]);

		/* a row set has only rows that pass the filter */
		state->outputs[a] = aggmap_build(spec, &call, plan->agg_args[a], linear,
										 linear ? input_column(state, plan->agg_args[a][0]) : NULL,
										 set > 0 ? -1 : plan->agg_filter[a], set, &state->css.ss.ps,
										 state->css.ss.ps.ps_ExprContext);
		if (set > 0 && aggmap_shows_order(state->outputs[a], spec))
			spec->distincts[set - 1].sorted = true;
		if (aggref->aggdirectargs != NIL)
			state->fractions[spec->nordered_sets - 1] = state->directs[a];
	}
	state->spec = spec;
}

/* ---- the engine -------------------------------------------------------- */

/*
 * Notes the query's fallback aggregates in *query.  Without a spec, finds only aggregates that are
 * fallback aggregates with any arguments.
 */
static void
note_fallbacks(EngineQuery *query, const GpuAggState *state)
{
	CustomScan *cscan = (CustomScan *) state->css.ss.ps.plan;
	const AggSpec *spec = state->spec;
	Oid transfn;

	query->fallback = InvalidOid;
	query->top_n = spec && spec_has_top_n(spec);
	query->tallies = spec && spec_has_tallies(spec);
	query->ranked = spec && spec_has_ranked(spec);
	/* participants have agreed on the support of the CPU engine if the plan is parallel */
	for (int o = 0; spec && query->input.parallel && o < spec->nfallbacks; o++)
		query->tallies |= spec->fallbacks[o].set == 0 && agg_tally(&spec->fallbacks[o].transfn);
	for (int o = 0; spec && o < spec->nfallbacks; o++)
		if (!spec->fallbacks[o].unrepresentable_only && spec->fallbacks[o].top_n == 0 &&
			spec->fallbacks[o].tally == NULL && !spec->fallbacks[o].ranked &&
			!spec->fallbacks[o].exact && spec_set_of_fallback(spec, o) < 0 &&
			!OidIsValid(query->fallback))
			query->fallback = spec->fallbacks[o].aggfnoid;
	for (int a = 0; !spec && a < state->plan->naggs; a++)
	{
		TargetEntry *tle = list_nth(cscan->custom_scan_tlist, state->plan->nkeys + a);
		Aggref *aggref = partial_aggref(castNode(Aggref, tle->expr));

		if (aggmap_is_top_n(aggref))
			query->top_n = true;
		else if (aggmap_tally(aggref))
			query->tallies = true;
		else if (aggmap_is_ranked(aggref))
			query->ranked = true;
		else if (!aggmap_is_ordered_set(castNode(Aggref, tle->expr)) &&
				 aggmap_is_fallback(aggref->aggfnoid, &transfn) &&
				 !aggmap_is_exact(aggref->aggfnoid) && !OidIsValid(query->fallback))
			query->fallback = aggref->aggfnoid;
	}
}

/* Returns whether the query has ordered-set aggregates. */
static bool
has_ordered_sets(const GpuAggState *state)
{
	CustomScan *cscan = (CustomScan *) state->css.ss.ps.plan;

	for (int a = 0; a < state->plan->naggs; a++)
	{
		TargetEntry *tle = list_nth(cscan->custom_scan_tlist, state->plan->nkeys + a);

		if (aggmap_is_ordered_set(castNode(Aggref, tle->expr)))
			return true;
	}
	return false;
}

const EngineOps *
exec_choose_engine(const GpuAggState *state, char *reason, size_t reason_size)
{
	const AggSpec *spec = state->spec;
	double rows = state->plan->est_rows;
	/* in EXPLAIN nothing is shared: the plan decides */
	bool parallel = state->shared != NULL ||
		(state->css.ss.ps.plan->parallel_aware &&
		 (state->css.ss.ps.state->es_top_eflags & EXEC_FLAG_EXPLAIN_ONLY));
	EngineQuery query = {
		.spec = spec,
		.input.grouped = state->plan->grouped,
		.input.parallel = parallel,
		.input.read_once = state->plan->read_once,
		.ordered_sets = has_ordered_sets(state),
		.row_engines = 1,
		.work.rows = rows,
		/* without a spec: figures of a common query */
		.work.values = spec ? spec->nslots + spec->nkeys : 3,
		.work.columns = spec ? spec->ncols : 2,
		.work.boundaries = state->plan->grouped ? state->plan->nkeys : 0,
		.work.counted = state->plan->counted,
		.work.returned = state->css.ss.ps.plan->plan_rows * state->plan->nkeys,
		.work.fallbacks = state->plan->fallbacks,
	};

	note_fallbacks(&query, state);
	for (int f = 0; spec && f < spec->nfallbacks; f++)
		query.work.values += !spec->fallbacks[f].unrepresentable_only;
	for (int k = 0; parallel && spec && k < spec->nkeys; k++)
		query.work.numbered += spec->cols[spec->keys[k].col].type == COLUMN_DATUM;
	for (int d = 0; spec && d < spec->ndistincts; d++)
		for (int v = 0; v < spec->distincts[d].nvalues; v++)
			query.work.numbered +=
				spec->cols[spec->distincts[d].values[v].col].type == COLUMN_DATUM;
	if (!parallel)
		engines_add_resident_work(&query.work, state->plan->resident, state->plan->scanned);
	if (spec && spec->nsets > 0)
	{
		query.row_engines = composite_count_row_engines(engines_candidate(), spec, parallel);
		query.work.values *= query.row_engines;
	}
	if (spec && spec->norder > 0)
		query.work.local = rows * SORT_WORK * gpuagg_slot_cost;
	return engines_choose(&query, reason, reason_size);
}

/*
 * Chooses the engine, and builds the spec for it, or for the support that participants agreed on.
 */
static const EngineOps *
choose_engine(GpuAggState *state, const SlotSupport *agreed)
{
	const EngineOps *candidate = engines_candidate();
	const EngineOps *ops;

	build_spec(state, agreed ? agreed : &candidate->support);
	ops = exec_choose_engine(state, state->engine_reason, sizeof(state->engine_reason));
	if (agreed == NULL && ops != candidate)
		build_spec(state, &ops->support);
	return ops;
}

/*
 * Returns the engine that the query would get, and sets state->engine_reason.  Other members of the
 * state stay as they are.
 */
static const EngineOps *
preview_engine(GpuAggState *state)
{
	const EngineOps *ops;
	AggSpec *spec = state->spec;
	AggOutput **outputs = state->outputs;
	ExprState **fractions = state->fractions;
	MemoryContext cxt =
		AllocSetContextCreate(CurrentMemoryContext, "GpuAgg choice", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(cxt);

	ops = choose_engine(state, NULL);
	state->spec = spec;
	state->outputs = outputs;
	state->fractions = fractions;
	MemoryContextSwitchTo(old);
	MemoryContextDelete(cxt);
	return ops;
}

SlotSupport
exec_slot_support(GpuAggState *state)
{
	if (state->engine)
		return state->spec->support;
	if (engines_candidate() == engines_default())
		return engines_default()->support;
	return preview_engine(state)->support;
}

/* Returns whether an expression has parameters without a value before execution. */
static bool
needs_execution(Node *node, void *params)
{
	if (node == NULL)
		return false;
	if (IsA(node, Param) && (((Param *) node)->paramkind != PARAM_EXTERN || params == NULL))
		return true;
	return expression_tree_walker(node, needs_execution, params);
}

const EngineOps *
exec_planned_engine(GpuAggState *state, char *reason, size_t reason_size)
{
	CustomScan *cscan = (CustomScan *) state->css.ss.ps.plan;
	const EngineOps *ops;

	/* a spec needs the values of aggregates' parameters, such as bounds of histograms */
	if (engines_candidate() == engines_default() ||
		needs_execution((Node *) cscan->custom_scan_tlist,
						state->css.ss.ps.state->es_param_list_info))
		return exec_choose_engine(state, reason, reason_size);
	ops = preview_engine(state);
	strlcpy(reason, state->engine_reason, reason_size);
	return ops;
}

/*
 * An OrderedSetFraction: returns the value of the direct argument of an ordered-set aggregate for a
 * group with these keys.
 */
static Datum
eval_fraction(void *arg, int set, const Datum *keys, const bool *nulls, bool *isnull)
{
	GpuAggState *state = arg;
	ExprContext *econtext = state->css.ss.ps.ps_ExprContext;
	TupleTableSlot *slot = state->css.ss.ss_ScanTupleSlot;

	ExecClearTuple(slot);
	memcpy(slot->tts_values, keys, sizeof(Datum) * state->plan->nkeys);
	memcpy(slot->tts_isnull, nulls, sizeof(bool) * state->plan->nkeys);
	for (int a = 0; a < state->plan->naggs; a++)
		slot->tts_isnull[state->plan->nkeys + a] = true;
	ExecStoreVirtualTuple(slot);
	econtext->ecxt_scantuple = slot;
	return ExecEvalExpr(state->fractions[set], econtext, isnull);
}

void
exec_open_engine(GpuAggState *state, const EngineOps *ops)
{
	EngineEnv env = {0};
	bool choose = ops == NULL;

	if (ops == NULL)
		state->preferred = ops = choose_engine(state, state->agreed);
	else
		build_spec(state, state->agreed ? state->agreed : &ops->support);
	env.cxt = AllocSetContextCreate(state->cxt, "gpuagg engine", ALLOCSET_DEFAULT_SIZES);
	env.estate = state->css.ss.ps.state;
	env.mem_limit = get_hash_memory_limit();
	env.mem_least = work_mem * (size_t) 1024;
	env.batch_rows = gpuagg_batch_rows;
	env.est_rows = state->plan->est_rows;
	env.est_groups = state->plan->est_groups;
	/* a feed that sorts rows for aggregates sorts by keys first */
	env.input.grouped = state->plan->grouped ||
		(!ops->sorts && state->plan->norder > 0 && state->plan->nkeys > 0 &&
		 state->plan->nsets == 0);
	env.input.parallel = state->shared != NULL;
	memcpy(env.seed, state->seed, sizeof(env.seed));
	env.input.read_once = state->plan->read_once;
	env.forced = gpuagg_strategy;
	/* groups of other grouping sets are made from states, not from ranks */
	env.ranks = state->spec->nsets == 0;
	for (int a = 0; a < state->plan->naggs; a++)
		env.ranks &= !aggmap_reads_registers(state->outputs[a]);
	if (state->shared)
	{
		env.early_sink = parallel_early_sink;
		env.early_arg = state;
	}
	env.fraction = eval_fraction;
	env.fraction_arg = state;
	state->engine = composite_open(ops, state->spec, &env, choose);
}

bool
exec_stats(GpuAggState *state, EngineStats *stats)
{
	memset(stats, 0, sizeof(*stats));
	if (state->engine == NULL)
		return false;
	state->engine->ops->stats(state->engine, stats);
	/* the engine's number may include groups that other participants return */
	stats->groups = state->run.emitted + state->engine->left_out;
	stats->returned = state->run.ntuples;
	stats->parts = state->run.parts;
	return true;
}

/* ---- the feed ---------------------------------------------------------- */

const char *
exec_tuples_reason(GpuAggState *state)
{
	if (gpuagg_feed == GPUAGG_FEED_TUPLES)
		return "gpuagg.feed is tuples";
	return feed_pages_unsupported_reason(state->child, state->plan->read_once);
}

void
exec_open_feed(GpuAggState *state)
{
	GpuAggPlan *plan = state->plan;
	CustomScan *cscan = (CustomScan *) state->css.ss.ps.plan;
	ExprState **constants = palloc0(sizeof(ExprState *) * (plan->ninputs + 1));
	FeedShared *shared = state->shared_feed;
	bool pages = shared ? feed_shared_pages(shared) : exec_tuples_reason(state) == NULL;
	Feed *feed;
	int n = 0;

	for (int i = 0; i < plan->ninputs; i++)
	{
		if (plan->input_resno[i] == 0)
			constants[i] = ExecInitExpr(list_nth(cscan->custom_exprs, n++), &state->css.ss.ps);
	}
	feed = feed_open(state->child, pages, plan->read_once, state->spec, plan->input_resno,
					 constants, state->css.ss.ps.ps_ExprContext, gpuagg_batch_rows);
	feed->shared = &state->shared_feed;
	feed->subplans = &state->subplans;
	feed->guarded = plan->guarded;
	feed->core_joins = plan->core_joins;
	if (plan->norder > 0 && !state->engine->ops->sorts)
	{
		AggSpec *sorted = state->spec;

		/* sorted rows are sorted within the groups of each grouping set, too: ignore the keys */
		if (plan->nsets > 0)
		{
			sorted = palloc(sizeof(AggSpec));
			*sorted = *state->spec;
			sorted->nkeys = 0;
		}
		feed = feed_ordered_open(feed, sorted, get_hash_memory_limit(), gpuagg_batch_rows);
	}
	state->feed = feed;
}
