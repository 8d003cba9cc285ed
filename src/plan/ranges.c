/*
 * ranges.c
 *	  Estimates which part of a table's cached rows a scan must read.
 *
 * The feed skips ranges of cached rows if the least and greatest value of a column show that no row
 * can pass a condition (feed/heap_skip.c).  That is so for most ranges outside of the condition if
 * rows lie in the order of the column, as times mostly do.  Core's statistics tell: the correlation
 * of values and places.
 */
#include "postgres.h"

#include <math.h>

#include "access/htup_details.h"
#include "access/stratnum.h"
#include "catalog/pg_statistic.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"
#include "utils/typcache.h"

#include "cache/cache.h"
#include "plan/group_query.h"
#include "spec.h"

/* From this correlation on, a column's values count as ordered by their places in the table. */
#define ORDERED_CORRELATION 0.99

/*
 * Returns the column of a condition "column operator value" with an operator of the btree order;
 * NULL for any other condition.
 */
static Var *
compared_column(Expr *clause, Index relid)
{
	OpExpr *op = (OpExpr *) clause;
	Var *var;
	Node *value;
	TypeCacheEntry *type;
	int strategy;

	if (!IsA(clause, OpExpr) || list_length(op->args) != 2)
		return NULL;
	var = linitial(op->args);
	value = lsecond(op->args);
	if (!IsA(var, Var))
	{
		var = lsecond(op->args);
		value = linitial(op->args);
	}
	if (!IsA(var, Var) || var->varno != relid || var->varattno <= 0 || contain_var_clause(value) ||
		contain_volatile_functions(value))
		return NULL;
	type = lookup_type_cache(var->vartype, TYPECACHE_BTREE_OPFAMILY);
	strategy =
		OidIsValid(type->btree_opf) ? get_op_opfamily_strategy(op->opno, type->btree_opf) : 0;
	return strategy >= BTLessStrategyNumber && strategy <= BTGreaterStrategyNumber ? var : NULL;
}

/* Returns whether rows lie in the order of a column whose values have bounds in the cache. */
static bool
is_ordered(PlannerInfo *root, Var *var)
{
	VariableStatData column;
	AttStatsSlot slot;
	bool ordered = false;
	int16 scale;

	if (spec_column_type(var->vartype, var->vartypmod, &scale) == COLUMN_DATUM)
		return false;
	examine_variable(root, (Node *) var, 0, &column);
	if (HeapTupleIsValid(column.statsTuple) &&
		get_attstatsslot(&slot, column.statsTuple, STATISTIC_KIND_CORRELATION, InvalidOid,
						 ATTSTATSSLOT_NUMBERS))
	{
		ordered = slot.nnumbers == 1 && fabsf(slot.numbers[0]) >= ORDERED_CORRELATION;
		free_attstatsslot(&slot);
	}
	ReleaseVariableStats(column);
	return ordered;
}

double
plan_read_share(PlannerInfo *root, RelOptInfo *rel)
{
	double edges = 2.0 * CACHE_RANGE_BLOCKS / Max(rel->pages, 1);
	double share = 1;
	ListCell *lc, *lc2;

	foreach (lc, rel->baserestrictinfo)
	{
		Var *var = compared_column(lfirst_node(RestrictInfo, lc)->clause, rel->relid);
		List *clauses = NIL;

		if (var == NULL || !is_ordered(root, var))
			continue;
		foreach (lc2, rel->baserestrictinfo)
		{
			Var *other = compared_column(lfirst_node(RestrictInfo, lc2)->clause, rel->relid);

			if (other && other->varattno == var->varattno)
				clauses = lappend(clauses, lfirst(lc2));
		}
		/* the ranges at both ends have other rows, too */
		share = Min(share, clauselist_selectivity(root, clauses, 0, JOIN_INNER, NULL) + edges);
	}
	return share;
}
