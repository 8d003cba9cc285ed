/*
 * parallel.c
 *	  How the participants of a parallel scan merge their groups.
 *
 * A participant is active from its first call until the end of its input.  Each
 * reduces its share of the input in an engine of its own.  There are two ways to bring
 * the groups together, by how many there are.
 *
 * Few groups.  At the end of its input a participant that is not the last active one
 * exports its groups to shared storage (dynamic shared memory, or a shared temporary
 * file if they are large) and returns none.  The last one imports all exports and
 * returns the groups.  No participant waits for another, and any number of them is
 * right: the leader alone, workers alone, or one more that starts when the others have
 * ended.
 *
 * Why one that starts so late is right: partial plans return each row to one
 * participant, and when one of them sees the end, rows that were not returned yet
 * belong to participants that are active.  So whichever participant attaches after
 * the last active one finds no rows.
 *
 * Many groups, while others are active: a participant decides at the end of its input
 * that the groups are merged in parts (GpuAggShared.partitioned), and those that end after it
 * do the same.  Each leaves its groups by part, which a hash of the keys decides: rows of its table
 * in shared memory (shared_rows.c), where they and the table fit the memory of one participant, and
 * otherwise records in a shared temporary file for each part.  It waits at a barrier until no
 * participant is active.  Then each takes a part after the other, merges what all have written of
 * it, and returns its groups.  What participants had exported by then, when groups seemed few, the
 * one that decides imports before it writes its own.
 *
 * Why waiting at the barrier cannot deadlock:
 *
 * - A participant attaches to the barrier at its first call, and until it has
 *	 arrived there it returns no tuple.  So it does not leave the scan's call before,
 *	 but by an error.  Whoever is waited for is executing this scan, or nodes
 *	 below it; it does not stop because its consumer pulls no more tuples (a LIMIT), and is
 *	 not blocked by a full queue to the leader, as it has sent nothing since it attached: not
 *	 from this scan, and another scan (of an Append, say) is not executed meanwhile.
 * - Workers that never start do not attach, nor does a leader that does not
 *	 participate.  One that starts late and finds the barrier passed has no rows, and takes
 *	 parts at once.
 * - Nodes below may have barriers of their own (a parallel hash join).  There, too,
 *	 nobody waits for a participant that has ended its input, and those here that wait have.
 *	 Nodes above may have them: whoever waits there has passed this one, and is
 *	 not waited for here.
 * - After the barrier nobody waits.  A leader or worker that is stopped with a part half returned
 *	 keeps nobody from other parts: their consumer is stopped as well, or there is an error.
 * - The wait can be interrupted.  An error of a worker reaches the leader as an
 *	 interrupt, and one of the leader ends the workers.
 *
 * Engines that can share a query (engine.h) join the one whose number is `share`
 * before their participant attaches.  At the end of its input a participant whose
 * engine has joined flushes.  While others of that query are active, it is done, and
 * has nothing to export, unless the engine kept rows for itself.  The last of them
 * becomes the owner: it has the groups of them all, to return, or to export if
 * participants with other engines are active.  At that moment the query is closed to
 * others: `share` is incremented under the mutex.  A participant that has joined the
 * old query, but is not attached to it, sees that and joins the next one instead.  It
 * joins before it is counted, so that a query has an owner whenever rows are in it.
 *
 * A participant may find itself the last one only after it has exported, because
 * others ended meanwhile.  It then resets its engine and imports all exports, its own
 * among them.  Or it finds that the groups are merged in parts: it imports its own export,
 * and writes its groups again.
 *
 * GpuAggShared.mutex protects the counters and totals.  Exports are written before
 * they are counted, and only the last active participant, or the one that decides for parts, reads
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

/* Groups larger than this go to a file. */
#define EXPORT_MEMORY (1024 * 1024)

/*
 * With so many groups of all participants together, if others have as many, merging in parts is
 * faster.
 */
#define MANY_GROUPS 65536

/*
 * Parts for each participant, so that they end at about the same time; groups of a part, which
 * caches hold; most parts.
 */
#define PARTS_EACH 4
#define PART_GROUPS 8192
#define MAX_PARTS 256

typedef struct GroupExport
{
	dsa_pointer data; /* or InvalidDsaPointer: a file */
	size_t len;       /* in memory */
	int file;         /* number of the file, if one */
} GroupExport;

struct GpuAggShared
{
	slock_t mutex;
	int attached;     /* participants so far */
	int active;       /* those whose input has not ended */
	bool emitting;    /* the input of all has ended, and one returns the groups */
	bool partitioned; /* groups are merged in parts */
	int nparts;       /* a power of 2 */
	pg_atomic_uint32 next_part;
	Barrier barrier;     /* phase 0 until no participant is active, if partitioned */
	uint64 seed[2];      /* of the hash that decides which part a group is in */
	SlotSupport support; /* of the specs of all participants */
	uint32 layout;       /* spec_layout of the first to attach */
	int nexports;
	uint64 share; /* number of the query that engines can join now */
	int joined;   /* participants that are active and have joined it */
	dsm_handle segment;
	SharedFileSet fileset;
	int reported; /* participants in totals */
	EngineStats totals;
	FeedStats feed_totals;
	int most; /* participants; their SharedRows follow the exports */
	GroupExport exports[FLEXIBLE_ARRAY_MEMBER];
};

/* ---- set-up ------------------------------------------------------------ */

static Size
exports_size(int participants)
{
	return MAXALIGN(offsetof(GpuAggShared, exports) + participants * sizeof(GroupExport));
}

static SharedRows *
shared_rows(GpuAggShared *shared)
{
	return (SharedRows *) ((char *) shared + exports_size(shared->most));
}

Size
parallel_estimate(CustomScanState *node, ParallelContext *pcxt)
{
	return exports_size(pcxt->nworkers + 1) + shared_rows_size(pcxt->nworkers + 1);
}

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

/* A power of 2; a participant may have a file, with a buffer, for each. */
static int
part_count(int participants, double groups)
{
	size_t most = Min(get_hash_memory_limit() / 4 / BLCKSZ, MAX_PARTS);
	int n = 4;

	while (n < Max(participants * PARTS_EACH, groups / PART_GROUPS) && n * 2 <= most)
		n *= 2;
	return n;
}

void
parallel_initialize(CustomScanState *node, ParallelContext *pcxt, void *coordinate)
{
	GpuAggState *state = (GpuAggState *) node;
	GpuAggShared *shared = coordinate;

	SpinLockInit(&shared->mutex);
	/* no other scan may have this number while a server runs; 0 stands for no shared query */
	if (!pg_strong_random(&shared->share, sizeof(shared->share)) ||
		!pg_strong_random(shared->seed, sizeof(shared->seed)))
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR), errmsg("could not generate random values")));
	shared->share = shared->share | UINT64CONST(1) << 63;
	pg_atomic_init_u32(&shared->next_part, 0);
	shared->most = pcxt->nworkers + 1;
	shared->nparts = part_count(shared->most, state->plan->est_groups);
	shared_rows_init(shared_rows(shared), shared->most, pcxt->seg);
	reset_counters(shared);
	shared->support = exec_slot_support(state);
	shared->segment = pcxt->seg ? dsm_segment_handle(pcxt->seg) : DSM_HANDLE_INVALID;
	SharedFileSetInit(&shared->fileset, pcxt->seg);
	state->shared = shared;
	memcpy(state->seed, shared->seed, sizeof(state->seed));
	state->agreed = &shared->support;
	state->participant = -1;
}

/* For a rescan: all workers of the previous one have ended. */
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
	memcpy(state->seed, shared->seed, sizeof(state->seed));
	state->agreed = &shared->support;
	state->participant = -1;
}

/* The number of the query that engines can join now. */
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

	while (state->participant < 0)
	{
		uint64 share = current_share(shared);

		state->joined = engine->ops->join && engine->ops->join(engine, share);
		if (engine->failure[0] != '\0')
		{
			/* it attaches with another engine */
			BarrierDetach(&shared->barrier);
			return false;
		}
		SpinLockAcquire(&shared->mutex);
		if (!state->joined || shared->share == share)
		{
			if (shared->attached == 0)
				shared->layout = layout;
			agree = shared->layout == layout;
			state->participant = shared->attached++;
			shared->active++;
			shared->joined += state->joined;
		}
		SpinLockRelease(&shared->mutex);
	}
	state->late = phase > 0;
	if (!agree)
		elog(ERROR, "participants of a parallel scan disagree about the states of its groups");
	return true;
}

/* ---- writing groups ---------------------------------------------------- */

typedef struct ExportSink
{
	GroupSink base;
	GpuAggState *state;
	char *buffer;
	size_t used;
	BufFile *file; /* once there is too much for the buffer */
} ExportSink;

static void
export_file_name(char *name, int participant)
{
	snprintf(name, MAXPGPATH, "groups%d", participant);
}

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

		export_file_name(name, sink->state->participant);
		sink->file = BufFileCreateFileSet(&sink->state->shared->fileset.fs, name);
		BufFileWrite(sink->file, sink->buffer, sink->used);
	}
	/* without const in older versions */
	BufFileWrite(sink->file, unconstify(void *, data), len);
}

/* Writes this participant's groups to shared storage; the engine ends empty. */
static EngineStatus
export_groups(GpuAggState *state, GroupExport *export)
{
	ExportSink sink = {{NULL, export_write}, state};
	EngineStatus status;

	sink.buffer = palloc(EXPORT_MEMORY);
	status = state->engine->ops->export_groups(state->engine, &sink.base);
	export->data = InvalidDsaPointer;
	export->len = 0;
	export->file = state->participant;
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

/* The parts of a participant's groups, where they are in files. */
typedef struct PartSink
{
	GroupSink base;
	GpuAggState *state;
	BufFile **files; /* [part]; NULL: nothing yet */
	BufFile **current;
} PartSink;

static void
part_file_name(char *name, int participant, int part)
{
	snprintf(name, MAXPGPATH, "groups%d.%d", participant, part);
}

static void
part_group(GroupSink *base, uint64 hash)
{
	PartSink *sink = (PartSink *) base;

	sink->current = &sink->files[group_part(base, hash)];
}

static void
part_write(GroupSink *base, const void *data, size_t len)
{
	PartSink *sink = (PartSink *) base;

	if (*sink->current == NULL)
	{
		char name[MAXPGPATH];

		part_file_name(name, sink->state->participant, sink->current - sink->files);
		*sink->current = BufFileCreateFileSet(&sink->state->shared->fileset.fs, name);
	}
	BufFileWrite(*sink->current, unconstify(void *, data), len);
}

static char *
part_rows(GroupSink *base, const uint32 *counts, size_t row_size)
{
	GpuAggState *state = ((PartSink *) base)->state;
	MemoryContext old = MemoryContextSwitchTo(state->css.ss.ps.state->es_query_cxt);
	char *rows = shared_rows_create(shared_rows(state->shared), &state->mapped, state->participant,
									counts, base->nparts, row_size);

	MemoryContextSwitchTo(old);
	return rows;
}

/* Leaves this participant's groups by part. */
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

typedef struct ImportSource
{
	GroupSource base;
	const char *data;
	size_t left;
	BufFile *file;
} ImportSource;

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

/* Rows in shared memory that a participant has left of a part; NULL: none. */
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

/* The groups that a participant has written of a part. */
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
	/* the scan is shut down before its last tuples are fetched only if nobody wants them */
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
	state->parts++;
	return ops->finish(state->engine);
}

/* ---- the end of a participant's input ---------------------------------- */

/* What a participant does with its groups. */
typedef enum InputEnd
{
	END_SILENT,     /* it has none, and others return theirs */
	END_LAST,       /* it merges and returns those of all */
	END_EXPORT,     /* exports them all */
	END_PARTS,      /* exports them in parts, and waits */
	END_PARTS_FIRST /* the same, after it has taken over exports of others */
} InputEnd;

/*
 * How does this participant end?  No longer active with END_SILENT and END_LAST.  Groups of rows
 * that an engine has spilled are not known yet: they are many.
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
 * Counts the export: END_EXPORT; or END_LAST if all others have ended meanwhile, END_PARTS if
 * groups are many.
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

/* Writes the groups in parts, and waits until all have. */
static EngineStatus
end_with_parts(GpuAggState *state)
{
	GpuAggShared *shared = state->shared;
	EngineStatus status = export_parts(state);

	if (status != ENGINE_OK)
		return status;
	if (state->engine->ops->begin_part == NULL)
	{
		/* others merge; it detaches from the barrier, once, as any that does not merge */
		state->silent = true;
		return ENGINE_OK;
	}
	/* the groups' memory */
	state->engine->ops->begin_part(state->engine, 0);
	state->merging = true;
	BarrierArriveAndWait(&shared->barrier, PG_WAIT_EXTENSION);
	return ENGINE_OK;
}

/*
 * Flushes this participant's rows to the query that its engine has joined.  The last
 * participant of it becomes the owner of all groups; the others end here, unless
 * their engines kept rows for themselves.
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
		/* it cannot be the last active one: another one is still joined */
		shared->active--;
		state->silent = true;
	}
	SpinLockRelease(&shared->mutex);
	state->joined = false;
	ops->detach(state->engine, owner);
	return ENGINE_OK;
}

/* Forgets its groups, which are exported, but not errors that the export has met. */
static void
reset_exported(Engine *engine)
{
	int errors = engine->errors;

	engine->ops->reset(engine);
	engine->errors = errors;
}

/* The groups of all rows are being returned: this one has none. */
static void
check_no_rows(GpuAggState *state)
{
	if (state->feed->rows > 0)
		elog(ERROR, "parallel participant has rows after the groups were emitted");
}

/* Ends with groups of its own that it returns or writes, or none. */
static EngineStatus
end_input(GpuAggState *state)
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
			state->silent = true;
			return ENGINE_OK;
	}
}

EngineStatus
parallel_end_of_input(GpuAggState *state)
{
	GpuAggShared *shared = state->shared;
	EngineStatus status = ENGINE_OK;

	if (state->joined)
		status = end_shared_query(state);
	if (status == ENGINE_OK && !state->silent)
	{
		if (!state->late)
			status = end_input(state);
		else
		{
			check_no_rows(state);
			state->merging = state->engine->ops->begin_part != NULL;
			state->silent = !state->merging;
		}
	}
	if (status != ENGINE_OK)
		return status;
	if (!state->merging)
		BarrierDetach(&shared->barrier);
	return ENGINE_OK;
}

/* ---- statistics -------------------------------------------------------- */

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
 * Adds this process's statistics to the shared totals, and copies these, as the
 * shared memory may be gone when EXPLAIN wants them.
 */
void
parallel_shutdown(CustomScanState *node)
{
	GpuAggState *state = (GpuAggState *) node;
	GpuAggShared *shared = state->shared;
	EngineStats mine;
	bool ran = state->participant >= 0 && exec_stats(state, &mine);

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
	state->agreed = NULL;
}
