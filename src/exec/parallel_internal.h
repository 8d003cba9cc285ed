/*
 * parallel_internal.h
 *	  What participants of a parallel scan share, and how they exchange groups; see parallel.c.
 */
#ifndef GPUAGG_PARALLEL_INTERNAL_H
#define GPUAGG_PARALLEL_INTERNAL_H

#include "postgres.h"

#include "port/atomics.h"
#include "storage/barrier.h"
#include "storage/dsm.h"
#include "storage/sharedfileset.h"
#include "storage/spin.h"
#include "utils/dsa.h"

#include "exec/exec.h"
#include "exec/shared_rows.h"

/* All groups of a participant, exported for the one that returns all groups. */
typedef struct GroupExport
{
	dsa_pointer data; /* the export in memory, or InvalidDsaPointer */
	size_t len;       /* bytes in memory */
	int file;         /* number of its file; -1: none */
} GroupExport;

/*
 * Participants exchange the query's groups, and before them the distinct values of each row set,
 * whose engine has them as groups.  Each of these exchanges has a number.  Each section of an
 * exchange needs a segment of shared memory; sections that have none are in files.
 */
#define EXCHANGE_GROUPS 0
#define EXCHANGE_VALUES(set) ((set) + 1)

struct GpuAggShared
{
	slock_t mutex;
	int attached;            /* participants that have attached */
	int active;              /* attached participants whose input has not ended */
	bool emitting;           /* all input has ended, and one participant returns the groups */
	bool partitioned;        /* groups are merged in partitions */
	bool values_partitioned; /* distinct values are merged in partitions */
	int nparts;              /* partitions of groups, a power of 2 */
	int nvalue_parts;        /* partitions of the distinct values of each set, a power of 2 */
	int segments;            /* segments that each participant may have (shared_rows.h) */
	int value_segments;      /* segments of these that are for sets of distinct values */
	pg_atomic_uint32 next_part;
	pg_atomic_uint32 next_value_part; /* set * nvalue_parts + partition */
	Barrier barrier;                  /* in phase 0 while participants are active */
	uint64 seed[2];                   /* for the hash that decides the partition of a group */
	SlotSupport support;              /* that the specs of all participants are built for */
	uint32 layout;                    /* spec_layout() of the first participant that attached */
	int first_export; /* earlier exports were imported before values were partitioned */
	int nexports;
	uint64 share;       /* number of the query that engines can join now */
	int joined;         /* active participants whose engines have joined it */
	dsm_handle segment; /* the plan's segment */
	SharedFileSet fileset;
	int reported; /* participants whose statistics are in the totals */
	EngineStats totals;
	FeedStats feed_totals;
	int most; /* capacity of `exports`; the SharedRows and the FeedShared follow it */
	GroupExport exports[FLEXIBLE_ARRAY_MEMBER];
};

/* Returns the size of GpuAggShared with the exports of so many participants. */
static inline Size
parallel_exports_size(int participants)
{
	return MAXALIGN(offsetof(GpuAggShared, exports) + participants * sizeof(GroupExport));
}

/* Returns the SharedRows, which follow GpuAggShared in memory. */
static inline SharedRows *
parallel_rows(GpuAggShared *shared)
{
	return (SharedRows *) ((char *) shared + parallel_exports_size(shared->most));
}

/* Returns the number of partitions in an exchange. */
static inline int
parallel_count_parts(const GpuAggShared *shared, int exchange)
{
	return exchange == EXCHANGE_GROUPS ? shared->nparts : shared->nvalue_parts;
}

/* parallel_groups.c */

/* Exports this participant's groups to shared storage.  The engine has no groups afterwards. */
extern EngineStatus parallel_export(GpuAggState *state, GroupExport *export);
/*
 * Imports an export of one participant into this process's engine. `lasts`: its file will not be
 * written again, so the engine may read it later.
 */
extern EngineStatus parallel_import(GpuAggState *state, const GroupExport *export, bool lasts);
/*
 * Exports the groups of an engine by partition, to shared memory or files, for the exchange with
 * this number.  The engine has no groups afterwards.
 */
extern EngineStatus parallel_export_parts(GpuAggState *state, Engine *engine, int exchange);
/*
 * Empties the engine, which must have begin_part, and imports what all participants have exported
 * of a partition.
 */
extern EngineStatus parallel_import_part(GpuAggState *state, Engine *engine, int exchange,
										 int part);
/* Frees the shared memory of a partition, when its groups are not needed any more. */
extern void parallel_release_part(GpuAggState *state, Engine *engine, int exchange, int part);

#endif /* GPUAGG_PARALLEL_INTERNAL_H */
