/*
 * zones.h
 *	  Offsets of the session's time zone from UTC.
 */
#ifndef GPUAGG_EXPR_ZONES_H
#define GPUAGG_EXPR_ZONES_H

#include "postgres.h"

#include "pgtime.h"

/* A span of time, in seconds since 1970, with one offset, in microseconds. */
typedef struct ZoneSpan
{
	pg_time_t begin;
	pg_time_t end; /* before this */
	int64 offset;
} ZoneSpan;

/* Zeroed before its first use. */
typedef struct ZoneSpans
{
	pg_tz *tz;
	int n;
	int last;            /* that was found last */
	ZoneSpan spans[256]; /* ascending */
} ZoneSpans;

/* Makes it that of the session's time zone; false: there is none. */
extern bool zone_begin(ZoneSpans *zone);

/*
 * The offset of a time in microseconds since 2000, within what vector_local_time() takes; false:
 * core must tell.
 */
extern bool zone_find(ZoneSpans *zone, int64 ts, int64 *offset);

static inline bool
zone_offset(ZoneSpans *zone, int64 ts, int64 *offset)
{
	const ZoneSpan *last = &zone->spans[zone->last];
	int64 at = ts + INT64CONST(946684800000000);

	if (likely(zone->n > 0 && at >= last->begin * INT64CONST(1000000) &&
			   (last->end == PG_INT64_MAX || at < last->end * INT64CONST(1000000))))
	{
		*offset = last->offset;
		return true;
	}
	return zone_find(zone, ts, offset);
}

/*
 * The offset that core takes the first moment of a local day, a number of days since 2000, to have.
 */
extern int64 zone_day_offset(const ZoneSpans *zone, int32 day);

#endif /* GPUAGG_EXPR_ZONES_H */
