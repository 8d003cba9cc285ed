/*
 * order.c
 *	  Chooses the order in which quals are evaluated.
 *
 * The planner orders quals by the cost of their functions.  Vector operations cost much less, which
 * it does not take into account.  Here quals that consist of vector operations come first, so that
 * functions are called only for the remaining rows.  Only adjacent quals that cannot raise an error
 * change places, so that the same errors are raised.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "expr/expr_internal.h"

/*
 * Callback of check_functions_in_node: returns whether the function is neither in vector_ops.h nor
 * an equality of texts.  All others count as slow.
 */
static bool
lacks_vector_operation(Oid funcid, void *context)
{
	return expr_find_function(funcid) == NULL && !expr_is_text_equality(funcid);
}

/*
 * Returns whether the expression contains a function that lacks_vector_operation() or a node that
 * is not listed here.  Such quals run after the others.
 */
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
			return check_functions_in_node(node, lacks_vector_operation, context) ||
				expression_tree_walker(node, row_by_row_walker, context);
		default:
			return true;
	}
}

List *
expr_order_quals(List *quals, ParamListInfo params)
{
	List *result = NIL;
	List *slow = NIL; /* slow quals of the current sequence of quals that cannot fail */
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
