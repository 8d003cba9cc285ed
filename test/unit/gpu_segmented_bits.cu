/*
 * gpu_segmented_bits.cu
 *	  Segmented reductions where the order of combination shows in the last bits:
 *	  ten times the same input gives ten times the same bits, in every form, and
 *	  they are near those of a fold on the CPU.
 *
 * The values keep their place in memory over the runs: nothing is promised of
 * the bits of another alignment.
 */
#include "gpu_segmented_test.h"

/* ---- inputs whose combination rounds ------------------------------------- */

static double
rough_double(Random &r)
{
	return (r.uniform() - 0.5) * exp2((double) r.below(40));
}

static void rough(Random &r, MonoidId, float *x) { *x = (float) rough_double(r); }

/* Factors near 1, so that products stay away from the limits. */
static void
rough(Random &r, MonoidId op, double *x)
{
	*x = op == MONOID_PRODUCT_F64 ? 1 + (r.uniform() - 0.5) * 0x1p-10 : rough_double(r);
}

static void
rough(Random &r, MonoidId op, gpuagg_f64x2 *x)
{
	x->x = op == MONOID_LINEAR ? (r.below(2) ? 1 : -1) + (r.uniform() - 0.5) * 0x1p-8 : rough_double(r);
	x->y = op == MONOID_LINEAR ? r.uniform() - 0.5 : rough_double(r);
}

/* Entries scaled so that long products neither vanish nor overflow. */
static void
rough_matrix(Random &r, double *m, int k, double scale)
{
	for (int i = 0; i < k * k; i++)
		m[i] = (r.uniform() - 0.5) * scale;
}
static void rough(Random &r, MonoidId, gpuagg_mat2 *x) { rough_matrix(r, x->m, 2, 3.27); }
static void rough(Random &r, MonoidId, gpuagg_mat3 *x) { rough_matrix(r, x->m, 3, 2.40); }
static void rough(Random &r, MonoidId, gpuagg_mat4 *x) { rough_matrix(r, x->m, 4, 1.98); }
static void rough(Random &r, MonoidId, gpuagg_mat5 *x) { rough_matrix(r, x->m, 5, 1.72); }

/* ---- comparison with the fold -------------------------------------------- */

/* What errors are in proportion to: sums of |x|, x^2, |y|, y^2. */
struct Magnitude
{
	double		n = 0,
				x = 0,
				xx = 0,
				y = 0,
				yy = 0;

	void
	add(double vx, double vy)
	{
		n += 1;
		x += fabs(vx);
		xx += vx * vx;
		y += fabs(vy);
		yy += vy * vy;
	}
	template <class T> void add(const T &v) { if constexpr (sizeof(T) <= 8) add((double) v, 0); }
	void add(const gpuagg_f64x2 &v) { add(v.x, v.y); }
};

/* False for NaN. */
static bool
within(double a, double b, double tolerance)
{
	return fabs(a - b) <= tolerance;
}

static bool near(MonoidId, float a, float b, const Magnitude &m) { return within(a, b, 1e-5 * m.x); }

static bool
near(MonoidId op, double a, double b, const Magnitude &m)
{
	return within(a, b, op == MONOID_PRODUCT_F64 ? 1e-15 * (m.n + 10) * fabs(b) : 1e-12 * m.x);
}

static bool
near(MonoidId, const gpuagg_accum &a, const gpuagg_accum &b, const Magnitude &m)
{
	return a.n == b.n && within(a.sx, b.sx, 1e-12 * m.x) && within(a.sxx, b.sxx, 1e-10 * m.xx);
}

static bool
near(MonoidId, const gpuagg_regr &a, const gpuagg_regr &b, const Magnitude &m)
{
	return a.n == b.n && within(a.sx, b.sx, 1e-12 * m.x) && within(a.sxx, b.sxx, 1e-10 * m.xx) &&
		within(a.sy, b.sy, 1e-12 * m.y) && within(a.syy, b.syy, 1e-10 * m.yy) &&
		within(a.sxy, b.sxy, 1e-10 * sqrt(m.xx * m.yy));
}

static bool
near(MonoidId, const gpuagg_maxsub_f64 &a, const gpuagg_maxsub_f64 &b, const Magnitude &m)
{
	double		tolerance = 1e-12 * m.x;

	return a.flags == b.flags && within(a.total, b.total, tolerance) && within(a.prefix, b.prefix, tolerance) &&
		within(a.suffix, b.suffix, tolerance) && within(a.best, b.best, tolerance);
}

/* Linear compositions: the factors are near 1, so an error of one step stays one of about its size. */
static bool
near(MonoidId, const gpuagg_f64x2 &a, const gpuagg_f64x2 &b, const Magnitude &m)
{
	return within(a.x, b.x, 1e-14 * (m.n + 10) * fabs(b.x)) && within(a.y, b.y, 1e-13 * (m.n + 10) * (m.n + 10));
}

/*
 * Matrices: in proportion to the largest entry; a product may be much smaller
 * than its factors' norms, hence the wide margin.
 */
static bool
near_matrix(const double *a, const double *b, int n)
{
	double		largest = 0;
	bool		good = true;

	for (int i = 0; i < n; i++)
		largest = fmax(largest, fabs(b[i]));
	for (int i = 0; i < n; i++)
		good = good && within(a[i], b[i], 1e-6 * largest);
	return good;
}
static bool near(MonoidId, const gpuagg_mat2 &a, const gpuagg_mat2 &b, const Magnitude &) { return near_matrix(a.m, b.m, 4); }
static bool near(MonoidId, const gpuagg_mat3 &a, const gpuagg_mat3 &b, const Magnitude &) { return near_matrix(a.m, b.m, 9); }
static bool near(MonoidId, const gpuagg_mat4 &a, const gpuagg_mat4 &b, const Magnitude &) { return near_matrix(a.m, b.m, 16); }
static bool near(MonoidId, const gpuagg_mat5 &a, const gpuagg_mat5 &b, const Magnitude &) { return near_matrix(a.m, b.m, 25); }

/* ---- runs ---------------------------------------------------------------- */

/* The first segment whose states differ, or -1. */
template <class State>
static int64_t
first_difference(const std::vector<State> &a, const std::vector<State> &b)
{
	for (size_t s = 0; s < a.size(); s++)
		if (memcmp(&a[s], &b[s], sizeof(State)) != 0)
			return (int64_t) s;
	return -1;
}

/* Ten runs over one geometry, each in a workspace of its own. */
template <class InT, class In, class State>
static void
check_bits(const char *name, MonoidId op, GpuaggValueType type, State (*identity) (), State (*step) (State, In),
		   const Geometry &g, uint64_t seed, bool by_device)
{
	Random		r(seed);
	int64_t		nseg = (int64_t) g.offsets.size() - 1;
	int64_t		n = g.offsets.back();
	std::vector<InT> values(n);
	std::vector<State> first;

	for (InT &x : values)
		rough(r, op, &x);

	DeviceArray<InT> d_values(values, 1);
	DeviceArray<int64_t> d_offsets(g.offsets);
	DeviceArray<int64_t> d_count(std::vector<int64_t>(1, nseg));
	GpuaggSegments segments = {n, nseg, by_device ? d_count.get() : nullptr, d_offsets};

	for (int run = 0; run < (gpu_test_quick() ? 2 : 10); run++)
	{
		DeviceArray<State> d_states(nseg, 1);
		DeviceArray<uint32_t> d_errors(std::vector<uint32_t>(1, 0));
		std::vector<State> states;

		reduce(&segments, op, type, d_values, d_states, d_errors);
		states = d_states.take();
		if (run == 0)
			first = states;

		int64_t		s = first_difference(first, states);

		CHECK(s < 0, "%s, %s, run %d: other bits in segment %ld of %ld (%ld elements)", name, g.name, run, (long) s,
			  (long) nseg, (long) (s < 0 ? 0 : g.offsets[s + 1] - g.offsets[s]));
		CHECK(d_errors.take()[0] == 0, "%s, %s, run %d: errors %u", name, g.name, run, d_errors.take()[0]);
		CHECK(d_states.guards_intact(), "%s, %s, run %d: results overrun", name, g.name, run);
	}
	for (int64_t s = 0; s < nseg; s++)
	{
		State		expected = identity();
		Magnitude	m;

		for (int64_t e = g.offsets[s]; e < g.offsets[s + 1]; e++)
		{
			expected = step(expected, (In) values[e]);
			m.add(values[e]);
		}
		CHECK(near(op, first[s], expected, m), "%s, %s, segment %ld of %ld (%ld elements) is not near the fold: "
			  "first words %016lx, expected %016lx", name, g.name, (long) s, (long) nseg,
			  (long) (g.offsets[s + 1] - g.offsets[s]), seg_first_word(first[s]), seg_first_word(expected));
	}
}

#define BITS(name, NAME, input_t, state_t, stored_t, type) \
	check_bits<stored_t, input_t, state_t>(#name, MONOID_##NAME, type, name##_identity, name##_step, g, seed++, by_device);

static void
check_bits_sums(const Geometry &g, uint64_t seed, bool by_device)
{
	BITS(sum_f32, SUM_F32, float, float, float, GPUAGG_VALUE_NATIVE)
	BITS(sum_f64, SUM_F64, double, double, double, GPUAGG_VALUE_NATIVE)
	BITS(sum_f64, SUM_F64, double, double, float, GPUAGG_VALUE_F32)
}

static void
check_bits_all(const Geometry &g, uint64_t seed, bool by_device)
{
	check_bits_sums(g, seed, by_device);
	seed += 10;
	BITS(accum_f64, ACCUM_F64, double, gpuagg_accum, double, GPUAGG_VALUE_NATIVE)
	BITS(accum_f64, ACCUM_F64, double, gpuagg_accum, float, GPUAGG_VALUE_F32)
	BITS(regr_f64, REGR_F64, gpuagg_f64x2, gpuagg_regr, gpuagg_f64x2, GPUAGG_VALUE_NATIVE)
	BITS(product_f64, PRODUCT_F64, double, double, double, GPUAGG_VALUE_NATIVE)
	BITS(maxsub_f64, MAXSUB_F64, double, gpuagg_maxsub_f64, double, GPUAGG_VALUE_NATIVE)
	BITS(linear, LINEAR, gpuagg_f64x2, gpuagg_f64x2, gpuagg_f64x2, GPUAGG_VALUE_NATIVE)
	BITS(mat2, MAT2, gpuagg_mat2, gpuagg_mat2, gpuagg_mat2, GPUAGG_VALUE_NATIVE)
	BITS(mat3, MAT3, gpuagg_mat3, gpuagg_mat3, gpuagg_mat3, GPUAGG_VALUE_NATIVE)
	BITS(mat4, MAT4, gpuagg_mat4, gpuagg_mat4, gpuagg_mat4, GPUAGG_VALUE_NATIVE)
	BITS(mat5, MAT5, gpuagg_mat5, gpuagg_mat5, gpuagg_mat5, GPUAGG_VALUE_NATIVE)
}

/* ---- tests --------------------------------------------------------------- */

GPU_TEST(segmented_bits_small)
{
	Random		r(21);

	for (int64_t limit : {30, 300, 1500})
		check_bits_all(random_lengths("bits, small", r, (int) (12000 / limit), limit, 1), 2000 + limit, false);
}

/* Lengths that differ much, below and beyond a chunk's own; longer ones for what cannot leave its range. */
GPU_TEST(segmented_bits_large)
{
	Random		r(22);
	bool		quick = gpu_test_quick();
	Geometry	g = random_lengths("bits, chunks", r, quick ? 6500 : 9000, quick ? 7 : 160, 1);
	Geometry	t = from_lengths("bits, long", {quick ? 9000 : 310007, 5, quick ? 11000 : 290001});

	check_bits_all(g, 2200, false);
	if (!quick)
		check_bits_sums(t, 2250, false);
}

GPU_TEST(segmented_bits_counted_by_device)
{
	Random		r(23);

	check_bits_all(random_lengths("bits, few", r, gpu_test_quick() ? 300 : 2000, 64, 1), 2300, true);
	check_bits_all(from_lengths("bits, few, long", {2900, 0, 0, 1, 3000, 2777}), 2350, true);
}
