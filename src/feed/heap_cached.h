/*
 * heap_cached.h
 *
 * Reads a table by way of the column cache: cached rows where they are proved to be current, and
 * heap pages for all other blocks.
 */
#ifndef GPUAGG_FEED_HEAP_CACHED_H
#define GPUAGG_FEED_HEAP_CACHED_H

#include "postgres.h"

#include "nodes/bitmapset.h"

#include "cache/chunk.h"
#include "cache/store.h"
#include "feed.h"
#include "feed/heap_build.h"
#include "feed/heap_columns.h"
#include "feed/heap_page.h"
#include "feed/heap_skip.h"

typedef struct HeapCached
{
	HeapScan *scan;
	FeedStats *stats; /* counts what is read; the owner's */
	MemoryContext cxt;
	CacheTable *table;
	int ncols;
	CacheColumnKey *cols; /* the columns that the query reads, ascending by attribute */
	int natts;
	int *slots;           /* [attribute] index into cols, or -1 */
	bool fill;            /* columns that a range lacks are added to the cache */
	HeapBuilder *builder; /* NULL before the first range that is built */
	MemoryContext builder_cxt;
	int backoff;      /* doubles with each consecutive range that was not worth building; 0 after a
						 success */
	int nskip_builds; /* number of ranges that will not be built next */
	Proof proof;
	bool begun; /* a scan is under way; the fields below are valid */

	BlockNumber nblocks; /* number of the table's blocks, as the scan sees it */
	BlockNumber block;   /* the next block to read, */
	BlockNumber end;     /* end of the blocks that this participant has claimed */
	BlockNumber first;   /* blocks of the current range: from this one */
	BlockNumber last;    /* to the one before this */
	CachePin *pin;       /* the current range, pinned; NULL: it is read from the heap */
	uint64 dictionary;   /* new for each pin, for Column.dictionary */
	HeapSkip *skip;      /* set by the owner; NULL: bounds decide no qual */
	int nprobes;         /* set by the owner, and probes[] */
	HeapSkipProbe *probes;
	bool skipped;       /* no cached row of the current range can pass the quals and probes */
	CacheBlocks *taken; /* [range] blocks that an engine has taken (heap_resident.c); NULL: none */
	int nquals;         /* set by the owner */
	bool *implied;      /* [qual] allocated by the owner; all cached rows of the range pass it */
	bool all_implied;   /* implied[] is true for all quals */
	CacheBlocks proved; /* blocks of the current range that are read from the cache */
	bool whole;         /* the proved blocks are all blocks with rows */
	BlockNumber stale[CACHE_RANGE_BLOCKS]; /* the other blocks */
	int missing;            /* most blocks by which a range has grown since it was cached */
	bool shared_out;        /* set by the owner: exactly one participant reads the table */
	bool used;              /* the columns' use by this query has been counted */
	bool refresh_requested; /* a refresh has been requested */
} HeapCached;

/*
 * Prepares to read columns of the scan's table by way of the cache, for the vectors of a set.
 * `attnos` is what pull_varattnos() makes. Lives in the current memory context. Returns NULL if
 * the cache cannot serve them.
 */
extern HeapCached *heap_cached_create(HeapScan *scan, const Bitmapset *attnos, const ExprSet *set,
									  FeedStats *stats);
/* Returns whether the columns can be read as the vectors of another set need them. */
extern bool heap_cached_fits(const HeapCached *cached, const ExprSet *set);
/*
 * Begins a scan, after heap_scan_begin(). Returns false if nothing is cached and nothing is to be
 * added, so that the scan reads the table by itself. rest: the rows that an engine has not taken
 * are read (HEAP_READ_REST); its blocks stay taken.
 */
extern bool heap_cached_begin(HeapCached *cached, bool rest);
/*
 * Like heap_scan_next_page(). Rows may be cached ones (HeapPage.cached). At the end of a range the
 * page may be empty. Rows that are skipped count as filtered.
 */
extern bool heap_cached_next(HeapCached *cached, HeapPage *page);
/* Releases all pins, and requests a refresh if stale blocks were found. A new scan may begin. */
extern void heap_cached_stop(HeapCached *cached);

/* Unpins the current range. */
extern void heap_cached_unpin(HeapCached *cached);
/* Returns whether the pinned range lacks a column. */
extern bool heap_cached_lacks_chunks(const HeapCached *cached);

/* Returns whether heap_cached_next() may unpin the range of the current rows. */
extern bool heap_cached_leaves_range(const HeapCached *cached);

/*
 * Returns whether a reader of a chunk needs only which rows are NULL: it reads a column of
 * bytes whose values have no meaning. Such a column counts the values of a type that is too
 * wide for a column of its own.
 */
static inline bool
heap_cached_presence(ColumnType chunk_type, ColumnType wanted)
{
	return wanted == COLUMN_I8 && chunk_type != COLUMN_I8;
}

/* Returns whether all rows of the current range are read from the cache. */
extern bool heap_cached_whole(const HeapCached *cached);

/* Returns the chunk of a column in the pinned range. */
static inline const CacheChunk *
heap_cached_chunk(const HeapCached *cached, AttrNumber attno)
{
	return cached->pin->chunks[cached->slots[attno - 1]];
}

/*
 * Returns the identifier of the pinned range's dictionaries, for Column.dictionary. Each pin
 * gets a new one.
 */
static inline uint64
heap_cached_dictionary(const HeapCached *cached)
{
	return cached->dictionary;
}

/*
 * Fills vectors from cached rows, like heap_columns_fill(), but only those that stages later than
 * `after` read. `condition`: the columns are read by a qual only, so vectors that nothing else
 * reads may point into the cache until heap_cached_unborrow().
 */
extern void heap_cached_fill(HeapCached *cached, HeapColumns *columns, const HeapPage *page,
							 const HeapRows *rows, int after, bool condition, MemoryContext cxt);
/* Points all vectors back to their own arrays. */
extern void heap_cached_unborrow(HeapColumns *columns);
/*
 * Stores a row's columns in a slot for the table's rows; other attributes become NULL.
 * By-reference values that must be made are allocated in cxt.
 */
extern void heap_cached_load(HeapCached *cached, const HeapPage *page, int tuple,
							 TupleTableSlot *slot, MemoryContext cxt);

#endif /* GPUAGG_FEED_HEAP_CACHED_H */
