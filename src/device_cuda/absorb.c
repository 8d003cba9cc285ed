/*
 * absorb.c
 *	  Adds the groups of the same query on another device: copies them here, and combines them with
 *	  the query's own groups.
 *
 * If both have the same bins, whole arrays are combined.  Otherwise the keys of the other groups
 * are looked up like keys of rows, a number of groups at a time.  Values of sets are copied with
 * the bins that their groups have here, and sorted together with the query's own.
 */
#include <string.h>

#include "device_cuda/device_internal.h"

/*
 * The number of groups that are copied at a time.  It is below SPLIT_ROWS, so that they are not
 * sorted.  Tests make it smaller.
 */
#ifndef ABSORB_GROUPS
#define ABSORB_GROUPS (SPLIT_ROWS / 2)
#endif
#define ABSORB_BYTES ((size_t) 256 << 20)
#define ABSORB_VALUES ((int64_t) 1 << 24)

/* Lets a device read another one's memory, so that copies need not go through the host. */
static DeviceStatus
allow_peer_access(int to, int from, DeviceError *error)
{
	struct cudaMemAccessDesc access = {
		.location = {.type = cudaMemLocationTypeDevice, .id = cuda_ordinals[to]},
		.flags = cudaMemAccessFlagsProtReadWrite};
	cudaMemPool_t pool;
	int can = 0;

	CUDA_CHECK(cudaDeviceCanAccessPeer(&can, cuda_ordinals[to], cuda_ordinals[from]));
	if (!can)
		return DEVICE_OK;
	CUDA_CHECK(cudaDeviceGetDefaultMemPool(&pool, cuda_ordinals[from]));
	if (cudaMemPoolSetAccess(pool, &access, 1) != cudaSuccess)
		cudaGetLastError(); /* copies go through the host */
	return DEVICE_OK;
}

DeviceStatus
cuda_absorb_start(int ndevices, DeviceError *error)
{
	for (int to = 0; to < ndevices; to++)
		for (int from = 0; from < ndevices; from++)
			if (to != from)
				DEVICE_CHECK(allow_peer_access(to, from, error));
	return DEVICE_OK;
}

/* Queues a copy from the other device, which has finished writing that memory. */
static DeviceStatus
copy_from_other(DeviceQuery *query, const DeviceQuery *other, const void *from, void *to,
				size_t bytes, DeviceError *error)
{
	CUDA_CHECK(cudaMemcpyPeerAsync(to, cuda_ordinals[query->device], from,
								   cuda_ordinals[other->device], bytes, query->stream));
	return DEVICE_OK;
}

/*
 * Combines n states of slot s, which were copied to `from` on this device, with the query's states
 * at bins[i]; bins NULL: at bin i.  s = -1 combines the row counts of groups
 * instead; with from NULL it adds 1 to each of them.
 */
static DeviceStatus
combine_slot(DeviceQuery *query, int s, const void *from, const int32_t *bins, int64_t n,
			 DeviceError *error)
{
	const WireQuery *q = query->q;
	CombineStates in = {
		.monoid = MONOID_COUNT,
		.width = 1,
		.states = query->groups.states.row_counts.at,
		.from = from,
		.bins = bins,
		.n = n,
		.errors = ((KernelStatus *) query->status.at)->call[0].errors,
	};

	if (s >= 0)
	{
		in.monoid = q->slots[s].monoid;
		in.width = q->slots[s].width;
		in.states = query->groups.states.slot[s].at;
	}
	if (s >= 0 && slot_is_sketch(q, s))
		KERNEL_CHECK(device_combine_sketches(from, bins, n, in.states, query->stream));
	else
		KERNEL_CHECK(device_combine_states(&in, query->stream));
	return DEVICE_OK;
}

/* ---- both have the same bins ---- */

/* Returns whether every bin stands for the same key in both queries. */
static bool
has_same_bins(const DeviceQuery *query, const DeviceQuery *other)
{
	size_t keys = query->q->nkeys * sizeof(int64_t);

	if (query->groups.form != other->groups.form)
		return false;
	if (query->groups.form == FORM_SINGLE)
		return true;
	return query->groups.form == FORM_DIRECT &&
		memcmp(query->groups.ranges.min, other->groups.ranges.min, keys) == 0 &&
		memcmp(query->groups.ranges.extent, other->groups.ranges.extent, keys) == 0 &&
		memcmp(query->groups.ranges.has_null, other->groups.ranges.has_null,
			   query->q->nkeys * sizeof(bool)) == 0;
}

/*
 * Combines all states of the other query with the query's own, bin by bin.  The bins are the same.
 */
static DeviceStatus
combine_arrays(DeviceQuery *query, DeviceQuery *other, DeviceError *error)
{
	const WireQuery *q = query->q;
	int64_t n = query->groups.states.capacity;

	for (int s = -1; s < q->nslots; s++)
	{
		const DeviceMemory *to =
			s < 0 ? &query->groups.states.row_counts : &query->groups.states.slot[s];
		const DeviceMemory *from =
			s < 0 ? &other->groups.states.row_counts : &other->groups.states.slot[s];
		size_t bytes = n * (s < 0 ? sizeof(int64_t) : slot_state_bytes(q, s));

		if (s < 0 && to->at == NULL)
			continue;
		DEVICE_CHECK(memory_reserve(query, &query->scratch.staging, bytes, error));
		DEVICE_CHECK(
			copy_from_other(query, other, from->at, query->scratch.staging.at, bytes, error));
		DEVICE_CHECK(combine_slot(query, s, query->scratch.staging.at, NULL, n, error));
	}
	return DEVICE_OK;
}

/* ---- the bins differ ---- */

/* Lays out the arrays of n groups.  Returns their bytes. */
static size_t
lay_out_groups(const WireQuery *q, WireGroups *out)
{
	size_t at = wire_align((size_t) out->n * q->key_bytes);

	for (int s = 0; s < q->nslots; s++)
	{
		out->slots[s] = (uint32_t) at;
		at += wire_align(out->n * slot_state_bytes(q, s));
	}
	return at;
}

/*
 * Copies the keys and states of groups out->first .. out->first + out->n - 1 of the other query to
 * the query's scratch.staging.  Sets the offsets in *out.
 */
static DeviceStatus
copy_groups(DeviceQuery *query, DeviceQuery *other, WireGroups *out, DeviceError *error)
{
	const WireQuery *q = query->q;
	size_t bytes = lay_out_groups(q, out);
	GroupKeys keys = group_keys(other);
	char *to;

	/* wait for the last copy, before the other device's staging memory is overwritten */
	if (out->first > 0)
		DEVICE_CHECK(device_query_wait(query, error));
	DEVICE_CHECK(memory_reserve(query, &query->scratch.staging, bytes, error));
	to = query->scratch.staging.at;
	CUDA_CHECK(cuda_select(other->device));
	if (other->result.listed)
		DEVICE_CHECK(results_stage(other, out, true, &bytes, error));
	else
	{
		DEVICE_CHECK(
			memory_reserve(other, &other->scratch.staging, (size_t) out->n * q->key_bytes, error));
		keys.table = (const char *) keys.table + out->first * keys.table_bytes;
		KERNEL_CHECK(
			device_group_keys(&keys, NULL, out->n, other->scratch.staging.at, other->stream));
		bytes = (size_t) out->n * q->key_bytes;
	}
	CUDA_CHECK(stream_wait(other->stream));
	CUDA_CHECK(cuda_select(query->device));
	DEVICE_CHECK(copy_from_other(query, other, other->scratch.staging.at, to, bytes, error));
	for (int s = 0; s < q->nslots && other->result.listed == NULL; s++)
		DEVICE_CHECK(copy_from_other(query, other,
									 (const char *) other->groups.states.slot[s].at +
										 out->first * slot_state_bytes(q, s),
									 to + out->slots[s], out->n * slot_state_bytes(q, s), error));
	return DEVICE_OK;
}

/* Returns a bit for each key of the other query that may be NULL. */
static uint32_t
null_keys(const DeviceQuery *other)
{
	const WireQuery *q = other->q;
	GroupKeys keys = group_keys(other);
	uint32_t nulls = 0;

	for (int k = 0; k < q->nkeys; k++)
	{
		bool may_be = other->groups.form == FORM_DIRECT ?
			keys.has_null[k] :
			other->groups.form != FORM_HASH || keys.table_bytes > keys.null_offset;

		nulls |= (uint32_t) (q->keys[k].nullable && may_be) << k;
	}
	return nulls;
}

/*
 * Finds the bins of the groups, treating their keys as rows: in scratch.bins, unless there is a
 * single group.
 */
static DeviceStatus
locate_groups(DeviceQuery *query, const Rows *rows, DeviceError *error)
{
	DEVICE_CHECK(groups_locate(query, rows, error));
	return query->location.bins.kind == GPUAGG_BIN_RANGE ? groups_make_bins(query, rows, error) :
														   DEVICE_OK;
}

/*
 * Saves the bins of the groups that were looked up last: map[bin in the other query] = bin in this
 * query.
 */
static DeviceStatus
save_bins(DeviceQuery *query, const DeviceQuery *other, const WireGroups *groups, DeviceMemory *map,
		  DeviceError *error)
{
	size_t bytes = groups->n * sizeof(int32_t);

	DEVICE_CHECK(
		memory_reserve(query, map, other->groups.states.capacity * sizeof(int32_t), error));
	if (other->result.listed == NULL)
	{
		CUDA_CHECK(cudaMemcpyAsync((int32_t *) map->at + groups->first, query->scratch.bins.at,
								   bytes, cudaMemcpyDeviceToDevice, query->stream));
		return DEVICE_OK;
	}
	DEVICE_CHECK(memory_reserve(query, &query->scratch.keys, bytes, error));
	DEVICE_CHECK(copy_from_other(query, other, other->result.listed + groups->first,
								 query->scratch.keys.at, bytes, error));
	KERNEL_CHECK(device_scatter(query->scratch.bins.at, sizeof(int32_t), query->scratch.keys.at,
								groups->n, map->at, query->stream));
	return DEVICE_OK;
}

/*
 * Adds some groups of the other query, given by first and n of *groups.  With sets, saves their
 * bins in *map.
 */
static DeviceStatus
combine_groups(DeviceQuery *query, DeviceQuery *other, WireGroups *groups, const int64_t *key_min,
			   const int64_t *key_max, DeviceMemory *map, DeviceError *error)
{
	const WireQuery *q = query->q;
	Rows rows = {.nrows = groups->n, .key_min = key_min, .key_max = key_max};
	DeviceMemory staging;
	const int32_t *bins;
	DeviceStatus status;

	DEVICE_CHECK(copy_groups(query, other, groups, error));
	DEVICE_CHECK(keys_to_columns(query, query->scratch.staging.at, groups->n, null_keys(other),
								 &query->scratch.computed, rows.cols, error));
	/* a change of the form uses scratch.staging */
	staging = query->scratch.staging;
	query->scratch.staging = (DeviceMemory){NULL, 0};
	status = locate_groups(query, &rows, error);
	bins = groups_of_rows(query, &rows);
	if (status == DEVICE_OK && query->groups.states.row_counts.at)
		status = combine_slot(query, -1, NULL, bins, groups->n, error);
	for (int s = 0; s < q->nslots && status == DEVICE_OK; s++)
		status = combine_slot(query, s, (const char *) staging.at + groups->slots[s], bins,
							  groups->n, error);
	if (status == DEVICE_OK && q->nsets > 0)
		status = save_bins(query, other, groups, map, error);
	memory_release(query, &query->scratch.staging);
	query->scratch.staging = staging;
	query->groups.n = query->groups.ntable;
	return status;
}

/* Adds all groups of the other query, a limited number at a time, to bound the staging memory. */
static DeviceStatus
combine_in_batches(DeviceQuery *query, DeviceQuery *other, const int64_t *key_min,
				   const int64_t *key_max, DeviceMemory *map, DeviceError *error)
{
	size_t bytes = wire_group_bytes(query->q);
	int64_t most = bytes > 0 ? (int64_t) (ABSORB_BYTES / bytes) : ABSORB_GROUPS;

	most = most < 1 ? 1 : most > ABSORB_GROUPS ? ABSORB_GROUPS : most;
	for (int64_t first = 0; first < other->groups.n; first += most)
	{
		WireGroups groups = {.first = (uint64_t) first};

		groups.n = (uint32_t) (other->groups.n - first < most ? other->groups.n - first : most);
		DEVICE_CHECK(combine_groups(query, other, &groups, key_min, key_max, map, error));
	}
	return DEVICE_OK;
}

/* ---- values of sets ---- */

/*
 * Adds values first .. first + n - 1 of a set of the other query to the query's set.  map has this
 * query's bin for each bin of the other query; NULL: the bins are the same.
 */
static DeviceStatus
copy_values(DeviceQuery *query, const DeviceQuery *other, uint32_t number, int64_t first, int64_t n,
			const int32_t *map, DeviceError *error)
{
	const SetValues *set = &other->late.sets[number];
	size_t codes = n * sizeof(int64_t);
	char *staging;
	SetArrays from = {0};

	DEVICE_CHECK(
		memory_reserve(query, &query->scratch.computed, 2 * codes + n * sizeof(int32_t), error));
	DEVICE_CHECK(memory_reserve(query, &query->scratch.keys, n * sizeof(int32_t), error));
	staging = query->scratch.computed.at;
	from.bins = query->scratch.keys.at;
	from.values = (int64_t *) staging;
	DEVICE_CHECK(copy_from_other(query, other, (const int64_t *) set->values.at + first,
								 from.values, codes, error));
	DEVICE_CHECK(copy_from_other(query, other, (const int32_t *) set->bins.at + first, from.bins,
								 n * sizeof(int32_t), error));
	if (set->beside.at)
	{
		from.beside = (int64_t *) (staging + codes);
		from.order = (int32_t *) (staging + 2 * codes);
		DEVICE_CHECK(copy_from_other(query, other, (const int64_t *) set->beside.at + first,
									 from.beside, codes, error));
		DEVICE_CHECK(copy_from_other(query, other, (const int32_t *) set->order.at + first,
									 from.order, n * sizeof(int32_t), error));
	}
	if (map)
	{
		DEVICE_CHECK(memory_reserve(query, &query->scratch.slot_bins, n * sizeof(int32_t), error));
		KERNEL_CHECK(device_gather(map, sizeof(int32_t), from.bins, n, query->scratch.slot_bins.at,
								   query->stream));
		from.bins = query->scratch.slot_bins.at;
	}
	return sets_add(query, number, &from, n, error);
}

/* Adds all values of one set of the other query to the query's set.  Waits for their number. */
static DeviceStatus
copy_set(DeviceQuery *query, const DeviceQuery *other, uint32_t number, const int32_t *map,
		 DeviceError *error)
{
	SetCounts counts;

	if (other->late.sets[number].counts.at == NULL)
		return DEVICE_OK;
	CUDA_CHECK(cuda_select(other->device));
	CUDA_CHECK(cudaMemcpyAsync(&counts, other->late.sets[number].counts.at, sizeof(counts),
							   cudaMemcpyDeviceToHost, other->stream));
	CUDA_CHECK(stream_wait(other->stream));
	CUDA_CHECK(cuda_select(query->device));
	for (int64_t first = 0; first < counts.n; first += ABSORB_VALUES)
		DEVICE_CHECK(copy_values(
			query, other, number, first,
			counts.n - first < ABSORB_VALUES ? counts.n - first : ABSORB_VALUES, map, error));
	return DEVICE_OK;
}

/* ---- one other query ---- */

/*
 * Does what cuda_absorb does, without the wait.  *map is set if bins differ and there are sets; the
 * caller frees it.
 */
static DeviceStatus
absorb_groups(DeviceQuery *query, DeviceQuery *other, const int64_t *key_min,
			  const int64_t *key_max, DeviceMemory *map, DeviceError *error)
{
	CUDA_CHECK(cuda_select(query->device));
	DEVICE_CHECK(derived_slots_store(query, true, error));
	/*
	 * Count the rows before the groups are added: the groups are not the first rows, which would
	 * determine the derived slots.
	 */
	query->nrows += other->nrows;
	if (has_same_bins(query, other))
		DEVICE_CHECK(combine_arrays(query, other, error));
	else
		DEVICE_CHECK(combine_in_batches(query, other, key_min, key_max, map, error));
	for (uint32_t s = 0; s < query->q->nsets; s++)
		DEVICE_CHECK(copy_set(query, other, s, map->at, error));
	return DEVICE_OK;
}

DeviceStatus
cuda_absorb(DeviceQuery *query, DeviceQuery *other, const int64_t *key_min, const int64_t *key_max,
			DeviceError *error)
{
	DeviceMemory map = {NULL, 0};
	DeviceStatus status;

	if (query->q->flags & WIRE_ORDERED)
		return device_fail(error, DEVICE_UNSUPPORTED, "rows in order on several devices");
	if (other->groups.n == 0)
		return DEVICE_OK;
	status = absorb_groups(query, other, key_min, key_max, &map, error);
	memory_release(query, &map);
	/* wait in any case: the caller may release the other query's memory */
	cuda_select(query->device);
	if (status == DEVICE_OK)
		return device_query_wait(query, error);
	cudaStreamSynchronize(query->stream);
	return status;
}
