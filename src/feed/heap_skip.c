/*
 * heap_skip.c
 *
 * Decides a query's conditions for a whole range of the column cache, by the bounds of its chunks.
 *
 * Conditions "column operator value" with a btree operator, and "column IS [NOT] NULL", are tested
 * against the bounds and the number of NULLs of the column's chunk. A range may be skipped for a
 * condition only if no earlier condition may raise an error for the skipped rows. The value is
 * computed only if core would compute it for the range's first row (so it belongs to the first
 * condition), or if computing it cannot raise an error.
 *
 * Texts are compared by their first bytes (text_range.h).
 *
 * Dates and times may be compared across types, and be cast to each other. Where this depends on
 * the time zone it is not monotonic: when clocks are put forward, or a difference of one hour
 * becomes one day, a later local time may be an earlier instant. But the deviation is limited, and
 * bounds are moved outwards by more than the limit.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "pgtime.h"
#include "utils/date.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"
#include "utils/typcache.h"

#include "analysis/analysis.h"
#include "columns/column_value.h"
#include "columns/decimal.h"
#include "feed/heap_skip.h"
#include "feed/text_range.h"
#include "spec.h"

typedef struct SkipTest
{
	int qual;   /* index of the qual */
	bool skips; /* a range may be skipped for it */
	AttrNumber attno;
	Oid column_type;
	bool nulls; /* IS NULL, or IS NOT NULL if negate is set */
	bool negate;
	TextCondition
		text;     /* not TEXT_NONE: a condition of a text; the fields up to `param` are unused */
	int strategy; /* btree strategy of "column operator value" */
	Oid collation;
	FmgrInfo cast;    /* cast of the column; fn_oid is InvalidOid: none */
	int zones;        /* number of conversions that depend on the time zone */
	FmgrInfo op;      /* function of the operator */
	FmgrInfo less;    /* equality only: column < value, */
	FmgrInfo greater; /* column > value */
	Param *param;     /* the value is this external parameter; or NULL */
	ExprState *value_state;
	bool known; /* the fields below are set */
	bool value_null;
	Datum value;
	TextRange range; /* texts that satisfy a condition of a text */
} SkipTest;

struct HeapSkip
{
	PlanState *scan;
	MemoryContext temp_cxt;  /* bounds of one range */
	MemoryContext value_cxt; /* values that columns are compared with, until heap_skip_reset() */
	int ntests;
	SkipTest *tests;
};

/*
 * Returns whether chunks' bounds are the least and greatest value by the type's btree order.
 * Chunks order "char" as signed and enums by OID, btree does not.
 */
static bool
bounds_are_ordered(Oid type)
{
	type = getBaseType(type);
	return type != CHAROID && !type_is_enum(type);
}

/*
 * Returns whether a function casts between dates and times. These casts are monotonic except for
 * the time zone.
 */
static bool
is_time_cast(Oid function)
{
	switch (function)
	{
		case F_DATE_TIMESTAMP:
		case F_DATE_TIMESTAMPTZ:
		case F_TIMESTAMP_DATE:
		case F_TIMESTAMP_TIMESTAMPTZ:
		case F_TIMESTAMPTZ_DATE:
		case F_TIMESTAMPTZ_TIMESTAMP:
			return true;
		default:
			return false;
	}
}

/*
 * Sets the functions that decide "left operator right", where left is of `type`. Returns false if
 * the operator is not in the type's btree family, or depends on a setting other than the time
 * zone.
 */
static bool
set_operator(SkipTest *test, Oid opno, Oid type)
{
	Oid family = lookup_type_cache(type, TYPECACHE_BTREE_OPFAMILY)->btree_opf;
	Oid times = lookup_type_cache(TIMESTAMPTZOID, TYPECACHE_BTREE_OPFAMILY)->btree_opf;
	Oid left, right, less, greater;

	if (!OidIsValid(family) || !op_in_opfamily(opno, family) || !bounds_are_ordered(type))
		return false;
	if (op_volatile(opno) != PROVOLATILE_IMMUTABLE)
	{
		if (op_volatile(opno) != PROVOLATILE_STABLE || family != times)
			return false;
		test->zones += type != TIMESTAMPTZOID;
	}
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

/* Returns whether an expression is now() or similar. */
static bool
is_clock(Node *node)
{
	return IsA(node, SQLValueFunction) ||
		(IsA(node, FuncExpr) &&
		 (((FuncExpr *) node)->funcid == F_NOW ||
		  ((FuncExpr *) node)->funcid == F_TRANSACTION_TIMESTAMP ||
		  ((FuncExpr *) node)->funcid == F_STATEMENT_TIMESTAMP));
}

/* Returns whether a value is from -limit to limit. */
static inline bool
is_within(int64 value, int64 limit)
{
	return value >= -limit && value <= limit;
}

/*
 * Returns whether a constant is a number of days or an interval so small that adding it to a
 * current time cannot overflow: at most 1,000 years in each field.
 */
static bool
is_overflow_safe(Node *node)
{
	const int64 years = 1000;
	Const *constant = (Const *) node;
	const Interval *interval;

	if (!IsA(node, Const) || constant->constisnull)
		return false;
	if (constant->consttype == INT4OID)
		return is_within(DatumGetInt32(constant->constvalue), years * 366);
	if (constant->consttype != INTERVALOID)
		return false;
	interval = DatumGetIntervalP(constant->constvalue);
	return is_within(interval->month, years * 12) && is_within(interval->day, years * 366) &&
		is_within(interval->time, years * 366 * USECS_PER_DAY);
}

/*
 * Returns whether a value is known when the query runs (see can_fetch()), or can be computed
 * without an error.
 */
static bool
is_safe_value(Node *node)
{
	OpExpr *op = (OpExpr *) node;

	if (IsA(node, Const) || is_clock(node))
		return true;
	if (IsA(node, Param))
		return ((Param *) node)->paramkind == PARAM_EXTERN;
	if (!IsA(node, OpExpr) || list_length(op->args) != 2)
		return false;
	switch (op->opfuncid)
	{
		case F_TIMESTAMPTZ_MI_INTERVAL:
		case F_TIMESTAMPTZ_PL_INTERVAL:
		case F_TIMESTAMP_MI_INTERVAL:
		case F_TIMESTAMP_PL_INTERVAL:
		case F_DATE_MI_INTERVAL:
		case F_DATE_PL_INTERVAL:
		case F_DATE_MII:
		case F_DATE_PLI:
			return is_clock(linitial(op->args)) && is_overflow_safe(lsecond(op->args));
		default:
			return false;
	}
}

/*
 * Returns whether the expression that a column is compared with may be evaluated for a whole
 * range. first: it belongs to the first qual.
 */
static bool
may_evaluate_value(Node *node, bool first)
{
	return is_safe_value(node) ||
		(first && !contain_var_clause(node) && !contain_volatile_functions(node) &&
		 !contain_subplans(node));
}

/*
 * Sets the column of a test, and the cast if there is one, from one side of a comparison.
 * Returns false if that side is not a column or a time cast of one.
 */
static bool
set_column(SkipTest *test, Node *side)
{
	Oid cast = InvalidOid;

	if (IsA(side, FuncExpr) && is_time_cast(((FuncExpr *) side)->funcid))
	{
		cast = ((FuncExpr *) side)->funcid;
		side = linitial(((FuncExpr *) side)->args);
	}
	if (!IsA(side, Var) || ((Var *) side)->varattno <= 0)
		return false;
	test->attno = ((Var *) side)->varattno;
	test->column_type = ((Var *) side)->vartype;
	if (OidIsValid(cast))
	{
		fmgr_info(cast, &test->cast);
		test->zones = func_volatile(cast) != PROVOLATILE_IMMUTABLE;
	}
	return true;
}

/* Sets the value that the column is compared with. */
static void
set_value(SkipTest *test, PlanState *scan, Node *value)
{
	test->value_state = ExecInitExpr((Expr *) value, scan);
	test->param =
		IsA(value, Param) && ((Param *) value)->paramkind == PARAM_EXTERN ? (Param *) value : NULL;
}

/* Returns the column of an argument, also if its type is relabelled; NULL: it is anything else. */
static Var *
text_column(Node *arg)
{
	Oid type;

	while (IsA(arg, RelabelType))
		arg = (Node *) ((RelabelType *) arg)->arg;
	if (!IsA(arg, Var) || ((Var *) arg)->varattno <= 0)
		return NULL;
	type = getBaseType(((Var *) arg)->vartype);
	return type == TEXTOID || type == VARCHAROID ? (Var *) arg : NULL;
}

/* Makes the test of a condition of a text column. Returns false if it is none. */
static bool
make_text_test(SkipTest *test, PlanState *scan, Node *qual, bool first)
{
	Oid function = IsA(qual, OpExpr) ? ((OpExpr *) qual)->opfuncid :
		IsA(qual, FuncExpr)          ? ((FuncExpr *) qual)->funcid :
									   InvalidOid;
	List *args = IsA(qual, OpExpr) ? ((OpExpr *) qual)->args :
		IsA(qual, FuncExpr)        ? ((FuncExpr *) qual)->args :
									 NIL;
	Node *value;
	Var *column;

	if (list_length(args) != 2)
		return false;
	test->text = text_condition(function, exprInputCollation(qual));
	column = text_column(linitial(args));
	value = lsecond(args);
	if (column == NULL)
	{
		test->text = text_condition_commuted(test->text);
		column = text_column(lsecond(args));
		value = linitial(args);
	}
	if (test->text == TEXT_NONE || column == NULL || !may_evaluate_value(value, first))
		return false;
	test->attno = column->varattno;
	set_value(test, scan, value);
	return true;
}

/*
 * Makes the test of a qual. first: it is the first qual. Returns false if bounds cannot decide
 * the qual; *test may be partly set then.
 */
static bool
make_test(SkipTest *test, PlanState *scan, Node *qual, bool first)
{
	OpExpr *op = (OpExpr *) qual;
	Node *column, *value;
	Oid opno;

	if (IsA(qual, NullTest) && IsA(((NullTest *) qual)->arg, Var) && !((NullTest *) qual)->argisrow)
	{
		test->attno = ((Var *) ((NullTest *) qual)->arg)->varattno;
		test->nulls = true;
		test->negate = ((NullTest *) qual)->nulltesttype == IS_NOT_NULL;
		return test->attno > 0;
	}
	if (make_text_test(test, scan, qual, first))
		return true;
	test->text = TEXT_NONE;
	if (!IsA(qual, OpExpr) || list_length(op->args) != 2)
		return false;
	opno = op->opno;
	column = linitial(op->args);
	value = lsecond(op->args);
	if (!contain_var_clause(column))
	{
		opno = get_commutator(opno);
		column = lsecond(op->args);
		value = linitial(op->args);
	}
	if (!OidIsValid(opno) || !set_column(test, column) || !may_evaluate_value(value, first) ||
		!set_operator(test, opno, exprType(column)))
		return false;
	test->collation = op->inputcollid;
	set_value(test, scan, value);
	return true;
}

HeapSkip *
heap_skip_create(PlanState *scan, int nquals, ExprRoot *const *quals, bool guarded)
{
	HeapSkip *skip = palloc0(sizeof(HeapSkip));
	bool may_fail = false;

	skip->scan = scan;
	skip->tests = palloc0(sizeof(SkipTest) * (nquals + 1));
	for (int q = 0; q < nquals; q++)
	{
		SkipTest *test = &skip->tests[skip->ntests];
		Node *qual = (Node *) quals[q]->expr;

		if (make_test(test, scan, qual, q == 0))
		{
			test->qual = q;
			/* The run time of a query would reveal what a leaky condition finds in hidden rows. */
			test->skips = !may_fail && !(guarded && contain_leaked_vars(qual));
			skip->ntests++;
		}
		else
			memset(test, 0, sizeof(*test));
		may_fail |= !expr_cannot_fail(qual, scan->state->es_param_list_info);
	}
	if (skip->ntests == 0)
		return NULL;
	skip->temp_cxt =
		AllocSetContextCreate(CurrentMemoryContext, "gpuagg bounds", ALLOCSET_SMALL_SIZES);
	skip->value_cxt =
		AllocSetContextCreate(CurrentMemoryContext, "gpuagg bounds values", ALLOCSET_SMALL_SIZES);
	return skip;
}

void
heap_skip_reset(HeapSkip *skip)
{
	for (int t = 0; t < skip->ntests; t++)
		skip->tests[t].known = false;
	MemoryContextReset(skip->value_cxt);
}

/* Returns a bound of a chunk as a Datum of the column's type, in the current memory context. */
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

/*
 * Returns by how many days a bound is moved for each conversion by the time zone. Named zones
 * differ from UTC by less than a day, so two days make sure that a later local time is a later
 * instant. Zones that are given as rules may differ by a week.
 */
static int
zone_days(void)
{
	return strpbrk(pg_get_timezone_name(session_timezone), "0123456789<") ? 15 : 2;
}

/* Bounds outside these days from 2000 on are not cast: the cast might fail. */
#define FIRST_DAY (-2400000)
#define LAST_DAY 70000000

/* Returns whether a bound of dates or times is not infinity or -infinity. */
static bool
is_finite(const SkipTest *test, ColumnBound bound)
{
	return test->column_type == DATEOID ? !DATE_NOT_FINITE(bound.integer) :
										  !TIMESTAMP_NOT_FINITE(bound.integer);
}

/* Returns whether a finite bound of dates or times can be cast without an error. */
static bool
is_castable(const SkipTest *test, ColumnBound bound)
{
	int64 day = bound.integer / (test->column_type == DATEOID ? 1 : USECS_PER_DAY);

	return day >= FIRST_DAY && day <= LAST_DAY;
}

/*
 * Returns whether the cast may raise an error for some row of the chunk. Then each row must be
 * evaluated. With an infinite bound, the other values may be anything.
 */
static bool
cast_may_fail(const SkipTest *test, const CacheChunk *chunk)
{
	if (!OidIsValid(test->cast.fn_oid) || test->cast.fn_oid == F_DATE_TIMESTAMP ||
		!chunk->has_bounds)
		return false;
	return !is_finite(test, chunk->least) || !is_finite(test, chunk->greatest) ||
		!is_castable(test, chunk->least) || !is_castable(test, chunk->greatest);
}

/*
 * Moves a bound of dates or times outwards by some days; returns false if it may be too far out to
 * be cast.
 */
static bool
move_bound(const SkipTest *test, ColumnBound *bound, int days)
{
	if (!is_finite(test, *bound))
		return true;
	if (!is_castable(test, *bound))
		return false;
	bound->integer += days * (test->column_type == DATEOID ? 1 : USECS_PER_DAY);
	return true;
}

/*
 * Returns whether "bound op value" is true for one bound of the chunk: the greatest value if
 * `greatest` is set, else the least. Where the time zone matters, the bound is first moved
 * outwards. Returns `unknown` if that is impossible.
 */
static bool
bound_satisfies(SkipTest *test, FmgrInfo *op, const CacheChunk *chunk, bool greatest, bool unknown)
{
	ColumnBound bound = greatest ? chunk->greatest : chunk->least;
	int days = test->zones > 0 ? test->zones * zone_days() : 0;
	Datum value;

	if ((test->zones > 0 || OidIsValid(test->cast.fn_oid)) &&
		!move_bound(test, &bound, greatest ? days : -days))
		return unknown;
	value = bound_datum(chunk, bound);
	if (OidIsValid(test->cast.fn_oid))
		value = FunctionCall1(&test->cast, value);
	return DatumGetBool(FunctionCall2Coll(op, test->collation, value, test->value));
}

Datum
heap_skip_bound(const CacheChunk *chunk, bool greatest)
{
	return bound_datum(chunk, greatest ? chunk->greatest : chunk->least);
}

/* Evaluates the value that the column is compared with. */
static void
evaluate_value(HeapSkip *skip, SkipTest *test)
{
	MemoryContext old = MemoryContextSwitchTo(skip->value_cxt);

	test->value = ExecEvalExpr(test->value_state, skip->scan->ps_ExprContext, &test->value_null);
	if (test->text != TEXT_NONE && !test->value_null)
		text_range_set(&test->range, test->text, DatumGetTextPP(test->value));
	test->known = true;
	MemoryContextSwitchTo(old);
}

/*
 * Returns whether the value can be fetched without an error. A parameter may be a field of a
 * record whose type has changed since planning; then the fetch would fail.
 */
static bool
can_fetch(HeapSkip *skip, const SkipTest *test)
{
	ParamListInfo params = skip->scan->ps_ExprContext->ecxt_param_list_info;
	const Param *param = test->param;
	ParamExternData space;
	const ParamExternData *found;

	if (param == NULL)
		return true;
	if (params == NULL || param->paramid <= 0 || param->paramid > params->numParams)
		return false;
	found = params->paramFetch ? params->paramFetch(params, param->paramid, true, &space) :
								 &params->params[param->paramid - 1];
	return found->ptype == param->paramtype;
}

/* Returns whether the chunk's bounds can be compared with the value. A NULL value cannot. */
static bool
is_comparable(HeapSkip *skip, SkipTest *test, const CacheChunk *chunk)
{
	if (!(test->text != TEXT_NONE ? chunk->has_prefixes : chunk->has_bounds) ||
		chunk->nexceptions > 0)
		return false;
	if (!test->known && !can_fetch(skip, test))
		return false;
	if (!test->known)
		evaluate_value(skip, test);
	return !test->value_null;
}

/* Returns whether the test shows that no row of the chunk passes. */
static bool
no_row_passes(HeapSkip *skip, SkipTest *test, const CacheChunk *chunk)
{
	if (test->nulls)
		return test->negate ? chunk->nnulls == chunk->nrows : chunk->nnulls == 0;
	if (cast_may_fail(test, chunk))
		return false;
	if (!is_comparable(skip, test, chunk))
		return test->known && test->value_null;
	if (test->text != TEXT_NONE)
		return chunk->greatest_prefix < test->range.first || chunk->least_prefix > test->range.last;
	switch (test->strategy)
	{
		case BTLessStrategyNumber:
		case BTLessEqualStrategyNumber:
			return !bound_satisfies(test, &test->op, chunk, false, true);
		case BTGreaterStrategyNumber:
		case BTGreaterEqualStrategyNumber:
			return !bound_satisfies(test, &test->op, chunk, true, true);
		default:
			return bound_satisfies(test, &test->less, chunk, true, false) ||
				bound_satisfies(test, &test->greater, chunk, false, false);
	}
}

/* Returns whether the test shows that all rows of the chunk pass. */
static bool
all_rows_pass(HeapSkip *skip, SkipTest *test, const CacheChunk *chunk)
{
	if (test->nulls)
		return test->negate ? chunk->nnulls == 0 : chunk->nnulls == chunk->nrows;
	if (chunk->nnulls > 0 || cast_may_fail(test, chunk) || !is_comparable(skip, test, chunk))
		return false;
	if (test->text != TEXT_NONE)
		return chunk->least_prefix >= test->range.sure_first &&
			chunk->greatest_prefix <= test->range.sure_last;
	switch (test->strategy)
	{
		case BTLessStrategyNumber:
		case BTLessEqualStrategyNumber:
			return bound_satisfies(test, &test->op, chunk, true, false);
		case BTGreaterStrategyNumber:
		case BTGreaterEqualStrategyNumber:
			return bound_satisfies(test, &test->op, chunk, false, false);
		default:
			return bound_satisfies(test, &test->op, chunk, true, false) &&
				bound_satisfies(test, &test->op, chunk, false, false);
	}
}

bool
heap_skip_refutes(HeapSkip *skip, const CacheChunk *const *chunks, const int *slots)
{
	MemoryContext old = MemoryContextSwitchTo(skip->temp_cxt);
	bool refuted = false;

	for (int t = 0; t < skip->ntests && !refuted; t++)
		refuted = skip->tests[t].skips &&
			no_row_passes(skip, &skip->tests[t], chunks[slots[skip->tests[t].attno - 1]]);
	MemoryContextSwitchTo(old);
	MemoryContextReset(skip->temp_cxt);
	return refuted;
}

bool
heap_skip_finds_none(const HeapSkipProbe *probe, const CacheChunk *chunk)
{
	int64 least, greatest;

	if (chunk->nnulls == chunk->nrows)
		return true;
	if (!lookup_has_integer_key(probe->lookup))
		return chunk->has_prefixes &&
			!lookup_may_have_texts(probe->lookup, chunk->least_prefix, chunk->greatest_prefix);
	if (!chunk->has_bounds || chunk->nexceptions > 0)
		return false;
	least = (int64) chunk->least.integer;
	greatest = (int64) chunk->greatest.integer;
	/* the column is the high half of the integer */
	if (probe->lookup->nkeys == 2)
	{
		least = lookup_join_halves(least, 0);
		greatest = lookup_join_halves(greatest, -1);
	}
	return !lookup_may_have_integers(probe->lookup, least, greatest);
}

int
heap_skip_implies(HeapSkip *skip, const CacheChunk *const *chunks, const int *slots, bool *implied)
{
	MemoryContext old = MemoryContextSwitchTo(skip->temp_cxt);
	int n = 0;

	for (int t = 0; t < skip->ntests; t++)
	{
		SkipTest *test = &skip->tests[t];

		implied[test->qual] = all_rows_pass(skip, test, chunks[slots[test->attno - 1]]);
		n += implied[test->qual];
	}
	MemoryContextSwitchTo(old);
	MemoryContextReset(skip->temp_cxt);
	return n;
}
