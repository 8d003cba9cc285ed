/*
 * merge.c
 *	  Groups as records: between participants of a parallel plan, and in
 *	  temporary files.
 *
 * A record is the keys as SQL values, then the own transition states
 * (serialized if internal), then the bytes of all slot states.  A stream of
 * records between participants has each record's length before it.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "engine_cpu/engine_cpu.h"

/* Records taken in at a time. */
#define IMPORT_GROUPS 256

/* ---- out ---------------------------------------------------------------- */

static void
put_key(CpuEngine *engine, StringInfo record, const char *row, int k)
{
	const KeySpec *key = &engine->spec->keys[k];
	const ColumnSpec *col = &engine->spec->cols[key->col];
	bool		isnull;
	uint64		bits;

	if (key->kind == KEY_DATUM)
	{
		Datum		value = group_key_datum(engine->table, row, k, &isnull);

		appendStringInfoCharMacro(record, isnull);
		if (!isnull)
			put_datum(record, value, col->typbyval, col->typlen);
		return;
	}
	bits = group_key_value(engine->table, row, k, &isnull);
	appendStringInfoCharMacro(record, isnull);
	appendBinaryStringInfo(record, (const char *) &bits, sizeof(bits));
}

static void
put_fallback(CpuEngine *engine, StringInfo record, char *row, int o)
{
	const FallbackAgg *fallback = &engine->spec->fallbacks[o];
	const FallbackState *state = &group_fallbacks(engine->table, row)[o];

	appendStringInfoCharMacro(record, state->isnull);
	if (state->isnull)
		return;
	if (fallback->transtype == INTERNALOID)
	{
		put_datum(record, fallbacks_serialize(engine->fallbacks, o, state->value), false, -1);
		fallbacks_end_temp(engine->fallbacks);
	}
	else
		put_datum(record, state->value, fallback->transbyval, fallback->translen);
}

/* Bytes of all slot states in a record, which must be one piece of memory. */
int
cpu_record_states(const GroupTable *table)
{
	size_t		bytes = table->row_size - table->state_off;

	if (bytes > MaxAllocSize / 2)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("states of one group need %zu bytes", bytes),
				 errdetail("At most %zu bytes can be merged.", (size_t) MaxAllocSize / 2)));
	return (int) bytes;
}

/* engine->record: the row. */
static void
encode_group(CpuEngine *engine, char *row)
{
	StringInfo	record = &engine->record;
	const GroupTable *table = engine->table;

	resetStringInfo(record);
	for (int k = 0; k < engine->spec->nkeys; k++)
		put_key(engine, record, row, k);
	for (int o = 0; o < engine->spec->nfallbacks; o++)
		put_fallback(engine, record, row, o);
	appendBinaryStringInfo(record, row + table->state_off, cpu_record_states(table));
}

/* Hands all groups on; the engine is of no further use but for its statistics. */
EngineStatus
cpu_export_groups(Engine *base, GroupSink *sink)
{
	CpuEngine  *engine = (CpuEngine *) base;

	engine->finished = true;
	do
	{
		for (uint32 g = 0; g < engine->table->ngroups; g++)
		{
			uint32		len;

			if (g % IMPORT_GROUPS == 0)
				CHECK_FOR_INTERRUPTS();
			encode_group(engine, group_row(engine->table, g));
			len = engine->record.len;
			sink->write(sink, &len, sizeof(len));
			sink->write(sink, engine->record.data, len);
		}
		engine->emitted += engine->table->ngroups;
	} while (cpu_next_table(engine));
	return ENGINE_OK;
}

/* Moves all groups of the table to the partitions. */
void
cpu_spill_table(CpuEngine *engine)
{
	GroupTable *table = engine->table;

	for (uint32 g = 0; g < table->ngroups; g++)
	{
		char	   *row = group_row(table, g);

		if (g % IMPORT_GROUPS == 0)
			CHECK_FOR_INTERRUPTS();
		encode_group(engine, row);
		partition_write_state(cpu_partitions(engine), group_keys_row_hash(table, row),
							  &engine->record);
	}
	group_table_reset(table);
	if (engine->fallbacks)
		fallbacks_reset(engine->fallbacks);
}

/* ---- in ----------------------------------------------------------------- */

/* Records of one round, and the place of their states. */
typedef struct Intake
{
	int			n;
	size_t		bytes;			/* of these records */
	StringInfoData records[IMPORT_GROUPS];
	const char *rest[IMPORT_GROUPS];	/* after the keys */
	MemoryContext cxt;			/* Datums of keys */
	char	   *chunk;
	char	   *states;			/* of one slot, aligned as records are not */
} Intake;

static void
prepare_key_batch(CpuEngine *engine)
{
	const AggSpec *spec = engine->spec;
	Batch	   *keys = &engine->keys;
	MemoryContext old = MemoryContextSwitchTo(engine->cxt);

	keys->capacity = Min(IMPORT_GROUPS, engine->table->batch_rows);
	keys->ncols = spec->ncols;
	keys->cols = palloc0(Max(spec->ncols, 1) * sizeof(Column));
	for (int k = 0; k < spec->nkeys; k++)
	{
		Column	   *col = &keys->cols[spec->keys[k].col];

		col->type = spec->cols[spec->keys[k].col].type;
		col->values = palloc(IMPORT_GROUPS * sizeof(uint64));
		col->validity = palloc(BITMAP_WORDS(IMPORT_GROUPS) * sizeof(uint64));
	}
	MemoryContextSwitchTo(old);
}

/* Little-endian or not, a field narrower than its word is converted by value. */
static void
store_bits(const Column *col, int i, uint64 bits)
{
	switch (column_width(col->type))
	{
		case 1:
			((uint8 *) col->values)[i] = (uint8) bits;
			break;
		case 2:
			((uint16 *) col->values)[i] = (uint16) bits;
			break;
		case 4:
			((uint32 *) col->values)[i] = (uint32) bits;
			break;
		default:
			((uint64 *) col->values)[i] = bits;
	}
}

static void
take_keys(CpuEngine *engine, Intake *intake, int i)
{
	const AggSpec *spec = engine->spec;
	const char *pos = intake->records[i].data;

	for (int k = 0; k < spec->nkeys; k++)
	{
		const ColumnSpec *colspec = &spec->cols[spec->keys[k].col];
		Column	   *col = &engine->keys.cols[spec->keys[k].col];
		bool		isnull = *pos++;

		if (isnull)
			bitmap_clear(col->validity, i);
		else
			bitmap_set(col->validity, i);
		if (spec->keys[k].kind == KEY_DATUM)
		{
			if (!isnull)
				((Datum *) col->values)[i] = get_datum(&pos, colspec->typbyval, colspec->typlen);
		}
		else
		{
			uint64		bits;

			memcpy(&bits, pos, sizeof(bits));
			pos += sizeof(bits);
			store_bits(col, i, bits);
		}
	}
	intake->rest[i] = pos;
}

/* Combines record i with the row at `at`. */
static void
combine_record(CpuEngine *engine, Intake *intake, int i, uint32 at)
{
	const AggSpec *spec = engine->spec;
	GroupTable *table = engine->table;
	char	   *row = group_row_at(table, at);
	const char *pos = intake->rest[i];

	for (int o = 0; o < spec->nfallbacks; o++)
	{
		const FallbackAgg *fallback = &spec->fallbacks[o];
		bool		isnull = *pos++;
		Datum		value = (Datum) 0;

		if (!isnull)
		{
			MemoryContext old = MemoryContextSwitchTo(fallbacks_temp(engine->fallbacks));
			bool		internal = fallback->transtype == INTERNALOID;

			value = get_datum(&pos, !internal && fallback->transbyval, internal ? -1 : fallback->translen);
			MemoryContextSwitchTo(old);
			if (internal)
				value = fallbacks_deserialize(engine->fallbacks, o, value);
		}
		fallbacks_combine(engine->fallbacks, table, row, o, value, isnull);
		fallbacks_end_temp(engine->fallbacks);
	}
	for (int s = 0; s < spec->nslots; s++)
	{
		const SlotSpec *slot = &spec->slots[s];
		size_t		size = (size_t) slot->width * gpuagg_monoids[slot->monoid].state_size;
		size_t		off = table->slot_off[s];

		memcpy(intake->states, pos + (off - table->state_off), size);
		engine->base.errors |= loop_combine(slot->monoid, row + off, intake->states, slot->width);
	}
}

static void
take_in(CpuEngine *engine, Intake *intake)
{
	GroupTable *table = engine->table;
	Batch	   *keys = &engine->keys;
	MemoryContext old = MemoryContextSwitchTo(intake->cxt);

	CHECK_FOR_INTERRUPTS();
	keys->nrows = intake->n;
	for (int i = 0; i < intake->n; i++)
		take_keys(engine, intake, i);
	cpu_budget(engine);
	/* where rows were partitioned unseen, groups must follow them */
	if (cpu_bypasses_table(engine))
		cpu_bypass(engine, keys);
	else
		group_table_locate(table, keys);
	for (int i = 0; i < intake->n; i++)
	{
		if (table->at[i] != NO_GROUP)
			combine_record(engine, intake, i, table->at[i]);
		else
			partition_write_state(cpu_partitions(engine), group_keys_spill_hash(table, keys, i),
								  &intake->records[i]);
	}
	MemoryContextSwitchTo(old);
	MemoryContextReset(intake->cxt);
	/* long keys and states leave no long buffers behind */
	for (int i = 0; i < intake->n && intake->bytes >= BATCH_BYTES; i++)
	{
		pfree(intake->records[i].data);
		intake->records[i].data = NULL;
	}
	intake->n = 0;
	intake->bytes = 0;
}

static Intake *
intake_start(CpuEngine *engine)
{
	Intake	   *intake = MemoryContextAllocZero(engine->cxt, sizeof(Intake));

	if (!engine->keys.cols)
		prepare_key_batch(engine);
	intake->cxt = AllocSetContextCreate(engine->cxt, "gpuagg import", ALLOCSET_DEFAULT_SIZES);
	intake->chunk = MemoryContextAllocHuge(engine->cxt, engine->table->row_size + 16);
	intake->states = (char *) TYPEALIGN(16, (uintptr_t) intake->chunk);
	return intake;
}

/* The buffer of the next record; wide states and long values are taken in a few at a time. */
static StringInfo
intake_slot(CpuEngine *engine, Intake *intake)
{
	int			most = (1024 * 1024) / engine->table->row_size;
	StringInfo	record;

	if (intake->n > 0 && (intake->n >= Min(engine->keys.capacity, Max(most, 1)) ||
						  intake->bytes >= BATCH_BYTES))
		take_in(engine, intake);
	record = &intake->records[intake->n];
	if (!record->data)
	{
		MemoryContext old = MemoryContextSwitchTo(engine->cxt);

		initStringInfo(record);
		MemoryContextSwitchTo(old);
	}
	return record;
}

static void
intake_end(CpuEngine *engine, Intake *intake)
{
	if (intake->n > 0)
		take_in(engine, intake);
	for (int i = 0; i < IMPORT_GROUPS; i++)
		if (intake->records[i].data)
			pfree(intake->records[i].data);
	MemoryContextDelete(intake->cxt);
	pfree(intake->chunk);
	pfree(intake);
}

EngineStatus
cpu_import_groups(Engine *base, GroupSource *source)
{
	CpuEngine  *engine = (CpuEngine *) base;
	Intake	   *intake = intake_start(engine);
	uint32		len;

	while (source->read(source, &len, sizeof(len)))
	{
		StringInfo	record = intake_slot(engine, intake);

		resetStringInfo(record);
		enlargeStringInfo(record, len);
		if (!source->read(source, record->data, len))
			elog(ERROR, "groups of another participant end within a record");
		record->len = len;
		intake->bytes += len;
		intake->n++;
	}
	intake_end(engine, intake);
	return ENGINE_OK;
}

/* Takes in the states of a partition. */
void
cpu_read_states(CpuEngine *engine, BufFile *file)
{
	Intake	   *intake = intake_start(engine);
	StringInfo	record;

	while (partition_read(file, record = intake_slot(engine, intake)))
	{
		intake->bytes += record->len;
		intake->n++;
	}
	intake_end(engine, intake);
}
