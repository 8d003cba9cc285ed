/*
 * heap_groups.c
 *	  Groups of another custom scan as rows of the feed, without tuples.
 *
 * The subplan is that scan, or a SubqueryScan over it, as in SELECT n, count(*) FROM (SELECT k,
 * count(*) AS n FROM t GROUP BY k) GROUP BY n.  The scan returns its groups some at a time, as
 * arrays (GroupRows), after it has applied HAVING.  Its target list, and the qual and target list
 * of the SubqueryScan, are merged to expressions over the columns of these arrays, and run as
 * vector expressions.
 *
 * Stages of the table's ExprSet: first a stage for targets of the scan that may raise an error,
 * which core computes before it evaluates the quals; then the quals; last the outputs.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "utils/memutils.h"

#include "analysis/analysis.h"
#include "feed/heap.h"

struct HeapGroups
{
	PlanState *scan;      /* the custom scan */
	bool below_subquery;  /* the table's node is a SubqueryScan above it */
	bool counts_only;     /* no output and no qual reads a column */
	GroupRows rows;       /* at hand as HeapFeed.page */
	List *targets;        /* target entries of the node, over the scan's columns */
	List *before;         /* ExprRoots of the first stage */
	Vec ***columns;       /* [stage] columns that the stage reads first, up to a NULL */
	TupleTableSlot *slot; /* for core's evaluator */
};

static const GroupScanOps *group_scans = NULL;

void
feed_set_group_scans(const GroupScanOps *ops)
{
	group_scans = ops;
}

/* ---- which subplans ------------------------------------------------------------- */

PlanState *
heap_groups_scan(PlanState *node)
{
	PlanState *scan = IsA(node, SubqueryScanState) ? ((SubqueryScanState *) node)->subplan : node;

	return scan && IsA(scan, CustomScanState) && group_scans && group_scans->is_scan(scan) ? scan :
																							 NULL;
}

/* Walker: returns true at a column that is a whole row, or a system column. */
static bool
reads_whole_row(Node *node, void *context)
{
	if (node == NULL)
		return false;
	return (IsA(node, Var) && ((Var *) node)->varattno <= 0) ||
		expression_tree_walker(node, reads_whole_row, context);
}

/*
 * Returns whether an expression has something that forbids to merge it with others: a call of a
 * user's function or a subplan, which must not be repeated, or a column that is a whole row.
 */
static bool
stands_alone(Node *expr)
{
	return contain_subplans(expr) || expr_calls_users_function(expr) || reads_whole_row(expr, NULL);
}

const char *
heap_groups_unsupported_reason(PlanState *node, bool volatile_query)
{
	PlanState *scan = heap_groups_scan(node);
	Node *exprs[] = {(Node *) scan->plan->targetlist, (Node *) node->plan->targetlist,
					 node == scan ? NULL : (Node *) node->plan->qual};

	if (volatile_query)
		return "the query calls a volatile function";
	for (int i = 0; i < lengthof(exprs); i++)
		if (contain_volatile_functions(exprs[i]) || stands_alone(exprs[i]))
			return "expressions over the groups call functions of users, or have subplans or whole "
				   "rows";
	return NULL;
}

/* ---- compiling ------------------------------------------------------------------ */

/* What merge_expr() replaces. */
typedef struct MergeContext
{
	Index varno;   /* number that columns get: that of the node's relation */
	List *targets; /* columns of the SubqueryScan's child; NIL: columns are the scan's own */
} MergeContext;

/* Replaces columns of a SubqueryScan by the targets below, and gives columns their number. */
static Node *
merge_expr(Node *node, void *arg)
{
	const MergeContext *context = arg;

	if (node == NULL)
		return NULL;
	if (IsA(node, Var))
	{
		Var *var;

		if (context->targets != NIL)
			return copyObject(
				(Node *) list_nth_node(TargetEntry, context->targets, ((Var *) node)->varattno - 1)
					->expr);
		var = copyObject((Var *) node);
		var->varno = context->varno;
		return (Node *) var;
	}
	return expression_tree_mutator(node, merge_expr, arg);
}

/* ExprSet.load_row: stores the row in the slot where core's evaluator expects it. */
static void
load_row(void *owner, int row)
{
	HeapFeed *feed = owner;
	HeapGroups *groups = feed->table->groups;
	const GroupRows *rows = &groups->rows;
	size_t at = (size_t) rows->which[feed->rows.tuple[row]] * rows->ncols;
	TupleTableSlot *slot = groups->slot;

	ExecClearTuple(slot);
	memcpy(slot->tts_values, rows->values + at, rows->ncols * sizeof(Datum));
	memcpy(slot->tts_isnull, rows->nulls + at, rows->ncols * sizeof(bool));
	ExecStoreVirtualTuple(slot);
	feed->table->node->ps_ExprContext->ecxt_scantuple = slot;
}

HeapTable *
heap_groups_begin_table(HeapFeed *feed, PlanState *node)
{
	HeapTable *table = palloc0(sizeof(HeapTable));
	HeapGroups *groups = palloc0(sizeof(HeapGroups));
	PlanState *scan = heap_groups_scan(node);
	ParamListInfo params = node->state->es_param_list_info;
	List *quals = scan == node ? NIL : expr_order_quals(node->plan->qual, params);
	MergeContext merge = {.varno = ((Scan *) node->plan)->scanrelid};
	List *inner = (List *) merge_expr((Node *) scan->plan->targetlist, &merge);
	bool early;
	ListCell *lc;
	int q = 0;

	groups->scan = scan;
	groups->below_subquery = scan != node;
	groups->slot = ((ScanState *) scan)->ss_ScanTupleSlot;
	table->groups = groups;
	merge.targets = inner;
	groups->targets =
		scan == node ? inner : (List *) merge_expr((Node *) node->plan->targetlist, &merge);
	/* without quals, other checks come at the same time */
	early = quals != NIL && !expr_cannot_fail((Node *) inner, params);
	table->nquals = list_length(quals) + early;
	table->nstages = table->nquals + 1;
	table->set = expr_set_create(node, groups->slot->tts_tupleDescriptor, table->nstages,
								 feed->base.subplans);
	table->set->load_row = load_row;
	table->set->owner = feed;
	table->quals = palloc0(sizeof(ExprRoot *) * (table->nquals + 1));
	foreach (lc, groups->below_subquery ? inner : NIL)
	{
		Expr *expr = lfirst_node(TargetEntry, lc)->expr;

		if (IsA(expr, Var) || expr_cannot_fail((Node *) expr, params))
			continue;
		if (early)
			groups->before = lappend(groups->before, expr_add_root(table->set, expr, 0));
		else
			table->checks = lappend(table->checks, expr_add_root(table->set, expr, table->nquals));
	}
	q = early;
	foreach (lc, quals)
	{
		table->quals[q] = expr_add_root(table->set, (Expr *) merge_expr(lfirst(lc), &merge), q);
		q++;
	}
	return table;
}

List *
heap_groups_targets(const HeapTable *table)
{
	return table->groups->targets;
}

void
heap_groups_end_table(HeapFeed *feed, HeapTable *table)
{
	HeapGroups *groups = table->groups;

	groups->counts_only = table->nquals == 0 && table->checks == NIL;
	for (int c = 0; c < feed->batch.ncols; c++)
		groups->counts_only &= table->outputs[c].root == NULL;
	groups->columns = palloc0(sizeof(Vec **) * table->nstages);
	for (int s = 0; s < table->nstages; s++)
	{
		int n = 0;

		for (Vec *vec = table->set->stages[s].vecs; vec; vec = vec->next_of_stage)
			n += vec->attno != 0;
		groups->columns[s] = palloc0(sizeof(Vec *) * (n + 1));
		n = 0;
		for (Vec *vec = table->set->stages[s].vecs; vec; vec = vec->next_of_stage)
			if (vec->attno != 0)
				groups->columns[s][n++] = vec;
	}
}

/* ---- rows ----------------------------------------------------------------------- */

bool
heap_groups_next(HeapFeed *feed, HeapTable *table)
{
	HeapGroups *groups = table->groups;
	GroupRows *rows = &groups->rows;
	/* otherwise the feed's child, whose rows and time the feed counts itself */
	bool apart = groups->below_subquery || feed->append != NULL;
	CompatInstrumentation *upper =
		groups->below_subquery && feed->append ? table->node->instrument : NULL;
	CompatInstrumentation *instrument;

	if (groups->scan->chgParam != NULL)
		ExecReScan(groups->scan);
	instrument = apart ? groups->scan->instrument : NULL;
	if (upper)
		InstrStartNode(upper);
	if (instrument)
		InstrStartNode(instrument);
	group_scans->next(groups->scan, rows);
	if (instrument)
		InstrStopNode(instrument, groups->below_subquery ? rows->n : 0);
	if (upper)
		InstrStopNode(upper, 0);
	feed->page.ntuples = rows->n;
	return rows->n > 0;
}

/* Fills a column's vector; row i is at base[i] in the arrays, for the first column. */
static void
fill_column(Vec *vec, const GroupRows *rows, const size_t *base, int n)
{
	Datum values[EXPR_ROWS];
	bool nulls[EXPR_ROWS];

	for (int i = 0; i < n; i++)
	{
		size_t at = base[i] + vec->attno - 1;

		values[i] = rows->values[at];
		nulls[i] = rows->nulls[at];
	}
	heap_fill_datums(vec, n, values, nulls);
}

/* Fills the columns that a stage is the first to read. */
static void
fill_columns(HeapFeed *feed, HeapGroups *groups, int stage)
{
	const HeapRows *rows = &feed->rows;
	size_t base[EXPR_ROWS];

	if (groups->columns[stage][0] == NULL)
		return;
	for (int i = 0; i < rows->n; i++)
		base[i] = (size_t) groups->rows.which[rows->tuple[i]] * groups->rows.ncols;
	for (Vec **vec = groups->columns[stage]; *vec; vec++)
		fill_column(*vec, &groups->rows, base, rows->n);
}

/* Evaluates expressions whose results are not needed, where they may raise an error. */
static void
run_before(HeapTable *table, int n)
{
	ListCell *lc;

	foreach (lc, table->groups->before)
	{
		ExprRoot *root = lfirst(lc);
		bool isnull;

		for (int i = 0; i < n; i++)
			if (root->vec == NULL ||
				(!root->vec->all_values && root->vec->state[i] == VEC_FALLBACK))
				expr_evaluate_scalar(table->set, root, i, &isnull);
	}
}

/* Evaluates a qual, whose columns are filled, and drops the rows that fail it. */
static void
apply_qual(HeapFeed *feed, HeapTable *table, int q)
{
	HeapRows *rows = &feed->rows;
	uint16 sel[EXPR_ROWS];
	int n = heap_select_rows(feed, table, q, sel);

	if (n == rows->n)
		return;
	for (int i = 0; i < n; i++)
		rows->tuple[i] = rows->tuple[sel[i]];
	rows->n = n;
	if (n > 0)
		expr_compact(table->set, q, sel, n);
}

void
heap_groups_add(HeapFeed *feed, HeapTable *table, int room)
{
	HeapGroups *groups = table->groups;
	HeapRows *rows = &feed->rows;
	int first = feed->next_tuple;
	int n = Min(Min(room, feed->rows_per_step), feed->page.ntuples - first);
	int added;

	if (groups->counts_only)
	{
		n = Min(room, feed->page.ntuples - first);
		feed->next_tuple += n;
		feed->batch.nrows += n;
		return;
	}
	rows->n = n;
	rows->repeated = false;
	for (int i = 0; i < n; i++)
		rows->tuple[i] = first + i;
	for (int s = 0; s < table->nstages && rows->n > 0; s++)
	{
		if (s == table->nquals)
			heap_point_outputs(feed, table);
		fill_columns(feed, groups, s);
		expr_run(table->set, s, rows->n);
		if (s < table->nquals && table->quals[s] == NULL)
			run_before(table, rows->n);
		else if (s < table->nquals)
			apply_qual(feed, table, s);
	}
	n = heap_add_step(feed, table, n, &added);
	InstrCountFiltered1(table->node, n - added);
	MemoryContextReset(table->set->page_cxt);
}
