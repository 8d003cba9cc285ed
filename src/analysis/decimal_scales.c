/*
 * decimal_scales.c
 *	  Which display scales the values of a numeric expression have, and which column type its values
 *	  need.
 *
 * In core, a sum has the larger display scale of its arguments, a product has the sum of their
 * scales, and CASE has the scale of the branch that is taken.  A quotient has at least 16
 * significant digits.  So if all columns have a declared scale, the scale of an expression is known
 * without any value, or at least the largest scale that it can have.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"

#include "analysis/analysis.h"
#include "operators/decode_numeric.h"
#include "spec.h"

/* The range of display scales that the values of an expression can have. */
typedef struct Scales
{
	int16 least;
	int16 most;
} Scales;

static bool find_scales(Node *expr, Scales *scales);

/* Sets the display scale of a numeric constant; false if no decimal can represent it. */
static bool
const_scale(Const *con, int16 *scale)
{
	struct varlena *num;
	gpuagg_i128 value;

	if (con->constisnull)
		return false;
	num = PG_DETOAST_DATUM(con->constvalue);
	for (int s = 0; s <= EXPR_MAX_SCALE; s++)
		if (decode_numeric((uint8_t *) VARDATA_ANY(num), VARSIZE_ANY_EXHDR(num), s, &value))
		{
			*scale = s;
			return true;
		}
	return false;
}

bool
expr_const_int4(Node *node, int32 *value)
{
	if (!IsA(node, Const) || ((Const *) node)->consttype != INT4OID ||
		((Const *) node)->constisnull)
		return false;
	*value = DatumGetInt32(((Const *) node)->constvalue);
	return true;
}

bool
expr_time_field(Node *arg, VectorField *field)
{
	static const char *const names[] = {"second", "minute",  "hour", "epoch", "day",    "week",
										"month",  "quarter", "year", "dow",   "isodow", "doy"};
	char *name;

	if (!IsA(arg, Const) || ((Const *) arg)->constisnull || ((Const *) arg)->consttype != TEXTOID)
		return false;
	name = TextDatumGetCString(((Const *) arg)->constvalue);
	for (int i = 0; i < lengthof(names); i++)
		if (pg_strcasecmp(name, names[i]) == 0)
		{
			*field = i;
			return true;
		}
	return false;
}

/* Sets the display scale of extract(field FROM ...); false if it depends on the value. */
static bool
extract_scale(Oid funcid, List *args, int16 *scale)
{
	VectorField field;

	if (funcid != F_EXTRACT_TEXT_TIMESTAMP && funcid != F_EXTRACT_TEXT_TIMESTAMPTZ &&
		funcid != F_EXTRACT_TEXT_DATE)
		return false;
	if (!expr_time_field(linitial(args), &field))
		return false;
	*scale = (field == VECTOR_SECOND || field == VECTOR_EPOCH) ? 6 : 0;
	if (funcid == F_EXTRACT_TEXT_DATE)
		*scale = 0;
	return true;
}

bool
expr_is_interval_epoch(Oid funcid, List *args)
{
	Const *field;

	if (funcid != F_EXTRACT_TEXT_INTERVAL)
		return false;
	field = linitial(args);
	return IsA(field, Const) && !field->constisnull && field->consttype == TEXTOID &&
		pg_strcasecmp(TextDatumGetCString(field->constvalue), "epoch") == 0;
}

/*
 * Sets the scale of a function whose results all have the same display scale.  Returns false for
 * other functions.
 */
static bool
function_scale(Oid funcid, List *args, int16 *scale)
{
	int32 n;

	switch (funcid)
	{
		case F_NUMERIC_INT2:
		case F_NUMERIC_INT4:
		case F_NUMERIC_INT8:
			*scale = 0;
			return true;
		case F_ROUND_NUMERIC_INT4:
		case F_TRUNC_NUMERIC_INT4:
			if (!expr_const_int4(lsecond(args), &n) || n > EXPR_MAX_SCALE)
				return false;
			*scale = Max(n, 0);
			return true;
		case F_CEIL_NUMERIC:
		case F_CEILING_NUMERIC:
		case F_FLOOR_NUMERIC:
		case F_SIGN_NUMERIC:
			*scale = 0;
			return true;
		case F_NUMERIC_NUMERIC_INT4:
			return expr_const_int4(lsecond(args), &n) &&
				spec_column_type(NUMERICOID, n, scale) == COLUMN_DEC;
		default:
			if (expr_is_interval_epoch(funcid, args))
			{
				*scale = 6;
				return true;
			}
			return extract_scale(funcid, args, scale);
	}
}

/* Sets the range of scales that a function's results can have; false: not known. */
static bool
function_scales(Oid funcid, List *args, Scales *scales)
{
	Scales a, b;

	switch (funcid)
	{
		case F_NUMERIC_ADD:
		case F_NUMERIC_SUB:
		case F_NUMERIC_MUL:
		case F_NUMERIC_DIV:
		case F_NUMERIC_MOD:
		case F_MOD_NUMERIC_NUMERIC:
			if (!find_scales(linitial(args), &a) || !find_scales(lsecond(args), &b))
				return false;
			if (funcid == F_NUMERIC_MUL)
				*scales = (Scales){a.least + b.least, a.most + b.most};
			else
				*scales = (Scales){Max(a.least, b.least), Max(a.most, b.most)};
			if (funcid == F_NUMERIC_DIV)
				scales->most = Max(scales->most, EXPR_QUOTIENT_SCALE);
			return scales->most <= EXPR_MAX_SCALE;
		case F_NUMERIC_UMINUS:
		case F_NUMERIC_UPLUS:
		case F_NUMERIC_ABS:
		case F_ABS_NUMERIC:
			return find_scales(linitial(args), scales);
		default:
			if (!function_scale(funcid, args, &scales->least))
				return false;
			scales->most = scales->least;
			return true;
	}
}

/*
 * Sets the range of scales of a choice among expressions, such as CASE.  Ignores NULL constants.
 * Returns false if a scale is not known, or all are NULL.
 */
static bool
choice_scales(List *exprs, Scales *scales)
{
	Scales s;
	ListCell *lc;

	*scales = (Scales){EXPR_MAX_SCALE + 1, -1};
	foreach (lc, exprs)
	{
		if (lfirst(lc) == NULL || (IsA(lfirst(lc), Const) && ((Const *) lfirst(lc))->constisnull))
			continue;
		if (!find_scales(lfirst(lc), &s))
			return false;
		*scales = (Scales){Min(scales->least, s.least), Max(scales->most, s.most)};
	}
	return scales->most >= 0;
}

/*
 * Sets scales->most to scales->least, for values that all have one display scale.  Returns `known`
 * unchanged, for the caller to return.
 */
static bool
one_scale(bool known, Scales *scales)
{
	scales->most = scales->least;
	return known;
}

/*
 * Sets the range of display scales that the values of an expression can have.  Returns false if it
 * is not numeric, or the range is not known.
 */
static bool
find_scales(Node *expr, Scales *scales)
{
	if (exprType(expr) != NUMERICOID)
		return false;
	check_stack_depth();
	switch (nodeTag(expr))
	{
		case T_Var:
			return one_scale(spec_column_type(exprType(expr), exprTypmod(expr), &scales->least) ==
								 COLUMN_DEC,
							 scales);
		case T_Const:
			return one_scale(((Const *) expr)->consttype == NUMERICOID &&
								 const_scale((Const *) expr, &scales->least),
							 scales);
		case T_RelabelType:
			return find_scales((Node *) ((RelabelType *) expr)->arg, scales);
		case T_FuncExpr:
			return function_scales(((FuncExpr *) expr)->funcid, ((FuncExpr *) expr)->args, scales);
		case T_OpExpr:
			set_opfuncid((OpExpr *) expr);
			return function_scales(((OpExpr *) expr)->opfuncid, ((OpExpr *) expr)->args, scales);
		case T_CaseExpr:
		{
			List *results = list_make1(((CaseExpr *) expr)->defresult);
			ListCell *lc;

			foreach (lc, ((CaseExpr *) expr)->args)
				results = lappend(results, ((CaseWhen *) lfirst(lc))->result);
			return choice_scales(results, scales);
		}
		case T_CoalesceExpr:
			return choice_scales(((CoalesceExpr *) expr)->args, scales);
		case T_MinMaxExpr:
			return choice_scales(((MinMaxExpr *) expr)->args, scales);
		case T_NullIfExpr:
			return find_scales(linitial(((NullIfExpr *) expr)->args), scales);
		default:
			return false;
	}
}

bool
expr_decimal_scales(Node *expr, int16 *least, int16 *most)
{
	Scales scales;

	if (!find_scales(expr, &scales))
		return false;
	*least = scales.least;
	*most = scales.most;
	return true;
}

bool
expr_decimal_shape(Node *expr, int16 *scale)
{
	int16 least;

	return expr_decimal_scales(expr, &least, scale) && least == *scale;
}

ColumnType
expr_column_type(Node *expr, int16 *scale)
{
	if (exprType(expr) == NUMERICOID && expr_decimal_shape(expr, scale))
		return COLUMN_DEC;
	return spec_column_type(exprType(expr), exprTypmod(expr), scale);
}

ColumnType
expr_value_type(Expr *expr, int16 *scale)
{
	return expr_decimal_shape((Node *) expr, scale) ?
		COLUMN_DEC :
		spec_column_type(exprType((Node *) expr), -1, scale);
}
