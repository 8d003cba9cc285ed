/*
 * column_writer.c
 *	  Writes SQL values into a column of a batch; see column_writer.h.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/datum.h"
#include "utils/memutils.h"

#include "columns/column_writer.h"

/* Column arrays are aligned for vector loads and 128-bit integers. */
#define COLUMN_ALIGN 64

/* Returns zeroed memory that is aligned to COLUMN_ALIGN. It cannot be freed with pfree(). */
static void *
alloc_column(size_t size)
{
	return (void *) TYPEALIGN(COLUMN_ALIGN, palloc0(size + COLUMN_ALIGN));
}

void
column_writer_init(ColumnWriter *writer, Column *col, const ColumnSpec *spec, int capacity,
				   Arena *arena)
{
	/* allocating large arrays for many columns takes some time */
	CHECK_FOR_INTERRUPTS();
	col->type = spec->type;
	col->scale = spec->scale;
	col->values = alloc_column((size_t) capacity * column_width(spec->type));
	writer->col = col;
	writer->capacity = capacity;
	writer->typlen = spec->typlen;
	writer->typbyval = spec->typbyval;
	writer->form = spec->form;
	writer->arena = arena;
	writer->cxt = CurrentMemoryContext;
	writer->validity = palloc0(BITMAP_WORDS(capacity) * sizeof(uint64));
}

void
column_mark_unrepresentable(ColumnWriter *writer, int row, Datum value)
{
	Column *col = writer->col;
	size_t bytes = BITMAP_WORDS(writer->capacity) * sizeof(uint64);

	if (col->unrepresentable == NULL)
	{
		if (writer->unrepresentable == NULL)
		{
			writer->unrepresentable = MemoryContextAlloc(writer->cxt, bytes);
			col->unrepresentable_values =
				MemoryContextAllocZero(writer->cxt, writer->capacity * sizeof(Datum));
		}
		memset(writer->unrepresentable, 0, bytes);
		col->unrepresentable = writer->unrepresentable;
	}
	bitmap_set(col->unrepresentable, row);
	col->unrepresentable_values[row] = value;
}

void
column_write_unrepresentable(ColumnWriter *writer, int row, Datum value)
{
	column_mark_unrepresentable(writer, row, arena_copy(writer->arena, value, -1));
}

/*
 * Writes a numeric in the form of the column (writer->form).  Returns false if the numeric is
 * unrepresentable.
 */
static bool
store_numeric(ColumnWriter *writer, int row, Datum value)
{
	Column *col = writer->col;
	struct varlena *stored = (struct varlena *) DatumGetPointer(value);
	struct varlena *numeric = pg_detoast_datum_packed(stored);
	const uint8_t *data = (const uint8_t *) VARDATA_ANY(numeric);
	int len = VARSIZE_ANY_EXHDR(numeric);
	gpuagg_i128 *to = (gpuagg_i128 *) col->values + row;
	DecodeHeader header;
	bool number = decode_header(data, len, &header);
	bool fits = true;

	if (writer->form == NUMERIC_ANY_SCALE)
		fits = number && header.dscale <= col->scale &&
			decode_numeric(data, len, header.dscale, to) &&
			!__builtin_mul_overflow(*to, decimal_power10(col->scale - header.dscale), to) &&
			*to<DECODE_NUMERIC_LIMIT && * to> - DECODE_NUMERIC_LIMIT;
	else if (number)
		((int32 *) col->values)[row] = header.dscale;
	else
		column_write_null(writer, row);
	if (numeric != stored)
		pfree(numeric);
	return fits;
}

void
column_write_numeric(ColumnWriter *writer, int row, Datum value)
{
	if (!store_numeric(writer, row, value))
		column_write_unrepresentable(writer, row, value);
}

void
column_write_constant(ColumnWriter *writer, ExprState *constant, ExprContext *econtext)
{
	Column *col = writer->col;
	bool isnull;
	Datum value = ExecEvalExprSwitchContext(constant, econtext, &isnull);

	if (!isnull && (!writer->typbyval || writer->form == NUMERIC_SHOWN_SCALE))
	{
		MemoryContext old = MemoryContextSwitchTo(writer->cxt);

		value = writer->typlen == -1 || writer->form == NUMERIC_SHOWN_SCALE ?
			PointerGetDatum(PG_DETOAST_DATUM_COPY(value)) :
			datumCopy(value, false, writer->typlen);
		MemoryContextSwitchTo(old);
	}
	for (int row = 0; row < writer->capacity; row++)
	{
		if (isnull)
			column_write_null(writer, row);
		else if (writer->form != NUMERIC_ONE_SCALE ?
					 !store_numeric(writer, row, value) :
					 !column_store(col->type, col->scale, col->values, row, value))
			column_mark_unrepresentable(writer, row, value);
	}
}
