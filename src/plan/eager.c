/*
 * eager.c
 *	  Adds custom paths for partial aggregates below joins.
 *
 * From PostgreSQL 19 on, the planner may aggregate the rows of a table in part before it joins them
 * (eager aggregation, enable_eager_aggregate).  The partial aggregates belong to a grouped
 * relation, which the joins above use in place of the table.  A Finalize Aggregate above the joins
 * combines the transition values.  So a custom scan can take the table's rows, which are usually
 * far more than those of the joins.  The paths are those of any aggregation (paths.c), except that
 * results are transition values, serialized if they are internal.
 *
 * Core adds its own paths to the grouped relation later, and cost decides.
 *
 * The planner may also aggregate a join in part, below other joins.  These grouped relations get
 * only core's paths: no hook is called between the last path of a join and its choice.
 */
#include "postgres.h"

#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/tlist.h"
#include "utils/typcache.h"

#include "common/compat.h"
#include "plan/estimate.h"
#include "plan/group_query.h"
#include "plan/supported.h"
#include "settings.h"

static set_rel_pathlist_hook_type prev_set_rel_pathlist_hook;

/* Returns the size of a path of a base relation; 0 if its type is not known. */
static Size
path_size(const Path *path)
{
	switch (nodeTag(path))
	{
		case T_Path:
			return sizeof(Path);
		case T_IndexPath:
			return sizeof(IndexPath);
		case T_BitmapHeapPath:
			return sizeof(BitmapHeapPath);
		case T_TidPath:
			return sizeof(TidPath);
		case T_TidRangePath:
			return sizeof(TidRangePath);
		case T_SubqueryScanPath:
			return sizeof(SubqueryScanPath);
		case T_ForeignPath:
			return sizeof(ForeignPath);
		case T_AppendPath:
			return sizeof(AppendPath);
		case T_MergeAppendPath:
			return sizeof(MergeAppendPath);
		case T_MaterialPath:
			return sizeof(MaterialPath);
		case T_ProjectionPath:
			return sizeof(ProjectionPath);
		default:
			return 0;
	}
}

/* Returns flat copies of the paths that have no parameters. */
static List *
copy_paths(List *paths)
{
	List *copies = NIL;
	ListCell *lc;

	foreach (lc, paths)
	{
		Path *path = lfirst(lc);
		Size size = path_size(path);

		if (size > 0 && path->param_info == NULL)
			copies = lappend(copies, memcpy(palloc(size), path, size));
	}
	return copies;
}

/*
 * Returns a copy of the relation with copies of its paths; NULL if there are none without
 * parameters.  The planner frees a path of the relation when a better one is added, for example a
 * Gather; the custom paths need theirs until the end.
 */
static RelOptInfo *
copy_relation(const RelOptInfo *rel)
{
	RelOptInfo *copy = makeNode(RelOptInfo);

	*copy = *rel;
	copy->pathlist = copy_paths(rel->pathlist);
	copy->partial_pathlist = copy_paths(rel->partial_pathlist);
	if (copy->pathlist == NIL)
		return NULL;
	set_cheapest(copy);
	return copy;
}

/* Collects the partial aggregates, the keys, and the columns that depend on the keys. */
static void
collect_groups(GroupQuery *query, const CompatEagerGroups *groups)
{
	ListCell *lc, *lc2;

	forboth(lc, groups->clauses, lc2, groups->keys)
	{
		SortGroupClause *clause = lfirst_node(SortGroupClause, lc);

		query->keys = lappend(query->keys, lfirst(lc2));
		query->key_refs = lappend_int(query->key_refs, clause->tleSortGroupRef);
		query->key_eqops = lappend_oid(query->key_eqops, clause->eqop);
	}
	foreach (lc, groups->target->exprs)
	{
		Node *expr = lfirst(lc);

		if (IsA(expr, Aggref))
			query->aggs = list_append_unique(query->aggs, expr);
		else if (!list_member(query->keys, expr))
		{
			query->keys = lappend(query->keys, expr);
			query->key_refs = lappend_int(query->key_refs, 0);
			query->key_eqops = lappend_oid(
				query->key_eqops, lookup_type_cache(exprType(expr), TYPECACHE_EQ_OPR)->eq_opr);
		}
	}
	if (grouping_is_sortable(groups->clauses))
		query->pathkeys = make_pathkeys_for_sortclauses(
			query->root, groups->clauses, make_tlist_from_pathtarget(groups->top_target));
}

/*
 * Returns whether the custom scan supports the keys of the query's GROUP BY.  If not, the reason is
 * recorded when the planner gets there, and no partial aggregates are executed by a custom scan
 * either.
 */
static bool
supports_group_clause(PlannerInfo *root)
{
	List *keys = NIL, *eqops = NIL;
	const char *why;
	ListCell *lc;

	foreach (lc, compat_group_clause(root))
	{
		SortGroupClause *clause = lfirst_node(SortGroupClause, lc);

		keys = lappend(keys, get_sortgroupclause_expr(clause, root->processed_tlist));
		eqops = lappend_oid(eqops, clause->eqop);
	}
	return supported_keys(keys, eqops, &why);
}

/* Adds custom paths to the grouped relation of a table. */
static void
add_eager_paths(PlannerInfo *root, RelOptInfo *rel, const CompatEagerGroups *groups)
{
	GroupQuery query = {0};
	const char *why;

	query.root = root;
	query.grouped_rel = groups->rel;
	query.target = groups->target;
	query.partial = true;
	query.limit_groups = -1;
	collect_groups(&query, groups);
	if ((!supported_any_ours(query.aggs) && !supported_core_too()) ||
		!supported_query(query.keys, query.key_eqops, query.aggs, &why) ||
		!supports_group_clause(root))
		return;
	query.input_rel = copy_relation(rel);
	if (query.input_rel == NULL)
		return;
	query.parallel_unsafe = !is_parallel_safe(root, (Node *) query.aggs);
	plan_collect_inputs(&query);
	query.groups = estimate_groups(root, query.keys, query.input_rel->cheapest_total_path->rows);
	plan_add_paths(&query);
}

/* The set_rel_pathlist_hook. */
static void
add_paths_of_relation(PlannerInfo *root, RelOptInfo *rel, Index rti, RangeTblEntry *rte)
{
	CompatEagerGroups groups;

	if (prev_set_rel_pathlist_hook)
		prev_set_rel_pathlist_hook(root, rel, rti, rte);
	/* other relations, such as functions, are left to core: see plan_custom_path() */
	if (gpuagg_enabled && gpuagg_require != GPUAGG_FORBID && rel->rtekind == RTE_RELATION &&
		compat_eager_groups(rel, &groups))
		add_eager_paths(root, rel, &groups);
}

void
eager_install_hook(void)
{
	prev_set_rel_pathlist_hook = set_rel_pathlist_hook;
	set_rel_pathlist_hook = add_paths_of_relation;
}
