/*
 * dictionary.h
 *	  Values of any hashable type to dense codes, by the type's own equality.
 *
 * Codes count up from 0 in order of first appearance; NULL is a value like any
 * other.  The value kept for a code is the first one that came, detoasted.
 * Hashes compare within one dictionary only, as each has a seed of its own.
 */
#ifndef GPUAGG_DICTIONARY_H
#define GPUAGG_DICTIONARY_H

#include "postgres.h"

#include "batch.h"
#include "operators/cpu_hash.h"
#include "spec.h"

typedef struct Dictionary Dictionary;

#define NO_CODE (-1)

extern Dictionary *dictionary_create(MemoryContext parent, const KeySpec *key,
									 const ColumnSpec *col, int batch_rows);
/*
 * The codes and hashes of a column.  A new value gets the next code while there
 * are fewer than max_codes and max_bytes, and at least one in any case; else
 * NO_CODE.
 */
extern void dictionary_lookup(Dictionary *dict, const Column *col, int nrows, int64 max_codes,
							  size_t max_bytes, int32 *codes, uint32 *hashes);
/* The hashes alone. */
extern void dictionary_hash_column(Dictionary *dict, const Column *col, int nrows, uint32 *hashes);
extern Datum dictionary_value(const Dictionary *dict, int32 code, bool *isnull);
/* Instead of a random seed, before the first value. */
extern void dictionary_set_seed(Dictionary *dict, HashSeed seed);

/* The hash that dictionary_lookup gave for the value of a code. */
extern uint32 dictionary_hash(Dictionary *dict, int32 code);
/*
 * Is a value the one kept for its code byte by byte?  Equal ones may differ, as
 * 1.0 and 1.00 do.  Either may be compressed or out of line.
 */
extern bool dictionary_shows(const Dictionary *dict, int32 code, Datum value);
/*
 * From now on each lookup says whether it met a value that differs from the one kept for its code.
 */
extern void dictionary_watch_variants(Dictionary *dict);
extern bool dictionary_met_variant(const Dictionary *dict);
extern bool dictionary_equal(Dictionary *dict, Datum a, Datum b);
extern int dictionary_size(const Dictionary *dict);
extern size_t dictionary_memory(const Dictionary *dict);
extern void dictionary_reset(Dictionary *dict);

#endif /* GPUAGG_DICTIONARY_H */
