/*
 * export_stream.c
 *	  The exports of several engines in one stream; see export_stream.h.
 */
#include "postgres.h"

#include "composite/export_stream.h"

/* Writes one export: each write becomes a block of the stream. */
typedef struct ExportSink
{
	GroupSink base;
	GroupSink *stream;
} ExportSink;

/* Reads one export. */
typedef struct ExportSource
{
	GroupSource base;
	GroupSource *stream;
	uint64 left; /* bytes of the current block that were not read yet */
	bool ended;
} ExportSource;

/* GroupSink.write: writes one block to the stream. */
static void
write_block(GroupSink *base, const void *data, size_t len)
{
	GroupSink *stream = ((ExportSink *) base)->stream;
	uint64 length = len;

	if (len == 0)
		return;
	stream->write(stream, &length, sizeof(length));
	stream->write(stream, data, len);
}

/* GroupSource.read: reads len bytes from the blocks of one export; returns false at its end. */
static bool
read_blocks(GroupSource *base, void *data, size_t len)
{
	ExportSource *source = (ExportSource *) base;
	GroupSource *stream = source->stream;
	char *to = data;

	while (len > 0)
	{
		size_t n;

		if (source->left == 0)
		{
			if (source->ended || !stream->read(stream, &source->left, sizeof(source->left)))
				return false;
			source->ended = source->left == 0;
			continue;
		}
		n = Min(len, source->left);
		if (!stream->read(stream, to, n))
			return false;
		to += n;
		len -= n;
		source->left -= n;
	}
	return true;
}

EngineStatus
export_stream_write(Engine *engine, GroupSink *sink)
{
	/* without GroupSink.part: the export is not partitioned */
	ExportSink export = {.base.write = write_block, .stream = sink};
	EngineStatus status = engine->ops->export_groups(engine, &export.base);
	uint64 end = 0;

	if (status == ENGINE_OK)
		sink->write(sink, &end, sizeof(end));
	return status;
}

EngineStatus
export_stream_read(Engine *engine, GroupSource *source)
{
	ExportSource export = {.base.read = read_blocks, .stream = source};
	EngineStatus status = engine->ops->import_groups(engine, &export.base);
	char rest;

	while (status == ENGINE_OK && !export.ended && read_blocks(&export.base, &rest, 1))
		;
	return status;
}
