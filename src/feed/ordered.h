/*
 * ordered.h
 *
 * A feed that sorts the rows of another feed by keys and order.
 */
#ifndef GPUAGG_FEED_ORDERED_H
#define GPUAGG_FEED_ORDERED_H

#include "feed.h"

/*
 * Opens a feed over `inner`, which it ends with itself. Rows with equal keys arrive together, in
 * the order of spec->order. Uses mem_limit bytes of memory, and temporary files for more.
 */
extern Feed *feed_ordered_open(Feed *inner, const AggSpec *spec, size_t mem_limit, int batch_rows);

#endif /* GPUAGG_FEED_ORDERED_H */
