/*
 * ordered_set.h
 *	  percentile_cont, percentile_disc, mode and gpu_median: what they ask of a group's values, and
 * what they make of these.
 *
 * Values of a group are numbered from 0 in ascending order, NULLs aside.
 */
#ifndef GPUAGG_ORDERED_SET_AGG_H
#define GPUAGG_ORDERED_SET_AGG_H

#include "postgres.h"

#include "nodes/primnodes.h"
#include "utils/array.h"

#include "spec.h"

/*
 * Adds the aggregate and its values, which are an input and a column of the spec with their filter
 * (or -1).  finalfn is the final function, one of core's, or that of gpu_median.  `fallback`
 * becomes the FallbackAgg that has the answers.
 */
extern int ordered_set_add(AggSpec *spec, const Aggref *aggref, Oid finalfn, int input, int filter,
						   FallbackAgg *fallback);

/* Is the final function, one of core's, that of an ordered-set aggregate that is known here? */
extern bool ordered_set_is_final(Oid finalfn);

/* A fraction, or several, of one group. */
typedef struct OrderedSetCall
{
	const OrderedSetSpec *set;
	bool isnull; /* the result is NULL whatever the values are */
	int nfractions;
	double *fractions;
	bool *nulls;
	ArrayType *shape; /* of the result, if an array */
	int64 *ranks;     /* two for each fraction */
} OrderedSetCall;

/*
 * Reads the direct argument for a group of n values; raises core's error if it is out of range.
 * Allocates in the current context.
 */
extern void ordered_set_begin(OrderedSetCall *call, const OrderedSetSpec *set, Datum fraction,
							  bool isnull, int64 n);

/*
 * All ranks that the calls want, ascending and different, in the current context; returns how many.
 */
extern int ordered_set_ranks(const OrderedSetCall *calls, int ncalls, int64 **ranks);

/*
 * The result, of values[i], which has the rank ranks[i], ascending; or of the mode.  typid is that
 * of the values.
 */
extern Datum ordered_set_result(const OrderedSetCall *call, int64 n, const int64 *ranks,
								const Datum *values, int nranks, Datum mode, Oid typid,
								bool *isnull);

#endif /* GPUAGG_ORDERED_SET_AGG_H */
