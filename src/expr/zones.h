/*
 * zones.h
 *	  Offsets of the session's time zone from UTC.
 */
#ifndef GPUAGG_EXPR_ZONES_H
#define GPUAGG_EXPR_ZONES_H

#include "postgres.h"

#include "pgtime.h"

/* A range of time with one offset. Times are in seconds since 1970, the offset in microseconds. */
typedef struct ZoneRange
{
	pg_time_t begin;
	pg_time_t end; /* exclusive */
	int64 offset;
} ZoneRange;

/* Ranges of one time zone. Must be zeroed before its first use. */
typedef struct ZoneRanges
{
	pg_tz *tz;
	int n;
	int last;              /* the range that was found last */
	ZoneRange ranges[256]; /* ascending */
} ZoneRanges;

/* Switches to the session's time zone; false: there is none. */
extern bool zone_begin(ZoneRanges *zone);

/*
 * Sets the offset of a time in microseconds since 2000; false: take the scalar fallback.  The time
 * must be within the range of vector_local_time().
 */
extern bool zone_find(ZoneRanges *zone, int64 ts, int64 *offset);

/* As zone_find(), but first tries the range that was found last, without a call. */
static inline bool
zone_offset(ZoneRanges *zone, int64 ts, int64 *offset)
{
	const ZoneRange *last = &zone->ranges[zone->last];
	int64 at = ts + INT64CONST(946684800000000);

	if (likely(zone->n > 0 && at >= last->begin * INT64CONST(1000000) &&
			   (last->end == PG_INT64_MAX || at < last->end * INT64CONST(1000000))))
	{
		*offset = last->offset;
		return true;
	}
	return zone_find(zone, ts, offset);
}

/* Returns the offset that core uses for the first moment of a local day, in days since 2000. */
extern int64 zone_day_offset(const ZoneRanges *zone, int32 day);

#endif /* GPUAGG_EXPR_ZONES_H */
