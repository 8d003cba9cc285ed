/*
 * engine_cpu.c
 *	  The CPU engine: column at a time, within its memory, on one core.
 *
 * A batch's rows are located in the group table (group_table.c), then each
 * slot and each own transition runs over the batch.  When the memory is used
 * up, groups that are there go on, and rows of others are written to the files
 * of a partition set; at the end each partition is read into an emptied table,
 * with other hash bits at each level.  A table takes one group at least, so
 * that this ends.
 *
 * The first batch is hashed; what it shows decides between direct and hash,
 * and whether to partition from the start (sort).  The table leaves direct by
 * itself when keys outgrow a sensible range.
 *
 * Memory: a context below EngineEnv.cxt; files belong to the resource owner.
 */
#include "postgres.h"

#include <math.h>

#include "miscadmin.h"
#include "utils/memutils.h"

#include "engine_cpu/engine_cpu.h"
#include "settings.h"

/* The cache of a core, for strategy.c; typical of servers. */
#define L2_BYTES (1024 * 1024)

/* Rows of a batch of own transitions until the size of their states is known. */
#define FALLBACK_ROWS 64

/* Groups handed out at a time, and bytes of their states. */
#define OUT_GROUPS 1024
#define OUT_BYTES (1024 * 1024)

/* Memory of a file that is being written. */
#define FILE_BYTES BLCKSZ

/* ---- strategy ----------------------------------------------------------- */

static bool
keys_integer(const AggSpec *spec)
{
	for (int k = 0; k < spec->nkeys; k++)
		if (spec->keys[k].kind != KEY_RAW)
			return false;
	return spec->nkeys > 0;
}

static void
choose_strategy(CpuEngine *engine, StrategyInput *input)
{
	StrategyDevice device = {
		.l2_bytes = L2_BYTES,
		.memory_bytes = engine->env.mem_limit
	};

	input->forced = engine->env.forced;
	input->nkeys = engine->spec->nkeys;
	input->keys_integer = keys_integer(engine->spec);
	input->grouped = engine->table->mode == TABLE_SEGMENTED;
	input->ordered = engine->spec->ordered;
	input->state_bytes = engine->table->row_size - engine->table->state_off;
	input->key_bytes = engine->table->state_off;
	strategy_choose(&device, input, &engine->choice);
	engine->strategy = engine->choice.strategy;
}

/*
 * How many groups are there if d of n rows were distinct?  Solves
 * d = g (1 - exp(-n / g)), as if keys were drawn alike.
 */
static double
extrapolate_groups(double d, double n)
{
	double		lo = d,
				hi = d * n;

	if (d >= n)
		return hi;
	for (int i = 0; i < 60; i++)
	{
		double		g = sqrt(lo * hi);

		if (g * -expm1(-n / g) < d)
			lo = g;
		else
			hi = g;
	}
	return sqrt(lo * hi);
}

/* Bins that direct may use, now and as its range grows. */
static int64
most_bins(const CpuEngine *engine)
{
	double		bins = engine->env.mem_limit / 4.0 / sizeof(uint32);

	if (engine->env.forced != STRATEGY_DIRECT)
		bins = Min(bins, Max(65536.0, 16 * Max((double) engine->table->ngroups,
											   engine->choice.bins)));
	return (int64) Min(bins, 1 << 30);
}

/* After the first batch: what does the data say? */
static void
choose_from_data(CpuEngine *engine, const Batch *batch)
{
	GroupTable *table = engine->table;
	StrategyInput input = {0};
	GpuaggStrategy before = engine->strategy;

	engine->chosen_from_data = true;
	input.rows = Max(engine->env.est_rows, batch->nrows);
	input.groups = extrapolate_groups(table->ngroups, batch->nrows);
	if (table->ngroups * 2 > batch->nrows)
		input.groups = Max(Min(input.groups, engine->env.est_groups), table->ngroups);
	input.mean_run = table->mean_run;
	if (keys_integer(engine->spec))
	{
		double		range = 1;

		group_keys_ranges(table, batch, table->ranges);
		for (int k = 0; k < engine->spec->nkeys; k++)
			if (table->ranges[k].any)
				range *= (double) table->ranges[k].max - (double) table->ranges[k].min + 2;
		input.range_known = true;
		input.key_range = range;
	}
	choose_strategy(engine, &input);
	if (engine->strategy == STRATEGY_SORT && engine->env.forced != STRATEGY_SORT)
		engine->strategy = STRATEGY_HASH;	/* until memory is used up indeed */
	table->max_bins = most_bins(engine);
	if (engine->strategy == STRATEGY_DIRECT && !group_table_use_direct(table))
		engine->strategy = STRATEGY_HASH;
	if (engine->strategy == STRATEGY_HASH && table->mode == TABLE_HASH)
		group_table_use_hash(table, input.groups);
	if (engine->strategy != before && before != STRATEGY_AUTO)
		engine->changes++;
}

/*
 * Memory is used up and most rows find no group: looking them up is for
 * nothing, so the groups follow their rows to the partitions.
 */
static void
change_to_sort(CpuEngine *engine)
{
	if (engine->env.forced != STRATEGY_AUTO || engine->level > 0 || engine->table->nwords == 0 ||
		!fallbacks_spillable(engine->spec))
		return;
	cpu_spill_table(engine);
	engine->strategy = STRATEGY_SORT;
	snprintf(engine->choice.reason, sizeof(engine->choice.reason), "groups exceed the memory");
	engine->changes++;
}

/* ---- memory ------------------------------------------------------------- */

/* Partitions of a level; their buffers take a quarter of the memory at most. */
static int
partition_count(const CpuEngine *engine)
{
	size_t		most = Min(engine->env.mem_limit / 4 / FILE_BYTES, 256);

	return Min(Max(engine->choice.passes, 32), Max((int) most, 4));
}

/* How many groups may there be now? */
void
cpu_budget(CpuEngine *engine)
{
	GroupTable *table = engine->table;
	size_t		files = engine->out ? engine->out->nfiles * FILE_BYTES : 0;
	size_t		reserve = Max(files, (partition_count(engine) + 1) * FILE_BYTES);
	size_t		fallbacks = engine->fallbacks ? fallbacks_memory(engine->fallbacks) : 0;
	size_t		used = group_table_memory(table) + fallbacks + files;

	engine->mem_peak = Max(engine->mem_peak, used);
	if (table->mode == TABLE_DIRECT)
		engine->choice.bins = table->bins;
	if (table->mode == TABLE_SINGLE || table->mode == TABLE_SEGMENTED)
		return;
	group_table_budget(table, engine->env.mem_limit > reserve ? engine->env.mem_limit - reserve : 0,
					   table->ngroups > 0 ? fallbacks / (double) table->ngroups : 0);
	if (engine->chosen_from_data)
		table->max_bins = Max(table->max_bins, most_bins(engine));
}

/* The set that takes what has no place, made when first needed. */
PartitionSet *
cpu_partitions(CpuEngine *engine)
{
	if (!engine->out)
		engine->out = partition_set_create(engine->cxt, partition_count(engine), engine->level);
	return engine->out;
}

static void
spill_row(CpuEngine *engine, const Batch *batch, int i)
{
	spill_encode_row(&engine->record, engine->spec, batch, i);
	partition_write_row(cpu_partitions(engine), group_keys_spill_hash(engine->table, batch, i),
						&engine->record);
}

/* Do rows go to partitions without a look at the table? */
bool
cpu_bypasses_table(const CpuEngine *engine)
{
	return engine->strategy == STRATEGY_SORT && engine->level == 0;
}

/* Instead of locating rows: no row has a group, and their keys have hashes. */
void
cpu_bypass(CpuEngine *engine, const Batch *batch)
{
	GroupTable *table = engine->table;

	for (int k = 0; k < engine->spec->nkeys; k++)
		if (table->dicts[k])
			dictionary_hash_column(table->dicts[k], &batch->cols[engine->spec->keys[k].col],
								   batch->nrows, table->hashes[k]);
	memset(table->at, 0xff, batch->nrows * sizeof(uint32));
}

static void
spill_batch(CpuEngine *engine, const Batch *batch)
{
	CHECK_FOR_INTERRUPTS();
	cpu_bypass(engine, batch);
	for (int i = 0; i < batch->nrows; i++)
		spill_row(engine, batch, i);
}

static void
finish_partitions(CpuEngine *engine)
{
	PartitionSet *set = engine->out;

	if (!set)
		return;
	engine->out = NULL;
	engine->spilled_bytes += set->bytes;
	engine->spill_partitions += set->n;
	partition_set_finish(set, &engine->pending);
}

/* ---- rows in ------------------------------------------------------------ */

/* Part of a batch, from a multiple of 64 rows; *cols has room for its columns. */
static Batch
part_of_batch(const Batch *batch, Column *cols, int from, int n)
{
	Batch		part = *batch;

	for (int c = 0; c < batch->ncols; c++)
	{
		cols[c] = batch->cols[c];
		cols[c].values = (char *) cols[c].values + (size_t) from * column_width(cols[c].type);
		if (cols[c].validity)
			cols[c].validity += from / 64;
		if (cols[c].unrepresentable)
			cols[c].unrepresentable += from / 64;
		if (cols[c].unrepresentable_values)
			cols[c].unrepresentable_values += from;
	}
	part.cols = cols;
	part.nrows = n;
	return part;
}

static void
reduce(CpuEngine *engine, const Batch *batch)
{
	engine->base.errors |= slots_reduce(engine->slots, engine->table, batch);
	if (engine->fallbacks)
		fallbacks_advance(engine->fallbacks, engine->table, batch);
}

static void
absorb_part(CpuEngine *engine, const Batch *batch)
{
	GroupTable *table = engine->table;

	CHECK_FOR_INTERRUPTS();
	cpu_budget(engine);
	group_table_locate(table, batch);
	for (int i = 0; i < table->nmissing; i++)
		spill_row(engine, batch, table->missing[i]);
	reduce(engine, batch);
	if (!engine->chosen_from_data && (table->mode == TABLE_HASH || engine->env.forced))
		choose_from_data(engine, batch);
	else if (table->nmissing > batch->nrows - batch->nrows / 8)
		change_to_sort(engine);
}

/* Rows that may become groups before own states are measured again. */
static int
fallback_rows(const CpuEngine *engine)
{
	const GroupTable *table = engine->table;
	double		fallbacks = fallbacks_memory(engine->fallbacks);
	double		left = engine->env.mem_limit - fallbacks - group_table_memory(table);

	if (table->ngroups == 0 || left <= 0)
		return FALLBACK_ROWS;
	return (int) Max(Min(left / 4 / (fallbacks / table->ngroups + table->row_size), 1 << 20), FALLBACK_ROWS)
		/ 64 * 64;
}

/* Takes rows in, from the feed or from a partition. */
void
cpu_absorb(CpuEngine *engine, const Batch *batch)
{
	Column	   *cols;

	if (cpu_bypasses_table(engine))
	{
		spill_batch(engine, batch);
		return;
	}
	if (!engine->fallbacks || engine->table->mode == TABLE_SINGLE)
	{
		absorb_part(engine, batch);
		return;
	}
	cols = palloc(Max(batch->ncols, 1) * sizeof(Column));
	for (int from = 0; from < batch->nrows;)
	{
		int			n = Min(fallback_rows(engine), batch->nrows - from);
		Batch		part = part_of_batch(batch, cols, from, n);

		absorb_part(engine, &part);
		from += n;
		if (cpu_bypasses_table(engine) && from < batch->nrows)
		{
			part = part_of_batch(batch, cols, from, batch->nrows - from);
			spill_batch(engine, &part);
			break;
		}
	}
	pfree(cols);
}

/*
 * Grouped input: how many rows may become groups before these are handed out?
 * Their states shall fit the memory, and their offsets 32 bits; a multiple of 64.
 */
static int
segment_rows(const CpuEngine *engine)
{
	const GroupTable *table = engine->table;
	size_t		rows = engine->env.mem_limit / table->row_size;

	/* one group more is carried over from the rows before */
	rows = Min(rows, NO_GROUP / table->row_cells - 1);
	return Min(Max(rows, 64), 1 << 20) / 64 * 64;
}

/*
 * Grouped input: reduces the next rows of engine->batch; the groups but the
 * last are complete.  Wide states are made for a few rows at a time.
 */
static void
reduce_segments(CpuEngine *engine)
{
	GroupTable *table = engine->table;
	int			n = Min(segment_rows(engine), engine->batch.nrows - engine->batch_pos);
	Column	   *cols = palloc(Max(engine->batch.ncols, 1) * sizeof(Column));
	Batch		part = part_of_batch(&engine->batch, cols, engine->batch_pos, n);

	CHECK_FOR_INTERRUPTS();
	group_table_locate(table, &part);
	reduce(engine, &part);
	cpu_budget(engine);
	engine->batch_pos += n;
	engine->emit_pos = 0;
	engine->emit_end = table->ngroups - 1;
	pfree(cols);
}

/* The groups handed out are done with, the last one stays. */
static void
carry_segment(CpuEngine *engine)
{
	if (engine->table->ngroups > 1)
	{
		if (engine->fallbacks)
			fallbacks_carry_last(engine->fallbacks);
		group_table_carry_last(engine->table);
	}
	engine->emit_pos = engine->emit_end = 0;
}

static EngineStatus
cpu_add_batch(Engine *base, const Batch *batch)
{
	CpuEngine  *engine = (CpuEngine *) base;

	engine->rows += batch->nrows;
	engine->batches++;
	if (batch->nrows == 0)
		return ENGINE_OK;
	if (engine->table->mode == TABLE_SEGMENTED)
	{
		carry_segment(engine);
		engine->batch = *batch;
		engine->batch_pos = 0;
		reduce_segments(engine);
	}
	else
		cpu_absorb(engine, batch);
	return ENGINE_OK;
}

/* ---- groups out --------------------------------------------------------- */

static EngineStatus
cpu_finish(Engine *base)
{
	CpuEngine  *engine = (CpuEngine *) base;

	engine->finished = true;
	if (engine->spec->nkeys == 0 && engine->table->ngroups == 0)
		group_table_add(engine->table);
	finish_partitions(engine);
	cpu_budget(engine);
	if (engine->table->mode == TABLE_SEGMENTED)
		carry_segment(engine);
	engine->emit_pos = 0;
	engine->emit_end = engine->table->ngroups;
	return ENGINE_OK;
}

/* Fills the table from the next partition; false if there is none. */
bool
cpu_next_table(CpuEngine *engine)
{
	const Batch *batch;
	RowReader  *reader;

	finish_partitions(engine);
	if (!partition_list_pop(&engine->pending, &engine->in))
		return false;
	group_table_reset(engine->table);
	if (engine->fallbacks)
		fallbacks_reset(engine->fallbacks);
	engine->level = engine->in.level;
	if (engine->in.states)
		cpu_read_states(engine, engine->in.states);
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
	finish_partitions(engine);
	cpu_budget(engine);
	engine->emit_pos = 0;
	engine->emit_end = engine->table->ngroups;
	return true;
}

static void
make_output(CpuEngine *engine)
{
	const AggSpec *spec = engine->spec;
	GroupBatch *out = &engine->groups;
	MemoryContext old = MemoryContextSwitchTo(engine->cxt);
	int			n = Max(1, Min(OUT_GROUPS, OUT_BYTES / engine->table->row_size));

	engine->out_capacity = n;
	out->keys = palloc(Max(spec->nkeys, 1) * sizeof(Datum *));
	out->keynulls = palloc(Max(spec->nkeys, 1) * sizeof(bool *));
	for (int k = 0; k < spec->nkeys; k++)
	{
		out->keys[k] = palloc(n * sizeof(Datum));
		out->keynulls[k] = palloc(n * sizeof(bool));
	}
	out->fallbacks = palloc(Max(spec->nfallbacks, 1) * sizeof(Datum *));
	out->fallback_nulls = palloc(Max(spec->nfallbacks, 1) * sizeof(bool *));
	for (int o = 0; o < spec->nfallbacks; o++)
	{
		out->fallbacks[o] = palloc(n * sizeof(Datum));
		out->fallback_nulls[o] = palloc(n * sizeof(bool));
	}
	out->slots = palloc(Max(spec->nslots, 1) * sizeof(void *));
	engine->slot_out = palloc(Max(spec->nslots, 1) * sizeof(char *));
	for (int s = 0; s < spec->nslots; s++)
	{
		const SlotSpec *slot = &spec->slots[s];
		size_t		size = (size_t) slot->width * gpuagg_monoids[slot->monoid].state_size;
		/* one group's states are handed out where they are */
		char	   *states = n > 1 ? palloc(n * size + 16) : NULL;

		engine->slot_out[s] = (char *) TYPEALIGN(16, (uintptr_t) states);
	}
	MemoryContextSwitchTo(old);
}

static void
copy_states(CpuEngine *engine, int s, uint32 from, int n)
{
	const GroupTable *table = engine->table;
	const SlotSpec *slot = &engine->spec->slots[s];
	size_t		size = (size_t) slot->width * gpuagg_monoids[slot->monoid].state_size;
	const char *row = group_row(table, from) + table->slot_off[s];
	char	   *to = engine->slot_out[s];

	if (size == 8)
		for (int g = 0; g < n; g++, row += table->row_size)
			((uint64 *) to)[g] = *(const uint64 *) row;
	else
		for (int g = 0; g < n; g++, row += table->row_size)
			memcpy(to + g * size, row, size);
}

/* Hands out the next groups of the table. */
static void
emit_groups(CpuEngine *engine)
{
	const AggSpec *spec = engine->spec;
	GroupTable *table = engine->table;
	GroupBatch *out = &engine->groups;
	uint32		from = engine->emit_pos;
	int			n;

	if (engine->out_capacity == 0)
		make_output(engine);
	n = Min(engine->out_capacity, engine->emit_end - from);
	out->ngroups = n;
	for (int k = 0; k < spec->nkeys; k++)
		for (int g = 0; g < n; g++)
			out->keys[k][g] = group_key_datum(table, group_row(table, from + g), k,
											  &out->keynulls[k][g]);
	for (int o = 0; o < spec->nfallbacks; o++)
		for (int g = 0; g < n; g++)
		{
			const FallbackState *state = &group_fallbacks(table, group_row(table, from + g))[o];

			out->fallbacks[o][g] = state->value;
			out->fallback_nulls[o][g] = state->isnull;
		}
	for (int s = 0; s < spec->nslots; s++)
	{
		out->slots[s] = engine->slot_out[s];
		if (engine->out_capacity == 1)
			out->slots[s] = group_row(table, from) + table->slot_off[s];
		else
			copy_states(engine, s, from, n);
	}
	engine->emit_pos += n;
	engine->emitted += n;
}

static bool
cpu_next_groups(Engine *base, GroupBatch *out)
{
	CpuEngine  *engine = (CpuEngine *) base;

	while (engine->emit_pos >= engine->emit_end)
	{
		if (engine->finished)
		{
			if (!cpu_next_table(engine))
				return false;
		}
		else if (engine->table->mode == TABLE_SEGMENTED && engine->batch_pos < engine->batch.nrows)
		{
			carry_segment(engine);
			reduce_segments(engine);
		}
		else
			return false;
	}
	emit_groups(engine);
	*out = engine->groups;
	return true;
}

/* ---- life --------------------------------------------------------------- */

static void
close_files(CpuEngine *engine)
{
	finish_partitions(engine);
	partition_list_clear(&engine->pending);
	partition_close(&engine->in);
}

static Engine *
cpu_open(const AggSpec *spec, const EngineEnv *env)
{
	MemoryContext cxt = AllocSetContextCreate(env->cxt, "gpuagg CPU engine",
											  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(cxt);
	CpuEngine  *engine = palloc0(sizeof(CpuEngine));
	int			batch_rows = Max(env->batch_rows, 256);
	bool		segmented = env->grouped && !env->parallel && spec->nkeys > 0;
	StrategyInput input = {.groups = env->est_groups, .rows = env->est_rows};
	TableMode	mode = TABLE_HASH;

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
	engine->table = group_table_create(cxt, spec, mode, segmented, batch_rows);
	engine->slots = slots_create(spec, batch_rows);
	if (spec->nfallbacks > 0)
	{
		engine->fallbacks = fallbacks_create(spec, cxt);
		engine->table->init_row = fallbacks_init_row;
		engine->table->init_arg = engine->table;
	}
	choose_strategy(engine, &input);
	engine->chosen_from_data = mode != TABLE_HASH;
	MemoryContextSwitchTo(old);
	return &engine->base;
}

static void
cpu_reset(Engine *base)
{
	CpuEngine  *engine = (CpuEngine *) base;
	StrategyInput input = {.groups = engine->env.est_groups, .rows = engine->env.est_rows};

	close_files(engine);
	group_table_reset(engine->table);
	if (engine->fallbacks)
		fallbacks_reset(engine->fallbacks);
	engine->base.errors = 0;
	engine->level = 0;
	engine->finished = false;
	engine->emit_pos = engine->emit_end = 0;
	engine->batch_pos = engine->batch.nrows = 0;
	choose_strategy(engine, &input);
	engine->chosen_from_data = engine->table->mode != TABLE_HASH;
}

static void
cpu_stats(Engine *base, EngineStats *stats)
{
	CpuEngine  *engine = (CpuEngine *) base;
	const GroupTable *table = engine->table;
	GpuaggStrategy strategy = engine->strategy;
	int			n;

	memset(stats, 0, sizeof(*stats));
	stats->rows = engine->rows;
	stats->batches = engine->batches;
	stats->groups = Max(engine->emitted, table->ngroups);
	stats->mem_peak = engine->mem_peak;
	stats->spilled_bytes = engine->spilled_bytes;
	stats->spill_partitions = engine->spill_partitions;
	stats->changes = engine->changes + table->changes;
	if (strategy == STRATEGY_DIRECT && table->mode == TABLE_HASH && engine->level == 0)
		strategy = STRATEGY_HASH;
	n = snprintf(stats->strategy, sizeof(stats->strategy), "%s", strategy_name(strategy));
	if (strategy == STRATEGY_DIRECT)
		n += snprintf(stats->strategy + n, sizeof(stats->strategy) - n, ", " INT64_FORMAT " bins",
					  engine->choice.bins);
	snprintf(stats->strategy + n, sizeof(stats->strategy) - n, " (%s)",
			 strategy == engine->strategy ? engine->choice.reason : "keys outgrew direct bins");
}

static void
cpu_close(Engine *base)
{
	CpuEngine  *engine = (CpuEngine *) base;

	close_files(engine);
	if (engine->fallbacks)
		fallbacks_end(engine->fallbacks);
	MemoryContextDelete(engine->cxt);
}

static Cost
cpu_cost(const EngineWork *work)
{
	return work->rows * (work->fallbacks + work->values * gpuagg_slot_cost) + work->local;
}

const EngineOps engine_cpu_ops = {
	.name = "cpu",
	.place = "the CPU",
	.keeps_order = true,
	.adds_in_order = true,
	.runs_fallbacks = true,
	.cost = cpu_cost,
	.open = cpu_open,
	.add_batch = cpu_add_batch,
	.finish = cpu_finish,
	.next_groups = cpu_next_groups,
	.export_groups = cpu_export_groups,
	.import_groups = cpu_import_groups,
	.reset = cpu_reset,
	.stats = cpu_stats,
	.close = cpu_close
};
