/*
 * reasons.h
 *	  Reasons why a query was not taken: for EXPLAIN (VERBOSE), gpuagg_stats and the log.
 */
#ifndef GPUAGG_REASONS_H
#define GPUAGG_REASONS_H

#include "nodes/pathnodes.h"

/* While a query is planned: why the custom scan is not among its paths. */
extern void reasons_note(PlannerInfo *root, const char *why);

/*
 * An aggregation of so many rows, to this relation, has custom paths; and one of these was chosen.
 */
extern void reasons_note_offered(PlannerInfo *root, const RelOptInfo *rel, double rows);
extern void reasons_note_chosen(const RelOptInfo *rel);

extern void reasons_install_hooks(void);

#endif /* GPUAGG_REASONS_H */
