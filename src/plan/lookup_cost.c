/*
 * lookup_cost.c
 *	  Computes what joins cost if the heap feed executes them as lookups, and in which order
 *	  core runs inner sides.
 */
#include "postgres.h"

#include "catalog/pg_type_d.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"

#include "plan/group_query.h"
#include "plan/lookup_rules.h"

/* Cost of probing a lookup with an integer key: often a single load. */
#define LOOKUP_INTEGER_COST (cpu_operator_cost / 3)
/* Cost of probing a lookup with another key: a hash and a comparison. */
#define LOOKUP_OTHER_COST (4 * LOOKUP_INTEGER_COST)
/* Cost of repeating a row for another match. */
#define LOOKUP_MATCH_COST (2 * LOOKUP_INTEGER_COST)

/* Returns whether a key is an integer of both sides: one, or two of at most 32 bits. */
static bool
is_integer_key(const List *hashclauses)
{
	bool two = list_length(hashclauses) == 2;
	ListCell *clause, *arg;

	if (list_length(hashclauses) > 2)
		return false;
	foreach (clause, hashclauses)
		foreach (arg, ((OpExpr *) lfirst_node(RestrictInfo, clause)->clause)->args)
		{
			Oid type = exprType(lfirst(arg));

			if (type != INT2OID && type != INT4OID && type != DATEOID && (two || type != INT8OID))
				return false;
		}
	return true;
}

double
plan_lookup_matches(PlannerInfo *root, double outer_rows, const RelOptInfo *outerrel,
					double inner_rows, const RelOptInfo *innerrel, List *hashclauses)
{
	SpecialJoinInfo sjinfo = {.type = T_SpecialJoinInfo, .jointype = JOIN_INNER};
	Selectivity selectivity = 1;
	ListCell *lc;

	sjinfo.min_lefthand = sjinfo.syn_lefthand = outerrel->relids;
	sjinfo.min_righthand = sjinfo.syn_righthand = innerrel->relids;
	/* estimates of clauses are kept with the clauses */
	foreach (lc, hashclauses)
		selectivity *= clause_selectivity(root, (Node *) lfirst(lc), 0, JOIN_INNER, &sjinfo);
	return clamp_row_est(selectivity * outer_rows * inner_rows);
}

Cost
plan_lookup_cost(PlannerInfo *root, double outer_rows, double matches, Cost inner,
				 double inner_rows, List *restrictlist, List *hashclauses)
{
	Cost probe = is_integer_key(hashclauses) ? LOOKUP_INTEGER_COST : LOOKUP_OTHER_COST;
	QualCost all;

	/* the operators of the keys are part of the probe, expressions below them are not */
	cost_qual_eval(&all, restrictlist, root);
	/* a rescan may make the lookup again, which takes as long as to start the scan again */
	return plan_rescan_cost(root) + inner + inner_rows * cpu_tuple_cost + all.startup +
		outer_rows * probe +
		matches * Max(all.per_tuple - list_length(hashclauses) * cpu_operator_cost, 0) +
		Max(matches - outer_rows, 0) * LOOKUP_MATCH_COST;
}

static bool tree_cost(PlannerInfo *root, Path *path, bool top, Cost *cost, bool *settles);

/* Returns the cost of an inner path, which a feed of its own reads if it can. */
static Cost
inner_path_cost(PlannerInfo *root, Path *inner)
{
	Cost cost;
	bool settles;

	return tree_cost(root, inner, false, &cost, &settles) ? Min(cost, inner->total_cost) :
															inner->total_cost;
}

/* Returns whether a lookup may run the inner plan of a join. */
static bool
inner_may_run(PlannerInfo *root, const RelOptInfo *inner, const Path *outer)
{
	Notice notice = plan_lookup_inner_notice(root, inner);

	while (IsA(outer, HashPath))
		outer = ((const HashPath *) outer)->jpath.outerjoinpath;
	return notice == NOTICE_NONE || (notice == NOTICE_WHETHER && plan_lookup_can_look_ahead(outer));
}

/*
 * Sets the cost of a tree of hash joins, or of a scan below it, if the feed executes it.  Returns
 * false if the feed cannot.  top: the caller has examined the path's target.  Sets *settles as
 * LookupChain.settles.
 */
static bool
tree_cost(PlannerInfo *root, Path *path, bool top, Cost *cost, bool *settles)
{
	HashPath *hash = (HashPath *) path;
	Path *outer, *inner;
	bool on, unique;

	check_stack_depth();
	*settles = false;
	if (!IsA(path, HashPath))
		return plan_lookup_scan_supported(path) && plan_lookup_fact_supported(root, path->parent) &&
			plan_lookup_harmless_target(root, path->pathtarget->exprs, NULL, NULL) &&
			plan_feed_cost(root, path, true, cost);
	outer = hash->jpath.outerjoinpath;
	inner = hash->jpath.innerjoinpath;
	if (path->parallel_aware || path->param_info != NULL || inner->param_info != NULL ||
		!plan_lookup_fits(root, inner->rows, inner->pathtarget) ||
		plan_lookup_unsupported_reason(root, path->parent, outer->parent, hash->jpath.jointype,
									   hash->jpath.joinrestrictinfo, hash->path_hashclauses,
									   &on) != NULL ||
		!inner_may_run(root, inner->parent, outer) ||
		!(top ||
		  plan_lookup_harmless_target(root, path->pathtarget->exprs, outer->pathtarget,
									  inner->pathtarget)) ||
		!tree_cost(root, outer, false, cost, settles))
		return false;
	unique = plan_lookup_has_one_match(hash->jpath.jointype, hash->jpath.inner_unique, on);
	if (!unique && *settles)
		return false;
	*settles |= !unique && on;
	*cost +=
		plan_lookup_cost(root, outer->rows,
						 unique ? outer->rows :
								  plan_lookup_matches(root, outer->rows, outer->parent, inner->rows,
													  inner->parent, hash->path_hashclauses),
						 plan_lookup_has_column_keys(hash->path_hashclauses, inner->parent) ?
							 inner_path_cost(root, inner) :
							 inner->total_cost,
						 inner->rows, hash->jpath.joinrestrictinfo, hash->path_hashclauses);
	return true;
}

bool
lookup_joins_cost(PlannerInfo *root, Path *path, Cost *cost)
{
	Path *join = path;
	bool settles;

	while (IsA(join, ProjectionPath))
		join = ((ProjectionPath *) join)->subpath;
	if (!IsA(join, HashPath))
		return false;
	for (Path *above = path;; above = ((ProjectionPath *) above)->subpath)
	{
		if (contain_volatile_functions((Node *) above->pathtarget) ||
			contain_subplans((Node *) above->pathtarget->exprs))
			return false;
		if (above == join)
			break;
	}
	if (!tree_cost(root, join, true, cost, &settles))
		return false;
	*cost += Max(path->total_cost - join->total_cost, 0);
	return true;
}

Cost
lookup_joins_executed_cost(PlannerInfo *root, Path *path)
{
	Cost cost = 0;
	Cost fed;
	bool settles;

	check_stack_depth();
	while (IsA(path, ProjectionPath))
		path = ((ProjectionPath *) path)->subpath;
	for (; IsA(path, HashPath); path = ((HashPath *) path)->jpath.outerjoinpath)
	{
		Path *inner = ((HashPath *) path)->jpath.innerjoinpath;

		if (!IS_JOIN_REL(inner->parent))
			continue;
		cost += tree_cost(root, inner, false, &fed, &settles) ?
			lookup_joins_executed_cost(root, inner) :
			inner->total_cost + plan_omitted_cost(root, inner);
	}
	return cost;
}

Cost
lookup_joins_making_cost(PlannerInfo *root, Path *path)
{
	Cost cost = 0;

	check_stack_depth();
	while (IsA(path, ProjectionPath))
		path = ((ProjectionPath *) path)->subpath;
	for (; IsA(path, HashPath); path = ((HashPath *) path)->jpath.outerjoinpath)
	{
		Path *inner = ((HashPath *) path)->jpath.innerjoinpath;

		cost += inner_path_cost(root, inner) + inner->rows * cpu_tuple_cost;
	}
	return cost;
}

/*
 * Returns what a path reads if the plan has no node for it, or NULL.  Nodes of subqueries remain if
 * they have something to do; then the feed does not execute the joins below as lookups.
 */
static Path *
below_trivial(Path *path)
{
	switch (nodeTag(path))
	{
		case T_ProjectionPath:
			return ((ProjectionPath *) path)->subpath;
		case T_SubqueryScanPath:
			return ((SubqueryScanPath *) path)->subpath;
		case T_AppendPath:
			return list_length(((AppendPath *) path)->subpaths) == 1 ?
				linitial(((AppendPath *) path)->subpaths) :
				NULL;
		default:
			return NULL;
	}
}

/* Returns the topmost join of a tree of hash joins, or the path of something else. */
static Path *
topmost_join(Path *path)
{
	for (Path *below = path; below; below = below_trivial(path))
		path = below;
	return path;
}

/* Returns the join below a join of such a tree, or the path of something else. */
static Path *
join_below(Path *path)
{
	return topmost_join(((HashPath *) path)->jpath.outerjoinpath);
}

/*
 * Returns the number, from the scan upwards, of the join with this inner relation; -1: none.  The
 * relation is of the topmost join's query.
 */
static int
find_join(Path *path, const RelOptInfo *inner)
{
	bool same_query = true;
	int found = -1;

	while (path)
	{
		if (!IsA(path, HashPath))
		{
			same_query = same_query && !IsA(path, SubqueryScanPath);
			path = below_trivial(path);
			continue;
		}
		if (same_query &&
			bms_equal(((HashPath *) path)->jpath.innerjoinpath->parent->relids, inner->relids))
			found = 0;
		else if (found >= 0)
			found++;
		path = ((HashPath *) path)->jpath.outerjoinpath;
	}
	return found;
}

/* Returns the topmost join of the subquery, of the topmost join's query, that a tree reads. */
static Path *
find_subquery(Path *path, const RelOptInfo *rel)
{
	while (path && !IsA(path, SubqueryScanPath))
		path = IsA(path, HashPath) ? ((HashPath *) path)->jpath.outerjoinpath : below_trivial(path);
	return path && bms_equal(path->parent->relids, rel->relids) ? topmost_join(path) : NULL;
}

/* Returns whether core's hash join runs its inner side before it fetches an outer row. */
static bool
runs_inner_first(const HashPath *hash)
{
	if (hash->jpath.path.parallel_aware)
		return true;
	return (hash->jpath.jointype == JOIN_INNER || hash->jpath.jointype == JOIN_SEMI) &&
		hash->jpath.outerjoinpath->startup_cost >= hash->jpath.innerjoinpath->total_cost;
}

/* Returns the path whose first row is fetched for the first row of a path of core's, or NULL. */
static Path *
first_fetched(Path *path)
{
	switch (nodeTag(path))
	{
		case T_ProjectionPath:
			return ((ProjectionPath *) path)->subpath;
		case T_SubqueryScanPath:
			return ((SubqueryScanPath *) path)->subpath;
		case T_SortPath:
		case T_IncrementalSortPath:
			return ((SortPath *) path)->subpath;
		case T_GatherPath:
			return ((GatherPath *) path)->subpath;
		case T_GatherMergePath:
			return ((GatherMergePath *) path)->subpath;
		case T_HashPath:
		case T_MergePath:
		case T_NestPath:
			return ((JoinPath *) path)->outerjoinpath;
		default:
			return NULL;
	}
}

/* Returns the path that core would execute in place of a tree of hash joins. */
static Path *
core_path(Path *path)
{
	const RelOptInfo *rel = path->parent;
	Path *scan = path;

	while (IsA(scan, HashPath))
		scan = join_below(scan);
	return scan->parallel_aware && rel->partial_pathlist != NIL ? linitial(rel->partial_pathlist) :
																  rel->cheapest_total_path;
}

/* Returns the core_joins of the inner sides of a tree. */
static List *
core_joins_of_inner_sides(Path *path)
{
	List *result = NIL;

	for (; IsA(path, HashPath); path = join_below(path))
		result = lcons(lookup_joins_of_core(((HashPath *) path)->jpath.innerjoinpath), result);
	return result;
}

List *
lookup_joins_of_core(Path *path)
{
	List *hashed = NIL;
	List *inner_first = NIL;
	Path *top;

	check_stack_depth();
	path = top = topmost_join(path);
	if (!IsA(path, HashPath))
		return NIL;
	for (Path *core = core_path(path); core; core = first_fetched(core))
	{
		bool first;
		int join;

		if (IsA(core, SubqueryScanPath) && (path = find_subquery(path, core->parent)) == NULL)
			break;
		if (!IsA(core, HashPath))
			continue;
		first = runs_inner_first((HashPath *) core);
		join = find_join(path, ((HashPath *) core)->jpath.innerjoinpath->parent);
		/* if this side is empty, core stops here */
		if (join < 0 && first)
			break;
		if (join >= 0)
			hashed = lappend_int(hashed, join);
		if (first)
			inner_first = lappend_int(inner_first, join);
	}
	return list_make3(hashed, inner_first, core_joins_of_inner_sides(top));
}
