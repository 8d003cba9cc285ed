/*
 * supported.h
 *	  May a query's aggregation be taken by the custom scan, and if not, why.
 */
#ifndef GPUAGG_SUPPORTED_H
#define GPUAGG_SUPPORTED_H

#include "postgres.h"

#include "nodes/pathnodes.h"

/* Does any of these aggregates belong to the extension? */
extern bool supported_any_ours(List *aggrefs);

/* May core's own aggregates make a query one for the custom scan? */
extern bool supported_core_too(void);

/* Is any of them of DISTINCT values? */
extern bool supported_any_distinct(List *aggrefs);

/* Is one of them an ordered-set aggregate, whose values are known when all rows are? */
extern bool supported_any_ordered_set(List *aggrefs);

/*
 * May this grouping by `keys`, compared by `eqops`, be taken?  If not, *why is
 * the reason.
 */
extern bool supported_query(List *keys, List *eqops, List *aggrefs, const char **why);

/* May these sets of keys, if any, be taken? */
extern bool supported_sets(List *sets, List *keys, const char **why);

/* Have all keys hash functions that go with their equality? */
extern bool supported_keys(List *keys, List *eqops, const char **why);

/* Must rows be in the order of the aggregate's own ORDER BY? */
extern bool supported_orders_rows(const Aggref *aggref);

/*
 * May the aggregates' own ORDER BYs be served by one sort of the input?  *order is then its
 * pathkeys after those of the grouping keys, or NIL, and *agg the aggregate they are of.  Otherwise
 * *apart: each of these aggregates has its rows sorted.
 */
extern void supported_order(PlannerInfo *root, List *aggrefs, List **order, Aggref **agg,
							bool *apart);

/* May a feed sort by 64-bit codes of the expression?  *desc is set. */
extern bool supported_codes(Node *expr, Oid sortop, bool *desc);

/* May several processes aggregate privately and merge their groups? */
extern bool supported_parallel(List *aggrefs, const char **why);

/* False if one of the extension's aggregates is a window function. */
extern bool supported_window(PlannerInfo *root, const char **why);

#endif /* GPUAGG_SUPPORTED_H */
