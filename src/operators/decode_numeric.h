/*
 * decode_numeric.h
 *	  From the stored form of a numeric to an integer times 10^-scale.
 *
 * Plain C for gcc and nvcc.  `data` points behind the varlena header, at any
 * alignment; `len` is what the header says is there.  The stored form, both
 * header layouts, is part of PostgreSQL's on-disk format (numeric.c).
 */
#ifndef GPUAGG_DECODE_NUMERIC_H
#define GPUAGG_DECODE_NUMERIC_H

#include "operators/monoid.h"

/* Most decimal digits that a decoded value may have: 10^28 < 2^96. */
#define DECODE_NUMERIC_DIGITS 28

GPUAGG_HD unsigned
decode_u16(const uint8_t *p)
{
	return p[0] | (unsigned) p[1] << 8;
}

GPUAGG_HD uint64_t
decode_pow10(int n)
{
	uint64_t	r = 1;

	while (n-- > 0)
		r *= 10;
	return r;
}

/*
 * One to three digits of base 10000 times 10^shift, -3 <= shift <= 6, in 64
 * bits: no loops and no division but by constants, as most columns are of this
 * kind.  *fits is 0 where digits lie beyond the display scale.
 */
GPUAGG_HD int64_t
decode_small(const uint8_t *digits, int ndigits, int shift, int negative, int *fits)
{
	uint64_t	v = decode_u16(digits);
	uint64_t	q;

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

/*
 * Sets *out to the value times 10^scale and returns 1.  Returns 0 for a value that
 * it cannot represent: NaN, an infinity, one of more than DECODE_NUMERIC_DIGITS
 * digits, or one whose display scale is not `scale`.
 */
GPUAGG_HD int
decode_numeric(const uint8_t *data, int len, int scale, gpuagg_i128 *out)
{
	unsigned	header;
	int			negative,
				dscale,
				weight,
				ndigits,
				shift,
				fits;
	gpuagg_u128 value;

	if (len < 2)
		return 0;
	header = decode_u16(data);
	if ((header & 0xC000) == 0xC000)
		return 0;				/* NaN or infinity */
	if (header & 0x8000)
	{
		negative = (header & 0x2000) != 0;
		dscale = (header & 0x1F80) >> 7;
		weight = (header & 0x0040) ? (int) (header & 0x003F) - 0x40 : (int) (header & 0x003F);
		data += 2;
		len -= 2;
	}
	else
	{
		if (len < 4)
			return 0;
		negative = (header & 0x4000) != 0;
		dscale = header & 0x3FFF;
		weight = (int16_t) decode_u16(data + 2);
		data += 4;
		len -= 4;
	}
	ndigits = len / 2;
	if (dscale != scale)
		return 0;
	if (ndigits == 0)
	{
		*out = 0;
		return 1;
	}

	/* decimal digits of the result; the first base-10000 digit may have four */
	if ((weight + 1) * 4 + scale > DECODE_NUMERIC_DIGITS)
		return 0;
	/* zeros to append to the digits; never below -3, as dscale covers them all */
	shift = (weight + 1 - ndigits) * 4 + scale;
	if (shift < -3)
		return 0;

	if (ndigits <= 3 && shift <= 6)
	{
		*out = decode_small(data, ndigits, shift, negative, &fits);
		return fits;
	}
	if (ndigits <= 4)
	{
		uint64_t	small = 0;

		for (int i = 0; i < ndigits; i++)
			small = small * 10000 + decode_u16(data + 2 * i);
		value = small;
	}
	else
	{
		value = 0;
		for (int i = 0; i < ndigits; i++)
			value = value * 10000 + decode_u16(data + 2 * i);
	}
	if (shift < 0)
	{
		gpuagg_u128 divided;

		/* constant divisors: no division instruction in the common case */
		if (value >> 64 == 0)
		{
			uint64_t	v = (uint64_t) value;

			divided = shift == -2 ? v / 100 : shift == -1 ? v / 10 : v / 1000;
		}
		else
			divided = value / decode_pow10(-shift);
		if (divided * decode_pow10(-shift) != value)
			return 0;			/* digits beyond the display scale */
		value = divided;
	}
	else if (shift > 0)
	{
		value *= decode_pow10(shift > 18 ? 18 : shift);
		if (shift > 18)
			value *= decode_pow10(shift - 18);
	}
	*out = negative ? -(gpuagg_i128) value : (gpuagg_i128) value;
	return 1;
}

#endif							/* GPUAGG_DECODE_NUMERIC_H */
