/*
 * gpu_group.cu
 *	  Hash group-by against a map on the host.
 */
#include "gpu_test.h"

#include <map>
#include <string>

struct Table
{
	GpuaggGroupTable t = GpuaggGroupTable();
	DeviceArray<char> slots;
	DeviceArray<char> keys;
	DeviceArray<GpuaggGroupCounters> counters;

	Table(int key_bytes, int64_t capacity)
		: slots(gpuagg_group_slot_bytes(key_bytes, capacity)), keys(capacity * key_bytes), counters(1)
	{
		t.key_bytes = key_bytes;
		t.capacity = capacity;
		t.slots = slots.get();
		t.keys = keys.get();
		t.counters = counters.get();
	}
	bool
	intact() const
	{
		return slots.guards_intact() && keys.guards_intact() && counters.guards_intact();
	}
};

/* Keys: `distinct` of them, zero and all ones among them, hot ones often. */
static std::string
random_key(Random &r, int bytes, uint64_t distinct, bool skew)
{
	uint64_t	k = skew && r.below(4) ? r.below(3) : r.below(distinct);
	uint64_t	w[2] = {k * 0x9E3779B97F4A7C15ull, k * 77};

	if (k == 0)
		w[0] = w[1] = 0;
	if (k == 1)
		w[0] = w[1] = ~0ull;
	if (bytes == 4)
		w[0] = (uint32_t) (k == 1 ? ~0u : (uint32_t) k * 2654435761u);
	return std::string((char *) w, bytes);
}

struct Expect
{
	std::map<std::string, int64_t> count;
	int64_t		nulls = 0;
	int64_t		left_out = 0;
};

/*
 * Batches of rows into a table that starts at `capacity` and grows; checks that
 * equal keys have equal bins, different ones different, and none is lost.
 */
static void
run_batches(int bytes, uint64_t distinct, size_t n, int batches, int64_t capacity, bool nulls,
			bool filter, bool skew, uint64_t seed)
{
	Random		r(seed);
	Expect		expect;
	std::map<int64_t, int64_t> got;	/* rows of each bin */
	std::map<std::string, int64_t> bin_of;
	Table	   *table = new Table(bytes, capacity);
	int64_t		groups = 0,
				pending,
				null_bin = -1;
	bool		bad = false;

	STATUS_MUST(gpuagg_group_init(&table->t, nullptr));
	for (int b = 0; b < batches; b++)
	{
		std::vector<char> keys(n * bytes);
		std::vector<uint8_t> valid((n + 7) / 8, 0xff),
					keep(n, 1);
		std::vector<std::string> key(n);

		for (size_t i = 0; i < n; i++)
		{
			key[i] = random_key(r, bytes, distinct, skew);
			memcpy(&keys[i * bytes], key[i].data(), bytes);
			if (nulls && r.below(10) == 0)
				valid[i / 8] &= ~(1 << (i % 8));
			if (filter && r.below(3) == 0)
				keep[i] = 0;
			if (!keep[i])
				expect.left_out++;
			else if (!(valid[i / 8] >> (i % 8) & 1))
				expect.nulls++;
			else
				expect.count[key[i]]++;
		}
		DeviceArray<char> device_keys(keys, 16);
		DeviceArray<uint8_t> device_valid(valid),
					device_keep(keep);
		DeviceArray<int32_t> bins(n);
		int			tries = 0;
		int			retry = 0;

		for (;;)
		{
			STATUS_MUST(gpuagg_group_lookup(&table->t, device_keys.get(), nulls ? device_valid.get() : nullptr,
											filter ? device_keep.get() : nullptr, (int64_t) n, retry,
											bins.get(), nullptr));
			if (gpuagg_group_status(&table->t, &groups, &pending, &null_bin, nullptr) != GPUAGG_CUDA_FULL)
				break;

			Table	   *larger = new Table(bytes, table->t.capacity * 2);

			CHECK(pending > 0, "full, but no row pending");
			STATUS_MUST(gpuagg_group_grow(&table->t, &larger->t, nullptr));
			CUDA_MUST(cudaDeviceSynchronize());
			CHECK(table->intact(), "table overrun");
			delete table;
			table = larger;
			retry = 1;
			if (++tries > 40)
			{
				CHECK(false, "no end of growing");
				break;
			}
		}
		std::vector<int32_t> out = bins.take();

		for (size_t i = 0; i < n && !bad; i++)
		{
			if (!keep[i])
				bad = out[i] != GPUAGG_GROUP_FILTERED;
			else
			{
				got[out[i]]++;
				if (!(valid[i / 8] >> (i % 8) & 1))
					bad = out[i] != null_bin;
				else
				{
					auto		at = bin_of.emplace(key[i], out[i]);

					bad = out[i] < 0 || out[i] >= groups || at.first->second != out[i];
				}
			}
			CHECK(!bad, "%d-byte keys, %zu rows, batch %d, row %zu: bin %d of %ld (null %ld)", bytes, n, b, i,
				  out[i], (long) groups, (long) null_bin);
		}
		CHECK(bins.guards_intact(), "bins overrun");
	}
	CHECK(groups == (int64_t) expect.count.size() + (expect.nulls > 0), "%d-byte keys: %ld groups, expected %zu + %d",
		  bytes, (long) groups, expect.count.size(), expect.nulls > 0);
	std::vector<char> unique = table->keys.take();

	for (auto &k : bin_of)
		if (memcmp(&unique[k.second * bytes], k.first.data(), bytes) != 0 || got[k.second] != expect.count[k.first])
		{
			CHECK(false, "%d-byte keys: bin %ld has another key or %ld rows", bytes, (long) k.second,
				  (long) got[k.second]);
			break;
		}
	CHECK(table->intact(), "table overrun");
	delete table;
}

GPU_TEST(group_lookup)
{
	uint64_t	seed = 1;

	for (int bytes : {4, 8, 16})
		for (uint64_t distinct : {1, 2, 100, 5000})
			for (size_t n : {0, 1, 255, 1025, 40000})
				for (int flags = 0; flags < 8; flags++)
					if (!gpu_test_quick() || (n != 40000 && flags == 3))
						run_batches(bytes, distinct, n, 2, 10000, flags & 1, flags & 2, flags & 4, seed++);
}

/* Tables of one group and more, that have to grow many times. */
GPU_TEST(group_grow)
{
	uint64_t	seed = 100;

	for (int bytes : {4, 8, 16})
		for (int64_t capacity : {1, 37, 1000})
			run_batches(bytes, 100000, gpu_test_quick() ? 3000 : 60000, 3, capacity, true, true, false, seed++);
}

GPU_TEST(group_partition)
{
	for (int bytes : {4, 8, 16})
		for (int value_bytes : {0, 4, 8})
			for (size_t n : {1, 4095, 4097, 100003})
			{
				Random		r(n + bytes);
				std::vector<char> keys(n * bytes),
							values(n * 8);
				std::map<std::string, int64_t> rows;
				size_t		bytes_needed = 0;

				for (size_t i = 0; i < n; i++)
				{
					std::string k = random_key(r, bytes, 1000, i % 2);
					uint64_t	v = value_bytes ? i : 0;

					memcpy(&keys[i * bytes], k.data(), bytes);
					memcpy(&values[i * value_bytes], &v, value_bytes);
					rows[k + std::to_string(v)]++;
				}
				DeviceArray<char> in(keys),
							in_values(values),
							out(n * bytes),
							out_values(n * value_bytes);

				STATUS_MUST(gpuagg_group_partition(bytes, in.get(), value_bytes, value_bytes ? in_values.get() : nullptr,
												   (int64_t) n, out.get(), out_values.get(), nullptr, &bytes_needed, nullptr));
				DeviceArray<char> workspace(bytes_needed);

				STATUS_MUST(gpuagg_group_partition(bytes, in.get(), value_bytes, value_bytes ? in_values.get() : nullptr,
												   (int64_t) n, out.get(), out_values.get(), workspace.get(),
												   &bytes_needed, nullptr));
				std::vector<char> got = out.take(),
							got_values = out_values.take();
				bool		good = out.guards_intact() && out_values.guards_intact();

				for (size_t i = 0; i < n; i++)
				{
					uint64_t	v = 0;

					memcpy(&v, got_values.data() + i * value_bytes, value_bytes);
					if (--rows[std::string(&got[i * bytes], bytes) + std::to_string(v)] < 0)
						good = false;
				}
				CHECK(good, "%d-byte keys, %d-byte values, %zu rows", bytes, value_bytes, n);
			}
}

GPU_TEST(group_estimate)
{
	const size_t n = gpu_test_quick() ? 100000 : 3000000;

	for (uint64_t distinct : {1, 10, 1000, 30000, 1000000})
	{
		Random		r(distinct);
		std::vector<uint64_t> keys(n);
		size_t		bytes = 0;
		int64_t		estimate;
		double		truth = (double) distinct;

		for (uint64_t &k : keys)
			k = r.below(distinct) * 0x9E3779B97F4A7C15ull;
		if (truth > 0.63 * (double) n)
			continue;
		DeviceArray<uint64_t> device_keys(keys);

		STATUS_MUST(gpuagg_group_estimate(8, device_keys.get(), (int64_t) n, &estimate, nullptr, &bytes, nullptr));
		DeviceArray<char> workspace(bytes);

		STATUS_MUST(gpuagg_group_estimate(8, device_keys.get(), (int64_t) n, &estimate, workspace.get(), &bytes, nullptr));
		CHECK((double) estimate > 0.7 * truth && (double) estimate < 1.4 * truth, "%lu distinct of %zu: estimate %ld",
			  (unsigned long) distinct, n, (long) estimate);
	}
}
