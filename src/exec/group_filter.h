/*
 * group_filter.h
 *	  Leaves out groups that HAVING or ORDER BY ... LIMIT drops, before tuples are made of them.
 */
#ifndef GPUAGG_GROUP_FILTER_H
#define GPUAGG_GROUP_FILTER_H

#include "postgres.h"

#include "engine.h"

struct GpuAggState;
typedef struct GroupFilter GroupFilter;

/*
 * Makes a filter for state->spec and its outputs, in the current context.  Returns NULL if no group
 * can be left out before its tuple is made.
 */
extern GroupFilter *group_filter_open(struct GpuAggState *state);

/* Returns LIMIT plus OFFSET as they are now; -1: no limit, or the values are not valid. */
extern int64 group_filter_limit(struct GpuAggState *state);

/*
 * Tells the engine which groups are enough, if it has EngineOps.limit.  Called before the first
 * batch of a run.
 */
extern void group_filter_offer(GroupFilter *filter, Engine *engine);

/*
 * Prepares for a rescan: the constants of conditions and the LIMIT are evaluated again, and the
 * best groups so far are forgotten.
 */
extern void group_filter_reset(GroupFilter *filter);

/*
 * Chooses among new groups.  Returns how many may be returned; *chosen has their indexes, *failed
 * the number of groups that fail the quals.
 */
extern int group_filter_choose(GroupFilter *filter, const GroupBatch *groups, const int **chosen,
							   int *failed);

/*
 * Returns whether all groups that were chosen last pass the quals and may be returned, without
 * further checks.
 */
extern bool group_filter_is_exact(const GroupFilter *filter);

/* Returns whether a chosen group may be returned, now that its tuple has passed the quals. */
extern bool group_filter_confirm(GroupFilter *filter, const GroupBatch *groups, int g);

#endif /* GPUAGG_GROUP_FILTER_H */
