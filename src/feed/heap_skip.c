/*
 * heap_skip.c
 *	  Ranges of the column cache that no row of which can pass the query's conditions.
 *
 * Conditions "column operator value" with a btree operator, and "column IS [NOT]
 * NULL", are held against the bounds and the number of NULLs of the column's chunk.
 * Only those count before which no condition stands that may raise an error for rows which are
 * skipped.  A value that has to be computed is so only if core would do it for the range's
 * first row: where it belongs to the first condition.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

#include "columns/column_value.h"
#include "columns/decimal.h"
#include "feed/heap_skip.h"
#include "spec.h"

typedef struct SkipTest
{
	AttrNumber	attno;
	bool		nulls;			/* IS NULL, or, with `negate`, IS NOT NULL */
	bool		negate;
	int			strategy;		/* column operator value */
	Oid			collation;
	FmgrInfo	op;				/* the operator's function */
	FmgrInfo	less;			/* with equality: column < value, */
	FmgrInfo	greater;		/* column > value */
	ExprState  *value_state;
	bool		known;			/* the fields below are set */
	bool		value_null;
	Datum		value;
} SkipTest;

struct HeapSkip
{
	PlanState  *scan;
	MemoryContext temp_cxt;		/* bounds, of one range */
	MemoryContext value_cxt;	/* what columns are compared with, until heap_skip_reset */
	int			ntests;
	SkipTest   *tests;
};

/*
 * Are chunks' bounds the least and greatest value by the type's btree order?  "char" is ordered
 * without a sign, enums by pg_enum.
 */
static bool
bounds_are_ordered(Oid type)
{
	type = getBaseType(type);
	return type != CHAROID && !type_is_enum(type);
}

/*
 * Finds what decides "left operator right"; false: the operator is none of the types' btree order.
 * Nor is one whose answer depends on a setting: timestamps do not become timestamptz in order
 * where clocks are put forward.
 */
static bool
set_operator(SkipTest *test, Oid opno, Oid column_type)
{
	Oid			family = lookup_type_cache(column_type, TYPECACHE_BTREE_OPFAMILY)->btree_opf;
	Oid			left,
				right,
				less,
				greater;

	if (!OidIsValid(family) || !op_in_opfamily(opno, family) || !bounds_are_ordered(column_type) ||
		op_volatile(opno) != PROVOLATILE_IMMUTABLE)
		return false;
	get_op_opfamily_properties(opno, family, false, &test->strategy, &left, &right);
	less = get_opfamily_member(family, left, right, BTLessStrategyNumber);
	greater = get_opfamily_member(family, left, right, BTGreaterStrategyNumber);
	if (!OidIsValid(less) || !OidIsValid(greater))
		return false;
	fmgr_info(get_opcode(opno), &test->op);
	fmgr_info(get_opcode(less), &test->less);
	fmgr_info(get_opcode(greater), &test->greater);
	return true;
}

/* May the value be computed here?  Constants always, others with the first condition. */
static bool
is_value(Node *node, bool first)
{
	if (IsA(node, Const))
		return true;
	return first && !contain_var_clause(node) && !contain_volatile_functions(node) &&
		!contain_subplans(node);
}

static bool
make_test(SkipTest *test, PlanState *scan, Node *qual, bool first)
{
	OpExpr	   *op = (OpExpr *) qual;
	Node	   *column,
			   *value;
	Oid			opno;

	if (IsA(qual, NullTest) && IsA(((NullTest *) qual)->arg, Var) && !((NullTest *) qual)->argisrow)
	{
		test->attno = ((Var *) ((NullTest *) qual)->arg)->varattno;
		test->nulls = true;
		test->negate = ((NullTest *) qual)->nulltesttype == IS_NOT_NULL;
		return test->attno > 0;
	}
	if (!IsA(qual, OpExpr) || list_length(op->args) != 2)
		return false;
	opno = op->opno;
	column = linitial(op->args);
	value = lsecond(op->args);
	if (!IsA(column, Var))
	{
		opno = get_commutator(opno);
		column = lsecond(op->args);
		value = linitial(op->args);
	}
	if (!IsA(column, Var) || ((Var *) column)->varattno <= 0 || !OidIsValid(opno) || !is_value(value, first))
		return false;
	test->attno = ((Var *) column)->varattno;
	test->collation = op->inputcollid;
	if (!set_operator(test, opno, ((Var *) column)->vartype))
		return false;
	test->value_state = ExecInitExpr((Expr *) value, scan);
	return true;
}

HeapSkip *
heap_skip_create(PlanState *scan, int nquals, ExprRoot *const *quals)
{
	HeapSkip   *skip = palloc0(sizeof(HeapSkip));

	skip->scan = scan;
	skip->tests = palloc0(sizeof(SkipTest) * (nquals + 1));
	for (int q = 0; q < nquals; q++)
	{
		SkipTest   *test = &skip->tests[skip->ntests];
		Node	   *qual = (Node *) quals[q]->expr;

		if (make_test(test, scan, qual, q == 0))
			skip->ntests++;
		else
			memset(test, 0, sizeof(*test));
		if (!expr_cannot_fail(qual))
			break;
	}
	if (skip->ntests == 0)
		return NULL;
	skip->temp_cxt = AllocSetContextCreate(CurrentMemoryContext, "gpuagg bounds", ALLOCSET_SMALL_SIZES);
	skip->value_cxt = AllocSetContextCreate(CurrentMemoryContext, "gpuagg bounds values", ALLOCSET_SMALL_SIZES);
	return skip;
}

void
heap_skip_reset(HeapSkip *skip)
{
	for (int t = 0; t < skip->ntests; t++)
		skip->tests[t].known = false;
	MemoryContextReset(skip->value_cxt);
}

/* A bound of a chunk as a Datum of the column's type, in the current memory context. */
static Datum
bound_datum(const CacheChunk *chunk, ColumnBound bound)
{
	switch ((ColumnType) chunk->type)
	{
#define X(NAME, value_t, bits_t, WIRE, from_datum, to_datum) \
		case COLUMN_##NAME: \
			return to_datum((value_t) bound.integer);
		COLUMN_INTEGERS(X)
#undef X
#define X(NAME, value_t, bits_t, WIRE, from_datum, to_datum) \
		case COLUMN_##NAME: \
			return to_datum((value_t) bound.number);
		COLUMN_FLOATS(X)
#undef X
		default:
			return decimal_to_numeric(bound.integer, chunk->scale);
	}
}

static bool
holds(SkipTest *test, FmgrInfo *op, const CacheChunk *chunk, ColumnBound bound)
{
	return DatumGetBool(FunctionCall2Coll(op, test->collation, bound_datum(chunk, bound), test->value));
}

/* Evaluates what the column is compared with. */
static void
know_value(HeapSkip *skip, SkipTest *test)
{
	MemoryContext old = MemoryContextSwitchTo(skip->value_cxt);

	test->value = ExecEvalExpr(test->value_state, skip->scan->ps_ExprContext, &test->value_null);
	test->known = true;
	MemoryContextSwitchTo(old);
}

/* Can no row of the chunk pass? */
static bool
refutes(HeapSkip *skip, SkipTest *test, const CacheChunk *chunk)
{
	if (test->nulls)
		return test->negate ? chunk->nnulls == chunk->nrows : chunk->nnulls == 0;
	if (!chunk->has_bounds || chunk->nexceptions > 0)
		return false;
	if (!test->known)
		know_value(skip, test);
	if (test->value_null)
		return true;
	switch (test->strategy)
	{
		case BTLessStrategyNumber:
		case BTLessEqualStrategyNumber:
			return !holds(test, &test->op, chunk, chunk->least);
		case BTGreaterStrategyNumber:
		case BTGreaterEqualStrategyNumber:
			return !holds(test, &test->op, chunk, chunk->greatest);
		default:
			return holds(test, &test->less, chunk, chunk->greatest) ||
				holds(test, &test->greater, chunk, chunk->least);
	}
}

bool
heap_skip_refutes(HeapSkip *skip, const CacheChunk *const *chunks, const int *slots)
{
	MemoryContext old = MemoryContextSwitchTo(skip->temp_cxt);
	bool		refuted = false;

	for (int t = 0; t < skip->ntests && !refuted; t++)
		refuted = refutes(skip, &skip->tests[t], chunks[slots[skip->tests[t].attno - 1]]);
	MemoryContextSwitchTo(old);
	MemoryContextReset(skip->temp_cxt);
	return refuted;
}
