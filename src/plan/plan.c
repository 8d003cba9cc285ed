/*
 * plan.c
 *	  Offers the planner custom paths for GROUP BY, plain aggregation and SELECT DISTINCT.
 *
 * The create_upper_paths_hook collects a query's aggregates and keys once, as lists of
 * nodes (GroupQuery) that all paths of the query share.  There are paths over the
 * cheapest input; over sorted input, whose order the groups keep; and, under a Gather,
 * over a partial input that all participants share.  custom.c makes a plan of the
 * chosen one.
 *
 * All is allocated in the planner's memory context.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_constraint.h"
#include "nodes/makefuncs.h"
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
#include "aggregates/partial_call.h"
#include "analysis/analysis.h"
#include "common/compat.h"
#include "engines/engines.h"
#include "plan/citus.h"
#include "plan/estimate.h"
#include "plan/group_query.h"
#include "plan/plan.h"
#include "plan/reasons.h"
#include "plan/supported.h"
#include "settings.h"

/* So many groups are returned by all participants of a parallel plan, and fewer by one of them. */
#define MANY_GROUPS 100000

/*
 * Rows that are sorted for aggregates with orders of their own have at most two columns for an
 * input, and a filter.
 */
#define MAX_SORTED_INPUTS ((MaxTupleAttributeNumber - 1) / 2)

static create_upper_paths_hook_type prev_create_upper_paths_hook;

/* ---- what the query aggregates --------------------------------------- */

typedef struct CollectContext
{
	GroupQuery *query;
	bool aggregates;   /* collect Aggrefs, or else bare columns */
	bool undetermined; /* a bare column may differ within a group */
} CollectContext;

/*
 * Do the keys of GROUP BY determine the column?  The planner drops keys that
 * others determine; the parser's rule for columns that need not be keys is that
 * the table's primary key is among them.
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
 * Collects distinct Aggrefs and GROUPING(); or columns outside of aggregates and keys, as
 * further keys.
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

static void
collect_aggregates(GroupQuery *query)
{
	CollectContext context = {query, true, false};

	collect_walker((Node *) query->target->exprs, &context);
	collect_walker((Node *) query->having, &context);
}

/*
 * The keys: those of GROUP BY, and columns that the query may use beside them because
 * they depend on them.  False if the target list needs columns that the query does not
 * mention so: the planner may compute a key that is an expression anew from its columns,
 * of which core then shows any row's.  It does so above window functions or LIMIT, and
 * where a subquery in the expression has become an InitPlan for each of its copies.
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

/* ---- inputs ----------------------------------------------------------- */

static int
add_input(GroupQuery *query, Node *expr, Index sortgroupref)
{
	ListCell *lc;

	foreach (lc, query->inputs)
	{
		if (equal(lfirst(lc), expr))
			return foreach_current_index(lc);
	}
	query->inputs = lappend(query->inputs, expr);
	query->input_refs = lappend_int(query->input_refs, sortgroupref);
	return list_length(query->inputs) - 1;
}

/*
 * An argument is evaluated for every row.  Where FILTER excludes a row it must
 * not be: the filter may be there to keep an error away.
 */
static Node *
guard_argument(PlannerInfo *root, Expr *arg, Expr *filter)
{
	CaseExpr *guard;
	CaseWhen *when;

	if (filter == NULL || expr_cannot_fail((Node *) arg, root->glob->boundParams))
		return (Node *) arg;
	when = makeNode(CaseWhen);
	when->expr = filter;
	when->result = arg;
	when->location = -1;
	guard = makeNode(CaseExpr);
	guard->casetype = exprType((Node *) arg);
	guard->casecollid = exprCollation((Node *) arg);
	guard->args = list_make1(when);
	guard->defresult =
		(Expr *) makeNullConst(guard->casetype, exprTypmod((Node *) arg), guard->casecollid);
	guard->location = -1;
	return (Node *) guard;
}

/*
 * The inputs of keys, arguments and filters.  agg_inputs gets a list for each
 * aggregate: its filter's input or -1, whether it sorts its rows, and then its arguments' inputs.
 */
static void
collect_inputs(GroupQuery *query)
{
	ListCell *lc, *lc2;

	forboth(lc, query->keys, lc2, query->key_refs)
	{
		Node *key =
			query->sets == NIL ? lfirst(lc) : compat_below_grouping(query->root, lfirst(lc));

		query->key_inputs = lappend_int(query->key_inputs, add_input(query, key, lfirst_int(lc2)));
	}
	foreach (lc, query->aggs)
	{
		Aggref *aggref = lfirst_node(Aggref, lc);
		List *inputs;

		bool sorts = query->orders_apart && supported_orders_rows(aggref);

		inputs = list_make2_int(
			aggref->aggfilter ? add_input(query, (Node *) aggref->aggfilter, 0) : -1, sorts);
		foreach (lc2, partial_aggref(aggref)->args)
		{
			TargetEntry *tle = lfirst_node(TargetEntry, lc2);

			/* what only ORDER BY inside the aggregate needs, where the input comes sorted */
			if (tle->resjunk && !sorts)
				continue;
			inputs = lappend_int(
				inputs,
				add_input(query, guard_argument(query->root, tle->expr, aggref->aggfilter), 0));
		}
		query->agg_inputs = lappend(query->agg_inputs, inputs);
	}
}

/* Is the expression in the ORDER BY of an aggregate? */
static bool
orders_by(const Aggref *aggref, Node *expr)
{
	ListCell *lc;

	foreach (lc, aggref->aggorder)
		if (equal(get_sortgroupclause_expr(lfirst_node(SortGroupClause, lc), aggref->args), expr))
			return true;
	return false;
}

/*
 * The filter of rows for which some aggregate evaluates this expression of its
 * ORDER BY; NULL: all rows.
 */
static Expr *
order_filter(List *aggs, Node *expr)
{
	List *filters = NIL;
	ListCell *lc;

	foreach (lc, aggs)
	{
		Aggref *aggref = lfirst_node(Aggref, lc);

		if (!orders_by(aggref, expr))
			continue;
		if (aggref->aggfilter == NULL)
			return NULL;
		filters = list_append_unique(filters, aggref->aggfilter);
	}
	return list_length(filters) > 1 ? makeBoolExpr(OR_EXPR, filters, -1) : linitial(filters);
}

/*
 * One sort serves all aggregates with an ORDER BY, and so has rows that FILTER excludes
 * for some or all of them.  Where no aggregate evaluates an expression of its ORDER BY,
 * the sort must not do so either: it sorts such rows by NULL instead.  That works for
 * expressions that are equal in all aggregates.  If they are merely known to have equal
 * values (as x and y are by WHERE x = y), the rows are sorted for each of them.
 */
static void
guard_order(GroupQuery *query)
{
	Aggref *agg = query->order_agg;
	bool guarded = false;
	ListCell *lc, *lc2;

	if (query->order == NIL)
		return;
	foreach (lc, agg->args)
	{
		TargetEntry *tle = copyObject(lfirst_node(TargetEntry, lc));

		if (get_sortgroupref_clause_noerr(tle->ressortgroupref, agg->aggorder) != NULL)
		{
			Expr *filter = order_filter(query->aggs, (Node *) tle->expr);
			Node *guard = guard_argument(query->root, tle->expr, filter);

			guarded |= guard != (Node *) tle->expr;
			tle->expr = (Expr *) guard;
		}
		query->order_targets = lappend(query->order_targets, tle);
	}
	if (!guarded)
		return;
	foreach (lc, query->aggs)
	{
		Aggref *aggref = lfirst_node(Aggref, lc);

		foreach (lc2, aggref->aggorder)
			if (!orders_by(agg, get_sortgroupclause_expr(lfirst(lc2), aggref->args)))
			{
				query->order = NIL;
				query->orders_apart = true;
				return;
			}
	}
	query->order = make_pathkeys_for_sortclauses(query->root, agg->aggorder, query->order_targets);
}

/* The inputs that a feed sorts by, if all of them have codes. */
static void
collect_order_inputs(GroupQuery *query)
{
	List *inputs = NIL;
	ListCell *lc;

	if (query->order == NIL)
		return;
	foreach (lc, query->order_agg->aggorder)
	{
		SortGroupClause *clause = lfirst_node(SortGroupClause, lc);
		Node *expr = get_sortgroupclause_expr(clause, query->order_targets);
		bool desc;

		if (plan_input_is_constant(query->keys, expr))
			continue;
		if (!supported_codes(expr, clause->sortop, &desc))
			return;
		inputs = lappend_int(inputs, add_input(query, expr, 0));
		inputs = lappend_int(inputs, desc);
		inputs = lappend_int(inputs, clause->nulls_first);
	}
	query->order_inputs = inputs;
}

/*
 * A path that computes the inputs: the path as it is where they are among its
 * columns, which lets a scan return tuples without projecting them.
 */
static Path *
path_of_inputs(GroupQuery *query, Path *path)
{
	PathTarget *target = create_empty_pathtarget();
	bool project = false;
	ListCell *lc, *lc2;

	forboth(lc, query->inputs, lc2, query->input_refs)
	{
		Node *input = lfirst(lc);

		if (plan_input_is_constant(query->keys, input))
			continue;
		if (!list_member(path->pathtarget->exprs, input))
			project = true;
		add_column_to_pathtarget(target, (Expr *) input, lfirst_int(lc2));
	}
	if (!project)
		return path;
	return (Path *) create_projection_path(query->root, path->parent, path,
										   set_pathtarget_cost_width(query->root, target));
}

/* ---- paths ------------------------------------------------------------ */

/* Must the custom scan be used, here or where this is a task of? */
static bool
is_required(void)
{
	return gpuagg_require == GPUAGG_REQUIRE || citus_task_is_required();
}

/* The order of groups that are returned in the order of sorted input: that of the keys. */
static List *
group_order(GroupQuery *query, Path *child)
{
	int nkeys = list_length(query->pathkeys);

	if (query->order == NIL || list_length(child->pathkeys) <= nkeys)
		return child->pathkeys;
	return list_truncate(list_copy(child->pathkeys), nkeys);
}

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
	/* where groups come in the order that is asked for, the LIMIT stops the scan */
	if (grouped && pathkeys_contained_in(query->root->sort_pathkeys, cpath->path.pathkeys))
		query->limit = NIL;
	cpath->custom_private = plan_query_to_list(query, child->rows, grouped, sorts);
	plan_cost_path(query, cpath, child, grouped, sorts);
	query->limit = limit;
	return cpath;
}

/* Sorted input: groups are returned in its order, each when it is complete. */
static void
add_grouped_paths(GroupQuery *query)
{
	List *pathkeys = query->pathkeys;
	Path *cheapest = query->input_rel->cheapest_total_path;
	ListCell *lc;

	/*
	 * distinct values are known when all rows are, and so are their order and the groups of several
	 * sets
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
		path = path_of_inputs(query, path);
		if (!sorted)
			path = (Path *) create_sort_path(query->root, query->input_rel, path, pathkeys, -1);
		add_path(query->grouped_rel, (Path *) make_path(query, path, true, false));
	}
}

/* Paths over input in this order; rows that are `grouped` come group by group. */
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
				 (Path *) make_path(query, path_of_inputs(query, path), grouped, false));
	}
}

/*
 * Aggregates with an ORDER BY need each group's rows in that order: the input is
 * sorted once for all of them, by keys and order together, below or by the feed; or by the order
 * alone, and groups are found by hashing.
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
				 (Path *) make_path(query,
									path_of_inputs(query, query->input_rel->cheapest_total_path),
									false, true));
}

/* The bitmap or index scan of a table that core has found cheapest, or NULL. */
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
 * Core keeps a sequential scan only where no path by an index is cheaper than reading all of the
 * table's pages.  If the column cache has most of them that may be wrong.
 */
static bool
scan_is_missed(GroupQuery *query, Path *cheapest)
{
	RelOptInfo *rel = query->input_rel;
	RangeTblEntry *rte;

	if (scan_by_index(query, cheapest) == NULL || !bms_is_empty(rel->lateral_relids))
		return false;
	rte = planner_rt_fetch(rel->relid, query->root);
	return !rte->inh && rte->tablesample == NULL && plan_cached_share(query->root, rel) > 0.5;
}

/*
 * Is a path over a sequential scan of what is in memory worth a comparison with those over core's
 * cheapest scan? Core prices a scan by an index as if its pages were on disk.  Where they are in
 * memory as well, which is usual, an index that leads to few rows is faster by far.
 */
static bool
beats_index(GroupQuery *query, const CustomPath *cpath, Path *cheapest)
{
	Path *scan = scan_by_index(query, cheapest);

	return scan == NULL ||
		cpath->path.total_cost < plan_warm_cost(query->root, scan) + scan->rows * cpu_tuple_cost;
}

static Path *
sequential_scan(GroupQuery *query, int workers)
{
	return path_of_inputs(query, create_seqscan_path(query->root, query->input_rel, NULL, workers));
}

static void
add_missed_scan(GroupQuery *query, Path *cheapest)
{
	CustomPath *cpath = make_path(query, sequential_scan(query, 0), false, false);

	if (beats_index(query, cpath, cheapest))
		add_path(query->grouped_rel, (Path *) cpath);
}

/*
 * Participants share a partial input.  Where groups are few, the last of them returns all; many are
 * merged and returned side by side (exec/parallel.c), which also makes a partial path for what is
 * above.  Where `cheapest` is a scan by an index, the path must beat it; or it is NULL.
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
	exchange = plan_exchange_cost(query);
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
 * A scan of the table by this process alone, or of several tables one after the other; NULL: there
 * is none.
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
 * A scan by this process alone, which may not be the cheapest input, where the GPU has copies of
 * what it reads.
 */
static void
add_resident_path(GroupQuery *query)
{
	RelOptInfo *rel = query->input_rel;
	CustomPath *cpath;
	Path *input;

	/* a scan has no set-returning functions in its target */
	if (engines_candidate()->take_resident == NULL || query->root->parse->hasTargetSRFs ||
		rel->reloptkind != RELOPT_BASEREL || rel->lateral_relids != NULL ||
		(input = serial_scan(query, rel)) == NULL)
		return;
	input = path_of_inputs(query, input);
	if (plan_resident_share(query, input) <= 0)
		return;
	cpath = make_path(query, input, false, false);
	if (beats_index(query, cpath, rel->cheapest_total_path))
		add_path(query->grouped_rel, (Path *) cpath);
}

/* Is the best path so far one of core's that starts workers? */
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
			case T_UpperUniquePath:
				best = ((UpperUniquePath *) best)->subpath;
				break;
			case T_ProjectionPath:
				best = ((ProjectionPath *) best)->subpath;
				break;
			default:
				return IsA(best, GatherPath) || IsA(best, GatherMergePath);
		}
	return false;
}

static void
add_parallel_paths(GroupQuery *query)
{
	RelOptInfo *rel = query->input_rel;
	Path *cheapest;
	const char *why;

	if (!query->grouped_rel->consider_parallel || rel->partial_pathlist == NIL)
		return;
	/*
	 * each rescan would start workers and read all rows, where one process keeps its groups; but so
	 * would core's
	 */
	if (plan_outer_params(query->root) != NIL && !core_is_parallel(query->grouped_rel))
		return;
	if (!supported_parallel(query->aggs, &why))
	{
		ereport(DEBUG1, (errmsg_internal("gpuagg: not in parallel: %s", why)));
		return;
	}
	cheapest = linitial(rel->partial_pathlist);
	add_parallel_path(query, path_of_inputs(query, cheapest), NULL);
	if (scan_is_missed(query, cheapest))
		add_parallel_path(query,
						  sequential_scan(query,
										  compute_parallel_worker(rel, rel->pages, -1,
																  max_parallel_workers_per_gather)),
						  cheapest);
}

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
			 (Path *) make_path(query, path_of_inputs(query, cheapest), false, false));
	add_resident_path(query);
	if (scan_is_missed(query, cheapest))
		add_missed_scan(query, cheapest);
	add_grouped_paths(query);
	add_parallel_paths(query);
}

/* ---- the hook ---------------------------------------------------------- */

static void
group_paths(PlannerInfo *root, RelOptInfo *input_rel, RelOptInfo *grouped_rel,
			GroupPathExtraData *extra)
{
	GroupQuery query = {0};
	const char *why = NULL;
	bool ours, required;

	/* the children of partitionwise grouping: taken as a whole by the parent */
	if (IS_OTHER_REL(input_rel))
		return;
	query.root = root;
	query.input_rel = input_rel;
	query.grouped_rel = grouped_rel;
	query.target = grouped_rel->reltarget;
	query.having = (List *) extra->havingQual;
	/* sets have no order of rows in common in which equal keys lie together */
	query.pathkeys = root->parse->groupingSets != NIL ? NIL : compat_group_pathkeys(root);
	collect_aggregates(&query);
	ours = supported_any_ours(query.aggs) || (citus_task_is_required() && query.aggs != NIL);
	required = ours && is_required();
	/* a query may also have HAVING alone, or GROUP BY () */
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
	guard_order(&query);
	collect_inputs(&query);
	if (query.orders_apart && list_length(query.inputs) > MAX_SORTED_INPUTS)
	{
		reasons_reject(
			root, required,
			"aggregates with different ORDER BY clauses have too many arguments, filters and keys");
		return;
	}
	collect_order_inputs(&query);
	plan_find_limit(&query, false);
	query.groups = query.sets != NIL ?
		plan_estimate_sets(&query, input_rel->cheapest_total_path->rows) :
		query.keys == NIL ? 1 :
							estimate_groups(root, query.keys, input_rel->cheapest_total_path->rows);
	add_paths(&query);
}

/*
 * SELECT DISTINCT: groups by all columns of the input that are among the results, without an
 * aggregate.  Those of ORDER BY are among them too.
 */
static void
distinct_paths(PlannerInfo *root, RelOptInfo *input_rel, RelOptInfo *distinct_rel)
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
	collect_inputs(&query);
	plan_find_limit(&query, true);
	/* as core does: groups are thought to differ */
	query.groups =
		parse->groupClause || parse->groupingSets || parse->hasAggs || root->hasHavingQual ?
		cheapest->rows :
		estimate_groups(root, query.keys, cheapest->rows);
	add_paths(&query);
}

static void
gpuagg_create_upper_paths(PlannerInfo *root, UpperRelationKind stage, RelOptInfo *input_rel,
						  RelOptInfo *output_rel, void *extra)
{
	const char *why;

	if (prev_create_upper_paths_hook)
		prev_create_upper_paths_hook(root, stage, input_rel, output_rel, extra);
	if (stage == UPPERREL_GROUP_AGG && extra != NULL)
		group_paths(root, input_rel, output_rel, (GroupPathExtraData *) extra);
	else if (stage == UPPERREL_DISTINCT)
		distinct_paths(root, input_rel, output_rel);
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
	/* the last one installed is called first */
	citus_install_hook();
	foreign_install_hook();
}
