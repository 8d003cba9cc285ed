/*
 * program.c
 *	  Translates compiled expressions to programs of vector operations.
 *
 * Vectors are translated from the roots down, so that the program has only what a root needs.
 * Masks and vectors under masks are needed only by calls of core's functions, which are rejected.
 * Each file of operations has a function that translates its own.
 *
 * At first every instruction has a register of its own.  In the end registers are assigned again,
 * and a register whose value is no longer needed is reused.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"

#include "expr/expr_internal.h"
#include "expr/program.h"
#include "operators/vector_run.h"
#include "spec.h"

/* ---- constants ------------------------------------------------------------- */

/*
 * Sets the register form of a constant vector that is filled.  Returns false if there is none:
 * Datums, floats that are not finite, decimals beyond 64 bits.
 */
static bool
constant_bits(const Vec *vec, int64 *bits)
{
	switch (vec->type)
	{
		case COLUMN_U32:
			*bits = *(int32 *) vec->values;
			return true;
		case COLUMN_F32:
			*bits = *(uint32 *) vec->values;
			return isfinite(*(float *) vec->values);
		case COLUMN_F64:
			*bits = *(int64 *) vec->values;
			return isfinite(*(double *) vec->values);
		case COLUMN_DEC:
			*bits = (int64) * (gpuagg_i128 *) vec->values;
			return *bits == *(gpuagg_i128 *) vec->values;
		case COLUMN_I8:
			*bits = *(int8 *) vec->values;
			return true;
		case COLUMN_I16:
			*bits = *(int16 *) vec->values;
			return true;
		case COLUMN_I32:
			*bits = *(int32 *) vec->values;
			return true;
		case COLUMN_I64:
			*bits = *(int64 *) vec->values;
			return true;
		case COLUMN_DATUM:
			break;
	}
	return false;
}

/* When a constant may be evaluated. Core evaluates constants of a stage only if it has a row. */
typedef enum ExprReady
{
	EXPR_NOT_READY,
	EXPR_READY_FOR_ROWS, /* if there is a row: core evaluates it for the first one */
	EXPR_READY
} ExprReady;

/*
 * Returns whether the expression contains a PARAM_EXEC: the result of an initplan, or a value from
 * an outer plan.
 */
static bool
has_exec_param(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Param))
		return ((Param *) node)->paramkind == PARAM_EXEC;
	return expression_tree_walker(node, has_exec_param, context);
}

/* Returns when a constant may be evaluated. */
static ExprReady
when_constant_is_ready(const ExprSet *set, const Vec *vec)
{
	Expr *source = vec->source->expr;
	bool param = IsA(source, Param) && ((Param *) source)->paramkind == PARAM_EXEC;
	bool pending = param &&
		set->parent->ps_ExprContext->ecxt_param_exec_vals[((Param *) source)->paramid].execPlan !=
			NULL;

	if (param ? !pending :
				!vec->lazy &&
				expr_cannot_fail((Node *) source, set->parent->state->es_param_list_info) &&
				!has_exec_param((Node *) source, NULL))
		return EXPR_READY;
	if (vec->stage == 0 && vec->mask == NULL)
		return EXPR_READY_FOR_ROWS;
	return EXPR_NOT_READY;
}

/*
 * Evaluates the constant of a vector and sets *con.  If a register cannot hold it, rejects the
 * program and returns false.
 */
static bool
read_constant(ExprProgram *p, Vec *vec, VectorConstant *con)
{
	expr_constant_fill(p->set, vec);
	con->bits = 0;
	con->state = expr_state(vec, 0);
	/*
	 * Not representable in its type, or a float that is not finite: a NaN may have different bits.
	 */
	if (con->state == VECTOR_UNDETERMINED ||
		(con->state == VECTOR_VALUE && !constant_bits(vec, &con->bits)))
	{
		expr_program_reject(p, "a constant cannot be represented on the GPU");
		return false;
	}
	return true;
}

/*
 * Returns the operand of a constant vector.  If core evaluates the constant only once there is a
 * row, it stays empty until expr_program_settle().  Rejects the program if the constant must not be
 * evaluated, or a register cannot hold it.
 */
static uint16
translate_constant(ExprProgram *p, Vec *vec)
{
	VectorConstant con = {0};

	if (vec->type == COLUMN_DATUM)
		return expr_program_reject(p, "values of this type are not supported on the GPU");
	switch (when_constant_is_ready(p->set, vec))
	{
		case EXPR_NOT_READY:
			return expr_program_reject(p, "a constant may only be computed if a row needs it");
		case EXPR_READY_FOR_ROWS:
		{
			uint16 operand = expr_program_constants(p, 1, &con.bits);

			if (operand != VECTOR_NONE)
			{
				p->waiting[p->nwaiting] = vec;
				p->places[p->nwaiting++] = operand - VECTOR_CONSTANT;
				/* until its value is known, it is not equal to any other constant */
				p->flat.constants[operand - VECTOR_CONSTANT].pad = 1;
			}
			return operand;
		}
		default:
			break;
	}
	if (!read_constant(p, vec, &con))
		return VECTOR_NONE;
	return expr_program_constant(p, con.bits, con.state == VECTOR_NULL);
}

void
expr_program_settle(ExprProgram *p)
{
	for (int i = 0; i < p->nwaiting && p->unsupported_reason == NULL; i++)
	{
		VectorConstant con = {0};

		if (read_constant(p, p->waiting[i], &con))
			p->flat.constants[p->places[i]] = con;
	}
	p->nwaiting = 0;
}

/* ---- operations ------------------------------------------------------------ */

/*
 * Returns the WIRE_ type in which the server stores a column of this type.  Decimals are 64-bit
 * integers there.
 */
static int
wire_type(ColumnType type)
{
#define X(NAME, value_t, bits_t, WIRE, ...) WIRE,
	static const int wire[] = {COLUMN_TYPES(X)};
#undef X

	return type == COLUMN_DEC ? WIRE_I64 : wire[type];
}

/* Returns whether the vector only says which values of the column are NULL, as bytes. */
static bool
is_presence(TupleDesc desc, const Vec *vec)
{
	Form_pg_attribute att = TupleDescAttr(desc, vec->attno - 1);
	int16 scale;

	return vec->type == COLUMN_I8 &&
		spec_column_type(att->atttypid, att->atttypmod, &scale) != COLUMN_I8;
}

/*
 * Returns the operand with the values of a stored column, which is added to p->stored if it is
 * new.  Rejects the program if it reads too many columns.
 */
static uint16
load_column(ExprProgram *p, ExprStored column)
{
	int s = 0;

	while (s < p->nstored &&
		   (p->stored[s].attno != column.attno || p->stored[s].type != column.type ||
			p->stored[s].scale != column.scale || p->stored[s].coded))
		s++;
	if (s == WIRE_MAX_STORED_COLS)
		return expr_program_reject(p, "the query reads more columns than the GPU supports");
	if (s == p->nstored)
		p->stored[p->nstored++] = column;
	return expr_program_emit(p, VECTOR_LOAD, wire_type(column.type), s, 0, 0);
}

/* Returns the operand with the values of a table column; rejects the program if they are Datums. */
static uint16
translate_column(ExprProgram *p, const Vec *vec)
{
	bool presence = vec->type != COLUMN_DATUM && is_presence(p->set->desc, vec);

	if (vec->type == COLUMN_DATUM)
		return expr_program_reject(p, "values of this type are not supported on the GPU");
	if (expr_program_is_inner(p, vec->attno))
		return expr_program_inner(p, vec->attno, vec->type, vec->scale, presence);
	return load_column(p, (ExprStored){vec->attno, vec->type, vec->scale, .presence = presence});
}

/* Returns an expression that is true if `expr` is not NULL, and otherwise NULL. */
static Expr *
presence_of(Expr *expr)
{
	NullTest *test = makeNode(NullTest);
	CaseWhen *when = makeNode(CaseWhen);
	CaseExpr *choice = makeNode(CaseExpr);

	test->arg = expr;
	test->nulltesttype = IS_NOT_NULL;
	test->location = -1;
	when->expr = (Expr *) test;
	when->result = (Expr *) makeBoolConst(true, false);
	choice->casetype = BOOLOID;
	choice->args = list_make1(when);
	choice->defresult = (Expr *) makeBoolConst(false, true);
	return (Expr *) choice;
}

/*
 * Returns the operand with the result of a binary-coercible cast.  Most casts need no instruction:
 * registers hold signed and unsigned integers of 32 bits in the same form.
 */
static uint16
translate_relabel(ExprProgram *p, const ExprOp *op)
{
	uint16 a = expr_program_vec(p, op->a);

	if (op->r->typid == BOOLOID && op->a->type == COLUMN_I8)
		return expr_program_emit(p, VECTOR_TRUTH, 0, a, 0, 0);
	if (op->r->type == COLUMN_DATUM || column_width(op->r->type) != column_width(op->a->type) ||
		!column_is_integer(op->r->type) || !column_is_integer(op->a->type))
		return expr_program_reject(p, "a cast is not supported on the GPU");
	return a;
}

/*
 * Translates a logical operation, a test or a choice between values (CASE, COALESCE, NULLIF,
 * GREATEST).  Sets *r to the result's operand; returns false for any other operation.
 */
static bool
translate_choice(ExprProgram *p, const ExprOp *op, uint16 *r)
{
	static const struct
	{
		void (*run)(const ExprOp *op, int n);
		VectorOp code;
	} ops[] = {
		{expr_run_and, VECTOR_AND},           {expr_run_or, VECTOR_OR},
		{expr_run_not, VECTOR_NOT},           {expr_run_isnull, VECTOR_ISNULL},
		{expr_run_istrue, VECTOR_IS_TRUE},    {expr_run_select, VECTOR_SELECT},
		{expr_run_coalesce, VECTOR_COALESCE}, {expr_run_nullif, VECTOR_NULLIF},
		{expr_run_distinct, VECTOR_DISTINCT}, {expr_run_greatest, VECTOR_GREATEST},
	};

	for (int i = 0; i < lengthof(ops); i++)
	{
		VectorOp code = ops[i].code;
		uint16 a, b, c;

		if (ops[i].run != op->run)
			continue;
		if (code == VECTOR_ISNULL && op->data != NULL)
			code = VECTOR_ISNOTNULL;
		if (code == VECTOR_IS_TRUE)
			code += ((BooleanTest *) op->data)->booltesttype - IS_TRUE;
		a = expr_program_vec(p, op->a);
		b = op->b ? expr_program_vec(p, op->b) : 0;
		c = op->c ? expr_program_vec(p, op->c) : 0;
		*r = expr_program_emit(p, code, 0, a, b, c);
		return true;
	}
	return false;
}

/*
 * Returns the operand with the result of an operation.  Rejects the program if the GPU has no such
 * operation.
 */
static uint16
translate_op(ExprProgram *p, const ExprOp *op)
{
	const ExprFunction *f = expr_function_of(op);
	uint16 r;

	if (op->run == expr_run_relabel)
		return translate_relabel(p, op);
	if (expr_memo_inner(op))
		return expr_program_vec(p, expr_memo_inner(op));
	if (f && f->code == VECTOR_NONE)
		return expr_program_reject(p, "the last digit of a function depends on the C library");
	if (f)
	{
		uint16 a = expr_program_vec(p, op->a);
		uint16 b = op->b ? expr_program_vec(p, op->b) : 0;

		return expr_program_emit(p, f->code, 0, a, b, 0);
	}
	if (translate_choice(p, op, &r) || expr_translate_decimal(p, op, &r) ||
		expr_translate_scales(p, op, &r) || expr_translate_rounding(p, op, &r) ||
		expr_translate_time(p, op, &r) || expr_translate_bucket(p, op, &r) ||
		expr_translate_in(p, op, &r))
		return r;
	return expr_program_reject(p, "a function is not supported on the GPU");
}

/* Returns the operation that computes a vector, or NULL: the vector is filled in another way. */
static const ExprOp *
find_op(const ExprSet *set, const Vec *vec)
{
	for (const ExprOp *op = set->stages[vec->stage].ops; op; op = op->next)
		if (op->r == vec)
			return op;
	return NULL;
}

/*
 * ExprProgram.translate: returns the operand with a vector's values, which each vector gets once.
 * Rejects the program if there is no vector, or it cannot be translated.
 */
static uint16
translate_vec(ExprProgram *p, Vec *vec)
{
	const ExprOp *op;
	uint16 operand;

	if (p->unsupported_reason || vec == NULL)
		return expr_program_reject(p, "an expression is evaluated row by row");
	check_stack_depth();
	for (int i = 0; i < p->nvecs; i++)
		if (p->vecs[i] == vec)
			return p->operands[i];
	if (vec->constant)
		operand = translate_constant(p, vec);
	else if (vec->attno != 0)
		operand = translate_column(p, vec);
	else if (vec->expr == NULL || vec->type == COLUMN_DATUM || vec->scales ||
			 (operand = expr_program_lookup(p, vec->expr, vec->type, vec->scale, -1, false)) ==
				 VECTOR_NONE)
	{
		op = find_op(p->set, vec);
		operand = op ? translate_op(p, op) :
					   expr_program_reject(p, "a value is not computed by a vector operation");
	}
	if (p->unsupported_reason)
		return VECTOR_NONE;
	if (p->nvecs < lengthof(p->vecs))
	{
		p->vecs[p->nvecs] = vec;
		p->operands[p->nvecs++] = operand;
	}
	return operand;
}

/* ---- choices between values by reference ------------------------------------------- */

/* Returns the column as an expression. */
static Expr *
column_expr(const ExprProgram *p, AttrNumber attno)
{
	Form_pg_attribute att = TupleDescAttr(p->set->desc, attno - 1);
	Index varno = p->joins == NULL      ? ((Scan *) p->set->parent->plan)->scanrelid :
		expr_program_is_inner(p, attno) ? p->joins->inner_varno :
										  p->joins->table_varno;

	return (Expr *) makeVar(varno, attno, att->atttypid, att->atttypmod, att->attcollation, 0);
}

/* Describes a vector that is no choice.  Returns false if its value is not known yet. */
static bool
describe_part(ExprProgram *p, Vec *vec, ExprPart *part)
{
	*part = (ExprPart){.constant = vec->constant, .attno = vec->attno, .expr = vec->expr};
	if (vec->attno)
		part->expr = column_expr(p, vec->attno);
	if (!vec->constant)
		return true;
	if (when_constant_is_ready(p->set, vec) != EXPR_READY)
		return false;
	expr_constant_fill(p->set, vec);
	part->null = expr_state(vec, 0) == VECTOR_NULL;
	part->value = *(Datum *) vec->values;
	return part->null || expr_state(vec, 0) == VECTOR_VALUE;
}

/* Returns the operation of a choice; NULL: the vector is no choice. */
static const ExprOp *
find_choice(const ExprProgram *p, const Vec *vec)
{
	const ExprOp *op = vec->constant || vec->attno ? NULL : find_op(p->set, vec);

	if (op && expr_memo_inner(op))
		op = find_op(p->set, expr_memo_inner(op));
	return op && (op->run == expr_run_select || op->run == expr_run_coalesce) ? op : NULL;
}

bool
expr_program_look(ExprProgram *p, Vec *vec, bool (*look)(void *arg, const ExprPart *part),
				  void *arg)
{
	const ExprOp *op = find_choice(p, vec);
	ExprPart part;

	check_stack_depth();
	if (op == NULL)
		return describe_part(p, vec, &part) && look(arg, &part);
	return (op->run == expr_run_select || expr_program_look(p, op->a, look, arg)) &&
		expr_program_look(p, op->b, look, arg) &&
		(op->run == expr_run_coalesce || expr_program_look(p, op->c, look, arg));
}

uint16
expr_program_choose(ExprProgram *p, Vec *vec, uint16 (*operand)(void *arg, const ExprPart *part),
					void *arg)
{
	const ExprOp *op = find_choice(p, vec);
	ExprPart part;
	uint16 a, b, c;

	check_stack_depth();
	if (p->unsupported_reason)
		return VECTOR_NONE;
	if (op == NULL)
		return describe_part(p, vec, &part) ?
			operand(arg, &part) :
			expr_program_reject(p, "a constant may only be computed if a row needs it");
	a = op->run == expr_run_select ? expr_program_vec(p, op->a) :
									 expr_program_choose(p, op->a, operand, arg);
	b = expr_program_choose(p, op->b, operand, arg);
	if (op->run == expr_run_coalesce)
		return expr_program_emit(p, VECTOR_COALESCE, 0, a, b, 0);
	c = expr_program_choose(p, op->c, operand, arg);
	return expr_program_emit(p, VECTOR_SELECT, 0, a, b, c);
}

/* Returns the operand that is NULL where a column is. */
static uint16
column_presence(ExprProgram *p, AttrNumber attno)
{
	return expr_program_is_inner(p, attno) ?
		expr_program_inner(p, attno, COLUMN_I8, 0, true) :
		load_column(p, (ExprStored){attno, COLUMN_I8, 0, .presence = true});
}

/* Returns the operand that is NULL where a part of a choice is. */
static uint16
part_presence(void *arg, const ExprPart *part)
{
	ExprProgram *p = arg;
	uint16 operand = VECTOR_NONE;

	if (part->constant)
		return expr_program_constant(p, 1, part->null);
	if (part->attno)
		return column_presence(p, part->attno);
	if (part->expr)
		operand = expr_program_lookup(p, presence_of(part->expr), COLUMN_I8, 0, -1, false);
	return operand == VECTOR_NONE ?
		expr_program_reject(p, "the argument of a count is evaluated row by row") :
		operand;
}

uint16
expr_program_presence(ExprProgram *p, const ExprRoot *root)
{
	ExprPart whole = {.expr = root->expr};

	if (p->unsupported_reason)
		return VECTOR_NONE;
	if (root->vec == NULL)
		return part_presence(p, &whole);
	return root->vec->type == COLUMN_DATUM ? expr_program_choose(p, root->vec, part_presence, p) :
											 expr_program_vec(p, root->vec);
}

ExprProgram *
expr_program_create(ExprSet *set, const ExprJoins *joins)
{
	ExprProgram *p = palloc0(sizeof(ExprProgram));

	p->set = set;
	p->joins = joins;
	p->translate = translate_vec;
	p->flat.filter = VECTOR_NONE;
	return p;
}

uint16
expr_program_root(ExprProgram *p, const ExprRoot *root, ColumnType type, int16 scale)
{
	uint16 operand = VECTOR_NONE;

	if (root->vec == NULL && type != COLUMN_DATUM && p->unsupported_reason == NULL)
		operand = expr_program_lookup(p, root->expr, type, scale, -1, false);
	return operand == VECTOR_NONE ? expr_program_vec(p, root->vec) : operand;
}

/*
 * Adds the condition `then` to the filter; core evaluates it for rows that pass the filter so far.
 * Each condition is an instruction's result, not a column or a constant, so that a server can
 * remove rows where it is computed (GPUAGG_CONDITION).
 */
static void
add_condition(ExprProgram *p, uint16 then)
{
	if (then >= VECTOR_CONSTANT || expr_program_stored(p, then) >= 0)
		then = expr_program_emit(p, VECTOR_IS_TRUE, 0, then, 0, 0);
	if (p->flat.filter != VECTOR_NONE)
		then = expr_program_emit(p, VECTOR_SELECT, 0, p->flat.filter, then,
								 expr_program_constant(p, 0, false));
	p->flat.filter = then;
}

void
expr_program_filter(ExprProgram *p, const ExprRoot *root)
{
	add_condition(p, expr_program_root(p, root, COLUMN_I8, 0));
}

/* Returns the operand with the number of a join's keys. */
static uint16
number_keys(ExprProgram *p, const ExprJoin *join)
{
	uint16 number = VECTOR_NONE;

	for (int k = 0; k < join->nkeys; k++)
	{
		const ExprRoot *key = join->keys[k];
		uint16 part;

		if (key->vec == NULL || !column_is_integer(key->vec->type) || key->vec->type == COLUMN_U32)
			return expr_program_reject(p, "the key of a join is not an integer on the GPU");
		part = expr_program_root(p, key, key->vec->type, 0);
		if (join->parts)
		{
			const ExprKeyPart *is = &join->parts[k];
			int64 list[] = {is->least, is->greatest, is->origin, is->factor};

			part = expr_program_emit(p, VECTOR_KEY_PART, 0, part,
									 expr_program_constants(p, lengthof(list), list), 0);
		}
		number = k == 0 ? part : expr_program_emit(p, VECTOR_DEC_ADD, 0, number, part, 0);
	}
	return number;
}

void
expr_program_join(ExprProgram *p, int j, const ExprJoin *join)
{
	ParamListInfo params = p->set->parent->state->es_param_list_info;
	uint16 number = number_keys(p, join);

	p->joins->keys[j] = join->hashed ? expr_program_find(p, j, number) : number;
	/* core computes the keys of every row, also if no column of the inner row is needed */
	for (int k = 0; k < join->nkeys && join->outer; k++)
		if (!expr_cannot_fail((Node *) join->keys[k]->expr, params))
			expr_program_check(p, join->keys[k]);
	if (!join->outer)
		add_condition(p,
					  expr_program_emit(p, join->found ? VECTOR_ISNOTNULL : VECTOR_ISNULL, 0,
										join->hashed ? p->joins->keys[j] : expr_program_found(p, j),
										0, 0));
}

void
expr_program_check(ExprProgram *p, const ExprRoot *root)
{
	ColumnType type = root->vec ? root->vec->type : COLUMN_DATUM;
	uint16 operand =
		type == COLUMN_DATUM ? expr_program_presence(p, root) : expr_program_root(p, root, type, 0);

	add_condition(p, expr_program_emit(p, VECTOR_DETERMINED, 0, operand, 0, 0));
}

void
expr_program_replace(ExprProgram *p, uint16 operand, uint16 by)
{
	for (uint32 i = 0; i < p->flat.ninstructions; i++)
	{
		VectorInstruction *in = &p->flat.instructions[i];
		uint16 *operands[3] = {&in->a, &in->b, &in->c};

		for (int k = 0; k < vector_operands(in->op) && in->op != VECTOR_LOAD; k++)
			if (*operands[k] == operand)
				*operands[k] = by;
	}
	if (p->flat.filter == operand)
		p->flat.filter = by;
	for (int i = 0; i < p->nvecs; i++)
		if (p->operands[i] == operand)
			p->operands[i] = by;
}

/* ---- properties of registers ------------------------------------------------ */

int
expr_program_stored(const ExprProgram *p, uint16 operand)
{
	if (operand >= VECTOR_CONSTANT || p->flat.instructions[operand].op != VECTOR_LOAD)
		return -1;
	return p->flat.instructions[operand].a;
}

/* Returns whether an operand can be NULL. nulls: [instruction] whether its result can be NULL. */
static bool
can_be_null(const ExprProgram *p, const bool *nulls, uint16 operand)
{
	return operand >= VECTOR_CONSTANT ?
		p->flat.constants[operand - VECTOR_CONSTANT].state == VECTOR_NULL :
		nulls[operand];
}

void
expr_program_nulls(const ExprProgram *p, uint32 stored, bool *nulls)
{
	for (int i = 0; i < p->flat.ninstructions; i++)
	{
		const VectorInstruction *in = &p->flat.instructions[i];
		int n = vector_operands(in->op);
		bool a = in->op != VECTOR_LOAD && can_be_null(p, nulls, in->a);
		bool b = n > 1 && can_be_null(p, nulls, in->b);
		bool c = n > 2 && can_be_null(p, nulls, in->c);

		switch (in->op)
		{
			case VECTOR_LOAD:
				nulls[i] = (stored >> in->a) & 1;
				break;
			case VECTOR_ISNULL:
			case VECTOR_ISNOTNULL:
			case VECTOR_IS_TRUE:
			case VECTOR_IS_NOT_TRUE:
			case VECTOR_IS_FALSE:
			case VECTOR_IS_NOT_FALSE:
			case VECTOR_IS_UNKNOWN:
			case VECTOR_IS_NOT_UNKNOWN:
			case VECTOR_DISTINCT:
			case VECTOR_DETERMINED:
				nulls[i] = false;
				break;
			case VECTOR_LOOKUP:
				/* a join has the entry for NULL where there is no inner row */
				nulls[i] = p->lookups[in->data].nulls ||
					(a && p->lookups[in->data].join < 0 &&
					 p->lookups[in->data].null == VECTOR_NULL);
				break;
			case VECTOR_SELECT:
				nulls[i] = b || c;
				break;
			case VECTOR_COALESCE:
			case VECTOR_GREATEST:
				nulls[i] = a && b;
				break;
			case VECTOR_NULLIF:
			case VECTOR_KEY_PART:
			case VECTOR_FIND:
				nulls[i] = true;
				break;
			case VECTOR_IN:
				nulls[i] = a || (in->data & VECTOR_IN_NULL);
				break;
			default:
				nulls[i] = a || b;
				break;
		}
	}
}

/* Returns the range of all values of an integer column type, in the form of a register. */
static ExprInterval
type_interval(ColumnType type)
{
	switch (type)
	{
		case COLUMN_I8:
			return (ExprInterval){PG_INT8_MIN, PG_INT8_MAX};
		case COLUMN_I16:
			return (ExprInterval){PG_INT16_MIN, PG_INT16_MAX};
		case COLUMN_I32:
		case COLUMN_U32:
			return (ExprInterval){PG_INT32_MIN, PG_INT32_MAX};
		default:
			return (ExprInterval){PG_INT64_MIN, PG_INT64_MAX};
	}
}

/* Returns the smallest range that contains both ranges. min > max: the range has no values. */
static ExprInterval
union_of(ExprInterval a, ExprInterval b)
{
	if (a.min > a.max)
		return b;
	if (b.min > b.max)
		return a;
	return (ExprInterval){Min(a.min, b.min), Max(a.max, b.max)};
}

/*
 * Returns the range of date_trunc() over times of range a; in: the VECTOR_TIME instruction.
 * date_trunc() keeps the order of times, so it is applied to both ends.  Returns the range of int64
 * if an end cannot be truncated.
 */
static ExprInterval
truncated_interval(ExprInterval a, const VectorInstruction *in, const ExprProgram *p)
{
	ExprInterval none = {PG_INT64_MIN, PG_INT64_MAX};
	VectorRow row;
	VectorCell min, max;

	if (a.min > a.max || in->b < VECTOR_CONSTANT)
		return none;
	row.b = vector_cell(p->flat.constants[in->b - VECTOR_CONSTANT].bits, VECTOR_VALUE);
	row.c = row.b;
	row.a = vector_cell(a.min, VECTOR_VALUE);
	min = vector_time(row, in->data);
	row.a.value = a.max;
	max = vector_time(row, in->data);
	return min.state == VECTOR_VALUE && max.state == VECTOR_VALUE ?
		(ExprInterval){min.value, max.value} :
		none;
}

/*
 * Returns a range that contains all values of an integer operand; it may exceed the range of the
 * operand's type. stored: [stored column] its range. min > max: always NULL.
 */
static ExprInterval
instruction_interval(const ExprProgram *p, const ExprInterval *stored, uint16 operand)
{
	ExprInterval any = {PG_INT64_MIN, PG_INT64_MAX};
	const VectorInstruction *in = &p->flat.instructions[operand];

	check_stack_depth();
	if (operand >= VECTOR_CONSTANT)
	{
		const VectorConstant *con = &p->flat.constants[operand - VECTOR_CONSTANT];

		return con->state == VECTOR_VALUE ? (ExprInterval){con->bits, con->bits} :
											(ExprInterval){1, 0};
	}
	switch (in->op)
	{
		case VECTOR_LOAD:
			return stored[in->a];
		case VECTOR_LOOKUP:
			return p->lookups[in->data].interval;
		case VECTOR_SELECT:
			return union_of(instruction_interval(p, stored, in->b),
							instruction_interval(p, stored, in->c));
		case VECTOR_COALESCE:
		case VECTOR_GREATEST:
			return union_of(instruction_interval(p, stored, in->a),
							instruction_interval(p, stored, in->b));
		case VECTOR_NULLIF:
		case VECTOR_F_INT4_INT2:
		case VECTOR_F_INT8_INT2:
		case VECTOR_F_INT8_INT4:
		case VECTOR_F_INT2_INT4:
		case VECTOR_F_INT2_INT8:
		case VECTOR_F_INT4_INT8:
			return instruction_interval(p, stored, in->a);
		case VECTOR_TIME:
			if (!(in->data & VECTOR_TIME_TRUNC) || (in->data & VECTOR_TIME_DATE))
				return any;
			return truncated_interval(instruction_interval(p, stored, in->a), in, p);
		case VECTOR_BUCKET:
			return (ExprInterval){0, p->flat.constants[in->b - VECTOR_CONSTANT + 2].bits + 1};
		case VECTOR_F_INT2MOD:
		case VECTOR_F_MOD_INT2_INT2:
		case VECTOR_F_INT4MOD:
		case VECTOR_F_MOD_INT4_INT4:
		case VECTOR_F_INT8MOD:
		case VECTOR_F_MOD_INT8_INT8:
		{
			ExprInterval a = instruction_interval(p, stored, in->a);
			ExprInterval b = instruction_interval(p, stored, in->b);
			int64 most;

			if (b.min > b.max || b.min <= PG_INT64_MIN + 1)
				return any;
			/* the remainder has the sign of a */
			most = Max(Max(b.max, -b.min), 1) - 1;
			return (ExprInterval){a.min >= 0 ? 0 : -most, a.max <= 0 ? 0 : most};
		}
		default:
			return any;
	}
}

ExprInterval
expr_program_interval(const ExprProgram *p, const ExprInterval *stored, uint16 operand,
					  ColumnType type)
{
	ExprInterval all = type_interval(type);
	ExprInterval i = instruction_interval(p, stored, operand);

	if (i.min > i.max)
		return (ExprInterval){0, 0};
	return (ExprInterval){Max(i.min, all.min), Min(i.max, all.max)};
}

/* ---- registers -------------------------------------------------------------- */

/* Data of expr_program_finish(): which register each instruction's result is given. */
typedef struct Allocation
{
	int last[VECTOR_MAX_INSTRUCTIONS];  /* [instruction] the last instruction that reads its result
										 */
	int given[VECTOR_MAX_INSTRUCTIONS]; /* [instruction] its register */
	bool used[VECTOR_MAX_REGISTERS];
} Allocation;

/* Records that instruction `at` reads an operand. */
static void
note_use(Allocation *all, uint16 operand, int at)
{
	if (operand < VECTOR_CONSTANT)
		all->last[operand] = Max(all->last[operand], at);
}

/*
 * Returns the register of an operand, or the operand itself if it is a constant.  Frees the
 * register if instruction `at` is its last reader; at = -1 frees nothing.
 */
static uint16
use_register(Allocation *all, uint16 operand, int at)
{
	if (operand >= VECTOR_CONSTANT)
		return operand;
	if (all->last[operand] == at)
		all->used[all->given[operand]] = false;
	return all->given[operand];
}

bool
expr_program_finish(ExprProgram *p, VectorProgram *out, uint16 *outputs, int n)
{
	Allocation all = {0};
	int end = p->flat.ninstructions;

	if (p->unsupported_reason)
		return false;
	*out = p->flat;
	out->nregisters = 0;
	for (int i = 0; i < end; i++)
	{
		const VectorInstruction *in = &out->instructions[i];
		const uint16 operands[3] = {in->a, in->b, in->c};

		for (int k = 0; k < vector_operands(in->op) && in->op != VECTOR_LOAD; k++)
			note_use(&all, operands[k], i);
	}
	for (int c = 0; c < n; c++)
		note_use(&all, outputs[c], end);
	if (out->filter != VECTOR_NONE)
		note_use(&all, out->filter, end);
	for (int i = 0; i < end; i++)
	{
		VectorInstruction *in = &out->instructions[i];
		uint16 *operands[3] = {&in->a, &in->b, &in->c};
		int r = 0;

		for (int k = 0; k < vector_operands(in->op) && in->op != VECTOR_LOAD; k++)
			*operands[k] = use_register(&all, *operands[k], i);
		while (r < VECTOR_MAX_REGISTERS && all.used[r])
			r++;
		if (r == VECTOR_MAX_REGISTERS)
		{
			expr_program_reject(p, "the expressions need more registers than the GPU has");
			return false;
		}
		/* nobody reads what has been replaced */
		all.used[r] = all.last[i] > 0;
		all.given[i] = in->r = r;
		out->nregisters = Max(out->nregisters, r + 1);
	}
	for (int c = 0; c < n; c++)
		outputs[c] = use_register(&all, outputs[c], -1);
	if (out->filter != VECTOR_NONE)
		out->filter = use_register(&all, out->filter, -1);
	return true;
}
