/*
 * exact_parts.h
 *	  A finite double as two integers, whose sums have no rounding; for gcc and nvcc.
 *
 * A value is (high * 2^62 + low) * 2^(unit - 1074).  The unit is the position of the lowest bit, as
 * in aggregates/exact_state.h.  A query has one unit for all values of a column, so that all high
 * parts, and all low parts, can be added.  Parts are at most 2^62 in size, so that the sum of two
 * is an integer of 64 bits, too: of squares of parts and of such sums, exact sums of products are
 * made (engine_cuda/query_exact.c).
 */
#ifndef GPUAGG_EXACT_PARTS_H
#define GPUAGG_EXACT_PARTS_H

#include "operators/monoid.h"

/* Bits of the low part. */
#define EXACT_PARTS_LOW 62
#define EXACT_PARTS_LOW_MASK ((UINT64_C(1) << EXACT_PARTS_LOW) - 1)

/* The mantissa's bits of a value move up by at most this: both parts together have 124 bits. */
#define EXACT_PARTS_SHIFT 71

/* The largest unit: that of windows (EXACT_LAST_UNIT). Doubles from 2^1022 on do not fit. */
#define EXACT_PARTS_LAST_UNIT 1972

typedef struct GpuaggParts
{
	int64_t high;
	int64_t low; /* never negative */
	int fits;    /* 0: the value is infinite, NaN, too large, or has bits below the unit */
} GpuaggParts;

/* Returns the parts of a value. unit: not negative */
GPUAGG_HD GpuaggParts
gpuagg_exact_parts(double x, int unit)
{
	GpuaggParts parts = {0, 0, 1};
	uint64_t bits;
	uint64_t m;
	int exponent;
	int shift;

	memcpy(&bits, &x, sizeof(bits));
	exponent = (int) (bits >> 52 & 0x7ff);
	m = (bits & ((UINT64_C(1) << 52) - 1)) | (uint64_t) (exponent > 0) << 52;
	if (m == 0)
		return parts;
	shift = (exponent > 0 ? exponent - 1 : 0) - unit;
	if (shift < 0 && shift > -53 && (m & ((UINT64_C(1) << -shift) - 1)) == 0)
	{
		m >>= -shift;
		shift = 0;
	}
	parts.fits = exponent < 0x7ff && shift >= 0 && shift <= EXACT_PARTS_SHIFT;
	if (!parts.fits)
		return parts;
	parts.high = (int64_t) (shift < EXACT_PARTS_LOW ? m >> (EXACT_PARTS_LOW - shift) :
													  m << (shift - EXACT_PARTS_LOW));
	parts.low = shift < EXACT_PARTS_LOW ? (int64_t) ((m << shift) & EXACT_PARTS_LOW_MASK) : 0;
	if (bits >> 63)
	{
		/* the low part of -x makes 2^62 with that of x, unless both are 0 */
		parts.high = -parts.high - (parts.low != 0);
		parts.low = (int64_t) (-(uint64_t) parts.low & EXACT_PARTS_LOW_MASK);
	}
	return parts;
}

/* Returns the value with these parts, which were made with the same unit. */
GPUAGG_HD double
gpuagg_exact_value(int64_t high, int64_t low, int unit)
{
	gpuagg_i128 m = (gpuagg_i128) high * ((gpuagg_i128) 1 << EXACT_PARTS_LOW) + low;

	/* it has 53 bits, so that nothing is rounded; the factor of a subnormal value is subnormal */
	return ldexp((double) m, unit - 1074);
}

#endif /* GPUAGG_EXACT_PARTS_H */
