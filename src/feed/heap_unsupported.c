/*
 * heap_unsupported.c
 *
 * Decides which child plans can be read by their tables' pages.
 */
#include "postgres.h"

#include "access/tableam.h"
#include "access/xact.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "analysis/analysis.h"
#include "common/compat.h"
#include "feed/heap.h"

/*
 * Returns why a node's expressions cannot be evaluated by pages; NULL if they can. They are
 * evaluated a page at a time, once per use or not at all, and again by core for rows of the
 * scalar fallback. With volatile functions the difference would show. A subplan's functions are
 * unknown here, so no subplan is allowed if anything in the query is volatile.
 */
static const char *
expressions_unsupported_reason(PlanState *node, bool volatile_query)
{
	/* An array, not a List: a query may have many rescans. */
	Node *exprs[] = {(Node *) node->plan->targetlist, (Node *) node->plan->qual,
					 (Node *) heap_index_quals((ScanState *) node)};

	for (int i = 0; i < lengthof(exprs); i++)
	{
		if (contain_volatile_functions(exprs[i]))
			return "the input calls a volatile function";
		if (volatile_query && contain_subplans(exprs[i]))
			return "the input has a subplan, and the query calls a volatile function";
	}
	return NULL;
}

/* Returns whether an expression contains an OR. */
static bool
has_or(Node *node, void *context)
{
	if (node == NULL)
		return false;
	return is_orclause(node) || expression_tree_walker(node, has_or, context);
}

/*
 * Returns why a bitmap or index scan cannot be read by pages. The feed may test all rows against
 * the conditions of the index; core tests only those that need a recheck. A tuple that the index
 * selects satisfies the condition, so testing it cannot raise an error, unless the condition of
 * another index stands next to it under an OR.
 */
static const char *
indexed_unsupported_reason(PlanState *node)
{
	Node *quals = (Node *) heap_index_quals((ScanState *) node);

	if (IsolationIsSerializable())
		return "the input is a bitmap or index scan in a serializable transaction";
	if (IsA(node, IndexScanState) && ((IndexScan *) node->plan)->indexorderby != NIL)
		return "the input is an index scan that is ordered by distance";
	if (has_or(quals, NULL) && !expr_cannot_fail(quals, node->state->es_param_list_info))
		return "a condition over several indexes may raise an error";
	return NULL;
}

const char *
heap_subplan_unsupported_reason(PlanState *node, bool volatile_query)
{
	const char *why;

	if (heap_groups_scan(node))
		return heap_groups_unsupported_reason(node, volatile_query);
	if (!IsA(node, SeqScanState) && !IsA(node, BitmapHeapScanState) && !IsA(node, IndexScanState))
		return "the input is not a sequential, bitmap or index scan";
	if (((ScanState *) node)->ss_currentRelation->rd_tableam != GetHeapamTableAmRoutine())
		return "the table's access method is not heap";
	why = IsA(node, SeqScanState) ? NULL : indexed_unsupported_reason(node);
	return why ? why : expressions_unsupported_reason(node, volatile_query);
}

/*
 * Returns why the target list of a table below an Append cannot be merged with the projection
 * above. Each column of the projection becomes an expression over the table's columns, and repeats
 * what it uses of the table's target list.
 */
static const char *
projected_unsupported_reason(PlanState *node)
{
	Node *targets = (Node *) node->plan->targetlist;

	return contain_subplans(targets) || expr_calls_users_function(targets) ?
		"a projection above the tables would repeat calls or subplans of their target lists" :
		NULL;
}

AppendState *
heap_find_append(PlanState *child)
{
	if (IsA(child, ResultState) && ((ResultState *) child)->resconstantqual == NULL &&
		child->qual == NULL && outerPlanState(child) != NULL)
		child = outerPlanState(child);
	return IsA(child, AppendState) ? (AppendState *) child : NULL;
}

/* Returns whether some expression of a list may raise an error. Members may be TargetEntries. */
static bool
any_can_fail(List *exprs, ParamListInfo params)
{
	ListCell *lc;

	foreach (lc, exprs)
	{
		Node *expr = lfirst(lc);

		if (!expr_cannot_fail(IsA(expr, TargetEntry) ? (Node *) ((TargetEntry *) expr)->expr : expr,
							  params))
			return true;
	}
	return false;
}

/*
 * Returns why a LIMIT cannot be read by pages. Rows come in the order of the scan, so the first
 * ones are core's. But expressions are also evaluated for some rows after the last one that the
 * LIMIT lets pass, and must not fail there.
 */
static const char *
limit_unsupported_reason(LimitState *node)
{
	Limit *limit = (Limit *) node->ps.plan;
	PlanState *scan = outerPlanState(node);
	Const *offset = (Const *) limit->limitOffset;

	if (limit->limitOption != LIMIT_OPTION_COUNT)
		return "the input has a LIMIT with ties";
	if (offset &&
		(!IsA(offset, Const) || (!offset->constisnull && DatumGetInt64(offset->constvalue) != 0)))
		return "the input has an OFFSET";
	if (limit->limitCount && !IsA(limit->limitCount, Const) && !IsA(limit->limitCount, Param))
		return "the LIMIT of the input is an expression";
	if (!IsA(scan, SeqScanState) || scan->plan->parallel_aware)
		return "the input is not a sequential scan";
	if (any_can_fail(scan->plan->qual, node->ps.state->es_param_list_info) ||
		any_can_fail(scan->plan->targetlist, node->ps.state->es_param_list_info))
		return "an expression below a LIMIT may raise an error";
	return NULL;
}

/*
 * Returns why a scan, which may be below joins, cannot be read by pages; NULL if it can.  A
 * participant of a parallel plan may find that a lookup is too large, while others do not.  Then
 * the executor runs its joins, but the executor and the feed cannot share one bitmap.
 */
static const char *
scan_unsupported_reason(PlanState *node, bool joined, bool volatile_query)
{
	const char *why = heap_subplan_unsupported_reason(node, volatile_query);

	if (why == NULL && joined && heap_groups_scan(node))
		return "groups of another scan are joined";
	if (why == NULL && joined && IsA(node, BitmapHeapScanState) && node->plan->parallel_aware)
		return "participants share the bitmap of the scan below a join";
	return why;
}

bool
feed_reads_groups(PlanState *child)
{
	return heap_groups_scan(child) != NULL;
}

const char *
feed_pages_unsupported_reason(PlanState *child, bool volatile_query)
{
	const char *why = NULL;
	EState *estate = child->state;
	PlanState *joins = IsA(child, HashJoinState) ? child : NULL;
	AppendState *append;
	int nheap = 0;

	child = heap_below_joins(child);
	append = heap_find_append(child);

	if (estate->es_epq_active)
		return "rows are rechecked after a concurrent update";
	if (estate->es_snapshot == NULL || !IsMVCCSnapshot(estate->es_snapshot))
		return "the snapshot is not an MVCC snapshot";
	if (IsA(child, LimitState) && joins)
		return "there is a LIMIT below a join";
	if (IsA(child, LimitState))
	{
		why = limit_unsupported_reason((LimitState *) child);
		return why ? why : heap_subplan_unsupported_reason(outerPlanState(child), volatile_query);
	}
	if (joins)
		why = heap_joins_unsupported_reason(joins, volatile_query);
	if (append == NULL)
		return why ? why : scan_unsupported_reason(child, joins != NULL, volatile_query);
	if (append->as_nasyncplans > 0)
		return "the input has foreign tables";
	if (child != &append->ps)
		why = joins ? "there is a projection below a join" :
					  expressions_unsupported_reason(child, volatile_query);
	for (int i = 0; i < append->as_nplans && (why == NULL || child == &append->ps); i++)
	{
		const char *subplan =
			scan_unsupported_reason(append->appendplans[i], joins != NULL, volatile_query);

		if (subplan == NULL && child != &append->ps)
			subplan = projected_unsupported_reason(append->appendplans[i]);
		nheap += subplan == NULL;
		why = why ? why : subplan;
	}
	/* Without a projection and joins, the executor can run the other subplans. */
	return child == &append->ps && joins == NULL && nheap > 0 ? NULL : why;
}
