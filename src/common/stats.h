/*
 * stats.h
 *	  Counters of the whole server, for the view gpuagg_stats; see stats.c.
 */
#ifndef GPUAGG_STATS_H
#define GPUAGG_STATS_H

#include "postgres.h"

/* At load: reserves shared memory if that is still possible. */
extern void stats_init(void);

typedef enum StatsEvent
{
	STATS_TAKEN,  /* a custom scan has run */
	STATS_ENGINE, /* one has run, on the default engine, for this reason */
	STATS_FEED,   /* one has run, with rows of its child plan, for this reason */
	STATS_REFUSED /* a query was planned without, for this reason */
} StatsEvent;

/* What is counted together; NULL where it does not apply. */
typedef struct StatsKey
{
	StatsEvent event;
	const char *engine;
	const char *feed;
	const char *strategy;
	const char *reason;
} StatsKey;

typedef struct StatsCount
{
	uint64 calls;
	uint64 rows;   /* read */
	uint64 groups; /* returned */
	double ms;
	int64 query_id; /* of the query, or 0 */
} StatsCount;

/* Adds the count to its row.  Never an error; nothing happens without shared memory. */
extern void stats_add(const StatsKey *key, const StatsCount *count);

#endif /* GPUAGG_STATS_H */
