/*
 * top_n.h
 *	  States of gpu_max_n, gpu_min_n, gpu_argmax_n and gpu_argmin_n; see top_n.c.
 */
#ifndef GPUAGG_TOP_N_H
#define GPUAGG_TOP_N_H

#include "postgres.h"

#include "fmgr.h"
#include "utils/typcache.h"

/* The aggregate is a sum of these. */
#define TOP_SMALLEST 1
#define TOP_OF_KEYS 2 /* entries are ordered by keys, and have values beside them */

/* Largest n. */
#define TOP_MAX_N 1000

/*
 * The transition state: at most n entries, the best first. The types are in it, because combine and
 * serialize functions do not get them as arguments, and may not get a collation. The first entries
 * are in the same allocation as the state, so that most states fit into one cache line.
 */
typedef struct TopState
{
	Oid keytype;
	Oid valuetype; /* InvalidOid without values */
	Oid collation;
	uint8 form;
	int16 n;
	int16 count;
	int16 capacity;
	Datum *keys; /* varlena keys and values are not compressed or out of line */
} TopState;

/* Returns the values beside the keys of a state, which has them. */
static inline NullableDatum *
top_n_values(const TopState *state)
{
	return (NullableDatum *) (state->keys + state->capacity);
}

/*
 * Entries for which a new state has room, and the bytes that it takes at most with them. Another
 * entry takes at most TOP_N_ROW_BYTES, as arrays of entries double.
 */
#define TOP_N_FIRST_CAPACITY 4
#define TOP_N_FIRST_BYTES 144
#define TOP_N_ROW_BYTES (3 * (sizeof(Datum) + sizeof(NullableDatum)))

/* How values of a type are compared. */
typedef enum TopOrder
{
	TOP_ORDER_INT16,
	TOP_ORDER_INT32,
	TOP_ORDER_INT64,
	TOP_ORDER_FLOAT4,
	TOP_ORDER_FLOAT8,
	TOP_ORDER_CALL /* by the type's comparison function */
} TopOrder;

typedef struct TopType
{
	TypeCacheEntry *entry; /* NULL: no type */
	TopOrder order;
} TopType;

/* The two types. States from other servers may have different types each. */
typedef struct TopTypes
{
	TopType key;
	TopType value;
} TopTypes;

/* A call of an aggregate whose n is a constant. */
typedef struct TopCall
{
	int form;
	int n;
	Oid keytype;
	Oid valuetype; /* InvalidOid without values */
	Oid collation;
	TopTypes types; /* set when the first state is created */
} TopCall;

/* Returns the form of a transition function's aggregate; -1 if it is none of top_n.c. */
extern int top_n_form_of(const FmgrInfo *transfn);

/*
 * Returns a description of a call for top_n_create. The types are those of the function's
 * arguments.
 */
extern TopCall top_n_call(const FmgrInfo *transfn, int form, Oid collation, int n);

/* Returns an empty state in cxt. */
extern TopState *top_n_create(const TopCall *call, MemoryContext cxt);

/* Return the bytes of an empty state, and such a state in this memory. */
extern size_t top_n_empty_bytes(const TopCall *call);
extern TopState *top_n_init(const TopCall *call, void *memory);

/*
 * Returns a state in cxt with `count` entries, at least one and at most n, which the caller writes:
 * keys, and with TOP_OF_KEYS values, the best first.
 */
extern TopState *top_n_make(const TopCall *call, int count, MemoryContext cxt);

/*
 * Adds an entry with a copy of the key and value in cxt, the context of the state, if it is among
 * the n best ones; the last entry of a full state is removed. May leave temporary memory in the
 * current context, unless the types are by-value. `types` is set here if it is not set yet.
 */
extern void top_n_offer(TopState *state, TopTypes *types, Oid collation, Datum key,
						NullableDatum value, MemoryContext cxt);

/*
 * Convert a state of by-value types to bytes for another process of the same query, or for a file,
 * and back, in the current context. They take less time than the serialization functions.
 * top_n_unpack returns NULL if these are not such bytes.
 */
extern bytea *top_n_pack(const TopState *state);
extern TopState *top_n_unpack(const TopCall *call, const bytea *bytes);

/* Returns the element type of the result of the aggregate with this state. */
extern Oid top_n_element_type(const void *state);

#endif /* GPUAGG_TOP_N_H */
