/*
 * can_fail.c
 *	  Which expressions can raise an error or have a side effect.
 *
 * Leakproof functions raise no error, with one exception: functions of strings raise one without a
 * deterministic collation.
 */
#include "postgres.h"

#include "catalog/pg_collation.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

#include "analysis/analysis.h"

bool
expr_collation_is_deterministic(Oid collation)
{
	return OidIsValid(collation) &&
		(collation == C_COLLATION_OID || collation == DEFAULT_COLLATION_OID ||
		 get_collation_isdeterministic(collation));
}
bool
expr_is_like(Oid funcid)
{
	return funcid == F_TEXTLIKE || funcid == F_TEXTNLIKE || funcid == F_BPCHARLIKE ||
		funcid == F_BPCHARNLIKE;
}
/* Callback of check_functions_in_node: returns whether the function is not leakproof. */
static bool
is_leaky(Oid funcid, void *context)
{
	return !get_func_leakproof(funcid);
}

/*
 * Returns whether the node has collatable arguments but no deterministic collation to call its
 * function with.  Leakproof functions of strings raise an error if conflicting collations leave
 * none, and starts_with() does under a nondeterministic one.
 */
static bool
lacks_collation(Node *node)
{
	Oid collation = exprInputCollation(node);
	List *args = IsA(node, FuncExpr) ? ((FuncExpr *) node)->args :
		IsA(node, MinMaxExpr)        ? ((MinMaxExpr *) node)->args :
		IsA(node, ScalarArrayOpExpr) ? ((ScalarArrayOpExpr *) node)->args :
									   ((OpExpr *) node)->args;
	ListCell *lc;

	if (expr_collation_is_deterministic(collation))
		return false;
	foreach (lc, args)
		if (OidIsValid(collation) || type_is_collatable(exprType(lfirst(lc))))
			return true;
	return false;
}

/* Returns whether a function divides integers: 'd' for a quotient, 'm' for a remainder, or 0. */
static char
divides_integers(Oid funcid)
{
	switch (funcid)
	{
		case F_INT2DIV:
		case F_INT4DIV:
		case F_INT8DIV:
		case F_INT24DIV:
		case F_INT28DIV:
		case F_INT42DIV:
		case F_INT48DIV:
		case F_INT82DIV:
		case F_INT84DIV:
			return 'd';
		case F_INT2MOD:
		case F_INT4MOD:
		case F_INT8MOD:
			return 'm';
		default:
			return 0;
	}
}

/*
 * Returns whether a node divides integers by a constant that is no cause of errors.  Remainders
 * raise an error for the divisor 0, quotients for -1, too: of the least integer.
 */
static bool
divides_safely(Node *node)
{
	OpExpr *op = (OpExpr *) node;
	char divides = IsA(node, OpExpr) ? divides_integers(op->opfuncid) : 0;
	Const *divisor = divides ? lsecond(op->args) : NULL;
	int64 value;

	if (divides == 0 || !IsA(divisor, Const) || divisor->constisnull)
		return false;
	value = divisor->constlen == 2 ? DatumGetInt16(divisor->constvalue) :
		divisor->constlen == 4     ? DatumGetInt32(divisor->constvalue) :
									 DatumGetInt64(divisor->constvalue);
	return value != 0 && (divides == 'm' || value != -1);
}

/*
 * Walker: returns whether evaluating the node may raise an error. Leakproof functions raise none
 * (see CREATE FUNCTION). All others may, even over constants. A parameter may stand for a subquery
 * that must be run, or in PL/pgSQL for a field of a record that is not assigned yet. context: the
 * query's parameters, or NULL if they are not known.
 */
static bool
can_fail(Node *node, void *context)
{
	ParamListInfo params = context;

	if (node == NULL)
		return false;
	switch (nodeTag(node))
	{
		case T_Param:
			return ((Param *) node)->paramkind == PARAM_EXEC || params == NULL ||
				params->paramCompile;
		case T_MinMaxExpr:
			return contain_leaked_vars(node) || lacks_collation(node) ||
				expression_tree_walker(node, can_fail, context);
		case T_ArrayExpr:
			return ((ArrayExpr *) node)->multidims ||
				expression_tree_walker(node, can_fail, context);
		case T_FuncExpr:
		case T_OpExpr:
		case T_DistinctExpr:
		case T_NullIfExpr:
		case T_ScalarArrayOpExpr:
			return (!divides_safely(node) && check_functions_in_node(node, is_leaky, context)) ||
				lacks_collation(node) || expression_tree_walker(node, can_fail, context);
		case T_List:
		case T_Var:
		case T_Const:
		case T_RelabelType:
		case T_BoolExpr:
		case T_NullTest:
		case T_BooleanTest:
		case T_CaseExpr:
		case T_CaseTestExpr:
		case T_CoalesceExpr:
			return expression_tree_walker(node, can_fail, context);
		default:
			return true;
	}
}

/*
 * Returns whether LIKE raises no error.  It raises one only if its pattern ends with an escape
 * character; here any backslash in the pattern counts.
 */
static bool
like_cannot_fail(OpExpr *op, ParamListInfo params)
{
	Const *pattern = lsecond(op->args);

	return IsA(pattern, Const) && !pattern->constisnull &&
		expr_collation_is_deterministic(op->inputcollid) &&
		strchr(text_to_cstring(DatumGetTextPP(pattern->constvalue)), '\\') == NULL &&
		!can_fail(linitial(op->args), params);
}

bool
expr_cannot_fail(Node *expr, ParamListInfo params)
{
	if (contain_volatile_functions(expr))
		return false;
	if (IsA(expr, OpExpr) && expr_is_like(((OpExpr *) expr)->opfuncid))
		return like_cannot_fail((OpExpr *) expr, params);
	return !can_fail(expr, params);
}

const char *
expr_join_keys_unsupported_reason(List *keys, ParamListInfo params)
{
	return list_length(keys) > 1 && !expr_cannot_fail((Node *) keys, params) ?
		"a key of the join may raise an error" :
		NULL;
}
