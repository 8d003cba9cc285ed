/*
 * kernels_segmented.cu
 *	  Part (b) of the kernel benchmark: segmented reductions, compared with
 *	  cub::DeviceReduce::ReduceByKey.
 *
 * Values are hashes of their index, so the host can check results without a copy of the inputs.
 * They are chosen so that states are exact in any order of combination.
 * The roofline counts values, 8-byte offsets and states.
 */
#include <cub/device/device_reduce.cuh>
#include <thrust/iterator/transform_iterator.h>

#include <math.h>
#include <string.h>

#include <algorithm>
#include <mutex>
#include <vector>

#include "common.cuh"
#include "kernels_bench.h"

/* ---- values ------------------------------------------------------------ */

static __host__ __device__ inline uint64_t
mix(uint64_t x)
{
	x *= 0x9E3779B97F4A7C15ull;
	x = (x ^ (x >> 32)) * 0xBF58476D1CE4E5B9ull;
	return x ^ (x >> 29);
}

/* value_at() sets *x to value i of a column, for each input type. */
static __host__ __device__ inline void
value_at(int64_t i, int8_t *x)
{
	*x = (mix(i) & 15) != 0;
}
static __host__ __device__ inline void
value_at(int64_t i, int64_t *x)
{
	*x = (int64_t) (mix(i) >> 30) - (1ll << 33);
}
static __host__ __device__ inline void
value_at(int64_t i, double *x)
{
	*x = (double) (int) (mix(i) & 0xFFFFF) - 524288.0;
}

static __host__ __device__ inline void
value_at(int64_t i, gpuagg_f64x2 *x)
{
	uint64_t h = mix(i);

	x->x = (h >> 40) & 1 ? 1.0 : -1.0;
	x->y = (double) (int) (h & 1023) - 512.0;
}

/*
 * Fills in a k by k matrix: a permutation i -> (s * i + t) mod k, with random signs.  Products of
 * such matrices are exact.
 */
template <int k>
static __host__ __device__ inline void
matrix_at(int64_t i, double *m)
{
	uint64_t h = mix(i);
	int shift = (int) ((h >> 8) % k);

	for (int r = 0; r < k; r++)
		for (int c = 0; c < k; c++)
			m[r * k + c] = (h & 1 ? r + shift : 2 * k - r - shift) % k == c ?
				(h >> (r + 32) & 1 ? 1.0 : -1.0) :
				0.0;
}
static __host__ __device__ inline void
value_at(int64_t i, gpuagg_mat2 *x)
{
	matrix_at<2>(i, x->m);
}
static __host__ __device__ inline void
value_at(int64_t i, gpuagg_mat3 *x)
{
	matrix_at<3>(i, x->m);
}
static __host__ __device__ inline void
value_at(int64_t i, gpuagg_mat5 *x)
{
	matrix_at<5>(i, x->m);
}

template <class InT>
static __global__ void
fill_values(InT *x, int64_t n)
{
	for (int64_t i = (int64_t) blockIdx.x * blockDim.x + threadIdx.x; i < n;
		 i += (int64_t) gridDim.x * blockDim.x)
		value_at(i, x + i);
}

/* Returns whether two states are equal.  States of doubles may differ in the sign of 0. */
template <class T>
static bool
same_state(const T &a, const T &b)
{
	return memcmp(&a, &b, sizeof(T)) == 0;
}

/* Returns whether two structs of doubles are equal, double by double. */
template <class T>
static bool
same_doubles(const T &a, const T &b)
{
	const double *x = (const double *) &a, *y = (const double *) &b;

	for (size_t i = 0; i < sizeof(T) / sizeof(double); i++)
		if (x[i] != y[i])
			return false;
	return true;
}
static bool
same_state(const gpuagg_f64x2 &a, const gpuagg_f64x2 &b)
{
	return same_doubles(a, b);
}
static bool
same_state(const gpuagg_mat2 &a, const gpuagg_mat2 &b)
{
	return same_doubles(a, b);
}
static bool
same_state(const gpuagg_mat3 &a, const gpuagg_mat3 &b)
{
	return same_doubles(a, b);
}
static bool
same_state(const gpuagg_mat5 &a, const gpuagg_mat5 &b)
{
	return same_doubles(a, b);
}

/* ---- geometries -------------------------------------------------------- */

/* A division of a column in segments. */
struct Geometry
{
	std::string name;
	std::vector<int64_t> offsets;
};

/* Returns 2^log2 segments of equal length. */
static Geometry
regular(int64_t n, int log2)
{
	Geometry g = {"2^" + std::to_string(log2) + " segments", {}};
	int64_t segments = (int64_t) 1 << log2;

	g.offsets.resize(segments + 1);
	bench_parallel(segments + 1,
				   [&](int64_t begin, int64_t end)
				   {
					   for (int64_t s = begin; s < end; s++)
						   g.offsets[s] = (int64_t) ((__int128) n * s >> log2);
				   });
	return g;
}

/* Returns segments for n elements, whose lengths are length(random number); the last one is cut. */
template <class F>
static Geometry
irregular(const std::string &name, int64_t n, F length)
{
	Geometry g = {name, {0}};

	for (int64_t s = 0; g.offsets.back() < n; s++)
		g.offsets.push_back(std::min(n, g.offsets.back() + length(mix(s + 1))));
	return g;
}

static std::vector<Geometry>
irregular_geometries(int64_t n)
{
	std::vector<Geometry> all;
	int64_t tiny = std::min<int64_t>(1 << 20, n / 4);

	all.push_back(irregular("uniform 0 to 64", n, [](uint64_t h) { return (int64_t) (h % 65); }));
	all.push_back(irregular("power law", n,
							[n](uint64_t h)
							{
								double u = (double) (h >> 12) * 0x1p-52 + 1e-12;

								return std::min<int64_t>((int64_t) (1 / u), n);
							}));
	all.push_back(irregular("a giant, 2^" + std::to_string((int) log2((double) tiny)) + " tiny", n,
							[n, tiny](uint64_t h)
							{ return h == mix(tiny / 2) ? n - tiny : (int64_t) 1; }));
	all.push_back(
		irregular("half empty", n, [](uint64_t h) { return h & 1 ? (int64_t) (h >> 8) % 32 : 0; }));
	return all;
}

/* ---- checking ---------------------------------------------------------- */

/* Returns the state of the elements from begin to end (exclusive), computed on the CPU. */
template <class Op>
static typename Op::State
fold_values(int64_t begin, int64_t end)
{
	typename Op::State v = Op::identity();

	for (int64_t i = begin; i < end; i++)
	{
		typename Op::Input x;

		value_at(i, &x);
		v = Op::step(v, x);
	}
	return v;
}

/*
 * Compares the device's states with those of the CPU monoids.  Threads take chunks of the elements
 * in parallel.  A segment inside a chunk is compared there.  For other segments, each chunk keeps a
 * partial state; these are combined afterwards.
 */
template <class Op> struct Check
{
	typedef typename Op::State State;
	struct Partial
	{
		int64_t segment;
		State state;
	};
	static const int nchunks = 64;

	const std::vector<int64_t> &offsets;
	const State *states;
	std::vector<Partial> partials[nchunks];
	int64_t wrong[nchunks + 1] = {}; /* wrong segments; the last: those of several chunks */
	int64_t first_wrong = INT64_MAX;
	std::mutex lock;

	Check(const std::vector<int64_t> &o, const State *s) : offsets(o), states(s)
	{
	}

	/* Counts the segment in wrong[p] if its state is not the expected one. */
	void
	compare(int p, int64_t segment, const State &expect)
	{
		if (same_state(expect, states[segment]))
			return;
		wrong[p]++;
		if (wrong[p] == 1)
		{
			std::lock_guard<std::mutex> guard(lock);

			first_wrong = std::min(first_wrong, segment);
		}
	}

	/* Compares the segments inside chunk p, and keeps partial states of the others. */
	void
	check_chunk(int p)
	{
		int64_t nseg = (int64_t) offsets.size() - 1;
		int64_t begin = offsets.back() * p / nchunks;
		int64_t end = offsets.back() * (p + 1) / nchunks;
		int64_t s =
			std::lower_bound(offsets.begin() + 1, offsets.end(), begin) - offsets.begin() - 1;

		for (; s < nseg && (offsets[s] < end || p == nchunks - 1); s++)
		{
			/* a segment that ends where this chunk starts belongs to the chunk before */
			if (offsets[s] < begin && offsets[s + 1] == begin)
				continue;

			State v = fold_values<Op>(std::max(begin, offsets[s]), std::min(end, offsets[s + 1]));

			if (offsets[s] >= begin && offsets[s + 1] <= end)
				compare(p, s, v);
			else
				partials[p].push_back({s, v});
		}
	}

	/* Returns whether all segments are right; prints the first wrong one. */
	bool
	run()
	{
		int64_t bad = 0;
		int64_t segment = -1;
		State v = Op::identity();

		bench_parallel(nchunks,
					   [&](int64_t from, int64_t to)
					   {
						   for (int64_t p = from; p < to; p++)
							   check_chunk((int) p);
					   });
		for (int p = 0; p < nchunks; p++)
			for (const Partial &part : partials[p])
			{
				if (part.segment != segment)
				{
					if (segment >= 0)
						compare(nchunks, segment, v);
					segment = part.segment;
					v = Op::identity();
				}
				v = Op::combine(v, part.state);
			}
		if (segment >= 0)
			compare(nchunks, segment, v);
		for (int64_t w : wrong)
			bad += w;
		if (bad > 0)
			printf("%lld of %zu segments differ from the CPU monoids, the first is %lld, of "
				   "elements %lld to %lld\n",
				   (long long) bad, offsets.size() - 1, (long long) first_wrong,
				   (long long) offsets[first_wrong], (long long) offsets[first_wrong + 1]);
		return bad == 0;
	}
};

/* ---- one problem ------------------------------------------------------- */

/* Values in device memory: n of them, in as many copies as exceed the L2 cache. */
template <class InT> struct Values
{
	int64_t n;
	int copies;
	BenchMemory memory;

	explicit Values(int64_t count)
		: n(count), copies(bench_copies(count * sizeof(InT))),
		  memory((size_t) copies * stride() * sizeof(InT))
	{
		for (int c = 0; c < copies; c++)
		{
			fill_values<<<4096, 256>>>(copy(c), n);
			CUDA_MUST(cudaGetLastError());
		}
	}
	/* Returns the elements from one copy to the next. */
	int64_t
	stride() const
	{
		return (n + 31) / 32 * 32;
	}
	InT *
	copy(int c) const
	{
		return memory.as<InT>() + c * stride();
	}
};

static BenchHost host_states;

/* One problem: an operator over values in segments; offsets and states are in device memory. */
template <class Op> struct Problem
{
	typedef typename Op::State State;
	typedef typename Op::Input Input;

	const Values<Input> &values;
	const Geometry &geometry;
	int64_t nseg;
	BenchMemory offsets;
	BenchMemory states;

	Problem(const Values<Input> &v, const Geometry &g)
		: values(v), geometry(g), nseg((int64_t) g.offsets.size() - 1),
		  offsets((nseg + 1) * sizeof(int64_t)), states(nseg * sizeof(State))
	{
		CUDA_MUST(cudaMemcpy(offsets.memory, g.offsets.data(), (nseg + 1) * sizeof(int64_t),
							 cudaMemcpyHostToDevice));
		poison();
	}

	/* Overwrites the states, so that stale ones are not taken for results. */
	void
	poison()
	{
		CUDA_MUST(cudaMemset(states.memory, 0xA5, nseg * sizeof(State)));
	}

	/* Returns whether the states are right. */
	bool
	correct()
	{
		return Check<Op>(geometry.offsets, host_states.fetch<State>(states.memory, nseg)).run();
	}

	/* Checks and measures our kernel; returns its row without peers and targets. */
	BenchRow
	measure(const char *what)
	{
		GpuaggSegments segments = {values.n, nseg, offsets.as<int64_t>()};
		size_t bytes;
		BenchRow row;

		STATUS_MUST(gpuagg_cuda_segmented_reduce(&segments, Op::id, values.copy(0), states.memory,
												 nullptr, &bytes, 0));

		BenchMemory workspace(bytes);
		auto ours = [&](int copy)
		{
			STATUS_MUST(gpuagg_cuda_segmented_reduce(&segments, Op::id, values.copy(copy),
													 states.memory, workspace.memory, &bytes, 0));
		};

		ours(0);
		row.correct = correct();
		row.problem = std::string(what) + ", 2^" + std::to_string((int) log2((double) values.n)) +
			" in " + geometry.name;
		row.bytes =
			(double) values.n * sizeof(Input) + (nseg + 1) * 8.0 + (double) nseg * sizeof(State);
		row.rows = (double) values.n;
		row.ours_ms = bench_time(values.copies, ours);
		return row;
	}
};

/* Bytes of the largest column. Only 5 by 5 matrices have larger ones at 2^28 elements. */
static const int64_t max_column_bytes = (int64_t) 24 << 30;

/* What to measure for an operator, and its target. */
struct OperatorPlan
{
	const char *name;
	int log2_max_segments;
	/* target in percent, for 2^26 elements or more in at most 2^26 segments; 0: none */
	double roofline;
};

/* Returns log2 of the numbers of elements to measure, bounded by --max and max_column_bytes. */
static std::vector<int>
log2_sizes(const char *what, size_t element)
{
	std::vector<int> all = {18};

	for (int wanted : {26, 28})
	{
		int log2 = std::min(wanted, bench_max_log2());
		int fitting = log2;

		while (((int64_t) element << fitting) > max_column_bytes)
			fitting--;
		if (fitting < log2)
			printf("%s: 2^%d elements have %.1f GB, too much with states and the peer's buffers; "
				   "2^%d is the most measured\n",
				   what, log2, (double) ((int64_t) element << log2) * 1e-9, fitting);
		if (fitting > all.back())
			all.push_back(fitting);
	}
	return all;
}

/* Sets the targets of a problem with n elements in nseg segments. */
static void
set_targets(const OperatorPlan &plan, int64_t n, int64_t nseg, BenchRow *row)
{
	const int64_t large = (int64_t) 1 << 26;

	if (plan.roofline > 0 && n >= large && nseg <= large)
		row->targets.push_back({BENCH_ROOFLINE, plan.roofline});
}

/* Checks and measures one problem and its peer, and prints the row. */
template <class Op, class Peer>
static void
bench_geometry(const OperatorPlan &plan, const Values<typename Op::Input> &values,
			   const Geometry &g, Peer peer)
{
	Problem<Op> problem(values, g);
	BenchRow row = problem.measure(plan.name);

	problem.poison();
	peer(problem, &row);
	/* check the peer, too, if the problem is small; it leaves out empty segments */
	if (values.n <= 1 << 18 &&
		std::adjacent_find(g.offsets.begin(), g.offsets.end()) == g.offsets.end() &&
		!problem.correct())
		printf("these are states of the peer %s\n", row.peer1);
	set_targets(plan, values.n, problem.nseg, &row);
	bench_print(row);
}

/* Measures an operator for all sizes and geometries. */
template <class Op, class Peer>
static void
bench_geometries(const OperatorPlan &plan, Peer peer)
{
	for (int log2 : log2_sizes(plan.name, sizeof(typename Op::Input)))
	{
		Values<typename Op::Input> values((int64_t) 1 << log2);

		for (int s = 0; s <= std::min(log2, plan.log2_max_segments); s += bench_quick() ? 6 : 2)
			bench_geometry<Op>(plan, values, regular(values.n, s), peer);
		for (const Geometry &g : irregular_geometries(values.n))
			bench_geometry<Op>(plan, values, g, peer);
	}
}

/* ---- the peer: cub::DeviceReduce::ReduceByKey --------------------------- */

template <class Op> struct CombineStates
{
	typedef typename Op::State State;
	__device__ __forceinline__ State
	operator()(State a, State b) const
	{
		return Op::combine(a, b);
	}
};

template <class Op> struct LiftValue
{
	__device__ __forceinline__ typename Op::State
	operator()(typename Op::Input x) const
	{
		return Op::lift(x);
	}
};

/* Sets the key of each element to its segment. */
static __global__ void
fill_keys(const int64_t *offsets, int64_t nseg, int64_t n, int32_t *keys)
{
	for (int64_t i = (int64_t) blockIdx.x * blockDim.x + threadIdx.x; i < n;
		 i += (int64_t) gridDim.x * blockDim.x)
	{
		int64_t low = 0, high = nseg;

		while (high - low > 1)
		{
			int64_t mid = (low + high) / 2;

			if (offsets[mid] <= i)
				low = mid;
			else
				high = mid;
		}
		keys[i] = (int32_t) low;
	}
}

/* Measures the peer, which reduces by key, and sets it in the row. */
template <class Op>
static void
cub_by_key(Problem<Op> &problem, BenchRow *row)
{
	int64_t n = problem.values.n;
	BenchMemory keys(n * 4);
	BenchMemory unique(problem.nseg * 4 + 4);
	BenchMemory runs(8);
	size_t bytes = 0;
	auto call = [&](void *temp, int copy)
	{
		thrust::transform_iterator<LiftValue<Op>, const typename Op::Input *> in(
			problem.values.copy(copy), LiftValue<Op>());

		CUDA_MUST(cub::DeviceReduce::ReduceByKey(temp, bytes, keys.as<int32_t>(),
												 unique.as<int32_t>(), in,
												 problem.states.template as<typename Op::State>(),
												 runs.as<int64_t>(), CombineStates<Op>(), n));
	};

	fill_keys<<<4096, 256>>>(problem.offsets.template as<int64_t>(), problem.nseg, n,
							 keys.as<int32_t>());
	CUDA_MUST(cudaGetLastError());
	call(nullptr, 0);

	BenchMemory temp(bytes);

	row->peer1 = "CUB by key";
	row->peer1_ms = bench_time(problem.values.copies, [&](int copy) { call(temp.memory, copy); });
}

template <class Op>
static void
compare_with_cub(const char *what, double roofline)
{
	bench_geometries<Op>({what, 26, roofline}, cub_by_key<Op>);
}

BENCH_PART(
	b,
	"segmented reductions, up to 2^26 segments; peer cub::DeviceReduce::ReduceByKey over int4 keys")
{
	compare_with_cub<Op_maxsub_i64>("max_subarray int8", 60);
	compare_with_cub<Op_maxsub_f64>("max_subarray float8", 60);
	compare_with_cub<Op_linear>("linear", 60);
	compare_with_cub<Op_longest_run>("longest_run", 0);
	compare_with_cub<Op_mat2>("2x2 product", 0);
	compare_with_cub<Op_mat3>("3x3 product", 0);
	compare_with_cub<Op_mat5>("5x5 product", 0);
}
