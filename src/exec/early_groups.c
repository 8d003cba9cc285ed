/*
 * early_groups.c
 *	  Groups that leave the engine of a participant before the end of its input; see parallel.c.
 *
 * They go to shared memory by partition, portion by portion. So all participants must merge
 * partitions in the end: the first one whose groups leave decides that, as one does otherwise at
 * the end of its input.
 */
#include "postgres.h"

#include "exec/parallel_internal.h"
#include "exec/part_sink.h"

typedef struct EarlySink
{
	GroupSink base; /* must be first */
	GpuAggState *state;
	int exchange;
} EarlySink;

/* GroupSink.rows: returns shared memory for a portion of this participant's groups. */
static char *
early_rows(GroupSink *base, const uint32 *counts, const size_t *bytes, size_t common)
{
	EarlySink *sink = (EarlySink *) base;
	char *memory = part_memory(sink->state, sink->exchange, 0, counts, bytes, base->nparts, common,
							   Max(base->expected, 1));

	for (int p = 0; memory && p < base->nparts; p++)
		base->bytes += bytes[p];
	if (memory)
		base->bytes += common;
	return memory;
}

/*
 * Returns whether all participants merge partitions of an exchange; decides that they do if no one
 * has decided yet, and others are active.
 */
static bool
decide_partitions(GpuAggState *state, int exchange)
{
	GpuAggShared *shared = state->shared;
	bool values = exchange != EXCHANGE_GROUPS;
	bool *decided = values ? &shared->values_partitioned : &shared->partitioned;
	bool partitioned;

	SpinLockAcquire(&shared->mutex);
	if (!*decided && !shared->emitting && shared->active > 1)
	{
		*decided = true;
		if (values)
		{
			shared->first_export = shared->nexports;
			state->run.values_parted_early = true;
		}
		else
			state->run.parted_early = true;
	}
	partitioned = *decided;
	SpinLockRelease(&shared->mutex);
	return partitioned;
}

/* Returns whether this participant's engines can merge partitions of an exchange. */
static bool
can_merge(const GpuAggState *state, int exchange)
{
	Engine *engine = state->engine;
	Engine *values;

	if (exchange == EXCHANGE_GROUPS)
		return engine->ops->begin_part != NULL;
	if (engine->ops->distinct_values == NULL)
		return false;
	for (int set = 0; (values = engine->ops->distinct_values(engine, set)) != NULL; set++)
		if (values->ops->begin_part == NULL)
			return false;
	return true;
}

GroupSink *
parallel_early_sink(void *arg, int exchange)
{
	GpuAggState *state = arg;
	GpuAggShared *shared = state->shared;
	EarlySink *sink;

	if (shared == NULL || state->run.participant < 0 || state->run.attach_phase > 0 ||
		part_segment(shared, exchange, 0) < 0 || !shared_rows_has_portions(parallel_rows(shared)) ||
		!can_merge(state, exchange) || !decide_partitions(state, exchange))
		return NULL;
	if (state->early == NULL)
		state->early =
			MemoryContextAllocZero(state->cxt, (ENGINE_MAX_VALUE_SETS + 1) * sizeof(EarlySink));
	sink = &state->early[exchange];
	memset(sink, 0, sizeof(*sink));
	sink->base.rows = early_rows;
	part_sink_divide(&sink->base, parallel_count_parts(shared, exchange));
	sink->state = state;
	sink->exchange = exchange;
	return &sink->base;
}
