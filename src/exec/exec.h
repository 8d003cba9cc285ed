/*
 * exec.h
 *	  Execution state of the custom scan, shared by exec.c, parallel.c and
 *	  explain.c.
 */
#ifndef GPUAGG_EXEC_H
#define GPUAGG_EXEC_H

#include "postgres.h"

#include "access/parallel.h"
#include "nodes/execnodes.h"
#include "nodes/extensible.h"

#include "aggregates/aggmap.h"
#include "common/compat.h"
#include "engine.h"
#include "expr/expr.h"
#include "feed.h"
#include "plan/plan.h"

typedef struct GpuAggShared GpuAggShared;

typedef struct GpuAggState
{
	CustomScanState css;		/* must be first */
	GpuAggPlan *plan;
	PlanState  *child;
	ExprSubplans subplans;		/* of the child's expressions, for all rescans */

	/* Set up when the first tuple is asked for, in cxt. */
	MemoryContext cxt;
	AggSpec    *spec;
	AggOutput **outputs;		/* [agg] */
	Feed	   *feed;
	Engine	   *engine;
	char		engine_reason[160];

	/* Progress. */
	GroupBatch	groups;			/* groups being emitted */
	int			next_group;
	bool		finished;		/* all input is reduced */
	bool		silent;			/* another participant emits the groups */
	uint64		emitted;		/* groups that have left: no way back */

	/* In a parallel plan. */
	GpuAggShared *shared;		/* or NULL: all alone */
	int			participant;	/* number, or -1: not attached */
	bool		joined;			/* the engine gathers its rows with those of others */
	bool		have_stats;
	EngineStats stats;			/* of all participants, once they have shut down */
	int			participants;
} GpuAggState;

extern void exec_register(void);

/* NULL where the feed is heap pages, else why it is tuples. */
extern const char *exec_tuples_reason(GpuAggState *state);

/* Will this process run the query on the GPU, as things are?  For parallel.c. */
extern bool exec_chooses_gpu(GpuAggState *state);

/* Statistics of this process's engine; false if it has none. */
extern bool exec_stats(GpuAggState *state, EngineStats *stats);

/* parallel.c */
extern Size parallel_estimate(CustomScanState *node, ParallelContext *pcxt);
extern void parallel_initialize(CustomScanState *node, ParallelContext *pcxt, void *coordinate);
extern void parallel_reinitialize(CustomScanState *node, ParallelContext *pcxt,
								  void *coordinate);
extern void parallel_initialize_worker(CustomScanState *node, shm_toc *toc, void *coordinate);
extern void parallel_shutdown(CustomScanState *node);
extern bool parallel_for_gpu(const GpuAggState *state);
extern bool parallel_attach(GpuAggState *state);
extern EngineStatus parallel_end_of_input(GpuAggState *state);

/* explain.c */
extern void explain_scan(CustomScanState *node, List *ancestors, ExplainState *es);

#endif							/* GPUAGG_EXEC_H */
