/*
 * compile.c
 *	  Compiles SQL expressions to vector operations.
 *
 * An expression that cannot be compiled gives NULL, never an error, and the root takes the scalar
 * fallback.  So does a root whose vectors would enlarge the set beyond EXPR_MEMORY, and a root that
 * is nested too deeply for the stack.
 *
 * Equal subexpressions are computed once (share.c), across roots and stages.  Operations are
 * defined for all bit patterns and run over all rows, so that a subexpression in a branch of CASE
 * can be shared, too.
 *
 * Functions without a row in vector_ops.h and without a file of their own are called row by row
 * (expr_run_core), but only for the rows for which core would call them: inside AND, OR, CASE and
 * COALESCE a mask (ExprSet.mask) has these rows.  For all other rows the result is VEC_FALLBACK,
 * which the operations above do not read.
 *
 * Core runs an initplan when the first row takes the scalar fallback because of its parameter.
 * Until then, the parameter's vector is VEC_FALLBACK.
 */
#include "postgres.h"

#include "catalog/pg_collation.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/typcache.h"

#include "common/compat.h"
#include "expr/expr_internal.h"
#include "spec.h"

/* ---- conditions -------------------------------------------------------------- */

/*
 * Restricts the mask, for what is compiled next, to the rows of the current mask for which cond is
 * one of `accept`.  Core evaluates it for these only.  Returns the previous mask.
 */
static ExprMask *
push_mask(ExprSet *set, const Vec *cond, int accept)
{
	ExprMask *outer = set->mask;
	ExprMask *mask = palloc0(sizeof(ExprMask));

	mask->outer = outer;
	mask->cond = cond;
	mask->accept = accept;
	set->mask = mask;
	return outer;
}

/*
 * Restores mask `outer` at the end of an expression that used masks, and returns its result.  The
 * result does not depend on the rows that its arguments leave out.  So it may be shared if the
 * expression itself is evaluated for all rows.
 */
static Vec *
pop_masks(ExprSet *set, ExprMask *outer, Vec *result)
{
	set->mask = outer;
	if (result && outer == NULL)
		result->masked = false;
	return result;
}

/* ---- constants ------------------------------------------------------------- */

/* Compiles an expression that is the same for all rows. */
static Vec *
compile_constant(ExprSet *set, Expr *expr, int stage)
{
	Oid typid = exprType((Node *) expr);
	int16 scale;
	ColumnType type = expr_value_type(expr, &scale);
	Vec *vec;

	vec = expr_new_vec(set, type, scale, typid, expr, stage);
	vec->constant = true;
	vec->source = expr_core_state(set, expr);
	if (IsA(expr, Const) || (IsA(expr, Param) && ((Param *) expr)->paramkind == PARAM_EXTERN))
		return vec;
	if (IsA(expr, Param))
	{
		vec->lazy = true;
		expr_empty_constant(vec);
		expr_emit(set, stage, expr_run_param, vec, NULL, NULL, NULL, expr);
	}
	else if (set->mask)
	{
		vec->lazy = vec->masked = true;
		expr_empty_constant(vec);
		expr_emit(set, stage, expr_run_lazy, vec, expr_mask_vec(set, set->mask, stage), NULL, NULL,
				  NULL);
	}
	return vec;
}

/* ---- functions and operators ----------------------------------------------- */

/*
 * Returns the operation for a function, if the arguments have the types that it declares; or NULL.
 */
static const ExprFunction *
find_operation(Oid funcid, int nargs, Vec **args)
{
	const ExprFunction *f = expr_find_function(funcid);

	if (f == NULL || f->nargs != nargs)
		return NULL;
	for (int i = 0; i < nargs; i++)
		if (args[i]->type != f->args[i])
			return NULL;
	return f;
}

/*
 * Emits a call of the SQL function for each row, through the function manager.  Returns NULL if the
 * function cannot be called so: if it returns a set or a pseudo-type, or is not strict, or is
 * volatile.
 */
static Vec *
compile_core_call(ExprSet *set, Oid funcid, Oid collation, Expr *expr, int nargs, Vec **args,
				  int stage)
{
	Oid typid = exprType((Node *) expr);
	int16 scale;
	ColumnType type = expr_value_type(expr, &scale);
	ExprCoreCall *call;
	Vec *r;

	if (expression_returns_set((Node *) expr) || !func_strict(funcid) ||
		func_volatile(funcid) == PROVOLATILE_VOLATILE || get_typtype(typid) == TYPTYPE_PSEUDO)
		return NULL;
	call = palloc0(sizeof(ExprCoreCall));
	call->args = palloc(nargs * sizeof(Vec *));
	memcpy(call->args, args, nargs * sizeof(Vec *));
	for (int i = 0; i < nargs; i++)
		expr_use(args[i], stage);
	fmgr_info(funcid, &call->flinfo);
	fmgr_info_set_expr((Node *) expr, &call->flinfo);
	call->fcinfo = palloc0(SizeForFunctionCallInfo(nargs));
	InitFunctionCallInfoData(*call->fcinfo, &call->flinfo, nargs, collation, NULL, NULL);
	call->counted = pgstat_track_functions > call->flinfo.fn_stats;
	r = expr_new_vec(set, type, scale, typid, expr, stage);
	for (int i = 0; i < nargs; i++)
		r->masked |= args[i]->masked;
	r->masked |= set->mask != NULL;
	return expr_emit(set, stage, expr_run_core, r, NULL, NULL, expr_mask_vec(set, set->mask, stage),
					 call);
}

/* Emits an operation over compiled arguments; NULL if there is none. expr: see expr_new_vec. */
static Vec *
compile_vector_call(ExprSet *set, Oid funcid, Oid collation, Expr *expr, int nargs, Vec **args,
					int stage)
{
	const ExprFunction *f;

	if ((f = find_operation(funcid, nargs, args)) != NULL)
		return expr_emit(set, stage, f->run,
						 expr_new_vec(set, f->result, 0, InvalidOid, expr, stage), args[0],
						 nargs > 1 ? args[1] : NULL, NULL, NULL);
	if (expr_is_text_equality(funcid) && expr_collation_is_deterministic(collation) &&
		args[0]->type == COLUMN_DATUM && args[1]->type == COLUMN_DATUM)
	{
		Oid *func = palloc(sizeof(Oid));

		*func = funcid;
		return expr_emit_bool(set, stage, expr_run_text_equal, expr, args[0], args[1], NULL, func);
	}
	return NULL;
}

/*
 * Compiles a call of a function or operator: as a vector operation, or else as calls of core's
 * function row by row.  Returns NULL if neither is possible.
 */
static Vec *
compile_call(ExprSet *set, Oid funcid, Oid collation, Expr *expr, List *args, int stage)
{
	int nargs = list_length(args);
	Vec *vecs[FUNC_MAX_ARGS];
	Vec *r;
	int i = 0;
	ListCell *lc;

	if (nargs == 0 || nargs > FUNC_MAX_ARGS)
		return NULL;
	r = expr_compile_decimal(set, funcid, expr, args, stage);
	if (r == NULL)
		r = expr_compile_quotient(set, funcid, expr, args, stage);
	if (r == NULL)
		r = expr_compile_rounding(set, funcid, expr, args, stage);
	if (r == NULL)
		r = expr_compile_time(set, funcid, expr, args, stage);
	if (r == NULL)
		r = expr_compile_interval(set, funcid, expr, args, stage);
	if (r == NULL)
		r = expr_compile_bucket(set, funcid, expr, args, stage);
	if (r == NULL)
		r = expr_compile_like(set, funcid, collation, expr, args, stage);
	if (r == NULL)
		r = expr_compile_length(set, funcid, expr, args, stage);
	if (r != NULL)
		return r;
	foreach (lc, args)
	{
		vecs[i] = expr_compile(set, lfirst(lc), stage);
		if (vecs[i++] == NULL)
			return NULL;
	}
	r = compile_vector_call(set, funcid, collation, expr, nargs, vecs, stage);
	if (r == NULL)
		r = compile_core_call(set, funcid, collation, expr, nargs, vecs, stage);
	return r;
}

/* ---- logic, CASE and the like ---------------------------------------------- */

/*
 * Compiles AND, OR or NOT.  Each argument of AND and OR is compiled for the rows that the arguments
 * before it leave open.
 */
static Vec *
compile_bool(ExprSet *set, BoolExpr *expr, int stage)
{
	ExprMask *outer = set->mask;
	int accept = (expr->boolop == AND_EXPR ? MASK_TRUE : MASK_FALSE) | MASK_NULL;
	Vec *acc = NULL;
	ListCell *lc;

	foreach (lc, expr->args)
	{
		Vec *vec;

		if (acc)
			push_mask(set, acc, accept);
		vec = expr_compile(set, lfirst(lc), stage);
		set->mask = outer;
		if (vec == NULL || vec->type != COLUMN_I8)
			return NULL;
		if (expr->boolop == NOT_EXPR)
			return expr_emit_bool(set, stage, expr_run_not, (Expr *) expr, vec, NULL, NULL, NULL);
		if (acc == NULL)
			acc = vec;
		else
			acc =
				expr_emit_bool(set, stage, expr->boolop == AND_EXPR ? expr_run_and : expr_run_or,
							   lnext(expr->args, lc) ? NULL : (Expr *) expr, acc, vec, NULL, NULL);
	}
	return pop_masks(set, outer, acc);
}

/* Returns whether two vectors have the same column type and scale. */
static bool
have_same_type(const Vec *a, const Vec *b)
{
	return a->type == b->type && a->scale == b->scale;
}

/* Returns a new vector of the same type as another. */
static Vec *
new_like(ExprSet *set, const Vec *a, Expr *expr, int stage)
{
	return expr_new_vec(set, a->type, a->scale, a->typid, expr, stage);
}

/*
 * Returns a NULL constant for a branch of CASE, or for a missing ELSE, in the type of another
 * branch.
 */
static Vec *
null_like(ExprSet *set, const Vec *a, CaseExpr *expr, int stage)
{
	Vec *vec = new_like(set, a, NULL, stage);

	vec->constant = true;
	vec->source =
		expr_core_state(set, (Expr *) makeNullConst(expr->casetype, -1, expr->casecollid));
	return vec;
}

/* Replaces decimals among vecs[] by decimals of their largest scale. Elements may be NULL. */
static void
align_scales(ExprSet *set, Vec **vecs, int n, int stage)
{
	int16 scale = 0;

	for (int i = 0; i < n; i++)
		if (vecs[i])
			scale = Max(scale, vecs[i]->scale);
	for (int i = 0; i < n; i++)
		if (vecs[i] && vecs[i]->type == COLUMN_DEC)
			vecs[i] = expr_rescale(set, vecs[i], scale, stage);
}

/* Returns whether a branch of CASE is missing or a NULL constant. */
static bool
is_null_constant(Expr *expr)
{
	return expr == NULL || (IsA(expr, Const) && ((Const *) expr)->constisnull);
}

/*
 * Compiles CASE: its conditions and branches in order, each for the rows for which core evaluates
 * it.  Then combines them from the last to the first: CASE WHEN a THEN b ELSE (the result so far).
 * Returns NULL if all branches are NULL, or their types differ.
 */
static Vec *
compile_case(ExprSet *set, CaseExpr *expr, int stage)
{
	Vec *saved = set->case_value;
	ExprMask *outer = set->mask;
	int n = list_length(expr->args);
	Vec **whens = palloc(n * sizeof(Vec *));
	Vec **thens = palloc0((n + 1) * sizeof(Vec *)); /* [n]: ELSE */
	Vec *like = NULL;                               /* a branch that is not NULL */
	Vec *result = expr_compile_guarded_bucket(set, expr, stage);

	if (result)
		return result;
	if (expr->arg && (set->case_value = expr_compile(set, expr->arg, stage)) == NULL)
	{
		set->case_value = saved;
		return NULL;
	}
	for (int i = 0; i < n; i++)
	{
		CaseWhen *when = list_nth(expr->args, i);
		ExprMask *before;

		whens[i] = expr_compile(set, when->expr, stage);
		if (whens[i] == NULL || whens[i]->type != COLUMN_I8)
			goto done;
		before = push_mask(set, whens[i], MASK_TRUE);
		thens[i] = NULL;
		if (!is_null_constant(when->result) &&
			(like = thens[i] = expr_compile(set, when->result, stage)) == NULL)
			goto done;
		set->mask = before;
		push_mask(set, whens[i], MASK_FALSE | MASK_NULL);
	}
	if (!is_null_constant(expr->defresult) &&
		(like = thens[n] = expr_compile(set, expr->defresult, stage)) == NULL)
		goto done;
	if (like && like->type == COLUMN_DEC)
	{
		align_scales(set, thens, n + 1, stage);
		for (int i = 0; i <= n; i++)
			like = thens[i] ? thens[i] : like;
	}
	if (like)
		result = thens[n] ? thens[n] : null_like(set, like, expr, stage);
	for (int i = n - 1; result && i >= 0; i--)
	{
		Vec *otherwise = result;

		if (thens[i] == NULL)
			thens[i] = null_like(set, like, expr, stage);
		if (!have_same_type(thens[i], result))
		{
			result = NULL;
			break;
		}
		result = expr_emit(
			set, stage, expr_run_select,
			new_like(set, thens[i],
					 i == 0 && !expr_facts(set, (Expr *) expr).case_value ? (Expr *) expr : NULL,
					 stage),
			whens[i], thens[i], otherwise, NULL);
		expr_scales_of_choice(set, result, expr_run_select, whens[i], thens[i], otherwise, stage);
	}
done:
	set->case_value = saved;
	return pop_masks(set, outer, result);
}

/*
 * Returns a vector of booleans that are true where b replaces a as the result of GREATEST or
 * LEAST; NULL if the type's comparison has no vector operation.
 */
static Vec *
compile_replaces(ExprSet *set, MinMaxOp op, Vec *a, Vec *b, Oid typid, int stage)
{
	TypeCacheEntry *type = lookup_type_cache(typid, TYPECACHE_LT_OPR | TYPECACHE_GT_OPR);
	Oid opr = op == IS_GREATEST ? type->lt_opr : type->gt_opr;
	Vec *args[2] = {a, b};

	if (a->type == COLUMN_DEC && OidIsValid(opr))
		return expr_decimal_call(set, get_opcode(opr), NULL, a, b, stage);
	return OidIsValid(opr) ?
		compile_vector_call(set, get_opcode(opr), InvalidOid, NULL, 2, args, stage) :
		NULL;
}

/*
 * Compiles COALESCE, GREATEST or LEAST: combines each argument with the result of those before it.
 */
static Vec *
compile_choice(ExprSet *set, Expr *expr, List *args, int stage)
{
	MinMaxExpr *minmax = IsA(expr, MinMaxExpr) ? (MinMaxExpr *) expr : NULL;
	ExprMask *outer = set->mask;
	Vec *acc = NULL;
	ListCell *lc;

	foreach (lc, args)
	{
		Vec *replaces = NULL;
		Vec *vec;
		Vec *both[2];

		if (acc && !minmax)
			push_mask(set, acc, MASK_NULL);
		vec = expr_compile(set, lfirst(lc), stage);
		set->mask = outer;
		if (vec == NULL)
			return NULL;
		if (acc == NULL)
		{
			acc = vec;
			continue;
		}
		both[0] = acc;
		both[1] = vec;
		if (acc->type == COLUMN_DEC && vec->type == COLUMN_DEC)
			align_scales(set, both, 2, stage);
		if (!have_same_type(both[0], both[1]))
			return NULL;
		if (minmax &&
			(replaces = compile_replaces(set, minmax->op, both[0], both[1], minmax->minmaxtype,
										 stage)) == NULL)
			return NULL;
		acc = expr_emit(set, stage, minmax ? expr_run_greatest : expr_run_coalesce,
						new_like(set, both[0], lnext(args, lc) ? NULL : expr, stage), both[0],
						both[1], replaces, NULL);
		expr_scales_of_choice(set, acc, minmax ? expr_run_greatest : expr_run_coalesce, both[0],
							  both[1], replaces, stage);
	}
	return minmax ? acc : pop_masks(set, outer, acc);
}

/*
 * Compiles NULLIF or IS DISTINCT FROM: both compare their arguments by an equality operator.
 * Returns NULL if an argument or the comparison cannot be compiled.
 */
static Vec *
compile_by_equality(ExprSet *set, OpExpr *op, int stage)
{
	OpExpr *equals;
	Vec *a, *b, *equal;

	if (list_length(op->args) != 2 || op->opresulttype == InvalidOid)
		return NULL;
	a = expr_compile(set, linitial(op->args), stage);
	b = expr_compile(set, lsecond(op->args), stage);
	if (a == NULL || b == NULL)
		return NULL;
	equals = makeNode(OpExpr);
	memcpy(equals, op, sizeof(OpExpr));
	NodeSetTag(equals, T_OpExpr);
	equals->opresulttype = BOOLOID;
	equal = compile_call(set, equals->opfuncid, equals->inputcollid, (Expr *) equals, equals->args,
						 stage);
	if (equal == NULL || equal->type != COLUMN_I8)
		return NULL;
	if (IsA(op, DistinctExpr))
		return expr_emit_bool(set, stage, expr_run_distinct, (Expr *) op, a, b, equal, NULL);
	return expr_scales_of_choice(set,
								 expr_emit(set, stage, expr_run_nullif,
										   new_like(set, a, (Expr *) op, stage), a, equal, NULL,
										   NULL),
								 expr_run_nullif, a, equal, NULL, stage);
}

/* ---- all expressions ------------------------------------------------------- */

/*
 * Returns the vector of a table column; NULL for system columns, whole rows and columns whose type
 * has changed.
 */
static Vec *
compile_var(ExprSet *set, Var *var, int stage)
{
	Form_pg_attribute att;
	ColumnType type;
	int16 scale;

	if (var->varattno <= 0)
		return NULL; /* a system column or a whole row */
	att = TupleDescAttr(set->desc, var->varattno - 1);
	if (att->attisdropped || att->atttypid != var->vartype)
		return NULL; /* core raises an error */
	type = spec_column_type(att->atttypid, att->atttypmod, &scale);
	return expr_column(set, var->varattno, type, scale, stage);
}

/* Compiles IS [NOT] NULL or a BooleanTest. */
static Vec *
compile_test(ExprSet *set, Expr *arg, Expr *expr, int stage)
{
	Vec *a = expr_compile(set, arg, stage);

	if (a == NULL)
		return NULL;
	if (IsA(expr, BooleanTest))
		return expr_emit_bool(set, stage, expr_run_istrue, expr, a, NULL, NULL, expr);
	return expr_emit_bool(set, stage, expr_run_isnull, expr, a, NULL, NULL,
						  ((NullTest *) expr)->nulltesttype == IS_NULL ? NULL : expr);
}

/* Returns whether the vector has the column type in which values of this SQL type are computed. */
static bool
has_column_type_of(const Vec *vec, Oid typid)
{
	int16 scale;

	if (vec->type == COLUMN_DEC)
		return getBaseType(typid) == NUMERICOID;
	return vec->type == spec_column_type(typid, -1, &scale);
}

/*
 * Compiles a binary-coercible cast.  The Datum stays, but its column type may change, as from oid
 * to int4.
 */
static Vec *
compile_relabel(ExprSet *set, RelabelType *relabel, int stage)
{
	Vec *a = expr_compile(set, relabel->arg, stage);
	Oid to = getBaseType(relabel->resulttype);
	int16 scale;

	/* "char" and bool share a column type, but bools are only 0 or 1 */
	if (a == NULL ||
		(has_column_type_of(a, to) &&
		 (to != BOOLOID || getBaseType(exprType((Node *) relabel->arg)) == to)))
		return a;
	if (a->type == COLUMN_DEC)
		return NULL;
	return expr_emit(
		set, stage, expr_run_relabel,
		expr_new_vec(set, spec_column_type(to, -1, &scale), 0, to, (Expr *) relabel, stage), a,
		NULL, NULL, NULL);
}

/* Compiles a node by its kind; NULL if nodes of this kind are not supported. */
static Vec *
compile_node(ExprSet *set, Expr *expr, int stage)
{
	switch (nodeTag(expr))
	{
		case T_Var:
			return compile_var(set, (Var *) expr, stage);
		case T_Const:
		case T_Param:
			return compile_constant(set, expr, stage);
		case T_RelabelType:
			return compile_relabel(set, (RelabelType *) expr, stage);
		case T_FuncExpr:
		{
			FuncExpr *f = (FuncExpr *) expr;

			if (f->funcretset || f->funcvariadic)
				return NULL;
			return compile_call(set, f->funcid, f->inputcollid, expr, f->args, stage);
		}
		case T_OpExpr:
		{
			OpExpr *op = (OpExpr *) expr;

			return compile_call(set, op->opfuncid, op->inputcollid, expr, op->args, stage);
		}
		case T_ScalarArrayOpExpr:
			return expr_compile_in(set, (ScalarArrayOpExpr *) expr, stage);
		case T_BoolExpr:
			return compile_bool(set, (BoolExpr *) expr, stage);
		case T_NullTest:
			if (((NullTest *) expr)->argisrow)
				return NULL;
			return compile_test(set, ((NullTest *) expr)->arg, expr, stage);
		case T_BooleanTest:
			return compile_test(set, ((BooleanTest *) expr)->arg, expr, stage);
		case T_CaseExpr:
			return compile_case(set, (CaseExpr *) expr, stage);
		case T_CaseTestExpr:
			return set->case_value;
		case T_CoalesceExpr:
			return compile_choice(set, expr, ((CoalesceExpr *) expr)->args, stage);
		case T_MinMaxExpr:
			return compile_choice(set, expr, ((MinMaxExpr *) expr)->args, stage);
		case T_NullIfExpr:
		case T_DistinctExpr:
			return compile_by_equality(set, (OpExpr *) expr, stage);
		default:
			return NULL;
	}
}

/*
 * ExprSet.compile, see expr_compile().  Returns the vector of an equal expression, or else compiles
 * a constant, a memo or a node.  Sets set->failed if it returns NULL.
 */
static Vec *
compile_expr(ExprSet *set, Expr *expr, int stage)
{
	NodeFacts facts;
	Vec *vec = NULL;

	CHECK_FOR_INTERRUPTS();
	if (set->failed || stack_is_too_deep())
	{
		set->failed = true;
		return NULL;
	}
	facts = expr_facts(set, expr);
	if (set->case_value == NULL || !facts.case_value)
	{
		vec = expr_find_vec(set, expr);
		if (vec)
		{
			expr_use(vec, stage);
			return vec;
		}
		if (!facts.varying && !set->failed)
			vec = compile_constant(set, expr, stage);
	}
	if (vec == NULL && !set->failed && expr_memo_pays(set, &facts))
		vec = expr_compile_memo(set, expr, &facts, stage);
	if (vec == NULL && !set->failed)
		vec = compile_node(set, expr, stage);
	/* if this fails, the root has no vector, and the rest of it need not be compiled */
	if (vec == NULL || !has_column_type_of(vec, exprType((Node *) expr)) ||
		set->bytes > EXPR_MEMORY)
		set->failed = true;
	return set->failed ? NULL : vec;
}

/* ---- sets and roots --------------------------------------------------------- */

ExprSet *
expr_set_create(PlanState *parent, TupleDesc desc, int nstages, ExprSubplans *subplans)
{
	ExprSet *set = palloc0(sizeof(ExprSet));

	set->parent = parent;
	set->subplan_parent = parent;
	set->desc = desc;
	set->cxt = CurrentMemoryContext;
	set->page_cxt = AllocSetContextCreate(set->cxt, "gpuagg page", ALLOCSET_DEFAULT_SIZES);
	set->const_cxt = AllocSetContextCreate(set->cxt, "gpuagg constants", ALLOCSET_SMALL_SIZES);
	set->subplans = subplans;
	set->compile = compile_expr;
	set->describe = expr_memo_describe;
	set->memo_columns = EXPR_MEMO_COLUMNS + 1;
	set->nstages = nstages;
	set->stages = palloc0(nstages * sizeof(ExprStage));
	for (int i = 0; i < nstages; i++)
		set->stages[i].tail = &set->stages[i].ops;
	return set;
}

ExprRoot *
expr_add_column_root(ExprSet *set, Var *var, ColumnType type, int16 scale, int stage)
{
	Form_pg_attribute att = TupleDescAttr(set->desc, var->varattno - 1);
	ExprRoot *root = palloc0(sizeof(ExprRoot));

	root->expr = (Expr *) var;
	root->stage = stage;
	if (!att->attisdropped && att->atttypid == var->vartype)
		root->vec = expr_column(set, var->varattno, type, scale, stage);
	if (root->vec)
		expr_use(root->vec->codes, stage);
	set->kept_known = false;
	return root;
}

ExprRoot *
expr_add_root(ExprSet *set, Expr *expr, int stage)
{
	ExprRoot *root = palloc0(sizeof(ExprRoot));
	ExprOp **tail = set->stages[stage].tail;
	Vec *vecs = set->vecs;
	MemoryContext cxt, old;

	root->expr = expr;
	root->stage = stage;
	set->kept_known = false;
	if (contain_volatile_functions((Node *) expr) || contain_subplans((Node *) expr))
		return root;
	/* uses an own context, to free everything if the root cannot be compiled */
	cxt = AllocSetContextCreate(set->cxt, "gpuagg expression", ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(cxt);
	expr_share_begin(set, expr);
	root->vec = expr_compile(set, expr, stage);
	set->mask = NULL;
	set->case_value = NULL;
	set->memo_columns = EXPR_MEMO_COLUMNS + 1;
	expr_share_end(set, vecs);
	MemoryContextSwitchTo(old);
	if (root->vec)
	{
		expr_use(root->vec, stage);
		expr_use(root->vec->codes, stage);
		return root;
	}
	*tail = NULL;
	set->stages[stage].tail = tail;
	MemoryContextDelete(cxt);
	return root;
}

ExprRoot *
expr_add_scales_root(ExprSet *set, Expr *expr, int stage)
{
	ExprRoot *root = expr_add_root(set, expr, stage);

	if (root->vec && root->vec->type == COLUMN_DEC)
	{
		root->vec = expr_scales_vec(set, root->vec, stage);
		expr_use(root->vec, stage);
	}
	return root;
}
