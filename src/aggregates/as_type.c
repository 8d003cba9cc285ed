/*
 * as_type.c
 *	  gpuagg_as_type: converts a column of another server's table to the value that the requesting
 *	  server would get.
 *
 * A foreign table's column may be declared with another type than that of the remote table.
 * postgres_fdw fetches rows as text, which the output function of one type writes and the input
 * function of the other reads. An aggregate that is executed on the other server (plan/foreign.c)
 * must see the same values, so each of its columns is wrapped in this function. Where the types are
 * equal, the planner removes the call.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/supportnodes.h"
#include "parser/parse_coerce.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"

#include "common/compat.h"

PG_FUNCTION_INFO_V1(gpuagg_as_type);
PG_FUNCTION_INFO_V1(gpuagg_as_type_support);

/* The functions of a conversion by text, cached in fn_extra. */
typedef struct IoFunctions
{
	FmgrInfo output;
	FmgrInfo input;
	Oid ioparam;
} IoFunctions;

/*
 * Returns the output function of the value's type and the input function of the other type, cached
 * in fn_extra.
 */
static IoFunctions *
io_functions(FmgrInfo *flinfo)
{
	IoFunctions *functions = flinfo->fn_extra;
	Oid from = get_fn_expr_argtype(flinfo, 0);
	Oid to = get_fn_expr_argtype(flinfo, 1);
	Oid fn;
	bool varlena;

	if (functions)
		return functions;
	if (!OidIsValid(from) || !OidIsValid(to))
		ereport(ERROR,
				(errcode(ERRCODE_INDETERMINATE_DATATYPE),
				 errmsg("could not determine input data type")));
	functions = MemoryContextAlloc(flinfo->fn_mcxt, sizeof(IoFunctions));
	getTypeOutputInfo(from, &fn, &varlena);
	fmgr_info_cxt(fn, &functions->output, flinfo->fn_mcxt);
	getTypeInputInfo(to, &fn, &functions->ioparam);
	fmgr_info_cxt(fn, &functions->input, flinfo->fn_mcxt);
	return flinfo->fn_extra = functions;
}

/*
 * Sets the requesting session's settings, so that input functions of dates and times read text as
 * they do there.
 */
static void
apply_settings(ArrayType *settings)
{
	static const char *const names[] = {"TimeZone", "DateStyle", "IntervalStyle"};
	Datum *values;
	bool *nulls;
	int n;

	deconstruct_array(settings, TEXTOID, -1, false, TYPALIGN_INT, &values, &nulls, &n);
	if (n != lengthof(names))
		ereport(ERROR,
				(errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
				 errmsg("settings must be those of TimeZone, DateStyle and IntervalStyle")));
	for (int i = 0; i < n; i++)
		if (!nulls[i])
			(void) set_config_option(names[i], TextDatumGetCString(values[i]), PGC_USERSET,
									 PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
}

/* (value "any", type anyelement, typmod int4, settings text[]) */
Datum
gpuagg_as_type(PG_FUNCTION_ARGS)
{
	IoFunctions *functions = io_functions(fcinfo->flinfo);
	char *text =
		PG_ARGISNULL(0) ? NULL : OutputFunctionCall(&functions->output, PG_GETARG_DATUM(0));
	int32 typmod = PG_ARGISNULL(2) ? -1 : PG_GETARG_INT32(2);
	Datum result;
	int level;

	if (PG_ARGISNULL(3) || text == NULL)
		result = InputFunctionCall(&functions->input, text, functions->ioparam, typmod);
	else
	{
		level = NewGUCNestLevel();
		apply_settings(PG_GETARG_ARRAYTYPE_P(3));
		result = InputFunctionCall(&functions->input, text, functions->ioparam, typmod);
		AtEOXact_GUC(true, level);
	}
	if (text == NULL)
		PG_RETURN_NULL();
	PG_RETURN_DATUM(result);
}

/* Returns the bytes of an integer type; 0 for other types. */
static int
integer_width(Oid type)
{
	return type == INT2OID ? 2 : type == INT4OID ? 4 : type == INT8OID ? 8 : 0;
}

/*
 * Returns an expression that converts the value without text, and for which engines have vectors:
 * the value itself, or with a cast of core's. Returns NULL if only text gives the same value.
 */
static Node *
convert_without_text(Node *value, Oid type, int32 typmod, Oid collation)
{
	Oid from = exprType(value);
	int width = integer_width(from);

	if (from == type && (typmod < 0 || typmod == exprTypmod(value)))
		return value;
	if (typmod >= 0)
		return NULL;
	if ((from == VARCHAROID && type == TEXTOID) || (from == TEXTOID && type == VARCHAROID))
		return (Node *) makeRelabelType((Expr *) value, type, -1, collation, COERCE_EXPLICIT_CAST);
	if (width > 0 && (width < integer_width(type) || type == NUMERICOID))
		return coerce_type(NULL, value, from, type, -1, COERCION_EXPLICIT, COERCE_EXPLICIT_CAST,
						   -1);
	return NULL;
}

/*
 * Planner support function of gpuagg_as_type: replaces a call by convert_without_text(), if
 * possible.
 */
Datum
gpuagg_as_type_support(PG_FUNCTION_ARGS)
{
	SupportRequestSimplify *request = (SupportRequestSimplify *) PG_GETARG_POINTER(0);
	FuncExpr *call;
	Const *typmod;

	if (!IsA(request, SupportRequestSimplify))
		PG_RETURN_POINTER(NULL);
	call = request->fcall;
	typmod = lthird(call->args);
	if (!IsA(typmod, Const) || typmod->constisnull)
		PG_RETURN_POINTER(NULL);
	PG_RETURN_POINTER(convert_without_text(linitial(call->args), call->funcresulttype,
										   DatumGetInt32(typmod->constvalue), call->funccollid));
}
