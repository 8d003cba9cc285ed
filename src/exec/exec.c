/*
 * exec.c
 *	  The custom scan's executor: feed, engine, groups, tuples.
 *
 * BeginCustomScan only initializes the child plan; what the query needs (spec,
 * engine, feed) is opened when the first tuple is asked for, so that EXPLAIN
 * starts nothing and parameters have their values.  It lives in one memory
 * context, which is deleted at the end, and when a rescan brings other
 * parameters to the aggregates.
 *
 * An engine that fails before a group has been emitted is replaced by the
 * CPU engine and the input is read again, unless other participants share it
 * or volatile functions make it.
 * One that does not even open is replaced in any case: no row has been read.
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "executor/executor.h"
#include "executor/nodeHash.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/typcache.h"

#include "engine_cuda/engine_cuda.h"
#include "exec/exec.h"
#include "feed/ordered.h"
#include "gpuagg.h"
#include "common/progress.h"

#define PROGRESS_BATCHES 16

static Node *create_state(CustomScan *cscan);
static void begin_scan(CustomScanState *node, EState *estate, int eflags);
static TupleTableSlot *exec_scan(CustomScanState *node);
static void end_scan(CustomScanState *node);
static void rescan_scan(CustomScanState *node);

const CustomScanMethods gpuagg_scan_methods = {
	.CustomName = "GpuAgg",
	.CreateCustomScanState = create_state
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
	.ExplainCustomScan = explain_scan
};

void
exec_register(void)
{
	RegisterCustomScanMethods(&gpuagg_scan_methods);
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
}

/* ---- opening ----------------------------------------------------------- */

/* Equality functions that compare the bits of integer-like columns. */
static bool
compares_bits(Oid eqfunc)
{
	switch (eqfunc)
	{
		case F_BOOLEQ:
		case F_CHAREQ:
		case F_INT2EQ:
		case F_INT4EQ:
		case F_INT8EQ:
		case F_OIDEQ:
		case F_DATE_EQ:
		case F_TIME_EQ:
		case F_TIMESTAMP_EQ:
		case F_TIMESTAMPTZ_EQ:
		case F_CASH_EQ:
		case F_ENUM_EQ:
			return true;
		default:
			return false;
	}
}

/*
 * May values of a key be equal and look different?  Asks the type's btree
 * operator class, as nbtree does before it deduplicates; without an answer they
 * may.
 */
static bool
key_varies(Oid type, Oid eqfunc, Oid collation)
{
	TypeCacheEntry *entry = lookup_type_cache(type, TYPECACHE_BTREE_OPFAMILY);
	Oid			eqop,
				proc;

	/* its operator class trusts that all are padded alike */
	if (eqfunc == F_BPCHAREQ || !OidIsValid(entry->btree_opf))
		return true;
	/* no collation was to be had: it is not asked about */
	if (!OidIsValid(collation) && type_is_collatable(type))
		return true;
	eqop = get_opfamily_member(entry->btree_opf, entry->btree_opintype, entry->btree_opintype,
							   BTEqualStrategyNumber);
	if (!OidIsValid(eqop) || get_opcode(eqop) != eqfunc)
		return true;
	proc = get_opfamily_proc(entry->btree_opf, entry->btree_opintype, entry->btree_opintype,
							 BTEQUALIMAGE_PROC);
	return !OidIsValid(proc) ||
		!DatumGetBool(OidFunctionCall1Coll(proc, collation, ObjectIdGetDatum(entry->btree_opintype)));
}

/* A key travels in its natural column where the engine can compare it there. */
static void
build_key(GpuAggState *state, AggSpec *spec, int k)
{
	GpuAggPlan *plan = state->plan;
	CustomScan *cscan = (CustomScan *) state->css.ss.ps.plan;
	Node	   *expr = (Node *) list_nth_node(TargetEntry, cscan->custom_scan_tlist, k)->expr;
	KeySpec    *key = &spec->keys[k];
	ColumnSpec	col = {0};

	col.input = plan->key_input[k];
	col.typid = exprType(expr);
	col.typmod = exprTypmod(expr);
	col.collation = exprCollation(expr);
	get_typlenbyval(col.typid, &col.typlen, &col.typbyval);
	col.type = spec_column_type(col.typid, col.typmod, &col.scale);
	key->eqfunc = plan->key_eq[k];
	key->hashfunc = plan->key_hash[k];
	key->collation = plan->key_collation[k];
	if (column_is_float(col.type) && (key->eqfunc == F_FLOAT4EQ || key->eqfunc == F_FLOAT8EQ))
		key->kind = KEY_FLOAT;
	else if (column_is_integer(col.type) && compares_bits(key->eqfunc))
		key->kind = KEY_RAW;
	else
	{
		key->kind = KEY_DATUM;
		col.type = COLUMN_DATUM;
		col.scale = 0;
	}
	key->varies = key->kind != KEY_RAW && key_varies(col.typid, key->eqfunc, key->collation);
	key->col = spec_add_column(spec, &col);
}

/* The columns that the feed sorts by. */
static void
build_order(GpuAggState *state, AggSpec *spec)
{
	GpuAggPlan *plan = state->plan;
	TupleDesc	child = ExecGetResultType(state->child);

	spec->norder = plan->norder;
	spec->order = palloc0(sizeof(OrderSpec) * (plan->norder + 1));
	for (int o = 0; o < plan->norder; o++)
	{
		ColumnSpec	col = {.input = plan->order[3 * o]};

		col.typid = TupleDescAttr(child, plan->input_resno[col.input] - 1)->atttypid;
		col.typid = getBaseType(col.typid);
		col.typmod = -1;
		get_typlenbyval(col.typid, &col.typlen, &col.typbyval);
		col.type = spec_column_type(col.typid, col.typmod, &col.scale);
		spec->order[o].col = spec_add_column(spec, &col);
		spec->order[o].desc = plan->order[3 * o + 1];
		spec->order[o].nulls_first = plan->order[3 * o + 2];
	}
}

/* Translates the plan into a spec; aggregates evaluate their parameters here. */
static void
build_spec(GpuAggState *state, bool for_gpu)
{
	GpuAggPlan *plan = state->plan;
	CustomScan *cscan = (CustomScan *) state->css.ss.ps.plan;
	AggSpec    *spec = palloc0(sizeof(AggSpec));

	spec->for_gpu = for_gpu;
	spec->matrix_size = palloc0(sizeof(int));
	spec->nkeys = plan->nkeys;
	spec->keys = palloc0(sizeof(KeySpec) * (plan->nkeys + 1));
	for (int k = 0; k < plan->nkeys; k++)
		build_key(state, spec, k);
	build_order(state, spec);
	state->outputs = palloc0(sizeof(AggOutput *) * (plan->naggs + 1));
	for (int a = 0; a < plan->naggs; a++)
	{
		TargetEntry *tle = list_nth_node(TargetEntry, cscan->custom_scan_tlist, plan->nkeys + a);

		state->outputs[a] = aggmap_build(spec, castNode(Aggref, tle->expr), plan->agg_args[a],
										 plan->agg_filter[a], &state->css.ss.ps,
										 state->css.ss.ps.ps_ExprContext);
	}
	state->spec = spec;
}

/* The one place that chooses a feed: NULL for heap pages, else why it is tuples. */
const char *
exec_tuples_reason(GpuAggState *state)
{
	if (gpuagg_feed == GPUAGG_FEED_TUPLES)
		return "gpuagg.feed is tuples";
	return feed_heap_refusal(state->child, state->plan->read_once);
}

static Feed *
open_feed(GpuAggState *state)
{
	GpuAggPlan *plan = state->plan;
	CustomScan *cscan = (CustomScan *) state->css.ss.ps.plan;
	ExprState **constants = palloc0(sizeof(ExprState *) * (plan->ninputs + 1));
	Feed	   *feed;
	int			n = 0;

	for (int i = 0; i < plan->ninputs; i++)
	{
		if (plan->input_resno[i] == 0)
			constants[i] = ExecInitExpr(list_nth(cscan->custom_exprs, n++), &state->css.ss.ps);
	}
	feed = (exec_tuples_reason(state) ? feed_tuples_open : feed_heap_open)
		(state->child, state->spec, plan->input_resno, constants,
		 state->css.ss.ps.ps_ExprContext, gpuagg_batch_rows);
	feed->subplans = &state->subplans;
	/* the GPU sorts for itself */
	if (plan->norder > 0 && state->engine->ops == &engine_cpu_ops)
		feed = feed_ordered_open(feed, state->spec, get_hash_memory_limit(), gpuagg_batch_rows);
	return feed;
}

static Engine *
open_engine(GpuAggState *state, const EngineOps *ops)
{
	EngineEnv	env = {0};

	env.cxt = AllocSetContextCreate(state->cxt, "gpuagg engine", ALLOCSET_DEFAULT_SIZES);
	env.estate = state->css.ss.ps.state;
	env.mem_limit = get_hash_memory_limit();
	env.batch_rows = gpuagg_batch_rows;
	env.est_rows = state->plan->est_rows;
	env.est_groups = state->plan->est_groups;
	env.grouped = state->plan->grouped ||
		(ops == &engine_cpu_ops && state->plan->norder > 0 && state->plan->nkeys > 0);
	env.parallel = state->shared != NULL;
	env.read_once = state->plan->read_once;
	env.forced = gpuagg_strategy;
	return ops->open(state->spec, &env);
}

/* The spec for the CPU engine; participants of a parallel scan must be able to read each other's groups. */
static void
build_cpu_spec(GpuAggState *state)
{
	build_spec(state, state->shared && parallel_for_gpu(state));
}

static bool
gpu_in_sight(GpuAggState *state)
{
	return gpuagg_engine != GPUAGG_ENGINE_CPU &&
		engine_cuda_usable(NULL, state->engine_reason, sizeof(state->engine_reason));
}

/* The engine, with the spec that suits it. */
static const EngineOps *
choose_engine(GpuAggState *state)
{
	const EngineOps *ops;

	build_spec(state, state->shared ? parallel_for_gpu(state) : gpu_in_sight(state));
	ops = gpuagg_choose_engine(state->spec, state->plan->est_rows, state->plan->grouped,
							   state->engine_reason, sizeof(state->engine_reason));
	if (ops == &engine_cpu_ops && state->spec->for_gpu && state->shared == NULL)
		build_cpu_spec(state);
	return ops;
}

/* Looks ahead: leaves what is open, if anything is, as it was. */
bool
exec_chooses_gpu(GpuAggState *state)
{
	AggSpec    *spec = state->spec;
	AggOutput **outputs = state->outputs;
	MemoryContext cxt = AllocSetContextCreate(CurrentMemoryContext, "GpuAgg choice",
											  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(cxt);
	bool		gpu = gpu_in_sight(state);

	if (gpu)
	{
		build_spec(state, true);
		gpu = gpuagg_choose_engine(state->spec, state->plan->est_rows, state->plan->grouped,
								   state->engine_reason, sizeof(state->engine_reason)) != &engine_cpu_ops;
	}
	state->spec = spec;
	state->outputs = outputs;
	MemoryContextSwitchTo(old);
	MemoryContextDelete(cxt);
	return gpu;
}

/* The engine gave up; the CPU engine takes its place. */
static void
note_failure(GpuAggState *state)
{
	Engine	   *failed = state->engine;

	ereport(DEBUG1, (errmsg_internal("GpuAgg: engine \"%s\" failed: %s", failed->ops->name,
									 failed->failure)));
	snprintf(state->engine_reason, sizeof(state->engine_reason), "%s failed: %s",
			 failed->ops->name, failed->failure);
}

/* Before this process's first row; false if the engine failed. */
static bool
attach(GpuAggState *state)
{
	return state->engine->failure[0] == '\0' &&
		(state->shared == NULL || parallel_attach(state));
}

/* Opens spec, engine and feed: those of the CPU engine where `ops` is that, else as chosen. */
static void
open_scan(GpuAggState *state, const EngineOps *ops)
{
	MemoryContext old;

	state->cxt = AllocSetContextCreate(state->css.ss.ps.state->es_query_cxt, "GpuAgg",
									   ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(state->cxt);
	if (ops == &engine_cpu_ops)
		build_cpu_spec(state);
	else
		ops = choose_engine(state);
	state->engine = open_engine(state, ops);
	if (!attach(state))
	{
		note_failure(state);
		state->engine->ops->close(state->engine);
		build_cpu_spec(state);
		state->engine = open_engine(state, &engine_cpu_ops);
		attach(state);
	}
	state->feed = open_feed(state);
	MemoryContextSwitchTo(old);
}

static void
close_scan(GpuAggState *state)
{
	if (state->engine)
		state->engine->ops->close(state->engine);
	if (state->feed)
		state->feed->ops->end(state->feed);
	state->engine = NULL;
	state->feed = NULL;
	state->spec = NULL;
	state->outputs = NULL;
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

/* The engine failed: start over with the CPU engine. */
static void
fall_back(GpuAggState *state)
{
	Engine	   *failed = state->engine;

	if (state->emitted > 0 || state->shared || state->plan->read_once || failed->ops == &engine_cpu_ops)
		ereport(ERROR,
				(errcode(ERRCODE_EXTERNAL_ROUTINE_EXCEPTION),
				 errmsg("engine \"%s\" failed: %s", failed->ops->name, failed->failure),
				 state->emitted > 0 ? errdetail("Some groups were returned already.") :
				 state->shared ? errdetail("The rows of a parallel scan cannot be read again.") :
				 state->plan->read_once ? errdetail("Volatile functions cannot be called again.") : 0,
				 errhint("Run the query again, or set \"%s\" to \"cpu\".", "gpuagg.engine")));
	note_failure(state);
	close_scan(state);
	ExecReScan(state->child);
	open_scan(state, &engine_cpu_ops);
	state->finished = false;
}

/* All input of this process is in the engine. */
static EngineStatus
end_of_input(GpuAggState *state)
{
	state->finished = true;
	if (state->shared)
	{
		EngineStatus status = parallel_end_of_input(state);

		if (status != ENGINE_OK || state->silent)
			return status;
	}
	return state->engine->ops->finish(state->engine);
}

/* For the view gpuagg_progress, now and then. */
static void
report_groups(GpuAggState *state)
{
	EngineStats stats;

	state->engine->ops->stats(state->engine, &stats);
	progress_groups(stats.groups);
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
			bool		unrepresentable = column_is_unrepresentable(col, row);
			const char *value;
			size_t		size;

			if (column_is_null(col, row) || (col->type == COLUMN_DATUM ? column->typbyval : !unrepresentable))
				continue;
			value = DatumGetPointer(unrepresentable ? col->unrepresentable_values[row] : ((Datum *) col->values)[row]);
			size = unrepresentable || column->typlen == -1 ? VARSIZE_ANY(value) :
				column->typlen == -2 ? strlen(value) + 1 : column->typlen;
			for (size_t i = 0; i < size; i++)
				read = value[i];
		}
	}
}
#else
#define read_values(batch, spec) ((void) 0)
#endif

/* Runs until there are groups to emit; false when there are no more. */
static bool
fetch_groups(GpuAggState *state)
{
	if (state->engine == NULL)
		open_scan(state, NULL);
	else if (state->shared && state->participant < 0 && !attach(state))
	{
		note_failure(state);
		close_scan(state);
		open_scan(state, &engine_cpu_ops);
	}
	state->next_group = 0;
	state->groups.ngroups = 0;
	while (!state->silent)
	{
		const EngineOps *ops = state->engine->ops;
		EngineStatus status;
		Batch	   *batch;

		CHECK_FOR_INTERRUPTS();
		if (ops->next_groups(state->engine, &state->groups))
		{
			raise_errors(state);
			if (state->groups.ngroups == 0)
				continue;
			state->emitted += state->groups.ngroups;
			return true;
		}
		if (state->engine->failure[0] != '\0')
		{
			fall_back(state);
			continue;
		}
		if (state->finished)
			break;
		if (ops->bind_buffers && state->feed->batch)
			ops->bind_buffers(state->engine, state->feed->batch);
		batch = state->feed->ops->next(state->feed);
		if (batch)
			read_values(batch, state->spec);
		status = batch ? ops->add_batch(state->engine, batch) : end_of_input(state);
		if (status == ENGINE_FAILED)
			fall_back(state);
		raise_errors(state);
		if (batch && state->feed->batches % PROGRESS_BATCHES == 0)
			report_groups(state);
	}
	state->groups.ngroups = 0;
	return false;
}

/* Puts a group's keys and results into the scan slot. */
static void
store_group(GpuAggState *state, TupleTableSlot *slot, int g)
{
	GpuAggPlan *plan = state->plan;
	GroupBatch *groups = &state->groups;

	ExecClearTuple(slot);
	for (int k = 0; k < plan->nkeys; k++)
	{
		slot->tts_values[k] = groups->keys[k][g];
		slot->tts_isnull[k] = groups->keynulls[k][g];
	}
	for (int a = 0; a < plan->naggs; a++)
		slot->tts_values[plan->nkeys + a] =
			aggmap_finalize(state->outputs[a], groups, g, &slot->tts_isnull[plan->nkeys + a]);
	ExecStoreVirtualTuple(slot);
}

static TupleTableSlot *
exec_scan(CustomScanState *node)
{
	GpuAggState *state = (GpuAggState *) node;
	ExprContext *econtext = node->ss.ps.ps_ExprContext;
	TupleTableSlot *slot = node->ss.ss_ScanTupleSlot;

	for (;;)
	{
		MemoryContext old;

		CHECK_FOR_INTERRUPTS();
		ResetExprContext(econtext);
		if (state->next_group >= state->groups.ngroups && !fetch_groups(state))
			return NULL;
		old = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);
		store_group(state, slot, state->next_group++);
		MemoryContextSwitchTo(old);
		econtext->ecxt_scantuple = slot;
		if (!ExecQual(node->ss.ps.qual, econtext))
		{
			InstrCountFiltered1(node, 1);
			continue;
		}
		return node->ss.ps.ps_ProjInfo ? ExecProject(node->ss.ps.ps_ProjInfo) : slot;
	}
}

/* ---- rescan and end ---------------------------------------------------- */

static void
rescan_scan(CustomScanState *node)
{
	GpuAggState *state = (GpuAggState *) node;
	CustomScan *cscan = (CustomScan *) node->ss.ps.plan;

	if (node->ss.ps.chgParam)
		UpdateChangedParamSet(state->child, node->ss.ps.chgParam);
	/* constants and aggregates' parameters may have changed */
	if (state->engine && node->ss.ps.chgParam && cscan->custom_exprs != NIL)
		close_scan(state);
	if (state->engine)
	{
		state->engine->ops->reset(state->engine);
		state->feed->ops->rescan(state->feed);
	}
	else if (state->child->chgParam == NULL)
		ExecReScan(state->child);
	state->next_group = 0;
	state->groups.ngroups = 0;
	state->finished = false;
	state->silent = false;
	state->emitted = 0;
	state->participant = -1;
}

static void
end_scan(CustomScanState *node)
{
	GpuAggState *state = (GpuAggState *) node;

	close_scan(state);
	ExecEndNode(state->child);
}

bool
exec_stats(GpuAggState *state, EngineStats *stats)
{
	memset(stats, 0, sizeof(*stats));
	if (state->engine == NULL)
		return false;
	state->engine->ops->stats(state->engine, stats);
	/* an engine also counts groups that it has handed to other participants */
	stats->groups = state->emitted;
	return true;
}
