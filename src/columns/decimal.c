/*
 * decimal.c
 *	  Wide integers and decimals as numerics.
 */
#include "postgres.h"

#include "columns/decimal.h"
#include "operators/decode_numeric.h"

#define DIGIT_BASE 10000		/* of a numeric's digit */
#define DIGIT_WIDTH 4			/* decimal digits in it */

/* Digits of a number below 2^112, with up to three zeros appended, in fours. */
#define SMALL_DIGITS 12

/*
 * Writes the digits of limb[2..0] (64 bits each, the least significant first) so
 * that they end before `end`; returns how many.  The limbs are consumed.
 */
static int
put_digits(uint64 limb[3], int16 *end)
{
	const uint64 chunk = UINT64CONST(10000000000000000);	/* four digits */
	int16	   *p = end;

	while (limb[0] | limb[1] | limb[2])
	{
		uint64		rest = 0;

		for (int i = 2; i >= 0; i--)
		{
			gpuagg_u128 part = (gpuagg_u128) rest << 64 | limb[i];

			limb[i] = (uint64) (part / chunk);
			rest = (uint64) (part % chunk);
		}
		for (int i = 0; i < 4; i++)
		{
			*--p = (int16) (rest % DIGIT_BASE);
			rest /= DIGIT_BASE;
		}
	}
	while (p < end && *p == 0)
		p++;
	return (int) (end - p);
}

void
decimal_from_u192(Decimal *dec, uint64 hi, gpuagg_u128 lo)
{
	uint64		limb[3] = {(uint64) lo, (uint64) (lo >> 64), hi};
	int16		digit[DECIMAL_MAX_DIGITS];
	int			n = put_digits(limb, digit + DECIMAL_MAX_DIGITS);

	dec->negative = false;
	dec->dscale = 0;
	dec->ndigits = n;
	dec->weight = n > 0 ? n - 1 : 0;
	memcpy(dec->digit, digit + DECIMAL_MAX_DIGITS - n, n * sizeof(int16));
}

gpuagg_i128
decimal_power10(int n)
{
	gpuagg_i128 r = decode_pow10(Min(n, 19));

	return n > 19 ? r * decode_pow10(n - 19) : r;
}

void
decimal_from_i128(Decimal *dec, gpuagg_i128 value, int scale)
{
	gpuagg_u128 magnitude = value < 0 ? -(gpuagg_u128) value : (gpuagg_u128) value;
	gpuagg_u128 unit = decimal_power10(scale);
	int			nfrac = (scale + DIGIT_WIDTH - 1) / DIGIT_WIDTH;
	gpuagg_u128 frac = magnitude % unit * decimal_power10(nfrac * DIGIT_WIDTH - scale);
	int			skip = 0;

	/* digits before the point, then those after it */
	decimal_from_u192(dec, 0, magnitude / unit);
	dec->negative = value < 0;
	dec->dscale = scale;
	dec->weight = dec->ndigits - 1;
	for (int i = nfrac - 1; i >= 0; i--)
	{
		dec->digit[dec->ndigits + i] = (int16) (frac % DIGIT_BASE);
		frac /= DIGIT_BASE;
	}
	dec->ndigits += nfrac;

	/* numerics store no zero digits at either end */
	while (skip < dec->ndigits && dec->digit[skip] == 0)
		skip++;
	while (dec->ndigits > skip && dec->digit[dec->ndigits - 1] == 0)
		dec->ndigits--;
	dec->ndigits -= skip;
	dec->weight = dec->ndigits > 0 ? dec->weight - skip : 0;
	memmove(dec->digit, dec->digit + skip, dec->ndigits * sizeof(int16));
}

/* A numeric of these digits, as core stores one whose weight and scale are small. */
static Datum
make_numeric(bool negative, int weight, int dscale, const int16 *digit, int ndigits)
{
	Size		size = VARHDRSZ + sizeof(uint16) + ndigits * sizeof(int16);
	char	   *numeric = palloc(size);
	uint16		header = 0x8000 | (negative ? 0x2000 : 0) | dscale << 7 | (weight & 0x7F);

	SET_VARSIZE(numeric, size);
	memcpy(numeric + VARHDRSZ, &header, sizeof(header));
	memcpy(numeric + VARHDRSZ + sizeof(header), digit, ndigits * sizeof(int16));
	return PointerGetDatum(numeric);
}

/* The digits of a magnitude below 2^112, which is brought to a scale that is a multiple of DIGIT_WIDTH. */
static Datum
small_to_numeric(gpuagg_u128 value, bool negative, int scale, int dscale)
{
	static const int16 unit[DIGIT_WIDTH] = {1, 10, 100, 1000};
	const uint64 chunk = UINT64CONST(10000000000000000);	/* four digits */
	int			groups = (scale + DIGIT_WIDTH - 1) / DIGIT_WIDTH;
	int16		digit[SMALL_DIGITS];
	int			first = SMALL_DIGITS;
	int			last = SMALL_DIGITS;
	int			weight;

	value *= unit[groups * DIGIT_WIDTH - scale];
	while (value != 0)
	{
		gpuagg_u128 next = value >> 64 == 0 ? (uint64) value / chunk : value / chunk;
		uint64		rest = (uint64) value - (uint64) next * chunk;
		uint32		high = (uint32) (rest / (DIGIT_BASE * DIGIT_BASE));
		uint32		low = (uint32) (rest - (uint64) high * (DIGIT_BASE * DIGIT_BASE));

		first -= 4;
		digit[first] = high / DIGIT_BASE;
		digit[first + 1] = high % DIGIT_BASE;
		digit[first + 2] = low / DIGIT_BASE;
		digit[first + 3] = low % DIGIT_BASE;
		value = next;
	}
	/* no zero digits at either end */
	while (first < last && digit[first] == 0)
		first++;
	weight = SMALL_DIGITS - first - 1 - groups;
	while (last > first && digit[last - 1] == 0)
		last--;
	if (first == last)
		return make_numeric(false, 0, dscale, digit, 0);
	return make_numeric(negative, weight, dscale, digit + first, last - first);
}

Datum
decimal_to_numeric_shown(gpuagg_i128 value, int scale, int dscale)
{
	gpuagg_u128 magnitude = value < 0 ? -(gpuagg_u128) value : (gpuagg_u128) value;
	Decimal		dec;

	Assert(dscale >= 0 && dscale <= DECIMAL_MAX_SHOWN);
	if (likely(magnitude >> 112 == 0))
		return small_to_numeric(magnitude, value < 0, scale, dscale);
	decimal_from_i128(&dec, value, scale);
	return make_numeric(dec.negative, dec.weight, dscale, dec.digit, dec.ndigits);
}

Datum
decimal_to_numeric(gpuagg_i128 value, int scale)
{
	return decimal_to_numeric_shown(value, scale, scale);
}
