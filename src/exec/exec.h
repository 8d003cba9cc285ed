/*
 * exec.h
 *	  Execution state of the custom scan, and what its files have for each other.
 *
 * open.c		opens spec, engine and feed
 * shared_rows.c	rows of groups between participants, in shared memory
 * parallel.c	participants of a parallel plan
 * returned.c	which groups become tuples
 * tuples.c		makes the tuples
 * kept.c		keeps them for rescans
 * explain.c	what EXPLAIN prints
 * count.c		what gpuagg_stats counts
 * exec.c		the callbacks, which use all of these
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
#include "engines/engines.h"
#include "expr/expr.h"
#include "feed.h"
#include "plan/plan.h"

typedef struct GpuAggShared GpuAggShared;

typedef struct GpuAggState
{
	CustomScanState css; /* must be first */
	GpuAggPlan *plan;
	PlanState *child;
	ExprState *limit_exprs[2]; /* LIMIT and OFFSET, with plan->nlimit or first_groups */
	ExprState **directs;       /* [agg] the direct argument of an ordered-set aggregate, or NULL */
	ExprSubplans subplans;     /* of the child's expressions, for all rescans */
	Bitmapset *expr_params;    /* of custom_exprs */
	struct Kept *kept;         /* groups for rescans; NULL: never */

	/* Opened for the first tuple, in cxt. */
	MemoryContext cxt;
	AggSpec *spec;
	AggOutput **outputs;   /* [agg] */
	ExprState **fractions; /* [ordered set of the spec]: its direct argument, or NULL */
	Feed *feed;
	Engine *engine;
	struct Returned *returned; /* which groups may be returned; NULL: all */
	struct Tuples *tuples;
	const EngineOps *preferred; /* the engine that was chosen, which may have failed since */
	char engine_reason[160];

	/* Progress. */
	struct Progress *progress; /* for gpuagg_progress; of the whole query */
	GroupBatch groups;         /* groups being emitted */
	const int *chosen;         /* of these; NULL: all */
	int nchosen;
	int next_group;
	bool begun;     /* the engine has been offered resident rows */
	bool finished;  /* all input is reduced */
	bool silent;    /* another participant returns the groups */
	uint64 ntuples; /* groups of which tuples were made */
	uint64 emitted; /* groups returned: if any, no engine can start over */

	/* For gpuagg_stats. */
	uint64 rescans;
	uint64 counted;     /* groups returned before rescans */
	instr_time elapsed; /* until groups were there */

	/* In a parallel plan. */
	GpuAggShared *shared;      /* or NULL: there are no participants */
	const SlotSupport *agreed; /* what the specs of all participants are built for; or NULL */
	uint64 seed[2];            /* random, and the same in all participants */
	int participant;           /* number, or -1: not attached */
	bool joined;               /* the engine shares a query with others */
	bool late;                 /* attached when others were merging parts already */
	bool merging;              /* parts of the groups: see parallel_next_part() */
	struct MappedRows *mapped; /* groups of participants in shared memory */
	int parts;                 /* that this process has merged */
	bool have_stats;
	bool uncounted;       /* with have_stats: gpuagg_stats does not have them yet */
	FeedStats feed_stats; /* with have_stats: of all participants */
	EngineStats stats;    /* of all participants, once they have shut down */
	int participants;
} GpuAggState;

/* exec.c */
extern void exec_register(void);

/* open.c */

/*
 * The engine for state->spec, or without one that a common query would get; `reason` as in
 * engines_choose().
 */
extern const EngineOps *exec_choose_engine(const GpuAggState *state, char *reason,
										   size_t reason_size);
/* Before the engine is open: the one that the query will get, for EXPLAIN. */
extern const EngineOps *exec_planned_engine(GpuAggState *state, char *reason, size_t reason_size);
/* The support of the engine that is open, or that this process would choose now. */
extern SlotSupport exec_slot_support(GpuAggState *state);
/* Both allocate in the current context.  With ops NULL the engine is chosen. */
extern void exec_open_engine(GpuAggState *state, const EngineOps *ops);
extern void exec_open_feed(GpuAggState *state);
/* NULL where the feed is heap pages, else why it is tuples. */
extern const char *exec_tuples_reason(GpuAggState *state);
/* Statistics of this process's engine; false if it has none. */
extern bool exec_stats(GpuAggState *state, EngineStats *stats);

/* parallel.c */
extern Size parallel_estimate(CustomScanState *node, ParallelContext *pcxt);
extern void parallel_initialize(CustomScanState *node, ParallelContext *pcxt, void *coordinate);
extern void parallel_reinitialize(CustomScanState *node, ParallelContext *pcxt, void *coordinate);
extern void parallel_initialize_worker(CustomScanState *node, shm_toc *toc, void *coordinate);
extern void parallel_shutdown(CustomScanState *node);
/* Before the first row of this process; false if its engine failed. */
extern bool parallel_attach(GpuAggState *state);
/*
 * After the last row.  Sets state->silent if another participant returns the groups;
 * otherwise the engine has all of them, and is to be finished.
 */
extern EngineStatus parallel_end_of_input(GpuAggState *state);
/*
 * With state->merging, when the engine has returned all of its groups: gives it those of the next
 * part. *more becomes false if there is no part left.
 */
extern EngineStatus parallel_next_part(GpuAggState *state, bool *more);

/* count.c: counts a run of this process, or of a parallel plan, for gpuagg_stats. */
extern void count_run(GpuAggState *state);

/* explain.c */
extern void explain_scan(CustomScanState *node, List *ancestors, ExplainState *es);

#endif /* GPUAGG_EXEC_H */
