/*
 * state.c
 *	  The state of the GPU server in shared memory.
 *
 * Locking: one LWLock of the extension's own tranche. It is held only for copies.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/timestamp.h"

#include "settings.h"
#include "supervisor/state.h"

/* Least interval between two starts of a supervisor by sessions. */
#define ADOPTION_MS 1000

typedef struct SharedServer
{
	LWLock *lock;
	TimestampTz adopted; /* when server_is_orphaned() has last returned true */
	ServerSnapshot snapshot;
} SharedServer;

/* Set in the postmaster and inherited by fork; NULL if the library was loaded later. */
static SharedServer *shared;
static ServerState (*first_state)(char *reason, size_t size);
static shmem_request_hook_type previous_request;
static shmem_startup_hook_type previous_startup;

static void
request_memory(void)
{
	if (previous_request)
		previous_request();
	RequestAddinShmemSpace(MAXALIGN(sizeof(SharedServer)));
	RequestNamedLWLockTranche("gpuagg", 1);
}

static void
start_memory(void)
{
	bool found;

	if (previous_startup)
		previous_startup();
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	shared = ShmemInitStruct("gpuagg server", sizeof(SharedServer), &found);
	if (!found)
	{
		memset(shared, 0, sizeof(SharedServer));
		shared->lock = &GetNamedLWLockTranche("gpuagg")->lock;
		shared->snapshot.state =
			first_state(shared->snapshot.reason, sizeof(shared->snapshot.reason));
	}
	LWLockRelease(AddinShmemInitLock);
}

void
server_state_init(ServerState (*first)(char *reason, size_t size))
{
	if (!process_shared_preload_libraries_in_progress)
		return;
	first_state = first;
	previous_request = shmem_request_hook;
	shmem_request_hook = request_memory;
	previous_startup = shmem_startup_hook;
	shmem_startup_hook = start_memory;
}

/* Returns whether there is neither a server nor a supervisor that would start one. */
static bool
is_orphaned(const ServerSnapshot *snapshot)
{
	return snapshot->supervisor == 0 &&
		(snapshot->state == SERVER_OFF || snapshot->state == SERVER_UNAVAILABLE);
}

void
server_snapshot(ServerSnapshot *snapshot)
{
	SharedServer *s = shared;

	if (s == NULL)
	{
		memset(snapshot, 0, sizeof(*snapshot));
		snapshot->state = SERVER_ABSENT;
		return;
	}
	LWLockAcquire(s->lock, LW_SHARED);
	*snapshot = s->snapshot;
	LWLockRelease(s->lock);

	/* without a supervisor, no process has recorded that the setting is off */
	if (is_orphaned(snapshot) && !gpuagg_server)
	{
		snapshot->state = SERVER_OFF;
		snapshot->reason[0] = '\0';
	}
}

const char *
server_state_name(ServerState state)
{
	static const char *const names[] = {"absent", "off",         "starting",
										"ready",  "unavailable", "restarting"};

	return names[state];
}

bool
server_ready(char *reason, size_t reason_size)
{
	ServerState state = SERVER_ABSENT;
	char last[sizeof(shared->snapshot.reason)] = "";

	/* not by server_snapshot(): the snapshot is large, and a query checks several times */
	if (shared)
	{
		LWLockAcquire(shared->lock, LW_SHARED);
		state =
			is_orphaned(&shared->snapshot) && !gpuagg_server ? SERVER_OFF : shared->snapshot.state;
		if (state == SERVER_UNAVAILABLE)
			strlcpy(last, shared->snapshot.reason, sizeof(last));
		LWLockRelease(shared->lock);
	}
	switch (state)
	{
		case SERVER_READY:
			return true;
		case SERVER_ABSENT:
			strlcpy(reason, "gpuagg is not in shared_preload_libraries", reason_size);
			break;
		case SERVER_OFF:
			strlcpy(reason, "gpuagg.server is off", reason_size);
			break;
		case SERVER_UNAVAILABLE:
			snprintf(reason, reason_size, "no GPU: %s", last);
			break;
		default:
			snprintf(reason, reason_size, "the GPU server is %s", server_state_name(state));
	}
	return false;
}

void
server_device_name(char *name, size_t size)
{
	char first[sizeof(shared->snapshot.status.devices[0].name)] = "";
	uint32 n = 0;

	if (shared)
	{
		LWLockAcquire(shared->lock, LW_SHARED);
		n = shared->snapshot.status.ndevices;
		memcpy(first, shared->snapshot.status.devices[0].name, sizeof(first));
		LWLockRelease(shared->lock);
	}
	if (n > 1)
		snprintf(name, size, "%u x %s", n, first);
	else
		strlcpy(name, first, size);
}

void
server_note_error(const char *text)
{
	SharedServer *s = shared;

	if (s == NULL)
		return;
	LWLockAcquire(s->lock, LW_EXCLUSIVE);
	strlcpy(s->snapshot.reason, text, sizeof(s->snapshot.reason));
	LWLockRelease(s->lock);
}

void
server_set_state(ServerState state, const char *reason)
{
	SharedServer *s = shared;

	LWLockAcquire(s->lock, LW_EXCLUSIVE);
	s->snapshot.state = state;
	if (reason)
		strlcpy(s->snapshot.reason, reason, sizeof(s->snapshot.reason));
	LWLockRelease(s->lock);
}

void
server_set_ready(const WireStatus *status)
{
	SharedServer *s = shared;

	LWLockAcquire(s->lock, LW_EXCLUSIVE);
	s->snapshot.state = SERVER_READY;
	s->snapshot.status = *status;
	LWLockRelease(s->lock);
}

void
server_set_build(const char *text)
{
	SharedServer *s = shared;

	LWLockAcquire(s->lock, LW_EXCLUSIVE);
	strlcpy(s->snapshot.build, text, sizeof(s->snapshot.build));
	LWLockRelease(s->lock);
}

void
server_forget_devices(void)
{
	SharedServer *s = shared;

	LWLockAcquire(s->lock, LW_EXCLUSIVE);
	memset(&s->snapshot.status, 0, sizeof(s->snapshot.status));
	LWLockRelease(s->lock);
}

bool
server_claim(void)
{
	SharedServer *s = shared;
	bool mine;

	LWLockAcquire(s->lock, LW_EXCLUSIVE);
	mine = s->snapshot.supervisor == 0;
	if (mine)
		s->snapshot.supervisor = MyProcPid;
	LWLockRelease(s->lock);
	return mine;
}

void
server_resign(bool for_good)
{
	SharedServer *s = shared;

	LWLockAcquire(s->lock, LW_EXCLUSIVE);
	s->snapshot.supervisor = 0;
	if (!for_good)
	{
		s->snapshot.state = SERVER_RESTARTING;
		strlcpy(s->snapshot.reason, "the supervisor ended", sizeof(s->snapshot.reason));
	}
	LWLockRelease(s->lock);
}

bool
server_is_orphaned(void)
{
	SharedServer *s = shared;
	TimestampTz now;
	bool orphaned;

	if (s == NULL)
		return false;
	LWLockAcquire(s->lock, LW_SHARED);
	orphaned = is_orphaned(&s->snapshot);
	LWLockRelease(s->lock);
	if (!orphaned)
		return false;
	now = GetCurrentTimestamp();
	LWLockAcquire(s->lock, LW_EXCLUSIVE);
	orphaned =
		is_orphaned(&s->snapshot) && TimestampDifferenceExceeds(s->adopted, now, ADOPTION_MS);
	if (orphaned)
		s->adopted = now;
	LWLockRelease(s->lock);
	return orphaned;
}

void
server_count_restart(void)
{
	SharedServer *s = shared;

	LWLockAcquire(s->lock, LW_EXCLUSIVE);
	s->snapshot.restarts++;
	LWLockRelease(s->lock);
}
