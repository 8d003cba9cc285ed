/*
 * stats.c
 *	  Counters of the whole server, for the view gpuagg_stats: which custom scans have run and
 *	  how, and why others have not.
 *
 * A table in shared memory has a row for each combination of database, role, event, engine, feed,
 * strategy and reason since the start of the server or the last reset.  Reasons may name types,
 * functions and errors of devices, so their number is not limited.
 *
 * When the table is full, a new row may replace another one.  Each role in a database has an equal
 * quota of rows.  If a role is below it, its new row replaces the least recently used row of the
 * role with the most rows.  Everything else is counted in one row for each event, "other reasons",
 * without database and role.  So nobody can fill the table for others.
 *
 * Reasons may name objects of a database.  They are visible to the role whose queries caused them,
 * to roles that have its privileges, and to members of pg_read_all_stats.
 *
 * Rows are added and removed with the lock held exclusively.  Counters are atomic and change with
 * the lock shared.  They serve to compare workloads: a crash loses them, as it loses those of
 * pg_stat_statements.
 *
 * From PostgreSQL 17 on, the table exists however the library was loaded.  Before 17, it must be in
 * shared_preload_libraries.
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

#include "common/build_id.h"
#include "common/compat.h"
#include "common/stats.h"

PG_FUNCTION_INFO_V1(gpuagg_stats);
PG_FUNCTION_INFO_V1(gpuagg_stats_reset);

/* Size of the table. One row for each event is reserved for "other reasons". */
#define ROWS 1024
#define EVENTS (STATS_REFUSED + 1)

/* The key of a row. Keys are compared as bytes. */
typedef struct RowKey
{
	StatsEvent event;
	Oid database; /* InvalidOid: "other reasons" */
	Oid role;
	char engine[16];
	char feed[16];
	char strategy[16];
	char reason[192];
	int encoding; /* encoding of the reason, which other databases may show; or ASCII */
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
	pg_atomic_uint64 last; /* TimestampTz of the last change */
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

/* Initializes new memory as a table without rows. */
static void
init_table(void *memory)
{
	SharedStats *made = memory;

	memset(made, 0, sizeof(*made));
	LWLockInitialize(&made->lock, compat_new_tranche("gpuagg stats"));
	made->since = GetCurrentTimestamp();
}

/* The shmem_request_hook. */
static void
request_memory(void)
{
	if (previous_request)
		previous_request();
	RequestAddinShmemSpace(MAXALIGN(sizeof(SharedStats)));
}

/* The shmem_startup_hook: finds or creates the table. */
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
	compat_register_tranche(shared->lock.tranche, "gpuagg stats");
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

/* Returns whether there is a table; creates it if possible. */
static bool
ensure_table(void)
{
	if (shared == NULL && IsUnderPostmaster)
	{
		shared =
			compat_named_segment(build_id_append("gpuagg stats"), sizeof(SharedStats), init_table);
		if (shared)
			compat_register_tranche(shared->lock.tranche, "gpuagg stats");
	}
	return shared != NULL;
}

/* ---- counting ------------------------------------------------------------------ */

/* Copies a text, truncated to whole characters in size - 1 bytes; leaves *to as it is for NULL. */
static void
copy_text(char *to, size_t size, const char *from)
{
	if (from)
		strlcpy(to, from, pg_mbcliplen(from, strlen(from), size - 1) + 1);
}

/*
 * Sets *key to the key of a row.  All other bytes are 0, also padding and what follows a text,
 * because keys are compared as bytes.
 */
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

/* Returns the row with this key, or NULL. The lock must be held. */
static StatsRow *
find_row(const RowKey *key, uint32 hash)
{
	for (int i = 0; i < shared->nrows; i++)
		if (shared->rows[i].hash == hash && memcmp(&shared->rows[i].key, key, sizeof(*key)) == 0)
			return &shared->rows[i];
	return NULL;
}

/* Gives a row this key and counters of 0; returns the row. The lock must be held exclusively. */
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

/*
 * Returns the row for an event's "other reasons", which is added if it is new; EVENTS rows are
 * reserved for these.  The lock must be held exclusively.
 */
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

/* Number of rows of a role in a database. */
typedef struct Share
{
	Oid database;
	Oid role;
	int rows;
} Share;

/* Returns the entry of a role in a database among *n shares; adds one with 0 rows if it is new. */
static Share *
lookup_or_add_share(Share *shares, int *n, Oid database, Oid role)
{
	for (int i = 0; i < *n; i++)
		if (shares[i].database == database && shares[i].role == role)
			return &shares[i];
	shares[*n] = (Share){database, role, 0};
	return &shares[(*n)++];
}

/*
 * Returns the row of a full table that a new row of this database and role may replace: the least
 * recently used row of the role with the most rows.  NULL if this role already has an equal quota.
 * The lock must be held.
 */
static StatsRow *
find_replaceable(Oid database, Oid role)
{
	Share shares[ROWS + 1];
	Share *most;
	StatsRow *oldest = NULL;
	int n = 0;

	lookup_or_add_share(shares, &n, database, role);
	for (int i = 0; i < shared->nrows; i++)
		if (OidIsValid(shared->rows[i].key.database))
			lookup_or_add_share(shares, &n, shared->rows[i].key.database, shared->rows[i].key.role)
				->rows++;
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

/* Adds to the row's counters. The lock must be held, at least shared. */
static void
add_counts(StatsRow *row, uint64 calls, uint64 rows, uint64 groups, uint64 microseconds)
{
	pg_atomic_fetch_add_u64(&row->calls, calls);
	pg_atomic_fetch_add_u64(&row->rows, rows);
	pg_atomic_fetch_add_u64(&row->groups, groups);
	pg_atomic_fetch_add_u64(&row->microseconds, microseconds);
}

/*
 * Returns the row with this key; adds it if it is new.  If there is no room, it replaces another
 * row, or the row of "other reasons" is returned.  The lock must be held exclusively.
 */
static StatsRow *
lookup_or_add_row(const RowKey *key, uint32 hash)
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

	if (!ensure_table())
		return;
	make_key(&wanted, key, MyDatabaseId, GetUserId());
	hash = hash_key(&wanted);
	LWLockAcquire(&shared->lock, LW_SHARED);
	row = find_row(&wanted, hash);
	if (row == NULL)
	{
		LWLockRelease(&shared->lock);
		LWLockAcquire(&shared->lock, LW_EXCLUSIVE);
		row = lookup_or_add_row(&wanted, hash);
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

/* Sets column n of a result row to a text, or to NULL if the text is empty. */
static void
put_text(Datum *values, bool *nulls, int n, const char *text)
{
	nulls[n] = text[0] == '\0';
	if (!nulls[n])
		values[n] = CStringGetTextDatum(text);
}

/*
 * Replaces letters of a reason that are in another database's encoding by '?'.  A conversion might
 * fail.
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

/* Returns whether the user may see a reason. An empty one is visible to everyone. */
static bool
may_see_reason(const RowKey *key, bool may_see_all)
{
	return may_see_all || key->reason[0] == '\0' || !OidIsValid(key->database) ||
		has_privs_of_role(GetUserId(), key->role);
}

/* Adds a row to the view's result.  Counters of scans are NULL for events without a scan. */
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
	if (!ensure_table())
	{
		ereport(NOTICE,
				(errmsg("nothing is counted, as gpuagg was not loaded when the server started"),
				 errhint("Add gpuagg to shared_preload_libraries and restart the server.")));
		return (Datum) 0;
	}
	/* not with the lock held, because tuplestores may write files */
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

	if (!ensure_table())
		PG_RETURN_TIMESTAMPTZ(now);
	LWLockAcquire(&shared->lock, LW_EXCLUSIVE);
	shared->nrows = 0;
	shared->since = now;
	LWLockRelease(&shared->lock);
	PG_RETURN_TIMESTAMPTZ(now);
}
