/*
 * derived_slots.c
 *	  Slots whose state can be derived from another slot's state.  Only the source slot is computed.
 *
 * All slots that count all rows of a group share one count: those over columns without NULLs do.
 * The greatest key is in the states of ARGMAX, if each row with a key also has a value.  So is the
 * smallest key in the states of ARGMIN.
 */
#include "device_cuda/device_internal.h"

/* Returns whether slot s counts all rows of each group, for rows with these columns. */
static bool
counts_all_rows(const WireQuery *q, const Rows *rows, int s)
{
	const WireSlot *slot = &q->slots[s];

	if (slot->monoid != MONOID_COUNT || slot->bin_kind != WIRE_BIN_NONE || slot->filter >= 0 ||
		slot_is_late(q, s))
		return false;
	for (int c = 0; c < 2; c++)
		if (slot->col[c] >= 0 && may_have_nulls(&rows->cols[slot->col[c]]))
			return false;
	return true;
}

/*
 * Returns whether the state of slot s (MIN or MAX) always equals the key in the state of slot t
 * (ARGMIN or ARGMAX), for rows with these columns.
 */
static bool
is_key_of(const WireQuery *q, const Rows *rows, int s, int t)
{
	const WireSlot *key = &q->slots[s];
	const WireSlot *pair = &q->slots[t];

	return ((key->monoid == MONOID_MAX_I64 && pair->monoid == MONOID_ARGMAX) ||
			(key->monoid == MONOID_MIN_I64 && pair->monoid == MONOID_ARGMIN)) &&
		key->bin_kind == WIRE_BIN_NONE && pair->bin_kind == WIRE_BIN_NONE &&
		key->input == WIRE_ROWS && pair->input == WIRE_ROWS && key->col[0] == pair->col[0] &&
		key->filter == pair->filter && !may_have_nulls(&rows->cols[pair->col[1]]);
}

/* Returns a slot whose states contain slot s as keys, or SOURCE_NONE. */
static int
find_pair_slot(const WireQuery *q, const Rows *rows, int s)
{
	for (int t = 0; t < q->nslots; t++)
		if (is_key_of(q, rows, s, t))
			return t;
	return SOURCE_NONE;
}

/* Returns whether slot s can still be derived from its source after these rows. */
static bool
source_is_valid(const WireQuery *q, const Rows *rows, int s, int source)
{
	if (q->slots[s].monoid != MONOID_COUNT)
		return is_key_of(q, rows, s, source);
	return counts_all_rows(q, rows, s) &&
		(source == SOURCE_ROW_COUNTS || counts_all_rows(q, rows, source));
}

void
derived_slots_find(DeviceQuery *query, const Rows *rows)
{
	int shared_count = query->groups.states.row_counts.at ? SOURCE_ROW_COUNTS : query->count_slot;

	for (int s = 0; s < query->q->nslots; s++)
	{
		query->groups.source[s] = find_pair_slot(query->q, rows, s);
		if (s == shared_count || !counts_all_rows(query->q, rows, s))
			continue;
		if (shared_count >= 0)
			query->groups.source[s] = shared_count;
		else
			shared_count = s;
	}
}

bool
derived_slots_of_keys(const DeviceQuery *query, const Rows *rows, SlotSet *derived)
{
	bool any = false;

	*derived = (SlotSet){{0}};

	for (int s = 0; s < query->q->nslots; s++)
	{
		int source = query->nrows > 0 ? query->groups.source[s] : find_pair_slot(query->q, rows, s);

		if (source != SOURCE_NONE && query->q->slots[s].monoid != MONOID_COUNT &&
			is_key_of(query->q, rows, s, source))
		{
			slot_set_add(derived, s);
			any = true;
		}
	}
	return any;
}

/* Copies slot s's states from its source.  From then on the slot is computed by itself. */
static DeviceStatus
store_own_states(DeviceQuery *query, int s, DeviceError *error)
{
	GroupStates *states = &query->groups.states;
	int source = query->groups.source[s];

	if (source != SOURCE_NONE && states->capacity > 0)
	{
		if (query->q->slots[s].monoid != MONOID_COUNT)
			KERNEL_CHECK(device_take_keys(states->slot[source].at, states->capacity,
										  states->slot[s].at, query->stream));
		else
			CUDA_CHECK(cudaMemcpyAsync(
				states->slot[s].at,
				source == SOURCE_ROW_COUNTS ? states->row_counts.at : states->slot[source].at,
				states->capacity * sizeof(int64_t), cudaMemcpyDeviceToDevice, query->stream));
	}
	query->groups.source[s] = SOURCE_NONE;
	return DEVICE_OK;
}

DeviceStatus
derived_slots_store(DeviceQuery *query, bool keys, DeviceError *error)
{
	for (int s = 0; s < query->q->nslots; s++)
		if (keys || query->q->slots[s].monoid == MONOID_COUNT)
			DEVICE_CHECK(store_own_states(query, s, error));
	return DEVICE_OK;
}

DeviceStatus
derived_slots_check(DeviceQuery *query, const Rows *rows, DeviceError *error)
{
	for (int s = 0; s < query->q->nslots; s++)
	{
		int source = query->groups.source[s];

		if (source != SOURCE_NONE && !source_is_valid(query->q, rows, s, source))
			DEVICE_CHECK(store_own_states(query, s, error));
	}
	return DEVICE_OK;
}
