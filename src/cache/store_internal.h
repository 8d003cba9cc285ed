/*
 * store_internal.h
 *
 * Declarations that the files of the store share.
 *
 * Everything is in main shared memory, which every process has at the same address, so plain
 * pointers are used. Tables and columns are entries of hash tables of fixed size. Ranges and
 * chunks are in a dsa area that never has a second segment.
 *
 * Locks, in the order in which they are taken:
 *
 * - change_lock: held exclusively to change anything except the atomics; held shared to read
 * entries of tables and columns. Allocating and freeing in the area happens under it.
 *
 * - range locks: a descriptor is found and pinned under a shared lock of its bucket, without
 * change_lock. To change a bucket's chain, a range's list of chunks or `detached`, a process holds
 * it exclusively, in addition to change_lock.
 *
 * Functions that are called under a lock raise no errors, and wait for nothing but the next lock.
 */
#ifndef GPUAGG_CACHE_STORE_INTERNAL_H
#define GPUAGG_CACHE_STORE_INTERNAL_H

#include "postgres.h"

#include "datatype/timestamp.h"
#include "lib/ilist.h"
#include "storage/lwlock.h"
#include "utils/dsa.h"
#include "utils/hsearch.h"

#include "cache/kept.h"
#include "cache/span.h"
#include "cache/store.h"

#define CACHE_RANGE_LOCKS 64

/* When something was used, in numbers of uses (CacheShared.clock). */
typedef struct StoredUse
{
	uint64 uses;
	uint64 last;   /* 0: never */
	uint64 before; /* the use before that; 0: none */
	TimestampTz when;
} StoredUse;

/* Records the use with number `clock`, unless that has been done. */
static inline void
cache_count_use(StoredUse *use, uint64 clock, TimestampTz now)
{
	if (use->last == clock)
		return;
	use->uses++;
	use->before = use->last;
	use->last = clock;
	use->when = now;
}

/* Totals of a column's chunks, or of a table's descriptors. */
typedef struct StoredSum
{
	uint64 items;
	uint64 blocks;
	uint64 rows;
	uint64 bytes;
	pg_atomic_uint64 dead; /* blocks that are marked as changed */
	pg_atomic_uint64 hits;
} StoredSum;

/* State of refresh.c for a table. */
typedef struct StoredRefresh
{
	bool requested;      /* a refresh is requested: a query has met enough stale blocks */
	uint64 stale;        /* number of stale blocks at the last request */
	TimestampTz first;   /* time of the first request, */
	TimestampTz changed; /* and of the last request with another number of stale blocks */
	TimestampTz not_before;
	int64 pause_ms; /* pause after the last refresh; 0: there was none */
	uint64 uses;    /* uses of the table at the last refresh */
} StoredRefresh;

typedef struct StoredTable
{
	CacheTableKey key; /* hash key */
	Oid relid;         /* table's OID, for the views */
	Oid owner;         /* owner when a handle was last opened with the relation */
	uint64 serial;     /* number that no other entry ever gets; 0: the table is being forgotten */
	StoredUse use;
	StoredSum sum; /* totals of the descriptors */
	struct StoredColumn *columns;
	dlist_head ranges;
	dlist_head bare; /* ranges without chunks, which may be evicted */
	StoredRefresh refresh;
} StoredTable;

typedef struct StoredColumnKey
{
	uint64 serial; /* the table's serial */
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
	struct StoredColumn *next; /* next of the table */
	StoredUse use;
	StoredSum sum;      /* totals of the chunks */
	uint32 unpublished; /* number of chunks that are allocated and not published */
	dlist_head chunks;
} StoredColumn;

#define CACHE_ATTNO_LISTS 64

typedef struct StoredRange
{
	StoredTable *table; /* undefined if detached */
	uint64 serial;
	uint32 range_no;
	bool detached; /* replaced or forgotten: the last unpin frees it */
	pg_atomic_uint32 pins;
	struct StoredRange *next; /* next in the bucket */
	struct StoredChunk *chunks;
	struct StoredChunk *by_attno[CACHE_ATTNO_LISTS]; /* the same chunks, in lists by attribute */
	dlist_node in_table;
	dlist_node in_bare;
	dsa_pointer self;
	CacheRange range;
} StoredRange;

/* Header of a chunk, which follows it in memory. */
typedef struct StoredChunk
{
	StoredRange *range;
	StoredColumn *column; /* undefined if the range is detached or the chunk is not published */
	struct StoredChunk
		*next; /* next in the range's list, or in the pin's list of unpublished chunks */
	struct StoredChunk *next_by_attno;
	dlist_node in_column;
	CacheColumnKey key;
	uint32 bytes; /* size including this header */
	dsa_pointer self;
} StoredChunk;

#define StoredChunkData(chunk) \
	((struct CacheChunk *) ((char *) (chunk) + MAXALIGN(sizeof(StoredChunk))))
#define StoredChunkOf(data) ((StoredChunk *) ((char *) (data) -MAXALIGN(sizeof(StoredChunk))))
#define StoredRangeOf(r) ((StoredRange *) ((char *) (r) -offsetof(StoredRange, range)))

/* Most names of results. */
#define CACHE_KEPT_NAMES 1024

/* The name of a result (kept.c). */
typedef struct StoredKept
{
	KeptName name; /* hash key */
	StoredUse use;
	struct KeptResult *result; /* NULL: there is none */
} StoredKept;

/* Most background workers that refresh ranges, one per database (refresh.c). */
#define CACHE_WORKERS 3

typedef struct StoredWorker
{
	Oid database;      /* InvalidOid: the slot is free */
	int pid;           /* 0: it was requested, and has not started */
	TimestampTz since; /* time of the request */
} StoredWorker;

/* An entry for a span's summary. */
typedef struct StoredSpan
{
	uint64 serial; /* the table's serial; 0: empty */
	CacheSpan span;
} StoredSpan;

typedef struct CacheShared
{
	LWLock *change_lock;
	LWLockPadded *range_locks;
	Size memory; /* size of the area in bytes */
	char *area_start;
	uint32 nbuckets; /* a power of 2 */
	StoredRange **buckets;
	/* Under change_lock. */
	uint64 clock;         /* number of uses so far */
	uint64 next_serial;   /* starts at a random number, as next_stamp does: copies on a GPU may be
							 from before a restart */
	uint64 filled_tables; /* number of tables that have descriptors, */
	uint64 most_filled_tables; /* and its limit: the other entries are history */
	uint64 filled_columns;     /* number of columns that have chunks */
	uint64 most_filled_columns;
	StoredWorker workers[CACHE_WORKERS];
	Size kept_bytes;             /* memory of results (kept.c), */
	uint32 kept_results;         /* and their number */
	pg_atomic_uint64 next_stamp; /* for the next descriptor */
	pg_atomic_uint64 swept;      /* time of the last sweep */
	StoredSpan *spans;           /* entries of span.c; entry i is protected by a range lock */
	uint32 nspans;
} CacheShared;

/* Compares keys of tables, for qsort(). */
static inline int
cache_compare_keys(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(CacheTableKey));
}

/* A handle; see store.h. */
struct CacheTable
{
	CacheTableKey key;
	uint64 serial;
	MemoryContext context;
	MemoryContextCallback callback;
	CachePin *pins;
	CachePin *spare;
	bool evicts_own;         /* evicts only chunks and ranges of tables with the same owner */
	TimestampTz short_until; /* evicts nothing until then: there was nothing to evict */
};

/* store_memory.c */
extern CacheShared *cache_shared; /* NULL: the store does not exist */
extern HTAB *cache_tables;        /* StoredTable */
extern HTAB *cache_columns;       /* StoredColumn */
extern HTAB *cache_kept;          /* StoredKept */

/* Installs the hooks that request the shared memory and set it up at server start. */
extern void cache_memory_init(void);
/*
 * Attaches this process to the area; may raise an error. Must be called before this process first
 * allocates or frees.
 */
extern void cache_memory_attach(void);
/*
 * Allocates memory in the area, under change_lock. Sets *self to the pointer for
 * cache_memory_free(). Returns NULL if there is no memory.
 */
extern void *cache_memory_get(Size size, dsa_pointer *self);
/* Frees memory of cache_memory_get(), under change_lock. */
extern void cache_memory_free(dsa_pointer self);
/* Returns how many bytes of the area an allocation of this size takes. */
extern Size cache_memory_used(Size size);

/* Returns the number of the bucket of a range of the table with this StoredTable.serial. */
static inline uint32
cache_bucket(uint64 serial, uint32 range_no)
{
	return ((uint32) serial * 0x9E3779B1u + range_no) & (cache_shared->nbuckets - 1);
}

/* Returns the lock of a range's bucket. */
static inline LWLock *
cache_range_lock(uint64 serial, uint32 range_no)
{
	return &cache_shared->range_locks[cache_bucket(serial, range_no) % CACHE_RANGE_LOCKS].lock;
}

/* Returns the list of a range's chunks for an attribute. */
static inline StoredChunk **
cache_attno_list(StoredRange *range, AttrNumber attno)
{
	return &range->by_attno[(uint16) attno % CACHE_ATTNO_LISTS];
}

/* Adds a chunk to the range's lists: the list of all chunks, and the one for its attribute. */
static inline void
cache_chunk_link(StoredRange *range, StoredChunk *chunk)
{
	StoredChunk **list = cache_attno_list(range, chunk->key.attno);

	chunk->next = range->chunks;
	range->chunks = chunk;
	chunk->next_by_attno = *list;
	*list = chunk;
}

/*
 * store.c: returns a range of the table with this StoredTable.serial; NULL if there is none. The
 * caller holds the bucket's lock or change_lock.
 */
extern StoredRange *cache_range_find(uint64 serial, uint32 range_no);

/*
 * store_entries.c: tables and columns, and their ranges and chunks. All functions need
 * change_lock, exclusively except for the first two.
 */
/*
 * Returns the table's entry if it has this serial. NULL: there is no entry, or one that was added
 * later and so has another serial.
 */
extern StoredTable *cache_table_find(const CacheTableKey *key, uint64 serial);
/* Returns the entry of a table's column; NULL if there is none. */
extern StoredColumn *cache_column_find(StoredTable *table, const CacheColumnKey *col);
/*
 * Returns the table's entry, and adds one if there is none. NULL: there is no room, or the table is
 * being forgotten.
 */
extern StoredTable *cache_table_find_or_add(const CacheTableKey *key, Oid relid, Oid owner);
/* Returns the entry of a table's column, and adds one if there is none. NULL: there is no room. */
extern StoredColumn *cache_column_find_or_add(StoredTable *table, const CacheColumnKey *col);
/* Removes a table without ranges, with its columns. */
extern void cache_table_remove(StoredTable *table);
/* Returns the bytes of a table's descriptors and chunks. */
extern uint64 cache_table_bytes(const StoredTable *table);
/* Adds a range to its table and bucket. */
extern void cache_range_attach(StoredTable *table, StoredRange *range);
/* Removes a range from its table and bucket; frees it now or by the last unpin. */
extern void cache_range_detach(StoredRange *range);
/* Frees a detached range without pins, and its chunks. */
extern void cache_range_free(StoredRange *range);
/* Adds a chunk to its column and its range, so that pins find it. */
extern void cache_chunk_attach(StoredColumn *column, StoredRange *range, StoredChunk *chunk);
/* Removes a chunk from its range and frees it; returns false if the range is pinned. */
extern bool cache_chunk_evict(StoredChunk *chunk);
/* Removes a range without chunks and frees it; returns false if it is pinned. */
extern bool cache_bare_range_evict(StoredRange *range);

/*
 * evict.c: evicts chunks and ranges that are worth less than `use`, and those of databases with
 * more than their share.
 */
typedef struct StoredDemand
{
	Oid database;         /* database of the table that needs memory */
	Oid owner;            /* evict from tables of this owner only; InvalidOid: from any */
	const StoredUse *use; /* use of the column or table that needs memory */
} StoredDemand;

/* Frees at least `need` bytes if possible; returns how many. */
extern Size cache_evict(const StoredDemand *demand, Size need);

/*
 * Frees an entry in the same way: a table that has descriptors, or a column that has chunks.
 * Returns the freed bytes.
 */
extern Size cache_evict_entry(const StoredDemand *demand, bool of_tables);

/* Returns whether something with use a is evicted before something with use b. */
extern bool cache_is_evicted_before(const StoredUse *a, const StoredUse *b);
/*
 * Returns whether something with use `use` may be evicted for something with use `than`: it must be
 * worth much less, see the head of evict.c.
 */
extern bool cache_is_worth_less(const StoredUse *use, const StoredUse *than);

/* A result, for those who look for its tables and for the view. */
typedef struct CacheKeptItem
{
	KeptTables tables;
	uint64 rows;
	Size bytes;
	uint64 hits; /* how often a query has found it */
	TimestampTz when;
} CacheKeptItem;

/* kept.c, under change_lock */
/* Frees the results that were computed from a table. Returns their bytes. */
extern Size cache_kept_forget(const CacheTableKey *key);
/* Copies the results that have names, `room` at most. Returns their number. */
extern int cache_kept_list(CacheKeptItem *items, int room);
/* Sets marks[i] if a result was computed from table keys[i]; keys: sorted (cache_compare_keys) */
extern void cache_kept_mark(const CacheTableKey *keys, int n, bool *marks);

#endif /* GPUAGG_CACHE_STORE_INTERNAL_H */
