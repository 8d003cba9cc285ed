/*
 * group_tables.c
 *	  The groups of a query on the device: their form, which changes when the keys of new rows have
 *	  no bins, and their hash table.
 *
 * In every form each slot has one array of states with room for `capacity` groups.  The bin of a
 * row is the index of its group.  The form changes before a batch is reduced:
 *
 *	- from direct bins, when a key is out of its range, or is the first NULL: to more direct
 *	  bins, or to a hash table;
 *	- from a hash table that is full: to a larger one, in which groups keep their bins;
 *	- from a hash table whose packed keys have no byte for NULL bits, when the first NULL comes:
 *	  to one with longer keys.  Most queries never have NULL keys, and keys of 4, 8 and 16 bytes
 *	  are found faster than those of 8, 16 and more bytes;
 *	- from runs, when other rows come: to a hash table.
 *
 * A change first allocates and fills the new table and states.  It replaces the old ones as its
 * last step: if it fails, the groups of earlier batches are as they were.
 *
 * strategy.c chooses between direct bins and a hash table.  Its third choice, sort, is also a hash
 * table.  Only if gpuagg.strategy asks for sort, the rows are sorted first and each run is looked
 * up; this was never faster (kernels/TUNING.md).
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "device_cuda/device_internal.h"

/* More direct bins than this are not used: listing the bins with rows would take too long. */
#define MOST_DIRECT_BINS (1 << 22)

/* Fails because the server has too little host memory. */
static DeviceStatus
out_of_memory(DeviceError *error)
{
	return device_fail(error, DEVICE_NO_MEMORY, "out of memory in the GPU server");
}

/* ---- direct bins ---- */

/* Sets the extents of the ranges.  Returns the number of bins, which may exceed any limit. */
static double
count_bins(const WireQuery *q, KeyRanges *ranges)
{
	double product = 1;

	for (int k = 0; k < q->nkeys; k++)
	{
		/* subtract as integers: large keys are not exact as doubles */
		double nvalues = (double) ((uint64_t) ranges->max[k] - (uint64_t) ranges->min[k]) + 1 +
			ranges->has_null[k];

		product *= nvalues;
		ranges->extent[k] = product < 1e15 ? (int64_t) nvalues : 0;
	}
	return product;
}

/* Widens the ranges to contain the keys of the rows.  Returns whether that changed them. */
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

/* Returns STRATEGY_DIRECT or STRATEGY_HASH, for keys whose ranges span `bins` bins. */
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

	/* bins of rows that are kept must not change, so that they are in a hash table */
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
 * Lists the groups that have rows, in ascending order, in malloc'ed memory.  For FORM_DIRECT, and
 * for runs that may be empty.
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

/* Copies a host array to the device, and waits, so that the caller may free it. */
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

/*
 * Returns the bytes of a group's key in or beside a hash table.  Keys have their full length from
 * the start if they are shortened, and if rows are kept, whose bins must not change.
 */
static int
group_key_bytes(const WireQuery *q, bool null_keys)
{
	int narrow = keys_narrow_bytes(q);

	return null_keys || wire_keeps_rows(q) || narrow > HASH_MOST_KEY_BYTES ? q->key_bytes : narrow;
}

/* Returns a table without memory.  null_keys: some key is NULL. */
static HashTable
describe_hash(const WireQuery *q, bool null_keys)
{
	int bytes = group_key_bytes(q, null_keys);
	HashTable hash = {.shortened = bytes > HASH_MOST_KEY_BYTES};

	hash.table.key_bytes = hash.shortened ? keys_short_bytes(q) : bytes;
	return hash;
}

/* After a failure: releases a new table and its states.  Returns the status. */
static DeviceStatus
release_new_groups(DeviceQuery *query, HashTable *hash, GroupStates *states, DeviceStatus status)
{
	hash_release(query, hash);
	states_release(query, states);
	return status;
}

/* Allocates a table, and the states of as many groups. */
static DeviceStatus
make_table_and_states(DeviceQuery *query, int64_t capacity, HashTable *hash, GroupStates *states,
					  DeviceError *error)
{
	DeviceStatus status;

	DEVICE_CHECK(hash_make(query, capacity, hash, error));
	status = states_make(query, FORM_HASH, hash->shortened, capacity, states, error);
	if (status != DEVICE_OK)
		memory_release(query, &hash->memory);
	return status;
}

/*
 * Allocates a table and states for `capacity` groups or, if there is too little memory, for fewer,
 * but at least for `least` groups.
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
		capacity = hash_smaller_capacity(capacity, least);
	return status;
}

/*
 * Makes the first table.  It has room for n groups and one more, and for the estimated number of
 * groups if there is memory.
 */
static DeviceStatus
make_first_table(DeviceQuery *query, int64_t n, HashTable *hash, GroupStates *states,
				 DeviceError *error)
{
	GpuaggCudaStatus status;

	DEVICE_CHECK(make_table_within_memory(query, hash_first_capacity(query->q, n), n + 1, hash,
										  states, error));
	status = gpuagg_group_init(&hash->table, query->stream);
	return status == GPUAGG_CUDA_OK ?
		DEVICE_OK :
		release_new_groups(query, hash, states, kernel_status(status, "gpuagg_group_init", error));
}

/* Copies the keys and the states of the query's groups to a larger, empty table. */
static DeviceStatus
move_groups(DeviceQuery *query, HashTable *hash, GroupStates *states, DeviceError *error)
{
	KERNEL_CHECK(gpuagg_group_grow(&query->groups.hash.table, &hash->table, query->stream));
	for (int s = 0; s < query->q->nslots; s++)
		CUDA_CHECK(cudaMemcpyAsync(states->slot[s].at, query->groups.states.slot[s].at,
								   query->groups.n * slot_state_bytes(query->q, s),
								   cudaMemcpyDeviceToDevice, query->stream));
	if (hash->shortened)
		CUDA_CHECK(cudaMemcpyAsync(states->keys.at, query->groups.states.keys.at,
								   query->groups.nstored * query->q->key_bytes,
								   cudaMemcpyDeviceToDevice, query->stream));
	return DEVICE_OK;
}

/* Installs new groups: releases the query's table and states, and replaces them by these. */
static void
replace_groups(DeviceQuery *query, GroupForm form, HashTable *hash, GroupStates *states)
{
	hash_release(query, &query->groups.hash);
	states_release(query, &query->groups.states);
	query->groups.form = form;
	query->groups.states = *states;
	if (hash)
		query->groups.hash = *hash;
}

/* Replaces the table by one of four times its capacity, or as much as memory allows. */
static DeviceStatus
grow_hash(DeviceQuery *query, DeviceError *error)
{
	int64_t old = query->groups.hash.table.capacity;
	HashTable hash = {.table = {.key_bytes = query->groups.hash.table.key_bytes},
					  .shortened = query->groups.hash.shortened};
	GroupStates states;
	DeviceStatus status;

	DEVICE_CHECK(derived_slots_store(query, false, error));
	DEVICE_CHECK(make_table_within_memory(query, 4 * old,
										  old + (old < HASH_LEAST_GROWTH ? 1 : HASH_LEAST_GROWTH),
										  &hash, &states, error));
	status = move_groups(query, &hash, &states, error);
	if (status != DEVICE_OK)
		return release_new_groups(query, &hash, &states, status);
	replace_groups(query, FORM_HASH, &hash, &states);
	query->stats.retries++;
	return DEVICE_OK;
}

/*
 * Looks up shortened keys.  The whole keys of new groups are stored at once: if these rows are not
 * reduced, groups of another device may nevertheless find their keys in the table.
 */
static DeviceStatus
look_up_shortened(DeviceQuery *query, const DeviceColumn *cols, const uint8_t *filter, int64_t n,
				  int retry, int32_t *bins, bool *full, DeviceError *error)
{
	Groups *groups = &query->groups;

	if (groups->lacks_keys)
		return device_fail(error, DEVICE_UNSUPPORTED, "the keys of some groups were not stored");
	DEVICE_CHECK(memory_reserve(query, &query->scratch.slot_bins, n * sizeof(int32_t), error));
	groups->lacks_keys = true;
	DEVICE_CHECK(hash_look_up(query, &groups->hash.table, query->scratch.keys.at, filter, n, retry,
							  bins, &groups->ntable, full, error));
	DEVICE_CHECK(keys_store(query, cols, bins, n, query->scratch.slot_bins.at, error));
	groups->lacks_keys = false;
	return DEVICE_OK;
}

/* Fills the slots of the query's table, if it has keys only. */
static DeviceStatus
fill_slots(DeviceQuery *query, DeviceError *error)
{
	HashTable *hash = &query->groups.hash;

	if (hash->unfilled)
		KERNEL_CHECK(gpuagg_group_fill(&hash->table, query->stream));
	hash->unfilled = false;
	return DEVICE_OK;
}

DeviceStatus
groups_look_up(DeviceQuery *query, const void *keys, const DeviceColumn *cols,
			   const uint8_t *filter, int64_t n, int32_t *bins, DeviceError *error)
{
	Groups *groups = &query->groups;
	bool full = true;

	DEVICE_CHECK(fill_slots(query, error));

	for (int retry = 0; full; retry = 1)
	{
		if (groups->hash.shortened)
			DEVICE_CHECK(look_up_shortened(query, cols, filter, n, retry, bins, &full, error));
		else
			DEVICE_CHECK(hash_look_up(query, &groups->hash.table, keys, filter, n, retry, bins,
									  &groups->ntable, &full, error));
		if (full)
			DEVICE_CHECK(grow_hash(query, error));
	}
	return DEVICE_OK;
}

/* Replaces an empty table by one with room for n groups, and for the estimate. */
static DeviceStatus
enlarge_empty(DeviceQuery *query, int64_t n, DeviceError *error)
{
	HashTable hash = {.table = {.key_bytes = query->groups.hash.table.key_bytes}};
	double estimate = query->q->est_groups * 1.25;
	int64_t capacity = estimate > 4.0 * n ? 4 * n : estimate > n ? (int64_t) estimate : n;
	GroupStates states;

	DEVICE_CHECK(make_table_within_memory(query, capacity, n, &hash, &states, error));
	replace_groups(query, FORM_HASH, &hash, &states);
	return DEVICE_OK;
}

DeviceStatus
groups_add_parts(DeviceQuery *query, GpuaggKeyParts *parts, int64_t n, DeviceError *error)
{
	Groups *groups = &query->groups;

	if (groups->ntable > 0)
		return groups_look_up(query, parts->keys, NULL, NULL, n, parts->bins, error);
	if (n > groups->hash.table.capacity)
		DEVICE_CHECK(enlarge_empty(query, n, error));
	KERNEL_CHECK(gpuagg_group_adopt(&groups->hash.table, parts, n, query->stream));
	groups->hash.unfilled = true;
	groups->ntable = n;
	return DEVICE_OK;
}

/* ---- changing the form ---- */

/* The groups that exist when the form changes, with their old and new bins. */
typedef struct OldBins
{
	int64_t n;
	int32_t *list;     /* old bins; malloc'ed host memory */
	DeviceMemory from; /* the same, on the device */
	DeviceMemory to;   /* new bins, on the device */
	/* for a table of shortened keys: */
	DeviceMemory keys;    /* packed keys */
	DeviceMemory columns; /* the same, as columns */
} OldBins;

/*
 * Returns the bin that has the keys of direct bin `bin`, after the query's ranges became `ranges`.
 */
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

/*
 * Changes to FORM_DIRECT with these ranges, which have `bins` bins, and moves the old groups.
 * Overwrites old->list with the new bins.
 */
static DeviceStatus
move_to_direct(DeviceQuery *query, OldBins *old, const KeyRanges *ranges, int64_t bins,
			   DeviceError *error)
{
	GroupStates states;
	DeviceStatus status;

	for (int64_t i = 0; i < old->n; i++)
		old->list[i] = moved_bin(query, ranges, old->list[i]);
	DEVICE_CHECK(upload_array(query, &old->to, old->list, old->n * sizeof(int32_t), error));
	DEVICE_CHECK(states_make(query, FORM_DIRECT, false, bins, &states, error));
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

/* Shortens the packed keys in old->keys: writes the shortened ones to scratch.keys. */
static DeviceStatus
shorten_old_keys(DeviceQuery *query, OldBins *old, DeviceError *error)
{
	DeviceColumn cols[WIRE_MAX_COLS];
	uint32_t nulls = 0;

	for (int k = 0; k < query->q->nkeys; k++)
		nulls |= (uint32_t) query->q->keys[k].nullable << k;
	DEVICE_CHECK(keys_to_columns(query, old->keys.at, old->n, nulls, &old->columns, cols, error));
	return keys_shorten(query, cols, NULL, old->n, old->to.at, error);
}

/*
 * Inserts the keys of the old groups, which are in scratch.keys, into a new table with room for
 * them, and copies their states.  Sets *ngroups to the number of groups in the table.
 */
static DeviceStatus
fill_hash(DeviceQuery *query, OldBins *old, HashTable *hash, GroupStates *states, int64_t *ngroups,
		  DeviceError *error)
{
	bool full;

	if (hash->shortened)
		DEVICE_CHECK(shorten_old_keys(query, old, error));
	DEVICE_CHECK(hash_look_up(query, &hash->table, query->scratch.keys.at, NULL, old->n, 0,
							  old->to.at, ngroups, &full, error));
	if (full)
		return device_fail(error, DEVICE_UNSUPPORTED, "no room for the groups in a larger table");
	if (hash->shortened)
		KERNEL_CHECK(device_scatter(old->keys.at, query->q->key_bytes, old->to.at, old->n,
									states->keys.at, query->stream));
	return states_move(query, states, old->from.at, old->to.at, old->n, error);
}

/* Reads the packed keys of the old groups, key_bytes each, into malloc'ed memory. */
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

/* Changes to a hash table.  null_keys: some key is NULL, already or in this batch. */
static DeviceStatus
move_to_hash(DeviceQuery *query, OldBins *old, bool null_keys, DeviceError *error)
{
	HashTable hash = describe_hash(query->q, null_keys);
	int key_bytes = group_key_bytes(query->q, null_keys);
	char *keys;
	GroupStates states;
	int64_t ngroups = 0;
	DeviceStatus status = read_keys(query, old, key_bytes, &keys, error);

	if (status == DEVICE_OK)
		status = upload_array(query, hash.shortened ? &old->keys : &query->scratch.keys, keys,
							  old->n * key_bytes, error);
	free(keys);
	DEVICE_CHECK(status);
	DEVICE_CHECK(memory_reserve(query, &old->to, old->n * sizeof(int32_t), error));
	DEVICE_CHECK(make_first_table(query, old->n, &hash, &states, error));
	status = fill_hash(query, old, &hash, &states, &ngroups, error);
	if (status != DEVICE_OK)
		return release_new_groups(query, &hash, &states, status);
	replace_groups(query, FORM_HASH, &hash, &states);
	query->groups.n = query->groups.ntable = query->groups.nstored = ngroups;
	return DEVICE_OK;
}

/* Returns whether some key may be NULL in these rows. */
static bool
has_null_keys(const WireQuery *q, const Rows *rows)
{
	for (int k = 0; k < q->nkeys; k++)
		if (key_has_nulls(q, rows, k))
			return true;
	return false;
}

/*
 * Changes from direct bins because a key is out of its range, or is the first NULL: to more direct
 * bins, or to a hash table.
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
		 * double the range, so that changes are few; upwards, because times and dictionary codes
		 * grow
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

/* Sets old->list to the bins 0 .. n - 1, for a form in which every bin is a group. */
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

/* Changes from runs to a hash table, because other rows come, in any order. */
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

/* Changes to a hash table with longer keys, because the first NULL has no byte in this one. */
static DeviceStatus
leave_narrow_keys(DeviceQuery *query, OldBins *old, DeviceError *error)
{
	DEVICE_CHECK(list_all(query->groups.n, old, error));
	DEVICE_CHECK(upload_array(query, &old->from, old->list, old->n * sizeof(int32_t), error));
	DEVICE_CHECK(move_to_hash(query, old, true, error));
	query->stats.retries++;
	return DEVICE_OK;
}

/* Changes the form or the table, if the keys of these rows have no bins in it. */
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
		!query->groups.hash.shortened && query->groups.hash.table.key_bytes < q->key_bytes;

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
	memory_release(query, &old.keys);
	memory_release(query, &old.columns);
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
		hash = describe_hash(q, has_null_keys(q, rows));
		DEVICE_CHECK(make_first_table(query, 0, &hash, &states, error));
	}
	else
		DEVICE_CHECK(states_make(query, form, false, (int64_t) bins, &states, error));
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
	DEVICE_CHECK(states_make(query, FORM_RUNS, true, n, &states, error));
	replace_groups(query, FORM_RUNS, &none, &states);
	return DEVICE_OK;
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

void
groups_release(DeviceQuery *query)
{
	states_release(query, &query->groups.states);
	hash_release(query, &query->groups.hash);
	keys_release(query);
	memory_release(query, &query->result.top);
	query->result.listed = NULL;
	query->groups.runs_may_be_empty = false;
	query->groups.n = query->groups.ntable = query->groups.nstored = 0;
	query->groups.lacks_keys = false;
	query->groups.form = FORM_UNKNOWN;
}
