/*
 * plan.h
 *	  The planner's side of the custom scan, and what it tells the executor.
 */
#ifndef GPUAGG_PLAN_H
#define GPUAGG_PLAN_H

#include "postgres.h"

#include "nodes/plannodes.h"

#include "spec.h"

/*
 * The contents of CustomScan.custom_private, decoded.  custom_scan_tlist holds
 * the keys, then the aggregates, then GROUPING().  Inputs are the distinct expressions that
 * keys, arguments and filters need; each is a column of the child plan, or,
 * where it does not depend on the row, the next of the leading expressions of
 * custom_exprs.
 */
typedef struct GpuAggPlan
{
	int nkeys;
	int naggs;
	int ninputs;
	int nconsts;    /* leading expressions of custom_exprs; with nlimit or first_groups, LIMIT and
					   OFFSET follow, then direct arguments of aggregates */
	bool grouped;   /* equal keys arrive together */
	bool read_once; /* volatile functions: reading the input again would show */
	Bitmapset *outer_params; /* the executor's, with values of outer queries or of other parts of
								the query's FROM */
	bool guarded;            /* a policy or a security_barrier view may hide rows from the user */
	double est_rows;         /* of one participant */
	double est_groups;
	int *key_input;     /* [key] */
	Oid *key_eq;        /* [key] equality function */
	Oid *key_hash;      /* [key] hash function */
	Oid *key_collation; /* [key] */
	int *agg_filter;    /* [agg] input, or -1 */
	bool *agg_sorts;    /* [agg] its rows are sorted apart, by its ORDER BY */
	int **agg_args;     /* [agg][argument] input */
	int norder;
	int *order;        /* [order] input, descending?, nulls first? */
	int nlimit;        /* 0: no LIMIT, or none that chooses among groups */
	int *limit;        /* [sort key] column of custom_scan_tlist, descending?, nulls first? */
	bool first_groups; /* LIMIT wants so many groups, whichever they are */
	bool limit_ties;   /* groups that are equal in these are all wanted */
	int *input_resno;  /* [input] column of the child plan, or 0: a constant */
	int *input_scale;  /* [input] usual scale of a numeric, or -1; see AggSpec */
	int nsets;         /* GROUPING SETS; 0: all groups have all keys */
	KeySet *sets;
	int ngroupings;
	int **groupings;     /* [GROUPING()] its keys, the first one's bit highest */
	int *grouping_nkeys; /* [GROUPING()] */
} GpuAggPlan;

extern void plan_install_hooks(void);
extern GpuAggPlan *plan_decode(const CustomScan *cscan);

#endif /* GPUAGG_PLAN_H */
