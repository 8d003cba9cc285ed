/*
 * cpu_hash_test.c
 *	  Tests the seeded hash of hash tables and dictionaries (operators/cpu_hash.h).
 *
 * With linear probing in a table that is 2/5 full, keys of regular patterns need few probes. So do
 * keys and strings that were crafted to collide under a known hash without a seed.
 */
#include "unit.h"

#include "operators/cpu_hash.h"

#define KEYS 200000
#define SLOTS (1 << 19)
#define SEEDS 6

static uint64_t keys[KEYS];
static uint32_t hashes[KEYS];
static uint32_t table[SLOTS]; /* number of the key + 1; 0 if the slot is empty */

/* A well-known mix function without a seed. It is invertible, so colliding keys can be computed. */
#define FACTOR UINT64_C(0xd6e8feb86659fd93)
#define INVERSE UINT64_C(14982988110149298331)

/* Returns a hash of x without a seed. */
static uint64_t
mix(uint64_t x)
{
	x = (x ^ x >> 32) * FACTOR;
	x = (x ^ x >> 32) * FACTOR;
	return x ^ x >> 32;
}

/* Returns the x for which mix() returns this hash. */
static uint64_t
unmix(uint64_t x)
{
	x = (x ^ x >> 32) * INVERSE;
	x = (x ^ x >> 32) * INVERSE;
	return x ^ x >> 32;
}

/*
 * Returns how many slots linear probing visits when n hashes are inserted. Stops at `most` slots.
 */
static uint64_t
count_probes(int n, uint64_t most)
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

/* Returns a random hash seed. */
static HashSeed
random_seed(void)
{
	uint64_t a = random_u64();

	return hash_seed(a, random_u64());
}

/*
 * Checks the number of probes for keys[], alone and followed by a second word, under several seeds.
 */
static void
check_keys(const char *what)
{
	for (int s = 0; s < SEEDS; s++)
	{
		HashSeed seed = random_seed();
		uint64_t total;

		for (int i = 0; i < KEYS; i++)
			hashes[i] = hash_finish(hash_fold(seed, keys[i]));
		total = count_probes(KEYS, 8 * KEYS);
		CHECK(total < 2 * KEYS, "%s: %llu probes for %d keys", what, (unsigned long long) total,
			  KEYS);
		/* with a second word, such as the bits of NULLs */
		for (int i = 0; i < KEYS; i++)
			hashes[i] = hash_finish(hash_fold(seed, hash_fold(seed, i % 4) ^ keys[i]));
		total = count_probes(KEYS, 8 * KEYS);
		CHECK(total < 2 * KEYS, "%s, second word: %llu probes for %d keys", what,
			  (unsigned long long) total, KEYS);
	}
}

/* Tests keys with a pattern: multiples of powers of two, doubles, pairs of integers. */
static void
regular_keys(void)
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

/* Tests keys that collide under the known hash mix(): they must not collide under seeds. */
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
		/* if the shift is 32 or more, the lower 32 bits of all hashes without a seed are equal */
		CHECK(shift < 32 || count_probes(n, UINT64_MAX) == (uint64_t) n * (n + 1) / 2,
			  "crafted keys collide under the hash without a seed");
		check_keys("keys that collide under a known hash");
	}
}

/*
 * Strings of 24 bytes. Without a seed, the second word cancels the effect of the first on a hash
 * that multiplies and folds.
 */
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
		HashSeed seed = random_seed();
		uint64_t total;

		for (int i = 0; i < KEYS; i++)
			hashes[i] = hash_string(seed, strings[i], 24);
		total = count_probes(KEYS, 8 * KEYS);
		CHECK(total < 2 * KEYS, "%llu probes for %d strings", (unsigned long long) total, KEYS);
		for (int i = 1; i < KEYS; i++)
			collisions += hashes[i] == hashes[i - 1];
	}
	CHECK(collisions < 10, "%llu neighbours have the same hash", (unsigned long long) collisions);
}

static void
strings_of_all_lengths(void)
{
	HashSeed seed = random_seed();
	char data[80];

	for (int i = 0; i < (int) sizeof(data); i++)
		data[i] = 'a' + i % 26;
	for (int len = 0; len <= 64; len++)
	{
		uint32_t hash = hash_string(seed, data, len);

		/* the byte after the end does not change the hash, each byte before it does */
		data[len] ^= 1;
		CHECK(hash_string(seed, data, len) == hash, "length %d: the hash reads beyond the end",
			  len);
		data[len] ^= 1;
		for (int i = 0; i < len; i++)
		{
			data[i] ^= 1;
			CHECK(hash_string(seed, data, len) != hash,
				  "length %d: byte %d does not change the hash", len, i);
			data[i] ^= 1;
		}
		CHECK(hash_string(random_seed(), data, len) != hash,
			  "length %d: the seed does not change the hash", len);
	}
}

int
main(void)
{
	RUN("keys of regular patterns need few probes", regular_keys);
	RUN("crafted keys need few probes", crafted_keys);
	RUN("crafted strings need few probes", crafted_strings);
	RUN("all bytes and the seed change the hash of a string", strings_of_all_lengths);
	return unit_done();
}
