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

#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/planner.h"
#include "optimizer/prep.h"
#include "utils/acl.h"
#include "utils/syscache.h"

#include "aggregates/aggmap.h"
#include "common/compat.h"
#include "plan/float_sums.h"
#include "settings.h"

static planner_hook_type prev_planner_hook;

/*
 * The context of the walker is a PlannerInfo, as preprocess_function_rtes() needs it: its members
 * "parse" and "glob", where the plan's dependencies are noted.
 */

/* Notes that the plan holds only for this role, and for the current rights to call an aggregate. */
static void
depend_on_rights(PlannerInfo *root, Oid aggfnoid)
{
	PlanInvalItem *item = makeNode(PlanInvalItem);

	item->cacheId = PROCOID;
	item->hashValue = GetSysCacheHashValue1(PROCOID, ObjectIdGetDatum(aggfnoid));
	root->glob->invalItems = lappend(root->glob->invalItems, item);
	root->glob->dependsOnRole = true;
}

/*
 * Returns the exact aggregate that replaces this aggregate, or the aggregate itself.  Those of core
 * are replaced only where gpuagg may plan them.  The executor only checks the rights to call the
 * replacement: an aggregate that the user may not call stays, so that it raises its error.
 */
static Oid
replacement(PlannerInfo *root, Oid aggfnoid)
{
	Oid exact;

	if (!aggmap_is_ours(aggfnoid) && !(gpuagg_replace_builtin && gpuagg_enabled))
		return aggfnoid;
	exact = aggmap_exact_aggregate(aggfnoid);
	if (!OidIsValid(exact))
		return aggfnoid;
	depend_on_rights(root, aggfnoid);
	return compat_proc_aclcheck(aggfnoid, GetUserId()) == ACLCHECK_OK ? exact : aggfnoid;
}

/*
 * Replaces the aggregates of a query and of its subqueries.  Functions in FROM that the planner
 * would replace by their queries are replaced before.
 */
static bool
replace_walker(Node *node, void *arg)
{
	PlannerInfo *root = arg;

	if (node == NULL)
		return false;
	if (IsA(node, Query))
	{
		check_stack_depth();
		root->parse = (Query *) node;
		preprocess_function_rtes(root);
		return query_tree_walker((Query *) node, replace_walker, arg, 0);
	}
	if (IsA(node, Aggref))
	{
		Aggref *aggref = (Aggref *) node;

		aggref->aggfnoid = replacement(root, aggref->aggfnoid);
	}
	else if (IsA(node, WindowFunc) && ((WindowFunc *) node)->winagg)
	{
		WindowFunc *function = (WindowFunc *) node;

		function->winfnoid = replacement(root, function->winfnoid);
	}
	return expression_tree_walker(node, replace_walker, arg);
}

/* The planner hook. */
static PlannedStmt *
plan_exactly(COMPAT_PLANNER_PARAMS)
{
	planner_hook_type next = prev_planner_hook ? prev_planner_hook : standard_planner;
	PlannerInfo *root;
	PlannedStmt *plan;

	if (gpuagg_float_sum != GPUAGG_FLOAT_SUM_EXACT)
		return next(COMPAT_PLANNER_ARGS);
	root = makeNode(PlannerInfo);
	root->glob = makeNode(PlannerGlobal);
	root->glob->boundParams = params;
	root->planner_cxt = CurrentMemoryContext;
	replace_walker((Node *) query, root);
	plan = next(COMPAT_PLANNER_ARGS);
	plan->invalItems = list_concat(plan->invalItems, root->glob->invalItems);
	plan->dependsOnRole |= root->glob->dependsOnRole;
	return plan;
}

void
float_sums_install_hook(void)
{
	prev_planner_hook = planner_hook;
	planner_hook = plan_exactly;
}
