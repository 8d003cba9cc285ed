/*
 * strategy_test.c
 *	  The choice of strategies as a table: facts in, strategy out; and what must
 *	  hold of every choice, on random facts.
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
	const char *what;
	const StrategyDevice *device;
	StrategyInput input;
	GpuaggStrategy expected;
} Row;

/* Shorthand: integer keys of a range known from data. */
#define INTEGERS(g, range) \
	.nkeys = 1, .keys_integer = true, .range_known = true, .rows = 1e7, .groups = (g), \
	.key_range = (range), .state_bytes = 32, .key_bytes = 8
/* Any keys. */
#define KEYS(g) .nkeys = 1, .rows = 1e7, .groups = (g), .state_bytes = 32, .key_bytes = 8

static const Row rows[] = {
	{"no keys", &cpu, {.nkeys = 0}, STRATEGY_SINGLE},
	{"no keys whatever is asked", &cpu, {.nkeys = 0, .forced = STRATEGY_HASH}, STRATEGY_SINGLE},
	{"no keys, GPU", &gpu, {.nkeys = 0, .ordered = true}, STRATEGY_SINGLE},
	{"grouped rows", &cpu, {INTEGERS(1000, 1000), .grouped = true}, STRATEGY_SEGMENTED},
	{"grouped rows keep their order",
	 &cpu,
	 {INTEGERS(1000, 1000), .grouped = true, .forced = STRATEGY_HASH},
	 STRATEGY_SEGMENTED},
	{"small range", &cpu, {INTEGERS(1000, 1001)}, STRATEGY_DIRECT},
	{"small range, few groups", &cpu, {INTEGERS(3, 60000)}, STRATEGY_DIRECT},
	{"dense range of a million", &cpu, {INTEGERS(400000, 500000)}, STRATEGY_DIRECT},
	{"sparse range", &cpu, {INTEGERS(1000, 200000)}, STRATEGY_HASH},
	{"map beyond a quarter of the memory", &cpu, {INTEGERS(60000, 600000)}, STRATEGY_HASH},
	{"astronomic range", &cpu, {INTEGERS(100, 1.8e19)}, STRATEGY_HASH},
	{"range unknown",
	 &cpu,
	 {.nkeys = 1,
	  .keys_integer = true,
	  .rows = 1e7,
	  .groups = 10,
	  .key_range = 10,
	  .state_bytes = 32,
	  .key_bytes = 8},
	 STRATEGY_HASH},
	{"other keys", &cpu, {KEYS(1000)}, STRATEGY_HASH},
	{"groups beyond the memory, from data", &cpu, {INTEGERS(1e7, 1e15)}, STRATEGY_SORT},
	{"groups beyond the memory, as planned", &cpu, {KEYS(1e7)}, STRATEGY_HASH},
	{"hash asked for", &cpu, {INTEGERS(1000, 1001), .forced = STRATEGY_HASH}, STRATEGY_HASH},
	{"sort asked for", &cpu, {INTEGERS(1000, 1001), .forced = STRATEGY_SORT}, STRATEGY_SORT},
	{"direct asked for, sparse",
	 &cpu,
	 {INTEGERS(1000, 200000), .forced = STRATEGY_DIRECT},
	 STRATEGY_DIRECT},
	{"direct asked for, impossible", &cpu, {KEYS(1000), .forced = STRATEGY_DIRECT}, STRATEGY_HASH},
	{"segmented asked for, not grouped",
	 &cpu,
	 {KEYS(1000), .forced = STRATEGY_SEGMENTED},
	 STRATEGY_HASH},
	{"single asked for, keys", &cpu, {KEYS(1000), .forced = STRATEGY_SINGLE}, STRATEGY_HASH},
	{"GPU, small range", &gpu, {INTEGERS(1000, 1001)}, STRATEGY_DIRECT},
	{"GPU, order matters", &gpu, {KEYS(1000), .ordered = true}, STRATEGY_SORT},
	{"GPU, groups in the cache", &gpu, {KEYS(100000)}, STRATEGY_HASH},
	{"GPU, groups beyond the cache", &gpu, {KEYS(1e8)}, STRATEGY_SORT},
	{"GPU, grouped rows",
	 &gpu,
	 {INTEGERS(1000, 1000), .grouped = true, .mean_run = 48},
	 STRATEGY_SEGMENTED},
	{"GPU, grouped rows of one each",
	 &gpu,
	 {INTEGERS(1e7, 1e7), .grouped = true, .mean_run = 1},
	 STRATEGY_SEGMENTED},
	{"GPU, grouped rows, hash asked for",
	 &gpu,
	 {INTEGERS(1000, 1000), .grouped = true, .forced = STRATEGY_HASH},
	 STRATEGY_HASH},
	{"GPU, grouped rows, direct asked for and impossible",
	 &gpu,
	 {KEYS(1000), .grouped = true, .forced = STRATEGY_DIRECT},
	 STRATEGY_SEGMENTED}};

static void
table(void)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		StrategyChoice choice;

		strategy_choose(rows[i].device, &rows[i].input, &choice);
		CHECK(choice.strategy == rows[i].expected, "%s: %s, expected %s (%s)", rows[i].what,
			  strategy_name(choice.strategy), strategy_name(rows[i].expected), choice.reason);
	}
}

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
invariants(void)
{
	for (int i = 0; i < 100000; i++)
	{
		const StrategyDevice *device = random_below(2) ? &cpu : &gpu;
		StrategyInput input = random_input();
		StrategyChoice choice, again;

		strategy_choose(device, &input, &choice);
		strategy_choose(device, &input, &again);
		CHECK(memcmp(&choice, &again, sizeof(choice)) == 0, "not a pure function");
		CHECK(choice.strategy != STRATEGY_AUTO, "nothing chosen");
		CHECK((choice.strategy == STRATEGY_SINGLE) == (input.nkeys == 0), "single with keys");
		CHECK(choice.strategy != STRATEGY_SEGMENTED || input.grouped, "segmented, not grouped");
		CHECK(choice.strategy != STRATEGY_DIRECT ||
				  (input.keys_integer && input.range_known &&
				   input.key_range <= device->memory_bytes),
			  "direct over %g values", input.key_range);
		CHECK(choice.bins >= 1 && choice.passes >= 1, "no bins or passes");
		CHECK(choice.reason[0] != '\0', "no reason");
	}
}

int
main(void)
{
	RUN("strategies by table", table);
	RUN("what holds of every choice", invariants);
	return unit_done();
}
