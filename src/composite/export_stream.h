/*
 * export_stream.h
 *	  The exports of several engines, one after the other in one stream.
 *
 * An engine may leave the end of its export unread, so each export needs bounds of its own.  It is
 * written as a sequence of blocks: the length as a uint64, then as many bytes.  A length of 0 ends
 * the export.
 */
#ifndef GPUAGG_EXPORT_STREAM_H
#define GPUAGG_EXPORT_STREAM_H

#include "postgres.h"

#include "engine.h"

/* Writes the groups of an engine as the next export of the stream. */
extern EngineStatus export_stream_write(Engine *engine, GroupSink *sink);

/* Imports the next export of the stream into an engine, and skips the rest of the export. */
extern EngineStatus export_stream_read(Engine *engine, GroupSource *source);

#endif /* GPUAGG_EXPORT_STREAM_H */
