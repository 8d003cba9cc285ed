/*
 * argtype.h
 *	  Comparison and hash functions for an aggregate's polymorphic argument.
 *
 * Entries belong to core's type cache and live as long as the backend.
 */
#ifndef GPUAGG_ARGTYPE_H
#define GPUAGG_ARGTYPE_H

#include "postgres.h"

#include "utils/typcache.h"

/* Returns the type with its btree comparison function. Raises core's error if it has none. */
extern TypeCacheEntry *argtype_comparable(Oid typid);

/* Returns the type with its 64-bit hash function. Raises core's error if it has none. */
extern TypeCacheEntry *argtype_hashable(Oid typid);

#endif /* GPUAGG_ARGTYPE_H */
