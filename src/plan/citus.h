/*
 * citus.h
 *	  Queries of tables that Citus distributes.
 */
#ifndef GPUAGG_CITUS_H
#define GPUAGG_CITUS_H

#include "postgres.h"

#include "nodes/parsenodes.h"

/*
 * Returns whether the query that is being planned is one of a Citus table, which Citus's planner
 * distributes.
 */
extern bool citus_distributes(void);

/*
 * Returns whether the query is a task of such a query whose aggregates get a custom scan as with
 * gpuagg.replace_builtin.
 */
extern bool citus_is_task(void);

/*
 * Returns whether the task must have a custom scan: gpuagg.require was 'require' on the node that
 * sent it.
 */
extern bool citus_task_is_required(void);

/* Installs the planner hook; does nothing if Citus is not loaded. */
extern void citus_install_hook(void);

#endif /* GPUAGG_CITUS_H */
