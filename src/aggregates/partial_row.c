/*
 * partial_row.c
 *	  gpuagg_pack, gpuagg_merge and gpuagg_finish: any aggregate with a gpuagg_state, in parts.
 *
 * gpuagg_pack makes a gpuagg_row of an aggregate and its arguments. gpuagg_merge aggregates such
 * values; its state is a gpuagg_state. gpuagg_finish makes the result from that. The custom scan
 * does not call these for each row: it computes the aggregate that they stand for (partial_call.c).
 * Elsewhere, each row deserializes the state and serializes it again, which is correct but slow.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "funcapi.h"
#include "libpq/pqformat.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "parser/parse_coerce.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/regproc.h"
#include "utils/syscache.h"

#include "aggregates/aggcall.h"
#include "aggregates/aggmap.h"
#include "aggregates/aggmap_internal.h"
#include "aggregates/alike.h"
#include "aggregates/argextreme.h"
#include "aggregates/partial_state.h"
#include "aggregates/portable.h"
#include "aggregates/top_n.h"
#include "common/compat.h"

PG_FUNCTION_INFO_V1(gpuagg_row_in);
PG_FUNCTION_INFO_V1(gpuagg_row_out);
PG_FUNCTION_INFO_V1(gpuagg_row_recv);
PG_FUNCTION_INFO_V1(gpuagg_row_send);
PG_FUNCTION_INFO_V1(gpuagg_pack);
PG_FUNCTION_INFO_V1(gpuagg_merge_accum);
PG_FUNCTION_INFO_V1(gpuagg_finish);

/*
 * A gpuagg_row in memory and in tables begins with this. Then come, for each argument, its type and
 * what datumSerialize makes of it. If the type's values depend on the session
 * (portable_keeps_form), that is made of their portable bytes instead.
 */
typedef struct RowHead
{
	int32 vl_len_;
	Oid agg;
	Oid collation;
	int32 nargs;
} RowHead;

/* The catalog's data of an aggregate. */
typedef struct PartialAggregate
{
	PartialKind kind;
	Oid transfn;
	Oid finalfn;
	int nargs;
	bool finalextra;
} PartialAggregate;

/*
 * Returns what the catalog has of an aggregate. Raises an error if it has no partial states, or
 * the user may not execute it.
 */
static PartialAggregate
lookup_partial_aggregate(Oid agg)
{
	HeapTuple tuple = SearchSysCache1(AGGFNOID, ObjectIdGetDatum(agg));
	PartialAggregate parts = {aggmap_partial_kind(agg)};
	Form_pg_aggregate form;
	AclResult allowed;

	if (!HeapTupleIsValid(tuple) || parts.kind == PARTIAL_NONE)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("function %s is not an aggregate with partial states of type %s",
						format_procedure(agg), "gpuagg_state")));
	form = (Form_pg_aggregate) GETSTRUCT(tuple);
	parts.transfn = form->aggtransfn;
	parts.finalfn = form->aggfinalfn;
	parts.finalextra = form->aggfinalextra;
	parts.nargs = get_func_nargs(agg);
	ReleaseSysCache(tuple);
	allowed = compat_proc_aclcheck(agg, GetUserId());
	if (allowed != ACLCHECK_OK)
		aclcheck_error(allowed, OBJECT_AGGREGATE, get_func_name(agg));
	return parts;
}

bool
partial_accepts_types(Oid agg, const Oid *types, int nargs)
{
	HeapTuple tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(agg));
	Form_pg_proc form;
	bool result;

	if (!HeapTupleIsValid(tuple))
		return false;
	form = (Form_pg_proc) GETSTRUCT(tuple);
	result = form->pronargs == nargs && !OidIsValid(form->provariadic) &&
		check_generic_type_consistency(types, form->proargtypes.values, nargs);
	for (int i = 0; i < nargs && result; i++)
		result = form->proargtypes.values[i] == types[i] ||
			(types[i] != UNKNOWNOID &&
			 (form->proargtypes.values[i] == ANYOID ||
			  IsPolymorphicType(form->proargtypes.values[i])));
	ReleaseSysCache(tuple);
	return result;
}

/*
 * Returns the argument on whose hashes or order a state depends, or -1. Other values are stored as
 * text.
 */
static int
compared_argument(PartialKind kind, int nargs)
{
	switch (kind)
	{
		case PARTIAL_HLL:
			return 0;
		case PARTIAL_ARGMAX:
		case PARTIAL_ARGMIN:
			return 1;
		case PARTIAL_TOP_N:
			/* (x, n) or (value, key, n) */
			return nargs - 2;
		default:
			return -1;
	}
}

bool
partial_is_portable(PartialKind kind, const Oid *types, int nargs, Oid collation)
{
	int compared = compared_argument(kind, nargs);

	return compared < 0 ||
		(kind == PARTIAL_HLL ? alike_has_same_hash(types[compared], collation) :
							   !alike_contains_object_ids(types[compared]));
}

/* ---- rows ----------------------------------------------------------------------- */

/*
 * Returns a gpuagg_row of these arguments; types[i] is the type of values[i]. Raises an error if a
 * type cannot be part of a state.
 */
static RowHead *
make_row(Oid agg, Oid collation, int nargs, const Oid *types, const NullableDatum *values)
{
	Size size = sizeof(RowHead);
	RowHead *row;
	char *p;
	NullableDatum stored[FUNC_MAX_ARGS];
	int16 len[FUNC_MAX_ARGS];
	bool byval[FUNC_MAX_ARGS];

	for (int i = 0; i < nargs; i++)
	{
		portable_check_type(types[i]);
		stored[i] = values[i];
		get_typlenbyval(types[i], &len[i], &byval[i]);
		if (!values[i].isnull && !portable_keeps_form(types[i]))
		{
			StringInfoData buf;

			pq_begintypsend(&buf);
			portable_put_value(&buf, types[i], values[i].value, false);
			stored[i].value = PointerGetDatum(pq_endtypsend(&buf));
			len[i] = -1;
			byval[i] = false;
		}
		size +=
			sizeof(Oid) + datumEstimateSpace(stored[i].value, stored[i].isnull, byval[i], len[i]);
	}
	row = palloc0(size);
	SET_VARSIZE(row, size);
	row->agg = agg;
	row->collation = collation;
	row->nargs = nargs;
	p = (char *) (row + 1);
	for (int i = 0; i < nargs; i++)
	{
		memcpy(p, &types[i], sizeof(Oid));
		p += sizeof(Oid);
		datumSerialize(stored[i].value, stored[i].isnull, byval[i], len[i], &p);
	}
	return row;
}

/*
 * Sets the types and values of a row's arguments. By-reference values are copies in the current
 * context.
 */
static void
read_row(RowHead *row, Oid *types, NullableDatum *values)
{
	char *p = (char *) (row + 1);

	for (int i = 0; i < row->nargs; i++)
	{
		memcpy(&types[i], p, sizeof(Oid));
		p += sizeof(Oid);
		values[i].value = datumRestore(&p, &values[i].isnull);
		if (!values[i].isnull && !portable_keeps_form(types[i]))
		{
			StringInfoData buf;

			portable_read(&buf, DatumGetByteaPP(values[i].value));
			values[i].value =
				portable_get_value(&buf, types[i], PORTABLE_ANY_NULLS, &values[i].isnull);
		}
	}
}

/* Raises an error that names the n types of the arguments. */
static void
report_wrong_arguments(Oid agg, const Oid *types, int n)
{
	StringInfoData names;

	initStringInfo(&names);
	for (int i = 0; i < n; i++)
		appendStringInfo(&names, "%s%s", i > 0 ? ", " : "", format_type_be(types[i]));
	ereport(
		ERROR,
		(errcode(ERRCODE_DATATYPE_MISMATCH),
		 errmsg("arguments do not match those of aggregate %s", format_procedure(agg)),
		 n == 0 ? errdetail("There are no arguments.") :
				  errdetail_plural("The argument is of type %s.", "The arguments are of types %s.",
								   n, names.data),
		 errhint(
			 "Add explicit type casts to exactly the types that the aggregate is declared for.")));
}

/*
 * (regprocedure, VARIADIC "any"): returns a gpuagg_row with the aggregate and its arguments.
 * Raises an error if the aggregate has no portable state for them.
 */
Datum
gpuagg_pack(PG_FUNCTION_ARGS)
{
	Oid types[FUNC_MAX_ARGS];
	NullableDatum values[FUNC_MAX_ARGS];
	int n = PG_NARGS() - 1;
	PartialKind kind;

	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	if (get_fn_expr_variadic(fcinfo->flinfo))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("%s does not accept VARIADIC arrays", "gpuagg_pack")));
	for (int i = 0; i < n; i++)
	{
		types[i] = get_fn_expr_argtype(fcinfo->flinfo, i + 1);
		values[i].isnull = PG_ARGISNULL(i + 1);
		values[i].value = values[i].isnull ? (Datum) 0 : PG_GETARG_DATUM(i + 1);
		if (!values[i].isnull && get_typlen(types[i]) == -1)
			values[i].value = PointerGetDatum(PG_DETOAST_DATUM(values[i].value));
	}
	if (!partial_accepts_types(PG_GETARG_OID(0), types, n))
		report_wrong_arguments(PG_GETARG_OID(0), types, n);
	kind = aggmap_partial_kind(PG_GETARG_OID(0));
	if (!partial_is_portable(kind, types, n, PG_GET_COLLATION()))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("partial states of aggregate %s cannot be made of values of type %s",
						format_procedure(PG_GETARG_OID(0)),
						format_type_be(types[compared_argument(kind, n)])),
				 errdetail(kind == PARTIAL_HLL ?
							   "Hashes of such values differ between databases." :
							   "The order of such values differs between databases.")));
	PG_RETURN_POINTER(make_row(PG_GETARG_OID(0), PG_GET_COLLATION(), n, types, values));
}

/* Appends a row to buf in portable form (portable.h). */
static void
send_row(StringInfo buf, RowHead *row)
{
	Oid types[FUNC_MAX_ARGS];
	NullableDatum values[FUNC_MAX_ARGS];

	read_row(row, types, values);
	portable_put_name(buf, format_procedure_qualified(row->agg));
	portable_put_collation(buf, row->collation);
	pq_sendint32(buf, row->nargs);
	for (int i = 0; i < row->nargs; i++)
	{
		portable_put_type(buf, types[i]);
		portable_put_value(buf, types[i], values[i].value, values[i].isnull);
	}
}

/* Reads a row in portable form to the end of buf. Raises an error if it is invalid. */
static RowHead *
receive_row(StringInfo buf)
{
	Oid types[FUNC_MAX_ARGS];
	NullableDatum values[FUNC_MAX_ARGS];
	Oid agg = DatumGetObjectId(
		DirectFunctionCall1(regprocedurein, CStringGetDatum(portable_get_name(buf))));
	Oid collation = portable_get_collation(buf);
	int n = portable_get_count(buf, 1, FUNC_MAX_ARGS, "number of arguments");

	for (int i = 0; i < n; i++)
	{
		types[i] = portable_get_type(buf);
		values[i].value =
			portable_get_value(buf, types[i], PORTABLE_CHECK_NULLS, &values[i].isnull);
	}
	pq_getmsgend(buf);
	if (!partial_accepts_types(agg, types, n) ||
		!partial_is_portable(aggmap_partial_kind(agg), types, n, collation))
		portable_invalid("argument");
	return make_row(agg, collation, n, types, values);
}

/* Input function of gpuagg_row. Raises an error if the bytes are invalid. */
Datum
gpuagg_row_in(PG_FUNCTION_ARGS)
{
	StringInfoData buf;

	portable_read(&buf, partial_bytes(PG_GETARG_CSTRING(0), "gpuagg_row"));
	PG_RETURN_POINTER(receive_row(&buf));
}

/* Receive function of gpuagg_row. Raises an error if the bytes are invalid. */
Datum
gpuagg_row_recv(PG_FUNCTION_ARGS)
{
	PG_RETURN_POINTER(receive_row((StringInfo) PG_GETARG_POINTER(0)));
}

/* Send function of gpuagg_row. */
Datum
gpuagg_row_send(PG_FUNCTION_ARGS)
{
	StringInfoData buf;

	pq_begintypsend(&buf);
	send_row(&buf, (RowHead *) PG_DETOAST_DATUM(PG_GETARG_DATUM(0)));
	PG_RETURN_BYTEA_P(pq_endtypsend(&buf));
}

/* Output function of gpuagg_row. */
Datum
gpuagg_row_out(PG_FUNCTION_ARGS)
{
	StringInfoData buf;

	pq_begintypsend(&buf);
	send_row(&buf, (RowHead *) PG_DETOAST_DATUM(PG_GETARG_DATUM(0)));
	PG_RETURN_CSTRING(partial_hex(pq_endtypsend(&buf)));
}

/* ---- the aggregate ----------------------------------------------------------------- */

/*
 * Calls a function of an aggregate. Its first argument is `state` as a state in memory, or NULL;
 * nargs further arguments follow. result: type of the result. A strict function with a NULL
 * argument is not called; then *isnull is true.
 */
static Datum
call_with_state(Oid fn, Oid collation, Oid result, const bytea *state, int nargs, const Oid *types,
				const NullableDatum *args, bool *isnull)
{
	LOCAL_FCINFO(fcinfo, FUNC_MAX_ARGS + 1);
	Oid all[FUNC_MAX_ARGS + 1] = {INTERNALOID};
	FmgrInfo flinfo;
	PartialContext context;
	Datum value;

	*isnull = true;
	memcpy(all + 1, types, nargs * sizeof(Oid));
	aggmap_init_function(&flinfo, fn, result, nargs + 1, all, collation);
	InitFunctionCallInfoData(*fcinfo, &flinfo, nargs + 1, collation, partial_context(&context),
							 NULL);
	fcinfo->args[0].isnull = state == NULL;
	fcinfo->args[0].value = state ? partial_load(state) : (Datum) 0;
	for (int i = 0; i < nargs; i++)
		fcinfo->args[i + 1] = args[i];
	for (int i = 0; i <= nargs && flinfo.fn_strict; i++)
		if (fcinfo->args[i].isnull)
			return (Datum) 0;
	value = FunctionCallInvoke(fcinfo);
	*isnull = fcinfo->isnull;
	return value;
}

/*
 * (gpuagg_state, gpuagg_row): transition function of gpuagg_merge. Returns the state with one more
 * row.
 */
Datum
gpuagg_merge_accum(PG_FUNCTION_ARGS)
{
	bytea *state = PG_ARGISNULL(0) ? NULL : PG_GETARG_BYTEA_PP(0);
	Oid types[FUNC_MAX_ARGS];
	NullableDatum values[FUNC_MAX_ARGS];
	RowHead *row;
	PartialAggregate parts;
	Datum internal;
	bool isnull;

	aggregate_context(fcinfo);
	if (PG_ARGISNULL(1) && state == NULL)
		PG_RETURN_NULL();
	if (PG_ARGISNULL(1))
		PG_RETURN_POINTER(state);
	row = (RowHead *) PG_DETOAST_DATUM(PG_GETARG_DATUM(1));
	parts = lookup_partial_aggregate(row->agg);
	if (state && partial_state_kind(state) != parts.kind)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("partial states of different aggregates cannot be combined")));
	read_row(row, types, values);
	/* pg_upgrade keeps rows in tables and the OIDs of types, but not those of functions */
	if (!partial_accepts_types(row->agg, types, row->nargs))
		report_wrong_arguments(row->agg, types, row->nargs);
	/*
	 * a deserialized state can only be combined: core's transition functions would not add squares
	 * to it
	 */
	internal = call_with_state(parts.transfn, row->collation, INTERNALOID, NULL, row->nargs, types,
							   values, &isnull);
	if (isnull && state == NULL)
		PG_RETURN_NULL();
	if (isnull)
		PG_RETURN_POINTER(state);
	PG_RETURN_DATUM(state ? partial_combine(state, internal) : partial_store(parts.kind, internal));
}

/*
 * Raises an error if `type`, which the caller of gpuagg_finish named, is not the type of the
 * result.
 */
static void
check_result(const PartialAggregate *parts, const bytea *state, Oid type)
{
	Oid result = get_func_rettype(parts->finalfn);

	if (result == ANYELEMENTOID)
		result = state ? argextreme_value_type(DatumGetPointer(partial_load(state))) : type;
	else if (result == ANYARRAYOID)
		result =
			state ? get_array_type(top_n_element_type(DatumGetPointer(partial_load(state)))) : type;
	if (result != type)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("result of the aggregate is of type %s, not %s", format_type_be(result),
						format_type_be(type))));
}

/*
 * (gpuagg_state, regprocedure, anyelement): returns the result of the aggregate for a state. The
 * third argument only has the type of the result.
 */
Datum
gpuagg_finish(PG_FUNCTION_ARGS)
{
	bytea *state = PG_ARGISNULL(0) ? NULL : PG_GETARG_BYTEA_PP(0);
	Oid type = get_fn_expr_argtype(fcinfo->flinfo, 2);
	Oid types[FUNC_MAX_ARGS] = {InvalidOid};
	NullableDatum args[FUNC_MAX_ARGS];
	PartialAggregate parts;
	Datum result;
	bool isnull;

	if (PG_ARGISNULL(1))
		PG_RETURN_NULL();
	parts = lookup_partial_aggregate(PG_GETARG_OID(1));
	if (state && partial_state_kind(state) != parts.kind)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("partial state does not belong to aggregate %s",
						format_procedure(PG_GETARG_OID(1)))));
	check_result(&parts, state, type);
	for (int i = 0; i < FUNC_MAX_ARGS; i++)
	{
		args[i].value = (Datum) 0;
		args[i].isnull = true;
		types[i] = parts.kind == PARTIAL_TOP_N ? get_element_type(type) : type;
	}
	result = call_with_state(parts.finalfn, PG_GET_COLLATION(), type, state,
							 parts.finalextra ? parts.nargs : 0, types, args, &isnull);
	if (isnull)
		PG_RETURN_NULL();
	PG_RETURN_DATUM(result);
}
