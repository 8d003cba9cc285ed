/*
 * hll.h
 *	  HyperLogLog: 2^14 registers with the largest rank seen, and the estimate.
 *
 * A sketch is a histogram whose operator is max (HLL_MAX in monoid_list.h).  The top 14 bits of a
 * 64-bit hash choose the register.  The rank, 1 to 51, is the position of the first one bit in the
 * remaining 50.
 *
 * Flajolet, Fusy, Gandouet, Meunier, "HyperLogLog: the analysis of a near-optimal cardinality
 * estimation algorithm" (2007), gives the registers and the standard error 1.04 / sqrt(2^14) = 0.81
 * %.  The estimate is by Ertl, "New cardinality estimation algorithms for HyperLogLog sketches"
 * (2017), section 3, algorithm 6, which needs neither bias tables nor a switch to linear counting.
 * Plain C for gcc and nvcc.
 */
#ifndef GPUAGG_HLL_H
#define GPUAGG_HLL_H

#include "operators/gpu_hash.h"
#include "operators/monoid.h"

#define GPUAGG_HLL_BITS 14
#define GPUAGG_HLL_REGISTERS (1 << GPUAGG_HLL_BITS)
#define GPUAGG_HLL_MAX_RANK (64 - GPUAGG_HLL_BITS + 1)
#define GPUAGG_HLL_RANKS (GPUAGG_HLL_MAX_RANK + 1) /* rank 0: no hash for this register yet */

/*
 * Sets the register of a hash, and its rank.  The hash is mixed first, because a type's hash
 * function may be weak or have 32 bits.  Mixing adds no collisions.
 */
GPUAGG_HD void
gpuagg_bin_hll(uint64_t hash, int *reg, int *rank)
{
	uint64_t h = gpuagg_mix64(hash);
	uint64_t rest = h << GPUAGG_HLL_BITS;
	int r = 1;

	*reg = (int) (h >> (64 - GPUAGG_HLL_BITS));
#ifdef __CUDA_ARCH__
	r = rest ? __clzll((long long) rest) + 1 : GPUAGG_HLL_MAX_RANK;
#else
	r = rest ? __builtin_clzll(rest) + 1 : GPUAGG_HLL_MAX_RANK;
#endif
	*rank = r;
}

/*
 * Sets counts[r] to the number of registers of a sketch with rank r, and returns the greatest rank.
 * If that is above GPUAGG_HLL_MAX_RANK, which is invalid, no counts are set.  There are four
 * counters for each rank, because few ranks are frequent and additions to the same counter would
 * wait for each other.
 */
static inline uint32_t
gpuagg_hll_count_ranks(const int32_t *registers, int32_t *counts)
{
	int32_t part[4][GPUAGG_HLL_RANKS] = {{0}};
	uint32_t most = 0;

	for (int i = 0; i < GPUAGG_HLL_REGISTERS; i++)
		most = (uint32_t) registers[i] > most ? (uint32_t) registers[i] : most;
	if (most > GPUAGG_HLL_MAX_RANK)
		return most;
	for (int i = 0; i < GPUAGG_HLL_REGISTERS; i += 4)
		for (int p = 0; p < 4; p++)
			part[p][registers[i + p]]++;
	for (int r = 0; r < GPUAGG_HLL_RANKS; r++)
		counts[r] = part[0][r] + part[1][r] + part[2][r] + part[3][r];
	return most;
}

/* Ertl's sigma: contribution of the registers that are zero. */
GPUAGG_HD double
gpuagg_hll_sigma(double x)
{
	double y = 1.0, z = x, last;

	if (x == 1.0)
		return INFINITY;
	do
	{
		x *= x;
		last = z;
		z += x * y;
		y += y;
	} while (z != last);
	return z;
}

/* Ertl's tau: contribution of the saturated registers. */
GPUAGG_HD double
gpuagg_hll_tau(double x)
{
	double y = 1.0, z = 1.0 - x, last;

	if (x == 0.0 || x == 1.0)
		return 0.0;
	do
	{
		x = sqrt(x);
		last = z;
		y *= 0.5;
		z -= (1.0 - x) * (1.0 - x) * y;
	} while (z != last);
	return z / 3.0;
}

/*
 * Returns the estimated number of distinct hashes.  counts: GPUAGG_HLL_RANKS numbers of registers
 * with each rank.
 */
GPUAGG_HD double
gpuagg_hll_estimate(const int32_t *counts)
{
	const double m = GPUAGG_HLL_REGISTERS;
	const double alpha = 0.72134752044448170368; /* 1 / (2 ln 2) */
	double z;

	if (counts[0] == GPUAGG_HLL_REGISTERS)
		return 0.0;
	z = m * gpuagg_hll_tau(1.0 - counts[GPUAGG_HLL_MAX_RANK] / m);
	for (int k = GPUAGG_HLL_MAX_RANK - 1; k >= 1; k--)
		z = 0.5 * (z + counts[k]);
	z += m * gpuagg_hll_sigma(counts[0] / m);
	return alpha * m * m / z;
}

#endif /* GPUAGG_HLL_H */
