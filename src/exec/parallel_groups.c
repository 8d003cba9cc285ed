/*
 * parallel_groups.c
 *	  Moves groups between participants of a parallel scan, as exports of whole engines and by
 *	  partition; see parallel_internal.h.
 */
#include "postgres.h"

#include "storage/buffile.h"

#include "exec/parallel_internal.h"

/* Exports with more bytes than this go to a file. */
#define EXPORT_MEMORY (1024 * 1024)

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

EngineStatus
parallel_export(GpuAggState *state, GroupExport *export)
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
	int exchange;
	BufFile **files;   /* [partition] NULL: nothing was written yet */
	BufFile **current; /* file of the current group's partition */
} PartSink;

/* Sets name to the name of the file with a participant's groups of a partition. */
static void
part_file_name(char *name, int exchange, int participant, int part)
{
	snprintf(name, MAXPGPATH, "part%d.%d.%d", exchange, participant, part);
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

		part_file_name(name, sink->exchange, sink->state->run.participant,
					   sink->current - sink->files);
		*sink->current = BufFileCreateFileSet(&sink->state->shared->fileset.fs, name);
	}
	BufFileWrite(*sink->current, unconstify(void *, data), len);
}

/*
 * GroupSink.rows: returns shared memory for all of this participant's groups as rows, or NULL if
 * there is none.
 */
static char *
part_rows(GroupSink *base, const uint32 *counts, const size_t *bytes)
{
	PartSink *sink = (PartSink *) base;
	GpuAggState *state = sink->state;
	MemoryContext old = MemoryContextSwitchTo(state->css.ss.ps.state->es_query_cxt);
	char *rows = shared_rows_create(parallel_rows(state->shared), &state->mapped, sink->exchange,
									state->run.participant, counts, bytes, base->nparts);

	MemoryContextSwitchTo(old);
	return rows;
}

/* Returns the number of partitions in an exchange. */
static int
count_parts(const GpuAggShared *shared, int exchange)
{
	return exchange == EXCHANGE_GROUPS ? shared->nparts : shared->nvalue_parts;
}

EngineStatus
parallel_export_parts(GpuAggState *state, Engine *engine, int exchange)
{
	int nparts = count_parts(state->shared, exchange);
	PartSink sink = {
		{part_group, part_write, part_rows, nparts, 64 - pg_leftmost_one_pos32(nparts)},
		state,
		exchange};
	EngineStatus status;

	sink.files = palloc0(sizeof(BufFile *) * nparts);
	status = engine->ops->export_groups(engine, &sink.base);
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

EngineStatus
parallel_import(GpuAggState *state, const GroupExport *export)
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

/*
 * Returns the memory of a partition that a participant has in shared memory, and sets *n to the
 * number of its rows; NULL if it has none there.
 */
static const char *
find_rows(GpuAggState *state, int exchange, int participant, int part, uint32 *n)
{
	GpuAggShared *shared = state->shared;
	MemoryContext old = MemoryContextSwitchTo(state->css.ss.ps.state->es_query_cxt);
	const char *rows =
		shared_rows_find(parallel_rows(shared), &state->mapped, exchange, participant, part, n);

	MemoryContextSwitchTo(old);
	return rows;
}

/*
 * Imports the groups of a partition that a participant has written to a file, if any, and deletes
 * the file.
 */
static EngineStatus
import_file(GpuAggState *state, Engine *engine, int exchange, int participant, int part)
{
	GpuAggShared *shared = state->shared;
	ImportSource source = {{import_read}};
	char name[MAXPGPATH];
	EngineStatus status;

	part_file_name(name, exchange, participant, part);
	source.file = BufFileOpenFileSet(&shared->fileset.fs, name, O_RDONLY, true);
	if (source.file == NULL)
		return ENGINE_OK;
	status = engine->ops->import_groups(engine, &source.base);
	BufFileClose(source.file);
	BufFileDeleteFileSet(&shared->fileset.fs, name, false);
	return status;
}

EngineStatus
parallel_import_part(GpuAggState *state, Engine *engine, int exchange, int part)
{
	GpuAggShared *shared = state->shared;
	uint32 n, most = 0;

	for (int p = 0; p < shared->attached; p++)
		if (find_rows(state, exchange, p, part, &n) != NULL)
			most = Max(most, n);
	engine->ops->begin_part(engine, most);
	for (int p = 0; p < shared->attached; p++)
	{
		const char *rows = find_rows(state, exchange, p, part, &n);
		EngineStatus status = rows ? engine->ops->import_rows(engine, rows, n) :
									 import_file(state, engine, exchange, p, part);

		if (status != ENGINE_OK)
			return status;
	}
	return ENGINE_OK;
}

void
parallel_release_part(GpuAggState *state, int exchange, int part)
{
	shared_rows_release(parallel_rows(state->shared), state->mapped, exchange, part);
}
