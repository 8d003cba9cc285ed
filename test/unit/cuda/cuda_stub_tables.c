/*
 * cuda_stub_tables.c
 *	  Hash tables of groups on the host: linear probing, with slots that hold group numbers; and
 *	  rows partitioned by key; see cuda_stub_kernels.h.
 */
#include <stdlib.h>
#include <string.h>

#include "cuda_stub_kernels.h"

_Atomic int stub_partitions;
_Atomic int stub_adoptions;

/* Returns the number of slots of a table; at most half of them are used. */
static int64_t
slot_count(int64_t capacity)
{
	return 2 * capacity + 64;
}

size_t
gpuagg_group_slot_bytes(int key_bytes, int64_t capacity)
{
	(void) key_bytes;
	return slot_count(capacity) * sizeof(int32_t);
}

/* Empties all slots and sets the counters to 0. */
static void
clear_table(const GpuaggGroupTable *table)
{
	memset(table->slots, 0xff, gpuagg_group_slot_bytes(table->key_bytes, table->capacity));
	table->counters->groups = table->counters->pending = table->counters->lost = 0;
}

GpuaggCudaStatus
gpuagg_group_init(const GpuaggGroupTable *table, gpuagg_stream stream)
{
	(void) stream;
	LAUNCH();
	clear_table(table);
	return GPUAGG_CUDA_OK;
}

/*
 * Returns the bin of a key, which is added if it is new. Returns -1 if it is new and the table is
 * full.
 */
static int32_t
lookup_or_add(const GpuaggGroupTable *table, const char *key)
{
	int width = table->key_bytes;
	int32_t *slots = table->slots;
	char *keys = table->keys;
	uint64_t h = 0xcbf29ce484222325ULL;
	int64_t at;

	for (int i = 0; i < width; i++)
		h = (h ^ (unsigned char) key[i]) * 0x100000001b3ULL;
	at = (int64_t) ((h ^ h >> 32) % slot_count(table->capacity));
	while (slots[at] >= 0 && memcmp(keys + (size_t) slots[at] * width, key, width) != 0)
		at = (at + 1) % slot_count(table->capacity);
	if (slots[at] >= 0)
		return slots[at];
	/* the counter passes the capacity, as in the real kernel */
	if (table->counters->groups >= (uint64_t) table->capacity)
	{
		table->counters->groups++;
		return -1;
	}
	slots[at] = (int32_t) table->counters->groups++;
	memcpy(keys + (size_t) slots[at] * width, key, width);
	return slots[at];
}

GpuaggCudaStatus
gpuagg_group_lookup(const GpuaggGroupTable *table, const void *keys, const uint8_t *filter,
					int64_t nrows, int retry, int32_t *bins, gpuagg_stream stream)
{
	(void) stream;
	LAUNCH();
	table->counters->pending = 0;
	for (int64_t i = 0; i < nrows; i++)
	{
		if (retry && bins[i] != -1)
			continue;
		if (filter && !filter[i])
		{
			bins[i] = GPUAGG_GROUP_FILTERED;
			continue;
		}
		bins[i] = lookup_or_add(table, (const char *) keys + i * table->key_bytes);
		table->counters->pending += bins[i] < 0;
	}
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
gpuagg_group_grow(const GpuaggGroupTable *from, const GpuaggGroupTable *to, gpuagg_stream stream)
{
	int64_t groups = from->counters->groups < (uint64_t) from->capacity ?
		(int64_t) from->counters->groups :
		from->capacity;

	(void) stream;
	LAUNCH();
	clear_table(to);
	for (int64_t g = 0; g < groups; g++)
		lookup_or_add(to, (const char *) from->keys + g * from->key_bytes);
	return GPUAGG_CUDA_OK;
}

/* ---- rows partitioned by key ---- */

/* In the stub, `first` has the group of each row. Rows that the filter leaves out have this one. */
#define NO_GROUP UINT32_MAX

/* Numbers the groups of all rows, by a table on the host. */
static void
number_groups(const GpuaggGroupTable *like, const char *keys, const uint8_t *filter,
			  GpuaggKeyParts *parts)
{
	GpuaggGroupCounters counters;
	GpuaggGroupTable table = {.key_bytes = like->key_bytes,
							  .capacity = parts->nrows + 1,
							  .keys = parts->keys,
							  .counters = &counters};

	table.slots = malloc(gpuagg_group_slot_bytes(table.key_bytes, table.capacity));
	clear_table(&table);
	for (int64_t i = 0; i < parts->nrows; i++)
		parts->first[i] = filter && !filter[i] ?
			NO_GROUP :
			(uint32_t) lookup_or_add(&table, keys + i * table.key_bytes);
	free(table.slots);
	parts->counts->groups = counters.groups;
	parts->counts->overflows = counters.groups > 4 * (uint64_t) parts->groups;
}

GpuaggCudaStatus
gpuagg_group_partition(const GpuaggGroupTable *table, const void *keys, const uint8_t *filter,
					   GpuaggKeyParts *parts, void *workspace, size_t *workspace_bytes,
					   gpuagg_stream stream)
{
	size_t key_bytes = (size_t) parts->nrows * table->key_bytes,
		   bytes = 16 + key_bytes + (size_t) parts->nrows * (sizeof(int32_t) + sizeof(uint32_t));

	(void) stream;
	if (parts->nrows < 0 || (parts->numbers && parts->nmoved > 0))
		return GPUAGG_CUDA_INVALID;
	parts->dense = 0;
	if (workspace == NULL)
	{
		*workspace_bytes = bytes;
		return GPUAGG_CUDA_OK;
	}
	if (*workspace_bytes < bytes)
		return GPUAGG_CUDA_WORKSPACE;
	parts->counts = workspace;
	parts->keys = parts->counts + 1;
	parts->bins = (int32_t *) ((char *) parts->keys + key_bytes);
	parts->first = (uint32_t *) (parts->bins + parts->nrows);
	LAUNCH();
	number_groups(table, keys, filter, parts);
	stub_partitions++;
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
gpuagg_group_adopt(const GpuaggGroupTable *table, GpuaggKeyParts *parts, int64_t groups,
				   gpuagg_stream stream)
{
	(void) stream;
	if (groups > table->capacity)
		return GPUAGG_CUDA_INVALID;
	LAUNCH();
	memcpy(table->keys, parts->keys, (size_t) groups * table->key_bytes);
	/* what slots have is not defined before they are filled */
	memset(table->slots, 0x77, gpuagg_group_slot_bytes(table->key_bytes, table->capacity));
	*table->counters = (GpuaggGroupCounters){.groups = (uint64_t) groups};
	parts->dense = 1;
	stub_adoptions++;
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
gpuagg_group_fill(const GpuaggGroupTable *table, gpuagg_stream stream)
{
	uint64_t groups = table->counters->groups;

	(void) stream;
	LAUNCH();
	clear_table(table);
	for (uint64_t g = 0; g < groups; g++)
		lookup_or_add(table, (const char *) table->keys + g * table->key_bytes);
	return GPUAGG_CUDA_OK;
}

int32_t
stub_bin_of_parted_row(const GpuaggKeyParts *parts, int64_t i)
{
	uint32_t group = parts->first[i];

	return group == NO_GROUP ? -1 : parts->dense ? (int32_t) group : parts->bins[group];
}

/* Returns whether a column of a slot was moved, or is read by the numbers of rows. */
static bool
was_moved(const GpuaggKeyParts *parts, const GpuaggColumn *column)
{
	bool moved = parts->numbers || column->values == NULL;

	for (int c = 0; c < parts->nmoved; c++)
		moved |= parts->moved[c].values == column->values;
	return moved && (parts->numbers || column->validity == NULL);
}

GpuaggCudaStatus
stub_check_parts(const GpuaggHist *hist)
{
	for (int s = 0; s < hist->nslots; s++)
	{
		const GpuaggSlot *slot = &hist->slot[s];
		const GpuaggColumn none = {.values = NULL};

		if (slot->op == MONOID_ARGMAX || slot->op == MONOID_ARGMIN || slot->op == MONOID_MIN_DEC ||
			slot->op == MONOID_MAX_DEC || hist->nrows != hist->parts->nrows ||
			!was_moved(hist->parts,
					   slot->op == MONOID_COUNT && !slot->x.validity ? &none : &slot->x) ||
			!was_moved(hist->parts,
					   slot->op == MONOID_COUNT && !slot->y.validity ? &none : &slot->y) ||
			(slot->filter && !hist->parts->numbers))
			return GPUAGG_CUDA_UNSUPPORTED;
	}
	return GPUAGG_CUDA_OK;
}
