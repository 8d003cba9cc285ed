/*
 * merge.c
 *	  Groups of the GPU into a CPU engine, which combines them with others.
 *
 * The CPU engine imports records (engine_cpu/merge.c states their form); here
 * such records are made of the groups that the GPU server returned.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "lib/stringinfo.h"

#include "engine_cpu/engine_cpu.h"
#include "engine_cuda/engine_cuda.h"

typedef struct RecordSource
{
	GroupSource base;			/* must be first */
	const CpuEngine *cpu;
	const GroupBatch *groups;
	int			next;			/* group */
	StringInfoData record;		/* length and content of the current one */
	int			pos;
} RecordSource;

static void
put_key(RecordSource *source, int k, int g)
{
	const AggSpec *spec = source->cpu->spec;
	const KeySpec *key = &spec->keys[k];
	const ColumnSpec *col = &spec->cols[key->col];
	StringInfo	record = &source->record;
	bool		isnull = source->groups->keynulls[k][g];
	Datum		value = source->groups->keys[k][g];
	uint64		bits = isnull ? 0 : (uint64) value;

	appendStringInfoCharMacro(record, isnull);
	if (key->kind != KEY_DATUM)
		appendBinaryStringInfo(record, (const char *) &bits, sizeof(bits));
	else if (!isnull)
		put_datum(record, value, col->typbyval, col->typlen);
}

/* Fallback aggregates have not run, so their states are the initial ones. */
static void
put_fallback(RecordSource *source, int o, int g)
{
	const FallbackAgg *fallback = &source->cpu->spec->fallbacks[o];
	bool		isnull = source->groups->fallback_nulls[o][g] || fallback->transtype == INTERNALOID;

	appendStringInfoCharMacro(&source->record, isnull);
	if (!isnull)
		put_datum(&source->record, source->groups->fallbacks[o][g], fallback->transbyval, fallback->translen);
}

static void
encode_group(RecordSource *source, int g)
{
	const GroupTable *table = source->cpu->table;
	const AggSpec *spec = source->cpu->spec;
	StringInfo	record = &source->record;
	int			width = cpu_record_states(table);
	char	   *states;
	uint32		len = 0;

	resetStringInfo(record);
	appendBinaryStringInfo(record, (const char *) &len, sizeof(len));
	for (int k = 0; k < spec->nkeys; k++)
		put_key(source, k, g);
	for (int o = 0; o < spec->nfallbacks; o++)
		put_fallback(source, o, g);
	enlargeStringInfo(record, width);
	states = record->data + record->len;
	memset(states, 0, width);
	for (int s = 0; s < spec->nslots; s++)
	{
		size_t		size = (size_t) spec->slots[s].width *
			gpuagg_monoids[spec->slots[s].monoid].state_size;

		memcpy(states + table->slot_off[s] - table->state_off,
			   (const char *) source->groups->slots[s] + g * size, size);
	}
	record->len += width;
	len = record->len - sizeof(len);
	memcpy(record->data, &len, sizeof(len));
	source->pos = 0;
}

static bool
read_record(GroupSource *base, void *data, size_t len)
{
	RecordSource *source = (RecordSource *) base;

	if (source->pos == source->record.len)
	{
		if (source->next == source->groups->ngroups)
			return false;
		encode_group(source, source->next++);
	}
	Assert(len <= source->record.len - source->pos);
	memcpy(data, source->record.data + source->pos, len);
	source->pos += len;
	return true;
}

EngineStatus
cuda_merge_groups(Engine *cpu, const GroupBatch *groups)
{
	RecordSource source = {{read_record}, (CpuEngine *) cpu, groups};
	EngineStatus status;

	initStringInfo(&source.record);
	status = engine_cpu_ops.import_groups(cpu, &source.base);
	pfree(source.record.data);
	return status;
}
