/*
 * ordered_set_internal.h
 *	  The engine of ordered sets: what its files share.
 *
 * ordered_set.c is the engine; ordered_values.c takes in rows; ordered_exchange.c has what
 * participants of a parallel plan give each other.
 */
#ifndef GPUAGG_ORDERED_SET_INTERNAL_H
#define GPUAGG_ORDERED_SET_INTERNAL_H

#include "postgres.h"

#include "columns/arena.h"
#include "columns/column_writer.h"
#include "exec/ordered_set.h"
#include "groups/record.h"
#include "groups/spill.h"
#include "groups/table.h"
#include "groups/value_store.h"

/* Rows that are built value by value. */
typedef struct RowBuilder
{
	Batch batch;
	ColumnWriter *writers;
	Arena arena;
} RowBuilder;

typedef struct OrderedSetEngine
{
	Engine base;
	EngineOps ops;
	const AggSpec *spec;
	EngineEnv env;
	uint64 rows;
	uint64 batches;

	/*
	 * the inner engine; columns of its spec after the query's: the mark of all rows, filters,
	 * results
	 */
	AggSpec inner_spec;
	Engine *inner;
	bool all_rows; /* some other aggregate takes them */
	int nfilters;
	int *filters; /* [filter] column of the query */
	Batch batch;
	int8 *ones;
	uint64 *nulls; /* a bitmap */
	RowBuilder results;

	/* groups and values; columns of `own`: keys, then a value for each store */
	AggSpec own;
	int *own_cols; /* [column] of the query */
	Batch own_batch;
	uint64 **validity; /* [store]: of rows that count */
	GroupTable *table;
	uint32 *numbers; /* [row of a batch] of groups */
	ValueStore **stores;
	RowBuilder builder; /* rows of others */

	int level;
	PartitionSet *out;
	PartitionList pending;
	Partition in;
	RowReader *reader;
	StringInfoData record;
	uint64 spilled_bytes;
	int spill_partitions;
	uint64 groups;
	size_t mem_peak;
	bool ranged; /* the keys' range was looked at */
} OrderedSetEngine;

extern void ordered_builder_begin(RowBuilder *builder);

static inline bool
ordered_builder_full(const RowBuilder *builder)
{
	return builder->batch.nrows == builder->batch.capacity || builder->arena.bytes >= BATCH_BYTES;
}

static inline void
ordered_builder_write(RowBuilder *builder, int c, int row, Datum value, bool isnull)
{
	if (isnull)
		column_write_null(&builder->writers[c], row);
	else
		column_write(&builder->writers[c], row, value);
}

/* Takes over what an engine has to say. */
extern EngineStatus ordered_note(OrderedSetEngine *engine, EngineStatus status);
/* Takes in rows of `own`. */
extern EngineStatus ordered_absorb(OrderedSetEngine *engine, const Batch *batch);
/* Rows that were written to partitions become pending ones. */
extern void ordered_finish_partitions(OrderedSetEngine *engine);

/* For EngineOps. */
extern EngineStatus ordered_export_groups(Engine *base, GroupSink *sink);
extern EngineStatus ordered_import_groups(Engine *base, GroupSource *source);

#endif /* GPUAGG_ORDERED_SET_INTERNAL_H */
