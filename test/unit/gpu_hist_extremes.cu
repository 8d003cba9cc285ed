/*
 * gpu_hist_extremes.cu
 *	  Tests histograms of minimum and maximum with few bins. Their kernels keep bounds in each
 *	  block: only values beyond them can change a state. Covers values that grow with every row,
 *	  that come late, that come to empty bins, and the extreme values of the types. Reference:
 *	  the CPU's operators (gpu_hist_run.h).
 */
#include <type_traits>

#include "gpu_hist_run.h"

/* The order of the rows' values. */
enum ExtremesOrder
{
	EXTREMES_RANDOM,
	EXTREMES_APART, /* each row's value is beyond all earlier ones, in one direction or the other */
	/* one value until the last rows, which have extreme values of the type, or its neighbours */
	EXTREMES_LATE,
	EXTREMES_ENDS,  /* one extreme value in most rows, another one in some */
	EXTREMES_ZEROS, /* -0 or 0, and the other zero in the last rows */
	EXTREMES_ORDERS
};

/*
 * Returns an extreme value: of integers, the ends of the type; of floats, both zeros, infinities,
 * NaN, denormals.
 */
template <typename T>
static T
end_value(int k)
{
	if constexpr (std::is_same<T, double>::value)
	{
		const double ends[] = {-0.0, 0.0, -INFINITY, INFINITY, NAN, -0x1p-1074, 0x1p-1074, -1e308};

		return ends[k % 8];
	}
	else
	{
		const T least = (T) (sizeof(T) == 4 ? (int64_t) INT32_MIN : INT64_MIN),
				ends[] = {least, (T) ~least, (T) (least + 1), (T) (~least - 1), 0, -1, 1, 2};

		return ends[k % 8];
	}
}

/* Returns the next greater (up) or smaller value of the type. */
template <typename T>
static T
next_value(T v, bool up)
{
	if constexpr (std::is_same<T, double>::value)
		return nextafter(v, up ? INFINITY : -INFINITY);
	else
		return (T) (up ? v + 1 : v - 1);
}

/* Returns the value of row i of n rows in this order. */
template <typename T>
static T
extreme_value(ExtremesOrder order, Random &r, size_t i, size_t n, int round)
{
	switch (order)
	{
		case EXTREMES_RANDOM:
			return (T) ((double) (int64_t) r.below(2000000) - 1e6);
		case EXTREMES_APART:
			return (T) (i % 2 ? (int64_t) i : -(int64_t) i);
		case EXTREMES_LATE:
			return i + 40 < n ? (T) 5 :
				round         ? next_value<T>(5, i % 2) :
								end_value<T>((int) (n - i));
		case EXTREMES_ZEROS:
			return end_value<T>(i + 40 < n ? round : 1 - round);
		default:
			return end_value<T>(r.below(round == 0 ? 20 : n / 20) == 0 ? round + 1 : round);
	}
}

/* Returns the number of batches in this order. */
static int
round_count(int order)
{
	return order == EXTREMES_ENDS ? 7 : order == EXTREMES_LATE || order == EXTREMES_ZEROS ? 2 : 1;
}

/*
 * Checks float extremes of rows that are all zeros: the maximum is 0, the minimum -0, whatever the
 * order of rows.
 */
static void
check_zeros(const HistActual &actual, const std::vector<SlotCase> &slots, int64_t nbins,
			const char *what)
{
	for (size_t s = 1; s < slots.size(); s++)
	{
		std::vector<char> got = actual.states[s]->take();

		if (slots[s].op != MONOID_MIN_F64 && slots[s].op != MONOID_MAX_F64)
			continue;
		for (int64_t b = 0; b < nbins; b++)
		{
			uint64_t bits;

			memcpy(&bits, &got[8 * b], 8);
			CHECK(bits == (slots[s].op == MONOID_MIN_F64 ? 1ULL << 63 : 0),
				  "%s: wrong zero %016lx in bin %ld", what, (unsigned long) bits, (long) b);
		}
	}
}

/* The rows of one batch, for any operators of their type. */
template <typename T> struct ExtremesRows
{
	GpuaggValueType type;
	int64_t nbins;
	ExtremesOrder order;
	int round;
	bool together; /* the call is expected to take all slots in one pass */
	std::vector<int32_t> bin;
	std::vector<T> values;
	std::unique_ptr<DeviceArray<int32_t>> index;
	std::unique_ptr<DeviceArray<T>> x;

	ExtremesRows(GpuaggValueType t, int64_t n_bins, ExtremesOrder o, int number,
				 bool one_pass = true)
		: type(t), nbins(n_bins), order(o), round(number), together(one_pass)
	{
		const size_t n = gpu_test_quick() ? 90001 : 4000037;
		Random r(nbins + order + round);

		bin.resize(n);
		values.resize(n);
		for (size_t i = 0; i < n; i++)
		{
			/* the last bin has no rows in the first 5/8 of the batch; some rows have no bin */
			bin[i] = r.below(50) == 0 ?
				-1 :
				(int32_t) r.below(i < n / 8 * 5 && nbins > 1 ? nbins - 1 : nbins);
			if (!together && bin[i] > 0 && i % 4 != 0)
				bin[i] = (int32_t) nbins - 1 - bin[i] % 70;
			values[i] = extreme_value<T>(order, r, i, n, round);
		}
		index.reset(new DeviceArray<int32_t>(bin));
		x.reset(new DeviceArray<T>(values));
	}
	Input
	input(size_t i) const
	{
		Input in = {0, 0};

		if constexpr (std::is_same<T, double>::value)
			in.lo = as_bits(values[i]);
		else
			in.lo = (uint64_t) (int64_t) values[i];
		in.hi = (uint64_t) ((int64_t) in.lo >> 63);
		return in;
	}
	/*
	 * Checks a call with a count and these operators. `paired`: the bins come from two keys, and
	 * rows without a bin have a key out of range.
	 */
	void
	check(const std::vector<MonoidId> &ops, bool paired = false) const
	{
		std::vector<SlotCase> slots = {{MONOID_COUNT, GPUAGG_VALUE_I8}};
		GpuaggHist h = GpuaggHist();
		GpuaggHistChoice choice;
		char what[100];

		for (MonoidId op : ops)
			slots.push_back({op, type});

		HistExpected expect(slots, nbins);
		HistActual actual(slots, nbins, 16);
		BinKeys keys(bin, nbins);

		for (size_t s = 0; s < slots.size(); s++)
			for (size_t i = 0; i < bin.size(); i++)
				if (bin[i] >= 0)
					expect.step(s, bin[i], input(i));
		h.bins.kind = GPUAGG_BIN_INDEX;
		h.bins.ncolumns = 1;
		h.bins.column[0] = {index->get(), nullptr, GPUAGG_VALUE_I32};
		h.bins.nbins = nbins;
		if (paired)
			h.bins = keys.bins;
		expect.outside = paired ? keys.outside : 0;
		h.nslots = (int) slots.size();
		h.nrows = (int64_t) bin.size();
		for (size_t s = 0; s < slots.size(); s++)
		{
			h.slot[s].op = slots[s].op;
			h.slot[s].x = s == 0 ? GpuaggColumn() : GpuaggColumn{x->get(), nullptr, type};
		}
		actual.attach(h);
		STATUS_MUST(gpuagg_hist_choose(&h, &choice));
		CHECK(choice.together == together, "%zu slots of one column, %ld bins: together: %d",
			  slots.size(), (long) nbins, choice.together);
		hist_update(h);
		snprintf(what, sizeof(what), "order %d, round %d, %ld bins%s", order, round, (long) nbins,
				 paired ? " from two keys" : "");
		actual.check(expect, what);
		if ((order == EXTREMES_ENDS && round == 0) || (order == EXTREMES_ZEROS && nbins == 1))
			check_zeros(actual, slots, nbins, what);
	}
};

GPU_TEST(hist_extremes)
{
	for (int64_t nbins : {1L, 4L, 64L, 65L})
		for (int order = 0; order < EXTREMES_ORDERS; order++)
			for (int round = 0; round < (round_count(order)); round++)
			{
				ExtremesOrder o = (ExtremesOrder) order;

				if (nbins > 4 && round > 1)
					break;
				ExtremesRows<int32_t> ints(GPUAGG_VALUE_I32, nbins, o, round);
				ExtremesRows<int64_t> longs(GPUAGG_VALUE_I64, nbins, o, round);
				ExtremesRows<double> floats(GPUAGG_VALUE_F64, nbins, o, round);

				ints.check({MONOID_SUM_I64, MONOID_MIN_I32, MONOID_MAX_I32});
				ints.check({MONOID_MAX_I32, MONOID_MIN_I32});
				longs.check({MONOID_SUM_DEC, MONOID_MIN_DEC, MONOID_MAX_DEC});
				longs.check({MONOID_MIN_I64, MONOID_MAX_I64});
				floats.check({MONOID_MAX_F64, MONOID_MIN_F64});
				if (order == EXTREMES_RANDOM || order == EXTREMES_APART)
				{
					floats.check({MONOID_SUM_F64, MONOID_MIN_F64, MONOID_MAX_F64});
					floats.check({MONOID_ACCUM_F64, MONOID_MIN_F64, MONOID_MAX_F64});
				}
			}
}

/* The same with bins from two keys, which the kernels compute. */
GPU_TEST(hist_extremes_paired)
{
	for (int64_t nbins : {1L, 64L, 65L})
		for (ExtremesOrder order : {EXTREMES_RANDOM, EXTREMES_APART, EXTREMES_LATE})
		{
			ExtremesRows<int32_t> ints(GPUAGG_VALUE_I32, nbins, order, 0);
			ExtremesRows<int64_t> longs(GPUAGG_VALUE_I64, nbins, order, 0);
			ExtremesRows<double> floats(GPUAGG_VALUE_F64, nbins, order, 0);

			ints.check({MONOID_SUM_I64, MONOID_MIN_I32, MONOID_MAX_I32}, true);
			ints.check({MONOID_MAX_I32, MONOID_MIN_I32}, true);
			longs.check({MONOID_SUM_DEC, MONOID_MIN_DEC, MONOID_MAX_DEC}, true);
			floats.check({MONOID_MAX_F64, MONOID_MIN_F64}, true);
			if (order != EXTREMES_LATE)
				floats.check({MONOID_SUM_F64, MONOID_MIN_F64, MONOID_MAX_F64}, true);
		}
}

/* Two passes, of which the last has few bins, so that it keeps bounds. */
GPU_TEST(hist_extremes_passes)
{
	const DeviceFacts *facts;

	STATUS_MUST(gpuagg_device_facts(&facts));
	for (int last : {1, 5, 64, 65})
		for (ExtremesOrder order : {EXTREMES_APART, EXTREMES_LATE})
		{
			auto most = [&](int words)
			{ return (int64_t) ((facts->smem_per_block - 1024) / 4 / words & ~(size_t) 1); };

			ExtremesRows<int32_t>(GPUAGG_VALUE_I32, most(3) + last, order, 0, false)
				.check({MONOID_MIN_I32, MONOID_MAX_I32});
			ExtremesRows<double>(GPUAGG_VALUE_F64, most(5) + last, order, 0, false)
				.check({MONOID_MIN_F64, MONOID_MAX_F64}, last == 5);
		}
}

/* Only minimum, or only maximum. */
GPU_TEST(hist_extremes_alone)
{
	for (int order = 0; order < EXTREMES_ORDERS; order++)
		for (int round = 0; round < (round_count(order)); round++)
		{
			ExtremesRows<int32_t> ints(GPUAGG_VALUE_I32, 4, (ExtremesOrder) order, round);
			ExtremesRows<int64_t> longs(GPUAGG_VALUE_I64, 4, (ExtremesOrder) order, round);
			ExtremesRows<double> floats(GPUAGG_VALUE_F64, 4, (ExtremesOrder) order, round);

			for (bool least : {false, true})
			{
				ints.check({least ? MONOID_MIN_I32 : MONOID_MAX_I32});
				longs.check({least ? MONOID_MIN_I64 : MONOID_MAX_I64});
				longs.check({least ? MONOID_MIN_DEC : MONOID_MAX_DEC});
				floats.check({least ? MONOID_MIN_F64 : MONOID_MAX_F64});
				ints.check({MONOID_SUM_I64, least ? MONOID_MIN_I32 : MONOID_MAX_I32});
			}
		}
}
