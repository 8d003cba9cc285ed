/*
 * decimal.c
 *	  Wide integers and decimals as numerics.
 */
#include "postgres.h"

#include <math.h>

#include "access/htup_details.h"
#include "utils/builtins.h"
#include "utils/numeric.h"

#include "columns/decimal.h"
#include "operators/decode_numeric.h"

#define DIGIT_BASE 10000 /* base of a numeric's digit */
#define DIGIT_WIDTH 4    /* decimal digits in it */

/*
 * Writes the digits (base 10000) of an integer so that they end before `end`, and returns their
 * number. limb: the integer, 64 bits each, least significant first; it is changed.
 */
static int
put_digits(uint64 limb[3], int16 *end)
{
	const uint64 chunk = UINT64CONST(10000000000000000); /* four digits */
	int16 *p = end;

	while (limb[0] | limb[1] | limb[2])
	{
		uint64 rest = 0;

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
	uint64 limb[3] = {(uint64) lo, (uint64) (lo >> 64), hi};
	int16 digit[DECIMAL_MAX_DIGITS];
	int n = put_digits(limb, digit + DECIMAL_MAX_DIGITS);

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
	int nfrac = (scale + DIGIT_WIDTH - 1) / DIGIT_WIDTH;
	gpuagg_u128 frac = magnitude % unit * decimal_power10(nfrac * DIGIT_WIDTH - scale);
	int skip = 0;

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

/*
 * Returns a numeric in its stored form with the short header, for scales up to 63 and weights from
 * -64 to 63.
 */
static Datum
make_numeric(bool negative, int weight, int dscale, const int16 *digit, int ndigits)
{
	Size size = VARHDRSZ + sizeof(uint16) + ndigits * sizeof(int16);
	char *numeric = palloc(size);
	uint16 header = 0x8000 | (uint16) dscale << 7;

	if (ndigits > 0)
		header |= (negative ? 0x2000 : 0) | (weight & 0x007F);
	SET_VARSIZE(numeric, size);
	memcpy(numeric + VARHDRSZ, &header, sizeof(header));
	memcpy(numeric + VARHDRSZ + sizeof(header), digit, ndigits * sizeof(int16));
	return PointerGetDatum(numeric);
}

/* [number of decimal places % 4] factor that aligns them with digits of base 10000 */
static const int alignment[DIGIT_WIDTH] = {1, 1000, 100, 10};

/* Values up to this one can be multiplied by the alignment. */
#define MOST_ALIGNED (~(gpuagg_u128) 0 / 1000)

Datum
decimal_to_numeric_shown(gpuagg_i128 value, int scale, int dscale)
{
	gpuagg_u128 magnitude = value < 0 ? -(gpuagg_u128) value : (gpuagg_u128) value;
	const uint64 chunk = UINT64CONST(10000000000000000); /* four digits */
	int16 digit[DECIMAL_MAX_DIGITS];
	int16 *p = digit + DECIMAL_MAX_DIGITS;
	int weight;
	int ndigits;
	uint64 low;

	Assert(dscale >= 0 && dscale <= DECIMAL_MAX_SHOWN);
	if (unlikely(magnitude > MOST_ALIGNED))
	{
		Decimal dec;

		decimal_from_i128(&dec, value, scale);
		return make_numeric(dec.negative, dec.weight, dscale, dec.digit, dec.ndigits);
	}
	magnitude *= alignment[scale % DIGIT_WIDTH];
	while (unlikely(magnitude >> 64 != 0))
	{
		gpuagg_u128 quotient = magnitude / chunk;

		low = (uint64) (magnitude - quotient * chunk);
		magnitude = quotient;
		for (int i = 0; i < 4; i++, low /= DIGIT_BASE)
			*--p = (int16) (low % DIGIT_BASE);
	}
	for (low = (uint64) magnitude; low > 0; low /= DIGIT_BASE)
		*--p = (int16) (low % DIGIT_BASE);

	/* numerics store no zero digits at either end */
	ndigits = (int) (digit + DECIMAL_MAX_DIGITS - p);
	while (ndigits > 0 && *p == 0)
		p++, ndigits--;
	weight = ndigits - 1 - (scale + DIGIT_WIDTH - 1) / DIGIT_WIDTH;
	while (ndigits > 0 && p[ndigits - 1] == 0)
		ndigits--;
	return make_numeric(value < 0, weight, dscale, p, ndigits);
}

Datum
decimal_to_numeric(gpuagg_i128 value, int scale)
{
	return decimal_to_numeric_shown(value, scale, scale);
}

/* Maximum number of decimal places of a quotient that is computed here. */
#define MOST_PLACES 60

/*
 * Computes sum * 10^-scale / n, n > 0, with the digits of core's division. Sets *quotient to the
 * digits and *places to the number of decimal places among them. Returns false if it needs more
 * digits than are available here.
 */
static bool
divide_like_core(gpuagg_i128 sum, int64 n, int scale, gpuagg_i128 *quotient, int *places)
{
	gpuagg_u128 magnitude = sum < 0 ? -(gpuagg_u128) sum : (gpuagg_u128) sum;
	const gpuagg_u128 most = ~(gpuagg_u128) 0 >> 1;
	gpuagg_u128 factor, whole = 0;
	int weight[2], first[2];

	if (magnitude > MOST_ALIGNED)
		return false;
	first[0] = decimal_first_digit(magnitude * alignment[scale % DIGIT_WIDTH],
								   (scale + DIGIT_WIDTH - 1) / DIGIT_WIDTH, &weight[0]);
	first[1] = decimal_first_digit(n, 0, &weight[1]);
	*places = decimal_quotient_scale(first[0], weight[0], first[1], weight[1], scale);
	if (*places > MOST_PLACES || *places - scale > 36)
		return false;
	factor = decimal_power10(*places - scale);
	if (magnitude > most / factor)
	{
		whole = magnitude / (uint64) n;
		magnitude -= whole * (uint64) n;
		if (magnitude > most / factor || whole >= most / factor)
			return false;
	}
	/* halves are rounded away from zero */
	*quotient = (gpuagg_i128) (whole * factor + (magnitude * factor + (uint64) n / 2) / (uint64) n);
	if (sum < 0)
		*quotient = -*quotient;
	return true;
}

Datum
decimal_mean(gpuagg_i128 sum, int64 n, int scale, int dscale)
{
	gpuagg_i128 mean;
	int places;

	/* if the sum displays fewer digits than it has places, the mean may, too */
	if (dscale == scale && divide_like_core(sum, n, scale, &mean, &places))
		return decimal_to_numeric(mean, places);
	return DirectFunctionCall2(numeric_div, decimal_to_numeric_shown(sum, scale, dscale),
							   NumericGetDatum(int64_to_numeric(n)));
}

/* Returns the square root of a number below 2^126, rounded to the nearest integer. */
static uint64
rounded_root(gpuagg_u128 x)
{
	uint64 root = (uint64) sqrt((double) x);

	if (x == 0)
		return 0;
	/* half of the bits are correct; this step gives all others, except the last one */
	root = (uint64) ((root + x / root) / 2);
	while ((gpuagg_u128) root * root > x)
		root--;
	while (x - (gpuagg_u128) root * root > 2 * (gpuagg_u128) root)
		root++;
	return x - (gpuagg_u128) root * root > root ? root + 1 : root;
}

bool
decimal_variance(int64 n, gpuagg_i128 sum, gpuagg_u128 sumsq, bool sample, bool root, Datum *result)
{
	gpuagg_u128 magnitude = sum < 0 ? -(gpuagg_u128) sum : (gpuagg_u128) sum;
	gpuagg_u128 square, product, radicand;
	gpuagg_i128 variance;
	int places;

	Assert(n > (sample ? 1 : 0));
	/* as numeric_stddev_internal() in numeric.c does */
	if (n > PG_INT32_MAX || __builtin_mul_overflow(magnitude, magnitude, &square) ||
		__builtin_mul_overflow(sumsq, (gpuagg_u128) n, &product) || product >> 127 != 0)
		return false;
	if (product <= square)
	{
		*result = decimal_to_numeric(0, 0);
		return true;
	}
	if (!divide_like_core((gpuagg_i128) (product - square), sample ? n * (n - 1) : n * n, 0,
						  &variance, &places))
		return false;
	if (root)
	{
		if (places > 36 ||
			__builtin_mul_overflow((gpuagg_u128) variance, (gpuagg_u128) decimal_power10(places),
								   &radicand) ||
			radicand >> 126 != 0)
			return false;
		variance = rounded_root(radicand);
	}
	*result = decimal_to_numeric(variance, places);
	return true;
}
