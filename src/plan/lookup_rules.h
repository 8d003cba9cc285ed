/*
 * lookup_rules.h
 *	  Which joins the heap feed can execute as lookups, and what they cost.
 */
#ifndef GPUAGG_LOOKUP_RULES_H
#define GPUAGG_LOOKUP_RULES_H

#include "postgres.h"

#include "nodes/pathnodes.h"

#include "analysis/analysis.h"

/* ---- lookup_rules.c ------------------------------------------------------------ */

/*
 * Returns whether nobody can notice when, and how often, a scan or join computes its columns: they
 * are columns of what it reads, or expressions that raise no error and call no user's function.
 * outer, inner: the targets of the sides of a join, or NULL
 */
extern bool plan_lookup_harmless_target(PlannerInfo *root, const List *exprs,
										const PathTarget *outer, const PathTarget *inner);
/* Returns whether a clause compares a value of one side with a value of the other one. */
extern bool plan_lookup_compares_sides(const RestrictInfo *rinfo, const RelOptInfo *outerrel,
									   const RelOptInfo *innerrel);
/* Returns whether core can hash a clause with its sides exchanged. */
extern bool plan_lookup_has_commutator(const RestrictInfo *rinfo);
/*
 * Returns why the feed cannot execute a join by a lookup with these keys, as far as its type and
 * clauses say; NULL if it can.  Sets *on if a condition beyond the keys says which matches count.
 */
extern const char *plan_lookup_unsupported_reason(PlannerInfo *root, const RelOptInfo *joinrel,
												  const RelOptInfo *outerrel, JoinType jointype,
												  List *restrictlist, List *hashclauses, bool *on);
/*
 * Returns whether a lookup finds at most one match that counts for an outer row.  on: a condition
 * beyond the keys says which matches count
 */
extern bool plan_lookup_has_one_match(JoinType jointype, bool inner_unique, bool on);
/*
 * Returns whether rows of an inner side fit into a lookup, with all columns.  Values that are not
 * passed by value are stored once.
 */
extern bool plan_lookup_fits(PlannerInfo *root, double rows, const PathTarget *target);
/*
 * Returns what can be noticed of the plan of an inner side, as far as the relation says.  The
 * executor looks again, at the plan.
 */
extern Notice plan_lookup_inner_notice(PlannerInfo *root, const RelOptInfo *rel);
/*
 * Returns whether the feed can look for a row of a scan before it builds lookups whose inner plans
 * may raise errors.
 */
extern bool plan_lookup_can_look_ahead(const Path *scan);
/* Returns whether the feed can scan the table, or the partitions, of a base relation. */
extern bool plan_lookup_fact_supported(PlannerInfo *root, RelOptInfo *rel);
/* Returns whether the feed can read this scan below a join; see heap_unsupported.c. */
extern bool plan_lookup_scan_supported(const Path *scan);
/*
 * Returns whether all keys are columns of the inner side, so that a feed of its own can read it
 * (heap_joins.c).
 */
extern bool plan_lookup_has_column_keys(const List *hashclauses, const RelOptInfo *innerrel);

/* ---- lookup_cost.c ------------------------------------------------------------- */

/* Returns the estimated number of matches of outer rows, as core's costsize.c does. */
extern double plan_lookup_matches(PlannerInfo *root, double outer_rows, const RelOptInfo *outerrel,
								  double inner_rows, const RelOptInfo *innerrel, List *hashclauses);
/*
 * Returns the cost of making a lookup of inner rows, whose plan costs `inner`, and of probing it
 * with outer rows, which have `matches` partners.
 */
extern Cost plan_lookup_cost(PlannerInfo *root, double outer_rows, double matches, Cost inner,
							 double inner_rows, List *restrictlist, List *hashclauses);

#endif /* GPUAGG_LOOKUP_RULES_H */
