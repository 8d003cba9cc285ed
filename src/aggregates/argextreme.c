/*
 * argextreme.c
 *	  gpu_argmax, gpu_argmin, gpu_first and gpu_last as ordinary aggregates.
 *
 * The result is the value in the row with the largest (smallest) key, by the btree order of the
 * key's type. Rows with a NULL key do not count. Among rows with equal keys, the smallest value is
 * the result, NULL last. So it does not depend on the order of rows, and states can be combined.
 *
 * The state has copies of the best key and value in the aggregate's context.
 */
#include "postgres.h"

#include "fmgr.h"
#include "libpq/pqformat.h"
#include "utils/datum.h"

#include "aggregates/aggcall.h"
#include "aggregates/argextreme.h"
#include "aggregates/argtype.h"
#include "aggregates/portable.h"
#include "common/compat.h"

/* A key or a value. */
typedef struct ArgDatum
{
	Datum value;
	bool isnull;
} ArgDatum;

/*
 * The types are in the state, because combine and serialize functions do not get them as arguments,
 * and may not get a collation.
 */
typedef struct ArgState
{
	bool found;
	Oid keytype;
	Oid valuetype;
	Oid collation;
	ArgDatum key;
	ArgDatum value;
} ArgState;

/* The two types, cached in fn_extra. States from other servers may have different types each. */
typedef struct ArgTypes
{
	TypeCacheEntry *key;
	TypeCacheEntry *value;
} ArgTypes;

PG_FUNCTION_INFO_V1(gpuagg_argmax_transfn);
PG_FUNCTION_INFO_V1(gpuagg_argmin_transfn);
PG_FUNCTION_INFO_V1(gpuagg_argmax_combine);
PG_FUNCTION_INFO_V1(gpuagg_argmin_combine);
PG_FUNCTION_INFO_V1(gpuagg_arg_serialize);
PG_FUNCTION_INFO_V1(gpuagg_arg_deserialize);
PG_FUNCTION_INFO_V1(gpuagg_arg_final);

/* Returns the type cache entries of the state's key and value types. */
static ArgTypes *
arg_types(FunctionCallInfo fcinfo, const ArgState *state)
{
	ArgTypes *types = fcinfo->flinfo->fn_extra;

	if (types == NULL)
		types = fcinfo->flinfo->fn_extra =
			MemoryContextAllocZero(fcinfo->flinfo->fn_mcxt, sizeof(ArgTypes));
	if (types->value == NULL || types->value->type_id != state->valuetype)
		types->value = argtype_comparable(state->valuetype);
	if (types->key == NULL || types->key->type_id != state->keytype)
		types->key = argtype_comparable(state->keytype);
	return types;
}

/* Compares two values as a btree comparison function does; NULL sorts after every value. */
static int
arg_compare(TypeCacheEntry *type, Oid collation, ArgDatum a, ArgDatum b)
{
	if (a.isnull || b.isnull)
		return (int) a.isnull - (int) b.isnull;
	return DatumGetInt32(FunctionCall2Coll(&type->cmp_proc_finfo, collation, a.value, b.value));
}

/*
 * Returns whether a is preferred to b. Values that are equal but not the same, such as -0 and 0,
 * are ordered by their bits, so that the order of rows does not matter.
 */
static bool
arg_before(TypeCacheEntry *type, Oid collation, ArgDatum a, ArgDatum b)
{
	int c = arg_compare(type, collation, a, b);

	return c != 0 ? c < 0 : type->typbyval && !a.isnull && (int64) a.value < (int64) b.value;
}

/* Replaces *slot by a copy of *from in cxt. */
static void
arg_store(ArgDatum *slot, ArgDatum from, TypeCacheEntry *type, MemoryContext cxt)
{
	MemoryContext old = MemoryContextSwitchTo(cxt);

	if (!type->typbyval && !slot->isnull && slot->value != (Datum) 0)
		pfree(DatumGetPointer(slot->value));
	slot->isnull = from.isnull;
	slot->value = from.isnull ? (Datum) 0 : datumCopy(from.value, type->typbyval, type->typlen);
	MemoryContextSwitchTo(old);
}

/*
 * Replaces the state's key and value by these if they are better: a larger key (sign 1) or a
 * smaller key (sign -1), or the same key and a smaller value.
 */
static void
arg_offer(ArgState *state, ArgDatum key, ArgDatum value, int sign, ArgTypes *types, Oid collation,
		  MemoryContext cxt)
{
	int c;

	if (state->found)
	{
		c = sign * arg_compare(types->key, collation, key, state->key);
		if (c < 0)
			return;
		if (c == 0)
		{
			if (arg_before(types->value, collation, value, state->value))
				arg_store(&state->value, value, types->value, cxt);
			return;
		}
	}
	state->found = true;
	arg_store(&state->key, key, types->key, cxt);
	arg_store(&state->value, value, types->value, cxt);
}

/* Transition function of gpu_argmax (sign 1) and gpu_argmin (sign -1). */
static Datum
arg_transition(FunctionCallInfo fcinfo, int sign)
{
	MemoryContext cxt = aggregate_context(fcinfo);
	ArgState *state;
	ArgDatum value = {PG_GETARG_DATUM(1), PG_ARGISNULL(1)};
	ArgDatum key = {PG_GETARG_DATUM(2), PG_ARGISNULL(2)};

	if (PG_ARGISNULL(0))
	{
		state = MemoryContextAllocZero(cxt, sizeof(ArgState));
		state->valuetype = get_fn_expr_argtype(fcinfo->flinfo, 1);
		state->keytype = get_fn_expr_argtype(fcinfo->flinfo, 2);
		state->collation = PG_GET_COLLATION();
	}
	else
		state = (ArgState *) PG_GETARG_POINTER(0);
	if (!key.isnull)
		arg_offer(state, key, value, sign, arg_types(fcinfo, state), PG_GET_COLLATION(), cxt);
	PG_RETURN_POINTER(state);
}

/* Transition function of gpu_argmax and gpu_last. Rows with a NULL key do not count. */
Datum
gpuagg_argmax_transfn(PG_FUNCTION_ARGS)
{
	return arg_transition(fcinfo, 1);
}

/* Transition function of gpu_argmin and gpu_first. Rows with a NULL key do not count. */
Datum
gpuagg_argmin_transfn(PG_FUNCTION_ARGS)
{
	return arg_transition(fcinfo, -1);
}

/* Combine function of gpu_argmax (sign 1) and gpu_argmin (sign -1). */
static Datum
arg_combine(FunctionCallInfo fcinfo, int sign)
{
	MemoryContext cxt = aggregate_context(fcinfo);
	ArgState *from = PG_ARGISNULL(1) ? NULL : (ArgState *) PG_GETARG_POINTER(1);
	ArgState *into = PG_ARGISNULL(0) ? NULL : (ArgState *) PG_GETARG_POINTER(0);
	/*
	 * the query's collation, if it has one; like postgres_fdw, we assume that the other server's
	 * column has it, too
	 */
	Oid collation = OidIsValid(PG_GET_COLLATION()) ? PG_GET_COLLATION() :
		from                                       ? from->collation :
													 InvalidOid;

	if (into == NULL)
	{
		if (from == NULL)
			PG_RETURN_NULL();
		into = MemoryContextAllocZero(cxt, sizeof(ArgState));
		into->keytype = from->keytype;
		into->valuetype = from->valuetype;
		into->collation = collation;
	}
	else if (from &&
			 (into->keytype != from->keytype || into->valuetype != from->valuetype ||
			  into->collation != collation))
		portable_invalid("type");
	if (from && from->found)
		arg_offer(into, from->key, from->value, sign, arg_types(fcinfo, from), collation, cxt);
	PG_RETURN_POINTER(into);
}

/* Combine function of gpu_argmax and gpu_last. */
Datum
gpuagg_argmax_combine(PG_FUNCTION_ARGS)
{
	return arg_combine(fcinfo, 1);
}

/* Combine function of gpu_argmin and gpu_first. */
Datum
gpuagg_argmin_combine(PG_FUNCTION_ARGS)
{
	return arg_combine(fcinfo, -1);
}

/*
 * Appends a serialized state: the types and the collation, whether there is a key, the key and the
 * value. States may come from another process or another server (partial_state.c), so
 * gpuagg_arg_deserialize() checks everything.
 */
static void
send_state(StringInfo buf, const ArgState *state)
{
	portable_put_type(buf, state->valuetype);
	portable_put_type(buf, state->keytype);
	portable_put_collation(buf, state->collation);
	pq_sendbyte(buf, state->found);
	if (state->found)
	{
		portable_put_value(buf, state->keytype, state->key.value, false);
		portable_put_value(buf, state->valuetype, state->value.value, state->value.isnull);
	}
}

/* Serialization function of all aggregates of this file. */
Datum
gpuagg_arg_serialize(PG_FUNCTION_ARGS)
{
	StringInfoData buf;

	aggregate_context(fcinfo);
	pq_begintypsend(&buf);
	send_state(&buf, (ArgState *) PG_GETARG_POINTER(0));
	PG_RETURN_BYTEA_P(pq_endtypsend(&buf));
}

bytea *
argextreme_state(Oid valuetype, Oid keytype, Oid collation, Datum value, bool isnull, Datum key)
{
	ArgState state = {true, keytype, valuetype, collation, {key, false}, {value, isnull}};
	StringInfoData buf;

	pq_begintypsend(&buf);
	send_state(&buf, &state);
	return pq_endtypsend(&buf);
}

Oid
argextreme_value_type(const void *state)
{
	return ((const ArgState *) state)->valuetype;
}

/* Deserialization function of all aggregates of this file; see portable_nulls_argument(). */
Datum
gpuagg_arg_deserialize(PG_FUNCTION_ARGS)
{
	PortableNulls nulls = portable_nulls_argument(fcinfo);
	StringInfoData buf;
	ArgState *state;

	aggregate_context(fcinfo);
	state = palloc0(sizeof(ArgState));
	portable_read(&buf, PG_GETARG_BYTEA_PP(0));
	state->valuetype = portable_get_type(&buf);
	state->keytype = portable_get_type(&buf);
	state->collation = portable_get_collation(&buf);
	state->found = pq_getmsgbyte(&buf) != 0;
	if (state->found)
	{
		state->key.value = portable_get_value(&buf, state->keytype, nulls, &state->key.isnull);
		state->value.value =
			portable_get_value(&buf, state->valuetype, nulls, &state->value.isnull);
		if (state->key.isnull)
			portable_invalid("key");
	}
	pq_getmsgend(&buf);
	PG_RETURN_POINTER(state);
}

/*
 * Final function of all aggregates of this file. The extra arguments only carry the types. Raises
 * an error if the value has another type, as in a state of another server.
 */
Datum
gpuagg_arg_final(PG_FUNCTION_ARGS)
{
	ArgState *state = PG_ARGISNULL(0) ? NULL : (ArgState *) PG_GETARG_POINTER(0);

	if (state == NULL || !state->found || state->value.isnull)
		PG_RETURN_NULL();
	if (state->valuetype != get_fn_expr_argtype(fcinfo->flinfo, 1))
		portable_invalid("type");
	PG_RETURN_DATUM(state->value.value);
}
