/*
 * gpu_segmented_test.h
 *	  Shared by the tests of segmented reductions.
 *
 * It has random inputs and the comparison of states for each type, geometries (lists of segments),
 * and check_monoid, which checks one operator over one geometry.
 */
#ifndef GPUAGG_GPU_SEGMENTED_TEST_H
#define GPUAGG_GPU_SEGMENTED_TEST_H

#include <math.h>

#include <algorithm>

#include "gpu_test.h"
#include "segmented_args.h"

/* ---- inputs and comparison by type -------------------------------------- */

/* make() sets *x to a random input.  Combinations of such inputs are exact in any order. */
static inline void
make(Random &r, int8_t *x)
{
	*x = (int8_t) (r.below(8) != 0);
}
static inline void
make(Random &r, int64_t *x)
{
	*x = (int64_t) r.next() >> (20 + r.below(43));
}
static inline void
make(Random &r, double *x)
{
	*x = (double) ((int) r.below(2000001) - 1000000);
}
static inline void
make(Random &r, gpuagg_kv *x)
{
	*x = {(int64_t) r.below(1000), (int64_t) r.next()};
}

static inline void
make(Random &r, gpuagg_f64x2 *x)
{
	x->x = r.below(2) ? 1.0 : -1.0;
	x->y = (double) ((int) r.below(2001) - 1000);
}

/* Makes a signed permutation matrix.  Products of such matrices are exact. */
static inline void
make_matrix(Random &r, double *m, int k)
{
	int column[5] = {0, 1, 2, 3, 4};

	std::fill(m, m + k * k, 0.0);
	for (int i = 0; i < k; i++)
	{
		std::swap(column[i], column[i + (int) r.below(k - i)]);
		m[i * k + column[i]] = r.below(2) ? 1.0 : -1.0;
	}
}
static inline void
make(Random &r, gpuagg_mat2 *x)
{
	make_matrix(r, x->m, 2);
}
static inline void
make(Random &r, gpuagg_mat3 *x)
{
	make_matrix(r, x->m, 3);
}
static inline void
make(Random &r, gpuagg_mat4 *x)
{
	make_matrix(r, x->m, 4);
}
static inline void
make(Random &r, gpuagg_mat5 *x)
{
	make_matrix(r, x->m, 5);
}

/*
 * Returns whether the doubles are equal up to rounding.  The tolerance is in proportion to the
 * largest expected value (a), and only if all expected values are finite.
 */
static inline bool
close_doubles(const double *a, const double *b, int n)
{
	double scale = 0;

	for (int i = 0; i < n; i++)
		scale = fmax(scale, fabs(a[i]));
	for (int i = 0; i < n; i++)
		if (!(a[i] == b[i] || (isnan(a[i]) && isnan(b[i])) ||
			  (isfinite(scale) && fabs(a[i] - b[i]) <= 1e-9 * scale)))
			return false;
	return true;
}

/*
 * Returns whether states are equal.  Types without doubles compare bytes; for doubles NaN equals
 * NaN, and 0 equals -0.
 */
template <class T>
static inline bool
same(const T &a, const T &b)
{
	return memcmp(&a, &b, sizeof(T)) == 0;
}
static inline bool
same(const double &a, const double &b)
{
	return close_doubles(&a, &b, 1);
}
static inline bool
same(const gpuagg_maxsub_f64 &a, const gpuagg_maxsub_f64 &b)
{
	return a.flags == b.flags && close_doubles(&a.total, &b.total, 4);
}
static inline bool
same(const gpuagg_f64x2 &a, const gpuagg_f64x2 &b)
{
	return close_doubles(&a.x, &b.x, 2);
}
static inline bool
same(const gpuagg_mat2 &a, const gpuagg_mat2 &b)
{
	return close_doubles(a.m, b.m, 4);
}
static inline bool
same(const gpuagg_mat3 &a, const gpuagg_mat3 &b)
{
	return close_doubles(a.m, b.m, 9);
}
static inline bool
same(const gpuagg_mat4 &a, const gpuagg_mat4 &b)
{
	return close_doubles(a.m, b.m, 16);
}
static inline bool
same(const gpuagg_mat5 &a, const gpuagg_mat5 &b)
{
	return close_doubles(a.m, b.m, 25);
}

/* ---- geometries -------------------------------------------------------- */

/* A list of segments. */
struct Geometry
{
	const char *name;
	std::vector<int64_t> offsets; /* start of each segment, and the end; the first is 0 */
};

static inline Geometry
from_lengths(const char *name, const std::vector<int64_t> &lengths)
{
	Geometry g = {name, {0}};

	for (int64_t n : lengths)
		g.offsets.push_back(g.offsets.back() + n);
	return g;
}

/* Returns segments of random lengths up to `limit`.  empty_in_8 of 8 segments are empty. */
static inline Geometry
random_lengths(const char *name, Random &r, int segments, int64_t limit, int empty_in_8)
{
	std::vector<int64_t> lengths;

	for (int i = 0; i < segments; i++)
		lengths.push_back((int) r.below(8) < empty_in_8 ? 0 : (int64_t) r.below(limit + 1));
	return from_lengths(name, lengths);
}

/* Returns many short and few long segments.  Lengths are below 2^bits. */
static inline Geometry
power_law(Random &r, int segments, int bits)
{
	std::vector<int64_t> lengths;

	for (int i = 0; i < segments; i++)
		lengths.push_back((int64_t) exp2(-log2(r.uniform() + 1e-9)) & (((int64_t) 1 << bits) - 1));
	return from_lengths("power law", lengths);
}

/* Returns segments of every kind.  `large`: with more elements. */
static inline std::vector<Geometry>
geometries(Random &r, bool large)
{
	std::vector<Geometry> all;
	std::vector<int64_t> giant(20000, 1);
	int scale = large ? (gpu_test_quick() ? 1 : 8) : 1;

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

/* Reduces segments on the device, with a workspace of its own. */
static inline void
reduce(const GpuaggSegments *segments, MonoidId op, const void *values, void *states)
{
	size_t bytes;

	STATUS_MUST(gpuagg_cuda_segmented_reduce(segments, op, values, states, nullptr, &bytes, 0));

	DeviceArray<char> workspace(bytes);

	STATUS_MUST(
		gpuagg_cuda_segmented_reduce(segments, op, values, states, workspace.get(), &bytes, 0));
	CUDA_MUST(cudaDeviceSynchronize());
	CHECK(workspace.guards_intact(), "workspace overrun");
}

/*
 * Reduces random values by one operator, `repeats` times, and compares the states with a fold on
 * the CPU.  Each repetition must give the same bits.  The values and the states start at random
 * alignments.
 */
template <class Op>
static inline void
check_monoid(const char *name, const Geometry &g, uint64_t seed, int repeats)
{
	typedef typename Op::Input Input;
	typedef typename Op::State State;

	Random r(seed);
	int64_t nseg = (int64_t) g.offsets.size() - 1;
	int64_t n = g.offsets.back();
	int64_t lead = (int64_t) r.below(5); /* number of unused elements before the first segment */
	std::vector<Input> values(n + lead);
	std::vector<int64_t> offsets(g.offsets);
	std::vector<State> first;

	for (Input &x : values)
		make(r, &x);
	for (int64_t &e : offsets)
		e += lead;

	DeviceArray<Input> d_values(values, r.below(4));
	DeviceArray<int64_t> d_offsets(offsets);
	GpuaggSegments segments = {n, nseg, d_offsets};

	for (int repeat = 0; repeat < repeats; repeat++)
	{
		DeviceArray<State> d_states(nseg, r.below(2));

		reduce(&segments, Op::id, d_values, d_states);

		std::vector<State> states = d_states.take();

		CHECK(d_states.guards_intact(), "%s, %s: results overrun", name, g.name);
		if (repeat == 0)
			first = states;
		CHECK(memcmp(first.data(), states.data(), nseg * sizeof(State)) == 0,
			  "%s, %s: other bits on another run", name, g.name);
	}
	for (int64_t s = 0; s < nseg; s++)
	{
		State expected = Op::identity();

		for (int64_t e = 0; e < offsets[s + 1] - offsets[s]; e++)
			expected = Op::step(expected, values[offsets[s] + e]);
		CHECK(same(expected, first[s]), "%s, %s, segment %ld of %ld (%ld elements): wrong state",
			  name, g.name, (long) s, (long) nseg, (long) (offsets[s + 1] - offsets[s]));
	}
}

/*
 * Returns segments of `least` to `least` + `spread` - 1 elements, with one of `longest` near the
 * end.
 */
static inline Geometry
even_lengths(const char *name, Random &r, int64_t elements, int64_t least, int64_t spread,
			 int64_t longest)
{
	Geometry g = {name, {0}};

	while (g.offsets.back() < elements)
		g.offsets.push_back(g.offsets.back() + least + (int64_t) r.below(spread));
	g.offsets.push_back(g.offsets.back() + longest);
	g.offsets.push_back(g.offsets.back() + least);
	return g;
}

/* Returns the first bytes of a state, for messages. */
template <class State>
static unsigned long
seg_first_word(const State &state)
{
	unsigned long word = 0;

	memcpy(&word, &state, std::min(sizeof(word), sizeof(State)));
	return word;
}

#endif /* GPUAGG_GPU_SEGMENTED_TEST_H */
