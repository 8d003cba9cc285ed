/*
 * pieces.c
 *	  Several exports in one stream; see pieces.h.
 */
#include "postgres.h"

#include "exec/pieces.h"

static void
write_piece(GroupSink *base, const void *data, size_t len)
{
	PieceSink *pieces = (PieceSink *) base;
	uint64 length = len;

	if (len == 0)
		return;
	pieces->sink->write(pieces->sink, &length, sizeof(length));
	pieces->sink->write(pieces->sink, data, len);
}

void
pieces_write(PieceSink *pieces, GroupSink *sink)
{
	/* an export in pieces is not partitioned */
	pieces->base = (GroupSink){.write = write_piece};
	pieces->sink = sink;
}

void
pieces_end(PieceSink *pieces)
{
	uint64 end = 0;

	pieces->sink->write(pieces->sink, &end, sizeof(end));
}

static bool
read_pieces(GroupSource *base, void *data, size_t len)
{
	PieceSource *pieces = (PieceSource *) base;
	char *to = data;

	while (len > 0)
	{
		size_t n;

		if (pieces->left == 0)
		{
			if (pieces->ended ||
				!pieces->source->read(pieces->source, &pieces->left, sizeof(pieces->left)))
				return false;
			pieces->ended = pieces->left == 0;
			continue;
		}
		n = Min(len, pieces->left);
		if (!pieces->source->read(pieces->source, to, n))
			return false;
		to += n;
		len -= n;
		pieces->left -= n;
	}
	return true;
}

EngineStatus
pieces_export(Engine *engine, GroupSink *sink)
{
	PieceSink pieces;
	EngineStatus status;

	pieces_write(&pieces, sink);
	status = engine->ops->export_groups(engine, &pieces.base);
	if (status == ENGINE_OK)
		pieces_end(&pieces);
	return status;
}

void
pieces_read(PieceSource *pieces, GroupSource *source)
{
	pieces->base.read = read_pieces;
	pieces->source = source;
	pieces->left = 0;
	pieces->ended = false;
}

void
pieces_skip(PieceSource *pieces)
{
	char rest;

	while (!pieces->ended && read_pieces(&pieces->base, &rest, 1))
		;
}

EngineStatus
pieces_import(Engine *engine, GroupSource *source)
{
	PieceSource pieces;
	EngineStatus status;

	pieces_read(&pieces, source);
	status = engine->ops->import_groups(engine, &pieces.base);
	if (status == ENGINE_OK)
		pieces_skip(&pieces);
	return status;
}
