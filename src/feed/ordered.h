/*
 * ordered.h
 *	  A feed that sorts another one's rows by keys and order.
 */
#ifndef GPUAGG_FEED_ORDERED_H
#define GPUAGG_FEED_ORDERED_H

#include "feed.h"

/*
 * Equal keys arrive together, and within them rows in the order of spec->order.
 * Uses mem_limit bytes of memory and temporary files beyond.
 */
extern Feed *feed_ordered_open(Feed *inner, const AggSpec *spec, size_t mem_limit, int batch_rows);

#endif /* GPUAGG_FEED_ORDERED_H */
