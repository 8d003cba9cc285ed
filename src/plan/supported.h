/*
 * supported.h
 *	  Decides whether a query's aggregation can have a custom scan, and if not, gives the reason.
 *
 * Functions that return false set *why to a phrase without a full stop.
 */
#ifndef GPUAGG_SUPPORTED_H
#define GPUAGG_SUPPORTED_H

#include "postgres.h"

#include "nodes/pathnodes.h"

/* Returns whether one of these aggregates belongs to the extension. */
extern bool supported_any_ours(List *aggrefs);

/* Returns whether core's own aggregates can get a custom scan. */
extern bool supported_core_too(void);

/* Returns whether one of these aggregates is over DISTINCT values. */
extern bool supported_any_distinct(List *aggrefs);

/*
 * Returns whether one of these is an ordered-set aggregate, which needs all rows before its value.
 */
extern bool supported_any_ordered_set(List *aggrefs);

/* Returns whether grouping by `keys`, compared by the operators `eqops`, is supported. */
extern bool supported_query(List *keys, List *eqops, List *aggrefs, const char **why);

/* Returns whether these grouping sets, if any, are supported. */
extern bool supported_sets(List *sets, List *keys, const char **why);

/* Returns whether all keys can be hashed consistently with their equality operator. */
extern bool supported_keys(List *keys, List *eqops, const char **why);

/*
 * Returns whether the aggregate must get its rows in the order of its own ORDER BY.  (For DISTINCT,
 * the distinct values are sorted instead.)
 */
extern bool supported_orders_rows(const Aggref *aggref);

/*
 * Finds out whether one sort of the input serves the ORDER BY of all aggregates.  Then *order is
 * its pathkeys after those of the grouping keys, and *agg an aggregate with this order.  Otherwise
 * *order is NIL; and *apart is set if there are such aggregates: each sorts its own rows.
 */
extern void supported_order(PlannerInfo *root, List *aggrefs, List **order, Aggref **agg,
							bool *apart);

/*
 * Returns whether rows can be sorted by 64-bit codes of the expression.  Codes compare like the
 * default order of the type: sortop must be of that order, or of its reverse, which sets *desc.
 */
extern bool supported_codes(Node *expr, Oid sortop, bool *desc);

/* Returns whether several processes can aggregate privately and merge their groups. */
extern bool supported_parallel(List *aggrefs, const char **why);

/* Returns false if an aggregate of the extension's is used as a window function. */
extern bool supported_window(PlannerInfo *root, const char **why);

#endif /* GPUAGG_SUPPORTED_H */
