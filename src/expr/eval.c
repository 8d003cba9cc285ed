/*
 * eval.c
 *	  Runs vector operations: the loops of vector_ops.h, three-valued logic, calls of core's
 *	  functions; and the scalar fallback.
 *
 * A loop computes all rows, whatever their states, so that it vectorizes.  The states of the result
 * are set afterwards, and only if an argument has rows that are not values.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "optimizer/clauses.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "columns/column_value.h"
#include "common/compat.h"
#include "expr/expr_internal.h"
#include "operators/vector_functions.h"
#include "operators/vector_program.h"

/* ---- states ---------------------------------------------------------------- */

/*
 * Sets the states of r from those of its arguments a and b: the larger state of each row, so
 * VEC_FALLBACK before VEC_NULL before VEC_VALUE. b may be NULL.
 */
static void
strict_states(const ExprOp *op, int n)
{
	Vec *r = op->r;
	const Vec *a = op->a;
	const Vec *b = op->b;

	if (b != NULL && b->all_values)
		b = NULL;
	if (a->all_values)
	{
		a = b;
		b = NULL;
	}
	r->all_values = (a == NULL);
	if (r->all_values)
		return;
	if (b == NULL)
		memcpy(r->state, a->state, n);
	else
		for (int i = 0; i < n; i++)
			r->state[i] = Max(a->state[i], b->state[i]);
}

void
expr_strict(const ExprOp *op, int n, const uint8 *fallback)
{
	Vec *r = op->r;

	strict_states(op, n);
	if (fallback == NULL)
		return;
	if (r->all_values)
		memset(r->state, VEC_VALUE, n);
	r->all_values = false;
	for (int i = 0; i < n; i++)
		if (fallback[i] && r->state[i] == VEC_VALUE)
			r->state[i] = VEC_FALLBACK;
}

/* ---- scalar functions ------------------------------------------------------ */

#define X(NAME, value_t, ...) typedef value_t value_##NAME;
COLUMN_SCALARS(X)
#undef X

/* The loop of a row of vector_ops.h; `load` declares the arguments of row i. */
#define SCALAR_LOOP(R, condition, value, load) \
	value_##R *restrict rs = op->r->values; \
	uint8 fallback[EXPR_ROWS]; \
	uint8 any = 0; \
\
	for (int i = 0; i < n; i++) \
	{ \
		load value_##R r = (value); \
\
		rs[i] = r; \
		fallback[i] = (condition); \
		any |= fallback[i]; \
	} \
	expr_strict(op, n, any ? fallback : NULL)

#define OP1(FUNC, R, A, condition, value) \
	static void run_##FUNC(const ExprOp *op, int n) \
	{ \
		const value_##A *restrict as = op->a->values; \
\
		SCALAR_LOOP(R, condition, value, value_##A a = as[i];); \
	}

#define OP2(FUNC, R, A, B, condition, value) \
	static void run_##FUNC(const ExprOp *op, int n) \
	{ \
		const value_##A *as = op->a->values; \
		const value_##B *bs = op->b->values; \
\
		SCALAR_LOOP(R, condition, value, value_##A a = as[i]; value_##B b = bs[i];); \
	}

/* In most uses the second argument is a constant that is not NaN; it gets a loop of its own. */
#define OP2_FLOAT(FUNC, A, B, simple, value) \
	static void run_##FUNC(const ExprOp *op, int n) \
	{ \
		const value_##A *as = op->a->values; \
		const value_##B *bs = op->b->values; \
\
		if (op->b->constant && !isnan(bs[0])) \
		{ \
			const value_##B b = bs[0]; \
\
			SCALAR_LOOP(I8, 0, simple, value_##A a = as[i];); \
		} \
		else \
		{ \
			SCALAR_LOOP(I8, 0, value, value_##A a = as[i]; value_##B b = bs[i];); \
		} \
	}

#define HOST1 OP1
#define HOST2 OP2
#include "operators/vector_ops.h"
#undef OP1
#undef OP2
#undef OP2_FLOAT
#undef HOST1
#undef HOST2

#define OP1(FUNC, R, A, condition, value) \
	{FUNC, VECTOR_##FUNC, run_##FUNC, COLUMN_##R, 1, {COLUMN_##A}},
#define OP2(FUNC, R, A, B, condition, value) \
	{FUNC, VECTOR_##FUNC, run_##FUNC, COLUMN_##R, 2, {COLUMN_##A, COLUMN_##B}},
#define HOST1(FUNC, R, A, condition, value) \
	{FUNC, VECTOR_NONE, run_##FUNC, COLUMN_##R, 1, {COLUMN_##A}},
#define HOST2(FUNC, R, A, B, condition, value) \
	{FUNC, VECTOR_NONE, run_##FUNC, COLUMN_##R, 2, {COLUMN_##A, COLUMN_##B}},
#define OP2_FLOAT(FUNC, A, B, simple, value) \
	{FUNC, VECTOR_##FUNC, run_##FUNC, COLUMN_I8, 2, {COLUMN_##A, COLUMN_##B}},
static const ExprFunction expr_functions[] = {
#include "operators/vector_ops.h"
};
#undef OP1
#undef OP2
#undef OP2_FLOAT
#undef HOST1
#undef HOST2

const ExprFunction *
expr_find_function(Oid funcid)
{
	for (int i = 0; i < lengthof(expr_functions); i++)
		if (expr_functions[i].funcid == funcid)
			return &expr_functions[i];
	return NULL;
}

const ExprFunction *
expr_function_of(const ExprOp *op)
{
	for (int i = 0; i < lengthof(expr_functions); i++)
		if (expr_functions[i].run == op->run)
			return &expr_functions[i];
	return NULL;
}

/* ---- three-valued logic ---------------------------------------------------- */

/*
 * AND and OR evaluate their arguments from left to right and stop at one that is `stop` (false for
 * AND, true for OR), as core does: an error to its right does not occur.
 */
static inline void
run_junction(const ExprOp *op, int n, int8 stop)
{
	const int8 *a = op->a->values;
	const int8 *b = op->b->values;
	int8 *r = op->r->values;

	op->r->all_values = op->a->all_values && op->b->all_values;
	if (op->r->all_values)
	{
		for (int i = 0; i < n; i++)
			r[i] = stop ? (a[i] | b[i]) : (a[i] & b[i]);
		return;
	}
	for (int i = 0; i < n; i++)
	{
		uint8 sa = expr_state(op->a, i);
		uint8 sb = expr_state(op->b, i);
		uint8 state;

		if (sa == VEC_VALUE && a[i] == stop)
			state = VEC_VALUE, r[i] = stop;
		else if (sa == VEC_FALLBACK || sb == VEC_FALLBACK)
			state = VEC_FALLBACK;
		else if (sb == VEC_VALUE && b[i] == stop)
			state = VEC_VALUE, r[i] = stop;
		else
		{
			state = Max(sa, sb);
			r[i] = !stop;
		}
		op->r->state[i] = state;
	}
}

void
expr_run_and(const ExprOp *op, int n)
{
	run_junction(op, n, 0);
}

void
expr_run_or(const ExprOp *op, int n)
{
	run_junction(op, n, 1);
}

/* r = NOT a */
void
expr_run_not(const ExprOp *op, int n)
{
	const int8 *a = op->a->values;
	int8 *r = op->r->values;

	for (int i = 0; i < n; i++)
		r[i] = !a[i];
	expr_strict(op, n, NULL);
}

/*
 * Sets the states of r, a test of a that is never NULL (IS NULL, IS TRUE): VEC_FALLBACK where a is
 * VEC_FALLBACK, and VEC_VALUE elsewhere.
 */
static void
set_never_null(Vec *r, const Vec *a, int n)
{
	r->all_values = true;
	for (int i = 0; i < n; i++)
		if (expr_state(a, i) == VEC_FALLBACK)
			r->all_values = false;
	if (!r->all_values)
		for (int i = 0; i < n; i++)
			r->state[i] = a->state[i] == VEC_FALLBACK ? VEC_FALLBACK : VEC_VALUE;
}

/* r = a IS NULL if data is NULL, else a IS NOT NULL */
void
expr_run_isnull(const ExprOp *op, int n)
{
	int8 *r = op->r->values;
	bool negate = op->data != NULL;

	for (int i = 0; i < n; i++)
		r[i] = (expr_state(op->a, i) == VEC_NULL) != negate;
	set_never_null(op->r, op->a, n);
}

/* r = a IS [NOT] TRUE, FALSE or UNKNOWN; data: the BooleanTest */
void
expr_run_istrue(const ExprOp *op, int n)
{
	const int8 *a = op->a->values;
	int8 *r = op->r->values;
	BoolTestType test = ((BooleanTest *) op->data)->booltesttype;

	for (int i = 0; i < n; i++)
	{
		bool null = expr_state(op->a, i) == VEC_NULL;
		bool yes = !null && a[i];
		bool no = !null && !a[i];

		switch (test)
		{
			case IS_TRUE:
				r[i] = yes;
				break;
			case IS_NOT_TRUE:
				r[i] = !yes;
				break;
			case IS_FALSE:
				r[i] = no;
				break;
			case IS_NOT_FALSE:
				r[i] = !no;
				break;
			case IS_UNKNOWN:
				r[i] = null;
				break;
			case IS_NOT_UNKNOWN:
				r[i] = !null;
				break;
		}
	}
	set_never_null(op->r, op->a, n);
}

/* ---- choosing between vectors ---------------------------------------------- */

/* Sets row i of r as from[i] says. 0: row i of a; 1: row i of b; 2: VEC_FALLBACK; 3: NULL. */
static void
choose_rows(Vec *r, const Vec *a, const Vec *b, const uint8 *from, int n)
{
	uint8 all_from = 0;

#define CHOOSE(type) \
	for (int i = 0; i < n; i++) \
	((type *) r->values)[i] = \
		(from[i] == 1 ? (const type *) b->values : (const type *) a->values)[i]
	BY_WIDTH(r->type, CHOOSE);
#undef CHOOSE
	for (int i = 0; i < n; i++)
		all_from |= from[i];
	r->all_values = a->all_values && b->all_values && all_from <= 1;
	if (r->all_values)
		return;
	for (int i = 0; i < n; i++)
		r->state[i] = from[i] == 0 ? expr_state(a, i) :
			from[i] == 1           ? expr_state(b, i) :
			from[i] == 2           ? VEC_FALLBACK :
									 VEC_NULL;
}

/* r = CASE WHEN a THEN b ELSE c */
void
expr_run_select(const ExprOp *op, int n)
{
	const int8 *cond = op->a->values;
	uint8 from[EXPR_ROWS];

	for (int i = 0; i < n; i++)
	{
		uint8 state = expr_state(op->a, i);

		from[i] = state == VEC_FALLBACK ? 2 : !(state == VEC_VALUE && cond[i]);
	}
	choose_rows(op->r, op->b, op->c, from, n);
}

/* r = COALESCE(a, b) */
void
expr_run_coalesce(const ExprOp *op, int n)
{
	uint8 from[EXPR_ROWS];

	for (int i = 0; i < n; i++)
		from[i] = expr_state(op->a, i) == VEC_NULL;
	choose_rows(op->r, op->a, op->b, from, n);
}

/* r = NULLIF(a, x); b: the result of a = x */
void
expr_run_nullif(const ExprOp *op, int n)
{
	const int8 *equal = op->b->values;
	uint8 from[EXPR_ROWS];

	for (int i = 0; i < n; i++)
	{
		uint8 state = expr_state(op->b, i);

		from[i] = state == VEC_FALLBACK ? 2 : (state == VEC_VALUE && equal[i]) ? 3 : 0;
	}
	choose_rows(op->r, op->a, op->a, from, n);
}

/* r = a IS DISTINCT FROM b; c: the result of a = b */
void
expr_run_distinct(const ExprOp *op, int n)
{
	const int8 *equal = op->c->values;
	int8 *r = op->r->values;

	op->r->all_values = false;
	for (int i = 0; i < n; i++)
	{
		uint8 sa = expr_state(op->a, i);
		uint8 sb = expr_state(op->b, i);
		bool fallback = sa == VEC_FALLBACK || sb == VEC_FALLBACK;

		if (!fallback && sa == VEC_VALUE && sb == VEC_VALUE)
		{
			fallback = expr_state(op->c, i) == VEC_FALLBACK;
			r[i] = !equal[i];
		}
		else
			r[i] = sa != sb;
		op->r->state[i] = fallback ? VEC_FALLBACK : VEC_VALUE;
	}
}

/* r = GREATEST or LEAST of a and b; c: true where b replaces a */
void
expr_run_greatest(const ExprOp *op, int n)
{
	const int8 *replaces = op->c->values;
	uint8 from[EXPR_ROWS];

	for (int i = 0; i < n; i++)
	{
		uint8 sa = expr_state(op->a, i);
		uint8 sb = expr_state(op->b, i);

		if (sa == VEC_FALLBACK || sb == VEC_FALLBACK)
			from[i] = 2;
		else if (sa == VEC_NULL || sb == VEC_NULL)
			from[i] = sa == VEC_NULL;
		else
			from[i] = expr_state(op->c, i) == VEC_FALLBACK ? 2 : replaces[i];
	}
	choose_rows(op->r, op->a, op->b, from, n);
}

/* ---- core's functions ------------------------------------------------------ */

Datum
expr_datum(const Vec *vec, int row)
{
	if (vec->scales)
		return decimal_to_numeric_shown(((const gpuagg_i128 *) vec->values)[row], vec->scale,
										((const int32 *) vec->scales->values)[row]);
	return column_datum(vec->type, vec->scale, vec->values, row);
}

/*
 * Stores a Datum that is not NULL as the value of a row.  Returns false if the vector's type cannot
 * represent it.
 */
static bool
store_datum(const Vec *vec, int row, Datum value)
{
	return column_store(vec->type, vec->scale, vec->values, row, value);
}

/*
 * r: the Datums of a as values of the column type of r.  If r is a boolean and a is not, any value
 * but 0 becomes true.
 */
void
expr_run_relabel(const ExprOp *op, int n)
{
	bool truth = op->r->typid == BOOLOID;

	expr_strict(op, n, NULL);
	if (!truth && op->a->type != COLUMN_DATUM && op->r->type != COLUMN_DATUM)
		memcpy(op->r->values, op->a->values, (size_t) n * column_width(op->r->type));
	else
		for (int i = 0; i < n; i++)
			if (expr_state(op->r, i) == VEC_VALUE)
			{
				Datum value = expr_datum(op->a, i);

				store_datum(op->r, i, truth ? BoolGetDatum(DatumGetBool(value)) : value);
			}
}

/*
 * r: true for rows of mask a (NULL: all rows) for which condition b is one of `accept` of the
 * ExprMask in data.
 */
void
expr_run_mask(const ExprOp *op, int n)
{
	int accept = ((ExprMask *) op->data)->accept;
	const int8 *outer = op->a ? op->a->values : NULL;
	const int8 *cond = op->b->values;
	int8 *r = op->r->values;

	op->r->all_values = true;
	for (int i = 0; i < n; i++)
	{
		uint8 state = expr_state(op->b, i);

		r[i] = (outer == NULL || outer[i]) &&
			(state == VEC_NULL ? (accept & MASK_NULL) != 0 :
								 state == VEC_VALUE && (accept & (MASK_FALSE | MASK_TRUE)) != 0 &&
					 (accept & (cond[i] ? MASK_TRUE : MASK_FALSE)) != 0);
	}
}

/* Calls a function and counts the call in pg_stat_user_functions. */
static Datum
call_counted(FunctionCallInfo fcinfo)
{
	PgStat_FunctionCallUsage usage;
	Datum value;

	pgstat_init_function_usage(fcinfo, &usage);
	value = FunctionCallInvoke(fcinfo);
	pgstat_end_function_usage(&usage, true);
	return value;
}

/*
 * Calls a strict function of core's row by row, for the rows of mask c (NULL: all rows).  Core
 * would also call it for these rows, so it may raise its errors here.  Once results exceed
 * EXPR_PAGE_BYTES, rows take the scalar fallback, which frees each result before the next one.
 */
void
expr_run_core(const ExprOp *op, int n)
{
	ExprCoreCall *call = op->data;
	const int8 *mask = op->c ? op->c->values : NULL;
	FunctionCallInfo fcinfo = call->fcinfo;
	int nargs = fcinfo->nargs;
	MemoryContext old = MemoryContextSwitchTo(op->set->page_cxt);

	op->r->all_values = false;
	for (int i = 0; i < n; i++)
	{
		uint8 state = mask && !mask[i] ? VEC_FALLBACK : VEC_VALUE;
		Datum value;

		if (unlikely(MemoryContextMemAllocated(op->set->page_cxt, false) > EXPR_PAGE_BYTES))
			state = VEC_FALLBACK;
		for (int k = 0; k < nargs; k++)
			state = Max(state, expr_state(call->args[k], i));
		if (state == VEC_VALUE)
		{
			for (int k = 0; k < nargs; k++)
				fcinfo->args[k].value = expr_datum(call->args[k], i);
			fcinfo->isnull = false;
			CHECK_FOR_INTERRUPTS();
			value = call->counted ? call_counted(fcinfo) : FunctionCallInvoke(fcinfo);
			if (fcinfo->isnull)
				state = VEC_NULL;
			else if (!store_datum(op->r, i, value))
				state = VEC_FALLBACK;
		}
		op->r->state[i] = state;
	}
	MemoryContextSwitchTo(old);
}

/*
 * Disables just-in-time compilation for this expression: it would not pay for the few rows of the
 * scalar fallback.
 */
ExprState *
expr_core_state(ExprSet *set, Expr *expr)
{
	EState *estate = set->parent->state;
	int jit_flags = estate->es_jit_flags;
	ExprState *state;

	estate->es_jit_flags = 0;
	state = contain_subplans((Node *) expr) ?
		expr_subplan_state(set->subplans, set->subplan_parent, expr) :
		ExecInitExpr(expr, set->parent);
	estate->es_jit_flags = jit_flags;
	return state;
}

Datum
expr_evaluate_scalar(ExprSet *set, ExprRoot *root, int row, bool *isnull)
{
	ExprContext *econtext = set->parent->ps_ExprContext;
	MemoryContext old = MemoryContextSwitchTo(set->cxt);

	CHECK_FOR_INTERRUPTS();
	if (root->state == NULL)
	{
		root->state = expr_core_state(set, root->expr);
		root->subplans = expr_find_subplans(set->subplans, root->state);
	}
	MemoryContextSwitchTo(old);
	ResetExprContext(econtext);
	if (root->subplans)
		expr_renew_subplans(root->subplans);
	set->load_row(set->owner, row);
	return ExecEvalExprSwitchContext(root->state, econtext, isnull);
}

/* ---- running --------------------------------------------------------------- */

/* Uses core to evaluate a constant for all rows of its vector. */
void
expr_constant_fill(ExprSet *set, Vec *vec)
{
	bool isnull;
	Datum value;
	struct SubplanState *subplans = expr_find_subplans(set->subplans, vec->source);
	MemoryContext old = MemoryContextSwitchTo(set->const_cxt);

	if (subplans)
		expr_renew_subplans(subplans);
	value = ExecEvalExpr(vec->source, set->parent->ps_ExprContext, &isnull);
	vec->all_values = !isnull;
	memset(vec->state, VEC_NULL, EXPR_ROWS);
	memset(vec->values, 0, EXPR_ROWS * column_width(vec->type));
	if (!isnull && vec->type == COLUMN_DATUM)
	{
		int16 typlen;
		bool typbyval;

		get_typlenbyval(vec->typid, &typlen, &typbyval);
		value = typlen == -1 ? PointerGetDatum(PG_DETOAST_DATUM_COPY(value)) :
							   datumCopy(value, typbyval, typlen);
	}
	MemoryContextSwitchTo(old);
	for (int i = 0; i < EXPR_ROWS && !isnull; i++)
		if (!store_datum(vec, i, value))
		{
			memset(vec->state, VEC_FALLBACK, EXPR_ROWS);
			vec->all_values = false;
			break;
		}
}

void
expr_empty_constant(Vec *vec)
{
	memset(vec->state, VEC_FALLBACK, EXPR_ROWS);
	vec->all_values = vec->filled = false;
}

/*
 * Fills the constant r as soon as a row is in mask a.  Core evaluates the constant only for such a
 * row, and its evaluation may fail.
 */
void
expr_run_lazy(const ExprOp *op, int n)
{
	const int8 *mask = op->a->values;

	for (int i = 0; i < n && !op->r->filled; i++)
		if (mask[i])
		{
			expr_constant_fill(op->set, op->r);
			op->r->filled = true;
		}
}

/*
 * Fills r, which has one value for all rows, with the value of the Param in data.  If the parameter
 * is the result of an initplan that has not run yet, r stays VEC_FALLBACK: the scalar fallback of
 * the first row that needs it runs the initplan.
 */
void
expr_run_param(const ExprOp *op, int n)
{
	Param *param = op->data;
	ExprContext *econtext = op->set->parent->ps_ExprContext;

	if (op->r->filled || econtext->ecxt_param_exec_vals[param->paramid].execPlan != NULL)
		return;
	expr_constant_fill(op->set, op->r);
	op->r->filled = true;
}

void
expr_reset(ExprSet *set)
{
	for (int s = 0; s < set->nstages; s++)
		set->stages[s].constants_ready = false;
	for (Vec *vec = set->vecs; vec; vec = vec->next)
		if (vec->lazy)
			expr_empty_constant(vec);
	MemoryContextReset(set->const_cxt);
	set->resets++;
}

bool
expr_stage_is_closed(const ExprSet *set, int stage)
{
	for (const Vec *vec = set->stages[stage].vecs; vec; vec = vec->next_of_stage)
		if (vec->attno == 0 && vec->last_stage > stage)
			return false;
	return true;
}

void
expr_run(ExprSet *set, int stage, int n)
{
	ExprStage *st = &set->stages[stage];

	if (!st->constants_ready)
	{
		for (Vec *vec = st->vecs; vec; vec = vec->next_of_stage)
			if (vec->constant && !vec->lazy)
				expr_constant_fill(set, vec);
		st->constants_ready = true;
	}
	for (ExprOp *op = st->ops; op; op = op->next)
	{
		op->run(op, n);
		if (op->skip && *op->skip)
			op = op->last;
	}
}

/* Returns the list of vectors that stages after their own read, without constants. */
static Vec *
kept_vecs(ExprSet *set)
{
	if (!set->kept_known)
	{
		set->kept = NULL;
		for (Vec *vec = set->vecs; vec; vec = vec->next)
		{
			if (vec->constant || vec->last_stage == vec->stage)
				continue;
			vec->next_kept = set->kept;
			set->kept = vec;
		}
		set->kept_known = true;
	}
	return set->kept;
}

void
expr_compact(ExprSet *set, int stage, const uint16 *sel, int n)
{
	for (Vec *vec = kept_vecs(set); vec; vec = vec->next_kept)
	{
		if (vec->stage > stage || vec->last_stage <= stage)
			continue;
#define COMPACT(type) \
	for (int i = 0; i < n; i++) \
	((type *) vec->values)[i] = ((type *) vec->values)[sel[i]]
		BY_WIDTH(vec->type, COMPACT);
#undef COMPACT
		if (!vec->all_values)
			for (int i = 0; i < n; i++)
				vec->state[i] = vec->state[sel[i]];
	}
}

void
expr_expand(ExprSet *set, int stage, const uint16 *sel, int n)
{
	for (Vec *vec = kept_vecs(set); vec; vec = vec->next_kept)
	{
		if (vec->stage > stage || vec->last_stage <= stage)
			continue;
#define EXPAND(type) \
	for (int i = n - 1; i >= 0; i--) \
	((type *) vec->values)[i] = ((type *) vec->values)[sel[i]]
		BY_WIDTH(vec->type, EXPAND);
#undef EXPAND
		if (!vec->all_values)
			for (int i = n - 1; i >= 0; i--)
				vec->state[i] = vec->state[sel[i]];
	}
}
