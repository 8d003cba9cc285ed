/*
 * heap_columns.h
 *	  From the tuples of a heap page to vectors of columns.
 */
#ifndef GPUAGG_FEED_HEAP_COLUMNS_H
#define GPUAGG_FEED_HEAP_COLUMNS_H

#include "postgres.h"

#include "access/tupdesc.h"

#include "expr/expr.h"
#include "feed/heap_page.h"
#include "operators/decode.h"

/* Some tuples of a page: the rows of all vectors. */
typedef struct HeapRows
{
	int n;
	uint16 tuple[EXPR_ROWS]; /* index into the page's tuples */
	uint16 data[EXPR_ROWS];  /* bytes from the page's start to the first attribute */
} HeapRows;

/*
 * Bytes of some attributes of fixed width by the position where they begin, modulo 8;
 * in chunk_runs, negative, with HEAP_RUN_BYTES of them, if the attribute behind is not
 * NULL.  No tuple on a page has more bytes than that.
 */
typedef int16 HeapRun[8];
#define HEAP_RUN_BYTES 0x7fff

/* Attributes of a run whose NULLs are looked up together. */
#define HEAP_CHUNK 5

/* What decoding the tuples of one table needs. */
typedef struct HeapDecoder
{
	TupleDesc desc;
	DecodeAttr *attrs;
	/* [attribute][number of attributes] the runs that begin there, if made yet; see chunk_runs */
	HeapRun *(*chunks)[HEAP_CHUNK + 1];
	MemoryContext cxt;
	int border; /* behind the last attribute of the stage that was prepared last */

	/*
	 * Where the walks through the tuples of these rows have come to; the next
	 * stage may go on from there.  reached: the attribute that begins there, or is
	 * padded there; 0: no walk yet, to be set with each new set of rows.
	 */
	int reached;
	uint32 position[EXPR_ROWS]; /* of each row, in the page */

	/* while the columns of a stage are filled: */
	uint64 present[EXPR_ROWS]; /* decode_present of each row, and of all rows: */
	uint64 present_in_all;
	int word; /* of the null bitmaps, which that is of; or -1 */
} HeapDecoder;

struct HeapStep;

/* The columns that a stage of expressions reads first. */
typedef struct HeapColumns
{
	int nvecs;
	Vec **vecs;
	int *slot;  /* [vec] index into the attributes below */
	int nattrs; /* distinct attributes, ascending */
	int16 *attrs;
	int nsteps; /* from the first attribute of a tuple to the last of these */
	struct HeapStep *steps;
	int fetches;           /* heap_fetch_some at each */
	const uint8 **located; /* [attribute][EXPR_ROWS] the value, or NULL */
	bool *complete;        /* [attribute] no row has NULL there */
} HeapColumns;

/* All this lives in the current memory context. */
extern HeapDecoder *heap_decoder_create(TupleDesc desc);
/* Prepares the columns of one stage, in the order in which stages run; columns must be zeroed. */
extern void heap_columns_init(HeapDecoder *decoder, HeapColumns *columns, ExprSet *set, int stage);
/* Fills them for all rows, which are of the page that scan has read last. */
extern void heap_columns_fill(HeapDecoder *decoder, HeapColumns *columns, HeapScan *scan,
							  const HeapPage *page, const HeapRows *rows);
/* Keeps n rows, sel[0 .. n - 1], ascending, of those whose columns were filled last. */
extern void heap_rows_keep(HeapDecoder *decoder, HeapRows *rows, const uint16 *sel, int n);

#endif /* GPUAGG_FEED_HEAP_COLUMNS_H */
