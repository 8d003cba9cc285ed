/*
 * estimate.c
 *	  Estimates the number of groups of a query, and the usual scale of its numerics.
 *
 * Core estimates that an expression has as many values as the columns in it.  By that, a histogram
 * of 100 bins over a unique column would have as many groups as rows, and a parallel plan, which
 * exchanges groups, would seem useless.  Some expressions have few values whatever their columns
 * contain.  Their number is an upper bound for core's estimate.
 */
#include "postgres.h"

#include <math.h>

#include "access/htup_details.h"
#include "catalog/pg_statistic.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"

#include "common/integers.h"
#include "operators/decode_numeric.h"
#include "plan/estimate.h"
#include "spec.h"

/* A larger bound makes no difference. */
#define MOST_VALUES 1e15

/* At least this fraction of a column's values must have its usual scale. */
#define USUAL_SHARE 0.75

static double values_of(Node *expr);

/* Returns a constant that is not NULL; NULL for any other expression. */
static Const *
as_constant(Node *expr)
{
	return expr && IsA(expr, Const) && !((Const *) expr)->constisnull ? (Const *) expr : NULL;
}

/* Returns the number of values of extract(field) and date_part(field); 0: no bound. */
static double
values_of_field(Node *arg)
{
	static const struct
	{
		const char *name;
		int values;
	} fields[] = {{"month", 12}, {"day", 31},   {"hour", 24}, {"minute", 60}, {"quarter", 4},
				  {"dow", 7},    {"isodow", 7}, {"doy", 366}, {"week", 53}};
	Const *name = as_constant(arg);

	for (int i = 0; name && i < lengthof(fields); i++)
		if (pg_strcasecmp(TextDatumGetCString(name->constvalue), fields[i].name) == 0)
			return fields[i].values;
	return 0;
}

/* Returns the number of values of x % c; 0: no bound. */
static double
values_of_modulus(Node *arg)
{
	Const *c = as_constant(arg);
	int64 modulus;

	if (c == NULL)
		return 0;
	modulus = integer_of_type(c->consttype, c->constvalue);
	return Max(2 * fabs((double) modulus) - 1, 1);
}

/* Returns the number of values of width_bucket(x, array); 0: no bound. */
static double
values_of_array_buckets(Node *arg)
{
	Const *thresholds = as_constant(arg);
	ArrayType *array;

	if (thresholds == NULL)
		return 0;
	array = DatumGetArrayTypeP(thresholds->constvalue);
	return ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array)) + 1.0;
}

/*
 * Returns the product of the arguments' numbers of values, which bounds the values of an immutable
 * or stable function; 0: no bound.
 */
static double
values_of_all(List *args)
{
	double values = 1;
	ListCell *lc;

	foreach (lc, args)
		values *= values_of(lfirst(lc));
	return values;
}

/* Returns the maximum number of values of a function call; 0: no bound. */
static double
values_of_call(Oid funcid, List *args)
{
	switch (funcid)
	{
		case F_WIDTH_BUCKET_FLOAT8_FLOAT8_FLOAT8_INT4:
		case F_WIDTH_BUCKET_NUMERIC_NUMERIC_NUMERIC_INT4:
			return as_constant(lfourth(args)) ?
				Max(DatumGetInt32(as_constant(lfourth(args))->constvalue), 0) + 2.0 :
				0;
		case F_WIDTH_BUCKET_ANYCOMPATIBLE_ANYCOMPATIBLEARRAY:
			return values_of_array_buckets(lsecond(args));
		case F_DATE_PART_TEXT_DATE:
		case F_DATE_PART_TEXT_TIME:
		case F_DATE_PART_TEXT_TIMETZ:
		case F_DATE_PART_TEXT_TIMESTAMP:
		case F_DATE_PART_TEXT_TIMESTAMPTZ:
		case F_EXTRACT_TEXT_DATE:
		case F_EXTRACT_TEXT_TIME:
		case F_EXTRACT_TEXT_TIMETZ:
		case F_EXTRACT_TEXT_TIMESTAMP:
		case F_EXTRACT_TEXT_TIMESTAMPTZ:
			return values_of_field(linitial(args));
		case F_INT2MOD:
		case F_INT4MOD:
		case F_INT8MOD:
			return values_of_modulus(lsecond(args));
		default:
			return args == NIL ? 0 : values_of_all(args);
	}
}

/*
 * Returns the maximum number of values of a CASE or COALESCE with these choices: the sum of their
 * numbers of values; 0: no bound.
 */
static double
values_of_any(List *choices)
{
	double values = 0;
	ListCell *lc;

	foreach (lc, choices)
	{
		Node *choice = lfirst(lc);
		double more =
			values_of(IsA(choice, CaseWhen) ? (Node *) ((CaseWhen *) choice)->result : choice);

		if (more == 0)
			return 0;
		values += more;
	}
	return values;
}

/*
 * Returns the maximum number of values, other than NULL, of an expression without volatile
 * functions; 0: no bound.
 */
static double
values_of(Node *expr)
{
	check_stack_depth();
	if (exprType(expr) == BOOLOID)
		return 2;
	switch (nodeTag(expr))
	{
		case T_Const:
			return 1;
		case T_RelabelType:
			return values_of((Node *) ((RelabelType *) expr)->arg);
		case T_CoerceViaIO:
			return values_of((Node *) ((CoerceViaIO *) expr)->arg);
		case T_FuncExpr:
			return ((FuncExpr *) expr)->funcretset ?
				0 :
				values_of_call(((FuncExpr *) expr)->funcid, ((FuncExpr *) expr)->args);
		case T_OpExpr:
			set_opfuncid((OpExpr *) expr);
			return values_of_call(((OpExpr *) expr)->opfuncid, ((OpExpr *) expr)->args);
		case T_CaseExpr:
			return values_of_any(
				lappend(list_copy(((CaseExpr *) expr)->args), ((CaseExpr *) expr)->defresult));
		case T_CoalesceExpr:
			return values_of_any(((CoalesceExpr *) expr)->args);
		default:
			return 0;
	}
}

double
estimate_groups(PlannerInfo *root, List *keys, double rows)
{
	double groups = estimate_num_groups(root, keys, rows, NULL, NULL);
	double bound = 1;
	List *others = NIL;
	ListCell *lc;

	foreach (lc, keys)
	{
		/*
		 * not simplified: evaluating stable functions in it could raise an error for a query
		 * without rows
		 */
		Node *key = lfirst(lc);
		double values = contain_volatile_functions(key) ? 0 : values_of(key);

		if (values > 0)
			bound = Min(bound * (values + 1), MOST_VALUES); /* plus NULL */
		else
			others = lappend(others, lfirst(lc));
	}
	if (list_length(others) == list_length(keys))
		return groups;
	if (others != NIL)
		bound *= estimate_num_groups(root, others, rows, NULL, NULL);
	return clamp_row_est(Min(groups, bound));
}

/*
 * Adds `share`, the fraction of a column's values that this numeric stands for, to shares[scale],
 * where scale is its display scale.  Does nothing if COLUMN_DEC cannot represent the numeric.
 */
static void
add_share(double *shares, Datum value, double share)
{
	struct varlena *numeric = PG_DETOAST_DATUM(value);
	const uint8_t *data = (const uint8_t *) VARDATA_ANY(numeric);
	int len = VARSIZE_ANY_EXHDR(numeric);
	gpuagg_i128 decimal;
	DecodeHeader header;

	if (decode_header(data, len, &header) && header.dscale <= SPEC_MAX_SCALE &&
		decode_numeric(data, len, header.dscale, &decimal))
		shares[header.dscale] += share;
}

int
estimate_scale(PlannerInfo *root, Node *expr)
{
	double shares[SPEC_MAX_SCALE + 1] = {0};
	double values = 0;
	int most = 0;
	VariableStatData column;
	AttStatsSlot slot;

	/* a declared scale needs no estimate */
	if (exprType(expr) != NUMERICOID || exprTypmod(expr) >= 0)
		return -1;
	examine_variable(root, expr, 0, &column);
	if (HeapTupleIsValid(column.statsTuple) && column.vartype == NUMERICOID)
	{
		double rest;

		values = rest = 1 - ((Form_pg_statistic) GETSTRUCT(column.statsTuple))->stanullfrac;
		if (get_attstatsslot(&slot, column.statsTuple, STATISTIC_KIND_MCV, InvalidOid,
							 ATTSTATSSLOT_VALUES | ATTSTATSSLOT_NUMBERS))
		{
			for (int i = 0; i < Min(slot.nvalues, slot.nnumbers); i++)
			{
				add_share(shares, slot.values[i], slot.numbers[i]);
				rest -= slot.numbers[i];
			}
			free_attstatsslot(&slot);
		}
		if (get_attstatsslot(&slot, column.statsTuple, STATISTIC_KIND_HISTOGRAM, InvalidOid,
							 ATTSTATSSLOT_VALUES))
		{
			for (int i = 0; i < slot.nvalues; i++)
				add_share(shares, slot.values[i], rest / slot.nvalues);
			free_attstatsslot(&slot);
		}
	}
	for (int scale = 1; scale <= SPEC_MAX_SCALE; scale++)
		if (shares[scale] > shares[most])
			most = scale;
	ReleaseVariableStats(column);
	return shares[most] > values * USUAL_SHARE ? most : -1;
}
