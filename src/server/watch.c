/*
 * watch.c
 *	  Detects devices that hang: that have work but complete none of it.
 *
 * A session registers each message while it handles it. On a busy device messages are completed all
 * the time, however long each of them waits. If the device or its driver hangs, no message is
 * completed.
 */
#include <pthread.h>
#include <time.h>

#include "server/server.h"

/*
 * While some kernels hang, messages of new sessions may still be completed. So a message that takes
 * t ms counts like a device that has completed nothing for t / LONG_MESSAGE ms.
 */
#define LONG_MESSAGE 5

/*
 * One place for each device, and one for messages of sessions that have no device yet (pinning
 * memory, for example).
 */
#define PLACES (WIRE_MAX_DEVICES + 1)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Watch *running;
static int64_t last_end[PLACES];

static int64_t
now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void
watch_begin(Watch *watch, int device)
{
	watch->place = device >= 0 ? device : WIRE_MAX_DEVICES;
	watch->since = now_ms();
	pthread_mutex_lock(&lock);
	watch->next = running;
	running = watch;
	pthread_mutex_unlock(&lock);
}

void
watch_end(Watch *watch)
{
	Watch **at = &running;

	pthread_mutex_lock(&lock);
	while (*at != watch)
		at = &(*at)->next;
	*at = watch->next;
	last_end[watch->place] = now_ms();
	pthread_mutex_unlock(&lock);
}

uint64_t
watch_stalled_ms(void)
{
	int64_t now = now_ms();
	int64_t most = 0;

	pthread_mutex_lock(&lock);
	for (Watch *w = running; w; w = w->next)
	{
		int64_t end = last_end[w->place];
		int64_t stalled = now - (w->since > end ? w->since : end);
		int64_t overdue = (now - w->since) / LONG_MESSAGE;

		stalled = overdue > stalled ? overdue : stalled;
		most = stalled > most ? stalled : most;
	}
	pthread_mutex_unlock(&lock);
	return most;
}
