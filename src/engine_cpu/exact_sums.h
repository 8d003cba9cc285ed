/*
 * exact_sums.h
 *	  Exact aggregates of floats in the CPU engine.
 */
#ifndef GPUAGG_EXACT_SUMS_H
#define GPUAGG_EXACT_SUMS_H

#include "postgres.h"

#include "aggregates/exact.h"
#include "engine_cpu/exact_grid.h"
#include "groups/table.h"

/* Mean length of runs of equal keys from which a run's sum is kept in registers. */
#define EXACT_MIN_RUN 4

/* Where the states of one aggregate are. */
typedef struct ExactSums
{
	ExactKind kind;
	char *states;         /* the FallbackState in the first row of the table */
	bool one_group;       /* the table has one */
	bool prefetch;        /* the states do not fit into the processor's caches */
	double *buffer[2];    /* memory for a column of a batch */
	ExactGrid *grid[2];   /* memory for x and y as integers */
	GridSums *by_group;   /* sums of integers that the states do not have yet */
	uint32 row_cells;     /* GroupTable.row_cells */
	GroupNumbers numbers; /* numbers of the groups by their rows */
	/* Returns a new state for the group at an offset. */
	ExactState *(*create)(void *arg, uint32 at);
	void *arg;
} ExactSums;

/* Returns whether these functions can compute a fallback aggregate: its columns are floats. */
extern bool exact_sums_take(const AggSpec *spec, const FallbackAgg *fallback);

/* Adds row i of a batch to a state, unless an argument is NULL. */
extern void exact_sums_add_row(ExactState *state, const Batch *batch, const FallbackAgg *fallback,
							   int i);

/*
 * Adds all rows of a batch that is located in *table. All have groups, and no argument is NULL.
 */
extern void exact_sums_add_batch(const ExactSums *sums, const GroupTable *table, const Batch *batch,
								 const FallbackAgg *fallback);

/* Adds those rows of such a batch that have a group and count. */
extern void exact_sums_add_counted(const ExactSums *sums, const GroupTable *table,
								   const Batch *batch, const FallbackAgg *fallback);

/* Moves all sums of integers to the states. */
extern void exact_sums_complete(const ExactSums *sums);

#endif /* GPUAGG_EXACT_SUMS_H */
