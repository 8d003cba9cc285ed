/*
 * row_sort.h
 *	  Rows sorted by some of their values, in memory or in files: core's tuplesort for columns of
 * batches.
 */
#ifndef GPUAGG_ROW_SORT_H
#define GPUAGG_ROW_SORT_H

#include "postgres.h"

#include "batch.h"
#include "spec.h"

typedef struct RowSort RowSort;

/*
 * Rows of these columns of the spec, by set->values, of which the first one is cols[first].  Keeps
 * within `bytes`. All memory is below the current context.
 */
extern RowSort *row_sort_open(const AggSpec *spec, const DistinctSpec *set, const int *cols,
							  int ncols, int first, size_t bytes);
/* Adds the rows of a batch of the spec. */
extern void row_sort_batch(RowSort *sort, const Batch *batch);
/* Adds a row of values in the order of cols. */
extern void row_sort_row(RowSort *sort, const Datum *values, const bool *nulls);
/*
 * The next row in order, valid until the next call; false at the end.  No row may be added any
 * more.
 */
extern bool row_sort_next(RowSort *sort, Datum **values, bool **nulls);
/* Forgets all rows. */
extern void row_sort_reset(RowSort *sort);
/* Bytes in files, or in memory. */
extern int64 row_sort_space(const RowSort *sort, bool *disk);

#endif /* GPUAGG_ROW_SORT_H */
