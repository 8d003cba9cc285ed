/*
 * settings.h
 *	  The settings of the extension.
 */
#ifndef GPUAGG_SETTINGS_H
#define GPUAGG_SETTINGS_H

#include "postgres.h"

struct config_enum_entry;

/* gpuagg.engine is this, or a value of the options that settings_define() got. */
#define GPUAGG_ENGINE_AUTO 0

typedef enum GpuaggRequire
{
	GPUAGG_ALLOW,
	GPUAGG_REQUIRE,
	GPUAGG_FORBID
} GpuaggRequire;

typedef enum GpuaggFeedChoice
{
	GPUAGG_FEED_AUTO,
	GPUAGG_FEED_TUPLES,
	GPUAGG_FEED_HEAP
} GpuaggFeedChoice;

typedef enum GpuaggFloatSum
{
	GPUAGG_FLOAT_SUM_CORE,
	GPUAGG_FLOAT_SUM_EXACT /* exact arithmetic, rounded once */
} GpuaggFloatSum;

typedef enum GpuaggCacheUse
{
	GPUAGG_CACHE_OFF,
	GPUAGG_CACHE_ON,   /* the second query that reads a column caches it */
	GPUAGG_CACHE_EAGER /* the first one does */
} GpuaggCacheUse;

/* Planning and execution. */
extern bool gpuagg_enabled;
extern int gpuagg_engine;
extern int gpuagg_require;  /* GpuaggRequire */
extern int gpuagg_strategy; /* GpuaggStrategy */
extern int gpuagg_feed;     /* GpuaggFeedChoice */
extern int gpuagg_batch_rows;
extern bool gpuagg_replace_builtin;
extern int gpuagg_float_sum; /* GpuaggFloatSum */
extern bool gpuagg_foreign_partial;
extern bool gpuagg_log_refused;

/* Costs in the planner's units (seq_page_cost = 1). */
extern double gpuagg_startup_cost;     /* a custom scan */
extern double gpuagg_row_cost;         /* putting one row into a batch */
extern double gpuagg_slot_cost;        /* one key or slot of one row in the CPU engine */
extern double gpuagg_page_row_cost;    /* reading one row from a page, instead of cpu_tuple_cost */
extern double gpuagg_cache_row_cost;   /* reading one row from the column cache */
extern double gpuagg_worker_cost;      /* a worker that scans cached columns */
extern double gpuagg_gpu_startup_cost; /* a session with the GPU server */
extern double gpuagg_gpu_column_cost;  /* sending one value to the GPU, and reducing it there */

/* The GPU server. */
extern bool gpuagg_server;
extern char *gpuagg_server_program;
extern char *gpuagg_devices_list;
extern int gpuagg_device_memory_limit; /* MB; 0: four fifths of the free memory */
extern int gpuagg_device_cache_memory; /* MB; -1: half of the free memory; 0: no copies */
extern int gpuagg_pinned_memory_limit; /* MB */
extern int gpuagg_server_timeout;      /* ms; 0: no timeout */

/* The column cache. */
extern int gpuagg_cache;
extern double gpuagg_cache_renew; /* fraction of stale blocks that starts a refresh; 0: never */
extern int gpuagg_cache_memory;   /* MB; 0: no cache; never negative once the server runs */

/* Defines all settings; called by _PG_init.  `engines` are the options of gpuagg.engine. */
extern void settings_define(const struct config_enum_entry *engines);

#endif /* GPUAGG_SETTINGS_H */
