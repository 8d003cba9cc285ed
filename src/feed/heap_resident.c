/*
 * heap_resident.c
 *
 * Offers cached rows to an engine that has copies of their columns; see heap_resident.h.
 *
 * Blocks are proved for the query's snapshot when their rows are collected, before the first row
 * is read. Whatever happens to them afterwards, these rows are what the snapshot sees. So the
 * blocks are remembered as taken, and the feed skips them. All other blocks come in batches; those
 * of a partly taken range are read from the heap.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "utils/memutils.h"

#include "cache/span.h"
#include "common/compat.h"
#include "feed/heap.h"
#include "feed/heap_resident.h"

/* Most row ranges that are collected: the list has to fit into a buffer of the session. */
#define MOST_ROW_RANGES 200000

typedef struct Collector
{
	FeedResident *resident;
	HeapCached *cached;
	ResidentAccept accept;
	void *arg;
} Collector;

/* Returns the reader of the table whose rows are offered. */
static HeapCached *
current_cached(const FeedResident *resident)
{
	return ((HeapFeed *) resident->feed)->table->cached;
}

/*
 * Appends nrows rows of a cached range, from row `first` on, to the list. range: its number;
 * contents: its descriptor.
 */
static void
add_row_range(FeedResident *resident, uint32 range, const CacheRange *contents, uint32 first,
			  uint32 nrows)
{
	WireRowRange *row_range;

	if (resident->nrow_ranges == resident->row_ranges_room)
	{
		resident->row_ranges_room = Max(resident->row_ranges_room * 2, 64);
		resident->row_ranges = resident->row_ranges ?
			repalloc(resident->row_ranges, resident->row_ranges_room * sizeof(WireRowRange)) :
			MemoryContextAlloc(resident->cxt, resident->row_ranges_room * sizeof(WireRowRange));
	}
	row_range = &resident->row_ranges[resident->nrow_ranges++];
	memset(row_range, 0, sizeof(*row_range));
	row_range->stamp = contents->stamp;
	row_range->range = range;
	row_range->first = first;
	row_range->nrows = nrows;
	resident->nrows += nrows;
}

/*
 * Adds a span. row_range: where its row ranges begin in the list; WIRE_NO_ARRAY: the span stands
 * for them.
 */
static void
add_span(FeedResident *resident, const CacheSpan *span, uint32 row_range)
{
	WireSpan *out;

	if (resident->nspans == resident->spans_room)
	{
		uint32 room = Max(resident->spans_room * 2, 16);

		resident->spans = resident->spans ?
			repalloc(resident->spans, room * sizeof(WireSpan)) :
			MemoryContextAlloc(resident->cxt, room * sizeof(WireSpan));
		resident->digests = resident->digests ?
			repalloc(resident->digests, room * sizeof(uint64)) :
			MemoryContextAlloc(resident->cxt, room * sizeof(uint64));
		resident->spans_room = room;
	}
	resident->digests[resident->nspans] = span->digest;
	out = &resident->spans[resident->nspans++];
	memset(out, 0, sizeof(*out));
	out->id = span->id;
	out->nrows = span->nrows;
	out->first = span->first / CACHE_RANGE_BLOCKS;
	out->nranges = span->nranges;
	out->row_range = row_range;
	out->nrow_ranges = row_range == WIRE_NO_ARRAY ? 0 : resident->nrow_ranges - row_range;
}

/*
 * Adds the rows of the pinned range's proved blocks, one row range for each group of consecutive
 * blocks.
 */
static void
add_row_ranges(Collector *c, uint32 range, const CacheBlocks *proved)
{
	const CacheRange *contents = c->cached->pin->range;
	uint32 first = 0;
	uint32 n = 0;

	if (cache_blocks_all(proved, contents->nblocks))
	{
		add_row_range(c->resident, range, contents, 0, contents->nrows);
		return;
	}
	for (int i = 0; i <= contents->nblocks; i++)
	{
		if (i < contents->nblocks && cache_blocks_has(proved, i))
		{
			if (n == 0)
				first = contents->rows[i];
			n += contents->rows[i + 1] - contents->rows[i];
			continue;
		}
		if (n > 0)
			add_row_range(c->resident, range, contents, first, n);
		n = 0;
	}
}

/* Returns how many rows a range's proved blocks have. */
static uint32
proved_rows(const CacheRange *contents, const CacheBlocks *proved)
{
	uint32 n = 0;

	if (cache_blocks_all(proved, contents->nblocks))
		return contents->nrows;
	for (int i = 0; i < contents->nblocks; i++)
		if (cache_blocks_has(proved, i))
			n += contents->rows[i + 1] - contents->rows[i];
	return n;
}

/*
 * Collects the proved rows of the pinned range, and marks their blocks as taken. If the quals
 * refute the range, its rows are only counted.
 */
static void
collect_range(Collector *c, uint32 range, int nblocks)
{
	HeapCached *cached = c->cached;
	CacheBlocks proved;
	uint32 nrows;

	proof_range(&cached->proof, cached->pin, 0, nblocks, &proved);
	nrows = proved_rows(cached->pin->range, &proved);
	if (nrows == 0)
		return;
	cached->taken[range] = proved;
	cached->missing = Max(cached->missing, nblocks - cached->pin->range->nblocks);
	if (cached->skip && heap_skip_refutes(cached->skip, cached->pin->chunks, cached->slots))
	{
		for (int i = 0; i < nblocks; i++)
			cached->stats->skipped += cache_blocks_has(&proved, i);
		InstrCountFiltered1(cached->scan->node, nrows);
		compat_count_tuples(cached->scan->rel, nrows);
	}
	else
		add_row_ranges(c, range, &proved);
}

/* ---- spans ----------------------------------------------------------------- */

/* Marks all blocks of nranges ranges, from range `first` on, as taken or as not taken. */
static void
mark_span(HeapCached *cached, uint32 first, uint32 nranges, bool taken)
{
	BlockNumber left = cached->nblocks - first * CACHE_RANGE_BLOCKS;

	for (uint32 r = 0; r < nranges; r++, left -= Min(left, CACHE_RANGE_BLOCKS))
		for (int w = 0; w < CACHE_BLOCK_WORDS; w++)
			cached->taken[first + r].word[w] =
				taken ? cache_blocks_below(Min(left, CACHE_RANGE_BLOCKS) - w * 64) : 0;
}

/*
 * Sets out[] to what the chunks of each column have in common in the span; returns false if
 * that is unknown for one column. The entries point to `chunks`.
 */
static bool
span_chunks(const HeapCached *cached, const CacheSpan *span, CacheChunk *chunks,
			const CacheChunk **out)
{
	for (int i = 0; i < cached->ncols; i++)
	{
		if (!cache_span_chunk(span, &cached->cols[i], &chunks[i]))
			return false;
		out[i] = &chunks[i];
	}
	return true;
}

/*
 * Collects all rows of a span by its summary; returns false if that is not possible. The quals may
 * refute the span as a whole. Its ranges are not tested one by one: a GPU that has their columns
 * reads them in less time (see feed_resident_refute()).
 */
static bool
collect_span(Collector *c, uint32 number)
{
	HeapCached *cached = c->cached;
	CacheSpan span;
	CacheChunk chunks[CACHE_SPAN_COLUMNS];
	const CacheChunk *of[CACHE_SPAN_COLUMNS];

	if (cached->ncols > CACHE_SPAN_COLUMNS || c->resident->nspans == WIRE_MAX_SPANS ||
		!cache_span_read(cached->table, number, &span) ||
		span.nblocks != Min(CACHE_SPAN_BLOCKS, cached->nblocks - span.first) ||
		!span_chunks(cached, &span, chunks, of))
		return false;
	/* Core evaluates quals only if there are rows. */
	if (!proof_span(&cached->proof, &span))
		return false;
	if (cached->skip && span.nrows > 0 && heap_skip_refutes(cached->skip, of, cached->slots))
	{
		cached->stats->skipped += span.nblocks;
		InstrCountFiltered1(cached->scan->node, span.nrows);
		compat_count_tuples(cached->scan->rel, span.nrows);
	}
	else if (span.nrows > 0)
	{
		if (!c->accept(c->arg, of))
		{
			cached->proof.counts.by_map -= span.nblocks;
			return false;
		}
		add_span(c->resident, &span, WIRE_NO_ARRAY);
		c->resident->nrows += span.nrows;
	}
	mark_span(cached, number * CACHE_SPAN_RANGES, span.nranges, true);
	cache_count_hits(cached->table, span.nranges, cached->ncols, cached->cols);
	return true;
}

/*
 * Collects the rows of a span range by range, and publishes a summary of the span if all ranges
 * are whole.
 */
static void
collect_ranges(Collector *c, uint32 number, uint32 nranges)
{
	HeapCached *cached = c->cached;
	FeedResident *resident = c->resident;
	uint32 first = number * CACHE_SPAN_RANGES;
	uint32 row_range = resident->nrow_ranges;
	bool whole = true;
	CacheSpan span;

	cache_span_begin(&span, number, cached->ncols, cached->cols);
	for (uint32 range = first;
		 range < Min(first + CACHE_SPAN_RANGES, nranges) && resident->nrow_ranges < MOST_ROW_RANGES;
		 range++)
	{
		bool accepted = false;

		CHECK_FOR_INTERRUPTS();
		cached->pin = cache_pin(cached->table, range, cached->ncols, cached->cols);
		if (cached->pin && !heap_cached_lacks_chunks(cached) &&
			c->accept(c->arg, cached->pin->chunks))
		{
			collect_range(c, range,
						  Min(CACHE_RANGE_BLOCKS, cached->nblocks - range * CACHE_RANGE_BLOCKS));
			accepted = true;
		}
		whole = whole && accepted && cache_span_add(&span, cached->pin);
		heap_cached_unpin(cached);
	}
	if (!whole || span.nblocks != Min(CACHE_SPAN_BLOCKS, cached->nblocks - span.first))
		return;
	cache_span_publish(cached->table, &span);
	if (resident->nrow_ranges - row_range == span.nranges && resident->nspans < WIRE_MAX_SPANS)
		add_span(resident, &span, row_range);
}

void
feed_resident_collect(FeedResident *resident, ResidentAccept accept, void *arg)
{
	HeapCached *cached = current_cached(resident);
	uint32 nranges = (cached->nblocks + CACHE_RANGE_BLOCKS - 1) / CACHE_RANGE_BLOCKS;
	Collector c = {resident, cached, accept, arg};

	cached->taken = MemoryContextAllocExtended(cached->cxt, Max(nranges, 1) * sizeof(CacheBlocks),
											   MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	for (uint32 number = 0; number * CACHE_SPAN_RANGES < nranges; number++)
		if (!collect_span(&c, number))
			collect_ranges(&c, number, nranges);
}

/* ---- what becomes of the rows -------------------------------------------------- */

/* Appends the row ranges of a span; returns false if the span's ranges have been replaced. */
static bool
list_row_ranges(FeedResident *resident, const WireSpan *span, uint64 expected)
{
	HeapCached *cached = current_cached(resident);
	uint64 digest = 0;

	for (uint32 range = span->first; range < span->first + span->nranges; range++)
	{
		CHECK_FOR_INTERRUPTS();
		cached->pin = cache_pin(cached->table, range, 0, NULL);
		if (cached->pin == NULL)
			return false;
		digest = cache_span_digest(digest, cached->pin->range->stamp);
		if (cached->pin->range->nrows > 0)
			add_row_range(resident, range, cached->pin->range, 0, cached->pin->range->nrows);
		heap_cached_unpin(cached);
	}
	return digest == expected && resident->nrow_ranges <= MOST_ROW_RANGES;
}

/* Compares for qsort(): by range, then by first row. */
static int
compare_row_ranges(const void *a, const void *b)
{
	const WireRowRange *x = a;
	const WireRowRange *y = b;

	if (x->range != y->range)
		return x->range < y->range ? -1 : 1;
	return x->first < y->first ? -1 : x->first > y->first;
}

/* Returns the index of the first row range whose range is `range` or a later one. */
static uint32
find_row_range(const FeedResident *resident, uint32 range)
{
	uint32 left = 0, right = resident->nrow_ranges;

	while (left < right)
	{
		uint32 mid = left + (right - left) / 2;

		if (resident->row_ranges[mid].range < range)
			left = mid + 1;
		else
			right = mid;
	}
	return left;
}

bool
heap_resident_complete(const HeapCached *cached)
{
	for (uint32 first = 0; first < cached->nblocks; first += CACHE_RANGE_BLOCKS)
		if (!cache_blocks_all(&cached->taken[first / CACHE_RANGE_BLOCKS],
							  Min(CACHE_RANGE_BLOCKS, cached->nblocks - first)))
			return false;
	return true;
}

bool
feed_resident_complete(const FeedResident *resident)
{
	return !resident->follows && heap_resident_complete(current_cached(resident));
}

void
feed_resident_expand(FeedResident *resident, const bool *expand)
{
	uint32 n = 0;

	for (uint32 i = 0; i < resident->nspans; i++)
	{
		WireSpan span = resident->spans[i];
		uint32 before = resident->nrow_ranges;

		if (expand[i] && span.row_range == WIRE_NO_ARRAY)
		{
			resident->nrows -= span.nrows;
			if (!list_row_ranges(resident, &span, resident->digests[i]))
			{
				for (; resident->nrow_ranges > before; resident->nrow_ranges--)
					resident->nrows -= resident->row_ranges[resident->nrow_ranges - 1].nrows;
				mark_span(current_cached(resident), span.first, span.nranges, false);
				continue;
			}
			span.row_range = before;
			span.nrow_ranges = resident->nrow_ranges - before;
		}
		resident->digests[n] = resident->digests[i];
		resident->spans[n++] = span;
	}
	resident->nspans = n;
	if (resident->nrow_ranges > 0)
		qsort(resident->row_ranges, resident->nrow_ranges, sizeof(WireRowRange),
			  compare_row_ranges);
	for (uint32 i = 0; i < n; i++)
		if (resident->spans[i].row_range != WIRE_NO_ARRAY)
			resident->spans[i].row_range = find_row_range(resident, resident->spans[i].first);
}

/*
 * Removes spans whose row ranges are listed from the list of spans; their row ranges stay. The
 * other spans stay if `keep` is set, and are given back otherwise. Returns the number of rows
 * of spans that stay.
 */
static uint64
keep_spans(FeedResident *resident, bool keep)
{
	uint64 nrows = 0;
	uint32 n = 0;

	for (uint32 i = 0; i < resident->nspans; i++)
	{
		WireSpan span = resident->spans[i];

		if (span.row_range != WIRE_NO_ARRAY)
			continue;
		if (!keep)
		{
			mark_span(current_cached(resident), span.first, span.nranges, false);
			continue;
		}
		nrows += span.nrows;
		resident->digests[n] = resident->digests[i];
		resident->spans[n++] = span;
	}
	resident->nspans = n;
	return nrows;
}

/*
 * Sets refuted[i] if lacking[i] is not 0 and row range i is a whole range that the quals
 * refute; clears it otherwise. Returns whether that is more than half of the cached ones with
 * lacking[] not 0.
 */
static bool
refute_row_ranges(FeedResident *resident, const uint64 *lacking, bool *refuted)
{
	HeapCached *cached = current_cached(resident);
	uint32 nlacking = 0, nrefuted = 0;

	for (uint32 i = 0; i < resident->nrow_ranges; i++)
	{
		CachePin *pin =
			lacking[i] != 0 ? feed_resident_pin(resident, &resident->row_ranges[i]) : NULL;

		CHECK_FOR_INTERRUPTS();
		refuted[i] = false;
		if (pin == NULL)
			continue;
		refuted[i] = resident->row_ranges[i].nrows == pin->range->nrows &&
			heap_skip_refutes(cached->skip, pin->chunks, cached->slots);
		nlacking++;
		nrefuted += refuted[i];
		cache_unpin(pin);
	}
	return nrefuted > nlacking / 2;
}

void
feed_resident_refute(FeedResident *resident, uint64 *lacking)
{
	HeapCached *cached = current_cached(resident);
	bool *refuted = palloc(resident->nrow_ranges + 1);
	uint32 n = 0;

	if (cached->skip == NULL || !refute_row_ranges(resident, lacking, refuted))
		return;
	/* Lists that were sent are not sent again. */
	keep_spans(resident, true);
	for (uint32 i = 0; i < resident->nrow_ranges; i++)
	{
		WireRowRange row_range = resident->row_ranges[i];

		if (refuted[i])
		{
			for (int w = 0; w < CACHE_BLOCK_WORDS; w++)
				cached->stats->skipped += pg_popcount64(cached->taken[row_range.range].word[w]);
			InstrCountFiltered1(cached->scan->node, row_range.nrows);
			compat_count_tuples(cached->scan->rel, row_range.nrows);
			resident->nrows -= row_range.nrows;
			continue;
		}
		lacking[n] = lacking[i];
		resident->row_ranges[n++] = row_range;
	}
	resident->nrow_ranges = n;
}

void
feed_resident_keep(FeedResident *resident, const bool *keep, bool spans)
{
	HeapCached *cached = current_cached(resident);
	uint32 n = 0;

	for (uint32 i = 0; i < resident->nrow_ranges; i++)
		if (!keep[i])
			memset(&cached->taken[resident->row_ranges[i].range], 0, sizeof(CacheBlocks));
	resident->nrows = keep_spans(resident, spans);
	for (uint32 i = 0; i < resident->nrow_ranges; i++)
	{
		if (!cache_blocks_any(&cached->taken[resident->row_ranges[i].range]))
			continue;
		resident->row_ranges[n++] = resident->row_ranges[i];
		resident->nrows += resident->row_ranges[i].nrows;
	}
	resident->nrow_ranges = n;
}

/* Returns the number of blocks whose rows the engine has taken. */
static uint64
count_blocks(const FeedResident *resident)
{
	const HeapCached *cached = current_cached(resident);
	uint64 n = 0;

	for (uint32 i = 0; i < resident->nrow_ranges; i++)
	{
		const WireRowRange *row_range = &resident->row_ranges[i];

		for (int w = 0;
			 (i == 0 || row_range->range != row_range[-1].range) && w < CACHE_BLOCK_WORDS; w++)
			n += pg_popcount64(cached->taken[row_range->range].word[w]);
	}
	for (uint32 i = 0; i < resident->nspans; i++)
	{
		const WireSpan *span = &resident->spans[i];

		if (span->row_range == WIRE_NO_ARRAY)
			n += Min(span->nranges * CACHE_RANGE_BLOCKS,
					 cached->nblocks - span->first * CACHE_RANGE_BLOCKS);
	}
	return n;
}

/* Counts rows in the instrumentation of a plan node that is not executed. */
static void
count_rows(CompatInstrumentation *instrument, uint64 nrows)
{
	if (instrument == NULL)
		return;
	InstrStartNode(instrument);
	InstrStopNode(instrument, nrows);
}

void
feed_resident_taken(FeedResident *resident)
{
	HeapFeed *feed = (HeapFeed *) resident->feed;

	feed->table->cached->stats->resident += count_blocks(resident);
	feed->table->cached->stats->resident_tables++;
	compat_count_tuples(feed->table->scan->rel, resident->nrows);
	/* With quals, the number of rows that pass is unknown here. */
	if (feed->table->nquals > 0)
		return;
	count_rows(feed->child->instrument, resident->nrows);
	if (feed->append)
		count_rows(feed->table->scan->node->ps.instrument, resident->nrows);
}

CachePin *
feed_resident_pin(FeedResident *resident, const WireRowRange *row_range)
{
	HeapCached *cached = current_cached(resident);
	CachePin *pin = cache_pin(cached->table, row_range->range, cached->ncols, cached->cols);
	bool lacks = false;

	if (pin == NULL)
		return NULL;
	for (int c = 0; c < cached->ncols; c++)
		lacks |= pin->chunks[c] == NULL;
	if (!lacks && pin->range->stamp == row_range->stamp)
		return pin;
	cache_unpin(pin);
	return NULL;
}

void
feed_resident_free(FeedResident *resident)
{
	if (resident->row_ranges)
		pfree(resident->row_ranges);
	if (resident->spans)
		pfree(resident->spans);
	if (resident->digests)
		pfree(resident->digests);
	pfree(resident->constants);
	pfree(resident->constant_nulls);
	pfree(resident->outputs);
	if (resident->njoins > 0)
	{
		pfree(resident->joins);
		pfree(resident->inner_join);
		pfree(resident->inner_column);
	}
	pfree(resident);
}

/* Evaluates the outputs that are constants, and stores them in the offer. */
static void
set_constants(HeapFeed *feed, FeedResident *resident)
{
	int n = feed->batch.ncols;

	resident->constants = MemoryContextAllocZero(feed->cxt, (n + 1) * sizeof(Datum));
	resident->constant_nulls = MemoryContextAllocZero(feed->cxt, n + 1);
	for (int c = 0; c < n; c++)
		if (feed->outputs[c].constant)
			resident->constants[c] = ExecEvalExprSwitchContext(
				feed->outputs[c].constant, feed->econtext, &resident->constant_nulls[c]);
}

/* Describes the joins of the table, if there are any; returns NULL, or why it cannot be offered. */
static const char *
offer_joins(HeapFeed *feed, FeedResident *resident)
{
	MemoryContext old;
	const char *why;

	if (feed->joins == NULL)
		return NULL;
	old = MemoryContextSwitchTo(feed->cxt);
	why = heap_joins_offer(feed, feed->table, resident);
	MemoryContextSwitchTo(old);
	return why;
}

FeedResident *
heap_resident_create(HeapFeed *feed, const char **why)
{
	HeapTable *table = feed->table;
	FeedResident *resident = MemoryContextAllocZero(feed->cxt, sizeof(FeedResident));

	*why = offer_joins(feed, resident);
	if (*why)
	{
		if (resident->joins)
			pfree(resident->joins);
		pfree(resident);
		return NULL;
	}
	resident->feed = &feed->base;
	resident->cxt = feed->cxt;
	resident->table = cache_table_id(table->cached->table);
	resident->cols = table->cached->cols;
	resident->slots = table->cached->slots;
	resident->follows = feed->offer_left_rows;
	resident->alone = feed->append == NULL;
	resident->set = table->set;
	resident->nquals = table->nquals;
	resident->quals = table->quals;
	resident->checks = table->checks;
	resident->outputs =
		MemoryContextAllocZero(feed->cxt, (feed->batch.ncols + 1) * sizeof(ExprRoot *));
	for (int c = 0; c < feed->batch.ncols; c++)
		resident->outputs[c] = table->outputs[c].root;
	set_constants(feed, resident);
	return resident;
}
