/*
 * top_rows.h
 *	  The custom scan that drops rows below window functions and DISTINCT ON: its paths, and the
 *	  plan that the executor gets.
 */
#ifndef GPUAGG_PLAN_TOP_ROWS_H
#define GPUAGG_PLAN_TOP_ROWS_H

#include "postgres.h"

#include "nodes/pathnodes.h"
#include "nodes/plannodes.h"

#include "groups/best_rows.h"

/* The name by which the scan is registered, and which EXPLAIN shows. */
#define TOP_ROWS_NAME "GpuAggTopRows"

/* The decoded contents of CustomScan.custom_private. Columns are those of the child, from 0. */
typedef struct TopRowsPlan
{
	BestKind kind;
	bool distinct; /* DISTINCT ON: there is no bound, one row of each group is needed */
	bool below;    /* the function must be less than the bound; false: at most the bound */
	bool guarded;  /* as GpuAggPlan.guarded */
	int nkeys;
	int *key_column; /* [key] */
	Oid *key_eq;     /* [key] equality function */
	Oid *key_hash;   /* [key] hash function */
	Oid *key_collation;
	int norder;
	int *order_column; /* [order] */
	bool *order_nulls_first;
	bool *order_reversed; /* by a "greater than" operator */
	bool *order_desc;     /* with codes only: by descending codes */
	bool *order_coded;    /* has 64-bit codes that compare as the order does */
	Oid *order_op;        /* [order] ordering operator */
	Oid *order_collation;
} TopRowsPlan;

/* Returns the decoded plan, in the current memory context. */
extern TopRowsPlan *top_rows_decode(const CustomScan *cscan);

/*
 * Add paths for window functions, and for DISTINCT ON, in which the custom scan drops rows.  They
 * do nothing for other queries, and record a reason if rows cannot be dropped.
 */
extern void top_rows_add_window_paths(PlannerInfo *root, RelOptInfo *input_rel,
									  RelOptInfo *output_rel);
extern void top_rows_add_distinct_paths(PlannerInfo *root, RelOptInfo *input_rel,
										RelOptInfo *output_rel);

#endif /* GPUAGG_PLAN_TOP_ROWS_H */
