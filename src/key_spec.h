/*
 * key_spec.h
 *	  Makes keys of a spec: values of an expression that an engine can compare for equality.
 */
#ifndef GPUAGG_KEY_SPEC_H
#define GPUAGG_KEY_SPEC_H

#include "postgres.h"

#include "nodes/primnodes.h"

#include "spec.h"

/*
 * Looks up the equality function of an operator, and the hash function that goes with it.  False if
 * values of this type cannot be hashed with the operator.
 */
extern bool key_hash_functions(Oid eqop, Oid type, Oid *eqfunc, Oid *hashfunc);

/*
 * Returns whether this equality function is known to compare bits: two values of an integer-like
 * type are equal if and only if their bits are.
 */
extern bool key_compares_bits(Oid eqfunc);

/* Returns whether values of a key may be equal by this function and look different. */
extern bool key_varies(Oid type, Oid eqfunc, Oid collation);

/*
 * Makes *key for the values of an expression, which is this input of the plan, compared by these
 * functions.  Adds its column to the spec.  The column has the type that spec_column_type() gives
 * if an engine can compare values of that type as the functions do; otherwise it is COLUMN_DATUM.
 */
extern void key_spec_init(AggSpec *spec, KeySpec *key, Node *expr, int input, Oid eqfunc,
						  Oid hashfunc, Oid collation);

#endif /* GPUAGG_KEY_SPEC_H */
