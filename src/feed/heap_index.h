/*
 * heap_index.h
 *
 * Tuples that an index scan selects; see heap_index.c.
 */
#ifndef GPUAGG_FEED_HEAP_INDEX_H
#define GPUAGG_FEED_HEAP_INDEX_H

#include "postgres.h"

#include "nodes/execnodes.h"
#include "storage/block.h"
#include "storage/buf.h"
#include "storage/off.h"

typedef struct HeapIndex HeapIndex;

/*
 * Creates the state in the current memory context; reads nothing. may_end_early: where pages have
 * few of its tuples, the scan ends, and the caller lets the executor return the rest.
 */
extern HeapIndex *heap_index_create(IndexScanState *node, bool may_end_early);
/*
 * Returns the block of the next selected tuple, or InvalidBlockNumber at the end. The first call
 * begins the scan.
 */
extern BlockNumber heap_index_next(HeapIndex *index);
/*
 * Sets wanted[0 .. *n - 1] to the line pointers of selected tuples on that block, which is pinned
 * and not locked; wanted has room for MaxHeapTuplesPerPage. Tuples that are dead to all are left
 * out. *recheck: the tuples may fail the conditions of the index.
 */
extern void heap_index_take(HeapIndex *index, Buffer buffer, OffsetNumber *wanted, int *n,
							bool *recheck);
/* Returns whether the scan has ended before its last tuple. */
extern bool heap_index_ended_early(const HeapIndex *index);
/* Forgets the scan, so that the next call begins one; the node itself is rescanned or ended. */
extern void heap_index_reset(HeapIndex *index);

#endif /* GPUAGG_FEED_HEAP_INDEX_H */
