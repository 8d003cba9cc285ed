/*
 * resident.c
 *	  Rows of which the GPU can keep copies, for the planner: a rough look at what the column cache has.
 *
 * Whether all of a query can be translated for the GPU is known when it runs.
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
#include "feed/heap_build.h"
#include "plan/group_query.h"
#include "settings.h"
#include "spec.h"

/* Queries of more columns have no resident rows. */
#define MOST_COLUMNS 32

/* The keys of the columns in the cache; -1: one is of a type that the GPU does not have. */
static int
collect_keys(Relation rel, const Bitmapset *attnos, CacheColumnKey *keys)
{
	TupleDesc	desc = RelationGetDescr(rel);
	int			n = 0;
	int			member = -1;

	while ((member = bms_next_member(attnos, member)) >= 0)
	{
		AttrNumber	attno = member + FirstLowInvalidHeapAttributeNumber;
		int16		scale;

		if (attno <= 0 || n == MOST_COLUMNS ||
			spec_column_type(TupleDescAttr(desc, attno - 1)->atttypid, TupleDescAttr(desc, attno - 1)->atttypmod,
							 &scale) == COLUMN_DATUM ||
			!heap_build_key(desc, attno, -1, &keys[n++]))
			return -1;
	}
	return n;
}

static double
table_share(Oid relid, const Bitmapset *attnos, BlockNumber nblocks)
{
	CacheColumnKey keys[MOST_COLUMNS];
	Relation	rel = table_open(relid, NoLock);	/* the planner has locked it */
	double		share = 0;
	int			n = -1;

	if (rel->rd_rel->relkind == RELKIND_RELATION && proof_refusal(rel) == NULL)
		n = collect_keys(rel, attnos, keys);
	if (n > 0)
	{
		CacheTableKey key = cache_table_key(rel);

		share = cache_share(&key, n, keys, nblocks);
	}
	table_close(rel, NoLock);
	return Min(share, 1);
}

double
plan_resident_share(GroupQuery *query, Path *child)
{
	PathTarget *target = child->pathtarget;
	RelOptInfo *rel;
	Bitmapset  *attnos = NULL;
	ListCell   *lc;

	if (gpuagg_device_cache_memory == 0 || gpuagg_feed == GPUAGG_FEED_TUPLES || !cache_available())
		return 0;
	while (IsA(child, ProjectionPath))
		child = ((ProjectionPath *) child)->subpath;
	if (child->pathtype != T_SeqScan || child->parallel_aware || child->parallel_workers > 0 ||
		child->param_info != NULL)
		return 0;
	rel = child->parent;
	foreach(lc, target->exprs)
		pull_varattnos(lfirst(lc), rel->relid, &attnos);
	foreach(lc, rel->baserestrictinfo)
		pull_varattnos((Node *) lfirst_node(RestrictInfo, lc)->clause, rel->relid, &attnos);
	return table_share(planner_rt_fetch(rel->relid, query->root)->relid, attnos, rel->pages);
}
