/*
 * state.c
 *	  The state of the GPU server in shared memory.
 *
 * Locking: one LWLock of the extension's own tranche, held for copies only.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"

#include "supervisor/state.h"

typedef struct SharedServer
{
	LWLock	   *lock;
	ServerSnapshot snapshot;
} SharedServer;

/* Set in the postmaster and inherited by fork; NULL where the library was loaded later. */
static SharedServer *shared;
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
	bool		found;

	if (previous_startup)
		previous_startup();
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	shared = ShmemInitStruct("gpuagg server", sizeof(SharedServer), &found);
	if (!found)
	{
		memset(shared, 0, sizeof(SharedServer));
		shared->lock = &GetNamedLWLockTranche("gpuagg")->lock;
		shared->snapshot.state = SERVER_STARTING;
	}
	LWLockRelease(AddinShmemInitLock);
}

void
server_state_init(void)
{
	if (!process_shared_preload_libraries_in_progress)
		return;
	previous_request = shmem_request_hook;
	shmem_request_hook = request_memory;
	previous_startup = shmem_startup_hook;
	shmem_startup_hook = start_memory;
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
}

const char *
server_state_name(ServerState state)
{
	static const char *const names[] = {"absent", "off", "starting", "ready", "unavailable",
	"restarting"};

	return names[state];
}

bool
server_ready(char *reason, size_t reason_size)
{
	ServerSnapshot snapshot;

	server_snapshot(&snapshot);
	switch (snapshot.state)
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
			snprintf(reason, reason_size, "no GPU: %s", snapshot.reason);
			break;
		default:
			snprintf(reason, reason_size, "the GPU server is %s",
					 server_state_name(snapshot.state));
	}
	return false;
}

void
server_device_name(char *name, size_t size)
{
	ServerSnapshot snapshot;

	server_snapshot(&snapshot);
	if (snapshot.status.ndevices > 1)
		snprintf(name, size, "%u x %s", snapshot.status.ndevices, snapshot.status.devices[0].name);
	else
		strlcpy(name, snapshot.status.devices[0].name, size);
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
server_count_restart(void)
{
	SharedServer *s = shared;

	LWLockAcquire(s->lock, LW_EXCLUSIVE);
	s->snapshot.restarts++;
	LWLockRelease(s->lock);
}
