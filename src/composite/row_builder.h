/*
 * row_builder.h
 *	  Builds a batch row by row from Datums.
 *
 * The caller increments batch.nrows for each row, and writes the row's values.  It empties the
 * builder with row_builder_begin() before the first row, and again once row_builder_is_full().
 */
#ifndef GPUAGG_ROW_BUILDER_H
#define GPUAGG_ROW_BUILDER_H

#include "postgres.h"

#include "columns/arena.h"
#include "columns/column_writer.h"
#include "spec.h"

typedef struct RowBuilder
{
	Batch batch;
	int nwritten; /* columns with a writer */
	ColumnWriter *writers;
	Arena arena; /* copies of by-reference values */
} RowBuilder;

/*
 * Initializes a builder for the columns of a spec, in the current memory context.  Only the first
 * `nwritten` columns get memory and can be written; the caller points the
 * others to arrays of its own.
 */
extern void row_builder_init(RowBuilder *builder, const AggSpec *spec, int nwritten, int capacity);

/* Empties the batch, and frees its copies of by-reference values. */
extern void row_builder_begin(RowBuilder *builder);

/* Returns whether the batch must be used and emptied before the next row. */
static inline bool
row_builder_is_full(const RowBuilder *builder)
{
	return builder->batch.nrows == builder->batch.capacity || builder->arena.bytes >= BATCH_BYTES;
}

/*
 * Writes column c of a row, which must be one of the columns with a writer.  Copies by-reference
 * values.
 */
static inline void
row_builder_write(RowBuilder *builder, int c, int row, Datum value, bool isnull)
{
	if (isnull)
		column_write_null(&builder->writers[c], row);
	else
		column_write(&builder->writers[c], row, value);
}

#endif /* GPUAGG_ROW_BUILDER_H */
