/*
 * progress.h
 *	  What long scans tell the view gpuagg_progress; see progress.c.
 */
#ifndef GPUAGG_PROGRESS_H
#define GPUAGG_PROGRESS_H

#include "postgres.h"

/* At load: reserves shared memory if that is still possible. */
extern void progress_init(void);

/* This process starts to read a table; cxt ends with the scan, in errors too. */
extern void progress_start(MemoryContext cxt);
extern void progress_table(Oid relation, uint64 blocks);
extern void progress_update(uint64 blocks_done, uint64 rows);
extern void progress_groups(uint64 groups);

#endif							/* GPUAGG_PROGRESS_H */
