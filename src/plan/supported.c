/*
 * supported.c
 *	  Decides whether a query's aggregation can have a custom scan, and if not, gives the reason.
 *
 * No other file decides that, as with postgres_fdw's shippable.c.  Reasons are phrases for
 * errdetail and EXPLAIN, without a full stop.  aggmap_supported() answers for a single aggregate.
 */
#include "postgres.h"

#include "catalog/pg_aggregate.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "optimizer/tlist.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

#include "aggregates/aggmap.h"
#include "aggregates/partial_call.h"
#include "common/compat.h"
#include "key_spec.h"
#include "plan/citus.h"
#include "plan/supported.h"
#include "settings.h"

/* Each grouping set may need a table of groups while rows are read. */
#define MOST_SETS 256

/* Returns whether the aggregate is one of the extension's, or a partial call of one. */
static bool
is_ours(const Aggref *aggref)
{
	return aggmap_is_ours(aggref->aggfnoid) || aggmap_is_ours(partial_aggref(aggref)->aggfnoid);
}

bool
supported_any_ours(List *aggrefs)
{
	ListCell *lc;

	foreach (lc, aggrefs)
	{
		if (is_ours(lfirst_node(Aggref, lc)))
			return true;
	}
	return false;
}

bool
supported_core_too(void)
{
	return gpuagg_replace_builtin || citus_is_task();
}

/*
 * Returns whether a custom scan is worthwhile.  One aggregate of the extension's, or one of core's
 * with gpuagg.replace_builtin, is enough.  All other aggregates are then computed with it: their
 * answers are the same.
 */
static bool
is_worthwhile(List *aggrefs, const char **why)
{
	ListCell *lc;

	foreach (lc, aggrefs)
	{
		Aggref *aggref = lfirst_node(Aggref, lc);
		Oid agg = partial_aggref(aggref)->aggfnoid;

		if (is_ours(aggref) ||
			(supported_core_too() &&
			 (aggmap_is_listed(agg) || aggref->aggdistinct != NIL || aggref->aggorder != NIL)))
			return true;
	}
	*why = psprintf("aggregate %s is not one that gpuagg runs faster",
					get_func_name(linitial_node(Aggref, aggrefs)->aggfnoid));
	return false;
}

bool
supported_orders_rows(const Aggref *aggref)
{
	return aggref->aggorder != NIL && aggref->aggdistinct == NIL &&
		aggref->aggkind == AGGKIND_NORMAL;
}

bool
supported_any_ordered_set(List *aggrefs)
{
	ListCell *lc;

	foreach (lc, aggrefs)
		if (aggmap_is_ordered_set(lfirst_node(Aggref, lc)))
			return true;
	return false;
}

bool
supported_any_distinct(List *aggrefs)
{
	ListCell *lc;

	foreach (lc, aggrefs)
		if (lfirst_node(Aggref, lc)->aggdistinct != NIL)
			return true;
	return false;
}

/* Returns whether the aggregate's distinct values, if any, can be hashed; else sets *why. */
static bool
can_hash_distinct(const Aggref *aggref, const char **why)
{
	ListCell *lc;

	foreach (lc, aggref->aggdistinct)
	{
		SortGroupClause *clause = lfirst_node(SortGroupClause, lc);
		Oid type = exprType((Node *) get_sortgroupclause_expr(clause, aggref->args));
		Oid eqfunc, hashfunc;

		if (!key_hash_functions(clause->eqop, type, &eqfunc, &hashfunc))
		{
			*why = psprintf("DISTINCT inside %s needs a hashable type, and %s is not one",
							get_func_name(aggref->aggfnoid), format_type_be(type));
			return false;
		}
	}
	return true;
}

/* Returns whether all aggregates are supported; with `parallel`, in parallel plans. */
static bool
supported_aggregates(List *aggrefs, bool parallel, const char **why)
{
	ListCell *lc;

	foreach (lc, aggrefs)
	{
		Aggref *aggref = lfirst_node(Aggref, lc);

		if (!aggmap_supported(partial_aggref(aggref), parallel, why) ||
			!can_hash_distinct(aggref, why))
			return false;
		/* equal expressions are evaluated once, but volatile ones must be evaluated each time */
		if (contain_volatile_functions((Node *) aggref))
		{
			*why = psprintf("a volatile function inside %s is not supported",
							get_func_name(aggref->aggfnoid));
			return false;
		}
	}
	return true;
}

/* Returns whether a volatile key occurs twice. Equal expressions are evaluated once. */
static bool
has_volatile_twice(List *keys)
{
	ListCell *key, *other;

	foreach (key, keys)
	{
		for_each_cell(other, keys, lnext(keys, key))
		{
			if (equal(lfirst(key), lfirst(other)) && contain_volatile_functions(lfirst(key)))
				return true;
		}
	}
	return false;
}

bool
supported_keys(List *keys, List *eqops, const char **why)
{
	ListCell *key, *op;

	if (has_volatile_twice(keys))
	{
		*why = "GROUP BY has the same volatile expression twice";
		return false;
	}
	forboth(key, keys, op, eqops)
	{
		Oid type = exprType(lfirst(key));
		Oid eqfunc, hashfunc;

		if (!key_hash_functions(lfirst_oid(op), type, &eqfunc, &hashfunc))
		{
			*why =
				psprintf("GROUP BY needs a hashable type, and %s is not one", format_type_be(type));
			return false;
		}
	}
	return true;
}

bool
supported_query(List *keys, List *eqops, List *aggrefs, const char **why)
{
	/* a query without aggregates comes here with gpuagg.replace_builtin only */
	return (aggrefs == NIL || is_worthwhile(aggrefs, why)) &&
		supported_aggregates(aggrefs, false, why) && supported_keys(keys, eqops, why);
}

/* Returns whether all sets have the key. */
static bool
is_in_all_sets(List *sets, int key)
{
	ListCell *lc;

	foreach (lc, sets)
		if (!list_member_int(lfirst(lc), key))
			return false;
	return true;
}

/* Returns whether each set has both keys or neither. */
static bool
are_in_same_sets(List *sets, int key, int other)
{
	ListCell *lc;

	foreach (lc, sets)
		if (list_member_int(lfirst(lc), key) != list_member_int(lfirst(lc), other))
			return false;
	return true;
}

/*
 * Above the custom scan, a key is found by its expression: the first one of equal keys, and
 * constants are not found at all.  In a set without that key the result would be wrong.
 */
bool
supported_sets(List *sets, List *keys, const char **why)
{
	ListCell *key, *other;

	if (list_length(sets) > MOST_SETS)
	{
		*why = psprintf("more than %d grouping sets are not supported", MOST_SETS);
		return false;
	}
	foreach (key, sets == NIL ? NIL : keys)
	{
		Node *expr = lfirst(key);

		/* from PostgreSQL 18 on, a constant key is marked because sets may leave it out */
		if (IsA(expr, PlaceHolderVar))
			expr = (Node *) ((PlaceHolderVar *) expr)->phexpr;
		if (IsA(expr, Const) && !is_in_all_sets(sets, foreach_current_index(key)))
		{
			*why = "a constant as a key of GROUPING SETS is not supported";
			return false;
		}
		for_each_cell(other, keys,
					  lnext(keys, key)) if (equal(lfirst(key), lfirst(other)) &&
											!are_in_same_sets(sets, foreach_current_index(key),
															  foreach_current_index(other)))
		{
			*why = "the same expression as two keys of GROUPING SETS is not supported";
			return false;
		}
	}
	return true;
}

/*
 * Returns whether sorting the input might change the aggregate's result: it is core's own, has no
 * ORDER BY, and depends on the order of its rows.
 */
static bool
shows_input_order(const Aggref *aggref)
{
	Oid transfn;

	return !supported_orders_rows(aggref) && aggref->aggdistinct == NIL &&
		!aggmap_is_ours(aggref->aggfnoid) &&
		(aggmap_is_fallback(partial_aggref(aggref)->aggfnoid, &transfn) ||
		 aggref->aggtype == FLOAT4OID || aggref->aggtype == FLOAT8OID);
}

/*
 * Finds out whether one sort of the input serves all aggregates with an ORDER BY.  Then *order is
 * the longest of their orders, and the others are prefixes of it.  Otherwise *order is NIL.
 *
 * *apart is set if each aggregate must sort its own rows: if the orders differ, if there are also
 * distinct values or ordered sets, or if other aggregates must see the rows in the input's order.
 */
void
supported_order(PlannerInfo *root, List *aggrefs, List **order, Aggref **agg, bool *apart)
{
	bool others = false;
	ListCell *lc;

	*order = NIL;
	*apart = false;
	foreach (lc, aggrefs)
	{
		Aggref *aggref = lfirst_node(Aggref, lc);
		List *pathkeys;

		others |= aggref->aggdistinct != NIL || aggmap_is_ordered_set(aggref) ||
			shows_input_order(aggref);
		if (!supported_orders_rows(aggref))
			continue;
		pathkeys = make_pathkeys_for_sortclauses(root, aggref->aggorder, aggref->args);
		if (pathkeys_contained_in(*order, pathkeys))
		{
			*order = pathkeys;
			*agg = aggref;
		}
		else if (!pathkeys_contained_in(pathkeys, *order))
			*apart = true;
	}
	*apart |= *order != NIL && (others || !grouping_is_sortable(compat_group_clause(root)));
	if (*apart)
		*order = NIL;
}

bool
supported_codes(Node *expr, Oid sortop, bool *desc)
{
	Oid type = getBaseType(exprType(expr));
	TypeCacheEntry *entry;

	if (!spec_type_has_codes(type))
		return false;
	entry = lookup_type_cache(type, TYPECACHE_LT_OPR | TYPECACHE_GT_OPR);
	*desc = sortop == entry->gt_opr;
	return *desc || sortop == entry->lt_opr;
}

bool
supported_parallel(List *aggrefs, const char **why)
{
	return supported_aggregates(aggrefs, true, why);
}

/*
 * Walker that returns whether an aggregate of the extension is used as a window function; the
 * context is an Oid, which is set to that function.
 */
static bool
ours_in_window(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, WindowFunc) && aggmap_is_ours(((WindowFunc *) node)->winfnoid))
	{
		*(Oid *) context = ((WindowFunc *) node)->winfnoid;
		return true;
	}
	return expression_tree_walker(node, ours_in_window, context);
}

bool
supported_window(PlannerInfo *root, const char **why)
{
	Oid func;

	if (!ours_in_window((Node *) root->processed_tlist, &func))
		return true;
	*why = psprintf("%s is used as a window function", get_func_name(func));
	return false;
}
