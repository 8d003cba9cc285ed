/*
 * limit.c
 *	  Finds a LIMIT above an aggregation, so that the scan returns only the groups that it needs.
 *
 * Core passes the bound of a LIMIT down from node to node at run time (ExecSetTupleBound), but not
 * through custom scans.  So the scan gets the expressions of LIMIT and OFFSET, with the sort keys.
 * That is right only if nothing between the two adds, removes or joins rows: no window function,
 * DISTINCT, set-returning function or row lock.  Core's Sort and Limit stay above.
 *
 * Without ORDER BY, and if groups have nothing but keys, any groups will do.  A scan by one process
 * stops reading rows once it has enough of them.
 *
 * Target expressions are not evaluated for groups that are not returned.  Core postpones volatile
 * ones until after the sort for the same reason.  If there are volatile functions in the target
 * list or in HAVING, the scan returns all groups.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/planner.h"
#include "optimizer/tlist.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

#include "aggregates/agg_codes.h"
#include "plan/group_query.h"

/*
 * Returns the number of the scan's column that is this sort key; -1 if none is, or if its values
 * have no codes that sort in the requested order.  Sets *descending.
 */
static int
sort_column(const GroupQuery *query, const SortGroupClause *clause, Node *expr, bool *descending)
{
	Oid type = getBaseType(exprType(expr));
	TypeCacheEntry *entry = lookup_type_cache(type, TYPECACHE_LT_OPR | TYPECACHE_GT_OPR);
	int column = 0;
	ListCell *lc;

	*descending = clause->sortop == entry->gt_opr;
	if (!codes_exist_for_type(type) || (!*descending && clause->sortop != entry->lt_opr))
		return -1;
	foreach (lc, query->keys)
	{
		/* keys of numerics are not integers */
		if (equal(lfirst(lc), expr))
			return type == NUMERICOID ? -1 : column;
		column++;
	}
	foreach (lc, query->aggs)
	{
		if (equal(lfirst(lc), expr))
			return column;
		column++;
	}
	return -1;
}

/* Returns whether the query has a LIMIT that may choose among the groups. */
static bool
may_limit(const GroupQuery *query, bool distinct)
{
	Query *parse = query->root->parse;

	if (parse->limitCount == NULL ||
		(IsA(parse->limitCount, Const) && ((Const *) parse->limitCount)->constisnull))
		return false;
	return query->keys != NIL && parse->commandType == CMD_SELECT && !parse->hasTargetSRFs &&
		parse->rowMarks == NIL && parse->groupingSets == NIL && parse->setOperations == NULL &&
		(distinct || (parse->distinctClause == NIL && !parse->hasWindowFuncs)) &&
		!contain_volatile_functions((Node *) query->root->processed_tlist) &&
		!contain_volatile_functions(parse->havingQual) &&
		!contain_volatile_functions(parse->limitCount) &&
		!contain_volatile_functions(parse->limitOffset) && !contain_subplans(parse->limitCount) &&
		!contain_subplans(parse->limitOffset);
}

/* Returns whether the node is or contains a query with row locks.  Then all rows must be read. */
static bool
locks_rows(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Query))
		return ((Query *) node)->rowMarks != NIL ||
			query_tree_walker((Query *) node, locks_rows, context, 0);
	return expression_tree_walker(node, locks_rows, context);
}

/* Returns the expression of a LIMIT or OFFSET; for NULL a constant 0. */
static Expr *
limit_expr(Node *expr)
{
	return expr ? (Expr *) expr :
				  (Expr *) makeConst(INT8OID, -1, InvalidOid, sizeof(int64), Int64GetDatum(0),
									 false, FLOAT8PASSBYVAL);
}

/*
 * Returns LIMIT plus OFFSET for the list of these two expressions; -1 if they are not constants, or
 * if LIMIT is NULL (no limit).
 */
static double
limit_groups(List *exprs)
{
	double groups = 0;
	ListCell *lc;

	foreach (lc, exprs)
	{
		Const *expr = lfirst(lc);

		if (!IsA(expr, Const))
			return -1;
		if (!expr->constisnull)
			groups += (double) DatumGetInt64(expr->constvalue);
		else if (lc == list_head(exprs))
			return -1;
	}
	return groups;
}

void
plan_find_limit(GroupQuery *query, bool distinct)
{
	Query *parse = query->root->parse;
	List *limit = NIL;
	bool ties = parse->limitOption == LIMIT_OPTION_WITH_TIES;
	ListCell *lc;

	query->limit_groups = -1;
	if (!may_limit(query, distinct))
		return;
	/* without ORDER BY, any groups will do, but only if a group is complete with its keys */
	if (parse->sortClause == NIL &&
		(query->aggs != NIL || query->having != NIL ||
		 query_tree_walker(parse, locks_rows, NULL, 0)))
		return;
	foreach (lc, parse->sortClause)
	{
		SortGroupClause *clause = lfirst_node(SortGroupClause, lc);
		Node *expr = get_sortgroupclause_expr(clause, query->root->processed_tlist);
		bool descending;
		int column;

		/* a constant orders nothing, and may be no key of the query */
		if (IsA(expr, Const))
			continue;
		column = sort_column(query, clause, expr, &descending);
		if (column < 0)
		{
			ties = true;
			break;
		}
		limit = lappend_int(limit, column);
		limit = lappend_int(limit, descending);
		limit = lappend_int(limit, clause->nulls_first);
	}
	if (limit == NIL && parse->sortClause != NIL)
		return;
	query->limit = lcons_int(ties, limit);
	query->limit_exprs = list_make2(limit_expr(parse->limitCount), limit_expr(parse->limitOffset));
	query->limit_groups = limit_groups(query->limit_exprs);
}
