/*
 * device_query.c
 *	  A query on the device: opening, closing, and reducing rows.
 *
 * A query has a stream of its own.  Its batches are reduced on this stream in the order in which
 * they arrive, whether one lane sends them or several.  Copies run on the streams of the lanes.
 * Events make each stream wait for the other.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "device_cuda/device_internal.h"

/* ---- opening and closing ---- */

void
device_query_release_scratch(DeviceQuery *query)
{
	memory_release(query, &query->scratch.workspace);
	memory_release(query, &query->scratch.bins);
	memory_release(query, &query->scratch.slot_bins);
	memory_release(query, &query->scratch.keys);
	memory_release(query, &query->scratch.staging);
	memory_release(query, &query->scratch.filter);
	memory_release(query, &query->scratch.computed);
	memory_release(query, &query->scratch.plan);
	memory_release(query, &query->runs.heads);
	memory_release(query, &query->runs.before);
	memory_release(query, &query->runs.sorted_keys);
	memory_release(query, &query->runs.row_numbers);
	memory_release(query, &query->parted.memory);
	query->scratch.nzeros = 0;
}

void
device_query_release_holds(DeviceQuery *query)
{
	while (query->stored.holds)
	{
		StoreHold *hold = query->stored.holds;

		query->stored.holds = hold->next;
		store_release(hold);
	}
}

void
cuda_query_close(DeviceQuery *query)
{
	cuda_select(query->device);
	if (query->stream)
		cudaStreamSynchronize(query->stream);
	device_query_release_holds(query);
	groups_release(query);
	ordered_release(query);
	sets_release(query);
	device_query_release_scratch(query);
	memory_release(query, &query->thresholds);
	memory_release(query, &query->status);
	if (query->late.began)
		cudaEventDestroy(query->late.began);
	if (query->late.ended)
		cudaEventDestroy(query->late.ended);
	if (query->stream)
		stream_give(query->device, query->stream, query->page);
	free(query);
}

/* Sets the query's KernelStatus to zeros. */
static DeviceStatus
clear_status(DeviceQuery *query, DeviceError *error)
{
	CUDA_CHECK(cudaMemsetAsync(query->status.at, 0, sizeof(KernelStatus), query->stream));
	return DEVICE_OK;
}

/*
 * Gives a new query its stream, events, status and thresholds.  If it fails, the caller closes the
 * query.
 */
static DeviceStatus
init_query(DeviceQuery *query, const double *thresholds, DeviceError *error)
{
	size_t bytes = query->q->nthresholds * sizeof(double);

	CUDA_CHECK(stream_take(query->device, &query->stream, &query->page));
	if (wire_keeps_rows(query->q))
	{
		CUDA_CHECK(cudaEventCreateWithFlags(&query->late.began, cudaEventDefault));
		CUDA_CHECK(cudaEventCreateWithFlags(&query->late.ended, cudaEventBlockingSync));
	}
	DEVICE_CHECK(memory_reserve(query, &query->status, sizeof(KernelStatus), error));
	DEVICE_CHECK(clear_status(query, error));
	if (bytes > 0)
	{
		DEVICE_CHECK(memory_reserve(query, &query->thresholds, bytes, error));
		CUDA_CHECK(cudaMemcpyAsync(query->thresholds.at, thresholds, bytes, cudaMemcpyHostToDevice,
								   query->stream));
	}
	return DEVICE_OK;
}

/* Returns a slot that counts all rows of a group (count(*) without a filter), or -1. */
static int
find_count_slot(const WireQuery *q)
{
	for (int s = 0; s < q->nslots; s++)
	{
		const WireSlot *slot = &q->slots[s];

		if (slot->monoid == MONOID_COUNT && slot->bin_kind == WIRE_BIN_NONE && slot->col[0] < 0 &&
			slot->col[1] < 0 && slot->filter < 0 && slot->input == WIRE_ROWS)
			return s;
	}
	return -1;
}

DeviceStatus
cuda_query_open(DeviceQuery **query, int device, const WireQuery *q, const double *thresholds,
				DeviceError *error)
{
	DeviceQuery *made;
	DeviceStatus status;

	CUDA_CHECK(cuda_select(device));
	made = calloc(1, sizeof(*made));
	if (made == NULL)
		return device_fail(error, DEVICE_NO_MEMORY, "out of memory in the GPU server");
	made->device = device;
	made->q = q;
	made->count_slot = find_count_slot(q);
	/*
	 * The seed is random, so that no client can choose keys that collide.  Fails while the system
	 * has no random values yet.
	 */
	if (getrandom(&made->seed, sizeof(made->seed), GRND_NONBLOCK) != sizeof(made->seed))
	{
		free(made);
		return device_fail(error, DEVICE_UNSUPPORTED, "could not generate random values");
	}
	status = init_query(made, thresholds, error);
	if (status == DEVICE_OK)
		*query = made;
	else
		cuda_query_close(made);
	return status;
}

DeviceStatus
cuda_reset(DeviceQuery *query, DeviceError *error)
{
	CUDA_CHECK(cuda_select(query->device));
	DEVICE_CHECK(device_query_wait(query, error));
	device_query_release_holds(query);
	groups_release(query);
	ordered_release(query);
	sets_release(query);
	query->stored.nmessages = 0;
	query->nrows = 0;
	query->stats.kernel_ms = 0;
	query->stats.changes = query->stats.retries = 0;
	return clear_status(query, error);
}

/* ---- rows ---- */

/*
 * All calls for rows are made twice.  The first pass only determines the memory that they need, so
 * that nothing has to be allocated after a call has changed states.
 */
typedef struct Pass
{
	bool sizing;
	size_t workspace; /* bytes that the largest call needs */
	int call;         /* index of the next call in KernelStatus.call */
} Pass;

/*
 * Makes one histogram call: a sizing pass only raises pass->workspace, the other pass changes
 * states.
 */
static DeviceStatus
update_histogram(DeviceQuery *query, Pass *pass, GpuaggHist *hist, const GpuaggBins *bins,
				 const Rows *rows, DeviceError *error)
{
	size_t bytes = query->scratch.workspace.bytes;

	for (int s = 0; s < hist->nslots; s++)
		if (hist->slot[s].states == NULL)
			return device_fail(error, DEVICE_UNSUPPORTED, "no memory for the states of a group");
	hist->bins = *bins;
	hist->parts = query->location.parts;
	hist->nrows = rows->nrows;
	hist->status = ((KernelStatus *) query->status.at)->call + pass->call++;
	if (pass->sizing)
	{
		KERNEL_CHECK(gpuagg_hist_update(hist, NULL, &bytes, query->stream));
		pass->workspace = bytes > pass->workspace ? bytes : pass->workspace;
		return DEVICE_OK;
	}
	KERNEL_CHECK(gpuagg_hist_update(hist, query->scratch.workspace.at, &bytes, query->stream));
	KERNEL_CHECK(gpuagg_hist_choose(hist, &query->stats.choice));
	return DEVICE_OK;
}

/* Makes the call for one slot of rows that form runs, in either pass as update_histogram does. */
static DeviceStatus
update_runs(DeviceQuery *query, Pass *pass, const GpuaggSlot *slot, const Rows *rows,
			DeviceError *error)
{
	GpuaggHistStatus *status = ((KernelStatus *) query->status.at)->call + pass->call++;
	GpuaggRuns runs = query->location.runs;
	size_t bytes = query->scratch.workspace.bytes;

	runs.nrows = rows->nrows;
	runs.filter = rows->filter;
	if (pass->sizing)
	{
		KERNEL_CHECK(gpuagg_runs_update(&runs, slot, status->errors, NULL, &bytes, query->stream));
		pass->workspace = bytes > pass->workspace ? bytes : pass->workspace;
		return DEVICE_OK;
	}
	KERNEL_CHECK(gpuagg_runs_update(&runs, slot, status->errors, query->scratch.workspace.at,
									&bytes, query->stream));
	return DEVICE_OK;
}

/*
 * Returns whether the call should take no more slots.  For many rows, the library's fastest kernels
 * take one operator and a count.
 */
static bool
call_is_full(const GpuaggHist *hist, const Rows *rows)
{
	if (rows->nrows < SPLIT_ROWS)
		return hist->nslots == CALL_SLOTS;
	return hist->nslots >= 2 || (hist->nslots == 1 && hist->slot[0].op != MONOID_COUNT);
}

/*
 * Adds later slots to the call, which has slot s, if one kernel takes all of them and the bins as
 * they are.  Adds them to *done.  hist->bins are set.
 */
static void
add_slots_of_kernel(const DeviceQuery *query, GpuaggHist *hist, int s, const Rows *rows,
					SlotSet *done)
{
	const WireSlot *slots = query->q->slots;

	if (s < 0 || rows->nrows < SPLIT_ROWS || slots[s].monoid == MONOID_COUNT)
		return;
	for (int t = s + 1; t < query->q->nslots && hist->nslots < GPUAGG_MAX_SLOTS; t++)
	{
		GpuaggHistChoice choice;

		if (!slot_is_computed(query, t) || slot_set_has(done, t) ||
			slots[t].monoid == MONOID_COUNT || slots[t].col[0] < 0 || slots[t].filter >= 0)
			continue;
		hist->slot[hist->nslots++] = kernel_slot(query, rows, t);
		if (gpuagg_hist_choose(hist, &choice) == GPUAGG_CUDA_OK && choice.together)
			slot_set_add(done, t);
		else
			hist->nslots--;
	}
}

/*
 * Fills the next call with slots that have one state per group, from *s on, without those in *done.
 * Returns false if there are no more.
 */
static bool
fill_call(const DeviceQuery *query, const Rows *rows, int *s, SlotSet *done, GpuaggHist *hist)
{
	memset(hist, 0, sizeof(*hist));
	hist->bins = query->location.bins;
	hist->parts = query->location.parts;
	hist->nrows = rows->nrows;
	for (; *s < query->q->nslots && !call_is_full(hist, rows); (*s)++)
	{
		if (!slot_is_computed(query, *s) || (*s >= 0 && slot_set_has(done, *s)))
			continue;
		hist->slot[hist->nslots++] = kernel_slot(query, rows, *s);
		add_slots_of_kernel(query, hist, *s, rows, done);
	}
	return hist->nslots > 0;
}

/* Returns whether one call reduces all slots, with a kernel that reads the bins as located. */
static bool
is_one_call(const DeviceQuery *query, const Rows *rows)
{
	GpuaggHist hist;
	GpuaggHistChoice choice;
	SlotSet done = {{0}};
	int s = -1;

	for (int i = 0; i < query->q->nslots; i++)
		if (query->q->slots[i].bin_kind != WIRE_BIN_NONE)
			return false;
	return fill_call(query, rows, &s, &done, &hist) &&
		gpuagg_hist_choose(&hist, &choice) == GPUAGG_CUDA_OK && choice.together &&
		!fill_call(query, rows, &s, &done, &hist);
}

/* Reduces all slots with one state per group. */
static DeviceStatus
reduce_plain(DeviceQuery *query, Pass *pass, const Rows *rows, DeviceError *error)
{
	GpuaggHist hist;
	SlotSet done = {{0}};

	for (int s = -1; fill_call(query, rows, &s, &done, &hist);)
		DEVICE_CHECK(update_histogram(query, pass, &hist, &query->location.bins, rows, error));
	return DEVICE_OK;
}

/* Reduces all slots with one state per group, for rows that form runs. */
static DeviceStatus
reduce_runs(DeviceQuery *query, Pass *pass, const Rows *rows, DeviceError *error)
{
	for (int s = -1; s < query->q->nslots; s++)
		if (slot_is_computed(query, s))
		{
			GpuaggSlot slot = kernel_slot(query, rows, s);

			DEVICE_CHECK(update_runs(query, pass, &slot, rows, error));
		}
	return DEVICE_OK;
}

/* Reduces a slot with one sketch per group. */
static DeviceStatus
reduce_sketch(DeviceQuery *query, const Pass *pass, const Rows *rows, int s, DeviceError *error)
{
	const WireSlot *slot = &query->q->slots[s];
	SketchRows in = {.column = rows->cols[slot->col[0]], .ngroups = query->location.bins.nbins};

	if (query->location.bins.kind == GPUAGG_BIN_RANGE)
	{
		/* the bins are the values of one int32 key */
		in.group = query->location.bins.column[0].values;
		in.min = query->location.bins.min[0];
	}
	else
		in.group = groups_of_rows(query, rows);
	if (query->groups.states.slot[s].at == NULL)
		return device_fail(error, DEVICE_UNSUPPORTED, "no memory for the states of a group");
	if (slot->filter >= 0)
		in.filter = rows->cols[slot->filter].values;
	if (!pass->sizing)
		KERNEL_CHECK(device_update_sketches(&in, rows->nrows, query->groups.states.slot[s].at,
											query->stream));
	return DEVICE_OK;
}

/* Reduces a slot with several states per group, at group * width + bin. */
static DeviceStatus
reduce_binned(DeviceQuery *query, Pass *pass, const Rows *rows, int s, DeviceError *error)
{
	const WireSlot *slot = &query->q->slots[s];
	size_t bytes = (size_t) rows->nrows * sizeof(int32_t);
	GpuaggBins index = {
		.kind = GPUAGG_BIN_INDEX, .ncolumns = 1, .nbins = query->location.bins.nbins * slot->width};
	GpuaggHist hist = {.nslots = 1};
	SlotBins bins = {
		.kind = slot->bin_kind,
		.column = rows->cols[slot->col[0]],
		.group = groups_of_rows(query, rows),
		.width = slot->width,
		.n = slot->bin_n,
		.formula = (int) slot->formula,
		.lo = slot->lo,
		.hi = slot->hi,
		.thresholds = (const double *) query->thresholds.at + slot->thresholds,
	};

	DEVICE_CHECK(memory_reserve(query, &query->scratch.slot_bins, bytes, error));
	index.column[0] =
		(GpuaggColumn){.values = query->scratch.slot_bins.at, .type = GPUAGG_VALUE_I32};
	hist.slot[0].op = (MonoidId) slot->monoid;
	hist.slot[0].states = query->groups.states.slot[s].at;
	if (slot->filter >= 0)
		bins.filter = rows->cols[slot->filter].values;
	if (slot->col[1] >= 0)
		hist.slot[0].x = kernel_column(&rows->cols[slot->col[1]]);
	if (!pass->sizing)
		KERNEL_CHECK(
			device_slot_bins(&bins, rows->nrows, query->scratch.slot_bins.at, query->stream));
	return update_histogram(query, pass, &hist, &index, rows, error);
}

/*
 * Makes all calls of a pass that reduce rows at once, that is, all but ordered slots and slots over
 * sets.
 */
static DeviceStatus
reduce_slots(DeviceQuery *query, Pass *pass, const Rows *rows, DeviceError *error)
{
	const WireQuery *q = query->q;

	DEVICE_CHECK(query->location.runs.heads ? reduce_runs(query, pass, rows, error) :
											  reduce_plain(query, pass, rows, error));
	for (int s = 0; s < q->nslots; s++)
	{
		if (slot_is_sketch(q, s))
			DEVICE_CHECK(reduce_sketch(query, pass, rows, s, error));
		else if (q->slots[s].bin_kind != WIRE_BIN_NONE)
			DEVICE_CHECK(reduce_binned(query, pass, rows, s, error));
	}
	return DEVICE_OK;
}

/* Finds the bins of the rows, and reserves all memory for their reduction.  Changes no state. */
static DeviceStatus
prepare_rows(DeviceQuery *query, const Rows *rows, DeviceError *error)
{
	Pass pass = {.sizing = true};

	DEVICE_CHECK(groups_locate(query, rows, error));
	if (query->location.bins.nbins == 0)
		return DEVICE_OK;
	/* make the bins once: each of several calls would have to read both keys */
	if (query->location.bins.ncolumns == 2 && !is_one_call(query, rows))
		DEVICE_CHECK(groups_make_bins(query, rows, error));
	DEVICE_CHECK(reduce_slots(query, &pass, rows, error));
	DEVICE_CHECK(memory_reserve(query, &query->scratch.workspace, pass.workspace, error));
	if (query->q->flags & WIRE_ORDERED)
		DEVICE_CHECK(ordered_reserve(query, rows->nrows, error));
	return sets_reserve(query, rows, error);
}

/* Reduces rows for which prepare_rows was called.  If no group exists, it has nothing to reduce. */
static DeviceStatus
apply_rows(DeviceQuery *query, const Rows *rows, DeviceError *error)
{
	Pass pass = {.sizing = false};

	if (query->location.bins.nbins == 0)
		return DEVICE_OK;
	DEVICE_CHECK(reduce_slots(query, &pass, rows, error));
	if (query->q->flags & WIRE_ORDERED)
		DEVICE_CHECK(ordered_keep(query, rows, error));
	return sets_keep(query, rows, error);
}

DeviceStatus
device_query_reduce_rows(DeviceQuery *query, const Rows *rows, bool *applied, DeviceError *error)
{
	DEVICE_CHECK(prepare_rows(query, rows, error));
	*applied = true;
	DEVICE_CHECK(apply_rows(query, rows, error));
	query->nrows += rows->nrows;
	query->groups.n = query->groups.ntable;
	return DEVICE_OK;
}

/* ---- rows that arrive grouped ---- */

/* Writes the packed key of each run to groups.states.keys, for rows that arrive grouped. */
static DeviceStatus
make_grouped_keys(DeviceQuery *query, const Rows *rows, DeviceError *error)
{
	const WireQuery *q = query->q;
	PackKeys pack = {.nkeys = 1,
					 .key_bytes = q->key_bytes,
					 .null_offset = (int) q->null_offset,
					 .width = {q->keys[0].width}};

	pack.column[0] = rows->cols[q->keys[0].col];
	KERNEL_CHECK(device_head_keys(&pack, query->runs.heads.at, query->runs.before.at, rows->nrows,
								  query->groups.states.keys.at, query->stream));
	return DEVICE_OK;
}

/*
 * Finds the runs of equal group numbers.  Sets *n to their number, and checks that the numbers are
 * 0 .. n - 1.
 */
static DeviceStatus
number_grouped(DeviceQuery *query, const Rows *rows, int64_t *n, DeviceError *error)
{
	int64_t words = (rows->nrows + 31) / 32;
	uint32_t *order = &((KernelStatus *) query->status.at)->order;
	HeadRows in = {.nkeys = 1, .last_before = -1};
	uint32_t seen;
	bool segmented;

	in.column[0] = rows->cols[query->q->keys[0].col];
	DEVICE_CHECK(memory_reserve(query, &query->runs.heads, words * sizeof(uint32_t), error));
	DEVICE_CHECK(memory_reserve(query, &query->runs.before, (words + 1) * sizeof(int32_t), error));
	CUDA_CHECK(cudaMemsetAsync(order, 0, sizeof(*order), query->stream));
	KERNEL_CHECK(device_find_heads(&in, rows->nrows, query->runs.heads.at, order, query->stream));
	DEVICE_CHECK(runs_number(query, words, (double) rows->nrows, n, &seen, &segmented, error));
	/* the numbers ascend by one from 0, so that there are as many runs as numbers */
	if (rows->key_min[0] != 0 || (seen & HEADS_DESCEND) || *n < 1 || *n != rows->key_max[0] + 1)
		return device_fail(error, DEVICE_UNSUPPORTED, "rows that do not arrive grouped");
	return DEVICE_OK;
}

/*
 * WIRE_GROUPED: makes the runs of a batch the groups, and adds the runs to *rows.
 * DEVICE_UNSUPPORTED: the rows do not arrive grouped.  If it fails, the query has no groups. Waits.
 */
static DeviceStatus
start_grouped(DeviceQuery *query, Rows *rows, DeviceError *error)
{
	int64_t n;

	if (query->groups.form != FORM_UNKNOWN)
		return device_fail(error, DEVICE_UNSUPPORTED, "a second batch of grouped rows");
	DEVICE_CHECK(number_grouped(query, rows, &n, error));
	DEVICE_CHECK(groups_start_runs(query, n, false, error));
	rows->heads = query->runs.heads.at;
	rows->before = query->runs.before.at;
	return make_grouped_keys(query, rows, error);
}

/* After a failure: waits until nothing reads the lane's buffer, and returns the status. */
static DeviceStatus
give_up_batch(DeviceQuery *query, DeviceStatus status, DeviceError *error)
{
	cudaError_t err = cudaStreamSynchronize(query->stream);

	return err == cudaSuccess ? status : cuda_status(err, "cudaStreamSynchronize", error);
}

DeviceStatus
cuda_reduce(DeviceQuery *query, Lane *lane, const WireBatch *batch, DeviceError *error)
{
	int b = batch->buffer;
	bool applied = false;
	Rows rows;
	DeviceStatus status;

	batch_rows(lane->memory + b * lane->buffer_bytes, batch, &rows);
	CUDA_CHECK(cuda_select(query->device));
	DEVICE_CHECK(lane_add_kernel_time(lane, b, error));
	CUDA_CHECK(cudaStreamWaitEvent(query->stream, lane->copied[b], 0));
	CUDA_CHECK(cudaEventRecord(lane->reduce_began[b], query->stream));
	status = query->q->flags & WIRE_GROUPED ? start_grouped(query, &rows, error) : DEVICE_OK;
	if (status == DEVICE_OK)
		status = device_query_reduce_rows(query, &rows, &applied, error);
	/*
	 * Runs become groups before their rows are reduced, so remove them.  In other queries all
	 * groups are those of earlier batches.
	 */
	if (status != DEVICE_OK && !applied && (query->q->flags & WIRE_GROUPED) &&
		query->groups.form == FORM_RUNS)
		groups_release(query);
	if (!applied && (status == DEVICE_NO_MEMORY || status == DEVICE_UNSUPPORTED))
		return give_up_batch(query, DEVICE_FULL, error);
	if (status != DEVICE_OK)
		return give_up_batch(query, status, error);
	CUDA_CHECK(cudaEventRecord(lane->reduced[b], query->stream));
	lane->timing[b] = true;
	return DEVICE_OK;
}
