/*
 * set_operations.c
 *	  Makes a query that groups a subquery; see set_operations.h.
 */
#include "postgres.h"

#include "nodes/makefuncs.h"
#include "rewrite/rewriteManip.h"

#include "common/compat.h"
#include "plan/set_operations.h"

List *
set_operation_targets(const Query *inner)
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

List *
set_operation_clauses(const List *clauses, const List *targets)
{
	List *result = NIL;
	ListCell *lc, *lc2;

	forboth(lc, clauses, lc2, targets)
	{
		SortGroupClause *clause = copyObject(lfirst_node(SortGroupClause, lc));

		clause->tleSortGroupRef = lfirst_node(TargetEntry, lc2)->ressortgroupref;
		result = lappend(result, clause);
	}
	return result;
}

RangeTblEntry *
set_operation_entry(Query *subquery)
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

Query *
set_operation_outer(Query *inner)
{
	Query *outer = makeNode(Query);

	outer->commandType = CMD_SELECT;
	outer->querySource = inner->querySource;
	outer->queryId = inner->queryId;
	outer->canSetTag = inner->canSetTag;
	outer->hasSubLinks = inner->hasSubLinks;
	outer->hasRowSecurity = inner->hasRowSecurity;
	outer->stmt_location = inner->stmt_location;
	outer->stmt_len = inner->stmt_len;
	outer->sortClause = inner->sortClause;
	outer->limitOffset = inner->limitOffset;
	outer->limitCount = inner->limitCount;
	outer->limitOption = inner->limitOption;
	outer->targetList = set_operation_targets(inner);

	inner->sortClause = NIL;
	inner->limitOffset = inner->limitCount = NULL;
	inner->limitOption = LIMIT_OPTION_COUNT;
	inner->canSetTag = false;
	return outer;
}

void
set_operation_nest(Query *outer, Query *inner)
{
	RangeTblRef *ref = makeNode(RangeTblRef);

	IncrementVarSublevelsUp((Node *) inner, 1, 1);
	ref->rtindex = 1;
	outer->rtable = list_make1(set_operation_entry(inner));
	outer->jointree = makeFromExpr(list_make1(ref), NULL);
}
