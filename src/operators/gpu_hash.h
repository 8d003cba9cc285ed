/*
 * gpu_hash.h
 *	  The keyed hash of the GPU's tables of groups, for gcc and nvcc.
 *
 * A bijection of 64 bits: two rounds of multiplication and exclusive-or with the upper half, as in
 * mix functions, but with secret odd multipliers and a secret word between the rounds.  Keys that
 * collide under one seed do not collide under another.  For any two keys that were chosen without
 * the seed, the top n bits of their hashes are equal with a probability of at most 2^(1 - n) over
 * the last multiplier (Dietzfelbinger, Hagerup, Katajainen and Penttonen, "A Reliable Randomized
 * Algorithm for the Closest-Pair Problem", 1997).  The first round and the secret word break up
 * arithmetic progressions of keys, which would make linear probing slow.
 *
 * It is not a cryptographic function: the seed can be computed from some hashes.  Hashes never
 * leave the process, and each query draws its own seed.
 *
 * It is a bijection so that tests can compute keys from hashes.  The CPU engine's tables use
 * cpu_hash.h, which has fewer steps.
 */
#ifndef GPUAGG_GPU_HASH_H
#define GPUAGG_GPU_HASH_H

#include "operators/monoid.h"

/* Numbers that are derived from a seed. The same seed always gives the same key. */
typedef struct GpuaggHashKey
{
	uint64_t mul[3]; /* odd; the last one is for second words */
	uint64_t add;
	uint64_t inverse[2]; /* inverses of mul[0] and mul[1] modulo 2^64 */
} GpuaggHashKey;

/*
 * A bijection in which each output bit depends on all input bits: the finalizer of SplitMix64
 * (Steele, Lea and Flood, 2014).
 */
GPUAGG_HD uint64_t
gpuagg_mix64(uint64_t x)
{
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

/* Advances the state of the generator SplitMix64 and returns its next number. */
GPUAGG_HD uint64_t
gpuagg_hash_key_word(uint64_t *state)
{
	return gpuagg_mix64(*state += UINT64_C(0x9e3779b97f4a7c15));
}

/*
 * Returns the inverse of an odd number modulo 2^64.  Newton's iteration starts with 3 correct bits.
 */
GPUAGG_HD uint64_t
gpuagg_odd_inverse(uint64_t a)
{
	uint64_t x = a;

	for (int i = 0; i < 5; i++)
		x *= 2 - a * x;
	return x;
}

/* Derives a key from any seed. The seed should be random if keys cannot be trusted. */
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

/* Returns the hash of a key of one word. */
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

/* Returns the word whose gpuagg_hash64() is h. */
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

/* Returns the hash of a key of two words. */
GPUAGG_HD uint64_t
gpuagg_hash128(const GpuaggHashKey *k, uint64_t lo, uint64_t hi)
{
	return gpuagg_hash64(k, gpuagg_hash64(k, lo) + hi * k->mul[2]);
}

/* Returns the first slot for a hash in a table of nslots: its upper half, scaled. */
GPUAGG_HD uint32_t
gpuagg_hash_slot(uint64_t hash, uint32_t nslots)
{
	return (uint32_t) ((hash >> 32) * nslots >> 32);
}

#endif /* GPUAGG_GPU_HASH_H */
