/*
 * foreign.c
 *	  Partial aggregation by the servers of foreign partitions.
 *
 * With enable_partitionwise_aggregate, the planner asks the foreign-data wrapper of each partition
 * for paths that aggregate its rows (GetForeignUpperPaths).  It asks for whole groups if the
 * partition key is among the keys of GROUP BY, and otherwise for partial ones (stage
 * UPPERREL_PARTIAL_GROUP_AGG), whose states a Finalize Aggregate above the Append merges.
 * postgres_fdw supports only whole groups, because SQL has no partial aggregates.
 *
 * This extension has them.  An aggregate whose transition value is its result is its own partial
 * aggregate.  For others there is an aggregate X_state for transition function X, which returns the
 * transition value, serialized if it is internal.
 *
 * So the callbacks of postgres_fdw are wrapped.  For a partial path, the wrapper asks the original
 * for a complete one whose target has these aggregates in place of the partial ones.  postgres_fdw
 * decides whether all of it can be shipped, what it costs and how it is written.  When the plan is
 * made, the columns of the remote query get the expressions that the planner expects: the column
 * gpuagg_int4_avg_accum_state(x) becomes PARTIAL gpu_avg(x), of the same type.  Core computes
 * HAVING, expressions of the results, and the merge.
 *
 * Shipped columns have the types of the foreign table, which may differ from those of the table
 * behind it.  So each column is the argument of a call of gpuagg_as_type (aggregates/as_type.c).
 * Keys without a column, such as constants, are not shipped: they are the same for all rows, and
 * are evaluated here.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "foreign/fdwapi.h"
#include "foreign/foreign.h"
#include "mb/pg_wchar.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/pathnodes.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/tlist.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "aggregates/aggmap.h"
#include "aggregates/alike.h"
#include "aggregates/partial_call.h"
#include "common/compat.h"
#include "plan/group_query.h"
#include "settings.h"

static compat_relation_hook_type prev_relation_hook;

/* ---- what is shipped --------------------------------------------------- */

/* Returns whether the node is a partial aggregate: its result is a (serialized) state. */
static bool
is_partial(const Node *node)
{
	return IsA(node, Aggref) && ((const Aggref *) node)->aggsplit == AGGSPLIT_INITIAL_SERIAL;
}

/* ---- columns ------------------------------------------------------------ */

/*
 * Stands in shipped expressions for the settings that the input of dates and times depends on.  It
 * is replaced by local_settings().
 */
static const Param settings = {.xpr = {T_Param},
							   .paramkind = PARAM_EXEC,
							   .paramid = -1,
							   .paramtype = TEXTARRAYOID,
							   .paramtypmod = -1,
							   .location = -1};

/*
 * Returns the array of this session's settings for gpuagg_as_type, to be evaluated when the query
 * runs.
 */
static Expr *
local_settings(void)
{
	static const char *const names[] = {"TimeZone", "DateStyle", "IntervalStyle"};
	ArrayExpr *array = makeNode(ArrayExpr);

	array->array_typeid = TEXTARRAYOID;
	array->element_typeid = TEXTOID;
	array->location = -1;
	for (int i = 0; i < lengthof(names); i++)
	{
		Const *name = makeConst(TEXTOID, -1, DEFAULT_COLLATION_OID, -1,
								CStringGetTextDatum(names[i]), false, false);

		array->elements = lappend(array->elements,
								  makeFuncExpr(F_CURRENT_SETTING_TEXT, TEXTOID, list_make1(name),
											   DEFAULT_COLLATION_OID, DEFAULT_COLLATION_OID,
											   COERCE_EXPLICIT_CALL));
	}
	return (Expr *) array;
}

/* Returns whether the input of the type's text form depends on settings. */
static bool
needs_settings(Oid type)
{
	Oid part = get_element_type(type);

	check_stack_depth();
	if (!OidIsValid(part))
		part = get_range_subtype(type);
	if (!OidIsValid(part))
		part = get_multirange_range(type);
	if (OidIsValid(part))
		return needs_settings(part);
	return type == DATEOID || type == TIMEOID || type == TIMETZOID || type == TIMESTAMPOID ||
		type == TIMESTAMPTZOID || type == INTERVALOID;
}

/* Returns gpuagg_as_type; InvalidOid in an older version of the extension. */
static Oid
as_type_function(void)
{
	static const Oid types[] = {ANYOID, ANYELEMENTOID, INT4OID, TEXTARRAYOID};

	return partial_own_function("gpuagg_as_type", types, lengthof(types));
}

/*
 * Returns the expression with all columns in calls of gpuagg_as_type, without trailing arguments
 * that are the default.
 */
static Node *
as_declared(Node *node, void *function)
{
	Var *var = (Var *) node;
	List *args;

	if (node == NULL)
		return NULL;
	if (!IsA(node, Var) || var->varattno <= 0)
		return expression_tree_mutator(node, as_declared, function);
	args = list_make2(copyObject(var), makeNullConst(var->vartype, -1, InvalidOid));
	if (var->vartypmod >= 0 || needs_settings(var->vartype))
		args = lappend(args,
					   makeConst(INT4OID, -1, InvalidOid, sizeof(int32),
								 Int32GetDatum(var->vartypmod), false, true));
	if (needs_settings(var->vartype))
		args = lappend(args, copyObject(unconstify(Param *, &settings)));
	return (Node *) makeFuncExpr(*(Oid *) function, var->vartype, args, var->varcollid,
								 var->varcollid, COERCE_EXPLICIT_CALL);
}

/*
 * Returns whether the expression has a column that must not be used on the foreign server, because
 * its values may mean something else there.
 * That holds for identifiers of objects, which differ between databases.  It holds for domains,
 * which may not allow the NULL by which gpuagg_as_type gets its type.  And in a database without an
 * encoding it holds for text: it consists of bytes there, and functions of characters give other
 * results.
 */
static bool
has_own_column(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Var))
	{
		Oid type = ((Var *) node)->vartype;

		return get_typtype(type) == TYPTYPE_DOMAIN || alike_contains_object_ids(type) ||
			(GetDatabaseEncoding() == PG_SQL_ASCII && !alike_has_same_hash(type, InvalidOid));
	}
	return expression_tree_walker(node, has_own_column, context);
}

/* ---- aggregates and keys -------------------------------------------------- */

/*
 * Returns the complete aggregate whose result is the partial one's transition value, of the same
 * type; NULL if there is none.  Types that are not core's, such as enums, may have other values on
 * other servers, and so may what a state keeps of them.
 */
static Aggref *
remote_aggregate(const Aggref *partial)
{
	HeapTuple tuple = SearchSysCache1(AGGFNOID, ObjectIdGetDatum(partial->aggfnoid));
	Form_pg_aggregate form;
	Aggref *remote = makeNode(Aggref);
	bool is_state;
	ListCell *lc;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for aggregate %u", partial->aggfnoid);
	form = (Form_pg_aggregate) GETSTRUCT(tuple);
	is_state = !OidIsValid(form->aggfinalfn) && partial->aggtranstype != INTERNALOID;
	ReleaseSysCache(tuple);
	*remote = *partial;
	remote->aggsplit = AGGSPLIT_SIMPLE;
	if (partial_depends_on_database(partial))
		return NULL;
	if (is_state)
		return remote;
	/*
	 * Invalid states may crash core's own deserialization functions.  The extension's check their
	 * input.
	 */
	if (partial->aggtranstype == INTERNALOID && !aggmap_is_ours(partial->aggfnoid))
		return NULL;
	foreach (lc, partial->aggargtypes)
		if (lfirst_oid(lc) >= FirstNormalObjectId)
			return NULL;
	remote->aggfnoid = aggmap_state_aggregate(partial->aggfnoid);
	return OidIsValid(remote->aggfnoid) ? remote : NULL;
}

/*
 * Returns the expression that is shipped in place of a partial aggregate or a key; NULL if the
 * foreign server has no expression with the same result.
 */
static Expr *
remote_expression(const Expr *expr)
{
	Oid function = as_type_function();
	Node *node = unconstify(Node *, (const Node *) expr);

	/* a key that is a column is sent as text, in which identifiers are names */
	if (!OidIsValid(function) ||
		(!IsA(node, Var) &&
		 (alike_contains_object_ids(exprType(node)) || has_own_column(node, NULL))) ||
		get_typtype(exprType(node)) == TYPTYPE_DOMAIN)
		return NULL;
	if (is_partial(node))
		node = (Node *) remote_aggregate((const Aggref *) node);
	return (Expr *) as_declared(node, &function);
}

/* Returns whether a key is the same for all rows, so that this server evaluates it. */
static bool
is_same_for_all(Node *key)
{
	return !contain_var_clause(key) && !contain_volatile_functions(key) &&
		!expression_returns_set(key);
}

/* Returns the clauses of GROUP BY that are shipped. */
static List *
remote_clauses(PlannerInfo *root)
{
	List *clauses = NIL;
	ListCell *lc;

	foreach (lc, root->parse->groupClause)
		if (!is_same_for_all(get_sortgroupclause_expr(lfirst(lc), root->processed_tlist)))
			clauses = lappend(clauses, lfirst(lc));
	return clauses;
}

/*
 * Returns the condition count(*) > 0, as HAVING of a remote query without keys.  Otherwise it would
 * return a group even if there are no rows.
 */
static Node *
any_rows(void)
{
	Aggref *count = makeNode(Aggref);

	count->aggfnoid = F_COUNT_;
	count->aggtype = count->aggtranstype = INT8OID;
	count->aggstar = true;
	count->aggkind = AGGKIND_NORMAL;
	count->aggno = count->aggtransno = count->location = -1;
	return (Node *) make_opclause(Int8LessOperator, BOOLOID, false,
								  (Expr *) makeConst(INT8OID, -1, InvalidOid, sizeof(int64),
													 Int64GetDatum(0), false, FLOAT8PASSBYVAL),
								  (Expr *) count, InvalidOid, InvalidOid);
}

/* Returns whether the expression has a column that is neither in a key nor in an aggregate. */
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
 * Adds keys to the target that the planner found redundant because all rows have one value.
 * Returns false if such a key is not a column of the target.  targets: the query's target list,
 * with this partition's columns.
 */
static bool
add_redundant_keys(PathTarget *remote, List *clauses, PathTarget *partial, List *targets,
				   List **keys)
{
	ListCell *lc;

	foreach (lc, clauses)
	{
		Index ref = lfirst_node(SortGroupClause, lc)->tleSortGroupRef;
		Expr *key = (Expr *) get_sortgroupref_tle(ref, targets)->expr;
		Expr *expr;
		bool found = false;

		for (int i = 0; remote->sortgrouprefs && i < list_length(remote->exprs); i++)
			found = found || remote->sortgrouprefs[i] == ref;
		if (found)
			continue;
		expr = IsA(key, Var) && list_member(partial->exprs, key) ? remote_expression(key) : NULL;
		if (expr == NULL)
			return false;
		*keys = lappend(*keys, key);
		add_column_to_pathtarget(remote, expr, ref);
	}
	return true;
}

/*
 * Returns the target to ship for `partial`: complete aggregates in place of the partial ones, and
 * the keys of `clauses`.  NULL if something cannot be shipped, or if none of the aggregates is to
 * be computed by this extension.  Leaves out
 * columns that core adds because keys contain them, if the results use them only inside keys.
 */
static PathTarget *
remote_target(PlannerInfo *root, PathTarget *partial, List *clauses,
			  const GroupPathExtraData *extra)
{
	PathTarget *remote = create_empty_pathtarget();
	bool wanted = gpuagg_replace_builtin;
	bool columns = false;
	List *keys = NIL;
	int i = 0;
	ListCell *lc;

	foreach (lc, partial->exprs)
	{
		Expr *expr = lfirst(lc);
		Index ref = get_pathtarget_sortgroupref(partial, i++);

		if (is_partial((Node *) expr))
		{
			Oid aggfnoid = ((Aggref *) expr)->aggfnoid;

			if (aggmap_is_ours(aggfnoid))
				wanted = true;
			else if (aggfnoid >= FirstNormalObjectId)
				return NULL;
		}
		else if (ref != 0 && get_sortgroupref_clause_noerr(ref, clauses) != NULL)
			keys = lappend(keys, expr);
		else if (IsA(expr, Var))
		{
			columns = true;
			continue;
		}
		else if (is_same_for_all((Node *) expr))
			continue;
		else
			return NULL;
		expr = remote_expression(expr);
		if (expr == NULL)
			return NULL;
		add_column_to_pathtarget(remote, expr, ref);
	}
	if (!wanted || !add_redundant_keys(remote, clauses, partial, extra->targetList, &keys) ||
		(columns &&
		 (needs_column((Node *) extra->targetList, keys) || needs_column(extra->havingQual, keys))))
		return NULL;
	set_pathtarget_cost_width(root, remote);
	/* if types are as declared, gpuagg_as_type costs nothing */
	remote->cost = partial->cost;
	return remote;
}

/*
 * Changes settings so that constants are written in a form that does not depend on the foreign
 * server's settings.  postgres_fdw does so for conditions, but not for arguments of aggregates.
 * Returns the nesting level for AtEOXact_GUC(), which restores the settings.
 */
static int
begin_portable_constants(void)
{
	static const struct
	{
		const char *name, *value;
	} forms[] = {{"datestyle", "ISO"},
				 {"intervalstyle", "postgres"},
				 {"extra_float_digits", "3"},
				 {"search_path", "pg_catalog"}};
	int level = NewGUCNestLevel();

	for (int i = 0; i < lengthof(forms); i++)
		(void) set_config_option(forms[i].name, forms[i].value, PGC_USERSET, PGC_S_SESSION,
								 GUC_ACTION_SAVE, true, 0, false);
	return level;
}

/* ---- the wrapped callbacks ---------------------------------------------- */

/*
 * Wraps GetForeignUpperPaths: for a partial aggregation, asks the original for complete paths with
 * remote_target(), and gives them the partial target.
 */
static void
upper_paths(PlannerInfo *root, UpperRelationKind stage, RelOptInfo *input_rel,
			RelOptInfo *output_rel, void *extra)
{
	FdwRoutine *fdw = GetFdwRoutineByServerId(output_rel->serverid);
	PathTarget *partial = output_rel->reltarget;
	PathTarget *remote;
	GroupPathExtraData complete;
	List *all = root->parse->groupClause;
	List *clauses;
	int level;
	ListCell *lc;

	if (stage != UPPERREL_PARTIAL_GROUP_AGG)
	{
		fdw->GetForeignUpperPaths(root, stage, input_rel, output_rel, extra);
		return;
	}
	complete = *(GroupPathExtraData *) extra;
	if (complete.patype != PARTITIONWISE_AGGREGATE_PARTIAL)
		return;
	clauses = remote_clauses(root);
	remote = remote_target(root, partial, clauses, &complete);
	if (remote == NULL)
		return;
	/* the query's HAVING applies to the groups of all partitions */
	complete.havingQual = all != NIL && clauses == NIL ? (Node *) list_make1(any_rows()) : NULL;
	complete.patype = PARTITIONWISE_AGGREGATE_FULL;
	output_rel->reltarget = remote;
	root->parse->groupClause = clauses;
	/* postgres_fdw may ask the server for an estimate */
	level = begin_portable_constants();
	fdw->GetForeignUpperPaths(root, UPPERREL_GROUP_AGG, input_rel, output_rel, &complete);
	AtEOXact_GUC(true, level);
	root->parse->groupClause = all;
	output_rel->reltarget = partial;
	foreach (lc, output_rel->pathlist)
	{
		Path *path = lfirst(lc);

		if (path->pathtarget == remote)
			path->pathtarget = partial;
	}
}

/*
 * Finds the expression in the target list `shipped`, and returns the entry at the same position of
 * the list `now`; NULL if there is none.  `now` is a copy of `shipped` that is being changed.
 */
static TargetEntry *
shipped_column(List *shipped, List *now, const void *expr)
{
	ListCell *lc, *lc2;

	forboth(lc, shipped, lc2, now) if (equal(lfirst_node(TargetEntry, lc)->expr,
											 expr)) return lfirst_node(TargetEntry, lc2);
	return NULL;
}

/*
 * Gives the columns of the remote query the expressions that the plan's target list has for them. A
 * column that was left out becomes NULL: it is used only inside keys above.
 */
static void
name_columns(ForeignScan *scan)
{
	List *shipped = scan->fdw_scan_tlist;
	ListCell *lc;

	scan->fdw_scan_tlist = copyObject(shipped);
	foreach (lc, scan->scan.plan.targetlist)
	{
		TargetEntry *tle = lfirst_node(TargetEntry, lc);
		TargetEntry *column;
		Expr *remote;

		if (is_same_for_all((Node *) tle->expr) && !is_partial((Node *) tle->expr))
			continue;
		remote = remote_expression(tle->expr);
		column = remote ? shipped_column(shipped, scan->fdw_scan_tlist, remote) : NULL;
		if (column && is_partial((Node *) tle->expr) && is_partial((Node *) column->expr))
			/*
			 * a state that several aggregates share is one column, with the expression of the first
			 * one
			 */
			tle->expr = column->expr;
		else if (column)
			column->expr = tle->expr;
		else if (IsA(tle->expr, Var))
			tle->expr =
				(Expr *) makeNullConst(exprType((Node *) tle->expr), exprTypmod((Node *) tle->expr),
									   exprCollation((Node *) tle->expr));
		else
			elog(ERROR, "remote query lacks a key or a partial aggregate");
	}
	foreach (lc, scan->fdw_exprs)
		if (equal(lfirst(lc), &settings))
			lfirst(lc) = local_settings();
}

/* Returns whether one of the expressions is a partial aggregate. */
static bool
any_partial(List *exprs)
{
	ListCell *lc;

	foreach (lc, exprs)
		if (is_partial(lfirst(lc)))
			return true;
	return false;
}

/* Wraps GetForeignPlan: for a partial aggregation, gives its columns the expected expressions. */
static ForeignScan *
foreign_plan(PlannerInfo *root, RelOptInfo *rel, Oid foreigntableid, ForeignPath *best_path,
			 List *tlist, List *scan_clauses, Plan *outer_plan)
{
	FdwRoutine *fdw = GetFdwRoutineByServerId(rel->serverid);
	List *all = root->parse->groupClause;
	ForeignScan *scan;
	int level;

	if (!any_partial(best_path->path.pathtarget->exprs))
		return fdw->GetForeignPlan(root, rel, foreigntableid, best_path, tlist, scan_clauses,
								   outer_plan);
	root->parse->groupClause = remote_clauses(root);
	level = begin_portable_constants();
	scan =
		fdw->GetForeignPlan(root, rel, foreigntableid, best_path, tlist, scan_clauses, outer_plan);
	AtEOXact_GUC(true, level);
	root->parse->groupClause = all;
	name_columns(scan);
	return scan;
}

/* ---- the hook ------------------------------------------------------------ */

/* Returns whether the foreign server is accessed by postgres_fdw. */
static bool
is_postgres_fdw(Oid serverid)
{
	ForeignServer *server = GetForeignServer(serverid);
	char *handler = get_func_name(GetForeignDataWrapper(server->fdwid)->fdwhandler);

	return handler && strcmp(handler, "postgres_fdw_handler") == 0;
}

/*
 * The get_relation_info_hook: replaces two callbacks in the planner's copy of a foreign partition's
 * FdwRoutine.  Joins and groupings of the relation share that copy.
 */
static void
relation_info(COMPAT_RELATION_PARAMS)
{
	if (prev_relation_hook)
		prev_relation_hook(COMPAT_RELATION_ARGS);
	if (compat_is_grouped_rel(rel) || !gpuagg_enabled || !gpuagg_foreign_partial ||
		gpuagg_require == GPUAGG_FORBID || !enable_partitionwise_aggregate ||
		!root->parse->hasAggs || rel->reloptkind != RELOPT_OTHER_MEMBER_REL ||
		rel->fdwroutine == NULL || rel->fdwroutine->GetForeignUpperPaths == NULL ||
		!is_postgres_fdw(rel->serverid))
		return;
	rel->fdwroutine->GetForeignUpperPaths = upper_paths;
	rel->fdwroutine->GetForeignPlan = foreign_plan;
}

void
foreign_install_hook(void)
{
	prev_relation_hook = compat_relation_hook;
	compat_relation_hook = relation_info;
}
