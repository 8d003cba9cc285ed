/*
 * gpu_hist_floats.cu
 *	  Tests float sums and moments in histograms: sums are exact and rounded once where fixed
 *	  point applies, every run gives the same bits, and errors are reported. References: exact
 *	  sums in 128-bit integers, and the CPU's operators (gpu_hist_run.h).
 */
#include <algorithm>

#include "gpu_hist_run.h"

/* Slots of the sets below. */
static const SlotCase count = {MONOID_COUNT, GPUAGG_VALUE_I8},
					  sum = {MONOID_SUM_F64, GPUAGG_VALUE_F64},
					  sum_single = {MONOID_SUM_F64, GPUAGG_VALUE_F32},
					  single = {MONOID_SUM_F32, GPUAGG_VALUE_F32},
					  accum = {MONOID_ACCUM_F64, GPUAGG_VALUE_F64},
					  regr = plain_slot(MONOID_REGR_F64);

/* ---- exact sums ----------------------------------------------------------------------- */

/* Returns the sums of float8 values by bin, for one batch. */
static std::vector<double>
batch_sums(const std::vector<int32_t> &bins, const std::vector<double> &values, int64_t nbins,
		   GpuaggHistStrategy strategy)
{
	DeviceArray<int32_t> keys(bins);
	DeviceArray<double> x(values), states(nbins);
	DeviceArray<GpuaggHistStatus> status(1);

	update_one_batch(MONOID_SUM_F64, {keys.get(), nullptr, GPUAGG_VALUE_I32},
					 {x.get(), nullptr, GPUAGG_VALUE_F64}, values.size(), nbins, states.get(),
					 status.get(), strategy);
	return states.take();
}

/*
 * Many rows in a hot bin, so that every digit of the fixed-point sums overflows. The result is the
 * exact sum, rounded once.
 */
GPU_TEST(hist_digits)
{
	const size_t n = gpu_test_rows(8000000, 300000);

	for (int64_t nbins : {1L, 300L, 12000L})
		for (int sign = 0; sign < 3; sign++)
		{
			Random r(nbins + sign);
			std::vector<int32_t> bins(n);
			std::vector<double> values(n);
			std::vector<gpuagg_i128> expect(nbins, 0);

			for (size_t i = 0; i < n; i++)
			{
				int64_t v = (int64_t) (r.next() >> 11);

				if (sign == 1 || (sign == 2 && r.below(2)))
					v = -v;
				bins[i] = r.below(4) ? (int32_t) (nbins - 1) : (int32_t) r.below(nbins);
				values[i] = (double) v;
				expect[bins[i]] += v;
			}
			for (GpuaggHistStrategy strategy :
				 {GPUAGG_HIST_SHARED, GPUAGG_HIST_PARTITION, GPUAGG_HIST_EXCHANGE})
			{
				std::vector<double> got = batch_sums(bins, values, nbins, strategy);
				int64_t bad = -1;

				for (int64_t b = 0; b < nbins && bad < 0; b++)
					if (got[b] != (double) expect[b])
						bad = b;
				CHECK(bad < 0, "strategy %d, %ld bins, sign %d: bin %ld: %.17g, expected %.17g",
					  strategy, (long) nbins, sign, (long) bad, bad < 0 ? 0 : got[bad],
					  bad < 0 ? 0 : (double) expect[bad]);
			}
		}
}

/*
 * Values of 53 bits over 36 binades, so that every word of a chain is changed and carries. In the
 * last bin, large values of one sign carry into the top word many times. Each bin also has a value
 * that is less than the unit of the last place of its sum.
 */
GPU_TEST(hist_chains)
{
	const size_t n = gpu_test_rows(4000000, 200000);

	for (int64_t nbins : {1L, 4L, 1000L, 9000L})
		for (int sign = 0; sign < 3; sign++)
		{
			Random r(3 * nbins + sign);
			std::vector<int32_t> bins(n);
			std::vector<double> values(n);
			std::vector<gpuagg_i128> expect(nbins, 0);

			for (size_t i = 0; i < n; i++)
			{
				bool hot = r.below(4) == 0;
				int shift = hot ? 35 : (int) r.below(36);
				gpuagg_i128 v = (gpuagg_i128) (int64_t) (r.next() >> 11) << shift;

				/* neighbouring rows of one bin, which a thread adds in registers */
				bins[i] = hot ? (int32_t) (nbins - 1) :
					n / 2 < i ? (int32_t) ((i - n / 2) * nbins / n) :
								(int32_t) r.below(nbins);
				if (i % 1000 == 0)
					v = 1;
				if (sign == 1 || (sign == 2 && r.below(2)))
					v = -v;
				values[i] = (double) v;
				expect[bins[i]] += v;
			}
			for (GpuaggHistStrategy strategy : {GPUAGG_HIST_SHARED, GPUAGG_HIST_PARTITION})
			{
				std::vector<double> got = batch_sums(bins, values, nbins, strategy);
				int64_t bad = -1;

				for (int64_t b = 0; b < nbins && bad < 0; b++)
					if (got[b] != (double) expect[b])
						bad = b;
				CHECK(bad < 0, "strategy %d, %ld bins, sign %d: bin %ld: %.17g, expected %.17g",
					  strategy, (long) nbins, sign, (long) bad, bad < 0 ? 0 : got[bad],
					  bad < 0 ? 0 : (double) expect[bad]);
			}
		}
}

/* Rows for sums of integers and floats together; the bins from 0 to SPECIAL_BINS - 1 have few. */
struct JointRows
{
	static constexpr int SPECIAL_BINS = 6;
	std::vector<int32_t> keys, integers;
	std::vector<double> floats;
	std::vector<int64_t> counts, integer_sums;
	std::vector<double> float_sums;
	unsigned long long outside = 0;

	JointRows(size_t n, int64_t nbins, int32_t min, bool sorted, uint64_t seed);
};

/* Some rows have no bin: their key is less than the least one, or too large. */
JointRows::JointRows(size_t n, int64_t nbins, int32_t min, bool sorted, uint64_t seed)
	: counts(nbins, 0), integer_sums(nbins, 0), float_sums(nbins, -0.0)
{
	const double special[SPECIAL_BINS][2] = {{-0.0, -0.0},     {0.0, -0.0},   {3.25e5, -3.25e5},
											 {INFINITY, -1e9}, {NAN, 2.5e20}, {0x1p-300, 0x1p-300}};
	std::vector<gpuagg_i128> exact(nbins, 0);
	Random r(seed);

	for (size_t i = 0; i < n; i++)
	{
		int64_t bin = sorted ? (int64_t) (i * nbins / n) :
			r.below(3)       ? (int64_t) r.below(nbins) :
							   nbins / 2;
		gpuagg_i128 v = (gpuagg_i128) (int64_t) (r.next() >> 11) << r.below(36);
		double x;

		if (r.below(16) == 0)
			bin = r.below(2) ? -1 - (int64_t) r.below(9) : nbins + (int64_t) r.below(9);
		else if (nbins > 100 && bin < SPECIAL_BINS)
			bin += SPECIAL_BINS;
		if (i < 2 * SPECIAL_BINS && nbins > 100)
			bin = (int64_t) i / 2;
		v = r.below(2) ? v : -v;
		x = (double) v;
		if (nbins > 100 && bin >= 0 && bin < SPECIAL_BINS)
		{
			x = special[bin][i % 2];
			float_sums[bin] += x;
		}
		keys.push_back((int32_t) (bin + min));
		integers.push_back(i % 3 ? (int32_t) r.next() : INT32_MIN + (int32_t) r.below(9));
		floats.push_back(x);
		outside += bin >= nbins || (bin < 0 && min != 0);
		if (bin < 0 || bin >= nbins)
			continue;
		counts[bin]++;
		integer_sums[bin] += integers[i];
		exact[bin] += nbins > 100 && bin < SPECIAL_BINS ? 0 : v;
	}
	for (int64_t b = nbins > 100 ? SPECIAL_BINS : 0; b < nbins; b++)
		if (counts[b])
			float_sums[b] = (double) exact[b];
}

/*
 * A count, a sum of integers and a sum of floats, which one kernel takes together: all exact, with
 * rows that have no bin, zeros of both signs, infinities, NaN, and values out of the window.
 */
GPU_TEST(hist_joint_sums)
{
	const MonoidId ops[] = {MONOID_COUNT, MONOID_SUM_I64, MONOID_SUM_F64};

	for (int64_t nbins : {1L, 300L, 8000L})
		for (size_t n : {(size_t) 13, (size_t) 3071, gpu_test_rows(1000003, 50003)})
			for (int32_t min : {0, -77})
				for (int which = 0; which < 6; which++)
				{
					JointRows rows(n, nbins, min, which % 2, nbins + n + which);
					DeviceArray<int32_t> keys(rows.keys), integers(rows.integers);
					DeviceArray<double> floats(rows.floats);
					DeviceArray<int64_t> counts(nbins), integer_sums(nbins);
					DeviceArray<double> float_sums(nbins);
					DeviceArray<GpuaggHistStatus> status(1);
					void *states[] = {counts.get(), integer_sums.get(), float_sums.get()};
					GpuaggHist h = GpuaggHist();
					GpuaggHistChoice choice;
					std::vector<double> got;
					int64_t bad = -1;

					h.bins.kind = min ? GPUAGG_BIN_RANGE : GPUAGG_BIN_INDEX;
					h.bins.ncolumns = 1;
					h.bins.column[0] = {keys.get(), nullptr, GPUAGG_VALUE_I32};
					h.bins.min[0] = min;
					h.bins.extent[0] = h.bins.nbins = nbins;
					h.nrows = (int64_t) n;
					h.status = status.get();
					CUDA_MUST(cudaMemset(h.status, 0, sizeof(GpuaggHistStatus)));
					/* all three slots, or without the count, or without the integers */
					for (int s = which / 2 == 1; s < 3; s += 1 + (which / 2 == 2))
					{
						GpuaggSlot &slot = h.slot[h.nslots++];

						STATUS_MUST(gpuagg_hist_init(ops[s], states[s], nbins, nullptr));
						slot.op = ops[s];
						slot.states = states[s];
						if (s == 1)
							slot.x = {integers.get(), nullptr, GPUAGG_VALUE_I32};
						else if (s == 2)
							slot.x = {floats.get(), nullptr, GPUAGG_VALUE_F64};
					}
					STATUS_MUST(gpuagg_hist_choose(&h, &choice));
					CHECK(choice.together, "%d slots are not taken in one kernel", h.nslots);
					hist_update(h);
					got = float_sums.take();
					for (int64_t b = 0; b < nbins && bad < 0; b++)
						if (as_bits(got[b]) != as_bits(rows.float_sums[b]) &&
							!(got[b] != got[b] && rows.float_sums[b] != rows.float_sums[b]))
							bad = b;
					CHECK(bad < 0, "%zu rows, %ld bins from %d, case %d: bin %ld: %.17g, not %.17g",
						  n, (long) nbins, min, which, (long) bad, bad < 0 ? 0 : got[bad],
						  bad < 0 ? 0 : rows.float_sums[bad]);
					CHECK(which / 2 == 1 || counts.take() == rows.counts, "wrong counts");
					CHECK(which / 2 == 2 || integer_sums.take() == rows.integer_sums,
						  "wrong sums of integers");
					CHECK(status.take()[0].outside == rows.outside, "%llu rows outside, not %llu",
						  status.take()[0].outside, rows.outside);
				}
}

/* A sum of zeros is -0 only if all of them are -0. Numbers that cancel each other give +0. */
GPU_TEST(hist_zeros)
{
	const size_t n = 120000;

	for (GpuaggHistStrategy strategy : strategies)
	{
		std::vector<int32_t> bins(n);
		std::vector<double> values(n);

		for (size_t i = 0; i < n; i++)
		{
			double some[6] = {-0.0, 0.0, i / 6 % 2 ? -0.0 : 0.0, i / 6 % 2 ? 3.25e5 : -3.25e5,
							  0,    -0.0};

			bins[i] = (int32_t) (i % 6);
			values[i] = some[i % 6];
		}
		values[4] = 5;
		values[n - 2] = -5;
		std::vector<double> got = batch_sums(bins, values, 7, strategy);

		for (int b = 0; b < 7; b++)
			CHECK(as_bits(got[b]) == as_bits(b == 0 || b >= 5 ? -0.0 : 0.0),
				  "strategy %d, bin %d: wrong zero %016lx", strategy, b,
				  (unsigned long) as_bits(got[b]));
	}
}

/* ---- repeatable results ------------------------------------------------------------------ */

/*
 * Returns a number of 48 bits times one of twenty powers of two: below 2^18, and a multiple of
 * 2^-48. It is inside the window of the narrowest sums (three digits), but sums in double precision
 * depend on the order of such numbers.
 */
static double
scattered(Random &r)
{
	return ((double) r.below((uint64_t) 1 << 48) - 0x1p47) * exp2((double) r.below(20) - 48);
}

/* Rows in bins, half of them in one bin. */
struct ScatteredRows
{
	int64_t nbins;
	Column bins, x, y, single; /* x as float4 */

	ScatteredRows(size_t n, int64_t bins_of, uint64_t seed);
	std::vector<double> exact_sums(const Column &c) const;
	void check_order_matters() const;
};

ScatteredRows::ScatteredRows(size_t n, int64_t bins_of, uint64_t seed) : nbins(bins_of)
{
	Random r(seed);

	bins.type = GPUAGG_VALUE_I32;
	x.type = y.type = GPUAGG_VALUE_F64;
	single.type = GPUAGG_VALUE_F32;
	for (Column *c : {&bins, &x, &y, &single})
	{
		c->in.resize(n);
		c->bytes.resize(n * size_of(c->type));
	}
	for (size_t i = 0; i < n; i++)
	{
		int32_t bin = (int32_t) (r.below(2) ? nbins / 2 : r.below(nbins));
		double v[2] = {scattered(r), scattered(r)};
		float f = (float) v[0];

		bins.in[i].lo = (uint64_t) bin;
		x.in[i].lo = as_bits(v[0]);
		y.in[i].lo = as_bits(v[1]);
		single.in[i].lo = as_bits(f);
		memcpy(&bins.bytes[i * 4], &bin, 4);
		memcpy(&x.bytes[i * 8], &v[0], 8);
		memcpy(&y.bytes[i * 8], &v[1], 8);
		memcpy(&single.bytes[i * 4], &f, 4);
	}
	for (Column *c : {&bins, &x, &y, &single})
		c->upload(0);
}

/* Returns the exact sums, rounded once; -0 for empty bins. */
std::vector<double>
ScatteredRows::exact_sums(const Column &c) const
{
	std::vector<gpuagg_i128> sum(nbins, 0);
	std::vector<double> sums(nbins, -0.0);
	std::vector<bool> any(nbins, false);

	for (size_t i = 0; i < c.in.size(); i++)
	{
		sum[bins.in[i].lo] += (int64_t) (as_double(c.in[i].lo) * 0x1p24) * ((gpuagg_i128) 1 << 24) +
			(int64_t) (fmod(as_double(c.in[i].lo) * 0x1p24, 1) * 0x1p24);
		any[bins.in[i].lo] = true;
	}
	for (int64_t b = 0; b < nbins; b++)
		if (any[b])
			sums[b] = (double) sum[b] * 0x1p-48;
	return sums;
}

/* Checks that the test can distinguish an exact sum from others. */
void
ScatteredRows::check_order_matters() const
{
	double up = 0, down = 0;
	size_t n = x.in.size();

	for (size_t i = 0; i < n; i++)
	{
		up += (int64_t) bins.in[i].lo == nbins / 2 ? as_double(x.in[i].lo) : 0;
		down += (int64_t) bins.in[n - 1 - i].lo == nbins / 2 ? as_double(x.in[n - 1 - i].lo) : 0;
	}
	CHECK(up != down, "the order of rows does not matter to plain sums of the hot bin");
}

/* Updates empty states once, and returns the bytes of all slots' states. */
static std::vector<std::vector<char>>
scattered_states(const ScatteredRows &rows, const std::vector<SlotCase> &slots,
				 GpuaggHistStrategy strategy)
{
	HistActual actual(slots, rows.nbins);
	GpuaggHist h = GpuaggHist();
	std::vector<std::vector<char>> states;

	h.bins.kind = GPUAGG_BIN_INDEX;
	h.bins.ncolumns = 1;
	h.bins.column[0] = rows.bins.get();
	h.bins.nbins = rows.nbins;
	h.nslots = (int) slots.size();
	h.nrows = (int64_t) rows.x.in.size();
	h.strategy = strategy;
	for (size_t s = 0; s < slots.size(); s++)
	{
		h.slot[s].op = slots[s].op;
		h.slot[s].x = slots[s].op == MONOID_COUNT ? GpuaggColumn() :
			slots[s].type == GPUAGG_VALUE_F32     ? rows.single.get() :
													rows.x.get();
		if (slots[s].op == MONOID_REGR_F64)
			h.slot[s].y = rows.y.get();
	}
	actual.attach(h);
	hist_update(h);
	for (size_t s = 0; s < slots.size(); s++)
		states.push_back(actual.states[s]->take());
	return states;
}

/* Checks that the states of a slot are exact sums, rounded once. */
static void
check_exact(const ScatteredRows &rows, const SlotCase &slot, const std::vector<char> &got,
			int strategy)
{
	std::vector<double> sums;

	if (slot.op != MONOID_SUM_F64 && slot.op != MONOID_SUM_F32)
		return;
	sums = rows.exact_sums(slot.type == GPUAGG_VALUE_F32 ? rows.single : rows.x);
	for (int64_t b = 0; b < rows.nbins; b++)
	{
		double d;
		float f;

		if (slot.op == MONOID_SUM_F32)
		{
			memcpy(&f, &got[4 * b], 4);
			d = f;
			sums[b] = (float) sums[b];
		}
		else
			memcpy(&d, &got[8 * b], 8);
		if (d == sums[b])
			continue;
		CHECK(false, "%s, strategy %d, %ld bins: bin %ld has the sum %.17g, the exact one is %.17g",
			  gpuagg_monoids[slot.op].name, strategy, (long) rows.nbins, (long) b, d, sums[b]);
		return;
	}
}

/*
 * Float sums and moments have the same bits in ten runs. Deviations may differ between strategies.
 * Sums may not, as they are exact before they are rounded.
 */
GPU_TEST(hist_repeatable)
{
	const size_t n = gpu_test_quick() ? 20000 : 400000;
	const int rounds = gpu_test_quick() ? 2 : 10;
	const std::vector<SlotCase> sets[] = {{sum},   {count, sum}, {sum_single},        {single},
										  {accum}, {regr},       {sum, single, accum}};

	for (int64_t nbins : {1000L, 300000L})
	{
		ScatteredRows rows(n, nbins, 7 + nbins);

		if (nbins > 1000 && gpu_test_quick())
			break;
		rows.check_order_matters();
		for (const auto &slots : sets)
			for (GpuaggHistStrategy strategy : {GPUAGG_HIST_SHARED, GPUAGG_HIST_PARTITION,
												GPUAGG_HIST_EXCHANGE, GPUAGG_HIST_AUTO})
			{
				std::vector<std::vector<char>> first;

				/* hundreds of passes */
				if (nbins > 1000 && strategy == GPUAGG_HIST_SHARED &&
					(slots.size() > 1 || slots[0].op != MONOID_SUM_F64))
					continue;
				first = scattered_states(rows, slots, strategy);
				for (size_t s = 0; s < slots.size(); s++)
					check_exact(rows, slots[s], first[s], strategy);
				for (int round = 1; round < rounds; round++)
				{
					std::vector<std::vector<char>> next = scattered_states(rows, slots, strategy);

					for (size_t s = 0; s < slots.size(); s++)
					{
						int64_t bad = first_difference(slots[s].op, first[s], next[s]);
						size_t at = bad < 0 ? 0 : bad * gpuagg_monoids[slots[s].op].state_size;

						CHECK(bad < 0,
							  "%s, slot %zu of %zu, strategy %d, %ld bins, round %d: bin %ld: %s, "
							  "before %s",
							  gpuagg_monoids[slots[s].op].name, s, slots.size(), strategy,
							  (long) nbins, round, (long) bad,
							  state_text(slots[s].op, &next[s][at]).c_str(),
							  state_text(slots[s].op, &first[s][at]).c_str());
					}
				}
			}
	}
}

/* ---- error bits ------------------------------------------------------------------------ */

struct FloatError
{
	MonoidId op;
	double x[2], y[2];
	uint32_t errors;
};

static const FloatError float_errors[] = {
	{MONOID_SUM_F64, {1e308, 1e308}, {}, MONOID_ERR_OVERFLOW},
	{MONOID_SUM_F64, {-1e308, -1e308}, {}, MONOID_ERR_OVERFLOW},
	{MONOID_SUM_F64, {INFINITY, 1e308}, {}, 0},
	{MONOID_SUM_F64, {INFINITY, -INFINITY}, {}, 0},
	{MONOID_SUM_F64, {1e308, -1e308}, {}, 0},
	{MONOID_SUM_F32, {3e38, 3e38}, {}, MONOID_ERR_OVERFLOW},
	{MONOID_SUM_F32, {3e38, -3e38}, {}, 0},
	{MONOID_ACCUM_F64, {1e308, 1e308}, {}, MONOID_ERR_OVERFLOW},
	{MONOID_ACCUM_F64, {1e200, -1e200}, {}, MONOID_ERR_OVERFLOW},
	{MONOID_ACCUM_F64, {1e200, 1e200}, {}, 0},
	{MONOID_ACCUM_F64, {INFINITY, 1}, {}, 0},
	{MONOID_REGR_F64, {1e200, -1e200}, {1, 2}, MONOID_ERR_OVERFLOW},
	{MONOID_REGR_F64, {1, 2}, {1e200, -1e200}, MONOID_ERR_OVERFLOW},
	{MONOID_REGR_F64, {1e308, 1e308}, {1, 2}, MONOID_ERR_OVERFLOW},
	{MONOID_REGR_F64, {1e100, -1e100}, {1e100, -1e100}, 0},
	{MONOID_REGR_F64, {INFINITY, 1}, {1, NAN}, 0},
	{MONOID_PRODUCT_F64, {1e200, -1e200}, {}, MONOID_ERR_OVERFLOW},
	{MONOID_PRODUCT_F64, {1e-200, 1e-200}, {}, MONOID_ERR_UNDERFLOW},
	{MONOID_PRODUCT_F64, {0, 1e-200}, {}, 0},
	{MONOID_PRODUCT_F64, {INFINITY, 0}, {}, 0},
};

/*
 * Two factors whose product is an error, or only looks like one. One thread, warp or block takes
 * both, or different ones do. Between them are rows of the same bin or of others, or they are in
 * different batches.
 */
GPU_TEST(hist_product_errors)
{
	const size_t n = gpu_test_quick() ? 5003 : 100003;
	const size_t next_batch = 0;

	for (const FloatError &e : float_errors)
		for (int64_t nbins : {1L, 300L, 60000L, 200000L})
			for (GpuaggHistStrategy strategy : strategies)
				for (size_t apart :
					 {(size_t) 1, (size_t) 2, (size_t) 32, (size_t) 512, n, next_batch})
				{
					size_t bins = nbins < 37 ? nbins : 37,
						   second = apart * bins < n ? apart * bins : (n - 1) / bins * bins;
					std::vector<int32_t> bin(n);
					std::vector<double> x(n, 1.0);
					HistExpected expected({plain_slot(MONOID_PRODUCT_F64)}, nbins);
					HistActual actual(expected.slots, nbins);
					char what[160];

					if (e.op != MONOID_PRODUCT_F64 || (gpu_test_quick() && nbins == 60000))
						continue;
					for (size_t i = 0; i < n; i++)
						bin[i] = (int32_t) (i % bins * (nbins / bins));
					DeviceArray<int32_t> device_bin(bin);

					for (int batch = 0; batch < (apart == next_batch ? 2 : 1); batch++)
					{
						GpuaggHist h = GpuaggHist();

						x[0] = e.x[batch];
						if (apart != next_batch)
							x[second] = e.x[1];
						DeviceArray<double> device_x(x);

						h.bins.kind = GPUAGG_BIN_INDEX;
						h.bins.ncolumns = 1;
						h.bins.column[0] = {device_bin.get(), nullptr, GPUAGG_VALUE_I32};
						h.bins.nbins = nbins;
						h.nslots = 1;
						h.nrows = (int64_t) n;
						h.slot[0].op = MONOID_PRODUCT_F64;
						h.slot[0].x = {device_x.get(), nullptr, GPUAGG_VALUE_F64};
						h.strategy = strategy;
						actual.attach(h);
						hist_update(h);
						for (size_t i = 0; i < n; i++)
							expected.step(0, bin[i], Input{as_bits(x[i]), 0});
					}
					expected.errors[0] = e.errors;
					snprintf(what, sizeof(what),
							 "%g and %g, %zu rows of the bin apart, strategy %d", e.x[0], e.x[1],
							 apart, strategy);
					actual.check(expected, what);
				}
}

/*
 * Errors of the operators are reported in the status. Two rows in one bin cause the error; others
 * are in neighbouring bins.
 */
GPU_TEST(hist_float_errors)
{
	for (const FloatError &e : float_errors)
		for (GpuaggHistStrategy strategy : strategies)
		{
			std::vector<int32_t> bins = {0, 1, 1, 2, 0, 2};
			std::vector<double> x = {1, e.x[0], e.x[1], -1, 2, 0.5},
								y = {2, e.y[0], e.y[1], 3, -1, 1};
			DeviceArray<int32_t> device_bins(bins);
			DeviceArray<double> device_x(x), device_y(y);
			DeviceArray<float> device_single(std::vector<float>(x.begin(), x.end()));
			DeviceArray<char> states(3 * gpuagg_monoids[e.op].state_size);
			DeviceArray<GpuaggHistStatus> status(1);
			GpuaggColumn in = {device_x.get(), nullptr, GPUAGG_VALUE_F64},
						 second = {device_y.get(), nullptr, GPUAGG_VALUE_F64};

			if (e.op == MONOID_SUM_F32)
				in = {device_single.get(), nullptr, GPUAGG_VALUE_F32};
			update_one_batch(e.op, {device_bins.get(), nullptr, GPUAGG_VALUE_I32}, in, bins.size(),
							 3, states.get(), status.get(), strategy,
							 e.op == MONOID_REGR_F64 ? second : GpuaggColumn());
			CHECK(status.take()[0].errors[0] == e.errors,
				  "%s of (%g, %g) and (%g, %g), strategy %d: error bits %u, expected %u",
				  gpuagg_monoids[e.op].name, e.x[0], e.y[0], e.x[1], e.y[1], strategy,
				  status.take()[0].errors[0], e.errors);
		}
}
