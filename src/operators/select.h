/*
 * select.h
 *	  Finds the values of given ranks among many values without sorting them; for percentiles.
 *
 * Values are 64-bit codes that compare like the values (select_code_i64, select_code_f64).  A pass
 * divides the range of the codes into buckets and counts the codes of each bucket.  Only buckets
 * with a wanted rank are processed further, in the same way.  Most values are read three times,
 * whatever their order is.  With each pass the codes of a bucket have ten bits fewer in which they
 * differ, so no data need more than seven passes.  If many codes are equal, a single pass counts
 * the occurrences of each distinct code instead.
 *
 * Plain C for gcc and nvcc, without PostgreSQL.
 */
#ifndef GPUAGG_SELECT_H
#define GPUAGG_SELECT_H

#include <stdint.h>
#include <string.h>

#include "operators/monoid.h"

/* Number of buckets of a range; and how many codes are sorted instead. */
#define SELECT_BUCKETS 1024
#define SELECT_SORTED 24
/*
 * From SELECT_COUNTED codes on, select_by_counts is tried first.  Its hash table has
 * 2^SELECT_SLOT_BITS slots.  A code is at most SELECT_PROBES - 1 slots behind its first one.
 */
#define SELECT_COUNTED 4096
#define SELECT_SLOT_BITS 10
#define SELECT_PROBES 8

/* Called before each SELECT_STRIDE codes, for callers that must check for interrupts. */
#ifndef SELECT_CHECK
#define SELECT_CHECK() ((void) 0)
#endif
#define SELECT_STRIDE ((int64_t) 1 << 20)
#define SELECT_FOR(k, from, n) \
	for (int64_t k = (from), k##_end = 0; k < (n);) \
		for (SELECT_CHECK(), k##_end = k + SELECT_STRIDE < (n) ? k + SELECT_STRIDE : (n); \
			 k < k##_end; k++)

/*
 * Return an unsigned code that compares like the integer or the double (in PostgreSQL's order: -0
 * before 0, NaN last).  select_i64_of() and select_f64_of() return the value of a
 * code.
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

/* Sorts n codes in ascending order, by insertion; for a few codes. */
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

/* A distinct code and the number of its occurrences. */
typedef struct SelectCount
{
	uint64_t code;
	int64_t count;
} SelectCount;

/*
 * Does what select_ranks does, for at least SELECT_COUNTED codes, and leaves `codes` unchanged.
 * Returns 0 if there are too many distinct codes for the table.  It gives up early: it makes at
 * most SELECT_PROBES probes per code, so no data make it slow.
 */
static inline int
select_by_counts(const uint64_t *codes, uint64_t *spare, int64_t n, const int64_t *ranks,
				 int64_t base, int m, uint64_t *out)
{
	SelectCount *table = (SelectCount *) spare;
	int64_t most = n / 64 < 256 ? n / 64 : 256;
	int64_t rank = base;
	int found = 0;

	memset(table, 0, sizeof(SelectCount) << SELECT_SLOT_BITS);
	SELECT_FOR(k, 0, n)
	{
		uint64_t x = codes[k];
		uint64_t p = (x * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - SELECT_SLOT_BITS);
		int probes = 0;

		while (table[p].count != 0 && table[p].code != x)
		{
			if (++probes == SELECT_PROBES)
				return 0;
			p = (p + 1) & ((1 << SELECT_SLOT_BITS) - 1);
		}
		if (table[p].count++ == 0)
		{
			if (++found > most)
				return 0;
			table[p].code = x;
		}
	}
	/* sort the distinct codes to the front of the table */
	found = 0;
	for (int p = 0; p < 1 << SELECT_SLOT_BITS; p++)
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
 * Sets out[i] to the code of rank ranks[i] - base (from 0) among n codes.  The m ranks are in
 * ascending order, and each is below base + n.  Overwrites `codes`, and `spare`, which has room for
 * n codes.
 */
static inline void
select_ranks(uint64_t *codes, uint64_t *spare, int64_t n, const int64_t *ranks, int64_t base, int m,
			 uint64_t *out)
{
	int64_t at[SELECT_BUCKETS]; /* [bucket] number of codes; then where its codes are collected */
	int64_t first[SELECT_BUCKETS]; /* [bucket] rank of its first code */
	uint8_t wanted[SELECT_BUCKETS];
	uint64_t min = codes[0], max = codes[0];
	int64_t sum = base, collected = 0;
	int buckets = 16, shift = 0, i = 0;

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
	while (buckets < SELECT_BUCKETS && buckets * 4 < n)
		buckets *= 2;
	while ((max - min) >> shift >= (uint64_t) buckets)
		shift++;
	memset(at, 0, buckets * sizeof(at[0]));
	SELECT_FOR(k, 0, n)
	at[(codes[k] - min) >> shift]++;

	for (int p = 0; p < buckets; p++)
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
	 * All other codes are written to the slot after the collected ones, one over the other.  There
	 * is such a slot if there are such codes.
	 */
	for (int p = 0; p < buckets; p++)
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
	for (int p = 0; p < buckets; p++)
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
