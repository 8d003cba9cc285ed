/*
 * store_internal.h
 *	  The store's insides.
 *
 * All is in main shared memory, which every process has at the same address, so pointers
 * are plain ones.  Tables and columns are entries of hash tables of fixed size; ranges and chunks
 * are in a dsa area that never has a second segment.
 *
 * Locks, in the order in which they are taken:
 *
 * - change_lock: who changes anything but the atomics holds it exclusively, and who reads entries
 *   of tables and columns holds it shared.  Allocation and freeing in the area happen under it.
 * - range locks: a descriptor is found and pinned under a shared lock of its bucket, without
 *   change_lock.  Whoever changes a bucket's chain, a range's list of chunks or `detached` holds
 *   it exclusively as well.
 *
 * Nothing that is called under a lock raises errors or waits for anything but the next lock.
 */
#ifndef GPUAGG_CACHE_STORE_INTERNAL_H
#define GPUAGG_CACHE_STORE_INTERNAL_H

#include "postgres.h"

#include "datatype/timestamp.h"
#include "lib/ilist.h"
#include "storage/lwlock.h"
#include "utils/dsa.h"
#include "utils/hsearch.h"

#include "cache/span.h"
#include "cache/store.h"

#define CACHE_RANGE_LOCKS 64

/* When something was used, by the count of uses (CacheShared.clock). */
typedef struct StoredUse
{
	uint64 uses;
	uint64 last;   /* 0: never */
	uint64 before; /* the use before that; 0: none */
	TimestampTz when;
} StoredUse;

/* What there is of a column, or of a table's descriptors. */
typedef struct StoredSum
{
	uint64 items;
	uint64 blocks;
	uint64 rows;
	uint64 bytes;
	pg_atomic_uint64 dead; /* of the blocks */
	pg_atomic_uint64 hits;
} StoredSum;

/* What refresh.c knows of a table. */
typedef struct StoredRefresh
{
	bool asked;          /* a query met enough stale blocks */
	uint64 stale;        /* how many, when last asked */
	TimestampTz first;   /* when it was asked first, */
	TimestampTz changed; /* and when it was asked with another number of stale blocks */
	TimestampTz not_before;
	int64 pause_ms; /* after a refresh; 0: there was none */
	uint64 uses;    /* of the table, at the last one */
} StoredRefresh;

typedef struct StoredTable
{
	CacheTableKey key; /* hash key */
	Oid relid;         /* for the views */
	Oid owner;         /* when a handle was last opened with the relation */
	uint64 serial;     /* unique; 0: being forgotten */
	StoredUse use;
	StoredSum sum; /* of descriptors */
	struct StoredColumn *columns;
	dlist_head ranges;
	dlist_head bare; /* those without chunks: may be evicted */
	StoredRefresh refresh;
} StoredTable;

typedef struct StoredColumnKey
{
	uint64 serial; /* of the table */
	Oid typid;
	int32 typmod;
	uint32 missing;
	int16 attno;
	int16 scale;
} StoredColumnKey;

typedef struct StoredColumn
{
	StoredColumnKey key; /* hash key */
	StoredTable *table;
	struct StoredColumn *next; /* of the table */
	StoredUse use;
	StoredSum sum;      /* of chunks */
	uint32 unpublished; /* allocated for it */
	dlist_head chunks;
} StoredColumn;

#define CACHE_ATTNO_LISTS 16

typedef struct StoredRange
{
	StoredTable *table; /* not for detached ones */
	uint64 serial;
	uint32 range_no;
	bool detached; /* replaced or forgotten: freed by the last unpin */
	pg_atomic_uint32 pins;
	struct StoredRange *next; /* of the bucket */
	struct StoredChunk *chunks;
	struct StoredChunk *by_attno[CACHE_ATTNO_LISTS]; /* the same by attribute, in lists */
	dlist_node in_table;
	dlist_node in_bare;
	dsa_pointer self;
	CacheRange range;
} StoredRange;

/* The chunk itself follows. */
typedef struct StoredChunk
{
	StoredRange *range;
	StoredColumn *column;     /* not if the range is detached, or it is not published */
	struct StoredChunk *next; /* of the range, or of the pin's unpublished ones */
	struct StoredChunk *next_by_attno;
	dlist_node in_column;
	CacheColumnKey key;
	uint32 bytes; /* with this */
	dsa_pointer self;
} StoredChunk;

#define StoredChunkData(chunk) \
	((struct CacheChunk *) ((char *) (chunk) + MAXALIGN(sizeof(StoredChunk))))
#define StoredChunkOf(data) ((StoredChunk *) ((char *) (data) -MAXALIGN(sizeof(StoredChunk))))
#define StoredRangeOf(r) ((StoredRange *) ((char *) (r) -offsetof(StoredRange, range)))

/*
 * A worker that renews ranges of tables of a database (refresh.c); as many at once, in all
 * databases.
 */
#define CACHE_WORKERS 3

typedef struct StoredWorker
{
	Oid database;      /* InvalidOid: none */
	int pid;           /* 0: it was asked for, and has not begun */
	TimestampTz since; /* when it was asked for */
} StoredWorker;

/* A place for a summary. */
typedef struct StoredSpan
{
	uint64 serial; /* of the table; 0: empty */
	CacheSpan span;
} StoredSpan;

typedef struct CacheShared
{
	LWLock *change_lock;
	LWLockPadded *range_locks;
	Size memory;     /* of the area */
	char *place;     /* of the area */
	uint32 nbuckets; /* a power of 2 */
	StoredRange **buckets;
	/* under change_lock */
	uint64 clock;         /* uses so far */
	uint64 next_serial;   /* begins at random, as next_stamp does: copies on a GPU may be older than
							 this */
	uint64 filled_tables; /* tables that have descriptors, */
	uint64 most_filled_tables; /* and how many may have: the other entries are for history */
	uint64 filled_columns;     /* columns that have chunks */
	uint64 most_filled_columns;
	StoredWorker workers[CACHE_WORKERS];
	pg_atomic_uint64 next_stamp; /* of descriptors */
	pg_atomic_uint64 swept;      /* time of the last sweep */
	StoredSpan *spans;           /* span.c: each place has the range lock of its number */
	uint32 nspans;
} CacheShared;

/* A handle. */
struct CacheTable
{
	CacheTableKey key;
	uint64 serial;
	MemoryContext context;
	MemoryContextCallback callback;
	CachePin *pins;
	CachePin *spare;
	bool evicts_own;         /* only chunks and ranges of tables with this table's owner */
	TimestampTz short_until; /* until then it evicts nothing: there was nothing to evict */
};

/* store_memory.c */
extern CacheShared *cache_shared; /* NULL: no store */
extern HTAB *cache_tables;        /* StoredTable */
extern HTAB *cache_columns;       /* StoredColumn */

extern void cache_memory_init(void);
/* Before this process first allocates or frees; may raise an error. */
extern void cache_memory_attach(void);
/* Under change_lock.  NULL: no memory. */
extern void *cache_memory_get(Size size, dsa_pointer *self);
extern void cache_memory_free(dsa_pointer self);
/* What an allocation of this size takes. */
extern Size cache_memory_used(Size size);

static inline uint32
cache_bucket(uint64 serial, uint32 range_no)
{
	return ((uint32) serial * 0x9E3779B1u + range_no) & (cache_shared->nbuckets - 1);
}

static inline LWLock *
cache_range_lock(uint64 serial, uint32 range_no)
{
	return &cache_shared->range_locks[cache_bucket(serial, range_no) % CACHE_RANGE_LOCKS].lock;
}

/* The list that a range has a column's chunk in. */
static inline StoredChunk **
cache_attno_list(StoredRange *range, AttrNumber attno)
{
	return &range->by_attno[(uint16) attno % CACHE_ATTNO_LISTS];
}

static inline void
cache_chunk_link(StoredRange *range, StoredChunk *chunk)
{
	StoredChunk **list = cache_attno_list(range, chunk->key.attno);

	chunk->next = range->chunks;
	range->chunks = chunk;
	chunk->next_by_attno = *list;
	*list = chunk;
}

/* store.c: a range; under its bucket's lock or change_lock. */
extern StoredRange *cache_range_find(uint64 serial, uint32 range_no);

/*
 * store_entries.c: tables, columns and what they have.  All under change_lock, exclusively but for
 * the first two.
 */
extern StoredTable *cache_table_find(const CacheTableKey *key, uint64 serial);
extern StoredColumn *cache_column_find(StoredTable *table, const CacheColumnKey *col);
extern StoredTable *cache_table_make(const CacheTableKey *key, Oid relid, Oid owner);
extern StoredColumn *cache_column_make(StoredTable *table, const CacheColumnKey *col);
/* A table without ranges, with its columns. */
extern void cache_table_remove(StoredTable *table);
extern uint64 cache_table_bytes(const StoredTable *table);
/* A range that is in no bucket yet. */
extern void cache_range_attach(StoredTable *table, StoredRange *range);
/* Takes a range out; frees it now or by the last unpin. */
extern void cache_range_detach(StoredRange *range);
extern void cache_range_free(StoredRange *range);
extern void cache_chunk_attach(StoredColumn *column, StoredRange *range, StoredChunk *chunk);
/* Takes a chunk from its column and frees it, and a bare range; false: it is pinned. */
extern bool cache_chunk_evict(StoredChunk *chunk);
extern bool cache_bare_range_evict(StoredRange *range);

/*
 * evict.c: what is evicted, and for what.  Only chunks and ranges that are worth less than `use`
 * are evicted, and those of databases with more than their share.
 */
typedef struct StoredDemand
{
	Oid database;         /* of the table that needs memory */
	Oid owner;            /* evict from tables of this owner only; InvalidOid: from any */
	const StoredUse *use; /* of the column or table that needs memory */
} StoredDemand;

/* Frees at least `need` bytes, if it can; returns how many. */
extern Size cache_evict(const StoredDemand *demand, Size need);

/*
 * The same for an entry: of the tables that have descriptors, or of the columns that have chunks.
 */
extern Size cache_evict_entry(const StoredDemand *demand, bool of_tables);

#endif /* GPUAGG_CACHE_STORE_INTERNAL_H */
