/*
 * bits.h
 *	  Groups without states as a bitmap: one bit for each possible combination of keys.
 *
 * For queries such as SELECT DISTINCT, a group is nothing but its keys. A GroupTable spends about
 * 30 bytes and two memory accesses on such a group. Where the keys are integers in narrow ranges,
 * one bit is enough. The bit's position is a mixed-radix number made of the keys, in which the last
 * key changes fastest. Groups are returned in the order of their keys.
 *
 * The CPU engine (engine_cpu/absorb.c) hashes its first batch, changes to bits where
 * group_bits_possible() allows that, and moves back to its GroupTable when a key no longer fits.
 */
#ifndef GPUAGG_GROUP_BITS_H
#define GPUAGG_GROUP_BITS_H

#include "postgres.h"

#include "batch.h"
#include "groups/keys.h"
#include "spec.h"

typedef struct GroupBits GroupBits;

/*
 * Returns whether groups of this spec can be bits: they have no states, and every column is an
 * integer key.
 */
extern bool group_bits_possible(const AggSpec *spec);
/*
 * Creates an empty set for keys in these ranges, rounded outwards where max_bits allows. Returns
 * NULL if the ranges need more than max_bits bits. Allocates a child context of `parent`;
 * group_bits_free deletes it.
 */
extern GroupBits *group_bits_create(MemoryContext parent, const AggSpec *spec,
									const KeyRange *ranges, uint64 max_bits, int batch_rows);
extern void group_bits_free(GroupBits *bits);
extern size_t group_bits_memory(const GroupBits *bits);
extern uint64 group_bits_count(const GroupBits *bits);
/* Returns how many groups the ranges allow at most. */
extern uint64 group_bits_possible_groups(const GroupBits *bits);

/* Adds the groups of a batch. Returns false, and adds none of them, if a key is out of range. */
extern bool group_bits_add(GroupBits *bits, const Batch *batch);
/*
 * Returns a set with wider ranges that has all groups of *bits, which it frees. The ranges cover
 * the keys of this batch, plus half as many values as slack on each side that grew. Returns NULL,
 * and leaves *bits as it is, if that needs more than max_bits bits.
 */
extern GroupBits *group_bits_widen(GroupBits *bits, const GroupKeys *keys, const Batch *batch,
								   uint64 max_bits);

/*
 * Returns the next groups as a batch of keys: at most batch_rows of them, valid until the next
 * call. Returns NULL at the end; the next call then starts from the first group again.
 */
extern const Batch *group_bits_next(GroupBits *bits);

#endif /* GPUAGG_GROUP_BITS_H */
