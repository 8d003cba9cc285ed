/*
 * row_store.c
 *	  Rows kept in memory, column by column, and sorted by keys and order columns.
 *
 * The codes of a row are: bitmaps of the keys that are NULL; one code for each key; for each order
 * column, whether it is NULL, and its code. Before sorting, the codes that vary are packed into as
 * few 64-bit words as their ranges need, mostly one or two. Row numbers are sorted by the first
 * word. Then each run of rows with equal words is sorted by the next word, and so on. A radix sort
 * is used for many rows, a comparison sort for few. Both are stable: equal rows stay in the order
 * in which they came.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "utils/datum.h"
#include "utils/memutils.h"

#include "columns/column_writer.h"
#include "columns/hash_seed.h"
#include "common/interruptible.h"
#include "groups/value_dictionary.h"
#include "groups/row_store.h"
#include "operators/select.h"

/* Kinds of a stored value, one byte each. */
enum
{
	ROW_VALUE,
	ROW_NULL,
	ROW_UNREPRESENTABLE /* a numeric that a decimal cannot represent; its Datum is stored in place
						   of the value */
};

/* Bytes that sorting needs for a row: its word and number, twice. */
#define SORT_BYTES (2 * (sizeof(uint64) + sizeof(uint32)))

/* Room for rows that is made at first. */
#define FIRST_ROWS 8192

typedef struct StoredColumn
{
	char *values; /* [row] of the column's width */
	uint8 *kinds; /* [row] ROW_... */
} StoredColumn;

struct RowStore
{
	const AggSpec *spec;
	MemoryContext cxt;
	MemoryContext datum_cxt; /* by-reference values */
	int batch_rows;
	int64 n;        /* rows */
	int64 capacity; /* rows for which there is room */
	StoredColumn *cols;
	int nmasks;         /* codes that are bitmaps of NULL keys */
	int ncodes;         /* all codes of a row */
	uint64 **codes;     /* [code][row] */
	Dictionary **dicts; /* [key] NULL where the key is not a KEY_DATUM */
	HashSeed seed;      /* for row_store_key_hashes */
	uint32 *sorted;     /* row numbers in sorted order; NULL before sorting */
	bool toasted;       /* some values are compressed or out of line */

	/* buffers for one batch */
	uint64 **batch_codes; /* [code][row of the batch] */
	int32 *dict_codes;
	uint32 *dict_hashes;
	uint64 *hashes;
	Batch batch;
	ColumnWriter *writers; /* [column of the batch] */
};

/* ---- life --------------------------------------------------------------- */

RowStore *
row_store_create(MemoryContext parent, const AggSpec *spec, int batch_rows)
{
	MemoryContext cxt = AllocSetContextCreate(parent, "gpuagg row store", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(cxt);
	RowStore *store = palloc0(sizeof(RowStore));

	store->spec = spec;
	store->cxt = cxt;
	store->batch_rows = batch_rows;
	store->seed = hash_seed_random();
	store->datum_cxt =
		AllocSetContextCreate(cxt, "gpuagg row store values", ALLOCSET_DEFAULT_SIZES);
	store->cols = palloc0((spec->ncols + 1) * sizeof(StoredColumn));
	store->nmasks = BITMAP_WORDS(spec->nkeys);
	store->ncodes = store->nmasks + spec->nkeys + 2 * spec->norder;
	store->codes = palloc0(store->ncodes * sizeof(uint64 *));
	store->batch_codes = palloc(store->ncodes * sizeof(uint64 *));
	for (int c = 0; c < store->ncodes; c++)
		store->batch_codes[c] = palloc(batch_rows * sizeof(uint64));
	store->dict_codes = palloc(batch_rows * sizeof(int32));
	store->dict_hashes = palloc(batch_rows * sizeof(uint32));
	store->hashes = palloc(batch_rows * sizeof(uint64));
	store->dicts = palloc0((spec->nkeys + 1) * sizeof(Dictionary *));
	for (int k = 0; k < spec->nkeys; k++)
		if (spec->keys[k].kind == KEY_DATUM)
			store->dicts[k] =
				dictionary_create(cxt, &spec->keys[k], &spec->cols[spec->keys[k].col], batch_rows);
	store->batch.capacity = batch_rows;
	store->batch.ncols = spec->ncols;
	store->batch.cols = palloc0((spec->ncols + 1) * sizeof(Column));
	store->writers = palloc0((spec->ncols + 1) * sizeof(ColumnWriter));
	for (int c = 0; c < spec->ncols; c++)
		column_writer_init(&store->writers[c], &store->batch.cols[c], &spec->cols[c], batch_rows,
						   NULL);
	MemoryContextSwitchTo(old);
	return store;
}

void
row_store_clear_rows(RowStore *store)
{
	for (int c = 0; store->capacity > 0 && c < store->spec->ncols; c++)
	{
		pfree(store->cols[c].values);
		pfree(store->cols[c].kinds);
		store->cols[c].values = NULL;
		store->cols[c].kinds = NULL;
	}
	for (int c = 0; store->capacity > 0 && c < store->ncodes; c++)
	{
		pfree(store->codes[c]);
		store->codes[c] = NULL;
	}
	store->n = store->capacity = 0;
	if (store->sorted)
		pfree(store->sorted);
	store->sorted = NULL;
	store->toasted = false;
	MemoryContextReset(store->datum_cxt);
}

void
row_store_clear(RowStore *store)
{
	row_store_clear_rows(store);
	for (int k = 0; k < store->spec->nkeys; k++)
		if (store->dicts[k])
			dictionary_reset(store->dicts[k]);
}

/* Returns the bytes of a row in the arrays: without by-reference values, and memory for sorting. */
static size_t
stored_row_bytes(const RowStore *store)
{
	size_t bytes = store->ncodes * sizeof(uint64);

	for (int c = 0; c < store->spec->ncols; c++)
		bytes += column_width(store->spec->cols[c].type) + 1;
	return bytes;
}

size_t
row_store_memory(const RowStore *store)
{
	size_t bytes = store->n * (stored_row_bytes(store) + SORT_BYTES);

	bytes += MemoryContextMemAllocated(store->datum_cxt, false);
	for (int k = 0; k < store->spec->nkeys; k++)
		if (store->dicts[k])
			bytes += dictionary_memory(store->dicts[k]);
	return bytes;
}

bool
row_store_has_room(const RowStore *store, int rows)
{
	return store->n + rows <= (int64) PG_UINT32_MAX;
}

/* ---- codes -------------------------------------------------------------- */

void
row_store_column_codes(const Column *col, int n, uint64 *codes)
{
	switch (col->type)
	{
#define CODES(type, expr) \
	for (int i = 0; i < n; i++) \
	{ \
		type x = ((const type *) col->values)[i]; \
		codes[i] = (expr); \
	} \
	break

#define X(NAME, value_t, ...) \
	case COLUMN_##NAME: \
		CODES(value_t, select_code_i64(x));
		COLUMN_INTEGERS(X)
#undef X
#define X(NAME, value_t, ...) \
	case COLUMN_##NAME: \
		CODES(value_t, select_code_f64(x + 0.0)); /* -0 = 0 */
		COLUMN_FLOATS(X)
#undef X
#undef CODES
		default:
			elog(ERROR, "column type %d has no 64-bit codes", (int) col->type);
	}
}

int
row_store_ncodes(const RowStore *store)
{
	return store->ncodes;
}

uint64 **
row_store_codes(RowStore *store, const Batch *batch)
{
	const AggSpec *spec = store->spec;
	uint64 **codes = store->batch_codes;
	int n = batch->nrows;

	for (int m = 0; m < store->nmasks; m++)
		memset(codes[m], 0, n * sizeof(uint64));
	for (int k = 0; k < spec->nkeys; k++)
	{
		const Column *col = &batch->cols[spec->keys[k].col];
		uint64 *out = codes[store->nmasks + k];

		if (store->dicts[k])
		{
			/* NULL has a code of its own */
			dictionary_lookup(store->dicts[k], col, n, PG_INT32_MAX, SIZE_MAX, store->dict_codes,
							  store->dict_hashes);
			for (int i = 0; i < n; i++)
			{
				if (store->dict_codes[i] == NO_CODE)
					ereport(
						ERROR,
						(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
						 errmsg("too many distinct GROUP BY keys for an aggregate with ORDER BY")));
				out[i] = (uint32) store->dict_codes[i];
			}
			continue;
		}
		row_store_column_codes(col, n, out);
		for (int i = 0; col->validity && i < n; i++)
			if (column_is_null(col, i))
			{
				codes[k / 64][i] |= UINT64CONST(1) << (k % 64);
				out[i] = 0;
			}
	}
	for (int o = 0; o < spec->norder; o++)
	{
		const OrderSpec *order = &spec->order[o];
		const Column *col = &batch->cols[order->col];
		uint64 *nulls = codes[store->nmasks + spec->nkeys + 2 * o];
		uint64 *out = codes[store->nmasks + spec->nkeys + 2 * o + 1];

		row_store_column_codes(col, n, out);
		for (int i = 0; i < n; i++)
		{
			bool isnull = column_is_null(col, i);

			nulls[i] = isnull != order->nulls_first;
			out[i] = isnull ? 0 : order->desc ? ~out[i] : out[i];
		}
	}
	return codes;
}

const uint64 *
row_store_key_hashes(RowStore *store, const Batch *batch)
{
	const AggSpec *spec = store->spec;
	int n = batch->nrows;

	memset(store->hashes, 0, n * sizeof(uint64));
	for (int k = 0; k < spec->nkeys; k++)
	{
		const Column *col = &batch->cols[spec->keys[k].col];
		uint64 *codes = store->batch_codes[0];

		if (store->dicts[k])
		{
			dictionary_hash_column(store->dicts[k], col, n, store->dict_hashes);
			for (int i = 0; i < n; i++)
				codes[i] = store->dict_hashes[i];
		}
		else
			row_store_column_codes(col, n, codes);
		for (int i = 0; i < n; i++)
			store->hashes[i] = hash_fold(
				store->seed, store->hashes[i] ^ (column_is_null(col, i) ? 0 : codes[i] + k + 1));
	}
	return store->hashes;
}

/* ---- rows in ------------------------------------------------------------ */

/* Returns the array enlarged to this many bytes, which may have moved; NULL: a new array. */
static void *
grow_array(RowStore *store, void *array, size_t bytes)
{
	if (array == NULL)
		return MemoryContextAllocHuge(store->cxt, bytes);
	return repalloc_huge(array, bytes);
}

/* Makes room for this many rows in total. */
static void
grow_store(RowStore *store, int64 rows)
{
	int64 capacity = Max(store->capacity, FIRST_ROWS);

	if (rows <= store->capacity)
		return;
	while (capacity < rows)
		capacity += capacity / 2;
	for (int c = 0; c < store->spec->ncols; c++)
	{
		StoredColumn *col = &store->cols[c];

		col->values =
			grow_array(store, col->values, capacity * column_width(store->spec->cols[c].type));
		col->kinds = grow_array(store, col->kinds, capacity);
	}
	for (int c = 0; c < store->ncodes; c++)
		store->codes[c] = grow_array(store, store->codes[c], capacity * sizeof(uint64));
	store->capacity = capacity;
}

/* Appends a column of a batch. By-reference values and unrepresentable numerics are copied. */
static void
append_column(RowStore *store, int c, const Column *col, int n)
{
	const ColumnSpec *spec = &store->spec->cols[c];
	StoredColumn *to = &store->cols[c];
	int width = column_width(col->type);
	char *values = to->values + store->n * width;
	uint8 *kinds = to->kinds + store->n;
	bool by_reference = col->type == COLUMN_DATUM && !spec->typbyval;

	memcpy(values, col->values, (size_t) n * width);
	memset(kinds, ROW_VALUE, n);
	if (!col->validity && !col->unrepresentable && !by_reference)
		return;
	for (int i = 0; i < n; i++)
	{
		Datum copy;

		if (column_is_null(col, i))
			kinds[i] = ROW_NULL;
		else if (column_is_unrepresentable(col, i))
		{
			kinds[i] = ROW_UNREPRESENTABLE;
			copy = datumCopy(col->unrepresentable_values[i], false, -1);
			memcpy(values + (size_t) i * width, &copy, sizeof(Datum));
		}
		else if (by_reference)
		{
			copy = datumCopy(((Datum *) col->values)[i], false, spec->typlen);
			((Datum *) values)[i] = copy;
			if (spec->typlen == -1 &&
				(VARATT_IS_EXTERNAL(DatumGetPointer(copy)) ||
				 VARATT_IS_COMPRESSED(DatumGetPointer(copy))))
				store->toasted = true;
		}
	}
}

void
row_store_append(RowStore *store, const Batch *batch)
{
	MemoryContext old;
	uint64 **codes;

	grow_store(store, store->n + batch->nrows);
	codes = row_store_codes(store, batch);
	for (int c = 0; c < store->ncodes; c++)
		memcpy(store->codes[c] + store->n, codes[c], batch->nrows * sizeof(uint64));
	old = MemoryContextSwitchTo(store->datum_cxt);
	for (int c = 0; c < batch->ncols; c++)
		append_column(store, c, &batch->cols[c], batch->nrows);
	MemoryContextSwitchTo(old);
	store->n += batch->nrows;
}

/* ---- sorting ------------------------------------------------------------ */

/*
 * Packs the codes into words, in place, with the leading codes in the highest bits. Returns the
 * number of words. A code takes as many bits as its range needs.
 */
static int
pack_codes(RowStore *store)
{
	int word = 0;
	int left = 64;
	bool empty = true;

	for (int c = 0; c < store->ncodes; c++)
	{
		uint64 *codes = store->codes[c];
		uint64 min = codes[0], max = codes[0];
		int bits;

		INTERRUPTIBLE_FOR (i, 1, store->n)
		{
			min = Min(min, codes[i]);
			max = Max(max, codes[i]);
		}
		if (min == max)
			continue;
		bits = pg_leftmost_one_pos64(max - min) + 1;
		if (!empty && bits > left)
		{
			word++;
			left = 64;
			empty = true;
		}
		/* word <= c, so nothing is overwritten before it is read */
		INTERRUPTIBLE_FOR (i, 0, store->n)
			store->codes[word][i] =
				empty ? codes[i] - min : store->codes[word][i] << bits | (codes[i] - min);
		left -= bits;
		empty = false;
	}
	return empty ? word : word + 1;
}

/*
 * Fewer rows are sorted by comparing: clearing and adding up the 256 counters of a radix pass would
 * take longer.
 */
#define RADIX_ROWS 256

/* Row numbers in the order found so far, each with the word by which it is being sorted. */
typedef struct SortArrays
{
	uint64 *words;
	uint32 *rows;
} SortArrays;

/*
 * One pass of a radix sort: moves n rows to *to, sorted by the byte at bit `shift` of their words.
 * Rows with equal bytes keep their order. count[byte] is the number of rows with that byte; it is
 * overwritten.
 */
static void
sort_by_byte(const SortArrays *from, const SortArrays *to, int64 n, int shift, uint32 *count)
{
	uint32 at = 0;

	for (int b = 0; b < 256; b++)
	{
		uint32 here = count[b];

		count[b] = at;
		at += here;
	}
	INTERRUPTIBLE_FOR (i, 0, n)
	{
		uint32 place = count[from->words[i] >> shift & 0xFF]++;

		to->words[place] = from->words[i];
		to->rows[place] = from->rows[i];
	}
}

/*
 * Sorts n rows by one word each. The radix sort is stable and goes from the lowest byte to the
 * highest. Bytes that are the same in all rows only cost the counting. The result is in *from,
 * which may have been swapped with *to.
 */
static void
sort_by_word(SortArrays *from, SortArrays *to, int64 n, const uint64 *words)
{
	uint64 all = 0;

	INTERRUPTIBLE_FOR (i, 0, n)
	{
		from->words[i] = words[from->rows[i]];
		all |= from->words[i];
	}
	for (int shift = 0; shift < 64 && all >> shift; shift += 8)
	{
		uint32 count[256] = {0};
		SortArrays sorted = *to;

		INTERRUPTIBLE_FOR (i, 0, n)
			count[from->words[i] >> shift & 0xFF]++;
		if (count[from->words[0] >> shift & 0xFF] == n)
			continue;
		sort_by_byte(from, to, n, shift, count);
		*to = *from;
		*from = sorted;
	}
}

/* The packed words first .. end - 1 of all rows. */
typedef struct WordRange
{
	uint64 **codes;
	int first;
	int end;
} WordRange;

/* Compares two rows, given by their numbers: by the words of *range, then by number. */
static inline int
compare_rows(const uint32 *a, const uint32 *b, const WordRange *range)
{
	for (int w = range->first; w < range->end; w++)
	{
		uint64 x = range->codes[w][*a];
		uint64 y = range->codes[w][*b];

		if (x != y)
			return x < y ? -1 : 1;
	}
	return *a < *b ? -1 : *a > *b;
}

#define ST_SORT sort_few_rows
#define ST_ELEMENT_TYPE uint32
#define ST_COMPARE(a, b, arg) compare_rows(a, b, arg)
#define ST_COMPARE_ARG_TYPE WordRange
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

/*
 * Takes n rows that are sorted by rows->words. Sorts the rows of each run of equal words by the
 * packed words range.first .. range.end - 1. Overwrites rows->words and *spare.
 */
static void
sort_equal_runs(const SortArrays *rows, const SortArrays *spare, int64 n, WordRange range)
{
	int64 end;

	for (int64 start = 0; start < n; start = end)
	{
		SortArrays run = {rows->words + start, rows->rows + start};
		SortArrays from = run;
		SortArrays to = {spare->words + start, spare->rows + start};
		WordRange rest = {range.codes, range.first + 1, range.end};
		int64 count;

		CHECK_FOR_INTERRUPTS();
		for (end = start + 1; end < n && rows->words[end] == rows->words[start];)
			end++;
		count = end - start;
		if (count < RADIX_ROWS)
		{
			if (count > 1)
				sort_few_rows(run.rows, count, &range);
			continue;
		}
		sort_by_word(&from, &to, count, range.codes[range.first]);
		if (rest.first < rest.end)
			sort_equal_runs(&from, &to, count, rest);
		if (from.rows != run.rows)
			memcpy(run.rows, from.rows, count * sizeof(uint32));
	}
}

void
row_store_sort(RowStore *store)
{
	int64 n = store->n;
	WordRange ties = {store->codes, 1};
	SortArrays from, to;

	if (n == 0)
		return;
	from.rows = MemoryContextAllocHuge(store->cxt, n * sizeof(uint32));
	from.words = MemoryContextAllocHuge(store->cxt, n * sizeof(uint64));
	to.rows = MemoryContextAllocHuge(store->cxt, n * sizeof(uint32));
	to.words = MemoryContextAllocHuge(store->cxt, n * sizeof(uint64));
	INTERRUPTIBLE_FOR (i, 0, n)
		from.rows[i] = i;
	ties.end = pack_codes(store);
	if (ties.end > 0)
		sort_by_word(&from, &to, n, store->codes[0]);
	if (ties.end > 1)
		sort_equal_runs(&from, &to, n, ties);
	store->sorted = from.rows;
	pfree(from.words);
	pfree(to.rows);
	pfree(to.words);
}

/* ---- rows out ----------------------------------------------------------- */

/* Copies n values of `width` bytes each: to[i] = values[rows[i]]. */
static void
gather_values(const char *values, char *to, const uint32 *rows, int n, int width)
{
	switch (width)
	{
#define GATHER(type) \
	for (int i = 0; i < n; i++) \
		((type *) to)[i] = ((const type *) values)[rows[i]]; \
	break

		case 1:
			GATHER(uint8);
		case 2:
			GATHER(uint16);
		case 4:
			GATHER(uint32);
		case 8:
			GATHER(uint64);
#undef GATHER
		default:
			for (int i = 0; i < n; i++)
				memcpy(to + (size_t) i * width, values + (size_t) rows[i] * width, width);
			break;
	}
}

/* Copies column c of the stored rows rows[0 .. n - 1] to rows 0 .. n - 1 of the batch. */
static void
gather_column(RowStore *store, int c, const uint32 *rows, int n)
{
	ColumnWriter *writer = &store->writers[c];
	Column *col = writer->col;
	const StoredColumn *from = &store->cols[c];
	int width = column_width(col->type);

	gather_values(from->values, col->values, rows, n, width);
	column_begin(writer);
	for (int i = 0; i < n; i++)
	{
		uint8 kind = from->kinds[rows[i]];

		if (kind == ROW_NULL)
			column_write_null(writer, i);
		else if (kind == ROW_UNREPRESENTABLE)
		{
			Datum value;

			memcpy(&value, (char *) col->values + (size_t) i * width, sizeof(Datum));
			column_mark_unrepresentable(writer, i, value);
		}
	}
}

/*
 * Returns how many of rows[0 .. n - 1] go into one batch. The batch ends with the row with which
 * the detoasted values reach BATCH_BYTES.
 */
static int
rows_within_batch_bytes(const RowStore *store, const uint32 *rows, int n)
{
	size_t bytes = 0;

	for (int i = 0; i < n; i++)
	{
		for (int c = 0; c < store->spec->ncols; c++)
		{
			const ColumnSpec *spec = &store->spec->cols[c];
			const StoredColumn *col = &store->cols[c];

			if (spec->type == COLUMN_DATUM && !spec->typbyval && col->kinds[rows[i]] == ROW_VALUE)
				bytes += datum_bytes(((Datum *) col->values)[rows[i]], spec->typlen);
		}
		if (bytes >= BATCH_BYTES)
			return i + 1;
	}
	return n;
}

/*
 * Makes a batch of the stored rows rows[0], rows[1], ... The caller returns rows in some order, in
 * which rows[0] has position `from`; so at most n - from rows are left.
 */
static Batch *
gather_batch(RowStore *store, const uint32 *rows, int64 from)
{
	Batch *batch = &store->batch;

	batch->nrows = Min(store->batch_rows, store->n - from);
	if (store->toasted)
		batch->nrows = rows_within_batch_bytes(store, rows, batch->nrows);
	for (int c = 0; c < batch->ncols; c++)
		gather_column(store, c, rows, batch->nrows);
	return batch;
}

Batch *
row_store_gather(RowStore *store, int64 from)
{
	return from < store->n ? gather_batch(store, store->sorted + from, from) : NULL;
}

Batch *
row_store_batch(RowStore *store, int64 from)
{
	uint32 *rows;
	Batch *batch;

	if (from >= store->n)
		return NULL;
	rows = palloc(store->batch_rows * sizeof(uint32));
	for (int i = 0; i < Min(store->batch_rows, store->n - from); i++)
		rows[i] = from + i;
	batch = gather_batch(store, rows, from);
	pfree(rows);
	return batch;
}
