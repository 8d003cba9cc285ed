/*
 * decimal.h
 *	  Wide integers and decimals as numerics.
 */
#ifndef GPUAGG_DECIMAL_H
#define GPUAGG_DECIMAL_H

#include "postgres.h"

#include "operators/monoid.h"

/* Digits of base 10000 that 192 bits need, or 128 bits with a fraction. */
#define DECIMAL_MAX_DIGITS 32

/* A number as numerics have it: digit[0] is the most significant. */
typedef struct Decimal
{
	bool negative;
	int ndigits;
	int weight;
	int dscale;
	int16 digit[DECIMAL_MAX_DIGITS];
} Decimal;

/* 10^n, for n up to 38. */
extern gpuagg_i128 decimal_power10(int n);

/* The integer of 192 bits, of which hi are the upper 64. */
extern void decimal_from_u192(Decimal *dec, uint64 hi, gpuagg_u128 lo);

/* value times 10^-scale, displayed with `scale` digits; scale is at most 30. */
extern void decimal_from_i128(Decimal *dec, gpuagg_i128 value, int scale);

/* The sign word of a numeric in core's send and receive functions. */
static inline int
decimal_sign_word(const Decimal *dec)
{
	return dec->negative ? 0x4000 : 0x0000;
}

/*
 * value times 10^-scale as a numeric that displays `scale` digits, up to 30, in the current
 * context.
 */
extern Datum decimal_to_numeric(gpuagg_i128 value, int scale);

/* Most digits behind the point that the next one displays. */
#define DECIMAL_MAX_SHOWN 63

/* The same with another display scale; digits beyond that must be zeros. */
extern Datum decimal_to_numeric_shown(gpuagg_i128 value, int scale, int dscale);

/*
 * The first digit of base 10000 of a magnitude that has `nfrac` of these behind the point, and its
 * weight; 0 and 0 of zero.
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
 * The display scale of a quotient of numbers with these first digits and weights, as
 * select_div_scale() of core's numeric.c has it: at least 16 significant digits, and at least
 * `least`, the larger scale of the two.
 */
static inline int
decimal_quotient_scale(int first_a, int weight_a, int first_b, int weight_b, int least)
{
	return Max(16 - (weight_a - weight_b - (first_a <= first_b)) * 4, least);
}

/* What core's division gives for that and n, which is positive: the same digits. */
extern Datum decimal_mean(gpuagg_i128 sum, int64 n, int scale, int dscale);

/*
 * What core gives for the variance of n integers, or with `root` for its square root, of their sum
 * and that of their squares: of a sample, of at least 2, or of all, of at least 1.  False: it takes
 * more digits than are computed with here.
 */
extern bool decimal_variance(int64 n, gpuagg_i128 sum, gpuagg_u128 sumsq, bool sample, bool root,
							 Datum *result);

#endif /* GPUAGG_DECIMAL_H */
