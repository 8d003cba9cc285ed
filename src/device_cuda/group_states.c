/*
 * group_states.c
 *	  The arrays of states of a query's groups: making, moving and releasing them.
 */
#include <string.h>

#include "device_cuda/device_internal.h"

/* Bin numbers of histograms have 31 bits, and hash tables need some of them for themselves. */
int64_t cuda_max_bins = INT32_MAX - 64;

int64_t
states_max_groups(const WireQuery *q)
{
	int32_t widest = 1;

	for (int s = 0; s < q->nslots; s++)
		widest = q->slots[s].width > widest ? q->slots[s].width : widest;
	return cuda_max_bins / widest;
}

void
states_release(DeviceQuery *query, GroupStates *states)
{
	for (int s = 0; s < query->q->nslots; s++)
		memory_release(query, &states->slot[s]);
	memory_release(query, &states->row_counts);
	memory_release(query, &states->list);
	memory_release(query, &states->keys);
	states->capacity = 0;
}

/*
 * For groups that may have no rows: makes the counts of rows, unless a slot has them, and room for
 * the list of the groups with rows.
 */
static DeviceStatus
init_counts(DeviceQuery *query, int64_t capacity, GroupStates *states, DeviceError *error)
{
	size_t bytes = capacity * sizeof(int64_t);
	size_t work = 0;

	if (query->count_slot < 0)
	{
		DEVICE_CHECK(memory_reserve(query, &states->row_counts, bytes, error));
		CUDA_CHECK(cudaMemsetAsync(states->row_counts.at, 0, bytes, query->stream));
	}
	KERNEL_CHECK(device_list_groups(NULL, capacity, NULL, NULL, NULL, &work, query->stream));
	return memory_reserve(query, &states->list, groups_list_bytes(capacity) + work, error);
}

/* Allocates and initializes states for states_make, which releases them if this fails. */
static DeviceStatus
init_states(DeviceQuery *query, GroupForm form, bool keys, int64_t capacity, GroupStates *states,
			DeviceError *error)
{
	const WireQuery *q = query->q;

	if (capacity > states_max_groups(q))
		return device_fail(error, DEVICE_UNSUPPORTED, "too many bins for one histogram");
	for (int s = 0; s < q->nslots; s++)
	{
		DEVICE_CHECK(
			memory_reserve(query, &states->slot[s], capacity * slot_state_bytes(q, s), error));
		if (slot_is_sketch(q, s))
			CUDA_CHECK(cudaMemsetAsync(states->slot[s].at, 0, capacity * slot_state_bytes(q, s),
									   query->stream));
		else
			KERNEL_CHECK(gpuagg_hist_init(q->slots[s].monoid, states->slot[s].at,
										  capacity * q->slots[s].width, query->stream));
	}
	if (form == FORM_DIRECT || (form == FORM_RUNS && query->groups.runs_may_be_empty))
		DEVICE_CHECK(init_counts(query, capacity, states, error));
	if (keys)
		DEVICE_CHECK(memory_reserve(query, &states->keys, capacity * q->key_bytes, error));
	states->capacity = capacity;
	return DEVICE_OK;
}

DeviceStatus
states_make(DeviceQuery *query, GroupForm form, bool keys, int64_t capacity, GroupStates *states,
			DeviceError *error)
{
	DeviceStatus status;

	memset(states, 0, sizeof(*states));
	status = init_states(query, form, keys, capacity, states, error);
	if (status != DEVICE_OK)
		states_release(query, states);
	return status;
}

/* Copies rows from_bins[i] of one array to rows to_bins[i] of another, by way of staging. */
static DeviceStatus
move_array(DeviceQuery *query, const void *from, void *to, size_t row_bytes,
		   const int32_t *from_bins, const int32_t *to_bins, int64_t n, DeviceError *error)
{
	DEVICE_CHECK(memory_reserve(query, &query->scratch.staging, n * row_bytes, error));
	KERNEL_CHECK(
		device_gather(from, row_bytes, from_bins, n, query->scratch.staging.at, query->stream));
	KERNEL_CHECK(
		device_scatter(query->scratch.staging.at, row_bytes, to_bins, n, to, query->stream));
	return DEVICE_OK;
}

DeviceStatus
states_move(DeviceQuery *query, GroupStates *to, const int32_t *from_bins, const int32_t *to_bins,
			int64_t n, DeviceError *error)
{
	const WireQuery *q = query->q;
	GroupStates *from = &query->groups.states;

	for (int s = 0; s < q->nslots; s++)
		DEVICE_CHECK(move_array(query, from->slot[s].at, to->slot[s].at, slot_state_bytes(q, s),
								from_bins, to_bins, n, error));
	if (to->row_counts.at)
		DEVICE_CHECK(move_array(query, from->row_counts.at, to->row_counts.at, sizeof(int64_t),
								from_bins, to_bins, n, error));
	return DEVICE_OK;
}
