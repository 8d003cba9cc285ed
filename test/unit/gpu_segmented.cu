/*
 * gpu_segmented.cu
 *	  Segmented reductions against the CPU monoids: every operator, every stored
 *	  type and every form over many geometries; plans, indirect segments, keys,
 *	  ordering, combining, reproducibility, more than 2^31 elements.
 *
 * Inputs are such that each operator's result is the same in any order of
 * combination (small whole numbers in floats, signed permutation matrices), so
 * that states are compared exactly; moments of rounded kinds get a tolerance.
 */
#include <math.h>

#include <algorithm>

#include "gpu_test.h"
#include "segmented_args.h"

/* ---- inputs and comparison by type -------------------------------------- */

static void make(Random &r, int8_t *x) { *x = (int8_t) (r.below(8) != 0); }
static void make(Random &r, int16_t *x) { *x = (int16_t) r.next(); }
static void make(Random &r, uint32_t *x) { *x = (uint32_t) r.below(1 << 22); }
static void make(Random &r, int32_t *x) { *x = (int32_t) r.next(); }
static void make(Random &r, int64_t *x) { *x = (int64_t) r.next() >> (20 + r.below(43)); }
static void make(Random &r, gpuagg_i128 *x) { *x = ((gpuagg_i128) (int64_t) r.next() << 20) + (int64_t) r.next(); }
static void make(Random &r, float *x) { *x = (float) ((int) r.below(2001) - 1000); }
static void make(Random &r, double *x) { *x = (double) ((int) r.below(2000001) - 1000000); }
static void make(Random &r, gpuagg_kv *x) { *x = {(int64_t) r.below(1000), (int64_t) r.next()}; }

static void
make(Random &r, gpuagg_f64x2 *x)
{
	x->x = r.below(2) ? 1.0 : -1.0;
	x->y = (double) ((int) r.below(2001) - 1000);
}

/* A signed permutation matrix: products are exact. */
static void
make_matrix(Random &r, double *m, int k)
{
	int			column[5] = {0, 1, 2, 3, 4};

	std::fill(m, m + k * k, 0.0);
	for (int i = 0; i < k; i++)
	{
		std::swap(column[i], column[i + (int) r.below(k - i)]);
		m[i * k + column[i]] = r.below(2) ? 1.0 : -1.0;
	}
}
static void make(Random &r, gpuagg_mat2 *x) { make_matrix(r, x->m, 2); }
static void make(Random &r, gpuagg_mat3 *x) { make_matrix(r, x->m, 3); }
static void make(Random &r, gpuagg_mat4 *x) { make_matrix(r, x->m, 4); }
static void make(Random &r, gpuagg_mat5 *x) { make_matrix(r, x->m, 5); }

/* Equal up to rounding in proportion to the largest. */
static bool
close_doubles(const double *a, const double *b, int n)
{
	double		scale = 0;

	for (int i = 0; i < n; i++)
		scale = fmax(scale, fabs(a[i]));
	for (int i = 0; i < n; i++)
		if (!(a[i] == b[i] || (isnan(a[i]) && isnan(b[i])) || fabs(a[i] - b[i]) <= 1e-9 * scale))
			return false;
	return true;
}

/* Bytes, unless the type says otherwise: NaN equals NaN, 0 equals -0. */
template <class T>
static bool
same(const T &a, const T &b)
{
	return memcmp(&a, &b, sizeof(T)) == 0;
}
static bool same(const float &a, const float &b) { return a == b || (isnan(a) && isnan(b)); }
static bool same(const double &a, const double &b) { return close_doubles(&a, &b, 1); }
static bool same(const gpuagg_accum &a, const gpuagg_accum &b) { return close_doubles(&a.n, &b.n, 3); }
static bool same(const gpuagg_regr &a, const gpuagg_regr &b) { return close_doubles(&a.n, &b.n, 6); }
static bool same(const gpuagg_moments &a, const gpuagg_moments &b) { return a.n == b.n && close_doubles(&a.s, &b.s, 2); }
static bool same(const gpuagg_maxsub_f64 &a, const gpuagg_maxsub_f64 &b) { return close_doubles(&a.total, &b.total, 4); }
static bool same(const gpuagg_f64x2 &a, const gpuagg_f64x2 &b) { return close_doubles(&a.x, &b.x, 2); }
static bool same(const gpuagg_mat2 &a, const gpuagg_mat2 &b) { return close_doubles(a.m, b.m, 4); }
static bool same(const gpuagg_mat3 &a, const gpuagg_mat3 &b) { return close_doubles(a.m, b.m, 9); }
static bool same(const gpuagg_mat4 &a, const gpuagg_mat4 &b) { return close_doubles(a.m, b.m, 16); }
static bool same(const gpuagg_mat5 &a, const gpuagg_mat5 &b) { return close_doubles(a.m, b.m, 25); }

/* ---- geometries -------------------------------------------------------- */

struct Geometry
{
	const char *name;
	std::vector<int64_t> offsets;	/* from 0 */
};

static Geometry
from_lengths(const char *name, const std::vector<int64_t> &lengths)
{
	Geometry	g = {name, {0}};

	for (int64_t n : lengths)
		g.offsets.push_back(g.offsets.back() + n);
	return g;
}

static Geometry
random_lengths(const char *name, Random &r, int segments, int64_t limit, int empty_in_8)
{
	std::vector<int64_t> lengths;

	for (int i = 0; i < segments; i++)
		lengths.push_back((int) r.below(8) < empty_in_8 ? 0 : (int64_t) r.below(limit + 1));
	return from_lengths(name, lengths);
}

/* Lengths 2^u: few long, many short. */
static Geometry
power_law(Random &r, int segments, int bits)
{
	std::vector<int64_t> lengths;

	for (int i = 0; i < segments; i++)
		lengths.push_back((int64_t) exp2(-log2(r.uniform() + 1e-9)) & (((int64_t) 1 << bits) - 1));
	return from_lengths("power law", lengths);
}

/* Those that only the chunks take are larger than segmented_small's limits. */
static std::vector<Geometry>
geometries(Random &r, bool large)
{
	std::vector<Geometry> all;
	std::vector<int64_t> giant(20000, 1);
	int			scale = large ? (gpu_test_quick() ? 1 : 8) : 1;

	giant[7777] = 600000 / (gpu_test_quick() ? 4 : 1);
	all.push_back(from_lengths("one empty", {0}));
	all.push_back(from_lengths("one element", {1}));
	all.push_back(from_lengths("empties", std::vector<int64_t>(5000, 0)));
	all.push_back(from_lengths("ones", std::vector<int64_t>(9001, 1)));
	for (int64_t tile : {512, 1024, 2048, 4096})
		for (int64_t n : {tile - 1, tile, tile + 1})
			all.push_back(from_lengths("tile edge", {n, 0, n, n}));
	all.push_back(from_lengths("one long", {20021 * scale}));
	all.push_back(from_lengths("two long", {12011 * scale, 0, 0, 9000 * scale}));
	all.push_back(random_lengths("0 to 64", r, 2200 * scale, 64, 0));
	all.push_back(random_lengths("half empty", r, 8000 * scale, 4, 4));
	all.push_back(random_lengths("mostly empty", r, 8000 * scale, 20, 7));
	all.push_back(random_lengths("hundreds", r, 160 * scale, 900, 1));
	all.push_back(power_law(r, 2000 * scale, 14));
	if (large)
		all.push_back(from_lengths("a giant and tiny ones", giant));
	return all;
}

/* ---- one operator ------------------------------------------------------ */

struct Options
{
	bool		planned = false;
	bool		indirect = false;
	bool		device_count = false;
	int			repeats = 1;
};

static void
reduce(const GpuaggSegments *segments, MonoidId op, GpuaggValueType type, const void *values, void *states,
	   uint32_t *errors)
{
	size_t		bytes;

	STATUS_MUST(gpuagg_cuda_segmented_reduce(segments, op, type, values, states, errors, nullptr, &bytes, 0));

	DeviceArray<char> workspace(bytes);

	STATUS_MUST(gpuagg_cuda_segmented_reduce(segments, op, type, values, states, errors, workspace.get(),
											 &bytes, 0));
	CUDA_MUST(cudaDeviceSynchronize());
	CHECK(workspace.guards_intact(), "workspace overrun");
}

template <class InT, class In, class State>
static void
check_monoid(const char *name, MonoidId op, GpuaggValueType type, State (*identity) (), State (*step) (State, In),
			 const Geometry &g, uint64_t seed, Options o = Options())
{
	Random		r(seed);
	int64_t		nseg = (int64_t) g.offsets.size() - 1;
	int64_t		n = g.offsets.back();
	int64_t		lead = (int64_t) r.below(5);	/* offsets[0] */
	std::vector<InT> values(n + lead);
	std::vector<int64_t> offsets(g.offsets);
	std::vector<int64_t> sources(nseg);
	std::vector<State> first;

	for (InT &x : values)
		make(r, &x);
	for (int64_t &e : offsets)
		e += lead;
	for (int64_t s = 0; s < nseg; s++)
	{
		int64_t		length = offsets[s + 1] - offsets[s];

		sources[s] = o.indirect ? (int64_t) r.below(n + lead - length + 1) : offsets[s];
	}

	DeviceArray<InT> d_values(values, r.below(4));
	DeviceArray<int64_t> d_offsets(offsets);
	DeviceArray<int64_t> d_sources(sources);
	DeviceArray<int64_t> d_count(std::vector<int64_t>(1, nseg));
	GpuaggSegments segments = {n, nseg, nullptr, d_offsets, o.indirect ? d_sources.get() : nullptr, 0, nullptr};
	size_t		plan_bytes = 1;

	if (o.device_count)
	{
		segments.nsegments_device = d_count;
		segments.nsegments = nseg + 1000;
	}
	if (o.planned)
		STATUS_MUST(gpuagg_cuda_segments_plan(&segments, nullptr, &plan_bytes, 0));

	DeviceArray<char> plan(plan_bytes);

	if (o.planned)
		STATUS_MUST(gpuagg_cuda_segments_plan(&segments, plan.get(), &plan_bytes, 0));
	for (int repeat = 0; repeat < o.repeats; repeat++)
	{
		DeviceArray<State> d_states(nseg, r.below(2));
		DeviceArray<uint32_t> d_errors(std::vector<uint32_t>(1, 0));

		reduce(&segments, op, type, d_values, d_states, d_errors);

		std::vector<State> states = d_states.take();

		CHECK(d_states.guards_intact(), "%s, %s: results overrun", name, g.name);
		if (repeat == 0)
			first = states;
		CHECK(memcmp(first.data(), states.data(), nseg * sizeof(State)) == 0, "%s, %s: other bits on another run",
			  name, g.name);
	}
	for (int64_t s = 0; s < nseg; s++)
	{
		State		expected = identity();

		for (int64_t e = 0; e < offsets[s + 1] - offsets[s]; e++)
			expected = step(expected, (In) values[sources[s] + e]);
		CHECK(same(expected, first[s]), "%s, %s, segment %ld of %ld (%ld elements): wrong state", name, g.name,
			  (long) s, (long) nseg, (long) (offsets[s + 1] - offsets[s]));
	}
}

/* The stored types beside the native one: name, NAME, input, state, stored type, its enum. */
#define EACH_NARROW(CALL) \
	CALL(sum_i64, SUM_I64, int64_t, int64_t, int16_t, GPUAGG_VALUE_I16) \
	CALL(sum_i64, SUM_I64, int64_t, int64_t, int32_t, GPUAGG_VALUE_I32) \
	CALL(sum_f64, SUM_F64, double, double, float, GPUAGG_VALUE_F32) \
	CALL(accum_f64, ACCUM_F64, double, gpuagg_accum, float, GPUAGG_VALUE_F32)

#define CHECK_ONE(name, NAME, input_t, state_t, stored_t, type) \
	check_monoid<stored_t, input_t, state_t>(#name, MONOID_##NAME, type, name##_identity, name##_step, \
											 geometry, seed++, options);

/* Every operator and stored type over one geometry. */
static void
check_all(const Geometry &geometry, uint64_t seed, Options options)
{
#define MONOID(NAME, name, input_t, state_t, comm, atomic, text) \
	CHECK_ONE(name, NAME, input_t, state_t, input_t, GPUAGG_VALUE_NATIVE)
#include "monoid_list.h"
#undef MONOID
	EACH_NARROW(CHECK_ONE)
}

/* ---- tests ------------------------------------------------------------- */

/* Up to 2^19 elements: the single launch, with every number of threads a segment. */
GPU_TEST(segmented_small)
{
	Random		r(1);

	for (const Geometry &g : geometries(r, false))
		check_all(g, 100, Options());
	for (int64_t mean : {2, 5, 9, 20, 40, 100, 300, 600, 5000})
		check_all(random_lengths("mean", r, (int) (30000 / mean) + 2, 2 * mean, 1), mean, Options());
}

/* The chunks, forced by a plan also where the elements are few. */
GPU_TEST(segmented_planned)
{
	Random		r(2);
	Options		options;

	options.planned = true;
	for (const Geometry &g : geometries(r, false))
		check_all(g, 200, options);
}

GPU_TEST(segmented_chunks)
{
	Random		r(3);

	for (const Geometry &g : geometries(r, true))
		if (g.offsets.back() > (1 << 19) || gpu_test_quick())
			check_all(g, 300, Options());
}

GPU_TEST(segmented_device_count)
{
	Random		r(4);
	Options		options;

	options.device_count = true;
	check_all(random_lengths("device count", r, 3000, 64, 2), 400, options);
	check_all(from_lengths("device count, empties", std::vector<int64_t>(3000, 0)), 401, options);
}

GPU_TEST(segmented_indirect)
{
	Random		r(5);
	Options		options;

	options.indirect = true;
	check_all(random_lengths("indirect, small", r, 900, 64, 2), 500, options);
	options.planned = true;
	check_all(random_lengths("indirect", r, 3000, 64, 2), 501, options);
	check_all(power_law(r, 2000, 14), 502, options);
	check_all(from_lengths("indirect, long", {20000, 3, 0, 9000}), 503, options);
}

GPU_TEST(segmented_reproducible)
{
	Random		r(6);
	Options		options;

	options.repeats = 10;
	check_all(power_law(r, gpu_test_quick() ? 500 : 10000, 16), 600, options);
	options.planned = true;
	check_all(random_lengths("again", r, 3000, 64, 1), 601, options);
}

/* Lengths from `least` on, `spread` of them, with one that is longer. */
static Geometry
even_lengths(const char *name, Random &r, int64_t elements, int64_t least, int64_t spread, int64_t longest)
{
	Geometry	g = {name, {0}};

	while (g.offsets.back() < elements)
		g.offsets.push_back(g.offsets.back() + least + (int64_t) r.below(spread));
	g.offsets.push_back(g.offsets.back() + longest);
	g.offsets.push_back(g.offsets.back() + least);
	return g;
}

/* Where the form for even lengths is tried, with a segment for a thread to many blocks. */
static std::vector<Geometry>
even_geometries(Random &r)
{
	int64_t		n = (1 << 19) + 10000;
	std::vector<Geometry> all;

	all.push_back(even_lengths("even, 0 to 4", r, n, 0, 5, 60));
	all.push_back(even_lengths("even, ones", r, n, 1, 1, 1));
	all.push_back(even_lengths("even, 0 to 40", r, n, 0, 41, 50));
	all.push_back(even_lengths("even, sixties", r, n, 60, 10, 65));
	all.push_back(even_lengths("even, hundreds", r, n, 250, 100, 300));
	all.push_back(even_lengths("even, thousands", r, n, 3001, 7, 3000));
	all.push_back(even_lengths("even, ten thousands", r, n, 17001, 700, 17000));
	all.push_back(from_lengths("even, three", {n / 3, n / 3 + 1, n / 3 - 77}));
	all.push_back(from_lengths("even, one", {n + 3}));
	all.push_back(from_lengths("uneven, two", {n / 5, n}));
	return all;
}

/* A few operators and types over one geometry. */
#define CHECK_SOME \
	{ \
		EACH_NARROW(CHECK_ONE) \
		CHECK_ONE(argmax, ARGMAX, gpuagg_kv, gpuagg_kv, gpuagg_kv, GPUAGG_VALUE_NATIVE) \
	}

/* Tries the even form with few elements, too. */
struct EvenAnyway
{
	int64_t		least;

	EvenAnyway() : least(seg_even_least) { seg_even_least = 0; }
	~EvenAnyway() { seg_even_least = least; }
};

GPU_TEST(segmented_even)
{
	EvenAnyway	anyway;
	Random		r(12);
	Options		options;

	options.repeats = 2;
	for (const Geometry &geometry : even_geometries(r))
	{
		uint64_t	seed = 700;

		if (gpu_test_quick())
			CHECK_SOME
		else
			check_all(geometry, seed, options);
	}
	if (gpu_test_quick())
		return;
	/* long enough that a longer segment among others is allowed, and left to its warp */
	for (const Geometry &geometry : {even_lengths("even tens, but one", r, 8000000, 10, 20, 1300),
									 even_lengths("even hundreds, but one", r, 4500000, 90, 20, 700)})
	{
		uint64_t	seed = 750;

		CHECK_SOME
	}
}

/*
 * What is noted in the workspace: calls one after another over even and uneven
 * lengths and values whose sum overflows in one workspace, whatever was there
 * before, give what each gives alone.
 */
GPU_TEST(segmented_even_turns)
{
	EvenAnyway	anyway;
	Random		r(13);
	std::vector<Geometry> geometries = {even_lengths("turns, hundreds", r, 1 << 20, 250, 100, 300),
										even_lengths("turns, uneven", r, 1 << 20, 250, 100, 200000),
										even_lengths("turns, tens", r, 1 << 20, 20, 20, 30)};
	DeviceArray<uint64_t> shared(1 << 18);

	for (int round = 0; round < 4; round++)
		for (const Geometry &g : geometries)
		{
			int64_t		n = g.offsets.back();
			int64_t		nseg = (int64_t) g.offsets.size() - 1;
			bool		overflow = round == 2;
			std::vector<double> values(n);

			for (double &x : values)
				x = (r.uniform() - 0.5) * exp2((double) r.below(40));
			if (overflow)
				values[n / 2] = values[n / 2 + 1] = values[n / 2 + 2] = DBL_MAX;

			DeviceArray<double> d_values(values);
			DeviceArray<int64_t> d_offsets(g.offsets);
			DeviceArray<double> alone(nseg),
						again(nseg);
			DeviceArray<uint32_t> alone_errors(std::vector<uint32_t>(1, 0)),
						again_errors(std::vector<uint32_t>(1, 0));
			GpuaggSegments segments = {n, nseg, nullptr, d_offsets, nullptr, 0, nullptr};
			size_t		bytes = shared.count * sizeof(uint64_t);

			reduce(&segments, MONOID_SUM_F64, GPUAGG_VALUE_NATIVE, d_values, alone, alone_errors);
			STATUS_MUST(gpuagg_cuda_segmented_reduce(&segments, MONOID_SUM_F64, GPUAGG_VALUE_NATIVE, d_values, again,
													 again_errors, shared, &bytes, 0));

			std::vector<double> states = alone.take();

			CHECK(memcmp(states.data(), again.take().data(), nseg * sizeof(double)) == 0, "%s, round %d: other bits",
				  g.name, round);
			CHECK(alone_errors.take() == again_errors.take(), "%s, round %d: other errors", g.name, round);
			CHECK((alone_errors.take()[0] != 0) == overflow, "%s, round %d: errors %u", g.name, round,
				  alone_errors.take()[0]);
			for (int64_t s = 0; s < nseg; s++)
			{
				double		sum = 0,
							magnitude = 0;

				for (int64_t e = g.offsets[s]; e < g.offsets[s + 1]; e++)
				{
					sum += values[e];
					magnitude += fabs(values[e]);
				}
				CHECK(sum == states[s] || fabs(sum - states[s]) <= 1e-12 * magnitude, "%s, segment %ld: %g, not %g",
					  g.name, (long) s, states[s], sum);
			}
		}
	CHECK(shared.guards_intact(), "workspace overrun");
}

/* Sums that do depend on the order still give the same bits, and are close. */
GPU_TEST(segmented_float_rounding)
{
	Random		r(7);
	int64_t		n = gpu_test_quick() ? 20000 : 3000000;
	std::vector<double> values(n);
	Geometry	g = from_lengths("rounding", {n / 3, 5, n - n / 3 - 5});
	std::vector<double> first;

	for (double &x : values)
		x = (r.uniform() - 0.5) * exp2((double) r.below(40));

	DeviceArray<double> d_values(values);
	DeviceArray<int64_t> d_offsets(g.offsets);
	GpuaggSegments segments = {n, 3, nullptr, d_offsets, nullptr, 0, nullptr};

	for (int repeat = 0; repeat < 10; repeat++)
	{
		DeviceArray<double> d_states(3);

		reduce(&segments, MONOID_SUM_F64, GPUAGG_VALUE_NATIVE, d_values, d_states, nullptr);
		if (repeat == 0)
			first = d_states.take();
		CHECK(memcmp(first.data(), d_states.take().data(), 24) == 0, "run %d: other bits", repeat);
	}
	for (int s = 0; s < 3; s++)
	{
		long double sum = 0,
					magnitude = 0;

		for (int64_t e = g.offsets[s]; e < g.offsets[s + 1]; e++)
		{
			sum += values[e];
			magnitude += fabs(values[e]);
		}
		CHECK(fabsl(sum - first[s]) <= 1e-13L * magnitude, "segment %d: off by %Lg", s, sum - first[s]);
	}
}

/* NaN, infinities, the extreme integers and the error bits. */
GPU_TEST(segmented_extremes)
{
	const double inf = INFINITY;
	std::vector<double> values = {NAN, 1, inf, -inf, -inf, DBL_MAX, DBL_MAX, 2, inf, -inf, NAN, NAN, -0.0};
	std::vector<int64_t> offsets = {0, 2, 4, 5, 7, 8, 10, 12, 13};
	DeviceArray<double> d_values(values);
	DeviceArray<int64_t> d_offsets(offsets);

	for (int planned = 0; planned < 2; planned++)
	{
		GpuaggSegments segments = {13, 8, nullptr, d_offsets, nullptr, 0, nullptr};
		size_t		bytes;

		STATUS_MUST(gpuagg_cuda_segments_plan(&segments, nullptr, &bytes, 0));

		DeviceArray<char> plan(bytes);

		if (planned)
			STATUS_MUST(gpuagg_cuda_segments_plan(&segments, plan.get(), &bytes, 0));
		for (MonoidId op : {MONOID_SUM_F64, MONOID_MIN_F64, MONOID_MAX_F64})
		{
			DeviceArray<double> d_states(8);
			DeviceArray<uint32_t> d_errors(std::vector<uint32_t>(1, 0));
			int			errors = 0;

			reduce(&segments, op, GPUAGG_VALUE_NATIVE, d_values, d_states, d_errors);

			std::vector<double> states = d_states.take();

			for (int s = 0; s < 8; s++)
			{
				double		e = op == MONOID_SUM_F64 ? sum_f64_identity() :
					op == MONOID_MIN_F64 ? min_f64_identity() : max_f64_identity();

				for (int64_t i = offsets[s]; i < offsets[s + 1]; i++)
				{
					double		before = e;

					e = op == MONOID_SUM_F64 ? sum_f64_step(e, values[i]) :
						op == MONOID_MIN_F64 ? min_f64_step(e, values[i]) : max_f64_step(e, values[i]);
					if (op == MONOID_SUM_F64)
						errors |= sum_f64_error(before, values[i], e);
				}
				CHECK((isnan(e) && isnan(states[s])) || e == states[s], "%s, segment %d: %g, not %g",
					  gpuagg_monoids[op].name, s, states[s], e);
			}
			CHECK(errors == (int) d_errors.take()[0], "%s: error bits %u, not %d", gpuagg_monoids[op].name,
				  d_errors.take()[0], errors);
		}
	}
}

/*
 * Subarray sums with elements beyond the bounds of the shorter steps among
 * others: near the integers' limits without leaving them, overflow, NaN and
 * infinities.
 */
GPU_TEST(segmented_subarray_limits)
{
	const double inf = INFINITY;
	const double odd[] = {NAN, inf, -inf, 1e307, -1e307};
	Random		r(11);
	const int	nseg = 400,
				length = 30;	/* most rows have a segment's end */
	std::vector<int64_t> x(nseg * length);
	std::vector<double> y(nseg * length);
	std::vector<int64_t> offsets(nseg + 1);

	for (int i = 0; i < nseg * length; i++)
	{
		int			segment = i / length;

		x[i] = segment % 7 == 0 && r.below(15) == 0 ? ((int64_t) r.next() >> 5) : (int64_t) r.below(2001) - 1000;
		if (segment % 50 == 3)
			x[i] = INT64_MAX - 5;
		y[i] = segment % 5 == 0 && r.below(20) == 0 ? odd[r.below(5)] : (double) (int) r.below(2001) - 1000;
	}
	for (int s = 0; s <= nseg; s++)
		offsets[s] = s * length;

	DeviceArray<int64_t> d_x(x);
	DeviceArray<double> d_y(y);
	DeviceArray<int64_t> d_offsets(offsets);
	DeviceArray<gpuagg_maxsub_i64> d_sub(nseg);
	DeviceArray<gpuagg_maxsub_f64> d_subf(nseg);
	GpuaggSegments segments = {nseg * length, nseg, nullptr, d_offsets, nullptr, 0, nullptr};

	reduce(&segments, MONOID_MAXSUB_I64, GPUAGG_VALUE_NATIVE, d_x, d_sub, nullptr);
	reduce(&segments, MONOID_MAXSUB_F64, GPUAGG_VALUE_NATIVE, d_y, d_subf, nullptr);

	std::vector<gpuagg_maxsub_i64> sub = d_sub.take();
	std::vector<gpuagg_maxsub_f64> subf = d_subf.take();

	for (int s = 0; s < nseg; s++)
	{
		gpuagg_maxsub_i64 e = maxsub_i64_identity();
		gpuagg_maxsub_f64 f = maxsub_f64_identity();

		for (int i = s * length; i < (s + 1) * length; i++)
		{
			e = maxsub_i64_step(e, x[i]);
			f = maxsub_f64_step(f, y[i]);
		}
		CHECK((e.best < 0) == (s % 50 == 3) && e.best == sub[s].best, "segment %d: %ld, not %ld", s,
			  (long) sub[s].best, (long) e.best);
		CHECK(f.flags == subf[s].flags && same(maxsub_f64_best(f), maxsub_f64_best(subf[s])),
			  "segment %d: %g, not %g", s, maxsub_f64_best(subf[s]), maxsub_f64_best(f));
	}
}

template <class Key>
static void
check_keys(Random &r, int64_t n, uint64_t distinct, Key (*widen) (uint64_t))
{
	std::vector<uint64_t> codes(n);
	std::vector<Key> keys(n);
	std::vector<int64_t> heads;
	size_t		bytes;
	GpuaggSegments segments;

	for (uint64_t &c : codes)
		c = r.below(distinct);
	std::sort(codes.begin(), codes.end());
	for (int64_t i = 0; i < n; i++)
	{
		keys[i] = widen(codes[i]);
		if (i == 0 || codes[i] != codes[i - 1])
			heads.push_back(i);
	}

	DeviceArray<Key> d_keys(keys, 1);
	DeviceArray<int64_t> d_offsets(n + 1);
	DeviceArray<int64_t> d_count(1);
	DeviceArray<Key> d_unique(n);

	STATUS_MUST(gpuagg_cuda_segments_from_keys(sizeof(Key), d_keys, n, d_offsets, d_count, &segments, nullptr,
											   &bytes, 0));

	DeviceArray<char> workspace(bytes);

	STATUS_MUST(gpuagg_cuda_segments_from_keys(sizeof(Key), d_keys, n, d_offsets, d_count, &segments,
											   workspace.get(), &bytes, 0));
	STATUS_MUST(gpuagg_cuda_gather(sizeof(Key), d_keys, d_offsets, n, d_count, d_unique, 0));

	int64_t		runs = d_count.take()[0];
	std::vector<int64_t> offsets = d_offsets.take();
	std::vector<Key> unique = d_unique.take();

	CHECK(runs == (int64_t) heads.size(), "%ld runs, not %zu", (long) runs, heads.size());
	for (size_t s = 0; s < heads.size() && runs == (int64_t) heads.size(); s++)
	{
		CHECK(offsets[s] == heads[s], "run %zu starts at %ld, not %ld", s, (long) offsets[s], (long) heads[s]);
		CHECK(memcmp(&unique[s], &keys[heads[s]], sizeof(Key)) == 0, "run %zu: another key", s);
	}
	CHECK(offsets[runs] == n, "the last run ends at %ld, not %ld", (long) offsets[runs], (long) n);
	CHECK(d_offsets.guards_intact() && d_unique.guards_intact(), "overrun");

	/* and reduced: the number of rows of each key */
	DeviceArray<int8_t> d_values(n);
	DeviceArray<int64_t> d_states(n);

	reduce(&segments, MONOID_COUNT, GPUAGG_VALUE_NATIVE, d_values, d_states, nullptr);

	std::vector<int64_t> states = d_states.take();

	for (size_t s = 0; s < heads.size(); s++)
		CHECK(states[s] == (s + 1 < heads.size() ? heads[s + 1] : n) - heads[s], "run %zu: count %ld", s,
			  (long) states[s]);
}

GPU_TEST(segmented_by_key)
{
	Random		r(8);

	for (uint64_t distinct : {1, 7, 200})
		for (int64_t n : {1, 2, 1000, 70001})
		{
			check_keys<uint8_t>(r, n, distinct, [](uint64_t c) { return (uint8_t) c; });
			check_keys<int16_t>(r, n, distinct, [](uint64_t c) { return (int16_t) (c * 77); });
			check_keys<int32_t>(r, n, distinct * 50, [](uint64_t c) { return (int32_t) (c * 0x10001); });
			check_keys<int64_t>(r, n, distinct * 50, [](uint64_t c) { return (int64_t) (c << 40); });
			check_keys<gpuagg_kv>(r, n, distinct * 50,
								  [](uint64_t c) { return gpuagg_kv{(int64_t) (c & 1), (int64_t) (c >> 1) * 3}; });
			check_keys<gpuagg_kv>(r, n, distinct, [](uint64_t c) { return gpuagg_kv{(int64_t) c, 5}; });
		}
}

/* The rows that std::stable_sort puts in order, by words of all widths. */
static std::vector<int64_t>
sorted_rows(const std::vector<std::vector<int64_t>> &words, const std::vector<bool> &descending)
{
	std::vector<int64_t> rows(words[0].size());

	for (size_t i = 0; i < rows.size(); i++)
		rows[i] = (int64_t) i;
	std::stable_sort(rows.begin(), rows.end(), [&](int64_t a, int64_t b) {
		for (size_t w = 0; w < words.size(); w++)
			if (words[w][a] != words[w][b])
				return (words[w][a] < words[w][b]) != descending[w];
		return false;
	});
	return rows;
}

/* Shuffled rows of a non-commutative operator, put in order; some are left out. */
GPU_TEST(segmented_sort_rows)
{
	Random		r(9);

	for (int64_t n : {1, 1000, 100003})
	{
		std::vector<std::vector<int64_t>> word(4, std::vector<int64_t>(n));
		std::vector<bool> descending = {false, true, false, true};
		std::vector<int32_t> group(n);
		std::vector<int8_t> flag(n);
		std::vector<uint8_t> keep(n);
		std::vector<gpuagg_f64x2> values(n);
		size_t		bytes;

		for (int64_t i = 0; i < n; i++)
		{
			word[0][i] = group[i] = (int32_t) r.below(50) - 7;
			word[1][i] = flag[i] = (int8_t) (r.below(3) - 1);
			word[2][i] = r.below(3) ? (int64_t) r.below(100) - 50 : r.below(2) ? INT64_MIN : INT64_MAX;
			word[3][i] = (int64_t) r.below(1000) + ((int64_t) 1 << 40);
			keep[i] = r.below(4) != 0;
			make(r, &values[i]);
		}

		DeviceArray<int32_t> d_group(group);
		DeviceArray<int8_t> d_flag(flag);
		DeviceArray<int64_t> d_order(word[2]);
		DeviceArray<int64_t> d_late(word[3]);
		DeviceArray<uint8_t> d_keep(keep);
		DeviceArray<int64_t> d_permutation(n);
		DeviceArray<int64_t> d_selected(n);
		DeviceArray<int64_t> d_nselected(1);
		DeviceArray<gpuagg_f64x2> d_values(values);
		DeviceArray<gpuagg_f64x2> d_ordered(n);
		GpuaggSortWord words[4] = {{d_group.get(), GPUAGG_VALUE_I32, 6, 0, -7},
								   {d_flag.get(), GPUAGG_VALUE_I8, 2, 1, -1},
								   {d_order.get(), GPUAGG_VALUE_I64, 64, 0, 0},
								   {d_late.get(), GPUAGG_VALUE_I64, 10, 1, (int64_t) 1 << 40}};

		STATUS_MUST(gpuagg_cuda_sort_rows(n, 4, words, d_permutation, nullptr, &bytes, 0));

		DeviceArray<char> workspace(bytes);

		STATUS_MUST(gpuagg_cuda_sort_rows(n, 4, words, d_permutation, workspace.get(), &bytes, 0));
		STATUS_MUST(gpuagg_cuda_gather(sizeof(gpuagg_f64x2), d_values, d_permutation, n, nullptr, d_ordered, 0));
		STATUS_MUST(gpuagg_cuda_select_rows(n, d_permutation, d_keep, d_selected, d_nselected, nullptr, &bytes, 0));

		DeviceArray<char> select(bytes);

		STATUS_MUST(gpuagg_cuda_select_rows(n, d_permutation, d_keep, d_selected, d_nselected, select.get(),
											&bytes, 0));

		std::vector<int64_t> expected = sorted_rows(word, descending);
		std::vector<int64_t> permutation = d_permutation.take();
		std::vector<int64_t> selected = d_selected.take();
		std::vector<gpuagg_f64x2> ordered = d_ordered.take();
		std::vector<int64_t> kept;

		CHECK(permutation == expected, "%ld rows: another order", (long) n);
		for (int64_t i = 0; i < n; i++)
		{
			CHECK(same(ordered[i], values[expected[i]]), "row %ld", (long) i);
			if (keep[expected[i]])
				kept.push_back(expected[i]);
		}
		selected.resize(d_nselected.take()[0]);
		CHECK(selected == kept, "%ld rows: other rows kept", (long) n);
	}
}

GPU_TEST(segmented_combine)
{
	Random		r(10);
	std::vector<gpuagg_f64x2> left(1000),
				right(1000);

	for (int i = 0; i < 1000; i++)
	{
		make(r, &left[i]);
		make(r, &right[i]);
	}

	DeviceArray<gpuagg_f64x2> d_left(left),
				d_right(right);

	STATUS_MUST(gpuagg_cuda_combine(MONOID_LINEAR, 1000, d_left, d_right, d_right, nullptr, 0));

	std::vector<gpuagg_f64x2> out = d_right.take();

	for (int i = 0; i < 1000; i++)
		CHECK(same(out[i], linear_combine(left[i], right[i])), "state %d", i);
}

GPU_TEST(segmented_refusals)
{
	GpuaggSegments segments = {10, 1, nullptr, (const int64_t *) 256, nullptr, 0, nullptr};
	size_t		bytes = 0;

	CHECK(gpuagg_cuda_segmented_reduce(&segments, MONOID_MAT2, GPUAGG_VALUE_I16, nullptr, nullptr, nullptr,
									   nullptr, &bytes, 0) == GPUAGG_CUDA_UNSUPPORTED, "a matrix of int2");
	CHECK(gpuagg_cuda_segmented_reduce(&segments, MONOID_COUNT_OF_IDS, GPUAGG_VALUE_NATIVE, nullptr, nullptr,
									   nullptr, nullptr, &bytes, 0) == GPUAGG_CUDA_INVALID, "no such operator");
	segments.nvalues = (int64_t) 1 << 30;
	bytes = 1;
	CHECK(gpuagg_cuda_segmented_reduce(&segments, MONOID_SUM_I64, GPUAGG_VALUE_NATIVE, nullptr, nullptr, nullptr,
									   (void *) 256, &bytes, 0) == GPUAGG_CUDA_WORKSPACE, "one byte of workspace");
	segments.nvalues = -1;
	CHECK(gpuagg_cuda_segmented_reduce(&segments, MONOID_SUM_I64, GPUAGG_VALUE_NATIVE, nullptr, nullptr, nullptr,
									   nullptr, &bytes, 0) == GPUAGG_CUDA_INVALID, "fewer than no elements");
}

static __global__ void
fill_runs(int8_t *values, int64_t n, int64_t hole)
{
	for (int64_t i = (int64_t) blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (int64_t) gridDim.x * blockDim.x)
		values[i] = i != hole;
}

/* More than 2^31 elements, once, with a commutative and an ordered operator. */
GPU_TEST(segmented_huge)
{
	const int64_t n = ((int64_t) 1 << 31) + 12345;
	const int64_t hole = ((int64_t) 1 << 31) - 77;

	if (gpu_test_quick())
		return;

	std::vector<int64_t> offsets = {0, 10, 10, n - 3, n};
	DeviceArray<int8_t> d_values(n);
	DeviceArray<int64_t> d_offsets(offsets);
	DeviceArray<int64_t> d_counts(4);
	DeviceArray<gpuagg_run> d_runs(4);
	GpuaggSegments segments = {n, 4, nullptr, d_offsets, nullptr, 0, nullptr};

	fill_runs<<<4096, 256>>>(d_values, n, hole);
	reduce(&segments, MONOID_COUNT, GPUAGG_VALUE_NATIVE, d_values, d_counts, nullptr);
	reduce(&segments, MONOID_LONGEST_RUN, GPUAGG_VALUE_NATIVE, d_values, d_runs, nullptr);

	std::vector<int64_t> counts = d_counts.take();
	std::vector<gpuagg_run> runs = d_runs.take();

	CHECK(counts[0] == 10 && counts[1] == 0 && counts[2] == n - 13 && counts[3] == 3, "counts %ld %ld %ld %ld",
		  (long) counts[0], (long) counts[1], (long) counts[2], (long) counts[3]);
	CHECK(runs[0].best == 10 && runs[1].best == 0 && runs[3].best == 3, "short runs");
	CHECK(runs[2].best == hole - 10 && runs[2].suffix == n - 3 - hole - 1, "best run %ld, not %ld",
		  (long) runs[2].best, (long) (hole - 10));
}
