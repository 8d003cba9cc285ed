/*
 * span.h
 *
 * Summaries of spans. A span is CACHE_SPAN_RANGES consecutive ranges of a table.
 *
 * Without summaries, a query over a large table would check thousands of descriptors and chunks,
 * and find what the query before it has found. A span has a summary if all of its ranges are
 * cached, and the visibility map has proved all of their blocks. The summary says which ranges
 * these are (by their stamps), and by which LSNs of the map's pages they are proved. That remains
 * true whatever happens to the descriptors later, so no change of them has to update the summary.
 * Whether the table still has these contents is decided by the map alone (proof_span()).
 *
 * Summaries are stored in a fixed number of entries in shared memory, where one may replace
 * another.
 */
#ifndef GPUAGG_CACHE_SPAN_H
#define GPUAGG_CACHE_SPAN_H

#include "postgres.h"

#include "cache/chunk.h"
#include "cache/store.h"

/* Span s has the ranges from s * CACHE_SPAN_RANGES on. */
#define CACHE_SPAN_RANGES 128
#define CACHE_SPAN_BLOCKS (CACHE_SPAN_RANGES * CACHE_RANGE_BLOCKS)

/* Most columns of a summary, and most pages of the visibility map for a span. */
#define CACHE_SPAN_COLUMNS 12
#define CACHE_SPAN_PAGES 3

/* Summary of a column's chunks in a span. */
typedef struct CacheSpanColumn
{
	CacheColumnKey key;
	uint8 type;
	int16 scale;
	bool nulls;      /* some row is NULL */
	bool only_nulls; /* no row has a value */
	bool exceptions; /* some chunk has exceptions, or another type than the first one */
	bool unbounded;  /* some chunk with values has no bounds */
	ColumnBound least;
	ColumnBound greatest;
} CacheSpanColumn;

typedef struct CacheSpan
{
	uint64 id;      /* identifies the list of the ranges' stamps; never used for another list */
	uint64 digest;  /* cache_span_digest() of that list */
	uint32 nranges; /* all ranges that the table had there */
	BlockNumber first;
	BlockNumber nblocks;
	uint64 nrows;
	FullTransactionId newest;             /* the newest of the ranges' CacheRange.newest */
	XLogRecPtr map_lsn[CACHE_SPAN_PAGES]; /* LSNs of the map's pages, from the page of the first
											 block on; 0: no block of the span is on that page */
	int ncols;
	CacheSpanColumn cols[CACHE_SPAN_COLUMNS];
} CacheSpan;

/* Copies the summary of a table's span; returns false if there is none. */
extern bool cache_span_read(CacheTable *table, uint32 number, CacheSpan *span);

/*
 * Begins a summary, of the first CACHE_SPAN_COLUMNS of these columns. Then cache_span_add() adds
 * each range of the span in order, and cache_span_publish() stores it.
 */
extern void cache_span_begin(CacheSpan *span, uint32 number, int ncols, const CacheColumnKey *cols);
/*
 * Adds a pinned range to a summary; the pin has the columns of cache_span_begin(). Returns false if
 * the span can have no summary, because of this range.
 */
extern bool cache_span_add(CacheSpan *span, CachePin *pin);
/* Stores a summary for all processes, in place of the entry's old one. Sets span->id. */
extern void cache_span_publish(CacheTable *table, CacheSpan *span);

/*
 * Extends the digest of a list of stamps by one more stamp, and returns it. An empty list has
 * digest 0.
 */
extern uint64 cache_span_digest(uint64 digest, uint64 stamp);

/*
 * Describes a column as one chunk of all rows of the span; only fields up to the bounds are set.
 * Returns false if the column is not in the summary.
 */
extern bool cache_span_chunk(const CacheSpan *span, const CacheColumnKey *col, CacheChunk *chunk);

#endif /* GPUAGG_CACHE_SPAN_H */
