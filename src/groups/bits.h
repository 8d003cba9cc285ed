/*
 * bits.h
 *	  Groups that have no states, one bit each, found by their integer keys.
 *
 * What a table of groups has for such a group (a row with its keys, an entry of a hash table) takes
 * some 30 bytes, and two accesses to memory.  Where the keys' ranges span few values, a bit says as
 * much. The values of the last key are neighbours, and groups come back in the order of their keys.
 */
#ifndef GPUAGG_GROUP_BITS_H
#define GPUAGG_GROUP_BITS_H

#include "postgres.h"

#include "batch.h"
#include "groups/keys.h"
#include "spec.h"

typedef struct GroupBits GroupBits;

/*
 * May groups of this spec be bits?  They have no states, and all columns are integers that are
 * keys.
 */
extern bool group_bits_possible(const AggSpec *spec);
/*
 * For keys in these ranges and a little beyond; NULL if they span more than max_bits values.  Below
 * `parent`; group_bits_free gives the memory back.
 */
extern GroupBits *group_bits_create(MemoryContext parent, const AggSpec *spec,
									const KeyRange *ranges, uint64 max_bits, int batch_rows);
extern void group_bits_free(GroupBits *bits);
extern size_t group_bits_memory(const GroupBits *bits);
extern uint64 group_bits_count(const GroupBits *bits);
/* How many groups could there be? */
extern uint64 group_bits_span(const GroupBits *bits);

/* Adds the groups of a batch; false, and none of them, if a key is out of range. */
extern bool group_bits_add(GroupBits *bits, const Batch *batch);
/*
 * With ranges for the keys of this batch as well, and then as many on that side again; NULL if that
 * is too wide.
 */
extern GroupBits *group_bits_widen(GroupBits *bits, const GroupKeys *keys, const Batch *batch,
								   uint64 max_bits);

/*
 * The next groups as a batch of keys, of batch_rows at most, valid until the next call; NULL at the
 * end, after which they begin anew.
 */
extern const Batch *group_bits_next(GroupBits *bits);

#endif /* GPUAGG_GROUP_BITS_H */
