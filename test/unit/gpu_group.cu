/*
 * gpu_group.cu
 *	  Tests hash tables of groups, which grow, with random keys of 4, 8 and 16 bytes. Reference:
 *	  a std::map on the host.
 */
#include "gpu_group_table.h"

#include <algorithm>
#include <map>

/* The rows of all batches so far. */
struct Expect
{
	int bytes; /* bytes of a key */
	std::map<std::string, int64_t> count;
	std::map<int64_t, int64_t> got; /* rows of each bin, as the device found them */
	std::map<std::string, int64_t> bin_of;
	int64_t groups = 0;
};

struct Batch
{
	std::vector<std::string> key;
	std::vector<char> keys;
	std::vector<uint8_t> keep;
};

/* Returns a random batch of n rows, and counts the rows of each key in `expect`. */
static Batch
random_batch(Random &r, Expect &expect, size_t n, uint64_t distinct, bool filter, bool skew)
{
	Batch b;

	b.keys.resize(n * expect.bytes);
	b.keep.assign(n, 1);
	for (size_t i = 0; i < n; i++)
	{
		b.key.push_back(random_key(r, expect.bytes, distinct, skew));
		memcpy(&b.keys[i * expect.bytes], b.key[i].data(), expect.bytes);
		if (filter && r.below(3) == 0)
			b.keep[i] = 0;
		if (b.keep[i])
			expect.count[b.key[i]]++;
	}
	return b;
}

/*
 * Looks up the keys of a batch in *table, which is replaced by a larger one whenever it is full.
 * Returns their bins.
 */
static std::vector<int32_t>
lookup_batch(Table **table, Expect &expect, const Batch &b, bool filter)
{
	size_t n = b.key.size();
	DeviceArray<char> keys(b.keys, 16);
	DeviceArray<uint8_t> keep(b.keep);
	DeviceArray<int32_t> bins(n);
	int64_t pending;

	for (int tries = 0; tries <= 40; tries++)
	{
		STATUS_MUST(gpuagg_group_lookup(&(*table)->t, keys.get(), filter ? keep.get() : nullptr,
										(int64_t) n, tries > 0, bins.get(), nullptr));
		if ((*table)->outcome(&expect.groups, &pending) != GPUAGG_CUDA_FULL)
		{
			CHECK(bins.guards_intact(), "bins overrun");
			return bins.take();
		}

		Table *larger = new Table(expect.bytes, (*table)->t.capacity * 2);

		CHECK(pending > 0, "the table is full, but no row is pending");
		STATUS_MUST(gpuagg_group_grow(&(*table)->t, &larger->t, nullptr));
		CUDA_MUST(cudaDeviceSynchronize());
		CHECK((*table)->intact(), "table overrun");
		delete *table;
		*table = larger;
	}
	CHECK(false, "the table still does not fit after 40 times");
	return bins.take();
}

/*
 * Counts the rows of each bin. Checks that equal keys have equal bins, and that rows left out by
 * the filter have none.
 */
static void
check_batch(Expect &expect, const Batch &b, const std::vector<int32_t> &out)
{
	bool bad = false;

	for (size_t i = 0; i < out.size() && !bad; i++)
	{
		if (!b.keep[i])
			bad = out[i] != GPUAGG_GROUP_FILTERED;
		else
		{
			expect.got[out[i]]++;
			bad = out[i] < 0 || out[i] >= expect.groups ||
				expect.bin_of.emplace(b.key[i], out[i]).first->second != out[i];
		}
		CHECK(!bad, "%d-byte keys, %zu rows, row %zu: bin %d of %ld", expect.bytes, out.size(), i,
			  out[i], (long) expect.groups);
	}
}

/*
 * Inserts batches of rows into a table that starts with room for `capacity` groups and grows.
 * Checks that equal keys have equal bins, different keys have different bins, and no row is lost.
 */
static void
check_batches(int bytes, uint64_t distinct, size_t n, int batches, int64_t capacity, bool filter,
			  bool skew, uint64_t seed)
{
	Random r(seed);
	Expect expect;
	Table *table = new Table(bytes, capacity);

	expect.bytes = bytes;
	STATUS_MUST(gpuagg_group_init(&table->t, nullptr));
	for (int k = 0; k < batches; k++)
	{
		Batch b = random_batch(r, expect, n, distinct, filter, skew);

		check_batch(expect, b, lookup_batch(&table, expect, b, filter));
	}
	CHECK(expect.groups == (int64_t) expect.count.size(), "%d-byte keys: %ld groups, expected %zu",
		  bytes, (long) expect.groups, expect.count.size());
	std::vector<char> unique = table->keys.take(std::min(expect.groups, table->t.capacity) * bytes);

	for (auto &k : expect.bin_of)
		if (memcmp(&unique[k.second * bytes], k.first.data(), bytes) != 0 ||
			expect.got[k.second] != expect.count[k.first])
		{
			CHECK(false, "%d-byte keys: bin %ld has another key or %ld rows", bytes,
				  (long) k.second, (long) expect.got[k.second]);
			break;
		}
	CHECK(table->intact(), "table overrun");
	delete table;
}

GPU_TEST(group_lookup)
{
	uint64_t seed = 1;

	for (int bytes : {4, 8, 16})
		for (uint64_t distinct : {1, 2, 100, 5000})
			for (size_t n : {0, 1, 255, 1025, 40000})
				for (int flags = 0; flags < 4; flags++)
					if (!gpu_test_quick() || (n != 40000 && flags < 2))
						check_batches(bytes, distinct, n, 2, 10000, flags & 1, flags & 2, seed++);
}

/* Tables with room for one group or a few, which have to grow many times. */
GPU_TEST(group_grow)
{
	uint64_t seed = 100;

	for (int bytes : {4, 8, 16})
		for (int64_t capacity : {1, 37, 1000})
			check_batches(bytes, 100000, gpu_test_quick() ? 3000 : 60000, 3, capacity, true, false,
						  seed++);
}
