/*
 * strategy.h
 *	  Which way a reduction runs: a pure function of statistics and device facts.
 *
 * Knows neither PostgreSQL nor CUDA, so that it is tested as a table.
 */
#ifndef GPUAGG_STRATEGY_H
#define GPUAGG_STRATEGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum GpuaggStrategy
{
	STRATEGY_AUTO,
	STRATEGY_SINGLE,    /* no keys */
	STRATEGY_SEGMENTED, /* equal keys are adjacent */
	STRATEGY_DIRECT,    /* bin = mixed-radix number of (key - min) */
	STRATEGY_HASH,      /* hash table to dense bins */
	STRATEGY_SORT       /* partition or sort by key, then runs */
} GpuaggStrategy;

/* What the machine can do; for the CPU engine the caches of one core. */
typedef struct StrategyDevice
{
	bool gpu;
	size_t l2_bytes;     /* CPU: L2 of one core */
	size_t memory_bytes; /* what the states and tables may use */
} StrategyDevice;

/* What is known about the input: planner estimates first, then samples of the data. */
typedef struct StrategyInput
{
	GpuaggStrategy forced; /* gpuagg.strategy */
	int nkeys;
	bool keys_integer;  /* every key is KEY_RAW */
	bool grouped;       /* equal keys are known to arrive together */
	bool ordered;       /* a monoid that does not commute */
	double rows;        /* estimate, or seen so far */
	double groups;      /* estimate, or extrapolated from the sample */
	bool range_known;   /* key_range is from data */
	double key_range;   /* product of (max - min + 2) over the keys */
	double mean_run;    /* mean length of runs of equal keys in the sample; 0 unknown */
	size_t state_bytes; /* of one group, all slots */
	size_t key_bytes;
} StrategyInput;

typedef struct StrategyChoice
{
	GpuaggStrategy strategy;
	int64_t bins;     /* direct: how many; hash: the table's first size */
	int passes;       /* sort: number of partitions */
	char reason[128]; /* one line for EXPLAIN */
} StrategyChoice;

extern void strategy_choose(const StrategyDevice *device, const StrategyInput *input,
							StrategyChoice *choice);
extern const char *strategy_name(GpuaggStrategy strategy);

#endif /* GPUAGG_STRATEGY_H */
