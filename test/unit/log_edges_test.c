/*
 * log_edges_test.c
 *	  Tests the edges of log-spaced bins (operators/log_edges.h).
 *
 * Edges that are powers of integers are exact. Edges of random ranges are compared with extended
 * precision, and with the edges of twice as many bins. Edges ascend and are within the range.
 */
#include "unit.h"

#include <float.h>

#include "operators/log_edges.h"

/* Returns a positive normal double of any magnitude. */
static double
random_positive(void)
{
	return ldexp(1 + random_unit(), (int) random_below(2040) - 1020);
}

static void
edges_at_powers(void)
{
	for (int base = 2; base <= 10; base++)
	{
		int n = 15;
		gpuagg_log_range r = gpuagg_log_range_of(1, pow(base, n), n);
		double power = 1;

		for (int i = 0; i <= n; i++, power *= base)
			CHECK(gpuagg_log_edge(&r, i) == power, "%d^%d is %.17g", base, i,
				  gpuagg_log_edge(&r, i));
	}
}

/*
 * Every second edge of twice as many bins is an edge of these. It is equal, as each edge is rounded
 * once.
 */
static void
edges_of_twice_as_many_bins(void)
{
	for (int round = 0; round < 500; round++)
	{
		double a = random_positive(), b = random_positive();
		int n = 1 + (int) random_below(200);
		gpuagg_log_range r = gpuagg_log_range_of(a < b ? a : b, a < b ? b : a, n);
		gpuagg_log_range twice = gpuagg_log_range_of(r.lo, r.hi, 2 * n);

		for (int i = 0; i <= n; i++)
			CHECK(gpuagg_log_edge(&r, i) == gpuagg_log_edge(&twice, 2 * i),
				  "%a .. %a, %d of %d: %a or %a", r.lo, r.hi, i, n, gpuagg_log_edge(&r, i),
				  gpuagg_log_edge(&twice, 2 * i));
	}
}

/*
 * Edges are within 5/8 of a unit in the last place of the edge in extended precision: near the
 * middle between two doubles, the reference may round to the other one. Machines without extended
 * precision have a reference of doubles, and a tolerance of 4 units.
 */
static void
edges_are_nearest(void)
{
	for (int round = 0; round < 20000; round++)
	{
		double lo = random_positive(), hi = lo * (1 + 100 * random_unit());
		int n = 1 + (int) random_below(1000);
		int i = (int) random_below(n + 1);
		gpuagg_log_range r = gpuagg_log_range_of(lo, hi, n);
		double edge = gpuagg_log_edge(&r, i);
		long double exact = lo * expl(logl((long double) hi / lo) * i / n);

		if (isinf(hi) || lo == hi)
			continue;
		CHECK(fabsl(exact - edge) <=
				  (LDBL_MANT_DIG > 60 ? 0.625L : 4) * (nextafter(edge, INFINITY) - edge),
			  "%a .. %a, %d of %d: %a", lo, hi, i, n, edge);
	}
}

static void
edges_ascend(void)
{
	const double bounds[][2] = {{4.9406564584124654e-324, DBL_MAX},
								{1, 1 + 1e-14},
								{DBL_MIN, 1},
								{1e-320, 1e-310},
								{1, 1 + DBL_EPSILON}};

	for (size_t b = 0; b < sizeof(bounds) / sizeof(bounds[0]); b++)
	{
		gpuagg_log_range r = gpuagg_log_range_of(bounds[b][0], bounds[b][1], 999999);
		double before = 0;

		for (int i = 0; i <= r.n; i += i < 2000 || i > 998000 ? 1 : 97)
		{
			double edge = gpuagg_log_edge(&r, i);

			CHECK(edge >= before && edge >= r.lo && edge <= r.hi, "%a .. %a: %a after %a", r.lo,
				  r.hi, edge, before);
			before = edge;
		}
		CHECK(gpuagg_log_edge(&r, 0) == r.lo && gpuagg_log_edge(&r, r.n) == r.hi,
			  "the first and last edge are the bounds");
	}
}

int
main(void)
{
	RUN("edges at powers of integers are exact", edges_at_powers);
	RUN("edges agree with those of twice as many bins", edges_of_twice_as_many_bins);
	RUN("edges are the nearest doubles", edges_are_nearest);
	RUN("edges ascend and are within the range", edges_ascend);
	return unit_done();
}
