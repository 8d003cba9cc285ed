/*
 * arena.c
 *	  Arenas: memory shared with clients.
 *
 * An arena is a memfd that is mapped and pinned here once, and serves one connection at a time.
 * Pinning takes milliseconds and blocks driver calls of other threads. So arenas are kept when a
 * connection ends, and a few are made in advance. The arena used last is reused first. Arenas that
 * were idle for a minute are freed.
 *
 * A connection that is kept between queries gives its arena back as well, but its client has it
 * still mapped. It gets the same arena again if no other connection has used it meanwhile.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "server/server.h"

/*
 * More idle arenas than this are freed at once. 64 arenas have 1.5 GB, and serve a query with 63
 * parallel workers.
 */
#define MOST_IDLE 64

int arena_idle_seconds = 60;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Arena *idle;
static int nidle;
static uint64_t made; /* bytes of all arenas, idle or not */
static uint64_t limit = UINT64_MAX;

/* Frees an arena, which must not be pinned. */
static void
arena_free(Arena *arena)
{
	if (arena->memory)
		munmap(arena->memory, arena->bytes);
	if (arena->fd >= 0)
		close(arena->fd);
	free(arena);
}

/*
 * Creates and maps the file. It is sealed: if a client could shrink it, the server's reads would
 * fault.
 */
static bool
arena_map(Arena *arena)
{
	arena->fd = memfd_create("gpuagg", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (arena->fd < 0 || ftruncate(arena->fd, ARENA_BYTES) < 0 ||
		fcntl(arena->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return false;
	arena->memory =
		mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, arena->fd, 0);
	if (arena->memory == MAP_FAILED)
	{
		arena->memory = NULL;
		return false;
	}
	arena->bytes = ARENA_BYTES;
	return true;
}

/* Accounts for one more arena. Returns false if the limit would be exceeded. */
static bool
take_room(DeviceError *error)
{
	bool ok;

	pthread_mutex_lock(&lock);
	ok = made + ARENA_BYTES <= limit;
	made += ok ? ARENA_BYTES : 0;
	pthread_mutex_unlock(&lock);
	if (!ok)
		snprintf(error->text, sizeof(error->text), "gpuagg.pinned_memory_limit reached");
	return ok;
}

static void
give_room(void)
{
	pthread_mutex_lock(&lock);
	made -= ARENA_BYTES;
	pthread_mutex_unlock(&lock);
}

static Arena *
map_and_pin(DeviceError *error)
{
	Arena *arena = calloc(1, sizeof(*arena));

	if (arena == NULL)
	{
		snprintf(error->text, sizeof(error->text), "out of memory");
		return NULL;
	}
	arena->fd = -1;
	if (!arena_map(arena))
	{
		snprintf(error->text, sizeof(error->text), "could not make shared memory of %zu bytes: %s",
				 ARENA_BYTES, strerror(errno));
		arena_free(arena);
		return NULL;
	}
	if (device_ops.pin(arena->memory, arena->bytes, error) != DEVICE_OK)
	{
		arena_free(arena);
		return NULL;
	}
	return arena;
}

bool
arena_prepare(int count, DeviceError *error)
{
	for (int i = 0; i < count; i++)
	{
		Arena *arena;

		/* the limit is no error: there are fewer arenas then */
		if (!take_room(error))
			return true;
		arena = map_and_pin(error);
		if (arena == NULL)
		{
			give_room();
			return false;
		}
		arena_give(arena, 0);
	}
	return true;
}

/*
 * Returns the list's entry of the arena that this connection had last; else the first one that no
 * client has mapped; else the last one.
 */
static Arena **
find_idle(uint64_t owner)
{
	Arena **at = &idle;
	Arena **unowned = NULL;

	for (; *at; at = &(*at)->next)
	{
		if (owner != 0 && (*at)->owner == owner)
			return at;
		if (unowned == NULL && (*at)->owner == 0)
			unowned = at;
		if ((*at)->next == NULL)
			break;
	}
	return unowned ? unowned : at;
}

Arena *
arena_take(uint64_t owner, DeviceError *error)
{
	Arena **at;
	Arena *arena;

	pthread_mutex_lock(&lock);
	at = find_idle(owner);
	arena = *at;
	if (arena)
	{
		*at = arena->next;
		nidle--;
	}
	pthread_mutex_unlock(&lock);
	if (arena || !take_room(error))
		return arena;
	arena = map_and_pin(error);
	if (arena == NULL)
		give_room();
	return arena;
}

void
arena_discard(Arena *arena)
{
	device_ops.unpin(arena->memory);
	arena_free(arena);
	give_room();
}

void
arena_set_limit(uint64_t bytes)
{
	pthread_mutex_lock(&lock);
	limit = bytes;
	pthread_mutex_unlock(&lock);
}

uint64_t
arena_bytes(void)
{
	uint64_t bytes;

	pthread_mutex_lock(&lock);
	bytes = made;
	pthread_mutex_unlock(&lock);
	return bytes;
}

/*
 * Removes the arena that has been idle the longest from the list, if it is to be freed. Else
 * returns NULL.
 */
static Arena *
take_surplus(time_t now)
{
	Arena **last = &idle;
	Arena *oldest = NULL;

	pthread_mutex_lock(&lock);
	if (nidle > ARENAS_AHEAD || (nidle > 0 && made > limit))
	{
		while ((*last)->next)
			last = &(*last)->next;
		if (nidle > MOST_IDLE || made > limit || now - (*last)->idle_since >= arena_idle_seconds)
		{
			oldest = *last;
			*last = NULL;
			nidle--;
		}
	}
	pthread_mutex_unlock(&lock);
	return oldest;
}

static time_t
seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

void
arena_trim(void)
{
	time_t now = seconds_now();
	Arena *arena;

	/* the memory is released at once, even if idle clients have it mapped */
	while ((arena = take_surplus(now)) != NULL)
	{
		(void) fallocate(arena->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, ARENA_BYTES);
		arena_discard(arena);
	}
}

void
arena_give(Arena *arena, uint64_t owner)
{
	arena->idle_since = seconds_now();
	arena->owner = owner;
	pthread_mutex_lock(&lock);
	arena->next = idle;
	idle = arena;
	nidle++;
	pthread_mutex_unlock(&lock);
	arena_trim();
}

void
arena_disown(uint64_t owner)
{
	pthread_mutex_lock(&lock);
	for (Arena *arena = idle; arena; arena = arena->next)
		if (arena->owner == owner)
			arena->owner = 0;
	pthread_mutex_unlock(&lock);
}
