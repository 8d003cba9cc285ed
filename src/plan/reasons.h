/*
 * reasons.h
 *	  Records why a query has no custom scan: for EXPLAIN (VERBOSE), gpuagg_stats and the log.
 */
#ifndef GPUAGG_REASONS_H
#define GPUAGG_REASONS_H

#include "nodes/pathnodes.h"

/*
 * Records why a query or subquery gets no custom path, while it is planned.  `why` is a phrase
 * without a full stop.  Raises an error with it if the custom scan is required.
 */
extern void reasons_reject(PlannerInfo *root, bool required, const char *why);

/*
 * Records that an aggregation of `rows` input rows, whose result is `rel`, has custom paths.  If
 * none is chosen, that is a reason: another plan was cheaper.
 */
extern void reasons_add_candidate(PlannerInfo *root, const RelOptInfo *rel, double rows);

/* Records that one of these paths has been chosen. */
extern void reasons_note_chosen(const RelOptInfo *rel);

/*
 * With true, no reason is recorded from now on, because a plan is made that is only compared with
 * another one.  Returns the value that was set before.
 */
extern bool reasons_pause(bool pause);

/*
 * Records that the plan that was made last before the pause, if it had a custom scan, was more
 * expensive than the one that was compared.
 */
extern void reasons_note_cheaper(int64 query_id);

/* Installs the hooks of the planner and of EXPLAIN. */
extern void reasons_install_hooks(void);

#endif /* GPUAGG_REASONS_H */
