/*
 * union.c
 *	  UNION as SELECT DISTINCT over UNION ALL.
 *
 * The planner offers extensions no place for the DISTINCT of a UNION: it forms groups of columns that
 * belong to no table.  With gpuagg.replace_builtin, such a query is rewritten before it is planned:
 *
 *		A UNION B ORDER BY x LIMIT n
 *
 * becomes
 *
 *		SELECT DISTINCT * FROM (A UNION ALL B) ORDER BY x LIMIT n
 *
 * which has the same rows, with the planner's usual choices for the DISTINCT and for the ALL, and those
 * of this extension besides.  WITH RECURSIVE's own UNION is left alone, as it is no set operation of complete inputs.
 */
#include "postgres.h"

#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/planner.h"
#include "rewrite/rewriteManip.h"

#include "plan/supported.h"
#include "plan/union.h"
#include "settings.h"

static planner_hook_type prev_planner_hook;

/* Makes a tree of UNIONs one of UNION ALLs; DISTINCT follows above.  Other set operations stay as they are. */
static void
keep_duplicates(Node *node)
{
	SetOperationStmt *op = (SetOperationStmt *) node;

	if (!IsA(node, SetOperationStmt) || op->op != SETOP_UNION)
		return;
	op->all = true;
	op->groupClauses = NIL;
	keep_duplicates(op->larg);
	keep_duplicates(op->rarg);
}

/* The columns of the inner query as results of the outer one, with the references that ORDER BY has to them. */
static List *
outer_targetlist(const Query *inner)
{
	List	   *targets = NIL;
	Index		most = 0;
	ListCell   *lc;

	foreach(lc, inner->targetList)
		most = Max(most, lfirst_node(TargetEntry, lc)->ressortgroupref);
	foreach(lc, inner->targetList)
	{
		TargetEntry *tle = lfirst_node(TargetEntry, lc);
		TargetEntry *target = makeTargetEntry((Expr *) makeVarFromTargetEntry(1, tle), tle->resno,
											  tle->resname, false);

		target->ressortgroupref = tle->ressortgroupref ? tle->ressortgroupref : ++most;
		targets = lappend(targets, target);
	}
	return targets;
}

/* One clause for each column: the UNION's. */
static List *
distinct_clause(const List *clauses, const List *targets)
{
	List	   *distinct = NIL;
	ListCell   *lc,
			   *lc2;

	forboth(lc, clauses, lc2, targets)
	{
		SortGroupClause *clause = copyObject(lfirst_node(SortGroupClause, lc));

		clause->tleSortGroupRef = lfirst_node(TargetEntry, lc2)->ressortgroupref;
		distinct = lappend(distinct, clause);
	}
	return distinct;
}

static RangeTblEntry *
subquery_entry(Query *subquery)
{
	RangeTblEntry *rte = makeNode(RangeTblEntry);
	List	   *names = NIL;
	ListCell   *lc;

	foreach(lc, subquery->targetList)
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

/* Could the DISTINCT be taken, and may the query be nested? */
static bool
may_rewrite(const Query *query)
{
	SetOperationStmt *op = (SetOperationStmt *) query->setOperations;
	List	   *eqops = NIL;
	List	   *columns = NIL;
	const char *why;
	ListCell   *lc,
			   *lc2;

	if (op == NULL || !IsA(op, SetOperationStmt) || op->op != SETOP_UNION || op->all ||
		query->commandType != CMD_SELECT || query->hasModifyingCTE || query->rowMarks != NIL ||
		list_length(op->groupClauses) != list_length(query->targetList) || op->groupClauses == NIL)
		return false;
	/* LIMIT moves to where the query's WITH is not known */
	if (query->cteList != NIL &&
		(checkExprHasSubLink(query->limitOffset) || checkExprHasSubLink(query->limitCount)))
		return false;
	foreach(lc, query->targetList)
		if (lfirst_node(TargetEntry, lc)->resjunk)
			return false;
	forboth(lc, op->groupClauses, lc2, op->colTypes)
	{
		eqops = lappend_oid(eqops, lfirst_node(SortGroupClause, lc)->eqop);
		columns = lappend(columns, makeNullConst(lfirst_oid(lc2), -1, InvalidOid));
	}
	return supported_keys(columns, eqops, &why);
}

static void
rewrite(Query *query)
{
	Query	   *inner = makeNode(Query);
	Query	   *outer = makeNode(Query);
	SetOperationStmt *op = (SetOperationStmt *) query->setOperations;
	List	   *clauses = op->groupClauses;
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
	keep_duplicates(inner->setOperations);
	IncrementVarSublevelsUp((Node *) inner, 1, 1);

	ref->rtindex = 1;
	outer->rtable = list_make1(subquery_entry(inner));
	outer->jointree = makeFromExpr(list_make1(ref), NULL);
	*query = *outer;
}

static bool rewrite_walker(Node *node, void *context);

/* The query of WITH RECURSIVE: not its own UNION. */
static bool
rewrite_cte(CommonTableExpr *cte)
{
	if (cte->cterecursive && IsA(cte->ctequery, Query))
		return query_tree_walker((Query *) cte->ctequery, rewrite_walker, NULL, 0);
	return rewrite_walker(cte->ctequery, NULL);
}

static bool
rewrite_walker(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, CommonTableExpr))
		return rewrite_cte((CommonTableExpr *) node);
	if (!IsA(node, Query))
		return expression_tree_walker(node, rewrite_walker, context);
	query_tree_walker((Query *) node, rewrite_walker, context, 0);
	if (may_rewrite((Query *) node))
		rewrite((Query *) node);
	return false;
}

static PlannedStmt *
plan(Query *query, const char *query_string, int cursor_options, ParamListInfo params)
{
	if (gpuagg_replace_builtin && gpuagg_enabled && gpuagg_require != GPUAGG_FORBID)
		rewrite_walker((Node *) query, NULL);
	return (prev_planner_hook ? prev_planner_hook : standard_planner) (query, query_string, cursor_options, params);
}

void
union_install_hook(void)
{
	prev_planner_hook = planner_hook;
	planner_hook = plan;
}
