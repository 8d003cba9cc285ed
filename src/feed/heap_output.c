/*
 * heap_output.c
 *
 * Writes the outputs of rows into the batch.
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "columns/decimal.h"
#include "feed/heap.h"

/*
 * Evaluates output c for the feed's row i with core's evaluator. Stores it in a row of the
 * batch, also for the outputs joined to it (HeapRoot.next).
 */
static void
store_scalar(HeapFeed *feed, int c, int i, int row)
{
	const HeapRoot *roots = feed->table->outputs;
	bool isnull;
	Datum value = expr_evaluate_scalar(feed->table->set, roots[c].root, i, &isnull);

	for (; c >= 0; c = roots[c].next)
	{
		if (isnull)
			column_write_null(&feed->outputs[c].writer, row);
		else
			column_write(&feed->outputs[c].writer, row, value);
	}
}

/*
 * Replaces n by-reference values, from row `at` of the batch on, by copies in the batch's
 * arena. Returns for how many rows, as heap_store_references() does.
 */
static int
copy_references(HeapFeed *feed, const HeapOutput *output, int at, int n, const uint8 *state)
{
	Datum *values = (Datum *) output->writer.col->values + at;
	int16 typlen = output->writer.typlen;

	for (int i = 0; i < n; i++)
	{
		if (state && state[i] != VEC_VALUE)
			continue;
		values[i] = arena_copy(&feed->arena, values[i], typlen);
		if (unlikely(heap_batch_is_full(feed)))
			return i + 1;
	}
	return n;
}

/*
 * Stores the codes that the values have in the chunk's dictionary. If they repeat too little,
 * or earlier rows of the batch have codes of another dictionary, the column gets none.
 * Arguments are those of heap_store_references().
 */
static void
store_codes(HeapFeed *feed, HeapOutput *output, int at, int n, const CacheChunk *chunk, uint32 from,
			const uint16 *rows)
{
	uint64 dictionary = heap_cached_dictionary(feed->table->cached);

	if (!chunk_repeats(chunk) || (at > 0 && output->dictionary != dictionary))
	{
		output->dictionary = 0;
		return;
	}
	if (output->codes == NULL)
		output->codes = MemoryContextAlloc(feed->cxt, feed->batch.capacity * sizeof(uint32));
	output->dictionary = dictionary;
	output->ncodes = chunk->nentries;
	if (rows == NULL || (!feed->rows.repeated && rows[n - 1] - rows[0] == n - 1))
		chunk_codes(chunk, from + (rows ? rows[0] : 0), n, output->codes + at);
	else
	{
		uint32 range[EXPR_ROWS];
		int first = rows[0];

		/* The rows are some of a short range: read the codes of all of it. */
		chunk_codes(chunk, from + first, rows[n - 1] - first + 1, range);
		for (int i = 0; i < n; i++)
			output->codes[at + i] = range[rows[i] - first];
	}
}

int
heap_store_references(HeapFeed *feed, int c, int at, int n, const uint8 *state,
					  const CacheChunk *chunk, uint32 from, const uint16 *rows)
{
	HeapOutput *output = &feed->outputs[c];

	if (n > 0 && chunk && chunk->nentries > 0 &&
		chunk->longest <= BATCH_BYTES / feed->batch.capacity)
	{
		feed->borrows = true;
		store_codes(feed, output, at, n, chunk, from, rows);
		return n;
	}
	output->dictionary = 0;
	return copy_references(feed, output, at, n, state);
}

/*
 * Points n rows of an output to the values that the expression's dictionary owns, and stores
 * their codes (Vec.codes). Returns false, with nothing stored, if some value has no code,
 * values are long, or the batch may outlive the dictionary.
 */
static bool
store_numbered(HeapFeed *feed, HeapOutput *output, const Vec *vec, int at, int n)
{
	const ExprDictionary *dict = vec->dictionary;
	const Vec *codes = vec->codes;
	const int32 *numbers = codes->values;
	Datum *values = (Datum *) output->writer.col->values + at;
	uint8 all = VEC_VALUE;

	for (int i = 0; !codes->all_values && i < n; i++)
		all |= codes->state[i];
	if (all & VEC_FALLBACK || dict->longest > BATCH_BYTES / feed->batch.capacity ||
		feed->table->cxt)
		return false;
	for (int i = 0; i < n; i++)
		if (vec->all_values || vec->state[i] == VEC_VALUE)
			values[i] = dict->values[numbers[i]];
	if (at > 0 && output->dictionary != dict->id)
	{
		output->dictionary = 0;
		return true;
	}
	if (output->codes == NULL)
		output->codes = MemoryContextAlloc(feed->cxt, feed->batch.capacity * sizeof(uint32));
	output->dictionary = dict->id;
	output->ncodes = dict->n;
	memcpy(output->codes + at, numbers, n * sizeof(uint32));
	return true;
}

/* Marks computed decimals beyond the range of COLUMN_DEC as unrepresentable. */
static void
check_decimals(HeapFeed *feed, HeapOutput *output, const Vec *vec, int at, int n)
{
	const gpuagg_i128 limit = DECODE_NUMERIC_LIMIT;
	const gpuagg_i128 *values = (gpuagg_i128 *) output->writer.col->values + at;

	if (vec->attno != 0)
		return; /* decode_numeric() has checked a column's values */
	for (int i = 0; i < n; i++)
		if ((values[i] >= limit || values[i] <= -limit) &&
			(vec->all_values || vec->state[i] == VEC_VALUE))
		{
			MemoryContext old = MemoryContextSwitchTo(feed->table->set->page_cxt);
			Datum value = expr_datum(vec, i);

			MemoryContextSwitchTo(old);
			column_write_unrepresentable(&output->writer, at + i, value);
		}
}

/*
 * Stores output c of the first n rows, from row `at` of the batch on. Returns for how many rows
 * that was done: fewer than n if the batch became full.
 */
static int
store_output(HeapFeed *feed, int c, int at, int n)
{
	HeapOutput *output = &feed->outputs[c];
	const HeapRoot *hroot = &feed->table->outputs[c];
	Column *col = output->writer.col;
	Vec *vec = hroot->root->vec;
	int width = column_width(col->type);
	/* the vector's values need no conversion */
	bool same = vec && vec->type == col->type && vec->scale == col->scale &&
		(vec->scales == NULL || output->writer.form == NUMERIC_ANY_SCALE);

	if (same)
	{
		if (!hroot->in_place)
			memcpy((char *) col->values + (size_t) at * width, vec->values, (size_t) n * width);
		if (col->type == COLUMN_DATUM && !output->writer.typbyval)
		{
			bool looked_up = heap_joins_is_column(feed->table, vec);
			bool cached = feed->page.cached && vec->attno != 0 && !looked_up;
			bool stored = looked_up ?
				heap_joins_store_codes(feed, c, vec, at, n) :
				!cached && vec->codes && store_numbered(feed, output, vec, at, n);

			if (!stored)
				n = heap_store_references(
					feed, c, at, n, vec->all_values ? NULL : vec->state,
					cached ? heap_cached_chunk(feed->table->cached, vec->attno) : NULL,
					feed->page.first_row, feed->rows.tuple);
		}
		else if (col->type == COLUMN_DEC)
			check_decimals(feed, output, vec, at, n);
		if (vec->all_values)
			return n;
	}
	/* decimals that become numerics */
	else if (vec && vec->type == COLUMN_DEC && vec->codes && col->type == COLUMN_DATUM)
	{
		same = store_numbered(feed, output, vec, at, n);
		if (!same)
			output->dictionary = 0;
	}
	else
		for (int o = c; o >= 0; o = feed->table->outputs[o].next)
			feed->outputs[o].dictionary = 0;
	/* values are only counted, so any byte will do */
	same |= vec && vec->type == COLUMN_DEC && col->type == COLUMN_I8;
	for (int i = 0; i < n; i++)
	{
		uint8 state = vec == NULL ? VEC_FALLBACK : vec->all_values ? VEC_VALUE : vec->state[i];

		if (state == VEC_NULL)
			column_write_null(&output->writer, at + i);
		else if (state == VEC_FALLBACK && same && col->type == COLUMN_DEC && vec->attno != 0)
			column_write_unrepresentable(&output->writer, at + i,
										 (Datum) ((const gpuagg_i128 *) col->values)[at + i]);
		else if (state == VEC_FALLBACK)
			store_scalar(feed, c, i, at + i);
		else if (!same)
		{
			MemoryContext old = MemoryContextSwitchTo(feed->table->set->page_cxt);
			Datum value = expr_datum(vec, i);

			MemoryContextSwitchTo(old);
			column_write(&output->writer, at + i, value);
		}
		else
			continue;
		if (unlikely(heap_batch_is_full(feed)))
			return i + 1;
	}
	return n;
}

void
heap_store_constants(HeapFeed *feed)
{
	for (int c = 0; c < feed->batch.ncols; c++)
		if (feed->outputs[c].constant)
			column_write_constant(&feed->outputs[c].writer, feed->outputs[c].constant,
								  feed->econtext);
	feed->constants_done = true;
}

/*
 * Evaluates expressions that no output needs, but that core evaluates, as they may raise an
 * error.
 */
static void
run_checks(HeapFeed *feed, HeapTable *table)
{
	ListCell *lc;

	foreach (lc, table->checks)
	{
		ExprRoot *root = lfirst(lc);
		bool isnull;

		for (int i = 0; i < feed->rows.n; i++)
			if (root->vec == NULL ||
				(!root->vec->all_values && root->vec->state[i] == VEC_FALLBACK))
				expr_evaluate_scalar(table->set, root, i, &isnull);
	}
}

int
heap_store_outputs(HeapFeed *feed, HeapTable *table)
{
	int at = feed->batch.nrows;
	int n = feed->rows.n;

	run_checks(feed, table);
	for (int c = 0; c < feed->batch.ncols; c++)
	{
		if (table->outputs[c].memo && !table->by_memos)
			for (int o = c; o >= 0; o = table->outputs[o].next)
				feed->outputs[o].dictionary = 0;
		if (table->outputs[c].root == NULL || table->outputs[c].joined)
			continue;
		if (table->outputs[c].memo && table->by_memos)
			n = heap_memo_store(feed, table, c, at, n);
		else
			n = store_output(feed, c, at, n);
	}
	return n;
}
