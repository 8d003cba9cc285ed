/*
 * spin_test.c
 *	  How long threads of the GPU server look for something before they sleep, and how many do.
 */
#define _GNU_SOURCE
#include "unit.h"

#include <stdatomic.h>
#include <unistd.h>

#include "server/spin.c"

#define THREADS 16

static int looks;

static bool
at_third(void *arg)
{
	(void) arg;
	return ++looks == 3;
}

static bool
never(void *arg)
{
	atomic_fetch_add((atomic_int *) arg, 1);
	return false;
}

static void
test_found(void)
{
	spin_processors = 8;
	looks = 2;
	CHECK(spin_until(at_third, NULL) && looks == 3, "there at once");
	looks = 0;
	CHECK(spin_until(at_third, NULL) && looks == 3, "there at the third look");
}

static void
test_not_found(void)
{
	atomic_int n = 0;
	int64_t start = now_ns();

	spin_processors = 8;
	CHECK(!spin_until(never, &n) && n > 1, "%d looks", n);
	CHECK(now_ns() - start >= SPIN_NS, "only %d ns", (int) (now_ns() - start));
	n = 0;
	spin_processors = SPIN_PROCESSORS - 1;
	CHECK(!spin_until(never, &n) && n == 1, "%d looks where processors are few", n);
}

static atomic_int looking, /* threads that have looked more than once */
	most;

/* Stays until all threads have come. */
static bool
seen_by_all(void *arg)
{
	static atomic_int come;
	int *times = arg;

	if (++*times == 1)
		atomic_fetch_add(&come, 1);
	if (*times == 2)
	{
		int now = atomic_fetch_add(&looking, 1) + 1;

		if (now > most)
			most = now;
		while (come < THREADS)
			usleep(100);
	}
	return *times == 2;
}

static void *
look(void *arg)
{
	int times = 0;

	(void) arg;
	spin_until(seen_by_all, &times);
	CHECK(times == 1 || times == 2, "%d looks", times);
	return NULL;
}

/* The others sleep at once. */
static void
test_half(void)
{
	pthread_t threads[THREADS];

	spin_processors = 8;
	for (int t = 0; t < THREADS; t++)
		CHECK(pthread_create(&threads[t], NULL, look, NULL) == 0, "no thread");
	for (int t = 0; t < THREADS; t++)
		pthread_join(threads[t], NULL);
	CHECK(most == 4, "%d threads were looking on 8 processors", most);
	looks = 0;
	CHECK(spin_until(at_third, NULL) && looks == 3, "and now one may");
}

int
main(void)
{
	RUN("what is found", test_found);
	RUN("what is not", test_not_found);
	RUN("no more threads than half of the processors", test_half);
	return unit_done();
}
