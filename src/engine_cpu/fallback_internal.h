/*
 * fallback_internal.h
 *	  What the files of fallback aggregates share: fallback.c and fallback_exact.c.
 */
#ifndef GPUAGG_FALLBACK_INTERNAL_H
#define GPUAGG_FALLBACK_INTERNAL_H

#include "postgres.h"

#include "executor/nodeAgg.h"

#include "aggregates/agg_step.h"
#include "engine_cpu/engine_cpu_internal.h"
#include "engine_cpu/exact_sums.h"
#include "engine_cpu/top_entries.h"

/*
 * A cache for aggregates that ignore repeated values (spec_ignores_repeats): values that groups
 * have had already, by their numbers in the feed's dictionary. Each entry has the last pair of
 * group and number that hashes to it.
 */
#define SEEN_ENTRIES 16384

typedef struct SeenValues
{
	bool possible;
	uint64 dictionary; /* the feed's dictionary that has these numbers; 0: none */
	uint64 *values;    /* [hash] group and number; NULL until first used */
} SeenValues;

typedef struct FallbackCall
{
	SeenValues seen;
	AggStep step;    /* a function that replaces most calls of the transition function, or NULL */
	AggSteps steps;  /* one that replaces most steps of consecutive rows, or NULL */
	ExactKind exact; /* exact_sums.c adds the rows to states of this kind; 0: it does not */
	double *buffer[2];
	ExactGrid *grid[2];
	GridSums by_group;
	char *read; /* memory for `nread` states that are read (fallback_exact_read) */
	int nread;
	TopCall top;       /* top_entries.c adds the rows to states of this call, if n is not 0 */
	bool top_by_value; /* the same, and entries have no memory of their own */
	TopSlab top_slab;

	/* valid for one batch */
	bool skipped; /* no row counts */
	bool uses_seen;
	const Column *first; /* column of the first argument, or NULL */

	AggStatePerTransData pertrans;
	FunctionCallInfo trans;
	FunctionCallInfo combine;
	FunctionCallInfo serial;
	FunctionCallInfo deserial;
} FallbackCall;

struct FallbackWork
{
	const AggSpec *spec;
	AggState *aggstate;
	ExprContext *temp; /* reset after each input row */
	ExprContext *states;
	ExprContext *carry[2]; /* grouped input: states of row 0, and of the last row */
	size_t mem_limit;
	size_t empty; /* bytes of these contexts without states */
	FallbackCall *calls;
	uint32 *picked; /* memory for numbers of the rows of a batch */
};

/* Returns the ExprContext in whose memory the states of the table row at offset `at` are. */
static inline ExprContext *
fallback_context(FallbackWork *work, const GroupTable *table, uint32 at)
{
	if (table->mode != TABLE_SEGMENTED)
		return work->states;
	if (at == 0)
		return work->carry[0];
	if (at == (table->ngroups - 1) * table->row_cells)
		return work->carry[1];
	return work->states;
}

/* ---- exact aggregates of floats: fallback_exact.c ------------------------------ */

/* Prepares an exact aggregate of floats. batch_rows: most rows of a batch */
extern void fallback_exact_prepare(FallbackCall *call, const FallbackAgg *fallback, int batch_rows);

/* Advances the states of exact aggregate o by all rows of a batch at once. */
extern void fallback_exact_advance(FallbackWork *work, int o, GroupTable *table,
								   const Batch *batch);

/* Advances the state of exact aggregate o in the group at an offset by row i, which counts. */
extern void fallback_exact_advance_row(FallbackWork *work, int o, GroupTable *table,
									   const Batch *batch, uint32 at, int i);

/* Returns the bytes of a group's state. */
extern size_t fallback_exact_bytes(const FallbackCall *call);

/*
 * Returns the bytes by which memory grows for all but the first `known` groups, if all their values
 * are integers of the column's unit.
 */
extern size_t fallback_exact_growth(const FallbackCall *call, uint32 known, uint32 ngroups);

/*
 * Returns the states of exact aggregate o in the groups from .. from + n - 1.  They are valid until
 * the next call, and as long as their groups get no rows.
 */
extern void fallback_exact_read(FallbackWork *work, int o, GroupTable *table, uint32 from, int n,
								Datum *values, bool *isnull);

#endif /* GPUAGG_FALLBACK_INTERNAL_H */
