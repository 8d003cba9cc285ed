/*
 * strategy.c
 *	  Chooses the strategy of a reduction; see strategy.h.
 */
#include <stdio.h>
#include <string.h>

#include "strategy.h"

/* An array of up to this many bins is always worth it, even for few groups. */
#define SMALL_BINS 65536.0
/* Most bins for each group: a sparse array wastes cache. */
#define BINS_PER_GROUP 16.0
/* CPU: partitioning is worth its extra pass if groups need this many times the memory. */
#define SORT_OVERFLOW 2.0
/* GPU: rows are sorted if groups need this many times the second-level cache. */
#define GPU_SORT_OVERFLOW 4.0
#define MAX_PARTITIONS 256

const char *
strategy_name(GpuaggStrategy strategy)
{
	static const char *const names[] = {"auto", "single", "segmented", "direct", "hash", "sort"};

	return names[strategy];
}

/* Returns the greater one of two numbers. */
static double
at_least(double x, double least)
{
	return x > least ? x : least;
}

/* Returns the smaller one of two numbers. */
static double
at_most(double x, double most)
{
	return x < most ? x : most;
}

/* Returns the bytes of a group in a hash table: key, states, and the table's entries. */
static double
hash_group_bytes(const StrategyInput *input)
{
	return input->state_bytes + input->key_bytes + 16.0;
}

/* Returns the bytes of a bin.  The CPU keeps the index of a row there, the GPU the states. */
static double
bin_bytes(const StrategyDevice *device, const StrategyInput *input)
{
	return device->gpu ? input->state_bytes : 4.0;
}

/* Returns whether STRATEGY_DIRECT is possible: its bins fit into a quarter of the memory. */
static bool
can_use_direct(const StrategyDevice *device, const StrategyInput *input)
{
	return input->keys_integer && input->range_known && input->key_range < 1e15 &&
		input->key_range * bin_bytes(device, input) <= device->memory_bytes / 4.0;
}

/* Returns whether it is also worthwhile: there are not too many bins for the groups. */
static bool
is_direct_best(const StrategyDevice *device, const StrategyInput *input)
{
	return can_use_direct(device, input) &&
		input->key_range <= at_least(SMALL_BINS, input->groups * BINS_PER_GROUP);
}

/* Sets strategy, bins (at least 1) and reason of *choice. */
static void
set_choice(StrategyChoice *choice, GpuaggStrategy strategy, double bins, const char *reason)
{
	choice->strategy = strategy;
	choice->bins = (int64_t) at_most(at_least(bins, 1), 4e18);
	snprintf(choice->reason, sizeof(choice->reason), "%s", reason);
}

/* Chooses the forced strategy; false if there is none, or the query does not allow it. */
static bool
choose_forced(const StrategyDevice *device, const StrategyInput *input, StrategyChoice *choice)
{
	switch (input->forced)
	{
		case STRATEGY_DIRECT:
			if (!can_use_direct(device, input))
				return false;
			set_choice(choice, STRATEGY_DIRECT, input->key_range, "set by gpuagg.strategy");
			return true;
		case STRATEGY_HASH:
		case STRATEGY_SORT:
			set_choice(choice, input->forced, input->groups, "set by gpuagg.strategy");
			return true;
		case STRATEGY_AUTO:
		case STRATEGY_SINGLE:
		case STRATEGY_SEGMENTED:
			break;
	}
	return false;
}

/* Chooses the strategy for input with keys that does not arrive grouped. */
static void
choose_keyed(const StrategyDevice *device, const StrategyInput *input, StrategyChoice *choice)
{
	double bytes = input->groups * hash_group_bytes(input);
	char reason[128];

	if (is_direct_best(device, input))
	{
		snprintf(reason, sizeof(reason), "keys span %.0f values", input->key_range);
		set_choice(choice, STRATEGY_DIRECT, input->key_range, reason);
	}
	else if (device->gpu && (input->ordered || bytes > GPU_SORT_OVERFLOW * device->l2_bytes))
		set_choice(choice, STRATEGY_SORT, input->groups,
				   input->ordered ? "an operator depends on row order" : "groups exceed the cache");
	else if (!device->gpu && bytes > SORT_OVERFLOW * device->memory_bytes && input->range_known &&
			 input->rows > 0)
		set_choice(choice, STRATEGY_SORT, input->groups, "groups exceed the memory");
	else
	{
		snprintf(reason, sizeof(reason), "about %.0f groups", input->groups);
		set_choice(choice, STRATEGY_HASH, input->groups, reason);
	}
}

/*
 * Chooses the strategy for input that arrives grouped: STRATEGY_SEGMENTED.  A GPU returns groups in
 * no order anyway, so that gpuagg.strategy may force another strategy there.
 */
static void
choose_grouped(const StrategyDevice *device, const StrategyInput *input, StrategyChoice *choice)
{
	char reason[128] = "rows arrive grouped";

	if (device->gpu && (input->forced == STRATEGY_DIRECT || input->forced == STRATEGY_HASH) &&
		choose_forced(device, input, choice))
		return;
	if (input->mean_run > 0)
		snprintf(reason, sizeof(reason), "rows arrive grouped, %.1f in a run", input->mean_run);
	set_choice(choice, STRATEGY_SEGMENTED, 1, reason);
}

void
strategy_choose(const StrategyDevice *device, const StrategyInput *input, StrategyChoice *choice)
{
	memset(choice, 0, sizeof(*choice));
	choice->passes = 1;
	if (input->nkeys == 0)
		set_choice(choice, STRATEGY_SINGLE, 1, "no keys");
	else if (input->grouped)
		choose_grouped(device, input, choice);
	else if (!choose_forced(device, input, choice))
		choose_keyed(device, input, choice);

	if (choice->strategy == STRATEGY_SORT)
		choice->passes = (int) at_most(at_least(input->groups * hash_group_bytes(input) * 1.25 /
														at_least(device->memory_bytes, 1) +
													1,
												4),
									   MAX_PARTITIONS);
}
