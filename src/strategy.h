/*
 * strategy.h
 *	  Chooses the strategy of a reduction from statistics of the input and facts of the device.
 *
 * A pure function without PostgreSQL and CUDA, so that a table of cases tests it.
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
	STRATEGY_SEGMENTED, /* equal keys are adjacent: each run of equal keys is a group */
	STRATEGY_DIRECT,    /* an array of groups; the index is a mixed-radix number of key - min */
	STRATEGY_HASH,      /* a hash table of groups */
	STRATEGY_SORT       /* rows are partitioned or sorted by key first */
} GpuaggStrategy;

/* Facts of the device; for the CPU engine those of one core. */
typedef struct StrategyDevice
{
	bool gpu;
	size_t l2_bytes;     /* size of the second-level cache */
	size_t memory_bytes; /* limit for states and tables */
} StrategyDevice;

/* Statistics of the input: planner's estimates first, later figures from the rows so far. */
typedef struct StrategyInput
{
	GpuaggStrategy forced; /* gpuagg.strategy */
	int nkeys;
	bool keys_integer;  /* all keys are KEY_RAW */
	bool grouped;       /* rows with equal keys arrive together */
	bool ordered;       /* some monoid does not commute */
	double rows;        /* estimate, or rows so far */
	double groups;      /* estimate, or extrapolated from the rows so far */
	bool range_known;   /* key_range is that of actual rows */
	double key_range;   /* product of (max - min + 2) over all keys */
	double mean_run;    /* mean length of runs of equal keys; 0: unknown */
	size_t state_bytes; /* states of one group */
	size_t key_bytes;   /* keys of one group */
} StrategyInput;

typedef struct StrategyChoice
{
	GpuaggStrategy strategy;
	int64_t bins;     /* direct: size of the array; hash: initial size of the table */
	int passes;       /* sort: number of partitions */
	char reason[128]; /* for EXPLAIN */
} StrategyChoice;

/* Sets *choice.  A forced strategy is ignored if it cannot run the query. */
extern void strategy_choose(const StrategyDevice *device, const StrategyInput *input,
							StrategyChoice *choice);
/* Returns the name of a strategy as in gpuagg.strategy. */
extern const char *strategy_name(GpuaggStrategy strategy);

#endif /* GPUAGG_STRATEGY_H */
