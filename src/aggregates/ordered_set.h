/*
 * ordered_set.h
 *	  percentile_cont, percentile_disc, mode and gpu_median: which ranks of a group's values they
 *	  need, and their results.
 *
 * The values of a group that are not NULL are numbered from 0 in ascending order: their ranks. An
 * executor of ordered sets (composite/ordered_engine.c, engine_cuda/ordered_sets.c) calls
 * ordered_set_begin() for each aggregate of a group, ordered_set_ranks() for all of them, finds the
 * values of these ranks, and calls ordered_set_result() for each aggregate.
 */
#ifndef GPUAGG_ORDERED_SET_AGG_H
#define GPUAGG_ORDERED_SET_AGG_H

#include "postgres.h"

#include "nodes/primnodes.h"
#include "utils/array.h"

#include "spec.h"

/*
 * Adds the aggregate and its values to the spec. `input` is the values' input expression; `filter`
 * is the column of their filter, or -1. finalfn is core's final function, or that of gpu_median.
 * `fallback` becomes the FallbackAgg that returns the results; its index is returned.
 */
extern int ordered_set_add(AggSpec *spec, const Aggref *aggref, Oid finalfn, int input, int filter,
						   FallbackAgg *fallback);

/*
 * Returns whether a final function of core belongs to an ordered-set aggregate that is supported
 * here.
 */
extern bool ordered_set_is_final(Oid finalfn);

/* Returns its argument unchanged; raises core's error if it is not between 0 and 1. */
extern double ordered_set_check_fraction(double fraction);

/* The fractions of one aggregate in one group. */
typedef struct OrderedSetCall
{
	const OrderedSetSpec *set;
	bool isnull; /* the result is NULL, whatever the values are */
	int nfractions;
	double *fractions;
	bool *nulls;
	ArrayType *shape; /* the array of fractions, if the result is an array */
	int64 *ranks;     /* two for each fraction */
} OrderedSetCall;

/*
 * Reads the direct argument for a group of n values. Raises core's error if a fraction is out of
 * range. Allocates in the current context.
 */
extern void ordered_set_begin(OrderedSetCall *call, const OrderedSetSpec *set, Datum fraction,
							  bool isnull, int64 n);

/*
 * Returns how many ranks the calls need; *ranks has them in ascending order, without duplicates, in
 * the current context.
 */
extern int ordered_set_ranks(const OrderedSetCall *calls, int ncalls, int64 **ranks);

/*
 * Returns the result. values[i] has the rank ranks[i], which ascend. `mode` is the most frequent
 * value. typid is the type of the values.
 */
extern Datum ordered_set_result(const OrderedSetCall *call, int64 n, const int64 *ranks,
								const Datum *values, int nranks, Datum mode, Oid typid,
								bool *isnull);

#endif /* GPUAGG_ORDERED_SET_AGG_H */
