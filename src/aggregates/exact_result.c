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
 */
#include "postgres.h"

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

/* Returns the mean of variable i. */
static double
mean_result(Sums *sums, int i)
{
	ExactNumber sum;
	ExactNumber count;

	if (has_specials(sums->state, i))
		return special_sum(sums->state, i);
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

	if (has_specials(state, product == EXACT_YY ? 1 : 0) ||
		has_specials(state, product == EXACT_XX ? 0 : 1))
		return get_float8_nan();
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

	if (has_specials(sums->state, i))
		return false;
	centred(&sum, sums, i == 0 ? EXACT_XX : EXACT_YY);
	return sum.n == 0;
}

/* Returns the slope: Sxy / Sxx of centred sums. */
static double
slope_result(Sums *sums)
{
	ExactNumber sxy, sxx;

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
