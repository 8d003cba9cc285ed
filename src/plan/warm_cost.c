/*
 * warm_cost.c
 *	  Computes what joins cost less if all pages that they read are in memory.
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
 */
#include "postgres.h"

#include "miscadmin.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "utils/spccache.h"

#include "plan/group_query.h"

/* The part of a page's cost in a sequential scan that remains if the page is in memory. */
#define WARM_SEQUENTIAL 0.2

/* Returns what a scan of a table costs less. */
static Cost
scan_saving(PlannerInfo *root, Path *scan, bool fed)
{
	RelOptInfo *rel = scan->parent;
	double page_cost;
	double pages = rel->pages;

	if (rel->rtekind != RTE_RELATION || pages > effective_cache_size)
		return 0;
	if (scan->pathtype == T_SeqScan)
	{
		get_tablespace_page_costs(rel->reltablespace, NULL, &page_cost);
		if (fed)
			pages *= 1 - plan_cached_share(root, rel);
		return pages * page_cost * (1 - WARM_SEQUENTIAL);
	}
	return scan->total_cost - plan_warm_cost(root, scan);
}

/* Returns what the sides of a join cost less. */
static Cost
join_saving(PlannerInfo *root, const JoinPath *join, bool fed)
{
	Path *outer = join->outerjoinpath;
	Path *inner = join->innerjoinpath;
	Cost saving = plan_warm_saving(root, inner, fed);

	/* a join that needs one inner row stops each scan early */
	if (inner->param_info != NULL)
		saving = Min(saving * outer->rows, Max(join->path.total_cost - outer->total_cost, 0));
	saving += plan_warm_saving(root, outer, fed);
	/* a merge join may end before the ends of its sides; without a saving, all costs may be 0 */
	if (IsA(join, MergePath) && saving > 0)
		saving *= Min(join->path.total_cost / (outer->total_cost + inner->total_cost), 1);
	return saving;
}

Cost
plan_warm_saving(PlannerInfo *root, Path *path, bool fed)
{
	Cost saving = 0;
	ListCell *lc;

	check_stack_depth();
	switch (nodeTag(path))
	{
		case T_Path:
			return path->pathtype == T_SeqScan ? scan_saving(root, path, fed) : 0;
		case T_IndexPath:
		case T_BitmapHeapPath:
			return scan_saving(root, path, fed);
		case T_NestPath:
		case T_MergePath:
		case T_HashPath:
			return join_saving(root, (const JoinPath *) path, fed);
		case T_AppendPath:
			foreach (lc, ((const AppendPath *) path)->subpaths)
				saving += plan_warm_saving(root, lfirst(lc), fed);
			return saving;
		case T_ProjectionPath:
			return plan_warm_saving(root, ((const ProjectionPath *) path)->subpath, fed);
		case T_MaterialPath:
			return plan_warm_saving(root, ((const MaterialPath *) path)->subpath, fed);
		case T_SortPath:
		case T_IncrementalSortPath:
			return plan_warm_saving(root, ((const SortPath *) path)->subpath, fed);
		case T_GatherPath:
			return plan_warm_saving(root, ((const GatherPath *) path)->subpath, fed);
		case T_GatherMergePath:
			return plan_warm_saving(root, ((const GatherMergePath *) path)->subpath, fed);
		default:
			/* how often a scan below a Memoize runs is not known here */
			return 0;
	}
}
