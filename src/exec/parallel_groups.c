/*
 * parallel_groups.c
 *	  Moves groups between participants of a parallel scan, as exports of whole engines and by
 *	  partition; see parallel_internal.h.
 */
#include "postgres.h"

#include "storage/buffile.h"

#include "exec/parallel_internal.h"
#include "exec/part_sink.h"

/* Exports with more bytes than this go to a file. */
#define EXPORT_MEMORY (1024 * 1024)

/* ---- writing groups ---------------------------------------------------- */

typedef struct ExportSink
{
	GroupSink base;
	GpuAggState *state;
	MemoryContext cxt; /* owns the file; engines write in contexts of their own */
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
		MemoryContext old = MemoryContextSwitchTo(sink->cxt);
		char name[MAXPGPATH];

		export_file_name(name, sink->state->run.participant);
		sink->file = BufFileCreateFileSet(&sink->state->shared->fileset.fs, name);
		MemoryContextSwitchTo(old);
		BufFileWrite(sink->file, sink->buffer, sink->used);
	}
	/* older releases have no const here */
	BufFileWrite(sink->file, unconstify(void *, data), len);
}

EngineStatus
parallel_export(GpuAggState *state, GroupExport *export)
{
	ExportSink sink = {{NULL, export_write}, state, CurrentMemoryContext};
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

EngineStatus
parallel_export_parts(GpuAggState *state, Engine *engine, int exchange)
{
	PartSink sink;
	EngineStatus status;

	part_sink_begin(&sink, state, exchange, parallel_count_parts(state->shared, exchange));
	status = engine->ops->export_groups(engine, &sink.base);
	part_sink_end(&sink);
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

/* GroupSource.skip: skips len bytes of a file. */
static BufFile *
import_skip(GroupSource *base, size_t len, int *fileno, off_t *offset)
{
	ImportSource *source = (ImportSource *) base;

	BufFileTell(source->file, fileno, offset);
	if (BufFileSeek(source->file, 0, (off_t) len, SEEK_CUR) != 0)
		ereport(
			ERROR,
			(errcode_for_file_access(), errmsg("could not seek in temporary file of aggregation")));
	return source->file;
}

EngineStatus
parallel_import(GpuAggState *state, const GroupExport *export, bool lasts)
{
	GpuAggShared *shared = state->shared;
	ImportSource source = {{.read = import_read}};
	EngineStatus status;

	if (DsaPointerIsValid(export->data))
	{
		source.data = dsa_get_address(state->css.ss.ps.state->es_query_dsa, export->data);
		source.left = export->len;
	}
	else if (export->file >= 0)
	{
		MemoryContext old = MemoryContextSwitchTo(state->css.ss.ps.state->es_query_cxt);
		char name[MAXPGPATH];

		export_file_name(name, export->file);
		source.file = BufFileOpenFileSet(&shared->fileset.fs, name, O_RDONLY, false);
		source.base.skip = lasts ? import_skip : NULL;
		MemoryContextSwitchTo(old);
	}
	else
		return ENGINE_OK;
	status = state->engine->ops->import_groups(state->engine, &source.base);
	if (source.file && !source.base.taken)
		BufFileClose(source.file);
	return status;
}

/*
 * Finds the next portion of what a participant has in shared memory of a section of a partition.
 * Returns false if there are no more.
 */
static bool
next_shared(GpuAggState *state, int exchange, int section, int participant, int part,
			SharedCursor *cursor, SharedPart *found)
{
	GpuAggShared *shared = state->shared;
	MemoryContext old = MemoryContextSwitchTo(state->css.ss.ps.state->es_query_cxt);
	bool result =
		shared_rows_next(parallel_rows(shared), &state->mapped,
						 part_segment(shared, exchange, section), participant, part, cursor, found);

	MemoryContextSwitchTo(old);
	return result;
}

/* Imports a portion of what a participant has in shared memory of a section of a partition. */
static EngineStatus
import_shared(Engine *engine, int section, const SharedPart *part)
{
	ImportSource source = {{.read = import_read, .section = section}, part->data, part->bytes};

	if (!part->export)
		return engine->ops->import_rows(engine, section, part->data, part->n);
	return part->bytes > 0 ? engine->ops->import_groups(engine, &source.base) : ENGINE_OK;
}

/*
 * Imports what a participant has written to a file of a section of a partition, if anything, and
 * deletes the file.
 */
static EngineStatus
import_file(GpuAggState *state, Engine *engine, int exchange, int section, int participant,
			int part)
{
	GpuAggShared *shared = state->shared;
	ImportSource source = {{.read = import_read, .section = section}};
	char name[MAXPGPATH];
	EngineStatus status;

	part_file_name(name, exchange, section, participant, part);
	source.file = BufFileOpenFileSet(&shared->fileset.fs, name, O_RDONLY, true);
	if (source.file == NULL)
		return ENGINE_OK;
	status = engine->ops->import_groups(engine, &source.base);
	BufFileClose(source.file);
	BufFileDeleteFileSet(&shared->fileset.fs, name, false);
	return status;
}

/* Returns the number of sections in the exports of an engine. */
static int
count_sections(const Engine *engine)
{
	return engine->ops->sections ? engine->ops->sections(engine) : 1;
}

/* Imports all that a participant has left of a section of a partition. */
static EngineStatus
import_left(GpuAggState *state, Engine *engine, int exchange, int section, int participant,
			int part)
{
	SharedCursor cursor = {0};
	SharedPart found = {0};

	while (next_shared(state, exchange, section, participant, part, &cursor, &found))
	{
		EngineStatus status = import_shared(engine, section, &found);

		if (status != ENGINE_OK)
			return status;
	}
	return found.last ? ENGINE_OK :
						import_file(state, engine, exchange, section, participant, part);
}

/* Returns how many groups of a partition a participant has in shared memory. */
static uint32
count_shared(GpuAggState *state, int exchange, int participant, int part)
{
	SharedCursor cursor = {0};
	SharedPart found;
	uint64 n = 0;

	while (next_shared(state, exchange, 0, participant, part, &cursor, &found))
		n += found.n;
	return Min(n, PG_INT32_MAX);
}

EngineStatus
parallel_import_part(GpuAggState *state, Engine *engine, int exchange, int part)
{
	int participants = state->shared->attached;
	int nsections = count_sections(engine);
	uint32 most = 0;

	for (int p = 0; p < participants; p++)
		most = Max(most, count_shared(state, exchange, p, part));
	engine->ops->begin_part(engine, most);
	for (int s = 0; s < nsections; s++)
	{
		for (int p = 0; p < participants; p++)
		{
			EngineStatus status = import_left(state, engine, exchange, s, p, part);

			if (status != ENGINE_OK)
				return status;
		}
	}
	return ENGINE_OK;
}

void
parallel_release_part(GpuAggState *state, Engine *engine, int exchange, int part)
{
	int nsections = count_sections(engine);

	for (int s = 0; s < nsections; s++)
		shared_rows_release(parallel_rows(state->shared), state->mapped,
							part_segment(state->shared, exchange, s), part);
}
