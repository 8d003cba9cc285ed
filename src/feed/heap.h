/*
 * heap.h
 *	  The heap feed's parts: reading pages (feed_heap_page.c), and making
 *	  batches of them (feed_heap.c).
 */
#ifndef GPUAGG_FEED_HEAP_H
#define GPUAGG_FEED_HEAP_H

#include "postgres.h"

#include "access/heapam.h"
#include "nodes/execnodes.h"

#include "operators/decode.h"
#include "expr/expr.h"

/* The tuples of one page that the snapshot sees. */
typedef struct HeapPage
{
	Buffer		buffer;			/* pinned, or InvalidBuffer */
	BlockNumber block;
	const uint8 *start;
	int			ntuples;
	bool		has_nulls;		/* some tuple has a null bitmap */
	int			min_natts;
	OffsetNumber lines[EXPR_ROWS];
	uint16		tuples[EXPR_ROWS];	/* bytes from start to the header */
	uint16		data[EXPR_ROWS];	/* bytes from start to the first attribute */
} HeapPage;

/* Some tuples of a page, the rows of all vectors. */
typedef struct HeapRows
{
	int			n;
	const uint8 *start;			/* of the page */
	uint16		tuple[EXPR_ROWS];	/* index into the page's tuples */
	uint16		data[EXPR_ROWS];	/* bytes from start */
} HeapRows;

static inline HeapTupleHeader
heap_page_tuple(const HeapPage *page, int i)
{
	return (HeapTupleHeader) (page->start + page->tuples[i]);
}

/* The columns that a stage of expressions reads first. */
typedef struct HeapColumns
{
	int			nvecs;
	Vec		  **vecs;
	int		   *slot;			/* [vec] index into the attributes below */
	int			nattrs;			/* distinct attributes, ascending */
	int16	   *attrs;
	int			nvarying;		/* those of them without a fixed offset */
	int16	   *varying;
	int		   *varying_slot;
} HeapColumns;

/* Reading one table. */
typedef struct HeapScan
{
	SeqScanState *node;
	Relation	rel;
	HeapScanDesc scan;			/* NULL: not begun */
	bool		started;
	BlockNumber next_block;		/* serial scans */
	BlockNumber blocks_left;
	uint64		blocks_done;
	Buffer		ahead;			/* the page after the one at hand, pinned; or InvalidBuffer */
	BlockNumber ahead_block;
	const char *fetch;			/* what is left of it to fetch into the cache */
	const char *fetch_end;
	int			ncolumns;		/* filled for every row: those of the first stage */
	Buffer		last;			/* that was pinned, though not necessarily now */
	DecodeAttr *attrs;
	const uint8 **located;		/* [attribute of the stage][EXPR_ROWS] */
} HeapScan;

extern HeapScan *heap_scan_create(SeqScanState *node);
/* Begins the scan if need be; blocks of the table. */
extern BlockNumber heap_scan_begin(HeapScan *scan);
extern void heap_scan_restart(HeapScan *scan);
/* Reads the next page with any tuples; false at the end.  The page stays pinned. */
extern bool heap_scan_next_page(HeapScan *scan, HeapPage *page);
extern void heap_page_release(HeapPage *page);
/* Gives up the page ahead, if there is one. */
extern void heap_scan_stop(HeapScan *scan);

/* Prepares the columns of one stage, and fills them for all rows. */
extern void heap_columns_init(HeapScan *scan, HeapColumns *columns, ExprSet *set, int stage);
extern void heap_columns_fill(HeapScan *scan, const HeapColumns *columns, const HeapPage *page,
							  const HeapRows *rows);

#endif							/* GPUAGG_FEED_HEAP_H */
