/*
 * estimate.h
 *	  Estimates the number of groups of a query, and the usual scale of its numerics.
 */
#ifndef GPUAGG_ESTIMATE_H
#define GPUAGG_ESTIMATE_H

#include "postgres.h"

#include "nodes/pathnodes.h"

/* Returns the estimated number of groups of `rows` rows by these keys; at least 1. */
extern double estimate_groups(PlannerInfo *root, List *keys, double rows);
/*
 * Returns the display scale that most values of a numeric have, by its column's statistics; -1 if
 * no such scale is known.
 */
extern int estimate_scale(PlannerInfo *root, Node *expr);

#endif /* GPUAGG_ESTIMATE_H */
