/*
 * alike.c
 *	  Which values mean the same in every database; see alike.h.
 */
#include "postgres.h"

#include "access/transam.h"
#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

#include "aggregates/alike.h"
#include "common/compat.h"

bool
alike_is_object_id(Oid type)
{
	switch (type)
	{
		case REGPROCOID:
		case REGPROCEDUREOID:
		case REGOPEROID:
		case REGOPERATOROID:
		case REGCLASSOID:
		case REGTYPEOID:
		case REGCONFIGOID:
		case REGDICTIONARYOID:
		case REGNAMESPACEOID:
		case REGROLEOID:
		case REGCOLLATIONOID:
		case ACLITEMOID:
			return true;
		default:
			return false;
	}
}

/*
 * Returns the type that values of an array, range or multirange consist of; InvalidOid for other
 * types.
 */
static Oid
component_type(Oid type)
{
	Oid component = get_element_type(type);

	if (!OidIsValid(component))
		component = get_range_subtype(type);
	return OidIsValid(component) ? component : get_multirange_range(type);
}

bool
alike_contains_object_ids(Oid type)
{
	Oid component;
	TupleDesc desc;
	bool found = false;

	check_stack_depth();
	type = getBaseType(type);
	component = component_type(type);
	if (OidIsValid(component))
		return alike_contains_object_ids(component);
	if (get_typtype(type) != TYPTYPE_COMPOSITE)
		return alike_is_object_id(type);
	desc = lookup_rowtype_tupdesc(type, -1);
	for (int i = 0; i < desc->natts && !found; i++)
		found = !TupleDescAttr(desc, i)->attisdropped &&
			alike_contains_object_ids(TupleDescAttr(desc, i)->atttypid);
	ReleaseTupleDesc(desc);
	return found;
}

/* ---- hashes ------------------------------------------------------------------ */

static bool
is_text(Oid type)
{
	return type == TEXTOID || type == VARCHAROID || type == BPCHAROID || type == NAMEOID;
}

/*
 * Returns whether values of the type are hashed by their value: numbers, times, bytes, addresses,
 * and arrays or ranges of these.
 */
static bool
hashes_by_value(Oid type)
{
	Oid component;

	check_stack_depth();
	type = getBaseType(type);
	component = component_type(type);
	if (OidIsValid(component))
		return hashes_by_value(component);
	switch (type)
	{
		case BOOLOID:
		case INT2OID:
		case INT4OID:
		case INT8OID:
		case OIDOID:
		case XIDOID:
		case XID8OID:
		case CIDOID:
		case TIDOID:
		case FLOAT4OID:
		case FLOAT8OID:
		case NUMERICOID:
		case DATEOID:
		case TIMEOID:
		case TIMETZOID:
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
		case INTERVALOID:
		case BYTEAOID:
		case UUIDOID:
		case INETOID:
		case CIDROID:
		case MACADDROID:
		case MACADDR8OID:
		case LSNOID:
			return true;
		default:
			return false;
	}
}

bool
alike_has_same_hash(Oid type, Oid collation)
{
	type = getBaseType(type);
	if (!is_text(type))
		return hashes_by_value(type);
	/*
	 * A database without an encoding shows other servers' bytes unchanged. The hash under a
	 * nondeterministic collation depends on the version of ICU.
	 */
	return GetDatabaseEncoding() != PG_SQL_ASCII &&
		(!OidIsValid(collation) || get_collation_isdeterministic(collation));
}

char *
alike_utf8(Oid type, Datum value, int *len)
{
	int encoding = GetDatabaseEncoding();
	Oid conversion;
	const char *bytes;
	char *utf8;
	Size size;
	int n;

	if (encoding == PG_UTF8 || encoding == PG_SQL_ASCII)
		return NULL;
	if (type >= FirstGenbkiObjectId)
		type = getBaseType(type);
	if (!is_text(type))
		return NULL;
	if (type == NAMEOID)
	{
		bytes = NameStr(*DatumGetName(value));
		n = strlen(bytes);
	}
	else
	{
		struct varlena *text = PG_DETOAST_DATUM_PACKED(value);

		bytes = VARDATA_ANY(text);
		n = VARSIZE_ANY_EXHDR(text);
		while (type == BPCHAROID && n > 0 && bytes[n - 1] == ' ')
			n--;
	}
	for (*len = 0; *len < n && !IS_HIGHBIT_SET(bytes[*len]); (*len)++)
		;
	conversion = *len < n ? FindDefaultConversionProc(encoding, PG_UTF8) : InvalidOid;
	if (!OidIsValid(conversion))
		return NULL;
	size = (Size) n * MAX_CONVERSION_GROWTH + 1;
	utf8 = palloc_extended(size, MCXT_ALLOC_HUGE);
	if (pg_do_encoding_conversion_buf(
			conversion, encoding, PG_UTF8, (unsigned char *) unconstify(char *, bytes), n,
			(unsigned char *) utf8, size > INT_MAX ? INT_MAX : (int) size, true) != n)
	{
		pfree(utf8);
		return NULL;
	}
	*len = strlen(utf8);
	return utf8;
}
