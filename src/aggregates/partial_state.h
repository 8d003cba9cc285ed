/*
 * partial_state.h
 *	  The type gpuagg_state: states of aggregates with internal states, as values that servers
 *	  exchange.
 *
 * A value is a format byte, a kind byte, and the state as the aggregate's own serialization
 * function writes it. That form is the same on all servers: numbers in network order, types by
 * name. Input functions check all of it.
 */
#ifndef GPUAGG_PARTIAL_STATE_H
#define GPUAGG_PARTIAL_STATE_H

#include "postgres.h"

#include "lib/stringinfo.h"
#include "nodes/execnodes.h"

/* Numbers must not change: they are stored in states of other servers. */
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
	PARTIAL_ARGMIN = 9,
	PARTIAL_TOP_N = 10,
	PARTIAL_VALUE_COUNTS = 11,
	PARTIAL_SUMMARY = 12,
	PARTIAL_HISTOGRAM_AUTO = 13,
	PARTIAL_EQUIDEPTH = 14,
	PARTIAL_EXP_HISTOGRAM = 15,
	PARTIAL_EXACT = 16
} PartialKind;

#define PARTIAL_KINDS 17

/*
 * Returns the kind of an aggregate's states, by its combine function: `core`, or the link symbol of
 * one of the extension if core is InvalidOid. Returns PARTIAL_NONE if they have no kind.
 */
extern PartialKind partial_kind_of(Oid core, const char *symbol);

/* Returns a gpuagg_state of this kind, made from the result of a serialization function. */
extern Datum partial_make(PartialKind kind, const bytea *serialized);

/* Returns the kind of a gpuagg_state, which has been checked. */
extern PartialKind partial_state_kind(const bytea *state);

/* Convert a gpuagg_state to a state in memory, for the aggregate's functions, and back. */
extern Datum partial_load(const bytea *state);
extern Datum partial_store(PartialKind kind, Datum internal);

/* Returns the combination of a gpuagg_state and a state in memory of the same kind. */
extern Datum partial_combine(const bytea *state, Datum internal);

/* Returns bytes as text, like bytea in hex format, whatever bytea_output is. */
extern char *partial_hex(const bytea *bytes);

/*
 * Returns the bytes of text in the form of partial_hex(). Raises an error for other text; type: the
 * type's name in the message.
 */
extern bytea *partial_bytes(const char *text, const char *type);

/* Returns whether an aggregate takes arguments of these types without coercion. */
extern bool partial_accepts_types(Oid agg, const Oid *types, int nargs);

/*
 * Returns whether a state of the aggregate, made of nargs arguments of these types, can be used in
 * another database: it cannot if they are hashed, or ordered, in another way there, as OIDs are.
 * The aggregate must accept the types.
 */
extern bool partial_is_portable(PartialKind kind, const Oid *types, int nargs, Oid collation);

/*
 * A context for calls of aggregates' functions, whose results are allocated in the current memory
 * context.
 */
typedef struct PartialContext
{
	AggState aggstate;
	ExprContext econtext;
} PartialContext;

/* Initializes *context and returns it as the context of a function call. */
extern Node *partial_context(PartialContext *context);

#endif /* GPUAGG_PARTIAL_STATE_H */
