/*
 * distinct.c
 *	  Aggregates of DISTINCT values, and of rows in an order of their own: a composite engine.
 *
 * The query has row sets (DistinctSpec).  A set of distinct values has an engine that groups by the
 * query's keys, the values and the filter, and has no aggregates: its groups are the distinct
 * values.  The inner engine (inner.h) has the query's keys and all of its aggregates.  It gets the
 * rows of the input for aggregates without a row set.  When the input has ended, it gets the groups
 * of each set's engine as rows.  In these rows a column is NULL if it is neither a key nor a value
 * of the set.
 *
 * If an aggregate shows the order of its rows (array_agg, a sum of floats), the groups of its set
 * are first sorted by the values.  PostgreSQL sorts to find distinct values, so its aggregates see
 * the values in that order.
 *
 * An aggregate with an ORDER BY of its own has a row set without an engine: all rows, sorted.
 *
 * The inner engine is the default one.  A set may have another engine, as it is a grouping like any
 * other.
 *
 * Participants of a parallel plan export the groups of all of their engines.  The participant that
 * imports them has the distinct values of all.  If there are many values, participants exchange
 * them by partitions first, and then the groups of the inner engines (exec/parallel.c).
 *
 * Memory: each engine and each sort gets an equal part of EngineEnv.mem_limit, but at least
 * work_mem, as each of core's sorts of distinct values does.  Beyond that they spill.
 */
#include "postgres.h"

#include <math.h>

#include "miscadmin.h"
#include "utils/fmgroids.h"
#include "utils/memutils.h"

#include "composite/distinct.h"
#include "composite/inner.h"
#include "composite/row_builder.h"
#include "composite/row_sort.h"
#include "engines/engines.h"

/* Codes of keys are given to the inner engine if this many bytes for each are allowed. */
#define CODE_MEMORY 64

/*
 * A row set.  Its rows have values: the query's keys, the values of the DistinctSpec, the filter,
 * and with all_rows the other arguments of the set's aggregates.
 */
typedef struct RowSet
{
	const DistinctSpec *set;
	int nvalues;
	int *value_col; /* [value] column of the query's spec */
	int filter;     /* the value that is the filter, or -1 */
	int *value_of;  /* [column of the query's spec] value that it is written from, or -1 */

	/* the engine that finds distinct values; NULL if the set has all rows */
	Engine *engine;
	AggSpec spec; /* keys: the query's, the values, the filter */
	int *cols;    /* [column of this spec] column of the query's spec */
	Batch batch;
	uint64 *
		*masked; /* [column of this spec] validity that hides values where the filter is false */

	RowSort *sort; /* sorts rows or groups; NULL if their order does not matter */
} RowSet;

typedef struct DistinctEngine
{
	CompositeEngine composite; /* must be first; its engines: the inner one and those of sets */
	InnerEngine inner;
	bool choose; /* each set has the engine that is best for it */
	bool offers; /* participants may exchange values before groups */
	int nsets;
	RowSet *sets;
	GroupSink *(*early_sink)(void *arg, int exchange); /* EngineEnv.early_sink of this engine */
	RowBuilder builder;                                /* rows of sets, for the inner engine */
	int8 *marks;                                       /* mark of the set in these rows */
	bool values_added; /* participants have exchanged values: the sets are empty */
} DistinctEngine;

/* ---- row sets --------------------------------------------------------------------- */

/* Adds a key to the spec of the set's engine. key.col: a column of the query's spec. */
static void
add_set_key(DistinctEngine *distinct, RowSet *set, KeySpec key)
{
	AggSpec *spec = &set->spec;
	int col = key.col;

	key.col = spec_add_column(spec, &distinct->composite.spec->cols[col]);
	set->cols[key.col] = col;
	spec->keys[spec->nkeys++] = key;
}

/* Adds a column of the query's spec to the values of the set. */
static void
add_value(RowSet *set, int col)
{
	if (set->value_of[col] < 0)
		set->value_of[col] = set->nvalues;
	set->value_col[set->nvalues++] = col;
}

/*
 * Returns whether column `to` can be written from values of column `from`.  A column that only has
 * the presence of values cannot be a source.  Columns of row sets hold all decimals with one scale.
 */
static bool
has_values_of(const ColumnSpec *from, const ColumnSpec *to)
{
	Assert(from->form == NUMERIC_ONE_SCALE);
	return from == to || (from->input == to->input && !from->presence);
}

/*
 * Adds a column to the values of the set, unless another value is a source for it. col -1: there is
 * no column.
 */
static void
add_value_once(DistinctEngine *distinct, RowSet *set, int col)
{
	const ColumnSpec *cols = distinct->composite.spec->cols;

	for (int v = 0; v < set->nvalues; v++)
		if (col < 0 || has_values_of(&cols[set->value_col[v]], &cols[col]))
			return;
	if (col >= 0)
		add_value(set, col);
}

/* Adds the columns that the aggregates of a set read to its values. */
static void
add_arguments(DistinctEngine *distinct, RowSet *set)
{
	const AggSpec *spec = distinct->composite.spec;
	int number = set - distinct->sets + 1;

	for (int s = 0; s < spec->nslots; s++)
		for (int i = 0; i < 2 && spec->slots[s].set == number; i++)
			add_value_once(distinct, set, spec->slots[s].col[i]);
	for (int f = 0; f < spec->nfallbacks; f++)
		for (int a = 0; a < spec->fallbacks[f].nargs && spec->fallbacks[f].set == number; a++)
			add_value_once(distinct, set, spec->fallbacks[f].argcol[a]);
}

/*
 * Sets value_of[] for each column of the query that can be written from a value of the set.
 * Aggregates may read a value in another type than that of the set's column.
 */
static void
find_sources(DistinctEngine *distinct, RowSet *set)
{
	const AggSpec *spec = distinct->composite.spec;

	for (int c = 0; c < spec->ncols; c++)
		for (int v = 0; v < set->nvalues && set->value_of[c] < 0; v++)
			if (has_values_of(&spec->cols[set->value_col[v]], &spec->cols[c]))
				set->value_of[c] = v;
}

/*
 * Returns the engine for a set: `ops`, or with DistinctEngine.choose the one that is best for such
 * a grouping.
 */
static const EngineOps *
choose_set_engine(const DistinctEngine *distinct, const EngineOps *ops, const RowSet *set)
{
	const EngineEnv *env = &distinct->composite.env;
	EngineQuery query = {
		.spec = &set->spec,
		.input.parallel = env->input.parallel,
		.input.read_once = env->input.read_once,
		.work.rows = env->est_rows,
		.work.values = set->spec.nkeys,
		.work.columns = set->spec.ncols,
	};
	char reason[256];

	return distinct->choose ? engines_choose(&query, reason, sizeof(reason)) : ops;
}

/* Opens the engine that finds the set's distinct values. */
static void
open_set_engine(DistinctEngine *distinct, const EngineOps *ops, RowSet *set)
{
	const AggSpec *spec = distinct->composite.spec;
	const DistinctSpec *values = set->set;
	EngineEnv env = distinct->composite.env;

	set->spec.support = spec->support;
	set->spec.usual_scale = spec->usual_scale;
	set->spec.keys = palloc0(sizeof(KeySpec) * set->nvalues);
	set->cols = palloc0(sizeof(int) * set->nvalues);
	for (int k = 0; k < spec->nkeys; k++)
		add_set_key(distinct, set, spec->keys[k]);
	for (int v = 0; v < values->nvalues; v++)
		add_set_key(distinct, set, values->values[v]);
	if (values->filter >= 0)
	{
		KeySpec filter = {
			.col = values->filter, .kind = KEY_RAW, .eqfunc = F_BOOLEQ, .hashfunc = F_HASHCHAR};

		add_set_key(distinct, set, filter);
	}
	set->batch.ncols = set->spec.ncols;
	set->batch.capacity = env.batch_rows;
	set->batch.cols = palloc0(sizeof(Column) * set->nvalues);
	set->masked = palloc0(sizeof(uint64 *) * set->nvalues);
	/* the geometric mean of the bounds: the query's groups and all rows */
	env.est_groups = sqrt(Max(env.est_rows, 1) * Max(env.est_groups, 1));
	if (distinct->offers)
	{
		env.early_sink = distinct->early_sink;
		env.exchange = set - distinct->sets + 1;
	}
	set->engine = composite_add_engine(
		&distinct->composite, choose_set_engine(distinct, ops, set)->open(&set->spec, &env));
}

/* Initializes a row set, with its sort or engine. values: the set in the query's spec. */
static void
open_set(DistinctEngine *distinct, const EngineOps *ops, RowSet *set, const DistinctSpec *values)
{
	const AggSpec *spec = distinct->composite.spec;

	set->set = values;
	set->value_col = palloc0(sizeof(int) * (spec->nkeys + values->nvalues + 1 + spec->ncols));
	set->value_of = palloc(sizeof(int) * (spec->ncols + 1));
	for (int c = 0; c < spec->ncols; c++)
		set->value_of[c] = -1;
	for (int k = 0; k < spec->nkeys; k++)
		add_value(set, spec->keys[k].col);
	for (int v = 0; v < values->nvalues; v++)
		add_value(set, values->values[v].col);
	set->filter = values->filter < 0 ? -1 : set->nvalues;
	if (values->filter >= 0)
		add_value(set, values->filter);
	if (values->all_rows)
		add_arguments(distinct, set);
	find_sources(distinct, set);
	if (values->sorted)
		set->sort = row_sort_open(spec, values, set->value_col, set->nvalues, spec->nkeys,
								  distinct->composite.env.mem_limit);
	if (!values->all_rows)
		open_set_engine(distinct, ops, set);
}

/* Makes the inner spec, with a mark for each set, and opens the inner engine. */
static void
open_inner(DistinctEngine *distinct, const EngineOps *ops)
{
	InnerEngine *inner = &distinct->inner;
	CompositeEngine *composite = &distinct->composite;

	inner_copy_spec(inner, composite->spec, 1 + distinct->nsets);
	inner->spec.ndistincts = 0;
	for (int s = 0; s < inner->spec.nslots; s++)
	{
		SlotSpec *slot = &inner->spec.slots[s];

		slot->filter =
			slot->set > 0 ? inner_mark(inner, slot->set) : inner_input_filter(inner, slot->filter);
	}
	for (int f = 0; f < inner->spec.nfallbacks; f++)
	{
		FallbackAgg *fallback = &inner->spec.fallbacks[f];

		fallback->filter = fallback->set > 0 ? inner_mark(inner, fallback->set) :
											   inner_input_filter(inner, fallback->filter);
	}
	inner_add_columns(inner, NULL, 0, composite->env.batch_rows);
	inner->engine = composite_add_engine(composite, ops->open(&inner->spec, &composite->env));
}

/* ---- rows in ------------------------------------------------------------------------ */

/*
 * Makes values of the set NULL in rows whose filter is not true.  Such a row only makes its group
 * of the query exist, so its values do not matter.  Keys of the query keep their values.
 */
static void
mask_values(DistinctEngine *distinct, RowSet *set)
{
	int nkeys = distinct->composite.spec->nkeys;
	const Column *filter = &set->batch.cols[set->spec.keys[set->spec.nkeys - 1].col];
	int words = BITMAP_WORDS(set->batch.nrows);

	for (int v = nkeys; v < set->spec.nkeys - 1; v++)
	{
		int c = set->spec.keys[v].col;
		Column *col = &set->batch.cols[c];
		bool shared = col == filter;

		for (int k = 0; k < nkeys; k++)
			shared |= set->spec.keys[k].col == c;
		if (shared)
			continue;
		if (set->masked[c] == NULL)
			set->masked[c] = MemoryContextAlloc(distinct->composite.env.cxt,
												BITMAP_WORDS(set->batch.capacity) * sizeof(uint64));
		for (int w = 0; w < words; w++)
		{
			uint64 passed = filter->validity ? filter->validity[w] : ~UINT64CONST(0);
			int end = Min(set->batch.nrows - w * 64, 64);

			for (int i = 0; i < end; i++)
				passed &= ~((uint64) (((const int8 *) filter->values)[w * 64 + i] == 0) << i);
			set->masked[c][w] = passed & (col->validity ? col->validity[w] : ~UINT64CONST(0));
		}
		col->validity = set->masked[c];
	}
}

/* Adds rows of the input to a set: to its sort or its engine. */
static EngineStatus
add_set_rows(DistinctEngine *distinct, RowSet *set, const Batch *batch)
{
	if (set->set->all_rows)
	{
		row_sort_batch(set->sort, batch);
		return ENGINE_OK;
	}
	set->batch.nrows = batch->nrows;
	for (int c = 0; c < set->batch.ncols; c++)
		set->batch.cols[c] = batch->cols[set->cols[c]];
	if (set->filter >= 0)
		mask_values(distinct, set);
	return composite_status(&distinct->composite, set->engine,
							set->engine->ops->add_batch(set->engine, &set->batch));
}

/* EngineOps.add_batch: adds rows of the input to the inner engine and to all row sets. */
static EngineStatus
distinct_add_batch(Engine *base, const Batch *batch)
{
	DistinctEngine *distinct = (DistinctEngine *) base;

	distinct->composite.rows += batch->nrows;
	distinct->composite.batches++;
	if (inner_add_input(&distinct->composite, &distinct->inner, batch) != ENGINE_OK)
		return ENGINE_FAILED;
	for (int s = 0; s < distinct->nsets; s++)
		if (add_set_rows(distinct, &distinct->sets[s], batch) != ENGINE_OK)
			return ENGINE_FAILED;
	return ENGINE_OK;
}

/* ---- rows of sets to the inner engine ------------------------------------------------- */

/* Begins a batch for the inner engine with rows of the set. */
static void
begin_rows(DistinctEngine *distinct, RowSet *set)
{
	Batch *batch = &distinct->builder.batch;

	row_builder_begin(&distinct->builder);
	for (int c = 0; c < distinct->composite.spec->ncols; c++)
		if (set->value_of[c] < 0)
			batch->cols[c].validity = distinct->inner.nulls;
	inner_set_marks(&distinct->inner, batch, set - distinct->sets + 1, distinct->marks);
}

/* Gives the rows built so far to the inner engine, and begins the next batch. */
static EngineStatus
flush_rows(DistinctEngine *distinct, RowSet *set)
{
	EngineStatus status;

	CHECK_FOR_INTERRUPTS();
	status = inner_add_rows(&distinct->composite, &distinct->inner, &distinct->builder.batch);
	begin_rows(distinct, set);
	return status;
}

/*
 * Adds a row of the set to the batch for the inner engine.  If its filter is not true, it only
 * makes its group of the query exist.
 */
static EngineStatus
add_row(DistinctEngine *distinct, RowSet *set, const Datum *values, const bool *nulls)
{
	RowBuilder *builder = &distinct->builder;
	int row = builder->batch.nrows++;
	int filter = set->filter;

	for (int c = 0; c < distinct->composite.spec->ncols; c++)
	{
		int v = set->value_of[c];

		if (v >= 0)
			row_builder_write(builder, c, row, values[v], nulls[v]);
	}
	distinct->marks[row] = filter < 0 || (!nulls[filter] && DatumGetBool(values[filter]));
	return row_builder_is_full(builder) ? flush_rows(distinct, set) : ENGINE_OK;
}

/* Moves the rows of the set's sort to the inner engine. */
static EngineStatus
move_sorted(DistinctEngine *distinct, RowSet *set)
{
	Datum *values;
	bool *nulls;
	EngineStatus status = ENGINE_OK;

	while (status == ENGINE_OK && row_sort_next(set->sort, &values, &nulls))
		status = add_row(distinct, set, values, nulls);
	return status;
}

/*
 * Writes key v of the n groups from number `from` on to column c of the builder's batch, which is
 * empty.  By-reference values are not copied: the caller flushes the batch before the next groups.
 */
static void
write_keys(DistinctEngine *distinct, const GroupBatch *groups, int from, int n, int c, int v)
{
	RowBuilder *builder = &distinct->builder;
	Column *col = &builder->batch.cols[c];
	const KeyCodes *codes = groups->key_codes ? &groups->key_codes[v] : NULL;
	const Datum *values = groups->keys[v] + from;
	const bool *nulls = groups->keynulls[v] + from;
	bool borrows = col->type == COLUMN_DATUM;

	for (int i = 0; i < n; i++)
	{
		if (borrows && !nulls[i])
			((Datum *) col->values)[i] = values[i];
		else
			row_builder_write(builder, c, i, values[i], nulls[i]);
	}
	/* the inner engine keeps an array of all codes */
	if (!borrows || codes == NULL || codes->codes == NULL ||
		codes->ncodes > distinct->composite.env.mem_least / CODE_MEMORY)
		return;
	col->codes = codes->codes + from;
	col->ncodes = codes->ncodes;
	col->dictionary = codes->dictionary;
}

/* Gives the groups of a set's engine to the inner engine, as rows. */
static EngineStatus
add_groups(DistinctEngine *distinct, RowSet *set, const GroupBatch *groups)
{
	const AggSpec *spec = distinct->composite.spec;
	Batch *batch = &distinct->builder.batch;
	int filter = set->filter;
	EngineStatus status = ENGINE_OK;

	for (int from = 0; from < groups->ngroups && status == ENGINE_OK; from += batch->capacity)
	{
		int n = Min(groups->ngroups - from, batch->capacity);

		for (int c = 0; c < spec->ncols; c++)
			if (set->value_of[c] >= 0)
				write_keys(distinct, groups, from, n, c, set->value_of[c]);
		for (int i = 0; i < n; i++)
			distinct->marks[i] = filter < 0 ||
				(!groups->keynulls[filter][from + i] &&
				 DatumGetBool(groups->keys[filter][from + i]));
		batch->nrows = n;
		status = flush_rows(distinct, set);
		for (int c = 0; c < spec->ncols; c++)
			batch->cols[c].codes = NULL;
	}
	return status;
}

/* Moves the groups of the set's engine to its sort, or else to the inner engine. */
static EngineStatus
move_groups(DistinctEngine *distinct, RowSet *set)
{
	int nkeys = set->spec.nkeys;
	Datum *keys = palloc(sizeof(Datum) * nkeys);
	bool *nulls = palloc(sizeof(bool) * nkeys);
	GroupBatch groups = {0};
	EngineStatus status = ENGINE_OK;

	while (status == ENGINE_OK && set->engine->ops->next_groups(set->engine, &groups))
	{
		if (!set->sort)
			status = add_groups(distinct, set, &groups);
		for (int g = 0; set->sort && g < groups.ngroups; g++)
		{
			for (int k = 0; k < nkeys; k++)
			{
				keys[k] = groups.keys[k][g];
				nulls[k] = groups.keynulls[k][g];
			}
			row_sort_row(set->sort, keys, nulls);
		}
	}
	pfree(keys);
	pfree(nulls);
	return status == ENGINE_OK ? composite_check(&distinct->composite, set->engine) : status;
}

/*
 * Finishes a set, or a partition of its values if `part`: gives its rows to the inner engine, and
 * frees their memory.
 */
static EngineStatus
finish_set(DistinctEngine *distinct, RowSet *set, bool part)
{
	Engine *engine = set->engine;
	MemoryContext cxt, old;
	EngineStatus status = ENGINE_OK;

	if (engine &&
		composite_status(&distinct->composite, engine, engine->ops->finish(engine)) != ENGINE_OK)
		return ENGINE_FAILED;
	begin_rows(distinct, set);
	cxt = AllocSetContextCreate(distinct->composite.env.cxt, "gpuagg distinct values",
								ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(cxt);
	if (engine)
		status = move_groups(distinct, set);
	if (engine && status == ENGINE_OK)
	{
		/* EXPLAIN shows how rows were reduced, not how partitions are merged */
		if (part)
			engine->ops->begin_part(engine, 0);
		else
			engine->ops->reset(engine);
	}
	if (set->sort && status == ENGINE_OK)
		status = move_sorted(distinct, set);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(cxt);
	if (status == ENGINE_OK)
		status = flush_rows(distinct, set);
	if (set->sort)
		row_sort_reset(set->sort);
	return status;
}

/* EngineOps.finish: gives the rows of all sets to the inner engine, and finishes it. */
static EngineStatus
distinct_finish(Engine *base)
{
	DistinctEngine *distinct = (DistinctEngine *) base;
	Engine *inner = distinct->inner.engine;

	for (int s = 0; s < distinct->nsets && !distinct->values_added; s++)
		if (finish_set(distinct, &distinct->sets[s], false) != ENGINE_OK)
			return ENGINE_FAILED;
	return composite_status(&distinct->composite, inner, inner->ops->finish(inner));
}

/* EngineOps.next_groups: returns groups of the inner engine. */
static bool
distinct_next_groups(Engine *base, GroupBatch *out)
{
	DistinctEngine *distinct = (DistinctEngine *) base;
	Engine *inner = distinct->inner.engine;
	bool more = inner->ops->next_groups(inner, out);

	composite_check(&distinct->composite, inner);
	return more;
}

/* ---- distinct values of parallel participants ------------------------------------------ */

/* EngineOps.distinct_values: returns the engine of a set, or NULL if there are fewer sets. */
static Engine *
distinct_values(Engine *base, int set)
{
	DistinctEngine *distinct = (DistinctEngine *) base;

	return set < distinct->nsets ? distinct->sets[set].engine : NULL;
}

/* EngineOps.add_distinct_values: adds the values of a partition to the inner engine. */
static EngineStatus
distinct_add_values(Engine *base, int set)
{
	DistinctEngine *distinct = (DistinctEngine *) base;

	return finish_set(distinct, &distinct->sets[set], true);
}

/* EngineOps.export_groups, once values have been added: exports the groups of the query. */
static EngineStatus
export_inner(Engine *base, GroupSink *sink)
{
	DistinctEngine *distinct = (DistinctEngine *) base;
	Engine *inner = distinct->inner.engine;

	return composite_status(&distinct->composite, inner, inner->ops->export_groups(inner, sink));
}

/* EngineOps.import_groups, for such an export. */
static EngineStatus
import_inner(Engine *base, GroupSource *source)
{
	DistinctEngine *distinct = (DistinctEngine *) base;
	Engine *inner = distinct->inner.engine;

	return composite_status(&distinct->composite, inner, inner->ops->import_groups(inner, source));
}

/* EngineOps.import_rows, for such an export. */
static EngineStatus
import_inner_rows(Engine *base, int section, const char *rows, uint32 n)
{
	DistinctEngine *distinct = (DistinctEngine *) base;
	Engine *inner = distinct->inner.engine;

	return composite_status(&distinct->composite, inner,
							inner->ops->import_rows(inner, section, rows, n));
}

/* EngineOps.begin_part, once values have been added. */
static void
begin_inner_part(Engine *base, uint32 groups)
{
	Engine *inner = ((DistinctEngine *) base)->inner.engine;

	inner->ops->begin_part(inner, groups);
}

/* EngineOps.end_distinct_values: from now on, only the inner engine has something to exchange. */
static void
end_distinct_values(Engine *base)
{
	DistinctEngine *distinct = (DistinctEngine *) base;
	EngineOps *ops = &distinct->composite.ops;

	distinct->values_added = true;
	ops->export_groups = export_inner;
	ops->import_groups = import_inner;
	ops->import_rows = import_inner_rows;
	ops->begin_part = distinct->inner.engine->ops->begin_part ? begin_inner_part : NULL;
}

/* Lets the engine exchange values and groups together again. */
static void
begin_distinct_values(DistinctEngine *distinct)
{
	EngineOps *ops = &distinct->composite.ops;

	distinct->values_added = false;
	ops->export_groups = composite_export_groups;
	ops->import_groups = composite_import_groups;
	ops->import_rows = NULL;
	ops->begin_part = NULL;
}

/*
 * Returns whether participants may exchange values before groups: not if there are too many sets.
 * If a set is sorted, the rows of a group must come from one participant.
 */
static bool
may_exchange_values(const AggSpec *spec)
{
	for (int s = 0; s < spec->ndistincts; s++)
		if (spec->distincts[s].sorted)
			return false;
	return spec->ndistincts <= ENGINE_MAX_VALUE_SETS;
}

/* Offers participants to exchange values before groups. */
static void
offer_distinct_values(EngineOps *ops)
{
	ops->distinct_values = distinct_values;
	ops->add_distinct_values = distinct_add_values;
	ops->end_distinct_values = end_distinct_values;
}

/* ---- reset, statistics, close -------------------------------------------------------- */

/* Removes the rows of all sorts. */
static void
reset_sorts(DistinctEngine *distinct)
{
	for (int s = 0; s < distinct->nsets; s++)
		if (distinct->sets[s].sort)
			row_sort_reset(distinct->sets[s].sort);
}

/* EngineOps.reset: removes all rows and groups. */
static void
distinct_reset(Engine *base)
{
	DistinctEngine *distinct = (DistinctEngine *) base;

	composite_reset_engines(&distinct->composite);
	reset_sorts(distinct);
	begin_distinct_values(distinct);
}

/* EngineOps.close: closes all engines and ends all sorts. */
static void
distinct_close(Engine *base)
{
	reset_sorts((DistinctEngine *) base);
	composite_close(base);
}

/* Adds the memory or files that a sort has used to the statistics. */
static void
add_sort_stats(const RowSort *sort, EngineStats *stats)
{
	bool disk;
	int64 bytes = row_sort_space(sort, &disk);

	if (disk)
		stats->spilled_bytes += bytes;
	else
		stats->mem_peak += bytes;
}

/* Appends a set's strategy; it names the engine unless that is the default one. */
static void
describe_set(const EngineOps *ops, const EngineStats *set, char *strategy, size_t size)
{
	bool is_default = ops == engines_default();

	snprintf(strategy + strlen(strategy), size - strlen(strategy), ", distinct values: %s%s%s",
			 is_default ? "" : ops->name, is_default ? "" : ", ", set->strategy);
}

/*
 * EngineOps.stats: sums of all engines, except that the rows are those of the input, and the groups
 * those of the query.
 */
static void
distinct_stats(Engine *base, EngineStats *stats)
{
	DistinctEngine *distinct = (DistinctEngine *) base;
	char strategy[sizeof(stats->strategy)];
	uint64 groups;

	distinct->inner.engine->ops->stats(distinct->inner.engine, stats);
	groups = stats->groups;
	strlcpy(strategy, stats->strategy, sizeof(strategy));
	for (int s = 0; s < distinct->nsets; s++)
	{
		const RowSet *set = &distinct->sets[s];
		EngineStats own;

		if (set->sort)
			add_sort_stats(set->sort, stats);
		if (set->engine == NULL)
		{
			strlcat(strategy, ", rows in order: sort", sizeof(strategy));
			continue;
		}
		set->engine->ops->stats(set->engine, &own);
		describe_set(set->engine->ops, &own, strategy, sizeof(strategy));
		engine_stats_add(stats, &own);
	}
	stats->rows = distinct->composite.rows;
	stats->batches = distinct->composite.batches;
	stats->groups = groups;
	strlcpy(stats->strategy, strategy, sizeof(stats->strategy));
}

Engine *
distinct_open(const EngineOps *ops, const AggSpec *spec, const EngineEnv *env, bool choose)
{
	MemoryContext old = MemoryContextSwitchTo(env->cxt);
	DistinctEngine *distinct = palloc0(sizeof(DistinctEngine));
	CompositeEngine *composite = &distinct->composite;

	composite_init(composite, ops, spec, env, 1 + spec->ndistincts);
	composite->ops.add_batch = distinct_add_batch;
	composite->ops.finish = distinct_finish;
	composite->ops.next_groups = distinct_next_groups;
	composite->ops.reset = distinct_reset;
	composite->ops.stats = distinct_stats;
	composite->ops.close = distinct_close;
	composite->env.mem_limit = Max(env->mem_limit / (spec->ndistincts + 1), env->mem_least);
	distinct->choose = choose;
	distinct->offers = may_exchange_values(spec);
	distinct->early_sink = env->early_sink;
	distinct->nsets = spec->ndistincts;
	open_inner(distinct, ops);
	row_builder_init(&distinct->builder, &distinct->inner.spec, spec->ncols, env->batch_rows);
	distinct->marks = palloc0(env->batch_rows);
	distinct->sets = palloc0(sizeof(RowSet) * spec->ndistincts);
	for (int s = 0; s < spec->ndistincts; s++)
		open_set(distinct, ops, &distinct->sets[s], &spec->distincts[s]);
	if (distinct->offers)
		offer_distinct_values(&composite->ops);
	MemoryContextSwitchTo(old);
	return &composite->base;
}
