/*
 * heap_bitmap.c
 *
 * Tuples that a bitmap heap scan selects.
 *
 * Core's executor runs the nodes below the bitmap heap scan, which read the indexes and make the
 * bitmap. Here its pages are taken in order, some ahead of the scan, so that they can be
 * prefetched (effective_io_concurrency). As in core, the conditions of the indexes are evaluated
 * again only where the bitmap demands a recheck, unless another expression needs the result of
 * such a condition. heap_unsupported.c says why that changes nothing.
 *
 * Participants of a parallel scan share a bitmap as in core: the first one reads the indexes while
 * the others wait, and each participant takes one page after another (heap_shared.h).
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "executor/executor.h"
#include "nodes/tidbitmap.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"
#include "utils/spccache.h"
#include "utils/wait_event.h"

#include "common/compat.h"
#include "feed/heap_bitmap.h"
#include "feed/heap_shared.h"

/* Most pages that are prefetched. */
#define MOST_AHEAD 32

typedef struct BitmapPage
{
	BlockNumber block;
	int n; /* -1: the bitmap names the page only */
	bool recheck;
	OffsetNumber wanted[MaxHeapTuplesPerPage];
} BitmapPage;

struct HeapBitmap
{
	BitmapHeapScanState *node;
	FeedShared **feed_shared; /* Feed.shared */
	SharedBitmap *shared;     /* NULL: this process alone reads the bitmap */
	int ahead;                /* pages to prefetch */
	bool begun;               /* the indexes have been read */
	TIDBitmap *tbm;           /* NULL: another participant has it */
	CompatBitmapIterator iterator;
	bool ended; /* the iterator has ended */
	int first;  /* queue: the next page is pages[first] */
	int npages; /* number of queued pages */
	BitmapPage pages[MOST_AHEAD + 1];
};

List *
heap_index_quals(const ScanState *node)
{
	if (IsA(node, BitmapHeapScanState))
		return ((BitmapHeapScan *) node->ps.plan)->bitmapqualorig;
	return IsA(node, IndexScanState) ? ((IndexScan *) node->ps.plan)->indexqualorig : NIL;
}

List *
heap_scan_quals(const ScanState *node)
{
	return list_concat_copy(heap_index_quals(node), node->ps.plan->qual);
}

bool
heap_is_index_qual(const ScanState *node, const Expr *qual)
{
	return list_member_ptr(heap_index_quals(node), qual);
}

HeapBitmap *
heap_bitmap_create(BitmapHeapScanState *node, FeedShared **shared)
{
	HeapBitmap *bitmap = palloc0(sizeof(HeapBitmap));
	int most = get_tablespace_io_concurrency(node->ss.ss_currentRelation->rd_rel->reltablespace);

	bitmap->node = node;
	bitmap->feed_shared = shared;
	bitmap->ahead = Min(most, MOST_AHEAD);
	return bitmap;
}

/* Runs the plan nodes below the scan, which read the indexes; sets bitmap->tbm. */
static void
read_indexes(HeapBitmap *bitmap)
{
	bitmap->tbm = (TIDBitmap *) MultiExecProcNode(outerPlanState(bitmap->node));
	if (bitmap->tbm == NULL || !IsA(bitmap->tbm, TIDBitmap))
		elog(ERROR, "unrecognized result from subplan");
}

/* Begins to read the bitmap that all participants share. */
static void
begin_shared(HeapBitmap *bitmap)
{
	if (shared_work_begin(&bitmap->shared->reading, WAIT_EVENT_PARALLEL_BITMAP_SCAN))
	{
		read_indexes(bitmap);
		bitmap->shared->iterator = tbm_prepare_shared_iterate(bitmap->tbm);
		shared_work_end(&bitmap->shared->reading);
	}
	compat_bitmap_attach(&bitmap->iterator, bitmap->node->ss.ps.state->es_query_dsa,
						 bitmap->shared->iterator);
}

/*
 * Makes the bitmap, or waits for the one that participants share, and begins to iterate over
 * it.
 */
static void
begin_bitmap(HeapBitmap *bitmap)
{
	EState *estate = bitmap->node->ss.ps.state;
	MemoryContext old = MemoryContextSwitchTo(estate->es_query_cxt);

	bitmap->tbm = NULL;
	/* if there was no dynamic shared memory for the parallel plan, the leader runs it alone */
	bitmap->shared = estate->es_query_dsa == NULL ?
		NULL :
		heap_shared_bitmap(bitmap->feed_shared, &bitmap->node->ss.ps);
	if (bitmap->shared)
		begin_shared(bitmap);
	else
	{
		read_indexes(bitmap);
		compat_bitmap_begin(&bitmap->iterator, bitmap->tbm);
	}
	bitmap->begun = true;
	bitmap->ended = false;
	bitmap->first = bitmap->npages = 0;
	MemoryContextSwitchTo(old);
}

/*
 * Adds the bitmap's next page below block nblocks to the queue, and prefetches it; sets
 * bitmap->ended if there is none.
 */
static void
queue_page(HeapBitmap *bitmap, BlockNumber nblocks)
{
	BitmapPage *page = &bitmap->pages[(bitmap->first + bitmap->npages) % lengthof(bitmap->pages)];

	/* Pages added after the scan's begin have no visible tuples. */
	do
	{
		if (!compat_bitmap_next(&bitmap->iterator, &page->block, page->wanted, &page->n,
								&page->recheck))
		{
			bitmap->ended = true;
			return;
		}
	} while (page->block >= nblocks);
	bitmap->npages++;
	if (page->n < 0)
		compat_lossy_pages(bitmap->node)++;
	else
		compat_exact_pages(bitmap->node)++;
	if (bitmap->ahead > 0)
		PrefetchBuffer(bitmap->node->ss.ss_currentRelation, MAIN_FORKNUM, page->block);
}

BlockNumber
heap_bitmap_next(HeapBitmap *bitmap, BlockNumber nblocks, OffsetNumber *wanted, int *n,
				 bool *recheck)
{
	BitmapPage *page = &bitmap->pages[bitmap->first];

	if (!bitmap->begun)
	{
		begin_bitmap(bitmap);
		page = &bitmap->pages[0];
	}
	while (bitmap->npages <= bitmap->ahead && !bitmap->ended)
		queue_page(bitmap, nblocks);
	if (bitmap->npages == 0)
		return InvalidBlockNumber;
	bitmap->first = (bitmap->first + 1) % lengthof(bitmap->pages);
	bitmap->npages--;
	*n = page->n;
	*recheck = page->recheck;
	memcpy(wanted, page->wanted, Max(page->n, 0) * sizeof(OffsetNumber));
	return page->block;
}

void
heap_bitmap_stop(HeapBitmap *bitmap)
{
	if (!bitmap->begun)
		return;
	compat_bitmap_end(&bitmap->iterator);
	if (bitmap->tbm)
		tbm_free(bitmap->tbm);
	bitmap->tbm = NULL;
	bitmap->begun = false;
}
