/*
 * partial_state.h
 *	  The type gpuagg_state: states of aggregates with internal ones, as values that travel between
 * servers.
 *
 * A value is a byte for the format, one for the kind, and the state as the aggregate's own
 * serialization function has it, whose form all servers share (numbers in network order, types by
 * name).  Input functions check all of it.
 */
#ifndef GPUAGG_PARTIAL_STATE_H
#define GPUAGG_PARTIAL_STATE_H

#include "postgres.h"

#include "lib/stringinfo.h"
#include "nodes/execnodes.h"

/* The names are kept: they are numbers in states of other servers. */
typedef enum PartialKind
{
	PARTIAL_NONE = 0,
	PARTIAL_INT8_AVG = 1,
	PARTIAL_NUMERIC_AVG = 2,
	PARTIAL_POLY_VAR = 3,
	PARTIAL_NUMERIC_VAR = 4,
	PARTIAL_HISTOGRAM = 5,
	PARTIAL_HLL = 6,
	PARTIAL_SKETCH = 7,
	PARTIAL_ARGMAX = 8,
	PARTIAL_ARGMIN = 9
} PartialKind;

#define PARTIAL_KINDS 10

/*
 * The kind of an aggregate's states, by its combine function: core's, or ours by its link symbol
 * (core InvalidOid). PARTIAL_NONE if it has none of them.
 */
extern PartialKind partial_kind_of(Oid core, const char *symbol);

/* A gpuagg_state of what a serialization function has made. */
extern Datum partial_make(PartialKind kind, const bytea *serialized);

extern PartialKind partial_state_kind(const bytea *state);

/* A state in memory, for the aggregate's functions, from a gpuagg_state; and back. */
extern Datum partial_load(const bytea *state);
extern Datum partial_store(PartialKind kind, Datum internal);

/* A gpuagg_state of both, where the state in memory is of the same kind. */
extern Datum partial_combine(const bytea *state, Datum internal);

/* Bytes as the text of a value: as bytea's, whatever bytea_output is. */
extern char *partial_hex(const bytea *bytes);

/* And back: an error, as of a type of this name, if it is no such text. */
extern bytea *partial_bytes(const char *text, const char *type);

/* Are these the types of an aggregate's arguments, none of them to be coerced? */
extern bool partial_accepts(Oid agg, const Oid *types, int nargs);

/*
 * Do values of these types, which the aggregate accepts, mean the same in all databases where they
 * are in its states?
 */
extern bool partial_travels(PartialKind kind, const Oid *types, Oid collation);

/* A context for support functions, whose results go to the current memory context. */
typedef struct PartialContext
{
	AggState aggstate;
	ExprContext econtext;
} PartialContext;

extern Node *partial_context(PartialContext *context);

#endif /* GPUAGG_PARTIAL_STATE_H */
