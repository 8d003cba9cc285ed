/*
 * aggmap.h
 *	  From SQL aggregates to slots, and from slot states to SQL results.
 *
 * An aggregate is recognised by its transition function, so gpu_sum(int4) and core's sum(int4)
 * share one row of agg_list.h. A row says which monoids run over which arguments, and how their
 * states become a value of the aggregate's own transition type. The aggregate's own final function
 * makes the result, so that every digit is core's.
 *
 * The life of an aggregate: aggmap_supported() in the planner; aggmap_build() at executor start,
 * which adds its slots or its fallback aggregate to the spec; aggmap_finalize() or
 * aggmap_finalize_many() for each group that the engine returns.
 *
 * All functions may raise errors.
 */
#ifndef GPUAGG_AGGMAP_H
#define GPUAGG_AGGMAP_H

#include "postgres.h"

#include "nodes/execnodes.h"
#include "nodes/primnodes.h"

#include "aggregates/agg_tally.h"
#include "engine.h"
#include "spec.h"

/* Aggregates that need special treatment. */
typedef enum AggRole
{
	AGG_ROLE_NONE,
	AGG_ROLE_MERGE,       /* gpuagg_merge */
	AGG_ROLE_STATE,       /* gpu_approx_count_distinct_state, gpu_approx_percentile_state */
	AGG_ROLE_CITUS_TEXT,  /* Citus's worker_partial_agg */
	AGG_ROLE_CITUS_BINARY /* Citus's worker_binary_partial_agg */
} AggRole;

/* Returns the role of an aggregate; AGG_ROLE_NONE for most. */
extern AggRole aggmap_role(Oid aggfnoid);

/*
 * The argument of a sum, mean or count as a function of the input that the aggregate reads instead
 * (plan/linear.c): mul * input + add.  It is NULL where the input is.  The input is an expression
 * of integers, or a column of numerics with a declared scale, which count as integers times
 * 10^-scale, like the argument's values.
 */
typedef struct LinearArgument
{
	int64 mul;
	int64 add;
	int scale; /* display scale of the argument's values */
} LinearArgument;

/* What an aggregate of a query returns. */
typedef enum PartialForm
{
	PARTIAL_RESULT, /* its result */
	PARTIAL_TRANS,  /* core's partial aggregate: its transition value, serialized if it is internal
					 */
	PARTIAL_STATE,  /* gpuagg_merge and gpu_..._state: a gpuagg_state */
	PARTIAL_TEXT,   /* Citus: the text of the transition value, as cstring */
	PARTIAL_BINARY  /* Citus: its binary form, as bytea */
} PartialForm;

/* A call of an aggregate in a query, and the aggregate that it stands for. */
typedef struct PartialCall
{
	Aggref *aggref; /* the aggregate to be computed */
	Oid called;     /* the aggregate that the query calls: the same, or one that stands for it */
	PartialForm form;
	bool merged; /* the call makes a gpuagg_state, or passes one to an aggregate of Citus */
} PartialCall;

/* Returns whether this is one of the extension's aggregates (gpu_*). */
extern bool aggmap_is_ours(Oid aggfnoid);

/* Returns whether agg_list.h has a row for this aggregate. */
extern bool aggmap_is_listed(Oid aggfnoid);

/*
 * Returns the extension's aggregate whose result is the transition value of this aggregate,
 * serialized if it is internal; InvalidOid if there is none.
 */
extern Oid aggmap_state_aggregate(Oid aggfnoid);

/*
 * Returns the exact aggregate of floats (exact.c) that can replace this aggregate; InvalidOid if
 * there is none.
 */
extern Oid aggmap_exact_aggregate(Oid aggfnoid);

/*
 * Returns whether the aggregate of integers or numerics is computed of their number and sum, so
 * that its argument can be a LinearArgument.
 */
extern bool aggmap_is_linear(Oid aggfnoid);

/* Returns whether composite/ordered_engine.c computes this aggregate. */
extern bool aggmap_is_ordered_set(const Aggref *aggref);

/*
 * Returns whether this is min(), max() or count(*), judging by the aggregate alone: a type of its
 * argument without bounds, a FILTER or DISTINCT are not considered.
 */
extern bool aggmap_is_extreme(const Aggref *aggref);

/*
 * Returns whether this is always a fallback aggregate. Always sets *transfn to its transition
 * function.
 */
extern bool aggmap_is_fallback(Oid aggfnoid, Oid *transfn);

/*
 * Returns whether this is gpu_max_n or its like, with arguments whose 64-bit codes an engine may
 * sort, judging by the aggregate alone: n may be invalid.
 */
extern bool aggmap_is_top_n(const Aggref *aggref);

/* Returns whether this is min() or max() of texts that are equal only if their bytes are. */
extern bool aggmap_is_ranked(const Aggref *aggref);

/*
 * Returns how an engine may make the aggregate's states of counted values, or NULL, judging by the
 * aggregate alone: what it takes besides values may be invalid.
 */
extern const AggTally *aggmap_tally(const Aggref *aggref);

/* Returns whether this is an exact aggregate of floats (exact.c), which all engines compute. */
extern bool aggmap_is_exact(Oid aggfnoid);

/*
 * Returns whether this aggregate is supported. If not, sets *why to the reason for EXPLAIN and
 * gpuagg.require, e.g. "VARIADIC inside gpu_sum". Considers the aggregate alone (its kind, ORDER
 * BY, direct arguments, and whether states can be merged if parallel), not the keys or the plan.
 */
extern bool aggmap_supported(const Aggref *aggref, bool parallel, const char **why);

/*
 * Returns an expression of the aggregate's arguments that slots read: the bin of gpu_histogram2d,
 * or the hash of a value for gpu_approx_count_distinct. NULL for other aggregates, and if it cannot
 * be computed so. It is an input for aggmap_build() after those of the arguments. It raises no
 * error if the arguments raise none.
 */
extern Node *aggmap_computed_input(const Aggref *aggref);

/* Returns whether the aggregate has such an input, or could have one. */
extern bool aggmap_has_computed_input(const Aggref *aggref);

/* One aggregate of the query in the executor. */
typedef struct AggOutput AggOutput;

/*
 * Adds what the aggregate needs to *spec. args[i] is the input expression number of the Aggref's
 * argument i, and without DISTINCT and sorted rows also the one of its computed input, or -1, if it
 * has one; filter is that of its filter, or -1. `linear`: how the argument depends on the input,
 * whose column is `source`; NULL: it is the input. `set` is SlotSpec.set. Constant parameters, such
 * as bounds of histograms, are evaluated here if that cannot fail. Allocates in the current
 * context.
 */
extern AggOutput *aggmap_build(AggSpec *spec, const PartialCall *call, const int *args,
							   const LinearArgument *linear, Form_pg_attribute source, int filter,
							   int set, PlanState *parent, ExprContext *econtext);

/* Returns whether the order of rows can affect the aggregate's value. */
extern bool aggmap_shows_order(const AggOutput *out, const AggSpec *spec);

/*
 * Returns whether the aggregate returns a state with the registers of a sketch, so that it cannot
 * use GroupBatch.ranks.
 */
extern bool aggmap_reads_registers(const AggOutput *out);

/* Returns the aggregate's value for group `g`. Allocates in the current (per-tuple) context. */
extern Datum aggmap_finalize(AggOutput *out, const GroupBatch *groups, int g, bool *isnull);

/*
 * Sets the aggregate's values for n groups. The value of group which[i] goes to values[i * stride]
 * and nulls[i * stride]. Returns false, and computes nothing, if this aggregate or these groups do
 * not support that.
 */
extern bool aggmap_finalize_many(AggOutput *out, const GroupBatch *groups, const int *which, int n,
								 Datum *values, bool *nulls, int stride);

/* Raises an error, worded like core's, if any of these MonoidError bits is set. */
extern void aggmap_raise(int errors);

#endif /* GPUAGG_AGGMAP_H */
