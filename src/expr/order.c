/*
 * order.c
 *	  Which expressions cannot raise an error; the order in which quals are evaluated.
 *
 * The planner orders quals by the cost of their functions; vector operations cost
 * much less, which it does not take into account.  Here the quals that are vector
 * operations throughout come first, so that functions are called for the remaining
 * rows only.  Only adjacent quals that cannot raise an error change places, so that
 * the same errors are raised.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "expr/internal.h"

static bool
is_leaky(Oid funcid, void *context)
{
	return !get_func_leakproof(funcid);
}

/*
 * Has it arguments with collations, but no deterministic one to call its function with?  Leakproof
 * functions of strings fail where conflicting collations leave none, and starts_with() under
 * others.
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

	if (expr_deterministic(collation))
		return false;
	foreach (lc, args)
		if (OidIsValid(collation) || type_is_collatable(exprType(lfirst(lc))))
			return true;
	return false;
}

/*
 * Leakproof functions raise no errors; see CREATE FUNCTION.  Others may, over
 * constants as well, and a parameter may stand for a subquery to be run, or in a PL/pgSQL function
 * for the field of a record that has none yet.  context: the parameters; NULL where they are not
 * known.
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
			return check_functions_in_node(node, is_leaky, context) || lacks_collation(node) ||
				expression_tree_walker(node, can_fail, context);
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

/* The only error of LIKE is a pattern that ends with an escape character. */
static bool
like_cannot_fail(OpExpr *op, ParamListInfo params)
{
	Const *pattern = lsecond(op->args);

	return IsA(pattern, Const) && !pattern->constisnull && expr_deterministic(op->inputcollid) &&
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

static bool
is_slow(Oid funcid, void *context)
{
	return expr_find_function(funcid) == NULL && !expr_is_text_equality(funcid);
}

/* Does it call functions row by row, as far as its nodes tell? */
static bool
row_by_row_walker(Node *node, void *context)
{
	if (node == NULL)
		return false;
	switch (nodeTag(node))
	{
		case T_FuncExpr:
		case T_OpExpr:
		case T_ScalarArrayOpExpr:
		case T_List:
		case T_Var:
		case T_Const:
		case T_Param:
		case T_RelabelType:
		case T_BoolExpr:
		case T_NullTest:
		case T_BooleanTest:
			return check_functions_in_node(node, is_slow, context) ||
				expression_tree_walker(node, row_by_row_walker, context);
		default:
			return true;
	}
}

List *
expr_order_quals(List *quals, ParamListInfo params)
{
	List *result = NIL;
	List *slow = NIL; /* of the run of quals that cannot fail */
	ListCell *lc;

	foreach (lc, quals)
	{
		Node *qual = lfirst(lc);

		if (!expr_cannot_fail(qual, params))
		{
			result = lappend(list_concat(result, slow), qual);
			slow = NIL;
		}
		else if (row_by_row_walker(qual, NULL))
			slow = lappend(slow, qual);
		else
			result = lappend(result, qual);
	}
	return list_concat(result, slow);
}
