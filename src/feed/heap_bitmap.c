/*
 * heap_bitmap.c
 *	  Which tuples a bitmap heap scan wants.
 *
 * The nodes below the bitmap heap scan, of core's executor, read the indexes and make the bitmap; here its pages are
 * taken in order, some ahead of the scan, so that they can be prefetched (effective_io_concurrency).  Each tuple is
 * held against the indexes' conditions again, which core does only for pages whose tuples the bitmap does
 * not name; heap_refusal.c says why that changes nothing.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "executor/executor.h"
#include "nodes/tidbitmap.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"
#include "utils/spccache.h"

#include "common/compat.h"
#include "feed/heap_bitmap.h"

/* Most pages that are prefetched. */
#define MOST_AHEAD 32

typedef struct BitmapPage
{
	BlockNumber block;
	int			n;				/* -1: the bitmap does not name tuples */
	OffsetNumber wanted[MaxHeapTuplesPerPage];
} BitmapPage;

struct HeapBitmap
{
	BitmapHeapScanState *node;
	int			ahead;			/* pages to prefetch */
	TIDBitmap  *tbm;			/* NULL: the indexes have not been read */
	CompatBitmapIterator iterator;
	bool		ended;			/* the iterator has */
	int			first;			/* pages[first] is next, */
	int			npages;			/* and there are so many */
	BitmapPage	pages[MOST_AHEAD + 1];
};

List *
heap_scan_quals(const ScanState *node)
{
	List	   *quals = node->ps.plan->qual;

	if (!IsA(node, BitmapHeapScanState))
		return quals;
	return list_concat_copy(((BitmapHeapScan *) node->ps.plan)->bitmapqualorig, quals);
}

HeapBitmap *
heap_bitmap_create(BitmapHeapScanState *node)
{
	HeapBitmap *bitmap = palloc0(sizeof(HeapBitmap));
	int			most = get_tablespace_io_concurrency(node->ss.ss_currentRelation->rd_rel->reltablespace);

	bitmap->node = node;
	bitmap->ahead = Min(most, MOST_AHEAD);
	return bitmap;
}

/* Has the nodes below read their indexes. */
static void
read_indexes(HeapBitmap *bitmap)
{
	EState	   *estate = bitmap->node->ss.ps.state;
	MemoryContext old = MemoryContextSwitchTo(estate->es_query_cxt);

	bitmap->tbm = (TIDBitmap *) MultiExecProcNode(outerPlanState(bitmap->node));
	if (bitmap->tbm == NULL || !IsA(bitmap->tbm, TIDBitmap))
		elog(ERROR, "unrecognized result from subplan");
	bitmap->iterator = compat_bitmap_begin(bitmap->tbm);
	bitmap->ended = false;
	bitmap->first = bitmap->npages = 0;
	MemoryContextSwitchTo(old);
}

/* Puts one more page of the table's nblocks into the queue, and starts to read it. */
static void
queue_page(HeapBitmap *bitmap, BlockNumber nblocks)
{
	BitmapPage *page = &bitmap->pages[(bitmap->first + bitmap->npages) % lengthof(bitmap->pages)];

	/* pages that came after the scan's begin have nothing that the snapshot sees */
	do
	{
		if (!compat_bitmap_next(bitmap->iterator, &page->block, page->wanted, &page->n))
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
heap_bitmap_next(HeapBitmap *bitmap, BlockNumber nblocks, OffsetNumber *wanted, int *n)
{
	BitmapPage *page = &bitmap->pages[bitmap->first];

	if (bitmap->tbm == NULL)
	{
		read_indexes(bitmap);
		page = &bitmap->pages[0];
	}
	while (bitmap->npages <= bitmap->ahead && !bitmap->ended)
		queue_page(bitmap, nblocks);
	if (bitmap->npages == 0)
		return InvalidBlockNumber;
	bitmap->first = (bitmap->first + 1) % lengthof(bitmap->pages);
	bitmap->npages--;
	*n = page->n;
	memcpy(wanted, page->wanted, Max(page->n, 0) * sizeof(OffsetNumber));
	return page->block;
}

void
heap_bitmap_stop(HeapBitmap *bitmap)
{
	if (bitmap->tbm == NULL)
		return;
	compat_bitmap_end(bitmap->iterator);
	tbm_free(bitmap->tbm);
	bitmap->tbm = NULL;
}
