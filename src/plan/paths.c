/*
 * paths.c
 *	  Makes the custom paths of an aggregation.
 *
 * There are paths over
 *
 *	- the cheapest input;
 *	- sorted input, whose order the groups keep;
 *	- a partial input that all participants share, under a Gather;
 *	- joins that the heap feed can execute as lookups;
 *	- a serial scan of a table whose columns the GPU has cached, or whose cheapest scan starts
 *	  workers.
 *
 * Partial aggregates below a join (eager.c) have the same paths.  There, a path over partial input
 * has no Gather: core puts one above the join.
 */
#include "postgres.h"

#include <math.h>

#include "miscadmin.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "parser/parsetree.h"

#include "common/compat.h"
#include "engines/engines.h"
#include "plan/citus.h"
#include "plan/group_query.h"
#include "plan/reasons.h"
#include "plan/supported.h"
#include "settings.h"

bool
plan_is_required(void)
{
	return gpuagg_require == GPUAGG_REQUIRE || citus_task_is_required();
}

/*
 * Returns the pathkeys of groups over sorted input: those of the child, without the aggregates'
 * order after the keys.
 */
static List *
group_order(GroupQuery *query, Path *child)
{
	int nkeys = list_length(query->pathkeys);

	if (query->order == NIL || list_length(child->pathkeys) <= nkeys)
		return child->pathkeys;
	return list_truncate(list_copy(child->pathkeys), nkeys);
}

/*
 * Returns the cost of sorting the groups of a path, if a later step of the query may use this order
 * of groups.  Returns 0 if the order is of no use.
 */
static Cost
order_value(const PlannerInfo *root, List *order, const Path *path)
{
	List *orders[] = {root->window_pathkeys, root->distinct_pathkeys, root->sort_pathkeys};
	/* an outer query may use the order of a subquery */
	bool useful = root->parent_root != NULL;
	double rows = Max(path->rows, 2.0);

	for (int i = 0; i < lengthof(orders); i++)
		useful |= orders[i] != NIL && linitial(orders[i]) == linitial(order);
	return useful ? 2 * cpu_operator_cost * rows * log2(rows) : 0;
}

/* As STD_FUZZ_FACTOR of pathnode.c: add_path() takes costs within one percent for equal. */
#define COST_FUZZ 1.01

/*
 * Adds a path of groups.
 *
 * add_path() takes costs within one percent of each other for equal, and then prefers any order to
 * none.  It would drop a custom scan for a plan that costs a little more and sorts its rows early,
 * such as a Gather Merge.  Where reading pages is nearly all of the cost, the custom scan would
 * never be chosen, and so never fill the column cache.  Therefore paths that cost more are removed
 * before, unless their order is worth it.
 */
static void
add_group_path(GroupQuery *query, Path *path)
{
	RelOptInfo *rel = query->grouped_rel;
	ListCell *lc;

	if (path->pathkeys == NIL && rel->reloptkind == RELOPT_UPPER_REL)
		foreach (lc, rel->pathlist)
		{
			Path *other = lfirst(lc);

			if (other->pathkeys != NIL && other->param_info == NULL && other->rows >= path->rows &&
				other->startup_cost * COST_FUZZ >= path->startup_cost &&
				compat_is_as_enabled(path, other) &&
				other->total_cost >
					path->total_cost + order_value(query->root, other->pathkeys, path))
				rel->pathlist = foreach_delete_current(rel->pathlist, lc);
		}
	add_path(rel, path);
}

/*
 * Makes a path over a child path.  grouped: rows with equal keys are adjacent, and groups keep the
 * input's order.  sorts: the feed sorts the rows.
 */
static CustomPath *
make_path(GroupQuery *query, Path *child, bool grouped, bool sorts)
{
	CustomPath *cpath = makeNode(CustomPath);
	List *limit = query->limit;

	cpath->path.pathtype = T_CustomScan;
	cpath->path.parent = query->grouped_rel;
	cpath->path.pathtarget = query->target;
	cpath->path.parallel_safe =
		query->grouped_rel->consider_parallel && !query->parallel_unsafe && child->parallel_safe;
	cpath->path.parallel_workers = child->parallel_workers;
	if (grouped)
		cpath->path.pathkeys = group_order(query, child);
	cpath->flags = CUSTOMPATH_SUPPORT_PROJECTION;
	cpath->custom_paths = list_make1(child);
	cpath->methods = &gpuagg_path_methods;
	/* if groups arrive in the order of the query's ORDER BY, the LIMIT above stops the scan */
	if (grouped && pathkeys_contained_in(query->root->sort_pathkeys, cpath->path.pathkeys))
		query->limit = NIL;
	cpath->custom_private = plan_query_to_list(query, child->rows, grouped, sorts);
	plan_cost_path(query, cpath, child, grouped, sorts);
	query->limit = limit;
	return cpath;
}

/* Returns whether a path starts workers at its top, below nodes that sort, project or aggregate. */
static bool
starts_workers(const Path *path)
{
	for (;;)
		switch (nodeTag(path))
		{
			case T_AggPath:
				path = ((const AggPath *) path)->subpath;
				break;
			case T_GroupPath:
				path = ((const GroupPath *) path)->subpath;
				break;
			case T_SortPath:
			case T_IncrementalSortPath:
				path = ((const SortPath *) path)->subpath;
				break;
			case COMPAT_UNIQUE_PATH_TAG:
				path = ((const CompatUniquePath *) path)->subpath;
				break;
			case T_ProjectionPath:
				path = ((const ProjectionPath *) path)->subpath;
				break;
			default:
				return IsA(path, GatherPath) || IsA(path, GatherMergePath);
		}
}

/*
 * Returns the input for a custom scan in this process.  This is core's cheapest path.  If that is a
 * scan of a table by workers, which return rows one by one, it is the cheapest other scan, provided
 * that the workers cost something or the custom scan cannot use them: a scan of cached columns may
 * be cheaper.
 */
static Path *
serial_input(GroupQuery *query)
{
	RelOptInfo *rel = query->input_rel;
	Path *best = NULL;
	const char *why;
	ListCell *lc;

	if (rel->reloptkind != RELOPT_BASEREL || rel->partial_pathlist == NIL ||
		!starts_workers(rel->cheapest_total_path))
		return rel->cheapest_total_path;
	if (!query->parallel_unsafe && query->order == NIL && supported_parallel(query->aggs, &why) &&
		plan_worker_cost(query->root, linitial(rel->partial_pathlist)) <= 0)
		return rel->cheapest_total_path;
	foreach (lc, rel->pathlist)
	{
		Path *path = lfirst(lc);

		if (path->param_info == NULL && !starts_workers(path) &&
			(best == NULL || path->total_cost < best->total_cost))
			best = path;
	}
	return best ? best : rel->cheapest_total_path;
}

/*
 * Adds paths over sorted input: each group is returned when it is complete, in the input's order.
 */
static void
add_grouped_paths(GroupQuery *query)
{
	List *pathkeys = query->pathkeys;
	Path *cheapest = query->input_rel->cheapest_total_path;
	ListCell *lc;

	/*
	 * distinct values, ordered sets and grouping sets are known only when all rows have been read
	 */
	if (query->keys == NIL || query->sets != NIL || pathkeys == NIL ||
		supported_any_distinct(query->aggs) || supported_any_ordered_set(query->aggs) ||
		query->orders_apart)
		return;
	foreach (lc, query->input_rel->pathlist)
	{
		Path *path = lfirst(lc);
		bool sorted = pathkeys_contained_in(pathkeys, path->pathkeys);

		if (path->param_info != NULL || (!sorted && path != cheapest))
			continue;
		/* a Sort by a dropped key must be below the projection, which may have no column for it */
		if (sorted || query->dropped == NIL)
			path = plan_path_of_inputs(query, path);
		if (!sorted)
			path = (Path *) create_sort_path(query->root, query->input_rel, path, pathkeys, -1);
		if (!sorted && query->dropped != NIL)
			path = plan_path_of_inputs(query, path);
		add_group_path(query, (Path *) make_path(query, path, true, false));
	}
}

/* Adds paths over input in this order. grouped: rows with equal keys are adjacent. */
static void
add_sorted_paths(GroupQuery *query, List *pathkeys, bool grouped)
{
	Path *cheapest = query->input_rel->cheapest_total_path;
	ListCell *lc;

	foreach (lc, query->input_rel->pathlist)
	{
		Path *path = lfirst(lc);
		int presorted;
		bool sorted = pathkeys_count_contained_in(pathkeys, path->pathkeys, &presorted);

		if (path->param_info != NULL)
			continue;
		if (!sorted && presorted > 0 && enable_incremental_sort)
			path = (Path *) create_incremental_sort_path(query->root, query->input_rel, path,
														 pathkeys, presorted, -1);
		else if (!sorted && path == cheapest)
			path = (Path *) create_sort_path(query->root, query->input_rel, path, pathkeys, -1);
		else if (!sorted)
			continue;
		add_group_path(query,
					   (Path *) make_path(query, plan_path_of_inputs(query, path), grouped, false));
	}
}

/*
 * How much more than core's joins lookups may cost if all pages are in memory.  They fill the
 * column cache, from which the next query reads five times as fast.
 */
#define WARM_TOLERANCE 1.5

/* The largest part of a path's cost that joins in inner sides may have if core executes them. */
#define MOST_EXECUTED 0.1

/*
 * Costs of a path over lookups and of one over core's cheapest joins, with what core's estimates of
 * their joins omit (warm_cost.c).
 */
typedef struct WholeCosts
{
	Cost lookups;
	Cost core;
} WholeCosts;

/* other: the cost of a path over core's cheapest joins, as core estimates it */
static WholeCosts
whole_costs(GroupQuery *query, const CustomPath *cpath, Path *lookups, Cost other)
{
	PlannerInfo *root = query->root;

	return (WholeCosts){.lookups = cpath->path.total_cost + plan_omitted_cost(root, lookups),
						.core =
							other + plan_omitted_cost(root, query->input_rel->cheapest_total_path)};
}

/*
 * Replaces the cost of a path over lookups by one that can be compared with `other`, the cost of a
 * path over core's cheapest joins: core's estimates omit a part of that, and perhaps one of the
 * inner sides of lookups.  If joins that core executes in inner sides cost much, they are not
 * compared: such joins are often chosen because too few rows are expected.
 */
static void
scale_to_joins(GroupQuery *query, CustomPath *cpath, Path *lookups, Cost other, WholeCosts whole)
{
	Path *path = &cpath->path;
	double scale = 1;

	if (path->total_cost <= 0 || whole.core <= 0)
		return;
	if (lookup_joins_executed_cost(query->root, lookups) < MOST_EXECUTED * whole.lookups)
		scale = other / whole.core;
	path->startup_cost *= whole.lookups / path->total_cost * scale;
	path->total_cost = whole.lookups * scale;
}

/*
 * Returns whether a path over lookups may compete with paths over core's joins: it costs little
 * more if the pages that both read are in memory (warm_cost.c).  other: the cost of a path over
 * core's cheapest joins
 */
static bool
beats_joins(GroupQuery *query, Path *lookups, Cost other, WholeCosts whole)
{
	PlannerInfo *root = query->root;
	Path *cheapest = query->input_rel->cheapest_total_path;
	Cost fed;
	bool is_fed = lookup_joins_cost(root, cheapest, &fed);
	Cost own = plan_warm_saving(root, lookups, true, WARM_PAGE_COST);
	Cost page_cost = whole.lookups > other ? WARM_LEAST_PAGE_COST : WARM_PAGE_COST;
	Cost saving = plan_warm_saving(root, cheapest, is_fed, page_cost);
	/* one scan of a subquery that is repeated fills the cache for all */
	double tolerance = plan_outer_params(root) != NIL ? 1 : WARM_TOLERANCE;

	return saving <= own || whole.lookups - own < (whole.core - saving) * tolerance;
}

/*
 * Adds a path over joins that the heap feed can execute as lookups.  sorts: the feed sorts their
 * rows.  other: the cost of such a path over core's cheapest joins
 */
static void
add_lookup_path(GroupQuery *query, LookupReader reader, bool sorts, Cost other)
{
	Path *lookups = lookup_joins_path(query->root, query->input_rel, reader);
	CustomPath *cpath;
	WholeCosts whole;
	double scanned;

	if (lookups == NULL)
		return;
	lookups = plan_path_of_inputs(query, lookups);
	if (reader == LOOKUPS_GPU && plan_resident_share(query, lookups, &scanned) <= 0)
		return;
	cpath = make_path(query, lookups, false, sorts);
	whole = whole_costs(query, cpath, lookups, other);
	if (!beats_joins(query, lookups, other, whole))
		return;
	scale_to_joins(query, cpath, lookups, other, whole);
	add_group_path(query, (Path *) cpath);
}

/* Adds a path over an input path.  Returns its cost. */
static Cost
add_input_path(GroupQuery *query, Path *input, bool sorts)
{
	CustomPath *cpath = make_path(query, plan_path_of_inputs(query, input), false, sorts);
	Cost cost = cpath->path.total_cost;

	/* this may free it */
	add_group_path(query, (Path *) cpath);
	return cost;
}

/*
 * Aggregates with an ORDER BY need each group's rows in that order.  The input is sorted once for
 * all of them: by keys and order together, by a Sort or by the feed; or by the order alone, and
 * then groups are found by hashing.
 */
static void
add_ordered_paths(GroupQuery *query)
{
	List *pathkeys = list_copy(query->pathkeys);
	bool grouped = query->keys != NIL && query->sets == NIL;
	ListCell *lc;

	foreach (lc, query->order)
	{
		PathKey *pathkey = lfirst_node(PathKey, lc);
		bool redundant = false;
		ListCell *lc2;

		foreach (lc2, pathkeys)
			redundant |= lfirst_node(PathKey, lc2)->pk_eclass == pathkey->pk_eclass;
		if (!redundant)
			pathkeys = lappend(pathkeys, pathkey);
	}
	add_sorted_paths(query, pathkeys, grouped);
	if (grouped && plan_hashes_ordered(query))
		add_sorted_paths(query, query->order, false);
	if (query->order_inputs != NIL)
	{
		Path *cheapest = query->input_rel->cheapest_total_path;
		Path *serial = serial_input(query);
		Cost cost = add_input_path(query, serial, true);

		if (serial != cheapest)
			cost = make_path(query, plan_path_of_inputs(query, cheapest), false, true)
					   ->path.total_cost;
		add_lookup_path(query, LOOKUPS_PROCESS, true, cost);
	}
}

/* Returns the bitmap or index scan that core has found cheapest for a table, or NULL. */
static Path *
scan_by_index(GroupQuery *query, Path *cheapest)
{
	RelOptInfo *rel = query->input_rel;

	while (cheapest && IsA(cheapest, ProjectionPath))
		cheapest = ((ProjectionPath *) cheapest)->subpath;
	if (cheapest == NULL || rel->reloptkind != RELOPT_BASEREL || rel->rtekind != RTE_RELATION ||
		rel->relid == 0 ||
		(cheapest->pathtype != T_IndexScan && cheapest->pathtype != T_IndexOnlyScan &&
		 cheapest->pathtype != T_BitmapHeapScan))
		return NULL;
	return cheapest;
}

/*
 * Returns whether core may have dropped a sequential scan too early.  Core keeps one only if no
 * path by an index is cheaper than reading all pages of the table.  That may be wrong if the column
 * cache has most of them.
 */
static bool
may_miss_scan(GroupQuery *query, Path *cheapest)
{
	RelOptInfo *rel = query->input_rel;
	RangeTblEntry *rte;

	if (scan_by_index(query, cheapest) == NULL || !bms_is_empty(rel->lateral_relids))
		return false;
	rte = planner_rt_fetch(rel->relid, query->root);
	return !rte->inh && rte->tablesample == NULL && plan_cached_share(query->root, rel) > 0.5;
}

/*
 * Returns whether a path over a sequential scan may compete with paths over core's cheapest scan.
 * Core prices a scan by an index as if its pages were on disk.  They are usually in memory, and
 * then an index that leads to few rows is much faster.
 */
static bool
beats_index(GroupQuery *query, const CustomPath *cpath, Path *cheapest)
{
	Path *scan = scan_by_index(query, cheapest);

	return scan == NULL ||
		cpath->path.total_cost <
		plan_warm_cost(query->root, scan, WARM_PAGE_COST) + scan->rows * cpu_tuple_cost;
}

/* Returns a path: a sequential scan of the input table that computes the query's inputs. */
static Path *
sequential_scan(GroupQuery *query, int workers)
{
	return plan_path_of_inputs(query,
							   create_seqscan_path(query->root, query->input_rel, NULL, workers));
}

/* Adds a path over a sequential scan that core dropped (may_miss_scan), if it beats `cheapest`. */
static void
add_missed_scan(GroupQuery *query, Path *cheapest)
{
	CustomPath *cpath = make_path(query, sequential_scan(query, 0), false, false);

	if (beats_index(query, cpath, cheapest))
		add_group_path(query, (Path *) cpath);
}

/*
 * Returns the cost of the workers of a path over this partial path, and of what they exchange with
 * the leader.  work: the cost of a path by one process
 */
static Cost
workers_cost(GroupQuery *query, const Path *partial, Cost work)
{
	Cost exchange = plan_exchange_cost(query, partial);
	Cost worker = plan_worker_cost(query->root, partial);

	if (worker > 0)
	{
		double scale = plan_cost_scale(query, work);

		worker *= scale;
		/* exchanging a group takes as long as lookups of one or two rows that miss the caches */
		exchange *= Min(1, EXCHANGE_SCALE * scale);
		/* and what core adds to start workers stands for less time beside these costs */
		exchange -= (1 - scale) * parallel_setup_cost;
	}
	return exchange + plan_workers_cost(worker, partial->parallel_workers);
}

/*
 * Adds a path over a partial input, whose rows the participants share.  If there are few groups,
 * the last participant returns all of them.  Many groups are merged and returned by all
 * participants in parallel (exec/parallel.c); this also makes a partial path for what is above.
 * Partial aggregates get a partial path in both cases, and no Gather.  cheapest: an index scan that
 * the path must beat, or NULL.  joined: if the partial input is lookups, the cost of a path over
 * core's cheapest joins; else 0.  work: the cost of a path by one process
 */
static void
add_parallel_path(GroupQuery *query, Path *partial, Path *cheapest, Cost joined, Cost work)
{
	CustomPath *cpath = make_path(query, partial, false, false);
	CustomPath *side;
	Cost exchange;

	if (!cpath->path.parallel_safe || cpath->path.parallel_workers <= 0 ||
		!beats_index(query, cpath, cheapest))
		return;
	cpath->path.parallel_aware = true;
	exchange = workers_cost(query, partial, work);
	cpath->path.startup_cost = Max(cpath->path.startup_cost + exchange, 0);
	cpath->path.total_cost = Max(cpath->path.total_cost + exchange, cpath->path.startup_cost);
	if (joined > 0)
		scale_to_joins(query, cpath, partial, joined, whole_costs(query, cpath, partial, joined));
	if (!query->partial)
		add_group_path(query,
					   (Path *) create_gather_path(query->root, query->grouped_rel, &cpath->path,
												   query->target, NULL, &cpath->path.rows));
	if (!query->partial &&
		(query->groups < MANY_GROUPS || query->grouped_rel->reloptkind != RELOPT_UPPER_REL))
		return;
	side = makeNode(CustomPath);
	*side = *cpath;
	if (query->groups >= MANY_GROUPS)
		side->path.rows = clamp_row_est(cpath->path.rows / (partial->parallel_workers + 1));
	add_partial_path(query->grouped_rel, &side->path);
}

/*
 * Returns a path by which this process alone reads the relation: a sequential scan of a table, or
 * an Append over partitions; NULL if there is none.
 */
static Path *
serial_scan(GroupQuery *query, RelOptInfo *rel)
{
	RangeTblEntry *rte = planner_rt_fetch(rel->relid, query->root);
	ListCell *lc;

	if (rte->rtekind == RTE_RELATION && !rte->inh)
		return rte->relkind == RELKIND_RELATION && rte->tablesample == NULL ?
			create_seqscan_path(query->root, rel, NULL, 0) :
			NULL;
	foreach (lc, rel->pathlist)
	{
		Path *path = lfirst(lc);

		if (IsA(path, AppendPath) && !path->parallel_aware && path->param_info == NULL)
			return path;
	}
	return NULL;
}

/*
 * Adds a path over a scan by this process alone if the GPU has cached what it reads.  That scan
 * need not be the cheapest input.
 */
static void
add_cached_path(GroupQuery *query)
{
	RelOptInfo *rel = query->input_rel;
	CustomPath *cpath;
	Path *input;
	double scanned;

	/* a scan cannot have set-returning functions in its target list */
	if (engines_candidate()->take_resident == NULL || query->root->parse->hasTargetSRFs ||
		rel->reloptkind != RELOPT_BASEREL || rel->lateral_relids != NULL ||
		(input = serial_scan(query, rel)) == NULL)
		return;
	input = plan_path_of_inputs(query, input);
	if (plan_resident_share(query, input, &scanned) <= 0)
		return;
	cpath = make_path(query, input, false, false);
	if (beats_index(query, cpath, rel->cheapest_total_path))
		add_group_path(query, (Path *) cpath);
}

/* Returns whether the best path so far is one of core's that starts workers. */
static bool
core_is_parallel(const RelOptInfo *rel)
{
	Path *best = NULL;
	ListCell *lc;

	foreach (lc, rel->pathlist)
		if (best == NULL || ((Path *) lfirst(lc))->total_cost < best->total_cost)
			best = lfirst(lc);
	return best && starts_workers(best);
}

/*
 * Returns the cost of a path by one process that reads what a partial path reads.  other: that of a
 * path over core's cheapest input
 */
static Cost
one_process_cost(GroupQuery *query, const Path *partial, Cost other)
{
	while (IsA(partial, ProjectionPath))
		partial = ((const ProjectionPath *) partial)->subpath;
	return query->input_rel->reloptkind == RELOPT_BASEREL && partial->pathtype == T_SeqScan ?
		make_path(query, sequential_scan(query, 0), false, false)->path.total_cost :
		other;
}

/*
 * Returns a partial path that computes the query's inputs: core's, or a scan of the same table by
 * another number of workers if that takes less time (workers.c).  work: the cost of a path by one
 * process
 */
static Path *
partial_scan(GroupQuery *query, Path *partial, Cost work)
{
	RelOptInfo *rel = query->input_rel;
	Cost worker = rel->reloptkind == RELOPT_BASEREL ? plan_worker_cost(query->root, partial) : 0;
	int workers;
	Path *scan = partial;

	while (IsA(scan, ProjectionPath))
		scan = ((ProjectionPath *) scan)->subpath;
	if (worker <= 0 || scan->pathtype != T_SeqScan)
		return plan_path_of_inputs(query, partial);
	workers = max_parallel_workers_per_gather * plan_cached_share(query->root, rel);
	/* a worker's time beside costs that leave out a part of the scan's time */
	workers = plan_choose_workers(work, worker * plan_cost_scale(query, work),
								  Max(workers, partial->parallel_workers));
	return workers != partial->parallel_workers ? sequential_scan(query, workers) :
												  plan_path_of_inputs(query, partial);
}

/*
 * Adds paths over partial input, unless the query cannot run in parallel or should not.  other: the
 * cost of a path over core's cheapest input
 */
static void
add_parallel_paths(GroupQuery *query, Cost other)
{
	RelOptInfo *rel = query->input_rel;
	Path *lookups = lookup_joins_path(query->root, rel, LOOKUPS_PARTICIPANT);
	Path *cheapest;
	Cost work;
	const char *why;

	if (!query->grouped_rel->consider_parallel || (rel->partial_pathlist == NIL && !lookups))
		return;
	/*
	 * Each rescan would start workers and read all rows; a single process keeps its groups.  So a
	 * parallel path is added only if core would also use one.
	 */
	if (plan_outer_params(query->root) != NIL && !core_is_parallel(query->grouped_rel))
		return;
	if (!supported_parallel(query->aggs, &why))
	{
		ereport(DEBUG1, (errmsg_internal("gpuagg: not in parallel: %s", why)));
		return;
	}
	if (lookups)
		add_parallel_path(query, plan_path_of_inputs(query, lookups), NULL, other, other);
	if (rel->partial_pathlist == NIL)
		return;
	cheapest = linitial(rel->partial_pathlist);
	work = one_process_cost(query, cheapest, other);
	add_parallel_path(query, partial_scan(query, cheapest, work), NULL, 0, work);
	if (may_miss_scan(query, cheapest))
		add_parallel_path(
			query,
			partial_scan(query,
						 sequential_scan(query,
										 compute_parallel_worker(rel, rel->pages, -1,
																 max_parallel_workers_per_gather)),
						 work),
			cheapest, 0, work);
}

/*
 * Returns whether the path contains a custom scan of partial aggregates below a join.  Looks into
 * paths that core makes between such a scan and the final aggregation.
 */
static bool
has_partial_scan(const Path *path)
{
	ListCell *lc;

	check_stack_depth();
	switch (nodeTag(path))
	{
		case T_CustomPath:
			return ((const CustomPath *) path)->methods == &gpuagg_path_methods &&
				compat_is_grouped_rel(path->parent);
		case T_AggPath:
			return has_partial_scan(((const AggPath *) path)->subpath);
		case T_SortPath:
		case T_IncrementalSortPath:
			return has_partial_scan(((const SortPath *) path)->subpath);
		case T_ProjectionPath:
			return has_partial_scan(((const ProjectionPath *) path)->subpath);
		case T_MaterialPath:
			return has_partial_scan(((const MaterialPath *) path)->subpath);
		case T_GatherPath:
			return has_partial_scan(((const GatherPath *) path)->subpath);
		case T_GatherMergePath:
			return has_partial_scan(((const GatherMergePath *) path)->subpath);
		case T_NestPath:
		case T_MergePath:
		case T_HashPath:
			return has_partial_scan(((const JoinPath *) path)->outerjoinpath) ||
				has_partial_scan(((const JoinPath *) path)->innerjoinpath);
		case T_AppendPath:
			foreach (lc, ((const AppendPath *) path)->subpaths)
				if (!has_partial_scan(lfirst(lc)))
					return false;
			return ((const AppendPath *) path)->subpaths != NIL;
		default:
			return false;
	}
}

/* Returns the paths that contain a custom scan of partial aggregates, in the same order. */
static List *
paths_with_partial_scan(List *paths)
{
	List *result = NIL;
	ListCell *lc;

	foreach (lc, paths)
		if (has_partial_scan(lfirst(lc)))
			result = lappend(result, lfirst(lc));
	return result;
}

void
plan_add_paths(GroupQuery *query)
{
	RelOptInfo *rel = query->grouped_rel;
	Path *cheapest = query->input_rel->cheapest_total_path;
	Path *serial = serial_input(query);
	const char *why;
	Cost cost;

	why = lookup_joins_unsupported_reason(query->root, query->input_rel);
	if (why)
		query->no_lookups = list_make1(makeString(pstrdup(why)));
	if (!query->partial)
	{
		reasons_add_candidate(query->root, rel, cheapest->rows);
		if (plan_is_required())
		{
			rel->pathlist = paths_with_partial_scan(rel->pathlist);
			rel->partial_pathlist = paths_with_partial_scan(rel->partial_pathlist);
		}
	}
	if (query->order != NIL)
	{
		add_ordered_paths(query);
		return;
	}
	cost = add_input_path(query, cheapest, false);
	if (serial != cheapest)
		add_input_path(query, serial, false);
	add_lookup_path(query, LOOKUPS_PROCESS, false, cost);
	add_lookup_path(query, LOOKUPS_GPU, false, cost);
	add_cached_path(query);
	if (may_miss_scan(query, serial))
		add_missed_scan(query, serial);
	add_grouped_paths(query);
	add_parallel_paths(query, cost);
}
