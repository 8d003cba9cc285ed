/*
 * monoid.c
 *	  The list of monoids as data.  Uses neither PostgreSQL nor CUDA.
 */
#include "operators/monoid.h"

const MonoidInfo gpuagg_monoids[MONOID_COUNT_OF_IDS] = {
#define MONOID(NAME, name, input_t, state_t, comm, atomic, text) \
	{#name, sizeof(input_t), sizeof(state_t), comm, MONOID_ATOMIC_##atomic, text},
#include "operators/monoid_list.h"
#undef MONOID
};
