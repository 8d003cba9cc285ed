/*
 * union.c
 *	  Rewrites UNION as SELECT DISTINCT over UNION ALL.
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
 */
#include "postgres.h"

#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/planner.h"
#include "rewrite/rewriteManip.h"

#include "common/compat.h"
#include "plan/citus.h"
#include "plan/group_query.h"
#include "plan/reasons.h"
#include "plan/supported.h"
#include "settings.h"

/*
 * Maximum number of queries of a UNION that is rewritten.  If these read no table, the planner's
 * time for the UNION ALL grows with the cube of their number: it is more than a second for 1,000.
 */
#define MAX_ARMS 300

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
 * Returns the number of queries ("arms") in a tree of set operations.  Sets *compares if one of the
 * operations is INTERSECT or EXCEPT.
 */
static int
count_arms(const Node *node, bool *compares)
{
	const SetOperationStmt *op = (const SetOperationStmt *) node;

	if (!IsA(node, SetOperationStmt))
		return 1;
	check_stack_depth();
	*compares |= op->op != SETOP_UNION;
	return count_arms(op->larg, compares) + count_arms(op->rarg, compares);
}

void
union_note_other(PlannerInfo *root, const RelOptInfo *rel)
{
	bool compares = false;
	int arms = count_arms(root->parse->setOperations, &compares);

	/* the hook is called for each operation; only the relation of the whole tree has all arms */
	if (compares && is_enabled() && bms_num_members(rel->relids) == arms)
		reasons_reject(root, false, "INTERSECT and EXCEPT are not supported");
}

/*
 * Returns target entries of the outer query for the columns of the inner one, with the references
 * that ORDER BY uses.
 */
static List *
outer_targetlist(const Query *inner)
{
	List *targets = NIL;
	Index most = 0;
	ListCell *lc;

	foreach (lc, inner->targetList)
		most = Max(most, lfirst_node(TargetEntry, lc)->ressortgroupref);
	foreach (lc, inner->targetList)
	{
		TargetEntry *tle = lfirst_node(TargetEntry, lc);
		TargetEntry *target = makeTargetEntry((Expr *) makeVarFromTargetEntry(1, tle), tle->resno,
											  tle->resname, false);

		target->ressortgroupref = tle->ressortgroupref ? tle->ressortgroupref : ++most;
		targets = lappend(targets, target);
	}
	return targets;
}

/* Returns the UNION's grouping clauses with references to these target entries. */
static List *
distinct_clause(const List *clauses, const List *targets)
{
	List *distinct = NIL;
	ListCell *lc, *lc2;

	forboth(lc, clauses, lc2, targets)
	{
		SortGroupClause *clause = copyObject(lfirst_node(SortGroupClause, lc));

		clause->tleSortGroupRef = lfirst_node(TargetEntry, lc2)->ressortgroupref;
		distinct = lappend(distinct, clause);
	}
	return distinct;
}

/* Returns a range table entry for a subquery. */
static RangeTblEntry *
subquery_entry(Query *subquery)
{
	RangeTblEntry *rte = makeNode(RangeTblEntry);
	List *names = NIL;
	ListCell *lc;

	foreach (lc, subquery->targetList)
	{
		const char *name = lfirst_node(TargetEntry, lc)->resname;

		names = lappend(names, makeString(pstrdup(name ? name : "?column?")));
	}
	rte->rtekind = RTE_SUBQUERY;
	rte->subquery = subquery;
	rte->eref = makeAlias("union", names);
	rte->inFromCl = true;
	return rte;
}

/*
 * Returns whether a query is a UNION whose DISTINCT a custom scan could compute, and which may
 * become a subquery.
 */
static bool
may_rewrite(const Query *query)
{
	SetOperationStmt *op = (SetOperationStmt *) query->setOperations;
	bool compares = false;
	List *eqops = NIL;
	List *columns = NIL;
	const char *why;
	ListCell *lc, *lc2;

	if (op == NULL || !IsA(op, SetOperationStmt) || op->op != SETOP_UNION || op->all ||
		query->commandType != CMD_SELECT || query->hasModifyingCTE || query->rowMarks != NIL ||
		list_length(op->groupClauses) != list_length(query->targetList) ||
		op->groupClauses == NIL || count_arms((Node *) op, &compares) > MAX_ARMS)
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
	return supported_keys(columns, eqops, &why);
}

/* Changes a UNION, in place, to SELECT DISTINCT over a subquery with UNION ALL. */
static void
rewrite_union(Query *query)
{
	Query *inner = makeNode(Query);
	Query *outer = makeNode(Query);
	SetOperationStmt *op = (SetOperationStmt *) query->setOperations;
	List *clauses = op->groupClauses;
	RangeTblRef *ref = makeNode(RangeTblRef);

	*inner = *query;
	outer->commandType = CMD_SELECT;
	outer->querySource = query->querySource;
	outer->queryId = query->queryId;
	outer->canSetTag = query->canSetTag;
	outer->hasSubLinks = query->hasSubLinks;
	outer->hasRowSecurity = query->hasRowSecurity;
	outer->stmt_location = query->stmt_location;
	outer->stmt_len = query->stmt_len;
	outer->sortClause = query->sortClause;
	outer->limitOffset = query->limitOffset;
	outer->limitCount = query->limitCount;
	outer->limitOption = query->limitOption;
	outer->targetList = outer_targetlist(inner);
	outer->distinctClause = distinct_clause(clauses, outer->targetList);

	inner->sortClause = NIL;
	inner->limitOffset = inner->limitCount = NULL;
	inner->limitOption = LIMIT_OPTION_COUNT;
	inner->canSetTag = false;
	keep_duplicates((Node *) op, op);
	IncrementVarSublevelsUp((Node *) inner, 1, 1);

	ref->rtindex = 1;
	outer->rtable = list_make1(subquery_entry(inner));
	outer->jointree = makeFromExpr(list_make1(ref), NULL);
	*query = *outer;
}

/* ---- UNIONs below other set operations ------------------------------------ */

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
 * Replaces UNIONs at and below *node by subqueries with SELECT DISTINCT, except one that is the
 * query's whole tree.  A subquery takes the place of the UNION's first query in the range table:
 * references to that query's columns then mean the columns of the UNION.  merged: a UNION above
 * also removes these duplicates, so that a UNION here stays.
 */
static void
nest_unions(Query *query, Node **node, bool merged)
{
	SetOperationStmt *op = (SetOperationStmt *) *node;

	check_stack_depth();
	if (!IsA(op, SetOperationStmt))
		return;
	if (op->op == SETOP_UNION && !op->all && !merged && *node != query->setOperations)
	{
		Query *nested = query_of_tree(query, op);

		if (may_rewrite(nested))
		{
			RangeTblRef *ref = makeNode(RangeTblRef);

			rewrite_union(nested);
			ref->rtindex = first_arm((Node *) op);
			lfirst(list_nth_cell(query->rtable, ref->rtindex - 1)) = subquery_entry(nested);
			*node = (Node *) ref;
			return;
		}
	}
	merged = op->op == SETOP_UNION && (merged || !op->all);
	nest_unions(query, &op->larg, merged);
	nest_unions(query, &op->rarg, merged);
}

static bool rewrite_walker(Node *node, void *context);

/* Rewrites the UNIONs of a WITH query, but not the UNION of WITH RECURSIVE itself. */
static bool
rewrite_cte(CommonTableExpr *cte)
{
	if (cte->cterecursive && IsA(cte->ctequery, Query))
		return query_tree_walker((Query *) cte->ctequery, rewrite_walker, NULL, 0);
	return rewrite_walker(cte->ctequery, NULL);
}

/* Walker that rewrites the UNIONs of all queries, subqueries first, in place. */
static bool
rewrite_walker(Node *node, void *context)
{
	if (node == NULL)
		return false;
	check_stack_depth();
	if (IsA(node, CommonTableExpr))
		return rewrite_cte((CommonTableExpr *) node);
	if (!IsA(node, Query))
		return expression_tree_walker(node, rewrite_walker, context);
	query_tree_walker((Query *) node, rewrite_walker, context, 0);
	if (((Query *) node)->setOperations)
		nest_unions((Query *) node, &((Query *) node)->setOperations, false);
	if (may_rewrite((Query *) node))
		rewrite_union((Query *) node);
	return false;
}

/* The planner hook: rewrites the UNIONs of a query before it is planned. */
static PlannedStmt *
plan_union(COMPAT_PLANNER_PARAMS)
{
	/* Citus distributes the UNIONs of its tables itself */
	if (is_enabled() && !citus_distributes())
		rewrite_walker((Node *) query, NULL);
	return (prev_planner_hook ? prev_planner_hook : standard_planner)(COMPAT_PLANNER_ARGS);
}

void
union_install_hook(void)
{
	prev_planner_hook = planner_hook;
	planner_hook = plan_union;
}
