/*
 * worker.c
 *
 * The background worker that refreshes stale ranges of cached tables of one database.
 *
 * Queries request refreshes and start the worker (cache/refresh.c); without work it exits after
 * half a minute. It refreshes each range in a transaction of its own, of some milliseconds, so
 * that no snapshot or lock is held for long. Between two ranges it sleeps several times as long as
 * it has worked.
 *
 * It does not block other sessions. It skips a table if another session holds or awaits a stronger
 * lock. It exits when another session waits for the database: DROP DATABASE and similar commands
 * wait five seconds for other sessions to end. On a standby, conflicts with recovery end it like
 * other sessions.
 *
 * It runs no code of users: columns are decoded, and nothing is computed from them.
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "catalog/pg_database.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "portability/instr_time.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "tcop/tcopprot.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "cache/forget.h"
#include "cache/refresh.h"
#include "settings.h"
#include "cache_maintenance/column_fill.h"

/* The worker sleeps so many times as long as it has worked. */
#define SLEEP_FACTOR 3
/* Without work it checks so often whether another session waits for the database, */
#define IDLE_MS 500
/* and exits after so long. */
#define LINGER_MS 30000

PGDLLEXPORT void gpuagg_cache_worker_main(Datum arg);

/* The refresh of one table. */
typedef struct Refresh
{
	CacheTableKey key;
	Oid relid;
	uint32 next;   /* next range */
	bool replaced; /* some range has been replaced */
	double work_ms;
} Refresh;

static MemoryContext work_cxt;

/* Returns the current time in ms, for measuring durations. */
static double
now_ms(void)
{
	instr_time now;

	INSTR_TIME_SET_CURRENT(now);
	return INSTR_TIME_GET_MILLISEC(now);
}

/*
 * Returns whether another session waits until the database has no sessions: to drop, move, rename
 * or copy it.
 */
static bool
database_is_wanted(void)
{
	LOCKTAG tag;

	SET_LOCKTAG_OBJECT(tag, InvalidOid, DatabaseRelationId, MyDatabaseId, 0);
	/* Each session takes this lock when it connects. */
	if (LockAcquire(&tag, RowExclusiveLock, true, true) == LOCKACQUIRE_NOT_AVAIL)
		return true;
	LockRelease(&tag, RowExclusiveLock, true);
	return false;
}

/* Sleeps for some ms. Exits if another session waits for the database, or a signal demands it. */
static void
sleep_ms(double ms)
{
	double until = now_ms() + ms;

	for (;;)
	{
		double left = until - now_ms();

		/* Between transactions there is nothing to cancel, and no code that catches the error. */
		QueryCancelPending = false;
		CHECK_FOR_INTERRUPTS();
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
		}
		if (database_is_wanted())
			proc_exit(0);
		if (left <= 0)
			return;
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 (long) Min(Max(left, 1), IDLE_MS), PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
	}
}

/* ---- one table ---------------------------------------------------------------------- */

/* Returns whether the table is still the one that was cached. */
static bool
is_same_table(const Refresh *refresh, Relation rel)
{
	CacheTableKey key;

	if (rel->rd_rel->relkind != RELKIND_RELATION && rel->rd_rel->relkind != RELKIND_MATVIEW)
		return false;
	key = cache_table_key(rel);
	return memcmp(&key, &refresh->key, sizeof(key)) == 0 && fill_unsupported_reason(rel) == NULL;
}

/*
 * Refreshes the next stale range. Returns whether to go on: false if there was no stale range, or
 * no memory.
 */
static bool
refresh_range(Refresh *refresh, Relation rel)
{
	CacheTable *table = cache_table_open(&refresh->key, NULL);
	TableFill *fill;
	bool more;

	if (table == NULL)
		return false;
	fill = fill_begin(rel, GetActiveSnapshot(), table, 0, NULL);
	more = cache_next_stale(table, fill_blocks(fill), &refresh->next);
	if (more)
	{
		refresh->replaced |= fill_range(fill, refresh->next++, false);
		more = !fill_is_full(fill);
	}
	fill_end(fill);
	return more;
}

/*
 * Calls refresh_range() in a transaction of its own, and returns its result. Returns false if the
 * table is gone, or with *later set if another session holds or awaits a stronger lock of it.
 */
static bool
refresh_in_transaction(Refresh *refresh, bool *later)
{
	Relation rel;
	bool more = false;

	SetCurrentStatementStartTimestamp();
	StartTransactionCommand();
	*later = !ConditionalLockRelationOid(refresh->relid, AccessShareLock);
	rel = *later ? NULL : try_relation_open(refresh->relid, NoLock);
	if (rel && is_same_table(refresh, rel))
	{
		char *name = quote_qualified_identifier(get_namespace_name(RelationGetNamespace(rel)),
												RelationGetRelationName(rel));

		pgstat_report_activity(STATE_RUNNING, psprintf("refreshing cached columns of %s", name));
		PushActiveSnapshot(GetTransactionSnapshot());
		more = refresh_range(refresh, rel);
		PopActiveSnapshot();
	}
	if (rel)
		relation_close(rel, AccessShareLock);
	CommitTransactionCommand();
	return more;
}

/*
 * Returns how a refresh ends after an error: after conflicts with recovery and cancellations it is
 * tried again later.
 */
static CacheRefreshed
result_after_error(int code)
{
	return code == ERRCODE_T_R_SERIALIZATION_FAILURE || code == ERRCODE_T_R_DEADLOCK_DETECTED ||
			code == ERRCODE_QUERY_CANCELED ?
		CACHE_REFRESH_LATER :
		CACHE_REFRESH_FAILED;
}

/* Error context callback: names the table that is being refreshed. */
static void
add_error_context(void *arg)
{
	Refresh *refresh = arg;

	errcontext("while refreshing cached columns of the relation with OID %u", refresh->relid);
}

/*
 * Refreshes the stale ranges of one table, with sleeps in between; returns how that ended. An error
 * ends the refresh, and is logged.
 */
static CacheRefreshed
refresh_table(Refresh *refresh)
{
	volatile CacheRefreshed how = CACHE_REFRESHED_IN_VAIN;
	volatile bool more = true;
	ErrorContextCallback context = {error_context_stack, add_error_context, refresh};

	error_context_stack = &context;
	while (more && gpuagg_cache_renew > 0)
	{
		double start = now_ms();
		bool later = false;

		PG_TRY();
		{
			more = refresh_in_transaction(refresh, &later);
			how = later           ? CACHE_REFRESH_LATER :
				refresh->replaced ? CACHE_REFRESHED :
									CACHE_REFRESHED_IN_VAIN;
		}
		PG_CATCH();
		{
			HOLD_INTERRUPTS();
			how = result_after_error(geterrcode());
			EmitErrorReport();
			AbortOutOfAnyTransaction();
			FlushErrorState();
			RESUME_INTERRUPTS();
			more = false;
		}
		PG_END_TRY();
		MemoryContextSwitchTo(work_cxt);
		pgstat_report_stat(false);
		pgstat_report_activity(STATE_IDLE, NULL);
		refresh->work_ms += now_ms() - start;
		if (more)
			sleep_ms(SLEEP_FACTOR * (now_ms() - start));
	}
	error_context_stack = context.previous;
	return how;
}

/* ---- the process ---------------------------------------------------------------------- */

/* Sets what the worker's transactions need, whatever is set for the database. */
static void
override_settings(void)
{
	SetConfigOption("default_transaction_isolation", "read committed", PGC_SUSET, PGC_S_OVERRIDE);
	SetConfigOption("zero_damaged_pages", "off", PGC_SUSET, PGC_S_OVERRIDE);
	SetConfigOption("statement_timeout", "0", PGC_SUSET, PGC_S_OVERRIDE);
	SetConfigOption("idle_in_transaction_session_timeout", "0", PGC_SUSET, PGC_S_OVERRIDE);
}

/* Main function of the worker process. arg: OID of the database. */
void
gpuagg_cache_worker_main(Datum arg)
{
	double last_work;

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnectionByOid(DatumGetObjectId(arg), InvalidOid,
											  BGWORKER_BYPASS_ALLOWCONN);
	if (!cache_worker_begin())
		proc_exit(0);
	override_settings();
	work_cxt =
		AllocSetContextCreate(TopMemoryContext, "gpuagg cache worker", ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(work_cxt);
	pgstat_report_activity(STATE_IDLE, NULL);
	last_work = now_ms();
	while (now_ms() - last_work < LINGER_MS && gpuagg_cache_renew > 0)
	{
		Refresh refresh = {0};
		long wait_ms;

		if (cache_take_refresh(&refresh.key, &refresh.relid, &wait_ms))
		{
			cache_end_refresh(&refresh.key, refresh_table(&refresh), refresh.work_ms);
			last_work = now_ms();
		}
		forget_sweep_if_due();
		MemoryContextReset(work_cxt);
		sleep_ms(wait_ms < 0 ? IDLE_MS : Min(Max(wait_ms, 1), IDLE_MS));
	}
	proc_exit(0);
}
