/*
 * alike.h
 *	  Which values mean the same in every database, so that one server may hash, compare and count
 *	  them for another one.
 *
 * A database has its own encoding of text and its own identifiers (OIDs) of objects. A state may
 * leave a server only if it depends on neither.
 */
#ifndef GPUAGG_ALIKE_H
#define GPUAGG_ALIKE_H

#include "postgres.h"

/*
 * Returns whether values of the type identify objects, as regclass and regrole do, or contain such
 * values in elements, bounds or columns. They are ordered and hashed by OIDs, which have no meaning
 * in another database. As text they are names.
 */
extern bool alike_contains_object_ids(Oid type);

/* Returns the same for the type itself, without looking at its elements. */
extern bool alike_is_object_id(Oid type);

/*
 * Returns whether equal values of the type, with this collation, have the same hash in all
 * databases.
 */
extern bool alike_has_same_hash(Oid type, Oid collation);

/*
 * Returns the bytes that gpu_approx_count_distinct hashes for a text: its UTF-8, for char(n)
 * without blanks at the end. Returns NULL if the value's own bytes are hashed: types that are not
 * text, databases in UTF-8 or without an encoding, ASCII, and characters that UTF-8 does not have.
 */
extern char *alike_utf8(Oid type, Datum value, int *len);

#endif /* GPUAGG_ALIKE_H */
