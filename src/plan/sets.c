/*
 * sets.c
 *	  The planner's side of GROUPING SETS, ROLLUP and CUBE.
 *
 * The planner has expanded them, including products, to one list of sets before it asks for paths.
 * Here a set is a list of key numbers.  Columns that depend on keys are in all sets.  At execution,
 * composite/grouping_sets.c reduces rows to the groups of each set.
 */
#include "postgres.h"

#include "optimizer/optimizer.h"
#include "optimizer/tlist.h"
#include "parser/parse_agg.h"

#include "common/compat.h"
#include "plan/estimate.h"
#include "plan/group_query.h"
#include "plan/supported.h"

/* Returns the number of the key with this sortgroupref; raises an error if there is none. */
static int
key_number(GroupQuery *query, int ref)
{
	ListCell *lc;

	foreach (lc, query->key_refs)
		if (lfirst_int(lc) == ref)
			return foreach_current_index(lc);
	elog(ERROR, "grouping key with reference %d not found", ref);
}

/* Returns whether all sets have the key. */
static bool
is_in_all(List *sets, int key)
{
	ListCell *lc;

	foreach (lc, sets)
		if (!list_member_int(lfirst(lc), key))
			return false;
	return true;
}

void
plan_collect_sets(GroupQuery *query)
{
	Query *parse = query->root->parse;
	List *sets = parse->groupingSets;
	ListCell *lc, *lc2;

	if (sets != NIL && linitial(sets) != NULL && IsA(linitial(sets), GroupingSet))
		sets = expand_grouping_sets(sets, parse->groupDistinct, -1);
	foreach (lc, sets)
	{
		List *set = NIL;

		foreach (lc2, (List *) lfirst(lc))
			set = lappend_int(set, key_number(query, lfirst_int(lc2)));
		query->sets = lappend(query->sets, set);
	}
	foreach (lc, query->keys)
		if (is_in_all(query->sets, foreach_current_index(lc)))
			query->common_keys = lappend(query->common_keys, lfirst(lc));
}

void
plan_complete_sets(GroupQuery *query)
{
	ListCell *lc;

	for (int k = 0; query->sets != NIL && k < list_length(query->keys); k++)
		if (list_nth_int(query->key_refs, k) == 0)
			foreach (lc, query->sets)
				lfirst(lc) = lappend_int(lfirst(lc), k);
}

/* Returns whether the set is contained in a larger one, or equal to an earlier one. */
static bool
is_contained_in_another(List *sets, List *set, int number)
{
	ListCell *lc;

	foreach (lc, sets)
	{
		List *other = lfirst(lc);

		if (foreach_current_index(lc) != number && list_difference_int(set, other) == NIL &&
			(list_length(other) > list_length(set) || foreach_current_index(lc) < number))
			return true;
	}
	return false;
}

int
plan_finest_sets(GroupQuery *query)
{
	int n = 0;
	ListCell *lc;

	/* distinct values, ordered sets and sorted rows are not combined: each set is made from rows */
	if (supported_any_distinct(query->aggs) || supported_any_ordered_set(query->aggs) ||
		query->orders_apart)
		return Max(list_length(query->sets), 1);
	foreach (lc, query->sets)
		n += !is_contained_in_another(query->sets, lfirst(lc), foreach_current_index(lc));
	return Max(n, 1);
}

double
plan_estimate_sets(GroupQuery *query, double rows)
{
	double all = 0;
	ListCell *lc, *lc2;

	foreach (lc, query->sets)
	{
		List *keys = NIL;
		double groups = 1;

		foreach (lc2, (List *) lfirst(lc))
			keys = lappend(
				keys, compat_below_grouping(query->root, list_nth(query->keys, lfirst_int(lc2))));
		if (keys != NIL)
			groups = estimate_groups(query->root, keys, rows);
		query->set_groups = lappend(query->set_groups, makeFloat(psprintf("%.1f", groups)));
		all += groups;
	}
	return all;
}

List *
plan_grouping_keys(List *groupings, List *key_refs)
{
	List *result = NIL;
	ListCell *lc, *lc2, *lc3;

	foreach (lc, groupings)
	{
		List *keys = NIL;

		foreach (lc2, lfirst_node(GroupingFunc, lc)->refs)
			foreach (lc3, key_refs)
				if (lfirst_int(lc2) == lfirst_int(lc3))
					keys = lappend_int(keys, foreach_current_index(lc3));
		result = lappend(result, keys);
	}
	return result;
}
