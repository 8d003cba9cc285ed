/*
 * refresh.h
 *	  Ranges of which blocks have changed: who asks for their renewal, and who does it.
 *
 * Queries that meet blocks which the cache does not serve any more ask for renewal; a background
 * worker of their database (../cache_maintenance/worker.c), which is started when it is needed,
 *takes the requests.  When is decided here; see refresh.c.
 */
#ifndef GPUAGG_CACHE_REFRESH_H
#define GPUAGG_CACHE_REFRESH_H

#include "postgres.h"

#include "cache/store.h"

/*
 * After a scan that has met blocks which are not what is cached: asks for renewal, and for a
 * worker, if that is due.  `missing` is the most blocks that the table has now of one range and the
 * descriptor has not.
 */
extern void cache_ask_refresh(CacheTable *table, int missing);

/* ---- for the worker --------------------------------------------------------------- */

/* Makes this process, until it exits, the worker of its database; false: there is another one. */
extern bool cache_worker_begin(void);

/*
 * Takes the request of a table of this database that is due.  False if there is none:
 * *wait_ms is how long until there is one, -1 if there will be none soon.
 */
extern bool cache_take_refresh(CacheTableKey *key, Oid *relid, long *wait_ms);

typedef enum CacheRefreshed
{
	CACHE_REFRESHED,
	CACHE_REFRESHED_IN_VAIN, /* the stale blocks would be as stale again: nothing was replaced */
	CACHE_REFRESH_LATER,     /* somebody else wants the table */
	CACHE_REFRESH_FAILED     /* by an error */
} CacheRefreshed;

/* Ends what cache_take_refresh began; it took so many ms of work. */
extern void cache_end_refresh(const CacheTableKey *key, CacheRefreshed how, int64 work_ms);

/* ---- what is stale ------------------------------------------------------------------ */

/* The columns of which there are chunks, in the current memory context; returns how many. */
extern int cache_table_columns(CacheTable *table, CacheColumnKey **cols);

/*
 * Blocks of a range, nblocks in the table, that the descriptor does not serve any more, or not yet.
 */
extern int cache_range_stale(CacheRange *range, int nblocks);

/*
 * Finds the next range from *range_no on, of a table of so many blocks, of which enough is
 * stale to be renewed.
 */
extern bool cache_next_stale(CacheTable *table, BlockNumber nblocks, uint32 *range_no);

#endif /* GPUAGG_CACHE_REFRESH_H */
