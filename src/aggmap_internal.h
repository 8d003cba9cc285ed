/*
 * aggmap_internal.h
 *	  What aggmap.c, which builds outputs, and aggmap_lower.c share.
 */
#ifndef GPUAGG_AGGMAP_INTERNAL_H
#define GPUAGG_AGGMAP_INTERNAL_H

#include "postgres.h"

#include "fmgr.h"
#include "nodes/execnodes.h"

#include "aggmap.h"

/* Slots of one aggregate. */
#define MAX_SLOTS 3

/* How slot states become a transition value, or the result at once. */
typedef enum LowerKind
{
	LOWER_OWN,					/* no slots */
	LOWER_INT,					/* slot 0 is the value */
	LOWER_COUNTED_INT,			/* slot 1, a 64-bit integer, is the value */
	LOWER_COUNTED_I32,
	LOWER_COUNTED_F32,
	LOWER_COUNTED_F64,
	LOWER_INT_AVG,				/* bigint[]: count, sum */
	LOWER_INT8_AVG,				/* internal states of core */
	LOWER_POLY_VAR,
	LOWER_NUMERIC_VAR,
	LOWER_DEC_AVG,
	LOWER_DEC,					/* slot 1, a decimal, is the value */
	LOWER_ACCUM,				/* double precision[] of core's layout */
	LOWER_REGR,
	LOWER_HIST_UNIFORM,
	LOWER_HIST_WEIGHTED,
	LOWER_HIST_THRESHOLDS,
	LOWER_HLL,					/* bigint: the estimate */
	LOWER_ARG,					/* the value that goes with the extreme key */
	LOWER_MAXSUB_I64,			/* the state is the transition value */
	LOWER_MAXSUB_F64,
	LOWER_LINEAR,
	LOWER_MATRIX,				/* double precision[]: the product */
	LOWER_RUN,					/* bigint: the longest */
	LOWER_ASCENDING
} LowerKind;

struct AggOutput
{
	LowerKind	lower;
	int			slots[MAX_SLOTS];
	bool		counted;		/* slot 0 says whether the group is empty */
	bool		decimals;		/* slots leave odd numerics to an OwnSpec */
	int			own;			/* index in AggSpec.owns, or -1 */
	int			scale;			/* of decimals */
	int			width;			/* bins of a histogram */
	ColumnType	value;			/* LOWER_ARG: what its codes stand for */
	const int  *matrix_size;	/* LOWER_MATRIX: as in AggSpec */

	Oid			transtype;
	int16		translen;
	bool		transbyval;
	Datum		initval;
	bool		initnull;
	Oid			collation;
	FmgrInfo	finalfn;		/* fn_oid InvalidOid: the transition value is the result */
	int			nfinalargs;
	FmgrInfo	deserialfn;
	FmgrInfo	combinefn;
	AggState   *aggstate;		/* what aggregate functions want as their context */
};

/* Slots with bins, whose parameters come from the aggregate's arguments. */
static inline bool
lower_has_bins(LowerKind lower)
{
	return lower == LOWER_HIST_UNIFORM || lower == LOWER_HIST_WEIGHTED ||
		lower == LOWER_HIST_THRESHOLDS || lower == LOWER_HLL;
}

#endif							/* GPUAGG_AGGMAP_INTERNAL_H */
