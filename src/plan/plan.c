/*
 * plan.c
 *	  Adds custom paths for GROUP BY, plain aggregation, SELECT DISTINCT and the best rows of
 *	  groups to the planner's paths.
 *
 * The create_upper_paths_hook collects a query's aggregates and keys once, as lists of nodes
 * (GroupQuery) that all paths of the query share.  paths.c makes the paths, and custom.c the plan
 * of the path that the planner chooses.
 *
 * Everything is allocated in the planner's memory context.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_constraint.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "optimizer/planner.h"
#include "optimizer/tlist.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

#include "aggregates/aggmap.h"
#include "common/compat.h"
#include "plan/citus.h"
#include "plan/estimate.h"
#include "plan/float_sums.h"
#include "plan/group_query.h"
#include "plan/plan.h"
#include "plan/reasons.h"
#include "plan/set_operations.h"
#include "plan/supported.h"
#include "plan/top_rows.h"
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
	bool sets = query->root->parse->groupingSets != NIL;
	List *clauses = sets ? query->root->parse->groupClause : compat_group_clause(query->root);
	ListCell *lc;
	int nkeys;

	foreach (lc, clauses)
	{
		SortGroupClause *clause = lfirst_node(SortGroupClause, lc);
		Node *key = get_sortgroupclause_expr(clause, query->root->processed_tlist);

		/* a constant distinguishes no groups, but without any key there is a group for no rows */
		if (IsA(key, Const) && !sets && (query->keys != NIL || lnext(clauses, lc)))
			continue;
		query->keys = lappend(query->keys, key);
		query->key_refs = lappend_int(query->key_refs, clause->tleSortGroupRef);
		query->key_eqops = lappend_oid(query->key_eqops, clause->eqop);
	}
	plan_collect_sets(query);
	plan_drop_dependent_keys(query);
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

/* ---- the hook ---------------------------------------------------------- */

/* Adds paths for GROUP BY or plain aggregation, or records the reason why there are none. */
static void
add_group_paths(PlannerInfo *root, RelOptInfo *input_rel, RelOptInfo *grouped_rel,
				GroupPathExtraData *extra)
{
	GroupQuery query = {0};
	const char *why = NULL;
	bool ours, required;

	/*
	 * The parent adds paths for all children of partitionwise grouping.  Partial aggregates must
	 * not be aggregated as if they were rows.
	 */
	if (IS_OTHER_REL(input_rel) || compat_is_grouped_rel(input_rel))
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
	required = ours && plan_is_required();
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
		plan_estimate_groups(&query, input_rel->cheapest_total_path->rows);
	plan_add_paths(&query);
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
		top_rows_add_distinct_paths(root, input_rel, distinct_rel);
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
	/* from PostgreSQL 18 on, EXPLAIN shows a window function only with the node that computes it */
	if (contain_window_function((Node *) query.keys))
		why = "DISTINCT of results of window functions is not supported";
	plan_drop_dependent_keys(&query);
	if (why || !supported_keys(query.keys, query.key_eqops, &why))
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
		plan_estimate_groups(&query, cheapest->rows);
	plan_add_paths(&query);
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
	else if (stage == UPPERREL_FINAL)
	{
		intersect_correct_rows(root, output_rel);
		lookup_joins_forget(root);
	}
	else if (stage == UPPERREL_WINDOW && !supported_window(root, &why))
		reasons_reject(root, plan_is_required(), why);
	else if (stage == UPPERREL_WINDOW)
		top_rows_add_window_paths(root, input_rel, output_rel);
}

void
plan_install_hooks(void)
{
	prev_create_upper_paths_hook = create_upper_paths_hook;
	create_upper_paths_hook = gpuagg_create_upper_paths;
	eager_install_hook();
	lookup_joins_install_hook();
	reasons_install_hooks();
	union_install_hook();
	/* the hook that is installed last is called first */
	citus_install_hook();
	foreign_install_hook();
	float_sums_install_hook();
}
