/*
 * top_n.c
 *	  gpu_max_n, gpu_min_n, gpu_argmax_n and gpu_argmin_n.
 *
 * gpu_max_n(x, n) returns the n largest values in descending order, gpu_min_n the n smallest ones
 * in ascending order; NULLs do not count. gpu_argmax_n(value, key, n) returns the values of the n
 * rows with the largest keys, as gpu_argmax does for one row: rows with a NULL key do not count,
 * and rows with equal keys are in the order of their values, NULL last. Values that are equal but
 * not the same, such as -0 and 0 or 1.0 and 1.00, are ordered by their bytes. So results do not
 * depend on the order of rows, and states can be combined.
 *
 * The state is an array of at most n entries, the best first. A row is compared with the last entry
 * first, so that most rows cost one comparison.
 *
 * The engines have no monoid for it: it is a fallback aggregate.
 */
#include "postgres.h"

#include "fmgr.h"
#include "libpq/pqformat.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/float.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

#include "aggregates/aggcall.h"
#include "aggregates/argtype.h"
#include "aggregates/portable.h"
#include "aggregates/top_n.h"
#include "common/compat.h"

#define MAX_N 1000
#define FIRST_CAPACITY 4

/* The aggregate is a sum of these. */
#define FORM_SMALLEST 1
#define FORM_OF_KEYS 2 /* entries are ordered by keys, and have values beside them */

static const char *const form_names[] = {"gpu_max_n", "gpu_min_n", "gpu_argmax_n", "gpu_argmin_n"};

/*
 * The transition state. The types are in it, because combine and serialize functions do not get
 * them as arguments, and may not get a collation.
 */
typedef struct TopState
{
	Oid keytype;
	Oid valuetype; /* InvalidOid without values */
	Oid collation;
	int form;
	int n;
	int count;
	int capacity;
	Datum *keys;           /* varlena keys and values are not compressed or out of line */
	NullableDatum *values; /* NULL without values */
} TopState;

/* How keys are compared. */
typedef enum KeyOrder
{
	ORDER_INT16,
	ORDER_INT32,
	ORDER_INT64,
	ORDER_FLOAT4,
	ORDER_FLOAT8,
	ORDER_CALL /* by the type's comparison function */
} KeyOrder;

/* The two types, cached in fn_extra. States from other servers may have different types each. */
typedef struct TopTypes
{
	TypeCacheEntry *key;
	TypeCacheEntry *value; /* NULL without values */
	KeyOrder order;
} TopTypes;

PG_FUNCTION_INFO_V1(gpuagg_max_n_transfn);
PG_FUNCTION_INFO_V1(gpuagg_min_n_transfn);
PG_FUNCTION_INFO_V1(gpuagg_argmax_n_transfn);
PG_FUNCTION_INFO_V1(gpuagg_argmin_n_transfn);
PG_FUNCTION_INFO_V1(gpuagg_max_n_final);
PG_FUNCTION_INFO_V1(gpuagg_min_n_final);
PG_FUNCTION_INFO_V1(gpuagg_argmax_n_final);
PG_FUNCTION_INFO_V1(gpuagg_argmin_n_final);
PG_FUNCTION_INFO_V1(gpuagg_top_n_combine);
PG_FUNCTION_INFO_V1(gpuagg_top_n_serialize);
PG_FUNCTION_INFO_V1(gpuagg_top_n_deserialize);

/* ---- comparisons ------------------------------------------------------------ */

/* Returns how values are compared whose comparison function is `cmp`. */
static KeyOrder
order_of_function(Oid cmp)
{
	switch (cmp)
	{
		case F_BTINT2CMP:
			return ORDER_INT16;
		case F_BTINT4CMP:
		case F_DATE_CMP:
			return ORDER_INT32;
		case F_BTINT8CMP:
		case F_TIME_CMP:
		case F_TIMESTAMP_CMP:
		case F_TIMESTAMPTZ_CMP:
			return ORDER_INT64;
		case F_BTFLOAT4CMP:
			return ORDER_FLOAT4;
		case F_BTFLOAT8CMP:
			return ORDER_FLOAT8;
		default:
			return ORDER_CALL;
	}
}

/* Sets *types to the entries of the type cache for the state's types. */
static void
lookup_types(TopTypes *types, const TopState *state)
{
	if (types->key == NULL || types->key->type_id != state->keytype)
	{
		types->key = argtype_comparable(state->keytype);
		types->order = order_of_function(types->key->cmp_proc_finfo.fn_oid);
	}
	if (!OidIsValid(state->valuetype))
		types->value = NULL;
	else if (types->value == NULL || types->value->type_id != state->valuetype)
		types->value = argtype_comparable(state->valuetype);
}

/* Returns the state's types, cached in fn_extra. */
static TopTypes *
state_types(FunctionCallInfo fcinfo, const TopState *state)
{
	TopTypes *types = fcinfo->flinfo->fn_extra;

	if (types == NULL)
		types = fcinfo->flinfo->fn_extra =
			MemoryContextAllocZero(fcinfo->flinfo->fn_mcxt, sizeof(TopTypes));
	lookup_types(types, state);
	return types;
}

/* Compares two keys as a btree comparison function does. */
static int
compare_keys(const TopTypes *types, Oid collation, Datum a, Datum b)
{
#define COMPARE(get) ((get(a) > get(b)) - (get(a) < get(b)))
	switch (types->order)
	{
		case ORDER_INT16:
			return COMPARE(DatumGetInt16);
		case ORDER_INT32:
			return COMPARE(DatumGetInt32);
		case ORDER_INT64:
			return COMPARE(DatumGetInt64);
		case ORDER_FLOAT4:
			return float4_cmp_internal(DatumGetFloat4(a), DatumGetFloat4(b));
		case ORDER_FLOAT8:
			return float8_cmp_internal(DatumGetFloat8(a), DatumGetFloat8(b));
		default:
			return DatumGetInt32(FunctionCall2Coll(&types->key->cmp_proc_finfo, collation, a, b));
	}
#undef COMPARE
}

/* Compares two values of rows with equal keys: ascending, NULL last, then by their bytes. */
static int
compare_values(TypeCacheEntry *type, Oid collation, NullableDatum a, NullableDatum b)
{
	int c;

	if (a.isnull || b.isnull)
		return (int) a.isnull - (int) b.isnull;
	c = DatumGetInt32(FunctionCall2Coll(&type->cmp_proc_finfo, collation, a.value, b.value));
	return c != 0 ? c : argtype_compare_bytes(type, a.value, b.value);
}

/* Returns whether the key and value belong before entry i. */
static bool
belongs_before(const TopState *state, const TopTypes *types, Oid collation, Datum key,
			   NullableDatum value, int i)
{
	int c = compare_keys(types, collation, key, state->keys[i]);

	if (c != 0)
		return (state->form & FORM_SMALLEST) ? c < 0 : c > 0;
	if (state->form & FORM_OF_KEYS)
		return compare_values(types->value, collation, value, state->values[i]) < 0;
	return argtype_compare_bytes(types->key, key, state->keys[i]) < 0;
}

/* ---- entries ------------------------------------------------------------------ */

/* Returns an empty state in cxt. */
static TopState *
create_state(MemoryContext cxt, int form, Oid valuetype, Oid keytype, Oid collation, int n)
{
	TopState *state = MemoryContextAllocZero(cxt, sizeof(TopState));

	state->keytype = keytype;
	state->valuetype = valuetype;
	state->collation = collation;
	state->form = form;
	state->n = n;
	state->capacity = Min(n, FIRST_CAPACITY);
	state->keys = MemoryContextAlloc(cxt, state->capacity * sizeof(Datum));
	if (form & FORM_OF_KEYS)
		state->values = MemoryContextAlloc(cxt, state->capacity * sizeof(NullableDatum));
	return state;
}

/* Frees the last entry of a full state, or enlarges the arrays of one that is not full. */
static void
make_room(TopState *state, const TopTypes *types)
{
	if (state->count == state->n)
	{
		int last = --state->count;

		if (!types->key->typbyval)
			pfree(DatumGetPointer(state->keys[last]));
		if (types->value && !types->value->typbyval && !state->values[last].isnull)
			pfree(DatumGetPointer(state->values[last].value));
	}
	else if (state->count == state->capacity)
	{
		int capacity = Min(state->capacity * 2, state->n);

		state->keys = repalloc(state->keys, capacity * sizeof(Datum));
		if (state->values)
			state->values = repalloc(state->values, capacity * sizeof(NullableDatum));
		state->capacity = capacity;
	}
}

/*
 * Adds an entry with a copy of the key and value in cxt, the context of the state, if it is among
 * the n best ones; the last entry of a full state is removed.
 */
static void
offer_entry(TopState *state, const TopTypes *types, Oid collation, Datum key, NullableDatum value,
			MemoryContext cxt)
{
	int low = 0;
	int high = state->count;
	int after;

	key = argtype_plain(types->key, key);
	if (high > 0 && !belongs_before(state, types, collation, key, value, high - 1))
	{
		if (high == state->n)
			return;
		low = high;
	}
	else if (high > 0)
		high--;
	while (low < high)
	{
		int middle = (low + high) / 2;

		if (belongs_before(state, types, collation, key, value, middle))
			high = middle;
		else
			low = middle + 1;
	}
	key = argtype_copy(types->key, key, cxt);
	if (types->value && !value.isnull)
		value.value = argtype_copy(types->value, value.value, cxt);
	make_room(state, types);
	after = state->count - low;
	memmove(&state->keys[low + 1], &state->keys[low], after * sizeof(Datum));
	state->keys[low] = key;
	if (state->values)
	{
		memmove(&state->values[low + 1], &state->values[low], after * sizeof(NullableDatum));
		state->values[low] = value;
	}
	state->count++;
}

/* ---- transition functions ------------------------------------------------------- */

/* Returns argument i as n of the aggregate. Raises an error if it is NULL or out of range. */
static int
n_argument(FunctionCallInfo fcinfo, int i, int form)
{
	if (PG_ARGISNULL(i))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("n of %s must not be null", form_names[form]),
				 errhint("Pass the number of values to return, between 1 and %d.", MAX_N)));
	if (PG_GETARG_INT32(i) < 1 || PG_GETARG_INT32(i) > MAX_N)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("n of %s must be between 1 and %d", form_names[form], MAX_N),
				 errhint("Number the rows with row_number() in a subquery to get more values.")));
	return PG_GETARG_INT32(i);
}

/* Raises an error: rows of one group have different n. */
static void
report_changed_n(int form)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("n of %s must be the same in all rows of a group", form_names[form])));
}

/*
 * Transition function of the aggregate: (state, x, n) or (state, value, key, n). Skips rows whose x
 * or key is NULL.
 */
static Datum
top_n_transition(FunctionCallInfo fcinfo, int form)
{
	MemoryContext cxt = aggregate_context(fcinfo);
	int key = form & FORM_OF_KEYS ? 2 : 1;
	TopState *state;
	int n;

	if (PG_ARGISNULL(key))
		RETURN_STATE_UNCHANGED();
	n = n_argument(fcinfo, key + 1, form);
	if (PG_ARGISNULL(0))
		state = create_state(
			cxt, form, form & FORM_OF_KEYS ? get_fn_expr_argtype(fcinfo->flinfo, 1) : InvalidOid,
			get_fn_expr_argtype(fcinfo->flinfo, key), PG_GET_COLLATION(), n);
	else
		state = (TopState *) PG_GETARG_POINTER(0);
	if (state->n != n)
		report_changed_n(form);
	offer_entry(state, state_types(fcinfo, state), PG_GET_COLLATION(), PG_GETARG_DATUM(key),
				fcinfo->args[1], cxt);
	PG_RETURN_POINTER(state);
}

/* Transition function of gpu_max_n. */
Datum
gpuagg_max_n_transfn(PG_FUNCTION_ARGS)
{
	return top_n_transition(fcinfo, 0);
}

/* Transition function of gpu_min_n. */
Datum
gpuagg_min_n_transfn(PG_FUNCTION_ARGS)
{
	return top_n_transition(fcinfo, FORM_SMALLEST);
}

/* Transition function of gpu_argmax_n. */
Datum
gpuagg_argmax_n_transfn(PG_FUNCTION_ARGS)
{
	return top_n_transition(fcinfo, FORM_OF_KEYS);
}

/* Transition function of gpu_argmin_n. */
Datum
gpuagg_argmin_n_transfn(PG_FUNCTION_ARGS)
{
	return top_n_transition(fcinfo, FORM_OF_KEYS | FORM_SMALLEST);
}

/* ---- states ------------------------------------------------------------------------ */

/* Combine function of all aggregates of this file. */
Datum
gpuagg_top_n_combine(PG_FUNCTION_ARGS)
{
	MemoryContext cxt = aggregate_context(fcinfo);
	TopState *from;
	TopState *into = PG_ARGISNULL(0) ? NULL : (TopState *) PG_GETARG_POINTER(0);
	TopTypes *types;
	Oid collation;

	if (PG_ARGISNULL(1))
		RETURN_STATE_UNCHANGED();
	from = (TopState *) PG_GETARG_POINTER(1);
	/*
	 * the query's collation, if it has one; like postgres_fdw, we assume that the other server's
	 * column has it, too
	 */
	collation = OidIsValid(PG_GET_COLLATION()) ? PG_GET_COLLATION() : from->collation;
	if (into == NULL)
		into = create_state(cxt, from->form, from->valuetype, from->keytype, collation, from->n);
	else if (into->form != from->form)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("partial states of different aggregates cannot be combined")));
	else if (into->keytype != from->keytype || into->valuetype != from->valuetype ||
			 into->collation != collation)
		portable_invalid("type");
	else if (into->n != from->n)
		report_changed_n(into->form);
	types = state_types(fcinfo, into);
	for (int i = 0; i < from->count; i++)
	{
		NullableDatum value = {0};

		CHECK_FOR_INTERRUPTS();
		if (from->values)
			value = from->values[i];
		offer_entry(into, types, collation, from->keys[i], value, cxt);
	}
	PG_RETURN_POINTER(into);
}

/*
 * Serialization function of all aggregates of this file. States may come from another process or
 * another server (partial_state.c), so gpuagg_top_n_deserialize() checks everything.
 */
Datum
gpuagg_top_n_serialize(PG_FUNCTION_ARGS)
{
	const TopState *state = (TopState *) PG_GETARG_POINTER(0);
	StringInfoData buf;

	aggregate_context(fcinfo);
	pq_begintypsend(&buf);
	pq_sendbyte(&buf, state->form);
	if (state->form & FORM_OF_KEYS)
		portable_put_type(&buf, state->valuetype);
	portable_put_type(&buf, state->keytype);
	portable_put_collation(&buf, state->collation);
	pq_sendint32(&buf, state->n);
	pq_sendint32(&buf, state->count);
	for (int i = 0; i < state->count; i++)
	{
		CHECK_FOR_INTERRUPTS();
		portable_put_value(&buf, state->keytype, state->keys[i], false);
		if (state->values)
			portable_put_value(&buf, state->valuetype, state->values[i].value,
							   state->values[i].isnull);
	}
	PG_RETURN_BYTEA_P(pq_endtypsend(&buf));
}

/* Reads all of a serialized state before the entries. */
static TopState *
get_head(StringInfo buf)
{
	int form = pq_getmsgbyte(buf);
	Oid valuetype = InvalidOid;
	Oid keytype;
	Oid collation;
	int n;

	if (form < 0 || form >= lengthof(form_names))
		portable_invalid("kind");
	if (form & FORM_OF_KEYS)
		valuetype = portable_get_type(buf);
	keytype = portable_get_type(buf);
	/* the result is an array */
	if (!OidIsValid(get_array_type(form & FORM_OF_KEYS ? valuetype : keytype)))
		portable_invalid("type");
	collation = portable_get_collation(buf);
	n = (int) pq_getmsgint(buf, 4);
	if (n < 1 || n > MAX_N)
		portable_invalid("number of values");
	return create_state(CurrentMemoryContext, form, valuetype, keytype, collation, n);
}

/*
 * Deserialization function of all aggregates of this file. The second argument is not 0 if the
 * bytes are user input (partial_state.c); then NULLs are checked as well. Entries that are not in
 * order are put in order.
 */
Datum
gpuagg_top_n_deserialize(PG_FUNCTION_ARGS)
{
	PortableNulls nulls = portable_nulls_argument(fcinfo);
	TopTypes types = {0};
	StringInfoData buf;
	TopState *state;
	int count;

	aggregate_context(fcinfo);
	portable_read(&buf, PG_GETARG_BYTEA_PP(0));
	state = get_head(&buf);
	count = portable_get_count(&buf, 1, state->n, "number of values");
	if (count == 0)
		portable_invalid("number of values");
	lookup_types(&types, state);
	for (int i = 0; i < count; i++)
	{
		NullableDatum value = {0};
		Datum key;
		bool isnull;

		CHECK_FOR_INTERRUPTS();
		key = portable_get_value(&buf, state->keytype, nulls, &isnull);
		if (isnull)
			portable_invalid("key");
		if (state->values)
			value.value = portable_get_value(&buf, state->valuetype, nulls, &value.isnull);
		offer_entry(state, &types, state->collation, key, value, CurrentMemoryContext);
	}
	pq_getmsgend(&buf);
	PG_RETURN_POINTER(state);
}

/* ---- results ------------------------------------------------------------------------- */

Oid
top_n_element_type(const void *state)
{
	const TopState *top = state;

	return top->form & FORM_OF_KEYS ? top->valuetype : top->keytype;
}

/*
 * Final function of the aggregate. The extra arguments only carry the types. NULL if no row counts.
 * Raises an error if the state is of another aggregate or type, as gpuagg_finish() may pass.
 */
static Datum
top_n_final(FunctionCallInfo fcinfo, int form)
{
	TopState *state = PG_ARGISNULL(0) ? NULL : (TopState *) PG_GETARG_POINTER(0);
	TypeCacheEntry *type;
	Datum *elements;
	bool *nulls;
	int lower = 1;

	if (state == NULL)
		PG_RETURN_NULL();
	if (state->form != form || top_n_element_type(state) != get_fn_expr_argtype(fcinfo->flinfo, 1))
		portable_invalid("type");
	type = lookup_type_cache(top_n_element_type(state), 0);
	elements = palloc(state->count * sizeof(Datum));
	nulls = palloc(state->count * sizeof(bool));
	for (int i = 0; i < state->count; i++)
	{
		nulls[i] = state->values ? state->values[i].isnull : false;
		elements[i] = state->values ? state->values[i].value : state->keys[i];
	}
	PG_RETURN_ARRAYTYPE_P(construct_md_array(elements, nulls, 1, &state->count, &lower,
											 type->type_id, type->typlen, type->typbyval,
											 type->typalign));
}

/* Final function of gpu_max_n. */
Datum
gpuagg_max_n_final(PG_FUNCTION_ARGS)
{
	return top_n_final(fcinfo, 0);
}

/* Final function of gpu_min_n. */
Datum
gpuagg_min_n_final(PG_FUNCTION_ARGS)
{
	return top_n_final(fcinfo, FORM_SMALLEST);
}

/* Final function of gpu_argmax_n. */
Datum
gpuagg_argmax_n_final(PG_FUNCTION_ARGS)
{
	return top_n_final(fcinfo, FORM_OF_KEYS);
}

/* Final function of gpu_argmin_n. */
Datum
gpuagg_argmin_n_final(PG_FUNCTION_ARGS)
{
	return top_n_final(fcinfo, FORM_OF_KEYS | FORM_SMALLEST);
}
