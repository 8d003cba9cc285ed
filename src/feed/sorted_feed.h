/*
 * sorted_feed.h
 *
 * A feed that sorts the rows of another feed by keys and order.
 */
#ifndef GPUAGG_SORTED_FEED_H
#define GPUAGG_SORTED_FEED_H

#include "feed.h"

/*
 * Opens a feed over `inner`, which it ends with itself. Rows with equal keys arrive together, in
 * the order of spec->order. Uses mem_limit bytes of memory, and temporary files for more.
 */
extern Feed *feed_ordered_open(Feed *inner, const AggSpec *spec, size_t mem_limit, int batch_rows);

#endif /* GPUAGG_SORTED_FEED_H */
