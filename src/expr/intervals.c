/*
 * intervals.c
 *	  Vector operations of intervals: arithmetic, comparisons and extract(epoch FROM interval).
 *
 * An interval is three integers.  Interval results are in an array of the operation, as by-
 * reference values of a page.  The following take the scalar fallback: infinities, sums that
 * overflow, and what needs the calendar (days added to a timestamp with time zone, months added to
 * any timestamp).
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/timestamp.h"

#include "common/compat.h"
#include "expr/expr_internal.h"
#include "operators/vector_functions.h"

/* True if core neither checks the range of such a time nor treats it as infinite. */
#define TIME_SAFE(t) \
	((t) > 2 * VECTOR_DAY_MIN * VECTOR_DAY_USECS && (t) < VECTOR_DAY_MAX * VECTOR_DAY_USECS)

/* Row i of a vector of intervals. */
#define INTERVAL(vec, i) ((const Interval *) DatumGetPointer(((const Datum *) (vec)->values)[i]))

/*
 * The loop of an operation.  The body runs for rows whose arguments are values; it sets `rare` for
 * the scalar fallback.
 */
#define INTERVAL_LOOP(...) \
	uint8 fallback[EXPR_ROWS]; \
	uint8 any = 0; \
\
	expr_strict(op, n, NULL); \
	for (int i = 0; i < n; i++) \
	{ \
		bool rare = false; \
\
		fallback[i] = 0; \
		if (expr_state(op->r, i) != VEC_VALUE) \
			continue; \
		__VA_ARGS__ \
		fallback[i] = rare; \
		any |= rare; \
	} \
	if (any) \
	expr_strict(op, n, fallback)

/* Makes z the interval result of row i; op->data is the array of results. */
#define INTERVAL_RESULT(i) \
	Interval *z = &((Interval *) op->data)[i]; \
	((Datum *) op->r->values)[i] = PointerGetDatum(z)

/* r = a - b for timestamps: an interval of whole days and the remaining time */
static void
run_between(const ExprOp *op, int n)
{
	const int64 *a = op->a->values;
	const int64 *b = op->b->values;

	INTERVAL_LOOP({
		int64 time;
		INTERVAL_RESULT(i);

		rare = !TIME_SAFE(a[i]) || !TIME_SAFE(b[i]);
		time = rare ? 0 : a[i] - b[i];
		z->month = 0;
		z->day = time / USECS_PER_DAY;
		z->time = time % USECS_PER_DAY;
	});
}

/* r = a + b for intervals, field by field */
static void
run_plus(const ExprOp *op, int n)
{
	INTERVAL_LOOP({
		const Interval *x = INTERVAL(op->a, i);
		const Interval *y = INTERVAL(op->b, i);
		INTERVAL_RESULT(i);

		rare = compat_interval_may_be_infinite(x) || compat_interval_may_be_infinite(y) ||
			__builtin_add_overflow(x->month, y->month, &z->month) ||
			__builtin_add_overflow(x->day, y->day, &z->day) ||
			__builtin_add_overflow(x->time, y->time, &z->time) ||
			compat_interval_may_be_infinite(z);
	});
}

/* r = a - b for intervals, field by field */
static void
run_minus(const ExprOp *op, int n)
{
	INTERVAL_LOOP({
		const Interval *x = INTERVAL(op->a, i);
		const Interval *y = INTERVAL(op->b, i);
		INTERVAL_RESULT(i);

		rare = compat_interval_may_be_infinite(x) || compat_interval_may_be_infinite(y) ||
			__builtin_sub_overflow(x->month, y->month, &z->month) ||
			__builtin_sub_overflow(x->day, y->day, &z->day) ||
			__builtin_sub_overflow(x->time, y->time, &z->time) ||
			compat_interval_may_be_infinite(z);
	});
}

/*
 * Sets r to time + interval (sign 1) or time - interval (sign -1).  Intervals with months take the
 * scalar fallback.  With a time zone, intervals with days do, too: a local day may have 23 or 25
 * hours.
 */
static inline void
shift_time(const ExprOp *op, int n, const Vec *times, const Vec *spans, int sign)
{
	bool zoned = op->data != NULL;

	INTERVAL_LOOP({
		int64 t = ((const int64 *) times->values)[i];
		const Interval *x = INTERVAL(spans, i);
		int64 r = 0;

		rare = !TIME_SAFE(t) || x->month != 0 || (zoned && x->day != 0) ||
			x->day < -VECTOR_DAY_MAX || x->day > VECTOR_DAY_MAX || !TIME_SAFE(x->time);
		if (!rare)
		{
			r = t + sign * (x->day * USECS_PER_DAY + x->time);
			rare = !TIME_SAFE(t + sign * x->day * USECS_PER_DAY) || !TIME_SAFE(r);
		}
		((int64 *) op->r->values)[i] = r;
	});
}

/* r = a + b for a timestamp and an interval */
static void
run_later(const ExprOp *op, int n)
{
	shift_time(op, n, op->a, op->b, 1);
}

/* r = a - b for a timestamp and an interval */
static void
run_earlier(const ExprOp *op, int n)
{
	shift_time(op, n, op->a, op->b, -1);
}

/* Returns the value by which intervals are compared: months have 30 days, days have 24 hours. */
static inline gpuagg_i128
interval_value(const Interval *x)
{
	return x->time + ((int64) x->month * DAYS_PER_MONTH + x->day) * (gpuagg_i128) USECS_PER_DAY;
}

/* Defines a comparison of two intervals. */
#define RUN_COMPARE(name, sym) \
	static void run_##name(const ExprOp *op, int n) \
	{ \
		INTERVAL_LOOP({ \
			((int8 *) op->r->values)[i] = \
				interval_value(INTERVAL(op->a, i)) sym interval_value(INTERVAL(op->b, i)); \
		}); \
	}

RUN_COMPARE(eq, ==)
RUN_COMPARE(ne, !=)
RUN_COMPARE(lt, <)
RUN_COMPARE(le, <=)
RUN_COMPARE(gt, >)
RUN_COMPARE(ge, >=)

/*
 * r = extract(epoch FROM a) for intervals: seconds as decimals of scale 6.  A year has 365.25 days,
 * and each month beyond whole years has 30.
 */
static void
run_epoch(const ExprOp *op, int n)
{
	INTERVAL_LOOP({
		const Interval *x = INTERVAL(op->a, i);
		int64 quarters = (int64) 1461 * (x->month / MONTHS_PER_YEAR) +
			(int64) 4 * DAYS_PER_MONTH * (x->month % MONTHS_PER_YEAR) + (int64) 4 * x->day;
		int64 r = 0;

		rare = compat_interval_may_be_infinite(x) ||
			__builtin_mul_overflow(quarters, (int64) (USECS_PER_DAY / 4), &r) ||
			__builtin_add_overflow(r, x->time, &r);
		((gpuagg_i128 *) op->r->values)[i] = r;
	});
}

/* ---- compiling ------------------------------------------------------------------ */

static const struct
{
	Oid funcid;
	void (*run)(const ExprOp *op, int n);
	ColumnType result;
	Oid type; /* type of the result */
	ColumnType a, b;
} interval_functions[] = {
	{F_TIMESTAMP_MI, run_between, COLUMN_DATUM, INTERVALOID, COLUMN_I64, COLUMN_I64},
	{F_TIMESTAMPTZ_MI, run_between, COLUMN_DATUM, INTERVALOID, COLUMN_I64, COLUMN_I64},
	{F_INTERVAL_PL, run_plus, COLUMN_DATUM, INTERVALOID, COLUMN_DATUM, COLUMN_DATUM},
	{F_INTERVAL_MI, run_minus, COLUMN_DATUM, INTERVALOID, COLUMN_DATUM, COLUMN_DATUM},
	{F_TIMESTAMP_PL_INTERVAL, run_later, COLUMN_I64, TIMESTAMPOID, COLUMN_I64, COLUMN_DATUM},
	{F_TIMESTAMP_MI_INTERVAL, run_earlier, COLUMN_I64, TIMESTAMPOID, COLUMN_I64, COLUMN_DATUM},
	{F_TIMESTAMPTZ_PL_INTERVAL, run_later, COLUMN_I64, TIMESTAMPTZOID, COLUMN_I64, COLUMN_DATUM},
	{F_TIMESTAMPTZ_MI_INTERVAL, run_earlier, COLUMN_I64, TIMESTAMPTZOID, COLUMN_I64, COLUMN_DATUM},
	{F_INTERVAL_EQ, run_eq, COLUMN_I8, BOOLOID, COLUMN_DATUM, COLUMN_DATUM},
	{F_INTERVAL_NE, run_ne, COLUMN_I8, BOOLOID, COLUMN_DATUM, COLUMN_DATUM},
	{F_INTERVAL_LT, run_lt, COLUMN_I8, BOOLOID, COLUMN_DATUM, COLUMN_DATUM},
	{F_INTERVAL_LE, run_le, COLUMN_I8, BOOLOID, COLUMN_DATUM, COLUMN_DATUM},
	{F_INTERVAL_GT, run_gt, COLUMN_I8, BOOLOID, COLUMN_DATUM, COLUMN_DATUM},
	{F_INTERVAL_GE, run_ge, COLUMN_I8, BOOLOID, COLUMN_DATUM, COLUMN_DATUM},
};

bool
expr_is_interval(Oid funcid)
{
	for (int i = 0; i < lengthof(interval_functions); i++)
		if (interval_functions[i].funcid == funcid)
			return true;
	return false;
}

Vec *
expr_compile_interval(ExprSet *set, Oid funcid, Expr *expr, List *args, int stage)
{
	if (expr_is_interval_epoch(funcid, args))
	{
		Vec *a = expr_compile_as(set, lsecond(args), COLUMN_DATUM, stage);

		return a == NULL ? NULL :
						   expr_emit(set, stage, run_epoch,
									 expr_new_vec(set, COLUMN_DEC, 6, NUMERICOID, expr, stage), a,
									 NULL, NULL, NULL);
	}
	for (int f = 0; f < lengthof(interval_functions); f++)
	{
		Vec *a;
		Vec *b;
		void *data = NULL;
		Oid type = interval_functions[f].type;

		if (interval_functions[f].funcid != funcid)
			continue;
		a = expr_compile_as(set, linitial(args), interval_functions[f].a, stage);
		b = a ? expr_compile_as(set, lsecond(args), interval_functions[f].b, stage) : NULL;
		if (b == NULL)
			return NULL;
		if (type == INTERVALOID)
		{
			data = expr_alloc(EXPR_ROWS * sizeof(Interval));
			set->bytes += EXPR_ROWS * sizeof(Interval);
		}
		else if (type == TIMESTAMPTZOID)
			data = set; /* any pointer but NULL */
		return expr_emit(set, stage, interval_functions[f].run,
						 expr_new_vec(set, interval_functions[f].result, 0, type, expr, stage), a,
						 b, NULL, data);
	}
	return NULL;
}
