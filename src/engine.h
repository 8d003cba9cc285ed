/*
 * engine.h
 *	  Engines: they reduce batches of rows to groups.
 *
 * The executor calls an engine in this order:
 *
 *		open
 *		take_resident
 *		{ bind_buffers, add_batch, next_groups until it returns false } for each batch
 *		finish, next_groups until it returns false
 *		close
 *
 * Before finish, next_groups returns only groups that no later row can join, as in grouped input.
 * An engine that cannot know this returns false.  next_groups also returns false if the engine has
 * failed; Engine.failure then has the reason.
 *
 * EngineOps also describe which queries an engine can run, and what that costs.  engines/engines.c
 * has the list of engines, and chooses one for each query.
 *
 * Parallel plans.  Each participant has an engine of its own, for its share of the rows.  In the
 * end the groups of all participants must be merged.  exec/parallel.c decides which of two ways
 * to take:
 *
 * - Exchange.  A participant whose input ends while others are active writes its groups with
 *	 export_groups, and is done.  The last one reads these groups with import_groups before its own
 *	 finish.  Every engine has both functions, and all engines write the same format, so that
 *	 participants may have different engines.  If there are many groups, exports are partitioned by
 *	 a hash of the keys (GroupSink.part).  Each participant whose engine has begin_part then merges
 *	 and returns the groups of some partitions.
 *
 * - A shared query.  Engines that send rows to a server can share one table of groups there. Before
 *	 the first row, join gets the number of a query.  Engines that join one number, with the same
 *	 spec, share a table.  At the end of the input the caller calls flush, after which all rows are
 *	 at the server, and then detach.  The last engine to flush becomes the owner: it has the groups
 *	 of all engines that joined, to return or to export; the others have none.  An engine may have
 *	 kept rows that the server could not take.  flush reports this, and the engine then exports the
 *	 groups of these rows, owner or not.  If join returns false, the engine's groups are exchanged.
 *
 * Memory: everything is allocated under EngineEnv.cxt.  An error may skip close, so a context reset
 * callback releases what is not memory (files, sockets).  An engine keeps within mem_limit by
 * spilling.
 */
#ifndef GPUAGG_ENGINE_H
#define GPUAGG_ENGINE_H

#include "postgres.h"

#include "nodes/execnodes.h"
#include "storage/buffile.h"

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

/* The work of reducing a query's rows, from which an engine estimates its cost. */
typedef struct EngineWork
{
	double rows;
	int values;     /* keys and slots that each row updates */
	int boundaries; /* keys that are compared with those of the row before, in grouped input */
	int columns;    /* columns of each row */
	int numbered;   /* keys in parallel plans, distinct values: to be numbered for a device */
	Cost fallbacks; /* cost of the calls of transition functions, for each row */
	Cost local;     /* cost of sorting and spilling all rows, if they are reduced in this process */
	double resident; /* fraction of the rows that an engine can take without reading them */
	double scanned;  /* rows of tables that are read for these, */
	Cost read;       /* and what reading them costs other engines */
	double counted;  /* values of aggregates of counted values, if an engine returns these */
	double returned; /* keys of all groups that are returned */
} EngineWork;

/*
 * Returns the direct argument of ordered set `set` of the spec in a group with these keys, in the
 * current memory context.
 */
typedef Datum (*OrderedSetFraction)(void *arg, int set, const Datum *keys, const bool *nulls,
									bool *isnull);

/* In which order and how often rows reach the engine. */
typedef struct EngineInput
{
	bool grouped;   /* rows with equal keys arrive together, and groups must keep that order */
	bool parallel;  /* several participants have rows: export or import may follow */
	bool read_once; /* volatile functions make the rows */
} EngineInput;

/* True if rows cannot be read again, so that no other engine can start over. */
static inline bool
engine_reads_once(const EngineInput *input)
{
	return input->parallel || input->read_once;
}

/* True if groups must be returned in the order of their rows.  Parallel plans do not keep it. */
static inline bool
engine_returns_in_order(const AggSpec *spec, const EngineInput *input)
{
	return input->grouped && !input->parallel && spec->nkeys > 0;
}

struct GroupSink;

typedef struct EngineEnv
{
	MemoryContext cxt; /* lasts as long as the engine */
	EState *estate;
	size_t mem_limit; /* bytes: work_mem times hash_mem_multiplier */
	size_t mem_least; /* bytes that each part of a composite engine may use: work_mem */
	int batch_rows;   /* most rows of a batch */
	double est_rows;
	double est_groups;
	EngineInput input;
	uint64 seed[2];        /* for the hashes of keys in exports; the same in all participants */
	GpuaggStrategy forced; /* gpuagg.strategy */
	bool ranks;            /* the caller can handle GroupBatch.ranks */
	OrderedSetFraction fraction; /* for engines that compute ordered sets */
	void *fraction_arg;
	/*
	 * In parallel plans: returns a sink for groups that leave the engine before its input ends, or
	 * NULL: none may leave now.  Its `rows` may be called again and again; it has no `write`.
	 * NULL for engines that other engines have opened, except as `exchange` says.
	 */
	struct GroupSink *(*early_sink)(void *arg, int exchange);
	void *early_arg;
	int exchange; /* 0: the groups are the query's; n: those of the n-th set of distinct values */
} EngineEnv;

/* Numbers of a key's values in a dictionary of the engine, as a Column has them. */
typedef struct KeyCodes
{
	uint32 *codes; /* [group]; NULL: there are none */
	uint32 ncodes;
	uint64 dictionary;
} KeyCodes;

/* Finished groups, column by column.  Valid until the next call of the engine. */
typedef struct GroupBatch
{
	int ngroups;
	Datum **keys; /* [key][group] */
	bool **keynulls;
	KeyCodes *key_codes; /* [key]; NULL: no key has codes */
	void **slots;        /* [slot]: ngroups * width states, aligned as the state's type */
	Datum **fallbacks;   /* [fallback aggregate][group]: transition values */
	bool **fallback_nulls;
	int matrix_size; /* rows of the matrices of MONOID_MAT2 slots, known from the data only */
	int set;         /* index in AggSpec.sets; plain engines leave it 0 */
	bool ranks;      /* a BIN_HLL slot has GPUAGG_HLL_RANKS int32 for each group: the number of
						registers with each rank */
} GroupBatch;

/*
 * A value of each group: a key, or a state that compares as a result of the query does.  Values
 * compare as integers, or as floats in their total order.
 */
typedef struct EngineValue
{
	int slot;    /* slot with one state a group (the mean of MONOID_ACCUM_F64), or -1: a key */
	int key;     /* number of the key, if slot is -1 */
	int counted; /* slot of a count; the value is NULL where it is 0.  -1: never NULL */
} EngineValue;

/*
 * A group meets the condition if the value is not NULL and within min .. max.  Bounds of floats are
 * their codes (aggregates/agg_codes.h).
 */
typedef struct EngineCondition
{
	EngineValue value;
	gpuagg_i128 min; /* or ENGINE_NO_MIN */
	gpuagg_i128 max; /* or ENGINE_NO_MAX */
} EngineCondition;

#define ENGINE_NO_MAX ((gpuagg_i128) (~(unsigned __int128) 0 >> 1))
#define ENGINE_NO_MIN (-ENGINE_NO_MAX - 1)
#define ENGINE_MAX_CONDITIONS 4

/* A sort key of groups. */
typedef struct EngineSort
{
	EngineValue value;
	bool descending;
	bool nulls_first;
} EngineSort;

#define ENGINE_MAX_SORT 4

/*
 * Which groups the caller needs: those that meet all conditions, and of these the first `count` in
 * the order of by[0], by[1] and so on.  Groups that compare equal are interchangeable; with `ties`
 * all groups equal to the last one are needed as well.
 */
typedef struct EngineLimit
{
	int64 count; /* 0: all groups that meet the conditions */
	int nsort;
	EngineSort by[ENGINE_MAX_SORT];
	bool ties;
	int nconditions;
	EngineCondition conditions[ENGINE_MAX_CONDITIONS];
} EngineLimit;

/* Where an engine writes its groups, as a byte stream for other participants. */
typedef struct GroupSink
{
	/*
	 * NULL if the export is not partitioned.  The next writes go to this partition (group_part).
	 */
	void (*part)(struct GroupSink *sink, uint32 part);
	void (*write)(struct GroupSink *sink, const void *data, size_t len);
	/*
	 * May be NULL; only with partitions, and called at most once in a section.  Returns memory for
	 * groups as rows: bytes[part] bytes for the counts[part] rows of each partition, one partition
	 * after another, and `common` bytes after the last one.  bytes[part] is a multiple of 64.
	 * import_rows gets the memory as it is, at an address of its own.  Returns NULL if the groups
	 * must be written instead.
	 */
	char *(*rows)(struct GroupSink *sink, const uint32 *counts, const size_t *bytes, size_t common);
	/* With `part`: ends a section of the export, and begins the next one. */
	void (*next_section)(struct GroupSink *sink);
	/*
	 * May be NULL; a composite engine sets it for an inner one.  Called with all groups, before
	 * they are written: transition values of type internal are in memory.
	 */
	void (*groups)(void *arg, const GroupBatch *groups);
	void *groups_arg;
	int nparts;      /* number of partitions, a power of 2; 0: the export is not partitioned */
	int part_shift;  /* 64 - log2(nparts) */
	size_t bytes;    /* that `rows` has returned so far */
	size_t expected; /* bytes that the engine expects an early sink to return in all */
} GroupSink;

/*
 * Returns the partition of a group with this hash of its keys.  The upper bits of a product decide:
 * hash tables and partitions of spilled rows use other bits.
 */
static inline uint32
group_part(const GroupSink *sink, uint64 hash)
{
	return (uint32) ((hash * UINT64CONST(0x9e3779b97f4a7c15)) >> sink->part_shift);
}

/* Where an engine reads groups that a GroupSink got; read returns false at the end. */
typedef struct GroupSource
{
	bool (*read)(struct GroupSource *source, void *data, size_t len);
	/*
	 * May be NULL. Skips len bytes, and returns the file that has them, with their place. A reader
	 * that will read them later sets `taken` to it, and has to close it.
	 */
	BufFile *(*skip)(struct GroupSource *source, size_t len, int *fileno, off_t *offset);
	BufFile *taken;
	int section; /* number of the section in a partitioned export (EngineOps.sections) */
} GroupSource;

/* Statistics of an engine's work on a device; all zero without one. */
typedef struct DeviceStats
{
	uint64 bytes_to;
	uint64 bytes_from;
	double copy_ms;
	double kernel_ms;
	/* Time of this process, including waits. */
	double open_ms;     /* opening sessions */
	double proof_ms;    /* proving that rows cached on the device are current */
	double resident_ms; /* requests to reduce cached rows */
	double finish_ms;
	double fetch_ms;
	double server_ms; /* time of the server, from the opening of the query to the end of finish */
	uint64 cpu_fallback_rows; /* rows that the CPU fallback reduced */
	uint64 rows_resident;     /* rows cached on the device, including those that WHERE rejects */
	int passes;               /* over these; the maximum of all participants and tables */
	uint64 uploaded;          /* bytes of columns that were copied to the device's cache */
	uint64 cells_sent;        /* bytes of tables of expressions that were copied to the device, */
	uint64 cells_kept;        /* and of those that it had */
	size_t memory;
	int retries;
	int devices;     /* devices that had rows; the maximum of all participants */
	int64 limit;     /* groups that the device was asked for; 0: no limit */
	int limit_keys;  /* sort keys of that limit */
	bool limit_ties; /* the limit includes ties */
} DeviceStats;

/* Statistics for EXPLAIN ANALYZE; those of parallel participants are added up. */
typedef struct EngineStats
{
	uint64 rows;
	uint64 batches;
	uint64 groups;   /* known so far; may include groups that other participants have, too */
	uint64 returned; /* groups of which tuples were made */
	size_t mem_peak;
	uint64 spilled_bytes;
	int spill_partitions;
	uint64 values;         /* values of ordered sets, which participants exchange with the groups */
	int changes;           /* changes of the strategy */
	uint64 early;          /* groups that left an engine before its input ended (early_sink) */
	int parts;             /* partitions of groups that participants merged */
	char strategy[256];    /* with parameters and the reason for the choice */
	char not_resident[96]; /* why no row came from the device's cache; empty if some did */
	DeviceStats device;
} EngineStats;

/*
 * Adds all fields of another engine's statistics.  The strategy becomes that of the last engine
 * that had rows.  The caller then sets what the engines have in common, such as rows that each of
 * them read.  In engine_stats.c.
 */
extern void engine_stats_add(EngineStats *total, const EngineStats *stats);

/*
 * Most row sets of which participants exchange distinct values.  For each set, each participant
 * has a segment of dynamic shared memory, of which a server has a limited number, or many files.
 */
#define ENGINE_MAX_VALUE_SETS 32

/*
 * Most sections of a partitioned export (EngineOps.sections), for the same reason.  An engine that
 * would need more has no begin_part.
 */
#define ENGINE_MAX_SECTIONS 32

typedef struct EngineOps
{
	const char *name; /* as in gpuagg.engine */

	/* ---- capabilities, known without a query ---- */

	const char *place;   /* where rows are reduced, for EXPLAIN: "the GPU" */
	bool keeps_order;    /* returns groups of grouped input in their order */
	bool sorts;          /* sorts rows by AggSpec.order; otherwise the feed must sort them */
	bool adds_in_order;  /* adds floats in the order of rows, see AggSpec.ordered_floats */
	bool runs_fallbacks; /* calls the transition functions of fallback aggregates */
	/*
	 * Computes DISTINCT aggregates and ordered sets itself, if unsupported_reason() allows the
	 * spec, and if rows can be read again.  Otherwise composite engines do that (composite/).
	 * Under the same conditions it computes the fallback aggregates with FallbackAgg.top_n, which
	 * are otherwise fallback aggregates like others, and with SlotSupport.tallies those with
	 * FallbackAgg.tally.
	 */
	bool runs_sets;
	SlotSupport support;

	/*
	 * Returns whether the engine is available now.  NULL: it always is.  `note` gets the name of
	 * the device for EXPLAIN, or the reason why the engine is not available.
	 */
	bool (*available)(char *note, size_t note_size);
	/*
	 * Returns why the engine cannot run a spec over such rows, or NULL if it can.  Called for specs
	 * that the capabilities above allow.  May be NULL: it can run all of them.
	 */
	const char *(*unsupported_reason)(const AggSpec *spec, const EngineInput *input);
	/* Returns the cost of reducing the rows, without reading them, in the planner's units. */
	Cost (*cost)(const EngineWork *work);

	/* ---- running a query; see above ---- */

	/* On failure Engine.failure is set. */
	Engine *(*open)(const AggSpec *spec, const EngineEnv *env);
	/*
	 * May be NULL.  Called before the feed fills a batch.  Points the values of columns with memory
	 * of their own to the engine's buffers, or back to that memory, and sets Column.takes_narrow.
	 */
	void (*bind_buffers)(Engine *engine, Batch *batch);
	/*
	 * May be NULL.  Called before the first batch, in plans that are not parallel.  The engine
	 * reduces rows of which its device has cached columns, or caches them first.  The feed does not
	 * deliver these rows (FeedOps.resident).
	 */
	EngineStatus (*take_resident)(Engine *engine, struct Feed *feed);
	/*
	 * May be NULL.  Called before the first batch, in plans that are not parallel.  The engine may
	 * omit groups that the limit does not need.
	 */
	void (*limit)(Engine *engine, const EngineLimit *limit);
	EngineStatus (*add_batch)(Engine *engine, const Batch *batch);
	EngineStatus (*finish)(Engine *engine);
	bool (*next_groups)(Engine *engine, GroupBatch *out);
	/* Afterwards the engine has no groups, and may be reset or closed. */
	EngineStatus (*export_groups)(Engine *engine, GroupSink *sink);
	EngineStatus (*import_groups)(Engine *engine, GroupSource *source);
	/*
	 * With begin_part: imports n rows of a section that used GroupSink.rows.  `rows` is the memory
	 * of one partition.  It stays in place until the next call of begin_part or reset.
	 */
	EngineStatus (*import_rows)(Engine *engine, int section, const char *rows, uint32 n);
	/*
	 * Returns the number of sections of a partitioned export: parts of different kinds, which are
	 * imported one after the other.  It is the same in all participants.  NULL: there is one.
	 */
	int (*sections)(const Engine *engine);
	/*
	 * NULL if exports have no hashes.  Called after an export, and after the groups of a partition
	 * were returned.  Empties the engine before the groups of the next partition are imported;
	 * `groups` is the least number of them.
	 */
	void (*begin_part)(Engine *engine, uint32 groups);

	/*
	 * ---- distinct values of parallel participants; NULL if the engine has none, if they must be
	 * merged together with the groups, or if there are more than ENGINE_MAX_VALUE_SETS row sets
	 * ----
	 */

	/*
	 * Returns the engine whose groups are the distinct values of row set `set`, or NULL if there
	 * are fewer sets.
	 */
	Engine *(*distinct_values)(Engine *engine, int set);
	/*
	 * Called when that engine has the values of a partition, of all participants.  Adds them to the
	 * groups of the query, and empties that engine.
	 */
	EngineStatus (*add_distinct_values)(Engine *engine, int set);
	/*
	 * Called after the last partition.  From now on, until the next reset, the engine exports and
	 * imports groups of the query only, and may have begin_part.
	 */
	void (*end_distinct_values)(Engine *engine);

	/* ---- the end ---- */

	/* Forgets all rows, for a rescan. */
	void (*reset)(Engine *engine);
	void (*stats)(Engine *engine, EngineStats *stats);
	void (*close)(Engine *engine);

	/* ---- a shared query of parallel participants; NULL if the engine has none ---- */

	/*
	 * Called before the first row.  Joins the query with this number, and leaves a query that was
	 * joined before.  Returns false if the engine does not share this query, or has failed.
	 */
	bool (*join)(Engine *engine, uint64 share);
	/* Moves all rows so far to the shared query; *complete: the engine kept none of them. */
	EngineStatus (*flush)(Engine *engine, bool *complete);
	/* Called after flush: the owner has the groups of the shared query, other engines have none. */
	void (*detach)(Engine *engine, bool owner);

	/* ---- without an open engine; each may be NULL ---- */

	/* Prints this engine's own statistics.  They are empty if another engine ran the query. */
	void (*explain)(const EngineStats *stats, ExplainState *es);
	/*
	 * Called after a run of the executor.  Engines of this query release what other queries may
	 * need, such as a session with a server, unless they are in the middle of their input.  Groups
	 * that were not returned yet are kept if in_steps, and dropped otherwise.
	 */
	void (*release)(EState *estate, bool in_steps);
} EngineOps;

struct Engine
{
	const EngineOps *ops;
	int errors;        /* MonoidError bits so far; the executor raises them */
	char failure[256]; /* why the engine failed; empty if it did not */
	/* After finish: groups that next_groups does not return because of EngineOps.limit. */
	uint64 left_out;
	uint64 failed; /* groups among them that fail a condition */
};

#endif /* GPUAGG_ENGINE_H */
