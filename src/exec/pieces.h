/*
 * pieces.h
 *	  Several exports one after the other in one stream, each in pieces: a length and so many bytes,
 * and at its end 0.
 */
#ifndef GPUAGG_PIECES_H
#define GPUAGG_PIECES_H

#include "postgres.h"

#include "engine.h"

typedef struct PieceSink
{
	GroupSink base;
	GroupSink *sink;
} PieceSink;

typedef struct PieceSource
{
	GroupSource base;
	GroupSource *source;
	uint64 left; /* of the piece at hand */
	bool ended;
} PieceSource;

/* What is written to pieces->base is the next export, until its end. */
extern void pieces_write(PieceSink *pieces, GroupSink *sink);
extern void pieces_end(PieceSink *pieces);

/* What is read from pieces->base is the next export; what was not read of it is skipped. */
extern void pieces_read(PieceSource *pieces, GroupSource *source);
extern void pieces_skip(PieceSource *pieces);

/* An engine's groups, written and read so. */
extern EngineStatus pieces_export(Engine *engine, GroupSink *sink);
extern EngineStatus pieces_import(Engine *engine, GroupSource *source);

#endif /* GPUAGG_PIECES_H */
