/*
 * integers.h
 *	  Values of smallint, integer and bigint, whichever of them a type is.
 */
#ifndef GPUAGG_COMMON_INTEGERS_H
#define GPUAGG_COMMON_INTEGERS_H

#include "postgres.h"

#include "catalog/pg_type_d.h"

/* Returns whether a type is smallint, integer or bigint. */
static inline bool
is_integer_type(Oid type)
{
	return type == INT2OID || type == INT4OID || type == INT8OID;
}

/* Returns a value of one of these types, which is not NULL. */
static inline int64
integer_of_type(Oid type, Datum value)
{
	return type == INT2OID ? DatumGetInt16(value) :
		type == INT4OID    ? DatumGetInt32(value) :
							 DatumGetInt64(value);
}

#endif /* GPUAGG_COMMON_INTEGERS_H */
