/*
 * hash_tables.c
 *	  Hash tables of packed keys in device memory: their allocation, and lookups.
 *
 * The kernels are those of kernels/group.cu.  A query has a table of its groups (group_tables.c),
 * and tables of parts of its keys if these exceed 16 bytes (packed_keys.c).
 */
#include <string.h>

#include "device_cuda/device_internal.h"

/* The smallest capacity of a hash table; tests make it smaller. */
#ifndef LEAST_CAPACITY
#define LEAST_CAPACITY 4096
#endif
/* An estimate of the number of groups does not raise the capacity of the first table above this. */
#define MOST_FIRST_CAPACITY (1 << 20)

/* The alignment that gpuagg_cuda.h requires for slots and keys of a table. */
#define TABLE_ALIGN 256

static size_t
table_align(size_t bytes)
{
	return (bytes + TABLE_ALIGN - 1) / TABLE_ALIGN * TABLE_ALIGN;
}

int64_t
hash_first_capacity(const WireQuery *q, int64_t n)
{
	double groups = q->est_groups * 1.25;
	int64_t capacity = LEAST_CAPACITY;

	while (capacity < 2 * n || (capacity < groups && capacity < MOST_FIRST_CAPACITY))
		capacity *= 2;
	return capacity;
}

int64_t
hash_smaller_capacity(int64_t capacity, int64_t least)
{
	return capacity - least < HASH_LEAST_GROWTH ? least : least + (capacity - least) / 2;
}

void
hash_release(DeviceQuery *query, HashTable *hash)
{
	memory_release(query, &hash->memory);
	memset(hash, 0, sizeof(*hash));
}

DeviceStatus
hash_make(DeviceQuery *query, int64_t capacity, HashTable *hash, DeviceError *error)
{
	int key_bytes = hash->table.key_bytes;
	size_t slots = table_align(gpuagg_group_slot_bytes(key_bytes, capacity));
	size_t keys = table_align(capacity * key_bytes);
	char *at;

	DEVICE_CHECK(
		memory_reserve(query, &hash->memory, slots + keys + sizeof(GpuaggGroupCounters), error));
	at = hash->memory.at;
	hash->table.capacity = capacity;
	hash->table.seed = query->seed;
	hash->table.slots = at;
	hash->table.keys = at + slots;
	hash->table.counters = (GpuaggGroupCounters *) (at + slots + keys);
	return DEVICE_OK;
}

DeviceStatus
hash_look_up(DeviceQuery *query, const GpuaggGroupTable *table, const void *keys,
			 const uint8_t *filter, int64_t n, int retry, int32_t *bins, int64_t *groups,
			 bool *full, DeviceError *error)
{
	GpuaggGroupCounters counters;
	GpuaggCudaStatus outcome;

	KERNEL_CHECK(gpuagg_group_lookup(table, keys, filter, n, retry, bins, query->stream));
	DEVICE_CHECK(device_query_read(query, &counters, table->counters, sizeof(counters), error));
	outcome = gpuagg_group_outcome(table, &counters, groups);
	*full = outcome == GPUAGG_CUDA_FULL;
	return *full ? DEVICE_OK : kernel_status(outcome, "gpuagg_group_lookup", error);
}
