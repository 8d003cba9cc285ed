/*
 * value_counts_result.c
 *	  Results of gpu_value_counts, gpu_top_k and gpu_entropy: their final functions.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type_d.h"
#include "fmgr.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"
#include "utils/jsonb.h"
#include "utils/memutils.h"

#include "aggregates/aggmap_internal.h"
#include "aggregates/portable.h"
#include "aggregates/value_counts.h"
#include "common/compat.h"
#include "common/interruptible.h"

PG_FUNCTION_INFO_V1(gpuagg_value_counts_final);
PG_FUNCTION_INFO_V1(gpuagg_top_k_final);
PG_FUNCTION_INFO_V1(gpuagg_entropy_final);

/*
 * A jsonb array of objects while it is made, in the binary form that jsonb.h describes: a header,
 * an entry for each element, and the elements. jsonb_in() would read millions of elements without
 * a check for interrupts, and need several times as much memory and time.
 */
typedef struct ObjectList
{
	StringInfoData entries;
	StringInfoData elements;
	StringInfoData object; /* the one that is added */
	uint32 n;
	bool has_errors; /* objects have the member "error" */
} ObjectList;

/* A member of an object: a key or a value in binary form, as an element of a container. */
typedef struct Member
{
	JEntry type;
	const void *data;
	int len;
	bool aligned; /* to four bytes */
} Member;

static void
append_zeros(StringInfo buf, int n)
{
	enlargeStringInfo(buf, n);
	memset(buf->data + buf->len, 0, n);
	buf->len += n;
}

/* Appends the object to the list. Raises core's error if the list is too long. */
static void
append_object(ObjectList *list)
{
	int before = list->elements.len;
	JEntry entry;

	/* an element's length includes what aligns it */
	append_zeros(&list->elements, INTALIGN(before) - before);
	appendBinaryStringInfo(&list->elements, list->object.data, list->object.len);
	if (list->elements.len > JENTRY_OFFLENMASK)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("total size of jsonb array elements exceeds the maximum of %u bytes",
						JENTRY_OFFLENMASK)));
	/* some entries have the end of their element in place of its length */
	if (list->n % JB_OFFSET_STRIDE == 0)
		entry = JENTRY_HAS_OFF | list->elements.len;
	else
		entry = list->elements.len - before;
	entry |= JENTRY_ISCONTAINER;
	appendBinaryStringInfo(&list->entries, (char *) &entry, sizeof(entry));
	list->n++;
}

/* Returns the list as a jsonb. */
static Jsonb *
list_as_jsonb(const ObjectList *list)
{
	Size size = VARHDRSZ + sizeof(uint32) + list->entries.len + list->elements.len;
	Jsonb *json = palloc(size);

	SET_VARSIZE(json, size);
	json->root.header = JB_FARRAY | list->n;
	memcpy(json->root.children, list->entries.data, list->entries.len);
	memcpy((char *) json->root.children + list->entries.len, list->elements.data,
		   list->elements.len);
	return json;
}

static Member
key_member(const char *key)
{
	return (Member){JENTRY_ISSTRING, key, strlen(key), false};
}

static Member
number_member(int64 number)
{
	Numeric numeric = int64_to_numeric(number);

	return (Member){JENTRY_ISNUMERIC, numeric, VARSIZE(numeric), true};
}

/* Returns a value of any type as to_jsonb() converts it. */
static Member
value_member(FmgrInfo *to_json, Oid type, Datum value)
{
	const Jsonb *json;

	if (type == INT4OID || type == INT8OID || type == INT2OID)
		return number_member(type == INT4OID     ? DatumGetInt32(value) :
								 type == INT8OID ? DatumGetInt64(value) :
												   DatumGetInt16(value));
	json = DatumGetJsonbP(FunctionCall1(to_json, value));
	if (!JB_ROOT_IS_SCALAR(json))
		return (Member){JENTRY_ISCONTAINER, &json->root, VARSIZE(json) - VARHDRSZ, true};
	/* it is in an array of one element */
	return (Member){json->root.children[0] & JENTRY_TYPEMASK, &json->root.children[1],
					JBE_OFFLENFLD(json->root.children[0]), JBE_ISNUMERIC(json->root.children[0])};
}

/* Appends an object with a value, its count and the error to the list. */
static void
append_value(ObjectList *list, Member value, int64 count, int64 error)
{
	StringInfo object = &list->object;
	int pairs = list->has_errors ? 3 : 2;
	uint32 header = JB_FOBJECT | pairs;
	/* keys in the order of jsonb, then values */
	Member members[6] = {key_member("count"), key_member("value"), number_member(count), value};
	JEntry entries[6];
	int head = sizeof(header) + 2 * pairs * sizeof(JEntry);

	if (list->has_errors)
	{
		members[1] = key_member("error");
		members[2] = key_member("value");
		members[3] = number_member(count);
		members[4] = number_member(error);
		members[5] = value;
	}
	resetStringInfo(object);
	append_zeros(object, head);
	for (int i = 0; i < 2 * pairs; i++)
	{
		int before = object->len;

		if (members[i].aligned)
			append_zeros(object, INTALIGN(before) - before);
		appendBinaryStringInfo(object, members[i].data, members[i].len);
		entries[i] = members[i].type | (object->len - before);
	}
	/* the end of the first one is its length */
	entries[0] |= JENTRY_HAS_OFF;
	memcpy(object->data, &header, sizeof(header));
	memcpy(object->data + sizeof(header), entries, 2 * pairs * sizeof(JEntry));
	append_object(list);
}

/* Appends an object with the number of rows that are NULL. */
static void
append_nulls(ObjectList *list, int64 nulls)
{
	append_value(list, (Member){JENTRY_ISNULL, "", 0, false}, nulls, 0);
}

/* Appends the values with the largest counts to the list. */
static void
append_values(ObjectList *list, const ValueCounts *state)
{
	const ValueTable *table = state->table;
	int64 most = state->k > 0 ? state->k : PG_INT64_MAX;
	Oid type = table->type->type_id;
	MemoryContext conversions = value_counts_conversions();
	int64 nulls = state->nulls;
	FmgrInfo to_json;
	ValueEntry **largest = value_table_largest(table, most, &most);
	int64 left = state->k > 0 ? state->k : PG_INT64_MAX;
	MemoryContext old;

	aggmap_init_function(&to_json, F_TO_JSONB, JSONBOID, 1, &type, InvalidOid);
	old = MemoryContextSwitchTo(conversions);
	for (int64 i = 0; i < most && left > 0; i++, left--)
	{
		const ValueEntry *entry = largest[i];

		CHECK_FOR_INTERRUPTS();
		MemoryContextReset(conversions);
		if (nulls > entry->count - value_table_error(table, entry))
		{
			append_nulls(list, nulls);
			nulls = 0;
			if (--left == 0)
				break;
		}
		append_value(list, value_member(&to_json, type, entry->value), entry->count,
					 value_table_error(table, entry));
	}
	if (nulls > 0 && left > 0)
		append_nulls(list, nulls);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(conversions);
}

/*
 * Returns the state in argument 0, or NULL. Raises an error if it is of another aggregate, as
 * gpuagg_finish() may pass.
 */
static ValueCounts *
state_argument(FunctionCallInfo fcinfo, CountsForm form)
{
	ValueCounts *state = PG_ARGISNULL(0) ? NULL : (ValueCounts *) PG_GETARG_POINTER(0);

	if (state && state->form != form)
		portable_invalid("kind");
	if (state)
		value_counts_flush(state);
	return state;
}

/* Final function of gpu_value_counts and gpu_top_k. NULL without rows. */
static Datum
counts_as_json(FunctionCallInfo fcinfo, CountsForm form)
{
	ValueCounts *state = state_argument(fcinfo, form);
	ObjectList list = {.n = 0};

	if (state == NULL)
		PG_RETURN_NULL();
	initStringInfo(&list.entries);
	initStringInfo(&list.elements);
	initStringInfo(&list.object);
	list.has_errors = state->table->errors != NULL;
	append_values(&list, state);
	PG_RETURN_JSONB_P(list_as_jsonb(&list));
}

/* Final function of gpu_value_counts. */
Datum
gpuagg_value_counts_final(PG_FUNCTION_ARGS)
{
	return counts_as_json(fcinfo, FORM_VALUE_COUNTS);
}

/* Final function of gpu_top_k. */
Datum
gpuagg_top_k_final(PG_FUNCTION_ARGS)
{
	return counts_as_json(fcinfo, FORM_TOP_K);
}

/* Comparator of qsort_interruptible */
static int
compare_counts(const void *a, const void *b, void *arg)
{
	int64 x = *(const int64 *) a;
	int64 y = *(const int64 *) b;

	return (x > y) - (x < y);
}

/*
 * Final function of gpu_entropy. NULL if no row counts. Terms are added up in the order of counts,
 * so that the sum does not depend on the order of rows.
 */
Datum
gpuagg_entropy_final(PG_FUNCTION_ARGS)
{
	ValueCounts *state = state_argument(fcinfo, FORM_ENTROPY);
	int64 *counts;
	int64 n;
	double sum = 0;

	if (state == NULL)
		PG_RETURN_NULL();
	n = state->table->n;
	counts = palloc_extended((n + 1) * sizeof(int64), MCXT_ALLOC_HUGE);
	INTERRUPTIBLE_FOR (i, 0, n)
		counts[i] = state->table->entries[i].count;
	qsort_interruptible(counts, n, sizeof(int64), compare_counts, NULL);
	INTERRUPTIBLE_FOR (i, 0, n)
	{
		double share = (double) counts[i] / (double) state->rows;

		sum += share * log2(1 / share);
	}
	PG_RETURN_FLOAT8(sum);
}
