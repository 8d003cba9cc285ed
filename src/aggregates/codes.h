/*
 * codes.h
 *	  Values of aggregates and keys as integers that compare as the values do.
 *
 * A code is made of a group's states, without the value itself: the comparison of
 * two codes is that of the type's default btree operators, to the last digit.
 * HAVING and LIMIT use them to leave groups out before values are made of these.
 */
#ifndef GPUAGG_CODES_H
#define GPUAGG_CODES_H

#include "postgres.h"

#include "aggregates/aggmap.h"
#include "operators/monoid.h"

typedef enum CodeKind
{
	CODE_VALUE,
	CODE_NULL,   /* the value is NULL */
	CODE_UNKNOWN /* only the value itself tells: a numeric that no decimal can be */
} CodeKind;

/* May values of this SQL type have codes? */
extern bool codes_type(Oid type);

/* Have all values of the aggregate, whose result is of this type, codes (but for CODE_UNKNOWN)? */
extern bool codes_aggregate(const AggOutput *out, Oid type);

/* Of the aggregate's value for group g. */
extern CodeKind codes_of_group(const AggOutput *out, const GroupBatch *groups, int g,
							   gpuagg_i128 *code);

/* Of a value that is not NULL, of a type that codes_type() allows except numeric. */
extern gpuagg_i128 codes_of_value(Oid type, Datum value);

/*
 * The slot whose state is the value, or whose mean, and the slot whose count is 0 where the value
 * is NULL (-1: it never is, or only a mean's own count says so), in groups none of whose rows a
 * fallback aggregate has; false: there is none.
 */
extern bool codes_slots(const AggOutput *out, int *slot, int *counted);

/*
 * Of a value of `type` that is not NULL, to be compared with values of the aggregate, whose result
 * is of type `with`; false if it has no code among these.
 */
extern bool codes_of_constant(const AggOutput *out, Oid with, Oid type, Datum value,
							  gpuagg_i128 *code);

#endif /* GPUAGG_CODES_H */
