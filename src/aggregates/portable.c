/*
 * portable.c
 *	  Values of any type, types and collations as bytes that mean the same in another database;
 *	  see portable.h.
 *
 * A type's send and receive functions convert text to and from the encoding of the session's
 * client, which differs between sessions. Here they are called with the encoding of the database
 * from which a value comes.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "common/int.h"
#include "common/string.h"
#include "fmgr.h"
#include "funcapi.h"
#include "libpq/pqformat.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/float.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

#include "aggregates/alike.h"
#include "aggregates/portable.h"
#include "common/compat.h"

void
portable_invalid(const char *what)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
			 errmsg("invalid %s in a partial state", what)));
}

void
portable_check_format(int format, int expected)
{
	if (format != expected)
		ereport(
			ERROR,
			(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
			 errmsg("unknown format of a partial state"),
			 errhint("All servers must have the same version of the extension \"%s\".", "gpuagg")));
}

void
portable_read(StringInfo buf, bytea *bytes)
{
	buf->data = VARDATA_ANY(bytes);
	buf->len = buf->maxlen = VARSIZE_ANY_EXHDR(bytes);
	buf->cursor = 0;
}

int
portable_get_count(StringInfo buf, int bytes, int most, const char *what)
{
	int n = (int) pq_getmsgint(buf, 4);

	if (n < 0 || n > most || n > (buf->len - buf->cursor) / bytes)
		portable_invalid(what);
	return n;
}

int64
portable_add_rows(StringInfo buf, int64 *sum)
{
	int64 rows = pq_getmsgint64(buf);

	if (rows < 0 || pg_add_s64_overflow(*sum, rows, sum))
		portable_invalid("count");
	return rows;
}

int64
portable_get_rows(StringInfo buf, int64 least)
{
	int64 rows = pq_getmsgint64(buf);

	if (rows < least || rows >= INT64CONST(1) << 56)
		portable_invalid("count");
	return rows;
}

/*
 * Reads a length and that many bytes. Returns a copy of them with a zero byte added, and sets *n
 * to the length. what: name of the item, for errors.
 */
static char *
get_bytes(StringInfo buf, const char *what, int *n)
{
	char *copy;

	*n = portable_get_count(buf, 1, buf->len, what);
	copy = palloc(*n + 1);
	memcpy(copy, pq_getmsgbytes(buf, *n), *n);
	copy[*n] = '\0';
	return copy;
}

char *
portable_get_name(StringInfo buf)
{
	int n;
	char *name = get_bytes(buf, "name", &n);

	if (strlen(name) != n)
		portable_invalid("name");
	return pg_any_to_server(name, n, PG_UTF8);
}

void
portable_put_name(StringInfo buf, const char *name)
{
	/* an encoding without a conversion to UTF-8 may have names in ASCII */
	if (!pg_is_ascii(name))
		name = pg_server_to_any(name, strlen(name), PG_UTF8);
	pq_sendint32(buf, strlen(name));
	appendBinaryStringInfo(buf, name, strlen(name));
}

/*
 * Returns whether the type is record, whose values each have their own columns, or an array of
 * records.
 */
static bool
is_record(Oid type)
{
	return type == RECORDOID || type == RECORDARRAYOID;
}

/*
 * Returns the row of pg_type, which the caller must release. Raises an error if the type does not
 * exist.
 */
static HeapTuple
type_tuple(Oid type)
{
	HeapTuple tuple = SearchSysCache1(TYPEOID, ObjectIdGetDatum(type));

	/* the type of a stored row may have been dropped */
	if (!HeapTupleIsValid(tuple))
		ereport(
			ERROR,
			(errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("type with OID %u does not exist", type)));
	return tuple;
}

/*
 * Returns whether a type is gpuagg_state or gpuagg_row. They are recognised by the input function,
 * not by name.
 */
static bool
is_partial_type(Form_pg_type form)
{
	HeapTuple tuple;
	bool result = false;

	if (form->typtype != TYPTYPE_BASE || form->oid < FirstNormalObjectId)
		return false;
	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(form->typinput));
	if (HeapTupleIsValid(tuple))
	{
		bool isnull;
		Datum source = SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_prosrc, &isnull);
		char *symbol = isnull ? "" : TextDatumGetCString(source);

		result = strcmp(symbol, "gpuagg_state_in") == 0 || strcmp(symbol, "gpuagg_row_in") == 0;
		ReleaseSysCache(tuple);
	}
	return result;
}

static bool contains_partial_type(Oid type);

/* Returns whether a column of a composite type contains_partial_type(). */
static bool
has_column_of_partial_type(Oid type)
{
	TupleDesc desc = lookup_rowtype_tupdesc(type, -1);
	bool result = false;

	for (int i = 0; i < desc->natts && !result; i++)
		result = !TupleDescAttr(desc, i)->attisdropped &&
			contains_partial_type(TupleDescAttr(desc, i)->atttypid);
	ReleaseTupleDesc(desc);
	return result;
}

/*
 * Returns whether a value of the type may be or contain a gpuagg_state or a gpuagg_row. Records are
 * not checked here: their columns are checked one by one.
 */
static bool
contains_partial_type(Oid type)
{
	HeapTuple tuple;
	FormData_pg_type form;

	if (type < FirstNormalObjectId)
		return false;
	check_stack_depth();
	tuple = type_tuple(type);
	memcpy(&form, GETSTRUCT(tuple), sizeof(form));
	ReleaseSysCache(tuple);
	switch (form.typtype)
	{
		case TYPTYPE_DOMAIN:
			return contains_partial_type(form.typbasetype);
		case TYPTYPE_COMPOSITE:
			return has_column_of_partial_type(form.oid);
		case TYPTYPE_RANGE:
			return contains_partial_type(get_range_subtype(form.oid));
		case TYPTYPE_MULTIRANGE:
			return contains_partial_type(get_range_subtype(get_multirange_range(form.oid)));
		default:
			return is_partial_type(&form) || contains_partial_type(get_element_type(form.oid));
	}
}

void
portable_check_type(Oid type)
{
	if (contains_partial_type(type))
		ereport(
			ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("values of type %s cannot be part of a partial state", format_type_be(type)),
			 errdetail("They may contain a value of type %s or %s.", "gpuagg_state", "gpuagg_row"),
			 errhint("Parallel plans need partial states. Set \"%s\" to 0 to avoid them.",
					 "max_parallel_workers_per_gather")));
}

void
portable_put_type(StringInfo buf, Oid type)
{
	portable_check_type(type);
	if (type < FirstGenbkiObjectId)
	{
		pq_sendint32(buf, type);
		return;
	}
	pq_sendint32(buf, InvalidOid);
	portable_put_name(buf, format_type_extended(type, -1, FORMAT_TYPE_FORCE_QUALIFY));
}

/*
 * Returns a new memory context for reading a small item of a state; the caller deletes it. A state
 * may have millions of items of about ten bytes each.
 */
static MemoryContext
scratch_context(void)
{
	return AllocSetContextCreate(CurrentMemoryContext, "gpuagg value of a state",
								 ALLOCSET_SMALL_SIZES);
}

/*
 * Reads a name and returns the OID of its object. input: the input function of the object's kind,
 * such as regtypein(), which raises an error if there is no such object.
 */
static Oid
get_named_object(StringInfo buf, PGFunction input)
{
	MemoryContext scratch = scratch_context();
	MemoryContext old = MemoryContextSwitchTo(scratch);
	Oid object =
		DatumGetObjectId(DirectFunctionCall1(input, CStringGetDatum(portable_get_name(buf))));

	MemoryContextSwitchTo(old);
	MemoryContextDelete(scratch);
	return object;
}

Oid
portable_get_type(StringInfo buf)
{
	Oid type = pq_getmsgint(buf, 4);

	if (!OidIsValid(type))
		type = get_named_object(buf, regtypein);
	else if (type >= FirstGenbkiObjectId || !SearchSysCacheExists1(TYPEOID, ObjectIdGetDatum(type)))
		portable_invalid("type");
	/*
	 * shell types have no values, nor have most pseudotypes; domains and composites that use these
	 * cannot have input either
	 */
	if (!get_typisdefined(type) ||
		(get_typtype(type) == TYPTYPE_PSEUDO && !is_record(type) && type != UNKNOWNOID &&
		 type != CSTRINGOID && type != VOIDOID))
		portable_invalid("type");
	portable_check_type(type);
	return type;
}

void
portable_put_collation(StringInfo buf, Oid collation)
{
	HeapTuple tuple;
	Form_pg_collation form;

	pq_sendbyte(buf, OidIsValid(collation) && collation >= FirstGenbkiObjectId);
	if (collation < FirstGenbkiObjectId)
	{
		pq_sendint32(buf, collation);
		return;
	}
	tuple = SearchSysCache1(COLLOID, ObjectIdGetDatum(collation));
	if (!HeapTupleIsValid(tuple))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("collation with OID %u does not exist", collation)));
	form = (Form_pg_collation) GETSTRUCT(tuple);
	portable_put_name(buf,
					  quote_qualified_identifier(get_namespace_name(form->collnamespace),
												 NameStr(form->collname)));
	ReleaseSysCache(tuple);
}

/* Returns whether the collation exists and can be used with the database's encoding. */
static bool
is_usable_collation(Oid collation)
{
	HeapTuple tuple = SearchSysCache1(COLLOID, ObjectIdGetDatum(collation));
	int encoding;

	if (!HeapTupleIsValid(tuple))
		return false;
	encoding = ((Form_pg_collation) GETSTRUCT(tuple))->collencoding;
	ReleaseSysCache(tuple);
	return encoding == -1 || encoding == GetDatabaseEncoding();
}

Oid
portable_get_collation(StringInfo buf)
{
	bool named = pq_getmsgbyte(buf) != 0;
	Oid collation = named ?
		/* the name may also be a number */
		get_named_object(buf, regcollationin) :
		pq_getmsgint(buf, 4);

	if (OidIsValid(collation) &&
		((!named && collation >= FirstGenbkiObjectId) || !is_usable_collation(collation)))
		portable_invalid("collation");
	return collation;
}

/* ---- values ----------------------------------------------------------------- */

/*
 * Returns whether a type consists of others that users have made or may alter: composites, and
 * arrays and ranges that users have made.
 */
static bool
is_made_of_others(Form_pg_type form)
{
	return form->typtype == TYPTYPE_COMPOSITE ||
		(form->oid >= FirstGenbkiObjectId &&
		 (OidIsValid(form->typelem) || form->typtype == TYPTYPE_RANGE ||
		  form->typtype == TYPTYPE_MULTIRANGE));
}

bool
portable_keeps_form(Oid type)
{
	HeapTuple tuple = type_tuple(type);
	Form_pg_type form = (Form_pg_type) GETSTRUCT(tuple);
	Oid base = form->typtype == TYPTYPE_DOMAIN ? form->typbasetype : InvalidOid;
	bool result = form->typtype != TYPTYPE_PSEUDO && !is_made_of_others(form);

	ReleaseSysCache(tuple);
	check_stack_depth();
	return OidIsValid(base) ? portable_keeps_form(base) : result;
}

/*
 * Returns whether values of a type have a binary form without identifiers of types and other
 * objects, which may differ between databases. Values without one are written as text: composites,
 * arrays of types that users have made, object identifiers, and types without send and receive
 * functions.
 */
static bool
has_binary_form(Oid type)
{
	HeapTuple tuple = type_tuple(type);
	Form_pg_type form = (Form_pg_type) GETSTRUCT(tuple);
	Oid element = get_element_type(type);
	/*
	 * multirange_recv() allocates memory for as many ranges as it reads, however few bytes there
	 * are
	 */
	bool result = OidIsValid(form->typsend) && OidIsValid(form->typreceive) &&
		!is_made_of_others(form) && form->typtype != TYPTYPE_MULTIRANGE &&
		!alike_is_object_id(type);

	ReleaseSysCache(tuple);
	check_stack_depth();
	return result && (!OidIsValid(element) || has_binary_form(element));
}

/*
 * A value of a type that is no domain, and its bytes: text or binary form, with text in this
 * encoding.
 */
typedef struct Conversion
{
	Oid type;
	int32 typmod; /* -1, except for a domain */
	bool binary;
	int encoding;
	Datum value;
	char *bytes; /* followed by a zero byte */
	int n;
} Conversion;

/* Sets c->bytes and c->n from c->value, by the type's output or send function. */
static void
value_to_bytes(Conversion *c)
{
	Oid fn;
	bool varlena;

	if (c->binary)
	{
		bytea *sent;

		getTypeBinaryOutputInfo(c->type, &fn, &varlena);
		sent = OidSendFunctionCall(fn, c->value);
		c->bytes = VARDATA(sent);
		c->n = VARSIZE(sent) - VARHDRSZ;
		return;
	}
	getTypeOutputInfo(c->type, &fn, &varlena);
	c->bytes = OidOutputFunctionCall(fn, c->value);
	c->n = strlen(c->bytes);
}

/*
 * Sets c->value from c->bytes, by the type's input or receive function. Raises an error if they
 * are invalid.
 */
static void
bytes_to_value(Conversion *c)
{
	StringInfoData buf;
	Oid fn, ioparam;

	if (!c->binary)
	{
		if (strlen(c->bytes) != c->n)
			portable_invalid("value");
		getTypeInputInfo(c->type, &fn, &ioparam);
		c->value = OidInputFunctionCall(fn, pg_any_to_server(c->bytes, c->n, c->encoding), ioparam,
										c->typmod);
		return;
	}
	buf.data = c->bytes;
	buf.len = c->n;
	buf.maxlen = c->n + 1;
	buf.cursor = 0;
	getTypeBinaryInputInfo(c->type, &fn, &ioparam);
	c->value = OidReceiveFunctionCall(fn, &buf, ioparam, c->typmod);
	if (buf.cursor != buf.len)
		portable_invalid("value");
}

/* Sets the client's encoding, in which send and receive functions write and read text. */
static void
set_encoding(int encoding)
{
	if (SetClientEncoding(encoding) < 0 &&
		(PrepareClientEncoding(encoding) < 0 || SetClientEncoding(encoding) < 0))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("conversion between %s and %s is not supported",
						pg_encoding_to_char(encoding), GetDatabaseEncodingName())));
}

/*
 * Calls convert(c), for text that contains names of objects, with search_path set to pg_catalog.
 * So names are written with their schemas, and are read the same way in every session.
 */
static void
convert_names(void (*convert)(Conversion *), Conversion *c)
{
	int level = NewGUCNestLevel();

	(void) set_config_option("search_path", "pg_catalog", PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
	convert(c);
	AtEOXact_GUC(true, level);
}

/*
 * Calls convert(c), which is value_to_bytes() or bytes_to_value(). Meanwhile settings are such
 * that text has all of a value, and for a binary form the client's encoding is that of the bytes.
 * Text may be of a type that contains domains. Their constraints may call functions of users,
 * which must see the session as it is and may send messages to the client. Therefore only the
 * settings that are needed change: reading text needs only IntervalStyle.
 */
static void
convert_value(void (*convert)(Conversion *), Conversion *c)
{
	int client = pg_get_client_encoding();
	int digits = extra_float_digits;
	int dates = DateStyle;
	int intervals = IntervalStyle;
	bool writes = convert == value_to_bytes;
	bool encodes;
	bool styles;
	bool names;

	c->typmod = -1;
	c->type = getBaseTypeAndTypmod(c->type, &c->typmod);
	c->binary = has_binary_form(c->type);
	encodes = c->binary && client != c->encoding;
	styles = !c->binary &&
		(intervals != INTSTYLE_POSTGRES || (writes && (digits <= 0 || dates != USE_ISO_DATES)));
	names = !c->binary && alike_contains_object_ids(c->type);
	if (!encodes && !styles && !names)
	{
		convert(c);
		return;
	}
	PG_TRY();
	{
		if (encodes)
			set_encoding(c->encoding);
		if (styles)
			IntervalStyle = INTSTYLE_POSTGRES;
		if (styles && writes)
		{
			extra_float_digits = Max(digits, 1);
			DateStyle = USE_ISO_DATES;
		}
		if (names)
			convert_names(convert, c);
		else
			convert(c);
	}
	PG_FINALLY();
	{
		if (styles)
			IntervalStyle = intervals;
		if (styles && writes)
		{
			extra_float_digits = digits;
			DateStyle = dates;
		}
		if (encodes)
			SetClientEncoding(client);
	}
	PG_END_TRY();
}

/*
 * Appends a record: its type and, for an anonymous record, its columns, each with name, type,
 * collation and value. A record's typmod is not written, because it has no meaning in another
 * session.
 */
static void
put_record(StringInfo buf, Datum value)
{
	HeapTupleHeader header = DatumGetHeapTupleHeader(value);
	Oid type = HeapTupleHeaderGetTypeId(header);
	HeapTupleData tuple = {.t_len = HeapTupleHeaderGetDatumLength(header), .t_data = header};
	TupleDesc desc;
	Datum *values;
	bool *nulls;

	portable_put_type(buf, type);
	if (type != RECORDOID)
	{
		portable_put_value(buf, type, value, false);
		return;
	}
	desc = lookup_rowtype_tupdesc(type, HeapTupleHeaderGetTypMod(header));
	values = palloc(sizeof(Datum) * (desc->natts + 1));
	nulls = palloc(sizeof(bool) * (desc->natts + 1));
	ItemPointerSetInvalid(&tuple.t_self);
	heap_deform_tuple(&tuple, desc, values, nulls);
	pq_sendint32(buf, desc->natts);
	for (int i = 0; i < desc->natts; i++)
	{
		portable_put_name(buf, NameStr(TupleDescAttr(desc, i)->attname));
		portable_put_type(buf, TupleDescAttr(desc, i)->atttypid);
		portable_put_collation(buf, TupleDescAttr(desc, i)->attcollation);
		portable_put_value(buf, TupleDescAttr(desc, i)->atttypid, values[i], nulls[i]);
	}
	ReleaseTupleDesc(desc);
}

/* Reads what put_record() writes, and returns the record. Raises an error if it is invalid. */
static Datum
get_record(StringInfo buf, PortableNulls nulls_of_domains)
{
	Oid type = portable_get_type(buf);
	TupleDesc desc;
	HeapTuple tuple;
	Datum value;
	Datum *values;
	bool *nulls;
	int n;

	if (type != RECORDOID)
	{
		bool isnull;

		if (get_typtype(type) != TYPTYPE_COMPOSITE)
			portable_invalid("record");
		value = portable_get_value(buf, type, nulls_of_domains, &isnull);
		if (isnull)
			portable_invalid("record");
		return value;
	}
	/* a column needs at least the length of its name, a type, a collation and one byte */
	n = portable_get_count(buf, 4 + 4 + 5 + 1, MaxTupleAttributeNumber, "record");
	desc = CreateTemplateTupleDesc(n);
	values = palloc(sizeof(Datum) * (n + 1));
	nulls = palloc(sizeof(bool) * (n + 1));
	for (int i = 0; i < n; i++)
	{
		char *name = portable_get_name(buf);

		/* a longer name would be truncated, possibly within a character */
		if (strlen(name) >= NAMEDATALEN)
			portable_invalid("name");
		type = portable_get_type(buf);
		TupleDescInitEntry(desc, i + 1, name, type, -1, 0);
		pfree(name);
		TupleDescInitEntryCollation(desc, i + 1, portable_get_collation(buf));
		values[i] = portable_get_value(buf, type, nulls_of_domains, &nulls[i]);
	}
	compat_finalize_tuple_desc(desc);
	BlessTupleDesc(desc);
	tuple = heap_form_tuple(desc, values, nulls);
	/* allocated separately, because a state may free its values */
	value = heap_copy_tuple_as_datum(tuple, desc);
	heap_freetuple(tuple);
	FreeTupleDesc(desc);
	pfree(values);
	pfree(nulls);
	return value;
}

/*
 * Appends an array of records: the number of dimensions, their lengths and lower bounds, and the
 * elements.
 */
static void
put_records(StringInfo buf, Datum value)
{
	ArrayType *array = DatumGetArrayTypeP(value);
	Datum *values;
	bool *nulls;
	int n;

	pq_sendint32(buf, ARR_NDIM(array));
	for (int i = 0; i < ARR_NDIM(array); i++)
	{
		pq_sendint32(buf, ARR_DIMS(array)[i]);
		pq_sendint32(buf, ARR_LBOUND(array)[i]);
	}
	deconstruct_array(array, RECORDOID, -1, false, TYPALIGN_DOUBLE, &values, &nulls, &n);
	for (int i = 0; i < n; i++)
		portable_put_value(buf, RECORDOID, values[i], nulls[i]);
}

/* Reads what put_records() writes, and returns the array. Raises an error if it is invalid. */
static Datum
get_records(StringInfo buf, PortableNulls nulls_of_domains)
{
	int ndims = portable_get_count(buf, 8, MAXDIM, "array");
	int dims[MAXDIM], bounds[MAXDIM], end;
	Datum *values = NULL;
	bool *nulls = NULL;
	int n, capacity = 0;

	for (int i = 0; i < ndims; i++)
	{
		dims[i] = (int) pq_getmsgint(buf, 4);
		bounds[i] = (int) pq_getmsgint(buf, 4);
		if (dims[i] <= 0 || pg_add_s32_overflow(bounds[i], dims[i], &end))
			portable_invalid("array");
	}
	n = ArrayGetNItems(ndims, dims);
	/* each element has at least one byte */
	if (n > buf->len - buf->cursor)
		portable_invalid("array");
	for (int i = 0; i < n; i++)
	{
		/*
		 * grow as elements are read: each of several nested arrays may claim all of the remaining
		 * bytes
		 */
		if (i == capacity)
		{
			capacity = Min(i == 0 ? 16 : 2 * i, n);
			values = i == 0 ? palloc(sizeof(Datum) * capacity) :
							  repalloc(values, sizeof(Datum) * capacity);
			nulls =
				i == 0 ? palloc(sizeof(bool) * capacity) : repalloc(nulls, sizeof(bool) * capacity);
		}
		values[i] = portable_get_value(buf, RECORDOID, nulls_of_domains, &nulls[i]);
	}
	return PointerGetDatum(construct_md_array(values, nulls, ndims, dims, bounds, RECORDOID, -1,
											  false, TYPALIGN_DOUBLE));
}

/*
 * The first byte of a value. Its bytes have text in the database's encoding, so that writing never
 * fails: states also go to other processes. A reader in a database with another encoding converts
 * the text, and may fail as a client with that encoding would.
 */
#define VALUE_UTF8 0
#define VALUE_NULL 1
#define VALUE_ENCODINGS 2 /* plus the number of another encoding */

void
portable_put_value(StringInfo buf, Oid type, Datum value, bool isnull)
{
	Conversion c = {.type = type, .encoding = GetDatabaseEncoding(), .value = value};

	pq_sendbyte(buf,
				isnull                    ? VALUE_NULL :
					c.encoding == PG_UTF8 ? VALUE_UTF8 :
											VALUE_ENCODINGS + c.encoding);
	if (isnull)
		return;
	/* arrays of records have many elements */
	CHECK_FOR_INTERRUPTS();
	check_stack_depth();
	if (is_record(type))
	{
		(type == RECORDOID ? put_record : put_records)(buf, value);
		return;
	}
	convert_value(value_to_bytes, &c);
	pq_sendint32(buf, c.n);
	appendBinaryStringInfo(buf, c.bytes, c.n);
}

/* Raises an error if the type is a domain and the value violates one of its constraints. */
static void
check_domain(Oid type, Datum value, bool isnull)
{
	MemoryContext check;

	if (get_typtype(type) != TYPTYPE_DOMAIN)
		return;
	/* domain_check() allocates the constraints and a context for them here, about 10 kB */
	check = scratch_context();
	domain_check(value, isnull, type, NULL, check);
	MemoryContextDelete(check);
}

Datum
portable_get_value(StringInfo buf, Oid type, PortableNulls nulls_of_domains, bool *isnull)
{
	int form = pq_getmsgbyte(buf);
	Conversion c = {.type = type,
					.encoding = form == VALUE_UTF8 ? PG_UTF8 : form - VALUE_ENCODINGS};

	/* arrays of records have many elements */
	CHECK_FOR_INTERRUPTS();
	*isnull = form == VALUE_NULL;
	if (*isnull)
	{
		if (nulls_of_domains == PORTABLE_CHECK_NULLS)
			check_domain(type, (Datum) 0, true);
		return (Datum) 0;
	}
	if (!PG_VALID_BE_ENCODING(c.encoding))
		portable_invalid("encoding");
	/* also for constraints of domains that read a state */
	check_stack_depth();
	if (is_record(type))
		return type == RECORDOID ? get_record(buf, nulls_of_domains) :
								   get_records(buf, nulls_of_domains);
	c.bytes = get_bytes(buf, "value", &c.n);
	convert_value(bytes_to_value, &c);
	check_domain(type, c.value, false);
	return c.value;
}
