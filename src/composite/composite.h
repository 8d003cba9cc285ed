/*
 * composite.h
 *	  Opens the engine of a query: a plain one, or one that is composed of several.
 *
 * An engine reduces rows to groups.  Aggregates of DISTINCT values, aggregates with an ORDER BY,
 * ordered-set aggregates and GROUPING SETS need more than that.  A composite engine computes them
 * with the help of other engines.  To its caller it is an engine like any other.
 */
#ifndef GPUAGG_COMPOSITE_H
#define GPUAGG_COMPOSITE_H

#include "postgres.h"

#include "engine.h"

/*
 * Opens an engine for a spec.  Rows of the input are reduced by engines of these ops.  With
 * `choose`, sets of distinct values may have engines of other ops, if these are cheaper.
 */
extern Engine *composite_open(const EngineOps *ops, const AggSpec *spec, const EngineEnv *env,
							  bool choose);

/*
 * Returns the number of engines that would get all rows of the input: 1 for a spec without grouping
 * sets, else one for each grouping set that is not made from the groups of another one.
 */
extern int composite_count_row_engines(const EngineOps *ops, const AggSpec *spec, bool parallel);

/*
 * Returns the number of the grouping set whose groups this set is made from, or -1 if it is made
 * from rows.  The engine's spec has grouping sets.
 */
extern int composite_set_source(const Engine *engine, int set);

#endif /* GPUAGG_COMPOSITE_H */
