/*
 * ordered_set.c
 *	  Ordered-set aggregates: an engine around another one.
 *
 * Values are gathered by group: a table numbers the groups (groups/table.h), and a store for each
 * input keeps numbers and values (groups/value_store.h), of which all aggregates of that input find
 * theirs.  The inner engine has the query's keys and all of its aggregates.  It gets all rows for
 * those of other kinds; and when the input has ended, a row for each group and store with the
 * results of the ordered sets, which are fallback aggregates there that keep the value they are
 * given.  Columns of the inner spec say which rows are which, as in distinct.c: the filters of
 * other aggregates are false where results come.
 *
 * Rows of groups for which the table has no memory go to partitions by their keys, and are gathered
 * in an emptied table when those before are done, as in the CPU engine.
 *
 * Participants of a parallel plan export what the inner engine has, and then groups, stores and
 * rows of partitions.
 *
 * A GPU sorts (group, code) and looks at places of the sorted codes (EngineOps.sets).
 */
#include "postgres.h"

#include "catalog/pg_type_d.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/datum.h"
#include "utils/memutils.h"

#include "aggregates/ordered_set.h"
#include "exec/distinct.h"
#include "exec/ordered_set_internal.h"

/* ---- the inner engine -------------------------------------------------------------- */

/*
 * The column of the inner spec for a filter of other aggregates, -1 for none: false where results
 * come.
 */
static int
inner_filter(OrderedSetEngine *engine, int filter)
{
	int f = 0;

	engine->all_rows = true;
	if (filter < 0)
		return engine->spec->ncols;
	while (f < engine->nfilters && engine->filters[f] != filter)
		f++;
	if (f == engine->nfilters)
		engine->filters[engine->nfilters++] = filter;
	return engine->spec->ncols + 1 + f;
}

/* A copy of n entries, with room for more of them.  There may be none, and `from` be NULL. */
static void *
copy_entries(const void *from, int n, int more, size_t size)
{
	void *copy = palloc0(size * (n + more + 1));

	if (n > 0)
		memcpy(copy, from, size * n);
	return copy;
}

static void
make_inner_spec(OrderedSetEngine *engine)
{
	const AggSpec *spec = engine->spec;
	AggSpec *inner = &engine->inner_spec;
	ColumnSpec mark = {
		.type = COLUMN_I8, .typid = BOOLOID, .typmod = -1, .typlen = 1, .typbyval = true};

	*inner = *spec;
	inner->nordered_sets = inner->nvalues = 0;
	engine->filters =
		palloc(sizeof(int) * (spec->nslots + spec->nfallbacks + spec->ndistincts + 1));
	inner->slots = copy_entries(spec->slots, spec->nslots, 0, sizeof(SlotSpec));
	for (int s = 0; s < spec->nslots; s++)
		if (inner->slots[s].set == 0)
			inner->slots[s].filter = inner_filter(engine, inner->slots[s].filter);
	inner->distincts = copy_entries(spec->distincts, spec->ndistincts, 0, sizeof(DistinctSpec));
	for (int d = 0; d < spec->ndistincts; d++)
		inner->distincts[d].filter = inner_filter(engine, inner->distincts[d].filter);
	inner->fallbacks = copy_entries(spec->fallbacks, spec->nfallbacks, 0, sizeof(FallbackAgg));
	for (int f = 0; f < spec->nfallbacks; f++)
		if (spec_set_of_fallback(spec, f) < 0 && inner->fallbacks[f].set == 0)
			inner->fallbacks[f].filter = inner_filter(engine, inner->fallbacks[f].filter);
	inner->cols = copy_entries(spec->cols, spec->ncols, 1 + engine->nfilters + spec->nordered_sets,
							   sizeof(ColumnSpec));
	/* no two are of one input */
	for (int c = 0; c < 1 + engine->nfilters; c++)
	{
		mark.input = -2 - inner->ncols;
		inner->cols[inner->ncols++] = mark;
	}
	for (int o = 0; o < spec->nordered_sets; o++)
	{
		FallbackAgg *result = &inner->fallbacks[spec->ordered_sets[o].fallback];
		ColumnSpec col = {.input = -2 - inner->ncols,
						  .type = COLUMN_DATUM,
						  .typid = result->transtype,
						  .typmod = -1,
						  .typlen = result->translen,
						  .typbyval = result->transbyval};

		result->argcol[0] = inner->ncols;
		inner->cols[inner->ncols++] = col;
	}
}

/* All rows to the inner engine, with its marks. */
static EngineStatus
pass_on(OrderedSetEngine *engine, const Batch *batch)
{
	const AggSpec *spec = engine->spec;
	Column *cols = engine->batch.cols;

	engine->batch.nrows = batch->nrows;
	memcpy(cols, batch->cols, sizeof(Column) * spec->ncols);
	for (int f = 0; f < engine->nfilters; f++)
		cols[spec->ncols + 1 + f] = batch->cols[engine->filters[f]];
	return ordered_note(engine, engine->inner->ops->add_batch(engine->inner, &engine->batch));
}

/*
 * ---- rows in
 * ---------------------------------------------------------------------------------------
 */

/*
 * The spec of the table: the query's keys, and the values as columns of their own, though inputs
 * may be shared.
 */
static void
make_own_spec(OrderedSetEngine *engine)
{
	const AggSpec *spec = engine->spec;
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
 * Points the batch of `own` to columns of the query's; rows for which a filter is not true have no
 * value.
 */
static void
own_columns(OrderedSetEngine *engine, const Batch *batch)
{
	const AggSpec *spec = engine->spec;
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

static EngineStatus
add_batch(Engine *base, const Batch *batch)
{
	OrderedSetEngine *engine = (OrderedSetEngine *) base;

	engine->rows += batch->nrows;
	engine->batches++;
	if (engine->all_rows && pass_on(engine, batch) != ENGINE_OK)
		return ENGINE_FAILED;
	own_columns(engine, batch);
	return ordered_absorb(engine, &engine->own_batch);
}

/* ---- results -------------------------------------------------------------------------------- */

static EngineStatus
flush_results(OrderedSetEngine *engine)
{
	RowBuilder *results = &engine->results;
	EngineStatus status = ENGINE_OK;

	CHECK_FOR_INTERRUPTS();
	if (results->batch.nrows > 0)
		status =
			ordered_note(engine, engine->inner->ops->add_batch(engine->inner, &results->batch));
	ordered_builder_begin(results);
	/* in these rows nothing has a value but keys and results */
	for (int c = 0; c < engine->inner_spec.ncols; c++)
	{
		Column *col = &results->batch.cols[c];

		col->validity = engine->nulls;
	}
	for (int k = 0; k < engine->spec->nkeys; k++)
		results->batch.cols[engine->spec->keys[k].col].validity = NULL;
	for (int c = engine->spec->ncols; c < engine->inner_spec.ncols; c++)
		results->batch.cols[c].validity = NULL;
	return status;
}

/*
 * Adds the row with the results of a group in the store, which is about to be asked for its values.
 */
static void
add_result(OrderedSetEngine *engine, int v, uint32 group, int64 n, OrderedSetCall *calls,
		   Datum *keys, bool *nulls)
{
	const AggSpec *spec = engine->spec;
	RowBuilder *results = &engine->results;
	const char *table_row = group_row(engine->table, group);
	int row = results->batch.nrows++;
	int results_col = engine->inner_spec.ncols - spec->nordered_sets;
	bool modes = false;
	int ncalls = 0, m;
	int64 *ranks;
	Datum *values, mode[2];

	for (int k = 0; k < spec->nkeys; k++)
	{
		keys[k] = group_key_datum(&engine->table->keys, table_row, k, &nulls[k]);
		ordered_builder_write(results, spec->keys[k].col, row, keys[k], nulls[k]);
	}
	for (int o = 0; o < spec->nordered_sets; o++)
	{
		const OrderedSetSpec *set = &spec->ordered_sets[o];
		Datum fraction = Float8GetDatum(0.5);
		bool isnull = false;

		if (set->values != v)
			continue;
		if (!set->median && set->kind != ORDERED_SET_MODE)
			fraction = engine->env.fraction(engine->env.fraction_arg, o, keys, nulls, &isnull);
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
		ordered_builder_write(results, results_col + o, row, result, isnull);
	}
}

/* The results of all groups of the table. */
static EngineStatus
move_results(OrderedSetEngine *engine)
{
	const AggSpec *spec = engine->spec;
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
			if (ordered_builder_full(&engine->results))
				status = flush_results(engine);
		}
		/* its memory is not needed any more */
		value_store_reset(engine->stores[v]);
	}
	MemoryContextDelete(cxt);
	return status;
}

static void
clear_groups(OrderedSetEngine *engine)
{
	group_table_reset(engine->table);
	for (int v = 0; v < engine->spec->nvalues; v++)
		value_store_reset(engine->stores[v]);
	engine->ranged = false;
}

/* Fills the emptied table from the next partition; false if there is none. */
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
		ordered_absorb(engine, batch);
	partition_close(&engine->in);
	return true;
}

static EngineStatus
finish(Engine *base)
{
	OrderedSetEngine *engine = (OrderedSetEngine *) base;
	MemoryContext cxt =
		AllocSetContextCreate(engine->env.cxt, "gpuagg ordered sets", ALLOCSET_DEFAULT_SIZES);
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
	return ordered_note(engine, engine->inner->ops->finish(engine->inner));
}

static bool
next_groups(Engine *base, GroupBatch *out)
{
	OrderedSetEngine *engine = (OrderedSetEngine *) base;
	bool more = engine->inner->ops->next_groups(engine->inner, out);

	ordered_note(engine, engine->inner->failure[0] == '\0' ? ENGINE_OK : ENGINE_FAILED);
	return more;
}

/*
 * ---- the rest
 * ------------------------------------------------------------------------------------------
 */

static void
close_files(OrderedSetEngine *engine)
{
	ordered_finish_partitions(engine);
	partition_list_clear(&engine->pending);
	partition_close(&engine->in);
}

static void
reset(Engine *base)
{
	OrderedSetEngine *engine = (OrderedSetEngine *) base;

	close_files(engine);
	clear_groups(engine);
	engine->level = 0;
	engine->groups = 0;
	engine->inner->ops->reset(engine->inner);
	engine->base.errors = 0;
}

static void
stats(Engine *base, EngineStats *stats)
{
	OrderedSetEngine *engine = (OrderedSetEngine *) base;
	uint64 spilled = engine->spilled_bytes;
	size_t len;

	engine->inner->ops->stats(engine->inner, stats);
	for (int v = 0; v < engine->spec->nvalues; v++)
		spilled += value_store_spilled(engine->stores[v]);
	stats->rows = engine->rows;
	stats->batches = engine->batches;
	stats->groups = Max(stats->groups, Max(engine->groups, engine->table->ngroups));
	stats->mem_peak += engine->mem_peak;
	stats->spilled_bytes += spilled;
	stats->spill_partitions += engine->spill_partitions;
	len = strlen(stats->strategy);
	snprintf(stats->strategy + len, sizeof(stats->strategy) - len, ", values of ordered sets: %s",
			 spilled > 0 ? "in files" : "in memory");
}

static void
close_engine(Engine *base)
{
	OrderedSetEngine *engine = (OrderedSetEngine *) base;

	close_files(engine);
	for (int v = 0; v < engine->spec->nvalues; v++)
		value_store_reset(engine->stores[v]);
	engine->inner->ops->close(engine->inner);
}

static void
builder_init(RowBuilder *builder, const AggSpec *spec, int capacity, MemoryContext cxt)
{
	arena_init(&builder->arena, cxt);
	builder->batch.capacity = capacity;
	builder->batch.ncols = spec->ncols;
	builder->batch.cols = palloc0(sizeof(Column) * (spec->ncols + 1));
	builder->writers = palloc0(sizeof(ColumnWriter) * (spec->ncols + 1));
	for (int c = 0; c < spec->ncols; c++)
		column_writer_init(&builder->writers[c], &builder->batch.cols[c], &spec->cols[c], capacity,
						   &builder->arena);
}

/* What batches consist of. */
static void
make_batches(OrderedSetEngine *engine)
{
	int capacity = engine->env.batch_rows;
	int ncols = engine->inner_spec.ncols;
	int nquery = engine->spec->ncols;

	engine->ones = palloc(capacity);
	memset(engine->ones, 1, capacity);
	engine->nulls = palloc0(BITMAP_WORDS(capacity) * sizeof(uint64));
	engine->numbers = palloc(capacity * sizeof(uint32));
	engine->batch.ncols = ncols;
	engine->batch.capacity = capacity;
	engine->batch.cols = palloc0(sizeof(Column) * ncols);
	builder_init(&engine->results, &engine->inner_spec, capacity, engine->env.cxt);
	for (int c = nquery; c < ncols; c++)
	{
		Column *col = &engine->batch.cols[c];

		if (c < ncols - engine->spec->nordered_sets)
		{
			col->type = COLUMN_I8;
			col->values = engine->ones;
		}
		else
		{
			col->type = COLUMN_DATUM;
			col->values = engine->results.batch.cols[c].values;
			col->validity = engine->nulls;
		}
	}
	engine->own_batch.ncols = engine->own.ncols;
	engine->own_batch.capacity = capacity;
	engine->own_batch.cols = palloc0(sizeof(Column) * (engine->own.ncols + 1));
	engine->validity = palloc0(sizeof(uint64 *) * (engine->spec->nvalues + 1));
	for (int v = 0; v < engine->spec->nvalues; v++)
		engine->validity[v] = palloc0(BITMAP_WORDS(capacity) * sizeof(uint64));
	builder_init(&engine->builder, &engine->own, capacity, engine->env.cxt);
	engine->reader = row_reader_create(&engine->own, capacity);
}

Engine *
ordered_set_open(const EngineOps *ops, const AggSpec *spec, const EngineEnv *env)
{
	MemoryContext old = MemoryContextSwitchTo(env->cxt);
	OrderedSetEngine *engine = palloc0(sizeof(OrderedSetEngine));
	TableMode mode = TABLE_HASH;

	engine->ops = *ops;
	engine->ops.bind_buffers = NULL;
	engine->ops.take_resident = NULL;
	engine->ops.add_batch = add_batch;
	engine->ops.finish = finish;
	engine->ops.next_groups = next_groups;
	engine->ops.export_groups = ordered_export_groups;
	engine->ops.import_groups = ordered_import_groups;
	engine->ops.reset = reset;
	engine->ops.stats = stats;
	engine->ops.close = close_engine;
	engine->ops.begin_part = NULL;
	engine->ops.limit = NULL;
	engine->ops.join = NULL;
	engine->ops.flush = NULL;
	engine->ops.detach = NULL;
	engine->base.ops = &engine->ops;
	engine->spec = spec;
	engine->env = *env;
	engine->env.input.grouped = false;
	/* as each of core's sorts has */
	engine->env.mem_limit = Max(env->mem_limit / (spec->nvalues + 2), env->mem_least);
	initStringInfo(&engine->record);
	make_inner_spec(engine);
	make_own_spec(engine);
	make_batches(engine);
	engine->inner = engine->inner_spec.ndistincts > 0 ?
		distinct_open(ops, &engine->inner_spec, &engine->env, false) :
		ops->open(&engine->inner_spec, &engine->env);
	if (spec->nkeys == 0)
		mode = TABLE_SINGLE;
	else if (spec->nkeys == 1 && spec->keys[0].kind == KEY_DATUM)
		mode = TABLE_DICTIONARY;
	engine->table = group_table_create(env->cxt, &engine->own, mode, engine->own_batch.capacity);
	engine->stores = palloc0(sizeof(ValueStore *) * (spec->nvalues + 1));
	for (int v = 0; v < spec->nvalues; v++)
		engine->stores[v] = value_store_create(
			env->cxt, &spec->values[v], &spec->cols[spec->values[v].col],
			engine->own_batch.capacity, engine->env.mem_limit,
			value_store_max_own_sorts(Max(env->mem_limit / spec->nvalues, engine->env.mem_limit)),
			env->est_rows, env->input.parallel);
	MemoryContextSwitchTo(old);
	return &engine->base;
}
