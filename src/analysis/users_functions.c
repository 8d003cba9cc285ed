/*
 * users_functions.c
 *	  Finds calls of functions that PostgreSQL does not come with.
 */
#include "postgres.h"

#include "access/transam.h"
#include "nodes/nodeFuncs.h"

#include "analysis/analysis.h"

/* Returns whether a function is not one that PostgreSQL comes with. */
static bool
is_users_function(Oid funcid, void *context)
{
	return funcid >= FirstNormalObjectId;
}

/* Walker: returns true at a call of such a function. */
static bool
calls_walker(Node *node, void *context)
{
	if (node == NULL)
		return false;
	return check_functions_in_node(node, is_users_function, context) ||
		expression_tree_walker(node, calls_walker, context);
}

bool
expr_calls_users_function(Node *expr)
{
	return calls_walker(expr, NULL);
}

bool
expr_evaluates_unnoticed(Node *expr, ParamListInfo params)
{
	return expr == NULL || (expr_cannot_fail(expr, params) && !expr_calls_users_function(expr));
}
