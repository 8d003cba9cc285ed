/*
 * sorted_feed.c
 *
 * A feed that sorts the rows of another feed by keys and order.
 *
 * Used for aggregates with an ORDER BY over types that have 64-bit codes. Rows are kept in a row
 * store and sorted there. Beyond the memory limit they are written to the files of a partition set
 * by the hash of their keys, so that each partition has whole groups and is sorted separately. A
 * partition that is too large is partitioned again. At the last level, or without keys, core's
 * tuplesort sorts by the codes.
 *
 * Memory: a context below the one in which the feed was opened. Files belong to the resource
 * owner.
 */
#include "postgres.h"

#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/tuplesort.h"

#include "common/compat.h"
#include "common/progress.h"
#include "feed/sorted_feed.h"
#include "groups/row_store.h"
#include "groups/record.h"
#include "groups/spill.h"

/* Numbers of files of a partition set: their buffers take an eighth of the memory. */
#define MIN_PARTITIONS 4
#define MAX_PARTITIONS 256
#define MAX_LEVEL 2

/* bigint < bigint */
#define CODE_ORDER Int8LessOperator

typedef struct OrderedFeed
{
	Feed base;
	Feed *inner;
	const AggSpec *spec;
	size_t mem_limit;
	int batch_rows;
	MemoryContext cxt;
	RowStore *store;
	bool loaded; /* the inner feed has been read to its end */
	int64 next;  /* next row of the sorted store */

	int level; /* partition level of the rows that are being loaded */
	PartitionSet *out;
	PartitionList pending;
	Partition in;
	RowReader *reader;
	StringInfoData record;

	Tuplesortstate *sort;   /* NULL: not in use */
	TupleDesc desc;         /* columns: the codes, then the row as bytes */
	TupleTableSlot *slot;   /* to write */
	TupleTableSlot *sorted; /* to read */

	uint64 spilled_bytes;
	bool tuplesorted;
} OrderedFeed;

/* ---- partitions --------------------------------------------------------- */

/* Writes the rows of a batch to the partitions, by the hashes of their keys. */
static void
partition_batch(OrderedFeed *feed, const Batch *batch)
{
	const uint64 *hashes = row_store_key_hashes(feed->store, batch);

	for (int i = 0; i < batch->nrows; i++)
	{
		row_record_write(&feed->record, feed->spec, batch, i);
		partition_write_row(feed->out, hashes[i], &feed->record);
	}
}

/* Ends writing to the partitions, if any, and adds them to the list of pending ones. */
static void
finish_partitions(OrderedFeed *feed)
{
	if (!feed->out)
		return;
	feed->spilled_bytes += feed->out->bytes;
	partition_set_finish(feed->out, &feed->pending);
	feed->out = NULL;
}

/* ---- tuplesort ---------------------------------------------------------- */

/* Begins a tuplesort, for rows that cannot be partitioned (further). */
static void
begin_tuplesort(OrderedFeed *feed)
{
	int ncodes = row_store_ncodes(feed->store);
	AttrNumber *atts = palloc(ncodes * sizeof(AttrNumber));
	Oid *ops = palloc(ncodes * sizeof(Oid));
	Oid *collations = palloc0(ncodes * sizeof(Oid));
	bool *nulls_first = palloc0(ncodes * sizeof(bool));

	if (!feed->desc)
	{
		feed->desc = CreateTemplateTupleDesc(ncodes + 1);
		for (int c = 0; c < ncodes; c++)
			TupleDescInitEntry(feed->desc, c + 1, "code", INT8OID, -1, 0);
		TupleDescInitEntry(feed->desc, ncodes + 1, "row", BYTEAOID, -1, 0);
		compat_finalize_tuple_desc(feed->desc);
		feed->slot = MakeSingleTupleTableSlot(feed->desc, &TTSOpsVirtual);
		feed->sorted = MakeSingleTupleTableSlot(feed->desc, &TTSOpsMinimalTuple);
	}
	for (int c = 0; c < ncodes; c++)
	{
		atts[c] = c + 1;
		ops[c] = CODE_ORDER;
	}
	feed->tuplesorted = true;
	feed->sort = tuplesort_begin_heap(feed->desc, ncodes, atts, ops, collations, nulls_first,
									  (int) Min(feed->mem_limit / 1024, MAX_KILOBYTES), NULL,
									  TUPLESORT_NONE);
}

/* Adds the rows of a batch to the tuplesort: their codes, and each row as bytes. */
static void
tuplesort_batch(OrderedFeed *feed, const Batch *batch)
{
	uint64 **codes = row_store_codes(feed->store, batch);
	int ncodes = row_store_ncodes(feed->store);
	TupleTableSlot *slot = feed->slot;

	for (int i = 0; i < batch->nrows; i++)
	{
		ExecClearTuple(slot);
		memset(slot->tts_isnull, 0, (ncodes + 1) * sizeof(bool));
		for (int c = 0; c < ncodes; c++)
			slot->tts_values[c] = Int64GetDatum((int64) (codes[c][i] ^ UINT64CONST(1) << 63));
		row_record_write(&feed->record, feed->spec, batch, i);
		slot->tts_values[ncodes] =
			PointerGetDatum(cstring_to_text_with_len(feed->record.data, feed->record.len));
		ExecStoreVirtualTuple(slot);
		tuplesort_puttupleslot(feed->sort, slot);
		pfree(DatumGetPointer(slot->tts_values[ncodes]));
	}
}

/*
 * Returns the next batch of the tuplesort's rows. After the last one ends the tuplesort and
 * returns NULL.
 */
static Batch *
next_tuplesorted(OrderedFeed *feed)
{
	RowReader *reader = feed->reader;
	int att = row_store_ncodes(feed->store) + 1;

	row_reader_begin(reader);
	while (!row_reader_full(reader) &&
		   tuplesort_gettupleslot(feed->sort, true, false, feed->sorted, NULL))
	{
		bool isnull;
		Datum row = slot_getattr(feed->sorted, att, &isnull);

		row_reader_add(reader, VARDATA_ANY(DatumGetPointer(row)));
	}
	if (reader->batch.nrows > 0)
		return &reader->batch;
	tuplesort_end(feed->sort);
	feed->sort = NULL;
	return NULL;
}

/* ---- loading ------------------------------------------------------------ */

/*
 * Moves the rows of the store, which exceeds the memory limit, to partitions or a tuplesort.
 * Later rows of this load go there directly.
 */
static void
leave_memory(OrderedFeed *feed)
{
	Batch *batch;

	if (feed->spec->nkeys == 0 || feed->level >= MAX_LEVEL)
		begin_tuplesort(feed);
	else
	{
		size_t n = Min(feed->mem_limit / 8 / BLCKSZ, MAX_PARTITIONS);

		feed->out = partition_set_create(feed->cxt, Max((int) n, MIN_PARTITIONS), feed->level);
	}
	for (int64 from = 0; (batch = row_store_batch(feed->store, from)) != NULL; from += batch->nrows)
	{
		if (feed->sort)
			tuplesort_batch(feed, batch);
		else
			partition_batch(feed, batch);
	}
	/* Codes of Datum keys stay: rows in the tuplesort have them. */
	row_store_clear_rows(feed->store);
}

/* Adds a batch to the store, or to the partitions or tuplesort that have taken its place. */
static void
load_batch(OrderedFeed *feed, const Batch *batch)
{
	CHECK_FOR_INTERRUPTS();
	if (feed->sort)
		tuplesort_batch(feed, batch);
	else if (feed->out)
		partition_batch(feed, batch);
	else
	{
		row_store_append(feed->store, batch);
		if (row_store_memory(feed->store) > feed->mem_limit ||
			!row_store_has_room(feed->store, feed->batch_rows))
			leave_memory(feed);
	}
}

/* Sorts the rows of this load, after the last one. */
static void
finish_load(OrderedFeed *feed)
{
	progress_phase(PROGRESS_SORTING);
	finish_partitions(feed);
	feed->next = 0;
	if (feed->sort)
		tuplesort_performsort(feed->sort);
	else
		row_store_sort(feed->store);
}

/* Loads the next pending partition; returns false if there is none. */
static bool
load_partition(OrderedFeed *feed)
{
	const Batch *batch;

	if (!partition_list_pop(&feed->pending, &feed->in))
		return false;
	row_store_clear(feed->store);
	feed->level = feed->in.level;
	while ((batch = row_reader_next(feed->reader, feed->in.rows)) != NULL)
		load_batch(feed, batch);
	partition_close(&feed->in);
	finish_load(feed);
	return true;
}

/*
 * Loads all rows of the inner feed. The inner feed runs in the caller's memory context, in
 * which its scans may begin.
 */
static void
load_inner(OrderedFeed *feed)
{
	MemoryContext old;
	Batch *batch;

	while ((batch = feed->inner->ops->next(feed->inner)) != NULL)
	{
		old = MemoryContextSwitchTo(feed->cxt);
		load_batch(feed, batch);
		MemoryContextSwitchTo(old);
	}
	feed->loaded = true;
	old = MemoryContextSwitchTo(feed->cxt);
	finish_load(feed);
	MemoryContextSwitchTo(old);
}

/* FeedOps.next: returns the next batch of sorted rows, or NULL at the end. */
static Batch *
ordered_next(Feed *base)
{
	OrderedFeed *feed = (OrderedFeed *) base;
	MemoryContext old;
	Batch *batch;

	if (!feed->loaded)
		load_inner(feed);
	old = MemoryContextSwitchTo(feed->cxt);
	for (;;)
	{
		batch = feed->sort ? next_tuplesorted(feed) : row_store_gather(feed->store, feed->next);
		if (batch || !load_partition(feed))
			break;
	}
	MemoryContextSwitchTo(old);
	if (!batch)
		return NULL;
	feed->next += batch->nrows;
	feed->base.rows += batch->nrows;
	feed->base.batches++;
	return batch;
}

/* ---- rescanning, ending, opening ---------------------------------------------- */

/* Frees the rows that were read, in memory and in files. */
static void
discard_rows(OrderedFeed *feed)
{
	finish_partitions(feed);
	partition_list_clear(&feed->pending);
	partition_close(&feed->in);
	if (feed->sort)
		tuplesort_end(feed->sort);
	feed->sort = NULL;
	row_store_clear(feed->store);
}

/* FeedOps.rescan: makes the feed read and sort its rows again. */
static void
ordered_rescan(Feed *base)
{
	OrderedFeed *feed = (OrderedFeed *) base;

	discard_rows(feed);
	feed->inner->ops->rescan(feed->inner);
	feed->loaded = false;
	feed->level = 0;
	feed->base.rows = feed->base.batches = 0;
}

/* FeedOps.end: ends the inner feed too, and frees this one. */
static void
ordered_end(Feed *base)
{
	OrderedFeed *feed = (OrderedFeed *) base;

	discard_rows(feed);
	if (feed->slot)
	{
		ExecDropSingleTupleTableSlot(feed->slot);
		ExecDropSingleTupleTableSlot(feed->sorted);
	}
	feed->inner->ops->end(feed->inner);
	MemoryContextDelete(feed->cxt);
}

/* FeedOps.explain: the inner feed's lines, and how rows were sorted. */
static void
ordered_explain(Feed *base, const FeedStats *stats, ExplainState *es)
{
	OrderedFeed *feed = (OrderedFeed *) base;

	feed->inner->ops->explain(feed->inner, stats, es);
	if (!es->analyze || !feed->loaded)
		ExplainPropertyText("Sort", "by keys and order", es);
	else if (feed->spilled_bytes == 0)
		ExplainPropertyText("Sort", feed->tuplesorted ? "tuplesort" : "in memory", es);
	else
		ExplainPropertyText("Sort",
							psprintf("%s of partitions, " UINT64_FORMAT " kB in files",
									 feed->tuplesorted ? "tuplesort" : "in memory",
									 (feed->spilled_bytes + 1023) / 1024),
							es);
}

static const FeedOps ordered_ops = {
	.next = ordered_next,
	.rescan = ordered_rescan,
	.end = ordered_end,
	.explain = ordered_explain,
};

Feed *
feed_ordered_open(Feed *inner, const AggSpec *spec, size_t mem_limit, int batch_rows)
{
	MemoryContext cxt =
		AllocSetContextCreate(CurrentMemoryContext, "gpuagg ordered feed", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(cxt);
	OrderedFeed *feed = palloc0(sizeof(OrderedFeed));

	feed->base.ops = &ordered_ops;
	feed->inner = inner;
	feed->spec = spec;
	feed->mem_limit = mem_limit;
	feed->batch_rows = batch_rows;
	feed->cxt = cxt;
	feed->store = row_store_create(cxt, spec, batch_rows);
	feed->reader = row_reader_create(spec, batch_rows);
	initStringInfo(&feed->record);
	MemoryContextSwitchTo(old);
	return &feed->base;
}
