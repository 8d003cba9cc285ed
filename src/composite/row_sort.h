/*
 * row_sort.h
 *	  Sorts rows of batches with PostgreSQL's tuplesort, in memory or in files.
 */
#ifndef GPUAGG_ROW_SORT_H
#define GPUAGG_ROW_SORT_H

#include "postgres.h"

#include "batch.h"
#include "spec.h"

typedef struct RowSort RowSort;

/*
 * Opens a sort by set->values.  A row has values of these `cols` of the spec; the first sort key is
 * cols[first].  Keeps within `bytes` of memory.  All memory is below the current context.
 */
extern RowSort *row_sort_open(const AggSpec *spec, const DistinctSpec *set, const int *cols,
							  int ncols, int first, size_t bytes);
/* Adds the rows of a batch of the spec. */
extern void row_sort_batch(RowSort *sort, const Batch *batch);
/* Adds a row; values are in the order of `cols`. */
extern void row_sort_row(RowSort *sort, const Datum *values, const bool *nulls);
/*
 * Sets *values and *nulls to the next of the sorted rows, in the order of `cols`; they are valid
 * until the next call.  Returns false at the end.  After the first call no row may be added.
 */
extern bool row_sort_next(RowSort *sort, Datum **values, bool **nulls);
/* Removes all rows, so that another sort can begin. */
extern void row_sort_reset(RowSort *sort);
/* Returns how many bytes the last sort used; sets *disk to whether they were in files. */
extern int64 row_sort_space(const RowSort *sort, bool *disk);

#endif /* GPUAGG_ROW_SORT_H */
