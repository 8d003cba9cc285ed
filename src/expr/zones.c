/*
 * zones.c
 *	  Offsets of a time zone from UTC, remembered for the spans of time between its transitions.
 *
 * Offsets are those of pg_localtime(), so that local times are core's.  A span begins with the
 * earliest time that was asked for, and ends with the next transition.
 */
#include "postgres.h"

#include "pgtime.h"
#include "utils/datetime.h"
#include "utils/timestamp.h"

#include "expr/zones.h"
#include "operators/vector_functions.h"

/* The first span that ends after t; zone->n: there is none. */
static int
find_span(const ZoneSpans *zone, pg_time_t t)
{
	int lo = 0, hi = zone->n;

	while (lo < hi)
	{
		int mid = lo + (hi - lo) / 2;

		if (zone->spans[mid].end <= t)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Makes a span of t, which belongs before span i, or extends that to it; false: core must tell. */
static bool
add_span(ZoneSpans *zone, int i, pg_time_t t)
{
	struct pg_tm *local = pg_localtime(&t, zone->tz);
	long int before, after;
	int before_isdst, after_isdst;
	pg_time_t boundary;
	int found =
		pg_next_dst_boundary(&t, &before, &before_isdst, &boundary, &after, &after_isdst, zone->tz);

	if (local == NULL || found < 0)
		return false;
	if (found == 0)
		boundary = PG_INT64_MAX;
	if (i < zone->n && zone->spans[i].end == boundary)
	{
		zone->spans[i].begin = t;
		zone->last = i;
		return true;
	}
	if (zone->n == lengthof(zone->spans))
		zone->n = i = 0;
	memmove(&zone->spans[i + 1], &zone->spans[i], (zone->n - i) * sizeof(ZoneSpan));
	zone->spans[i] = (ZoneSpan){t, boundary, local->tm_gmtoff * USECS_PER_SEC};
	zone->n++;
	zone->last = i;
	return true;
}

bool
zone_begin(ZoneSpans *zone)
{
	if (zone->tz != session_timezone)
		zone->n = zone->last = 0;
	zone->tz = session_timezone;
	return zone->tz != NULL;
}

bool
zone_find(ZoneSpans *zone, int64 ts, int64 *offset)
{
	pg_time_t t = VECTOR_FLOORDIV(ts + VECTOR_EPOCH_USECS, USECS_PER_SEC);
	int i = find_span(zone, t);

	if ((i >= zone->n || zone->spans[i].begin > t) && !add_span(zone, i, t))
		return false;
	if (i < zone->n && zone->spans[i].begin <= t && t < zone->spans[i].end)
		zone->last = i;
	*offset = zone->spans[zone->last].offset;
	return true;
}

int64
zone_day_offset(const ZoneSpans *zone, int32 day)
{
	struct pg_tm tm = {0};

	j2date(day + POSTGRES_EPOCH_JDATE, &tm.tm_year, &tm.tm_mon, &tm.tm_mday);
	return -DetermineTimeZoneOffset(&tm, zone->tz) * USECS_PER_SEC;
}
