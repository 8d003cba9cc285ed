/*
 * aggmap_internal.h
 *	  What agg_catalog.c, which knows the aggregates, aggmap.c, which makes AggOutputs, and
 * finalize.c, which reads them, share.
 */
#ifndef GPUAGG_AGGMAP_INTERNAL_H
#define GPUAGG_AGGMAP_INTERNAL_H

#include "postgres.h"

#include "fmgr.h"
#include "nodes/execnodes.h"

#include "aggregates/aggmap.h"
#include "aggregates/partial_state.h"

/* Slots of one aggregate. */
#define MAX_SLOTS 3

/* The slot of AggOutput.shows_scales. */
#define SCALE_SLOT 2

/* How the states of slots become a transition value, or the result itself. */
typedef enum FinalizeKind
{
	FINALIZE_FALLBACK,    /* no slots: a FallbackAgg */
	FINALIZE_ORDERED_SET, /* a FallbackAgg has the result */
	FINALIZE_INT,         /* slot 0 is the value */
	FINALIZE_COUNTED_INT, /* slot 1, a 64-bit integer, is the value */
	FINALIZE_COUNTED_I32,
	FINALIZE_COUNTED_F32,
	FINALIZE_COUNTED_F64,
	FINALIZE_INT_AVG,  /* bigint[]: count, sum */
	FINALIZE_INT8_AVG, /* internal states of core */
	FINALIZE_POLY_VAR,
	FINALIZE_NUMERIC_VAR,
	FINALIZE_DEC_AVG,
	FINALIZE_DEC,   /* slot 1, a decimal, is the value */
	FINALIZE_ACCUM, /* double precision[] of core's layout */
	FINALIZE_REGR,
	FINALIZE_HIST_UNIFORM,
	FINALIZE_HIST_WEIGHTED,
	FINALIZE_HIST_THRESHOLDS,
	FINALIZE_HIST_LOG,
	FINALIZE_HLL,        /* bigint: the estimate */
	FINALIZE_ARG,        /* the value that goes with the extreme key */
	FINALIZE_MAXSUB_I64, /* the state is the transition value */
	FINALIZE_MAXSUB_F64,
	FINALIZE_LINEAR,
	FINALIZE_MATRIX, /* double precision[]: the product */
	FINALIZE_RUN,    /* bigint: the longest */
	FINALIZE_ASCENDING
} FinalizeKind;

/*
 * How values of many groups are made at once: of states, at slot 1 if slot 0 counts; see
 * final_values.c.
 */
typedef enum ValuesForm
{
	VALUES_NONE, /* they are not */
	VALUES_I64,
	VALUES_LOW32, /* the lower half */
	VALUES_I32,
	VALUES_F32,
	VALUES_F64,
	VALUES_F64_MEAN,
	VALUES_REGRESSION, /* calls the final function with an array of floats */
	VALUES_SUM,        /* numerics of 128-bit integers */
	VALUES_MEAN,       /* quotients of sum and count */
	VALUES_VAR_POP, /* of floats, or numerics of integers; see values_sample() and values_root() */
	VALUES_VAR_SAMP,
	VALUES_STDDEV_POP,
	VALUES_STDDEV_SAMP
} ValuesForm;

struct AggOutput
{
	FinalizeKind kind;
	int slots[MAX_SLOTS];
	bool counted;      /* slot 0 says whether the group is empty */
	bool float8_mean;  /* FINALIZE_ACCUM: of the states only the mean is wanted */
	bool decimals;     /* numerics that are no decimals go to a FallbackAgg */
	int fallback;      /* index in AggSpec.fallbacks, or -1 */
	int scale;         /* FINALIZE_DEC and _DEC_AVG: of the argument */
	bool shows_scales; /* FINALIZE_DEC_AVG: slot SCALE_SLOT has the largest display scale of the
						  group */
	int width;         /* bins of a histogram */
	ColumnType value;  /* FINALIZE_ARG: what its codes stand for */

	ColumnType key; /* FINALIZE_ARG: likewise, of the key */
	PartialForm form;
	PartialKind
		partial;  /* kind of the gpuagg_state that is wanted; PARTIAL_NONE: the transition value */
	BinSpec bins; /* of a histogram, in the state that is wanted */
	FmgrInfo output; /* for PARTIAL_TEXT and PARTIAL_BINARY of a transition value */

	FallbackAgg agg;  /* what the catalog says; without columns */
	FmgrInfo finalfn; /* fn_oid InvalidOid: the transition value is the result */
	int nfinalargs;
	AggState *aggstate; /* fmgr context of the aggregate's functions */
	ValuesForm values;
	void *floats; /* VALUES_REGRESSION: the array */
};

/*
 * Sets out->values, when all else is set; finalfn: the final function of core's that the aggregate
 * has.
 */
extern void final_values_init(AggOutput *out, Oid finalfn);

/*
 * The largest display scale of the values of a group that has any: an error if it is more than
 * `most`, as states may come from the GPU server.
 */
extern int aggmap_shown_scale(const AggOutput *out, const GroupBatch *groups, int g, int most);

/* Has it slots with bins, whose bounds are arguments of the aggregate? */
static inline bool
finalize_has_bins(FinalizeKind kind)
{
	return kind == FINALIZE_HIST_UNIFORM || kind == FINALIZE_HIST_WEIGHTED ||
		kind == FINALIZE_HIST_THRESHOLDS || kind == FINALIZE_HIST_LOG || kind == FINALIZE_HLL;
}

/*
 * Makes *info ready to call a function, with the types of its arguments for
 * get_fn_expr_argtype.  Without a function (fn InvalidOid), only sets fn_oid to that.
 */
extern void aggmap_init_function(FmgrInfo *info, Oid fn, Oid result, int nargs, const Oid *types,
								 Oid collation);
/* Do its slots become the result, and never a transition value? */
static inline bool
finalize_is_direct(FinalizeKind kind)
{
	return finalize_has_bins(kind) || kind == FINALIZE_ARG || kind == FINALIZE_MATRIX ||
		kind == FINALIZE_RUN || kind == FINALIZE_ASCENDING;
}

/* ---- agg_catalog.c ---- */

/* A monoid over arguments of the aggregate; -1: none. */
typedef struct SlotUse
{
	bool used;
	MonoidId monoid;
	int arg[2];
} SlotUse;

/* A row of agg_list.h. */
typedef struct AggRow
{
	Oid transfn; /* InvalidOid: the extension's function `symbol` */
	const char *symbol;
	FinalizeKind kind;
	SlotUse slots[MAX_SLOTS];
} AggRow;

/* Of all other aggregates. */
extern const AggRow aggmap_fallback_row;

/* What is known of an aggregate. */
typedef struct AggEntry
{
	Oid aggfnoid; /* hash key of the cache */
	bool ours;
	Oid finalfn; /* core's final function, or InvalidOid */
	AggRole role;
	PartialKind partial;
	const AggRow *row; /* of agg_list.h, or aggmap_fallback_row */
} AggEntry;

extern AggEntry aggmap_look_up(Oid aggfnoid);

/*
 * Is it found by composite/ordered_engine.c?  Not where gpu_median takes DISTINCT values, or its
 * rows in an order: it is a fallback aggregate then.
 */
extern bool aggmap_row_is_ordered_set(const AggRow *row, const Aggref *aggref);

/* Has it a slot whose states depend on the order of rows by definition? */
extern bool aggmap_row_needs_order(const AggRow *row);

/* The kind of states of an aggregate of core's or the extension's. */
extern PartialKind aggmap_partial_kind(Oid aggfnoid);

/*
 * The function of core's that a function of an aggregate of core's or the extension's is: itself,
 * or what it passes calls on to.  Otherwise InvalidOid, and *symbol is its link symbol.
 */
extern Oid aggmap_core_function(Oid fn, char **symbol);

#endif /* GPUAGG_AGGMAP_INTERNAL_H */
