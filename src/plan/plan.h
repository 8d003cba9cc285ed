/*
 * plan.h
 *	  The planner's side of the custom scan, and what it tells the executor.
 */
#ifndef GPUAGG_PLAN_H
#define GPUAGG_PLAN_H

#include "postgres.h"

#include "nodes/extensible.h"
#include "nodes/pathnodes.h"
#include "nodes/plannodes.h"

/*
 * The contents of CustomScan.custom_private, decoded.  custom_scan_tlist holds
 * the keys and then the aggregates.  Inputs are the distinct expressions that
 * keys, arguments and filters need; each is a column of the child plan, or,
 * where it does not depend on the row, the next of the leading expressions of
 * custom_exprs.
 */
typedef struct GpuAggPlan
{
	int			nkeys;
	int			naggs;
	int			ninputs;
	int			nconsts;		/* leading expressions of custom_exprs */
	bool		grouped;		/* equal keys arrive together */
	bool		read_once;		/* volatile functions: reading the input again would show */
	double		est_rows;		/* of one participant */
	double		est_groups;
	int		   *key_input;		/* [key] */
	Oid		   *key_eq;			/* [key] equality function */
	Oid		   *key_hash;		/* [key] hash function */
	Oid		   *key_collation;	/* [key] */
	int		   *agg_filter;		/* [agg] input, or -1 */
	int		  **agg_args;		/* [agg][argument] input */
	int			norder;
	int		   *order;			/* [order] input, descending?, nulls first? */
	int		   *input_resno;	/* [input] column of the child plan, or 0: a constant */
} GpuAggPlan;

extern void plan_install_hooks(void);
extern GpuAggPlan *plan_decode(const CustomScan *cscan);

/* In exec.c: how the executor makes a state of the plan node. */
extern const CustomScanMethods gpuagg_scan_methods;

/* ---- within the planner ------------------------------------------------ */

/* One query's aggregation, as the hook found it. */
typedef struct GroupQuery
{
	PlannerInfo *root;
	RelOptInfo *input_rel;
	RelOptInfo *grouped_rel;
	PathTarget *target;
	List	   *having;
	double		groups;			/* estimate */
	List	   *keys;			/* grouping expressions, then columns that depend on them */
	List	   *key_refs;		/* their sortgrouprefs, or 0 */
	List	   *key_eqops;
	List	   *key_inputs;
	List	   *aggs;			/* distinct Aggrefs of target list and HAVING */
	List	   *agg_inputs;		/* a list each: filter or -1, arguments */
	List	   *inputs;
	List	   *input_refs;
	List	   *order;			/* pathkeys of ORDER BY inside the aggregates, or NIL */
	Aggref	   *order_agg;		/* the aggregate whose order it is, */
	List	   *order_targets;	/* and its arguments, NULL where all filters exclude a row */
	List	   *order_inputs;	/* three a column, see GpuAggPlan; NIL if it has no codes */
} GroupQuery;

extern const CustomPathMethods gpuagg_path_methods;

/* A path's custom_private. */
extern List *plan_query_to_list(GroupQuery *query, double rows, bool grouped, bool sorts);
/* Is the input the same for all rows, and none of the keys? */
extern bool plan_input_is_constant(List *keys, Node *input);

/* In explain.c: remembers why a query was not taken, for EXPLAIN (VERBOSE). */
extern void explain_note_refusal(const char *why);
extern void explain_install_hooks(void);

#endif							/* GPUAGG_PLAN_H */
