/*
 * engine_cpu.h
 *	  What the files of the CPU engine share.
 *
 * engine_cpu.c	drives: budget, strategies, partitions, output
 * engine_cpu_slots.c	slots: selections, input columns, bins
 * engine_cpu_loops.c	the loops over the monoid list
 * engine_cpu/fallback.c	aggregates run by their own transition functions
 * engine_cpu_merge.c	groups as records: export, import, spilled states
 */
#ifndef GPUAGG_ENGINE_CPU_H
#define GPUAGG_ENGINE_CPU_H

#include "postgres.h"

#include "lib/stringinfo.h"

#include "engine.h"
#include "groups/table.h"
#include "groups/spill.h"

/* ---- loops -------------------------------------------------------------- */

/* Input types of the monoids. */
typedef enum InputKind
{
	INPUT_int8_t,
	INPUT_int32_t,
	INPUT_uint32_t,
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
extern int	loop_rows(MonoidId id, char *base, const uint32 *at, const void *input, int n);

/* The same by runs of rows of one group: inputs start[r] .. start[r + 1] to at[r]. */
extern int	loop_runs(MonoidId id, char *base, const uint32 *at, const uint32 *start, int nruns,
					  const void *input);

/* to = combine(to, from) for so many states. */
extern int	loop_combine(MonoidId id, char *to, const char *from, int n);

/* ---- slots -------------------------------------------------------------- */

typedef struct SlotWork SlotWork;

extern SlotWork *slots_create(const AggSpec *spec, int batch_rows);

/* Reduces a batch whose rows are located in *table; returns error bits. */
extern int	slots_reduce(SlotWork *work, GroupTable *table, const Batch *batch);

/* ---- own transitions ---------------------------------------------------- */

typedef struct FallbackWork FallbackWork;

extern FallbackWork *fallbacks_create(const AggSpec *spec, MemoryContext cxt);
extern void fallbacks_init_row(void *arg, char *row);
extern void fallbacks_advance(FallbackWork *work, GroupTable *table, const Batch *batch);
extern void fallbacks_combine(FallbackWork *work, GroupTable *table, char *row, int fallback, Datum value,
						 bool isnull);
extern Datum fallbacks_serialize(FallbackWork *work, int fallback, Datum value);
extern Datum fallbacks_deserialize(FallbackWork *work, int fallback, Datum bytes);
extern bool fallbacks_spillable(const AggSpec *spec);
extern size_t fallbacks_memory(const FallbackWork *work);
/* Segmented: groups but the last are done with. */
extern void fallbacks_carry_last(FallbackWork *work);
extern void fallbacks_reset(FallbackWork *work);
extern MemoryContext fallbacks_temp(FallbackWork *work);
extern void fallbacks_end_temp(FallbackWork *work);
extern void fallbacks_end(FallbackWork *work);

/* ---- engine ------------------------------------------------------------- */

typedef struct CpuEngine
{
	Engine		base;
	const AggSpec *spec;
	EngineEnv	env;
	MemoryContext cxt;			/* child of env.cxt */

	GpuaggStrategy strategy;
	StrategyChoice choice;
	bool		chosen_from_data;
	int			changes;
	GroupTable *table;
	SlotWork   *slots;
	FallbackWork    *fallbacks;			/* NULL without own transitions */

	/* segmented: the batch in work */
	Batch		batch;
	int			batch_pos;

	/* memory used up: the rest goes to partitions of the level in work */
	int			level;
	PartitionSet *out;
	PartitionList pending;
	Partition	in;				/* being read; its files are NULL otherwise */
	RowReader  *reader;

	bool		finished;
	uint32		emit_pos;
	uint32		emit_end;
	GroupBatch	groups;			/* output arrays */
	char	  **slot_out;
	int			out_capacity;
	StringInfoData record;

	/* import: keys as a batch */
	Batch		keys;

	uint64		rows;
	uint64		batches;
	uint64		emitted;
	size_t		mem_peak;
	uint64		spilled_bytes;
	int			spill_partitions;
} CpuEngine;

/* engine_cpu.c */
extern const EngineOps engine_cpu_ops;

extern void cpu_absorb(CpuEngine *engine, const Batch *batch);
extern void cpu_budget(CpuEngine *engine);
extern PartitionSet *cpu_partitions(CpuEngine *engine);
extern bool cpu_bypasses_table(const CpuEngine *engine);
extern void cpu_bypass(CpuEngine *engine, const Batch *batch);
extern bool cpu_next_table(CpuEngine *engine);

/* engine_cpu_merge.c */
extern EngineStatus cpu_export_groups(Engine *base, GroupSink *sink);
extern EngineStatus cpu_import_groups(Engine *base, GroupSource *source);
extern int	cpu_record_states(const GroupTable *table);
extern void cpu_spill_table(CpuEngine *engine);
extern void cpu_read_states(CpuEngine *engine, BufFile *file);

#endif							/* GPUAGG_ENGINE_CPU_H */
