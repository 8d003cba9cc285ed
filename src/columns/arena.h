/*
 * arena.h
 *	  Memory for the by-reference values of one batch.
 *
 * Each batch fills the same chunk from its start.  Values that do not fit go to a memory context,
 * which is reset for each batch.
 */
#ifndef GPUAGG_ARENA_H
#define GPUAGG_ARENA_H

#include "postgres.h"

#include "utils/datum.h"
#include "utils/memutils.h"

#include "batch.h"
#include "common/compat.h"

#ifndef __SANITIZE_ADDRESS__
#define ARENA_CHUNK (256 * 1024)
#else
/* all values are palloc'd, so that AddressSanitizer reports their use after arena_reset */
#define ARENA_CHUNK 0
#endif

/* An arena for the by-reference values of a batch; see the file's header. */
typedef struct Arena
{
	char *chunk; /* NULL before the first value */
	size_t used;
	MemoryContext parent;
	MemoryContext overflow;
	bool overflowed;
	size_t bytes; /* bytes of the values, if they are detoasted */
} Arena;

/* Prepares an arena whose memory belongs to `parent`. */
static inline void
arena_init(Arena *arena, MemoryContext parent)
{
	memset(arena, 0, sizeof(*arena));
	arena->parent = parent;
	arena->overflow = AllocSetContextCreate(parent, "gpuagg batch", ALLOCSET_DEFAULT_SIZES);
}

/* Frees all values, for the next batch. */
static inline void
arena_reset(Arena *arena)
{
	arena->used = 0;
	arena->bytes = 0;
	if (arena->overflowed)
		MemoryContextReset(arena->overflow);
	arena->overflowed = false;
}

/* Returns memory that is aligned and valid until arena_reset. */
static inline void *
arena_alloc(Arena *arena, size_t size)
{
	char *result;

	if (unlikely(arena->chunk == NULL))
		arena->chunk = MemoryContextAlloc(arena->parent, ARENA_CHUNK);
	if (unlikely(arena->used + size > ARENA_CHUNK))
	{
		arena->overflowed = true;
		return MemoryContextAlloc(arena->overflow, size);
	}
	result = arena->chunk + arena->used;
	arena->used += MAXALIGN(size);
	return result;
}

/* Copies a varlena that is out of line, compressed or expanded. */
pg_attribute_unused() static pg_noinline Datum arena_copy_toasted(Arena *arena, Datum value)
{
	char *pointer = DatumGetPointer(value);
	char *copy;

	arena->bytes += datum_bytes(value, -1);
	if (VARATT_IS_EXTERNAL(pointer) && !VARATT_IS_EXTERNAL_ONDISK(pointer))
	{
		/* expanded or indirect: points to memory that may be freed */
		MemoryContext old = MemoryContextSwitchTo(arena->overflow);

		arena->overflowed = true;
		value = VARATT_IS_EXTERNAL_EXPANDED(pointer) ?
			datumCopy(value, false, -1) :
			PointerGetDatum(PG_DETOAST_DATUM_COPY(value));
		MemoryContextSwitchTo(old);
		return value;
	}
	copy = arena_alloc(arena, VARSIZE_ANY(pointer));
	memcpy(copy, pointer, VARSIZE_ANY(pointer));
	return PointerGetDatum(copy);
}

/*
 * Copies a by-reference value.  Expanded and indirect values become flat.  Compressed values and
 * toast pointers stay as they are, but `bytes` counts them as detoasted, because readers may
 * detoast them.
 */
static inline Datum
arena_copy(Arena *arena, Datum value, int16 typlen)
{
	char *pointer = DatumGetPointer(value);
	char *copy;
	size_t size;

	if (typlen == -1)
	{
		if (VARATT_IS_1B(pointer) && !VARATT_IS_1B_E(pointer))
			size = VARSIZE_1B(pointer);
		else if (likely(VARATT_IS_4B_U(pointer)))
			size = VARSIZE_4B(pointer);
		else
			return arena_copy_toasted(arena, value);
	}
	else
		size = datum_bytes(value, typlen);
	arena->bytes += size;
	copy = arena_alloc(arena, size);
	/* short strings are common: copies them by two loads, which may overlap, without a call */
	if (size - 4 <= 4)
	{
		uint32 first, last;

		memcpy(&first, pointer, 4);
		memcpy(&last, pointer + size - 4, 4);
		memcpy(copy, &first, 4);
		memcpy(copy + size - 4, &last, 4);
	}
	else
		memcpy(copy, pointer, size);
	return PointerGetDatum(copy);
}

#endif /* GPUAGG_ARENA_H */
