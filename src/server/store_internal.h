/*
 * store_internal.h
 *	  What a device's store is made of: store.c fills and frees it, store_hold.c finds rows in it.
 *
 * All but store_of() is called with the store's lock held.
 */
#ifndef GPUAGG_STORE_INTERNAL_H
#define GPUAGG_STORE_INTERNAL_H

#include <pthread.h>

#include "server/dictionary.h"
#include "server/store.h"

/* Bits of StoreRange.columns. */
#define STORE_MAX_COLUMNS 64

typedef struct StoreRange
{
	uint32_t	number;
	uint32_t	nrows;
	uint32_t	room;			/* rows that its place has room for */
	uint64_t	stamp;
	int64_t		first;			/* position */
	uint64_t	columns;		/* that are there, a bit each */
} StoreRange;

typedef struct Array
{
	void	   *at;
	size_t		bytes;
} Array;

/* An array that was replaced while queries read it. */
typedef struct Retired
{
	struct Retired *next;
	Array		array;
} Retired;

typedef struct Segment
{
	Array		values;
	Array		validity;		/* none: no NULLs so far */
} Segment;

typedef struct StoreColumn
{
	WireColumnKey key;
	bool		used;			/* this entry */
	int			holds;
	uint64_t	last,			/* uses; 0: none */
				before;
	uint64_t	bytes;
	bool		disordered;		/* rows were seen whose values are neither ascending nor descending */
	uint64_t	refused;		/* bytes that it was last refused; 0: none; UINT64_MAX: its dictionary is full */
	int			nsegments;		/* entries of the array */
	Segment    *segments;
	Retired    *retired;
	Dictionary *dictionary;		/* of a coded column, once there is something of it */
} StoreColumn;

/* A list of runs that has an id, and where its rows lie. */
typedef struct StoreList
{
	uint64_t	id;
	uint32_t	first;			/* ranges */
	uint32_t	nranges;
	uint32_t	nruns;
	WireRun    *runs;
	uint64_t	version;		/* of the table, when the rest was found; 0: not yet */
	bool		there;			/* all ranges are: */
	uint64_t	columns;		/* that all of them have, a bit each */
	int64_t		nrows;
	int			nspans;
	StoreSpan  *spans;
} StoreList;

struct StoreTable
{
	StoreTable *next;
	uint64_t	id;
	int			holds;
	uint64_t	last;			/* use */
	int64_t		end;			/* positions in use */
	int64_t		gaps;			/* of them without rows */
	int			nranges;
	int			ranges_room;
	StoreRange *ranges;			/* by number */
	uint64_t	version;		/* counts changes of ranges and of what columns they have */
	int			nlists;
	int			lists_room;
	StoreList  *lists;			/* by first range */
	int64_t		listed;			/* runs of all lists */
	StoreColumn columns[STORE_MAX_COLUMNS];
};

typedef struct Store
{
	pthread_mutex_t lock;
	int			device;
	StoreTable *tables;
	int			ntables;
	int64_t		nranges;		/* of all tables */
	uint64_t	bytes;
} Store;

extern Store *store_of(int device);

extern StoreTable *store_find_table(Store *store, uint64_t id);
/* NULL: there are too many, or there is no memory. */
extern StoreTable *store_make_table(Store *store, uint64_t id);
/* Forgets what nobody holds. */
extern void store_empty_table(Store *store, StoreTable *table);

/* The number of the column, or -1. */
extern int	store_find_column(const StoreTable *table, const WireColumnKey *key);
/* Makes an entry, in place of one without memory if need be; -1: there is none. */
extern int	store_make_column(StoreTable *table, const WireColumnKey *key);
extern void store_note_use(StoreTable *table, StoreColumn *column, uint64_t use);
/* Frees the arrays that were replaced while somebody held the column. */
extern void store_free_retired(Store *store, StoreColumn *column);

/* The place of the range of this number among the table's, or where it would be. */
extern int	store_range_place(const StoreTable *table, uint32_t number);
extern void store_free_list(StoreList *list);

#endif							/* GPUAGG_STORE_INTERNAL_H */
