/*
 * moves.c
 *	  Moves groups to shared memory before the end of the input, in a parallel plan.
 *
 * Where most rows make new groups, a large table gains nothing: each lookup misses the caches, and
 * each group is looked up again when participants merge theirs.  So the groups leave the table when
 * it has outgrown the cache, and it begins anew, in the same memory.  A partition of the exchange
 * may then have several states of a group from one participant, as it has from several.
 *
 * Where rows meet the table's groups, it grows on.  Rows and new groups are counted since its last
 * check; the next check is when it has twice as many groups.
 */
#include "postgres.h"

#include "engine_cpu/engine_cpu.h"
#include "engine_cpu/engine_cpu_internal.h"

/* Bytes of the table's rows that stay in the caches of one processor. */
#define CACHED_BYTES ((size_t) 4 * 1024 * 1024)

/* Groups leave if there is one new group for at most so many rows. */
#define ROWS_PER_GROUP 4

/* The groups that have left may take this share of the memory. */
#define MOVED_SHARE 2

uint32
cpu_cached_groups(const CpuEngine *engine)
{
	return CACHED_BYTES / engine->table->row_size;
}

bool
cpu_may_move_groups(const CpuEngine *engine)
{
	return engine->env.input.parallel && engine->env.forced == STRATEGY_AUTO &&
		!engine->keeps_groups && (cpu_exchanges_rows(engine) || cpu_shares_values(engine));
}

/* Makes the next check of the table due when it has so many groups. */
static void
postpone_check(CpuEngine *engine, uint32 groups)
{
	engine->checked_groups = engine->table->ngroups;
	engine->checked_rows = engine->located;
	engine->check_at = groups;
}

void
cpu_start_moves(CpuEngine *engine)
{
	engine->keeps_groups = false;
	engine->moved_bytes = 0;
	postpone_check(engine, cpu_cached_groups(engine));
}

bool
cpu_outgrows_cache(Engine *base)
{
	CpuEngine *engine = (CpuEngine *) base;
	GroupTable *table = engine->table;
	uint64 rows = engine->located - engine->checked_rows;

	if (table->ngroups < engine->check_at || table->mode != TABLE_HASH || table->frozen ||
		engine->bits || engine->out || !cpu_may_move_groups(engine))
		return false;
	if ((table->ngroups - engine->checked_groups) * (uint64) ROWS_PER_GROUP < rows)
	{
		postpone_check(engine, (uint32) Min(table->ngroups * (uint64) 2, PG_UINT32_MAX));
		return false;
	}
	return engine->moved_bytes + group_table_memory(table) < engine->env.mem_limit / MOVED_SHARE;
}

bool
cpu_move_groups(Engine *base, GroupSink *sink)
{
	CpuEngine *engine = (CpuEngine *) base;

	if (!cpu_share_groups(engine, sink))
	{
		engine->keeps_groups = true;
		return false;
	}
	engine->emitted += engine->table->ngroups;
	slots_reset(engine->slots);
	group_table_clear(engine->table);
	postpone_check(engine, cpu_cached_groups(engine));
	return true;
}
