/*
 * standin_sets.c
 *	  The stand-in's values of sets, in an array for each; see standin.h.
 */
#include <stdlib.h>
#include <string.h>

#include "standin.h"

typedef struct SetValue
{
	uint64_t group;
	int64_t value;
} SetValue;

static int64_t
read_value(const Column *col, uint32_t i)
{
	int64_t value = 0;
	int bits = 64 - 8 * wire_width(col->type);

	memcpy(&value, col->values + (size_t) i * wire_width(col->type), wire_width(col->type));
	return (int64_t) ((uint64_t) value << bits) >> bits;
}

bool
standin_values_fit(const Query *query, const Rows *rows)
{
	for (uint32_t s = 0; s < query->q->nsets; s++)
		if (rows->cols[query->q->sets[s].col].type > WIRE_I64)
			return false;
	return true;
}

static void
keep_value(Query *query, uint32_t s, uint64_t group, int64_t value)
{
	size_t n = query->nvalues[s]++;

	/* room for a power of two */
	if ((n & (n - 1)) == 0)
		query->values[s] = realloc(query->values[s], (n > 0 ? 2 * n : 1) * sizeof(SetValue));
	query->values[s][n] = (SetValue){group, value};
}

void
standin_keep_values(Query *query, const Rows *rows, const uint64_t *groups)
{
	for (uint32_t s = 0; s < query->q->nsets; s++)
	{
		const WireSet *set = &query->q->sets[s];
		const Column *col = &rows->cols[set->col];

		for (uint32_t i = 0; i < rows->nrows; i++)
			if (standin_valid(col, i) &&
				(set->filter < 0 || rows->cols[set->filter].values[i] != 0))
				keep_value(query, s, groups[i], read_value(col, i));
	}
}

void
standin_bring_values(Query *query, const Query *part, const uint64_t *groups)
{
	for (uint32_t s = 0; s < query->q->nsets; s++)
		for (size_t i = 0; i < part->nvalues[s]; i++)
			keep_value(query, s, groups[part->values[s][i].group], part->values[s][i].value);
}

void
standin_forget_values(Query *query)
{
	for (int s = 0; s < WIRE_MAX_SETS; s++)
	{
		free(query->values[s]);
		query->values[s] = NULL;
		query->nvalues[s] = 0;
	}
}

static int
compare_values(const void *x, const void *y)
{
	const SetValue *a = x, *b = y;

	if (a->group != b->group)
		return a->group < b->group ? -1 : 1;
	return a->value < b->value ? -1 : a->value > b->value;
}

static void
reduce_values(Query *query, int s)
{
	const WireSlot *slot = &query->q->slots[s];
	const SetValue *values = query->values[slot->set];

	for (size_t i = 0, first = 0; i < query->nvalues[slot->set]; i++)
	{
		bool begins = i == 0 || values[i].group != values[i - 1].group;

		if (slot->input == WIRE_FIRST && begins)
			((int64_t *) query->slots[s])[values[i].group] = (int64_t) i;
		else if (slot->input == WIRE_DISTINCT && (begins || values[i].value != values[i - 1].value))
			standin_add_value(query, s, values[i].group, values[i].value);
		else if (slot->input >= WIRE_MODE)
		{
			int64_t *state = (int64_t *) query->slots[s] + values[i].group;
			int64_t mode;

			if (begins || values[i].value != values[i - 1].value)
				first = i;
			mode = wire_mode_of(i - first + 1, first, slot->input == WIRE_MODE_LAST);
			*state = mode > *state ? mode : *state;
		}
	}
}

void
standin_finish_sets(Query *query)
{
	for (uint32_t s = 0; s < query->q->nsets; s++)
		if (query->nvalues[s] > 0)
			qsort(query->values[s], query->nvalues[s], sizeof(SetValue), compare_values);
	for (int s = 0; s < query->q->nslots; s++)
		if (query->q->slots[s].input != WIRE_ROWS)
			reduce_values(query, s);
}

DeviceStatus
standin_pick(Query *query, Lane *lane, const WirePick *in, const int32_t *places,
			 DeviceError *error)
{
	char *to = lane->arena + in->buffer * lane->buffer_bytes + wire_picked_at(in->n);

	for (uint32_t i = 0; i < in->n; i++)
	{
		if (places[i] < 0 || (size_t) places[i] >= query->nvalues[in->set])
			return device_say(error, DEVICE_UNSUPPORTED, "no such value");
		((int64_t *) to)[i] = query->values[in->set][places[i]].value;
	}
	return DEVICE_OK;
}
