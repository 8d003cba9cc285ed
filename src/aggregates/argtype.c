/*
 * argtype.c
 *	  Comparison and hash functions for an aggregate's polymorphic argument; see argtype.h.
 */
#include "postgres.h"

#include "utils/builtins.h"
#include "utils/datum.h"

#include "aggregates/argtype.h"
#include "common/compat.h"

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

Datum
argtype_plain(const TypeCacheEntry *type, Datum value)
{
	return type->typlen == -1 ? PointerGetDatum(PG_DETOAST_DATUM_PACKED(value)) : value;
}

Datum
argtype_copy(const TypeCacheEntry *type, Datum value, MemoryContext cxt)
{
	MemoryContext old;
	Datum copy;

	if (type->typbyval)
		return value;
	value = argtype_plain(type, value);
	old = MemoryContextSwitchTo(cxt);
	copy = datumCopy(value, type->typbyval, type->typlen);
	MemoryContextSwitchTo(old);
	return copy;
}

int
argtype_compare_bytes(const TypeCacheEntry *type, Datum a, Datum b)
{
	Size alen = type->typlen;
	Size blen = type->typlen;
	const char *x, *y;
	int c;

	if (type->typbyval)
		return ((int64) a > (int64) b) - ((int64) a < (int64) b);
	x = DatumGetPointer(a);
	y = DatumGetPointer(b);
	if (type->typlen == -1)
	{
		a = argtype_plain(type, a);
		b = argtype_plain(type, b);
		x = VARDATA_ANY(DatumGetPointer(a));
		y = VARDATA_ANY(DatumGetPointer(b));
		alen = VARSIZE_ANY_EXHDR(DatumGetPointer(a));
		blen = VARSIZE_ANY_EXHDR(DatumGetPointer(b));
	}
	else if (type->typlen == -2)
	{
		alen = strlen(x);
		blen = strlen(y);
	}
	c = memcmp(x, y, Min(alen, blen));
	return c != 0 ? c : (alen > blen) - (alen < blen);
}
