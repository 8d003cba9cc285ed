/*
 * group_query.h
 *	  A query's aggregation, as the files of the planner's side share it.
 *
 * supported.c	may it be taken
 * estimate.c	how many groups it will have
 * custom.c		custom paths and plans as lists of nodes
 * limit.c		ORDER BY ... LIMIT above the aggregation
 * cost.c		what a path costs
 * sets.c		GROUPING SETS
 * plan.c		the hook, which uses all of these
 */
#ifndef GPUAGG_GROUP_QUERY_H
#define GPUAGG_GROUP_QUERY_H

#include "postgres.h"

#include "nodes/extensible.h"
#include "nodes/pathnodes.h"

/* One query's aggregation, as the hook found it. */
typedef struct GroupQuery
{
	PlannerInfo *root;
	RelOptInfo *input_rel;
	RelOptInfo *grouped_rel;
	PathTarget *target;
	List *having;
	double groups;  /* estimate */
	List *pathkeys; /* order of sorted input whose equal keys lie together; NIL: there is none */
	List *keys;     /* grouping expressions, then columns that depend on them */
	List *key_refs; /* their sortgrouprefs, or 0 */
	List *key_eqops;
	List *key_inputs;
	List *aggs;       /* distinct Aggrefs of target list and HAVING */
	List *agg_inputs; /* a list each: filter or -1, arguments */
	List *inputs;
	List *input_refs;
	List *order;         /* pathkeys of ORDER BY inside the aggregates, or NIL */
	Aggref *order_agg;   /* the aggregate whose order it is, */
	List *order_targets; /* and its arguments, NULL where all filters exclude a row */
	bool orders_apart;   /* aggregates with an ORDER BY sort their rows themselves */
	List *order_inputs;  /* three a column, see GpuAggPlan; NIL if it has no codes */
	List *sets;          /* GROUPING SETS: lists of numbers of keys; NIL: there are none */
	List *set_groups;    /* estimates, as Floats */
	List *common_keys;   /* those of the keys that are in all sets */
	List *groupings;     /* distinct GROUPING() of target list and HAVING */
	List *limit;         /* limit_ties, then three a sort key, see GpuAggPlan; NIL: no LIMIT */
	List *limit_exprs;   /* LIMIT and OFFSET, neither NULL */
	double limit_groups; /* their sum, if it is known; or -1 */
} GroupQuery;

/* custom.c */
extern const CustomPathMethods gpuagg_path_methods;
/* A path's custom_private. */
extern List *plan_query_to_list(GroupQuery *query, double rows, bool grouped, bool sorts);
/*
 * While the query is planned: parameters for columns of outer queries, or of what is beside it in
 * FROM, that it or they use.  If there are any, it may be scanned many times.
 */
extern List *plan_outer_params(const PlannerInfo *root);
/* Is the input the same for all rows, and none of the keys? */
extern bool plan_input_is_constant(List *keys, Node *input);

/* limit.c: finds the LIMIT that chooses among the groups; keys and aggregates are known */
extern void plan_find_limit(GroupQuery *query, bool distinct);

/* cost.c: the share of a table's blocks that the column cache serves to a scan of it */
extern double plan_cached_share(PlannerInfo *root, RelOptInfo *rel);
/* The cost of a bitmap or index scan if all pages of the table are in memory. */
extern Cost plan_warm_cost(PlannerInfo *root, Path *path);
/* What a parallel path adds. */
extern Cost plan_exchange_cost(GroupQuery *query);
/* May rows that are sorted by the aggregates' order alone be grouped by hashing? */
extern bool plan_hashes_ordered(GroupQuery *query);
/* Sets rows and costs of a path over this child. */
extern void plan_cost_path(GroupQuery *query, CustomPath *cpath, Path *child, bool grouped,
						   bool sorts);

/*
 * resident.c: the share of the rows of a child, read by this process alone, of which the GPU can
 * keep copies, as the column cache has their columns.
 */
extern double plan_resident_share(GroupQuery *query, Path *child);

/* sets.c */

/* The sets, once the keys of GROUP BY are there. */
extern void plan_collect_sets(GroupQuery *query);
/* Adds the columns that depend on keys, once they are there, to all sets. */
extern void plan_complete_sets(GroupQuery *query);
/* How many are made from rows: those that are not part of others, or all? */
extern int plan_finest_sets(GroupQuery *query);
/* Estimates the groups of each set, and of all together. */
extern double plan_estimate_sets(GroupQuery *query, double rows);
/* For each GROUPING() the numbers of its keys. */
extern List *plan_grouping_keys(List *groupings, List *key_refs);

/* union.c */

/* Installs the planner hook that rewrites UNION. */
extern void union_install_hook(void);
/* Notes that INTERSECT and EXCEPT are not supported; rel: the result of a set operation. */
extern void union_note_other(PlannerInfo *root, const RelOptInfo *rel);

/* foreign.c: installs the hook for partial aggregation by the servers of foreign partitions. */
extern void foreign_install_hook(void);

#endif /* GPUAGG_GROUP_QUERY_H */
