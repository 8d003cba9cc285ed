/*
 * gpu_segmented_huge.cu
 *	  Tests of segmented reductions of more than 2^31 elements.
 */
#include "gpu_segmented_test.h"

/* ---- more than 2^31 elements ---------------------------------------------- */

static const int64_t huge_count = ((int64_t) 1 << 31) + 12345;

/* Sets all elements to 1, but to 0 at `hole`. */
static __global__ void
fill_runs(int8_t *values, int64_t n, int64_t hole)
{
	for (int64_t i = (int64_t) blockIdx.x * blockDim.x + threadIdx.x; i < n;
		 i += (int64_t) gridDim.x * blockDim.x)
		values[i] = i != hole;
}

/* Returns whether a test that needs `bytes` of device memory can run. */
static bool
huge_can_run(size_t bytes)
{
	if (gpu_test_quick())
		gpu_test_skip("too large for --quick");
	return !gpu_test_quick() && gpu_test_has_memory(bytes);
}

/* A segment of nearly all elements, with a hole near its end, among short ones. */
GPU_TEST(segmented_huge)
{
	const int64_t n = huge_count;
	const int64_t hole = ((int64_t) 1 << 31) - 77;

	if (!huge_can_run(n))
		return;

	std::vector<int64_t> offsets = {0, 10, 10, n - 3, n};
	DeviceArray<int8_t> d_values(n);
	DeviceArray<int64_t> d_offsets(offsets);
	DeviceArray<gpuagg_run> d_runs(4);
	GpuaggSegments segments = {n, 4, d_offsets};

	fill_runs<<<4096, 256>>>(d_values, n, hole);
	reduce(&segments, MONOID_LONGEST_RUN, d_values, d_runs);

	std::vector<gpuagg_run> runs = d_runs.take();

	CHECK(runs[0].len == 10 && runs[1].len == 0 && runs[2].len == n - 13 && runs[3].len == 3,
		  "lengths %ld %ld %ld %ld", (long) runs[0].len, (long) runs[1].len, (long) runs[2].len,
		  (long) runs[3].len);
	CHECK(runs[0].best == 10 && runs[1].best == 0 && runs[3].best == 3,
		  "short runs %ld, %ld and %ld", (long) runs[0].best, (long) runs[1].best,
		  (long) runs[3].best);
	CHECK(runs[2].best == hole - 10 && runs[2].suffix == n - 3 - hole - 1, "best run %ld, not %ld",
		  (long) runs[2].best, (long) (hole - 10));
}

/*
 * A hole is at each multiple of a prime: positions that differ by a power of two are not both
 * holes.
 */
#define HUGE_PERIOD 61

/* Sets the elements to 0 at holes, and to 1 elsewhere. */
static __global__ void
fill_huge(int8_t *values, int64_t n)
{
	for (int64_t i = (int64_t) blockIdx.x * blockDim.x + threadIdx.x; i < n;
		 i += (int64_t) gridDim.x * blockDim.x)
		values[i] = i % HUGE_PERIOD != 0;
}

/* Returns the expected state of the elements [begin, end), computed without a loop over them. */
static gpuagg_run
huge_run(int64_t begin, int64_t end)
{
	int64_t n = end - begin;
	int64_t first = (begin + HUGE_PERIOD - 1) / HUGE_PERIOD * HUGE_PERIOD; /* the first hole */
	int64_t last = (end - 1) / HUGE_PERIOD * HUGE_PERIOD;

	if (n == 0)
		return longest_run_identity();
	if (first >= end)
		return {n, n, n, n};

	int64_t best = std::max(first - begin, end - 1 - last);

	return {n, first - begin, end - 1 - last,
			first < last ? std::max(best, (int64_t) HUGE_PERIOD - 1) : best};
}

/* Checks the longest runs of the segments of one geometry. */
static void
check_huge_runs(const int8_t *values, const Geometry &g)
{
	int64_t nseg = (int64_t) g.offsets.size() - 1;
	DeviceArray<int64_t> d_offsets(g.offsets);
	DeviceArray<gpuagg_run> d_states(nseg);
	GpuaggSegments segments = {g.offsets.back(), nseg, d_offsets};
	std::vector<gpuagg_run> states;

	reduce(&segments, MONOID_LONGEST_RUN, values, d_states);
	states = d_states.take();
	CHECK(d_states.guards_intact(), "%s: results overrun", g.name);
	for (int64_t s = 0; s < nseg; s++)
	{
		gpuagg_run expected = huge_run(g.offsets[s], g.offsets[s + 1]);

		CHECK(same(states[s], expected),
			  "%s, segment %ld of %ld, elements %ld to %ld: %ld, not %ld", g.name, (long) s,
			  (long) nseg, (long) g.offsets[s], (long) g.offsets[s + 1], (long) states[s].best,
			  (long) expected.best);
	}
}

/*
 * Longest runs in more than 2^31 elements: in regular segments, and in irregular ones with a long
 * one among them.
 */
GPU_TEST(segmented_huge_runs)
{
	const int64_t n = huge_count;

	if (!huge_can_run(n))
		return;

	Random r(35);
	DeviceArray<int8_t> d_values(n);

	fill_huge<<<4096, 256>>>(d_values, n);
	for (int64_t length : {512, 1 << 20})
	{
		Geometry g = {"huge, regular", {0}};

		while (g.offsets.back() < n)
			g.offsets.push_back(std::min(g.offsets.back() + length, n));
		check_huge_runs(d_values, g);
	}

	Geometry g = {"huge, irregular", {0}};

	while (g.offsets.back() < n)
	{
		int64_t length = g.offsets.size() == 3000 ? (int64_t) 1 << 30 :
													(int64_t) r.below(r.below(8) ? 100 : 3000000);

		g.offsets.push_back(std::min(g.offsets.back() + length, n));
	}
	check_huge_runs(d_values, g);
}
