/*
 * stats.h
 *	  Counters of the whole server, for the view gpuagg_stats; see stats.c.
 */
#ifndef GPUAGG_STATS_H
#define GPUAGG_STATS_H

#include "postgres.h"

/* Called at load: reserves shared memory if that is still possible. */
extern void stats_init(void);

typedef enum StatsEvent
{
	STATS_TAKEN,  /* a custom scan has run */
	STATS_ENGINE, /* a custom scan has run on the default engine, for the reason given */
	STATS_FEED,   /* a custom scan has read rows of its child plan, for the reason given */
	STATS_REFUSED /* a query was planned without a custom scan, for the reason given */
} StatsEvent;

/* What is counted together. Members are NULL if they do not apply. */
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
	uint64 rows;   /* rows read */
	uint64 groups; /* groups returned */
	double ms;
	int64 query_id; /* query identifier, or 0 */
} StatsCount;

/* Adds the count to its row. Never raises an error; does nothing without shared memory. */
extern void stats_add(const StatsKey *key, const StatsCount *count);

#endif /* GPUAGG_STATS_H */
