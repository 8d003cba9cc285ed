/*
 * heap_shared.c
 *
 * What the participants of a parallel plan share about its bitmap heap scans and lookups; see
 * heap_shared.h.
 */
#include "postgres.h"

#include "feed/heap.h"
#include "feed/heap_shared.h"

/* Returns the feed's subplans, and sets *n to their number. */
static PlanState **
find_subplans(PlanState **child, int *n)
{
	AppendState *append;

	*child = heap_below_joins(*child);
	append = heap_find_append(*child);
	*n = append ? append->as_nplans : 1;
	return append ? append->appendplans : child;
}

/* Returns whether participants share the bitmap of a node. */
static bool
shares_bitmap(const PlanState *node)
{
	return IsA(node, BitmapHeapScanState) && node->plan->parallel_aware;
}

/* Returns the number of joins above the scan. */
static int
count_joins(const PlanState *child)
{
	int n = 0;

	for (; child && IsA(child, HashJoinState); child = outerPlanState(child))
		n++;
	return n;
}

Size
feed_shared_size(PlanState *child)
{
	int njoins = count_joins(child);
	int n, nbitmaps = 0;
	PlanState **subplans = find_subplans(&child, &n);

	for (int i = 0; i < n; i++)
		nbitmaps += shares_bitmap(subplans[i]);
	return heap_shared_lookups_offset(nbitmaps) + njoins * sizeof(SharedWork);
}

void
feed_shared_init(FeedShared *shared, PlanState *child, bool pages, bool volatile_query)
{
	int njoins = count_joins(child);
	int n;
	PlanState **subplans = find_subplans(&child, &n);

	shared->pages = pages;
	shared->nbitmaps = 0;
	for (int i = 0; i < n; i++)
	{
		SharedBitmap *bitmap = &shared->bitmaps[shared->nbitmaps];

		if (!shares_bitmap(subplans[i]))
			continue;
		bitmap->plan_node_id = subplans[i]->plan->plan_node_id;
		bitmap->by_pages =
			pages && heap_subplan_unsupported_reason(subplans[i], volatile_query) == NULL;
		shared_work_init(&bitmap->reading);
		bitmap->iterator = InvalidDsaPointer;
		shared->nbitmaps++;
	}
	shared->nlookups = njoins;
	for (int j = 0; j < njoins; j++)
		shared_work_init(heap_shared_lookup(&shared, j));
}

void
feed_shared_reset(FeedShared *shared, dsa_area *area)
{
	for (int i = 0; i < shared->nbitmaps; i++)
	{
		SharedBitmap *bitmap = &shared->bitmaps[i];

		if (area && DsaPointerIsValid(bitmap->iterator))
			tbm_free_shared_area(area, bitmap->iterator);
		bitmap->iterator = InvalidDsaPointer;
		shared_work_reset(&bitmap->reading);
	}
	for (int j = 0; j < shared->nlookups; j++)
		shared_work_reset(heap_shared_lookup(&shared, j));
}

bool
feed_shared_pages(const FeedShared *shared)
{
	return shared->pages;
}

void
feed_shared_copy_choices(FeedShared *shared, const FeedShared *from)
{
	Assert(shared->nbitmaps == from->nbitmaps);
	shared->pages = from->pages;
	for (int i = 0; i < shared->nbitmaps; i++)
		shared->bitmaps[i].by_pages = from->bitmaps[i].by_pages;
}
