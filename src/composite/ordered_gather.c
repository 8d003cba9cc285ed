/*
 * ordered_gather.c
 *	  Gathers the values of ordered sets by group.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "composite/ordered_engine.h"

/* Most bins of a table in TABLE_DIRECT mode: an array over the range of integer keys. */
#define MAX_BINS (1024 * 1024)

/*
 * Makes the table an array if the keys are integers, and those of the first batch have a narrow
 * range.
 */
static void
choose_table_mode(OrderedSetEngine *engine, const Batch *batch)
{
	GroupTable *table = engine->table;

	engine->mode_chosen = true;
	if (table->mode != TABLE_HASH)
		return;
	for (int k = 0; k < engine->own.nkeys; k++)
		if (engine->own.keys[k].kind != KEY_RAW)
			return;
	group_keys_ranges(&table->keys, batch, table->keys.ranges);
	table->max_bins = Min(MAX_BINS, engine->composite.env.mem_limit / 8 / sizeof(uint32));
	if (!group_table_use_direct(table))
		for (int k = 0; k < engine->own.nkeys; k++)
			table->keys.ranges[k].any = false;
}

/*
 * Sets engine->numbers to the group numbers of the rows that the table has located; to
 * NO_VALUE_GROUP for groups without room.
 */
static void
number_groups(OrderedSetEngine *engine, int nrows)
{
	const GroupTable *table = engine->table;
	uint32 cells = table->row_cells;
	const uint32 *at = table->at;
	uint32 *numbers = engine->numbers;
	int shift = 0;

	while ((UINT32_C(1) << shift) < cells)
		shift++;
	if (table->mode == TABLE_SINGLE)
		memset(numbers, 0, nrows * sizeof(uint32));
	else if ((UINT32_C(1) << shift) == cells)
		for (int i = 0; i < nrows; i++)
			numbers[i] = at[i] >> shift;
	else
		for (int i = 0; i < nrows; i++)
			numbers[i] = at[i] / cells;
	for (int m = 0; m < table->nmissing; m++)
		numbers[table->missing[m]] = NO_VALUE_GROUP;
}

/* Writes the rows whose groups have no room in the table to partitions. */
static void
spill_missing(OrderedSetEngine *engine, const Batch *batch)
{
	GroupTable *table = engine->table;

	if (table->nmissing > 0 && engine->out == NULL)
		engine->out = partition_set_create(
			engine->composite.env.cxt,
			(int) Max(4, Min(32, engine->composite.env.mem_limit / 4 / BLCKSZ)), engine->level);
	for (int m = 0; m < table->nmissing; m++)
	{
		row_record_write(&engine->record, &engine->own, batch, table->missing[m]);
		partition_write_row(engine->out,
							group_keys_spill_hash(&table->keys, batch, table->missing[m]),
							&engine->record);
	}
}

void
ordered_gather(OrderedSetEngine *engine, const Batch *batch)
{
	GroupTable *table = engine->table;
	size_t used = group_table_memory(table);

	CHECK_FOR_INTERRUPTS();
	if (batch->nrows == 0)
		return;
	if (!engine->mode_chosen)
		choose_table_mode(engine, batch);
	group_table_budget(
		table,
		spill_memory(engine->composite.env.mem_limit,
					 group_keys_empty_memory(&table->keys) + table->bins * sizeof(uint32)),
		engine->composite.spec->nvalues * VALUE_GROUP_BYTES);
	group_table_locate(table, batch);
	number_groups(engine, batch->nrows);
	spill_missing(engine, batch);
	for (int v = 0; v < engine->composite.spec->nvalues; v++)
	{
		value_store_append(engine->stores[v], &batch->cols[engine->own.nkeys + v], engine->numbers,
						   batch->nrows, table->ngroups);
		used += value_store_memory(engine->stores[v]);
	}
	engine->mem_peak = Max(engine->mem_peak, used);
}

void
ordered_finish_partitions(OrderedSetEngine *engine)
{
	if (!engine->out)
		return;
	engine->spilled_bytes += engine->out->bytes;
	engine->spill_partitions += engine->out->n;
	partition_set_finish(engine->out, &engine->pending);
	engine->out = NULL;
}
