/*
 * value_dictionary.h
 *	  A dictionary: values of any hashable type to dense codes, by the type's own equality.
 *
 * Codes count up from 0 in the order of first appearance. NULL is a value like any other. The value
 * kept for a code is the first one that was looked up, detoasted. Each dictionary has its own
 * random seed, so hashes of different dictionaries cannot be compared.
 *
 * All memory is below the context given at creation. Functions may raise errors, and check for
 * interrupts where they call functions of the type.
 */
#ifndef GPUAGG_VALUE_DICTIONARY_H
#define GPUAGG_VALUE_DICTIONARY_H

#include "postgres.h"

#include "batch.h"
#include "operators/cpu_hash.h"
#include "spec.h"

typedef struct Dictionary Dictionary;

#define NO_CODE (-1)

extern Dictionary *dictionary_create(MemoryContext parent, const KeySpec *key,
									 const ColumnSpec *col, int batch_rows);
/*
 * Finds or adds the values of a column; fills codes[] and hashes[]. A new value gets the next code
 * as long as there are fewer than max_codes codes and max_bytes bytes; the first value always gets
 * one. Codes are given in the order of rows. A value without a code gets NO_CODE.
 */
extern void dictionary_lookup(Dictionary *dict, const Column *col, int nrows, int64 max_codes,
							  size_t max_bytes, int32 *codes, uint32 *hashes);
/* Fills hashes[] as dictionary_lookup does, without looking up or adding values. */
extern void dictionary_hash_column(Dictionary *dict, const Column *col, int nrows, uint32 *hashes);
/* Returns the value kept for a code, which belongs to the dictionary; sets *isnull. */
extern Datum dictionary_value(const Dictionary *dict, int32 code, bool *isnull);
/* What the dictionary has for all of its codes; until the next lookup. */
typedef struct DictionaryView
{
	int n;
	const Datum *values;
	const uint32 *hashes;
	int32 null_code; /* NO_CODE: NULL has none */
} DictionaryView;

extern DictionaryView dictionary_view(const Dictionary *dict);
/* Replaces the random seed; only before the first value. */
extern void dictionary_set_seed(Dictionary *dict, HashSeed seed);

/* Returns the hash that dictionary_lookup gave for the value of a code. */
extern uint32 dictionary_hash(const Dictionary *dict, int32 code);
/*
 * Returns whether a value has the same bytes as the one kept for its code. Equal values may differ
 * in their bytes, as 1.0 and 1.00 do. Either value may be compressed or out of line.
 */
extern bool dictionary_has_image(const Dictionary *dict, int32 code, Datum value);
/*
 * From now on, each lookup records whether it met a variant: a value whose bytes differ from those
 * of the equal value kept. dictionary_met_variant returns that for the last lookup.
 */
extern void dictionary_watch_variants(Dictionary *dict);
extern bool dictionary_met_variant(const Dictionary *dict);
/* Returns whether two values that are not NULL are equal; neither needs to have a code. */
extern bool dictionary_equal(Dictionary *dict, Datum a, Datum b);
/* Returns the id of the dictionary, for Column.dictionary.  dictionary_reset changes it. */
extern uint64 dictionary_id(const Dictionary *dict);
/* Returns the number of codes given so far. */
extern int dictionary_size(const Dictionary *dict);
/* Returns the bytes of values, codes and hash table. */
extern size_t dictionary_memory(const Dictionary *dict);
/* Returns those of them that a dictionary without values, or with one, takes. */
extern size_t dictionary_empty_memory(const Dictionary *dict);
/* Forgets all values; codes start from 0 again. */
extern void dictionary_reset(Dictionary *dict);
/* Makes room for so many values. */
extern void dictionary_reserve(Dictionary *dict, uint32 values);

#endif /* GPUAGG_VALUE_DICTIONARY_H */
