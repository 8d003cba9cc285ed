/*
 * keys.h
 *	  Keys of groups as packed words, bins and hashes.
 *
 * A row of the table of groups begins with its keys: first the packed words, by
 * which groups are found, then one word for each key whose words do not tell how
 * its value was written.  Equal keys may differ in that (1.0 and 1.00, -0 and 0);
 * a group keeps the values of its first row.
 */
#ifndef GPUAGG_GROUP_KEYS_H
#define GPUAGG_GROUP_KEYS_H

#include "postgres.h"

#include "batch.h"
#include "groups/dictionary.h"
#include "spec.h"

/* Where a key is in a row. */
typedef struct KeyLayout
{
	int word; /* -1: only word `shown` has it */
	int shift;
	uint64 mask;   /* unshifted */
	int null_word; /* -1: the dictionary has a code for NULL */
	uint64 null_bit;
	int shown; /* word with the value of the first row, or -1 */
} KeyLayout;

/* Values of an integer key. */
typedef struct KeyRange
{
	int64 min, max;
	int64 factor; /* in the mixed-radix bin number */
	bool any;     /* min and max are set */
} KeyRange;

typedef struct GroupKeys
{
	const AggSpec *spec;
	MemoryContext value_cxt; /* Datums in words `shown` */
	MemoryContext spare_cxt; /* empty; see group_keys_carry */
	int nwords;              /* packed words, which are hashed and compared */
	int nhead;               /* these and the shown ones */
	KeyLayout *layout;       /* [key] */
	KeyRange *ranges;        /* [key]: of all batches seen; of integer keys */
	Dictionary **dicts;      /* [key]; NULL where not KEY_DATUM */
	size_t shown_bytes;      /* of Datums in value_cxt that the dictionaries do not have */
	HashSeed spill_seed;     /* stays, as partitions of spilled rows depend on it */

	/* of one batch */
	uint64 **words;  /* [word][row] */
	bool *started;   /* [word]: group_keys_pack has written it */
	int32 **codes;   /* [key][row], KEY_DATUM */
	uint32 **hashes; /* [key][row], KEY_DATUM */
} GroupKeys;

/*
 * In the current context.  With `segmented`, rows keep Datum keys as they are,
 * as equal ones are adjacent and need no codes.
 */
extern void group_keys_init(GroupKeys *keys, const AggSpec *spec, bool segmented, int batch_rows);
/* Has group_keys_spill_hash() depend on this seed alone, before the first key. */
extern void group_keys_set_seed(GroupKeys *keys, HashSeed seed);
/* Forgets all values. */
extern void group_keys_reset(GroupKeys *keys);
/* Bytes of Datums outside of the rows. */
extern size_t group_keys_memory(const GroupKeys *keys);

/* ---- a batch ------------------------------------------------------------ */

/*
 * Fills words, codes and hashes.  Values that have no code get one while there
 * are fewer than max_codes and max_bytes of them.
 */
extern void group_keys_pack(GroupKeys *keys, const Batch *batch, int64 max_codes, size_t max_bytes);
/* Was there no room for the value of some key of row i in its dictionary? */
extern bool group_keys_lack_code(const GroupKeys *keys, int i);
/* Widens ranges[] by the keys of a batch; every key is KEY_RAW. */
extern void group_keys_ranges(const GroupKeys *keys, const Batch *batch, KeyRange *ranges);
/* Fills words[0] with bin numbers; all keys are within keys->ranges. */
extern void group_keys_bins(GroupKeys *keys, const Batch *batch);
/* Fills the hashes of Datum keys alone, as group_keys_spill_hash needs them. */
extern void group_keys_hash_datums(GroupKeys *keys, const Batch *batch);
/*
 * A hash of the keys of row i that depends neither on codes nor on the table's
 * present seed, so that all rows and groups of one key go to the same partition.
 */
extern uint64 group_keys_spill_hash(const GroupKeys *keys, const Batch *batch, int i);
/* Are rows i and j equal in the keys that are kept as Datums?  Their NULLs are. */
extern bool group_keys_same_datums(const GroupKeys *keys, const Batch *batch, int i, int j);

/* ---- a row of the table ------------------------------------------------- */

/* Writes the keys of batch row i to a blank row; the batch is packed. */
extern void group_keys_store(GroupKeys *keys, char *row, const Batch *batch, int i);
/* Is a row's key that of batch row i, which is packed? */
extern bool group_keys_row_matches(const GroupKeys *keys, const char *row, const Batch *batch,
								   int i);
/* Frees the Datums of all rows but this one. */
extern void group_keys_carry(GroupKeys *keys, char *row);
/* A key's SQL value.  By-reference values stay the table's. */
extern Datum group_key_datum(const GroupKeys *keys, const char *row, int key, bool *isnull);
/* The same of n rows, each row_size bytes behind the one before. */
extern void group_key_datums(const GroupKeys *keys, const char *row, Size row_size, int n, int key,
							 Datum *values, bool *nulls);
/* An integer key as a signed number. */
extern int64 group_key_integer(const GroupKeys *keys, const char *row, int key, bool *isnull);
/* What group_keys_spill_hash gives for this row's keys. */
extern uint64 group_keys_row_hash(const GroupKeys *keys, const char *row);

#endif /* GPUAGG_GROUP_KEYS_H */
