/*
 * gpu_sets.cu
 *	  Tests the server's kernels for values of sets: what is kept of rows whose values have others
 *	  beside them, sorts of numbers, and counts of equal values. Reference: the same on the host.
 */
#include <algorithm>
#include <tuple>

#include "common.cuh"
#include "gpu_test.h"
#include "device_cuda/kernels.h"

/* A value that is kept: bin, value, code of the value beside it, and its order. */
typedef std::tuple<int32_t, int64_t, int64_t, int32_t> KeptValue;

struct KeepCase
{
	WireType type;
	WireType beside_type;
	size_t n;
	bool nulls;
	bool filter;
	bool coded; /* the values beside others are codes already */
	int descending;
};

/* A column of random integers of a type, in host memory. */
struct HostColumn
{
	size_t width;
	std::vector<char> bytes;
	std::vector<uint8_t> valid;
	std::vector<int64_t> values;

	HostColumn(Random &r, WireType type, size_t n)
		: width(wire_width(type)), bytes(n * width), valid((n + 7) / 8), values(n)
	{
		int bits = 8 * (int) width;

		for (size_t i = 0; i < n; i++)
		{
			values[i] = r.below(4) == 0 ? (int64_t) ((uint64_t) INT64_MAX >> (64 - bits)) :
										  (int64_t) (r.next() << (64 - bits)) >> (64 - bits);
			memcpy(&bytes[i * width], &values[i], width);
			valid[i / 8] |= (r.below(5) != 0) << i % 8;
		}
	}
	bool
	has(size_t i) const
	{
		return valid[i / 8] >> i % 8 & 1;
	}
};

/* Keeps two batches of random rows, and compares what was kept, in any order, and the counts. */
static void
check_kept(const KeepCase &c, uint64_t seed)
{
	Random r(seed);
	DeviceArray<SetCounts> counts(1);
	DeviceArray<int32_t> bins(2 * c.n), order(2 * c.n);
	DeviceArray<int64_t> values(2 * c.n), beside(2 * c.n);
	SetArrays to = {bins.get(), values.get(), beside.get(), order.get()};
	std::vector<KeptValue> expected, got;
	int64_t last = 0;

	STATUS_MUST(device_init_set(counts.get(), nullptr));
	for (int batch = 0; batch < 2; batch++)
	{
		HostColumn column(r, c.type, c.n), other(r, c.beside_type, c.n);
		std::vector<uint8_t> filter(c.n);
		std::vector<int32_t> bin(c.n), given(c.n);
		SetRows rows = {};

		for (size_t i = 0; i < c.n; i++)
		{
			bool isnull = c.nulls && !other.has(i);
			int32_t one = (int32_t) r.below(2);

			filter[i] = r.below(4) != 0;
			bin[i] = (int32_t) r.below(50) - 3;
			given[i] = one;
			if (bin[i] < 0 || (c.filter && !filter[i]) || (c.nulls && !column.has(i)))
				continue;
			if (!c.coded)
				one = wire_beside_order(isnull, c.descending);
			last += one;
			expected.emplace_back(bin[i], column.values[i],
								  c.coded ? other.values[i] :
											wire_beside_code(other.values[i], isnull, c.descending),
								  one);
		}
		DeviceArray<char> column_bytes(column.bytes), other_bytes(other.bytes);
		DeviceArray<uint8_t> column_valid(column.valid), other_valid(other.valid),
			device_filter(filter);
		DeviceArray<int32_t> device_bin(bin), device_given(given);

		rows.column.type = c.type;
		rows.column.values = column_bytes.get();
		rows.column.validity = c.nulls ? column_valid.get() : nullptr;
		rows.beside.type = c.beside_type;
		rows.beside.values = other_bytes.get();
		rows.beside.validity = c.nulls && !c.coded ? other_valid.get() : nullptr;
		rows.order = c.coded ? device_given.get() : nullptr;
		rows.filter = c.filter ? device_filter.get() : nullptr;
		rows.bins = device_bin.get();
		rows.descending = c.descending;
		STATUS_MUST(device_keep_values(&rows, (int64_t) c.n, &to, counts.get(), nullptr));
		CUDA_MUST(cudaDeviceSynchronize());
	}
	SetCounts count = counts.take(1)[0];
	size_t n = (size_t) count.n;

	CHECK(n == expected.size(), "%zu values are kept, not %zu", n, expected.size());
	if (n != expected.size())
		return;
	std::vector<int32_t> got_bins = bins.take(n), got_order = order.take(n);
	std::vector<int64_t> got_values = values.take(n), got_beside = beside.take(n);

	for (size_t i = 0; i < n; i++)
		got.emplace_back(got_bins[i], got_values[i], got_beside[i], got_order[i]);
	std::sort(got.begin(), got.end());
	std::sort(expected.begin(), expected.end());
	CHECK(got == expected, "types %d and %d, %zu rows, nulls %d filter %d coded %d descending %d",
		  c.type, c.beside_type, c.n, c.nulls, c.filter, c.coded, c.descending);
	CHECK(count.last == last, "%ld values have order 1, not %ld", (long) count.last, (long) last);
	for (const KeptValue &v : expected)
		CHECK(count.min <= std::get<1>(v) && std::get<1>(v) <= count.max &&
				  count.beside_min <= std::get<2>(v) && std::get<2>(v) <= count.beside_max,
			  "a value is out of the range that was found");
	CHECK(bins.guards_intact() && values.guards_intact() && beside.guards_intact() &&
			  order.guards_intact(),
		  "an array is overrun");
}

GPU_TEST(sets_keep_beside)
{
	const WireType types[] = {WIRE_I8, WIRE_I16, WIRE_I32, WIRE_I64};
	uint64_t seed = 1;

	for (WireType type : types)
		for (WireType beside : types)
			for (size_t n : {(size_t) 1, (size_t) 257, gpu_test_rows(30001, 4001)})
				for (int flags = 0; flags < 16; flags++)
					if (!gpu_test_quick() || flags == (int) (seed % 16))
						check_kept({type, beside, n, (flags & 1) != 0, (flags & 2) != 0,
									(flags & 4) != 0, flags >> 3},
								   seed++);
					else
						seed++;
}

/* Numbers are sorted stably by keys of some bits. */
GPU_TEST(sets_sort_numbers)
{
	for (int bits : {1, 7, 20, 31})
		for (size_t n : {(size_t) 1, (size_t) 1000, gpu_test_rows(300001, 5001)})
		{
			Random r(bits * 1000 + n);
			std::vector<int32_t> keys(n), numbers(n);
			DeviceArray<int32_t> device_keys(n), more_keys(n), device_numbers(n), more_numbers(n);
			int32_t *k[2] = {device_keys.get(), more_keys.get()};
			int32_t *v[2] = {device_numbers.get(), more_numbers.get()};
			size_t bytes = 0;

			for (size_t i = 0; i < n; i++)
			{
				keys[i] = (int32_t) r.below((uint64_t) 1 << bits);
				numbers[i] = (int32_t) i;
			}
			device_keys.put(keys);
			STATUS_MUST(device_number_values(v[0], (int64_t) n, nullptr));
			STATUS_MUST(device_sort_numbers(k, v, (int64_t) n, bits, nullptr, &bytes, nullptr));
			DeviceArray<char> workspace(bytes);

			STATUS_MUST(
				device_sort_numbers(k, v, (int64_t) n, bits, workspace.get(), &bytes, nullptr));
			std::stable_sort(numbers.begin(), numbers.end(),
							 [&](int32_t a, int32_t b) { return keys[a] < keys[b]; });
			std::vector<int32_t> got =
				(v[0] == device_numbers.get() ? device_numbers : more_numbers).take(n);
			std::vector<int32_t> got_keys =
				(k[0] == device_keys.get() ? device_keys : more_keys).take(n);

			CHECK(got == numbers, "%zu numbers by %d bits are not in order", n, bits);
			for (size_t i = 0; i < n; i++)
				CHECK(got_keys[i] == keys[numbers[i]], "key %zu of %zu is wrong", i, n);
		}
}

/* The first places of equal sorted values of a bin, and how many of these there are. */
GPU_TEST(sets_count_values)
{
	for (uint64_t bins : {1, 40, 100000})
		for (uint64_t range : {1, 7, 100000})
			for (size_t n : {(size_t) 1, (size_t) 1000, gpu_test_rows(300001, 5001)})
			{
				Random r(bins * 31 + range + n);
				std::vector<std::pair<int32_t, int64_t>> pairs(n);
				std::vector<int32_t> bin(n), firsts;
				std::vector<int64_t> value(n);
				size_t bytes = 0;

				for (auto &pair : pairs)
					pair = {(int32_t) r.below(bins), (int64_t) r.below(range)};
				std::sort(pairs.begin(), pairs.end());
				for (size_t i = 0; i < n; i++)
				{
					bin[i] = pairs[i].first;
					value[i] = pairs[i].second;
					if (i == 0 || pairs[i] != pairs[i - 1])
						firsts.push_back((int32_t) i);
				}
				DeviceArray<int32_t> device_bins(bin), device_firsts(n), nfound(1);
				DeviceArray<int64_t> device_values(value);

				STATUS_MUST(device_list_firsts(device_bins.get(), device_values.get(), (int64_t) n,
											   device_firsts.get(), nfound.get(), nullptr, &bytes,
											   nullptr));
				DeviceArray<char> workspace(bytes);

				STATUS_MUST(device_list_firsts(device_bins.get(), device_values.get(), (int64_t) n,
											   device_firsts.get(), nfound.get(), workspace.get(),
											   &bytes, nullptr));
				size_t found = (size_t) nfound.take(1)[0];

				CHECK(found == firsts.size(), "%zu first values, not %zu", found, firsts.size());
				if (found != firsts.size())
					continue;
				CHECK(device_firsts.take(found) == firsts, "first places of %zu values", n);
				CHECK(device_firsts.guards_intact(), "an array is overrun");
			}
}
