/*
 * time_fields.c
 *	  Vector operations of dates and timestamps: date_trunc, extract and date_part with a constant
 *	  field.
 *
 * Fields of the time of day are divisions.  Fields of the calendar (vector_functions.h) take
 * longer; a small direct-mapped cache keeps them for recent days.  For timestamps with time zone,
 * the session's time zone gives the offset (zones.c): of the time itself, and for a truncated
 * result of the first moment of its day.  Infinities, local years before 1 and the ends of the
 * range take the scalar fallback.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "pgtime.h"
#include "utils/builtins.h"
#include "utils/datetime.h"
#include "utils/fmgroids.h"
#include "utils/timestamp.h"

#include "expr/expr_internal.h"
#include "expr/program.h"
#include "expr/zones.h"
#include "operators/vector_functions.h"

#define DAY_CACHE 2048

/* Data of run_time(). */
typedef struct TimeOp
{
	VectorField field;
	bool trunc; /* true: date_trunc; false: extract or date_part */
	bool zoned; /* the argument is a timestamptz */
	struct
	{
		int32 day; /* days since 2000-01-01 */
		bool used;
		int64 value;  /* trunc: first day of the unit; else the field */
		int64 offset; /* trunc of timestamptz: offset at the start of the first day */
	} cache[DAY_CACHE];
	ZoneRanges *zone;   /* timestamptz: offsets of the session's time zone */
	pg_tz *cached_zone; /* the time zone that the cache is for */
} TimeOp;

/*
 * Returns the field of a local day or, for date_trunc, the first day of the unit that contains it.
 * Takes it from the cache if it is there. date_trunc of a timestamptz also sets *offset to the
 * offset from UTC at the start of the returned day.
 */
static inline int64
calendar_cached(TimeOp *t, int32 day, int64 *offset)
{
	uint32 at = (uint32) day % DAY_CACHE;

	if (!t->cache[at].used || t->cache[at].day != day)
	{
		t->cache[at].value = vector_calendar(t->field, t->trunc, day);
		t->cache[at].day = day;
		t->cache[at].used = true;
		if (t->zoned && t->trunc)
			t->cache[at].offset = zone_day_offset(t->zone, (int32) t->cache[at].value);
	}
	if (t->zoned && t->trunc)
		*offset = t->cache[at].offset;
	return t->cache[at].value;
}

/* Returns the result for a local time: microseconds for trunc, else the field times 10^scale. */
static inline int64
time_result(TimeOp *t, int64 ts, int64 *offset)
{
	int64 value;

	if (t->field < VECTOR_DAY)
		return vector_time_of_day(t->field, t->trunc, ts);
	value = calendar_cached(t, VECTOR_FLOORDIV(ts, VECTOR_DAY_USECS), offset);
	return t->trunc ? value * VECTOR_DAY_USECS : value;
}

/*
 * Sets the offset of the session's time zone from UTC in microseconds.  Returns false if it changes
 * over time.
 */
static bool
get_fixed_offset(int64 *usecs)
{
	long gmtoff;

	if (!pg_get_timezone_offset(session_timezone, &gmtoff))
		return false;
	*usecs = gmtoff * USECS_PER_SEC;
	return true;
}

/*
 * Fast path of the most common case: a field that is a small number, of timestamps without time
 * zone, as decimals.  Returns false if it is another case, or if some time needs the scalar
 * fallback.
 */
static bool
run_plain_field(const ExprOp *op, int n)
{
	TimeOp *t = op->data;
	const int64 *ts = op->a->values;
	gpuagg_i128 *r = op->r->values;
	const uint64 first = (uint64) (-VECTOR_DAY_MIN * VECTOR_DAY_USECS);
	const uint64 span = (uint64) ((VECTOR_DAY_MAX - VECTOR_DAY_MIN) * VECTOR_DAY_USECS);
	bool bad = false;

	if (t->zoned || t->trunc || t->field == VECTOR_EPOCH || op->a->type != COLUMN_I64 ||
		op->r->type != COLUMN_DEC)
		return false;
	/* counts from the first day on, so that no time is negative */
	for (int i = 0; i < n; i++)
		bad |= (uint64) ts[i] + first > span;
	if (bad)
		return false;
	switch (t->field)
	{
		case VECTOR_SECOND:
			for (int i = 0; i < n; i++)
				r[i] = ((uint64) ts[i] + first) % (60 * VECTOR_USECS);
			break;
		case VECTOR_MINUTE:
			for (int i = 0; i < n; i++)
				r[i] = ((uint64) ts[i] + first) % (3600 * VECTOR_USECS) / (60 * VECTOR_USECS);
			break;
		case VECTOR_HOUR:
			for (int i = 0; i < n; i++)
				r[i] = ((uint64) ts[i] + first) % VECTOR_DAY_USECS / (3600 * VECTOR_USECS);
			break;
		default:
			for (int i = 0; i < n; i++)
				r[i] = calendar_cached(
					t, (int32) (((uint64) ts[i] + first) / VECTOR_DAY_USECS + VECTOR_DAY_MIN),
					NULL);
			break;
	}
	expr_strict(op, n, NULL);
	return true;
}

/*
 * r = date_trunc, extract or date_part of a; data: TimeOp.  Times out of range, and times whose
 * offset is not known, take the scalar fallback.
 */
static void
run_time(const ExprOp *op, int n)
{
	TimeOp *t = op->data;
	bool unknown = t->zoned && !zone_begin(t->zone);
	uint8 fallback[EXPR_ROWS];
	uint8 any = 0;

	if (run_plain_field(op, n))
		return;
	if (t->zoned && t->cached_zone != t->zone->tz)
	{
		memset(t->cache, 0, sizeof(t->cache));
		t->cached_zone = t->zone->tz;
	}

	for (int i = 0; i < n; i++)
	{
		int64 offset = 0;
		int64 ts, local;
		int64 r = 0;

		ts = op->a->type == COLUMN_I32 ? vector_day_time(((int32 *) op->a->values)[i]) :
										 ((int64 *) op->a->values)[i];
		/* check without the offset first: it can be looked up only for times in range */
		fallback[i] = unknown || !vector_local_time(ts, 0, &local) ||
			(t->zoned &&
			 (!zone_offset(t->zone, ts, &offset) || !vector_local_time(ts, offset, &local)));
		any |= fallback[i];
		if (!fallback[i])
			r = time_result(t, t->field == VECTOR_EPOCH ? ts : local, &offset);
		switch (op->r->type)
		{
			case COLUMN_DEC:
				((gpuagg_i128 *) op->r->values)[i] = r;
				break;
			case COLUMN_F64:
				((double *) op->r->values)[i] = vector_date_part(t->field, r);
				break;
			default:
				((int64 *) op->r->values)[i] = r - offset;
				break;
		}
	}
	expr_strict(op, n, any ? fallback : NULL);
}

/* Types of arguments and results. */
static const struct
{
	Oid funcid;
	Oid argtype;
	ColumnType result;
} time_functions[] = {
	{F_DATE_TRUNC_TEXT_TIMESTAMP, TIMESTAMPOID, COLUMN_I64},
	{F_DATE_TRUNC_TEXT_TIMESTAMPTZ, TIMESTAMPTZOID, COLUMN_I64},
	{F_EXTRACT_TEXT_TIMESTAMP, TIMESTAMPOID, COLUMN_DEC},
	{F_EXTRACT_TEXT_TIMESTAMPTZ, TIMESTAMPTZOID, COLUMN_DEC},
	{F_EXTRACT_TEXT_DATE, DATEOID, COLUMN_DEC},
	{F_DATE_PART_TEXT_TIMESTAMP, TIMESTAMPOID, COLUMN_F64},
	{F_DATE_PART_TEXT_TIMESTAMPTZ, TIMESTAMPTZOID, COLUMN_F64},
};

bool
expr_is_time(Oid funcid)
{
	for (int i = 0; i < lengthof(time_functions); i++)
		if (time_functions[i].funcid == funcid)
			return true;
	return false;
}

Vec *
expr_compile_time(ExprSet *set, Oid funcid, Expr *expr, List *args, int stage)
{
	for (int i = 0; i < lengthof(time_functions); i++)
	{
		TimeOp *t;
		VectorField field;
		int16 scale = 0;
		Vec *a;

		if (time_functions[i].funcid != funcid)
			continue;
		if (!expr_time_field(linitial(args), &field))
			return NULL;
		if (time_functions[i].argtype == DATEOID && field < VECTOR_DAY)
			return NULL; /* an error, or other units */
		if (time_functions[i].result == COLUMN_I64 &&
			(field == VECTOR_EPOCH || field > VECTOR_YEAR))
			return NULL; /* core raises an error */
		a = expr_compile_as(set, lsecond(args),
							time_functions[i].argtype == DATEOID ? COLUMN_I32 : COLUMN_I64, stage);
		if (a == NULL)
			return NULL;
		if (time_functions[i].result == COLUMN_DEC)
			scale = (field == VECTOR_SECOND || field == VECTOR_EPOCH) &&
					time_functions[i].argtype != DATEOID ?
				6 :
				0;
		t = palloc0(sizeof(TimeOp));
		t->field = field;
		t->trunc = time_functions[i].result == COLUMN_I64;
		t->zoned = time_functions[i].argtype == TIMESTAMPTZOID;
		if (t->zoned)
			t->zone = palloc0(sizeof(ZoneRanges));
		return expr_emit(set, stage, run_time,
						 expr_new_vec(set, time_functions[i].result, scale, exprType((Node *) expr),
									  expr, stage),
						 a, NULL, NULL, t);
	}
	return NULL;
}

bool
expr_translate_time(ExprProgram *p, const ExprOp *op, uint16 *r)
{
	const TimeOp *t = op->data;
	int64 offset = 0;
	int data;
	uint16 a;

	if (op->run != run_time)
		return false;
	if (t->zoned && !get_fixed_offset(&offset))
	{
		*r = expr_program_reject(p,
								 "time zones without a fixed offset are not supported on the GPU");
		return true;
	}
	data = t->field | (t->trunc ? VECTOR_TIME_TRUNC : 0) |
		(op->a->type == COLUMN_I32 ? VECTOR_TIME_DATE : 0) |
		(op->r->type == COLUMN_F64 ? VECTOR_TIME_FLOAT : 0);
	a = expr_program_vec(p, op->a);
	*r = expr_program_emit(p, VECTOR_TIME, data, a, expr_program_constant(p, offset, false), 0);
	return true;
}
