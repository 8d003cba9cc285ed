/*
 * prewarm.c
 *
 * gpuagg_cache_prewarm(): adds columns of a table to the cache before a query needs them.
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/table.h"
#include "catalog/objectaddress.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/bitmapset.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "cache/store.h"
#include "common/progress.h"
#include "feed/heap_build.h"
#include "settings.h"
#include "cache_maintenance/column_fill.h"

PG_FUNCTION_INFO_V1(gpuagg_cache_prewarm);

typedef struct Prewarm
{
	bool all; /* all columns of the table */
	int nnames;
	char **names;
	uint64 blocks; /* blocks that are cached now */
	bool full;
} Prewarm;

/* ---- arguments ---------------------------------------------------------------------- */

/* Reads the names of columns from the SQL argument; raises an error for a NULL. */
static void
read_names(Prewarm *prewarm, ArrayType *array)
{
	Datum *elements;
	bool *nulls;

	deconstruct_array(array, TEXTOID, -1, false, TYPALIGN_INT, &elements, &nulls, &prewarm->nnames);
	prewarm->names = palloc((prewarm->nnames + 1) * sizeof(char *));
	for (int i = 0; i < prewarm->nnames; i++)
	{
		if (nulls[i])
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("name of a column must not be null")));
		prewarm->names[i] = TextDatumGetCString(elements[i]);
	}
}

/* Returns the number of a column; raises an error if it does not exist or is a system column. */
static AttrNumber
find_column(Relation rel, const char *name)
{
	AttrNumber attno = get_attnum(RelationGetRelid(rel), name);

	if (attno == InvalidAttrNumber)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_COLUMN),
				 errmsg("column \"%s\" of relation \"%s\" does not exist", name,
						RelationGetRelationName(rel))));
	if (attno < 0)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot cache system column \"%s\"", name)));
	return attno;
}

/*
 * Sets *keys to the requested columns of this table that the cache can hold; returns their number.
 */
static int
find_columns(const Prewarm *prewarm, Relation rel, CacheColumnKey **keys)
{
	TupleDesc desc = RelationGetDescr(rel);
	Bitmapset *attnos = NULL;
	int n = 0;
	int member = -1;

	for (int i = 0; i < prewarm->nnames; i++)
		attnos = bms_add_member(attnos, find_column(rel, prewarm->names[i]));
	if (prewarm->all && desc->natts > 0)
		attnos = bms_add_range(NULL, 1, desc->natts);
	*keys = palloc0((bms_num_members(attnos) + 1) * sizeof(CacheColumnKey));
	while ((member = bms_next_member(attnos, member)) >= 0)
		if (heap_build_key(desc, member, -1, &(*keys)[n]))
			n++;
	return n;
}

/*
 * Checks the privileges that a query over these columns needs. Row security does not matter, as no
 * rows are returned.
 */
static void
check_privileges(const Prewarm *prewarm, Relation rel)
{
	Oid relid = RelationGetRelid(rel);
	bool allowed = pg_class_aclcheck(relid, GetUserId(), ACL_SELECT) == ACLCHECK_OK;

	if (!allowed && prewarm->all)
		allowed =
			pg_attribute_aclcheck_all(relid, GetUserId(), ACL_SELECT, ACLMASK_ALL) == ACLCHECK_OK;
	else if (!allowed && prewarm->nnames > 0)
	{
		allowed = true;
		for (int i = 0; i < prewarm->nnames; i++)
		{
			AttrNumber attno = get_attnum(relid, prewarm->names[i]);

			if (attno == InvalidAttrNumber ||
				pg_attribute_aclcheck(relid, attno, GetUserId(), ACL_SELECT) != ACLCHECK_OK)
				allowed = false;
		}
	}
	if (!allowed)
		aclcheck_error(ACLCHECK_NO_PRIV, get_relkind_objtype(rel->rd_rel->relkind),
					   RelationGetRelationName(rel));
}

/* Raises an error if there is no column cache. */
static void
check_cache(void)
{
	if (cache_exists())
		return;
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE), errmsg("there is no column cache"),
			 gpuagg_cache_memory == 0 ?
				 errhint("Set gpuagg.cache_memory to more than 0 and restart the server.") :
				 errhint("Add gpuagg to shared_preload_libraries and restart the server.")));
}

/* Returns whether a relation is a table or materialized view. */
static bool
is_table(Relation rel)
{
	char relkind = rel->rd_rel->relkind;

	return relkind == RELKIND_RELATION || relkind == RELKIND_MATVIEW;
}

/* ---- filling ------------------------------------------------------------------------ */

/* Fills every range of one table, in the current memory context. */
static void
prewarm_table(Prewarm *prewarm, Relation rel)
{
	CacheTableKey key = cache_table_key(rel);
	CacheTable *table = cache_table_open(&key, rel);
	CacheColumnKey *cols;
	int ncols = find_columns(prewarm, rel, &cols);
	TableFill *fill;
	uint64 rows = 0;
	uint64 blocks = 0;
	BlockNumber nblocks;

	if (table == NULL || ncols == 0)
	{
		prewarm->full |= table == NULL;
		return;
	}
	cache_table_evict_own(table);
	/*
	 * Counted twice, so that these columns are worth as much as those that two consecutive queries
	 * have read.
	 */
	cache_table_use(table, ncols, cols);
	cache_table_use(table, ncols, cols);
	fill = fill_begin(rel, GetActiveSnapshot(), table, ncols, cols);
	nblocks = fill_blocks(fill);
	progress_table(RelationGetRelid(rel), nblocks);
	for (uint32 r = 0; (uint64) r * CACHE_RANGE_BLOCKS < nblocks && !fill_is_full(fill); r++)
	{
		CHECK_FOR_INTERRUPTS();
		fill_range(fill, r, true);
		blocks += fill_served(fill, r, &rows);
		progress_update(Min((uint64) (r + 1) * CACHE_RANGE_BLOCKS, nblocks), rows);
	}
	if (fill_is_full(fill))
	{
		prewarm->full = true;
		ereport(
			NOTICE,
			(errmsg("there is no memory in the column cache for all of table \"%s\"",
					RelationGetRelationName(rel)),
			 errdetail("%llu of %u blocks are cached.", (unsigned long long) blocks, nblocks),
			 errhint(
				 "Increase gpuagg.cache_memory, name the columns that queries read, or free memory "
				 "with gpuagg_cache_evict(); columns of other owners' tables are not evicted.")));
	}
	fill_end(fill);
	prewarm->blocks += blocks;
}

/*
 * Fills a table in a memory context of its own, which frees the handle and its pins. named: the
 * table was named by the caller, so it is an error if it cannot be cached.
 */
static void
prewarm_relation(Prewarm *prewarm, Relation rel, bool named)
{
	const char *why = is_table(rel) ? fill_unsupported_reason(rel) : "it is not a table";
	MemoryContext cxt, old;

	if (rel->rd_rel->relkind == RELKIND_PARTITIONED_TABLE)
		return;
	if (why)
	{
		ereport(named ? ERROR : NOTICE,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot cache table \"%s\"", RelationGetRelationName(rel)),
				 errdetail("%c%s.", pg_toupper(why[0]), why + 1)));
		return;
	}
	cxt = AllocSetContextCreate(CurrentMemoryContext, "gpuagg prewarm", ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(cxt);
	prewarm_table(prewarm, rel);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(cxt);
}

/* Fills all partitions of a table, until the cache has no memory. */
static void
prewarm_partitions(Prewarm *prewarm, Oid relid)
{
	List *partitions = find_all_inheritors(relid, AccessShareLock, NULL);
	ListCell *cell;

	foreach (cell, partitions)
	{
		Relation rel = prewarm->full ? NULL : try_relation_open(lfirst_oid(cell), NoLock);

		if (rel == NULL)
			continue;
		prewarm_relation(prewarm, rel, false);
		relation_close(rel, NoLock);
	}
}

/*
 * Checks the table and columns that the caller named, and fills them. Returns the result of the SQL
 * function.
 */
static Datum
prewarm_named(Prewarm *prewarm, Oid relid)
{
	Relation rel = relation_open(relid, AccessShareLock);
	char relkind = rel->rd_rel->relkind;

	check_privileges(prewarm, rel);
	if (!is_table(rel) && relkind != RELKIND_PARTITIONED_TABLE)
		ereport(
			ERROR,
			(errcode(ERRCODE_WRONG_OBJECT_TYPE),
			 errmsg("\"%s\" is not a table or materialized view", RelationGetRelationName(rel))));
	for (int i = 0; i < prewarm->nnames; i++)
		find_column(rel, prewarm->names[i]);
	check_cache();
	progress_enter(progress_create(CurrentMemoryContext));
	progress_phase(PROGRESS_CACHING);
	if (relkind == RELKIND_PARTITIONED_TABLE)
		prewarm_partitions(prewarm, relid);
	else
		prewarm_relation(prewarm, rel, true);
	relation_close(rel, NoLock);
	return Int64GetDatum(prewarm->blocks);
}

/*
 * gpuagg_cache_prewarm(): returns the number of blocks of which all requested columns are cached.
 */
Datum
gpuagg_cache_prewarm(PG_FUNCTION_ARGS)
{
	Prewarm prewarm = {0};
	MemoryContext cxt, old;
	Datum result;

	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	/* the progress report ends with this context */
	cxt = AllocSetContextCreate(CurrentMemoryContext, "gpuagg prewarm", ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(cxt);
	prewarm.all = PG_ARGISNULL(1);
	if (!prewarm.all)
		read_names(&prewarm, PG_GETARG_ARRAYTYPE_P(1));
	result = prewarm_named(&prewarm, PG_GETARG_OID(0));
	MemoryContextSwitchTo(old);
	MemoryContextDelete(cxt);
	PG_RETURN_DATUM(result);
}
