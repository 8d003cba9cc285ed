/*
 * device_values.c
 *	  Lookup tables of expressions over a coded column: a cell for each value of its dictionary.
 *
 * The tables of many values are kept in the cache's memory for later queries (cache/kept.h), if
 * their expressions depend on nothing but the value (analysis/fixed.c).  The name of such a table
 * says the column and the expression; the table itself has the id of the dictionary.  A dictionary
 * only grows, so that an older table of the same dictionary has the first of its cells.
 *
 * Whoever executes a query with an expression may know its results for all values of the
 * dictionary, because it is harmless (analysis/harmless.c).
 */
#include "postgres.h"

#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "utils/datum.h"
#include "utils/memutils.h"
#include "utils/varlena.h"

#include "analysis/analysis.h"
#include "cache/kept.h"
#include "columns/column_value.h"
#include "common/interruptible.h"
#include "engine_cuda/device_cells.h"
#include "engine_cuda/device_rows.h"
#include "engine_cuda/dictionaries.h"

/*
 * Expressions are computed for so many values of a column for each row that the query reads.
 * Values of rows that were replaced stay in a dictionary; the server drops one with far more of
 * them.
 */
#define VALUES_PER_ROW 8

/* Tables of fewer values are not kept. */
#define LEAST_KEPT_VALUES 128
/* Most bytes of the nodes and constants of an expression whose table is kept. */
#define EXPRESSION_BYTES 16384

/* ---- keys ---------------------------------------------------------------------- */

void
resident_encode(Resident *r, int c, const Datum *values, const uint8 *states, uint32 n,
				int64 *codes)
{
	CudaEngine *cuda = r->cuda;
	const CudaColumn *col = &cuda->query->cols[c];
	uint64 *validity = palloc0(BITMAP_WORDS(cuda->env.batch_rows) * sizeof(uint64));
	bool ok = true;

	for (uint32 at = 0; at < n && ok; at += cuda->env.batch_rows)
	{
		int nrows = Min(cuda->env.batch_rows, n - at);
		Column in = {
			.type = COLUMN_DATUM, .values = unconstify(Datum *, values + at), .validity = validity};

		CHECK_FOR_INTERRUPTS();
		for (int i = 0; i < nrows; i++)
			if (states[at + i] == VECTOR_VALUE)
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
			codes[at + i] = col->codes[i];
		}
	}
	if (!ok)
		expr_program_reject(r->program, "no memory is left for the dictionary of the keys");
	pfree(validity);
}

/* Returns whether NULL has a number like any other value, in a lookup of a key. */
static bool
null_is_numbered(const Resident *r, const ExprLookup *lookup)
{
	return r->cuda->query->cols[lookup->column].travel != TRAVEL_SET_CODES && !lookup->nulls_stay;
}

/* NULL has a number like any other value in the first n entries of a key's lookup, if it can. */
static void
number_nulls(const Resident *r, ExprLookup *lookup, uint32 n)
{
	if (null_is_numbered(r, lookup))
		INTERRUPTIBLE_FOR (i, 0, (int64) n)
			if (lookup->states[i] == VECTOR_NULL)
				lookup->states[i] = VECTOR_VALUE;
}

void
resident_fill_key_lookup(Resident *r, ExprLookup *lookup, const Datum *entries, const bool *nulls,
						 uint32 n, bool null)
{
	Datum *values = expr_lookup_evaluate(r->program, lookup, entries, nulls, n);
	uint32 all = n + (null ? 1 : 0);

	if (r->program->unsupported_reason == NULL)
		resident_encode(r, lookup->column, values, lookup->states, all, lookup->values);
	if (r->program->unsupported_reason == NULL)
	{
		number_nulls(r, lookup, all);
		expr_lookup_finish(lookup);
	}
	pfree(values);
}

/* ---- tables that are kept -------------------------------------------------------- */

/* A table that is kept. */
typedef struct KeptCells
{
	uint64 dictionary; /* id of the dictionary */
	VectorTable table; /* its n is the number of values */
	ExprInterval interval;
	bool nulls;
	uint8 null;
	uint64
		cells[FLEXIBLE_ARRAY_MEMBER]; /* and, of ranks, the order of codes; of keys, KeptResults */
} KeptCells;

/* The results of a key's expression, which the cells have by number. */
typedef struct KeptResults
{
	uint64 n;
	uint64 offsets[FLEXIBLE_ARRAY_MEMBER]; /* [number] where the value is; 0: NULL */
} KeptResults;

static inline const KeptResults *
kept_results(const KeptCells *kept)
{
	return (const KeptResults *) ((const char *) kept->cells + vector_table_bytes(&kept->table));
}

/* Returns the bytes that a dictionary's values take as KeptResults. */
static Size
results_bytes(const Dictionary *dict, const ColumnSpec *spec)
{
	int n = dictionary_size(dict);
	Size bytes = offsetof(KeptResults, offsets) + (Size) n * sizeof(uint64);

	INTERRUPTIBLE_FOR (code, 0, n)
	{
		bool null;
		Datum value = dictionary_value(dict, code, &null);

		if (!null)
			bytes += MAXALIGN(datumGetSize(value, spec->typbyval, spec->typlen));
	}
	return bytes;
}

/* Writes them. Does not check for interrupts. */
static void
write_results(const Dictionary *dict, const ColumnSpec *spec, KeptResults *to)
{
	Size at;

	to->n = dictionary_size(dict);
	at = offsetof(KeptResults, offsets) + to->n * sizeof(uint64);
	for (uint64 code = 0; code < to->n; code++)
	{
		bool null;
		Datum value = dictionary_value(dict, code, &null);
		Size bytes;

		to->offsets[code] = null ? 0 : at;
		if (null)
			continue;
		bytes = datumGetSize(value, spec->typbyval, spec->typlen);
		memcpy((char *) to + at, spec->typbyval ? (void *) &value : DatumGetPointer(value), bytes);
		at += MAXALIGN(bytes);
	}
}

/* Sets values and states to these results. Values by reference stay where they are. */
static void
read_results(const KeptResults *from, const ColumnSpec *spec, Datum *values, uint8 *states)
{
	INTERRUPTIBLE_FOR (i, 0, (int64) from->n)
	{
		const char *value = (const char *) from + from->offsets[i];

		states[i] = from->offsets[i] == 0 ? VECTOR_NULL : VECTOR_VALUE;
		if (states[i] == VECTOR_NULL)
			values[i] = (Datum) 0;
		else if (spec->typbyval)
			memcpy(&values[i], value, sizeof(Datum));
		else
			values[i] = PointerGetDatum(value);
	}
}

/* How a lookup's table is found. */
typedef struct TableIdentity
{
	bool keeps; /* the table may be kept */
	KeptName name;
	KeptTables tables;
} TableIdentity;

/* Makes Vars of the scan equal in all queries. */
static bool
forget_places(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Var))
	{
		Var *var = (Var *) node;

		var->varno = var->varnosyn = 1;
		var->varattnosyn = var->varattno;
	}
	return expression_tree_walker(node, forget_places, context);
}

/* Returns whether an expression is a column, perhaps as another type with the same values. */
static bool
is_column(const Expr *expr)
{
	while (IsA(expr, RelabelType))
		expr = ((const RelabelType *) expr)->arg;
	return IsA(expr, Var);
}

/* Sets the identity of the table of a lookup over stored column s. */
static void
identify(const Resident *r, int s, const ExprLookup *lookup, TableIdentity *identity)
{
	const CudaColumn *col = lookup->column < 0 ? NULL : &r->cuda->query->cols[lookup->column];
	ProofTable *table = &identity->tables.of[0];
	Size room = EXPRESSION_BYTES;
	StringInfoData buf;
	Node *expr;

	memset(identity, 0, sizeof(*identity));
	identity->tables.n = 1;
	if (r->wire.known[s].nentries < LEAST_KEPT_VALUES || !cache_available() ||
		(col && (is_column(lookup->expr) || r->cuda->spec->cols[col->col].typlen == -2)) ||
		(lookup->expr && !expr_is_fixed((Node *) lookup->expr, &room)) ||
		!cache_table_by_id(r->rows->table, &table->key, &table->relid))
		return;
	initStringInfo(&buf);
	appendStringInfoString(&buf, "values");
	expr_append_number(&buf, MyDatabaseId);
	appendBinaryStringInfo(&buf, (const char *) &r->wire.table, sizeof(r->wire.table));
	appendBinaryStringInfo(&buf, (const char *) &r->wire.stored[s], sizeof(r->wire.stored[s]));
	expr_append_number(&buf, lookup->type);
	expr_append_number(&buf, lookup->scale);
	expr_append_number(&buf, lookup->ranked);
	if (col)
	{
		expr_append_number(&buf, null_is_numbered(r, lookup));
		expr_append_number(&buf, col->equality->eqfunc);
		expr_append_number(&buf, col->equality->collation);
	}
	expr_append_settings(&buf);
	if (lookup->expr)
	{
		expr = copyObject((Node *) lookup->expr);
		(void) forget_places(expr, NULL);
		expr_append_fixed(&buf, expr);
	}
	StaticAssertStmt(sizeof(identity->name.bytes) == EXPR_DIGEST_BYTES, "a name is a digest");
	expr_digest(&buf, identity->name.bytes);
	pfree(buf.data);
	identity->keeps = true;
}

/* Reset callback of the memory context of a query's rows. */
static void
release_cells(void *kept)
{
	kept_release(kept);
}

/*
 * Returns the kept table of a dictionary, of all its values or the first of them; NULL: there is
 * none. It is pinned as long as the current memory context exists.
 */
static const KeptCells *
find_cells(const TableIdentity *identity, const WireKnown *known)
{
	MemoryContextCallback *callback = palloc0(sizeof(*callback));
	const KeptCells *kept;
	bool wanted;

	if (!identity->keeps)
		return NULL;
	kept = kept_find(&identity->name, &identity->tables, true, &wanted);
	if (kept == NULL)
		return NULL;
	callback->func = release_cells;
	callback->arg = unconstify(KeptCells *, kept);
	MemoryContextRegisterResetCallback(CurrentMemoryContext, callback);
	if (kept->dictionary == known->id && kept->table.n <= known->nentries)
		return kept;
	/* ids grow, and this process may not know of the latest dictionary yet */
	if (kept->dictionary < known->id)
		kept_drop(kept);
	return NULL;
}

/* Returns whether the query's dictionary has the results of a key's lookup, and nothing else. */
static bool
has_own_dictionary(const Resident *r, const ExprLookup *lookup)
{
	int64 size = dictionary_size(r->cuda->query->cols[lookup->column].dict);
	uint64 *used = palloc0((BITMAP_WORDS(size) + 1) * sizeof(uint64));
	int64 n = 0;

	/* NULL has a code in the dictionary, even if it has none for the query */
	INTERRUPTIBLE_FOR (i, 0, (int64) lookup->n + 1)
		if (lookup->states[i] != VECTOR_UNDETERMINED && !bitmap_get(used, lookup->values[i]))
		{
			bitmap_set(used, lookup->values[i]);
			n++;
		}
	pfree(used);
	return n == size;
}

/*
 * Keeps the table of lookup t, and returns its serial number; 0: it is not kept. older: the one
 * that was found before, or NULL
 */
static uint64
keep_cells(const Resident *r, int t, const TableIdentity *identity, const KeptCells *older)
{
	const ExprLookup *lookup = &r->program->lookups[t];
	const VectorTable *table = &r->wire.tables[t];
	const CudaColumn *col = lookup->column < 0 ? NULL : &r->cuda->query->cols[lookup->column];
	Size bytes = vector_table_bytes(table);
	Size order_bytes = OidIsValid(lookup->ranked) ? table->n * sizeof(uint32) : 0;
	KeptCells *kept;
	uint64 serial;

	if (!identity->keeps || lookup->undetermined || (col && !has_own_dictionary(r, lookup)))
		return 0;
	if (col)
		order_bytes = results_bytes(col->dict, &r->cuda->spec->cols[col->col]);
	if (older)
		kept_drop(older);
	kept = kept_allocate(&identity->name, &identity->tables,
						 offsetof(KeptCells, cells) + bytes + order_bytes, table->n);
	if (kept == NULL)
		return 0;
	kept->dictionary = r->wire.known[lookup->stored].id;
	kept->table = *table;
	kept->interval = lookup->interval;
	kept->nulls = lookup->nulls;
	kept->null = lookup->null;
	memcpy(kept->cells, r->cells[t], bytes);
	if (col)
		write_results(col->dict, &r->cuda->spec->cols[col->col],
					  unconstify(KeptResults *, kept_results(kept)));
	else if (order_bytes > 0)
		memcpy((char *) kept->cells + bytes, r->order[t], order_bytes);
	serial = kept_serial(kept);
	return kept_publish(kept) ? serial : 0;
}

/* ---- values of a dictionary ------------------------------------------------------ */

/* What is lacking of the lookups over a stored column. */
typedef struct Lacking
{
	Resident *r;
	int s;
	bool ranks;   /* some lookup of ranks is lacking */
	bool any;     /* some lookup is lacking */
	uint32 first; /* the first value that one lacks */
	TableIdentity identities[WIRE_MAX_TABLES];
	const KeptCells *kept[WIRE_MAX_TABLES]; /* NULL: none */
	/* codes of a key's kept results, by number; NULL: the numbers are the codes */
	int64 *codes[WIRE_MAX_TABLES];
	ExprEvaluation *evaluations[WIRE_MAX_TABLES]; /* NULL: none */
} Lacking;

/* Returns whether a lookup is over the stored column. */
static bool
is_over(const Lacking *lacking, int t)
{
	return lacking->r->program->lookups[t].stored == lacking->s;
}

/* Returns whether a lookup has a kept table of all values. */
static bool
is_complete(const Lacking *lacking, int t)
{
	return lacking->kept[t] &&
		lacking->kept[t]->table.n == lacking->r->wire.known[lacking->s].nentries;
}

/* Makes the kept table of all values of the dictionary that of lookup t. */
static void
use_cells(Resident *r, int t, const KeptCells *kept)
{
	ExprLookup *lookup = &r->program->lookups[t];

	lookup->n = kept->table.n;
	lookup->interval = kept->interval;
	lookup->nulls = kept->nulls;
	lookup->undetermined = false;
	lookup->null = kept->null;
	r->wire.tables[t] = kept->table;
	r->cells[t] = (const uint8 *) kept->cells;
	r->serial[t] = kept_serial(kept);
	r->order[t] = (const uint32 *) (r->cells[t] + vector_table_bytes(&kept->table));
}

/*
 * Finds the codes of the results of a kept key in the query's own dictionary, to which they are
 * added. Returns NULL if they are the numbers of the results.
 */
static int64 *
encode_results(Resident *r, const ExprLookup *lookup, const KeptCells *kept)
{
	const ColumnSpec *spec = &r->cuda->spec->cols[r->cuda->query->cols[lookup->column].col];
	const KeptResults *results = kept_results(kept);
	Size n = results->n;
	Datum *values = palloc_extended((n + 1) * sizeof(Datum), MCXT_ALLOC_HUGE);
	uint8 *states = palloc_extended(n + 1, MCXT_ALLOC_HUGE);
	int64 *codes = palloc_extended((n + 1) * sizeof(int64), MCXT_ALLOC_HUGE);
	bool same = true;

	read_results(results, spec, values, states);
	resident_encode(r, lookup->column, values, states, n, codes);
	pfree(values);
	pfree(states);
	INTERRUPTIBLE_FOR (i, 0, (int64) n)
		same &= codes[i] == i;
	if (!same)
		return codes;
	pfree(codes);
	return NULL;
}

/* Uses the tables that are kept of the dictionary, and finds out what is lacking. */
static void
find_lacking(Lacking *lacking)
{
	Resident *r = lacking->r;
	const WireKnown *known = &r->wire.known[lacking->s];

	lacking->ranks = lacking->any = false;
	lacking->first = known->nentries;
	for (int t = 0; t < r->program->nlookups; t++)
	{
		const ExprLookup *lookup = &r->program->lookups[t];
		const KeptCells *kept = NULL;

		if (!is_over(lacking, t))
			continue;
		r->wire.tables[t] = (VectorTable){.n = known->nentries};
		r->wire.names[t] = (WireCellsName){{0}};
		r->serial[t] = 0;
		identify(r, lacking->s, lookup, &lacking->identities[t]);
		lacking->kept[t] = kept = find_cells(&lacking->identities[t], known);
		lacking->codes[t] =
			kept && lookup->type == COLUMN_DATUM ? encode_results(r, lookup, kept) : NULL;
		if (is_complete(lacking, t) && lacking->codes[t] == NULL)
		{
			use_cells(r, t, kept);
			continue;
		}
		lacking->any = true;
		/* another value changes ranks */
		lacking->ranks |= OidIsValid(lookup->ranked);
		lacking->first =
			Min(lacking->first, kept && !OidIsValid(lookup->ranked) ? kept->table.n : 0);
	}
}

/* Begins to evaluate the lookups that are lacking, other than ranks. */
static void
begin_evaluations(Lacking *lacking)
{
	Resident *r = lacking->r;

	for (int t = 0; t < r->program->nlookups; t++)
	{
		ExprLookup *lookup = &r->program->lookups[t];
		const KeptCells *kept = lacking->kept[t];

		lacking->evaluations[t] = NULL;
		if (!is_over(lacking, t) || lookup->expr == NULL ||
			(is_complete(lacking, t) && lacking->codes[t] == NULL))
			continue;
		lacking->evaluations[t] =
			expr_evaluation_begin(r->program, lookup, r->wire.known[lacking->s].nentries);
		if (kept)
			INTERRUPTIBLE_FOR (i, 0, (int64) kept->table.n)
			{
				cell_read(lookup, &kept->table, (const uint8 *) kept->cells, i);
				if (lacking->codes[t] && lookup->states[i] == VECTOR_VALUE)
					lookup->values[i] = lacking->codes[t][lookup->values[i]];
			}
	}
}

/* Values for which a key is evaluated at a time. */
#define KEYS_AT_ONCE 4096

/* Evaluates lookup t of a key for values from `from` on, and encodes the results. */
static void
add_keys(Lacking *lacking, int t, uint32 from, const Datum *values, uint32 n)
{
	Resident *r = lacking->r;
	ExprLookup *lookup = &r->program->lookups[t];
	MemoryContext cxt =
		AllocSetContextCreate(CurrentMemoryContext, "GPU keys", ALLOCSET_DEFAULT_SIZES);
	Datum results[KEYS_AT_ONCE];

	for (uint32 at = 0; at < n && r->program->unsupported_reason == NULL; at += KEYS_AT_ONCE)
	{
		uint32 m = Min(n - at, KEYS_AT_ONCE);
		MemoryContext old = MemoryContextSwitchTo(cxt);

		expr_evaluation_add(lacking->evaluations[t], from + at, values ? values + at : NULL, NULL,
							m, results);
		if (r->program->unsupported_reason == NULL)
			resident_encode(r, lookup->column, results, lookup->states + from + at, m,
							lookup->values + from + at);
		MemoryContextSwitchTo(old);
		MemoryContextReset(cxt);
	}
	MemoryContextDelete(cxt);
}

/* CudaTakeEntries: evaluates the lookups for values from `from` on. */
static void
add_values(void *arg, uint32 from, const Datum *values, uint32 n)
{
	Lacking *lacking = arg;

	for (int t = 0; t < lacking->r->program->nlookups; t++)
	{
		uint32 has = lacking->kept[t] ? lacking->kept[t]->table.n : 0;
		uint32 skip = has > from ? Min(has - from, n) : 0;

		if (!is_over(lacking, t) || lacking->evaluations[t] == NULL)
			continue;
		if (lacking->r->program->lookups[t].type == COLUMN_DATUM)
			add_keys(lacking, t, from + skip, values + skip, n - skip);
		else
			expr_evaluation_add(lacking->evaluations[t], from + skip, values + skip, NULL, n - skip,
								NULL);
	}
}

/* Makes the cells of lookup t, which is filled. */
static void
make_cells(Resident *r, int t)
{
	const ExprLookup *lookup = &r->program->lookups[t];
	VectorTable *table = &r->wire.tables[t];
	uint8 *cells;

	table->n = lookup->n;
	cells_choose_form(lookup, table);
	cells = palloc_extended(vector_table_bytes(table), MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	INTERRUPTIBLE_FOR (i, 0, (int64) lookup->n + 1)
		cell_write(lookup, table, cells, i, i);
	r->cells[t] = cells;
}

/* Makes the table of lookup t, which is filled, and keeps it. */
static void
complete_lookup(Lacking *lacking, int t)
{
	Resident *r = lacking->r;
	ExprLookup *lookup = &r->program->lookups[t];

	if (lookup->type == COLUMN_DATUM)
		number_nulls(r, lookup, lookup->n + 1);
	expr_lookup_finish(lookup);
	make_cells(r, t);
	r->serial[t] = keep_cells(r, t, &lacking->identities[t], lacking->kept[t]);
	/* nobody has sent them */
	r->lacking_cells |= UINT32_C(1) << t;
	pfree(lookup->values);
	pfree(lookup->states);
	lookup->values = NULL;
	lookup->states = NULL;
}

/* Ends the evaluation of lookup t. */
static void
end_evaluation(Lacking *lacking, int t)
{
	const ExprLookup *lookup = &lacking->r->program->lookups[t];

	if (lookup->type == COLUMN_DATUM)
		add_keys(lacking, t, lookup->n, NULL, 1);
	else
		expr_evaluation_add(lacking->evaluations[t], lookup->n, NULL, NULL, 1, NULL);
	expr_evaluation_end(lacking->evaluations[t]);
	if (lacking->r->program->unsupported_reason == NULL)
		complete_lookup(lacking, t);
}

/* The texts of a dictionary that are being sorted. */
typedef struct Texts
{
	const Datum *values;
	Oid collation;
} Texts;

/* Compares the texts of two codes. */
static int
compare_texts(const void *a, const void *b, void *arg)
{
	const Texts *texts = arg;
	const text *x = (const text *) DatumGetPointer(texts->values[*(const uint32 *) a]);
	const text *y = (const text *) DatumGetPointer(texts->values[*(const uint32 *) b]);

	CHECK_FOR_INTERRUPTS();
	return varstr_cmp(VARDATA_ANY(x), VARSIZE_ANY_EXHDR(x), VARDATA_ANY(y), VARSIZE_ANY_EXHDR(y),
					  texts->collation);
}

/* Fills the lookups of ranks. */
static void
fill_ranks(Lacking *lacking, const Datum *values)
{
	Resident *r = lacking->r;
	uint32 n = r->wire.known[lacking->s].nentries;

	for (int t = 0; t < r->program->nlookups; t++)
	{
		ExprLookup *lookup = &r->program->lookups[t];
		Texts texts = {values, lookup->ranked};
		uint32 *order;

		if (!is_over(lacking, t) || !OidIsValid(lookup->ranked) || is_complete(lacking, t))
			continue;
		order = palloc_extended((n + 1) * sizeof(uint32), MCXT_ALLOC_HUGE);
		for (uint32 i = 0; i < n; i++)
			order[i] = i;
		qsort_arg(order, n, sizeof(uint32), compare_texts, &texts);
		expr_lookup_allocate(lookup, n);
		memset(lookup->states, VECTOR_VALUE, n);
		lookup->states[n] = VECTOR_NULL;
		for (uint32 i = 0; i < n; i++)
			lookup->values[order[i]] = i;
		r->order[t] = order;
		complete_lookup(lacking, t);
	}
}

/*
 * Rejects the program if its expressions should not be computed for the values that are lacking:
 * they are too many for a message, or many more than the rows.
 */
static void
check_number(const Lacking *lacking)
{
	Resident *r = lacking->r;
	uint32 n = r->wire.known[lacking->s].nentries;

	if ((uint64) n * (lacking->ranks ? sizeof(uint32) : 1) >= WIRE_BUFFER_BYTES)
		expr_program_reject(r->program, "a column has too many values for an expression of them");
	else if (n - lacking->first > RESIDENT_LEAST_VALUES + VALUES_PER_ROW * r->rows->nrows)
		expr_program_reject(r->program, "a column has far more values than the query reads rows");
}

/* Returns what is known of the dictionary, see cuda_dictionary(). */
static const CudaDictionary *
get_dictionary(const Lacking *lacking, bool refresh, bool copy)
{
	Resident *r = lacking->r;

	return cuda_dictionary(r->cuda->client, r->wire.table, &r->wire.stored[lacking->s],
						   resident_attribute(r, lacking->s), refresh, copy);
}

/* CudaTakeEntries: copies values into an array. */
static void
copy_values(void *arg, uint32 from, const Datum *values, uint32 n)
{
	Datum *to = arg;
	MemoryContext old = MemoryContextSwitchTo(GetMemoryChunkContext(to));

	INTERRUPTIBLE_FOR (i, 0, (int64) n)
		to[from + i] = datumCopy(values[i], false, -1);
	MemoryContextSwitchTo(old);
}

/* Bytes that are estimated for a value beside its own. */
#define VALUE_BYTES 64

/*
 * Reads the values of a dictionary from number `from` on. Rejects the program if the server has
 * replaced the dictionary meanwhile: another round reads the other one. Returns false if the
 * session is lost.
 */
static bool
read_values(const Lacking *lacking, WireKnown known, uint32 from, CudaTakeEntries take, void *arg)
{
	Resident *r = lacking->r;
	bool replaced;

	if (!cuda_dictionary_read(r->cuda->client, r->wire.table, &r->wire.stored[lacking->s],
							  resident_attribute(r, lacking->s), known, from, take, arg, &replaced))
		return false;
	if (replaced)
	{
		expr_program_reject(r->program, "the GPU server has replaced a column's values meanwhile");
		r->replaced = true;
	}
	return true;
}

/*
 * Reads all texts of a dictionary, for this query only, if there is memory for them. Else rejects
 * the program. Returns false if the session is lost.
 */
static bool
gather_values(const Lacking *lacking, const CudaDictionary *dict, const Datum **values)
{
	Resident *r = lacking->r;
	uint32 n = dict->known.nentries;
	Datum *all;

	if (dict->all_bytes + (uint64) n * VALUE_BYTES > r->cuda->env.mem_limit)
	{
		expr_program_reject(r->program, "no memory is left for the order of a column's values");
		return true;
	}
	*values = all = palloc_extended((Size) n * sizeof(Datum), MCXT_ALLOC_HUGE);
	return read_values(lacking, dict->known, 0, copy_values, all);
}

/*
 * Evaluates the lookups that are lacking for the values of a copy of the dictionary, or for values
 * that are read once. Returns false if the session is lost.
 */
static bool
evaluate_lacking(Lacking *lacking, const CudaDictionary *dict)
{
	Resident *r = lacking->r;
	const Datum *values = dict->copied == dict->known.nentries ? dict->values : NULL;
	bool ok = true;

	if (lacking->ranks && dict->copied < dict->known.nentries &&
		r->program->unsupported_reason == NULL && !gather_values(lacking, dict, &values))
		return false;
	if (r->program->unsupported_reason)
		return true;
	if (lacking->ranks)
		fill_ranks(lacking, values);
	begin_evaluations(lacking);
	if (values || dict->known.nentries == 0)
		add_values(lacking, 0, values, dict->known.nentries);
	else
		ok = read_values(lacking, dict->known, lacking->first, add_values, lacking);
	for (int t = 0; t < r->program->nlookups && ok; t++)
		if (is_over(lacking, t) && lacking->evaluations[t])
			end_evaluation(lacking, t);
	return ok;
}

/*
 * Does the same, and copies the dictionary if it is not too large, unless the tables that are kept
 * have most of its values.
 */
static bool
fill_lacking(Lacking *lacking)
{
	Resident *r = lacking->r;
	const CudaDictionary *dict;
	bool ok = true;

	check_number(lacking);
	if (r->program->unsupported_reason)
		return true;
	dict = get_dictionary(lacking, false, lacking->first == 0);
	if (dict == NULL)
		return false;
	if (memcmp(&dict->known, &r->wire.known[lacking->s], sizeof(WireKnown)) != 0)
	{
		/* it has grown meanwhile */
		r->wire.known[lacking->s] = dict->known;
		find_lacking(lacking);
	}
	if (lacking->any)
		ok = evaluate_lacking(lacking, dict);
	cuda_dictionary_release(dict);
	return ok;
}

bool
resident_fill_coded(Resident *r, int s)
{
	Lacking *lacking = palloc0(sizeof(Lacking));
	const CudaDictionary *dict;
	bool ok;

	lacking->r = r;
	lacking->s = s;
	dict = get_dictionary(lacking, r->outdated, false);
	if (dict == NULL)
		return false;
	r->wire.known[s] = dict->known;
	cuda_dictionary_release(dict);
	find_lacking(lacking);
	ok = !lacking->any || fill_lacking(lacking);
	pfree(lacking);
	return ok;
}
