/*
 * row_store.h
 *	  Rows kept in memory, column by column, and sorted by keys and order.
 *
 * For ordered aggregates: each row has, besides its columns, 64-bit codes that
 * compare like the query's keys (in some order that brings equal keys together)
 * and then like its order columns.  Sorting compares codes only.
 *
 * All memory is below the context given at creation.
 */
#ifndef GPUAGG_ROW_STORE_H
#define GPUAGG_ROW_STORE_H

#include "postgres.h"

#include "batch.h"
#include "groups/dictionary.h"
#include "spec.h"

typedef struct RowStore RowStore;

extern RowStore *row_store_create(MemoryContext parent, const AggSpec *spec, int batch_rows);
/* May so many rows be appended at all?  They are numbered in 32 bits. */
extern bool row_store_has_room(const RowStore *store, int rows);
extern void row_store_append(RowStore *store, const Batch *batch);
/* Bytes in use, with what sorting will need. */
extern size_t row_store_memory(const RowStore *store);
extern void row_store_sort(RowStore *store);
/* Rows from .. of the sorted store as a batch, at most the batch size; NULL past the end. */
extern Batch *row_store_gather(RowStore *store, int64 from);
/* The rows in the order in which they came, likewise; before sorting. */
extern Batch *row_store_batch(RowStore *store, int64 from);
/* Forgets the rows; keys keep their codes. */
extern void row_store_clear_rows(RowStore *store);
/* Forgets the rows and the codes of keys. */
extern void row_store_clear(RowStore *store);

/* Codes of the rows of a batch: row_store_ncodes arrays, valid until the next call. */
extern int row_store_ncodes(const RowStore *store);
extern uint64 **row_store_codes(RowStore *store, const Batch *batch);
/* 64-bit hashes of the keys of a batch: equal for equal keys. */
extern const uint64 *row_store_key_hashes(RowStore *store, const Batch *batch);

#endif /* GPUAGG_ROW_STORE_H */
