/*
 * plan.c
 *	  Adds custom paths for GROUP BY, plain aggregation and SELECT DISTINCT to the planner's
 *	  paths.
 *
 * The create_upper_paths_hook collects a query's aggregates and keys once, as lists of nodes
 * (GroupQuery) that all paths of the query share.  There are paths over
 *
 *	- the cheapest input;
 *	- sorted input, whose order the groups keep;
 *	- a partial input that all participants share, under a Gather;
 *	- a serial scan of a table whose columns the GPU has cached.
 *
 * custom.c makes the plan of the path that the planner chooses.
 *
 * Everything is allocated in the planner's memory context.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_constraint.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/planner.h"
#include "optimizer/tlist.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

#include "aggregates/aggmap.h"
#include "common/compat.h"
#include "engines/engines.h"
#include "plan/citus.h"
#include "plan/estimate.h"
#include "plan/group_query.h"
#include "plan/plan.h"
#include "plan/reasons.h"
#include "plan/supported.h"
#include "settings.h"

/*
 * Rows that are sorted for aggregates with different orders need at most two columns for each
 * input, and one for filters.
 */
#define MAX_SORTED_INPUTS ((MaxTupleAttributeNumber - 1) / 2)

static create_upper_paths_hook_type prev_create_upper_paths_hook;

/* ---- what the query aggregates --------------------------------------- */

typedef struct CollectContext
{
	GroupQuery *query;
	bool aggregates;   /* true: collect Aggrefs and GROUPING(); false: bare columns */
	bool undetermined; /* set if a bare column may differ within a group */
} CollectContext;

/*
 * Returns whether the keys of GROUP BY determine the column.  The planner drops keys that others
 * determine.  By the parser's rule, a column need not be a key if the primary key of its table is
 * among the keys.
 */
static bool
is_determined(GroupQuery *query, Node *node)
{
	PlannerInfo *root = query->root;
	RangeTblEntry *rte;
	List *constraints = NIL;
	ListCell *lc;

	foreach (lc, root->parse->groupClause)
	{
		if (equal(get_sortgroupclause_expr(lfirst(lc), root->processed_tlist), node))
			return true;
	}
	if (!IsA(node, Var) || ((Var *) node)->varlevelsup > 0)
		return false;
	rte = planner_rt_fetch(((Var *) node)->varno, root);
	return rte->rtekind == RTE_RELATION &&
		check_functional_grouping(rte->relid, ((Var *) node)->varno, 0,
								  query->sets != NIL ? query->common_keys : query->keys,
								  &constraints);
}

/*
 * Collects distinct Aggrefs and GROUPING(), or columns outside of aggregates and keys as further
 * keys.
 */
static bool
collect_walker(Node *node, CollectContext *context)
{
	GroupQuery *query = context->query;

	if (node == NULL)
		return false;
	if (IsA(node, Aggref))
	{
		if (context->aggregates)
			query->aggs = list_append_unique(query->aggs, node);
		return false;
	}
	if (IsA(node, GroupingFunc))
	{
		if (context->aggregates)
			query->groupings = list_append_unique(query->groupings, node);
		return false;
	}
	if (!context->aggregates)
	{
		if (list_member(query->keys, node))
			return false;
		if (IsA(node, Var) || IsA(node, PlaceHolderVar))
		{
			if (!is_determined(query, node))
				context->undetermined = true;
			query->keys = lappend(query->keys, node);
			query->key_refs = lappend_int(query->key_refs, 0);
			query->key_eqops = lappend_oid(
				query->key_eqops, lookup_type_cache(exprType(node), TYPECACHE_EQ_OPR)->eq_opr);
			return false;
		}
	}
	return expression_tree_walker(node, collect_walker, context);
}

/* Collects the aggregates and GROUPING() of the target list and HAVING. */
static void
collect_aggregates(GroupQuery *query)
{
	CollectContext context = {query, true, false};

	collect_walker((Node *) query->target->exprs, &context);
	collect_walker((Node *) query->having, &context);
}

/*
 * Collects the keys: the keys of GROUP BY, and other columns that the query may use because they
 * depend on those keys.
 *
 * Returns false if the target list needs a column that the query does not mention outside of a key.
 * That happens if the planner computes a key expression again from its columns above the
 * aggregation; core then uses any row's columns.  It does so above window functions or LIMIT, and
 * if a subquery in the expression has become an InitPlan for each of its copies.
 */
static bool
collect_keys(GroupQuery *query)
{
	CollectContext context = {query, false, false};
	ListCell *lc;
	int nkeys;

	foreach (lc,
			 query->root->parse->groupingSets != NIL ? query->root->parse->groupClause :
													   compat_group_clause(query->root))
	{
		SortGroupClause *clause = lfirst_node(SortGroupClause, lc);

		query->keys =
			lappend(query->keys, get_sortgroupclause_expr(clause, query->root->processed_tlist));
		query->key_refs = lappend_int(query->key_refs, clause->tleSortGroupRef);
		query->key_eqops = lappend_oid(query->key_eqops, clause->eqop);
	}
	plan_collect_sets(query);
	collect_walker((Node *) query->root->processed_tlist, &context);
	collect_walker((Node *) query->having, &context);
	/* direct arguments of ordered-set aggregates */
	foreach (lc, query->aggs)
		collect_walker((Node *) lfirst_node(Aggref, lc)->aggdirectargs, &context);
	plan_complete_sets(query);
	nkeys = list_length(query->keys);
	collect_walker((Node *) query->target->exprs, &context);
	return list_length(query->keys) == nkeys && !context.undetermined;
}

/* ---- paths ------------------------------------------------------------ */

/*
 * Returns whether an error must be raised if the custom scan cannot be used: by gpuagg.require, or
 * for a task of a Citus query that requires it.
 */
static bool
is_required(void)
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
	cpath->path.parallel_safe = query->grouped_rel->consider_parallel && child->parallel_safe;
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
		path = plan_path_of_inputs(query, path);
		if (!sorted)
			path = (Path *) create_sort_path(query->root, query->input_rel, path, pathkeys, -1);
		add_path(query->grouped_rel, (Path *) make_path(query, path, true, false));
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
		add_path(query->grouped_rel,
				 (Path *) make_path(query, plan_path_of_inputs(query, path), grouped, false));
	}
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
		add_path(query->grouped_rel,
				 (Path *) make_path(
					 query, plan_path_of_inputs(query, query->input_rel->cheapest_total_path),
					 false, true));
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
		cpath->path.total_cost < plan_warm_cost(query->root, scan) + scan->rows * cpu_tuple_cost;
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
		add_path(query->grouped_rel, (Path *) cpath);
}

/*
 * Adds a path over a partial input, whose rows the participants share.  If there are few groups,
 * the last participant returns all of them.  Many groups are merged and returned by all
 * participants in parallel (exec/parallel.c); this also makes a partial path for what is above.
 * cheapest: an index scan that the path must beat, or NULL.
 */
static void
add_parallel_path(GroupQuery *query, Path *partial, Path *cheapest)
{
	CustomPath *cpath = make_path(query, partial, false, false);
	CustomPath *side;
	Cost exchange;

	if (!cpath->path.parallel_safe || cpath->path.parallel_workers <= 0 ||
		!beats_index(query, cpath, cheapest))
		return;
	cpath->path.parallel_aware = true;
	exchange = plan_exchange_cost(query, partial);
	cpath->path.total_cost += exchange;
	cpath->path.startup_cost += exchange;
	add_path(query->grouped_rel,
			 (Path *) create_gather_path(query->root, query->grouped_rel, &cpath->path,
										 query->target, NULL, &cpath->path.rows));
	if (query->groups < MANY_GROUPS || query->grouped_rel->reloptkind != RELOPT_UPPER_REL)
		return;
	side = makeNode(CustomPath);
	*side = *cpath;
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

	/* a scan cannot have set-returning functions in its target list */
	if (engines_candidate()->take_resident == NULL || query->root->parse->hasTargetSRFs ||
		rel->reloptkind != RELOPT_BASEREL || rel->lateral_relids != NULL ||
		(input = serial_scan(query, rel)) == NULL)
		return;
	input = plan_path_of_inputs(query, input);
	if (plan_resident_share(query, input) <= 0)
		return;
	cpath = make_path(query, input, false, false);
	if (beats_index(query, cpath, rel->cheapest_total_path))
		add_path(query->grouped_rel, (Path *) cpath);
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
	while (best)
		switch (nodeTag(best))
		{
			case T_AggPath:
				best = ((AggPath *) best)->subpath;
				break;
			case T_GroupPath:
				best = ((GroupPath *) best)->subpath;
				break;
			case T_SortPath:
			case T_IncrementalSortPath:
				best = ((SortPath *) best)->subpath;
				break;
			case COMPAT_UNIQUE_PATH_TAG:
				best = ((CompatUniquePath *) best)->subpath;
				break;
			case T_ProjectionPath:
				best = ((ProjectionPath *) best)->subpath;
				break;
			default:
				return IsA(best, GatherPath) || IsA(best, GatherMergePath);
		}
	return false;
}

/* Adds paths over partial input, unless the query cannot run in parallel or should not. */
static void
add_parallel_paths(GroupQuery *query)
{
	RelOptInfo *rel = query->input_rel;
	Path *cheapest;
	const char *why;

	if (!query->grouped_rel->consider_parallel || rel->partial_pathlist == NIL)
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
	cheapest = linitial(rel->partial_pathlist);
	add_parallel_path(query, plan_path_of_inputs(query, cheapest), NULL);
	if (may_miss_scan(query, cheapest))
		add_parallel_path(query,
						  sequential_scan(query,
										  compute_parallel_worker(rel, rel->pages, -1,
																  max_parallel_workers_per_gather)),
						  cheapest);
}

/* Adds all custom paths of an aggregation; if one is required, removes core's paths first. */
static void
add_paths(GroupQuery *query)
{
	Path *cheapest = query->input_rel->cheapest_total_path;

	reasons_add_candidate(query->root, query->grouped_rel, cheapest->rows);
	if (is_required())
	{
		query->grouped_rel->pathlist = NIL;
		query->grouped_rel->partial_pathlist = NIL;
	}
	if (query->order != NIL)
	{
		add_ordered_paths(query);
		return;
	}
	add_path(query->grouped_rel,
			 (Path *) make_path(query, plan_path_of_inputs(query, cheapest), false, false));
	add_cached_path(query);
	if (may_miss_scan(query, cheapest))
		add_missed_scan(query, cheapest);
	add_grouped_paths(query);
	add_parallel_paths(query);
}

/* ---- the hook ---------------------------------------------------------- */

/* Adds paths for GROUP BY or plain aggregation, or records the reason why there are none. */
static void
add_group_paths(PlannerInfo *root, RelOptInfo *input_rel, RelOptInfo *grouped_rel,
				GroupPathExtraData *extra)
{
	GroupQuery query = {0};
	const char *why = NULL;
	bool ours, required;

	/* the parent adds paths for all children of partitionwise grouping */
	if (IS_OTHER_REL(input_rel))
		return;
	query.root = root;
	query.input_rel = input_rel;
	query.grouped_rel = grouped_rel;
	query.target = grouped_rel->reltarget;
	query.having = (List *) extra->havingQual;
	/* grouping sets have no common order of rows that makes the rows of each group adjacent */
	query.pathkeys = root->parse->groupingSets != NIL ? NIL : compat_group_pathkeys(root);
	collect_aggregates(&query);
	ours = supported_any_ours(query.aggs) || (citus_task_is_required() && query.aggs != NIL);
	required = ours && is_required();
	/* a query without aggregates may have HAVING, or GROUP BY () */
	if (!ours && (!supported_core_too() || (query.aggs == NIL && root->parse->groupClause == NIL)))
		return;
	if (!gpuagg_enabled)
	{
		reasons_reject(root, required, "gpuagg.enabled is off");
		return;
	}
	if (gpuagg_require == GPUAGG_FORBID)
	{
		reasons_reject(root, required, "gpuagg.require is forbid");
		return;
	}
	if (!collect_keys(&query))
	{
		reasons_reject(root, required,
					   "the plan needs a column that is only part of a GROUP BY expression");
		return;
	}
	if (!supported_query(query.keys, query.key_eqops, query.aggs, &why) ||
		!supported_sets(query.sets, query.keys, &why))
	{
		reasons_reject(root, required, why);
		return;
	}
	supported_order(root, query.aggs, &query.order, &query.order_agg, &query.orders_apart);
	plan_guard_order(&query);
	plan_collect_inputs(&query);
	if (query.orders_apart && list_length(query.inputs) > MAX_SORTED_INPUTS)
	{
		reasons_reject(
			root, required,
			"aggregates with different ORDER BY clauses have too many arguments, filters and keys");
		return;
	}
	plan_collect_order_inputs(&query);
	plan_find_limit(&query, false);
	query.groups = query.sets != NIL ?
		plan_estimate_sets(&query, input_rel->cheapest_total_path->rows) :
		query.keys == NIL ? 1 :
							estimate_groups(root, query.keys, input_rel->cheapest_total_path->rows);
	add_paths(&query);
}

/*
 * Adds paths for a SELECT DISTINCT: an aggregation without aggregates, whose keys are all columns
 * of the result.  Adds none if the input has other columns, too.
 */
static void
add_distinct_paths(PlannerInfo *root, RelOptInfo *input_rel, RelOptInfo *distinct_rel)
{
	Query *parse = root->parse;
	Path *cheapest = input_rel->cheapest_total_path;
	GroupQuery query = {0};
	const char *why = NULL;
	ListCell *lc;

	if (!supported_core_too() || !gpuagg_enabled || gpuagg_require == GPUAGG_FORBID)
		return;
	if (parse->hasDistinctOn)
	{
		reasons_reject(root, false, "DISTINCT ON is not supported");
		return;
	}
	query.root = root;
	query.input_rel = input_rel;
	query.grouped_rel = distinct_rel;
	query.target = cheapest->pathtarget;
	query.pathkeys = root->distinct_pathkeys;
	foreach (lc, parse->distinctClause)
	{
		SortGroupClause *clause = lfirst_node(SortGroupClause, lc);

		query.keys = lappend(query.keys, get_sortgroupclause_expr(clause, root->processed_tlist));
		query.key_refs = lappend_int(query.key_refs, clause->tleSortGroupRef);
		query.key_eqops = lappend_oid(query.key_eqops, clause->eqop);
	}
	foreach (lc, query.target->exprs)
		if (!list_member(query.keys, lfirst(lc)))
			return;
	if (!supported_keys(query.keys, query.key_eqops, &why))
	{
		reasons_reject(root, false, why);
		return;
	}
	plan_collect_inputs(&query);
	plan_find_limit(&query, true);
	/* like core, assume that groups are distinct */
	query.groups =
		parse->groupClause || parse->groupingSets || parse->hasAggs || root->hasHavingQual ?
		cheapest->rows :
		estimate_groups(root, query.keys, cheapest->rows);
	add_paths(&query);
}

/* The create_upper_paths_hook. */
static void
gpuagg_create_upper_paths(PlannerInfo *root, UpperRelationKind stage, RelOptInfo *input_rel,
						  RelOptInfo *output_rel, void *extra)
{
	const char *why;

	if (prev_create_upper_paths_hook)
		prev_create_upper_paths_hook(root, stage, input_rel, output_rel, extra);
	if (stage == UPPERREL_GROUP_AGG && extra != NULL)
		add_group_paths(root, input_rel, output_rel, (GroupPathExtraData *) extra);
	else if (stage == UPPERREL_DISTINCT)
		add_distinct_paths(root, input_rel, output_rel);
	else if (stage == UPPERREL_SETOP)
		union_note_other(root, output_rel);
	else if (stage == UPPERREL_WINDOW && !supported_window(root, &why))
		reasons_reject(root, is_required(), why);
}

void
plan_install_hooks(void)
{
	prev_create_upper_paths_hook = create_upper_paths_hook;
	create_upper_paths_hook = gpuagg_create_upper_paths;
	reasons_install_hooks();
	union_install_hook();
	/* the hook that is installed last is called first */
	citus_install_hook();
	foreign_install_hook();
}
