/*
 * tuples.c
 *	  The feed that takes tuples from a child plan.
 *
 * Works over any plan: rows come one by one from ExecProcNode, and a copy
 * program of one step per column stores them in the batch's arrays.
 *
 * Memory: the feed and its arrays live in the context it was opened in.
 * By-reference values are copied, as the child's next tuple may free them, into
 * an arena that the next batch reuses.  A batch ends when it has as many rows as
 * it may have, or as many bytes of such values.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "columns/arena.h"
#include "columns/column_writer.h"
#include "common/progress.h"
#include "feed.h"

/* One step of the copy program. */
typedef struct CopyStep
{
	int att; /* index into the slot's values, or -1: a constant */
	ColumnWriter writer;
	ExprState *constant;
} CopyStep;

typedef struct TupleFeed
{
	Feed base;
	PlanState *child;
	ExprContext *econtext;
	Batch batch;
	int natts;  /* attributes to deform */
	int nsteps; /* one for each column that is not constant */
	CopyStep *steps;
	int nconstants;
	CopyStep *constants;
	bool constants_done;
	bool done;
	Arena arena;
} TupleFeed;

/* ---- the copy program -------------------------------------------------- */

static inline void
store_row(TupleFeed *feed, const TupleTableSlot *slot, int row)
{
	for (CopyStep *step = feed->steps; step < feed->steps + feed->nsteps; step++)
	{
		if (unlikely(slot->tts_isnull[step->att]))
			column_write_null(&step->writer, row);
		else
			column_write(&step->writer, row, slot->tts_values[step->att]);
	}
}

/* Fills the columns of constants, once for all batches. */
static void
store_constants(TupleFeed *feed)
{
	for (CopyStep *step = feed->constants; step < feed->constants + feed->nconstants; step++)
		column_write_constant(&step->writer, step->constant, feed->econtext);
	feed->constants_done = true;
}

/* ---- the feed ---------------------------------------------------------- */

/* The table that the child plan scans, if it is that alone. */
static Oid
scanned_table(PlanState *child)
{
	switch (nodeTag(child))
	{
		case T_SeqScanState:
		case T_SampleScanState:
		case T_IndexScanState:
		case T_IndexOnlyScanState:
		case T_BitmapHeapScanState:
		case T_TidScanState:
		case T_TidRangeScanState:
			return RelationGetRelid(((ScanState *) child)->ss_currentRelation);
		default:
			return InvalidOid;
	}
}

static Batch *
tuples_next(Feed *base)
{
	TupleFeed *feed = (TupleFeed *) base;
	int row = 0;

	if (feed->done)
		return NULL;
	if (base->rows == 0)
		progress_table(scanned_table(feed->child), 0);
	arena_reset(&feed->arena);
	for (CopyStep *step = feed->steps; step < feed->steps + feed->nsteps; step++)
		column_begin(&step->writer);
	while (row < feed->batch.capacity && feed->arena.bytes < BATCH_BYTES)
	{
		TupleTableSlot *slot = ExecProcNode(feed->child);

		if (TupIsNull(slot))
		{
			feed->done = true;
			break;
		}
		if (feed->natts > 0)
		{
			slot_getsomeattrs(slot, feed->natts);
			store_row(feed, slot, row);
		}
		row++;
	}
	if (row == 0)
		return NULL;
	if (!feed->constants_done)
		store_constants(feed);
	feed->batch.nrows = row;
	base->rows += row;
	base->batches++;
	progress_update(0, base->rows);
	return &feed->batch;
}

static void
tuples_rescan(Feed *base)
{
	TupleFeed *feed = (TupleFeed *) base;

	if (feed->child->chgParam == NULL)
		ExecReScan(feed->child);
	feed->done = false;
	base->rows = 0;
	base->batches = 0;
}

static void
tuples_end(Feed *base)
{
	TupleFeed *feed = (TupleFeed *) base;

	MemoryContextDelete(feed->arena.overflow);
}

static void
tuples_explain(Feed *base, const FeedStats *stats, ExplainState *es)
{
	ExplainPropertyText("Feed", "tuples from the child plan", es);
}

static const FeedOps tuples_ops = {
	.name = "tuples",
	.next = tuples_next,
	.rescan = tuples_rescan,
	.end = tuples_end,
	.explain = tuples_explain,
};

Feed *
feed_tuples_open(PlanState *child, const AggSpec *spec, const int *resnos, ExprState **constants,
				 ExprContext *econtext, int batch_rows)
{
	TupleFeed *feed = palloc0(sizeof(TupleFeed));

	feed->base.ops = &tuples_ops;
	feed->base.batch = &feed->batch;
	feed->child = child;
	feed->econtext = econtext;
	arena_init(&feed->arena, CurrentMemoryContext);
	feed->batch.capacity = batch_rows;
	feed->batch.ncols = spec->ncols;
	feed->batch.cols = palloc0(sizeof(Column) * (spec->ncols + 1));
	feed->steps = palloc0(sizeof(CopyStep) * (spec->ncols + 1));
	feed->constants = palloc0(sizeof(CopyStep) * (spec->ncols + 1));
	for (int c = 0; c < spec->ncols; c++)
	{
		const ColumnSpec *colspec = &spec->cols[c];
		Column *col = &feed->batch.cols[c];
		int resno = resnos[colspec->input];
		CopyStep *step =
			resno > 0 ? &feed->steps[feed->nsteps++] : &feed->constants[feed->nconstants++];

		column_writer_init(&step->writer, col, colspec, batch_rows, &feed->arena);
		step->att = resno - 1;
		if (resno > 0)
		{
			col->memory = col->values;
			feed->natts = Max(feed->natts, resno);
		}
		else
			step->constant = constants[colspec->input];
	}
	return &feed->base;
}
