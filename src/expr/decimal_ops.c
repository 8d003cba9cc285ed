/*
 * decimal_ops.c
 *	  Vector operations of numerics: exact arithmetic on 128-bit integers of a scale known in
 *	  advance.
 *
 * The scale is the largest display scale of the expression (analysis/decimal_scales.c).  Rows whose
 * result exceeds 128 bits, and values that a decimal cannot represent, take the scalar fallback.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/fmgroids.h"

#include "columns/decimal.h"
#include "expr/expr_internal.h"
#include "expr/program.h"

/* ---- loops ----------------------------------------------------------------- */

typedef gpuagg_i128 i128;

/* Sets r = a * b; returns whether that overflows 128 bits. */
static inline bool
mul_i128(i128 a, i128 b, i128 *r)
{
	if ((int64) a == a && (int64) b == b)
	{
		*r = (i128) (int64) a * (int64) b;
		return false;
	}
	return __builtin_mul_overflow(a, b, r);
}

/* Factors that bring the arguments of an operation to the same scale. */
typedef struct DecimalArgs
{
	i128 fa, fb;
	int compare; /* a comparison's result if a < b (bit 0), if a = b (bit 1), if a > b (bit 2) */
} DecimalArgs;

/*
 * The loop of an operation over decimals.  The body computes row i and sets `over` if the row takes
 * the scalar fallback.
 */
#define DECIMAL_LOOP(...) \
	const DecimalArgs *d = op->data; \
	const i128 *as = op->a->values; \
	const i128 *bs = op->b ? op->b->values : NULL; \
	uint8 fallback[EXPR_ROWS]; \
	uint8 any = 0; \
\
	(void) d; \
	(void) bs; \
	for (int i = 0; i < n; i++) \
	{ \
		uint8 over = 0; \
		__VA_ARGS__ \
		fallback[i] = over; \
		any |= over; \
	} \
	expr_strict(op, n, any ? fallback : NULL)

/*
 * Defines an operation of two decimals.  The body gets the arguments of row i as a and b, brought
 * to the same scale.
 */
#define RUN_ALIGNED(name, ...) \
	static void run_##name(const ExprOp *op, int n) \
	{ \
		DECIMAL_LOOP({ \
			i128 a, b; \
\
			over |= mul_i128(as[i], d->fa, &a); \
			over |= mul_i128(bs[i], d->fb, &b); \
			__VA_ARGS__; \
		}); \
	}

RUN_ALIGNED(add, over |= __builtin_add_overflow(a, b, &((i128 *) op->r->values)[i]))
RUN_ALIGNED(sub, over |= __builtin_sub_overflow(a, b, &((i128 *) op->r->values)[i]))
RUN_ALIGNED(compare, ((int8 *) op->r->values)[i] = (d->compare >> (a < b ? 0 : a == b ? 1 : 2)) & 1)

/* r = a * b; the scale of r is the sum of their scales. */
static void
run_mul(const ExprOp *op, int n)
{
	DECIMAL_LOOP({ over |= mul_i128(as[i], bs[i], &((i128 *) op->r->values)[i]); });
}

/* r = -a */
static void
run_negate(const ExprOp *op, int n)
{
	DECIMAL_LOOP(
		{ over |= __builtin_sub_overflow((i128) 0, as[i], &((i128 *) op->r->values)[i]); });
}

/* r = |a| */
static void
run_abs(const ExprOp *op, int n)
{
	DECIMAL_LOOP({
		i128 a = as[i];

		over |= __builtin_sub_overflow((i128) 0, a, &((i128 *) op->r->values)[i]);
		if (a >= 0)
			((i128 *) op->r->values)[i] = a;
	});
}

/* r: integers of any column type as decimals of scale 0. */
static void
run_from_int(const ExprOp *op, int n)
{
	i128 *r = op->r->values;

	switch (op->a->type)
	{
#define X(NAME, value_t, ...) \
	case COLUMN_##NAME: \
		for (int i = 0; i < n; i++) \
			r[i] = ((const value_t *) op->a->values)[i]; \
		break;
		COLUMN_INTEGERS(X)
#undef X
		default:
			elog(ERROR, "column type %d is no integer", (int) op->a->type);
	}
	expr_strict(op, n, NULL);
}

/*
 * r: decimals converted to float8.  The result is correctly rounded if both the integer and the
 * power of ten are exact in a double: then the division rounds only once.  Larger integers take the
 * scalar fallback.
 */
static void
run_to_float8(const ExprOp *op, int n)
{
	double divisor = (double) decimal_power10(op->a->scale);

	DECIMAL_LOOP({
		i128 a = as[i];

		over = a > (INT64CONST(1) << 53) || a < -(INT64CONST(1) << 53);
		((double *) op->r->values)[i] = (double) (int64) a / divisor;
	});
}

bool
expr_is_decimal(Oid funcid)
{
	switch (funcid)
	{
		case F_NUMERIC_LT:
		case F_NUMERIC_EQ:
		case F_NUMERIC_LE:
		case F_NUMERIC_GT:
		case F_NUMERIC_NE:
		case F_NUMERIC_GE:
		case F_NUMERIC_INT2:
		case F_NUMERIC_INT4:
		case F_NUMERIC_INT8:
		case F_NUMERIC_ABS:
		case F_ABS_NUMERIC:
		case F_FLOAT8_NUMERIC:
			return true;
		default:
			return false;
	}
}

/* ---- compiling ------------------------------------------------------------- */

/* An operator of two decimals. */
typedef struct DecimalOperator
{
	Oid funcid;
	void (*run)(const ExprOp *op, int n);
	int compare;
} DecimalOperator;

/* Returns the operator of two decimals that a function computes, or NULL. */
static const DecimalOperator *
find_operator(Oid funcid)
{
	static const DecimalOperator operators[] = {
		{F_NUMERIC_ADD, run_add},       {F_NUMERIC_SUB, run_sub},
		{F_NUMERIC_MUL, run_mul},       {F_NUMERIC_LT, run_compare, 1},
		{F_NUMERIC_EQ, run_compare, 2}, {F_NUMERIC_LE, run_compare, 3},
		{F_NUMERIC_GT, run_compare, 4}, {F_NUMERIC_NE, run_compare, 5},
		{F_NUMERIC_GE, run_compare, 6},
	};

	for (int i = 0; i < lengthof(operators); i++)
		if (operators[i].funcid == funcid)
			return &operators[i];
	return NULL;
}

Vec *
expr_decimal_call(ExprSet *set, Oid funcid, Expr *expr, Vec *a, Vec *b, int stage)
{
	const DecimalOperator *found = find_operator(funcid);
	DecimalArgs *d;
	int16 scale = 0;
	Vec *r;

	if (found == NULL || a->type != COLUMN_DEC || b->type != COLUMN_DEC)
		return NULL;
	if (!found->compare)
		scale = funcid == F_NUMERIC_MUL ? a->scale + b->scale : Max(a->scale, b->scale);
	if (scale > EXPR_MAX_SCALE)
		return NULL;
	d = expr_alloc(sizeof(DecimalArgs));
	d->fa = decimal_power10(Max(b->scale - a->scale, 0));
	d->fb = decimal_power10(Max(a->scale - b->scale, 0));
	d->compare = found->compare;
	r = expr_emit(
		set, stage, found->run,
		expr_new_vec(set, d->compare ? COLUMN_I8 : COLUMN_DEC, scale, NUMERICOID, expr, stage), a,
		b, NULL, d);
	return d->compare ? r : expr_scales_of_two(set, r, a, b, funcid == F_NUMERIC_MUL, stage);
}

/*
 * Compiles an operator of two numerics; NULL if it has no operation, or an argument is not a
 * decimal.
 */
static Vec *
compile_two(ExprSet *set, Oid funcid, Expr *expr, List *args, int stage)
{
	Vec *a;
	Vec *b;

	if (find_operator(funcid) == NULL)
		return NULL;
	a = expr_compile_as(set, linitial(args), COLUMN_DEC, stage);
	b = a ? expr_compile_as(set, lsecond(args), COLUMN_DEC, stage) : NULL;
	return b ? expr_decimal_call(set, funcid, expr, a, b, stage) : NULL;
}

Vec *
expr_compile_decimal(ExprSet *set, Oid funcid, Expr *expr, List *args, int stage)
{
	static const struct
	{
		Oid funcid;
		ColumnType arg;
		void (*run)(const ExprOp *op, int n);
	} ops[] = {
		{F_NUMERIC_INT2, COLUMN_I16, run_from_int},    {F_NUMERIC_INT4, COLUMN_I32, run_from_int},
		{F_NUMERIC_INT8, COLUMN_I64, run_from_int},    {F_NUMERIC_UMINUS, COLUMN_DEC, run_negate},
		{F_NUMERIC_ABS, COLUMN_DEC, run_abs},          {F_ABS_NUMERIC, COLUMN_DEC, run_abs},
		{F_FLOAT8_NUMERIC, COLUMN_DEC, run_to_float8},
	};

	for (int i = 0; i < lengthof(ops); i++)
	{
		bool to_float8 = ops[i].run == run_to_float8;
		Vec *a, *r;

		if (ops[i].funcid != funcid)
			continue;
		a = expr_compile_as(set, linitial(args), ops[i].arg, stage);
		/* values with several scales usually have more digits than a double */
		if (a == NULL || (to_float8 && (a->scale > 22 || a->scales)))
			return NULL;
		r = to_float8 ? expr_new_vec(set, COLUMN_F64, 0, FLOAT8OID, expr, stage) :
						expr_new_vec(set, COLUMN_DEC, a->scale, NUMERICOID, expr, stage);
		r->least_scale = a->least_scale;
		r->scales = a->scales;
		return expr_emit(set, stage, ops[i].run, r, a, NULL, NULL, NULL);
	}
	return list_length(args) == 2 ? compile_two(set, funcid, expr, args, stage) : NULL;
}

/* ---- for the GPU ------------------------------------------------------------ */

bool
expr_translate_decimal(ExprProgram *p, const ExprOp *op, uint16 *r)
{
	static const struct
	{
		void (*run)(const ExprOp *op, int n);
		VectorOp code;
		bool aligned;
	} ops[] = {
		{run_add, VECTOR_DEC_ADD, true},         {run_sub, VECTOR_DEC_SUB, true},
		{run_compare, VECTOR_DEC_COMPARE, true}, {run_mul, VECTOR_DEC_MUL},
		{run_negate, VECTOR_DEC_NEGATE},         {run_abs, VECTOR_DEC_ABS},
		{run_to_float8, VECTOR_DEC_FLOAT8},
	};

	/* a register holds integers in the same form as decimals */
	if (op->run == run_from_int)
	{
		*r = expr_program_vec(p, op->a);
		return true;
	}
	for (int i = 0; i < lengthof(ops); i++)
	{
		int16 scale = op->b ? Max(op->a->scale, op->b->scale) : 0;
		int data = 0;
		uint16 a, b = 0;

		if (ops[i].run != op->run)
			continue;
		a = ops[i].aligned ? expr_translate_rescaled(p, op->a, scale) : expr_program_vec(p, op->a);
		if (op->b)
			b = ops[i].aligned ? expr_translate_rescaled(p, op->b, scale) :
								 expr_program_vec(p, op->b);
		if (op->run == run_compare)
			data = ((DecimalArgs *) op->data)->compare;
		if (op->run == run_to_float8)
			data = op->a->scale;
		*r = expr_program_emit(p, ops[i].code, data, a, b, 0);
		return true;
	}
	return false;
}
