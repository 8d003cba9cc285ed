/*
 * set_values.c
 *	  Values of sets (WireSet): kept with the bins of their rows until the last row, then sorted by
 *	  bin and value, and reduced.
 *
 * The first of several equal values in a bin is the distinct value.  Slots over distinct values are
 * histograms of these.  Values of percentiles stay until the query is closed, because the client
 * asks for the values at some places.
 *
 * Pairs of bin and value are sorted twice: by value, then by bin with a stable sort.  Each sort
 * looks only at the bits in which the keys differ.
 *
 * Values that have others beside them are numbered, and the numbers are sorted: by the order and
 * the code of the value beside, by value, and by bin.  Last, all are moved to their places.
 *
 * Of a counted set, the first of equal values are moved together after the sort, and their places
 * before are kept in place of the order.
 */
#include <limits.h>
#include <string.h>

#include "device_cuda/device_internal.h"

/* ---- keeping values ---- */

/* Allocates and initializes the set's counts, unless they exist. */
static DeviceStatus
start_set(DeviceQuery *query, SetValues *set, DeviceError *error)
{
	GpuaggCudaStatus status;

	if (set->counts.at)
		return DEVICE_OK;
	DEVICE_CHECK(memory_reserve(query, &set->counts, sizeof(SetCounts), error));
	status = device_init_set(set->counts.at, query->stream);
	if (status == GPUAGG_CUDA_OK)
		return DEVICE_OK;
	memory_release(query, &set->counts);
	return kernel_status(status, "device_init_set", error);
}

/* Makes room for n more values of a set. */
static DeviceStatus
reserve_set(DeviceQuery *query, uint32_t number, int64_t n, DeviceError *error)
{
	SetValues *set = &query->late.sets[number];
	int64_t capacity = late_capacity(set->capacity, set->nmax, n, query->q->est_rows);

	if (capacity > LATE_MAX)
		return device_fail(error, DEVICE_UNSUPPORTED, "too many values to sort");
	DEVICE_CHECK(start_set(query, set, error));
	DEVICE_CHECK(memory_grow(query, &set->bins, set->nmax * sizeof(int32_t),
							 capacity * sizeof(int32_t), error));
	DEVICE_CHECK(memory_grow(query, &set->values, set->nmax * sizeof(int64_t),
							 capacity * sizeof(int64_t), error));
	if (query->q->sets[number].beside >= 0)
	{
		DEVICE_CHECK(memory_grow(query, &set->beside, set->nmax * sizeof(int64_t),
								 capacity * sizeof(int64_t), error));
		DEVICE_CHECK(memory_grow(query, &set->order, set->nmax * sizeof(int32_t),
								 capacity * sizeof(int32_t), error));
	}
	set->capacity = capacity;
	return DEVICE_OK;
}

DeviceStatus
sets_reserve(DeviceQuery *query, const Rows *rows, DeviceError *error)
{
	for (uint32_t s = 0; s < query->q->nsets; s++)
	{
		if (rows->cols[query->q->sets[s].col].type > WIRE_I64)
			return device_fail(error, DEVICE_UNSUPPORTED, "values of more than 64 bits to sort");
		DEVICE_CHECK(reserve_set(query, s, rows->nrows, error));
	}
	return DEVICE_OK;
}

/* Keeps the values of n rows, for which there is room. */
static DeviceStatus
keep_values(DeviceQuery *query, SetValues *set, const SetRows *rows, int64_t n, DeviceError *error)
{
	SetArrays to = {set->bins.at, set->values.at, set->beside.at, set->order.at};

	KERNEL_CHECK(device_keep_values(rows, n, &to, set->counts.at, query->stream));
	set->nmax += n;
	return DEVICE_OK;
}

DeviceStatus
sets_keep(DeviceQuery *query, const Rows *rows, DeviceError *error)
{
	for (uint32_t s = 0; s < query->q->nsets; s++)
	{
		const WireSet *wire = &query->q->sets[s];
		SetRows in = {
			.column = rows->cols[wire->col],
			.filter = wire->filter < 0 ? NULL : rows->cols[wire->filter].values,
			.bins = query->scratch.bins.at,
			.descending = wire->descending,
		};

		if (wire->beside >= 0)
			in.beside = rows->cols[wire->beside];
		DEVICE_CHECK(keep_values(query, &query->late.sets[s], &in, rows->nrows, error));
	}
	return DEVICE_OK;
}

DeviceStatus
sets_add(DeviceQuery *query, uint32_t number, const SetArrays *from, int64_t n, DeviceError *error)
{
	SetRows in = {.column = {.values = from->values, .type = WIRE_I64}, .bins = from->bins};

	if (from->beside)
	{
		in.beside = (DeviceColumn){.values = from->beside, .type = WIRE_I64};
		in.order = from->order;
	}
	DEVICE_CHECK(reserve_set(query, number, n, error));
	return keep_values(query, &query->late.sets[number], &in, n, error);
}

/* Frees the set's arrays, and clears *set. */
static void
release_set(DeviceQuery *query, SetValues *set)
{
	memory_release(query, &set->bins);
	memory_release(query, &set->values);
	memory_release(query, &set->beside);
	memory_release(query, &set->order);
	memory_release(query, &set->counts);
	memset(set, 0, sizeof(*set));
}

void
sets_release(DeviceQuery *query)
{
	for (uint32_t s = 0; s < query->q->nsets; s++)
		release_set(query, &query->late.sets[s]);
}

/* ---- sorting ---- */

/* Returns the number of low bits in which numbers from min to max may differ. */
static int
bits_that_differ(int64_t min, int64_t max)
{
	uint64_t differ = (uint64_t) min ^ (uint64_t) max;

	return differ == 0 ? 0 : 64 - __builtin_clzll(differ);
}

/* Memory for sorting. */
typedef enum Spare
{
	SPARE_VALUES,
	SPARE_BINS,
	SPARE_DISTINCT,
	SPARE_MORE_VALUES,
	SPARE_MORE_BINS,
	SPARE_NUMBERS,
	SPARE_MORE_NUMBERS,
	SPARES
} Spare;

/* Sorts the pairs by value or by bin, comparing the lowest `bits` bits.  May swap the pointers. */
static DeviceStatus
sort_values(DeviceQuery *query, bool by_bin, int32_t *bins[2], int64_t *values[2], int64_t n,
			int bits, DeviceError *error)
{
	size_t bytes = 0;

	if (bits == 0)
		return DEVICE_OK;
	KERNEL_CHECK(device_sort_values(by_bin, bins, values, n, bits, NULL, &bytes, query->stream));
	DEVICE_CHECK(memory_reserve(query, &query->scratch.workspace, bytes, error));
	bytes = query->scratch.workspace.bytes;
	KERNEL_CHECK(device_sort_values(by_bin, bins, values, n, bits, query->scratch.workspace.at,
									&bytes, query->stream));
	return DEVICE_OK;
}

/* The same for pairs of int32 numbers, by the first one. */
static DeviceStatus
sort_numbers(DeviceQuery *query, int32_t *keys[2], int32_t *numbers[2], int64_t n, int bits,
			 DeviceError *error)
{
	size_t bytes = 0;

	if (bits == 0)
		return DEVICE_OK;
	KERNEL_CHECK(device_sort_numbers(keys, numbers, n, bits, NULL, &bytes, query->stream));
	DEVICE_CHECK(memory_reserve(query, &query->scratch.workspace, bytes, error));
	bytes = query->scratch.workspace.bytes;
	KERNEL_CHECK(device_sort_numbers(keys, numbers, n, bits, query->scratch.workspace.at, &bytes,
									 query->stream));
	return DEVICE_OK;
}

static void
swap_memory(DeviceMemory *a, DeviceMemory *b)
{
	DeviceMemory swap = *a;

	*a = *b;
	*b = swap;
}

/* Sorts the values of a set, which have no others beside them, by bin and value. */
static DeviceStatus
sort_plain(DeviceQuery *query, SetValues *set, const SetCounts *counts, int64_t nbins,
		   DeviceMemory spare[SPARES], DeviceError *error)
{
	int64_t *values[2] = {set->values.at, spare[SPARE_VALUES].at};
	int32_t *bins[2] = {set->bins.at, spare[SPARE_BINS].at};

	DEVICE_CHECK(sort_values(query, false, bins, values, set->n,
							 bits_that_differ(counts->min, counts->max), error));
	DEVICE_CHECK(
		sort_values(query, true, bins, values, set->n, bits_that_differ(0, nbins - 1), error));
	if (values[0] != set->values.at)
		swap_memory(&set->values, &spare[SPARE_VALUES]);
	if (bins[0] != set->bins.at)
		swap_memory(&set->bins, &spare[SPARE_BINS]);
	return DEVICE_OK;
}

/*
 * Sorts numbers of the values, which are in numbers[0] in any order, by the codes of this array.
 * codes: working memory
 */
static DeviceStatus
sort_by_codes(DeviceQuery *query, const DeviceMemory *array, int32_t *numbers[2], int64_t *codes[2],
			  int64_t n, int bits, DeviceError *error)
{
	if (bits == 0)
		return DEVICE_OK;
	KERNEL_CHECK(device_gather(array->at, sizeof(int64_t), numbers[0], n, codes[0], query->stream));
	return sort_values(query, false, numbers, codes, n, bits, error);
}

/* Moves the values to the places that the sorted numbers say, all but the bins. */
static DeviceStatus
move_values(DeviceQuery *query, SetValues *set, const int32_t *numbers, DeviceMemory spare[SPARES],
			DeviceMemory *order, DeviceError *error)
{
	KERNEL_CHECK(device_gather(set->values.at, sizeof(int64_t), numbers, set->n,
							   spare[SPARE_VALUES].at, query->stream));
	KERNEL_CHECK(device_gather(set->beside.at, sizeof(int64_t), numbers, set->n,
							   spare[SPARE_MORE_VALUES].at, query->stream));
	KERNEL_CHECK(
		device_gather(set->order.at, sizeof(int32_t), numbers, set->n, order->at, query->stream));
	swap_memory(&set->values, &spare[SPARE_VALUES]);
	swap_memory(&set->beside, &spare[SPARE_MORE_VALUES]);
	swap_memory(&set->order, order);
	return DEVICE_OK;
}

/* Sorts the values of a set by bin, value, and the values beside them. */
static DeviceStatus
sort_with_beside(DeviceQuery *query, SetValues *set, const SetCounts *counts, int64_t nbins,
				 DeviceMemory spare[SPARES], DeviceError *error)
{
	int64_t n = set->n;
	int32_t *numbers[2], *keys[2];
	int64_t *codes[2];

	DEVICE_CHECK(memory_reserve(query, &spare[SPARE_MORE_VALUES], n * sizeof(int64_t), error));
	for (int s = SPARE_MORE_BINS; s <= SPARE_MORE_NUMBERS; s++)
		DEVICE_CHECK(memory_reserve(query, &spare[s], n * sizeof(int32_t), error));
	numbers[0] = spare[SPARE_NUMBERS].at, numbers[1] = spare[SPARE_MORE_NUMBERS].at;
	keys[0] = spare[SPARE_BINS].at, keys[1] = spare[SPARE_MORE_BINS].at;
	codes[0] = spare[SPARE_VALUES].at, codes[1] = spare[SPARE_MORE_VALUES].at;

	KERNEL_CHECK(device_number_values(numbers[0], n, query->stream));
	if (counts->last > 0 && counts->last < n)
	{
		KERNEL_CHECK(
			device_gather(set->order.at, sizeof(int32_t), numbers[0], n, keys[0], query->stream));
		DEVICE_CHECK(sort_numbers(query, keys, numbers, n, 1, error));
	}
	DEVICE_CHECK(sort_by_codes(query, &set->beside, numbers, codes, n,
							   bits_that_differ(counts->beside_min, counts->beside_max), error));
	DEVICE_CHECK(sort_by_codes(query, &set->values, numbers, codes, n,
							   bits_that_differ(counts->min, counts->max), error));
	KERNEL_CHECK(
		device_gather(set->bins.at, sizeof(int32_t), numbers[0], n, keys[0], query->stream));
	DEVICE_CHECK(sort_numbers(query, keys, numbers, n, bits_that_differ(0, nbins - 1), error));

	/* the sorted bins are in one of the two, and the other one is free */
	if (keys[0] != spare[SPARE_BINS].at)
		swap_memory(&spare[SPARE_BINS], &spare[SPARE_MORE_BINS]);
	swap_memory(&set->bins, &spare[SPARE_BINS]);
	return move_values(query, set, numbers[0], spare, &spare[SPARE_MORE_BINS], error);
}

/*
 * Sorts the values of a set by bin and value, and sets set->n.  Uses and may exchange the memory in
 * `spare`.
 */
static DeviceStatus
sort_set(DeviceQuery *query, SetValues *set, int64_t nbins, DeviceMemory spare[SPARES],
		 DeviceError *error)
{
	SetCounts counts;

	DEVICE_CHECK(device_query_read(query, &counts, set->counts.at, sizeof(counts), error));
	set->n = counts.n;
	if (set->n == 0)
		return DEVICE_OK;
	DEVICE_CHECK(memory_reserve(query, &spare[SPARE_VALUES], set->n * sizeof(int64_t), error));
	DEVICE_CHECK(memory_reserve(query, &spare[SPARE_BINS], set->n * sizeof(int32_t), error));
	return (set->beside.at ? sort_with_beside : sort_plain)(query, set, &counts, nbins, spare,
															error);
}

/* ---- counted sets ---- */

/* Leaves each value of a bin once, with the place of the first one.  The values are sorted. */
static DeviceStatus
count_values(DeviceQuery *query, SetValues *set, DeviceMemory spare[SPARES], DeviceError *error)
{
	DeviceMemory *firsts = &spare[SPARE_NUMBERS], *values = &spare[SPARE_MORE_VALUES],
				 *bins = &spare[SPARE_MORE_BINS];
	int32_t *nfound = set->counts.at;
	int32_t found;
	size_t bytes = 0;

	DEVICE_CHECK(memory_reserve(query, firsts, set->n * sizeof(int32_t), error));
	KERNEL_CHECK(device_list_firsts(set->bins.at, set->values.at, set->n, firsts->at, nfound, NULL,
									&bytes, query->stream));
	DEVICE_CHECK(memory_reserve(query, &query->scratch.workspace, bytes, error));
	bytes = query->scratch.workspace.bytes;
	KERNEL_CHECK(device_list_firsts(set->bins.at, set->values.at, set->n, firsts->at, nfound,
									query->scratch.workspace.at, &bytes, query->stream));
	DEVICE_CHECK(device_query_read(query, &found, nfound, sizeof(found), error));
	DEVICE_CHECK(memory_reserve(query, values, found * sizeof(int64_t), error));
	DEVICE_CHECK(memory_reserve(query, bins, found * sizeof(int32_t), error));
	KERNEL_CHECK(device_gather(set->values.at, sizeof(int64_t), firsts->at, found, values->at,
							   query->stream));
	KERNEL_CHECK(
		device_gather(set->bins.at, sizeof(int32_t), firsts->at, found, bins->at, query->stream));
	swap_memory(&set->order, firsts);
	swap_memory(&set->values, values);
	swap_memory(&set->bins, bins);
	set->n = found;
	return DEVICE_OK;
}

/* ---- reducing ---- */

/* Reduces a slot over distinct values: a histogram of the values that `distinct` marks. */
static DeviceStatus
reduce_distinct(DeviceQuery *query, const SetValues *set, int s, int64_t nbins,
				const DeviceMemory *distinct, DeviceError *error)
{
	const WireSlot *slot = &query->q->slots[s];
	GpuaggHist hist = {
		.bins = {.kind = GPUAGG_BIN_INDEX, .ncolumns = 1, .nbins = nbins, .filter = distinct->at},
		.nslots = 1,
		.nrows = set->n,
		.status = ((KernelStatus *) query->status.at)->call + SET_CALL,
	};
	size_t bytes = 0;

	hist.bins.column[0] = (GpuaggColumn){.values = set->bins.at, .type = GPUAGG_VALUE_I32};
	hist.slot[0].op = (MonoidId) slot->monoid;
	hist.slot[0].states = query->groups.states.slot[s].at;
	if (slot->col[0] >= 0 && slot->monoid != MONOID_COUNT)
		hist.slot[0].x = (GpuaggColumn){.values = set->values.at, .type = GPUAGG_VALUE_I64};
	KERNEL_CHECK(gpuagg_hist_update(&hist, NULL, &bytes, query->stream));
	DEVICE_CHECK(memory_reserve(query, &query->scratch.workspace, bytes, error));
	bytes = query->scratch.workspace.bytes;
	KERNEL_CHECK(gpuagg_hist_update(&hist, query->scratch.workspace.at, &bytes, query->stream));
	return DEVICE_OK;
}

/* Reduces all slots of a set.  *picked: the client will ask for its values. */
static DeviceStatus
reduce_set(DeviceQuery *query, uint32_t number, int64_t nbins, DeviceMemory *distinct, bool *picked,
		   DeviceError *error)
{
	const WireQuery *q = query->q;
	SetValues *set = &query->late.sets[number];
	bool marked = false;

	for (int s = 0; s < q->nslots; s++)
	{
		if (q->slots[s].input == WIRE_ROWS || q->slots[s].set != number)
			continue;
		if (q->slots[s].input == WIRE_FIRST)
		{
			*picked = true;
			KERNEL_CHECK(device_first_values(set->bins.at, set->n, query->groups.states.slot[s].at,
											 query->stream));
			continue;
		}
		if (q->slots[s].input != WIRE_DISTINCT)
		{
			*picked = true;
			KERNEL_CHECK(device_modes(set->bins.at, set->values.at, set->n,
									  q->slots[s].input == WIRE_MODE_LAST,
									  query->groups.states.slot[s].at, query->stream));
			continue;
		}
		if (!marked)
		{
			DEVICE_CHECK(memory_reserve(query, distinct, set->n, error));
			KERNEL_CHECK(device_distinct_values(set->bins.at, set->values.at, set->n, distinct->at,
												query->stream));
			marked = true;
		}
		DEVICE_CHECK(reduce_distinct(query, set, s, nbins, distinct, error));
	}
	return DEVICE_OK;
}

/* Sorts and reduces all sets.  The caller releases `spare`, also after a failure. */
static DeviceStatus
finish_sets(DeviceQuery *query, DeviceMemory spare[SPARES], DeviceError *error)
{
	/* bins do not change any more */
	int64_t nbins =
		query->groups.form == FORM_HASH ? query->groups.ntable : query->groups.states.capacity;
	float ms;

	CUDA_CHECK(cudaEventRecord(query->late.began, query->stream));
	for (uint32_t s = 0; s < query->q->nsets; s++)
	{
		SetValues *set = &query->late.sets[s];
		bool picked = false;

		if (set->counts.at)
			DEVICE_CHECK(sort_set(query, set, nbins, spare, error));
		if (set->n > 0 && query->q->sets[s].counted)
			DEVICE_CHECK(count_values(query, set, spare, error));
		if (set->n > 0)
			DEVICE_CHECK(reduce_set(query, s, nbins, &spare[SPARE_DISTINCT], &picked, error));
		memory_release(query, &set->bins);
		memory_release(query, &set->counts);
		if (!picked)
			release_set(query, set);
	}
	CUDA_CHECK(cudaEventRecord(query->late.ended, query->stream));
	CUDA_CHECK(event_wait(query->late.ended));
	CUDA_CHECK(cudaEventElapsedTime(&ms, query->late.began, query->late.ended));
	query->stats.kernel_ms += ms;
	return DEVICE_OK;
}

DeviceStatus
sets_finish(DeviceQuery *query, DeviceError *error)
{
	DeviceMemory spare[SPARES] = {{NULL}};
	DeviceStatus status = DEVICE_OK;

	if (query->q->nsets > 0)
		status = finish_sets(query, spare, error);
	for (int i = 0; i < SPARES; i++)
		memory_release(query, &spare[i]);
	return status;
}

/* ---- single values for the client ---- */

/* Copies the values at n positions, and what is beside them, in the layout of PICKED. */
static DeviceStatus
gather_picked(DeviceQuery *query, const SetValues *set, const int32_t *places, int64_t n, char *to,
			  DeviceError *error)
{
	KERNEL_CHECK(device_gather(set->values.at, sizeof(int64_t), places, n, to, query->stream));
	to += n * sizeof(int64_t);
	if (set->beside.at)
	{
		KERNEL_CHECK(device_gather(set->beside.at, sizeof(int64_t), places, n, to, query->stream));
		to += n * sizeof(int64_t);
	}
	if (set->order.at)
		KERNEL_CHECK(device_gather(set->order.at, sizeof(int32_t), places, n, to, query->stream));
	return DEVICE_OK;
}

DeviceStatus
cuda_pick(DeviceQuery *query, Lane *lane, const WirePick *in, const int32_t *places,
		  DeviceError *error)
{
	const SetValues *set = &query->late.sets[in->set];
	char *buffer = lane->arena + in->buffer * lane->buffer_bytes;
	size_t at = wire_picked_at(in->n);
	size_t end = wire_picked_end(in->n, &query->q->sets[in->set]);
	char *staging;

	CUDA_CHECK(cuda_select(query->device));
	for (uint32_t i = 0; i < in->n; i++)
		if (places[i] < 0 || places[i] >= set->n)
			return device_fail(error, DEVICE_UNSUPPORTED, "no such value");
	DEVICE_CHECK(memory_reserve(query, &query->scratch.staging, end, error));
	staging = query->scratch.staging.at;
	CUDA_CHECK(cudaMemcpyAsync(staging, places, in->n * sizeof(int32_t), cudaMemcpyHostToDevice,
							   query->stream));
	DEVICE_CHECK(gather_picked(query, set, (const int32_t *) staging, in->n, staging + at, error));
	CUDA_CHECK(cudaMemcpyAsync(buffer + at, staging + at, end - at, cudaMemcpyDeviceToHost,
							   query->stream));
	return device_query_wait(query, error);
}
