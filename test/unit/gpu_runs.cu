/*
 * gpu_runs.cu
 *	  Tests histograms over runs of equal keys: numbering of runs, and every commutative operator
 *	  over runs of all lengths. Covers NULLs, filters, rows read through an order, and states in
 *	  another order than runs. Reference: the same operators on the host, row by row.
 */
#include <math.h>

#include <algorithm>
#include <numeric>

#include "gpu_test.h"
#include "operators/monoid.h"

struct Rows
{
	std::vector<uint32_t> heads;
	std::vector<int32_t> before;
	std::vector<int64_t> run; /* number of each row's run */
	int64_t runs = 0;
};

/*
 * Makes runs with lengths around `mean`; some are many times longer. `begins`: the first row begins
 * a run.
 */
static Rows
make_rows(Random &r, int64_t n, int64_t mean, bool begins)
{
	Rows rows;
	int64_t left = begins ? 0 : 1 + (int64_t) r.below(mean);

	rows.heads.assign((n + 31) / 32, 0);
	rows.runs = begins ? 0 : 1;
	for (int64_t i = 0; i < n; i++)
	{
		if (left == 0)
		{
			rows.heads[i / 32] |= 1u << (i % 32);
			left = 1 + (int64_t) r.below(r.below(50) == 0 ? 100 * mean : 2 * mean);
			rows.runs++;
		}
		left--;
		rows.run.push_back(rows.runs - 1);
	}
	rows.before.push_back(begins ? 0 : 1);
	for (uint32_t word : rows.heads)
		rows.before.push_back(rows.before.back() + __builtin_popcount(word));
	return rows;
}

static const GpuaggValueType integers[] = {GPUAGG_VALUE_I8, GPUAGG_VALUE_I16, GPUAGG_VALUE_I32,
										   GPUAGG_VALUE_I64};
static const int width[] = {0, 1, 2, 4, 8, 4, 8, 16};

/* Writes a random value that is exact in any type. range: the number of different values. */
static void
make_value(Random &r, GpuaggValueType type, char *to, int range)
{
	/* for products 1 and -1, which overflow in no order */
	int64_t v = range == 2 ? 2 * (int64_t) r.below(2) - 1 : (int64_t) r.below(range) - range / 2;
	double d = (double) v;
	float f = (float) v;
	gpuagg_i128 wide = v;

	if (type == GPUAGG_VALUE_F64)
		memcpy(to, &d, 8);
	else if (type == GPUAGG_VALUE_F32)
		memcpy(to, &f, 4);
	else if (type == GPUAGG_VALUE_I128)
		memcpy(to, &wide, 16);
	else
		memcpy(to, &v, width[type]);
}

/* Returns integer i of a column of this type. */
static int64_t
integer_at(const std::vector<char> &values, GpuaggValueType type, size_t i)
{
	const char *at = values.data() + i * width[type];

	switch (type)
	{
		case GPUAGG_VALUE_I8:
			return *(const int8_t *) at;
		case GPUAGG_VALUE_I16:
			return *(const int16_t *) at;
		case GPUAGG_VALUE_I32:
			return *(const int32_t *) at;
		default:
			return *(const int64_t *) at;
	}
}

/* Returns float i of a column of this type as a double. */
static double
double_at(const std::vector<char> &values, GpuaggValueType type, size_t i)
{
	const char *at = values.data() + i * width[type];

	return type == GPUAGG_VALUE_F32 ? (double) *(const float *) at : *(const double *) at;
}

struct Columns
{
	GpuaggValueType type[2];
	std::vector<char> values[2];
};

/* read_input() sets *v to the input of row i: from one column, or from two for a pair. */
static void
read_input(const Columns &, size_t, int8_t *v)
{
	*v = 1;
}
static void
read_input(const Columns &c, size_t i, int32_t *v)
{
	*v = (int32_t) integer_at(c.values[0], c.type[0], i);
}
static void
read_input(const Columns &c, size_t i, int64_t *v)
{
	*v = integer_at(c.values[0], c.type[0], i);
}
static void
read_input(const Columns &c, size_t i, float *v)
{
	*v = (float) double_at(c.values[0], c.type[0], i);
}
static void
read_input(const Columns &c, size_t i, double *v)
{
	*v = double_at(c.values[0], c.type[0], i);
}
static void
read_input(const Columns &c, size_t i, gpuagg_i128 *v)
{
	*v = c.type[0] == GPUAGG_VALUE_I128 ? *(const gpuagg_i128 *) (c.values[0].data() + 16 * i) :
										  integer_at(c.values[0], c.type[0], i);
}
static void
read_input(const Columns &c, size_t i, gpuagg_f64x2 *v)
{
	*v = {double_at(c.values[0], c.type[0], i), double_at(c.values[1], c.type[1], i)};
}
/* Returns an integer, or the code of a float. */
static int64_t
code_at(const std::vector<char> &values, GpuaggValueType type, size_t i, double zero)
{
	if (type == GPUAGG_VALUE_F32 || type == GPUAGG_VALUE_F64)
		return gpuagg_f64_code(double_at(values, type, i) + zero);
	return integer_at(values, type, i);
}

static void
read_input(const Columns &c, size_t i, gpuagg_kv *v)
{
	*v = {code_at(c.values[0], c.type[0], i, 0.0), code_at(c.values[1], c.type[1], i, -0.0)};
}
template <class T>
static void
read_input(const Columns &, size_t, T *)
{
}

template <class T>
static bool
is_double_state()
{
	return false;
}
template <>
bool
is_double_state<double>()
{
	return true;
}
template <>
bool
is_double_state<gpuagg_accum>()
{
	return true;
}
template <>
bool
is_double_state<gpuagg_regr>()
{
	return true;
}
template <>
bool
is_double_state<gpuagg_moments>()
{
	return true;
}

template <class S>
static bool
same_state(const S &a, const S &b)
{
	if (!is_double_state<S>())
		return memcmp(&a, &b, sizeof(S)) == 0;
	for (size_t i = 0; 8 * (i + 1) <= sizeof(S); i++)
	{
		double x = ((const double *) &a)[i], y = ((const double *) &b)[i];

		if (!(x == y || (isnan(x) && isnan(y)) || fabs(x - y) <= 1e-9 * (fabs(x) + fabs(y)) + 1e-6))
			return false;
	}
	return true;
}

/* Draws a column type that an operator with this input reads. `wide`: its widest type. */
template <class Input>
static GpuaggValueType
draw_type(Random &r, GpuaggValueType wide)
{
	if (std::is_same<Input, float>::value)
		return GPUAGG_VALUE_F32;
	if (std::is_same<Input, double>::value || std::is_same<Input, gpuagg_f64x2>::value)
		return r.below(2) ? GPUAGG_VALUE_F32 : GPUAGG_VALUE_F64;
	if (std::is_same<Input, gpuagg_i128>::value && r.below(3) == 0)
		return wide;
	if (std::is_same<Input, gpuagg_kv>::value && r.below(3) == 0)
		return r.below(2) ? GPUAGG_VALUE_F32 : GPUAGG_VALUE_F64;
	return integers[r.below(std::is_same<Input, int32_t>::value ? 3 : 4)];
}

/* Checks the number of runs that the device counts. */
static void
check_numbers(const Rows &rows, const DeviceArray<uint32_t> &heads, const char *name)
{
	DeviceArray<int32_t> numbers(rows.heads.size() + 1);
	size_t bytes = 0;

	STATUS_MUST(gpuagg_runs_number(heads, rows.heads.size(), numbers, nullptr, &bytes, nullptr));
	DeviceArray<char> work(bytes);

	STATUS_MUST(gpuagg_runs_number(heads, rows.heads.size(), numbers, work.get(), &bytes, nullptr));
	CHECK(numbers.take().back() == rows.before.back() - rows.before[0], "%s: wrong number of runs",
		  name);
}

/* Compares the states of one operator over random runs with those computed on the host. */
template <class Input, class State, class Identity, class Step>
static void
check_operator(Random &r, MonoidId op, const char *name, int64_t n, int64_t mean, Identity identity,
			   Step step)
{
	Rows rows = make_rows(r, n, mean, r.below(3) > 0);
	Columns c;
	std::vector<uint8_t> filter(n), slot_filter(n);
	std::vector<uint32_t> order(n);
	std::vector<int32_t> bins(rows.runs);
	std::vector<uint64_t> valid((n + 63) / 64 + 1);
	std::vector<State> expected(rows.runs, identity());
	bool ordered = r.below(2), filtered = r.below(2), slot_filtered = r.below(3) == 0,
		 nulls = r.below(2), reversed = r.below(3) == 0;

	std::iota(order.begin(), order.end(), 0);
	std::iota(bins.begin(), bins.end(), 0);
	for (int64_t i = n - 1; i > 0 && ordered; i--)
		std::swap(order[i], order[r.below(i + 1)]);
	if (reversed)
		std::reverse(bins.begin(), bins.end());
	for (auto &v : filter)
		v = r.below(4) != 0;
	for (auto &v : slot_filter)
		v = r.below(4) != 0;
	for (auto &v : valid)
		v = r.next() | r.next();
	for (int k = 0; k < 2; k++)
	{
		c.type[k] = draw_type<Input>(r, GPUAGG_VALUE_I128);
		c.values[k].resize(n * width[c.type[k]]);
		for (int64_t i = 0; i < n; i++)
			make_value(r, c.type[k], c.values[k].data() + i * width[c.type[k]],
					   op == MONOID_PRODUCT_F64 ? 2 : 200);
	}
	for (int64_t i = 0; i < n; i++)
	{
		size_t row = ordered ? order[i] : i;
		Input x;
		State &state = expected[bins[rows.run[i]]];

		if ((filtered && !filter[row]) || (slot_filtered && !slot_filter[row]) ||
			(nulls && !(valid[row / 64] >> (row % 64) & 1)))
			continue;
		read_input(c, row, &x);
		state = step(state, x);
	}

	DeviceArray<uint32_t> heads(rows.heads), device_order(order),
		errors(std::vector<uint32_t>(1, 0));
	DeviceArray<int32_t> before(rows.before), device_bins(bins);
	DeviceArray<uint8_t> device_filter(filter), device_slot_filter(slot_filter);
	DeviceArray<uint64_t> device_valid(valid);
	DeviceArray<char> x(c.values[0]), y(c.values[1]);
	DeviceArray<State> states(rows.runs);
	GpuaggRuns runs = {n,
					   heads,
					   before,
					   ordered ? device_order.get() : nullptr,
					   reversed ? device_bins.get() : nullptr,
					   filtered ? device_filter.get() : nullptr};
	GpuaggSlot slot = {};
	size_t bytes = 0;

	slot.op = op;
	slot.x = {x.get(), nulls ? (const uint8_t *) device_valid.get() : nullptr, c.type[0]};
	slot.y = {y.get(), nullptr, c.type[1]};
	slot.filter = slot_filtered ? device_slot_filter.get() : nullptr;
	slot.states = states.get();
	check_numbers(rows, heads, name);
	STATUS_MUST(gpuagg_hist_init(op, states.get(), rows.runs, nullptr));
	STATUS_MUST(gpuagg_runs_update(&runs, &slot, errors, nullptr, &bytes, nullptr));
	DeviceArray<char> work(bytes);

	STATUS_MUST(gpuagg_runs_update(&runs, &slot, errors, work.get(), &bytes, nullptr));
	std::vector<State> got = states.take();

	for (int64_t g = 0; g < rows.runs; g++)
		CHECK(same_state(got[g], expected[g]),
			  "%s: run %lld of %lld, %lld rows, mean %lld: wrong state", name, (long long) g,
			  (long long) rows.runs, (long long) n, (long long) mean);
	CHECK(states.guards_intact(), "%s: states overrun", name);
}

GPU_TEST(runs_of_every_operator)
{
	static const int64_t sizes[] = {1, 31, 32, 33, 255, 256, 257, 1000, 20000, 300000};
	static const int64_t means[] = {1, 3, 48, 700, 100000};
	Random r(11);

	for (int64_t n : sizes)
		for (int64_t mean : means)
		{
			if (gpu_test_quick() && n > 1000)
				continue;
#define MONOID(NAME, name, input_t, state_t, comm, atomic_class, text) \
	if ((comm) && MONOID_##NAME != MONOID_HLL_MAX) \
		check_operator<input_t, state_t>( \
			r, MONOID_##NAME, #name, n, mean, [] { return name##_identity(); }, \
			[](state_t s, input_t x) { return name##_step(s, x); });
#include "operators/monoid_list.h"
#undef MONOID
		}
}

/* Operators that do not commute, and registers of sketches, are not supported. */
GPU_TEST(runs_of_other_operators_are_unsupported)
{
	GpuaggRuns runs = {};
	GpuaggSlot slot = {};
	size_t bytes = 0;

	for (MonoidId op : {MONOID_MAXSUB_I64, MONOID_HLL_MAX})
	{
		slot.op = op;
		CHECK(gpuagg_runs_update(&runs, &slot, nullptr, nullptr, &bytes, nullptr) ==
				  GPUAGG_CUDA_UNSUPPORTED,
			  "%s is supported", gpuagg_monoids[op].name);
	}
}
