/*
 * gpu_group_crafted.cu
 *	  Tests hash tables of groups with keys that were chosen to collide under the table's seed.
 *	  Every call ends after a limited search, no row gets a wrong bin, and a table with another
 *	  seed has room for all keys. Reference: the keys themselves, of which each must have its own
 *	  bin.
 */
#include "gpu_group_table.h"
#include "operators/gpu_hash.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#define SEED 99
#define OTHER_SEED 100

/* With this number of keys, some searches reach the limit of slots that a search may visit. */
#define COLLIDING 6000

/* The bytes of keys, without gaps. */
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

/* Returns different keys that hash to one slot of a table with this capacity and seed. */
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

/* Looks up keys, and returns their bins and the outcome. Checks that nothing else was written. */
static Lookup
lookup_keys(const Table &table, const Keys &keys, int retry, DeviceArray<int32_t> &bins)
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

/* Checks that each key with a bin has its own one, and that the table has the key there. */
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
			CHECK(false, "%d-byte keys, row %zu: bin %d of %ld is another key's", keys.bytes, i, b,
				  (long) l.groups);
			return;
		}
	}
	CHECK(without == l.pending, "%d-byte keys: %ld rows without a bin, %ld pending", keys.bytes,
		  (long) without, (long) l.pending);
}

static const int64_t capacities[] = {10000,
									 100000}; /* with a cache in shared memory, and without */

/*
 * A lookup stops with GPUAGG_CUDA_DEGENERATE. It continues in a table of the same size with another
 * seed.
 */
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

			Lookup first = lookup_keys(table, keys, 0, bins);

			CHECK(first.status == GPUAGG_CUDA_DEGENERATE && first.pending > 0 && first.groups > 0,
				  "%d-byte keys: status %d, %ld pending of %zu", bytes, first.status,
				  (long) first.pending, keys.size());
			check_bins(table, keys, first);

			STATUS_MUST(gpuagg_group_grow(&table.t, &other.t, nullptr));

			Lookup second = lookup_keys(other, keys, 1, bins);

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
 * Keys collide only under the new table's seed. Growth ends, the new table has all keys, and the
 * old one is unchanged.
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

		Lookup first = lookup_keys(table, keys, 0, bins);

		CHECK(first.status == GPUAGG_CUDA_OK, "status %d", first.status);
		check_bins(table, keys, first);
		STATUS_MUST(gpuagg_group_grow(&table.t, &bad.t, nullptr));
		STATUS_MUST(bad.outcome(&groups));
		CHECK(groups == (int64_t) keys.size(), "%d-byte keys: %ld groups of %zu", bytes,
			  (long) groups, keys.size());
		CHECK(lookup_keys(bad, keys, 0, bins).status == GPUAGG_CUDA_DEGENERATE,
			  "%d-byte keys: all rows found their bins", bytes);
		for (Table *from : {&table, &bad})
		{
			STATUS_MUST(gpuagg_group_grow(&from->t, &good.t, nullptr));

			Lookup again = lookup_keys(good, keys, 0, bins);

			CHECK(again.status == GPUAGG_CUDA_OK && again.bins == first.bins,
				  "%d-byte keys: status %d, or the bins differ", bytes, again.status);
		}
	}
}
