/*
 * kept.h
 *
 * Results of plans over unchanged tables, kept in the cache's memory for later queries.
 *
 * A result has a name, which says how it is computed, and the states of the tables that it was
 * computed from (ProofTable). It is contiguous memory at the same address in all processes, and may
 * have pointers into itself. It does not change, but processes may note in it what they have
 * computed from it. Results take at most an eighth of the cache's memory.
 *
 * No function raises an error if there is no memory.
 */
#ifndef GPUAGG_CACHE_KEPT_H
#define GPUAGG_CACHE_KEPT_H

#include "postgres.h"

#include "cache/proof.h"

/* Most tables of a result. */
#define KEPT_TABLES 8

/* The name of a result: a cryptographic hash of what defines it. */
typedef struct KeptName
{
	uint8 bytes[32];
} KeptName;

/* The states of the tables of a result. */
typedef struct KeptTables
{
	int n;
	ProofTable of[KEPT_TABLES];
} KeptTables;

/*
 * Finds the result with this name, if it was computed from these states; an older one is freed.
 * Returns NULL if there is none. It is pinned until kept_release(). count: counts a use. Sets
 * *wanted to whether a result should be kept: an earlier query has used the name, or
 * gpuagg.cache is eager.
 */
extern const void *kept_find(const KeptName *name, const KeptTables *tables, bool count,
							 bool *wanted);

/* Returns the bytes that a result takes at most. */
extern Size kept_largest(void);
/*
 * Allocates memory for a result, which the caller fills without checking for interrupts, and
 * publishes. Returns NULL if there is none. May check for interrupts before it allocates. rows: the
 * number that gpuagg_cache shows.
 */
extern void *kept_allocate(const KeptName *name, const KeptTables *tables, Size size, uint64 rows);
/*
 * Lets others find a result of kept_allocate(). Returns false, and frees the result, if there is
 * another one meanwhile.
 */
extern bool kept_publish(void *result);
/* Returns a number that no other result has ever had, not even before a restart. */
extern uint64 kept_serial(const void *result);

/* Lets nobody find a pinned result any longer, so that another one can take its place. */
extern void kept_drop(const void *result);

/* Releases a pin. */
extern void kept_release(const void *result);

#endif /* GPUAGG_CACHE_KEPT_H */
