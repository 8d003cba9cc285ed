/*
 * kept.c
 *	  Keeps the tuples of groups for rescans; see kept.h.
 *
 * PostgreSQL's hashed aggregation returns the groups of its hash table again if a rescan changes
 * nothing below it, for example if only HAVING or the target list has a column of an outer
 * query.  This scan does the same for every engine.  When tuples are returned for the first time,
 * they go to a tuplestore, which uses work_mem, and files beyond that.  A rescan reads them
 * there.  If the earlier scan stopped early, the rescan continues it after the kept tuples, as
 * nodeMaterial does.
 *
 * Quals whose result may differ in the next scan are evaluated for kept tuples.  Others are
 * evaluated once, before tuples are kept.
 *
 * Keeping costs a copy of each tuple.  So the first scan keeps them only if the planner found outer
 * queries, and the groups do not depend on their columns.  Otherwise keeping begins with the first
 * rescan that changes nothing.
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
	bool unfiltered;        /* tuples are kept before the quals are evaluated */
	bool keeping;           /* this scan keeps its tuples */
	bool complete;          /* all tuples of the scan are kept */
	Tuplestorestate *store; /* NULL: no tuple yet */
	TupleTableSlot *slot;
};

/*
 * True if the result of quals may differ in the next scan: they have parameters of the executor,
 * or a subplan, which may have any.
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
	 * Each run of a parallel plan has new processes.  With volatile functions, keep groups only
	 * where PostgreSQL would keep a hash table, instead of calling the functions again.
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
kept_is_active(const Kept *kept)
{
	return kept->keeping || kept->store != NULL;
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
		/* move the read pointer to the end, where it stays while tuples are added */
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
