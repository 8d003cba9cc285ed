/*
 * distinct.c
 *	  Aggregates of DISTINCT values: an engine made of engines.
 *
 * For each set of values (DistinctSpec) there is an engine that groups by the query's keys, the
 * values and the filter, and has no aggregates: its groups are the distinct values.  One more, the
 * inner engine, has the query's keys and all of its aggregates.  It gets all rows for aggregates of
 * other kinds; and when the input has ended, the groups of the sets as rows, in which columns that
 * belong to no key and no value of the set are NULL.  A column for each set, and one for all rows,
 * says which aggregates a row is for: they are the filters of these aggregates.
 *
 * Where an aggregate shows the order of its rows (array_agg, a sum of floats) the groups of its set
 * are sorted by the values first: core sorts to find what is distinct, and so its aggregates see
 * values in that order.
 *
 * Aggregates with an ORDER BY of their own have a set without an engine: all rows, sorted by it.
 *
 * The inner engine is the default one; sets may have another, as each is a grouping like any other.
 *
 * Participants of a parallel plan export what all of their engines have, one after the other; the
 * one that imports it has the distinct values of all.
 *
 * Memory: each engine and sort has its share of EngineEnv.mem_limit, but no less than work_mem, as
 * each of core's sorts of distinct values has, and spills beyond.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type_d.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "columns/arena.h"
#include "columns/column_writer.h"
#include "engines/engines.h"
#include "exec/distinct.h"
#include "exec/keys.h"
#include "exec/pieces.h"
#include "exec/row_sort.h"
#include "plan/supported.h"

typedef struct DistinctSet
{
	const DistinctSpec *set;
	int nvalues; /* that a row of the set has: the query's keys, its own values, the filter, others
				  */
	int *value_col; /* [value] column of the query's spec */
	int filter;     /* value that is the filter, or -1 */
	int *value_of;  /* [column of the query's spec] value that it is written from, or -1 */

	/* the engine; NULL for all rows in an order */
	Engine *engine;
	AggSpec spec; /* keys: the query's, the values, the filter */
	int *cols;    /* [column of it] of the query's spec */
	Batch batch;
	uint64 **masked; /* [column of it] validity, where the filter is true */
	RowSort *sort;   /* or NULL */
} DistinctSet;

typedef struct DistinctEngine
{
	Engine base;
	EngineOps ops;
	const AggSpec *spec;
	EngineEnv env;
	AggSpec inner_spec; /* its last columns: the mark of all rows, one of each set, and filters */
	int nfilters;
	int *filters; /* [filter] column of the query, whose rows of all it is of */
	Engine *inner;
	bool choose;   /* sets have the engine that is best for them */
	bool all_rows; /* some aggregate is of all rows */
	uint64 rows;
	uint64 batches;
	DistinctSet *sets;
	Batch batch; /* for the inner engine */
	int8 *ones;
	int8 *zeros;
	int8 *marks; /* of the rows of `unique` */
	uint64 *nulls;

	/* groups as rows */
	Arena arena;
	Batch unique;
	ColumnWriter *writers;
} DistinctEngine;

/* ---- sets ----------------------------------------------------------------------- */

int
distinct_add(AggSpec *spec, Aggref *aggref, const int *args, int filter, bool sorts)
{
	DistinctSpec set = {.all_rows = sorts, .sorted = sorts};
	List *clauses = sorts ? aggref->aggorder : aggref->aggdistinct;
	int n = list_length(clauses);
	ListCell *lc;

	if (n == 0)
		return 0;
	set.values = palloc0(sizeof(KeySpec) * n);
	set.sortops = palloc0(sizeof(Oid) * n);
	set.nulls_first = palloc0(sizeof(bool) * n);
	set.filter = -1;
	foreach (lc, clauses)
	{
		SortGroupClause *clause = lfirst_node(SortGroupClause, lc);
		TargetEntry *tle = get_sortgroupclause_tle(clause, aggref->args);
		Node *expr = (Node *) tle->expr;
		Oid eqfunc = InvalidOid, hashfunc = InvalidOid;

		/* a sort needs neither */
		if (!sorts && !supported_key_functions(clause->eqop, exprType(expr), &eqfunc, &hashfunc))
			elog(ERROR, "equality operator %u is not hashable", clause->eqop);
		set.sortops[set.nvalues] = clause->sortop;
		set.nulls_first[set.nvalues] = clause->nulls_first;
		keys_init(spec, &set.values[set.nvalues++], expr, args[tle->resno - 1], eqfunc, hashfunc,
				  exprCollation(expr));
	}
	if (filter >= 0)
	{
		ColumnSpec col = {.input = filter,
						  .type = COLUMN_I8,
						  .typid = BOOLOID,
						  .typmod = -1,
						  .typlen = 1,
						  .typbyval = true};

		set.filter = spec_add_column(spec, &col);
	}
	return spec_add_distinct(spec, &set) + 1;
}

/* Takes over what an engine of these has to say. */
static EngineStatus
note(DistinctEngine *distinct, Engine *engine, EngineStatus status)
{
	distinct->base.errors |= engine->errors;
	if (status != ENGINE_OK)
	{
		strlcpy(distinct->base.failure, engine->failure, sizeof(distinct->base.failure));
		/* the one that messages name */
		distinct->ops.name = engine->ops->name;
	}
	return status;
}

/* Adds a key of the set's engine that is this column of the query. */
static void
add_set_key(DistinctEngine *distinct, DistinctSet *set, KeySpec key)
{
	AggSpec *spec = &set->spec;
	int col = key.col;

	key.col = spec_add_column(spec, &distinct->spec->cols[col]);
	set->cols[key.col] = col;
	spec->keys[spec->nkeys++] = key;
}

static void
add_value(DistinctSet *set, int col)
{
	if (set->value_of[col] < 0)
		set->value_of[col] = set->nvalues;
	set->value_col[set->nvalues++] = col;
}

/*
 * Can column `to` be written from values of column `from`?  Not from mere presence.  (Nor from
 * decimals of any scale: sets have none.)
 */
static bool
has_values_of(const ColumnSpec *from, const ColumnSpec *to)
{
	Assert(from->form == NUMERIC_ONE_SCALE);
	return from == to || (from->input == to->input && !from->presence);
}

/* The same, unless a value that it can be written from is there. */
static void
add_value_once(DistinctEngine *distinct, DistinctSet *set, int col)
{
	const ColumnSpec *cols = distinct->spec->cols;

	for (int v = 0; v < set->nvalues; v++)
		if (col < 0 || has_values_of(&cols[set->value_col[v]], &cols[col]))
			return;
	if (col >= 0)
		add_value(set, col);
}

/* What the aggregates of a set read, where its own values do not tell. */
static void
add_arguments(DistinctEngine *distinct, DistinctSet *set)
{
	const AggSpec *spec = distinct->spec;
	int number = set - distinct->sets + 1;

	for (int s = 0; s < spec->nslots; s++)
		for (int i = 0; i < 2 && spec->slots[s].set == number; i++)
			add_value_once(distinct, set, spec->slots[s].col[i]);
	for (int f = 0; f < spec->nfallbacks; f++)
		for (int a = 0; a < spec->fallbacks[f].nargs && spec->fallbacks[f].set == number; a++)
			add_value_once(distinct, set, spec->fallbacks[f].argcol[a]);
}

/*
 * Columns of the query that the set's values can be written to: its keys, and columns
 * of the same inputs in other types, which aggregates read.
 */
static void
find_sources(DistinctEngine *distinct, DistinctSet *set)
{
	const AggSpec *spec = distinct->spec;

	for (int c = 0; c < spec->ncols; c++)
		for (int v = 0; v < set->nvalues && set->value_of[c] < 0; v++)
			if (has_values_of(&spec->cols[set->value_col[v]], &spec->cols[c]))
				set->value_of[c] = v;
}

/* The engine for a set: `ops`, or the one that is best for such a grouping. */
static const EngineOps *
choose_set_engine(const DistinctEngine *distinct, const EngineOps *ops, const DistinctSet *set)
{
	EngineQuery query = {
		.spec = &set->spec,
		.input.parallel = distinct->env.input.parallel,
		.input.read_once = distinct->env.input.read_once,
		.work.rows = distinct->env.est_rows,
		.work.values = set->spec.nkeys,
		.work.columns = set->spec.ncols,
	};
	char reason[256];

	return distinct->choose ? engines_choose(&query, reason, sizeof(reason)) : ops;
}

static void
open_set_engine(DistinctEngine *distinct, const EngineOps *ops, DistinctSet *set)
{
	const AggSpec *spec = distinct->spec;
	const DistinctSpec *values = set->set;
	EngineEnv env = distinct->env;

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
	/* between all groups and all rows */
	env.est_groups = sqrt(Max(env.est_rows, 1) * Max(env.est_groups, 1));
	set->engine = choose_set_engine(distinct, ops, set)->open(&set->spec, &env);
	note(distinct, set->engine, set->engine->failure[0] == '\0' ? ENGINE_OK : ENGINE_FAILED);
}

static void
open_set(DistinctEngine *distinct, const EngineOps *ops, DistinctSet *set,
		 const DistinctSpec *values)
{
	const AggSpec *spec = distinct->spec;

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
								  distinct->env.mem_limit);
	if (!values->all_rows)
		open_set_engine(distinct, ops, set);
}

/* ---- the inner engine ------------------------------------------------------------- */

/* A column of the inner engine that says which rows are of a set; 0: all rows. */
static int
mark_column(const DistinctEngine *distinct, int set)
{
	return distinct->spec->ncols + set;
}

/*
 * The inner engine's column for the filter of an aggregate of all rows.  It is not the query's,
 * which may be a key too, or a value or the filter of a set, and true in a row of that set.
 */
static int
filter_column(DistinctEngine *distinct, int filter)
{
	int f = 0;

	while (f < distinct->nfilters && distinct->filters[f] != filter)
		f++;
	if (f == distinct->nfilters)
		distinct->filters[distinct->nfilters++] = filter;
	return mark_column(distinct, distinct->spec->ndistincts + 1 + f);
}

/* The filter of what takes the rows of this set, and has this filter of its own, or -1. */
static int
inner_filter(DistinctEngine *distinct, int set, int filter)
{
	distinct->all_rows |= set == 0;
	return filter < 0 ? mark_column(distinct, set) : filter_column(distinct, filter);
}

/* A copy of n entries, with room for more of them.  There may be none, and `from` be NULL. */
static void *
copy_entries(const void *from, int n, int more, size_t size)
{
	void *copy = palloc(size * (n + more + 1));

	if (n > 0)
		memcpy(copy, from, size * n);
	return copy;
}

/* The query's spec with marks, which filter what each aggregate takes. */
static void
make_inner_spec(DistinctEngine *distinct)
{
	const AggSpec *spec = distinct->spec;
	AggSpec *inner = &distinct->inner_spec;
	ColumnSpec mark = {.input = -1,
					   .type = COLUMN_I8,
					   .typid = BOOLOID,
					   .typmod = -1,
					   .typlen = 1,
					   .typbyval = true};

	*inner = *spec;
	inner->ndistincts = 0;
	distinct->filters = palloc(sizeof(int) * (spec->nslots + spec->nfallbacks + 1));
	inner->slots = copy_entries(spec->slots, spec->nslots, 0, sizeof(SlotSpec));
	for (int s = 0; s < spec->nslots; s++)
	{
		SlotSpec *slot = &inner->slots[s];

		slot->filter = inner_filter(distinct, slot->set, slot->filter);
	}
	inner->fallbacks = copy_entries(spec->fallbacks, spec->nfallbacks, 0, sizeof(FallbackAgg));
	for (int f = 0; f < spec->nfallbacks; f++)
	{
		FallbackAgg *fallback = &inner->fallbacks[f];

		fallback->filter = inner_filter(distinct, fallback->set, fallback->filter);
	}
	inner->cols = copy_entries(spec->cols, spec->ncols, 1 + spec->ndistincts + distinct->nfilters,
							   sizeof(ColumnSpec));
	for (int c = 0; c < 1 + spec->ndistincts + distinct->nfilters; c++)
		inner->cols[inner->ncols++] = mark;
}

/*
 * Sets the marks of a batch for the inner engine: this set's to `marks`, the others and their
 * filters to false.
 */
static void
set_marks(DistinctEngine *distinct, Batch *batch, int set, int8 *marks)
{
	for (int s = 0; s <= distinct->spec->ndistincts + distinct->nfilters; s++)
	{
		Column *col = &batch->cols[mark_column(distinct, s)];

		memset(col, 0, sizeof(*col));
		col->type = COLUMN_I8;
		col->values = s == set ? marks : distinct->zeros;
		/* so that the others' aggregates need not look at it */
		col->has_bounds = s != set;
	}
}

/*
 * Rows for which the filter is not true only make a group: their values, which need not be told
 * apart, are NULL to the set's engine, unless the query groups by them.
 */
static void
mask_values(DistinctEngine *distinct, DistinctSet *set)
{
	const AggSpec *spec = distinct->spec;
	const Column *filter = &set->batch.cols[set->spec.keys[set->spec.nkeys - 1].col];
	int words = BITMAP_WORDS(set->batch.nrows);

	for (int v = spec->nkeys; v < set->spec.nkeys - 1; v++)
	{
		int c = set->spec.keys[v].col;
		Column *col = &set->batch.cols[c];
		bool shared = col == filter;

		for (int k = 0; k < spec->nkeys; k++)
			shared |= set->spec.keys[k].col == c;
		if (shared)
			continue;
		if (set->masked[c] == NULL)
			set->masked[c] = MemoryContextAlloc(distinct->env.cxt,
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

static EngineStatus
add_batch(Engine *base, const Batch *batch)
{
	DistinctEngine *distinct = (DistinctEngine *) base;
	int ncols = distinct->spec->ncols;

	distinct->rows += batch->nrows;
	distinct->batches++;
	if (distinct->all_rows)
	{
		distinct->batch.nrows = batch->nrows;
		memcpy(distinct->batch.cols, batch->cols, sizeof(Column) * ncols);
		set_marks(distinct, &distinct->batch, 0, distinct->ones);
		for (int f = 0; f < distinct->nfilters; f++)
			distinct->batch.cols[mark_column(distinct, distinct->spec->ndistincts + 1 + f)] =
				batch->cols[distinct->filters[f]];
		if (note(distinct, distinct->inner,
				 distinct->inner->ops->add_batch(distinct->inner, &distinct->batch)) != ENGINE_OK)
			return ENGINE_FAILED;
	}
	for (int s = 0; s < distinct->spec->ndistincts; s++)
	{
		DistinctSet *set = &distinct->sets[s];

		if (set->set->all_rows)
		{
			row_sort_batch(set->sort, batch);
			continue;
		}
		set->batch.nrows = batch->nrows;
		for (int c = 0; c < set->batch.ncols; c++)
			set->batch.cols[c] = batch->cols[set->cols[c]];
		if (set->filter >= 0)
			mask_values(distinct, set);
		if (note(distinct, set->engine, set->engine->ops->add_batch(set->engine, &set->batch)) !=
			ENGINE_OK)
			return ENGINE_FAILED;
	}
	return ENGINE_OK;
}

/* ---- groups as rows ----------------------------------------------------------------- */

static void
begin_unique(DistinctEngine *distinct, DistinctSet *set)
{
	arena_reset(&distinct->arena);
	distinct->unique.nrows = 0;
	for (int c = 0; c < distinct->spec->ncols; c++)
	{
		column_begin(&distinct->writers[c]);
		if (set->value_of[c] < 0)
			distinct->unique.cols[c].validity = distinct->nulls;
	}
	set_marks(distinct, &distinct->unique, set - distinct->sets + 1, distinct->marks);
}

static EngineStatus
flush_unique(DistinctEngine *distinct, DistinctSet *set)
{
	EngineStatus status = ENGINE_OK;

	CHECK_FOR_INTERRUPTS();
	if (distinct->unique.nrows > 0)
		status = note(distinct, distinct->inner,
					  distinct->inner->ops->add_batch(distinct->inner, &distinct->unique));
	begin_unique(distinct, set);
	return status;
}

/* Adds a row of the set.  Where the filter is not true it only makes the group. */
static EngineStatus
add_unique(DistinctEngine *distinct, DistinctSet *set, const Datum *values, const bool *nulls)
{
	Batch *batch = &distinct->unique;
	int row = batch->nrows++;
	int filter = set->filter;

	for (int c = 0; c < distinct->spec->ncols; c++)
	{
		int v = set->value_of[c];

		if (v < 0)
			continue;
		if (nulls[v])
			column_write_null(&distinct->writers[c], row);
		else
			column_write(&distinct->writers[c], row, values[v]);
	}
	distinct->marks[row] = filter < 0 || (!nulls[filter] && DatumGetBool(values[filter]));
	if (batch->nrows == batch->capacity || distinct->arena.bytes >= BATCH_BYTES)
		return flush_unique(distinct, set);
	return ENGINE_OK;
}

/* The rows of the set's sort to the inner engine. */
static EngineStatus
move_sorted(DistinctEngine *distinct, DistinctSet *set)
{
	Datum *values;
	bool *nulls;
	EngineStatus status = ENGINE_OK;

	while (status == ENGINE_OK && row_sort_next(set->sort, &values, &nulls))
		status = add_unique(distinct, set, values, nulls);
	return status;
}

/* The groups of the set's engine, which is finished, to its sort or to the inner engine. */
static EngineStatus
move_groups(DistinctEngine *distinct, DistinctSet *set)
{
	int nkeys = set->spec.nkeys;
	Datum *keys = palloc(sizeof(Datum) * nkeys);
	bool *nulls = palloc(sizeof(bool) * nkeys);
	GroupBatch groups;
	EngineStatus status = ENGINE_OK;

	while (status == ENGINE_OK && set->engine->ops->next_groups(set->engine, &groups))
		for (int g = 0; g < groups.ngroups && status == ENGINE_OK; g++)
		{
			for (int k = 0; k < nkeys; k++)
			{
				keys[k] = groups.keys[k][g];
				nulls[k] = groups.keynulls[k][g];
			}
			if (set->sort)
				row_sort_row(set->sort, keys, nulls);
			else
				status = add_unique(distinct, set, keys, nulls);
		}
	pfree(keys);
	pfree(nulls);
	return status;
}

static EngineStatus
finish_set(DistinctEngine *distinct, DistinctSet *set)
{
	Engine *engine = set->engine;
	MemoryContext cxt, old;
	EngineStatus status = ENGINE_OK;

	if (engine && note(distinct, engine, engine->ops->finish(engine)) != ENGINE_OK)
		return ENGINE_FAILED;
	begin_unique(distinct, set);
	cxt =
		AllocSetContextCreate(distinct->env.cxt, "gpuagg distinct values", ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(cxt);
	if (engine)
		status = move_groups(distinct, set);
	/* its memory is not needed any more */
	if (engine && status == ENGINE_OK)
	{
		status = note(distinct, engine, engine->failure[0] == '\0' ? ENGINE_OK : ENGINE_FAILED);
		engine->ops->reset(engine);
	}
	if (set->sort && status == ENGINE_OK)
		status = move_sorted(distinct, set);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(cxt);
	if (status == ENGINE_OK)
		status = flush_unique(distinct, set);
	if (set->sort)
		row_sort_reset(set->sort);
	return status;
}

static EngineStatus
finish(Engine *base)
{
	DistinctEngine *distinct = (DistinctEngine *) base;

	for (int s = 0; s < distinct->spec->ndistincts; s++)
		if (finish_set(distinct, &distinct->sets[s]) != ENGINE_OK)
			return ENGINE_FAILED;
	return note(distinct, distinct->inner, distinct->inner->ops->finish(distinct->inner));
}

static bool
next_groups(Engine *base, GroupBatch *out)
{
	DistinctEngine *distinct = (DistinctEngine *) base;
	bool more = distinct->inner->ops->next_groups(distinct->inner, out);

	note(distinct, distinct->inner,
		 distinct->inner->failure[0] == '\0' ? ENGINE_OK : ENGINE_FAILED);
	return more;
}

/* ---- participants -------------------------------------------------------------------- */

/*
 * Engine i of all: those of the sets, and then the inner one; NULL for rows that are only sorted.
 */
static Engine *
engine_at(DistinctEngine *distinct, int i)
{
	return i < distinct->spec->ndistincts ? distinct->sets[i].engine : distinct->inner;
}

static EngineStatus
export_groups(Engine *base, GroupSink *sink)
{
	DistinctEngine *distinct = (DistinctEngine *) base;
	for (int i = 0; i <= distinct->spec->ndistincts; i++)
	{
		Engine *engine = engine_at(distinct, i);

		if (note(distinct, engine, pieces_export(engine, sink)) != ENGINE_OK)
			return ENGINE_FAILED;
	}
	return ENGINE_OK;
}

static EngineStatus
import_groups(Engine *base, GroupSource *source)
{
	DistinctEngine *distinct = (DistinctEngine *) base;

	for (int i = 0; i <= distinct->spec->ndistincts; i++)
	{
		Engine *engine = engine_at(distinct, i);

		if (note(distinct, engine, pieces_import(engine, source)) != ENGINE_OK)
			return ENGINE_FAILED;
	}
	return ENGINE_OK;
}

/* ---- the rest -------------------------------------------------------------------------- */

static void
reset_sorts(DistinctEngine *distinct)
{
	for (int s = 0; s < distinct->spec->ndistincts; s++)
		if (distinct->sets[s].sort)
			row_sort_reset(distinct->sets[s].sort);
}

/* Adds what a sort of all rows has used. */
static void
sort_stats(const RowSort *sort, EngineStats *stats)
{
	bool disk;
	int64 bytes = row_sort_space(sort, &disk);

	if (disk)
		stats->spilled_bytes += bytes;
	else
		stats->mem_peak += bytes;
}

static void
reset(Engine *base)
{
	DistinctEngine *distinct = (DistinctEngine *) base;

	for (int i = 0; i <= distinct->spec->ndistincts; i++)
		if (engine_at(distinct, i))
			engine_at(distinct, i)->ops->reset(engine_at(distinct, i));
	reset_sorts(distinct);
	base->errors = 0;
}

/* Adds to the strategy, which names the engine where it is not the default one. */
static void
describe_set(const EngineOps *ops, const EngineStats *set, char *strategy, size_t size)
{
	bool on_default = ops == engines_default();

	snprintf(strategy + strlen(strategy), size - strlen(strategy), ", distinct values: %s%s%s",
			 on_default ? "" : ops->name, on_default ? "" : ", ", set->strategy);
}

/*
 * Rows are those of the input, and groups those of the query, whatever the engines of the sets
 * have.
 */
static void
stats(Engine *base, EngineStats *stats)
{
	DistinctEngine *distinct = (DistinctEngine *) base;
	char strategy[sizeof(stats->strategy)];
	uint64 groups;

	distinct->inner->ops->stats(distinct->inner, stats);
	groups = stats->groups;
	strlcpy(strategy, stats->strategy, sizeof(strategy));
	for (int s = 0; s < distinct->spec->ndistincts; s++)
	{
		Engine *engine = distinct->sets[s].engine;
		EngineStats set;

		if (distinct->sets[s].sort)
			sort_stats(distinct->sets[s].sort, stats);
		if (engine == NULL)
		{
			strlcat(strategy, ", rows in order: sort", sizeof(strategy));
			continue;
		}
		engine->ops->stats(engine, &set);
		describe_set(engine->ops, &set, strategy, sizeof(strategy));
		engine_stats_add(stats, &set);
	}
	stats->rows = distinct->rows;
	stats->batches = distinct->batches;
	stats->groups = groups;
	strlcpy(stats->strategy, strategy, sizeof(stats->strategy));
}

static void
close_engines(Engine *base)
{
	DistinctEngine *distinct = (DistinctEngine *) base;

	reset_sorts(distinct);
	for (int i = 0; i <= distinct->spec->ndistincts; i++)
		if (engine_at(distinct, i))
			engine_at(distinct, i)->ops->close(engine_at(distinct, i));
}

/* What batches for the inner engine consist of. */
static void
make_batches(DistinctEngine *distinct)
{
	int capacity = distinct->env.batch_rows;
	int ncols = distinct->inner_spec.ncols;

	distinct->ones = palloc(capacity);
	memset(distinct->ones, 1, capacity);
	distinct->zeros = palloc0(capacity);
	distinct->marks = palloc0(capacity);
	distinct->nulls = palloc0(BITMAP_WORDS(capacity) * sizeof(uint64));
	distinct->batch.ncols = distinct->unique.ncols = ncols;
	distinct->batch.capacity = distinct->unique.capacity = capacity;
	distinct->batch.cols = palloc0(sizeof(Column) * ncols);
	distinct->unique.cols = palloc0(sizeof(Column) * ncols);
	distinct->writers = palloc0(sizeof(ColumnWriter) * ncols);
	arena_init(&distinct->arena, distinct->env.cxt);
	for (int c = 0; c < distinct->spec->ncols; c++)
		column_writer_init(&distinct->writers[c], &distinct->unique.cols[c],
						   &distinct->spec->cols[c], capacity, &distinct->arena);
}

Engine *
distinct_open(const EngineOps *ops, const AggSpec *spec, const EngineEnv *env, bool choose)
{
	MemoryContext old = MemoryContextSwitchTo(env->cxt);
	DistinctEngine *distinct = palloc0(sizeof(DistinctEngine));

	distinct->ops = *ops;
	distinct->ops.bind_buffers = NULL;
	distinct->ops.take_resident = NULL;
	distinct->ops.add_batch = add_batch;
	distinct->ops.finish = finish;
	distinct->ops.next_groups = next_groups;
	distinct->ops.export_groups = export_groups;
	distinct->ops.import_groups = import_groups;
	distinct->ops.begin_part = NULL;
	distinct->ops.limit = NULL;
	distinct->ops.reset = reset;
	distinct->ops.stats = stats;
	distinct->ops.close = close_engines;
	distinct->ops.join = NULL;
	distinct->ops.flush = NULL;
	distinct->ops.detach = NULL;
	distinct->base.ops = &distinct->ops;
	distinct->spec = spec;
	distinct->choose = choose;
	distinct->env = *env;
	distinct->env.mem_limit = Max(env->mem_limit / (spec->ndistincts + 1), env->mem_least);
	make_inner_spec(distinct);
	make_batches(distinct);
	distinct->inner = ops->open(&distinct->inner_spec, &distinct->env);
	note(distinct, distinct->inner,
		 distinct->inner->failure[0] == '\0' ? ENGINE_OK : ENGINE_FAILED);
	distinct->sets = palloc0(sizeof(DistinctSet) * spec->ndistincts);
	for (int s = 0; s < spec->ndistincts; s++)
		open_set(distinct, ops, &distinct->sets[s], &spec->distincts[s]);
	MemoryContextSwitchTo(old);
	return &distinct->base;
}
