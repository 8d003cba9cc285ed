/*
 * kept.h
 *	  Keeps the tuples of groups for rescans that do not change them.
 */
#ifndef GPUAGG_KEPT_H
#define GPUAGG_KEPT_H

#include "postgres.h"

#include "executor/tuptable.h"

struct GpuAggState;
typedef struct Kept Kept;

/*
 * Creates the state for keeping groups; NULL if groups of this scan are never kept.  The child plan
 * must be initialized.
 */
extern Kept *kept_create(struct GpuAggState *state);

/* True if this scan keeps its groups before it evaluates the quals. */
extern bool kept_before_quals(const Kept *kept);
/* True if this scan keeps only groups that pass the quals. */
extern bool kept_behind_quals(const Kept *kept);

/* True if tuples are kept, or were kept and are to be returned. */
extern bool kept_is_active(const Kept *kept);

/*
 * Stores the next group of an earlier scan in the slot.  Returns false if there is none: the scan
 * then continues where the earlier one stopped.
 */
extern bool kept_next(Kept *kept, TupleTableSlot *slot);
/* Appends the tuple of a group to the kept ones. */
extern void kept_put(Kept *kept, TupleTableSlot *slot);
/* Called when the scan has no more groups: all of them are kept. */
extern void kept_complete(Kept *kept);
/* Returns whether all groups of the scan are kept. */
extern bool kept_is_complete(const Kept *kept);

/*
 * Begins a rescan after a scan.  `same`: neither the rows nor the grouping has changed.  Returns
 * true if kept groups are returned, false if the groups must be computed again.
 */
extern bool kept_rescan(Kept *kept, bool same);

/* Drops the groups, and releases their memory and files. */
extern void kept_end(Kept *kept);

#endif /* GPUAGG_KEPT_H */
