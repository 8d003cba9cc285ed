/*
 * settings.h
 *	  The settings of the extension.
 */
#ifndef GPUAGG_SETTINGS_H
#define GPUAGG_SETTINGS_H

#include "postgres.h"

struct config_enum_entry;

/* gpuagg.engine: this, or a value of the options that settings_define() was given. */
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

typedef enum GpuaggCacheUse
{
	GPUAGG_CACHE_OFF,
	GPUAGG_CACHE_ON,   /* columns are filled by the second query that reads them */
	GPUAGG_CACHE_EAGER /* by the first one */
} GpuaggCacheUse;

/* What is done. */
extern bool gpuagg_enabled;
extern int gpuagg_engine;
extern int gpuagg_require;  /* GpuaggRequire */
extern int gpuagg_strategy; /* GpuaggStrategy */
extern int gpuagg_feed;     /* GpuaggFeedChoice */
extern int gpuagg_batch_rows;
extern bool gpuagg_replace_builtin;
extern bool gpuagg_foreign_partial;
extern bool gpuagg_log_refused;

/* Costs, in the planner's units (seq_page_cost = 1). */
extern double gpuagg_startup_cost;     /* of a custom scan */
extern double gpuagg_row_cost;         /* put one row into a batch */
extern double gpuagg_slot_cost;        /* one key or slot, one row, CPU engine */
extern double gpuagg_page_row_cost;    /* read one row from a page, instead of cpu_tuple_cost */
extern double gpuagg_cache_row_cost;   /* read one row from the column cache */
extern double gpuagg_gpu_startup_cost; /* of a session with the GPU server */
extern double gpuagg_gpu_column_cost;  /* one value to the GPU, and reduced there */

/* The GPU server. */
extern bool gpuagg_server;
extern char *gpuagg_server_program;
extern char *gpuagg_devices_list;
extern int gpuagg_device_memory_limit; /* MB; 0: four fifths of what others leave */
extern int gpuagg_device_cache_memory; /* MB; -1: half of what others leave; 0: none */
extern int gpuagg_pinned_memory_limit; /* MB */
extern int gpuagg_server_timeout;      /* ms; 0: none */

/* The column cache. */
extern int gpuagg_cache;
extern double
	gpuagg_cache_renew; /* share of stale blocks from which on a table is renewed; 0: never */
extern int gpuagg_cache_memory; /* MB; 0: no cache; after the start not negative */

/* Once, from _PG_init.  `engines` are the options of gpuagg.engine, and must last. */
extern void settings_define(const struct config_enum_entry *engines);

#endif /* GPUAGG_SETTINGS_H */
