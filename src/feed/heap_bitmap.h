/*
 * heap_bitmap.h
 *
 * Tuples that a bitmap heap scan selects; see heap_bitmap.c.
 */
#ifndef GPUAGG_FEED_HEAP_BITMAP_H
#define GPUAGG_FEED_HEAP_BITMAP_H

#include "postgres.h"

#include "nodes/execnodes.h"
#include "storage/block.h"
#include "storage/off.h"

typedef struct HeapBitmap HeapBitmap;
struct FeedShared;

/* Returns the conditions of the indexes that a bitmap or index scan reads; NIL for other scans. */
extern List *heap_index_quals(const ScanState *node);

/* Returns the quals that rows of a scan must pass, including those conditions. */
extern List *heap_scan_quals(const ScanState *node);

/* Returns whether a qual of heap_scan_quals() is one of heap_index_quals(). */
extern bool heap_is_index_qual(const ScanState *node, const Expr *qual);

/*
 * Creates the state in the current memory context; reads no index.  shared: Feed.shared.
 */
extern HeapBitmap *heap_bitmap_create(BitmapHeapScanState *node, struct FeedShared **shared);
/*
 * Returns the next block below nblocks, or InvalidBlockNumber at the end. Sets wanted[0 .. *n - 1]
 * to the line pointers of its selected tuples; *n is -1 if the bitmap does not name tuples, so
 * that any may qualify. wanted has room for MaxHeapTuplesPerPage. *recheck: the tuples may fail
 * the conditions of the indexes. The first call reads the indexes.
 */
extern BlockNumber heap_bitmap_next(HeapBitmap *bitmap, BlockNumber nblocks, OffsetNumber *wanted,
									int *n, bool *recheck);
/* Frees the bitmap; the next call reads the indexes again. */
extern void heap_bitmap_stop(HeapBitmap *bitmap);

#endif /* GPUAGG_FEED_HEAP_BITMAP_H */
