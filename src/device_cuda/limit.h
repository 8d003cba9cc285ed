/*
 * limit.h
 *	  WireLimit: which groups meet its conditions, and which of these are the first in its order.
 *
 * A group has a word of 64 bits for each value of the order, the greater the earlier the group
 * comes; where ties are not wanted its number is the last word.  The bound that `count` groups
 * reach is found digit by digit from the first word's highest bits on (LimitSearch), in passes over
 * all groups: they count the digits of those that tie with what is known of the bound.
 *
 * Plain C for gcc and nvcc.
 */
#ifndef GPUAGG_LIMIT_H
#define GPUAGG_LIMIT_H

#include <string.h>

#include "protocol.h"

/* Where a WireValue of each group is. */
typedef struct LimitSource
{
	int monoid; /* of the states; -1: in a packed key */
	int mean;
	const void *states;
	const int64_t *counts; /* NULL: the value never is; of states */
	int key;               /* its bit in the byte at null_offset; -1: there is no such byte */
	int null_offset;
	int offset;
	int width;
} LimitSource;

typedef struct LimitPlan
{
	int64_t count;
	int ties;
	int nsort;
	LimitSource by[WIRE_MAX_SORT];
	uint8_t descending[WIRE_MAX_SORT];
	uint8_t nulls_first[WIRE_MAX_SORT];
	int nconditions;
	LimitSource of[WIRE_MAX_CONDITIONS];
	int64_t min[WIRE_MAX_CONDITIONS], max[WIRE_MAX_CONDITIONS];
} LimitPlan;

/* The low `width` bytes of a packed key, as a signed number. */
GPUAGG_HD int64_t
limit_key(const char *bytes, int width)
{
	uint64_t value = 0;

	for (int b = 0; b < width; b++)
		value |= (uint64_t) (unsigned char) bytes[b] << 8 * b;
	return (int64_t) (value << (64 - 8 * width)) >> (64 - 8 * width);
}

/* Group g's state as an integer that compares as it does; wire_limit_takes() its operator. */
GPUAGG_HD int64_t
limit_state(int monoid, const void *states, int64_t g)
{
	gpuagg_i128 wide;

	switch (monoid)
	{
		case MONOID_MIN_I32:
		case MONOID_MAX_I32:
			return ((const int32_t *) states)[g];
		case MONOID_SUM_F32:
		case MONOID_MIN_F32:
		case MONOID_MAX_F32:
			return gpuagg_f64_code(((const float *) states)[g] + 0.0);
		case MONOID_SUM_F64:
		case MONOID_MIN_F64:
		case MONOID_MAX_F64:
			return gpuagg_f64_code(((const double *) states)[g] + 0.0);
		case MONOID_SUM_I128:
		case MONOID_SUM_DEC:
		case MONOID_MIN_DEC:
		case MONOID_MAX_DEC:
			wide = ((const gpuagg_i128 *) states)[g];
			return wide > INT64_MAX ? INT64_MAX : wide < INT64_MIN ? INT64_MIN : (int64_t) wide;
		default:
			return ((const int64_t *) states)[g];
	}
}

/* Group g's value, whose packed key is at `key`, if that is what it is of; 0: NULL. */
GPUAGG_HD int
limit_value(const LimitSource *source, int64_t g, const char *key, int64_t *value)
{
	if (source->monoid < 0)
	{
		*value = limit_key(key + source->offset, source->width);
		return source->key < 0 || !(key[source->null_offset] >> source->key & 1);
	}
	if (source->counts && source->counts[g] == 0)
		return 0;
	if (source->mean)
		*value = gpuagg_f64_code(
			(((const double *) source->states)[g] + 0.0) / (double) source->counts[g] + 0.0);
	else
		*value = limit_state(source->monoid, source->states, g);
	return 1;
}

GPUAGG_HD int
limit_passes(const LimitPlan *plan, int64_t g, const char *key)
{
	for (int c = 0; c < plan->nconditions; c++)
	{
		int64_t value;

		if (!limit_value(&plan->of[c], g, key, &value) || value < plan->min[c] ||
			value > plan->max[c])
			return 0;
	}
	return 1;
}

/* ---- the order ---- */

/* Words that stand for NULLs alone, and those next to them, which may stand for several values. */
#define LIMIT_LEAST 0
#define LIMIT_GREATEST UINT64_MAX

/*
 * A number that is the greater, the earlier the group comes by value w of the order; behind those
 * the group's number.
 */
GPUAGG_HD uint64_t
limit_word(const LimitPlan *plan, int w, int64_t g, const char *key)
{
	int64_t value;
	uint64_t word;

	if (w == plan->nsort)
		return ~(uint64_t) g;
	if (!limit_value(&plan->by[w], g, key, &value))
		return plan->nulls_first[w] ? LIMIT_GREATEST : LIMIT_LEAST;
	word = (uint64_t) value ^ (uint64_t) 1 << 63;
	word = plan->descending[w] ? word : ~word;
	return word == LIMIT_LEAST ? LIMIT_LEAST + 1 :
		word == LIMIT_GREATEST ? LIMIT_GREATEST - 1 :
								 word;
}

#define LIMIT_DIGIT_BITS 11
#define LIMIT_DIGITS (1 << LIMIT_DIGIT_BITS)
/* The most passes over a word: for its range, and its digits. */
#define LIMIT_PASSES (1 + (64 + LIMIT_DIGIT_BITS - 1) / LIMIT_DIGIT_BITS)
/* So many groups more than are wanted take less time than another pass; tests make it smaller. */
#ifndef LIMIT_SPARE
#define LIMIT_SPARE 64
#endif

typedef struct LimitSearch
{
	int64_t
		wanted; /* so many of those that tie with the bound as far as it is known, the greatest */
	int ended;
	int word;   /* that is searched; words before it are known */
	int ranged; /* its range is, and the bits above the `open` lowest ones */
	int open;
	uint32_t blocks;                   /* of a kernel that have ended */
	uint64_t bound[WIRE_MAX_SORT + 1]; /* bits that are not known are 0 */
	/* what a pass finds, of groups that tie: */
	uint64_t least, greatest;
	uint32_t digits[LIMIT_DIGITS];
} LimitSearch;

/* All is zero before it, and the digits before each pass. */
GPUAGG_HD void
limit_search_word(LimitSearch *search, int word)
{
	search->word = word;
	search->ranged = 0;
	search->open = 64;
	search->least = UINT64_MAX;
	search->greatest = 0;
}

/*
 * -1, 0, 1: the group is behind the bound, ties with it as far as it is known, or is before it;
 * *word: its present word.
 */
GPUAGG_HD int
limit_compare(const LimitPlan *plan, const LimitSearch *search, int64_t g, const char *key,
			  uint64_t *word)
{
	int open = search->open;
	uint64_t bound;

	for (int w = 0; w < search->word; w++)
	{
		*word = limit_word(plan, w, g, key);
		if (*word != search->bound[w])
			return *word > search->bound[w] ? 1 : -1;
	}
	*word = limit_word(plan, search->word, g, key);
	if (open == 64)
		return 0;
	bound = search->bound[search->word] >> open;
	return *word >> open > bound ? 1 : *word >> open < bound ? -1 : 0;
}

/*
 * The present word is known: goes to the next one, unless that would not tell ties apart, or they
 * are wanted.
 */
GPUAGG_HD void
limit_search_next(const LimitPlan *plan, LimitSearch *search)
{
	uint64_t bound = search->bound[search->word];

	if (search->word >= plan->nsort - (plan->ties != 0) || bound == LIMIT_LEAST + 1 ||
		bound == LIMIT_GREATEST - 1)
		search->ended = 1;
	else
		limit_search_word(search, search->word + 1);
}

/* After a pass for the range, which has found `least` and `greatest`. */
GPUAGG_HD void
limit_search_range(const LimitPlan *plan, LimitSearch *search)
{
	uint64_t differ = search->least ^ search->greatest;

	search->ranged = 1;
	for (search->open = 0; search->open < 64 && differ >> search->open != 0; search->open++)
		;
	search->bound[search->word] =
		search->open == 64 ? 0 : search->least >> search->open << search->open;
	if (search->open == 0)
		limit_search_next(plan, search);
}

/* A pass for digits counts these. */
GPUAGG_HD uint32_t
limit_digit(const LimitSearch *search, uint64_t word)
{
	int width = search->open < LIMIT_DIGIT_BITS ? search->open : LIMIT_DIGIT_BITS;

	return (uint32_t) (word >> (search->open - width)) & ((1u << width) - 1);
}

/*
 * After it: with `before` groups of greater digits, fewer than are wanted, and `tie` of this one,
 * the bound has this digit.
 */
GPUAGG_HD void
limit_search_digit(const LimitPlan *plan, LimitSearch *search, uint32_t digit, int64_t before,
				   int64_t tie)
{
	search->open -= search->open < LIMIT_DIGIT_BITS ? search->open : LIMIT_DIGIT_BITS;
	search->bound[search->word] |= (uint64_t) digit << search->open;
	search->wanted -= before;
	if (tie - search->wanted <= LIMIT_SPARE)
		search->ended = 1;
	else if (search->open == 0)
		limit_search_next(plan, search);
}

/* ---- plans ---- */

/* Do limit_word() or limit_passes() read packed keys? */
static inline int
limit_reads_keys(const LimitPlan *plan)
{
	int reads = 0;

	for (int w = 0; w < plan->nsort; w++)
		reads |= plan->by[w].monoid < 0;
	for (int c = 0; c < plan->nconditions; c++)
		reads |= plan->of[c].monoid < 0;
	return reads;
}

static inline LimitSource
limit_source(const WireQuery *q, const WireValue *value, const void *const *slots)
{
	LimitSource source = {.monoid = -1, .key = -1};

	if (value->slot >= 0)
	{
		source.monoid = q->slots[value->slot].monoid;
		source.mean = value->mean;
		source.states = slots[value->slot];
		source.counts = value->counted < 0 ? NULL : (const int64_t *) slots[value->counted];
		return source;
	}
	source.offset = q->keys[value->key].offset;
	source.width = q->keys[value->key].width;
	if (q->null_offset < q->key_bytes)
	{
		source.key = value->key;
		source.null_offset = (int) q->null_offset;
	}
	return source;
}

/* The limit over states at slots[slot]. */
static inline LimitPlan
limit_plan(const WireQuery *q, const WireLimit *limit, const void *const *slots)
{
	LimitPlan plan = {.count = (int64_t) (limit->count < INT64_MAX ? limit->count : INT64_MAX),
					  .ties = limit->ties != 0,
					  .nsort = limit->count > 0 ? (int) limit->nsort : 0,
					  .nconditions = (int) limit->nconditions};

	for (int w = 0; w < plan.nsort; w++)
	{
		plan.by[w] = limit_source(q, &limit->by[w].value, slots);
		plan.descending[w] = limit->by[w].descending != 0;
		plan.nulls_first[w] = limit->by[w].nulls_first != 0;
	}
	for (int c = 0; c < plan.nconditions; c++)
	{
		plan.of[c] = limit_source(q, &limit->conditions[c].value, slots);
		plan.min[c] = limit->conditions[c].min;
		plan.max[c] = limit->conditions[c].max;
	}
	return plan;
}

#endif /* GPUAGG_LIMIT_H */
