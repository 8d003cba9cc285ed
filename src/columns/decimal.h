/*
 * decimal.h
 *	  Wide integers and decimals as numerics.
 */
#ifndef GPUAGG_DECIMAL_H
#define GPUAGG_DECIMAL_H

#include "postgres.h"

#include "operators/monoid.h"

/* Digits of base 10000 for 192 bits, or for 128 bits with a fraction. */
#define DECIMAL_MAX_DIGITS 32

/* A number in the form of a numeric; digit[0] is the most significant one. */
typedef struct Decimal
{
	bool negative;
	int ndigits;
	int weight;
	int dscale;
	int16 digit[DECIMAL_MAX_DIGITS];
} Decimal;

/* Returns 10^n, for n up to 38. */
extern gpuagg_i128 decimal_power10(int n);

/* Sets *dec to an unsigned integer of 192 bits; hi has the upper 64 bits. */
extern void decimal_from_u192(Decimal *dec, uint64 hi, gpuagg_u128 lo);

/* Sets *dec to value * 10^-scale with display scale `scale`, which is at most 30. */
extern void decimal_from_i128(Decimal *dec, gpuagg_i128 value, int scale);

/* Returns the sign word of a numeric in core's send and receive functions. */
static inline int
decimal_sign_word(const Decimal *dec)
{
	return dec->negative ? 0x4000 : 0x0000;
}

/*
 * Returns the numeric value * 10^-scale, which displays `scale` digits (at most 30), in the current
 * context.
 */
extern Datum decimal_to_numeric(gpuagg_i128 value, int scale);

/* Maximum display scale of decimal_to_numeric_shown. */
#define DECIMAL_MAX_SHOWN 63

/* As decimal_to_numeric(), but with display scale `dscale`; digits beyond it must be zeros. */
extern Datum decimal_to_numeric_shown(gpuagg_i128 value, int scale, int dscale);

/*
 * Returns the first digit of base 10000 of a magnitude, and sets its weight; both are 0 for zero.
 * nfrac: number of digits of base 10000 after the point.
 */
static inline int
decimal_first_digit(gpuagg_u128 magnitude, int nfrac, int *weight)
{
	int ndigits = 1;
	uint64 low;

	for (; magnitude >> 64 != 0; ndigits++)
		magnitude /= 10000;
	low = (uint64) magnitude;
	if (low >= UINT64CONST(100000000))
	{
		low /= UINT64CONST(100000000);
		ndigits += 2;
	}
	for (; low >= 10000; ndigits++)
		low /= 10000;
	*weight = low > 0 ? ndigits - 1 - nfrac : 0;
	return (int) low;
}

/*
 * Returns the display scale of a quotient of numbers with these first digits and weights, like
 * select_div_scale() in core's numeric.c: at least 16 significant digits, and at least `least`, the
 * larger scale of the two numbers.
 */
static inline int
decimal_quotient_scale(int first_a, int weight_a, int first_b, int weight_b, int least)
{
	return Max(16 - (weight_a - weight_b - (first_a <= first_b)) * 4, least);
}

/*
 * Returns sum * 10^-scale / n, n > 0, with the digits of core's division.  dscale: display scale of
 * the sum.
 */
extern Datum decimal_mean(gpuagg_i128 sum, int64 n, int scale, int dscale);

/*
 * Sets the variance of n integers, or (root) its square root, with core's digits.  sum, sumsq: the
 * sum of the integers and of their squares.  sample: variance of a sample, n >= 2; else of a
 * population, n >= 1.  Returns false if the computation needs more digits than are available here.
 */
extern bool decimal_variance(int64 n, gpuagg_i128 sum, gpuagg_u128 sumsq, bool sample, bool root,
							 Datum *result);

#endif /* GPUAGG_DECIMAL_H */
