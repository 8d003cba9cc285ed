/*
 * argextreme.c
 *	  gpu_argmax, gpu_argmin, gpu_first and gpu_last as ordinary aggregates.
 *
 * The value in the row where the key is largest (smallest), by the btree order
 * of the key's type.  Rows with a NULL key do not count.  Of rows with equal keys, the
 * smallest value is the result, NULL last, so that it does not depend on the order of
 * rows and states can be combined.
 *
 * The state holds copies of the best key and value in the aggregate's context.
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"

#include "aggregates/aggcall.h"
#include "aggregates/argtype.h"
#include "common/compat.h"

typedef struct ArgDatum
{
	Datum		value;
	bool		isnull;
} ArgDatum;

/* The types are in the state because combine and serialize do not get them as arguments. */
typedef struct ArgState
{
	bool		found;
	Oid			keytype;
	Oid			valuetype;
	ArgDatum	key;
	ArgDatum	value;
} ArgState;

/* The two types, cached in fn_extra. */
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

static ArgTypes *
arg_types(FunctionCallInfo fcinfo, const ArgState *state)
{
	ArgTypes   *types = fcinfo->flinfo->fn_extra;

	if (types == NULL)
	{
		types = MemoryContextAlloc(fcinfo->flinfo->fn_mcxt, sizeof(ArgTypes));
		types->value = argtype_comparable(state->valuetype);
		types->key = argtype_comparable(state->keytype);
		fcinfo->flinfo->fn_extra = types;
	}
	return types;
}

/* NULL sorts after every value. */
static int
arg_compare(TypeCacheEntry *type, Oid collation, ArgDatum a, ArgDatum b)
{
	if (a.isnull || b.isnull)
		return (int) a.isnull - (int) b.isnull;
	return DatumGetInt32(FunctionCall2Coll(&type->cmp_proc_finfo, collation, a.value, b.value));
}

/*
 * Is a preferred to b?  Values that are equal but not the same, such as -0
 * and 0, are told apart by their bits, so that the order of rows does not matter.
 */
static bool
arg_before(TypeCacheEntry *type, Oid collation, ArgDatum a, ArgDatum b)
{
	int			c = arg_compare(type, collation, a, b);

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

/* Keeps the better of *state and (key, value); sign is 1 for max, -1 for min. */
static void
arg_offer(ArgState *state, ArgDatum key, ArgDatum value, int sign, ArgTypes *types, Oid collation,
		  MemoryContext cxt)
{
	int			c;

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

static Datum
arg_transition(FunctionCallInfo fcinfo, int sign)
{
	MemoryContext cxt = aggregate_context(fcinfo);
	ArgState   *state;
	ArgDatum	value = {PG_GETARG_DATUM(1), PG_ARGISNULL(1)};
	ArgDatum	key = {PG_GETARG_DATUM(2), PG_ARGISNULL(2)};

	if (PG_ARGISNULL(0))
	{
		state = MemoryContextAllocZero(cxt, sizeof(ArgState));
		state->valuetype = get_fn_expr_argtype(fcinfo->flinfo, 1);
		state->keytype = get_fn_expr_argtype(fcinfo->flinfo, 2);
	}
	else
		state = (ArgState *) PG_GETARG_POINTER(0);
	if (!key.isnull)
		arg_offer(state, key, value, sign, arg_types(fcinfo, state), PG_GET_COLLATION(), cxt);
	PG_RETURN_POINTER(state);
}

Datum
gpuagg_argmax_transfn(PG_FUNCTION_ARGS)
{
	return arg_transition(fcinfo, 1);
}

Datum
gpuagg_argmin_transfn(PG_FUNCTION_ARGS)
{
	return arg_transition(fcinfo, -1);
}

static Datum
arg_combine(FunctionCallInfo fcinfo, int sign)
{
	MemoryContext cxt = aggregate_context(fcinfo);
	ArgState   *from = PG_ARGISNULL(1) ? NULL : (ArgState *) PG_GETARG_POINTER(1);
	ArgState   *into = PG_ARGISNULL(0) ? NULL : (ArgState *) PG_GETARG_POINTER(0);

	if (into == NULL)
	{
		if (from == NULL)
			PG_RETURN_NULL();
		into = MemoryContextAllocZero(cxt, sizeof(ArgState));
		into->keytype = from->keytype;
		into->valuetype = from->valuetype;
	}
	if (from && from->found)
		arg_offer(into, from->key, from->value, sign, arg_types(fcinfo, from),
				  PG_GET_COLLATION(), cxt);
	PG_RETURN_POINTER(into);
}

Datum
gpuagg_argmax_combine(PG_FUNCTION_ARGS)
{
	return arg_combine(fcinfo, 1);
}

Datum
gpuagg_argmin_combine(PG_FUNCTION_ARGS)
{
	return arg_combine(fcinfo, -1);
}

/* Wire form: the ArgState's scalars, then key and value by datumSerialize if found. */
Datum
gpuagg_arg_serialize(PG_FUNCTION_ARGS)
{
	ArgState   *state = (ArgState *) PG_GETARG_POINTER(0);
	Size		size = VARHDRSZ + sizeof(ArgState);
	bytea	   *result;
	char	   *p;
	int16		keylen,
				valuelen;
	bool		keybyval,
				valuebyval;

	aggregate_context(fcinfo);
	get_typlenbyval(state->keytype, &keylen, &keybyval);
	get_typlenbyval(state->valuetype, &valuelen, &valuebyval);
	if (state->found)
	{
		size += datumEstimateSpace(state->key.value, false, keybyval, keylen);
		size += datumEstimateSpace(state->value.value, state->value.isnull, valuebyval, valuelen);
	}
	result = palloc(size);
	SET_VARSIZE(result, size);
	p = VARDATA(result);
	memcpy(p, state, sizeof(ArgState));
	p += sizeof(ArgState);
	if (state->found)
	{
		datumSerialize(state->key.value, false, keybyval, keylen, &p);
		datumSerialize(state->value.value, state->value.isnull, valuebyval, valuelen, &p);
	}
	PG_RETURN_BYTEA_P(result);
}

Datum
gpuagg_arg_deserialize(PG_FUNCTION_ARGS)
{
	bytea	   *bytes;
	ArgState   *state;
	char	   *p;

	aggregate_context(fcinfo);
	bytes = PG_GETARG_BYTEA_PP(0);
	p = VARDATA_ANY(bytes);
	state = palloc(sizeof(ArgState));
	memcpy(state, p, sizeof(ArgState));
	p += sizeof(ArgState);
	if (state->found)
	{
		state->key.value = datumRestore(&p, &state->key.isnull);
		state->value.value = datumRestore(&p, &state->value.isnull);
	}
	PG_RETURN_POINTER(state);
}

/* The extra arguments only carry the types. */
Datum
gpuagg_arg_final(PG_FUNCTION_ARGS)
{
	ArgState   *state = PG_ARGISNULL(0) ? NULL : (ArgState *) PG_GETARG_POINTER(0);

	if (state == NULL || !state->found || state->value.isnull)
		PG_RETURN_NULL();
	PG_RETURN_DATUM(state->value.value);
}
