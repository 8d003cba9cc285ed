/*
 * engine.h
 *	  What reduces batches to groups.
 *
 * exec.c drives an engine:
 *
 *		open
 *		{ add_batch, next_groups until it returns false } for each batch
 *		finish, next_groups until it returns false
 *		close
 *
 * Before finish, next_groups gives only groups that no later row can join
 * (grouped input); engines that cannot know return false.  It also returns false
 * when the engine has failed, and then Engine.failure says why.
 *
 * In a parallel plan each participant has an engine.  One that is not the last
 * to finish hands its groups on by export_groups; the last one takes them by
 * import_groups before its own finish.  Engines of several participants may also
 * gather their rows in one place: they join before the first row, hand in
 * after the last, and part; then one of them, the owner, has the groups of all.
 *
 * Memory: everything lives under EngineEnv.cxt; close may be skipped by errors,
 * so what the context does not free (files, sockets) is released by a context
 * reset callback.  Memory beyond mem_limit is the engine's to avoid by
 * spilling.
 */
#ifndef GPUAGG_ENGINE_H
#define GPUAGG_ENGINE_H

#include "postgres.h"

#include "nodes/execnodes.h"

#include "batch.h"
#include "spec.h"
#include "strategy.h"

typedef struct Engine Engine;

typedef enum EngineStatus
{
	ENGINE_OK,
	ENGINE_FAILED				/* cannot go on; see Engine.failure */
} EngineStatus;

typedef struct EngineEnv
{
	MemoryContext cxt;			/* lives as long as the engine */
	EState	   *estate;
	size_t		mem_limit;		/* bytes: work_mem times hash_mem_multiplier */
	int			batch_rows;		/* most rows of one batch */
	double		est_rows;
	double		est_groups;
	bool		grouped;		/* the plan promises: equal keys arrive together */
	bool		parallel;		/* export or import may follow */
	bool		read_once;		/* nobody can start over: the input has volatile functions */
	GpuaggStrategy forced;		/* gpuagg.strategy */
} EngineEnv;

/* Finished groups, column by column; valid until the next call on the engine. */
typedef struct GroupBatch
{
	int			ngroups;
	Datum	  **keys;			/* [key][group] */
	bool	  **keynulls;
	void	  **slots;			/* [slot]: ngroups * width states */
	Datum	  **fallbacks;			/* [own][group]: transition values */
	bool	  **fallback_nulls;
} GroupBatch;

/* A byte stream of groups between participants; read returns false at the end. */
typedef struct GroupSink
{
	void		(*write) (struct GroupSink *sink, const void *data, size_t len);
} GroupSink;

typedef struct GroupSource
{
	bool		(*read) (struct GroupSource *source, void *data, size_t len);
} GroupSource;

/* What EXPLAIN ANALYZE tells. */
typedef struct EngineStats
{
	uint64		rows;
	uint64		batches;
	uint64		groups;			/* known so far; those of other participants may be among them */
	size_t		mem_peak;
	uint64		spilled_bytes;
	int			spill_partitions;
	int			changes;		/* of strategy */
	char		strategy[256];	/* with parameters and the way it came about */

	/* CUDA engine only; zero elsewhere */
	uint64		bytes_to_device;
	uint64		bytes_from_device;
	double		copy_ms;
	uint64		rows_aside;		/* that the CPU reduced beside */
	double		kernel_ms;
	size_t		device_memory;
	int			retries;
} EngineStats;

typedef struct EngineOps
{
	const char *name;			/* as in gpuagg.engine */
	Engine	   *(*open) (const AggSpec *spec, const EngineEnv *env);
	/*
	 * May be NULL.  Before the feed fills a batch: points the values of columns
	 * with memory of their own to where the engine wants them written, or back there.
	 */
	void		(*bind_buffers) (Engine *engine, Batch *batch);
	EngineStatus (*add_batch) (Engine *engine, const Batch *batch);
	EngineStatus (*finish) (Engine *engine);
	bool		(*next_groups) (Engine *engine, GroupBatch *out);
	EngineStatus (*export_groups) (Engine *engine, GroupSink *sink);
	EngineStatus (*import_groups) (Engine *engine, GroupSource *source);
	/*
	 * May be NULL.  Joins the engines that were given the same number; false if
	 * this engine stays by itself, or has failed.  Ends what it had joined before.
	 */
	bool		(*join) (Engine *engine, uint64 share);
	/* All rows so far are where they are gathered; *alone: but for some that stayed here. */
	EngineStatus (*flush) (Engine *engine, bool *alone);
	/* The owner has the groups of all rows that were handed in, others have none of them. */
	void		(*detach) (Engine *engine, bool owner);
	/* Forgets all rows, for a rescan. */
	void		(*reset) (Engine *engine);
	void		(*stats) (Engine *engine, EngineStats *stats);
	void		(*close) (Engine *engine);
} EngineOps;

struct Engine
{
	const EngineOps *ops;
	int			errors;			/* MonoidError bits so far; exec.c raises them */
	char		failure[256];	/* why the engine failed; else empty */
};

extern const EngineOps engine_cpu_ops;

/* The one place that decides which engine runs a query; in gpuagg.c. */
extern const EngineOps *gpuagg_choose_engine(const AggSpec *spec, double rows, bool in_order, char *reason,
											 size_t reason_size);

#endif							/* GPUAGG_ENGINE_H */
