/*
 * heap_build.h
 *
 * Adds ranges of a table's blocks to the column cache.
 */
#ifndef GPUAGG_FEED_HEAP_BUILD_H
#define GPUAGG_FEED_HEAP_BUILD_H

#include "postgres.h"

#include "access/tupdesc.h"

#include "cache/store.h"
#include "feed/heap_columns.h"
#include "feed/heap_page.h"

typedef struct HeapBuilder HeapBuilder;

/*
 * Sets *key to the cache's key of a table's column; returns false if the cache cannot hold it.
 * scale: for a numeric without a declared scale, the scale of the decimals that are wanted; -1:
 * none. Other types ignore it.
 */
extern bool heap_build_key(TupleDesc desc, AttrNumber attno, int16 scale, CacheColumnKey *key);

/* Returns the column type of a column's chunks, and sets *scale. */
extern ColumnType heap_build_type(TupleDesc desc, const CacheColumnKey *key, int16 *scale);

/* Prepares to build chunks of these columns of a table, in the current memory context. */
extern HeapBuilder *heap_builder_create(Relation rel, CacheTable *table, int ncols,
										const CacheColumnKey *cols);

/*
 * Sets the scan whose snapshot decides which rows are built. The scan must outlive
 * heap_builder_stop().
 */
extern void heap_builder_start(HeapBuilder *builder, HeapScanDesc scan);

/*
 * Adds the columns that a range lacks to the cache, if there is memory. Returns the range pinned,
 * or NULL if it is not in the cache. pin: the range as pinned by the caller for the builder's
 * columns, which this function takes over; NULL: it was not cached. nblocks: how many of its
 * blocks the table has. Adds the number of blocks read to *built.
 */
extern CachePin *heap_build_range(HeapBuilder *builder, Proof *proof, CachePin *pin, uint32 number,
								  int nblocks, uint64 *built);

/* Restricts building to some of the builder's columns; at first all are built. */
extern void heap_builder_select(HeapBuilder *builder, const bool *selected);

/* Returns whether the cache had no memory for something built since heap_builder_start(). */
extern bool heap_builder_full(const HeapBuilder *builder);

/*
 * Reads a range again and replaces its descriptor and all chunks, if fewer blocks are stale then.
 * old: the range, pinned by the table's handle; unpinned here. Returns whether the range was
 * replaced.
 */
extern bool heap_build_again(HeapBuilder *builder, Proof *proof, CachePin *old, int nblocks);

/* Releases the pages that are pinned. */
extern void heap_builder_stop(HeapBuilder *builder);

#endif /* GPUAGG_FEED_HEAP_BUILD_H */
