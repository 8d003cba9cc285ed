/*
 * cuda_stub_tables.c
 *	  Hash tables of groups on the host: linear probing, with slots that hold group numbers; see
 *	  cuda_stub_kernels.h.
 */
#include <string.h>

#include "cuda_stub_kernels.h"

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
