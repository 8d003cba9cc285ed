/*
 * heap_skip.h
 *
 * Decides a query's conditions for a whole range of the column cache, by the bounds of its chunks:
 * no row can pass (the range is skipped), or every row passes one.
 */
#ifndef GPUAGG_FEED_HEAP_SKIP_H
#define GPUAGG_FEED_HEAP_SKIP_H

#include "postgres.h"

#include "nodes/execnodes.h"

#include "cache/chunk.h"
#include "expr/expr.h"
#include "feed/lookup.h"

typedef struct HeapSkip HeapSkip;

/* A lookup in which each row that passes must have found its key: a column of integers or texts. */
typedef struct HeapSkipProbe
{
	AttrNumber attno;
	const Lookup *lookup; /* has an integer key or a text key */
} HeapSkipProbe;

/*
 * Prepares to test the quals of a table's scan, in the order of their evaluation. Lives in the
 * current memory context. guarded: some rows may be hidden from the user. Returns NULL if bounds
 * can decide none of them.
 */
extern HeapSkip *heap_skip_create(PlanState *scan, int nquals, ExprRoot *const *quals,
								  bool guarded);

/* Forgets the values that columns are compared with. Called when a scan begins. */
extern void heap_skip_reset(HeapSkip *skip);

/*
 * Returns whether no row of a range can pass. The range must have rows. slots[attno - 1] is an
 * attribute's index into chunks.
 */
extern bool heap_skip_refutes(HeapSkip *skip, const CacheChunk *const *chunks, const int *slots);

/* Returns whether no value of a chunk can be in the lookup of a probe. */
extern bool heap_skip_finds_none(const HeapSkipProbe *probe, const CacheChunk *chunk);

/*
 * Returns the least or greatest value of a chunk that has bounds, allocated in the current memory
 * context.
 */
extern Datum heap_skip_bound(const CacheChunk *chunk, bool greatest);

/*
 * Sets implied[] for quals that every row of a range passes, so that they need not be evaluated;
 * implied[] must be false before. Returns their number. The range must have rows.
 */
extern int heap_skip_implies(HeapSkip *skip, const CacheChunk *const *chunks, const int *slots,
							 bool *implied);

#endif /* GPUAGG_FEED_HEAP_SKIP_H */
