/*
 * dependent_keys.c
 *	  Drops keys that depend on other keys.
 *
 * A key is dependent if it is an immutable function of other keys, or of nothing: the groups of x
 * and x - 1 are those of x.  The scan then groups by the other keys, and its projection computes
 * the dependent one for each group that it returns, as it does with any target expression.
 *
 * Equal values of the keys that the function reads must have equal bytes: 1.0 and 1.00 are equal,
 * but their texts are not, so rows with these keys are in two groups.
 *
 * Core computes all keys for all rows, so an error of a dependent key must be raised even if the
 * group is not returned.  So a key that can fail stays an input of the aggregation, which the feed
 * evaluates for each row; nothing reads the values.  That pays for functions of numbers, and for
 * lengths of texts, which are vector operations.  Other keys that can fail are not dropped: as keys
 * they may be computed once for each value of a cached column.
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "catalog/pg_type_d.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/tlist.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

#include "analysis/analysis.h"
#include "plan/estimate.h"
#include "plan/group_query.h"

/* The keys that may take the place of columns in a key. */
typedef struct Determined
{
	const Node *key;
	List *keys; /* keys whose equal values are identical */
} Determined;

/* Returns whether equal values of a key have equal bytes, so that no function tells them apart. */
static bool
equal_is_identical(Node *key, Oid eqop)
{
	TypeCacheEntry *type = lookup_type_cache(exprType(key), TYPECACHE_BTREE_OPFAMILY);
	Oid family = type->btree_opf;
	Oid input = type->btree_opintype;
	Oid function;

	if (!OidIsValid(family) ||
		get_opfamily_member(family, input, input, BTEqualStrategyNumber) != eqop ||
		(type_is_collatable(exprType(key)) && !OidIsValid(exprCollation(key))))
		return false;
	function = get_opfamily_proc(family, input, input, BTEQUALIMAGE_PROC);
	return OidIsValid(function) &&
		DatumGetBool(OidFunctionCall1Coll(function, exprCollation(key), ObjectIdGetDatum(input)));
}

/* Mutator: replaces other keys by nodes that stand for values which are there. */
static Node *
replace_keys(Node *node, Determined *context)
{
	CaseTestExpr *value;

	if (node == NULL)
		return NULL;
	if (node == context->key || !list_member(context->keys, node))
		return expression_tree_mutator(node, replace_keys, context);
	value = makeNode(CaseTestExpr);
	value->typeId = exprType(node);
	value->typeMod = exprTypmod(node);
	value->collation = exprCollation(node);
	return (Node *) value;
}

/* Walker: returns true at a part whose value is not the same in all rows. */
static bool
reads_rows(Node *node, void *context)
{
	if (node == NULL)
		return false;
	switch (nodeTag(node))
	{
		case T_Param:
			return ((Param *) node)->paramkind != PARAM_EXTERN;
		case T_Var:
		case T_PlaceHolderVar:
		case T_Aggref:
		case T_GroupingFunc:
		case T_WindowFunc:
		case T_SubLink:
		case T_SubPlan:
		case T_AlternativeSubPlan:
			return true;
		default:
			return expression_tree_walker(node, reads_rows, context);
	}
}

/*
 * Returns whether the scan must have the key, although others determine it: its LIMIT compares the
 * values of the groups.
 */
static bool
chooses_groups(PlannerInfo *root, Index ref)
{
	return root->parse->limitCount != NULL &&
		get_sortgroupref_clause_noerr(ref, root->parse->sortClause) != NULL;
}

/* Returns whether a node is the length of a key, which is stored with the key's values. */
static bool
is_key_length(Node *node)
{
	Node *arg;

	if (!IsA(node, FuncExpr) || list_length(((FuncExpr *) node)->args) != 1)
		return false;
	arg = linitial(((FuncExpr *) node)->args);
	while (IsA(arg, RelabelType))
		arg = (Node *) ((RelabelType *) arg)->arg;
	if (!IsA(arg, CaseTestExpr))
		return false;
	switch (((FuncExpr *) node)->funcid)
	{
		case F_OCTET_LENGTH_TEXT:
		case F_OCTET_LENGTH_BYTEA:
		case F_LENGTH_BYTEA:
		case F_TEXTLEN:
		case F_LENGTH_TEXT:
		case F_CHAR_LENGTH_TEXT:
		case F_CHARACTER_LENGTH_TEXT:
			return true;
		default:
			return false;
	}
}

/*
 * Walker: returns true at a part that is neither a function of values passed by value nor the
 * length of a key.
 */
static bool
is_no_arithmetic(Node *node, void *context)
{
	if (node == NULL || is_key_length(node))
		return false;
	switch (nodeTag(node))
	{
		case T_List:
			break;
		case T_Const:
		case T_Param:
		case T_CaseTestExpr:
		case T_FuncExpr:
		case T_OpExpr:
		case T_RelabelType:
			if (!get_typbyval(exprType(node)))
				return true;
			break;
		default:
			return true;
	}
	return expression_tree_walker(node, is_no_arithmetic, context);
}

/*
 * Returns whether other keys determine the key, so that the scan need not have it.  If the key can
 * fail where they do not, adds it to the expressions that are evaluated for each row.
 */
static bool
is_dependent(GroupQuery *query, Node *key, List *identical)
{
	Determined context = {.key = key, .keys = identical};
	Node *function = replace_keys(key, &context);

	if (reads_rows(function, NULL) || contain_mutable_functions(function) ||
		expression_returns_set(function) || expr_calls_users_function(function))
		return false;
	if (expr_cannot_fail(function, query->root->glob->boundParams))
		return true;
	if (is_no_arithmetic(function, NULL))
		return false;
	query->checks = lappend(query->checks, key);
	return true;
}

void
plan_drop_dependent_keys(GroupQuery *query)
{
	List *identical = NIL;
	List *keys = NIL, *refs = NIL, *eqops = NIL;
	ListCell *lc, *lc2, *lc3;

	if (list_length(query->keys) < 2 || query->sets != NIL)
		return;
	forboth(lc, query->keys, lc2, query->key_eqops)
	{
		/* copies of a volatile key have values of their own */
		if (!IsA(lfirst(lc), Const) && equal_is_identical(lfirst(lc), lfirst_oid(lc2)) &&
			!contain_volatile_functions(lfirst(lc)))
			identical = lappend(identical, lfirst(lc));
	}
	forthree(lc, query->keys, lc2, query->key_refs, lc3, query->key_eqops)
	{
		Node *key = lfirst(lc);

		/* one key stays: without any there is a group for no rows */
		if ((keys != NIL || lnext(query->keys, lc)) &&
			!chooses_groups(query->root, lfirst_int(lc2)) && is_dependent(query, key, identical))
		{
			query->dropped = lappend(query->dropped, key);
			continue;
		}
		keys = lappend(keys, key);
		refs = lappend_int(refs, lfirst_int(lc2));
		eqops = lappend_oid(eqops, lfirst_oid(lc3));
	}
	query->keys = keys;
	query->key_refs = refs;
	query->key_eqops = eqops;
}

double
plan_estimate_groups(const GroupQuery *query, double rows)
{
	List *keys = list_copy(query->keys);
	ListCell *lc;

	/* core takes each condition for one that doubles the groups */
	foreach (lc, query->dropped)
		if (exprType(lfirst(lc)) != BOOLOID)
			keys = lappend(keys, lfirst(lc));
	return keys == NIL ? 1 : estimate_groups(query->root, keys, rows);
}
