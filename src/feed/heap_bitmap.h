/*
 * heap_bitmap.h
 *	  Which tuples a bitmap heap scan wants; see heap_bitmap.c.
 */
#ifndef GPUAGG_FEED_HEAP_BITMAP_H
#define GPUAGG_FEED_HEAP_BITMAP_H

#include "postgres.h"

#include "nodes/execnodes.h"
#include "storage/block.h"
#include "storage/off.h"

typedef struct HeapBitmap HeapBitmap;

/* The quals that rows of a scan must pass: for a bitmap scan those of the indexes as well. */
extern List *heap_scan_quals(const ScanState *node);

/* In the current memory context; no index is read yet. */
extern HeapBitmap *heap_bitmap_create(BitmapHeapScanState *node);
/*
 * The next block below nblocks, or InvalidBlockNumber at the end.  *n is how many of its tuples the bitmap names, by
 * their line pointers in wanted[MaxHeapTuplesPerPage], or -1: any may be wanted.  The first call reads the indexes.
 */
extern BlockNumber heap_bitmap_next(HeapBitmap *bitmap, BlockNumber nblocks, OffsetNumber *wanted, int *n);
/* Frees what indexes have said; the next call reads them again. */
extern void heap_bitmap_stop(HeapBitmap *bitmap);

#endif							/* GPUAGG_FEED_HEAP_BITMAP_H */
