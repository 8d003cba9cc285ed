/*
 * gpu_hash.h
 *	  The keyed hash of the GPU's tables of groups, for gcc and nvcc.
 *
 * A bijection of 64 bits: two rounds of multiplication and exclusive-or of the
 * upper half, as in mix functions, but with secret odd multipliers and a secret word
 * between the rounds.  Keys that collide under one seed do not under another: for any
 * two keys that were chosen without knowledge of the seed, the top n bits of their
 * hashes are equal with a probability of at most 2^(1 - n) over the last multiplier
 * (Dietzfelbinger, Hagerup, Katajainen and Penttonen, "A Reliable Randomized
 * Algorithm for the Closest-Pair Problem", 1997).  The first round and the
 * secret word keep keys in arithmetic progression from staying so, which linear
 * probing would not bear.
 *
 * It is no cryptographic function: the seed can be computed from some hashes.  They
 * never leave the process, and each query draws a seed of its own.
 *
 * A bijection, so that tests can make keys of hashes.  The CPU engine's tables hash by cpu_hash.h,
 * in fewer steps.
 */
#ifndef GPUAGG_GPU_HASH_H
#define GPUAGG_GPU_HASH_H

#include "operators/monoid.h"

/* What a seed comes to; the same seed always gives the same. */
typedef struct GpuaggHashKey
{
	uint64_t mul[3]; /* odd; the last one for second words */
	uint64_t add;
	uint64_t inverse[2]; /* of mul[0] and mul[1], modulo 2^64 */
} GpuaggHashKey;

/*
 * A bijection of which each output bit depends on all input bits: the finalizer of
 * SplitMix64 (Steele, Lea and Flood, 2014).
 */
GPUAGG_HD uint64_t
gpuagg_mix64(uint64_t x)
{
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

/* The next number of SplitMix64. */
GPUAGG_HD uint64_t
gpuagg_hash_key_word(uint64_t *state)
{
	return gpuagg_mix64(*state += UINT64_C(0x9e3779b97f4a7c15));
}

/* The inverse of an odd number modulo 2^64, by Newton's iteration from 3 bits on. */
GPUAGG_HD uint64_t
gpuagg_odd_inverse(uint64_t a)
{
	uint64_t x = a;

	for (int i = 0; i < 5; i++)
		x *= 2 - a * x;
	return x;
}

/* Any seed will do; it should be random where keys are not to be trusted. */
GPUAGG_HD GpuaggHashKey
gpuagg_hash_key(uint64_t seed)
{
	GpuaggHashKey k;

	for (int i = 0; i < 3; i++)
		k.mul[i] = gpuagg_hash_key_word(&seed) | 1;
	k.add = gpuagg_hash_key_word(&seed);
	for (int i = 0; i < 2; i++)
		k.inverse[i] = gpuagg_odd_inverse(k.mul[i]);
	return k;
}

GPUAGG_HD uint64_t
gpuagg_hash64(const GpuaggHashKey *k, uint64_t x)
{
	x ^= x >> 32;
	x *= k->mul[0];
	x ^= (x >> 32) ^ k->add;
	x *= k->mul[1];
	x ^= x >> 32;
	return x;
}

/* The word whose hash it is. */
GPUAGG_HD uint64_t
gpuagg_unhash64(const GpuaggHashKey *k, uint64_t h)
{
	h ^= h >> 32;
	h *= k->inverse[1];
	h ^= k->add;
	h ^= h >> 32;
	h *= k->inverse[0];
	h ^= h >> 32;
	return h;
}

/* Of a key of two words. */
GPUAGG_HD uint64_t
gpuagg_hash128(const GpuaggHashKey *k, uint64_t lo, uint64_t hi)
{
	return gpuagg_hash64(k, gpuagg_hash64(k, lo) + hi * k->mul[2]);
}

/* The first slot of a hash in a table of nslots: its upper half, scaled. */
GPUAGG_HD uint32_t
gpuagg_hash_slot(uint64_t hash, uint32_t nslots)
{
	return (uint32_t) ((hash >> 32) * nslots >> 32);
}

#endif /* GPUAGG_GPU_HASH_H */
