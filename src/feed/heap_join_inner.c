/*
 * heap_join_inner.c
 *	  What can be noticed of the plan of a join's inner side, and when it may run.
 *
 * All lookups are built before the scan is read.  Core runs an inner plan once.  If its hash join
 * fetches a first outer row before that, which depends on costs (Feed.core_joins), or if it joins
 * by another method, then the plan runs only if there is an outer row.  The difference shows if the
 * plan may raise an error.  Then a first outer row is fetched from the executor before the lookup
 * is built.
 *
 * If an inner side has no rows, core does not read the outer side beyond that first row.  The
 * difference shows if the outer side may raise an error.
 *
 * If a rescan changes an inner plan, core runs it first if the outer side had rows before, whatever
 * the costs.  If a rescan finds an inner side without rows that has not changed, core reads the
 * outer side.
 *
 * If a lookup turns out to be impossible, its inner plan runs again, in core's join.  That shows if
 * the plan calls volatile functions.  Such a plan does not become a lookup.
 */
#include "postgres.h"

#include "access/tableam.h"
#include "executor/executor.h"
#include "executor/hashjoin.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"

#include "analysis/analysis.h"
#include "common/compat.h"
#include "feed/heap_joins_internal.h"

/* ---- what can be noticed ------------------------------------------------------------- */

/* Returns what can be noticed of the evaluation of a function scan's functions. */
static Notice
functions_notice(const FunctionScan *scan, ParamListInfo params)
{
	Notice most = NOTICE_NONE;
	ListCell *lc;

	foreach (lc, scan->functions)
		most = Max(most, expr_notice(lfirst_node(RangeTblFunction, lc)->funcexpr, params));
	return most;
}

/*
 * Returns what can be noticed of what a plan node does beyond its target list, its qual and its
 * children.  Sorting and grouping call functions that are no expressions, and may raise errors.
 */
static Notice
kind_notice(Plan *plan, ParamListInfo params)
{
	switch (nodeTag(plan))
	{
		case T_Append:
		case T_BitmapAnd:
		case T_BitmapOr:
		case T_Material:
		case T_SeqScan:
		case T_SubqueryScan:
			return NOTICE_NONE;
		case T_Result:
			return expr_notice(((Result *) plan)->resconstantqual, params);
		case T_BitmapHeapScan:
			return expr_notice((Node *) ((BitmapHeapScan *) plan)->bitmapqualorig, params);
		case T_BitmapIndexScan:
			return expr_notice((Node *) ((BitmapIndexScan *) plan)->indexqualorig, params);
		case T_IndexScan:
			return Max(expr_notice((Node *) ((IndexScan *) plan)->indexqualorig, params),
					   expr_notice((Node *) ((IndexScan *) plan)->indexorderbyorig, params));
		case T_IndexOnlyScan:
			return Max(expr_notice((Node *) ((IndexOnlyScan *) plan)->indexqual, params),
					   expr_notice((Node *) ((IndexOnlyScan *) plan)->indexorderby, params));
		case T_ValuesScan:
			return expr_notice((Node *) ((ValuesScan *) plan)->values_lists, params);
		case T_FunctionScan:
			return functions_notice((FunctionScan *) plan, params);
		case T_Hash:
			return expr_notice((Node *) ((Hash *) plan)->hashkeys, params);
		case T_NestLoop:
			return expr_notice((Node *) ((NestLoop *) plan)->join.joinqual, params);
		case T_HashJoin:
			return Max(expr_notice((Node *) ((HashJoin *) plan)->join.joinqual, params),
					   expr_notice((Node *) ((HashJoin *) plan)->hashclauses, params));
		case T_MergeJoin:
			return Max(NOTICE_WHETHER,
					   Max(expr_notice((Node *) ((MergeJoin *) plan)->join.joinqual, params),
						   expr_notice((Node *) ((MergeJoin *) plan)->mergeclauses, params)));
		case T_Limit:
			return Max(NOTICE_WHETHER,
					   Max(expr_notice(((Limit *) plan)->limitOffset, params),
						   expr_notice(((Limit *) plan)->limitCount, params)));
		case T_SampleScan:
			return Max(NOTICE_WHETHER,
					   expr_notice((Node *) ((SampleScan *) plan)->tablesample, params));
		case T_TableFuncScan:
			return Max(NOTICE_WHETHER,
					   expr_notice((Node *) ((TableFuncScan *) plan)->tablefunc, params));
		case T_TidScan:
			return Max(NOTICE_WHETHER, expr_notice((Node *) ((TidScan *) plan)->tidquals, params));
		case T_TidRangeScan:
			return Max(NOTICE_WHETHER,
					   expr_notice((Node *) ((TidRangeScan *) plan)->tidrangequals, params));
		case T_Memoize:
			return Max(NOTICE_WHETHER,
					   expr_notice((Node *) ((Memoize *) plan)->param_exprs, params));
		case T_ForeignScan:
			return Max(
				NOTICE_WHETHER,
				Max(expr_notice((Node *) ((ForeignScan *) plan)->fdw_exprs, params),
					expr_notice((Node *) ((ForeignScan *) plan)->fdw_recheck_quals, params)));
		case T_CustomScan:
			return Max(NOTICE_WHETHER,
					   Max(expr_notice((Node *) ((CustomScan *) plan)->custom_exprs, params),
						   expr_notice((Node *) ((CustomScan *) plan)->custom_scan_tlist, params)));
		/* a CTE runs once, however often it is scanned */
		case T_CteScan:
		case T_WorkTableScan:
		case T_NamedTuplestoreScan:
		case T_Agg:
		case T_Gather:
		case T_GatherMerge:
		case T_Group:
		case T_IncrementalSort:
		case T_MergeAppend:
		case T_ProjectSet:
		case T_RecursiveUnion:
		case T_SetOp:
		case T_Sort:
		case T_Unique:
		case T_WindowAgg:
			return NOTICE_WHETHER;
		/* such as LockRows */
		default:
			return NOTICE_HOW_OFTEN;
	}
}

/* Walker: sets *most to what can be noticed of a plan; returns true if it is all there is. */
static bool
notice_walker(PlanState *node, void *context)
{
	Notice *most = context;
	ParamListInfo params = node->state->es_param_list_info;

	check_stack_depth();
	*most = Max(*most, kind_notice(node->plan, params));
	*most = Max(*most, expr_notice((Node *) node->plan->targetlist, params));
	*most = Max(*most, expr_notice((Node *) node->plan->qual, params));
	return *most == NOTICE_HOW_OFTEN || planstate_tree_walker(node, notice_walker, context);
}

/* Returns what can be noticed of a plan. */
static Notice
plan_notice(PlanState *node)
{
	Notice most = NOTICE_NONE;

	notice_walker(node, &most);
	return most;
}

Notice
heap_join_inner_notice(const HashJoinState *node)
{
	return plan_notice(innerPlanState(node));
}

void
heap_joins_init_notices(HeapJoins *joins)
{
	bool outer_noticed = plan_notice(joins->scan) != NOTICE_NONE;

	for (int j = 0; j < joins->n; j++)
	{
		HeapJoin *join = &joins->joins[j];

		join->noticed = heap_join_inner_notice(join->node) != NOTICE_NONE;
		join->outer_noticed = outer_noticed;
		join->watched = (join->noticed || outer_noticed) && heap_join_needs_match(join) &&
			!bms_is_empty(join->hash->ps.plan->extParam);
		joins->watched |= join->watched;
		outer_noticed |= join->noticed || !join->quiet;
	}
}

/* ---- running inner plans ----------------------------------------------------------------- */

void
heap_join_rescan_inner(HeapJoin *join)
{
	Feed *feed = join->lookup.feed;

	if (join->executed || join->hash->ps.chgParam != NULL)
	{
		ExecReScan(&join->hash->ps);
		if (feed)
			feed->ops->rescan(feed);
	}
	join->executed = false;
}

void
heap_joins_leave(PlanState *child)
{
	/* nodes keep what they allocate, such as sets of changed parameters */
	MemoryContext old = MemoryContextSwitchTo(child->state->es_query_cxt);

	check_stack_depth();
	for (PlanState *node = child; node && IsA(node, HashJoinState); node = outerPlanState(node))
		if (((HashJoinState *) node)->hj_HashTable == NULL && !node->plan->parallel_aware)
		{
			heap_joins_leave(outerPlanState(innerPlanState(node)));
			ExecReScan(innerPlanState(node));
		}
	MemoryContextSwitchTo(old);
}

/*
 * Walker: makes a rescan build hash tables without rows again.  Core would keep them and read the
 * outer sides, which it does not in the first scan.
 */
static bool
forget_empty_tables(PlanState *node, void *context)
{
	HashJoinTable table = IsA(node, HashJoinState) ? ((HashJoinState *) node)->hj_HashTable : NULL;

	check_stack_depth();
	if (table && table->totalTuples == 0 && !node->plan->parallel_aware)
		innerPlanState(node)->chgParam = bms_add_member(innerPlanState(node)->chgParam, 0);
	return planstate_tree_walker(node, forget_empty_tables, context);
}

void
heap_join_repeat_inner(HeapJoin *join)
{
	PlanState *inner = join->lookup.inner;

	/* a feed of the inner side may have run the inner sides of joins below */
	heap_joins_leave(inner);
	if (join->executed)
	{
		/* sets of changed parameters live as long as the nodes */
		MemoryContext old = MemoryContextSwitchTo(inner->state->es_query_cxt);

		forget_empty_tables(inner, NULL);
		MemoryContextSwitchTo(old);
	}
	heap_join_rescan_inner(join);
}

/* ---- the first outer row --------------------------------------------------------------- */

/* Walker: returns true if participants share the rows of a scan, or of a part of it. */
static bool
shares_rows(PlanState *scan, void *context)
{
	check_stack_depth();
	return scan->plan->parallel_aware || planstate_tree_walker(scan, shares_rows, context);
}

bool
heap_join_can_look_ahead(PlanState *scan)
{
	return IsA(scan, SeqScanState) || !shares_rows(scan, NULL);
}

bool
heap_join_runs_inner_first(const HeapJoins *joins, int j, const List *core_joins)
{
	return list_member_int(list_nth(core_joins, CORE_INNER_FIRST), j) ||
		(joins->joins[j].watched && joins->joins[j].outer_not_empty);
}

bool
heap_joins_await_outer_rows(const HeapJoins *joins)
{
	for (int j = 0; j < joins->n && joins->watched; j++)
		if (joins->joins[j].watched && !joins->joins[j].outer_not_empty)
			return true;
	return false;
}

/*
 * Fetches a row of the outer side of join j, and rescans it; returns whether there is one.  Sets
 * outer_not_empty of the joins up to j.
 */
static bool
has_row(HeapJoins *joins, int j)
{
	PlanState *node = outerPlanState(joins->joins[j].node);
	TupleTableSlot *slot;
	bool found;

	if (node->chgParam != NULL)
		ExecReScan(node);
	/* not ExecProcNode(): EXPLAIN ANALYZE would count the row twice */
	slot = node->ExecProcNodeReal(node);
	found = !TupIsNull(slot);
	joins->joins[j].outer_not_empty = found;
	for (int i = 0; i < j; i++)
		joins->joins[i].outer_not_empty = joins->joins[i].node->hj_OuterNotEmpty;
	ExecReScan(node);
	return found;
}

/*
 * Does the same above a scan that participants share.  A scan of its own finds the row, as no
 * participant may take rows from the others.
 */
static bool
has_row_of_shared_scan(HeapJoins *joins, int j)
{
	SeqScanState *scan = castNode(SeqScanState, joins->scan);
	TableScanDesc shared = scan->ss.ss_currentScanDesc;
	bool found;

	scan->ss.ss_currentScanDesc =
		compat_begin_scan(&scan->ss, scan->ss.ss_currentRelation, joins->scan->state->es_snapshot);
	found = has_row(joins, j);
	ExecClearTuple(scan->ss.ss_ScanTupleSlot);
	table_endscan(scan->ss.ss_currentScanDesc);
	scan->ss.ss_currentScanDesc = shared;
	return found;
}

/* Looks for a row of the outer side of join j, as heap_join_has_outer_row(). */
static bool
look_ahead(HeapJoins *joins, int j)
{
	return joins->scan->plan->parallel_aware ? has_row_of_shared_scan(joins, j) : has_row(joins, j);
}

bool
heap_join_has_outer_row(HeapJoins *joins, int j)
{
	/* nodes keep what they allocate */
	MemoryContext old = MemoryContextSwitchTo(joins->scan->state->es_query_cxt);
	bool again = false;
	bool found;

	/* the joins below are core's here; their hash tables remain for the next look */
	for (int i = 0; i < j; i++)
		if (joins->joins[i].node->hj_HashTable == NULL)
		{
			heap_join_repeat_inner(&joins->joins[i]);
			joins->joins[i].executed = true;
			again |= joins->joins[i].lookup.form == LOOKUP_EMPTY &&
				heap_join_needs_match(&joins->joins[i]);
		}
	found = look_ahead(joins, j);
	/* a rescan of an unchanged inner side without rows reads the outer side, the first scan not */
	if (!found && again)
		found = look_ahead(joins, j);
	MemoryContextSwitchTo(old);
	return found;
}
