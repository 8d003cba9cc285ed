/*
 * refresh.h
 *
 * Refreshing ranges of which blocks have changed: requests, and when they are due.
 *
 * Queries that meet blocks which the cache does not serve any more request a refresh. A background
 * worker of their database (../cache_maintenance/worker.c), which is started when it is needed,
 * takes the requests when they are due; see refresh.c.
 */
#ifndef GPUAGG_CACHE_REFRESH_H
#define GPUAGG_CACHE_REFRESH_H

#include "postgres.h"

#include "cache/store.h"

/*
 * Requests a refresh, and a worker, if that is worth it. Called after a scan that has met stale
 * blocks. `missing` is the most blocks that the table has of one range and its descriptor has not.
 */
extern void cache_request_refresh(CacheTable *table, int missing);

/* ---- for the worker --------------------------------------------------------------- */

/*
 * Registers this process as the worker of its database until it exits; returns false if there is
 * another one, or it was not requested.
 */
extern bool cache_worker_begin(void);

/*
 * Takes the request of a table of this database that is due. Returns false if none is due;
 * *wait_ms is then the time until one is, or -1 if none will be soon.
 */
extern bool cache_take_refresh(CacheTableKey *key, Oid *relid, long *wait_ms);

typedef enum CacheRefreshed
{
	CACHE_REFRESHED,
	CACHE_REFRESHED_IN_VAIN, /* nothing was replaced: the blocks would be stale again */
	CACHE_REFRESH_LATER,     /* another session needs the table, try again later */
	CACHE_REFRESH_FAILED     /* an error occurred */
} CacheRefreshed;

/* Ends a refresh that cache_take_refresh() began. work_ms: the time that it has worked. */
extern void cache_end_refresh(const CacheTableKey *key, CacheRefreshed how, int64 work_ms);

/* ---- what is stale ------------------------------------------------------------------ */

/*
 * Sets *cols to the columns that have chunks, allocated in the current memory context; returns
 * their number.
 */
extern int cache_table_columns(CacheTable *table, CacheColumnKey **cols);

/*
 * Returns how many blocks of a range are stale: changed, or not in the descriptor. nblocks: the
 * range's blocks in the table.
 */
extern int cache_range_stale(CacheRange *range, int nblocks);

/*
 * Finds the next range from *range_no on with enough stale blocks to be refreshed; nblocks: the
 * table's blocks. Returns false if there is none.
 */
extern bool cache_next_stale(CacheTable *table, BlockNumber nblocks, uint32 *range_no);

#endif /* GPUAGG_CACHE_REFRESH_H */
