/*
 * hll_value.h
 *	  What the custom scan shares with the ordinary aggregate gpu_approx_count_distinct.
 */
#ifndef GPUAGG_HLL_VALUE_H
#define GPUAGG_HLL_VALUE_H

#include "postgres.h"

/*
 * Returns whether a value of this type is used as its own hash: equal values have equal bits, and
 * gpuagg_bin_hll spreads them. Values of other types are hashed by the type's hash function.
 */
extern bool hll_value_is_hash(Oid type);

/* Returns the serialized state for an array of registers. */
extern bytea *hll_state(const int32 *registers);

#endif /* GPUAGG_HLL_VALUE_H */
