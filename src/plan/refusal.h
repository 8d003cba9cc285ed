/*
 * refusal.h
 *	  Reasons why a query was not taken: for EXPLAIN (VERBOSE), gpuagg_stats and the log.
 */
#ifndef GPUAGG_REFUSAL_H
#define GPUAGG_REFUSAL_H

#include "nodes/pathnodes.h"

/* While a query is planned: why the custom scan is not among its paths. */
extern void refusal_note(PlannerInfo *root, const char *why);

/*
 * An aggregation of so many rows, to this relation, has custom paths; and one of these was chosen.
 */
extern void refusal_offered(PlannerInfo *root, const RelOptInfo *rel, double rows);
extern void refusal_chosen(const RelOptInfo *rel);

extern void refusal_install_hooks(void);

#endif /* GPUAGG_REFUSAL_H */
