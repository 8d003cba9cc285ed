/*
 * citus.h
 *	  Queries of tables that Citus distributes.
 */
#ifndef GPUAGG_CITUS_H
#define GPUAGG_CITUS_H

#include "postgres.h"

#include "nodes/parsenodes.h"

/* Is the query that is being planned one of a Citus table, for Citus's planner to distribute? */
extern bool citus_distributes(void);

/*
 * Is it a task of such a query, whose aggregates are to be taken as if gpuagg.replace_builtin was
 * on?
 */
extern bool citus_is_task(void);

/* Must they be taken, as gpuagg.require = 'require' says on the node that sent the task? */
extern bool citus_task_is_required(void);

/* Not where Citus is not loaded. */
extern void citus_install_hook(void);

#endif /* GPUAGG_CITUS_H */
