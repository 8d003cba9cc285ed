/*
 * alike.h
 *	  Which values mean the same in every database: what may be hashed, compared and counted on one
 * server for another one.
 *
 * A database has its own encoding of text and its own identifiers (OIDs) of objects.  A state may
 * leave a server only if neither shows in it.
 */
#ifndef GPUAGG_ALIKE_H
#define GPUAGG_ALIKE_H

#include "postgres.h"

/*
 * Are values of the type identifiers of objects, as regclass and regrole, or are such among its
 * elements, bounds or columns? They are ordered and hashed by OIDs, which are of one database; as
 * text they are names.
 */
extern bool alike_identifies_objects(Oid type);

/* The same of the type itself. */
extern bool alike_is_identifier(Oid type);

/* Has an equal value of the type, with this collation, the same hash in all databases? */
extern bool alike_hash(Oid type, Oid collation);

/*
 * The bytes that gpu_approx_count_distinct hashes of a text that is not UTF-8 in memory: UTF-8, and
 * of char(n) without blanks at the end.  NULL for all other values: those of types that are no
 * text, in databases in UTF-8 or without an encoding, in ASCII, and with characters that UTF-8 has
 * not.
 */
extern char *alike_utf8(Oid type, Datum value, int *len);

#endif /* GPUAGG_ALIKE_H */
