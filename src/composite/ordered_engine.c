/*
 * ordered_engine.c
 *	  Ordered-set aggregates: a composite engine.
 *
 * The engine gathers values by group: a table numbers the groups (groups/table.h), and a store for
 * each input keeps group numbers and values (groups/value_store.h).  All ordered-set aggregates of
 * one input find their values in one store.
 *
 * The inner engine (inner.h) has the query's keys and all of its aggregates.  It gets the rows of
 * the input for aggregates of other kinds.  When the input has ended, it gets a row for each group
 * and store, with the results of the ordered sets.  There an ordered set is a fallback aggregate
 * that keeps the value it is given.
 *
 * Rows of groups for which the table has no memory go to partitions by their keys.  Each partition
 * is gathered in the emptied table after the groups before it are done, as in the CPU engine.
 *
 * Participants of a parallel plan export the groups of the inner engine, then groups, values and
 * rows of partitions.  If there are many values, this is divided by a hash of the keys, and each
 * participant finds the results of some parts.
 *
 * A GPU needs no such engine: it sorts (group, code) and reads ranks of the sorted codes
 * (EngineOps.runs_sets).
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/array.h"
#include "utils/datum.h"
#include "utils/memutils.h"

#include "aggregates/ordered_set.h"
#include "composite/ordered_engine.h"

/* ---- the inner engine -------------------------------------------------------------- */

/*
 * Makes the inner spec, with a column for the result of each ordered set, and opens the inner
 * engine.
 */
static void
open_inner(OrderedSetEngine *engine, const EngineOps *ops, OpenEngine open)
{
	CompositeEngine *composite = &engine->composite;
	const AggSpec *spec = composite->spec;
	InnerEngine *inner = &engine->inner;
	ColumnSpec *results = palloc0(sizeof(ColumnSpec) * spec->nordered_sets);

	inner_copy_spec(inner, spec, 1);
	inner->spec.nordered_sets = inner->spec.nvalues = 0;
	for (int s = 0; s < spec->nslots; s++)
	{
		SlotSpec *slot = &inner->spec.slots[s];

		if (slot->set == 0)
			slot->filter = inner_input_filter(inner, slot->filter);
	}
	for (int d = 0; d < spec->ndistincts; d++)
	{
		DistinctSpec *distinct = &inner->spec.distincts[d];

		distinct->filter = inner_input_filter(inner, distinct->filter);
	}
	for (int f = 0; f < spec->nfallbacks; f++)
	{
		FallbackAgg *fallback = &inner->spec.fallbacks[f];

		if (spec_set_of_fallback(spec, f) < 0 && fallback->set == 0)
			fallback->filter = inner_input_filter(inner, fallback->filter);
	}
	for (int o = 0; o < spec->nordered_sets; o++)
	{
		FallbackAgg *result = &inner->spec.fallbacks[spec->ordered_sets[o].fallback];

		results[o] = (ColumnSpec){.type = COLUMN_DATUM,
								  .typid = result->transtype,
								  .typmod = -1,
								  .typlen = result->translen,
								  .typbyval = result->transbyval};
		result->argcol[0] = inner_mark(inner, inner->nmarks + inner->nfilters + o);
	}
	inner_add_columns(inner, results, spec->nordered_sets, composite->env.batch_rows);
	inner->engine =
		composite_add_engine(composite, open(ops, &inner->spec, &composite->env, false));
}

/* ---- rows in -------------------------------------------------------------------------- */

/*
 * Makes the spec `own` of the table.  Its columns are the query's keys and values.  A value has a
 * column of its own, even if it is a key or another value, too.
 */
static void
make_own_spec(OrderedSetEngine *engine)
{
	const AggSpec *spec = engine->composite.spec;
	AggSpec *own = &engine->own;
	int most = spec->nkeys + spec->nvalues + 1;

	own->support = spec->support;
	own->usual_scale = spec->usual_scale;
	own->cols = palloc0(sizeof(ColumnSpec) * most);
	own->keys = palloc0(sizeof(KeySpec) * most);
	engine->own_cols = palloc0(sizeof(int) * most);
	for (int k = 0; k < spec->nkeys; k++)
	{
		engine->own_cols[own->ncols] = spec->keys[k].col;
		own->keys[k] = spec->keys[k];
		own->keys[k].col = own->ncols;
		own->cols[own->ncols++] = spec->cols[spec->keys[k].col];
	}
	own->nkeys = spec->nkeys;
	for (int v = 0; v < spec->nvalues; v++)
	{
		engine->own_cols[own->ncols] = spec->values[v].col;
		own->cols[own->ncols++] = spec->cols[spec->values[v].col];
	}
}

/*
 * Points own_batch to columns of a batch of the query.  A value is NULL in rows that do not pass
 * its filter.
 */
static void
set_own_batch(OrderedSetEngine *engine, const Batch *batch)
{
	const AggSpec *spec = engine->composite.spec;
	int words = BITMAP_WORDS(batch->nrows);

	engine->own_batch.nrows = batch->nrows;
	for (int c = 0; c < engine->own.ncols; c++)
		engine->own_batch.cols[c] = batch->cols[engine->own_cols[c]];
	for (int v = 0; v < spec->nvalues; v++)
	{
		Column *col = &engine->own_batch.cols[spec->nkeys + v];
		const Column *filter;

		if (spec->values[v].filter < 0)
			continue;
		filter = &batch->cols[spec->values[v].filter];
		memset(engine->validity[v], 0, words * sizeof(uint64));
		for (int i = 0; i < batch->nrows; i++)
			if (!column_is_null(col, i) && !column_is_null(filter, i) &&
				((int8 *) filter->values)[i] != 0)
				bitmap_set(engine->validity[v], i);
		col->validity = engine->validity[v];
	}
}

/*
 * EngineOps.add_batch: gives rows of the input to the inner engine, and gathers the values of
 * ordered sets.
 */
static EngineStatus
ordered_add_batch(Engine *base, const Batch *batch)
{
	OrderedSetEngine *engine = (OrderedSetEngine *) base;

	engine->composite.rows += batch->nrows;
	engine->composite.batches++;
	if (inner_add_input(&engine->composite, &engine->inner, batch) != ENGINE_OK)
		return ENGINE_FAILED;
	set_own_batch(engine, batch);
	ordered_gather(engine, &engine->own_batch);
	return ENGINE_OK;
}

/* ---- results -------------------------------------------------------------------------------- */

/*
 * Gives the rows with results to the inner engine, and begins the next batch.  Columns other than
 * keys and results are NULL in it.
 */
static EngineStatus
flush_results(OrderedSetEngine *engine)
{
	const AggSpec *spec = engine->composite.spec;
	Batch *batch = &engine->results.batch;
	EngineStatus status;

	CHECK_FOR_INTERRUPTS();
	status = inner_add_rows(&engine->composite, &engine->inner, batch);
	row_builder_begin(&engine->results);
	for (int c = 0; c < spec->ncols; c++)
		batch->cols[c].validity = engine->inner.nulls;
	for (int k = 0; k < spec->nkeys; k++)
		batch->cols[spec->keys[k].col].validity = NULL;
	return status;
}

/*
 * Adds a row with the results of a group for the inner engine.  Store v is at this group, which has
 * n values there; results of other stores are NULL in this row. calls, keys, nulls: working memory.
 */
static void
add_result(OrderedSetEngine *engine, int v, uint32 group, int64 n, OrderedSetCall *calls,
		   Datum *keys, bool *nulls)
{
	const AggSpec *spec = engine->composite.spec;
	RowBuilder *results = &engine->results;
	const char *table_row = group_row(engine->table, group);
	int row = results->batch.nrows++;
	int results_col = engine->inner.spec.ncols - spec->nordered_sets;
	bool modes = false;
	int ncalls = 0, m;
	int64 *ranks;
	Datum *values, mode[2];

	for (int k = 0; k < spec->nkeys; k++)
	{
		keys[k] = group_key_datum(&engine->table->keys, table_row, k, &nulls[k]);
		row_builder_write(results, spec->keys[k].col, row, keys[k], nulls[k]);
	}
	for (int o = 0; o < spec->nordered_sets; o++)
	{
		const OrderedSetSpec *set = &spec->ordered_sets[o];
		Datum fraction = Float8GetDatum(0.5);
		bool isnull = false;

		if (set->values != v)
			continue;
		if (!set->median && set->kind != ORDERED_SET_MODE)
			fraction = engine->composite.env.fraction(engine->composite.env.fraction_arg, o, keys,
													  nulls, &isnull);
		ordered_set_begin(&calls[ncalls++], set, fraction, isnull, n);
		modes |= set->kind == ORDERED_SET_MODE;
	}
	m = ordered_set_ranks(calls, ncalls, &ranks);
	values = palloc(sizeof(Datum) * (m + 1));
	value_store_fetch(engine->stores[v], ranks, m, values, modes ? mode : NULL);
	ncalls = 0;
	for (int o = 0; o < spec->nordered_sets; o++)
	{
		const OrderedSetSpec *set = &spec->ordered_sets[o];
		Datum result = (Datum) 0;
		bool isnull = true;

		if (set->values == v)
			result = ordered_set_result(&calls[ncalls++], n, ranks, values, m,
										modes ? mode[set->desc] : (Datum) 0,
										spec->cols[spec->values[v].col].typid, &isnull);
		row_builder_write(results, results_col + o, row, result, isnull);
	}
}

/* Moves the results of all groups of the table to the inner engine. */
static EngineStatus
move_results(OrderedSetEngine *engine)
{
	const AggSpec *spec = engine->composite.spec;
	GroupTable *table = engine->table;
	OrderedSetCall *calls = palloc(sizeof(OrderedSetCall) * (spec->nordered_sets + 1));
	Datum *keys = palloc(sizeof(Datum) * (spec->nkeys + 1));
	bool *nulls = palloc(sizeof(bool) * (spec->nkeys + 1));
	MemoryContext cxt = AllocSetContextCreate(CurrentMemoryContext, "gpuagg results of a group",
											  ALLOCSET_DEFAULT_SIZES);
	EngineStatus status = ENGINE_OK;

	if (spec->nkeys == 0 && table->ngroups == 0)
		group_table_add(table);
	engine->groups += table->ngroups;
	for (int v = 0; v < spec->nvalues && status == ENGINE_OK; v++)
	{
		uint32 group;
		int64 n;

		value_store_begin(engine->stores[v], table->ngroups);
		while (status == ENGINE_OK && value_store_next(engine->stores[v], &group, &n))
		{
			MemoryContext old = MemoryContextSwitchTo(cxt);

			add_result(engine, v, group, n, calls, keys, nulls);
			MemoryContextSwitchTo(old);
			MemoryContextReset(cxt);
			if (row_builder_is_full(&engine->results))
				status = flush_results(engine);
		}
		value_store_reset(engine->stores[v]);
	}
	MemoryContextDelete(cxt);
	return status;
}

/* Removes all values. */
static void
clear_values(OrderedSetEngine *engine)
{
	ListCell *lc;

	for (int v = 0; v < engine->composite.spec->nvalues; v++)
		value_store_reset(engine->stores[v]);
	foreach (lc, engine->files)
		BufFileClose(lfirst(lc));
	list_free(engine->files);
	engine->files = NIL;
}

/* Removes all groups and values. */
static void
clear_groups(OrderedSetEngine *engine)
{
	group_table_reset(engine->table);
	clear_values(engine);
	engine->mode_chosen = false;
}

/* Fills the emptied table and stores from the next partition; returns false if there is none. */
static bool
next_partition(OrderedSetEngine *engine)
{
	const Batch *batch;

	ordered_finish_partitions(engine);
	if (!partition_list_pop(&engine->pending, &engine->in))
		return false;
	clear_groups(engine);
	engine->level = engine->in.level;
	while (engine->in.rows && (batch = row_reader_next(engine->reader, engine->in.rows)) != NULL)
		ordered_gather(engine, batch);
	partition_close(&engine->in);
	return true;
}

/*
 * EngineOps.finish: gives the results of all groups to the inner engine, partition by partition,
 * and finishes it.
 */
static EngineStatus
ordered_finish(Engine *base)
{
	OrderedSetEngine *engine = (OrderedSetEngine *) base;
	Engine *inner = engine->inner.engine;
	MemoryContext cxt = AllocSetContextCreate(engine->composite.env.cxt, "gpuagg ordered sets",
											  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(cxt);
	EngineStatus status;

	status = flush_results(engine);
	do
	{
		if (status == ENGINE_OK)
			status = move_results(engine);
	} while (status == ENGINE_OK && next_partition(engine));
	if (status == ENGINE_OK)
		status = flush_results(engine);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(cxt);
	if (status != ENGINE_OK)
		return status;
	clear_groups(engine);
	return composite_status(&engine->composite, inner, inner->ops->finish(inner));
}

/* EngineOps.next_groups: returns groups of the inner engine. */
static bool
ordered_next_groups(Engine *base, GroupBatch *out)
{
	OrderedSetEngine *engine = (OrderedSetEngine *) base;
	Engine *inner = engine->inner.engine;
	bool more = inner->ops->next_groups(inner, out);

	composite_check(&engine->composite, inner);
	return more;
}

/* Closes and deletes the files of all partitions. */
static void
close_files(OrderedSetEngine *engine)
{
	ordered_finish_partitions(engine);
	partition_list_clear(&engine->pending);
	partition_close(&engine->in);
}

/* ---- parallel participants ------------------------------------------------------------- */

/* EngineOps.sections: that of the inner engine, and one with the values. */
static int
ordered_sections(const Engine *base)
{
	return 2;
}

/* EngineOps.import_rows: groups of the inner engine. */
static EngineStatus
ordered_import_rows(Engine *base, int section, const char *rows, uint32 n)
{
	OrderedSetEngine *engine = (OrderedSetEngine *) base;
	Engine *inner = engine->inner.engine;

	return composite_status(&engine->composite, inner,
							inner->ops->import_rows(inner, section, rows, n));
}

/* EngineOps.begin_part: removes all groups and values. */
static void
ordered_begin_part(Engine *base, uint32 groups)
{
	OrderedSetEngine *engine = (OrderedSetEngine *) base;
	Engine *inner = engine->inner.engine;

	inner->ops->begin_part(inner, groups);
	close_files(engine);
	clear_groups(engine);
	engine->level = 0;
	engine->in_parts = true;
	/* an array over the range of keys would be large for the groups of a part */
	engine->mode_chosen = true;
}

/* Offers to merge parts, if the inner engine does. */
static void
offer_parts(OrderedSetEngine *engine)
{
	engine->composite.ops.begin_part =
		engine->inner.engine->ops->begin_part ? ordered_begin_part : NULL;
	engine->in_parts = false;
}

/* EngineOps.distinct_values: those of the inner engine. */
static Engine *
ordered_distinct_values(Engine *base, int set)
{
	Engine *inner = ((OrderedSetEngine *) base)->inner.engine;

	return inner->ops->distinct_values(inner, set);
}

/* EngineOps.add_distinct_values. */
static EngineStatus
ordered_add_distinct_values(Engine *base, int set)
{
	OrderedSetEngine *engine = (OrderedSetEngine *) base;
	Engine *inner = engine->inner.engine;

	return composite_status(&engine->composite, inner, inner->ops->add_distinct_values(inner, set));
}

/* EngineOps.end_distinct_values: the inner engine may merge parts now. */
static void
ordered_end_distinct_values(Engine *base)
{
	OrderedSetEngine *engine = (OrderedSetEngine *) base;
	Engine *inner = engine->inner.engine;

	inner->ops->end_distinct_values(inner);
	offer_parts(engine);
}

/* Sets the callbacks for distinct values, if the inner engine has them. */
static void
offer_distinct_values(OrderedSetEngine *engine)
{
	EngineOps *ops = &engine->composite.ops;

	if (engine->inner.engine->ops->distinct_values == NULL)
		return;
	ops->distinct_values = ordered_distinct_values;
	ops->add_distinct_values = ordered_add_distinct_values;
	ops->end_distinct_values = ordered_end_distinct_values;
}

/* ---- reset, statistics, close -------------------------------------------------------- */

/* EngineOps.reset: removes all groups, values and files. */
static void
ordered_reset(Engine *base)
{
	OrderedSetEngine *engine = (OrderedSetEngine *) base;

	close_files(engine);
	clear_groups(engine);
	engine->level = 0;
	engine->groups = 0;
	composite_reset_engines(&engine->composite);
	offer_parts(engine);
}

/* EngineOps.stats: those of the inner engine, with the memory and files of the values added. */
static void
ordered_stats(Engine *base, EngineStats *stats)
{
	OrderedSetEngine *engine = (OrderedSetEngine *) base;
	uint64 spilled = engine->spilled_bytes;
	bool divided = false;
	size_t len;

	engine->inner.engine->ops->stats(engine->inner.engine, stats);
	for (int v = 0; v < engine->composite.spec->nvalues; v++)
	{
		spilled += value_store_spilled(engine->stores[v]);
		stats->values += value_store_count(engine->stores[v]);
		divided |= value_store_divided(engine->stores[v]);
	}
	stats->rows = engine->composite.rows;
	stats->batches = engine->composite.batches;
	stats->groups = Max(stats->groups, Max(engine->groups, engine->table->ngroups));
	stats->mem_peak += engine->mem_peak;
	stats->spilled_bytes += spilled;
	stats->spill_partitions += engine->spill_partitions;
	len = strlen(stats->strategy);
	snprintf(stats->strategy + len, sizeof(stats->strategy) - len, ", values of ordered sets: %s",
			 divided         ? "in chunks" :
				 spilled > 0 ? "in files" :
							   "in memory");
}

/* EngineOps.close: closes the inner engine, and deletes all files. */
static void
ordered_close(Engine *base)
{
	OrderedSetEngine *engine = (OrderedSetEngine *) base;

	close_files(engine);
	clear_values(engine);
	composite_close(base);
}

/* Allocates the batches, row builders and arrays for rows. */
static void
make_batches(OrderedSetEngine *engine)
{
	const AggSpec *spec = engine->composite.spec;
	int capacity = engine->composite.env.batch_rows;

	row_builder_init(&engine->results, &engine->inner.spec, engine->inner.spec.ncols, capacity);
	/* all marks are false in rows with results */
	inner_set_marks(&engine->inner, &engine->results.batch, -1, NULL);
	row_builder_init(&engine->builder, &engine->own, engine->own.ncols, capacity);
	engine->numbers = palloc(capacity * sizeof(uint32));
	engine->own_batch.ncols = engine->own.ncols;
	engine->own_batch.capacity = capacity;
	engine->own_batch.cols = palloc0(sizeof(Column) * (engine->own.ncols + 1));
	engine->validity = palloc0(sizeof(uint64 *) * (spec->nvalues + 1));
	for (int v = 0; v < spec->nvalues; v++)
		engine->validity[v] = palloc0(BITMAP_WORDS(capacity) * sizeof(uint64));
	engine->reader = row_reader_create(&engine->own, capacity);
}

/* Returns whether a mode of values v is wanted. */
static bool
wants_mode(const AggSpec *spec, int v)
{
	for (int o = 0; o < spec->nordered_sets; o++)
		if (spec->ordered_sets[o].values == v && spec->ordered_sets[o].kind == ORDERED_SET_MODE)
			return true;
	return false;
}

/* Opens the table of groups and the stores of their values. */
static void
open_stores(OrderedSetEngine *engine, size_t total_limit)
{
	const AggSpec *spec = engine->composite.spec;
	const EngineEnv *env = &engine->composite.env;
	TableMode mode = TABLE_HASH;

	if (spec->nkeys == 0)
		mode = TABLE_SINGLE;
	else if (spec->nkeys == 1 && spec->keys[0].kind == KEY_DATUM)
		mode = TABLE_DICTIONARY;
	engine->table = group_table_create(env->cxt, &engine->own, mode, env->batch_rows);
	/* a group is in the same partition here and in the inner engine */
	if (env->input.parallel)
		group_keys_set_seed(&engine->table->keys, hash_seed(env->seed[0], env->seed[1]));
	engine->stores = palloc0(sizeof(ValueStore *) * (spec->nvalues + 1));
	for (int v = 0; v < spec->nvalues; v++)
		engine->stores[v] = value_store_create(
			env->cxt, &spec->values[v], &spec->cols[spec->values[v].col], env->batch_rows,
			env->mem_limit,
			value_store_max_own_sorts(Max(total_limit / spec->nvalues, env->mem_limit)),
			env->est_rows, env->input.parallel, spec->nkeys == 0 && !wants_mode(spec, v));
}

Engine *
ordered_engine_open(const EngineOps *ops, const AggSpec *spec, const EngineEnv *env,
					OpenEngine open)
{
	MemoryContext old = MemoryContextSwitchTo(env->cxt);
	OrderedSetEngine *engine = palloc0(sizeof(OrderedSetEngine));
	CompositeEngine *composite = &engine->composite;

	composite_init(composite, ops, spec, env, 1);
	composite->ops.add_batch = ordered_add_batch;
	composite->ops.finish = ordered_finish;
	composite->ops.next_groups = ordered_next_groups;
	composite->ops.export_groups = ordered_export_groups;
	composite->ops.import_groups = ordered_import_groups;
	composite->ops.import_rows = ordered_import_rows;
	composite->ops.sections = ordered_sections;
	composite->ops.reset = ordered_reset;
	composite->ops.stats = ordered_stats;
	composite->ops.close = ordered_close;
	composite->env.input.grouped = false;
	/* at least what each of core's sorts has */
	composite->env.mem_limit = Max(env->mem_limit / (spec->nvalues + 2), env->mem_least);
	initStringInfo(&engine->record);
	open_inner(engine, ops, open);
	make_own_spec(engine);
	make_batches(engine);
	open_stores(engine, env->mem_limit);
	offer_parts(engine);
	offer_distinct_values(engine);
	MemoryContextSwitchTo(old);
	return &composite->base;
}
