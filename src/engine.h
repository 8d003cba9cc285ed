/*
 * engine.h
 *	  What reduces batches to groups.
 *
 * The executor drives an engine:
 *
 *		open
 *		take_resident
 *		{ bind_buffers, add_batch, next_groups until it returns false } for each batch
 *		finish, next_groups until it returns false
 *		close
 *
 * Before finish, next_groups gives only groups that no later row can join
 * (grouped input); engines that cannot know return false.  It also returns false
 * when the engine has failed, and then Engine.failure says why.
 *
 * An engine also says what it can run and what that costs, which decides which
 * one runs a query: engines/engines.c, which has the list of engines.
 *
 * Parallel plans.  Each participant has an engine of its own, which sees the
 * participant's share of the rows.  One of them, at last, must have the groups of
 * all; exec/parallel.c says which.  There are two ways to get there:
 *
 * - Exchange.  A participant whose input ends while others are at work writes its
 *	 groups with export_groups and is done.  The last one reads what the others
 *	 wrote with import_groups before its own finish.  Every engine has these, and
 *	 all write the same form, so that participants may have different engines.  Where there
 *	 are many groups, exports are partitioned by a hash of the keys (GroupSink.group), and
 *	 each participant whose engine has begin_part merges, and returns, the groups of some of the
 * parts.
 *
 * - A shared query.  Engines whose rows are reduced by a server, as a GPU's are, can
 *	 have it keep one table of groups for all participants.  Before its first row each
 *	 engine is given a number by join: those with the same number, and the same spec,
 *	 share a table.  At the end of its rows the caller has the engine flush, after which
 *	 all its rows are at the server, and then detach.  The last one to flush is the
 *	 owner: it has the groups of all engines that have joined, to return or to export,
 *	 and the others have none.  An engine may have kept rows that the server could not
 *	 take.  Then flush says so, and the engine still has the groups of these to export,
 *	 owner or not.  join may refuse, and then the engine's groups are exchanged.
 *
 * Memory: everything is allocated under EngineEnv.cxt.  Errors may skip close, so
 * what the context does not free (files, sockets) is released by a context reset
 * callback.  An engine keeps within mem_limit by spilling.
 */
#ifndef GPUAGG_ENGINE_H
#define GPUAGG_ENGINE_H

#include "postgres.h"

#include "nodes/execnodes.h"

#include "batch.h"
#include "common/compat.h"
#include "spec.h"
#include "strategy.h"

struct Feed;
typedef struct Engine Engine;

typedef enum EngineStatus
{
	ENGINE_OK,
	ENGINE_FAILED /* cannot go on; see Engine.failure */
} EngineStatus;

/* A query as far as the cost of reducing its rows goes. */
typedef struct EngineWork
{
	double rows;
	int values;     /* keys and slots that a row updates */
	int boundaries; /* keys in which rows that arrive grouped are compared */
	int columns;    /* that a row brings */
	Cost fallbacks; /* of a row's calls of transition functions */
	Cost local;     /* of sorting and spilling, which rows in this process need */
} EngineWork;

/*
 * The direct argument of ordered set `set` of the spec in a group of these keys, in the current
 * context.
 */
typedef Datum (*OrderedSetFraction)(void *arg, int set, const Datum *keys, const bool *nulls,
									bool *isnull);

/* How the rows of a query come. */
typedef struct EngineInput
{
	bool grouped;   /* the plan promises: equal keys arrive together; groups are to be returned in
					   that order */
	bool parallel;  /* to several participants: export or import may follow */
	bool read_once; /* made by volatile functions */
} EngineInput;

/* They cannot be read again: no engine can start over. */
static inline bool
engine_input_once(const EngineInput *input)
{
	return input->parallel || input->read_once;
}

/* Are groups returned in the order of their rows?  Those of several participants are hashed. */
static inline bool
engine_keeps_groups(const AggSpec *spec, const EngineInput *input)
{
	return input->grouped && !input->parallel && spec->nkeys > 0;
}

typedef struct EngineEnv
{
	MemoryContext cxt; /* lasts as long as the engine */
	EState *estate;
	size_t mem_limit; /* bytes: work_mem times hash_mem_multiplier */
	size_t mem_least; /* what each part of an engine made of engines may have: work_mem */
	int batch_rows;   /* most rows of one batch */
	double est_rows;
	double est_groups;
	EngineInput input;
	uint64 seed[2];        /* of the hashes of keys in exports, the same in all participants */
	GpuaggStrategy forced; /* gpuagg.strategy */
	bool ranks;            /* of groups that next_groups returns, GroupBatch.ranks does */
	OrderedSetFraction fraction; /* for engines with EngineOps.sets */
	void *fraction_arg;
} EngineEnv;

/* Finished groups, column by column; valid until the next call on the engine. */
typedef struct GroupBatch
{
	int ngroups;
	Datum **keys; /* [key][group] */
	bool **keynulls;
	void **slots;      /* [slot]: ngroups * width states, aligned as they are */
	Datum **fallbacks; /* [fallback aggregate][group]: transition values */
	bool **fallback_nulls;
	int matrix_size; /* of slots of MONOID_MAT2, which only rows can tell */
	int set;         /* of AggSpec.sets; engines leave it 0 */
	bool ranks; /* slots of BIN_HLL have GPUAGG_HLL_RANKS int32 a group: registers of each rank */
} GroupBatch;

/*
 * A key, or the state of a slot, that compares as a value of the query does: as integers, or floats
 * in their total order.
 */
typedef struct EngineValue
{
	int slot;    /* one state a group; of MONOID_ACCUM_F64: its mean.  -1: a key */
	int key;     /* then its number */
	int counted; /* slot of a count: where that is 0, the value is NULL; -1: it never is */
} EngineValue;

/* Values that are NULL, or not min .. max, fail; of floats, codes of these (aggregates/codes.h). */
typedef struct EngineCondition
{
	EngineValue value;
	gpuagg_i128 min, /* ENGINE_NO_MIN: no bound */
		max;
} EngineCondition;

#define ENGINE_NO_MAX ((gpuagg_i128) (~(unsigned __int128) 0 >> 1))
#define ENGINE_NO_MIN (-ENGINE_NO_MAX - 1)
#define ENGINE_MAX_CONDITIONS 4

/* What groups are ordered by. */
typedef struct EngineSort
{
	EngineValue value;
	bool descending;
	bool nulls_first;
} EngineSort;

#define ENGINE_MAX_SORT 4

/*
 * Of all groups the caller needs only those that meet the conditions, and of these only the first
 * `count` in the order of the values, by[0] before by[1] and so on; of groups that have all values
 * alike, any, or with `ties` all that are like the last of the first.
 */
typedef struct EngineLimit
{
	int64 count; /* 0: all that meet the conditions */
	int nsort;
	EngineSort by[ENGINE_MAX_SORT];
	bool ties;
	int nconditions;
	EngineCondition conditions[ENGINE_MAX_CONDITIONS];
} EngineLimit;

/* A byte stream of groups between participants; read returns false at the end. */
typedef struct GroupSink
{
	/*
	 * May be NULL.  Before a group is written: a hash of its keys, which is the same in all
	 * participants.
	 */
	void (*group)(struct GroupSink *sink, uint64 hash);
	void (*write)(struct GroupSink *sink, const void *data, size_t len);
	/*
	 * May be NULL.  With group, once: memory for rows of groups of a fixed size, counts[part] of
	 * them, one part after another, which import_rows gets as they are; NULL: groups are to be
	 * written.
	 */
	char *(*rows)(struct GroupSink *sink, const uint32 *counts, size_t row_size);
	int nparts;     /* with group: a power of 2 */
	int part_shift; /* and 64 less its logarithm */
} GroupSink;

/*
 * The part of a group with this hash of its keys.  Upper bits decide; what a table and partitions
 * of spilled rows make of the hash are others.
 */
static inline uint32
group_part(const GroupSink *sink, uint64 hash)
{
	return (uint32) ((hash * UINT64CONST(0x9e3779b97f4a7c15)) >> sink->part_shift);
}

typedef struct GroupSource
{
	bool (*read)(struct GroupSource *source, void *data, size_t len);
} GroupSource;

/* What an engine did with a device; all zero without one. */
typedef struct DeviceStats
{
	uint64 bytes_to;
	uint64 bytes_from;
	double copy_ms;
	double kernel_ms;
	/*
	 * this process's time, waits among it: to open sessions, prove rows that the device has, ask
	 * for them, finish, fetch
	 */
	double open_ms;
	double proof_ms;
	double resident_ms;
	double finish_ms;
	double fetch_ms;
	double server_ms;         /* the server's, up to the end of finishing */
	uint64 cpu_fallback_rows; /* that were reduced in this process instead */
	uint64 rows_resident; /* of which the device had copies; those that conditions leave out among
							 them */
	uint64 uploaded;      /* bytes of copies that were made */
	size_t memory;
	int retries;
	int devices;     /* that had rows; the most of any participant */
	int64 limit;     /* groups that the device was asked for; 0: it had no limit; */
	int limit_keys;  /* by so many of what they are ordered by, */
	bool limit_ties; /* with those that are like the last one */
} DeviceStats;

/* For EXPLAIN ANALYZE; those of parallel participants are added up. */
typedef struct EngineStats
{
	uint64 rows;
	uint64 batches;
	uint64 groups;   /* known so far; those of other participants may be among them */
	uint64 returned; /* groups of which tuples were made */
	size_t mem_peak;
	uint64 spilled_bytes;
	int spill_partitions;
	int changes;           /* of strategy */
	int parts;             /* of the groups, that participants merged side by side */
	char strategy[256];    /* with parameters and why it was chosen */
	char not_resident[96]; /* why no row was one of which the device had a copy; or empty */
	DeviceStats device;
} EngineStats;

/*
 * Adds what another engine did, all fields of it.  The strategy becomes that of the last one that
 * had rows.  What the engines have in common, as rows that each of them read, is the caller's to
 * set afterwards.  In engine_stats.c.
 */
extern void engine_stats_add(EngineStats *total, const EngineStats *stats);

typedef struct EngineOps
{
	const char *name; /* as in gpuagg.engine */

	/* ---- what it can; known without a query ---- */

	const char *place;   /* where rows are reduced, for EXPLAIN: "the GPU" */
	bool keeps_order;    /* returns the groups of grouped input in their order */
	bool sorts;          /* reduces rows in AggSpec.order itself; else the feed must sort them */
	bool adds_in_order;  /* adds floats in the order of rows, see AggSpec.ordered_floats */
	bool runs_fallbacks; /* runs the transition functions of fallback aggregates */
	/*
	 * Reduces DISTINCT values, and finds those of ordered sets, of specs that refusal() allows,
	 * where it can start over; else engines are put together for these (composite/distinct.c,
	 * composite/ordered_engine.c).
	 */
	bool sets;
	SlotSupport support;

	/*
	 * May be NULL: always available.  Is it available now?  `note` names the device
	 * for EXPLAIN, or says why not.
	 */
	bool (*available)(char *note, size_t note_size);
	/*
	 * May be NULL: none.  Why it cannot run a spec that the above allows over such rows, or NULL if
	 * it can.
	 */
	const char *(*unsupported_reason)(const AggSpec *spec, const EngineInput *input);
	/* In the planner's units, beyond reading the rows. */
	Cost (*cost)(const EngineWork *work);

	/* ---- running a query; see above ---- */

	Engine *(*open)(const AggSpec *spec, const EngineEnv *env);
	/*
	 * May be NULL.  Before the feed fills a batch: points the values of columns
	 * with memory of their own to where the engine wants them written, or back there, or says
	 * which may be narrow.
	 */
	void (*bind_buffers)(Engine *engine, Batch *batch);
	/*
	 * May be NULL.  Before the first batch, in a plan that is not parallel: takes rows of the feed
	 * of which the engine has, or gets itself, copies of the columns; the feed does not deliver
	 * them then (FeedOps.resident).
	 */
	EngineStatus (*take_resident)(Engine *engine, struct Feed *feed);
	/*
	 * May be NULL.  Before the first batch of a run that is not parallel: the engine may leave
	 * other groups out.
	 */
	void (*limit)(Engine *engine, const EngineLimit *limit);
	EngineStatus (*add_batch)(Engine *engine, const Batch *batch);
	EngineStatus (*finish)(Engine *engine);
	bool (*next_groups)(Engine *engine, GroupBatch *out);
	/* The engine has no groups afterwards, and may be reset or closed. */
	EngineStatus (*export_groups)(Engine *engine, GroupSink *sink);
	EngineStatus (*import_groups)(Engine *engine, GroupSource *source);
	/* With begin_part: the same for n rows of an export that used GroupSink.rows. */
	EngineStatus (*import_rows)(Engine *engine, const char *rows, uint32 n);
	/*
	 * May be NULL, where exports have no hashes.  After an export, or after the groups of a part
	 * were returned: empties the engine for the groups of a part, which are imported next;
	 * `groups`: so many at least will be there.
	 */
	void (*begin_part)(Engine *engine, uint32 groups);
	/* Forgets all rows, for a rescan. */
	void (*reset)(Engine *engine);
	void (*stats)(Engine *engine, EngineStats *stats);
	void (*close)(Engine *engine);

	/* ---- a shared query of parallel participants; NULL if there is no such thing ---- */

	/*
	 * Before the first row.  Shares the query of this number with all engines that
	 * join it, and ends a query that was shared before.  False if the engine does
	 * not share this query, or has failed.
	 */
	bool (*join)(Engine *engine, uint64 share);
	/* Moves all rows so far to the shared query; *complete: this engine had to keep none. */
	EngineStatus (*flush)(Engine *engine, bool *complete);
	/* After flush: the owner has the groups of the shared query, others have none of them. */
	void (*detach)(Engine *engine, bool owner);

	/* ---- beside a query; NULL: nothing to be done ---- */

	/* Prints what is this engine's own of the statistics, which may be those of other engines. */
	void (*explain)(const EngineStats *stats, ExplainState *es);
	/*
	 * After a run of the executor: engines of this query give back what others may
	 * need, as a session with a server, unless they are in the middle of their input.
	 * Groups that were not returned yet are kept if in_steps, and forgotten otherwise.
	 */
	void (*release)(EState *estate, bool in_steps);
} EngineOps;

struct Engine
{
	const EngineOps *ops;
	int errors;        /* MonoidError bits so far; the executor raises them */
	char failure[256]; /* why the engine failed; else empty */
	/* after finish, groups that next_groups does not return because of EngineOps.limit: */
	uint64 left_out;
	uint64 failed; /* those of them that fail a condition */
};

#endif /* GPUAGG_ENGINE_H */
