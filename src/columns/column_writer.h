/*
 * column_writer.h
 *	  Writes SQL values into a column of a batch; used by every feed.
 *
 * A writer has the arrays and bitmaps of one column.  By-reference values are copied to the arena,
 * where they live for one batch.  A constant is copied once, and the copy lives as long as the
 * writer.
 */
#ifndef GPUAGG_COLUMN_WRITER_H
#define GPUAGG_COLUMN_WRITER_H

#include "postgres.h"

#include "nodes/execnodes.h"

#include "batch.h"
#include "columns/arena.h"
#include "columns/column_value.h"
#include "spec.h"

/* Writes one column of a batch. */
typedef struct ColumnWriter
{
	Column *col;
	int capacity; /* maximum number of rows in a batch */
	int16 typlen;
	bool typbyval;
	NumericForm form;
	Arena *arena;      /* holds the batch's by-reference values */
	MemoryContext cxt; /* memory context of the writer */
	uint64 *validity;  /* buffers for the column's bitmaps */
	uint64 *unrepresentable;
} ColumnWriter;

/* Prepares *col and its writer, in the current memory context. */
extern void column_writer_init(ColumnWriter *writer, Column *col, const ColumnSpec *spec,
							   int capacity, Arena *arena);
/*
 * Fills all rows of all batches with the value of an expression.  column_begin must not be called
 * afterwards.
 */
extern void column_write_constant(ColumnWriter *writer, ExprState *constant, ExprContext *econtext);
/* Marks a row as unrepresentable. Its value, a numeric, is not copied. */
extern void column_mark_unrepresentable(ColumnWriter *writer, int row, Datum value);
/* Marks a row as unrepresentable, with a copy of its value in the arena. */
extern void column_write_unrepresentable(ColumnWriter *writer, int row, Datum value);

/* Writes a numeric in the column's form, which is not NUMERIC_ONE_SCALE. */
extern void column_write_numeric(ColumnWriter *writer, int row, Datum value);

/* Starts a new batch: no row is NULL or unrepresentable yet. */
static inline void
column_begin(ColumnWriter *writer)
{
	writer->col->validity = NULL;
	writer->col->unrepresentable = NULL;
}

/* Marks a row as NULL. */
static inline void
column_write_null(ColumnWriter *writer, int row)
{
	Column *col = writer->col;

	if (col->validity == NULL)
	{
		memset(writer->validity, 0xff, BITMAP_WORDS(writer->capacity) * sizeof(uint64));
		col->validity = writer->validity;
	}
	bitmap_clear(col->validity, row);
}

/* Writes a value that is not NULL. */
static inline void
column_write(ColumnWriter *writer, int row, Datum value)
{
	Column *col = writer->col;

	if (unlikely(writer->form != NUMERIC_ONE_SCALE))
	{
		column_write_numeric(writer, row, value);
		return;
	}
	if (col->type == COLUMN_DATUM && !writer->typbyval)
		value = arena_copy(writer->arena, value, writer->typlen);
	if (unlikely(!column_store(col->type, col->scale, col->values, row, value)))
		column_write_unrepresentable(writer, row, value);
}

#endif /* GPUAGG_COLUMN_WRITER_H */
