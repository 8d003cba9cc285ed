/*
 * store.h
 *
 * The store of cached columns in shared memory.
 *
 * The store exists if the library is in shared_preload_libraries and gpuagg.cache_memory is not 0.
 * No function here raises an error because an entry does not exist or there is no memory: they
 * return NULL or false then.
 */
#ifndef GPUAGG_CACHE_STORE_H
#define GPUAGG_CACHE_STORE_H

#include "postgres.h"

#include "nodes/bitmapset.h"
#include "utils/relcache.h"

#include "cache/cache.h"

struct CacheChunk; /* chunk.h */

/* Called by _PG_init: requests the shared memory, if the library is preloaded. */
extern void cache_store_init(void);

/* Returns whether the store exists. */
extern bool cache_exists(void);

/* Returns whether the store exists and the session's queries may use it (gpuagg.cache). */
extern bool cache_available(void);

/* Returns the key of an open relation's main fork. */
extern CacheTableKey cache_table_key(Relation rel);

/*
 * A handle of a table's entry, local to this process, with the pins made by it. It lives in the
 * memory context that is current when it is opened. A handle alone keeps nothing in the store: if
 * the table is forgotten, the handle finds no ranges any more, even if the table gets a new entry.
 *
 * When the memory context is reset, also after an error, the handle's pins are released, and
 * chunks that were not published are freed.
 */
typedef struct CacheTable CacheTable;

/*
 * Opens a handle of the table's entry. With the open relation, an entry is made if there is none,
 * and the table's owner is updated; without it (NULL) an entry must exist. Returns NULL if there
 * is no entry, or no room for one.
 */
extern CacheTable *cache_table_open(const CacheTableKey *key, Relation rel);

/*
 * From now on this handle takes only free memory and memory of tables with the same owner; it
 * evicts no other tables' columns.
 */
extern void cache_table_evict_own(CacheTable *table);

/* Returns a number that identifies the table's entry; it is never used for another entry. */
extern uint64 cache_table_id(const CacheTable *table);

/*
 * Counts a use of these columns (there may be none) by a query. Exactly one participant of a
 * parallel scan calls it.
 */
extern void cache_table_use(CacheTable *table, int ncols, const CacheColumnKey *cols);

/*
 * Returns whether the column is worth filling: a query before this one, which has been counted, has
 * used it, or it has chunks. With gpuagg.cache = eager this query's use is enough.
 */
extern bool cache_column_is_wanted(CacheTable *table, const CacheColumnKey *col);

/*
 * Sets *key and *relid to those of the table whose cache_table_id() is `id`; returns false if there
 * is none.
 */
extern bool cache_table_by_id(uint64 id, CacheTableKey *key, Oid *relid);

/*
 * Returns whether the current user may see what is cached of a table's column, or of the whole
 * table (attno 0).
 */
extern bool cache_may_see(const CacheTableKey *key, Oid relid, AttrNumber attno);

/* Returns whether the table has any descriptor. */
extern bool cache_table_is_filled(CacheTable *table);

/*
 * Returns the fraction of a table's nblocks blocks for which the cache has all of these columns
 * (as pull_varattnos() makes them), and which are not known to have changed. This is an estimate
 * for the planner; it pins nothing.
 */
extern double cache_table_share(Relation rel, BlockNumber nblocks, const Bitmapset *attnos);

typedef struct CachePin
{
	CacheRange *range;
	int ncols;
	const struct CacheChunk **chunks; /* [column that was requested] NULL: not cached */
	/* Private to the store. */
	CacheTable *table;
	struct CachePin *next;
	int room;    /* elements of chunks[] */
	bool failed; /* the store had no memory for a chunk */
	struct StoredChunk *unpublished;
} CachePin;

/*
 * Pins a range and the chunks of the columns that it has, until cache_unpin(). Returns NULL if
 * there is no descriptor. Counts a hit for each column whose chunk is there.
 */
extern CachePin *cache_pin(CacheTable *table, uint32 range_no, int ncols,
						   const CacheColumnKey *cols);

/* Returns whether a range has all of these columns; counts no hits. */
extern bool cache_has_columns(CacheTable *table, uint32 range_no, int ncols,
							  const CacheColumnKey *cols);

/* Counts hits of nranges ranges and these columns, which were not pinned. */
extern void cache_count_hits(CacheTable *table, uint32 nranges, int ncols,
							 const CacheColumnKey *cols);

/* Releases a pin. Removes the descriptor if it has no chunk because there was no memory for one. */
extern void cache_unpin(CachePin *pin);

/* Marks blocks of the range as changed, so that they are not used. */
extern void cache_mark_dead(CachePin *pin, const CacheBlocks *blocks);

/*
 * Replaces the range's descriptor by a copy of `contents`. The old one is freed with its chunks
 * when it has no pins. `expected` is the old one, as pinned by the caller, or NULL if there was
 * none. Returns false if another one is there by now, or there is no memory; then the caller pins
 * again, or does without. May check for interrupts.
 */
extern bool cache_publish_range(CacheTable *table, uint32 range_no, const CacheRange *contents,
								const CacheRange *expected);

/*
 * Allocates a chunk of the pinned range, aligned to 8 bytes, to be written and then published or
 * freed. Returns NULL if there is no memory and nothing to evict that is worth less than this
 * column. Then this handle evicts nothing for a second, so that trying again is cheap. May check
 * for interrupts.
 */
extern struct CacheChunk *cache_alloc_chunk(CachePin *pin, const CacheColumnKey *col, Size size);
/* Frees a chunk of cache_alloc_chunk() that has not been published. */
extern void cache_free_chunk(CachePin *pin, struct CacheChunk *chunk);

/*
 * Makes a chunk part of the pinned range. Returns the chunk that the range has now: this one, or
 * one of another process that came first; then this one is freed. The pin holds the chunk, and has
 * it in chunks[i] too if column i was requested as cols[i]; i < 0: not requested. If the range has
 * been replaced, only this pin sees the chunk.
 */
extern const struct CacheChunk *cache_publish_chunk(CachePin *pin, int i, const CacheColumnKey *col,
													struct CacheChunk *chunk);

/*
 * Frees everything cached of the table; pinned ranges are freed by their last unpin. Returns the
 * freed bytes.
 */
extern uint64 cache_forget_table(const CacheTableKey *key);

/*
 * Frees everything cached of tables whose files do not exist any more, or are empty. Opens no
 * relation and needs no transaction.
 */
extern void cache_sweep(void);

#endif /* GPUAGG_CACHE_STORE_H */
