/*
 * users_functions.c
 *	  Finds calls of functions that PostgreSQL does not come with.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_proc.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

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

/* Returns whether a function is volatile, or an aggregate that calls a volatile one. */
static bool
is_volatile(Oid funcid, void *context)
{
	HeapTuple tuple;
	bool is_so = func_volatile(funcid) == PROVOLATILE_VOLATILE;

	if (is_so || funcid < FirstNormalObjectId)
		return is_so;
	tuple = SearchSysCache1(AGGFNOID, ObjectIdGetDatum(funcid));
	if (HeapTupleIsValid(tuple))
	{
		Form_pg_aggregate form = (Form_pg_aggregate) GETSTRUCT(tuple);
		Oid functions[] = {form->aggtransfn, form->aggfinalfn, form->aggcombinefn,
						   form->aggserialfn, form->aggdeserialfn};

		for (int i = 0; i < lengthof(functions); i++)
			is_so |=
				OidIsValid(functions[i]) && func_volatile(functions[i]) == PROVOLATILE_VOLATILE;
		ReleaseSysCache(tuple);
	}
	return is_so;
}

/* Walker: returns true at a call of an aggregate that calls a volatile function. */
static bool
aggregates_volatile(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if ((IsA(node, Aggref) || IsA(node, WindowFunc)) &&
		check_functions_in_node(node, is_volatile, context))
		return true;
	return expression_tree_walker(node, aggregates_volatile, context);
}

Notice
expr_notice(Node *expr, ParamListInfo params)
{
	ListCell *lc;

	check_stack_depth();
	if (contain_volatile_functions(expr) || aggregates_volatile(expr, NULL))
		return NOTICE_HOW_OFTEN;
	if (expr == NULL || !IsA(expr, List))
		return expr_evaluates_unnoticed(expr, params) ? NOTICE_NONE : NOTICE_WHETHER;
	foreach (lc, (List *) expr)
	{
		Node *member = lfirst(lc);

		if (IsA(member, TargetEntry))
			member = (Node *) ((TargetEntry *) member)->expr;
		if (expr_notice(member, params) != NOTICE_NONE)
			return NOTICE_WHETHER;
	}
	return NOTICE_NONE;
}
