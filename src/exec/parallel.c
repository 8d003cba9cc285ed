/*
 * parallel.c
 *	  How the participants of a parallel scan merge their groups.
 *
 * A participant is active from its first call until the end of its input.  Each reduces its share
 * of the input in an engine of its own.  There are two ways to merge the groups; the number of
 * groups decides.
 *
 * Few groups.  At the end of its input, a participant that is not the last active one exports its
 * groups to shared storage, and returns none.  The storage is dynamic shared memory, or a shared
 * temporary file for large exports.  The last participant imports all exports and returns the
 * groups.  No participant waits for another.  Any number of participants works: the leader alone,
 * workers alone, or one that starts after the others have ended.
 *
 * Why such a late start is safe: partial plans return each row to one participant.  When one of
 * them reaches the end, rows that were not returned yet belong to active participants.  So a
 * participant that attaches after the last active one has ended finds no rows.
 *
 * Many groups, while others are active.  A participant decides at the end of its input that the
 * groups are merged in partitions (GpuAggShared.partitioned), and those that end after it do the
 * same.  A hash of the keys decides the partition of a group.  A participant leaves its groups as
 * rows in shared memory (shared_rows.c), if they and its table fit the memory of one participant.
 * Otherwise it writes records to a shared temporary file for each partition.  It then waits at a
 * barrier until no participant is active.  After that each participant takes one partition after
 * another, merges what all have written of it, and returns its groups.  Groups that participants
 * exported before the decision are imported by the one that decides, before it writes its own.
 *
 * Why waiting at the barrier cannot deadlock:
 *
 * - A participant attaches to the barrier at its first call.  It returns no tuple until it has
 *	 arrived at the barrier, so it leaves the scan's call before only by an error.  A participant
 *	 that others wait for is therefore executing this scan or nodes below it.  It does not stop
 *	 because its consumer needs no more tuples (a LIMIT).  A full queue to the leader cannot block
 *	 it either: it has sent nothing from this scan since it attached, and another scan (of an
 *	 Append, for example) is not executed meanwhile.
 * - Workers that never start do not attach, and neither does a leader that does not participate.  A
 *	 participant that starts late and finds the barrier passed has no rows, and takes partitions at
 *	 once.
 * - Nodes below may have barriers of their own (a parallel hash join).  There no node waits for a
 *	 participant that has ended its input, and participants that wait here have.  Nodes above may
 *	 have barriers, too: a participant that waits there has passed this barrier, and no one waits
 *	 for it here.
 * - After the barrier no one waits.  If a leader or worker stops in the middle of a partition, the
 *	 others go on: their consumer stops as well, or there is an error.
 * - The wait can be interrupted.  An error of a worker reaches the leader as an interrupt, and an
 *	 error of the leader ends the workers.
 *
 * Engines that can share a query (engine.h) join the one with the number `share` before their
 * participant attaches.  At the end of its input a participant whose engine has joined flushes.
 * While others of that query are active, it is then done, and has nothing to export, unless its
 * engine has kept rows.  The last of them becomes the owner: it has the groups of all, to return,
 * or to export if participants with other engines are active.  At that moment the query is closed:
 * `share` is incremented under the mutex.  A participant that has joined the old query, but has not
 * attached yet, sees the change and joins the next query instead.  A participant joins before it is
 * counted, so a query with rows always gets an owner.
 *
 * A participant may become the last one while it exports, because others end meanwhile.  It then
 * resets its engine and imports all exports, including its own.  Or it learns that the groups are
 * merged in partitions: then it imports its own export, and writes its groups by partition.
 *
 * GpuAggShared.mutex protects the counters and totals.  Exports are written before they are
 * counted.  Only the last active participant, or the one that decides to use partitions, reads
 * them.
 */
#include "postgres.h"

#include "executor/nodeHash.h"
#include "port/atomics.h"
#include "port/pg_bitutils.h"
#include "storage/barrier.h"
#include "storage/buffile.h"
#include "storage/dsm.h"
#include "storage/sharedfileset.h"
#include "storage/shm_toc.h"
#include "storage/spin.h"
#include "utils/dsa.h"
#include "utils/wait_event.h"

#include "exec/exec.h"
#include "exec/shared_rows.h"

/* Exports with more bytes than this go to a file. */
#define EXPORT_MEMORY (1024 * 1024)

/* Merging in partitions is faster if all participants together have at least this many groups. */
#define MANY_GROUPS 65536

/* Least partitions for each participant, so that all end at about the same time. */
#define PARTS_EACH 4
/* Groups of a partition that fit in the processor's cache. */
#define PART_GROUPS 8192
#define MAX_PARTS 256

typedef struct GroupExport
{
	dsa_pointer data; /* the export in memory, or InvalidDsaPointer */
	size_t len;       /* bytes in memory */
	int file;         /* number of its file; -1: none */
} GroupExport;

struct GpuAggShared
{
	slock_t mutex;
	int attached;     /* participants that have attached */
	int active;       /* attached participants whose input has not ended */
	bool emitting;    /* all input has ended, and one participant returns the groups */
	bool partitioned; /* groups are merged in partitions */
	int nparts;       /* partitions, a power of 2 */
	pg_atomic_uint32 next_part;
	Barrier barrier;     /* if partitioned: in phase 0 while participants are active */
	uint64 seed[2];      /* for the hash that decides the partition of a group */
	SlotSupport support; /* that the specs of all participants are built for */
	uint32 layout;       /* spec_layout() of the first participant that attached */
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

/* ---- set-up ------------------------------------------------------------ */

/* Returns the size of GpuAggShared with the exports of so many participants. */
static Size
exports_size(int participants)
{
	return MAXALIGN(offsetof(GpuAggShared, exports) + participants * sizeof(GroupExport));
}

/* Returns the SharedRows, which follow GpuAggShared in memory. */
static SharedRows *
shared_rows(GpuAggShared *shared)
{
	return (SharedRows *) ((char *) shared + exports_size(shared->most));
}

/* Returns what participants share about the feed, which follows the SharedRows in memory. */
static FeedShared *
shared_feed(GpuAggShared *shared)
{
	return (FeedShared *) ((char *) shared_rows(shared) + MAXALIGN(shared_rows_size(shared->most)));
}

Size
parallel_estimate(CustomScanState *node, ParallelContext *pcxt)
{
	return exports_size(pcxt->nworkers + 1) + MAXALIGN(shared_rows_size(pcxt->nworkers + 1)) +
		feed_shared_size(((GpuAggState *) node)->child);
}

/* Sets counters and totals to those of a scan that has not begun. */
static void
reset_counters(GpuAggShared *shared)
{
	shared->attached = 0;
	shared->active = 0;
	shared->emitting = false;
	shared->partitioned = false;
	pg_atomic_write_u32(&shared->next_part, 0);
	BarrierInit(&shared->barrier, 0);
	shared->nexports = 0;
	shared->share++;
	shared->joined = 0;
	shared->reported = 0;
	memset(&shared->totals, 0, sizeof(shared->totals));
	memset(&shared->feed_totals, 0, sizeof(shared->feed_totals));
}

/*
 * Returns the number of partitions, a power of 2.  A participant may need a file with a buffer for
 * each, which limits them.
 */
static int
count_partitions(int participants, double groups)
{
	size_t most = Min(get_hash_memory_limit() / 4 / BLCKSZ, MAX_PARTS);
	int n = 4;

	while (n < Max(participants * PARTS_EACH, groups / PART_GROUPS) && n * 2 <= most)
		n *= 2;
	return n;
}

/*
 * Lets the choices for the feed be those of the first scan. A LIMIT above ends a parallel plan,
 * whose rescan has new shared memory; but the leader's feed stays open.
 */
static void
keep_feed_choices(GpuAggState *state)
{
	Size size = feed_shared_size(state->child);

	if (state->feed_choices)
		feed_shared_copy_choices(state->shared_feed, state->feed_choices);
	else
	{
		state->feed_choices = MemoryContextAlloc(state->css.ss.ps.state->es_query_cxt, size);
		memcpy(state->feed_choices, state->shared_feed, size);
	}
}

void
parallel_initialize(CustomScanState *node, ParallelContext *pcxt, void *coordinate)
{
	GpuAggState *state = (GpuAggState *) node;
	GpuAggShared *shared = coordinate;

	SpinLockInit(&shared->mutex);
	/* unique among all scans while a server runs; 0 stands for no shared query */
	if (!pg_strong_random(&shared->share, sizeof(shared->share)) ||
		!pg_strong_random(shared->seed, sizeof(shared->seed)))
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR), errmsg("could not generate random values")));
	shared->share = shared->share | UINT64CONST(1) << 63;
	pg_atomic_init_u32(&shared->next_part, 0);
	shared->most = pcxt->nworkers + 1;
	shared->nparts = count_partitions(shared->most, state->plan->est_groups);
	shared_rows_init(shared_rows(shared), shared->most, pcxt->seg);
	reset_counters(shared);
	shared->support = exec_slot_support(state);
	shared->segment = pcxt->seg ? dsm_segment_handle(pcxt->seg) : DSM_HANDLE_INVALID;
	SharedFileSetInit(&shared->fileset, pcxt->seg);
	state->shared = shared;
	state->shared_feed = shared_feed(shared);
	feed_shared_init(state->shared_feed, state->child, exec_tuples_reason(state) == NULL,
					 state->plan->read_once);
	keep_feed_choices(state);
	memcpy(state->seed, shared->seed, sizeof(state->seed));
	state->agreed = &shared->support;
	state->run.participant = -1;
}

/* Prepares a rescan.  All workers of the previous scan have ended. */
void
parallel_reinitialize(CustomScanState *node, ParallelContext *pcxt, void *coordinate)
{
	GpuAggShared *shared = coordinate;
	dsa_area *area = node->ss.ps.state->es_query_dsa;

	for (int i = 0; i < shared->nexports; i++)
	{
		if (area && DsaPointerIsValid(shared->exports[i].data))
			dsa_free(area, shared->exports[i].data);
	}
	SharedFileSetDeleteAll(&shared->fileset);
	shared_rows_unmap(&((GpuAggState *) node)->mapped);
	shared_rows_clear(shared_rows(shared));
	feed_shared_reset(shared_feed(shared), area);
	reset_counters(shared);
	shared->support = exec_slot_support((GpuAggState *) node);
}

void
parallel_initialize_worker(CustomScanState *node, shm_toc *toc, void *coordinate)
{
	GpuAggState *state = (GpuAggState *) node;
	GpuAggShared *shared = coordinate;

	SharedFileSetAttach(&shared->fileset, dsm_find_mapping(shared->segment));
	shared_rows_attach(shared_rows(shared), dsm_find_mapping(shared->segment));
	state->shared = shared;
	state->shared_feed = shared_feed(shared);
	memcpy(state->seed, shared->seed, sizeof(state->seed));
	state->agreed = &shared->support;
	state->run.participant = -1;
}

/* Returns the number of the query that engines can join now. */
static uint64
current_share(GpuAggShared *shared)
{
	uint64 share;

	SpinLockAcquire(&shared->mutex);
	share = shared->share;
	SpinLockRelease(&shared->mutex);
	return share;
}

bool
parallel_attach(GpuAggState *state)
{
	GpuAggShared *shared = state->shared;
	Engine *engine = state->engine;
	uint32 layout = spec_layout(state->spec);
	bool agree = true;
	int phase = BarrierAttach(&shared->barrier);

	while (state->run.participant < 0)
	{
		uint64 share = current_share(shared);

		state->run.joined = engine->ops->join && engine->ops->join(engine, share);
		if (engine->failure[0] != '\0')
		{
			/* the caller attaches again with another engine */
			BarrierDetach(&shared->barrier);
			return false;
		}
		SpinLockAcquire(&shared->mutex);
		if (!state->run.joined || shared->share == share)
		{
			if (shared->attached == 0)
				shared->layout = layout;
			agree = shared->layout == layout;
			state->run.participant = shared->attached++;
			shared->active++;
			shared->joined += state->run.joined;
		}
		SpinLockRelease(&shared->mutex);
	}
	state->run.late = phase > 0;
	if (!agree)
		elog(ERROR, "participants of a parallel scan have different states in their groups");
	return true;
}

/* ---- writing groups ---------------------------------------------------- */

typedef struct ExportSink
{
	GroupSink base;
	GpuAggState *state;
	char *buffer;
	size_t used;
	BufFile *file; /* NULL while the buffer suffices */
} ExportSink;

/* Sets name to the name of the file with a participant's export. */
static void
export_file_name(char *name, int participant)
{
	snprintf(name, MAXPGPATH, "groups%d", participant);
}

/* GroupSink.write: writes to the buffer, and to a file once the buffer does not suffice. */
static void
export_write(GroupSink *base, const void *data, size_t len)
{
	ExportSink *sink = (ExportSink *) base;
	bool memory = sink->state->css.ss.ps.state->es_query_dsa != NULL;

	if (sink->file == NULL && memory && sink->used + len <= EXPORT_MEMORY)
	{
		memcpy(sink->buffer + sink->used, data, len);
		sink->used += len;
		return;
	}
	if (sink->file == NULL)
	{
		char name[MAXPGPATH];

		export_file_name(name, sink->state->run.participant);
		sink->file = BufFileCreateFileSet(&sink->state->shared->fileset.fs, name);
		BufFileWrite(sink->file, sink->buffer, sink->used);
	}
	/* older releases have no const here */
	BufFileWrite(sink->file, unconstify(void *, data), len);
}

/* Exports this participant's groups to shared storage.  The engine has no groups afterwards. */
static EngineStatus
export_groups(GpuAggState *state, GroupExport *export)
{
	ExportSink sink = {{NULL, export_write}, state};
	EngineStatus status;

	sink.buffer = palloc(EXPORT_MEMORY);
	status = state->engine->ops->export_groups(state->engine, &sink.base);
	export->data = InvalidDsaPointer;
	export->len = 0;
	export->file = state->run.participant;
	if (sink.file)
		BufFileExportFileSet(sink.file);
	else if (sink.used > 0)
	{
		dsa_area *area = state->css.ss.ps.state->es_query_dsa;

		export->len = sink.used;
		export->data = dsa_allocate(area, sink.used);
		memcpy(dsa_get_address(area, export->data), sink.buffer, sink.used);
	}
	else
		export->file = -1;
	if (sink.file)
		BufFileClose(sink.file);
	pfree(sink.buffer);
	return status;
}

/* Writes a participant's groups by partition. */
typedef struct PartSink
{
	GroupSink base;
	GpuAggState *state;
	BufFile **files;   /* [partition] NULL: nothing was written yet */
	BufFile **current; /* file of the current group's partition */
} PartSink;

/* Sets name to the name of the file with a participant's groups of a partition. */
static void
part_file_name(char *name, int participant, int part)
{
	snprintf(name, MAXPGPATH, "groups%d.%d", participant, part);
}

/* GroupSink.group: the next writes go to the partition of this hash. */
static void
part_group(GroupSink *base, uint64 hash)
{
	PartSink *sink = (PartSink *) base;

	sink->current = &sink->files[group_part(base, hash)];
}

/* GroupSink.write: writes to the file of the current partition. */
static void
part_write(GroupSink *base, const void *data, size_t len)
{
	PartSink *sink = (PartSink *) base;

	if (*sink->current == NULL)
	{
		char name[MAXPGPATH];

		part_file_name(name, sink->state->run.participant, sink->current - sink->files);
		*sink->current = BufFileCreateFileSet(&sink->state->shared->fileset.fs, name);
	}
	BufFileWrite(*sink->current, unconstify(void *, data), len);
}

/*
 * GroupSink.rows: returns shared memory for all of this participant's groups as rows, or NULL if
 * there is none.
 */
static char *
part_rows(GroupSink *base, const uint32 *counts, size_t row_size)
{
	GpuAggState *state = ((PartSink *) base)->state;
	MemoryContext old = MemoryContextSwitchTo(state->css.ss.ps.state->es_query_cxt);
	char *rows = shared_rows_create(shared_rows(state->shared), &state->mapped,
									state->run.participant, counts, base->nparts, row_size);

	MemoryContextSwitchTo(old);
	return rows;
}

/* Exports this participant's groups by partition, to shared memory or files. */
static EngineStatus
export_parts(GpuAggState *state)
{
	int nparts = state->shared->nparts;
	PartSink sink = {
		{part_group, part_write, part_rows, nparts, 64 - pg_leftmost_one_pos32(nparts)}, state};
	EngineStatus status;

	sink.files = palloc0(sizeof(BufFile *) * nparts);
	status = state->engine->ops->export_groups(state->engine, &sink.base);
	for (int p = 0; p < nparts; p++)
	{
		if (sink.files[p] == NULL)
			continue;
		BufFileExportFileSet(sink.files[p]);
		BufFileClose(sink.files[p]);
	}
	pfree(sink.files);
	return status;
}

/* ---- reading groups ---------------------------------------------------- */

/* Reads an export from memory or a file. */
typedef struct ImportSource
{
	GroupSource base;
	const char *data;
	size_t left;   /* bytes of data */
	BufFile *file; /* or NULL: memory */
} ImportSource;

/* GroupSource.read: reads len bytes of an export; returns false at its end. */
static bool
import_read(GroupSource *base, void *data, size_t len)
{
	ImportSource *source = (ImportSource *) base;

	if (source->file)
		return compat_read_file(source->file, data, len, true);
	if (source->left == 0 && len > 0)
		return false;
	if (source->left < len)
		elog(ERROR, "groups of a parallel participant end early");
	memcpy(data, source->data, len);
	source->data += len;
	source->left -= len;
	return true;
}

/* Imports an export of one participant into this process's engine. */
static EngineStatus
import_groups(GpuAggState *state, const GroupExport *export)
{
	GpuAggShared *shared = state->shared;
	ImportSource source = {{import_read}};
	EngineStatus status;

	if (DsaPointerIsValid(export->data))
	{
		source.data = dsa_get_address(state->css.ss.ps.state->es_query_dsa, export->data);
		source.left = export->len;
	}
	else if (export->file >= 0)
	{
		char name[MAXPGPATH];

		export_file_name(name, export->file);
		source.file = BufFileOpenFileSet(&shared->fileset.fs, name, O_RDONLY, false);
	}
	else
		return ENGINE_OK;
	status = state->engine->ops->import_groups(state->engine, &source.base);
	if (source.file)
		BufFileClose(source.file);
	return status;
}

/* Imports the exports of all participants into this process's engine. */
static EngineStatus
import_all(GpuAggState *state)
{
	GpuAggShared *shared = state->shared;

	for (int i = 0; i < shared->nexports; i++)
	{
		EngineStatus status = import_groups(state, &shared->exports[i]);

		if (status != ENGINE_OK)
			return status;
	}
	return ENGINE_OK;
}

/*
 * Returns the rows of a partition that a participant has in shared memory, and sets *n to their
 * number; NULL if it has none there.
 */
static const char *
find_rows(GpuAggState *state, int participant, int part, uint32 *n)
{
	GpuAggShared *shared = state->shared;
	MemoryContext old = MemoryContextSwitchTo(state->css.ss.ps.state->es_query_cxt);
	const char *rows =
		shared_rows_find(shared_rows(shared), &state->mapped, participant, part, shared->nparts, n);

	MemoryContextSwitchTo(old);
	return rows;
}

/*
 * Imports the groups of a partition that a participant has written to a file, if any, and deletes
 * the file.
 */
static EngineStatus
import_file(GpuAggState *state, int participant, int part)
{
	GpuAggShared *shared = state->shared;
	ImportSource source = {{import_read}};
	char name[MAXPGPATH];
	EngineStatus status;

	part_file_name(name, participant, part);
	source.file = BufFileOpenFileSet(&shared->fileset.fs, name, O_RDONLY, true);
	if (source.file == NULL)
		return ENGINE_OK;
	status = state->engine->ops->import_groups(state->engine, &source.base);
	BufFileClose(source.file);
	BufFileDeleteFileSet(&shared->fileset.fs, name, false);
	return status;
}

EngineStatus
parallel_next_part(GpuAggState *state, bool *more)
{
	GpuAggShared *shared = state->shared;
	const EngineOps *ops = state->engine->ops;
	uint32 n, most = 0;
	int part;

	*more = false;
	/* the scan was shut down: no more tuples are needed */
	if (shared == NULL)
		return ENGINE_OK;
	part = pg_atomic_fetch_add_u32(&shared->next_part, 1);
	if (part >= shared->nparts)
	{
		shared_rows_unmap(&state->mapped);
		return ENGINE_OK;
	}
	*more = true;
	for (int p = 0; p < shared->attached; p++)
		if (find_rows(state, p, part, &n) != NULL)
			most = Max(most, n);
	ops->begin_part(state->engine, most);
	for (int p = 0; p < shared->attached; p++)
	{
		const char *rows = find_rows(state, p, part, &n);
		EngineStatus status =
			rows ? ops->import_rows(state->engine, rows, n) : import_file(state, p, part);

		if (status != ENGINE_OK)
			return status;
	}
	shared_rows_release(shared_rows(shared), state->mapped, part, shared->nparts);
	state->run.parts++;
	return ops->finish(state->engine);
}

/* ---- the end of a participant's input ---------------------------------- */

/* The ways in which a participant ends its input. */
typedef enum InputEnd
{
	END_SILENT,     /* has no groups; another participant returns all */
	END_LAST,       /* merges and returns the groups of all participants */
	END_EXPORT,     /* exports its groups */
	END_PARTS,      /* exports its groups by partition, and waits */
	END_PARTS_FIRST /* the same, after it has imported the exports of others */
} InputEnd;

/*
 * Decides how this participant ends.  After END_SILENT and END_LAST it is not active any more.  If
 * the engine has spilled rows, the number of groups is unknown, and assumed to be large.
 */
static InputEnd
choose_end(GpuAggState *state, const EngineStats *stats)
{
	GpuAggShared *shared = state->shared;
	InputEnd end = END_EXPORT;

	SpinLockAcquire(&shared->mutex);
	if (shared->partitioned)
		end = END_PARTS;
	else if (shared->emitting || shared->active == 1)
	{
		end = shared->emitting ? END_SILENT : END_LAST;
		shared->emitting = true;
		shared->active--;
	}
	else if (state->engine->ops->begin_part &&
			 (stats->groups >= MANY_GROUPS / shared->active || stats->spilled_bytes > 0))
	{
		end = END_PARTS_FIRST;
		shared->partitioned = true;
	}
	SpinLockRelease(&shared->mutex);
	return end;
}

/*
 * Counts the export and returns END_EXPORT, or END_LAST if all others have ended meanwhile.
 * Returns END_PARTS, without counting it, if the groups are merged in partitions.
 */
static InputEnd
end_after_export(GpuAggState *state, const GroupExport *export)
{
	GpuAggShared *shared = state->shared;
	InputEnd end = END_EXPORT;

	SpinLockAcquire(&shared->mutex);
	if (shared->partitioned)
		end = END_PARTS;
	else
	{
		shared->exports[shared->nexports++] = *export;
		if (--shared->active == 0)
		{
			end = END_LAST;
			shared->emitting = true;
		}
	}
	SpinLockRelease(&shared->mutex);
	return end;
}

/* Exports the groups by partition, and waits until all participants have. */
static EngineStatus
end_with_parts(GpuAggState *state)
{
	GpuAggShared *shared = state->shared;
	EngineStatus status = export_parts(state);

	if (status != ENGINE_OK)
		return status;
	if (state->engine->ops->begin_part == NULL)
	{
		/* others merge; the caller detaches from the barrier */
		state->run.phase = SCAN_SILENT;
		return ENGINE_OK;
	}
	/* frees the memory of the exported groups */
	state->engine->ops->begin_part(state->engine, 0);
	state->run.phase = SCAN_MERGE;
	BarrierArriveAndWait(&shared->barrier, PG_WAIT_EXTENSION);
	return ENGINE_OK;
}

/*
 * Flushes this participant's rows to the query that its engine has joined.  The last participant of
 * the query becomes the owner of all groups.  The others are done, unless their engines kept rows.
 */
static EngineStatus
end_shared_query(GpuAggState *state)
{
	GpuAggShared *shared = state->shared;
	const EngineOps *ops = state->engine->ops;
	EngineStatus status;
	bool complete;
	bool owner;

	status = ops->flush(state->engine, &complete);
	if (status != ENGINE_OK)
		return status;
	SpinLockAcquire(&shared->mutex);
	owner = --shared->joined == 0;
	if (owner)
		shared->share++;
	else if (complete)
	{
		/* this is not the last active participant: another one is still joined */
		shared->active--;
		state->run.phase = SCAN_SILENT;
	}
	SpinLockRelease(&shared->mutex);
	state->run.joined = false;
	ops->detach(state->engine, owner);
	return ENGINE_OK;
}

/* Resets the engine after an export, but keeps the errors that the export has met. */
static void
reset_exported(Engine *engine)
{
	int errors = engine->errors;

	engine->ops->reset(engine);
	engine->errors = errors;
}

/*
 * Raises an error if this participant has read rows: another one already returns the groups of all
 * rows.
 */
static void
check_no_rows(GpuAggState *state)
{
	if (state->feed->rows > 0)
		elog(ERROR, "parallel participant has rows after the groups were emitted");
}

/* Returns or exports the groups of this participant's engine. */
static EngineStatus
end_own_groups(GpuAggState *state)
{
	GroupExport export;
	EngineStats stats;
	EngineStatus status;
	InputEnd end;

	state->engine->ops->stats(state->engine, &stats);
	end = choose_end(state, &stats);
	if (end == END_SILENT)
		check_no_rows(state);
	if (end == END_EXPORT)
	{
		status = export_groups(state, &export);
		if (status != ENGINE_OK)
			return status;
		end = end_after_export(state, &export);
		if (end == END_LAST || end == END_PARTS)
			reset_exported(state->engine);
		if (end == END_PARTS)
			status = import_groups(state, &export);
		else if (end == END_LAST)
			return import_all(state);
		if (status != ENGINE_OK)
			return status;
	}
	switch (end)
	{
		case END_LAST:
			return import_all(state);
		case END_PARTS_FIRST:
			status = import_all(state);
			return status == ENGINE_OK ? end_with_parts(state) : status;
		case END_PARTS:
			return end_with_parts(state);
		default:
			state->run.phase = SCAN_SILENT;
			return ENGINE_OK;
	}
}

EngineStatus
parallel_end_of_input(GpuAggState *state)
{
	GpuAggShared *shared = state->shared;
	EngineStatus status = ENGINE_OK;

	if (state->run.joined)
		status = end_shared_query(state);
	if (status == ENGINE_OK && state->run.phase != SCAN_SILENT)
	{
		if (!state->run.late)
			status = end_own_groups(state);
		else
		{
			check_no_rows(state);
			state->run.phase = state->engine->ops->begin_part ? SCAN_MERGE : SCAN_SILENT;
		}
	}
	if (status != ENGINE_OK)
		return status;
	if (state->run.phase != SCAN_MERGE)
		BarrierDetach(&shared->barrier);
	return ENGINE_OK;
}

/* ---- statistics -------------------------------------------------------- */

/* Adds the statistics of one feed to the totals. */
static void
add_feed_stats(FeedStats *total, const FeedStats *stats)
{
	total->blocks += stats->blocks;
	total->cached += stats->cached;
	total->by_map += stats->by_map;
	total->resident += stats->resident;
	total->resident_tables += stats->resident_tables;
	total->by_lsn += stats->by_lsn;
	total->skipped += stats->skipped;
	total->stale += stats->stale;
	total->built += stats->built;
}

/*
 * Adds this process's statistics to the shared totals, and copies the totals: the shared memory may
 * be gone when EXPLAIN prints them.
 */
void
parallel_shutdown(CustomScanState *node)
{
	GpuAggState *state = (GpuAggState *) node;
	GpuAggShared *shared = state->shared;
	EngineStats mine;
	bool ran = state->run.participant >= 0 && exec_stats(state, &mine);

	shared_rows_unmap(&state->mapped);
	if (shared == NULL)
		return;
	SpinLockAcquire(&shared->mutex);
	if (ran)
	{
		engine_stats_add(&shared->totals, &mine);
		if (state->feed)
			add_feed_stats(&shared->feed_totals, &state->feed->stats);
		shared->reported++;
	}
	state->stats = shared->totals;
	state->feed_stats = shared->feed_totals;
	state->participants = shared->reported;
	SpinLockRelease(&shared->mutex);
	state->have_stats = state->uncounted = state->participants > 0;
	state->shared = NULL;
	state->shared_feed = NULL;
	state->agreed = NULL;
}
