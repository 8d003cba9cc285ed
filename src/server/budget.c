/*
 * budget.c
 *	  Accounting of the devices: sessions, memory and its limits, and the counters of
 *	  STATUS_REPLY.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "server/server.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static WireStatus state;

/*
 * Default limit of each device: four fifths of the memory that was free at the start, or that no
 * other process uses now.
 */
static uint64_t default_limit[WIRE_MAX_DEVICES];

/* gpuagg.device_memory_limit, in bytes; 0: none. It may be set before the devices are opened. */
static uint64_t limit_setting;

/* Sets the devices' limits. Called with the lock held. */
static void
apply_limit(void)
{
	for (uint32_t d = 0; d < state.ndevices; d++)
		state.devices[d].limit = limit_setting > 0 && limit_setting < default_limit[d] ?
			limit_setting :
			default_limit[d];
}

void
budget_start(const WireStatus *devices)
{
	pthread_mutex_lock(&lock);
	state = *devices;
	state.pid = getpid();
	for (uint32_t d = 0; d < state.ndevices; d++)
		default_limit[d] = state.devices[d].limit;
	apply_limit();
	pthread_mutex_unlock(&lock);
}

void
budget_set_limit(uint64_t bytes)
{
	pthread_mutex_lock(&lock);
	limit_setting = bytes;
	apply_limit();
	pthread_mutex_unlock(&lock);
}

void
budget_set_available(int device, uint64_t bytes)
{
	pthread_mutex_lock(&lock);
	default_limit[device] = bytes / 5 * 4;
	apply_limit();
	pthread_mutex_unlock(&lock);
}

int
budget_attach(int device)
{
	pthread_mutex_lock(&lock);
	if (device < 0)
	{
		device = 0;
		for (uint32_t d = 1; d < state.ndevices; d++)
			if (state.devices[d].sessions < state.devices[device].sessions)
				device = d;
	}
	state.devices[device].sessions++;
	state.sessions++;
	pthread_mutex_unlock(&lock);
	return device;
}

void
budget_detach(int device)
{
	pthread_mutex_lock(&lock);
	state.devices[device].sessions--;
	state.sessions--;
	pthread_mutex_unlock(&lock);
}

bool
budget_take(int device, uint64_t bytes)
{
	WireDevice *d = &state.devices[device];
	bool ok;

	pthread_mutex_lock(&lock);
	ok = d->used <= d->limit && bytes <= d->limit - d->used;
	if (ok)
	{
		d->used += bytes;
		if (d->used > d->peak)
			d->peak = d->used;
	}
	pthread_mutex_unlock(&lock);
	return ok;
}

void
budget_give(int device, uint64_t bytes)
{
	pthread_mutex_lock(&lock);
	state.devices[device].used -= bytes;
	pthread_mutex_unlock(&lock);
}

void
budget_set_stored(int device, uint64_t bytes)
{
	pthread_mutex_lock(&lock);
	state.devices[device].stored = bytes;
	pthread_mutex_unlock(&lock);
}

const WireDevice *
budget_device(int device)
{
	return &state.devices[device];
}

uint64_t
budget_room(int device)
{
	const WireDevice *d = &state.devices[device];
	uint64_t room;

	pthread_mutex_lock(&lock);
	room = d->limit > d->used ? d->limit - d->used : 0;
	pthread_mutex_unlock(&lock);
	return room;
}

void
budget_count_query(void)
{
	pthread_mutex_lock(&lock);
	state.queries++;
	pthread_mutex_unlock(&lock);
}

void
budget_count_failure(WireFailure failure, const char *text)
{
	pthread_mutex_lock(&lock);
	state.failures++;
	if (failure == FAILURE_MEMORY)
		state.memory_failures++;
	snprintf(state.last_error, sizeof(state.last_error), "%s", text);
	pthread_mutex_unlock(&lock);
}

void
budget_status(WireStatus *status)
{
	pthread_mutex_lock(&lock);
	*status = state;
	pthread_mutex_unlock(&lock);
}
