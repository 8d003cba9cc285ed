/*
 * inner.h
 *	  The inner engine that has all aggregates of a query.
 *
 * It serves a composite engine that finds the rows of some aggregates itself: distinct values,
 * sorted rows, results of ordered sets.  The inner engine gets two kinds of rows: those of the
 * input, and rows that the composite engine builds when the input has ended.  Each row must count
 * for its own aggregates only.  So the inner spec has more columns than the query's:
 *
 *		marks: booleans; mark 0 is true in rows of the input, mark s in rows of row set s
 *		copies of the filters of aggregates that take rows of the input
 *		columns that the composite engine adds
 *
 * Marks and copies are the filters of the inner spec's aggregates.  In a row that the composite
 * engine builds, mark 0 and all copies are false.  Copies are needed since the query's own filter
 * column may be true there: it may be a key, too, or a value or the filter of a row set.
 */
#ifndef GPUAGG_COMPOSITE_INNER_H
#define GPUAGG_COMPOSITE_INNER_H

#include "postgres.h"

#include "composite/base.h"

typedef struct InnerEngine
{
	AggSpec spec;
	Engine *engine;
	int first_mark; /* column of mark 0; the query's columns are before it */
	int nmarks;
	int nfilters;
	int *filters;     /* [copy] column of the query */
	bool takes_input; /* some aggregate takes rows of the input */

	Batch input;   /* a batch of the query with the columns of the inner spec */
	int8 *ones;    /* values of a true mark */
	int8 *zeros;   /* values of a false mark */
	uint64 *nulls; /* validity of a column that is NULL in all rows */
} InnerEngine;

/*
 * Copies the query's spec; slots, fallbacks and distincts may be changed in the copy.  The caller
 * then replaces filters, adds the columns and opens the engine.
 */
extern void inner_copy_spec(InnerEngine *inner, const AggSpec *spec, int nmarks);

/*
 * Returns the column of the inner spec that filters an aggregate of rows of the input: a copy of
 * the aggregate's filter, or mark 0. filter: the aggregate's filter column in the query's spec; -1:
 * none.
 */
extern int inner_input_filter(InnerEngine *inner, int filter);

/*
 * Adds the columns of marks and filters, and then the `others`, to the spec.  Makes the batch for
 * rows of the input, in which the others are NULL. capacity: rows of a batch.
 */
extern void inner_add_columns(InnerEngine *inner, const ColumnSpec *others, int nothers,
							  int capacity);

/* Returns the column of mark `set`. */
static inline int
inner_mark(const InnerEngine *inner, int set)
{
	return inner->first_mark + set;
}

/*
 * Sets mark `set` of a batch to these values, and all other marks and the copies of filters to
 * false. set -1: all marks are false.
 */
extern void inner_set_marks(const InnerEngine *inner, Batch *batch, int set, int8 *values);

/* Adds a batch of the input to the inner engine, if some aggregate takes its rows. */
extern EngineStatus inner_add_input(CompositeEngine *composite, InnerEngine *inner,
									const Batch *batch);

/* Adds a batch of the inner spec to the inner engine, unless it is empty. */
extern EngineStatus inner_add_rows(CompositeEngine *composite, InnerEngine *inner,
								   const Batch *batch);

#endif /* GPUAGG_COMPOSITE_INNER_H */
