/*
 * device_store_internal.h
 *	  The data structures of a device's store. device_store_memory.c manages memory and eviction,
 *	  device_store.c fills columns, device_store_hold.c finds rows, device_store_cells.c has the
 *	  cells of lookup tables.
 *
 * All functions but store_of() and store_host_limit() are called with the store's lock held.
 */
#ifndef GPUAGG_DEVICE_STORE_INTERNAL_H
#define GPUAGG_DEVICE_STORE_INTERNAL_H

#include <pthread.h>

#include "server/column_dictionary.h"
#include "server/device_store.h"

/* Most tables of a device. Tests make it smaller. */
#ifndef STORE_MAX_TABLES
#define STORE_MAX_TABLES 65536
#endif
/* Most columns of a table: the bits of StoreRange.columns. */
#define STORE_MAX_COLUMNS 64

/* A block range of a table. */
typedef struct StoreRange
{
	uint32_t number;
	uint32_t nrows;
	uint32_t room; /* rows that its positions have room for; 0: it has no positions */
	uint64_t stamp;
	int64_t first;    /* position of its first row */
	uint64_t columns; /* columns that are stored, a bit each */
} StoreRange;

/* An array in device memory. */
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
	Array validity; /* LSB-first bits; empty: no NULLs so far */
} Segment;

/* A column of a table. Its entry stays, as a history of uses, after its memory was freed. */
typedef struct StoreColumn
{
	WireColumnKey key;
	int holds;     /* number of queries that hold it */
	uint64_t last, /* last use, and the last but one; 0: none */
		before;
	uint64_t bytes;        /* of device memory */
	bool disordered;       /* values are known to be neither ascending nor descending */
	uint64_t refused;      /* device memory that it was last refused, in bytes; 0: none */
	uint64_t refused_host; /* the same for host memory of its dictionary */
	uint32_t replaced; /* ranges that were replaced, whose values may still be in the dictionary */
	int nsegments;
	Segment *segments;
	Retired *retired;
	Dictionary *dictionary; /* of a coded column; NULL: nothing is stored */
} StoreColumn;

/* A list of row ranges that has an id, and the positions of its rows. */
typedef struct StoreList
{
	uint64_t id;
	uint32_t first; /* the span's block ranges */
	uint32_t nranges;
	uint32_t nrow_ranges;
	WireRowRange *row_ranges;
	uint64_t version; /* the table's version when the rest was computed; 0: not yet */
	bool there;       /* all ranges are stored, and the rest is valid */
	uint64_t columns; /* columns that all of the ranges have, a bit each */
	int64_t nrows;
	int nspans;
	StoreSpan *spans;
} StoreList;

struct StoreTable
{
	StoreTable *next; /* in the list of all tables */
	StoreTable *next_in_bucket;
	uint64_t id;
	int holds;     /* number of queries that hold it */
	uint64_t last; /* number of the last use */
	int64_t end;   /* number of positions in use, including gaps */
	int64_t gaps;  /* positions without rows */
	int nranges;
	int ranges_room;
	StoreRange *ranges; /* ordered by number */
	uint64_t version;   /* counts changes of ranges, and of the columns that they have */
	int nlists;
	int lists_room;
	StoreList *lists; /* ordered by first range */
	int64_t listed;   /* row ranges in all lists */
	int ncolumns;     /* at most STORE_MAX_COLUMNS */
	StoreColumn *columns;
};

/* The cells of a lookup table. */
typedef struct StoreCells
{
	struct StoreCells *next; /* in the bucket of the name */
	WireCellsName name;
	uint32_t n; /* as in VectorTable */
	uint16_t form;
	int holds;     /* number of queries that hold them */
	uint64_t last, /* last use, and the last but one */
		before;
	Array array;
} StoreCells;

/* Most lookup tables whose cells a device keeps. Tests make it smaller. */
#ifndef STORE_MAX_CELLS
#define STORE_MAX_CELLS 4096
#endif
#define STORE_CELLS_BUCKETS 1024

#define STORE_BUCKETS 4096

typedef struct Store
{
	pthread_mutex_t lock;
	int device;
	StoreTable *tables;
	StoreTable *buckets[STORE_BUCKETS]; /* hash table by id */
	int ntables;
	int64_t nranges;                        /* of all tables */
	StoreCells *cells[STORE_CELLS_BUCKETS]; /* hash table by name */
	int ncells;
	uint64_t bytes; /* of device memory */
	/* dictionary_retired_count() at the last store_drop_retired() that freed all */
	uint64_t retired;
} Store;

/* Returns the bucket of a name. */
static inline StoreCells **
store_cells_bucket(Store *store, const WireCellsName *name)
{
	return &store->cells[name->part[0] % STORE_CELLS_BUCKETS];
}

/* ---- device_store_memory.c ---- */

extern const StoreOps *store_ops;

extern Store *store_of(int device);

/* Returns the limit of the host memory of all dictionaries, in bytes. */
extern uint64_t store_host_limit(void);

/* Frees the arrays of a column that no query holds. Its history of uses stays. */
extern void store_free_column(Store *store, StoreTable *table, StoreColumn *column);
/* Frees a table's list of ranges, if no column has memory and no query holds the table. */
extern void store_trim_table(Store *store, StoreTable *table);

/*
 * Frees the evictable column, or cells, whose last but one use is the oldest. Something is
 * evictable if no query holds it, its last but one use is before `before`, and its last use is not
 * `last`, the use of the query that needs the memory. `coded`: only a column with a dictionary. The
 * dictionary is then retired, so that other devices free their copies of the column, too. Returns
 * false if there is nothing evictable.
 */
extern bool store_evict(Store *store, uint64_t before, uint64_t last, bool coded);

/* Bytes that store_evict() could free. */
typedef struct StoreEvictable
{
	uint64_t device;       /* device memory */
	uint64_t dictionaries; /* host memory of dictionaries */
} StoreEvictable;

/* Returns whether something with these uses, which no query holds, may be freed; see store_evict().
 */
static inline bool
store_is_evictable(uint64_t its_before, uint64_t its_last, uint64_t before, uint64_t last)
{
	return its_before < before && its_last != last;
}

/*
 * Returns those evictable cells whose last but one use is the oldest (store_evict()), or NULL. Adds
 * the bytes of all evictable cells to *bytes.
 */
extern StoreCells *store_evictable_cells(const Store *store, uint64_t before, uint64_t last,
										 uint64_t *bytes);
extern void store_free_cells(Store *store, StoreCells *cells);
extern StoreEvictable store_evictable(const Store *store, uint64_t before, uint64_t last);
/* Returns the bytes that must be freed before the store can have `bytes` more; 0: there is room. */
extern uint64_t store_shortage(const Store *store, uint64_t bytes);

/*
 * Allocates an array for something with these uses. May evict what is worth less.
 * DEVICE_NO_MEMORY: there is no memory.
 */
extern DeviceStatus store_allocate(Store *store, uint64_t before, uint64_t last, size_t bytes,
								   Array *array, DeviceError *error);
/* Frees an array, unless it is empty. */
extern void store_free_array(Store *store, Array *array);
/*
 * Replaces an array by a larger one, with the same bytes at its start and `rest` in all others. May
 * evict columns. DEVICE_NO_MEMORY: there is no memory, and nothing has changed.
 */
extern DeviceStatus store_enlarge(Store *store, StoreColumn *column, Array *array, size_t bytes,
								  int rest, DeviceError *error);

/* ---- device_store_cells.c ---- */

/*
 * Holds the cells that have names. Stores those that were sent if there is room. Sets a bit in
 * *lacking for each table whose cells are neither sent nor stored, and in *unkept for each whose
 * cells were sent and have no room. cells: of the tables that were sent
 */
extern DeviceStatus store_hold_cells(Store *store, const WireResident *in, const char *cells,
									 uint64_t use, StoreHold *hold, uint32_t *lacking,
									 uint32_t *unkept, DeviceError *error);
extern void store_release_cells(StoreHold *hold);
/* Removes all cells that no query holds. */
extern void store_forget_cells(Store *store);

/* ---- device_store.c ---- */

extern StoreTable *store_find_table(Store *store, uint64_t id);
/*
 * Returns the table, which is created if necessary. If there are too many tables, replaces the one
 * with the oldest last use. Returns NULL if all others are held or have this use, or if there is no
 * memory.
 */
extern StoreTable *store_make_table(Store *store, uint64_t id, uint64_t use);
/* Removes all of the table that no query holds. */
extern void store_empty_table(Store *store, StoreTable *table);

/* Returns the number of the column, or -1. */
extern int store_find_column(const StoreTable *table, const WireColumnKey *key);
/*
 * Returns the number of the column, which is created if necessary. If there are too many columns,
 * replaces the one with the oldest last use. Returns -1 if all others are held or have this use, or
 * if there is no memory.
 */
extern int store_make_column(Store *store, StoreTable *table, const WireColumnKey *key,
							 uint64_t use);
extern void store_note_use(StoreTable *table, StoreColumn *column, uint64_t use);
/* Frees columns with a retired dictionary that no query holds. */
extern void store_drop_retired(Store *store);
/* Returns whether the column's dictionary is retired. Some query still holds the column then. */
extern bool store_is_outdated(const StoreColumn *column);
/* Frees arrays that were replaced while queries held the column. */
extern void store_free_retired(Store *store, StoreColumn *column);

/* Returns the index of the range of this number, or the index where it would be inserted. */
extern int store_range_place(const StoreTable *table, uint32_t number);
extern void store_free_list(StoreList *list);

#endif /* GPUAGG_DEVICE_STORE_INTERNAL_H */
