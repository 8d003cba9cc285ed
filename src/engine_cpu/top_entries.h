/*
 * top_entries.h
 *	  gpu_max_n, gpu_min_n, gpu_argmax_n and gpu_argmin_n in the CPU engine.
 */
#ifndef GPUAGG_TOP_ENTRIES_H
#define GPUAGG_TOP_ENTRIES_H

#include "postgres.h"

#include "aggregates/top_n.h"
#include "groups/table.h"

/* Memory for small states, each of which takes one cache line; empty if it is all zeros. */
typedef struct TopSlab
{
	char *next; /* memory for `left` states */
	int left;
	int bytes; /* bytes of the last allocation */
} TopSlab;

/* Where the states of one aggregate are. */
typedef struct TopEntries
{
	const FallbackAgg *fallback; /* with top_n > 0 */
	TopCall *call;
	const GroupTable *table;
	char *states;       /* the FallbackState in the first row of the table */
	uint32 *picked;     /* memory for numbers of the rows of a batch */
	MemoryContext temp; /* is reset here */
	TopSlab *slab;      /* NULL: states are not in one context */
	/* Returns the memory context for states of the group at an offset. */
	MemoryContext (*context)(void *arg, uint32 at);
	void *arg;
} TopEntries;

/* Returns whether entries of an aggregate with top_n > 0 have no memory of their own. */
extern bool top_entries_are_by_value(const AggSpec *spec, const FallbackAgg *fallback);

/* Adds row i of a batch to the state of its group, which has this offset, if the row counts. */
extern void top_entries_add_row(const TopEntries *top, const Batch *batch, uint32 at, int i);

/* Adds all rows of a batch that is located in the table to the states of their groups. */
extern void top_entries_add_batch(const TopEntries *top, const Batch *batch);

#endif /* GPUAGG_TOP_ENTRIES_H */
