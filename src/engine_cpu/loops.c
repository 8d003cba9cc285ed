/*
 * loops.c
 *	  The loops over rows and states, one set for each monoid of the list.
 *
 * Rows are processed in input order with one state for each group, so that float sums equal those
 * of core's serial aggregation bit for bit.
 */
#include "postgres.h"

#include <math.h>

#include "engine_cpu/engine_cpu_internal.h"

const InputKind monoid_input_kind[MONOID_COUNT_OF_IDS] = {
#define MONOID(NAME, name, input_t, state_t, comm, atomic, text) INPUT_##input_t,
#include "operators/monoid_list.h"
#undef MONOID
};

/* MONOID_COUNT does not read its input, which may be NULL. */
#define INPUT_AT(NAME, input_t, i) (MONOID_##NAME == MONOID_COUNT ? (input_t){0} : x[i])

/* Monoids without errors return a constant 0, which the compiler removes. */
#define MONOID(NAME, name, input_t, state_t, comm, atomic, text) \
	static int name##_rows(char *base, const uint32 *at, const void *input, int n) \
	{ \
		const input_t *x = (const input_t *) input; \
		int errors = 0; \
		for (int i = 0; i < n; i++) \
		{ \
			state_t *state = (state_t *) (base + (size_t) at[i] * 4); \
			state_t a = *state; \
			state_t r = name##_step(a, INPUT_AT(NAME, input_t, i)); \
			errors |= name##_error(a, name##_lift(INPUT_AT(NAME, input_t, i)), r); \
			*state = r; \
		} \
		return errors; \
	} \
	static int name##_runs(char *base, const uint32 *at, const uint32 *start, int nruns, \
						   const void *input) \
	{ \
		const input_t *x = (const input_t *) input; \
		int errors = 0; \
		for (int r = 0; r < nruns; r++) \
		{ \
			state_t *state; \
			state_t a; \
			uint32 end = start[r + 1]; \
			if (at[r] == NO_GROUP) \
				continue; \
			state = (state_t *) (base + (size_t) at[r] * 4); \
			a = *state; \
			for (uint32 i = start[r]; i < end; i++) \
			{ \
				state_t b = name##_step(a, INPUT_AT(NAME, input_t, i)); \
				errors |= name##_error(a, name##_lift(INPUT_AT(NAME, input_t, i)), b); \
				a = b; \
			} \
			*state = a; \
		} \
		return errors; \
	} \
	static int name##_combine_all(char *to, const char *from, int n) \
	{ \
		state_t *a = (state_t *) to; \
		const state_t *b = (const state_t *) from; \
		int errors = 0; \
		for (int i = 0; i < n; i++) \
		{ \
			state_t r = name##_combine(a[i], b[i]); \
			errors |= name##_error(a[i], b[i], r); \
			a[i] = r; \
		} \
		return errors; \
	} \
	static int name##_combine_rows(char *base, const uint32 *at, const char *from, size_t stride, \
								   int n) \
	{ \
		int errors = 0; \
		for (int i = 0; i < n; i++, from += stride) \
		{ \
			state_t *a = (state_t *) (base + (size_t) at[i] * 4); \
			const state_t *b = (const state_t *) from; \
			state_t r; \
			if (at[i] == NO_GROUP) \
				continue; \
			r = name##_combine(*a, *b); \
			errors |= name##_error(*a, *b, r); \
			*a = r; \
		} \
		return errors; \
	}
#include "operators/monoid_list.h"
#undef MONOID

typedef struct Loops
{
	int (*rows)(char *base, const uint32 *at, const void *input, int n);
	int (*runs)(char *base, const uint32 *at, const uint32 *start, int nruns, const void *input);
	int (*combine)(char *to, const char *from, int n);
	int (*combine_rows)(char *base, const uint32 *at, const char *from, size_t stride, int n);
} Loops;

static const Loops loops[MONOID_COUNT_OF_IDS] = {
#define MONOID(NAME, name, input_t, state_t, comm, atomic, text) \
	{name##_rows, name##_runs, name##_combine_all, name##_combine_rows},
#include "operators/monoid_list.h"
#undef MONOID
};

int
loop_rows(MonoidId id, char *base, const uint32 *at, const void *input, int n)
{
	return loops[id].rows(base, at, input, n);
}

/* ---- sums of runs of integers --------------------------------------------- */

/* Arrays are prefetched this far ahead, across pages. */
#define PREFETCH_BYTES 4096
/* Values of a run that are added up between prefetches. */
#define SUM_BLOCK 256

/* Prefetches what lies PREFETCH_BYTES beyond a block of a column. */
static inline void
prefetch_beyond(const void *block, size_t bytes)
{
	for (size_t at = 0; at < bytes; at += CACHE_LINE)
		__builtin_prefetch((const char *) block + PREFETCH_BYTES + at);
}

/* Values of 16 bits are added up in 32 bits within a block, where twice as many fit in a vector. */
#define SUM_VALUES(value_t, block_t) \
	static int64 sum_##value_t##_values(const value_t *x, uint32 n) \
	{ \
		int64 sum = 0; \
		uint32 i = 0; \
		for (; i + SUM_BLOCK <= n; i += SUM_BLOCK) \
		{ \
			const value_t *from = x + i; \
			block_t block = 0; \
			prefetch_beyond(from, SUM_BLOCK * sizeof(value_t)); \
			for (int k = 0; k < SUM_BLOCK; k++) \
				block += from[k]; \
			sum += block; \
		} \
		for (; i < n; i++) \
			sum += x[i]; \
		return sum; \
	}
SUM_VALUES(uint8, int32)
SUM_VALUES(uint16, int32)
SUM_VALUES(int16, int32)
SUM_VALUES(uint32, int64)
SUM_VALUES(int32, int64)

/*
 * Returns the sum of n values.  Their halves are added up apart, in 64 bits, which takes vectors.
 * They are made positive by 2^63 that each has more.
 */
static gpuagg_i128
sum_wide_values(const int64 *x, uint32 n)
{
	uint64 low = 0;
	uint64 high = 0;

	for (uint32 from = 0; from < n; from += SUM_BLOCK)
	{
		const int64 *block = x + from;
		int size = Min(n - from, SUM_BLOCK);

		prefetch_beyond(block, size * sizeof(int64));
		for (int i = 0; i < size; i++)
		{
			uint64 bits = (uint64) block[i] ^ (uint64) PG_INT64_MIN;

			low += (uint32) bits;
			high += bits >> 32;
		}
	}
	return ((gpuagg_i128) high << 32) + low - ((gpuagg_i128) n << 63);
}

static int
sum_wide_runs(char *base, const uint32 *at, const uint32 *start, int nruns, const int64 *x)
{
	for (int r = 0; r < nruns; r++)
		if (at[r] != NO_GROUP)
			*(gpuagg_i128 *) (base + (size_t) at[r] * 4) +=
				sum_wide_values(x + start[r], start[r + 1] - start[r]);
	return 0;
}

int
loop_runs(MonoidId id, char *base, const uint32 *at, const uint32 *start, int nruns,
		  const void *input)
{
	if (id == MONOID_SUM_I128)
		return sum_wide_runs(base, at, start, nruns, input);
	return loops[id].runs(base, at, start, nruns, input);
}

/* ---- narrow integers ------------------------------------------------------ */

/*
 * The offsets of a run are added up in 64 bits first. They cannot overflow: there are fewer than
 * 2^31 of them, each of 32 bits. A 64-bit sum that wraps around gives the same result as adding the
 * rows one by one.
 */
#define NARROW_LOOPS(name, input_t, state_t, value_t) \
	static int name##_rows_##value_t(char *base, const uint32 *at, const void *values, \
									 int64 least, int n, char *counts) \
	{ \
		const value_t *x = (const value_t *) values; \
		int errors = 0; \
		for (int i = 0; i < n; i++) \
		{ \
			state_t *state = (state_t *) (base + (size_t) at[i] * 4); \
			state_t a = *state; \
			input_t in = least + x[i]; \
			state_t r = name##_step(a, in); \
			__builtin_prefetch((const char *) &x[i] + PREFETCH_BYTES); \
			errors |= name##_error(a, name##_lift(in), r); \
			*state = r; \
			if (counts) \
				++*(int64 *) (counts + (size_t) at[i] * 4); \
		} \
		return errors; \
	} \
	static int name##_runs_##value_t(char *base, const uint32 *at, const uint32 *start, int nruns, \
									 const void *values, int64 least) \
	{ \
		const value_t *x = (const value_t *) values; \
		int errors = 0; \
		for (int r = 0; r < nruns; r++) \
		{ \
			state_t *state; \
			state_t run; \
			state_t sum; \
			int64 offsets; \
			if (at[r] == NO_GROUP) \
				continue; \
			state = (state_t *) (base + (size_t) at[r] * 4); \
			offsets = sum_##value_t##_values(x + start[r], start[r + 1] - start[r]); \
			run = (state_t) ((gpuagg_i128) least * (start[r + 1] - start[r]) + offsets); \
			sum = name##_combine(*state, run); \
			errors |= name##_error(*state, run, sum); \
			*state = sum; \
		} \
		return errors; \
	}
#define X(value_t) \
	NARROW_LOOPS(sum_i64, int64, int64, value_t) \
	NARROW_LOOPS(sum_i128, int64, gpuagg_i128, value_t) \
	NARROW_LOOPS(sum_dec, gpuagg_i128, gpuagg_i128, value_t)
NARROW_TYPES(X)
#undef X

typedef struct NarrowLoops
{
	int (*rows)(char *base, const uint32 *at, const void *values, int64 least, int n, char *counts);
	int (*runs)(char *base, const uint32 *at, const uint32 *start, int nruns, const void *values,
				int64 least);
} NarrowLoops;

static const NarrowLoops narrow_loops[MONOID_COUNT_OF_IDS][NARROW_COUNT] = {
#define X(value_t) \
	[MONOID_SUM_I64][NARROW_##value_t] = {sum_i64_rows_##value_t, sum_i64_runs_##value_t}, \
	[MONOID_SUM_I128][NARROW_##value_t] = {sum_i128_rows_##value_t, sum_i128_runs_##value_t}, \
	[MONOID_SUM_DEC][NARROW_##value_t] = {sum_dec_rows_##value_t, sum_dec_runs_##value_t},
	NARROW_TYPES(X)
#undef X
};

bool
loop_takes_narrow(MonoidId id)
{
	return narrow_loops[id][0].rows != NULL;
}

int
loop_narrow_rows(MonoidId id, char *base, const uint32 *at, const NarrowInput *input, int n,
				 char *counts)
{
	return narrow_loops[id][input->type].rows(base, at, input->values, input->base, n, counts);
}

int
loop_narrow_runs(MonoidId id, char *base, const uint32 *at, const uint32 *start, int nruns,
				 const NarrowInput *input)
{
	return narrow_loops[id][input->type].runs(base, at, start, nruns, input->values, input->base);
}

/* ---- floats --------------------------------------------------------------- */

#define LINE_DOUBLES 8 /* doubles in a cache line of the processor */
#define PREFETCH_DOUBLES (PREFETCH_BYTES / sizeof(double))

bool
loop_all_overflow_safe(const double *x, int n)
{
	uint64 any = 0;

	for (int from = 0; from < n; from += LINE_DOUBLES)
	{
		__builtin_prefetch(&x[from + PREFETCH_DOUBLES]);
		/* exponents of 0x500 and above have bit 62 set, and bit 61 or 60 */
		for (int i = from; i < Min(from + LINE_DOUBLES, n); i++)
		{
			uint64 bits;

			memcpy(&bits, &x[i], sizeof(bits));
			any |= bits & (bits << 1 | bits << 2);
		}
	}
	return (any >> 62 & 1) == 0;
}

/* Returns the sum plus x[0] .. x[n-1], added one after the other. */
static double
add_doubles(double sum, const double *x, int n)
{
	int i = 0;

	for (; i + LINE_DOUBLES <= n; i += LINE_DOUBLES)
	{
		__builtin_prefetch(&x[i + PREFETCH_DOUBLES]);
		for (int k = 0; k < LINE_DOUBLES; k++)
			sum += x[i + k];
	}
	for (; i < n; i++)
		sum += x[i];
	return sum;
}

int
loop_sum_runs(char *base, const uint32 *at, const uint32 *start, int nruns, const double *x)
{
	int errors = 0;

	for (int r = 0; r < nruns; r++)
	{
		double *state;
		double sum;

		if (at[r] == NO_GROUP)
			continue;
		state = (double *) (base + (size_t) at[r] * 4);
		sum = add_doubles(*state, &x[start[r]], start[r + 1] - start[r]);
		/* a sum that is infinite or NaN stays so: the loop with tests finds the error */
		if (likely(isfinite(sum)))
			*state = sum;
		else
			errors |= loop_runs(MONOID_SUM_F64, base, &at[r], &start[r], 1, x);
	}
	return errors;
}

void
loop_mean_rows(char *base, const uint32 *at, const double *x, int n, bool count, char *counts)
{
	for (int i = 0; i < n; i++)
	{
		gpuagg_accum *state = (gpuagg_accum *) (base + (size_t) at[i] * 4);

		__builtin_prefetch(&x[i + PREFETCH_DOUBLES]);
		if (count)
			state->n += 1.0;
		if (counts)
			++*(int64 *) (counts + (size_t) at[i] * 4);
		state->sx += x[i];
	}
}

void
loop_mean_runs(char *base, const uint32 *at, const uint32 *start, int nruns, const double *x,
			   bool count)
{
	for (int r = 0; r < nruns; r++)
	{
		gpuagg_accum *state;

		if (at[r] == NO_GROUP)
			continue;
		state = (gpuagg_accum *) (base + (size_t) at[r] * 4);
		state->sx = add_doubles(state->sx, &x[start[r]], start[r + 1] - start[r]);
		if (count)
			state->n += start[r + 1] - start[r];
	}
}

int
loop_combine(MonoidId id, char *to, const char *from, int n)
{
	return loops[id].combine(to, from, n);
}

int
loop_combine_rows(MonoidId id, char *base, const uint32 *at, const char *from, size_t stride, int n)
{
	return loops[id].combine_rows(base, at, from, stride, n);
}
