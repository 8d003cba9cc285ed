/*
 * store_internal.h
 *	  What a device's store is made of: store_memory.c has the memory, store.c fills it,
 * store_hold.c finds rows in it.
 *
 * All but store_of() is called with the store's lock held.
 */
#ifndef GPUAGG_STORE_INTERNAL_H
#define GPUAGG_STORE_INTERNAL_H

#include <pthread.h>

#include "server/dictionary.h"
#include "server/store.h"

/* Tables that are remembered on a device; tests make it smaller. */
#ifndef STORE_MAX_TABLES
#define STORE_MAX_TABLES 65536
#endif
/* Bits of StoreRange.columns. */
#define STORE_MAX_COLUMNS 64

typedef struct StoreRange
{
	uint32_t number;
	uint32_t nrows;
	uint32_t room; /* rows that its place has room for */
	uint64_t stamp;
	int64_t first;    /* position */
	uint64_t columns; /* that are there, a bit each */
} StoreRange;

typedef struct Array
{
	void *at;
	size_t bytes;
} Array;

/* An array that was replaced while queries read it. */
typedef struct Retired
{
	struct Retired *next;
	Array array;
} Retired;

typedef struct Segment
{
	Array values;
	Array validity; /* none: no NULLs so far */
} Segment;

typedef struct StoreColumn
{
	WireColumnKey key;
	int holds;
	uint64_t last, /* uses; 0: none */
		before;
	uint64_t bytes;
	bool disordered;       /* rows were seen whose values are neither ascending nor descending */
	uint64_t refused;      /* bytes of the device that it was last refused; 0: none */
	uint64_t refused_host; /* the same, of host memory for its dictionary */
	bool full;             /* its dictionary had no room for a range; the table's `latest` then: */
	uint64_t full_stamp;
	uint32_t replaced; /* ranges whose values the dictionary may have though they are gone */
	int nsegments;     /* entries of the array */
	Segment *segments;
	Retired *retired;
	Dictionary *dictionary; /* of a coded column, once there is something of it */
} StoreColumn;

/* A list of row_ranges that has an id, and where its rows lie. */
typedef struct StoreList
{
	uint64_t id;
	uint32_t first; /* ranges */
	uint32_t nranges;
	uint32_t nrow_ranges;
	WireRowRange *row_ranges;
	uint64_t version; /* of the table, when the rest was found; 0: not yet */
	bool there;       /* all ranges are: */
	uint64_t columns; /* that all of them have, a bit each */
	int64_t nrows;
	int nspans;
	StoreSpan *spans;
} StoreList;

struct StoreTable
{
	StoreTable *next; /* of all */
	StoreTable *next_in_bucket;
	uint64_t id;
	int holds;
	uint64_t last; /* use */
	int64_t end;   /* positions in use */
	int64_t gaps;  /* of them without rows */
	int nranges;
	int ranges_room;
	StoreRange *ranges; /* by number */
	uint64_t version;   /* counts changes of ranges and of what columns they have */
	uint64_t latest; /* stamp that a query has named, whether the range is there or not; 0: none */
	int nlists;
	int lists_room;
	StoreList *lists; /* by first range */
	int64_t listed;   /* row_ranges of all lists */
	int ncolumns;     /* at most STORE_MAX_COLUMNS */
	StoreColumn *columns;
};

#define STORE_BUCKETS 4096

typedef struct Store
{
	pthread_mutex_t lock;
	int device;
	StoreTable *tables;
	StoreTable *buckets[STORE_BUCKETS]; /* by id */
	int ntables;
	int64_t nranges; /* of all tables */
	uint64_t bytes;
	uint64_t retired; /* dictionaries that were retired when columns were last searched for them */
} Store;

/* ---- store_memory.c ---- */

extern const StoreOps *store_ops;

extern Store *store_of(int device);

/* Bytes of host memory that the dictionaries of all devices may have. */
extern uint64_t store_host_limit(void);

/* Frees the arrays of a column that nobody holds; its history stays. */
extern void store_free_column(Store *store, StoreTable *table, StoreColumn *column);
/* Forgets where ranges lie, if nothing of them is there and nobody holds the table. */
extern void store_trim_table(Store *store, StoreTable *table);

/*
 * Frees the column whose last but one use is the longest ago, of those that may be freed: nobody
 * holds it, its last but one use is before `before`, and its last use is not `last`, which is that
 * of the query that needs the memory.  `coded`: only one with a dictionary, which is retired, so
 * that other devices free theirs, too.  false: there is none.
 */
extern bool store_evict(Store *store, uint64_t before, uint64_t last, bool coded);
/* Bytes of the device, and of dictionaries, that it could free. */
extern uint64_t store_evictable_bytes(const Store *store, uint64_t before, uint64_t last);
extern uint64_t store_evictable_dictionaries(const Store *store, uint64_t before, uint64_t last);
/* Bytes that would have to be freed before the store can have so many more; 0: there is room. */
extern uint64_t store_shortage(const Store *store, uint64_t bytes);

/*
 * Replaces an array by a larger one, with the same at its start and `rest` in all other bytes.
 * DEVICE_NO_MEMORY: there is none, and nothing has changed.
 */
extern DeviceStatus store_enlarge(Store *store, StoreColumn *column, Array *array, size_t bytes,
								  int rest, DeviceError *error);

/* ---- store.c ---- */

extern StoreTable *store_find_table(Store *store, uint64_t id);
/*
 * Made in place of the one used longest ago if there are too many; NULL: all others are held or of
 * this use, or there is no memory.
 */
extern StoreTable *store_make_table(Store *store, uint64_t id, uint64_t use);
/* Forgets what nobody holds. */
extern void store_empty_table(Store *store, StoreTable *table);

/* The number of the column, or -1. */
extern int store_find_column(const StoreTable *table, const WireColumnKey *key);
/*
 * Made in place of the one used longest ago if there are too many; -1: all others are held or of
 * this use, or there is no memory.
 */
extern int store_make_column(Store *store, StoreTable *table, const WireColumnKey *key,
							 uint64_t use);
extern void store_note_use(StoreTable *table, StoreColumn *column, uint64_t use);
/* Notes a stamp that a query has named. */
extern void store_note_stamp(StoreTable *table, uint64_t stamp);
/* Frees what nobody holds of columns whose dictionaries were retired. */
extern void store_drop_retired(Store *store);
/* Is what there is of the column by a dictionary that was retired?  Somebody holds it then. */
extern bool store_is_outdated(const StoreColumn *column);
/*
 * A column whose dictionary was full may be tried again: forgets what there is of it, unless
 * somebody holds it.
 */
extern void store_retry_column(Store *store, StoreTable *table, StoreColumn *column);
/* Frees the arrays that were replaced while somebody held the column. */
extern void store_free_retired(Store *store, StoreColumn *column);

/* The place of the range of this number among the table's, or where it would be. */
extern int store_range_place(const StoreTable *table, uint32_t number);
extern void store_free_list(StoreList *list);

#endif /* GPUAGG_STORE_INTERNAL_H */
