/*
 * spin.c
 *	  Looks for something again and again for a moment, before the caller goes to sleep for it.
 *
 * To go to sleep and to wake up takes longer than much of what is waited for: the end of a short
 * query's kernels, or a client's next message.  Processors that look are missed by others, backends
 * among them: so where processors are few, nobody looks, and no more than half of them ever do.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <time.h>

#include "server/server.h"

#define SPIN_NS 50000
#define SPIN_PROCESSORS 4

/* Between two looks, which may take a lock that those need who make happen what is waited for. */
#define SPIN_PAUSES 16

atomic_int spin_processors;

static atomic_int spinning;

static int
count_processors(void)
{
	cpu_set_t set;

	/* any thread may find out */
	if (spin_processors == 0)
		spin_processors = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
	return spin_processors;
}

static void
rest(void)
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
			rest();
			is = found(arg);
		} while (!is && now_ns() < end);
	}
	atomic_fetch_sub(&spinning, 1);
	return is;
}
