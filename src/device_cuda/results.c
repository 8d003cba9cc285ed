/*
 * results.c
 *	  The end of a query on the device: finds its groups, and copies them to clients.
 *
 * Groups are numbered as they are fetched.  If some bins may have no rows, or there is a limit, a
 * list on the device has the bins of the groups; otherwise a group's number is its bin.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device_cuda/device_internal.h"

/* ---- the end of the rows ---- */

/* Describes the strategy, for EXPLAIN. */
static void
describe_strategy(const DeviceQuery *query, char *text, size_t size)
{
	static const char *const names[] = {"",
										"shared memory",
										"partitions in shared memory",
										"global memory",
										"shared memory of all multiprocessors",
										"shared memory"};
	const GpuaggHistChoice *c = &query->stats.choice;
	char how[96] = "";

	if (query->nrows > 0 && c->strategy >= GPUAGG_HIST_SHARED && c->strategy <= GPUAGG_HIST_TILES)
		snprintf(how, sizeof(how), ", histogram in %s", names[c->strategy]);
	if (how[0] && (c->strategy == GPUAGG_HIST_SHARED || c->strategy == GPUAGG_HIST_TILES))
		snprintf(how + strlen(how), sizeof(how) - strlen(how), ", %d sub-histogram%s, %d pass%s",
				 c->copies, c->copies == 1 ? "" : "s", c->passes, c->passes == 1 ? "" : "es");
	if (query->groups.form == FORM_DIRECT)
		snprintf(text, size, "direct (%lld bins%s)", (long long) query->groups.states.capacity,
				 how);
	else if (query->groups.form == FORM_RUNS)
		snprintf(text, size, "segmented (%lld runs in the order of the keys)",
				 (long long) query->groups.states.capacity);
	else if (query->groups.form == FORM_HASH)
		snprintf(text, size, "%s (%lld groups%s)", query->stats.sorted ? "sort" : "hash",
				 (long long) query->groups.n,
				 query->stats.sorted ? ", segments of sorted rows" : how);
	else
		snprintf(text, size, "single (one group%s)", how);
	if (query->q->flags & WIRE_ORDERED)
		snprintf(text + strlen(text), size - strlen(text), ", segments of sorted rows");
	if (query->q->nsets > 0)
		snprintf(text + strlen(text), size - strlen(text), ", values sorted by group");
}

/*
 * Reads what kernels reported for all rows: errors of values, rows without a bin, undetermined
 * rows, the number of groups.
 */
static DeviceStatus
read_status(DeviceQuery *query, WireFinished *result, DeviceError *error)
{
	const KernelStatus *status = (const KernelStatus *) query->page;
	unsigned long long outside = 0;

	DEVICE_CHECK(device_query_copy_out(query, query->status.at, sizeof(*status), 0, error));
	DEVICE_CHECK(device_query_wait(query, error));
	for (int c = 0; c < MAX_CALLS; c++)
	{
		outside += status->call[c].outside;
		for (int s = 0; s < GPUAGG_MAX_SLOTS; s++)
			result->errors |= status->call[c].errors[s];
	}
	result->undetermined = status->undetermined;
	if (query->result.listed)
		query->groups.n = status->listed;
	result->allgroups = query->groups.n;
	if (query->result.top.at)
	{
		result->allgroups = status->top.all;
		result->failed = status->top.failed;
	}
	if (outside > 0)
	{
		/* key_min or key_max of a client was wrong; rows must not be lost silently */
		snprintf(error->text, sizeof(error->text), "%llu keys outside of their range", outside);
		return DEVICE_UNSUPPORTED;
	}
	return DEVICE_OK;
}

/* Sets the number of groups.  If some may have no rows, queues the listing of those with rows. */
static DeviceStatus
list_groups(DeviceQuery *query, DeviceError *error)
{
	GroupStates *states = &query->groups.states;
	int32_t *nlisted = &((KernelStatus *) query->status.at)->listed;
	size_t at = groups_list_bytes(states->capacity);
	size_t work = states->list.bytes - at;

	query->result.listed = NULL;
	if (query->groups.form == FORM_SINGLE)
		query->groups.n = query->nrows > 0;
	else if (query->groups.form == FORM_RUNS && !query->groups.runs_may_be_empty)
		query->groups.n = states->capacity;
	if (states->list.at == NULL)
		return DEVICE_OK;
	KERNEL_CHECK(device_list_groups(groups_row_counts(query)->at, states->capacity, states->list.at,
									nlisted, (char *) states->list.at + at, &work, query->stream));
	query->result.listed = states->list.at;
	return DEVICE_OK;
}

GroupKeys
group_keys(const DeviceQuery *query)
{
	const WireQuery *q = query->q;
	GroupKeys keys = {
		.key_bytes = q->key_bytes, .null_offset = (int) q->null_offset, .nkeys = q->nkeys};

	if (query->groups.states.keys.at)
		keys.table = query->groups.states.keys.at, keys.table_bytes = q->key_bytes;
	else if (query->groups.form == FORM_HASH)
		keys.table = query->groups.hash.table.keys,
		keys.table_bytes = query->groups.hash.table.key_bytes;
	for (int k = 0; k < q->nkeys; k++)
	{
		keys.width[k] = q->keys[k].width;
		keys.offset[k] = q->keys[k].offset;
		keys.min[k] = query->groups.ranges.min[k];
		keys.extent[k] = query->groups.ranges.extent[k];
		keys.has_null[k] = query->groups.ranges.has_null[k];
	}
	return keys;
}

/*
 * Queues kernels that list the groups within the limit, among n bins, in result.top.
 * DEVICE_NO_MEMORY: there is no room for the list.
 */
static DeviceStatus
list_top(DeviceQuery *query, const WireLimit *limit, int64_t n, DeviceError *error)
{
	KernelStatus *status = query->status.at;
	const DeviceMemory *counts = query->result.listed ? groups_row_counts(query) : NULL;
	const void *slots[WIRE_MAX_SLOTS];
	TopGroups top = {.counts = counts ? counts->at : NULL, .keys = group_keys(query)};
	size_t bytes = 0;

	for (int s = 0; s < query->q->nslots; s++)
		slots[s] = query->groups.states.slot[s].at;
	top.plan = limit_plan(query->q, limit, slots);
	top.reads_keys = limit_reads_keys(&top.plan);
	KERNEL_CHECK(device_top_groups(&top, n, NULL, NULL, NULL, NULL, &bytes, query->stream));
	DEVICE_CHECK(memory_reserve(query, &query->scratch.workspace, bytes, error));
	DEVICE_CHECK(memory_reserve(query, &query->result.top, n * sizeof(int32_t), error));
	KERNEL_CHECK(device_top_groups(&top, n, query->result.top.at, &status->listed, &status->top,
								   query->scratch.workspace.at, &bytes, query->stream));
	query->result.listed = query->result.top.at;
	return DEVICE_OK;
}

/*
 * Removes groups beyond the limit or its conditions from the list.  If there is no memory to find
 * them, all groups stay.
 */
static DeviceStatus
apply_limit(DeviceQuery *query, const WireLimit *limit, DeviceError *error)
{
	int64_t n = query->result.listed ? query->groups.states.capacity : query->groups.n;
	DeviceStatus status;

	if (limit == NULL || query->groups.form == FORM_SINGLE || query->groups.form == FORM_UNKNOWN ||
		n == 0 || (limit->nconditions == 0 && limit->count >= (uint64_t) n))
		return DEVICE_OK;
	status = list_top(query, limit, n, error);
	memory_release(query, &query->scratch.workspace);
	if (status != DEVICE_NO_MEMORY)
		return status;
	memory_release(query, &query->result.top);
	return DEVICE_OK;
}

DeviceStatus
cuda_finish(DeviceQuery *query, const WireLimit *limit, bool for_absorb, WireFinished *result,
			DeviceError *error)
{
	CUDA_CHECK(cuda_select(query->device));
	DEVICE_CHECK(ordered_finish(query, error));
	/* sorting values needs the memory */
	if (query->q->nsets > 0)
		device_query_release_scratch(query);
	if (!for_absorb)
		DEVICE_CHECK(sets_finish(query, error));
	DEVICE_CHECK(derived_slots_store(query, true, error));
	DEVICE_CHECK(list_groups(query, error));
	/* fetching may need the memory */
	device_query_release_scratch(query);
	DEVICE_CHECK(apply_limit(query, limit, error));
	DEVICE_CHECK(read_status(query, result, error));
	device_query_release_holds(query);
	result->ngroups = query->groups.n;
	result->changes = query->stats.changes;
	result->retries = query->stats.retries;
	result->memory_peak = query->stats.memory_peak;
	result->kernel_ms = query->stats.kernel_ms;
	describe_strategy(query, result->strategy, sizeof(result->strategy));
	return DEVICE_OK;
}

/* ---- fetching ---- */

/*
 * Returns the bytes per group of a slot's states, or of its counts of ranks, where they are staged.
 */
static size_t
staged_bytes(const WireQuery *q, int s, const WireGroups *out, bool on_device)
{
	return on_device ? slot_state_bytes(q, s) : wire_slot_bytes(&q->slots[s], out->ranks);
}

/*
 * Queues the conversion of a slot's sketches to the client's form, at `to` on the device: for the
 * out->n groups in the list; list NULL: for groups out->first .. out->first + out->n - 1.
 */
static DeviceStatus
read_sketches(DeviceQuery *query, int s, const int32_t *list, const WireGroups *out, void *to,
			  DeviceError *error)
{
	const char *registers = query->groups.states.slot[s].at;

	if (list == NULL)
		registers += out->first * slot_state_bytes(query->q, s);
	if (out->ranks)
		KERNEL_CHECK(device_count_ranks(registers, list, out->n, to, query->stream));
	else
		KERNEL_CHECK(device_widen_registers(registers, list, out->n, to, query->stream));
	return DEVICE_OK;
}

DeviceStatus
results_stage(DeviceQuery *query, const WireGroups *out, bool on_device, size_t *bytes,
			  DeviceError *error)
{
	const WireQuery *q = query->q;
	const int32_t *bins = query->result.listed + out->first;
	GroupKeys keys = group_keys(query);
	char *staging;

	*bytes = q->nslots == 0 ?
		(size_t) out->n * q->key_bytes :
		out->slots[q->nslots - 1] + out->n * staged_bytes(q, q->nslots - 1, out, on_device);
	DEVICE_CHECK(memory_reserve(query, &query->scratch.staging, *bytes, error));
	staging = query->scratch.staging.at;
	if (q->key_bytes > 0)
		KERNEL_CHECK(device_group_keys(&keys, bins, out->n, staging + out->keys, query->stream));
	for (int s = 0; s < q->nslots; s++)
	{
		if (slot_is_sketch(q, s) && !on_device)
			DEVICE_CHECK(read_sketches(query, s, bins, out, staging + out->slots[s], error));
		else
			KERNEL_CHECK(device_gather(query->groups.states.slot[s].at, slot_state_bytes(q, s),
									   bins, out->n, staging + out->slots[s], query->stream));
	}
	return DEVICE_OK;
}

/* Fetches listed groups: gathers them in staging, and copies them at once. */
static DeviceStatus
fetch_listed(DeviceQuery *query, const WireGroups *out, char *base, DeviceError *error)
{
	size_t bytes;

	DEVICE_CHECK(results_stage(query, out, false, &bytes, error));
	CUDA_CHECK(cudaMemcpyAsync(base, query->scratch.staging.at, bytes, cudaMemcpyDeviceToHost,
							   query->stream));
	return DEVICE_OK;
}

/*
 * Copies the sketch of one bin to the host, and converts it there to the client's form, at `to`.
 * Needs no device memory.
 */
static DeviceStatus
fetch_sketch(DeviceQuery *query, int s, int64_t bin, uint32_t ranks, void *to, DeviceError *error)
{
	uint8_t bytes[GPUAGG_HLL_REGISTERS];
	int32_t *registers = ranks ? malloc(GPUAGG_HLL_REGISTERS * sizeof(int32_t)) : to;
	cudaError_t err;

	if (registers == NULL)
		return device_fail(error, DEVICE_NO_MEMORY, "out of memory in the GPU server");
	err = cudaMemcpyAsync(
		bytes, (const char *) query->groups.states.slot[s].at + (size_t) bin * sizeof(bytes),
		sizeof(bytes), cudaMemcpyDeviceToHost, query->stream);
	if (err == cudaSuccess)
		err = cudaStreamSynchronize(query->stream);
	for (int r = 0; r < GPUAGG_HLL_REGISTERS && err == cudaSuccess; r++)
		registers[r] = bytes[r];
	if (err == cudaSuccess && ranks)
		gpuagg_hll_count_ranks(registers, to);
	if (ranks)
		free(registers);
	return err == cudaSuccess ? DEVICE_OK : cuda_status(err, "copy of a sketch", error);
}

/* Fetches groups one by one, without device memory: groups must not be lost for lack of it. */
static DeviceStatus
fetch_one_by_one(DeviceQuery *query, const WireGroups *out, const int32_t *bins, char *base,
				 DeviceError *error)
{
	const WireQuery *q = query->q;
	GroupKeys keys = group_keys(query);

	memset(base + out->keys, 0, (size_t) out->n * q->key_bytes);
	for (uint32_t g = 0; g < out->n; g++)
	{
		char *key = base + out->keys + (size_t) g * q->key_bytes;

		if (keys.table)
			CUDA_CHECK(cudaMemcpyAsync(
				key, (const char *) keys.table + (size_t) bins[g] * keys.table_bytes,
				keys.table_bytes, cudaMemcpyDeviceToHost, query->stream));
		else if (q->key_bytes > 0)
			groups_direct_key(query, bins[g], key, q->key_bytes);
		for (int s = 0; s < q->nslots; s++)
		{
			size_t row = slot_state_bytes(q, s);
			char *to = base + out->slots[s] + g * wire_slot_bytes(&q->slots[s], out->ranks);

			if (slot_is_sketch(q, s))
				DEVICE_CHECK(fetch_sketch(query, s, bins[g], out->ranks, to, error));
			else
				CUDA_CHECK(cudaMemcpyAsync(
					to, (const char *) query->groups.states.slot[s].at + bins[g] * row, row,
					cudaMemcpyDeviceToHost, query->stream));
		}
	}
	return DEVICE_OK;
}

/* Fetches listed groups when there is no device memory to stage them. */
static DeviceStatus
fetch_without_memory(DeviceQuery *query, const WireGroups *out, char *base, DeviceError *error)
{
	int32_t *bins = malloc(out->n * sizeof(int32_t) + 1);
	cudaError_t err;
	DeviceStatus status;

	if (bins == NULL)
		return device_fail(error, DEVICE_NO_MEMORY, "out of memory in the GPU server");
	err = cudaMemcpyAsync(bins, query->result.listed + out->first, out->n * sizeof(int32_t),
						  cudaMemcpyDeviceToHost, query->stream);
	if (err == cudaSuccess)
		err = cudaStreamSynchronize(query->stream);
	status = err != cudaSuccess ? cuda_status(err, "copy of the groups' numbers", error) :
								  fetch_one_by_one(query, out, bins, base, error);
	free(bins);
	return status;
}

/* Fetches the sketches of groups whose numbers are their bins. */
static DeviceStatus
fetch_sketches(DeviceQuery *query, int s, const WireGroups *out, char *base, DeviceError *error)
{
	size_t row = wire_slot_bytes(&query->q->slots[s], out->ranks);
	DeviceStatus status = memory_reserve(query, &query->scratch.staging, out->n * row, error);

	if (status == DEVICE_NO_MEMORY)
	{
		status = DEVICE_OK;
		for (uint32_t g = 0; g < out->n && status == DEVICE_OK; g++)
			status = fetch_sketch(query, s, (int64_t) out->first + g, out->ranks,
								  base + out->slots[s] + g * row, error);
		return status;
	}
	DEVICE_CHECK(status);
	DEVICE_CHECK(read_sketches(query, s, NULL, out, query->scratch.staging.at, error));
	CUDA_CHECK(cudaMemcpyAsync(base + out->slots[s], query->scratch.staging.at, out->n * row,
							   cudaMemcpyDeviceToHost, query->stream));
	return DEVICE_OK;
}

/* Fetches groups whose numbers are their bins, directly from their arrays. */
static DeviceStatus
fetch_in_place(DeviceQuery *query, const WireGroups *out, char *base, DeviceError *error)
{
	const WireQuery *q = query->q;
	GroupKeys keys = group_keys(query);

	if (keys.table)
		CUDA_CHECK(cudaMemcpyAsync(
			base + out->keys, (const char *) keys.table + out->first * keys.table_bytes,
			(size_t) out->n * keys.table_bytes, cudaMemcpyDeviceToHost, query->stream));
	for (int s = 0; s < q->nslots; s++)
	{
		size_t row = slot_state_bytes(q, s);

		if (slot_is_sketch(q, s))
			DEVICE_CHECK(fetch_sketches(query, s, out, base, error));
		else
			CUDA_CHECK(
				cudaMemcpyAsync(base + out->slots[s],
								(const char *) query->groups.states.slot[s].at + out->first * row,
								out->n * row, cudaMemcpyDeviceToHost, query->stream));
	}
	return DEVICE_OK;
}

DeviceStatus
cuda_fetch(DeviceQuery *query, Lane *lane, const WireGroups *out, DeviceError *error)
{
	char *base = lane->arena + out->buffer * lane->buffer_bytes;
	GroupKeys keys = group_keys(query);
	DeviceStatus status;

	CUDA_CHECK(cuda_select(query->device));
	if (out->first > (uint64_t) query->groups.n || out->n > query->groups.n - out->first)
		return device_fail(error, DEVICE_UNSUPPORTED, "no such groups");
	if (out->n == 0)
		return DEVICE_OK;
	if (query->result.listed == NULL)
		status = fetch_in_place(query, out, base, error);
	else
	{
		status = fetch_listed(query, out, base, error);
		if (status == DEVICE_NO_MEMORY)
			status = fetch_without_memory(query, out, base, error);
	}
	DEVICE_CHECK(status);
	DEVICE_CHECK(device_query_wait(query, error));
	if (query->result.listed == NULL && keys.table)
		lengthen_keys(base + out->keys, out->n, keys.table_bytes, keys.key_bytes);
	return DEVICE_OK;
}
