/*
 * device_cuda_groups.c
 *	  The groups of a query on the device: bins of rows, tables, states.
 *
 * Every slot has one array of states, `capacity` groups long, whatever the
 * form.  Growth allocates larger arrays and moves the states; the bins of
 * a hash table never change, those of a direct table do when a key leaves the
 * range.  Which form is taken is strategy.c's choice; what it calls sort runs as a
 * hash table here.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "device_cuda.h"

/* Groups that a hash table is made for when nothing is known, at least and at most. */
#define LEAST_CAPACITY 4096
#define MOST_FIRST_CAPACITY (1 << 20)

/* Direct bins beyond this would make the list of groups long to build. */
#define MOST_DIRECT_BINS (1 << 22)

static DeviceStatus
out_of_memory(DeviceError *error)
{
	return device_say(error, DEVICE_NO_MEMORY, "out of memory in the GPU server");
}

size_t
slot_state_bytes(const WireQuery *q, int s)
{
	return (size_t) q->slots[s].width * gpuagg_monoids[q->slots[s].monoid].state_size;
}

DeviceColumn
batch_column(const char *base, const WireBatch *batch, int col)
{
	const WireColumn *c = &batch->cols[col];
	DeviceColumn out = {0};

	out.values = c->values == WIRE_NO_ARRAY ? NULL : base + c->values;
	out.validity = c->validity == WIRE_NO_ARRAY ? NULL : (const uint8_t *) base + c->validity;
	out.type = c->type;
	return out;
}

GpuaggColumn
kernel_column(const char *base, const WireBatch *batch, int col)
{
	static const GpuaggValueType types[WIRE_TYPES] = {
		GPUAGG_VALUE_I8, GPUAGG_VALUE_I16, GPUAGG_VALUE_I32, GPUAGG_VALUE_I64,
		GPUAGG_VALUE_I128, GPUAGG_VALUE_F32, GPUAGG_VALUE_F64,
		GPUAGG_VALUE_NATIVE, GPUAGG_VALUE_NATIVE, GPUAGG_VALUE_NATIVE, GPUAGG_VALUE_NATIVE
	};
	DeviceColumn c = batch_column(base, batch, col);
	GpuaggColumn out = {c.values, c.validity, types[c.type]};

	return out;
}

/* Histograms number their bins in 31 bits. */
static int64_t
most_groups(const WireQuery *q)
{
	int32_t		widest = 1;

	for (int s = 0; s < q->nslots; s++)
		widest = q->slots[s].width > widest ? q->slots[s].width : widest;
	return (INT32_MAX - 1) / widest;
}

/* ---- states ---- */

static void
free_states(Query *query)
{
	for (int s = 0; s < query->q->nslots; s++)
	{
		query_free(query, query->states[s], query->capacity * slot_state_bytes(query->q, s));
		query->states[s] = NULL;
	}
	query_free(query, query->present, query->capacity * sizeof(int64_t));
	query->present = NULL;
	query->capacity = 0;
}

/* Arrays of identities; what was there is the caller's. */
static DeviceStatus
make_states(Query *query, int64_t capacity, DeviceError *error)
{
	const WireQuery *q = query->q;

	memset(query->states, 0, sizeof(query->states));
	query->present = NULL;
	query->capacity = capacity;
	for (int s = 0; s < q->nslots; s++)
	{
		if (capacity * q->slots[s].width >= INT32_MAX)
			return device_say(error, DEVICE_UNSUPPORTED, "too many bins for one histogram");
		DEVICE_CHECK(query_alloc(query, capacity * slot_state_bytes(q, s), &query->states[s], error));
		KERNEL_CHECK(gpuagg_hist_init(q->slots[s].monoid, query->states[s],
									  capacity * q->slots[s].width, query->stream));
	}
	if (query->form == FORM_DIRECT)
	{
		DEVICE_CHECK(query_alloc(query, capacity * sizeof(int64_t), (void **) &query->present,
								 error));
		CUDA_CHECK(cudaMemsetAsync(query->present, 0, capacity * sizeof(int64_t), query->stream));
	}
	return DEVICE_OK;
}

/* Bins of one array to those of another. */
static DeviceStatus
move_array(Query *query, const void *from, void *to, size_t row_bytes, const int32_t *from_bins,
		   const int32_t *to_bins, int64_t n, DeviceError *error)
{
	DEVICE_CHECK(query_reserve(query, &query->staging, n * row_bytes, error));
	KERNEL_CHECK(device_gather(from, row_bytes, from_bins, n, query->staging.at, query->stream));
	KERNEL_CHECK(device_scatter(query->staging.at, row_bytes, to_bins, n, to, query->stream));
	return DEVICE_OK;
}

/* New states of `capacity` groups, with from_bins[i] of the old ones at to_bins[i]. */
static DeviceStatus
move_states(Query *query, int64_t capacity, const int32_t *from_bins, const int32_t *to_bins,
			int64_t n, DeviceError *error)
{
	const WireQuery *q = query->q;
	void	   *old[WIRE_MAX_SLOTS];
	int64_t    *old_present = query->present;
	int64_t		old_capacity = query->capacity;
	DeviceStatus status;

	memcpy(old, query->states, sizeof(old));
	status = make_states(query, capacity, error);
	for (int s = 0; s < q->nslots; s++)
	{
		if (status == DEVICE_OK)
			status = move_array(query, old[s], query->states[s], slot_state_bytes(q, s), from_bins,
								to_bins, n, error);
		query_free(query, old[s], old_capacity * slot_state_bytes(q, s));
	}
	if (status == DEVICE_OK && query->present)
		status = move_array(query, old_present, query->present, sizeof(int64_t), from_bins,
							to_bins, n, error);
	query_free(query, old_present, old_capacity * sizeof(int64_t));
	return status;
}

/* ---- direct bins ---- */

static bool
key_has_null_bin(const WireQuery *q, int k)
{
	return q->keys[k].nullable != 0;
}

/* Bins of the ranges lo..hi of the keys; more than can be if they do not fit 62 bits. */
static double
count_bins(const WireQuery *q, const int64_t *lo, const int64_t *hi, int64_t *extent)
{
	double		product = 1;

	for (int k = 0; k < q->nkeys; k++)
	{
		/* the difference as an integer: doubles of large keys would round */
		double		span = lo[k] > hi[k] ? 1 : (double) ((uint64_t) hi[k] - (uint64_t) lo[k]) + 1;

		span += key_has_null_bin(q, k);
		product *= span;
		extent[k] = product < 1e15 ? (int64_t) span : 0;
	}
	return product;
}

/* Widens lo..hi by the keys of the batch; true if that changed them. */
static bool
widen_ranges(const WireQuery *q, const WireBatch *batch, int64_t *lo, int64_t *hi)
{
	bool		wider = false;

	for (int k = 0; k < q->nkeys; k++)
	{
		int64_t		min = batch->key_min[k];
		int64_t		max = batch->key_max[k];

		if (min > max)
			continue;
		if (lo[k] > hi[k])
		{
			lo[k] = min;
			hi[k] = max;
			wider = true;
			continue;
		}
		wider |= min < lo[k] || max > hi[k];
		lo[k] = min < lo[k] ? min : lo[k];
		hi[k] = max > hi[k] ? max : hi[k];
	}
	return wider;
}

static void
current_ranges(const Query *query, int64_t *lo, int64_t *hi)
{
	for (int k = 0; k < query->q->nkeys; k++)
	{
		lo[k] = query->min[k];
		hi[k] = query->min[k] + query->extent[k] - 1 - key_has_null_bin(query->q, k);
	}
}

static GpuaggStrategy
choose_strategy(const Query *query, double bins)
{
	const WireQuery *q = query->q;
	const WireDevice *d = budget_device(query->device);
	StrategyDevice device = {
		.gpu = true,.l2_bytes = d->l2_bytes,.memory_bytes = d->limit
	};
	StrategyInput input = {
		.forced = q->forced,.nkeys = q->nkeys,.keys_integer = true,.rows = q->est_rows,
		.groups = q->est_groups,.range_known = true,.key_range = bins,
		.state_bytes = (int) wire_group_bytes(q),.key_bytes = q->key_bytes
	};
	StrategyChoice choice;

	/* rows kept in order need bins that do not change */
	if (bins > MOST_DIRECT_BINS || bins >= most_groups(q) || (q->flags & WIRE_ORDERED))
		return STRATEGY_HASH;
	strategy_choose(&device, &input, &choice);
	return choice.strategy == STRATEGY_DIRECT ? STRATEGY_DIRECT : STRATEGY_HASH;
}

static GpuaggBins
direct_bins(const Query *query, const char *base, const WireBatch *batch)
{
	const WireQuery *q = query->q;
	GpuaggBins	bins = {.kind = GPUAGG_BIN_RANGE,.ncolumns = q->nkeys,.nbins = query->capacity};

	for (int k = 0; k < q->nkeys; k++)
	{
		bins.column[k] = kernel_column(base, batch, q->keys[k].col);
		bins.min[k] = query->min[k];
		bins.extent[k] = query->extent[k];
		bins.null_bin[k] = key_has_null_bin(q, k);
	}
	return bins;
}

/* The packed key of a direct bin. */
static void
direct_key(const Query *query, int64_t bin, char *key)
{
	const WireQuery *q = query->q;

	memset(key, 0, q->key_bytes);
	for (int k = q->nkeys - 1; k >= 0; k--)
	{
		int64_t		digit = bin % query->extent[k];
		int64_t		value = query->min[k] + digit;

		bin /= query->extent[k];
		if (key_has_null_bin(q, k) && digit == query->extent[k] - 1)
			key[q->null_offset] |= 1 << k;
		else
			memcpy(key + q->keys[k].offset, &value, q->keys[k].width);
	}
}

/* The bins that rows fell into, ascending, in malloc'ed memory. */
static DeviceStatus
list_present(Query *query, int32_t **list, int64_t *n, DeviceError *error)
{
	size_t		bytes = query->capacity * sizeof(int64_t);
	int64_t    *counts = malloc(bytes);
	cudaError_t err;

	*list = malloc(query->capacity * sizeof(int32_t));
	*n = 0;
	if (counts == NULL || *list == NULL)
	{
		free(counts);
		return out_of_memory(error);
	}
	err = cudaMemcpyAsync(counts, query->present, bytes, cudaMemcpyDeviceToHost, query->stream);
	if (err == cudaSuccess)
		err = cudaStreamSynchronize(query->stream);
	for (int64_t b = 0; err == cudaSuccess && b < query->capacity; b++)
		if (counts[b] > 0)
			(*list)[(*n)++] = (int32_t) b;
	free(counts);
	return err == cudaSuccess ? DEVICE_OK : cuda_status(err, "copy of the bins in use", error);
}

/* Host array to the device, in stream order and before the host's copy may go. */
static DeviceStatus
upload(Query *query, DeviceMemory *memory, const void *host, size_t bytes, DeviceError *error)
{
	DEVICE_CHECK(query_reserve(query, memory, bytes, error));
	CUDA_CHECK(cudaMemcpyAsync(memory->at, host, bytes, cudaMemcpyHostToDevice, query->stream));
	CUDA_CHECK(cudaStreamSynchronize(query->stream));
	return DEVICE_OK;
}

/* ---- the hash table ---- */

static size_t
table_bytes(const GpuaggGroupTable *table)
{
	return gpuagg_group_slot_bytes(table->key_bytes, table->capacity) +
		table->capacity * table->key_bytes + sizeof(GpuaggGroupCounters) + 2 * WIRE_ALIGN;
}

/* One allocation, cut in three; init of the table is the caller's. */
static DeviceStatus
alloc_table(Query *query, int64_t capacity, GpuaggGroupTable *table, DeviceError *error)
{
	size_t		slots = wire_align(gpuagg_group_slot_bytes(query->q->key_bytes, capacity));
	void	   *at;

	table->key_bytes = query->q->key_bytes;
	table->capacity = capacity;
	table->seed = query->seed;
	DEVICE_CHECK(query_alloc(query, table_bytes(table), &at, error));
	table->slots = at;
	table->keys = (char *) at + slots;
	table->counters = (GpuaggGroupCounters *)
		((char *) table->keys + wire_align(capacity * table->key_bytes));
	return DEVICE_OK;
}

/* A table for the estimate, but for `least` groups in any case. */
static DeviceStatus
start_hash(Query *query, int64_t least, DeviceError *error)
{
	double		groups = query->q->est_groups * 1.25;
	int64_t		capacity = LEAST_CAPACITY;

	while (capacity < least || (capacity < groups && capacity < MOST_FIRST_CAPACITY &&
								2 * capacity <= most_groups(query->q)))
		capacity *= 2;
	query->form = FORM_HASH;
	DEVICE_CHECK(alloc_table(query, capacity, &query->table, error));
	KERNEL_CHECK(gpuagg_group_init(&query->table, query->stream));
	return DEVICE_OK;
}

static DeviceStatus
copy_on_device(Query *query, void *to, const void *from, size_t bytes, DeviceError *error)
{
	CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, query->stream));
	return DEVICE_OK;
}

/* A table of four times the size, with the states that go with it. */
static DeviceStatus
grow_hash(Query *query, DeviceError *error)
{
	GpuaggGroupTable old = query->table;
	const WireQuery *q = query->q;
	void	   *old_states[WIRE_MAX_SLOTS];
	int64_t		old_capacity = query->capacity;
	GpuaggGroupTable table;
	DeviceStatus status;

	DEVICE_CHECK(alloc_table(query, old.capacity * 4, &table, error));
	query->table = table;
	KERNEL_CHECK(gpuagg_group_grow(&old, &query->table, query->stream));
	query_free(query, old.slots, table_bytes(&old));
	query->retries++;
	memcpy(old_states, query->states, sizeof(old_states));
	status = make_states(query, query->table.capacity, error);
	for (int s = 0; s < q->nslots; s++)
	{
		size_t		bytes = old_capacity * slot_state_bytes(q, s);

		if (status == DEVICE_OK)
			status = copy_on_device(query, query->states[s], old_states[s], bytes, error);
		query_free(query, old_states[s], bytes);
	}
	return status;
}

/* Bins of packed keys, growing as often as needed. */
static DeviceStatus
look_up(Query *query, const void *keys, int64_t n, int32_t *bins, DeviceError *error)
{
	for (int retry = 0;; retry = 1)
	{
		GpuaggCudaStatus status;
		int64_t		groups,
					pending,
					null_bin;

		KERNEL_CHECK(gpuagg_group_lookup(&query->table, keys, NULL, NULL, n, retry, bins,
										 query->stream));
		status = gpuagg_group_status(&query->table, &groups, &pending, &null_bin, query->stream);
		if (status == GPUAGG_CUDA_OK)
		{
			query->ngroups = groups;
			return DEVICE_OK;
		}
		if (status != GPUAGG_CUDA_FULL)
			return kernel_status(status, "gpuagg_group_status", error);
		DEVICE_CHECK(grow_hash(query, error));
	}
}

/* ---- changing form ---- */

/* A direct table before its key ranges change: its bins in use and their keys. */
typedef struct OldBins
{
	int64_t		min[WIRE_MAX_KEYS];
	int64_t		extent[WIRE_MAX_KEYS];
	int64_t		n;
	int32_t    *list;			/* on the host */
	DeviceMemory from;			/* the same, on the device */
} OldBins;

static int32_t
moved_bin(const Query *query, const OldBins *old, int64_t bin)
{
	const WireQuery *q = query->q;
	int64_t		moved = 0;
	int64_t		factor = 1;

	for (int k = q->nkeys - 1; k >= 0; k--)
	{
		int64_t		digit = bin % old->extent[k];

		bin /= old->extent[k];
		if (key_has_null_bin(q, k) && digit == old->extent[k] - 1)
			digit = query->extent[k] - 1;
		else
			digit += old->min[k] - query->min[k];
		moved += digit * factor;
		factor *= query->extent[k];
	}
	return (int32_t) moved;
}

/* To direct bins of the ranges that are set already. */
static DeviceStatus
move_to_direct(Query *query, OldBins *old, int64_t bins, DeviceMemory *to, DeviceError *error)
{
	for (int64_t i = 0; i < old->n; i++)
		old->list[i] = moved_bin(query, old, old->list[i]);
	DEVICE_CHECK(upload(query, to, old->list, old->n * sizeof(int32_t), error));
	return move_states(query, bins, old->from.at, to->at, old->n, error);
}

static DeviceStatus
move_to_hash(Query *query, OldBins *old, DeviceMemory *to, DeviceError *error)
{
	const WireQuery *q = query->q;
	char	   *keys = malloc(old->n * q->key_bytes + 1);
	DeviceStatus status;

	if (keys == NULL)
		return out_of_memory(error);
	for (int64_t i = 0; i < old->n; i++)
		direct_key(query, old->list[i], keys + i * q->key_bytes);
	status = upload(query, &query->keys, keys, old->n * q->key_bytes, error);
	free(keys);
	DEVICE_CHECK(status);
	DEVICE_CHECK(query_reserve(query, to, old->n * sizeof(int32_t), error));
	/* large enough at once: growing would move states that are not there yet */
	DEVICE_CHECK(start_hash(query, 2 * old->n, error));
	DEVICE_CHECK(look_up(query, query->keys.at, old->n, to->at, error));
	return move_states(query, query->table.capacity, old->from.at, to->at, old->n, error);
}

/* The range of a key left the bins: a larger direct table, or a hash table. */
static DeviceStatus
leave_range(Query *query, const WireBatch *batch, OldBins *old, DeviceMemory *to,
			DeviceError *error)
{
	const WireQuery *q = query->q;
	int64_t		lo[WIRE_MAX_KEYS],
				hi[WIRE_MAX_KEYS],
				extent[WIRE_MAX_KEYS];
	double		bins;

	DEVICE_CHECK(list_present(query, &old->list, &old->n, error));
	DEVICE_CHECK(upload(query, &old->from, old->list, old->n * sizeof(int32_t), error));
	memcpy(old->min, query->min, sizeof(old->min));
	memcpy(old->extent, query->extent, sizeof(old->extent));
	current_ranges(query, lo, hi);
	widen_ranges(q, batch, lo, hi);
	/* room above: keys of time or of a dictionary go on growing */
	for (int k = 0; k < q->nkeys; k++)
		if (lo[k] <= hi[k] && hi[k] < INT64_MAX / 4 && lo[k] > INT64_MIN / 4)
			hi[k] += hi[k] - lo[k];
	query->changes++;
	bins = count_bins(q, lo, hi, extent);
	if (choose_strategy(query, bins) != STRATEGY_DIRECT)
		return move_to_hash(query, old, to, error);
	memcpy(query->min, lo, sizeof(lo));
	memcpy(query->extent, extent, sizeof(extent));
	return move_to_direct(query, old, (int64_t) bins, to, error);
}

static DeviceStatus
rebuild_direct(Query *query, const WireBatch *batch, DeviceError *error)
{
	OldBins		old = {.list = NULL};
	DeviceMemory to = {0};
	DeviceStatus status = leave_range(query, batch, &old, &to, error);

	query_release(query, &old.from);
	query_release(query, &to);
	free(old.list);
	return status;
}

/* The first batch decides. */
static DeviceStatus
choose_form(Query *query, const WireBatch *batch, DeviceError *error)
{
	const WireQuery *q = query->q;
	int64_t		hi[WIRE_MAX_KEYS];
	double		bins;

	if (q->nkeys == 0)
	{
		query->form = FORM_SINGLE;
		return make_states(query, 1, error);
	}
	for (int k = 0; k < q->nkeys; k++)
	{
		query->min[k] = INT64_MAX;
		hi[k] = INT64_MIN;
	}
	widen_ranges(q, batch, query->min, hi);
	for (int k = 0; k < q->nkeys; k++)
		if (query->min[k] > hi[k])
			query->min[k] = hi[k] = 0;
	bins = count_bins(q, query->min, hi, query->extent);
	if (choose_strategy(query, bins) == STRATEGY_DIRECT)
	{
		query->form = FORM_DIRECT;
		return make_states(query, (int64_t) bins, error);
	}
	DEVICE_CHECK(start_hash(query, 0, error));
	return make_states(query, query->table.capacity, error);
}

/* ---- rows to bins ---- */

static DeviceStatus
locate_hash(Query *query, const char *base, const WireBatch *batch, DeviceError *error)
{
	const WireQuery *q = query->q;
	PackKeys	pack = {.nkeys = q->nkeys,.key_bytes = q->key_bytes,.null_offset = q->null_offset};

	for (int k = 0; k < q->nkeys; k++)
	{
		pack.width[k] = q->keys[k].width;
		pack.offset[k] = q->keys[k].offset;
		pack.column[k] = batch_column(base, batch, q->keys[k].col);
	}
	DEVICE_CHECK(query_reserve(query, &query->keys, (size_t) batch->nrows * q->key_bytes, error));
	KERNEL_CHECK(device_pack_keys(&pack, batch->nrows, query->keys.at, query->stream));
	return look_up(query, query->keys.at, batch->nrows, query->bins.at, error);
}

static DeviceStatus
locate_direct(Query *query, const char *base, const WireBatch *batch, DeviceError *error)
{
	GpuaggBins	bins = direct_bins(query, base, batch);

	KERNEL_CHECK(gpuagg_hist_bins(&bins, batch->nrows, query->bins.at, query->status,
								  query->stream));
	return DEVICE_OK;
}

DeviceStatus
groups_locate(Query *query, const char *base, const WireBatch *batch, DeviceError *error)
{
	int64_t		lo[WIRE_MAX_KEYS],
				hi[WIRE_MAX_KEYS];

	DEVICE_CHECK(query_reserve(query, &query->bins, (size_t) batch->nrows * sizeof(int32_t), error));
	if (query->form == FORM_UNKNOWN)
		DEVICE_CHECK(choose_form(query, batch, error));
	if (query->form == FORM_DIRECT)
	{
		current_ranges(query, lo, hi);
		if (widen_ranges(query->q, batch, lo, hi))
			DEVICE_CHECK(rebuild_direct(query, batch, error));
	}
	switch (query->form)
	{
		case FORM_DIRECT:
			return locate_direct(query, base, batch, error);
		case FORM_HASH:
			return locate_hash(query, base, batch, error);
		default:
			CUDA_CHECK(cudaMemsetAsync(query->bins.at, 0, (size_t) batch->nrows * sizeof(int32_t),
									   query->stream));
			return DEVICE_OK;
	}
}

/* ---- the end ---- */

DeviceStatus
groups_finish(Query *query, DeviceError *error)
{
	const WireQuery *q = query->q;

	if (query->form == FORM_UNKNOWN && q->nkeys == 0)
	{
		query->form = FORM_SINGLE;
		DEVICE_CHECK(make_states(query, 1, error));
	}
	if (query->form == FORM_SINGLE)
		query->ngroups = 1;
	if (query->form != FORM_DIRECT)
		return DEVICE_OK;
	free(query->bin_of);
	free(query->host_keys);
	query->host_keys = NULL;
	DEVICE_CHECK(list_present(query, &query->bin_of, &query->ngroups, error));
	query->host_keys = malloc(query->ngroups * q->key_bytes + 1);
	if (query->host_keys == NULL)
		return out_of_memory(error);
	for (int64_t i = 0; i < query->ngroups; i++)
		direct_key(query, query->bin_of[i], query->host_keys + i * q->key_bytes);
	return DEVICE_OK;
}

void
groups_forget(Query *query)
{
	free_states(query);
	query_free(query, query->table.slots, table_bytes(&query->table));
	memset(&query->table, 0, sizeof(query->table));
	free(query->bin_of);
	free(query->host_keys);
	query->bin_of = NULL;
	query->host_keys = NULL;
	query->ngroups = 0;
	query->form = FORM_UNKNOWN;
}
