/*
 * kept.c
 *	  Groups that are kept for rescans.
 *
 * Core's hashed aggregation returns the groups of its hash table again if a rescan has changed
 * nothing below, as where HAVING or the targets have a column of an outer query.  This scan does
 * the same for every engine: the tuples of its groups go to a tuplestore (work_mem, and files
 * beyond) as they are returned first, and a rescan reads them there.  A scan that was left early is
 * read on behind what is kept, as nodeMaterial does.
 *
 * Quals that may give other answers in the next scan are evaluated for kept groups; others only
 * once.
 *
 * Keeping costs a copy of each group.  So the first scan keeps its groups only if the planner knows
 * of outer queries, on whose columns nothing depends that makes the groups.  Elsewhere the first
 * rescan without a change begins to keep.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "utils/tuplestore.h"

#include "exec/exec.h"
#include "exec/kept.h"

struct Kept
{
	MemoryContext cxt;
	bool unfiltered; /* groups are kept before the quals */
	bool keeping;    /* in this run */
	bool complete;
	Tuplestorestate *store; /* NULL: no group yet */
	TupleTableSlot *slot;
};

/*
 * Do quals depend on what may be different in the next scan?  Of an expression with a subplan only
 * this is known.
 */
static bool
may_differ(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, SubPlan) || IsA(node, AlternativeSubPlan) ||
		(IsA(node, Param) && ((Param *) node)->paramkind == PARAM_EXEC))
		return true;
	return expression_tree_walker(node, may_differ, context);
}

Kept *
kept_create(GpuAggState *state)
{
	GpuAggPlan *plan = state->plan;
	Plan *scan = state->css.ss.ps.plan;
	Kept *kept;

	/*
	 * each run of a parallel plan has processes of its own; and core may call volatile functions
	 * again, but for a hash table
	 */
	if (scan->parallel_aware ||
		(plan->read_once && (plan->nkeys == 0 || plan->grouped || plan->nsets > 0)))
		return NULL;
	kept = palloc0(sizeof(Kept));
	kept->cxt = CurrentMemoryContext;
	kept->unfiltered =
		may_differ((Node *) scan->qual, NULL) || contain_volatile_functions((Node *) scan->qual);
	kept->keeping = plan->outer_params != NULL &&
		!bms_overlap(plan->outer_params, state->child->plan->allParam) &&
		!bms_overlap(plan->outer_params, state->expr_params);
	kept->slot = ExecInitExtraTupleSlot(state->css.ss.ps.state,
										state->css.ss.ss_ScanTupleSlot->tts_tupleDescriptor,
										&TTSOpsMinimalTuple);
	return kept;
}

bool
kept_before_quals(const Kept *kept)
{
	return kept != NULL && kept->keeping && kept->unfiltered;
}

bool
kept_behind_quals(const Kept *kept)
{
	return kept != NULL && kept->keeping && !kept->unfiltered;
}

bool
kept_next(Kept *kept, TupleTableSlot *slot)
{
	int n = slot->tts_tupleDescriptor->natts;

	if (kept->store == NULL || !tuplestore_gettupleslot(kept->store, true, false, kept->slot))
		return false;
	slot_getallattrs(kept->slot);
	ExecClearTuple(slot);
	memcpy(slot->tts_values, kept->slot->tts_values, sizeof(Datum) * n);
	memcpy(slot->tts_isnull, kept->slot->tts_isnull, sizeof(bool) * n);
	ExecStoreVirtualTuple(slot);
	return true;
}

void
kept_put(Kept *kept, TupleTableSlot *slot)
{
	if (kept->store == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(kept->cxt);

		kept->store = tuplestore_begin_heap(false, false, work_mem);
		tuplestore_set_eflags(kept->store, EXEC_FLAG_REWIND);
		/* the reader is told that it is at the end, and stays there while groups are added */
		tuplestore_gettupleslot(kept->store, true, false, kept->slot);
		MemoryContextSwitchTo(old);
	}
	tuplestore_puttupleslot(kept->store, slot);
}

void
kept_complete(Kept *kept)
{
	kept->complete = kept->keeping;
}

bool
kept_is_complete(const Kept *kept)
{
	return kept->complete;
}

bool
kept_rescan(Kept *kept, bool same)
{
	if (same && kept->keeping)
	{
		if (kept->store)
			tuplestore_rescan(kept->store);
		return true;
	}
	kept_end(kept);
	kept->keeping = same;
	return false;
}

void
kept_end(Kept *kept)
{
	ExecClearTuple(kept->slot);
	if (kept->store)
		tuplestore_end(kept->store);
	kept->store = NULL;
	kept->complete = false;
}
