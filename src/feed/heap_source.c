/*
 * heap_source.c
 *	  The sources of a subplan's rows: heap pages, the column cache, groups, the executor.
 *
 * Rows of pages, of the cache and groups are at hand as HeapFeed.page.  Rows of the executor are
 * never at hand: each is fetched when there is room for it.
 */
#include "postgres.h"

#include "access/parallel.h"
#include "executor/executor.h"
#include "utils/rel.h"

#include "common/compat.h"
#include "common/progress.h"
#include "feed/heap.h"

/* Returns the table that a scan node scans; InvalidOid for other nodes. */
static Oid
scanned_table(PlanState *node)
{
	switch (nodeTag(node))
	{
		case T_SeqScanState:
		case T_SampleScanState:
		case T_IndexScanState:
		case T_IndexOnlyScanState:
		case T_BitmapHeapScanState:
		case T_TidScanState:
		case T_TidRangeScanState:
			return RelationGetRelid(((ScanState *) node)->ss_currentRelation);
		default:
			return InvalidOid;
	}
}

/*
 * Makes the executor the source of the subplan's rows: of all of them, or of the rest of an
 * index scan.
 */
static void
begin_executor(HeapTable *table)
{
	table->source = HEAP_EXECUTOR;
	table->executor_ended = false;
}

void
heap_source_begin(HeapFeed *feed, HeapTable *table)
{
	HeapScan *scan = table->scan;
	HeapCached *cached = table->cached;
	BlockNumber nblocks;

	if (scan == NULL)
	{
		begin_executor(table);
		if (table->groups)
			table->source = HEAP_GROUPS;
		progress_table(scanned_table(table->node), 0);
		return;
	}
	nblocks = heap_scan_begin(scan);
	expr_note_changed_subplans(feed->base.subplans);
	progress_table(RelationGetRelid(scan->rel), heap_scan_counts_blocks(scan) ? nblocks : 0);
	heap_scan_restart(scan);
	table->source = HEAP_PAGES;
	if (cached)
	{
		cached->shared_out = feed->append && feed->append->as_pstate;
		if (heap_cached_begin(cached, feed->phase == HEAP_READ_REST))
			table->source = HEAP_CACHE;
	}
	/* EXPLAIN shows the node as executed even if all of its rows are skipped. */
	if (feed->append && table->node->instrument)
	{
		InstrStartNode(table->node->instrument);
		InstrStopNode(table->node->instrument, 0);
	}
}

bool
heap_source_has_rows(const HeapFeed *feed)
{
	const HeapTable *table = feed->table;

	if (table && table->source == HEAP_EXECUTOR)
		return !table->executor_ended;
	return feed->next_tuple < feed->page.ntuples;
}

bool
heap_source_next(HeapFeed *feed)
{
	HeapTable *table = feed->table;

	switch (table->source)
	{
		case HEAP_CACHE:
			return heap_cached_next(table->cached, &feed->page);
		case HEAP_PAGES:
			if (heap_scan_next_page(table->scan, &feed->page))
				return true;
			if (!heap_scan_ended_early(table->scan))
				return false;
			begin_executor(table);
			return true;
		case HEAP_GROUPS:
			return heap_groups_next(feed, table);
		case HEAP_EXECUTOR:
			break;
	}
	return false;
}

/* Stores a row of the executor as row `row` of the batch. */
static inline void
store_slot(HeapFeed *feed, const TupleTableSlot *slot, int row)
{
	for (HeapCopy *copy = feed->copies; copy < feed->copies + feed->ncopies; copy++)
	{
		if (unlikely(slot->tts_isnull[copy->att]))
			column_write_null(copy->writer, row);
		else
			column_write(copy->writer, row, slot->tts_values[copy->att]);
	}
}

/* Adds rows of the executor to the batch, until it is full or the node has no more. */
static void
add_executed(HeapFeed *feed, HeapTable *table)
{
	Batch *batch = &feed->batch;
	/* Without an Append the feed counts the rows of its child itself, see fill_batch(). */
	bool counted = feed->append == NULL && !feed->executes_child;

	/* Rows of the executor have no codes, and may be beyond the bounds of cached rows. */
	for (int c = 0; c < batch->ncols; c++)
		if (feed->outputs[c].constant == NULL)
		{
			feed->outputs[c].dictionary = 0;
			batch->cols[c].has_bounds = false;
		}
	while (batch->nrows < batch->capacity && !heap_batch_is_full(feed))
	{
		TupleTableSlot *slot =
			counted ? table->node->ExecProcNodeReal(table->node) : ExecProcNode(table->node);

		if (TupIsNull(slot))
		{
			table->executor_ended = true;
			return;
		}
		if (feed->natts > 0)
		{
			slot_getsomeattrs(slot, feed->natts);
			store_slot(feed, slot, batch->nrows);
		}
		batch->nrows++;
	}
}

/*
 * Adds rows of the page to the batch. Below an Append it also counts them for the subplan's
 * node.
 */
static void
add_page(HeapFeed *feed, HeapTable *table)
{
	Batch *batch = &feed->batch;
	CompatInstrumentation *instrument = feed->append ? table->node->instrument : NULL;
	int before = batch->nrows;

	if (instrument)
		InstrStartNode(instrument);
	if (table->groups)
		heap_groups_add(feed, table, batch->capacity - before);
	else
		heap_add_rows(feed, table, batch->capacity - before);
	if (instrument)
		InstrStopNode(instrument, table->joins ? table->nscanned : batch->nrows - before);
}

void
heap_source_add(HeapFeed *feed)
{
	if (feed->table->source == HEAP_EXECUTOR)
		add_executed(feed, feed->table);
	else
		add_page(feed, feed->table);
}

void
heap_source_leave_rows(HeapFeed *feed)
{
	heap_page_release(&feed->page);
	/* core's slot may have a pin of its own */
	if (feed->table && feed->table->scan)
		ExecClearTuple(feed->table->scan->node->ss_ScanTupleSlot);
	feed->next_tuple = 0;
}

void
heap_source_end(HeapFeed *feed)
{
	HeapTable *table = feed->table;

	heap_source_leave_rows(feed);
	if (table && table->source == HEAP_CACHE)
		heap_cached_stop(table->cached);
	if (table && table->scan)
		heap_scan_stop(table->scan);
}

const char *
heap_source_unoffered_reason(const HeapFeed *feed)
{
	switch (feed->table->source)
	{
		case HEAP_GROUPS:
			return "the rows are groups of another scan";
		case HEAP_EXECUTOR:
			return "the rows come from a subplan that is executed";
		case HEAP_PAGES:
			return "the column cache has no columns of the table";
		case HEAP_CACHE:
			break;
	}
	if (feed->table->scan->scan->rs_base.rs_parallel || IsParallelWorker() ||
		(feed->append && feed->append->as_pstate))
		return "parallel scans cannot use rows that are cached on the GPU";
	return NULL;
}
