/*
 * limit.h
 *	  WireLimit: which groups meet its conditions, and their order by a state or a key.
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
	int			monoid;			/* of the states; -1: in a packed key */
	int			mean;
	const void *states;
	const int64_t *counts;		/* NULL: the value never is; of states */
	int			key;			/* its bit in the byte at null_offset; -1: there is no such byte */
	int			null_offset;
	int			offset;
	int			width;
} LimitSource;

typedef struct LimitPlan
{
	LimitSource by;
	int			descending;
	int			nulls_first;
	int64_t		count;
	int			nconditions;
	LimitSource of[WIRE_MAX_CONDITIONS];
	int64_t		min[WIRE_MAX_CONDITIONS],
				max[WIRE_MAX_CONDITIONS];
} LimitPlan;

/* The low `width` bytes of a packed key, as a signed number. */
GPUAGG_HD int64_t
limit_key(const char *bytes, int width)
{
	uint64_t	value = 0;

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
		*value = gpuagg_f64_code((((const double *) source->states)[g] + 0.0) / (double) source->counts[g] + 0.0);
	else
		*value = limit_state(source->monoid, source->states, g);
	return 1;
}

GPUAGG_HD int
limit_passes(const LimitPlan *plan, int64_t g, const char *key)
{
	for (int c = 0; c < plan->nconditions; c++)
	{
		int64_t		value;

		if (!limit_value(&plan->of[c], g, key, &value) || value < plan->min[c] || value > plan->max[c])
			return 0;
	}
	return 1;
}

/* A number that is the greater, the earlier the group comes; NULL, and the first or last value, may have the same. */
GPUAGG_HD uint64_t
limit_code(const LimitPlan *plan, int64_t g, const char *key)
{
	int64_t		value;
	uint64_t	ascending;

	if (!limit_value(&plan->by, g, key, &value))
		return plan->nulls_first ? UINT64_MAX : 0;
	ascending = (uint64_t) value ^ (uint64_t) 1 << 63;
	return plan->descending ? ascending : ~ascending;
}

/* Do limit_code() or limit_passes() read packed keys? */
static inline int
limit_reads_keys(const LimitPlan *plan)
{
	int			reads = plan->count > 0 && plan->by.monoid < 0;

	for (int c = 0; c < plan->nconditions; c++)
		reads |= plan->of[c].monoid < 0;
	return reads;
}

static inline LimitSource
limit_source(const WireQuery *q, const WireValue *value, const void *const *slots)
{
	LimitSource source = {.monoid = -1,.key = -1};

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
	LimitPlan	plan = {.descending = limit->descending != 0,.nulls_first = limit->nulls_first != 0,
		.count = (int64_t) (limit->count < INT64_MAX ? limit->count : INT64_MAX),.nconditions = (int) limit->nconditions};

	if (plan.count > 0)
		plan.by = limit_source(q, &limit->by, slots);
	for (int c = 0; c < plan.nconditions; c++)
	{
		plan.of[c] = limit_source(q, &limit->conditions[c].value, slots);
		plan.min[c] = limit->conditions[c].min;
		plan.max[c] = limit->conditions[c].max;
	}
	return plan;
}

#endif							/* GPUAGG_LIMIT_H */
