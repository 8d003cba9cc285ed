/*
 * count.c
 *	  Counts custom scans for gpuagg_stats.
 *
 * A run is counted when its engine is closed: at the end of the scan, or before a rescan with other
 * parameters.  A query that fails is not counted.  In a parallel plan the leader counts for all
 * participants, with its own time.
 */
#include "postgres.h"

#include "access/parallel.h"

#include "common/stats.h"
#include "exec/exec.h"

/* Returns a palloc'd copy of a strategy's name, without the details for EXPLAIN. */
static char *
bare_strategy(const char *strategy)
{
	return pnstrdup(strategy, strcspn(strategy, " (,"));
}

/*
 * Adds a run with these statistics to gpuagg_stats, and, if there are such, the reasons for the
 * default engine and for tuples of the child plan.
 */
static void
count_scan(GpuAggState *state, const EngineOps *ops, const EngineStats *stats)
{
	const char *tuples = exec_tuples_reason(state);
	const EState *estate = state->css.ss.ps.state;
	StatsCount count = {.calls = 1 + state->rescans,
						.rows = stats->rows,
						.groups = state->counted + stats->groups,
						.ms = INSTR_TIME_GET_MILLISEC(state->elapsed),
						.query_id = (int64) estate->es_plannedstmt->queryId};
	char *strategy = bare_strategy(stats->strategy);
	StatsKey key = {.event = STATS_TAKEN,
					.engine = ops->name,
					.feed = tuples                      ? "tuples" :
						feed_reads_groups(state->child) ? "groups" :
														  "heap",
					.strategy = strategy};

	/* the engine that ran it, the strategy and the number of rows may depend on hidden rows */
	if (state->plan->guarded)
	{
		if (state->preferred)
			key.engine = state->preferred->name;
		key.strategy = NULL;
		count.rows = 0;
	}
	stats_add(&key, &count);
	/* there may be many runs in one query */
	pfree(strategy);
	key.strategy = NULL;
	if (ops == engines_default() && state->engine_reason[0] != '\0' && !state->plan->guarded)
	{
		key.event = STATS_ENGINE;
		key.reason = state->engine_reason;
		stats_add(&key, &count);
	}
	if (tuples)
	{
		key.event = STATS_FEED;
		key.reason = tuples;
		stats_add(&key, &count);
	}
}

void
count_run(GpuAggState *state)
{
	EngineStats stats;

	if (!IsParallelWorker() && state->uncounted)
		count_scan(state,
				   state->engine ? state->engine->ops :
								   exec_choose_engine(state, state->engine_reason,
													  sizeof(state->engine_reason)),
				   &state->stats);
	else if (!IsParallelWorker() && exec_stats(state, &stats) && state->engine->failure[0] == '\0')
		count_scan(state, state->engine->ops, &stats);
	state->uncounted = false;
	state->rescans = state->counted = 0;
	INSTR_TIME_SET_ZERO(state->elapsed);
}
