/*
 * set_operations.h
 *	  What union.c and intersect.c share: both change a query with a set operation to one that
 *	  groups a subquery.
 */
#ifndef GPUAGG_PLAN_SET_OPERATIONS_H
#define GPUAGG_PLAN_SET_OPERATIONS_H

#include "postgres.h"

#include "nodes/parsenodes.h"
#include "nodes/pathnodes.h"

/*
 * Returns target entries of an outer query for the columns of the inner one, with the references
 * that ORDER BY uses.  Each has a reference.
 */
extern List *set_operation_targets(const Query *inner);
/* Returns a set operation's grouping clauses with references to these target entries. */
extern List *set_operation_clauses(const List *clauses, const List *targets);
/* Returns a range table entry for a subquery. */
extern RangeTblEntry *set_operation_entry(Query *subquery);
/*
 * Returns a query that has all columns of `inner`, and takes its ORDER BY and LIMIT.  It selects
 * from nothing yet.
 */
extern Query *set_operation_outer(Query *inner);
/* Makes `inner` the subquery from which `outer` selects. */
extern void set_operation_nest(Query *outer, Query *inner);

/* ---- intersect.c ---- */

/*
 * Changes an INTERSECT or EXCEPT of two queries, in place, to a GROUP BY over their UNION ALL.
 */
extern void intersect_rewrite(Query *query);
/* Corrects estimated rows of a query that intersect_rewrite() has made, after UPPERREL_FINAL. */
extern void intersect_correct_rows(PlannerInfo *root, RelOptInfo *final_rel);

#endif /* GPUAGG_PLAN_SET_OPERATIONS_H */
