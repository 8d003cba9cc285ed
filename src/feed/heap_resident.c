/*
 * heap_resident.c
 *	  Rows of the column cache that an engine takes by name.
 *
 * Blocks are proved for the query's snapshot when their rows are collected, before the first row is read.  Whatever
 * happens to them after that, these rows are what the snapshot sees; so the blocks are remembered as taken, and the
 * feed passes them by.  All other blocks come as they would without: those of a range of which some are taken from
 * the heap.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "utils/memutils.h"

#include "common/compat.h"
#include "feed/heap.h"
#include "feed/heap_resident.h"

/* The most runs that are collected: their list travels in a buffer of the session. */
#define MOST_RUNS 200000

typedef struct Collector
{
	FeedResident *resident;
	HeapCached *cached;
	uint32		room;			/* in resident->runs */
	MemoryContext cxt;
} Collector;

static HeapCached *
cached_of(const FeedResident *resident)
{
	return ((HeapFeed *) resident->feed)->table->cached;
}

static void
add_run(Collector *c, uint32 range, const CacheRange *contents, uint32 first, uint32 nrows)
{
	FeedResident *resident = c->resident;
	WireRun    *run;

	if (resident->nruns == c->room)
	{
		c->room = Max(c->room * 2, 64);
		resident->runs = resident->runs ? repalloc(resident->runs, c->room * sizeof(WireRun)) :
			MemoryContextAlloc(c->cxt, c->room * sizeof(WireRun));
	}
	run = &resident->runs[resident->nruns++];
	memset(run, 0, sizeof(*run));
	run->stamp = contents->stamp;
	run->range = range;
	run->first = first;
	run->nrows = nrows;
	resident->nrows += nrows;
}

/* The runs of rows of the pinned range's proved blocks. */
static void
add_runs(Collector *c, uint32 range, const CacheBlocks *proved)
{
	const CacheRange *contents = c->cached->pin->range;
	uint32		first = 0;
	uint32		n = 0;

	if (cache_blocks_all(proved, contents->nblocks))
	{
		add_run(c, range, contents, 0, contents->nrows);
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
			add_run(c, range, contents, first, n);
		n = 0;
	}
}

static uint32
proved_rows(const CacheRange *contents, const CacheBlocks *proved)
{
	uint32		n = 0;

	if (cache_blocks_all(proved, contents->nblocks))
		return contents->nrows;
	for (int i = 0; i < contents->nblocks; i++)
		if (cache_blocks_has(proved, i))
			n += contents->rows[i + 1] - contents->rows[i];
	return n;
}

/* Collects the rows of the pinned range. */
static void
collect_range(Collector *c, uint32 range, int nblocks)
{
	HeapCached *cached = c->cached;
	CacheBlocks proved;
	uint32		nrows;

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
		add_runs(c, range, &proved);
}

void
feed_resident_collect(FeedResident *resident, ResidentAccept accept, void *arg)
{
	HeapCached *cached = cached_of(resident);
	uint32		nranges = (cached->nblocks + CACHE_RANGE_BLOCKS - 1) / CACHE_RANGE_BLOCKS;
	Collector	c = {resident, cached, 0, cached->cxt};

	cached->taken = MemoryContextAllocExtended(cached->cxt, Max(nranges, 1) * sizeof(CacheBlocks),
											   MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	for (uint32 range = 0; range < nranges && resident->nruns < MOST_RUNS; range++)
	{
		CHECK_FOR_INTERRUPTS();
		cached->pin = cache_pin(cached->table, range, cached->ncols, cached->cols);
		if (cached->pin == NULL)
			continue;
		if (!heap_cached_lacks_chunks(cached) && accept(arg, cached->pin->chunks))
			collect_range(&c, range, Min(CACHE_RANGE_BLOCKS, cached->nblocks - range * CACHE_RANGE_BLOCKS));
		heap_cached_unpin(cached);
	}
}

bool
feed_resident_complete(const FeedResident *resident)
{
	const HeapCached *cached = cached_of(resident);

	for (uint32 first = 0; first < cached->nblocks; first += CACHE_RANGE_BLOCKS)
		if (!cache_blocks_all(&cached->taken[first / CACHE_RANGE_BLOCKS], Min(CACHE_RANGE_BLOCKS, cached->nblocks - first)))
			return false;
	return true;
}

void
feed_resident_keep(FeedResident *resident, const bool *keep)
{
	HeapCached *cached = cached_of(resident);
	uint32		n = 0;

	for (uint32 i = 0; i < resident->nruns; i++)
		if (!keep[i])
			memset(&cached->taken[resident->runs[i].range], 0, sizeof(CacheBlocks));
	resident->nrows = 0;
	for (uint32 i = 0; i < resident->nruns; i++)
	{
		if (!cache_blocks_any(&cached->taken[resident->runs[i].range]))
			continue;
		resident->runs[n++] = resident->runs[i];
		resident->nrows += resident->runs[i].nrows;
	}
	resident->nruns = n;
}

void
feed_resident_taken(FeedResident *resident)
{
	HeapFeed   *feed = (HeapFeed *) resident->feed;
	Instrumentation *instrument = feed->child->instrument;
	HeapCached *cached = feed->table->cached;

	for (uint32 i = 0; i < resident->nruns; i++)
	{
		const WireRun *run = &resident->runs[i];

		for (int w = 0; (i == 0 || run->range != run[-1].range) && w < CACHE_BLOCK_WORDS; w++)
			cached->stats->resident += pg_popcount64(cached->taken[run->range].word[w]);
	}
	compat_count_tuples(feed->table->scan->rel, resident->nrows);
	/* how many rows pass a condition is not known here */
	if (instrument && feed->table->nquals == 0)
	{
		InstrStartNode(instrument);
		InstrStopNode(instrument, resident->nrows);
	}
}

CachePin *
feed_resident_pin(FeedResident *resident, const WireRun *run)
{
	HeapCached *cached = cached_of(resident);
	CachePin   *pin = cache_pin(cached->table, run->range, cached->ncols, cached->cols);
	bool		lacks = false;

	if (pin == NULL)
		return NULL;
	for (int c = 0; c < cached->ncols; c++)
		lacks |= pin->chunks[c] == NULL;
	if (!lacks && pin->range->stamp == run->stamp)
		return pin;
	cache_unpin(pin);
	return NULL;
}

void
feed_resident_free(FeedResident *resident)
{
	if (resident->runs)
		pfree(resident->runs);
	pfree(resident->constants);
	pfree(resident->constant_nulls);
	pfree(resident->outputs);
	pfree(resident);
}

/* Outputs that are constants: their values. */
static void
set_constants(HeapFeed *feed, FeedResident *resident)
{
	int			n = feed->batch.ncols;

	resident->constants = MemoryContextAllocZero(feed->cxt, (n + 1) * sizeof(Datum));
	resident->constant_nulls = MemoryContextAllocZero(feed->cxt, n + 1);
	for (int c = 0; c < n; c++)
		if (feed->outputs[c].constant)
			resident->constants[c] = ExecEvalExprSwitchContext(feed->outputs[c].constant, feed->econtext,
															   &resident->constant_nulls[c]);
}

FeedResident *
heap_resident_create(HeapFeed *feed)
{
	HeapTable  *table = feed->table;
	FeedResident *resident = MemoryContextAllocZero(feed->cxt, sizeof(FeedResident));

	resident->feed = &feed->base;
	resident->table = cache_table_id(table->cached->table);
	resident->cols = table->cached->cols;
	resident->slots = table->cached->slots;
	resident->set = table->set;
	resident->nquals = table->nquals;
	resident->quals = table->quals;
	resident->checks = table->checks;
	resident->outputs = MemoryContextAllocZero(feed->cxt, (feed->batch.ncols + 1) * sizeof(ExprRoot *));
	for (int c = 0; c < feed->batch.ncols; c++)
		resident->outputs[c] = table->outputs[c].root;
	set_constants(feed, resident);
	return resident;
}
