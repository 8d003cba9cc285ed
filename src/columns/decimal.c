/*
 * decimal.c
 *	  Wide integers and decimals as numerics.
 */
#include "postgres.h"

#include "libpq/pqformat.h"
#include "utils/builtins.h"
#include "utils/numeric.h"

#include "columns/decimal.h"

#define DIGIT_BASE 10000		/* of a numeric's digit */
#define DIGIT_WIDTH 4			/* decimal digits in it */

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

static gpuagg_u128
power_of_ten(int n)
{
	gpuagg_u128 r = 1;

	while (n-- > 0)
		r *= 10;
	return r;
}

void
decimal_from_i128(Decimal *dec, gpuagg_i128 value, int scale)
{
	gpuagg_u128 magnitude = value < 0 ? -(gpuagg_u128) value : (gpuagg_u128) value;
	gpuagg_u128 unit = power_of_ten(scale);
	int			nfrac = (scale + DIGIT_WIDTH - 1) / DIGIT_WIDTH;
	gpuagg_u128 frac = magnitude % unit * power_of_ten(nfrac * DIGIT_WIDTH - scale);
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

Datum
decimal_to_numeric(gpuagg_i128 value, int scale)
{
	StringInfoData buf;
	Decimal		dec;

	if (value == (int64) value)
		return NumericGetDatum(scale > 0 ? int64_div_fast_to_numeric((int64) value, scale) :
							   int64_to_numeric((int64) value));

	decimal_from_i128(&dec, value, scale);
	initStringInfo(&buf);
	pq_sendint16(&buf, dec.ndigits);
	pq_sendint16(&buf, dec.weight);
	pq_sendint16(&buf, decimal_sign_word(&dec));
	pq_sendint16(&buf, dec.dscale);
	for (int i = 0; i < dec.ndigits; i++)
		pq_sendint16(&buf, dec.digit[i]);
	return DirectFunctionCall3(numeric_recv, PointerGetDatum(&buf),
							   ObjectIdGetDatum(InvalidOid), Int32GetDatum(-1));
}
