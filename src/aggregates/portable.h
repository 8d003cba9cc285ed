/*
 * portable.h
 *	  Values of any type, types and collations as bytes that mean the same in another database of
 * the same extension.
 *
 * Object identifiers below FirstGenbkiObjectId are the same everywhere; types and collations with
 * others travel by name. Values travel with the encoding of their text, in the binary form of their
 * type, records column by column; what a reader gets is checked by the type's own input functions,
 * and domains' constraints, so that bytes from anywhere are a value or an error. Readers allocate
 * in the current context.
 */
#ifndef GPUAGG_PORTABLE_H
#define GPUAGG_PORTABLE_H

#include "postgres.h"

#include "lib/stringinfo.h"

/* Makes a message of bytes, to be read by pq_getmsg functions. */
extern void portable_read(StringInfo buf, bytea *bytes);

extern void portable_put_type(StringInfo buf, Oid type);
extern Oid portable_get_type(StringInfo buf);

/* InvalidOid: none */
extern void portable_put_collation(StringInfo buf, Oid collation);
extern Oid portable_get_collation(StringInfo buf);

extern void portable_put_value(StringInfo buf, Oid type, Datum value, bool isnull);

/*
 * A null of a domain that allows none may be in a state all the same, as the executor makes such
 * for outer joins; but not in what comes as input.
 */
typedef enum PortableNulls
{
	PORTABLE_ANY_NULLS,
	PORTABLE_CHECK_NULLS
} PortableNulls;

extern Datum portable_get_value(StringInfo buf, Oid type, PortableNulls nulls_of_domains,
								bool *isnull);

/*
 * An error for a type whose values may be or have a gpuagg_state or a gpuagg_row, as those could be
 * nested without an end.
 */
extern void portable_check_type(Oid type);

/*
 * Do a type's values in memory mean the same in every session, as long as the type is there?  Not
 * composites, whose columns may be altered, records, whose columns are known to the session alone,
 * and what may be made of these.
 */
extern bool portable_keeps_form(Oid type);

/* A name, with its length before it; in UTF-8. */
extern void portable_put_name(StringInfo buf, const char *name);
extern char *portable_get_name(StringInfo buf);

/* Raises the error of bytes that are not what they should be; `what` names that. */
extern void portable_invalid(const char *what);

/* A number of `bytes` each, which must be there to be read. */
extern int portable_get_count(StringInfo buf, int bytes, int most, const char *what);

#endif /* GPUAGG_PORTABLE_H */
