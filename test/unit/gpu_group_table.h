/*
 * gpu_group_table.h
 *	  A table of groups on the device and random keys, for tests of hash group-by.
 */
#ifndef GPUAGG_GPU_GROUP_TABLE_H
#define GPUAGG_GPU_GROUP_TABLE_H

#include "gpu_test.h"

#include <string>

struct Table
{
	GpuaggGroupTable t = GpuaggGroupTable();
	DeviceArray<char> slots;
	DeviceArray<char> keys;
	DeviceArray<GpuaggGroupCounters> counters;

	Table(int key_bytes, int64_t capacity)
		: slots(gpuagg_group_slot_bytes(key_bytes, capacity)), keys(capacity * key_bytes),
		  counters(1)
	{
		t.key_bytes = key_bytes;
		t.capacity = capacity;
		t.slots = slots.get();
		t.keys = keys.get();
		t.counters = counters.get();
	}
	/* Waits for the last lookup, and returns its outcome. */
	GpuaggCudaStatus
	outcome(int64_t *groups, int64_t *pending = nullptr) const
	{
		GpuaggGroupCounters c = counters.take()[0];

		if (pending)
			*pending = (int64_t) c.pending;
		return gpuagg_group_outcome(&t, &c, groups);
	}
	bool
	intact() const
	{
		return slots.guards_intact() && keys.guards_intact() && counters.guards_intact();
	}
};

/*
 * Returns one of `distinct` keys, among them all zeros and all ones. With skew, three keys are most
 * frequent.
 */
static inline std::string
random_key(Random &r, int bytes, uint64_t distinct, bool skew)
{
	uint64_t k = skew && r.below(4) ? r.below(3) : r.below(distinct);
	uint64_t w[2] = {k * 0x9E3779B97F4A7C15ull, k * 77};

	if (k == 0)
		w[0] = w[1] = 0;
	if (k == 1)
		w[0] = w[1] = ~0ull;
	if (bytes == 4)
		w[0] = (uint32_t) (k == 1 ? ~0u : (uint32_t) k * 2654435761u);
	return std::string((char *) w, bytes);
}

#endif /* GPUAGG_GPU_GROUP_TABLE_H */
