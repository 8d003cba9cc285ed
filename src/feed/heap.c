/*
 * heap.c
 *	  The feed that reads heap pages itself, instead of the executor.
 *
 * Taken where the child plan is a sequential scan of a heap table, or an Append
 * of such, perhaps with a projection on top.  The plan nodes below stay what
 * the planner made them: they open the tables, hold the quals, target lists and
 * scan descriptors, share blocks among parallel participants and prune
 * partitions; only nobody asks them for tuples.
 * Pages come from feed_heap_page.c, quals and target lists run as vectors
 * (expr.h), a page at a time: columns that a qual needs, the qual, the rows that
 * are left, the next qual, and so on; then the output columns, written in place
 * into the batch.
 *
 * Memory: the feed lives in the context it was opened in; by-reference values
 * of a batch in its arena, whose bytes end a batch; values of one page in the
 * expression set's page_cxt.
 * Errors release the pin with the resource owner.
 */
#include "postgres.h"

#include "access/tableam.h"
#include "access/transam.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/ruleutils.h"
#include "utils/snapmgr.h"

#include "columns/arena.h"
#include "columns/column_writer.h"
#include "columns/decimal.h"
#include "common/compat.h"
#include "feed.h"
#include "feed/heap.h"
#include "common/progress.h"

/* One column of the batch. */
typedef struct HeapOutput
{
	ColumnWriter writer;
	ExprState  *constant;		/* or NULL: a column of the scan */
	int			resno;
	int			previous;		/* output of the same resno in another form, or -1 */
} HeapOutput;

/* How one table yields an output. */
typedef struct HeapRoot
{
	ExprRoot   *root;
	bool		in_place;		/* it is computed into the batch */
	bool		follows;		/* written with the output before, as core computes it once for all */
	int			next;			/* output that follows this one, or -1 */
} HeapRoot;

/* One table. */
typedef struct HeapPart
{
	HeapScan   *scan;
	ExprSet    *set;
	int			nquals;
	ExprRoot  **quals;
	HeapRoot   *outputs;		/* [column of the batch] */
	List	   *checks;			/* ExprRoots that core would evaluate as well, for their errors */
	HeapColumns *columns;		/* [stage] */
	int			which;			/* of the Append's subplans */
	MemoryContext cxt;			/* of all this; NULL: kept until the feed ends */
} HeapPart;

/* Of so many tables everything is kept for rescans; of others only while they are read. */
#define KEPT_PARTS 64

typedef struct HeapFeed
{
	Feed		base;
	PlanState  *child;
	ResultState *result;		/* child, if it only projects an Append */
	AppendState *append;		/* that, or child; or NULL */
	HeapPart  **parts;			/* [subplan of append]; [0] without */
	HeapPart   *part;			/* being read */
	int			nkept;
	ExprContext *econtext;
	Batch		batch;
	HeapOutput *outputs;
	bool		constants_done;
	bool		begun;
	bool		done;
	HeapPage	page;
	int			next_tuple;		/* of the page */
	int			slice;			/* tuples to take at a time: few where values are long */
	HeapRows	rows;
	HeapTupleData tuple;		/* for core's evaluator */
	Arena		arena;
	MemoryContext cxt;
} HeapFeed;

/* ---- what can be read ------------------------------------------------------ */

/*
 * Expressions here are evaluated a page at a time, once for each use or never,
 * and by core again where vectors ask: a volatile one would tell.  What a
 * subplan calls is not seen from here, so it counts if anything in the query is.
 */
static const char *
refuse_expressions(PlanState *node, bool volatile_query)
{
	Node	   *exprs[] = {(Node *) node->plan->targetlist, (Node *) node->plan->qual};

	for (int i = 0; i < lengthof(exprs); i++)
	{
		if (contain_volatile_functions(exprs[i]))
			return "the input calls a volatile function";
		if (volatile_query && contain_subplans(exprs[i]))
			return "the input has a subplan, and the query calls a volatile function";
	}
	return NULL;
}

/* One reason not to, or NULL. */
static const char *
refuse_leaf(PlanState *node, bool volatile_query)
{
	Relation	rel;

	if (!IsA(node, SeqScanState))
		return "the input is not a sequential scan";
	rel = ((SeqScanState *) node)->ss.ss_currentRelation;
	if (rel->rd_tableam != GetHeapamTableAmRoutine())
		return "the table's access method is not heap";
	return refuse_expressions(node, volatile_query);
}

static bool
is_users_function(Oid funcid, void *context)
{
	return funcid >= FirstNormalObjectId;
}

/* Is there what a user would see called more often, or wait for? */
static bool
repeats_walker(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, SubPlan) || IsA(node, AlternativeSubPlan) ||
		check_functions_in_node(node, is_users_function, context))
		return true;
	return expression_tree_walker(node, repeats_walker, context);
}

/*
 * Above an Append each column of the projection is an expression of its own over
 * the table's columns: what a table's target list computes is part of all of them.
 */
static const char *
refuse_projected(PlanState *node)
{
	return repeats_walker((Node *) node->plan->targetlist, NULL) ?
		"a projection above the tables would repeat calls or subplans of their target lists" : NULL;
}

/* The Append, under the projection if there is one; or NULL. */
static AppendState *
find_append(PlanState *child)
{
	if (IsA(child, ResultState) && ((ResultState *) child)->resconstantqual == NULL &&
		child->qual == NULL && outerPlanState(child) != NULL)
		child = outerPlanState(child);
	return IsA(child, AppendState) ? (AppendState *) child : NULL;
}

const char *
feed_heap_refusal(PlanState *child, bool volatile_query)
{
	const char *why = NULL;
	EState	   *estate = child->state;
	AppendState *append = find_append(child);

	if (estate->es_epq_active)
		return "rows are being rechecked";
	if (estate->es_snapshot == NULL || !IsMVCCSnapshot(estate->es_snapshot))
		return "the snapshot is not an MVCC snapshot";
	if (append == NULL)
		return refuse_leaf(child, volatile_query);
	if (append->as_nasyncplans > 0)
		return "the input has foreign tables";
	if (child != &append->ps)
		why = refuse_expressions(child, volatile_query);
	for (int i = 0; i < append->as_nplans && why == NULL; i++)
	{
		why = refuse_leaf(append->appendplans[i], volatile_query);
		if (why == NULL && child != &append->ps)
			why = refuse_projected(append->appendplans[i]);
	}
	return why;
}

/* ---- compiling a table's quals and outputs --------------------------------- */

static void
load_row(void *owner, int row)
{
	HeapFeed   *feed = owner;
	HeapPage   *page = &feed->page;
	SeqScanState *node = feed->part->scan->node;
	int			t = feed->rows.tuple[row];

	feed->tuple.t_tableOid = RelationGetRelid(node->ss.ss_currentRelation);
	feed->tuple.t_data = heap_page_tuple(page, t);
	feed->tuple.t_len = ItemIdGetLength(PageGetItemId((Page) page->start, page->lines[t]));
	ItemPointerSet(&feed->tuple.t_self, page->block, page->lines[t]);
	ExecStoreBufferHeapTuple(&feed->tuple, node->ss.ss_ScanTupleSlot, page->buffer);
	node->ss.ps.ps_ExprContext->ecxt_scantuple = node->ss.ss_ScanTupleSlot;
}

/* Columns of an Append are those of its subplans, by number. */
static Node *
resolve_outer(Node *node, void *context)
{
	List	   *targetlist = context;

	if (node == NULL)
		return NULL;
	if (IsA(node, Var) && ((Var *) node)->varno == OUTER_VAR)
		return copyObject((Node *) list_nth_node(TargetEntry, targetlist,
												 ((Var *) node)->varattno - 1)->expr);
	return expression_tree_mutator(node, resolve_outer, context);
}

/* Column resno of the feed's child, over the table's columns. */
static Expr *
output_expr(const HeapFeed *feed, const HeapPart *part, int resno)
{
	List	   *targetlist = part->scan->node->ss.ps.plan->targetlist;
	Expr	   *expr;

	if (feed->result == NULL)
		return list_nth_node(TargetEntry, targetlist, resno - 1)->expr;
	expr = list_nth_node(TargetEntry, feed->result->ps.plan->targetlist, resno - 1)->expr;
	return (Expr *) resolve_outer((Node *) expr, targetlist);
}

/* A boolean made of bits that were none is for the compiler. */
static Expr *
strip_relabels(Expr *expr)
{
	while (IsA(expr, RelabelType) && exprType((Node *) expr) != BOOLOID)
		expr = ((RelabelType *) expr)->arg;
	return expr;
}

static void
add_check(HeapPart *part, Expr *expr)
{
	Expr	   *bare = strip_relabels(expr);

	if (!IsA(bare, Var) && !IsA(bare, Const))
		part->checks = lappend(part->checks, expr_add_root(part->set, expr, part->nquals));
}

/*
 * Core computes all targets of a plan node.  Those that no output shows, or only
 * as part of an expression that may pass over them, can still raise errors.
 */
static void
add_checks(HeapFeed *feed, HeapPart *part)
{
	List	   *top = feed->child->plan->targetlist;
	Bitmapset  *shown = NULL;
	ListCell   *lc;

	for (int c = 0; c < feed->batch.ncols; c++)
		if (feed->outputs[c].constant == NULL)
			shown = bms_add_member(shown, feed->outputs[c].resno);
	if (feed->append)
		foreach(lc, part->scan->node->ss.ps.plan->targetlist)
			if (feed->result || !bms_is_member(lfirst_node(TargetEntry, lc)->resno, shown))
				add_check(part, lfirst_node(TargetEntry, lc)->expr);
	if (feed->append == NULL || feed->result)
		foreach(lc, top)
			if (!bms_is_member(lfirst_node(TargetEntry, lc)->resno, shown))
				add_check(part, output_expr(feed, part, lfirst_node(TargetEntry, lc)->resno));
	bms_free(shown);
}

static ExprRoot *
output_root(HeapFeed *feed, HeapPart *part, const HeapOutput *output, int stage)
{
	Expr	   *whole = output_expr(feed, part, output->resno);
	Expr	   *expr = strip_relabels(whole);

	/* a bare column is decoded in the form that the engine wants */
	if (IsA(expr, Var) && ((Var *) expr)->varattno > 0)
		return expr_add_column_root(part->set, (Var *) expr, output->writer.col->type,
									output->writer.col->scale, stage);
	return expr_add_root(part->set, whole, stage);
}

/* Which outputs may be computed into the batch itself: the first to claim a vector. */
static void
redirect_outputs(HeapFeed *feed, HeapPart *part)
{
	for (int c = 0; c < feed->batch.ncols; c++)
	{
		Vec		   *vec = part->outputs[c].root ? part->outputs[c].root->vec : NULL;
		Column	   *col = &feed->batch.cols[c];

		if (vec == NULL || vec->constant || vec->stage != part->nquals ||
			vec->type != col->type || vec->scale != col->scale)
			continue;
		part->outputs[c].in_place = true;
		for (int other = 0; other < c; other++)
			if (part->outputs[other].root && part->outputs[other].root->vec == vec)
				part->outputs[c].in_place = false;
	}
}

/* Outputs of one column that is left to core, such as a key that is summed as well, are written together. */
static void
join_outputs(HeapFeed *feed, HeapPart *part)
{
	for (int c = 0; c < feed->batch.ncols; c++)
	{
		HeapRoot   *hroot = &part->outputs[c];
		int			previous = feed->outputs[c].previous;

		hroot->next = -1;
		if (previous < 0 || hroot->root->vec || part->outputs[previous].root->vec)
			continue;
		hroot->follows = true;
		part->outputs[previous].next = c;
	}
}

static HeapPart *
create_part(HeapFeed *feed, SeqScanState *node)
{
	HeapPart   *part = palloc0(sizeof(HeapPart));
	List	   *quals = expr_order_quals(node->ss.ps.plan->qual);
	int			nattrs = 1;
	int			q = 0;
	ListCell   *lc;

	part->scan = heap_scan_create(node);
	part->nquals = list_length(quals);
	part->set = expr_set_create(&node->ss.ps, RelationGetDescr(part->scan->rel),
								part->nquals + 1, feed->base.subplans);
	part->set->load_row = load_row;
	part->set->owner = feed;
	part->quals = palloc0(sizeof(ExprRoot *) * (part->nquals + 1));
	foreach(lc, quals)
	{
		part->quals[q] = expr_add_root(part->set, lfirst(lc), q);
		q++;
	}
	add_checks(feed, part);
	part->outputs = palloc0(sizeof(HeapRoot) * (feed->batch.ncols + 1));
	for (int c = 0; c < feed->batch.ncols; c++)
		if (feed->outputs[c].constant == NULL)
			part->outputs[c].root = output_root(feed, part, &feed->outputs[c], part->nquals);
	redirect_outputs(feed, part);
	join_outputs(feed, part);
	part->columns = palloc0(sizeof(HeapColumns) * (part->nquals + 1));
	for (int s = 0; s <= part->nquals; s++)
	{
		heap_columns_init(part->scan, &part->columns[s], part->set, s);
		nattrs = Max(nattrs, part->columns[s].nattrs);
	}
	part->scan->located = palloc(sizeof(uint8 *) * EXPR_ROWS * nattrs);
	return part;
}

/* ---- outputs ---------------------------------------------------------------- */

/* Has the batch as many bytes as it may? */
static inline bool
batch_is_full(const HeapFeed *feed)
{
	return feed->arena.bytes >= BATCH_BYTES;
}

/* Core's answer for a row, for output c and those that follow. */
static void
store_scalar(HeapFeed *feed, int c, int i, int row)
{
	const HeapRoot *roots = feed->part->outputs;
	bool		isnull;
	Datum		value = expr_evaluate_scalar(feed->part->set, roots[c].root, i, &isnull);

	for (; c >= 0; c = roots[c].next)
	{
		if (isnull)
			column_write_null(&feed->outputs[c].writer, row);
		else
			column_write(&feed->outputs[c].writer, row, value);
	}
}

/*
 * By-reference values get copies that live as long as the batch; returns how
 * many rows were done when it was full.
 */
static int
copy_references(HeapFeed *feed, const HeapOutput *output, const Vec *vec, int at, int n)
{
	Datum	   *values = (Datum *) output->writer.col->values + at;
	const uint8 *state = vec->all_values ? NULL : vec->state;
	int16		typlen = output->writer.typlen;

	for (int i = 0; i < n; i++)
	{
		if (state && state[i] != VEC_VALUE)
			continue;
		values[i] = arena_copy(&feed->arena, values[i], typlen);
		if (unlikely(batch_is_full(feed)))
			return i + 1;
	}
	return n;
}

/* Decimals beyond the engine's range are odd. */
static void
check_decimals(HeapFeed *feed, HeapOutput *output, const Vec *vec, int at, int n)
{
	static const gpuagg_i128 limit = (gpuagg_i128) 100000000000000 * 100000000000000;
	const gpuagg_i128 *values = (gpuagg_i128 *) output->writer.col->values + at;

	if (vec->attno != 0)
		return;					/* decoding has checked them */
	for (int i = 0; i < n; i++)
		if ((values[i] >= limit || values[i] <= -limit) &&
			(vec->all_values || vec->state[i] == VEC_VALUE))
		{
			MemoryContext old = MemoryContextSwitchTo(feed->part->set->page_cxt);
			Datum		value = decimal_to_numeric(values[i], vec->scale);

			MemoryContextSwitchTo(old);
			column_write_unrepresentable(&output->writer, at + i, value);
		}
}

/*
 * Stores output c of the first n rows; returns how many rows were done when
 * the batch was full.
 */
static int
store_output(HeapFeed *feed, int c, int at, int n)
{
	HeapOutput *output = &feed->outputs[c];
	const HeapRoot *hroot = &feed->part->outputs[c];
	Column	   *col = output->writer.col;
	Vec		   *vec = hroot->root->vec;
	int			width = column_width(col->type);
	bool		same = vec && vec->type == col->type && vec->scale == col->scale;

	if (same)
	{
		if (!hroot->in_place)
			memcpy((char *) col->values + (size_t) at * width, vec->values, (size_t) n * width);
		if (col->type == COLUMN_DATUM && !output->writer.typbyval)
			n = copy_references(feed, output, vec, at, n);
		else if (col->type == COLUMN_DEC)
			check_decimals(feed, output, vec, at, n);
		if (vec->all_values)
			return n;
	}
	for (int i = 0; i < n; i++)
	{
		uint8		state = vec == NULL ? VEC_FALLBACK : vec->all_values ? VEC_VALUE : vec->state[i];

		if (state == VEC_NULL)
			column_write_null(&output->writer, at + i);
		else if (state == VEC_FALLBACK)
			store_scalar(feed, c, i, at + i);
		else if (!same)
		{
			MemoryContext old = MemoryContextSwitchTo(feed->part->set->page_cxt);
			Datum		value = expr_datum(vec, i);

			MemoryContextSwitchTo(old);
			column_write(&output->writer, at + i, value);
		}
		else
			continue;
		if (unlikely(batch_is_full(feed)))
			return i + 1;
	}
	return n;
}

/* Fills the columns of constants, for all batches to come. */
static void
store_constants(HeapFeed *feed)
{
	for (int c = 0; c < feed->batch.ncols; c++)
		if (feed->outputs[c].constant)
			column_write_constant(&feed->outputs[c].writer, feed->outputs[c].constant,
								  feed->econtext);
	feed->constants_done = true;
}

/* ---- rows ------------------------------------------------------------------- */

/* Drops the rows that fail a qual. */
static void
apply_qual(HeapFeed *feed, HeapPart *part, int q)
{
	HeapRows   *rows = &feed->rows;
	Vec		   *vec = part->quals[q]->vec;
	uint16		sel[EXPR_ROWS];
	int			n = 0;

	if (vec && vec->all_values)
	{
		const int8 *values = vec->values;

		for (int i = 0; i < rows->n; i++)
		{
			sel[n] = i;
			n += values[i] != 0;
		}
	}
	else
	{
		for (int i = 0; i < rows->n; i++)
		{
			uint8		state = vec ? vec->state[i] : VEC_FALLBACK;
			bool		isnull = false;

			sel[n] = i;
			if (state == VEC_VALUE)
				n += ((int8 *) vec->values)[i] != 0;
			else if (state == VEC_FALLBACK)
				n += DatumGetBool(expr_evaluate_scalar(part->set, part->quals[q], i, &isnull)) && !isnull;
		}
	}
	if (n == rows->n)
		return;
	for (int i = 0; i < n; i++)
	{
		rows->tuple[i] = rows->tuple[sel[i]];
		rows->data[i] = rows->data[sel[i]];
	}
	rows->n = n;
	if (n > 0)
		expr_compact(part->set, q, sel, n);
}

/* Raises the errors of what core evaluates although no output needs it. */
static void
run_checks(HeapFeed *feed, HeapPart *part)
{
	ListCell   *lc;

	foreach(lc, part->checks)
	{
		ExprRoot   *root = lfirst(lc);
		bool		isnull;

		for (int i = 0; i < feed->rows.n; i++)
			if (root->vec == NULL || (!root->vec->all_values && root->vec->state[i] == VEC_FALLBACK))
				expr_evaluate_scalar(part->set, root, i, &isnull);
	}
}

/* Computes and stores the outputs of the rows that are left; returns how many the batch has taken. */
static int
store_outputs(HeapFeed *feed, HeapPart *part)
{
	int			at = feed->batch.nrows;
	int			n = feed->rows.n;

	run_checks(feed, part);
	for (int c = 0; c < feed->batch.ncols; c++)
		if (part->outputs[c].root && !part->outputs[c].follows)
			n = store_output(feed, c, at, n);
	return n;
}

/*
 * Adds up to `room` more tuples of the page to the batch.  Where long values
 * fill it before, the tuples behind are left, to be looked at again, and fewer
 * are taken from then on.
 */
static void
add_rows(HeapFeed *feed, HeapPart *part, int room)
{
	HeapRows   *rows = &feed->rows;
	HeapPage   *page = &feed->page;
	int			first = feed->next_tuple;
	int			n = Min(Min(room, feed->slice), page->ntuples - first);
	int			added = 0;

	rows->n = n;
	rows->start = page->start;
	for (int i = 0; i < n; i++)
		rows->tuple[i] = first + i;
	memcpy(rows->data, page->data + first, n * sizeof(uint16));
	for (int s = 0; s <= part->nquals && rows->n > 0; s++)
	{
		if (s == part->nquals)
			for (int c = 0; c < feed->batch.ncols; c++)
				if (part->outputs[c].in_place)
					part->outputs[c].root->vec->values = (char *) feed->batch.cols[c].values +
						(size_t) feed->batch.nrows * column_width(feed->batch.cols[c].type);
		heap_columns_fill(part->scan, &part->columns[s], page, rows);
		expr_run(part->set, s, rows->n);
		if (s < part->nquals)
			apply_qual(feed, part, s);
	}
	if (rows->n > 0)
		added = store_outputs(feed, part);
	if (added < rows->n)
	{
		n = rows->tuple[added - 1] + 1 - first;
		feed->slice = n;
	}
	else if (!batch_is_full(feed))
		feed->slice = Min(feed->slice * 2, EXPR_ROWS);
	feed->next_tuple += n;
	feed->batch.nrows += added;
	InstrCountFiltered1(part->scan->node, n - added);
	MemoryContextReset(part->set->page_cxt);
}

/* add_rows, counted for the table's plan node as well where that is below an Append. */
static void
add_page(HeapFeed *feed)
{
	Batch	   *batch = &feed->batch;
	Instrumentation *instrument = feed->append ? feed->part->scan->node->ss.ps.instrument : NULL;
	int			before = batch->nrows;

	if (instrument)
		InstrStartNode(instrument);
	add_rows(feed, feed->part, batch->capacity - before);
	if (instrument)
		InstrStopNode(instrument, batch->nrows - before);
}

/* Leaves the page: core's slot holds a pin of its own. */
static void
leave_page(HeapFeed *feed)
{
	heap_page_release(&feed->page);
	if (feed->part)
		ExecClearTuple(feed->part->scan->node->ss.ss_ScanTupleSlot);
	feed->next_tuple = 0;
}

/* Leaves the table amid a scan of it. */
static void
leave_part(HeapFeed *feed)
{
	leave_page(feed);
	if (feed->part)
		heap_scan_stop(feed->part->scan);
}

/* After a table has been left. */
static void
forget_part(HeapFeed *feed)
{
	HeapPart   *part = feed->part;

	feed->part = NULL;
	if (part && part->cxt)
	{
		feed->parts[part->which] = NULL;
		MemoryContextDelete(part->cxt);
	}
}

/* Chooses the next table; false when there are no more. */
static bool
next_part(HeapFeed *feed)
{
	AppendState *append = feed->append;
	PlanState  *node = feed->child;
	int			which = 0;

	if (append == NULL && feed->begun)
		return false;
	if (append)
	{
		if (append->ps.chgParam != NULL)
			ExecReScan(&append->ps);
		if (append->as_nplans == 0 || !append->choose_next_subplan(append))
			return false;
		append->as_begun = true;
		which = append->as_whichplan;
		node = append->appendplans[which];
		if (node->chgParam != NULL)
			ExecReScan(node);
	}
	feed->begun = true;
	forget_part(feed);
	if (feed->parts[which] == NULL)
	{
		bool		keep = feed->nkept < KEPT_PARTS;
		MemoryContext cxt = keep ? feed->cxt :
			AllocSetContextCreate(feed->cxt, "gpuagg table", ALLOCSET_DEFAULT_SIZES);
		MemoryContext old = MemoryContextSwitchTo(cxt);

		feed->parts[which] = create_part(feed, (SeqScanState *) node);
		feed->parts[which]->which = which;
		feed->parts[which]->cxt = keep ? NULL : cxt;
		feed->nkept += keep;
		MemoryContextSwitchTo(old);
	}
	feed->part = feed->parts[which];
	progress_table(RelationGetRelid(feed->part->scan->rel), heap_scan_begin(feed->part->scan));
	heap_scan_restart(feed->part->scan);
	return true;
}

/* Makes sure that the page has tuples left; false at the end of all tables. */
static bool
next_tuples(HeapFeed *feed)
{
	while (feed->next_tuple >= feed->page.ntuples)
	{
		if (feed->part)
			leave_page(feed);
		if (feed->part == NULL || !heap_scan_next_page(feed->part->scan, &feed->page))
		{
			if (!next_part(feed))
				return false;
		}
	}
	return true;
}

static Batch *
feed_next(Feed *base)
{
	HeapFeed   *feed = (HeapFeed *) base;
	Batch	   *batch = &feed->batch;
	Instrumentation *instrument = feed->child->instrument;

	if (feed->done)
		return NULL;
	/* as in ExecProcNode: a node whose time is running cannot be rescanned */
	if (feed->child->chgParam != NULL)
		ExecReScan(feed->child);
	if (instrument)
		InstrStartNode(instrument);
	arena_reset(&feed->arena);
	batch->nrows = 0;
	for (int c = 0; c < batch->ncols; c++)
		if (feed->outputs[c].constant == NULL)
			column_begin(&feed->outputs[c].writer);
	while (batch->nrows < batch->capacity && !batch_is_full(feed))
	{
		if (!next_tuples(feed))
		{
			feed->done = true;
			break;
		}
		add_page(feed);
	}
	if (batch->nrows > 0 && !feed->constants_done)
		store_constants(feed);
	if (instrument)
		InstrStopNode(instrument, batch->nrows);
	if (batch->nrows == 0)
		return NULL;
	base->rows += batch->nrows;
	base->batches++;
	progress_update(feed->part ? feed->part->scan->blocks_done : 0, base->rows);
	return batch;
}

/* ---- the rest of the feed ----------------------------------------------------- */

static void
feed_rescan(Feed *base)
{
	HeapFeed   *feed = (HeapFeed *) base;
	int			nparts = feed->append ? feed->append->as_nplans : 1;

	leave_part(feed);
	if (feed->child->chgParam == NULL)
		ExecReScan(feed->child);
	for (int i = 0; i < nparts; i++)
		if (feed->parts[i])
			expr_reset(feed->parts[i]->set);
	forget_part(feed);
	feed->begun = false;
	feed->done = false;
	base->rows = 0;
	base->batches = 0;
}

static void
feed_end(Feed *base)
{
	leave_part((HeapFeed *) base);
}

void
feed_heap_describe(PlanState *child, ExplainState *es)
{
	StringInfoData buf;

	initStringInfo(&buf);
	appendStringInfoString(&buf, "heap pages of ");
	if (find_append(child))
		appendStringInfo(&buf, "%d tables", find_append(child)->as_nplans);
	else
		appendStringInfoString(&buf, RelationGetRelationName(((ScanState *) child)->ss_currentRelation));
	ExplainPropertyText("Feed", buf.data, es);
}

/* Adds the expression to what core evaluates row by row, if it is one of these. */
static List *
add_row_by_row(List *list, const ExprRoot *root, List *context)
{
	if (root == NULL || root->vec != NULL)
		return list;
	return lappend(list, deparse_expression((Node *) root->expr, context, false, false));
}

/* Verbosely: what has no vector form, of the table that was read first. */
static void
explain_row_by_row(HeapFeed *feed, ExplainState *es)
{
	int			nparts = feed->append ? feed->append->as_nplans : 1;
	HeapPart   *part = NULL;
	List	   *context;
	List	   *list = NIL;

	for (int p = 0; p < nparts && part == NULL; p++)
		part = feed->parts[p];
	if (part == NULL)
		return;
	context = set_deparse_context_plan(es->deparse_cxt, part->scan->node->ss.ps.plan, NIL);
	for (int q = 0; q < part->nquals; q++)
		list = add_row_by_row(list, part->quals[q], context);
	for (int c = 0; c < feed->batch.ncols; c++)
		list = add_row_by_row(list, part->outputs[c].root, context);
	if (list != NIL)
		ExplainPropertyList("Row by Row", list, es);
}

static void
feed_explain(Feed *base, ExplainState *es)
{
	HeapFeed   *feed = (HeapFeed *) base;

	feed_heap_describe(feed->child, es);
	if (es->verbose)
		explain_row_by_row(feed, es);
}

static const FeedOps heap_ops = {
	.name = "heap",
	.next = feed_next,
	.rescan = feed_rescan,
	.end = feed_end,
	.explain = feed_explain
};

static void
init_outputs(HeapFeed *feed, const AggSpec *spec, const int *resnos, ExprState **constants)
{
	feed->batch.ncols = spec->ncols;
	feed->batch.cols = palloc0(sizeof(Column) * (spec->ncols + 1));
	feed->outputs = palloc0(sizeof(HeapOutput) * (spec->ncols + 1));
	for (int c = 0; c < spec->ncols; c++)
	{
		HeapOutput *output = &feed->outputs[c];
		Column	   *col = &feed->batch.cols[c];
		int			input = spec->cols[c].input;

		column_writer_init(&output->writer, col, &spec->cols[c], feed->batch.capacity,
						   &feed->arena);
		output->resno = resnos[input];
		output->previous = -1;
		if (output->resno == 0)
		{
			output->constant = constants[input];
			continue;
		}
		col->memory = col->values;
		for (int other = 0; other < c; other++)
			if (feed->outputs[other].resno == output->resno)
				output->previous = other;
	}
}

Feed *
feed_heap_open(PlanState *child, const AggSpec *spec, const int *resnos,
			   ExprState **constants, ExprContext *econtext, int batch_rows)
{
	HeapFeed   *feed = palloc0(sizeof(HeapFeed));
	int			nparts = 1;

	feed->base.ops = &heap_ops;
	feed->base.batch = &feed->batch;
	feed->child = child;
	feed->econtext = econtext;
	feed->cxt = CurrentMemoryContext;
	feed->batch.capacity = batch_rows;
	feed->slice = EXPR_ROWS;
	feed->page.buffer = InvalidBuffer;
	arena_init(&feed->arena, feed->cxt);
	progress_start(feed->cxt);
	init_outputs(feed, spec, resnos, constants);
	feed->append = find_append(child);
	if (feed->append)
	{
		nparts = feed->append->as_nplans;
		if (child != &feed->append->ps)
			feed->result = (ResultState *) child;
	}
	feed->parts = palloc0(sizeof(HeapPart *) * (nparts + 1));
	return &feed->base;
}
