/*
 * heap_page.c
 *
 * Reads the pages of one heap table, and finds the tuples that the snapshot sees.
 *
 * A scan is core's own. The scan node of the child plan holds the scan descriptor, which is begun
 * here as SeqNext does or by the parallel executor. So block order, ring buffers, read streams,
 * synchronized scans, predicate locks and sharing between participants are those of core. Only the
 * loop over blocks and tuples is ours.
 *
 * A page is read under pin and share lock: line pointers are collected and the visibility of each
 * tuple is decided. Then the lock is released and the pin is kept. Visible tuples neither move nor
 * change while the page is pinned (except hint bits and xmax). The next page is pinned as well, so
 * that it can be prefetched into the CPU cache meanwhile.
 */
#include "postgres.h"

#include "access/relscan.h"
#include "access/syncscan.h"
#include "access/tableam.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/buf_internals.h"
#include "storage/bufmgr.h"
#include "storage/predicate.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "common/compat.h"
#include "feed.h"
#include "feed/heap_bitmap.h"
#include "feed/heap_index.h"
#include "feed/heap_page.h"

/*
 * Creates the heap scan descriptor for an index scan, whose node has none: only the fields that
 * are read here are set.
 */
static HeapScanDesc
describe_scan(HeapScan *scan)
{
	HeapScanDesc desc = palloc0(sizeof(HeapScanDescData));

	desc->rs_base.rs_rd = scan->rel;
	desc->rs_base.rs_snapshot = scan->node->ps.state->es_snapshot;
	desc->rs_nblocks = RelationGetNumberOfBlocks(scan->rel);
	return desc;
}

HeapScan *
heap_scan_create(ScanState *node, bool may_end_early, FeedShared **shared)
{
	HeapScan *scan = palloc0(sizeof(HeapScan));

	scan->node = node;
	scan->rel = node->ss_currentRelation;
	if (IsA(node, BitmapHeapScanState))
		scan->bitmap = heap_bitmap_create((BitmapHeapScanState *) node, shared);
	if (IsA(node, IndexScanState))
	{
		scan->index = heap_index_create((IndexScanState *) node, may_end_early);
		/* the node's own descriptor is of the index */
		scan->scan = describe_scan(scan);
	}
	return scan;
}

/* ---- pages ------------------------------------------------------------------- */

/* Returns whether a bitmap or an index selects the tuples. */
static inline bool
selects_tuples(const HeapScan *scan)
{
	return scan->bitmap || scan->index;
}

BlockNumber
heap_scan_begin(HeapScan *scan)
{
	ScanState *node = scan->node;

	if (scan->index)
		return scan->scan->rs_nblocks;
	if (node->ss_currentScanDesc == NULL)
	{
		EState *estate = node->ps.state;
		MemoryContext old = MemoryContextSwitchTo(estate->es_query_cxt);

		node->ss_currentScanDesc = scan->bitmap ?
			compat_begin_bitmap_scan(node, scan->rel, estate->es_snapshot) :
			compat_begin_scan(node, scan->rel, estate->es_snapshot);
		MemoryContextSwitchTo(old);
	}
	scan->scan = (HeapScanDesc) node->ss_currentScanDesc;
	return scan->scan->rs_nblocks;
}

bool
heap_scan_counts_blocks(const HeapScan *scan)
{
	return scan->index == NULL;
}

void
heap_scan_restart(HeapScan *scan)
{
	heap_scan_stop(scan);
	scan->started = false;
	scan->streaming = false;
	scan->misses = 0;
	scan->blocks_done = 0;
}

/* Returns the block to read next, as core's scan chooses it; InvalidBlockNumber at the end. */
static BlockNumber
next_block(HeapScan *scan)
{
	HeapScanDesc desc = scan->scan;
	BlockNumber block;

	if (scan->bitmap)
		return heap_bitmap_next(scan->bitmap, desc->rs_nblocks, scan->wanted_ahead, &scan->nahead,
								&scan->recheck_ahead);
	if (scan->index)
		return heap_index_next(scan->index);
	if (scan->list)
		return scan->nlist-- > 0 ? *scan->list++ : InvalidBlockNumber;
	if (desc->rs_base.rs_parallel != NULL)
	{
		ParallelBlockTableScanDesc shared = (ParallelBlockTableScanDesc) desc->rs_base.rs_parallel;

		if (!scan->started)
			compat_parallel_scan_start(scan->rel, desc->rs_parallelworkerdata, shared);
		scan->started = true;
		return table_block_parallelscan_nextpage(scan->rel, desc->rs_parallelworkerdata, shared);
	}
	if (!scan->started)
	{
		scan->next_block = desc->rs_startblock;
		scan->blocks_left = desc->rs_nblocks;
		scan->started = true;
	}
	if (scan->blocks_left == 0)
		return InvalidBlockNumber;
	scan->blocks_left--;
	block = scan->next_block++;
	if (scan->next_block >= desc->rs_nblocks)
		scan->next_block = 0;
	if (desc->rs_base.rs_flags & SO_ALLOW_SYNC)
		ss_report_location(scan->rel, block);
	return block;
}

/* ---- reading ahead ------------------------------------------------------------ */

/* Returns whether the buffer's usage count is at its maximum. */
static bool
is_most_used(Buffer buffer)
{
	return compat_usage_count(buffer) == BM_MAX_USAGE_COUNT;
}

/*
 * Pins a block and returns its buffer. In shared buffers it is mostly in the buffer after that
 * of the previous block, and comparing that buffer's tag is cheaper than a lookup. Pinning it
 * so does not raise its usage count. Therefore it is done only where a lookup would not raise
 * the count either: in a big table (rs_strategy), or if the count is at its maximum.
 */
static Buffer
pin_block(HeapScan *scan, BlockNumber block)
{
	BufferAccessStrategy strategy = scan->scan->rs_strategy;
	Buffer guess = scan->last + 1;

	scan->misses++;
	if (scan->last > 0 && guess <= NBuffers && (strategy != NULL || is_most_used(guess)) &&
		compat_read_recent_buffer(scan->rel, block, guess))
	{
		scan->last = guess;
		scan->misses = 0;
	}
	else
		scan->last = ReadBufferExtended(scan->rel, MAIN_FORKNUM, block, RBM_NORMAL, strategy);
	return scan->last;
}

/*
 * After so many consecutive blocks that were not in the expected buffer, core's read stream takes
 * over.
 */
#define MAX_MISSES 4

/* Pins the page after the current one as scan->ahead, if there is one. */
static void
open_ahead(HeapScan *scan)
{
	BlockNumber block;

	Assert(!BufferIsValid(scan->ahead));
	if (scan->streaming)
	{
		scan->ahead = compat_read_stream_next(scan->scan);
		return;
	}
	block = next_block(scan);
	if (block == InvalidBlockNumber)
		return;
	scan->ahead = pin_block(scan, block);
	if (scan->index)
		heap_index_take(scan->index, scan->ahead, scan->wanted_ahead, &scan->nahead,
						&scan->recheck_ahead);
	if (COMPAT_READ_STREAM && scan->misses == MAX_MISSES && scan->list == NULL &&
		!selects_tuples(scan))
	{
		compat_read_stream_start(scan->scan, block);
		scan->streaming = true;
	}
}

void
heap_scan_stop(HeapScan *scan)
{
	if (BufferIsValid(scan->ahead))
		ReleaseBuffer(scan->ahead);
	scan->ahead = InvalidBuffer;
	if (scan->bitmap)
		heap_bitmap_stop(scan->bitmap);
	if (scan->index)
		heap_index_reset(scan->index);
}

void
heap_scan_set_list(HeapScan *scan, const BlockNumber *list, int n)
{
	Assert(!BufferIsValid(scan->ahead));
	scan->list = list;
	scan->nlist = n;
}

/* ---- the tuples of a page ------------------------------------------------------ */

#define ITEM_OFFSET(item) ((item) &0x7fff)
#define ITEM_IS_NORMAL(item) (((item) >> 15 & 3) == LP_NORMAL)

/*
 * Returns the number of tuples of an all-visible page. Sets lines[] and tuples[] unless
 * counts_only.
 */
static int
collect_all(HeapPage *page, int lines, bool counts_only)
{
	const uint32 *items = (const uint32 *) PageGetItemId((Page) page->start, FirstOffsetNumber);
	int normal = 0;
	int n = 0;

	StaticAssertStmt(sizeof(ItemIdData) == sizeof(uint32), "a line pointer is one word");
	for (int i = 0; i < lines; i++)
		normal += ITEM_IS_NORMAL(items[i]);
	if (counts_only)
		return normal;
	if (normal == lines)
		for (int i = 0; i < lines; i++)
		{
			page->lines[i] = FirstOffsetNumber + i;
			page->tuples[i] = ITEM_OFFSET(items[i]);
		}
	else
		for (int i = 0; i < lines && n < normal; i++)
		{
			page->lines[n] = FirstOffsetNumber + i;
			page->tuples[n] = ITEM_OFFSET(items[i]);
			n += ITEM_IS_NORMAL(items[i]);
		}
	return normal;
}

/*
 * Tests each tuple of a page. Sets lines[] and tuples[] to the visible ones, and returns their
 * number.
 */
static int
collect_visible(HeapScan *scan, HeapPage *page, int lines, bool all_visible, bool serializable)
{
	Snapshot snapshot = scan->scan->rs_base.rs_snapshot;
	Page p = (Page) page->start;
	int n = 0;

	for (OffsetNumber line = FirstOffsetNumber; line <= lines; line++)
	{
		ItemId item = PageGetItemId(p, line);
		HeapTupleData tuple;
		bool valid;

		if (!ItemIdIsNormal(item))
			continue;
		tuple.t_tableOid = RelationGetRelid(scan->rel);
		tuple.t_data = (HeapTupleHeader) PageGetItem(p, item);
		tuple.t_len = ItemIdGetLength(item);
		ItemPointerSet(&tuple.t_self, page->block, line);
		valid = all_visible || HeapTupleSatisfiesVisibility(&tuple, snapshot, page->buffer);
		if (serializable)
			HeapCheckForSerializableConflictOut(valid, scan->rel, &tuple, page->buffer, snapshot);
		if (!valid)
			continue;
		page->lines[n] = line;
		page->tuples[n++] = ItemIdGetOffset(item);
	}
	return n;
}

/*
 * Collects the selected tuples that are visible, as core finds them: an index leads to the first
 * member of a HOT chain, of which at most one tuple is visible. Returns their number.
 */
static int
collect_wanted(HeapScan *scan, HeapPage *page)
{
	Snapshot snapshot = scan->scan->rs_base.rs_snapshot;
	int n = 0;

	for (int i = 0; i < page->nwanted; i++)
	{
		ItemPointerData tid;
		HeapTupleData tuple;

		ItemPointerSet(&tid, page->block, page->wanted[i]);
		if (!heap_hot_search_buffer(&tid, scan->rel, page->buffer, snapshot, &tuple, NULL, true))
			continue;
		page->lines[n] = ItemPointerGetOffsetNumber(&tid);
		page->tuples[n++] = (const uint8 *) tuple.t_data - page->start;
	}
	return n;
}

/* Sets the visible tuples of the page, which is share-locked, and their number. */
static void
collect_tuples(HeapScan *scan, HeapPage *page)
{
	Snapshot snapshot = scan->scan->rs_base.rs_snapshot;
	int lines = PageGetMaxOffsetNumber((Page) page->start);
	bool all_visible = PageIsAllVisible((Page) page->start) && !snapshot->takenDuringRecovery;
	bool serializable = CheckForSerializableConflictOutNeeded(scan->rel, snapshot);

	if (selects_tuples(scan) && page->nwanted >= 0)
		page->ntuples = collect_wanted(scan, page);
	else if (likely(all_visible && !serializable))
		page->ntuples = collect_all(page, lines, scan->counts_only);
	else
		page->ntuples = collect_visible(scan, page, lines, all_visible, serializable);
}

/* Tuples wider than this are prefetched in part, unless scan->whole_tuples is set. */
#define NARROW_TUPLE 256

/*
 * Decides which part of the page ahead is prefetched while the current page is read. Hardware does
 * not foresee the next page, and many fetches at once would stall.
 */
static void
start_fetching(HeapScan *scan, const HeapPage *page)
{
	bool all = !scan->counts_only && (scan->whole_tuples || page->ntuples >= BLCKSZ / NARROW_TUPLE);

	scan->fetch = scan->fetch_end = NULL;
	if (!BufferIsValid(scan->ahead))
		return;
	scan->fetch = BufferGetPage(scan->ahead);
	scan->fetch_end = scan->fetch + (all ? BLCKSZ : ((PageHeader) page->start)->pd_lower);
	scan->fetched = all ? BLCKSZ : 0;
}

/*
 * A bitmap or index scan prefetches its selected tuples only. The page is not locked, so its
 * line pointers may be wrong; a wrong prefetch does no harm.
 */
void
heap_fetch_tuples(HeapScan *scan, int bytes)
{
	Page page;
	bool selected = selects_tuples(scan) && scan->nahead >= 0;
	int lines, n;

	if (bytes <= scan->fetched || !BufferIsValid(scan->ahead))
		return;
	page = BufferGetPage(scan->ahead);
	lines = PageGetMaxOffsetNumber(page);
	n = Min(selected ? scan->nahead : lines, BLCKSZ / NARROW_TUPLE);
	for (int i = 0; i < n; i++)
	{
		OffsetNumber line = selected ? scan->wanted_ahead[i] : FirstOffsetNumber + i;
		uintptr_t tuple;

		if (line > lines)
			continue;
		tuple = (uintptr_t) page + ItemIdGetOffset(PageGetItemId(page, line));

		for (uintptr_t at = TYPEALIGN_DOWN(HEAP_FETCH_BYTES, tuple + scan->fetched);
			 at < tuple + bytes; at += HEAP_FETCH_BYTES)
			heap_prefetch((const void *) at);
	}
	scan->fetched = bytes;
}

/*
 * The last 8 bytes of a tuple header's fixed part as one word: half of t_ctid, t_infomask2,
 * t_infomask, t_hoff and the first byte of the null bitmap.
 */
#define HEADER_WORD (offsetof(HeapTupleHeaderData, t_infomask2) - 2)
#define WORD_NATTS ((uint64) HEAP_NATTS_MASK << 16)
#define WORD_HASNULL ((uint64) HEAP_HASNULL << 32)
#define WORD_HOFF (UINT64CONST(0xff) << 48)

/*
 * Sets HeapPage.data, min_natts and has_nulls from the headers of the page's tuples. Prefetches
 * the page ahead meanwhile.
 */
static void
examine_headers(HeapScan *scan, HeapPage *page)
{
	const uint8 *words = page->start + HEADER_WORD;
	uint64 first = *(const uint64 *) (words + page->tuples[0]);
	uint64 differ = 0;
	int natts = (first & WORD_NATTS) >> 16;
	int hoff = (first & WORD_HOFF) >> 48;
	int n = page->ntuples;
	int here =
		scan->whole_tuples ? 0 : BLCKSZ / HEAP_FETCH_BYTES - scan->ncolumns * HEAP_COLUMN_FETCHES;
	int each = (here + n - 1) / n;

	for (int i = 0; i < n; i++)
	{
		differ |= *(const uint64 *) (words + page->tuples[i]) ^ first;
		if (i < here)
			heap_fetch_some(scan, each);
	}
	page->has_nulls = ((first | differ) & WORD_HASNULL) != 0;
	if (!(differ & (WORD_NATTS | WORD_HOFF)))
		for (int i = 0; i < n; i++)
			page->data[i] = page->tuples[i] + hoff;
	else
		for (int i = 0; i < n; i++)
		{
			HeapTupleHeader tuple = heap_page_tuple(page, i);

			natts = Min(natts, HeapTupleHeaderGetNatts(tuple));
			page->data[i] = page->tuples[i] + tuple->t_hoff;
		}
	page->min_natts = natts;
}

void
heap_page_release(HeapPage *page)
{
	if (BufferIsValid(page->buffer))
		ReleaseBuffer(page->buffer);
	page->buffer = InvalidBuffer;
	page->ntuples = 0;
	page->cached = false;
}

bool
heap_scan_read_page(HeapScan *scan, HeapPage *page)
{
	heap_page_release(page);
	CHECK_FOR_INTERRUPTS();
	if (!BufferIsValid(scan->ahead))
		open_ahead(scan);
	if (!BufferIsValid(scan->ahead))
		return false;
	page->buffer = scan->ahead;
	page->block = BufferGetBlockNumber(page->buffer);
	page->start = (const uint8 *) BufferGetPage(page->buffer);
	scan->ahead = InvalidBuffer;
	if (selects_tuples(scan))
	{
		page->nwanted = scan->nahead;
		page->recheck = scan->recheck_ahead;
		memcpy(page->wanted, scan->wanted_ahead, Max(scan->nahead, 0) * sizeof(OffsetNumber));
	}
	open_ahead(scan);
	if (scan->index == NULL)
		compat_prune_page(scan->scan, scan->rel, page->buffer);
	LockBuffer(page->buffer, BUFFER_LOCK_SHARE);
	compat_test_old_snapshot(scan->scan->rs_base.rs_snapshot, scan->rel, (Page) page->start);
	collect_tuples(scan, page);
	if (scan->proof)
	{
		page->lsn = PageGetLSN((Page) page->start);
		page->settled = proof_page_is_settled(scan->proof, (Page) page->start, &scan->newest);
	}
	LockBuffer(page->buffer, BUFFER_LOCK_UNLOCK);
	scan->blocks_done++;
	if (page->ntuples == 0)
		return true;
	start_fetching(scan, page);
	if (scan->counts_only)
		heap_fetch_some(scan, BLCKSZ / HEAP_FETCH_BYTES);
	else
		examine_headers(scan, page);
	if (scan->bitmap)
		compat_count_fetches(scan->rel, page->ntuples);
	else if (scan->index)
		compat_count_fetches(((IndexScanState *) scan->node)->iss_RelationDesc, page->ntuples);
	else if (scan->proof == NULL)
		compat_count_tuples(scan->rel, page->ntuples);
	return true;
}

bool
heap_scan_ended_early(const HeapScan *scan)
{
	return scan->index && heap_index_ended_early(scan->index);
}

bool
heap_scan_next_page(HeapScan *scan, HeapPage *page)
{
	do
	{
		if (!heap_scan_read_page(scan, page))
			return false;
	} while (page->ntuples == 0);
	return true;
}
