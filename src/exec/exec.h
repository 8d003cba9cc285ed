/*
 * exec.h
 *	  The state of the custom scan, and what its files call of each other.
 *
 * exec.c		the callbacks of the scan; they use all other files
 * open.c		opens spec, engine and feed
 * parallel.c	participants of a parallel plan
 * parallel_groups.c	moves groups between participants
 * early_groups.c	groups that leave an engine before its input ends
 * part_sink.c	what a participant writes of its groups by partition
 * shared_rows.c	groups of participants in shared memory
 * group_filter.c	leaves out groups that HAVING or LIMIT drops
 * tuples.c		makes tuples of groups
 * kept.c		keeps tuples for rescans
 * explain.c	prints EXPLAIN's lines
 * count.c		counts runs for gpuagg_stats
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

typedef enum ScanPhase
{
	SCAN_OFFER,  /* before the first row: the engine may take rows that its device has cached */
	SCAN_READ,   /* batches go from the feed to the engine */
	SCAN_MERGE,  /* a participant merges and returns partitions: see parallel_next_part() */
	SCAN_RETURN, /* the engine is finished, and returns its groups */
	SCAN_SILENT  /* another participant returns the groups */
} ScanPhase;

/* The progress of one scan; a rescan begins with a new one. */
typedef struct ScanRun
{
	ScanPhase phase;
	int nchosen;       /* groups of state->groups that are to be returned */
	const int *chosen; /* their indexes; NULL: all */
	int next_group;    /* next one of these */
	uint64 ntuples;    /* groups of which tuples were made */
	uint64
		emitted; /* groups that the engine returned; if there are any, no engine can start over */

	/* In a parallel plan. */
	int participant;  /* number, or -1: not attached */
	bool joined;      /* the engine shares a query with other participants */
	int attach_phase; /* phase of the barrier when this process attached; > 0: it has no rows */
	bool values_exchanged; /* distinct values of all participants have been merged */
	/* what this participant has decided before the end of its input: */
	bool parted_early;        /* partitions of groups are merged */
	bool values_parted_early; /* partitions of distinct values are merged */
	int parts;                /* partitions that this process has merged */
	int part;                 /* the partition of groups that the engine has, or -1 */
} ScanRun;

typedef struct GpuAggState
{
	CustomScanState css; /* must be first */
	GpuAggPlan *plan;
	PlanState *child;
	ExprState *limit_exprs[2]; /* LIMIT and OFFSET, with plan->nlimit or first_groups */
	ExprState **directs;       /* [agg] direct argument of an ordered-set aggregate, or NULL */
	ExprSubplans subplans;     /* subplans in the child's expressions, for all rescans */
	Bitmapset *expr_params;    /* parameters in custom_exprs */
	MemoryContext row_cxt;     /* a row for the feed of another scan, or NULL */
	struct Kept *kept;         /* groups for rescans; NULL: never kept */

	/* Opened for the first tuple, in cxt; NULL before. */
	MemoryContext cxt;
	AggSpec *spec;
	AggOutput **outputs;   /* [agg] */
	ExprState **fractions; /* [ordered set of the spec] its direct argument, or NULL */
	Feed *feed;
	Engine *engine;
	struct EarlySink *early;    /* [exchange] where groups leave early (early_groups.c), or NULL */
	struct GroupFilter *filter; /* NULL: all groups may be returned */
	struct Tuples *tuples;
	const EngineOps *preferred; /* the engine that was chosen; it may have failed since */
	char engine_reason[160];

	/* Progress. */
	struct Progress *progress; /* entry of the whole query in gpuagg_progress */
	ScanRun run;
	GroupBatch groups; /* groups that are being returned */

	/* For gpuagg_stats. */
	uint64 rescans;
	uint64 counted;     /* groups of earlier scans */
	instr_time elapsed; /* time spent until groups were there */

	/* In a parallel plan. */
	GpuAggShared *shared;      /* NULL: there are no other participants */
	FeedShared *shared_feed;   /* what they share about the feed; NULL as `shared` */
	FeedShared *feed_choices;  /* the leader's, of the first scan */
	const SlotSupport *agreed; /* what the specs of all participants are built for, or NULL */
	uint64 seed[2];            /* random, the same in all participants */
	struct MappedRows *mapped; /* groups of participants in shared memory */
	bool have_stats;           /* the following members are set: participants have shut down */
	bool uncounted;            /* gpuagg_stats does not have these statistics yet */
	FeedStats feed_stats;      /* totals of all participants */
	EngineStats stats;         /* totals of all participants */
	int participants;
} GpuAggState;

/* Registers the custom scan; called by _PG_init. */
extern void exec_register(void);

/* open.c */

/*
 * Returns the engine for state->spec, or without a spec the one that a common query would get.
 * `reason` is as in engines_choose().
 */
extern const EngineOps *exec_choose_engine(const GpuAggState *state, char *reason,
										   size_t reason_size);
/* Returns the engine that the query will get, for EXPLAIN, before the engine is open. */
extern const EngineOps *exec_planned_engine(GpuAggState *state, char *reason, size_t reason_size);
/* Returns the support of the open engine, or of the one that this process would choose now. */
extern SlotSupport exec_slot_support(GpuAggState *state);
/* Opens spec and engine in the current context.  With ops NULL the engine is chosen. */
extern void exec_open_engine(GpuAggState *state, const EngineOps *ops);
/* Opens the feed for the open spec and engine, in the current context. */
extern void exec_open_feed(GpuAggState *state);
/* Returns why the feed takes tuples from the child plan, or NULL if it reads heap pages. */
extern const char *exec_tuples_reason(GpuAggState *state);
/* Sets *stats to the statistics of this process's engine; false if it has none. */
extern bool exec_stats(GpuAggState *state, EngineStats *stats);

/* EstimateDSMCustomScan: returns the bytes of shared memory that a parallel scan needs. */
extern Size parallel_estimate(CustomScanState *node, ParallelContext *pcxt);
/* InitializeDSMCustomScan: sets up the shared memory, in the leader. */
extern void parallel_initialize(CustomScanState *node, ParallelContext *pcxt, void *coordinate);
/* ReInitializeDSMCustomScan: prepares a rescan, in the leader. */
extern void parallel_reinitialize(CustomScanState *node, ParallelContext *pcxt, void *coordinate);
/* InitializeWorkerCustomScan: finds the shared memory, in a worker. */
extern void parallel_initialize_worker(CustomScanState *node, shm_toc *toc, void *coordinate);
/*
 * ShutdownCustomScan: adds this process's statistics to the totals, and releases the shared memory.
 */
extern void parallel_shutdown(CustomScanState *node);
/* Attaches this process before its first row; false if its engine failed. */
extern bool parallel_attach(GpuAggState *state);
/*
 * EngineEnv.early_sink: lets groups of this participant leave its engine before the end of its
 * input.  From then on all participants merge partitions of the exchange.  `arg`: the GpuAggState.
 */
extern struct GroupSink *parallel_early_sink(void *arg, int exchange);
/*
 * Ends the input of this process.  Sets the phase to SCAN_SILENT or SCAN_MERGE, or leaves it: then
 * the engine has the groups of all participants, and must be finished.
 */
extern EngineStatus parallel_end_of_input(GpuAggState *state);
/*
 * In SCAN_MERGE, after the engine has returned all of its groups: gives it the groups of the next
 * partition, and finishes it.  *more becomes false if there is no partition left.
 */
extern EngineStatus parallel_next_part(GpuAggState *state, bool *more);

/* Adds the statistics of one feed to the totals. */
extern void feed_stats_add(FeedStats *total, const FeedStats *stats);

/* count.c: counts a run of this process, or of a parallel plan, for gpuagg_stats. */
extern void count_run(GpuAggState *state);

/* ExplainCustomScan: prints the properties of the scan. */
extern void explain_scan(CustomScanState *node, List *ancestors, ExplainState *es);

#endif /* GPUAGG_EXEC_H */
