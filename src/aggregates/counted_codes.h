/*
 * counted_codes.h
 *	  Codes (select.h) with a number of rows each.
 */
#ifndef GPUAGG_COUNTED_CODES_H
#define GPUAGG_COUNTED_CODES_H

#include "postgres.h"

typedef struct CountedCode
{
	uint64 code;
	int64 count;
} CountedCode;

/* An array of them, in any order.  A code may be there several times. */
typedef struct CountedCodes
{
	int64 n;
	int64 room;
	int64 rows; /* the sum of all counts */
	CountedCode *codes;
} CountedCodes;

/* Returns an empty array in cxt. */
extern CountedCodes *counted_codes_create(MemoryContext cxt);

/* Appends a code with a number of rows. */
extern void counted_codes_add(CountedCodes *codes, uint64 code, int64 count);

/*
 * Sets found[i] to the code of rank ranks[i], from 0, in the sorted list of the codes of all rows.
 * The n ranks are in ascending order.  Sorts the array.
 */
extern void counted_codes_select(CountedCodes *codes, const int64 *ranks, int n, uint64 *found);

/* Returns the bytes of an array of so many codes. */
static inline size_t
counted_codes_bytes(int64 n)
{
	/* room is doubled */
	return sizeof(CountedCodes) + (size_t) (2 * n + 64) * sizeof(CountedCode);
}

#endif /* GPUAGG_COUNTED_CODES_H */
