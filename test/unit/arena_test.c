/*
 * arena_test.c
 *	  How much memory the GPU server pins, and when it gives it back.
 */
#define _GNU_SOURCE
#include "unit.h"

#include "server/arena.c"

static int pinned;
static bool no_pin;

static DeviceStatus
pin(void *memory, size_t bytes, DeviceError *error)
{
	(void) memory, (void) bytes;
	if (no_pin)
		return device_fail(error, DEVICE_NO_MEMORY, "no pin");
	pinned++;
	return DEVICE_OK;
}

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
		CHECK((a[i] = arena_take(0, &error)) != NULL, "arena %d", i);
	CHECK(arena_take(0, &error) == NULL, "a fourth");
	CHECK(strcmp(error.text, "gpuagg.pinned_memory_limit reached") == 0, "%s", error.text);
	arena_give(a[0], 0);
	CHECK((a[3] = arena_take(0, &error)) == a[0], "what was given back");
	CHECK(pinned == 3, "%d pinned", pinned);

	/* a lower limit holds as soon as sessions end */
	arena_set_limit(ARENA_BYTES);
	for (int i = 1; i < 4; i++)
		arena_give(a[i], 0);
	CHECK(pinned == 1, "%d pinned", pinned);
	arena_set_limit(0);
	arena_trim();
	CHECK(pinned == 0, "%d pinned", pinned);
}

static void
test_discard(void)
{
	Arena *a;

	arena_set_limit(ARENA_BYTES);
	CHECK((a = arena_take(0, &error)) != NULL, "one");
	arena_discard(a);
	CHECK(pinned == 0, "%d pinned", pinned);
	CHECK((a = arena_take(0, &error)) != NULL, "another in its room");
	arena_discard(a);
}

static void
test_failure(void)
{
	Arena *a;

	arena_set_limit(ARENA_BYTES);
	no_pin = true;
	for (int i = 0; i < 3; i++)
		CHECK(arena_take(0, &error) == NULL && strcmp(error.text, "no pin") == 0, "%s", error.text);
	CHECK(!arena_prepare(1, &error), "nor ahead");
	no_pin = false;
	CHECK((a = arena_take(0, &error)) != NULL, "failures take no room");
	arena_discard(a);
}

static void
test_ahead(void)
{
	arena_set_limit(2 * ARENA_BYTES);
	CHECK(arena_prepare(ARENAS_AHEAD, &error), "as many as the limit lets");
	CHECK(pinned == 2, "%d pinned", pinned);
	arena_set_limit(0);
	arena_trim();
	CHECK(pinned == 0, "%d pinned", pinned);
}

int
main(void)
{
	RUN("the limit", test_limit);
	RUN("arenas that are not given back", test_discard);
	RUN("memory that cannot be pinned", test_failure);
	RUN("arenas made ahead", test_ahead);
	return unit_done();
}
