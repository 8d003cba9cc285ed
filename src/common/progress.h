/*
 * progress.h
 *	  What long scans tell the view gpuagg_progress; see progress.c.
 *
 * Whoever runs a scan makes a Progress, and enters and leaves it around each piece of work.  What
 * is reported in between is of that scan; so feeds and engines need not know whose they are.
 */
#ifndef GPUAGG_PROGRESS_H
#define GPUAGG_PROGRESS_H

#include "postgres.h"

/* At load: reserves shared memory if that is still possible. */
extern void progress_init(void);

typedef enum ProgressPhase
{
	PROGRESS_INITIALIZING,
	PROGRESS_SCANNING,  /* rows are read and reduced */
	PROGRESS_SORTING,   /* rows are sorted, and reduced in order */
	PROGRESS_MERGING,   /* groups of participants, of files or of the GPU become one set */
	PROGRESS_RETURNING, /* groups are returned; those in files are merged meanwhile */
	PROGRESS_CACHING    /* gpuagg_cache_prewarm() */
} ProgressPhase;

typedef struct Progress Progress;

/* A scan of this process; it ends with cxt, in errors too. */
extern Progress *progress_create(MemoryContext cxt);
/* Scans may be nested.  An error leaves them by itself. */
extern void progress_enter(Progress *progress);
extern void progress_leave(Progress *progress);

/* Of the scan that was entered last; without one nothing happens. */
extern void progress_phase(ProgressPhase phase);
/* With blocks 0: how many it has does not matter. */
extern void progress_table(Oid relation, uint64 blocks);
extern void progress_update(uint64 blocks_done, uint64 rows);
extern void progress_groups(uint64 groups);

#endif /* GPUAGG_PROGRESS_H */
