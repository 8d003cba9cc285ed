/*
 * row_sort.c
 *	  Sorts rows of batches; see row_sort.h.
 */
#include "postgres.h"

#include "executor/tuptable.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/tuplesort.h"

#include "columns/column_value.h"
#include "common/compat.h"
#include "composite/row_sort.h"

struct RowSort
{
	MemoryContext cxt;
	MemoryContext temp; /* Datums that are made from columns */
	const AggSpec *spec;
	const DistinctSpec *set;
	int ncols;
	int *cols;        /* [column of a row] column of the spec */
	AttrNumber *atts; /* [value of the set] */
	Oid *collations;  /* [value of the set] */
	int kilobytes;
	TupleDesc desc;
	TupleTableSlot *in;
	TupleTableSlot *out;
	Tuplesortstate *sort; /* NULL: no rows yet */
	bool sorted;          /* rows are being returned */
	int64 space;          /* bytes that the last sort used */
	bool disk;            /* ... in files */
};

RowSort *
row_sort_open(const AggSpec *spec, const DistinctSpec *set, const int *cols, int ncols, int first,
			  size_t bytes)
{
	RowSort *sort = palloc0(sizeof(RowSort));

	sort->cxt = CurrentMemoryContext;
	sort->temp = AllocSetContextCreate(sort->cxt, "gpuagg sorted rows", ALLOCSET_DEFAULT_SIZES);
	sort->spec = spec;
	sort->set = set;
	sort->ncols = ncols;
	sort->cols = palloc(sizeof(int) * (ncols + 1));
	memcpy(sort->cols, cols, sizeof(int) * ncols);
	sort->atts = palloc(sizeof(AttrNumber) * set->nvalues);
	sort->collations = palloc(sizeof(Oid) * set->nvalues);
	for (int v = 0; v < set->nvalues; v++)
	{
		int at = first;

		/* equal values share a column */
		while (cols[at] != set->values[v].col)
			at++;
		sort->atts[v] = at + 1;
		sort->collations[v] = set->values[v].collation;
	}
	sort->kilobytes = (int) Min(bytes / 1024, MAX_KILOBYTES);
	sort->desc = CreateTemplateTupleDesc(ncols);
	for (int c = 0; c < ncols; c++)
		TupleDescInitEntry(sort->desc, c + 1, "value", spec->cols[cols[c]].typid,
						   spec->cols[cols[c]].typmod, 0);
	compat_finalize_tuple_desc(sort->desc);
	sort->in = MakeSingleTupleTableSlot(sort->desc, &TTSOpsVirtual);
	sort->out = MakeSingleTupleTableSlot(sort->desc, &TTSOpsMinimalTuple);
	return sort;
}

/* Begins a sort, unless there are rows already. */
static void
begin_sort(RowSort *sort)
{
	MemoryContext old;

	if (sort->sort)
		return;
	old = MemoryContextSwitchTo(sort->cxt);
	sort->sort = tuplesort_begin_heap(sort->desc, sort->set->nvalues, sort->atts,
									  sort->set->sortops, sort->collations, sort->set->nulls_first,
									  sort->kilobytes, NULL, TUPLESORT_NONE);
	sort->sorted = false;
	MemoryContextSwitchTo(old);
}

void
row_sort_row(RowSort *sort, const Datum *values, const bool *nulls)
{
	begin_sort(sort);
	ExecClearTuple(sort->in);
	memcpy(sort->in->tts_values, values, sizeof(Datum) * sort->ncols);
	memcpy(sort->in->tts_isnull, nulls, sizeof(bool) * sort->ncols);
	ExecStoreVirtualTuple(sort->in);
	tuplesort_puttupleslot(sort->sort, sort->in);
}

void
row_sort_batch(RowSort *sort, const Batch *batch)
{
	TupleTableSlot *in = sort->in;

	begin_sort(sort);
	for (int row = 0; row < batch->nrows; row++)
	{
		MemoryContext old = MemoryContextSwitchTo(sort->temp);

		ExecClearTuple(in);
		for (int c = 0; c < sort->ncols; c++)
		{
			const Column *col = &batch->cols[sort->cols[c]];

			in->tts_isnull[c] = column_is_null(col, row);
			in->tts_values[c] = in->tts_isnull[c] ?
				(Datum) 0 :
				column_is_unrepresentable(col, row) ?
				col->unrepresentable_values[row] :
				column_datum(col->type, col->scale, col->values, row);
		}
		MemoryContextSwitchTo(old);
		ExecStoreVirtualTuple(in);
		tuplesort_puttupleslot(sort->sort, in);
		if ((row & 255) == 255)
		{
			CHECK_FOR_INTERRUPTS();
			MemoryContextReset(sort->temp);
		}
	}
	ExecClearTuple(in);
	MemoryContextReset(sort->temp);
}

/* Records the memory or files that the sort has used. */
static void
record_space(RowSort *sort)
{
	TuplesortInstrumentation stats;

	tuplesort_get_stats(sort->sort, &stats);
	sort->space = stats.spaceUsed * INT64CONST(1024);
	sort->disk = stats.spaceType == SORT_SPACE_TYPE_DISK;
}

bool
row_sort_next(RowSort *sort, Datum **values, bool **nulls)
{
	begin_sort(sort);
	if (!sort->sorted)
	{
		tuplesort_performsort(sort->sort);
		record_space(sort);
		sort->sorted = true;
	}
	if (!tuplesort_gettupleslot(sort->sort, true, false, sort->out, NULL))
		return false;
	slot_getallattrs(sort->out);
	*values = sort->out->tts_values;
	*nulls = sort->out->tts_isnull;
	return true;
}

void
row_sort_reset(RowSort *sort)
{
	ExecClearTuple(sort->in);
	ExecClearTuple(sort->out);
	if (sort->sort)
		tuplesort_end(sort->sort);
	sort->sort = NULL;
}

int64
row_sort_space(const RowSort *sort, bool *disk)
{
	*disk = sort->disk;
	return sort->space;
}
