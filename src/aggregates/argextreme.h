/*
 * argextreme.h
 *	  States of gpu_argmax and similar aggregates, for the custom scan and partial_state.c.
 */
#ifndef GPUAGG_ARGEXTREME_H
#define GPUAGG_ARGEXTREME_H

#include "postgres.h"

/* Returns the serialized state for an extreme key and the value in its row. */
extern bytea *argextreme_state(Oid valuetype, Oid keytype, Oid collation, Datum value, bool isnull,
							   Datum key);

/* Returns the type of a state's result. */
extern Oid argextreme_value_type(const void *state);

#endif /* GPUAGG_ARGEXTREME_H */
