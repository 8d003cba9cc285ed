/*
 * citus_merge.c
 *	  Rewrites aggregates over distributed tables as calls of gpuagg_merge.
 *
 * Citus computes an aggregate in parts if it has a combine function and a state that is not a
 * pseudotype, and all its arguments have their declared types; or if it has one of certain names.
 * With any other aggregate in a query, all rows are sent to the coordinator.  So aggregates are
 * replaced only if all aggregates of the query can be computed in parts, including those that
 * partial_expression() can replace.  Otherwise none is replaced: the aggregates get the gathered
 * rows.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "aggregates/aggmap.h"
#include "aggregates/partial_call.h"
#include "plan/citus_merge.h"
#include "settings.h"

/* Names of aggregates that Citus computes in parts whatever their state is. */
static const char *const known_names[] = {"avg",       "min",
										  "max",       "sum",
										  "count",     "array_agg",
										  "jsonb_agg", "jsonb_object_agg",
										  "json_agg",  "json_object_agg",
										  "bit_and",   "bit_or",
										  "bool_and",  "bool_or",
										  "every",     "any_value"};

bool
merge_has_parts(Oid agg)
{
	char *name = get_func_name(agg);
	HeapTuple tuple;
	Form_pg_aggregate form;
	bool result;

	for (int i = 0; name && i < lengthof(known_names); i++)
		if (strcmp(name, known_names[i]) == 0)
			return true;
	tuple = SearchSysCache1(AGGFNOID, ObjectIdGetDatum(agg));
	if (!HeapTupleIsValid(tuple))
		return false;
	form = (Form_pg_aggregate) GETSTRUCT(tuple);
	result = OidIsValid(form->aggcombinefn) && get_typtype(form->aggtranstype) != TYPTYPE_PSEUDO;
	ReleaseSysCache(tuple);
	return result;
}

/* Returns whether the aggregate's state can be sent, by what the catalog says. */
static bool
can_send_state(const Aggref *aggref)
{
	return aggref->aggdistinct == NIL && aggref->aggorder == NIL &&
		merge_has_parts(aggref->aggfnoid);
}

/* Returns the call of gpuagg_merge that replaces the aggregate; NULL: it is not replaced. */
static Node *
replacement_of(const Aggref *aggref)
{
	if (!aggmap_is_ours(aggref->aggfnoid) &&
		!(gpuagg_replace_builtin && aggmap_is_listed(aggref->aggfnoid)))
		return NULL;
	return can_send_state(aggref) ? NULL : partial_expression(aggref);
}

/*
 * Returns whether there is an aggregate of this level whose state cannot be sent, and which is not
 * replaced.
 */
static bool
needs_rows_walker(Node *node, void *context)
{
	if (node == NULL || IsA(node, Query))
		return false;
	if (IsA(node, Aggref) && ((Aggref *) node)->agglevelsup == 0)
		return !can_send_state((Aggref *) node) && replacement_of((Aggref *) node) == NULL;
	return expression_tree_walker(node, needs_rows_walker, context);
}

/* Returns a copy of a SubLink in which only the test is mutated, and not the subquery. */
static Node *
mutate_test_of_sublink(const SubLink *from, Node *(*mutator)(Node *, void *) )
{
	SubLink *link = makeNode(SubLink);

	*link = *from;
	link->testexpr = mutator(link->testexpr, NULL);
	return (Node *) link;
}

/* Mutator that replaces the aggregates of this query level whose states cannot be sent. */
static Node *
replace_mutator(Node *node, void *context)
{
	if (node == NULL)
		return NULL;
	check_stack_depth();
	if (IsA(node, Aggref))
	{
		Node *other = can_send_state((Aggref *) node) ? NULL : replacement_of((Aggref *) node);

		return other ? other : node;
	}
	if (IsA(node, SubLink))
		return mutate_test_of_sublink((SubLink *) node, replace_mutator);
	return expression_tree_mutator(node, replace_mutator, context);
}

/* Mutator that replaces calls of gpuagg_merge by the aggregates that they were made for. */
static Node *
restore_mutator(Node *node, void *context)
{
	Node *aggref;

	if (node == NULL)
		return NULL;
	check_stack_depth();
	if (IsA(node, FuncExpr) && (aggref = (Node *) partial_original_aggregate(node)) != NULL)
		return aggref;
	if (IsA(node, SubLink))
		return mutate_test_of_sublink((SubLink *) node, restore_mutator);
	return expression_tree_mutator(node, restore_mutator, context);
}

/* Walker that applies restore_mutator to a query and its subqueries, in place. */
static bool
restore_walker(Node *node, void *context)
{
	Query *query = (Query *) node;

	if (node == NULL)
		return false;
	if (!IsA(node, Query))
		return expression_tree_walker(node, restore_walker, context);
	if (query->hasAggs)
	{
		query->targetList = (List *) restore_mutator((Node *) query->targetList, NULL);
		query->havingQual = restore_mutator(query->havingQual, NULL);
	}
	return query_tree_walker(query, restore_walker, context, 0);
}

void
merge_restore(Query *query)
{
	restore_walker((Node *) query, NULL);
}

/* Walker that applies replace_mutator, where it helps, to a query and its subqueries, in place. */
static bool
query_walker(Node *node, void *context)
{
	Query *query = (Query *) node;

	if (node == NULL)
		return false;
	if (!IsA(node, Query))
		return expression_tree_walker(node, query_walker, context);
	if (query->hasAggs && query->groupingSets == NIL &&
		!needs_rows_walker((Node *) query->targetList, NULL) &&
		!needs_rows_walker(query->havingQual, NULL))
	{
		query->targetList = (List *) replace_mutator((Node *) query->targetList, NULL);
		query->havingQual = replace_mutator(query->havingQual, NULL);
	}
	return query_tree_walker(query, query_walker, context, 0);
}

void
merge_rewrite(Query *query)
{
	query_walker((Node *) query, NULL);
}
