/*
 * plan.h
 *	  The planner's side of the custom scan, and the plan that the executor gets.
 */
#ifndef GPUAGG_PLAN_H
#define GPUAGG_PLAN_H

#include "postgres.h"

#include "nodes/plannodes.h"

#include "aggregates/aggmap.h"
#include "spec.h"

/*
 * The decoded contents of CustomScan.custom_private.
 *
 * custom_scan_tlist has the keys, then the aggregates, then GROUPING().  Inputs are the distinct
 * expressions that keys, arguments and filters need.  Each input is a column of the child plan or,
 * if it is the same for all rows, the next of the leading expressions of custom_exprs.
 */
typedef struct GpuAggPlan
{
	int nkeys;
	int naggs;
	int ninputs;
	int nconsts;  /* number of leading expressions in custom_exprs; after them come LIMIT and OFFSET
					 (with nlimit or first_groups), and the direct arguments of aggregates */
	bool grouped; /* rows with equal keys are adjacent */
	bool read_once;          /* there are volatile functions: the input cannot be read twice */
	Bitmapset *outer_params; /* the executor's parameters for values of outer queries or of other
								FROM items */
	bool guarded;            /* a policy or a security_barrier view may hide rows from the user */
	double est_rows;         /* estimate for one participant */
	double est_groups;
	double resident;    /* fraction of the rows that a GPU can have cached, */
	double scanned;     /* and rows of tables that it reads for them */
	double counted;     /* counted values that it returns, see EngineWork */
	Cost fallbacks;     /* of calls of transition functions for a row */
	int *key_input;     /* [key] input */
	Oid *key_eq;        /* [key] equality function */
	Oid *key_hash;      /* [key] hash function */
	Oid *key_collation; /* [key] collation */
	int *agg_filter;    /* [agg] input of its FILTER, or -1 */
	bool *agg_sorts;    /* [agg] sorts its rows by its own ORDER BY */
	int **agg_args;     /* [agg][argument] input */
	LinearArgument *
		*agg_linear; /* [agg] how its argument depends on the input; NULL: it is equal */
	int norder;
	int *order; /* [order] three integers: input, descending?, nulls first? */
	int nlimit; /* 0: no LIMIT, or a LIMIT that does not choose among groups */
	int *limit; /* [sort key] three integers: column of custom_scan_tlist, descending?, nulls first?
				 */
	bool first_groups;      /* the LIMIT takes any groups */
	bool limit_ties;        /* also return all groups that are equal in the sort keys */
	int *input_resno;       /* [input] column of the child plan; 0: constant */
	int *input_scale;       /* [input] usual scale of a numeric, or -1; see AggSpec */
	const char *no_lookups; /* why joins of the child are not lookups; NULL: there are none */
	List *core_joins;       /* the order in which core runs the joins, see Feed */
	int nsets;              /* number of GROUPING SETS; 0: all groups have all keys */
	KeySet *sets;
	int ngroupings;
	int **groupings;     /* [GROUPING()] its keys; the first is the highest bit */
	int *grouping_nkeys; /* [GROUPING()] number of its keys */
} GpuAggPlan;

/* Installs all hooks of this folder. */
extern void plan_install_hooks(void);
/* Returns the decoded plan, in the current memory context. */
extern GpuAggPlan *plan_decode(const CustomScan *cscan);

#endif /* GPUAGG_PLAN_H */
