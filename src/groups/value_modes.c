/*
 * value_modes.c
 *	  The most frequent of a group's values; see value_store.h.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "common/interruptible.h"
#include "groups/value_store_internal.h"
#include "operators/select.h"

/*
 * The mode is found by counting if the range of codes is at most this many times their number; else
 * by sorting.
 */
#define COUNTED_RANGE 4

/* Returns a code that is the same for all values equal to this code's value. */
static inline uint64
code_class(const ValueStore *store, uint64 code)
{
	if (!store->spec->coded)
		return store->class_of[code];
	/* -0 = 0 */
	return column_is_float(store->col.type) && code == select_code_f64(-0.0) ?
		select_code_f64(0.0) :
		code;
}

#define ST_SORT sort_codes
#define ST_ELEMENT_TYPE uint64
#define ST_COMPARE(a, b) ((*(a) > *(b)) - (*(a) < *(b)))
#define ST_SCOPE static
#define ST_CHECK_FOR_INTERRUPTS
#define ST_DEFINE
#include "lib/sort_template.h"

/* Fewer codes are sorted by comparisons; others digit by digit, beginning with the last one. */
#define RADIX_CODES 4096
#define DIGIT_BITS 8
#define DIGIT_VALUES (1 << DIGIT_BITS)
#define CODE_DIGITS (64 / DIGIT_BITS)

/* Returns digit d of a code; digit 0 is the least significant one. */
static inline int
code_digit(uint64 code, int d)
{
	return (code >> (d * DIGIT_BITS)) & (DIGIT_VALUES - 1);
}

/* Ends the current run: if it is the longest so far, its value becomes the mode. */
static inline void
end_run(ValueRuns *runs)
{
	if (runs->n > runs->best[0])
	{
		runs->best[0] = runs->n;
		runs->mode[0] = runs->code;
	}
	if (runs->n > 0 && runs->n >= runs->best[1])
	{
		runs->best[1] = runs->n;
		runs->mode[1] = runs->code;
	}
}

void
values_add_run(const ValueStore *store, ValueRuns *runs, uint64 code, int64 n)
{
	if (runs->n > 0 && code_class(store, runs->code) == code_class(store, code))
	{
		runs->n += n;
		return;
	}
	end_run(runs);
	runs->code = code;
	runs->n = n;
}

void
values_sort_codes(uint64 *codes, uint64 *spare, int64 n)
{
	int64 counts[CODE_DIGITS][DIGIT_VALUES] = {0};
	uint64 *from = codes, *to = spare;

	if (n < RADIX_CODES)
	{
		sort_codes(codes, n);
		return;
	}
	INTERRUPTIBLE_FOR (i, 0, n)
		for (int d = 0; d < CODE_DIGITS; d++)
			counts[d][code_digit(codes[i], d)]++;
	for (int d = 0; d < CODE_DIGITS; d++)
	{
		int64 *at = counts[d];
		int64 before = 0;
		uint64 *sorted = to;

		/* all codes have the same digit */
		if (at[code_digit(codes[0], d)] == n)
			continue;
		for (int v = 0; v < DIGIT_VALUES; v++)
		{
			int64 count = at[v];

			at[v] = before;
			before += count;
		}
		INTERRUPTIBLE_FOR (i, 0, n)
			to[at[code_digit(from[i], d)]++] = from[i];
		to = from;
		from = sorted;
	}
	if (from != codes)
		INTERRUPTIBLE_FOR (i, 0, n)
			codes[i] = from[i];
}

void
values_end_runs(const ValueStore *store, ValueRuns *runs, Datum *mode)
{
	end_run(runs);
	mode[0] = values_decode(store, runs->mode[0]);
	mode[1] = values_decode(store, runs->mode[1]);
}

void
values_find_mode(ValueStore *store, uint64 *codes, int64 n, Datum *mode)
{
	ValueRuns runs = {0};
	uint64 min = codes[0], max = codes[0];

	INTERRUPTIBLE_FOR (i, 1, n)
	{
		min = Min(min, codes[i]);
		max = Max(max, codes[i]);
	}
	if (n < PG_UINT32_MAX && max - min < (uint64) n * COUNTED_RANGE)
	{
		uint32 *counts = MemoryContextAllocExtended(
			store->value_cxt, (max - min + 1) * sizeof(uint32), MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);

		INTERRUPTIBLE_FOR (i, 0, n)
			counts[codes[i] - min]++;
		INTERRUPTIBLE_FOR (c, 0, (int64) (max - min) + 1)
			if (counts[c] > 0)
				values_add_run(store, &runs, min + c, counts[c]);
		pfree(counts);
	}
	else
	{
		values_sort_codes(codes, store->spare, n);
		INTERRUPTIBLE_FOR (i, 0, n)
			values_add_run(store, &runs, codes[i], 1);
	}
	values_end_runs(store, &runs, mode);
}
