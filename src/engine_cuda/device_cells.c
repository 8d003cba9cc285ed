/*
 * device_cells.c
 *	  The cells of lookup tables: their names, which of them are sent, and writing them.
 *
 * Cells of a join's lookup, or of an expression's table, that is kept in the cache have a name: a
 * hash of its serial number, which nothing else has ever had, and of all that decides the cells
 * beside it.  The GPU server keeps them by their names.  So they are only written and sent if a
 * device lacks them.
 *
 * Cells are as narrow as their values allow (VectorTable).
 */
#include "postgres.h"

#include "common/cryptohash.h"
#include "common/sha2.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "common/interruptible.h"
#include "engine_cuda/device_cells.h"
#include "engine_cuda/device_rows.h"

/* Entries that are hashed together. */
#define HASHED_ENTRIES 1024

/* ---- names ------------------------------------------------------------------------- */

/* What decides the cells of a table, beside its entries. */
typedef struct CellsIdentity
{
	uint64 serial; /* number of the kept lookup, or of the kept table */
	int64 least;   /* as in VectorTable */
	uint32 n;
	uint32 form;
	/* number of the inner plan's column; 0: whether an inner row exists; -1: the table is kept */
	int32 column;
	int32 type; /* as in ExprLookup */
	int32 scale;
	int32 presence;
	int32 entries; /* whether the entries decide the cells, too: they are hashed then */
	uint32 match;  /* as ResidentMatch.number */
} CellsIdentity;

/* Adds bytes to a hash. */
static void
add_to_hash(pg_cryptohash_ctx *sha, const void *data, Size bytes)
{
	if (pg_cryptohash_update(sha, data, bytes) < 0)
		elog(ERROR, "could not compute a hash of a lookup");
}

/* Adds the entries of a lookup to a hash, as its cells have them. */
static void
hash_entries(pg_cryptohash_ctx *sha, const ExprLookup *lookup, const VectorTable *table)
{
	uint32 cells[HASHED_ENTRIES];
	Size all = (Size) lookup->n + 1;

	for (Size at = 0; at < all; at += HASHED_ENTRIES)
	{
		Size n = Min(all - at, HASHED_ENTRIES);

		CHECK_FOR_INTERRUPTS();
		if (table->form == VECTOR_CELLS_WIDE)
		{
			add_to_hash(sha, lookup->values + at, n * sizeof(int64));
			add_to_hash(sha, lookup->states + at, n);
			continue;
		}
		for (Size i = 0; i < n; i++)
			cells[i] = cell_narrow(lookup, table, at + i);
		add_to_hash(sha, cells, n * sizeof(uint32));
	}
}

/* Returns the name of a table's cells; all zeros if they have none. */
static WireCellsName
name_cells(const Resident *r, int t)
{
	const ExprLookup *lookup = &r->program->lookups[t];
	const VectorTable *table = &r->wire.tables[t];
	const Lookup *inner = lookup->join < 0 ? NULL : r->rows->joins[lookup->join].lookup;
	uint64 serial = inner ? inner->serial : r->serial[t];
	CellsIdentity identity;
	uint8 hash[PG_SHA256_DIGEST_LENGTH];
	WireCellsName name = {{0}};
	pg_cryptohash_ctx *sha;

	if (serial == 0)
		return name;
	memset(&identity, 0, sizeof(identity));
	identity.serial = serial;
	identity.least = table->least;
	identity.n = table->n;
	identity.form = table->form;
	identity.column = inner == NULL ? -1 :
		lookup->attno == 0          ? 0 :
									  resident_inner_column(r, lookup)->resno;
	identity.type = lookup->type;
	identity.scale = lookup->scale;
	identity.presence = lookup->presence;
	identity.match = inner ? r->matches[lookup->join].number : 0;
	identity.entries = inner && (lookup->expr != NULL || lookup->type == COLUMN_DATUM);
	sha = pg_cryptohash_create(PG_SHA256);
	if (sha == NULL || pg_cryptohash_init(sha) < 0)
		elog(ERROR, "could not compute a hash of a lookup");
	add_to_hash(sha, &identity, sizeof(identity));
	if (identity.entries)
		hash_entries(sha, lookup, table);
	if (pg_cryptohash_final(sha, hash, sizeof(hash)) < 0)
		elog(ERROR, "could not compute a hash of a lookup");
	pg_cryptohash_free(sha);
	memcpy(&name, hash, sizeof(name));
	return name;
}

/* ---- which cells are sent -------------------------------------------------------------- */

/* Adds the cells of a table to those that are sent, if there is room. */
static void
send_cells(Resident *r, int t, Size room)
{
	uint64 bytes = vector_table_bytes(&r->wire.tables[t]);

	if (wire_is_sent(&r->wire, t) || r->wire.cell_bytes + bytes > room)
		return;
	r->wire.sent |= UINT32_C(1) << t;
	r->wire.tables[t].first = r->wire.cell_bytes / 8;
	r->wire.cell_bytes += bytes;
}

/* Makes the cells of table `from` those of table t. */
static void
copy_table(WireResident *wire, int t, int from)
{
	wire->tables[t] = wire->tables[from];
	wire->names[t] = wire->names[from];
	if (wire_is_sent(wire, from))
		wire->sent |= UINT32_C(1) << t;
}

void
resident_choose_cells(Resident *r)
{
	ExprProgram *p = r->program;
	Size at = wire_align((Size) r->rows->nrow_ranges * sizeof(WireRowRange));
	Size room = at < WIRE_BUFFER_BYTES ? WIRE_BUFFER_BYTES - at : 0;
	uint32 unnamed = 0;
	uint32 shared = 0;
	uint32 always, lacking;

	r->wire.sent = r->wire.cell_bytes = 0;
	for (int t = 0; t < p->nlookups; t++)
	{
		const ExprLookup *lookup = &p->lookups[t];

		if (r->shared_cells[t] > 0)
		{
			shared |= UINT32_C(1) << t;
			continue;
		}
		if (!wire_is_named(&r->wire.names[t]))
		{
			r->wire.names[t] = name_cells(r, t);
			/* nobody has sent the cells of a lookup that this query has built */
			if (wire_is_named(&r->wire.names[t]) && lookup->join >= 0 &&
				!r->rows->joins[lookup->join].lookup->kept)
				r->lacking_cells |= UINT32_C(1) << t;
		}
		if (!wire_is_named(&r->wire.names[t]))
			unnamed |= UINT32_C(1) << t;
	}
	/* the server has no room for some, so that they must come with the query */
	always = (unnamed | r->unkept_cells) & ~shared;
	for (int t = 0; t < p->nlookups; t++)
		if (always >> t & 1)
			send_cells(r, t, room);
	lacking = r->lacking_cells & ~always & ~shared;
	for (int t = 0; t < p->nlookups; t++)
		if (lacking >> t & 1)
			send_cells(r, t, room);
	if ((always & ~r->wire.sent) != 0 || (lacking != 0 && (lacking & r->wire.sent) == 0))
		expr_program_reject(p,
							(always & ~unnamed) != 0 ?
								"no GPU memory is left for the tables of joins" :
								"the tables of joins and texts are too large for a message");
	r->sent_cells |= r->wire.sent;
	for (int t = 0; t < p->nlookups; t++)
		if (r->shared_cells[t] > 0)
			copy_table(&r->wire, t, r->shared_cells[t] - 1);
}

/* ---- writing ---------------------------------------------------------------------------- */

/* Returns the entry of an inner row. */
static inline uint32
row_entry(const ExprLookup *lookup, const LookupColumn *column, uint32 row)
{
	if (column->nulls && column->nulls[row])
		return lookup->n;
	return column->byval ? row : column->codes[row];
}

/*
 * Defines a function that writes cells of a narrow form by key, or by inner row.  narrow: [entry]
 * what its cells have
 */
#define DEFINE_WRITE_NARROW(cell_t) \
	static void write_narrow_##cell_t(const Lookup *inner, const ExprLookup *lookup, \
									  const LookupColumn *column, const ResidentMatch *match, \
									  const uint32 *narrow, int64 n, cell_t *to) \
	{ \
		cell_t absent = (cell_t) narrow[lookup->n]; \
\
		if (resident_is_hashed(inner)) \
		{ \
			INTERRUPTIBLE_FOR (row, 0, n) \
				to[row] = (cell_t) narrow[row_entry(lookup, column, row)]; \
			to[n] = absent; \
			return; \
		} \
		if (inner->form == LOOKUP_ARRAY && match->rank == NULL && column->nulls == NULL && \
			!column->byval) \
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
		if (inner->form == LOOKUP_ARRAY && match->rank == NULL) \
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
			if (resident_is_match(match, row)) \
				to[inner->integers[row] - inner->least] = \
					(cell_t) narrow[row_entry(lookup, column, row)]; \
	}

DEFINE_WRITE_NARROW(uint8)
DEFINE_WRITE_NARROW(uint16)
DEFINE_WRITE_NARROW(uint32)

/* Writes bits or wide cells by key, or by inner row. */
static void
write_cells(const Lookup *inner, const ExprLookup *lookup, const LookupColumn *column,
			const ResidentMatch *match, const VectorTable *table, uint8 *to)
{
	if (table->form == VECTOR_CELLS_WIDE || lookup->states[lookup->n] != VECTOR_NULL)
		INTERRUPTIBLE_FOR (at, 0, (int64) table->n + 1)
			cell_write(lookup, table, to, at, lookup->n);
	if (resident_is_hashed(inner))
	{
		INTERRUPTIBLE_FOR (row, 0, table->n)
			cell_write(lookup, table, to, row, row_entry(lookup, column, row));
	}
	else if (inner->form == LOOKUP_ARRAY && match->rank == NULL)
	{
		INTERRUPTIBLE_FOR (at, 0, table->n)
			if (inner->array[at] != LOOKUP_NONE)
				cell_write(lookup, table, to, at, row_entry(lookup, column, inner->array[at]));
	}
	else if (table->n > 0)
		INTERRUPTIBLE_FOR (row, 0, inner->nrows)
			if (resident_is_match(match, row))
				cell_write(lookup, table, to, inner->integers[row] - inner->least,
						   row_entry(lookup, column, row));
}

/*
 * Writes the cells of a join by key, or by inner row.  Where there is no inner row, an outer join
 * has the value for NULL, and the others leave the row out, so that any value will do: that for
 * NULL, too.
 */
static void
write_column(const Resident *r, const ExprLookup *lookup, const VectorTable *table, uint8 *to)
{
	const Lookup *inner = r->rows->joins[lookup->join].lookup;
	const LookupColumn *column = resident_inner_column(r, lookup);
	const ResidentMatch *match = &r->matches[lookup->join];
	uint32 *narrow_cells;

	if (table->n == 0 || table->form == VECTOR_CELLS_BITS || table->form == VECTOR_CELLS_WIDE)
	{
		write_cells(inner, lookup, column, match, table, to);
		return;
	}
	narrow_cells =
		MemoryContextAllocHuge(CurrentMemoryContext, sizeof(uint32) * ((Size) lookup->n + 1));
	INTERRUPTIBLE_FOR (entry, 0, (int64) lookup->n + 1)
		narrow_cells[entry] = cell_narrow(lookup, table, entry);
	switch (table->form)
	{
		case 1:
			write_narrow_uint8(inner, lookup, column, match, narrow_cells, table->n, to);
			break;
		case 2:
			write_narrow_uint16(inner, lookup, column, match, narrow_cells, table->n,
								(uint16 *) to);
			break;
		default:
			write_narrow_uint32(inner, lookup, column, match, narrow_cells, table->n,
								(uint32 *) to);
	}
	pfree(narrow_cells);
}

/* Writes the bits of the keys for which inner rows exist. */
static void
write_found(const Lookup *inner, const ResidentMatch *match, const VectorTable *table, uint8 *to)
{
	if (table->n == 0)
		return;
	if (inner->bits && match->rank == NULL)
		INTERRUPTIBLE_FOR (at, 0, ((int64) table->n + 7) / 8)
			to[at] = inner->bits[at / 8] >> at % 8 * 8;
	else if (inner->form == LOOKUP_ARRAY && match->rank == NULL)
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

			if (resident_is_match(match, row))
				to[at / 8] |= 1 << at % 8;
		}
}

/* Writes the cells of a table. */
static void
write_table(Resident *r, int t, uint8 *to)
{
	ExprLookup *lookup = &r->program->lookups[t];
	const VectorTable *table = &r->wire.tables[t];
	instr_time since = cuda_clock();
	LookupCells *cells;

	if (lookup->join < 0)
	{
		memcpy(to, r->cells[t], vector_table_bytes(table));
		return;
	}
	if (lookup->slots)
	{
		if (!resident_write_slots(r->rows->joins[lookup->join].lookup, r->key_parts[lookup->join],
								  &r->matches[lookup->join], table, to))
			expr_program_reject(r->program, "the keys of a join have too similar hashes");
	}
	else if (lookup->attno == 0)
		write_found(r->rows->joins[lookup->join].lookup, &r->matches[lookup->join], table, to);
	else
	{
		if (lookup->states == NULL)
		{
			resident_fill_column(r, lookup);
			r->translated->lookups[t] = *lookup;
		}
		write_column(r, lookup, table, to);
	}
	cells = r->rows->joins[lookup->join].cells;
	cells->sent += vector_table_bytes(table);
	cuda_add_time(&cells->write_ms, since);
}

bool
resident_write_cells(Resident *r, char *buffer)
{
	uint8 *cells = (uint8 *) buffer + wire_cells_at(&r->wire);

	if (r->wire.cell_bytes == 0)
		return true;
	if (wire_cells_end(&r->wire) > r->cuda->client->welcome.buffer_bytes)
		return false;
	memset(cells, 0, r->wire.cell_bytes);
	for (int t = 0; t < r->program->nlookups; t++)
		if (wire_is_sent(&r->wire, t) && r->shared_cells[t] == 0)
			write_table(r, t, cells + (Size) r->wire.tables[t].first * 8);
	return r->program->unsupported_reason == NULL;
}

void
resident_note_cells(const Resident *r)
{
	for (int t = 0; t < r->program->nlookups; t++)
	{
		int join = r->program->lookups[t].join;
		uint64 bytes = vector_table_bytes(&r->wire.tables[t]);
		bool sent = r->sent_cells >> t & 1;

		if (join < 0 && sent)
			r->cuda->cells_sent += bytes;
		else if (join < 0)
			r->cuda->cells_kept += bytes;
		else if (r->shared_cells[t] == 0 && !sent)
			r->rows->joins[join].cells->kept += bytes;
	}
	for (int j = 0; j < r->rows->njoins; j++)
		r->rows->joins[j].cells->hashed = resident_is_hashed(r->rows->joins[j].lookup);
}
