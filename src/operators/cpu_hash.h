/*
 * cpu_hash.h
 *	  The keyed hash of the CPU engine's tables: multiply and fold with a random seed.
 *
 * If a hash function is known, keys can be chosen that collide.  So each table, dictionary and row
 * store draws a random seed, and hashes never leave the process.  Results and stored values must
 * not depend on these hashes.
 *
 * Core's hash_bytes_extended also takes a seed, but it takes three to nine times as long (10 ns for
 * a string of 3 to 16 bytes instead of 1 to 3).  That is a quarter of the time of a row with a text
 * key.
 *
 * Unlike the hash of the GPU's tables (gpu_hash.h), this one is not a bijection.  The file does not
 * need PostgreSQL, so that unit tests can include it.
 */
#ifndef GPUAGG_CPU_HASH_H
#define GPUAGG_CPU_HASH_H

#include <stdint.h>
#include <string.h>

/* The secret key of a hash. */
typedef struct HashSeed
{
	uint64_t mask;       /* hides the value */
	uint64_t multiplier; /* odd */
} HashSeed;

/* Returns a seed from 128 random bits. */
static inline HashSeed
hash_seed(uint64_t a, uint64_t b)
{
	HashSeed seed = {a, b | 1};

	return seed;
}

/*
 * Returns one step of the hash: multiplies by the secret multiplier and folds both halves of the
 * product, so that each bit of x has an effect.
 */
static inline uint64_t
hash_fold(HashSeed seed, uint64_t x)
{
	unsigned __int128 product = (unsigned __int128) (x ^ seed.mask) * seed.multiplier;

	return (uint64_t) (product >> 64) ^ (uint64_t) product;
}

/* Returns the 32 bits for a table, all of good quality, from a result of hash_fold. */
static inline uint32_t
hash_finish(uint64_t h)
{
	return (uint32_t) (h * UINT64_C(0xd6e8feb86659fd93) >> 32);
}

/* Returns up to 8 bytes as a number; missing bytes are zero. */
static inline uint64_t
hash_load(const char *data, int len)
{
	uint64_t x = 0;

	memcpy(&x, data, len);
	return x;
}

/* Returns fewer than 8 bytes as a number that differs for different strings of the same length. */
static inline uint64_t
hash_load_short(const char *data, int len)
{
	if (len >= 4)
		return hash_load(data, 4) | hash_load(data + len - 4, 4) << 32;
	if (len == 0)
		return 0;
	return (uint8_t) data[0] | (uint64_t) (uint8_t) data[len / 2] << 8 |
		(uint64_t) (uint8_t) data[len - 1] << 16;
}

/*
 * Returns the hash of len bytes.  Takes 8 bytes at a time; the last 8 may overlap those before
 * them.
 */
static inline uint32_t
hash_string(HashSeed seed, const char *data, int len)
{
	uint64_t h = (uint64_t) len * UINT64_C(0x9e3779b97f4a7c15);
	int i = 0;

	for (; i + 8 < len; i += 8)
		h = hash_fold(seed, h ^ hash_load(data + i, 8));
	return hash_finish(hash_fold(
		seed, h ^ (len >= 8 ? hash_load(data + len - 8, 8) : hash_load_short(data, len))));
}

#endif /* GPUAGG_CPU_HASH_H */
