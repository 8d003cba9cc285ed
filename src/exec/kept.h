/*
 * kept.h
 *	  Groups that are kept for rescans.
 */
#ifndef GPUAGG_KEPT_H
#define GPUAGG_KEPT_H

#include "postgres.h"

#include "executor/tuptable.h"

struct GpuAggState;
typedef struct Kept Kept;

/* For a scan whose child is initialized; NULL: its groups are never kept. */
extern Kept *kept_create(struct GpuAggState *state);

/* Are the groups of this run kept, and those that the quals drop among them? */
extern bool kept_before_quals(const Kept *kept);
/* Are they kept behind the quals? */
extern bool kept_behind_quals(const Kept *kept);

/*
 * Puts the next group of an earlier scan into the slot; false: there is none, and groups go on
 * where that scan was left.
 */
extern bool kept_next(Kept *kept, TupleTableSlot *slot);
/* Keeps a group. */
extern void kept_put(Kept *kept, TupleTableSlot *slot);
/* There are no groups beside those that are kept. */
extern void kept_complete(Kept *kept);
extern bool kept_is_complete(const Kept *kept);

/*
 * For a rescan, when a scan has begun.  `same`: the rows that are grouped, and how, are as before.
 * True: the groups are returned again.  False: they are made anew.
 */
extern bool kept_rescan(Kept *kept, bool same);

/* Forgets the groups, and releases their memory and files. */
extern void kept_end(Kept *kept);

#endif /* GPUAGG_KEPT_H */
