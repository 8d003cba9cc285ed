/*
 * hll_value.h
 *	  What the custom scan shares with the ordinary aggregate gpu_approx_count_distinct.
 */
#ifndef GPUAGG_HLL_VALUE_H
#define GPUAGG_HLL_VALUE_H

#include "postgres.h"

/*
 * Is a value of this type its own hash?  Equal values are equal bits then, and
 * gpuagg_bin_hll spreads them; other types go through their hash function.
 */
extern bool hll_value_is_hash(Oid type);

/* The serialized state of an array of registers. */
extern bytea *hll_state(const int32 *registers);

#endif /* GPUAGG_HLL_VALUE_H */
