/*
 * spin.c
 *	  Polls for a short time before the caller sleeps.
 *
 * Sleeping and waking up takes longer than many waits: for the end of a short query's kernels, or
 * for a client's next message. But a polling processor is not available for other processes,
 * backends among them. So no thread polls where there are few processors, and at most half of the
 * processors poll at a time.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <time.h>

#include "server/server.h"

#define SPIN_NS 50000
#define SPIN_PROCESSORS 4

/* Pauses between two polls. A poll may take a lock that the producer needs. */
#define SPIN_PAUSES 16

atomic_int spin_processors;

static atomic_int spinning;

static int
count_processors(void)
{
	cpu_set_t set;

	/* a race is harmless: all threads count the same */
	if (spin_processors == 0)
		spin_processors = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
	return spin_processors;
}

static void
pause_processor(void)
{
	for (int i = 0; i < SPIN_PAUSES; i++)
#if defined(__x86_64__)
		__builtin_ia32_pause();
#else
		atomic_signal_fence(memory_order_seq_cst);
#endif
}

static int64_t
now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t) now.tv_sec * 1000000000 + now.tv_nsec;
}

bool
spin_until(bool (*found)(void *arg), void *arg)
{
	bool is = found(arg);
	int processors = count_processors();

	if (is || processors < SPIN_PROCESSORS)
		return is;
	if (atomic_fetch_add(&spinning, 1) < processors / 2)
	{
		int64_t end = now_ns() + SPIN_NS;

		do
		{
			pause_processor();
			is = found(arg);
		} while (!is && now_ns() < end);
	}
	atomic_fetch_sub(&spinning, 1);
	return is;
}
