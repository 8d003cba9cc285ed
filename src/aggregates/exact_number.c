/*
 * exact_number.c
 *	  Binary numbers of any length, and results of exact arithmetic that are rounded once.
 */
#include "aggregates/exact_number.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

#define WORD_BITS 64

/* Bits of the mantissa, and the exponent of the last bit of subnormal numbers. */
#define SINGLE_BITS FLT_MANT_DIG
#define SINGLE_LAST (FLT_MIN_EXP - FLT_MANT_DIG)
#define DOUBLE_BITS DBL_MANT_DIG
#define DOUBLE_LAST (DBL_MIN_EXP - DBL_MANT_DIG)

/* A quotient has at least this number of bits less one, before it is rounded. */
#define QUOTIENT_BITS 128

/* Returns the number of bits of a word; 0 for 0. */
static int
word_bits(uint64_t word)
{
	return word == 0 ? 0 : WORD_BITS - __builtin_clzll(word);
}

/* Returns the number of bits of the integer. */
static int
number_bits(const ExactNumber *a)
{
	return a->n == 0 ? 0 : (a->n - 1) * WORD_BITS + word_bits(a->words[a->n - 1]);
}

/* Removes words that are 0 at both ends. */
static void
trim(ExactNumber *a)
{
	int low = 0;

	while (a->n > 0 && a->words[a->n - 1] == 0)
		a->n--;
	while (low < a->n && a->words[low] == 0)
		low++;
	if (low > 0)
	{
		a->n -= low;
		a->exponent += low * WORD_BITS;
		memmove(a->words, a->words + low, a->n * sizeof(uint64_t));
	}
	if (a->n == 0)
	{
		a->negative = false;
		a->exponent = 0;
	}
}

void
exact_from_count(ExactNumber *r, uint64_t count)
{
	r->negative = false;
	r->exponent = 0;
	r->n = count != 0;
	r->words[0] = count;
}

void
exact_from_words(ExactNumber *r, const uint64_t *words, int n, int exponent)
{
	bool negative = n > 0 && words[n - 1] >> (WORD_BITS - 1);
	uint64_t carry = negative;

	assert(n <= EXACT_WORDS);
	r->negative = negative;
	r->n = n;
	r->exponent = exponent;
	for (int i = 0; i < n; i++)
	{
		r->words[i] = (negative ? ~words[i] : words[i]) + carry;
		carry = carry && r->words[i] == 0;
	}
	trim(r);
}

void
exact_multiply(ExactNumber *r, const ExactNumber *a, const ExactNumber *b)
{
	r->negative = a->negative != b->negative;
	r->n = a->n == 0 || b->n == 0 ? 0 : a->n + b->n;
	r->exponent = a->exponent + b->exponent;
	assert(r->n <= EXACT_WORDS);
	memset(r->words, 0, r->n * sizeof(uint64_t));
	for (int i = 0; i < a->n && r->n > 0; i++)
	{
		uint64_t carry = 0;

		for (int j = 0; j < b->n; j++)
		{
			gpuagg_u128 sum = (gpuagg_u128) a->words[i] * b->words[j] + r->words[i + j] + carry;

			r->words[i + j] = (uint64_t) sum;
			carry = (uint64_t) (sum >> WORD_BITS);
		}
		r->words[i + b->n] = carry;
	}
	trim(r);
}

/* Sets the n words of `to` to the integer of *a, shifted left by `shift` bits. */
static void
shift_words(uint64_t *to, int n, const ExactNumber *a, int shift)
{
	int skip = shift / WORD_BITS;
	int bits = shift % WORD_BITS;

	assert(a->n + skip + (bits > 0) <= n);
	memset(to, 0, n * sizeof(uint64_t));
	for (int i = 0; i < a->n; i++)
	{
		to[i + skip] |= a->words[i] << bits;
		if (bits > 0)
			to[i + skip + 1] = a->words[i] >> (WORD_BITS - bits);
	}
}

/* Returns a sign: how two integers of n words compare. */
static int
compare_words(const uint64_t *a, const uint64_t *b, int n)
{
	for (int i = n - 1; i >= 0; i--)
		if (a[i] != b[i])
			return a[i] < b[i] ? -1 : 1;
	return 0;
}

/* Subtracts b from a, which is not less. */
static void
subtract_words(uint64_t *a, const uint64_t *b, int n)
{
	uint64_t borrow = 0;

	for (int i = 0; i < n; i++)
	{
		gpuagg_u128 difference = (gpuagg_u128) a[i] - b[i] - borrow;

		a[i] = (uint64_t) difference;
		borrow = (uint64_t) (difference >> WORD_BITS) & 1;
	}
}

void
exact_add_integers(uint64_t *a, const uint64_t *b, int n)
{
	uint64_t carry = 0;

	for (int i = 0; i < n; i++)
	{
		gpuagg_u128 sum = (gpuagg_u128) a[i] + b[i] + carry;

		a[i] = (uint64_t) sum;
		carry = (uint64_t) (sum >> WORD_BITS);
	}
}

void
exact_subtract(ExactNumber *r, const ExactNumber *a, const ExactNumber *b)
{
	uint64_t other[EXACT_WORDS];
	int exponent = a->n == 0 || (b->n > 0 && b->exponent < a->exponent) ? b->exponent : a->exponent;
	int abits = a->n == 0 ? 0 : a->exponent - exponent + number_bits(a);
	int bbits = b->n == 0 ? 0 : b->exponent - exponent + number_bits(b);
	int n = (abits > bbits ? abits : bbits) / WORD_BITS + 2;

	assert(n <= EXACT_WORDS);
	shift_words(r->words, n, a, a->n == 0 ? 0 : a->exponent - exponent);
	shift_words(other, n, b, b->n == 0 ? 0 : b->exponent - exponent);
	r->n = n;
	r->exponent = exponent;
	r->negative = a->negative;
	if (a->negative != b->negative)
	{
		r->negative = a->n == 0 ? !b->negative : a->negative;
		exact_add_integers(r->words, other, n);
	}
	else if (compare_words(r->words, other, n) >= 0)
		subtract_words(r->words, other, n);
	else
	{
		subtract_words(other, r->words, n);
		memcpy(r->words, other, n * sizeof(uint64_t));
		r->negative = !a->negative;
	}
	trim(r);
}

/*
 * Returns q * 2^exponent, rounded to the format. more: the number is greater than that, by less
 * than a unit of q, which then has more bits than the format.
 */
static double
round_quotient(bool negative, gpuagg_u128 q, int exponent, bool more, ExactFormat format)
{
	uint64_t high = (uint64_t) (q >> WORD_BITS);
	int bits = high ? WORD_BITS + word_bits(high) : word_bits((uint64_t) q);
	int last = exponent + bits - (format == EXACT_SINGLE ? SINGLE_BITS : DOUBLE_BITS);
	int least = format == EXACT_SINGLE ? SINGLE_LAST : DOUBLE_LAST;
	int drop;
	double result;

	if (q == 0)
		return 0.0;
	if (last < least)
		last = least;
	drop = last - exponent;
	if (drop > 128)
		q = 0;
	else if (drop > 0)
	{
		gpuagg_u128 kept = drop == 128 ? 0 : q >> drop;
		gpuagg_u128 rest = drop == 128 ? q : q & (((gpuagg_u128) 1 << drop) - 1);
		gpuagg_u128 half = (gpuagg_u128) 1 << (drop - 1);

		q = kept + (rest > half || (rest == half && (more || (kept & 1))));
	}
	else
		last = exponent;
	/* q has no more bits than a double */
	result = ldexp((double) (uint64_t) q, last);
	if (format == EXACT_SINGLE && result > FLT_MAX)
		result = INFINITY;
	return negative ? -result : result;
}

/* Returns the upper 128 bits of the integer, whose last one is 2^*exponent. *more: others are set.
 */
static gpuagg_u128
upper_bits(const ExactNumber *a, int *exponent, bool *more)
{
	gpuagg_u128 upper;
	uint64_t next;
	int free_bits;

	*exponent = a->exponent;
	*more = false;
	if (a->n == 0)
		return 0;
	if (a->n == 1)
		return a->words[0];
	upper = (gpuagg_u128) a->words[a->n - 1] << WORD_BITS | a->words[a->n - 2];
	if (a->n == 2)
		return upper;
	free_bits = WORD_BITS - word_bits(a->words[a->n - 1]);
	next = a->words[a->n - 3];
	*exponent += (a->n - 2) * WORD_BITS - free_bits;
	if (free_bits > 0)
		upper = upper << free_bits | next >> (WORD_BITS - free_bits);
	/* words below the third last are not all 0: numbers are trimmed */
	*more = a->n > 3 || next << free_bits != 0;
	return upper;
}

double
exact_round(const ExactNumber *a, ExactFormat format)
{
	int exponent;
	bool more;
	gpuagg_u128 upper = upper_bits(a, &exponent, &more);

	return round_quotient(a->negative, upper, exponent, more, format);
}

/*
 * Divides integers whose quotient has at most two words, by Knuth, "The Art of Computer
 * Programming", volume 2, section 4.3.1, algorithm D.  a: na words, the last one 0; becomes the
 * remainder.  b: nb words, the first bit of the last one set.
 */
static gpuagg_u128
divide_words(uint64_t *a, int na, const uint64_t *b, int nb)
{
	gpuagg_u128 quotient = 0;

	for (int j = na - nb - 1; j >= 0; j--)
	{
		gpuagg_u128 top = (gpuagg_u128) a[j + nb] << WORD_BITS | a[j + nb - 1];
		gpuagg_u128 digit = a[j + nb] >= b[nb - 1] ? UINT64_MAX : top / b[nb - 1];
		uint64_t carry = 0;
		uint64_t borrow = 0;

		/* subtract digit * b; the estimate is at most 2 too large */
		for (int i = 0; i <= nb; i++)
		{
			gpuagg_u128 product = (i < nb ? digit * b[i] : 0) + carry;
			gpuagg_u128 difference = (gpuagg_u128) a[j + i] - (uint64_t) product - borrow;

			carry = (uint64_t) (product >> WORD_BITS);
			a[j + i] = (uint64_t) difference;
			borrow = (uint64_t) (difference >> WORD_BITS) & 1;
		}
		while (borrow)
		{
			uint64_t sum_carry = 0;

			digit--;
			for (int i = 0; i <= nb; i++)
			{
				gpuagg_u128 sum = (gpuagg_u128) a[j + i] + (i < nb ? b[i] : 0) + sum_carry;

				a[j + i] = (uint64_t) sum;
				sum_carry = (uint64_t) (sum >> WORD_BITS);
			}
			borrow -= sum_carry;
		}
		quotient = quotient << WORD_BITS | (uint64_t) digit;
	}
	return quotient;
}

/* Returns the integer root of q; *more: q is not its square. */
static uint64_t
integer_root(gpuagg_u128 q, bool *more)
{
	long double estimate = sqrtl((long double) q);
	uint64_t root = estimate >= 0x1p64L ? UINT64_MAX : (uint64_t) estimate;

	while ((gpuagg_u128) root * root > q)
		root--;
	while (root < UINT64_MAX && (gpuagg_u128) (root + 1) * (root + 1) <= q)
		root++;
	*more = (gpuagg_u128) root * root != q;
	return root;
}

double
exact_divide(const ExactNumber *a, const ExactNumber *b, bool root)
{
	uint64_t dividend[EXACT_WORDS];
	uint64_t divisor[EXACT_WORDS];
	bool negative = a->negative != b->negative;
	int ashift = 0;
	int bshift;
	int more_bits;
	int na, nb;
	int exponent;
	gpuagg_u128 q;
	bool more = false;
	bool more_root;

	if (a->n == 0)
		return 0.0;
	/* the divisor's last word is full; then the dividend has 127 bits more */
	bshift = (WORD_BITS - number_bits(b) % WORD_BITS) % WORD_BITS;
	more_bits = number_bits(a) - (number_bits(b) + bshift) - (QUOTIENT_BITS - 1);
	if (more_bits > 0)
		bshift += (more_bits + WORD_BITS - 1) / WORD_BITS * WORD_BITS;
	ashift = number_bits(b) + bshift + (QUOTIENT_BITS - 1) - number_bits(a);
	nb = (number_bits(b) + bshift) / WORD_BITS;
	na = nb + 2;
	assert(na + 1 <= EXACT_WORDS);
	shift_words(dividend, na + 1, a, ashift);
	shift_words(divisor, nb + 1, b, bshift);
	q = divide_words(dividend, na + 1, divisor, nb);
	for (int i = 0; i < na + 1 && !more; i++)
		more = dividend[i] != 0;
	exponent = (a->exponent - ashift) - (b->exponent - bshift);
	if (!root)
		return round_quotient(negative, q, exponent, more, EXACT_DOUBLE);
	if (exponent % 2 != 0)
	{
		more = more || (q & 1);
		q >>= 1;
		exponent++;
	}
	q = integer_root(q, &more_root);
	return round_quotient(a->negative, q, exponent / 2, more || more_root, EXACT_DOUBLE);
}
