/*
 * cost.c
 *	  Computes the costs of custom paths.
 *
 * A path reads its child, puts rows into batches, and an engine reduces them.  The cost of the
 * child is core's estimate, minus what the heap feed saves when it reads tables in place of the
 * executor.  The engine estimates its own cost.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type_d.h"
#include "executor/nodeHash.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/plancat.h"
#include "optimizer/prep.h"
#include "optimizer/tlist.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"

#include "aggregates/aggmap.h"
#include "aggregates/partial_call.h"
#include "cache/store.h"
#include "common/compat.h"
#include "engines/engines.h"
#include "groups/value_store.h"
#include "plan/group_query.h"
#include "plan/supported.h"
#include "settings.h"
#include "spec.h"

/*
 * Costs that are only compared with those of workers (plan_cost_scale), of a row: a lookup among
 * more groups than CACHED_GROUPS, and a key or a condition that reads values of a type by
 * reference. Measured with ClickBench's queries: a lookup among a million groups takes 80 ns more
 * than one among a few, a long text 30 to 60 ns.
 */
#define LOOKUP_MISS_COST 0.08
#define REFERENCE_COST 0.03
#define CACHED_GROUPS 32768

/* Returns a rough estimate of the bytes that a group takes in an engine. */
static double
group_bytes(GroupQuery *query)
{
	double bytes = 32 + 24 * list_length(query->aggs);
	ListCell *lc;

	foreach (lc, query->keys)
		bytes += get_typavgwidth(exprType(lfirst(lc)), exprTypmod(lfirst(lc)));
	return bytes;
}

/* Returns the cost of writing and reading again the groups that exceed the memory. */
static Cost
spill_cost(GroupQuery *query, Path *child)
{
	double memory = get_hash_memory_limit();
	double needed = query->groups * group_bytes(query);
	double share, pages;

	if (needed <= memory)
		return 0;
	share = 1 - memory / needed;
	pages = child->rows * (child->pathtarget->width + 16) / BLCKSZ;
	return share * (2 * pages * seq_page_cost + child->rows * cpu_operator_cost);
}

/* Returns the cost of a feed that sorts by codes: comparisons, and files if memory is exceeded. */
static Cost
sort_cost(Path *child)
{
	double rows = Max(child->rows, 2.0);
	double bytes = rows * (child->pathtarget->width + 40);
	Cost cost = 0.25 * cpu_operator_cost * rows * log2(rows);

	if (bytes > get_hash_memory_limit())
		cost += 2 * bytes / BLCKSZ * seq_page_cost * 0.5;
	return cost;
}

Cost
plan_child_cost(PlannerInfo *root, Path *child)
{
	Cost cost;

	if (gpuagg_feed != GPUAGG_FEED_TUPLES &&
		(lookup_joins_cost(root, child, &cost) || plan_feed_cost(root, child, false, &cost)))
		return cost;
	return child->total_cost;
}

/*
 * Returns the estimated number of distinct values of a DISTINCT aggregate, counted in each group
 * and added up, if there are this many rows.
 */
static double
distinct_values(GroupQuery *query, Aggref *aggref, double rows)
{
	return estimate_num_groups(
		query->root,
		list_concat(list_copy(query->keys),
					get_sortgrouplist_exprs(aggref->aggdistinct, aggref->args)),
		rows, NULL, NULL);
}

/*
 * Returns the cost of sorting the distinct values of DISTINCT aggregates that are fallback
 * aggregates, because their results may depend on the order of the values.  Core sorts all rows
 * instead of hashing them first, so that it is faster where nearly all values are distinct.  The
 * factor was measured with such values (test/bench/shapes.sh, "list of distinct").
 */
static Cost
sorted_distinct_cost(GroupQuery *query, Path *child)
{
	Cost cost = 0;
	Oid transfn;
	ListCell *lc;

	foreach (lc, query->aggs)
	{
		Aggref *aggref = lfirst_node(Aggref, lc);
		double different;

		if (aggref->aggdistinct == NIL ||
			!aggmap_is_fallback(partial_aggref(aggref)->aggfnoid, &transfn))
			continue;
		different = distinct_values(query, aggref, child->rows);
		cost += 2.6 * cpu_operator_cost * different * log2(Max(different, 2.0));
	}
	return cost;
}

/*
 * Returns core's cost of calling the transition functions of all fallback aggregates for one row.
 * Notes them in *engine: gpu_max_n and its like, aggregates of counted values, extremes of
 * texts, and others than exact aggregates.
 */
static Cost
fallback_cost(GroupQuery *query, EngineQuery *engine)
{
	QualCost cost = {0};
	ListCell *lc;
	Oid transfn;

	foreach (lc, query->aggs)
	{
		Aggref *aggref = partial_aggref(lfirst_node(Aggref, lc));

		/*
		 * the values of ordered sets are stored without a call, once for all aggregates over them
		 */
		if (aggmap_is_ordered_set(aggref))
			continue;
		if (aggmap_is_fallback(aggref->aggfnoid, &transfn))
		{
			add_function_cost(query->root, transfn, NULL, &cost);
			if (aggmap_is_top_n(aggref))
				engine->top_n = true;
			else if (aggmap_tally(aggref))
				engine->tallies = true;
			else if (aggmap_is_ranked(aggref))
				engine->ranked = true;
			else if (!aggmap_is_exact(aggref->aggfnoid))
				engine->fallback = aggref->aggfnoid;
		}
	}
	return cost.per_tuple;
}

/*
 * Returns whether each group's rows may arrive in the aggregates' order while groups are hashed: a
 * Sort has that order alone.  The states of all groups are then in memory at once, and may keep all
 * values.  Only the CPU engine knows which operators need the order of hashed rows.  It runs all
 * queries with fallback aggregates other than gpu_max_n and its like, and exact ones.
 */
bool
plan_hashes_ordered(GroupQuery *query)
{
	EngineQuery engine = {0};
	Path *input = query->input_rel->cheapest_total_path;

	(void) fallback_cost(query, &engine);
	return (OidIsValid(engine.fallback) || engine.tallies || engine.ranked) &&
		input->rows * input->pathtarget->width + query->groups * group_bytes(query) <=
		get_hash_memory_limit();
}

/*
 * Returns what core's estimate of a Sort by keys and order leaves out.  Tuplesort compares the
 * first column quickly, in abbreviated form if it is long.  If it is equal, whole tuples are
 * compared: log2(rows of a group) times for each row.
 *
 * Sorts of 300,000 rows by (5 texts, timestamp, numeric), (boolean, numeric), (1,000 integers,
 * numeric) take 2.9, 2.9 and 1.6 times as long as sorts by the columns after the key.  With this
 * cost they are priced 1.9, 1.9 and 1.5 times as high.
 */
static Cost
ties_cost(GroupQuery *query, Path *child)
{
	Path *sort = child;

	while (IsA(sort, ProjectionPath))
		sort = ((ProjectionPath *) sort)->subpath;
	if (query->order == NIL || !IsA(sort, SortPath) || sort->rows <= query->groups)
		return 0;
	return 2 * cpu_operator_cost * sort->rows * log2(sort->rows / query->groups);
}

/*
 * Returns whether the DISTINCT aggregate may be a sum of floats, which depends on the order of the
 * values. type: the column type of its argument
 */
static bool
may_sum_floats(const Aggref *aggref, ColumnType type)
{
	return column_is_float(type) && aggref->aggtype != INT8OID;
}

/* Returns whether the aggregate may be a count, which needs no values but their number. */
static bool
may_be_counted(const Aggref *aggref)
{
	return aggref->aggtype == INT8OID;
}

/*
 * Returns whether a GPU can reduce the distinct values and the ordered sets of these aggregates,
 * judging by their types.
 */
static bool
can_reduce_sets_on_gpu(List *aggs)
{
	ListCell *lc;

	foreach (lc, aggs)
	{
		Aggref *aggref = lfirst_node(Aggref, lc);
		bool ordered = aggmap_is_ordered_set(aggref);
		Node *arg;
		ColumnType type;
		int16 scale;

		if (aggref->aggdistinct == NIL && !ordered)
			continue;
		if (list_length(aggref->args) != 1)
			return false;
		arg = (Node *) linitial_node(TargetEntry, aggref->args)->expr;
		type = spec_column_type(exprType(arg), exprTypmod(arg), &scale);
		if (ordered ?
				!spec_type_has_codes(exprType(arg)) :
				(type == COLUMN_DATUM && !may_be_counted(aggref)) || may_sum_floats(aggref, type))
			return false;
	}
	return true;
}

/*
 * Values of ordered sets with a smaller fraction of distinct values are numbered in a dictionary.
 * Others are sorted by core's tuplesort (groups/value_store.c).
 */
#define FEW_DISTINCT 0.25

/*
 * Returns the cost of ordered sets over values without codes.
 *
 * Few distinct values are sorted once, in a dictionary.  Nearly unique values are sorted in one of
 * two ways: with a sort for each group, as core does; or in one sort, which compares whole tuples
 * and takes 1.7 times core's time for 100 groups.  Core does not count the cost of its sorts within
 * groups.
 *
 * Participants of a parallel plan use dictionaries.  If there is no GROUP BY, one of them collects
 * all values; else each collects those of some groups.  That takes three times as long as sorting
 * them here: 180 to 230 ms for 300,000 values in 2 to 5 groups.
 */
static Cost
ordered_sets_cost(GroupQuery *query, Path *child)
{
	bool parallel = child->parallel_workers > 0;
	bool together = parallel && query->keys == NIL;
	double all = Max(parallel ? query->input_rel->cheapest_total_path->rows : child->rows, 2.0);
	/* some participants collect no values if there are few groups */
	double rows = together ? all : Max(child->rows, all / Max(query->groups, 1));
	double each = Max(all / query->groups, 2.0);
	List *seen = NIL;
	Cost cost = 0;
	ListCell *lc;

	foreach (lc, query->aggs)
	{
		Aggref *aggref = lfirst_node(Aggref, lc);
		Node *value;
		double different;

		if (!aggmap_is_ordered_set(aggref) || aggref->args == NIL)
			continue;
		value = (Node *) linitial_node(TargetEntry, aggref->args)->expr;
		if (spec_type_has_codes(exprType(value)) || list_member(seen, value))
			continue;
		seen = lappend(seen, value);
		different = estimate_num_groups(query->root, list_make1(value), all, NULL, NULL);
		if (different < all * FEW_DISTINCT)
			cost += cpu_operator_cost * (rows + 2 * different * log2(Max(different, 2.0)));
		else
			cost += 2 * cpu_operator_cost * rows * log2(each) *
				(parallel || query->groups > value_store_max_own_sorts(get_hash_memory_limit()) ?
					 3 :
					 1);
	}
	return cost;
}

/* Returns whether values of an expression have no integers, so that an engine may number them. */
static bool
is_numbered(const void *expr)
{
	int16 scale;

	return spec_column_type(exprType(expr), exprTypmod(expr), &scale) == COLUMN_DATUM;
}

/* Returns how many of these expressions have values without integers. */
static int
count_numbered(List *exprs)
{
	int n = 0;
	ListCell *lc;

	foreach (lc, exprs)
		n += is_numbered(lfirst(lc));
	return n;
}

/* Returns how many values a row of a set of distinct values counts for in EngineWork.values. */
static int
count_set_values(const GroupQuery *query)
{
	return 4 * (list_length(query->keys) + 1);
}

/* Values of a group of which histograms and sketches are made, if it has more. */
#define BIN_VALUES 4096

/* Estimates EngineWork.counted. */
static double
counted_values(GroupQuery *query, double rows)
{
	double values = 0;
	ListCell *lc;

	foreach (lc, query->aggs)
	{
		Aggref *aggref = partial_aggref(lfirst_node(Aggref, lc));
		const AggTally *tally = aggmap_tally(aggref);
		List *exprs;
		double different;

		if (tally == NULL)
			continue;
		exprs = lappend(list_copy(query->keys), linitial_node(TargetEntry, aggref->args)->expr);
		different = estimate_num_groups(query->root, exprs, rows, NULL, NULL);
		values += tally->narrow ? Min(different, query->groups * BIN_VALUES) : different;
	}
	return values;
}

/* Returns the engine's cost on top of reading. Sets *device. */
static Cost
engine_cost(GroupQuery *query, Path *child, bool grouped, bool sorts, double returned,
			DeviceEstimates *device)
{
	EngineQuery engine = {.input.grouped = grouped};
	ListCell *lc;

	engine.work.rows = child->rows;
	engine.work.returned = returned * list_length(query->keys);
	engine.work.values =
		plan_finest_sets(query) * (list_length(query->keys) + list_length(query->aggs));
	engine.work.columns = list_length(query->inputs);
	engine.work.boundaries = grouped ? list_length(query->keys) : 0;
	/* each set of distinct values is grouped by keys and values */
	foreach (lc, query->aggs)
	{
		const Aggref *aggref = lfirst_node(Aggref, lc);

		if (aggref->aggdistinct == NIL)
			continue;
		engine.work.values += count_set_values(query);
		engine.work.numbered += is_numbered(linitial_node(TargetEntry, aggref->args)->expr);
	}
	engine.work.fallbacks = fallback_cost(query, &engine);
	engine.ordered_sets = supported_any_ordered_set(query->aggs);
	engine.input.parallel = child->parallel_aware || child->parallel_workers > 0;
	if (engine.input.parallel)
		engine.work.numbered += count_numbered(query->keys);
	if (sorts)
		engine.work.local = sort_cost(child);
	else if (!grouped)
		engine.work.local = spill_cost(query, child);
	engine.work.local += sorted_distinct_cost(query, child);
	if (engine.ordered_sets)
		engine.work.local += ordered_sets_cost(query, child);
	*device = (DeviceEstimates){.fallbacks = engine.work.fallbacks};
	if (engine.tallies && engines_candidate() != engines_default())
		engine.work.counted = device->counted = counted_values(query, child->rows);
	if (!grouped && !sorts && engines_candidate()->take_resident &&
		can_reduce_sets_on_gpu(query->aggs))
		device->resident = plan_resident_share(query, child, &device->scanned);
	if (device->resident > 0)
	{
		EngineQuery cached = engine;

		engines_add_resident_work(&cached.work, device->resident, device->scanned);
		if (!engines_can_take_resident(&cached))
			device->resident = device->scanned = 0;
	}
	return engines_cost(&engine);
}

/*
 * Returns whether participants merge the distinct values of DISTINCT aggregates in partitions, if
 * there are many.  They do if no result depends on the order of the values and there are few sets
 * (composite/distinct.c).
 */
static bool
exchanges_values(GroupQuery *query)
{
	Oid transfn;
	int sets = 0;
	ListCell *lc;

	foreach (lc, query->aggs)
	{
		Aggref *aggref = lfirst_node(Aggref, lc);
		Node *arg;
		int16 scale;

		if (aggref->aggdistinct == NIL)
			continue;
		sets++;
		arg = (Node *) linitial_node(TargetEntry, aggref->args)->expr;
		if (aggmap_is_fallback(partial_aggref(aggref)->aggfnoid, &transfn) ||
			may_sum_floats(aggref, spec_column_type(exprType(arg), exprTypmod(arg), &scale)))
			return false;
	}
	/* aggregates with the same values share a set, which is ignored here */
	return sets * Max(list_length(query->sets), 1) <= ENGINE_MAX_VALUE_SETS;
}

/* Returns whether participants merge groups in partitions, if there are many. */
static bool
exchanges_groups(GroupQuery *query)
{
	int sections = Max(list_length(query->sets), 1);

	if (supported_any_ordered_set(query->aggs))
		sections *= 2;
	return exchanges_values(query) && sections <= ENGINE_MAX_SECTIONS;
}

/*
 * Returns how many of `n` different keys or values a participant exports and imports, if all merge
 * them in partitions: those in its own rows, and about as many of others.
 */
static double
exchanged_in_parts(const Path *partial, double n)
{
	return 2 * Min(partial->rows, n);
}

/*
 * Returns the cost of exporting and importing the groups of participants, with their distinct
 * values.
 *
 * If one participant merges all values, 300,000 nearly unique numerics took 1.3 times core's serial
 * time in parallel, and 0.6 times in one process.
 */
Cost
plan_exchange_cost(GroupQuery *query, const Path *partial)
{
	double rows = query->input_rel->cheapest_total_path->rows;
	bool parts = exchanges_values(query);
	double groups = query->groups;
	Cost cost;
	ListCell *lc;

	if (groups >= MANY_GROUPS && exchanges_groups(query))
		groups = Min(groups, exchanged_in_parts(partial, groups));
	cost = groups * cpu_tuple_cost;
	foreach (lc, query->aggs)
	{
		Aggref *aggref = lfirst_node(Aggref, lc);
		double different;

		if (aggref->aggdistinct == NIL)
			continue;
		different = distinct_values(query, aggref, rows);
		if (parts)
			cost +=
				exchanged_in_parts(partial, different) * count_set_values(query) * gpuagg_slot_cost;
		else
			cost += different * cpu_tuple_cost;
	}
	return cost;
}

/* Returns what lookups of keys, of which so many are different, cost beyond engine_cost(). */
static Cost
lookup_misses(List *keys, double different, double rows)
{
	return different < CACHED_GROUPS ?
		0 :
		rows * (LOOKUP_MISS_COST + count_numbered(keys) * REFERENCE_COST);
}

double
plan_cost_scale(GroupQuery *query, Cost work)
{
	const RelOptInfo *rel = query->input_rel;
	double rows = rel->rows;
	Cost misses = lookup_misses(query->keys, query->groups, rows);
	ListCell *lc;

	foreach (lc, query->aggs)
	{
		Aggref *aggref = lfirst_node(Aggref, lc);

		if (aggref->aggdistinct == NIL)
			continue;
		misses +=
			lookup_misses(list_concat(list_copy(query->keys),
									  get_sortgrouplist_exprs(aggref->aggdistinct, aggref->args)),
						  distinct_values(query, aggref, rows), rows);
	}
	foreach (lc, rel->baserestrictinfo)
	{
		List *vars = pull_var_clause((Node *) lfirst_node(RestrictInfo, lc)->clause, 0);

		misses += rel->tuples * REFERENCE_COST * Min(count_numbered(vars), 1);
	}
	return misses > 0 ? work / (work + misses) : 1;
}

/*
 * Returns the fraction of a scan's rows for which bounds of cached ranges stand
 * (feed/heap_bounds.c), so that they take almost no time: without keys and conditions, the cached
 * rows if all aggregates are min(), max() and count(*).
 */
static double
bounded_share(GroupQuery *query, Path *child)
{
	RelOptInfo *rel = child->parent;
	ListCell *lc;

	while (IsA(child, ProjectionPath))
		child = ((ProjectionPath *) child)->subpath;
	if (query->keys != NIL || query->sets != NIL || child->pathtype != T_SeqScan ||
		rel->baserestrictinfo != NIL)
		return 0;
	foreach (lc, query->aggs)
	{
		Aggref *aggref = lfirst_node(Aggref, lc);
		int16 scale;

		if (aggref->aggfilter || aggref->aggdistinct != NIL || !aggmap_is_extreme(aggref))
			return 0;
		if (aggref->args == NIL)
			continue;
		if (!IsA(linitial_node(TargetEntry, aggref->args)->expr, Var) ||
			spec_column_type(exprType((Node *) linitial_node(TargetEntry, aggref->args)->expr), -1,
							 &scale) == COLUMN_DATUM)
			return 0;
	}
	return query->aggs == NIL ? 0 : plan_cached_share(query->root, rel);
}

/*
 * Returns how many of `rows` groups are returned for the LIMIT above.  A group is returned if it is
 * among the best k groups so far.  In random order, that is true of about k * (1 + log(rows / k)).
 */
static double
limited_rows(const GroupQuery *query, double rows)
{
	double k = query->limit_groups;

	if (query->limit == NIL || k < 1 || k >= rows)
		return rows;
	return clamp_row_est(Min(k * (1 + log(rows / k)), rows));
}

/*
 * Returns the cost of each group at the end: making a tuple of it, or, under a LIMIT, comparing it
 * with other groups.
 */
static Cost
group_cost(const GroupQuery *query)
{
	return query->limit != NIL && query->limit_groups >= 1 ? cpu_operator_cost : cpu_tuple_cost;
}

/*
 * Returns the start-up cost of the custom scan; for a query that may be rescanned often, the lower
 * one of a rescan, because the planner has no costs of rescans for custom scans.
 */
static Cost
startup_cost(const GroupQuery *query)
{
	return plan_outer_params(query->root) != NIL ? plan_rescan_cost(query->root) :
												   gpuagg_startup_cost;
}

void
plan_cost_path(GroupQuery *query, CustomPath *cpath, Path *child, bool grouped, bool sorts)
{
	Path *path = &cpath->path;
	QualCost having;
	Cost input = plan_child_cost(query->root, child);
	double bounded = bounded_share(query, child);
	DeviceEstimates device;
	Cost run;

	cost_qual_eval(&having, query->having, query->root);
	path->rows = query->groups;
	if (query->having != NIL)
		path->rows = clamp_row_est(
			path->rows * clauselist_selectivity(query->root, query->having, 0, JOIN_INNER, NULL));
	path->rows = limited_rows(query, path->rows);
	run = child->rows * gpuagg_row_cost +
		engine_cost(query, child, grouped, sorts, path->rows, &device);
	if (bounded > 0)
	{
		input = Max(input - bounded * child->rows * gpuagg_cache_row_cost, 0);
		run *= 1 - bounded;
	}
	if (grouped)
		input += ties_cost(query, child);
	plan_list_device(cpath->custom_private, &device);
	if (device.resident > 0)
	{
		Cost making = Min(lookup_joins_making_cost(query->root, child), input);
		Cost rest = making + (input - making) * (1 - device.resident);
		EngineWork cached = {.columns = list_length(query->inputs),
							 .resident = 1,
							 .scanned = device.scanned,
							 .counted = device.counted,
							 .returned = path->rows * list_length(query->keys)};
		Cost work = run * (1 - device.resident) + engines_candidate()->cost(&cached);

		if (rest + work < input + run)
		{
			input = rest;
			run = work;
		}
	}

	/* states are serialized */
	if (query->partial)
	{
		AggClauseCosts costs = {0};

		get_agg_clause_costs(query->root, AGGSPLIT_INITIAL_SERIAL, &costs);
		run += costs.finalCost.startup + query->groups * costs.finalCost.per_tuple;
	}

	path->startup_cost = startup_cost(query) + having.startup + path->pathtarget->cost.startup;
	path->startup_cost += grouped ? child->startup_cost : input + run;
	path->total_cost = startup_cost(query) + having.startup + path->pathtarget->cost.startup +
		input + run + query->groups * (group_cost(query) + having.per_tuple) +
		path->rows * path->pathtarget->cost.per_tuple;
	compat_copy_disabled_nodes(path, child);
}
