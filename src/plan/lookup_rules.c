/*
 * lookup_rules.c
 *	  Decides which joins and scans the heap feed can execute as lookups, for the planner.
 *
 * The executor decides again, for the plan that it gets (feed/heap_joins.c).
 */
#include "postgres.h"

#include "access/transam.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type_d.h"
#include "executor/nodeHash.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"

#include "analysis/analysis.h"
#include "common/compat.h"
#include "plan/lookup_rules.h"

/*
 * Bytes of a lookup (feed/lookup_rows.c): of a row with its key, and of what finds it; of a value
 * in a column, of a number of a value, and of a value that has a number in addition to its own
 * bytes.  Arrays may have twice as many elements as they need.
 */
#define LOOKUP_ROW_BYTES 48
#define LOOKUP_VALUE_BYTES 18
#define LOOKUP_CODE_BYTES 10
#define LOOKUP_DISTINCT_BYTES 88

/* Returns whether expressions include this PlaceHolderVar, perhaps below other outer joins. */
static bool
has_placeholder(const List *exprs, Index phid)
{
	ListCell *lc;

	foreach (lc, exprs)
		if (IsA(lfirst(lc), PlaceHolderVar) && ((PlaceHolderVar *) lfirst(lc))->phid == phid)
			return true;
	return false;
}

bool
plan_lookup_harmless_target(PlannerInfo *root, const List *exprs, const PathTarget *outer,
							const PathTarget *inner)
{
	ListCell *lc;

	foreach (lc, exprs)
	{
		Node *expr = lfirst(lc);

		if (IsA(expr, Var))
			continue;
		if (IsA(expr, PlaceHolderVar))
		{
			PlaceHolderVar *phv = (PlaceHolderVar *) expr;

			if ((outer && has_placeholder(outer->exprs, phv->phid)) ||
				(inner && has_placeholder(inner->exprs, phv->phid)))
				continue;
			expr = (Node *) phv->phexpr;
		}
		if (!expr_evaluates_unnoticed(expr, root->glob->boundParams))
			return false;
	}
	return true;
}

/* Returns whether the feed can evaluate conditions. None may need a node above the scan or join. */
static bool
are_conditions_supported(List *restrictlist)
{
	ListCell *lc;

	foreach (lc, restrictlist)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);

		if (rinfo->pseudoconstant || contain_volatile_functions((Node *) rinfo))
			return false;
	}
	return true;
}

bool
plan_lookup_compares_sides(const RestrictInfo *rinfo, const RelOptInfo *outerrel,
						   const RelOptInfo *innerrel)
{
	return rinfo->can_join &&
		((bms_is_subset(rinfo->left_relids, outerrel->relids) &&
		  bms_is_subset(rinfo->right_relids, innerrel->relids)) ||
		 (bms_is_subset(rinfo->left_relids, innerrel->relids) &&
		  bms_is_subset(rinfo->right_relids, outerrel->relids)));
}

/*
 * All of PostgreSQL's own operators by which joins can be hashed are strict and have a commutator.
 * Only other ones are looked up.
 */
static bool
is_core_operator(Oid operator)
{
	return operator<FirstNormalObjectId;
}

bool
plan_lookup_has_commutator(const RestrictInfo *rinfo)
{
	Oid operator=((OpExpr *) rinfo->clause)->opno;

	return is_core_operator(operator) || OidIsValid(get_commutator(operator));
}

/* Returns what can be noticed of a table, function, subquery or list of values of the query. */
static Notice
table_notice(PlannerInfo *root, RelOptInfo *rel)
{
	RangeTblEntry *rte = planner_rt_fetch(rel->relid, root);
	ParamListInfo params = root->glob->boundParams;

	switch (rte->rtekind)
	{
		case RTE_RELATION:
			return rte->tablesample || rte->relkind == RELKIND_FOREIGN_TABLE ? NOTICE_WHETHER :
																			   NOTICE_NONE;
		case RTE_VALUES:
			return expr_notice((Node *) rte->values_lists, params);
		case RTE_SUBQUERY:
			return rte->subquery->rowMarks != NIL ||
					contain_volatile_functions((Node *) rte->subquery) ?
				NOTICE_HOW_OFTEN :
				NOTICE_WHETHER;
		case RTE_FUNCTION:
			return contain_volatile_functions((Node *) rte->functions) ? NOTICE_HOW_OFTEN :
																		 NOTICE_WHETHER;
		default:
			return NOTICE_WHETHER;
	}
}

/* Returns what can be noticed of a list of conditions. */
static Notice
conditions_notice(PlannerInfo *root, const List *conditions)
{
	Notice most = NOTICE_NONE;
	ListCell *lc;

	foreach (lc, conditions)
		most = Max(
			most,
			expr_notice((Node *) lfirst_node(RestrictInfo, lc)->clause, root->glob->boundParams));
	return most;
}

Notice
plan_lookup_inner_notice(PlannerInfo *root, const RelOptInfo *rel)
{
	Notice most = expr_notice((Node *) rel->reltarget->exprs, root->glob->boundParams);
	int relid = -1;

	while ((relid = bms_next_member(rel->relids, relid)) >= 0 && most < NOTICE_HOW_OFTEN)
	{
		RelOptInfo *base = root->simple_rel_array[relid];

		/* since release 16 there are numbers of outer joins, too */
		if (base == NULL)
			continue;
		most = Max(most, table_notice(root, base));
		most = Max(most, expr_notice((Node *) base->reltarget->exprs, root->glob->boundParams));
		most = Max(most, conditions_notice(root, base->baserestrictinfo));
		if (rel->reloptkind == RELOPT_JOINREL)
			most = Max(most, conditions_notice(root, base->joininfo));
	}
	return most;
}

/* Returns whether both sides of a key are columns, perhaps with another type. */
static bool
compares_columns(const RestrictInfo *rinfo)
{
	ListCell *lc;

	foreach (lc, ((OpExpr *) rinfo->clause)->args)
	{
		const Expr *arg = lfirst(lc);

		while (IsA(arg, RelabelType))
			arg = ((const RelabelType *) arg)->arg;
		if (!IsA(arg, Var))
			return false;
	}
	return true;
}

/* Returns whether a clause by which core can hash can be a key of a lookup. */
static bool
is_key_supported(const RestrictInfo *rinfo)
{
	return (is_core_operator(rinfo->hashjoinoperator) || op_strict(rinfo->hashjoinoperator)) &&
		(compares_columns(rinfo) || !contain_subplans((Node *) rinfo->clause));
}

/* Returns the outer sides of clauses by which core can hash a join. */
static List *
outer_keys(List *hashclauses, const RelOptInfo *outerrel)
{
	List *keys = NIL;
	ListCell *lc;

	foreach (lc, hashclauses)
	{
		const RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);
		Node *key = bms_is_subset(rinfo->left_relids, outerrel->relids) ?
			get_leftop(rinfo->clause) :
			get_rightop(rinfo->clause);

		/* its value has been computed below the join, or is computed by the join */
		while (IsA(key, PlaceHolderVar))
			key = (Node *) ((PlaceHolderVar *) key)->phexpr;
		keys = lappend(keys, key);
	}
	return keys;
}

const char *
plan_lookup_unsupported_reason(PlannerInfo *root, const RelOptInfo *joinrel,
							   const RelOptInfo *outerrel, JoinType jointype, List *restrictlist,
							   List *hashclauses, bool *on)
{
	ListCell *lc;

	*on = false;
	if (jointype != JOIN_SEMI && jointype != JOIN_ANTI && jointype != JOIN_INNER &&
		jointype != JOIN_LEFT)
		return "the join is a right or full join";
	if (!are_conditions_supported(restrictlist))
		return "a condition of the join is volatile, or the same for all rows";
	foreach (lc, restrictlist)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);

		if (list_member_ptr(hashclauses, rinfo))
		{
			if (!is_key_supported(rinfo))
				return "a key of the join has a subplan, or its operator is not strict";
			continue;
		}
		/* conditions above an outer join are for its result */
		if (jointype == JOIN_INNER ||
			(IS_OUTER_JOIN(jointype) && RINFO_IS_PUSHED_DOWN(rinfo, joinrel->relids)))
			continue;
		*on = true;
		/* core evaluates it until one match passes */
		if (jointype != JOIN_LEFT &&
			!expr_evaluates_unnoticed((Node *) rinfo->clause, root->glob->boundParams))
			return "a condition of a semi or anti join may raise an error";
	}
	if (list_length(hashclauses) > 1)
		return expr_join_keys_unsupported_reason(outer_keys(hashclauses, outerrel),
												 root->glob->boundParams);
	return NULL;
}

bool
plan_lookup_has_one_match(JoinType jointype, bool inner_unique, bool on)
{
	return inner_unique || (!on && (jointype == JOIN_SEMI || jointype == JOIN_ANTI));
}

/* Returns whether values of a type are passed by value.  Common types are not looked up. */
static bool
is_by_value(Oid type)
{
	switch (type)
	{
		case INT4OID:
		case DATEOID:
			return true;
		case TEXTOID:
		case VARCHAROID:
		case BPCHAROID:
		case NUMERICOID:
			return false;
		default:
			return get_typbyval(type);
	}
}

bool
plan_lookup_fits(PlannerInfo *root, double rows, const PathTarget *target)
{
	double limit = get_hash_memory_limit();
	double most = LOOKUP_ROW_BYTES + target->width +
		list_length(target->exprs) * (LOOKUP_CODE_BYTES + LOOKUP_DISTINCT_BYTES);
	double bytes = rows * LOOKUP_ROW_BYTES;
	double different = 0;
	ListCell *lc;

	/* most inner sides are small or much too large */
	if (rows * most <= limit)
		return true;
	if (rows * (LOOKUP_ROW_BYTES + list_length(target->exprs) * LOOKUP_CODE_BYTES) > limit)
		return false;
	foreach (lc, target->exprs)
	{
		double n;

		if (is_by_value(exprType(lfirst(lc))))
		{
			bytes += rows * LOOKUP_VALUE_BYTES;
			continue;
		}
		n = estimate_num_groups(root, list_make1(lfirst(lc)), rows, NULL, NULL);
		bytes += rows * LOOKUP_CODE_BYTES + n * LOOKUP_DISTINCT_BYTES;
		different = Max(different, n);
	}
	return bytes + different * target->width <= limit;
}

bool
plan_lookup_fact_supported(PlannerInfo *root, RelOptInfo *rel)
{
	return rel->reloptkind == RELOPT_BASEREL && rel->rtekind == RTE_RELATION &&
		bms_is_empty(rel->lateral_relids) && !IS_DUMMY_REL(rel) &&
		are_conditions_supported(rel->baserestrictinfo);
}

/* Returns whether participants share the rows of a scan, or of a part of it. */
static bool
shares_rows(const Path *scan)
{
	ListCell *lc;

	if (scan->parallel_aware)
		return true;
	if (!IsA(scan, AppendPath))
		return false;
	foreach (lc, ((const AppendPath *) scan)->subpaths)
		if (((const Path *) lfirst(lc))->parallel_aware)
			return true;
	return false;
}

bool
plan_lookup_can_look_ahead(const Path *scan)
{
	return scan->pathtype == T_SeqScan || !shares_rows(scan);
}

bool
plan_lookup_scan_supported(const Path *scan)
{
	return !(scan->pathtype == T_BitmapHeapScan && scan->parallel_aware);
}

bool
plan_lookup_has_column_keys(const List *hashclauses, const RelOptInfo *innerrel)
{
	ListCell *lc;

	foreach (lc, hashclauses)
	{
		const RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);
		Node *key = bms_is_subset(rinfo->right_relids, innerrel->relids) ?
			get_rightop(rinfo->clause) :
			get_leftop(rinfo->clause);

		while (IsA(key, RelabelType))
			key = (Node *) ((RelabelType *) key)->arg;
		if (!IsA(key, Var))
			return false;
	}
	return true;
}
