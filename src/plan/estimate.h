/*
 * estimate.h
 *	  How many groups a query will have, and which scale its numerics.
 */
#ifndef GPUAGG_ESTIMATE_H
#define GPUAGG_ESTIMATE_H

#include "postgres.h"

#include "nodes/pathnodes.h"

/* Of `rows` rows by these keys; at least 1. */
extern double estimate_groups(PlannerInfo *root, List *keys, double rows);
/*
 * The display scale that most values of a numeric have, by its column's statistics; -1: no such
 * scale is known.
 */
extern int estimate_scale(PlannerInfo *root, Node *expr);

#endif /* GPUAGG_ESTIMATE_H */
