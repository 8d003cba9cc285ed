/*
 * device_lookups.c
 *	  The lookup tables of a program over rows that are cached on the devices (VECTOR_LOOKUP).
 *
 * A table has a cell for each number of a coded column's dictionary, or for each key of a join.
 * The second kind has the columns of the join's inner rows: the key, less the least key, is the
 * number of the cell, and cells of keys that no inner row has are NULL.  So a row is joined by one
 * load for each column.  This needs integer keys in a range for which a buffer has room.
 *
 * Cells are as narrow as their values allow (VectorTable).
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "columns/column_value.h"
#include "common/interruptible.h"
#include "engine_cuda/device_rows.h"
#include "engine_cuda/dictionaries.h"
#include "feed/lookup.h"

/*
 * Expressions are computed for so many values of a column for each row that the query reads.
 * Values of rows that were replaced stay in a dictionary; the server drops one with far more of
 * them.
 */
#define VALUES_PER_ROW 8

/* ---- values of a dictionary ---------------------------------------------------- */

/*
 * Replaces the values of a key by codes of the query's own dictionary. Returns false if there is no
 * room for them, or if equal values look different.
 */
static bool
encode_keys(Resident *r, ExprLookup *lookup, const Datum *values, uint32 n)
{
	CudaEngine *cuda = r->cuda;
	const CudaColumn *col = &cuda->query->cols[lookup->column];
	uint64 *validity = palloc0(BITMAP_WORDS(cuda->env.batch_rows) * sizeof(uint64));
	bool ok = true;

	for (uint32 at = 0; at < n && ok; at += cuda->env.batch_rows)
	{
		int nrows = Min(cuda->env.batch_rows, n - at);
		Column in = {
			.type = COLUMN_DATUM, .values = unconstify(Datum *, values + at), .validity = validity};

		CHECK_FOR_INTERRUPTS();
		for (int i = 0; i < nrows; i++)
			if (lookup->states[at + i] == VECTOR_VALUE)
				bitmap_set(validity, i);
			else
				bitmap_clear(validity, i);
		dictionary_lookup(col->dict, &in, nrows, PG_INT32_MAX, cuda->env.mem_limit / 2, col->codes,
						  col->hashes);
		if (dictionary_met_variant(col->dict))
		{
			expr_program_reject(r->program, "equal keys print differently");
			ok = false;
		}
		for (int i = 0; i < nrows && ok; i++)
		{
			ok = col->codes[i] != NO_CODE;
			lookup->values[at + i] = col->codes[i];
			if (lookup->states[at + i] == VECTOR_NULL)
				lookup->states[at + i] = VECTOR_VALUE;
		}
	}
	if (!ok)
		expr_program_reject(r->program, "no memory is left for the dictionary of the keys");
	return ok;
}

/*
 * Fills a lookup of a key with codes of the query's own dictionary.  nulls: see
 * expr_lookup_evaluate(); null: also for NULL
 */
static void
fill_key_lookup(Resident *r, ExprLookup *lookup, const Datum *entries, const bool *nulls, uint32 n,
				bool null)
{
	Datum *values = expr_lookup_evaluate(r->program, lookup, entries, nulls, n);

	if (r->program->unsupported_reason == NULL &&
		encode_keys(r, lookup, values, n + (null ? 1 : 0)))
		expr_lookup_finish(lookup);
	pfree(values);
}

/*
 * Rejects the program if it should not be computed for all values of the dictionary: they are too
 * many to be copied, or many more than the rows.
 */
static void
check_copied(Resident *r, const CudaDictionary *dict)
{
	if (dict->copied < dict->known.nentries)
		expr_program_reject(r->program, "a column has too many values for an expression of them");
	else if (dict->known.nentries > RESIDENT_LEAST_VALUES + VALUES_PER_ROW * r->rows->nrows)
		expr_program_reject(r->program, "a column has far more values than the query reads rows");
}

/* Returns whether the program looks up values by the stored column's codes. */
static bool
is_looked_up(const ExprProgram *p, int s)
{
	for (int t = 0; t < p->nlookups; t++)
		if (p->lookups[t].stored == s)
			return true;
	return false;
}

/* Fills the lookups of a coded column.  Returns false if the session is lost. */
static bool
fill_coded(Resident *r, int s)
{
	ExprProgram *p = r->program;
	bool copy = is_looked_up(p, s);
	const CudaDictionary *dict = cuda_dictionary(r->cuda->client, r->wire.table, &r->wire.stored[s],
												 resident_attribute(r, s), r->outdated, copy);

	if (dict == NULL)
		return false;
	r->wire.known[s] = dict->known;
	if (copy)
		check_copied(r, dict);
	for (int t = 0; t < p->nlookups && p->unsupported_reason == NULL; t++)
	{
		ExprLookup *lookup = &p->lookups[t];

		if (lookup->stored != s)
			continue;
		if (lookup->type == COLUMN_DATUM)
			fill_key_lookup(r, lookup, dict->values, NULL, dict->known.nentries, true);
		else
			expr_lookup_fill(p, lookup, dict->values, NULL, dict->known.nentries);
		r->wire.tables[t] = (VectorTable){.n = dict->known.nentries};
	}
	cuda_dictionary_release(dict);
	return true;
}

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
		fill_key_lookup(r, lookup, column->values, nulls, n, null);
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

/* Chooses the form of a table's cells, and its place. */
static void
lay_out_table(const ExprLookup *lookup, VectorTable *table, uint64 *bytes)
{
	uint64 span = (uint64) lookup->interval.max - (uint64) lookup->interval.min;

	table->form = lookup->interval.min > lookup->interval.max ? 1 :
		span == 0                                             ? VECTOR_CELLS_BITS :
		span < PG_UINT8_MAX                                   ? 1 :
		span < PG_UINT16_MAX                                  ? 2 :
		span < PG_UINT32_MAX                                  ? 4 :
																VECTOR_CELLS_WIDE;
	for (int64 i = 0; lookup->attno != 0 && i <= lookup->n; i++)
		if (lookup->states[i] == VECTOR_UNDETERMINED)
			table->form = VECTOR_CELLS_WIDE;
	table->least = lookup->interval.min;
	table->first = *bytes / 8;
	*bytes += vector_table_bytes(table);
}

bool
resident_fill_lookups(Resident *r)
{
	ExprProgram *p = r->program;
	uint64 bytes = 0;

	r->wire.ntables = p->nlookups;
	for (int s = 0; s < p->nstored; s++)
		if (p->stored[s].coded && !fill_coded(r, s))
			return false;
	r->outdated = false;
	fill_joins(r);
	for (int t = 0; t < p->nlookups && p->unsupported_reason == NULL; t++)
	{
		lay_out_table(&p->lookups[t], &r->wire.tables[t], &bytes);
		if (bytes > WIRE_BUFFER_BYTES)
			expr_program_reject(p, "the tables of joins and texts are too large for a message");
	}
	r->wire.cell_bytes = bytes;
	return true;
}

/* Returns what a cell of a narrow form has for an entry. */
static uint32
narrow(const ExprLookup *lookup, const VectorTable *table, uint32 entry)
{
	return lookup->states[entry] == VECTOR_NULL ?
		0 :
		(uint32) ((uint64) lookup->values[entry] - (uint64) table->least) + 1;
}

/* Writes cell `at` for an entry. */
static inline void
write_cell(const ExprLookup *lookup, const VectorTable *table, uint8 *to, int64 at, uint32 entry)
{
	switch (table->form)
	{
		case VECTOR_CELLS_BITS:
			to[at / 8] &= ~(1 << at % 8);
			to[at / 8] |= narrow(lookup, table, entry) << at % 8;
			break;
		case 1:
			to[at] = narrow(lookup, table, entry);
			break;
		case 2:
			((uint16 *) to)[at] = narrow(lookup, table, entry);
			break;
		case 4:
			((uint32 *) to)[at] = narrow(lookup, table, entry);
			break;
		default:
			((int64 *) to)[at] = lookup->values[entry];
			to[((Size) table->n + 1) * sizeof(int64) + at] = lookup->states[entry];
	}
}

/* Writes the cells of a coded column, which are its entries. */
static void
write_coded(const ExprLookup *lookup, const VectorTable *table, uint8 *to)
{
	INTERRUPTIBLE_FOR (i, 0, (int64) lookup->n + 1)
		write_cell(lookup, table, to, i, i);
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
			write_cell(lookup, table, to, at, lookup->n);
	if (inner->form == LOOKUP_ARRAY)
	{
		INTERRUPTIBLE_FOR (at, 0, table->n)
			if (inner->array[at] != LOOKUP_NONE)
				write_cell(lookup, table, to, at, row_entry(lookup, column, inner->array[at]));
	}
	else if (table->n > 0)
		INTERRUPTIBLE_FOR (row, 0, inner->nrows)
			write_cell(lookup, table, to, inner->integers[row] - inner->least,
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
		narrow_cells[entry] = narrow(lookup, table, entry);
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
			write_coded(lookup, table, to);
		else if (lookup->attno == 0)
			write_found(r->rows->joins[lookup->join].lookup, table, to);
		else
			write_column(r, lookup, table, to);
	}
	return true;
}
