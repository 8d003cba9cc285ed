/*
 * refresh.c
 *
 * Refreshing ranges of which blocks have changed: requests, and when they are due.
 *
 * A block that is found changed is read from the heap by every later query, until its range is
 * read again. Reading a range again costs about as much as a query without the cache over its 256
 * blocks. It is worth that when the stale blocks, times the queries that meet them, are more. So a
 * table is refreshed
 *
 * - if the stale fraction of its cached blocks is at least gpuagg.cache_renew (and they are more
 * than a few), or if the table has grown by a certain part of a range since its last range was
 * read;
 *
 * - when no more blocks have been found changed for some seconds, or when that has gone on for
 * long;
 *
 * - not soon after the last time: the pause is many times as long as the work was, and doubles
 * each time that few queries have used the table since. So a table that is written more often than
 * read is refreshed less and less often.
 *
 * Of the table, ranges with at least half of that stale fraction are refreshed.
 *
 * Requests are kept in the table's entry, under change_lock. A database has at most one worker. If
 * none can be started, nothing happens: the next query requests it again.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "storage/ipc.h"
#include "utils/timestamp.h"

#include "cache/refresh.h"
#include "cache/store_internal.h"
#include "settings.h"

/* Fewer stale blocks do not matter. */
#define FEW_BLOCKS 16
/* A table has grown enough if its last range lacks so many blocks. */
#define MANY_MISSING (CACHE_RANGE_BLOCKS / 8)

/*
 * A refresh is due when no more blocks were found changed for QUIET_MS, or RESTLESS_MS after the
 * first request.
 */
#define QUIET_MS 2000
#define RESTLESS_MS 10000
/* The pause after a refresh: its limits, and its factor to the work. */
#define SHORTEST_PAUSE_MS 5000
#define LONGEST_PAUSE_MS 1800000
#define PAUSE_FACTOR 20
/*
 * A refresh was worth the work if at least so many queries have used the table since the last one.
 */
#define WORTH_USES 8
#define LOCKED_MS 1000

/* A worker is started for, and waits for, requests that are due within this time. */
#define SOON_MS 30000
/* A worker that has not started so long after its request does not exist. */
#define START_MS 30000

/* ---- when a refresh is due ---------------------------------------------------------------- */

/* Returns the time until the refresh is due, in ms; less than 1: it is due now. */
static int64
ms_until_due(const StoredRefresh *refresh, TimestampTz now)
{
	TimestampTz quiet = TimestampTzPlusMilliseconds(refresh->changed, QUIET_MS);
	TimestampTz restless = TimestampTzPlusMilliseconds(refresh->first, RESTLESS_MS);

	return (Max(Min(quiet, restless), refresh->not_before) - now) / 1000;
}

/*
 * Returns whether a refresh is worth it: `stale` of `blocks` cached blocks are stale, and a range
 * lacks `missing` blocks that the table has.
 */
static bool
is_enough(uint64 stale, uint64 blocks, int missing)
{
	return gpuagg_cache_renew > 0 &&
		(missing >= MANY_MISSING || (stale >= FEW_BLOCKS && stale >= gpuagg_cache_renew * blocks));
}

/* ---- requests ----------------------------------------------------------------------------- */

/*
 * Returns a free slot for a worker of this database; NULL if it has a worker, or there is no slot.
 * Under change_lock.
 */
static StoredWorker *
find_free_slot(TimestampTz now)
{
	StoredWorker *slot = NULL;

	for (int i = 0; i < CACHE_WORKERS; i++)
	{
		StoredWorker *worker = &cache_shared->workers[i];
		bool gone = worker->pid == 0 && TimestampDifferenceExceeds(worker->since, now, START_MS);

		if (worker->database == MyDatabaseId && !gone)
			return NULL;
		if (worker->database == InvalidOid || gone)
			slot = worker;
	}
	return slot;
}

/*
 * Registers a background worker for this database; returns false if there is no free worker
 * process.
 */
static bool
start_worker(void)
{
	BackgroundWorker worker = {0};

	snprintf(worker.bgw_name, BGW_MAXLEN, "gpuagg cache worker for database %u", MyDatabaseId);
	strlcpy(worker.bgw_type, "gpuagg cache worker", BGW_MAXLEN);
	strlcpy(worker.bgw_library_name, "gpuagg", BGW_MAXLEN);
	strlcpy(worker.bgw_function_name, "gpuagg_cache_worker_main", BGW_MAXLEN);
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_ConsistentState;
	worker.bgw_restart_time = BGW_NEVER_RESTART;
	worker.bgw_main_arg = ObjectIdGetDatum(MyDatabaseId);
	return RegisterDynamicBackgroundWorker(&worker, NULL);
}

void
cache_request_refresh(CacheTable *table, int missing)
{
	TimestampTz now = GetCurrentTimestamp();
	StoredTable *stored;
	StoredWorker *slot = NULL;
	uint64 stale = 0;
	bool enough;

	LWLockAcquire(cache_shared->change_lock, LW_SHARED);
	stored = cache_table_find(&table->key, table->serial);
	if (stored)
		stale = pg_atomic_read_u64(&stored->sum.dead) + missing;
	enough = stored && is_enough(stale, stored->sum.blocks + missing, missing);
	LWLockRelease(cache_shared->change_lock);
	if (!enough)
		return;

	LWLockAcquire(cache_shared->change_lock, LW_EXCLUSIVE);
	stored = cache_table_find(&table->key, table->serial);
	if (stored)
	{
		StoredRefresh *refresh = &stored->refresh;

		if (!refresh->requested)
			refresh->first = now;
		if (!refresh->requested || refresh->stale != stale)
			refresh->changed = now;
		refresh->requested = true;
		refresh->stale = stale;
		if (ms_until_due(refresh, now) < SOON_MS)
			slot = find_free_slot(now);
		if (slot)
			*slot = (StoredWorker){MyDatabaseId, 0, now};
	}
	LWLockRelease(cache_shared->change_lock);
	if (slot == NULL || start_worker())
		return;
	LWLockAcquire(cache_shared->change_lock, LW_EXCLUSIVE);
	if (slot->database == MyDatabaseId && slot->pid == 0)
		slot->database = InvalidOid;
	LWLockRelease(cache_shared->change_lock);
}

/* ---- the worker ----------------------------------------------------------------------- */

/* Exit callback of the worker: frees its slot. arg: the slot's index. */
static void
release_slot(int code, Datum arg)
{
	StoredWorker *slot = &cache_shared->workers[DatumGetInt32(arg)];

	LWLockAcquire(cache_shared->change_lock, LW_EXCLUSIVE);
	*slot = (StoredWorker){InvalidOid, 0, 0};
	LWLockRelease(cache_shared->change_lock);
}

bool
cache_worker_begin(void)
{
	int mine = -1;

	if (cache_shared == NULL)
		return false;
	LWLockAcquire(cache_shared->change_lock, LW_EXCLUSIVE);
	for (int i = 0; i < CACHE_WORKERS; i++)
		if (cache_shared->workers[i].database == MyDatabaseId && cache_shared->workers[i].pid == 0)
			mine = i;
	if (mine >= 0)
		cache_shared->workers[mine].pid = MyProcPid;
	LWLockRelease(cache_shared->change_lock);
	if (mine >= 0)
		before_shmem_exit(release_slot, Int32GetDatum(mine));
	return mine >= 0;
}

bool
cache_take_refresh(CacheTableKey *key, Oid *relid, long *wait_ms)
{
	TimestampTz now = GetCurrentTimestamp();
	HASH_SEQ_STATUS scan;
	StoredTable *stored;
	StoredTable *first = NULL;
	int64 first_in = SOON_MS;

	LWLockAcquire(cache_shared->change_lock, LW_EXCLUSIVE);
	hash_seq_init(&scan, cache_tables);
	while ((stored = hash_seq_search(&scan)) != NULL)
	{
		int64 in;

		if (stored->key.database != MyDatabaseId || stored->serial == 0 ||
			!stored->refresh.requested)
			continue;
		in = ms_until_due(&stored->refresh, now);
		if (in >= first_in)
			continue;
		first = stored;
		first_in = in;
	}
	*wait_ms = first ? (long) Max(first_in, 0) : -1;
	if (first && first_in <= 0)
	{
		first->refresh.requested = false;
		*key = first->key;
		*relid = first->relid;
	}
	LWLockRelease(cache_shared->change_lock);
	return first && first_in <= 0;
}

void
cache_end_refresh(const CacheTableKey *key, CacheRefreshed how, int64 work_ms)
{
	TimestampTz now = GetCurrentTimestamp();
	StoredTable *stored;

	LWLockAcquire(cache_shared->change_lock, LW_EXCLUSIVE);
	stored = hash_search(cache_tables, key, HASH_FIND, NULL);
	if (stored && stored->serial != 0)
	{
		StoredRefresh *refresh = &stored->refresh;
		int64 pause = Max(refresh->pause_ms, SHORTEST_PAUSE_MS);

		if (how == CACHE_REFRESHED && stored->use.uses - refresh->uses >= WORTH_USES)
			pause /= 2;
		else if (how == CACHE_REFRESHED_IN_VAIN ||
				 (how == CACHE_REFRESHED && refresh->pause_ms > 0))
			pause *= 2;
		else if (how == CACHE_REFRESH_FAILED)
			pause = LONGEST_PAUSE_MS;
		pause = Min(Max(pause, SHORTEST_PAUSE_MS), LONGEST_PAUSE_MS);
		if (how == CACHE_REFRESH_LATER)
		{
			refresh->requested = true;
			pause = LOCKED_MS;
		}
		else
		{
			refresh->pause_ms = pause;
			refresh->uses = stored->use.uses;
			pause = Max(pause, PAUSE_FACTOR * work_ms);
		}
		refresh->not_before = TimestampTzPlusMilliseconds(now, pause);
	}
	LWLockRelease(cache_shared->change_lock);
}

/* ---- what is stale ------------------------------------------------------------------------ */

int
cache_table_columns(CacheTable *table, CacheColumnKey **cols)
{
	StoredTable *stored;
	int room = 0;
	int n = 0;

	for (int pass = 0; pass < 2; pass++)
	{
		if (pass == 1)
			*cols = palloc(Max(room, 1) * sizeof(CacheColumnKey));
		LWLockAcquire(cache_shared->change_lock, LW_SHARED);
		stored = cache_table_find(&table->key, table->serial);
		for (StoredColumn *column = stored ? stored->columns : NULL; column; column = column->next)
		{
			const StoredColumnKey *key = &column->key;

			if (column->sum.items == 0)
				continue;
			if (pass == 0)
				room++;
			else if (n < room)
				(*cols)[n++] = (CacheColumnKey){.attno = key->attno,
												.typid = key->typid,
												.typmod = key->typmod,
												.scale = key->scale,
												.missing = key->missing};
		}
		LWLockRelease(cache_shared->change_lock);
	}
	return n;
}

int
cache_range_stale(CacheRange *range, int nblocks)
{
	return pg_atomic_read_u32(&range->ndead) + abs(nblocks - range->nblocks);
}

bool
cache_next_stale(CacheTable *table, BlockNumber nblocks, uint32 *range_no)
{
	for (; (uint64) *range_no * CACHE_RANGE_BLOCKS < nblocks; (*range_no)++)
	{
		int n = Min(CACHE_RANGE_BLOCKS, nblocks - *range_no * CACHE_RANGE_BLOCKS);
		LWLock *lock = cache_range_lock(table->serial, *range_no);
		StoredRange *range;
		int stale = 0;

		LWLockAcquire(lock, LW_SHARED);
		range = cache_range_find(table->serial, *range_no);
		if (range)
			stale = cache_range_stale(&range->range, n);
		LWLockRelease(lock);
		if (stale >= MANY_MISSING || (stale > 0 && 2 * stale >= gpuagg_cache_renew * n))
			return true;
	}
	return false;
}
