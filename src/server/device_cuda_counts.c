/*
 * device_cuda_counts.c
 *	  Slots that count all rows of a group, as those of columns without NULLs do: only one of them is computed.
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

void
counts_find(Query *query, const Rows *rows)
{
	int			leader = query->groups.present.at ? ALIAS_PRESENT : query->count_slot;

	for (int s = 0; s < query->q->nslots; s++)
	{
		query->alias[s] = ALIAS_NONE;
		if (s == leader || !counts_all(query->q, rows, s))
			continue;
		if (leader >= 0)
			query->alias[s] = leader;
		else
			leader = s;
	}
}

DeviceStatus
counts_settle(Query *query, DeviceError *error)
{
	GroupStates *states = &query->groups;

	for (int s = 0; s < query->q->nslots; s++)
	{
		int			alias = query->alias[s];

		if (alias == ALIAS_NONE || states->capacity == 0)
			continue;
		CUDA_CHECK(cudaMemcpyAsync(states->slot[s].at, alias == ALIAS_PRESENT ? states->present.at : states->slot[alias].at,
								   states->capacity * sizeof(int64_t), cudaMemcpyDeviceToDevice, query->stream));
	}
	for (int s = 0; s < query->q->nslots; s++)
		query->alias[s] = ALIAS_NONE;
	return DEVICE_OK;
}

DeviceStatus
counts_check(Query *query, const Rows *rows, DeviceError *error)
{
	for (int s = 0; s < query->q->nslots; s++)
	{
		int			alias = query->alias[s];

		if (alias != ALIAS_NONE &&
			(!counts_all(query->q, rows, s) || (alias != ALIAS_PRESENT && !counts_all(query->q, rows, alias))))
			return counts_settle(query, error);
	}
	return DEVICE_OK;
}
