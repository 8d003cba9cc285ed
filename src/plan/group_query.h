/*
 * group_query.h
 *	  The state of one aggregation that the planner's files share.
 *
 *	plan.c		the hook for aggregations, which uses all others
 *	eager.c		the hook for partial aggregates below joins
 *	top_rows.c	rows that are dropped below window functions and DISTINCT ON
 *	paths.c		the paths of an aggregation
 *	supported.c	whether the aggregation can have a custom scan
 *	inputs.c	expressions that it needs from the child plan
 *	dependent_keys.c	keys that are functions of other keys
 *	linear.c	sums that another sum yields
 *	sets.c		GROUPING SETS
 *	limit.c		ORDER BY ... LIMIT above the aggregation
 *	estimate.c	how many groups it will have
 *	cost.c		the cost of a path
 *	feed_cost.c	the cost of its scans if the heap feed reads them
 *	warm_cost.c	what joins cost less if all pages are in memory
 *	workers.c	the number of workers for a scan of cached columns
 *	ranges.c	which cached rows a scan must read
 *	resident.c	rows of a path that the GPU has cached
 *	lookup_joins.c, lookup_rules.c, lookup_cost.c	joins that the heap feed can execute as lookups
 *	custom.c	custom paths and plans as lists of nodes
 */
#ifndef GPUAGG_GROUP_QUERY_H
#define GPUAGG_GROUP_QUERY_H

#include "postgres.h"

#include "nodes/extensible.h"
#include "nodes/pathnodes.h"

/*
 * From this number of groups on, all participants of a parallel plan return groups; below it one
 * does.
 */
#define MANY_GROUPS 100000

/* One aggregation of a query, as the hook finds it. */
typedef struct GroupQuery
{
	PlannerInfo *root;
	RelOptInfo *input_rel;
	RelOptInfo *grouped_rel;
	PathTarget *target;
	bool partial;         /* partial aggregates below a join: results are transition values */
	bool parallel_unsafe; /* some expression cannot be evaluated in a worker */
	List *flags;          /* volatile, guarded: set with the first path */
	List *no_lookups;     /* why joins of the input are not lookups, as a String; NIL: no joins */
	List *having;
	double groups;  /* estimated number of groups */
	List *pathkeys; /* order of sorted input in which equal keys are adjacent; NIL: none */
	List *keys;     /* grouping expressions, then columns that depend on them */
	List *key_refs; /* sortgroupref of each key, or 0 */
	List *key_eqops;
	List *key_inputs;
	List *dropped;    /* keys that other keys determine: the inputs may not yield them */
	List *checks;     /* dependent keys that can fail: evaluated for each row, like keys */
	List *aggs;       /* distinct Aggrefs of target list and HAVING */
	List *agg_inputs; /* for each aggregate: input of its filter or -1, sorts its rows?, inputs of
						 its arguments */
	List *agg_linear; /* for each aggregate: the source of its argument, and three Consts as in
						 LinearArgument; NIL: the argument is its own source */
	List *inputs;
	List *input_refs;
	List *order;         /* pathkeys of ORDER BY inside the aggregates, or NIL */
	Aggref *order_agg;   /* an aggregate with this order */
	List *order_targets; /* its arguments, NULL for rows that all filters exclude */
	bool orders_apart;   /* each aggregate with an ORDER BY sorts its own rows */
	List *order_inputs;  /* three integers a column, see GpuAggPlan.order; NIL if a column has no
							codes */
	List *sets;          /* GROUPING SETS: lists of key numbers; NIL: none */
	List *set_groups;    /* estimated groups of each set, as Floats */
	List *common_keys;   /* the keys that are in all sets */
	List *groupings;     /* distinct GROUPING() of target list and HAVING */
	List *
		limit; /* limit_ties, then three integers a sort key, see GpuAggPlan.limit; NIL: no LIMIT */
	List *limit_exprs;   /* LIMIT and OFFSET; neither is NULL */
	double limit_groups; /* LIMIT plus OFFSET, or -1 if not known yet */
} GroupQuery;

/* paths.c */

/*
 * Returns whether an error must be raised if the custom scan cannot be used: by gpuagg.require, or
 * for a task of a Citus query that requires it.
 */
extern bool plan_is_required(void);
/*
 * Adds all custom paths of an aggregation.  If the custom scan is required, first removes core's
 * paths, other than those over a custom scan of partial aggregates.
 */
extern void plan_add_paths(GroupQuery *query);

/* custom.c */
extern const CustomPathMethods gpuagg_path_methods;
/* Returns whether anything in the query is volatile. */
extern bool plan_query_is_volatile(PlannerInfo *root);
/*
 * Returns whether there may be rows that only a policy or a security_barrier view hides from the
 * user.
 */
extern bool plan_query_is_guarded(PlannerInfo *root);
/* Members of EngineWork that the executor, which chooses the engine again, has from the planner. */
typedef struct DeviceEstimates
{
	double resident; /* plan_resident_share() */
	double scanned;
	double counted;
	Cost fallbacks;
} DeviceEstimates;

/* Adds these estimates to the list of plan_query_to_list(). */
extern void plan_list_device(List *list, const DeviceEstimates *device);
/* Returns the list for a path's custom_private, with all that the plan needs of the query. */
extern List *plan_query_to_list(GroupQuery *query, double rows, bool grouped, bool sorts);
/* Returns whether the input is the same for all rows and is not a key. */
extern bool plan_input_is_constant(List *keys, Node *input);

/* limit.c: finds a LIMIT that chooses among the groups; keys and aggregates must be set */
extern void plan_find_limit(GroupQuery *query, bool distinct);

/* feed_cost.c */

/* Returns the fraction of a table's blocks that the column cache serves to a scan of it. */
extern double plan_cached_share(PlannerInfo *root, RelOptInfo *rel);
/*
 * Sets the total cost of scans of tables that the heap feed reads.  Returns false if it cannot read
 * them.  joined: there are lookups above the scan or Append, so that the feed must read all of its
 * tables; else the executor may run some of them
 */
extern bool plan_feed_cost(PlannerInfo *root, Path *scan, bool joined, Cost *cost);

/* cost.c */

/* Returns the child's total cost, less what the heap feed saves if it can read the tables. */
extern Cost plan_child_cost(PlannerInfo *root, Path *child);
/* Returns the cost of exchanging groups in a parallel path. */
extern Cost plan_exchange_cost(GroupQuery *query, const Path *partial);
/*
 * Returns the share of the time of a scan of cached columns that its costs account for, from 0 to
 * 1. They leave out what misses of the processor's caches take, as core's costs do.  work: the cost
 * of the scan by one process
 */
extern double plan_cost_scale(GroupQuery *query, Cost work);
/* A group that is exchanged accounts for so many times its cost of the time, like 150 ns. */
#define EXCHANGE_SCALE 15.0
/* Returns whether rows that are sorted by the aggregates' order alone may be grouped by hashing. */
extern bool plan_hashes_ordered(GroupQuery *query);
/* Sets rows and costs of a path over this child. */
extern void plan_cost_path(GroupQuery *query, CustomPath *cpath, Path *child, bool grouped,
						   bool sorts);

/* warm_cost.c */

/*
 * Returns the parameters, known while the query is planned, for columns of outer queries or of
 * other FROM items that the query uses.  If there are any, it may be scanned many times.
 */
extern List *plan_outer_params(const PlannerInfo *root);
/* Returns the cost of starting the custom scan again if the query may be rescanned; else 0. */
extern Cost plan_rescan_cost(const PlannerInfo *root);

/*
 * Cost of a page that an index scan finds in memory.  Core expects to read it in random order
 * (random_page_cost, 4).
 *
 * Measured with 300,000 rows of 130 bytes: bitmap scans of 300, 3,000 and 5,000 rows, one to three
 * a page, take 0.35 us for a row and its page.  Core takes 45 ns for a row of a sequential scan,
 * which is priced at 0.0125; so a row with its page should be priced at 0.1.  A scan of a cached
 * column takes 3 ns a row and is priced at 0.003, which is three times too much by the same
 * measure.  So 0.3 would make both equally wrong.  This value is somewhat larger because pages may
 * also be on disk, and cached columns never are.
 */
#define WARM_PAGE_COST 0.5
/* The same, a little more than measured, to decide whether core's estimates are much too low. */
#define WARM_LEAST_PAGE_COST 0.15

/*
 * Returns the cost of a bitmap or index scan if all pages of the table are in memory and cost so
 * much; of one scan if it is the inner side of a nested loop.
 */
extern Cost plan_warm_cost(PlannerInfo *root, Path *path, Cost page_cost);
/* Returns the cost of a tree of joins that core's estimates of nested loops omit. */
extern Cost plan_omitted_cost(PlannerInfo *root, Path *path);
/*
 * Returns how much less a tree of joins, with what core's estimates omit, costs if all pages that
 * it reads are in memory.  fed: the heap feed executes it, and reads cached columns in place of
 * pages.  page_cost: of a page that an index leads to
 */
extern Cost plan_warm_saving(PlannerInfo *root, Path *path, bool fed, Cost page_cost);

/* workers.c */

/* Returns the cost of each worker of a path over this partial path; 0: core's costs suffice. */
extern Cost plan_worker_cost(PlannerInfo *root, const Path *partial);
/* Returns how many processes n workers and the leader count for. */
extern double plan_participants(int n);
/* Returns the cost of n workers, if `worker` is that of each. */
extern Cost plan_workers_cost(Cost worker, int n);
/*
 * Returns the number of workers, at least 1 and at most `most`, with which a scan takes the least
 * time.  work: its cost without workers.  worker: the cost of each worker.
 */
extern int plan_choose_workers(Cost work, Cost worker, int most);

/*
 * ranges.c: Returns the fraction of a table's cached rows that are in ranges which the conditions
 * do not exclude by bounds of ordered columns.
 */
extern double plan_read_share(PlannerInfo *root, RelOptInfo *rel);

/*
 * resident.c: Returns the fraction of a child's rows that the GPU can have cached: the child is
 * read by this process alone, and the column cache has its columns.  Sets *scanned to the rows of
 * the tables that are read for them.
 */
extern double plan_resident_share(GroupQuery *query, Path *child, double *scanned);
/*
 * resident.c: Returns whether the GPU can execute a join of cached rows: it finds few inner rows
 * for each, by integers, without other conditions that decide which rows match.  Whether there is
 * room for all keys is only known when the query runs.  matches: estimated inner rows for a row
 */
extern bool plan_resident_join_supported(JoinType jointype, double matches, const List *hashclauses,
										 const List *restrictlist);
/*
 * resident.c: Returns whether a relation with several matches for a row is a table with no more
 * than so many rows, those of the table that the GPU reads.  A larger one should be read by the
 * GPU itself.
 */
extern bool plan_resident_is_smaller(const RelOptInfo *inner, double tuples);

/* inputs.c */

/* Guards the ORDER BY of aggregates (`order_targets`). May set `orders_apart` instead. */
extern void plan_guard_order(GroupQuery *query);
/* Sets `inputs`, `key_inputs` and `agg_inputs`. */
extern void plan_collect_inputs(GroupQuery *query);
/* Sets `order_inputs` if a feed can sort by codes. */
extern void plan_collect_order_inputs(GroupQuery *query);
/* Returns a path that computes the inputs: `path` itself if its columns include them. */
extern Path *plan_path_of_inputs(GroupQuery *query, Path *path);

/* dependent_keys.c: drops keys that others determine; not with grouping sets. */
extern void plan_drop_dependent_keys(GroupQuery *query);
/* Returns the estimated number of groups by all keys of the query, the dropped ones among them. */
extern double plan_estimate_groups(const GroupQuery *query, double rows);

/*
 * linear.c: sets `agg_linear`.  Aggregates whose argument has a source read the source instead.
 */
extern void plan_find_linear(GroupQuery *query);

/* sets.c */

/* Sets the sets; needs the keys of GROUP BY. */
extern void plan_collect_sets(GroupQuery *query);
/* Adds the columns that depend on keys to all sets. */
extern void plan_complete_sets(GroupQuery *query);
/* Returns the number of sets that are made from rows: those not contained in others, or all. */
extern int plan_finest_sets(GroupQuery *query);
/* Estimates the groups of each set, and returns their sum. */
extern double plan_estimate_sets(GroupQuery *query, double rows);
/* Returns the numbers of the keys of each GROUPING(). */
extern List *plan_grouping_keys(List *groupings, List *key_refs);

/* eager.c: installs the hook for partial aggregates below joins. */
extern void eager_install_hook(void);

/* lookup_joins.c */

/* Installs the hook that looks for joins that the heap feed can execute as lookups. */
extern void lookup_joins_install_hook(void);
/* The reader of the fact table's rows. */
typedef enum LookupReader
{
	LOOKUPS_PROCESS,     /* this process alone */
	LOOKUPS_PARTICIPANT, /* all participants of a parallel plan, each a share of them */
	LOOKUPS_GPU          /* the GPU, which can have cached them */
} LookupReader;

/*
 * Returns the tree of hash joins for this join relation that costs least if the feed executes it
 * for this reader, or NULL.  Its target are the relation's columns before projection.
 */
extern Path *lookup_joins_path(PlannerInfo *root, RelOptInfo *rel, LookupReader reader);
/*
 * Returns why this join relation has no path of lookups, or why another one was chosen; NULL if the
 * relation is no join or lookups were not looked for.
 */
extern const char *lookup_joins_unsupported_reason(PlannerInfo *root, const RelOptInfo *rel);
/* Called when all paths of the query have been made. */
extern void lookup_joins_forget(PlannerInfo *root);

/* lookup_cost.c */

/*
 * Sets the cost of a tree of hash joins, perhaps below a projection, if the feed executes it.
 * Returns false if the path is none, or the feed cannot.
 */
extern bool lookup_joins_cost(PlannerInfo *root, Path *path, Cost *cost);
/* Returns the cost of the joins in inner sides of such a tree that the feed cannot execute. */
extern Cost lookup_joins_executed_cost(PlannerInfo *root, Path *path);
/* Returns the cost of making the lookups of such a tree; 0 for any other path. */
extern Cost lookup_joins_making_cost(PlannerInfo *root, Path *path);
/* Returns in which order core runs the joins of such a tree, see Feed.core_joins. */
extern List *lookup_joins_of_core(Path *path);

/* union.c */

/* Installs the planner hook that rewrites UNION. */
extern void union_install_hook(void);
/* Records a reason if the query has INTERSECT or EXCEPT; rel: the result of a set operation. */
extern void union_note_other(PlannerInfo *root, const RelOptInfo *rel);

/* foreign.c: installs the hook for partial aggregation by the servers of foreign partitions. */
extern void foreign_install_hook(void);

#endif /* GPUAGG_GROUP_QUERY_H */
