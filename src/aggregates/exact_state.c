/*
 * exact_state.c
 *	  States of exact aggregates: what windows do not have, and sums of states.
 */
#include "postgres.h"

#include <math.h>

#include "utils/memutils.h"

#include "aggregates/exact_state.h"
#include "operators/exact_parts.h"

/* A state's first value is at this bit of its window: smaller ones fit, too. */
#define WINDOW_MARGIN 38

/* After so many values beside the window it moves. */
#define MOST_MISSES 16

/*
 * A window of products that moves or has the sum of two has no more bits, and so still has room for
 * all rows.
 */
#define MOST_PRODUCT_BITS 317

/* A finite value: m * 2^position, and its sign. */
typedef struct Value
{
	bool negative;
	int position;
	uint64 m; /* 0: the value is 0 */
} Value;

static Value
read_value(double x)
{
	Value v;
	uint64 bits;
	int exponent;

	memcpy(&bits, &x, sizeof(bits));
	exponent = bits >> 52 & 0x7ff;
	v.negative = bits >> 63;
	v.m = bits & EXACT_MANTISSA;
	if (exponent > 0)
		v.m |= EXACT_MANTISSA + 1;
	v.position = Max(exponent, 1) - 1;
	return v;
}

ExactState *
exact_create(ExactKind kind)
{
	ExactState *state = palloc(exact_state_size(kind));

	exact_init(state, kind);
	return state;
}

/* Returns the bytes of the wide sums for states of this kind. */
static Size
wide_size(ExactKind kind)
{
	return kind == EXACT_SUM  ? offsetof(ExactWide, sum[1]) :
		kind == EXACT_SQUARES ? offsetof(ExactWide, product[1]) :
								sizeof(ExactWide);
}

Size
exact_most_bytes(ExactKind kind)
{
	return exact_state_size(kind) + wide_size(kind);
}

ExactWide *
exact_wide(ExactState *state)
{
	if (state->wide == NULL)
		state->wide = MemoryContextAllocZero(GetMemoryChunkContext(state), wide_size(state->kind));
	return state->wide;
}

/* Adds value * 2^position to a sum of nwords words, or subtracts it. */
static void
add_wide(uint64 *words, int nwords, int position, gpuagg_u128 value, bool subtract)
{
	int i = position / 64;
	int bits = position % 64;
	uint64 word[3] = {(uint64) value << bits, (uint64) ((value << bits) >> 64),
					  bits > 0 ? (uint64) (value >> (128 - bits)) : 0};
	uint64 carry = 0;

	for (int w = 0; i < nwords && (w < 3 || carry); w++, i++)
	{
		uint64 x = w < 3 ? word[w] : 0;
		uint64 old = words[i];

		if (subtract)
		{
			words[i] = old - x - carry;
			carry = carry ? old <= x : old < x;
		}
		else
		{
			words[i] = old + x + carry;
			carry = carry ? words[i] <= x : words[i] < x;
		}
	}
}

/* Adds the sum of a window of x or y to a wide sum. */
static void
add_sum_window(uint64 *words, gpuagg_i128 sum, int unit)
{
	bool negative = sum < 0;

	if (sum != 0)
		add_wide(words, EXACT_SUM_WORDS, unit, negative ? -(gpuagg_u128) sum : (gpuagg_u128) sum,
				 negative);
}

/* Adds the sum of a window of products to a wide sum. */
static void
add_product_window(uint64 *words, const uint64 *window, int unit)
{
	bool negative = window[EXACT_WINDOW_WORDS - 1] >> 63;
	uint64 carry = negative;

	for (int w = 0; w < EXACT_WINDOW_WORDS; w++)
	{
		uint64 word = (negative ? ~window[w] : window[w]) + carry;

		carry = carry && word == 0;
		if (word != 0)
			add_wide(words, EXACT_PRODUCT_WORDS, unit + 64 * w, word, negative);
	}
}

/* Returns the position of bit 0 of the window of products i. */
static int
product_unit(const ExactState *state, int i)
{
	return state->unit[i == EXACT_YY ? 1 : 0] + state->unit[i == EXACT_XX ? 0 : 1];
}

/* Returns whether a window of products can have bits. */
static bool
has_product_window(const ExactState *state, int i)
{
	return state->unit[i == EXACT_YY ? 1 : 0] != EXACT_NO_WINDOW &&
		state->unit[i == EXACT_XX ? 0 : 1] != EXACT_NO_WINDOW;
}

/* Adds all windows to *wide. */
static void
add_windows(const ExactState *state, ExactWide *wide)
{
	for (int i = 0; i < exact_sums(state->kind); i++)
		if (state->unit[i] != EXACT_NO_WINDOW)
			add_sum_window(wide->sum[i], state->sum[i], state->unit[i]);
	for (int i = 0; i < exact_products(state->kind); i++)
		if (has_product_window(state, i))
			add_product_window(wide->product[i], state->product[i], product_unit(state, i));
}

/* Empties all windows. */
static void
clear_windows(ExactState *state)
{
	state->unit[0] = state->unit[1] = EXACT_NO_WINDOW;
	for (int i = 0; i < exact_sums(state->kind); i++)
		state->sum[i] = 0;
	for (int i = 0; i < exact_products(state->kind); i++)
		memset(state->product[i], 0, sizeof(state->product[i]));
}

/* Moves what the windows have to the wide sums. */
static void
flush_windows(ExactState *state)
{
	add_windows(state, exact_wide(state));
	clear_windows(state);
}

void
exact_total(const ExactState *state, ExactWide *total)
{
	if (state->wide)
		memcpy(total, state->wide, wide_size(state->kind));
	else
		memset(total, 0, wide_size(state->kind));
	add_windows(state, total);
}

/* Sets the window of variable i around a value, unless it has one. */
static void
place_window(ExactState *state, int i, const Value *v)
{
	if (state->unit[i] == EXACT_NO_WINDOW && v->m != 0)
		state->unit[i] = Min(Max(v->position - WINDOW_MARGIN, 0), EXACT_LAST_UNIT);
}

/* Returns whether the window of variable i has this value. */
static bool
fits_window(const ExactState *state, int i, const Value *v)
{
	return v->m == 0 ||
		(v->position >= state->unit[i] && v->position - state->unit[i] <= EXACT_MOST_SHIFT);
}

/* Adds finite values to the windows. Returns false, and changes nothing, if they do not fit. */
static bool
add_to_windows(ExactState *state, const Value *v, bool remove)
{
	int n = exact_sums(state->kind);
	gpuagg_i128 sum[2];
	int64 m[2] = {0, 0};
	int shift[2] = {0, 0};

	for (int i = 0; i < n; i++)
	{
		if (!fits_window(state, i, &v[i]))
			return false;
		m[i] = v[i].negative ? -(int64) v[i].m : (int64) v[i].m;
		shift[i] = v[i].m == 0 ? 0 : v[i].position - state->unit[i];
		sum[i] = state->sum[i];
		if (!exact_add_to_sum(&sum[i], remove ? -m[i] : m[i], shift[i]))
			return false;
	}
	for (int i = 0; i < n; i++)
		state->sum[i] = sum[i];
	for (int i = 0; i < exact_products(state->kind); i++)
	{
		int a = i == EXACT_YY ? 1 : 0;
		int b = i == EXACT_XX ? 0 : 1;

		exact_add_to_product(state->product[i], remove ? -m[a] : m[a], m[b], shift[a] + shift[b]);
	}
	return true;
}

/* Adds values to the wide sums. finite: which of them are finite; the others are left out. */
static void
add_to_wide(ExactState *state, const Value *v, const bool *finite, bool remove)
{
	ExactWide *wide = exact_wide(state);

	for (int i = 0; i < exact_sums(state->kind); i++)
		if (finite[i])
			add_wide(wide->sum[i], EXACT_SUM_WORDS, v[i].position, v[i].m, v[i].negative != remove);
	for (int i = 0; i < exact_products(state->kind); i++)
	{
		const Value *a = &v[i == EXACT_YY ? 1 : 0];
		const Value *b = &v[i == EXACT_XX ? 0 : 1];

		if (finite[a - v] && finite[b - v])
			add_wide(wide->product[i], EXACT_PRODUCT_WORDS, a->position + b->position,
					 (gpuagg_u128) a->m * b->m, (a->negative != b->negative) != remove);
	}
}

/* Counts a NaN or infinity. */
static void
count_special(ExactSpecials *specials, double x, int change)
{
	if (isnan(x))
		specials->nan += change;
	else if (x > 0)
		specials->plus_infinity += change;
	else
		specials->minus_infinity += change;
}

void
exact_add(ExactState *state, double x, double y, bool remove)
{
	double values[2] = {x, y};
	Value v[2];
	bool finite[2] = {true, true};
	int n = exact_sums(state->kind);
	int change = remove ? -1 : 1;

	state->n += change;
	for (int i = 0; i < n; i++)
	{
		finite[i] = isfinite(values[i]);
		v[i] = read_value(values[i]);
		if (!finite[i])
			count_special(&exact_wide(state)->specials[i], values[i], change);
		else
			place_window(state, i, &v[i]);
	}
	if (finite[0] && finite[1])
	{
		if (add_to_windows(state, v, remove))
			return;
		if (++state->misses >= MOST_MISSES)
		{
			state->misses = 0;
			flush_windows(state);
			for (int i = 0; i < n; i++)
				place_window(state, i, &v[i]);
			if (add_to_windows(state, v, remove))
				return;
		}
	}
	add_to_wide(state, v, finite, remove);
}

void
exact_add_integer(ExactState *state, int64 m, int position)
{
	int shift = position - state->unit[0];

	if (shift < 0 || shift > EXACT_MOST_SHIFT || !exact_add_to_sum(&state->sum[0], m, shift))
		add_wide(exact_wide(state)->sum[0], EXACT_SUM_WORDS, position,
				 m < 0 ? -(gpuagg_u128) m : (gpuagg_u128) m, m < 0);
}

void
exact_set_parts(ExactState *state, int i, gpuagg_i128 high, gpuagg_i128 low, int16 unit)
{
	__int128 sum;

	state->unit[i] = unit;
	/* then the high parts have at most 126 bits */
	if (high == (int64) high &&
		!__builtin_add_overflow((__int128) high * ((__int128) 1 << EXACT_PARTS_LOW), (__int128) low,
								&sum))
	{
		state->sum[i] = sum;
		return;
	}
	add_sum_window(exact_wide(state)->sum[i], high, unit + EXACT_PARTS_LOW);
	add_sum_window(state->wide->sum[i], low, unit);
}

/* ---- sums of states ------------------------------------------------------ */

/* Adds wide sums and counts to those of a state. */
static void
combine_wide(ExactState *state, const ExactWide *other)
{
	ExactWide *wide = exact_wide(state);

	for (int i = 0; i < exact_sums(state->kind); i++)
	{
		wide->specials[i].nan += other->specials[i].nan;
		wide->specials[i].plus_infinity += other->specials[i].plus_infinity;
		wide->specials[i].minus_infinity += other->specials[i].minus_infinity;
		exact_add_integers(wide->sum[i], other->sum[i], EXACT_SUM_WORDS);
	}
	for (int i = 0; i < exact_products(state->kind); i++)
		exact_add_integers(wide->product[i], other->product[i], EXACT_PRODUCT_WORDS);
}

/* Returns the number of bits of the absolute value in a window, or one more. */
static int
window_bits(const uint64 *words, int n)
{
	uint64 sign = words[n - 1] >> 63 ? PG_UINT64_MAX : 0;

	while (n > 0 && words[n - 1] == sign)
		n--;
	return n == 0 ? 1 : n * 64 - __builtin_clzll(words[n - 1] ^ sign) + 1;
}

/* Multiplies a window by 2^shift. Returns false, and changes nothing, if it has more bits then. */
static bool
shift_window(uint64 *words, int n, int shift, int most_bits)
{
	int skip = shift / 64;
	int bits = shift % 64;

	if (window_bits(words, n) + shift > most_bits)
		return false;
	for (int i = n - 1; i >= 0; i--)
	{
		uint64 low = i - skip - 1 >= 0 ? words[i - skip - 1] : 0;

		words[i] = i - skip >= 0 ? words[i - skip] : 0;
		if (bits > 0)
			words[i] = words[i] << bits | low >> (64 - bits);
	}
	return true;
}

void
exact_add_to_window(ExactState *state, int i, gpuagg_i192 x, int shift, bool subtract)
{
	uint64 words[EXACT_WINDOW_WORDS] = {(uint64) x.lo, (uint64) (x.lo >> 64), x.hi};
	const uint64 one[EXACT_WINDOW_WORDS] = {1};

	(void) shift_window(words, EXACT_WINDOW_WORDS, shift, 64 * EXACT_WINDOW_WORDS);
	for (int w = 0; subtract && w < EXACT_WINDOW_WORDS; w++)
		words[w] = ~words[w];
	exact_add_integers(state->product[i], words, EXACT_WINDOW_WORDS);
	if (subtract)
		exact_add_integers(state->product[i], one, EXACT_WINDOW_WORDS);
}

void
exact_halve_window(ExactState *state, int i)
{
	uint64 *words = state->product[i];

	for (int w = 0; w < EXACT_WINDOW_WORDS - 1; w++)
		words[w] = words[w] >> 1 | words[w + 1] << 63;
	words[EXACT_WINDOW_WORDS - 1] = (uint64) ((int64) words[EXACT_WINDOW_WORDS - 1] >> 1);
}

/* Moves windows down to these units. Returns false if they do not have their sums there. */
static bool
lower_windows(ExactState *state, const int16 *units)
{
	int down[2] = {0, 0};

	for (int i = 0; i < exact_sums(state->kind); i++)
	{
		if (state->unit[i] != EXACT_NO_WINDOW)
			down[i] = state->unit[i] - units[i];
		state->unit[i] = units[i];
		if (down[i] > 0 && !shift_window((uint64 *) &state->sum[i], 2, down[i], 127))
			return false;
	}
	for (int i = 0; i < exact_products(state->kind); i++)
	{
		int shift = down[i == EXACT_YY ? 1 : 0] + down[i == EXACT_XX ? 0 : 1];

		if (shift > 0 &&
			!shift_window(state->product[i], EXACT_WINDOW_WORDS, shift, MOST_PRODUCT_BITS))
			return false;
	}
	return true;
}

/* Adds windows of two states. Returns false, and changes nothing, if no window has the sum. */
static bool
combine_windows(ExactState *state, const ExactState *other)
{
	int n = exact_sums(state->kind);
	ExactState a, b;
	int16 units[2];

	memcpy(&a, state, exact_state_size(state->kind));
	memcpy(&b, other, exact_state_size(state->kind));
	for (int i = 0; i < n; i++)
		units[i] = Min(a.unit[i], b.unit[i]);
	if (!lower_windows(&a, units) || !lower_windows(&b, units))
		return false;
	for (int i = 0; i < n; i++)
	{
		__int128 r;

		if (__builtin_add_overflow((__int128) a.sum[i], (__int128) b.sum[i], &r))
			return false;
		a.sum[i] = r;
	}
	for (int i = 0; i < exact_products(state->kind); i++)
	{
		if (window_bits(a.product[i], EXACT_WINDOW_WORDS) >= MOST_PRODUCT_BITS ||
			window_bits(b.product[i], EXACT_WINDOW_WORDS) >= MOST_PRODUCT_BITS)
			return false;
		exact_add_integers(a.product[i], b.product[i], EXACT_WINDOW_WORDS);
	}
	memcpy(state, &a, exact_state_size(state->kind));
	return true;
}

void
exact_combine(ExactState *state, const ExactState *other)
{
	if (!combine_windows(state, other))
		add_windows(other, exact_wide(state));
	state->n += other->n;
	if (other->wide)
		combine_wide(state, other->wide);
}

/* ---- sums as numbers ------------------------------------------------------ */

void
exact_sum_number(ExactNumber *r, const ExactState *state, const ExactWide *total, int i)
{
	if (total)
		exact_from_words(r, total->sum[i], EXACT_SUM_WORDS, EXACT_LOWEST_POSITION);
	else
		exact_from_words(r, (const uint64 *) &state->sum[i], 2,
						 EXACT_LOWEST_POSITION + state->unit[i]);
}

void
exact_product_number(ExactNumber *r, const ExactState *state, const ExactWide *total, int i)
{
	if (total)
		exact_from_words(r, total->product[i], EXACT_PRODUCT_WORDS, 2 * EXACT_LOWEST_POSITION);
	else
		exact_from_words(r, state->product[i], EXACT_WINDOW_WORDS,
						 2 * EXACT_LOWEST_POSITION + product_unit(state, i));
}
