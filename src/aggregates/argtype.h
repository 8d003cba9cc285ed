/*
 * argtype.h
 *	  The order and the hash of an aggregate's polymorphic argument.
 */
#ifndef GPUAGG_ARGTYPE_H
#define GPUAGG_ARGTYPE_H

#include "postgres.h"

#include "utils/typcache.h"

/* The type with its btree comparison; an error, worded as core's, if it has none. */
extern TypeCacheEntry *argtype_comparable(Oid typid);

/* The type with its 64-bit hash function; likewise. */
extern TypeCacheEntry *argtype_hashable(Oid typid);

#endif /* GPUAGG_ARGTYPE_H */
