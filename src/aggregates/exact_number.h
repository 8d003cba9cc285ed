/*
 * exact_number.h
 *	  Binary numbers of any length, and results of exact arithmetic that are rounded once.
 *
 * An ExactNumber is an integer times a power of two.  Sums, products and differences are exact.
 * The quotient of two numbers, or its square root, is rounded once, to the nearest float, ties to
 * even.  Nothing here depends on PostgreSQL.
 */
#ifndef GPUAGG_EXACT_NUMBER_H
#define GPUAGG_EXACT_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

#include "operators/monoid.h"

/*
 * Most words of a number.  The longest ones are products of four sums of doubles and of two counts,
 * which have less than 4 * 2162 + 2 * 64 bits, and three words more in a division.
 */
#define EXACT_WORDS 144

/* (negative ? -1 : 1) * 2^exponent * an integer, whose n words begin with the lowest one. */
typedef struct ExactNumber
{
	bool negative;
	int n; /* 0: the number is 0; else the first and the last word are not 0 */
	int exponent;
	uint64_t words[EXACT_WORDS];
} ExactNumber;

/* Formats of results. */
typedef enum ExactFormat
{
	EXACT_SINGLE,
	EXACT_DOUBLE
} ExactFormat;

/* Sets *r to a count. */
extern void exact_from_count(ExactNumber *r, uint64_t count);

/* Sets *r to 2^exponent times an integer of n words in two's complement, at most EXACT_WORDS. */
extern void exact_from_words(ExactNumber *r, const uint64_t *words, int n, int exponent);

/* Adds the integer b to a. Both have n words, and so has the sum. */
extern void exact_add_integers(uint64_t *a, const uint64_t *b, int n);

/* Set *r to a * b, and to a - b. *r may be neither *a nor *b. */
extern void exact_multiply(ExactNumber *r, const ExactNumber *a, const ExactNumber *b);
extern void exact_subtract(ExactNumber *r, const ExactNumber *a, const ExactNumber *b);

/* Returns the number, rounded once; infinity if it is too large. */
extern double exact_round(const ExactNumber *a, ExactFormat format);

/*
 * Returns a / b, rounded once; infinity if it is too large.  b is not 0.  root: returns the square
 * root of the quotient's absolute value, with the sign of a.
 */
extern double exact_divide(const ExactNumber *a, const ExactNumber *b, bool root);

#endif /* GPUAGG_EXACT_NUMBER_H */
