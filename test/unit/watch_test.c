/*
 * watch_test.c
 *	  Tests watch_stalled_ms() (server/watch.c), by which the GPU server detects a hung device.
 *
 * Messages begin and end here with pauses of 10 to 100 ms. The test includes the source file, and
 * runs in one thread.
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

	CHECK(watch_stalled_ms() == 0, "a device without messages is not stalled");
	watch_begin(&w, 0);
	watch_end(&w);
	sleep_ms(50);
	CHECK(watch_stalled_ms() == 0, "a device whose messages have ended is not stalled");
}

static void
test_hung(void)
{
	Watch w;

	watch_begin(&w, 0);
	sleep_ms(100);
	CHECK(watch_stalled_ms() >= 100, "a message that does not end counts, %d ms",
		  (int) watch_stalled_ms());
	watch_end(&w);
	CHECK(watch_stalled_ms() == 0, "a device is not stalled when its message has ended");
}

/* Messages end every 20 ms while one message waits for 400 ms. */
static void
test_busy(void)
{
	Watch waiting, w[3];

	watch_begin(&waiting, 0);
	for (int i = 0; i < 20; i++)
	{
		Watch *one = &w[i % 3];

		watch_begin(one, 0);
		sleep_ms(20);
		watch_end(one);
	}
	CHECK(watch_stalled_ms() >= 400 / LONG_MESSAGE, "a long message counts a fifth of its time");
	CHECK(watch_stalled_ms() < 300, "a busy device is not hung: %d ms", (int) watch_stalled_ms());
	watch_end(&waiting);
}

/* Messages of another device, or without one, do not hide that a device is stalled. */
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
	CHECK(watch_stalled_ms() == 0, "a device is not stalled when its message has ended");
}

int
main(void)
{
	RUN("an idle device is not stalled", test_idle);
	RUN("a device that completes nothing is stalled", test_hung);
	RUN("a busy device is not stalled", test_busy);
	RUN("each device is watched separately", test_devices);
	return unit_done();
}
