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
 * The engines have no monoid for it: it is a fallback aggregate. Where n is a constant and keys are
 * integers, floats or decimals, the CPU engine adds columns to the states
 * (engine_cpu/top_entries.c), without calls of the transition functions.  The GPU engine makes
 * states of integers and floats that are sorted on the GPU (engine_cuda/top_n.c).
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

static const char *const form_names[] = {"gpu_max_n", "gpu_min_n", "gpu_argmax_n", "gpu_argmin_n"};

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
static TopOrder
order_of_function(Oid cmp)
{
	switch (cmp)
	{
		case F_BTINT2CMP:
			return TOP_ORDER_INT16;
		case F_BTINT4CMP:
		case F_DATE_CMP:
			return TOP_ORDER_INT32;
		case F_BTINT8CMP:
		case F_TIME_CMP:
		case F_TIMESTAMP_CMP:
		case F_TIMESTAMPTZ_CMP:
		case F_CASH_CMP:
			return TOP_ORDER_INT64;
		case F_BTFLOAT4CMP:
			return TOP_ORDER_FLOAT4;
		case F_BTFLOAT8CMP:
			return TOP_ORDER_FLOAT8;
		default:
			return TOP_ORDER_CALL;
	}
}

/* Sets *type to a type of the state, unless it is that; InvalidOid: there is none. */
static void
lookup_type(TopType *type, Oid typid)
{
	if (!OidIsValid(typid))
		type->entry = NULL;
	else if (type->entry == NULL || type->entry->type_id != typid)
	{
		type->entry = argtype_comparable(typid);
		type->order = order_of_function(type->entry->cmp_proc_finfo.fn_oid);
	}
}

/* Sets *types to the state's types. */
static void
lookup_types(TopTypes *types, const TopState *state)
{
	lookup_type(&types->key, state->keytype);
	lookup_type(&types->value, state->valuetype);
}

/* Returns memory for the state's types, cached in fn_extra. */
static TopTypes *
cached_types(FunctionCallInfo fcinfo)
{
	if (fcinfo->flinfo->fn_extra == NULL)
		fcinfo->flinfo->fn_extra =
			MemoryContextAllocZero(fcinfo->flinfo->fn_mcxt, sizeof(TopTypes));
	return fcinfo->flinfo->fn_extra;
}

/* Compares two values as a btree comparison function does. */
static int
compare(const TopType *type, Oid collation, Datum a, Datum b)
{
#define COMPARE(get) ((get(a) > get(b)) - (get(a) < get(b)))
	switch (type->order)
	{
		case TOP_ORDER_INT16:
			return COMPARE(DatumGetInt16);
		case TOP_ORDER_INT32:
			return COMPARE(DatumGetInt32);
		case TOP_ORDER_INT64:
			return COMPARE(DatumGetInt64);
		case TOP_ORDER_FLOAT4:
			return float4_cmp_internal(DatumGetFloat4(a), DatumGetFloat4(b));
		case TOP_ORDER_FLOAT8:
			return float8_cmp_internal(DatumGetFloat8(a), DatumGetFloat8(b));
		default:
			return DatumGetInt32(FunctionCall2Coll(&type->entry->cmp_proc_finfo, collation, a, b));
	}
#undef COMPARE
}

/* Compares two values of rows with equal keys: ascending, NULL last, then by their bytes. */
static int
compare_values(const TopType *type, Oid collation, NullableDatum a, NullableDatum b)
{
	int c;

	if (a.isnull || b.isnull)
		return (int) a.isnull - (int) b.isnull;
	c = compare(type, collation, a.value, b.value);
	return c != 0 ? c : argtype_compare_bytes(type->entry, a.value, b.value);
}

/* Returns whether the key and value belong before entry i. */
static bool
belongs_before(const TopState *state, const TopTypes *types, Oid collation, Datum key,
			   NullableDatum value, int i)
{
	int c = compare(&types->key, collation, key, state->keys[i]);

	if (c != 0)
		return (state->form & TOP_SMALLEST) ? c < 0 : c > 0;
	if (state->form & TOP_OF_KEYS)
		return compare_values(&types->value, collation, value, top_n_values(state)[i]) < 0;
	return argtype_compare_bytes(types->key.entry, key, state->keys[i]) < 0;
}

/* ---- entries ------------------------------------------------------------------ */

/* Returns the bytes of `capacity` entries of this form. */
static size_t
entries_size(int form, int capacity)
{
	return capacity * (sizeof(Datum) + (form & TOP_OF_KEYS ? sizeof(NullableDatum) : 0));
}

/* Returns the bytes of a state with room for `capacity` entries. */
static size_t
state_size(const TopCall *call, int capacity)
{
	return sizeof(TopState) + entries_size(call->form, capacity);
}

/* Returns an empty state with room for `capacity` entries in this memory. */
static TopState *
init_state(const TopCall *call, int capacity, void *memory)
{
	TopState *state = memory;

	state->keytype = call->keytype;
	state->valuetype = call->valuetype;
	state->collation = call->collation;
	state->form = call->form;
	state->n = call->n;
	state->count = 0;
	state->capacity = capacity;
	state->keys = (Datum *) (state + 1);
	return state;
}

size_t
top_n_empty_bytes(const TopCall *call)
{
	return state_size(call, Min(call->n, TOP_N_FIRST_CAPACITY));
}

TopState *
top_n_init(const TopCall *call, void *memory)
{
	return init_state(call, Min(call->n, TOP_N_FIRST_CAPACITY), memory);
}

TopState *
top_n_create(const TopCall *call, MemoryContext cxt)
{
	return top_n_init(call, MemoryContextAlloc(cxt, top_n_empty_bytes(call)));
}

TopState *
top_n_make(const TopCall *call, int count, MemoryContext cxt)
{
	TopState *state = init_state(call, count, MemoryContextAlloc(cxt, state_size(call, count)));

	state->count = count;
	return state;
}

/* Moves the entries of a state in cxt to an allocation of their own with room for more. */
static void
enlarge(TopState *state, MemoryContext cxt)
{
	int capacity = Min(state->capacity * 2, state->n);
	const NullableDatum *old_values = top_n_values(state);
	Datum *old = state->keys;

	state->keys = MemoryContextAlloc(cxt, entries_size(state->form, capacity));
	state->capacity = capacity;
	memcpy(state->keys, old, state->count * sizeof(Datum));
	if (state->form & TOP_OF_KEYS)
		memcpy(top_n_values(state), old_values, state->count * sizeof(NullableDatum));
	if (old != (Datum *) (state + 1))
		pfree(old);
}

/* Frees the last entry of a full state, or enlarges one whose entries have no room for more. */
static void
make_room(TopState *state, const TopTypes *types, MemoryContext cxt)
{
	if (state->count == state->n)
	{
		int last = --state->count;

		if (!types->key.entry->typbyval)
			pfree(DatumGetPointer(state->keys[last]));
		if (types->value.entry && !types->value.entry->typbyval &&
			!top_n_values(state)[last].isnull)
			pfree(DatumGetPointer(top_n_values(state)[last].value));
	}
	else if (state->count == state->capacity)
		enlarge(state, cxt);
}

/* Returns the number of entries before which a key and value do not belong. */
static int
find_place(const TopState *state, const TopTypes *types, Oid collation, Datum key,
		   NullableDatum value)
{
	int low = 0;
	int high = state->count;

	if (high > 0 && !belongs_before(state, types, collation, key, value, high - 1))
		return high;
	if (high > 0)
		high--;
	while (low < high)
	{
		int middle = (low + high) / 2;

		if (belongs_before(state, types, collation, key, value, middle))
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

void
top_n_offer(TopState *state, TopTypes *types, Oid collation, Datum key, NullableDatum value,
			MemoryContext cxt)
{
	int place, after;

	lookup_types(types, state);
	key = argtype_plain(types->key.entry, key);
	place = find_place(state, types, collation, key, value);
	if (place == state->n)
		return;
	key = argtype_copy(types->key.entry, key, cxt);
	if (types->value.entry && !value.isnull)
		value.value = argtype_copy(types->value.entry, value.value, cxt);
	make_room(state, types, cxt);
	after = state->count - place;
	memmove(&state->keys[place + 1], &state->keys[place], after * sizeof(Datum));
	state->keys[place] = key;
	if (state->form & TOP_OF_KEYS)
	{
		NullableDatum *values = top_n_values(state);

		memmove(&values[place + 1], &values[place], after * sizeof(NullableDatum));
		values[place] = value;
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
				 errhint("Pass the number of values to return, between 1 and %d.", TOP_MAX_N)));
	if (PG_GETARG_INT32(i) < 1 || PG_GETARG_INT32(i) > TOP_MAX_N)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("n of %s must be between 1 and %d", form_names[form], TOP_MAX_N),
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

int
top_n_form_of(const FmgrInfo *transfn)
{
	static const PGFunction functions[] = {gpuagg_max_n_transfn, gpuagg_min_n_transfn,
										   gpuagg_argmax_n_transfn, gpuagg_argmin_n_transfn};

	for (int form = 0; form < lengthof(functions); form++)
		if (transfn->fn_addr == functions[form])
			return form;
	return -1;
}

TopCall
top_n_call(const FmgrInfo *transfn, int form, Oid collation, int n)
{
	FmgrInfo *info = unconstify(FmgrInfo *, transfn);
	TopCall call = {.form = form, .n = n, .collation = collation};

	if (form & TOP_OF_KEYS)
		call.valuetype = get_fn_expr_argtype(info, 1);
	call.keytype = get_fn_expr_argtype(info, form & TOP_OF_KEYS ? 2 : 1);
	return call;
}

/*
 * Transition function of the aggregate: (state, x, n) or (state, value, key, n). Skips rows whose x
 * or key is NULL.
 */
static Datum
top_n_transition(FunctionCallInfo fcinfo, int form)
{
	MemoryContext cxt = aggregate_context(fcinfo);
	int key = form & TOP_OF_KEYS ? 2 : 1;
	TopState *state;
	int n;

	if (PG_ARGISNULL(key))
		RETURN_STATE_UNCHANGED();
	n = n_argument(fcinfo, key + 1, form);
	if (PG_ARGISNULL(0))
	{
		TopCall call = top_n_call(fcinfo->flinfo, form, PG_GET_COLLATION(), n);

		state = top_n_create(&call, cxt);
	}
	else
		state = (TopState *) PG_GETARG_POINTER(0);
	if (state->n != n)
		report_changed_n(form);
	top_n_offer(state, cached_types(fcinfo), PG_GET_COLLATION(), PG_GETARG_DATUM(key),
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
	return top_n_transition(fcinfo, TOP_SMALLEST);
}

/* Transition function of gpu_argmax_n. */
Datum
gpuagg_argmax_n_transfn(PG_FUNCTION_ARGS)
{
	return top_n_transition(fcinfo, TOP_OF_KEYS);
}

/* Transition function of gpu_argmin_n. */
Datum
gpuagg_argmin_n_transfn(PG_FUNCTION_ARGS)
{
	return top_n_transition(fcinfo, TOP_OF_KEYS | TOP_SMALLEST);
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
	{
		TopCall call = {.form = from->form,
						.n = from->n,
						.keytype = from->keytype,
						.valuetype = from->valuetype,
						.collation = collation};

		into = top_n_create(&call, cxt);
	}
	else if (into->form != from->form)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("partial states of different aggregates cannot be combined")));
	else if (into->keytype != from->keytype || into->valuetype != from->valuetype ||
			 into->collation != collation)
		portable_invalid("type");
	else if (into->n != from->n)
		report_changed_n(into->form);
	types = cached_types(fcinfo);
	for (int i = 0; i < from->count; i++)
	{
		NullableDatum value = {0};

		CHECK_FOR_INTERRUPTS();
		if (from->form & TOP_OF_KEYS)
			value = top_n_values(from)[i];
		top_n_offer(into, types, collation, from->keys[i], value, cxt);
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
	if (state->form & TOP_OF_KEYS)
		portable_put_type(&buf, state->valuetype);
	portable_put_type(&buf, state->keytype);
	portable_put_collation(&buf, state->collation);
	pq_sendint32(&buf, state->n);
	pq_sendint32(&buf, state->count);
	for (int i = 0; i < state->count; i++)
	{
		CHECK_FOR_INTERRUPTS();
		portable_put_value(&buf, state->keytype, state->keys[i], false);
		if (state->form & TOP_OF_KEYS)
			portable_put_value(&buf, state->valuetype, top_n_values(state)[i].value,
							   top_n_values(state)[i].isnull);
	}
	PG_RETURN_BYTEA_P(pq_endtypsend(&buf));
}

/* The first byte of packed bytes, which a serialized state does not begin with. */
#define PACKED 0xff

bytea *
top_n_pack(const TopState *state)
{
	size_t keys = state->count * sizeof(Datum);
	size_t size = VARHDRSZ + 1 + entries_size(state->form, state->count);
	bytea *bytes = palloc(size);
	char *to = VARDATA(bytes);

	SET_VARSIZE(bytes, size);
	*to++ = (char) PACKED;
	memcpy(to, state->keys, keys);
	if (state->form & TOP_OF_KEYS)
		memcpy(to + keys, top_n_values(state), state->count * sizeof(NullableDatum));
	return bytes;
}

TopState *
top_n_unpack(const TopCall *call, const bytea *bytes)
{
	size_t size = VARSIZE_ANY_EXHDR(bytes);
	const char *from = VARDATA_ANY(bytes);
	size_t entry = entries_size(call->form, 1);
	int count = (size - 1) / entry;
	TopState *state;

	if (size == 0 || (uint8) *from++ != PACKED)
		return NULL;
	if (count < 1 || count > call->n || size - 1 != count * entry)
		elog(ERROR, "packed state of %s is invalid", form_names[call->form]);
	state = top_n_make(call, count, CurrentMemoryContext);
	memcpy(state->keys, from, count * sizeof(Datum));
	if (call->form & TOP_OF_KEYS)
		memcpy(top_n_values(state), from + count * sizeof(Datum), count * sizeof(NullableDatum));
	return state;
}

/* Reads all of a serialized state before the entries. */
static TopState *
get_head(StringInfo buf)
{
	TopCall call = {.form = pq_getmsgbyte(buf)};

	if (call.form < 0 || call.form >= lengthof(form_names))
		portable_invalid("kind");
	if (call.form & TOP_OF_KEYS)
		call.valuetype = portable_get_type(buf);
	call.keytype = portable_get_type(buf);
	/* the result is an array */
	if (!OidIsValid(get_array_type(call.form & TOP_OF_KEYS ? call.valuetype : call.keytype)))
		portable_invalid("type");
	call.collation = portable_get_collation(buf);
	call.n = (int) pq_getmsgint(buf, 4);
	if (call.n < 1 || call.n > TOP_MAX_N)
		portable_invalid("number of values");
	return top_n_create(&call, CurrentMemoryContext);
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
	for (int i = 0; i < count; i++)
	{
		NullableDatum value = {0};
		Datum key;
		bool isnull;

		CHECK_FOR_INTERRUPTS();
		key = portable_get_value(&buf, state->keytype, nulls, &isnull);
		if (isnull)
			portable_invalid("key");
		if (state->form & TOP_OF_KEYS)
			value.value = portable_get_value(&buf, state->valuetype, nulls, &value.isnull);
		top_n_offer(state, &types, state->collation, key, value, CurrentMemoryContext);
	}
	pq_getmsgend(&buf);
	PG_RETURN_POINTER(state);
}

/* ---- results ------------------------------------------------------------------------- */

Oid
top_n_element_type(const void *state)
{
	const TopState *top = state;

	return top->form & TOP_OF_KEYS ? top->valuetype : top->keytype;
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
	int count;
	int lower = 1;

	if (state == NULL)
		PG_RETURN_NULL();
	if (state->form != form || top_n_element_type(state) != get_fn_expr_argtype(fcinfo->flinfo, 1))
		portable_invalid("type");
	type = lookup_type_cache(top_n_element_type(state), 0);
	count = state->count;
	elements = palloc(count * sizeof(Datum));
	nulls = palloc(count * sizeof(bool));
	for (int i = 0; i < count; i++)
	{
		nulls[i] = form & TOP_OF_KEYS ? top_n_values(state)[i].isnull : false;
		elements[i] = form & TOP_OF_KEYS ? top_n_values(state)[i].value : state->keys[i];
	}
	PG_RETURN_ARRAYTYPE_P(construct_md_array(elements, nulls, 1, &count, &lower, type->type_id,
											 type->typlen, type->typbyval, type->typalign));
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
	return top_n_final(fcinfo, TOP_SMALLEST);
}

/* Final function of gpu_argmax_n. */
Datum
gpuagg_argmax_n_final(PG_FUNCTION_ARGS)
{
	return top_n_final(fcinfo, TOP_OF_KEYS);
}

/* Final function of gpu_argmin_n. */
Datum
gpuagg_argmin_n_final(PG_FUNCTION_ARGS)
{
	return top_n_final(fcinfo, TOP_OF_KEYS | TOP_SMALLEST);
}
