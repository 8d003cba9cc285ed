/*
 * best_rows.c
 *	  Drops rows that are not among the best rows of their group; see best_rows.h.
 *
 * A group has entries, best first: an entry is a value of the order columns, with the number of
 * rows that have been seen with it, and those of them that are kept.  Entries prove that a later
 * row is not needed, whether their rows are kept or were passed on.
 *
 * Each row has a 64-bit code, which compares as its first order column does, ascending in the
 * order of the query.  Most rows are dropped by comparing the code with the group's limit.  If
 * codes do not decide, the order columns are compared by the functions of their types.
 *
 * Rows of the current batch are entered by their index first, and copied at the end of the batch
 * if they are still needed then.  If each row is better than the rows before, as the latest one
 * is, only the last row of the batch is copied for each group.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/datum.h"
#include "utils/memutils.h"

#include "columns/column_value.h"
#include "groups/best_rows.h"
#include "groups/row_store.h"
#include "groups/table.h"

/*
 * Codes.  Those of values are at least CODE_LEAST and at most CODE_MOST; values with one of these
 * two codes need not be equal.
 */
#define CODE_NULLS_FIRST UINT64CONST(0)
#define CODE_LEAST UINT64CONST(1)
#define CODE_NONE UINT64CONST(2) /* all rows: the first order column has no codes */
#define CODE_MOST (PG_UINT64_MAX - 2)
#define CODE_NULLS_LAST (PG_UINT64_MAX - 1)
/* The limit of a group that may need any row; no code is as large. */
#define NO_LIMIT PG_UINT64_MAX

#define NO_ROW (-1)

/* A kept row. Flags for NULLs and by-reference values follow the values. */
typedef struct KeptRow
{
	struct KeptRow *next; /* next row of the entry, or next spare row */
	size_t size;          /* bytes of the row, at most those allocated */
	Datum values[FLEXIBLE_ARRAY_MEMBER];
} KeptRow;

typedef struct Entry
{
	uint64 code;
	KeptRow *kept;
	int32 pending; /* first row of the batch that is to be kept, or NO_ROW */
	uint32 seen;   /* number of rows, at most BestSpec.n */
} Entry;

/* A group with a bound of 1 needs two entries, one of them for a moment. */
#define FEW_ENTRIES 2

typedef struct BestGroup
{
	union
	{
		Entry few[FEW_ENTRIES];
		Entry *many; /* if capacity > FEW_ENTRIES */
	} entries;
	uint16 nentries;
	uint16 capacity; /* 0: none are allocated, few[] is used */
	uint32 seen;     /* sum over all entries */
	bool touched;    /* an entry has pending rows */
} BestGroup;

struct BestRows
{
	const AggSpec *spec;
	const BestSpec *best;
	size_t limit;
	MemoryContext cxt;
	GroupTable *table;
	bool chosen; /* the table's mode has been chosen from the first batch */

	uint32 ngroups;
	uint32 capacity;   /* length of groups[] and limits[] */
	BestGroup *groups; /* [group] */
	uint64 *limits;    /* [group] rows with this code or a larger one are dropped */

	MemoryContext row_cxt; /* kept rows and entries */
	size_t row_bytes;      /* bytes in row_cxt */
	size_t peak;
	KeptRow *spare; /* rows that are no longer needed, for reuse in this batch */
	size_t null_off;
	size_t fixed_size; /* bytes of a row without by-reference values */

	/* valid for the current batch */
	MemoryContext batch_cxt; /* what functions of the types allocate */
	const Batch *batch;
	uint64 *codes;       /* [row] */
	uint32 *group_of;    /* [row] */
	uint32 *candidates;  /* rows that limits do not exclude */
	int32 *next_pending; /* [row] next row of its entry, or NO_ROW */
	uint32 *touched;     /* groups with pending rows */
	int ntouched;
	uint32 *passed;
	int npassed;

	/* best_rows_next() */
	uint32 next_group;
	int next_entry;
	KeptRow *next_row; /* NULL: the first one of the next entry */
};

BestRows *
best_rows_create(MemoryContext parent, const AggSpec *spec, const BestSpec *best, int batch_rows,
				 size_t limit)
{
	MemoryContext cxt = AllocSetContextCreate(parent, "gpuagg best rows", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(cxt);
	BestRows *rows = palloc0(sizeof(BestRows));
	bool dictionary = spec->nkeys == 1 && spec->keys[0].kind == KEY_DATUM;

	rows->spec = spec;
	rows->best = best;
	rows->limit = limit;
	rows->cxt = cxt;
	rows->table =
		group_table_create(cxt, spec, dictionary ? TABLE_DICTIONARY : TABLE_HASH, batch_rows);
	rows->row_cxt = AllocSetContextCreate(cxt, "gpuagg kept rows", ALLOCSET_DEFAULT_SIZES);
	rows->batch_cxt = AllocSetContextCreate(cxt, "gpuagg comparisons", ALLOCSET_DEFAULT_SIZES);
	rows->null_off = offsetof(KeptRow, values) + best->ncolumns * sizeof(Datum);
	rows->fixed_size = MAXALIGN(rows->null_off + best->ncolumns * sizeof(bool));
	rows->codes = palloc(batch_rows * sizeof(uint64));
	rows->group_of = palloc(batch_rows * sizeof(uint32));
	rows->candidates = palloc(batch_rows * sizeof(uint32));
	rows->next_pending = palloc(batch_rows * sizeof(int32));
	rows->touched = palloc(batch_rows * sizeof(uint32));
	rows->passed = palloc(batch_rows * sizeof(uint32));
	MemoryContextSwitchTo(old);
	return rows;
}

void
best_rows_reset(BestRows *rows)
{
	group_table_reset(rows->table);
	MemoryContextReset(rows->row_cxt);
	if (rows->groups)
	{
		pfree(rows->groups);
		pfree(rows->limits);
	}
	rows->groups = NULL;
	rows->limits = NULL;
	rows->capacity = rows->ngroups = 0;
	rows->row_bytes = 0;
	rows->spare = NULL;
	rows->chosen = false;
	rows->next_group = 0;
	rows->next_entry = 0;
	rows->next_row = NULL;
}

/* ---- memory ------------------------------------------------------------- */

/* Returns the bytes in use outside of the table of groups. */
static size_t
memory_of_rows(const BestRows *rows)
{
	return rows->row_bytes + rows->capacity * (sizeof(BestGroup) + sizeof(uint64));
}

/* Returns whether this many more bytes can be allocated for rows or entries. */
static bool
has_memory(const BestRows *rows, size_t bytes)
{
	return group_table_memory(rows->table) + memory_of_rows(rows) + bytes <= rows->limit;
}

/* Allocates memory in row_cxt; NULL if there is none left. */
static void *
allocate(BestRows *rows, size_t size)
{
	void *result;

	if (!has_memory(rows, size))
		return NULL;
	result = MemoryContextAllocHuge(rows->row_cxt, size);
	rows->row_bytes += GetMemoryChunkSpace(result);
	return result;
}

static void
release(BestRows *rows, void *pointer)
{
	rows->row_bytes -= GetMemoryChunkSpace(pointer);
	pfree(pointer);
}

/* Makes room for n groups. */
static void
reserve_groups(BestRows *rows, uint32 n)
{
	if (n <= rows->capacity)
		return;
	rows->capacity = Max(n, Min(rows->capacity * UINT64CONST(2), rows->table->max_groups));
	if (rows->groups)
	{
		rows->groups = repalloc_huge(rows->groups, rows->capacity * sizeof(BestGroup));
		rows->limits = repalloc_huge(rows->limits, rows->capacity * sizeof(uint64));
	}
	else
	{
		rows->groups = MemoryContextAllocHuge(rows->cxt, rows->capacity * sizeof(BestGroup));
		rows->limits = MemoryContextAllocHuge(rows->cxt, rows->capacity * sizeof(uint64));
	}
}

/* Adds the groups that the table has added. */
static void
add_groups(BestRows *rows)
{
	uint32 old = rows->ngroups;
	uint32 n = rows->table->ngroups;

	reserve_groups(rows, n);
	if (n > old)
	{
		memset(rows->groups + old, 0, (n - old) * sizeof(BestGroup));
		memset(rows->limits + old, 0xff, (n - old) * sizeof(uint64)); /* NO_LIMIT */
	}
	rows->ngroups = n;
}

/* Tells the table how many groups there may be, judging by the memory that rows take. */
static void
set_budget(BestRows *rows)
{
	GroupTable *table = rows->table;
	double used = table->ngroups > 0 ? memory_of_rows(rows) / (double) table->ngroups :
									   sizeof(BestGroup) + sizeof(uint64) + rows->fixed_size;

	group_table_budget(table, rows->limit, used);
}

/* Bins of a table that is chosen from the first batch. */
#define FEW_BINS 65536
#define BINS_PER_GROUP 16

/*
 * Called after the first batch: lets integer keys that span few values find their groups in an
 * array.
 */
static void
choose_mode(BestRows *rows, const Batch *batch)
{
	GroupTable *table = rows->table;

	rows->chosen = true;
	for (int k = 0; k < rows->spec->nkeys; k++)
		if (rows->spec->keys[k].kind != KEY_RAW)
			return;
	table->max_bins = Min(Max(FEW_BINS, BINS_PER_GROUP * (int64) table->ngroups),
						  rows->limit / 4 / sizeof(uint32));
	group_keys_ranges(&table->keys, batch, table->keys.ranges);
	(void) group_table_use_direct(table);
}

/* ---- rows --------------------------------------------------------------- */

/* Returns the value of a column in row i of the batch. */
static inline Datum
batch_value(const Batch *batch, const BestColumn *column, int i, bool *isnull)
{
	const Column *col = &batch->cols[column->col];

	*isnull = column_is_null(col, i);
	return *isnull ? (Datum) 0 : column_datum(col->type, col->scale, col->values, i);
}

void
best_rows_read(const BestRows *rows, const Batch *batch, int i, Datum *values, bool *nulls)
{
	for (int c = 0; c < rows->best->ncolumns; c++)
		values[c] = batch_value(batch, &rows->best->columns[c], i, &nulls[c]);
}

static inline bool *
kept_nulls(const BestRows *rows, KeptRow *row)
{
	return (bool *) ((char *) row + rows->null_off);
}

/* Returns the bytes of the by-reference values of row i, each of them aligned. */
static size_t
reference_bytes(const BestRows *rows, const Batch *batch, int i)
{
	size_t bytes = 0;

	for (int c = 0; c < rows->best->ncolumns; c++)
	{
		const BestColumn *column = &rows->best->columns[c];
		bool isnull;
		Datum value;

		if (column->typbyval)
			continue;
		value = batch_value(batch, column, i, &isnull);
		if (!isnull)
			bytes += MAXALIGN(datumGetSize(value, false, column->typlen));
	}
	return bytes;
}

/*
 * Returns memory for a row of this size: the first spare row if it is large enough, or new memory;
 * NULL if there is none left.
 */
static KeptRow *
new_row(BestRows *rows, size_t size)
{
	KeptRow *row = rows->spare;

	while (row != NULL)
	{
		rows->spare = row->next;
		if (row->size >= size)
			return row;
		release(rows, row);
		row = rows->spare;
	}
	row = allocate(rows, size);
	if (row)
		row->size = size;
	return row;
}

/* Returns a copy of row i of the batch; NULL if there is no memory left. */
static KeptRow *
copy_row(BestRows *rows, int i)
{
	size_t size = rows->fixed_size + reference_bytes(rows, rows->batch, i);
	KeptRow *row = new_row(rows, size);
	char *at;
	bool *nulls;

	if (row == NULL)
		return NULL;
	at = (char *) row + rows->fixed_size;
	nulls = kept_nulls(rows, row);
	best_rows_read(rows, rows->batch, i, row->values, nulls);
	for (int c = 0; c < rows->best->ncolumns; c++)
	{
		const BestColumn *column = &rows->best->columns[c];

		if (!column->typbyval && !nulls[c])
		{
			size_t bytes = datumGetSize(row->values[c], false, column->typlen);

			memcpy(at, DatumGetPointer(row->values[c]), bytes);
			row->values[c] = PointerGetDatum(at);
			at += MAXALIGN(bytes);
		}
	}
	return row;
}

static inline void
drop_row(BestRows *rows, KeptRow *row)
{
	row->next = rows->spare;
	rows->spare = row;
}

static void
free_spare_rows(BestRows *rows)
{
	KeptRow *row;

	while ((row = rows->spare) != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		rows->spare = row->next;
		release(rows, row);
	}
}

static inline void
pass_row(BestRows *rows, int i)
{
	rows->passed[rows->npassed++] = i;
}

/* ---- codes and comparisons ----------------------------------------------- */

/* Returns whether rows with this code are equal in all order columns. */
static inline bool
code_is_exact(const BestSpec *best, uint64 code)
{
	if (best->norder == 0)
		return true;
	return best->norder == 1 && best->coded && code != CODE_LEAST && code != CODE_MOST;
}

/* Fills codes[] for the batch. */
static void
fill_codes(BestRows *rows, const Batch *batch)
{
	const BestSpec *best = rows->best;
	const Column *col;
	uint64 *codes = rows->codes;
	uint64 null_code;

	if (!best->coded)
	{
		for (int i = 0; i < batch->nrows; i++)
			codes[i] = CODE_NONE;
		return;
	}
	col = &batch->cols[best->columns[best->order[0]].col];
	null_code = best->sorts[0].ssup_nulls_first ? CODE_NULLS_FIRST : CODE_NULLS_LAST;
	row_store_column_codes(col, batch->nrows, codes);
	for (int i = 0; i < batch->nrows; i++)
	{
		uint64 code = best->desc ? ~codes[i] : codes[i];

		codes[i] = Min(Max(code, CODE_LEAST), CODE_MOST);
	}
	for (int i = 0; col->validity && i < batch->nrows; i++)
		if (column_is_null(col, i))
			codes[i] = null_code;
}

/*
 * Compares row i of the batch with an entry, whose code is equal but not exact: with a row that
 * it keeps.
 */
static int
compare_values(BestRows *rows, int i, const Entry *entry)
{
	const BestSpec *best = rows->best;

	for (int o = 0; o < best->norder; o++)
	{
		const BestColumn *column = &best->columns[best->order[o]];
		Datum value, other;
		bool isnull, other_null;
		int result;

		value = batch_value(rows->batch, column, i, &isnull);
		if (entry->kept)
		{
			other = entry->kept->values[best->order[o]];
			other_null = kept_nulls(rows, entry->kept)[best->order[o]];
		}
		else
			other = batch_value(rows->batch, column, entry->pending, &other_null);
		result = ApplySortComparator(value, isnull, other, other_null, &best->sorts[o]);
		if (result != 0)
			return result;
	}
	return 0;
}

/* Returns whether row i is before the entry (< 0), equal, or after it (> 0). */
static inline int
compare_to_entry(BestRows *rows, int i, const Entry *entry)
{
	uint64 code = rows->codes[i];

	if (code != entry->code)
		return code < entry->code ? -1 : 1;
	return code_is_exact(rows->best, code) ? 0 : compare_values(rows, i, entry);
}

/* ---- entries ------------------------------------------------------------ */

static inline Entry *
entries_of(BestGroup *group)
{
	return group->capacity > 0 ? group->entries.many : group->entries.few;
}

/* Sets the limit of a group after its entries have changed. */
static void
set_limit(BestRows *rows, uint32 g)
{
	const BestSpec *best = rows->best;
	BestGroup *group = &rows->groups[g];
	uint32 enough = best->kind == BEST_DENSE_RANK ? group->nentries : group->seen;
	uint64 code;

	rows->limits[g] = NO_LIMIT;
	if (group->nentries == 0 || enough < best->n)
		return;
	code = entries_of(group)[group->nentries - 1].code;
	/* rows that are equal to the last entry have the same rank, but a later number */
	rows->limits[g] = best->kind == BEST_ROW_NUMBER && code_is_exact(best, code) ? code : code + 1;
}

/*
 * Drops a row of an entry: a pending one, or else a kept one.  But its last one stays if codes do
 * not suffice to compare with the entry.
 */
static void
drop_one(BestRows *rows, Entry *entry)
{
	bool exact = code_is_exact(rows->best, entry->code);

	if (entry->pending != NO_ROW &&
		(exact || entry->kept || rows->next_pending[entry->pending] != NO_ROW))
		entry->pending = rows->next_pending[entry->pending];
	else if (entry->kept && (exact || entry->kept->next))
	{
		KeptRow *row = entry->kept;

		entry->kept = row->next;
		drop_row(rows, row);
	}
}

/* Removes the last entry of a group, and drops its rows. */
static void
remove_last_entry(BestRows *rows, BestGroup *group)
{
	Entry *entry = &entries_of(group)[--group->nentries];

	group->seen -= entry->seen;
	while (entry->kept)
	{
		KeptRow *row = entry->kept;

		CHECK_FOR_INTERRUPTS();
		entry->kept = row->next;
		drop_row(rows, row);
	}
}

/* Removes what the other entries of a group prove to be unnecessary. */
static void
trim_group(BestRows *rows, BestGroup *group)
{
	const BestSpec *best = rows->best;
	Entry *last;

	for (;;)
	{
		last = &entries_of(group)[group->nentries - 1];
		if (best->kind == BEST_DENSE_RANK ? group->nentries <= best->n :
											group->seen - last->seen < best->n)
			break;
		remove_last_entry(rows, group);
	}
	while (best->kind == BEST_ROW_NUMBER && group->seen > best->n)
	{
		last->seen--;
		group->seen--;
		drop_one(rows, last);
	}
}

/* Makes room for one more entry; false if there is no memory left. */
static bool
reserve_entry(BestRows *rows, BestGroup *group)
{
	int capacity = group->capacity > 0 ? group->capacity : FEW_ENTRIES;
	int wanted = Min(capacity * 2, BEST_MOST + 1);
	Entry *entries;

	if (group->nentries < capacity)
		return true;
	entries = allocate(rows, wanted * sizeof(Entry));
	if (entries == NULL)
		return false;
	memcpy(entries, entries_of(group), group->nentries * sizeof(Entry));
	if (group->capacity > 0)
		release(rows, group->entries.many);
	group->entries.many = entries;
	group->capacity = wanted;
	return true;
}

/*
 * Returns the index of the first entry that row i is not after; nentries if there is none.  Sets
 * *equal to whether it is equal.
 */
static int
find_entry(BestRows *rows, BestGroup *group, int i, bool *equal)
{
	const Entry *entries = entries_of(group);
	int low = 0;
	int high = group->nentries;

	*equal = false;
	while (low < high)
	{
		int middle = (low + high) / 2;
		int result = compare_to_entry(rows, i, &entries[middle]);

		if (result == 0)
		{
			*equal = true;
			return middle;
		}
		if (result < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* Enters row i of the batch into its group g, unless the entries prove that it is not needed. */
static void
enter_row(BestRows *rows, uint32 g, int i)
{
	const BestSpec *best = rows->best;
	BestGroup *group = &rows->groups[g];
	Entry *entries;
	bool full = best->kind == BEST_DENSE_RANK ? group->nentries >= best->n : group->seen >= best->n;
	bool equal;
	int at;

	CHECK_FOR_INTERRUPTS();
	at = find_entry(rows, group, i, &equal);
	/* the last entry of a full group is needed itself, but nothing after it */
	if (full &&
		(equal ? at == group->nentries - 1 && best->kind == BEST_ROW_NUMBER :
				 at == group->nentries))
		return;
	if (!equal && !reserve_entry(rows, group))
	{
		pass_row(rows, i);
		return;
	}
	entries = entries_of(group);
	if (!equal)
	{
		memmove(entries + at + 1, entries + at, (group->nentries - at) * sizeof(Entry));
		entries[at] = (Entry){.code = rows->codes[i], .pending = NO_ROW};
		group->nentries++;
	}
	rows->next_pending[i] = entries[at].pending;
	entries[at].pending = i;
	if (entries[at].seen < best->n || best->kind == BEST_ROW_NUMBER)
	{
		entries[at].seen++;
		group->seen++;
	}
	trim_group(rows, group);
	set_limit(rows, g);
	if (!group->touched)
	{
		group->touched = true;
		rows->touched[rows->ntouched++] = g;
	}
}

/* ---- batches ------------------------------------------------------------ */

/*
 * Copies the pending rows of an entry.  Passes on rows for which there is no memory.  Returns
 * whether the entry still has a value to compare with.
 */
static bool
keep_pending(BestRows *rows, Entry *entry)
{
	while (entry->pending != NO_ROW)
	{
		int i = entry->pending;
		KeptRow *row = copy_row(rows, i);

		CHECK_FOR_INTERRUPTS();
		entry->pending = rows->next_pending[i];
		if (row == NULL)
		{
			pass_row(rows, i);
			continue;
		}
		row->next = entry->kept;
		entry->kept = row;
	}
	return entry->kept != NULL || code_is_exact(rows->best, entry->code);
}

/* Copies the pending rows of a group. */
static void
keep_group(BestRows *rows, uint32 g)
{
	BestGroup *group = &rows->groups[g];
	Entry *entries = entries_of(group);
	int n = 0;

	for (int e = 0; e < group->nentries; e++)
	{
		if (keep_pending(rows, &entries[e]))
			entries[n++] = entries[e];
		else
			group->seen -= entries[e].seen;
	}
	group->touched = false;
	if (n < group->nentries)
	{
		group->nentries = n;
		set_limit(rows, g);
	}
}

/* Finds the groups of the batch, and passes on rows for whose groups there is no memory. */
static void
locate_groups(BestRows *rows, const Batch *batch)
{
	GroupTable *table = rows->table;

	set_budget(rows);
	group_table_locate(table, batch);
	if (!rows->chosen)
		choose_mode(rows, batch);
	add_groups(rows);
	for (int i = 0; i < batch->nrows; i++)
	{
		rows->group_of[i] = table->at[i] == NO_GROUP ? NO_GROUP : table->at[i] / table->row_cells;
		if (table->at[i] != NO_GROUP)
			__builtin_prefetch(&rows->limits[rows->group_of[i]]);
	}
}

/*
 * Passes on rows without a group.  Sets candidates[] to the rows that their groups' limits do not
 * exclude, and returns their number.
 */
static int
find_candidates(BestRows *rows)
{
	int n = 0;

	for (int i = 0; i < rows->batch->nrows; i++)
	{
		uint32 g = rows->group_of[i];

		if (g == NO_GROUP)
			pass_row(rows, i);
		else
		{
			rows->candidates[n] = i;
			n += rows->codes[i] < rows->limits[g];
		}
	}
	return n;
}

/* Groups of up to this many bytes stay in the second-level cache and need no prefetching. */
#define SMALL_GROUPS (512 * 1024)

/* Enters n candidates into their groups. */
static void
enter_rows(BestRows *rows, int n)
{
	const uint32 *candidates = rows->candidates;

	if (rows->capacity * sizeof(BestGroup) > SMALL_GROUPS)
	{
		for (int c = 0; c < n; c++)
			__builtin_prefetch(&rows->groups[rows->group_of[candidates[c]]], 1);
		for (int c = 0; c < n; c++)
		{
			const BestGroup *group = &rows->groups[rows->group_of[candidates[c]]];

			/* the row that may be replaced, or the entries */
			if (group->capacity > 0)
				__builtin_prefetch(group->entries.many, 1);
			else if (group->nentries > 0)
				__builtin_prefetch(group->entries.few[0].kept, 1);
		}
	}
	for (int c = 0; c < n; c++)
	{
		int i = candidates[c];
		uint32 g = rows->group_of[i];

		/* other rows of the batch may have changed the limit */
		if (rows->codes[i] < rows->limits[g])
			enter_row(rows, g, i);
	}
}

int
best_rows_add(BestRows *rows, const Batch *batch, const uint32 **passed)
{
	MemoryContext old = MemoryContextSwitchTo(rows->batch_cxt);

	rows->batch = batch;
	rows->npassed = rows->ntouched = 0;
	locate_groups(rows, batch);
	fill_codes(rows, batch);
	enter_rows(rows, find_candidates(rows));
	for (int t = 0; t < rows->ntouched; t++)
		keep_group(rows, rows->touched[t]);
	rows->peak = Max(rows->peak, group_table_memory(rows->table) + memory_of_rows(rows));
	free_spare_rows(rows);
	MemoryContextSwitchTo(old);
	MemoryContextReset(rows->batch_cxt);
	*passed = rows->passed;
	return rows->npassed;
}

/* Moves on to the first row of the next entry that has one; false if there is none. */
static bool
next_entry(BestRows *rows)
{
	while (rows->next_group < rows->table->ngroups)
	{
		BestGroup *group = &rows->groups[rows->next_group];

		if (rows->next_entry >= group->nentries)
		{
			rows->next_group++;
			rows->next_entry = 0;
			continue;
		}
		rows->next_row = entries_of(group)[rows->next_entry++].kept;
		if (rows->next_row)
			return true;
	}
	return false;
}

bool
best_rows_next(BestRows *rows, Datum *values, bool *nulls)
{
	int n = rows->best->ncolumns;

	if (rows->next_row == NULL && !next_entry(rows))
		return false;
	memcpy(values, rows->next_row->values, n * sizeof(Datum));
	memcpy(nulls, kept_nulls(rows, rows->next_row), n * sizeof(bool));
	rows->next_row = rows->next_row->next;
	return true;
}

uint64
best_rows_groups(const BestRows *rows)
{
	return rows->table->ngroups;
}

size_t
best_rows_memory(const BestRows *rows)
{
	return rows->peak;
}
