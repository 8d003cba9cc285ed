/*
 * argtype.h
 *	  Comparison and hash functions for an aggregate's polymorphic argument, and copies of its
 *	  values.
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

/* Returns a value that is neither compressed nor out of line. */
extern Datum argtype_plain(const TypeCacheEntry *type, Datum value);

/* Returns a copy of the value in cxt, neither compressed nor out of line. */
extern Datum argtype_copy(const TypeCacheEntry *type, Datum value, MemoryContext cxt);

/* Compares two values by their bytes: equal values that look different have an order, too. */
extern int argtype_compare_bytes(const TypeCacheEntry *type, Datum a, Datum b);

#endif /* GPUAGG_ARGTYPE_H */
