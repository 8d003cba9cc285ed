/*
 * hash_seed.c
 *	  Random seeds for the hash tables of the backend; see hash_seed.h.
 */
#include "postgres.h"

#include "common/pg_prng.h"

#include "columns/hash_seed.h"

HashSeed
hash_seed_random(void)
{
	uint64 mask = pg_prng_uint64(&pg_global_prng_state);

	return hash_seed(mask, pg_prng_uint64(&pg_global_prng_state));
}
