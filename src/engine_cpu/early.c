/*
 * early.c
 *	  Groups that leave the table of a participant before the end of its input.
 *
 * In a parallel plan with many groups, a participant would find each group in a large table of its
 * own, and again when partitions of all tables are merged. Large tables exceed the processor's
 * caches. So a table that outgrows them, and is expected to grow much further with few rows for
 * each group, is emptied: its groups go to shared memory by partition (exchange.c), and the next
 * rows make groups anew. A group may leave several times; merging the partitions combines its
 * states. Frequent keys still meet in the table. (The same division of work as in Leis et al.,
 * Morsel-Driven Parallelism, SIGMOD 2014, section 4.4.)
 *
 * Groups with values of Datum keys stay: each time that they leave, the values would be copied,
 * which takes longer than what the caches gain.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "engine_cpu/engine_cpu_internal.h"

/*
 * A table of these bytes, with its hash table, stays in the second-level cache of a core. 256 kB to
 * 1 MB are equally fast, 2 MB are not (test/bench/README.md).
 */
#define CACHED_BYTES ((size_t) 512 * 1024)
/* It takes at most this share of the memory. */
#define MEMORY_SHARE 16
/* A table that is expected to stay below this many times as many groups is not emptied. */
#define GROWTH 4
/*
 * Nor is one whose groups would leave more often than this in the mean: they are reduced better
 * here, as shared memory, its page faults and merging take time, too.
 */
#define LEAVES_PER_GROUP 1.5
/* Bytes of a group in a hash table. */
#define HASH_ENTRY_BYTES 16

/* Returns the groups of a table that stays in the cache. */
static uint32
cached_groups(const CpuEngine *engine)
{
	size_t bytes = Min(CACHED_BYTES, engine->env.mem_limit / MEMORY_SHARE);

	return Max(bytes / (engine->table->row_size + HASH_ENTRY_BYTES), 64);
}

void
cpu_start_early(CpuEngine *engine)
{
	engine->early = NULL;
	engine->early_bound = 0;
	engine->early_located = engine->located;
	engine->growth = (EarlyGrowth){.located = engine->located};
	if (engine->env.early_sink && engine->env.forced == STRATEGY_AUTO &&
		engine->table->mode == TABLE_HASH && cpu_exchanges_rows(engine))
		engine->early_bound = cached_groups(engine);
}

/* Returns whether groups may leave the table as it is. */
static bool
may_leave(const CpuEngine *engine)
{
	const GroupTable *table = engine->table;

	/* a group with rows in files must not be made again in memory */
	return table->mode == TABLE_HASH && !table->frozen && engine->out == NULL &&
		engine->pending.n == 0 &&
		cpu_early_bytes(engine) + group_table_memory(table) < engine->env.mem_limit / 2;
}

/* Returns how many rows this participant is expected to have. */
static double
expected_rows(const CpuEngine *engine)
{
	return Max(engine->env.est_rows, engine->located - engine->early_located);
}

/*
 * Measures which share of the rows since the last call made new groups, and returns how many groups
 * all rows of this participant are expected to make; 0 at the first call.
 *
 * Some rows have frequent keys, and the others any of g keys. So where there are n groups, the
 * share is p * (1 - n / g). Two shares, each at the mean n of its rows, give p and g. With r rows
 * there are g * (1 - exp(-p * r / g)) groups then.
 */
static double
expected_groups(CpuEngine *engine)
{
	EarlyGrowth before = engine->growth;
	EarlyGrowth *now = &engine->growth;
	double rows = expected_rows(engine);
	double rare, inverse;

	now->groups = engine->table->ngroups;
	now->located = engine->located;
	now->middle = (before.groups + now->groups) / 2.0;
	now->share = (now->groups - before.groups) / (double) Max(now->located - before.located, 1);
	if (before.groups == 0)
	{
		now->leaving = now->share;
		return 0;
	}
	if (now->share >= before.share)
		return now->share * rows;
	inverse =
		(before.share - now->share) / (before.share * now->middle - now->share * before.middle);
	rare = before.share / (1 - before.middle * inverse);
	return -expm1(-rare * rows * inverse) / inverse;
}

/*
 * Returns whether the table is worth emptying, if it is expected to get so many groups. If it is
 * not, it should have room for them.
 */
static bool
grows_much(CpuEngine *engine, double groups)
{
	if (groups >= (double) cached_groups(engine) * GROWTH &&
		groups * LEAVES_PER_GROUP >= expected_rows(engine) * engine->growth.leaving)
		return true;
	engine->table->expected = Max(engine->table->expected, groups);
	cpu_reserve_groups(engine, groups);
	return false;
}

/* Moves all groups of the table to shared memory. Returns false if there is none. */
static bool
empty_table(CpuEngine *engine)
{
	GroupTable *table = engine->table;

	if (!cpu_share_rows(engine, engine->early))
		return false;
	engine->emitted += table->ngroups;
	engine->early_groups += table->ngroups;
	group_table_clear(table);
	slots_reset(engine->slots);
	return true;
}

void
cpu_leave_early(CpuEngine *engine)
{
	if (engine->early_bound == 0 || engine->table->ngroups < engine->early_bound)
		return;
	if (engine->early == NULL && may_leave(engine))
	{
		double groups = expected_groups(engine);

		if (grows_much(engine, groups))
			engine->early = engine->env.early_sink(engine->env.early_arg, engine->env.exchange);
		if (engine->early == NULL)
		{
			engine->early_bound *= 2;
			return;
		}
		engine->early->expected =
			Min(groups * engine->table->row_size, engine->env.mem_limit / 2.0);
		engine->early_bound = cached_groups(engine);
	}
	if (!may_leave(engine) || !empty_table(engine))
		engine->early_bound = 0;
}
