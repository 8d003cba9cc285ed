/*
 * value_exchange.c
 *	  Values from one store to another, between participants of a parallel plan.
 *
 * An export has: the number of dictionary values, and these; arrays of codes, each with its group
 * and length, ended by NO_VALUE_GROUP; values from sorts, each with its group, ended by
 * NO_VALUE_GROUP.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "groups/spill.h"
#include "groups/value_store_internal.h"

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
export_sorted(ValueStore *store, GroupSink *sink)
{
	uint32 group;
	int64 n;
	Datum value;

	value_store_begin(store, store->sort_groups);
	while (value_store_next(store, &group, &n))
		while (read_value_to_export(store, &value))
		{
			sink->write(sink, &group, sizeof(group));
			write_value(sink, value);
		}
}

void
value_store_export(ValueStore *store, GroupSink *sink)
{
	uint32 n = store->dict && !store->sorting ? dictionary_size(store->dict) : 0;
	uint32 none = NO_VALUE_GROUP;
	uint32 zero = 0;
	uint32 group;
	uint64 codes[LAST_NODE];

	sink->write(sink, &n, sizeof(n));
	for (uint32 c = 0; c < n; c++)
	{
		bool isnull;
		Datum stored = dictionary_value(store->dict, c, &isnull);

		if (isnull)
			sink->write(sink, &zero, sizeof(zero));
		else
			write_value(sink, stored);
	}
	for (uint32 g = 0; g < store->ngroups; g++)
	{
		NodeScan scan = scan_nodes(&store->groups[g]);
		const uint64 *node;

		while ((n = next_node(&scan, &node)) > 0)
			write_codes(sink, g, node, n);
		CHECK_FOR_INTERRUPTS();
	}
	for (int p = 0; p < store->npartitions; p++)
	{
		partition_rewind(store->partitions[p].file);
		while (values_read_codes(store->partitions[p].file, &group, codes, &n))
			write_codes(sink, group, codes, n);
		CHECK_FOR_INTERRUPTS();
	}
	write_codes(sink, NO_VALUE_GROUP, codes, 0);
	if (store->sorting)
		export_sorted(store, sink);
	sink->write(sink, &none, sizeof(none));
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

/*
 * Reads the dictionary of an export. Returns its *n values, in the current context. Sets (*codes)[]
 * to their codes in this store's dictionary, which gets the new values; NO_CODE: it had no room.
 */
static Datum *
import_dictionary(ValueStore *store, GroupSource *source, uint32 *n, int32 **codes)
{
	Datum *values;

	read_bytes(source, n, sizeof(*n));
	values = palloc_extended((*n + 1) * sizeof(Datum), MCXT_ALLOC_HUGE);
	*codes = palloc_extended((*n + 1) * sizeof(int32), MCXT_ALLOC_HUGE);
	for (uint32 c = 0; c < *n; c++)
		values[c] = read_value(source);
	for (uint32 c = 0; c < *n; c += store->batch_rows)
	{
		int rows = (int) Min((uint32) store->batch_rows, *n - c);
		Column col = {.type = COLUMN_DATUM, .values = values + c};

		CHECK_FOR_INTERRUPTS();
		col.validity = palloc0(BITMAP_WORDS(rows) * sizeof(uint64));
		for (int i = 0; i < rows; i++)
			if (DatumGetPointer(values[c + i]) != NULL)
				bitmap_set(col.validity, i);
		dictionary_lookup(store->dict, &col, rows, PG_INT32_MAX, store->mem_limit / 2, *codes + c,
						  store->dict_hashes);
	}
	return values;
}

void
value_store_import(ValueStore *store, GroupSource *source, const uint32 *groups, uint32 ngroups,
				   ValueRejected reject, void *arg)
{
	MemoryContext cxt =
		AllocSetContextCreate(store->parent, "gpuagg imported values", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(cxt);
	int32 *codes = NULL;
	uint32 ndict;
	Datum *values = import_dictionary(store, source, &ndict, &codes);
	uint64 from[LAST_NODE];
	uint32 run[2];
	uint32 group;

	for (;;)
	{
		uint32 to;

		CHECK_FOR_INTERRUPTS();
		read_bytes(source, run, sizeof(run));
		if (run[0] == NO_VALUE_GROUP)
			break;
		read_bytes(source, from, run[1] * sizeof(uint64));
		to = groups[run[0]];
		if (to != NO_VALUE_GROUP)
			values_make_room(store, to + 1);
		for (uint32 i = 0; i < run[1]; i++)
		{
			bool datum = !store->spec->coded;

			if (to == NO_VALUE_GROUP || (datum && (store->sorting || codes[from[i]] == NO_CODE)))
				reject(arg, run[0],
					   datum ? values_unwrap(store, values[from[i]]) :
							   values_decode(store, from[i]));
			else
			{
				/* `reject` may have moved the lists to files */
				values_reserve_groups(store, to + 1);
				append_code(store, to, datum ? (uint64) codes[from[i]] : from[i]);
			}
		}
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
