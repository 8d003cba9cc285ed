/*
 * group_filter.c
 *	  HAVING and ORDER BY ... LIMIT on the states of groups.
 *
 * A group that HAVING or the LIMIT above the scan will drop need not become a tuple.  Its states
 * suffice to decide that, if the compared values have codes (aggregates/agg_codes.h).
 *
 * HAVING.  The scan's quals of the form `aggregate op constant` are conditions on codes, which
 * are evaluated first.  All quals are evaluated again for the tuples that are left, so the filter
 * may only drop groups.  Conditions are evaluated in the order of the quals.  A condition behind
 * a qual that might raise an error, or that calls a volatile function, is not evaluated here.
 * The constant of a condition may be an InitPlan: it runs when the first group has passed all
 * quals before it.
 *
 * ORDER BY ... LIMIT.  PostgreSQL's Sort and Limit stay above the scan.  A bounded heap has the
 * codes of the best `limit` groups so far.  A group that is worse than all of these cannot be
 * among the best in the end, and is dropped.  Any other group is returned, so that Sort gets at
 * least the rows it needs.  All groups of a batch enter the heap before the first of them is
 * returned.  If ORDER BY continues with expressions without codes, or for WITH TIES, groups that
 * tie with the worst group of the heap are returned as well.
 *
 * If quals are left for tuples, a group enters the heap only after its tuple has passed them.  A
 * group with a value without a code is returned, and does not enter the heap.
 *
 * Each participant of a parallel plan that returns groups has a heap of its own.  LIMIT and OFFSET
 * are evaluated here as in nodeLimit.c, which has raised their errors by then.
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

#include "aggregates/agg_codes.h"
#include "analysis/analysis.h"
#include "exec/exec.h"
#include "exec/group_filter.h"

/* A condition `aggregate op constant`. */
typedef struct Condition
{
	int agg;
	int strategy; /* btree strategy of the operator; 0: not equal */
	Oid type;     /* type of the aggregate's result */
	Oid constant_type;
	ExprState *constant;
	bool given; /* the constant is a Const or an external parameter */
	enum
	{
		CONDITION_NEW,  /* the constant is not evaluated yet */
		CONDITION_CODE, /* the constant has a code */
		CONDITION_NULL, /* the constant is NULL: no group passes */
		CONDITION_LEFT  /* the constant has no code: the qual decides */
	} state;
	gpuagg_i128 code; /* with CONDITION_CODE */
} Condition;

/* A sort key: a key or an aggregate. */
typedef struct SortKey
{
	int key; /* or -1 */
	int agg;
	Oid type;
	bool descending;
	bool nulls_first;
} SortKey;

/* A value of a sort key.  Smaller ones come first. */
typedef struct SortCode
{
	int rank; /* 0, or -1 or 1 for a NULL that comes first or last */
	gpuagg_i128 code;
} SortCode;

struct GroupFilter
{
	GpuAggState *scan;
	MemoryContext cxt;
	int nconditions;
	Condition *conditions;
	bool has_quals;  /* some qual is not a condition with a given constant */
	bool quals_left; /* groups that pass the conditions may still fail the quals */

	int nkeys;
	SortKey *keys;
	bool ties;      /* groups that tie with the worst group of the heap are returned */
	bool evaluated; /* limit is set */
	int64 limit;    /* -1: none */
	int64 n;        /* groups in the heap; the worst is at its root */
	int64 capacity;
	SortCode *heap;  /* [n][nkeys] */
	SortCode *codes; /* [nkeys] the current group, see load_codes() */

	int nchosen_max; /* capacity of `chosen` */
	int *chosen;
	bool exact; /* the groups that were chosen last all pass the quals, and no limit drops them */
};

/* ---- HAVING --------------------------------------------------------------- */

/*
 * Returns the index of the aggregate that a column of the scan tuple is; -1 if the node is not such
 * a column.
 */
static int
aggregate_of(const GpuAggState *scan, Node *node)
{
	Var *var = (Var *) node;

	if (!IsA(node, Var) || var->varno != INDEX_VAR || var->varattno <= scan->plan->nkeys ||
		var->varattno > scan->plan->nkeys + scan->plan->naggs)
		return -1;
	return var->varattno - 1 - scan->plan->nkeys;
}

/*
 * Returns the operator's strategy in the type's default btree order; 0 if it is "not equal"; -1 if
 * it is neither.
 */
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

/*
 * Makes a condition of a qual. Returns false if the qual has another form, or the aggregate's
 * values have no codes.
 */
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
 * Makes the conditions among the quals, which are a list of ANDed expressions.  Behind a qual that
 * is not a condition, only quals with given constants become conditions, and none does behind a
 * qual that may fail or is volatile.
 */
static void
make_conditions(GroupFilter *filter)
{
	GpuAggState *scan = filter->scan;
	List *quals = scan->css.ss.ps.plan->qual;
	bool all = true; /* all quals so far are conditions */
	ListCell *lc;

	filter->conditions = palloc0(sizeof(Condition) * Max(list_length(quals), 1));
	foreach (lc, quals)
	{
		Condition *condition = &filter->conditions[filter->nconditions];
		bool possible = make_condition(scan, lfirst(lc), condition);

		if (possible && (condition->given || all))
		{
			filter->nconditions++;
			filter->quals_left |= !condition->given;
			continue;
		}
		all = false;
		filter->quals_left = true;
		if (!expr_cannot_fail(lfirst(lc), scan->css.ss.ps.state->es_param_list_info))
			break;
	}
	filter->has_quals = filter->quals_left;
}

/*
 * Evaluates the constant of a condition and sets its state.  Called for the first group that is
 * tested: without such a group PostgreSQL would not evaluate it either.
 */
static void
evaluate_condition(GroupFilter *filter, Condition *condition)
{
	ExprContext *econtext = filter->scan->css.ss.ps.ps_ExprContext;
	bool isnull;
	Datum value = ExecEvalExprSwitchContext(condition->constant, econtext, &isnull);

	if (isnull)
		condition->state = CONDITION_NULL;
	else if (codes_of_constant(filter->scan->outputs[condition->agg], condition->type,
							   condition->constant_type, value, &condition->code))
		condition->state = CONDITION_CODE;
	else
	{
		condition->state = CONDITION_LEFT;
		filter->quals_left = true;
	}
}

/*
 * Evaluates the given constants before the first group.  Then quals_left does not change any more.
 */
static void
evaluate_given(GroupFilter *filter)
{
	for (int c = 0; c < filter->nconditions; c++)
		if (filter->conditions[c].given && filter->conditions[c].state == CONDITION_NEW)
			evaluate_condition(filter, &filter->conditions[c]);
}

/* Returns whether "a op b" is true; strategy: as in Condition. */
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
 * Returns whether group g may pass the conditions.  *certain becomes false if the quals must
 * decide. A constant that is not given is evaluated only if the group has certainly passed all
 * conditions before it.
 */
static bool
may_pass(GroupFilter *filter, const GroupBatch *groups, int g, bool *certain)
{
	bool passed = true;

	for (int c = 0; c < filter->nconditions; c++)
	{
		Condition *condition = &filter->conditions[c];
		gpuagg_i128 code;

		if (condition->state == CONDITION_NEW)
		{
			if (!passed)
				break;
			evaluate_condition(filter, condition);
		}
		if (condition->state == CONDITION_NULL)
			return false;
		if (condition->state == CONDITION_LEFT)
		{
			passed = false;
			continue;
		}
		switch (codes_of_group(filter->scan->outputs[condition->agg], groups, g, &code))
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

/* Sets the sort keys, up to the first one whose values have no codes. */
static void
make_keys(GroupFilter *filter)
{
	GpuAggState *scan = filter->scan;
	GpuAggPlan *plan = scan->plan;
	CustomScan *cscan = (CustomScan *) scan->css.ss.ps.plan;

	filter->ties = plan->limit_ties;
	filter->keys = palloc0(sizeof(SortKey) * (plan->nlimit + 1));
	for (int i = 0; i < plan->nlimit; i++)
	{
		SortKey *key = &filter->keys[i];
		int column = plan->limit[3 * i];

		key->key = column < plan->nkeys ? column : -1;
		key->agg = column - plan->nkeys;
		key->type = getBaseType(
			exprType((Node *) list_nth_node(TargetEntry, cscan->custom_scan_tlist, column)->expr));
		key->descending = plan->limit[3 * i + 1];
		key->nulls_first = plan->limit[3 * i + 2];
		if (key->key < 0 && !codes_exist_for_aggregate(scan->outputs[key->agg], key->type))
		{
			/* the sort keys before it suffice, but groups that are equal in them may differ */
			filter->ties = true;
			break;
		}
		filter->nkeys++;
	}
}

int64
group_filter_limit(GpuAggState *state)
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

/* Sets filter->limit, if there is a LIMIT whose heap fits in memory. */
static void
evaluate_limit(GroupFilter *filter)
{
	int64 count;

	filter->evaluated = true;
	filter->limit = -1;
	filter->n = 0;
	if (filter->nkeys == 0)
		return;
	count = group_filter_limit(filter->scan);
	if (count > 0 && count <= get_hash_memory_limit() / 4 / (filter->nkeys * sizeof(SortCode)))
		filter->limit = count;
}

/* Sets filter->codes to the codes of group g; false if it has a value without a code. */
static bool
load_codes(const GroupFilter *filter, const GroupBatch *groups, int g)
{
	for (int k = 0; k < filter->nkeys; k++)
	{
		const SortKey *key = &filter->keys[k];
		SortCode *to = &filter->codes[k];
		CodeKind kind = CODE_VALUE;
		gpuagg_i128 code = 0;

		if (key->key < 0)
			kind = codes_of_group(filter->scan->outputs[key->agg], groups, g, &code);
		else if (groups->keynulls[key->key][g])
			kind = CODE_NULL;
		else
			code = codes_of_value(key->type, groups->keys[key->key][g]);
		if (kind == CODE_UNKNOWN)
			return false;
		to->rank = kind == CODE_VALUE ? 0 : key->nulls_first ? -1 : 1;
		/* the complement reverses the order */
		to->code = kind != CODE_VALUE ? 0 : key->descending ? ~code : code;
	}
	return true;
}

/* Compares the codes of n sort keys; the result is less than 0 if a comes first. */
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

/* Returns the codes of entry i of the heap. */
static inline SortCode *
heap_entry(const GroupFilter *filter, int64 i)
{
	return filter->heap + i * filter->nkeys;
}

/* Sets entry i of the heap to these codes. */
static inline void
heap_set(GroupFilter *filter, int64 i, const SortCode *codes)
{
	memcpy(heap_entry(filter, i), codes, filter->nkeys * sizeof(SortCode));
}

/* Replaces the worst group of the heap, its root, by these codes, and restores the heap. */
static void
sift_down(GroupFilter *filter, const SortCode *codes)
{
	int64 hole = 0;

	for (;;)
	{
		int64 child = 2 * hole + 1;

		if (child >= filter->n)
			break;
		if (child + 1 < filter->n &&
			compare_sort_codes(heap_entry(filter, child + 1), heap_entry(filter, child),
							   filter->nkeys) > 0)
			child++;
		if (compare_sort_codes(heap_entry(filter, child), codes, filter->nkeys) <= 0)
			break;
		heap_set(filter, hole, heap_entry(filter, child));
		hole = child;
	}
	heap_set(filter, hole, codes);
}

/* Adds codes to the heap, which grows up to filter->limit entries. */
static void
sift_up(GroupFilter *filter, const SortCode *codes)
{
	int64 hole;

	if (filter->n == filter->capacity)
	{
		filter->capacity = Min(Max(filter->capacity * 2, 64), filter->limit);
		if (filter->heap)
			filter->heap =
				repalloc_huge(filter->heap, filter->capacity * filter->nkeys * sizeof(SortCode));
		else
			filter->heap = MemoryContextAllocHuge(
				filter->cxt, filter->capacity * filter->nkeys * sizeof(SortCode));
	}
	hole = filter->n++;
	while (hole > 0 &&
		   compare_sort_codes(heap_entry(filter, (hole - 1) / 2), codes, filter->nkeys) < 0)
	{
		heap_set(filter, hole, heap_entry(filter, (hole - 1) / 2));
		hole = (hole - 1) / 2;
	}
	heap_set(filter, hole, codes);
}

/*
 * Returns whether the group with filter->codes cannot be among the best `limit` ones: these have
 * been found, and it is worse than all of them, or ties with the worst one and ties are not
 * returned.
 */
static bool
is_beaten(const GroupFilter *filter)
{
	int order;

	if (filter->n < filter->limit)
		return false;
	order = compare_sort_codes(filter->codes, heap_entry(filter, 0), filter->nkeys);
	return order > 0 || (order == 0 && !filter->ties);
}

/* Adds filter->codes, of a group that passes the quals and is not beaten, to the heap. */
static void
enter_heap(GroupFilter *filter)
{
	if (filter->n < filter->limit)
		sift_up(filter, filter->codes);
	else if (compare_sort_codes(filter->codes, heap_entry(filter, 0), filter->nkeys) < 0)
		sift_down(filter, filter->codes);
}

/* ---- groups -------------------------------------------------------------- */

GroupFilter *
group_filter_open(GpuAggState *state)
{
	GroupFilter *filter = palloc0(sizeof(GroupFilter));

	filter->scan = state;
	filter->cxt = CurrentMemoryContext;
	make_conditions(filter);
	make_keys(filter);
	if (filter->nconditions == 0 && filter->nkeys == 0)
	{
		pfree(filter);
		return NULL;
	}
	filter->codes = palloc0(sizeof(SortCode) * (filter->nkeys + 1));
	return filter;
}

void
group_filter_reset(GroupFilter *filter)
{
	filter->evaluated = false;
	filter->quals_left = filter->has_quals;
	for (int c = 0; c < filter->nconditions; c++)
		filter->conditions[c].state = CONDITION_NEW;
}

/*
 * Translates a condition for an engine into *out; returns false if engines have no such condition.
 */
static bool
engine_condition(const GroupFilter *filter, const Condition *condition, EngineCondition *out)
{
	gpuagg_i128 code;

	code = condition->code;
	if (condition->state != CONDITION_CODE || condition->strategy == 0 ||
		!codes_find_slots(filter->scan->outputs[condition->agg], &out->value.slot,
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

/*
 * Sets limit to the LIMIT by as many leading sort keys as an engine can compare.  If there are
 * none, limit->count stays 0.
 */
static void
set_engine_limit(const GroupFilter *filter, EngineLimit *limit)
{
	for (int k = 0; k < Min(filter->nkeys, ENGINE_MAX_SORT); k++)
	{
		const SortKey *key = &filter->keys[k];
		EngineSort *by = &limit->by[k];

		*by = (EngineSort){{-1, key->key, -1}, key->descending, key->nulls_first};
		if (key->key < 0 &&
			!codes_find_slots(filter->scan->outputs[key->agg], &by->value.slot, &by->value.counted))
			break;
		limit->nsort++;
	}
	if (limit->nsort > 0)
		limit->count = filter->limit;
	limit->ties = filter->ties || limit->nsort < filter->nkeys;
}

void
group_filter_offer(GroupFilter *filter, Engine *engine)
{
	EngineLimit limit = {0};
	bool all = true;

	if (!filter->evaluated)
		evaluate_limit(filter);
	if (engine->ops->limit == NULL || filter->scan->plan->nkeys == 0)
		return;
	evaluate_given(filter);
	for (int c = 0; c < filter->nconditions; c++)
	{
		/* its evaluation may fail, and must come before the conditions behind it */
		if (!filter->conditions[c].given)
			break;
		if (limit.nconditions < ENGINE_MAX_CONDITIONS &&
			engine_condition(filter, &filter->conditions[c], &limit.conditions[limit.nconditions]))
			limit.nconditions++;
		else
			all = false;
	}
	/* the best groups are those that pass all quals */
	if (all && !filter->quals_left && filter->limit > 0)
		set_engine_limit(filter, &limit);
	if (limit.count > 0 || limit.nconditions > 0)
		engine->ops->limit(engine, &limit);
}

int
group_filter_choose(GroupFilter *filter, const GroupBatch *groups, const int **chosen, int *failed)
{
	int n = 0;
	bool limited;

	if (!filter->evaluated)
		evaluate_limit(filter);
	evaluate_given(filter);
	if (groups->ngroups > filter->nchosen_max)
	{
		filter->nchosen_max = groups->ngroups;
		if (filter->chosen)
			pfree(filter->chosen);
		filter->chosen = MemoryContextAllocHuge(filter->cxt, sizeof(int) * filter->nchosen_max);
	}
	*failed = 0;
	limited = filter->limit >= 0;
	filter->exact = !limited;
	for (int g = 0; g < groups->ngroups; g++)
	{
		bool certain = !filter->quals_left;

		if (filter->nconditions > 0 && !may_pass(filter, groups, g, &certain))
		{
			++*failed;
			continue;
		}
		if (limited && load_codes(filter, groups, g))
		{
			if (is_beaten(filter))
				continue;
			if (certain)
				enter_heap(filter);
		}
		filter->exact &= certain;
		filter->chosen[n++] = g;
	}
	*chosen = filter->chosen;
	return n;
}

bool
group_filter_is_exact(const GroupFilter *filter)
{
	return filter->exact;
}

bool
group_filter_confirm(GroupFilter *filter, const GroupBatch *groups, int g)
{
	int order;

	if (filter->limit < 0 || !load_codes(filter, groups, g))
		return true;
	if (filter->quals_left)
	{
		if (is_beaten(filter))
			return false;
		enter_heap(filter);
		return true;
	}
	if (filter->n < filter->limit)
		return true;
	order = compare_sort_codes(filter->codes, heap_entry(filter, 0), filter->nkeys);
	return order <= 0;
}
