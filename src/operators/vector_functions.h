/*
 * vector_functions.h
 *	  Functions of vector operations that are more than a C expression: calendar fields, overflow
 *	  of products; for gcc and nvcc.
 *
 * No signed integer overflows here if arguments are within the limits that the comments state.
 */
#ifndef GPUAGG_VECTOR_FUNCTIONS_H
#define GPUAGG_VECTOR_FUNCTIONS_H

#include "operators/monoid.h"

/* Returns whether a * b overflows 64 bits. */
GPUAGG_HD int
vector_mul_overflows(int64_t a, int64_t b)
{
#ifdef __CUDA_ARCH__
	__int128 r = (__int128) a * b;

	return r != (int64_t) r;
#else
	int64_t r;

	return __builtin_mul_overflow(a, b, &r);
#endif
}

/* ---- the calendar ---------------------------------------------------------- */

/* Fields of dates and times, for date_trunc(), extract() and date_part(). */
typedef enum VectorField
{
	VECTOR_SECOND,
	VECTOR_MINUTE,
	VECTOR_HOUR,
	VECTOR_EPOCH,
	VECTOR_DAY, /* from here on, fields of the calendar */
	VECTOR_WEEK,
	VECTOR_MONTH,
	VECTOR_QUARTER,
	VECTOR_YEAR,
	VECTOR_DOW,
	VECTOR_ISODOW,
	VECTOR_DOY,
	VECTOR_FIELDS
} VectorField;

#define VECTOR_USECS INT64_C(1000000)
#define VECTOR_DAY_USECS INT64_C(86400000000)
#define VECTOR_EPOCH_USECS (INT64_C(946684800) * VECTOR_USECS) /* from 1970-01-01 to 2000-01-01 */

/* Days since 2000-01-01 of the years 1 to 199000. Core converts these without error. */
#define VECTOR_DAY_MIN INT64_C(-730119)
#define VECTOR_DAY_MAX INT64_C(72000000)

/* Floor division by a positive constant. */
#define VECTOR_FLOORDIV(x, d) ((x) / (d) - ((x) % (d) < 0))

/*
 * Years of the calendar below begin in March, so that the leap day is the last day; month 0 is
 * March.  This is the number of days from the start of the year to the start of the month.
 */
#define VECTOR_MONTH_START(month) ((153 * (month) + 2) / 5)
/* Days from 0000-03-01 to 2000-01-01. */
#define VECTOR_MARCH_0 730425

/* Returns the first day of a month (1 to 12) of a year from 1 on, in days since 2000-01-01. */
GPUAGG_HD int32_t
vector_month_first(int32_t year, int32_t month)
{
	int32_t y = month > 2 ? year : year - 1;

	return 365 * y + y / 4 - y / 100 + y / 400 + VECTOR_MONTH_START((month + 9) % 12) -
		VECTOR_MARCH_0;
}

/* Returns the weekday of a day, given in days since 2000-01-01: 0 for Sunday to 6 for Saturday. */
GPUAGG_HD int32_t
vector_day_of_week(int32_t day)
{
	return (day % 7 + 13) % 7;
}

/*
 * Sets the year, the month (1 to 12) and the day of the month of a day, given in days since
 * 2000-01-01.
 */
GPUAGG_HD void
vector_split_day(int32_t day, int32_t *year, int32_t *month, int32_t *mday)
{
	int32_t n = day + VECTOR_MARCH_0; /* days since 0000-03-01 */
	int32_t centuries = (4 * (int64_t) n + 3) / 146097;
	int32_t rest = n - (int32_t) ((int64_t) centuries * 146097 / 4);
	int32_t y = (4 * rest + 3) / 1461;
	int32_t yday = rest - 1461 * y / 4;
	int32_t m = (5 * yday + 2) / 153;

	*mday = yday - VECTOR_MONTH_START(m) + 1;
	*month = m < 10 ? m + 3 : m - 9;
	*year = 100 * centuries + y + (m >= 10);
}

/*
 * Returns the calendar field of a day, or (trunc) the first day of the unit that contains the day.
 * The day must be between VECTOR_DAY_MIN and VECTOR_DAY_MAX.
 */
GPUAGG_HD int64_t
vector_calendar(VectorField field, int trunc, int32_t day)
{
	int32_t monday = day - (vector_day_of_week(day) + 6) % 7;
	int32_t y, m, d;

	vector_split_day(day, &y, &m, &d);
	switch (field)
	{
		case VECTOR_DAY:
			return trunc ? day : d;
		case VECTOR_WEEK:
			if (trunc)
				return monday;
			/* a week belongs to the year of its Thursday */
			day = monday + 3;
			vector_split_day(day, &y, &m, &d);
			return (day - vector_month_first(y, 1)) / 7 + 1;
		case VECTOR_MONTH:
			return trunc ? day - d + 1 : m;
		case VECTOR_QUARTER:
			return trunc ? vector_month_first(y, (m - 1) / 3 * 3 + 1) : (m - 1) / 3 + 1;
		case VECTOR_YEAR:
			return trunc ? vector_month_first(y, 1) : y;
		case VECTOR_DOW:
			return vector_day_of_week(day);
		case VECTOR_ISODOW:
			return day - monday + 1;
		case VECTOR_DOY:
			return day - vector_month_first(y, 1) + 1;
		default:
			return 0;
	}
}

/*
 * Returns a field below VECTOR_DAY of a time in microseconds since 2000-01-01: with trunc the first
 * microsecond of the unit, else the field times 10^scale.
 */
GPUAGG_HD int64_t
vector_time_of_day(VectorField field, int trunc, int64_t ts)
{
	switch (field)
	{
		case VECTOR_SECOND:
			return trunc ? VECTOR_FLOORDIV(ts, VECTOR_USECS) * VECTOR_USECS :
						   ts - VECTOR_FLOORDIV(ts, 60 * VECTOR_USECS) * (60 * VECTOR_USECS);
		case VECTOR_MINUTE:
			return trunc ? VECTOR_FLOORDIV(ts, 60 * VECTOR_USECS) * (60 * VECTOR_USECS) :
						   (ts - VECTOR_FLOORDIV(ts, 3600 * VECTOR_USECS) * (3600 * VECTOR_USECS)) /
					(60 * VECTOR_USECS);
		case VECTOR_HOUR:
			return trunc ? VECTOR_FLOORDIV(ts, 3600 * VECTOR_USECS) * (3600 * VECTOR_USECS) :
						   (ts - VECTOR_FLOORDIV(ts, VECTOR_DAY_USECS) * VECTOR_DAY_USECS) /
					(3600 * VECTOR_USECS);
		default:
			return ts + VECTOR_EPOCH_USECS;
	}
}

/*
 * Sets *local to the local time ts + offset, in microseconds since 2000-01-01. offset: 0, or for a
 * time in UTC the offset of a time zone, below a week.  Returns false if the time is out of the
 * range of these functions, so that core must compute its fields.
 */
GPUAGG_HD int
vector_local_time(int64_t ts, int64_t offset, int64_t *local)
{
	/* stay far from where adding the offset could overflow; then check the local year */
	if (ts < 2 * VECTOR_DAY_MIN * VECTOR_DAY_USECS || ts > VECTOR_DAY_MAX * VECTOR_DAY_USECS)
		return 0;
	*local = (int64_t) ((uint64_t) ts + (uint64_t) offset);
	return *local >= VECTOR_DAY_MIN * VECTOR_DAY_USECS &&
		*local <= VECTOR_DAY_MAX * VECTOR_DAY_USECS;
}

/*
 * Returns the start of a day (in days since 2000-01-01) in microseconds.  For days out of range,
 * returns a time that vector_local_time() rejects.
 */
GPUAGG_HD int64_t
vector_day_time(int32_t day)
{
	return (day < VECTOR_DAY_MIN - 1     ? VECTOR_DAY_MIN - 1 :
				day > VECTOR_DAY_MAX + 1 ? VECTOR_DAY_MAX + 1 :
										   day) *
		VECTOR_DAY_USECS;
}

/*
 * Returns a field as the float8 that date_part() gives. r: the field; seconds and epoch are in
 * microseconds.
 */
GPUAGG_HD double
vector_date_part(VectorField field, int64_t r)
{
	if (field == VECTOR_SECOND)
		return r / VECTOR_USECS + (r % VECTOR_USECS) / 1000000.0;
	return field == VECTOR_EPOCH ? r / 1000000.0 : (double) r;
}

#endif /* GPUAGG_VECTOR_FUNCTIONS_H */
