/*
 * progress.c
 *	  The progress of scans, for the view gpuagg_progress.
 *
 * Each process that may run a scan has a slot in shared memory.  Only the process itself writes it,
 * with a few stores for each batch.  Readers take the fields one by one without a lock, so a row
 * may mix values of two moments.  In parallel scans each participant has a row, with the blocks
 * that it has read itself.  If a process has several scans, its slot shows the one that runs, or
 * ran last.
 *
 * From PostgreSQL 17 on, there are slots however the library was loaded.  Before 17, it must be in
 * shared_preload_libraries.
 */
#include "postgres.h"

#include "catalog/pg_authid.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/ipc.h"
#include "storage/proc.h"
#include "storage/shmem.h"
#include "utils/acl.h"
#include "utils/builtins.h"

#include "common/compat.h"
#include "common/progress.h"

PG_FUNCTION_INFO_V1(gpuagg_progress);

/* In the order of the view's columns. */
typedef enum ProgressCounter
{
	PROGRESS_BLOCKS_DONE,
	PROGRESS_BLOCKS_TOTAL,
	PROGRESS_ROWS,
	PROGRESS_GROUPS,
	PROGRESS_PHASE
} ProgressCounter;

#define PROGRESS_COUNTERS (PROGRESS_PHASE + 1)

typedef struct ProgressSlot
{
	pg_atomic_uint32 pid; /* 0: no scan */
	Oid database;
	Oid role;
	Oid relation;
	pg_atomic_uint64 counters[PROGRESS_COUNTERS];
} ProgressSlot;

struct Progress
{
	Progress *outer; /* the scan that was entered before */
	Oid role;
	Oid relation;
	uint64 counters[PROGRESS_COUNTERS];
	MemoryContextCallback callback;
};

static ProgressSlot *slots; /* NULL: no shared memory */
static Progress *current;   /* the scan that was entered last and has not been left */
static Progress *shown;     /* the scan in this process's slot */
static shmem_request_hook_type previous_request;
static shmem_startup_hook_type previous_startup;

/* ---- shared memory ----------------------------------------------------------- */

/* Returns the number of slots: one for each process that can have a PGPROC. */
static int
slot_count(void)
{
	return MaxBackends + NUM_AUXILIARY_PROCS;
}

static Size
slots_size(void)
{
	return mul_size(slot_count(), sizeof(ProgressSlot));
}

/* Initializes new memory as slots without scans. */
static void
init_slots(void *memory)
{
	ProgressSlot *made = memory;

	memset(made, 0, slots_size());
	for (int i = 0; i < slot_count(); i++)
	{
		pg_atomic_init_u32(&made[i].pid, 0);
		for (int c = 0; c < PROGRESS_COUNTERS; c++)
			pg_atomic_init_u64(&made[i].counters[c], 0);
	}
}

/* The shmem_request_hook. */
static void
request_memory(void)
{
	if (previous_request)
		previous_request();
	RequestAddinShmemSpace(slots_size());
}

/* The shmem_startup_hook: finds or creates the slots. */
static void
start_memory(void)
{
	bool found;

	if (previous_startup)
		previous_startup();
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	slots = ShmemInitStruct("gpuagg progress", slots_size(), &found);
	if (!found)
		init_slots(slots);
	LWLockRelease(AddinShmemInitLock);
}

void
progress_init(void)
{
	if (!process_shared_preload_libraries_in_progress)
		return;
	previous_request = shmem_request_hook;
	shmem_request_hook = request_memory;
	previous_startup = shmem_startup_hook;
	shmem_startup_hook = start_memory;
}

/* ---- reporting --------------------------------------------------------------- */

/* Returns whether there are slots; creates them if possible. */
static bool
ensure_slots(void)
{
	if (slots == NULL && IsUnderPostmaster)
		/*
		 * The name has the version: after an upgrade, sessions with the old library may use other
		 * slots.
		 */
		slots = compat_named_segment("gpuagg progress " GPUAGG_VERSION, slots_size(), init_slots);
	return slots != NULL;
}

/* Copies a scan's fields to this process's slot, which then shows it; NULL: it shows no scan. */
static void
show_scan(Progress *progress)
{
	int number = MyProc - ProcGlobal->allProcs;
	ProgressSlot *slot;

	shown = progress;
	if (slots == NULL || number >= slot_count())
		return;
	slot = &slots[number];
	if (progress)
	{
		slot->database = MyDatabaseId;
		slot->role = progress->role;
		slot->relation = progress->relation;
		for (int c = 0; c < PROGRESS_COUNTERS; c++)
			pg_atomic_write_u64(&slot->counters[c], progress->counters[c]);
		pg_write_barrier();
	}
	pg_atomic_write_u32(&slot->pid, progress ? MyProcPid : 0);
}

/* Called when a scan's memory context is deleted: forgets the scan. */
static void
end_callback(void *arg)
{
	Progress *progress = arg;

	/* after an error in nested scans, the context of the outer one may be deleted first */
	for (Progress *p = current; p; p = p->outer)
		if (p == progress)
			current = p->outer;
	if (shown == progress)
		show_scan(current);
}

Progress *
progress_create(MemoryContext cxt)
{
	Progress *progress = MemoryContextAllocZero(cxt, sizeof(Progress));

	(void) ensure_slots();
	progress->role = GetUserId();
	progress->callback.func = end_callback;
	progress->callback.arg = progress;
	MemoryContextRegisterResetCallback(cxt, &progress->callback);
	return progress;
}

void
progress_enter(Progress *progress)
{
	progress->outer = current;
	current = progress;
	show_scan(progress);
}

void
progress_leave(Progress *progress)
{
	current = progress->outer;
	progress->outer = NULL;
	if (current)
		show_scan(current);
}

/* Sets a counter of the current scan, also in this process's slot. */
static void
set_counter(ProgressCounter c, uint64 value)
{
	int number = MyProc - ProcGlobal->allProcs;

	if (current == NULL)
		return;
	current->counters[c] = value;
	if (slots && number < slot_count())
		pg_atomic_write_u64(&slots[number].counters[c], value);
}

void
progress_phase(ProgressPhase phase)
{
	set_counter(PROGRESS_PHASE, phase);
}

void
progress_table(Oid relation, uint64 blocks)
{
	if (current == NULL)
		return;
	current->relation = relation;
	current->counters[PROGRESS_BLOCKS_TOTAL] = blocks;
	show_scan(current);
}

void
progress_update(uint64 blocks_done, uint64 rows)
{
	set_counter(PROGRESS_BLOCKS_DONE, blocks_done);
	set_counter(PROGRESS_ROWS, rows);
}

void
progress_groups(uint64 groups)
{
	set_counter(PROGRESS_GROUPS, groups);
}

/* ---- the view's rows ---------------------------------------------------------- */

static const char *const phases[] = {[PROGRESS_INITIALIZING] = "initializing",
									 [PROGRESS_SCANNING] = "scanning",
									 [PROGRESS_SORTING] = "sorting",
									 [PROGRESS_MERGING] = "merging groups",
									 [PROGRESS_RETURNING] = "returning groups",
									 [PROGRESS_CACHING] = "caching columns"};

/*
 * SQL function: returns a row for each scan that the user may see.  In version 1.0 of the
 * extension, the view has no column for the phase.
 */
Datum
gpuagg_progress(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;

	InitMaterializedSRF(fcinfo, 0);
	if (!ensure_slots())
		ereport(
			NOTICE,
			(errmsg("progress is not reported, as gpuagg was not loaded when the server started"),
			 errhint("Add gpuagg to shared_preload_libraries and restart the server.")));
	for (int i = 0; slots && i < slot_count(); i++)
	{
		ProgressSlot *slot = &slots[i];
		uint32 pid = pg_atomic_read_u32(&slot->pid);
		Datum values[8];
		bool nulls[8] = {0};
		int n = 0;

		if (pid == 0)
			continue;
		pg_read_barrier();
		/* like pg_stat_activity: other roles' scans are visible to members of pg_read_all_stats */
		if (!has_privs_of_role(GetUserId(), slot->role) &&
			!has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS))
			continue;
		values[n++] = Int32GetDatum(pid);
		values[n++] = ObjectIdGetDatum(slot->database);
		values[n++] = ObjectIdGetDatum(slot->relation);
		for (int c = 0; c < PROGRESS_PHASE; c++)
			values[n++] = Int64GetDatum(pg_atomic_read_u64(&slot->counters[c]));
		if (rsinfo->setDesc->natts > n)
			values[n] =
				CStringGetTextDatum(phases[pg_atomic_read_u64(&slot->counters[PROGRESS_PHASE])]);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}
