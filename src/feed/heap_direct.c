/*
 * heap_direct.c
 *
 * Adds cached rows to a batch column by column, without vectors.
 *
 * This is possible where all rows of the range pass the query's conditions, and the batch's
 * columns are columns of the table. If a chunk has the column's layout, the batch's column points
 * to the chunk's array; otherwise the chunk is decoded into the column's array. By-reference
 * values are not copied, as the range is pinned; a batch that refers to a range ends before the
 * next range is read. Such values come with their codes in the chunk's dictionary.
 */
#include "postgres.h"

#include "cache/chunk.h"
#include "feed/heap.h"

/* For fewer rows, copying costs less than a batch that ends early. */
#define MIN_BORROWED_ROWS(capacity) ((capacity) / 2)

bool
heap_direct_possible(const HeapFeed *feed, const HeapTable *table)
{
	if (table->cached == NULL || table->checks != NIL || table->scan->counts_only)
		return false;
	for (int c = 0; c < feed->batch.ncols; c++)
	{
		const ExprRoot *root = table->outputs[c].root;
		const Column *col = &feed->batch.cols[c];

		if (root &&
			(root->vec == NULL || root->vec->attno == 0 || root->vec->type != col->type ||
			 root->vec->scale != col->scale))
			return false;
	}
	return true;
}

/* Sets row at + i of the batch to NULL where row from + i of the chunk is NULL, for i < n. */
static void
copy_validity(ColumnWriter *writer, int at, const uint64 *validity, uint32 from, int n)
{
	for (int i = 0; i < n; i++)
		if (!bitmap_get(validity, from + i))
			column_write_null(writer, at + i);
}

/*
 * Writes row at + i of the batch where row from + i of the chunk is NULL or unrepresentable,
 * for i < n. state: as chunk_read() has set it.
 */
static void
store_states(ColumnWriter *writer, int at, const CacheChunk *chunk, uint32 from, int n,
			 const uint8 *state)
{
	for (int i = 0; i < n; i++)
	{
		bool isnull;

		if (state[i] == VEC_NULL)
			column_write_null(writer, at + i);
		else if (state[i] == VEC_FALLBACK)
			column_write_unrepresentable(writer, at + i, chunk_datum(chunk, from + i, &isnull));
	}
}

/*
 * Points the column of an empty batch to n rows of the chunk, instead of copying their values. No
 * other rows may be added to the batch then. Returns false if the chunk's values cannot be used as
 * they are; they must be decoded. Sets the column's bounds in either case.
 */
static bool
borrow_array(HeapFeed *feed, HeapOutput *output, const CacheChunk *chunk, uint32 from, int n)
{
	Column *col = output->writer.col;
	const char *array;

	col->has_bounds = chunk->has_bounds && chunk->nexceptions == 0 && chunk->type == col->type;
	col->least = chunk->least;
	col->greatest = chunk->greatest;
	if (col->values != col->memory)
		return false;
	array = chunk_in_place(chunk, col->type, col->scale);
	if (chunk->nexceptions > 0)
		return false;
	if (array)
		output->borrowed = col->values = (void *) (array + (size_t) from * column_width(col->type));
	else if (col->takes_narrow && chunk_narrow(chunk, col->type, col->scale))
	{
		col->narrow = (const char *) chunk_narrow(chunk, col->type, col->scale) +
			(size_t) from * chunk->width;
		col->narrow_width = chunk->width;
		col->base = (int64) chunk->base;
	}
	else
		return false;
	feed->borrows = feed->borrows_arrays = true;
	if (chunk_validity(chunk))
		copy_validity(&output->writer, 0, chunk_validity(chunk), from, n);
	return true;
}

void
heap_direct_add(HeapFeed *feed, HeapTable *table, int room)
{
	HeapPage *page = &feed->page;
	int at = feed->batch.nrows;
	int n = Min(room, page->ntuples - feed->next_tuple);
	uint32 from = page->first_row + feed->next_tuple;
	bool whole = at == 0 && n >= MIN_BORROWED_ROWS(feed->batch.capacity);
	MemoryContext old = MemoryContextSwitchTo(table->set->page_cxt);

	if (feed->state == NULL)
		feed->state = MemoryContextAlloc(feed->cxt, feed->batch.capacity);
	for (int c = 0; c < feed->batch.ncols; c++)
	{
		HeapOutput *output = &feed->outputs[c];
		Column *col = output->writer.col;
		const CacheChunk *chunk;
		bool all_values;

		if (table->outputs[c].root == NULL)
			continue;
		chunk = heap_cached_chunk(table->cached, table->outputs[c].root->vec->attno);
		if (heap_cached_presence(chunk->type, col->type))
		{
			if (chunk_validity(chunk))
				copy_validity(&output->writer, at, chunk_validity(chunk), from, n);
			continue;
		}
		if (whole && borrow_array(feed, output, chunk, from, n))
			continue;
		all_values =
			chunk_read(chunk, from, n, col->type, col->scale,
					   (char *) col->values + (size_t) at * column_width(col->type), feed->state);
		if (!all_values)
			store_states(&output->writer, at, chunk, from, n, feed->state);
		if (col->type == COLUMN_DATUM && !output->writer.typbyval)
			n = heap_store_references(feed, c, at, n, all_values ? NULL : feed->state, chunk, from,
									  NULL);
	}
	/* Rows of other ranges may follow. */
	for (int c = 0; c < feed->batch.ncols && !feed->borrows_arrays; c++)
		feed->batch.cols[c].has_bounds = false;
	feed->next_tuple += n;
	feed->batch.nrows += n;
	MemoryContextSwitchTo(old);
	MemoryContextReset(table->set->page_cxt);
}
