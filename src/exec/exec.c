/*
 * exec.c
 *	  The callbacks of the custom scan.
 *
 * BeginCustomScan only initializes the child plan.  Spec, engine and feed are opened for the first
 * tuple: EXPLAIN starts nothing, and parameters have their values by then.  They are allocated in
 * one memory context.  It is deleted at the end, and before a rescan that changes parameters of the
 * aggregates.  A rescan that does not change the groups returns kept tuples (kept.c).
 *
 * If an engine fails before a group was returned, the default engine replaces it and reads the
 * input again, unless other participants share the input, or volatile functions make it.  An
 * engine that fails to open is always replaced, as no row was read yet.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "utils/datum.h"
#include "utils/memutils.h"

#include "common/compat.h"
#include "common/progress.h"
#include "exec/exec.h"
#include "exec/group_filter.h"
#include "exec/kept.h"
#include "exec/tuples.h"

/* Batches between two reports of progress. */
#define PROGRESS_BATCHES 16

static const ScanRun new_run = {.phase = SCAN_OFFER, .participant = -1, .part = -1};

static Node *create_state(CustomScan *cscan);
static void begin_scan(CustomScanState *node, EState *estate, int eflags);
static TupleTableSlot *exec_scan(CustomScanState *node);
static void end_scan(CustomScanState *node);
static void rescan_scan(CustomScanState *node);

static const GroupScanOps group_scan_ops;

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
	feed_set_group_scans(&group_scan_ops);
}

/* CreateCustomScanState: returns a new state. */
static Node *
create_state(CustomScan *cscan)
{
	GpuAggState *state = palloc0(sizeof(GpuAggState));

	NodeSetTag(state, T_CustomScanState);
	state->css.methods = &exec_methods;
	state->run = new_run;
	return (Node *) state;
}

/*
 * Initializes the node's own expressions once for all rescans: PostgreSQL adds their subplans to a
 * list of the node.
 */
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

/*
 * Adds the executor's parameters that an expression reads to state->expr_params.  A subplan may
 * depend on all parameters of the scan.
 */
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

/*
 * BeginCustomScan: decodes the plan and initializes the child plan and expressions; opens no
 * engine.
 */
static void
begin_scan(CustomScanState *node, EState *estate, int eflags)
{
	GpuAggState *state = (GpuAggState *) node;
	CustomScan *cscan = (CustomScan *) node->ss.ps.plan;

	/* the child is only read forward, perhaps several times */
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
 * Records why the engine failed, for EXPLAIN, before another engine replaces it.  In guarded plans
 * no message is sent: hidden rows may have caused the failure, and the message would reveal them.
 */
static void
record_failure(GpuAggState *state)
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
 * Attaches to the other participants of a parallel plan, if there are any; returns false if the
 * engine has failed.
 */
static bool
attach_engine(GpuAggState *state)
{
	return state->engine->failure[0] == '\0' && (state->shared == NULL || parallel_attach(state));
}

/*
 * Opens spec, engine and feed.  The engine has these ops; with NULL it is the one that
 * engines_choose() prefers.  If it fails to open, the default engine is opened instead.
 */
static void
open_scan(GpuAggState *state, const EngineOps *ops)
{
	MemoryContext old;

	state->cxt = AllocSetContextCreate(state->css.ss.ps.state->es_query_cxt, "GpuAgg",
									   ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(state->cxt);
	exec_open_engine(state, ops);
	if (!attach_engine(state))
	{
		record_failure(state);
		state->engine->ops->close(state->engine);
		exec_open_engine(state, engines_default());
		attach_engine(state);
	}
	exec_open_feed(state);
	state->filter = group_filter_open(state);
	state->tuples = tuples_open(state);
	MemoryContextSwitchTo(old);
}

/* Counts the run, and closes engine, feed and all that open_scan() has allocated. */
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
	state->early = NULL;
	state->filter = NULL;
	state->tuples = NULL;
	if (state->cxt)
		MemoryContextDelete(state->cxt);
	state->cxt = NULL;
}

/* ---- running ----------------------------------------------------------- */

/* Raises the errors that the engine has collected, if any. */
static void
raise_errors(GpuAggState *state)
{
	if (unlikely(state->engine->errors != 0))
		aggmap_raise(state->engine->errors);
}

/* Returns why the input cannot be read again by another engine; NULL if it can. */
static const char *
restart_obstacle(const GpuAggState *state)
{
	if (state->run.emitted > 0)
		return "Some groups were returned already.";
	if (state->shared || state->run.phase == SCAN_MERGE)
		return "The rows of a parallel scan cannot be read again.";
	if (state->plan->read_once)
		return "Volatile functions cannot be called again.";
	return NULL;
}

/*
 * Replaces the failed engine by the default one, which reads the input again.  Raises an error if
 * that is impossible.
 */
static void
fall_back(GpuAggState *state)
{
	Engine *failed = state->engine;
	const char *obstacle = restart_obstacle(state);

	if (obstacle || failed->ops == engines_default())
		ereport(ERROR,
				(errcode(ERRCODE_EXTERNAL_ROUTINE_EXCEPTION),
				 errmsg("engine \"%s\" failed: %s", failed->ops->name, failed->failure),
				 obstacle ? errdetail_internal("%s", obstacle) : 0,
				 errhint("Run the query again, or set \"%s\" to \"%s\".", "gpuagg.engine",
						 engines_default()->name)));
	record_failure(state);
	close_scan(state);
	ExecReScan(state->child);
	open_scan(state, engines_default());
	state->run.phase = SCAN_READ;
}

/*
 * Called when the engine has all input of this process: merges with other participants, and
 * finishes the engine if it is to return groups.
 */
static EngineStatus
end_of_input(GpuAggState *state)
{
	EngineStatus status;

	progress_phase(PROGRESS_MERGING);
	if (state->shared)
	{
		status = parallel_end_of_input(state);
		if (status != ENGINE_OK || state->run.phase != SCAN_READ)
			return status;
	}
	state->run.phase = SCAN_RETURN;
	status = state->engine->ops->finish(state->engine);
	if (status == ENGINE_OK)
		InstrCountFiltered1(&state->css, state->engine->failed);
	return status;
}

/* Reports the number of groups to the view gpuagg_progress. */
static void
report_groups(GpuAggState *state)
{
	EngineStats stats;

	state->engine->ops->stats(state->engine, &stats);
	progress_groups(stats.groups);
}

/*
 * Returns whether the groups so far satisfy the LIMIT above the scan, so that no more rows need to
 * be read.  Checks this after some batches only.  Never true in a parallel scan: rows that one
 * participant does not read may belong to groups of others.
 */
static bool
has_enough_groups(GpuAggState *state)
{
	uint64 batches = state->feed->batches;
	EngineStats stats;
	int64 wanted;

	if (!state->plan->first_groups || state->plan->read_once || state->shared)
		return false;
	if (batches == 0 || ((batches & (batches - 1)) != 0 && batches % PROGRESS_BATCHES != 0))
		return false;
	wanted = group_filter_limit(state);
	state->engine->ops->stats(state->engine, &stats);
	return wanted >= 0 && stats.groups >= (uint64) wanted;
}

#ifdef __SANITIZE_ADDRESS__

/*
 * Reads all bytes of by-reference values: the sanitizer does not watch reads by core's functions.
 */
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
 * True if groups are left out before tuples are made of them.  False if groups are kept before the
 * quals, as other groups may pass the quals of the next scan.
 */
static bool
filters_groups(const GpuAggState *state)
{
	return state->filter != NULL && !kept_before_quals(state->kept);
}

/* Called before the first batch: lets the engine take the rows that its device has cached. */
static EngineStatus
offer_resident(GpuAggState *state)
{
	const EngineOps *ops = state->engine->ops;

	state->run.phase = SCAN_READ;
	if (state->shared)
		return ENGINE_OK;
	if (filters_groups(state))
		group_filter_offer(state->filter, state->engine);
	return ops->take_resident == NULL ? ENGINE_OK : ops->take_resident(state->engine, state->feed);
}

/* Sets run.chosen to the new groups that may be returned. */
static void
choose_groups(GpuAggState *state)
{
	state->run.chosen = NULL;
	state->run.nchosen = state->groups.ngroups;
	tuples_restart(state->tuples);
	if (filters_groups(state))
	{
		int failed;

		state->run.nchosen =
			group_filter_choose(state->filter, &state->groups, &state->run.chosen, &failed);
		InstrCountFiltered1(&state->css, failed);
	}
}

/* Reads a batch and gives it to the engine, or ends the input.  Starts over if the engine fails. */
static void
read_batch(GpuAggState *state)
{
	const EngineOps *ops = state->engine->ops;
	EngineStatus status;
	Batch *batch;

	if (ops->bind_buffers && state->feed->batch)
		ops->bind_buffers(state->engine, state->feed->batch);
	if (state->feed->batches == 0)
		progress_phase(PROGRESS_SCANNING);
	batch = has_enough_groups(state) ? NULL : state->feed->ops->next(state->feed);
	if (batch)
		read_values(batch, state->spec);
	status = batch ? ops->add_batch(state->engine, batch) : end_of_input(state);
	if (status == ENGINE_FAILED)
		fall_back(state);
	raise_errors(state);
	if (batch == NULL || state->feed->batches % PROGRESS_BATCHES == 0)
		report_groups(state);
}

/* Called when the engine has returned state->groups: counts them and chooses among them. */
static void
begin_groups(GpuAggState *state)
{
	state->run.emitted += state->groups.ngroups;
	choose_groups(state);
	report_groups(state);
	if (state->run.phase > SCAN_READ)
		progress_phase(PROGRESS_RETURNING);
}

/* Runs one step of the current phase; returns false if there are no more groups. */
static bool
run_step(GpuAggState *state)
{
	bool more = true;

	switch (state->run.phase)
	{
		case SCAN_OFFER:
			if (offer_resident(state) == ENGINE_FAILED)
			{
				fall_back(state);
				return true;
			}
			compat_fallthrough;
		case SCAN_READ:
			read_batch(state);
			return true;
		case SCAN_MERGE:
			if (parallel_next_part(state, &more) == ENGINE_FAILED)
				fall_back(state);
			raise_errors(state);
			return more;
		case SCAN_RETURN:
		case SCAN_SILENT:
			break;
	}
	return false;
}

/*
 * Opens the scan if need be, and runs it until the engine returns groups.  Returns false if there
 * are no more.
 */
static bool
run_until_groups(GpuAggState *state)
{
	if (state->engine == NULL)
		open_scan(state, NULL);
	else if (state->shared && state->run.participant < 0 && !attach_engine(state))
	{
		record_failure(state);
		close_scan(state);
		open_scan(state, engines_default());
	}
	state->run.next_group = state->run.nchosen = 0;
	while (state->run.phase != SCAN_SILENT)
	{
		CHECK_FOR_INTERRUPTS();
		if (state->engine->ops->next_groups(state->engine, &state->groups))
		{
			raise_errors(state);
			if (state->groups.ngroups == 0)
				continue;
			begin_groups(state);
			return true;
		}
		if (state->engine->failure[0] != '\0')
			fall_back(state);
		else if (!run_step(state))
			break;
	}
	state->run.nchosen = 0;
	return false;
}

/* Calls run_until_groups(), with progress and the elapsed time; returns its result. */
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

/* True if group g may be returned, after its tuple has passed the quals, if any. */
static bool
confirm_group(const GpuAggState *state, int g)
{
	return !filters_groups(state) || group_filter_confirm(state->filter, &state->groups, g);
}

/*
 * Makes the tuple of the next chosen group in the slot, and keeps it for rescans.  Returns false if
 * it fails the quals or is left out.
 */
static bool
make_tuple(GpuAggState *state, TupleTableSlot *slot)
{
	CustomScanState *node = &state->css;
	ExprContext *econtext = node->ss.ps.ps_ExprContext;
	int i = state->run.next_group++;
	int g = state->run.chosen ? state->run.chosen[i] : i;
	MemoryContext old;

	if (node->ss.ps.qual == NULL && !confirm_group(state, g))
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
	if (node->ss.ps.qual != NULL && !confirm_group(state, g))
		return false;
	if (kept_behind_quals(state->kept))
		kept_put(state->kept, slot);
	state->run.ntuples++;
	return true;
}

/*
 * Stores the next kept group of an earlier scan in the slot; returns false if there is none.  Sets
 * *passed to whether it passes the quals.
 */
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

/* Ensures that there are chosen groups that were not returned yet; false at the end. */
static bool
have_groups(GpuAggState *state)
{
	while (state->run.next_group >= state->run.nchosen)
	{
		CHECK_FOR_INTERRUPTS();
		if ((state->kept && kept_is_complete(state->kept)) || !fetch_groups(state))
		{
			if (state->kept)
				kept_complete(state->kept);
			return false;
		}
	}
	return true;
}

/* Stores the next group that passes the quals in the slot; returns false at the end. */
static bool
next_tuple(GpuAggState *state, TupleTableSlot *slot)
{
	for (;;)
	{
		bool passed;

		CHECK_FOR_INTERRUPTS();
		ResetExprContext(state->css.ss.ps.ps_ExprContext);
		if (!read_kept(state, slot, &passed))
		{
			if (!have_groups(state))
				return false;
			passed = make_tuple(state, slot);
		}
		if (passed)
			return true;
	}
}

/* ExecCustomScan: returns the next tuple, or NULL at the end. */
static TupleTableSlot *
exec_scan(CustomScanState *node)
{
	TupleTableSlot *slot = node->ss.ss_ScanTupleSlot;

	if (!next_tuple((GpuAggState *) node, slot))
		return NULL;
	return node->ss.ps.ps_ProjInfo ? ExecProject(node->ss.ps.ps_ProjInfo) : slot;
}

/* ---- groups as rows of another scan's feed ------------------------------- */

/* GroupScanOps.is_scan */
static bool
is_group_scan(PlanState *node)
{
	return IsA(node, CustomScanState) && ((CustomScanState *) node)->methods == &exec_methods;
}

/*
 * Returns the next tuple as one row.  By-reference values are copied, as the expression context
 * that may own them is reset when the row is used.
 */
static void
next_row(GpuAggState *state, GroupRows *rows)
{
	TupleTableSlot *slot = state->css.ss.ss_ScanTupleSlot;
	TupleDesc desc = slot->tts_tupleDescriptor;
	MemoryContext old;

	rows->n = next_tuple(state, slot);
	if (rows->n == 0)
		return;
	if (state->row_cxt == NULL)
		state->row_cxt = AllocSetContextCreate(state->css.ss.ps.state->es_query_cxt, "gpuagg row",
											   ALLOCSET_DEFAULT_SIZES);
	MemoryContextReset(state->row_cxt);
	old = MemoryContextSwitchTo(state->row_cxt);
	rows->ncols = desc->natts;
	rows->values = palloc(sizeof(Datum) * (desc->natts + 1));
	rows->nulls = palloc(sizeof(bool) * (desc->natts + 1));
	memcpy((bool *) rows->nulls, slot->tts_isnull, sizeof(bool) * desc->natts);
	for (int c = 0; c < desc->natts; c++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, c);

		((Datum *) rows->values)[c] = slot->tts_isnull[c] ?
			(Datum) 0 :
			datumCopy(slot->tts_values[c], att->attbyval, att->attlen);
	}
	rows->which[0] = 0;
	MemoryContextSwitchTo(old);
}

/* GroupScanOps.next */
static void
next_rows(PlanState *node, GroupRows *rows)
{
	GpuAggState *state = (GpuAggState *) node;
	TupleTableSlot *slot = state->css.ss.ss_ScanTupleSlot;

	rows->n = 0;
	if (state->kept && kept_is_active(state->kept))
	{
		next_row(state, rows);
		return;
	}
	while (rows->n == 0 && have_groups(state))
	{
		int n = tuples_compute(state->tuples, state->run.next_group, &rows->values, &rows->nulls);
		bool all =
			filters_groups(state) ? group_filter_is_exact(state->filter) : node->qual == NULL;

		if (n == 0)
		{
			next_row(state, rows);
			return;
		}
		rows->ncols = slot->tts_tupleDescriptor->natts;
		for (int i = 0; i < n; i++)
		{
			rows->which[rows->n] = i;
			if (all)
			{
				rows->n++;
				continue;
			}
			CHECK_FOR_INTERRUPTS();
			ResetExprContext(node->ps_ExprContext);
			rows->n += make_tuple(state, slot);
		}
		if (all)
		{
			state->run.next_group += n;
			state->run.ntuples += n;
		}
	}
}

static const GroupScanOps group_scan_ops = {
	.is_scan = is_group_scan,
	.next = next_rows,
};

/* ---- rescan and end ---------------------------------------------------- */

/*
 * ReScanCustomScan: returns kept groups again if nothing has changed; otherwise resets engine and
 * feed, or closes them if parameters of the aggregates have changed.
 */
static void
rescan_scan(CustomScanState *node)
{
	GpuAggState *state = (GpuAggState *) node;
	Bitmapset *changed = node->ss.ps.chgParam;
	bool same;

	if (changed)
		UpdateChangedParamSet(state->child, changed);
	/* constants and parameters of the aggregates have not changed */
	same = !bms_overlap(changed, state->expr_params);
	if (state->kept && state->engine &&
		kept_rescan(state->kept, same && state->child->chgParam == NULL))
		return;
	if (state->engine && !same)
		close_scan(state);
	if (state->engine)
	{
		state->rescans++;
		state->counted += state->run.emitted + state->engine->left_out;
		state->engine->ops->reset(state->engine);
		state->feed->ops->rescan(state->feed);
	}
	else if (state->child->chgParam == NULL)
		ExecReScan(state->child);
	if (state->filter)
		group_filter_reset(state->filter);
	state->run = new_run;
}

/* EndCustomScan: closes the scan and the child plan, and drops kept groups. */
static void
end_scan(CustomScanState *node)
{
	GpuAggState *state = (GpuAggState *) node;

	if (state->kept)
		kept_end(state->kept);
	close_scan(state);
	ExecEndNode(state->child);
}
