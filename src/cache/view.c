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

/* ---- gpuagg_cache ----------------------------------------------------------------- */

typedef struct Row
{
	CacheTableKey key;
	Oid relid;
	int attno; /* 0: the table's descriptors */
	StoredSum sum;
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
add_row(Rows *rows, const StoredTable *table, int attno, const StoredSum *sum, const StoredUse *use)
{
	if (sum->items > 0 && rows->n < rows->room)
		rows->of[rows->n++] = (Row){table->key, table->relid, attno, *sum, use->when};
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
 * column, and with pg_read_all_stats everything. Privileges in other databases are not known here.
 * Row security forbids it, as the compression of values reveals something about hidden rows.
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
	if (missing)
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

/*
 * gpuagg_cache_columns(): returns a row for each table and column that has something cached and
 * that the user may see.
 */
Datum
gpuagg_cache_columns(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	Rows rows;

	InitMaterializedSRF(fcinfo, 0);
	if (cache_shared == NULL)
		return (Datum) 0;
	collect_rows(&rows);
	for (int i = 0; i < rows.n; i++)
	{
		Row *row = &rows.of[i];
		uint64 dead = Min(pg_atomic_read_u64(&row->sum.dead), row->sum.blocks);
		Datum values[12];
		bool nulls[12] = {0};

		if (!cache_may_see(&row->key, row->relid, row->attno))
			continue;
		values[0] = ObjectIdGetDatum(row->key.database);
		values[1] = ObjectIdGetDatum(row->key.tablespace);
		values[2] = ObjectIdGetDatum(row->key.relnumber);
		values[3] = ObjectIdGetDatum(row->relid);
		values[4] = Int16GetDatum(row->attno);
		values[5] = CStringGetTextDatum("ram");
		values[6] = Int64GetDatum(row->sum.blocks);
		values[7] = Int64GetDatum(row->sum.rows);
		values[8] = Int64GetDatum(row->sum.bytes);
		values[9] = Int64GetDatum(pg_atomic_read_u64(&row->sum.hits));
		values[10] =
			Float8GetDatum(row->sum.blocks == 0 ? 1.0 : 1.0 - (double) dead / row->sum.blocks);
		values[11] = TimestampTzGetDatum(row->when);
		nulls[11] = row->when == 0;
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	pfree(rows.of);
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
