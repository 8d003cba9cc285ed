/*
 * heap_columns.h
 *
 * Decodes columns of a heap page's tuples into vectors.
 */
#ifndef GPUAGG_FEED_HEAP_COLUMNS_H
#define GPUAGG_FEED_HEAP_COLUMNS_H

#include "postgres.h"

#include "access/tupdesc.h"

#include "expr/expr.h"
#include "feed/heap_page.h"
#include "operators/decode.h"
#include "operators/decode_numeric.h"

/* Tuples of a page that are the rows of all vectors. */
typedef struct HeapRows
{
	int n;
	bool repeated;           /* a tuple may be several rows, which follow each other */
	uint16 tuple[EXPR_ROWS]; /* index into the page's tuples */
	uint16 data[EXPR_ROWS];  /* offset of the first attribute from the page's start */
} HeapRows;

/*
 * Length of consecutive attributes of fixed width, by the position of the first one modulo 8. In
 * the results of chunk_runs(), the sign bit says that the next attribute is not NULL, and the
 * length is the value & HEAP_RUN_BYTES. No tuple on a page is longer than that.
 */
typedef int16 HeapRun[8];
#define HEAP_RUN_BYTES 0x7fff

/* Number of attributes whose NULLs are looked up together. */
#define HEAP_CHUNK 5

/* State for decoding the tuples of one table. */
typedef struct HeapDecoder
{
	TupleDesc desc;
	DecodeAttr *attrs;
	/* [first attribute][number of attributes] results of chunk_runs(), NULL before the first use */
	HeapRun *(*chunks)[HEAP_CHUNK + 1];
	MemoryContext cxt;
	int border; /* attribute after the last one of the stage that was prepared last */

	/*
	 * Where the walk through each row's tuple has stopped; the next stage may go on from there.
	 * reached: the attribute that begins, or is padded, at these positions; 0: no walk yet. The
	 * caller sets it to 0 for each new set of rows.
	 */
	int reached;
	uint32 position[EXPR_ROWS]; /* [row] offset in the page */

	/* Used while the columns of a stage are filled: */
	uint64 present[EXPR_ROWS]; /* [row] decode_present(), and the AND of all rows */
	uint64 present_in_all;
	int word; /* word of the null bitmaps that `present` holds; or -1 */
} HeapDecoder;

struct HeapStep;

/* The columns that a stage of expressions is the first to read. */
typedef struct HeapColumns
{
	int nvecs;
	Vec **vecs;
	int *slot;  /* [vec] index into attrs */
	int nattrs; /* number of distinct attributes, ascending */
	int16 *attrs;
	int nsteps; /* steps from the first attribute of a tuple to the last one here */
	struct HeapStep *steps;
	int fetches; /* argument of heap_fetch_some() after each step */
	const uint8 *
		*located;   /* [attribute][EXPR_ROWS] pointer to the value; NULL: the value is NULL */
	bool *complete; /* [attribute] no row has a NULL there */
} HeapColumns;

/* Creates a decoder in the current memory context. */
extern HeapDecoder *heap_decoder_create(TupleDesc desc);
/* Prepares the columns of one stage, in the order of stages; *columns must be zeroed. */
extern void heap_columns_init(HeapDecoder *decoder, HeapColumns *columns, ExprSet *set, int stage);
/*
 * Fills the vectors of a stage for all rows, which are tuples of the page that the scan has read
 * last.
 */
extern void heap_columns_fill(HeapDecoder *decoder, HeapColumns *columns, HeapScan *scan,
							  const HeapPage *page, const HeapRows *rows);
/*
 * Fills a vector with n values of the executor; nulls: which ones are NULL, or NULL for none.
 * By-reference values stay where they are.
 */
extern void heap_fill_datums(Vec *vec, int n, const Datum *values, const bool *nulls);
/*
 * Reduces rows to those with the indexes sel[0 .. n - 1], ascending. Their columns were filled
 * last, and the decoder's positions are kept for them.
 */
extern void heap_rows_keep(HeapDecoder *decoder, HeapRows *rows, bool cached, const uint16 *sel,
						   int n);

/*
 * Repeats rows: row i becomes row sel[i], which is <= i.  sel ascends, and may have an index
 * several times.
 */
extern void heap_rows_expand(HeapDecoder *decoder, HeapRows *rows, const uint16 *sel, int n);

/* Returns whether the rows are consecutive tuples, of which there are some. */
static inline bool
heap_rows_are_dense(const HeapRows *rows)
{
	return !rows->repeated && rows->tuple[rows->n - 1] - rows->tuple[0] == rows->n - 1;
}

/*
 * Sets element i of a vector of n decimals to the numeric at ptr, or to 0 if that is NULL.  The
 * value of a numeric that the vector cannot represent is the pointer to it, and its state
 * VEC_FALLBACK.
 */
static inline void
heap_fill_decimal(Vec *vec, int i, int n, const uint8 *ptr)
{
	gpuagg_i128 *values = vec->values;
	const uint8 *payload;
	int len;

	values[i] = 0;
	if (ptr == NULL)
		return;
	payload = decode_payload(ptr, &len);
	if (likely(payload && decode_numeric(payload, len, vec->scale, &values[i])))
		return;
	values[i] = (gpuagg_i128) PointerGetDatum(ptr);
	if (vec->all_values)
	{
		memset(vec->state, VEC_VALUE, n);
		vec->all_values = false;
	}
	vec->state[i] = VEC_FALLBACK;
}

#endif /* GPUAGG_FEED_HEAP_COLUMNS_H */
