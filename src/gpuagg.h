/*
 * gpuagg.h
 *	  Settings of the extension.  Defined and registered in gpuagg.c.
 */
#ifndef GPUAGG_H
#define GPUAGG_H

#include "postgres.h"

typedef enum GpuaggEngineChoice
{
	GPUAGG_ENGINE_AUTO,
	GPUAGG_ENGINE_CUDA,
	GPUAGG_ENGINE_CPU
} GpuaggEngineChoice;

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

extern bool gpuagg_enabled;
extern int	gpuagg_engine;
extern int	gpuagg_require;
extern int	gpuagg_strategy;	/* GpuaggStrategy */
extern int	gpuagg_feed;
extern int	gpuagg_batch_rows;
extern bool gpuagg_replace_builtin;

/* Costs, in the planner's units (seq_page_cost = 1). */
extern double gpuagg_startup_cost;	/* of a custom scan */
extern double gpuagg_row_cost;		/* feed one row into a batch */
extern double gpuagg_slot_cost;		/* one slot, one row, CPU engine */
extern double gpuagg_page_row_cost; /* read one row from a page, instead of cpu_tuple_cost */

#endif							/* GPUAGG_H */
