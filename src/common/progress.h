/*
 * progress.h
 *	  Reports the progress of long scans for the view gpuagg_progress; see progress.c.
 *
 * The code that runs a scan creates a Progress, and enters and leaves it around each piece of work.
 * Reports in between belong to that scan, so that feeds and engines need not pass it around.
 */
#ifndef GPUAGG_PROGRESS_H
#define GPUAGG_PROGRESS_H

#include "postgres.h"

/* Called at load: reserves shared memory if that is still possible. */
extern void progress_init(void);

typedef enum ProgressPhase
{
	PROGRESS_INITIALIZING,
	PROGRESS_SCANNING,  /* rows are read and reduced */
	PROGRESS_SORTING,   /* rows are sorted, and reduced in order */
	PROGRESS_MERGING,   /* groups of participants, files or the GPU are merged */
	PROGRESS_RETURNING, /* groups are returned; groups in files are merged meanwhile */
	PROGRESS_CACHING    /* gpuagg_cache_prewarm() */
} ProgressPhase;

typedef struct Progress Progress;

/* Creates a Progress in cxt for a scan of this process. It ends with cxt, also after an error. */
extern Progress *progress_create(MemoryContext cxt);
/*
 * progress_enter makes a scan the current one; progress_leave makes the scan before it current
 * again.  Scans may be nested.  After an error, progress_leave need not be called.
 */
extern void progress_enter(Progress *progress);
extern void progress_leave(Progress *progress);

/* The following functions report for the current scan, and do nothing without one. */
extern void progress_phase(ProgressPhase phase);
/* The table that is being read. blocks 0: their number does not matter. */
extern void progress_table(Oid relation, uint64 blocks);
/* Numbers so far: blocks and rows that were read, and groups that were found. */
extern void progress_update(uint64 blocks_done, uint64 rows);
extern void progress_groups(uint64 groups);

#endif /* GPUAGG_PROGRESS_H */
