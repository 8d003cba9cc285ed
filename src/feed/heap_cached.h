/*
 * heap_cached.h
 *	  Reads a table from the column cache where that is proved to be the same, and
 *	  from its pages where it is not.
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
	FeedStats *stats; /* counts what is read */
	MemoryContext cxt;
	CacheTable *table;
	int ncols;
	CacheColumnKey *cols; /* ascending by attribute */
	int natts;
	int *slots;           /* [attribute] index into cols, or -1 */
	bool fill;            /* ranges that lack columns are built */
	HeapBuilder *builder; /* NULL before the first of them */
	MemoryContext builder_cxt;
	int refused; /* doubles with each range in a row that was not worth building; or 0 */
	int passed;  /* ranges to come that are not to be built */
	Proof proof;
	bool begun; /* reading; the fields below are valid */

	BlockNumber nblocks; /* of the table, as the scan sees it */
	BlockNumber block;   /* the next one to read, */
	BlockNumber end;     /* before this one, of those that this participant has claimed */
	BlockNumber wrapped; /* and so many from the table's first one on */
	BlockNumber first;   /* of the range that is being read, */
	BlockNumber last;    /* up to this one */
	CachePin *pin;       /* of the range, or NULL */
	uint64 dictionary;   /* number of this pin, for Column.dictionary */
	size_t *longest;     /* [column] of the range; see heap_cached_longest */
	HeapSkip *skip;      /* set by the owner, or NULL */
	bool skipped;        /* no row of the range at hand can pass the quals */
	CacheBlocks *taken;  /* [range] blocks that an engine took (heap_resident.c); NULL: none */
	int nquals;          /* set by the owner */
	bool *implied;       /* [qual] set by the owner: each row of the range at hand passes it */
	bool all_implied;
	CacheBlocks proved;                    /* its blocks that are read from the cache */
	bool whole;                            /* all that have rows are among them */
	BlockNumber stale[CACHE_RANGE_BLOCKS]; /* the others */
	int missing;     /* most blocks that a range has got since it was cached */
	bool shared_out; /* set by the owner: one participant alone, any of them, reads the table */
	bool used;       /* by a scan before; counted */
	bool asked;      /* for renewal */
} HeapCached;

/*
 * Prepares to read these columns of the scan's table by way of the cache, for the vectors of a
 * set; NULL: it does not serve them.  `attnos` as pull_varattnos makes them.  Lives in the current
 * memory context.
 */
extern HeapCached *heap_cached_create(HeapScan *scan, const Bitmapset *attnos, const ExprSet *set,
									  FeedStats *stats);
/*
 * Starts to read, after heap_scan_begin; false: nothing is cached, and nothing is to be,
 * so that the scan reads the table by itself.  second: it has been started before, for rows that an
 * engine takes by name, which it has.
 */
extern bool heap_cached_begin(HeapCached *cached, bool second);
/*
 * Like heap_scan_next_page; rows may be those of the cache (HeapPage.cached), and none at the end
 * of a range.  Rows that are skipped count as filtered.
 */
extern bool heap_cached_next(HeapCached *cached, HeapPage *page);
/* Releases what is pinned; a scan may begin again. */
extern void heap_cached_stop(HeapCached *cached);

/* Unpins the pinned range. */
extern void heap_cached_unpin(HeapCached *cached);
/* Does the pinned range lack a column? */
extern bool heap_cached_lacks_chunks(const HeapCached *cached);

/* May heap_cached_next unpin the range that the last cached rows came from? */
extern bool heap_cached_leaves_range(const HeapCached *cached);

/*
 * Is a column that chunks have as one type wanted as another one for its NULLs alone?  Bytes are
 * what counts of values that do not fit into a column of their own are made of.
 */
static inline bool
heap_cached_presence(ColumnType chunk_type, ColumnType wanted)
{
	return wanted == COLUMN_I8 && chunk_type != COLUMN_I8;
}

/* Are all rows that the cache has of the range at hand read from it? */
extern bool heap_cached_whole(const HeapCached *cached);

/* The chunk of a column in the range at hand. */
static inline const CacheChunk *
heap_cached_chunk(const HeapCached *cached, AttrNumber attno)
{
	return cached->pin->chunks[cached->slots[attno - 1]];
}

/* The number of the dictionaries of the range at hand, for Column.dictionary. */
static inline uint64
heap_cached_dictionary(const HeapCached *cached)
{
	return cached->dictionary;
}

/*
 * Bytes of the longest value, detoasted, of a chunk of the range that has a dictionary; SIZE_MAX
 * without.
 */
extern size_t heap_cached_longest(HeapCached *cached, const CacheChunk *chunk);

/*
 * Like heap_columns_fill, for a page of cached rows, but only for what stages after this one read.
 * If `condition`, the columns are those of a condition, and vectors that nothing else reads may
 * have their values in the cache until heap_cached_return.
 */
extern void heap_cached_fill(HeapCached *cached, HeapColumns *columns, const HeapPage *page,
							 const HeapRows *rows, int after, bool condition, MemoryContext cxt);
extern void heap_cached_return(HeapColumns *columns);
/*
 * Stores a row's columns in a slot for the table's rows; other attributes become NULL.  What has to
 * be made is in cxt.
 */
extern void heap_cached_load(HeapCached *cached, const HeapPage *page, int tuple,
							 TupleTableSlot *slot, MemoryContext cxt);

#endif /* GPUAGG_FEED_HEAP_CACHED_H */
