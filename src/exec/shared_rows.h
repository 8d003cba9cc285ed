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

/* Most segments of a participant for a section.  Each is larger than the one before. */
#define ROWS_SEGMENTS 12

/* What a participant has written to a section of an exchange. */
typedef struct RowsOutput
{
	bool in_files;                     /* there are files, too (part_sink.c) */
	int n;                             /* segments */
	dsm_handle handles[ROWS_SEGMENTS]; /* of the segments */
} RowsOutput;

/*
 * The segments of all participants; in the shared memory of the plan.  A participant has some for
 * each section of an exchange (parallel_internal.h), which have numbers from 0.
 */
typedef struct SharedRows
{
	pg_atomic_uint32 users; /* processes that are attached to the plan's segment */
	int participants;       /* 0: there are no other processes */
	int n;                  /* outputs: sections * participants */
	RowsOutput outputs[FLEXIBLE_ARRAY_MEMBER]; /* [section * participants + participant] */
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

/* What a run of a participant has of a partition. */
typedef struct SharedPart
{
	const char *data;
	size_t bytes;
	bool export; /* bytes of an export, not rows */
	uint32 n;    /* rows */
} SharedPart;

/* A place in the runs of a participant for a section; all zero before the first one. */
typedef struct RowsCursor
{
	int segment;
	size_t at;
} RowsCursor;

/*
 * Creates a run of a participant's groups: bytes[part] bytes for each partition, one partition
 * after another.  These are counts[part] rows, or bytes of an export if counts is NULL.  Adds
 * mappings to *mapped, in the current context.  Returns NULL if there is no memory.  Others may
 * read the groups after a barrier.
 */
extern char *shared_rows_create(SharedRows *shared, MappedRows **mapped, int section,
								int participant, const uint32 *counts, const size_t *bytes,
								int nparts);
/* Records that a participant has files for a section. */
extern void shared_rows_set_files(SharedRows *shared, int section, int participant);
/* Returns whether a participant may have files for a section. */
extern bool shared_rows_in_files(const SharedRows *shared, int section, int participant);
/*
 * Finds what the next run of a participant has of a partition, and advances *cursor.  Returns false
 * if there are no more runs.
 */
extern bool shared_rows_next(SharedRows *shared, MappedRows **mapped, int section, int participant,
							 int part, RowsCursor *cursor, SharedPart *found);
/*
 * Frees the memory of a partition's rows, of all participants, after they are merged.  Otherwise
 * the last process to end would free all memory alone.
 */
extern void shared_rows_release(SharedRows *shared, MappedRows *mapped, int section, int part);
/* Unmaps all segments. */
extern void shared_rows_unmap(MappedRows **mapped);

#endif /* GPUAGG_SHARED_ROWS_H */
