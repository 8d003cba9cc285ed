/*
 * gpu_segmented_forms.cu
 *	  Segmented reductions: which form takes what, and more than 2^31 elements.
 */
#include "gpu_segmented_test.h"

/* ---- forms --------------------------------------------------------------- */

struct FormCase
{
	Geometry	g;
	SegForm		wanted;
	bool		lone;			/* a thread for each segment, if even */
	bool		pieces;			/* several blocks for each segment, if even */
};

/* Sums over one geometry in the wanted form, exact. */
static void
check_form(const FormCase &c, uint64_t seed)
{
	Random		r(seed);
	const Geometry &g = c.g;
	int64_t		nseg = (int64_t) g.offsets.size() - 1;
	std::vector<int64_t> values(g.offsets.back());

	for (int64_t &x : values)
		make(r, &x);

	DeviceArray<int64_t> d_values(values, 1);
	DeviceArray<int64_t> d_offsets(g.offsets);
	DeviceArray<int64_t> d_states(nseg);
	GpuaggSegments segments = {g.offsets.back(), nseg, nullptr, d_offsets};
	SegRan		ran = reduce_and_read_note(&segments, MONOID_SUM_I64, GPUAGG_VALUE_NATIVE, d_values, d_states, nullptr);
	std::vector<int64_t> states = d_states.take();

	CHECK(ran.form == c.wanted, "%s: %s, not %s", g.name, seg_form_names[ran.form], seg_form_names[c.wanted]);
	CHECK(ran.lone == c.lone && ran.pieces == c.pieces, "%s: lone %d, not %d; pieces %d, not %d", g.name, ran.lone,
		  c.lone, ran.pieces, c.pieces);
	for (int64_t s = 0; s < nseg; s++)
	{
		uint64_t	sum = 0;

		for (int64_t e = g.offsets[s]; e < g.offsets[s + 1]; e++)
			sum += (uint64_t) values[e];
		CHECK((int64_t) sum == states[s], "%s, segment %ld of %ld (%ld elements): %ld, not %ld", g.name, (long) s,
			  (long) nseg, (long) (g.offsets[s + 1] - g.offsets[s]), (long) states[s], (long) sum);
	}
}

/*
 * The even form takes even lengths, and leaves uneven ones to the chunks, which
 * alone take what lies between its lengths; a thread for each segment for the
 * shortest only, several blocks for each for the longest only.
 */
GPU_TEST(segmented_form_taken)
{
	EvenAnyway	anyway;
	Random		r(31);
	int64_t		n = (1 << 19) + 10000;
	uint64_t	seed = 3100;

	for (const FormCase &c : std::vector<FormCase>{
		{even_lengths("form, ones", r, n, 1, 1, 1), SEG_FORM_EVEN, true, false},
		{even_lengths("form, 0 to 4", r, n, 0, 5, 30), SEG_FORM_EVEN, true, false},
		{even_lengths("form, 0 to 4, one long", r, n, 0, 5, 20000), SEG_FORM_UNEVEN, false, false},
		{even_lengths("form, about 9", r, n, 8, 3, 9), SEG_FORM_CHUNKS, false, false},
		{even_lengths("form, about 16", r, n, 15, 4, 20), SEG_FORM_EVEN, false, false},
		{even_lengths("form, about 16, one long", r, n, 15, 4, 9000), SEG_FORM_UNEVEN, false, false},
		{even_lengths("form, about 40", r, n, 38, 5, 40), SEG_FORM_CHUNKS, false, false},
		{even_lengths("form, hundreds", r, n, 250, 100, 300), SEG_FORM_EVEN, false, false},
		{even_lengths("form, hundreds, one long", r, n, 250, 100, 2000), SEG_FORM_UNEVEN, false, false},
		{even_lengths("form, thousands", r, n, 4200, 200, 4300), SEG_FORM_EVEN, false, true},
		{even_lengths("form, thousands, one long", r, n, 4200, 200, 60000), SEG_FORM_UNEVEN, false, true},
		{from_lengths("form, one", {n}), SEG_FORM_EVEN, false, true},
		{from_lengths("form, two, uneven", {n / 5, n}), SEG_FORM_UNEVEN, false, true},
		{even_lengths("form, small", r, 300000, 30, 5, 30), SEG_FORM_SMALL, false, false},
		{even_lengths("form, small, uneven", r, 300000, 30, 5, 90000), SEG_FORM_SMALL, false, false}})
		check_form(c, seed++);
}

/* Without a wish of the tests, few bytes take the chunks. */
GPU_TEST(segmented_form_least)
{
	Random		r(32);

	check_form({even_lengths("form, few bytes", r, (1 << 19) + 10000, 250, 100, 300), SEG_FORM_CHUNKS, false, false},
			   3200);
	if (gpu_test_quick())
		return;
	/* 8 bytes each */
	check_form({even_lengths("form, many bytes", r, (1 << 24) + 10000, 250, 100, 300), SEG_FORM_EVEN, false, false},
			   3201);
}

/* Sums that overflow in a segment: the chunks do it again. */
GPU_TEST(segmented_form_again)
{
	EvenAnyway	anyway;
	Random		r(33);
	int64_t		n = (1 << 19) + 10000;

	for (const Geometry &g : {even_lengths("again, 0 to 4", r, n, 2, 3, 5), even_lengths("again, about 16", r, n, 15, 4, 20),
							  even_lengths("again, hundreds", r, n, 250, 100, 300),
							  even_lengths("again, thousands", r, n, 4200, 200, 4300)})
	{
		int64_t		nseg = (int64_t) g.offsets.size() - 1;
		int64_t		at = g.offsets[nseg / 2];
		std::vector<double> values(g.offsets.back(), 1);

		/* next to each other, in a segment of at least two */
		values[at] = values[at + 1] = DBL_MAX;

		DeviceArray<double> d_values(values);
		DeviceArray<int64_t> d_offsets(g.offsets);
		DeviceArray<double> d_states(nseg);
		DeviceArray<uint32_t> d_errors(std::vector<uint32_t>(1, 0));
		GpuaggSegments segments = {g.offsets.back(), nseg, nullptr, d_offsets};
		SegRan		ran = reduce_and_read_note(&segments, MONOID_SUM_F64, GPUAGG_VALUE_NATIVE, d_values, d_states, d_errors);
		std::vector<double> states = d_states.take();

		CHECK(ran.form == SEG_FORM_AGAIN, "%s: %s", g.name, seg_form_names[ran.form]);
		CHECK(d_errors.take()[0] == MONOID_ERR_OVERFLOW, "%s: errors %u", g.name, d_errors.take()[0]);
		for (int64_t s = 0; s < nseg; s++)
		{
			double		expected = s == nseg / 2 ? INFINITY : (double) (g.offsets[s + 1] - g.offsets[s]);

			CHECK(states[s] == expected, "%s, segment %ld: %g, not %g", g.name, (long) s, states[s], expected);
		}
	}
}

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
check_huge_sums(const int16_t *values, const Geometry &g, SegForm wanted)
{
	int64_t		nseg = (int64_t) g.offsets.size() - 1;
	DeviceArray<int64_t> d_offsets(g.offsets);
	DeviceArray<int64_t> d_states(nseg);
	GpuaggSegments segments = {g.offsets.back(), nseg, nullptr, d_offsets};
	SegRan		ran = reduce_and_read_note(&segments, MONOID_SUM_I64, GPUAGG_VALUE_I16, values, d_states, nullptr);
	std::vector<int64_t> states = d_states.take();
	HugeSums	sums;

	CHECK(ran.form == wanted, "%s: %s, not %s", g.name, seg_form_names[ran.form], seg_form_names[wanted]);
	CHECK(d_states.guards_intact(), "%s: results overrun", g.name);
	for (int64_t s = 0; s < nseg; s++)
	{
		int64_t		expected = sums.upto(g.offsets[s + 1]) - sums.upto(g.offsets[s]);

		CHECK(states[s] == expected, "%s, segment %ld of %ld, elements %ld to %ld: %ld, not %ld", g.name, (long) s,
			  (long) nseg, (long) g.offsets[s], (long) g.offsets[s + 1], (long) states[s], (long) expected);
	}
}

/*
 * Sums over more than 2^31 elements: in regular segments, of part of a warp and of
 * a block each, and in irregular ones, one of them long, by the chunks.
 */
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
		check_huge_sums(d_values, g, SEG_FORM_EVEN);
	}

	Geometry	g = {"huge, irregular", {0}};

	while (g.offsets.back() < n)
	{
		int64_t		length = g.offsets.size() == 3000 ? (int64_t) 1 << 30 : (int64_t) r.below(r.below(8) ? 100 : 3000000);

		g.offsets.push_back(std::min(g.offsets.back() + length, n));
	}
	check_huge_sums(d_values, g, SEG_FORM_UNEVEN);
}
