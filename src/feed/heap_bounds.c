/*
 * heap_bounds.c
 *
 * Adds the bounds of a cached range to the batch in place of its rows.
 *
 * Where a query has no keys, and its aggregates are min(), max() and count(*), only the least and
 * greatest value of each column and the number of rows matter. If all rows of a range are read
 * from the cache, and all pass the conditions, the chunks' bounds give these values. Rows 0 and 1
 * get the bounds, and all other rows are NULL.
 */
#include "postgres.h"

#include "cache/chunk.h"
#include "feed/heap.h"
#include "feed/heap_skip.h"

bool
heap_bounds_possible(const HeapFeed *feed, const HeapTable *table)
{
	bool any = false;

	if (!feed->extremes || !table->direct)
		return false;
	for (int c = 0; c < table->noutputs; c++)
	{
		if (table->outputs[c].root == NULL)
			continue;
		if (feed->batch.cols[c].type == COLUMN_DATUM)
			return false;
		any = true;
	}
	return any;
}

/*
 * Returns whether min() and max() of the chunk's rows are the chunk's bounds. A zero bound of
 * floats may have either sign, so it does not qualify.
 */
static bool
has_extremes(const CacheChunk *chunk, const Column *col)
{
	if (chunk->nnulls == chunk->nrows)
		return true;
	if (!chunk->has_bounds || chunk->nexceptions > 0 || chunk->type != col->type ||
		chunk->scale != col->scale)
		return false;
	return (col->type != COLUMN_F32 && col->type != COLUMN_F64) ||
		(chunk->least.number != 0 && chunk->greatest.number != 0);
}

bool
heap_bounds_serve(const HeapFeed *feed, const HeapTable *table)
{
	if (!heap_cached_whole(table->cached))
		return false;
	for (int c = 0; c < table->noutputs; c++)
		if (table->outputs[c].root &&
			!has_extremes(heap_cached_chunk(table->cached, table->outputs[c].root->vec->attno),
						  &feed->batch.cols[c]))
			return false;
	return true;
}

/* Makes n rows NULL, from row `at` of the batch on. */
static void
write_nulls(ColumnWriter *writer, int at, int n)
{
	int end = at + n;

	for (; at < end && at % 64 != 0; at++)
		column_write_null(writer, at);
	for (; at + 64 <= end; at += 64)
	{
		column_write_null(writer, at);
		writer->col->validity[at / 64] = 0;
	}
	for (; at < end; at++)
		column_write_null(writer, at);
}

void
heap_bounds_add(HeapFeed *feed, HeapTable *table, int room)
{
	HeapPage *page = &feed->page;
	int at = feed->batch.nrows;
	uint32 from = page->first_row + feed->next_tuple; /* row of the range */
	int n = Min(room, page->ntuples - feed->next_tuple);
	MemoryContext old = MemoryContextSwitchTo(table->set->page_cxt);

	for (int c = 0; c < table->noutputs; c++)
	{
		ColumnWriter *writer = &feed->outputs[c].writer;
		const CacheChunk *chunk;
		int i = 0;

		if (table->outputs[c].root == NULL)
			continue;
		chunk = heap_cached_chunk(table->cached, table->outputs[c].root->vec->attno);
		/* Row 0 of the range is the least value, row 1 the greatest. */
		for (; chunk->has_bounds && i < n && from + i < 2; i++)
			column_write(writer, at + i, heap_skip_bound(chunk, from + i > 0));
		write_nulls(writer, at + i, n - i);
	}
	feed->next_tuple += n;
	feed->batch.nrows += n;
	MemoryContextSwitchTo(old);
	MemoryContextReset(table->set->page_cxt);
}
