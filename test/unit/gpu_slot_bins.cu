/*
 * gpu_slot_bins.cu
 *	  Tests the server's kernel that computes bins of histograms (device_slot_bins). Covers each
 *	  formula, values at bin edges, and random bits. Reference: operators/bins.h on the host.
 */
#include "common.cuh"
#include "gpu_test.h"
#include "operators/bins.h"
#include "device_cuda/kernels.h"

#include <cmath>

struct Bounds
{
	double lo, hi;
	int n;
};

static const std::vector<Bounds> all_bounds = {{0, 1, 1},
											   {0, 100, 100},
											   {100, 0, 100},
											   {0, 100, 1000},
											   {-60, 180, 48},
											   {0.1, 0.7, 60},
											   {5, -3, 49},
											   {-5e-324, 5e-324, 2},
											   {-1e300, 1e300, 30},
											   {-1.7e308, 1.7e308, 7},
											   {1.7e308, -1.7e308, 20}};

/* Returns the edges of all bins with their neighbours, special values, and random bits. */
static std::vector<double>
test_values(const Bounds &b, Random &r)
{
	std::vector<double> values = {NAN, INFINITY, -INFINITY, 0, -0.0};

	for (int i = 0; i <= b.n; i++)
	{
		double edge = b.lo * ((double) (b.n - i) / b.n) + b.hi * ((double) i / b.n);

		values.insert(values.end(),
					  {edge, std::nextafter(edge, -INFINITY), std::nextafter(edge, INFINITY)});
	}
	for (int i = 0; i < 500; i++)
	{
		uint64_t bits = r.next();
		double x;

		memcpy(&x, &bits, sizeof(x));
		values.push_back(x);
	}
	return values;
}

/* Compares the bins of values near all bounds with those computed on the host. */
static void
check_bins(const Bounds &b, int formula, bool grouped, Random &r)
{
	std::vector<double> values = test_values(b, r);
	size_t n = values.size();
	std::vector<int32_t> group(n);
	std::vector<uint8_t> filter(n), valid((n + 7) / 8);
	std::vector<int32_t> expected(n);
	SlotBins bins = {};

	for (size_t i = 0; i < n; i++)
	{
		bool is_valid = r.below(8) != 0;

		group[i] = grouped ? (int32_t) r.below(5) - 1 : 0;
		filter[i] = r.below(4) != 0;
		valid[i / 8] |= is_valid << i % 8;
		expected[i] = is_valid && filter[i] && group[i] >= 0 ?
			group[i] * (b.n + 2) + gpuagg_bin_uniform(values[i], b.lo, b.hi, b.n, formula) :
			-1;
	}
	DeviceArray<double> device_values(values);
	DeviceArray<int32_t> device_group(group), out(n);
	DeviceArray<uint8_t> device_filter(filter), device_valid(valid);

	bins.kind = WIRE_BIN_UNIFORM;
	bins.column.type = WIRE_F64;
	bins.column.values = device_values.get();
	bins.column.validity = device_valid.get();
	bins.filter = device_filter.get();
	bins.group = grouped ? device_group.get() : nullptr;
	bins.width = b.n + 2;
	bins.n = b.n;
	bins.formula = formula;
	bins.lo = b.lo;
	bins.hi = b.hi;
	STATUS_MUST(device_slot_bins(&bins, (int64_t) n, out.get(), nullptr));
	CUDA_MUST(cudaDeviceSynchronize());
	std::vector<int32_t> got = out.take();

	for (size_t i = 0; i < n; i++)
		CHECK(got[i] == expected[i], "%.17g in %g .. %g by %d, formula %d: bin %d, expected %d",
			  values[i], b.lo, b.hi, b.n, formula, got[i], expected[i]);
	CHECK(out.guards_intact(), "bins overrun");
}

GPU_TEST(slot_bins)
{
	Random r(1);

	for (const Bounds &b : all_bounds)
		for (int formula = 0; formula < GPUAGG_BIN_FORMULAS; formula++)
			if (gpuagg_bins_valid(b.lo, b.hi, b.n, formula))
				for (bool grouped : {false, true})
					check_bins(b, formula, grouped, r);
}
