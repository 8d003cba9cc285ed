/*
 * kernels_skew.cu
 *	  Part (e) of the kernel benchmark: histograms of sorted rows and of rows with a hot bin; also
 *	  with operators and values for which shared memory has no native atomics.
 *
 * The part has no targets.  Its purpose is to find distributions of rows that take many times as
 * long as uniform ones.  The peer sorts the rows by bin and reduces them with the same operator, so
 * no distribution slows it down.
 */
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <thrust/iterator/transform_iterator.h>

#include <math.h>
#include <string.h>

#include <algorithm>
#include <mutex>
#include <vector>

#include "common.cuh"
#include "kernels_bench.h"

/* The distribution of the rows over the bins. */
enum Shape
{
	UNIFORM,
	SORTED,
	HOT /* 9 of 10 rows are in one bin */
};

static const char *const shape_names[] = {"uniform", "sorted", "hot"};

/* The values of the rows. */
enum ValueKind
{
	ONE_TO_TWO, /* doubles from 1 to 2 */
	NEAR_ONE,   /* doubles so near 1 that products stay finite */
	WIDE,       /* doubles with exponents in a range of 80 */
	WHOLE       /* any int64 */
};

/* Returns the bin of row i of n. */
static __host__ __device__ inline int32_t
bin_of(int64_t i, int64_t n, int64_t bins, Shape shape)
{
	uint64_t r = bench_mix(i + 1);

	if (shape == SORTED)
		return (int32_t) (i * bins / n);
	return (int32_t) (shape == HOT && bench_mix(r) % 10 ? bins / 2 : r % bins);
}

/* value_of() sets *v to the value of row i. */
static __host__ __device__ inline void
value_of(int64_t i, ValueKind kind, double *v)
{
	uint64_t r = bench_mix(i ^ 0x5555555555ULL);
	double u = (double) (r >> 11) * 0x1p-53;

	*v = kind == ONE_TO_TWO ? 1 + u :
		kind == NEAR_ONE    ? 1 + (u - 0.5) * 1e-9 :
							  (1 + u) * exp2((double) (bench_mix(r) % 80) - 40);
}

static __host__ __device__ inline void
value_of(int64_t i, ValueKind kind, int64_t *v)
{
	*v = (int64_t) bench_mix(i ^ 0x5555555555ULL);
}

template <typename T>
static __global__ void
make_rows(int32_t *bin, T *value, int64_t n, int64_t bins, Shape shape, ValueKind kind)
{
	for (int64_t i = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; i < n;
		 i += (int64_t) gridDim.x * blockDim.x)
	{
		bin[i] = bin_of(i, n, bins, shape);
		value_of(i, kind, &value[i]);
	}
}

/* ---- the check ------------------------------------------------------------------- */

/* input_of() makes the operator's input from a value; argmax takes it as key and as value. */
template <typename T>
static __host__ __device__ inline void
input_of(T v, T *x)
{
	*x = v;
}
static __host__ __device__ inline void
input_of(int64_t v, gpuagg_i128 *x)
{
	*x = v;
}
static __host__ __device__ inline void
input_of(int64_t v, gpuagg_kv *x)
{
	x->key = x->value = v;
}

/* Returns whether two doubles are equal but for rounding: the order of additions differs. */
static bool
is_near(double a, double b)
{
	return fabs(a - b) <= 1e-7 * fabs(b);
}
/* Returns whether a state of the device is right; only sums of doubles may differ by rounding. */
template <typename S>
static bool
is_same(const S &a, const S &b)
{
	return memcmp(&a, &b, sizeof(S)) == 0;
}
static bool
is_same(const double &a, const double &b)
{
	return is_near(a, b);
}
static bool
is_same(const gpuagg_accum &a, const gpuagg_accum &b)
{
	return a.n == b.n && is_near(a.sx, b.sx) && is_near(a.sxx, b.sxx);
}

/* Returns whether the device's states equal those of the CPU monoids. */
template <class Op, typename T>
static bool
states_are_right(const void *device_states, int64_t n, int64_t bins, Shape shape, ValueKind kind)
{
	typedef typename Op::State S;
	static BenchHost got_memory;
	const S *got = got_memory.fetch<S>(device_states, bins);
	std::vector<S> expect(bins, Op::identity());
	std::mutex adding;
	int64_t wrong = 0;

	bench_parallel(n,
				   [&](int64_t begin, int64_t end)
				   {
					   std::vector<S> part(bins, Op::identity());

					   for (int64_t i = begin; i < end; i++)
					   {
						   S &state = part[bin_of(i, n, bins, shape)];
						   T v;
						   typename Op::Input x;

						   value_of(i, kind, &v);
						   input_of(v, &x);
						   state = Op::step(state, x);
					   }
					   std::lock_guard<std::mutex> lock(adding);

					   for (int64_t b = 0; b < bins; b++)
						   expect[b] = Op::combine(expect[b], part[b]);
				   });
	for (int64_t b = 0; b < bins; b++)
		wrong += !is_same(got[b], expect[b]);
	if (wrong > 0)
		printf("%lld of %lld bins differ from the CPU monoids\n", (long long) wrong,
			   (long long) bins);
	return wrong == 0;
}

/* ---- the peer -------------------------------------------------------------------- */

template <class Op, typename T> struct LiftRow
{
	__host__ __device__ typename Op::State
	operator()(T v) const
	{
		typename Op::Input x;

		input_of(v, &x);
		return Op::lift(x);
	}
};

template <class Op> struct CombineStates
{
	typedef typename Op::State S;
	__host__ __device__ S
	operator()(const S &a, const S &b) const
	{
		return Op::combine(a, b);
	}
};

/* Returns the time to sort (bin, value) pairs by bin and to reduce each bin. */
template <class Op, typename T>
static double
sort_reduce_ms(const int32_t *bin, const T *value, int64_t n, int64_t bins)
{
	BenchMemory k(n * 4), v(n * sizeof(T)), unique(n * 4), out(bins * sizeof(typename Op::State)),
		runs(8);
	size_t sort_bytes = 0, reduce_bytes = 0;
	int bits = (int) ceil(log2((double) bins + 1));
	auto in = thrust::make_transform_iterator(v.as<T>(), LiftRow<Op, T>());

	CUDA_MUST(cub::DeviceRadixSort::SortPairs(nullptr, sort_bytes, bin, k.as<int32_t>(), value,
											  v.as<T>(), n, 0, bits));
	CUDA_MUST(cub::DeviceReduce::ReduceByKey(nullptr, reduce_bytes, k.as<int32_t>(),
											 unique.as<int32_t>(), in, out.as<typename Op::State>(),
											 runs.as<int64_t>(), CombineStates<Op>(), (int) n));
	BenchMemory tmp(std::max(sort_bytes, reduce_bytes));

	return bench_time(
		1,
		[&](int)
		{
			CUDA_MUST(cub::DeviceRadixSort::SortPairs(tmp.memory, sort_bytes, bin, k.as<int32_t>(),
													  value, v.as<T>(), n, 0, bits));
			CUDA_MUST(cub::DeviceReduce::ReduceByKey(
				tmp.memory, reduce_bytes, k.as<int32_t>(), unique.as<int32_t>(), in,
				out.as<typename Op::State>(), runs.as<int64_t>(), CombineStates<Op>(), (int) n));
		});
}

/* ---- rows of the table ----------------------------------------------------------- */

/* Checks and measures an operator for one number of bins and one shape, and prints the row. */
template <class Op, typename T>
static void
bench_shape(const char *name, GpuaggValueType type, ValueKind kind, int64_t n, int64_t bins,
			Shape shape)
{
	BenchMemory bin(n * 4), value(n * sizeof(T)), states(bins * sizeof(typename Op::State)),
		status(sizeof(GpuaggHistStatus));
	GpuaggHist hist = GpuaggHist();
	size_t bytes = 0;
	BenchRow row;

	make_rows<<<4096, 256>>>(bin.as<int32_t>(), value.as<T>(), n, bins, shape, kind);
	CUDA_MUST(cudaMemset(status.memory, 0, sizeof(GpuaggHistStatus)));
	hist.bins.kind = GPUAGG_BIN_INDEX;
	hist.bins.ncolumns = 1;
	hist.bins.column[0] = {bin.memory, nullptr, GPUAGG_VALUE_I32};
	hist.bins.nbins = bins;
	hist.nslots = 1;
	hist.nrows = n;
	hist.slot[0].op = Op::id;
	hist.slot[0].x = {value.memory, nullptr, type};
	if (Op::id == MONOID_ARGMAX)
		hist.slot[0].y = hist.slot[0].x;
	hist.slot[0].states = states.memory;
	hist.status = status.as<GpuaggHistStatus>();
	STATUS_MUST(gpuagg_hist_update(&hist, nullptr, &bytes, nullptr));
	BenchMemory workspace(bytes);
	auto run = [&](int)
	{ STATUS_MUST(gpuagg_hist_update(&hist, workspace.memory, &bytes, nullptr)); };

	STATUS_MUST(gpuagg_hist_init(Op::id, states.memory, bins, nullptr));
	run(0);
	row.correct = states_are_right<Op, T>(states.memory, n, bins, shape, kind);
	row.problem = std::string(name) + ", " + std::to_string(bins) + " bins, " + shape_names[shape];
	row.bytes = n * (4.0 + sizeof(T)) + (double) bins * sizeof(typename Op::State);
	row.rows = (double) n;
	row.ours_ms = bench_time(1, run);
	row.peer1 = "sort + reduce";
	row.peer1_ms = sort_reduce_ms<Op, T>(bin.as<int32_t>(), value.as<T>(), n, bins);
	bench_print(row);
}

/* Measures an operator for all numbers of bins and all shapes; --quick: only 10,000 bins. */
template <class Op, typename T>
static void
bench_operator(const char *name, GpuaggValueType type, ValueKind kind)
{
	int64_t n = (int64_t) 1 << std::min(bench_max_log2(), 27);

	for (int64_t bins : {10, 1000, 10000, 100000, 1000000})
		for (Shape shape : {UNIFORM, SORTED, HOT})
			if (!bench_quick() || bins == 10000)
				bench_shape<Op, T>(name, type, kind, n, bins, shape);
}

BENCH_PART(e, "histograms of 2^27 rows (or --max), sorted or with a hot bin")
{
	bench_operator<Op_sum_f64, double>("sum float8", GPUAGG_VALUE_F64, ONE_TO_TWO);
	bench_operator<Op_sum_f64, double>("sum float8 over 80 binades", GPUAGG_VALUE_F64, WIDE);
	bench_operator<Op_accum_f64, double>("deviations float8", GPUAGG_VALUE_F64, ONE_TO_TWO);
	bench_operator<Op_accum_f64, double>("deviations over 80 binades", GPUAGG_VALUE_F64, WIDE);
	bench_operator<Op_sum_i64, int64_t>("sum int8", GPUAGG_VALUE_I64, WHOLE);
	bench_operator<Op_product_f64, double>("product float8", GPUAGG_VALUE_F64, NEAR_ONE);
	bench_operator<Op_max_dec, int64_t>("max decimal", GPUAGG_VALUE_I64, WHOLE);
	bench_operator<Op_argmax, int64_t>("argmax int8", GPUAGG_VALUE_I64, WHOLE);
}
