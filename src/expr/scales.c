/*
 * scales.c
 *	  Which display scales the values of a numeric expression have, and vectors of them.
 *
 * In core, a sum has the larger display scale of its arguments, a product the sum of theirs, and
 * CASE that of the branch which is taken; a quotient has at least 16 significant digits.  So where
 * columns have a declared scale, that of an expression is known without any value, or at least the
 * largest that it may have is.  Decimals are integers of that scale; where values may display fewer
 * digits, a vector of integers (Vec.scales) says how many each one has.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "utils/fmgroids.h"

#include "columns/decimal.h"
#include "expr/internal.h"
#include "expr/program.h"
#include "operators/decode_numeric.h"
#include "spec.h"

/* ---- of expressions ---------------------------------------------------------- */

typedef struct Scales
{
	int16 least;
	int16 most;
} Scales;

static bool find_scales(Node *expr, Scales *scales);

/* The display scale of a numeric constant, if a decimal can represent it. */
static bool
const_scale(Const *con, int16 *scale)
{
	struct varlena *num;
	gpuagg_i128 value;

	if (con->constisnull)
		return false;
	num = PG_DETOAST_DATUM(con->constvalue);
	for (int s = 0; s <= EXPR_MAX_SCALE; s++)
		if (decode_numeric((uint8_t *) VARDATA_ANY(num), VARSIZE_ANY_EXHDR(num), s, &value))
		{
			*scale = s;
			return true;
		}
	return false;
}

bool
expr_const_int4(Node *node, int32 *value)
{
	if (!IsA(node, Const) || ((Const *) node)->consttype != INT4OID ||
		((Const *) node)->constisnull)
		return false;
	*value = DatumGetInt32(((Const *) node)->constvalue);
	return true;
}

/* Of functions whose results have one scale. */
static bool
function_scale(Oid funcid, List *args, int16 *scale)
{
	int32 n;

	switch (funcid)
	{
		case F_NUMERIC_INT2:
		case F_NUMERIC_INT4:
		case F_NUMERIC_INT8:
			*scale = 0;
			return true;
		case F_ROUND_NUMERIC_INT4:
		case F_TRUNC_NUMERIC_INT4:
			if (!expr_const_int4(lsecond(args), &n) || n > EXPR_MAX_SCALE)
				return false;
			*scale = Max(n, 0);
			return true;
		case F_CEIL_NUMERIC:
		case F_CEILING_NUMERIC:
		case F_FLOOR_NUMERIC:
		case F_SIGN_NUMERIC:
			*scale = 0;
			return true;
		case F_NUMERIC_NUMERIC_INT4:
			return expr_const_int4(lsecond(args), &n) &&
				spec_column_type(NUMERICOID, n, scale) == COLUMN_DEC;
		default:
			return expr_interval_scale(funcid, args, scale) ||
				expr_extract_scale(funcid, args, scale);
	}
}

static bool
function_scales(Oid funcid, List *args, Scales *scales)
{
	Scales a, b;

	switch (funcid)
	{
		case F_NUMERIC_ADD:
		case F_NUMERIC_SUB:
		case F_NUMERIC_MUL:
		case F_NUMERIC_DIV:
		case F_NUMERIC_MOD:
		case F_MOD_NUMERIC_NUMERIC:
			if (!find_scales(linitial(args), &a) || !find_scales(lsecond(args), &b))
				return false;
			if (funcid == F_NUMERIC_MUL)
				*scales = (Scales){a.least + b.least, a.most + b.most};
			else
				*scales = (Scales){Max(a.least, b.least), Max(a.most, b.most)};
			if (funcid == F_NUMERIC_DIV)
				scales->most = Max(scales->most, EXPR_QUOTIENT_SCALE);
			return scales->most <= EXPR_MAX_SCALE;
		case F_NUMERIC_UMINUS:
		case F_NUMERIC_UPLUS:
		case F_NUMERIC_ABS:
		case F_ABS_NUMERIC:
			return find_scales(linitial(args), scales);
		default:
			if (!function_scale(funcid, args, &scales->least))
				return false;
			scales->most = scales->least;
			return true;
	}
}

/* Of any of these that are not NULL constants.  False if all are NULL. */
static bool
choice_scales(List *exprs, Scales *scales)
{
	Scales s;
	ListCell *lc;

	*scales = (Scales){EXPR_MAX_SCALE + 1, -1};
	foreach (lc, exprs)
	{
		if (lfirst(lc) == NULL || (IsA(lfirst(lc), Const) && ((Const *) lfirst(lc))->constisnull))
			continue;
		if (!find_scales(lfirst(lc), &s))
			return false;
		*scales = (Scales){Min(scales->least, s.least), Max(scales->most, s.most)};
	}
	return scales->most >= 0;
}

static bool
one_scale(bool known, Scales *scales)
{
	scales->most = scales->least;
	return known;
}

static bool
find_scales(Node *expr, Scales *scales)
{
	if (exprType(expr) != NUMERICOID)
		return false;
	check_stack_depth();
	switch (nodeTag(expr))
	{
		case T_Var:
			return one_scale(spec_column_type(exprType(expr), exprTypmod(expr), &scales->least) ==
								 COLUMN_DEC,
							 scales);
		case T_Const:
			return one_scale(((Const *) expr)->consttype == NUMERICOID &&
								 const_scale((Const *) expr, &scales->least),
							 scales);
		case T_RelabelType:
			return find_scales((Node *) ((RelabelType *) expr)->arg, scales);
		case T_FuncExpr:
			return function_scales(((FuncExpr *) expr)->funcid, ((FuncExpr *) expr)->args, scales);
		case T_OpExpr:
			set_opfuncid((OpExpr *) expr);
			return function_scales(((OpExpr *) expr)->opfuncid, ((OpExpr *) expr)->args, scales);
		case T_CaseExpr:
		{
			List *results = list_make1(((CaseExpr *) expr)->defresult);
			ListCell *lc;

			foreach (lc, ((CaseExpr *) expr)->args)
				results = lappend(results, ((CaseWhen *) lfirst(lc))->result);
			return choice_scales(results, scales);
		}
		case T_CoalesceExpr:
			return choice_scales(((CoalesceExpr *) expr)->args, scales);
		case T_MinMaxExpr:
			return choice_scales(((MinMaxExpr *) expr)->args, scales);
		case T_NullIfExpr:
			return find_scales(linitial(((NullIfExpr *) expr)->args), scales);
		default:
			return false;
	}
}

bool
expr_decimal_scales(Node *expr, int16 *least, int16 *most)
{
	Scales scales;

	if (!find_scales(expr, &scales))
		return false;
	*least = scales.least;
	*most = scales.most;
	return true;
}

bool
expr_decimal_shape(Node *expr, int16 *scale)
{
	int16 least;

	return expr_decimal_scales(expr, &least, scale) && least == *scale;
}

ColumnType
expr_column_type(Node *expr, int16 *scale)
{
	if (exprType(expr) == NUMERICOID && expr_decimal_shape(expr, scale))
		return COLUMN_DEC;
	return spec_column_type(exprType(expr), exprTypmod(expr), scale);
}

ColumnType
expr_value_type(Expr *expr, int16 *scale)
{
	return expr_decimal_shape((Node *) expr, scale) ?
		COLUMN_DEC :
		spec_column_type(exprType((Node *) expr), -1, scale);
}

/* ---- of vectors ---------------------------------------------------------------- */

/* data: a power of ten */
static void
run_rescale(const ExprOp *op, int n)
{
	const gpuagg_i128 *a = op->a->values;
	gpuagg_i128 *r = op->r->values;
	gpuagg_i128 factor = *(gpuagg_i128 *) op->data;
	uint8 fallback[EXPR_ROWS];
	uint8 any = 0;

	for (int i = 0; i < n; i++)
	{
		fallback[i] = 0;
		if ((int64) a[i] == a[i] && (int64) factor == factor)
			r[i] = (gpuagg_i128) (int64) a[i] * (int64) factor;
		else
			any |= fallback[i] = __builtin_mul_overflow(a[i], factor, &r[i]);
	}
	expr_strict(op, n, any ? fallback : NULL);
}

/* The scale of decimals that have but one. */
static void
run_one_scale(const ExprOp *op, int n)
{
	int32 *r = op->r->values;

	for (int i = 0; i < n; i++)
		r[i] = op->a->scale;
	expr_strict(op, n, NULL);
}

static void
run_scale_sum(const ExprOp *op, int n)
{
	const int32 *a = op->a->values;
	const int32 *b = op->b->values;
	int32 *r = op->r->values;

	for (int i = 0; i < n; i++)
		r[i] = (uint32) a[i] + (uint32) b[i];
	expr_strict(op, n, NULL);
}

static void
run_scale_max(const ExprOp *op, int n)
{
	const int32 *a = op->a->values;
	const int32 *b = op->b->values;
	int32 *r = op->r->values;

	for (int i = 0; i < n; i++)
		r[i] = Max(a[i], b[i]);
	expr_strict(op, n, NULL);
}

static Vec *
emit_scales(ExprSet *set, int stage, void (*run)(const ExprOp *, int), Vec *a, Vec *b, Vec *c)
{
	return expr_emit(set, stage, run, expr_new_vec(set, COLUMN_I32, 0, INT4OID, NULL, stage), a, b,
					 c, NULL);
}

Vec *
expr_scales(ExprSet *set, Vec *vec, int stage)
{
	return vec->scales ? vec->scales : emit_scales(set, stage, run_one_scale, vec, NULL, NULL);
}

Vec *
expr_rescale(ExprSet *set, Vec *vec, int16 scale, int stage)
{
	gpuagg_i128 *factor;
	Vec *r;

	if (vec->scale == scale)
		return vec;
	factor = expr_alloc(sizeof(gpuagg_i128));
	*factor = decimal_power10(scale - vec->scale);
	r = expr_new_vec(set, COLUMN_DEC, scale, vec->typid, NULL, stage);
	r->least_scale = vec->least_scale;
	expr_emit(set, stage, run_rescale, r, vec, NULL, NULL, factor);
	r->scales = expr_scales(set, vec, stage);
	return r;
}

Vec *
expr_scales_of_two(ExprSet *set, Vec *r, Vec *a, Vec *b, bool product, int stage)
{
	r->least_scale =
		product ? a->least_scale + b->least_scale : Max(a->least_scale, b->least_scale);
	if (r->least_scale < r->scale)
		r->scales = emit_scales(set, stage, product ? run_scale_sum : run_scale_max,
								expr_scales(set, a, stage), expr_scales(set, b, stage), NULL);
	return r;
}

Vec *
expr_scales_of_choice(ExprSet *set, Vec *r, void (*run)(const ExprOp *, int), Vec *a, Vec *b,
					  Vec *c, int stage)
{
	Vec *args[] = {a, b, c};

	if (r->type != COLUMN_DEC)
		return r;
	for (int i = 0; i < lengthof(args); i++)
		if (args[i] && args[i]->type == COLUMN_DEC)
			r->least_scale = Min(r->least_scale, args[i]->least_scale);
	if (r->least_scale == r->scale)
		return r;
	for (int i = 0; i < lengthof(args); i++)
		if (args[i] && args[i]->type == COLUMN_DEC)
			args[i] = expr_scales(set, args[i], stage);
	r->scales = emit_scales(set, stage, run, args[0], args[1], args[2]);
	return r;
}

/* ---- for the GPU ------------------------------------------------------------------ */

uint16
expr_translate_rescaled(ExprProgram *p, Vec *vec, int16 scale)
{
	uint16 a = expr_program_vec(p, vec);

	if (scale - vec->scale > 18)
		return expr_program_reject(
			p, "decimals whose scales are that far apart are not supported on the GPU");
	return scale == vec->scale ?
		a :
		expr_program_emit(p, VECTOR_DEC_RESCALE, scale - vec->scale, a, 0, 0);
}

/* Scales are integers, which registers have as they have decimals. */
bool
expr_translate_scales(ExprProgram *p, const ExprOp *op, uint16 *r)
{
	uint16 a, b;

	if (op->run == run_rescale)
		*r = expr_translate_rescaled(p, op->a, op->r->scale);
	else if (op->run == run_one_scale)
	{
		a = expr_program_vec(p, op->a);
		*r = expr_program_emit(p, VECTOR_DEC_MUL, 0,
							   expr_program_emit(p, VECTOR_PRESENCE, 0, a, 0, 0),
							   expr_program_constant(p, op->a->scale, false), 0);
	}
	else if (op->run == run_scale_sum || op->run == run_scale_max)
	{
		a = expr_program_vec(p, op->a);
		b = expr_program_vec(p, op->b);
		if (op->run == run_scale_max)
		{
			uint16 more = expr_program_emit(p, VECTOR_DEC_COMPARE, 4, a, b, 0);

			/* b, and what a is larger */
			a = expr_program_emit(p, VECTOR_DEC_MUL, 0,
								  expr_program_emit(p, VECTOR_DEC_SUB, 0, a, b, 0), more, 0);
		}
		*r = expr_program_emit(p, VECTOR_DEC_ADD, 0, a, b, 0);
	}
	else
		return false;
	return true;
}
