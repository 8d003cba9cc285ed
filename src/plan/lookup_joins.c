/*
 * lookup_joins.c
 *	  Finds trees of hash joins that the heap feed can execute as lookups.
 *
 * A lookup join finds the inner rows for an outer row by the equality of keys.  The heap
 * feed can execute a tree of them below an aggregation: the innermost outer side scans one table,
 * the fact table.  Each inner side is a plan of its own, which runs once.  Its rows become a
 * lookup, which is probed with vectors of fact rows.  Such a tree is called a chain here.
 *
 * Core prices hash joins for its own executor, and may prefer other join methods and join orders.
 * So the set_join_pathlist_hook looks for the chain of each join relation that costs least with the
 * feed: one for a single process, one for participants of a parallel plan, and one that the GPU can
 * execute if the fact table's columns are cached.  Chains are not
 * added to the paths of the join relation, so that core's choice does not change.  They are kept in
 * a table of the PlannerInfo, as what is needed to make paths; paths are made only for an
 * aggregation of the join relation (paths.c).
 *
 * An inner side may be a chain itself, or a scan: a feed of its own reads it, if the keys are
 * columns.  So the path that costs least is chosen by the feed's costs, too.
 *
 * Nothing is collected for queries without an aggregation that a custom scan could execute.
 *
 * GEQO joins the tables in many orders (tours) to compare their costs, each time in a memory
 * context that it deletes.  Then it joins them in the best order in the planner's context.  Only
 * that time chains are looked for, so each join relation in the table lives as long as the
 * PlannerInfo.
 *
 * If a join relation has no chain, EXPLAIN (VERBOSE) shows why.  Each call of the hook for it may
 * have another reason; the one that came closest to a chain is kept.
 */
#include "postgres.h"

#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/planmain.h"
#include "parser/parsetree.h"
#include "common/hashfn.h"
#include "utils/memutils.h"

#include "common/compat.h"
#include "engines/engines.h"
#include "plan/group_query.h"
#include "plan/lookup_rules.h"
#include "plan/supported.h"
#include "settings.h"

/* Relations for which a table has room at first. */
#define REL_TABLE_SIZE 64

/*
 * A chain: the scan of a fact table, or a join of a chain with an inner path.  The members after
 * `harmless` are those of a join.
 */
typedef struct LookupChain
{
	Path *path;    /* NULL: the path of the join is not made yet */
	double rows;   /* estimated rows, per participant */
	Cost cost;     /* total cost if the feed executes it */
	bool harmless; /* what it computes for the joins above cannot raise errors */
	bool parallel_safe;
	struct LookupChain *outer;
	Path *inner; /* NULL: the path of inner_chain, which is not made yet */
	struct LookupChain *inner_chain;
	RelOptInfo *joinrel;
	PathTarget *target; /* the columns of the join relation; the planner replaces them later */
	JoinType jointype;
	List *hashclauses;
	bool proved; /* that there is at most one inner row was proved here, not by core */
	/* this join or one below may have several matches, of which a condition counts some */
	bool settles;
	JoinPathExtraData extra;
	SpecialJoinInfo sjinfo; /* extra.sjinfo may be on the planner's stack */
} LookupChain;

/* How close a call of the hook came to a chain, when it had to give up. */
typedef enum Progress
{
	NO_CALL,
	INNER_TOO_LARGE,
	NO_KEY,
	UNSUPPORTED,
	NO_OUTER_CHAIN
} Progress;

/* What is known about a base or join relation. */
typedef struct LookupRel
{
	/*
	 * Base relations of which each row yields at most one row of the relation, and each row of the
	 * relation comes from one.
	 */
	Relids rows_of;
	bool measured; /* whether it fits has been determined */
	bool fits;     /* its rows fit into a lookup */
	bool examined; /* `notice` has been determined: */
	Notice notice; /* what can be noticed of its plan */
	bool scanned;  /* scans of a base relation have been looked for */
	bool priced;   /* `omitted` has been computed: */
	Cost omitted;  /* of core's cheapest path; see plan_omitted_cost() */
	LookupChain *serial;
	LookupChain *partial;
	LookupChain *resident; /* the GPU can have cached the columns of the fact table */
	Progress progress;     /* without a chain: of the call that has come closest to one, */
	const char *why;       /* and why it had to give up */
} LookupRel;

/* The inner side of a join: a path of core's, or else a chain. */
typedef struct InnerSide
{
	Path *path;
	LookupChain *chain;
	double rows;
	Cost cost;
} InnerSide;

/* An element of the table of relations. */
typedef struct LookupRelEntry
{
	RelOptInfo *rel;
	LookupRel *known;
	char status; /* used by simplehash.h */
} LookupRelEntry;

static inline uint32
hash_pointer(const void *pointer)
{
	return murmurhash32((uint32) ((uintptr_t) pointer >> 3));
}

#define SH_PREFIX rel_table
#define SH_ELEMENT_TYPE LookupRelEntry
#define SH_KEY_TYPE RelOptInfo *
#define SH_KEY rel
#define SH_HASH_KEY(table, key) hash_pointer(key)
#define SH_EQUAL(table, a, b) ((a) == (b))
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

/* The table of a PlannerInfo, allocated in its planner_cxt. */
typedef struct LookupState
{
	struct LookupState *next;
	PlannerInfo *root;
	bool wanted;          /* the query has an aggregation that a custom scan could execute */
	rel_table_hash *rels; /* NULL: not wanted */
	MemoryContextCallback callback;
} LookupState;

/* One call of the hook. */
typedef struct JoinCall
{
	PlannerInfo *root;
	RelOptInfo *joinrel;
	RelOptInfo *outerrel;
	RelOptInfo *innerrel;
	JoinType jointype;
	JoinPathExtraData *extra;
	List *hashclauses;
	bool proved; /* see LookupChain */
	bool on;     /* a condition beyond the keys says which matches count */
	bool unique; /* there is at most one match that counts for an outer row */
} JoinCall;

static set_join_pathlist_hook_type prev_set_join_pathlist_hook;

/* The tables of the queries that are being planned, the latest first. */
static LookupState *states = NULL;

/* ---- tables of chains ---------------------------------------------------- */

/* Removes a table from the list, if it is still there. */
static void
unlink_state(void *arg)
{
	for (LookupState **link = &states; *link != NULL; link = &(*link)->next)
		if (*link == arg)
		{
			*link = (*link)->next;
			return;
		}
}

static LookupState *
find_state(const PlannerInfo *root)
{
	LookupState *state = states;

	while (state && state->root != root)
		state = state->next;
	return state;
}

/* Walker: returns true at an aggregate of the extension. */
static bool
has_own_aggregate(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Aggref) && supported_any_ours(list_make1(node)))
		return true;
	return expression_tree_walker(node, has_own_aggregate, context);
}

/* Returns whether the query has an aggregation at all, as the first and cheapest test. */
static bool
may_be_wanted(const PlannerInfo *root)
{
	const Query *parse = root->parse;

	return gpuagg_enabled && gpuagg_feed != GPUAGG_FEED_TUPLES && gpuagg_require != GPUAGG_FORBID &&
		!parse->hasTargetSRFs &&
		(parse->hasAggs || parse->groupClause != NIL || parse->groupingSets != NIL ||
		 (parse->distinctClause != NIL && !parse->hasDistinctOn));
}

/* Returns the table of the query, or NULL if it has no aggregation that could be executed. */
static LookupState *
find_or_make_state(PlannerInfo *root)
{
	LookupState *state = find_state(root);

	if (state == NULL)
	{
		state = MemoryContextAllocZero(root->planner_cxt, sizeof(LookupState));
		state->root = root;
		state->wanted = supported_core_too() ||
			has_own_aggregate((Node *) root->processed_tlist, NULL) ||
			has_own_aggregate(root->parse->havingQual, NULL);
		if (state->wanted)
			state->rels = rel_table_create(root->planner_cxt, REL_TABLE_SIZE, NULL);
		state->callback.func = unlink_state;
		state->callback.arg = state;
		MemoryContextRegisterResetCallback(root->planner_cxt, &state->callback);
		state->next = states;
		states = state;
	}
	return state->wanted ? state : NULL;
}

void
lookup_joins_forget(PlannerInfo *root)
{
	LookupState *state = find_state(root);

	if (state)
		unlink_state(state);
}

/* Returns what is known about a relation; makes an entry if there is none. */
static LookupRel *
find_or_make_rel(LookupState *state, RelOptInfo *rel)
{
	bool found;
	LookupRelEntry *entry = rel_table_insert(state->rels, rel, &found);

	if (!found)
	{
		entry->known = palloc0(sizeof(LookupRel));
		if (rel->reloptkind == RELOPT_BASEREL)
			entry->known->rows_of = rel->relids;
	}
	return entry->known;
}

/* Returns whether the rows of a relation fit into a lookup. */
static bool
fits(PlannerInfo *root, const RelOptInfo *rel, LookupRel *known)
{
	if (!known->measured)
		known->fits = plan_lookup_fits(root, rel->rows, rel->reltarget);
	known->measured = true;
	return known->fits;
}

/* Returns what can be noticed of the plan of a relation. */
static Notice
notice_of(PlannerInfo *root, const RelOptInfo *rel, LookupRel *known)
{
	if (!known->examined)
		known->notice = plan_lookup_inner_notice(root, rel);
	known->examined = true;
	return known->notice;
}

/* ---- the hook -------------------------------------------------------------- */

/* Takes a scan of the fact table as its chain if it costs less than the one before. */
static void
offer_scan(PlannerInfo *root, LookupChain **best, Path *scan)
{
	Cost cost;

	if (scan->param_info != NULL || !plan_lookup_scan_supported(scan) ||
		(*best && !compat_is_as_enabled(scan, (*best)->path)) ||
		!plan_feed_cost(root, scan, true, &cost))
		return;
	if (*best && cost >= (*best)->cost && compat_is_as_enabled((*best)->path, scan))
		return;
	if (*best == NULL)
		*best = palloc0(sizeof(LookupChain));
	(*best)->path = scan;
	(*best)->rows = scan->rows;
	(*best)->cost = cost;
	(*best)->harmless = true;
	(*best)->parallel_safe = scan->parallel_safe;
}

/*
 * Looks for the scans of a base relation that may be a fact table.  Core may have dropped its
 * sequential scan in favor of a parallel one, or of an index although the columns are cached.
 */
static void
find_scans(PlannerInfo *root, RelOptInfo *rel, LookupRel *known)
{
	RangeTblEntry *rte;
	bool sequential = false;
	ListCell *lc;

	if (known->scanned)
		return;
	known->scanned = true;
	if (!plan_lookup_fact_supported(root, rel) ||
		!plan_lookup_harmless_target(root, rel->reltarget->exprs, NULL, NULL))
		return;
	foreach (lc, rel->pathlist)
	{
		sequential |= ((Path *) lfirst(lc))->pathtype == T_SeqScan;
		offer_scan(root, &known->serial, lfirst(lc));
	}
	rte = planner_rt_fetch(rel->relid, root);
	if (!sequential && !rte->inh && rte->relkind == RELKIND_RELATION && rte->tablesample == NULL)
		offer_scan(root, &known->serial, create_seqscan_path(root, rel, NULL, 0));
	foreach (lc, rel->partial_pathlist)
		offer_scan(root, &known->partial, lfirst(lc));
	if (engines_candidate()->take_resident && known->serial &&
		known->serial->path->pathtype == T_SeqScan && plan_cached_share(root, rel) > 0)
		known->resident = known->serial;
}

/* Returns the clauses by which core can hash the join, as hash_inner_and_outer() does. */
static List *
find_hash_clauses(const JoinCall *call)
{
	List *result = NIL;
	ListCell *lc;

	foreach (lc, call->extra->restrictlist)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);

		if (!OidIsValid(rinfo->hashjoinoperator) ||
			!plan_lookup_compares_sides(rinfo, call->outerrel, call->innerrel) ||
			(IS_OUTER_JOIN(call->jointype) && RINFO_IS_PUSHED_DOWN(rinfo, call->joinrel->relids)))
			continue;
		/* the outer value will be on the left */
		if (!bms_is_subset(rinfo->left_relids, call->outerrel->relids) &&
			!plan_lookup_has_commutator(rinfo))
			continue;
		result = lappend(result, rinfo);
	}
	return result;
}

/*
 * Returns whether an inner join relation has at most one row for an outer one.  Core proves this
 * only of base relations.  It follows if the join relation has at most one row for each row of a
 * base relation that core can prove it of, as the join of a dimension with dimensions of its own.
 */
static bool
is_inner_join_unique(const JoinCall *call, const LookupRel *inner)
{
	bool unique = false;
	int relid = -1;

	while (!unique && (relid = bms_next_member(inner->rows_of, relid)) >= 0)
		unique = innerrel_is_unique(call->root, call->joinrel->relids, call->outerrel->relids,
									find_base_rel(call->root, relid), call->jointype,
									call->hashclauses, false);
	return unique;
}

/* Returns the cost of core's path of a relation, with what core's estimate omits. */
static Cost
core_cost(PlannerInfo *root, const RelOptInfo *rel, LookupRel *known, Path *path)
{
	if (path != rel->cheapest_total_path)
		return path->total_cost + plan_omitted_cost(root, path);
	if (!known->priced)
		known->omitted = plan_omitted_cost(root, path);
	known->priced = true;
	return path->total_cost + known->omitted;
}

/*
 * Finds the inner side that costs least: core's path, or a chain that a feed of its own reads.
 * A path of core's has core's cost even if a feed can read it: then the chain costs no more than
 * that feed.  Returns false if there is none.  safe: participants of a parallel plan run it
 */
static bool
find_inner(const JoinCall *call, LookupRel *known, bool safe, InnerSide *side)
{
	RelOptInfo *rel = call->innerrel;
	LookupChain *chain = known->serial;
	bool feeds = plan_lookup_has_column_keys(call->hashclauses, rel);

	side->path = rel->cheapest_total_path;
	if (safe && !side->path->parallel_safe)
		side->path = get_cheapest_parallel_safe_total_inner(rel->pathlist);
	side->chain = NULL;
	if (side->path && side->path->param_info == NULL)
	{
		side->cost = core_cost(call->root, rel, known, side->path);
		side->rows = side->path->rows;
	}
	else
		side->path = NULL;
	if (feeds && chain && chain->harmless && (chain->parallel_safe || !safe) &&
		(side->path == NULL || chain->cost < side->cost))
	{
		side->path = NULL;
		side->chain = chain;
		side->cost = chain->cost;
		side->rows = chain->rows;
	}
	return side->path || side->chain;
}

/* Returns why a chain cannot be the outer side of a lookup; NULL if it can. */
static const char *
chain_unsupported_reason(const JoinCall *call, const LookupChain *outer)
{
	if (outer == NULL)
		return "the outer side of the join is not a table that the heap feed can scan";
	if (!outer->harmless)
		return "an expression below the join may raise an error or calls a user's function";
	if (outer->settles && !call->unique)
		return "rows may find several partners above a join whose condition says which partners "
			   "count";
	return NULL;
}

/* Returns the scan of a chain's fact table. */
static const Path *
fact_scan(const LookupChain *chain)
{
	while (chain->outer != NULL)
		chain = chain->outer;
	return chain->path;
}

/* Returns the estimated number of joined rows. */
static double
count_matches(const JoinCall *call, const LookupChain *outer, const InnerSide *inner)
{
	return call->unique ? outer->rows :
						  plan_lookup_matches(call->root, outer->rows, call->outerrel, inner->rows,
											  call->innerrel, call->hashclauses);
}

/*
 * Returns the cost of a chain and a lookup of an inner side; -1 if there is no such join, or if it
 * costs no less than the best one.
 */
static Cost
extended_cost(const JoinCall *call, const LookupChain *outer, const InnerSide *inner,
			  const LookupChain *best)
{
	if (chain_unsupported_reason(call, outer) != NULL ||
		(best && outer->cost + inner->cost >= best->cost))
		return -1;
	return outer->cost +
		plan_lookup_cost(call->root, outer->rows, count_matches(call, outer, inner), inner->cost,
						 inner->rows, call->extra->restrictlist, call->hashclauses);
}

/* Returns whether the GPU can join the rows of a chain with those of an inner side. */
static bool
is_resident_join_supported(const JoinCall *call, const LookupChain *outer, const InnerSide *inner)
{
	const LookupChain *fact = outer;
	double matches = 1;

	if (!call->unique)
	{
		while (fact->outer)
			fact = fact->outer;
		if (!plan_resident_is_smaller(call->innerrel, fact->path->parent->tuples))
			return false;
		matches = count_matches(call, outer, inner) / Max(outer->rows, 1);
	}
	return plan_resident_join_supported(call->jointype, matches, call->hashclauses,
										call->extra->restrictlist);
}

/* Makes a chain of the join relation. */
static void
set_chain(const JoinCall *call, LookupChain **best, LookupChain *outer, const InnerSide *inner,
		  Cost cost)
{
	RelOptInfo *joinrel = call->joinrel;
	LookupChain *chain = *best;

	if (chain == NULL)
		*best = chain = palloc(sizeof(LookupChain));
	chain->path = NULL;
	/* participants share the rows of the fact table */
	chain->rows = clamp_row_est(joinrel->rows * Min(outer->rows / call->outerrel->rows, 1));
	chain->cost = cost;
	chain->harmless =
		plan_lookup_harmless_target(call->root, joinrel->reltarget->exprs,
									call->outerrel->reltarget, call->innerrel->reltarget);
	chain->parallel_safe = joinrel->consider_parallel && outer->parallel_safe &&
		(inner->path ? inner->path->parallel_safe : inner->chain->parallel_safe);
	chain->outer = outer;
	chain->inner = inner->path;
	chain->inner_chain = inner->chain;
	chain->joinrel = joinrel;
	chain->target = joinrel->reltarget;
	chain->jointype = call->jointype;
	chain->hashclauses = call->hashclauses;
	chain->proved = call->proved;
	chain->settles = outer->settles || (call->on && !call->unique);
	chain->extra = *call->extra;
	chain->sjinfo = *call->extra->sjinfo;
	chain->extra.sjinfo = &chain->sjinfo;
}

/* Returns whether a chain of this cost is better than the one before. */
static bool
is_better(Cost cost, const LookupChain *best)
{
	return cost >= 0 && (best == NULL || cost < best->cost);
}

/* Calls plan_lookup_unsupported_reason(), which sets call->on: never for an inner join. */
static const char *
call_unsupported_reason(JoinCall *call)
{
	return plan_lookup_unsupported_reason(call->root, call->joinrel, call->outerrel, call->jointype,
										  call->extra->restrictlist, call->hashclauses, &call->on);
}

/* Notes why a call had to give up, unless another one came as close to a chain. */
static void
give_up(LookupRel *joined, Progress progress, const char *why)
{
	if (joined->progress >= progress)
		return;
	joined->progress = progress;
	joined->why = why;
}

/* Looks for chains of a join relation. */
static void
find_chains(JoinCall *call)
{
	LookupState *state = find_or_make_state(call->root);
	LookupRel *outer, *inner, *joined;
	InnerSide side, safe;
	Cost serial = -1, partial = -1, resident = -1;
	const char *why = NULL;
	Notice notice;

	if (state == NULL)
		return;
	inner = find_or_make_rel(state, call->innerrel);
	joined = find_or_make_rel(state, call->joinrel);
	/* nearly half of all calls have a fact table as the inner relation, and end here */
	if (!fits(call->root, call->innerrel, inner))
	{
		give_up(joined, INNER_TOO_LARGE, "the inner side of the join is too large");
		return;
	}
	if ((call->hashclauses = find_hash_clauses(call)) == NIL)
	{
		give_up(joined, NO_KEY, "no condition of the join compares its sides by hashable values");
		return;
	}
	if (call->jointype != JOIN_INNER && (why = call_unsupported_reason(call)) != NULL)
	{
		give_up(joined, UNSUPPORTED, why);
		return;
	}
	call->unique = plan_lookup_has_one_match(call->jointype, call->extra->inner_unique, call->on);
	if (!call->unique && call->innerrel->reloptkind == RELOPT_JOINREL)
		call->unique = call->proved = is_inner_join_unique(call, inner);
	outer = find_or_make_rel(state, call->outerrel);
	if (call->unique)
		joined->rows_of = bms_add_members(joined->rows_of, outer->rows_of);
	find_scans(call->root, call->outerrel, outer);
	find_scans(call->root, call->innerrel, inner);
	if (outer->serial == NULL && outer->why)
		give_up(joined, NO_OUTER_CHAIN, outer->why);
	else if ((why = chain_unsupported_reason(call, outer->serial)) != NULL)
		give_up(joined, NO_OUTER_CHAIN, why);
	if (find_inner(call, inner, false, &side))
		serial = extended_cost(call, outer->serial, &side, joined->serial);
	if (outer->partial && call->joinrel->consider_parallel && find_inner(call, inner, true, &safe))
		partial = extended_cost(call, outer->partial, &safe, joined->partial);
	if (outer->resident && (side.path || side.chain) &&
		is_resident_join_supported(call, outer->resident, &side))
		resident = extended_cost(call, outer->resident, &side, joined->resident);
	if (!is_better(serial, joined->serial) && !is_better(partial, joined->partial) &&
		!is_better(resident, joined->resident))
		return;
	/* inner joins are most of the joins, and few of them are better: they are examined last */
	if (call->jointype == JOIN_INNER && (why = call_unsupported_reason(call)) != NULL)
	{
		give_up(joined, UNSUPPORTED, why);
		return;
	}
	notice = notice_of(call->root, call->innerrel, inner);
	if (notice == NOTICE_HOW_OFTEN)
	{
		give_up(joined, UNSUPPORTED, "an inner side calls a volatile function or locks rows");
		return;
	}
	if (notice == NOTICE_WHETHER && outer->partial &&
		!plan_lookup_can_look_ahead(fact_scan(outer->partial)))
		partial = -1;
	if (is_better(serial, joined->serial))
		set_chain(call, &joined->serial, outer->serial, &side, serial);
	if (is_better(partial, joined->partial))
		set_chain(call, &joined->partial, outer->partial, &safe, partial);
	if (is_better(resident, joined->resident))
		set_chain(call, &joined->resident, outer->resident, &side, resident);
}

/* Returns whether a relation is one that the planner forms by joining the tables of the query. */
static bool
is_plain_rel(RelOptInfo *rel)
{
	return !IS_OTHER_REL(rel) && !compat_is_grouped_rel(rel) && !IS_DUMMY_REL(rel) &&
		bms_is_empty(rel->lateral_relids);
}

/* The set_join_pathlist_hook. */
static void
collect_join(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *outerrel, RelOptInfo *innerrel,
			 JoinType jointype, JoinPathExtraData *extra)
{
	JoinCall call = {root, joinrel, outerrel, innerrel, jointype, extra};

	if (prev_set_join_pathlist_hook)
		prev_set_join_pathlist_hook(root, joinrel, outerrel, innerrel, jointype, extra);
	if (!may_be_wanted(root) ||
		(jointype != JOIN_INNER && jointype != JOIN_LEFT && jointype != JOIN_SEMI &&
		 jointype != JOIN_ANTI && jointype != JOIN_FULL))
		return;
	/* since release 19: the outer side's own paths return unique rows, but its scans do not */
	if (jointype == JOIN_INNER && extra->sjinfo->jointype == JOIN_SEMI &&
		bms_equal(extra->sjinfo->syn_righthand, outerrel->relids))
		return;
	/* a tour of GEQO: the join relations are about to be freed */
	if (CurrentMemoryContext != root->planner_cxt)
		return;
	if (!compat_may_hash_join(extra) || !is_plain_rel(joinrel) || !is_plain_rel(outerrel) ||
		!is_plain_rel(innerrel))
		return;
	find_chains(&call);
}

/* ---- paths ----------------------------------------------------------------- */

/* Returns the path of a chain, with the columns that the join relation had when it was formed. */
static Path *
chain_path(PlannerInfo *root, LookupChain *chain)
{
	RelOptInfo *joinrel = chain->joinrel;
	JoinPathExtraData *extra = &chain->extra;
	JoinCostWorkspace workspace;
	PathTarget *target;
	Path *outer;

	check_stack_depth();
	if (chain->path != NULL)
		return chain->path;
	outer = chain_path(root, chain->outer);
	if (chain->inner == NULL)
		chain->inner = chain_path(root, chain->inner_chain);
	if (chain->proved)
	{
		extra->inner_unique = true;
		compute_semi_anti_join_factors(root, joinrel, outer->parent, chain->inner->parent,
									   chain->jointype, extra->sjinfo, extra->restrictlist,
									   &extra->semifactors);
	}
	target = joinrel->reltarget;
	joinrel->reltarget = chain->target;
	initial_cost_hashjoin(root, &workspace, chain->jointype, chain->hashclauses, outer,
						  chain->inner, extra, false);
	chain->path = (Path *) create_hashjoin_path(root, joinrel, chain->jointype, &workspace, extra,
												outer, chain->inner, false, extra->restrictlist,
												NULL, chain->hashclauses);
	joinrel->reltarget = target;
	return chain->path;
}

Path *
lookup_joins_path(PlannerInfo *root, RelOptInfo *rel, LookupReader reader)
{
	LookupState *state = find_state(root);
	LookupRelEntry *entry;
	LookupChain *chain;

	if (state == NULL || !state->wanted || rel->reloptkind != RELOPT_JOINREL || IS_DUMMY_REL(rel))
		return NULL;
	entry = rel_table_lookup(state->rels, rel);
	if (entry == NULL)
		return NULL;
	chain = reader == LOOKUPS_PARTICIPANT ? entry->known->partial :
		reader == LOOKUPS_GPU             ? entry->known->resident :
											entry->known->serial;
	return chain ? chain_path(root, chain) : NULL;
}

const char *
lookup_joins_unsupported_reason(PlannerInfo *root, const RelOptInfo *rel)
{
	LookupState *state = find_state(root);
	LookupRelEntry *entry;

	if (!may_be_wanted(root) || rel->reloptkind != RELOPT_JOINREL || (state && !state->wanted))
		return NULL;
	if (!enable_hashjoin)
		return "enable_hashjoin is off";
	entry = state ? rel_table_lookup(state->rels, (RelOptInfo *) rel) : NULL;
	if (entry && (entry->known->serial || entry->known->partial))
		return "another way to join is estimated to be cheaper";
	return entry && entry->known->why ? entry->known->why :
										"a side of the join refers to the other one, or is empty";
}

void
lookup_joins_install_hook(void)
{
	prev_set_join_pathlist_hook = set_join_pathlist_hook;
	set_join_pathlist_hook = collect_join;
}
