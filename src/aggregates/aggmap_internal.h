/*
 * aggmap_internal.h
 *	  What agg_catalog.c (finds aggregates), aggmap.c (builds AggOutputs) and finalize.c (reads
 *	  them) share.
 */
#ifndef GPUAGG_AGGMAP_INTERNAL_H
#define GPUAGG_AGGMAP_INTERNAL_H

#include "postgres.h"

#include "fmgr.h"
#include "nodes/execnodes.h"

#include "aggregates/aggmap.h"
#include "aggregates/exact.h"
#include "aggregates/partial_state.h"

/* Most slots of one aggregate. */
#define MAX_SLOTS 3

/* The slot that AggOutput.shows_scales adds. */
#define SCALE_SLOT 2

/* How the states of slots become a transition value, or the result itself. */
typedef enum FinalizeKind
{
	FINALIZE_FALLBACK,    /* no slots: a fallback aggregate */
	FINALIZE_ORDERED_SET, /* no slots: composite/ordered_engine.c puts the result in place of a
							 fallback aggregate's */
	FINALIZE_INT,         /* slot 0 is the value */
	FINALIZE_COUNTED_INT, /* slot 1 is the value, a 64-bit integer; COUNTED: slot 0 counts the rows
						   */
	FINALIZE_COUNTED_I32,
	FINALIZE_COUNTED_F32,
	FINALIZE_COUNTED_F64,
	FINALIZE_INT_AVG,  /* bigint[]: count, sum */
	FINALIZE_INT8_AVG, /* from here on: core's internal states */
	FINALIZE_POLY_VAR,
	FINALIZE_NUMERIC_VAR,
	FINALIZE_DEC_AVG,
	FINALIZE_DEC,   /* slot 1 is the value, a decimal */
	FINALIZE_ACCUM, /* double precision[], with the layout of core's */
	FINALIZE_REGR,
	FINALIZE_MOMENTS, /* double precision[]: the members of gpuagg_moments */
	FINALIZE_HIST_UNIFORM,
	FINALIZE_HIST_WEIGHTED,
	FINALIZE_HIST_THRESHOLDS,
	FINALIZE_HIST_LOG,
	FINALIZE_HIST_GRID, /* two dimensions */
	FINALIZE_HIST_GRID_WEIGHTED,
	FINALIZE_HLL,        /* bigint: the estimate */
	FINALIZE_ARG,        /* the value in the row with the extreme key */
	FINALIZE_MAXSUB_I64, /* the state is the transition value */
	FINALIZE_MAXSUB_F64,
	FINALIZE_LINEAR,
	FINALIZE_MATRIX, /* double precision[]: the product */
	FINALIZE_RUN,    /* bigint: the length of the longest run */
	FINALIZE_ASCENDING
} FinalizeKind;

/*
 * How aggmap_finalize_many makes values of many groups at once; see final_values.c. It reads the
 * states of slot 1 if slot 0 counts, else of slot 0.
 */
typedef enum ValuesForm
{
	VALUES_NONE, /* not supported */
	VALUES_I64,
	VALUES_LOW32, /* the lower half of a 64-bit state */
	VALUES_I32,
	VALUES_F32,
	VALUES_F64,
	VALUES_F64_MEAN,
	VALUES_EXACT,      /* results of exact aggregates, from the states of a fallback aggregate */
	VALUES_REGRESSION, /* calls the final function with an array of floats */
	VALUES_SUM,        /* numerics of 128-bit integers */
	VALUES_MEAN,       /* sum divided by count */
	VALUES_VAR_POP, /* variance of floats, or of integers as a numeric; see values_are_of_sample()
					   and values_take_root() */
	VALUES_VAR_SAMP,
	VALUES_STDDEV_POP,
	VALUES_STDDEV_SAMP
} ValuesForm;

/* One aggregate of the query: where its states are, and how they become its value. */
struct AggOutput
{
	FinalizeKind kind;
	int slots[MAX_SLOTS];
	bool counted;     /* slot 0 is 0 if the group is empty */
	bool float8_mean; /* FINALIZE_ACCUM: only the mean of the state is needed */
	bool decimals; /* some argument is a column of decimals; numerics that it cannot represent go to
					  a FallbackAgg */
	int fallback;  /* index in AggSpec.fallbacks, or -1 */
	int scale;     /* FINALIZE_DEC, FINALIZE_DEC_AVG: scale of the argument */
	bool shows_scales;     /* FINALIZE_DEC_AVG: slot SCALE_SLOT has the largest display scale in the
						  group */
	LinearArgument linear; /* for aggregates whose states are a number and a sum */
	int width;             /* number of bins */
	ColumnType value;      /* FINALIZE_ARG: column type of the value */

	ColumnType key; /* FINALIZE_ARG: column type of the key */
	PartialForm form;
	PartialKind partial; /* kind of the gpuagg_state to be returned; PARTIAL_NONE: the transition
							value is returned */
	BinSpec bins;        /* bins of a histogram, for its state */
	BinSpec y;           /* the same for its second dimension */
	FmgrInfo output; /* output function for PARTIAL_TEXT and PARTIAL_BINARY of a transition value */

	FallbackAgg agg;  /* the catalog's data of the aggregate; without columns */
	FmgrInfo finalfn; /* fn_oid InvalidOid: the transition value is the result */
	int nfinalargs;
	AggState *aggstate; /* fcinfo->context of the aggregate's functions */
	ValuesForm values;
	void *floats;      /* VALUES_REGRESSION: the argument of the final function */
	ExactResult exact; /* VALUES_EXACT: which result */
};

/*
 * Return the sum of the argument's values for the number and sum of the input's values; see
 * LinearArgument.  64-bit sums wrap around, as core's do.
 */
static inline int64
linear_sum64(const AggOutput *out, int64 count, int64 sum)
{
	return (int64) ((uint64) out->linear.mul * (uint64) sum +
					(uint64) out->linear.add * (uint64) count);
}

static inline gpuagg_i128
linear_sum128(const AggOutput *out, int64 count, gpuagg_i128 sum)
{
	return out->linear.mul * sum + (gpuagg_i128) out->linear.add * count;
}

/*
 * Sets out->values when all other members are set. finalfn is core's final function that the
 * aggregate has.
 */
extern void final_values_init(AggOutput *out, Oid finalfn);

/*
 * Returns the largest display scale in a non-empty group. Raises an error if it is greater than
 * `most`, because states may come from the GPU server.
 */
extern int aggmap_shown_scale(const AggOutput *out, const GroupBatch *groups, int g, int most);

/* Returns the first argument of an aggregate that has arguments. */
static inline Expr *
aggmap_first_argument(const Aggref *aggref)
{
	return linitial_node(TargetEntry, aggref->args)->expr;
}

/* Returns whether this is a histogram of two dimensions. */
static inline bool
finalize_has_grid(FinalizeKind kind)
{
	return kind == FINALIZE_HIST_GRID || kind == FINALIZE_HIST_GRID_WEIGHTED;
}

/* Returns the bin of gpu_histogram2d as an expression; see aggmap_computed_input(). */
extern Node *aggmap_grid_bin(const Aggref *aggref);

/*
 * Sets the bins of both dimensions from the constant arguments of gpu_histogram2d. Returns false if
 * they are not constant or not valid.
 */
extern bool aggmap_grid_parameters(const Aggref *aggref, BinSpec *x, BinSpec *y);

/* Returns whether the aggregate has slots with bins, whose bounds are its arguments. */
static inline bool
finalize_has_bins(FinalizeKind kind)
{
	return kind == FINALIZE_HIST_UNIFORM || kind == FINALIZE_HIST_WEIGHTED ||
		kind == FINALIZE_HIST_THRESHOLDS || kind == FINALIZE_HIST_LOG || kind == FINALIZE_HLL ||
		finalize_has_grid(kind);
}

/*
 * Prepares *info for calls of a function. Sets the types of its arguments for get_fn_expr_argtype.
 * If fn is InvalidOid, only sets fn_oid.
 */
extern void aggmap_init_function(FmgrInfo *info, Oid fn, Oid result, int nargs, const Oid *types,
								 Oid collation);
/* Returns whether the slots become the result directly, and never a transition value. */
static inline bool
finalize_is_direct(FinalizeKind kind)
{
	return finalize_has_bins(kind) || kind == FINALIZE_ARG || kind == FINALIZE_MATRIX ||
		kind == FINALIZE_RUN || kind == FINALIZE_ASCENDING;
}

/* ---- agg_catalog.c ---- */

/* A monoid over arguments of the aggregate; -1: no argument. */
typedef struct SlotUse
{
	bool used;
	MonoidId monoid;
	int arg[2];
} SlotUse;

/* A row of agg_list.h. */
typedef struct AggRow
{
	Oid transfn; /* InvalidOid: the extension's C function `symbol` */
	const char *symbol;
	FinalizeKind kind;
	SlotUse slots[MAX_SLOTS];
} AggRow;

/* The row of all aggregates that agg_list.h does not have. */
extern const AggRow aggmap_fallback_row;

/* An entry of the cache: what the catalog says of an aggregate. */
typedef struct AggEntry
{
	Oid aggfnoid; /* hash key */
	bool ours;
	Oid finalfn; /* core's final function, or InvalidOid */
	AggRole role;
	PartialKind partial;
	const AggRow *row; /* a row of agg_list.h, or &aggmap_fallback_row */
} AggEntry;

/*
 * Returns what the catalog says of an aggregate, from the cache if it is there. Aggregates that
 * neither core nor gpuagg has created get aggmap_fallback_row.
 */
extern AggEntry aggmap_lookup(Oid aggfnoid);

/*
 * Returns whether composite/ordered_engine.c computes the aggregate. False for gpu_median with
 * DISTINCT or ORDER BY, which is a fallback aggregate.
 */
extern bool aggmap_row_is_ordered_set(const AggRow *row, const Aggref *aggref);

/*
 * Returns whether the aggregate has a slot whose states depend on the order of rows by definition.
 */
extern bool aggmap_row_needs_order(const AggRow *row);

/*
 * Returns the kind of gpuagg_state that the states of an aggregate have, of core or of the
 * extension.
 */
extern PartialKind aggmap_partial_kind(Oid aggfnoid);

/*
 * Returns fn itself if it is a function of core, or the function of core to which fn passes its
 * calls on. Returns InvalidOid for all others. *symbol: the link symbol of fn; NULL if fn is a
 * function of core.
 */
extern Oid aggmap_core_function(Oid fn, char **symbol);

#endif /* GPUAGG_AGGMAP_INTERNAL_H */
