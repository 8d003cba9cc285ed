/*
 * exact_result.c
 *	  Results of exact aggregates: exact arithmetic with the sums of a state, rounded once.
 *
 * With n inputs and the sums Sx, Sxx and so on, the centred sums times n are integers times a power
 * of two:
 *
 *	n * sum((x - mean(x)) * (y - mean(y))) = n * Sxy - Sx * Sy
 *
 * So each result is a quotient of two such numbers, or the root of one.
 *
 * Numbers of any length take long.  So most results are computed from approximations first, whose
 * errors are bounded: if all numbers within the bound are rounded to the same double, that is the
 * result (Ziv's strategy).  The centred sums themselves are exact, since they may be differences of
 * large numbers.
 */
#include "postgres.h"

#include <float.h>
#include <math.h>

#include "utils/float.h"

#include "aggregates/exact.h"

/* The sums of a state, for one result. */
typedef struct Sums
{
	const ExactState *state;
	const ExactWide *total; /* all that the state has, or NULL if that is in windows */
	bool overflow;          /* a result is infinite though no input is */
} Sums;

/* Returns whether variable i of the state had a NaN or infinity. */
static bool
has_specials(const ExactState *state, int i)
{
	const ExactSpecials *specials = state->wide ? &state->wide->specials[i] : NULL;

	return specials &&
		(specials->nan != 0 || specials->plus_infinity != 0 || specials->minus_infinity != 0);
}

/* Returns the sum of a variable that had a NaN or infinity. */
static double
special_sum(const ExactState *state, int i)
{
	const ExactSpecials *specials = &state->wide->specials[i];

	if (specials->nan != 0 || (specials->plus_infinity != 0 && specials->minus_infinity != 0))
		return get_float8_nan();
	return specials->plus_infinity != 0 ? get_float8_infinity() : -get_float8_infinity();
}

/* Returns a result of finite inputs. Notes whether it is infinite. */
static double
finite_result(Sums *sums, double result)
{
	sums->overflow = isinf(result);
	return result;
}

/* Returns the sum of x. */
static double
sum_result(Sums *sums, ExactFormat format)
{
	const ExactState *state = sums->state;
	ExactNumber sum;

	if (has_specials(state, 0))
		return special_sum(state, 0);
	exact_sum_number(&sum, state, sums->total, 0);
	return finite_result(sums, exact_round(&sum, format));
}

/* ---- approximations --------------------------------------------------------------------- */

/* Words of a centred sum times n, if its sums are short enough. */
#define SHORT_WORDS 4

/*
 * An approximation is off by less than 2^-62 of its value, and so a result, which has at most three
 * of them, a quotient and a root, by less than 2^-59.
 */
#define RESULT_MARGIN 0x1p-58L

/* The formats of long double that have approximations; all numbers are in their range. */
#define HAS_APPROXIMATIONS (LDBL_MANT_DIG >= 64 && LDBL_MAX_EXP >= 16384)

/* Sets the na + nb words of r to a * b. */
static inline void
multiply_words(uint64 *r, const uint64 *a, int na, const uint64 *b, int nb)
{
	memset(r, 0, (na + nb) * sizeof(uint64));
	for (int i = 0; i < na; i++)
	{
		uint64 carry = 0;

		for (int j = 0; j < nb; j++)
		{
			gpuagg_u128 sum = (gpuagg_u128) a[i] * b[j] + r[i + j] + carry;

			r[i + j] = (uint64) sum;
			carry = (uint64) (sum >> 64);
		}
		r[i + nb] = carry;
	}
}

/* Changes the sign of an integer of n words in two's complement, if `negative`. */
static inline void
negate_words(uint64 *words, int n, bool negative)
{
	uint64 carry = negative;

	for (int i = 0; negative && i < n; i++)
	{
		words[i] = ~words[i] + carry;
		carry = carry && words[i] == 0;
	}
}

/* Returns 2^exponent times an integer above 0 of SHORT_WORDS words. */
static long double
approximate(const uint64 *words, int exponent)
{
	int last = SHORT_WORDS - 1;

	while (last > 1 && words[last] == 0)
		last--;
	return ldexpl((long double) words[last] * 0x1p64L + (long double) words[last - 1],
				  exponent + 64 * (last - 1));
}

/*
 * Sets *r to about n times the centred sum of products, 0 only if it is 0.  Returns false if its
 * sums are long, or not in windows.
 */
static bool
approximate_centred(long double *r, const Sums *sums, int product)
{
	const ExactState *state = sums->state;
	int x = product == EXACT_YY ? 1 : 0, y = product == EXACT_XX ? 0 : 1;
	gpuagg_i128 a = state->sum[x], b = state->sum[y];
	gpuagg_u128 limit = (gpuagg_u128) 1 << 126;
	uint64 n = (uint64) state->n;
	uint64 sum[SHORT_WORDS], squares[SHORT_WORDS], factors[2][2], window[3];
	uint64 sign = state->product[product][2] >> 63 ? PG_UINT64_MAX : 0;
	uint64 borrow = 0;
	bool negative;

	if (!HAS_APPROXIMATIONS || sums->total || n >> 62 != 0 ||
		(gpuagg_u128) a + limit >= 2 * limit || (gpuagg_u128) b + limit >= 2 * limit ||
		state->product[product][3] != sign || state->product[product][4] != sign)
		return false;
	memcpy(window, state->product[product], sizeof(window));
	negate_words(window, 3, sign != 0);
	multiply_words(sum, window, 3, &n, 1);
	negate_words(sum, SHORT_WORDS, sign != 0);
	memcpy(factors[0], &a, sizeof(a));
	memcpy(factors[1], &b, sizeof(b));
	negate_words(factors[0], 2, a < 0);
	negate_words(factors[1], 2, b < 0);
	multiply_words(squares, factors[0], 2, factors[1], 2);
	negate_words(squares, SHORT_WORDS, (a < 0) != (b < 0));
	for (int i = 0; i < SHORT_WORDS; i++)
	{
		gpuagg_u128 difference = (gpuagg_u128) sum[i] - squares[i] - borrow;

		sum[i] = (uint64) difference;
		borrow = (uint64) (difference >> 64) & 1;
	}
	negative = sum[SHORT_WORDS - 1] >> 63;
	negate_words(sum, SHORT_WORDS, negative);
	*r = approximate(sum, 2 * EXACT_LOWEST_POSITION + state->unit[x] + state->unit[y]);
	if (negative)
		*r = -*r;
	return true;
}

/* Sets *r to what all numbers near an approximation of a result are rounded to, if that is one. */
static bool
round_certainly(double *r, long double value)
{
	long double margin = fabsl(value) * RESULT_MARGIN;

	*r = (double) (value - margin);
	return *r == (double) (value + margin);
}

/* ---- results ---------------------------------------------------------------------------- */

/* Returns the mean of variable i. */
static double
mean_result(Sums *sums, int i)
{
	ExactNumber sum;
	ExactNumber count;
	double result;

	if (has_specials(sums->state, i))
		return special_sum(sums->state, i);
	if (HAS_APPROXIMATIONS && !sums->total)
	{
		gpuagg_i128 a = sums->state->sum[i];
		uint64 words[SHORT_WORDS] = {0};
		long double approximation;

		memcpy(words, &a, sizeof(a));
		negate_words(words, 2, a < 0);
		approximation = approximate(words, EXACT_LOWEST_POSITION + sums->state->unit[i]) /
			(long double) sums->state->n;
		if (round_certainly(&result, a < 0 ? -approximation : approximation))
			return finite_result(sums, result);
	}
	exact_sum_number(&sum, sums->state, sums->total, i);
	exact_from_count(&count, sums->state->n);
	return finite_result(sums, exact_divide(&sum, &count, false));
}

/* Sets *r to n times the centred sum of products. */
static void
centred(ExactNumber *r, const Sums *sums, int product)
{
	ExactNumber sum, count, a, b;

	exact_product_number(&sum, sums->state, sums->total, product);
	exact_from_count(&count, sums->state->n);
	exact_multiply(&a, &sum, &count);
	exact_sum_number(&sum, sums->state, sums->total, product == EXACT_YY ? 1 : 0);
	exact_sum_number(&count, sums->state, sums->total, product == EXACT_XX ? 0 : 1);
	exact_multiply(&b, &sum, &count);
	exact_subtract(r, &a, &b);
}

/* Returns a centred sum of products divided by `divisor`, or the root of that. */
static double
centred_result(Sums *sums, int product, uint64 divisor, bool root)
{
	const ExactState *state = sums->state;
	ExactNumber sum, n, count, both;
	long double approximation;
	double result;

	if (has_specials(state, product == EXACT_YY ? 1 : 0) ||
		has_specials(state, product == EXACT_XX ? 0 : 1))
		return get_float8_nan();
	if (approximate_centred(&approximation, sums, product))
	{
		approximation /= (long double) state->n * (long double) divisor;
		if (round_certainly(&result, root ? sqrtl(approximation) : approximation))
			return finite_result(sums, result);
	}
	centred(&sum, sums, product);
	exact_from_count(&n, state->n);
	exact_from_count(&count, divisor);
	exact_multiply(&both, &n, &count);
	return finite_result(sums, exact_divide(&sum, &both, root));
}

/* Returns whether all values of variable i are finite and equal. */
static bool
is_constant(const Sums *sums, int i)
{
	ExactNumber sum;
	long double approximation;

	if (has_specials(sums->state, i))
		return false;
	if (approximate_centred(&approximation, sums, i == 0 ? EXACT_XX : EXACT_YY))
		return approximation == 0;
	centred(&sum, sums, i == 0 ? EXACT_XX : EXACT_YY);
	return sum.n == 0;
}

/* Returns the slope: Sxy / Sxx of centred sums. */
static double
slope_result(Sums *sums)
{
	ExactNumber sxy, sxx;
	long double a, b;
	double result;

	if (approximate_centred(&a, sums, EXACT_XY) && approximate_centred(&b, sums, EXACT_XX) &&
		round_certainly(&result, a / b))
		return finite_result(sums, result);

	centred(&sxy, sums, EXACT_XY);
	centred(&sxx, sums, EXACT_XX);
	return finite_result(sums, exact_divide(&sxy, &sxx, false));
}

/* Returns the intercept: (Sy * Sxx - Sx * Sxy) / (n * Sxx), where Sxx and Sxy are centred sums. */
static double
intercept_result(Sums *sums)
{
	ExactNumber product, sum, a, b, difference;

	centred(&product, sums, EXACT_XX);
	exact_sum_number(&sum, sums->state, sums->total, 1);
	exact_multiply(&a, &sum, &product);
	centred(&product, sums, EXACT_XY);
	exact_sum_number(&sum, sums->state, sums->total, 0);
	exact_multiply(&b, &sum, &product);
	exact_subtract(&difference, &a, &b);
	centred(&product, sums, EXACT_XX);
	exact_from_count(&sum, sums->state->n);
	exact_multiply(&a, &product, &sum);
	return finite_result(sums, exact_divide(&difference, &a, false));
}

/* Returns Sxy * Sxy / (Sxx * Syy) of centred sums, or the root of that with the sign of Sxy. */
static double
correlation_result(const Sums *sums, bool root)
{
	ExactNumber a, b, numerator, denominator;
	bool negative;
	long double sxx, sxy, syy;
	double result;

	if (approximate_centred(&sxx, sums, EXACT_XX) && approximate_centred(&sxy, sums, EXACT_XY) &&
		approximate_centred(&syy, sums, EXACT_YY) &&
		round_certainly(&result, root ? sxy / sqrtl(sxx * syy) : sxy * sxy / (sxx * syy)))
		return result;
	centred(&a, sums, EXACT_XY);
	negative = a.negative;
	exact_multiply(&numerator, &a, &a);
	centred(&a, sums, EXACT_XX);
	centred(&b, sums, EXACT_YY);
	exact_multiply(&denominator, &a, &b);
	numerator.negative = root && negative;
	return exact_divide(&numerator, &denominator, root);
}

/* Returns a result of regression; see core's float8_corr() and similar functions for the cases. */
static double
regression_result(Sums *sums, ExactResult result, bool *isnull)
{
	bool specials = has_specials(sums->state, 0) || has_specials(sums->state, 1);

	*isnull = is_constant(sums, 0);
	if (*isnull)
		return 0;
	if (result == EXACT_RESULT_REGR_R2 || result == EXACT_RESULT_CORR)
	{
		if (is_constant(sums, 1))
		{
			*isnull = result == EXACT_RESULT_CORR;
			return 1;
		}
		return specials ? get_float8_nan() : correlation_result(sums, result == EXACT_RESULT_CORR);
	}
	if (specials)
		return get_float8_nan();
	return result == EXACT_RESULT_REGR_SLOPE ? slope_result(sums) : intercept_result(sums);
}

/* Returns a result of a state with rows enough. */
static double
compute(Sums *sums, ExactResult result, bool *isnull)
{
	int64 n = sums->state->n;

	switch (result)
	{
		case EXACT_RESULT_SUM:
			return sum_result(sums, EXACT_DOUBLE);
		case EXACT_RESULT_SUM4:
			return sum_result(sums, EXACT_SINGLE);
		case EXACT_RESULT_AVG:
		case EXACT_RESULT_REGR_AVGX:
			return mean_result(sums, 0);
		case EXACT_RESULT_REGR_AVGY:
			return mean_result(sums, 1);
		case EXACT_RESULT_VAR_POP:
			return centred_result(sums, EXACT_XX, n, false);
		case EXACT_RESULT_VAR_SAMP:
			return centred_result(sums, EXACT_XX, n - 1, false);
		case EXACT_RESULT_STDDEV_POP:
			return centred_result(sums, EXACT_XX, n, true);
		case EXACT_RESULT_STDDEV_SAMP:
			return centred_result(sums, EXACT_XX, n - 1, true);
		case EXACT_RESULT_REGR_SXX:
			return centred_result(sums, EXACT_XX, 1, false);
		case EXACT_RESULT_REGR_SYY:
			return centred_result(sums, EXACT_YY, 1, false);
		case EXACT_RESULT_REGR_SXY:
			return centred_result(sums, EXACT_XY, 1, false);
		case EXACT_RESULT_COVAR_POP:
			return centred_result(sums, EXACT_XY, n, false);
		case EXACT_RESULT_COVAR_SAMP:
			return centred_result(sums, EXACT_XY, n - 1, false);
		case EXACT_RESULT_REGR_R2:
		case EXACT_RESULT_REGR_SLOPE:
		case EXACT_RESULT_REGR_INTERCEPT:
		case EXACT_RESULT_CORR:
			return regression_result(sums, result, isnull);
		case EXACT_NO_RESULT:
			break;
	}
	elog(ERROR, "exact aggregate has no result %d", (int) result);
}

/* Returns the kind of states that have what a result needs. */
static ExactKind
kind_for(ExactResult result)
{
	switch (result)
	{
		case EXACT_RESULT_SUM:
		case EXACT_RESULT_SUM4:
		case EXACT_RESULT_AVG:
			return EXACT_SUM;
		case EXACT_RESULT_VAR_POP:
		case EXACT_RESULT_VAR_SAMP:
		case EXACT_RESULT_STDDEV_POP:
		case EXACT_RESULT_STDDEV_SAMP:
			return EXACT_SQUARES;
		default:
			return EXACT_PAIRS;
	}
}

double
exact_result(const ExactState *state, ExactResult result, bool *isnull, bool *overflow)
{
	bool of_sample = result == EXACT_RESULT_VAR_SAMP || result == EXACT_RESULT_STDDEV_SAMP ||
		result == EXACT_RESULT_COVAR_SAMP;
	ExactWide total;
	Sums sums = {state, NULL, false};
	double value;

	/* states come from other servers, and from users (gpuagg_finish) */
	if (state->kind != kind_for(result))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("partial state is one of another aggregate")));
	*overflow = false;
	*isnull = state->n < (of_sample ? 2 : 1);
	if (*isnull)
		return 0;
	if (state->wide)
	{
		exact_total(state, &total);
		sums.total = &total;
	}
	value = compute(&sums, result, isnull);
	*overflow = sums.overflow;
	return value;
}
