/*
 * keys.h
 *	  Keys of groups as packed words, bins and hashes.
 *
 * A row of a GroupTable begins with its keys. First come the packed words, by which groups are
 * found: each key has a field of bits in one of them. Then comes a "shown word" for each key whose
 * packed bits do not determine how its value is shown: equal values may look different, as 1.0 and
 * 1.00 or -0 and 0 do. A group shows the values of its first row.
 *
 * Functions may raise errors where they call functions of the keys' types.
 */
#ifndef GPUAGG_GROUP_KEYS_H
#define GPUAGG_GROUP_KEYS_H

#include "postgres.h"

#include "batch.h"
#include "groups/value_dictionary.h"
#include "spec.h"

/* Where a key is in a row. */
typedef struct KeyLayout
{
	int word; /* index of the packed word; -1: the key has only a shown word */
	int shift;
	uint64 mask;   /* the field's bits, before they are shifted */
	int null_word; /* word of the bit that says NULL; -1: none, the dictionary has a code for NULL
					*/
	uint64 null_bit;
	int shown; /* index of the shown word, or -1 */
} KeyLayout;

/* The range of an integer key's values. */
typedef struct KeyRange
{
	int64 min, max;
	int64 factor; /* weight in the mixed-radix bin number */
	bool any;     /* min and max are set */
} KeyRange;

/* Extends *range by `slack` values on each side where it exceeds *old, but not beyond int64. */
extern void key_range_widen(const KeyRange *old, KeyRange *range, uint64 slack);

typedef struct GroupKeys
{
	const AggSpec *spec;
	MemoryContext value_cxt; /* Datums that shown words point to */
	MemoryContext spare_cxt; /* empty, but see group_keys_carry_last */
	int nwords;              /* packed words, which are hashed and compared */
	int nhead;               /* packed and shown words */
	KeyLayout *layout;       /* [key] */
	KeyRange *ranges;        /* [key] range in all batches so far; integer keys only */
	Dictionary **dicts;      /* [key] NULL where the key is not a KEY_DATUM */
	size_t shown_bytes;      /* bytes in value_cxt that are not the dictionaries' */
	HashSeed spill_seed; /* never changes after the first key, because partitions of spilled rows
							depend on it */

	/* valid for the batch that was packed last */
	uint64 **words;  /* [word][row] */
	bool *started;   /* [word] group_keys_pack has written to it */
	int32 **codes;   /* [key][row] KEY_DATUM only */
	uint32 **hashes; /* [key][row] KEY_DATUM only */
} GroupKeys;

/*
 * Initialises *keys; allocates in the current context. If `segmented`, rows keep Datum keys as they
 * are: equal keys are adjacent and need no codes.
 */
extern void group_keys_init(GroupKeys *keys, const AggSpec *spec, bool segmented, int batch_rows);
/* Makes group_keys_spill_hash() depend on this seed alone; only before the first key. */
extern void group_keys_set_seed(GroupKeys *keys, HashSeed seed);
/* Forgets all values. */
extern void group_keys_reset(GroupKeys *keys);
/* Returns the bytes of Datums outside of the rows. */
extern size_t group_keys_memory(const GroupKeys *keys);
/* Returns those of them that are taken without a group. */
extern size_t group_keys_empty_memory(const GroupKeys *keys);

/* ---- a batch ------------------------------------------------------------ */

/*
 * Fills words, codes and hashes of a batch. Values without a code get one as long as there are
 * fewer than max_codes codes and max_bytes bytes.
 */
extern void group_keys_pack(GroupKeys *keys, const Batch *batch, int64 max_codes, size_t max_bytes);
/* Returns whether some key of row i has no code, because its dictionary has no room. */
extern bool group_keys_lacks_code(const GroupKeys *keys, int i);
/* Widens ranges[] so that they include the keys of a batch. Every key must be a KEY_RAW. */
extern void group_keys_ranges(const GroupKeys *keys, const Batch *batch, KeyRange *ranges);
/* Fills words[0] with the rows' bin numbers. All keys must be within keys->ranges. */
extern void group_keys_bins(GroupKeys *keys, const Batch *batch);
/* Fills the hashes of Datum keys, and nothing else, for group_keys_spill_hash. */
extern void group_keys_hash_datums(GroupKeys *keys, const Batch *batch);
/*
 * Returns a hash of the keys of row i that depends neither on codes nor on the table's current
 * seed: all rows and groups with the same keys go to the same partition.
 */
extern uint64 group_keys_spill_hash(const GroupKeys *keys, const Batch *batch, int i);
/*
 * Returns whether rows i and j are equal in the keys that are kept as Datums. The caller knows that
 * they have the same NULLs.
 */
extern bool group_keys_same_datums(const GroupKeys *keys, const Batch *batch, int i, int j);

/* ---- a row of the table ------------------------------------------------- */

/* Writes the keys of batch row i, which is packed, to a blank row of the table. */
extern void group_keys_store(GroupKeys *keys, char *row, const Batch *batch, int i);
/* Returns whether a row of the table has the keys of batch row i, which is packed. */
extern bool group_keys_row_matches(const GroupKeys *keys, const char *row, const Batch *batch,
								   int i);
/* TABLE_SEGMENTED: frees the Datums of all rows but this one. */
extern void group_keys_carry_last(GroupKeys *keys, char *row);
/* Returns a key's SQL value. By-reference values belong to the table. */
extern Datum group_key_datum(const GroupKeys *keys, const char *row, int key, bool *isnull);
/* Returns the dictionary's hash of a key that is a dictionary code. */
extern uint32 group_key_hash(const GroupKeys *keys, const char *row, int key);
/* Returns a key's SQL values of n rows, which are row_size bytes apart. */
extern void group_key_datums(const GroupKeys *keys, const char *row, Size row_size, int n, int key,
							 Datum *values, bool *nulls);
/*
 * Fills the columns of a batch with the keys of its nrows groups, whose rows begin `stride` bytes
 * apart; not with keys that are dictionary codes.  Columns have memory for values and validity.
 */
extern void group_keys_load(const GroupKeys *keys, const char *rows, Size stride, Batch *batch);
/* Returns an integer key of a group; 0 if it is NULL, which sets *isnull. */
extern int64 group_key_integer(const GroupKeys *keys, const char *row, int key, bool *isnull);
/*
 * Returns whether the values that groups show of a key are those of its dictionary, by their codes.
 * Then sets codes[] to the codes of n rows, *ncodes to the number of codes, and *dictionary to the
 * dictionary's id.
 */
extern bool group_key_codes(const GroupKeys *keys, const char *row, Size row_size, int n, int key,
							uint32 *codes, uint32 *ncodes, uint64 *dictionary);
/* Makes room for this many values of each key that is a dictionary code. */
extern void group_keys_reserve(GroupKeys *keys, uint32 values);
/* Returns what group_keys_spill_hash returns for this row's keys. */
extern uint64 group_keys_row_hash(const GroupKeys *keys, const char *row);

#endif /* GPUAGG_GROUP_KEYS_H */
