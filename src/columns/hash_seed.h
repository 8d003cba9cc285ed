/*
 * hash_seed.h
 *	  Random seeds for the hash tables of the backend (operators/cpu_hash.h).
 */
#ifndef GPUAGG_HASH_SEED_H
#define GPUAGG_HASH_SEED_H

#include "postgres.h"

#include "operators/cpu_hash.h"

/* Returns a new seed from the backend's random number generator; never fails. */
extern HashSeed hash_seed_random(void);

#endif /* GPUAGG_HASH_SEED_H */
