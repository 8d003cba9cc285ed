/*
 * kernels_hist.cu
 *	  Part (c) of the kernel benchmark: histograms as in the paper on generalized histograms (SC20;
 *	  see hist_model.h).
 *
 * Peers are CUB's DeviceHistogram, and CUB's radix sort followed by ReduceByKey.  Each computes the
 * same operator over the same rows, from empty states.  Only DeviceHistogram always counts rows.
 */
#include "kernels_bench.h"

#include <cub/cub.cuh>
#include <thrust/iterator/transform_iterator.h>

#include <math.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "operators/monoid.h"

/* Fills in random indices of every race-th bin, as in the paper (race factor). */
static __global__ void
make_indices(int32_t *out, int64_t n, int32_t bins, int32_t race, uint64_t seed)
{
	int32_t distinct = bins / race > 0 ? bins / race : 1;

	for (int64_t i = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; i < n;
		 i += (int64_t) gridDim.x * blockDim.x)
		out[i] = (int32_t) (bench_mix(seed + i) % distinct) * race;
}

static const int64_t c_rows = 50000000;
static const int c_copies =
	3; /* inputs that are read in turn, so that none stays in the L2 cache */

static const int c_sizes = 12;
static const int32_t c_bins[c_sizes] = {31,    127,   505,    2041,   6137,   12281,
										24569, 49145, 196607, 393215, 786431, 1572863};

/* Milliseconds of the CUDA prototype of the paper's authors, at race factor 1, on an H200. */
static const double sc20_hdw[c_sizes] = {.083, .076, .075, .077, .079, .083,
										 .163, .311, .549, .520, .554, .587};

/* An operator of part (c): counts of the bins, as in the paper, or sums of a second column. */
struct HistOperator
{
	const char *name;
	MonoidId op;
};

/* The inputs, c_rows each. */
struct HistColumns
{
	int32_t *bins[c_copies];
	int32_t *values[c_copies];
};

static const HistOperator c_operators[] = {
	{"HDW count", MONOID_COUNT},
	{"int32 add", MONOID_SUM_I64},
};

/*
 * Returns the states that the CPU monoids compute from the bins `in`. step(state, row) adds a row.
 */
template <typename State, typename Step>
static std::vector<State>
cpu_histogram(const int32_t *in, int32_t bins, State identity, Step step,
			  State (*combine)(State, State))
{
	const int shards = 16;
	std::vector<std::vector<State>> part(shards);
	const int64_t n = c_rows;

	bench_parallel(shards,
				   [&](int64_t b, int64_t e)
				   {
					   for (int64_t s = b; s < e; s++)
					   {
						   part[s].assign(bins, identity);
						   for (int64_t i = n * s / shards; i < n * (s + 1) / shards; i++)
							   part[s][in[i]] = step(part[s][in[i]], i);
					   }
				   });
	for (int s = 1; s < shards; s++)
		for (int32_t b = 0; b < bins; b++)
			part[0][b] = combine(part[0][b], part[s][b]);
	return part[0];
}

/* Returns whether the device's states, of the first copy of the inputs, equal the CPU monoids'. */
static bool
states_are_right(MonoidId op, const HistColumns &columns, int32_t bins, const void *states)
{
	static BenchHost host_bins, host_values;
	const int32_t *in = host_bins.fetch<int32_t>(columns.bins[0], c_rows);
	const int32_t *values = host_values.fetch<int32_t>(columns.values[0], c_rows);
	std::vector<char> got((size_t) bins * gpuagg_monoids[op].state_size);
	auto same = [&](auto expect) { return memcmp(expect.data(), got.data(), got.size()) == 0; };

	CUDA_MUST(cudaMemcpy(got.data(), states, got.size(), cudaMemcpyDeviceToHost));
	if (op == MONOID_COUNT)
		return same(cpu_histogram<int64_t>(
			in, bins, 0, [](int64_t a, int64_t) { return count_step(a, 0); }, count_combine));
	return same(cpu_histogram<int64_t>(
		in, bins, 0, [&](int64_t a, int64_t i) { return sum_i64_step(a, values[i]); },
		sum_i64_combine));
}

struct ToInt64
{
	__host__ __device__ int64_t
	operator()(int32_t x) const
	{
		return x;
	}
};

/* Returns the time of a sort of (bin, value) pairs by bin, and a reduction that sums each bin. */
static double
sort_sum_ms(const HistColumns &columns, int bits)
{
	BenchMemory keys(c_rows * 4), vals(c_rows * 4), unique(c_rows * 4),
		out(c_rows * sizeof(int64_t)), runs(8);
	size_t sort_bytes = 0, reduce_bytes = 0;
	int32_t *k = keys.as<int32_t>(), *v = vals.as<int32_t>();
	auto lifted = thrust::make_transform_iterator((const int32_t *) v, ToInt64());
	auto call = [&](void *tmp, const int32_t *bins, const int32_t *values)
	{
		CUDA_MUST(
			cub::DeviceRadixSort::SortPairs(tmp, sort_bytes, bins, k, values, v, c_rows, 0, bits));
		CUDA_MUST(cub::DeviceReduce::ReduceByKey(tmp, reduce_bytes, k, unique.as<int32_t>(), lifted,
												 out.as<int64_t>(), runs.as<int32_t>(),
												 ::cuda::std::plus<>(), (int) c_rows));
	};

	call(nullptr, columns.bins[0], columns.values[0]);
	BenchMemory tmp(std::max(sort_bytes, reduce_bytes));

	return bench_time(c_copies,
					  [&](int c) { call(tmp.memory, columns.bins[c], columns.values[c]); });
}

/* Returns the time of a sort of the bins, and a run-length encoding that counts each bin. */
static double
sort_count_ms(const int32_t *const *in, int bits)
{
	BenchMemory keys(c_rows * 4), unique(c_rows * 4), out(c_rows * 4), runs(8);
	size_t sort_bytes = 0, count_bytes = 0;
	auto call = [&](void *tmp, const int32_t *input)
	{
		CUDA_MUST(cub::DeviceRadixSort::SortKeys(tmp, sort_bytes, input, keys.as<int32_t>(), c_rows,
												 0, bits));
		CUDA_MUST(cub::DeviceRunLengthEncode::Encode(tmp, count_bytes, keys.as<int32_t>(),
													 unique.as<int32_t>(), out.as<int32_t>(),
													 runs.as<int32_t>(), (int) c_rows));
	};

	call(nullptr, in[0]);
	BenchMemory tmp(std::max(sort_bytes, count_bytes));

	return bench_time(c_copies, [&](int c) { call(tmp.memory, in[c]); });
}

static double
sort_reduce_ms(const HistColumns &columns, int32_t bins, MonoidId op)
{
	int bits = (int) ceil(log2((double) bins));

	return op == MONOID_COUNT ? sort_count_ms(columns.bins, bits) : sort_sum_ms(columns, bits);
}

static double
cub_histogram_ms(const int32_t *const *in, int32_t bins)
{
	BenchMemory counts((size_t) bins * 4);
	size_t bytes = 0;

	CUDA_MUST(cub::DeviceHistogram::HistogramEven(nullptr, bytes, in[0], counts.as<int32_t>(),
												  bins + 1, 0, bins, (int) c_rows));
	BenchMemory tmp(bytes);

	return bench_time(
		c_copies,
		[&](int c)
		{
			CUDA_MUST(cub::DeviceHistogram::HistogramEven(
				tmp.memory, bytes, in[c], counts.as<int32_t>(), bins + 1, 0, bins, (int) c_rows));
		});
}

/*
 * Sets the targets of a histogram.  Only counts are compared with CUB's histogram and the paper,
 * which count.  race1_ms: our time at race factor 1.
 */
static void
set_histogram_targets(MonoidId op, int race, int size, double race1_ms, BenchRow *row)
{
	if (c_bins[size] <= 24569)
		row->targets.push_back({BENCH_ROOFLINE, 85});
	else if (c_bins[size] <= 49145)
		row->targets.push_back({BENCH_ROOFLINE, 65});
	else if (op == MONOID_COUNT)
		row->targets.push_back({BENCH_PEER2, 10});
	if (race == 1 && op == MONOID_COUNT)
	{
		row->published = "SC20 (H200)";
		row->published_ms = sc20_hdw[size];
		row->targets.push_back({BENCH_MS, sc20_hdw[size]});
	}
	else if (race > 1)
		row->targets.push_back({BENCH_MS, 2 * race1_ms});
}

/* Checks and measures a histogram, and prints its row; returns our time in milliseconds. */
static double
bench_histogram(const HistOperator &op, int race, int size, const HistColumns &in, double race1_ms)
{
	int32_t bins = c_bins[size];
	BenchMemory states((size_t) bins * gpuagg_monoids[op.op].state_size);
	HistUpdate u;
	BenchRow row;

	for (int c = 0; c < c_copies; c++)
	{
		make_indices<<<4096, 256>>>(in.bins[c], c_rows, bins, race, (uint64_t) c << 40);
		make_indices<<<4096, 256>>>(in.values[c], c_rows, 1000000, 1,
									(uint64_t) (c_copies + c) << 40);
	}
	u.hist.bins.kind = GPUAGG_BIN_INDEX;
	u.hist.bins.ncolumns = 1;
	u.hist.bins.column[0].values = in.bins[0];
	u.hist.bins.column[0].type = GPUAGG_VALUE_I32;
	u.hist.bins.nbins = bins;
	u.hist.nslots = 1;
	u.hist.nrows = c_rows;
	u.hist.slot[0].op = op.op;
	u.hist.slot[0].x.values = in.values[0];
	u.hist.slot[0].x.type = GPUAGG_VALUE_I32;
	u.hist.slot[0].states = states.memory;
	u.prepare();
	STATUS_MUST(gpuagg_hist_init(op.op, states.memory, bins, nullptr));
	u.run();
	row.correct = states_are_right(op.op, in, bins, states.memory);
	row.ours_ms = bench_time(c_copies,
							 [&](int c)
							 {
								 u.hist.bins.column[0].values = in.bins[c];
								 u.hist.slot[0].x.values = in.values[c];
								 u.run();
							 });
	row.problem = std::string(op.name) + ", RF " + std::to_string(race) + ", " +
		std::to_string(bins) + " bins";
	row.bytes = c_rows * (op.op == MONOID_COUNT ? 4.0 : 8.0) +
		(double) bins * gpuagg_monoids[op.op].state_size;
	row.rows = c_rows;
	row.peer1 = "sort + reduce";
	row.peer1_ms = sort_reduce_ms(in, bins, op.op);
	row.peer2 = op.op == MONOID_COUNT ? "cub histogram" : "cub histogram (counts)";
	row.peer2_ms = cub_histogram_ms(in.bins, bins);
	set_histogram_targets(op.op, race, size, race1_ms, &row);
	bench_print(row);
	return row.ours_ms;
}

BENCH_PART(c, "histograms of 50 M int32, as in SC20")
{
	std::vector<std::unique_ptr<BenchMemory>> memory;
	HistColumns in;

	for (int c = 0; c < c_copies; c++)
	{
		memory.emplace_back(new BenchMemory(2 * c_rows * 4));
		in.bins[c] = memory[c]->as<int32_t>();
		in.values[c] = in.bins[c] + c_rows;
	}
	for (const HistOperator &op : c_operators)
	{
		double race1_ms[c_sizes] = {};

		for (int size = 0; size < c_sizes; size++)
			race1_ms[size] = bench_histogram(op, 1, size, in, 0);
		for (int size = 0; size < c_sizes; size++)
			bench_histogram(op, 63, size, in, race1_ms[size]);
	}
}
