/*
 * span.h
 *	  What is known of many ranges at once: of a span, CACHE_SPAN_RANGES of them.
 *
 * A query over a large table would otherwise look at each of thousands of descriptors and chunks,
 * to find what the query before it has found.  A summary says of a span whose ranges are all
 * cached, and all of whose blocks the visibility map was found to prove, of which contents that is
 * true (ranges by their stamps), and as of which LSNs of the map's pages.  That is so for ever,
 * whatever becomes of the descriptors; so no change of them has to reach the summary, and whether
 *it still tells of the table is asked of the map alone (proof_span).
 *
 * Summaries are in a fixed number of places in shared memory, where one may take another one's.
 */
#ifndef GPUAGG_CACHE_SPAN_H
#define GPUAGG_CACHE_SPAN_H

#include "postgres.h"

#include "cache/chunk.h"
#include "cache/store.h"

/* Span s has ranges s * CACHE_SPAN_RANGES and on. */
#define CACHE_SPAN_RANGES 128
#define CACHE_SPAN_BLOCKS (CACHE_SPAN_RANGES * CACHE_RANGE_BLOCKS)

/*
 * Columns of which something is known, and pages of the visibility map over a span: at most so
 * many.
 */
#define CACHE_SPAN_COLUMNS 12
#define CACHE_SPAN_PAGES 3

/* What is known of a column's chunks, together. */
typedef struct CacheSpanColumn
{
	CacheColumnKey key;
	uint8 type;
	int16 scale;
	bool nulls;      /* there are some */
	bool only_nulls; /* no row has a value */
	bool exceptions; /* or chunks of different types */
	bool unbounded;  /* some chunk with values has no bounds */
	ColumnBound least;
	ColumnBound greatest;
} CacheSpanColumn;

typedef struct CacheSpan
{
	uint64 id;      /* of the list of stamps: no other one has had it, or will */
	uint64 digest;  /* of that list */
	uint32 nranges; /* all that the table had there */
	BlockNumber first;
	BlockNumber nblocks;
	uint64 nrows;
	FullTransactionId newest;             /* as of a range: of all of them */
	XLogRecPtr map_lsn[CACHE_SPAN_PAGES]; /* of the map's pages, from the first block's on; 0: it
											 has no block there */
	int ncols;
	CacheSpanColumn cols[CACHE_SPAN_COLUMNS];
} CacheSpan;

/* The summary of a table's span; false: there is none. */
extern bool cache_span_read(CacheTable *table, uint32 number, CacheSpan *span);

/*
 * Making one: begin, add each range in order (false: the span has no summary), and publish. Columns
 * are those of the pins; the first CACHE_SPAN_COLUMNS of them.
 */
extern void cache_span_begin(CacheSpan *span, uint32 number, int ncols, const CacheColumnKey *cols);
extern bool cache_span_add(CacheSpan *span, CachePin *pin);
extern void cache_span_publish(CacheTable *table, CacheSpan *span);

/* Adds a range's stamp to a digest. */
extern uint64 cache_span_digest(uint64 digest, uint64 stamp);

/*
 * The column as a chunk of all rows of the span, of which only fields up to its bounds are set;
 * false: it is not known.
 */
extern bool cache_span_chunk(const CacheSpan *span, const CacheColumnKey *col, CacheChunk *chunk);

#endif /* GPUAGG_CACHE_SPAN_H */
