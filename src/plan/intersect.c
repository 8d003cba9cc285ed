/*
 * intersect.c
 *	  Rewrites INTERSECT and EXCEPT as GROUP BY over UNION ALL.
 *
 * A column `side` says which query a row comes from:
 *
 *		A INTERSECT B
 *
 * becomes
 *
 *		SELECT x FROM (SELECT x, 1 AS side FROM A UNION ALL SELECT x, 2 FROM B)
 *		GROUP BY x HAVING bit_or(side) > 2
 *
 * EXCEPT has the condition bit_or(side) < 2.  With ALL, sides are 0 and 1, and each group is
 * returned as often as its numbers of rows say:
 *
 *		SELECT x FROM (SELECT x, generate_series(1, least(count(*) - sum(side), sum(side))) ...
 *		GROUP BY x)
 *
 * GROUP BY has the rules of set operations: NULLs are equal, and the operation's own equality and
 * collation decide.
 *
 * The planner moves conditions of an outer query below a GROUP BY, but not below EXCEPT, nor if
 * they use columns that the operation converts to another type.  Equal values may differ for a
 * condition, as 1.0 and 1.00 do, and it may raise errors for rows that are not in the result.  In
 * these cases the GROUP BY gets OFFSET 0, which keeps conditions above it.
 */
#include "postgres.h"

#include "catalog/pg_aggregate.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "parser/parse_coerce.h"
#include "rewrite/rewriteManip.h"
#include "utils/fmgroids.h"

#include "common/compat.h"
#include "plan/set_operations.h"

/* Name of the column that repeats groups, for ALL. */
#define REPEATS "gpuagg repeats"

/* ---- the rows of both queries ------------------------------------------------- */

/*
 * Returns the n-th column of a query of the range table, as the set operation has it: with its type
 * and collation, as core converts it.
 */
static Expr *
converted_column(const TargetEntry *tle, int n, Oid type, Oid collation)
{
	Node *expr =
		(Node *) makeVar(1, n, exprType((Node *) tle->expr), exprTypmod((Node *) tle->expr),
						 exprCollation((Node *) tle->expr), 0);

	if (exprType(expr) != type)
		expr = coerce_to_common_type(NULL, expr, type, "UNION/INTERSECT/EXCEPT");
	if (exprCollation(expr) != collation)
		expr = (Node *) makeRelabelType((Expr *) expr, exprType(expr), exprTypmod(expr), collation,
										COERCE_IMPLICIT_CAST);
	return (Expr *) expr;
}

/* Returns a query of the rows of a side, with the column `side`. */
static Query *
side_query(RangeTblEntry *arm, const SetOperationStmt *op, int side)
{
	Query *query = makeNode(Query);
	RangeTblRef *ref = makeNode(RangeTblRef);
	List *columns = arm->subquery->targetList;
	ListCell *type, *collation;
	int n = 0;

	query->commandType = CMD_SELECT;
	query->limitOption = LIMIT_OPTION_COUNT;
	query->stmt_location = -1;
	query->hasRowSecurity = arm->subquery->hasRowSecurity;
	arm->inFromCl = true;
	query->rtable = list_make1(arm);
	ref->rtindex = 1;
	query->jointree = makeFromExpr(list_make1(ref), NULL);
	/* there are no columns of this level yet */
	IncrementVarSublevelsUp((Node *) query, 1, 0);
	forboth(type, op->colTypes, collation, op->colCollations)
	{
		const TargetEntry *tle = list_nth_node(TargetEntry, columns, n++);

		query->targetList = lappend(
			query->targetList,
			makeTargetEntry(converted_column(tle, n, lfirst_oid(type), lfirst_oid(collation)), n,
							tle->resname ? pstrdup(tle->resname) : NULL, false));
	}
	query->targetList =
		lappend(query->targetList,
				makeTargetEntry((Expr *) makeConst(INT4OID, -1, InvalidOid, sizeof(int32),
												   Int32GetDatum(side), false, true),
								n + 1, pstrdup("side"), false));
	return query;
}

/*
 * Changes the set operation of a query, in place, to UNION ALL of its sides.  The column `side`
 * is not in the query's target list yet.
 */
static void
unite_sides(Query *query, int left, int right)
{
	SetOperationStmt *op = (SetOperationStmt *) query->setOperations;
	SetOperationStmt *all = makeNode(SetOperationStmt);
	RangeTblEntry *arms[2];
	RangeTblRef *refs[2];

	for (int i = 0; i < 2; i++)
	{
		const RangeTblRef *ref = castNode(RangeTblRef, i == 0 ? op->larg : op->rarg);

		arms[i] = list_nth_node(RangeTblEntry, query->rtable, ref->rtindex - 1);
		refs[i] = makeNode(RangeTblRef);
		refs[i]->rtindex = i + 1;
	}
	query->rtable = list_make2(set_operation_entry(side_query(arms[0], op, left)),
							   set_operation_entry(side_query(arms[1], op, right)));
	all->op = SETOP_UNION;
	all->all = true;
	all->larg = (Node *) refs[0];
	all->rarg = (Node *) refs[1];
	all->colTypes = lappend_oid(list_copy(op->colTypes), INT4OID);
	all->colTypmods = lappend_int(list_copy(op->colTypmods), -1);
	all->colCollations = lappend_oid(list_copy(op->colCollations), InvalidOid);
	query->setOperations = (Node *) all;
}

/* ---- groups ------------------------------------------------------------------- */

/* Returns a call of an aggregate of `side`, or of none: count(*). */
static Expr *
aggregate(Oid funcid, Oid type, const Var *side)
{
	Aggref *agg = makeNode(Aggref);

	agg->aggfnoid = funcid;
	agg->aggtype = type;
	if (side)
	{
		agg->aggargtypes = list_make1_oid(INT4OID);
		agg->args = list_make1(makeTargetEntry((Expr *) copyObject(side), 1, NULL, false));
	}
	agg->aggstar = side == NULL;
	agg->aggkind = AGGKIND_NORMAL;
	agg->aggsplit = AGGSPLIT_SIMPLE;
	agg->aggno = -1;
	agg->aggtransno = -1;
	agg->location = -1;
	return (Expr *) agg;
}

/* Returns the condition for a group to be in the result of INTERSECT or EXCEPT. */
static Node *
condition(SetOperation op, const Var *side)
{
	Expr *sides = aggregate(F_BIT_OR_INT4, INT4OID, side);
	Expr *two =
		(Expr *) makeConst(INT4OID, -1, InvalidOid, sizeof(int32), Int32GetDatum(2), false, true);
	Expr *result = op == SETOP_INTERSECT ?
		make_opclause(Int4LessOperator, BOOLOID, false, two, sides, InvalidOid, InvalidOid) :
		make_opclause(Int4LessOperator, BOOLOID, false, sides, two, InvalidOid, InvalidOid);

	set_opfuncid((OpExpr *) result);
	return (Node *) result;
}

static Expr *
difference(Expr *a, Expr *b)
{
	return (Expr *) makeFuncExpr(F_INT8MI, INT8OID, list_make2(a, b), InvalidOid, InvalidOid,
								 COERCE_EXPLICIT_CALL);
}

/* Returns how often a group is in the result of INTERSECT ALL or EXCEPT ALL: so many rows. */
static Expr *
repeats(SetOperation op, const Var *side)
{
	Expr *right = aggregate(F_SUM_INT4, INT8OID, side);
	Expr *left = difference(aggregate(F_COUNT_, INT8OID, NULL), copyObject(right));
	Expr *number;
	FuncExpr *result;

	if (op == SETOP_INTERSECT)
	{
		MinMaxExpr *least = makeNode(MinMaxExpr);

		least->minmaxtype = INT8OID;
		least->op = IS_LEAST;
		least->args = list_make2(left, right);
		least->location = -1;
		number = (Expr *) least;
	}
	else
		number = difference(left, right);
	result = makeFuncExpr(F_GENERATE_SERIES_INT8_INT8, INT8OID,
						  list_make2(makeConst(INT8OID, -1, InvalidOid, sizeof(int64),
											   Int64GetDatum(1), false, FLOAT8PASSBYVAL),
									 number),
						  InvalidOid, InvalidOid, COERCE_EXPLICIT_CALL);
	result->funcretset = true;
	return (Expr *) result;
}

/* Returns whether a query's set operation converts a column of a side to another type. */
static bool
converts_columns(const Query *query)
{
	const SetOperationStmt *op = (const SetOperationStmt *) query->setOperations;
	const Node *sides[] = {op->larg, op->rarg};

	for (int i = 0; i < lengthof(sides); i++)
	{
		int index = ((const RangeTblRef *) sides[i])->rtindex;
		const RangeTblEntry *arm = list_nth_node(RangeTblEntry, query->rtable, index - 1);
		ListCell *type, *lc;

		forboth(type, op->colTypes, lc, arm->subquery->targetList)
		{
			if (exprType((Node *) lfirst_node(TargetEntry, lc)->expr) != lfirst_oid(type))
				return true;
		}
	}
	return false;
}

/* Forbids the planner to move conditions of an outer query into this one. */
static void
keep_conditions_out(Query *query)
{
	if (query->limitOffset == NULL && query->limitCount == NULL)
		query->limitOffset = (Node *) makeConst(INT8OID, -1, InvalidOid, sizeof(int64),
												Int64GetDatum(0), false, FLOAT8PASSBYVAL);
}

void
intersect_rewrite(Query *query)
{
	SetOperationStmt op = *(SetOperationStmt *) query->setOperations;
	bool keeps_out = op.op == SETOP_EXCEPT || converts_columns(query);
	int ncolumns = list_length(query->targetList);
	Query *inner = makeNode(Query);
	Query *groups;
	Var *side = makeVar(1, ncolumns + 1, INT4OID, -1, InvalidOid, 0);

	*inner = *query;
	unite_sides(inner, op.all ? 0 : 1, op.all ? 1 : 2);
	groups = set_operation_outer(inner);
	inner->targetList =
		lappend(inner->targetList,
				makeTargetEntry((Expr *) copyObject(side), ncolumns + 1, pstrdup("side"), false));
	set_operation_nest(groups, inner);
	groups->groupClause = set_operation_clauses(op.groupClauses, groups->targetList);
	groups->hasAggs = true;
	if (op.all)
	{
		Query *outer = set_operation_outer(groups);

		groups->targetList =
			lappend(groups->targetList,
					makeTargetEntry(repeats(op.op, side), ncolumns + 1, pstrdup(REPEATS), false));
		groups->hasTargetSRFs = true;
		if (keeps_out)
			keep_conditions_out(groups);
		set_operation_nest(outer, groups);
		*query = *outer;
		return;
	}
	groups->havingQual = condition(op.op, side);
	if (keeps_out)
		keep_conditions_out(groups);
	*query = *groups;
}

/*
 * The planner assumes that generate_series() returns 1,000 rows; one for each group is nearer.
 */
void
intersect_correct_rows(PlannerInfo *root, RelOptInfo *final_rel)
{
	TargetEntry *last =
		root->parse->hasTargetSRFs ? llast_node(TargetEntry, root->parse->targetList) : NULL;
	ListCell *lc;

	if (last == NULL || last->resname == NULL || strcmp(last->resname, REPEATS) != 0)
		return;
	foreach (lc, final_rel->pathlist)
	{
		ProjectSetPath *path = lfirst(lc);
		double surplus;

		if (!IsA(path, ProjectSetPath))
			continue;
		surplus = path->path.rows - path->subpath->rows;
		if (surplus <= 0)
			continue;
		path->path.rows -= surplus;
		path->path.total_cost -= surplus * cpu_tuple_cost / 2;
	}
}
