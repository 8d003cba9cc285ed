/*
 * limit.h
 *	  WireLimit: finds the groups that meet its conditions, and the first `count` of them in its
 * order.
 *
 * A group has a word of 64 bits for each value of the order.  A greater word means an earlier
 * group. If ties are not wanted, the last word is the group's number.  The search (LimitSearch)
 * finds the bound: the words of the last group that is wanted.  It starts at the highest bits of
 * the first word. Each pass over all groups determines one more digit: it counts the digits of the
 * groups that tie with the bits of the bound that are known.
 *
 * Plain C for gcc and nvcc.
 */
#ifndef GPUAGG_LIMIT_H
#define GPUAGG_LIMIT_H

#include <string.h>

#include "protocol.h"

/* Where to find a WireValue of each group. */
typedef struct LimitSource
{
	int monoid; /* operator of the states; -1: the value is in a packed key */
	int mean;   /* the value is state / count */
	const void *states;
	const int64_t
		*counts; /* for states: 0 means that the value is NULL; pointer NULL: it never is */
	int key;     /* number of its bit in the byte at null_offset; -1: there is no such byte */
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

/* Returns the low `width` bytes of a packed key, as a signed number. */
GPUAGG_HD int64_t
limit_key(const char *bytes, int width)
{
	uint64_t value = 0;

	for (int b = 0; b < width; b++)
		value |= (uint64_t) (unsigned char) bytes[b] << 8 * b;
	return (int64_t) (value << (64 - 8 * width)) >> (64 - 8 * width);
}

/* Returns group g's state as an integer with the same order.  wire_limit_takes(monoid) is true. */
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

/* Sets *value to group g's value.  `key` is its packed key, if needed.  Returns 0 for NULL. */
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

/*
 * Returns whether group g meets all conditions.  `key` is its packed key, if the plan reads keys.
 */
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

/* The words of NULL.  The words next to them may stand for two values each. */
#define LIMIT_LEAST 0
#define LIMIT_GREATEST UINT64_MAX

/*
 * Returns word w of group g: the greater, the earlier the group comes.  After the words of all
 * values there is one for the group's number.
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
/* The largest number of passes for a word: one for its range, and one for each digit. */
#define LIMIT_PASSES (1 + (64 + LIMIT_DIGIT_BITS - 1) / LIMIT_DIGIT_BITS)
/*
 * The search ends with up to so many groups too many: another pass would take longer.  Tests make
 * it smaller.
 */
#ifndef LIMIT_SPARE
#define LIMIT_SPARE 64
#endif

typedef struct LimitSearch
{
	int64_t wanted; /* number of wanted groups among those that tie with the known bits */
	int ended;
	int word;        /* the current word; words before it are known */
	int ranged;      /* the range of the current word is known */
	int open;        /* number of low bits of the current word that are not known */
	uint32_t blocks; /* of the running kernel that have ended */
	uint64_t bound[WIRE_MAX_SORT + 1]; /* unknown bits are 0 */
	/* results of a pass over the groups that tie: */
	uint64_t least, greatest;
	uint32_t digits[LIMIT_DIGITS];
} LimitSearch;

/*
 * Begins with a word.  Before the first call *search is all zeros; digits are zeros before each
 * pass.
 */
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
 * Compares a group with the known bits of the bound.  Returns -1 if the group comes after the
 * bound, 0 if it ties, 1 if it comes before.  If it ties, *word is its current word.
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
 * The current word is known: begins with the next one.  Ends the search if ties are wanted, or if
 * the current word stands for two values, so that the next word cannot order the ties.
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

/* Called after the pass for the range, which has found `least` and `greatest`. */
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

/* Returns the digit of the word that a pass counts. */
GPUAGG_HD uint32_t
limit_digit(const LimitSearch *search, uint64_t word)
{
	int width = search->open < LIMIT_DIGIT_BITS ? search->open : LIMIT_DIGIT_BITS;

	return (uint32_t) (word >> (search->open - width)) & ((1u << width) - 1);
}

/*
 * Called after a pass for digits, with the digit of the bound: `before` groups have greater digits,
 * fewer than are wanted, and `tie` groups have this digit.
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

/* Returns whether limit_word() or limit_passes() read packed keys. */
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

/* Returns where to find a value of each group, whose states are at slots[slot]. */
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

/* Makes the plan of a limit over the states at slots[slot]. */
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
