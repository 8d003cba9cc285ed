/*
 * strategy_test.c
 *	  Tests strategy_choose() (strategy.h): a table of inputs and expected strategies, and
 *	  invariants of the choice for random inputs.
 */
#include "unit.h"

#include <math.h>

#include "strategy.h"

static const StrategyDevice cpu = {
	.l2_bytes = 1 << 20,
	.memory_bytes = 8 << 20,
};
static const StrategyDevice gpu = {
	.gpu = true,
	.l2_bytes = 50 << 20,
	.memory_bytes = (size_t) 64 << 30,
};

typedef struct Row
{
	const char *name;
	const StrategyDevice *device;
	StrategyInput input;
	GpuaggStrategy expected;
} Row;

/* Members of an input with one integer key whose range is known from the data. */
#define INTEGERS(g, range) \
	.nkeys = 1, .keys_integer = true, .range_known = true, .rows = 1e7, .groups = (g), \
	.key_range = (range), .state_bytes = 32, .key_bytes = 8
/* Members of an input with one key of any type. */
#define KEYS(g) .nkeys = 1, .rows = 1e7, .groups = (g), .state_bytes = 32, .key_bytes = 8

static const Row rows[] = {
	{"no keys", &cpu, {.nkeys = 0}, STRATEGY_SINGLE},
	{"no keys, hash forced", &cpu, {.nkeys = 0, .forced = STRATEGY_HASH}, STRATEGY_SINGLE},
	{"no keys, GPU", &gpu, {.nkeys = 0, .ordered = true}, STRATEGY_SINGLE},
	{"grouped rows", &cpu, {INTEGERS(1000, 1000), .grouped = true}, STRATEGY_SEGMENTED},
	{"grouped rows, hash forced",
	 &cpu,
	 {INTEGERS(1000, 1000), .grouped = true, .forced = STRATEGY_HASH},
	 STRATEGY_SEGMENTED},
	{"small range", &cpu, {INTEGERS(1000, 1001)}, STRATEGY_DIRECT},
	{"small range, few groups", &cpu, {INTEGERS(3, 60000)}, STRATEGY_DIRECT},
	{"dense range of a million", &cpu, {INTEGERS(400000, 500000)}, STRATEGY_DIRECT},
	{"sparse range", &cpu, {INTEGERS(1000, 200000)}, STRATEGY_HASH},
	{"a map of more than a quarter of the memory", &cpu, {INTEGERS(60000, 600000)}, STRATEGY_HASH},
	{"a range of 64 bits", &cpu, {INTEGERS(100, 1.8e19)}, STRATEGY_HASH},
	{"unknown range",
	 &cpu,
	 {.nkeys = 1,
	  .keys_integer = true,
	  .rows = 1e7,
	  .groups = 10,
	  .key_range = 10,
	  .state_bytes = 32,
	  .key_bytes = 8},
	 STRATEGY_HASH},
	{"keys that are not integers", &cpu, {KEYS(1000)}, STRATEGY_HASH},
	{"groups do not fit into memory, by the data", &cpu, {INTEGERS(1e7, 1e15)}, STRATEGY_SORT},
	{"groups do not fit into memory, by the plan", &cpu, {KEYS(1e7)}, STRATEGY_HASH},
	{"hash forced", &cpu, {INTEGERS(1000, 1001), .forced = STRATEGY_HASH}, STRATEGY_HASH},
	{"sort forced", &cpu, {INTEGERS(1000, 1001), .forced = STRATEGY_SORT}, STRATEGY_SORT},
	{"direct forced, sparse range",
	 &cpu,
	 {INTEGERS(1000, 200000), .forced = STRATEGY_DIRECT},
	 STRATEGY_DIRECT},
	{"direct forced, impossible", &cpu, {KEYS(1000), .forced = STRATEGY_DIRECT}, STRATEGY_HASH},
	{"segmented forced, rows not grouped",
	 &cpu,
	 {KEYS(1000), .forced = STRATEGY_SEGMENTED},
	 STRATEGY_HASH},
	{"single forced, with keys", &cpu, {KEYS(1000), .forced = STRATEGY_SINGLE}, STRATEGY_HASH},
	{"GPU, small range", &gpu, {INTEGERS(1000, 1001)}, STRATEGY_DIRECT},
	{"GPU, aggregates depend on order", &gpu, {KEYS(1000), .ordered = true}, STRATEGY_SORT},
	{"GPU, groups fit into the L2 cache", &gpu, {KEYS(100000)}, STRATEGY_HASH},
	{"GPU, groups do not fit into the L2 cache", &gpu, {KEYS(1e8)}, STRATEGY_SORT},
	{"GPU, grouped rows",
	 &gpu,
	 {INTEGERS(1000, 1000), .grouped = true, .mean_run = 48},
	 STRATEGY_SEGMENTED},
	{"GPU, grouped rows, one row per group",
	 &gpu,
	 {INTEGERS(1e7, 1e7), .grouped = true, .mean_run = 1},
	 STRATEGY_SEGMENTED},
	{"GPU, grouped rows, hash forced",
	 &gpu,
	 {INTEGERS(1000, 1000), .grouped = true, .forced = STRATEGY_HASH},
	 STRATEGY_HASH},
	{"GPU, grouped rows, direct forced, impossible",
	 &gpu,
	 {KEYS(1000), .grouped = true, .forced = STRATEGY_DIRECT},
	 STRATEGY_SEGMENTED}};

static void
choices_by_table(void)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		StrategyChoice choice;

		strategy_choose(rows[i].device, &rows[i].input, &choice);
		CHECK(choice.strategy == rows[i].expected, "%s: %s, expected %s (%s)", rows[i].name,
			  strategy_name(choice.strategy), strategy_name(rows[i].expected), choice.reason);
	}
}

/* Returns a random query for the choice of a strategy. */
static StrategyInput
random_input(void)
{
	StrategyInput input = {0};

	input.forced = (GpuaggStrategy) random_below(6);
	input.nkeys = (int) random_below(4);
	input.keys_integer = random_below(2);
	input.grouped = random_below(4) == 0;
	input.ordered = random_below(4) == 0;
	input.rows = pow(10, random_below(12));
	input.groups = pow(10, random_below(12));
	input.range_known = random_below(2);
	input.key_range = pow(10, random_below(21));
	input.state_bytes = 1 + (int) random_below(1000);
	input.key_bytes = 8;
	return input;
}

static void
choices_keep_invariants(void)
{
	for (int i = 0; i < 100000; i++)
	{
		const StrategyDevice *device = random_below(2) ? &cpu : &gpu;
		StrategyInput input = random_input();
		StrategyChoice choice, again;

		strategy_choose(device, &input, &choice);
		strategy_choose(device, &input, &again);
		CHECK(memcmp(&choice, &again, sizeof(choice)) == 0, "the same input gives the same choice");
		CHECK(choice.strategy != STRATEGY_AUTO, "a strategy is chosen");
		CHECK((choice.strategy == STRATEGY_SINGLE) == (input.nkeys == 0),
			  "SINGLE is chosen exactly if there are no keys");
		CHECK(choice.strategy != STRATEGY_SEGMENTED || input.grouped,
			  "SEGMENTED is chosen only for grouped rows");
		CHECK(choice.strategy != STRATEGY_DIRECT ||
				  (input.keys_integer && input.range_known &&
				   input.key_range <= device->memory_bytes),
			  "DIRECT is chosen only for a known integer range that fits, not %g values",
			  input.key_range);
		CHECK(choice.bins >= 1 && choice.passes >= 1, "there is at least one bin and one pass");
		CHECK(choice.reason[0] != '\0', "the choice has a reason");
	}
}

int
main(void)
{
	RUN("inputs of the table give the expected strategies", choices_by_table);
	RUN("choices for random inputs keep the invariants", choices_keep_invariants);
	return unit_done();
}
