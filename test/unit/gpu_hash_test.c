/*
 * gpu_hash_test.c
 *	  Tests the keyed hash of group keys (operators/gpu_hash.h), in a table with linear probing
 *	  like the GPU's. Regular keys, and keys crafted to collide, must not lead to long searches.
 *	  Reference: random hashes, with which the longest search is about 60 slots.
 */
#include "unit.h"

#include "operators/gpu_hash.h"

#define KEYS 20000
#define SLOTS (2 * KEYS + 64)

typedef struct Word2
{
	uint64_t lo, hi;
} Word2;

/* A hash without a key, as is common for such tables, and its inverse below. */
static uint64_t
hash_without_key(uint64_t x)
{
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93u;
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93u;
	x ^= x >> 32;
	return x;
}

static uint64_t
unhash_without_key(uint64_t x)
{
	uint64_t inverse = gpuagg_odd_inverse(0xd6e8feb86659fd93u);

	x ^= x >> 32;
	x *= inverse;
	x ^= x >> 32;
	x *= inverse;
	x ^= x >> 32;
	return x;
}

/* Inserts these hashes, and returns the number of slots that the longest search passes. */
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

static int
longest_of_keys(const GpuaggHashKey *k, const uint64_t *keys, int n)
{
	static uint64_t hash[KEYS];

	for (int i = 0; i < n; i++)
		hash[i] = k ? gpuagg_hash64(k, keys[i]) : hash_without_key(keys[i]);
	return longest_search(hash, n);
}

/* Returns a hash with the same top 16 bits for all i. */
static uint64_t
colliding_hash(uint64_t i)
{
	return (uint64_t) 0x1234 << 48 | i * 0x9E3779B97F4A7u % ((uint64_t) 1 << 48);
}

static void
test_inverse(void)
{
	for (int i = 0; i < 100000; i++)
	{
		GpuaggHashKey k = gpuagg_hash_key(i % 100 ? random_u64() : (uint64_t) i);
		uint64_t x = i % 3 ? random_u64() : (uint64_t) i;

		CHECK(gpuagg_unhash64(&k, gpuagg_hash64(&k, x)) == x, "%llx", (unsigned long long) x);
		CHECK(gpuagg_hash64(&k, gpuagg_unhash64(&k, x)) == x, "%llx", (unsigned long long) x);
		CHECK(k.mul[0] * k.inverse[0] == 1 && k.mul[1] * k.inverse[1] == 1 && (k.mul[2] & 1),
			  "a multiplier has no inverse");
	}
}

static void
test_seeds(void)
{
	GpuaggHashKey a = gpuagg_hash_key(42), b = gpuagg_hash_key(42), c = gpuagg_hash_key(43);

	CHECK(memcmp(&a, &b, sizeof(a)) == 0, "the same seed gives another key");
	CHECK(memcmp(&a, &c, sizeof(a)) != 0, "another seed gives the same key");
	/* both words and their order matter */
	CHECK(gpuagg_hash128(&a, 1, 2) == gpuagg_hash128(&b, 1, 2),
		  "equal seeds give different hashes");
	CHECK(gpuagg_hash128(&a, 1, 2) != gpuagg_hash128(&a, 2, 1),
		  "the order of the words does not matter");
	CHECK(gpuagg_hash128(&a, 1, 2) != gpuagg_hash128(&a, 1, 3), "the second word does not matter");
	CHECK(gpuagg_hash128(&a, 1, 2) != gpuagg_hash128(&a, 0, 2), "the first word does not matter");
}

/*
 * Keys that collide with the hash without a key, or under one seed, do not collide under other
 * seeds.
 */
static void
test_crafted_keys(void)
{
	static uint64_t keys[KEYS];
	GpuaggHashKey victim = gpuagg_hash_key(1);
	int worst = 0;

	for (int i = 0; i < KEYS; i++)
		keys[i] = unhash_without_key(colliding_hash(i));
	CHECK(longest_of_keys(NULL, keys, KEYS) > KEYS / 2,
		  "the crafted keys do not collide, so that the test shows nothing");
	for (int seed = 0; seed < 100; seed++)
	{
		GpuaggHashKey k = gpuagg_hash_key(seed);
		int longest = longest_of_keys(&k, keys, KEYS);

		worst = longest > worst ? longest : worst;
	}
	CHECK(worst < 150, "a search passes %d slots", worst);

	for (int i = 0; i < KEYS; i++)
		keys[i] = gpuagg_unhash64(&victim, colliding_hash(i));
	CHECK(longest_of_keys(&victim, keys, KEYS) > KEYS / 2,
		  "keys crafted for a seed do not collide under it");
	worst = 0;
	for (int seed = 2; seed < 100; seed++)
	{
		GpuaggHashKey k = gpuagg_hash_key(seed);
		int longest = longest_of_keys(&k, keys, KEYS);

		worst = longest > worst ? longest : worst;
	}
	CHECK(worst < 150, "a search under another seed passes %d slots", worst);
}

/*
 * Regular keys, which differ in few bits or by a constant, under many seeds. With random hashes,
 * the longest search is about 60 slots.
 */
static void
test_regular_keys(void)
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
					/* the first step of the hash cancels the upper word */
					keys[i] = (uint64_t) i << 32 ^ (uint64_t) i * 65537;
					break;
				case 3:
					keys[i] = ~(uint64_t) 0 - (uint64_t) i * i;
					break;
				case 4:
					keys[i] = (uint64_t) i * 0x9E3779B97F4A7C15u;
					break;
				default:
					/* rotated, so that each pattern has the counter at another place */
					keys[i] = pattern ? (uint64_t) i << pattern | (uint64_t) i >> (64 - pattern) :
										(uint64_t) i;
			}
		for (int seed = 0; seed < 20; seed++)
		{
			GpuaggHashKey k = gpuagg_hash_key(seed);
			int longest = longest_of_keys(&k, keys, KEYS);

			worst = longest > worst ? longest : worst;
		}
		CHECK(worst < 150, "pattern %d: a search passes %d slots", pattern, worst);
	}
}

/* Keys of two words: one word varies, both do, and keys crafted for the hash without a key. */
static void
test_wide_keys(void)
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
					/* hash_without_key(hash_without_key(lo) + hi * c) is the same for all keys */
					keys[i] = (Word2){
						n, (7 - hash_without_key(n)) * gpuagg_odd_inverse(0x9E3779B97F4A7C15u)};
					hash[i] = hash_without_key(hash_without_key(keys[i].lo) +
											   keys[i].hi * 0x9E3779B97F4A7C15u);
					CHECK(hash[i] == hash_without_key(7),
						  "the crafted keys do not collide, so that the test shows nothing");
					break;
				case 4:
					keys[i] = (Word2){unhash_without_key(colliding_hash(n)),
									  unhash_without_key(colliding_hash(n + 1))};
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
		CHECK(worst < 150, "pattern %d: a search passes %d slots", pattern, worst);
	}
}

/*
 * The lower half of the hash, which places keys in caches in shared memory, is also well
 * distributed.
 */
static void
test_lower_half(void)
{
	static uint64_t keys[KEYS], hash[KEYS];

	for (int pattern = 0; pattern < 2; pattern++)
		for (int seed = 0; seed < 50; seed++)
		{
			GpuaggHashKey k = gpuagg_hash_key(seed);
			int longest;

			for (int i = 0; i < KEYS; i++)
			{
				keys[i] = pattern ?
					unhash_without_key(colliding_hash(i) >> 32 | colliding_hash(i) << 32) :
					(uint64_t) i << 40;
				hash[i] = gpuagg_hash64(&k, keys[i]) << 32;
			}
			longest = longest_search(hash, KEYS);
			CHECK(longest < 150, "pattern %d: a search passes %d slots", pattern, longest);
		}
}

int
main(void)
{
	RUN("the hash can be inverted", test_inverse);
	RUN("the seed determines the hash, and both words matter", test_seeds);
	RUN("crafted keys do not collide under other seeds", test_crafted_keys);
	RUN("regular keys do not collide", test_regular_keys);
	RUN("keys of two words do not collide", test_wide_keys);
	RUN("the lower half of the hash does not collide", test_lower_half);
	return unit_done();
}
