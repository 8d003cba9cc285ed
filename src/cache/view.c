/*
 * view.c
 *
 * The SQL functions that show and evict what is cached: gpuagg_cache_columns() (for the view
 * gpuagg_cache) and gpuagg_cache_evict().
 */
#include "postgres.h"

#include "access/relation.h"
#include "catalog/objectaddress.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_inherits.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rls.h"
#include "utils/timestamp.h"

#include "cache/store.h"
#include "cache/store_internal.h"
#include "common/compat.h"

PG_FUNCTION_INFO_V1(gpuagg_cache_columns);
PG_FUNCTION_INFO_V1(gpuagg_cache_evict);

/* In place of a column's number: all columns. */
#define ALL_COLUMNS (-1)

/* ---- gpuagg_cache ----------------------------------------------------------------- */

/* A row of the view. */
typedef struct Row
{
	CacheTableKey key;
	Oid relid;
	int attno;   /* 0: the table's descriptors, or a lookup */
	bool lookup; /* has no blocks */
	uint64 blocks;
	uint64 rows;
	uint64 bytes;
	uint64 hits;
	double valid;
	TimestampTz when;
} Row;

typedef struct Rows
{
	int n;
	int room;
	Row *of;
} Rows;

/* Appends a row for a table or column that has something cached. */
static void
add_row(Rows *rows, const StoredTable *table, int attno, StoredSum *sum, const StoredUse *use)
{
	uint64 dead = Min(pg_atomic_read_u64(&sum->dead), sum->blocks);

	if (sum->items == 0 || rows->n >= rows->room)
		return;
	rows->of[rows->n++] = (Row){.key = table->key,
								.relid = table->relid,
								.attno = attno,
								.blocks = sum->blocks,
								.rows = sum->rows,
								.bytes = sum->bytes,
								.hits = pg_atomic_read_u64(&sum->hits),
								.valid = sum->blocks == 0 ? 1.0 : 1.0 - (double) dead / sum->blocks,
								.when = use->when};
}

/*
 * Copies the totals of all tables and columns. Entries added after they were counted may be
 * missing.
 */
static void
collect_rows(Rows *rows)
{
	HASH_SEQ_STATUS scan;
	StoredTable *table;
	StoredColumn *column;

	rows->n = 0;
	LWLockAcquire(cache_shared->change_lock, LW_SHARED);
	rows->room = hash_get_num_entries(cache_tables) + hash_get_num_entries(cache_columns);
	LWLockRelease(cache_shared->change_lock);
	rows->of = MemoryContextAllocHuge(CurrentMemoryContext, Max(rows->room, 1) * sizeof(Row));

	LWLockAcquire(cache_shared->change_lock, LW_SHARED);
	hash_seq_init(&scan, cache_tables);
	while ((table = hash_seq_search(&scan)) != NULL)
		add_row(rows, table, 0, &table->sum, &table->use);
	hash_seq_init(&scan, cache_columns);
	while ((column = hash_seq_search(&scan)) != NULL)
		add_row(rows, column->table, column->key.attno, &column->sum, &column->use);
	LWLockRelease(cache_shared->change_lock);
}

/*
 * Users may see columns that they may read, descriptors of a table of which they may read any
 * column, lookups made from tables that they may read, and with pg_read_all_stats everything.
 * Privileges in other databases are not known here. Row security forbids it, as the compression of
 * values and the rows of lookups reveal something about hidden rows.
 */
bool
cache_may_see(const CacheTableKey *key, Oid relid, AttrNumber attno)
{
	bool missing = false;

	if (has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS))
		return true;
	if (key->database != MyDatabaseId || check_enable_rls(relid, InvalidOid, true) == RLS_ENABLED)
		return false;
	if (pg_class_aclcheck_ext(relid, GetUserId(), ACL_SELECT, &missing) == ACLCHECK_OK)
		return true;
	if (missing || attno == ALL_COLUMNS)
		return false;
	if (attno == 0)
		return pg_attribute_aclcheck_all(relid, GetUserId(), ACL_SELECT, ACLMASK_ANY) ==
			ACLCHECK_OK;
	return pg_attribute_aclcheck_ext(relid, attno, GetUserId(), ACL_SELECT, &missing) ==
		ACLCHECK_OK;
}

bool
cache_table_by_id(uint64 id, CacheTableKey *key, Oid *relid)
{
	HASH_SEQ_STATUS scan;
	StoredTable *table;
	bool found = false;

	if (cache_shared == NULL)
		return false;
	LWLockAcquire(cache_shared->change_lock, LW_SHARED);
	hash_seq_init(&scan, cache_tables);
	while ((table = hash_seq_search(&scan)) != NULL)
		if (table->serial == id)
		{
			*key = table->key;
			*relid = table->relid;
			found = true;
		}
	LWLockRelease(cache_shared->change_lock);
	return found;
}

/* Copies what is known about the lookups that are kept, and sets *n to their number. */
static CacheKeptItem *
collect_lookups(int *n)
{
	CacheKeptItem *items;

	LWLockAcquire(cache_shared->change_lock, LW_SHARED);
	*n = cache_shared->kept_results;
	LWLockRelease(cache_shared->change_lock);
	items = palloc((*n + 1) * sizeof(CacheKeptItem));
	LWLockAcquire(cache_shared->change_lock, LW_SHARED);
	*n = cache_kept_list(items, *n);
	LWLockRelease(cache_shared->change_lock);
	return items;
}

/* Returns whether the user may see a lookup. */
static bool
may_see_lookup(const CacheKeptItem *item)
{
	for (int i = 0; i < item->tables.n; i++)
		if (!cache_may_see(&item->tables.of[i].key, item->tables.of[i].relid, ALL_COLUMNS))
			return false;
	return true;
}

/* Adds a row to the result of gpuagg_cache_columns(). */
static void
put_row(ReturnSetInfo *rsinfo, const Row *row)
{
	Datum values[12];
	bool nulls[12] = {0};

	values[0] = ObjectIdGetDatum(row->key.database);
	values[1] = ObjectIdGetDatum(row->key.tablespace);
	values[2] = ObjectIdGetDatum(row->key.relnumber);
	values[3] = ObjectIdGetDatum(row->relid);
	values[4] = Int16GetDatum(row->attno);
	values[5] = CStringGetTextDatum(row->lookup ? "lookup" : "ram");
	values[6] = Int64GetDatum(row->blocks);
	values[7] = Int64GetDatum(row->rows);
	values[8] = Int64GetDatum(row->bytes);
	values[9] = Int64GetDatum(row->hits);
	values[10] = Float8GetDatum(row->valid);
	values[11] = TimestampTzGetDatum(row->when);
	nulls[6] = nulls[10] = row->lookup;
	nulls[11] = row->when == 0;
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}

/*
 * gpuagg_cache_columns(): returns a row for each table and column that has something cached, and
 * for each lookup that is kept, if the user may see it. A lookup made from several tables is one of
 * the first.
 */
Datum
gpuagg_cache_columns(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	Rows rows;
	CacheKeptItem *lookups;
	int nlookups;

	InitMaterializedSRF(fcinfo, 0);
	if (cache_shared == NULL)
		return (Datum) 0;
	collect_rows(&rows);
	for (int i = 0; i < rows.n; i++)
		if (cache_may_see(&rows.of[i].key, rows.of[i].relid, rows.of[i].attno))
			put_row(rsinfo, &rows.of[i]);
	pfree(rows.of);
	lookups = collect_lookups(&nlookups);
	for (int i = 0; i < nlookups; i++)
		if (may_see_lookup(&lookups[i]))
			put_row(rsinfo,
					&(Row){.key = lookups[i].tables.of[0].key,
						   .relid = lookups[i].tables.of[0].relid,
						   .lookup = true,
						   .rows = lookups[i].rows,
						   .bytes = lookups[i].bytes,
						   .hits = lookups[i].hits,
						   .when = lookups[i].when});
	pfree(lookups);
	return (Datum) 0;
}

/* ---- gpuagg_cache_evict ------------------------------------------------------------- */

/* Evicts all that is cached of a relation; returns the freed bytes. */
static uint64
evict_relation(Oid relid)
{
	Relation rel = try_relation_open(relid, AccessShareLock);
	uint64 bytes = 0;

	if (rel == NULL) /* dropped meanwhile */
		return 0;
	if (RELKIND_HAS_STORAGE(rel->rd_rel->relkind))
	{
		CacheTableKey key = cache_table_key(rel);

		bytes = cache_forget_table(&key);
	}
	relation_close(rel, AccessShareLock);
	return bytes;
}

/*
 * gpuagg_cache_evict(): evicts a table, or all partitions of a table; returns the freed bytes. The
 * owner of a partitioned table may evict its partitions, as TRUNCATE allows.
 */
Datum
gpuagg_cache_evict(PG_FUNCTION_ARGS)
{
	Oid relid = PG_GETARG_OID(0);
	char relkind = get_rel_relkind(relid);
	uint64 bytes = 0;
	List *partitions;
	ListCell *cell;

	if (relkind == '\0')
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation with OID %u does not exist", relid)));
	if (!compat_owns_relation(relid, GetUserId()))
		aclcheck_error(ACLCHECK_NOT_OWNER, get_relkind_objtype(relkind), get_rel_name(relid));
	if (relkind != RELKIND_RELATION && relkind != RELKIND_MATVIEW &&
		relkind != RELKIND_PARTITIONED_TABLE)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a table or materialized view", get_rel_name(relid))));
	if (relkind != RELKIND_PARTITIONED_TABLE)
		PG_RETURN_INT64(evict_relation(relid));
	partitions = find_all_inheritors(relid, AccessShareLock, NULL);
	foreach (cell, partitions)
	{
		CHECK_FOR_INTERRUPTS();
		bytes += evict_relation(lfirst_oid(cell));
	}
	PG_RETURN_INT64(bytes);
}
