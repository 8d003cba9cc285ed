/*
 * forget.c
 *
 * Frees what is cached of tables that do not exist any more.
 *
 * When a transaction has committed, its process forgets the files that the transaction deleted: of
 * dropped, truncated, rewritten and moved tables. This saves memory; correctness does not depend
 * on it. Files that COMMIT PREPARED, a recovery or DROP DATABASE deletes are found by a sweep,
 * when memory is short.
 */
#include "postgres.h"

#include <sys/stat.h>

#include "access/xact.h"
#include "lib/qunique.h"
#include "utils/timestamp.h"

#include "cache/forget.h"
#include "cache/store.h"
#include "cache/store_internal.h"
#include "common/compat.h"

/* Most ranges that are freed under one acquisition of the lock. */
#define BATCH 256
/* A sweep checks one file per table. Least time between two sweeps. */
#define SWEEP_INTERVAL_MS 30000

/* Tables whose files the transaction deletes, and of which something is cached; in its context. */
static CacheTableKey *deleted;
static int ndeleted;

/* ---- one table ----------------------------------------------------------------- */

/* Removes some ranges of a table that is being forgotten; returns whether there are more. */
static bool
forget_batch(StoredTable *table)
{
	for (int i = 0; i < BATCH; i++)
	{
		if (dlist_is_empty(&table->ranges))
			return false;
		cache_range_detach(dlist_head_element(StoredRange, in_table, &table->ranges));
	}
	return true;
}

uint64
cache_forget_table(const CacheTableKey *key)
{
	uint64 bytes = 0;
	bool first = true, more = true;

	if (cache_shared == NULL)
		return 0;
	cache_memory_attach();
	while (more)
	{
		StoredTable *table;

		LWLockAcquire(cache_shared->change_lock, LW_EXCLUSIVE);
		if (first)
			bytes += cache_kept_forget(key);
		table = hash_search(cache_tables, key, HASH_FIND, NULL);
		/* not a new entry that was made in between */
		more = table && (first || table->serial == 0);
		if (more)
		{
			bytes += first ? cache_table_bytes(table) : 0;
			table->serial = 0;
			more = forget_batch(table);
			if (!more)
				cache_table_remove(table);
		}
		first = false;
		LWLockRelease(cache_shared->change_lock);
	}
	return bytes;
}

/* ---- sweeps ------------------------------------------------------------------------- */

/* Returns whether a table's file exists and is not empty; true if that cannot be found out. */
static bool
file_is_there(const CacheTableKey *key)
{
	char path[MAXPGPATH];
	struct stat st;

	compat_main_fork_path(key->database, key->tablespace, key->relnumber, path, sizeof(path));
	if (stat(path, &st) == 0)
		return st.st_size > 0; /* dropped files remain, empty, until the next checkpoint */
	return errno != ENOENT && errno != ENOTDIR;
}

/*
 * Returns the keys of all tables, each once, allocated in the current memory context, and sets *n
 * to their number. Tables and results added after they were counted may be missing.
 */
static CacheTableKey *
all_keys(int *n)
{
	long ntables, nresults;
	CacheKeptItem *results;
	CacheTableKey *keys;
	HASH_SEQ_STATUS scan;
	StoredTable *table;

	LWLockAcquire(cache_shared->change_lock, LW_SHARED);
	ntables = hash_get_num_entries(cache_tables);
	nresults = cache_shared->kept_results;
	LWLockRelease(cache_shared->change_lock);
	results = palloc((nresults + 1) * sizeof(CacheKeptItem));
	keys = palloc((ntables + nresults * KEPT_TABLES + 1) * sizeof(CacheTableKey));
	*n = 0;
	LWLockAcquire(cache_shared->change_lock, LW_SHARED);
	hash_seq_init(&scan, cache_tables);
	while ((table = hash_seq_search(&scan)) != NULL)
		if (*n < ntables)
			keys[(*n)++] = table->key;
	nresults = cache_kept_list(results, nresults);
	LWLockRelease(cache_shared->change_lock);
	for (int r = 0; r < nresults; r++)
		for (int i = 0; i < results[r].tables.n; i++)
			keys[(*n)++] = results[r].tables.of[i].key;
	pfree(results);
	qsort(keys, *n, sizeof(CacheTableKey), cache_compare_keys);
	*n = qunique(keys, *n, sizeof(CacheTableKey), cache_compare_keys);
	return keys;
}

void
cache_sweep(void)
{
	CacheTableKey *keys;
	int n;

	if (cache_shared == NULL)
		return;
	keys = all_keys(&n);
	for (int i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (!file_is_there(&keys[i]))
			cache_forget_table(&keys[i]);
	}
	pfree(keys);
}

void
forget_sweep_if_due(void)
{
	TimestampTz now = GetCurrentTimestamp();
	uint64 last = pg_atomic_read_u64(&cache_shared->swept);

	if (TimestampDifferenceExceeds((TimestampTz) last, now, SWEEP_INTERVAL_MS) &&
		pg_atomic_compare_exchange_u64(&cache_shared->swept, &last, (uint64) now))
		cache_sweep();
}

/* ---- transactions --------------------------------------------------------------------- */

/* Converts a file locator of core to the cache's key. */
static CacheTableKey
locator_key(CompatLocator locator)
{
	CacheTableKey key;

	key.tablespace = compat_locator_tablespace(locator);
	key.database = compat_locator_database(locator);
	key.relnumber = compat_locator_number(locator);
	return key;
}

/*
 * Called before the commit: collects the tables whose files it deletes, and of which something is
 * cached. They are locked, so others cannot cache them from now on.
 */
static void
collect_deleted(void)
{
	CompatLocator *all;
	int n = smgrGetPendingDeletes(true, &all);
	bool *cached;

	if (n == 0)
		return;
	cached = palloc0(n * sizeof(bool));
	deleted = palloc(n * sizeof(CacheTableKey));
	for (int i = 0; i < n; i++)
		deleted[i] = locator_key(all[i]);
	qsort(deleted, n, sizeof(CacheTableKey), cache_compare_keys);
	LWLockAcquire(cache_shared->change_lock, LW_SHARED);
	for (int i = 0; i < n; i++)
		cached[i] = hash_search(cache_tables, &deleted[i], HASH_FIND, NULL) != NULL;
	cache_kept_mark(deleted, n, cached);
	LWLockRelease(cache_shared->change_lock);
	for (int i = 0; i < n; i++)
		if (cached[i])
			deleted[ndeleted++] = deleted[i];
	/* attach now: after the commit, an error for lack of memory must not happen */
	if (ndeleted > 0)
		cache_memory_attach();
	pfree(cached);
	pfree(all);
}

/* Transaction callback: at commit forgets the tables whose files the transaction deletes. */
static void
at_transaction_end(XactEvent event, void *arg)
{
	if (cache_shared == NULL)
		return;
	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
			ndeleted = 0;
			collect_deleted();
			break;
		case XACT_EVENT_COMMIT:
			for (int i = 0; i < ndeleted; i++)
				cache_forget_table(&deleted[i]);
			ndeleted = 0;
			break;
		case XACT_EVENT_ABORT:
			ndeleted = 0;
			break;
		default:
			break;
	}
}

void
forget_init(void)
{
	RegisterXactCallback(at_transaction_end, NULL);
}
