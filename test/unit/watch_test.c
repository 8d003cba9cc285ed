/*
 * watch_test.c
 *	  When a device of the GPU server is taken for hung.
 */
#include "unit.h"

#include <unistd.h>

#include "server/watch.c"

static void
sleep_ms(int ms)
{
	usleep(ms * 1000);
}

static void
test_idle(void)
{
	Watch w;

	CHECK(watch_stalled_ms() == 0, "nothing was begun");
	watch_begin(&w, 0);
	watch_end(&w);
	sleep_ms(50);
	CHECK(watch_stalled_ms() == 0, "nothing is at work");
}

static void
test_hung(void)
{
	Watch w;

	watch_begin(&w, 0);
	sleep_ms(100);
	CHECK(watch_stalled_ms() >= 100, "one message, %d ms", (int) watch_stalled_ms());
	watch_end(&w);
	CHECK(watch_stalled_ms() == 0, "ended");
}

/* Others end all the time while one waits for its turn. */
static void
test_busy(void)
{
	Watch patient, w[3];

	watch_begin(&patient, 0);
	for (int i = 0; i < 20; i++)
	{
		Watch *one = &w[i % 3];

		watch_begin(one, 0);
		sleep_ms(20);
		watch_end(one);
	}
	CHECK(watch_stalled_ms() >= 400 / LONG_MESSAGE, "what waits for very long counts");
	CHECK(watch_stalled_ms() < 300, "a busy device is not hung: %d ms", (int) watch_stalled_ms());
	watch_end(&patient);
}

/* Messages of another device, or of none, do not count for this one. */
static void
test_devices(void)
{
	Watch hung, w;

	watch_begin(&hung, 1);
	for (int i = 0; i < 10; i++)
	{
		watch_begin(&w, i % 2 == 0 ? 0 : -1);
		sleep_ms(10);
		watch_end(&w);
	}
	CHECK(watch_stalled_ms() >= 100, "%d ms", (int) watch_stalled_ms());
	watch_end(&hung);
	CHECK(watch_stalled_ms() == 0, "ended");
}

int
main(void)
{
	RUN("an idle device", test_idle);
	RUN("a hung device", test_hung);
	RUN("a busy device", test_busy);
	RUN("several devices", test_devices);
	return unit_done();
}
