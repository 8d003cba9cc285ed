/*
 * gpu_hist_argmax.cu
 *	  Tests histograms of argmax and argmin: rows that win, lose and tie, in several orders and
 *	  distributions over bins, and numbers of bins at which the kernel changes its form.
 *	  Reference: the CPU's operators (gpu_hist_run.h).
 */
#include <algorithm>

#include "gpu_hist_run.h"

enum Keys
{
	RANDOM,
	ASCENDING, /* each row wins an argmax */
	DESCENDING,
	TWO,   /* most rows tie */
	EQUAL, /* all rows tie, and values descend */
	ENDS,  /* keys and values are the least and greatest integers */
	NKEYS
};

enum Groups
{
	UNIFORM,
	SKEWED, /* nine of ten rows are in one bin, and some bins have no rows */
	SORTED, /* neighbours are in the same bin */
	CYCLIC,
	NGROUPS
};

struct ArgmaxCase
{
	MonoidId op;
	GpuaggValueType x, y;
	GpuaggHistStrategy strategy;
	int64_t nbins;
	size_t n;
	Keys keys;
	Groups groups;
	bool nulls = false;
	bool filter = false;
	size_t shift = 0; /* columns start this number of elements after a multiple of 256 bytes */
	int batches = 2;
};

static int64_t
greatest_integer(GpuaggValueType type)
{
	return INT64_MAX >> (64 - 8 * size_of(type));
}

static bool
is_float(GpuaggValueType type)
{
	return type == GPUAGG_VALUE_F32 || type == GPUAGG_VALUE_F64;
}

/* Returns a float for an integer, mostly in the same order. Some are zeros, infinities or NaN. */
static double
make_float(int64_t v)
{
	const double specials[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, 1e-310, -1e-310};

	return v % 61 == 0 ? specials[(uint64_t) v / 61 % 7] : (double) (float) v;
}

/* Makes a column of these numbers. Replaces float columns' numbers in v by their codes. */
static void
set_column(Column &c, std::vector<int64_t> &v, GpuaggValueType type, bool key,
		   const std::vector<uint8_t> &valid, size_t shift)
{
	c.type = type;
	c.valid = valid;
	c.bytes.resize(v.size() * size_of(type));
	for (size_t i = 0; i < v.size(); i++)
	{
		double d = make_float(v[i]);
		float f = (float) d;
		const void *from = type == GPUAGG_VALUE_F64 ? (const void *) &d :
			type == GPUAGG_VALUE_F32                ? (const void *) &f :
													  &v[i];

		memcpy(&c.bytes[i * size_of(type)], from, size_of(type));
		if (is_float(type))
			v[i] = gpuagg_f64_code((type == GPUAGG_VALUE_F32 ? f : d) + (key ? 0.0 : -0.0));
	}
	c.upload(shift * size_of(type));
}

/* Returns the key of row i of n rows, in the order of the case. */
static int64_t
draw_key(const ArgmaxCase &c, Random &r, size_t i, size_t n)
{
	int64_t greatest = greatest_integer(c.x);

	switch (c.keys)
	{
		case ASCENDING:
			return (int64_t) ((double) i / n * greatest);
		case DESCENDING:
			return -(int64_t) ((double) i / n * greatest);
		case TWO:
			return (int64_t) r.below(2);
		case EQUAL:
			return -7;
		case ENDS:
			return random_edge(r, 8 * size_of(c.x));
		default:
			return (int64_t) (r.next() << (64 - 8 * size_of(c.x))) >> (64 - 8 * size_of(c.x));
	}
}

/* Returns the bin of row i, by the distribution of the case. */
static int32_t
draw_bin(const ArgmaxCase &c, Random &r, size_t i)
{
	switch (c.groups)
	{
		case SKEWED:
			return (int32_t) (r.below(10) ? c.nbins / 2 : r.below(c.nbins) & ~1);
		case SORTED:
			return (int32_t) (i * c.nbins / c.n);
		case CYCLIC:
			return (int32_t) (i % c.nbins);
		default:
			return (int32_t) r.below(c.nbins);
	}
}

/* Adds one batch of random rows to the states on the device and to the expected ones. */
static void
update_batch(const ArgmaxCase &c, Random &r, HistExpected &expected, const HistActual &actual)
{
	std::vector<int64_t> x(c.n), y(c.n);
	std::vector<int32_t> bins(c.n);
	std::vector<uint8_t> valid[2], filter(c.n, 1);
	Column keys, values;
	GpuaggHist h = GpuaggHist();

	for (size_t i = 0; i < c.n; i++)
	{
		x[i] = draw_key(c, r, i, c.n);
		y[i] = c.keys == ENDS ? random_edge(r, 8 * size_of(c.y)) :
			c.keys == EQUAL   ? -(int64_t) (i % greatest_integer(c.y)) :
								(int64_t) (r.next() << (64 - 8 * size_of(c.y))) >>
				(64 - 8 * size_of(c.y));
		bins[i] = draw_bin(c, r, i);
		/* rows without a bin */
		if (r.below(16) == 0)
			bins[i] = r.below(2) ? -1 - (int32_t) r.below(9) : (int32_t) (c.nbins + r.below(9));
		if (c.filter)
			filter[i] = r.below(4) != 0;
		for (int k = 0; c.nulls && k < 2; k++)
			valid[k].push_back(r.below(8) != 0);
	}
	set_column(keys, x, c.x, true, valid[0], c.shift);
	set_column(values, y, c.y, false, valid[1], c.shift);
	for (size_t i = 0; i < c.n; i++)
	{
		if (bins[i] >= c.nbins)
			expected.outside++;
		else if (bins[i] >= 0 && filter[i] && (!c.nulls || (valid[0][i] && valid[1][i])))
			expected.step(0, bins[i], Input{(uint64_t) x[i], (uint64_t) y[i]});
	}
	DeviceArray<int32_t> device_bins(bins, c.shift);
	DeviceArray<uint8_t> device_filter(filter, c.shift);

	h.bins.kind = GPUAGG_BIN_INDEX;
	h.bins.ncolumns = 1;
	h.bins.column[0] = {device_bins.get(), nullptr, GPUAGG_VALUE_I32};
	h.bins.nbins = c.nbins;
	h.nslots = 1;
	h.nrows = (int64_t) c.n;
	h.slot[0].op = c.op;
	h.slot[0].x = keys.get();
	h.slot[0].y = values.get();
	h.slot[0].filter = c.filter ? device_filter.get() : nullptr;
	h.strategy = c.strategy;
	actual.attach(h);
	hist_update(h);
}

/* Runs all batches of a case, and compares the states with the expected ones. */
static void
check_case(const ArgmaxCase &c, uint64_t seed)
{
	Random r(seed);
	std::vector<SlotCase> slots = {{c.op, c.x, c.nulls, c.filter, PLAIN, c.y, c.nulls}};
	HistExpected expected(slots, c.nbins);
	HistActual actual(slots, c.nbins);
	char what[160];

	for (int b = 0; b < c.batches; b++)
		update_batch(c, r, expected, actual);
	snprintf(what, sizeof(what),
			 "types %d and %d, strategy %d, %ld bins, %zu rows x %d, keys %d, groups %d, nulls %d "
			 "filter %d shift %zu",
			 c.x, c.y, c.strategy, (long) c.nbins, c.n, c.batches, c.keys, c.groups, c.nulls,
			 c.filter, c.shift);
	actual.check(expected, what);
}

static const MonoidId both[] = {MONOID_ARGMAX, MONOID_ARGMIN};
static const GpuaggHistStrategy forms[] = {GPUAGG_HIST_SHARED, GPUAGG_HIST_GLOBAL};

/* Rows that win, lose and tie, in each order and distribution, in both forms. */
GPU_TEST(hist_argmax_orders)
{
	const size_t n = gpu_test_quick() ? 3001 : 60013;
	const GpuaggValueType types[] = {GPUAGG_VALUE_I64, GPUAGG_VALUE_F64};
	uint64_t seed = 20000;

	for (MonoidId op : both)
		for (GpuaggHistStrategy form : forms)
			for (int keys = 0; keys < NKEYS; keys++)
				for (int groups = 0; groups < NGROUPS; groups++)
					for (int64_t nbins : {1L, 5L, 1000L})
						check_case({op, types[seed % 2], types[seed / 2 % 2], form, nbins, n,
									(Keys) keys, (Groups) groups},
								   seed++);
}

/* Columns of each pair of types, starting at any element, with NULLs and filters. */
GPU_TEST(hist_argmax_columns)
{
	const size_t n = gpu_test_quick() ? 1003 : 9001;
	const GpuaggValueType types[] = {GPUAGG_VALUE_I8,  GPUAGG_VALUE_I16, GPUAGG_VALUE_I32,
									 GPUAGG_VALUE_I64, GPUAGG_VALUE_F32, GPUAGG_VALUE_F64};
	uint64_t seed = 21000;

	for (GpuaggValueType x : types)
		for (GpuaggValueType y : types)
			for (GpuaggHistStrategy form : forms)
				for (int flags = 0; flags < 4; flags++)
					for (size_t shift : {0, 1, 4})
					{
						MonoidId op = both[seed % 2];

						check_case({op, x, y, form, 40, n, flags % 2 ? ENDS : RANDOM, UNIFORM,
									(flags & 1) != 0, (flags & 2) != 0, shift},
								   seed++);
					}
}

/*
 * Numbers of bins around those at which a block has copies of its entries, has none, or has no room
 * for the bins. Numbers of rows around the ends of vectors and warps.
 */
GPU_TEST(hist_argmax_sizes)
{
	const bool quick = gpu_test_quick();
	uint64_t seed = 22000;

	for (GpuaggHistStrategy form : {GPUAGG_HIST_AUTO, GPUAGG_HIST_SHARED})
		for (int64_t nbins : {1L, 31L, 32L, 33L, 512L, 513L, 1024L, 1025L, 14208L, 14209L, 60000L})
			for (size_t n : {1, 3, 4, 5, 127, 128, 129, 4095, 4097, 70001})
				if (!quick || (n < 5000 && nbins < 2000))
					check_case({both[seed % 2], seed % 3 ? GPUAGG_VALUE_I32 : GPUAGG_VALUE_I64,
								GPUAGG_VALUE_I32, form, nbins, n, seed % 5 ? RANDOM : ASCENDING,
								seed % 7 ? UNIFORM : SORTED},
							   seed++);
}

/*
 * A call with other operators, too: each one reads the rows separately, and rows out of range are
 * counted once.
 */
GPU_TEST(hist_argmax_with_others)
{
	const size_t n = gpu_test_quick() ? 2003 : 40009;
	const SlotCase arg = plain_slot(MONOID_ARGMAX), least = plain_slot(MONOID_ARGMIN);
	const std::vector<std::vector<SlotCase>> calls = {
		{{MONOID_COUNT, GPUAGG_VALUE_I8}, arg},
		{arg, least},
		{arg, {MONOID_MAX_DEC, GPUAGG_VALUE_I128}, least},
		{{MONOID_SUM_F64, GPUAGG_VALUE_F64}, {MONOID_MIN_DEC, GPUAGG_VALUE_I128}, arg}};
	uint64_t seed = 23000;

	for (const std::vector<SlotCase> &slots : calls)
		for (GpuaggHistStrategy strategy : strategies)
			for (int64_t nbins : {7L, 30000L})
			{
				Random r(seed++);
				HistExpected expected(slots, nbins);
				HistActual actual(slots, nbins);
				HistBatch batch(r, slots, n);
				std::vector<int32_t> bins(n);
				GpuaggHist h = GpuaggHist();

				for (int32_t &b : bins)
				{
					b = (int32_t) r.below(nbins + 3);
					expected.outside += b >= nbins;
				}
				DeviceArray<int32_t> device_bins(bins);

				for (int32_t &b : bins)
					b = b >= nbins ? -1 : b;
				batch.expect(expected, bins);
				h.bins.kind = GPUAGG_BIN_INDEX;
				h.bins.ncolumns = 1;
				h.bins.column[0] = {device_bins.get(), nullptr, GPUAGG_VALUE_I32};
				h.bins.nbins = nbins;
				h.strategy = strategy;
				batch.attach(h);
				actual.attach(h);
				hist_update(h);
				actual.check(expected, "argmax with other operators");
			}
}
