/*
 * custom.c
 *	  Makes a CustomScan of the chosen custom path, and packs and unpacks their private lists.
 *
 * Path and plan contain only nodes, because the planner copies them and sends them to parallel
 * workers.  plan_decode() gives the executor arrays instead.  The plan begins with a node that says
 * which build of the library has made it.  No range table index is ever stored in custom_private:
 * it would not be adjusted when plans of subqueries are joined.
 */
#include "postgres.h"

#include "catalog/pg_type_d.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/plancat.h"
#include "optimizer/tlist.h"
#include "parser/parsetree.h"
#include "utils/builtins.h"

#include "common/compat.h"
#include "key_spec.h"
#include "plan/build_node.h"
#include "plan/estimate.h"
#include "plan/group_query.h"
#include "plan/plan.h"
#include "plan/reasons.h"
#include "plan/supported.h"

static Plan *plan_custom_path(PlannerInfo *root, RelOptInfo *rel, CustomPath *best_path,
							  List *tlist, List *clauses, List *custom_plans);

const CustomPathMethods gpuagg_path_methods = {
	.CustomName = "GpuAgg",
	.PlanCustomPath = plan_custom_path,
};

/* Indexes of the lists in a path's custom_private. */
enum
{
	PATH_FLAGS,
	PATH_ESTIMATES,
	PATH_KEYS,
	PATH_KEY_EQOPS,
	PATH_KEY_INPUTS,
	PATH_AGGS,
	PATH_AGG_INPUTS,
	PATH_INPUTS,
	PATH_HAVING,
	PATH_ORDER,
	PATH_KEY_REFS,
	PATH_SETS,
	PATH_SET_GROUPS,
	PATH_GROUPINGS,
	PATH_LIMIT,
	PATH_LIMIT_EXPRS,
	PATH_OUTER_PARAMS,
	PATH_AGG_LINEAR,
	PATH_NO_LOOKUPS
};

/* Indexes of the lists in a plan's custom_private. */
enum
{
	PLAN_BUILD,
	PLAN_FLAGS,
	PLAN_ESTIMATES,
	PLAN_KEY_INPUTS,
	PLAN_KEY_OIDS,
	PLAN_AGG_INPUTS,
	PLAN_INPUT_RESNOS,
	PLAN_ORDER,
	PLAN_INPUT_SCALES,
	PLAN_SETS,
	PLAN_SET_GROUPS,
	PLAN_GROUPINGS,
	PLAN_LIMIT,
	PLAN_OUTER_PARAMS,
	PLAN_AGG_LINEAR,
	PLAN_NO_LOOKUPS,
	PLAN_CORE_JOINS
};

/*
 * Sublinks of this level have become subplans by now, and expressions only refer to them.  If there
 * are any, all subplans of the planner are examined.
 */
bool
plan_query_is_volatile(PlannerInfo *root)
{
	Query *parse = root->parse;
	ListCell *lc;

	if (contain_volatile_functions((Node *) parse))
		return true;
	if (!contain_subplans((Node *) parse->targetList) &&
		!contain_subplans((Node *) parse->jointree) && !contain_subplans(parse->havingQual))
		return false;
	foreach (lc, root->glob->subroots)
		if (contain_volatile_functions((Node *) lfirst_node(PlannerInfo, lc)->parse))
			return true;
	return false;
}

/*
 * Returns whether a node is or contains a range table entry with security quals, or of a
 * security_barrier view.
 */
static bool
hides_rows(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, RangeTblEntry))
		return ((RangeTblEntry *) node)->security_barrier ||
			((RangeTblEntry *) node)->securityQuals != NIL;
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, hides_rows, context, QTW_EXAMINE_RTES_BEFORE);
	return expression_tree_walker(node, hides_rows, context);
}

/*
 * Conditions from outside of a security_barrier view may have been moved into this query, so that
 * outer queries count, too.
 */
bool
plan_query_is_guarded(PlannerInfo *root)
{
	for (; root; root = root->parent_root)
		if (hides_rows((Node *) root->parse, NULL))
			return true;
	return false;
}

/* Returns a number as a node.  A Float would be text, which takes long to make. */
static Const *
make_number(double number)
{
	return makeConst(FLOAT8OID, -1, InvalidOid, sizeof(float8), Float8GetDatum(number), false,
					 FLOAT8PASSBYVAL);
}

void
plan_list_device(List *list, const DeviceEstimates *device)
{
	ListCell *estimates = list_nth_cell(list, PATH_ESTIMATES);

	lfirst(estimates) = lappend(lfirst(estimates), make_number(device->resident));
	lfirst(estimates) = lappend(lfirst(estimates), make_number(device->scanned));
	lfirst(estimates) = lappend(lfirst(estimates), make_number(device->counted));
	lfirst(estimates) = lappend(lfirst(estimates), make_number(device->fallbacks));
}

List *
plan_query_to_list(GroupQuery *query, double rows, bool grouped, bool sorts)
{
	List *result;
	List *linear = NIL;
	ListCell *lc;

	if (query->flags == NIL)
		query->flags =
			list_make2_int(plan_query_is_volatile(query->root), plan_query_is_guarded(query->root));
	result = list_make2(lcons_int(grouped, list_copy(query->flags)),
						list_make2(make_number(rows), make_number(query->groups)));
	result = lappend(result, query->keys);
	result = lappend(result, query->key_eqops);
	result = lappend(result, query->key_inputs);
	result = lappend(result, query->aggs);
	result = lappend(result, query->agg_inputs);
	result = lappend(result, query->inputs);
	result = lappend(result, query->having);
	result = lappend(result, sorts ? query->order_inputs : NIL);
	result = lappend(result, query->key_refs);
	result = lappend(result, query->sets);
	result = lappend(result, query->set_groups);
	result = lappend(result, query->groupings);
	result = lappend(result, query->limit);
	result = lappend(result, query->limit ? query->limit_exprs : NIL);
	result = lappend(result, plan_outer_params(query->root));
	foreach (lc, query->agg_linear)
		linear = lappend(linear, lfirst(lc) ? list_copy_tail(lfirst(lc), 1) : NIL);
	result = lappend(result, linear);
	return lappend(result, query->no_lookups);
}

/*
 * Returns whether an input is a Const or a Param, and no key.  It is then the same for all rows and
 * need not be a column of the child.  Other constant expressions do not count: evaluating them
 * could raise an error for a query without rows.
 */
bool
plan_input_is_constant(List *keys, Node *input)
{
	while (IsA(input, RelabelType))
		input = (Node *) ((RelabelType *) input)->arg;
	return (IsA(input, Const) || IsA(input, Param)) && !list_member(keys, input);
}

/*
 * Returns a list with the resno of each input in the target list, or 0 for a constant input; NIL if
 * the target list lacks an input.
 */
static List *
match_inputs(List *keys, List *inputs, List *targetlist)
{
	List *resnos = NIL;
	ListCell *lc;

	foreach (lc, inputs)
	{
		TargetEntry *tle;

		if (plan_input_is_constant(keys, lfirst(lc)))
		{
			resnos = lappend_int(resnos, 0);
			continue;
		}
		tle = tlist_member(lfirst(lc), targetlist);
		if (tle == NULL)
			return NIL;
		resnos = lappend_int(resnos, tle->resno);
	}
	return resnos;
}

/*
 * Replaces the target list of a scan by all columns of its table if these include all inputs.  Then
 * the scan need not project.  Core does the same for other parents (use_physical_tlist), but not
 * for custom scans.
 */
static void
use_physical_targetlist(PlannerInfo *root, Plan *child, List *keys, List *inputs)
{
	RelOptInfo *rel;
	List *physical;
	Index relid;

	switch (nodeTag(child))
	{
		case T_SeqScan:
		case T_SampleScan:
		case T_IndexScan:
		case T_BitmapHeapScan:
		case T_TidScan:
		case T_TidRangeScan:
		case T_SubqueryScan:
		case T_FunctionScan:
		case T_ValuesScan:
		case T_CteScan:
			break;
		default:
			return;
	}
	relid = ((Scan *) child)->scanrelid;
	rel = root->simple_rel_array[relid];
	if (rel == NULL || rel->reloptkind != RELOPT_BASEREL)
		return;
	physical = build_physical_tlist(root, rel);
	if (physical != NIL && (inputs == NIL || match_inputs(keys, inputs, physical) != NIL))
		child->targetlist = physical;
}

/* Returns the scan's target list before projection: keys, then aggregates, then GROUPING(). */
static List *
scan_targetlist(List *keys, List *aggs, List *groupings)
{
	List *tlist = NIL;
	List *exprs = list_concat(list_concat_copy(keys, aggs), groupings);
	ListCell *lc;

	foreach (lc, exprs)
		tlist = lappend(
			tlist, makeTargetEntry(copyObject(lfirst(lc)), list_length(tlist) + 1, NULL, false));
	return tlist;
}

/* Returns a list with three OIDs for each key: equality function, hash function, collation. */
static List *
key_oids(List *keys, List *eqops)
{
	List *oids = NIL;
	ListCell *lc, *lc2;

	forboth(lc, keys, lc2, eqops)
	{
		Oid eqfunc, hashfunc;

		if (!key_hash_functions(lfirst_oid(lc2), exprType(lfirst(lc)), &eqfunc, &hashfunc))
			elog(ERROR, "grouping operator %u is not hashable", lfirst_oid(lc2));
		oids = lappend_oid(oids, eqfunc);
		oids = lappend_oid(oids, hashfunc);
		oids = lappend_oid(oids, exprCollation(lfirst(lc)));
	}
	return oids;
}

/* Walker that adds the distinct Params of an expression to *params. */
static bool
collect_params(Node *node, List **params)
{
	if (node == NULL)
		return false;
	/* the child evaluates subplans; this node does not depend on their parameters */
	if (IsA(node, SubPlan) || IsA(node, AlternativeSubPlan))
		return false;
	if (IsA(node, Param))
	{
		*params = list_append_unique(*params, node);
		return false;
	}
	return expression_tree_walker(node, collect_params, params);
}

/*
 * Returns the plan's custom_exprs: constant inputs, LIMIT and OFFSET, the direct arguments of
 * ordered-set aggregates, and the Params of the aggregates.  Sets *nconsts to the number of the
 * constant inputs, which come first.  The Params are there because
 * aggregates evaluate some arguments themselves (the bounds of a histogram), and the planner and
 * executor must know that this node depends on their parameters.
 */
static List *
custom_expressions(List *keys, List *inputs, List *limit, List *aggs, int *nconsts)
{
	List *exprs = NIL;
	List *params = NIL;
	ListCell *lc;

	foreach (lc, inputs)
	{
		if (plan_input_is_constant(keys, lfirst(lc)))
			exprs = lappend(exprs, copyObject(lfirst(lc)));
	}
	*nconsts = list_length(exprs);
	exprs = list_concat(exprs, copyObject(limit));
	foreach (lc, aggs)
		exprs = list_concat(exprs, copyObject(lfirst_node(Aggref, lc)->aggdirectargs));
	collect_params((Node *) aggs, &params);
	return list_concat(exprs, copyObject(params));
}

/* Returns quals in the order in which core evaluates them: by cost, else as they are written. */
static List *
order_quals(PlannerInfo *root, List *quals)
{
	Cost *costs = palloc(sizeof(Cost) * (list_length(quals) + 1));
	List *result = NIL;
	ListCell *lc;

	foreach (lc, quals)
	{
		QualCost cost;
		int at = list_length(result);

		cost_qual_eval_node(&cost, lfirst(lc), root);
		while (at > 0 && costs[at - 1] > cost.per_tuple)
		{
			costs[at] = costs[at - 1];
			at--;
		}
		costs[at] = cost.per_tuple;
		result = list_insert_nth(result, at, lfirst(lc));
	}
	return result;
}

/* PlanCustomPath: makes the CustomScan of the chosen path. */
static Plan *
plan_custom_path(PlannerInfo *root, RelOptInfo *rel, CustomPath *best_path, List *tlist,
				 List *clauses, List *custom_plans)
{
	CustomScan *cscan = makeNode(CustomScan);
	List *private = best_path->custom_private;
	List *keys = list_nth(private, PATH_KEYS);
	List *aggs = list_nth(private, PATH_AGGS);
	List *inputs = list_nth(private, PATH_INPUTS);
	Plan *child = linitial(custom_plans);
	List *resnos;
	List *scales = NIL;
	List *flags;
	ListCell *lc;
	bool partial = compat_is_grouped_rel(rel);
	int nconsts;

	/* with partial aggregates below a join, the whole aggregation counts as executed by the scan */
	reasons_note_chosen(partial ? fetch_upper_rel(root, UPPERREL_GROUP_AGG, NULL) : rel);
	use_physical_targetlist(root, child, keys, inputs);
	resnos = match_inputs(keys, inputs, child->targetlist);
	if (resnos == NIL && inputs != NIL)
		elog(ERROR, "input of an aggregate not found in the child plan");

	/* below a join, pg_plan_advice needs to know the table of each scan */
	cscan->scan.scanrelid = partial ? rel->relid : 0;
	cscan->scan.plan.targetlist = tlist;
	cscan->scan.plan.qual = order_quals(root, list_nth(private, PATH_HAVING));
	cscan->flags = best_path->flags;
	cscan->custom_plans = custom_plans;
	cscan->custom_scan_tlist = scan_targetlist(keys, aggs, list_nth(private, PATH_GROUPINGS));
	cscan->custom_exprs =
		custom_expressions(keys, inputs, list_nth(private, PATH_LIMIT_EXPRS), aggs, &nconsts);
	cscan->methods = GetCustomScanMethods("GpuAgg", false);

	flags = list_copy(list_nth(private, PATH_FLAGS));
	flags = lappend_int(flags, list_length(keys));
	flags = lappend_int(flags, list_length(aggs));
	flags = lappend_int(flags, nconsts);
	cscan->custom_private = list_make3(build_node_make(), flags, list_nth(private, PATH_ESTIMATES));
	cscan->custom_private = lappend(cscan->custom_private, list_nth(private, PATH_KEY_INPUTS));
	cscan->custom_private =
		lappend(cscan->custom_private, key_oids(keys, list_nth(private, PATH_KEY_EQOPS)));
	cscan->custom_private = lappend(cscan->custom_private, list_nth(private, PATH_AGG_INPUTS));
	cscan->custom_private = lappend(cscan->custom_private, resnos);
	cscan->custom_private = lappend(cscan->custom_private, list_nth(private, PATH_ORDER));
	foreach (lc, inputs)
		scales = lappend_int(scales, estimate_scale(root, lfirst(lc)));
	cscan->custom_private = lappend(cscan->custom_private, scales);
	cscan->custom_private = lappend(cscan->custom_private, list_nth(private, PATH_SETS));
	cscan->custom_private = lappend(cscan->custom_private, list_nth(private, PATH_SET_GROUPS));
	cscan->custom_private = lappend(
		cscan->custom_private,
		plan_grouping_keys(list_nth(private, PATH_GROUPINGS), list_nth(private, PATH_KEY_REFS)));
	cscan->custom_private = lappend(cscan->custom_private, list_nth(private, PATH_LIMIT));
	cscan->custom_private = lappend(cscan->custom_private, list_nth(private, PATH_OUTER_PARAMS));
	cscan->custom_private = lappend(cscan->custom_private, list_nth(private, PATH_AGG_LINEAR));
	cscan->custom_private = lappend(cscan->custom_private, list_nth(private, PATH_NO_LOOKUPS));
	cscan->custom_private =
		lappend(cscan->custom_private, lookup_joins_of_core(linitial(best_path->custom_paths)));
	return &cscan->scan.plan;
}

/* Returns the integers of a list as an array, without the first `skip` ones. */
static int *
ints_of_list(List *list, int skip)
{
	int *array = palloc0(sizeof(int) * Max(list_length(list), 1));
	ListCell *lc;
	int n = 0;

	for_each_from(lc, list, skip) array[n++] = lfirst_int(lc);
	return array;
}

/* Sets sets, groupings and grouping_nkeys of *plan from the plan's custom_private. */
static void
decode_sets(GpuAggPlan *plan, List *private)
{
	List *groups = list_nth(private, PLAN_SET_GROUPS);
	List *groupings = list_nth(private, PLAN_GROUPINGS);
	ListCell *lc, *lc2;

	plan->sets = palloc0(sizeof(KeySet) * (list_length(groups) + 1));
	foreach (lc, (List *) list_nth(private, PLAN_SETS))
	{
		KeySet *set = &plan->sets[plan->nsets];

		set->groups = floatVal(list_nth(groups, plan->nsets++));
		foreach (lc2, (List *) lfirst(lc))
			set->keys = bms_add_member(set->keys, lfirst_int(lc2));
	}
	plan->groupings = palloc0(sizeof(int *) * (list_length(groupings) + 1));
	plan->grouping_nkeys = palloc0(sizeof(int) * (list_length(groupings) + 1));
	foreach (lc, groupings)
	{
		plan->grouping_nkeys[plan->ngroupings] = list_length(lfirst(lc));
		plan->groupings[plan->ngroupings++] = ints_of_list(lfirst(lc), 0);
	}
}

/* Returns three Consts of custom_private as a LinearArgument; NULL for NIL. */
static LinearArgument *
decode_linear(List *consts)
{
	LinearArgument *linear;

	if (consts == NIL)
		return NULL;
	linear = palloc(sizeof(LinearArgument));
	linear->mul = DatumGetInt64(linitial_node(Const, consts)->constvalue);
	linear->add = DatumGetInt64(lsecond_node(Const, consts)->constvalue);
	linear->scale = DatumGetInt64(lthird_node(Const, consts)->constvalue);
	return linear;
}

GpuAggPlan *
plan_decode(const CustomScan *cscan)
{
	List *private = cscan->custom_private;
	GpuAggPlan *plan = palloc0(sizeof(GpuAggPlan));
	List *flags, *estimates, *oids, *agg_inputs;
	ListCell *lc;

	build_node_check(list_nth(private, PLAN_BUILD));
	flags = list_nth(private, PLAN_FLAGS);
	estimates = list_nth(private, PLAN_ESTIMATES);
	oids = list_nth(private, PLAN_KEY_OIDS);
	agg_inputs = list_nth(private, PLAN_AGG_INPUTS);
	plan->grouped = linitial_int(flags);
	plan->read_once = lsecond_int(flags);
	plan->guarded = lthird_int(flags);
	plan->nkeys = lfourth_int(flags);
	plan->naggs = list_nth_int(flags, 4);
	plan->nconsts = list_nth_int(flags, 5);
	plan->est_rows = DatumGetFloat8(linitial_node(Const, estimates)->constvalue);
	plan->est_groups = DatumGetFloat8(lsecond_node(Const, estimates)->constvalue);
	plan->resident = DatumGetFloat8(lthird_node(Const, estimates)->constvalue);
	plan->scanned = DatumGetFloat8(lfourth_node(Const, estimates)->constvalue);
	plan->counted = DatumGetFloat8(list_nth_node(Const, estimates, 4)->constvalue);
	plan->fallbacks = DatumGetFloat8(list_nth_node(Const, estimates, 5)->constvalue);
	plan->key_input = ints_of_list(list_nth(private, PLAN_KEY_INPUTS), 0);
	plan->input_resno = ints_of_list(list_nth(private, PLAN_INPUT_RESNOS), 0);
	plan->input_scale = ints_of_list(list_nth(private, PLAN_INPUT_SCALES), 0);
	plan->order = ints_of_list(list_nth(private, PLAN_ORDER), 0);
	plan->norder = list_length(list_nth(private, PLAN_ORDER)) / 3;
	if (list_nth(private, PLAN_LIMIT) != NIL)
	{
		plan->limit_ties = linitial_int(list_nth(private, PLAN_LIMIT));
		plan->limit = ints_of_list(list_nth(private, PLAN_LIMIT), 1);
		plan->nlimit = list_length(list_nth(private, PLAN_LIMIT)) / 3;
		plan->first_groups = plan->nlimit == 0;
	}
	foreach (lc, (List *) list_nth(private, PLAN_OUTER_PARAMS))
		plan->outer_params = bms_add_member(plan->outer_params, lfirst_int(lc));
	plan->ninputs = list_length(list_nth(private, PLAN_INPUT_RESNOS));
	plan->key_eq = palloc0(sizeof(Oid) * (plan->nkeys + 1));
	plan->key_hash = palloc0(sizeof(Oid) * (plan->nkeys + 1));
	plan->key_collation = palloc0(sizeof(Oid) * (plan->nkeys + 1));
	for (int k = 0; k < plan->nkeys; k++)
	{
		plan->key_eq[k] = list_nth_oid(oids, 3 * k);
		plan->key_hash[k] = list_nth_oid(oids, 3 * k + 1);
		plan->key_collation[k] = list_nth_oid(oids, 3 * k + 2);
	}
	plan->agg_filter = palloc0(sizeof(int) * (plan->naggs + 1));
	plan->agg_sorts = palloc0(sizeof(bool) * (plan->naggs + 1));
	plan->agg_args = palloc0(sizeof(int *) * (plan->naggs + 1));
	plan->agg_linear = palloc0(sizeof(LinearArgument *) * (plan->naggs + 1));
	for (int a = 0; a < plan->naggs; a++)
	{
		plan->agg_filter[a] = linitial_int(list_nth(agg_inputs, a));
		plan->agg_sorts[a] = lsecond_int(list_nth(agg_inputs, a));
		plan->agg_args[a] = ints_of_list(list_nth(agg_inputs, a), 2);
		plan->agg_linear[a] = decode_linear(list_nth(list_nth(private, PLAN_AGG_LINEAR), a));
	}
	decode_sets(plan, private);
	if (list_nth(private, PLAN_NO_LOOKUPS) != NIL)
		plan->no_lookups = strVal(linitial(list_nth(private, PLAN_NO_LOOKUPS)));
	plan->core_joins = list_nth(private, PLAN_CORE_JOINS);
	return plan;
}
