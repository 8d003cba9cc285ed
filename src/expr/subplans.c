/*
 * subplans.c
 *	  States of expressions with subplans.
 *
 * Core gives each plan node a state of its own for an expression, with a hash table of the
 * subplan's rows if it has one (IN, NOT IN).  When parameters of the subplan change, the node's
 * rescan marks the subplan (PlanState.chgParam), and the first evaluation executes it again and
 * removes the mark.
 *
 * Here a node may have several states with the same subplan: partitions below a join have other
 * numbers of columns, and expressions of a node are merged into several ones of nodes above.  Only
 * the state that is evaluated first would find the mark.  So the scan notes the marks when it
 * begins, and each state finds a mark when it is evaluated first after that.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "nodes/nodeFuncs.h"
#include "utils/memutils.h"

#include "expr/expr_internal.h"

/* A subplan. */
typedef struct SubplanPlan
{
	PlanState *plan;
	uint64 changes;    /* how often its parameters have changed */
	Bitmapset *params; /* the last time */
} SubplanPlan;

/* The state of an expression with subplans. */
typedef struct SubplanState
{
	PlanState *node; /* the expression belongs to it */
	Expr *expr;
	ExprState *state;
	int nplans;
	SubplanPlan **plans;
	uint64 *seen; /* [plan] SubplanPlan.changes when the state was evaluated last */
} SubplanState;

void
expr_note_changed_subplans(ExprSubplans *subplans)
{
	ListCell *lc;

	foreach (lc, subplans->plans)
	{
		SubplanPlan *plan = lfirst(lc);
		MemoryContext old;

		if (plan->plan->chgParam == NULL)
			continue;
		old = MemoryContextSwitchTo(plan->plan->state->es_query_cxt);
		bms_free(plan->params);
		plan->params = bms_copy(plan->plan->chgParam);
		plan->changes++;
		MemoryContextSwitchTo(old);
	}
}

struct SubplanState *
expr_find_subplans(const ExprSubplans *subplans, const ExprState *state)
{
	ListCell *lc;

	foreach (lc, subplans->states)
		if (((SubplanState *) lfirst(lc))->state == state)
			return lfirst(lc);
	return NULL;
}

void
expr_renew_subplans(SubplanState *state)
{
	for (int i = 0; i < state->nplans; i++)
	{
		SubplanPlan *plan = state->plans[i];
		MemoryContext old;

		if (state->seen[i] == plan->changes)
			continue;
		state->seen[i] = plan->changes;
		if (plan->plan->chgParam != NULL)
			continue;
		old = MemoryContextSwitchTo(plan->plan->state->es_query_cxt);
		plan->plan->chgParam = bms_copy(plan->params);
		MemoryContextSwitchTo(old);
	}
}

/* Returns the entry of a subplan, which is added if it is new. */
static SubplanPlan *
find_plan(ExprSubplans *subplans, PlanState *planstate)
{
	SubplanPlan *plan;
	ListCell *lc;

	foreach (lc, subplans->plans)
		if (((SubplanPlan *) lfirst(lc))->plan == planstate)
			return lfirst(lc);
	plan = palloc0(sizeof(SubplanPlan));
	plan->plan = planstate;
	subplans->plans = lappend(subplans->plans, plan);
	return plan;
}

/* Walker: adds the subplans of an expression to a list. */
static bool
collect_subplans(Node *node, List **found)
{
	if (node == NULL)
		return false;
	if (IsA(node, SubPlan))
		*found = lappend_int(*found, ((SubPlan *) node)->plan_id);
	return expression_tree_walker(node, collect_subplans, found);
}

ExprState *
expr_subplan_state(ExprSubplans *subplans, PlanState *node, Expr *expr)
{
	EState *estate = node->state;
	SubplanState *known;
	List *ids = NIL;
	MemoryContext old;
	ListCell *lc;

	foreach (lc, subplans->states)
	{
		known = lfirst(lc);
		if (known->node == node && equal(known->expr, expr))
			return known->state;
	}
	old = MemoryContextSwitchTo(estate->es_query_cxt);
	known = palloc0(sizeof(SubplanState));
	known->node = node;
	known->expr = copyObject(expr);
	collect_subplans((Node *) known->expr, &ids);
	known->plans = palloc(sizeof(SubplanPlan *) * (list_length(ids) + 1));
	known->seen = palloc(sizeof(uint64) * (list_length(ids) + 1));
	foreach (lc, ids)
	{
		SubplanPlan *plan =
			find_plan(subplans, list_nth(estate->es_subplanstates, lfirst_int(lc) - 1));

		/* nothing has been hashed yet */
		known->seen[known->nplans] = plan->changes;
		known->plans[known->nplans++] = plan;
	}
	known->state = ExecInitExpr(known->expr, node);
	subplans->states = lappend(subplans->states, known);
	MemoryContextSwitchTo(old);
	return known->state;
}
