/*
 * value_exchange.c
 *	  Values from one store to another, between participants of a parallel plan.
 *
 * A partition of an export has runs, ended by NO_VALUE_GROUP: codes, each run with its group and
 * length, and, marked by NEW_VALUES, values for the partition's dictionary. A value there gets the
 * next number, and is written before the first run that has this number as a code. In place of runs
 * there may be blocks of chunks (value_chunks.c). Then come single values, each with its group,
 * ended by NO_VALUE_GROUP.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "groups/spill.h"
#include "groups/value_store_internal.h"

/* In place of a group: values for the dictionary of the partition follow. */
#define NEW_VALUES (NO_VALUE_GROUP - 1)

/* Numbers of the store's dictionary values in the partition that is written. */
typedef struct ExportNumbers
{
	uint32 *number; /* [code] */
	uint32 *part;   /* [code] the partition for which that holds, plus 1 */
	uint32 n;       /* numbers given */
} ExportNumbers;

/* Writes a varlena: its length, then its bytes. */
static void
write_value(GroupSink *sink, Datum varlena)
{
	uint32 len = VARSIZE_ANY(DatumGetPointer(varlena));

	sink->write(sink, &len, sizeof(len));
	sink->write(sink, DatumGetPointer(varlena), len);
}

/* Writes n codes of a group: group, n, then the codes. */
static void
write_codes(GroupSink *sink, uint32 group, const uint64 *codes, uint32 n)
{
	uint32 run[2] = {group, n};

	sink->write(sink, run, sizeof(run));
	sink->write(sink, codes, n * sizeof(uint64));
}

/*
 * Writes at most LAST_NODE codes of the store's dictionary as numbers in the partition's. Writes
 * values first that have no number there.
 */
static void
write_numbers(ValueStore *store, GroupSink *sink, ExportNumbers *numbers,
			  const ExportGroups *groups, uint32 group, const uint64 *codes, uint32 n)
{
	uint32 part = groups->part_of[group] + 1;
	uint32 head[2] = {NEW_VALUES, 0};
	int32 fresh[LAST_NODE];
	uint64 out[LAST_NODE];

	if (numbers->part == NULL)
	{
		size_t size = (dictionary_size(store->dict) + 1) * sizeof(uint32);

		numbers->number = MemoryContextAllocHuge(store->cxt, size);
		numbers->part = MemoryContextAllocHuge(store->cxt, size);
		memset(numbers->part, 0, size);
	}
	for (uint32 i = 0; i < n; i++)
	{
		int32 code = (int32) codes[i];

		if (numbers->part[code] != part)
		{
			numbers->part[code] = part;
			numbers->number[code] = numbers->n++;
			fresh[head[1]++] = code;
		}
		out[i] = numbers->number[code];
	}
	if (head[1] > 0)
		sink->write(sink, head, sizeof(head));
	for (uint32 i = 0; i < head[1]; i++)
	{
		bool isnull;

		write_value(sink, dictionary_value(store->dict, fresh[i], &isnull));
	}
	write_codes(sink, groups->index_of[group], out, n);
}

/* Writes the codes of a group that are in memory; the sink is at its partition. */
static void
export_list(ValueStore *store, GroupSink *sink, const ExportGroups *groups, ExportNumbers *numbers,
			uint32 group)
{
	NodeScan scan = scan_nodes(&store->groups[group]);
	const uint64 *node;
	uint32 n;

	CHECK_FOR_INTERRUPTS();
	while ((n = next_node(&scan, &node)) > 0)
	{
		if (store->spec->coded)
			write_codes(sink, groups->index_of[group], node, n);
		else
			write_numbers(store, sink, numbers, groups, group, node, n);
	}
}

/*
 * Writes the codes that are in memory. A dictionary needs one partition after another; otherwise
 * the groups are written as they are in memory.
 */
static void
export_lists(ValueStore *store, GroupSink *sink, const ExportGroups *groups, ExportNumbers *numbers)
{
	for (uint32 g = 0; store->spec->coded && g < store->ngroups; g++)
	{
		export_part(sink, groups->part_of[g]);
		export_list(store, sink, groups, numbers, g);
	}
	for (int p = 0; !store->spec->coded && p < groups->nparts; p++)
	{
		export_part(sink, p);
		numbers->n = 0;
		for (uint32 i = groups->starts[p]; i < groups->starts[p + 1]; i++)
			if (groups->order[i] < store->ngroups)
				export_list(store, sink, groups, numbers, groups->order[i]);
	}
}

/*
 * Writes the codes that are in files, which have groups of all partitions. Codes of a dictionary
 * are written if `numbers` holds for all of them, because there is one partition; single values if
 * not `runs`.
 */
static void
export_files(ValueStore *store, GroupSink *sink, const ExportGroups *groups, ExportNumbers *numbers,
			 bool runs)
{
	bool numbered = store->spec->coded || groups->nparts == 1;
	uint64 codes[LAST_NODE];
	uint32 group;
	uint32 n;

	for (int p = 0; p < store->npartitions && runs == numbered; p++)
	{
		partition_rewind(store->partitions[p].file);
		while (values_read_codes(store->partitions[p].file, &group, codes, &n))
		{
			CHECK_FOR_INTERRUPTS();
			export_part(sink, groups->part_of[group]);
			if (store->spec->coded)
				write_codes(sink, groups->index_of[group], codes, n);
			else if (numbered)
				write_numbers(store, sink, numbers, groups, group, codes, n);
			for (uint32 i = 0; i < n && !numbered; i++)
			{
				bool isnull;

				sink->write(sink, &groups->index_of[group], sizeof(uint32));
				write_value(sink, dictionary_value(store->dict, (int32) codes[i], &isnull));
			}
		}
	}
}

/*
 * Reads the next value of the current group from its sort, wrapped if need be, into value_cxt;
 * false at the end.
 */
static bool
read_value_to_export(ValueStore *store, Datum *value)
{
	MemoryContext old;
	Datum abbreviated;
	bool found;

	CHECK_FOR_INTERRUPTS();
	MemoryContextReset(store->value_cxt);
	old = MemoryContextSwitchTo(store->value_cxt);
	found = values_read_sorted(store, value, &abbreviated);
	if (found && store->wraps)
		*value = values_wrap(store, palloc(WRAPPER_BYTES + values_wrapped_length(store, *value)),
							 *value);
	MemoryContextSwitchTo(old);
	return found;
}

/* Writes all values that are in sorts, group by group. */
static void
export_sorted(ValueStore *store, GroupSink *sink, const ExportGroups *groups)
{
	uint32 group;
	int64 n;
	Datum value;

	value_store_begin(store, store->sort_groups);
	while (value_store_next(store, &group, &n))
		while (read_value_to_export(store, &value))
		{
			export_part(sink, groups->part_of[group]);
			sink->write(sink, &groups->index_of[group], sizeof(uint32));
			write_value(sink, value);
		}
}

void
value_store_export(ValueStore *store, GroupSink *sink, const ExportGroups *groups)
{
	uint32 none[2] = {NO_VALUE_GROUP, 0};
	ExportNumbers numbers = {0};

	values_load_chunks(store);
	if (!values_export_chunks(store, sink, groups))
	{
		export_lists(store, sink, groups, &numbers);
		export_files(store, sink, groups, &numbers, true);
	}
	for (int p = 0; p < groups->nparts; p++)
	{
		export_part(sink, p);
		sink->write(sink, none, sizeof(none));
	}
	export_files(store, sink, groups, &numbers, false);
	if (store->sorting)
		export_sorted(store, sink, groups);
	for (int p = 0; p < groups->nparts; p++)
	{
		export_part(sink, p);
		sink->write(sink, none, sizeof(none[0]));
	}
	if (numbers.part)
	{
		pfree(numbers.number);
		pfree(numbers.part);
	}
}

/* Reads len bytes; raises an error if there are fewer. */
static void
read_bytes(GroupSource *source, void *data, size_t len)
{
	if (len > 0 && !source->read(source, data, len))
		elog(ERROR, "values of another participant end early");
}

/* Reads a varlena into the current context; returns 0 for a NULL (length 0). */
static Datum
read_value(GroupSource *source)
{
	uint32 len;
	char *value;

	read_bytes(source, &len, sizeof(len));
	if (len == 0)
		return (Datum) 0;
	value = palloc(len);
	read_bytes(source, value, len);
	return PointerGetDatum(value);
}

/* Leaves n chunks in the export, or reads their codes and appends them to the list of a group. */
static void
import_chunks(ValueStore *store, GroupSource *source, int n, uint32 group)
{
	ChunkHead *heads = palloc(n * sizeof(ChunkHead));
	uint64 codes[LAST_NODE];

	read_bytes(source, heads, n * sizeof(ChunkHead));
	if (values_import_chunks(store, source, heads, n))
		store->divided = true;
	else
		for (int c = 0; c < n; c++)
			for (int64 left = heads[c].n; left > 0;)
			{
				uint32 some = (uint32) Min(left, LAST_NODE);

				CHECK_FOR_INTERRUPTS();
				read_bytes(source, codes, some * sizeof(uint64));
				values_append_run(store, group, codes, some);
				left -= some;
			}
	pfree(heads);
}

/* The dictionary of a partition that is imported. */
typedef struct ImportedValues
{
	uint32 n;
	uint32 capacity;
	Datum *values; /* [number] */
	int32 *codes;  /* [number] code in this store's dictionary; NO_CODE: it had no room */
} ImportedValues;

/*
 * Reads n more values, in the current context, and adds those to the store's dictionary that are
 * new there.
 */
static void
import_dictionary(ValueStore *store, GroupSource *source, ImportedValues *dict, uint32 n)
{
	if (dict->n + n > dict->capacity)
	{
		dict->capacity = Max(2 * dict->capacity, dict->n + n);
		dict->values = dict->values ?
			repalloc_huge(dict->values, dict->capacity * sizeof(Datum)) :
			palloc_extended(dict->capacity * sizeof(Datum), MCXT_ALLOC_HUGE);
		dict->codes = dict->codes ?
			repalloc_huge(dict->codes, dict->capacity * sizeof(int32)) :
			palloc_extended(dict->capacity * sizeof(int32), MCXT_ALLOC_HUGE);
	}
	for (uint32 i = 0; i < n; i++)
	{
		dict->values[dict->n + i] = read_value(source);
		dict->codes[dict->n + i] = NO_CODE;
	}
	for (uint32 i = 0; i < n && !store->sorting; i += store->batch_rows)
	{
		Column col = {.type = COLUMN_DATUM, .values = dict->values + dict->n + i};

		CHECK_FOR_INTERRUPTS();
		dictionary_lookup(store->dict, &col, (int) Min((uint32) store->batch_rows, n - i),
						  PG_INT32_MAX, store->mem_limit / 2, dict->codes + dict->n + i,
						  store->dict_hashes);
	}
	dict->n += n;
}

/* Appends n codes of an imported dictionary to the list of a group, or rejects their values. */
static void
import_numbers(ValueStore *store, const ImportedValues *dict, const uint64 *numbers, uint32 n,
			   uint32 foreign, uint32 group, ValueRejected reject, void *arg)
{
	bool coded = group != NO_VALUE_GROUP && !store->sorting;
	uint64 codes[LAST_NODE];
	uint32 ncodes = 0;

	for (uint32 i = 0; i < n && coded; i++)
		if (dict->codes[numbers[i]] != NO_CODE)
			codes[ncodes++] = (uint64) dict->codes[numbers[i]];
	if (ncodes > 0)
		values_append_run(store, group, codes, ncodes);
	/* this may move all codes to sorts */
	for (uint32 i = 0; i < n; i++)
		if (!coded || dict->codes[numbers[i]] == NO_CODE)
			reject(arg, foreign, values_unwrap(store, dict->values[numbers[i]]));
}

void
value_store_import(ValueStore *store, GroupSource *source, const uint32 *groups, uint32 ngroups,
				   ValueRejected reject, void *arg)
{
	MemoryContext cxt =
		AllocSetContextCreate(store->parent, "gpuagg imported values", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(cxt);
	ImportedValues dict = {0};
	uint64 codes[LAST_NODE];
	uint32 run[2];
	uint32 group;

	for (;;)
	{
		uint32 to;

		CHECK_FOR_INTERRUPTS();
		read_bytes(source, run, sizeof(run));
		if (run[0] == NO_VALUE_GROUP)
			break;
		if (run[0] == NEW_VALUES)
		{
			import_dictionary(store, source, &dict, run[1]);
			continue;
		}
		if (run[0] == VALUE_CHUNKS)
		{
			/* only the one group of a query without keys is in chunks, and it always has room */
			import_chunks(store, source, (int) run[1], groups[0]);
			continue;
		}
		read_bytes(source, codes, run[1] * sizeof(uint64));
		to = groups[run[0]];
		if (!store->spec->coded)
			import_numbers(store, &dict, codes, run[1], run[0], to, reject, arg);
		else if (to != NO_VALUE_GROUP)
			values_append_run(store, to, codes, run[1]);
		else
			for (uint32 i = 0; i < run[1]; i++)
				reject(arg, run[0], values_decode(store, codes[i]));
	}
	for (;;)
	{
		Datum value;

		read_bytes(source, &group, sizeof(group));
		if (group == NO_VALUE_GROUP)
			break;
		value = read_value(source);
		reject(arg, group, values_unwrap(store, value));
		pfree(DatumGetPointer(value));
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(cxt);
}
