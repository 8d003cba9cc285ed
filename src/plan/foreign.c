/*
 * foreign.c
 *	  Partial aggregation by the servers of foreign partitions.
 *
 * With enable_partitionwise_aggregate, the planner asks the foreign-data wrapper of each partition for paths that aggregate
 * its rows (GetForeignUpperPaths): whole groups where the partition key is among the keys of GROUP BY, and partial ones, of
 * stage UPPERREL_PARTIAL_GROUP_AGG, otherwise.  It puts the Append of these under a Finalize Aggregate, which merges the
 * states.  postgres_fdw answers the first question and not the second one, as there is no SQL for a partial aggregate.
 *
 * Here there is: an aggregate whose transition value is its result is its own partial aggregate, and for others the
 * extension has one, X_state for transition function X, that returns the transition value, serialized if that is
 * internal.  So the callbacks of postgres_fdw are wrapped.  Asked for a partial path, ours asks the original for a
 * complete one, of a target with these aggregates in place of the partial ones; postgres_fdw decides whether all of it
 * may be shipped, what it costs, and how it is written.  When the plan is made, the columns that the remote query returns get
 * the names that the planner knows them by: what was shipped as gpuagg_int4_avg_accum_state(x) is, of the same type,
 * PARTIAL gpu_avg(x).  HAVING, expressions of the results, and merging are core's.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_type.h"
#include "foreign/fdwapi.h"
#include "foreign/foreign.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/pathnodes.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/plancat.h"
#include "optimizer/tlist.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "aggregates/aggmap.h"
#include "plan/foreign.h"
#include "settings.h"

static get_relation_info_hook_type prev_get_relation_info_hook;

/* ---- what is shipped --------------------------------------------------- */

static bool
is_partial(const Node *node)
{
	return IsA(node, Aggref) && ((const Aggref *) node)->aggsplit == AGGSPLIT_INITIAL_SERIAL;
}

/*
 * The complete aggregate whose result is the partial one's, of the same type; NULL if there is none.  The values of types
 * that are not core's, enums say, are not the same on all servers, and so neither is what a state keeps of them.
 */
static Aggref *
remote_aggregate(const Aggref *partial)
{
	HeapTuple	tuple = SearchSysCache1(AGGFNOID, ObjectIdGetDatum(partial->aggfnoid));
	Form_pg_aggregate form;
	Aggref	   *remote = makeNode(Aggref);
	bool		is_state;
	ListCell   *lc;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for aggregate %u", partial->aggfnoid);
	form = (Form_pg_aggregate) GETSTRUCT(tuple);
	is_state = !OidIsValid(form->aggfinalfn) && partial->aggtranstype != INTERNALOID;
	ReleaseSysCache(tuple);
	*remote = *partial;
	remote->aggsplit = AGGSPLIT_SIMPLE;
	if (is_state)
		return remote;
	/* what is no state may crash core's own deserialization functions, which the extension's are not to */
	if (partial->aggtranstype == INTERNALOID && !aggmap_is_ours(partial->aggfnoid))
		return NULL;
	foreach(lc, partial->aggargtypes)
		if (lfirst_oid(lc) >= FirstNormalObjectId)
			return NULL;
	remote->aggfnoid = aggmap_state_aggregate(partial->aggfnoid);
	return OidIsValid(remote->aggfnoid) ? remote : NULL;
}

/* Has the expression a column that is neither in one of the keys nor in an aggregate? */
static bool
needs_column(Node *node, List *keys)
{
	if (node == NULL || IsA(node, Aggref) || list_member(keys, node))
		return false;
	if (IsA(node, Var) || IsA(node, PlaceHolderVar))
		return true;
	return expression_tree_walker(node, needs_column, keys);
}

/*
 * The target with complete aggregates in place of partial ones; NULL if there is none, or if these are aggregates that
 * the settings leave alone.  Columns that the results have as a part of keys alone, which core adds for them, are left out.
 */
static PathTarget *
remote_target(PlannerInfo *root, PathTarget *partial, const GroupPathExtraData *extra)
{
	PathTarget *remote = create_empty_pathtarget();
	bool		wanted = gpuagg_replace_builtin;
	bool		columns = false;
	List	   *keys = NIL;
	int			i = 0;
	ListCell   *lc;

	foreach(lc, partial->exprs)
	{
		Expr	   *expr = lfirst(lc);
		Index		ref = get_pathtarget_sortgroupref(partial, i++);

		if (is_partial((Node *) expr))
		{
			Oid			aggfnoid = ((Aggref *) expr)->aggfnoid;

			if (aggmap_is_ours(aggfnoid))
				wanted = true;
			else if (aggfnoid >= FirstNormalObjectId)
				return NULL;
			expr = (Expr *) remote_aggregate((Aggref *) expr);
			if (expr == NULL)
				return NULL;
		}
		else if (ref != 0 && get_sortgroupref_clause_noerr(ref, root->parse->groupClause) != NULL)
			keys = lappend(keys, expr);
		else if (IsA(expr, Var))
		{
			columns = true;
			continue;
		}
		else
			return NULL;
		add_column_to_pathtarget(remote, expr, ref);
	}
	if (!wanted || (columns && (needs_column((Node *) extra->targetList, keys) || needs_column(extra->havingQual, keys))))
		return NULL;
	return set_pathtarget_cost_width(root, remote);
}

/* ---- the wrapped callbacks ---------------------------------------------- */

static void
upper_paths(PlannerInfo *root, UpperRelationKind stage, RelOptInfo *input_rel, RelOptInfo *output_rel, void *extra)
{
	FdwRoutine *fdw = GetFdwRoutineByServerId(output_rel->serverid);
	PathTarget *partial = output_rel->reltarget;
	PathTarget *remote;
	GroupPathExtraData complete;
	ListCell   *lc;

	if (stage != UPPERREL_PARTIAL_GROUP_AGG)
	{
		fdw->GetForeignUpperPaths(root, stage, input_rel, output_rel, extra);
		return;
	}
	complete = *(GroupPathExtraData *) extra;
	if (complete.patype != PARTITIONWISE_AGGREGATE_PARTIAL ||
		(remote = remote_target(root, partial, &complete)) == NULL)
		return;
	/* HAVING is for groups of all partitions */
	complete.havingQual = NULL;
	complete.patype = PARTITIONWISE_AGGREGATE_FULL;
	output_rel->reltarget = remote;
	fdw->GetForeignUpperPaths(root, UPPERREL_GROUP_AGG, input_rel, output_rel, &complete);
	output_rel->reltarget = partial;
	foreach(lc, output_rel->pathlist)
	{
		Path	   *path = lfirst(lc);

		if (path->pathtarget == remote)
			path->pathtarget = partial;
	}
}

/* The column of the remote query that has the expression, by its list when it was shipped; its entry in the list now. */
static TargetEntry *
shipped_column(List *shipped, List *now, const void *expr)
{
	ListCell   *lc,
			   *lc2;

	forboth(lc, shipped, lc2, now)
		if (equal(lfirst_node(TargetEntry, lc)->expr, expr))
			return lfirst_node(TargetEntry, lc2);
	return NULL;
}

/*
 * Gives the columns of complete aggregates the names of the partial ones in the plan's target list.  A column that was left
 * out is NULL: above, it is only a part of keys.
 */
static void
name_states(ForeignScan *scan)
{
	List	   *shipped = scan->fdw_scan_tlist;
	ListCell   *lc;

	scan->fdw_scan_tlist = copyObject(shipped);
	foreach(lc, scan->scan.plan.targetlist)
	{
		TargetEntry *tle = lfirst_node(TargetEntry, lc);
		TargetEntry *column;

		if (is_partial((Node *) tle->expr))
		{
			column = shipped_column(shipped, scan->fdw_scan_tlist, remote_aggregate((Aggref *) tle->expr));
			if (column == NULL)
				elog(ERROR, "remote query lacks a partial aggregate");
			/* a state that several aggregates have is one column, with the name of the first one */
			if (is_partial((Node *) column->expr))
				tle->expr = column->expr;
			else
				column->expr = tle->expr;
		}
		else if (IsA(tle->expr, Var) && shipped_column(shipped, shipped, tle->expr) == NULL)
			tle->expr = (Expr *) makeNullConst(exprType((Node *) tle->expr), exprTypmod((Node *) tle->expr),
											   exprCollation((Node *) tle->expr));
	}
}

static bool
any_partial(List *exprs)
{
	ListCell   *lc;

	foreach(lc, exprs)
		if (is_partial(lfirst(lc)))
			return true;
	return false;
}

static ForeignScan *
foreign_plan(PlannerInfo *root, RelOptInfo *rel, Oid foreigntableid, ForeignPath *best_path, List *tlist,
			 List *scan_clauses, Plan *outer_plan)
{
	FdwRoutine *fdw = GetFdwRoutineByServerId(rel->serverid);
	ForeignScan *scan = fdw->GetForeignPlan(root, rel, foreigntableid, best_path, tlist, scan_clauses, outer_plan);

	if (any_partial(best_path->path.pathtarget->exprs))
		name_states(scan);
	return scan;
}

/* ---- the hook ------------------------------------------------------------ */

static bool
is_postgres_fdw(Oid serverid)
{
	ForeignServer *server = GetForeignServer(serverid);
	char	   *handler = get_func_name(GetForeignDataWrapper(server->fdwid)->fdwhandler);

	return handler && strcmp(handler, "postgres_fdw_handler") == 0;
}

/* The callbacks here are the planner's copy, of this relation, which joins and groupings of it share. */
static void
relation_info(PlannerInfo *root, Oid relation, bool inhparent, RelOptInfo *rel)
{
	if (prev_get_relation_info_hook)
		prev_get_relation_info_hook(root, relation, inhparent, rel);
	if (!gpuagg_enabled || !gpuagg_foreign_partial || gpuagg_require == GPUAGG_FORBID || !enable_partitionwise_aggregate ||
		!root->parse->hasAggs || rel->reloptkind != RELOPT_OTHER_MEMBER_REL || rel->fdwroutine == NULL ||
		rel->fdwroutine->GetForeignUpperPaths == NULL || !is_postgres_fdw(rel->serverid))
		return;
	rel->fdwroutine->GetForeignUpperPaths = upper_paths;
	rel->fdwroutine->GetForeignPlan = foreign_plan;
}

void
foreign_install_hook(void)
{
	prev_get_relation_info_hook = get_relation_info_hook;
	get_relation_info_hook = relation_info;
}
