/*
 * device_lookups.c
 *	  The lookup tables of a program over rows that are cached on the devices (VECTOR_LOOKUP).
 *
 * A table has a cell for each number of a coded column's dictionary (device_values.c), or for each
 * key of a join.  The second kind has the columns of the join's inner rows: the key, less the least
 * key, is the number of the cell, and cells of keys that no inner row has are NULL.  So a row is
 * joined by one load for each column.  This needs integer keys in a range for which a buffer has
 * room.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "common/interruptible.h"
#include "engine_cuda/device_cells.h"
#include "engine_cuda/device_rows.h"
#include "feed/lookup.h"

/* ---- columns of joins ------------------------------------------------------------ */

/* Returns the number of cells of a join's tables for keys, or -1 if there are too many. */
static int64
count_keys(const Lookup *inner)
{
	uint64 span = (uint64) inner->greatest - (uint64) inner->least;

	if (inner->form == LOOKUP_EMPTY)
		return 0;
	return span < (uint64) WIRE_BUFFER_BYTES * 8 ? (int64) span + 1 : -1;
}

/* Returns the column of the inner rows that a lookup of a join has. */
static const LookupColumn *
inner_column(const Resident *r, const ExprLookup *lookup)
{
	const Lookup *inner = r->rows->joins[lookup->join].lookup;

	return &inner->columns[r->rows->inner_column[lookup->attno - r->rows->natts - 1]];
}

/* Returns whether rows without an inner row are kept, with NULLs in its place. */
static bool
is_outer(const ResidentJoin *join)
{
	return join->type == JOIN_LEFT || join->type == JOIN_ANTI;
}

/*
 * Fills a lookup of a join: its entries are the inner rows, or the distinct values of a column by
 * reference, and then NULL.  write_column() makes cells by key of them.
 */
static void
fill_column(Resident *r, ExprLookup *lookup)
{
	const ResidentJoin *join = &r->rows->joins[lookup->join];
	const LookupColumn *column = inner_column(r, lookup);
	bool null = column->nulls != NULL || is_outer(join);
	uint32 n = join->lookup->form == LOOKUP_EMPTY ? 0 :
		column->byval                             ? join->lookup->nrows :
													column->ncodes;
	const bool *nulls = column->byval ? column->nulls : NULL;

	if (lookup->type == COLUMN_DATUM)
		resident_fill_key_lookup(r, lookup, column->values, nulls, n, null);
	else if (lookup->expr)
		expr_lookup_fill(r->program, lookup, column->values, nulls, n);
	else
	{
		expr_lookup_allocate(lookup, n);
		lookup->states[n] = VECTOR_NULL;
		INTERRUPTIBLE_FOR (i, 0, n)
			if (nulls && nulls[i])
				lookup->states[i] = VECTOR_NULL;
		if (lookup->presence)
			expr_lookup_finish(lookup);
		else
			expr_lookup_convert(lookup, column->values);
	}
	if (r->program->unsupported_reason)
		return;
	if (!null)
		lookup->states[n] = VECTOR_NULL;
	else if (lookup->states[n] == VECTOR_NULL)
		lookup->nulls = true;
}

/* Describes the lookup that says for which keys inner rows exist; its cells are bits. */
static void
describe_found(ExprLookup *lookup)
{
	lookup->interval = (ExprInterval){1, 1};
	lookup->nulls = true;
}

/*
 * Fills the lookups of joins.  They do not change between rounds of RESIDENT, so r->translated
 * keeps them for the next one.
 */
static void
fill_joins(Resident *r)
{
	ExprProgram *p = r->program;

	for (int t = 0; t < p->nlookups && p->unsupported_reason == NULL; t++)
	{
		ExprLookup *lookup = &p->lookups[t];
		const Lookup *inner = lookup->join < 0 ? NULL : r->rows->joins[lookup->join].lookup;
		int64 n;

		if (inner == NULL)
			continue;
		n = count_keys(inner);
		if (n < 0)
		{
			expr_program_reject(p, "the keys of a join are not dense");
			return;
		}
		r->wire.tables[t] = (VectorTable){.n = n, .base = n > 0 ? inner->least : 0, .others = 1};
		if (lookup->attno == 0)
			describe_found(lookup);
		else if (lookup->states == NULL)
			fill_column(r, lookup);
		r->translated->lookups[t] = *lookup;
	}
}

/* ---- the message ------------------------------------------------------------------ */

bool
resident_fill_lookups(Resident *r)
{
	ExprProgram *p = r->program;
	uint64 bytes = 0;

	r->wire.ntables = p->nlookups;
	for (int s = 0; s < p->nstored; s++)
		if (p->stored[s].coded && !resident_fill_coded(r, s))
			return false;
	r->outdated = false;
	fill_joins(r);
	for (int t = 0; t < p->nlookups && p->unsupported_reason == NULL; t++)
	{
		VectorTable *table = &r->wire.tables[t];

		if (p->lookups[t].join >= 0)
			cells_choose_form(&p->lookups[t], table);
		table->first = bytes / 8;
		bytes += vector_table_bytes(table);
		if (bytes > WIRE_BUFFER_BYTES)
			expr_program_reject(p, "the tables of joins and texts are too large for a message");
	}
	r->wire.cell_bytes = bytes;
	return true;
}

/* Returns the entry of an inner row. */
static inline uint32
row_entry(const ExprLookup *lookup, const LookupColumn *column, uint32 row)
{
	if (column->nulls && column->nulls[row])
		return lookup->n;
	return column->byval ? row : column->codes[row];
}

/*
 * Defines a function that writes cells of a narrow form by key.  narrow: [entry] what its cells
 * have
 */
#define DEFINE_WRITE_NARROW(cell_t) \
	static void write_narrow_##cell_t(const Lookup *inner, const ExprLookup *lookup, \
									  const LookupColumn *column, const uint32 *narrow, int64 n, \
									  cell_t *to) \
	{ \
		cell_t absent = (cell_t) narrow[lookup->n]; \
\
		if (inner->form == LOOKUP_ARRAY && column->nulls == NULL && !column->byval) \
		{ \
			const uint32 *array = inner->array; \
			const uint32 *codes = column->codes; \
			uint32 none = lookup->n; \
\
			/* without branches, which could not be predicted; is: all ones if there is a row */ \
			INTERRUPTIBLE_FOR (at, 0, n) \
			{ \
				uint32 row = array[at]; \
				uint32 is = -(uint32) (row != LOOKUP_NONE); \
\
				to[at] = (cell_t) narrow[(codes[row & is] & is) | (none & ~is)]; \
			} \
			to[n] = absent; \
			return; \
		} \
		if (inner->form == LOOKUP_ARRAY) \
		{ \
			INTERRUPTIBLE_FOR (at, 0, n) \
			{ \
				uint32 row = inner->array[at]; \
\
				to[at] = \
					row == LOOKUP_NONE ? absent : (cell_t) narrow[row_entry(lookup, column, row)]; \
			} \
			to[n] = absent; \
			return; \
		} \
		if (absent != 0) \
			INTERRUPTIBLE_FOR (at, 0, n + 1) \
				to[at] = absent; \
		INTERRUPTIBLE_FOR (row, 0, inner->nrows) \
			to[inner->integers[row] - inner->least] = \
				(cell_t) narrow[row_entry(lookup, column, row)]; \
	}

DEFINE_WRITE_NARROW(uint8)
DEFINE_WRITE_NARROW(uint16)
DEFINE_WRITE_NARROW(uint32)

/* Writes bits or wide cells by key. */
static void
write_cells(const Lookup *inner, const ExprLookup *lookup, const LookupColumn *column,
			const VectorTable *table, uint8 *to)
{
	if (table->form == VECTOR_CELLS_WIDE || lookup->states[lookup->n] != VECTOR_NULL)
		INTERRUPTIBLE_FOR (at, 0, (int64) table->n + 1)
			cell_write(lookup, table, to, at, lookup->n);
	if (inner->form == LOOKUP_ARRAY)
	{
		INTERRUPTIBLE_FOR (at, 0, table->n)
			if (inner->array[at] != LOOKUP_NONE)
				cell_write(lookup, table, to, at, row_entry(lookup, column, inner->array[at]));
	}
	else if (table->n > 0)
		INTERRUPTIBLE_FOR (row, 0, inner->nrows)
			cell_write(lookup, table, to, inner->integers[row] - inner->least,
					   row_entry(lookup, column, row));
}

/*
 * Writes the cells of a join by key.  Where there is no inner row, an outer join has the value for
 * NULL, and the others leave the row out, so that any value will do: that for NULL, too.
 */
static void
write_column(const Resident *r, const ExprLookup *lookup, const VectorTable *table, uint8 *to)
{
	const Lookup *inner = r->rows->joins[lookup->join].lookup;
	const LookupColumn *column = inner_column(r, lookup);
	uint32 *narrow_cells;

	if (table->n == 0 || table->form == VECTOR_CELLS_BITS || table->form == VECTOR_CELLS_WIDE)
	{
		write_cells(inner, lookup, column, table, to);
		return;
	}
	narrow_cells =
		MemoryContextAllocHuge(CurrentMemoryContext, sizeof(uint32) * ((Size) lookup->n + 1));
	INTERRUPTIBLE_FOR (entry, 0, (int64) lookup->n + 1)
		narrow_cells[entry] = cell_narrow(lookup, table, entry);
	switch (table->form)
	{
		case 1:
			write_narrow_uint8(inner, lookup, column, narrow_cells, table->n, to);
			break;
		case 2:
			write_narrow_uint16(inner, lookup, column, narrow_cells, table->n, (uint16 *) to);
			break;
		default:
			write_narrow_uint32(inner, lookup, column, narrow_cells, table->n, (uint32 *) to);
	}
	pfree(narrow_cells);
}

/* Writes the bits of the keys for which inner rows exist. */
static void
write_found(const Lookup *inner, const VectorTable *table, uint8 *to)
{
	if (table->n == 0)
		return;
	if (inner->bits)
		INTERRUPTIBLE_FOR (at, 0, ((int64) table->n + 7) / 8)
			to[at] = inner->bits[at / 8] >> at % 8 * 8;
	else if (inner->form == LOOKUP_ARRAY)
	{
		INTERRUPTIBLE_FOR (byte, 0, ((int64) table->n + 7) / 8)
		{
			const uint32 *rows = inner->array + byte * 8;
			int n = Min(table->n - byte * 8, 8);
			uint8 bits = 0;

			for (int i = 0; i < n; i++)
				bits |= (rows[i] != LOOKUP_NONE) << i;
			to[byte] = bits;
		}
	}
	else
		INTERRUPTIBLE_FOR (row, 0, inner->nrows)
		{
			int64 at = inner->integers[row] - inner->least;

			to[at / 8] |= 1 << at % 8;
		}
}

bool
resident_write_cells(const Resident *r, char *buffer)
{
	uint8 *cells = (uint8 *) buffer + wire_cells_at(&r->wire);

	if (r->wire.cell_bytes == 0)
		return true;
	if (wire_cells_end(&r->wire) > r->cuda->client->welcome.buffer_bytes)
		return false;
	memset(cells, 0, r->wire.cell_bytes);
	for (int t = 0; t < r->program->nlookups; t++)
	{
		const ExprLookup *lookup = &r->program->lookups[t];
		const VectorTable *table = &r->wire.tables[t];
		uint8 *to = cells + (Size) table->first * 8;

		if (lookup->join < 0)
			memcpy(to, r->cells[t], vector_table_bytes(table));
		else if (lookup->attno == 0)
			write_found(r->rows->joins[lookup->join].lookup, table, to);
		else
			write_column(r, lookup, table, to);
	}
	return true;
}
