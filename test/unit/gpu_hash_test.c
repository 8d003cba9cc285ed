/*
 * gpu_hash_test.c
 *	  Tests the keyed hash of group keys (operators/gpu_hash.h).
 *
 * Keys are inserted into a table with linear probing, like the GPU's. No search may pass 150 slots,
 * neither for regular keys nor for keys that were crafted to collide without a hash key or with
 * another seed. The hash of one word is invertible.
 */
#include "unit.h"

#include "operators/gpu_hash.h"

#define KEYS 20000
#define SLOTS (2 * KEYS + 64)

typedef struct Word2
{
	uint64_t lo, hi;
} Word2;

/* Returns a hash of x without a hash key, as hash tables often use. unmix() is its inverse. */
static uint64_t
mix(uint64_t x)
{
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93u;
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93u;
	x ^= x >> 32;
	return x;
}

static uint64_t
unmix(uint64_t x)
{
	uint64_t inverse = gpuagg_odd_inverse(0xd6e8feb86659fd93u);

	x ^= x >> 32;
	x *= inverse;
	x ^= x >> 32;
	x *= inverse;
	x ^= x >> 32;
	return x;
}

/*
 * Returns how many slots the longest search passes when n different hashes are inserted serially.
 */
static int
longest_search(const uint64_t *hash, int n)
{
	static char taken[SLOTS];
	int longest = 0;

	memset(taken, 0, sizeof(taken));
	for (int i = 0; i < n; i++)
	{
		uint32_t at = gpuagg_hash_slot(hash[i], SLOTS);
		int passed = 0;

		while (taken[at])
		{
			at = at + 1 < SLOTS ? at + 1 : 0;
			passed++;
		}
		taken[at] = 1;
		longest = passed > longest ? passed : longest;
	}
	return longest;
}

/* Like longest_search(), for the hashes of n keys under k. If k is NULL, hashes them by mix(). */
static int
longest_of_keys(const GpuaggHashKey *k, const uint64_t *keys, int n)
{
	static uint64_t hash[KEYS];

	for (int i = 0; i < n; i++)
		hash[i] = k ? gpuagg_hash64(k, keys[i]) : mix(keys[i]);
	return longest_search(hash, n);
}

/* Returns hash number i of a series with equal top 16 bits. Hashes with equal top bits collide. */
static uint64_t
colliding_hash(uint64_t i)
{
	return (uint64_t) 0x1234 << 48 | i * 0x9E3779B97F4A7u % ((uint64_t) 1 << 48);
}

/* Tests that gpuagg_hash64() and gpuagg_unhash64() are inverse under each seed. */
static void
hash_inverts(void)
{
	for (int i = 0; i < 100000; i++)
	{
		GpuaggHashKey k = gpuagg_hash_key(i % 100 ? random_u64() : (uint64_t) i);
		uint64_t x = i % 3 ? random_u64() : (uint64_t) i;

		CHECK(gpuagg_unhash64(&k, gpuagg_hash64(&k, x)) == x, "%llx is restored from its hash",
			  (unsigned long long) x);
		CHECK(gpuagg_hash64(&k, gpuagg_unhash64(&k, x)) == x, "%llx is the hash of its inverse",
			  (unsigned long long) x);
		CHECK(k.mul[0] * k.inverse[0] == 1 && k.mul[1] * k.inverse[1] == 1 && (k.mul[2] & 1),
			  "the factors of a hash key have inverses");
	}
}

static void
same_seed_same_hash(void)
{
	GpuaggHashKey a = gpuagg_hash_key(42), b = gpuagg_hash_key(42), c = gpuagg_hash_key(43);

	CHECK(memcmp(&a, &b, sizeof(a)) == 0, "the same seed gives the same key");
	CHECK(memcmp(&a, &c, sizeof(a)) != 0, "another seed gives another key");
	/* the hash of two words depends on both words and their order */
	CHECK(gpuagg_hash128(&a, 1, 2) == gpuagg_hash128(&b, 1, 2),
		  "the hash is the same under the same key");
	CHECK(gpuagg_hash128(&a, 1, 2) != gpuagg_hash128(&a, 2, 1),
		  "the order of words changes the hash");
	CHECK(gpuagg_hash128(&a, 1, 2) != gpuagg_hash128(&a, 1, 3), "the second word changes the hash");
	CHECK(gpuagg_hash128(&a, 1, 2) != gpuagg_hash128(&a, 0, 2), "the first word changes the hash");
}

/* Keys that collide without a hash key, or under one seed, do not collide under other seeds. */
static void
crafted_keys(void)
{
	static uint64_t keys[KEYS];
	GpuaggHashKey victim = gpuagg_hash_key(1);
	int worst = 0;

	for (int i = 0; i < KEYS; i++)
		keys[i] = unmix(colliding_hash(i));
	CHECK(longest_of_keys(NULL, keys, KEYS) > KEYS / 2,
		  "the crafted keys collide without a hash key, as the test needs");
	for (int seed = 0; seed < 100; seed++)
	{
		GpuaggHashKey k = gpuagg_hash_key(seed);
		int longest = longest_of_keys(&k, keys, KEYS);

		worst = longest > worst ? longest : worst;
	}
	CHECK(worst < 150, "searches of %d slots", worst);

	for (int i = 0; i < KEYS; i++)
		keys[i] = gpuagg_unhash64(&victim, colliding_hash(i));
	CHECK(longest_of_keys(&victim, keys, KEYS) > KEYS / 2,
		  "keys crafted for a seed collide under it");
	worst = 0;
	for (int seed = 2; seed < 100; seed++)
	{
		GpuaggHashKey k = gpuagg_hash_key(seed);
		int longest = longest_of_keys(&k, keys, KEYS);

		worst = longest > worst ? longest : worst;
	}
	CHECK(worst < 150, "searches of %d slots under other seeds", worst);
}

/*
 * Keys that differ in few bits or by a constant stride, under 20 seeds. Among as many random
 * hashes, the longest search passes about 60 slots.
 */
static void
regular_keys(void)
{
	static uint64_t keys[KEYS];

	for (int pattern = 0; pattern < 64 + 5; pattern++)
	{
		int worst = 0;

		for (int i = 0; i < KEYS; i++)
			switch (pattern - 64)
			{
				case 0:
					keys[i] = (uint64_t) i * 1000003;
					break;
				case 1:
					keys[i] = (uint64_t) i << 32 | (uint64_t) i;
					break;
				case 2:
					/* the first step of the mix function is its own inverse */
					keys[i] = (uint64_t) i << 32 ^ (uint64_t) i * 65537;
					break;
				case 3:
					keys[i] = ~(uint64_t) 0 - (uint64_t) i * i;
					break;
				case 4:
					keys[i] = (uint64_t) i * 0x9E3779B97F4A7C15u;
					break;
				default:
					/* counters rotated by 0 to 63 bits, a different rotation for each pattern */
					keys[i] = pattern ? (uint64_t) i << pattern | (uint64_t) i >> (64 - pattern) :
										(uint64_t) i;
			}
		for (int seed = 0; seed < 20; seed++)
		{
			GpuaggHashKey k = gpuagg_hash_key(seed);
			int longest = longest_of_keys(&k, keys, KEYS);

			worst = longest > worst ? longest : worst;
		}
		CHECK(worst < 150, "pattern %d: searches of %d slots", pattern, worst);
	}
}

/* Keys of two words: one word, both, or crafted to collide without a hash key. */
static void
wide_keys(void)
{
	static Word2 keys[KEYS];
	static uint64_t hash[KEYS];

	for (int pattern = 0; pattern < 5; pattern++)
	{
		int worst = 0;

		for (int i = 0; i < KEYS; i++)
		{
			uint64_t n = (uint64_t) i;

			switch (pattern)
			{
				case 0:
					keys[i] = (Word2){n, 0};
					break;
				case 1:
					keys[i] = (Word2){0, n};
					break;
				case 2:
					keys[i] = (Word2){n, n << 48};
					break;
				case 3:
					/* mix(mix(lo) + hi * c) is the same for all */
					keys[i] = (Word2){n, (7 - mix(n)) * gpuagg_odd_inverse(0x9E3779B97F4A7C15u)};
					hash[i] = mix(mix(keys[i].lo) + keys[i].hi * 0x9E3779B97F4A7C15u);
					CHECK(hash[i] == mix(7),
						  "the crafted keys collide without a hash key, as the test needs");
					break;
				case 4:
					keys[i] = (Word2){unmix(colliding_hash(n)), unmix(colliding_hash(n + 1))};
					break;
			}
		}
		for (int seed = 0; seed < 50; seed++)
		{
			GpuaggHashKey k = gpuagg_hash_key(seed);
			int longest;

			for (int i = 0; i < KEYS; i++)
				hash[i] = gpuagg_hash128(&k, keys[i].lo, keys[i].hi);
			longest = longest_search(hash, KEYS);
			worst = longest > worst ? longest : worst;
		}
		CHECK(worst < 150, "pattern %d: searches of %d slots", pattern, worst);
	}
}

/*
 * The lower half of the hash, which selects the slot in caches in shared memory, is spread as well.
 */
static void
lower_half(void)
{
	static uint64_t keys[KEYS], hash[KEYS];

	for (int pattern = 0; pattern < 2; pattern++)
		for (int seed = 0; seed < 50; seed++)
		{
			GpuaggHashKey k = gpuagg_hash_key(seed);
			int longest;

			for (int i = 0; i < KEYS; i++)
			{
				keys[i] = pattern ? unmix(colliding_hash(i) >> 32 | colliding_hash(i) << 32) :
									(uint64_t) i << 40;
				hash[i] = gpuagg_hash64(&k, keys[i]) << 32;
			}
			longest = longest_search(hash, KEYS);
			CHECK(longest < 150, "pattern %d: searches of %d slots", pattern, longest);
		}
}

int
main(void)
{
	RUN("the hash is invertible", hash_inverts);
	RUN("the seed determines the hash", same_seed_same_hash);
	RUN("crafted keys do not collide under another seed", crafted_keys);
	RUN("regular keys do not collide", regular_keys);
	RUN("keys of two words do not collide", wide_keys);
	RUN("the lower half of the hash does not collide", lower_half);
	return unit_done();
}
