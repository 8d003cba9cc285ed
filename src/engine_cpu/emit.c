/*
 * emit.c
 *	  Groups of the table as arrays and as records.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "columns/column_value.h"
#include "engine_cpu/engine_cpu_internal.h"

/* Most groups that are returned at a time, and the bytes of their states. */
#define OUT_GROUPS 1024
#define OUT_BYTES (1024 * 1024)

/* Allocates engine->groups. */
static void
allocate_output(CpuEngine *engine)
{
	MemoryContext old = MemoryContextSwitchTo(engine->cxt);

	engine->out_capacity = Max(1, Min(OUT_GROUPS, OUT_BYTES / engine->table->row_size));
	if (group_bits_possible(engine->spec))
		engine->out_capacity = engine->table->batch_rows;
	/* the states of a single group are read from the table */
	group_batch_init(&engine->groups, engine->spec, engine->out_capacity, engine->out_capacity > 1);
	engine->key_codes = palloc0(Max(engine->spec->nkeys, 1) * sizeof(uint32 *));
	engine->groups.key_codes = palloc0(Max(engine->spec->nkeys, 1) * sizeof(KeyCodes));
	for (int k = 0; k < engine->spec->nkeys; k++)
		if (engine->spec->keys[k].kind == KEY_DATUM)
			engine->key_codes[k] = palloc(engine->out_capacity * sizeof(uint32));
	MemoryContextSwitchTo(old);
}

/* Sets the codes of a key in the groups from .. from + n - 1 of engine->groups, if it has codes. */
static void
emit_codes(CpuEngine *engine, int k, uint32 from, int n)
{
	const GroupTable *table = engine->table;
	KeyCodes *out = &engine->groups.key_codes[k];

	out->codes = NULL;
	if (engine->key_codes[k] &&
		group_key_codes(&table->keys, group_row(table, from), table->row_size, n, k,
						engine->key_codes[k], &out->ncodes, &out->dictionary))
		out->codes = engine->key_codes[k];
}

/* Copies the states of slot s in the groups from .. from + n - 1 to engine->groups. */
static void
copy_states(CpuEngine *engine, int s, uint32 from, int n)
{
	const GroupTable *table = engine->table;
	size_t size = slot_bytes(&engine->spec->slots[s]);
	const char *row = group_row(table, from) + table->slot_off[s];
	char *to = engine->groups.slots[s];

	if (size == 8)
		for (int g = 0; g < n; g++, row += table->row_size)
			((uint64 *) to)[g] = *(const uint64 *) row;
	else
		for (int g = 0; g < n; g++, row += table->row_size)
			memcpy(to + g * size, row, size);
}

int
cpu_emit(CpuEngine *engine, uint32 from, uint32 end)
{
	const AggSpec *spec = engine->spec;
	GroupTable *table = engine->table;
	GroupBatch *out = &engine->groups;
	int n;

	if (engine->out_capacity == 0)
		allocate_output(engine);
	n = Min(engine->out_capacity, end - from);
	out->ngroups = n;
	slots_complete(engine->slots, table, from, from + n);
	for (int k = 0; k < spec->nkeys; k++)
	{
		group_key_datums(&table->keys, group_row(table, from), table->row_size, n, k, out->keys[k],
						 out->keynulls[k]);
		emit_codes(engine, k, from, n);
	}
	for (int o = 0; o < spec->nfallbacks; o++)
		fallbacks_read(engine->fallbacks, o, table, from, n, out->fallbacks[o],
					   out->fallback_nulls[o]);
	for (int s = 0; s < spec->nslots; s++)
	{
		if (engine->out_capacity == 1)
			out->slots[s] = group_row(table, from) + table->slot_off[s];
		else
			copy_states(engine, s, from, n);
	}
	return n;
}

int
cpu_emit_bits(CpuEngine *engine)
{
	const AggSpec *spec = engine->spec;
	GroupBatch *out = &engine->groups;
	const Batch *batch = group_bits_next(engine->bits);

	if (engine->out_capacity == 0)
		allocate_output(engine);
	out->ngroups = batch ? batch->nrows : 0;
	for (int k = 0; k < spec->nkeys; k++)
	{
		const Column *col = batch ? &batch->cols[spec->keys[k].col] : NULL;

		for (int g = 0; g < out->ngroups; g++)
		{
			out->keynulls[k][g] = column_is_null(col, g);
			out->keys[k][g] = column_datum(col->type, 0, col->values, g);
		}
	}
	return out->ngroups;
}

void
cpu_write_group(CpuEngine *engine, int g)
{
	const AggSpec *spec = engine->spec;
	GroupBatch *groups = &engine->groups;

	CHECK_FOR_INTERRUPTS();
	for (int o = 0; o < spec->nfallbacks; o++)
		if (spec->fallbacks[o].transtype == INTERNALOID && !groups->fallback_nulls[o][g])
			groups->fallbacks[o][g] =
				fallbacks_serialize(engine->fallbacks, o, groups->fallbacks[o][g]);
	group_record_write(&engine->record, spec, groups, g);
	if (engine->fallbacks)
		fallbacks_end_temp(engine->fallbacks);
}
