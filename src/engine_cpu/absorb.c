/*
 * absorb.c
 *	  Adds batches to the table of groups, within the memory limit.
 *
 * The rows of a batch are located in the table; then each slot and each fallback aggregate runs
 * over the batch. When the memory is used up, rows of groups in the table still update them, and
 * other rows are written to the files of a partition set.
 *
 * The first batch is always hashed. Its keys decide whether the table becomes TABLE_DIRECT, whether
 * groups become bits, and whether rows go to partitions from the start (STRATEGY_SORT). The table
 * changes from direct to hash by itself when the range of keys becomes too wide.
 */
#include "postgres.h"

#include <math.h>

#include "miscadmin.h"
#include "utils/memutils.h"

#include "engine_cpu/engine_cpu_internal.h"

/* The second-level cache of a core, for strategy.c; typical of servers. */
#define L2_BYTES (1024 * 1024)

/*
 * Where the groups do not fit into that cache, few rows are absorbed at a time. Their groups' table
 * rows stay in the first-level cache until the last slot has been reduced.
 */
#define L1_BYTES (48 * 1024)
#define MIN_RANGE 256

/*
 * Most rows that are absorbed at a time, which bounds the time between checks for interrupts; a
 * multiple of 64.
 */
#define MAX_RANGE 16384
/* The same with fallback aggregates, until the size of their states is known. */
#define FALLBACK_ROWS 64
/* If most of fewer rows have different keys, the planner's number of groups is used. */
#define TELLING_ROWS 1024

/* Limits of bins: in any case, and for each row so far. */
#define UNPROVEN_BINS (4.0 * 1024 * 1024)
#define BINS_PER_ROW 64

/* Groups with more bytes than this stay in the table when memory is used up. */
#define MOVED_BYTES ((size_t) 64 * 1024)

/*
 * Table rows are reserved for the expected groups, but in at most 1/RESERVED_SHARE of the memory.
 */
#define RESERVED_SHARE 4

/*
 * Bits that take as much memory as one group of the table, and a number of bits that is allowed in
 * any case.
 */
#define GROUP_BITS 256
#define FEW_BITS (512 * 1024)

/* Partitions of a level that are made in any case. */
#define LEAST_PARTITIONS 8

/* Buffer of a file that is being written. */
#define FILE_BYTES BLCKSZ

/* ---- strategy ----------------------------------------------------------- */

/* Returns whether there are keys, and all are integers. */
static bool
keys_are_integer(const AggSpec *spec)
{
	for (int k = 0; k < spec->nkeys; k++)
		if (spec->keys[k].kind != KEY_RAW)
			return false;
	return spec->nkeys > 0;
}

void
cpu_choose_strategy(CpuEngine *engine, StrategyInput *input)
{
	StrategyDevice device = {
		.l2_bytes = L2_BYTES,
		.memory_bytes = engine->env.mem_limit,
	};

	input->forced = engine->env.forced;
	input->nkeys = engine->spec->nkeys;
	input->keys_integer = keys_are_integer(engine->spec);
	input->grouped = engine->table->mode == TABLE_SEGMENTED;
	input->ordered = engine->spec->ordered;
	input->state_bytes = engine->table->row_size - engine->table->state_off;
	input->key_bytes = engine->table->state_off;
	strategy_choose(&device, input, &engine->choice);
	engine->strategy = engine->choice.strategy;
	engine->chosen_bins = engine->choice.bins;
}

/*
 * Returns the estimated number of all groups, g, if the first n rows had d distinct keys. Solves
 * d = g * (1 - exp(-n / g)), which assumes that all groups are equally frequent. The solution is
 * inexact, because each rescan computes it, perhaps for few rows.
 */
static double
extrapolate_groups(double d, double n)
{
	double lo = d, hi = d * n;

	if (d >= n)
		return hi;
	while (hi > lo * 1.001)
	{
		double g = sqrt(lo * hi);

		if (g * -expm1(-n / g) < d)
			lo = g;
		else
			hi = g;
	}
	return sqrt(lo * hi);
}

/*
 * Returns how many bins TABLE_DIRECT may have, now and when its range grows. The number of rows so
 * far limits it, too, because memory and estimates may be far too large.
 */
static int64
most_bins(const CpuEngine *engine)
{
	double bins = engine->env.mem_limit / 4.0 / sizeof(uint32);

	bins = Min(bins, Max(UNPROVEN_BINS, BINS_PER_ROW * (double) engine->located));
	if (engine->env.forced != STRATEGY_DIRECT)
		bins =
			Min(bins, Max(65536.0, 16 * Max((double) engine->table->ngroups, engine->choice.bins)));
	return (int64) Min(bins, 1 << 30);
}

/* ---- groups as bits ------------------------------------------------------ */

/*
 * Returns how many bits are allowed: as much memory as `groups` groups take in the table, but at
 * most three quarters of the memory.
 */
static uint64
most_bits(const CpuEngine *engine, double groups)
{
	double bits;

	groups = Min(groups, Max(GROUPS_UNPROVEN / 2, GROUPS_PER_GROUP * (double) engine->located));
	bits = Max(groups * GROUP_BITS, FEW_BITS);
	return (uint64) Min(Min(bits, engine->env.mem_limit * 0.75 * 8), PG_UINT32_MAX);
}

/* Records for EXPLAIN that groups are bits, how many bits, and their memory. */
static void
record_bits_choice(CpuEngine *engine)
{
	engine->mem_peak = Max(engine->mem_peak, group_bits_memory(engine->bits));
	engine->choice.bins = engine->chosen_bins = group_bits_possible_groups(engine->bits);
	snprintf(engine->choice.reason, sizeof(engine->choice.reason), "a bit for each group");
}

/*
 * Decides whether groups become bits, and moves them there if so; returns the decision. Called
 * after the first batch. `groups`: the number of groups that is expected.
 */
static bool
start_bits(CpuEngine *engine, const Batch *batch, double groups)
{
	if ((engine->env.forced != STRATEGY_AUTO && engine->env.forced != STRATEGY_DIRECT) ||
		engine->table->nmissing > 0 || engine->located != batch->nrows ||
		!group_bits_possible(engine->spec))
		return false;
	engine->bits = group_bits_create(engine->cxt, engine->spec, engine->table->keys.ranges,
									 most_bits(engine, groups), engine->table->batch_rows);
	if (engine->bits == NULL)
		return false;
	group_bits_add(engine->bits, batch);
	group_table_reset(engine->table);
	engine->strategy = STRATEGY_DIRECT;
	engine->as_bits = true;
	record_bits_choice(engine);
	return true;
}

void
cpu_leave_bits(CpuEngine *engine, const char *why)
{
	GroupBits *bits = engine->bits;
	const Batch *groups;

	engine->bits = NULL;
	engine->left_bits = bits;
	engine->as_bits = false;
	engine->strategy = STRATEGY_HASH;
	engine->changes++;
	snprintf(engine->choice.reason, sizeof(engine->choice.reason), "%s", why);
	while ((groups = group_bits_next(bits)) != NULL)
		cpu_absorb(engine, groups);
	engine->left_bits = NULL;
	group_bits_free(bits);
}

bool
cpu_absorb_bits(CpuEngine *engine, const Batch *batch)
{
	GroupBits *wide;

	if (engine->bits == NULL)
		return false;
	CHECK_FOR_INTERRUPTS();
	if (group_bits_add(engine->bits, batch))
		return true;
	wide = group_bits_widen(engine->bits, &engine->table->keys, batch,
							most_bits(engine, 2.0 * group_bits_count(engine->bits)));
	if (wide == NULL)
	{
		cpu_leave_bits(engine, "keys outgrew bits");
		return false;
	}
	engine->bits = wide;
	record_bits_choice(engine);
	return group_bits_add(engine->bits, batch);
}

void
cpu_reserve_groups(CpuEngine *engine, double groups)
{
	double most = engine->env.mem_limit / (double) RESERVED_SHARE / engine->table->row_size;

	group_table_reserve(engine->table, Min(groups * 1.125, most));
}

/*
 * Chooses the strategy again after the first batch, by its keys, and changes the table accordingly.
 * May also move the groups to bits.
 */
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
		input.groups = Max(batch->nrows < TELLING_ROWS ? Min(engine->env.est_groups, input.rows) :
														 Min(input.groups, engine->env.est_groups),
						   table->ngroups);
	input.mean_run = table->mean_run;
	if (keys_are_integer(engine->spec))
	{
		double range = 1;

		group_keys_ranges(&table->keys, batch, table->keys.ranges);
		for (int k = 0; k < engine->spec->nkeys; k++)
			if (table->keys.ranges[k].any)
				range *=
					(double) table->keys.ranges[k].max - (double) table->keys.ranges[k].min + 2;
		input.range_known = true;
		input.key_range = range;
	}
	if (start_bits(engine, batch,
				   Min(extrapolate_groups(table->ngroups, batch->nrows), input.rows)))
		return;
	cpu_choose_strategy(engine, &input);
	if (engine->strategy == STRATEGY_SORT && engine->env.forced != STRATEGY_SORT)
		engine->strategy = STRATEGY_HASH; /* not before memory is really used up */
	table->max_bins = most_bins(engine);
	if (engine->strategy == STRATEGY_DIRECT && !group_table_use_direct(table))
	{
		engine->strategy = STRATEGY_HASH;
		snprintf(engine->choice.reason, sizeof(engine->choice.reason),
				 "keys span too many values for few rows");
	}
	if (engine->strategy == STRATEGY_HASH && table->mode == TABLE_HASH)
	{
		input.groups = cpu_early_groups(engine, input.groups);
		group_table_use_hash(table, input.groups);
	}
	if (table->mode == TABLE_DIRECT || table->mode == TABLE_HASH)
		cpu_reserve_groups(engine, input.groups);
	if (engine->strategy != before && before != STRATEGY_AUTO)
		engine->changes++;
}

/* ---- memory ------------------------------------------------------------- */

/*
 * Returns the number of partitions of a level. Their buffers take at most a quarter of the memory,
 * if it is not small. A partition that is partitioned again needs only so many that each of them is
 * likely to fit into half of the memory.
 */
static int
partition_count(const CpuEngine *engine)
{
	int most = Max(Min(engine->env.mem_limit / 4 / FILE_BYTES, 256), LEAST_PARTITIONS);

	if (engine->level > 0)
		most = Min(most, Max(engine->in.bytes * 2 / engine->env.mem_limit, 2));
	return Min(Max(engine->choice.passes, 32), most);
}

void
cpu_budget(CpuEngine *engine)
{
	GroupTable *table = engine->table;
	size_t files = engine->out ? engine->out->nfiles * FILE_BYTES : 0;
	size_t bits = engine->left_bits ? group_bits_memory(engine->left_bits) : 0;
	/* grouped input needs no files */
	size_t spill = table->mode == TABLE_SEGMENTED ? 0 : (partition_count(engine) + 1) * FILE_BYTES;
	size_t reserve = Max(files, spill) + bits + cpu_early_bytes(engine);
	size_t fallbacks = engine->fallbacks ? fallbacks_memory(engine->fallbacks) : 0;
	size_t used = group_table_memory(table) + fallbacks + files + bits + cpu_early_bytes(engine);

	engine->mem_peak = Max(engine->mem_peak, used);
	/* memory contexts that states have of their own are measured only here */
	engine->reserved =
		reserve + (engine->fallbacks ? fallbacks - fallbacks_held(engine->fallbacks) : 0);
	if (table->mode == TABLE_DIRECT)
		engine->choice.bins = table->bins;
	if (table->mode == TABLE_SINGLE || table->mode == TABLE_SEGMENTED)
		return;
	group_table_budget(
		table,
		spill_memory(engine->env.mem_limit > reserve ? engine->env.mem_limit - reserve : 0,
					 group_keys_empty_memory(&table->keys) + table->bins * sizeof(uint32)),
		engine->fallbacks && table->ngroups > 0 ? fallbacks_group_bytes(engine->fallbacks, table) :
												  0);
	if (engine->chosen_from_data)
		table->max_bins = Max(table->max_bins, most_bins(engine));
}

size_t
cpu_states_limit(const CpuEngine *engine)
{
	size_t taken = engine->reserved + group_table_memory(engine->table);

	return spill_memory(engine->env.mem_limit > taken ? engine->env.mem_limit - taken : 0,
						fallbacks_empty_memory(engine->fallbacks));
}

PartitionSet *
cpu_partitions(CpuEngine *engine)
{
	if (!engine->out)
		engine->out = partition_set_create(engine->cxt, partition_count(engine), engine->level);
	return engine->out;
}

/* Writes row i of a batch to the partition that the hash of its keys selects. */
static void
spill_row(CpuEngine *engine, const Batch *batch, int i)
{
	CHECK_FOR_INTERRUPTS();
	row_record_write(&engine->record, engine->spec, batch, i);
	partition_write_row(cpu_partitions(engine),
						group_keys_spill_hash(&engine->table->keys, batch, i), &engine->record);
}

bool
cpu_bypasses_table(const CpuEngine *engine)
{
	return engine->strategy == STRATEGY_SORT && engine->level == 0;
}

void
cpu_bypass(CpuEngine *engine, const Batch *batch)
{
	GroupTable *table = engine->table;

	group_keys_hash_datums(&table->keys, batch);
	memset(table->at, 0xff, batch->nrows * sizeof(uint32));
}

/* Writes all rows of a batch to their partitions, without a lookup. */
static void
spill_batch(CpuEngine *engine, const Batch *batch)
{
	cpu_bypass(engine, batch);
	for (int i = 0; i < batch->nrows; i++)
		spill_row(engine, batch, i);
}

void
cpu_forget_groups(CpuEngine *engine)
{
	group_table_reset(engine->table);
	slots_reset(engine->slots);
	if (engine->fallbacks)
		fallbacks_reset(engine->fallbacks);
}

/* Moves all groups of the table to the partitions. */
static void
spill_table(CpuEngine *engine)
{
	GroupTable *table = engine->table;

	for (uint32 from = 0; from < table->ngroups; from += engine->groups.ngroups)
	{
		CHECK_FOR_INTERRUPTS();
		cpu_emit(engine, from, table->ngroups);
		for (int g = 0; g < engine->groups.ngroups; g++)
		{
			cpu_write_group(engine, g);
			partition_write_group(cpu_partitions(engine),
								  group_keys_row_hash(&table->keys, group_row(table, from + g)),
								  &engine->record);
		}
	}
	engine->spilled_groups += table->ngroups;
	cpu_forget_groups(engine);
}

/*
 * Called when memory is used up and most rows have no group in the table, so that locating them
 * gains nothing. Moves the groups to the partitions; later rows go there without a lookup. Does
 * nothing where groups are so large that writing one costs more than looking up many rows.
 */
static void
change_to_sort(CpuEngine *engine)
{
	GroupTable *table = engine->table;
	size_t states = engine->fallbacks ? fallbacks_held(engine->fallbacks) : 0;

	if (engine->env.forced != STRATEGY_AUTO || engine->level > 0 || table->keys.nwords == 0 ||
		!fallbacks_spillable(engine->spec) ||
		table->row_size + states / Max(table->ngroups, 1) > MOVED_BYTES)
		return;
	spill_table(engine);
	engine->strategy = STRATEGY_SORT;
	snprintf(engine->choice.reason, sizeof(engine->choice.reason), "groups exceed the memory");
	engine->changes++;
}

void
cpu_finish_partitions(CpuEngine *engine)
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

/*
 * Returns a bitmap of n bits that begins with bit `from` of another one. It is allocated if `from`
 * is not a multiple of 64.
 */
static uint64 *
range_of_bitmap(uint64 *bits, int from, int n)
{
	int shift = from % 64;
	int words = BITMAP_WORDS(n);
	int last = (from + n - 1) / 64;
	uint64 *range;

	if (bits == NULL || shift == 0)
		return bits ? bits + from / 64 : NULL;
	bits += from / 64;
	last -= from / 64;
	range = palloc(words * sizeof(uint64));
	for (int w = 0; w < words; w++)
		range[w] = bits[w] >> shift | (w < last ? bits[w + 1] << (64 - shift) : 0);
	return range;
}

/*
 * Returns the rows from .. from + n - 1 as a batch. It shares the memory of *batch, except for
 * bitmaps, which free_batch_range frees. The array `cols` receives its columns.
 */
static Batch
batch_range(const Batch *batch, Column *cols, int from, int n)
{
	Batch range = *batch;

	for (int c = 0; c < batch->ncols; c++)
	{
		cols[c] = batch->cols[c];
		cols[c].values = (char *) cols[c].values + (size_t) from * column_width(cols[c].type);
		if (cols[c].narrow)
			cols[c].narrow = (const char *) cols[c].narrow + (size_t) from * cols[c].narrow_width;
		cols[c].validity = range_of_bitmap(cols[c].validity, from, n);
		cols[c].unrepresentable = range_of_bitmap(cols[c].unrepresentable, from, n);
		if (cols[c].unrepresentable_values)
			cols[c].unrepresentable_values += from;
		if (cols[c].codes)
			cols[c].codes += from;
	}
	range.cols = cols;
	range.nrows = n;
	return range;
}

/* Frees the bitmaps that batch_range has allocated for a range that begins at row `from`. */
static void
free_batch_range(const Batch *range, int from)
{
	for (int c = 0; c < range->ncols && from % 64 != 0; c++)
	{
		if (range->cols[c].validity)
			pfree(range->cols[c].validity);
		if (range->cols[c].unrepresentable)
			pfree(range->cols[c].unrepresentable);
	}
}

/*
 * Reduces rows that are located; `known` groups existed before. If not all of their states fit into
 * memory, reduces only the first rows, drops the groups of the others, and shortens the batch.
 */
static void
reduce_located_rows(CpuEngine *engine, Batch *batch, uint32 known)
{
	GroupTable *table = engine->table;

	if (engine->fallbacks)
	{
		int n = fallbacks_advance(engine->fallbacks, table, batch, known, cpu_states_limit(engine));

		if (n < batch->nrows)
		{
			group_table_truncate(table, table->at[n] / table->row_cells, n);
			batch->nrows = n;
		}
	}
	engine->base.errors |= slots_reduce(engine->slots, table, batch);
}

/*
 * Adds the rows of a batch to the table, or to partitions if they have no room. May take only the
 * first rows; the table accepts no new groups then. Returns how many rows it took.
 */
static int
absorb_range(CpuEngine *engine, Batch *batch)
{
	GroupTable *table = engine->table;
	uint32 known = table->ngroups;

	CHECK_FOR_INTERRUPTS();
	/*
	 * if groups of other participants came before the first row, their keys may be outside of the
	 * batch's ranges
	 */
	engine->chosen_from_data |= known > 0;
	cpu_budget(engine);
	group_table_locate(table, batch);
	reduce_located_rows(engine, batch, known);
	engine->located += batch->nrows;
	for (int i = 0; i < table->nmissing; i++)
		spill_row(engine, batch, table->missing[i]);
	if (!engine->chosen_from_data && (table->mode == TABLE_HASH || engine->env.forced))
		choose_from_data(engine, batch);
	else if (table->nmissing > batch->nrows - batch->nrows / 8)
		change_to_sort(engine);
	return batch->nrows;
}

int
cpu_fallback_rows(const CpuEngine *engine)
{
	const GroupTable *table = engine->table;
	double left, rows;
	double group = fallbacks_known_bytes(engine->fallbacks);

	/* no row becomes a group any more */
	if (table->frozen || (table->mode == TABLE_SINGLE && table->ngroups > 0))
		return MAX_RANGE;
	left = (double) engine->env.mem_limit - fallbacks_memory(engine->fallbacks) -
		group_table_memory(table);
	if (table->ngroups > 0)
		group = fallbacks_group_bytes(engine->fallbacks, table);
	if ((table->ngroups == 0 && group == 0) || left <= 0)
		return FALLBACK_ROWS;
	rows = left / 4 / (group + table->row_size);
	return (int) Max(Min(rows, MAX_RANGE), FALLBACK_ROWS) / 64 * 64;
}

/* Returns how many rows cpu_absorb should take at a time. */
static int
rows_at_a_time(const CpuEngine *engine)
{
	const GroupTable *table = engine->table;
	int n = MAX_RANGE;

	if (engine->bits || cpu_bypasses_table(engine))
		return n;
	if (engine->fallbacks)
		n = cpu_fallback_rows(engine);
	if (engine->chosen_from_data && (size_t) table->ngroups * table->row_size > L2_BYTES / 2)
		n = Min(n, Max(L1_BYTES / table->row_size, MIN_RANGE) / 64 * 64);
	return n;
}

void
cpu_absorb(CpuEngine *engine, const Batch *batch)
{
	Column *cols = palloc(Max(batch->ncols, 1) * sizeof(Column));

	for (int from = 0; from < batch->nrows;)
	{
		int n = Min(rows_at_a_time(engine), batch->nrows - from);
		Batch range = batch_range(batch, cols, from, n);

		if (cpu_bypasses_table(engine))
			spill_batch(engine, &range);
		else if (!cpu_absorb_bits(engine, &range))
			n = absorb_range(engine, &range);
		free_batch_range(&range, from);
		from += n;
	}
	pfree(cols);
}

/*
 * Grouped input: returns how many rows may become groups before these are returned. Their states
 * must fit into memory, and their offsets into 32 bits.
 */
static int
segment_rows(const CpuEngine *engine)
{
	const GroupTable *table = engine->table;
	size_t rows = engine->env.mem_limit / table->row_size;

	/*
	 * states get as much memory as the table; rows that are not reduced would have to be located
	 * again
	 */
	if (engine->fallbacks)
		rows = Min(rows / 2, engine->segment_most > 0 ? engine->segment_most : MAX_RANGE);
	/* one more group is carried over from the rows before */
	rows = Min(rows, NO_GROUP / table->row_cells - 1);
	return Min(Max(rows, 1), MAX_RANGE);
}

void
cpu_reduce_segments(CpuEngine *engine)
{
	GroupTable *table = engine->table;
	int n = Min(segment_rows(engine), engine->batch.nrows - engine->batch_pos);
	Column *cols = palloc(Max(engine->batch.ncols, 1) * sizeof(Column));
	Batch range = batch_range(&engine->batch, cols, engine->batch_pos, n);
	uint32 known = table->ngroups;

	CHECK_FOR_INTERRUPTS();
	group_table_locate(table, &range);
	reduce_located_rows(engine, &range, known);
	cpu_budget(engine);
	engine->batch_pos += range.nrows;
	/* rows that were not reduced belong to other groups */
	engine->closed = range.nrows < n;
	if (engine->closed)
		engine->segment_most = Max(range.nrows, 1);
	else
		engine->segment_most = Min(engine->segment_most * 2, MAX_RANGE);
	engine->emit_pos = 0;
	engine->emit_end = table->ngroups - !engine->closed;
	free_batch_range(&range, engine->batch_pos - range.nrows);
	pfree(cols);
}

void
cpu_carry_segment(CpuEngine *engine)
{
	if (engine->closed)
	{
		cpu_forget_groups(engine);
		engine->closed = false;
	}
	else if (engine->table->ngroups > 1)
	{
		if (engine->fallbacks)
			fallbacks_carry_last(engine->fallbacks);
		group_table_carry_last(engine->table);
	}
	engine->emit_pos = engine->emit_end = 0;
}
