/*
 * partial_call.h
 *	  Calls of partial aggregates, and the aggregates that they stand for.
 *
 * gpuagg_finish(gpuagg_merge(gpuagg_pack('agg(types)', arguments...)), 'agg(types)', NULL::result)
 * computes agg(arguments...). gpuagg_merge is an aggregate whose argument, state and result have
 * declared types that are no pseudotypes, whatever agg's types are. So Citus and postgres_fdw can
 * split it between servers.
 */
#ifndef GPUAGG_PARTIAL_CALL_H
#define GPUAGG_PARTIAL_CALL_H

#include "postgres.h"

#include "nodes/primnodes.h"

#include "aggregates/aggmap.h"

/*
 * Returns the aggregate that a call stands for: the one inside gpuagg_merge or a partial aggregate
 * of Citus. For other aggregates, or if the arguments are not as expected, that is the call itself.
 * Allocates in the current context.
 */
extern PartialCall partial_call(const Aggref *aggref);

/* Returns the member aggref of partial_call(). */
extern Aggref *partial_aggref(const Aggref *aggref);

/*
 * Returns gpuagg_finish(gpuagg_merge(gpuagg_pack(...))) for an aggregate. Returns NULL if its state
 * is no gpuagg_state, or would differ on another server.
 */
extern Node *partial_expression(const Aggref *aggref);

/*
 * Returns whether the types of an aggregate's arguments make its state depend on the database; see
 * alike.h.
 */
extern bool partial_depends_on_database(const Aggref *aggref);

/*
 * Returns a function or aggregate of the extension, in its schema; InvalidOid if an older version
 * of the extension does not have it.
 */
extern Oid partial_own_function(const char *name, const Oid *argtypes, int nargs);

/*
 * Reverses partial_expression(): returns the aggregate that a call of gpuagg_finish in a query
 * stands for; NULL for any other expression.
 */
extern Aggref *partial_original_aggregate(Node *node);

#endif /* GPUAGG_PARTIAL_CALL_H */
