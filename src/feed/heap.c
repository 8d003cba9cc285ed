/*
 * heap.c
 *	  The feed over a query's child plan; see heap.h.
 *
 * The scan nodes of the child plan remain what the planner made them: they open the tables, hold
 * quals, target lists and scan descriptors, share blocks among parallel participants and prune
 * partitions.  But ExecProcNode is not called for them.  The feed reads pages itself, and runs
 * quals and target lists as vector expressions (expr/expr.h), a page at a time.
 *
 * Memory: the feed lives in the context in which it was opened; by-reference values of a batch in
 * its arena, whose bytes end a batch; values of one page in the expression set's page_cxt.  After
 * an error the resource owner releases the pins.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "common/compat.h"
#include "common/progress.h"
#include "feed/heap.h"
#include "feed/heap_shared.h"

/*
 * The compiled expressions of so many tables are kept for rescans.  Those of further tables are
 * freed after the table has been read.
 */
#define KEPT_TABLES 64

/* ---- subplans -------------------------------------------------------------------- */

static int
number_of_subplans(const HeapFeed *feed)
{
	return feed->append ? feed->append->as_nplans : 1;
}

/*
 * Leaves the current subplan, and frees its compiled expressions unless they are kept for rescans
 * or the subplan is to be begun again for its other rows.
 */
static void
close_table(HeapFeed *feed)
{
	HeapTable *table = feed->table;

	heap_source_end(feed);
	feed->table = NULL;
	if (table && table->cached)
		heap_memo_forget(table);
	if (table && table->cxt && feed->subplans[table->which].taken != HEAP_TAKEN_PARTLY)
	{
		feed->subplans[table->which].table = NULL;
		MemoryContextDelete(table->cxt);
	}
}

/* Returns whether the executor has to run a subplan. */
static bool
must_be_executed(const HeapFeed *feed, PlanState *node)
{
	const SharedBitmap *shared = heap_shared_bitmap(feed->base.shared, node);

	if (shared)
		return !shared->by_pages;
	return feed->executes_child ||
		(feed->append && heap_subplan_unsupported_reason(node, feed->volatile_query));
}

/* Creates the HeapTable of a subplan. Compiles its expressions if it is read by pages. */
static HeapTable *
open_table(HeapFeed *feed, PlanState *node, int which)
{
	bool keep = feed->nkept < KEPT_TABLES;
	MemoryContext cxt =
		keep ? feed->cxt : AllocSetContextCreate(feed->cxt, "gpuagg table", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(cxt);
	HeapTable *table;

	if (must_be_executed(feed, node))
		table = palloc0(sizeof(HeapTable));
	else if (heap_groups_scan(node))
		table = heap_table_create_groups(feed, node);
	else
		table = heap_table_create(feed, (ScanState *) node);
	table->node = node;
	table->which = which;
	table->cxt = keep ? NULL : cxt;
	feed->nkept += keep;
	MemoryContextSwitchTo(old);
	return table;
}

/*
 * Chooses the next subplan and rescans it if need be; returns its index, or -1 if there are no
 * more.
 */
static int
choose_subplan(HeapFeed *feed)
{
	AppendState *append = feed->append;
	PlanState *node;

	if (append == NULL)
		return feed->table ? -1 : 0;
	if (append->ps.chgParam != NULL)
		ExecReScan(&append->ps);
	do
	{
		if (append->as_nplans == 0 || !append->choose_next_subplan(append))
			return -1;
		append->as_begun = true;
	} while (feed->subplans[append->as_whichplan].taken == HEAP_TAKEN_ALL);
	node = append->appendplans[append->as_whichplan];
	if (node->chgParam != NULL)
		ExecReScan(node);
	return append->as_whichplan;
}

/* Returns the node of a subplan. */
static PlanState *
subplan_node(const HeapFeed *feed, int which)
{
	if (feed->append)
		return feed->append->appendplans[which];
	return feed->joins ? heap_below_joins(feed->child) : feed->child;
}

/* Begins to read the next subplan; false when there are no more. */
static bool
next_table(HeapFeed *feed)
{
	int which = choose_subplan(feed);
	HeapSubplan *subplan;

	if (which < 0)
		return false;
	close_table(feed);
	subplan = &feed->subplans[which];
	if (subplan->table == NULL)
		subplan->table = open_table(feed, subplan_node(feed, which), which);
	feed->table = subplan->table;
	heap_source_begin(feed, feed->table);
	return true;
}

/* ---- rows that are offered to an engine ------------------------------------------- */

/*
 * Returns whether a constant is a literal or a parameter of the query, so that nothing is
 * evaluated.
 */
static bool
is_given(const Expr *expr)
{
	return IsA(expr, Const) ||
		(IsA(expr, Param) && ((const Param *) expr)->paramkind == PARAM_EXTERN);
}

/*
 * Returns whether the values of all constant columns are given. If one must be evaluated, core does
 * so only if there is a row.
 */
static bool
constants_are_given(const HeapFeed *feed)
{
	for (int c = 0; c < feed->batch.ncols; c++)
		if (feed->outputs[c].constant && !is_given(feed->outputs[c].constant->expr))
			return false;
	return true;
}

/* Records how much of the current subplan the engine has taken. */
static void
record_taken(HeapFeed *feed)
{
	HeapTable *table = feed->table;
	HeapSubplan *subplan = &feed->subplans[table->which];
	const HeapCached *cached = table->cached;

	if (table->source != HEAP_CACHE || cached->taken == NULL)
		subplan->taken = HEAP_TAKEN_NONE;
	else if (!heap_resident_complete(cached))
		subplan->taken = HEAP_TAKEN_PARTLY;
	else
	{
		subplan->taken = HEAP_TAKEN_ALL;
		feed->base.stats.blocks += cached->nblocks;
		feed->base.stats.cached += cached->nblocks;
	}
	if (subplan->taken != HEAP_TAKEN_ALL)
		feed->offer_left_rows = true;
}

/*
 * Ends the phase HEAP_OFFER. Without Append the phase HEAP_READ begins. With one HEAP_READ_REST
 * begins, in which the Append chooses its subplans again from the first.
 */
static void
end_offers(HeapFeed *feed)
{
	AppendState *append = feed->append;

	if (append == NULL)
	{
		feed->phase = HEAP_READ;
		return;
	}
	close_table(feed);
	/* as ExecReScanAppend does */
	append->as_whichplan = -1;
	append->as_syncdone = false;
	feed->phase = HEAP_READ_REST;
}

/*
 * Builds the lookups of the feed's joins.  If they cannot be built, the executor runs the joins
 * from now on.  Returns false if there are no rows.
 */
static bool
begin_joins(HeapFeed *feed)
{
	CompatInstrumentation *instrument = feed->child->instrument;
	HeapJoinsResult result;

	if (instrument)
		InstrStartNode(instrument);
	result = heap_joins_begin(feed->joins, &feed->base, &feed->no_lookups);
	if (instrument)
		InstrStopNode(instrument, 0);
	if (result == HEAP_JOINS_EXECUTE)
	{
		/* an earlier scan may have compiled tables, which read pages */
		memset(feed->subplans, 0, sizeof(HeapSubplan) * number_of_subplans(feed));
		feed->executes_child = true;
		feed->joins = NULL;
		feed->append = NULL;
	}
	else if (heap_joins_restore_order(feed->joins))
		memset(feed->subplans, 0, sizeof(HeapSubplan) * number_of_subplans(feed));
	return result != HEAP_JOINS_EMPTY;
}

/* Begins the next subplan of an Append whose rows can be offered; false if there is none. */
static bool
next_offer(HeapFeed *feed, const char **why)
{
	const char *unoffered_reason;

	for (;;)
	{
		CHECK_FOR_INTERRUPTS();
		if (feed->table)
			record_taken(feed);
		if (!next_table(feed))
		{
			end_offers(feed);
			return false;
		}
		unoffered_reason = heap_source_unoffered_reason(feed);
		if (unoffered_reason == NULL)
			return true;
		*why = unoffered_reason;
	}
}

/*
 * FeedOps.resident: offers the cached rows of the next table. Returns NULL if there is none;
 * sets *why if its rows cannot be offered.
 */
static struct FeedResident *
feed_resident(Feed *base, const char **why)
{
	HeapFeed *feed = (HeapFeed *) base;

	if (feed->limit)
	{
		*why = "the input has a LIMIT";
		return NULL;
	}
	if (feed->phase != HEAP_START && (feed->phase != HEAP_OFFER || feed->append == NULL))
		return NULL;
	if (feed->child->chgParam != NULL)
		ExecReScan(feed->child);
	if (feed->joins && feed->phase == HEAP_START)
	{
		if (!begin_joins(feed))
			feed->phase = HEAP_DONE;
		*why = feed->phase == HEAP_DONE ? "no row can find its partner in a join" :
			feed->joins == NULL         ? "the joins are executed by PostgreSQL" :
										  NULL;
		if (*why)
			return NULL;
	}
	if (!constants_are_given(feed))
	{
		*why = "an argument may only be computed if there is a row";
		return NULL;
	}
	feed->phase = HEAP_OFFER;
	if (feed->append)
		return next_offer(feed, why) ? heap_resident_create(feed, why) : NULL;
	next_table(feed);
	*why = heap_source_unoffered_reason(feed);
	return *why ? NULL : heap_resident_create(feed, why);
}

/* ---- batches --------------------------------------------------------------------- */

/* Returns how many rows the LIMIT lets pass; computed as nodeLimit.c does. */
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

/* Empties the batch. Columns that pointed into the cache get their own arrays again. */
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
		/* The engine may have pointed it elsewhere since. */
		if (output->borrowed && col->values == output->borrowed)
			col->values = col->memory;
		output->borrowed = NULL;
	}
}

/* Sets the dictionary codes of columns whose rows all have codes in one dictionary. */
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

/*
 * Goes on to the next rows, of the next subplan if need be, unless rows are at hand or the batch
 * must end.  Returns false after the last subplan.
 */
static bool
next_rows(HeapFeed *feed)
{
	while (!heap_source_has_rows(feed) && !heap_batch_must_end(feed))
	{
		if (feed->table)
			heap_source_leave_rows(feed);
		if ((feed->table == NULL || !heap_source_next(feed)) && !next_table(feed))
			return false;
	}
	return true;
}

/*
 * Changes the order of the probes if another one is clearly cheaper.  The table's compiled
 * expressions remain until the feed ends, as the batch may refer to their values.
 */
static void
adapt_order(HeapFeed *feed)
{
	MemoryContext old;
	HeapTable *table;

	if (!heap_joins_change_order(feed))
		return;
	old = MemoryContextSwitchTo(feed->table->cxt ? feed->table->cxt : feed->cxt);
	table = heap_table_compile_again(feed, feed->table);
	MemoryContextSwitchTo(old);
	if (table)
		feed->table = feed->subplans[table->which].table = table;
	else
		heap_joins_keep_order(feed);
}

/* Fills the batch; returns false if there are no more rows. */
static bool
fill_batch(HeapFeed *feed)
{
	Batch *batch = &feed->batch;
	CompatInstrumentation *instrument;
	uint64 most = Min((uint64) batch->capacity, feed->left);

	/* Rescanning a node ends its cycle of instrumentation, so this comes before InstrStartNode. */
	if (feed->child->chgParam != NULL)
		ExecReScan(feed->child);
	if (feed->joins && feed->phase == HEAP_START && !begin_joins(feed))
	{
		feed->phase = HEAP_DONE;
		return false;
	}
	/* the executor counts the rows of nodes that it runs */
	instrument = feed->executes_child ? NULL : feed->child->instrument;
	if (feed->phase == HEAP_OFFER)
	{
		if (feed->append)
			record_taken(feed);
		end_offers(feed);
	}
	else if (feed->phase == HEAP_START)
		feed->phase = HEAP_READ;
	if (instrument)
		InstrStartNode(instrument);
	begin_batch(feed);
	while (batch->nrows < most && !heap_batch_is_full(feed) && !heap_batch_must_end(feed))
	{
		if (!next_rows(feed))
		{
			heap_source_end(feed);
			feed->phase = HEAP_DONE;
			break;
		}
		if (feed->joins)
			adapt_order(feed);
		if (heap_source_has_rows(feed))
			heap_source_add(feed);
	}
	if (batch->nrows > 0 && !feed->constants_done)
		heap_store_constants(feed);
	end_batch(feed);
	if (instrument)
		InstrStopNode(instrument, batch->nrows);
	return batch->nrows > 0;
}

/* Fills the batch with rows that a LIMIT lets pass; returns false if there are no more. */
static bool
fill_limited(HeapFeed *feed)
{
	LimitState *limit = feed->limit;
	CompatInstrumentation *instrument = limit->ps.instrument;
	bool any;

	if (limit->ps.chgParam != NULL)
		ExecReScan(&limit->ps);
	if (instrument)
		InstrStartNode(instrument);
	if (feed->phase == HEAP_START)
		feed->left = limit_count(limit);
	any = feed->left > 0 && fill_batch(feed);
	if (any)
	{
		feed->batch.nrows = (int) Min(feed->batch.nrows, feed->left);
		if (feed->left != PG_UINT64_MAX)
			feed->left -= feed->batch.nrows;
	}
	/* The source is not ended: the batch may refer to rows at hand. */
	if (feed->left == 0)
		feed->phase = HEAP_DONE;
	if (instrument)
		InstrStopNode(instrument, any ? feed->batch.nrows : 0);
	return any;
}

/* Returns how many blocks of the current table have been read, for the progress view. */
static uint64
blocks_done(const HeapFeed *feed)
{
	const HeapScan *scan = feed->table ? feed->table->scan : NULL;

	return scan && heap_scan_counts_blocks(scan) ? scan->blocks_done : 0;
}

/* FeedOps.next: returns the next batch, or NULL at the end. */
static Batch *
feed_next(Feed *base)
{
	HeapFeed *feed = (HeapFeed *) base;
	Batch *batch = &feed->batch;

	if (feed->phase == HEAP_DONE || !(feed->limit ? fill_limited(feed) : fill_batch(feed)))
		return NULL;
	base->rows += batch->nrows;
	base->batches++;
	progress_update(blocks_done(feed), base->rows);
	return batch;
}

/* ---- opening, rescanning, ending --------------------------------------------------- */

/* FeedOps.rescan: makes the feed start again from the first row. */
static void
feed_rescan(Feed *base)
{
	HeapFeed *feed = (HeapFeed *) base;

	close_table(feed);
	if (feed->limit && feed->limit->ps.chgParam == NULL)
		ExecReScan(&feed->limit->ps);
	else if (feed->limit == NULL && feed->child->chgParam == NULL)
		ExecReScan(feed->child);
	for (int i = 0; i < number_of_subplans(feed); i++)
	{
		HeapSubplan *subplan = &feed->subplans[i];

		if (subplan->table && subplan->table->set)
			expr_reset(subplan->table->set);
		subplan->taken = HEAP_TAKEN_NONE;
	}
	feed->offer_left_rows = false;
	feed->phase = HEAP_START;
	base->rows = 0;
	base->batches = 0;
}

/* FeedOps.end: releases all pins. */
static void
feed_end(Feed *base)
{
	HeapFeed *feed = (HeapFeed *) base;

	heap_source_end(feed);
	if (feed->joins)
		heap_joins_end(feed->joins);
}

static const FeedOps page_ops = {
	.next = feed_next,
	.resident = feed_resident,
	.rescan = feed_rescan,
	.end = feed_end,
	.explain = heap_explain,
};

static const FeedOps executor_ops = {
	.next = feed_next,
	.rescan = feed_rescan,
	.end = feed_end,
	.explain = heap_explain,
};

/* Sets up the columns of the batch. resnos[], constants[]: as passed to feed_open(). */
static void
init_outputs(HeapFeed *feed, const AggSpec *spec, const int *resnos, ExprState **constants)
{
	feed->batch.ncols = spec->ncols;
	feed->batch.cols = palloc0(sizeof(Column) * (spec->ncols + 1));
	feed->outputs = palloc0(sizeof(HeapOutput) * (spec->ncols + 1));
	feed->copies = palloc0(sizeof(HeapCopy) * (spec->ncols + 1));
	for (int c = 0; c < spec->ncols; c++)
	{
		HeapOutput *output = &feed->outputs[c];
		Column *col = &feed->batch.cols[c];
		int input = spec->cols[c].input;
		HeapCopy *copy;

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
		copy = &feed->copies[feed->ncopies++];
		copy->att = output->resno - 1;
		copy->writer = &output->writer;
		feed->natts = Max(feed->natts, output->resno);
	}
}

/* Opens feeds for the inner sides of joins that a feed can read. */
static void
open_inner_feeds(HeapFeed *feed, int batch_rows)
{
	PlanState *inner;

	for (int j = 0; (inner = heap_joins_inner_plan(feed->joins, j)) != NULL; j++)
	{
		int *resnos;
		AggSpec *spec;
		Feed *source;

		if (feed_pages_unsupported_reason(inner, feed->volatile_query) != NULL ||
			(spec = heap_joins_inner_spec(feed->joins, j, &resnos)) == NULL)
			continue;
		source = feed_open(inner, true, feed->volatile_query, spec, resnos, NULL, feed->econtext,
						   batch_rows);
		heap_joins_set_feed(feed->joins, j, source);
	}
}

Feed *
feed_open(PlanState *child, bool pages, bool volatile_query, const AggSpec *spec, const int *resnos,
		  ExprState **constants, ExprContext *econtext, int batch_rows)
{
	HeapFeed *feed = palloc0(sizeof(HeapFeed));

	check_stack_depth();
	feed->base.ops = pages ? &page_ops : &executor_ops;
	feed->base.batch = &feed->batch;
	feed->executes_child = !pages;
	feed->left = PG_UINT64_MAX;
	feed->child = child;
	feed->volatile_query = volatile_query;
	feed->econtext = econtext;
	feed->cxt = CurrentMemoryContext;
	feed->batch.capacity = batch_rows;
	feed->rows_per_step = EXPR_ROWS;
	feed->page.buffer = InvalidBuffer;
	arena_init(&feed->arena, feed->cxt);
	init_outputs(feed, spec, resnos, constants);
	if (!pages)
		heap_joins_leave(child);
	else
	{
		feed->limit = IsA(child, LimitState) ? (LimitState *) child : NULL;
		feed->child = heap_below_limit(child);
		feed->joins = heap_joins_create(feed->child);
		if (feed->joins)
		{
			heap_joins_init_order(feed->joins);
			open_inner_feeds(feed, batch_rows);
		}
		feed->append = heap_find_append(heap_below_joins(feed->child));
		if (feed->append && feed->joins == NULL && feed->child != &feed->append->ps)
			feed->result = (ResultState *) feed->child;
	}
	/* bounds cannot stand for rows that a LIMIT counts */
	feed->extremes =
		feed->limit == NULL && spec->nkeys == 0 && spec->ndistincts == 0 && !spec->needs_rows;
	feed->subplans = palloc0(sizeof(HeapSubplan) * (number_of_subplans(feed) + 1));
	return &feed->base;
}
