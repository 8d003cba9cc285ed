/*
 * exact_state.h
 *	  States of exact aggregates: sums of floats, of their squares and of products of two, without
 *	  any rounding.
 *
 * A double is an integer of 53 bits times a power of two.  A state adds such integers in fixed
 * point.  Most values go to a window: 128 bits for a sum, 320 for a sum of products, whose lowest
 * bit stands for a power of two that the state's first value determines.  What no window has goes
 * to the wide sums, which have a place for every bit of a double: values of other magnitudes, and
 * the counts of NaN and infinities.  They are allocated when the first such value comes.
 *
 * Positions are those of bits: position p of a sum stands for 2^(p - 1074), position p of a sum of
 * products for 2^(p - 2148).
 */
#ifndef GPUAGG_EXACT_STATE_H
#define GPUAGG_EXACT_STATE_H

#include "postgres.h"

#include "aggregates/exact_number.h"
#include "operators/monoid.h"

/* Numbers are stored in serialized states. */
typedef enum ExactKind
{
	EXACT_SUM = 1,     /* count and sum of x */
	EXACT_SQUARES = 2, /* and the sum of squares */
	EXACT_PAIRS = 3    /* counts and sums of x and y, x * x, x * y and y * y */
} ExactKind;

/* Sums of products in a state, by their index. */
#define EXACT_XX 0
#define EXACT_XY 1
#define EXACT_YY 2

/* Words of wide sums: all bits of a double or a product, and 64 for the number of rows. */
#define EXACT_SUM_WORDS 34
#define EXACT_PRODUCT_WORDS 67

/* The position of bit 0 of double x: 0 is that of the smallest double. */
#define EXACT_LOWEST_POSITION (-1074)

typedef struct ExactSpecials
{
	int64 nan, plus_infinity, minus_infinity;
} ExactSpecials;

/* What is in no window. Only the members that a state's kind needs are allocated. */
typedef struct ExactWide
{
	ExactSpecials specials[2];
	uint64 sum[2][EXACT_SUM_WORDS]; /* two's complement, as the products */
	uint64 product[3][EXACT_PRODUCT_WORDS];
} ExactWide;

/* Words of a window with a sum of products. */
#define EXACT_WINDOW_WORDS 5
#define EXACT_NO_WINDOW INT16_MAX
#define EXACT_NO_BOUND INT16_MAX

/* Only the members that its kind needs are allocated. */
typedef struct ExactState
{
	int64 n;         /* inputs, NaN and infinities among them */
	ExactWide *wide; /* or NULL */
	int16 unit[2];   /* position of bit 0 of the window of x and y, or EXACT_NO_WINDOW */
	uint8 kind;
	uint8 misses; /* values that were not in the window */
	int16 top;    /* exact_sums.c: values before were below 2^top; or EXACT_NO_BOUND */
	gpuagg_i128 sum[2];
	uint64 product[3][EXACT_WINDOW_WORDS]; /* two's complement */
} ExactState;

/* The mantissa's bits of a value in a window move up by at most this. */
#define EXACT_MOST_SHIFT 73

/* The largest position of a window, so that infinities and NaN are above it. */
#define EXACT_LAST_UNIT (2045 - EXACT_MOST_SHIFT)

#define EXACT_MANTISSA ((UINT64CONST(1) << 52) - 1)

/* Returns the bytes of a state of this kind. */
static inline Size
exact_state_size(ExactKind kind)
{
	return kind == EXACT_SUM ? offsetof(ExactState, sum) + sizeof(gpuagg_i128) :
		kind == EXACT_SQUARES ?
							   offsetof(ExactState, product) + EXACT_WINDOW_WORDS * sizeof(uint64) :
							   sizeof(ExactState);
}

/* Initializes a state without inputs. */
static inline void
exact_init(ExactState *state, ExactKind kind)
{
	memset(state, 0, exact_state_size(kind));
	state->kind = kind;
	state->unit[0] = state->unit[1] = EXACT_NO_WINDOW;
	state->top = EXACT_NO_BOUND;
}

/*
 * Sets *m to the mantissa of a value with its sign, and *shift to its place in a window at `unit`.
 * Returns false if the window does not have the value, or it is 0.
 */
static inline bool
exact_in_window(double x, int unit, int64 *m, int *shift)
{
	int64 bits;
	int64 sign;

	memcpy(&bits, &x, sizeof(bits));
	*shift = (int) ((uint64) bits >> 52 & 0x7ff) - 1 - unit;
	sign = bits >> 63;
	*m = (int64) (((uint64) bits & EXACT_MANTISSA) | (EXACT_MANTISSA + 1));
	*m = (*m ^ sign) - sign;
	return (unsigned) *shift <= EXACT_MOST_SHIFT;
}

/* Adds m * 2^shift to the window of a sum. Returns false, and changes nothing, if it overflows. */
static inline bool
exact_add_to_sum(gpuagg_i128 *sum, int64 m, int shift)
{
	__int128 r;

	if (__builtin_add_overflow((__int128) *sum,
							   (__int128) ((unsigned __int128) (__int128) m << shift), &r))
		return false;
	*sum = r;
	return true;
}

/*
 * Adds 2^(64 * i) * (sum of a word and a carry) to the window of a sum of products, whose words are
 * those of an integer in two's complement: `word` is 0, or -1 for a negative product.
 */
static inline void
exact_carry(uint64 *window, int i, uint64 word, bool carry)
{
	/* they often cancel */
	for (; i < EXACT_WINDOW_WORDS && word + carry != 0; i++)
	{
		uint64 added = word + carry;

		window[i] += added;
		/* -1 carries unless the word was 0 */
		carry = word ? window[i] != PG_UINT64_MAX : window[i] < added;
	}
}

/* Adds two words at position 64 * i. Returns the carry. */
static inline bool
exact_add_words(uint64 *window, int i, unsigned __int128 words)
{
	unsigned __int128 old = (unsigned __int128) window[i + 1] << 64 | window[i];
	unsigned __int128 sum = old + words;

	window[i] = (uint64) sum;
	window[i + 1] = (uint64) (sum >> 64);
	return sum < old;
}

/* Adds a * b * 2^shift to the window of a sum of products, which has room for all rows. */
static inline void
exact_add_to_product(uint64 *window, int64 a, int64 b, int shift)
{
	__int128 product = (__int128) a * b; /* 107 bits */
	uint64 sign = (uint64) (product >> 127);
	int i = shift / 64;
	int bits = shift % 64;
	bool carry;
	uint64 third;

	/* most values: two words have the product */
	if (likely((unsigned) (shift - 64) <= 20))
	{
		carry = exact_add_words(window, 1, (unsigned __int128) product << (shift - 64));
		exact_carry(window, 3, sign, carry);
		return;
	}
	carry = exact_add_words(window, i, (unsigned __int128) product << bits);
	third = (uint64) (product >> 64 >> (63 - bits) >> 1);
	window[i + 2] += third;
	if (window[i + 2] < third)
	{
		window[i + 2] += carry;
		carry = true;
	}
	else
	{
		window[i + 2] += carry;
		carry = carry && window[i + 2] == 0;
	}
	exact_carry(window, i + 3, sign, carry);
}

/*
 * Add an input to a state of the kind EXACT_SUM, EXACT_SQUARES or EXACT_PAIRS.  Return false, and
 * change nothing, if it is in no window.
 */
static inline bool
exact_try_sum(ExactState *state, double x)
{
	int64 m;
	int shift;

	if (!exact_in_window(x, state->unit[0], &m, &shift) ||
		!exact_add_to_sum(&state->sum[0], m, shift))
		return false;
	state->n++;
	return true;
}

static inline bool
exact_try_squares(ExactState *state, double x)
{
	int64 m;
	int shift;

	if (!exact_in_window(x, state->unit[0], &m, &shift) ||
		!exact_add_to_sum(&state->sum[0], m, shift))
		return false;
	exact_add_to_product(state->product[EXACT_XX], m, m, 2 * shift);
	state->n++;
	return true;
}

static inline bool
exact_try_pairs(ExactState *state, double x, double y)
{
	int64 a, b;
	int ashift, bshift;
	gpuagg_i128 sum = state->sum[0];

	if (!exact_in_window(x, state->unit[0], &a, &ashift) ||
		!exact_in_window(y, state->unit[1], &b, &bshift) || !exact_add_to_sum(&sum, a, ashift) ||
		!exact_add_to_sum(&state->sum[1], b, bshift))
		return false;
	state->sum[0] = sum;
	exact_add_to_product(state->product[EXACT_XX], a, a, 2 * ashift);
	exact_add_to_product(state->product[EXACT_XY], a, b, ashift + bshift);
	exact_add_to_product(state->product[EXACT_YY], b, b, 2 * bshift);
	state->n++;
	return true;
}

/* Returns a new state without inputs, in the current memory context. */
extern ExactState *exact_create(ExactKind kind);

/* Returns the most bytes of a state of this kind, with its wide sums. */
extern Size exact_most_bytes(ExactKind kind);

/*
 * Adds an input, or removes one that was added before.  y is only read by EXACT_PAIRS.  What the
 * state needs in addition is allocated in its memory context.
 */
extern void exact_add(ExactState *state, double x, double y, bool remove);

/* Adds m * 2^position to the sum of x, without counting an input; |m| is less than 2^53. */
extern void exact_add_integer(ExactState *state, int64 m, int position);

/*
 * Sets the sum of variable i in a new state to that of two sums of parts (operators/exact_parts.h),
 * and the position of its window.
 */
extern void exact_set_parts(ExactState *state, int i, gpuagg_i128 high, gpuagg_i128 low,
							int16 unit);
/* Adds x * 2^shift to the window of products i, or subtracts it. The sum must fit. */
extern void exact_add_to_window(ExactState *state, int i, gpuagg_i192 x, int shift, bool subtract);
/* Divides the sum in the window of products i, which is even, by two. */
extern void exact_halve_window(ExactState *state, int i);

/* Adds the inputs of another state of the same kind. */
extern void exact_combine(ExactState *state, const ExactState *other);

/* Sets *total to all that the state has, in its wide form. */
extern void exact_total(const ExactState *state, ExactWide *total);

/* Returns the wide sums of a state; allocates them if there are none. */
extern ExactWide *exact_wide(ExactState *state);

/* Number of sums and of sums of products. */
static inline int
exact_sums(ExactKind kind)
{
	return kind == EXACT_PAIRS ? 2 : 1;
}

static inline int
exact_products(ExactKind kind)
{
	return kind == EXACT_SUM ? 0 : kind == EXACT_SQUARES ? 1 : 3;
}

/*
 * Set *r to a sum, and to a sum of products, of the state.  `total` has all of a state with wide
 * sums, else it is NULL.
 */
extern void exact_sum_number(ExactNumber *r, const ExactState *state, const ExactWide *total,
							 int i);
extern void exact_product_number(ExactNumber *r, const ExactState *state, const ExactWide *total,
								 int i);

#endif /* GPUAGG_EXACT_STATE_H */
