/*
 * ordered_exchange.c
 *	  Exports and imports groups and values of ordered sets in a parallel plan.
 *
 * An export consists of
 *
 *		the export of the inner engine
 *		the number of groups, and a record for each with its keys
 *		the values of each store, by group number
 *		records of rows in partitions, and a record length of 0
 *
 * A record is its length as a uint32, then as many bytes (groups/record.h).
 *
 * A partitioned export has two sections: what the inner engine exports, and in each partition the
 * rest of the above.  Participants of a parallel plan who merge a partition have all values of its
 * groups, and find the results of these groups.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/datum.h"
#include "utils/memutils.h"

#include "composite/ordered_engine.h"

/* Writes a record to an export. */
static void
write_record(GroupSink *sink, const StringInfo record)
{
	uint32 len = record->len;

	sink->write(sink, &len, sizeof(len));
	sink->write(sink, record->data, len);
}

/*
 * Reads the next record of an export; returns false at a record length of 0.  Raises an error if
 * the export ends early.
 */
static bool
read_record(GroupSource *source, StringInfo record)
{
	uint32 len;

	if (!source->read(source, &len, sizeof(len)))
		elog(ERROR, "groups of another participant end early");
	if (len == 0)
		return false;
	resetStringInfo(record);
	enlargeStringInfo(record, len);
	if (!source->read(source, record->data, len))
		elog(ERROR, "groups of another participant end early");
	record->len = len;
	return true;
}

/* Adds the rows that were built to the groups here, and begins the next batch. */
static void
flush_builder(OrderedSetEngine *engine)
{
	ordered_gather(engine, &engine->builder.batch);
	row_builder_begin(&engine->builder);
}

/* Adds a row with these keys, and with a value in the column of store v only. */
static void
build_row(OrderedSetEngine *engine, const Datum *keys, const bool *nulls, int v, Datum value)
{
	RowBuilder *builder = &engine->builder;
	int row = builder->batch.nrows++;
	int nkeys = engine->own.nkeys;

	for (int k = 0; k < nkeys; k++)
		row_builder_write(builder, k, row, keys[k], nulls[k]);
	for (int s = 0; s < engine->composite.spec->nvalues; s++)
		row_builder_write(builder, nkeys + s, row, value, s != v);
}

/* The groups of another participant, whose export is imported. */
typedef struct ForeignGroups
{
	OrderedSetEngine *engine;
	int store; /* the one that imports values */
	uint32 ngroups;
	uint32 *numbers; /* [foreign group] group number here, or NO_VALUE_GROUP */
	Datum *keys;     /* [foreign group * nkeys + key] */
	bool *nulls;
} ForeignGroups;

/* Divides the groups among the partitions of an export, in the current memory context. */
static ExportGroups
divide_groups(const OrderedSetEngine *engine, const GroupSink *sink)
{
	const GroupTable *table = engine->table;
	uint32 n = table->ngroups;
	/* without keys there is one group, and only its partition may be written to */
	ExportGroups groups = {.nparts = sink->part && engine->own.nkeys > 0 ? sink->nparts : 1};
	uint32 *next = palloc0((groups.nparts + 1) * sizeof(uint32));

	groups.starts = palloc0((groups.nparts + 1) * sizeof(uint32));
	groups.order = palloc_extended((n + 1) * sizeof(uint32), MCXT_ALLOC_HUGE);
	groups.index_of = palloc_extended((n + 1) * sizeof(uint32), MCXT_ALLOC_HUGE);
	groups.part_of = palloc_extended((n + 1) * sizeof(uint16), MCXT_ALLOC_HUGE);
	for (uint32 g = 0; g < n; g++)
	{
		uint32 part = 0;

		if (g % 1024 == 0)
			CHECK_FOR_INTERRUPTS();
		if (sink->part)
			part = group_part(sink, group_keys_row_hash(&table->keys, group_row(table, g)));
		groups.part_of[g] = part;
		groups.index_of[g] = next[part]++;
	}
	for (int p = 0; p < groups.nparts; p++)
		groups.starts[p + 1] = groups.starts[p] + next[p];
	for (uint32 g = 0; g < n; g++)
	{
		if (g % 1024 == 0)
			CHECK_FOR_INTERRUPTS();
		groups.order[groups.starts[groups.part_of[g]] + groups.index_of[g]] = g;
	}
	pfree(next);
	return groups;
}

/*
 * Writes the number of groups of each partition, and their keys in the order of the table.  The
 * numbers in each partition have that order, too.
 */
static void
export_keys(OrderedSetEngine *engine, GroupSink *sink, const ExportGroups *groups)
{
	const GroupTable *table = engine->table;
	RowBuilder *builder = &engine->builder;

	for (int p = 0; p < groups->nparts; p++)
	{
		uint32 n = groups->starts[p + 1] - groups->starts[p];

		export_part(sink, p);
		sink->write(sink, &n, sizeof(n));
	}
	for (uint32 g = 0; g < table->ngroups; g++)
	{
		const char *row = group_row(table, g);

		if (g % 1024 == 0)
			CHECK_FOR_INTERRUPTS();
		row_builder_begin(builder);
		for (int c = 0; c < engine->own.ncols; c++)
		{
			bool isnull = true;
			Datum key = (Datum) 0;

			if (c < engine->own.nkeys)
				key = group_key_datum(&table->keys, row, c, &isnull);
			row_builder_write(builder, c, 0, key, isnull);
		}
		row_record_write(&engine->record, &engine->own, &builder->batch, 0);
		export_part(sink, groups->part_of[g]);
		write_record(sink, &engine->record);
	}
	row_builder_begin(builder);
}

/* Writes the rows of groups that are not in the table. */
static void
export_rows(OrderedSetEngine *engine, GroupSink *sink, int nparts)
{
	uint32 end = 0;
	const Batch *batch;

	ordered_finish_partitions(engine);
	while (partition_list_pop(&engine->pending, &engine->in))
	{
		while (engine->in.rows &&
			   (batch = row_reader_next(engine->reader, engine->in.rows)) != NULL)
		{
			CHECK_FOR_INTERRUPTS();
			if (sink->part)
				group_keys_hash_datums(&engine->table->keys, batch);
			for (int i = 0; i < batch->nrows; i++)
			{
				if (sink->part)
					sink->part(
						sink,
						group_part(sink, group_keys_spill_hash(&engine->table->keys, batch, i)));
				row_record_write(&engine->record, &engine->own, batch, i);
				write_record(sink, &engine->record);
			}
		}
		partition_close(&engine->in);
	}
	for (int p = 0; p < nparts; p++)
	{
		export_part(sink, p);
		sink->write(sink, &end, sizeof(end));
	}
}

EngineStatus
ordered_export_groups(Engine *base, GroupSink *sink)
{
	OrderedSetEngine *engine = (OrderedSetEngine *) base;
	Engine *inner = engine->inner.engine;
	EngineStatus status = sink->part ?
		composite_status(&engine->composite, inner, inner->ops->export_groups(inner, sink)) :
		composite_export_groups(base, sink);
	MemoryContext cxt, old;
	ExportGroups groups;

	if (status != ENGINE_OK)
		return ENGINE_FAILED;
	if (sink->part)
		sink->next_section(sink);
	cxt = AllocSetContextCreate(engine->composite.env.cxt, "gpuagg exported groups",
								ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(cxt);
	groups = divide_groups(engine, sink);
	export_keys(engine, sink, &groups);
	for (int v = 0; v < engine->composite.spec->nvalues; v++)
		value_store_export(engine->stores[v], sink, &groups);
	export_rows(engine, sink, groups.nparts);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(cxt);
	return ENGINE_OK;
}

/*
 * Returns a copy of key k in a row of a batch with the columns of `own`, in the current memory
 * context.
 */
static Datum
copy_key(const AggSpec *own, const Batch *batch, int k, int row, bool *isnull)
{
	const Column *col = &batch->cols[k];

	*isnull = column_is_null(col, row);
	if (*isnull)
		return (Datum) 0;
	return datumCopy(column_datum(col->type, col->scale, col->values, row), own->cols[k].typbyval,
					 own->cols[k].typlen);
}

/*
 * Reads the groups of the export, and adds them to the table here.  Sets numbers, keys and nulls.
 */
static void
import_keys(ForeignGroups *foreign, GroupSource *source)
{
	OrderedSetEngine *engine = foreign->engine;
	RowReader *reader = engine->reader;
	int nkeys = engine->own.nkeys;

	if (!source->read(source, &foreign->ngroups, sizeof(foreign->ngroups)))
		elog(ERROR, "groups of another participant end early");
	foreign->numbers = palloc_extended((foreign->ngroups + 1) * sizeof(uint32), MCXT_ALLOC_HUGE);
	foreign->keys =
		palloc_extended(((Size) foreign->ngroups * nkeys + 1) * sizeof(Datum), MCXT_ALLOC_HUGE);
	foreign->nulls =
		palloc_extended(((Size) foreign->ngroups * nkeys + 1) * sizeof(bool), MCXT_ALLOC_HUGE);
	for (uint32 from = 0; from < foreign->ngroups; from += reader->batch.nrows)
	{
		row_reader_begin(reader);
		while (from + reader->batch.nrows < foreign->ngroups && !row_reader_full(reader))
		{
			if (!read_record(source, &engine->record))
				elog(ERROR, "groups of another participant end early");
			row_reader_add(reader, engine->record.data);
		}
		ordered_gather(engine, &reader->batch);
		for (int i = 0; i < reader->batch.nrows; i++)
		{
			foreign->numbers[from + i] = engine->numbers[i];
			/* for values of groups without room here, and for values that are sorted */
			for (int k = 0; k < nkeys; k++)
				foreign->keys[(Size) (from + i) * nkeys + k] =
					copy_key(&engine->own, &reader->batch, k, i,
							 &foreign->nulls[(Size) (from + i) * nkeys + k]);
		}
	}
}

/*
 * A ValueRejected callback (groups/value_store.h): adds a value that the store could not import as
 * a row.
 */
static void
import_value(void *arg, uint32 group, Datum value)
{
	ForeignGroups *foreign = arg;
	OrderedSetEngine *engine = foreign->engine;
	Size at = (Size) group * engine->own.nkeys;

	build_row(engine, foreign->keys + at, foreign->nulls + at, foreign->store, value);
	if (row_builder_is_full(&engine->builder))
		flush_builder(engine);
}

/* Reads the part of an export that follows the inner engine's export: groups, values and rows. */
static void
import_values(OrderedSetEngine *engine, GroupSource *source)
{
	RowReader *reader = engine->reader;
	ForeignGroups foreign = {engine};
	bool more;

	import_keys(&foreign, source);
	row_builder_begin(&engine->builder);
	for (int v = 0; v < engine->composite.spec->nvalues; v++)
	{
		foreign.store = v;
		value_store_import(engine->stores[v], source, foreign.numbers, foreign.ngroups,
						   import_value, &foreign);
	}
	flush_builder(engine);
	do
	{
		row_reader_begin(reader);
		while ((more = read_record(source, &engine->record)))
		{
			row_reader_add(reader, engine->record.data);
			if (row_reader_full(reader))
				break;
		}
		ordered_gather(engine, &reader->batch);
	} while (more);
}

EngineStatus
ordered_import_groups(Engine *base, GroupSource *source)
{
	OrderedSetEngine *engine = (OrderedSetEngine *) base;
	MemoryContext cxt = AllocSetContextCreate(engine->composite.env.cxt, "gpuagg imported groups",
											  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(cxt);
	Engine *inner = engine->inner.engine;
	EngineStatus status = ENGINE_OK;

	if (!engine->in_parts)
		status = composite_import_groups(base, source);
	else if (source->section == 0)
		status =
			composite_status(&engine->composite, inner, inner->ops->import_groups(inner, source));
	if (status == ENGINE_OK && (!engine->in_parts || source->section > 0))
		import_values(engine, source);
	MemoryContextSwitchTo(engine->composite.env.cxt);
	if (source->taken)
		engine->files = lappend(engine->files, source->taken);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(cxt);
	return status;
}
