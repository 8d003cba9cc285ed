/*
 * agg_codes.h
 *	  Values of aggregates and keys as integers that compare as the values do.
 *
 * A code is made from a group's states, without making the value. Comparing two codes gives the
 * same result as the type's default btree operators on the two values. HAVING and LIMIT use codes
 * to leave groups out before their values are made.
 */
#ifndef GPUAGG_AGG_CODES_H
#define GPUAGG_AGG_CODES_H

#include "postgres.h"

#include "aggregates/aggmap.h"
#include "operators/monoid.h"

/* What is known of the code of an aggregate's value. */
typedef enum CodeKind
{
	CODE_VALUE,
	CODE_NULL,   /* the value is NULL */
	CODE_UNKNOWN /* only the value itself can be compared: a numeric that no decimal can represent
				  */
} CodeKind;

/* Returns whether values of this SQL type may have codes. */
extern bool codes_exist_for_type(Oid type);

/*
 * Returns whether all values of the aggregate, whose result is of this type, have codes or are
 * CODE_UNKNOWN.
 */
extern bool codes_exist_for_aggregate(const AggOutput *out, Oid type);

/* Sets *code to the code of the aggregate's value for group g, if it returns CODE_VALUE. */
extern CodeKind codes_of_group(const AggOutput *out, const GroupBatch *groups, int g,
							   gpuagg_i128 *code);

/* Returns the code of a value that is not NULL, of a type with codes other than numeric. */
extern gpuagg_i128 codes_of_value(Oid type, Datum value);

/*
 * For groups in which a fallback aggregate has no rows: sets *slot to the slot whose state (or
 * whose mean) is the value. Sets *counted to the slot whose count is 0 if the value is NULL; -1 if
 * the value is never NULL, or only a mean's own count says so. Returns false if there are no such
 * slots.
 */
extern bool codes_find_slots(const AggOutput *out, int *slot, int *counted);

/*
 * Sets *code to the code of a constant of `type`, not NULL, for comparisons with the aggregate's
 * values, whose type is `with`. Returns false if it has no code among these.
 */
extern bool codes_of_constant(const AggOutput *out, Oid with, Oid type, Datum value,
							  gpuagg_i128 *code);

#endif /* GPUAGG_AGG_CODES_H */
