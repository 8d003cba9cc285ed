/*
 * feed_tuples.c
 *	  The feed that takes tuples from a child plan.
 *
 * Works over any plan: rows come one by one through ExecProcNode, and a small
 * copy program, one step a column, stores them into the batch's arrays.
 *
 * Memory: the feed and its arrays live in the context it was opened in.
 * By-reference values are copied, as the child's next tuple may free them, into
 * an arena that the next batch reuses; what does not fit its chunk, and
 * detoasted numerics, go to a context reset for each batch.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "utils/datum.h"
#include "utils/memutils.h"

#include "arena.h"
#include "decode_numeric.h"
#include "feed.h"

/* Column arrays are aligned for vector loads and 128-bit integers. */
#define COLUMN_ALIGN 64

/* One step of the copy program. */
typedef struct CopyStep
{
	int			att;			/* index into the slot's values, or -1: a constant */
	ColumnType	type;
	int16		scale;
	int16		typlen;
	bool		typbyval;
	Column	   *col;
	uint64	   *validity;		/* buffers behind the column's bitmaps */
	uint64	   *odd;
	ExprState  *constant;
} CopyStep;

typedef struct TupleFeed
{
	Feed		base;
	PlanState  *child;
	ExprContext *econtext;
	Batch		batch;
	int			natts;			/* attributes to deform */
	int			nsteps;			/* one a column that varies */
	CopyStep   *steps;
	int			nconstants;
	CopyStep   *constants;
	bool		constants_done;
	bool		done;
	Arena		arena;
	MemoryContext cxt;
} TupleFeed;

/* ---- the copy program -------------------------------------------------- */

static void
store_null(CopyStep *step, int row, int capacity)
{
	Column	   *col = step->col;
	int			width = column_width(step->type);

	if (col->validity == NULL)
	{
		memset(step->validity, 0xff, BITMAP_WORDS(capacity) * sizeof(uint64));
		col->validity = step->validity;
	}
	bitmap_clear(col->validity, row);
	memset((char *) col->values + (size_t) row * width, 0, width);
}

static void
store_odd(TupleFeed *feed, CopyStep *step, Datum value, int row)
{
	Column	   *col = step->col;

	if (col->odd == NULL)
	{
		if (step->odd == NULL)
		{
			step->odd = MemoryContextAlloc(feed->cxt,
										   BITMAP_WORDS(feed->batch.capacity) * sizeof(uint64));
			col->odd_values = MemoryContextAllocZero(feed->cxt,
													 feed->batch.capacity * sizeof(Datum));
		}
		memset(step->odd, 0, BITMAP_WORDS(feed->batch.capacity) * sizeof(uint64));
		col->odd = step->odd;
	}
	bitmap_set(col->odd, row);
	/* a constant outlives the batch as it is */
	col->odd_values[row] = step->constant ? value : arena_copy(&feed->arena, value, -1);
	((gpuagg_i128 *) col->values)[row] = 0;
}

static void
store_decimal(TupleFeed *feed, CopyStep *step, Datum value, int row)
{
	struct varlena *numeric = (struct varlena *) DatumGetPointer(value);

	if (unlikely(VARATT_IS_EXTERNAL(numeric) || VARATT_IS_COMPRESSED(numeric)))
	{
		MemoryContext old = MemoryContextSwitchTo(feed->arena.overflow);

		feed->arena.overflowed = true;
		numeric = pg_detoast_datum_packed(numeric);
		MemoryContextSwitchTo(old);
	}
	if (!decode_numeric((const uint8_t *) VARDATA_ANY(numeric), VARSIZE_ANY_EXHDR(numeric),
						step->scale, &((gpuagg_i128 *) step->col->values)[row]))
		store_odd(feed, step, PointerGetDatum(numeric), row);
}

static inline void
store_value(TupleFeed *feed, CopyStep *step, Datum value, int row)
{
	void	   *values = step->col->values;

	switch (step->type)
	{
		case COLUMN_I8:
			((int8 *) values)[row] = DatumGetChar(value);
			break;
		case COLUMN_I16:
			((int16 *) values)[row] = DatumGetInt16(value);
			break;
		case COLUMN_I32:
		case COLUMN_U32:
			((int32 *) values)[row] = DatumGetInt32(value);
			break;
		case COLUMN_I64:
			((int64 *) values)[row] = DatumGetInt64(value);
			break;
		case COLUMN_F32:
			((float *) values)[row] = DatumGetFloat4(value);
			break;
		case COLUMN_F64:
			((double *) values)[row] = DatumGetFloat8(value);
			break;
		case COLUMN_DEC:
			store_decimal(feed, step, value, row);
			break;
		case COLUMN_DATUM:
			((Datum *) values)[row] = step->typbyval ? value :
				arena_copy(&feed->arena, value, step->typlen);
			break;
	}
}

static inline void
store_row(TupleFeed *feed, const TupleTableSlot *slot, int row)
{
	for (CopyStep *step = feed->steps; step < feed->steps + feed->nsteps; step++)
	{
		if (unlikely(slot->tts_isnull[step->att]))
			store_null(step, row, feed->batch.capacity);
		else
			store_value(feed, step, slot->tts_values[step->att], row);
	}
}

/*
 * Fills the columns of constants for all batches to come.  Called after
 * arena_reset, but before other values: constants are copied to feed->cxt.
 */
static void
store_constants(TupleFeed *feed)
{
	for (CopyStep *step = feed->constants; step < feed->constants + feed->nconstants; step++)
	{
		bool		isnull;
		Datum		value = ExecEvalExprSwitchContext(step->constant, feed->econtext, &isnull);

		if (!isnull && !step->typbyval)
		{
			MemoryContext old = MemoryContextSwitchTo(feed->cxt);

			value = step->typlen == -1 ? PointerGetDatum(PG_DETOAST_DATUM_COPY(value)) :
				datumCopy(value, false, step->typlen);
			MemoryContextSwitchTo(old);
		}
		for (int row = 0; row < feed->batch.capacity; row++)
		{
			if (isnull)
				store_null(step, row, feed->batch.capacity);
			else if (step->type == COLUMN_DATUM)
				((Datum *) step->col->values)[row] = value;
			else
				store_value(feed, step, value, row);
		}
	}
	feed->constants_done = true;
}

/* ---- the feed ---------------------------------------------------------- */

static Batch *
tuples_next(Feed *base)
{
	TupleFeed  *feed = (TupleFeed *) base;
	int			row = 0;

	if (feed->done)
		return NULL;
	arena_reset(&feed->arena);
	for (CopyStep *step = feed->steps; step < feed->steps + feed->nsteps; step++)
	{
		step->col->validity = NULL;
		step->col->odd = NULL;
	}
	while (row < feed->batch.capacity)
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
	return &feed->batch;
}

static void
tuples_rescan(Feed *base)
{
	TupleFeed  *feed = (TupleFeed *) base;

	if (feed->child->chgParam == NULL)
		ExecReScan(feed->child);
	feed->done = false;
	base->rows = 0;
	base->batches = 0;
}

static void
tuples_end(Feed *base)
{
	TupleFeed  *feed = (TupleFeed *) base;

	MemoryContextDelete(feed->arena.overflow);
}

static void
tuples_explain(Feed *base, ExplainState *es)
{
	ExplainPropertyText("Feed", "tuples from the child plan", es);
}

static const FeedOps tuples_ops = {
	.name = "tuples",
	.next = tuples_next,
	.rescan = tuples_rescan,
	.end = tuples_end,
	.explain = tuples_explain
};

static void *
alloc_column(size_t size)
{
	return (void *) TYPEALIGN(COLUMN_ALIGN, palloc0(size + COLUMN_ALIGN));
}

Feed *
feed_tuples_open(PlanState *child, const AggSpec *spec, const int *resnos,
				 ExprState **constants, ExprContext *econtext, int batch_rows)
{
	TupleFeed  *feed = palloc0(sizeof(TupleFeed));

	feed->base.ops = &tuples_ops;
	feed->base.batch = &feed->batch;
	feed->child = child;
	feed->econtext = econtext;
	feed->cxt = CurrentMemoryContext;
	arena_init(&feed->arena, CurrentMemoryContext);
	feed->batch.capacity = batch_rows;
	feed->batch.ncols = spec->ncols;
	feed->batch.cols = palloc0(sizeof(Column) * (spec->ncols + 1));
	feed->steps = palloc0(sizeof(CopyStep) * (spec->ncols + 1));
	feed->constants = palloc0(sizeof(CopyStep) * (spec->ncols + 1));
	for (int c = 0; c < spec->ncols; c++)
	{
		const ColumnSpec *colspec = &spec->cols[c];
		Column	   *col = &feed->batch.cols[c];
		int			resno = resnos[colspec->input];
		CopyStep   *step = resno > 0 ? &feed->steps[feed->nsteps++] :
			&feed->constants[feed->nconstants++];

		col->type = colspec->type;
		col->scale = colspec->scale;
		col->values = alloc_column((size_t) batch_rows * column_width(colspec->type));
		step->att = resno - 1;
		step->type = colspec->type;
		step->scale = colspec->scale;
		step->typlen = colspec->typlen;
		step->typbyval = colspec->typbyval;
		step->col = col;
		step->validity = alloc_column(BITMAP_WORDS(batch_rows) * sizeof(uint64));
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
