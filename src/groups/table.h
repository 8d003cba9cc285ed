/*
 * table.h
 *	  Groups of the CPU engine: rows of keys and states, found by key.
 *
 * A group is one row of fixed size in one array: packed key words, values to
 * show, own transition states, slot states.  A row is named by its offset in
 * 4-byte cells, so that a loop finds a state with one scaled address.  Row
 * storage moves as it grows; offsets stay.
 *
 * Rows are found by key in one of these ways, and the table can change from
 * one to another as its rows keep their keys:
 *
 *	single		no keys: row 0
 *	segmented	the run of equal adjacent keys decides; nothing is looked up
 *	direct		an array over the range of integer keys
 *	hash		open addressing on packed key words
 *	dictionary	one key of any type: its code is the row number
 *
 * Equal keys need not look alike: 1.0 and 1.00, -0 and 0.  A group shows those
 * of its first row.  Where codes are the groups, the dictionary has them; else
 * each row of the table keeps what its words do not tell.
 *
 * Memory: everything lives under `cxt`, a child of the engine's context.
 */
#ifndef GPUAGG_GROUP_TABLE_H
#define GPUAGG_GROUP_TABLE_H

#include "postgres.h"

#include "batch.h"
#include "groups/dictionary.h"
#include "spec.h"

#define NO_GROUP PG_UINT32_MAX

/* Transition state of an aggregate run by its own function; see nodeAgg.c. */
typedef struct FallbackState
{
	Datum		value;
	bool		isnull;
	bool		notrans;		/* strict, and no input yet */
	bool		fresh;			/* value is the aggregate's initial one */
	bool		combined;		/* with another one */
} FallbackState;

typedef enum TableMode
{
	TABLE_SINGLE,
	TABLE_SEGMENTED,
	TABLE_DIRECT,
	TABLE_HASH,
	TABLE_DICTIONARY
} TableMode;

/* Where a key is in a row. */
typedef struct KeyLayout
{
	int			word;			/* -1: only `shown` has it */
	int			shift;
	uint64		mask;			/* unshifted */
	int			null_word;		/* -1: the dictionary knows NULL */
	uint64		null_bit;
	int			shown;			/* word with the value to show, or -1 */
} KeyLayout;

/* Range of an integer key under TABLE_DIRECT. */
typedef struct KeyRange
{
	int64		min,
				max;
	int64		factor;			/* in the mixed-radix bin number */
	bool		any;			/* min and max are set */
} KeyRange;

typedef struct GroupTable
{
	const AggSpec *spec;
	MemoryContext cxt;
	MemoryContext key_cxt;		/* Datums of key columns that rows show */
	MemoryContext spare_cxt;	/* its other half, for the group carried over */
	TableMode	mode;
	int			batch_rows;

	/* layout */
	int			nwords;			/* packed key words, hashed and compared */
	int			nhead;			/* these and the shown ones */
	KeyLayout  *keys;
	size_t		fallback_off;
	size_t	   *slot_off;
	size_t		state_off;		/* of the first slot */
	size_t		row_size;
	uint32		row_cells;
	char	   *blank;			/* a new row */

	/* rows */
	char	   *chunk;			/* what was allocated */
	char	   *rows;			/* aligned to a cache line */
	uint32		ngroups;
	uint32		capacity;
	uint32		max_groups;		/* memory allows no more; at least 1 */
	size_t		max_dict_bytes;
	size_t		shown_bytes;	/* of Datums to show beside the dictionaries' */
	bool		frozen;			/* a group was denied: from now on all new ones are,
								 * or rows of one group would be in two places */

	/* TABLE_HASH: hash << 32 | row offset */
	uint64	   *table;
	uint32		mask;
	HashSeed	seed;			/* drawn anew where rows crowd together */
	uint32		seed_groups;	/* groups when it was drawn last */

	HashSeed	spill_seed;		/* stays: partitions of spilled rows depend on it */

	/* TABLE_DIRECT: row offsets */
	uint32	   *map;
	int64		bins;
	int64		max_bins;
	KeyRange   *ranges;			/* also before, of the batches seen */

	Dictionary **dicts;			/* [key]; NULL where not KEY_DATUM */

	/* one batch */
	uint64	  **words;			/* [word][row] */
	bool	   *started;		/* [word]: packing has written it */
	int32	  **codes;			/* [key][row], KEY_DATUM */
	uint32	  **hashes;			/* [key][row], KEY_DATUM */
	uint32	   *hash;			/* [row] */
	uint32	   *at;				/* [row]: offset in cells, or NO_GROUP */
	uint32	   *missing;		/* rows without a group: memory is used up */
	int			nmissing;
	bool		denied;			/* there are some */
	uint32	   *run_start;		/* rows where runs of equal keys start, and the end */
	int			nruns;			/* 0: not looked for */
	uint32	   *run_at;
	double		mean_run;

	int			changes;		/* of mode, beyond the first choice */

	/* called with each new row; may be NULL */
	void		(*init_row) (void *arg, char *row);
	void	   *init_arg;
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

/* group_table.c */
extern GroupTable *group_table_create(MemoryContext parent, const AggSpec *spec, TableMode mode,
									  bool segmented, int batch_rows);
extern void group_table_reset(GroupTable *table);
extern void group_table_budget(GroupTable *table, size_t bytes, double group_bytes);
extern size_t group_table_memory(const GroupTable *table);
extern uint32 group_table_add(GroupTable *table);
extern void group_table_locate(GroupTable *table, const Batch *batch);
extern void group_table_use_hash(GroupTable *table, double groups);
extern bool group_table_use_direct(GroupTable *table);
extern void group_table_carry_last(GroupTable *table);

/* group_keys.c */
extern void group_keys_layout(GroupTable *table, bool segmented);
extern void group_keys_pack(GroupTable *table, const Batch *batch);
extern void group_keys_ranges(const GroupTable *table, const Batch *batch, KeyRange *ranges);
extern void group_keys_bins(GroupTable *table, const Batch *batch);
extern void group_keys_store(GroupTable *table, char *row, const Batch *batch, int i);
extern bool group_keys_same_datums(const GroupTable *table, const Batch *batch, int i, int j);
extern bool group_keys_row_matches(const GroupTable *table, const char *row, const Batch *batch,
								   int i);
extern Datum group_key_datum(const GroupTable *table, const char *row, int key, bool *isnull);
extern uint64 group_key_value(const GroupTable *table, const char *row, int key, bool *isnull);
extern uint64 group_keys_spill_hash(const GroupTable *table, const Batch *batch, int i);
extern uint64 group_keys_row_hash(const GroupTable *table, const char *row);

#endif							/* GPUAGG_GROUP_TABLE_H */
