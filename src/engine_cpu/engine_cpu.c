/*
 * engine_cpu.c
 *	  The CPU engine: column at a time, within its memory limit, on one core.
 *
 * Rows go to the table of groups (absorb.c). When the memory is used up, rows without a group go to
 * partitions in files. At the end each partition is read into the emptied table, with another hash
 * at each level. A table accepts at least one group, so this ends.
 *
 * Memory is below EngineEnv.cxt. Files belong to the resource owner.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "engine_cpu/engine_cpu.h"
#include "engine_cpu/engine_cpu_internal.h"
#include "settings.h"

/* ---- rows in ------------------------------------------------------------ */

/* Tells the feed which columns of its batch may be narrow. */
static void
cpu_bind_buffers(Engine *base, Batch *batch)
{
	const AggSpec *spec = ((CpuEngine *) base)->spec;

	for (int c = 0; c < batch->ncols; c++)
		batch->cols[c].takes_narrow = slots_take_narrow(spec, c);
}

/*
 * Adds rows. For grouped input, drops the complete groups, and reduces only the next rows of the
 * batch (cpu_reduce_segments); the rest of the batch is reduced while groups are returned.
 */
static EngineStatus
cpu_add_batch(Engine *base, const Batch *batch)
{
	CpuEngine *engine = (CpuEngine *) base;

	engine->rows += batch->nrows;
	engine->batches++;
	if (batch->nrows == 0)
		return ENGINE_OK;
	if (engine->table->mode == TABLE_SEGMENTED)
	{
		cpu_carry_segment(engine);
		engine->batch = *batch;
		engine->batch_pos = 0;
		cpu_reduce_segments(engine);
	}
	else
	{
		cpu_absorb(engine, batch);
		cpu_leave_early(engine);
	}
	return ENGINE_OK;
}

/* ---- groups out --------------------------------------------------------- */

/* Prepares to return the table's groups: all their rows have been reduced. */
static void
start_returning_groups(CpuEngine *engine)
{
	cpu_finish_partitions(engine);
	cpu_budget(engine);
	engine->emit_pos = 0;
	engine->emit_end = engine->table->ngroups;
}

/* Ends the input: all groups are complete. Without keys there is a group even for no rows. */
static EngineStatus
cpu_finish(Engine *base)
{
	CpuEngine *engine = (CpuEngine *) base;

	cpu_merge_imported(engine);
	engine->finished = true;
	if (engine->spec->nkeys == 0 && engine->table->ngroups == 0)
		group_table_add(engine->table);
	if (engine->table->mode == TABLE_SEGMENTED)
		cpu_carry_segment(engine);
	start_returning_groups(engine);
	return ENGINE_OK;
}

/* Frees the bits, after their groups were returned or to forget them. */
static void
free_bits(CpuEngine *engine)
{
	if (engine->bits)
		group_bits_free(engine->bits);
	engine->bits = NULL;
}

/* Fills the table from the next partition; returns false if there is none. */
static bool
load_next_partition(CpuEngine *engine)
{
	const Batch *batch;
	RowReader *reader;

	cpu_finish_partitions(engine);
	if (!partition_list_pop(&engine->pending, &engine->in))
		return false;
	cpu_forget_groups(engine);
	engine->level = engine->in.level;
	if (engine->in.groups)
		cpu_read_groups(engine, engine->in.groups);
	if (engine->in.rows)
	{
		if (!engine->reader)
		{
			MemoryContext old = MemoryContextSwitchTo(engine->cxt);

			engine->reader = row_reader_create(engine->spec, engine->table->batch_rows);
			MemoryContextSwitchTo(old);
		}
		reader = engine->reader;
		while ((batch = row_reader_next(reader, engine->in.rows)) != NULL)
			cpu_absorb(engine, batch);
	}
	partition_close(&engine->in);
	start_returning_groups(engine);
	return true;
}

/*
 * Returns the next complete groups in *out; false if there are none yet, or no more. At the end
 * they come from the bits or the table, then from one partition after the other. For grouped input
 * it also reduces the next rows of the batch.
 */
static bool
cpu_next_groups(Engine *base, GroupBatch *out)
{
	CpuEngine *engine = (CpuEngine *) base;
	int n;

	while (engine->emit_pos >= engine->emit_end)
	{
		if (engine->finished && engine->bits)
		{
			n = cpu_emit_bits(engine);
			engine->emitted += n;
			if (n > 0)
			{
				*out = engine->groups;
				return true;
			}
			free_bits(engine);
		}
		else if (engine->finished)
		{
			if (!load_next_partition(engine))
				return false;
		}
		else if (engine->table->mode == TABLE_SEGMENTED && engine->batch_pos < engine->batch.nrows)
		{
			cpu_carry_segment(engine);
			cpu_reduce_segments(engine);
		}
		else
			return false;
	}
	n = cpu_emit(engine, engine->emit_pos, engine->emit_end);
	engine->emit_pos += n;
	engine->emitted += n;
	*out = engine->groups;
	return true;
}

/*
 * Writes the groups in engine->groups to the sink, as records. They are the groups of the table
 * from number `from` on, or groups of the bits.
 */
static void
write_groups(CpuEngine *engine, GroupSink *sink, uint32 from)
{
	for (int g = 0; g < engine->groups.ngroups; g++)
	{
		uint32 len;

		cpu_write_group(engine, g);
		len = engine->record.len;
		if (sink->part)
			sink->part(sink,
					   group_part(sink,
								  group_keys_row_hash(&engine->table->keys,
													  group_row(engine->table, from + g))));
		sink->write(sink, &len, sizeof(len));
		sink->write(sink, engine->record.data, len);
	}
}

/* Writes all groups of the table to the sink as records. */
static void
export_records(CpuEngine *engine, GroupSink *sink)
{
	GroupTable *table = engine->table;

	for (uint32 from = 0; from < table->ngroups; from += engine->groups.ngroups)
	{
		CHECK_FOR_INTERRUPTS();
		cpu_emit(engine, from, table->ngroups);
		write_groups(engine, sink, from);
	}
}

/*
 * Puts the groups of the table into memory of the sink; returns false if they must be written. Does
 * so only if the table has all groups of this engine, not those of one partition.
 */
static bool
share_groups(CpuEngine *engine, GroupSink *sink)
{
	if (sink->rows == NULL || engine->out || engine->pending.n > 0 || engine->level > 0)
		return false;
	if (cpu_exchanges_rows(engine))
		return cpu_share_rows(engine, sink);
	return cpu_shares_values(engine) && cpu_share_values(engine, sink);
}

/* Shows all groups of the table to the sink, if it wants to see them. */
static void
show_groups(CpuEngine *engine, GroupSink *sink)
{
	uint32 n = sink->groups ? engine->table->ngroups : 0;

	for (uint32 from = 0; from < n; from += engine->groups.ngroups)
	{
		CHECK_FOR_INTERRUPTS();
		cpu_emit(engine, from, n);
		sink->groups(sink->groups_arg, &engine->groups);
	}
}

/* Writes all groups to the sink. Afterwards, only the engine's statistics may be used. */
static EngineStatus
cpu_export_groups(Engine *base, GroupSink *sink)
{
	CpuEngine *engine = (CpuEngine *) base;
	GroupTable *table = engine->table;

	cpu_merge_imported(engine);
	/* a group's part is chosen by a hash of its table row, which groups in bits do not have */
	if (sink->part && engine->bits)
		cpu_leave_bits(engine, "groups are exchanged");
	engine->finished = true;
	while (engine->bits)
	{
		CHECK_FOR_INTERRUPTS();
		engine->emitted += cpu_emit_bits(engine);
		if (engine->groups.ngroups == 0)
			free_bits(engine);
		write_groups(engine, sink, 0);
	}
	do
	{
		show_groups(engine, sink);
		if (!share_groups(engine, sink))
		{
			if (sink->part && cpu_exchanges_rows(engine))
				cpu_write_rows(engine, sink);
			else
				export_records(engine, sink);
		}
		engine->emitted += table->ngroups;
		engine->emit_pos = table->ngroups;
	} while (load_next_partition(engine));
	return ENGINE_OK;
}

/* ---- life --------------------------------------------------------------- */

static void
close_files(CpuEngine *engine)
{
	cpu_finish_partitions(engine);
	partition_list_clear(&engine->pending);
	partition_close(&engine->in);
}

static Engine *
cpu_open(const AggSpec *spec, const EngineEnv *env)
{
	MemoryContext cxt =
		AllocSetContextCreate(env->cxt, "gpuagg CPU engine", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(cxt);
	CpuEngine *engine = palloc0(sizeof(CpuEngine));
	int batch_rows = Max(env->batch_rows, 256);
	bool segmented = engine_returns_in_order(spec, &env->input);
	StrategyInput input = {.groups = env->est_groups, .rows = env->est_rows};
	TableMode mode = TABLE_HASH;

	if (spec->nkeys == 0)
		mode = TABLE_SINGLE;
	else if (segmented)
		mode = TABLE_SEGMENTED;
	else if (spec->nkeys == 1 && spec->keys[0].kind == KEY_DATUM)
		mode = TABLE_DICTIONARY;
	engine->base.ops = &engine_cpu_ops;
	engine->spec = spec;
	engine->env = *env;
	engine->cxt = cxt;
	initStringInfo(&engine->record);
	engine->table = group_table_create(cxt, spec, mode, batch_rows);
	if (env->input.parallel)
		group_keys_set_seed(&engine->table->keys, hash_seed(env->seed[0], env->seed[1]));
	engine->slots = slots_create(spec, batch_rows);
	if (spec->nfallbacks > 0)
	{
		engine->fallbacks = fallbacks_create(spec, cxt, env->mem_limit, batch_rows);
		engine->table->init_row = fallbacks_init_row;
		engine->table->init_arg = engine->table;
	}
	cpu_choose_strategy(engine, &input);
	engine->chosen_from_data = mode != TABLE_HASH;
	cpu_start_early(engine);
	MemoryContextSwitchTo(old);
	return &engine->base;
}

/* Forgets all rows and groups, and chooses the strategy again by the planner's estimates. */
static void
cpu_reset(Engine *base)
{
	CpuEngine *engine = (CpuEngine *) base;
	StrategyInput input = {.groups = engine->env.est_groups, .rows = engine->env.est_rows};

	close_files(engine);
	free_bits(engine);
	cpu_forget_groups(engine);
	engine->closed = engine->as_bits = false;
	engine->base.errors = 0;
	engine->level = engine->unmeasured = 0;
	engine->finished = false;
	engine->emit_pos = engine->emit_end = 0;
	engine->emitted = engine->spilled_groups = 0;
	engine->scanned[0] = '\0';
	engine->batch_pos = engine->batch.nrows = 0;
	engine->nimported = 0;
	cpu_choose_strategy(engine, &input);
	engine->chosen_from_data = engine->table->mode != TABLE_HASH;
	cpu_start_early(engine);
}

/* Returns the number of groups so far: those returned and those left in the table. */
static uint64
groups_found(const CpuEngine *engine)
{
	const GroupTable *table = engine->table;

	if (table->mode == TABLE_SEGMENTED)
		return Max(engine->emitted, table->ngroups);
	if (engine->bits && !engine->finished)
		return group_bits_count(engine->bits);
	return engine->emitted + table->ngroups - Min(engine->emit_pos, table->ngroups);
}

/* Writes the strategy, its parameters and the reason for it to `text`, for EXPLAIN. */
static void
describe_strategy(const CpuEngine *engine, char *text, size_t size)
{
	GpuaggStrategy strategy = engine->strategy;
	int n;

	if (strategy == STRATEGY_DIRECT && engine->table->mode == TABLE_HASH && engine->level == 0 &&
		!engine->as_bits)
		strategy = STRATEGY_HASH;
	n = snprintf(text, size, "%s", strategy_name(strategy));
	if (strategy == STRATEGY_DIRECT)
		n += snprintf(text + n, size - n, ", " INT64_FORMAT " bins", engine->choice.bins);
	if (strategy == STRATEGY_DIRECT && engine->choice.bins != engine->chosen_bins)
		snprintf(text + n, size - n,
				 " (keys span more than the " INT64_FORMAT " values of the first batch)",
				 engine->chosen_bins);
	else
		snprintf(text + n, size - n, " (%s)",
				 strategy == engine->strategy ? engine->choice.reason : "keys outgrew direct bins");
}

static void
cpu_stats(Engine *base, EngineStats *stats)
{
	CpuEngine *engine = (CpuEngine *) base;
	const GroupTable *table = engine->table;

	memset(stats, 0, sizeof(*stats));
	stats->rows = engine->rows;
	stats->batches = engine->batches;
	stats->groups = Max(engine->spilled_groups, groups_found(engine));
	stats->early = engine->early_groups;
	stats->mem_peak = engine->mem_peak;
	stats->spilled_bytes = engine->spilled_bytes + (engine->out ? engine->out->bytes : 0);
	stats->spill_partitions = engine->spill_partitions;
	stats->changes = engine->changes + table->changes;
	if (engine->scanned[0] != '\0')
		strlcpy(stats->strategy, engine->scanned, sizeof(stats->strategy));
	else
		describe_strategy(engine, stats->strategy, sizeof(stats->strategy));
}

/*
 * Empties the engine, so that it can merge the groups of one part of an exchange (engine.h). Keeps
 * errors, and counts for EXPLAIN.
 */
static void
cpu_begin_part(Engine *base, uint32 groups)
{
	CpuEngine *engine = (CpuEngine *) base;
	int errors = base->errors;
	uint64 emitted = engine->emitted;
	EngineStats stats;

	/* EXPLAIN shows how the rows were reduced, not how parts are merged */
	cpu_stats(base, &stats);
	cpu_reset(base);
	engine->early_bound = 0;
	strlcpy(engine->scanned, stats.strategy, sizeof(engine->scanned));
	base->errors = errors;
	engine->emitted = emitted;
	if (engine->env.forced != STRATEGY_SORT)
		engine->strategy = STRATEGY_HASH;
	if (groups > 0)
	{
		cpu_budget(engine);
		if (engine->table->mode == TABLE_HASH)
			group_table_use_hash(engine->table, groups);
		group_table_reserve(engine->table, groups);
		group_keys_reserve(&engine->table->keys, Min(groups, engine->table->max_groups));
	}
}

static void
cpu_close(Engine *base)
{
	CpuEngine *engine = (CpuEngine *) base;

	close_files(engine);
	if (engine->fallbacks)
		fallbacks_end(engine->fallbacks);
	MemoryContextDelete(engine->cxt);
}

/* Returns the cost of reducing all rows: fallback aggregates, keys, slots, sorts and spilling. */
static Cost
cpu_cost(const EngineWork *work)
{
	return work->rows * (work->fallbacks + work->values * gpuagg_slot_cost) + work->local +
		work->read;
}

const EngineOps engine_cpu_ops = {
	.name = "cpu",
	.place = "the CPU",
	.keeps_order = true,
	.adds_in_order = true,
	.runs_fallbacks = true,
	.support = {.usual_scales = true},
	.cost = cpu_cost,
	.open = cpu_open,
	.bind_buffers = cpu_bind_buffers,
	.add_batch = cpu_add_batch,
	.finish = cpu_finish,
	.next_groups = cpu_next_groups,
	.export_groups = cpu_export_groups,
	.import_groups = cpu_import_groups,
	.import_rows = cpu_import_rows,
	.begin_part = cpu_begin_part,
	.reset = cpu_reset,
	.stats = cpu_stats,
	.close = cpu_close,
};
