/*
 * gpu_hist_exchange.cu
 *	  Tests of histograms by exchange (hist_exchange.cu).
 *
 * They cover bins of every owner, rows at the ends of tiles and rounds, hot bins, and rows that
 * crowd in the bins of few owners, whose queues have no room for them.
 */
#include "common.cuh"
#include "gpu_hist_run.h"

/* Number of rows in a block's tile, as in hist_exchange.cuh. */
#define TILE 3328
#define EXCHANGE_SMS 48 /* their shared memory has room for the bins of these tests */

static const SlotCase count = {MONOID_COUNT, GPUAGG_VALUE_I8},
					  sum = {MONOID_SUM_F64, GPUAGG_VALUE_F64},
					  sum_extreme = {MONOID_SUM_F64, GPUAGG_VALUE_F64, false, false, EXTREME},
					  sum_long = {MONOID_SUM_I64, GPUAGG_VALUE_I64, false, false, EXTREME},
					  sum_wide = {MONOID_SUM_I128, GPUAGG_VALUE_I64, false, false, EXTREME},
					  sum_decimal = {MONOID_SUM_DEC, GPUAGG_VALUE_I64, false, false, EDGES};

enum RowOrder
{
	EVEN,
	SORTED,
	HOT,    /* half of the rows in one bin, a quarter in three others */
	STRIDE, /* in every 132nd bin */
	CROWD   /* in many bins of one owner */
};

static const char *const order_names[] = {"even", "sorted", "hot", "stride", "crowd"};

/*
 * Returns a bin of owner 0 by the formula of hist_exchange.cuh: the one with the number `local`
 * among its bins.
 */
static int64_t
crowd_bin(int64_t local, int64_t owners)
{
	int64_t mask = 0;

	while (2 * mask + 1 < owners)
		mask = 2 * mask + 1;
	return local * owners + (owners - (local & mask)) % owners;
}

/* Returns the bin of row i of n rows. */
static int32_t
bin_of_row(Random &r, size_t i, size_t n, int64_t nbins, int64_t owners, RowOrder order)
{
	int64_t any = (int64_t) r.below((uint64_t) nbins);

	switch (order)
	{
		case SORTED:
			return (int32_t) ((__int128) i * nbins / n);
		case HOT:
			return (int32_t) (r.below(2)     ? nbins / 2 :
								  r.below(2) ? nbins / 3 * (int64_t) r.below(3) :
											   any);
		case STRIDE:
			return (int32_t) (any - any % 132);
		case CROWD:
			any = crowd_bin(any / owners, owners);
			return (int32_t) (any < nbins ? any : 0);
		default:
			return (int32_t) any;
	}
}

/*
 * Rows of a test.  Keys start at `first`.  A few keys are out of range, and if `filtered`, a filter
 * excludes some rows.
 */
struct ExchangeRows
{
	Column keys;
	std::vector<int32_t> bin;
	std::vector<uint8_t> filter;
	unsigned long long outside = 0;

	ExchangeRows(Random &r, size_t n, int64_t nbins, int64_t owners, RowOrder order, int32_t first,
				 bool filtered)
		: bin(n), filter(n, 1)
	{
		keys.type = GPUAGG_VALUE_I32;
		keys.in.resize(n);
		keys.bytes.resize(n * 4);
		for (size_t i = 0; i < n; i++)
		{
			int32_t key;

			bin[i] = bin_of_row(r, i, n, nbins, owners, order);
			key = bin[i] + first;
			if (r.below(1000) == 0)
			{
				/* a key below the first is skipped if that is 0 */
				bool above = r.below(2);

				key = above ? first + (int32_t) nbins : first - 1;
				outside += above || first != 0;
				bin[i] = -1;
			}
			else if (filtered && r.below(8) == 0)
			{
				filter[i] = 0;
				bin[i] = -1;
			}
			memcpy(&keys.bytes[i * 4], &key, 4);
		}
		keys.upload(4);
	}
};

/*
 * Checks one histogram.  It must be made by an exchange if `taken`, and must not otherwise.  Few
 * rows are added twice, so that the states are not always empty.
 */
static void
check_exchange(const std::vector<SlotCase> &slots, size_t n, int64_t nbins, RowOrder order,
			   int32_t first, GpuaggHistStrategy strategy, bool taken, uint64_t seed,
			   bool filtered = false)
{
	const DeviceFacts *facts;
	Random r(seed);
	HistExpected expected(slots, nbins);
	HistActual actual(slots, nbins);
	char text[200];

	STATUS_MUST(gpuagg_device_facts(&facts));
	ExchangeRows rows(r, n, nbins, facts->sms, order, first, filtered);
	DeviceArray<uint8_t> filter(rows.filter);
	HistBatch batch(r, slots, n);

	for (int again = 0; again < (n < TILE + 2 ? 2 : 1); again++)
	{
		GpuaggHist h = GpuaggHist();
		GpuaggHistChoice choice;

		h.bins.kind = first ? GPUAGG_BIN_RANGE : GPUAGG_BIN_INDEX;
		h.bins.ncolumns = 1;
		h.bins.column[0] = rows.keys.get();
		h.bins.min[0] = first;
		h.bins.extent[0] = h.bins.nbins = nbins;
		h.bins.filter = filtered ? filter.get() : nullptr;
		batch.attach(h);
		batch.expect(expected, rows.bin);
		expected.outside += rows.outside;
		h.strategy = strategy;
		actual.attach(h);
		STATUS_MUST(gpuagg_hist_choose(&h, &choice));
		if (facts->smem_per_block == 232448 && facts->sms >= EXCHANGE_SMS)
			CHECK((choice.strategy == GPUAGG_HIST_EXCHANGE) == taken,
				  "%zu rows, %ld bins: strategy %d", n, (long) nbins, choice.strategy);
		hist_update(h);
	}
	snprintf(text, sizeof(text), "%zu rows, %s, keys from %d, strategy %d, %zu slots%s", n,
			 order_names[order], first, strategy, slots.size(), filtered ? ", filtered" : "");
	actual.check(expected, text);
}

/*
 * Every form of the exchange, rows at the ends of tiles and rounds, and first and last bins of
 * owners.
 */
GPU_TEST(hist_exchange)
{
	const std::vector<SlotCase> sets[] = {{count, sum},         {sum},
										  {sum_extreme, count}, {sum_long},
										  {count, sum_wide},    {sum_decimal, count}};
	const DeviceFacts *facts;
	uint64_t seed = 20000;

	STATUS_MUST(gpuagg_device_facts(&facts));
	const size_t round = (size_t) facts->sms * TILE;

	for (const auto &slots : sets)
	{
		for (int64_t nbins : {1L, 131L, 132L, 133L, 30001L})
			for (size_t n : {(size_t) 1, (size_t) 33, (size_t) TILE - 1, (size_t) TILE,
							 (size_t) TILE + 1, (size_t) 50021})
				check_exchange(slots, n, nbins, EVEN, n % 2 ? 0 : -17, GPUAGG_HIST_EXCHANGE, true,
							   seed++);
		if (!gpu_test_quick())
			for (size_t n : {round, round + 1, 7 * round + 12345})
				check_exchange(slots, n, n % 2 ? 1000003 : 30001, EVEN, 0, GPUAGG_HIST_EXCHANGE,
							   true, seed++);
	}
}

/*
 * Skewed rows: the rows of hot bins stay in their block, and rows without room in a queue are
 * deferred.
 */
GPU_TEST(hist_exchange_skew)
{
	const size_t n = gpu_test_rows(1200011, 500001);
	const std::vector<SlotCase> sets[] = {
		{count, sum}, {sum_extreme}, {sum_long, count}, {count, sum_wide}};
	uint64_t seed = 21000;

	for (const auto &slots : sets)
		for (RowOrder order : {SORTED, HOT, STRIDE, CROWD})
			for (int64_t nbins : {100L, 200003L})
				check_exchange(slots, n, nbins, order, 5, GPUAGG_HIST_EXCHANGE, true, seed++);
}

/* A filter: bins are computed before the exchange, and rows out of range are counted once. */
GPU_TEST(hist_exchange_found_bins)
{
	const std::vector<SlotCase> sets[] = {{count, sum}, {sum_long}};
	uint64_t seed = 23000;

	for (const auto &slots : sets)
		for (GpuaggHistStrategy strategy : {GPUAGG_HIST_EXCHANGE, GPUAGG_HIST_PARTITION})
			for (int32_t first : {0, -17})
				for (size_t n : {(size_t) 33, (size_t) 50021})
					check_exchange(slots, n, 30001, EVEN, first, strategy,
								   strategy == GPUAGG_HIST_EXCHANGE, seed++, true);
}

/*
 * AUTO exchanges rows from 2^23 rows on, but partitions rows that crowd in few owners or have
 * values far apart.
 */
GPU_TEST(hist_exchange_auto)
{
	const size_t least = (size_t) 1 << 23;
	const DeviceFacts *facts;
	uint64_t seed = 22000;

	STATUS_MUST(gpuagg_device_facts(&facts));
	if (facts->sms < EXCHANGE_SMS)
	{
		gpu_test_skip("needs %d multiprocessors", EXCHANGE_SMS);
		return;
	}

	check_exchange({count, sum}, least, 300007, HOT, 0, GPUAGG_HIST_AUTO, true, seed++);
	check_exchange({sum_long}, least, 300007, CROWD, 0, GPUAGG_HIST_AUTO, true, seed++);
	check_exchange({sum_extreme, count}, least, 300007, EVEN, 0, GPUAGG_HIST_AUTO, true, seed++);
	if (!gpu_test_quick())
		check_exchange({count, sum}, least - 1, 300007, EVEN, 0, GPUAGG_HIST_AUTO, false, seed++);
}
