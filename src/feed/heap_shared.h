/*
 * heap_shared.h
 *
 * What the participants of a parallel plan share about its bitmap heap scans.
 *
 * Core's executor shares a bitmap, too, in a state of its own, which is private to core from 19 on.
 * A bitmap must not be read once by way of each state, as all rows would then be read twice.  So
 * the leader decides for all participants who reads it: the feed or the executor.  A participant
 * that came to another decision, because a setting or a function has changed meanwhile, follows the
 * leader's.
 */
#ifndef GPUAGG_FEED_HEAP_SHARED_H
#define GPUAGG_FEED_HEAP_SHARED_H

#include "postgres.h"

#include "nodes/execnodes.h"
#include "nodes/tidbitmap.h"
#include "storage/condition_variable.h"
#include "storage/spin.h"
#include "utils/dsa.h"

#include "feed.h"

typedef enum SharedBitmapPhase
{
	SHARED_BITMAP_INITIAL,  /* no participant has begun to read the indexes */
	SHARED_BITMAP_READING,  /* one reads them, and the others wait */
	SHARED_BITMAP_PUBLISHED /* `iterator` can be used */
} SharedBitmapPhase;

/* The bitmap of one bitmap heap scan. */
typedef struct SharedBitmap
{
	int plan_node_id; /* identifies the scan */
	bool by_pages;    /* the feed reads it; false: the executor runs the scan */
	slock_t mutex;    /* protects phase */
	SharedBitmapPhase phase;
	ConditionVariable published;
	dsa_pointer iterator; /* in es_query_dsa */
} SharedBitmap;

struct FeedShared
{
	bool pages; /* tables are read by their pages; false: the executor runs the whole child plan */
	int nbitmaps;
	SharedBitmap bitmaps[FLEXIBLE_ARRAY_MEMBER];
};

/*
 * Returns the bitmap that participants share for this node; NULL if there is none.  shared:
 * Feed.shared.
 */
static inline SharedBitmap *
heap_shared_bitmap(FeedShared **shared, const PlanState *node)
{
	for (int i = 0; shared && *shared && i < (*shared)->nbitmaps; i++)
		if ((*shared)->bitmaps[i].plan_node_id == node->plan->plan_node_id)
			return &(*shared)->bitmaps[i];
	return NULL;
}

#endif /* GPUAGG_FEED_HEAP_SHARED_H */
