/*
 * inner.c
 *	  The inner engine that has all aggregates of a query; see inner.h.
 */
#include "postgres.h"

#include "catalog/pg_type_d.h"

#include "composite/inner.h"

/* Returns a copy of an array of n entries of `size` bytes, with room for one more; n may be 0. */
static void *
copy_entries(const void *from, int n, size_t size)
{
	void *copy = palloc0(size * (n + 1));

	if (n > 0)
		memcpy(copy, from, size * n);
	return copy;
}

void
inner_copy_spec(InnerEngine *inner, const AggSpec *spec, int nmarks)
{
	inner->spec = *spec;
	inner->spec.slots = copy_entries(spec->slots, spec->nslots, sizeof(SlotSpec));
	inner->spec.fallbacks = copy_entries(spec->fallbacks, spec->nfallbacks, sizeof(FallbackAgg));
	inner->spec.distincts = copy_entries(spec->distincts, spec->ndistincts, sizeof(DistinctSpec));
	inner->first_mark = spec->ncols;
	inner->nmarks = nmarks;
	inner->filters = palloc(sizeof(int) * (spec->nslots + spec->nfallbacks + spec->ndistincts + 1));
}

int
inner_input_filter(InnerEngine *inner, int filter)
{
	int f = 0;

	inner->takes_input = true;
	if (filter < 0)
		return inner_mark(inner, 0);
	while (f < inner->nfilters && inner->filters[f] != filter)
		f++;
	if (f == inner->nfilters)
		inner->filters[inner->nfilters++] = filter;
	return inner_mark(inner, inner->nmarks + f);
}

void
inner_set_marks(const InnerEngine *inner, Batch *batch, int set, int8 *values)
{
	for (int m = 0; m < inner->nmarks + inner->nfilters; m++)
	{
		Column *col = &batch->cols[inner_mark(inner, m)];

		memset(col, 0, sizeof(*col));
		col->type = COLUMN_I8;
		col->values = m == set ? values : inner->zeros;
		/* bounds of 0 and 0 let the aggregates of other marks skip the batch */
		col->has_bounds = m != set;
	}
}

/* Makes the batch for rows of the input; its last `nothers` columns are NULL. */
static void
make_input_batch(InnerEngine *inner, int nothers, int capacity)
{
	Batch *input = &inner->input;

	inner->ones = palloc(capacity);
	memset(inner->ones, 1, capacity);
	/* the values of columns of any type that are NULL, too */
	inner->zeros = palloc0(capacity * sizeof(gpuagg_i128));
	inner->nulls = palloc0(BITMAP_WORDS(capacity) * sizeof(uint64));
	input->ncols = inner->spec.ncols;
	input->capacity = capacity;
	input->cols = palloc0(sizeof(Column) * input->ncols);
	inner_set_marks(inner, input, 0, inner->ones);
	for (int c = input->ncols - nothers; c < input->ncols; c++)
	{
		input->cols[c].type = inner->spec.cols[c].type;
		input->cols[c].values = inner->zeros;
		input->cols[c].validity = inner->nulls;
	}
}

void
inner_add_columns(InnerEngine *inner, const ColumnSpec *others, int nothers, int capacity)
{
	AggSpec *spec = &inner->spec;
	int nmarks = inner->nmarks + inner->nfilters;
	ColumnSpec mark = {
		.type = COLUMN_I8, .typid = BOOLOID, .typmod = -1, .typlen = 1, .typbyval = true};
	ColumnSpec *cols = palloc0(sizeof(ColumnSpec) * (spec->ncols + nmarks + nothers));

	if (spec->ncols > 0)
		memcpy(cols, spec->cols, sizeof(ColumnSpec) * spec->ncols);
	spec->cols = cols;
	for (int c = 0; c < nmarks + nothers; c++)
	{
		ColumnSpec *col = &cols[spec->ncols];

		*col = c < nmarks ? mark : others[c - nmarks];
		/* an input that no other column has */
		col->input = -2 - spec->ncols++;
	}
	make_input_batch(inner, nothers, capacity);
}

EngineStatus
inner_add_rows(CompositeEngine *composite, InnerEngine *inner, const Batch *batch)
{
	Engine *engine = inner->engine;

	if (batch->nrows == 0)
		return ENGINE_OK;
	return composite_status(composite, engine, engine->ops->add_batch(engine, batch));
}

EngineStatus
inner_add_input(CompositeEngine *composite, InnerEngine *inner, const Batch *batch)
{
	Batch *input = &inner->input;

	if (!inner->takes_input)
		return ENGINE_OK;
	input->nrows = batch->nrows;
	memcpy(input->cols, batch->cols, sizeof(Column) * inner->first_mark);
	for (int f = 0; f < inner->nfilters; f++)
		input->cols[inner_mark(inner, inner->nmarks + f)] = batch->cols[inner->filters[f]];
	return inner_add_rows(composite, inner, input);
}
