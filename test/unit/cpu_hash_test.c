/*
 * cpu_hash_test.c
 *	  The hash of tables and dictionaries: few probes for keys of every pattern,
 *	  and for those that collide under an unkeyed hash.
 */
#include "unit.h"

#include "operators/cpu_hash.h"

#define KEYS 200000
#define SLOTS (1 << 19)
#define SEEDS 6

static uint64_t keys[KEYS];
static uint32_t hashes[KEYS];
static uint32_t table[SLOTS]; /* key number + 1 */

/* A good mixer that everybody knows, and that runs backwards. */
#define FACTOR UINT64_C(0xd6e8feb86659fd93)
#define INVERSE UINT64_C(14982988110149298331)

static uint64_t
mix(uint64_t x)
{
	x = (x ^ x >> 32) * FACTOR;
	x = (x ^ x >> 32) * FACTOR;
	return x ^ x >> 32;
}

static uint64_t
unmix(uint64_t x)
{
	x = (x ^ x >> 32) * INVERSE;
	x = (x ^ x >> 32) * INVERSE;
	return x ^ x >> 32;
}

/* Slots looked at for n keys, linear probing; stops at `most`. */
static uint64_t
probes(int n, uint64_t most)
{
	uint64_t total = 0;

	memset(table, 0, sizeof(table));
	for (int i = 0; i < n && total < most; i++)
	{
		uint32_t at = hashes[i] & (SLOTS - 1);

		for (total++; table[at]; total++)
			at = (at + 1) & (SLOTS - 1);
		table[at] = i + 1;
	}
	return total;
}

static HashSeed
some_seed(void)
{
	uint64_t a = random_u64();

	return hash_seed(a, random_u64());
}

static void
check_keys(const char *what)
{
	for (int s = 0; s < SEEDS; s++)
	{
		HashSeed seed = some_seed();
		uint64_t total;

		for (int i = 0; i < KEYS; i++)
			hashes[i] = hash_finish(hash_fold(seed, keys[i]));
		total = probes(KEYS, 8 * KEYS);
		CHECK(total < 2 * KEYS, "%s: %llu probes for %d keys", what, (unsigned long long) total,
			  KEYS);
		/* a second word, as that of NULLs */
		for (int i = 0; i < KEYS; i++)
			hashes[i] = hash_finish(hash_fold(seed, hash_fold(seed, i % 4) ^ keys[i]));
		total = probes(KEYS, 8 * KEYS);
		CHECK(total < 2 * KEYS, "%s, second word: %llu probes for %d keys", what,
			  (unsigned long long) total, KEYS);
	}
}

static void
patterns(void)
{
	char what[64];

	for (int shift = 0; shift <= 46; shift++)
	{
		for (int i = 0; i < KEYS; i++)
			keys[i] = (uint64_t) i << shift;
		snprintf(what, sizeof(what), "multiples of 2^%d", shift);
		check_keys(what);
	}
	for (int i = 0; i < KEYS; i++)
	{
		double x = i / 7.0 - 1000;

		memcpy(&keys[i], &x, sizeof(x));
	}
	check_keys("doubles");
	for (int i = 0; i < KEYS; i++)
		keys[i] = (uint64_t) (i % 500) << 32 | i / 500;
	check_keys("pairs of integers");
	for (int i = 0; i < KEYS; i++)
		keys[i] = random_u64();
	check_keys("random keys");
}

static void
crafted_keys(void)
{
	for (int shift = 19; shift <= 46; shift += 9)
	{
		int n = 2000;

		for (int i = 0; i < KEYS; i++)
		{
			keys[i] = unmix((uint64_t) i << shift);
			hashes[i] = (uint32_t) mix(keys[i]);
		}
		/* they do what they were made for */
		CHECK(shift < 32 || probes(n, UINT64_MAX) == (uint64_t) n * (n + 1) / 2,
			  "keys do not collide");
		check_keys("keys that collide under a known hash");
	}
}

/* 24 bytes: the second word makes up for the first under multiply-and-fold without a seed. */
static void
crafted_strings(void)
{
	static char strings[KEYS][24];
	uint64_t collisions = 0;

	for (int i = 0; i < KEYS; i++)
	{
		uint64_t word = (uint64_t) i * 2654435761u;
		uint64_t h = 24 * UINT64_C(0x9e3779b97f4a7c15);

		memcpy(strings[i], &word, 8);
		h = (h ^ word) * FACTOR;
		h ^= h >> 32;
		word = h ^ 12345;
		memcpy(strings[i] + 8, &word, 8);
		memcpy(strings[i] + 16, "the same", 8);
	}
	for (int s = 0; s < SEEDS; s++)
	{
		HashSeed seed = some_seed();
		uint64_t total;

		for (int i = 0; i < KEYS; i++)
			hashes[i] = hash_string(seed, strings[i], 24);
		total = probes(KEYS, 8 * KEYS);
		CHECK(total < 2 * KEYS, "%llu probes for %d strings", (unsigned long long) total, KEYS);
		for (int i = 1; i < KEYS; i++)
			collisions += hashes[i] == hashes[i - 1];
	}
	CHECK(collisions < 10, "%llu neighbours of one hash", (unsigned long long) collisions);
}

static void
strings_of_all_lengths(void)
{
	HashSeed seed = some_seed();
	char data[80];

	for (int i = 0; i < (int) sizeof(data); i++)
		data[i] = 'a' + i % 26;
	for (int len = 0; len <= 64; len++)
	{
		uint32_t hash = hash_string(seed, data, len);

		/* what lies behind the end does not count, each byte before it does */
		data[len] ^= 1;
		CHECK(hash_string(seed, data, len) == hash, "length %d reads on", len);
		data[len] ^= 1;
		for (int i = 0; i < len; i++)
		{
			data[i] ^= 1;
			CHECK(hash_string(seed, data, len) != hash, "length %d: byte %d does not count", len,
				  i);
			data[i] ^= 1;
		}
		CHECK(hash_string(some_seed(), data, len) != hash, "length %d: the seed does not count",
			  len);
	}
}

int
main(void)
{
	RUN("patterns of keys", patterns);
	RUN("crafted keys", crafted_keys);
	RUN("crafted strings", crafted_strings);
	RUN("strings of all lengths", strings_of_all_lengths);
	return unit_done();
}
