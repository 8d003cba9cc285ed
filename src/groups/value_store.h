/*
 * value_store.h
 *	  Values of many groups, and those of given ranks among a group's.
 *
 * Groups are numbered from 0; the store knows nothing of keys.  Values are kept as 64-bit codes;
 * those of types without codes are numbers in a dictionary of their images, which takes its order
 * when all are there.  Beyond the memory limit codes go to files by their group's number, and come
 * back one partition at a time; one that is still too large is divided by group, and a group by
 * ranges of codes, as far as they are wanted. If the dictionary has no more room, or the values are
 * nearly unique, core's tuplesort sorts all values.
 *
 * Files belong to the current resource owner.
 */
#ifndef GPUAGG_VALUE_STORE_H
#define GPUAGG_VALUE_STORE_H

#include "postgres.h"

#include "batch.h"
#include "engine.h"
#include "spec.h"

typedef struct ValueStore ValueStore;

/* The number of no group: the row's values are not appended. */
#define NO_VALUE_GROUP PG_UINT32_MAX

/* Bytes that a group with few values takes in a store. */
#define VALUE_GROUP_BYTES 128

/*
 * Below `parent`, for about so many values of a column that is `col`, ordered as `spec` says; if
 * they are sorted, so many groups may have sorts of their own.  May others import the values?
 */
extern ValueStore *value_store_create(MemoryContext parent, const ValuesSpec *spec,
									  const ColumnSpec *col, int batch_rows, size_t mem_limit,
									  uint32 most_own, double est_values, bool exported);
/* Appends those that are not NULL; groups[row] has the number of the row's group, below ngroups. */
extern void value_store_append(ValueStore *store, const Column *col, const uint32 *groups,
							   int nrows, uint32 ngroups);
/* How many groups may have a sort of their own each, if values are sorted in so much memory. */
extern uint32 value_store_own_sorts(size_t memory);
extern size_t value_store_memory(const ValueStore *store);
extern uint64 value_store_spilled(const ValueStore *store);
/* Forgets all values. */
extern void value_store_reset(ValueStore *store);

/* The value of a column of this type whose 64-bit code (operators/select.h) this is. */
extern Datum value_of_code(ColumnType type, uint64 code);

/* ---- groups out ---------------------------------------------------------- */

/* No more values come, of groups with numbers below ngroups. */
extern void value_store_begin(ValueStore *store, uint32 ngroups);
/* The next group, each of all once, and the number of its values; false if there are no more. */
extern bool value_store_next(ValueStore *store, uint32 *group, int64 *n);
/*
 * values[i] = the value of rank ranks[i] in this group, for m of them, ascending and different; and
 * with `mode` the most frequent one, of several the first in the order, or in its reverse: mode[0]
 * and mode[1].  At most once for a group.  By-reference values are valid until the next call of
 * value_store_next.
 */
extern void value_store_fetch(ValueStore *store, const int64 *ranks, int m, Datum *values,
							  Datum *mode);

/* ---- to other stores ------------------------------------------------------- */

/* Writes all values, of groups below ngroups; the store is to be reset afterwards. */
extern void value_store_export(ValueStore *store, GroupSink *sink);
/* A value that a store cannot take as it is imported. */
typedef void (*ValueRefused)(void *arg, uint32 foreign, Datum value);
/*
 * Appends what another one exported, of the groups groups[its number]; where that is
 * NO_VALUE_GROUP, or the dictionary has no room, it calls `refused` with the other one's group
 * instead.
 */
extern void value_store_import(ValueStore *store, GroupSource *source, const uint32 *groups,
							   uint32 ngroups, ValueRefused refused, void *arg);

#endif /* GPUAGG_VALUE_STORE_H */
