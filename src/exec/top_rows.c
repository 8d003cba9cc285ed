/*
 * top_rows.c
 *	  The custom scan that drops rows below window functions and DISTINCT ON.
 *
 * It returns rows of its child: those that the query may need, as plan/top_rows.c says.  A feed
 * makes batches of the child's rows, with all columns, and groups/best_rows.c decides.  Rows that
 * it passes on are returned at once, and kept rows after the last batch.
 *
 * BeginCustomScan initializes the child alone.  Spec, feed and groups are opened for the first
 * tuple, in one memory context.  In a parallel plan each participant drops rows of its own part of
 * the child's rows; they share only what the feed shares, and statistics.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "executor/nodeHash.h"
#include "miscadmin.h"
#include "nodes/extensible.h"
#include "nodes/nodeFuncs.h"
#include "port/atomics.h"
#include "storage/spin.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/ruleutils.h"

#include "common/compat.h"
#include "common/integers.h"
#include "common/progress.h"
#include "common/stats.h"
#include "engines/engines.h"
#include "exec/exec.h"
#include "exec/top_rows.h"
#include "expr/expr.h"
#include "feed.h"
#include "groups/best_rows.h"
#include "key_spec.h"
#include "plan/top_rows.h"
#include "settings.h"

/* What one participant, or all together, have done. */
typedef struct TopRowsStats
{
	uint64 rows;     /* rows that the child returned */
	uint64 groups;   /* groups of these rows; each participant counts its own */
	uint64 returned; /* rows that were not dropped */
	uint64 memory;   /* most bytes in use; the largest one of all participants */
	int participants;
	FeedStats feed;
} TopRowsStats;

/* Shared memory of a parallel plan.  The FeedShared follows. */
typedef struct TopRowsShared
{
	slock_t mutex;
	TopRowsStats stats; /* what the participants that have ended have done */
} TopRowsShared;

typedef enum TopRowsPhase
{
	TOP_ROWS_READ,   /* batches are read */
	TOP_ROWS_RETURN, /* kept rows are returned */
	TOP_ROWS_DONE
} TopRowsPhase;

typedef struct TopRowsState
{
	CustomScanState css; /* must be first */
	TopRowsPlan *plan;
	PlanState *child;
	ExprState *bound; /* NULL: DISTINCT ON */
	ExprSubplans subplans;

	/* Opened for the first tuple, in cxt; NULL before. */
	MemoryContext cxt;
	AggSpec *spec;
	BestSpec best;
	BestRows *rows;
	Feed *feed;
	bool drops; /* the bound is small enough to drop rows */

	/* Progress of the scan. */
	struct Progress *progress;
	bool begun;   /* a batch has been asked for */
	bool bounded; /* best.n and `drops` have been set */
	TopRowsPhase phase;
	const Batch *batch;
	const uint32 *passed; /* rows of the batch that are to be returned; NULL: all */
	int npassed;
	int next_passed;

	/* Statistics: `stats` until the last end of a scan, without the current one. */
	uint64 scans;
	instr_time elapsed;
	TopRowsStats stats;
	uint64 returned; /* rows that the current scan has returned */

	/* In a parallel plan. */
	TopRowsShared *shared;
	FeedShared *shared_feed;
	FeedShared *feed_choices; /* the leader's, of the first scan */
	bool have_totals;
	TopRowsStats totals; /* what all participants have done */
} TopRowsState;

static Node *create_state(CustomScan *cscan);
static void begin_scan(CustomScanState *node, EState *estate, int eflags);
static TupleTableSlot *exec_scan(CustomScanState *node);
static void end_scan(CustomScanState *node);
static void rescan_scan(CustomScanState *node);
static Size estimate_shared(CustomScanState *node, ParallelContext *pcxt);
static void initialize_shared(CustomScanState *node, ParallelContext *pcxt, void *coordinate);
static void reinitialize_shared(CustomScanState *node, ParallelContext *pcxt, void *coordinate);
static void initialize_worker(CustomScanState *node, shm_toc *toc, void *coordinate);
static void shutdown_scan(CustomScanState *node);
static void explain_top_rows(CustomScanState *node, List *ancestors, ExplainState *es);

static const CustomScanMethods scan_methods = {
	.CustomName = TOP_ROWS_NAME,
	.CreateCustomScanState = create_state,
};

static const CustomExecMethods exec_methods = {
	.CustomName = TOP_ROWS_NAME,
	.BeginCustomScan = begin_scan,
	.ExecCustomScan = exec_scan,
	.EndCustomScan = end_scan,
	.ReScanCustomScan = rescan_scan,
	.EstimateDSMCustomScan = estimate_shared,
	.InitializeDSMCustomScan = initialize_shared,
	.ReInitializeDSMCustomScan = reinitialize_shared,
	.InitializeWorkerCustomScan = initialize_worker,
	.ShutdownCustomScan = shutdown_scan,
	.ExplainCustomScan = explain_top_rows,
};

void
top_rows_register(void)
{
	RegisterCustomScanMethods(&scan_methods);
}

/* CreateCustomScanState: returns a new state. */
static Node *
create_state(CustomScan *cscan)
{
	TopRowsState *state = palloc0(sizeof(TopRowsState));

	NodeSetTag(state, T_CustomScanState);
	state->css.methods = &exec_methods;
	return (Node *) state;
}

/* BeginCustomScan: decodes the plan, and initializes the child and the bound. */
static void
begin_scan(CustomScanState *node, EState *estate, int eflags)
{
	TopRowsState *state = (TopRowsState *) node;
	CustomScan *cscan = (CustomScan *) node->ss.ps.plan;

	/* the child is only read forward, perhaps several times */
	eflags &= ~(EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK);
	state->plan = top_rows_decode(cscan);
	state->child = ExecInitNode(linitial(cscan->custom_plans), estate, eflags);
	node->custom_ps = list_make1(state->child);
	if (!state->plan->distinct)
		state->bound = ExecInitExpr(linitial(cscan->custom_exprs), &node->ss.ps);
}

/* ---- opening ------------------------------------------------------------ */

/* Returns the expression of a column of the child. */
static Expr *
column_expr(const TopRowsState *state, int column)
{
	CustomScan *cscan = (CustomScan *) state->css.ss.ps.plan;

	return list_nth_node(TargetEntry, cscan->custom_scan_tlist, column)->expr;
}

/* Builds the spec: the keys, and all columns of the child. */
static void
build_spec(TopRowsState *state)
{
	TopRowsPlan *plan = state->plan;
	BestSpec *best = &state->best;
	TupleDesc desc = ExecGetResultType(state->child);
	AggSpec *spec = palloc0(sizeof(AggSpec));
	int *scales = palloc(sizeof(int) * (desc->natts + 1));

	for (int c = 0; c < desc->natts; c++)
		scales[c] = -1;
	spec->usual_scale = scales;
	spec->needs_rows = true;
	spec->nkeys = plan->nkeys;
	spec->keys = palloc0(sizeof(KeySpec) * (plan->nkeys + 1));
	for (int k = 0; k < plan->nkeys; k++)
		key_spec_init(spec, &spec->keys[k], (Node *) column_expr(state, plan->key_column[k]),
					  plan->key_column[k], plan->key_eq[k], plan->key_hash[k],
					  plan->key_collation[k]);
	best->ncolumns = desc->natts;
	best->columns = palloc0(sizeof(BestColumn) * (desc->natts + 1));
	for (int c = 0; c < desc->natts; c++)
	{
		ColumnSpec col = spec_plain_column(c, TupleDescAttr(desc, c));

		best->columns[c].col = spec_add_column(spec, &col);
		best->columns[c].typlen = col.typlen;
		best->columns[c].typbyval = col.typbyval;
	}
	state->spec = spec;
}

/* Sets the order columns of state->best. */
static void
build_order(TopRowsState *state)
{
	TopRowsPlan *plan = state->plan;
	BestSpec *best = &state->best;

	best->kind = plan->kind;
	best->norder = plan->norder;
	best->order = plan->order_column;
	best->sorts = palloc0(sizeof(SortSupportData) * (plan->norder + 1));
	for (int o = 0; o < plan->norder; o++)
	{
		SortSupport sort = &best->sorts[o];

		sort->ssup_cxt = state->cxt;
		sort->ssup_collation = plan->order_collation[o];
		sort->ssup_nulls_first = plan->order_nulls_first[o];
		sort->ssup_attno = plan->order_column[o] + 1;
		PrepareSortSupportFromOrderingOp(plan->order_op[o], sort);
	}
	best->coded = plan->norder > 0 && plan->order_coded[0];
	best->desc = plan->norder > 0 && plan->order_desc[0];
}

/* Returns why the feed takes tuples from the child plan, or NULL if it reads heap pages. */
static const char *
tuples_reason(TopRowsState *state)
{
	if (gpuagg_feed == GPUAGG_FEED_TUPLES)
		return "gpuagg.feed is tuples";
	return feed_pages_unsupported_reason(state->child, false);
}

/* Opens the feed, in the current context. */
static void
open_feed(TopRowsState *state)
{
	FeedShared *shared = state->shared_feed;
	bool pages = shared ? feed_shared_pages(shared) : tuples_reason(state) == NULL;
	int natts = state->best.ncolumns;
	int *resnos = palloc(sizeof(int) * (natts + 1));
	ExprState **constants = palloc0(sizeof(ExprState *) * (natts + 1));

	for (int c = 0; c < natts; c++)
		resnos[c] = c + 1;
	state->feed = feed_open(state->child, pages, false, state->spec, resnos, constants,
							state->css.ss.ps.ps_ExprContext, gpuagg_batch_rows);
	state->feed->shared = &state->shared_feed;
	state->feed->subplans = &state->subplans;
	state->feed->guarded = state->plan->guarded;
}

/* Opens spec, feed and groups. */
static void
open_scan(TopRowsState *state)
{
	MemoryContext old;

	state->cxt = AllocSetContextCreate(state->css.ss.ps.state->es_query_cxt, TOP_ROWS_NAME,
									   ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(state->cxt);
	build_spec(state);
	build_order(state);
	state->rows = best_rows_create(state->cxt, state->spec, &state->best,
								   Max(gpuagg_batch_rows, 256), get_hash_memory_limit());
	open_feed(state);
	MemoryContextSwitchTo(old);
}

/* ---- running ------------------------------------------------------------ */

/* Sets best.n and `drops` by the value of the bound. */
static void
evaluate_bound(TopRowsState *state)
{
	ExprContext *econtext = state->css.ss.ps.ps_ExprContext;
	int64 n = 1;
	bool isnull = false;
	Datum value;

	state->bounded = true;
	if (state->bound)
	{
		value = ExecEvalExprSwitchContext(state->bound, econtext, &isnull);
		n = isnull ? 1 : integer_of_type(exprType((Node *) state->bound->expr), value);
	}
	/* if no row is needed, the nodes above drop the rest */
	if (n < 1)
		n = 1;
	else if (state->plan->below)
		n = Max(n - 1, 1);
	state->drops = n <= BEST_MOST;
	state->best.n = (int) Min(n, BEST_MOST);
}

/*
 * Reads the next batch, and decides which of its rows are returned at once.  The bound may be a
 * subquery that raises an error.  Core evaluates it for the first row, and never if there is none.
 */
static void
read_batch(TopRowsState *state)
{
	state->batch = state->feed->ops->next(state->feed);
	if (state->batch && !state->bounded)
		evaluate_bound(state);
	state->next_passed = state->npassed = 0;
	state->passed = NULL;
	if (state->batch == NULL)
		state->phase = state->drops ? TOP_ROWS_RETURN : TOP_ROWS_DONE;
	else if (state->drops)
		state->npassed = best_rows_add(state->rows, state->batch, &state->passed);
	else
		state->npassed = state->batch->nrows;
}

/* Reads batches until there are rows to return. */
static void
fetch_rows(TopRowsState *state)
{
	instr_time start, end;

	if (state->progress == NULL)
		state->progress = progress_create(state->css.ss.ps.state->es_query_cxt);
	INSTR_TIME_SET_CURRENT(start);
	progress_enter(state->progress);
	if (state->feed == NULL)
		open_scan(state);
	if (!state->begun)
	{
		state->begun = true;
		progress_phase(PROGRESS_SCANNING);
	}
	do
	{
		CHECK_FOR_INTERRUPTS();
		read_batch(state);
	} while (state->phase == TOP_ROWS_READ && state->npassed == 0);
	progress_groups(best_rows_groups(state->rows));
	if (state->phase != TOP_ROWS_READ)
		progress_phase(PROGRESS_RETURNING);
	progress_leave(state->progress);
	INSTR_TIME_SET_CURRENT(end);
	INSTR_TIME_ACCUM_DIFF(state->elapsed, end, start);
}

/* Sets the slot's values to those of the next row; false if there are no more. */
static bool
next_row(TopRowsState *state, TupleTableSlot *slot)
{
	for (;;)
	{
		if (state->next_passed < state->npassed)
		{
			int i = state->next_passed++;

			best_rows_read(state->rows, state->batch, state->passed ? (int) state->passed[i] : i,
						   slot->tts_values, slot->tts_isnull);
			return true;
		}
		if (state->phase == TOP_ROWS_RETURN)
		{
			if (best_rows_next(state->rows, slot->tts_values, slot->tts_isnull))
				return true;
			state->phase = TOP_ROWS_DONE;
		}
		if (state->phase == TOP_ROWS_DONE)
			return false;
		fetch_rows(state);
	}
}

/* ExecCustomScan: returns the next tuple, or NULL at the end. */
static TupleTableSlot *
exec_scan(CustomScanState *node)
{
	TopRowsState *state = (TopRowsState *) node;
	ExprContext *econtext = node->ss.ps.ps_ExprContext;
	TupleTableSlot *slot = node->ss.ss_ScanTupleSlot;

	CHECK_FOR_INTERRUPTS();
	ResetExprContext(econtext);
	ExecClearTuple(slot);
	if (!next_row(state, slot))
		return NULL;
	ExecStoreVirtualTuple(slot);
	state->returned++;
	econtext->ecxt_scantuple = slot;
	return node->ss.ps.ps_ProjInfo ? ExecProject(node->ss.ps.ps_ProjInfo) : slot;
}

/* Adds the statistics of the current scan to state->stats. */
static void
end_statistics(TopRowsState *state)
{
	TopRowsStats *stats = &state->stats;

	if (state->feed == NULL || !state->begun)
		return;
	state->scans++;
	stats->rows += state->feed->rows;
	stats->groups += best_rows_groups(state->rows);
	stats->returned += state->returned;
	stats->memory = Max(stats->memory, best_rows_memory(state->rows));
	stats->feed = state->feed->stats;
	state->returned = 0;
	state->begun = false;
}

/* ReScanCustomScan: forgets the rows, and makes the feed start again. */
static void
rescan_scan(CustomScanState *node)
{
	TopRowsState *state = (TopRowsState *) node;

	if (node->ss.ps.chgParam)
		UpdateChangedParamSet(state->child, node->ss.ps.chgParam);
	end_statistics(state);
	if (state->feed)
	{
		best_rows_reset(state->rows);
		state->feed->ops->rescan(state->feed);
	}
	else if (state->child->chgParam == NULL)
		ExecReScan(state->child);
	state->batch = NULL;
	state->npassed = state->next_passed = 0;
	state->begun = state->bounded = false;
	state->phase = TOP_ROWS_READ;
}

/* Counts the scans of this process, or of a parallel plan, for gpuagg_stats. */
static void
count_scans(TopRowsState *state)
{
	const TopRowsStats *stats = state->have_totals ? &state->totals : &state->stats;
	StatsKey key = {.event = STATS_TAKEN, .engine = engines_default()->name};
	StatsCount count = {.calls = Max(state->scans, 1),
						.rows = stats->rows,
						.groups = stats->groups,
						.ms = INSTR_TIME_GET_MILLISEC(state->elapsed),
						.query_id = (int64) state->css.ss.ps.state->es_plannedstmt->queryId};
	const char *tuples;

	if (IsParallelWorker() || (state->scans == 0 && !state->have_totals))
		return;
	tuples = tuples_reason(state);
	key.feed = tuples ? "tuples" : "heap";
	/* the number of rows may depend on hidden rows */
	if (state->plan->guarded)
		count.rows = 0;
	stats_add(&key, &count);
	if (tuples == NULL)
		return;
	key.event = STATS_FEED;
	key.reason = tuples;
	stats_add(&key, &count);
}

/* EndCustomScan: closes the scan and the child plan. */
static void
end_scan(CustomScanState *node)
{
	TopRowsState *state = (TopRowsState *) node;

	end_statistics(state);
	count_scans(state);
	if (state->feed)
		state->feed->ops->end(state->feed);
	state->feed = NULL;
	if (state->cxt)
		MemoryContextDelete(state->cxt);
	state->cxt = NULL;
	ExecEndNode(state->child);
}

/* ---- parallel plans ------------------------------------------------------- */

/* Returns what the participants share about the feed. */
static FeedShared *
find_feed_shared(TopRowsShared *shared)
{
	return (FeedShared *) ((char *) shared + MAXALIGN(sizeof(TopRowsShared)));
}

/* EstimateDSMCustomScan: returns the bytes of shared memory. */
static Size
estimate_shared(CustomScanState *node, ParallelContext *pcxt)
{
	return MAXALIGN(sizeof(TopRowsShared)) + feed_shared_size(((TopRowsState *) node)->child);
}

/* InitializeDSMCustomScan: in the leader.  The feed's choices are those of the first scan. */
static void
initialize_shared(CustomScanState *node, ParallelContext *pcxt, void *coordinate)
{
	TopRowsState *state = (TopRowsState *) node;
	TopRowsShared *shared = coordinate;
	Size size = feed_shared_size(state->child);

	memset(shared, 0, sizeof(TopRowsShared));
	SpinLockInit(&shared->mutex);
	state->shared = shared;
	state->shared_feed = find_feed_shared(shared);
	feed_shared_init(state->shared_feed, state->child, tuples_reason(state) == NULL, false);
	if (state->feed_choices)
		feed_shared_copy_choices(state->shared_feed, state->feed_choices);
	else
	{
		state->feed_choices = MemoryContextAlloc(node->ss.ps.state->es_query_cxt, size);
		memcpy(state->feed_choices, state->shared_feed, size);
	}
}

/* ReInitializeDSMCustomScan: prepares a rescan, in the leader. */
static void
reinitialize_shared(CustomScanState *node, ParallelContext *pcxt, void *coordinate)
{
	feed_shared_reset(find_feed_shared(coordinate), node->ss.ps.state->es_query_dsa);
}

/* InitializeWorkerCustomScan: finds the shared memory, in a worker. */
static void
initialize_worker(CustomScanState *node, shm_toc *toc, void *coordinate)
{
	TopRowsState *state = (TopRowsState *) node;

	state->shared = coordinate;
	state->shared_feed = find_feed_shared(state->shared);
}

/*
 * ShutdownCustomScan: adds this process's statistics to the totals, and copies the totals.  The
 * shared memory may be gone when EXPLAIN prints them.
 */
static void
shutdown_scan(CustomScanState *node)
{
	TopRowsState *state = (TopRowsState *) node;
	TopRowsShared *shared = state->shared;
	bool ran = state->feed != NULL && state->begun;

	if (shared == NULL)
		return;
	end_statistics(state);
	SpinLockAcquire(&shared->mutex);
	if (ran)
	{
		shared->stats.rows += state->stats.rows;
		shared->stats.groups += state->stats.groups;
		shared->stats.returned += state->stats.returned;
		shared->stats.memory = Max(shared->stats.memory, state->stats.memory);
		shared->stats.participants++;
		feed_stats_add(&shared->stats.feed, &state->stats.feed);
	}
	state->totals = shared->stats;
	SpinLockRelease(&shared->mutex);
	state->have_totals = state->totals.participants > 0;
	state->shared = NULL;
	state->shared_feed = NULL;
}

/* ---- EXPLAIN --------------------------------------------------------------- */

/* Returns the number of rows of a group, or the rank, that is needed, as a text. */
static char *
bound_text(TopRowsState *state, List *context, bool prefix)
{
	CustomScan *cscan = (CustomScan *) state->css.ss.ps.plan;
	Node *bound;

	if (state->plan->distinct)
		return "1";
	bound = linitial(cscan->custom_exprs);
	if (IsA(bound, Const) && !((Const *) bound)->constisnull)
		return psprintf(INT64_FORMAT,
						integer_of_type(exprType(bound), ((Const *) bound)->constvalue) -
							state->plan->below);
	return psprintf("%s%s", deparse_expression(bound, context, prefix, true),
					state->plan->below ? " - 1" : "");
}

/* Prints which rows of a group are needed. */
static void
explain_order(TopRowsState *state, List *context, bool prefix, ExplainState *es)
{
	static const char *const kinds[] = {"row_number", "rank", "dense_rank"};
	TopRowsPlan *plan = state->plan;
	StringInfoData text;

	initStringInfo(&text);
	appendStringInfo(&text, "%s %s", kinds[plan->kind], bound_text(state, context, prefix));
	for (int o = 0; o < plan->norder; o++)
	{
		bool desc = state->plan->order_reversed[o];

		appendStringInfo(&text, "%s%s%s", o > 0 ? ", " : " by ",
						 deparse_expression((Node *) column_expr(state, plan->order_column[o]),
											context, prefix, true),
						 desc ? " DESC" : "");
		if (desc != plan->order_nulls_first[o])
			appendStringInfoString(&text,
								   plan->order_nulls_first[o] ? " NULLS FIRST" : " NULLS LAST");
	}
	ExplainPropertyText("Top-N", text.data, es);
}

/* Prints how rows are read. */
static void
explain_feed(TopRowsState *state, const TopRowsStats *stats, ExplainState *es)
{
	const char *why = tuples_reason(state);
	const FeedStats *feed = stats ? &stats->feed : NULL;

	if (state->feed)
		state->feed->ops->explain(state->feed, feed, es);
	else
		feed_describe(state->child, why == NULL, false, feed, es);
	if (why != NULL && es->verbose)
		ExplainPropertyText("Heap Feed", psprintf("no: %s", why), es);
}

/* ExplainCustomScan: in guarded plans, counts may depend on hidden rows and are not printed. */
static void
explain_top_rows(CustomScanState *node, List *ancestors, ExplainState *es)
{
	TopRowsState *state = (TopRowsState *) node;
	bool prefix = compat_explain_rtable_size(es) > 1 || es->verbose;
	List *context = set_deparse_context_plan(es->deparse_cxt, node->ss.ps.plan, ancestors);
	List *keys = NIL;
	const TopRowsStats *stats = NULL;

	for (int k = 0; k < state->plan->nkeys; k++)
		keys = lappend(keys,
					   deparse_expression((Node *) column_expr(state, state->plan->key_column[k]),
										  context, prefix, true));
	ExplainPropertyList("Group Key", keys, es);
	explain_order(state, context, prefix, es);
	if (es->analyze && !state->plan->guarded)
	{
		if (!state->have_totals)
			end_statistics(state);
		stats = state->have_totals ? &state->totals : &state->stats;
	}
	explain_feed(state, stats, es);
	if (es->analyze && state->plan->guarded)
		ExplainPropertyText("Counts", "not told, as rows may be hidden", es);
	if (stats == NULL)
		return;
	ExplainPropertyUInteger("Input Rows", NULL, stats->rows, es);
	ExplainPropertyUInteger("Groups", NULL, stats->groups, es);
	ExplainPropertyUInteger("Rows Dropped", NULL, stats->rows - stats->returned, es);
	ExplainPropertyUInteger("Memory", "kB", (stats->memory + 1023) / 1024, es);
	if (state->have_totals)
		ExplainPropertyInteger("Participants", NULL, stats->participants, es);
}
