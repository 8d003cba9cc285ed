/*
 * table.h
 *	  Groups of the CPU engine: rows of keys and states, found by key.
 *
 * A group is one row of fixed size in one array: its keys (keys.h), the states
 * of fallback aggregates, the states of slots.  A row is named by its offset in
 * 4-byte cells, so that a loop finds a state with one scaled address.  The array
 * moves as it grows; offsets stay.
 *
 * Rows are found by key in one of these ways, and the table can change from
 * one to another as its rows keep their keys:
 *
 *	single		no keys: row 0
 *	segmented	input with equal keys adjacent: a change of keys starts a group
 *	direct		an array over the range of integer keys
 *	hash		open addressing on packed key words
 *	dictionary	one key of any type: its code is the row number
 *
 * table.c has the rows and their memory, locate.c finds them.  All memory is
 * below `cxt`, a child of the context of its creation.
 */
#ifndef GPUAGG_GROUP_TABLE_H
#define GPUAGG_GROUP_TABLE_H

#include "postgres.h"

#include "batch.h"
#include "groups/keys.h"
#include "spec.h"

#define NO_GROUP PG_UINT32_MAX

/* State of a fallback aggregate; see AggStatePerGroupData in nodeAgg.h. */
typedef struct FallbackState
{
	Datum value;
	bool isnull;
	bool notrans;  /* strict, and no input yet */
	bool fresh;    /* value is the aggregate's initial one, not a copy */
	bool combined; /* with another one */
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
	size_t state_off; /* of the first slot */
	size_t row_size;
	uint32 row_cells;
	char *blank; /* a new row */

	/* rows */
	char *chunk; /* what was allocated */
	char *rows;  /* aligned to a cache line */
	uint32 ngroups;
	uint32 capacity;
	uint32 max_groups;     /* memory allows no more; at least 1 */
	size_t max_dict_bytes; /* nor dictionaries with more bytes */
	bool frozen;           /* a new group was refused, so all later ones must be:
							* rows of one group may not be in two places */

	/* TABLE_HASH: hash << 32 | row offset */
	uint64 *table;
	uint32 mask;
	HashSeed seed;      /* drawn anew after too long a probe sequence */
	uint32 seed_groups; /* groups when it was drawn last */
	double expected;    /* so many groups were estimated */

	/* TABLE_DIRECT: row offsets */
	uint32 *map;
	int64 bins;
	int64 max_bins;

	/* of one batch */
	uint32 *hash;    /* [row] */
	uint32 *at;      /* [row]: offset in cells, or NO_GROUP */
	uint32 *missing; /* rows without a group: memory is used up */
	int nmissing;
	bool denied;       /* there are some */
	uint32 *run_start; /* rows where runs of equal keys start, and the end */
	int nruns;         /* 0: runs were not determined */
	uint32 *run_at;    /* [run]: as at */
	double mean_run;

	int changes; /* of mode, beyond the first choice */

	const char *foreign; /* rows being located, of another table; or NULL: those of a batch */

	/* called with each new row; may be NULL */
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
 * A table of mode SINGLE, SEGMENTED or DICTIONARY keeps that mode.  One that may become
 * DIRECT starts as HASH: see group_table_use_direct.
 */
extern GroupTable *group_table_create(MemoryContext parent, const AggSpec *spec, TableMode mode,
									  int batch_rows);
/* Forgets all groups and gives their memory back. */
extern void group_table_reset(GroupTable *table);
/*
 * Sets how many groups there may be in so many bytes; always one at least.  A
 * group takes group_bytes elsewhere.
 */
extern void group_table_budget(GroupTable *table, size_t bytes, double group_bytes);
extern size_t group_table_memory(const GroupTable *table);
/*
 * An estimate may be wrong by any factor, and memory may have no bound worth the name: room is made
 * at once for so many groups that are expected, and for so many times the groups that there are.
 */
#define GROUPS_UNPROVEN (2.0 * 1024 * 1024)
#define GROUPS_PER_GROUP 64

/* Slots of TABLE_HASH for so many groups. */
extern size_t group_table_hash_size(double groups);
/*
 * Makes room for so many groups at once, where memory allows: rows that are not moved as
 * they grow lie on large pages.
 */
extern void group_table_reserve(GroupTable *table, double groups);
/* Adds a blank row and returns its offset. */
extern uint32 group_table_add(GroupTable *table);
/* Segmented: drops all groups but the last, which may continue in the next batch. */
extern void group_table_carry_last(GroupTable *table);
/* Large pages spare the random accesses of large arrays address translation. */
extern void group_table_advise_huge(char *start, size_t size);

/* ---- locate.c ----------------------------------------------------------- */

/*
 * Finds or makes the group of every row: fills at, the runs if there are any,
 * and missing.
 */
extern void group_table_locate(GroupTable *table, const Batch *batch);
/*
 * The same for n rows, at most batch_rows, of a table with the same spec in another process: of
 * their keys, none of which are Datums.  The table is a TABLE_HASH.
 */
extern void group_table_locate_rows(GroupTable *table, const char *rows, int n);
/*
 * Drops all groups but the first n, which the first `rows` of the rows that were located last
 * belong to, and forgets the other rows.  A table that is not segmented takes no new groups any
 * more.
 */
extern void group_table_cut(GroupTable *table, uint32 n, int rows);
/* Changes over to TABLE_HASH, in which so many groups are expected. */
extern void group_table_use_hash(GroupTable *table, double groups);
/*
 * Changes over to TABLE_DIRECT over keys.ranges, which are extended to the groups that are there;
 * false if they are too wide.
 */
extern bool group_table_use_direct(GroupTable *table);

#endif /* GPUAGG_GROUP_TABLE_H */
