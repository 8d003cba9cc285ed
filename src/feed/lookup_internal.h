/*
 * lookup_internal.h
 *	  What lookup.c and lookup_rows.c share.
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

#endif /* GPUAGG_FEED_LOOKUP_INTERNAL_H */
