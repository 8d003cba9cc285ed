/*
 * returned.c
 *	  HAVING and ORDER BY ... LIMIT on the states of groups.
 *
 * A group that HAVING or the LIMIT above this scan will drop need not become a tuple.
 * Its states tell, where what is compared has codes (aggregates/codes.h).
 *
 * HAVING: conditions `aggregate op constant` of the scan's quals are evaluated on
 * codes first.  The quals are evaluated again, with all others, for the tuples that are
 * left, so that leaving out is all that happens here.  A group meets the conditions in the
 * order of the quals, so that it must not meet one behind a qual that might have raised an error,
 * or called a function with effects.  The constant of a condition may be an InitPlan: it runs when
 * a group has passed all quals before it.
 *
 * ORDER BY ... LIMIT: core's Sort and Limit stay above the scan.  A bounded heap keeps
 * the codes of the best `limit` groups so far.  A group that is worse than all of these
 * cannot be among the best in the end, and is left out; any other is returned, so that
 * the Sort gets a superset of what it needs and decides the rest.  The groups of one
 * batch all enter the heap before the first of them is returned.  If ORDER BY goes
 * on with expressions that have no codes, or for WITH TIES, groups that tie with the
 * worst of the heap are returned as well.
 *
 * Where quals are left for tuples, a group enters the heap only when its tuple has
 * passed them.  Groups that have a value without a code are returned, and do not enter
 * it.
 *
 * Participants of a parallel plan that return groups of their own each have a heap.
 * LIMIT and OFFSET are evaluated here as in nodeLimit.c, which has raised their errors
 * by then.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "catalog/pg_type.h"
#include "common/int.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

#include "aggregates/codes.h"
#include "analysis/analysis.h"
#include "exec/exec.h"
#include "exec/returned.h"

/* A condition `aggregate op constant`; with several keys a group may fail any. */
typedef struct Condition
{
	int agg;
	int strategy; /* of btree; 0: not equal */
	Oid type;     /* of the aggregate */
	Oid constant_type;
	ExprState *constant;
	bool given; /* the constant has a value without any evaluation */
	enum
	{
		CONDITION_NEW, /* its constant is not evaluated yet */
		CONDITION_CODE,
		CONDITION_NULL, /* the constant is NULL: no group passes */
		CONDITION_LEFT  /* to the quals */
	} state;
	gpuagg_i128 code;
} Condition;

/* What groups are sorted by: a key or an aggregate. */
typedef struct SortKey
{
	int key; /* or -1 */
	int agg;
	Oid type;
	bool descending;
	bool nulls_first;
} SortKey;

/* One value of a sort key: a smaller one comes first. */
typedef struct SortCode
{
	int rank; /* -1, 1: NULL */
	gpuagg_i128 code;
} SortCode;

struct Returned
{
	GpuAggState *scan;
	MemoryContext cxt;
	int nconditions;
	Condition *conditions;
	bool others;     /* some qual is no condition whose constant is given */
	bool quals_left; /* or a condition's constant has no code */

	int nkeys;
	SortKey *keys;
	bool ties;      /* those that tie with the worst are wanted */
	bool evaluated; /* limit is set */
	int64 limit;    /* -1: none */
	int64 n;        /* groups in the heap, the worst at its root */
	int64 capacity;
	SortCode *heap;  /* [n][nkeys] */
	SortCode *codes; /* [nkeys] of one group */

	int nchosen_max;
	int *chosen;
};

/* ---- HAVING --------------------------------------------------------------- */

/* The aggregate that a column of the scan tuple is, or -1. */
static int
aggregate_of(const GpuAggState *scan, Node *node)
{
	Var *var = (Var *) node;

	if (!IsA(node, Var) || var->varno != INDEX_VAR || var->varattno <= scan->plan->nkeys ||
		var->varattno > scan->plan->nkeys + scan->plan->naggs)
		return -1;
	return var->varattno - 1 - scan->plan->nkeys;
}

/* The operator's strategy in the default btree order of a type; 0: not equal; -1: none. */
static int
strategy_of(Oid opno, Oid type)
{
	Oid family = lookup_type_cache(type, TYPECACHE_BTREE_OPFAMILY)->btree_opf;
	int strategy = get_op_opfamily_strategy(opno, family);

	if (strategy != 0)
		return strategy;
	opno = get_negator(opno);
	return OidIsValid(opno) && get_op_opfamily_strategy(opno, family) == BTEqualStrategyNumber ? 0 :
																								 -1;
}

static bool
make_condition(const GpuAggState *scan, Node *qual, Condition *condition)
{
	OpExpr *op = (OpExpr *) qual;
	Node *left, *right;
	Oid opno;

	if (!IsA(qual, OpExpr) || list_length(op->args) != 2)
		return false;
	left = linitial(op->args);
	right = lsecond(op->args);
	opno = op->opno;
	if (IsA(right, Var))
	{
		Node *swap = left;

		left = right;
		right = swap;
		opno = get_commutator(opno);
	}
	condition->agg = aggregate_of(scan, left);
	if (condition->agg < 0 || !OidIsValid(opno) || (!IsA(right, Const) && !IsA(right, Param)))
		return false;
	condition->type = exprType(left);
	condition->constant_type = exprType(right);
	condition->strategy = strategy_of(opno, condition->type);
	if (condition->strategy < 0 ||
		!codes_exist_for_aggregate(scan->outputs[condition->agg], condition->type))
		return false;
	condition->constant = ExecInitExpr((Expr *) right, unconstify(PlanState *, &scan->css.ss.ps));
	condition->given = IsA(right, Const) || ((Param *) right)->paramkind == PARAM_EXTERN;
	condition->state = CONDITION_NEW;
	return true;
}

/*
 * The conditions among the quals; ANDs are lists by now.  Behind a qual that is evaluated for
 * tuples there are only those whose constants are given, and none behind one that may fail or is
 * volatile.
 */
static void
make_conditions(Returned *returned)
{
	GpuAggState *scan = returned->scan;
	List *quals = scan->css.ss.ps.plan->qual;
	bool all = true; /* so far */
	ListCell *lc;

	returned->conditions = palloc0(sizeof(Condition) * Max(list_length(quals), 1));
	foreach (lc, quals)
	{
		Condition *condition = &returned->conditions[returned->nconditions];
		bool possible = make_condition(scan, lfirst(lc), condition);

		if (possible && (condition->given || all))
		{
			returned->nconditions++;
			returned->quals_left |= !condition->given;
			continue;
		}
		all = false;
		returned->quals_left = true;
		if (!expr_cannot_fail(lfirst(lc), scan->css.ss.ps.state->es_param_list_info))
			break;
	}
	returned->others = returned->quals_left;
}

/*
 * Its constant, when a group meets the condition: without such a group core would not evaluate it
 * either.
 */
static void
evaluate_condition(Returned *returned, Condition *condition)
{
	ExprContext *econtext = returned->scan->css.ss.ps.ps_ExprContext;
	bool isnull;
	Datum value = ExecEvalExprSwitchContext(condition->constant, econtext, &isnull);

	if (isnull)
		condition->state = CONDITION_NULL;
	else if (codes_of_constant(returned->scan->outputs[condition->agg], condition->type,
							   condition->constant_type, value, &condition->code))
		condition->state = CONDITION_CODE;
	else
	{
		condition->state = CONDITION_LEFT;
		returned->quals_left = true;
	}
}

/* Those that are given, before the first group: then quals_left stays as it is. */
static void
evaluate_given(Returned *returned)
{
	for (int c = 0; c < returned->nconditions; c++)
		if (returned->conditions[c].given && returned->conditions[c].state == CONDITION_NEW)
			evaluate_condition(returned, &returned->conditions[c]);
}

static inline bool
compare_codes(int strategy, gpuagg_i128 a, gpuagg_i128 b)
{
	switch (strategy)
	{
		case BTLessStrategyNumber:
			return a < b;
		case BTLessEqualStrategyNumber:
			return a <= b;
		case BTEqualStrategyNumber:
			return a == b;
		case BTGreaterEqualStrategyNumber:
			return a >= b;
		case BTGreaterStrategyNumber:
			return a > b;
		default:
			return a != b;
	}
}

/*
 * May group g pass?  *certain becomes false if a condition is left to the quals.  A constant that
 * is not given is evaluated only where the group has certainly passed all conditions before.
 */
static bool
passes(Returned *returned, const GroupBatch *groups, int g, bool *certain)
{
	bool passed = true;

	for (int c = 0; c < returned->nconditions; c++)
	{
		Condition *condition = &returned->conditions[c];
		gpuagg_i128 code;

		if (condition->state == CONDITION_NEW)
		{
			if (!passed)
				break;
			evaluate_condition(returned, condition);
		}
		if (condition->state == CONDITION_NULL)
			return false;
		if (condition->state == CONDITION_LEFT)
		{
			passed = false;
			continue;
		}
		switch (codes_of_group(returned->scan->outputs[condition->agg], groups, g, &code))
		{
			case CODE_NULL:
				return false;
			case CODE_UNKNOWN:
				passed = false;
				break;
			case CODE_VALUE:
				if (!compare_codes(condition->strategy, code, condition->code))
					return false;
				break;
		}
	}
	*certain &= passed;
	return true;
}

/* ---- LIMIT ---------------------------------------------------------------- */

static void
make_keys(Returned *returned)
{
	GpuAggState *scan = returned->scan;
	GpuAggPlan *plan = scan->plan;
	CustomScan *cscan = (CustomScan *) scan->css.ss.ps.plan;

	returned->ties = plan->limit_ties;
	returned->keys = palloc0(sizeof(SortKey) * (plan->nlimit + 1));
	for (int i = 0; i < plan->nlimit; i++)
	{
		SortKey *key = &returned->keys[i];
		int column = plan->limit[3 * i];

		key->key = column < plan->nkeys ? column : -1;
		key->agg = column - plan->nkeys;
		key->type = getBaseType(
			exprType((Node *) list_nth_node(TargetEntry, cscan->custom_scan_tlist, column)->expr));
		key->descending = plan->limit[3 * i + 1];
		key->nulls_first = plan->limit[3 * i + 2];
		if (key->key < 0 && !codes_exist_for_aggregate(scan->outputs[key->agg], key->type))
		{
			/* those before it are enough, but not to tell groups apart */
			returned->ties = true;
			break;
		}
		returned->nkeys++;
	}
}

int64
returned_limit(GpuAggState *state)
{
	int64 count = 0;

	for (int i = 0; i < 2; i++)
	{
		bool isnull;
		int64 value = DatumGetInt64(ExecEvalExprSwitchContext(
			state->limit_exprs[i], state->css.ss.ps.ps_ExprContext, &isnull));

		if (isnull && i == 0)
			return -1;
		if (!isnull && (value < 0 || pg_add_s64_overflow(count, value, &count)))
			return -1;
	}
	return count;
}

/* Is there a LIMIT now whose heap fits the memory? */
static void
evaluate_limit(Returned *returned)
{
	int64 count;

	returned->evaluated = true;
	returned->limit = -1;
	returned->n = 0;
	if (returned->nkeys == 0)
		return;
	count = returned_limit(returned->scan);
	if (count > 0 && count <= get_hash_memory_limit() / 4 / (returned->nkeys * sizeof(SortCode)))
		returned->limit = count;
}

/* The codes of group g; false if it has a value without one. */
static bool
load_codes(const Returned *returned, const GroupBatch *groups, int g)
{
	for (int k = 0; k < returned->nkeys; k++)
	{
		const SortKey *key = &returned->keys[k];
		SortCode *to = &returned->codes[k];
		CodeKind kind = CODE_VALUE;
		gpuagg_i128 code = 0;

		if (key->key < 0)
			kind = codes_of_group(returned->scan->outputs[key->agg], groups, g, &code);
		else if (groups->keynulls[key->key][g])
			kind = CODE_NULL;
		else
			code = codes_of_value(key->type, groups->keys[key->key][g]);
		if (kind == CODE_UNKNOWN)
			return false;
		to->rank = kind == CODE_VALUE ? 0 : key->nulls_first ? -1 : 1;
		/* the complement is as much less as the code is greater */
		to->code = kind != CODE_VALUE ? 0 : key->descending ? ~code : code;
	}
	return true;
}

static inline int
compare_sort_codes(const SortCode *a, const SortCode *b, int n)
{
	for (int k = 0; k < n; k++)
	{
		if (a[k].rank != b[k].rank)
			return a[k].rank < b[k].rank ? -1 : 1;
		if (a[k].code != b[k].code)
			return a[k].code < b[k].code ? -1 : 1;
	}
	return 0;
}

static inline SortCode *
heap_entry(const Returned *returned, int64 i)
{
	return returned->heap + i * returned->nkeys;
}

static inline void
heap_set(Returned *returned, int64 i, const SortCode *codes)
{
	memcpy(heap_entry(returned, i), codes, returned->nkeys * sizeof(SortCode));
}

/* Puts codes into the hole at the root, or what comes up from below. */
static void
sift_down(Returned *returned, const SortCode *codes)
{
	int64 hole = 0;

	for (;;)
	{
		int64 child = 2 * hole + 1;

		if (child >= returned->n)
			break;
		if (child + 1 < returned->n &&
			compare_sort_codes(heap_entry(returned, child + 1), heap_entry(returned, child),
							   returned->nkeys) > 0)
			child++;
		if (compare_sort_codes(heap_entry(returned, child), codes, returned->nkeys) <= 0)
			break;
		heap_set(returned, hole, heap_entry(returned, child));
		hole = child;
	}
	heap_set(returned, hole, codes);
}

static void
sift_up(Returned *returned, const SortCode *codes)
{
	int64 hole;

	if (returned->n == returned->capacity)
	{
		returned->capacity = Min(Max(returned->capacity * 2, 64), returned->limit);
		if (returned->heap)
			returned->heap = repalloc_huge(returned->heap,
										   returned->capacity * returned->nkeys * sizeof(SortCode));
		else
			returned->heap = MemoryContextAllocHuge(
				returned->cxt, returned->capacity * returned->nkeys * sizeof(SortCode));
	}
	hole = returned->n++;
	while (hole > 0 &&
		   compare_sort_codes(heap_entry(returned, (hole - 1) / 2), codes, returned->nkeys) < 0)
	{
		heap_set(returned, hole, heap_entry(returned, (hole - 1) / 2));
		hole = (hole - 1) / 2;
	}
	heap_set(returned, hole, codes);
}

/*
 * Are the best groups so far better than the codes at hand, or, unless those are wanted, as good?
 */
static bool
is_beaten(const Returned *returned)
{
	int order;

	if (returned->n < returned->limit)
		return false;
	order = compare_sort_codes(returned->codes, heap_entry(returned, 0), returned->nkeys);
	return order > 0 || (order == 0 && !returned->ties);
}

/* The codes at hand are of a group that passes the quals and is not beaten. */
static void
enter(Returned *returned)
{
	if (returned->n < returned->limit)
		sift_up(returned, returned->codes);
	else if (compare_sort_codes(returned->codes, heap_entry(returned, 0), returned->nkeys) < 0)
		sift_down(returned, returned->codes);
}

/* ---- groups -------------------------------------------------------------- */

Returned *
returned_open(GpuAggState *state)
{
	Returned *returned = palloc0(sizeof(Returned));

	returned->scan = state;
	returned->cxt = CurrentMemoryContext;
	make_conditions(returned);
	make_keys(returned);
	if (returned->nconditions == 0 && returned->nkeys == 0)
	{
		pfree(returned);
		return NULL;
	}
	returned->codes = palloc0(sizeof(SortCode) * (returned->nkeys + 1));
	return returned;
}

void
returned_reset(Returned *returned)
{
	returned->evaluated = false;
	returned->quals_left = returned->others;
	for (int c = 0; c < returned->nconditions; c++)
		returned->conditions[c].state = CONDITION_NEW;
}

/* The condition for an engine; false: it has no such form. */
static bool
offer_condition(const Returned *returned, const Condition *condition, EngineCondition *out)
{
	gpuagg_i128 code;

	code = condition->code;
	if (condition->state != CONDITION_CODE || condition->strategy == 0 ||
		!codes_find_slots(returned->scan->outputs[condition->agg], &out->value.slot,
						  &out->value.counted))
		return false;
	out->value.key = -1;
	out->min = ENGINE_NO_MIN;
	out->max = ENGINE_NO_MAX;
	if (condition->strategy <= BTEqualStrategyNumber)
		out->max = code - (condition->strategy == BTLessStrategyNumber);
	if (condition->strategy >= BTEqualStrategyNumber)
		out->min = code + (condition->strategy == BTGreaterStrategyNumber);
	return true;
}

/* The limit by the first keys that have such a form, if any. */
static void
offer_keys(const Returned *returned, EngineLimit *limit)
{
	for (int k = 0; k < Min(returned->nkeys, ENGINE_MAX_SORT); k++)
	{
		const SortKey *key = &returned->keys[k];
		EngineSort *by = &limit->by[k];

		*by = (EngineSort){{-1, key->key, -1}, key->descending, key->nulls_first};
		if (key->key < 0 &&
			!codes_find_slots(returned->scan->outputs[key->agg], &by->value.slot,
							  &by->value.counted))
			break;
		limit->nsort++;
	}
	if (limit->nsort > 0)
		limit->count = returned->limit;
	limit->ties = returned->ties || limit->nsort < returned->nkeys;
}

void
returned_offer(Returned *returned, Engine *engine)
{
	EngineLimit limit = {0};
	bool all = true;

	if (!returned->evaluated)
		evaluate_limit(returned);
	if (engine->ops->limit == NULL || returned->scan->plan->nkeys == 0)
		return;
	evaluate_given(returned);
	for (int c = 0; c < returned->nconditions; c++)
	{
		/* the first group that meets it may have it fail, before any condition behind it */
		if (!returned->conditions[c].given)
			break;
		if (limit.nconditions < ENGINE_MAX_CONDITIONS &&
			offer_condition(returned, &returned->conditions[c],
							&limit.conditions[limit.nconditions]))
			limit.nconditions++;
		else
			all = false;
	}
	/* the best are among those that pass all quals */
	if (all && !returned->quals_left && returned->limit > 0)
		offer_keys(returned, &limit);
	if (limit.count > 0 || limit.nconditions > 0)
		engine->ops->limit(engine, &limit);
}

int
returned_choose(Returned *returned, const GroupBatch *groups, const int **chosen, int *failed)
{
	int n = 0;
	bool limited;

	if (!returned->evaluated)
		evaluate_limit(returned);
	evaluate_given(returned);
	if (groups->ngroups > returned->nchosen_max)
	{
		returned->nchosen_max = groups->ngroups;
		if (returned->chosen)
			pfree(returned->chosen);
		returned->chosen =
			MemoryContextAllocHuge(returned->cxt, sizeof(int) * returned->nchosen_max);
	}
	*failed = 0;
	limited = returned->limit >= 0;
	for (int g = 0; g < groups->ngroups; g++)
	{
		bool certain = !returned->quals_left;

		if (returned->nconditions > 0 && !passes(returned, groups, g, &certain))
		{
			++*failed;
			continue;
		}
		if (limited && load_codes(returned, groups, g))
		{
			if (is_beaten(returned))
				continue;
			if (certain)
				enter(returned);
		}
		returned->chosen[n++] = g;
	}
	*chosen = returned->chosen;
	return n;
}

/* A group that has entered ties with the worst at most, and is to be returned then. */
bool
returned_confirm(Returned *returned, const GroupBatch *groups, int g)
{
	int order;

	if (returned->limit < 0 || !load_codes(returned, groups, g))
		return true;
	if (returned->quals_left)
	{
		if (is_beaten(returned))
			return false;
		enter(returned);
		return true;
	}
	if (returned->n < returned->limit)
		return true;
	order = compare_sort_codes(returned->codes, heap_entry(returned, 0), returned->nkeys);
	return order <= 0;
}

int
returned_columns(const Returned *returned)
{
	return returned ? returned->nkeys : 0;
}
