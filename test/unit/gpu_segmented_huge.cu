/*
 * gpu_segmented_huge.cu
 *	  Segmented reductions of more than 2^31 elements.
 */
#include "gpu_segmented_test.h"

/* ---- more than 2^31 elements ---------------------------------------------- */

static const int64_t huge_count = ((int64_t) 1 << 31) + 12345;

static __global__ void
fill_runs(int8_t *values, int64_t n, int64_t hole)
{
	for (int64_t i = (int64_t) blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (int64_t) gridDim.x * blockDim.x)
		values[i] = i != hole;
}

/* Whether a test of so many bytes can run. */
static bool
huge_can_run(size_t bytes)
{
	if (gpu_test_quick())
		gpu_test_skip("too large for --quick");
	return !gpu_test_quick() && gpu_test_has_memory(bytes);
}

/* More than 2^31 elements with a commutative and an ordered operator. */
GPU_TEST(segmented_huge)
{
	const int64_t n = huge_count;
	const int64_t hole = ((int64_t) 1 << 31) - 77;

	if (!huge_can_run(n))
		return;

	std::vector<int64_t> offsets = {0, 10, 10, n - 3, n};
	DeviceArray<int8_t> d_values(n);
	DeviceArray<int64_t> d_offsets(offsets);
	DeviceArray<int64_t> d_counts(4);
	DeviceArray<gpuagg_run> d_runs(4);
	GpuaggSegments segments = {n, 4, nullptr, d_offsets};

	fill_runs<<<4096, 256>>>(d_values, n, hole);
	reduce(&segments, MONOID_COUNT, GPUAGG_VALUE_NATIVE, d_values, d_counts, nullptr);
	reduce(&segments, MONOID_LONGEST_RUN, GPUAGG_VALUE_NATIVE, d_values, d_runs, nullptr);

	std::vector<int64_t> counts = d_counts.take();
	std::vector<gpuagg_run> runs = d_runs.take();

	CHECK(counts[0] == 10 && counts[1] == 0 && counts[2] == n - 13 && counts[3] == 3, "counts %ld %ld %ld %ld",
		  (long) counts[0], (long) counts[1], (long) counts[2], (long) counts[3]);
	CHECK(runs[0].best == 10 && runs[1].best == 0 && runs[3].best == 3, "short runs %ld, %ld and %ld",
		  (long) runs[0].best, (long) runs[1].best, (long) runs[3].best);
	CHECK(runs[2].best == hole - 10 && runs[2].suffix == n - 3 - hole - 1, "best run %ld, not %ld",
		  (long) runs[2].best, (long) (hole - 10));
}

/* A prime, so that places which differ by a power of two have other values. */
#define HUGE_PERIOD 65521

static __host__ __device__ int16_t
huge_value(int64_t i)
{
	return (int16_t) ((uint32_t) (i % HUGE_PERIOD) * 25173u);
}

static __global__ void
fill_huge(int16_t *values, int64_t n)
{
	for (int64_t i = (int64_t) blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (int64_t) gridDim.x * blockDim.x)
		values[i] = huge_value(i);
}

/* Sums of the first values, from those of the first period's. */
struct HugeSums
{
	std::vector<int64_t> first;

	HugeSums() : first(1, 0)
	{
		for (int64_t i = 0; i < HUGE_PERIOD; i++)
			first.push_back(first.back() + huge_value(i));
	}
	int64_t upto(int64_t i) const { return i / HUGE_PERIOD * first[HUGE_PERIOD] + first[i % HUGE_PERIOD]; }
};

static void
check_huge_sums(const int16_t *values, const Geometry &g)
{
	int64_t		nseg = (int64_t) g.offsets.size() - 1;
	DeviceArray<int64_t> d_offsets(g.offsets);
	DeviceArray<int64_t> d_states(nseg);
	GpuaggSegments segments = {g.offsets.back(), nseg, nullptr, d_offsets};
	std::vector<int64_t> states;
	HugeSums	sums;

	reduce(&segments, MONOID_SUM_I64, GPUAGG_VALUE_I16, values, d_states, nullptr);
	states = d_states.take();
	CHECK(d_states.guards_intact(), "%s: results overrun", g.name);
	for (int64_t s = 0; s < nseg; s++)
	{
		int64_t		expected = sums.upto(g.offsets[s + 1]) - sums.upto(g.offsets[s]);

		CHECK(states[s] == expected, "%s, segment %ld of %ld, elements %ld to %ld: %ld, not %ld", g.name, (long) s,
			  (long) nseg, (long) g.offsets[s], (long) g.offsets[s + 1], (long) states[s], (long) expected);
	}
}

/* Sums over more than 2^31 elements: in regular segments, and in irregular ones, one of them long. */
GPU_TEST(segmented_huge_sums)
{
	const int64_t n = huge_count;

	if (!huge_can_run(n * sizeof(int16_t)))
		return;

	Random		r(35);
	DeviceArray<int16_t> d_values(n);

	fill_huge<<<4096, 256>>>(d_values, n);
	for (int64_t length : {512, 1 << 20})
	{
		Geometry	g = {"huge, regular", {0}};

		while (g.offsets.back() < n)
			g.offsets.push_back(std::min(g.offsets.back() + length, n));
		check_huge_sums(d_values, g);
	}

	Geometry	g = {"huge, irregular", {0}};

	while (g.offsets.back() < n)
	{
		int64_t		length = g.offsets.size() == 3000 ? (int64_t) 1 << 30 : (int64_t) r.below(r.below(8) ? 100 : 3000000);

		g.offsets.push_back(std::min(g.offsets.back() + length, n));
	}
	check_huge_sums(d_values, g);
}
