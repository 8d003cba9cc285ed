/*
 * argtype.c
 *	  Comparison and hash functions for an aggregate's polymorphic argument; see argtype.h.
 */
#include "postgres.h"

#include "utils/builtins.h"

#include "aggregates/argtype.h"

/*
 * Returns the type cache entry with the fields that the TYPECACHE_ flag names. Raises an error if
 * the type is not known.
 */
static TypeCacheEntry *
argtype_lookup(Oid typid, int flag)
{
	if (!OidIsValid(typid))
		ereport(ERROR,
				(errcode(ERRCODE_INDETERMINATE_DATATYPE),
				 errmsg("could not determine input data type")));
	return lookup_type_cache(typid, flag);
}

TypeCacheEntry *
argtype_comparable(Oid typid)
{
	TypeCacheEntry *type = argtype_lookup(typid, TYPECACHE_CMP_PROC_FINFO);

	if (!OidIsValid(type->cmp_proc_finfo.fn_oid))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_FUNCTION),
				 errmsg("could not identify a comparison function for type %s",
						format_type_be(typid))));
	return type;
}

TypeCacheEntry *
argtype_hashable(Oid typid)
{
	TypeCacheEntry *type = argtype_lookup(typid, TYPECACHE_HASH_EXTENDED_PROC_FINFO);

	if (!OidIsValid(type->hash_extended_proc_finfo.fn_oid))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_FUNCTION),
				 errmsg("could not identify an extended hash function for type %s",
						format_type_be(typid))));
	return type;
}
