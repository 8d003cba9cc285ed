/*
 * select.h
 *	  Values of given ranks among many, without sorting them: for percentiles.
 *
 * Values are 64-bit codes that compare as they do (select_code_i64, select_code_f64).  A pass counts codes
 * by the part of their range that they are in, and only the parts with a wanted rank are looked at again: most
 * values are read three times, whatever their order was.  Codes of a part differ in ten bits less than
 * before, so that no data make it take more than seven rounds.
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

/* Unsigned codes of integers; and of doubles in PostgreSQL's order, where NaN is the greatest: -0 before 0. */
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
		uint64_t	x = codes[i];
		int64_t		j = i;

		for (; j > 0 && codes[j - 1] > x; j--)
			codes[j] = codes[j - 1];
		codes[j] = x;
	}
}

/*
 * out[i] = the code of rank ranks[i] - base, counted from 0, among n codes, for m ranks in ascending order, each
 * less than n.  `codes` and `spare`, which has room for n, are overwritten.
 */
static inline void
select_ranks(uint64_t *codes, uint64_t *spare, int64_t n, const int64_t *ranks, int64_t base, int m, uint64_t *out)
{
	int64_t		at[SELECT_PARTS];	/* numbers of codes; then where they are collected */
	int64_t		first[SELECT_PARTS];	/* rank of the first one */
	uint8_t		wanted[SELECT_PARTS];
	uint64_t	min = codes[0],
				max = codes[0];
	int64_t		sum = base,
				collected = 0;
	int			parts = 16,
				shift = 0,
				i = 0;

	if (n <= SELECT_SORTED)
	{
		select_sort_few(codes, n);
		for (; i < m; i++)
			out[i] = codes[ranks[i] - base];
		return;
	}
	for (int64_t k = 1; k < n; k++)
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
	for (int64_t k = 0; k < n; k++)
		at[(codes[k] - min) >> shift]++;

	for (int p = 0; p < parts; p++)
	{
		int64_t		count = at[p];

		first[p] = sum;
		sum += count;
		wanted[p] = i < m && ranks[i] < sum;
		at[p] = collected;
		collected += wanted[p] ? count : 0;
		while (i < m && ranks[i] < sum)
			i++;
	}
	/* codes that are not collected go to the place behind, one over the other: there are some, if it is used */
	for (int p = 0; p < parts; p++)
		if (!wanted[p])
			at[p] = collected;
	for (int64_t k = 0; k < n; k++)
	{
		uint64_t	x = codes[k];
		uint64_t	p = (x - min) >> shift;

		spare[at[p]] = x;
		at[p] += wanted[p];
	}

	collected = 0;
	i = 0;
	for (int p = 0; p < parts; p++)
	{
		int			from = i;
		int64_t		count;

		if (!wanted[p])
			continue;
		count = at[p] - collected;
		while (i < m && ranks[i] < first[p] + count)
			i++;
		select_ranks(spare + collected, codes + collected, count, ranks + from, first[p], i - from, out + from);
		collected += count;
	}
}

#endif							/* GPUAGG_SELECT_H */
