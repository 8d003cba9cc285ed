/*
 * poly_states.h
 *	  Serialized states of sums and variances of integers, in the form of all releases and in
 *	  core's.
 *
 * Core's states of sum(bigint), avg(bigint) and variances of smallint and integer have 128-bit
 * integers.  Up to 18, core serializes these as numerics, and from 19 on as two 64-bit integers.
 * Servers of different releases exchange states.  Therefore the extension's own functions write and
 * read numerics in every release: the *portable form*, which state_forms.h makes.
 */
#ifndef GPUAGG_POLY_STATES_H
#define GPUAGG_POLY_STATES_H

#include "postgres.h"

/* Returns the portable form of a state with this many integers that core has serialized. */
extern bytea *poly_state_to_portable(bytea *core, int integers);

/*
 * Returns what core's deserialization function reads, for the portable form of a state.  From 19
 * on, raises an error if a number is no integer of 128 bits.
 */
extern bytea *poly_state_to_core(bytea *portable, int integers);

/*
 * Returns poly_state_to_core() of a portable form if the function with this OID is core's; the
 * extension's functions read the portable form itself.
 */
extern bytea *poly_state_for_function(bytea *portable, Oid deserialize);

#endif /* GPUAGG_POLY_STATES_H */
