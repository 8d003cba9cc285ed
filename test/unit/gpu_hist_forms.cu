/*
 * gpu_hist_forms.cu
 *	  Tests which form a histogram call takes (gpuagg_hist_choose), and data for which only some
 *	  forms are critical: the extreme integers, pairs of 64-bit values, up to sixteen slots,
 *	  batches by different strategies, more than 2^31 rows. Reference: the CPU's operators
 *	  (gpu_hist_run.h).
 */
#include <algorithm>

#include "gpu_hist_run.h"

/* ---- rows with an index ----------------------------------------------------------------- */

struct IndexedRows
{
	Column keys;
	std::vector<int32_t> bin;

	/* With skew, half of the rows are in one bin. */
	IndexedRows(Random &r, size_t n, int64_t nbins, bool skew) : bin(n)
	{
		fill_column(keys, r, GPUAGG_VALUE_I32, n, PLAIN, false);
		for (size_t i = 0; i < n; i++)
		{
			bin[i] = (int32_t) (skew && r.below(2) ? nbins / 2 : r.below(nbins));
			keys.in[i].lo = (uint64_t) bin[i];
			memcpy(&keys.bytes[i * 4], &bin[i], 4);
		}
		keys.upload(4);
	}
	void
	attach(GpuaggHist &h, int64_t nbins) const
	{
		h.bins.kind = GPUAGG_BIN_INDEX;
		h.bins.ncolumns = 1;
		h.bins.column[0] = keys.get();
		h.bins.nbins = nbins;
	}
};

struct BatchSize
{
	size_t n;
	GpuaggHistStrategy strategy;
};

/*
 * Adds batches to the same states, and checks the states. `together`: all slots but the first read
 * one column, so that one kernel must take them.
 */
static void
check_batches(const std::vector<SlotCase> &slots, int64_t nbins,
			  const std::vector<BatchSize> &batches, bool skew, uint64_t seed,
			  bool together = false)
{
	Random r(seed);
	HistExpected expected(slots, nbins);
	HistActual actual(slots, nbins);
	std::string text;

	for (const BatchSize &b : batches)
	{
		IndexedRows rows(r, b.n, nbins, skew);
		HistBatch batch(r, slots, b.n);
		GpuaggHist h = GpuaggHist();

		rows.attach(h, nbins);
		batch.attach(h);
		for (size_t s = 2; together && s < slots.size(); s++)
		{
			batch.x[s].in = batch.x[1].in;
			h.slot[s].x = h.slot[1].x;
		}
		batch.expect(expected, rows.bin);
		h.strategy = b.strategy;
		actual.attach(h);
		if (together)
		{
			GpuaggHistChoice choice;

			STATUS_MUST(gpuagg_hist_choose(&h, &choice));
			CHECK(choice.together, "%zu slots of one column are not taken in one kernel",
				  slots.size());
		}
		hist_update(h);
		text += std::to_string(b.n) + " rows by strategy " + std::to_string(b.strategy) + ", ";
	}
	text += std::to_string(slots.size()) + " slots" + (skew ? ", half of the rows in a bin" : "");
	actual.check(expected, text.c_str());
}

/* ---- the choice of a form ---------------------------------------------------------------- */

enum ChoiceBins
{
	SIMPLE,       /* an index */
	SIMPLE_RANGE, /* an int32 key without NULLs */
	RANGE_I64     /* a key that the fast kernels cannot read */
};

struct FormCase
{
	std::vector<SlotCase> slots;
	ChoiceBins bins;
	int64_t nbins;
	GpuaggHistStrategy strategy; /* the expected choice */
	int passes;                  /* expected number of passes or partitions; -1: any */
	int bin_bytes;               /* expected bytes of shared memory per bin; -1: any */
};

static const SlotCase count_slot = {MONOID_COUNT, GPUAGG_VALUE_I8},
					  narrow_slot = {MONOID_SUM_I64, GPUAGG_VALUE_I32},
					  long_slot = {MONOID_SUM_I64, GPUAGG_VALUE_I64},
					  sum_slot = {MONOID_SUM_F64, GPUAGG_VALUE_F64},
					  arg_slot = {MONOID_ARGMAX, GPUAGG_VALUE_I64, false, false,
								  PLAIN,         GPUAGG_VALUE_I64},
					  max_slot = {MONOID_MAX_I32, GPUAGG_VALUE_I32},
					  accum_slot = {MONOID_ACCUM_F64, GPUAGG_VALUE_F64},
					  least_slot = {MONOID_MIN_F64, GPUAGG_VALUE_F64},
					  greatest_slot = {MONOID_MAX_F64, GPUAGG_VALUE_F64},
					  product_slot = plain_slot(MONOID_PRODUCT_F64),
					  decimal_slot = {MONOID_MIN_DEC, GPUAGG_VALUE_I128};

/*
 * Returns calls with the form expected on a device with 231,424 bytes (57,856 words) of shared
 * memory for bins. A sum of int32 takes two words, or one that overflows into the state. A sum of
 * doubles takes five words, or three, or four with EXCHANGE. A maximum takes one word.
 */
static std::vector<FormCase>
form_cases()
{
	const GpuaggHistStrategy shared = GPUAGG_HIST_SHARED, partition = GPUAGG_HIST_PARTITION,
							 exchange = GPUAGG_HIST_EXCHANGE, global = GPUAGG_HIST_GLOBAL;
	const SlotCase nulls = {MONOID_COUNT, GPUAGG_VALUE_I8, true};

	return {
		/* counts: a word per bin, then a byte, then partitions */
		{{count_slot}, SIMPLE, 31, shared, 1, 4},
		{{count_slot}, SIMPLE, 57856, shared, 1, 4},
		{{count_slot}, SIMPLE, 57857, shared, 1, 1},
		{{count_slot}, SIMPLE_RANGE, 231424, shared, 1, 1},
		{{count_slot}, SIMPLE, 231425, shared, 2, 1},
		{{count_slot}, SIMPLE, 925696, shared, 4, 1},
		{{count_slot}, SIMPLE, 925697, partition, 227, 4},
		/*
		 * with bytes, rows cannot be left out and bins cannot be computed; partitions and exchanges
		 * have the bins computed before
		 */
		{{nulls}, SIMPLE, 57857, shared, 2, 4},
		{{nulls}, SIMPLE, 231424, shared, 4, 4},
		{{nulls}, SIMPLE, 231425, partition, 227, 4},
		{{count_slot}, RANGE_I64, 231424, shared, 4, 4},
		/*
		 * two words, then one that overflows, if that takes one pass or saves passes, then
		 * partitions
		 */
		{{narrow_slot}, SIMPLE, 28928, shared, 1, 8},
		{{narrow_slot}, SIMPLE, 28929, shared, 1, 4},
		{{narrow_slot}, SIMPLE_RANGE, 57857, shared, 2, 4},
		{{narrow_slot}, SIMPLE, 173568, shared, 3, 4},
		{{narrow_slot}, SIMPLE, 173569, partition, 170, 8},
		/* a chain, or three digits that overflow into the state */
		{{sum_slot}, SIMPLE, 14464, shared, 1, 16},
		{{sum_slot}, SIMPLE, 14465, shared, 1, 12},
		{{sum_slot}, SIMPLE, 19285, shared, 2, 16},
		{{sum_slot}, SIMPLE, 28929, shared, 2, 12},
		{{sum_slot}, SIMPLE, 57852, shared, 3, 12},
		{{sum_slot}, SIMPLE, 57853, exchange, 1, 16},
		{{sum_slot}, RANGE_I64, 57853, exchange, 1, 16},
		{{long_slot}, SIMPLE, 100000, exchange, 1, 8},
		{{count_slot, sum_slot}, SIMPLE, 11570, shared, 1, 20},
		{{count_slot, sum_slot}, RANGE_I64, 11571, shared, 1, 16},
		{{count_slot, sum_slot}, SIMPLE, 1000000, exchange, 1, 20},
		{{count_slot, sum_slot}, SIMPLE, 5000000, partition, -1, 20},
		{{count_slot, sum_slot, sum_slot}, SIMPLE, 1000000, partition, -1, -1},
		{{max_slot}, SIMPLE, 115712, shared, 2, 4},
		{{max_slot}, RANGE_I64, 173568, shared, 3, 4},
		{{max_slot}, RANGE_I64, 173569, partition, -1, 4},
		/*
		 * deviations with wide windows, then with words that overflow, then with a count that has
		 * no word
		 */
		{{accum_slot}, SIMPLE, 3788, shared, 1, 60},
		{{accum_slot}, SIMPLE, 4058, shared, 1, 56},
		{{accum_slot}, SIMPLE, 5682, shared, 1, 40},
		{{count_slot, least_slot, greatest_slot, accum_slot}, SIMPLE, 3788, shared, 1, 60},
		{{count_slot, least_slot, greatest_slot, accum_slot}, SIMPLE, 4058, shared, 1, 56},
		{{count_slot, least_slot, greatest_slot, accum_slot}, SIMPLE, 4059, shared, 2, -1},
		{{count_slot, least_slot, greatest_slot, accum_slot}, RANGE_I64, 4058, shared, 2, -1},
		/* the state itself in shared memory */
		{{product_slot}, SIMPLE, 28928, shared, 1, 8},
		{{product_slot}, SIMPLE, 28929, shared, 2, 8},
		{{product_slot}, SIMPLE_RANGE, 86784, shared, 3, 8},
		{{product_slot}, SIMPLE, 86785, partition, 170, 8},
		{{count_slot, product_slot}, SIMPLE, 1000, shared, 1, 12},
		/* pairs with locks */
		{{arg_slot}, SIMPLE, 1000, shared, 1, 16},
		{{arg_slot}, RANGE_I64, 14208, shared, 1, 16},
		{{arg_slot}, SIMPLE, 14209, global, -1, 0},
		/*
		 * no form in shared memory; as one of several slots, such an operator changes its states
		 * directly
		 */
		{{arg_slot, decimal_slot, count_slot}, SIMPLE, 1000, shared, 1, 4},
		{{arg_slot, decimal_slot}, SIMPLE, 1000, global, -1, 0},
		{{decimal_slot, count_slot}, SIMPLE, 1000, shared, 1, 4},
		/* more partitions than a tile can count */
		{{sum_slot}, SIMPLE, 2000000000, global, -1, -1},
	};
}

/* Makes the bins of a case from a column of keys. */
static void
set_bins(GpuaggHist &h, ChoiceBins bins, int64_t nbins, const void *keys)
{
	h.bins = GpuaggBins();
	h.bins.kind = bins == SIMPLE ? GPUAGG_BIN_INDEX : GPUAGG_BIN_RANGE;
	h.bins.ncolumns = 1;
	h.bins.column[0] = {keys, nullptr, bins == RANGE_I64 ? GPUAGG_VALUE_I64 : GPUAGG_VALUE_I32};
	h.bins.extent[0] = h.bins.nbins = nbins;
}

/* AUTO chooses the expected form. A forced strategy is used. */
GPU_TEST(hist_choice)
{
	const DeviceFacts *facts;
	DeviceArray<uint64_t> columns(3 * 64);
	DeviceArray<GpuaggHistStatus> status(1);
	GpuaggHistChoice choice;

	STATUS_MUST(gpuagg_device_facts(&facts));
	for (const FormCase &f : form_cases())
	{
		GpuaggHist h = GpuaggHist();

		/* no kernel runs: the columns only need different addresses */
		set_bins(h, f.bins, f.nbins, columns.get());
		h.nslots = (int) f.slots.size();
		h.nrows = 50000000;
		h.status = status.get();
		for (int s = 0; s < h.nslots; s++)
		{
			h.slot[s].op = f.slots[s].op;
			h.slot[s].x = {columns.get() + 64,
						   f.slots[s].nulls ? (const uint8_t *) (columns.get() + 128) : nullptr,
						   f.slots[s].type};
			if (f.slots[s].second != GPUAGG_VALUE_NATIVE)
				h.slot[s].y = {columns.get() + 64, nullptr, f.slots[s].second};
			h.slot[s].states = columns.get();
		}
		STATUS_MUST(gpuagg_hist_choose(&h, &choice));
		/* the numbers are for an H100 or H200 */
		if (facts->smem_per_block == 232448 && facts->sms >= 132)
			CHECK(choice.strategy == f.strategy && (f.passes < 0 || choice.passes == f.passes) &&
					  (f.bin_bytes < 0 || choice.bin_bytes == f.bin_bytes),
				  "%s and %d more, bins %d, %ld of them: strategy %d, %d passes, %d bytes a bin; "
				  "expected %d, %d, %d",
				  gpuagg_monoids[f.slots[0].op].name, h.nslots - 1, f.bins, (long) f.nbins,
				  choice.strategy, choice.passes, choice.bin_bytes, f.strategy, f.passes,
				  f.bin_bytes);
		if (f.nbins > 1000000 || f.strategy == GPUAGG_HIST_GLOBAL || f.slots[0].op == MONOID_ARGMAX)
			continue;
		for (GpuaggHistStrategy strategy :
			 {GPUAGG_HIST_SHARED, GPUAGG_HIST_PARTITION, GPUAGG_HIST_GLOBAL})
		{
			h.strategy = strategy;
			STATUS_MUST(gpuagg_hist_choose(&h, &choice));
			CHECK(choice.strategy == strategy, "%s, %ld bins: strategy %d instead of %d",
				  gpuagg_monoids[f.slots[0].op].name, (long) f.nbins, choice.strategy, strategy);
		}
	}
}

/* The same numbers of bins with rows: they are the last and the first of each form. */
GPU_TEST(hist_form_edges)
{
	const size_t n = gpu_test_quick() ? 2003 : 50021;
	uint64_t seed = 8000;

	for (const FormCase &f : form_cases())
	{
		if (f.bins != SIMPLE || f.nbins > (gpu_test_quick() ? 60000 : 10000000))
			continue;
		check_batches(f.slots, f.nbins, {{n, GPUAGG_HIST_AUTO}, {n / 7, GPUAGG_HIST_AUTO}}, true,
					  seed++);
	}
}

/* ---- extreme integers ------------------------------------------------------------------- */

/*
 * Columns that only have the least and greatest values, 0 and their neighbours. 64-bit sums wrap
 * like the operator's, 128-bit sums and sums of squares are exact, and an argmax of least keys is a
 * row. There are no error bits.
 */
GPU_TEST(hist_integer_edges)
{
	const size_t n = gpu_test_quick() ? 1003 : 7001;
	const MonoidId ops[] = {MONOID_SUM_I64, MONOID_SUM_I128, MONOID_SUMSQ_I128, MONOID_SUMSQ_I192,
							MONOID_MIN_I32, MONOID_MAX_I32,  MONOID_MIN_I64,    MONOID_MAX_I64,
							MONOID_MIN_DEC, MONOID_MAX_DEC,  MONOID_BIT_AND,    MONOID_BIT_OR,
							MONOID_BIT_XOR, MONOID_ARGMAX,   MONOID_ARGMIN};
	const GpuaggValueType types[] = {GPUAGG_VALUE_I8, GPUAGG_VALUE_I16, GPUAGG_VALUE_I32,
									 GPUAGG_VALUE_I64, GPUAGG_VALUE_I128};
	uint64_t seed = 9000;

	for (MonoidId op : ops)
		for (GpuaggValueType type : types)
		{
			GpuaggValueType own = own_type(op);
			SlotCase slot = {op, type, false, false, EDGES};

			if (size_of(type) > size_of(own))
				continue;
			if (has_pair_input(op))
				slot.second = type;
			for (int64_t nbins : {1L, 500L, 60000L})
				for (GpuaggHistStrategy strategy : strategies)
				{
					bool global = strategy == GPUAGG_HIST_GLOBAL;
					/* fewer rows that wait for each other */
					size_t rows = nbins == 1 && global ? n / 10 : n;

					if (nbins > 500 &&
						(gpu_test_quick() || global || strategy == GPUAGG_HIST_PARTITION))
						continue;
					check_batches({slot}, nbins, {{rows, strategy}, {rows / 2, strategy}},
								  nbins > 1 && !global, seed++);
				}
		}
}

/* A sum and extremes of one column in one kernel. */
GPU_TEST(hist_together)
{
	const size_t n = gpu_test_quick() ? 5003 : 300007;
	const SlotCase count = {MONOID_COUNT, GPUAGG_VALUE_I8};
	const struct
	{
		GpuaggValueType type;
		MonoidId op[3];
	} cases[] = {{GPUAGG_VALUE_I32, {MONOID_SUM_I64, MONOID_MIN_I32, MONOID_MAX_I32}},
				 {GPUAGG_VALUE_I32, {MONOID_MAX_I32, MONOID_SUM_I64, MONOID_MIN_I32}},
				 {GPUAGG_VALUE_I64, {MONOID_MIN_I64, MONOID_MAX_I64, MONOID_SUM_I128}},
				 {GPUAGG_VALUE_I64, {MONOID_SUM_DEC, MONOID_MIN_DEC, MONOID_MAX_DEC}},
				 {GPUAGG_VALUE_F64, {MONOID_SUM_F64, MONOID_MIN_F64, MONOID_MAX_F64}},
				 {GPUAGG_VALUE_F64, {MONOID_MAX_F64, MONOID_ACCUM_F64, MONOID_MIN_F64}}};
	uint64_t seed = 9500;

	for (const auto &c : cases)
		for (int64_t nbins : {1L, 4L, 1000L, 2500L, 4058L})
			for (bool edges : {false, true})
			{
				Spread spread = edges && c.type != GPUAGG_VALUE_F64 ? EDGES : PLAIN;

				check_batches({count,
							   {c.op[0], c.type, false, false, spread},
							   {c.op[1], c.type, false, false, spread},
							   {c.op[2], c.type, false, false, spread}},
							  nbins, {{n, GPUAGG_HIST_AUTO}, {n / 7, GPUAGG_HIST_SHARED}}, edges,
							  seed++, true);
				check_batches({count,
							   {c.op[0], c.type, false, false, spread},
							   {c.op[2], c.type, false, false, spread}},
							  nbins, {{n, GPUAGG_HIST_AUTO}}, edges, seed++, true);
			}
}

/* The same value in all rows, so that sums become as large as possible, positive or negative. */
GPU_TEST(hist_integer_sums)
{
	const size_t n = gpu_test_quick() ? 5003 : 300007;
	const MonoidId ops[] = {MONOID_SUM_I64, MONOID_SUM_I128, MONOID_SUMSQ_I192};

	for (MonoidId op : ops)
		for (int64_t value :
			 {INT64_MIN, INT64_MAX, (int64_t) -1, (int64_t) INT32_MIN, (int64_t) INT32_MAX})
			for (GpuaggHistStrategy strategy :
				 {GPUAGG_HIST_SHARED, GPUAGG_HIST_PARTITION, GPUAGG_HIST_AUTO})
				for (int64_t nbins : {1L, 3L})
				{
					bool fits = value >= INT32_MIN && value <= INT32_MAX;
					std::vector<int64_t> wide(n, value);
					std::vector<int32_t> narrow(n, (int32_t) value), bin(n);
					HistExpected expected({{op, fits ? GPUAGG_VALUE_I32 : GPUAGG_VALUE_I64}},
										  nbins);

					for (size_t i = 0; i < n; i++)
					{
						bin[i] = (int32_t) (i % 7 % nbins);
						expected.step(0, bin[i], Input{(uint64_t) value, 0});
					}
					DeviceArray<int32_t> device_bin(bin), device_narrow(narrow);
					DeviceArray<int64_t> device_wide(wide);
					HistActual actual(expected.slots, nbins);
					GpuaggColumn x = {device_wide.get(), nullptr, GPUAGG_VALUE_I64};
					char what[120];

					if (fits)
						x = {device_narrow.get(), nullptr, GPUAGG_VALUE_I32};
					update_one_batch(op, {device_bin.get(), nullptr, GPUAGG_VALUE_I32}, x, n, nbins,
									 actual.states[0]->get(), actual.status.get(), strategy);
					snprintf(what, sizeof(what), "%zu times %ld, strategy %d", n, (long) value,
							 strategy);
					actual.check(expected, what);
				}
}

/*
 * A sum of decimals that exceeds 128 bits sets an error bit. Each batch keeps the limit that the
 * caller has to keep. The third one exceeds the range, with either sign.
 */
GPU_TEST(hist_decimal_overflow)
{
	const gpuagg_i128 most = ((gpuagg_i128) 1 << 126) - 1;

	for (GpuaggHistStrategy strategy : strategies)
		for (int sign : {1, -1})
		{
			const int64_t nbins = 3;
			std::vector<int32_t> bins = {1};
			std::vector<Input> values(1);
			DeviceArray<int32_t> device_bins(bins);
			HistExpected expected({{MONOID_SUM_DEC, GPUAGG_VALUE_I128}}, nbins);
			HistActual actual(expected.slots, nbins);
			char what[80];

			values[0].lo = (uint64_t) (gpuagg_u128) (sign * most);
			values[0].hi = (uint64_t) ((gpuagg_u128) (sign * most) >> 64);
			DeviceArray<Input> device_values(values);

			for (int batch = 0; batch < 3; batch++)
			{
				GpuaggHist h = GpuaggHist();

				h.bins.kind = GPUAGG_BIN_INDEX;
				h.bins.ncolumns = 1;
				h.bins.column[0] = {device_bins.get(), nullptr, GPUAGG_VALUE_I32};
				h.bins.nbins = nbins;
				h.nslots = 1;
				h.nrows = 1;
				h.slot[0].op = MONOID_SUM_DEC;
				h.slot[0].x = {device_values.get(), nullptr, GPUAGG_VALUE_I128};
				h.strategy = strategy;
				actual.attach(h);
				hist_update(h);
				expected.step(0, 1, values[0]);
				expected.errors[0] = batch == 2 ? MONOID_ERR_INT_OVERFLOW : 0;
				snprintf(what, sizeof(what), "sign %d, strategy %d, batch %d", sign, strategy,
						 batch);
				actual.check(expected, what);
			}
		}
}

/* ---- pairs, many slots, many batches ------------------------------------------------------ */

/* Argmax and argmin with keys and values of all widths. */
GPU_TEST(hist_arg_pairs)
{
	const size_t n = gpu_test_quick() ? 1003 : 3001;
	uint64_t seed = 10000;

	for (MonoidId op : {MONOID_ARGMAX, MONOID_ARGMIN})
		for (int spread : {PLAIN, EXTREME, EDGES})
			for (int nulls = 0; nulls < 4; nulls++)
			{
				bool first = nulls & 1, second = nulls & 2;
				const SlotCase cases[] = {
					{op, GPUAGG_VALUE_I64, first, true, (Spread) spread, GPUAGG_VALUE_I64, second},
					{op, GPUAGG_VALUE_I32, first, false, (Spread) spread, GPUAGG_VALUE_I32, second},
					{op, GPUAGG_VALUE_I16, first, false, (Spread) spread, GPUAGG_VALUE_I8, second},
				};

				for (const SlotCase &c : cases)
					for (GpuaggHistStrategy strategy : strategies)
						check_batches({c}, seed % 2 ? 300 : 9000,
									  {{n, strategy}, {n / 3, strategy}}, false, seed),
							seed++;
				/* together with slots that have forms in shared memory */
				for (GpuaggHistStrategy strategy : strategies)
					check_batches({cases[0], sum_slot, count_slot, cases[2]}, 700, {{n, strategy}},
								  false, seed++);
			}
}

/* Nine to sixteen slots. */
GPU_TEST(hist_sixteen_slots)
{
	const size_t n = gpu_test_quick() ? 1003 : 8009;
	std::vector<SlotCase> all;
	uint64_t seed = 11000;

	for (int op = 0; op < MONOID_COUNT_OF_IDS; op++)
		if (histograms_support(op))
		{
			SlotCase slot = plain_slot((MonoidId) op);

			slot.nulls = op % 3 == 0;
			slot.filter = op % 4 == 1;
			all.push_back(slot);
		}
	for (size_t slots : {9, 12, 13, GPUAGG_MAX_SLOTS})
		for (int64_t nbins : {200L, 3000L, 100001L})
			for (GpuaggHistStrategy strategy : strategies)
			{
				std::vector<SlotCase> some;

				/* hundreds of passes */
				if (nbins > 3000 && (strategy == GPUAGG_HIST_SHARED || gpu_test_quick()))
					continue;
				for (size_t s = 0; s < slots; s++)
				{
					SlotCase slot = all[(seed + 5 * s) % all.size()];

					/*
					 * every second call has no NULLs and filters, so that partitions can move all
					 * columns
					 */
					slot.nulls = slot.nulls && seed % 2;
					slot.filter = slot.filter && seed % 2;
					some.push_back(slot);
				}
				check_batches(some, nbins, {{n, strategy}}, strategy != GPUAGG_HIST_GLOBAL, seed++);
			}
	/* the same operator sixteen times, each with its own column */
	for (GpuaggHistStrategy strategy : strategies)
		check_batches(std::vector<SlotCase>(16, narrow_slot), 1000, {{n, strategy}}, false, seed++);
}

/*
 * Columns of all widths that are moved with their rows: eight of them, then nine, which are more
 * than a partition moves. Partitions in one step and in two.
 */
GPU_TEST(hist_moved_columns)
{
	const size_t n = gpu_test_quick() ? 2003 : 50021;
	std::vector<SlotCase> slots = {
		count_slot,  {MONOID_SUM_I64, GPUAGG_VALUE_I8},   {MONOID_SUM_I64, GPUAGG_VALUE_I16},
		narrow_slot, {MONOID_SUM_I128, GPUAGG_VALUE_I64}, plain_slot(MONOID_SUM_F32),
		sum_slot,    plain_slot(MONOID_SUM_DEC),          plain_slot(MONOID_MIN_F64)};
	uint64_t seed = 13000;

	for (int columns = 8; columns < 10; columns++)
	{
		for (int64_t nbins : {1L, 3000L, 1000001L})
			if (nbins <= (gpu_test_quick() ? 3000 : 1000001))
				check_batches(slots, nbins, {{n, GPUAGG_HIST_PARTITION}}, false, seed++);
		slots.push_back({MONOID_MAX_I64, GPUAGG_VALUE_I64});
	}
}

/*
 * Products with other slots, of columns that a partition moves and of others. A bin has few rows,
 * several rows in a warp, or so many that several blocks share its partition.
 */
GPU_TEST(hist_products)
{
	const size_t n = gpu_test_rows(300007, 40009);
	const SlotCase some = {MONOID_PRODUCT_F64, GPUAGG_VALUE_F32, true, true, FACTORS};
	uint64_t seed = 14000;

	for (const std::vector<SlotCase> &slots :
		 {std::vector<SlotCase>{product_slot},
		  std::vector<SlotCase>{count_slot, product_slot, some, product_slot}})
		for (int64_t nbins : {1L, 700L, 20000L, 100001L})
			for (GpuaggHistStrategy strategy : strategies)
				for (bool skew : {false, true})
					if (!gpu_test_quick() || nbins == 700 || strategy == GPUAGG_HIST_PARTITION)
						check_batches(slots, nbins, {{n, strategy}, {n / 7, strategy}}, skew,
									  seed++);
}

/* Batches of different sizes by different strategies update the same states. */
GPU_TEST(hist_batches)
{
	const bool quick = gpu_test_quick();
	const size_t large = quick ? 5003 : 60011;
	const GpuaggHistStrategy shared = GPUAGG_HIST_SHARED, partition = GPUAGG_HIST_PARTITION,
							 global = GPUAGG_HIST_GLOBAL, automatic = GPUAGG_HIST_AUTO;
	const std::vector<BatchSize> series[] = {
		{{large, shared}, {1, partition}, {777, global}, {large / 3, partition}},
		{{5, partition}, {large, automatic}, {0, shared}, {33, shared}},
		{{1000, global}, {large, partition}, {4097, shared}, {31, automatic}},
	};
	const SlotCase extreme = {MONOID_SUM_F64, GPUAGG_VALUE_F64, false, false, EXTREME};
	const std::vector<SlotCase> sets[] = {
		{count_slot},
		{narrow_slot},
		{count_slot, sum_slot},
		{extreme},
		{accum_slot},
		{plain_slot(MONOID_REGR_F64)},
		{max_slot},
		{product_slot},
		{plain_slot(MONOID_SUM_F32), arg_slot},
		{plain_slot(MONOID_SUM_DEC), plain_slot(MONOID_BIT_AND), count_slot}};
	uint64_t seed = 12000;

	for (const auto &batches : series)
		for (const auto &slots : sets)
			for (int64_t nbins : {100L, 20000L, 200000L})
				if (nbins <= (quick ? 100 : 200000))
					check_batches(slots, nbins, batches, true, seed++);
}

/* ---- more than 2^31 rows ------------------------------------------------------------------ */

/*
 * Every 32nd row has one of the bins in turn, all others are in the hot bin. The value depends on
 * the bin.
 */
#define BIG_STEP 7919
#define BIG_HOT_VALUE (-125)

static __host__ __device__ int8_t
big_value(int32_t bin)
{
	return (int8_t) (bin % 251 - 125);
}

static __global__ void
big_rows(int32_t *bins, int8_t *values, int64_t n, int32_t nbins, int32_t hot)
{
	for (int64_t i = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; i < n;
		 i += (int64_t) gridDim.x * blockDim.x)
	{
		int32_t bin = i % 32 == 31 ? (int32_t) (i / 32 * BIG_STEP % nbins) : hot;

		bins[i] = bin;
		values[i] = i % 32 == 31 ? big_value(bin) : BIG_HOT_VALUE;
	}
}

/* Counts and sums of int8. The hot bin's count is above 2^31, and its sum below -2^38. */
GPU_TEST(hist_beyond_2_31)
{
	const int64_t n = ((int64_t) 1 << 31) + ((int64_t) 1 << 27) + 12345;
	const int64_t scattered = n / 32;
	/* the columns, and a partition of them */
	const size_t need = (size_t) n * 5 + (size_t) n * 4;

	if (gpu_test_quick())
	{
		gpu_test_skip("--quick has no time for so many rows");
		return;
	}
	if (!gpu_test_has_memory(need))
		return;
	DeviceArray<int32_t> bins(n);
	DeviceArray<int8_t> values(n);

	for (int64_t nbins : {1000L, 200003L})
	{
		int32_t hot = (int32_t) (nbins / 2);
		std::vector<int64_t> counts(nbins, 0), sums(nbins);

		big_rows<<<2048, 256>>>(bins.get(), values.get(), n, (int32_t) nbins, hot);
		CUDA_MUST(cudaGetLastError());
		for (int64_t k = 0; k < nbins; k++)
			counts[k * BIG_STEP % nbins] = scattered / nbins + (k < scattered % nbins);
		for (int64_t b = 0; b < nbins; b++)
			sums[b] = counts[b] * big_value((int32_t) b);
		counts[hot] += n - scattered;
		sums[hot] += (n - scattered) * BIG_HOT_VALUE;
		for (GpuaggHistStrategy strategy : {GPUAGG_HIST_AUTO, GPUAGG_HIST_PARTITION})
			for (MonoidId op : {MONOID_COUNT, MONOID_SUM_I64})
			{
				const std::vector<int64_t> &expect = op == MONOID_COUNT ? counts : sums;
				DeviceArray<int64_t> states(nbins);
				DeviceArray<GpuaggHistStatus> status(1);
				int64_t bad = -1;

				update_one_batch(op, {bins.get(), nullptr, GPUAGG_VALUE_I32},
								 {values.get(), nullptr, GPUAGG_VALUE_I8}, (size_t) n, nbins,
								 states.get(), status.get(), strategy);
				std::vector<int64_t> got = states.take();

				for (int64_t b = 0; b < nbins && bad < 0; b++)
					if (got[b] != expect[b])
						bad = b;
				CHECK(
					bad < 0,
					"%s, %ld bins, strategy %d: bin %ld has %ld, expected %ld (the hot bin is %d)",
					gpuagg_monoids[op].name, (long) nbins, strategy, (long) bad,
					bad < 0 ? 0 : (long) got[bad], bad < 0 ? 0 : (long) expect[bad], hot);
				CHECK(status.take()[0].outside == 0, "%llu rows outside", status.take()[0].outside);
			}
	}
}
