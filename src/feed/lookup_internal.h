/*
 * lookup_internal.h
 *	  What the files of lookups share (lookup*.c).
 */
#ifndef GPUAGG_FEED_LOOKUP_INTERNAL_H
#define GPUAGG_FEED_LOOKUP_INTERNAL_H

#include "postgres.h"

#include "port/pg_bitutils.h"

#include "feed/lookup.h"

/* Adds the hash of one column to that of the columns before. */
static inline uint32
combine_hashes(uint32 hash, uint32 column)
{
	return pg_rotate_left32(hash, 1) ^ column;
}

/*
 * Runs the inner plan and stores its rows, without what finds them.  Returns false if they exceed
 * `memory` bytes.  The lookup has a memory context and no rows.
 */
extern bool lookup_store_rows(Lookup *lookup, size_t memory);

/* ---- lookup_filter.c ----------------------------------------------------------------- */

/* Returns the index of the word of a filter that a key's hash leads to. */
static inline uint64
lookup_filter_word(const LookupFilter *filter, uint64 hash)
{
	return (hash >> 32) & filter->mask;
}

/* Returns the three bits of a key's hash in its word. */
static inline uint64
lookup_filter_bits(uint64 hash)
{
	return UINT64CONST(1) << (hash & 63) | UINT64CONST(1) << (hash >> 6 & 63) |
		UINT64CONST(1) << (hash >> 12 & 63);
}

#endif /* GPUAGG_FEED_LOOKUP_INTERNAL_H */
