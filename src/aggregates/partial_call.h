/*
 * partial_call.h
 *	  Calls of aggregates in parts: the type gpuagg_row, and what a call of a partial aggregate
 * stands for.
 *
 * gpuagg_finish(gpuagg_merge(gpuagg_pack('agg(types)', arguments...)), 'agg(types)', NULL::result)
 * is agg(arguments...), by an aggregate whose arguments, state and result have declared types that
 * are no pseudotypes, whatever those of agg are.
 */
#ifndef GPUAGG_PARTIAL_CALL_H
#define GPUAGG_PARTIAL_CALL_H

#include "postgres.h"

#include "nodes/primnodes.h"

#include "aggregates/aggmap.h"

/*
 * The aggregate that a call stands for: an equivalent of what is inside gpuagg_merge and Citus's
 * partial aggregates, and any other one, and one of these whose arguments are not as expected,
 * itself.  Allocates in the current context.
 */
extern PartialCall partial_call(const Aggref *aggref);

/* The same, for those who do not ask for the form. */
extern Aggref *partial_aggref(const Aggref *aggref);

/*
 * gpuagg_finish(gpuagg_merge(gpuagg_pack(...))) for an aggregate, or NULL if its state is no
 * gpuagg_state, or would be another one on another server.
 */
extern Node *partial_expression(const Aggref *aggref);

/*
 * Would an aggregate's state be another one in another database, because of the types of its
 * arguments?  See alike.h.
 */
extern bool partial_is_of_database(const Aggref *aggref);

/* A function or aggregate of the extension, in its schema; InvalidOid in an older version of it. */
extern Oid partial_own_function(const char *name, const Oid *argtypes, int nargs);

/* The aggregate that such an expression of a query stands for; NULL if it is none. */
extern Aggref *partial_restored(Node *node);

#endif /* GPUAGG_PARTIAL_CALL_H */
