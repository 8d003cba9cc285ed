/*
 * gpu_hist.cu
 *	  Tests gpuagg_hist_update with bins given by index. Covers every commutative operator, every
 *	  strategy, sizes around the kernels' tile sizes, NULLs, filters, extreme values, several
 *	  batches, and rows clustered by bin. Reference: the CPU's operators (gpu_hist_run.h).
 */
#include <algorithm>

#include "gpu_hist_run.h"

/* ---- one case ----------------------------------------------------------------------- */

struct HistCase
{
	std::vector<MonoidId> ops;
	GpuaggHistStrategy strategy;
	int64_t nbins;
	size_t n;
	int batches;
	Spread spread;
	bool nulls;
	bool filter;
	bool narrow;         /* columns are narrower than the operators' inputs */
	bool skew;           /* nine of ten rows are in one bin */
	bool sorted = false; /* rows are sorted by bin, so that a warp's rows have one or two bins */
};

/*
 * Returns the input type of an operator. If `narrow`, returns a narrower type that it reads, too.
 */
static GpuaggValueType
column_type(MonoidId op, bool narrow)
{
	GpuaggValueType t = own_type(op);

	if (!narrow)
		return t;
	if (t == GPUAGG_VALUE_I64 || t == GPUAGG_VALUE_I128)
		return GPUAGG_VALUE_I32;
	if (t == GPUAGG_VALUE_I32)
		return GPUAGG_VALUE_I16;
	return t == GPUAGG_VALUE_F64 ? GPUAGG_VALUE_F32 : t;
}

/* Returns the slots of a case. Every second slot has the filter. */
static std::vector<SlotCase>
case_slots(const HistCase &c, Random &r)
{
	std::vector<SlotCase> slots;

	for (size_t s = 0; s < c.ops.size(); s++)
	{
		SlotCase slot = {c.ops[s], column_type(c.ops[s], c.narrow), c.nulls, c.filter && s % 2,
						 c.spread};

		/* with many or extreme factors, a product leaves the range of doubles in some orders */
		if (slot.op == MONOID_PRODUCT_F64 && (c.nbins < 5000 || c.skew || c.spread == EXTREME))
			slot.spread = FACTORS;
		/* pairs may also be counted; x and y have NULLs in different rows */
		if (slot.op == MONOID_COUNT)
			slot.nulls = c.nulls && r.below(2);
		if (has_pair_input(slot.op) || (slot.op == MONOID_COUNT && c.nulls))
		{
			slot.second = slot.type;
			slot.second_nulls = c.nulls;
		}
		slots.push_back(slot);
	}
	return slots;
}

/* Adds one batch of random rows to the states on the device and to the expected ones. */
static void
update_batch(const HistCase &c, const std::vector<SlotCase> &slots, Random &r,
			 HistExpected &expected, const HistActual &actual)
{
	GpuaggHist h = GpuaggHist();
	Column keys;
	std::vector<int32_t> bins(c.n);

	fill_column(keys, r, GPUAGG_VALUE_I32, c.n, PLAIN, false);
	for (size_t i = 0; i < c.n; i++)
	{
		bins[i] = c.skew && r.below(10) ? (int32_t) (c.nbins / 2) : (int32_t) r.below(c.nbins);
		if (c.sorted)
			bins[i] = (int32_t) (i * c.nbins / c.n);
		keys.in[i].lo = bins[i];
		memcpy(&keys.bytes[i * 4], &bins[i], 4);
	}
	keys.upload(4);

	HistBatch batch(r, slots, c.n);

	h.bins.kind = GPUAGG_BIN_INDEX;
	h.bins.ncolumns = 1;
	h.bins.column[0] = keys.get();
	h.bins.nbins = c.nbins;
	h.strategy = c.strategy;
	batch.attach(h);
	batch.expect(expected, bins);
	actual.attach(h);
	hist_update(h);
}

/* Runs all batches of a case, and compares the states with the expected ones. */
static void
check_case(const HistCase &c, uint64_t seed)
{
	Random r(seed);
	std::vector<SlotCase> slots = case_slots(c, r);
	HistExpected expected(slots, c.nbins);
	HistActual actual(slots, c.nbins);
	char what[160];

	for (int k = 0; k < c.batches; k++)
		update_batch(c, slots, r, expected, actual);
	snprintf(what, sizeof(what),
			 "strategy %d, %ld bins, %zu rows x %d, spread %d nulls %d filter %d narrow %d "
			 "skew %d sorted %d",
			 c.strategy, (long) c.nbins, c.n, c.batches, c.spread, c.nulls, c.filter, c.narrow,
			 c.skew, c.sorted);
	actual.check(expected, what);
}

/* ---- the tests --------------------------------------------------------------------- */

static std::vector<MonoidId>
all_operators()
{
	std::vector<MonoidId> ops;

	for (int op = 0; op < MONOID_COUNT_OF_IDS; op++)
		if (histograms_support(op))
			ops.push_back((MonoidId) op);
	return ops;
}

/*
 * Many rows of a warp share a bin, or one bin has most rows. Covers combination within a warp,
 * copies of states that the sample suggests, and operators without a special kernel.
 */
GPU_TEST(hist_clustered)
{
	const size_t n = gpu_test_rows(300007, 40009);
	const std::vector<MonoidId> calls[] = {{MONOID_COUNT, MONOID_SUM_F64},
										   {MONOID_SUM_F64},
										   {MONOID_SUM_F32},
										   {MONOID_ACCUM_F64},
										   {MONOID_REGR_F64},
										   {MONOID_SUM_I64},
										   {MONOID_SUM_DEC},
										   {MONOID_MAX_DEC},
										   {MONOID_ARGMAX},
										   {MONOID_COUNT, MONOID_MIN_DEC},
										   {MONOID_PRODUCT_F64},
										   {MONOID_ACCUM_F64, MONOID_PRODUCT_F64}};
	uint64_t seed = 4000;

	for (const std::vector<MonoidId> &ops : calls)
		for (int64_t nbins : {3L, 700L, 3000L, 5000L, 70000L})
			for (int flags = 0; flags < 8; flags++)
			{
				HistCase c = {ops,
							  GPUAGG_HIST_AUTO,
							  nbins,
							  n,
							  1,
							  flags & 1 ? EXTREME : PLAIN,
							  (flags & 2) != 0,
							  false,
							  false,
							  (flags & 4) == 0};

				c.sorted = (flags & 4) != 0;
				if (!gpu_test_quick() || flags % 3 == 0)
					check_case(c, seed);
				seed++;
			}
}

GPU_TEST(hist_operators)
{
	uint64_t seed = 1;
	size_t n = gpu_test_quick() ? 3001 : 20011;

	for (MonoidId op : all_operators())
		for (GpuaggHistStrategy strategy : strategies)
			for (int64_t nbins : {1L, 37L, 5000L})
				for (int flags = 0; flags < 16; flags++)
				{
					if (gpu_test_quick() && flags != 9 && flags != 6)
						continue;
					HistCase c = {{op},
								  strategy,
								  nbins,
								  n,
								  2,
								  flags & 1 ? EXTREME : PLAIN,
								  (flags & 2) != 0,
								  (flags & 2) != 0,
								  (flags & 4) != 0,
								  (flags & 8) != 0};

					check_case(c, seed++);
				}
}

/*
 * All rows are in one bin: the index has no column. Each operator is alone, or with others that its
 * kernel can update in the same pass.
 */
GPU_TEST(hist_one_bin)
{
	static const std::vector<MonoidId> other_ops[] = {
		{}, {MONOID_COUNT}, {MONOID_COUNT, MONOID_MIN_F64, MONOID_MAX_F64}};
	uint64_t seed = 1500;

	for (MonoidId op : all_operators())
		for (const std::vector<MonoidId> &others : other_ops)
			for (size_t n : {0, 1, 33, 4099, 70001})
				for (size_t shift : {0, 3})
					for (GpuaggHistStrategy strategy : strategies)
					{
						Random r(seed++);
						std::vector<SlotCase> slots = {plain_slot(op)};
						GpuaggHist h = GpuaggHist();
						char what[100];

						if (gpu_test_quick() && n > 33 && (seed % 5 || n > 5000))
							continue;
						for (MonoidId other : others)
							slots.push_back(plain_slot(other));

						HistBatch batch(r, slots, n, shift);
						HistExpected expected(slots, 1);
						HistActual actual(slots, 1);

						h.bins.kind = GPUAGG_BIN_INDEX;
						h.bins.ncolumns = 1;
						h.bins.column[0].type = GPUAGG_VALUE_I32;
						h.bins.nbins = 1;
						h.strategy = strategy;
						batch.attach(h);
						for (size_t s = 0; s < slots.size(); s++)
						{
							/* extremes read the column of a float8 operator */
							bool same =
								own_type(op) == GPUAGG_VALUE_F64 && slots[s].op != MONOID_COUNT;

							if (same)
								h.slot[s].x = h.slot[0].x;
							for (size_t i = 0; i < n; i++)
							{
								Input in;

								if (batch.input(same ? 0 : s, i, in))
									expected.step(s, 0, in);
							}
						}
						actual.attach(h);
						hist_update(h);
						snprintf(what, sizeof(what),
								 "%s with %zu others, %zu rows, shift %zu, strategy %d",
								 gpuagg_monoids[op].name, others.size(), n, shift, strategy);
						actual.check(expected, what);
					}
}

GPU_TEST(hist_sizes)
{
	uint64_t seed = 1000;
	std::vector<MonoidId> ops = {MONOID_COUNT, MONOID_SUM_I64, MONOID_SUM_F64, MONOID_MAX_F64};

	for (GpuaggHistStrategy strategy : strategies)
		for (size_t n : {0, 1, 31, 32, 33, 4095, 4096, 4097, 8191, 8193, 540671, 540673})
			for (int64_t nbins : {1L, 255L, 20000L, 300001L})
				if (n < 10000 || !gpu_test_quick())
					check_case({ops, strategy, nbins, n, 1, PLAIN, true, true, false, n % 2 == 1},
							   seed++);
}

GPU_TEST(hist_many_slots)
{
	std::vector<MonoidId> ops = all_operators();
	uint64_t seed = 2000;

	for (size_t at = 0; at + 8 <= ops.size(); at += 4)
		for (GpuaggHistStrategy strategy : strategies)
		{
			std::vector<MonoidId> some(ops.begin() + at, ops.begin() + at + 8);

			check_case({some, strategy, 3000, 50021, 2, PLAIN, true, true, at % 8 == 0, false},
					   seed++);
		}
}

/* Partitions in two steps, with each layout of the rows that are moved. */
GPU_TEST(hist_many_bins)
{
	const size_t n = gpu_test_quick() ? 9001 : 300007;
	const bool yes = true, no = false;
	const HistCase cases[] = {
		{{MONOID_COUNT}, GPUAGG_HIST_AUTO, 10000001, n, 2, PLAIN, no, no, no, no},
		{{MONOID_COUNT, MONOID_SUM_F64}, GPUAGG_HIST_AUTO, 3000001, n, 2, EXTREME, no, no, no, no},
		{{MONOID_COUNT, MONOID_SUM_F64}, GPUAGG_HIST_AUTO, 3000001, n, 2, PLAIN, no, no, no, yes},
		{{MONOID_COUNT, MONOID_SUM_F64}, GPUAGG_HIST_AUTO, 3000001, n, 1, PLAIN, yes, yes, no, no},
		{{MONOID_SUM_F64, MONOID_MAX_I32, MONOID_SUM_I64},
		 GPUAGG_HIST_AUTO,
		 3000001,
		 n,
		 1,
		 PLAIN,
		 no,
		 no,
		 no,
		 no},
		{{MONOID_ARGMAX}, GPUAGG_HIST_AUTO, 5000001, n, 2, EXTREME, no, no, yes, no},
		{{MONOID_MAX_I32}, GPUAGG_HIST_AUTO, 200001, n, 2, EXTREME, no, no, no, no},
		{{MONOID_MIN_I32}, GPUAGG_HIST_AUTO, 200001, n, 2, EXTREME, no, no, no, yes},
		{{MONOID_MAX_I64}, GPUAGG_HIST_AUTO, 200001, n, 2, EXTREME, no, no, no, no},
		{{MONOID_MIN_F64}, GPUAGG_HIST_AUTO, 200001, n, 2, EXTREME, no, no, no, no},
		/* a count and a sum in one pass */
		{{MONOID_COUNT, MONOID_SUM_I64}, GPUAGG_HIST_AUTO, 700, n, 2, EXTREME, no, no, yes, no},
		{{MONOID_COUNT, MONOID_SUM_I64}, GPUAGG_HIST_AUTO, 60000, n, 2, EXTREME, no, no, yes, yes},
		/* sums with one word in shared memory, in several passes, with carries to the states */
		{{MONOID_SUM_I64}, GPUAGG_HIST_SHARED, 50000, n, 2, EXTREME, no, no, yes, yes},
		{{MONOID_SUM_I64}, GPUAGG_HIST_SHARED, 150000, n, 2, EXTREME, no, no, yes, no},
	};
	uint64_t seed = 3000;

	for (const HistCase &c : cases)
		check_case(c, seed++);
}

/* Rows without a bin are left out. Rows beyond the last bin are counted once. */
GPU_TEST(hist_outside)
{
	for (int64_t nbins : {100L, 70000L, 300000L, 9000000L})
		for (size_t n : {1, 3, 4095, 4099, 100002})
			for (size_t shift = 0; shift < 4; shift++)
			{
				Random r(n + shift);
				std::vector<int32_t> keys(n);
				std::vector<int64_t> expect(nbins, 0);
				unsigned long long outside = 0;
				DeviceArray<int64_t> states(nbins);
				DeviceArray<GpuaggHistStatus> status(1);

				for (int32_t &k : keys)
				{
					k = (int32_t) r.below(nbins);
					if (r.below(8) == 0)
						k = r.below(2) ? -1 - (int32_t) r.below(100) :
										 (int32_t) (nbins + r.below(100));
					outside += k >= nbins;
					if (k >= 0 && k < nbins)
						expect[k]++;
				}
				DeviceArray<int32_t> device_keys(keys, shift);

				for (GpuaggHistStrategy strategy : strategies)
				{
					update_one_batch(MONOID_COUNT, {device_keys.get(), nullptr, GPUAGG_VALUE_I32},
									 GpuaggColumn(), n, nbins, states.get(), status.get(),
									 nbins > 100 && strategy == GPUAGG_HIST_SHARED ?
										 GPUAGG_HIST_AUTO :
										 strategy);
					CHECK(states.take() == expect && status.take()[0].outside == outside,
						  "strategy %d, %ld bins, %zu rows, shift %zu: %llu outside, expected %llu",
						  strategy, (long) nbins, n, shift, status.take()[0].outside, outside);
				}
			}
}

/*
 * Counts in bytes of shared memory overflow repeatedly, up to all four bytes of a word in one step,
 * and are added to the states.
 */
GPU_TEST(hist_full_bytes)
{
	const size_t n = gpu_test_rows(6000011, 400003);

	for (int64_t nbins : {60001L, 300001L})
		for (int hot : {1, 2, 3, 4, 9})
		{
			Random r(nbins + hot);
			std::vector<int32_t> keys(n);
			std::vector<int64_t> expect(nbins, 0);
			DeviceArray<int64_t> states(nbins);
			DeviceArray<GpuaggHistStatus> status(1);

			for (int32_t &k : keys)
			{
				k = (int32_t) (r.below(16)    ? 40000 + r.below(hot) :
								   r.below(2) ? nbins - 1 - r.below(4) :
												r.below(nbins));
				expect[k]++;
			}
			DeviceArray<int32_t> device_keys(keys, hot % 4);

			update_one_batch(MONOID_COUNT, {device_keys.get(), nullptr, GPUAGG_VALUE_I32},
							 GpuaggColumn(), n, nbins, states.get(), status.get(),
							 GPUAGG_HIST_AUTO);
			CHECK(states.take() == expect && status.take()[0].outside == 0,
				  "wrong counts: %ld bins, %d hot ones", (long) nbins, hot);
			CHECK(states.guards_intact(), "states overrun");
		}
}

/*
 * Sums of 32-bit integers: the words in shared memory overflow in either direction. Columns start
 * at any element, and some rows have no bin.
 */
GPU_TEST(hist_narrow_sums)
{
	const size_t n = gpu_test_rows(700001, 20003);

	for (int64_t nbins : {1L, 40L, 9000L, 30000L, 50000L, 100000L})
		for (int spread = 0; spread < 3; spread++)
			for (size_t shift : {0, 1, 6, 15})
			{
				Random r(nbins + 16 * spread + shift);
				std::vector<int32_t> keys(n), values(n);
				std::vector<int64_t> expect(nbins, 0);
				unsigned long long outside = 0;
				DeviceArray<int64_t> states(nbins);
				DeviceArray<GpuaggHistStatus> status(1);

				for (size_t i = 0; i < n; i++)
				{
					keys[i] = (int32_t) (r.below(3) ? r.below(nbins) : nbins / 2);
					if (r.below(16) == 0)
						keys[i] =
							r.below(2) ? -1 - (int32_t) r.below(9) : (int32_t) (nbins + r.below(9));
					values[i] = spread == 0 ? (int32_t) r.below(100) :
						spread == 1         ? INT32_MAX - (int32_t) r.below(9) :
						r.below(2)          ? INT32_MIN + (int32_t) r.below(9) :
											  (int32_t) r.below(1000) - 500;
					outside += keys[i] >= nbins;
					if (keys[i] >= 0 && keys[i] < nbins)
						expect[keys[i]] += values[i];
				}
				DeviceArray<int32_t> device_keys(keys, shift % 4), device_values(values, shift / 4);

				update_one_batch(MONOID_SUM_I64, {device_keys.get(), nullptr, GPUAGG_VALUE_I32},
								 {device_values.get(), nullptr, GPUAGG_VALUE_I32}, n, nbins,
								 states.get(), status.get(), GPUAGG_HIST_AUTO);
				CHECK(states.take() == expect && status.take()[0].outside == outside,
					  "%ld bins, spread %d, shift %zu: %llu outside, expected %llu", (long) nbins,
					  spread, shift, status.take()[0].outside, outside);
				CHECK(states.guards_intact(), "states overrun");
			}
}
