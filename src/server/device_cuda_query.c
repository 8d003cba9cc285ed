/*
 * device_cuda_query.c
 *	  A query on the device: reduces rows, and returns groups.
 *
 * A query has a stream of its own, on which its batches are reduced in the order
 * in which they come, from one lane or several.  Copies run on the streams of the lanes;
 * events make each of the two wait for the other.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "server/device_cuda.h"

/* ---- opening and closing ---- */

void
query_release_scratch(Query *query)
{
	query_release(query, &query->workspace);
	query_release(query, &query->bins);
	query_release(query, &query->slot_bins);
	query_release(query, &query->keys);
	query_release(query, &query->staging);
	query_release(query, &query->filter);
	query_release(query, &query->computed);
	query_release(query, &query->plan);
	query_release(query, &query->heads);
	query_release(query, &query->before);
	query_release(query, &query->sorted);
	query_release(query, &query->order);
	query->zeros = 0;
}

/* Call it when the device has finished with them. */
void
query_release_holds(Query *query)
{
	while (query->holds)
	{
		StoreHold *hold = query->holds;

		query->holds = hold->next;
		store_release(hold);
	}
}

void
cuda_query_close(Query *query)
{
	cuda_select(query->device);
	if (query->stream)
		cudaStreamSynchronize(query->stream);
	query_release_holds(query);
	groups_forget(query);
	ordered_forget(query);
	sets_forget(query);
	query_release_scratch(query);
	query_release(query, &query->thresholds);
	query_release(query, &query->status);
	if (query->began)
		cudaEventDestroy(query->began);
	if (query->ended)
		cudaEventDestroy(query->ended);
	if (query->stream)
		stream_give(query->device, query->stream, query->page);
	free(query);
}

static DeviceStatus
clear_status(Query *query, DeviceError *error)
{
	CUDA_CHECK(cudaMemsetAsync(query->status.at, 0, sizeof(QueryStatus), query->stream));
	return DEVICE_OK;
}

static DeviceStatus
fill_query(Query *query, const double *thresholds, DeviceError *error)
{
	size_t bytes = query->q->nthresholds * sizeof(double);

	CUDA_CHECK(stream_take(query->device, &query->stream, &query->page));
	if (wire_keeps_rows(query->q))
	{
		CUDA_CHECK(cudaEventCreateWithFlags(&query->began, cudaEventDefault));
		CUDA_CHECK(cudaEventCreateWithFlags(&query->ended, cudaEventBlockingSync));
	}
	DEVICE_CHECK(query_reserve(query, &query->status, sizeof(QueryStatus), error));
	DEVICE_CHECK(clear_status(query, error));
	if (bytes > 0)
	{
		DEVICE_CHECK(query_reserve(query, &query->thresholds, bytes, error));
		CUDA_CHECK(cudaMemcpyAsync(query->thresholds.at, thresholds, bytes, cudaMemcpyHostToDevice,
								   query->stream));
	}
	return DEVICE_OK;
}

/* The slot that counts all rows (count(*) without a filter), or -1. */
static int
find_count(const WireQuery *q)
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
cuda_query_open(Query **query, int device, const WireQuery *q, const double *thresholds,
				DeviceError *error)
{
	Query *made;
	DeviceStatus status;

	CUDA_CHECK(cuda_select(device));
	made = calloc(1, sizeof(*made));
	if (made == NULL)
		return device_say(error, DEVICE_NO_MEMORY, "out of memory in the GPU server");
	made->device = device;
	made->q = q;
	made->count_slot = find_count(q);
	/*
	 * so that no client can choose keys that collide; before the system has random values, not at
	 * all
	 */
	if (getrandom(&made->seed, sizeof(made->seed), GRND_NONBLOCK) != sizeof(made->seed))
	{
		free(made);
		return device_say(error, DEVICE_UNSUPPORTED, "could not generate random values");
	}
	status = fill_query(made, thresholds, error);
	if (status == DEVICE_OK)
		*query = made;
	else
		cuda_query_close(made);
	return status;
}

DeviceStatus
cuda_reset(Query *query, DeviceError *error)
{
	CUDA_CHECK(cuda_select(query->device));
	DEVICE_CHECK(query_wait(query, error));
	query_release_holds(query);
	groups_forget(query);
	ordered_forget(query);
	sets_forget(query);
	query->residents = 0;
	query->rows = 0;
	query->kernel_ms = 0;
	query->changes = query->retries = 0;
	return clear_status(query, error);
}

/* ---- rows ---- */

bool
query_has_slot(const Query *query, int s)
{
	const WireQuery *q = query->q;

	if (s < 0)
		return query->groups.present.at != NULL;
	return q->slots[s].bin_kind == WIRE_BIN_NONE && !slot_is_late(q, s) &&
		query->alias[s] == ALIAS_NONE;
}

GpuaggSlot
query_slot(const Query *query, const Rows *rows, int s)
{
	const WireSlot *slot = &query->q->slots[s];
	GpuaggSlot out = {.op = MONOID_COUNT, .states = query->groups.present.at};

	if (s < 0)
		return out;
	out.op = (MonoidId) slot->monoid;
	out.states = query->groups.slot[s].at;
	if (slot->col[0] >= 0)
		out.x = kernel_column(&rows->cols[slot->col[0]]);
	if (slot->col[1] >= 0)
		out.y = kernel_column(&rows->cols[slot->col[1]]);
	if (slot->filter >= 0)
	{
		const DeviceColumn *filter = &rows->cols[slot->filter];

		out.filter = filter->values;
		out.filter_computed = filter->computed;
		out.filter_operand = filter->operand;
	}
	return out;
}

/*
 * All calls for rows are made twice: the first pass only learns how much memory they
 * need, so that nothing has to be allocated once a call has changed states.
 */
typedef struct Pass
{
	bool sizing;
	size_t workspace; /* bytes that the largest call needs */
	int call;         /* number of the next call, for its status */
} Pass;

/* One histogram call of a pass. */
static DeviceStatus
update(Query *query, Pass *pass, GpuaggHist *hist, const GpuaggBins *bins, const Rows *rows,
	   DeviceError *error)
{
	size_t bytes = query->workspace.bytes;

	for (int s = 0; s < hist->nslots; s++)
		if (hist->slot[s].states == NULL)
			return device_say(error, DEVICE_UNSUPPORTED, "no memory for the states of a group");
	hist->bins = *bins;
	hist->nrows = rows->nrows;
	hist->status = ((QueryStatus *) query->status.at)->call + pass->call++;
	if (pass->sizing)
	{
		KERNEL_CHECK(gpuagg_hist_update(hist, NULL, &bytes, query->stream));
		pass->workspace = bytes > pass->workspace ? bytes : pass->workspace;
		return DEVICE_OK;
	}
	KERNEL_CHECK(gpuagg_hist_update(hist, query->workspace.at, &bytes, query->stream));
	KERNEL_CHECK(gpuagg_hist_choose(hist, &query->choice));
	return DEVICE_OK;
}

/* The same of rows that are runs: an operator at a time. */
static DeviceStatus
update_run(Query *query, Pass *pass, const GpuaggSlot *slot, const Rows *rows, DeviceError *error)
{
	GpuaggHistStatus *status = ((QueryStatus *) query->status.at)->call + pass->call++;
	GpuaggRuns runs = query->runs;
	size_t bytes = query->workspace.bytes;

	runs.nrows = rows->nrows;
	runs.filter = rows->filter;
	if (pass->sizing)
	{
		KERNEL_CHECK(gpuagg_runs_update(&runs, slot, status->errors, NULL, &bytes, query->stream));
		pass->workspace = bytes > pass->workspace ? bytes : pass->workspace;
		return DEVICE_OK;
	}
	KERNEL_CHECK(gpuagg_runs_update(&runs, slot, status->errors, query->workspace.at, &bytes,
									query->stream));
	return DEVICE_OK;
}

/*
 * Is the call full?  Of many rows one operator, beside a count, is what the library has its fastest
 * kernels for.
 */
static bool
call_is_full(const GpuaggHist *hist, const Rows *rows)
{
	if (rows->nrows < SPLIT_ROWS)
		return hist->nslots == CALL_SLOTS;
	return hist->nslots >= 2 || (hist->nslots == 1 && hist->slot[0].op != MONOID_COUNT);
}

/* Do both slots read one column, and all its rows? */
static bool
read_alike(const Query *query, const Rows *rows, int s, int t)
{
	const WireSlot *a = &query->q->slots[s], *b = &query->q->slots[t];
	const DeviceColumn *x, *y;

	if (a->filter >= 0 || b->filter >= 0 || a->col[0] < 0 || b->col[0] < 0)
		return false;
	x = &rows->cols[a->col[0]];
	y = &rows->cols[b->col[0]];
	return x->values && x->values == y->values && x->type == y->type;
}

/*
 * Adds those slots after s of the same column to the call, which has its bins, that are faster with
 * it; *done gets a bit for each.
 */
static void
add_alike(const Query *query, GpuaggHist *hist, int s, const Rows *rows, uint64_t *done)
{
	const WireSlot *slots = query->q->slots;

	if (s < 0 || rows->nrows < SPLIT_ROWS || slots[s].monoid == MONOID_COUNT)
		return;
	for (int t = s + 1; t < query->q->nslots && hist->nslots < GPUAGG_MAX_SLOTS; t++)
	{
		GpuaggHistChoice choice;

		if (!query_has_slot(query, t) || slots[t].monoid == MONOID_COUNT ||
			!read_alike(query, rows, s, t))
			continue;
		hist->slot[hist->nslots++] = query_slot(query, rows, t);
		if (gpuagg_hist_choose(hist, &choice) == GPUAGG_CUDA_OK && choice.together)
			*done |= UINT64_C(1) << t;
		else
			hist->nslots--;
	}
}

/*
 * The next call for slots with one state a group, of those from *s on that are not in *done; false:
 * there are no more.
 */
static bool
fill_call(const Query *query, const Rows *rows, int *s, uint64_t *done, GpuaggHist *hist)
{
	memset(hist, 0, sizeof(*hist));
	hist->bins = query->located;
	hist->nrows = rows->nrows;
	for (; *s < query->q->nslots && !call_is_full(hist, rows); (*s)++)
	{
		if (!query_has_slot(query, *s) || (*s >= 0 && (*done >> *s & 1)))
			continue;
		hist->slot[hist->nslots++] = query_slot(query, rows, *s);
		add_alike(query, hist, *s, rows, done);
	}
	return hist->nslots > 0;
}

/* Are all slots reduced in one call, by a kernel that takes the bins as they are found? */
static bool
is_one_call(const Query *query, const Rows *rows)
{
	GpuaggHist hist;
	GpuaggHistChoice choice;
	uint64_t done = 0;
	int s = -1;

	for (int i = 0; i < query->q->nslots; i++)
		if (query->q->slots[i].bin_kind != WIRE_BIN_NONE)
			return false;
	return fill_call(query, rows, &s, &done, &hist) &&
		gpuagg_hist_choose(&hist, &choice) == GPUAGG_CUDA_OK && choice.together &&
		!fill_call(query, rows, &s, &done, &hist);
}

/* All slots with one state a group. */
static DeviceStatus
reduce_plain(Query *query, Pass *pass, const Rows *rows, DeviceError *error)
{
	GpuaggHist hist;
	uint64_t done = 0;

	for (int s = -1; fill_call(query, rows, &s, &done, &hist);)
		DEVICE_CHECK(update(query, pass, &hist, &query->located, rows, error));
	return DEVICE_OK;
}

/* The same of rows that are runs. */
static DeviceStatus
reduce_runs(Query *query, Pass *pass, const Rows *rows, DeviceError *error)
{
	for (int s = -1; s < query->q->nslots; s++)
		if (query_has_slot(query, s))
		{
			GpuaggSlot slot = query_slot(query, rows, s);

			DEVICE_CHECK(update_run(query, pass, &slot, rows, error));
		}
	return DEVICE_OK;
}

/* A slot with a sketch a group. */
static DeviceStatus
reduce_sketch(Query *query, const Pass *pass, const Rows *rows, int s, DeviceError *error)
{
	const WireSlot *slot = &query->q->slots[s];
	SketchRows in = {.column = rows->cols[slot->col[0]], .ngroups = query->located.nbins};

	if (query->located.kind == GPUAGG_BIN_RANGE)
	{
		/* a lone int32 key */
		in.group = query->located.column[0].values;
		in.min = query->located.min[0];
	}
	else
		in.group = groups_of_rows(query, rows);
	if (query->groups.slot[s].at == NULL)
		return device_say(error, DEVICE_UNSUPPORTED, "no memory for the states of a group");
	if (slot->filter >= 0)
		in.filter = rows->cols[slot->filter].values;
	if (!pass->sizing)
		KERNEL_CHECK(
			device_update_sketches(&in, rows->nrows, query->groups.slot[s].at, query->stream));
	return DEVICE_OK;
}

/* A slot with many states a group: its bin is group * width + bin. */
static DeviceStatus
reduce_binned(Query *query, Pass *pass, const Rows *rows, int s, DeviceError *error)
{
	const WireSlot *slot = &query->q->slots[s];
	size_t bytes = (size_t) rows->nrows * sizeof(int32_t);
	GpuaggBins index = {
		.kind = GPUAGG_BIN_INDEX, .ncolumns = 1, .nbins = query->located.nbins * slot->width};
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

	DEVICE_CHECK(query_reserve(query, &query->slot_bins, bytes, error));
	index.column[0] = (GpuaggColumn){.values = query->slot_bins.at, .type = GPUAGG_VALUE_I32};
	hist.slot[0].op = (MonoidId) slot->monoid;
	hist.slot[0].states = query->groups.slot[s].at;
	if (slot->filter >= 0)
		bins.filter = rows->cols[slot->filter].values;
	if (slot->col[1] >= 0)
		hist.slot[0].x = kernel_column(&rows->cols[slot->col[1]]);
	if (!pass->sizing)
		KERNEL_CHECK(device_slot_bins(&bins, rows->nrows, query->slot_bins.at, query->stream));
	return update(query, pass, &hist, &index, rows, error);
}

static DeviceStatus
reduce_slots(Query *query, Pass *pass, const Rows *rows, DeviceError *error)
{
	const WireQuery *q = query->q;

	DEVICE_CHECK(query->runs.heads ? reduce_runs(query, pass, rows, error) :
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

/* Finds the bins of the rows, and reserves all memory for them; changes no state. */
static DeviceStatus
prepare(Query *query, const Rows *rows, DeviceError *error)
{
	Pass pass = {.sizing = true};

	DEVICE_CHECK(groups_locate(query, rows, error));
	if (query->located.nbins == 0)
		return DEVICE_OK;
	/* several calls would read both keys each */
	if (query->located.ncolumns == 2 && !is_one_call(query, rows))
		DEVICE_CHECK(groups_make_bins(query, rows, error));
	DEVICE_CHECK(reduce_slots(query, &pass, rows, error));
	DEVICE_CHECK(query_reserve(query, &query->workspace, pass.workspace, error));
	if (query->q->flags & WIRE_ORDERED)
		DEVICE_CHECK(ordered_make_room(query, rows->nrows, error));
	return sets_make_room(query, rows, error);
}

/* Reduces the rows that were prepared; without a group, none of them counts. */
static DeviceStatus
apply(Query *query, const Rows *rows, DeviceError *error)
{
	Pass pass = {.sizing = false};

	if (query->located.nbins == 0)
		return DEVICE_OK;
	DEVICE_CHECK(reduce_slots(query, &pass, rows, error));
	if (query->q->flags & WIRE_ORDERED)
		DEVICE_CHECK(ordered_keep(query, rows, error));
	return sets_keep(query, rows, error);
}

DeviceStatus
query_reduce_rows(Query *query, const Rows *rows, bool *applied, DeviceError *error)
{
	DEVICE_CHECK(prepare(query, rows, error));
	*applied = true;
	DEVICE_CHECK(apply(query, rows, error));
	query->rows += rows->nrows;
	query->ngroups = query->found;
	return DEVICE_OK;
}

/* ---- rows that arrive grouped ---- */

/* The key of each run. */
static DeviceStatus
make_run_keys(Query *query, const Rows *rows, DeviceError *error)
{
	const WireQuery *q = query->q;
	PackKeys pack = {.nkeys = 1,
					 .key_bytes = q->key_bytes,
					 .null_offset = (int) q->null_offset,
					 .width = {q->keys[0].width}};

	pack.column[0] = rows->cols[q->keys[0].col];
	KERNEL_CHECK(device_head_keys(&pack, query->heads.at, query->before.at, rows->nrows,
								  query->groups.keys.at, query->stream));
	return DEVICE_OK;
}

static DeviceStatus
number_grouped(Query *query, const Rows *rows, int64_t *n, DeviceError *error)
{
	int64_t words = (rows->nrows + 31) / 32;
	uint32_t *order = &((QueryStatus *) query->status.at)->order;
	HeadRows in = {.nkeys = 1, .last_before = -1};
	uint32_t seen;
	bool is;

	in.column[0] = rows->cols[query->q->keys[0].col];
	DEVICE_CHECK(query_reserve(query, &query->heads, words * sizeof(uint32_t), error));
	DEVICE_CHECK(query_reserve(query, &query->before, (words + 1) * sizeof(int32_t), error));
	CUDA_CHECK(cudaMemsetAsync(order, 0, sizeof(*order), query->stream));
	KERNEL_CHECK(device_find_heads(&in, rows->nrows, query->heads.at, order, query->stream));
	DEVICE_CHECK(runs_number(query, words, (double) rows->nrows, n, &seen, &is, error));
	/* numbers that ascend by one from 0: as many runs as numbers */
	if (rows->key_min[0] != 0 || (seen & HEADS_DESCEND) || *n < 1 || *n != rows->key_max[0] + 1)
		return device_say(error, DEVICE_UNSUPPORTED, "rows that do not arrive grouped");
	return DEVICE_OK;
}

/*
 * Makes the runs of a batch the groups, and says in *rows which they are.  DEVICE_UNSUPPORTED: its
 * rows are not as WIRE_GROUPED says.  If it fails, the query has no groups.  Waits.
 */
static DeviceStatus
start_grouped(Query *query, Rows *rows, DeviceError *error)
{
	int64_t n;

	if (query->form != FORM_UNKNOWN)
		return device_say(error, DEVICE_UNSUPPORTED, "a second batch of grouped rows");
	DEVICE_CHECK(number_grouped(query, rows, &n, error));
	DEVICE_CHECK(groups_start_runs(query, n, false, error));
	rows->heads = query->heads.at;
	rows->before = query->before.at;
	return make_run_keys(query, rows, error);
}

/* After a batch that was not reduced: waits for what still reads the lane's buffer. */
static DeviceStatus
give_up_batch(Query *query, DeviceStatus status, DeviceError *error)
{
	cudaError_t err = cudaStreamSynchronize(query->stream);

	return err == cudaSuccess ? status : cuda_status(err, "cudaStreamSynchronize", error);
}

DeviceStatus
cuda_reduce(Query *query, Lane *lane, const WireBatch *batch, DeviceError *error)
{
	int b = batch->buffer;
	bool applied = false;
	Rows rows;
	DeviceStatus status;

	batch_rows(lane->memory + b * lane->buffer_bytes, batch, &rows);
	CUDA_CHECK(cuda_select(query->device));
	DEVICE_CHECK(lane_add_timing(lane, b, error));
	CUDA_CHECK(cudaStreamWaitEvent(query->stream, lane->copied[b], 0));
	CUDA_CHECK(cudaEventRecord(lane->reduce_began[b], query->stream));
	status = query->q->flags & WIRE_GROUPED ? start_grouped(query, &rows, error) : DEVICE_OK;
	if (status == DEVICE_OK)
		status = query_reduce_rows(query, &rows, &applied, error);
	/*
	 * runs are groups before their rows are; of other queries those that there are came before this
	 * batch
	 */
	if (status != DEVICE_OK && !applied && (query->q->flags & WIRE_GROUPED) &&
		query->form == FORM_RUNS)
		groups_forget(query);
	if (!applied && (status == DEVICE_NO_MEMORY || status == DEVICE_UNSUPPORTED))
		return give_up_batch(query, DEVICE_FULL, error);
	if (status != DEVICE_OK)
		return give_up_batch(query, status, error);
	CUDA_CHECK(cudaEventRecord(lane->reduced[b], query->stream));
	lane->timing[b] = true;
	return DEVICE_OK;
}
