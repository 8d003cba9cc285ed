/*
 * parallel.c
 *	  How the participants of a parallel scan merge their groups.
 *
 * A participant is active from its first call until the end of its input.  Each reduces its share
 * of the input in an engine of its own.  There are two ways to merge the groups; the number of
 * groups decides.
 *
 * Few groups.  At the end of its input, a participant that is not the last active one exports its
 * groups to shared storage, and returns none.  The storage is dynamic shared memory, or a shared
 * temporary file for large exports.  The last participant imports all exports and returns the
 * groups.  No participant waits for another.  Any number of participants works: the leader alone,
 * workers alone, or one that starts after the others have ended.
 *
 * Why such a late start is safe: partial plans return each row to one participant.  When one of
 * them reaches the end, rows that were not returned yet belong to active participants.  So a
 * participant that attaches after the last active one has ended finds no rows.
 *
 * Many groups, while others are active.  A participant decides at the end of its input that the
 * groups are merged in partitions (GpuAggShared.partitioned), and those that end after it do the
 * same.  A hash of the keys decides the partition of a group.  Values of ordered sets, which follow
 * their groups, count as groups.  A participant leaves its groups as rows in shared memory
 * (shared_rows.c), if they and its table fit the memory of one participant.  Otherwise it writes
 * records by partition, to shared memory if they are few, else to shared temporary files
 * (part_sink.c).  Grouping sets and ordered sets have several sections of such groups.  It then
 * waits at a barrier until no participant is active.  After that each participant takes one
 * partition after another, merges what all have written of it, and returns its groups.  Groups that
 * participants exported before the decision are imported by the one that decides, before it writes
 * its own.
 *
 * Why waiting at the barrier cannot deadlock:
 *
 * - A participant attaches to the barrier at its first call.  It returns no tuple until it has
 *	 arrived at the barrier, so it leaves the scan's call before only by an error.  A participant
 *	 that others wait for is therefore executing this scan or nodes below it.  It does not stop
 *	 because its consumer needs no more tuples (a LIMIT).  A full queue to the leader cannot block
 *	 it either: it has sent nothing from this scan since it attached, and another scan (of an
 *	 Append, for example) is not executed meanwhile.
 * - Workers that never start do not attach, and neither does a leader that does not participate.  A
 *	 participant that starts late and finds the barrier passed has no rows, and takes partitions at
 *	 once.
 * - Nodes below may have barriers of their own (a parallel hash join).  There no node waits for a
 *	 participant that has ended its input, and participants that wait here have.  Nodes above may
 *	 have barriers, too: a participant that waits there has passed this barrier, and no one waits
 *	 for it here.
 * - After the barrier no one waits.  If a leader or worker stops in the middle of a partition, the
 *	 others go on: their consumer stops as well, or there is an error.
 * - The wait can be interrupted.  An error of a worker reaches the leader as an interrupt, and an
 *	 error of the leader ends the workers.
 *
 * Engines that can share a query (engine.h) join the one with the number `share` before their
 * participant attaches.  At the end of its input a participant whose engine has joined flushes.
 * While others of that query are active, it is then done, and has nothing to export, unless its
 * engine has kept rows.  The last of them becomes the owner: it has the groups of all, to return,
 * or to export if participants with other engines are active.  At that moment the query is closed:
 * `share` is incremented under the mutex.  A participant that has joined the old query, but has not
 * attached yet, sees the change and joins the next query instead.  A participant joins before it is
 * counted, so a query with rows always gets an owner.
 *
 * Groups, and distinct values, may also leave the engine of a participant before the end of its
 * input, portion by portion, if they are many (EngineEnv.early_sink, early_groups.c). The first one
 * where they do decides that partitions are merged. It imports earlier exports at the end of its
 * input.
 *
 * A participant may become the last one while it exports, because others end meanwhile.  It then
 * resets its engine and imports all exports, including its own.  Or it learns that the groups are
 * merged in partitions: then it imports its own export, and writes its groups by partition.
 *
 * Distinct values.  An engine for aggregates of DISTINCT values has, in addition to the groups,
 * engines with the distinct values of each row set (EngineOps.distinct_values).  Exports include
 * these values.  If there are many while others are active, a participant decides at the end of its
 * input that values are merged in partitions before groups are (GpuAggShared.values_partitioned).
 * A hash of the keys and the values decides the partition, so this works without GROUP BY, too.
 * Each participant leaves its values by partition, and waits at the barrier.  Then it takes one
 * partition after another, and adds the values that are left to its own groups.  After that each
 * distinct value is in the groups of one participant, and the groups are merged in one of the two
 * ways above, as if these values had been rows of the input.  The barrier then has one more phase.
 * A participant stays active until its groups are merged.  One that attaches after the first phase
 * has no values, but merges partitions of values, too.
 *
 * GpuAggShared.mutex protects the counters and totals.  Exports are written before they are
 * counted.  Only the last active participant, or the one that decides to use partitions, reads
 * them.
 */
#include "postgres.h"

#include "executor/nodeHash.h"
#include "nodes/nodeFuncs.h"
#include "port/pg_bitutils.h"
#include "storage/shm_toc.h"
#include "utils/wait_event.h"

#include "exec/parallel_internal.h"

/* Merging in partitions is faster if all participants together have at least this many groups. */
#define MANY_GROUPS 65536

/* Least partitions for each participant, so that all end at about the same time. */
#define PARTS_EACH 4
/* Groups of a partition that fit in the processor's cache. */
#define PART_GROUPS 8192
#define MAX_PARTS 256
/* Each participant may have so many segments in any case. What has none is written to files. */
#define LEAST_SEGMENTS 8
/* Values of ordered sets that take as much memory as a group. */
#define VALUES_PER_GROUP 8

/* ---- set-up ------------------------------------------------------------ */

/*
 * Returns the number of segments that each participant may have, one for each section of an
 * exchange: of groups, and of the distinct values of row sets.  Sets *values to the segments for
 * values.
 */
static int
count_segments(const CustomScanState *node, int participants, int *values)
{
	int most = Max(MANY_SEGMENTS / participants, LEAST_SEGMENTS);
	int nsets = Max(((const GpuAggState *) node)->plan->nsets, 1);
	int distincts = 0;
	bool ordered_sets = false;
	ListCell *lc;

	foreach (lc, ((CustomScan *) node->ss.ps.plan)->custom_scan_tlist)
	{
		Expr *expr = lfirst_node(TargetEntry, lc)->expr;

		if (!IsA(expr, Aggref))
			continue;
		distincts += ((Aggref *) expr)->aggdistinct != NIL;
		ordered_sets |= aggmap_is_ordered_set((Aggref *) expr);
	}
	*values = Min(distincts * nsets, Min(most, ENGINE_MAX_VALUE_SETS));
	return *values + Min(ordered_sets ? 2 * nsets : nsets, Min(most, ENGINE_MAX_SECTIONS));
}

/* Returns what the participants share about the feed; it follows the SharedRows. */
static FeedShared *
find_feed_shared(const CustomScanState *node, GpuAggShared *shared)
{
	int values;

	return (FeedShared *) ((char *) parallel_rows(shared) +
						   MAXALIGN(shared_rows_size(shared->most,
													 count_segments(node, shared->most, &values))));
}

Size
parallel_estimate(CustomScanState *node, ParallelContext *pcxt)
{
	int participants = pcxt->nworkers + 1;
	int values;

	return parallel_exports_size(participants) +
		MAXALIGN(shared_rows_size(participants, count_segments(node, participants, &values))) +
		feed_shared_size(((GpuAggState *) node)->child);
}

/* Sets counters and totals to those of a scan that has not begun. */
static void
reset_counters(GpuAggShared *shared)
{
	shared->attached = 0;
	shared->active = 0;
	shared->emitting = false;
	shared->partitioned = false;
	shared->values_partitioned = false;
	pg_atomic_write_u32(&shared->next_part, 0);
	pg_atomic_write_u32(&shared->next_value_part, 0);
	BarrierInit(&shared->barrier, 0);
	shared->first_export = 0;
	shared->nexports = 0;
	shared->share++;
	shared->joined = 0;
	shared->reported = 0;
	memset(&shared->totals, 0, sizeof(shared->totals));
	memset(&shared->feed_totals, 0, sizeof(shared->feed_totals));
}

/*
 * Returns the number of partitions, a power of 2.  A participant may need a file with a buffer for
 * each, which limits them.
 */
static int
count_partitions(int participants, double groups)
{
	size_t most = Min(get_hash_memory_limit() / 4 / BLCKSZ, MAX_PARTS);
	int n = 4;

	while (n < Max(participants * PARTS_EACH, groups / PART_GROUPS) && n * 2 <= most)
		n *= 2;
	return n;
}

/*
 * Returns the number of partitions of groups.  Values without codes, of ordered sets, are sorted in
 * each partition, as far as they differ, so one for each participant is enough.  Otherwise values
 * count as groups with as much memory.
 */
static int
count_group_partitions(const CustomScanState *node, int participants)
{
	const GpuAggPlan *plan = ((const GpuAggState *) node)->plan;
	double groups = plan->est_groups;
	bool sorts = false;
	int parts;
	ListCell *lc;

	foreach (lc, ((CustomScan *) node->ss.ps.plan)->custom_scan_tlist)
	{
		Aggref *aggref = (Aggref *) lfirst_node(TargetEntry, lc)->expr;

		if (!IsA(aggref, Aggref) || !aggmap_is_ordered_set(aggref) || aggref->args == NIL)
			continue;
		groups += plan->est_rows / VALUES_PER_GROUP;
		sorts |=
			!spec_type_has_codes(exprType((Node *) linitial_node(TargetEntry, aggref->args)->expr));
	}
	parts = count_partitions(participants, groups);
	return sorts ? Min(parts, 1 << pg_ceil_log2_32(Min(Max(participants, 2), MAX_PARTS))) : parts;
}

/*
 * Lets the choices for the feed be those of the first scan. A LIMIT above ends a parallel plan,
 * whose rescan has new shared memory; but the leader's feed stays open.
 */
static void
keep_feed_choices(GpuAggState *state)
{
	Size size = feed_shared_size(state->child);

	if (state->feed_choices)
		feed_shared_copy_choices(state->shared_feed, state->feed_choices);
	else
	{
		state->feed_choices = MemoryContextAlloc(state->css.ss.ps.state->es_query_cxt, size);
		memcpy(state->feed_choices, state->shared_feed, size);
	}
}

/* Returns the support for which the participants build their specs. */
static SlotSupport
agreed_support(GpuAggState *state)
{
	SlotSupport support = exec_slot_support(state);

	/* an engine that counts values must be able to read the rows again */
	support.tallies = false;
	return support;
}

void
parallel_initialize(CustomScanState *node, ParallelContext *pcxt, void *coordinate)
{
	GpuAggState *state = (GpuAggState *) node;
	GpuAggShared *shared = coordinate;

	SpinLockInit(&shared->mutex);
	/* unique among all scans while a server runs; 0 stands for no shared query */
	if (!pg_strong_random(&shared->share, sizeof(shared->share)) ||
		!pg_strong_random(shared->seed, sizeof(shared->seed)))
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR), errmsg("could not generate random values")));
	shared->share = shared->share | UINT64CONST(1) << 63;
	pg_atomic_init_u32(&shared->next_part, 0);
	pg_atomic_init_u32(&shared->next_value_part, 0);
	shared->most = pcxt->nworkers + 1;
	shared->nparts = count_group_partitions(node, shared->most);
	/* there may be as many distinct values as rows */
	shared->nvalue_parts = count_partitions(shared->most, state->plan->est_rows);
	shared->segments = count_segments(node, shared->most, &shared->value_segments);
	shared_rows_init(parallel_rows(shared), shared->most, shared->segments, pcxt->seg);
	reset_counters(shared);
	shared->support = agreed_support(state);
	shared->segment = pcxt->seg ? dsm_segment_handle(pcxt->seg) : DSM_HANDLE_INVALID;
	SharedFileSetInit(&shared->fileset, pcxt->seg);
	state->shared = shared;
	state->shared_feed = find_feed_shared(node, shared);
	feed_shared_init(state->shared_feed, state->child, exec_tuples_reason(state) == NULL,
					 state->plan->read_once);
	keep_feed_choices(state);
	memcpy(state->seed, shared->seed, sizeof(state->seed));
	state->agreed = &shared->support;
	state->run.participant = -1;
}

/* Prepares a rescan.  All workers of the previous scan have ended. */
void
parallel_reinitialize(CustomScanState *node, ParallelContext *pcxt, void *coordinate)
{
	GpuAggShared *shared = coordinate;
	dsa_area *area = node->ss.ps.state->es_query_dsa;

	for (int i = 0; i < shared->nexports; i++)
	{
		if (area && DsaPointerIsValid(shared->exports[i].data))
			dsa_free(area, shared->exports[i].data);
	}
	SharedFileSetDeleteAll(&shared->fileset);
	shared_rows_unmap(&((GpuAggState *) node)->mapped);
	shared_rows_clear(parallel_rows(shared));
	feed_shared_reset(find_feed_shared(node, shared), area);
	reset_counters(shared);
	shared->support = agreed_support((GpuAggState *) node);
}

void
parallel_initialize_worker(CustomScanState *node, shm_toc *toc, void *coordinate)
{
	GpuAggState *state = (GpuAggState *) node;
	GpuAggShared *shared = coordinate;

	SharedFileSetAttach(&shared->fileset, dsm_find_mapping(shared->segment));
	shared_rows_attach(parallel_rows(shared), dsm_find_mapping(shared->segment));
	state->shared = shared;
	state->shared_feed = find_feed_shared(node, shared);
	memcpy(state->seed, shared->seed, sizeof(state->seed));
	state->agreed = &shared->support;
	state->run.participant = -1;
}

/* Returns the number of the query that engines can join now. */
static uint64
current_share(GpuAggShared *shared)
{
	uint64 share;

	SpinLockAcquire(&shared->mutex);
	share = shared->share;
	SpinLockRelease(&shared->mutex);
	return share;
}

bool
parallel_attach(GpuAggState *state)
{
	GpuAggShared *shared = state->shared;
	Engine *engine = state->engine;
	uint32 layout = spec_layout(state->spec);
	bool agree = true;
	int phase = BarrierAttach(&shared->barrier);

	while (state->run.participant < 0)
	{
		uint64 share = current_share(shared);

		state->run.joined = engine->ops->join && engine->ops->join(engine, share);
		if (engine->failure[0] != '\0')
		{
			/* the caller attaches again with another engine */
			BarrierDetach(&shared->barrier);
			return false;
		}
		SpinLockAcquire(&shared->mutex);
		if (!state->run.joined || shared->share == share)
		{
			if (shared->attached == 0)
				shared->layout = layout;
			agree = shared->layout == layout;
			state->run.participant = shared->attached++;
			shared->active++;
			shared->joined += state->run.joined;
		}
		SpinLockRelease(&shared->mutex);
	}
	state->run.attach_phase = phase;
	if (!agree)
		elog(ERROR, "participants of a parallel scan have different states in their groups");
	return true;
}

/* ---- the end of a participant's input ---------------------------------- */

/* The ways in which a participant goes on at the end of its input. */
typedef enum InputEnd
{
	END_SILENT,       /* has no groups; another participant returns all */
	END_LAST,         /* merges and returns the groups of all participants */
	END_EXPORT,       /* exports its groups */
	END_VALUES,       /* exchanges distinct values, then decides again */
	END_VALUES_FIRST, /* the same, after it has imported the exports of others */
	END_PARTS,        /* exports its groups by partition, and waits */
	END_PARTS_FIRST   /* the same, after it has imported the exports of others */
} InputEnd;

/* Returns the engine of row set number `set`, or NULL: the query has fewer sets. */
static Engine *
values_engine(const GpuAggState *state, int set)
{
	Engine *engine = state->engine;

	return engine->ops->distinct_values ? engine->ops->distinct_values(engine, set) : NULL;
}

/*
 * Returns whether this participant has so many distinct values that merging them in partitions is
 * faster, and can merge them.
 */
static bool
has_many_values(const GpuAggState *state)
{
	Engine *engine;
	bool many = false;

	for (int set = 0; !state->run.values_exchanged && (engine = values_engine(state, set)) != NULL;
		 set++)
	{
		EngineStats stats;

		if (engine->ops->begin_part == NULL)
			return false;
		engine->ops->stats(engine, &stats);
		many |= stats.groups >= MANY_GROUPS / state->shared->most || stats.spilled_bytes > 0;
	}
	return many;
}

/*
 * Returns END_VALUES or END_PARTS if another participant has decided that partitions are merged,
 * END_VALUES_FIRST or END_PARTS_FIRST if this one has (early_groups.c), else END_EXPORT.  The
 * caller holds the mutex.
 */
static InputEnd
decided_end(const GpuAggState *state)
{
	const GpuAggShared *shared = state->shared;

	if (shared->values_partitioned && !state->run.values_exchanged)
		return state->run.values_parted_early ? END_VALUES_FIRST : END_VALUES;
	if (!shared->partitioned)
		return END_EXPORT;
	return state->run.parted_early ? END_PARTS_FIRST : END_PARTS;
}

/*
 * Decides how this participant goes on.  After END_SILENT and END_LAST it is not active any more.
 * If the engine has spilled rows, the number of groups is unknown, and assumed to be large.
 */
static InputEnd
choose_end(GpuAggState *state, const EngineStats *stats)
{
	GpuAggShared *shared = state->shared;
	bool many_values = has_many_values(state);
	bool spilled = stats->spilled_bytes > 0 && state->spec->nkeys > 0;
	uint64 exchanged = stats->groups + (state->spec->nkeys > 0 ? stats->values : 0);
	InputEnd end;

	SpinLockAcquire(&shared->mutex);
	end = decided_end(state);
	if (end == END_EXPORT && (shared->emitting || shared->active == 1))
	{
		end = shared->emitting ? END_SILENT : END_LAST;
		shared->emitting = true;
		shared->active--;
	}
	else if (end == END_EXPORT && many_values)
	{
		end = END_VALUES_FIRST;
		shared->values_partitioned = true;
		shared->first_export = shared->nexports;
	}
	else if (end == END_EXPORT && state->engine->ops->begin_part &&
			 (exchanged >= MANY_GROUPS / shared->active || spilled))
	{
		end = END_PARTS_FIRST;
		shared->partitioned = true;
	}
	SpinLockRelease(&shared->mutex);
	return end;
}

/*
 * Counts the export and returns END_EXPORT, or END_LAST if all others have ended meanwhile.
 * Returns END_VALUES or END_PARTS, without counting it, if partitions are merged.
 */
static InputEnd
end_after_export(GpuAggState *state, const GroupExport *export)
{
	GpuAggShared *shared = state->shared;
	InputEnd end;

	SpinLockAcquire(&shared->mutex);
	end = decided_end(state);
	if (end == END_EXPORT)
	{
		shared->exports[shared->nexports++] = *export;
		if (--shared->active == 0)
		{
			end = END_LAST;
			shared->emitting = true;
		}
	}
	SpinLockRelease(&shared->mutex);
	return end;
}

/* Imports the exports from .. to - 1 into this process's engine. */
static EngineStatus
import_exports(GpuAggState *state, int from, int to)
{
	EngineStatus status = ENGINE_OK;

	for (int i = from; i < to && status == ENGINE_OK; i++)
		status = parallel_import(state, &state->shared->exports[i], true);
	return status;
}

/* Imports the exports of all participants, but not those that import_earlier() has imported. */
static EngineStatus
import_all(GpuAggState *state)
{
	return import_exports(state, state->shared->first_export, state->shared->nexports);
}

/*
 * Imports the exports of participants that ended before distinct values were partitioned.  Their
 * exports have the distinct values, too; later ones have not.
 */
static EngineStatus
import_earlier(GpuAggState *state)
{
	return import_exports(state, 0, state->shared->first_export);
}

/* Exports the distinct values of all sets by partition, and frees their memory. */
static EngineStatus
export_values(GpuAggState *state)
{
	Engine *engine;

	for (int set = 0; (engine = values_engine(state, set)) != NULL; set++)
	{
		EngineStatus status = parallel_export_parts(state, engine, EXCHANGE_VALUES(set));

		if (status != ENGINE_OK)
			return status;
		if (engine->ops->begin_part)
			engine->ops->begin_part(engine, 0);
		else
			engine->ops->reset(engine);
	}
	return ENGINE_OK;
}

/*
 * Takes one partition of distinct values after another, merges what all participants have of it,
 * and adds the values to the groups of this participant.
 */
static EngineStatus
merge_values(GpuAggState *state)
{
	GpuAggShared *shared = state->shared;
	Engine *engine;

	for (int set = 0; (engine = values_engine(state, set)) != NULL; set++)
		if (engine->ops->begin_part == NULL)
			return ENGINE_OK; /* others merge */
	for (;;)
	{
		uint32 next = pg_atomic_fetch_add_u32(&shared->next_value_part, 1);
		int set = next / shared->nvalue_parts;
		EngineStatus status;

		engine = values_engine(state, set);
		if (engine == NULL)
			return ENGINE_OK;
		CHECK_FOR_INTERRUPTS();
		status =
			parallel_import_part(state, engine, EXCHANGE_VALUES(set), next % shared->nvalue_parts);
		if (status == ENGINE_OK)
			status = state->engine->ops->add_distinct_values(state->engine, set);
		if (status != ENGINE_OK)
			return status;
		parallel_release_part(state, engine, EXCHANGE_VALUES(set), next % shared->nvalue_parts);
		state->run.parts++;
	}
}

/*
 * Exchanges distinct values.  Afterwards each distinct value is in the groups of one participant.
 * A participant that attached late has none of its own, but merges partitions as well.
 */
static EngineStatus
exchange_values(GpuAggState *state)
{
	EngineStatus status;

	if (state->run.attach_phase == 0)
	{
		status = export_values(state);
		if (status != ENGINE_OK)
			return status;
		BarrierArriveAndWait(&state->shared->barrier, PG_WAIT_EXTENSION);
	}
	status = merge_values(state);
	if (status != ENGINE_OK)
		return status;
	shared_rows_unmap(&state->mapped);
	state->engine->ops->end_distinct_values(state->engine);
	state->run.values_exchanged = true;
	return ENGINE_OK;
}

/* Exports the groups by partition, and waits until all participants have. */
static EngineStatus
end_with_parts(GpuAggState *state)
{
	GpuAggShared *shared = state->shared;
	EngineStatus status = parallel_export_parts(state, state->engine, EXCHANGE_GROUPS);

	if (status != ENGINE_OK)
		return status;
	if (state->engine->ops->begin_part == NULL)
	{
		/* others merge; the caller detaches from the barrier */
		state->run.phase = SCAN_SILENT;
		return ENGINE_OK;
	}
	/* frees the memory of the exported groups */
	state->engine->ops->begin_part(state->engine, 0);
	state->run.phase = SCAN_MERGE;
	BarrierArriveAndWait(&shared->barrier, PG_WAIT_EXTENSION);
	return ENGINE_OK;
}

/*
 * Flushes this participant's rows to the query that its engine has joined.  The last participant of
 * the query becomes the owner of all groups.  The others are done, unless their engines kept rows.
 */
static EngineStatus
end_shared_query(GpuAggState *state)
{
	GpuAggShared *shared = state->shared;
	const EngineOps *ops = state->engine->ops;
	EngineStatus status;
	bool complete;
	bool owner;

	status = ops->flush(state->engine, &complete);
	if (status != ENGINE_OK)
		return status;
	SpinLockAcquire(&shared->mutex);
	owner = --shared->joined == 0;
	if (owner)
		shared->share++;
	else if (complete)
	{
		/* this is not the last active participant: another one is still joined */
		shared->active--;
		state->run.phase = SCAN_SILENT;
	}
	SpinLockRelease(&shared->mutex);
	state->run.joined = false;
	ops->detach(state->engine, owner);
	return ENGINE_OK;
}

/* Resets the engine after an export, but keeps the errors that the export has met. */
static void
reset_exported(GpuAggState *state)
{
	Engine *engine = state->engine;
	int errors = engine->errors;

	engine->ops->reset(engine);
	engine->errors = errors;
	if (state->run.values_exchanged)
		engine->ops->end_distinct_values(engine);
}

/*
 * Raises an error if this participant has read rows: another one already returns the groups of all
 * rows.
 */
static void
check_no_rows(GpuAggState *state)
{
	if (state->feed->rows > 0)
		elog(ERROR, "parallel participant has rows after the groups were emitted");
}

/*
 * Exports the groups of this participant's engine.  Returns how it goes on: END_EXPORT, or another
 * way, and then the engine has the groups again.
 */
static EngineStatus
export_own_groups(GpuAggState *state, InputEnd *end)
{
	GroupExport export;
	EngineStatus status = parallel_export(state, &export);

	if (status != ENGINE_OK)
		return status;
	*end = end_after_export(state, &export);
	if (*end == END_EXPORT)
		return ENGINE_OK;
	reset_exported(state);
	/* the last participant imports its own export with those of the others */
	if (*end == END_LAST)
		return ENGINE_OK;
	status = parallel_import(state, &export, false);
	/* no one else frees it: a rescan frees exports that were counted */
	if (DsaPointerIsValid(export.data))
		dsa_free(state->css.ss.ps.state->es_query_dsa, export.data);
	return status;
}

/* Returns or exports the groups of this participant's engine. */
static EngineStatus
end_own_groups(GpuAggState *state)
{
	EngineStats stats;
	EngineStatus status = ENGINE_OK;
	InputEnd end;

	do
	{
		state->engine->ops->stats(state->engine, &stats);
		end = choose_end(state, &stats);
		if (end == END_EXPORT)
			status = export_own_groups(state, &end);
		if (end == END_VALUES_FIRST && status == ENGINE_OK)
			status = import_earlier(state);
		if ((end == END_VALUES || end == END_VALUES_FIRST) && status == ENGINE_OK)
			status = exchange_values(state);
		if (status != ENGINE_OK)
			return status;
	} while (end == END_VALUES || end == END_VALUES_FIRST);
	switch (end)
	{
		case END_LAST:
			return import_all(state);
		case END_PARTS_FIRST:
			status = import_all(state);
			return status == ENGINE_OK ? end_with_parts(state) : status;
		case END_PARTS:
			return end_with_parts(state);
		case END_SILENT:
			check_no_rows(state);
			break;
		default:
			break;
	}
	state->run.phase = SCAN_SILENT;
	return ENGINE_OK;
}

/*
 * Returns whether this participant attached when all groups of others had been written by
 * partition: it has no rows, and merges partitions only.
 */
static bool
attached_late(const GpuAggState *state)
{
	/* the barrier has one more phase if distinct values are exchanged first */
	return state->run.attach_phase > (state->shared->values_partitioned ? 1 : 0);
}

EngineStatus
parallel_end_of_input(GpuAggState *state)
{
	GpuAggShared *shared = state->shared;
	EngineStatus status = ENGINE_OK;

	if (state->run.joined)
		status = end_shared_query(state);
	if (status == ENGINE_OK && state->run.phase != SCAN_SILENT)
	{
		if (state->run.attach_phase > 0)
			check_no_rows(state);
		if (!attached_late(state))
			status = end_own_groups(state);
		else
			state->run.phase = state->engine->ops->begin_part ? SCAN_MERGE : SCAN_SILENT;
	}
	if (status != ENGINE_OK)
		return status;
	if (state->run.phase != SCAN_MERGE)
		BarrierDetach(&shared->barrier);
	return ENGINE_OK;
}

EngineStatus
parallel_next_part(GpuAggState *state, bool *more)
{
	GpuAggShared *shared = state->shared;
	EngineStatus status;
	int part;

	*more = false;
	/* the scan was shut down: no more tuples are needed */
	if (shared == NULL)
		return ENGINE_OK;
	if (state->run.part >= 0)
		parallel_release_part(state, state->engine, EXCHANGE_GROUPS, state->run.part);
	state->run.part = -1;
	part = pg_atomic_fetch_add_u32(&shared->next_part, 1);
	if (part >= shared->nparts)
	{
		shared_rows_unmap(&state->mapped);
		return ENGINE_OK;
	}
	*more = true;
	status = parallel_import_part(state, state->engine, EXCHANGE_GROUPS, part);
	if (status != ENGINE_OK)
		return status;
	state->run.parts++;
	state->run.part = part;
	return state->engine->ops->finish(state->engine);
}

/* ---- statistics -------------------------------------------------------- */

void
feed_stats_add(FeedStats *total, const FeedStats *stats)
{
	total->blocks += stats->blocks;
	total->cached += stats->cached;
	total->by_map += stats->by_map;
	total->resident += stats->resident;
	total->resident_tables += stats->resident_tables;
	total->by_lsn += stats->by_lsn;
	total->skipped += stats->skipped;
	total->stale += stats->stale;
	total->built += stats->built;
}

/*
 * Adds this process's statistics to the shared totals, and copies the totals: the shared memory may
 * be gone when EXPLAIN prints them.
 */
void
parallel_shutdown(CustomScanState *node)
{
	GpuAggState *state = (GpuAggState *) node;
	GpuAggShared *shared = state->shared;
	EngineStats mine;
	bool ran = state->run.participant >= 0 && exec_stats(state, &mine);

	/* groups that were not returned may refer to the memory that is unmapped here */
	if (state->mapped && state->engine)
	{
		state->run.nchosen = state->run.next_group = 0;
		state->engine->ops->reset(state->engine);
	}
	shared_rows_unmap(&state->mapped);
	if (shared == NULL)
		return;
	SpinLockAcquire(&shared->mutex);
	if (ran)
	{
		engine_stats_add(&shared->totals, &mine);
		if (state->feed)
			feed_stats_add(&shared->feed_totals, &state->feed->stats);
		shared->reported++;
	}
	state->stats = shared->totals;
	state->feed_stats = shared->feed_totals;
	state->participants = shared->reported;
	SpinLockRelease(&shared->mutex);
	state->have_stats = state->uncounted = state->participants > 0;
	state->shared = NULL;
	state->shared_feed = NULL;
	state->agreed = NULL;
}
