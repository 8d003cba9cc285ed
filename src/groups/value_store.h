/*
 * value_store.h
 *	  Keeps the values of many groups, and returns those of given ranks, or the most frequent
 *	  ones, of each group.
 *
 * For percentiles and modes (composite/ordered_engine.c). Groups are numbered from 0; the store
 * does not know their keys. Values are kept as 64-bit codes that compare like the values. Types
 * without such codes use a dictionary: a code is the number of the value's bytes there, and is
 * replaced by the value's rank when all values are known.
 *
 * Above the memory limit, codes go to temporary files, which are partitioned by group number and
 * read back one partition at a time. A partition that is too large is divided by group, and a
 * single group that is too large by ranges of codes, as far as they are needed. If the dictionary
 * has no more room, or the values are nearly unique, core's tuplesort sorts all values instead.
 *
 * All memory is below the context given at creation. Files belong to the current resource owner.
 * Functions may raise errors and check for interrupts.
 */
#ifndef GPUAGG_VALUE_STORE_H
#define GPUAGG_VALUE_STORE_H

#include "postgres.h"

#include "batch.h"
#include "engine.h"
#include "spec.h"

typedef struct ValueStore ValueStore;

/* Group number of rows whose values are not appended. */
#define NO_VALUE_GROUP PG_UINT32_MAX

/* Bytes that a group with few values takes in a store. */
#define VALUE_GROUP_BYTES 128

/*
 * Creates a store in a child context of `parent` for values of a column like `col`, in the order of
 * `spec`. est_values is the estimated number of values. If values are sorted by tuplesort, up to
 * max_own_sorts groups have sorts of their own. `exported`: other participants will import the
 * values. `percentiles`: there is one group, and no mode is wanted.
 */
extern ValueStore *value_store_create(MemoryContext parent, const ValuesSpec *spec,
									  const ColumnSpec *col, int batch_rows, size_t mem_limit,
									  uint32 max_own_sorts, double est_values, bool exported,
									  bool percentiles);
/*
 * Appends the values that are not NULL. groups[row] is the number of the row's group, below
 * ngroups.
 */
extern void value_store_append(ValueStore *store, const Column *col, const uint32 *groups,
							   int nrows, uint32 ngroups);
/* Returns how many groups may have a sort of their own with this much memory. */
extern uint32 value_store_max_own_sorts(size_t memory);
/* Returns the bytes of memory in use. */
extern size_t value_store_memory(const ValueStore *store);
/* Returns the number of values, roughly. */
extern uint64 value_store_count(const ValueStore *store);
/* Returns whether participants exchange the values in chunks (value_chunks.c). */
extern bool value_store_divided(const ValueStore *store);
/* Returns the bytes written to files so far. */
extern uint64 value_store_spilled(const ValueStore *store);
/* Forgets all values. */
extern void value_store_reset(ValueStore *store);

/* Returns the value of a column of this type that has this 64-bit code (operators/select.h). */
extern Datum value_of_code(ColumnType type, uint64 code);

/* ---- groups out ---------------------------------------------------------- */

/* Ends the input. All groups have numbers below ngroups. */
extern void value_store_begin(ValueStore *store, uint32 ngroups);
/*
 * Returns the next group and the number of its values. Each group comes once, in no special order.
 * False if there are no more.
 */
extern bool value_store_next(ValueStore *store, uint32 *group, int64 *n);
/*
 * Sets values[i] to the group's value of rank ranks[i], for m ascending, different ranks. With
 * `mode`, also sets mode[0] and mode[1] to the most frequent value. If several are equally
 * frequent, mode[0] is the first of them in the order, and mode[1] the last. Call it at most once
 * for a group. By-reference values are valid until the next call of value_store_next.
 */
extern void value_store_fetch(ValueStore *store, const int64 *ranks, int m, Datum *values,
							  Datum *mode);

/* ---- to other stores ------------------------------------------------------- */

/* Groups by partition of an export (GroupSink.part). */
typedef struct ExportGroups
{
	int nparts;       /* 1 if the export is not partitioned */
	uint32 *starts;   /* [partition] its first group in order[]; one more is the end */
	uint32 *order;    /* the groups, one partition after another */
	uint16 *part_of;  /* [group] */
	uint32 *index_of; /* [group] its number in the partition */
} ExportGroups;

/* Lets the next writes go to a partition. */
static inline void
export_part(GroupSink *sink, uint32 part)
{
	if (sink->part)
		sink->part(sink, part);
}

/*
 * Writes all values to *sink, each in the partition of its group and with the group's number there.
 * The store must be reset then.
 */
extern void value_store_export(ValueStore *store, GroupSink *sink, const ExportGroups *groups);
/*
 * Called with a value that could not be imported; `foreign` is its group's number in the
 * export.
 */
typedef void (*ValueRejected)(void *arg, uint32 foreign, Datum value);
/*
 * Appends a partition that another store has exported. groups[] maps the group numbers there to
 * those here. Calls `reject` with the other store's number instead if that is NO_VALUE_GROUP, or if
 * the dictionary has no room.
 */
extern void value_store_import(ValueStore *store, GroupSource *source, const uint32 *groups,
							   uint32 ngroups, ValueRejected reject, void *arg);

#endif /* GPUAGG_VALUE_STORE_H */
