/*
 * pieces.c
 *	  The groups of several engines in one stream between participants.
 *
 * What an engine writes is preceded by its length, piece by piece; after the last piece stands a 0.
 */
#include "postgres.h"

#include "exec/pieces.h"

typedef struct PieceSink
{
	GroupSink	base;
	GroupSink  *sink;
} PieceSink;

typedef struct PieceSource
{
	GroupSource base;
	GroupSource *source;
	uint64		left;			/* of the piece at hand */
	bool		ended;
} PieceSource;

static void
write_piece(GroupSink *base, const void *data, size_t len)
{
	PieceSink  *pieces = (PieceSink *) base;
	uint64		length = len;

	if (len == 0)
		return;
	pieces->sink->write(pieces->sink, &length, sizeof(length));
	pieces->sink->write(pieces->sink, data, len);
}

static bool
read_pieces(GroupSource *base, void *data, size_t len)
{
	PieceSource *pieces = (PieceSource *) base;
	char	   *to = data;

	while (len > 0)
	{
		size_t		n;

		if (pieces->left == 0)
		{
			if (pieces->ended || !pieces->source->read(pieces->source, &pieces->left, sizeof(pieces->left)))
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
	PieceSink	pieces = {{write_piece}, sink};
	EngineStatus status = engine->ops->export_groups(engine, &pieces.base);
	uint64		end = 0;

	if (status == ENGINE_OK)
		sink->write(sink, &end, sizeof(end));
	return status;
}

EngineStatus
pieces_import(Engine *engine, GroupSource *source)
{
	PieceSource pieces = {{read_pieces}, source, 0, false};
	EngineStatus status = engine->ops->import_groups(engine, &pieces.base);
	char		rest;

	/* the end may not have been read */
	while (status == ENGINE_OK && !pieces.ended && read_pieces(&pieces.base, &rest, 1))
		;
	return status;
}
