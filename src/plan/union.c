/*
 * union.c
 *	  Rewrites set operations before they are planned: UNION as SELECT DISTINCT over UNION ALL.
 *
 * The planner has no hook for the DISTINCT of a UNION: it groups by columns that belong to no
 * table. With gpuagg.replace_builtin, such a query is rewritten before it is planned:
 *
 *		A UNION B ORDER BY x LIMIT n
 *
 * becomes
 *
 *		SELECT DISTINCT * FROM (A UNION ALL B) ORDER BY x LIMIT n
 *
 * The result is the same.  The planner makes its usual choices for the DISTINCT and for the UNION
 * ALL, and this extension adds its paths.  A UNION below another set operation, as in A UNION ALL
 * (B UNION C), first becomes a subquery of that kind.  The UNION of WITH RECURSIVE is left alone,
 * because its inputs are not complete.
 *
 * INTERSECT and EXCEPT are rewritten by intersect.c.  A query that has one is planned twice, with
 * and without, and the cheaper plan is taken: core's operation may need less memory, or profit from
 * sorted inputs.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/planner.h"
#include "rewrite/rewriteManip.h"
#include "utils/lsyscache.h"

#include "common/compat.h"
#include "key_spec.h"
#include "plan/citus.h"
#include "plan/group_query.h"
#include "plan/reasons.h"
#include "plan/set_operations.h"
#include "plan/supported.h"
#include "settings.h"

/*
 * Maximum number of queries of a UNION that is rewritten.  If these read no table, the planner's
 * time for the UNION ALL grows with the cube of their number: it is more than a second for 1,000.
 */
#define MAX_ARMS 300

/*
 * Maximum number of INTERSECTs and EXCEPTs of a query that are rewritten: each becomes a subquery,
 * which the planner copies at each level.
 */
#define MAX_COMPARISONS 32

/* What is rewritten. */
typedef struct RewriteContext
{
	bool comparisons;       /* INTERSECT and EXCEPT, too */
	bool found_comparisons; /* result: there were some */
} RewriteContext;

static planner_hook_type prev_planner_hook;

/* Returns whether queries may be rewritten at all. */
static bool
is_enabled(void)
{
	return supported_core_too() && gpuagg_enabled && gpuagg_require != GPUAGG_FORBID;
}

/*
 * Changes the UNIONs of a tree to UNION ALL, in place, because a DISTINCT above removes duplicates.
 * Other set operations stay as they are.  So do UNIONs whose types or collations are not those of
 * `top`: values that are equal by these may differ by those of `top`.
 */
static void
keep_duplicates(Node *node, const SetOperationStmt *top)
{
	SetOperationStmt *op = (SetOperationStmt *) node;

	check_stack_depth();
	if (!IsA(node, SetOperationStmt) || op->op != SETOP_UNION ||
		!equal(op->colTypes, top->colTypes) || !equal(op->colCollations, top->colCollations))
		return;
	op->all = true;
	op->groupClauses = NIL;
	keep_duplicates(op->larg, top);
	keep_duplicates(op->rarg, top);
}

/*
 * Returns the number of queries ("arms") in a tree of set operations.  Adds the number of
 * INTERSECTs and EXCEPTs to *comparisons.
 */
static int
count_arms(const Node *node, int *comparisons)
{
	const SetOperationStmt *op = (const SetOperationStmt *) node;

	if (!IsA(node, SetOperationStmt))
		return 1;
	check_stack_depth();
	*comparisons += op->op != SETOP_UNION;
	return count_arms(op->larg, comparisons) + count_arms(op->rarg, comparisons);
}

void
union_note_other(PlannerInfo *root, const RelOptInfo *rel)
{
	int comparisons = 0;
	int arms = count_arms(root->parse->setOperations, &comparisons);

	/* the hook is called for each operation; only the relation of the whole tree has all arms */
	if (comparisons > 0 && is_enabled() && bms_num_members(rel->relids) == arms)
		reasons_reject(root, false, "this INTERSECT or EXCEPT is not supported");
}

/*
 * Returns whether the rewritten form of an operation might return a value of the right side, which
 * looks different from those of the left side that it equals.  Only EXCEPT ALL returns groups that
 * have rows of both sides, and shows those of the left one; the sides may be read in any order.
 */
static bool
may_show_right_side(const SetOperationStmt *op)
{
	ListCell *clause, *type, *collation;

	if (op->op != SETOP_EXCEPT || !op->all)
		return false;
	forthree(
		clause, op->groupClauses, type, op->colTypes, collation,
		op->colCollations) if (key_varies(lfirst_oid(type),
										  get_opcode(lfirst_node(SortGroupClause, clause)->eqop),
										  lfirst_oid(collation))) return true;
	return false;
}

/*
 * Returns whether a query is a UNION, or with `comparisons` an INTERSECT or EXCEPT, whose rows a
 * custom scan could group, and which may become a subquery.
 */
static bool
may_rewrite(const Query *query, bool comparisons)
{
	SetOperationStmt *op = (SetOperationStmt *) query->setOperations;
	int ncomparisons = 0;
	List *eqops = NIL;
	List *columns = NIL;
	const char *why;
	ListCell *lc, *lc2;

	if (op == NULL || !IsA(op, SetOperationStmt) ||
		(op->op == SETOP_UNION ? op->all : !comparisons) || query->commandType != CMD_SELECT ||
		query->hasModifyingCTE || query->rowMarks != NIL ||
		list_length(op->groupClauses) != list_length(query->targetList) ||
		op->groupClauses == NIL || count_arms((Node *) op, &ncomparisons) > MAX_ARMS)
		return false;
	/* LIMIT moves to the outer query, which does not have the query's WITH */
	if (query->cteList != NIL &&
		(checkExprHasSubLink(query->limitOffset) || checkExprHasSubLink(query->limitCount)))
		return false;
	foreach (lc, query->targetList)
		if (lfirst_node(TargetEntry, lc)->resjunk)
			return false;
	forboth(lc, op->groupClauses, lc2, op->colTypes)
	{
		eqops = lappend_oid(eqops, lfirst_node(SortGroupClause, lc)->eqop);
		columns = lappend(columns, makeNullConst(lfirst_oid(lc2), -1, InvalidOid));
	}
	return supported_keys(columns, eqops, &why) && !may_show_right_side(op);
}

/* Changes a UNION, in place, to SELECT DISTINCT over a subquery with UNION ALL. */
static void
rewrite_union(Query *query)
{
	Query *inner = makeNode(Query);
	Query *outer;
	SetOperationStmt *op = (SetOperationStmt *) query->setOperations;
	List *clauses = op->groupClauses;

	*inner = *query;
	outer = set_operation_outer(inner);
	outer->distinctClause = set_operation_clauses(clauses, outer->targetList);
	keep_duplicates((Node *) op, op);
	set_operation_nest(outer, inner);
	*query = *outer;
}

/* ---- set operations below others ------------------------------------------ */

/*
 * Appends copies of the queries of a tree of set operations to the range table *to, and makes the
 * tree refer to these instead of `from`.
 */
static void
move_arms(Node *node, const List *from, List **to)
{
	check_stack_depth();
	if (IsA(node, RangeTblRef))
	{
		RangeTblRef *ref = (RangeTblRef *) node;

		*to = lappend(*to, copyObject(list_nth(from, ref->rtindex - 1)));
		ref->rtindex = list_length(*to);
		return;
	}
	move_arms(castNode(SetOperationStmt, node)->larg, from, to);
	move_arms(castNode(SetOperationStmt, node)->rarg, from, to);
}

/*
 * Returns the range table index of the first query of a tree, whose column names are those of the
 * tree.
 */
static int
first_arm(const Node *node)
{
	while (IsA(node, SetOperationStmt))
		node = ((const SetOperationStmt *) node)->larg;
	return castNode(RangeTblRef, (Node *) node)->rtindex;
}

/* Returns a new query whose set operations are a copy of `op`, a part of those of `query`. */
static Query *
query_of_tree(const Query *query, const SetOperationStmt *op)
{
	Query *result = makeNode(Query);
	Query *arm;
	ListCell *type, *typmod, *collation;

	result->commandType = CMD_SELECT;
	result->querySource = query->querySource;
	result->hasRowSecurity = query->hasRowSecurity;
	result->limitOption = LIMIT_OPTION_COUNT;
	result->stmt_location = -1;
	result->jointree = makeFromExpr(NIL, NULL);
	result->setOperations = copyObject((Node *) op);
	move_arms(result->setOperations, query->rtable, &result->rtable);
	/*
	 * Also adjusts references of the arms to the outer query's WITH.  There are no columns of this
	 * level yet.
	 */
	IncrementVarSublevelsUp((Node *) result, 1, 0);
	arm = linitial_node(RangeTblEntry, result->rtable)->subquery;
	forthree(type, op->colTypes, typmod, op->colTypmods, collation, op->colCollations)
	{
		int n = list_length(result->targetList) + 1;
		TargetEntry *tle = list_nth_node(TargetEntry, arm->targetList, n - 1);

		result->targetList =
			lappend(result->targetList,
					makeTargetEntry((Expr *) makeVar(1, n, lfirst_oid(type), lfirst_int(typmod),
													 lfirst_oid(collation), 0),
									n, tle->resname ? pstrdup(tle->resname) : NULL, false));
	}
	return result;
}

/*
 * Puts a subquery in the place of a tree of set operations, and returns the reference to it.  It
 * takes the place of the tree's first query in the range table: references to that query's columns
 * then mean the columns of the tree.
 */
static Node *
replace_tree(Query *query, const Node *tree, Query *nested)
{
	RangeTblRef *ref = makeNode(RangeTblRef);

	ref->rtindex = first_arm(tree);
	lfirst(list_nth_cell(query->rtable, ref->rtindex - 1)) = set_operation_entry(nested);
	return (Node *) ref;
}

/* Returns a side of a set operation as a reference to one query of the range table. */
static Node *
as_arm(Query *query, Node *side)
{
	return IsA(side, SetOperationStmt) ?
		replace_tree(query, side, query_of_tree(query, (SetOperationStmt *) side)) :
		side;
}

/*
 * Returns whether a query or a subquery may have a set operation, without looking at expressions:
 * most queries have none.
 */
static bool
may_have_operations(const Query *query)
{
	ListCell *lc;

	check_stack_depth();
	if (query->setOperations != NULL || query->hasSubLinks)
		return true;
	foreach (lc, query->rtable)
		if (lfirst_node(RangeTblEntry, lc)->subquery != NULL &&
			may_have_operations(lfirst_node(RangeTblEntry, lc)->subquery))
			return true;
	foreach (lc, query->cteList)
	{
		Node *cte = lfirst_node(CommonTableExpr, lc)->ctequery;

		if (!IsA(cte, Query) || may_have_operations((const Query *) cte))
			return true;
	}
	return false;
}

/* Returns whether a query or a subquery has an INTERSECT or EXCEPT. */
static bool
comparison_walker(Node *node, void *context)
{
	if (node == NULL)
		return false;
	check_stack_depth();
	if (IsA(node, SetOperationStmt) && ((SetOperationStmt *) node)->op != SETOP_UNION)
		return true;
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, comparison_walker, context, 0);
	return expression_tree_walker(node, comparison_walker, context);
}

static bool
has_comparisons(Query *query)
{
	return comparison_walker((Node *) query, NULL);
}

/* Rewrites a set operation for which may_rewrite() is true, in place. */
static void
rewrite_operation(Query *query, RewriteContext *context)
{
	SetOperationStmt *op = (SetOperationStmt *) query->setOperations;

	if (op->op == SETOP_UNION)
	{
		rewrite_union(query);
		return;
	}
	/* each side becomes one query */
	op->larg = as_arm(query, op->larg);
	op->rarg = as_arm(query, op->rarg);
	intersect_rewrite(query);
	context->found_comparisons = true;
}

/*
 * Replaces set operations below *node, and *node itself unless it is the query's whole tree, by
 * subqueries that are rewritten.  merged: a UNION above also removes the duplicates of a UNION
 * here, so that it stays.
 */
static void
nest_operations(Query *query, Node **node, bool merged, RewriteContext *context)
{
	SetOperationStmt *op = (SetOperationStmt *) *node;
	bool below;

	check_stack_depth();
	if (!IsA(op, SetOperationStmt))
		return;
	below = op->op == SETOP_UNION && (merged || !op->all);
	nest_operations(query, &op->larg, below, context);
	nest_operations(query, &op->rarg, below, context);
	if (*node != query->setOperations && (op->op == SETOP_UNION ? !op->all && !merged : true))
	{
		Query *nested = query_of_tree(query, op);

		if (may_rewrite(nested, context->comparisons))
		{
			rewrite_operation(nested, context);
			*node = replace_tree(query, (Node *) op, nested);
		}
	}
}

static bool rewrite_walker(Node *node, void *context);

/* Rewrites the set operations of a WITH query, but not the UNION of WITH RECURSIVE itself. */
static bool
rewrite_cte(CommonTableExpr *cte, RewriteContext *context)
{
	if (cte->cterecursive && IsA(cte->ctequery, Query))
		return query_tree_walker((Query *) cte->ctequery, rewrite_walker, context, 0);
	return rewrite_walker(cte->ctequery, context);
}

/* Walker that rewrites the set operations of all queries, subqueries first, in place. */
static bool
rewrite_walker(Node *node, void *arg)
{
	RewriteContext *context = arg;
	Query *query = (Query *) node;

	if (node == NULL)
		return false;
	check_stack_depth();
	if (IsA(node, CommonTableExpr))
		return rewrite_cte((CommonTableExpr *) node, context);
	if (!IsA(node, Query))
		return expression_tree_walker(node, rewrite_walker, arg);
	query_tree_walker(query, rewrite_walker, arg, 0);
	if (query->setOperations)
	{
		RewriteContext here = *context;
		int comparisons = 0;

		count_arms(query->setOperations, &comparisons);
		here.comparisons &= comparisons <= MAX_COMPARISONS;
		nest_operations(query, &query->setOperations, false, &here);
		if (may_rewrite(query, here.comparisons))
			rewrite_operation(query, &here);
		context->found_comparisons |= here.found_comparisons;
	}
	return false;
}

/* Plans a query that is rewritten already. */
static PlannedStmt *
plan_query(COMPAT_PLANNER_PARAMS)
{
	return (prev_planner_hook ? prev_planner_hook : standard_planner)(COMPAT_PLANNER_ARGS);
}

/*
 * The planner hook: rewrites the set operations of a query before it is planned.  If that changes
 * an INTERSECT or EXCEPT, also plans the query with those as they are, and returns the cheaper
 * plan.
 */
static PlannedStmt *
plan_union(COMPAT_PLANNER_PARAMS)
{
	RewriteContext context = {.comparisons = true};
	RewriteContext unions = {.comparisons = false};
	PlannedStmt *result;
	PlannedStmt *volatile other;
	Query *original;
	bool paused;

	/* Citus distributes the UNIONs of its tables itself */
	if (!is_enabled() || citus_distributes() || !may_have_operations(query))
		return plan_query(COMPAT_PLANNER_ARGS);
	if (!has_comparisons(query))
	{
		rewrite_walker((Node *) query, &unions);
		return plan_query(COMPAT_PLANNER_ARGS);
	}
	original = copyObject(query);
	rewrite_walker((Node *) query, &context);
	result = plan_query(COMPAT_PLANNER_ARGS);
	if (!context.found_comparisons || plan_is_required())
		return result;
	rewrite_walker((Node *) original, &unions);
	query = original;
	paused = reasons_pause(true);
	PG_TRY();
	{
		other = plan_query(COMPAT_PLANNER_ARGS);
	}
	PG_FINALLY();
	{
		reasons_pause(paused);
	}
	PG_END_TRY();
	if (result->planTree->total_cost <= other->planTree->total_cost)
		return result;
	reasons_note_cheaper((int64) result->queryId);
	return other;
}

void
union_install_hook(void)
{
	prev_planner_hook = planner_hook;
	planner_hook = plan_union;
}
