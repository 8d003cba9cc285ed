/*
 * parallel.c
 *	  How the participants of a parallel scan merge their groups.
 *
 * Each participant aggregates its share of the input privately.  At the end of
 * its input it leaves: one that is not the last writes its groups to shared
 * storage (dynamic shared memory, or a shared temporary file when they are
 * many), the last one reads them all and emits.  Nobody waits for anybody, and
 * no number of participants is assumed: the leader alone, workers alone, or one
 * that comes when everything is over, are all right.
 *
 * Engines that can gather their rows in one place join there (engine.h) and need
 * no exports: who leaves while another one is still joined leaves at once, and
 * the last one has all their groups, to emit or, where participants with other
 * engines are still active, to export.  Then the place is closed: `share`, its
 * number, counts up, and one that joined meanwhile but is not yet attached joins
 * the next place.  It is joined before it is counted, so that the place does not
 * vanish while a participant trusts in it.
 *
 * That rests on one property of partial plans: when a participant sees their
 * end, what is not yet returned belongs to participants that are still active.
 * So one that attaches after the last one left finds no rows.
 *
 * A participant may find itself last only after it has written its groups,
 * because others left meanwhile.  It then reads its own groups too, into an
 * engine that was reset.
 *
 * GpuAggShared.mutex protects the counters and totals.  Exports are written
 * before they are counted, and only the last participant reads them.
 */
#include "postgres.h"

#include "storage/buffile.h"
#include "storage/dsm.h"
#include "storage/sharedfileset.h"
#include "storage/shm_toc.h"
#include "storage/spin.h"
#include "utils/dsa.h"

#include "exec/exec.h"

/* Groups larger than this go to a file. */
#define EXPORT_MEMORY (1024 * 1024)

typedef struct GroupExport
{
	dsa_pointer data;			/* or InvalidDsaPointer: a file */
	size_t		len;			/* in memory */
	int			file;			/* number of the file, if one */
} GroupExport;

struct GpuAggShared
{
	slock_t		mutex;
	int			attached;		/* participants so far */
	int			active;			/* those that have not left */
	bool		emitting;		/* the last one has left */
	bool		for_gpu;		/* AggSpec.for_gpu of all participants */
	uint32		layout;			/* spec_layout of the first to attach */
	int			nexports;
	uint64		share;			/* number of the place where engines join */
	int			joined;			/* there, of those that are active */
	dsm_handle	segment;
	SharedFileSet fileset;
	int			reported;		/* participants in totals */
	EngineStats totals;
	GroupExport exports[FLEXIBLE_ARRAY_MEMBER];
};

/* ---- set-up ------------------------------------------------------------ */

Size
parallel_estimate(CustomScanState *node, ParallelContext *pcxt)
{
	return offsetof(GpuAggShared, exports) + (pcxt->nworkers + 1) * sizeof(GroupExport);
}

static void
reset_counters(GpuAggShared *shared)
{
	shared->attached = 0;
	shared->active = 0;
	shared->emitting = false;
	shared->nexports = 0;
	shared->share++;
	shared->joined = 0;
	shared->reported = 0;
	memset(&shared->totals, 0, sizeof(shared->totals));
}

/*
 * Must the specs of all participants suit the GPU?  An engine that lives on, of a
 * scan that was parallel before, keeps the spec that it has.
 */
static bool
choose_for_gpu(GpuAggState *state)
{
	return state->engine ? state->spec->for_gpu : exec_chooses_gpu(state);
}

void
parallel_initialize(CustomScanState *node, ParallelContext *pcxt, void *coordinate)
{
	GpuAggState *state = (GpuAggState *) node;
	GpuAggShared *shared = coordinate;

	SpinLockInit(&shared->mutex);
	/* no two scans of a server's life may meet; 0 would be nobody's */
	if (!pg_strong_random(&shared->share, sizeof(shared->share)))
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("could not generate random values")));
	shared->share = shared->share | UINT64CONST(1) << 63;
	reset_counters(shared);
	shared->for_gpu = choose_for_gpu(state);
	shared->segment = pcxt->seg ? dsm_segment_handle(pcxt->seg) : DSM_HANDLE_INVALID;
	SharedFileSetInit(&shared->fileset, pcxt->seg);
	state->shared = shared;
	state->participant = -1;
}

/* All participants of the previous scan are gone. */
void
parallel_reinitialize(CustomScanState *node, ParallelContext *pcxt, void *coordinate)
{
	GpuAggShared *shared = coordinate;
	dsa_area   *area = node->ss.ps.state->es_query_dsa;

	for (int i = 0; i < shared->nexports; i++)
	{
		if (area && DsaPointerIsValid(shared->exports[i].data))
			dsa_free(area, shared->exports[i].data);
	}
	SharedFileSetDeleteAll(&shared->fileset);
	reset_counters(shared);
	shared->for_gpu = choose_for_gpu((GpuAggState *) node);
}

bool
parallel_for_gpu(const GpuAggState *state)
{
	return state->shared->for_gpu;
}

void
parallel_initialize_worker(CustomScanState *node, shm_toc *toc, void *coordinate)
{
	GpuAggState *state = (GpuAggState *) node;
	GpuAggShared *shared = coordinate;

	SharedFileSetAttach(&shared->fileset, dsm_find_mapping(shared->segment));
	state->shared = shared;
	state->participant = -1;
}

/* The number of the place where engines join now. */
static uint64
current_share(GpuAggShared *shared)
{
	uint64		share;

	SpinLockAcquire(&shared->mutex);
	share = shared->share;
	SpinLockRelease(&shared->mutex);
	return share;
}

/*
 * Before a participant reads its first row.  False, and it is not attached, if
 * its engine failed.
 */
bool
parallel_attach(GpuAggState *state)
{
	GpuAggShared *shared = state->shared;
	Engine	   *engine = state->engine;
	uint32		layout = spec_layout(state->spec);
	bool		agree = true;

	while (state->participant < 0)
	{
		uint64		share = current_share(shared);

		state->joined = engine->ops->join && engine->ops->join(engine, share);
		if (engine->failure[0] != '\0')
			return false;
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
	if (!agree)
		elog(ERROR, "participants of a parallel scan disagree about the states of its groups");
	return true;
}

/* ---- writing groups ---------------------------------------------------- */

typedef struct ExportSink
{
	GroupSink	base;
	GpuAggState *state;
	char	   *buffer;
	size_t		used;
	BufFile    *file;			/* once there is too much for the buffer */
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
	bool		memory = sink->state->css.ss.ps.state->es_query_dsa != NULL;

	if (sink->file == NULL && memory && sink->used + len <= EXPORT_MEMORY)
	{
		memcpy(sink->buffer + sink->used, data, len);
		sink->used += len;
		return;
	}
	if (sink->file == NULL)
	{
		char		name[MAXPGPATH];

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
	ExportSink	sink = {{export_write}, state};
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
		dsa_area   *area = state->css.ss.ps.state->es_query_dsa;

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

/* ---- reading groups ---------------------------------------------------- */

typedef struct ImportSource
{
	GroupSource base;
	const char *data;
	size_t		left;
	BufFile    *file;
} ImportSource;

static bool
import_read(GroupSource *base, void *data, size_t len)
{
	ImportSource *source = (ImportSource *) base;

	if (source->file)
	{
		size_t		got = BufFileRead(source->file, data, len);

		if (got == 0 && len > 0)
			return false;
		if (got != len)
			ereport(ERROR,
					(errcode_for_file_access(),
					 errmsg("could not read groups of a parallel participant: read only %zu of %zu bytes",
							got, len)));
		return true;
	}
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
		char		name[MAXPGPATH];

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

/* ---- leaving ----------------------------------------------------------- */

/*
 * Leaves if that needs no export: as the last participant, who then emits, or
 * when everything has been emitted.  False if others are still active.
 */
static bool
leave_at_once(GpuAggState *state)
{
	GpuAggShared *shared = state->shared;
	bool		leaves;

	SpinLockAcquire(&shared->mutex);
	leaves = shared->emitting || shared->active == 1;
	if (leaves)
	{
		state->silent = shared->emitting;
		shared->emitting = true;
		shared->active--;
	}
	SpinLockRelease(&shared->mutex);
	return leaves;
}

/* Leaves after an export; true if the others have left meanwhile. */
static bool
leave_after_export(GpuAggState *state, const GroupExport *export)
{
	GpuAggShared *shared = state->shared;
	bool		last;

	SpinLockAcquire(&shared->mutex);
	shared->exports[shared->nexports++] = *export;
	last = --shared->active == 0;
	if (last)
		shared->emitting = true;
	SpinLockRelease(&shared->mutex);
	return last;
}

/*
 * Hands this participant's rows in where it joined others.  The last of these
 * becomes the owner of all groups; others leave, unless some rows stayed with them.
 */
static EngineStatus
flush(GpuAggState *state)
{
	GpuAggShared *shared = state->shared;
	const EngineOps *ops = state->engine->ops;
	EngineStatus status;
	bool		alone;
	bool		owner;

	status = ops->flush(state->engine, &alone);
	if (status != ENGINE_OK)
		return status;
	SpinLockAcquire(&shared->mutex);
	owner = --shared->joined == 0;
	if (owner)
		shared->share++;
	else if (alone)
	{
		/* somebody else is active: the one that stays joined */
		shared->active--;
		state->silent = true;
	}
	SpinLockRelease(&shared->mutex);
	state->joined = false;
	ops->detach(state->engine, owner);
	return ENGINE_OK;
}

/*
 * This participant's input has ended.  Sets state->silent if another one emits
 * the groups; otherwise the engine has all of them, and wants finish.
 */
EngineStatus
parallel_end_of_input(GpuAggState *state)
{
	GroupExport export;
	EngineStatus status;

	if (state->joined)
	{
		status = flush(state);
		if (status != ENGINE_OK || state->silent)
			return status;
	}
	if (leave_at_once(state))
	{
		if (!state->silent)
			return import_all(state);
		if (state->feed->rows > 0)
			elog(ERROR, "parallel participant has rows after the groups were emitted");
		return ENGINE_OK;
	}
	status = export_groups(state, &export);
	if (status != ENGINE_OK)
		return status;
	if (leave_after_export(state, &export))
	{
		int			errors = state->engine->errors;

		/* what the export met is still to be raised */
		state->engine->ops->reset(state->engine);
		state->engine->errors = errors;
		return import_all(state);
	}
	state->silent = true;
	return ENGINE_OK;
}

/* ---- statistics -------------------------------------------------------- */

static void
add_stats(EngineStats *total, const EngineStats *stats)
{
	total->rows += stats->rows;
	total->batches += stats->batches;
	total->groups = Max(total->groups, stats->groups);
	total->mem_peak += stats->mem_peak;
	total->spilled_bytes += stats->spilled_bytes;
	total->spill_partitions += stats->spill_partitions;
	total->changes += stats->changes;
	total->bytes_to_device += stats->bytes_to_device;
	total->bytes_from_device += stats->bytes_from_device;
	total->copy_ms += stats->copy_ms;
	total->kernel_ms += stats->kernel_ms;
	total->rows_aside += stats->rows_aside;
	total->device_memory += stats->device_memory;
	total->retries += stats->retries;
	if ((stats->rows > 0 && stats->strategy[0] != '\0') || total->strategy[0] == '\0')
		strlcpy(total->strategy, stats->strategy, sizeof(total->strategy));
}

/*
 * Adds this process's statistics to the shared totals and, as the shared memory
 * may go away next, takes the totals along.
 */
void
parallel_shutdown(CustomScanState *node)
{
	GpuAggState *state = (GpuAggState *) node;
	GpuAggShared *shared = state->shared;
	EngineStats mine;
	bool		ran = state->participant >= 0 && exec_stats(state, &mine);

	if (shared == NULL)
		return;
	SpinLockAcquire(&shared->mutex);
	if (ran)
	{
		add_stats(&shared->totals, &mine);
		shared->reported++;
	}
	state->stats = shared->totals;
	state->participants = shared->reported;
	SpinLockRelease(&shared->mutex);
	state->have_stats = state->participants > 0;
	state->shared = NULL;
}
