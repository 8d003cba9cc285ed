/*
 * decode_numeric.h
 *	  Decodes the stored form of a numeric to an integer times 10^-scale.
 *
 * Plain C for gcc and nvcc.  `data` points behind the varlena header, at any alignment; `len` is
 * the length by the header.  The stored form, with both header layouts, is part of PostgreSQL's on-
 * disk format (numeric.c).
 */
#ifndef GPUAGG_DECODE_NUMERIC_H
#define GPUAGG_DECODE_NUMERIC_H

#include "operators/monoid.h"

/* Maximum number of decimal digits of a decoded value: 10^28 < 2^96. */
#define DECODE_NUMERIC_DIGITS 28
#define DECODE_NUMERIC_LIMIT ((gpuagg_i128) 100000000000000 * 100000000000000)

/* Returns the little-endian number of 16 bits at p, at any alignment. */
GPUAGG_HD unsigned
decode_u16(const uint8_t *p)
{
	return p[0] | (unsigned) p[1] << 8;
}

/* Returns 10^n for n < 20, without a loop. */
GPUAGG_HD uint64_t
decode_pow10(int n)
{
	uint64_t r = n & 1 ? 10 : 1;

	r *= n & 2 ? 100 : 1;
	r *= n & 4 ? 10000 : 1;
	r *= n & 8 ? 100000000 : 1;
	return n & 16 ? r * 10000000000000000 : r;
}

/*
 * Returns the number that one to three digits of base 10000 form, times 10^shift, -3 <= shift <=
 * 6, with its sign.  Has no loops and divides only by constants, because most columns have such
 * values.  Sets *fits to 0 if there are digits beyond the display scale, else to 1.
 */
GPUAGG_HD int64_t
decode_small(const uint8_t *digits, int ndigits, int shift, int negative, int *fits)
{
	uint64_t v = decode_u16(digits);
	uint64_t q;

	if (ndigits > 1)
		v = v * 10000 + decode_u16(digits + 2);
	if (ndigits > 2)
		v = v * 10000 + decode_u16(digits + 4);
	*fits = 1;
	switch (shift)
	{
		case -3:
			q = v / 1000;
			*fits = q * 1000 == v;
			break;
		case -2:
			q = v / 100;
			*fits = q * 100 == v;
			break;
		case -1:
			q = v / 10;
			*fits = q * 10 == v;
			break;
		case 0:
			q = v;
			break;
		case 1:
			q = v * 10;
			break;
		case 2:
			q = v * 100;
			break;
		case 3:
			q = v * 1000;
			break;
		case 4:
			q = v * 10000;
			break;
		case 5:
			q = v * 100000;
			break;
		default:
			q = v * 1000000;
			break;
	}
	return negative ? -(int64_t) q : (int64_t) q;
}

/* The parts of a stored numeric. */
typedef struct DecodeHeader
{
	int negative;
	int dscale;
	int weight; /* weight of the first digit of base 10000 */
	const uint8_t *digits;
	int ndigits;
} DecodeHeader;

/*
 * Sets *h from the stored form of a numeric, and returns 1.  Returns 0 for NaN, infinities and data
 * without a whole header.
 */
GPUAGG_HD int
decode_header(const uint8_t *data, int len, DecodeHeader *h)
{
	unsigned header;

	if (len < 2)
		return 0;
	header = decode_u16(data);
	if ((header & 0xC000) == 0xC000)
		return 0;
	if (header & 0x8000)
	{
		h->negative = (header & 0x2000) != 0;
		h->dscale = (header & 0x1F80) >> 7;
		h->weight = (header & 0x0040) ? (int) (header & 0x003F) - 0x40 : (int) (header & 0x003F);
		h->digits = data + 2;
		h->ndigits = (len - 2) / 2;
	}
	else
	{
		if (len < 4)
			return 0;
		h->negative = (header & 0x4000) != 0;
		h->dscale = header & 0x3FFF;
		h->weight = (int16_t) decode_u16(data + 2);
		h->digits = data + 4;
		h->ndigits = (len - 4) / 2;
	}
	return 1;
}

/* Sets *out to value times 10^shift, shift >= -3. Returns 0 if that has digits after the point. */
GPUAGG_HD int
decode_shift(gpuagg_u128 value, int shift, gpuagg_u128 *out)
{
	if (shift < 0)
	{
		/* constant divisors: no division instruction in the common case */
		if (value >> 64 == 0)
		{
			uint64_t v = (uint64_t) value;

			*out = shift == -2 ? v / 100 : shift == -1 ? v / 10 : v / 1000;
		}
		else
			*out = value / decode_pow10(-shift);
		return *out * decode_pow10(-shift) == value;
	}
	*out = value;
	if (shift > 0)
	{
		*out *= decode_pow10(shift > 18 ? 18 : shift);
		if (shift > 18)
			*out *= decode_pow10(shift - 18);
	}
	return 1;
}

/*
 * Sets *out to the value times 10^scale and returns 1.  Returns 0 if it cannot represent the value:
 * NaN, an infinity, more than DECODE_NUMERIC_DIGITS digits, or a display scale other than `scale`.
 */
GPUAGG_HD int
decode_numeric(const uint8_t *data, int len, int scale, gpuagg_i128 *out)
{
	DecodeHeader h;
	int shift, fits;
	gpuagg_u128 value;

	if (!decode_header(data, len, &h) || h.dscale != scale)
		return 0;
	if (h.ndigits == 0)
	{
		*out = 0;
		return 1;
	}

	/* decimal digits of the result; the first digit of base 10000 may have four */
	if ((h.weight + 1) * 4 + scale > DECODE_NUMERIC_DIGITS)
		return 0;
	/* zeros to append to the digits; at least -3, because the display scale covers all digits */
	shift = (h.weight + 1 - h.ndigits) * 4 + scale;
	if (shift < -3)
		return 0;

	if (h.ndigits <= 3 && shift <= 6)
	{
		*out = decode_small(h.digits, h.ndigits, shift, h.negative, &fits);
		return fits;
	}
	if (h.ndigits <= 4)
	{
		uint64_t small = 0;

		for (int i = 0; i < h.ndigits; i++)
			small = small * 10000 + decode_u16(h.digits + 2 * i);
		value = small;
	}
	else
	{
		value = 0;
		for (int i = 0; i < h.ndigits; i++)
			value = value * 10000 + decode_u16(h.digits + 2 * i);
	}
	if (!decode_shift(value, shift, &value))
		return 0;
	*out = h.negative ? -(gpuagg_i128) value : (gpuagg_i128) value;
	return 1;
}

#endif /* GPUAGG_DECODE_NUMERIC_H */
