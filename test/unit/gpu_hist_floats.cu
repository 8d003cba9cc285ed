/*
 * gpu_hist_floats.cu
 *	  Float sums and moments in histograms: exact where fixed point says so, the same
 *	  bits on every run, and rows outside the window, which change states one by one.
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

/* ---- exact sums -------------------------------------------------------------------- */

/* Sums of float8 by bins, in one batch. */
static std::vector<double>
sum_batch(const std::vector<int32_t> &bins, const std::vector<double> &values, int64_t nbins,
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
 * Many rows of a hot bin, so that every digit of the sums overflows: the result is the
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
				std::vector<double> got = sum_batch(bins, values, nbins, strategy);
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

/* A sum of zeros is -0 only if all of them are; of numbers that cancel out, +0. */
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
		std::vector<double> got = sum_batch(bins, values, 7, strategy);

		for (int b = 0; b < 7; b++)
			CHECK(as_bits(got[b]) == as_bits(b == 0 || b >= 5 ? -0.0 : 0.0),
				  "strategy %d, bin %d: %016lx", strategy, b, (unsigned long) as_bits(got[b]));
	}
}

/* ---- the same bits ------------------------------------------------------------------ */

/*
 * A number of 48 bits times one of twenty powers of two: 2^18 > |v|, a multiple of 2^-48.
 * That lies in the window of the narrowest sums (three digits), while doubles in another
 * order would round otherwise.
 */
static double
scattered(Random &r)
{
	return ((double) r.below((uint64_t) 1 << 48) - 0x1p47) * exp2((double) r.below(20) - 48);
}

/* Rows in bins, half of them in one. */
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

/* Rounded once; -0 for empty bins. */
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

/* Or the test would not tell an exact sum from any other. */
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

/* One update from empty states; the bytes of all slots' states. */
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

/* Where two arrays of states differ first; -1: nowhere. */
static int64_t
first_difference(MonoidId op, const std::vector<char> &a, const std::vector<char> &b)
{
	size_t size = gpuagg_monoids[op].state_size;

	if (a == b)
		return -1;
	for (size_t at = 0; at < a.size(); at += size)
		if (memcmp(&a[at], &b[at], size) != 0)
			return (int64_t) (at / size);
	return -1;
}

/* Sums are the exact ones, rounded once. */
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
		CHECK(false, "%s, strategy %d, %ld bins: bin %ld has the sum %.17g, exactly it is %.17g",
			  gpuagg_monoids[slot.op].name, strategy, (long) rows.nbins, (long) b, d, sums[b]);
		return;
	}
}

/*
 * Float sums and moments come out the same, bit for bit, ten times over.  Strategies need
 * not agree with each other on deviations, but on sums, which are exact until rounded.
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

/* ---- rows outside the window ---------------------------------------------------------- */

/*
 * Of what lies in the window, all in the hot bin, half of it negative: nothing is left of the sums.
 */
#define INSIDE_X (1.5 * 0x1p20)
#define INSIDE_Y (1.25 * 0x1p10)

/*
 * Rows at 2^-80 of the batch's maximum, which have no place in any window: alone in their
 * bins, two in a bin, and many in the hot bin, where they are whole multiples of 2^-100 so
 * that they add up exactly in any order.
 */
struct OutOfWindowRows
{
	int64_t nbins;
	int64_t hot;
	int64_t ordinary = 0; /* rows in the window */
	bool single;          /* values have 24 bits */
	Random r;
	std::vector<int32_t> bin;
	std::vector<double> x, y;
	std::vector<uint8_t> out_of_window;

	OutOfWindowRows(size_t n, int64_t bins_of, bool is_single, size_t hot_ones, uint64_t seed);
	double tiny();
	void add(int64_t b, double v, double w, bool is_out_of_window);
	void mix();
};

double
OutOfWindowRows::tiny()
{
	int bits = single ? 24 : 53;
	uint64_t m = (r.next() >> (64 - bits)) | 1 | (uint64_t) 1 << (bits - 1);

	return (r.below(2) ? -1 : 1) * ldexp((double) m, -59 - bits);
}

void
OutOfWindowRows::add(int64_t b, double v, double w, bool is_out_of_window)
{
	bin.push_back((int32_t) b);
	x.push_back(v);
	y.push_back(w);
	out_of_window.push_back(is_out_of_window);
	ordinary += !is_out_of_window;
}

/* In no order that anything could rely on. */
void
OutOfWindowRows::mix()
{
	for (size_t i = bin.size(); i > 1; i--)
	{
		size_t j = r.below(i);

		std::swap(bin[i - 1], bin[j]);
		std::swap(x[i - 1], x[j]);
		std::swap(y[i - 1], y[j]);
		std::swap(out_of_window[i - 1], out_of_window[j]);
	}
}

OutOfWindowRows::OutOfWindowRows(size_t n, int64_t bins_of, bool is_single, size_t hot_ones,
								 uint64_t seed)
	: nbins(bins_of), hot(bins_of / 2), single(is_single), r(seed)
{
	int which = 0;

	for (int64_t b = 0; b < nbins && bin.size() < n / 4; b += nbins / 500 + 1, which++)
		for (int k = 0; k < 1 + which % 2 && b != hot; k++)
			/* one of x and y is enough to keep a pair from the window */
			add(b, which % 3 == 1 ? 3.5 : tiny(), which % 3 == 2 ? 3.5 : tiny(), true);
	for (size_t i = 0; i < hot_ones; i++)
	{
		double v[2];

		for (double &d : v)
			d = ldexp((double) (r.below((uint64_t) 1 << (single ? 10 : 18)) | 1) *
						  (r.below(2) ? 1 : -1),
					  -100);
		add(hot, v[0], v[1], true);
	}
	while (bin.size() + 2 <= n)
	{
		add(hot, INSIDE_X, INSIDE_Y, false);
		add(hot, -INSIDE_X, -INSIDE_Y, false);
	}
	mix();
}

/* What n ordinary rows make of the hot bin. */
template <typename Op>
static typename Op::State
ordinary_state(int64_t n)
{
	typename Op::State s = Op::identity();
	double rows = (double) n;

	if constexpr (Op::id == MONOID_COUNT)
		s = n;
	/* numbers that cancel out */
	if constexpr (Op::id == MONOID_SUM_F64 || Op::id == MONOID_SUM_F32)
		s = 0;
	if constexpr (Op::id == MONOID_ACCUM_F64)
		s = {rows, 0, rows * (INSIDE_X * INSIDE_X)};
	if constexpr (Op::id == MONOID_REGR_F64)
		s = {rows,
			 0,
			 rows * (INSIDE_X * INSIDE_X),
			 0,
			 rows * (INSIDE_Y * INSIDE_Y),
			 rows * (INSIDE_X * INSIDE_Y)};
	return s;
}

/*
 * Out-of-window rows one by one, then the ordinary ones at once.  Where pairs meet, either order
 * gives the same bits.
 */
template <typename Op>
static void
out_of_window_states(const OutOfWindowRows &rows, std::vector<char> &bytes)
{
	typedef typename Op::State S;
	S *states;

	bytes.resize(rows.nbins * sizeof(S));
	states = (S *) bytes.data();
	for (int64_t b = 0; b < rows.nbins; b++)
		states[b] = Op::identity();
	for (size_t i = 0; i < rows.bin.size(); i++)
		if (rows.out_of_window[i])
		{
			typename Op::Input x;

			host_input(Input{as_bits(rows.x[i]), as_bits(rows.y[i])}, x);
			states[rows.bin[i]] = Op::combine(states[rows.bin[i]], Op::lift(x));
		}
	states[rows.hot] = Op::combine(states[rows.hot], ordinary_state<Op>(rows.ordinary));
}

/* The expected states of the operators that these tests use. */
static std::vector<char>
out_of_window_expected(const OutOfWindowRows &rows, MonoidId op)
{
	std::vector<char> bytes;

	switch (op)
	{
#define EXPECTED(NAME, name) \
	case MONOID_##NAME: \
		out_of_window_states<Op_##name>(rows, bytes); \
		break
		EXPECTED(COUNT, count);
		EXPECTED(SUM_F32, sum_f32);
		EXPECTED(SUM_F64, sum_f64);
		EXPECTED(ACCUM_F64, accum_f64);
		EXPECTED(REGR_F64, regr_f64);
#undef EXPECTED
		default:
			CHECK(false, "no expectation for %s", gpuagg_monoids[op].name);
	}
	return bytes;
}

/* Columns of out-of-window rows on the device. */
struct OutOfWindowColumns
{
	DeviceArray<int32_t> bin;
	DeviceArray<double> x, y;
	DeviceArray<float> single;

	explicit OutOfWindowColumns(const OutOfWindowRows &rows)
		: bin(rows.bin), x(rows.x), y(rows.y),
		  single(std::vector<float>(rows.x.begin(), rows.x.end()))
	{
	}
};

static GpuaggHist
out_of_window_update(const OutOfWindowRows &rows, const OutOfWindowColumns &columns,
					 const std::vector<SlotCase> &slots, GpuaggHistStrategy strategy)
{
	GpuaggHist h = GpuaggHist();

	h.bins.kind = GPUAGG_BIN_INDEX;
	h.bins.ncolumns = 1;
	h.bins.column[0] = {columns.bin.get(), nullptr, GPUAGG_VALUE_I32};
	h.bins.nbins = rows.nbins;
	h.nslots = (int) slots.size();
	h.nrows = (int64_t) rows.bin.size();
	h.strategy = strategy;
	for (size_t s = 0; s < slots.size(); s++)
	{
		const void *x = columns.x.get();

		if (slots[s].type == GPUAGG_VALUE_F32)
			x = columns.single.get();
		h.slot[s].op = slots[s].op;
		if (slots[s].op != MONOID_COUNT)
			h.slot[s].x = {x, nullptr, slots[s].type};
		if (slots[s].op == MONOID_REGR_F64)
			h.slot[s].y = {columns.y.get(), nullptr, GPUAGG_VALUE_F64};
	}
	return h;
}

/*
 * All bins bit for bit, the hot one too: what is in the window is zero, or so much more
 * that nothing of the out-of-window rows is left beside it.  Only where rows change states in any
 * order (GLOBAL) the hot bin's floats depend on it.
 */
static void
check_out_of_window(const OutOfWindowRows &rows, const std::vector<SlotCase> &slots,
					GpuaggHistStrategy strategy, const HistActual &actual, bool ordered)
{
	HistScale scale;

	for (size_t i = 0; i < rows.bin.size(); i++)
		if (rows.bin[i] == rows.hot)
			scale_step(MONOID_REGR_F64, scale, Input{as_bits(rows.x[i]), as_bits(rows.y[i])});
	for (size_t s = 0; s < slots.size(); s++)
	{
		MonoidId op = slots[s].op;
		size_t size = gpuagg_monoids[op].state_size;
		std::vector<char> expect = out_of_window_expected(rows, op), got = actual.states[s]->take();
		char *hot = &got[rows.hot * size];
		int64_t bad;

		if (!ordered && same_state(op, hot, &expect[rows.hot * size], &scale))
			memcpy(hot, &expect[rows.hot * size], size);
		bad = first_difference(op, got, expect);
		CHECK(bad < 0,
			  "%s of type %d, slot %zu of %zu, strategy %d, %ld bins, %zu rows: bin %ld (%s): %s, "
			  "expected %s",
			  gpuagg_monoids[op].name, slots[s].type, s, slots.size(), strategy, (long) rows.nbins,
			  rows.bin.size(), (long) bad,
			  bad == rows.hot ? "the hot one" : "of out-of-window rows alone",
			  bad < 0 ? "" : state_text(op, &got[bad * size]).c_str(),
			  bad < 0 ? "" : state_text(op, &expect[bad * size]).c_str());
		CHECK(actual.status.take()[0].errors[s] == 0, "%s: error bits %u", gpuagg_monoids[op].name,
			  actual.status.take()[0].errors[s]);
		CHECK(actual.states[s]->guards_intact(), "%s: states overrun", gpuagg_monoids[op].name);
	}
}

/* Rows at 2^-80 of the maximum come out exactly, alone, two in a bin and in the hot bin. */
GPU_TEST(hist_out_of_window_rows)
{
	const size_t n = gpu_test_quick() ? 3001 : 100003;
	const std::vector<SlotCase> sets[] = {{sum},
										  {count, sum},
										  {sum_single},
										  {single, count},
										  {accum},
										  {regr},
										  {sum, count, accum, regr}};

	for (int64_t nbins : {1L, 300L, 5000L, 40000L, 300001L})
		for (GpuaggHistStrategy strategy : strategies)
		{
			/* rows that all wait for one lock take their time */
			size_t some = strategy == GPUAGG_HIST_GLOBAL ? 2003 : n;
			uint64_t seed = 50 + (uint64_t) (nbins + strategy);
			const OutOfWindowRows rows(some, nbins, false, some / 100, seed),
				single_rows(some, nbins, true, some / 100, seed);
			const OutOfWindowColumns columns(rows), single_columns(single_rows);

			if (gpu_test_quick() && nbins > 5000)
				return;
			for (const auto &slots : sets)
			{
				bool is_single = slots[0].type == GPUAGG_VALUE_F32;
				HistActual actual(slots, nbins);
				GpuaggHist h =
					out_of_window_update(is_single ? single_rows : rows,
										 is_single ? single_columns : columns, slots, strategy);
				GpuaggHistChoice choice;

				actual.attach(h);
				hist_update(h);
				STATUS_MUST(gpuagg_hist_choose(&h, &choice));
				check_out_of_window(is_single ? single_rows : rows, slots, strategy, actual,
									choice.strategy != GPUAGG_HIST_GLOBAL);
			}
		}
}

/*
 * The same in both bins beside each boundary of partitions of 5 million bins.  States begin
 * 8 bytes after a line of the cache, so that neighbors share lines across boundaries; none
 * may be read before out-of-window rows have changed it.
 */
GPU_TEST(hist_out_of_window_boundaries)
{
	const int64_t nbins = gpu_test_quick() ? 300001 : 5000001;
	OutOfWindowRows rows(2, nbins, false, 0, 70);

	for (int64_t b = 1024; b + 1 < nbins; b += 1024)
		for (int64_t at = b - 2; at < b + 2; at++)
		{
			rows.add(at, INSIDE_X, 0, false);
			rows.add(at, -INSIDE_X, 0, false);
			rows.add(at, rows.tiny(), 0, true);
		}
	rows.mix();

	OutOfWindowColumns columns(rows);
	std::vector<char> expect_sums = out_of_window_expected(rows, MONOID_SUM_F64);

	for (const std::vector<SlotCase> &slots :
		 {std::vector<SlotCase>{sum}, std::vector<SlotCase>{sum, count}})
		for (int round = 0; round < 3; round++)
		{
			HistActual actual(slots, nbins, 8);
			GpuaggHist h = out_of_window_update(rows, columns, slots, GPUAGG_HIST_PARTITION);
			int64_t bad;

			actual.attach(h);
			hist_update(h);
			std::vector<char> got = actual.states[0]->take();

			bad = first_difference(MONOID_SUM_F64, got, expect_sums);
			CHECK(bad < 0, "%zu slots, round %d: bin %ld has %s, expected %s", slots.size(), round,
				  (long) bad, bad < 0 ? "" : state_text(MONOID_SUM_F64, &got[bad * 8]).c_str(),
				  bad < 0 ? "" : state_text(MONOID_SUM_F64, &expect_sums[bad * 8]).c_str());
		}
}

/* How rows of BinadeRows are spread over the bins. */
enum BinadeOrder
{
	BINADES_MIXED,
	BINADES_SORTED,
	BINADES_HOT,      /* nine of ten in the last bin */
	BINADES_FEW_OUT,  /* the exponent of the first bin for nearly all rows */
	BINADES_OVERFLOW, /* two rows, likely not of the sample, whose squares are infinite */
	BINADES_ORDERS
};

/*
 * The exponent of an x is its bin's, of ten over 80 binades: rows of most bins are outside the
 * window, and of a bin's rows none is small beside the others.  Every y is inside.
 */
struct BinadeRows
{
	std::vector<int32_t> bin;
	std::vector<double> x, y;

	BinadeRows(size_t n, int64_t nbins, BinadeOrder order);
};

BinadeRows::BinadeRows(size_t n, int64_t nbins, BinadeOrder order) : bin(n), x(n), y(n)
{
	Random r(n + (uint64_t) (nbins + order));

	for (size_t i = 0; i < n; i++)
	{
		bin[i] = (int32_t) (order == BINADES_SORTED                 ? i * nbins / n :
								order == BINADES_HOT && r.below(10) ? nbins - 1 :
																	  r.below(nbins));
		x[i] = ldexp(r.uniform() + 0.5,
					 order == BINADES_FEW_OUT && r.below(10000) ? 0 : bin[i] % 10 * -8);
		y[i] = r.uniform() - 0.5;
	}
	if (order == BINADES_OVERFLOW)
		for (size_t i : {n / 3, n / 3 * 2})
		{
			bin[i] = 1;
			x[i] = i == n / 3 ? 1e200 : -1e200;
		}
}

/* A slot of the test below: of x and y, or of y and x. */
struct BinadeSlot
{
	SlotCase slot;
	bool swapped = false;
};

static const std::vector<BinadeSlot> binade_sets[] = {
	{{accum}}, {{regr}}, {{count}, {accum, true}, {accum}, {sum}, {regr, true}, {regr}}};

/* Two batches of the rows, into states that are aligned to 16 bytes and no more. */
static void
check_binades(const BinadeRows &rows, int64_t nbins, BinadeOrder order,
			  const std::vector<BinadeSlot> &set)
{
	DeviceArray<int32_t> bin(rows.bin);
	DeviceArray<double> x(rows.x), y(rows.y);
	std::vector<SlotCase> slots;

	for (const BinadeSlot &b : set)
		slots.push_back(b.slot);

	HistExpected expect(slots, nbins);

	for (size_t s = 0; s < slots.size(); s++)
	{
		for (size_t i = 0; i < 2 * rows.x.size(); i++)
		{
			uint64_t one = as_bits(rows.x[i % rows.x.size()]),
					 two = as_bits(rows.y[i % rows.x.size()]);

			expect.step(s, rows.bin[i % rows.x.size()],
						set[s].swapped ? Input{two, one} : Input{one, two});
		}
		/* of x, and of pairs, which have x either way */
		if (order == BINADES_OVERFLOW &&
			(slots[s].op == MONOID_REGR_F64 ||
			 (slots[s].op == MONOID_ACCUM_F64 && !set[s].swapped)))
			expect.errors[s] = MONOID_ERR_OVERFLOW;
	}
	for (GpuaggHistStrategy strategy : strategies)
	{
		HistActual actual(slots, nbins, 16);
		GpuaggHist h = GpuaggHist();
		char what[100];

		h.bins.kind = GPUAGG_BIN_INDEX;
		h.bins.ncolumns = 1;
		h.bins.column[0] = {bin.get(), nullptr, GPUAGG_VALUE_I32};
		h.bins.nbins = nbins;
		h.nslots = (int) slots.size();
		h.nrows = (int64_t) rows.x.size();
		h.strategy = strategy;
		for (size_t s = 0; s < slots.size(); s++)
		{
			GpuaggColumn one = {x.get(), nullptr, GPUAGG_VALUE_F64},
						 two = {y.get(), nullptr, GPUAGG_VALUE_F64};

			h.slot[s].op = slots[s].op;
			h.slot[s].x = set[s].swapped ? two : one;
			h.slot[s].y = slots[s].op != MONOID_REGR_F64 ? GpuaggColumn() :
				set[s].swapped                           ? one :
														   two;
		}
		actual.attach(h);
		hist_update(h);
		hist_update(h);
		snprintf(what, sizeof(what), "strategy %d, %ld bins, order %d, %zu slots", strategy,
				 (long) nbins, order, slots.size());
		actual.check(expect, what);
	}
}

/*
 * Out-of-window rows of many blocks, whose states have copies, of some slots and not of others; in
 * few and many bins, in one, in a partition of several blocks, and where the sample may see none of
 * them.
 */
GPU_TEST(hist_out_of_window_copies)
{
	const size_t n = gpu_test_rows(100000, 24000);

	for (int64_t nbins : {10L, 300L, 5000L})
		for (int order = 0; order < BINADES_ORDERS; order++)
			for (const auto &set : binade_sets)
				if (nbins <= (int64_t) n / 16)
					check_binades(BinadeRows(n, nbins, (BinadeOrder) order), nbins,
								  (BinadeOrder) order, set);
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
 * Two factors whose product is an error, or none for all that it looks like: taken by one thread,
 * warp or block, or by several, with rows of the same bin or of others between them, or in two
 * batches.
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
 * Errors that the monoids state reach the status: two rows in a bin, others in the bins beside it.
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
