/*
 * gpu_hist_out_of_window.cu
 *	  Tests float sums and moments in histograms with out-of-window rows: values so small, compared
 *	  with the batch's maximum, that fixed point cannot represent them, so that rows change states
 *	  one by one. Reference: the CPU's operators, in an order that gives the same bits.
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

/*
 * The values of rows in the window. All are in the hot bin, and half of them are negative, so that
 * their sum is 0.
 */
#define INSIDE_X (1.5 * 0x1p20)
#define INSIDE_Y (1.25 * 0x1p10)

/*
 * Rows with values of 2^-80 of the batch's maximum, which no window contains. They are alone in
 * their bins, two in a bin, or many in the hot bin. Those in the hot bin are multiples of 2^-100,
 * so that their sums are exact in any order.
 */
struct OutOfWindowRows
{
	int64_t nbins;
	int64_t hot;
	int64_t ordinary = 0; /* number of rows in the window */
	bool single;          /* values have 24 bits */
	Random r;
	std::vector<int32_t> bin;
	std::vector<double> x, y;
	std::vector<uint8_t> out_of_window;

	OutOfWindowRows(size_t n, int64_t bins_of, bool is_single, size_t hot_ones, uint64_t seed);
	double tiny();
	void add(int64_t b, double v, double w, bool is_out_of_window);
	void shuffle();
};

/* Returns a random value of either sign, from 2^-60 up to 2^-59, with 24 or 53 bits. */
double
OutOfWindowRows::tiny()
{
	int bits = single ? 24 : 53;
	uint64_t m = (r.next() >> (64 - bits)) | 1 | (uint64_t) 1 << (bits - 1);

	return (r.below(2) ? -1 : 1) * ldexp((double) m, -59 - bits);
}

/* Appends a row with bin b, x = v and y = w. */
void
OutOfWindowRows::add(int64_t b, double v, double w, bool is_out_of_window)
{
	bin.push_back((int32_t) b);
	x.push_back(v);
	y.push_back(w);
	out_of_window.push_back(is_out_of_window);
	ordinary += !is_out_of_window;
}

/* Shuffles the rows. */
void
OutOfWindowRows::shuffle()
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
			/* one of x and y is enough to move a pair out of the window */
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
	shuffle();
}

/* Returns the state of the hot bin after n rows in the window. */
template <typename Op>
static typename Op::State
ordinary_state(int64_t n)
{
	typename Op::State s = Op::identity();
	double rows = (double) n;

	if constexpr (Op::id == MONOID_COUNT)
		s = n;
	/* the numbers cancel each other */
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
 * Computes the expected states: adds the out-of-window rows one by one, then all other rows in one
 * step. Where two such rows share a bin, both orders give the same bits.
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

/* Returns the expected states of the operators that these tests use. */
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
			CHECK(false, "there are no expected states for %s", gpuagg_monoids[op].name);
	}
	return bytes;
}

/* The columns of the rows, on the device. */
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

/* Returns a call that adds the rows to the states of all slots. */
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
 * Compares all bins bit for bit. In the hot bin, rows in the window give zero, or so much that the
 * out-of-window rows are lost by rounding. Only with GLOBAL, where rows change states in any order,
 * the hot bin's floats may differ.
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
			  bad == rows.hot ? "the hot one" : "only out-of-window rows",
			  bad < 0 ? "" : state_text(op, &got[bad * size]).c_str(),
			  bad < 0 ? "" : state_text(op, &expect[bad * size]).c_str());
		CHECK(actual.status.take()[0].errors[s] == 0, "%s: error bits %u", gpuagg_monoids[op].name,
			  actual.status.take()[0].errors[s]);
		CHECK(actual.states[s]->guards_intact(), "%s: states overrun", gpuagg_monoids[op].name);
	}
}

/* Rows at 2^-80 of the maximum are added exactly: alone, two in a bin, and in the hot bin. */
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
			/* GLOBAL has fewer rows, because they all wait for one lock */
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
 * The same in the bins on both sides of each boundary between partitions of 5 million bins. States
 * begin 8 bytes after a cache line, so that neighbours on both sides share lines. No state may be
 * read before out-of-window rows have changed it.
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
	rows.shuffle();

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

/* How the rows of BinadeRows are distributed over the bins. */
enum BinadeOrder
{
	BINADES_MIXED,
	BINADES_SORTED,
	BINADES_HOT,      /* nine of ten rows are in the last bin */
	BINADES_FEW_OUT,  /* nearly all rows have the exponent of the first bin */
	BINADES_OVERFLOW, /* two rows, which the sample probably misses, have infinite squares */
	BINADES_ORDERS
};

/*
 * The exponent of x depends on the bin: there are ten, over 80 binades. Rows of most bins are
 * outside the window, and the rows of one bin have similar magnitudes. Every y is inside.
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

/* Checks two batches of the rows. The states are aligned to only 16 bytes. */
static void
check_binade_rows(const BinadeRows &rows, int64_t nbins, BinadeOrder order,
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
		/* squares of x overflow; pairs have x in either order */
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
 * Out-of-window rows in many blocks. States of some slots have copies, those of others have not.
 * Covers few and many bins, one hot bin, a partition shared by several blocks, and rows that the
 * sample misses.
 */
GPU_TEST(hist_out_of_window_copies)
{
	const size_t n = gpu_test_rows(100000, 24000);

	for (int64_t nbins : {10L, 300L, 5000L})
		for (int order = 0; order < BINADES_ORDERS; order++)
			for (const auto &set : binade_sets)
				if (nbins <= (int64_t) n / 16)
					check_binade_rows(BinadeRows(n, nbins, (BinadeOrder) order), nbins,
									  (BinadeOrder) order, set);
}
