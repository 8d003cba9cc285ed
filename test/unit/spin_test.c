/*
 * spin_test.c
 *	  Tests spin_until() (server/spin.c): how long a thread of the GPU server polls, and how many
 *	  threads poll concurrently.
 *
 * Conditions are functions that count their calls. The test includes the source file and sets the
 * number of processors itself.
 */
#define _GNU_SOURCE
#include "unit.h"

#include <stdatomic.h>
#include <unistd.h>

#include "server/spin.c"

#define THREADS 16

static int polls;

/* A condition that becomes true when it is polled for the third time. */
static bool
true_at_third_poll(void *arg)
{
	(void) arg;
	return ++polls == 3;
}

/* A condition that is never true. */
static bool
never_true(void *arg)
{
	atomic_fetch_add((atomic_int *) arg, 1);
	return false;
}

static void
test_found(void)
{
	spin_processors = 8;
	polls = 2;
	CHECK(spin_until(true_at_third_poll, NULL) && polls == 3,
		  "a condition that is true is polled once");
	polls = 0;
	CHECK(spin_until(true_at_third_poll, NULL) && polls == 3,
		  "a condition that becomes true is found");
}

static void
test_not_found(void)
{
	atomic_int n = 0;
	int64_t start = now_ns();

	spin_processors = 8;
	CHECK(!spin_until(never_true, &n) && n > 1, "%d polls, not several", n);
	CHECK(now_ns() - start >= SPIN_NS, "polling took only %d ns", (int) (now_ns() - start));
	n = 0;
	spin_processors = SPIN_PROCESSORS - 1;
	CHECK(!spin_until(never_true, &n) && n == 1, "%d polls on few processors, not 1", n);
}

static atomic_int polling_threads, /* threads that have polled more than once */
	most_polling_threads;

/* Returns true at a thread's second poll, after all threads have made their first. */
static bool
true_after_all_polled(void *arg)
{
	static atomic_int arrived;
	int *npolls = arg;

	if (++*npolls == 1)
		atomic_fetch_add(&arrived, 1);
	if (*npolls == 2)
	{
		int now = atomic_fetch_add(&polling_threads, 1) + 1;

		if (now > most_polling_threads)
			most_polling_threads = now;
		while (arrived < THREADS)
			usleep(100);
	}
	return *npolls == 2;
}

/* Thread: waits until all threads have polled, and checks its number of polls. */
static void *
poll_in_thread(void *arg)
{
	int npolls = 0;

	(void) arg;
	spin_until(true_after_all_polled, &npolls);
	CHECK(npolls == 1 || npolls == 2, "%d polls, not 1 or 2", npolls);
	return NULL;
}

/* With 8 processors, 4 threads poll, and all others return after their first poll. */
static void
test_concurrent(void)
{
	pthread_t threads[THREADS];

	spin_processors = 8;
	for (int t = 0; t < THREADS; t++)
		CHECK(pthread_create(&threads[t], NULL, poll_in_thread, NULL) == 0, "a thread starts");
	for (int t = 0; t < THREADS; t++)
		pthread_join(threads[t], NULL);
	CHECK(most_polling_threads == 4, "%d threads polled concurrently, not 4", most_polling_threads);
	polls = 0;
	CHECK(spin_until(true_at_third_poll, NULL) && polls == 3,
		  "a thread polls again when the others have ended");
}

int
main(void)
{
	RUN("polling ends when the condition is true", test_found);
	RUN("polling ends after its time, or at once on few processors", test_not_found);
	RUN("at most half of the processors poll concurrently", test_concurrent);
	return unit_done();
}
