/*
 * heap_cached.c
 *
 * Reads a table by way of the column cache: cached rows where they are proved to be current, and
 * heap pages for all other blocks.
 *
 * The table is read range by range, in block order (cache/cache.h). A cached range is used if it
 * has all columns that the query reads. Which of its blocks are unchanged is proved for the
 * query's snapshot (cache/proof.c). The rows of consecutive proved blocks take the place of a
 * page. All other blocks are read from the heap, in block order, so rows come in the order of a
 * sequential scan. A column that an earlier query has read as well is added to ranges that lack it
 * (heap_build.c).
 *
 * Participants of a parallel scan claim the blocks up to the end of a range, or of a part of a
 * cached one, by the counter of core's parallel scan, so some may use the cache and others not.
 *
 * Memory: a range stays pinned until the next one is read. After an error its pin is released with
 * the memory context, and pins of pages by the resource owner.
 */
#include "postgres.h"

#include "access/relscan.h"
#include "access/parallel.h"
#include "access/sysattr.h"
#include "access/tableam.h"
#include "common/pg_prng.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "storage/spin.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "cache/refresh.h"
#include "common/compat.h"
#include "feed/heap_cached.h"

/*
 * The cache does not serve queries that read more columns: building so many at a time takes much
 * memory.
 */
#define MAX_COLUMNS 100

/* Tables with fewer ranges are read in parts of these by the participants of a parallel scan. */
#define FEW_RANGES 8
#define PART_BLOCKS (CACHE_RANGE_BLOCKS / 4)

/* Most cached rows in a HeapPage: HeapRows.tuple has 16 bits. */
#define MAX_CACHED_ROWS 32768

/*
 * Returns the scale of the decimals that the set's vectors need of a column; -1 if they need
 * none.
 */
static int16
decimal_scale(const ExprSet *set, AttrNumber attno)
{
	for (const Vec *vec = set->vecs; vec; vec = vec->next)
		if (vec->attno == attno && vec->type == COLUMN_DEC)
			return vec->scale;
	return -1;
}

/* Chunks are read as the type that they have, as Datums, or for NULLs only. */
bool
heap_cached_fits(const HeapCached *cached, const ExprSet *set)
{
	for (const Vec *vec = set->vecs; vec; vec = vec->next)
	{
		ColumnType type;
		int16 scale;

		/* greater numbers are those of columns of lookups */
		if (vec->attno <= 0 || vec->attno > cached->natts || vec->type == COLUMN_DATUM)
			continue;
		type = heap_build_type(set->desc, &cached->cols[cached->slots[vec->attno - 1]], &scale);
		if ((vec->type != type || vec->scale != scale) && !heap_cached_presence(type, vec->type))
			return false;
	}
	return true;
}

/* Collects the columns' keys; returns false if the cache cannot hold one of them. */
static bool
collect_columns(HeapCached *cached, const Bitmapset *attnos, const ExprSet *set)
{
	TupleDesc desc = RelationGetDescr(cached->scan->rel);
	int member = -1;

	cached->natts = desc->natts;
	cached->cols = palloc0(sizeof(CacheColumnKey) * (bms_num_members(attnos) + 1));
	cached->slots = palloc(sizeof(int) * (desc->natts + 1));
	for (int a = 0; a < desc->natts; a++)
		cached->slots[a] = -1;
	while ((member = bms_next_member(attnos, member)) >= 0)
	{
		AttrNumber attno = member + FirstLowInvalidHeapAttributeNumber;

		if (attno <= 0 ||
			!heap_build_key(desc, attno, decimal_scale(set, attno), &cached->cols[cached->ncols]))
			return false;
		cached->slots[attno - 1] = cached->ncols++;
	}
	return true;
}

HeapCached *
heap_cached_create(HeapScan *scan, const Bitmapset *attnos, const ExprSet *set, FeedStats *stats)
{
	HeapCached *cached;
	CacheTableKey key;

	if (!cache_available() || bms_num_members(attnos) > MAX_COLUMNS ||
		proof_unsupported_reason(scan->rel) != NULL)
		return NULL;
	cached = palloc0(sizeof(HeapCached));
	cached->scan = scan;
	cached->stats = stats;
	cached->cxt = CurrentMemoryContext;
	if (!collect_columns(cached, attnos, set) || !heap_cached_fits(cached, set))
		return NULL;
	key = cache_table_key(scan->rel);
	cached->table = cache_table_open(&key, scan->rel);
	return cached->table ? cached : NULL;
}

/*
 * Returns whether columns are added to ranges that lack them: earlier queries have used all of
 * them.
 */
static bool
columns_are_wanted(HeapCached *cached)
{
	for (int c = 0; c < cached->ncols; c++)
		if (!cache_column_is_wanted(cached->table, &cached->cols[c]))
			return false;
	return cached->ncols > 0;
}

/* Returns what participants of a parallel scan share; NULL for a serial scan. */
static ParallelBlockTableScanDesc
shared_scan(const HeapCached *cached)
{
	return (ParallelBlockTableScanDesc) cached->scan->scan->rs_base.rs_parallel;
}

/*
 * Makes a parallel scan that has not begun start at block 0, so that participants claim whole
 * ranges. Returns true for the participant that counts the use of the columns: the first one, or
 * the only one that reads the table.
 */
static bool
start_at_first_block(HeapCached *cached)
{
	ParallelBlockTableScanDesc shared = shared_scan(cached);
	bool first;

	if (shared == NULL)
		return !IsParallelWorker() || cached->shared_out;
	SpinLockAcquire(&shared->phs_mutex);
	first = shared->phs_startblock == InvalidBlockNumber;
	if (first)
		shared->phs_startblock = 0;
	SpinLockRelease(&shared->phs_mutex);
	return first;
}

bool
heap_cached_begin(HeapCached *cached, bool rest)
{
	HeapScan *scan = cached->scan;
	bool again;

	heap_cached_stop(cached);
	/* A repeated scan belongs to the same query, but may read what the scan before it has added. */
	again = cached->used;
	if (start_at_first_block(cached) && !again && !rest)
		cache_table_use(cached->table, cached->ncols, cached->cols);
	cached->used = true;
	if (cached->skip)
		heap_skip_reset(cached->skip);
	if (!again || !rest)
		cached->fill = again ? cached->ncols > 0 : columns_are_wanted(cached);
	if (cached->taken && !rest)
	{
		pfree(cached->taken);
		cached->taken = NULL;
	}
	if (!cached->fill && cached->taken == NULL && !cache_table_is_filled(cached->table))
		return false;
	proof_begin(&cached->proof, scan->scan);
	cached->nblocks = scan->scan->rs_nblocks;
	cached->block = cached->end = cached->last = 0;
	cached->backoff = cached->nskip_builds = 0;
	cached->begun = true;
	return true;
}

void
heap_cached_unpin(HeapCached *cached)
{
	if (cached->pin)
		cache_unpin(cached->pin);
	cached->pin = NULL;
}

void
heap_cached_stop(HeapCached *cached)
{
	if (!cached->begun)
		return;
	heap_cached_unpin(cached);
	heap_scan_stop(cached->scan);
	heap_scan_set_list(cached->scan, NULL, 0);
	proof_end(&cached->proof);
	cached->stats->by_map += cached->proof.counts.by_map;
	cached->stats->by_lsn += cached->proof.counts.by_lsn;
	cached->stats->stale += cached->proof.counts.changed;
	if (cached->builder)
	{
		heap_builder_stop(cached->builder);
		MemoryContextDelete(cached->builder_cxt);
		cached->builder = NULL;
	}
	cached->begun = false;
	/* once, even if the table is scanned repeatedly */
	if (!cached->refresh_requested && (cached->proof.counts.changed > 0 || cached->missing > 0))
	{
		cached->refresh_requested = true;
		cache_request_refresh(cached->table, cached->missing);
	}
}

/* ---- which blocks come next ---------------------------------------------------- */

/*
 * Returns how many blocks a participant claims at most, which end with a range or a part of it. A
 * range that is not cached is read by one participant, which may add it to the cache.
 */
static int
claimed_blocks(const HeapCached *cached, BlockNumber block)
{
	return cached->nblocks < FEW_RANGES * CACHE_RANGE_BLOCKS &&
			cache_has_columns(cached->table, block / CACHE_RANGE_BLOCKS, cached->ncols,
							  cached->cols) ?
		PART_BLOCKS :
		CACHE_RANGE_BLOCKS;
}

/*
 * Sets block and end to the next blocks that this participant reads; returns false when there
 * are no more.
 *
 * Participants of a parallel scan claim the blocks up to the end of a range: a whole one, unless a
 * participant that reads heap pages only has claimed a part of it, as core does. Where ranges are
 * few, cached ones are claimed in parts, so that all participants end at about the same time.
 */
static bool
claim_blocks(HeapCached *cached)
{
	ParallelBlockTableScanDesc shared = shared_scan(cached);
	BlockNumber block;
	uint64 at; /* number of blocks that have been claimed */
	uint64 n;

	if (shared == NULL)
	{
		cached->end = cached->nblocks;
		return cached->block < cached->end;
	}
	at = pg_atomic_read_u64(&shared->phs_nallocated);
	do
	{
		if (at >= cached->nblocks)
			return false;
		/* The scan starts at phs_startblock and goes on at block 0 after the last block. */
		block = (at + shared->phs_startblock) % cached->nblocks;
		n = claimed_blocks(cached, block);
		n = Min(n - block % n, cached->nblocks - block);
		n = Min(n, cached->nblocks - at);
	} while (!pg_atomic_compare_exchange_u64(&shared->phs_nallocated, &at, at + n));
	cached->block = cached->last = block;
	cached->end = block + n;
	return true;
}

/* Returns whether an engine has taken the rows of a block by reference. */
static bool
is_taken(const HeapCached *cached, BlockNumber block)
{
	return cached->taken &&
		cache_blocks_has(&cached->taken[block / CACHE_RANGE_BLOCKS], block % CACHE_RANGE_BLOCKS);
}

/* Passes over the next n blocks, which an engine has taken, and counts them as read. */
static void
skip_taken(HeapCached *cached, int n)
{
	cached->block += n;
	cached->stats->blocks += n;
	cached->stats->cached += n;
	cached->scan->blocks_done += n;
}

/* Skips ranges of which all blocks are taken, from the next block on. */
static void
skip_taken_ranges(HeapCached *cached)
{
	while (cached->taken && cached->block < cached->end && cached->block % CACHE_RANGE_BLOCKS == 0)
	{
		int n = Min(CACHE_RANGE_BLOCKS, cached->end - cached->block);

		if (!cache_blocks_all(&cached->taken[cached->block / CACHE_RANGE_BLOCKS], n))
			break;
		heap_cached_unpin(cached);
		skip_taken(cached, n);
		cached->last = cached->block;
	}
}

/* Makes the scan read those blocks of the current range that are neither proved nor taken. */
static void
list_stale(HeapCached *cached)
{
	BlockNumber first = cached->first;
	int end = cached->last - first;
	int n = 0;

	for (int i = cached->block - first; i < end; i++)
	{
		i = cache_blocks_first_missing(&cached->proved, i);
		if (i < end && !is_taken(cached, first + i))
			cached->stale[n++] = first + i;
	}
	heap_scan_set_list(cached->scan, cached->stale, n);
}

/*
 * Adds the columns that a range lacks to the cache. Sets cached->pin: the range with its new
 * columns, or NULL if it is not in the cache.
 */
static void
build_range(HeapCached *cached, uint32 number, int nblocks)
{
	if (cached->builder == NULL)
	{
		MemoryContext old;

		cached->builder_cxt =
			AllocSetContextCreate(cached->cxt, "gpuagg column builder", ALLOCSET_DEFAULT_SIZES);
		old = MemoryContextSwitchTo(cached->builder_cxt);
		cached->builder =
			heap_builder_create(cached->scan->rel, cached->table, cached->ncols, cached->cols);
		heap_builder_start(cached->builder, cached->scan->scan);
		MemoryContextSwitchTo(old);
	}
	cached->pin = heap_build_range(cached->builder, &cached->proof, cached->pin, number, nblocks,
								   &cached->stats->built);
}

/* Most ranges that are skipped after ranges that were not worth building. */
#define MAX_REFUSED 64

/*
 * Returns whether to try to build a range. While an old transaction is running, nothing written
 * since then is settled, and each try reads a quarter of the range's pages in vain. The ranges to
 * skip are chosen at random, so that another query tries other ranges.
 */
static bool
should_build(HeapCached *cached)
{
	if (cached->nskip_builds == 0)
		return true;
	cached->nskip_builds--;
	return false;
}

/* Decides how many of the next ranges are not tried, from whether the last one was built. */
static void
plan_next_build(HeapCached *cached)
{
	if (cached->pin || heap_builder_full(cached->builder))
		cached->backoff = 0;
	else
		cached->backoff = Min(Max(cached->backoff * 2, 1), MAX_REFUSED);
	cached->nskip_builds = pg_prng_uint64_range(&pg_global_prng_state, 0, cached->backoff);
}

bool
heap_cached_lacks_chunks(const HeapCached *cached)
{
	for (int c = 0; c < cached->ncols; c++)
		if (cached->pin->chunks[c] == NULL)
			return true;
	return false;
}

/* Returns whether cached rows of the current range remain to be read. */
static bool
has_cached_rows(const HeapCached *cached)
{
	for (BlockNumber block = cached->block; block < cached->last; block++)
	{
		int i = block - cached->first;

		if (cache_blocks_has(&cached->proved, i) &&
			cached->pin->range->rows[i + 1] > cached->pin->range->rows[i])
			return true;
	}
	return false;
}

/*
 * Returns whether all rows of the pinned range are read from the cache. Called when the range
 * begins.
 */
static bool
is_whole(const HeapCached *cached)
{
	const CacheRange *range = cached->pin->range;

	if (cached->block != cached->first || cached->last - cached->first < range->nblocks)
		return false;
	for (int i = cache_blocks_first_missing(&cached->proved, 0); i < range->nblocks; i++)
		if (!cache_blocks_has(&cached->proved, i) && range->rows[i + 1] > range->rows[i])
			return false;
	return true;
}

bool
heap_cached_whole(const HeapCached *cached)
{
	return cached->whole;
}

/* Sets skipped, implied[] and all_implied from the bounds of the pinned range's chunks. */
static void
test_bounds(HeapCached *cached)
{
	const CacheChunk *const *chunks = cached->pin->chunks;

	cached->skipped = cached->all_implied = false;
	memset(cached->implied, false, cached->nquals);
	/* Core evaluates no condition without rows, and a condition may fail. */
	if ((cached->skip == NULL && cached->nprobes == 0) || !has_cached_rows(cached))
		return;
	cached->skipped = cached->skip && heap_skip_refutes(cached->skip, chunks, cached->slots);
	for (int p = 0; p < cached->nprobes && !cached->skipped; p++)
		cached->skipped = heap_skip_finds_none(&cached->probes[p],
											   heap_cached_chunk(cached, cached->probes[p].attno));
	if (!cached->skipped && cached->skip)
		cached->all_implied = heap_skip_implies(cached->skip, chunks, cached->slots,
												cached->implied) == cached->nquals;
}

/* Begins the range that contains the next block. */
static void
enter_range(HeapCached *cached)
{
	BlockNumber first = cached->block - cached->block % CACHE_RANGE_BLOCKS;
	uint32 number = first / CACHE_RANGE_BLOCKS;
	int nblocks = Min(CACHE_RANGE_BLOCKS, cached->nblocks - first);
	bool whole = cached->block == first && cached->end >= first + nblocks;

	heap_cached_unpin(cached);
	cached->dictionary = expr_new_dictionary();
	cached->first = first;
	cached->last = Min(first + nblocks, cached->end);
	memset(&cached->proved, 0, sizeof(cached->proved));
	/* Blocks of a partly taken range are read from the heap. */
	if (cached->taken && cache_blocks_any(&cached->taken[number]))
	{
		list_stale(cached);
		return;
	}
	cached->pin = cache_pin(cached->table, number, cached->ncols, cached->cols);
	if (cached->fill && whole &&
		(cached->pin ? heap_cached_lacks_chunks(cached) : should_build(cached)))
	{
		build_range(cached, number, nblocks);
		plan_next_build(cached);
	}
	if (cached->pin && heap_cached_lacks_chunks(cached))
		heap_cached_unpin(cached);
	if (cached->pin)
	{
		proof_range(&cached->proof, cached->pin, cached->block - first, cached->last - first,
					&cached->proved);
		cached->missing = Max(cached->missing, nblocks - cached->pin->range->nblocks);
		cached->whole = is_whole(cached);
		test_bounds(cached);
	}
	list_stale(cached);
}

/*
 * Returns how many proved blocks follow each other from the next block on, and their rows: *nrows
 * from *first_row on.
 */
static int
next_proved_blocks(HeapCached *cached, uint32 *first_row, int *nrows)
{
	const uint32 *rows = cached->pin->range->rows;
	int from = cached->block - cached->first;
	int end = cached->last - cached->first;
	int to = Min(cache_blocks_first_missing(&cached->proved, from), end);

	/* one block has fewer rows */
	while (rows[to] - rows[from] > MAX_CACHED_ROWS)
		to--;
	*first_row = rows[from];
	*nrows = rows[to] - rows[from];
	return to - from;
}

bool
heap_cached_next(HeapCached *cached, HeapPage *page)
{
	heap_page_release(page);
	for (;;)
	{
		CHECK_FOR_INTERRUPTS();
		if (cached->block >= cached->end && !claim_blocks(cached))
			return false;
		if (cached->block >= cached->last)
		{
			skip_taken_ranges(cached);
			if (cached->block >= cached->end)
				continue;
			enter_range(cached);
		}
		if (is_taken(cached, cached->block))
		{
			skip_taken(cached, 1);
			continue;
		}
		if (cached->pin && cache_blocks_has(&cached->proved, cached->block - cached->first))
		{
			int nblocks = next_proved_blocks(cached, &page->first_row, &page->ntuples);

			page->cached = true;
			cached->block += nblocks;
			cached->stats->blocks += nblocks;
			cached->stats->cached += nblocks;
			cached->scan->blocks_done += nblocks;
			compat_count_tuples(cached->scan->rel, page->ntuples);
			if (cached->skipped)
			{
				cached->stats->skipped += nblocks;
				InstrCountFiltered1(cached->scan->node, page->ntuples);
				page->ntuples = 0;
			}
		}
		else
		{
			if (!heap_scan_read_page(cached->scan, page))
				elog(ERROR, "block %u is missing from the list of those to read", cached->block);
			Assert(page->block == cached->block);
			cached->block++;
			cached->stats->blocks++;
		}
		if (page->ntuples > 0)
			return true;
		heap_page_release(page);
		/* The batch may still refer to rows of the range. */
		if (cached->pin && heap_cached_leaves_range(cached))
			return true;
	}
}

bool
heap_cached_leaves_range(const HeapCached *cached)
{
	/* The remaining blocks may have no rows. */
	return !has_cached_rows(cached);
}

/* ---- the rows ------------------------------------------------------------------- */

/*
 * Stores the numerics that decimals cannot represent in place of their values, as
 * heap_columns_fill() does.
 */
static void
fill_exceptions(Vec *vec, const CacheChunk *chunk, uint32 first_row, const HeapRows *rows)
{
	bool isnull;

	for (int i = 0; i < rows->n; i++)
		if (vec->state[i] == VEC_FALLBACK)
			((gpuagg_i128 *) vec->values)[i] =
				chunk_datum(chunk, first_row + rows->tuple[i], &isnull);
}

/* The cache's arrays are prefetched so many bytes ahead, one cache line at a time. */
#define PREFETCH_BYTES 4096
#define LINE_BYTES 64

/*
 * Points a vector to n values in the cache, from row `from` on. Returns false if they must be
 * decoded: the chunk does not store them as the vector does, or has NULLs or exceptions.
 */
static bool
borrow_values(Vec *vec, const CacheChunk *chunk, uint32 from, int n)
{
	const char *values = chunk_in_place(chunk, vec->type, vec->scale);
	int bytes = n * column_width(vec->type);

	if (values == NULL || chunk_validity(chunk) != NULL || chunk->nexceptions > 0)
		return false;
	values += (size_t) from * column_width(vec->type);
	vec->values = (void *) values;
	vec->all_values = true;
	/* prefetch the values of the next rows */
	for (int b = 0; b < bytes; b += LINE_BYTES)
		__builtin_prefetch(values + PREFETCH_BYTES + b);
	return true;
}

void
heap_cached_unborrow(HeapColumns *columns)
{
	for (int v = 0; v < columns->nvecs; v++)
		columns->vecs[v]->values = columns->vecs[v]->memory;
}

/* Sets which rows of a vector are NULL; its values have no meaning (heap_cached_presence()). */
static void
fill_presence(Vec *vec, const CacheChunk *chunk, uint32 first_row, const HeapRows *rows)
{
	const uint64 *validity = chunk_validity(chunk);

	memset(vec->values, 0, rows->n);
	vec->all_values = validity == NULL;
	if (validity)
		for (int i = 0; i < rows->n; i++)
			vec->state[i] = bitmap_get(validity, first_row + rows->tuple[i]) ? VEC_VALUE : VEC_NULL;
}

void
heap_cached_fill(HeapCached *cached, HeapColumns *columns, const HeapPage *page,
				 const HeapRows *rows, int after, bool condition, MemoryContext cxt)
{
	MemoryContext old = MemoryContextSwitchTo(cxt);
	int n = rows->n;
	bool dense = heap_rows_are_dense(rows);

	for (int v = 0; v < columns->nvecs; v++)
	{
		Vec *vec = columns->vecs[v];
		const CacheChunk *chunk = cached->pin->chunks[cached->slots[vec->attno - 1]];

		if (vec->last_stage <= after)
			continue;
		if (heap_cached_presence(chunk->type, vec->type))
			fill_presence(vec, chunk, page->first_row, rows);
		else if (dense && condition && vec->last_stage == vec->stage &&
				 borrow_values(vec, chunk, page->first_row + rows->tuple[0], n))
			continue;
		else if (dense)
			vec->all_values = chunk_read(chunk, page->first_row + rows->tuple[0], n, vec->type,
										 vec->scale, vec->values, vec->state);
		else
			vec->all_values = chunk_gather(chunk, rows->tuple, page->first_row, n, vec->type,
										   vec->scale, vec->values, vec->state);
		if (vec->type == COLUMN_DEC && !vec->all_values && chunk->nexceptions > 0)
			fill_exceptions(vec, chunk, page->first_row, rows);
	}
	MemoryContextSwitchTo(old);
}

void
heap_cached_load(HeapCached *cached, const HeapPage *page, int tuple, TupleTableSlot *slot,
				 MemoryContext cxt)
{
	MemoryContext old = MemoryContextSwitchTo(cxt);

	ExecClearTuple(slot);
	memset(slot->tts_isnull, true, cached->natts * sizeof(bool));
	for (int a = 0; a < cached->natts; a++)
		if (cached->slots[a] >= 0)
			slot->tts_values[a] = chunk_datum(cached->pin->chunks[cached->slots[a]],
											  page->first_row + tuple, &slot->tts_isnull[a]);
	/* Expressions over columns read tts_values only. */
	ExecStoreVirtualTuple(slot);
	MemoryContextSwitchTo(old);
}
