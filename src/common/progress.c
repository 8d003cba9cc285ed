/*
 * progress.c
 *	  The progress of heap feeds, for the view gpuagg_progress.
 *
 * Each process that may run a scan has a slot in shared memory, which it alone
 * writes, a few stores a batch; readers take the fields one by one without a
 * lock, so a row may mix two moments.  In parallel scans each participant has
 * a row, with the blocks that it read itself.  Nested scans of one process
 * share its slot, and the last to report is seen.  There is no shared memory,
 * and no row, unless the library is in shared_preload_libraries.
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

#include "common/progress.h"

PG_FUNCTION_INFO_V1(gpuagg_progress);

typedef struct ProgressSlot
{
	pg_atomic_uint32 pid;		/* 0: no scan */
	Oid			database;
	Oid			role;
	Oid			relation;
	pg_atomic_uint64 blocks_total;
	pg_atomic_uint64 blocks_done;
	pg_atomic_uint64 rows;
	pg_atomic_uint64 groups;
} ProgressSlot;

static ProgressSlot *slots;		/* NULL: no shared memory */
static ProgressSlot *mine;		/* NULL: no scan */
static int	scans;				/* of this process */
static shmem_request_hook_type previous_request;
static shmem_startup_hook_type previous_startup;

/* ---- shared memory ----------------------------------------------------------- */

static int
slot_count(void)
{
	return MaxBackends + NUM_AUXILIARY_PROCS;
}

static void
request_memory(void)
{
	if (previous_request)
		previous_request();
	RequestAddinShmemSpace(mul_size(slot_count(), sizeof(ProgressSlot)));
}

static void
start_memory(void)
{
	bool		found;

	if (previous_startup)
		previous_startup();
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	slots = ShmemInitStruct("gpuagg progress", mul_size(slot_count(), sizeof(ProgressSlot)), &found);
	for (int i = 0; !found && i < slot_count(); i++)
	{
		memset(&slots[i], 0, sizeof(ProgressSlot));
		pg_atomic_init_u32(&slots[i].pid, 0);
		pg_atomic_init_u64(&slots[i].blocks_total, 0);
		pg_atomic_init_u64(&slots[i].blocks_done, 0);
		pg_atomic_init_u64(&slots[i].rows, 0);
		pg_atomic_init_u64(&slots[i].groups, 0);
	}
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

static void
end_callback(void *arg)
{
	if (scans > 0 && --scans > 0)
		return;
	if (mine)
		pg_atomic_write_u32(&mine->pid, 0);
	mine = NULL;
}

void
progress_start(MemoryContext cxt)
{
	MemoryContextCallback *callback = MemoryContextAllocZero(cxt, sizeof(MemoryContextCallback));
	int			number = MyProc - ProcGlobal->allProcs;

	callback->func = end_callback;
	MemoryContextRegisterResetCallback(cxt, callback);
	scans++;
	if (slots == NULL || number >= slot_count())
		return;
	mine = &slots[number];
	mine->database = MyDatabaseId;
	mine->role = GetUserId();
	mine->relation = InvalidOid;
	pg_atomic_write_u64(&mine->blocks_total, 0);
	progress_update(0, 0);
	progress_groups(0);
	pg_write_barrier();
	pg_atomic_write_u32(&mine->pid, MyProcPid);
}

void
progress_table(Oid relation, uint64 blocks)
{
	if (mine == NULL)
		return;
	mine->relation = relation;
	pg_atomic_write_u64(&mine->blocks_total, blocks);
}

void
progress_update(uint64 blocks_done, uint64 rows)
{
	if (mine == NULL)
		return;
	pg_atomic_write_u64(&mine->blocks_done, blocks_done);
	pg_atomic_write_u64(&mine->rows, rows);
}

void
progress_groups(uint64 groups)
{
	if (mine)
		pg_atomic_write_u64(&mine->groups, groups);
}

/* ---- the view's rows ---------------------------------------------------------- */

Datum
gpuagg_progress(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;

	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; slots && i < slot_count(); i++)
	{
		ProgressSlot *slot = &slots[i];
		uint32		pid = pg_atomic_read_u32(&slot->pid);
		Datum		values[7];
		bool		nulls[7] = {0};

		if (pid == 0)
			continue;
		pg_read_barrier();
		/* as in pg_stat_activity: others' scans are for those who may see all statistics */
		if (!has_privs_of_role(GetUserId(), slot->role) &&
			!has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS))
			continue;
		values[0] = Int32GetDatum(pid);
		values[1] = ObjectIdGetDatum(slot->database);
		values[2] = ObjectIdGetDatum(slot->relation);
		values[3] = Int64GetDatum(pg_atomic_read_u64(&slot->blocks_done));
		values[4] = Int64GetDatum(pg_atomic_read_u64(&slot->blocks_total));
		values[5] = Int64GetDatum(pg_atomic_read_u64(&slot->rows));
		values[6] = Int64GetDatum(pg_atomic_read_u64(&slot->groups));
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}
