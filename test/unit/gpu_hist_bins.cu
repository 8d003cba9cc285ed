/*
 * gpu_hist_bins.cu
 *	  Tests bins computed from keys: gpuagg_hist_bins, and gpuagg_hist_update where the kernel
 *	  computes them itself. Covers every kind of bins, several types, ranges and numbers of keys,
 *	  every strategy, and numbers of bins for every form of the kernels. References: bins
 *	  computed on the host, and the CPU's operators (gpu_hist_run.h).
 */
#include <algorithm>
#include <limits>

#include "operators/bins.h"
#include "gpu_hist_run.h"

/* ---- gpuagg_hist_bins and gpuagg_key_range -------------------------------------------- */

/* Checks the bins of n rows by gpuagg_hist_bins(), and the number of rows out of range. */
static void
check_bins(const char *what, const GpuaggBins &bins, size_t n, const std::vector<int32_t> &expect,
		   unsigned long long outside)
{
	DeviceArray<int32_t> out(n);
	DeviceArray<GpuaggHistStatus> status(1);
	size_t bad = n;

	CUDA_MUST(cudaMemset(status.get(), 0, sizeof(GpuaggHistStatus)));
	STATUS_MUST(gpuagg_hist_bins(&bins, (int64_t) n, out.get(), status.get(), nullptr));
	std::vector<int32_t> got = out.take();

	for (size_t i = 0; i < n && bad == n; i++)
		if (got[i] != expect[i])
			bad = i;
	CHECK(bad == n, "%s: row %zu: bin %d, expected %d", what, bad, bad < n ? got[bad] : 0,
		  bad < n ? expect[bad] : 0);
	CHECK(status.take()[0].outside == outside, "%s: %llu outside, expected %llu", what,
		  status.take()[0].outside, outside);
	CHECK(out.guards_intact(), "%s: overrun", what);
}

GPU_TEST(hist_bins_range)
{
	const size_t n = 10007;
	const GpuaggValueType types[] = {GPUAGG_VALUE_I8, GPUAGG_VALUE_I16, GPUAGG_VALUE_I32,
									 GPUAGG_VALUE_I64};

	for (int ncols = 1; ncols <= 4; ncols++)
	{
		Random r(40 + ncols);
		Column keys[4];
		GpuaggBins bins = GpuaggBins();
		std::vector<int32_t> expect(n, 0);
		unsigned long long outside = 0;
		std::vector<uint8_t> gone(n, 0), left(n, 0);

		bins.kind = GPUAGG_BIN_RANGE;
		bins.ncolumns = ncols;
		bins.nbins = 1;
		for (int c = 0; c < ncols; c++)
		{
			fill_column(keys[c], r, types[(c + ncols) % 4], n, EXTREME, c != 1);
			for (size_t i = 0; i < n; i++)
			{
				keys[c].in[i].lo = (uint64_t) ((int64_t) r.below(11) - 5);
				memcpy(&keys[c].bytes[i * size_of(keys[c].type)], &keys[c].in[i],
					   size_of(keys[c].type));
			}
			keys[c].upload(size_of(keys[c].type));
			bins.column[c] = keys[c].get();
			bins.min[c] = -5;
			bins.null_bin[c] = c == 0;
			/* the last value of the last column is out of range */
			bins.extent[c] = (c == ncols - 1 ? 10 : 11) + bins.null_bin[c];
			bins.nbins *= bins.extent[c];
			for (size_t i = 0; i < n; i++)
			{
				int64_t k = (int64_t) keys[c].in[i].lo + 5;

				if (!keys[c].ok(i))
				{
					k = 11 - (c == ncols - 1);
					if (!bins.null_bin[c])
						left[i] = 1;
				}
				else if (k >= bins.extent[c] - bins.null_bin[c])
					gone[i] = 1;
				expect[i] = (int32_t) (expect[i] * bins.extent[c] + k);
			}
		}
		for (size_t i = 0; i < n; i++)
		{
			if (left[i] || gone[i])
				expect[i] = -1;
			outside += gone[i] && !left[i];
		}
		check_bins("range", bins, n, expect, outside);
	}
}

GPU_TEST(hist_key_range)
{
	for (size_t n : {1, 100, 100003})
	{
		Random r(79 + n);
		Column x;
		DeviceArray<int64_t> range(2);
		int64_t lo = INT64_MAX, hi = INT64_MIN;
		GpuaggColumn c;

		fill_column(x, r, GPUAGG_VALUE_I16, n, EXTREME, true);
		x.upload(2);
		for (size_t i = 0; i < n; i++)
			if (x.ok(i))
			{
				lo = (int64_t) x.in[i].lo < lo ? (int64_t) x.in[i].lo : lo;
				hi = (int64_t) x.in[i].lo > hi ? (int64_t) x.in[i].lo : hi;
			}
		c = x.get();
		STATUS_MUST(gpuagg_key_range(&c, (int64_t) n, range.get(), nullptr));
		std::vector<int64_t> got = range.take();

		CHECK(got[0] == lo && got[1] == hi, "%zu rows: the range is %ld .. %ld", n, (long) got[0],
			  (long) got[1]);
	}
}

/* ---- gpuagg_hist_update ---------------------------------------------------------------- */

/* A key column with the values min to min + extent - 1. */
struct RangeKey
{
	GpuaggValueType type;
	int64_t min;
	int64_t extent;
	bool nulls;
	bool null_bin;
};

/* The keys of n rows, the expected bin of each, and the number of rows that are out of range. */
struct HistKeys
{
	size_t n;
	Random r;
	bool skew; /* half of the rows are in one bin, instead of a sixteenth */
	Column column[3];
	GpuaggBins bins = GpuaggBins();
	std::vector<int32_t> bin;
	unsigned long long outside = 0;
	std::vector<uint8_t> filter; /* empty: no filter */
	std::unique_ptr<DeviceArray<uint8_t>> device_filter;
	std::string text;

	HistKeys(size_t rows, int64_t nbins, bool filtered, uint64_t seed)
		: n(rows), r(seed), skew(seed % 2), bin(rows, -1)
	{
		bins.nbins = nbins;
		if (!filtered)
			return;
		for (size_t i = 0; i < n; i++)
			filter.push_back(r.below(4) ? 1 + (uint8_t) r.below(255) : 0);
		device_filter.reset(new DeviceArray<uint8_t>(filter));
		bins.filter = device_filter->get();
		text = "filter, ";
	}
	bool
	is_hot()
	{
		return skew ? r.below(2) : r.below(16) == 0;
	}
	bool
	in_filter(size_t i) const
	{
		return filter.empty() || filter[i];
	}
	void index();
	void range(const std::vector<RangeKey> &keys);

  private:
	void set_value(int c, size_t i, int64_t v);
	void finish_column(int c, bool nulls);
};

void
HistKeys::set_value(int c, size_t i, int64_t v)
{
	column[c].in[i].lo = (uint64_t) v;
	memcpy(&column[c].bytes[i * size_of(column[c].type)], &column[c].in[i],
		   size_of(column[c].type));
}

/* Copies a filled column to the device. */
void
HistKeys::finish_column(int c, bool nulls)
{
	if (nulls)
	{
		column[c].valid.resize(n);
		for (size_t i = 0; i < n; i++)
			column[c].valid[i] = r.below(8) != 0;
	}
	column[c].upload(size_of(column[c].type));
	bins.column[c] = column[c].get();
	bins.ncolumns = c + 1;
}

/*
 * Makes random bins of kind INDEX. Some are negative or too large, so that their rows are left out.
 */
void
HistKeys::index()
{
	bins.kind = GPUAGG_BIN_INDEX;
	fill_column(column[0], r, GPUAGG_VALUE_I32, n, PLAIN, false);
	for (size_t i = 0; i < n; i++)
	{
		int64_t v = is_hot() ? bins.nbins / 3 : (int64_t) r.below(bins.nbins);

		if (r.below(16) == 0)
			v = r.below(2) ? -1 - (int64_t) r.below(100) : bins.nbins + (int64_t) r.below(100);
		if (r.below(1000) == 0)
			v = r.below(2) ? INT32_MIN : INT32_MAX;
		set_value(0, i, v);
		if (!in_filter(i))
			continue;
		if (v >= bins.nbins)
			outside++;
		else if (v >= 0)
			bin[i] = (int32_t) v;
	}
	finish_column(0, false);
	text += "index";
}

/*
 * Returns a value of the type that is out of the key's range, or the least in range if there is
 * none.
 */
static int64_t
out_of_range(Random &r, const RangeKey &k)
{
	int bits = 8 * size_of(k.type);
	int64_t least = INT64_MIN >> (64 - bits), greatest = INT64_MAX >> (64 - bits);
	gpuagg_i128 first = k.min, end = first + k.extent,
				some[6] = {first - 1, first - 1 - (int64_t) r.below(1000),
						   end,       end + (int64_t) r.below(1000),
						   least,     greatest};
	uint64_t from = r.below(6);

	for (int i = 0; i < 6; i++)
	{
		gpuagg_i128 v = some[(from + i) % 6];

		if (v >= least && v <= greatest && (v < first || v >= end))
			return (int64_t) v;
	}
	return k.min;
}

/*
 * Makes bins of kind RANGE from random keys. Hot rows have the same value in each column. Some rows
 * are out of range in one or several columns.
 */
void
HistKeys::range(const std::vector<RangeKey> &keys)
{
	char some[120];
	std::vector<int64_t> at(n, 0);
	std::vector<uint8_t> left(n, 0), gone(n, 0), hot(n, 0);

	bins.kind = GPUAGG_BIN_RANGE;
	for (size_t i = 0; i < n; i++)
		hot[i] = is_hot();
	for (size_t c = 0; c < keys.size(); c++)
	{
		const RangeKey &k = keys[c];
		int bits = 8 * size_of(k.type);
		int64_t first = std::max(k.min, INT64_MIN >> (64 - bits)),
				end = (int64_t) std::min<gpuagg_i128>((gpuagg_i128) k.min + k.extent,
													  INT64_MAX >> (64 - bits));
		uint64_t values = (uint64_t) end - (uint64_t) first;

		fill_column(column[c], r, k.type, n, PLAIN, false);
		for (size_t i = 0; i < n; i++)
			set_value((int) c, i,
					  r.below(24) == 0 ? out_of_range(r, k) :
										 first + (int64_t) (hot[i] ? values / 3 : r.below(values)));
		finish_column((int) c, k.nulls);
		bins.min[c] = k.min;
		bins.null_bin[c] = k.null_bin;
		bins.extent[c] = k.extent + k.null_bin;
		for (size_t i = 0; i < n; i++)
		{
			gpuagg_i128 v = (gpuagg_i128) (int64_t) column[c].in[i].lo - k.min;

			if (!column[c].ok(i))
			{
				left[i] |= !k.null_bin;
				v = k.extent;
			}
			else if (v < 0 || v >= k.extent)
			{
				gone[i] = 1;
				v = 0;
			}
			at[i] = at[i] * bins.extent[c] + (int64_t) v;
		}
		snprintf(some, sizeof(some), "%s%zu-byte key from %ld, %ld values%s%s", c ? ", " : "",
				 (size_t) size_of(k.type), (long) k.min, (long) k.extent, k.nulls ? ", NULLs" : "",
				 k.null_bin ? " with a bin" : "");
		text += some;
	}
	for (size_t i = 0; i < n; i++)
	{
		if (!in_filter(i) || left[i])
			continue;
		if (gone[i])
			outside++;
		else
			bin[i] = (int32_t) at[i];
	}
}

/* Adds the same rows by each of the strategies, and checks the states. */
static void
check_strategies(const HistKeys &keys, const std::vector<SlotCase> &slots, size_t shift,
				 const std::vector<GpuaggHistStrategy> &used_strategies)
{
	Random r(keys.n + slots.size());
	HistBatch batch(r, slots, keys.n, shift);
	HistExpected expected(slots, keys.bins.nbins);

	expected.outside = keys.outside;
	batch.expect(expected, keys.bin);
	for (GpuaggHistStrategy strategy : used_strategies)
	{
		HistActual actual(slots, keys.bins.nbins);
		GpuaggHist h = GpuaggHist();
		char what[300];

		h.bins = keys.bins;
		h.strategy = strategy;
		batch.attach(h);
		actual.attach(h);
		hist_update(h);
		snprintf(what, sizeof(what), "%s, %ld bins, strategy %d, %zu rows, %zu slots",
				 keys.text.c_str(), (long) keys.bins.nbins, strategy, keys.n, slots.size());
		actual.check(expected, what);
	}
}

/*
 * Returns sets of slots for all forms of the kernels. With NULLs, none of the special forms can be
 * used.
 */
static std::vector<std::vector<SlotCase>>
slot_sets(bool nulls)
{
	const SlotCase count = {MONOID_COUNT, GPUAGG_VALUE_I8, nulls},
				   sum = {MONOID_SUM_F64, GPUAGG_VALUE_F64, nulls},
				   narrow = {MONOID_SUM_I64, GPUAGG_VALUE_I32, nulls, false, EXTREME};

	return {
		{count},
		{narrow},
		{sum},
		{count, sum},
		{{MONOID_ARGMAX, GPUAGG_VALUE_I32, nulls, false, PLAIN, GPUAGG_VALUE_I32}},
		{{MONOID_ACCUM_F64, GPUAGG_VALUE_F64, nulls}},
		{{MONOID_MAX_I32, GPUAGG_VALUE_I32, nulls, false, EXTREME}},
		{count, narrow},
		{{MONOID_MIN_F64, GPUAGG_VALUE_F64, nulls, false, EXTREME}},
		{{MONOID_COUNT, GPUAGG_VALUE_I8, true},
		 {MONOID_SUM_I64, GPUAGG_VALUE_I16, nulls, true},
		 {MONOID_SUM_F64, GPUAGG_VALUE_F32, true},
		 {MONOID_MAX_I64, GPUAGG_VALUE_I64, nulls, false, EXTREME},
		 {MONOID_ARGMIN, GPUAGG_VALUE_I64, nulls, false, PLAIN, GPUAGG_VALUE_I64, nulls},
		 {MONOID_BIT_XOR, GPUAGG_VALUE_I64}},
	};
}

static const std::vector<GpuaggHistStrategy> all_strategies(strategies, strategies + 4);

/*
 * Returns the strategies to test. Leaves out those that take long: hundreds of passes, or half of
 * the rows waiting for one state.
 */
static std::vector<GpuaggHistStrategy>
strategies_for(int64_t nbins, const HistKeys &keys, uint64_t seed)
{
	if (nbins >= 1000000 && seed % 4 != 0)
		return {GPUAGG_HIST_PARTITION, GPUAGG_HIST_AUTO};
	if (keys.skew)
		return {GPUAGG_HIST_SHARED, GPUAGG_HIST_PARTITION, GPUAGG_HIST_AUTO};
	return all_strategies;
}

/*
 * Returns the number of rows to test. key_bins() returns numbers of bins for every form: copies,
 * one pass, several passes, bytes, the L2 cache, partitions.
 */
static size_t
key_rows()
{
	return gpu_test_quick() ? 2003 : 60007;
}

/* Returns the numbers of bins to test. */
static std::vector<int64_t>
key_bins()
{
	if (gpu_test_quick())
		return {300};
	return {300, 12000, 50000, 200000, 1000000};
}

/* One int32 key with a range and without NULLs, which the fast kernels read directly. */
GPU_TEST(hist_update_simple_range)
{
	uint64_t seed = 100;

	for (int64_t nbins : key_bins())
	{
		const int64_t least[] = {-7, INT32_MIN, INT32_MAX - nbins + 1, 1000000};
		auto sets = slot_sets(false);

		for (size_t k = 0; k < sets.size(); k++, seed++)
		{
			HistKeys keys(key_rows(), nbins, false, seed);

			keys.range({{GPUAGG_VALUE_I32, least[seed % 4], nbins, false, false}});
			check_strategies(keys, sets[k], seed / 2 % 2, strategies_for(nbins, keys, seed));
		}
	}
}

/*
 * Two such keys, from which the fast kernels compute the bins. The ranges may begin or end at the
 * limits of int32. Covers several passes, partitions, and numbers of rows that are multiples of 32
 * or not.
 */
GPU_TEST(hist_update_paired)
{
	uint64_t seed = 150;

	for (int64_t inner : {20L, 601L})
		for (size_t more : {0, 1, 13})
		{
			const int64_t outer = inner < 100 ? 15 : 20;
			auto least = [](uint64_t n, int64_t values) {
				return n % 3 == 0 ? -7 : n % 3 == 1 ? INT32_MIN : INT32_MAX - values + 1;
			};
			auto sets = slot_sets(false);

			sets.push_back({{MONOID_COUNT, GPUAGG_VALUE_I8},
							{MONOID_ACCUM_F64, GPUAGG_VALUE_F64, false, false, EXTREME}});
			sets.push_back({{MONOID_SUM_F64, GPUAGG_VALUE_F64, false, false, EXTREME},
							{MONOID_COUNT, GPUAGG_VALUE_I8}});
			sets.push_back({{MONOID_SUM_F32, GPUAGG_VALUE_F32}});
			sets.push_back({{MONOID_SUM_DEC, GPUAGG_VALUE_I64, false, false, EXTREME}});
			sets.push_back({{MONOID_MAX_I64, GPUAGG_VALUE_I64, false, false, EXTREME}});
			for (size_t k = 0; k < sets.size(); k++, seed++)
			{
				HistKeys keys(key_rows() / 32 * 32 + more, outer * inner, false, seed);

				keys.range({{GPUAGG_VALUE_I32, least(seed / 3, outer), outer, false, false},
							{GPUAGG_VALUE_I32, least(seed, inner), inner, false, false}});
				check_strategies(keys, sets[k], seed / 2 % 2,
								 strategies_for(outer * inner, keys, seed));
			}
		}
}

/*
 * Two int32 keys that only the general kernels support: NULLs or a bin for them, ranges beyond
 * int32, a filter, more bins than the ranges have values.
 */
GPU_TEST(hist_update_not_paired)
{
	const GpuaggValueType i32 = GPUAGG_VALUE_I32;
	const std::vector<std::vector<RangeKey>> ranges = {
		{{i32, -7, 15, true, true}, {i32, 3, 20, false, false}},
		{{i32, -7, 15, false, false}, {i32, 3, 20, true, false}},
		{{i32, -7, 15, false, true}, {i32, 3, 20, false, false}},
		{{i32, -7, 15, false, false}, {i32, INT32_MAX - 10, 20, false, false}},
		{{i32, (int64_t) INT32_MIN - 3, 15, false, false}, {i32, 3, 20, false, false}},
		{{i32, -7, 15, false, false}, {i32, 3, 20, false, false}},
		{{i32, -7, 14, false, false}, {i32, 3, 20, false, false}},
	};
	const std::vector<SlotCase> sums = {{MONOID_COUNT, GPUAGG_VALUE_I8},
										{MONOID_SUM_F64, GPUAGG_VALUE_F64}},
								moments = {{MONOID_ACCUM_F64, GPUAGG_VALUE_F64}};

	for (size_t k = 0; k < ranges.size(); k++)
	{
		const RangeKey &outer = ranges[k][0], &inner = ranges[k][1];
		int64_t nbins = (outer.extent + outer.null_bin) * (inner.extent + inner.null_bin);
		HistKeys keys(key_rows(), outer.extent == 14 ? nbins + 20 : nbins, k == 5, 170 + k);

		keys.range(ranges[k]);
		check_strategies(keys, sums, 0, all_strategies);
		check_strategies(keys, moments, 0, all_strategies);
	}
}

/* Returns the n-th of the ranges that only the general kernels support, with at most nbins bins. */
static std::vector<RangeKey>
general_range(uint64_t n, int64_t nbins)
{
	const GpuaggValueType i8 = GPUAGG_VALUE_I8, i16 = GPUAGG_VALUE_I16, i32 = GPUAGG_VALUE_I32,
						  i64 = GPUAGG_VALUE_I64;
	int64_t root = (int64_t) sqrt((double) nbins);

	switch (n % 9)
	{
		case 0:
			return {{i32, -1000000, nbins - 1, true, true}};
		case 1:
			return {{i64, INT64_MIN + 12345, nbins, false, false}};
		case 2:
			return {{i64, INT64_MAX - nbins + 1, nbins, true, false}};
		case 3:
			/* below any int32 */
			return {{i32, (int64_t) INT32_MIN - 5, nbins, false, false}};
		case 4:
			/* fewer values than bins */
			return {{i32, 5, nbins - 7, false, false}};
		case 5:
			return {{i16, -3, std::min<int64_t>(root, 30000), true, true},
					{i32, INT32_MAX - root + 3, root - 2, false, false}};
		case 6:
			return {{i8, -5, 11, false, false},
					{i64, (int64_t) 3 << 40, nbins / 11 / 5, true, false},
					{i16, 100, 4, true, true}};
		case 7:
			return {{i64, INT64_MIN, nbins - 1, false, true}};
		default:
			return {{i16, -20000, std::min<int64_t>(nbins, 40000), true, false}};
	}
}

/*
 * Ranges that only the general kernels support: other types, NULLs with and without a bin, several
 * columns, filters.
 */
GPU_TEST(hist_update_range)
{
	uint64_t seed = 200;

	for (int64_t nbins : key_bins())
	{
		for (int nulls = 0; nulls < 2; nulls++)
			for (const auto &slots : slot_sets(nulls))
			{
				HistKeys keys(key_rows(), nbins, seed % 4 == 0, seed);

				keys.range(general_range(seed, nbins));
				check_strategies(keys, slots, 0, strategies_for(nbins, keys, seed));
				seed++;
			}
		/* the other sets have the skew next time */
		seed++;
	}
}

/* A simple range or an index, but with a filter. Some indexes are negative or too large. */
GPU_TEST(hist_update_filter)
{
	uint64_t seed = 300;

	for (int64_t nbins : key_bins())
		for (const auto &slots : slot_sets(false))
		{
			HistKeys keys(key_rows(), nbins, seed % 3 != 0, seed);

			if (seed % 2)
				keys.range({{GPUAGG_VALUE_I32, -99, nbins, false, false}});
			else
				keys.index();
			check_strategies(keys, slots, 0, strategies_for(nbins, keys, seed));
			seed++;
		}
}

/*
 * So many bins that partitions take two steps. With --quick there are fewer, and only the simple
 * range.
 */
GPU_TEST(hist_update_many_bins)
{
	const int64_t nbins = gpu_test_quick() ? 1000001 : 10000001;
	const std::vector<GpuaggHistStrategy> used_strategies = {GPUAGG_HIST_AUTO,
															 GPUAGG_HIST_PARTITION};
	auto sets = slot_sets(false);
	uint64_t seed = 601;

	for (size_t k : {0, 3, 4})
	{
		HistKeys simple(key_rows(), nbins, false, seed++),
			general(key_rows(), nbins, k == 3, seed++), filtered(key_rows(), nbins, true, seed++);

		simple.range({{GPUAGG_VALUE_I32, -5000000, nbins, false, false}});
		check_strategies(simple, sets[k], 0, used_strategies);
		if (gpu_test_quick())
			continue;
		general.range(general_range(k == 0 ? 2 : k == 3 ? 6 : 5, nbins));
		check_strategies(general, sets[k], 0,
						 k == 0 && !general.skew ? all_strategies : used_strategies);
		filtered.index();
		check_strategies(filtered, sets[k], 0, used_strategies);
	}
}

/*
 * A range that continues beyond the greatest int32. Keys from the other end of int32 are out of
 * range, not in the bins past that end.
 */
GPU_TEST(hist_update_range_past_int32)
{
	const std::vector<GpuaggHistStrategy> used_strategies(strategies,
														  strategies + (gpu_test_quick() ? 2 : 4));
	uint64_t seed = 700;

	for (int64_t nbins : gpu_test_quick() ? std::vector<int64_t>{1000} :
											std::vector<int64_t>{1000, 60000, 300000, 1000000})
		for (const auto &slots : slot_sets(false))
		{
			HistKeys keys(key_rows(), nbins, false, seed++);

			keys.range({{GPUAGG_VALUE_I32, INT32_MAX - 500, nbins, false, false}});
			check_strategies(keys, slots, 0, used_strategies);
		}
}
