/*
 * shared_rows.h
 *	  Rows of groups that a participant of a parallel plan leaves, by part, to those that merge the
 * parts.
 */
#ifndef GPUAGG_SHARED_ROWS_H
#define GPUAGG_SHARED_ROWS_H

#include "postgres.h"

#include "port/atomics.h"
#include "storage/dsm.h"

/* In the plan's shared memory. */
typedef struct SharedRows
{
	pg_atomic_uint32 users; /* processes that are attached to the plan's segment */
	int n;
	dsm_handle handles[FLEXIBLE_ARRAY_MEMBER]; /* [participant]: of a segment of its own, or
												  DSM_HANDLE_INVALID */
} SharedRows;

/* Segments that this process has mapped. */
typedef struct MappedRows MappedRows;

extern Size shared_rows_size(int participants);
/* seg: that of the plan; NULL: there will be one participant. */
extern void shared_rows_init(SharedRows *shared, int participants, dsm_segment *seg);
extern void shared_rows_attach(SharedRows *shared, dsm_segment *seg);
/* All segments go; no other process uses them. */
extern void shared_rows_clear(SharedRows *shared);

/*
 * Memory for the rows of a participant, counts[part] of so many bytes for each part, one part after
 * another, which others see when they have waited for this one.  Adds the mapping to *mapped, in
 * the current context.  NULL: there is none.
 */
extern char *shared_rows_create(SharedRows *shared, MappedRows **mapped, int participant,
								const uint32 *counts, int nparts, size_t row_size);
/* What a participant has left of a part: *n rows; NULL if none. */
extern const char *shared_rows_find(SharedRows *shared, MappedRows **mapped, int participant,
									int part, int nparts, uint32 *n);
/*
 * Gives back the memory of a part, which has been merged: else the last process to end would free
 * all of it alone.
 */
extern void shared_rows_release(SharedRows *shared, MappedRows *mapped, int part, int nparts);
/* Unmaps all. */
extern void shared_rows_unmap(MappedRows **mapped);

#endif /* GPUAGG_SHARED_ROWS_H */
