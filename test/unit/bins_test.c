/*
 * bins_test.c
 *	  Tests the functions that map a value to a histogram bin (operators/bins.h).
 *
 * They are compared with two references: a search for the edges i - 1 and i between which the value
 * is, for values where no arithmetic rounds; and core's formula, each step in quadruple precision
 * and then rounded, for values at edges. Other tests use known answers of width_bucket() and random
 * doubles.
 */
#include "unit.h"

#include "operators/bins.h"

#define ROUNDS 20000

/*
 * Returns the bin of x among n bins between lo and hi by a search. Inputs must be such that nothing
 * rounds.
 */
static int
bin_by_edges(double x, double lo, double hi, int n)
{
	int sign = lo < hi ? 1 : -1;
	long double width = ((long double) hi - lo) / n;

	if (isnan(x))
		return sign > 0 ? n + 1 : 0;
	if (sign * x < sign * lo)
		return 0;
	for (int i = 1; i <= n; i++)
		if (sign * (long double) x < sign * (lo + i * width))
			return i;
	return n + 1;
}

/* Bin widths are powers of two and values are multiples of 1/16 of a width, so nothing rounds. */
static void
uniform_by_edges(void)
{
	for (int i = 0; i < ROUNDS; i++)
	{
		int n = 1 << random_below(7);
		double width = ldexp(1, (int) random_below(6) - 3);
		double lo = (double) (random_below(41) - 20);
		double hi = lo + (random_below(2) ? 1 : -1) * n * width;
		double x = lo + (double) (random_below(4 * n * 16) - 2 * n * 16) * width / 16;

		for (int f = 0; f < GPUAGG_BIN_FORMULAS; f++)
			CHECK(gpuagg_bin_uniform(x, lo, hi, n, f) == bin_by_edges(x, lo, hi, n),
				  "%g in %g .. %g by %d: %d, by edges %d", x, lo, hi, n,
				  gpuagg_bin_uniform(x, lo, hi, n, f), bin_by_edges(x, lo, hi, n));
	}
}

/*
 * Returns the bin of x by core's formula. Each step is computed in quadruple precision and rounded
 * to double.
 */
static int
bin_by_steps(double x, double lo, double hi, int n, int formula)
{
	__float128 sign = lo < hi ? 1 : -1;
	double from = (double) (sign * ((__float128) x - lo)),
		   width = (double) (sign * ((__float128) hi - lo));
	int bin;

	if (from < 0)
		return 0;
	if (sign * x >= sign * hi)
		return n + 1;
	if (formula == GPUAGG_BINS_PRODUCT)
		return (
			int) (double) ((__float128) (double) ((__float128) (double) ((__float128) n * from) /
												  width) +
						   1);
	bin = (int) (double) ((__float128) n * (double) ((__float128) from / width));
	return bin == n ? n : bin + 1;
}

/*
 * Checks the bin of edge number `edge` of n bins of width 1 / units that start or end at 0. With up
 * to 300 bins, also checks the doubles next to the edge.
 */
static void
check_edge(int edge, int n, int units, int formula, int down)
{
	double at = (double) edge / units;
	double x[] = {at, nextafter(at, -1), nextafter(at, 1e9)};
	double lo = down ? (double) n / units : 0, hi = down ? 0 : (double) n / units;
	int before = down ? n - edge : edge;

	for (int i = 0; i < (n > 300 ? 1 : 3); i++)
	{
		int bin = gpuagg_bin_uniform(x[i], lo, hi, n, formula);
		int by_steps = bin_by_steps(x[i], lo, hi, n, formula);

		CHECK(bin == by_steps, "%.17g in %g .. %g by %d, formula %d: %d, by steps %d", x[i], lo, hi,
			  n, formula, bin, by_steps);
		CHECK(bin == before || bin == before + 1, "%.17g in %g .. %g by %d, formula %d: %d", x[i],
			  lo, hi, n, formula, bin);
	}
}

/* Checks all edges of 1 to 2,000 bins of width 1, 1/10 and 1/100, in both directions. */
static void
decimal_edges(void)
{
	for (int n = 1; n <= 2000; n++)
		for (int edge = 0; edge <= n; edge++)
			for (int units = 1; units <= 100; units *= 10)
				for (int f = 0; f < GPUAGG_BIN_FORMULAS; f++)
				{
					check_edge(edge, n, units, f, 0);
					check_edge(edge, n, units, f, 1);
				}
}

/* For random bounds and values, the bin is in range, and a greater value has no earlier bin. */
static void
uniform_in_range_and_monotone(void)
{
	for (int i = 0; i < ROUNDS; i++)
	{
		uint64_t bits[4];
		double v[4];
		int n = 1 + (int) random_below(random_below(2) ? 10 : 1000000);
		int a, b;

		for (int j = 0; j < 4; j++)
		{
			bits[j] = random_u64();
			memcpy(&v[j], &bits[j], sizeof(double));
			if (random_below(4) == 0)
				v[j] = random_below(2) ? DBL_MAX : -DBL_MAX;
			if (j < 2 && !isfinite(v[j]))
				v[j] = j;
		}
		if (v[0] == v[1])
			continue;
		for (int f = 0; f < GPUAGG_BIN_FORMULAS; f++)
		{
			if (!gpuagg_bins_valid(v[0], v[1], n, f))
				continue;
			a = gpuagg_bin_uniform(v[2], v[0], v[1], n, f);
			b = gpuagg_bin_uniform(v[3], v[0], v[1], n, f);
			CHECK(a >= 0 && a <= n + 1, "%g in %g .. %g by %d: %d", v[2], v[0], v[1], n, a);
			if (v[2] < v[3])
				CHECK(v[0] < v[1] ? a <= b : a >= b, "%g and %g in %g .. %g by %d: %d and %d", v[2],
					  v[3], v[0], v[1], n, a, b);
		}
	}
}

/*
 * Known answers of core's width_bucket(): `product` of release 15, `quotient` of releases from 16
 * on. For NaN, which core rejects, they are the bin after the greatest value.
 */
static void
uniform_examples(void)
{
	static const struct
	{
		double x, lo, hi;
		int n, product, /* -1 if the formula overflows */
			quotient;
	} example[] = {
		{5.35, 0.024, 10.06, 5, 3, 3},
		{0, 0, 10, 5, 1, 1},
		{10, 0, 10, 5, 6, 6},
		{9.99999999, 0, 10, 5, 5, 5},
		{-1e-300, 0, 10, 5, 0, 0},
		{10, 10, 0, 5, 1, 1},
		{0, 10, 0, 5, 6, 6},
		{10.5, 10, 0, 5, 0, 0},
		{INFINITY, 0, 10, 5, 6, 6},
		{-INFINITY, 0, 10, 5, 0, 0},
		{INFINITY, 10, 0, 5, 0, 0},
		{0, -1e308, 1e308, 10, -1, 6},
		{-1e308, -1e308, 1e308, 10, -1, 1},
		{9.9e307, -1e308, 1e308, 10, -1, 10},
		{0, 1e308, -1e308, 10, -1, 6},
		{0.5, 0, 1, 2147483646, 1073741824, 1073741824},
		{NAN, 0, 1, 4, 5, 5},
		{NAN, 1, 0, 4, 0, 0},
		{29, 0, 100, 100, 30, 29},
		{57, 0, 100, 100, 58, 57},
		{0.29, 0, 1, 100, 29, 29},
		{0.99999999999999989, 0, 1, 1, 2, 1},
		{71, 100, 0, 100, 30, 29},
	};

	for (size_t i = 0; i < sizeof(example) / sizeof(example[0]); i++)
		for (int f = 0; f < GPUAGG_BIN_FORMULAS; f++)
		{
			int expected = f == GPUAGG_BINS_PRODUCT ? example[i].product : example[i].quotient;
			int bin;

			CHECK(gpuagg_bins_valid(example[i].lo, example[i].hi, example[i].n, f) ==
					  (expected >= 0),
				  "example %zu", i);
			if (expected < 0)
				continue;
			bin = gpuagg_bin_uniform(example[i].x, example[i].lo, example[i].hi, example[i].n, f);
			CHECK(bin == expected, "example %zu, formula %d: %d", i, f, bin);
		}
	CHECK(!gpuagg_bins_valid(0, 1, 4, GPUAGG_BIN_FORMULAS), "an unknown formula is rejected");
	CHECK(!gpuagg_bins_valid(0, 1e308, 2, GPUAGG_BINS_PRODUCT),
		  "bounds whose product overflows are rejected");
}

/* The bin is the number of thresholds that are not above the value. NaN is above all numbers. */
static void
thresholds_by_counting(void)
{
	for (int i = 0; i < ROUNDS; i++)
	{
		double t[20];
		int n = 1 + (int) random_below(20);
		double x = random_below(20) ? (double) random_below(40) / 2 :
			random_below(2)         ? NAN :
			random_below(2)         ? INFINITY :
									  -INFINITY;
		double next = (double) random_below(3) - 3;
		int expected = 0;

		for (int j = 0; j < n; j++)
		{
			t[j] = next += (double) random_below(5) / 2;
			if (j == n - 1 && random_below(4) == 0)
				t[j] = NAN;
			expected += isnan(x) || t[j] <= x;
		}
		CHECK(gpuagg_bin_thresholds(x, t, n) == expected, "%g among %d: %d, by counting %d", x, n,
			  gpuagg_bin_thresholds(x, t, n), expected);
	}
}

int
main(void)
{
	RUN("uniform bins agree with a search of the edges", uniform_by_edges);
	RUN("uniform bins at decimal edges agree with quadruple precision", decimal_edges);
	RUN("uniform bins are in range and monotone", uniform_in_range_and_monotone);
	RUN("uniform bins agree with width_bucket()", uniform_examples);
	RUN("bins of thresholds agree with counting", thresholds_by_counting);
	return unit_done();
}
