/*
 * heap_page.h
 *
 * Reads the pages of one heap table, and finds the tuples that the snapshot sees.
 *
 * A page stays pinned while its tuples are used. After an error the resource owner releases the
 * pins.
 */
#ifndef GPUAGG_FEED_HEAP_PAGE_H
#define GPUAGG_FEED_HEAP_PAGE_H

#include "postgres.h"

#include "access/heapam.h"
#include "nodes/execnodes.h"

#include "cache/proof.h"

/* The visible tuples of one page, or rows of the column cache in their place. */
typedef struct HeapPage
{
	Buffer buffer; /* pinned, or InvalidBuffer */
	BlockNumber block;
	const uint8 *start;
	int ntuples;
	int nwanted; /* bitmap and index scans: number of selected tuples; -1: all of the page */
	OffsetNumber wanted[MaxHeapTuplesPerPage];
	bool recheck; /* selected tuples may fail the conditions of the index */
	bool cached;  /* the rows are cached: ntuples rows of a range, from first_row on; other fields
					 are undefined */
	uint32 first_row;

	/* Valid if HeapScan.proof is set. */
	XLogRecPtr lsn;
	bool settled; /* proof_page_is_settled() */

	/* Undefined if HeapScan.counts_only is set. */
	bool has_nulls; /* true: some tuple has a null bitmap */
	int min_natts;  /* fewest attributes that a tuple has */
	OffsetNumber lines[MaxHeapTuplesPerPage];
	uint16 tuples[MaxHeapTuplesPerPage]; /* offset of the header from start */
	uint16 data[MaxHeapTuplesPerPage];   /* offset of the first attribute from start */
} HeapPage;

/* Returns the header of visible tuple i of the page. */
static inline HeapTupleHeader
heap_page_tuple(const HeapPage *page, int i)
{
	return (HeapTupleHeader) (page->start + page->tuples[i]);
}

/* A scan of one table. */
typedef struct HeapScan
{
	ScanState *node; /* a SeqScanState, BitmapHeapScanState or IndexScanState */
	Relation rel;
	struct HeapBitmap *bitmap; /* which tuples a bitmap scan selects; else NULL */
	struct HeapIndex *index;   /* which tuples an index scan selects; else NULL */
	bool counts_only;          /* set by the owner: only HeapPage.ntuples is needed */
	bool whole_tuples;         /* set by the owner: most of each tuple is read */
	int ncolumns;              /* set by the owner: number of columns read of every tuple */
	uint64 blocks_done;
	Proof *proof;             /* set by the owner: examine pages for the column cache; or NULL */
	FullTransactionId newest; /* the newest transaction id of settled pages; only with proof */
	/* Set by the owner: the blocks to read, in place of those that core's scan chooses; or NULL. */
	const BlockNumber *list;
	int nlist;

	HeapScanDesc scan; /* NULL before heap_scan_begin() */
	bool started;
	bool streaming;         /* core's read stream chooses the blocks; else next_block does */
	BlockNumber next_block; /* serial scan: the next block, */
	BlockNumber blocks_left;
	Buffer last; /* the buffer that was pinned last; the pin may be gone */
	int misses;  /* number of latest blocks that were not in the expected buffer */
	int nahead;  /* HeapPage.nwanted of the page ahead */
	OffsetNumber wanted_ahead[MaxHeapTuplesPerPage];
	bool recheck_ahead;
	Buffer ahead;      /* the page after the current one, pinned; or InvalidBuffer */
	const char *fetch; /* part of that page that is still to be prefetched into the CPU cache */
	const char *fetch_end;
	int fetched; /* bytes of each of its tuples that are prefetched */
} HeapScan;

struct FeedShared;

/*
 * Creates the scan of a plan node, which has opened the table; reads nothing. may_end_early: an
 * index scan may leave its last tuples to the executor. shared: Feed.shared.
 */
extern HeapScan *heap_scan_create(ScanState *node, bool may_end_early, struct FeedShared **shared);
/*
 * Begins the scan, unless the node has a scan descriptor already. Returns the number of the
 * table's blocks.
 */
extern BlockNumber heap_scan_begin(HeapScan *scan);
/* Returns whether the scan reads each block at most once. An index scan may return to a block. */
extern bool heap_scan_counts_blocks(const HeapScan *scan);
/* Restarts the scan, after its node has been rescanned. */
extern void heap_scan_restart(HeapScan *scan);
/*
 * Replaces *page, whose pin is released, by the next page that has visible tuples; false at the
 * end. The new page stays pinned until the next call or heap_page_release().
 */
extern bool heap_scan_next_page(HeapScan *scan, HeapPage *page);
/*
 * Returns whether an index scan has ended before its last tuple, so that the node must return the
 * rest. Valid at the end.
 */
extern bool heap_scan_ended_early(const HeapScan *scan);
/* Like heap_scan_next_page(), but also returns pages without visible tuples. */
extern bool heap_scan_read_page(HeapScan *scan, HeapPage *page);
/*
 * Makes the scan read the n blocks of a list, and then end. With a NULL list core's scan
 * chooses the blocks again.
 */
extern void heap_scan_set_list(HeapScan *scan, const BlockNumber *list, int n);
/* Releases the page's pin, if there is one. The page has no rows then. */
extern void heap_page_release(HeapPage *page);
/* Releases the pin of the page ahead. The scan will not go on. */
extern void heap_scan_stop(HeapScan *scan);

#define HEAP_FETCH_BYTES 64
/* Cache lines prefetched with each column; a CPU has so many fetches in flight without stalling. */
#define HEAP_COLUMN_FETCHES 20

/*
 * Prefetches a cache line into the second level of the CPU cache.  The first level has few requests
 * in flight, and loads of the current page would wait for them.
 */
static inline void
heap_prefetch(const void *at)
{
	__builtin_prefetch(at, 0, 2);
}

/*
 * Prefetches up to n cache lines of the page ahead. Called from time to time while the current
 * page is read.
 */
static inline void
heap_fetch_some(HeapScan *scan, int n)
{
	const char *end = scan->fetch + Min(scan->fetch_end - scan->fetch, n * HEAP_FETCH_BYTES);

	for (; scan->fetch < end; scan->fetch += HEAP_FETCH_BYTES)
		heap_prefetch(scan->fetch);
}

/*
 * Prefetches the first `bytes` bytes of each tuple of the page ahead; for pages that are not
 * prefetched as a whole.
 */
extern void heap_fetch_tuples(HeapScan *scan, int bytes);

#endif /* GPUAGG_FEED_HEAP_PAGE_H */
