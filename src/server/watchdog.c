/*
 * watchdog.c
 *	  Ends the server when a device call does not return.
 *
 * A device that hangs would hold its sessions for ever, and with them whoever
 * waits for a query that they share; another process, which the supervisor
 * starts, may have a device that works.
 *
 * Time is counted in ticks of the watching thread, so that none passes while the
 * process is stopped.
 */
#include <stdlib.h>
#include <unistd.h>

#include "server.h"

/* The longest calls that are right, sorts of 2^31 rows among those of other sessions, take seconds. */
int			watchdog_seconds = 180;

/* A thread's device call. */
typedef struct Watch
{
	struct Watch *next;
	atomic_uint began;			/* tick, or 0: none */
} Watch;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;	/* of the list */
static Watch *watches;
static _Thread_local Watch *mine;

static atomic_uint ticks = 1;

bool
watch_thread(void)
{
	mine = calloc(1, sizeof(*mine));
	if (mine == NULL)
		return false;
	pthread_mutex_lock(&lock);
	mine->next = watches;
	watches = mine;
	pthread_mutex_unlock(&lock);
	return true;
}

void
unwatch_thread(void)
{
	if (mine == NULL)
		return;
	pthread_mutex_lock(&lock);
	for (Watch **at = &watches; *at; at = &(*at)->next)
		if (*at == mine)
		{
			*at = mine->next;
			break;
		}
	pthread_mutex_unlock(&lock);
	free(mine);
	mine = NULL;
}

void
watch_begin(void)
{
	if (mine)
		atomic_store(&mine->began, atomic_load(&ticks));
}

DeviceStatus
watch_end(DeviceStatus status)
{
	if (mine)
		atomic_store(&mine->began, 0);
	return status;
}

/* Has a call begun too many ticks ago? */
static bool
is_late(unsigned now)
{
	bool		late = false;

	pthread_mutex_lock(&lock);
	for (Watch *w = watches; w; w = w->next)
	{
		unsigned	began = atomic_load(&w->began);

		late |= began != 0 && now - began > (unsigned) watchdog_seconds;
	}
	pthread_mutex_unlock(&lock);
	return late;
}

static void *
watchdog_main(void *arg)
{
	(void) arg;
	for (;;)
	{
		unsigned	now;

		sleep(1);
		now = atomic_fetch_add(&ticks, 1) + 1;
		if (is_late(now))
			server_abandon("a call of the GPU does not return");
	}
	return NULL;
}

bool
watchdog_start(void)
{
	pthread_t	thread;

	if (pthread_create(&thread, NULL, watchdog_main, NULL) != 0)
		return false;
	pthread_detach(thread);
	return true;
}
