/*
 * exact_vectors.h
 *	  Vectors of doubles and their bits, for exact sums.
 *
 * Conditions are bits of words, not results of comparisons: gcc makes slow code of these where the
 * processor cannot compare vectors of 64-bit integers.
 */
#ifndef GPUAGG_EXACT_VECTORS_H
#define GPUAGG_EXACT_VECTORS_H

#include "postgres.h"

typedef double Doubles __attribute__((vector_size(16)));
typedef uint64 Words __attribute__((vector_size(16)));
#define LANES 2

/* Returns the bits of a double. */
static inline uint64
exact_bits(double x)
{
	uint64 bits;

	memcpy(&bits, &x, sizeof(bits));
	return bits;
}

/* Returns a power of two, whose exponent is that of a normal double. */
static inline double
exact_power_of_two(int exponent)
{
	uint64 bits = (uint64) (exponent + 1023) << 52;
	double result;

	memcpy(&result, &bits, sizeof(result));
	return result;
}

/*
 * Returns a bit where the absolute value is not below the double with the bits `bound`, or NaN:
 * without signs, bits compare as the doubles do.
 */
static inline Words
exact_large(Doubles v, uint64 bound)
{
	return ((bound - 1) - ((Words) v << 1 >> 1)) >> 63;
}

#endif /* GPUAGG_EXACT_VECTORS_H */
