/*
 * kernels_hist.cu
 *	  Parts (c) and (d) of the kernel benchmark: histograms as in the SC20 paper
 *	  on generalized histograms, and group-by.
 *
 * Peers are CUB's DeviceHistogram, CUB's radix sort followed by ReduceByKey,
 * and plain atomics in device memory.
 */
#include "kernels_bench.h"

#include <cub/cub.cuh>
#include <thrust/iterator/transform_iterator.h>

#include <math.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "monoid.h"

static __host__ __device__ inline uint64_t
mix(uint64_t x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdULL;
	x ^= x >> 33;
	x *= 0xc4ceb9fe1a85ec53ULL;
	return x ^ x >> 33;
}

/* The inverse of mix. */
static inline uint64_t
unmix(uint64_t x)
{
	x ^= x >> 33;
	x *= 0x9cb4b2f8129337dbULL;
	x ^= x >> 33;
	x *= 0x4f74430c22a54005ULL;
	return x ^ x >> 33;
}

/* ---- generators -------------------------------------------------------------- */

/* SC20: indices spread over every race-th bin. */
static __global__ void
make_indices(int32_t *out, int64_t n, int32_t bins, int32_t race, uint64_t seed)
{
	int32_t		distinct = bins / race > 0 ? bins / race : 1;

	for (int64_t i = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; i < n;
		 i += (int64_t) gridDim.x * blockDim.x)
		out[i] = (int32_t) (mix(seed + i) % distinct) * race;
}

/*
 * Group of row i: uniform, or Zipf with exponent 1.5 by rejection from the
 * continuous distribution, with the ranks scattered over the groups.
 */
static __device__ int64_t
group_of(int64_t i, int64_t groups, bool zipf)
{
	uint64_t	r = mix(i + 77);

	if (!zipf)
		return (int64_t) (r % groups);
	for (;;)
	{
		double		u = (double) (r >> 11) * 0x1p-53,
					v,
					x,
					k,
					ratio;

		r = mix(r + 1);
		v = (double) (r >> 11) * 0x1p-53;
		r = mix(r + 1);
		x = 1.0 - u * (1.0 - 1.0 / sqrt((double) groups + 1.0));
		k = floor(1.0 / (x * x));
		if (k < 1 || k > groups)
			continue;
		ratio = 1.0 / (k * sqrt(k)) / (2.0 / sqrt(k) - 2.0 / sqrt(k + 1.0));
		if (v * 1.7072 < ratio)
			return (int64_t) (((uint64_t) k - 1) * 2654435761ULL % groups);
	}
}

static __host__ __device__ inline double
value_of(int64_t i)
{
	return (double) (mix(i ^ 0x5555555555ULL) >> 11) * 0x1p-53 * 1000.0;
}

static __global__ void
make_groups(int32_t *dense, int64_t *sparse, double *values, int64_t n, int64_t groups, bool zipf)
{
	for (int64_t i = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; i < n;
		 i += (int64_t) gridDim.x * blockDim.x)
	{
		int64_t		g = group_of(i, groups, zipf);

		dense[i] = (int32_t) g;
		sparse[i] = (int64_t) mix(g + 1);
		values[i] = value_of(i);
	}
}

/* ---- part c ------------------------------------------------------------------- */

static const int64_t c_rows = 50000000;
static const int c_copies = 3;	/* inputs in turn, so that none stays in the L2 cache */

struct OpRow
{
	const char *name;
	MonoidId	op;
};

static const OpRow c_ops[] = {
	{"HDW count", MONOID_COUNT},
	{"HDW int32 add", MONOID_SUM_I64},
	{"CAS saturating add", MONOID_SATADD_U24},
	{"XCG argmax", MONOID_ARGMAX},
};

template <typename State, typename Step> static std::vector<State>
host_histogram(const std::vector<int32_t> &in, int32_t bins, State identity, Step step,
			   State (*combine) (State, State))
{
	const int	shards = 16;
	std::vector<std::vector<State>> part(shards);
	int64_t		n = (int64_t) in.size();

	bench_parallel(shards, [&](int64_t b, int64_t e) {
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

static bool
check_states(MonoidId op, const std::vector<int32_t> &in, int32_t bins, const void *states)
{
	std::vector<char> got((size_t) bins * gpuagg_monoids[op].state_size);
	auto		same = [&](auto expect) {
		return memcmp(expect.data(), got.data(), got.size()) == 0;
	};

	CUDA_MUST(cudaMemcpy(got.data(), states, got.size(), cudaMemcpyDeviceToHost));
	switch (op)
	{
		case MONOID_COUNT:
			return same(host_histogram<int64_t>(in, bins, 0, [](int64_t a, int64_t) {
				return count_step(a, 0);
			}, count_combine));
		case MONOID_SUM_I64:
			return same(host_histogram<int64_t>(in, bins, 0, [&](int64_t a, int64_t i) {
				return sum_i64_step(a, in[i]);
			}, sum_i64_combine));
		case MONOID_SATADD_U24:
			return same(host_histogram<uint32_t>(in, bins, 0, [&](uint32_t a, int64_t i) {
				return satadd_u24_step(a, in[i]);
			}, satadd_u24_combine));
		default:
			return same(host_histogram<gpuagg_kv>(in, bins, argmax_identity(), [&](gpuagg_kv a, int64_t i) {
				gpuagg_kv	x = {in[i], i};

				return argmax_step(a, x);
			}, argmax_combine));
	}
}

struct Update
{
	GpuaggHist	hist = GpuaggHist();
	std::unique_ptr<BenchMemory> workspace;
	BenchMemory status{sizeof(GpuaggHistStatus)};
	size_t		bytes = 0;

	void
	prepare()
	{
		hist.status = status.as<GpuaggHistStatus>();
		CUDA_MUST(cudaMemset(hist.status, 0, sizeof(GpuaggHistStatus)));
		STATUS_MUST(gpuagg_hist_update(&hist, nullptr, &bytes, nullptr));
		workspace.reset(new BenchMemory(bytes));
	}
	void run() { STATUS_MUST(gpuagg_hist_update(&hist, workspace->memory, &bytes, nullptr)); }
};

struct KeyValueMax
{
	__device__ int64_t operator()(int64_t a, int64_t b) const { return a > b ? a : b; }
};

/* Sort (index, payload) and reduce; the payload is the index or the row. */
static double
sort_reduce_ms(const int32_t *const *in, int32_t bins, MonoidId op)
{
	int			bits = (int) ceil(log2((double) bins));
	BenchMemory keys(c_rows * 4),
				vals(c_rows * 4),
				unique(c_rows * 4),
				out(c_rows * 8),
				runs(8);
	size_t		sort_bytes = 0,
				reduce_bytes = 0;
	int32_t    *k = keys.as<int32_t>(),
			   *v = vals.as<int32_t>();
	auto		reduce = [&](void *tmp, size_t &bytes) {
		if (op == MONOID_COUNT)
			CUDA_MUST(cub::DeviceRunLengthEncode::Encode(tmp, bytes, k, unique.as<int32_t>(),
														 out.as<int32_t>(), runs.as<int32_t>(), (int) c_rows));
		else if (op == MONOID_ARGMAX)
			CUDA_MUST(cub::DeviceReduce::ReduceByKey(tmp, bytes, k, unique.as<int32_t>(), v, out.as<int64_t>(),
													 runs.as<int32_t>(), KeyValueMax(), (int) c_rows));
		else
			CUDA_MUST(cub::DeviceReduce::ReduceByKey(tmp, bytes, k, unique.as<int32_t>(), v, out.as<int64_t>(),
													 runs.as<int32_t>(), ::cuda::std::plus<>(), (int) c_rows));
	};
	auto		sort = [&](void *tmp, size_t &bytes, const int32_t *input) {
		if (op == MONOID_COUNT)
			CUDA_MUST(cub::DeviceRadixSort::SortKeys(tmp, bytes, input, k, c_rows, 0, bits));
		else
			CUDA_MUST(cub::DeviceRadixSort::SortPairs(tmp, bytes, input, k, input, v, c_rows, 0, bits));
	};

	sort(nullptr, sort_bytes, in[0]);
	reduce(nullptr, reduce_bytes);
	BenchMemory tmp(std::max(sort_bytes, reduce_bytes));

	return bench_time(c_copies, [&](int c) {
		sort(tmp.memory, sort_bytes, in[c]);
		reduce(tmp.memory, reduce_bytes);
	});
}

static double
cub_histogram_ms(const int32_t *const *in, int32_t bins)
{
	BenchMemory counts((size_t) bins * 4);
	size_t		bytes = 0;

	CUDA_MUST(cub::DeviceHistogram::HistogramEven(nullptr, bytes, in[0], counts.as<int32_t>(), bins + 1,
												  0, bins, (int) c_rows));
	BenchMemory tmp(bytes);

	return bench_time(c_copies, [&](int c) {
		CUDA_MUST(cub::DeviceHistogram::HistogramEven(tmp.memory, bytes, in[c], counts.as<int32_t>(),
													  bins + 1, 0, bins, (int) c_rows));
	});
}

BENCH_PART(c, "histograms of 50 M int32, as in SC20")
{
	static const int32_t sizes[] = {31, 127, 505, 2041, 6137, 12281, 24569, 49145, 196607, 393215, 786431,
		1572863};
	std::vector<std::unique_ptr<BenchMemory>> memory;
	const int32_t *in[c_copies];
	std::vector<int32_t> host(c_rows);

	for (int c = 0; c < c_copies; c++)
	{
		memory.emplace_back(new BenchMemory(c_rows * 4));
		in[c] = memory[c]->as<int32_t>();
	}
	for (const OpRow &op : c_ops)
		for (int race : {1, 63})
			for (int32_t bins : sizes)
			{
				BenchMemory states((size_t) bins * gpuagg_monoids[op.op].state_size);
				Update		u;
				BenchRow	row;
				char		name[100];

				for (int c = 0; c < c_copies; c++)
					make_indices<<<4096, 256>>>((int32_t *) in[c], c_rows, bins, race, (uint64_t) c << 40);
				CUDA_MUST(cudaMemcpy(host.data(), in[0], c_rows * 4, cudaMemcpyDeviceToHost));
				u.hist.bins.kind = GPUAGG_BIN_INDEX;
				u.hist.bins.ncolumns = 1;
				u.hist.bins.column[0].values = in[0];
				u.hist.bins.column[0].type = GPUAGG_VALUE_I32;
				u.hist.bins.nbins = bins;
				u.hist.nslots = 1;
				u.hist.nrows = c_rows;
				u.hist.slot[0].op = op.op;
				u.hist.slot[0].x = u.hist.bins.column[0];
				u.hist.slot[0].states = states.memory;
				u.prepare();
				STATUS_MUST(gpuagg_hist_init(op.op, states.memory, bins, nullptr));
				u.run();
				row.correct = check_states(op.op, host, bins, states.memory);
				row.ours_ms = bench_time(c_copies, [&](int c) {
					u.hist.bins.column[0].values = u.hist.slot[0].x.values = in[c];
					u.run();
				});
				snprintf(name, sizeof(name), "%s, RF %d, %d bins", op.name, race, bins);
				row.problem = name;
				row.bytes = c_rows * 4.0 + (double) bins * gpuagg_monoids[op.op].state_size;
				row.rows = c_rows;
				if (op.op == MONOID_COUNT)
				{
					row.peer2 = "cub histogram";
					row.peer2_ms = cub_histogram_ms(in, bins);
				}
				if (race == 1)
				{
					row.peer1 = "sort + reduce";
					row.peer1_ms = sort_reduce_ms(in, bins, op.op);
				}
				bench_print(row);
			}
}

/* ---- part d ------------------------------------------------------------------- */

struct CountSum
{
	int64_t		count;
	double		sum;
};

struct ToCountSum
{
	__host__ __device__ CountSum operator()(double v) const { return {1, v}; }
};

struct AddCountSum
{
	__host__ __device__ CountSum
	operator()(const CountSum &a, const CountSum &b) const
	{
		return {a.count + b.count, a.sum + b.sum};
	}
};

static __global__ void
plain_atomics(const int32_t *keys, const double *values, int64_t n, unsigned long long *count, double *sum)
{
	for (int64_t i = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; i < n;
		 i += (int64_t) gridDim.x * blockDim.x)
	{
		atomicAdd(&count[keys[i]], 1ULL);
		atomicAdd(&sum[keys[i]], values[i]);
	}
}

/* Sort pairs by key and reduce equal keys to count and sum. */
template <typename Key> static double
sort_group_ms(const Key *keys, const double *values, int64_t n, int bits)
{
	BenchMemory k(n * sizeof(Key)),
				v(n * 8),
				unique(n * sizeof(Key)),
				out(n * sizeof(CountSum)),
				runs(8);
	size_t		sort_bytes = 0,
				reduce_bytes = 0;
	auto		in = thrust::make_transform_iterator(v.as<double>(), ToCountSum());

	CUDA_MUST(cub::DeviceRadixSort::SortPairs(nullptr, sort_bytes, keys, k.as<Key>(), values, v.as<double>(),
											  n, 0, bits));
	CUDA_MUST(cub::DeviceReduce::ReduceByKey(nullptr, reduce_bytes, k.as<Key>(), unique.as<Key>(), in,
											 out.as<CountSum>(), runs.as<int64_t>(), AddCountSum(), (int) n));
	BenchMemory tmp(std::max(sort_bytes, reduce_bytes));

	return bench_time(1, [&](int) {
		CUDA_MUST(cub::DeviceRadixSort::SortPairs(tmp.memory, sort_bytes, keys, k.as<Key>(), values,
												  v.as<double>(), n, 0, bits));
		CUDA_MUST(cub::DeviceReduce::ReduceByKey(tmp.memory, reduce_bytes, k.as<Key>(), unique.as<Key>(), in,
												 out.as<CountSum>(), runs.as<int64_t>(), AddCountSum(), (int) n));
	});
}

/*
 * Groups whose number divides by `step`, by the CPU monoids in row order.
 * bin_of gives the bin of a group, -1 if the device has none.
 */
static bool
check_groups(const std::vector<int32_t> &group, int64_t groups, const std::vector<int64_t> &count,
			 const std::vector<double> &sum, const std::function<int64_t(int64_t)> &bin_of)
{
	/* powers of two, so that the loop over rows needs no division */
	int			skip = groups > 1000000 ? (int) log2((double) groups / 1000000) : 0;
	int64_t		step = (int64_t) 1 << skip;
	int64_t		some = (groups + step - 1) >> skip;
	std::vector<CountSum> expect(some, CountSum{0, sum_f64_identity()});
	std::vector<char> bad(64, 0);

	bench_parallel(64, [&](int64_t b, int64_t e) {
		for (int64_t i = 0; i < (int64_t) group.size(); i++)
		{
			int64_t		g = group[i];
			int64_t		shard = g >> skip & 63;

			if (shard >= b && shard < e && (g & (step - 1)) == 0)
			{
				CountSum   &s = expect[g >> skip];

				s.count = count_step(s.count, 0);
				s.sum = sum_f64_step(s.sum, value_of(i));
			}
		}
		for (int64_t k = 0; k < some; k++)
			if ((k & 63) >= b && (k & 63) < e)
			{
				int64_t		bin = bin_of(k << skip);

				if (expect[k].count == 0 ? bin >= 0 && count[bin] != 0
					: bin < 0 || count[bin] != expect[k].count ||
					fabs(sum[bin] - expect[k].sum) > 1e-9 * fabs(expect[k].sum))
					bad[k & 63] = 1;
			}
	});
	return std::count(bad.begin(), bad.end(), 1) == 0;
}

static void
set_count_sum(GpuaggHist &h, const int32_t *bins, const double *values, int64_t n, int64_t groups,
			  void *count, void *sum)
{
	h.bins.kind = GPUAGG_BIN_INDEX;
	h.bins.ncolumns = 1;
	h.bins.column[0].values = bins;
	h.bins.column[0].type = GPUAGG_VALUE_I32;
	h.bins.nbins = groups;
	h.nslots = 2;
	h.nrows = n;
	h.slot[0].op = MONOID_COUNT;
	h.slot[0].states = count;
	h.slot[1].op = MONOID_SUM_F64;
	h.slot[1].x.values = values;
	h.slot[1].x.type = GPUAGG_VALUE_F64;
	h.slot[1].states = sum;
}

static void
bench_direct(const int32_t *keys, const double *values, int64_t n, int64_t groups, bool zipf,
			 const std::vector<int32_t> &group)
{
	BenchMemory count(groups * 8),
				sum(groups * 8);
	Update		u;
	BenchRow	row;
	char		name[100];
	std::vector<int64_t> got_count(groups);
	std::vector<double> got_sum(groups);

	set_count_sum(u.hist, keys, values, n, groups, count.memory, sum.memory);
	u.prepare();
	STATUS_MUST(gpuagg_hist_init(MONOID_COUNT, count.memory, groups, nullptr));
	STATUS_MUST(gpuagg_hist_init(MONOID_SUM_F64, sum.memory, groups, nullptr));
	u.run();
	CUDA_MUST(cudaMemcpy(got_count.data(), count.memory, groups * 8, cudaMemcpyDeviceToHost));
	CUDA_MUST(cudaMemcpy(got_sum.data(), sum.memory, groups * 8, cudaMemcpyDeviceToHost));
	row.correct = check_groups(group, groups, got_count, got_sum, [](int64_t g) { return g; });
	row.ours_ms = bench_time(1, [&](int) { u.run(); });
	snprintf(name, sizeof(name), "direct, %s, %ld groups", zipf ? "zipf" : "uniform", (long) groups);
	row.problem = name;
	row.bytes = n * 12.0 + groups * 16.0;
	row.rows = (double) n;
	row.peer1 = "atomics";
	row.peer1_ms = bench_time(1, [&](int) {
		plain_atomics<<<2048, 256>>>(keys, values, n, count.as<unsigned long long>(), sum.as<double>());
	});
	row.peer2 = "sort + reduce";
	row.peer2_ms = sort_group_ms<int32_t>(keys, values, n, (int) ceil(log2((double) groups)));
	bench_print(row);
}

/* Sparse keys through a hash table, from nothing to counts and sums; the estimate counts, too. */
struct HashRun
{
	GpuaggGroupTable table = GpuaggGroupTable();
	BenchMemory slots,
				unique,
				counters,
				count,
				sum,
				status;
	std::unique_ptr<BenchMemory> estimate_workspace,
				workspace;
	size_t		estimate_bytes = 0,
				workspace_bytes = 0;
	GpuaggHist	hist = GpuaggHist();
	const int64_t *keys;
	int64_t		n,
				distinct;

	HashRun(const int64_t *k, const double *v, int64_t rows, int64_t capacity)
		: slots(gpuagg_group_slot_bytes(8, capacity)), unique(capacity * 8),
		counters(sizeof(GpuaggGroupCounters)), count(capacity * 8), sum(capacity * 8),
		status(sizeof(GpuaggHistStatus)), keys(k), n(rows)
	{
		table.key_bytes = 8;
		table.capacity = capacity;
		table.slots = slots.memory;
		table.keys = unique.memory;
		table.counters = counters.as<GpuaggGroupCounters>();
		set_count_sum(hist, nullptr, v, n, capacity, count.memory, sum.memory);
		hist.status = status.as<GpuaggHistStatus>();
		CUDA_MUST(cudaMemset(hist.status, 0, sizeof(GpuaggHistStatus)));
		STATUS_MUST(gpuagg_group_estimate(8, keys, n, &distinct, nullptr, &estimate_bytes, nullptr));
		estimate_workspace.reset(new BenchMemory(estimate_bytes));
		estimate();
		STATUS_MUST(gpuagg_group_update(&table, keys, nullptr, nullptr, &hist, distinct, 0, nullptr, &workspace_bytes,
										nullptr));
		workspace.reset(new BenchMemory(workspace_bytes));
	}
	void
	estimate()
	{
		STATUS_MUST(gpuagg_group_estimate(8, keys, n, &distinct, estimate_workspace->memory, &estimate_bytes, nullptr));
	}
	void
	run()
	{
		estimate();
		STATUS_MUST(gpuagg_group_init(&table, nullptr));
		STATUS_MUST(gpuagg_hist_init(MONOID_COUNT, count.memory, table.capacity, nullptr));
		STATUS_MUST(gpuagg_hist_init(MONOID_SUM_F64, sum.memory, table.capacity, nullptr));
		STATUS_MUST(gpuagg_group_update(&table, keys, nullptr, nullptr, &hist, distinct, 0, workspace->memory,
										&workspace_bytes, nullptr));
	}
};

static void
bench_hash(const int64_t *keys, const double *values, int64_t n, int64_t groups, bool zipf,
		   const std::vector<int32_t> &group)
{
	BenchRow	row;
	char		name[100];
	int64_t		found,
				pending,
				null_bin;
	HashRun		run(keys, values, n, std::min(groups, n) + 1000);
	int64_t		capacity = run.table.capacity;
	std::vector<int64_t> got_count(capacity),
				unique(capacity);
	std::vector<double> got_sum(capacity);
	std::vector<int64_t> where(groups, -1);

	run.run();
	row.correct = gpuagg_group_status(&run.table, &found, &pending, &null_bin, nullptr) == GPUAGG_CUDA_OK;
	CUDA_MUST(cudaMemcpy(got_count.data(), run.count.memory, capacity * 8, cudaMemcpyDeviceToHost));
	CUDA_MUST(cudaMemcpy(got_sum.data(), run.sum.memory, capacity * 8, cudaMemcpyDeviceToHost));
	CUDA_MUST(cudaMemcpy(unique.data(), run.unique.memory, capacity * 8, cudaMemcpyDeviceToHost));
	for (int64_t b = 0; b < found; b++)
	{
		int64_t		g = (int64_t) unmix(unique[b]) - 1;

		if (g < 0 || g >= groups || where[g] >= 0)
			row.correct = false;
		else
			where[g] = b;
	}
	row.correct = row.correct &&
		check_groups(group, groups, got_count, got_sum, [&](int64_t g) { return where[g]; });
	row.ours_ms = bench_time(1, [&](int) { run.run(); });
	snprintf(name, sizeof(name), "hash, %s, %ld groups", zipf ? "zipf" : "uniform", (long) groups);
	row.problem = name;
	row.bytes = n * 16.0 + found * 24.0;
	row.rows = (double) n;
	row.peer2 = "sort + reduce";
	row.peer2_ms = sort_group_ms<int64_t>(keys, values, n, 64);
	bench_print(row);
}

BENCH_PART(d, "group-by of 2^27 rows: count(*), sum(float8)")
{
	int64_t		n = (int64_t) 1 << std::min(27, bench_max_log2());
	BenchMemory dense(n * 4),
				sparse(n * 8),
				values(n * 8);
	std::vector<int32_t> group(n);

	for (bool zipf : {false, true})
		for (int64_t groups : {4L, 100L, 10000L, 1000000L, 10000000L, 100000000L})
		{
			make_groups<<<4096, 256>>>(dense.as<int32_t>(), sparse.as<int64_t>(), values.as<double>(), n,
									   groups, zipf);
			CUDA_MUST(cudaMemcpy(group.data(), dense.memory, n * 4, cudaMemcpyDeviceToHost));
			bench_direct(dense.as<int32_t>(), values.as<double>(), n, groups, zipf, group);
			bench_hash(sparse.as<int64_t>(), values.as<double>(), n, groups, zipf, group);
		}
}
