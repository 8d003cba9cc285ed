/*
 * bin_rows.h
 *	  Rows (bin, lower, upper, count, bar) of functions that return the bins of a histogram.
 *
 * All counts are measured first, because the longest bar stands for the largest one.
 */
#ifndef GPUAGG_BIN_ROWS_H
#define GPUAGG_BIN_ROWS_H

#include "postgres.h"

#include "fmgr.h"
#include "nodes/execnodes.h"

/* The rows so far. */
typedef struct BinRows
{
	ReturnSetInfo *rsinfo;
	int64 largest;
} BinRows;

/* Begins the result of a set-returning function. */
extern void bin_rows_begin(BinRows *rows, FunctionCallInfo fcinfo);

/* Measures a count, and those of -infinity, infinity and NaN. */
static inline void
bin_rows_measure(BinRows *rows, int64 count)
{
	rows->largest = Max(rows->largest, count);
}

static inline void
bin_rows_measure_special(BinRows *rows, const int64 *infinite, int64 nans)
{
	bin_rows_measure(rows, infinite[0]);
	bin_rows_measure(rows, infinite[1]);
	bin_rows_measure(rows, nans);
}

/* Adds a row. bin: a number of type integer. */
extern void bin_rows_put(BinRows *rows, Datum bin, double lower, double upper, int64 count);

/* Adds a row for a value without a bin, if there are such values. */
extern void bin_rows_put_special(BinRows *rows, double value, int64 count);

#endif /* GPUAGG_BIN_ROWS_H */
