/*
 * table.h
 *	  Groups of the CPU engine: rows of keys and states, found by key.
 *
 * A group is one row of fixed size in one array. A row has the group's keys (keys.h), the states of
 * fallback aggregates, then the states of slots. A row is identified by its offset in 4-byte cells,
 * so that a loop finds a state with one scaled address. The array may move when it grows; offsets
 * stay valid.
 *
 * Rows are found by key in one of these ways (TableMode). A table can change its mode, because the
 * rows keep their keys:
 *
 *	single		no keys: row 0
 *	segmented	input with equal keys adjacent: a change of keys starts a group
 *	direct		an array over the range of integer keys
 *	hash		open addressing on packed key words
 *	dictionary	one key of any type: its dictionary code is the row number
 *
 * table.c owns the rows and their memory, locate.c finds them. All memory is below `cxt`, a child
 * of the context given at creation. Functions may raise errors and check for interrupts.
 *
 * Three structures of this folder map keys to small numbers, each for its own reason. GroupTable
 * hashes fixed-width words and stores states next to the keys. Dictionary (value_dictionary.h)
 * hashes single values of any type, with the type's own equality; its codes become words of a
 * GroupTable's keys. GroupBits (bits.h) needs no table at all, but takes only integer keys without
 * states.
 */
#ifndef GPUAGG_GROUP_TABLE_H
#define GPUAGG_GROUP_TABLE_H

#include "postgres.h"

#include "batch.h"
#include "groups/keys.h"
#include "spec.h"

#define NO_GROUP PG_UINT32_MAX

/* State of a fallback aggregate; like AggStatePerGroupData in nodeAgg.c. */
typedef struct FallbackState
{
	Datum value;
	bool isnull;
	bool notrans;  /* the transition function is strict and has had no input yet */
	bool fresh;    /* value is the aggregate's initial value itself, not a copy */
	bool combined; /* has been combined with another state */
	uint32 bound;  /* for engine_cpu/top_entries.c: rows beyond it change nothing */
} FallbackState;

typedef enum TableMode
{
	TABLE_SINGLE,
	TABLE_SEGMENTED,
	TABLE_DIRECT,
	TABLE_HASH,
	TABLE_DICTIONARY
} TableMode;

typedef struct GroupTable
{
	const AggSpec *spec;
	MemoryContext cxt;
	TableMode mode;
	int batch_rows;
	GroupKeys keys;

	/* layout of a row, after its keys */
	size_t fallback_off;
	size_t *slot_off;
	size_t state_off; /* offset of the first slot's states */
	size_t row_size;
	uint32 row_cells;
	char *blank; /* row_size bytes: the content of a new row */

	/* the rows */
	char *rows; /* aligned to a cache line, or to a large page (huge_pages.h) */
	uint32 ngroups;
	uint32 capacity;
	uint32 max_groups;     /* limit that memory allows; at least 1 */
	size_t max_dict_bytes; /* limit of the dictionaries' bytes that memory allows */
	bool frozen; /* A new group has been rejected, so every later new group must be, too: the rows
					of a group must all go to the same place. */

	/* TABLE_HASH: entries are hash << 32 | row offset, or NO_GROUP in the lower half */
	uint64 *table;
	uint32 mask;
	uint32 hash_tables; /* how many hash tables were made so far */
	HashSeed seed;      /* changed after a probe sequence that is too long */
	uint32 seed_groups; /* ngroups when the seed was last changed */
	double expected;    /* estimated number of groups */
	uint64 *spare;      /* memory of a hash table that is not used now, or NULL */
	size_t spare_size;  /* its entries */

	/* TABLE_DIRECT: [bin] row offset, or NO_GROUP */
	uint32 *map;
	int64 bins;
	int64 max_bins;

	/* valid for the batch that was located last */
	uint32 *hash;    /* [row] hash of the packed words */
	uint32 *at;      /* [row] offset of its group's row in cells, or NO_GROUP */
	uint32 *missing; /* rows without a group, because memory is used up */
	int nmissing;
	bool denied;       /* some row has no group */
	uint32 *run_start; /* [run] first row of a run of equal keys; [nruns] is the number of rows */
	int nruns;         /* 0: runs were not determined */
	uint32 *run_at;    /* [run] offset of its group's row in cells, or NO_GROUP */
	double mean_run;

	int changes; /* how often the mode has changed since the first choice */

	const char *foreign_rows; /* While group_table_locate_rows runs: the other table's rows that are
								 being located. Otherwise NULL. */

	/* called for each new row; may be NULL */
	void (*init_row)(void *arg, char *row);
	void *init_arg;
} GroupTable;

static inline char *
group_row(const GroupTable *table, uint32 group)
{
	return table->rows + (size_t) group * table->row_size;
}

static inline char *
group_row_at(const GroupTable *table, uint32 at)
{
	return table->rows + (size_t) at * 4;
}

static inline FallbackState *
group_fallbacks(const GroupTable *table, char *row)
{
	return (FallbackState *) (row + table->fallback_off);
}

/* ---- table.c ------------------------------------------------------------ */

/*
 * Creates an empty table. A table of mode SINGLE, SEGMENTED or DICTIONARY keeps that mode. One that
 * may become DIRECT starts as HASH; see group_table_use_direct.
 */
extern GroupTable *group_table_create(MemoryContext parent, const AggSpec *spec, TableMode mode,
									  int batch_rows);
/* Forgets all groups.  Keeps memory for new ones, if it is little. */
extern void group_table_reset(GroupTable *table);
/* TABLE_HASH: forgets all groups, but keeps the table's memory and the values of Datum keys. */
extern void group_table_clear(GroupTable *table);
/*
 * Sets max_groups: how many groups fit into this many bytes, at least one. group_bytes is what a
 * group takes outside of the table.
 */
extern void group_table_budget(GroupTable *table, size_t bytes, double group_bytes);
/* Returns the bytes of the rows, of the hash table or map, and of keys outside of the rows. */
extern size_t group_table_memory(const GroupTable *table);
/*
 * An estimate may be wrong by any factor, and the memory limit may be huge. Therefore room that is
 * made at once is limited to GROUPS_UNPROVEN expected groups, or GROUPS_PER_GROUP times the groups
 * that exist.
 */
#define GROUPS_UNPROVEN (2.0 * 1024 * 1024)
#define GROUPS_PER_GROUP 64

/* Returns the number of hash entries for this many groups. */
extern size_t group_table_hash_size(double groups);
/*
 * Makes room for this many groups at once, as far as memory allows. Rows that do not move as they
 * grow can lie on large pages.
 */
extern void group_table_reserve(GroupTable *table, double groups);
/* Adds a blank row and returns its offset. */
extern uint32 group_table_add(GroupTable *table);
/* Takes the hash table, if there is one, from the table. Keeps its memory, if it is little. */
extern void group_table_drop_hash(GroupTable *table);
/*
 * Returns such memory for a hash table of `size` entries, or NULL. Memory of another size is freed.
 */
extern uint64 *group_table_take_spare(GroupTable *table, size_t size);
/* TABLE_SEGMENTED: drops all groups but the last one, which may continue in the next batch. */
extern void group_table_carry_last(GroupTable *table);

/* ---- locate.c ----------------------------------------------------------- */

/*
 * Finds or adds the group of every row of a batch. Fills at[], the runs if there are any, and
 * missing[].
 */
extern void group_table_locate(GroupTable *table, const Batch *batch);
/*
 * Finds or adds the groups of n rows (at most batch_rows) that come from a table with the same spec
 * in another process. The table must be a TABLE_HASH, and no key may be a KEY_DATUM.
 */
extern void group_table_locate_rows(GroupTable *table, const char *rows, int n);
/*
 * Drops all groups but the first n. The first `rows` rows that were located last belong to these;
 * the other rows are forgotten. The table accepts no new groups from now on, unless it is
 * segmented.
 */
extern void group_table_truncate(GroupTable *table, uint32 n, int rows);
/* Changes the mode to TABLE_HASH. `groups` is the estimated number of groups. */
extern void group_table_use_hash(GroupTable *table, double groups);
/*
 * Changes the mode to TABLE_DIRECT over keys.ranges, extended to the groups that exist. Returns
 * false, and changes nothing but the ranges, if they need more than max_bins bins.
 */
extern bool group_table_use_direct(GroupTable *table);

#endif /* GPUAGG_GROUP_TABLE_H */
