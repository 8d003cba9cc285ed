/*
 * bin_window.c
 *	  Counts of consecutive bins whose widths can be doubled; see bin_window.h.
 */
#include "postgres.h"

#include "common/int.h"
#include "libpq/pqformat.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "utils/memutils.h"

#include "aggregates/bin_window.h"
#include "aggregates/portable.h"
#include "common/interruptible.h"

#define FIRST_ROOM 8
#define MOST_SHIFT 63

void
bin_window_init(BinWindow *window, MemoryContext cxt)
{
	window->cxt = cxt;
	window->first = 0;
	window->last = -1;
	window->room = FIRST_ROOM;
	window->counts = MemoryContextAllocZero(cxt, FIRST_ROOM * sizeof(int64));
}

size_t
bin_window_most_bytes(int64 width)
{
	return Max(pg_nextpower2_64(Max(width, 1)), FIRST_ROOM) * sizeof(int64);
}

int
bin_window_shift(int64 first, int64 last, int64 most)
{
	int shift = 0;

	while ((last >> shift) - (first >> shift) >= most)
		shift++;
	return shift;
}

int
bin_window_shift_with(const BinWindow *window, int64 bin, int64 most)
{
	if (window->last < window->first)
		return 0;
	return bin_window_shift(Min(window->first, bin), Max(window->last, bin), most);
}

/* Makes a window's room at least n bins. Its counts go to their new places. */
static void
reserve(BinWindow *window, int64 n)
{
	BinWindow old = *window;

	if (n <= old.room)
		return;
	window->counts = MemoryContextAllocExtended(old.cxt, pg_nextpower2_64(n) * sizeof(int64),
												MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	window->room = pg_nextpower2_64(n);
	INTERRUPTIBLE_FOR (bin, old.first, old.last + 1)
		*bin_window_at(window, bin) = *bin_window_at(&old, bin);
	pfree(old.counts);
}

void
bin_window_add(BinWindow *window, int64 bin, int64 count)
{
	int64 *at;

	if (window->last < window->first)
		window->first = window->last = bin;
	else if (bin < window->first)
	{
		reserve(window, window->last - bin + 1);
		window->first = bin;
	}
	else if (bin > window->last)
	{
		reserve(window, bin - window->first + 1);
		window->last = bin;
	}
	at = bin_window_at(window, bin);
	if (unlikely(pg_add_s64_overflow(*at, count, at)))
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE), errmsg("bigint out of range")));
}

void
bin_window_coarsen(BinWindow *window, int shift)
{
	BinWindow old = *window;

	if (shift == 0 || old.last < old.first)
		return;
	bin_window_init(window, old.cxt);
	bin_window_merge(window, &old, shift);
	pfree(old.counts);
}

void
bin_window_merge(BinWindow *to, const BinWindow *from, int shift)
{
	shift = Min(shift, MOST_SHIFT);
	/* the ends have counts, so both windows end at the same bins whatever lies between */
	INTERRUPTIBLE_FOR (bin, from->first, from->last + 1)
		if (*bin_window_at(from, bin) != 0)
			bin_window_add(to, bin >> shift, *bin_window_at(from, bin));
}

void
bin_window_put(StringInfo buf, const BinWindow *window)
{
	enlargeStringInfo(buf, bin_window_width(window) * sizeof(int64));
	INTERRUPTIBLE_FOR (bin, window->first, window->last + 1)
		pq_writeint64(buf, *bin_window_at(window, bin));
}

void
bin_window_get(StringInfo buf, BinWindow *window, int64 first, int64 n, int64 *sum)
{
	INTERRUPTIBLE_FOR (i, 0, n)
	{
		int64 count = pq_getmsgint64(buf);

		if (count < 0 || ((i == 0 || i == n - 1) && count == 0) ||
			pg_add_s64_overflow(*sum, count, sum))
			portable_invalid("count");
		if (count != 0)
			bin_window_add(window, first + i, count);
	}
}
