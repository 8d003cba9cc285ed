/*
 * row_builder.c
 *	  Builds a batch row by row from Datums; see row_builder.h.
 */
#include "postgres.h"

#include "composite/row_builder.h"

void
row_builder_init(RowBuilder *builder, const AggSpec *spec, int nwritten, int capacity)
{
	arena_init(&builder->arena, CurrentMemoryContext);
	builder->batch.capacity = capacity;
	builder->batch.ncols = spec->ncols;
	builder->batch.cols = palloc0(sizeof(Column) * (spec->ncols + 1));
	builder->nwritten = nwritten;
	builder->writers = palloc0(sizeof(ColumnWriter) * (nwritten + 1));
	for (int c = 0; c < nwritten; c++)
		column_writer_init(&builder->writers[c], &builder->batch.cols[c], &spec->cols[c], capacity,
						   &builder->arena);
}

void
row_builder_begin(RowBuilder *builder)
{
	arena_reset(&builder->arena);
	builder->batch.nrows = 0;
	for (int c = 0; c < builder->nwritten; c++)
		column_begin(&builder->writers[c]);
}
