/*
 * engine_cpu_internal.h
 *	  What the files of the CPU engine share.
 *
 *	engine_cpu.c	the vtable of engine.h: life, order of steps, statistics
 *	early.c			groups that leave the table of a participant before the end of its input
 *	merge.c			combines groups of other participants, or of files, with the table's
 *	exchange_values.c	exchanges rows with values of Datum keys
 *	exchange.c		exchanges rows of the table between participants of a parallel plan
 *	absorb.c		adds rows to the table: memory, strategies, partitions
 *	emit.c			turns groups of the table into arrays and records
 *	slots.c			slots: selections, input columns, bins
 *	loops.c			the loops over the monoid list
 *	fallback.c		fallback aggregates, which run their own transition functions
 *	exact_sums.c	exact aggregates of floats, for fallback.c
 *	exact_grid.c	columns of doubles as integers, for exact_sums.c
 *	top_entries.c	the n best values of groups, for fallback.c
 *
 * Each file calls only those below it in this list.
 */
#ifndef GPUAGG_ENGINE_CPU_INTERNAL_H
#define GPUAGG_ENGINE_CPU_INTERNAL_H

#include "postgres.h"

#include "lib/stringinfo.h"

#include "engine.h"
#include "groups/bits.h"
#include "groups/table.h"
#include "groups/record.h"
#include "groups/spill.h"

/* ---- loops -------------------------------------------------------------- */

/* Input types of the monoids. */
typedef enum InputKind
{
	INPUT_int8_t,
	INPUT_int32_t,
	INPUT_int64_t,
	INPUT_float,
	INPUT_double,
	INPUT_gpuagg_i128,
	INPUT_gpuagg_f64x2,
	INPUT_gpuagg_kv,
	INPUT_gpuagg_mat2,
	INPUT_gpuagg_mat3,
	INPUT_gpuagg_mat4,
	INPUT_gpuagg_mat5
} InputKind;

extern const InputKind monoid_input_kind[MONOID_COUNT_OF_IDS];

/*
 * Steps the state at base + 4 * at[i] by input[i], for i < n. Returns error bits. Inputs have the
 * monoid's input type; MONOID_COUNT does not read them.
 */
extern int loop_rows(MonoidId id, char *base, const uint32 *at, const void *input, int n);

/*
 * Steps the state at base + 4 * at[r] by the inputs start[r] .. start[r + 1] - 1, for r < nruns: a
 * run of rows of one group. Skips runs whose at[r] is NO_GROUP. Returns error bits.
 */
extern int loop_runs(MonoidId id, char *base, const uint32 *at, const uint32 *start, int nruns,
					 const void *input);

/*
 * Returns whether n doubles are all overflow-safe: finite, with absolute values below about 2^257.
 * The sum of the squares of such values does not overflow, however many rows there are. And what
 * they add to a sum that is about to overflow is less than its last digit.
 */
extern bool loop_all_overflow_safe(const double *x, int n);

/*
 * MONOID_ACCUM_F64 for overflow-safe values: adds up values, and counts rows if `count`, but leaves
 * the sums of squares as they are. `counts`: states of MONOID_COUNT in the same table rows, which
 * are stepped as well; or NULL.
 */
extern void loop_mean_rows(char *base, const uint32 *at, const double *x, int n, bool count,
						   char *counts);
extern void loop_mean_runs(char *base, const uint32 *at, const uint32 *start, int nruns,
						   const double *x, bool count);

/*
 * Narrow input: integers narrower than the monoid's input, which sums read as they are. A value is
 * base plus an array element.
 */
#define NARROW_TYPES(X) X(uint8) X(uint16) X(uint32) X(int16) X(int32)

typedef enum NarrowType
{
#define X(value_t) NARROW_##value_t,
	NARROW_TYPES(X)
#undef X
		NARROW_COUNT
} NarrowType;

typedef struct NarrowInput
{
	NarrowType type;
	const void *values;
	int64 base;
} NarrowInput;

/*
 * loop_takes_narrow returns whether the monoid has loops over narrow input; these are like
 * loop_rows and loop_runs. `counts` is as in loop_mean_rows.
 */
extern bool loop_takes_narrow(MonoidId id);
extern int loop_narrow_rows(MonoidId id, char *base, const uint32 *at, const NarrowInput *input,
							int n, char *counts);
extern int loop_narrow_runs(MonoidId id, char *base, const uint32 *at, const uint32 *start,
							int nruns, const NarrowInput *input);

/* loop_runs of MONOID_SUM_F64, without testing for errors in each row. */
extern int loop_sum_runs(char *base, const uint32 *at, const uint32 *start, int nruns,
						 const double *x);

/* Combines n states: to[i] = combine(to[i], from[i]). */
extern int loop_combine(MonoidId id, char *to, const char *from, int n);

/*
 * Combines the state at base + 4 * at[i] with the one at from + stride * i, for i < n, unless at[i]
 * is NO_GROUP.
 */
extern int loop_combine_rows(MonoidId id, char *base, const uint32 *at, const char *from,
							 size_t stride, int n);

/* ---- slots -------------------------------------------------------------- */

typedef struct SlotWork SlotWork;

extern SlotWork *slots_create(const AggSpec *spec, int batch_rows);

/*
 * Returns whether the values of a column may be narrow: only sums with narrow loops, counts and
 * keys read it.
 */
extern bool slots_take_narrow(const AggSpec *spec, int c);

/* Reduces a batch whose rows are located in *table; returns error bits. */
extern int slots_reduce(SlotWork *work, GroupTable *table, const Batch *batch);

/*
 * Completes the states of all groups, and keeps them complete from now on. To be called before
 * states of another table are combined with the states of this one.
 */
extern void slots_combine(SlotWork *work, GroupTable *table);

/*
 * Completes the states of the groups from .. end - 1, before they are read. Until then, some counts
 * and upper halves of sums are not in the table; see slots.c.
 */
extern void slots_complete(const SlotWork *work, const GroupTable *table, uint32 from, uint32 end);

/* Allows incomplete states again; to be called when the table has been emptied. */
extern void slots_reset(SlotWork *work);

/* ---- fallback aggregates ------------------------------------------------- */

typedef struct FallbackWork FallbackWork;

extern FallbackWork *fallbacks_create(const AggSpec *spec, MemoryContext cxt, size_t mem_limit,
									  int batch_rows);
/* Sets the initial states of a new table row; a callback for GroupTable.init_row. */
extern void fallbacks_init_row(void *arg, char *row);
/*
 * Advances the states of the rows' groups. The first `known` groups existed before these rows were
 * located. Stops before the first row of a new group once states hold more than `limit` bytes, but
 * never before the table's first group. Returns how many rows it has processed.
 */
extern int fallbacks_advance(FallbackWork *work, GroupTable *table, const Batch *batch,
							 uint32 known, size_t limit);
/*
 * Returns the states of fallback aggregate o in the groups from .. from + n - 1.  They are valid
 * until the next call for o, and as long as their groups get no rows.
 */
extern void fallbacks_read(FallbackWork *work, int o, GroupTable *table, uint32 from, int n,
						   Datum *values, bool *isnull);
/* Combines a fallback aggregate's state in the table row at an offset with another state of it. */
extern void fallbacks_combine(FallbackWork *work, GroupTable *table, uint32 at, int fallback,
							  Datum value, bool isnull);
/*
 * Convert a state of type internal to bytes, and back. Both may return temporary memory, which
 * fallbacks_end_temp frees.
 */
extern Datum fallbacks_serialize(FallbackWork *work, int fallback, Datum value);
extern Datum fallbacks_deserialize(FallbackWork *work, int fallback, Datum bytes);
/* Returns whether all states can be written to files and combined later. */
extern bool fallbacks_spillable(const AggSpec *spec);
/* Returns the bytes of all states. */
extern size_t fallbacks_memory(const FallbackWork *work);
/*
 * Returns the bytes of all states, but without memory contexts that states have of their own. It
 * takes constant time.
 */
extern size_t fallbacks_held(const FallbackWork *work);
/* Returns the bytes that are taken without a state. */
extern size_t fallbacks_empty_memory(const FallbackWork *work);
/* Returns the mean bytes of a group's states; the table has groups. */
extern double fallbacks_group_bytes(const FallbackWork *work, const GroupTable *table);
/* Returns the bytes of the states of a group with one row; 0 if that is not known. */
extern size_t fallbacks_known_bytes(const FallbackWork *work);
/* Grouped input: frees the states of all groups but the last, which is about to become row 0. */
extern void fallbacks_carry_last(FallbackWork *work);
extern void fallbacks_reset(FallbackWork *work);
extern void fallbacks_end_temp(FallbackWork *work);
extern void fallbacks_end(FallbackWork *work);

/* ---- engine ------------------------------------------------------------- */

/* How a table has grown; for early.c. */
typedef struct EarlyGrowth
{
	uint32 groups;  /* groups of the table when last measured, */
	uint64 located; /* and CpuEngine.located */
	double share;   /* share of the rows since the measurement before that made new groups */
	double middle;  /* mean number of groups meanwhile */
	double leaving; /* share of all rows that would leave: `share` while the table first filled */
} EarlyGrowth;

typedef struct CpuEngine
{
	Engine base;
	const AggSpec *spec;
	EngineEnv env;
	MemoryContext cxt; /* child of env.cxt */

	GpuaggStrategy strategy;
	StrategyChoice choice; /* its bins are the current ones */
	int64 chosen_bins;     /* bins when the strategy was chosen */
	bool chosen_from_data; /* the strategy was chosen after the first batch */
	int changes;           /* of strategy, for EXPLAIN */
	GroupTable *table;
	GroupBits *bits;      /* all groups, if not NULL; the table is empty then */
	GroupBits *left_bits; /* groups that are moving from bits to the table */
	bool as_bits;         /* groups were bits up to the last row */
	SlotWork *slots;
	FallbackWork *fallbacks; /* NULL if the spec has no fallback aggregates */

	/* grouped input: the batch that is being reduced */
	Batch batch;
	int batch_pos; /* its first row that has not been reduced */
	bool closed;   /* the last group is complete, too */

	/* memory is used up: rows without a group go to partitions of the current level */
	int level;             /* how often the rows being read were partitioned */
	PartitionSet *out;     /* being written, or NULL */
	PartitionList pending; /* to be read */
	Partition in;          /* the partition being read; else its files are NULL */
	RowReader *reader;     /* for the rows of partitions; NULL until needed */

	/* parallel plans with many groups (early.c) */
	GroupSink *early;     /* where groups leave the table early; NULL: none has left */
	uint32 early_bound;   /* groups of the table before they may leave; 0: they never do */
	uint64 early_located; /* `located` when the scan began */
	EarlyGrowth growth;   /* before groups leave */
	uint64 early_groups;  /* groups that have left */

	bool finished;
	uint32 emit_pos; /* groups emit_pos .. emit_end - 1 of the table are to be returned next */
	uint32 emit_end;
	GroupBatch groups;     /* the groups that next_groups returns */
	uint32 **key_codes;    /* [key] memory of its codes; NULL where the key is no Datum */
	int out_capacity;      /* groups for which it has room; 0: not allocated yet */
	StringInfoData record; /* a group or a row as bytes */
	GroupBatch spilled;    /* one group, for exchange.c */
	char *imported;        /* at most EXCHANGE_ROWS rows of other participants */
	int nimported;         /* how many; they are merged together */
	Batch foreign_keys;    /* keys of such rows, where some are Datums */
	Batch keys;            /* keys of groups to be merged */
	int unmeasured;        /* groups that may be merged before memory is measured again */

	char scanned[256]; /* strategy for EXPLAIN: how the rows were reduced, once parts of exports are
						  merged; else empty */

	uint64 rows;
	uint64 located; /* rows located in a table, including rows read back from partitions */
	uint64 batches;
	uint64 emitted; /* groups returned since the last reset, and groups moved to partitions */
	uint64 spilled_groups;
	size_t mem_peak;
	int segment_most; /* Grouped input: how many rows are located at a time, since states have
						 filled the memory; 0: no limit. */
	size_t reserved;  /* bytes of mem_limit that neither the table nor states may use, when last
						 measured */
	uint64 spilled_bytes;
	int spill_partitions;
} CpuEngine;

/* ---- emit.c ------------------------------------------------------------- */

/*
 * Points engine->groups to groups of the table: from .. end - 1, or as many as fit, at least one.
 * Returns how many.
 */
extern int cpu_emit(CpuEngine *engine, uint32 from, uint32 end);
/* Points engine->groups to the next groups of engine->bits. Returns how many; 0 at the end. */
extern int cpu_emit_bits(CpuEngine *engine);
/* Writes group g of engine->groups to engine->record; serializes its transition values. */
extern void cpu_write_group(CpuEngine *engine, int g);

/* ---- absorb.c ----------------------------------------------------------- */

extern void cpu_choose_strategy(CpuEngine *engine, StrategyInput *input);
/* Reserves table rows for the expected groups, as far as memory allows. */
extern void cpu_reserve_groups(CpuEngine *engine, double groups);
/* Adds rows of the feed or of a partition to the table, or to the partitions. */
extern void cpu_absorb(CpuEngine *engine, const Batch *batch);
/*
 * Adds rows, or the keys of groups, to the bits. Returns false if the engine has no bits, or has
 * them no more.
 */
extern bool cpu_absorb_bits(CpuEngine *engine, const Batch *batch);
/* Moves all groups from bits to the table. `why` is the reason for EXPLAIN. */
extern void cpu_leave_bits(CpuEngine *engine, const char *why);
/* Empties the table. */
extern void cpu_forget_groups(CpuEngine *engine);
/* Measures the memory and sets how many groups the table may have. */
extern void cpu_budget(CpuEngine *engine);
/*
 * Returns how many bytes states of fallback aggregates may hold (fallbacks_held) before no new
 * group is accepted. Valid after cpu_budget.
 */
extern size_t cpu_states_limit(const CpuEngine *engine);
/* Returns the set of partitions for what has no room in the table; creates it when first needed. */
extern PartitionSet *cpu_partitions(CpuEngine *engine);
/* Moves the set's files to engine->pending. */
extern void cpu_finish_partitions(CpuEngine *engine);
/*
 * With fallback aggregates: returns how many rows may become groups before the size of their states
 * is measured again. Measuring takes time for each state with a memory context.
 */
extern int cpu_fallback_rows(const CpuEngine *engine);
/* Returns whether rows go to partitions without a lookup in the table. */
extern bool cpu_bypasses_table(const CpuEngine *engine);
/*
 * Takes the place of group_table_locate if cpu_bypasses_table(): sets at[] to NO_GROUP for all
 * rows, and computes the hashes of Datum keys, by which rows are partitioned.
 */
extern void cpu_bypass(CpuEngine *engine, const Batch *batch);
/*
 * Grouped input: reduces the next rows of engine->batch, and sets emit_pos and emit_end to the
 * complete groups. These are all but the last one, or all if engine->closed.
 */
extern void cpu_reduce_segments(CpuEngine *engine);
/* Grouped input: forgets the complete groups. Keeps the last one unless it is complete, too. */
extern void cpu_carry_segment(CpuEngine *engine);

/* ---- exchange.c --------------------------------------------------------- */

/* Most rows that cpu_merge_rows takes. */
#define EXCHANGE_ROWS 256

/* Memory of partitions is divided at multiples of this. */
#define CACHE_LINE 64

/* Flag in the length of an exported group: it is a row of a table, not a record. */
#define EXCHANGED_ROW ((uint32) 1 << 31)

/* Returns whether rows are so small, and so simple, that they can be exchanged as they are. */
extern bool cpu_rows_are_plain(const CpuEngine *engine);
/* Returns the number of keys that are Datums. */
extern int cpu_count_datums(const CpuEngine *engine);
/* Initialises a batch for keys of groups: only the columns of keys have memory. */
extern void cpu_make_key_batch(CpuEngine *engine, Batch *keys);
/*
 * Returns whether groups are exported as rows of the table, not as records. That needs plain rows
 * without Datum keys.
 */
extern bool cpu_exchanges_rows(const CpuEngine *engine);
/* Writes all groups of the table to the sink, each as a length and its row. */
extern void cpu_write_rows(CpuEngine *engine, GroupSink *sink);
/*
 * Puts all groups of the table into memory of the sink, as rows ordered by partition. Returns false
 * if there is no such memory, or it would exceed mem_limit together with the table.
 */
extern bool cpu_share_rows(CpuEngine *engine, GroupSink *sink);
/* Sets part[group] to the partition of a group (group_part), and counts[part] to its groups. */
extern void cpu_count_parts(const CpuEngine *engine, const GroupSink *sink, uint16 *part,
							uint32 *counts);
/*
 * Maps the pages of new memory at once. Page faults would bring pages into the caches one by one,
 * where streaming stores do not need them. A call cannot be interrupted, so each call maps only
 * MAPPED_BYTES.
 */
extern void cpu_map_pages(char *start, size_t size);
/*
 * Combines n rows of another participant's table with the groups of this one. The address `rows` is
 * a multiple of 16.
 */
extern void cpu_merge_rows(CpuEngine *engine, const char *rows, int n);
/* Combines the states of n rows, `stride` bytes apart, with those of the groups located for them.
 */
extern void cpu_combine_rows(CpuEngine *engine, const char *rows, size_t stride, int n);
/*
 * Writes another participant's row, which has no room in the table, to a partition as a record.
 * `keys` has the values of keys that are Datums in row i; NULL if there are none.
 */
extern void cpu_spill_foreign_row(CpuEngine *engine, char *row, const Batch *keys, int i);

/* ---- exchange_values.c --------------------------------------------------- */

/*
 * Returns whether groups are exported to shared memory as plain rows with the values of their Datum
 * keys.
 */
extern bool cpu_shares_values(const CpuEngine *engine);
/* Does what cpu_share_rows does, with rows and values of Datum keys. */
extern bool cpu_share_values(CpuEngine *engine, GroupSink *sink);
/*
 * Combines the n groups of a partition that cpu_share_values of another participant has written to
 * `rows` with the groups of this one. The table refers to values there, until it is emptied.
 */
extern void cpu_merge_values(CpuEngine *engine, const char *rows, uint32 n);

/* ---- early.c ------------------------------------------------------------ */

/* Allows groups to leave the table early, if the plan and the rows of the table are suitable. */
extern void cpu_start_early(CpuEngine *engine);
/* Returns how many of this many groups the table should have room for: fewer if they may leave. */
static inline double
cpu_early_groups(const CpuEngine *engine, double groups)
{
	return engine->early_bound > 0 ? Min(groups, engine->early_bound) : groups;
}
/* Returns the bytes of shared memory that groups have which left early. */
static inline size_t
cpu_early_bytes(const CpuEngine *engine)
{
	return engine->early ? engine->early->bytes : 0;
}
/* Empties the table if its groups should leave it. Called between batches. */
extern void cpu_leave_early(CpuEngine *engine);

/* ---- merge.c ------------------------------------------------------------ */

extern EngineStatus cpu_import_groups(Engine *base, GroupSource *source);
extern EngineStatus cpu_import_rows(Engine *base, int section, const char *rows, uint32 n);
/* Merges the rows that cpu_import_rows has collected. */
extern void cpu_merge_imported(CpuEngine *engine);
/* Reads the groups in a partition's file, and combines them with the table's. */
extern void cpu_read_groups(CpuEngine *engine, BufFile *file);

#endif /* GPUAGG_ENGINE_CPU_INTERNAL_H */
