/*
 * ordered_rows.c
 *	  Operators that do not commute: keeps the rows until the last batch, sorts them by group and
 *	  order, and reduces them as segments.
 *
 * For each row it keeps the bin, the order keys and the operators' inputs, each in an array of its
 * own.  The arrays double when they are full.  Each operator also has an array of marks, which says
 * which rows count for it: not those whose input is NULL, and not those that fail its filter.
 */
#include <stdlib.h>
#include <string.h>

#include "device_cuda/device_internal.h"

/* One array for the bins, two for each order key, two for each slot. */
#define MOST_ARRAYS (1 + 2 * WIRE_MAX_ORDER + 2 * WIRE_MAX_SLOTS)

typedef struct KeptSlot
{
	int slot;  /* number of the slot in the query */
	int input; /* number of the array of inputs */
	int keep;  /* number of the array of marks: 1 byte, the row counts */
	bool all;  /* all rows so far count */
} KeptSlot;

struct OrderedRows
{
	int64_t n;
	int64_t capacity; /* number of rows that every array has room for */
	int narrays;
	size_t width[MOST_ARRAYS];
	DeviceMemory array[MOST_ARRAYS];
	int bins;
	int code[WIRE_MAX_ORDER];
	int rank[WIRE_MAX_ORDER]; /* 0 or 1: sorts NULLs before or after the values */
	bool has_nulls[WIRE_MAX_ORDER];
	int nslots;
	KeptSlot slots[WIRE_MAX_SLOTS];
};

/* ---- keeping rows ---- */

/* Adds an array with `width` bytes per row, still without memory.  Returns its index. */
static int
add_array(OrderedRows *rows, size_t width)
{
	rows->width[rows->narrays] = width;
	return rows->narrays++;
}

/*
 * Makes an empty OrderedRows with the arrays that the query needs.  Returns NULL if malloc fails.
 */
static OrderedRows *
make_ordered_rows(const WireQuery *q)
{
	OrderedRows *rows = calloc(1, sizeof(*rows));

	if (rows == NULL)
		return NULL;
	rows->bins = add_array(rows, sizeof(int32_t));
	for (uint32_t o = 0; o < q->norder; o++)
	{
		rows->code[o] = add_array(rows, sizeof(int64_t));
		rows->rank[o] = add_array(rows, sizeof(int8_t));
	}
	for (int s = 0; s < q->nslots; s++)
		if (slot_is_ordered(q, s))
		{
			KeptSlot *slot = &rows->slots[rows->nslots++];

			slot->slot = s;
			slot->input = add_array(rows, gpuagg_monoids[q->slots[s].monoid].input_size);
			slot->keep = add_array(rows, sizeof(uint8_t));
			slot->all = true;
		}
	return rows;
}

DeviceStatus
ordered_reserve(DeviceQuery *query, int64_t nrows, DeviceError *error)
{
	OrderedRows *rows = query->late.ordered;
	int64_t capacity;

	if (rows == NULL && (rows = query->late.ordered = make_ordered_rows(query->q)) == NULL)
		return device_fail(error, DEVICE_NO_MEMORY, "out of memory in the GPU server");
	capacity = late_capacity(rows->capacity, rows->n, nrows, query->q->est_rows);
	if (capacity > LATE_MAX)
		return device_fail(error, DEVICE_UNSUPPORTED, "too many rows to sort");
	for (int a = 0; a < rows->narrays; a++)
		DEVICE_CHECK(memory_grow(query, &rows->array[a], rows->n * rows->width[a],
								 capacity * rows->width[a], error));
	rows->capacity = capacity;
	return DEVICE_OK;
}

/* Returns the address of row i of an array. */
static void *
row_at(const OrderedRows *rows, int array, int64_t i)
{
	return (char *) rows->array[array].at + i * rows->width[array];
}

/* Appends the inputs and the marks of new rows for one slot. */
static DeviceStatus
keep_inputs(DeviceQuery *query, const Rows *in, KeptSlot *kept, DeviceError *error)
{
	const WireSlot *slot = &query->q->slots[kept->slot];
	OrderedRows *rows = query->late.ordered;
	PackInput pack = {.monoid = slot->monoid};

	for (int c = 0; c < 2; c++)
		if (slot->col[c] >= 0)
		{
			pack.column[c] = in->cols[slot->col[c]];
			if (pack.column[c].validity && slot->monoid != MONOID_LONGEST_ASC)
				kept->all = false;
		}
	if (slot->filter >= 0)
	{
		pack.filter = in->cols[slot->filter].values;
		kept->all = false;
	}
	KERNEL_CHECK(device_pack_inputs(&pack, in->nrows, row_at(rows, kept->input, rows->n),
									row_at(rows, kept->keep, rows->n), query->stream));
	return DEVICE_OK;
}

DeviceStatus
ordered_keep(DeviceQuery *query, const Rows *in, DeviceError *error)
{
	const WireQuery *q = query->q;
	OrderedRows *rows = query->late.ordered;

	CUDA_CHECK(cudaMemcpyAsync(row_at(rows, rows->bins, rows->n), query->scratch.bins.at,
							   in->nrows * sizeof(int32_t), cudaMemcpyDeviceToDevice,
							   query->stream));
	for (uint32_t o = 0; o < q->norder; o++)
	{
		DeviceColumn column = in->cols[q->order[o].col];

		rows->has_nulls[o] |= column.validity != NULL;
		KERNEL_CHECK(device_pack_order(&column, in->nrows, q->order[o].nulls_first,
									   row_at(rows, rows->code[o], rows->n),
									   row_at(rows, rows->rank[o], rows->n), query->stream));
	}
	for (int s = 0; s < rows->nslots; s++)
		DEVICE_CHECK(keep_inputs(query, in, &rows->slots[s], error));
	rows->n += in->nrows;
	return DEVICE_OK;
}

void
ordered_release(DeviceQuery *query)
{
	OrderedRows *rows = query->late.ordered;

	if (rows == NULL)
		return;
	for (int a = 0; a < rows->narrays; a++)
		memory_release(query, &rows->array[a]);
	free(rows);
	query->late.ordered = NULL;
}

/* ---- sorting ---- */

/*
 * Calls a function of the kernel library whose last arguments are a workspace, its bytes and a
 * stream.  A first call without a workspace returns the bytes that it needs.
 */
#define CALL_WITH_WORKSPACE(function, ...) \
	do \
	{ \
		size_t bytes = 0; \
		KERNEL_CHECK(function(__VA_ARGS__, NULL, &bytes, query->stream)); \
		DEVICE_CHECK(memory_reserve(query, &query->scratch.workspace, bytes, error)); \
		bytes = query->scratch.workspace.bytes; \
		KERNEL_CHECK(function(__VA_ARGS__, query->scratch.workspace.at, &bytes, query->stream)); \
	} while (0)

/* Memory that ordered_finish needs while it runs. */
typedef struct SortScratch
{
	DeviceMemory permutation;
	DeviceMemory selected;
	DeviceMemory bins; /* bin of each row, in sorted order */
	DeviceMemory offsets;
	DeviceMemory counts; /* two int64 that kernels return: a range, or one number */
	DeviceMemory inputs;
	DeviceMemory states;
	DeviceMemory heads; /* bin of each segment */
} SortScratch;

/* Waits for queued work, and reads the two numbers in scratch->counts. */
static DeviceStatus
read_counts(DeviceQuery *query, SortScratch *scratch, int64_t *counts, DeviceError *error)
{
	return device_query_read(query, counts, scratch->counts.at, 2 * sizeof(int64_t), error);
}

/* Makes a sort key of an array of integers, with as few bits as the range of its values needs. */
static DeviceStatus
make_sort_word(DeviceQuery *query, SortScratch *scratch, int array, GpuaggValueType type,
			   int descending, GpuaggSortWord *word, DeviceError *error)
{
	OrderedRows *rows = query->late.ordered;
	GpuaggColumn column = {.values = rows->array[array].at, .type = type};
	int64_t range[2];
	uint64_t span;

	KERNEL_CHECK(gpuagg_key_range(&column, rows->n, scratch->counts.at, query->stream));
	DEVICE_CHECK(read_counts(query, scratch, range, error));
	span = (uint64_t) range[1] - (uint64_t) range[0];
	word->values = rows->array[array].at;
	word->type = type;
	word->descending = descending;
	word->min = range[0];
	word->bits = span == 0 ? 0 : 64 - __builtin_clzll(span);
	if (word->bits == 64)
		word->min = 0;
	return DEVICE_OK;
}

/* Sets scratch->permutation to the row numbers, sorted by bin and then by the order keys. */
static DeviceStatus
sort_ordered_rows(DeviceQuery *query, SortScratch *scratch, DeviceError *error)
{
	const WireQuery *q = query->q;
	OrderedRows *rows = query->late.ordered;
	GpuaggSortWord words[1 + 2 * WIRE_MAX_ORDER];
	int nwords = 0;

	DEVICE_CHECK(
		make_sort_word(query, scratch, rows->bins, GPUAGG_VALUE_I32, 0, &words[nwords++], error));
	for (uint32_t o = 0; o < q->norder; o++)
	{
		if (rows->has_nulls[o])
			DEVICE_CHECK(make_sort_word(query, scratch, rows->rank[o], GPUAGG_VALUE_I8, 0,
										&words[nwords++], error));
		DEVICE_CHECK(make_sort_word(query, scratch, rows->code[o], GPUAGG_VALUE_I64,
									q->order[o].desc, &words[nwords++], error));
	}
	DEVICE_CHECK(memory_reserve(query, &scratch->permutation, rows->n * sizeof(int64_t), error));
	CALL_WITH_WORKSPACE(gpuagg_cuda_sort_rows, rows->n, nwords, words, scratch->permutation.at);
	return DEVICE_OK;
}

/* ---- reducing ---- */

/* Sets *rows_in_order to the sorted numbers of the rows that count for the slot, *n of them. */
static DeviceStatus
select_rows(DeviceQuery *query, SortScratch *scratch, const KeptSlot *slot,
			const int64_t **rows_in_order, int64_t *n, DeviceError *error)
{
	OrderedRows *rows = query->late.ordered;
	int64_t counts[2];

	*rows_in_order = scratch->permutation.at;
	*n = rows->n;
	if (slot->all)
		return DEVICE_OK;
	DEVICE_CHECK(memory_reserve(query, &scratch->selected, rows->n * sizeof(int64_t), error));
	CALL_WITH_WORKSPACE(gpuagg_cuda_select_rows, rows->n, *rows_in_order,
						rows->array[slot->keep].at, scratch->selected.at, scratch->counts.at);
	DEVICE_CHECK(read_counts(query, scratch, counts, error));
	*rows_in_order = scratch->selected.at;
	*n = counts[0];
	return DEVICE_OK;
}

/* Finds the segments of rows with the same bin, and their bins.  Waits for their number. */
static DeviceStatus
find_segments(DeviceQuery *query, SortScratch *scratch, const int64_t *rows_in_order, int64_t n,
			  GpuaggSegments *segments, DeviceError *error)
{
	OrderedRows *rows = query->late.ordered;
	int64_t counts[2];

	DEVICE_CHECK(memory_reserve(query, &scratch->bins, n * sizeof(int32_t), error));
	DEVICE_CHECK(memory_reserve(query, &scratch->offsets, (n + 1) * sizeof(int64_t), error));
	KERNEL_CHECK(gpuagg_cuda_gather(sizeof(int32_t), rows->array[rows->bins].at, rows_in_order, n,
									scratch->bins.at, query->stream));
	CALL_WITH_WORKSPACE(gpuagg_cuda_segments_from_bins, scratch->bins.at, n, scratch->offsets.at,
						scratch->counts.at);
	DEVICE_CHECK(read_counts(query, scratch, counts, error));
	*segments =
		(GpuaggSegments){.nvalues = n, .nsegments = counts[0], .offsets = scratch->offsets.at};
	DEVICE_CHECK(memory_reserve(query, &scratch->heads, counts[0] * sizeof(int32_t), error));
	KERNEL_CHECK(gpuagg_cuda_gather(sizeof(int32_t), scratch->bins.at, scratch->offsets.at,
									counts[0], scratch->heads.at, query->stream));
	return DEVICE_OK;
}

/* Reduces one slot's rows by bin in their sorted order, and stores the states in the groups. */
static DeviceStatus
reduce_slot(DeviceQuery *query, SortScratch *scratch, const KeptSlot *slot, DeviceError *error)
{
	OrderedRows *rows = query->late.ordered;
	MonoidId monoid = query->q->slots[slot->slot].monoid;
	const MonoidInfo *info = &gpuagg_monoids[monoid];
	const int64_t *rows_in_order;
	GpuaggSegments segments;
	int64_t n;

	DEVICE_CHECK(select_rows(query, scratch, slot, &rows_in_order, &n, error));
	if (n == 0)
		return DEVICE_OK;
	DEVICE_CHECK(find_segments(query, scratch, rows_in_order, n, &segments, error));
	DEVICE_CHECK(memory_reserve(query, &scratch->inputs, n * info->input_size, error));
	KERNEL_CHECK(gpuagg_cuda_gather(info->input_size, rows->array[slot->input].at, rows_in_order, n,
									scratch->inputs.at, query->stream));
	DEVICE_CHECK(
		memory_reserve(query, &scratch->states, segments.nsegments * info->state_size, error));
	CALL_WITH_WORKSPACE(gpuagg_cuda_segmented_reduce, &segments, monoid, scratch->inputs.at,
						scratch->states.at);
	KERNEL_CHECK(device_scatter(scratch->states.at, info->state_size, scratch->heads.at,
								segments.nsegments, query->groups.states.slot[slot->slot].at,
								query->stream));
	return DEVICE_OK;
}

/* Sorts the kept rows and reduces all ordered slots.  Adds the time to kernel_ms. */
static DeviceStatus
reduce_rows(DeviceQuery *query, SortScratch *scratch, DeviceError *error)
{
	OrderedRows *rows = query->late.ordered;
	float ms;

	DEVICE_CHECK(memory_reserve(query, &scratch->counts, 2 * sizeof(int64_t), error));
	CUDA_CHECK(cudaEventRecord(query->late.began, query->stream));
	DEVICE_CHECK(sort_ordered_rows(query, scratch, error));
	for (int s = 0; s < rows->nslots; s++)
		DEVICE_CHECK(reduce_slot(query, scratch, &rows->slots[s], error));
	CUDA_CHECK(cudaEventRecord(query->late.ended, query->stream));
	CUDA_CHECK(event_wait(query->late.ended));
	CUDA_CHECK(cudaEventElapsedTime(&ms, query->late.began, query->late.ended));
	query->stats.kernel_ms += ms;
	return DEVICE_OK;
}

DeviceStatus
ordered_finish(DeviceQuery *query, DeviceError *error)
{
	SortScratch scratch;
	DeviceStatus status = DEVICE_OK;

	if (query->late.ordered == NULL)
		return DEVICE_OK;
	memset(&scratch, 0, sizeof(scratch));
	if (query->late.ordered->n > 0)
		status = reduce_rows(query, &scratch, error);
	memory_release(query, &scratch.permutation);
	memory_release(query, &scratch.selected);
	memory_release(query, &scratch.bins);
	memory_release(query, &scratch.offsets);
	memory_release(query, &scratch.counts);
	memory_release(query, &scratch.inputs);
	memory_release(query, &scratch.states);
	memory_release(query, &scratch.heads);
	ordered_release(query);
	return status;
}
