/*
 * heap_page.h
 *	  The pages of one heap table, and which of their tuples the snapshot sees.
 */
#ifndef GPUAGG_FEED_HEAP_PAGE_H
#define GPUAGG_FEED_HEAP_PAGE_H

#include "postgres.h"

#include "access/heapam.h"
#include "nodes/execnodes.h"

#include "cache/proof.h"

/*
 * The tuples of one page that the snapshot sees; or some rows of the column cache that stand for
 * those of some pages.
 */
typedef struct HeapPage
{
	Buffer buffer; /* pinned, or InvalidBuffer */
	BlockNumber block;
	const uint8 *start;
	int ntuples;
	int nwanted; /* of a bitmap or index scan: tuples that are named; -1: all of the page */
	OffsetNumber wanted[MaxHeapTuplesPerPage];
	bool recheck; /* of these: tuples need not pass the conditions of the indexes */
	bool cached;  /* these are rows of the cache, which the fields below do not describe, from this
					 one on: */
	uint32 first_row;

	/* if HeapScan.proof: */
	XLogRecPtr lsn;
	bool settled; /* see proof_page_is_settled */

	/* undefined if HeapScan.counts_only: */
	bool has_nulls; /* some tuple has a null bitmap */
	int min_natts;  /* fewest attributes of a tuple */
	OffsetNumber lines[MaxHeapTuplesPerPage];
	uint16 tuples[MaxHeapTuplesPerPage]; /* bytes from start to the header */
	uint16 data[MaxHeapTuplesPerPage];   /* bytes from start to the first attribute */
} HeapPage;

static inline HeapTupleHeader
heap_page_tuple(const HeapPage *page, int i)
{
	return (HeapTupleHeader) (page->start + page->tuples[i]);
}

/* Reading one table. */
typedef struct HeapScan
{
	ScanState *node; /* a SeqScanState, BitmapHeapScanState or IndexScanState */
	Relation rel;
	struct HeapBitmap *bitmap; /* of the second: which tuples it wants; else NULL */
	struct HeapIndex *index;   /* of the third, likewise */
	bool counts_only;          /* set by the owner: of a page only ntuples is wanted */
	bool whole_tuples;         /* set by the owner: most of each tuple will be read */
	int ncolumns;              /* set by the owner: columns read of every tuple */
	uint64 blocks_done;
	Proof *proof;             /* set by the owner: pages are examined for the cache; or NULL */
	FullTransactionId newest; /* with that: raised by settled pages */
	/* set by the owner: blocks to read, instead of those that core's scan would choose; or NULL */
	const BlockNumber *list;
	int nlist;

	HeapScanDesc scan; /* NULL: not begun */
	bool started;
	bool streaming;         /* its read stream chooses the blocks; else: */
	BlockNumber next_block; /* of a serial scan */
	BlockNumber blocks_left;
	Buffer last; /* that was pinned, though not necessarily now */
	int misses;  /* latest blocks not found in the buffer expected */
	int nahead;  /* HeapPage.nwanted and wanted of the page ahead */
	OffsetNumber wanted_ahead[MaxHeapTuplesPerPage];
	bool recheck_ahead;
	Buffer ahead;      /* the page after the one at hand, pinned; or InvalidBuffer */
	const char *fetch; /* what is left of it to fetch into the cache */
	const char *fetch_end;
	int fetched; /* bytes of each of its tuples that are fetched */
} HeapScan;

/*
 * The scan of a plan node, which has opened the table; nothing is read yet.  may_end_early: an
 * index scan may leave its last tuples to the node.
 */
extern HeapScan *heap_scan_create(ScanState *node, bool may_end_early);
/*
 * Begins the scan, unless the node has a scan descriptor already; returns how many blocks the table
 * has.
 */
extern BlockNumber heap_scan_begin(HeapScan *scan);
/* Does it read each block once at most?  An index scan may come back to one. */
extern bool heap_scan_counts_blocks(const HeapScan *scan);
/* After the node has been rescanned. */
extern void heap_scan_restart(HeapScan *scan);
/*
 * Replaces *page, whose pin goes, by the next page that has tuples; false at the
 * end.  The new page stays pinned until the next call or heap_page_release.
 */
extern bool heap_scan_next_page(HeapScan *scan, HeapPage *page);
/* At the end: has the node more tuples, which it is to return? */
extern bool heap_scan_ended_early(const HeapScan *scan);
/* The same for the very next page, which may have no tuples. */
extern bool heap_scan_read_page(HeapScan *scan, HeapPage *page);
/* Reads these blocks next, and then no more until this is called again. */
extern void heap_scan_set_list(HeapScan *scan, const BlockNumber *list, int n);
extern void heap_page_release(HeapPage *page);
/* Releases the page ahead, if there is one: the scan will not go on. */
extern void heap_scan_stop(HeapScan *scan);

#define HEAP_FETCH_BYTES 64
/* Fetched with each column; a processor has so many fetches under way without waiting. */
#define HEAP_COLUMN_FETCHES 20

/*
 * Fetches up to n cache lines of the page ahead into the processor's cache:
 * called now and then while the page at hand is read.
 */
static inline void
heap_fetch_some(HeapScan *scan, int n)
{
	const char *end = scan->fetch + Min(scan->fetch_end - scan->fetch, n * HEAP_FETCH_BYTES);

	for (; scan->fetch < end; scan->fetch += HEAP_FETCH_BYTES)
		__builtin_prefetch(scan->fetch);
}

/*
 * Of the page ahead, fetches the first `bytes` of each tuple; for pages that are not fetched as a
 * whole.
 */
extern void heap_fetch_tuples(HeapScan *scan, int bytes);

#endif /* GPUAGG_FEED_HEAP_PAGE_H */
