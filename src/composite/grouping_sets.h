/*
 * grouping_sets.h
 *	  GROUPING SETS, ROLLUP and CUBE.
 */
#ifndef GPUAGG_GROUPING_SETS_H
#define GPUAGG_GROUPING_SETS_H

#include "postgres.h"

#include "composite/base.h"

/*
 * Opens an engine for a spec with grouping sets.  `open` opens the engines of the sets, with these
 * ops where they get rows.
 */
extern Engine *grouping_sets_open(const EngineOps *ops, const AggSpec *spec, const EngineEnv *env,
								  OpenEngine open);

/* Returns what composite_count_row_engines() does (composite.h). */
extern int grouping_sets_count_row_engines(const EngineOps *ops, const AggSpec *spec,
										   bool parallel);
/* Returns what composite_set_source() does (composite.h). */
extern int grouping_sets_source(const Engine *engine, int set);

#endif /* GPUAGG_GROUPING_SETS_H */
