/*
 * argextreme.h
 *	  States of gpu_argmax and the like, for the custom scan and for those of other servers.
 */
#ifndef GPUAGG_ARGEXTREME_H
#define GPUAGG_ARGEXTREME_H

#include "postgres.h"

/* The serialized state of rows whose best key is this one, and of those with it, the value. */
extern bytea *argextreme_state(Oid valuetype, Oid keytype, Oid collation, Datum value, bool isnull,
							   Datum key);

/* The type of the result of a state. */
extern Oid argextreme_value_type(const void *state);

#endif /* GPUAGG_ARGEXTREME_H */
