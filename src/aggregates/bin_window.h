/*
 * bin_window.h
 *	  Counts of consecutive bins whose widths can be doubled; for histograms of unknown range.
 *
 * Bins have indexes, positive and negative ones. A window has the bins from the first to the last
 * one that was counted. When widths double, bins 2i and 2i + 1 become bin i. So a shift of s bits
 * makes bin i >> s of bin i, and the shifts of i by a and then by b bits are one by a + b.
 *
 * Bin i is kept at place i modulo `room`, so that a window grows at both ends without moving its
 * counts.
 */
#ifndef GPUAGG_BIN_WINDOW_H
#define GPUAGG_BIN_WINDOW_H

#include "postgres.h"

#include "lib/stringinfo.h"

/* The bins. Those that are not between first and last have the count 0. */
typedef struct BinWindow
{
	MemoryContext cxt;
	int64 first, last; /* last < first: there are none */
	int64 room;        /* a power of two */
	int64 *counts;
} BinWindow;

/* Returns where the count of a bin is. The bin must be in the window. */
static inline int64 *
bin_window_at(const BinWindow *window, int64 bin)
{
	return &window->counts[(uint64) bin & (uint64) (window->room - 1)];
}

/* Returns the number of bins between the first and the last one. */
static inline int64
bin_window_width(const BinWindow *window)
{
	return window->last - window->first + 1;
}

/* Returns the bytes that the counts of a window of so many bins take at most. */
extern size_t bin_window_most_bytes(int64 width);

/* Makes an empty window, whose counts will be in cxt. */
extern void bin_window_init(BinWindow *window, MemoryContext cxt);

/* Returns by how many bits bins must be shifted so that `most` are enough from first to last. */
extern int bin_window_shift(int64 first, int64 last, int64 most);

/* Returns the same with another bin in the window. */
extern int bin_window_shift_with(const BinWindow *window, int64 bin, int64 most);

/* Adds to the count of a bin; the window then reaches it. Raises an error if the sum overflows. */
extern void bin_window_add(BinWindow *window, int64 bin, int64 count);

/* Shifts all bins by so many bits. */
extern void bin_window_coarsen(BinWindow *window, int shift);

/* Adds the bins of *from, shifted by so many bits. */
extern void bin_window_merge(BinWindow *to, const BinWindow *from, int shift);

/* Appends the counts from the first to the last bin. */
extern void bin_window_put(StringInfo buf, const BinWindow *window);

/*
 * Reads the counts of n bins into an empty window, and adds them to *sum. Raises an error if one is
 * negative, the first or the last one is 0, or the sum overflows.
 */
extern void bin_window_get(StringInfo buf, BinWindow *window, int64 first, int64 n, int64 *sum);

#endif /* GPUAGG_BIN_WINDOW_H */
