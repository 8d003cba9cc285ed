/*
 * heap_index.h
 *	  Which tuples an index scan wants; see heap_index.c.
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
 * In the current memory context; nothing is read yet.  may_end_early: where pages have few of its
 * tuples the scan ends, and the owner has core's node execute the rest.
 */
extern HeapIndex *heap_index_create(IndexScanState *node, bool may_end_early);
/*
 * The block of the next tuple, or InvalidBlockNumber at the end.  The first call begins the scan.
 */
extern BlockNumber heap_index_next(HeapIndex *index);
/*
 * Of that block, which is pinned and not locked: the index names *n of its tuples one after
 * another, by their line pointers in wanted[MaxHeapTuplesPerPage]; some that are dead to all are
 * left out.  *recheck: they need not pass its conditions.
 */
extern void heap_index_take(HeapIndex *index, Buffer buffer, OffsetNumber *wanted, int *n,
							bool *recheck);
/* Has it ended early? */
extern bool heap_index_ended_early(const HeapIndex *index);
/* The node has been, or will be, rescanned or ended. */
extern void heap_index_stop(HeapIndex *index);

#endif /* GPUAGG_FEED_HEAP_INDEX_H */
