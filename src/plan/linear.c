/*
 * linear.c
 *	  Finds sums, means and counts whose argument is a linear function of another input.
 *
 * The sum of x + c over some rows is the sum of x plus c times their number.  So sum(x + 1), sum(x
 * + 2) and avg(x) need the same states, the sum and the count of x, and only their values differ
 * (LinearArgument in aggregates/aggmap.h).  The input x is the source of the other arguments.
 *
 * Core raises an error if an argument overflows in any row.  An argument gets a source only if the
 * error would still be raised:
 *	- because of the types it cannot overflow: a smallint plus 1 is an integer, and numerics of a
 *	  declared precision are far from the limits of numeric;
 *	- or else other arguments of the query, which are evaluated, overflow if it does.  For
 *	  non-negative constants these are x + c with the largest c, and for negative ones that with
 *	  the smallest c.  The former is the source of the others with a non-negative constant.  Their
 *	  error has the same message, because the function is the same.
 */
#include "postgres.h"

#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/tlist.h"
#include "utils/fmgroids.h"

#include "aggregates/aggmap.h"
#include "aggregates/partial_call.h"
#include "columns/decimal.h"
#include "common/integers.h"
#include "operators/decode_numeric.h"
#include "operators/monoid.h"
#include "plan/group_query.h"

/* A function of one operand: mul * operand + add.  Numerics are integers times 10^-scale. */
typedef struct LinearForm
{
	Node *operand;
	int64 mul;
	int64 add;
	int scale;   /* display scale of the function's values */
	int64 least; /* no value is less than this one */
	int64 most;
} LinearForm;

typedef enum Operator
{
	PLUS,
	MINUS,
	TIMES
} Operator;

/* An argument that may overflow, if function is valid: an operator with a constant. */
typedef struct Step
{
	Oid function;
	Operator op;
	bool constant_first; /* the constant is the left operand */
	int64 constant;
	LinearForm form; /* the operand that is not constant, as a function */
} Step;

/* Sets the range of an integer type; returns false for other types. */
static bool
type_range(Oid type, int64 *least, int64 *most)
{
	switch (type)
	{
		case INT2OID:
			*least = PG_INT16_MIN;
			*most = PG_INT16_MAX;
			return true;
		case INT4OID:
			*least = PG_INT32_MIN;
			*most = PG_INT32_MAX;
			return true;
		case INT8OID:
			*least = PG_INT64_MIN;
			*most = PG_INT64_MAX;
			return true;
		default:
			return false;
	}
}

/* Sets the operator that a function of integers computes; returns false for other functions. */
static bool
integer_operator(Oid function, Operator *op)
{
	switch (function)
	{
		case F_INT2PL:
		case F_INT24PL:
		case F_INT28PL:
		case F_INT42PL:
		case F_INT4PL:
		case F_INT48PL:
		case F_INT82PL:
		case F_INT84PL:
		case F_INT8PL:
			*op = PLUS;
			return true;
		case F_INT2MI:
		case F_INT24MI:
		case F_INT28MI:
		case F_INT42MI:
		case F_INT4MI:
		case F_INT48MI:
		case F_INT82MI:
		case F_INT84MI:
		case F_INT8MI:
			*op = MINUS;
			return true;
		case F_INT2MUL:
		case F_INT24MUL:
		case F_INT28MUL:
		case F_INT42MUL:
		case F_INT4MUL:
		case F_INT48MUL:
		case F_INT82MUL:
		case F_INT84MUL:
		case F_INT8MUL:
			*op = TIMES;
			return true;
		default:
			return false;
	}
}

/* Sets *value to an integer constant; returns false for any other node. */
static bool
integer_constant(Node *node, int64 *value)
{
	Const *constant = (Const *) node;

	if (!IsA(node, Const) || constant->constisnull || !is_integer_type(constant->consttype))
		return false;
	*value = integer_of_type(constant->consttype, constant->constvalue);
	return true;
}

/*
 * Sets *step to the function, operator and constant of an expression, and its form's operand.
 * Returns false if the expression is no operator with an integer constant.
 */
static bool
find_step(Node *expr, Step *step)
{
	OpExpr *op = (OpExpr *) expr;

	if (!IsA(expr, OpExpr) || list_length(op->args) != 2 ||
		!integer_operator(op->opfuncid, &step->op))
		return false;
	step->function = op->opfuncid;
	step->constant_first = integer_constant(linitial(op->args), &step->constant);
	if (!step->constant_first && !integer_constant(lsecond(op->args), &step->constant))
		return false;
	step->form.operand = step->constant_first ? lsecond(op->args) : linitial(op->args);
	return true;
}

/* Sets mul and add of the function that a step applies to its operand; returns false if too large.
 */
static bool
step_function(const Step *step, int64 *mul, int64 *add)
{
	*mul = step->op == TIMES ? step->constant : 1;
	*add = step->op == TIMES ? 0 : step->constant;
	if (step->op != MINUS)
		return true;
	if (step->constant_first)
		*mul = -1;
	else if (*add == PG_INT64_MIN)
		return false;
	else
		*add = -*add;
	return true;
}

/*
 * Applies a step to the form of its operand, if all results are in the range of the step's type.
 * Returns false, and leaves *form as it is, if one may overflow.
 */
static bool
apply_step(LinearForm *form, const Step *step, int64 least, int64 most)
{
	int64 step_mul, step_add, mul, add;
	gpuagg_i128 low, high;

	if (!step_function(step, &step_mul, &step_add))
		return false;
	low = (gpuagg_i128) step_mul * (step_mul < 0 ? form->most : form->least) + step_add;
	high = (gpuagg_i128) step_mul * (step_mul < 0 ? form->least : form->most) + step_add;
	if (low < least || high > most || __builtin_mul_overflow(form->mul, step_mul, &mul) ||
		__builtin_mul_overflow(form->add, step_mul, &add) ||
		__builtin_add_overflow(add, step_add, &add))
		return false;
	form->mul = mul;
	form->add = add;
	form->least = low;
	form->most = high;
	return true;
}

/*
 * Sets *form to an expression of integers as a function of its innermost operand without a step
 * that may overflow.  If the outermost step may overflow, the operand is the expression itself, and
 * *step describes that step; otherwise step->function is InvalidOid.  Returns false if the
 * expression's type is no integer.
 */
static bool
linear_form(Node *expr, LinearForm *form, Step *step)
{
	Step inner;
	int64 least, most;

	check_stack_depth();
	step->function = InvalidOid;
	if (!type_range(exprType(expr), &least, &most))
		return false;
	*form = (LinearForm){expr, 1, 0, 0, least, most};
	if (IsA(expr, FuncExpr))
	{
		FuncExpr *cast = (FuncExpr *) expr;

		/* casts to wider types */
		return (cast->funcid != F_INT4_INT2 && cast->funcid != F_INT8_INT2 &&
				cast->funcid != F_INT8_INT4) ||
			linear_form(linitial(cast->args), form, &inner);
	}
	if (!find_step(expr, step))
	{
		step->function = InvalidOid;
		return true;
	}
	if (!linear_form(step->form.operand, &step->form, &inner))
		step->function = InvalidOid;
	else
	{
		LinearForm result = step->form;

		if (apply_step(&result, step, least, most))
		{
			*form = result;
			step->function = InvalidOid;
		}
	}
	return true;
}

/* ---- numerics ------------------------------------------------------------------ */

/* Maximum number of decimal digits of a value; a sum of 2^45 values then has 127 bits. */
#define MOST_DIGITS 24
/* Maximum number of decimal digits of mul and add, and of the scale. */
#define MOST_CONSTANT_DIGITS 15

/*
 * Sets *value to a numeric constant as an integer times 10^-scale.  Returns false for other nodes,
 * and for constants with many digits.
 */
static bool
numeric_constant(Node *node, gpuagg_i128 *value, int *scale)
{
	Const *constant = (Const *) node;
	struct varlena *numeric;
	const uint8_t *data;
	DecodeHeader header;
	int len;

	if (!IsA(node, Const) || constant->constisnull || constant->consttype != NUMERICOID)
		return false;
	numeric = PG_DETOAST_DATUM_PACKED(constant->constvalue);
	data = (const uint8_t *) VARDATA_ANY(numeric);
	len = VARSIZE_ANY_EXHDR(numeric);
	if (!decode_header(data, len, &header) || header.dscale > MOST_CONSTANT_DIGITS ||
		!decode_numeric(data, len, header.dscale, value))
		return false;
	*scale = header.dscale;
	return true;
}

/*
 * Sets *form to a column of numerics with a declared precision and scale, of a table that stores
 * only such values or NaN.  A foreign table may return others.  *digits: its precision.
 */
static bool
numeric_column(const PlannerInfo *root, Node *expr, LinearForm *form, int *digits)
{
	Var *var = (Var *) expr;
	int16 scale;

	if (!IsA(expr, Var) || var->vartype != NUMERICOID || var->varlevelsup != 0 || var->varno <= 0 ||
		var->varno >= root->simple_rel_array_size ||
		root->simple_rte_array[var->varno]->rtekind != RTE_RELATION ||
		spec_column_type(NUMERICOID, var->vartypmod, &scale) != COLUMN_DEC)
		return false;
	for (int i = 1; i < root->simple_rel_array_size; i++)
		if (root->simple_rte_array[i] && root->simple_rte_array[i]->rtekind == RTE_RELATION &&
			root->simple_rte_array[i]->relkind == RELKIND_FOREIGN_TABLE)
			return false;
	*form = (LinearForm){.operand = expr, .mul = 1, .scale = scale};
	/* as in numeric.c */
	*digits = ((var->vartypmod - VARHDRSZ) >> 16) & 0xffff;
	return true;
}

/*
 * Applies an operator with a constant to a form; returns false if the numbers become too large. The
 * result's scale is core's.
 */
static bool
apply_numeric(LinearForm *form, Oid function, bool constant_first, gpuagg_i128 constant, int scale)
{
	gpuagg_i128 mul = form->mul, add = form->add;
	gpuagg_i128 most = decimal_power10(MOST_CONSTANT_DIGITS);
	int result = function == F_NUMERIC_MUL ? form->scale + scale : Max(form->scale, scale);

	if (result > MOST_CONSTANT_DIGITS || constant >= most || constant <= -most)
		return false;
	if (function == F_NUMERIC_MUL)
	{
		mul *= constant;
		add *= constant;
	}
	else
	{
		mul *= decimal_power10(result - form->scale);
		add *= decimal_power10(result - form->scale);
		constant *= decimal_power10(result - scale);
		if (function == F_NUMERIC_SUB && constant_first)
		{
			mul = -mul;
			add = -add;
		}
		add += function == F_NUMERIC_SUB && !constant_first ? -constant : constant;
	}
	if (mul >= most || mul <= -most || add >= most || add <= -most)
		return false;
	form->mul = mul;
	form->add = add;
	form->scale = result;
	return true;
}

/*
 * Sets *form to a numeric expression as a function of a column, and *digits to the column's
 * precision.  Returns false if it is no such function.  A sum, difference or product of numerics
 * that are not huge raises no error.
 */
static bool
numeric_form(const PlannerInfo *root, Node *expr, LinearForm *form, int *digits)
{
	OpExpr *op = (OpExpr *) expr;
	gpuagg_i128 constant;
	int scale;
	bool first;

	check_stack_depth();
	if (!IsA(expr, OpExpr))
		return numeric_column(root, expr, form, digits);
	if (op->opfuncid != F_NUMERIC_ADD && op->opfuncid != F_NUMERIC_SUB &&
		op->opfuncid != F_NUMERIC_MUL)
		return false;
	first = numeric_constant(linitial(op->args), &constant, &scale);
	return (first || numeric_constant(lsecond(op->args), &constant, &scale)) &&
		numeric_form(root, first ? lsecond(op->args) : linitial(op->args), form, digits) &&
		apply_numeric(form, op->opfuncid, first, constant, scale);
}

/* Returns whether values of the form, and their sums, can be computed with 128 bits. */
static bool
has_room(const LinearForm *form, int digits)
{
	for (gpuagg_i128 mul = form->mul; mul != 0; mul /= 10)
		digits++;
	return digits <= MOST_DIGITS;
}

/* ---- aggregates ---------------------------------------------------------------- */

/*
 * Returns whether the value of an aggregate is compared in HAVING, or by a LIMIT.  Such a value is
 * best a state itself, because engines compare states.
 */
static bool
is_compared(const GroupQuery *query, const Aggref *aggref)
{
	Query *parse = query->root->parse;
	ListCell *lc;

	if (query->having != NIL &&
		list_member(pull_var_clause((Node *) query->having,
									PVC_INCLUDE_AGGREGATES | PVC_RECURSE_WINDOWFUNCS |
										PVC_RECURSE_PLACEHOLDERS),
					aggref))
		return true;
	if (parse->limitCount == NULL)
		return false;
	foreach (lc, parse->sortClause)
		if (equal(get_sortgroupclause_expr(lfirst(lc), query->root->processed_tlist), aggref))
			return true;
	return false;
}

/*
 * Returns the argument of an aggregate if it is a sum, mean or count that a linear function of the
 * argument could serve; else NULL.
 */
static Node *
linear_argument(Aggref *aggref)
{
	Node *argument;

	aggref = partial_aggref(aggref);
	if (!aggmap_is_linear(aggref->aggfnoid) || aggref->aggdistinct != NIL ||
		aggref->aggorder != NIL || list_length(aggref->args) != 1)
		return NULL;
	argument = (Node *) linitial_node(TargetEntry, aggref->args)->expr;
	if (contain_volatile_functions(argument) || contain_subplans(argument) ||
		contain_volatile_functions((Node *) aggref->aggfilter))
		return NULL;
	return argument;
}

/* The arguments of the query's aggregates. */
typedef struct Arguments
{
	int n;
	Aggref **aggs;
	Node **exprs; /* NULL: the aggregate is no linear one */
	Step *steps;  /* the last step of each argument, if that may overflow */
} Arguments;

/*
 * Returns whether arguments i and j may overflow, and differ at most in their constants.  They are
 * evaluated for the same rows.
 */
static bool
same_family(const Arguments *args, int i, int j)
{
	const Step *a = &args->steps[i];
	const Step *b = &args->steps[j];

	return OidIsValid(a->function) && a->function == b->function &&
		a->constant_first == b->constant_first && a->form.mul == b->form.mul &&
		a->form.add == b->form.add && equal(a->form.operand, b->form.operand) &&
		equal(args->aggs[i]->aggfilter, args->aggs[j]->aggfilter);
}

/*
 * Returns the number of the argument that takes the place of argument i, which may overflow: one of
 * the same family that overflows if argument i does.  Returns -1 if there is none.
 */
static int
find_stronger(const Arguments *args, int i)
{
	const Step *step = &args->steps[i];
	int highest = i, lowest = i;
	int result;

	for (int j = 0; j < args->n; j++)
		if (same_family(args, i, j))
		{
			if (args->steps[j].constant > args->steps[highest].constant)
				highest = j;
			if (args->steps[j].constant < args->steps[lowest].constant)
				lowest = j;
		}
	/* c - x overflows in one direction with a large c, and in the other one with a small c */
	if (step->op == MINUS && step->constant_first)
		result = step->constant > args->steps[lowest].constant ? highest : i;
	else
		result = step->constant >= 0 ? highest : lowest;
	return args->steps[result].constant == step->constant ? -1 : result;
}

/* Returns the entry of query->agg_linear for an argument that is mul * source + add. */
static List *
make_entry(Node *source, int64 mul, int64 add, int scale)
{
	int64 numbers[] = {mul, add, scale};
	List *entry = list_make1(source);

	for (int i = 0; i < lengthof(numbers); i++)
		entry = lappend(entry,
						makeConst(INT8OID, -1, InvalidOid, sizeof(int64), Int64GetDatum(numbers[i]),
								  false, FLOAT8PASSBYVAL));
	return entry;
}

/*
 * Returns the entry for argument i, a multiple that may overflow, as others of its family do.  The
 * operand is one more input, so this needs two such multiples.
 */
static List *
multiple_entry(const Arguments *args, int i)
{
	const Step *step = &args->steps[i];
	int multiples = 0;
	int64 mul, add;

	for (int j = 0; j < args->n; j++)
		multiples += same_family(args, i, j) && find_stronger(args, j) >= 0;
	if (multiples < 2 || __builtin_mul_overflow(step->constant, step->form.mul, &mul) ||
		__builtin_mul_overflow(step->constant, step->form.add, &add))
		return NIL;
	return make_entry(step->form.operand, mul, add, 0);
}

/* Returns the entry for argument i; NIL if it is its own source. */
static List *
entry_of_argument(const PlannerInfo *root, const Arguments *args, int i)
{
	Step step;
	LinearForm form;
	int stronger;
	int64 mul, add, stronger_add;
	int digits;

	if (args->exprs[i] == NULL)
		return NIL;
	if (exprType(args->exprs[i]) == NUMERICOID)
		return IsA(args->exprs[i], OpExpr) && numeric_form(root, args->exprs[i], &form, &digits) &&
				has_room(&form, digits) ?
			make_entry(form.operand, form.mul, form.add, form.scale) :
			NIL;
	if (!linear_form(args->exprs[i], &form, &step))
		return NIL;
	if (form.operand != args->exprs[i])
		return make_entry(form.operand, form.mul, form.add, 0);
	if (!OidIsValid(step.function) || (stronger = find_stronger(args, i)) < 0)
		return NIL;
	if (step.op == TIMES)
		return multiple_entry(args, i);
	if (!step_function(&step, &mul, &add) ||
		!step_function(&args->steps[stronger], &mul, &stronger_add) ||
		__builtin_sub_overflow(add, stronger_add, &add))
		return NIL;
	return make_entry(args->exprs[stronger], 1, add, 0);
}

void
plan_find_linear(GroupQuery *query)
{
	int n = list_length(query->aggs);
	Arguments args = {.n = n};

	args.aggs = palloc0(sizeof(Aggref *) * (n + 1));
	args.exprs = palloc0(sizeof(Node *) * (n + 1));
	args.steps = palloc0(sizeof(Step) * (n + 1));
	for (int i = 0; i < n; i++)
	{
		LinearForm form;

		args.aggs[i] = list_nth_node(Aggref, query->aggs, i);
		args.exprs[i] = linear_argument(args.aggs[i]);
		if (args.exprs[i] == NULL || !linear_form(args.exprs[i], &form, &args.steps[i]))
			args.steps[i].function = InvalidOid;
	}
	for (int i = 0; i < n; i++)
	{
		List *entry = entry_of_argument(query->root, &args, i);

		if (entry != NIL &&
			(is_compared(query, args.aggs[i]) ||
			 plan_input_is_constant(query->keys, linitial(entry))))
			entry = NIL;
		query->agg_linear = lappend(query->agg_linear, entry);
	}
}
