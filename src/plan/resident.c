/*
 * resident.c
 *	  Estimates which rows the GPU can have cached, by what the column cache has.
 *
 * Whether the whole query can be translated for the GPU is known only when it runs.
 */
#include "postgres.h"

#include "access/sysattr.h"
#include "access/table.h"
#include "catalog/pg_class.h"
#include "nodes/bitmapset.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "utils/rel.h"

#include "cache/proof.h"
#include "plan/group_query.h"
#include "settings.h"
#include "spec.h"

/* Rows of queries with more columns are not cached on the GPU. */
#define MOST_COLUMNS 32

/* Returns whether the GPU can cache all of these columns: few, and none stored as Datums. */
static bool
are_columns_supported(Relation rel, const Bitmapset *attnos)
{
	TupleDesc desc = RelationGetDescr(rel);
	int member = -1;

	if (bms_num_members(attnos) > MOST_COLUMNS)
		return false;
	while ((member = bms_next_member(attnos, member)) >= 0)
	{
		AttrNumber attno = member + FirstLowInvalidHeapAttributeNumber;
		int16 scale;

		if (attno <= 0 ||
			spec_column_type(TupleDescAttr(desc, attno - 1)->atttypid,
							 TupleDescAttr(desc, attno - 1)->atttypmod, &scale) == COLUMN_DATUM)
			return false;
	}
	return true;
}

/*
 * Returns the fraction of a table's blocks of which the column cache has these columns; 0 if the
 * GPU cannot cache them.
 */
static double
table_share(Oid relid, const Bitmapset *attnos, BlockNumber nblocks)
{
	Relation rel = table_open(relid, NoLock); /* the planner has locked it */
	double share = 0;

	if (rel->rd_rel->relkind == RELKIND_RELATION && proof_unsupported_reason(rel) == NULL &&
		are_columns_supported(rel, attnos))
		share = cache_table_share(rel, nblocks, attnos);
	table_close(rel, NoLock);
	return share;
}

/*
 * Returns the cached fraction of the table that a path scans sequentially, perhaps under a
 * projection; 0 for any other path.
 */
static double
scan_share(GroupQuery *query, Path *child)
{
	PathTarget *target = child->pathtarget;
	RelOptInfo *rel;
	Bitmapset *attnos = NULL;
	ListCell *lc;

	while (IsA(child, ProjectionPath))
		child = ((ProjectionPath *) child)->subpath;
	if (child->pathtype != T_SeqScan || child->parallel_aware || child->parallel_workers > 0 ||
		child->param_info != NULL)
		return 0;
	rel = child->parent;
	foreach (lc, target->exprs)
		pull_varattnos(lfirst(lc), rel->relid, &attnos);
	foreach (lc, rel->baserestrictinfo)
		pull_varattnos((Node *) lfirst_node(RestrictInfo, lc)->clause, rel->relid, &attnos);
	return table_share(planner_rt_fetch(rel->relid, query->root)->relid, attnos, rel->pages);
}

double
plan_resident_share(GroupQuery *query, Path *child)
{
	Path *scan = child;
	double share = 0, rows = 0;
	ListCell *lc;

	if (gpuagg_device_cache_memory == 0 || gpuagg_feed == GPUAGG_FEED_TUPLES || !cache_available())
		return 0;
	while (IsA(scan, ProjectionPath))
		scan = ((ProjectionPath *) scan)->subpath;
	if (!IsA(scan, AppendPath))
		return scan_share(query, child);
	if (scan->parallel_aware)
		return 0;
	foreach (lc, ((AppendPath *) scan)->subpaths)
	{
		Path *subpath = lfirst(lc);

		share += scan_share(query, subpath) * subpath->rows;
		rows += subpath->rows;
	}
	return rows > 0 ? share / rows : 0;
}
