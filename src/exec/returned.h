/*
 * returned.h
 *	  Which groups the custom scan returns: HAVING and ORDER BY ... LIMIT on states.
 */
#ifndef GPUAGG_RETURNED_H
#define GPUAGG_RETURNED_H

#include "postgres.h"

#include "engine.h"

struct GpuAggState;
typedef struct Returned Returned;

/*
 * For state->spec and its outputs, in the current context; NULL: all groups are returned, if they
 * pass the quals.
 */
extern Returned *returned_open(struct GpuAggState *state);

/* LIMIT plus OFFSET as they are now; -1: none, or not to be told here. */
extern int64 returned_limit(struct GpuAggState *state);

/*
 * Before the first batch of a run: tells the engine that the best groups are enough, if that is so
 * and it cares.
 */
extern void returned_offer(Returned *returned, Engine *engine);

/* All groups may come anew. */
extern void returned_reset(Returned *returned);

/*
 * Chooses among new groups: *chosen has those that may be returned.  Returns how many; of the
 * others so many fail the quals.
 */
extern int returned_choose(Returned *returned, const GroupBatch *groups, const int **chosen,
						   int *failed);

/* A chosen group has passed the quals: may it be returned? */
extern bool returned_confirm(Returned *returned, const GroupBatch *groups, int g);

/*
 * For EXPLAIN: columns of custom_scan_tlist that the best groups are chosen by, and how; none if
 * returned is NULL or has no limit.
 */
extern int returned_columns(const Returned *returned);

#endif /* GPUAGG_RETURNED_H */
