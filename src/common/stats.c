/*
 * stats.c
 *	  Counters of the whole server, for the view gpuagg_stats: what was taken and how, and what was
 * not and why.
 *
 * A table in shared memory has a row for each combination of database, role, event, engine, feed,
 * strategy and reason that was met since the start of the server or the last reset.  Reasons may
 * name types, functions and errors of devices, so there may be any number of them.  When the table
 * is full, a role in a database that has fewer rows than others (an equal share) replaces the row
 * that the one with the most rows has not used for longest; what has no row of its own is counted
 * in one row for each event, "other reasons", of no database and role.  So nobody can fill the
 *table for others.
 *
 * Reasons may name objects of a database: they are shown to the role whose queries met them, to
 * roles that have its privileges, and to members of pg_read_all_stats.
 *
 * Rows are added and removed under the exclusive lock; counters are atomic and change under the
 * shared one. They are for people who compare workloads: a crash loses them, as it does those of
 * pg_stat_statements.
 *
 * From PostgreSQL 17 on the table is there however the library was loaded; before, only where it is
 * in shared_preload_libraries.
 */
#include "postgres.h"

#include "catalog/pg_authid.h"
#include "common/hashfn.h"
#include "common/string.h"
#include "fmgr.h"
#include "funcapi.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "common/compat.h"
#include "common/stats.h"

PG_FUNCTION_INFO_V1(gpuagg_stats);
PG_FUNCTION_INFO_V1(gpuagg_stats_reset);

/* Rows; of these one for each event is kept for "other reasons". */
#define ROWS 1024
#define EVENTS (STATS_REFUSED + 1)

/* The bytes of a key: what two rows do not share. */
typedef struct RowKey
{
	StatsEvent event;
	Oid database; /* InvalidOid: "other reasons" */
	Oid role;
	char engine[16];
	char feed[16];
	char strategy[16];
	char reason[192];
	int encoding; /* of the reason, which other databases see too; ASCII: of none */
} RowKey;

#define ASCII (-1)

typedef struct StatsRow
{
	RowKey key;
	uint32 hash;
	pg_atomic_uint64 calls;
	pg_atomic_uint64 rows;
	pg_atomic_uint64 groups;
	pg_atomic_uint64 microseconds;
	pg_atomic_uint64 last; /* TimestampTz */
	pg_atomic_uint64 query_id;
} StatsRow;

typedef struct SharedStats
{
	LWLock lock;
	TimestampTz since;
	int nrows;
	StatsRow rows[ROWS];
} SharedStats;

static SharedStats *shared; /* NULL: no shared memory */
static shmem_request_hook_type previous_request;
static shmem_startup_hook_type previous_startup;

/* ---- shared memory ----------------------------------------------------------- */

static void
init_table(void *memory)
{
	SharedStats *made = memory;

	memset(made, 0, sizeof(*made));
	LWLockInitialize(&made->lock, LWLockNewTrancheId());
	made->since = GetCurrentTimestamp();
}

static void
request_memory(void)
{
	if (previous_request)
		previous_request();
	RequestAddinShmemSpace(MAXALIGN(sizeof(SharedStats)));
}

static void
start_memory(void)
{
	bool found;

	if (previous_startup)
		previous_startup();
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	shared = ShmemInitStruct("gpuagg stats", sizeof(SharedStats), &found);
	if (!found)
		init_table(shared);
	LWLockRelease(AddinShmemInitLock);
	LWLockRegisterTranche(shared->lock.tranche, "gpuagg stats");
}

void
stats_init(void)
{
	if (!process_shared_preload_libraries_in_progress)
		return;
	previous_request = shmem_request_hook;
	shmem_request_hook = request_memory;
	previous_startup = shmem_startup_hook;
	shmem_startup_hook = start_memory;
}

/* The table, if it is there or can be made. */
static bool
find_table(void)
{
	if (shared == NULL && IsUnderPostmaster)
	{
		/*
		 * of this version: an upgraded library, whose rows may differ, meets sessions with the old
		 * one
		 */
		shared =
			compat_named_segment("gpuagg stats " GPUAGG_VERSION, sizeof(SharedStats), init_table);
		if (shared)
			LWLockRegisterTranche(shared->lock.tranche, "gpuagg stats");
	}
	return shared != NULL;
}

/* ---- counting ------------------------------------------------------------------ */

static void
copy_text(char *to, size_t size, const char *from)
{
	if (from)
		strlcpy(to, from, pg_mbcliplen(from, strlen(from), size - 1) + 1);
}

/* Padding and what lies behind a text's end are zero, so that keys compare by their bytes. */
static void
make_key(RowKey *key, const StatsKey *of, Oid database, Oid role)
{
	memset(key, 0, sizeof(*key));
	key->event = of->event;
	key->database = database;
	key->role = role;
	copy_text(key->engine, sizeof(key->engine), of->engine);
	copy_text(key->feed, sizeof(key->feed), of->feed);
	copy_text(key->strategy, sizeof(key->strategy), of->strategy);
	copy_text(key->reason, sizeof(key->reason), of->reason);
	key->encoding = pg_is_ascii(key->reason) ? ASCII : GetDatabaseEncoding();
}

static StatsRow *
find_row(const RowKey *key, uint32 hash)
{
	for (int i = 0; i < shared->nrows; i++)
		if (shared->rows[i].hash == hash && memcmp(&shared->rows[i].key, key, sizeof(*key)) == 0)
			return &shared->rows[i];
	return NULL;
}

/* Under the exclusive lock: makes a row whose place is free. */
static StatsRow *
set_row(StatsRow *row, const RowKey *key, uint32 hash)
{
	row->key = *key;
	row->hash = hash;
	pg_atomic_init_u64(&row->calls, 0);
	pg_atomic_init_u64(&row->rows, 0);
	pg_atomic_init_u64(&row->groups, 0);
	pg_atomic_init_u64(&row->microseconds, 0);
	pg_atomic_init_u64(&row->last, 0);
	pg_atomic_init_u64(&row->query_id, 0);
	return row;
}

static uint32
hash_key(const RowKey *key)
{
	return hash_bytes((const unsigned char *) key, sizeof(*key));
}

/* Under the exclusive lock: the row of what has none of its own; EVENTS rows are kept for these. */
static StatsRow *
other_reasons(StatsEvent event)
{
	RowKey key;
	uint32 hash;
	StatsRow *row;

	make_key(&key, &(StatsKey){.event = event, .reason = "other reasons"}, InvalidOid, InvalidOid);
	hash = hash_key(&key);
	row = find_row(&key, hash);
	return row ? row : set_row(&shared->rows[shared->nrows++], &key, hash);
}

/* The rows of a role in a database. */
typedef struct Share
{
	Oid database;
	Oid role;
	int rows;
} Share;

static Share *
find_share(Share *shares, int *n, Oid database, Oid role)
{
	for (int i = 0; i < *n; i++)
		if (shares[i].database == database && shares[i].role == role)
			return &shares[i];
	shares[*n] = (Share){database, role, 0};
	return &shares[(*n)++];
}

/*
 * Under the lock of a full table: the row that one of this database and role may replace, the least
 * recently used one of whoever has the most; NULL if they have an equal share already.
 */
static StatsRow *
find_replaceable(Oid database, Oid role)
{
	Share shares[ROWS + 1];
	Share *most;
	StatsRow *oldest = NULL;
	int n = 0;

	find_share(shares, &n, database, role);
	for (int i = 0; i < shared->nrows; i++)
		if (OidIsValid(shared->rows[i].key.database))
			find_share(shares, &n, shared->rows[i].key.database, shared->rows[i].key.role)->rows++;
	most = shares;
	for (int i = 1; i < n; i++)
		if (shares[i].rows > most->rows)
			most = &shares[i];
	if (shares[0].rows + 1 >= most->rows)
		return NULL;
	for (int i = 0; i < shared->nrows; i++)
	{
		StatsRow *row = &shared->rows[i];

		if (row->key.database == most->database && row->key.role == most->role &&
			(oldest == NULL || pg_atomic_read_u64(&row->last) < pg_atomic_read_u64(&oldest->last)))
			oldest = row;
	}
	return oldest;
}

static void
add_counts(StatsRow *row, uint64 calls, uint64 rows, uint64 groups, uint64 microseconds)
{
	pg_atomic_fetch_add_u64(&row->calls, calls);
	pg_atomic_fetch_add_u64(&row->rows, rows);
	pg_atomic_fetch_add_u64(&row->groups, groups);
	pg_atomic_fetch_add_u64(&row->microseconds, microseconds);
}

/* Under the exclusive lock. */
static StatsRow *
find_or_add_row(const RowKey *key, uint32 hash)
{
	StatsRow *row = find_row(key, hash);
	StatsRow *others;

	if (row)
		return row;
	if (shared->nrows < ROWS - EVENTS)
		return set_row(&shared->rows[shared->nrows++], key, hash);
	row = find_replaceable(key->database, key->role);
	if (row == NULL)
		return other_reasons(key->event);
	others = other_reasons(row->key.event);
	add_counts(others, pg_atomic_read_u64(&row->calls), pg_atomic_read_u64(&row->rows),
			   pg_atomic_read_u64(&row->groups), pg_atomic_read_u64(&row->microseconds));
	pg_atomic_write_u64(&others->last,
						Max(pg_atomic_read_u64(&others->last), pg_atomic_read_u64(&row->last)));
	return set_row(row, key, hash);
}

void
stats_add(const StatsKey *key, const StatsCount *count)
{
	RowKey wanted;
	StatsRow *row;
	uint32 hash;

	if (!find_table())
		return;
	make_key(&wanted, key, MyDatabaseId, GetUserId());
	hash = hash_key(&wanted);
	LWLockAcquire(&shared->lock, LW_SHARED);
	row = find_row(&wanted, hash);
	if (row == NULL)
	{
		LWLockRelease(&shared->lock);
		LWLockAcquire(&shared->lock, LW_EXCLUSIVE);
		row = find_or_add_row(&wanted, hash);
	}
	add_counts(row, count->calls, count->rows, count->groups, (int64) (count->ms * 1000));
	pg_atomic_write_u64(&row->last, GetCurrentTimestamp());
	if (count->query_id != 0)
		pg_atomic_write_u64(&row->query_id, count->query_id);
	LWLockRelease(&shared->lock);
}

/* ---- the view's rows ---------------------------------------------------------- */

static const char *const events[EVENTS] = {[STATS_TAKEN] = "taken",
										   [STATS_ENGINE] = "engine",
										   [STATS_FEED] = "feed",
										   [STATS_REFUSED] = "refused"};

static void
put_text(Datum *values, bool *nulls, int n, const char *text)
{
	nulls[n] = text[0] == '\0';
	if (!nulls[n])
		values[n] = CStringGetTextDatum(text);
}

/*
 * A reason with names in another database's encoding, of which a conversion may fail: their other
 * letters become '?'.
 */
static void
make_readable(RowKey *key)
{
	if (key->encoding == ASCII || key->encoding == GetDatabaseEncoding())
		return;
	for (char *c = key->reason; *c; c++)
		if (IS_HIGHBIT_SET(*c))
			*c = '?';
}

/* May the user see a reason?  One that is not there hides nothing. */
static bool
may_see_reason(const RowKey *key, bool may_see_all)
{
	return may_see_all || key->reason[0] == '\0' || !OidIsValid(key->database) ||
		has_privs_of_role(GetUserId(), key->role);
}

/* Counters of runs mean nothing for what was not run. */
static void
put_row(ReturnSetInfo *rsinfo, StatsRow *row, TimestampTz since, bool may_see_queries)
{
	bool ran = row->key.event != STATS_REFUSED;
	int64 query_id = pg_atomic_read_u64(&row->query_id);
	Datum values[14] = {0};
	bool nulls[14] = {0};
	int n = 5;

	put_text(values, nulls, 0, events[row->key.event]);
	put_text(values, nulls, 1, row->key.engine);
	put_text(values, nulls, 2, row->key.feed);
	put_text(values, nulls, 3, row->key.strategy);
	put_text(values, nulls, 4,
			 may_see_reason(&row->key, may_see_queries) ? row->key.reason :
														  "<insufficient privilege>");
	values[n++] = Int64GetDatum(pg_atomic_read_u64(&row->calls));
	for (int i = n; i < n + 3; i++)
		nulls[i] = !ran;
	values[n++] = Int64GetDatum(pg_atomic_read_u64(&row->rows));
	values[n++] = Int64GetDatum(pg_atomic_read_u64(&row->groups));
	values[n++] = Float8GetDatum(pg_atomic_read_u64(&row->microseconds) / 1000.0);
	values[n++] = TimestampTzGetDatum(pg_atomic_read_u64(&row->last));
	nulls[n] = query_id == 0 || !may_see_queries;
	values[n++] = Int64GetDatum(query_id);
	values[n++] = TimestampTzGetDatum(since);
	nulls[n] = nulls[n + 1] = !OidIsValid(row->key.database);
	values[n++] = ObjectIdGetDatum(row->key.database);
	values[n++] = ObjectIdGetDatum(row->key.role);
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}

Datum
gpuagg_stats(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	SharedStats *copy;
	bool may_see_queries = has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS);

	InitMaterializedSRF(fcinfo, 0);
	if (!find_table())
	{
		ereport(NOTICE,
				(errmsg("nothing is counted, as gpuagg was not loaded when the server started"),
				 errhint("Add gpuagg to shared_preload_libraries and restart the server.")));
		return (Datum) 0;
	}
	/* tuplestores may write files: not under the lock */
	copy = palloc(sizeof(SharedStats));
	LWLockAcquire(&shared->lock, LW_SHARED);
	memcpy(copy, shared, sizeof(SharedStats));
	LWLockRelease(&shared->lock);
	for (int i = 0; i < copy->nrows; i++)
	{
		make_readable(&copy->rows[i].key);
		put_row(rsinfo, &copy->rows[i], copy->since, may_see_queries);
	}
	return (Datum) 0;
}

Datum
gpuagg_stats_reset(PG_FUNCTION_ARGS)
{
	TimestampTz now = GetCurrentTimestamp();

	if (!find_table())
		PG_RETURN_TIMESTAMPTZ(now);
	LWLockAcquire(&shared->lock, LW_EXCLUSIVE);
	shared->nrows = 0;
	shared->since = now;
	LWLockRelease(&shared->lock);
	PG_RETURN_TIMESTAMPTZ(now);
}
