/*
 * log_edges_test.c
 *	  The edges of log-spaced bins: exact where the true ones are doubles, else the
 *	  nearest to what extended precision gives, and ascending.
 */
#include "unit.h"

#include <float.h>

#include "operators/log_edges.h"

/* A positive double of any magnitude. */
static double
random_positive(void)
{
	return ldexp(1 + random_unit(), (int) random_below(2040) - 1020);
}

static void
powers(void)
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

/* Half of the edges of twice as many bins are these: all are rounded once. */
static void
twice_as_many(void)
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
 * Near the middle between two doubles extended precision may take the other one; not every machine
 * has it.
 */
static void
nearest(void)
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
ascending(void)
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
			  "bounds are not edges");
	}
}

int
main(void)
{
	RUN("powers of whole numbers", powers);
	RUN("edges of twice as many bins", twice_as_many);
	RUN("the nearest double", nearest);
	RUN("ascending", ascending);
	return unit_done();
}
