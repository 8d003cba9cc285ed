/*
 * heap_refusal.c
 *	  Which child plans the heap feed can stand in for.
 */
#include "postgres.h"

#include "access/tableam.h"
#include "access/transam.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "feed/heap.h"

/*
 * Expressions are evaluated a page at a time, once for each use or not at all,
 * and again by core for rows of scalar fallback: volatile functions would show
 * that.  What a subplan calls is unknown here, so a subplan is refused if anything
 * in the query is volatile.
 */
static const char *
refuse_expressions(PlanState *node, bool volatile_query)
{
	Node	   *exprs[] = {(Node *) node->plan->targetlist, (Node *) node->plan->qual};

	for (int i = 0; i < lengthof(exprs); i++)
	{
		if (contain_volatile_functions(exprs[i]))
			return "the input calls a volatile function";
		if (volatile_query && contain_subplans(exprs[i]))
			return "the input has a subplan, and the query calls a volatile function";
	}
	return NULL;
}

/* Why a plan node cannot be read from pages; NULL if it can. */
static const char *
refuse_leaf(PlanState *node, bool volatile_query)
{
	Relation	rel;

	if (!IsA(node, SeqScanState))
		return "the input is not a sequential scan";
	rel = ((SeqScanState *) node)->ss.ss_currentRelation;
	if (rel->rd_tableam != GetHeapamTableAmRoutine())
		return "the table's access method is not heap";
	return refuse_expressions(node, volatile_query);
}

static bool
is_users_function(Oid funcid, void *context)
{
	return funcid >= FirstNormalObjectId;
}

/* Does it call users' functions or subplans, whose repetition would be seen or take long? */
static bool
repeats_walker(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, SubPlan) || IsA(node, AlternativeSubPlan) ||
		check_functions_in_node(node, is_users_function, context))
		return true;
	return expression_tree_walker(node, repeats_walker, context);
}

/*
 * Above an Append each column of the projection is an expression of its own over
 * the table's columns, each of which repeats what it uses of the table's target list.
 */
static const char *
refuse_projected(PlanState *node)
{
	return repeats_walker((Node *) node->plan->targetlist, NULL) ?
		"a projection above the tables would repeat calls or subplans of their target lists" : NULL;
}

/* The Append, under the projection if there is one; or NULL. */
AppendState *
heap_find_append(PlanState *child)
{
	if (IsA(child, ResultState) && ((ResultState *) child)->resconstantqual == NULL &&
		child->qual == NULL && outerPlanState(child) != NULL)
		child = outerPlanState(child);
	return IsA(child, AppendState) ? (AppendState *) child : NULL;
}

const char *
feed_heap_refusal(PlanState *child, bool volatile_query)
{
	const char *why = NULL;
	EState	   *estate = child->state;
	AppendState *append = heap_find_append(child);

	if (estate->es_epq_active)
		return "rows are being rechecked";
	if (estate->es_snapshot == NULL || !IsMVCCSnapshot(estate->es_snapshot))
		return "the snapshot is not an MVCC snapshot";
	if (append == NULL)
		return refuse_leaf(child, volatile_query);
	if (append->as_nasyncplans > 0)
		return "the input has foreign tables";
	if (child != &append->ps)
		why = refuse_expressions(child, volatile_query);
	for (int i = 0; i < append->as_nplans && why == NULL; i++)
	{
		why = refuse_leaf(append->appendplans[i], volatile_query);
		if (why == NULL && child != &append->ps)
			why = refuse_projected(append->appendplans[i]);
	}
	return why;
}
