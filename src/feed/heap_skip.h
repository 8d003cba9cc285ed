/*
 * heap_skip.h
 *	  Ranges of the column cache of which no row can pass the query's conditions, or
 *	  every row passes one.
 */
#ifndef GPUAGG_FEED_HEAP_SKIP_H
#define GPUAGG_FEED_HEAP_SKIP_H

#include "postgres.h"

#include "nodes/execnodes.h"

#include "cache/chunk.h"
#include "expr/expr.h"

typedef struct HeapSkip HeapSkip;

/*
 * What chunks' bounds can say of nquals quals, which are evaluated in this order, of a scan of a
 * table; NULL: nothing.  In the current memory context.
 */
extern HeapSkip *heap_skip_create(PlanState *scan, int nquals, ExprRoot *const *quals,
								  bool guarded);

/* Forgets the values that columns are compared with, for a rescan. */
extern void heap_skip_reset(HeapSkip *skip);

/*
 * Does no row pass of chunks that hold some rows?  slots[attno - 1] is an attribute's
 * index into chunks.
 */
extern bool heap_skip_refutes(HeapSkip *skip, const CacheChunk *const *chunks, const int *slots);

/* The least or greatest value of a chunk that has bounds, in the current memory context. */
extern Datum heap_skip_bound(const CacheChunk *chunk, bool greatest);

/*
 * Notes of such chunks, for each qual, whether every row passes, so that it need not be evaluated;
 * returns of how many.  implied[] is false before.
 */
extern int heap_skip_implies(HeapSkip *skip, const CacheChunk *const *chunks, const int *slots,
							 bool *implied);

#endif /* GPUAGG_FEED_HEAP_SKIP_H */
