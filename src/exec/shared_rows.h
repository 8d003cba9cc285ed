/*
 * shared_rows.h
 *	  Groups of a participant in shared memory, by partition, for the participants that merge the
 *	  partitions: as rows, or as an export.
 */
#ifndef GPUAGG_SHARED_ROWS_H
#define GPUAGG_SHARED_ROWS_H

#include "postgres.h"

#include "port/atomics.h"
#include "storage/dsm.h"

/*
 * Segments for all groups, and all distinct values, of a query. A server has some hundreds for all
 * queries, and core raises an error where it needs one and there is none.
 */
#define MANY_SEGMENTS 256

/*
 * The segments of all participants; in the shared memory of the plan.  A participant has some for
 * each section of an exchange (parallel_internal.h), which have numbers from 0.
 */
typedef struct SharedRows
{
	pg_atomic_uint32 users; /* processes that are attached to the plan's segment */
	int participants;       /* 0: there are no other processes */
	int each;               /* most segments of a participant for one section */
	int n;                  /* segments: sections * participants * each */
	dsm_handle handles[FLEXIBLE_ARRAY_MEMBER]; /* [segment], or DSM_HANDLE_INVALID */
} SharedRows;

/* The segments that this process has mapped. */
typedef struct MappedRows MappedRows;

/* Returns the size of a SharedRows in bytes. */
extern Size shared_rows_size(int participants, int sections);
/*
 * Initializes *shared in the leader. seg is the plan's segment; NULL if there will be only one
 * participant.
 */
extern void shared_rows_init(SharedRows *shared, int participants, int sections, dsm_segment *seg);
/*
 * Called in each worker: counts it as a user of the segments. The last user that detaches from seg
 * deletes them.
 */
extern void shared_rows_attach(SharedRows *shared, dsm_segment *seg);
/* Deletes all segments.  No other process may use them. */
extern void shared_rows_clear(SharedRows *shared);

/* Returns whether participants may have several portions for a section. */
static inline bool
shared_rows_has_portions(const SharedRows *shared)
{
	return shared->each > 1;
}

/* One portion of what a participant has left of a partition. */
typedef struct SharedPart
{
	const char *data;
	size_t bytes;
	bool export; /* bytes of an export, not rows */
	bool last;   /* the participant has left nothing in files */
	uint32 n;    /* rows */
} SharedPart;

/* Where shared_rows_next() reads on; all zero at first. */
typedef struct SharedCursor
{
	int segment;
	size_t at; /* bytes from the segment's start */
} SharedCursor;

/*
 * Returns memory for a portion of the groups of a participant: bytes[part] bytes for each
 * partition, one partition after another, and `common` bytes that all partitions may refer to.
 * These are counts[part] rows, or bytes of an export if counts is NULL.  `expected`: bytes of all
 * portions, or 0 for the last one, which has all groups that were not in one before.  One segment
 * stays free for the last one.
 * Adds mappings to *mapped, in the current context.  Returns NULL if there is no memory.  Others
 * may read the groups after a barrier.
 */
extern char *shared_rows_create(SharedRows *shared, MappedRows **mapped, int section,
								int participant, const uint32 *counts, const size_t *bytes,
								int nparts, size_t common, size_t expected);
/*
 * Finds the next portion of what a participant has left of a partition.  Returns false if there are
 * no more.
 */
extern bool shared_rows_next(SharedRows *shared, MappedRows **mapped, int section, int participant,
							 int part, SharedCursor *cursor, SharedPart *found);
/*
 * Frees the memory of a partition's rows, of all participants, after they are merged, as far as it
 * consists of many pages.  Otherwise the last process to end would free all memory alone.
 */
extern void shared_rows_release(SharedRows *shared, MappedRows *mapped, int section, int part);
/* Unmaps all segments. */
extern void shared_rows_unmap(MappedRows **mapped);

#endif /* GPUAGG_SHARED_ROWS_H */
