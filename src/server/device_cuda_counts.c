/*
 * device_cuda_counts.c
 *	  Slots whose states those of others tell: only the others are computed.
 *
 * Slots that count all rows of a group, as those of columns without NULLs do, are one.  The
 * greatest key is in the states of ARGMAX if each row with a key has a value, too; so is the
 * smallest one in those of ARGMIN.
 */
#include "server/device_cuda.h"

/* Does the slot count all rows of a group, as far as these go? */
static bool
counts_all(const WireQuery *q, const Rows *rows, int s)
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

/* Is slot s the key in the states of slot t, as far as these rows go? */
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

/* A slot whose states have those of slot s as keys; or ALIAS_NONE. */
static int
find_pair(const WireQuery *q, const Rows *rows, int s)
{
	for (int t = 0; t < q->nslots; t++)
		if (is_key_of(q, rows, s, t))
			return t;
	return ALIAS_NONE;
}

/* Does slot s still have the states of its alias, with these rows? */
static bool
alias_holds(const WireQuery *q, const Rows *rows, int s, int alias)
{
	if (q->slots[s].monoid != MONOID_COUNT)
		return is_key_of(q, rows, s, alias);
	return counts_all(q, rows, s) && (alias == ALIAS_PRESENT || counts_all(q, rows, alias));
}

void
counts_find(Query *query, const Rows *rows)
{
	int leader = query->groups.present.at ? ALIAS_PRESENT : query->count_slot;

	for (int s = 0; s < query->q->nslots; s++)
	{
		query->alias[s] = find_pair(query->q, rows, s);
		if (s == leader || !counts_all(query->q, rows, s))
			continue;
		if (leader >= 0)
			query->alias[s] = leader;
		else
			leader = s;
	}
}

uint64_t
counts_told(const Query *query, const Rows *rows)
{
	uint64_t told = 0;

	for (int s = 0; s < query->q->nslots; s++)
	{
		int alias = query->rows > 0 ? query->alias[s] : find_pair(query->q, rows, s);

		if (alias != ALIAS_NONE && query->q->slots[s].monoid != MONOID_COUNT &&
			is_key_of(query->q, rows, s, alias))
			told |= UINT64_C(1) << s;
	}
	return told;
}

/* Gives a slot its own states. */
static DeviceStatus
settle(Query *query, int s, DeviceError *error)
{
	GroupStates *states = &query->groups;
	int alias = query->alias[s];

	if (alias != ALIAS_NONE && states->capacity > 0)
	{
		if (query->q->slots[s].monoid != MONOID_COUNT)
			KERNEL_CHECK(device_take_keys(states->slot[alias].at, states->capacity,
										  states->slot[s].at, query->stream));
		else
			CUDA_CHECK(cudaMemcpyAsync(
				states->slot[s].at,
				alias == ALIAS_PRESENT ? states->present.at : states->slot[alias].at,
				states->capacity * sizeof(int64_t), cudaMemcpyDeviceToDevice, query->stream));
	}
	query->alias[s] = ALIAS_NONE;
	return DEVICE_OK;
}

DeviceStatus
counts_settle(Query *query, bool keys, DeviceError *error)
{
	for (int s = 0; s < query->q->nslots; s++)
		if (keys || query->q->slots[s].monoid == MONOID_COUNT)
			DEVICE_CHECK(settle(query, s, error));
	return DEVICE_OK;
}

DeviceStatus
counts_check(Query *query, const Rows *rows, DeviceError *error)
{
	for (int s = 0; s < query->q->nslots; s++)
	{
		int alias = query->alias[s];

		if (alias != ALIAS_NONE && !alias_holds(query->q, rows, s, alias))
			DEVICE_CHECK(settle(query, s, error));
	}
	return DEVICE_OK;
}
