/*
 * top_rows.c
 *	  Paths and plan of the custom scan that drops rows below window functions and DISTINCT ON.
 *
 * A condition such as row_number() OVER (PARTITION BY k ORDER BY v) <= 3 needs three rows for each
 * k, and DISTINCT ON (k) needs one.  Core sorts all rows to find them.  The custom scan stands
 * below core's Sort and passes on only rows that may be needed.  Core's nodes above decide, so that
 * their answers stay core's.
 *
 *	WindowAgg or Unique, as core has made it
 *	  Sort
 *	    Custom Scan (GpuAggTopRows)
 *	      input
 *
 * The path above the scan is a copy of one of core's, which has the same targets and conditions in
 * every release.
 */
#include "postgres.h"

#include "catalog/pg_type_d.h"
#include "executor/nodeHash.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/tlist.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

#include "common/compat.h"
#include "common/integers.h"
#include "key_spec.h"
#include "plan/build_node.h"
#include "plan/estimate.h"
#include "plan/group_query.h"
#include "plan/reasons.h"
#include "plan/supported.h"
#include "plan/top_rows.h"
#include "settings.h"

/* Bound that is assumed for a parameter whose value is not known yet. */
#define USUAL_BOUND 10

static Plan *plan_top_rows(PlannerInfo *root, RelOptInfo *rel, CustomPath *best_path, List *tlist,
						   List *clauses, List *custom_plans);

static const CustomPathMethods path_methods = {
	.CustomName = TOP_ROWS_NAME,
	.PlanCustomPath = plan_top_rows,
};

/* Indexes of the lists in a path's custom_private. */
enum
{
	PATH_PLAN, /* the plan's custom_private */
	PATH_BOUND /* list of the bound; NIL: DISTINCT ON */
};

/* Indexes of the lists in a plan's custom_private. */
enum
{
	PLAN_BUILD,
	PLAN_FLAGS,
	PLAN_KEYS,     /* column of each key */
	PLAN_KEY_OIDS, /* three OIDs for each key: equality function, hash function, collation */
	PLAN_ORDER, /* five integers: column, nulls first?, codes descend?, has codes?, descending? */
	PLAN_ORDER_OIDS /* two OIDs: ordering operator, collation */
};

/* A query that needs the best rows of groups. */
typedef struct TopRows
{
	PlannerInfo *root;
	RelOptInfo *input_rel;
	RelOptInfo *output_rel;
	Path *core;       /* core's path above the input */
	Path *core_input; /* the path below it */
	List *pathkeys;   /* in which the input must be sorted */
	List *keys;       /* SortGroupClauses */
	List *order;      /* SortGroupClauses of the order within a group */
	BestKind kind;
	Expr *bound; /* NULL: DISTINCT ON */
	bool below;  /* less than the bound, not at most the bound */
	double n;    /* estimate of the number of rows of a group */
	double groups;
	double equal_rows; /* rows of a group that are equal in the order */
} TopRows;

/* ---- which queries ------------------------------------------------------ */

/* Walker that returns whether a window function's result may depend on rows after a row's peers. */
static bool
sees_later_rows(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, WindowFunc))
	{
		Oid func = ((WindowFunc *) node)->winfnoid;

		return func != F_ROW_NUMBER && func != F_RANK_ && func != F_DENSE_RANK_;
	}
	return expression_tree_walker(node, sees_later_rows, context);
}

/* Returns whether an expression is a Const or Param of an integer type. */
static bool
is_integer_value(Node *expr)
{
	return (IsA(expr, Const) || IsA(expr, Param)) && is_integer_type(exprType(expr));
}

/*
 * Sets kind, bound and below by a condition, which compares a window function with an expression;
 * false if the condition is none that bounds the function from above.
 */
static bool
find_bound(TopRows *top, Node *condition)
{
	OpExpr *op = (OpExpr *) condition;
	bool swapped;
	Oid func;

	if (!IsA(condition, OpExpr) || list_length(op->args) != 2)
		return false;
	swapped = IsA(lsecond(op->args), WindowFunc);
	if (!swapped && !IsA(linitial(op->args), WindowFunc))
		return false;
	func = ((WindowFunc *) list_nth(op->args, swapped))->winfnoid;
	top->kind = func == F_ROW_NUMBER ? BEST_ROW_NUMBER :
		func == F_RANK_              ? BEST_RANK :
									   BEST_DENSE_RANK;
	top->bound = list_nth(op->args, !swapped);
	if (!is_integer_value((Node *) top->bound))
		return false;
	switch (get_opcode(op->opno))
	{
		case F_INT8LE:
		case F_INT82LE:
		case F_INT84LE:
			top->below = false;
			return !swapped;
		case F_INT8LT:
		case F_INT82LT:
		case F_INT84LT:
			top->below = true;
			return !swapped;
		case F_INT8GE:
		case F_INT28GE:
		case F_INT48GE:
			top->below = false;
			return swapped;
		case F_INT8GT:
		case F_INT28GT:
		case F_INT48GT:
			top->below = true;
			return swapped;
		default:
			return false;
	}
}

/* Estimates the bound; *why is set if it is too large. */
static bool
estimate_bound(TopRows *top, const char **why)
{
	Node *value = estimate_expression_value(top->root, (Node *) top->bound);

	top->n = USUAL_BOUND;
	if (!IsA(value, Const))
		return true;
	if (((Const *) value)->constisnull)
		top->n = 1;
	else
		top->n = Max((double) integer_of_type(exprType(value), ((Const *) value)->constvalue) -
						 top->below,
					 1);
	if (top->n <= BEST_MOST)
		return true;
	*why = psprintf("more than %d rows of a group are wanted", BEST_MOST);
	return false;
}

/* Returns the expression of a SortGroupClause. */
static Node *
clause_expr(const TopRows *top, SortGroupClause *clause)
{
	return get_sortgroupclause_expr(clause, top->root->processed_tlist);
}

/* Returns whether the query's keys and expressions allow that rows are dropped; else sets *why. */
static bool
is_supported(TopRows *top, const char **why)
{
	double rows = top->input_rel->cheapest_total_path->rows;
	List *keys = NIL;
	List *eqops = NIL;
	ListCell *lc;

	if (top->root->parse->hasTargetSRFs)
	{
		*why = "a set-returning function beside the best rows of groups is not supported";
		return false;
	}
	if (plan_query_is_volatile(top->root))
	{
		*why = "the query calls a volatile function and needs the best rows of groups";
		return false;
	}
	foreach (lc, top->keys)
	{
		keys = lappend(keys, clause_expr(top, lfirst_node(SortGroupClause, lc)));
		eqops = lappend_oid(eqops, lfirst_node(SortGroupClause, lc)->eqop);
	}
	if (!supported_keys(keys, eqops, why))
		return false;
	top->groups = estimate_groups(top->root, keys, rows);
	foreach (lc, top->order)
		keys = lappend(keys, clause_expr(top, lfirst_node(SortGroupClause, lc)));
	top->equal_rows = rows / Max(estimate_groups(top->root, keys, rows), 1);
	return true;
}

/* ---- the scan's path ------------------------------------------------------ */

/* Returns the index of an expression in a path's target, or -1. */
static int
find_column(const Path *path, Node *expr)
{
	ListCell *lc;

	foreach (lc, path->pathtarget->exprs)
		if (equal(lfirst(lc), expr))
			return foreach_current_index(lc);
	return -1;
}

/* Appends the keys to the plan's lists; false if the child lacks one. */
static bool
add_keys(TopRows *top, const Path *child, List **columns, List **oids)
{
	ListCell *lc;

	foreach (lc, top->keys)
	{
		SortGroupClause *clause = lfirst_node(SortGroupClause, lc);
		Node *expr = clause_expr(top, clause);
		int column = find_column(child, expr);
		Oid eqfunc, hashfunc;

		if (column < 0 || !key_hash_functions(clause->eqop, exprType(expr), &eqfunc, &hashfunc))
			return false;
		*columns = lappend_int(*columns, column);
		*oids = lappend_oid(*oids, eqfunc);
		*oids = lappend_oid(*oids, hashfunc);
		*oids = lappend_oid(*oids, exprCollation(expr));
	}
	return true;
}

/* Appends the order columns to the plan's lists; false if the child lacks one. */
static bool
add_order(TopRows *top, const Path *child, List **columns, List **oids)
{
	ListCell *lc;

	foreach (lc, top->order)
	{
		SortGroupClause *clause = lfirst_node(SortGroupClause, lc);
		Node *expr = clause_expr(top, clause);
		int column = find_column(child, expr);
		bool desc = false;
		bool coded = supported_codes(expr, clause->sortop, &desc);
		bool reversed;

		if (column < 0 || !OidIsValid(get_equality_op_for_ordering_op(clause->sortop, &reversed)))
			return false;
		*columns = lappend_int(*columns, column);
		*columns = lappend_int(*columns, clause->nulls_first);
		*columns = lappend_int(*columns, desc);
		*columns = lappend_int(*columns, coded);
		*columns = lappend_int(*columns, reversed);
		*oids = lappend_oid(*oids, clause->sortop);
		*oids = lappend_oid(*oids, exprCollation(expr));
	}
	return true;
}

/* Returns the custom_private of the plan over this child; NIL if the child lacks a column. */
static List *
make_private(TopRows *top, const Path *child)
{
	List *keys = NIL, *key_oids = NIL, *order = NIL, *order_oids = NIL;
	List *flags =
		list_make4_int(top->kind, top->bound == NULL, top->below, plan_query_is_guarded(top->root));

	if (!add_keys(top, child, &keys, &key_oids) || !add_order(top, child, &order, &order_oids))
		return NIL;
	return lappend(list_make5(build_node_make(), flags, keys, key_oids, order), order_oids);
}

/*
 * Rough sizes in memory: of a group; and of a kept row, without its values.
 */
#define GROUP_BYTES 120
#define ROW_BYTES 64

/* Returns the estimated number of rows that are not dropped, if there is memory for all groups. */
static double
needed_rows(TopRows *top, double rows)
{
	double ties = top->equal_rows;
	double each = top->kind == BEST_ROW_NUMBER ? top->n :
		top->kind == BEST_RANK                 ? top->n - 1 + ties :
												 top->n * ties;

	return Min(rows, top->groups * each);
}

/* Returns the estimated number of rows that are not dropped.  All rows of some groups may be. */
static double
returned_rows(TopRows *top, const Path *child)
{
	double needed = needed_rows(top, child->rows);
	double bytes = top->groups * GROUP_BYTES +
		needed *
			(ROW_BYTES + list_length(child->pathtarget->exprs) * (sizeof(Datum) + 1) +
			 child->pathtarget->width);
	double share = Min(get_hash_memory_limit() / Max(bytes, 1), 1);

	return clamp_row_est(share * needed + (1 - share) * child->rows);
}

/* Sets rows and costs of the scan's path. */
static void
cost_scan(TopRows *top, Path *path, Path *child)
{
	int values =
		list_length(top->keys) + list_length(top->order) + list_length(child->pathtarget->exprs);
	Cost run = child->rows * (gpuagg_row_cost + values * gpuagg_slot_cost);
	bool desc;
	ListCell *lc;

	path->rows = returned_rows(top, child);
	/* values without codes are compared by functions */
	foreach (lc, top->order)
		if (!supported_codes(clause_expr(top, lfirst_node(SortGroupClause, lc)),
							 lfirst_node(SortGroupClause, lc)->sortop, &desc))
			run += child->rows * 2 * cpu_operator_cost;
	path->startup_cost = gpuagg_startup_cost + plan_child_cost(top->root, child) + run;
	/* kept rows are copied, perhaps several times, and returned */
	path->startup_cost += 2 * path->rows * cpu_tuple_cost;
	path->total_cost = path->startup_cost + path->rows * cpu_tuple_cost;
	compat_copy_disabled_nodes(path, child);
}

/* Returns the scan's path over a child; NULL if the child lacks a column. */
static Path *
make_scan(TopRows *top, Path *child)
{
	CustomPath *cpath = makeNode(CustomPath);
	List *private = make_private(top, child);

	if (private == NIL)
		return NULL;
	cpath->path.pathtype = T_CustomScan;
	cpath->path.parent = top->output_rel;
	cpath->path.pathtarget = child->pathtarget;
	cpath->path.parallel_safe = top->input_rel->consider_parallel && child->parallel_safe &&
		is_parallel_safe(top->root, (Node *) top->bound);
	cpath->path.parallel_workers = child->parallel_workers;
	cpath->flags = CUSTOMPATH_SUPPORT_PROJECTION;
	cpath->custom_paths = list_make1(child);
	cpath->custom_private = list_make2(private, top->bound ? list_make1(top->bound) : NIL);
	cpath->methods = &path_methods;
	cost_scan(top, &cpath->path, child);
	return &cpath->path;
}

/*
 * Returns whether the bound is the result of a subquery.  A Gather evaluates it before the first
 * row, but core may never evaluate it, and it may raise an error.
 */
static bool
bound_is_subquery(const TopRows *top)
{
	return top->bound && IsA(top->bound, Param) && ((Param *) top->bound)->paramkind == PARAM_EXEC;
}

/* Returns a Gather over the scan of a partial path, which participants share; NULL: impossible. */
static Path *
make_parallel_scan(TopRows *top, Path *partial)
{
	Path *scan;
	Cost workers;
	double rows;

	if (partial->parallel_workers <= 0 || bound_is_subquery(top) ||
		(scan = make_scan(top, partial)) == NULL || !scan->parallel_safe)
		return NULL;
	scan->parallel_aware = true;
	workers = plan_workers_cost(plan_worker_cost(top->root, partial), partial->parallel_workers);
	scan->startup_cost += workers;
	scan->total_cost += workers;
	rows = scan->rows * (partial->parallel_workers + 1);
	return (Path *) create_gather_path(top->root, top->output_rel, scan, scan->pathtarget, NULL,
									   &rows);
}

/* ---- the paths above ------------------------------------------------------ */

/*
 * Returns core's path over a sorted scan.  Its own cost, without that of its input, is core's for
 * as many rows.
 */
static Path *
make_path_above(TopRows *top, Path *scan)
{
	Path *core = top->core;
	Path *input = top->core_input;
	double share = Min(scan->rows / Max(input->rows, 1), 1);
	Path *sort = (Path *) create_sort_path(top->root, top->output_rel, scan, top->pathkeys, -1.0);
	Path *path;

	if (IsA(core, WindowAggPath))
	{
		WindowAggPath *window = makeNode(WindowAggPath);

		*window = *(WindowAggPath *) core;
		window->subpath = sort;
		path = &window->path;
		path->rows = sort->rows;
	}
	else
	{
		CompatUniquePath *unique = palloc(sizeof(CompatUniquePath));

		*unique = *(CompatUniquePath *) core;
		unique->subpath = sort;
		path = &unique->path;
	}
	path->pathkeys = sort->pathkeys;
	path->parallel_safe = core->parallel_safe && sort->parallel_safe;
	path->startup_cost =
		sort->startup_cost + Max(core->startup_cost - input->startup_cost, 0) * share;
	path->total_cost = sort->total_cost + Max(core->total_cost - input->total_cost, 0) * share;
	path->startup_cost = Min(path->startup_cost, path->total_cost);
	compat_copy_disabled_nodes(path, sort);
	return path;
}

/* Appends the path above the scan, unless that is NULL. */
static List *
append_path(TopRows *top, List *paths, Path *scan)
{
	return scan ? lappend(paths, make_path_above(top, scan)) : paths;
}

/*
 * Adds all paths.  If the custom scan is required, first removes core's.  add_path() may free
 * core's path, which all paths are made of, so they are made before.
 */
static void
add_paths(TopRows *top)
{
	RelOptInfo *rel = top->input_rel;
	List *paths = NIL;
	ListCell *lc;

	foreach (lc, rel->pathlist)
		if (((Path *) lfirst(lc))->param_info == NULL)
			paths = append_path(top, paths, make_scan(top, lfirst(lc)));
	/* each rescan would start workers */
	if (rel->partial_pathlist != NIL && plan_outer_params(top->root) == NIL)
		paths = append_path(top, paths, make_parallel_scan(top, linitial(rel->partial_pathlist)));
	if (paths == NIL)
		return;
	reasons_add_candidate(top->root, top->output_rel, rel->cheapest_total_path->rows);
	if (plan_is_required())
		top->output_rel->pathlist = NIL;
	foreach (lc, paths)
		add_path(top->output_rel, lfirst(lc));
}

/* Returns whether paths may be added at all. */
static bool
is_enabled(void)
{
	return supported_core_too() && gpuagg_enabled && gpuagg_require != GPUAGG_FORBID;
}

/* Returns the first path of this kind, or NULL. */
static Path *
find_path(List *paths, NodeTag tag)
{
	ListCell *lc;

	foreach (lc, paths)
		if (nodeTag(lfirst(lc)) == tag)
			return lfirst(lc);
	return NULL;
}

/* Returns the path below sorts. */
static Path *
below_sorts(Path *path)
{
	while (IsA(path, SortPath) || IsA(path, IncrementalSortPath))
		path = ((SortPath *) path)->subpath;
	return path;
}

void
top_rows_add_window_paths(PlannerInfo *root, RelOptInfo *input_rel, RelOptInfo *output_rel)
{
	WindowAggPath *core = (WindowAggPath *) find_path(output_rel->pathlist, T_WindowAggPath);
	TopRows top = {.root = root, .input_rel = input_rel, .output_rel = output_rel};
	const char *why = NULL;
	bool found = false;
	ListCell *lc;

	if (!is_enabled() || core == NULL || compat_run_condition(core) == NIL ||
		core->winclause->partitionClause == NIL || root->window_pathkeys == NIL)
		return;
	foreach (lc, compat_run_condition(core))
		if ((found = find_bound(&top, lfirst(lc))))
			break;
	top.core = &core->path;
	top.core_input = core->subpath;
	top.pathkeys = root->window_pathkeys;
	top.keys = core->winclause->partitionClause;
	top.order = core->winclause->orderClause;
	if (!found)
		why = "the bound of a window function is no integer constant or parameter";
	else if (IsA(below_sorts(core->subpath), WindowAggPath))
		why = "the best rows of groups of several windows are not supported";
	else if (sees_later_rows((Node *) root->processed_tlist, NULL))
		why = "a window function other than row_number, rank and dense_rank may need all rows";
	else if (top.kind != BEST_ROW_NUMBER && top.order == NIL)
		why = "all rows of a group have the same rank";
	else if (is_supported(&top, &why) && estimate_bound(&top, &why))
		add_paths(&top);
	if (why)
		reasons_reject(root, false, why);
}

void
top_rows_add_distinct_paths(PlannerInfo *root, RelOptInfo *input_rel, RelOptInfo *output_rel)
{
	CompatUniquePath *core =
		(CompatUniquePath *) find_path(output_rel->pathlist, COMPAT_UNIQUE_PATH_TAG);
	TopRows top = {.root = root, .input_rel = input_rel, .output_rel = output_rel, .n = 1};
	const char *why = NULL;
	ListCell *lc;

	if (!is_enabled() || core == NULL || root->distinct_pathkeys == NIL)
		return;
	top.kind = BEST_ROW_NUMBER;
	top.core = &core->path;
	top.core_input = core->subpath;
	top.pathkeys = list_length(root->distinct_pathkeys) < list_length(root->sort_pathkeys) ?
		root->sort_pathkeys :
		root->distinct_pathkeys;
	top.keys = root->parse->distinctClause;
	foreach (lc, root->parse->sortClause)
	{
		SortGroupClause *clause = lfirst_node(SortGroupClause, lc);

		if (!get_sortgroupref_clause_noerr(clause->tleSortGroupRef, top.keys))
			top.order = lappend(top.order, clause);
	}
	if (is_supported(&top, &why))
		add_paths(&top);
	if (why)
		reasons_reject(root, false, why);
}

/* ---- the plan ------------------------------------------------------------- */

/* PlanCustomPath: makes the CustomScan of the chosen path. */
static Plan *
plan_top_rows(PlannerInfo *root, RelOptInfo *rel, CustomPath *best_path, List *tlist, List *clauses,
			  List *custom_plans)
{
	CustomScan *cscan = makeNode(CustomScan);
	Plan *child = linitial(custom_plans);
	ListCell *lc;

	reasons_note_chosen(rel);
	cscan->scan.plan.targetlist = tlist;
	cscan->flags = best_path->flags;
	cscan->custom_plans = custom_plans;
	/* the child's columns: it has the path's target list exactly */
	foreach (lc, child->targetlist)
	{
		TargetEntry *tle = lfirst_node(TargetEntry, lc);

		cscan->custom_scan_tlist =
			lappend(cscan->custom_scan_tlist,
					makeTargetEntry(copyObject(tle->expr),
									list_length(cscan->custom_scan_tlist) + 1, NULL, false));
	}
	cscan->custom_exprs = copyObject(list_nth(best_path->custom_private, PATH_BOUND));
	cscan->custom_private = list_nth(best_path->custom_private, PATH_PLAN);
	cscan->methods = GetCustomScanMethods(TOP_ROWS_NAME, false);
	return &cscan->scan.plan;
}

/* Decodes the order columns. */
static void
decode_order(TopRowsPlan *plan, List *columns, List *oids)
{
	int n = plan->norder = list_length(oids) / 2;

	plan->order_column = palloc0(sizeof(int) * (n + 1));
	plan->order_nulls_first = palloc0(sizeof(bool) * (n + 1));
	plan->order_desc = palloc0(sizeof(bool) * (n + 1));
	plan->order_reversed = palloc0(sizeof(bool) * (n + 1));
	plan->order_coded = palloc0(sizeof(bool) * (n + 1));
	plan->order_op = palloc0(sizeof(Oid) * (n + 1));
	plan->order_collation = palloc0(sizeof(Oid) * (n + 1));
	for (int o = 0; o < n; o++)
	{
		plan->order_column[o] = list_nth_int(columns, 5 * o);
		plan->order_nulls_first[o] = list_nth_int(columns, 5 * o + 1);
		plan->order_desc[o] = list_nth_int(columns, 5 * o + 2);
		plan->order_coded[o] = list_nth_int(columns, 5 * o + 3);
		plan->order_reversed[o] = list_nth_int(columns, 5 * o + 4);
		plan->order_op[o] = list_nth_oid(oids, 2 * o);
		plan->order_collation[o] = list_nth_oid(oids, 2 * o + 1);
	}
}

TopRowsPlan *
top_rows_decode(const CustomScan *cscan)
{
	List *private = cscan->custom_private;
	TopRowsPlan *plan = palloc0(sizeof(TopRowsPlan));
	List *flags, *keys, *oids;

	build_node_check(list_nth(private, PLAN_BUILD));
	flags = list_nth(private, PLAN_FLAGS);
	keys = list_nth(private, PLAN_KEYS);
	oids = list_nth(private, PLAN_KEY_OIDS);
	plan->kind = (BestKind) linitial_int(flags);
	plan->distinct = lsecond_int(flags);
	plan->below = lthird_int(flags);
	plan->guarded = lfourth_int(flags);
	plan->nkeys = list_length(keys);
	plan->key_column = palloc0(sizeof(int) * (plan->nkeys + 1));
	plan->key_eq = palloc0(sizeof(Oid) * (plan->nkeys + 1));
	plan->key_hash = palloc0(sizeof(Oid) * (plan->nkeys + 1));
	plan->key_collation = palloc0(sizeof(Oid) * (plan->nkeys + 1));
	for (int k = 0; k < plan->nkeys; k++)
	{
		plan->key_column[k] = list_nth_int(keys, k);
		plan->key_eq[k] = list_nth_oid(oids, 3 * k);
		plan->key_hash[k] = list_nth_oid(oids, 3 * k + 1);
		plan->key_collation[k] = list_nth_oid(oids, 3 * k + 2);
	}
	decode_order(plan, list_nth(private, PLAN_ORDER), list_nth(private, PLAN_ORDER_OIDS));
	return plan;
}
