/*
 * gpu_segmented_bits.cu
 *	  Tests of segmented reductions whose last bits depend on the order of combination.
 *
 * Ten runs over the same input must give the same bits, and results must be near those of a fold on
 * the CPU.  The values keep their address over the runs, because another alignment may give other
 * bits.
 */
#include "gpu_segmented_test.h"

/* ---- inputs whose combination rounds ------------------------------------- */

/* Returns a random double.  Magnitudes differ much, so that sums round. */
static double
rough_double(Random &r)
{
	return (r.uniform() - 0.5) * exp2((double) r.below(40));
}

static void
rough(Random &r, double *x)
{
	*x = rough_double(r);
}

/* Sets *x to a random linear function.  The factor is near 1 or -1. */
static void
rough(Random &r, gpuagg_f64x2 *x)
{
	x->x = (r.below(2) ? 1 : -1) + (r.uniform() - 0.5) * 0x1p-8;
	x->y = r.uniform() - 0.5;
}

/*
 * Sets m to a random k * k matrix.  Entries are scaled so that long products neither vanish nor
 * overflow.
 */
static void
rough_matrix(Random &r, double *m, int k, double scale)
{
	for (int i = 0; i < k * k; i++)
		m[i] = (r.uniform() - 0.5) * scale;
}
static void
rough(Random &r, gpuagg_mat2 *x)
{
	rough_matrix(r, x->m, 2, 3.27);
}
static void
rough(Random &r, gpuagg_mat3 *x)
{
	rough_matrix(r, x->m, 3, 2.40);
}
static void
rough(Random &r, gpuagg_mat4 *x)
{
	rough_matrix(r, x->m, 4, 1.98);
}
static void
rough(Random &r, gpuagg_mat5 *x)
{
	rough_matrix(r, x->m, 5, 1.72);
}

/* ---- comparison with the fold -------------------------------------------- */

/*
 * Errors are in proportion to the number of values, and for doubles to the sum of their magnitudes.
 */
struct Magnitude
{
	double n = 0, sum = 0;

	template <class T>
	void
	add(const T &)
	{
		n += 1;
	}
	void
	add(double v)
	{
		n += 1;
		sum += fabs(v);
	}
};

/* Returns whether two numbers differ by at most the tolerance; false for NaN. */
static bool
within(double a, double b, double tolerance)
{
	return fabs(a - b) <= tolerance;
}

/* Returns whether a result is near the fold on the CPU. */
static bool
near(const gpuagg_maxsub_f64 &a, const gpuagg_maxsub_f64 &b, const Magnitude &m)
{
	double tolerance = 1e-12 * m.sum;

	return a.flags == b.flags && within(a.total, b.total, tolerance) &&
		within(a.prefix, b.prefix, tolerance) && within(a.suffix, b.suffix, tolerance) &&
		within(a.best, b.best, tolerance);
}

/* The factors are near 1, so the error of a step keeps about its size. */
static bool
near(const gpuagg_f64x2 &a, const gpuagg_f64x2 &b, const Magnitude &m)
{
	return within(a.x, b.x, 1e-14 * (m.n + 10) * fabs(b.x)) &&
		within(a.y, b.y, 1e-13 * (m.n + 10) * (m.n + 10));
}

/*
 * Returns whether matrices of n entries are equal except for rounding.  The tolerance is in
 * proportion to the largest entry.  It is wide because a product may be much smaller than the norms
 * of its factors.
 */
static bool
near_matrix(const double *a, const double *b, int n)
{
	double largest = 0;
	bool good = true;

	for (int i = 0; i < n; i++)
		largest = fmax(largest, fabs(b[i]));
	for (int i = 0; i < n; i++)
		good = good && within(a[i], b[i], 1e-6 * largest);
	return good;
}
static bool
near(const gpuagg_mat2 &a, const gpuagg_mat2 &b, const Magnitude &)
{
	return near_matrix(a.m, b.m, 4);
}
static bool
near(const gpuagg_mat3 &a, const gpuagg_mat3 &b, const Magnitude &)
{
	return near_matrix(a.m, b.m, 9);
}
static bool
near(const gpuagg_mat4 &a, const gpuagg_mat4 &b, const Magnitude &)
{
	return near_matrix(a.m, b.m, 16);
}
static bool
near(const gpuagg_mat5 &a, const gpuagg_mat5 &b, const Magnitude &)
{
	return near_matrix(a.m, b.m, 25);
}

/* ---- runs ---------------------------------------------------------------- */

/* Returns the first segment whose states differ, or -1. */
template <class State>
static int64_t
first_difference(const std::vector<State> &a, const std::vector<State> &b)
{
	for (size_t s = 0; s < a.size(); s++)
		if (memcmp(&a[s], &b[s], sizeof(State)) != 0)
			return (int64_t) s;
	return -1;
}

/* Runs one operator ten times over one geometry, each time with another workspace. */
template <class Op>
static void
check_bits(const char *name, const Geometry &g, uint64_t seed)
{
	typedef typename Op::Input Input;
	typedef typename Op::State State;

	Random r(seed);
	int64_t nseg = (int64_t) g.offsets.size() - 1;
	int64_t n = g.offsets.back();
	std::vector<Input> values(n);
	std::vector<State> first;

	for (Input &x : values)
		rough(r, &x);

	DeviceArray<Input> d_values(values, 1);
	DeviceArray<int64_t> d_offsets(g.offsets);
	GpuaggSegments segments = {n, nseg, d_offsets};

	for (int run = 0; run < (gpu_test_quick() ? 2 : 10); run++)
	{
		DeviceArray<State> d_states(nseg, 1);
		std::vector<State> states;

		reduce(&segments, Op::id, d_values, d_states);
		states = d_states.take();
		if (run == 0)
			first = states;

		int64_t s = first_difference(first, states);

		CHECK(s < 0, "%s, %s, run %d: other bits in segment %ld of %ld (%ld elements)", name,
			  g.name, run, (long) s, (long) nseg,
			  (long) (s < 0 ? 0 : g.offsets[s + 1] - g.offsets[s]));
		CHECK(d_states.guards_intact(), "%s, %s, run %d: results overrun", name, g.name, run);
	}
	for (int64_t s = 0; s < nseg; s++)
	{
		State expected = Op::identity();
		Magnitude m;

		for (int64_t e = g.offsets[s]; e < g.offsets[s + 1]; e++)
		{
			expected = Op::step(expected, values[e]);
			m.add(values[e]);
		}
		CHECK(near(first[s], expected, m),
			  "%s, %s, segment %ld of %ld (%ld elements) is not near the fold: "
			  "first words %016lx, expected %016lx",
			  name, g.name, (long) s, (long) nseg, (long) (g.offsets[s + 1] - g.offsets[s]),
			  seg_first_word(first[s]), seg_first_word(expected));
	}
}

/* Checks the operators of doubles over one geometry. */
static void
check_bits_all(const Geometry &g, uint64_t seed)
{
	check_bits<Op_maxsub_f64>("maxsub_f64", g, seed);
	check_bits<Op_linear>("linear", g, seed + 1);
	check_bits<Op_mat2>("mat2", g, seed + 2);
	check_bits<Op_mat3>("mat3", g, seed + 3);
	check_bits<Op_mat4>("mat4", g, seed + 4);
	check_bits<Op_mat5>("mat5", g, seed + 5);
}

/* ---- tests --------------------------------------------------------------- */

/* Few elements, in short and in longer segments. */
GPU_TEST(segmented_bits_small)
{
	Random r(21);

	for (int64_t limit : {30, 300, 1500})
		check_bits_all(random_lengths("bits, small", r, (int) (12000 / limit), limit, 1),
					   2000 + limit);
	check_bits_all(from_lengths("bits, few, long", {2900, 0, 0, 1, 3000, 2777}), 2350);
}

/*
 * Lengths that differ much, shorter and longer than a chunk.  Very long segments are for subarray
 * sums only: the other operators may leave the range of doubles there.
 */
GPU_TEST(segmented_bits_large)
{
	Random r(22);
	bool quick = gpu_test_quick();
	Geometry g = random_lengths("bits, chunks", r, quick ? 6500 : 9000, quick ? 7 : 160, 1);
	Geometry t = from_lengths("bits, long", {quick ? 9000 : 310007, 5, quick ? 11000 : 290001});

	check_bits_all(g, 2200);
	if (!quick)
		check_bits<Op_maxsub_f64>("maxsub_f64", t, 2250);
}
