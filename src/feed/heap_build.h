/*
 * heap_build.h
 *	  Builds chunks of the column cache from the pages of a table.
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
 * The key of a table's column in the cache; false if the cache cannot hold the column.
 * scale: -1, or that of the decimals which are wanted of a numeric without a declared scale; others
 * ignore it.
 */
extern bool heap_build_key(TupleDesc desc, AttrNumber attno, int16 scale, CacheColumnKey *key);

/* The column type that chunks of a column have. */
extern ColumnType heap_build_type(TupleDesc desc, const CacheColumnKey *key, int16 *scale);

/* Prepares to build chunks of these columns of a table, in the current memory context. */
extern HeapBuilder *heap_builder_create(Relation rel, CacheTable *table, int ncols,
										const CacheColumnKey *cols);

/* From what the scan's snapshot sees; the scan must outlive heap_builder_stop. */
extern void heap_builder_start(HeapBuilder *builder, HeapScanDesc scan);

/*
 * Puts the columns that a range lacks into the cache, if there is memory, and returns the range
 * pinned, or NULL if it is not in the cache.  pin: the range as the caller has pinned it for the
 * builder's columns, which is taken over; or NULL: it was not there.  nblocks: as many of its
 * blocks as the table has.  Adds the blocks that were read to *built.
 */
extern CachePin *heap_build_range(HeapBuilder *builder, Proof *proof, CachePin *pin, uint32 number,
								  int nblocks, uint64 *built);

/* Of the builder's columns, these are to be built from now on; at first all are. */
extern void heap_builder_ask(HeapBuilder *builder, const bool *asked);

/* Was there no memory for what has been built since the start? */
extern bool heap_builder_full(const HeapBuilder *builder);

/*
 * Reads a range anew and replaces its descriptor, which is pinned by the table's handle and
 * unpinned here, with all its chunks, if fewer blocks are stale then; returns whether it did.
 */
extern bool heap_build_again(HeapBuilder *builder, Proof *proof, CachePin *old, int nblocks);

/* Releases the pages that it has pinned. */
extern void heap_builder_stop(HeapBuilder *builder);

#endif /* GPUAGG_FEED_HEAP_BUILD_H */
