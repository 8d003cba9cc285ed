/*
 * pieces.h
 *	  The groups of several engines in one stream between participants.
 */
#ifndef GPUAGG_PIECES_H
#define GPUAGG_PIECES_H

#include "postgres.h"

#include "engine.h"

/* Exports an engine's groups; others may follow in the same stream. */
extern EngineStatus pieces_export(Engine *engine, GroupSink *sink);

/* Imports what pieces_export() wrote of one engine, and no more. */
extern EngineStatus pieces_import(Engine *engine, GroupSource *source);

#endif							/* GPUAGG_PIECES_H */
