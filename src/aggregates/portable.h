/*
 * portable.h
 *	  Values of any type, types and collations as bytes that mean the same in another database
 *	  with this extension.
 *
 * Object identifiers below FirstGenbkiObjectId are the same everywhere; other types and collations
 * are written by name. A value is written with the encoding of its text, in the binary form of its
 * type; records are written column by column. Readers check values with the type's own input
 * functions and the constraints of domains, so bytes from anywhere give a value or an error.
 * Readers allocate in the current context.
 */
#ifndef GPUAGG_PORTABLE_H
#define GPUAGG_PORTABLE_H

#include "postgres.h"

#include "fmgr.h"
#include "lib/stringinfo.h"

/* Initialises buf as a message of these bytes, for pq_getmsg functions. */
extern void portable_read(StringInfo buf, bytea *bytes);

/*
 * portable_put_... appends an item to buf; portable_get_... reads it, and raises an error if it is
 * invalid.
 */
extern void portable_put_type(StringInfo buf, Oid type);
extern Oid portable_get_type(StringInfo buf);

/* InvalidOid: no collation */
extern void portable_put_collation(StringInfo buf, Oid collation);
extern Oid portable_get_collation(StringInfo buf);

/* Appends a value of this type, or NULL. */
extern void portable_put_value(StringInfo buf, Oid type, Datum value, bool isnull);

/*
 * A NULL of a domain that does not allow it may still be in a state, because the executor makes
 * such NULLs for outer joins. It is not allowed in input.
 */
typedef enum PortableNulls
{
	PORTABLE_ANY_NULLS,
	PORTABLE_CHECK_NULLS
} PortableNulls;

/*
 * Returns how a deserialization function checks NULLs. Its second argument is not 0 if the bytes
 * are user input (partial_state.c).
 */
static inline PortableNulls
portable_nulls_argument(FunctionCallInfo fcinfo)
{
	return PG_GETARG_DATUM(1) == (Datum) 0 ? PORTABLE_ANY_NULLS : PORTABLE_CHECK_NULLS;
}

/*
 * Reads a number of rows or values, adds it to *sum and returns it. Raises an error if it is
 * negative or the sum overflows.
 */
extern int64 portable_add_rows(StringInfo buf, int64 *sum);

/*
 * Reads a number of rows or values. Raises an error if it is less than `least`, or 2^56 or more:
 * no table has so many, and sums of several such numbers do not overflow.
 */
extern int64 portable_get_rows(StringInfo buf, int64 least);

/* Reads a value of this type. Raises an error if it is invalid. */
extern Datum portable_get_value(StringInfo buf, Oid type, PortableNulls nulls_of_domains,
								bool *isnull);

/*
 * Raises an error for a type whose values may be or contain a gpuagg_state or a gpuagg_row: these
 * could be nested without limit.
 */
extern void portable_check_type(Oid type);

/*
 * Returns whether a type's values in memory mean the same in every session as long as the type
 * exists. False for composite types, whose columns may be altered, for records, whose columns only
 * the session knows, and for types that contain them.
 */
extern bool portable_keeps_form(Oid type);

/* Append and read a name in UTF-8, after its length. The name read is in the server's encoding. */
extern void portable_put_name(StringInfo buf, const char *name);
extern char *portable_get_name(StringInfo buf);

/* Raises the error for invalid bytes in a state; `what` names the item. */
extern void portable_invalid(const char *what);

/* Raises an error if a state has another format than the one that this version reads. */
extern void portable_check_format(int format, int expected);

/*
 * Reads a number of items and returns it. Raises an error if it is above `most`, or the message is
 * too short for so many items of at least `bytes` bytes; `what` names them.
 */
extern int portable_get_count(StringInfo buf, int bytes, int most, const char *what);

#endif /* GPUAGG_PORTABLE_H */
