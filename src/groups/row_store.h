/*
 * row_store.h
 *	  Rows kept in memory, column by column, and sorted by keys and order columns.
 *
 * For aggregates with an ORDER BY (feed/sorted_feed.c). In addition to its columns, each row has
 * 64-bit codes. They compare like the query's keys, in some order that makes equal keys adjacent,
 * and then like its order columns. Sorting compares codes only.
 *
 * All memory is below the context given at creation. Functions may raise errors.
 */
#ifndef GPUAGG_ROW_STORE_H
#define GPUAGG_ROW_STORE_H

#include "postgres.h"

#include "batch.h"
#include "groups/value_dictionary.h"
#include "spec.h"

typedef struct RowStore RowStore;

extern RowStore *row_store_create(MemoryContext parent, const AggSpec *spec, int batch_rows);
/* Returns whether this many rows can be appended. Rows are numbered in 32 bits. */
extern bool row_store_has_room(const RowStore *store, int rows);
extern void row_store_append(RowStore *store, const Batch *batch);
/* Returns the bytes in use, including those that sorting will need. */
extern size_t row_store_memory(const RowStore *store);
extern void row_store_sort(RowStore *store);
/* Returns rows of the sorted store, beginning with number `from`, as a batch; NULL past the end. */
extern Batch *row_store_gather(RowStore *store, int64 from);
/*
 * Returns rows in the order in which they were appended, beginning with number `from`, as a batch;
 * NULL past the end. Only before sorting.
 */
extern Batch *row_store_batch(RowStore *store, int64 from);
/* Forgets the rows; keys keep their codes. */
extern void row_store_clear_rows(RowStore *store);
/* Forgets the rows and the codes of keys. */
extern void row_store_clear(RowStore *store);

/* Returns the codes of a batch's rows: row_store_ncodes arrays, valid until the next call. */
extern int row_store_ncodes(const RowStore *store);
extern uint64 **row_store_codes(RowStore *store, const Batch *batch);
/*
 * Fills codes[] with integers that compare as the first n values of the column do; they are
 * undefined where it is NULL.  Not for decimals and Datums.
 */
extern void row_store_column_codes(const Column *col, int n, uint64 *codes);
/* Returns 64-bit hashes of the keys of a batch: equal keys have equal hashes. */
extern const uint64 *row_store_key_hashes(RowStore *store, const Batch *batch);

#endif /* GPUAGG_ROW_STORE_H */
