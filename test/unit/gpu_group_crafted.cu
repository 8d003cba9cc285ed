/*
 * gpu_group_crafted.cu
 *	  Hash group-by over keys that were made to collide under a table's seed:
 *	  every call ends soon, none gives a wrong bin, and another seed mends it.
 */
#include "gpu_group_table.h"
#include "operators/gpu_hash.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#define SEED 99
#define OTHER_SEED 100

/* So many that some search passes more slots than any is allowed to. */
#define COLLIDING 6000

/* Keys one after another, as their bytes. */
struct Keys
{
	int bytes;
	std::vector<char> data;

	explicit Keys(int of) : bytes(of)
	{
	}
	size_t
	size() const
	{
		return data.size() / bytes;
	}
	std::string
	operator[](size_t i) const
	{
		return std::string(&data[i * bytes], bytes);
	}
	void
	add(const void *key)
	{
		data.insert(data.end(), (const char *) key, (const char *) key + bytes);
	}
};

/* Different keys whose hashes fall into one slot of tables with `capacity` groups and the seed. */
static Keys
colliding_keys(int bytes, uint64_t seed, int64_t capacity)
{
	const GpuaggHashKey k = gpuagg_hash_key(seed);
	Keys keys(bytes);

	for (uint64_t i = 0; keys.size() < COLLIDING; i++)
	{
		uint64_t w[2] = {i, i};

		if (bytes == 8)
			w[0] = gpuagg_unhash64(&k, 0x1234567ull << 36 | i * 2654435761u % (1u << 31));
		else if (bytes == 16)
			w[0] = gpuagg_unhash64(&k, 77 - i * k.mul[2]);
		else if (gpuagg_hash_slot(gpuagg_hash64(&k, i), (uint32_t) (2 * capacity + 64)) != 5)
			continue;
		keys.add(w);
	}
	return keys;
}

struct Lookup
{
	GpuaggCudaStatus status;
	int64_t groups, pending;
	std::vector<int32_t> bins;
};

static Lookup
look_up(const Table &table, const Keys &keys, int retry, DeviceArray<int32_t> &bins)
{
	DeviceArray<char> device_keys(keys.data);
	Lookup l;

	STATUS_MUST(gpuagg_group_lookup(&table.t, device_keys.get(), nullptr, (int64_t) keys.size(),
									retry, bins.get(), nullptr));
	l.status = table.outcome(&l.groups, &l.pending);
	l.bins = bins.take();
	CHECK(bins.guards_intact() && table.intact(), "overrun");
	return l;
}

/* Each key that has a bin has one of its own, where the table has that key. */
static void
check_bins(const Table &table, const Keys &keys, const Lookup &l)
{
	std::vector<char> unique = table.keys.take((size_t) l.groups * keys.bytes);
	std::set<int32_t> seen;
	int64_t without = 0;

	for (size_t i = 0; i < keys.size(); i++)
	{
		int32_t b = l.bins[i];

		if (b == -1)
		{
			without++;
			continue;
		}
		if (b < 0 || b >= l.groups || !seen.insert(b).second ||
			std::string(&unique[(size_t) b * keys.bytes], keys.bytes) != keys[i])
		{
			CHECK(false, "%d-byte keys, row %zu: bin %d of %ld is not its own", keys.bytes, i, b,
				  (long) l.groups);
			return;
		}
	}
	CHECK(without == l.pending, "%d-byte keys: %ld rows without a bin, %ld pending", keys.bytes,
		  (long) without, (long) l.pending);
}

static const int64_t capacities[] = {10000,
									 100000}; /* with a cache in shared memory, and without */

/* A lookup fails cleanly, and goes on in a table of another seed, no larger. */
GPU_TEST(group_crafted_lookup)
{
	for (int bytes : {4, 8, 16})
		for (int64_t capacity : capacities)
		{
			if (gpu_test_quick() && bytes == 4 && capacity != capacities[0])
				continue;

			Keys keys = colliding_keys(bytes, SEED, capacity);
			DeviceArray<int32_t> bins(keys.size());
			Table table(bytes, capacity), other(bytes, capacity);

			table.t.seed = SEED;
			other.t.seed = OTHER_SEED;
			STATUS_MUST(gpuagg_group_init(&table.t, nullptr));

			Lookup first = look_up(table, keys, 0, bins);

			CHECK(first.status == GPUAGG_CUDA_DEGENERATE && first.pending > 0 && first.groups > 0,
				  "%d-byte keys: status %d, %ld pending of %zu", bytes, first.status,
				  (long) first.pending, keys.size());
			check_bins(table, keys, first);

			STATUS_MUST(gpuagg_group_grow(&table.t, &other.t, nullptr));

			Lookup second = look_up(other, keys, 1, bins);

			CHECK(second.status == GPUAGG_CUDA_OK && second.pending == 0 &&
					  second.groups == (int64_t) keys.size(),
				  "%d-byte keys, another seed: status %d, %ld groups of %zu", bytes, second.status,
				  (long) second.groups, keys.size());
			check_bins(other, keys, second);
			for (size_t i = 0; i < keys.size(); i++)
				if (first.bins[i] >= 0 && first.bins[i] != second.bins[i])
				{
					CHECK(false, "%d-byte keys, row %zu: bin %d became %d", bytes, i, first.bins[i],
						  second.bins[i]);
					break;
				}
		}
}

/*
 * Keys that collide under the new seed, not the old: growth ends, the new table is whole, and the
 * old as it was.
 */
GPU_TEST(group_crafted_grow)
{
	for (int bytes : {8, 16})
	{
		const int64_t capacity = 10000;
		Keys keys = colliding_keys(bytes, SEED, capacity);
		DeviceArray<int32_t> bins(keys.size());
		Table table(bytes, capacity), bad(bytes, capacity), good(bytes, 2 * capacity);
		int64_t groups;

		table.t.seed = OTHER_SEED;
		bad.t.seed = SEED;
		good.t.seed = OTHER_SEED + 1;
		STATUS_MUST(gpuagg_group_init(&table.t, nullptr));

		Lookup first = look_up(table, keys, 0, bins);

		CHECK(first.status == GPUAGG_CUDA_OK, "status %d", first.status);
		check_bins(table, keys, first);
		STATUS_MUST(gpuagg_group_grow(&table.t, &bad.t, nullptr));
		STATUS_MUST(bad.outcome(&groups));
		CHECK(groups == (int64_t) keys.size(), "%d-byte keys: %ld groups of %zu", bytes,
			  (long) groups, keys.size());
		CHECK(look_up(bad, keys, 0, bins).status == GPUAGG_CUDA_DEGENERATE,
			  "%d-byte keys: all were found", bytes);
		for (Table *from : {&table, &bad})
		{
			STATUS_MUST(gpuagg_group_grow(&from->t, &good.t, nullptr));

			Lookup again = look_up(good, keys, 0, bins);

			CHECK(again.status == GPUAGG_CUDA_OK && again.bins == first.bins,
				  "%d-byte keys: status %d, or other bins", bytes, again.status);
		}
	}
}
