/*
 * gpu_hist.cu
 *	  Generalized histograms against the CPU monoids.
 *
 * Every commutative operator, strategy and kind of bins, over sizes around
 * tile edges, with NULLs, filters, extreme values, and in several batches.
 */
#include <algorithm>

#include "bins.h"
#include "gpu_hist_reference.h"

/* ---- one comparison ------------------------------------------------------------- */

struct Case
{
	std::vector<MonoidId> ops;
	GpuaggHistStrategy strategy;
	int64_t		nbins;
	size_t		n;
	int			batches;
	Spread		spread;
	bool		nulls;
	bool		filter;
	bool		narrow;			/* narrower columns than the monoids' inputs */
	bool		skew;			/* nine rows of ten in one bin */
	bool		own = false;	/* the bins are the input, too */
};

static GpuaggValueType
column_type(MonoidId op, bool narrow)
{
	GpuaggValueType t = own_type(op);

	if (!narrow)
		return t;
	if (t == GPUAGG_VALUE_I64 || t == GPUAGG_VALUE_I128)
		return GPUAGG_VALUE_I32;
	if (t == GPUAGG_VALUE_I32)
		return op == MONOID_SATADD_U24 ? t : GPUAGG_VALUE_I16;
	if (t == GPUAGG_VALUE_KV)
		return GPUAGG_VALUE_I32;	/* with the row number as payload */
	return t == GPUAGG_VALUE_F64 ? GPUAGG_VALUE_F32 : t;
}

struct Batch
{
	Column		keys;
	Column		x[GPUAGG_MAX_SLOTS];
	Column		y[GPUAGG_MAX_SLOTS];
	std::vector<uint8_t> filter;
	DeviceArray<uint8_t> *device_filter = nullptr;

	~Batch() { delete device_filter; }
};

static void
run_batch(const Case &c, Random &r, int64_t first_row, std::vector<std::vector<char>> &expect,
		  std::vector<DeviceArray<char> *> &states, GpuaggHistStatus *status)
{
	Batch		b;
	GpuaggHist	h = GpuaggHist();
	size_t		bytes = 0;

	fill_column(b.keys, r, GPUAGG_VALUE_I32, c.n, PLAIN, false);
	for (size_t i = 0; i < c.n; i++)
	{
		int32_t		bin = c.skew && r.below(10) ? (int32_t) (c.nbins / 2) : (int32_t) r.below(c.nbins);

		b.keys.in[i].lo = bin;
		memcpy(&b.keys.bytes[i * 4], &bin, 4);
	}
	b.keys.upload(4);
	if (c.filter)
	{
		for (size_t i = 0; i < c.n; i++)
			b.filter.push_back(r.below(4) ? 1 + (uint8_t) r.below(2) : 0);
		b.device_filter = new DeviceArray<uint8_t>(b.filter);
	}
	h.bins.kind = GPUAGG_BIN_INDEX;
	h.bins.ncolumns = 1;
	h.bins.column[0] = b.keys.get();
	h.bins.nbins = c.nbins;
	h.nslots = (int) c.ops.size();
	h.nrows = (int64_t) c.n;
	h.first_row = first_row;
	h.status = status;
	h.strategy = c.strategy;
	for (size_t s = 0; s < c.ops.size(); s++)
	{
		MonoidId	op = c.ops[s];
		GpuaggValueType t = column_type(op, c.narrow);
		/* pairs are counted, too, and either of the two may have NULLs alone */
		bool		pair = op == MONOID_REGR_F64 || (op == MONOID_COUNT && c.nulls);

		if (c.own)
			b.x[s].in = b.keys.in;
		else
		{
			fill_column(b.x[s], r, t, c.n, c.spread, c.nulls && (op != MONOID_COUNT || r.below(2)));
			b.x[s].upload(size_of(t));
		}
		h.slot[s].op = op;
		h.slot[s].x = c.own ? b.keys.get() : b.x[s].get();
		h.slot[s].filter = b.device_filter && s % 2 ? b.device_filter->get() : nullptr;
		h.slot[s].states = states[s]->get();
		if (pair)
		{
			fill_column(b.y[s], r, t, c.n, c.spread, c.nulls);
			b.y[s].upload(size_of(t));
			h.slot[s].y = b.y[s].get();
		}
		for (size_t i = 0; i < c.n; i++)
		{
			Input		in = b.x[s].in[i];

			if (!b.x[s].ok(i) || (h.slot[s].filter && !b.filter[i]))
				continue;
			if (pair)
			{
				if (!b.y[s].ok(i))
					continue;
				in.hi = b.y[s].in[i].lo;
			}
			else if (t != GPUAGG_VALUE_KV && own_type(op) == GPUAGG_VALUE_KV)
				in.hi = first_row + i;
			reference_step(op, expect[s], (int64_t) b.keys.in[i].lo, in);
		}
	}
	STATUS_MUST(gpuagg_hist_update(&h, nullptr, &bytes, nullptr));
	DeviceArray<char> workspace(bytes);

	STATUS_MUST(gpuagg_hist_update(&h, workspace.get(), &bytes, nullptr));
	CUDA_MUST(cudaDeviceSynchronize());
	CHECK(workspace.guards_intact(), "workspace overrun");
}

static void
run_case(const Case &c, uint64_t seed)
{
	Random		r(seed);
	std::vector<std::vector<char>> expect(c.ops.size());
	std::vector<DeviceArray<char> *> states;
	DeviceArray<GpuaggHistStatus> status(1);
	double		scale = c.spread == EXTREME ? 1e60 : 1e4 * (double) c.n * c.batches;

	CUDA_MUST(cudaMemset(status.get(), 0, sizeof(GpuaggHistStatus)));
	for (size_t s = 0; s < c.ops.size(); s++)
	{
		reference_init(c.ops[s], expect[s], c.nbins);
		states.push_back(new DeviceArray<char>(expect[s].size()));
		STATUS_MUST(gpuagg_hist_init(c.ops[s], states[s]->get(), c.nbins, nullptr));
	}
	for (int k = 0; k < c.batches; k++)
		run_batch(c, r, 1000 + (int64_t) c.n * k, expect, states, status.get());
	for (size_t s = 0; s < c.ops.size(); s++)
	{
		std::vector<char> got = states[s]->take();
		size_t		size = gpuagg_monoids[c.ops[s]].state_size;
		int64_t		bad = -1;

		for (int64_t b = 0; b < c.nbins && bad < 0; b++)
			if (!same_state(c.ops[s], &got[b * size], &expect[s][b * size], scale))
				bad = b;
		CHECK(bad < 0, "%s, strategy %d, %ld bins, %zu rows x %d, spread %d nulls %d filter %d "
			  "narrow %d skew %d: bin %ld: %016lx %016lx, expected %016lx %016lx",
			  gpuagg_monoids[c.ops[s]].name, c.strategy, (long) c.nbins, c.n, c.batches, c.spread,
			  c.nulls, c.filter, c.narrow, c.skew, (long) bad,
			  bad < 0 ? 0 : *(long *) &got[bad * size],
			  bad < 0 || size < 16 ? 0 : *(long *) &got[bad * size + 8],
			  bad < 0 ? 0 : *(long *) &expect[s][bad * size],
			  bad < 0 || size < 16 ? 0 : *(long *) &expect[s][bad * size + 8]);
		CHECK(states[s]->guards_intact(), "%s: states overrun", gpuagg_monoids[c.ops[s]].name);
		delete states[s];
	}
}

/* One slot over one batch: states made anew, a bin a row from the index. */
static void
one_batch(MonoidId op, const GpuaggColumn &index, const GpuaggColumn &x, size_t n, int64_t nbins, void *states,
		  GpuaggHistStatus *status, GpuaggHistStrategy strategy)
{
	GpuaggHist	h = GpuaggHist();
	size_t		bytes = 0;

	CUDA_MUST(cudaMemset(status, 0, sizeof(GpuaggHistStatus)));
	h.bins.kind = GPUAGG_BIN_INDEX;
	h.bins.ncolumns = 1;
	h.bins.column[0] = index;
	h.bins.nbins = nbins;
	h.nslots = 1;
	h.slot[0].op = op;
	h.slot[0].x = x;
	h.slot[0].states = states;
	h.nrows = (int64_t) n;
	h.status = status;
	h.strategy = strategy;
	STATUS_MUST(gpuagg_hist_init(op, states, nbins, nullptr));
	STATUS_MUST(gpuagg_hist_update(&h, nullptr, &bytes, nullptr));
	DeviceArray<char> workspace(bytes);

	STATUS_MUST(gpuagg_hist_update(&h, workspace.get(), &bytes, nullptr));
	CUDA_MUST(cudaDeviceSynchronize());
	CHECK(workspace.guards_intact(), "workspace overrun");
}

/* ---- the tests --------------------------------------------------------------------- */

static std::vector<MonoidId>
all_operators()
{
	std::vector<MonoidId> ops;

	for (int op = 0; op < MONOID_COUNT_OF_IDS; op++)
		if (gpuagg_monoids[op].commutative)
			ops.push_back((MonoidId) op);
	return ops;
}

static const GpuaggHistStrategy strategies[] = {GPUAGG_HIST_SHARED, GPUAGG_HIST_PARTITION,
	GPUAGG_HIST_GLOBAL, GPUAGG_HIST_AUTO};

GPU_TEST(hist_operators)
{
	uint64_t	seed = 1;
	size_t		n = gpu_test_quick() ? 3001 : 20011;

	for (MonoidId op : all_operators())
		for (GpuaggHistStrategy strategy : strategies)
			for (int64_t nbins : {1L, 37L, 5000L})
				for (int flags = 0; flags < 16; flags++)
				{
					if (gpu_test_quick() && flags != 9 && flags != 6)
						continue;
					Case		c = {{op}, strategy, nbins, n, 2, flags & 1 ? EXTREME : PLAIN,
						(flags & 2) != 0, (flags & 2) != 0, (flags & 4) != 0, (flags & 8) != 0};

					/* many or extreme factors leave the range of doubles, here or there as they come */
					if (op == MONOID_PRODUCT_F64 && (nbins < 5000 || c.skew || c.spread == EXTREME))
						continue;
					run_case(c, seed++);
				}
}

GPU_TEST(hist_sizes)
{
	uint64_t	seed = 1000;
	std::vector<MonoidId> ops = {MONOID_COUNT, MONOID_SUM_I64, MONOID_SUM_F64, MONOID_MAX_F64};

	for (GpuaggHistStrategy strategy : strategies)
		for (size_t n : {0, 1, 31, 32, 33, 4095, 4096, 4097, 8191, 8193, 540671, 540673})
			for (int64_t nbins : {1L, 255L, 20000L, 300001L})
				if (n < 10000 || !gpu_test_quick())
					run_case({ops, strategy, nbins, n, 1, PLAIN, true, true, false, n % 2 == 1}, seed++);
}

GPU_TEST(hist_many_slots)
{
	std::vector<MonoidId> ops = all_operators();
	uint64_t	seed = 2000;

	for (size_t at = 0; at + 8 <= ops.size(); at += 4)
		for (GpuaggHistStrategy strategy : strategies)
		{
			std::vector<MonoidId> some(ops.begin() + at, ops.begin() + at + 8);

			for (MonoidId &op : some)
				if (op == MONOID_PRODUCT_F64)
					op = MONOID_COUNT;
			run_case({some, strategy, 3000, 50021, 2, PLAIN, true, true, at % 8 == 0, false}, seed++);
		}
}

/* Partitions in two steps, by every way in which rows may move. */
GPU_TEST(hist_many_bins)
{
	const size_t n = gpu_test_quick() ? 9001 : 300007;
	const bool	yes = true,
				no = false;
	const Case	cases[] = {
		{{MONOID_COUNT}, GPUAGG_HIST_AUTO, 10000001, n, 2, PLAIN, no, no, no, no},
		{{MONOID_COUNT, MONOID_SUM_F64}, GPUAGG_HIST_AUTO, 3000001, n, 2, EXTREME, no, no, no, no},
		{{MONOID_COUNT, MONOID_SUM_F64}, GPUAGG_HIST_AUTO, 3000001, n, 2, PLAIN, no, no, no, yes},
		{{MONOID_COUNT, MONOID_SUM_F64}, GPUAGG_HIST_AUTO, 3000001, n, 1, PLAIN, yes, yes, no, no},
		{{MONOID_SUM_F64, MONOID_MAX_I32, MONOID_SUM_I64}, GPUAGG_HIST_AUTO, 3000001, n, 1, PLAIN, no, no, no, no},
		{{MONOID_ARGMAX}, GPUAGG_HIST_AUTO, 5000001, n, 2, EXTREME, no, no, yes, no},
		{{MONOID_ARGMIN}, GPUAGG_HIST_AUTO, 5000001, n, 1, PLAIN, no, no, no, no},
		/* looked at in the L2 cache */
		{{MONOID_ARGMAX}, GPUAGG_HIST_AUTO, 100001, n, 2, EXTREME, no, no, yes, yes},
		{{MONOID_ARGMIN}, GPUAGG_HIST_AUTO, 100001, n, 2, PLAIN, no, no, yes, no},
		{{MONOID_MAX_I32}, GPUAGG_HIST_AUTO, 200001, n, 2, EXTREME, no, no, no, no},
		{{MONOID_MIN_I32}, GPUAGG_HIST_AUTO, 200001, n, 2, EXTREME, no, no, no, yes},
		{{MONOID_MAX_I64}, GPUAGG_HIST_AUTO, 200001, n, 2, EXTREME, no, no, no, no},
		{{MONOID_MIN_F64}, GPUAGG_HIST_AUTO, 200001, n, 2, EXTREME, no, no, no, no},
		/* a count and a sum at once */
		{{MONOID_COUNT, MONOID_SUM_I64}, GPUAGG_HIST_AUTO, 700, n, 2, EXTREME, no, no, yes, no},
		{{MONOID_SATADD_U24, MONOID_COUNT}, GPUAGG_HIST_AUTO, 700, n, 2, PLAIN, no, no, no, no},
		{{MONOID_COUNT, MONOID_SUM_I64}, GPUAGG_HIST_AUTO, 60000, n, 2, EXTREME, no, no, yes, yes},
		/* sums of one word in several passes, with carries to the states */
		{{MONOID_SUM_I64}, GPUAGG_HIST_SHARED, 50000, n, 2, EXTREME, no, no, yes, yes},
		{{MONOID_SUM_I64}, GPUAGG_HIST_SHARED, 150000, n, 2, EXTREME, no, no, yes, no},
	};
	uint64_t	seed = 3000;

	for (const Case &c : cases)
		run_case(c, seed++);
	for (MonoidId op : {MONOID_SUM_I64, MONOID_SATADD_U24, MONOID_ARGMAX, MONOID_ARGMIN, MONOID_MAX_I32})
		for (int64_t nbins : {1000L, 200000L, 10000001L})
			for (GpuaggHistStrategy strategy : {GPUAGG_HIST_AUTO, GPUAGG_HIST_PARTITION})
				for (size_t slots : {1, 3})
				{
					if (slots > 1 && nbins > 1000000)
						continue;
					Case		c = {std::vector<MonoidId>(slots, op), strategy, nbins, n, 2, PLAIN, no, no, yes, no};

					c.own = true;
					run_case(c, seed++);
				}
}

/* Rows without a bin are left out; those beyond the last bin are counted, once. */
GPU_TEST(hist_outside)
{
	for (GpuaggHistStrategy strategy : strategies)
		for (int64_t nbins : {100L, 70000L, 300000L, 9000000L})
			for (size_t n : {1, 3, 4095, 4099, 100002})
				for (size_t shift = 0; shift < 4; shift++)
				{
					Random		r(n + shift);
					std::vector<int32_t> keys(n);
					std::vector<int64_t> expect(nbins, 0);
					unsigned long long outside = 0;
					DeviceArray<int64_t> states(nbins);
					DeviceArray<GpuaggHistStatus> status(1);

					for (int32_t &k : keys)
					{
						k = (int32_t) r.below(nbins);
						if (r.below(8) == 0)
							k = r.below(2) ? -1 - (int32_t) r.below(100) : (int32_t) (nbins + r.below(100));
						outside += k >= nbins;
						if (k >= 0 && k < nbins)
							expect[k]++;
					}
					DeviceArray<int32_t> device_keys(keys, shift);

					one_batch(MONOID_COUNT, {device_keys.get(), nullptr, GPUAGG_VALUE_I32}, GpuaggColumn(), n, nbins, states.get(),
							  status.get(), nbins > 100 && strategy == GPUAGG_HIST_SHARED ? GPUAGG_HIST_AUTO : strategy);
					CHECK(states.take() == expect && status.take()[0].outside == outside,
						  "strategy %d, %ld bins, %zu rows, shift %zu: %llu outside, expected %llu", strategy,
						  (long) nbins, n, shift, status.take()[0].outside, outside);
				}
}

/*
 * Bytes that count rows are full over and over, all four of a word at a time, and
 * pass on what they had just then.
 */
GPU_TEST(hist_full_bytes)
{
	const size_t n = gpu_test_quick() ? 400003 : 6000011;

	for (int64_t nbins : {60001L, 300001L})
		for (int hot : {1, 2, 3, 4, 9})
		{
			Random		r(nbins + hot);
			std::vector<int32_t> keys(n);
			std::vector<int64_t> expect(nbins, 0);
			DeviceArray<int64_t> states(nbins);
			DeviceArray<GpuaggHistStatus> status(1);

			for (int32_t &k : keys)
			{
				k = (int32_t) (r.below(16) ? 40000 + r.below(hot) : r.below(2) ? nbins - 1 - r.below(4) : r.below(nbins));
				expect[k]++;
			}
			DeviceArray<int32_t> device_keys(keys, hot % 4);

			one_batch(MONOID_COUNT, {device_keys.get(), nullptr, GPUAGG_VALUE_I32}, GpuaggColumn(), n, nbins, states.get(),
					  status.get(), GPUAGG_HIST_AUTO);
			CHECK(states.take() == expect && status.take()[0].outside == 0, "%ld bins, %d hot ones", (long) nbins, hot);
			CHECK(states.guards_intact(), "states overrun");
		}
}

/*
 * Sums of 32-bit integers whose words overflow either way, from columns that
 * start anywhere, with rows that have no bin.
 */
GPU_TEST(hist_narrow_sums)
{
	const size_t n = gpu_test_quick() ? 20003 : 700001;

	for (MonoidId op : {MONOID_SUM_I64, MONOID_SATADD_U24})
		for (int64_t nbins : {1L, 40L, 9000L, 30000L, 50000L, 100000L})
			for (int spread = 0; spread < 3; spread++)
				for (size_t shift : {0, 1, 6, 15})
				{
					Random		r(nbins + 16 * spread + shift);
					std::vector<int32_t> keys(n),
								values(n);
					std::vector<int64_t> expect(nbins, 0);
					unsigned long long outside = 0;
					DeviceArray<int64_t> states(nbins);
					DeviceArray<GpuaggHistStatus> status(1);

					for (size_t i = 0; i < n; i++)
					{
						keys[i] = (int32_t) (r.below(3) ? r.below(nbins) : nbins / 2);
						if (r.below(16) == 0)
							keys[i] = r.below(2) ? -1 - (int32_t) r.below(9) : (int32_t) (nbins + r.below(9));
						values[i] = spread == 0 ? (int32_t) r.below(100) : spread == 1 ? INT32_MAX - (int32_t) r.below(9)
							: r.below(2) ? INT32_MIN + (int32_t) r.below(9) : (int32_t) r.below(1000) - 500;
						if (op == MONOID_SATADD_U24 && values[i] < 0)
							values[i] = 1;
						outside += keys[i] >= nbins;
						if (keys[i] >= 0 && keys[i] < nbins)
							expect[keys[i]] += op == MONOID_SUM_I64 ? values[i] : std::min(values[i], 0xffffff);
					}
					DeviceArray<int32_t> device_keys(keys, shift % 4),
								device_values(values, shift / 4);

					one_batch(op, {device_keys.get(), nullptr, GPUAGG_VALUE_I32},
							  {device_values.get(), nullptr, GPUAGG_VALUE_I32}, n, nbins, states.get(), status.get(),
							  GPUAGG_HIST_AUTO);
					std::vector<int64_t> got = states.take();

					/* 24-bit sums lie close together */
					for (int64_t b = nbins - 1; op == MONOID_SATADD_U24 && b >= 0; b--)
					{
						got[b] = ((const uint32_t *) got.data())[b];
						expect[b] = std::min<int64_t>(expect[b], 0xffffff);
					}
					CHECK(got == expect && status.take()[0].outside == outside,
						  "%s, %ld bins, spread %d, shift %zu: %llu outside, expected %llu", gpuagg_monoids[op].name,
						  (long) nbins, spread, shift, status.take()[0].outside, outside);
					CHECK(states.guards_intact(), "states overrun");
				}
}

/* Float sums come out the same, bit for bit, ten times over. */
GPU_TEST(hist_repeatable)
{
	const int64_t nbins = 1000;
	const size_t n = gpu_test_quick() ? 20000 : 2000000;
	Random		r(7);
	Column		keys,
				x;
	std::vector<double> first;

	fill_column(keys, r, GPUAGG_VALUE_I32, n, PLAIN, false);
	for (size_t i = 0; i < n; i++)
		((int32_t *) keys.bytes.data())[i] = (int32_t) r.below(nbins);
	fill_column(x, r, GPUAGG_VALUE_F64, n, PLAIN, false);
	keys.upload(0);
	x.upload(0);
	for (int round = 0; round < 10; round++)
		for (GpuaggHistStrategy strategy : {GPUAGG_HIST_SHARED, GPUAGG_HIST_PARTITION})
		{
			DeviceArray<double> states(nbins);
			DeviceArray<GpuaggHistStatus> status(1);

			one_batch(MONOID_SUM_F64, keys.get(), x.get(), n, nbins, states.get(), status.get(), strategy);
			std::vector<double> got = states.take();

			if (first.empty())
				first = got;
			CHECK(memcmp(first.data(), got.data(), nbins * sizeof(double)) == 0,
				  "round %d, strategy %d differs", round, strategy);
		}
}

/* Sums of float8 by bins, in one batch. */
static std::vector<double>
sum_batch(const std::vector<int32_t> &bins, const std::vector<double> &values, int64_t nbins,
		  GpuaggHistStrategy strategy)
{
	DeviceArray<int32_t> keys(bins);
	DeviceArray<double> x(values),
				states(nbins);
	DeviceArray<GpuaggHistStatus> status(1);

	one_batch(MONOID_SUM_F64, {keys.get(), nullptr, GPUAGG_VALUE_I32}, {x.get(), nullptr, GPUAGG_VALUE_F64},
			  values.size(), nbins, states.get(), status.get(), strategy);
	return states.take();
}

/*
 * Many rows of a hot bin, so that every digit of the sums overflows: the result is the
 * exact sum, rounded once.
 */
GPU_TEST(hist_digits)
{
	const size_t n = gpu_test_quick() ? 300000 : 8000000;

	for (GpuaggHistStrategy strategy : {GPUAGG_HIST_SHARED, GPUAGG_HIST_PARTITION})
		for (int64_t nbins : {1L, 300L, 12000L})
			for (int sign = 0; sign < 3; sign++)
			{
				Random		r(nbins + sign);
				std::vector<int32_t> bins(n);
				std::vector<double> values(n);
				std::vector<gpuagg_i128> expect(nbins, 0);
				int64_t		bad = -1;

				for (size_t i = 0; i < n; i++)
				{
					int64_t		v = (int64_t) (r.next() >> 11);

					if (sign == 1 || (sign == 2 && r.below(2)))
						v = -v;
					bins[i] = r.below(4) ? (int32_t) (nbins - 1) : (int32_t) r.below(nbins);
					values[i] = (double) v;
					expect[bins[i]] += v;
				}
				std::vector<double> got = sum_batch(bins, values, nbins, strategy);

				for (int64_t b = 0; b < nbins && bad < 0; b++)
					if (got[b] != (double) expect[b])
						bad = b;
				CHECK(bad < 0, "strategy %d, %ld bins, sign %d: bin %ld: %.17g, expected %.17g", strategy,
					  (long) nbins, sign, (long) bad, bad < 0 ? 0 : got[bad], bad < 0 ? 0 : (double) expect[bad]);
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
			double		some[6] = {-0.0, 0.0, i / 6 % 2 ? -0.0 : 0.0, i / 6 % 2 ? 3.25e5 : -3.25e5, 0, -0.0};

			bins[i] = (int32_t) (i % 6);
			values[i] = some[i % 6];
		}
		values[4] = 5;
		values[n - 2] = -5;
		std::vector<double> got = sum_batch(bins, values, 7, strategy);

		for (int b = 0; b < 7; b++)
			CHECK(as_bits(got[b]) == as_bits(b == 0 || b >= 5 ? -0.0 : 0.0), "strategy %d, bin %d: %016lx",
				  strategy, b, (unsigned long) as_bits(got[b]));
	}
}

/* Errors that the monoids state reach the status. */
GPU_TEST(hist_overflow)
{
	for (int k = 0; k < 3; k++)
	{
		Column		keys,
					x;
		double		v[3][2] = {{1e308, 1e308}, {INFINITY, 1e308}, {1e308, -1e308}};
		int32_t		zero[2] = {0, 0};
		DeviceArray<double> states(1);
		DeviceArray<GpuaggHistStatus> status(1);

		keys.type = GPUAGG_VALUE_I32;
		keys.bytes.assign((char *) zero, (char *) zero + 8);
		x.type = GPUAGG_VALUE_F64;
		x.bytes.assign((char *) v[k], (char *) v[k] + 16);
		keys.upload(0);
		x.upload(0);
		one_batch(MONOID_SUM_F64, keys.get(), x.get(), 2, 1, states.get(), status.get(), GPUAGG_HIST_AUTO);
		CHECK(status.take()[0].errors[0] == (k == 0 ? MONOID_ERR_OVERFLOW : 0),
			  "case %d: errors %u", k, status.take()[0].errors[0]);
	}
}

/* ---- bin functions ---------------------------------------------------------------- */

static void
check_bins(const char *what, const GpuaggBins &bins, size_t n, const std::vector<int32_t> &expect,
		   unsigned long long outside)
{
	DeviceArray<int32_t> out(n);
	DeviceArray<GpuaggHistStatus> status(1);
	size_t		bad = n;

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
	const GpuaggValueType types[] = {GPUAGG_VALUE_I8, GPUAGG_VALUE_I16, GPUAGG_VALUE_I32, GPUAGG_VALUE_I64};

	for (int ncols = 1; ncols <= 4; ncols++)
	{
		Random		r(40 + ncols);
		Column		keys[4];
		GpuaggBins	bins = GpuaggBins();
		std::vector<int32_t> expect(n, 0);
		unsigned long long outside = 0;
		std::vector<uint8_t> gone(n, 0),
					left(n, 0);

		bins.kind = GPUAGG_BIN_RANGE;
		bins.ncolumns = ncols;
		bins.nbins = 1;
		for (int c = 0; c < ncols; c++)
		{
			fill_column(keys[c], r, types[(c + ncols) % 4], n, EXTREME, c != 1);
			for (size_t i = 0; i < n; i++)
			{
				int64_t		v = (int64_t) r.below(11) - 5;

				memcpy(&keys[c].bytes[i * size_of(keys[c].type)], &v, size_of(keys[c].type));
				keys[c].in[i].lo = v;
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
				int64_t		k = (int64_t) keys[c].in[i].lo + 5;

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

GPU_TEST(hist_bins_width)
{
	const size_t n = 20011;
	const double bounds[][2] = {{0, 100}, {100, 0}, {-1e308, 1e308}, {1e308, -1e308}, {-0.1, 0.3}};

	for (const double *bound : bounds)
	{
		Random		r(77);
		Column		x;
		GpuaggBins	bins = GpuaggBins();
		std::vector<int32_t> expect(n);

		fill_column(x, r, GPUAGG_VALUE_F64, n, EXTREME, true);
		x.upload(8);
		bins.kind = GPUAGG_BIN_WIDTH;
		bins.ncolumns = 1;
		bins.column[0] = x.get();
		bins.lo = bound[0];
		bins.hi = bound[1];
		bins.count = 73;
		bins.nbins = 75;
		for (size_t i = 0; i < n; i++)
		{
			double		d = as_double(x.in[i].lo);

			expect[i] = x.ok(i) ? gpuagg_bin_uniform(d, bound[0], bound[1], 73) : -1;
		}
		check_bins("width", bins, n, expect, 0);
	}
}

GPU_TEST(hist_bins_thresholds)
{
	const size_t n = 20011;

	for (int count : {1, 2, 37})
	{
		Random		r(78);
		Column		x;
		GpuaggBins	bins = GpuaggBins();
		std::vector<int32_t> expect(n);
		std::vector<double> limits;

		for (int i = 0; i < count; i++)
			limits.push_back(-40 + i * 5.5);
		DeviceArray<double> device_limits(limits);

		fill_column(x, r, GPUAGG_VALUE_F32, n, EXTREME, true);
		x.upload(4);
		bins.kind = GPUAGG_BIN_THRESHOLDS;
		bins.ncolumns = 1;
		bins.column[0] = x.get();
		bins.thresholds = device_limits.get();
		bins.count = count;
		bins.nbins = count + 1;
		for (size_t i = 0; i < n; i++)
			expect[i] = x.ok(i) ? gpuagg_bin_thresholds(as_double(x.in[i].lo), limits.data(), count) : -1;
		check_bins("thresholds", bins, n, expect, 0);
	}
}

GPU_TEST(hist_key_range)
{
	for (size_t n : {1, 100, 100003})
	{
		Random		r(79 + n);
		Column		x;
		DeviceArray<int64_t> range(2);
		int64_t		lo = INT64_MAX,
					hi = INT64_MIN;
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

		CHECK(got[0] == lo && got[1] == hi, "%zu rows: %ld .. %ld", n, (long) got[0], (long) got[1]);
	}
}
