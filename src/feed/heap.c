/*
 * heap.c
 *	  The feed that reads heap pages itself, instead of the executor.
 *
 * Used where the child plan is a sequential, bitmap or index scan of a heap table, or an Append
 * of such scans, perhaps with a projection on top; without one, an Append's other subplans are
 * executed, and of index scans what is scattered over many pages.  The plan nodes below stay what
 * the planner made them: they open the tables, hold the quals, target lists and scan descriptors,
 * share blocks among parallel participants and prune partitions; but ExecProcNode is not called for
 * them. Quals and target lists run as vector expressions (expr.h), a page at a time: the columns
 * that a qual reads are decoded, the qual is computed, rows that fail it are dropped, then the next
 * qual, and so on; last the output columns, which are computed in place in the batch where they can
 * be.
 *
 * Memory: the feed lives in the context it was opened in; by-reference values
 * of a batch in its arena, whose bytes end a batch; values of one page in the
 * expression set's page_cxt.
 * After an error the resource owner releases the pins.
 */
#include "postgres.h"

#include "access/parallel.h"
#include "executor/executor.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/ruleutils.h"
#include "utils/snapmgr.h"

#include "common/progress.h"
#include "feed/heap.h"

/*
 * The compiled expressions of so many tables are kept for rescans; those of others only while they
 * are read.
 */
#define KEPT_TABLES 64

/* ---- rows ------------------------------------------------------------------- */

/* The rows that pass a qual whose stage has run: sets sel, returns how many. */
static int
select_rows(HeapFeed *feed, HeapTable *table, int q, uint16 *sel)
{
	HeapRows *rows = &feed->rows;
	Vec *vec = table->quals[q]->vec;
	int n = 0;

	sel[0] = 0; /* for the compiler, which does not know that there are rows */
	if (vec && vec->all_values)
	{
		const int8 *values = vec->values;

		for (int i = 0; i < rows->n; i++)
		{
			sel[n] = i;
			n += values[i] != 0;
		}
	}
	else
	{
		for (int i = 0; i < rows->n; i++)
		{
			uint8 state = vec ? vec->state[i] : VEC_FALLBACK;
			bool isnull = false;

			sel[n] = i;
			if (state == VEC_VALUE)
				n += ((int8 *) vec->values)[i] != 0;
			else if (state == VEC_FALLBACK)
				n += DatumGetBool(expr_evaluate_scalar(table->set, table->quals[q], i, &isnull)) &&
					!isnull;
		}
	}
	return n;
}

/* Evaluates a qual, whose columns are filled, and drops the rows that fail it. */
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
		n = select_rows(feed, table, q, sel);
	}
	if (n == rows->n)
		return;
	heap_rows_keep(table->decoder, rows, sel, n);
	if (n > 0)
		expr_compact(table->set, q, sel, n);
}

/*
 * Adds up to `room` more tuples of the page to the batch.  Where long values fill
 * the batch before that, the tuples after the last one added are left for the
 * next batch, and fewer are taken at a time from then on.
 */
static void
add_rows(HeapFeed *feed, HeapTable *table, int room)
{
	HeapRows *rows = &feed->rows;
	HeapPage *page = &feed->page;
	int first = feed->next_tuple;
	int n = Min(Min(room, feed->slice), page->ntuples - first);
	int added = 0;
	int rechecked = 0; /* rows that failed conditions of indexes */
	bool implied;

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
	rows->n = n;
	for (int i = 0; i < n; i++)
		rows->tuple[i] = first + i;
	if (!page->cached)
		memcpy(rows->data, page->data + first, n * sizeof(uint16));
	table->decoder->reached = 0;
	table->by_memos = page->cached && table->has_memos && heap_memo_prepare(table);
	for (int s = 0; s < table->nstages - table->by_memos && rows->n > 0; s++)
	{
		if (s == table->nquals)
			for (int c = 0; c < feed->batch.ncols; c++)
				if (table->outputs[c].in_place)
					table->outputs[c].root->vec->values = (char *) feed->batch.cols[c].values +
						(size_t) feed->batch.nrows * column_width(feed->batch.cols[c].type);
		implied = s < table->nquals &&
			(page->cached ? table->cached->implied[s] && table->closed[s] :
							table->indexed[s] && !page->recheck);
		if (page->cached)
			heap_cached_fill(table->cached, &table->columns[s], page, rows, implied ? s : -1,
							 s < table->nquals && !implied, table->set->page_cxt);
		else
			heap_columns_fill(table->decoder, &table->columns[s], table->scan, page, rows);
		if (implied)
			continue;
		if (s < table->nquals)
		{
			int before = rows->n;

			apply_qual(feed, table, s);
			if (table->rechecks[s])
				rechecked += before - rows->n;
			heap_cached_return(&table->columns[s]);
		}
		else
			expr_run(table->set, s, rows->n);
	}
	if (rows->n > 0)
		added = heap_store_outputs(feed, table);
	if (added < rows->n)
	{
		n = rows->tuple[added - 1] + 1 - first;
		feed->slice = n;
	}
	else if (!heap_batch_is_full(feed))
		feed->slice = Min(feed->slice * 2, EXPR_ROWS);
	feed->next_tuple += n;
	feed->batch.nrows += added;
	/* of rows that are left for the next batch some may have been counted */
	rechecked = Min(rechecked, n - added);
	InstrCountFiltered1(table->scan->node, n - added - rechecked);
	InstrCountFiltered2(table->scan->node, rechecked);
	MemoryContextReset(table->set->page_cxt);
}

/* add_rows, counted for the table's plan node as well where that is below an Append. */
static void
add_page(HeapFeed *feed)
{
	Batch *batch = &feed->batch;
	Instrumentation *instrument = feed->append ? feed->table->scan->node->ps.instrument : NULL;
	int before = batch->nrows;

	if (instrument)
		InstrStartNode(instrument);
	add_rows(feed, feed->table, batch->capacity - before);
	if (instrument)
		InstrStopNode(instrument, batch->nrows - before);
}

/* Releases the page, also the pin that core's slot may have on it. */
static void
leave_page(HeapFeed *feed)
{
	heap_page_release(&feed->page);
	if (feed->table && feed->table->scan)
		ExecClearTuple(feed->table->scan->node->ss_ScanTupleSlot);
	feed->next_tuple = 0;
}

/* Releases the pages of the table that is being read: the scan will not go on. */
static void
leave_table(HeapFeed *feed)
{
	leave_page(feed);
	if (feed->table && feed->table->by_cache)
		heap_cached_stop(feed->table->cached);
	if (feed->table && feed->table->scan)
		heap_scan_stop(feed->table->scan);
}

/*
 * No table is current any more; frees the last one's compiled expressions unless they are kept for
 * rescans.
 */
static void
unset_table(HeapFeed *feed)
{
	HeapTable *table = feed->table;

	feed->table = NULL;
	if (table && table->cached)
		heap_memo_forget(table);
	if (table && table->cxt && !table->partly)
	{
		feed->tables[table->which] = NULL;
		MemoryContextDelete(table->cxt);
	}
}

/* Compiles the table of a subplan of the Append, or of the child; executes it if it has to be. */
static HeapTable *
open_table(HeapFeed *feed, PlanState *node, int which)
{
	bool keep = feed->nkept < KEPT_TABLES;
	MemoryContext cxt =
		keep ? feed->cxt : AllocSetContextCreate(feed->cxt, "gpuagg table", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(cxt);
	HeapTable *table;

	if (feed->append && heap_subplan_unsupported_reason(node, feed->volatile_query))
	{
		table = palloc0(sizeof(HeapTable));
		table->tuples = node;
	}
	else
		table = heap_table_create(feed, (ScanState *) node);
	table->which = which;
	table->cxt = keep ? NULL : cxt;
	feed->nkept += keep;
	MemoryContextSwitchTo(old);
	return table;
}

/* Begins to read the next table; false when there are no more. */
static bool
next_table(HeapFeed *feed)
{
	AppendState *append = feed->append;
	PlanState *node = feed->child;
	BlockNumber nblocks;
	int which = 0;

	if (append == NULL && feed->begun)
		return false;
	if (append)
	{
		if (append->ps.chgParam != NULL)
			ExecReScan(&append->ps);
		do
		{
			if (append->as_nplans == 0 || !append->choose_next_subplan(append))
				return false;
			append->as_begun = true;
			which = append->as_whichplan;
		} while (bms_is_member(which, feed->complete));
		node = append->appendplans[which];
		if (node->chgParam != NULL)
			ExecReScan(node);
	}
	feed->begun = true;
	leave_table(feed);
	unset_table(feed);
	if (feed->tables[which] == NULL)
		feed->tables[which] = open_table(feed, node, which);
	feed->table = feed->tables[which];
	if (feed->table->tuples)
	{
		feed->table->ended = false;
		progress_table(InvalidOid, 0);
		return true;
	}
	nblocks = heap_scan_begin(feed->table->scan);
	progress_table(RelationGetRelid(feed->table->scan->rel),
				   heap_scan_counts_blocks(feed->table->scan) ? nblocks : 0);
	heap_scan_restart(feed->table->scan);
	if (feed->table->cached)
		feed->table->cached->shared_out = append && append->as_pstate;
	feed->table->by_cache =
		feed->table->cached && heap_cached_begin(feed->table->cached, feed->second);
	/* the node has run, even if all of its rows are skipped */
	if (append && node->instrument)
	{
		InstrStartNode(node->instrument);
		InstrStopNode(node->instrument, 0);
	}
	return true;
}

/* false: there is none; but there may be tuples, as the node goes on. */
static bool
next_page(HeapFeed *feed)
{
	HeapTable *table = feed->table;

	if (table->by_cache)
		return heap_cached_next(table->cached, &feed->page);
	if (heap_scan_next_page(table->scan, &feed->page))
		return true;
	if (heap_scan_ended_early(table->scan))
	{
		table->tuples = &table->scan->node->ps;
		table->ended = false;
	}
	return false;
}

/*
 * Does the batch end here, as columns cannot grow, or what they refer to goes with the next page?
 */
static bool
batch_ends(const HeapFeed *feed)
{
	return feed->borrows_arrays ||
		(feed->borrows && feed->next_tuple >= feed->page.ntuples &&
		 heap_cached_leaves_range(feed->table->cached));
}

/* Starts a batch. */
static void
begin_batch(HeapFeed *feed)
{
	Batch *batch = &feed->batch;

	arena_reset(&feed->arena);
	batch->nrows = 0;
	feed->borrows = feed->borrows_arrays = false;
	for (int c = 0; c < batch->ncols; c++)
	{
		HeapOutput *output = &feed->outputs[c];
		Column *col = &batch->cols[c];

		if (output->constant)
			continue;
		column_begin(&output->writer);
		col->codes = NULL;
		col->has_bounds = false;
		col->narrow = NULL;
		col->base = 0;
		/* unless the engine has pointed it elsewhere since */
		if (output->borrowed && col->values == output->borrowed)
			col->values = col->memory;
		output->borrowed = NULL;
	}
}

/* Says where the values of a batch are in the feed's dictionaries. */
static void
end_batch(HeapFeed *feed)
{
	for (int c = 0; c < feed->batch.ncols; c++)
	{
		HeapOutput *output = &feed->outputs[c];
		Column *col = &feed->batch.cols[c];

		if (output->constant || output->dictionary == 0)
			continue;
		col->codes = output->codes;
		col->ncodes = output->ncodes;
		col->dictionary = output->dictionary;
		output->dictionary = 0;
	}
}

/* Adds rows of a subplan that is executed to the batch. */
static void
add_tuples(HeapFeed *feed, HeapTable *table)
{
	Batch *batch = &feed->batch;
	int natts = 0;

	for (int c = 0; c < batch->ncols; c++)
		if (feed->outputs[c].constant == NULL)
		{
			natts = Max(natts, feed->outputs[c].resno);
			/* these rows have no codes and widen bounds */
			feed->outputs[c].dictionary = 0;
			batch->cols[c].has_bounds = false;
		}
	while (batch->nrows < batch->capacity && !heap_batch_is_full(feed))
	{
		/* the feed's child is counted by the feed */
		TupleTableSlot *slot = feed->append ? ExecProcNode(table->tuples) :
											  table->tuples->ExecProcNodeReal(table->tuples);

		table->ended = TupIsNull(slot);
		if (table->ended)
			return;
		slot_getsomeattrs(slot, natts);
		for (int c = 0; c < batch->ncols; c++)
		{
			HeapOutput *output = &feed->outputs[c];

			if (output->constant)
				continue;
			if (slot->tts_isnull[output->resno - 1])
				column_write_null(&output->writer, batch->nrows);
			else
				column_write(&output->writer, batch->nrows, slot->tts_values[output->resno - 1]);
		}
		batch->nrows++;
	}
}

/* Is a subplan with more rows being executed? */
static bool
has_tuples(const HeapFeed *feed)
{
	return feed->table && feed->table->tuples && !feed->table->ended;
}

/*
 * Goes on to the next page unless this one has tuples left or the batch ends; false at the end of
 * all tables.
 */
static bool
next_tuples(HeapFeed *feed)
{
	while (feed->next_tuple >= feed->page.ntuples && !has_tuples(feed) && !batch_ends(feed))
	{
		if (feed->table)
			leave_page(feed);
		if (feed->table == NULL || feed->table->tuples || (!next_page(feed) && !has_tuples(feed)))
		{
			if (!next_table(feed))
				return false;
		}
	}
	return true;
}

/* ---- rows that an engine takes by name ------------------------------------------ */

/* Has the constant a value without any evaluation? */
static bool
is_given(const Expr *expr)
{
	return IsA(expr, Const) ||
		(IsA(expr, Param) && ((const Param *) expr)->paramkind == PARAM_EXTERN);
}

/* Why no rows of the table at hand can be named; or NULL. */
static const char *
table_unsupported_reason(const HeapFeed *feed)
{
	const HeapTable *table = feed->table;

	if (table->tuples)
		return "the rows come from a subplan that is executed";
	if (!table->by_cache)
		return "the column cache has no columns of the table";
	if (table->scan->scan->rs_base.rs_parallel || IsParallelWorker() ||
		(feed->append && feed->append->as_pstate))
		return "parallel scans cannot use rows that are cached on the GPU";
	return NULL;
}

/* The engine has what it takes of the table at hand. */
static void
note_taken(HeapFeed *feed)
{
	HeapTable *table = feed->table;
	const HeapCached *cached = table->cached;
	MemoryContext old;

	if (table->tuples || !table->by_cache || cached->taken == NULL ||
		!heap_resident_complete(cached))
	{
		table->partly = !table->tuples && table->by_cache && cached->taken;
		feed->passed = true;
		return;
	}
	old = MemoryContextSwitchTo(feed->cxt);
	feed->complete = bms_add_member(feed->complete, table->which);
	MemoryContextSwitchTo(old);
	feed->base.stats.blocks += cached->nblocks;
	feed->base.stats.cached += cached->nblocks;
}

/*
 * The tables have been visited for rows that are named: those that come by the feed are next, from
 * the first table on.
 */
static void
end_offers(HeapFeed *feed)
{
	leave_table(feed);
	unset_table(feed);
	/* as ExecReScanAppend does */
	feed->append->as_whichplan = -1;
	feed->append->as_syncdone = false;
	feed->begun = feed->offering = false;
	feed->second = true;
}

/* The next table of an Append whose rows can be named; false: there is none. */
static bool
next_offer(HeapFeed *feed, const char **why)
{
	bool found = false;

	feed->offering = true;
	for (;;)
	{
		const char *unsupported_reason;

		CHECK_FOR_INTERRUPTS();
		if (feed->table)
			note_taken(feed);
		if (!next_table(feed))
			break;
		unsupported_reason = table_unsupported_reason(feed);
		found = unsupported_reason == NULL;
		if (found)
			break;
		*why = unsupported_reason;
	}
	if (!found)
		end_offers(feed);
	return found;
}

static struct FeedResident *
feed_resident(Feed *base, const char **why)
{
	HeapFeed *feed = (HeapFeed *) base;

	if (feed->limit)
	{
		*why = "the input has a LIMIT";
		return NULL;
	}
	if (feed->second || (feed->begun && !feed->offering))
		return NULL;
	if (feed->child->chgParam != NULL)
		ExecReScan(feed->child);
	for (int c = 0; c < feed->batch.ncols; c++)
		if (feed->outputs[c].constant && !is_given(feed->outputs[c].constant->expr))
		{
			*why = "an argument may only be computed if there is a row";
			return NULL;
		}
	if (feed->append)
		return next_offer(feed, why) ? heap_resident_create(feed) : NULL;
	next_table(feed);
	*why = table_unsupported_reason(feed);
	return *why ? NULL : heap_resident_create(feed);
}

/* ---- batches ------------------------------------------------------------------- */

/* How many rows may pass?  As in nodeLimit.c. */
static uint64
limit_count(LimitState *node)
{
	bool isnull = true;
	int64 count = 0;

	if (node->limitCount)
		count = DatumGetInt64(
			ExecEvalExprSwitchContext(node->limitCount, node->ps.ps_ExprContext, &isnull));
	if (isnull)
		return PG_UINT64_MAX;
	if (count < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_ROW_COUNT_IN_LIMIT_CLAUSE),
				 errmsg("LIMIT must not be negative")));
	return (uint64) count;
}

/* Fills the batch; false: there is no row. */
static bool
fill_batch(HeapFeed *feed)
{
	Batch *batch = &feed->batch;
	Instrumentation *instrument = feed->child->instrument;
	uint64 most = Min((uint64) batch->capacity, feed->left);

	/*
	 * before InstrStartNode, as in ExecProcNode: rescanning a node ends its cycle of
	 * instrumentation
	 */
	if (feed->child->chgParam != NULL)
		ExecReScan(feed->child);
	if (feed->offering)
	{
		note_taken(feed);
		end_offers(feed);
	}
	if (instrument)
		InstrStartNode(instrument);
	begin_batch(feed);
	while (batch->nrows < most && !heap_batch_is_full(feed) && !batch_ends(feed))
	{
		if (!next_tuples(feed))
		{
			leave_table(feed);
			feed->done = true;
			break;
		}
		if (has_tuples(feed))
			add_tuples(feed, feed->table);
		else if (feed->next_tuple < feed->page.ntuples)
			add_page(feed);
	}
	if (batch->nrows > 0 && !feed->constants_done)
		heap_store_constants(feed);
	end_batch(feed);
	if (instrument)
		InstrStopNode(instrument, batch->nrows);
	return batch->nrows > 0;
}

/* fill_batch below a LIMIT. */
static bool
fill_limited(HeapFeed *feed)
{
	LimitState *limit = feed->limit;
	Instrumentation *instrument = limit->ps.instrument;
	bool any;

	if (limit->ps.chgParam != NULL)
		ExecReScan(&limit->ps);
	if (instrument)
		InstrStartNode(instrument);
	if (!feed->begun)
		feed->left = limit_count(limit);
	any = feed->left > 0 && fill_batch(feed);
	feed->begun = true;
	if (any)
	{
		feed->batch.nrows = (int) Min(feed->batch.nrows, feed->left);
		if (feed->left != PG_UINT64_MAX)
			feed->left -= feed->batch.nrows;
		/* the batch may refer to what was read last, so that is kept */
		feed->done |= feed->left == 0;
	}
	if (instrument)
		InstrStopNode(instrument, any ? feed->batch.nrows : 0);
	return any;
}

static Batch *
feed_next(Feed *base)
{
	HeapFeed *feed = (HeapFeed *) base;
	Batch *batch = &feed->batch;

	if (feed->done || !(feed->limit ? fill_limited(feed) : fill_batch(feed)))
		return NULL;
	base->rows += batch->nrows;
	base->batches++;
	progress_update(feed->table && feed->table->scan && heap_scan_counts_blocks(feed->table->scan) ?
						feed->table->scan->blocks_done :
						0,
					base->rows);
	return batch;
}

/* ---- the rest of the feed ----------------------------------------------------- */

static void
feed_rescan(Feed *base)
{
	HeapFeed *feed = (HeapFeed *) base;
	int ntables = feed->append ? feed->append->as_nplans : 1;

	leave_table(feed);
	if (feed->limit && feed->limit->ps.chgParam == NULL)
		ExecReScan(&feed->limit->ps);
	else if (feed->limit == NULL && feed->child->chgParam == NULL)
		ExecReScan(feed->child);
	for (int i = 0; i < ntables; i++)
		if (feed->tables[i] && feed->tables[i]->set)
			expr_reset(feed->tables[i]->set);
	unset_table(feed);
	for (int i = 0; i < ntables; i++)
		if (feed->tables[i])
			feed->tables[i]->partly = false;
	bms_free(feed->complete);
	feed->complete = NULL;
	feed->begun = feed->offering = feed->passed = feed->second = false;
	feed->done = false;
	base->rows = 0;
	base->batches = 0;
}

static void
feed_end(Feed *base)
{
	leave_table((HeapFeed *) base);
}

static void
explain_proofs(const FeedStats *stats, ExplainState *es)
{
	if (es->format == EXPLAIN_FORMAT_TEXT)
		ExplainPropertyText(
			"Cached Blocks",
			psprintf("visibility map=" UINT64_FORMAT " lsn=" UINT64_FORMAT " skipped=" UINT64_FORMAT
					 " changed=" UINT64_FORMAT " built=" UINT64_FORMAT,
					 stats->by_map, stats->by_lsn, stats->skipped, stats->stale, stats->built),
			es);
	else
	{
		ExplainPropertyUInteger("Cached Blocks", NULL, stats->cached, es);
		ExplainPropertyUInteger("Cached Blocks Proved by Visibility Map", NULL, stats->by_map, es);
		ExplainPropertyUInteger("Cached Blocks Proved by LSN", NULL, stats->by_lsn, es);
		ExplainPropertyUInteger("Cached Blocks Skipped", NULL, stats->skipped, es);
		ExplainPropertyUInteger("Cached Blocks Changed", NULL, stats->stale, es);
		ExplainPropertyUInteger("Cached Blocks Built", NULL, stats->built, es);
	}
}

void
feed_heap_describe(PlanState *child, const FeedStats *stats, ExplainState *es)
{
	AppendState *append = heap_find_append(child);
	int nexecuted = 0;
	StringInfoData buf;

	child = heap_below_limit(child);
	initStringInfo(&buf);
	if (stats && stats->resident > 0)
	{
		appendStringInfo(&buf, "GPU memory (" UINT64_FORMAT " of " UINT64_FORMAT " blocks",
						 stats->resident, stats->blocks);
		if (append)
			appendStringInfo(&buf, ", " UINT64_FORMAT " of %d tables", stats->resident_tables,
							 append->as_nplans);
		appendStringInfoString(&buf, "), ");
	}
	if (stats && stats->blocks > 0 && (stats->cached > stats->resident || stats->resident == 0))
		appendStringInfo(&buf, "column cache (" UINT64_FORMAT " of " UINT64_FORMAT " blocks), ",
						 stats->cached - stats->resident, stats->blocks);
	appendStringInfoString(&buf, "heap pages of ");
	if (append)
	{
		for (int i = 0; i < append->as_nplans; i++)
			nexecuted += heap_subplan_unsupported_reason(append->appendplans[i], false) != NULL;
		appendStringInfo(&buf, "%d tables", append->as_nplans - nexecuted);
		if (nexecuted > 0)
			appendStringInfo(&buf, ", tuples of %d subplans", nexecuted);
	}
	else
		appendStringInfoString(&buf,
							   RelationGetRelationName(((ScanState *) child)->ss_currentRelation));
	ExplainPropertyText("Feed", buf.data, es);
	if (stats && stats->blocks > 0)
		explain_proofs(stats, es);
}

/*
 * Adds the expression to the list if it has no vector form, so that core evaluates it for every
 * row.
 */
static List *
add_row_by_row(List *list, const ExprRoot *root, List *context)
{
	if (root == NULL || root->vec != NULL)
		return list;
	return lappend(list, deparse_expression((Node *) root->expr, context, false, false));
}

/* For EXPLAIN VERBOSE: the expressions without a vector form, of the first table that was read. */
static void
explain_row_by_row(HeapFeed *feed, ExplainState *es)
{
	int ntables = feed->append ? feed->append->as_nplans : 1;
	HeapTable *table = NULL;
	List *context;
	List *list = NIL;

	for (int p = 0; p < ntables && table == NULL; p++)
		if (feed->tables[p] && feed->tables[p]->set)
			table = feed->tables[p];
	if (table == NULL)
		return;
	context = set_deparse_context_plan(es->deparse_cxt, table->scan->node->ps.plan, NIL);
	for (int q = 0; q < table->nquals; q++)
		list = add_row_by_row(list, table->quals[q], context);
	for (int c = 0; c < feed->batch.ncols; c++)
		list = add_row_by_row(list, table->outputs[c].root, context);
	if (list != NIL)
		ExplainPropertyList("Row by Row", list, es);
}

static void
feed_explain(Feed *base, const FeedStats *stats, ExplainState *es)
{
	HeapFeed *feed = (HeapFeed *) base;

	feed_heap_describe(feed->child, stats, es);
	if (es->verbose)
		explain_row_by_row(feed, es);
}

static const FeedOps heap_ops = {
	.name = "heap",
	.next = feed_next,
	.resident = feed_resident,
	.rescan = feed_rescan,
	.end = feed_end,
	.explain = feed_explain,
};

static void
init_outputs(HeapFeed *feed, const AggSpec *spec, const int *resnos, ExprState **constants)
{
	feed->batch.ncols = spec->ncols;
	feed->batch.cols = palloc0(sizeof(Column) * (spec->ncols + 1));
	feed->outputs = palloc0(sizeof(HeapOutput) * (spec->ncols + 1));
	for (int c = 0; c < spec->ncols; c++)
	{
		HeapOutput *output = &feed->outputs[c];
		Column *col = &feed->batch.cols[c];
		int input = spec->cols[c].input;

		column_writer_init(&output->writer, col, &spec->cols[c], feed->batch.capacity,
						   &feed->arena);
		output->resno = resnos[input];
		output->previous = -1;
		for (int o = 0; o < spec->nfallbacks; o++)
			output->wants_codes |=
				spec_ignores_repeats(&spec->fallbacks[o]) && spec->fallbacks[o].argcol[0] == c;
		if (output->resno == 0)
		{
			output->constant = constants[input];
			continue;
		}
		col->memory = col->values;
		for (int other = 0; other < c; other++)
			if (feed->outputs[other].resno == output->resno)
				output->previous = other;
	}
}

Feed *
feed_heap_open(PlanState *child, bool volatile_query, const AggSpec *spec, const int *resnos,
			   ExprState **constants, ExprContext *econtext, int batch_rows)
{
	HeapFeed *feed = palloc0(sizeof(HeapFeed));
	int ntables = 1;

	feed->base.ops = &heap_ops;
	feed->base.batch = &feed->batch;
	feed->limit = IsA(child, LimitState) ? (LimitState *) child : NULL;
	feed->left = PG_UINT64_MAX;
	feed->child = child = heap_below_limit(child);
	feed->volatile_query = volatile_query;
	feed->econtext = econtext;
	feed->cxt = CurrentMemoryContext;
	feed->batch.capacity = batch_rows;
	feed->slice = EXPR_ROWS;
	feed->page.buffer = InvalidBuffer;
	arena_init(&feed->arena, feed->cxt);
	/* a LIMIT counts rows for which others cannot stand */
	feed->extremes =
		feed->limit == NULL && spec->nkeys == 0 && spec->ndistincts == 0 && !spec->others;
	init_outputs(feed, spec, resnos, constants);
	feed->append = heap_find_append(child);
	if (feed->append)
	{
		ntables = feed->append->as_nplans;
		if (child != &feed->append->ps)
			feed->result = (ResultState *) child;
	}
	feed->tables = palloc0(sizeof(HeapTable *) * (ntables + 1));
	return &feed->base;
}
