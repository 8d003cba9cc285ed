/*
 * inputs.c
 *	  Collects the inputs of an aggregation: expressions that it needs from the child plan.
 *
 * Keys, arguments and filters need inputs.  Equal expressions are one input.  An argument of an
 * aggregate with a FILTER is guarded by a CASE if it could fail for rows that the filter excludes.
 */
#include "postgres.h"

#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/tlist.h"

#include "aggregates/aggmap.h"
#include "aggregates/partial_call.h"
#include "analysis/analysis.h"
#include "common/compat.h"
#include "engines/engines.h"
#include "plan/group_query.h"
#include "plan/supported.h"

/* Returns the number of an input in query->inputs; adds it if it is new. */
static int
lookup_or_add_input(GroupQuery *query, Node *expr, Index sortgroupref)
{
	ListCell *lc;

	foreach (lc, query->inputs)
	{
		if (equal(lfirst(lc), expr))
			return foreach_current_index(lc);
	}
	query->inputs = lappend(query->inputs, expr);
	query->input_refs = lappend_int(query->input_refs, sortgroupref);
	return list_length(query->inputs) - 1;
}

/*
 * Returns the argument in a form that can be evaluated for all rows.  A row that FILTER excludes
 * must not raise an error.  So an argument that can fail becomes CASE WHEN filter THEN arg END.
 */
static Node *
guard_argument(PlannerInfo *root, Expr *arg, Expr *filter)
{
	CaseExpr *guard;
	CaseWhen *when;

	if (filter == NULL || expr_cannot_fail((Node *) arg, root->glob->boundParams))
		return (Node *) arg;
	when = makeNode(CaseWhen);
	when->expr = filter;
	when->result = arg;
	when->location = -1;
	guard = makeNode(CaseExpr);
	guard->casetype = exprType((Node *) arg);
	guard->casecollid = exprCollation((Node *) arg);
	guard->args = list_make1(when);
	guard->defresult =
		(Expr *) makeNullConst(guard->casetype, exprTypmod((Node *) arg), guard->casecollid);
	guard->location = -1;
	return (Node *) guard;
}

/*
 * Returns the input that is computed of an aggregate's arguments; -1 if there is none, or if only
 * the default engine would read it: of hashes, that is not faster.
 */
static int
computed_input(GroupQuery *query, const Aggref *aggref)
{
	Node *input = aggmap_computed_input(partial_aggref(aggref));

	if (input == NULL || (exprType(input) == INT8OID && engines_candidate() == engines_default()))
		return -1;
	return lookup_or_add_input(query,
							   guard_argument(query->root, (Expr *) input, aggref->aggfilter), 0);
}

/*
 * Collects the inputs of keys, arguments and filters.  agg_inputs gets a list for each aggregate:
 * the input of its filter or -1, whether it sorts its rows, and the inputs of its arguments or of
 * their sources, and its computed one (aggmap_computed_input).  Inputs that nothing reads come
 * last: expressions that only have to be evaluated.
 */
void
plan_collect_inputs(GroupQuery *query)
{
	ListCell *lc, *lc2, *lc3;

	forboth(lc, query->keys, lc2, query->key_refs)
	{
		Node *key =
			query->sets == NIL ? lfirst(lc) : compat_below_grouping(query->root, lfirst(lc));

		query->key_inputs =
			lappend_int(query->key_inputs, lookup_or_add_input(query, key, lfirst_int(lc2)));
	}
	plan_find_linear(query);
	forboth(lc, query->aggs, lc3, query->agg_linear)
	{
		Aggref *aggref = lfirst_node(Aggref, lc);
		List *linear = lfirst(lc3);
		List *inputs;
		bool sorts = query->orders_apart && supported_orders_rows(aggref);

		inputs = list_make2_int(
			aggref->aggfilter ? lookup_or_add_input(query, (Node *) aggref->aggfilter, 0) : -1,
			sorts);
		foreach (lc2, partial_aggref(aggref)->args)
		{
			TargetEntry *tle = lfirst_node(TargetEntry, lc2);
			Expr *arg = linear == NIL ? tle->expr : linitial(linear);

			/* an argument that only the aggregate's ORDER BY needs, over sorted input */
			if (tle->resjunk && !sorts)
				continue;
			inputs = lappend_int(
				inputs,
				lookup_or_add_input(query, guard_argument(query->root, arg, aggref->aggfilter), 0));
		}
		if (!sorts && aggmap_has_computed_input(partial_aggref(aggref)))
			inputs = lappend_int(inputs, computed_input(query, aggref));
		query->agg_inputs = lappend(query->agg_inputs, inputs);
	}
	foreach (lc, query->checks)
		lookup_or_add_input(query, lfirst(lc), 0);
}

/* Returns whether an expression is in the ORDER BY of an aggregate. */
static bool
orders_by(const Aggref *aggref, Node *expr)
{
	ListCell *lc;

	foreach (lc, aggref->aggorder)
		if (equal(get_sortgroupclause_expr(lfirst_node(SortGroupClause, lc), aggref->args), expr))
			return true;
	return false;
}

/*
 * Returns the filter of rows for which some aggregate evaluates this expression of its ORDER BY;
 * NULL: all rows.
 */
static Expr *
order_filter(List *aggs, Node *expr)
{
	List *filters = NIL;
	ListCell *lc;

	foreach (lc, aggs)
	{
		Aggref *aggref = lfirst_node(Aggref, lc);

		if (!orders_by(aggref, expr))
			continue;
		if (aggref->aggfilter == NULL)
			return NULL;
		filters = list_append_unique(filters, aggref->aggfilter);
	}
	return list_length(filters) > 1 ? makeBoolExpr(OR_EXPR, filters, -1) : linitial(filters);
}

/*
 * One sort serves all aggregates with an ORDER BY.  It also sorts rows that FILTER excludes for
 * some or all of them.  If no aggregate evaluates an expression of its ORDER BY for a row, the sort
 * must not either: it sorts such rows by NULL.
 *
 * This works only if the expressions are equal in all aggregates.  If they are merely known to have
 * equal values (as x and y are by WHERE x = y), each aggregate sorts its rows (`orders_apart`).
 */
void
plan_guard_order(GroupQuery *query)
{
	Aggref *agg = query->order_agg;
	bool guarded = false;
	ListCell *lc, *lc2;

	if (query->order == NIL)
		return;
	foreach (lc, agg->args)
	{
		TargetEntry *tle = copyObject(lfirst_node(TargetEntry, lc));

		if (get_sortgroupref_clause_noerr(tle->ressortgroupref, agg->aggorder) != NULL)
		{
			Expr *filter = order_filter(query->aggs, (Node *) tle->expr);
			Node *guard = guard_argument(query->root, tle->expr, filter);

			guarded |= guard != (Node *) tle->expr;
			tle->expr = (Expr *) guard;
		}
		query->order_targets = lappend(query->order_targets, tle);
	}
	if (!guarded)
		return;
	foreach (lc, query->aggs)
	{
		Aggref *aggref = lfirst_node(Aggref, lc);

		foreach (lc2, aggref->aggorder)
			if (!orders_by(agg, get_sortgroupclause_expr(lfirst(lc2), aggref->args)))
			{
				query->order = NIL;
				query->orders_apart = true;
				return;
			}
	}
	query->order = make_pathkeys_for_sortclauses(query->root, agg->aggorder, query->order_targets);
}

/*
 * Sets query->order_inputs to the inputs that a feed sorts by; leaves it NIL if one of them has no
 * codes.
 */
void
plan_collect_order_inputs(GroupQuery *query)
{
	List *inputs = NIL;
	ListCell *lc;

	if (query->order == NIL)
		return;
	foreach (lc, query->order_agg->aggorder)
	{
		SortGroupClause *clause = lfirst_node(SortGroupClause, lc);
		Node *expr = get_sortgroupclause_expr(clause, query->order_targets);
		bool desc;

		if (plan_input_is_constant(query->keys, expr))
			continue;
		if (!supported_codes(expr, clause->sortop, &desc))
			return;
		inputs = lappend_int(inputs, lookup_or_add_input(query, expr, 0));
		inputs = lappend_int(inputs, desc);
		inputs = lappend_int(inputs, clause->nulls_first);
	}
	query->order_inputs = inputs;
}

/*
 * Returns a projection path that computes all inputs.  Returns the path itself if its columns
 * include them, so that a scan need not project its tuples.
 */
Path *
plan_path_of_inputs(GroupQuery *query, Path *path)
{
	PathTarget *target = create_empty_pathtarget();
	bool project = false;
	ListCell *lc, *lc2;

	forboth(lc, query->inputs, lc2, query->input_refs)
	{
		Node *input = lfirst(lc);

		if (plan_input_is_constant(query->keys, input))
			continue;
		if (!list_member(path->pathtarget->exprs, input))
			project = true;
		add_column_to_pathtarget(target, (Expr *) input, lfirst_int(lc2));
	}
	if (!project)
		return path;
	return (Path *) create_projection_path(query->root, path->parent, path,
										   set_pathtarget_cost_width(query->root, target));
}
