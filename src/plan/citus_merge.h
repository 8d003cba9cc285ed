/*
 * citus_merge.h
 *	  Rewrites aggregates over distributed tables as calls of gpuagg_merge.
 */
#ifndef GPUAGG_CITUS_MERGE_H
#define GPUAGG_CITUS_MERGE_H

#include "postgres.h"

#include "nodes/parsenodes.h"

/* Returns whether Citus computes this aggregate in parts. */
extern bool merge_has_parts(Oid agg);

/*
 * Changes a query that Citus will distribute, in place: aggregates whose states cannot be sent
 * become expressions with gpuagg_merge, if then all aggregates of the same query level can be
 * computed in parts.  Includes subqueries.
 */
extern void merge_rewrite(Query *query);

/* The reverse, for tasks of such a query that have whole groups and need no states. */
extern void merge_restore(Query *query);

#endif /* GPUAGG_CITUS_MERGE_H */
