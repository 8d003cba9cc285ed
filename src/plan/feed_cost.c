/*
 * feed_cost.c
 *	  Computes what a scan costs if the heap feed reads the tables in place of the executor.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "utils/spccache.h"
#include "utils/syscache.h"

#include "analysis/analysis.h"
#include "cache/store.h"
#include "common/compat.h"
#include "plan/group_query.h"
#include "settings.h"

/* Returns whether the table's access method is heap. */
static bool
is_heap_table(Oid relid)
{
	HeapTuple tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	bool result;

	if (!HeapTupleIsValid(tuple))
		return false;
	result = ((Form_pg_class) GETSTRUCT(tuple))->relam == HEAP_TABLE_AM_OID;
	ReleaseSysCache(tuple);
	return result;
}

double
plan_cached_share(PlannerInfo *root, RelOptInfo *rel)
{
	Oid relid = planner_rt_fetch(rel->relid, root)->relid;
	Bitmapset *attnos = NULL;
	Relation relation;
	double share;
	ListCell *lc;

	if (!cache_available() || gpuagg_feed == GPUAGG_FEED_TUPLES || !is_heap_table(relid))
		return 0;
	pull_varattnos((Node *) rel->reltarget->exprs, rel->relid, &attnos);
	foreach (lc, rel->baserestrictinfo)
		pull_varattnos((Node *) lfirst_node(RestrictInfo, lc)->clause, rel->relid, &attnos);
	/* the planner has locked the table */
	relation = table_open(relid, NoLock);
	share = cache_table_share(relation, rel->pages, attnos);
	table_close(relation, NoLock);
	bms_free(attnos);
	return share;
}

/*
 * What a condition of cached rows costs, as a part of what core's executor needs for it.
 *
 * Measured with 1.8 million rows of TPC-H's lineitem, conditions of four to eight operators over
 * integers, decimals and texts: vectors take 1.5 to 3 ns for an operator and a row, and core 24 ns.
 */
#define VECTOR_CONDITION 0.125

/* Returns the cost of reading a page of the table's tablespace sequentially. */
static Cost
page_cost(RelOptInfo *rel)
{
	double cost;

	get_tablespace_page_costs(rel->reltablespace, NULL, &cost);
	return cost;
}

/*
 * Returns what the heap feed saves of a child's cost when it reads the tables in place of the
 * executor.  It can do so for sequential, bitmap and index scans, also under an Append, by
 * themselves or projected.  Columns in the cache are neither read from pages nor row by row, and
 * ranges that bounds exclude are not read.  Sets *heap to false for any other child.
 */
static Cost
heap_feed_saving(PlannerInfo *root, Path *child, bool projected, bool *heap)
{
	RelOptInfo *rel = child->parent;
	Cost saving = 0;
	double rows = 0;
	double cached;
	QualCost quals;
	ListCell *lc;

	check_stack_depth();
	if (IsA(child, ProjectionPath))
		return heap_feed_saving(root, ((ProjectionPath *) child)->subpath, true, heap);
	if (IsA(child, AppendPath))
	{
		foreach (lc, ((AppendPath *) child)->subpaths)
		{
			bool subpath_heap = true;

			rows += ((Path *) lfirst(lc))->rows;
			saving += heap_feed_saving(root, lfirst(lc), projected, &subpath_heap);
			/* other scans under an Append can be executed, but not below a projection */
			if (!subpath_heap && projected)
				*heap = false;
		}
		/* participants may divide whole tables among them */
		return saving * (rows > child->rows ? child->rows / rows : 1);
	}
	if ((child->pathtype != T_SeqScan && child->pathtype != T_BitmapHeapScan &&
		 child->pathtype != T_IndexScan) ||
		!is_heap_table(planner_rt_fetch(rel->relid, root)->relid) ||
		contain_volatile_functions((Node *) child->pathtarget) ||
		contain_volatile_functions((Node *) rel->baserestrictinfo))
	{
		*heap = false;
		return 0;
	}
	if (child->pathtype != T_SeqScan)
		return child->rows * Max(cpu_tuple_cost - gpuagg_page_row_cost, 0);
	cached = plan_cached_share(root, rel);
	saving = rel->tuples *
		((1 - cached) * Max(cpu_tuple_cost - gpuagg_page_row_cost, 0) +
		 cached * Max(cpu_tuple_cost - gpuagg_cache_row_cost, 0));
	if (cached > 0 && rel->baserestrictinfo != NIL)
	{
		cost_qual_eval(&quals, rel->baserestrictinfo, root);
		saving += rel->tuples * cached * (1 - plan_read_share(root, rel)) *
			(gpuagg_cache_row_cost + quals.per_tuple);
	}
	/*
	 * a participant of a parallel scan reads its part of the rows, but core's cost has all of them
	 * wait for all pages
	 */
	saving *= rel->rows > child->rows ? child->rows / rel->rows : 1;
	return cached > 0 ? saving + cached * rel->pages * page_cost(rel) : saving;
}

/*
 * Returns what the conditions of cached rows cost less than in core's executor.
 *
 * This is for scans below lookups, which are compared with core's joins.  Scans that are compared
 * with core's scans by an index are priced as these are, too high (WARM_PAGE_COST).
 */
static Cost
conditions_saving(PlannerInfo *root, Path *scan)
{
	RelOptInfo *rel = scan->parent;
	Cost saving = 0;
	ListCell *lc;

	if (scan->pathtype != T_SeqScan)
		return 0;
	foreach (lc, rel->baserestrictinfo)
	{
		Node *clause = (Node *) lfirst_node(RestrictInfo, lc)->clause;
		QualCost one;

		cost_qual_eval_node(&one, lfirst(lc), root);
		/* vectors compute these not at all, or not faster */
		if (!contain_subplans(clause) && !expr_calls_users_function(clause))
			saving += one.per_tuple * (1 - VECTOR_CONDITION);
	}
	if (saving > 0)
		saving *= rel->tuples * plan_cached_share(root, rel) * plan_read_share(root, rel);
	/* a participant of a parallel scan reads its part of the rows */
	return rel->rows > scan->rows ? saving * scan->rows / rel->rows : saving;
}

bool
plan_feed_cost(PlannerInfo *root, Path *scan, bool joined, Cost *cost)
{
	bool heap = true;
	Cost saving = heap_feed_saving(root, scan, joined, &heap);

	if (joined && heap)
		saving += conditions_saving(root, scan);
	*cost = Max(scan->total_cost - saving, scan->startup_cost);
	return heap;
}
