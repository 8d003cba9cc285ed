/*
 * store.h
 *	  The store of cached columns in shared memory.
 *
 * It is there if the library is in shared_preload_libraries and gpuagg.cache_memory is not 0.
 * Whoever asks for something that is not there, or for memory when there is none, is told so;
 * no function here raises an error because of either.
 */
#ifndef GPUAGG_CACHE_STORE_H
#define GPUAGG_CACHE_STORE_H

#include "postgres.h"

#include "nodes/bitmapset.h"
#include "utils/relcache.h"

#include "cache/cache.h"

struct CacheChunk; /* chunk.h */

/* From _PG_init: asks for the shared memory, where the library is preloaded. */
extern void cache_store_init(void);

/* Is there a store? */
extern bool cache_exists(void);

/* Is there a store, and may the session's queries use it (gpuagg.cache)? */
extern bool cache_available(void);

/* The key of an open relation's main fork. */
extern CacheTableKey cache_table_key(Relation rel);

/*
 * A handle of this process, in the memory context that is current when it is opened, together
 * with the pins made by it.  It keeps nothing in the store by itself: a table may be forgotten
 * meanwhile, and then has no ranges for this handle any more, even if it is made again.
 *
 * When the context is reset, after errors as well, what is still pinned is unpinned, and
 * chunks that were not published are given back.
 */
typedef struct CacheTable CacheTable;

/*
 * Opens a handle of the table's entry.  With the open relation the entry is made if there is none,
 * and learns the table's present owner; without one (NULL) an entry must be there.  Returns NULL if
 * there is no entry, or no room for one.
 */
extern CacheTable *cache_table_open(const CacheTableKey *key, Relation rel);

/*
 * From now on what this handle fills takes free memory, and memory of tables of the same owner; it
 * evicts nothing of others.
 */
extern void cache_table_evict_own(CacheTable *table);

/* A number that no other table's entry has had, or will. */
extern uint64 cache_table_id(const CacheTable *table);

/*
 * Counts a use of these columns (there may be none) by a query: once, by whichever participant
 * reads the table first.
 */
extern void cache_table_use(CacheTable *table, int ncols, const CacheColumnKey *cols);

/*
 * Is the column worth filling: has a query used it before this one, which has been counted, or
 * are there chunks of it?
 */
extern bool cache_column_wanted(CacheTable *table, const CacheColumnKey *col);

/* The table of that number, if there is one. */
extern bool cache_table_named(uint64 id, CacheTableKey *key, Oid *relid);

/* May the user know what is cached of a table's column, or of all of it (0)? */
extern bool cache_may_see(const CacheTableKey *key, Oid relid, AttrNumber attno);

/* Has the table any descriptor? */
extern bool cache_table_filled(CacheTable *table);

/*
 * The share of a table's blocks, of nblocks, of which the cache has all of these columns (as
 * pull_varattnos makes them), as far as it is known that they have not changed.  For the planner:
 * it is an estimate, and pins nothing.
 */
extern double cache_table_share(Relation rel, BlockNumber nblocks, const Bitmapset *attnos);

typedef struct CachePin
{
	CacheRange *range;
	int ncols;
	const struct CacheChunk **chunks; /* of each column asked for; NULL: not there */
	/* the rest is the store's */
	CacheTable *table;
	struct CachePin *next;
	int room;    /* in chunks[] */
	bool failed; /* there was no memory for a chunk */
	struct StoredChunk *unpublished;
} CachePin;

/*
 * Pins a range, and those chunks of the columns that are there, until cache_unpin(); NULL if
 * there is no descriptor.  Counts as a hit of each column whose chunk is there.
 */
extern CachePin *cache_pin(CacheTable *table, uint32 range_no, int ncols,
						   const CacheColumnKey *cols);

/* Counts hits of so many ranges and these columns of theirs, which were not pinned. */
extern void cache_count_hits(CacheTable *table, uint32 nranges, int ncols,
							 const CacheColumnKey *cols);

/* A descriptor that has no chunk, because there was no memory for one, is dropped. */
extern void cache_unpin(CachePin *pin);

/* Marks blocks as not to be used. */
extern void cache_mark_dead(CachePin *pin, const CacheBlocks *blocks);

/*
 * Puts a descriptor, of which it takes a copy, in place of the range's present one, which is
 * freed with its chunks when nobody pins it.  `expected` is the one that the caller has pinned,
 * or NULL if there was none.  False if another one is there meanwhile, or there is no memory:
 * the caller then pins again, or goes without.  May check for interrupts.
 */
extern bool cache_publish_range(CacheTable *table, uint32 range_no, const CacheRange *contents,
								const CacheRange *expected);

/*
 * Memory, aligned to 8 bytes, for a chunk of the pinned range, to be written and then published
 * or given back; NULL if there is none, and nothing to evict that is worth less than this
 * column.  Then this handle evicts nothing for a second, so that asking again is cheap.  May
 * check for interrupts.
 */
extern struct CacheChunk *cache_alloc_chunk(CachePin *pin, const CacheColumnKey *col, Size size);
extern void cache_free_chunk(CachePin *pin, struct CacheChunk *chunk);

/*
 * Makes a chunk part of the pinned range.  Returns the one that is there now: this, or that of
 * another process which came first, and then this one is freed.  The pin holds it, and has it
 * in chunks[i] too, where column i was asked for with cols[i]; i < 0: not asked for.  If the
 * range was replaced meanwhile, only this pin sees it.
 */
extern const struct CacheChunk *cache_publish_chunk(CachePin *pin, int i, const CacheColumnKey *col,
													struct CacheChunk *chunk);

/* Gives back what the table has, pinned parts when they are unpinned.  Returns the bytes. */
extern uint64 cache_forget_table(const CacheTableKey *key);

/*
 * Forgets tables whose files are not there any more, or empty.  Opens no relation and needs no
 * transaction.
 */
extern void cache_sweep(void);

#endif /* GPUAGG_CACHE_STORE_H */
