/*
 * float_sums.c
 *	  Puts exact aggregates in place of sums, averages, variances and regression of floats, if
 *	  gpuagg.float_sum is "exact".
 *
 * The planner hook changes the query before it is planned.  So a plan keeps the setting with which
 * it was made, wherever and whenever it runs.  When the setting changes, settings.c lets plans that
 * are cached for prepared statements and functions be made anew.
 */
#include "postgres.h"

#include "nodes/nodeFuncs.h"
#include "optimizer/planner.h"

#include "aggregates/aggmap.h"
#include "common/compat.h"
#include "plan/float_sums.h"
#include "settings.h"

static planner_hook_type prev_planner_hook;

/*
 * Returns the exact aggregate that replaces this aggregate, or the aggregate itself.  Those of core
 * are replaced only where gpuagg may plan them.
 */
static Oid
replacement(Oid aggfnoid)
{
	Oid exact;

	if (!aggmap_is_ours(aggfnoid) && !(gpuagg_replace_builtin && gpuagg_enabled))
		return aggfnoid;
	exact = aggmap_exact_aggregate(aggfnoid);
	return OidIsValid(exact) ? exact : aggfnoid;
}

/* Replaces the aggregates of a query and of its subqueries. */
static bool
replace_walker(Node *node, void *arg)
{
	if (node == NULL)
		return false;
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, replace_walker, arg, 0);
	if (IsA(node, Aggref))
	{
		Aggref *aggref = (Aggref *) node;

		aggref->aggfnoid = replacement(aggref->aggfnoid);
	}
	else if (IsA(node, WindowFunc) && ((WindowFunc *) node)->winagg)
	{
		WindowFunc *function = (WindowFunc *) node;

		function->winfnoid = replacement(function->winfnoid);
	}
	return expression_tree_walker(node, replace_walker, arg);
}

/* The planner hook. */
static PlannedStmt *
plan_exactly(COMPAT_PLANNER_PARAMS)
{
	if (gpuagg_float_sum == GPUAGG_FLOAT_SUM_EXACT)
		replace_walker((Node *) query, NULL);
	return (prev_planner_hook ? prev_planner_hook : standard_planner)(COMPAT_PLANNER_ARGS);
}

void
float_sums_install_hook(void)
{
	prev_planner_hook = planner_hook;
	planner_hook = plan_exactly;
}
