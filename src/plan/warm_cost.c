/*
 * warm_cost.c
 *	  Computes what joins cost less if all pages that they read are in memory, and what core's
 *	  estimates of nested loops omit.
 *
 * Core prices pages as if they were on disk: a page that an index leads to costs four times as much
 * as one that is read in order.  In memory it costs about twice as much, and both cost less.
 * Core's joins of few rows by indexes and lookups that read all of a table are compared at these
 * prices, because the difference decides between them.
 *
 * Measured with 1.8 million rows of TPC-H's lineitem, joined with n parts and with orders: core's
 * nested loops take 0.5 ms a part, the lookups 80 ms from cached columns and 330 ms from pages.  So
 * lookups are faster from 160 and 600 parts on.  At core's prices, they cost less from 48 and 370
 * parts on.
 *
 * A scan by an index that is the inner side of a nested loop costs less the more often it runs,
 * because it finds pages in memory that earlier scans have read.  Core assumes that it runs once
 * for each row of the table that its parameters come from, before that table is joined with others
 * and its rows become fewer.  With few runs, each costs more.
 *
 * A subquery that uses columns of an outer query may be repeated often.
 */
#include "postgres.h"

#include <math.h>

#include "miscadmin.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "utils/spccache.h"

#include "plan/group_query.h"
#include "settings.h"

/* The part of a page's cost in a sequential scan that remains if the page is in memory. */
#define WARM_SEQUENTIAL 0.2

/*
 * Start-up cost of a rescan, relative to the first scan.  A rescan takes 3 to 10 microseconds; core
 * takes that long for 100 rows.
 */
#define RESCAN_STARTUP_COST 0.1

/* ---- subqueries that are repeated ---------------------------------------------------- */

List *
plan_outer_params(const PlannerInfo *root)
{
	List *result = NIL;
	ListCell *lc;

	while ((root = root->parent_root) != NULL)
		foreach (lc, root->plan_params)
			result = lappend_int(result, lfirst_node(PlannerParamItem, lc)->paramId);
	return result;
}

Cost
plan_rescan_cost(const PlannerInfo *root)
{
	return plan_outer_params(root) != NIL ? gpuagg_startup_cost * RESCAN_STARTUP_COST : 0;
}

/* ---- pages in memory ----------------------------------------------------------------- */

/*
 * Returns what an index scan for given tuples costs less because the index's pages are in memory,
 * of which core takes each for a random one.  Only counted in a subquery that is repeated: its
 * first scans read them.
 */
static Cost
index_saving(PlannerInfo *root, const IndexPath *scan, double tuples, Cost page_cost)
{
	const IndexOptInfo *index = scan->indexinfo;
	double random_cost;
	double pages;

	if (plan_outer_params(root) == NIL || index->tuples <= 0)
		return 0;
	get_tablespace_page_costs(index->reltablespace, &random_cost, NULL);
	pages = ceil(tuples * index->pages / index->tuples);
	return Min(pages * Max(random_cost - page_cost, 0), scan->indextotalcost);
}

Cost
plan_warm_cost(PlannerInfo *root, Path *path, Cost page_cost)
{
	RelOptInfo *rel = path->parent;
	double tuples, pages;
	Cost index, run;
	QualCost quals;

	cost_qual_eval(&quals, rel->baserestrictinfo, root);
	if (IsA(path, BitmapHeapPath))
		pages = compute_bitmap_pages(root, rel, ((BitmapHeapPath *) path)->bitmapqual, 1, &index,
									 &tuples);
	else
	{
		IndexPath *scan = castNode(IndexPath, path);

		tuples = clamp_row_est(scan->indexselectivity * rel->tuples);
		pages = path->pathtype == T_IndexOnlyScan ? 0 : Min(tuples, rel->pages);
		index = scan->indextotalcost - index_saving(root, scan, tuples, page_cost);
	}
	run = pages * page_cost + tuples * (cpu_tuple_cost + quals.per_tuple);
	/* scale to a participant's part of the rows; the inner side of a nested loop has few anyway */
	run *= path->param_info == NULL && rel->rows > path->rows ? path->rows / rel->rows : 1;
	return Min(path->total_cost, index + quals.startup + run);
}

/* Returns what a scan of a table costs less. */
static Cost
scan_saving(PlannerInfo *root, Path *scan, bool fed, Cost page_cost)
{
	RelOptInfo *rel = scan->parent;
	double seq_cost;
	double pages = rel->pages;

	if (rel->rtekind != RTE_RELATION || pages > effective_cache_size)
		return 0;
	if (scan->pathtype == T_SeqScan)
	{
		get_tablespace_page_costs(rel->reltablespace, NULL, &seq_cost);
		if (fed)
			pages *= 1 - plan_cached_share(root, rel);
		return pages * seq_cost * (1 - WARM_SEQUENTIAL);
	}
	return scan->total_cost - plan_warm_cost(root, scan, page_cost);
}

/*
 * Returns the inner side of a join; a scan by an index in a nested loop with the cost that it has
 * if it runs for each outer row.
 */
static Path *
reprice_inner(PlannerInfo *root, const JoinPath *join)
{
	double runs = join->outerjoinpath->rows;
	Path *scan = join->innerjoinpath;
	Path *copy;

	if (!IsA(join, NestPath) || scan->param_info == NULL || runs <= 0)
		return scan;
	if (IsA(scan, IndexPath))
	{
		copy = palloc(sizeof(IndexPath));
		memcpy(copy, scan, sizeof(IndexPath));
		cost_index((IndexPath *) copy, root, runs, false);
	}
	else if (IsA(scan, BitmapHeapPath))
	{
		copy = palloc(sizeof(BitmapHeapPath));
		memcpy(copy, scan, sizeof(BitmapHeapPath));
		cost_bitmap_heap_scan(copy, root, scan->parent, scan->param_info,
							  ((BitmapHeapPath *) scan)->bitmapqual, runs);
	}
	else
		return scan;
	return copy->total_cost > scan->total_cost ? copy : scan;
}

/* Returns the part of the inner side's cost that core adds to a join for each outer row. */
static double
inner_share(const JoinPath *join)
{
	Cost all = join->outerjoinpath->rows * join->innerjoinpath->total_cost;

	/* a join that needs one inner row stops each scan early */
	return all > 0 ? Min(Max(join->path.total_cost - join->outerjoinpath->total_cost, 0) / all, 1) :
					 0;
}

/* Returns what the sides of a join cost less. */
static Cost
join_saving(PlannerInfo *root, const JoinPath *join, bool fed, Cost page_cost)
{
	Path *outer = join->outerjoinpath;
	Path *inner = reprice_inner(root, join);
	Cost saving = plan_warm_saving(root, inner, fed, page_cost);

	if (inner->param_info != NULL)
		saving *= outer->rows * inner_share(join);
	saving += plan_warm_saving(root, outer, fed, page_cost);
	/* a merge join may end before the ends of its sides; without a saving, all costs may be 0 */
	if (IsA(join, MergePath) && saving > 0)
		saving *= Min(join->path.total_cost / (outer->total_cost + inner->total_cost), 1);
	return saving;
}

Cost
plan_warm_saving(PlannerInfo *root, Path *path, bool fed, Cost page_cost)
{
	Cost saving = 0;
	ListCell *lc;

	check_stack_depth();
	switch (nodeTag(path))
	{
		case T_Path:
			return path->pathtype == T_SeqScan ? scan_saving(root, path, fed, page_cost) : 0;
		case T_IndexPath:
		case T_BitmapHeapPath:
			return scan_saving(root, path, fed, page_cost);
		case T_NestPath:
		case T_MergePath:
		case T_HashPath:
			return join_saving(root, (const JoinPath *) path, fed, page_cost);
		case T_AppendPath:
			foreach (lc, ((const AppendPath *) path)->subpaths)
				saving += plan_warm_saving(root, lfirst(lc), fed, page_cost);
			return saving;
		case T_ProjectionPath:
			return plan_warm_saving(root, ((const ProjectionPath *) path)->subpath, fed, page_cost);
		case T_MaterialPath:
			return plan_warm_saving(root, ((const MaterialPath *) path)->subpath, fed, page_cost);
		case T_SortPath:
		case T_IncrementalSortPath:
			return plan_warm_saving(root, ((const SortPath *) path)->subpath, fed, page_cost);
		case T_GatherPath:
			return plan_warm_saving(root, ((const GatherPath *) path)->subpath, fed, page_cost);
		case T_GatherMergePath:
			return plan_warm_saving(root, ((const GatherMergePath *) path)->subpath, fed,
									page_cost);
		default:
			/* how often a scan below a Memoize runs is not known here */
			return 0;
	}
}

Cost
plan_omitted_cost(PlannerInfo *root, Path *path)
{
	Cost omitted = 0;
	const JoinPath *join;
	Path *inner;

	check_stack_depth();
	switch (nodeTag(path))
	{
		case T_NestPath:
		case T_MergePath:
		case T_HashPath:
			join = (const JoinPath *) path;
			inner = reprice_inner(root, join);
			omitted = (inner->total_cost - join->innerjoinpath->total_cost) *
				join->outerjoinpath->rows * inner_share(join);
			return omitted + plan_omitted_cost(root, join->outerjoinpath) +
				plan_omitted_cost(root, join->innerjoinpath);
		case T_ProjectionPath:
			return plan_omitted_cost(root, ((const ProjectionPath *) path)->subpath);
		case T_MaterialPath:
			return plan_omitted_cost(root, ((const MaterialPath *) path)->subpath);
		case T_SortPath:
		case T_IncrementalSortPath:
			return plan_omitted_cost(root, ((const SortPath *) path)->subpath);
		case T_GatherPath:
			return plan_omitted_cost(root, ((const GatherPath *) path)->subpath);
		case T_GatherMergePath:
			return plan_omitted_cost(root, ((const GatherMergePath *) path)->subpath);
		default:
			return 0;
	}
}
