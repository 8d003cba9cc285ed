/*
 * width_bucket.c
 *	  Finds out which formula the running server's width_bucket() uses.
 */
#include "postgres.h"

#include <math.h>

#include "utils/fmgrprotos.h"

#include "analysis/width_bucket.h"

int
core_width_bucket(double x, double lo, double hi, int n)
{
	return DatumGetInt32(DirectFunctionCall4(width_bucket_float8, Float8GetDatum(x),
											 Float8GetDatum(lo), Float8GetDatum(hi),
											 Int32GetDatum(n)));
}

/* Returns whether a formula agrees with core at each edge of these bins and next to it. */
static bool
agrees_between(double lo, double hi, int n, GpuaggBinFormula formula)
{
	for (int i = 0; i <= n; i++)
	{
		double edge = lo * ((double) (n - i) / n) + hi * ((double) i / n);

		for (int side = -1; side <= 1; side++)
		{
			double x = side == 0 ? edge : nextafter(edge, side * HUGE_VAL);

			if (core_width_bucket(x, lo, hi, n) != gpuagg_bin_uniform(x, lo, hi, n, formula))
				return false;
		}
	}
	return true;
}

/*
 * Returns whether a formula agrees with core for all probes.  The known formulas round differently
 * at some edges of most probes.
 */
static bool
agrees_with_core(GpuaggBinFormula formula)
{
	static const struct
	{
		double lo, hi;
		int n;
	} probe[] = {{0, 1, 1},
				 {0, 1, 10},
				 {0, 100, 100},
				 {100, 0, 100},
				 {-60, 180, 48},
				 {0.024, 10.06, 5},
				 {-1, 1, 77},
				 {0.1, 0.7, 60},
				 {5, -3, 49},
				 {1e-300, 1, 13},
				 {-1e300, 1e300, 30},
				 {1, 1.000000000000001, 3},
				 {-5e-324, 5e-324, 2},
				 {1e15, 1e15 + 9, 9},
				 {-1.7e308, 1.7e308, 7},
				 {1.7e308, -1.7e308, 20}};

	for (int i = 0; i < lengthof(probe); i++)
		if (gpuagg_bins_valid(probe[i].lo, probe[i].hi, probe[i].n, formula) &&
			!agrees_between(probe[i].lo, probe[i].hi, probe[i].n, formula))
			return false;
	return true;
}

GpuaggBinFormula
core_bin_formula(void)
{
	static int known = -1;

	if (known < 0)
	{
		GpuaggBinFormula formula = GPUAGG_BINS_PRODUCT;

		while (formula < GPUAGG_BIN_FORMULAS && !agrees_with_core(formula))
			formula++;
		known = formula;
	}
	return (GpuaggBinFormula) known;
}
