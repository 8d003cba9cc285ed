/*
 * citus.c
 *	  Aggregates over tables that Citus distributes.
 *
 * Citus plans a query over its tables by the names of aggregates and by the catalog.  Aggregates
 * named avg, count, sum and some others become partial aggregates on the workers, and so do
 * aggregates with a combine function whose state has a type that can be sent.  For any other
 * aggregate, all rows are sent to the coordinator.
 *
 * So the hook here changes the query before Citus's planner sees it.  (Citus insists on being the
 * first library, and the hook that is installed last is called first.)  An aggregate of the
 * extension that is core's under another name becomes core's if Citus can distribute that one.
 * Others that can be merged become calls of gpuagg_merge (citus_merge.c).
 *
 * A worker shall compute these aggregates with the custom scan although they have core's names.  It
 * gets nothing from the coordinator but the text of its task: Citus propagates no session's
 * settings, connections are shared by all statements of a session, and tasks on shards of the
 * coordinator itself have no connection at all.  So the text carries a mark, a condition that is
 * always true, in the FILTER of each aggregate:
 *
 *		count(*) FILTER (WHERE concat('gpuagg.require=allow') IS NOT NULL)
 *
 * Citus leaves a FILTER where it is, whether it pushes down the query or a part of the aggregate.
 * It simplifies immutable functions, but concat() is not immutable.  For some tasks it evaluates
 * functions on their own, but not the test around them.
 *
 * In queries without a Citus table, shards included, the hook removes the marks, and plans the
 * statement as if gpuagg.replace_builtin was on.  The mark also has the value of gpuagg.require.
 *
 * Whether a table is Citus's is looked up in Citus's catalog, only for statements with such
 * aggregates.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/transam.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/planner.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "aggregates/aggmap.h"
#include "common/compat.h"
#include "plan/citus.h"
#include "plan/citus_merge.h"
#include "settings.h"

#define MARK "gpuagg.require="
#define MARK_ALLOW MARK "allow"
#define MARK_REQUIRE MARK "require"

/* The statement that is being planned. */
typedef struct Statement
{
	bool distributed; /* it is over a Citus table */
	bool task;        /* it has a mark, and is not over a Citus table */
	bool required;    /* one of the marks requires the custom scan */
} Statement;

static Statement statement;
static planner_hook_type prev_planner_hook;

bool
citus_distributes(void)
{
	return statement.distributed;
}

bool
citus_is_task(void)
{
	return statement.task;
}

bool
citus_task_is_required(void)
{
	return statement.required;
}

/* ---- marks ----------------------------------------------------------------- */

/* Returns a mark with this text: a condition that is always true. */
static Node *
make_mark(const char *value)
{
	NullTest *mark = makeNode(NullTest);
	Oid collation = get_typcollation(TEXTOID);
	Const *text = makeConst(TEXTOID, -1, collation, -1, CStringGetTextDatum(value), false, false);

	mark->arg = (Expr *) makeFuncExpr(F_CONCAT, TEXTOID, list_make1(text), collation, collation,
									  COERCE_EXPLICIT_CALL);
	mark->nulltesttype = IS_NOT_NULL;
	mark->location = -1;
	return (Node *) mark;
}

/*
 * Returns the text of a mark; NULL for any other expression.  Citus may have evaluated the
 * function.
 */
static char *
mark_text(Node *node)
{
	NullTest *mark = (NullTest *) node;
	Node *arg;
	Const *value;
	char *result;

	if (node == NULL || !IsA(node, NullTest) || mark->nulltesttype != IS_NOT_NULL)
		return NULL;
	arg = (Node *) mark->arg;
	if (IsA(arg, FuncExpr) && ((FuncExpr *) arg)->funcid == F_CONCAT &&
		list_length(((FuncExpr *) arg)->args) == 1)
		arg = linitial(((FuncExpr *) arg)->args);
	if (!IsA(arg, Const))
		return NULL;
	value = (Const *) arg;
	if (value->consttype != TEXTOID || value->constisnull)
		return NULL;
	result = TextDatumGetCString(value->constvalue);
	return strncmp(result, MARK, strlen(MARK)) == 0 ? result : NULL;
}

/* Returns the text of the mark in a filter, or NULL. */
static char *
mark_of_filter(Expr *filter)
{
	ListCell *lc;

	if (filter == NULL || !IsA(filter, BoolExpr) || ((BoolExpr *) filter)->boolop != AND_EXPR)
		return mark_text((Node *) filter);
	foreach (lc, ((BoolExpr *) filter)->args)
	{
		char *text = mark_text(lfirst(lc));

		if (text)
			return text;
	}
	return NULL;
}

/* Returns the filter without its mark; NULL if nothing is left. */
static Expr *
filter_without_mark(Expr *filter)
{
	List *others = NIL;
	ListCell *lc;

	if (!IsA(filter, BoolExpr))
		return NULL;
	foreach (lc, ((BoolExpr *) filter)->args)
		if (mark_text(lfirst(lc)) == NULL)
			others = lappend(others, lfirst(lc));
	if (others == NIL)
		return NULL;
	return list_length(others) > 1 ? makeBoolExpr(AND_EXPR, others, -1) : linitial(others);
}

/* Adds a mark to the aggregate's FILTER, unless it has one. */
static void
set_mark(Aggref *aggref, const char *text)
{
	Node *mark;

	if (mark_of_filter(aggref->aggfilter))
		return;
	mark = make_mark(text);
	aggref->aggfilter = aggref->aggfilter == NULL ?
		(Expr *) mark :
		makeBoolExpr(AND_EXPR, list_make2(aggref->aggfilter, mark), -1);
}

/* ---- which aggregates ------------------------------------------------------ */

/*
 * Returns core's aggregate of this name, these argument types and this result type; or InvalidOid.
 */
static Oid
find_core(const char *name, const Oid *argtypes, int nargs, Oid result)
{
	HeapTuple tuple = SearchSysCache3(PROCNAMEARGSNSP, CStringGetDatum(name),
									  PointerGetDatum(buildoidvector(argtypes, nargs)),
									  ObjectIdGetDatum(PG_CATALOG_NAMESPACE));
	Oid found = InvalidOid;
	Form_pg_proc form;

	if (!HeapTupleIsValid(tuple))
		return InvalidOid;
	form = (Form_pg_proc) GETSTRUCT(tuple);
	if (form->prokind == PROKIND_AGGREGATE && form->prorettype == result)
		found = form->oid;
	ReleaseSysCache(tuple);
	return found;
}

/*
 * Returns core's NAME(types) for gpu_NAME(types), or InvalidOid.  Citus looks up its replacements
 * for min and others by the exact argument types, and fails for core's polymorphic ones.
 * count("any") is an exception.
 */
static Oid
core_of(const Aggref *aggref)
{
	char *name = get_func_name(aggref->aggfnoid);
	Oid argtypes[FUNC_MAX_ARGS];
	Oid any = ANYOID;
	int nargs = 0;
	Oid core;
	ListCell *lc;

	if (name == NULL || strncmp(name, "gpu_", 4) != 0)
		return InvalidOid;
	foreach (lc, aggref->aggargtypes)
		argtypes[nargs++] = lfirst_oid(lc);
	core = find_core(name + 4, argtypes, nargs, aggref->aggtype);
	if (!OidIsValid(core) && nargs == 1)
		core = find_core(name + 4, &any, 1, aggref->aggtype);
	return core;
}

/* Returns whether gpuagg.replace_builtin applies to the aggregate. */
static bool
is_replaced(const Aggref *aggref)
{
	return gpuagg_replace_builtin &&
		(aggmap_is_listed(aggref->aggfnoid) || aggref->aggdistinct != NIL ||
		 aggref->aggorder != NIL);
}

/*
 * Marks the aggregate for the worker.  If marks are not allowed here, raises an error if the custom
 * scan is required.
 */
static void
mark_for_worker(Aggref *aggref, bool required, bool marks)
{
	if (marks)
		set_mark(aggref, required ? MARK_REQUIRE : MARK_ALLOW);
	else if (required)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("query cannot be executed by the custom scan \"GpuAgg\""),
				 errdetail("The reason is: %s.",
						   "INSERT ... RETURNING of a query over a Citus table is not supported"),
				 errhint("Set \"%s\" to \"allow\" to execute it without.", "gpuagg.require")));
}

/*
 * Replaces an aggregate of the extension by core's if Citus can distribute that one, and marks it
 * for the worker if it should run with the custom scan there.  marks: marks are allowed here.
 *
 * An aggregate with an ORDER BY is not replaced: Citus combines partial results of core's
 * aggregates in any order, but sends all rows to the coordinator for the extension's.
 */
static void
rewrite_aggregate(Aggref *aggref, bool marks)
{
	bool ours = aggmap_is_ours(aggref->aggfnoid);
	bool can_use = gpuagg_enabled && gpuagg_require != GPUAGG_FORBID;
	bool marked = can_use && (ours ? gpuagg_require == GPUAGG_REQUIRE : is_replaced(aggref));

	if (ours && aggref->aggkind == AGGKIND_NORMAL && aggref->aggorder == NIL)
	{
		Oid core = core_of(aggref);

		if (OidIsValid(core) && merge_has_parts(core))
		{
			/* the executor does not check the privilege of the replaced aggregate */
			AclResult allowed = compat_proc_aclcheck(aggref->aggfnoid, GetUserId());

			if (allowed != ACLCHECK_OK)
				aclcheck_error(allowed, OBJECT_AGGREGATE, get_func_name(aggref->aggfnoid));
			aggref->aggfnoid = core;
			marked = can_use;
		}
	}
	if (marked)
		mark_for_worker(aggref, ours && gpuagg_require == GPUAGG_REQUIRE, marks);
}

/* ---- which tables ---------------------------------------------------------- */

/* Returns whether Citus's catalog of distributed tables has this table. */
static bool
is_in_catalog(Relation catalog, Oid index, Oid relid)
{
	ScanKeyData key;
	SysScanDesc scan;
	bool found;

	/* logicalrelid is its first column in all releases */
	ScanKeyInit(&key, 1, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(relid));
	scan = systable_beginscan(catalog, index, OidIsValid(index), NULL, 1, &key);
	found = HeapTupleIsValid(systable_getnext(scan));
	systable_endscan(scan);
	return found;
}

typedef struct TableContext
{
	Relation catalog;
	Oid index;
} TableContext;

/* Walker that returns whether there is a Citus table; the context is a TableContext. */
static bool
table_walker(Node *node, void *context)
{
	TableContext *tables = context;

	if (node == NULL)
		return false;
	if (IsA(node, RangeTblEntry))
	{
		RangeTblEntry *rte = (RangeTblEntry *) node;

		return rte->rtekind == RTE_RELATION && rte->relid >= FirstNormalObjectId &&
			is_in_catalog(tables->catalog, tables->index, rte->relid);
	}
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, table_walker, context, QTW_EXAMINE_RTES_BEFORE);
	return expression_tree_walker(node, table_walker, context);
}

/*
 * Returns whether the query has, at any depth, a table that Citus distributes.  Views have become
 * their queries by now.
 */
static bool
has_citus_table(Query *query)
{
	Oid catalog = get_relname_relid("pg_dist_partition", PG_CATALOG_NAMESPACE);
	TableContext context;
	bool result;

	if (!OidIsValid(catalog))
		return false;
	context.catalog = table_open(catalog, AccessShareLock);
	context.index =
		get_relname_relid("pg_dist_partition_logical_relid_index", PG_CATALOG_NAMESPACE);
	result = table_walker((Node *) query, &context);
	table_close(context.catalog, AccessShareLock);
	return result;
}

/* ---- the hook -------------------------------------------------------------- */

/* Returns whether there is an aggregate that might be rewritten, or has a mark. */
static bool
is_concerned_walker(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Aggref))
	{
		Aggref *aggref = (Aggref *) node;

		if (aggmap_is_ours(aggref->aggfnoid) || is_replaced(aggref) ||
			mark_of_filter(aggref->aggfilter))
			return true;
	}
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, is_concerned_walker, context, 0);
	return expression_tree_walker(node, is_concerned_walker, context);
}

/*
 * Walker that rewrites all aggregates; the context is a bool: whether marks are allowed.  They are
 * not allowed in an INSERT with RETURNING: if such a query has any function that is not immutable,
 * Citus writes tasks that fail ("missing FROM-clause entry").
 */
static bool
rewrite_walker(Node *node, void *context)
{
	bool marks = *(bool *) context;

	if (node == NULL)
		return false;
	if (IsA(node, Aggref))
		rewrite_aggregate((Aggref *) node, marks);
	if (IsA(node, Query))
	{
		Query *query = (Query *) node;

		marks = marks && (query->commandType != CMD_INSERT || query->returningList == NIL);
		return query_tree_walker(query, rewrite_walker, &marks, 0);
	}
	return expression_tree_walker(node, rewrite_walker, context);
}

/* Walker that removes marks; the context is a Statement, in which it sets task and required. */
static bool
unmark_walker(Node *node, void *context)
{
	Statement *found = context;

	if (node == NULL)
		return false;
	if (IsA(node, Aggref))
	{
		Aggref *aggref = (Aggref *) node;
		char *text = mark_of_filter(aggref->aggfilter);

		if (text)
		{
			found->task = true;
			found->required |= strcmp(text, MARK_REQUIRE) == 0;
			aggref->aggfilter = filter_without_mark(aggref->aggfilter);
		}
	}
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, unmark_walker, context, 0);
	return expression_tree_walker(node, unmark_walker, context);
}

/*
 * The planner hook: rewrites a query of Citus tables, or removes the marks from a task, and plans
 * the query with `statement` set accordingly.
 */
static PlannedStmt *
plan_for_citus(COMPAT_PLANNER_PARAMS)
{
	Statement outer = statement;
	Statement inner = {false, false, false};
	PlannedStmt *result;

	if (is_concerned_walker((Node *) query, NULL))
	{
		inner.distributed = has_citus_table(query);
		if (inner.distributed)
		{
			bool marks = true;

			rewrite_walker((Node *) query, &marks);
			merge_rewrite(query);
		}
		else
		{
			unmark_walker((Node *) query, &inner);
			merge_restore(query);
		}
	}
	else if (gpuagg_replace_builtin)
		inner.distributed = has_citus_table(query);
	statement = inner;
	PG_TRY();
	{
		result = (prev_planner_hook ? prev_planner_hook : standard_planner)(COMPAT_PLANNER_ARGS);
	}
	PG_FINALLY();
	{
		statement = outer;
	}
	PG_END_TRY();
	return result;
}

void
citus_install_hook(void)
{
	/*
	 * This setting exists in all releases of Citus.  Its library is loaded at server start, before
	 * this one, or not at all.
	 */
	if (GetConfigOption("citus.shard_count", true, false) == NULL)
		return;
	prev_planner_hook = planner_hook;
	planner_hook = plan_for_citus;
}
