/*
 * internal.h
 *	  What the files of the CPU engine share.
 *
 * engine_cpu.c	the vtable of engine.h: life, order of steps, statistics
 * merge.c		groups that others made, into the table
 * exchange.c	rows of the table, between participants of a parallel plan
 * absorb.c		rows into the table: memory, strategies, partitions
 * emit.c		groups of the table to arrays and records
 * slots.c		slots: selections, input columns, bins
 * loops.c		the loops over the monoid list
 * fallback.c	fallback aggregates, which run their own transition functions
 *
 * Each file calls only those below it.
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
 * Steps the states at base + 4 * at[i] by input[i]; returns error bits.  Inputs
 * are of the monoid's input type, and not read by MONOID_COUNT.
 */
extern int loop_rows(MonoidId id, char *base, const uint32 *at, const void *input, int n);

/* The same by runs of rows of one group: inputs start[r] .. start[r + 1] to at[r]. */
extern int loop_runs(MonoidId id, char *base, const uint32 *at, const uint32 *start, int nruns,
					 const void *input);

/*
 * Are n doubles all moderate: numbers less than 2^257?  The squares of as many as there can be do
 * not overflow, and what they add to a sum that is about to overflow is less than its last digit.
 */
extern bool loop_all_moderate(const double *x, int n);

/*
 * MONOID_ACCUM_F64 without the squares, and without the number of rows unless `count`, for moderate
 * values: those of a state then stay what they are.
 */
extern void loop_mean_rows(char *base, const uint32 *at, const double *x, int n, bool count,
						   char *counts);
extern void loop_mean_runs(char *base, const uint32 *at, const uint32 *start, int nruns,
						   const double *x, bool count);

/* Sums read integers narrower than their input, as they are: base plus values of a type. */
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
 * Does the operator?  Then as loop_rows and loop_runs.  counts: of MONOID_COUNT, in the same rows,
 * or NULL; they are stepped as well.
 */
extern bool loop_takes_narrow(MonoidId id);
extern int loop_narrow_rows(MonoidId id, char *base, const uint32 *at, const NarrowInput *input,
							int n, char *counts);
extern int loop_narrow_runs(MonoidId id, char *base, const uint32 *at, const uint32 *start,
							int nruns, const NarrowInput *input);

/* loop_runs of MONOID_SUM_F64, without a test for each row. */
extern int loop_sum_runs(char *base, const uint32 *at, const uint32 *start, int nruns,
						 const double *x);

/* to = combine(to, from) for so many states. */
extern int loop_combine(MonoidId id, char *to, const char *from, int n);

/*
 * The states at base + 4 * at[i], unless that is NO_GROUP, are combined with those at from + stride
 * * i.
 */
extern int loop_combine_rows(MonoidId id, char *base, const uint32 *at, const char *from,
							 size_t stride, int n);

/* ---- slots -------------------------------------------------------------- */

typedef struct SlotWork SlotWork;

extern SlotWork *slots_create(const AggSpec *spec, int batch_rows);

/*
 * May the values of a column be narrow?  That is so where nothing but such sums reads them, or it
 * is a key.
 */
extern bool slots_take_narrow(const AggSpec *spec, int c);

/* Reduces a batch whose rows are located in *table; returns error bits. */
extern int slots_reduce(SlotWork *work, GroupTable *table, const Batch *batch);

/* States from elsewhere will be combined with the table's. */
extern void slots_combine(SlotWork *work, GroupTable *table);

/* Completes the states of the table's groups from .. end - 1, which are to be read. */
extern void slots_complete(const SlotWork *work, const GroupTable *table, uint32 from, uint32 end);

/* The table has been emptied. */
extern void slots_reset(SlotWork *work);

/* ---- fallback aggregates ------------------------------------------------- */

typedef struct FallbackWork FallbackWork;

extern FallbackWork *fallbacks_create(const AggSpec *spec, MemoryContext cxt, size_t mem_limit);
extern void fallbacks_init_row(void *arg, char *row);
/*
 * Advances the states of the rows' groups, of which the first `known` were there before these rows
 * were located. Ends before the first row of a new group, unless it is the table's first, once
 * states hold more than `limit` bytes. Returns how many rows it has taken.
 */
extern int fallbacks_advance(FallbackWork *work, GroupTable *table, const Batch *batch,
							 uint32 known, size_t limit);
extern void fallbacks_combine(FallbackWork *work, GroupTable *table, char *row, int fallback,
							  Datum value, bool isnull);
/* Both may return temporary memory, which fallbacks_end_temp frees. */
extern Datum fallbacks_serialize(FallbackWork *work, int fallback, Datum value);
extern Datum fallbacks_deserialize(FallbackWork *work, int fallback, Datum bytes);
extern bool fallbacks_spillable(const AggSpec *spec);
extern size_t fallbacks_memory(const FallbackWork *work);
/* The same without the memory contexts that states may have: known at once. */
extern size_t fallbacks_held(const FallbackWork *work);
/* Segmented: frees the states of all groups but the last, which is about to become row 0. */
extern void fallbacks_carry_last(FallbackWork *work);
extern void fallbacks_reset(FallbackWork *work);
extern void fallbacks_end_temp(FallbackWork *work);
extern void fallbacks_end(FallbackWork *work);

/* ---- engine ------------------------------------------------------------- */

typedef struct CpuEngine
{
	Engine base;
	const AggSpec *spec;
	EngineEnv env;
	MemoryContext cxt; /* child of env.cxt */

	GpuaggStrategy strategy;
	StrategyChoice choice; /* its bins are those that there are now */
	int64 chosen_bins;     /* as they were chosen */
	bool chosen_from_data;
	int changes;
	GroupTable *table;
	GroupBits *bits;      /* or NULL; all groups are here then, and none in the table */
	GroupBits *left_bits; /* whose groups are moving to the table */
	bool as_bits;         /* there were, to the last row */
	SlotWork *slots;
	FallbackWork *fallbacks; /* NULL where there are none */

	/* segmented: the batch that is being reduced */
	Batch batch;
	int batch_pos;
	bool closed; /* the last group is complete as well */

	/* memory used up: other rows go to partitions of the current level */
	int level;
	PartitionSet *out;
	PartitionList pending;
	Partition in; /* being read; its files are NULL otherwise */
	RowReader *reader;

	bool finished;
	uint32 emit_pos;
	uint32 emit_end;
	GroupBatch groups; /* those that leave */
	int out_capacity;
	StringInfoData record;
	GroupBatch spilled; /* one group, see exchange.c */
	char *imported;     /* EXCHANGE_ROWS rows of another participant */
	Batch keys;         /* of groups to be merged */
	int unmeasured;     /* groups that may be merged before memory is measured again */

	char scanned[256]; /* the strategy by which rows were reduced, once parts are merged; else empty
						*/

	uint64 rows;
	uint64 located; /* of these in a table, and of rows read back */
	uint64 batches;
	uint64 emitted; /* since the last reset; and moved to partitions: */
	uint64 spilled_groups;
	size_t mem_peak;
	int segment_most; /* segmented: rows that are located at a time, as states have filled the
						 memory; 0: any */
	size_t reserved;  /* bytes of mem_limit that neither the table nor states may have, when last
						 measured */
	uint64 spilled_bytes;
	int spill_partitions;
} CpuEngine;

/* ---- emit.c ------------------------------------------------------------- */

/*
 * Points engine->groups to the table's groups from .. end, to the first of them at least; returns
 * how many.
 */
extern int cpu_emit(CpuEngine *engine, uint32 from, uint32 end);
/* Points engine->groups to the next groups of engine->bits; how many, and 0 at their end. */
extern int cpu_emit_bits(CpuEngine *engine);
/* Makes engine->record of group g of engine->groups, whose transition values it serializes. */
extern void cpu_write_group(CpuEngine *engine, int g);

/* ---- absorb.c ----------------------------------------------------------- */

extern void cpu_choose_strategy(CpuEngine *engine, StrategyInput *input);
/* Takes rows in, from the feed or from a partition. */
extern void cpu_absorb(CpuEngine *engine, const Batch *batch);
/* Takes in rows, or the keys of groups, as bits; false: the engine has none, or none any more. */
extern bool cpu_absorb_bits(CpuEngine *engine, const Batch *batch);
/* There are bits: moves the groups to the table, for this reason. */
extern void cpu_leave_bits(CpuEngine *engine, const char *why);
/* Empties the table. */
extern void cpu_forget_groups(CpuEngine *engine);
/* Sets how many groups the table may have now. */
extern void cpu_budget(CpuEngine *engine);
/*
 * With fallback aggregates, after cpu_budget: what their states may hold (fallbacks_held) until no
 * new group may come.
 */
extern size_t cpu_states_limit(const CpuEngine *engine);
/* The set of what has no place in the table, made when first needed. */
extern PartitionSet *cpu_partitions(CpuEngine *engine);
/* Moves its files to engine->pending. */
extern void cpu_finish_partitions(CpuEngine *engine);
/*
 * With fallback aggregates: how many rows may become groups before the size of their states
 * is measured again, which takes time for each state with a memory context.
 */
extern int cpu_fallback_rows(const CpuEngine *engine);
/* Do rows go to partitions without a lookup in the table? */
extern bool cpu_bypasses_table(const CpuEngine *engine);
/* Instead of locating rows: none has a group, and their keys have hashes. */
extern void cpu_bypass(CpuEngine *engine, const Batch *batch);
/*
 * Grouped input: reduces the next rows of engine->batch; the groups but the
 * last are complete.
 */
extern void cpu_reduce_segments(CpuEngine *engine);
/* Grouped input: forgets the complete groups, keeps the last one unless that is complete, too. */
extern void cpu_carry_segment(CpuEngine *engine);

/* ---- exchange.c --------------------------------------------------------- */

/* Most rows that cpu_merge_rows takes. */
#define EXCHANGE_ROWS 256

/* Set in the length of a group in an export that is a row of a table. */
#define EXCHANGED_ROW ((uint32) 1 << 31)

/* Are groups exported as rows of the table?  That is so where these hold no references. */
extern bool cpu_exchanges_rows(const CpuEngine *engine);
/* Writes all groups of the table. */
extern void cpu_write_rows(CpuEngine *engine, GroupSink *sink);
/*
 * Puts all groups of the table into memory of the sink, as rows by part; false if there is none, or
 * there would be more than mem_limit together with the table.
 */
extern bool cpu_share_rows(CpuEngine *engine, GroupSink *sink);
/* Combines n rows of another participant's table, at a multiple of 16 bytes, with this one's. */
extern void cpu_merge_rows(CpuEngine *engine, const char *rows, int n);

/* ---- merge.c ------------------------------------------------------------ */

extern EngineStatus cpu_import_groups(Engine *base, GroupSource *source);
extern EngineStatus cpu_import_rows(Engine *base, const char *rows, uint32 n);
/* Takes in the groups of a partition. */
extern void cpu_read_groups(CpuEngine *engine, BufFile *file);

#endif /* GPUAGG_ENGINE_CPU_INTERNAL_H */
