/*
 * aggmap.h
 *	  From SQL aggregates to slots, and from slot states to SQL results.
 *
 * An aggregate is recognised by its transition function, so gpu_sum(int4) and
 * core's sum(int4) are one row of agg_list.h.  What a row says: which monoids
 * over which arguments, and how the states become a value of the aggregate's
 * own transition type; the aggregate's own final function does the rest, so
 * that every digit is core's.
 */
#ifndef GPUAGG_AGGMAP_H
#define GPUAGG_AGGMAP_H

#include "postgres.h"

#include "nodes/execnodes.h"
#include "nodes/primnodes.h"

#include "engine.h"
#include "spec.h"

/* What is special about some aggregates. */
typedef enum AggRole
{
	AGG_ROLE_NONE,
	AGG_ROLE_MERGE,       /* gpuagg_merge */
	AGG_ROLE_CITUS_TEXT,  /* Citus's worker_partial_agg */
	AGG_ROLE_CITUS_BINARY /* and worker_binary_partial_agg */
} AggRole;

extern AggRole aggmap_role(Oid aggfnoid);

/* What an aggregate of a query returns. */
typedef enum PartialForm
{
	PARTIAL_RESULT, /* its result */
	PARTIAL_STATE,  /* of gpuagg_merge: a gpuagg_state */
	PARTIAL_TEXT,   /* of Citus's partial aggregates: the transition value's text, as cstring, */
	PARTIAL_BINARY  /* or its binary form, as bytea */
} PartialForm;

typedef struct PartialCall
{
	Aggref *aggref; /* the aggregate that rows are grouped with */
	Oid called;     /* what the query calls: it, or what it stands in */
	PartialForm form;
	bool merged; /* the transition value of that is the argument of gpuagg_merge, as gpuagg_state */
} PartialCall;

/* Is this one of the extension's aggregates (gpu_*)? */
extern bool aggmap_is_ours(Oid aggfnoid);

/* Is it in agg_list.h, as one of core's or ours? */
extern bool aggmap_is_listed(Oid aggfnoid);

/*
 * The extension's aggregate that returns the transition value that this one has for the same
 * arguments, serialized if it is internal; InvalidOid if there is none.
 */
extern Oid aggmap_state_aggregate(Oid aggfnoid);

/* Is it an ordered-set aggregate that is found by composite/ordered_engine.c? */
extern bool aggmap_is_ordered_set(const Aggref *aggref);

/* Is it always a fallback aggregate?  *transfn is set to its transition function in any case. */
extern bool aggmap_is_fallback(Oid aggfnoid, Oid *transfn);

/*
 * May this aggregate be taken?  If not, *why is a reason for EXPLAIN and
 * gpuagg.require, e.g. "VARIADIC inside gpu_sum".  Considers the aggregate
 * alone (kind, ORDER BY, direct arguments, mergeability if parallel), not keys or
 * plan shape.
 */
extern bool aggmap_supported(const Aggref *aggref, bool parallel, const char **why);

/* One aggregate of the query at execution. */
typedef struct AggOutput AggOutput;

/*
 * Adds what the aggregate needs to *spec.  args[i] and filter are input
 * expression numbers (filter -1: none); argument i of the call's Aggref is input
 * args[i].  `set` is SlotSpec.set: which rows it takes.  Constant parameters (histogram bounds)
 * whose evaluation cannot fail are evaluated here.  The result is allocated in the current context.
 */
extern AggOutput *aggmap_build(AggSpec *spec, const PartialCall *call, const int *args, int filter,
							   int set, PlanState *parent, ExprContext *econtext);

/* May the order of its rows show in the aggregate's value? */
extern bool aggmap_shows_order(const AggOutput *out, const AggSpec *spec);

/*
 * Does it return a state that has the registers of a sketch, so that GroupBatch.ranks does not do?
 */
extern bool aggmap_reads_registers(const AggOutput *out);

/*
 * The aggregate's value for group `g` of *groups, in the current (per-tuple)
 * memory context.
 */
extern Datum aggmap_finalize(AggOutput *out, const GroupBatch *groups, int g, bool *isnull);

/*
 * The same for the n groups of these numbers, the i-th at values[i * stride] and nulls[i * stride];
 * false: that is not for this aggregate, or not for these groups.
 */
extern bool aggmap_finalize_many(AggOutput *out, const GroupBatch *groups, const int *which, int n,
								 Datum *values, bool *nulls, int stride);

/* Raises the errors that MonoidError bits stand for, worded like core's. */
extern void aggmap_raise(int errors);

#endif /* GPUAGG_AGGMAP_H */
