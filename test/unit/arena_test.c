/*
 * arena_test.c
 *	  Tests the pool of arenas (server/arena.c): the limit of pinned memory, and when memory is
 *	  freed.
 *
 * pin() and unpin() are fakes that count arenas, and fail on request. The test includes the
 * source file, and runs in one thread.
 */
#define _GNU_SOURCE
#include "unit.h"

#include "server/arena.c"

static int pinned;
static bool pin_fails;

/* Fake of pinning: counts the arena, or fails if pin_fails is set. */
static DeviceStatus
pin(void *memory, size_t bytes, DeviceError *error)
{
	(void) memory, (void) bytes;
	if (pin_fails)
		return device_fail(error, DEVICE_NO_MEMORY, "no pin");
	pinned++;
	return DEVICE_OK;
}

/* Fake of unpinning: counts the arena. */
static void
unpin(void *memory)
{
	(void) memory;
	pinned--;
}

const DeviceOps device_ops = {.pin = pin, .unpin = unpin};

static DeviceError error;

static void
test_limit(void)
{
	Arena *a[4];

	arena_set_limit(3 * ARENA_BYTES);
	for (int i = 0; i < 3; i++)
		CHECK((a[i] = arena_take(0, &error)) != NULL, "arena %d is within the limit", i);
	CHECK(arena_take(0, &error) == NULL, "the limit refuses a fourth arena");
	CHECK(strcmp(error.text, "gpuagg.pinned_memory_limit reached") == 0, "the error is: %s",
		  error.text);
	arena_give(a[0], 0);
	CHECK((a[3] = arena_take(0, &error)) == a[0], "the arena that was given back is used again");
	CHECK(pinned == 3, "%d arenas are pinned", pinned);

	/* if the limit is lowered, arenas above it are freed when they are given back */
	arena_set_limit(ARENA_BYTES);
	for (int i = 1; i < 4; i++)
		arena_give(a[i], 0);
	CHECK(pinned == 1, "%d arenas are pinned", pinned);
	arena_set_limit(0);
	arena_trim();
	CHECK(pinned == 0, "%d arenas are pinned", pinned);
}

static void
test_discard(void)
{
	Arena *a;

	arena_set_limit(ARENA_BYTES);
	CHECK((a = arena_take(0, &error)) != NULL, "the first arena is within the limit");
	arena_discard(a);
	CHECK(pinned == 0, "%d arenas are pinned", pinned);
	CHECK((a = arena_take(0, &error)) != NULL, "an arena that was discarded does not count");
	arena_discard(a);
}

static void
test_failure(void)
{
	Arena *a;

	arena_set_limit(ARENA_BYTES);
	pin_fails = true;
	for (int i = 0; i < 3; i++)
		CHECK(arena_take(0, &error) == NULL && strcmp(error.text, "no pin") == 0,
			  "the error is: %s", error.text);
	CHECK(!arena_prepare(1, &error), "nothing is prepared if memory cannot be pinned");
	pin_fails = false;
	CHECK((a = arena_take(0, &error)) != NULL, "arenas that could not be pinned do not count");
	arena_discard(a);
}

static void
test_prepare(void)
{
	arena_set_limit(2 * ARENA_BYTES);
	CHECK(arena_prepare(ARENAS_AHEAD, &error), "arenas are prepared up to the limit");
	CHECK(pinned == 2, "%d arenas are pinned", pinned);
	arena_set_limit(0);
	arena_trim();
	CHECK(pinned == 0, "%d arenas are pinned", pinned);
}

int
main(void)
{
	RUN("no more arenas are pinned than the limit allows", test_limit);
	RUN("a discarded arena is unpinned and does not count", test_discard);
	RUN("a failure to pin is reported and does not count", test_failure);
	RUN("arenas are prepared up to the limit and trimmed", test_prepare);
	return unit_done();
}
