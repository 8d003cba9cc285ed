/*
 * merge.c
 *	  Combines groups with the table's: groups of other participants, of the GPU server, and of
 *	  this engine's own files.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "engine_cpu/engine_cpu.h"
#include "engine_cpu/engine_cpu_internal.h"

/* Copies the keys of groups, beginning with number `from`, to engine->keys, as many as fit. */
static void
load_keys(CpuEngine *engine, const GroupBatch *groups, int from)
{
	const AggSpec *spec = engine->spec;
	Batch *keys = &engine->keys;

	keys->nrows = Min(keys->capacity, groups->ngroups - from);
	for (int k = 0; k < spec->nkeys; k++)
	{
		Column *col = &keys->cols[spec->keys[k].col];

		for (int i = 0; i < keys->nrows; i++)
		{
			column_store_bits(col, i, groups->keys[k][from + i]);
			if (groups->keynulls[k][from + i])
				bitmap_clear(col->validity, i);
			else
				bitmap_set(col->validity, i);
		}
	}
}

/*
 * Combines group g with the table row at `at`. `live`: transition values of type internal are in
 * memory, not serialized.
 */
static void
combine_group(CpuEngine *engine, const GroupBatch *groups, int g, uint32 at, bool live)
{
	const AggSpec *spec = engine->spec;
	GroupTable *table = engine->table;
	char *row = group_row_at(table, at);

	for (int o = 0; o < spec->nfallbacks; o++)
	{
		bool isnull = groups->fallback_nulls[o][g];
		Datum value = groups->fallbacks[o][g];

		if (spec->fallbacks[o].transtype == INTERNALOID && !isnull && !live)
			value = fallbacks_deserialize(engine->fallbacks, o, value);
		fallbacks_combine(engine->fallbacks, table, at, o, value, isnull);
		fallbacks_end_temp(engine->fallbacks);
	}
	for (int s = 0; s < spec->nslots; s++)
	{
		const SlotSpec *slot = &spec->slots[s];

		engine->base.errors |=
			loop_combine(slot->monoid, row + table->slot_off[s],
						 (const char *) groups->slots[s] + g * slot_bytes(slot), slot->width);
	}
}

/*
 * Writes group g to engine->record. `live`: transition values of type internal are in memory, and
 * are serialized.
 */
static void
write_group_record(CpuEngine *engine, const GroupBatch *groups, int g, bool live)
{
	const AggSpec *spec = engine->spec;
	Datum *values = palloc(sizeof(Datum) * (spec->nfallbacks + 1));

	for (int o = 0; o < spec->nfallbacks; o++)
	{
		values[o] = groups->fallbacks[o][g];
		if (live && spec->fallbacks[o].transtype == INTERNALOID && !groups->fallback_nulls[o][g])
			groups->fallbacks[o][g] = fallbacks_serialize(engine->fallbacks, o, values[o]);
	}
	group_record_write(&engine->record, spec, groups, g);
	for (int o = 0; o < spec->nfallbacks; o++)
		groups->fallbacks[o][g] = values[o];
	if (engine->fallbacks)
		fallbacks_end_temp(engine->fallbacks);
	pfree(values);
}

/* Writes group g to the partition of its key, which is row i of engine->keys. */
static void
spill_group(CpuEngine *engine, const GroupBatch *groups, int g, int i, bool live)
{
	write_group_record(engine, groups, g, live);
	partition_write_group(cpu_partitions(engine),
						  group_keys_spill_hash(&engine->table->keys, &engine->keys, i),
						  &engine->record);
}

/*
 * Combines the groups whose keys are in engine->keys and were located, beginning with number
 * `from`. The first `known` groups of the table existed before. Groups without room are spilled.
 */
static void
combine_located(CpuEngine *engine, const GroupBatch *groups, int from, uint32 known, bool live)
{
	GroupTable *table = engine->table;
	bool bounded = engine->fallbacks && table->mode != TABLE_SEGMENTED;
	uint32 next = known * table->row_cells;
	uint32 dropped_from = NO_GROUP; /* groups from here on were dropped */

	for (int i = 0; i < engine->keys.nrows; i++)
	{
		uint32 at = table->at[i];

		CHECK_FOR_INTERRUPTS();
		if (bounded && at != NO_GROUP && at >= next && at < dropped_from)
		{
			if (at > 0 && fallbacks_held(engine->fallbacks) > cpu_states_limit(engine))
			{
				group_table_truncate(table, at / table->row_cells, i);
				dropped_from = at;
			}
			next = at + table->row_cells;
		}
		if (at < dropped_from)
			combine_group(engine, groups, from + i, at, live);
		else
			spill_group(engine, groups, from + i, i, live);
	}
}

/*
 * Combines groups with the groups of the table. Groups without room go to partitions. `live`:
 * transition values of type internal are in memory, not serialized.
 */
static void
merge_groups(CpuEngine *engine, const GroupBatch *groups, bool live)
{
	GroupTable *table = engine->table;
	Batch *keys = &engine->keys;

	slots_combine(engine->slots, table);
	if (!keys->cols)
		cpu_make_key_batch(engine, keys);
	for (int from = 0; from < groups->ngroups; from += keys->nrows)
	{
		uint32 known = table->ngroups;

		CHECK_FOR_INTERRUPTS();
		load_keys(engine, groups, from);
		if (cpu_absorb_bits(engine, keys))
			continue;
		engine->unmeasured -= keys->nrows;
		if (engine->unmeasured < 0)
		{
			cpu_budget(engine);
			engine->unmeasured = engine->fallbacks ? cpu_fallback_rows(engine) : 0;
		}
		/* if rows went to partitions without a lookup, groups must go there, too */
		if (cpu_bypasses_table(engine))
			cpu_bypass(engine, keys);
		else
			group_table_locate(table, keys);
		combine_located(engine, groups, from, known, live);
	}
}

void
cpu_merge_groups(Engine *cpu, const GroupBatch *groups)
{
	merge_groups((CpuEngine *) cpu, groups, false);
}

void
cpu_combine_groups(Engine *cpu, const GroupBatch *groups)
{
	merge_groups((CpuEngine *) cpu, groups, true);
}

void
cpu_append_groups(Engine *cpu, const GroupBatch *groups, bool closed)
{
	CpuEngine *engine = (CpuEngine *) cpu;

	Assert(engine->table->mode == TABLE_SEGMENTED);
	cpu_carry_segment(engine);
	cpu_combine_groups(cpu, groups);
	engine->closed = closed;
	engine->emit_pos = 0;
	engine->emit_end = engine->table->ngroups - !closed;
}

/* Combines the groups that the reader has read with the table's, and clears the reader. */
static void
merge_reader_groups(CpuEngine *engine, GroupReader *reader)
{
	cpu_merge_groups(&engine->base, &reader->groups);
	group_reader_clear(reader);
}

/* Returns where the next row of another participant is collected. */
static char *
next_imported(CpuEngine *engine)
{
	size_t size = engine->table->row_size;

	if (engine->imported == NULL)
		engine->imported = (char *) TYPEALIGN(
			STATE_ALIGN,
			(uintptr_t) MemoryContextAlloc(engine->cxt, EXCHANGE_ROWS * size + STATE_ALIGN));
	return engine->imported + engine->nimported * size;
}

void
cpu_merge_imported(CpuEngine *engine)
{
	int n = engine->nimported;

	engine->nimported = 0;
	if (n > 0)
		cpu_merge_rows(engine, engine->imported, n);
}

/* Reads one row of another participant's table, and merges it with others when there are enough. */
static void
read_exchanged_row(CpuEngine *engine, GroupSource *source)
{
	if (!source->read(source, next_imported(engine), engine->table->row_size))
		elog(ERROR, "groups of another participant end within a row");
	if (++engine->nimported == EXCHANGE_ROWS)
		cpu_merge_imported(engine);
}

EngineStatus
cpu_import_groups(Engine *base, GroupSource *source)
{
	CpuEngine *engine = (CpuEngine *) base;
	GroupReader *reader = group_reader_create(engine->spec, engine->cxt);
	StringInfo record = &reader->record;
	uint32 len;

	cpu_merge_imported(engine);
	while (source->read(source, &len, sizeof(len)))
	{
		if (len & EXCHANGED_ROW)
		{
			read_exchanged_row(engine, source);
			continue;
		}
		resetStringInfo(record);
		enlargeStringInfo(record, len);
		if (!source->read(source, record->data, len))
			elog(ERROR, "groups of another participant end within a record");
		record->len = len;
		group_reader_add(reader);
		if (group_reader_full(reader))
			merge_reader_groups(engine, reader);
	}
	merge_reader_groups(engine, reader);
	cpu_merge_imported(engine);
	group_reader_free(reader);
	return ENGINE_OK;
}

/*
 * EngineOps.import_rows: merges many rows as they are. Few are collected, with those of the next
 * calls, unless they refer to values.
 */
EngineStatus
cpu_import_rows(Engine *base, int section, const char *rows, uint32 n)
{
	CpuEngine *engine = (CpuEngine *) base;
	size_t size = engine->table->row_size;
	uint32 from = 0;

	if (cpu_shares_values(engine))
	{
		cpu_merge_values(engine, rows, n);
		return ENGINE_OK;
	}
	for (; n - from >= EXCHANGE_ROWS; from += EXCHANGE_ROWS)
		cpu_merge_rows(engine, rows + from * size, EXCHANGE_ROWS);
	while (from < n)
	{
		int rest = Min(n - from, EXCHANGE_ROWS - engine->nimported);

		memcpy(next_imported(engine), rows + from * size, rest * size);
		from += rest;
		engine->nimported += rest;
		if (engine->nimported == EXCHANGE_ROWS)
			cpu_merge_imported(engine);
	}
	return ENGINE_OK;
}

void
cpu_read_groups(CpuEngine *engine, BufFile *file)
{
	GroupReader *reader = group_reader_create(engine->spec, engine->cxt);

	engine->unmeasured = 0;
	while (partition_read(file, &reader->record))
	{
		group_reader_add(reader);
		if (group_reader_full(reader))
			merge_reader_groups(engine, reader);
	}
	merge_reader_groups(engine, reader);
	group_reader_free(reader);
}
