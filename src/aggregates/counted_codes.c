/*
 * counted_codes.c
 *	  Codes with a number of rows each; see counted_codes.h.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "aggregates/counted_codes.h"
#include "common/compat.h"
#include "common/interruptible.h"

#define FIRST_CODES 16

CountedCodes *
counted_codes_create(MemoryContext cxt)
{
	CountedCodes *codes = MemoryContextAllocZero(cxt, sizeof(CountedCodes));

	codes->room = FIRST_CODES;
	codes->codes = MemoryContextAlloc(cxt, FIRST_CODES * sizeof(CountedCode));
	return codes;
}

void
counted_codes_add(CountedCodes *codes, uint64 code, int64 count)
{
	if (codes->n == codes->room)
	{
		codes->room *= 2;
		codes->codes = repalloc_huge(codes->codes, codes->room * sizeof(CountedCode));
	}
	codes->codes[codes->n++] = (CountedCode){code, count};
	codes->rows += count;
}

/* Comparator of qsort_interruptible */
static int
compare_codes(const void *a, const void *b, void *arg)
{
	uint64 x = ((const CountedCode *) a)->code;
	uint64 y = ((const CountedCode *) b)->code;

	return (x > y) - (x < y);
}

void
counted_codes_select(CountedCodes *codes, const int64 *ranks, int n, uint64 *found)
{
	int64 before = 0;
	int next = 0;

	/* arrays that are sorted already are recognised */
	qsort_interruptible(codes->codes, codes->n, sizeof(CountedCode), compare_codes, NULL);
	INTERRUPTIBLE_FOR (i, 0, codes->n)
	{
		before += codes->codes[i].count;
		while (next < n && ranks[next] < before)
			found[next++] = codes->codes[i].code;
	}
}
