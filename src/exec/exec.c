/*
 * exec.c
 *	  The custom scan's executor: feed, engine, groups, tuples.
 *
 * BeginCustomScan only initializes the child plan; what the query needs (spec,
 * engine, feed) is opened for the first tuple, so that EXPLAIN starts nothing and
 * parameters have their values.  It is allocated in one memory context, which is
 * deleted at the end, and before a rescan that changes parameters of the aggregates.  A rescan
 * that changes nothing of the groups returns those that are kept (kept.c).
 *
 * An engine that fails before a group has been returned is replaced by the default
 * engine, and the input is read again, unless it is shared with other participants
 * or comes from volatile functions.  One that fails to open is replaced in any case,
 * as no row has been read.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "utils/memutils.h"

#include "common/progress.h"
#include "exec/exec.h"
#include "exec/kept.h"
#include "exec/returned.h"
#include "exec/tuples.h"

#define PROGRESS_BATCHES 16

static Node *create_state(CustomScan *cscan);
static void begin_scan(CustomScanState *node, EState *estate, int eflags);
static TupleTableSlot *exec_scan(CustomScanState *node);
static void end_scan(CustomScanState *node);
static void rescan_scan(CustomScanState *node);

static const CustomScanMethods scan_methods = {
	.CustomName = "GpuAgg",
	.CreateCustomScanState = create_state,
};

static const CustomExecMethods exec_methods = {
	.CustomName = "GpuAgg",
	.BeginCustomScan = begin_scan,
	.ExecCustomScan = exec_scan,
	.EndCustomScan = end_scan,
	.ReScanCustomScan = rescan_scan,
	.EstimateDSMCustomScan = parallel_estimate,
	.InitializeDSMCustomScan = parallel_initialize,
	.ReInitializeDSMCustomScan = parallel_reinitialize,
	.InitializeWorkerCustomScan = parallel_initialize_worker,
	.ShutdownCustomScan = parallel_shutdown,
	.ExplainCustomScan = explain_scan,
};

void
exec_register(void)
{
	RegisterCustomScanMethods(&scan_methods);
}

static Node *
create_state(CustomScan *cscan)
{
	GpuAggState *state = palloc0(sizeof(GpuAggState));

	NodeSetTag(state, T_CustomScanState);
	state->css.methods = &exec_methods;
	state->participant = -1;
	return (Node *) state;
}

/* Expressions of this node are here for all rescans: core keeps a list of the subplans in them. */
static void
init_expressions(GpuAggState *state)
{
	CustomScan *cscan = (CustomScan *) state->css.ss.ps.plan;
	GpuAggPlan *plan = state->plan;
	int next = plan->nconsts;

	for (int i = 0; (plan->nlimit > 0 || plan->first_groups) && i < 2; i++)
		state->limit_exprs[i] =
			ExecInitExpr(list_nth(cscan->custom_exprs, next++), &state->css.ss.ps);
	state->directs = palloc0(sizeof(ExprState *) * (plan->naggs + 1));
	for (int a = 0; a < plan->naggs; a++)
	{
		TargetEntry *tle = list_nth_node(TargetEntry, cscan->custom_scan_tlist, plan->nkeys + a);

		if (castNode(Aggref, tle->expr)->aggdirectargs != NIL)
			state->directs[a] =
				ExecInitExpr(list_nth(cscan->custom_exprs, next++), &state->css.ss.ps);
	}
}

/* Parameters of the executor in expressions; a subplan may depend on any that the scan has. */
static bool
collect_params(Node *node, void *context)
{
	GpuAggState *state = context;

	if (node == NULL)
		return false;
	if (IsA(node, Param) && ((Param *) node)->paramkind == PARAM_EXEC)
		state->expr_params = bms_add_member(state->expr_params, ((Param *) node)->paramid);
	if (IsA(node, SubPlan) || IsA(node, AlternativeSubPlan))
		state->expr_params = bms_add_members(state->expr_params, state->css.ss.ps.plan->allParam);
	return expression_tree_walker(node, collect_params, context);
}

static void
begin_scan(CustomScanState *node, EState *estate, int eflags)
{
	GpuAggState *state = (GpuAggState *) node;
	CustomScan *cscan = (CustomScan *) node->ss.ps.plan;

	/* the child is read forward, once or anew */
	eflags &= ~(EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK);
	state->plan = plan_decode(cscan);
	state->child = ExecInitNode(linitial(cscan->custom_plans), estate, eflags);
	node->custom_ps = list_make1(state->child);
	init_expressions(state);
	collect_params((Node *) cscan->custom_exprs, state);
	state->kept = kept_create(state);
}

/* ---- opening and closing ----------------------------------------------- */

/*
 * The engine failed, and another one takes its place: the reason, for EXPLAIN.  Keys of hidden rows
 * may be the cause, so that a message would tell of them.
 */
static void
note_failure(GpuAggState *state)
{
	Engine *failed = state->engine;

	if (!state->plan->guarded)
		ereport(DEBUG1,
				(errmsg_internal("gpuagg: engine \"%s\" failed: %s", failed->ops->name,
								 failed->failure)));
	snprintf(state->engine_reason, sizeof(state->engine_reason), "%s failed: %s", failed->ops->name,
			 failed->failure);
}

/*
 * Joins the other participants of a parallel plan, if any, before the first row; false if the
 * engine failed.
 */
static bool
attach(GpuAggState *state)
{
	return state->engine->failure[0] == '\0' && (state->shared == NULL || parallel_attach(state));
}

/*
 * Opens spec, engine and feed, with the engine of these ops, or with ops NULL the one
 * that engines_choose() prefers.  If it fails to open, the default engine is opened
 * instead.
 */
static void
open_scan(GpuAggState *state, const EngineOps *ops)
{
	MemoryContext old;

	state->cxt = AllocSetContextCreate(state->css.ss.ps.state->es_query_cxt, "GpuAgg",
									   ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(state->cxt);
	exec_open_engine(state, ops);
	if (!attach(state))
	{
		note_failure(state);
		state->engine->ops->close(state->engine);
		exec_open_engine(state, engines_default());
		attach(state);
	}
	exec_open_feed(state);
	state->returned = returned_open(state);
	state->tuples = tuples_open(state);
	MemoryContextSwitchTo(old);
}

static void
close_scan(GpuAggState *state)
{
	count_run(state);
	if (state->engine)
		state->engine->ops->close(state->engine);
	if (state->feed)
		state->feed->ops->end(state->feed);
	state->engine = NULL;
	state->feed = NULL;
	state->spec = NULL;
	state->outputs = NULL;
	state->returned = NULL;
	state->tuples = NULL;
	if (state->cxt)
		MemoryContextDelete(state->cxt);
	state->cxt = NULL;
}

/* ---- running ----------------------------------------------------------- */

static void
raise_errors(GpuAggState *state)
{
	if (unlikely(state->engine->errors != 0))
		aggmap_raise(state->engine->errors);
}

/* The engine failed: starts over with the default one. */
static void
fall_back(GpuAggState *state)
{
	Engine *failed = state->engine;

	if (state->emitted > 0 || state->shared || state->plan->read_once ||
		failed->ops == engines_default())
		ereport(
			ERROR,
			(errcode(ERRCODE_EXTERNAL_ROUTINE_EXCEPTION),
			 errmsg("engine \"%s\" failed: %s", failed->ops->name, failed->failure),
			 state->emitted > 0 ? errdetail("Some groups were returned already.") :
				 state->shared  ? errdetail("The rows of a parallel scan cannot be read again.") :
				 state->plan->read_once ? errdetail("Volatile functions cannot be called again.") :
										  0,
			 errhint("Run the query again, or set \"%s\" to \"%s\".", "gpuagg.engine",
					 engines_default()->name)));
	note_failure(state);
	close_scan(state);
	ExecReScan(state->child);
	open_scan(state, engines_default());
	state->finished = false;
}

/* The engine has all input of this process. */
static EngineStatus
end_of_input(GpuAggState *state)
{
	EngineStatus status;

	state->finished = true;
	progress_phase(PROGRESS_MERGING);
	if (state->shared)
	{
		status = parallel_end_of_input(state);
		if (status != ENGINE_OK || state->silent || state->merging)
			return status;
	}
	status = state->engine->ops->finish(state->engine);
	if (status == ENGINE_OK)
		InstrCountFiltered1(&state->css, state->engine->failed);
	return status;
}

/* For the view gpuagg_progress. */
static void
report_groups(GpuAggState *state)
{
	EngineStats stats;

	state->engine->ops->stats(state->engine, &stats);
	progress_groups(stats.groups);
}

/*
 * After a batch, now and then: has the LIMIT above the groups that it wants?  Rows of a parallel
 * scan that one participant does not read would be others' groups.
 */
static bool
has_enough(GpuAggState *state)
{
	uint64 batches = state->feed->batches;
	EngineStats stats;
	int64 wanted;

	if (!state->plan->first_groups || state->plan->read_once || state->shared)
		return false;
	if (batches == 0 || ((batches & (batches - 1)) != 0 && batches % PROGRESS_BATCHES != 0))
		return false;
	wanted = returned_limit(state);
	state->engine->ops->stats(state->engine, &stats);
	return wanted >= 0 && stats.groups >= (uint64) wanted;
}

#ifdef __SANITIZE_ADDRESS__

/* Reads by-reference values as functions of core will, whose reads the sanitizer does not watch. */
static void
read_values(const Batch *batch, const AggSpec *spec)
{
	static volatile char read pg_attribute_unused();

	for (int c = 0; c < batch->ncols; c++)
	{
		const Column *col = &batch->cols[c];
		const ColumnSpec *column = &spec->cols[c];

		if (col->type != COLUMN_DATUM && col->type != COLUMN_DEC)
			continue;
		for (int row = 0; row < batch->nrows; row++)
		{
			bool unrepresentable = column_is_unrepresentable(col, row);
			const char *value;
			size_t size;

			if (column_is_null(col, row) ||
				(col->type == COLUMN_DATUM ? column->typbyval : !unrepresentable))
				continue;
			value = DatumGetPointer(unrepresentable ? col->unrepresentable_values[row] :
													  ((Datum *) col->values)[row]);
			size = unrepresentable || column->typlen == -1 ? VARSIZE_ANY(value) :
				column->typlen == -2                       ? strlen(value) + 1 :
															 column->typlen;
			for (size_t i = 0; i < size; i++)
				read = value[i];
		}
	}
}
#else
#define read_values(batch, spec) ((void) 0)
#endif

/*
 * Are groups left out before they are tuples?  All are kept where others may pass the quals of the
 * next scan.
 */
static bool
chooses(const GpuAggState *state)
{
	return state->returned != NULL && !kept_before_quals(state->kept);
}

/* Before the first batch: the engine takes the rows of which it has copies. */
static EngineStatus
take_resident(GpuAggState *state)
{
	const EngineOps *ops = state->engine->ops;

	if (state->begun || state->shared)
		return ENGINE_OK;
	state->begun = true;
	if (chooses(state))
		returned_offer(state->returned, state->engine);
	return ops->take_resident == NULL ? ENGINE_OK : ops->take_resident(state->engine, state->feed);
}

/* Which of the new groups may be returned? */
static void
choose_groups(GpuAggState *state)
{
	state->chosen = NULL;
	state->nchosen = state->groups.ngroups;
	tuples_restart(state->tuples);
	if (chooses(state))
	{
		int failed;

		state->nchosen = returned_choose(state->returned, &state->groups, &state->chosen, &failed);
		InstrCountFiltered1(&state->css, failed);
	}
}

static bool
run_until_groups(GpuAggState *state)
{
	if (state->engine == NULL)
		open_scan(state, NULL);
	else if (state->shared && state->participant < 0 && !attach(state))
	{
		note_failure(state);
		close_scan(state);
		open_scan(state, engines_default());
	}
	state->next_group = state->nchosen = 0;
	while (!state->silent)
	{
		const EngineOps *ops = state->engine->ops;
		EngineStatus status;
		Batch *batch;

		CHECK_FOR_INTERRUPTS();
		if (ops->next_groups(state->engine, &state->groups))
		{
			raise_errors(state);
			if (state->groups.ngroups == 0)
				continue;
			state->emitted += state->groups.ngroups;
			choose_groups(state);
			report_groups(state);
			if (state->finished)
				progress_phase(PROGRESS_RETURNING);
			return true;
		}
		if (state->engine->failure[0] != '\0')
		{
			fall_back(state);
			continue;
		}
		if (state->merging)
		{
			bool more;

			if (parallel_next_part(state, &more) == ENGINE_FAILED)
				fall_back(state);
			raise_errors(state);
			if (!more)
				break;
			continue;
		}
		if (state->finished)
			break;
		if (take_resident(state) == ENGINE_FAILED)
		{
			fall_back(state);
			continue;
		}
		if (ops->bind_buffers && state->feed->batch)
			ops->bind_buffers(state->engine, state->feed->batch);
		if (state->feed->batches == 0)
			progress_phase(PROGRESS_SCANNING);
		batch = has_enough(state) ? NULL : state->feed->ops->next(state->feed);
		if (batch)
			read_values(batch, state->spec);
		status = batch ? ops->add_batch(state->engine, batch) : end_of_input(state);
		if (status == ENGINE_FAILED)
			fall_back(state);
		raise_errors(state);
		if (batch == NULL || state->feed->batches % PROGRESS_BATCHES == 0)
			report_groups(state);
	}
	state->nchosen = 0;
	return false;
}

/* Runs until there are groups to emit; false when there are no more. */
static bool
fetch_groups(GpuAggState *state)
{
	instr_time start, end;
	bool more;

	if (state->progress == NULL)
		state->progress = progress_create(state->css.ss.ps.state->es_query_cxt);
	INSTR_TIME_SET_CURRENT(start);
	progress_enter(state->progress);
	more = run_until_groups(state);
	progress_leave(state->progress);
	INSTR_TIME_SET_CURRENT(end);
	INSTR_TIME_ACCUM_DIFF(state->elapsed, end, start);
	return more;
}

/* May group g be returned, now that its tuple has passed the quals, or if there are none? */
static bool
confirm(const GpuAggState *state, int g)
{
	return !chooses(state) || returned_confirm(state->returned, &state->groups, g);
}

/*
 * Puts a group that is made into the slot, if it passes the quals; keeps it where groups are kept.
 */
static bool
make_tuple(GpuAggState *state, TupleTableSlot *slot)
{
	CustomScanState *node = &state->css;
	ExprContext *econtext = node->ss.ps.ps_ExprContext;
	int i = state->next_group++;
	int g = state->chosen ? state->chosen[i] : i;
	MemoryContext old;

	if (node->ss.ps.qual == NULL && !confirm(state, g))
		return false;
	old = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);
	tuples_store(state->tuples, slot, i);
	MemoryContextSwitchTo(old);
	if (kept_before_quals(state->kept))
		kept_put(state->kept, slot);
	econtext->ecxt_scantuple = slot;
	if (!ExecQual(node->ss.ps.qual, econtext))
	{
		InstrCountFiltered1(node, 1);
		return false;
	}
	if (node->ss.ps.qual != NULL && !confirm(state, g))
		return false;
	if (kept_behind_quals(state->kept))
		kept_put(state->kept, slot);
	state->ntuples++;
	return true;
}

/* Puts a group of an earlier scan into the slot, if there is one; *passed: it passes the quals. */
static bool
read_kept(GpuAggState *state, TupleTableSlot *slot, bool *passed)
{
	ExprContext *econtext = state->css.ss.ps.ps_ExprContext;

	if (state->kept == NULL || !kept_next(state->kept, slot))
		return false;
	econtext->ecxt_scantuple = slot;
	*passed = !kept_before_quals(state->kept) || ExecQual(state->css.ss.ps.qual, econtext);
	if (!*passed)
		InstrCountFiltered1(&state->css, 1);
	return true;
}

static TupleTableSlot *
exec_scan(CustomScanState *node)
{
	GpuAggState *state = (GpuAggState *) node;
	ExprContext *econtext = node->ss.ps.ps_ExprContext;
	TupleTableSlot *slot = node->ss.ss_ScanTupleSlot;

	for (;;)
	{
		bool passed;

		CHECK_FOR_INTERRUPTS();
		ResetExprContext(econtext);
		if (!read_kept(state, slot, &passed))
		{
			if (state->next_group >= state->nchosen)
			{
				if ((state->kept && kept_is_complete(state->kept)) || !fetch_groups(state))
				{
					if (state->kept)
						kept_complete(state->kept);
					return NULL;
				}
				continue;
			}
			passed = make_tuple(state, slot);
		}
		if (passed)
			return node->ss.ps.ps_ProjInfo ? ExecProject(node->ss.ps.ps_ProjInfo) : slot;
	}
}

/* ---- rescan and end ---------------------------------------------------- */

static void
rescan_scan(CustomScanState *node)
{
	GpuAggState *state = (GpuAggState *) node;
	Bitmapset *changed = node->ss.ps.chgParam;
	bool same;

	if (changed)
		UpdateChangedParamSet(state->child, changed);
	/* constants and aggregates' parameters may have changed */
	same = !bms_overlap(changed, state->expr_params);
	if (state->kept && state->engine &&
		kept_rescan(state->kept, same && state->child->chgParam == NULL))
		return;
	if (state->engine && !same)
		close_scan(state);
	if (state->engine)
	{
		state->rescans++;
		state->counted += state->emitted + state->engine->left_out;
		state->engine->ops->reset(state->engine);
		state->feed->ops->rescan(state->feed);
	}
	else if (state->child->chgParam == NULL)
		ExecReScan(state->child);
	if (state->returned)
		returned_reset(state->returned);
	state->next_group = state->nchosen = 0;
	state->finished = false;
	state->begun = false;
	state->silent = false;
	state->merging = state->late = false;
	state->parts = 0;
	state->emitted = state->ntuples = 0;
	state->participant = -1;
}

static void
end_scan(CustomScanState *node)
{
	GpuAggState *state = (GpuAggState *) node;

	if (state->kept)
		kept_end(state->kept);
	close_scan(state);
	ExecEndNode(state->child);
}
