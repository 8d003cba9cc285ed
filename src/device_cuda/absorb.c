/*
 * absorb.c
 *	  Groups of a query's part on another device: brought here, and combined with the query's own.
 *
 * Where both have the same bins, arrays are combined as they are.  Else keys are looked up like
 * those of rows, some groups at a time.  Values of sets come with the bins that their groups have
 * here, and are sorted with the query's own.
 */
#include <string.h>

#include "device_cuda/device_internal.h"

/*
 * Of groups that are brought at a time: fewer than rows that would be sorted; tests make it
 * smaller.
 */
#ifndef PIECE_GROUPS
#define PIECE_GROUPS (SPLIT_ROWS / 2)
#endif
#define PIECE_BYTES ((size_t) 256 << 20)
#define PIECE_VALUES ((int64_t) 1 << 24)

/* Copies between devices need no way over the host where the devices can reach each other. */
static DeviceStatus
open_memory(int to, int from, DeviceError *error)
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
		cudaGetLastError(); /* then they take that way */
	return DEVICE_OK;
}

DeviceStatus
cuda_absorb_start(int ndevices, DeviceError *error)
{
	for (int to = 0; to < ndevices; to++)
		for (int from = 0; from < ndevices; from++)
			if (to != from)
				DEVICE_CHECK(open_memory(to, from, error));
	return DEVICE_OK;
}

/* From memory of the part, whose device has finished with it, behind what is queued here. */
static DeviceStatus
bring(Query *query, const Query *part, const void *from, void *to, size_t bytes, DeviceError *error)
{
	CUDA_CHECK(cudaMemcpyPeerAsync(to, cuda_ordinals[query->device], from,
								   cuda_ordinals[part->device], bytes, query->stream));
	return DEVICE_OK;
}

/*
 * Combines states of a slot, or of the counts of rows if that is -1, that lie at `from` on this
 * device; NULL: adds 1 to each.
 */
static DeviceStatus
combine(Query *query, int s, const void *from, const int32_t *bins, int64_t n, DeviceError *error)
{
	const WireQuery *q = query->q;
	CombineStates in = {
		.monoid = MONOID_COUNT,
		.width = 1,
		.states = query->groups.present.at,
		.from = from,
		.bins = bins,
		.n = n,
		.errors = ((QueryStatus *) query->status.at)->call[0].errors,
	};

	if (s >= 0)
	{
		in.monoid = q->slots[s].monoid;
		in.width = q->slots[s].width;
		in.states = query->groups.slot[s].at;
	}
	if (s >= 0 && slot_is_sketch(q, s))
		KERNEL_CHECK(device_combine_sketches(from, bins, n, in.states, query->stream));
	else
		KERNEL_CHECK(device_combine_states(&in, query->stream));
	return DEVICE_OK;
}

/* ---- the same bins ---- */

static bool
has_same_bins(const Query *query, const Query *part)
{
	size_t keys = query->q->nkeys * sizeof(int64_t);

	if (query->form != part->form)
		return false;
	if (query->form == FORM_SINGLE)
		return true;
	return query->form == FORM_DIRECT && memcmp(query->ranges.min, part->ranges.min, keys) == 0 &&
		memcmp(query->ranges.extent, part->ranges.extent, keys) == 0 &&
		memcmp(query->ranges.has_null, part->ranges.has_null, query->q->nkeys * sizeof(bool)) == 0;
}

static DeviceStatus
combine_arrays(Query *query, Query *part, DeviceError *error)
{
	const WireQuery *q = query->q;
	int64_t n = query->groups.capacity;

	for (int s = -1; s < q->nslots; s++)
	{
		const DeviceMemory *to = s < 0 ? &query->groups.present : &query->groups.slot[s];
		const DeviceMemory *from = s < 0 ? &part->groups.present : &part->groups.slot[s];
		size_t bytes = n * (s < 0 ? sizeof(int64_t) : slot_state_bytes(q, s));

		if (s < 0 && to->at == NULL)
			continue;
		DEVICE_CHECK(query_reserve(query, &query->staging, bytes, error));
		DEVICE_CHECK(bring(query, part, from->at, query->staging.at, bytes, error));
		DEVICE_CHECK(combine(query, s, query->staging.at, NULL, n, error));
	}
	return DEVICE_OK;
}

/* ---- other bins ---- */

/* Lays out the arrays of n groups; their bytes. */
static size_t
lay_out(const WireQuery *q, WireGroups *out)
{
	size_t at = wire_align((size_t) out->n * q->key_bytes);

	for (int s = 0; s < q->nslots; s++)
	{
		out->slots[s] = (uint32_t) at;
		at += wire_align(out->n * slot_state_bytes(q, s));
	}
	return at;
}

/* Brings keys and states of some groups to query->staging. */
static DeviceStatus
bring_groups(Query *query, Query *part, WireGroups *out, DeviceError *error)
{
	const WireQuery *q = query->q;
	size_t bytes = lay_out(q, out);
	GroupKeys keys = group_keys(part);
	char *to;

	/* those before are here, before their memory over there is used for others */
	if (out->first > 0)
		DEVICE_CHECK(query_wait(query, error));
	DEVICE_CHECK(query_reserve(query, &query->staging, bytes, error));
	to = query->staging.at;
	CUDA_CHECK(cuda_select(part->device));
	if (part->listed)
		DEVICE_CHECK(results_stage(part, out, true, &bytes, error));
	else
	{
		DEVICE_CHECK(query_reserve(part, &part->staging, (size_t) out->n * q->key_bytes, error));
		keys.table = (const char *) keys.table + out->first * keys.table_bytes;
		KERNEL_CHECK(device_group_keys(&keys, NULL, out->n, part->staging.at, part->stream));
		bytes = (size_t) out->n * q->key_bytes;
	}
	CUDA_CHECK(stream_wait(part->stream));
	CUDA_CHECK(cuda_select(query->device));
	DEVICE_CHECK(bring(query, part, part->staging.at, to, bytes, error));
	for (int s = 0; s < q->nslots && part->listed == NULL; s++)
		DEVICE_CHECK(
			bring(query, part,
				  (const char *) part->groups.slot[s].at + out->first * slot_state_bytes(q, s),
				  to + out->slots[s], out->n * slot_state_bytes(q, s), error));
	return DEVICE_OK;
}

/* May a key of the part be NULL? */
static bool
may_be_null(const Query *part, int k)
{
	if (!part->q->keys[k].nullable)
		return false;
	if (part->form == FORM_DIRECT)
		return part->ranges.has_null[k];
	return part->form != FORM_HASH || part->hash.table.key_bytes > (int) part->q->null_offset;
}

/* Makes columns of packed keys, in query->computed. */
static DeviceStatus
unpack_keys(Query *query, const Query *part, int64_t n, Rows *rows, DeviceError *error)
{
	static const int types[] = {[1] = WIRE_I8, [2] = WIRE_I16, [4] = WIRE_I32, [8] = WIRE_I64};
	const WireQuery *q = query->q;
	UnpackKeys unpack = {
		.nkeys = q->nkeys, .key_bytes = q->key_bytes, .null_offset = (int) q->null_offset};
	size_t bytes = 0;
	char *at;

	for (int k = 0; k < q->nkeys; k++)
		bytes += wire_align(n * q->keys[k].width) + wire_align(wire_bitmap_bytes(n));
	DEVICE_CHECK(query_reserve(query, &query->computed, bytes, error));
	at = query->computed.at;
	for (int k = 0; k < q->nkeys; k++)
	{
		DeviceColumn *col = &rows->cols[q->keys[k].col];

		*col = (DeviceColumn){.values = at, .type = types[q->keys[k].width]};
		unpack.width[k] = q->keys[k].width;
		unpack.offset[k] = q->keys[k].offset;
		unpack.values[k] = at;
		at += wire_align(n * q->keys[k].width);
		if (may_be_null(part, k))
		{
			unpack.validity[k] = (uint32_t *) at;
			col->validity = (const uint8_t *) at;
		}
		at += wire_align(wire_bitmap_bytes(n));
	}
	KERNEL_CHECK(device_unpack_keys(&unpack, query->staging.at, n, query->stream));
	return DEVICE_OK;
}

/*
 * The bins of the groups, into query->bins, or none if there is a single group; their keys are rows
 * without anything else.
 */
static DeviceStatus
locate(Query *query, const Rows *rows, DeviceError *error)
{
	DEVICE_CHECK(groups_locate(query, rows, error));
	return query->located.kind == GPUAGG_BIN_RANGE ? groups_make_bins(query, rows, error) :
													 DEVICE_OK;
}

/*
 * Notes which bins these groups, whose keys were looked up last, have here: map[bin of the part].
 */
static DeviceStatus
note_bins(Query *query, const Query *part, const WireGroups *groups, DeviceMemory *map,
		  DeviceError *error)
{
	size_t bytes = groups->n * sizeof(int32_t);

	DEVICE_CHECK(query_reserve(query, map, part->groups.capacity * sizeof(int32_t), error));
	if (part->listed == NULL)
	{
		CUDA_CHECK(cudaMemcpyAsync((int32_t *) map->at + groups->first, query->bins.at, bytes,
								   cudaMemcpyDeviceToDevice, query->stream));
		return DEVICE_OK;
	}
	DEVICE_CHECK(query_reserve(query, &query->keys, bytes, error));
	DEVICE_CHECK(bring(query, part, part->listed + groups->first, query->keys.at, bytes, error));
	KERNEL_CHECK(device_scatter(query->bins.at, sizeof(int32_t), query->keys.at, groups->n, map->at,
								query->stream));
	return DEVICE_OK;
}

static DeviceStatus
combine_groups(Query *query, Query *part, WireGroups *groups, const int64_t *key_min,
			   const int64_t *key_max, DeviceMemory *map, DeviceError *error)
{
	const WireQuery *q = query->q;
	Rows rows = {.nrows = groups->n, .key_min = key_min, .key_max = key_max};
	DeviceMemory staging;
	const int32_t *bins;
	DeviceStatus status;

	DEVICE_CHECK(bring_groups(query, part, groups, error));
	DEVICE_CHECK(unpack_keys(query, part, groups->n, &rows, error));
	/* a change of form moves states by way of query->staging */
	staging = query->staging;
	query->staging = (DeviceMemory){NULL, 0};
	status = locate(query, &rows, error);
	bins = groups_of_rows(query, &rows);
	if (status == DEVICE_OK && query->groups.present.at)
		status = combine(query, -1, NULL, bins, groups->n, error);
	for (int s = 0; s < q->nslots && status == DEVICE_OK; s++)
		status =
			combine(query, s, (const char *) staging.at + groups->slots[s], bins, groups->n, error);
	if (status == DEVICE_OK && q->nsets > 0)
		status = note_bins(query, part, groups, map, error);
	query_release(query, &query->staging);
	query->staging = staging;
	query->ngroups = query->found;
	return status;
}

static DeviceStatus
combine_pieces(Query *query, Query *part, const int64_t *key_min, const int64_t *key_max,
			   DeviceMemory *map, DeviceError *error)
{
	size_t bytes = wire_group_bytes(query->q);
	int64_t most = bytes > 0 ? (int64_t) (PIECE_BYTES / bytes) : PIECE_GROUPS;

	most = most < 1 ? 1 : most > PIECE_GROUPS ? PIECE_GROUPS : most;
	for (int64_t first = 0; first < part->ngroups; first += most)
	{
		WireGroups groups = {.first = (uint64_t) first};

		groups.n = (uint32_t) (part->ngroups - first < most ? part->ngroups - first : most);
		DEVICE_CHECK(combine_groups(query, part, &groups, key_min, key_max, map, error));
	}
	return DEVICE_OK;
}

/* ---- values of sets ---- */

/* Some values of a set; map: of the bins, or NULL: they are the same. */
static DeviceStatus
bring_values(Query *query, const Query *part, uint32_t number, int64_t first, int64_t n,
			 const int32_t *map, DeviceError *error)
{
	const SetValues *set = &part->sets[number];
	const int32_t *bins;

	DEVICE_CHECK(query_reserve(query, &query->computed, n * sizeof(int64_t), error));
	DEVICE_CHECK(query_reserve(query, &query->keys, n * sizeof(int32_t), error));
	DEVICE_CHECK(bring(query, part, (const int64_t *) set->values.at + first, query->computed.at,
					   n * sizeof(int64_t), error));
	DEVICE_CHECK(bring(query, part, (const int32_t *) set->bins.at + first, query->keys.at,
					   n * sizeof(int32_t), error));
	bins = query->keys.at;
	if (map)
	{
		DEVICE_CHECK(query_reserve(query, &query->slot_bins, n * sizeof(int32_t), error));
		KERNEL_CHECK(
			device_gather(map, sizeof(int32_t), bins, n, query->slot_bins.at, query->stream));
		bins = query->slot_bins.at;
	}
	return sets_add(query, number, bins, query->computed.at, n, error);
}

static DeviceStatus
bring_set(Query *query, const Query *part, uint32_t number, const int32_t *map, DeviceError *error)
{
	SetCounts counts;

	if (part->sets[number].counts.at == NULL)
		return DEVICE_OK;
	CUDA_CHECK(cuda_select(part->device));
	CUDA_CHECK(cudaMemcpyAsync(&counts, part->sets[number].counts.at, sizeof(counts),
							   cudaMemcpyDeviceToHost, part->stream));
	CUDA_CHECK(stream_wait(part->stream));
	CUDA_CHECK(cuda_select(query->device));
	for (int64_t first = 0; first < counts.n; first += PIECE_VALUES)
		DEVICE_CHECK(bring_values(query, part, number, first,
								  counts.n - first < PIECE_VALUES ? counts.n - first : PIECE_VALUES,
								  map, error));
	return DEVICE_OK;
}

/* ---- a part ---- */

static DeviceStatus
absorb(Query *query, Query *part, const int64_t *key_min, const int64_t *key_max, DeviceMemory *map,
	   DeviceError *error)
{
	CUDA_CHECK(cuda_select(query->device));
	DEVICE_CHECK(counts_settle(query, true, error));
	/*
	 * before its groups come: they are not the first rows, by which slots would be found whose
	 * states others tell
	 */
	query->rows += part->rows;
	if (has_same_bins(query, part))
		DEVICE_CHECK(combine_arrays(query, part, error));
	else
		DEVICE_CHECK(combine_pieces(query, part, key_min, key_max, map, error));
	for (uint32_t s = 0; s < query->q->nsets; s++)
		DEVICE_CHECK(bring_set(query, part, s, map->at, error));
	return DEVICE_OK;
}

DeviceStatus
cuda_absorb(Query *query, Query *part, const int64_t *key_min, const int64_t *key_max,
			DeviceError *error)
{
	DeviceMemory map = {NULL, 0};
	DeviceStatus status;

	if (query->q->flags & WIRE_ORDERED)
		return device_say(error, DEVICE_UNSUPPORTED, "rows in order on several devices");
	if (part->ngroups == 0)
		return DEVICE_OK;
	status = absorb(query, part, key_min, key_max, &map, error);
	query_release(query, &map);
	/* the part's memory must not go while it is read, whatever fails */
	cuda_select(query->device);
	if (status == DEVICE_OK)
		return query_wait(query, error);
	cudaStreamSynchronize(query->stream);
	return status;
}
