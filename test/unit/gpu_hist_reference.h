/*
 * gpu_hist_reference.h
 *	  For tests of histograms and of group-by: states as the CPU monoids make them, and random columns
 *	  of every type on host and device.
 */
#ifndef GPUAGG_GPU_HIST_REFERENCE_H
#define GPUAGG_GPU_HIST_REFERENCE_H

#include <math.h>

#include <limits>

#include "common.cuh"
#include "gpu_test.h"

/* ---- the reference ---------------------------------------------------------- */

/* One input as two words: integers, or the bits of doubles. */
struct Input
{
	uint64_t	lo,
				hi;
};

static double
as_double(uint64_t bits)
{
	double		d;

	memcpy(&d, &bits, 8);
	return d;
}

static uint64_t
as_bits(double d)
{
	uint64_t	bits;

	memcpy(&bits, &d, 8);
	return bits;
}

template <typename T> static void
host_input(Input in, T &x)
{
	x = (T) (int64_t) in.lo;
}
static void host_input(Input in, gpuagg_i128 &x) { x = (gpuagg_i128) ((gpuagg_u128) in.hi << 64 | in.lo); }
static void host_input(Input in, double &x) { x = as_double(in.lo); }
static void host_input(Input in, float &x) { x = (float) as_double(in.lo); }
static void host_input(Input in, gpuagg_f64x2 &x) { x.x = as_double(in.lo), x.y = as_double(in.hi); }
static void host_input(Input in, gpuagg_kv &x) { x.key = in.lo, x.value = in.hi; }

template <typename Op> static void
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

static void
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
#include "monoid_list.h"
#undef MONOID
		default:
			break;
	}
}

static void
reference_step(MonoidId op, std::vector<char> &states, int64_t bin, Input in)
{
	switch (op)
	{
#define MONOID(NAME, name, input_t, state_t, comm, atomic_class, text) \
		case MONOID_##NAME: host_step<Op_##name>(states.data(), bin, in); break;
#include "monoid_list.h"
#undef MONOID
		default:
			break;
	}
}

/* Words of a state that are floats, for comparing with a tolerance. */
static int
float_words(MonoidId op)
{
	switch (op)
	{
		case MONOID_SUM_F64:
		case MONOID_PRODUCT_F64:
			return 1;
		case MONOID_ACCUM_F64:
		case MONOID_MOMENTS_F64:
			return 3;
		case MONOID_REGR_F64:
			return 6;
		default:
			return 0;
	}
}

static bool
near_equal(double a, double b, double scale)
{
	if (isnan(a) || isnan(b))
		return isnan(a) && isnan(b);
	return a == b || fabs(a - b) <= 1e-9 * (fabs(a) + fabs(b)) + 1e-10 * scale;
}

static bool
same_state(MonoidId op, const char *a, const char *b, double scale)
{
	int			n = float_words(op);

	if (op == MONOID_SUM_F32)
		return near_equal(*(const float *) a * 1e-4, *(const float *) b * 1e-4, scale * 1e5);
	if (op == MONOID_MOMENTS_F64 && memcmp(a, b, 8) != 0)
		return false;
	if ((op == MONOID_MIN_F64 || op == MONOID_MAX_F64))
		return near_equal(*(const double *) a, *(const double *) b, 0);
	if ((op == MONOID_MIN_F32 || op == MONOID_MAX_F32))
		return near_equal(*(const float *) a, *(const float *) b, 0);
	/* zeros with their sign */
	if (op == MONOID_SUM_F64 && *(const double *) a == 0 && *(const double *) b == 0 && memcmp(a, b, 8) != 0)
		return false;
	for (int i = op == MONOID_MOMENTS_F64; i < n; i++)
		if (!near_equal(((const double *) a)[i], ((const double *) b)[i], scale))
			return false;
	return n > 0 || memcmp(a, b, gpuagg_monoids[op].state_size) == 0;
}

/* ---- columns ------------------------------------------------------------------ */

struct Column
{
	GpuaggValueType type;
	std::vector<Input> in;
	std::vector<char> bytes;
	std::vector<uint8_t> valid;	/* one byte a row; empty: no NULL */
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
	bool ok(size_t i) const { return valid.empty() || valid[i]; }
};

static int
size_of(GpuaggValueType t)
{
	return t == GPUAGG_VALUE_I8 ? 1 : t == GPUAGG_VALUE_I16 ? 2
		: t == GPUAGG_VALUE_I32 || t == GPUAGG_VALUE_F32 ? 4
		: t == GPUAGG_VALUE_I128 || t == GPUAGG_VALUE_KV ? 16 : 8;
}

enum Spread
{
	PLAIN,						/* small integers, doubles around 100 */
	EXTREME						/* whole range; infinities, NaN, denormals */
};

static Input
random_input(Random &r, GpuaggValueType t, Spread spread)
{
	Input		in = {0, 0};
	bool		special = spread == EXTREME && r.below(16) == 0;

	if (t == GPUAGG_VALUE_F64 || t == GPUAGG_VALUE_F32)
	{
		double		d = r.uniform() * 200 - 50;
		const double specials[] = {INFINITY, -INFINITY, NAN, 0.0, -0.0, 1e-310, 1e30, -1e30, 1e-30};

		if (special)
			d = specials[r.below(9)];
		else if (spread == EXTREME)
			d *= exp2((double) r.below(60) - 30);
		if (t == GPUAGG_VALUE_F32)
			d = (float) d;
		in.lo = as_bits(d);
		return in;
	}
	in.lo = spread == PLAIN ? (uint64_t) ((int64_t) r.below(2001) - 1000) : r.next();
	if (special)
		in.lo = r.below(2) ? (uint64_t) INT64_MAX : (uint64_t) INT64_MIN;
	switch (t)
	{
		case GPUAGG_VALUE_I8:
			in.lo = (uint64_t) (int64_t) (int8_t) in.lo;
			break;
		case GPUAGG_VALUE_I16:
			in.lo = (uint64_t) (int64_t) (int16_t) in.lo;
			break;
		case GPUAGG_VALUE_I32:
			in.lo = (uint64_t) (int64_t) (int32_t) in.lo;
			break;
		default:
			break;
	}
	/* decimals leave room for sums; payloads are any integer */
	if (t == GPUAGG_VALUE_I128)
		in.hi = spread == PLAIN ? (uint64_t) ((int64_t) in.lo >> 63) : (uint64_t) ((int64_t) r.next() >> 24);
	else if (t == GPUAGG_VALUE_KV)
		in.hi = r.below(1000);
	else
		in.hi = (uint64_t) ((int64_t) in.lo >> 63);
	return in;
}

static void
fill_column(Column &c, Random &r, GpuaggValueType t, size_t n, Spread spread, bool nulls)
{
	c.type = t;
	c.in.resize(n);
	c.bytes.resize(n * size_of(t));
	if (nulls)
		c.valid.resize(n);
	for (size_t i = 0; i < n; i++)
	{
		Input		in = c.in[i] = random_input(r, t, spread);
		char	   *p = &c.bytes[i * size_of(t)];

		if (t == GPUAGG_VALUE_F32)
		{
			float		f = (float) as_double(in.lo);

			memcpy(p, &f, 4);
		}
		else
			memcpy(p, &in, size_of(t));
		if (nulls)
			c.valid[i] = r.below(8) != 0;
	}
}

static GpuaggValueType
own_type(MonoidId op)
{
	switch (op)
	{
		case MONOID_SUM_DEC:
		case MONOID_MIN_DEC:
		case MONOID_MAX_DEC:
			return GPUAGG_VALUE_I128;
		case MONOID_ARGMAX:
		case MONOID_ARGMIN:
			return GPUAGG_VALUE_KV;
		case MONOID_SUM_F32:
		case MONOID_MIN_F32:
		case MONOID_MAX_F32:
			return GPUAGG_VALUE_F32;
		case MONOID_SUM_F64:
		case MONOID_ACCUM_F64:
		case MONOID_REGR_F64:
		case MONOID_MIN_F64:
		case MONOID_MAX_F64:
		case MONOID_PRODUCT_F64:
		case MONOID_MOMENTS_F64:
			return GPUAGG_VALUE_F64;
		default:
			return gpuagg_monoids[op].input_size == 1 ? GPUAGG_VALUE_I8
				: gpuagg_monoids[op].input_size == 4 ? GPUAGG_VALUE_I32 : GPUAGG_VALUE_I64;
	}
}

#endif							/* GPUAGG_GPU_HIST_REFERENCE_H */
