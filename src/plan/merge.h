/*
 * merge.h
 *	  Aggregates of distributed tables as calls of gpuagg_merge.
 */
#ifndef GPUAGG_MERGE_H
#define GPUAGG_MERGE_H

#include "postgres.h"

#include "nodes/parsenodes.h"

/* Does Citus compute this aggregate in parts? */
extern bool merge_has_parts(Oid agg);

/*
 * Replaces the aggregates of a query that is to be distributed, and of its subqueries, whose states
 * cannot travel, by expressions with gpuagg_merge, where all aggregates of the same level can then
 * be computed in parts.  Returns the query, changed in place.
 */
extern void merge_rewrite(Query *query);

/* The reverse, for the tasks of such a query that have whole groups: they need no state. */
extern void merge_restore(Query *query);

#endif /* GPUAGG_MERGE_H */
