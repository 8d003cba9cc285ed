/*
 * heap_rows.c
 *	  Runs quals and outputs for the rows of a page, and adds the rows that pass to the batch.
 *
 * The page's tuples, or cached rows in their place, are taken some at a time (rows_per_step).  For
 * each stage of the table's ExprSet the columns are decoded that the stage reads; then the stage
 * runs.  A qual's stage drops the rows that fail it, so that later stages decode fewer rows.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "utils/memutils.h"

#include "feed/heap.h"

/* Returns whether row i passes a qual, which has been evaluated but for the scalar fallback. */
static inline bool
row_passes(HeapTable *table, int q, int i)
{
	const Vec *vec = table->quals[q]->vec;
	uint8 state = !vec ? VEC_FALLBACK : vec->all_values ? VEC_VALUE : vec->state[i];
	bool isnull = false;

	if (state == VEC_VALUE)
		return ((const int8 *) vec->values)[i] != 0;
	return state == VEC_FALLBACK &&
		DatumGetBool(expr_evaluate_scalar(table->set, table->quals[q], i, &isnull)) && !isnull;
}

/* Returns whether the values of 8 rows are all false. */
static inline bool
none_of_eight(const int8 *values)
{
	uint64 word;

	memcpy(&word, values, sizeof(word));
	return word == 0;
}

/*
 * Sets sel to the indexes of the rows, of n, for which a is true, and b unless it is NULL.  Returns
 * their number.  Most conditions select few rows, or rows that lie together, so 8 rows of which
 * none passes are passed over at once; the others are selected without branches.
 */
static pg_attribute_always_inline int
select_true(const int8 *a, const int8 *b, unsigned n, uint16 *sel)
{
	unsigned selected = 0;
	unsigned i = 0;

	for (; i + 8 <= n; i += 8)
	{
		if (none_of_eight(a + i) || (b && none_of_eight(b + i)))
			continue;
		for (unsigned k = i; k < i + 8; k++)
		{
			sel[selected] = k;
			selected += (a[k] != 0) & (!b || b[k] != 0);
		}
	}
	for (; i < n; i++)
	{
		sel[selected] = i;
		selected += (a[i] != 0) & (!b || b[i] != 0);
	}
	return selected;
}

int
heap_select_rows(HeapFeed *feed, HeapTable *table, int q, uint16 *sel)
{
	HeapRows *rows = &feed->rows;
	Vec *vec = table->quals[q]->vec;
	int n = 0;

	sel[0] = 0; /* for the compiler, which cannot see that there are rows */
	if (vec && vec->all_values)
		return select_true(vec->values, NULL, rows->n, sel);
	for (int i = 0; i < rows->n; i++)
	{
		sel[n] = i;
		n += row_passes(table, q, i);
	}
	return n;
}

/*
 * Selects among the rows with the indexes sel[0 .. n - 1] those that pass another qual, which has
 * been evaluated.  Returns their number.
 */
static int
select_further(HeapTable *table, int q, uint16 *sel, int n)
{
	int m = 0;

	for (int k = 0; k < n; k++)
	{
		int i = sel[k];

		sel[m] = i;
		m += row_passes(table, q, i);
	}
	return m;
}

/*
 * Sets sel to the indexes of the rows that pass a qual and those that are evaluated together with
 * it, and returns their number.
 */
static int
select_together(HeapFeed *feed, HeapTable *table, int q, uint16 *sel)
{
	const Vec *first = table->quals[q]->vec;
	const Vec *second = table->together[q + 1] ? table->quals[q + 1]->vec : NULL;
	int n;

	if (first && second && first->all_values && second->all_values)
		n = select_true(first->values, second->values, feed->rows.n, sel), q += 2;
	else
		n = heap_select_rows(feed, table, q, sel), q += 1;
	for (; table->together[q]; q++)
		n = select_further(table, q, sel, n);
	return n;
}

/*
 * Evaluates a qual, whose columns are filled, and those together with it, or probes a lookup, and
 * drops the rows that fail.
 */
static void
apply_qual(HeapFeed *feed, HeapTable *table, int q)
{
	HeapRows *rows = &feed->rows;
	uint16 sel[EXPR_ROWS];
	int n = -1;

	if (feed->page.cached && table->memos[q])
		n = heap_memo_select(table->memos[q], feed, table, q, sel);
	if (n < 0)
	{
		expr_run(table->set, q, rows->n);
		n = table->quals[q] ? select_together(feed, table, q, sel) :
							  heap_joins_probe(feed, table, q, sel);
		if (heap_joins_stage_settles(feed, table, q))
			n = heap_joins_settle_stage(feed, table, q, sel, n);
	}
	if (n < rows->n)
	{
		heap_rows_keep(table->decoder, rows, feed->page.cached, sel, n);
		if (table->joins)
			heap_joins_keep(feed, sel, n);
		if (n > 0)
			expr_compact(table->set, q, sel, n);
	}
	if (table->quals[q] != NULL || n == 0)
		return;
	n = heap_joins_expand_stage(feed, table, q, sel);
	if (n >= 0)
	{
		heap_rows_expand(table->decoder, rows, sel, n);
		expr_expand(table->set, q, sel, n);
	}
}

void
heap_point_outputs(HeapFeed *feed, HeapTable *table)
{
	for (int c = 0; c < feed->batch.ncols; c++)
	{
		Column *col = &feed->batch.cols[c];

		if (table->outputs[c].in_place)
			table->outputs[c].root->vec->values =
				(char *) col->values + (size_t) feed->batch.nrows * column_width(col->type);
	}
}

/* Returns whether all rows of the page pass a qual, and those together with it, unevaluated. */
static bool
qual_is_implied(const HeapFeed *feed, const HeapTable *table, int q)
{
	bool implied;

	if (!feed->page.cached)
		return table->indexed[q] && !feed->page.recheck;
	implied = table->closed[q];
	do
		implied = implied && table->cached->implied[q];
	while (table->together[++q]);
	return implied;
}

/*
 * Runs all stages for feed->rows, which shrink to those that pass the quals, and grow by joins.
 * room: rows for which the batch has room.  Returns how many rows failed conditions of the index.
 */
static int
run_stages(HeapFeed *feed, HeapTable *table, int room)
{
	HeapRows *rows = &feed->rows;
	HeapPage *page = &feed->page;
	int rechecked = 0;

	table->decoder->reached = 0;
	table->nscanned = 0;
	if (table->joins)
		heap_joins_begin_step(feed, room);
	table->by_memos = page->cached && table->has_memos && heap_memo_prepare(table);
	for (int s = 0; s < table->nstages - table->by_memos && rows->n > 0; s++)
	{
		bool is_qual = s < table->nquals;
		bool implied = is_qual && qual_is_implied(feed, table, s);

		if (is_qual && table->together[s])
			continue;
		if (s == table->nscan_quals)
			table->nscanned = rows->n;
		if (s == table->nquals)
			heap_point_outputs(feed, table);
		if (table->joins)
			heap_joins_fill(feed, table, s);
		if (page->cached)
			heap_cached_fill(table->cached, &table->columns[s], page, rows, implied ? s : -1,
							 is_qual && !implied, table->set->page_cxt);
		else
			heap_columns_fill(table->decoder, &table->columns[s], table->scan, page, rows);
		if (implied)
			continue;
		if (is_qual)
		{
			int before = rows->n;

			apply_qual(feed, table, s);
			if (table->joins)
				heap_joins_count_rows(feed, table, s, before - rows->n);
			if (table->rechecks[s])
				rechecked += before - rows->n;
			heap_cached_unborrow(&table->columns[s]);
		}
		else
			expr_run(table->set, s, rows->n);
	}
	return rechecked;
}

int
heap_add_step(HeapFeed *feed, HeapTable *table, int n, int *added)
{
	const HeapRows *rows = &feed->rows;

	*added = rows->n > 0 ? heap_store_outputs(feed, table) : 0;
	if (*added < rows->n)
	{
		/* Long values have filled the batch: take fewer rows from now on. */
		if (table->joins)
			heap_joins_cut_after(feed, *added - 1);
		else
			n = rows->tuple[*added - 1] + 1 - feed->next_tuple;
		feed->rows_per_step = Max(rows->tuple[*added - 1] + 1 - feed->next_tuple, *added);
	}
	else if (!heap_batch_is_full(feed))
		feed->rows_per_step = Min(feed->rows_per_step * 2, EXPR_ROWS);
	if (table->joins)
	{
		n = heap_joins_cut_tuples(feed, n);
		heap_joins_end_step(feed, n);
	}
	feed->next_tuple += n;
	feed->batch.nrows += *added;
	return n;
}

/* Makes n tuples of the page, from the first one that is not in a batch yet, the rows at hand. */
static void
take_tuples(HeapFeed *feed, int n)
{
	HeapRows *rows = &feed->rows;

	rows->n = n;
	rows->repeated = false;
	for (int i = 0; i < n; i++)
		rows->tuple[i] = feed->next_tuple + i;
	if (!feed->page.cached)
		memcpy(rows->data, feed->page.data + feed->next_tuple, n * sizeof(uint16));
}

/*
 * Runs a step of n tuples again if it was cut and someone counts its rows, for those tuples that it
 * completes, or for the first one.  Returns the number of tuples.
 */
static int
recount(HeapFeed *feed, HeapTable *table, int n, int room, int *rechecked)
{
	int complete = heap_joins_cut_tuples(feed, n);

	if (feed->child->instrument == NULL || complete >= n || n == 1)
		return n;
	n = Max(complete, 1);
	MemoryContextReset(table->set->page_cxt);
	take_tuples(feed, n);
	*rechecked = run_stages(feed, table, room);
	return n;
}

void
heap_add_rows(HeapFeed *feed, HeapTable *table, int room)
{
	HeapPage *page = &feed->page;
	int first = feed->next_tuple;
	int n = Min(Min(room, feed->rows_per_step), page->ntuples - first);
	int added;
	int rechecked;

	if (table->scan->counts_only)
	{
		n = Min(room, page->ntuples - first);
		feed->next_tuple += n;
		feed->batch.nrows += n;
		return;
	}
	if (page->cached && table->direct && (table->nquals == 0 || table->cached->all_implied))
	{
		if (table->bounded && heap_bounds_serve(feed, table))
			heap_bounds_add(feed, table, room);
		else
			heap_direct_add(feed, table, room);
		return;
	}
	if (table->joins)
		n = Min(n, heap_joins_step_tuples(feed, room));
	take_tuples(feed, n);
	rechecked = run_stages(feed, table, room);
	if (table->joins)
		n = recount(feed, table, n, room, &rechecked);
	n = heap_add_step(feed, table, n, &added);
	/* Rows that stay at hand are counted again later, so some counts here are too high. */
	if (table->joins)
	{
		/* below an Append, the caller counts the rows of the scan */
		table->nscanned = added = heap_joins_count_step(feed, table, n);
		heap_joins_count(feed->append ? &feed->append->ps : &table->scan->node->ps,
						 table->nscanned);
	}
	rechecked = Min(rechecked, n - added);
	InstrCountFiltered1(table->scan->node, n - added - rechecked);
	InstrCountFiltered2(table->scan->node, rechecked);
	MemoryContextReset(table->set->page_cxt);
}
