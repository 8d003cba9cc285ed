/*
 * dictionary.h
 *	  Values of any hashable type to dense codes, by the type's own equality.
 *
 * Codes count up from 0 in order of first appearance; NULL is a value like any
 * other.  The value kept for a code is the first one seen, detoasted.
 */
#ifndef GPUAGG_DICTIONARY_H
#define GPUAGG_DICTIONARY_H

#include "postgres.h"

#include "batch.h"
#include "spec.h"

typedef struct Dictionary Dictionary;

#define NO_CODE (-1)

extern Dictionary *dictionary_create(MemoryContext parent, const KeySpec *key,
									 const ColumnSpec *col, int batch_rows);
/*
 * The codes and hashes of a column.  A value not yet known gets a new code
 * while there are fewer than max_codes and max_bytes, and at least one in any
 * case; else NO_CODE.
 */
extern void dictionary_lookup(Dictionary *dict, const Column *col, int nrows, int64 max_codes,
							  size_t max_bytes, int32 *codes, uint32 *hashes);
/* The hashes alone. */
extern void dictionary_hash_column(Dictionary *dict, const Column *col, int nrows, uint32 *hashes);
extern Datum dictionary_value(const Dictionary *dict, int32 code, bool *isnull);
extern uint32 dictionary_hash(const Dictionary *dict, int32 code);
extern bool dictionary_equal(Dictionary *dict, Datum a, Datum b);
extern int	dictionary_size(const Dictionary *dict);
extern size_t dictionary_memory(const Dictionary *dict);
extern void dictionary_reset(Dictionary *dict);

#endif							/* GPUAGG_DICTIONARY_H */
