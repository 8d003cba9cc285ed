/*
 * keys.h
 *	  What rows are grouped by: columns that an engine can compare.
 */
#ifndef GPUAGG_KEYS_H
#define GPUAGG_KEYS_H

#include "postgres.h"

#include "nodes/primnodes.h"

#include "spec.h"

/*
 * Sets *key for values of an expression, which are this input of the plan, compared by these
 * functions.  Its column, which it adds to the spec, has the type that spec_column_type() gives
 * where an engine can compare its values; else Datums.
 */
extern void keys_init(AggSpec *spec, KeySpec *key, Node *expr, int input, Oid eqfunc, Oid hashfunc,
					  Oid collation);

#endif /* GPUAGG_KEYS_H */
