/*
 * heap_output.c
 *	  Writes the output columns of some rows of a page into the batch.
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "columns/decimal.h"
#include "feed/heap.h"

/* Core's answer for a row, for output c and those that follow. */
static void
store_scalar(HeapFeed *feed, int c, int i, int row)
{
	const HeapRoot *roots = feed->table->outputs;
	bool		isnull;
	Datum		value = expr_evaluate_scalar(feed->table->set, roots[c].root, i, &isnull);

	for (; c >= 0; c = roots[c].next)
	{
		if (isnull)
			column_write_null(&feed->outputs[c].writer, row);
		else
			column_write(&feed->outputs[c].writer, row, value);
	}
}

/*
 * By-reference values get copies that live as long as the batch; returns how
 * many rows were done when it was full.
 */
static int
copy_references(HeapFeed *feed, const HeapOutput *output, const Vec *vec, int at, int n)
{
	Datum	   *values = (Datum *) output->writer.col->values + at;
	const uint8 *state = vec->all_values ? NULL : vec->state;
	int16		typlen = output->writer.typlen;

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

/* Decimals beyond the engine's range are odd. */
static void
check_decimals(HeapFeed *feed, HeapOutput *output, const Vec *vec, int at, int n)
{
	static const gpuagg_i128 limit = (gpuagg_i128) 100000000000000 * 100000000000000;
	const gpuagg_i128 *values = (gpuagg_i128 *) output->writer.col->values + at;

	if (vec->attno != 0)
		return;					/* decoding has checked them */
	for (int i = 0; i < n; i++)
		if ((values[i] >= limit || values[i] <= -limit) &&
			(vec->all_values || vec->state[i] == VEC_VALUE))
		{
			MemoryContext old = MemoryContextSwitchTo(feed->table->set->page_cxt);
			Datum		value = decimal_to_numeric(values[i], vec->scale);

			MemoryContextSwitchTo(old);
			column_write_unrepresentable(&output->writer, at + i, value);
		}
}

/*
 * Stores output c of the first n rows; returns how many rows were done when
 * the batch was full.
 */
static int
store_output(HeapFeed *feed, int c, int at, int n)
{
	HeapOutput *output = &feed->outputs[c];
	const HeapRoot *hroot = &feed->table->outputs[c];
	Column	   *col = output->writer.col;
	Vec		   *vec = hroot->root->vec;
	int			width = column_width(col->type);
	bool		same = vec && vec->type == col->type && vec->scale == col->scale;

	if (same)
	{
		if (!hroot->in_place)
			memcpy((char *) col->values + (size_t) at * width, vec->values, (size_t) n * width);
		if (col->type == COLUMN_DATUM && !output->writer.typbyval)
			n = copy_references(feed, output, vec, at, n);
		else if (col->type == COLUMN_DEC)
			check_decimals(feed, output, vec, at, n);
		if (vec->all_values)
			return n;
	}
	for (int i = 0; i < n; i++)
	{
		uint8		state = vec == NULL ? VEC_FALLBACK : vec->all_values ? VEC_VALUE : vec->state[i];

		if (state == VEC_NULL)
			column_write_null(&output->writer, at + i);
		else if (state == VEC_FALLBACK)
			store_scalar(feed, c, i, at + i);
		else if (!same)
		{
			MemoryContext old = MemoryContextSwitchTo(feed->table->set->page_cxt);
			Datum		value = expr_datum(vec, i);

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

/* Fills the columns of constants, for all batches to come. */
void
heap_store_constants(HeapFeed *feed)
{
	for (int c = 0; c < feed->batch.ncols; c++)
		if (feed->outputs[c].constant)
			column_write_constant(&feed->outputs[c].writer, feed->outputs[c].constant,
								  feed->econtext);
	feed->constants_done = true;
}

/* Raises the errors of what core evaluates although no output needs it. */
static void
run_checks(HeapFeed *feed, HeapTable *table)
{
	ListCell   *lc;

	foreach(lc, table->checks)
	{
		ExprRoot   *root = lfirst(lc);
		bool		isnull;

		for (int i = 0; i < feed->rows.n; i++)
			if (root->vec == NULL || (!root->vec->all_values && root->vec->state[i] == VEC_FALLBACK))
				expr_evaluate_scalar(table->set, root, i, &isnull);
	}
}

/* Computes and stores the outputs of the rows that are left; returns how many the batch has taken. */
int
heap_store_outputs(HeapFeed *feed, HeapTable *table)
{
	int			at = feed->batch.nrows;
	int			n = feed->rows.n;

	run_checks(feed, table);
	for (int c = 0; c < feed->batch.ncols; c++)
		if (table->outputs[c].root && !table->outputs[c].follows)
			n = store_output(feed, c, at, n);
	return n;
}
