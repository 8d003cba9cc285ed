/*
 * ordered_engine.h
 *	  Ordered-set aggregates (percentiles, medians, modes): a composite engine.
 *
 * ordered_engine.c is the engine, ordered_gather.c gathers values by group, ordered_exchange.c
 * exports and imports groups and values in parallel plans.
 */
#ifndef GPUAGG_ORDERED_ENGINE_H
#define GPUAGG_ORDERED_ENGINE_H

#include "postgres.h"

#include "composite/inner.h"
#include "composite/row_builder.h"
#include "groups/record.h"
#include "groups/spill.h"
#include "groups/table.h"
#include "groups/value_store.h"

typedef struct OrderedSetEngine
{
	CompositeEngine composite; /* must be first; its only engine is the inner one */
	InnerEngine inner;         /* has a column for the result of each ordered set */
	RowBuilder results;        /* rows of the inner spec: keys and results of a group */

	/* Groups and values.  Columns of `own`: the query's keys, then the values of each store. */
	AggSpec own;
	int *own_cols;     /* [column of own] column of the query */
	Batch own_batch;   /* a batch of the query with the columns of `own` */
	uint64 **validity; /* [store] bits of rows that have a value and pass the filter */
	GroupTable *table;
	bool mode_chosen;    /* the mode of the table was chosen from the range of the keys */
	uint32 *numbers;     /* [row of a batch] number of its group, or NO_VALUE_GROUP */
	ValueStore **stores; /* [AggSpec.values] */
	RowBuilder builder;  /* rows of `own` that another participant exported */

	/* Rows of groups for which the table has no memory. */
	int level;             /* how often the rows at hand were partitioned */
	PartitionSet *out;     /* partitions that are written, or NULL */
	PartitionList pending; /* partitions that wait to be read */
	Partition in;          /* the one that is read */
	RowReader *reader;
	StringInfoData record;

	List *files;   /* exports of participants that stores still read */
	bool in_parts; /* merges partitions of the groups of all participants */

	/* For statistics. */
	uint64 spilled_bytes;
	int spill_partitions;
	uint64 groups; /* whose results are known */
	size_t mem_peak;
} OrderedSetEngine;

/*
 * Opens an engine for a spec with ordered sets.  `open` opens the inner engine, which has these
 * ops.  Calls env->fraction for each group when all rows are there.
 */
extern Engine *ordered_engine_open(const EngineOps *ops, const AggSpec *spec, const EngineEnv *env,
								   OpenEngine open);

/*
 * Adds a batch with the columns of `own`: sets engine->numbers to the groups of its rows, and
 * stores their values.  Rows of groups without room in the table go to partitions.
 */
extern void ordered_gather(OrderedSetEngine *engine, const Batch *batch);
/* Ends the partitions that are written; they become pending. */
extern void ordered_finish_partitions(OrderedSetEngine *engine);

/*
 * EngineOps.export_groups: exports the inner engine's groups, then groups and values of this one.
 */
extern EngineStatus ordered_export_groups(Engine *base, GroupSink *sink);
/* EngineOps.import_groups: adds the groups and values of such an export. */
extern EngineStatus ordered_import_groups(Engine *base, GroupSource *source);

#endif /* GPUAGG_ORDERED_ENGINE_H */
