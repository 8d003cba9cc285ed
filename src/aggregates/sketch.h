/*
 * sketch.h
 *	  The sketch of gpu_approx_percentile.
 */
#ifndef GPUAGG_SKETCH_H
#define GPUAGG_SKETCH_H

#include "postgres.h"

#include "fmgr.h"
#include "lib/stringinfo.h"
#include "utils/array.h"

#include "aggregates/agg_tally.h"
#include "aggregates/aggcall.h"

typedef struct Sketch Sketch;

/* Returns an empty sketch with a copy of n fractions; n = -1: the array of fractions is NULL. */
extern Sketch *sketch_create(MemoryContext cxt, const double *fractions, int n);

/* Adds a value to the sketch. */
extern void sketch_add(Sketch *sketch, double x);

/* Adds so many rows with a value. */
extern void sketch_add_rows(Sketch *sketch, double x, int64 count);

/* Adds the values of *from to *to. */
extern void sketch_merge(Sketch *to, Sketch *from);

/* Append a sketch to buf, and read it. Reading raises an error if the bytes are invalid. */
extern void sketch_put(StringInfo buf, Sketch *sketch);
extern Sketch *sketch_get(StringInfo buf);

/* Returns the number of values. */
extern int64 sketch_count(Sketch *sketch);

/*
 * Sets the least and the greatest value, which is NaN if there is one. There must be a value.
 * Sets *infinite to infinity or -infinity if there are values of that kind, to NaN if there are
 * both or a NaN, and to 0 otherwise.
 */
extern void sketch_range(Sketch *sketch, double *min, double *max, double *infinite);

/* Sets results[i] to the approximate percentile for fractions[i]. There must be a value. */
extern void sketch_percentiles(Sketch *sketch, const double *fractions, int n, double *results);

/*
 * Returns the elements of an array of fractions, and sets *n to their number; NaN for NULL. Raises
 * an error if a fraction is out of range.
 */
extern double *sketch_read_fractions(ArrayType *array, int *n);

/*
 * Returns the approximate percentiles for n fractions; NULL for a fraction that is NaN. There must
 * be a value.
 */
extern ArrayType *sketch_percentile_array(Sketch *sketch, const double *fractions, int n);

/*
 * Sets counts[i] to the number of finite values in bin i of n equal ones between the least and the
 * greatest of them, approximately. Returns false if there is no finite value.
 */
extern bool sketch_bins(Sketch *sketch, int n, int64 *counts);

/* Returns how states of gpu_approx_percentile and its like are made of counts; else NULL. */
extern const AggTally *sketch_tally(const FmgrInfo *transfn);

/* Returns the step that replaces a transition function of sketches, or NULL. */
extern AggStep sketch_step(const FmgrInfo *transfn);

/* Returns the function that replaces such steps of consecutive rows, or NULL. */
extern AggSteps sketch_steps(const FmgrInfo *transfn);

#endif /* GPUAGG_SKETCH_H */
