/*
 * time_fields.c
 *	  date_trunc, extract and date_part of dates and timestamps, with a constant
 *	  field, as vector operations.
 *
 * Fields of the time of day are divisions.  Those of the calendar come from core's
 * j2date; a small direct-mapped cache keeps them for recent days.  Timestamps with
 * time zone are compiled if the session's time zone has one fixed offset.  Infinities,
 * local years before 1 and the ends of the range take the scalar fallback.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "pgtime.h"
#include "utils/builtins.h"
#include "utils/datetime.h"
#include "utils/fmgroids.h"
#include "utils/timestamp.h"

#include "expr/internal.h"

#define DAY_CACHE 2048

typedef enum TimeField
{
	FIELD_SECOND,
	FIELD_MINUTE,
	FIELD_HOUR,
	FIELD_EPOCH,
	FIELD_DAY,					/* from here on fields of the calendar */
	FIELD_WEEK,
	FIELD_MONTH,
	FIELD_QUARTER,
	FIELD_YEAR,
	FIELD_DOW,
	FIELD_ISODOW,
	FIELD_DOY
} TimeField;

typedef struct TimeOp
{
	TimeField	field;
	bool		trunc;			/* date_trunc; else extract or date_part */
	bool		zoned;			/* timestamptz */
	struct
	{
		int32		day;		/* days since 2000-01-01 */
		bool		used;
		int64		value;		/* trunc: first day of the unit; else the field */
	}			cache[DAY_CACHE];
} TimeOp;

/* Days of the years 1 to 199000, well inside what core converts without error. */
#define DAY_MIN INT64CONST(-730119)
#define DAY_MAX INT64CONST(72000000)
#define FLOORDIV(x, d) ((x) / (d) - ((x) % (d) < 0))

static bool
field_of(Node *arg, TimeField *field)
{
	static const char *const names[] = {
		"second", "minute", "hour", "epoch", "day", "week", "month", "quarter", "year", "dow",
		"isodow", "doy"
	};
	char	   *name;

	if (!IsA(arg, Const) || ((Const *) arg)->constisnull ||
		((Const *) arg)->consttype != TEXTOID)
		return false;
	name = TextDatumGetCString(((Const *) arg)->constvalue);
	for (int i = 0; i < lengthof(names); i++)
		if (pg_strcasecmp(name, names[i]) == 0)
		{
			*field = i;
			return true;
		}
	return false;
}

bool
expr_extract_scale(Oid funcid, List *args, int16 *scale)
{
	TimeField	field;

	if (funcid != F_EXTRACT_TEXT_TIMESTAMP && funcid != F_EXTRACT_TEXT_TIMESTAMPTZ &&
		funcid != F_EXTRACT_TEXT_DATE)
		return false;
	if (!field_of(linitial(args), &field))
		return false;
	*scale = (field == FIELD_SECOND || field == FIELD_EPOCH) ? 6 : 0;
	if (funcid == F_EXTRACT_TEXT_DATE)
		*scale = 0;
	return true;
}

/* The calendar field of a day, or the first day of the unit that holds it. */
static int64
calendar(const TimeOp *t, int32 day)
{
	int			julian = day + POSTGRES_EPOCH_JDATE;
	int			y,
				m,
				d;

	j2date(julian, &y, &m, &d);
	switch (t->field)
	{
		case FIELD_DAY:
			return t->trunc ? day : d;
		case FIELD_WEEK:
			return t->trunc ? day - (j2day(julian) + 6) % 7 : date2isoweek(y, m, d);
		case FIELD_MONTH:
			return t->trunc ? day - d + 1 : m;
		case FIELD_QUARTER:
			return t->trunc ? date2j(y, (m - 1) / 3 * 3 + 1, 1) - POSTGRES_EPOCH_JDATE :
				(m - 1) / 3 + 1;
		case FIELD_YEAR:
			return t->trunc ? date2j(y, 1, 1) - POSTGRES_EPOCH_JDATE : y;
		case FIELD_DOW:
			return j2day(julian);
		case FIELD_ISODOW:
			return j2day(julian) == 0 ? 7 : j2day(julian);
		case FIELD_DOY:
			return julian - date2j(y, 1, 1) + 1;
		default:
			return 0;
	}
}

static inline int64
calendar_cached(TimeOp *t, int32 day)
{
	uint32		at = (uint32) day % DAY_CACHE;

	if (!t->cache[at].used || t->cache[at].day != day)
	{
		t->cache[at].value = calendar(t, day);
		t->cache[at].day = day;
		t->cache[at].used = true;
	}
	return t->cache[at].value;
}

/* The result for a local time: microseconds for trunc, else the field times 10^scale. */
static inline int64
time_answer(TimeOp *t, int64 ts)
{
	switch (t->field)
	{
		case FIELD_SECOND:
			if (t->trunc)
				return FLOORDIV(ts, USECS_PER_SEC) * USECS_PER_SEC;
			return ts - FLOORDIV(ts, USECS_PER_MINUTE) * USECS_PER_MINUTE;
		case FIELD_MINUTE:
			if (t->trunc)
				return FLOORDIV(ts, USECS_PER_MINUTE) * USECS_PER_MINUTE;
			return (ts - FLOORDIV(ts, USECS_PER_HOUR) * USECS_PER_HOUR) / USECS_PER_MINUTE;
		case FIELD_HOUR:
			if (t->trunc)
				return FLOORDIV(ts, USECS_PER_HOUR) * USECS_PER_HOUR;
			return (ts - FLOORDIV(ts, USECS_PER_DAY) * USECS_PER_DAY) / USECS_PER_HOUR;
		case FIELD_EPOCH:
			return ts - SetEpochTimestamp();
		default:
			{
				int64		value = calendar_cached(t, FLOORDIV(ts, USECS_PER_DAY));

				return t->trunc ? value * USECS_PER_DAY : value;
			}
	}
}

/* The session's offset from UTC in microseconds, if it is always the same. */
static bool
fixed_offset(int64 *usecs)
{
	long		gmtoff;

	if (!pg_get_timezone_offset(session_timezone, &gmtoff))
		return false;
	*usecs = gmtoff * USECS_PER_SEC;
	return true;
}

static void
run_time(const ExprOp *op, int n)
{
	TimeOp	   *t = op->data;
	int64		offset = 0;
	bool		unknown = t->zoned && !fixed_offset(&offset);
	bool		fraction = t->field == FIELD_SECOND || t->field == FIELD_EPOCH;
	uint8		fallback[EXPR_ROWS];
	uint8		any = 0;

	for (int i = 0; i < n; i++)
	{
		int64		ts,
					local;
		int64		r = 0;

		if (op->a->type == COLUMN_I32)
		{
			int32		day = ((int32 *) op->a->values)[i];

			ts = Min(Max(day, DAY_MIN - 1), DAY_MAX + 1) * USECS_PER_DAY;
		}
		else
			ts = ((int64 *) op->a->values)[i];
		/* far from where adding the offset could overflow, and then by the local year */
		fallback[i] = unknown || ts < 2 * DAY_MIN * USECS_PER_DAY || ts > DAY_MAX * USECS_PER_DAY;
		local = fallback[i] ? 0 : ts + offset;
		fallback[i] |= local < DAY_MIN * USECS_PER_DAY || local > DAY_MAX * USECS_PER_DAY;
		any |= fallback[i];
		if (!fallback[i])
			r = time_answer(t, t->field == FIELD_EPOCH ? ts : local);
		switch (op->r->type)
		{
			case COLUMN_DEC:
				((gpuagg_i128 *) op->r->values)[i] = r;
				break;
			case COLUMN_F64:
				if (t->field == FIELD_SECOND)
					((double *) op->r->values)[i] =
						r / USECS_PER_SEC + (r % USECS_PER_SEC) / 1000000.0;
				else
					((double *) op->r->values)[i] = fraction ? r / 1000000.0 : r;
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
	Oid			funcid;
	Oid			argtype;
	ColumnType	result;
}			time_functions[] = {
	{F_DATE_TRUNC_TEXT_TIMESTAMP, TIMESTAMPOID, COLUMN_I64},
	{F_DATE_TRUNC_TEXT_TIMESTAMPTZ, TIMESTAMPTZOID, COLUMN_I64},
	{F_EXTRACT_TEXT_TIMESTAMP, TIMESTAMPOID, COLUMN_DEC},
	{F_EXTRACT_TEXT_TIMESTAMPTZ, TIMESTAMPTZOID, COLUMN_DEC},
	{F_EXTRACT_TEXT_DATE, DATEOID, COLUMN_DEC},
	{F_DATE_PART_TEXT_TIMESTAMP, TIMESTAMPOID, COLUMN_F64},
	{F_DATE_PART_TEXT_TIMESTAMPTZ, TIMESTAMPTZOID, COLUMN_F64},
};

Vec *
expr_compile_time(ExprSet *set, Oid funcid, Expr *expr, List *args, int stage)
{
	for (int i = 0; i < lengthof(time_functions); i++)
	{
		TimeOp	   *t;
		TimeField	field;
		int16		scale = 0;
		int64		offset;
		Vec		   *a;

		if (time_functions[i].funcid != funcid)
			continue;
		if (!field_of(linitial(args), &field))
			return NULL;
		if (time_functions[i].argtype == TIMESTAMPTZOID && !fixed_offset(&offset))
			return NULL;
		if (time_functions[i].argtype == DATEOID && field < FIELD_DAY)
			return NULL;		/* an error, or in other units */
		if (time_functions[i].result == COLUMN_I64 &&
			(field == FIELD_EPOCH || field > FIELD_YEAR))
			return NULL;		/* an error of core's */
		a = expr_compile_as(set, lsecond(args),
							time_functions[i].argtype == DATEOID ? COLUMN_I32 : COLUMN_I64, stage);
		if (a == NULL)
			return NULL;
		if (time_functions[i].result == COLUMN_DEC)
			expr_extract_scale(funcid, args, &scale);
		t = palloc0(sizeof(TimeOp));
		t->field = field;
		t->trunc = time_functions[i].result == COLUMN_I64;
		t->zoned = time_functions[i].argtype == TIMESTAMPTZOID;
		return expr_emit(set, stage, run_time,
						 expr_new_vec(set, time_functions[i].result, scale, exprType((Node *) expr),
									  expr, stage), a, NULL, NULL, t);
	}
	return NULL;
}
