/*
 * group_tables.c
 *	  The groups of a query on the device: bins of rows, tables.
 *
 * In every form each slot has one array of states, `capacity` groups long.  A row's bin is
 * its index.  Tables change when they have no bin for a key of the next batch:
 *
 *	- a direct table when a key is out of its range, or the first NULL: to a larger one,
 *	  or to a hash table;
 *	- a hash table when it is full: to a larger one, in which groups keep their bins;
 *	- a hash table whose packed keys have no byte for NULLs, when the first NULL comes: to
 *	  one with longer keys.  Most queries never have a NULL, and keys of 4 and 8 bytes are
 *	  searched faster than those of 8 and 16.
 *
 * A change allocates and fills the new table and states first, and replaces the old ones
 * as its last step: if it fails, the groups of earlier batches are as they were.
 * strategy.c chooses between direct and hash; its third choice, sort, is a hash table, but
 * where gpuagg.strategy asks for it: then of the keys of sorted rows, which was never faster
 * (kernels/TUNING.md).
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "device_cuda/device_internal.h"

/*
 * The first hash table has room for at least so many groups, and for no more because of an
 * estimate.
 */
#ifndef LEAST_CAPACITY
#define LEAST_CAPACITY 4096
#endif
#define MOST_FIRST_CAPACITY (1 << 20)

/* Where memory is short, growth adds at least so many groups. */
#define LEAST_GROWTH 4096

/* With more direct bins it would take long to list those in use. */
#define MOST_DIRECT_BINS (1 << 22)

static DeviceStatus
out_of_memory(DeviceError *error)
{
	return device_fail(error, DEVICE_NO_MEMORY, "out of memory in the GPU server");
}

/* ---- direct bins ---- */

/* Sets the extents of the ranges; the number of their bins, which may be more than there can be. */
static double
count_bins(const WireQuery *q, KeyRanges *ranges)
{
	double product = 1;

	for (int k = 0; k < q->nkeys; k++)
	{
		/* subtract as integers, since large keys are not exact as doubles */
		double nvalues = (double) ((uint64_t) ranges->max[k] - (uint64_t) ranges->min[k]) + 1 +
			ranges->has_null[k];

		product *= nvalues;
		ranges->extent[k] = product < 1e15 ? (int64_t) nvalues : 0;
	}
	return product;
}

/* May the rows have NULLs in key k?  Batches have a validity bitmap only then. */
static bool
key_has_nulls(const WireQuery *q, const Rows *rows, int k)
{
	return may_have_nulls(&rows->cols[q->keys[k].col]);
}

/* Widens the ranges by the keys of the rows; true if that changed them. */
static bool
widen_ranges(const WireQuery *q, const Rows *rows, KeyRanges *ranges)
{
	bool wider = false;

	for (int k = 0; k < q->nkeys; k++)
	{
		int64_t min = rows->key_min[k];
		int64_t max = rows->key_max[k];

		if (key_has_nulls(q, rows, k) && !ranges->has_null[k])
			ranges->has_null[k] = wider = true;
		if (min > max || (min >= ranges->min[k] && max <= ranges->max[k]))
			continue;
		wider = true;
		ranges->min[k] = min < ranges->min[k] ? min : ranges->min[k];
		ranges->max[k] = max > ranges->max[k] ? max : ranges->max[k];
	}
	return wider;
}

static GpuaggStrategy
choose_strategy(const DeviceQuery *query, double bins)
{
	const WireQuery *q = query->q;
	const WireDevice *d = budget_device(query->device);
	StrategyDevice device = {
		.gpu = true,
		.l2_bytes = d->l2_bytes,
		.memory_bytes = d->limit,
	};
	StrategyInput input = {
		.forced = q->forced,
		.nkeys = q->nkeys,
		.keys_integer = true,
		.rows = q->est_rows,
		.groups = q->est_groups,
		.range_known = true,
		.key_range = bins,
		.state_bytes = (int) wire_group_bytes(q),
		.key_bytes = q->key_bytes,
	};
	StrategyChoice choice;

	/* the bins of rows that are kept must not change */
	if (bins > MOST_DIRECT_BINS || bins >= states_max_groups(q) || wire_keeps_rows(q))
		return STRATEGY_HASH;
	strategy_choose(&device, &input, &choice);
	return choice.strategy == STRATEGY_DIRECT ? STRATEGY_DIRECT : STRATEGY_HASH;
}

GpuaggBins
groups_bins(const DeviceQuery *query, const Rows *rows)
{
	const WireQuery *q = query->q;
	GpuaggBins bins = {.kind = GPUAGG_BIN_RANGE,
					   .ncolumns = q->nkeys,
					   .nbins = query->groups.states.capacity,
					   .filter = rows->filter};

	for (int k = 0; k < q->nkeys; k++)
	{
		bins.column[k] = kernel_column(&rows->cols[q->keys[k].col]);
		bins.min[k] = query->groups.ranges.min[k];
		bins.extent[k] = query->groups.ranges.extent[k];
		bins.null_bin[k] = query->groups.ranges.has_null[k];
	}
	return bins;
}

void
groups_direct_key(const DeviceQuery *query, int64_t bin, char *key, int key_bytes)
{
	const WireQuery *q = query->q;
	const KeyRanges *ranges = &query->groups.ranges;

	memset(key, 0, key_bytes);
	for (int k = q->nkeys - 1; k >= 0; k--)
	{
		int64_t digit = bin % ranges->extent[k];
		int64_t value = ranges->min[k] + digit;

		bin /= ranges->extent[k];
		if (ranges->has_null[k] && digit == ranges->extent[k] - 1)
			key[q->null_offset] |= 1 << k;
		else
			memcpy(key + q->keys[k].offset, &value, q->keys[k].width);
	}
}

const DeviceMemory *
groups_row_counts(const DeviceQuery *query)
{
	const GroupStates *states = &query->groups.states;

	return query->count_slot < 0 ? &states->row_counts : &states->slot[query->count_slot];
}

/*
 * The groups that have rows, ascending, in malloc'ed memory: of FORM_DIRECT, and of runs that may
 * have none.
 */
static DeviceStatus
list_present(DeviceQuery *query, int32_t **list, int64_t *n, DeviceError *error)
{
	int64_t capacity = query->groups.states.capacity;
	size_t bytes = capacity * sizeof(int64_t);
	int64_t *counts = malloc(bytes);
	cudaError_t err;

	*list = malloc(capacity * sizeof(int32_t));
	*n = 0;
	if (counts == NULL || *list == NULL)
	{
		free(counts);
		return out_of_memory(error);
	}
	err = cudaMemcpyAsync(counts, groups_row_counts(query)->at, bytes, cudaMemcpyDeviceToHost,
						  query->stream);
	if (err == cudaSuccess)
		err = cudaStreamSynchronize(query->stream);
	for (int64_t b = 0; err == cudaSuccess && b < capacity; b++)
		if (counts[b] > 0)
			(*list)[(*n)++] = (int32_t) b;
	free(counts);
	return err == cudaSuccess ? DEVICE_OK : cuda_status(err, "copy of the bins in use", error);
}

/* Copies a host array, which may be freed afterwards, to the device. */
static DeviceStatus
upload_array(DeviceQuery *query, DeviceMemory *memory, const void *host, size_t bytes,
			 DeviceError *error)
{
	DEVICE_CHECK(memory_reserve(query, memory, bytes, error));
	CUDA_CHECK(cudaMemcpyAsync(memory->at, host, bytes, cudaMemcpyHostToDevice, query->stream));
	CUDA_CHECK(cudaStreamSynchronize(query->stream));
	return DEVICE_OK;
}

/* ---- the hash table ---- */

/* The alignment of slots and keys that gpuagg_cuda.h requires. */
#define TABLE_ALIGN 256

static size_t
table_align(size_t bytes)
{
	return (bytes + TABLE_ALIGN - 1) / TABLE_ALIGN * TABLE_ALIGN;
}

static void
release_hash(DeviceQuery *query, HashTable *hash)
{
	memory_release(query, &hash->memory);
	memset(hash, 0, sizeof(*hash));
}

/*
 * Bytes of a packed key while no key has been NULL: the byte for NULLs may be one too many for 4
 * or 8.
 */
static int
narrow_key_bytes(const WireQuery *q)
{
	const WireKey *last = &q->keys[q->nkeys - 1];
	int end = last->offset + last->width;

	return end <= 4 ? 4 : end <= 8 ? 8 : 16;
}

/*
 * Bytes of a key in a hash table.  Rows kept in order need bins that do not change, so
 * that their table has keys of full length from the start.
 */
static int
table_key_bytes(const WireQuery *q, bool null_keys)
{
	return null_keys || wire_keeps_rows(q) ? q->key_bytes : narrow_key_bytes(q);
}

void
lengthen_keys(char *keys, size_t n, int from, int to)
{
	/* of most queries: int4 keys, as a whole word each */
	if (from == 4 && to == 8)
		for (size_t i = n; i-- > 0;)
		{
			uint64_t key = 0;

			memcpy(&key, keys + i * 4, 4);
			memcpy(keys + i * 8, &key, 8);
		}
	else if (from < to)
		for (size_t i = n; i-- > 0;)
		{
			memmove(keys + i * to, keys + i * from, from);
			memset(keys + i * to + from, 0, to - from);
		}
}

/* After a failure: gives up a table and states that were not installed.  Returns the status. */
static DeviceStatus
release_new_groups(DeviceQuery *query, HashTable *hash, GroupStates *states, DeviceStatus status)
{
	release_hash(query, hash);
	states_release(query, states);
	return status;
}

/*
 * One allocation, cut in three, for keys of hash->table.key_bytes; init of the table is the
 * caller's.
 */
static DeviceStatus
make_hash(DeviceQuery *query, int64_t capacity, HashTable *hash, DeviceError *error)
{
	int key_bytes = hash->table.key_bytes;
	size_t slots = table_align(gpuagg_group_slot_bytes(key_bytes, capacity));
	size_t keys = table_align(capacity * key_bytes);
	char *at;

	DEVICE_CHECK(
		memory_reserve(query, &hash->memory, slots + keys + sizeof(GpuaggGroupCounters), error));
	at = hash->memory.at;
	hash->table.capacity = capacity;
	hash->table.seed = query->seed;
	hash->table.slots = at;
	hash->table.keys = at + slots;
	hash->table.counters = (GpuaggGroupCounters *) (at + slots + keys);
	return DEVICE_OK;
}

/* A table, and the states of as many groups. */
static DeviceStatus
make_table_and_states(DeviceQuery *query, int64_t capacity, HashTable *hash, GroupStates *states,
					  DeviceError *error)
{
	DeviceStatus status;

	DEVICE_CHECK(make_hash(query, capacity, hash, error));
	status = states_make(query, FORM_HASH, capacity, states, error);
	if (status != DEVICE_OK)
		memory_release(query, &hash->memory);
	return status;
}

/*
 * The same for `capacity` groups or, if there is no memory for them, for fewer, down to `least`.
 */
static DeviceStatus
make_table_within_memory(DeviceQuery *query, int64_t capacity, int64_t least, HashTable *hash,
						 GroupStates *states, DeviceError *error)
{
	int64_t most = states_max_groups(query->q);
	DeviceStatus status;

	if (least > most)
		return device_fail(error, DEVICE_UNSUPPORTED, "too many bins for one histogram");
	capacity = capacity > most ? most : capacity;
	capacity = capacity < least ? least : capacity;
	while ((status = make_table_and_states(query, capacity, hash, states, error)) ==
			   DEVICE_NO_MEMORY &&
		   capacity > least)
		capacity = capacity - least < LEAST_GROWTH ? least : least + (capacity - least) / 2;
	return status;
}

/*
 * A first table, with room for n groups and one more, and for the estimated number if there is
 * memory.
 */
static DeviceStatus
make_first_table(DeviceQuery *query, int64_t n, HashTable *hash, GroupStates *states,
				 DeviceError *error)
{
	double groups = query->q->est_groups * 1.25;
	int64_t capacity = LEAST_CAPACITY;
	GpuaggCudaStatus status;

	while (capacity < 2 * n || (capacity < groups && capacity < MOST_FIRST_CAPACITY))
		capacity *= 2;
	DEVICE_CHECK(make_table_within_memory(query, capacity, n + 1, hash, states, error));
	status = gpuagg_group_init(&hash->table, query->stream);
	return status == GPUAGG_CUDA_OK ?
		DEVICE_OK :
		release_new_groups(query, hash, states, kernel_status(status, "gpuagg_group_init", error));
}

/* Copies the keys and the states of the query's groups to a larger table, which is empty. */
static DeviceStatus
move_groups(DeviceQuery *query, HashTable *hash, GroupStates *states, DeviceError *error)
{
	KERNEL_CHECK(gpuagg_group_grow(&query->groups.hash.table, &hash->table, query->stream));
	for (int s = 0; s < query->q->nslots; s++)
		CUDA_CHECK(cudaMemcpyAsync(states->slot[s].at, query->groups.states.slot[s].at,
								   query->groups.n * slot_state_bytes(query->q, s),
								   cudaMemcpyDeviceToDevice, query->stream));
	return DEVICE_OK;
}

/* Frees the query's table and states, and installs these. */
static void
replace_groups(DeviceQuery *query, GroupForm form, HashTable *hash, GroupStates *states)
{
	release_hash(query, &query->groups.hash);
	states_release(query, &query->groups.states);
	query->groups.form = form;
	query->groups.states = *states;
	if (hash)
		query->groups.hash = *hash;
}

/* Replaces the table by one of four times its capacity, or as much larger as memory allows. */
static DeviceStatus
grow_hash(DeviceQuery *query, DeviceError *error)
{
	int64_t old = query->groups.hash.table.capacity;
	HashTable hash = {.table = {.key_bytes = query->groups.hash.table.key_bytes}};
	GroupStates states;
	DeviceStatus status;

	DEVICE_CHECK(derived_slots_store(query, false, error));
	DEVICE_CHECK(make_table_within_memory(
		query, 4 * old, old + (old < LEAST_GROWTH ? 1 : LEAST_GROWTH), &hash, &states, error));
	status = move_groups(query, &hash, &states, error);
	if (status != DEVICE_OK)
		return release_new_groups(query, &hash, &states, status);
	replace_groups(query, FORM_HASH, &hash, &states);
	query->stats.retries++;
	return DEVICE_OK;
}

/* How the last lookup in the table went; waits for it. */
static DeviceStatus
read_outcome(DeviceQuery *query, const GpuaggGroupTable *table, GpuaggCudaStatus *status,
			 int64_t *groups, DeviceError *error)
{
	GpuaggGroupCounters counters;

	DEVICE_CHECK(device_query_read(query, &counters, table->counters, sizeof(counters), error));
	*status = gpuagg_group_outcome(table, &counters, groups);
	return DEVICE_OK;
}

/*
 * Bins of packed keys, for which the table grows as often as needed.  If that fails, the
 * table has new keys whose rows are not counted; their bins are query->groups.n and above.
 */
static DeviceStatus
look_up_bins(DeviceQuery *query, const void *keys, const uint8_t *filter, int64_t n, int32_t *bins,
			 DeviceError *error)
{
	for (int retry = 0;; retry = 1)
	{
		GpuaggCudaStatus status;
		int64_t groups;

		KERNEL_CHECK(gpuagg_group_lookup(&query->groups.hash.table, keys, filter, n, retry, bins,
										 query->stream));
		DEVICE_CHECK(read_outcome(query, &query->groups.hash.table, &status, &groups, error));
		if (status == GPUAGG_CUDA_OK)
		{
			query->groups.ntable = groups;
			return DEVICE_OK;
		}
		if (status != GPUAGG_CUDA_FULL)
			return kernel_status(status, "gpuagg_group_lookup", error);
		DEVICE_CHECK(grow_hash(query, error));
	}
}

/* ---- changing form ---- */

/* The groups that there are when the form changes: their bins, and those that they get. */
typedef struct OldBins
{
	int64_t n;
	int32_t *list;     /* bins, on the host */
	DeviceMemory from; /* the same, on the device */
	DeviceMemory to;   /* new bins */
} OldBins;

/* The number that a direct bin of the query has in bins of other ranges, which contain its own. */
static int32_t
moved_bin(const DeviceQuery *query, const KeyRanges *ranges, int64_t bin)
{
	const WireQuery *q = query->q;
	const KeyRanges *old = &query->groups.ranges;
	int64_t moved = 0;
	int64_t factor = 1;

	for (int k = q->nkeys - 1; k >= 0; k--)
	{
		int64_t digit = bin % old->extent[k];

		bin /= old->extent[k];
		if (old->has_null[k] && digit == old->extent[k] - 1)
			digit = ranges->extent[k] - 1;
		else
			digit += old->min[k] - ranges->min[k];
		moved += digit * factor;
		factor *= ranges->extent[k];
	}
	return (int32_t) moved;
}

/* Changes to `bins` direct bins of these ranges. */
static DeviceStatus
move_to_direct(DeviceQuery *query, OldBins *old, const KeyRanges *ranges, int64_t bins,
			   DeviceError *error)
{
	GroupStates states;
	DeviceStatus status;

	for (int64_t i = 0; i < old->n; i++)
		old->list[i] = moved_bin(query, ranges, old->list[i]);
	DEVICE_CHECK(upload_array(query, &old->to, old->list, old->n * sizeof(int32_t), error));
	DEVICE_CHECK(states_make(query, FORM_DIRECT, bins, &states, error));
	status = states_move(query, &states, old->from.at, old->to.at, old->n, error);
	if (status != DEVICE_OK)
	{
		states_release(query, &states);
		return status;
	}
	replace_groups(query, FORM_DIRECT, NULL, &states);
	query->groups.ranges = *ranges;
	return DEVICE_OK;
}

/* Inserts the old keys into a new table, which has room for all, and moves their states. */
static DeviceStatus
fill_hash(DeviceQuery *query, OldBins *old, HashTable *hash, GroupStates *states, int64_t *ngroups,
		  DeviceError *error)
{
	GpuaggCudaStatus status;

	KERNEL_CHECK(gpuagg_group_lookup(&hash->table, query->scratch.keys.at, NULL, old->n, 0,
									 old->to.at, query->stream));
	DEVICE_CHECK(read_outcome(query, &hash->table, &status, ngroups, error));
	KERNEL_CHECK(status);
	return states_move(query, states, old->from.at, old->to.at, old->n, error);
}

/* Packed keys of the old groups, of this length, in malloc'ed memory. */
static DeviceStatus
read_keys(DeviceQuery *query, const OldBins *old, int key_bytes, char **keys, DeviceError *error)
{
	int old_bytes = query->groups.hash.table.key_bytes;

	*keys = malloc(old->n * key_bytes + 1);
	if (*keys == NULL)
		return out_of_memory(error);
	if (query->groups.form == FORM_DIRECT)
	{
		for (int64_t i = 0; i < old->n; i++)
			groups_direct_key(query, old->list[i], *keys + i * key_bytes, key_bytes);
		return DEVICE_OK;
	}
	if (query->groups.form == FORM_RUNS)
	{
		DEVICE_CHECK(memory_reserve(query, &query->scratch.keys, old->n * key_bytes, error));
		KERNEL_CHECK(device_gather(query->groups.states.keys.at, key_bytes, old->from.at, old->n,
								   query->scratch.keys.at, query->stream));
		CUDA_CHECK(cudaMemcpyAsync(*keys, query->scratch.keys.at, old->n * key_bytes,
								   cudaMemcpyDeviceToHost, query->stream));
		CUDA_CHECK(cudaStreamSynchronize(query->stream));
		return DEVICE_OK;
	}
	CUDA_CHECK(cudaMemcpyAsync(*keys, query->groups.hash.table.keys, old->n * old_bytes,
							   cudaMemcpyDeviceToHost, query->stream));
	CUDA_CHECK(cudaStreamSynchronize(query->stream));
	lengthen_keys(*keys, old->n, old_bytes, key_bytes);
	return DEVICE_OK;
}

/* Changes to a hash table; null_keys: there are NULLs among the keys, or will be in this batch. */
static DeviceStatus
move_to_hash(DeviceQuery *query, OldBins *old, bool null_keys, DeviceError *error)
{
	HashTable hash = {.table = {.key_bytes = table_key_bytes(query->q, null_keys)}};
	char *keys;
	GroupStates states;
	int64_t ngroups = 0;
	DeviceStatus status = read_keys(query, old, hash.table.key_bytes, &keys, error);

	if (status == DEVICE_OK)
		status =
			upload_array(query, &query->scratch.keys, keys, old->n * hash.table.key_bytes, error);
	free(keys);
	DEVICE_CHECK(status);
	DEVICE_CHECK(memory_reserve(query, &old->to, old->n * sizeof(int32_t), error));
	DEVICE_CHECK(make_first_table(query, old->n, &hash, &states, error));
	status = fill_hash(query, old, &hash, &states, &ngroups, error);
	if (status != DEVICE_OK)
		return release_new_groups(query, &hash, &states, status);
	replace_groups(query, FORM_HASH, &hash, &states);
	query->groups.n = query->groups.ntable = ngroups;
	return DEVICE_OK;
}

static bool
has_null_keys(const WireQuery *q, const Rows *rows)
{
	for (int k = 0; k < q->nkeys; k++)
		if (key_has_nulls(q, rows, k))
			return true;
	return false;
}

/*
 * A key is out of its range, or the first NULL: changes to a larger direct table, or to a hash
 * table.
 */
static DeviceStatus
leave_direct(DeviceQuery *query, const Rows *rows, OldBins *old, DeviceError *error)
{
	const WireQuery *q = query->q;
	const KeyRanges *old_ranges = &query->groups.ranges;
	KeyRanges ranges = *old_ranges;
	bool null_keys = false;
	double bins;

	DEVICE_CHECK(list_present(query, &old->list, &old->n, error));
	DEVICE_CHECK(upload_array(query, &old->from, old->list, old->n * sizeof(int32_t), error));
	widen_ranges(q, rows, &ranges);
	for (int k = 0; k < q->nkeys; k++)
	{
		null_keys |= ranges.has_null[k];
		/*
		 * twice as wide as needed, so that changes are few; upwards, as times and codes of
		 * dictionaries grow
		 */
		if ((ranges.min[k] < old_ranges->min[k] || ranges.max[k] > old_ranges->max[k]) &&
			ranges.max[k] < INT64_MAX / 4 && ranges.min[k] > INT64_MIN / 4)
			ranges.max[k] += ranges.max[k] - ranges.min[k];
	}
	bins = count_bins(q, &ranges);
	if (choose_strategy(query, bins) != STRATEGY_DIRECT)
		DEVICE_CHECK(move_to_hash(query, old, null_keys, error));
	else
		DEVICE_CHECK(move_to_direct(query, old, &ranges, (int64_t) bins, error));
	query->stats.changes++;
	return DEVICE_OK;
}

/* All groups as they are numbered. */
static DeviceStatus
list_all(int64_t n, OldBins *old, DeviceError *error)
{
	old->n = n;
	old->list = malloc(n * sizeof(int32_t) + 1);
	if (old->list == NULL)
		return out_of_memory(error);
	for (int64_t i = 0; i < n; i++)
		old->list[i] = (int32_t) i;
	return DEVICE_OK;
}

/* Rows come behind the runs, in any order: changes to a hash table. */
static DeviceStatus
leave_runs(DeviceQuery *query, OldBins *old, DeviceError *error)
{
	if (query->groups.runs_may_be_empty)
		DEVICE_CHECK(list_present(query, &old->list, &old->n, error));
	else
		DEVICE_CHECK(list_all(query->groups.states.capacity, old, error));
	DEVICE_CHECK(upload_array(query, &old->from, old->list, old->n * sizeof(int32_t), error));
	DEVICE_CHECK(move_to_hash(query, old, true, error));
	query->stats.changes++;
	return DEVICE_OK;
}

/* The first NULL in a hash table that has no byte for it: changes to one with longer keys. */
static DeviceStatus
leave_narrow_keys(DeviceQuery *query, OldBins *old, DeviceError *error)
{
	DEVICE_CHECK(list_all(query->groups.n, old, error));
	DEVICE_CHECK(upload_array(query, &old->from, old->list, old->n * sizeof(int32_t), error));
	DEVICE_CHECK(move_to_hash(query, old, true, error));
	query->stats.retries++;
	return DEVICE_OK;
}

/* Changes the form or the table, if it cannot have bins for the keys of these rows. */
static DeviceStatus
change_form_if_needed(DeviceQuery *query, const Rows *rows, DeviceError *error)
{
	const WireQuery *q = query->q;
	KeyRanges ranges = query->groups.ranges;
	OldBins old = {.list = NULL};
	DeviceStatus status = DEVICE_OK;

	bool runs = query->groups.form == FORM_RUNS && rows->heads == NULL;
	bool out_of_range = query->groups.form == FORM_DIRECT && widen_ranges(q, rows, &ranges);
	bool narrow = query->groups.form == FORM_HASH && has_null_keys(q, rows) &&
		query->groups.hash.table.key_bytes < table_key_bytes(q, true);

	if (!runs && !out_of_range && !narrow)
		return DEVICE_OK;
	DEVICE_CHECK(derived_slots_store(query, false, error));
	if (runs)
		status = leave_runs(query, &old, error);
	else if (out_of_range)
		status = leave_direct(query, rows, &old, error);
	else
		status = leave_narrow_keys(query, &old, error);
	memory_release(query, &old.from);
	memory_release(query, &old.to);
	free(old.list);
	return status;
}

/* Chooses the form by the keys of the first batch. */
static DeviceStatus
choose_form(DeviceQuery *query, const Rows *rows, DeviceError *error)
{
	const WireQuery *q = query->q;
	GroupForm form = FORM_SINGLE;
	KeyRanges ranges = {.extent = {0}};
	HashTable hash = {.memory = {0}};
	GroupStates states;
	double bins = 1;

	for (int k = 0; k < q->nkeys; k++)
	{
		ranges.min[k] = INT64_MAX;
		ranges.max[k] = INT64_MIN;
	}
	widen_ranges(q, rows, &ranges);
	for (int k = 0; k < q->nkeys; k++)
		if (ranges.min[k] > ranges.max[k])
			ranges.min[k] = ranges.max[k] = 0;
	if (q->nkeys > 0)
	{
		bins = count_bins(q, &ranges);
		form = choose_strategy(query, bins) == STRATEGY_DIRECT ? FORM_DIRECT : FORM_HASH;
	}
	if (form == FORM_HASH)
	{
		hash.table.key_bytes = table_key_bytes(q, has_null_keys(q, rows));
		DEVICE_CHECK(make_first_table(query, 0, &hash, &states, error));
	}
	else
		DEVICE_CHECK(states_make(query, form, (int64_t) bins, &states, error));
	replace_groups(query, form, &hash, &states);
	if (form == FORM_DIRECT)
		query->groups.ranges = ranges;
	return DEVICE_OK;
}

DeviceStatus
groups_start_runs(DeviceQuery *query, int64_t n, bool may_be_empty, DeviceError *error)
{
	HashTable none = {.memory = {0}};
	GroupStates states;

	query->groups.runs_may_be_empty = may_be_empty;
	DEVICE_CHECK(states_make(query, FORM_RUNS, n, &states, error));
	replace_groups(query, FORM_RUNS, &none, &states);
	return DEVICE_OK;
}

/* ---- rows to bins ---- */

/* Query->bins, with room for an int32 of each row. */
static DeviceStatus
reserve_bins(DeviceQuery *query, const Rows *rows, DeviceError *error)
{
	size_t bytes = (size_t) rows->nrows * sizeof(int32_t);

	if (query->scratch.bins.at == NULL || query->scratch.bins.bytes < bytes)
		query->scratch.nzeros = 0;
	return memory_reserve(query, &query->scratch.bins, bytes, error);
}

/* The rows' keys as a table has them, if they are a column as it stands; else NULL. */
static const void *
keys_in_place(const DeviceQuery *query, const Rows *rows)
{
	const WireKey *key = &query->q->keys[0];

	return query->q->nkeys == 1 && key->width == query->groups.hash.table.key_bytes &&
			!key_has_nulls(query->q, rows, 0) ?
		rows->cols[key->col].values :
		NULL;
}

static DeviceStatus
pack_keys(DeviceQuery *query, const Rows *rows, DeviceError *error)
{
	const WireQuery *q = query->q;
	PackKeys pack = {.nkeys = q->nkeys,
					 .key_bytes = query->groups.hash.table.key_bytes,
					 .null_offset = q->null_offset};

	for (int k = 0; k < q->nkeys; k++)
	{
		pack.width[k] = q->keys[k].width;
		pack.offset[k] = q->keys[k].offset;
		pack.column[k] = rows->cols[q->keys[k].col];
	}
	DEVICE_CHECK(
		memory_reserve(query, &query->scratch.keys, (size_t) rows->nrows * pack.key_bytes, error));
	KERNEL_CHECK(device_pack_keys(&pack, rows->nrows, query->scratch.keys.at, query->stream));
	return DEVICE_OK;
}

/* Sorted rows: a lookup for each run instead of each row. */
static DeviceStatus
locate_sorted(DeviceQuery *query, const Rows *rows, int64_t n, DeviceError *error)
{
	int key_bytes = query->groups.hash.table.key_bytes;
	PackKeys pack = {
		.nkeys = 1, .key_bytes = key_bytes, .null_offset = key_bytes, .width = {key_bytes}};

	pack.column[0] = (DeviceColumn){.values = query->runs.sorted_keys.at,
									.type = key_bytes == 4 ? WIRE_I32 : WIRE_I64};
	/* the rows' own packed keys are in order now, and not needed any more */
	DEVICE_CHECK(memory_reserve(query, &query->scratch.keys, n * key_bytes, error));
	KERNEL_CHECK(device_head_keys(&pack, query->runs.heads.at, query->runs.before.at, rows->nrows,
								  query->scratch.keys.at, query->stream));
	DEVICE_CHECK(
		look_up_bins(query, query->scratch.keys.at, NULL, n, query->scratch.bins.at, error));
	query->location.runs = (GpuaggRuns){
		.heads = query->runs.heads.at,
		.before = query->runs.before.at,
		.order = query->runs.row_numbers.at,
		.bins = query->scratch.bins.at,
	};
	return DEVICE_OK;
}

static DeviceStatus
locate_hash(DeviceQuery *query, const Rows *rows, DeviceError *error)
{
	const void *keys = keys_in_place(query, rows);
	int64_t n = 0;

	DEVICE_CHECK(reserve_bins(query, rows, error));
	if (keys == NULL)
	{
		DEVICE_CHECK(pack_keys(query, rows, error));
		keys = query->scratch.keys.at;
	}
	DEVICE_CHECK(runs_sort(query, rows, keys, &n, error));
	query->stats.sorted = n > 0;
	if (query->stats.sorted)
		return locate_sorted(query, rows, n, error);
	return look_up_bins(query, keys, rows->filter, rows->nrows, query->scratch.bins.at, error);
}

/*
 * Does something need the bins themselves?  Rows of sketches find their group as those of
 * histograms do.
 */
static bool
needs_bins(const WireQuery *q)
{
	for (int s = 0; s < q->nslots; s++)
		if (q->slots[s].bin_kind != WIRE_BIN_NONE && !slot_is_sketch(q, s))
			return true;
	return wire_keeps_rows(q);
}

/*
 * May keys take the place of bins?  Histograms read a lone int32 key as fast as a column of bins,
 * and some read two.  Of other keys, NULLs and filters the column is made, as several calls may
 * read it.
 */
static bool
keys_can_replace_bins(const DeviceQuery *query, const GpuaggBins *bins)
{
	if (bins->ncolumns > 2 || bins->filter != NULL || needs_bins(query->q))
		return false;
	for (int k = 0; k < bins->ncolumns; k++)
		if (bins->column[k].type != GPUAGG_VALUE_I32 || bins->column[k].validity != NULL)
			return false;
	return true;
}

DeviceStatus
groups_make_bins(DeviceQuery *query, const Rows *rows, DeviceError *error)
{
	DEVICE_CHECK(reserve_bins(query, rows, error));
	KERNEL_CHECK(gpuagg_hist_bins(&query->location.bins, rows->nrows, query->scratch.bins.at,
								  query->status.at, query->stream));
	query->location.bins =
		(GpuaggBins){.kind = GPUAGG_BIN_INDEX, .ncolumns = 1, .nbins = query->location.bins.nbins};
	query->location.bins.column[0] =
		(GpuaggColumn){.values = query->scratch.bins.at, .type = GPUAGG_VALUE_I32};
	return DEVICE_OK;
}

static DeviceStatus
locate_direct(DeviceQuery *query, const Rows *rows, DeviceError *error)
{
	query->location.bins = groups_bins(query, rows);
	return keys_can_replace_bins(query, &query->location.bins) ?
		DEVICE_OK :
		groups_make_bins(query, rows, error);
}

/*
 * All rows are in bin 0, but those that the filter leaves out.  Bins are written only if something
 * reads them.
 */
static DeviceStatus
locate_single(DeviceQuery *query, const Rows *rows, DeviceError *error)
{
	if (!rows->filter && !wire_keeps_rows(query->q))
		return DEVICE_OK;
	DEVICE_CHECK(reserve_bins(query, rows, error));
	if (rows->filter)
	{
		query->scratch.nzeros = 0;
		KERNEL_CHECK(
			device_filter_bins(rows->filter, rows->nrows, query->scratch.bins.at, query->stream));
	}
	else if (query->scratch.nzeros < rows->nrows)
	{
		CUDA_CHECK(cudaMemsetAsync(query->scratch.bins.at, 0,
								   (size_t) rows->nrows * sizeof(int32_t), query->stream));
		query->scratch.nzeros = rows->nrows;
	}
	return DEVICE_OK;
}

const int32_t *
groups_of_rows(const DeviceQuery *query, const Rows *rows)
{
	return query->groups.form == FORM_SINGLE && rows->filter == NULL ? NULL :
																	   query->scratch.bins.at;
}

DeviceStatus
groups_fit(DeviceQuery *query, const Rows *rows, DeviceError *error)
{
	if (query->groups.form == FORM_UNKNOWN)
		DEVICE_CHECK(choose_form(query, rows, error));
	else
		DEVICE_CHECK(change_form_if_needed(query, rows, error));
	if (query->nrows == 0)
		derived_slots_find(query, rows);
	else
		DEVICE_CHECK(derived_slots_check(query, rows, error));
	return DEVICE_OK;
}

DeviceStatus
groups_locate(DeviceQuery *query, const Rows *rows, DeviceError *error)
{
	DeviceStatus status;

	DEVICE_CHECK(groups_fit(query, rows, error));
	query->location.runs = (GpuaggRuns){.heads = rows->heads, .before = rows->before};
	query->location.bins = (GpuaggBins){.kind = GPUAGG_BIN_INDEX, .ncolumns = 1};
	if (query->groups.form == FORM_DIRECT)
		status = locate_direct(query, rows, error);
	else if (query->groups.form == FORM_HASH)
		status = locate_hash(query, rows, error);
	else if (query->groups.form == FORM_RUNS)
		status = DEVICE_OK;
	else
		status = locate_single(query, rows, error);
	if (query->location.bins.kind == GPUAGG_BIN_INDEX)
		query->location.bins.column[0] =
			(GpuaggColumn){.values = groups_of_rows(query, rows), .type = GPUAGG_VALUE_I32};
	query->location.bins.nbins =
		query->groups.form == FORM_HASH ? query->groups.ntable : query->groups.states.capacity;
	return status;
}

void
groups_release(DeviceQuery *query)
{
	states_release(query, &query->groups.states);
	release_hash(query, &query->groups.hash);
	memory_release(query, &query->result.top);
	query->result.listed = NULL;
	query->groups.runs_may_be_empty = false;
	query->groups.n = query->groups.ntable = 0;
	query->groups.form = FORM_UNKNOWN;
}
