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

/* The conditions of the indexes that a bitmap or index scan reads. */
extern List *heap_index_quals(const ScanState *node);

/* The quals that rows of a scan must pass, with these. */
extern List *heap_scan_quals(const ScanState *node);

/* Is the qual, one of the latter, one of the former? */
extern bool heap_index_implies(const ScanState *node, const Expr *qual);

/* In the current memory context; no index is read yet. */
extern HeapBitmap *heap_bitmap_create(BitmapHeapScanState *node);
/*
 * The next block below nblocks, or InvalidBlockNumber at the end.  *n is how many of its tuples the
 * bitmap names, by their line pointers in wanted[MaxHeapTuplesPerPage], or -1: any may be wanted.
 * *recheck: those need not pass the indexes' conditions.  The first call reads the indexes.
 */
extern BlockNumber heap_bitmap_next(HeapBitmap *bitmap, BlockNumber nblocks, OffsetNumber *wanted,
									int *n, bool *recheck);
/* Frees what indexes have said; the next call reads them again. */
extern void heap_bitmap_stop(HeapBitmap *bitmap);

#endif /* GPUAGG_FEED_HEAP_BITMAP_H */
