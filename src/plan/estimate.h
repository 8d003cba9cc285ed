/*
 * estimate.h
 *	  How many groups a query will have.
 */
#ifndef GPUAGG_ESTIMATE_H
#define GPUAGG_ESTIMATE_H

#include "postgres.h"

#include "nodes/pathnodes.h"

/* Of `rows` rows by these keys; at least 1. */
extern double estimate_groups(PlannerInfo *root, List *keys, double rows);

#endif							/* GPUAGG_ESTIMATE_H */
