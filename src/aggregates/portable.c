/*
 * portable.c
 *	  Values of any type, types and collations as bytes that mean the same in another database.
 *
 * A type's send and receive functions convert text to and from the encoding of the session's
 * client, which is another one for each node's session: here they are called with the encoding of
 * the database that a value comes from.
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

void
portable_invalid(const char *what)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
			 errmsg("invalid %s in a partial state", what)));
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

/* A copy of the next bytes, whose number stands before them, with a zero behind. */
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

/* Names are UTF-8 in all databases. */
void
portable_put_name(StringInfo buf, const char *name)
{
	/* an encoding without a conversion to UTF-8 may have names in ASCII */
	if (!pg_is_ascii(name))
		name = pg_server_to_any(name, strlen(name), PG_UTF8);
	pq_sendint32(buf, strlen(name));
	appendBinaryStringInfo(buf, name, strlen(name));
}

/* Records, of which each has its own columns, and arrays of them. */
static bool
is_record(Oid type)
{
	return type == RECORDOID || type == RECORDARRAYOID;
}

static HeapTuple
type_tuple(Oid type)
{
	HeapTuple tuple = SearchSysCache1(TYPEOID, ObjectIdGetDatum(type));

	/* one of a stored row may have been dropped */
	if (!HeapTupleIsValid(tuple))
		ereport(
			ERROR,
			(errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("type with OID %u does not exist", type)));
	return tuple;
}

/* Is it gpuagg_state or gpuagg_row?  Known by the input function, whatever the names are. */
static bool
is_part(Form_pg_type form)
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

static bool has_parts(Oid type);

static bool
has_column_of_parts(Oid type)
{
	TupleDesc desc = lookup_rowtype_tupdesc(type, -1);
	bool result = false;

	for (int i = 0; i < desc->natts && !result; i++)
		result =
			!TupleDescAttr(desc, i)->attisdropped && has_parts(TupleDescAttr(desc, i)->atttypid);
	ReleaseTupleDesc(desc);
	return result;
}

/*
 * May a value of the type be or have a gpuagg_state or a gpuagg_row?  Not records, whose columns
 * are looked at one by one.
 */
static bool
has_parts(Oid type)
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
			return has_parts(form.typbasetype);
		case TYPTYPE_COMPOSITE:
			return has_column_of_parts(form.oid);
		case TYPTYPE_RANGE:
			return has_parts(get_range_subtype(form.oid));
		case TYPTYPE_MULTIRANGE:
			return has_parts(get_range_subtype(get_multirange_range(form.oid)));
		default:
			return is_part(&form) || has_parts(get_element_type(form.oid));
	}
}

void
portable_check_type(Oid type)
{
	if (has_parts(type))
		ereport(
			ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("values of type %s cannot be part of a partial state", format_type_be(type)),
			 errdetail("They may have a value of type %s or %s in them.", "gpuagg_state",
					   "gpuagg_row"),
			 errhint("A parallel plan has partial states: set \"%s\" to 0 if the query needs none.",
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
 * Memory that reading a small part of a state takes: a state may have millions of such parts, each
 * of some ten bytes.
 */
static MemoryContext
scratch_context(void)
{
	return AllocSetContextCreate(CurrentMemoryContext, "gpuagg value of a state",
								 ALLOCSET_SMALL_SIZES);
}

/*
 * The object with the next name, by the input function of its kind, such as regtypein(), which
 * parses it.
 */
static Oid
get_named(StringInfo buf, PGFunction input)
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
		type = get_named(buf, regtypein);
	else if (type >= FirstGenbkiObjectId || !SearchSysCacheExists1(TYPEOID, ObjectIdGetDatum(type)))
		portable_invalid("type");
	/*
	 * shell types have no values, nor have most pseudotypes; those of domains and composites may
	 * have no input here
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

/* Is there such a collation, for strings of the database's encoding? */
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
		/* which may be a number, too */
		get_named(buf, regcollationin) :
		pq_getmsgint(buf, 4);

	if (OidIsValid(collation) &&
		((!named && collation >= FirstGenbkiObjectId) || !is_usable_collation(collation)))
		portable_invalid("collation");
	return collation;
}

/* ---- values ----------------------------------------------------------------- */

/*
 * Is a type made of others that users made or may alter?  Composites, and arrays and ranges that
 * users made.
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
 * Have values of a type a binary form without identifiers of types and other objects, which may
 * differ between databases? Composites, arrays of types that users made, identifiers themselves,
 * and those of types without such a form travel as text.
 */
static bool
has_binary_form(Oid type)
{
	HeapTuple tuple = type_tuple(type);
	Form_pg_type form = (Form_pg_type) GETSTRUCT(tuple);
	Oid element = get_element_type(type);
	/*
	 * multirange_recv() takes memory for as many ranges as it is told, however few bytes there are
	 */
	bool result = OidIsValid(form->typsend) && OidIsValid(form->typreceive) &&
		!is_made_of_others(form) && form->typtype != TYPTYPE_MULTIRANGE &&
		!alike_is_identifier(type);

	ReleaseSysCache(tuple);
	check_stack_depth();
	return result && (!OidIsValid(element) || has_binary_form(element));
}

/*
 * A value of a type that is no domain, and its bytes: text, or the binary form; text in them is of
 * this encoding.
 */
typedef struct Conversion
{
	Oid type;
	int32 typmod; /* -1, but of a domain */
	bool binary;
	int encoding;
	Datum value;
	char *bytes; /* with a zero behind them */
	int n;
} Conversion;

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

/* Lets binary forms have text of this encoding. */
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
 * Converts text that has names of objects in it, which has their schemas where it is made, whatever
 * the session's path is.
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
 * Converts while text says all of a value, whatever the session shows, and, for a binary form,
 * while the encoding of the client is that of the bytes.  What is read as text may have domains in
 * it, whose conditions are functions of users: these see the session as it is, and what they report
 * to the client is in its encoding.  Only the style of intervals is one that text is read by.
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
	names = !c->binary && alike_identifies_objects(c->type);
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
 * A record: its type and, if that is none with a name, its columns, each with name, type, collation
 * and value.  A record's number among those of the session (its typmod) would mean another one
 * elsewhere.
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
	/* a column has the length of its name, a type, a collation and a byte at least */
	n = portable_get_count(buf, 4 + 4 + 5 + 1, MaxTupleAttributeNumber, "record");
	desc = CreateTemplateTupleDesc(n);
	values = palloc(sizeof(Datum) * (n + 1));
	nulls = palloc(sizeof(bool) * (n + 1));
	for (int i = 0; i < n; i++)
	{
		char *name = portable_get_name(buf);

		/* one that is too long would be cut within a character */
		if (strlen(name) >= NAMEDATALEN)
			portable_invalid("name");
		type = portable_get_type(buf);
		TupleDescInitEntry(desc, i + 1, name, type, -1, 0);
		pfree(name);
		TupleDescInitEntryCollation(desc, i + 1, portable_get_collation(buf));
		values[i] = portable_get_value(buf, type, nulls_of_domains, &nulls[i]);
	}
	BlessTupleDesc(desc);
	tuple = heap_form_tuple(desc, values, nulls);
	/* a chunk of its own, as values are that a state may free */
	value = heap_copy_tuple_as_datum(tuple, desc);
	heap_freetuple(tuple);
	FreeTupleDesc(desc);
	pfree(values);
	pfree(nulls);
	return value;
}

/*
 * An array of records: the number of its dimensions, their lengths and lower bounds, and the
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

static Datum
get_records(StringInfo buf, PortableNulls nulls_of_domains)
{
	int ndims = portable_get_count(buf, 8, MAXDIM, "array");
	int dims[MAXDIM], bounds[MAXDIM], end;
	Datum *values = NULL;
	bool *nulls = NULL;
	int n, room = 0;

	for (int i = 0; i < ndims; i++)
	{
		dims[i] = (int) pq_getmsgint(buf, 4);
		bounds[i] = (int) pq_getmsgint(buf, 4);
		if (dims[i] <= 0 || pg_add_s32_overflow(bounds[i], dims[i], &end))
			portable_invalid("array");
	}
	n = ArrayGetNItems(ndims, dims);
	/* each has a byte at least */
	if (n > buf->len - buf->cursor)
		portable_invalid("array");
	for (int i = 0; i < n; i++)
	{
		/* as they are read: arrays within arrays may say that each has all of the bytes */
		if (i == room)
		{
			room = Min(i == 0 ? 16 : 2 * i, n);
			values = i == 0 ? palloc(sizeof(Datum) * room) : repalloc(values, sizeof(Datum) * room);
			nulls = i == 0 ? palloc(sizeof(bool) * room) : repalloc(nulls, sizeof(bool) * room);
		}
		values[i] = portable_get_value(buf, RECORDOID, nulls_of_domains, &nulls[i]);
	}
	return PointerGetDatum(construct_md_array(values, nulls, ndims, dims, bounds, RECORDOID, -1,
											  false, TYPALIGN_DOUBLE));
}

/*
 * What a value begins with.  Its bytes have text as the database has it, which is never an error,
 * as states also go to other processes: who reads them in a database of another encoding converts
 * it, or cannot, like a client of that encoding.
 */
#define VALUE_UTF8 0
#define VALUE_NULL 1
#define VALUE_ENCODINGS 2 /* and the number of another encoding */

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
	/* arrays of records have many */
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

/* What the input function of a domain checks, beside what that of its base type does. */
static void
check_domain(Oid type, Datum value, bool isnull)
{
	MemoryContext check;

	if (get_typtype(type) != TYPTYPE_DOMAIN)
		return;
	/* domain_check() keeps the conditions there, and a context to evaluate them: some 10 kB */
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

	/* arrays of records have many */
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
	/* also where a domain's condition reads a state */
	check_stack_depth();
	if (is_record(type))
		return type == RECORDOID ? get_record(buf, nulls_of_domains) :
								   get_records(buf, nulls_of_domains);
	c.bytes = get_bytes(buf, "value", &c.n);
	convert_value(bytes_to_value, &c);
	check_domain(type, c.value, false);
	return c.value;
}
