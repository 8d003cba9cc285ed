/*
 * heap_shared.h
 *
 * What the participants of a parallel plan share about its bitmap heap scans and lookups.
 *
 * Core's executor shares a bitmap, too, in a state of its own, which is private to core from 19 on.
 * A bitmap must not be read once by way of each state, as all rows would then be read twice.  So
 * the leader decides for all participants who reads it: the feed or the executor.  A participant
 * that came to another decision, because a setting or a function has changed meanwhile, follows the
 * leader's.
 *
 * A lookup that can be kept in the cache (../cache/kept.h) is built by one participant, which puts
 * it there for the others. If its rows become too large for that, the others build their own, and
 * wait no longer. So they do if it is not kept for another reason.
 */
#ifndef GPUAGG_FEED_HEAP_SHARED_H
#define GPUAGG_FEED_HEAP_SHARED_H

#include "postgres.h"

#include "nodes/execnodes.h"
#include "nodes/tidbitmap.h"
#include "utils/dsa.h"

#include "feed.h"
#include "feed/shared_work.h"

/* The bitmap of one bitmap heap scan. */
typedef struct SharedBitmap
{
	int plan_node_id;     /* identifies the scan */
	bool by_pages;        /* the feed reads it; false: the executor runs the scan */
	SharedWork reading;   /* reading the indexes makes the iterator */
	dsa_pointer iterator; /* in es_query_dsa */
} SharedBitmap;

struct FeedShared
{
	bool pages; /* tables are read by their pages; false: the executor runs the whole child plan */
	int nlookups;
	int nbitmaps;
	SharedBitmap bitmaps[FLEXIBLE_ARRAY_MEMBER]; /* followed by the SharedWork of each lookup */
};

/* Returns the bytes of a FeedShared before its lookups. */
static inline Size
heap_shared_lookups_offset(int nbitmaps)
{
	return MAXALIGN(offsetof(FeedShared, bitmaps) + nbitmaps * sizeof(SharedBitmap));
}

/* Returns the building of the lookup of join j, from the scan upwards; NULL: it is not shared. */
static inline SharedWork *
heap_shared_lookup(FeedShared **shared, int j)
{
	if (shared == NULL || *shared == NULL || j >= (*shared)->nlookups)
		return NULL;
	return (SharedWork *) ((char *) *shared + heap_shared_lookups_offset((*shared)->nbitmaps)) + j;
}

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
