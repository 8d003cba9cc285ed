/*
 * zones.c
 *	  Offsets of a time zone from UTC, cached for the ranges of time between its transitions.
 *
 * Offsets come from pg_localtime(), so that local times equal core's.  A range begins with the
 * earliest time that was looked up in it, and ends with the next transition.
 */
#include "postgres.h"

#include "pgtime.h"
#include "utils/datetime.h"
#include "utils/timestamp.h"

#include "expr/zones.h"
#include "operators/vector_functions.h"

/* Returns the index of the first range that ends after t; zone->n if there is none. */
static int
find_range(const ZoneRanges *zone, pg_time_t t)
{
	int lo = 0, hi = zone->n;

	while (lo < hi)
	{
		int mid = lo + (hi - lo) / 2;

		if (zone->ranges[mid].end <= t)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/*
 * Makes a range include t: inserts one before range i, or extends range i.  Sets zone->last to it.
 * Returns false if the offset at t is not known, so that the row must take the scalar fallback.
 */
static bool
add_range(ZoneRanges *zone, int i, pg_time_t t)
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
	if (i < zone->n && zone->ranges[i].end == boundary)
	{
		zone->ranges[i].begin = t;
		zone->last = i;
		return true;
	}
	if (zone->n == lengthof(zone->ranges))
		zone->n = i = 0;
	memmove(&zone->ranges[i + 1], &zone->ranges[i], (zone->n - i) * sizeof(ZoneRange));
	zone->ranges[i] = (ZoneRange){t, boundary, local->tm_gmtoff * USECS_PER_SEC};
	zone->n++;
	zone->last = i;
	return true;
}

bool
zone_begin(ZoneRanges *zone)
{
	if (zone->tz != session_timezone)
		zone->n = zone->last = 0;
	zone->tz = session_timezone;
	return zone->tz != NULL;
}

bool
zone_find(ZoneRanges *zone, int64 ts, int64 *offset)
{
	pg_time_t t = VECTOR_FLOORDIV(ts + VECTOR_EPOCH_USECS, USECS_PER_SEC);
	int i = find_range(zone, t);

	if ((i >= zone->n || zone->ranges[i].begin > t) && !add_range(zone, i, t))
		return false;
	if (i < zone->n && zone->ranges[i].begin <= t && t < zone->ranges[i].end)
		zone->last = i;
	*offset = zone->ranges[zone->last].offset;
	return true;
}

int64
zone_day_offset(const ZoneRanges *zone, int32 day)
{
	struct pg_tm tm = {0};

	j2date(day + POSTGRES_EPOCH_JDATE, &tm.tm_year, &tm.tm_mon, &tm.tm_mday);
	return -DetermineTimeZoneOffset(&tm, zone->tz) * USECS_PER_SEC;
}
