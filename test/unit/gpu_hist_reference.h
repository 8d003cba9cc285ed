/*
 * gpu_hist_reference.h
 *	  The reference for tests of histograms and segments: states computed on the host with the
 *	  CPU's operators. Also makes random columns of every type on host and device.
 */
#ifndef GPUAGG_GPU_HIST_REFERENCE_H
#define GPUAGG_GPU_HIST_REFERENCE_H

#include <math.h>

#include <limits>

#include "common.cuh"
#include "gpu_test.h"

/* ---- states on the host --------------------------------------------------------- */

/* One input of an operator as two words: integers, or the bits of doubles. */
struct Input
{
	uint64_t lo, hi;
};

static inline double
as_double(uint64_t bits)
{
	double d;

	memcpy(&d, &bits, 8);
	return d;
}

static inline uint64_t
as_bits(double d)
{
	uint64_t bits;

	memcpy(&bits, &d, 8);
	return bits;
}

template <typename T>
static inline void
host_input(Input in, T &x)
{
	x = (T) (int64_t) in.lo;
}
static inline void
host_input(Input in, gpuagg_i128 &x)
{
	x = (gpuagg_i128) ((gpuagg_u128) in.hi << 64 | in.lo);
}
static inline void
host_input(Input in, double &x)
{
	x = as_double(in.lo);
}
static inline void
host_input(Input in, float &x)
{
	x = (float) as_double(in.lo);
}
static inline void
host_input(Input in, gpuagg_f64x2 &x)
{
	x.x = as_double(in.lo), x.y = as_double(in.hi);
}
static inline void
host_input(Input in, gpuagg_kv &x)
{
	x.key = in.lo, x.value = in.hi;
}

/* Returns whether histograms support the operator. */
static inline bool
histograms_support(int op)
{
	return gpuagg_monoids[op].commutative && op != MONOID_HLL_MAX;
}

/*
 * Combines one row into the state of a bin on the host. Does nothing for operators that do not
 * commute.
 */
template <typename Op>
static inline void
host_step(char *states, int64_t bin, Input in)
{
	if constexpr (Op::commutative)
	{
		typename Op::Input x;
		typename Op::State *p = (typename Op::State *) states + bin;

		host_input(in, x);
		*p = Op::step(*p, x);
	}
}

/* Makes nbins states of an operator, set to its identity. */
static inline void
reference_init(MonoidId op, std::vector<char> &states, int64_t nbins)
{
	states.resize(nbins * gpuagg_monoids[op].state_size);
	switch (op)
	{
#define MONOID(NAME, name, input_t, state_t, comm, atomic_class, text) \
	case MONOID_##NAME: \
		for (int64_t b = 0; b < nbins; b++) \
			((state_t *) states.data())[b] = Op_##name::identity(); \
		break;
#include "operators/monoid_list.h"
#undef MONOID
		default:
			break;
	}
}

static inline void
reference_step(MonoidId op, std::vector<char> &states, int64_t bin, Input in)
{
	switch (op)
	{
#define MONOID(NAME, name, input_t, state_t, comm, atomic_class, text) \
	case MONOID_##NAME: \
		host_step<Op_##name>(states.data(), bin, in); \
		break;
#include "operators/monoid_list.h"
#undef MONOID
		default:
			break;
	}
}

/* ---- comparison of states: how much float states may differ -------------------- */

/* Sums over the rows of one bin. The sums of absolute values scale the tolerated error. */
struct HistScale
{
	double n = 0, x = 0, y = 0, xx = 0, yy = 0,
		   sum = -0.0; /* sum of the values: the reference of sum_f32 */
};

/* Returns whether a state has float words that depend on rounding. */
static inline bool
is_rounded(MonoidId op)
{
	return op == MONOID_SUM_F32 || op == MONOID_SUM_F64 || op == MONOID_PRODUCT_F64 ||
		op == MONOID_ACCUM_F64 || op == MONOID_REGR_F64 || op == MONOID_MOMENTS_F64;
}

/* Adds one row to the magnitudes, by which near_moments() bounds rounding errors. */
static inline void
scale_step(MonoidId op, HistScale &scale, Input in)
{
	double x = as_double(in.lo), y = op == MONOID_REGR_F64 ? as_double(in.hi) : 0;

	scale.n++;
	scale.sum += x;
	scale.x += fabs(x);
	scale.y += fabs(y);
	scale.xx += x * x;
	scale.yy += y * y;
}

/*
 * Returns whether two sums are equal, up to the rounding of n additions in any order on either
 * side.
 *
 * Each sum is off by at most n times 2^-53 of `scale`, the sum of absolute values. The kernels are
 * more exact: they add in fixed point and round once per batch, except for out-of-window rows,
 * which they add one by one. The tolerance is for the reference, which adds row by row. Its errors
 * partly cancel: for many rows, 1e-12 was always enough. A row that is lost or counted twice is
 * found unless it is smaller than the tolerance.
 */
static inline bool
near_sum(double a, double b, double n, double scale)
{
	double unit = 2 * (n + 4) * 0x1p-53;

	if (isnan(a) || isnan(b))
		return isnan(a) && isnan(b);
	if (isinf(a) || isinf(b))
		return a == b;
	return fabs(a - b) <= (unit < 1e-12 ? unit : 1e-12) * scale + 1e-320;
}

/*
 * Returns whether two sums of squared deviations are equal except for rounding. The sums are
 * updated row by row (Youngs and Cramer) or by parts (Chan). The error of each step is a few units
 * of 2^-53 of the sum of squares, even if little of it remains about the mean.
 */
static inline bool
near_deviation(double a, double b, double n, double scale)
{
	return near_sum(a, b, 8 * n + 32, scale);
}

/*
 * Returns whether a sum in single precision is right except for rounding, where an addition is off
 * by 2^-24. The reference is in double precision.
 */
static inline bool
near_single(float a, const HistScale &scale)
{
	double unit = 2 * (scale.n + 4) * 0x1p-24, b = scale.sum;

	if (isnan(a) || isnan(b))
		return isnan(a) && isnan(b);
	if (isinf(a) || isinf(b))
		return a == b;
	if (a == 0 && b == 0)
		return signbit(a) == signbit(b);
	return fabs(a - b) <= (unit < 1e-5 ? unit : 1e-5) * scale.x + 1e-40;
}

/* Returns whether two states of deviations or regressions are equal except for rounding. */
static inline bool
near_moments(MonoidId op, const char *a, const char *b, const HistScale &s)
{
	double p[6], q[6];

	memcpy(p, a, gpuagg_monoids[op].state_size);
	memcpy(q, b, gpuagg_monoids[op].state_size);
	/* the number of rows must be equal */
	if (memcmp(p, q, 8) != 0 || !near_sum(p[1], q[1], s.n, s.x))
		return false;
	if (!near_deviation(p[2], q[2], s.n, s.xx))
		return false;
	return op == MONOID_ACCUM_F64 ||
		(near_sum(p[3], q[3], s.n, s.y) && near_deviation(p[4], q[4], s.n, s.yy) &&
		 near_deviation(p[5], q[5], s.n, sqrt(s.xx) * sqrt(s.yy)));
}

/* Returns whether two states of central moments are equal except for rounding. */
static inline bool
near_central_moments(const char *a, const char *b, const HistScale &s)
{
	double p[5], q[5];
	double bound[5] = {0, s.x, s.xx, s.xx * sqrt(s.xx), s.xx * s.xx};

	memcpy(p, a, sizeof(p));
	memcpy(q, b, sizeof(q));
	for (int i = 0; i < 5; i++)
		if (!(p[i] == q[i] || (isnan(p[i]) && isnan(q[i])) ||
			  fabs(p[i] - q[i]) <= (s.n + 8) * ldexp(1, -48) * bound[i]))
			return false;
	return true;
}

/*
 * Returns whether two extremes are equal. Zeros of different sign are equal, and so are all NaNs.
 */
template <typename T>
static inline bool
same_extreme(const char *a, const char *b)
{
	T p, q;

	memcpy(&p, a, sizeof(T));
	memcpy(&q, b, sizeof(T));
	return p == q || (isnan(p) && isnan(q));
}

/*
 * Returns whether state a equals the expected state b. If the operator rounds, `scale` is the
 * bin's.
 */
static inline bool
same_state(MonoidId op, const char *a, const char *b, const HistScale *scale)
{
	double p, q;
	float f;

	if (op != MONOID_SUM_F32 && memcmp(a, b, gpuagg_monoids[op].state_size) == 0)
		return true;
	switch (op)
	{
		case MONOID_MIN_F32:
		case MONOID_MAX_F32:
			return same_extreme<float>(a, b);
		case MONOID_MIN_F64:
		case MONOID_MAX_F64:
			return same_extreme<double>(a, b);
		case MONOID_ACCUM_F64:
		case MONOID_REGR_F64:
			return near_moments(op, a, b, *scale);
		case MONOID_MOMENTS_F64:
			return near_central_moments(a, b, *scale);
		case MONOID_SUM_F32:
			memcpy(&f, a, 4);
			return near_single(f, *scale);
		case MONOID_SUM_F64:
		case MONOID_PRODUCT_F64:
			memcpy(&p, a, 8);
			memcpy(&q, b, 8);
			if (op == MONOID_PRODUCT_F64)
				return near_sum(p, q, scale->n, fabs(q));
			/* zeros must have the expected sign; if they have, the bytes are equal */
			return (p != 0 || q != 0) && near_sum(p, q, scale->n, scale->x);
		default:
			return false;
	}
}

/* ---- columns ------------------------------------------------------------------ */

struct Column
{
	GpuaggValueType type;
	std::vector<Input> in;
	std::vector<char> bytes;
	std::vector<uint8_t> valid; /* one byte per row; empty: no NULLs */
	DeviceArray<char> *device = nullptr;
	DeviceArray<uint8_t> *device_valid = nullptr;

	~Column()
	{
		delete device;
		delete device_valid;
	}
	void
	upload(size_t shift)
	{
		std::vector<uint8_t> bits((valid.size() + 7) / 8);

		for (size_t i = 0; i < valid.size(); i++)
			bits[i / 8] |= valid[i] << (i % 8);
		device = new DeviceArray<char>(bytes, shift);
		if (!valid.empty())
			device_valid = new DeviceArray<uint8_t>(bits);
	}
	GpuaggColumn
	get() const
	{
		GpuaggColumn c = {device->get(), device_valid ? device_valid->get() : nullptr, type};

		return c;
	}
	bool
	ok(size_t i) const
	{
		return valid.empty() || valid[i];
	}
};

/* Returns the bytes of a value of the type. */
static inline int
size_of(GpuaggValueType t)
{
	return t == GPUAGG_VALUE_I8                        ? 1 :
		t == GPUAGG_VALUE_I16                          ? 2 :
		t == GPUAGG_VALUE_I32 || t == GPUAGG_VALUE_F32 ? 4 :
		t == GPUAGG_VALUE_I128                         ? 16 :
														 8;
}

enum Spread
{
	PLAIN,   /* small integers, doubles around 50 */
	EXTREME, /* the whole range; infinities, NaN, denormals */
	EDGES,   /* integers: only the least and greatest values, 0, and their neighbours */
	FACTORS  /* doubles: 1, sometimes 2 or 1/2, of either sign; products are exact in any order */
};

/* Returns an integer at either end of a type with this number of bits, or next to 0. */
static inline int64_t
random_edge(Random &r, int bits)
{
	int64_t least = INT64_MIN >> (64 - bits), greatest = INT64_MAX >> (64 - bits);
	const int64_t all[] = {least, least + 1, -1, 0, 1, greatest - 1, greatest};

	return all[r.below(7)];
}

/* Returns a random input of a column of the type. */
static inline Input
random_input(Random &r, GpuaggValueType t, Spread spread)
{
	Input in = {0, 0};
	bool special = spread == EXTREME && r.below(16) == 0;
	int bits = size_of(t) < 8 ? 8 * size_of(t) : 64;

	if (t == GPUAGG_VALUE_F64 || t == GPUAGG_VALUE_F32)
	{
		double d = r.uniform() * 200 - 50;
		const double specials[] = {INFINITY, -INFINITY, NAN, 0.0, -0.0, 1e-310, 1e30, -1e30, 1e-30};

		if (spread == FACTORS)
			d = (r.below(2) ? 1 : -1) * exp2(r.below(8) ? 0 : r.below(2) ? 1 : -1);
		else if (special)
			d = specials[r.below(9)];
		else if (spread == EXTREME)
			d *= exp2((double) r.below(60) - 30);
		if (t == GPUAGG_VALUE_F32)
			d = (float) d;
		in.lo = as_bits(d);
		return in;
	}
	in.lo = spread == PLAIN ? (uint64_t) ((int64_t) r.below(2001) - 1000) : r.next();
	/* sign-extended, as in the column */
	in.lo = (uint64_t) ((int64_t) (in.lo << (64 - bits)) >> (64 - bits));
	if (special)
		in.lo = (uint64_t) (r.below(2) ? INT64_MAX >> (64 - bits) : INT64_MIN >> (64 - bits));
	if (spread == EDGES)
		in.lo = (uint64_t) random_edge(r, bits);
	/* with PLAIN and EXTREME, decimals leave room for sums */
	if (t == GPUAGG_VALUE_I128)
		in.hi = spread == PLAIN ? (uint64_t) ((int64_t) in.lo >> 63) :
			spread == EXTREME   ? (uint64_t) ((int64_t) r.next() >> 24) :
								  (uint64_t) random_edge(r, 64);
	else
		in.hi = (uint64_t) ((int64_t) in.lo >> 63);
	return in;
}

/* Makes a column of n random values in host memory, with NULLs if `nulls`. */
static inline void
fill_column(Column &c, Random &r, GpuaggValueType t, size_t n, Spread spread, bool nulls)
{
	c.type = t;
	c.in.resize(n);
	c.bytes.resize(n * size_of(t));
	if (nulls)
		c.valid.resize(n);
	for (size_t i = 0; i < n; i++)
	{
		Input in = c.in[i] = random_input(r, t, spread);
		char *p = &c.bytes[i * size_of(t)];

		if (t == GPUAGG_VALUE_F32)
		{
			float f = (float) as_double(in.lo);

			memcpy(p, &f, 4);
		}
		else
			memcpy(p, &in, size_of(t));
		if (nulls)
			c.valid[i] = r.below(8) != 0;
	}
}

/* Returns the type of an operator's input, or of both inputs of a pair. */
static inline GpuaggValueType
own_type(MonoidId op)
{
	switch (op)
	{
		case MONOID_SUM_DEC:
		case MONOID_MIN_DEC:
		case MONOID_MAX_DEC:
			return GPUAGG_VALUE_I128;
		case MONOID_SUM_F32:
		case MONOID_MIN_F32:
		case MONOID_MAX_F32:
			return GPUAGG_VALUE_F32;
		case MONOID_SUM_F64:
		case MONOID_ACCUM_F64:
		case MONOID_REGR_F64:
		case MONOID_MOMENTS_F64:
		case MONOID_MIN_F64:
		case MONOID_MAX_F64:
		case MONOID_PRODUCT_F64:
			return GPUAGG_VALUE_F64;
		default:
			return gpuagg_monoids[op].input_size == 1 ? GPUAGG_VALUE_I8 :
				gpuagg_monoids[op].input_size == 4    ? GPUAGG_VALUE_I32 :
														GPUAGG_VALUE_I64;
	}
}

/* Returns whether an input consists of two values of one type. */
static inline bool
has_pair_input(MonoidId op)
{
	return op == MONOID_REGR_F64 || op == MONOID_ARGMAX || op == MONOID_ARGMIN;
}

#endif /* GPUAGG_GPU_HIST_REFERENCE_H */
