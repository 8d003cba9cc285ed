/*
 * select.h
 *	  Values of given ranks among many, without sorting them: for percentiles.
 *
 * Values are 64-bit codes that compare as they do (select_code_i64, select_code_f64).  A pass
 * counts codes by the part of their range that they are in, and only the parts with a wanted rank
 * are looked at again: most values are read three times, whatever their order was.  Codes of a part
 * differ in ten bits less than before, so that no data make it take more than seven rounds.  Where
 * many codes are equal, a single pass counts each of them instead.
 *
 * Plain C for gcc and nvcc; needs nothing of PostgreSQL.
 */
#ifndef GPUAGG_SELECT_H
#define GPUAGG_SELECT_H

#include <stdint.h>
#include <string.h>

#include "operators/monoid.h"

/* Parts that a range is divided into, and the number of values that are sorted instead. */
#define SELECT_PARTS 1024
#define SELECT_SORTED 24
/*
 * Codes that are worth a try to count each different one; places for these, with a code and its
 * number; how far a code may be from its own.
 */
#define SELECT_COUNTED 4096
#define SELECT_PLACE_BITS 10
#define SELECT_PROBES 8

/* What is called before each so many codes, for callers that must look for interrupts. */
#ifndef SELECT_CHECK
#define SELECT_CHECK() ((void) 0)
#endif
#define SELECT_STRIDE ((int64_t) 1 << 20)
#define SELECT_FOR(k, from, n) \
	for (int64_t k = (from), k##_end = 0; k < (n);) \
		for (SELECT_CHECK(), k##_end = k + SELECT_STRIDE < (n) ? k + SELECT_STRIDE : (n); \
			 k < k##_end; k++)

/*
 * Unsigned codes of integers; and of doubles in PostgreSQL's order, where NaN is the greatest: -0
 * before 0.
 */
GPUAGG_HD uint64_t
select_code_i64(int64_t x)
{
	return (uint64_t) x ^ UINT64_C(0x8000000000000000);
}

GPUAGG_HD int64_t
select_i64_of(uint64_t code)
{
	return (int64_t) (code ^ UINT64_C(0x8000000000000000));
}

GPUAGG_HD uint64_t
select_code_f64(double x)
{
	return select_code_i64(gpuagg_f64_code(x));
}

GPUAGG_HD double
select_f64_of(uint64_t code)
{
	return gpuagg_code_f64(select_i64_of(code));
}

/* Sorts a few codes. */
GPUAGG_HD void
select_sort_few(uint64_t *codes, int64_t n)
{
	for (int64_t i = 1; i < n; i++)
	{
		uint64_t x = codes[i];
		int64_t j = i;

		for (; j > 0 && codes[j - 1] > x; j--)
			codes[j] = codes[j - 1];
		codes[j] = x;
	}
}

/* A code, and how often it is there. */
typedef struct SelectCount
{
	uint64_t code;
	int64_t count;
} SelectCount;

/*
 * As select_ranks, of at least SELECT_COUNTED codes, which are left as they are.  Returns 0, soon
 * as a rule, if more than a few are different, or do not fit into the table: as places are near, no
 * data make it slow.
 */
static inline int
select_by_counts(const uint64_t *codes, uint64_t *spare, int64_t n, const int64_t *ranks,
				 int64_t base, int m, uint64_t *out)
{
	SelectCount *table = (SelectCount *) spare;
	int64_t most = n / 64 < 256 ? n / 64 : 256;
	int64_t rank = base;
	int found = 0;

	memset(table, 0, sizeof(SelectCount) << SELECT_PLACE_BITS);
	SELECT_FOR(k, 0, n)
	{
		uint64_t x = codes[k];
		uint64_t p = (x * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - SELECT_PLACE_BITS);
		int probes = 0;

		while (table[p].count != 0 && table[p].code != x)
		{
			if (++probes == SELECT_PROBES)
				return 0;
			p = (p + 1) & ((1 << SELECT_PLACE_BITS) - 1);
		}
		if (table[p].count++ == 0)
		{
			if (++found > most)
				return 0;
			table[p].code = x;
		}
	}
	/* in order, at the table's beginning */
	found = 0;
	for (int p = 0; p < 1 << SELECT_PLACE_BITS; p++)
	{
		SelectCount one = table[p];
		int to = found;

		if (one.count == 0)
			continue;
		for (; to > 0 && table[to - 1].code > one.code; to--)
			table[to] = table[to - 1];
		table[to] = one;
		found++;
	}
	for (int i = 0, at = 0; i < m; i++)
	{
		while (ranks[i] >= rank + table[at].count)
			rank += table[at++].count;
		out[i] = table[at].code;
	}
	return 1;
}

/*
 * out[i] = the code of rank ranks[i] - base, counted from 0, among n codes, for m ranks in
 * ascending order, each less than n.  `codes` and `spare`, which has room for n, are overwritten.
 */
static inline void
select_ranks(uint64_t *codes, uint64_t *spare, int64_t n, const int64_t *ranks, int64_t base, int m,
			 uint64_t *out)
{
	int64_t at[SELECT_PARTS];    /* numbers of codes; then where they are collected */
	int64_t first[SELECT_PARTS]; /* rank of the first one */
	uint8_t wanted[SELECT_PARTS];
	uint64_t min = codes[0], max = codes[0];
	int64_t sum = base, collected = 0;
	int parts = 16, shift = 0, i = 0;

	if (n <= SELECT_SORTED)
	{
		select_sort_few(codes, n);
		for (; i < m; i++)
			out[i] = codes[ranks[i] - base];
		return;
	}
	if (n >= SELECT_COUNTED && select_by_counts(codes, spare, n, ranks, base, m, out))
		return;
	SELECT_FOR(k, 1, n)
	{
		min = codes[k] < min ? codes[k] : min;
		max = codes[k] > max ? codes[k] : max;
	}
	if (min == max)
	{
		for (; i < m; i++)
			out[i] = min;
		return;
	}
	while (parts < SELECT_PARTS && parts * 4 < n)
		parts *= 2;
	while ((max - min) >> shift >= (uint64_t) parts)
		shift++;
	memset(at, 0, parts * sizeof(at[0]));
	SELECT_FOR(k, 0, n)
	at[(codes[k] - min) >> shift]++;

	for (int p = 0; p < parts; p++)
	{
		int64_t count = at[p];

		first[p] = sum;
		sum += count;
		wanted[p] = i < m && ranks[i] < sum;
		at[p] = collected;
		collected += wanted[p] ? count : 0;
		while (i < m && ranks[i] < sum)
			i++;
	}
	/*
	 * codes that are not collected go to the place behind, one over the other: there are some, if
	 * it is used
	 */
	for (int p = 0; p < parts; p++)
		if (!wanted[p])
			at[p] = collected;
	SELECT_FOR(k, 0, n)
	{
		uint64_t x = codes[k];
		uint64_t p = (x - min) >> shift;

		spare[at[p]] = x;
		at[p] += wanted[p];
	}

	collected = 0;
	i = 0;
	for (int p = 0; p < parts; p++)
	{
		int from = i;
		int64_t count;

		if (!wanted[p])
			continue;
		count = at[p] - collected;
		while (i < m && ranks[i] < first[p] + count)
			i++;
		select_ranks(spare + collected, codes + collected, count, ranks + from, first[p], i - from,
					 out + from);
		collected += count;
	}
}

#endif /* GPUAGG_SELECT_H */
