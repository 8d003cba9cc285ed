/*
 * heap_table.c
 *
 * Compiles the quals and outputs of one table.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "utils/rel.h"

#include "analysis/analysis.h"
#include "feed/heap.h"

/* ExprSet.load_row: stores the tuple in the slot where core's evaluator expects it. */
static void
load_row(void *owner, int row)
{
	HeapFeed *feed = owner;
	HeapPage *page = &feed->page;
	ScanState *node = feed->table->scan->node;
	ExprContext *econtext = feed->table->set->parent->ps_ExprContext;
	int t = feed->rows.tuple[row];

	econtext->ecxt_scantuple = node->ss_ScanTupleSlot;
	if (page->cached)
		heap_cached_load(feed->table->cached, page, t, node->ss_ScanTupleSlot,
						 econtext->ecxt_per_tuple_memory);
	else
	{
		feed->tuple.t_tableOid = RelationGetRelid(node->ss_currentRelation);
		feed->tuple.t_data = heap_page_tuple(page, t);
		feed->tuple.t_len = ItemIdGetLength(PageGetItemId((Page) page->start, page->lines[t]));
		ItemPointerSet(&feed->tuple.t_self, page->block, page->lines[t]);
		ExecStoreBufferHeapTuple(&feed->tuple, node->ss_ScanTupleSlot, page->buffer);
	}
	if (feed->joins)
		heap_joins_load_row(feed, feed->table, node->ss_ScanTupleSlot, row);
}

/*
 * Replaces Vars that refer to a projection's child (an Append) by the targets of the table's scan
 * with the same numbers.
 */
static Node *
resolve_outer(Node *node, void *context)
{
	List *targetlist = context;

	if (node == NULL)
		return NULL;
	if (IsA(node, Var) && ((Var *) node)->varno == OUTER_VAR)
		return copyObject(
			(Node *) list_nth_node(TargetEntry, targetlist, ((Var *) node)->varattno - 1)->expr);
	return expression_tree_mutator(node, resolve_outer, context);
}

/* Returns the target entries of the subplan. */
static List *
table_targets(const HeapTable *table)
{
	return table->groups ? heap_groups_targets(table) : table->scan->node->ps.plan->targetlist;
}

/* Returns column resno of the feed's child as an expression over the table's columns. */
static Expr *
output_expr(const HeapFeed *feed, const HeapTable *table, int resno)
{
	List *targetlist = table_targets(table);
	Expr *expr;

	if (feed->joins)
		return heap_joins_output(feed, table, resno);
	if (feed->result == NULL)
		return list_nth_node(TargetEntry, targetlist, resno - 1)->expr;
	expr = list_nth_node(TargetEntry, feed->result->ps.plan->targetlist, resno - 1)->expr;
	return (Expr *) resolve_outer((Node *) expr, targetlist);
}

/*
 * Strips RelabelTypes, except those that turn bits of another type into a boolean; only the
 * compiler handles these.
 */
static Expr *
strip_relabels(Expr *expr)
{
	while (IsA(expr, RelabelType) && exprType((Node *) expr) != BOOLOID)
		expr = ((RelabelType *) expr)->arg;
	return expr;
}

/* Adds an expression to the list of checks, unless it cannot raise an error. */
static void
add_check(HeapTable *table, Expr *expr)
{
	Expr *bare = strip_relabels(expr);

	if (!IsA(bare, Var) && !IsA(bare, Const))
		table->checks = lappend(table->checks, expr_add_root(table->set, expr, table->nquals));
}

/*
 * Adds checks. Core computes all targets of a plan node. A target that is not an output, or
 * whose value a projection above may not need, can still raise an error.
 */
static void
add_checks(HeapFeed *feed, HeapTable *table)
{
	List *top = feed->child->plan->targetlist;
	Bitmapset *shown = NULL;
	ListCell *lc;

	for (int c = 0; c < feed->batch.ncols; c++)
		if (feed->outputs[c].constant == NULL)
			shown = bms_add_member(shown, feed->outputs[c].resno);
	if (feed->append && feed->joins == NULL)
		foreach (lc, table_targets(table))
			if (feed->result || !bms_is_member(lfirst_node(TargetEntry, lc)->resno, shown))
				add_check(table, lfirst_node(TargetEntry, lc)->expr);
	if (feed->append == NULL || feed->result || feed->joins)
		foreach (lc, top)
			if (!bms_is_member(lfirst_node(TargetEntry, lc)->resno, shown))
				add_check(table, output_expr(feed, table, lfirst_node(TargetEntry, lc)->resno));
	bms_free(shown);
}

/* Compiles the expression of an output for a stage, in the form that the batch's column needs. */
static ExprRoot *
output_root(HeapFeed *feed, HeapTable *table, const HeapOutput *output, int stage)
{
	Expr *whole = output_expr(feed, table, output->resno);
	Expr *expr = strip_relabels(whole);

	if (output->writer.form == NUMERIC_SHOWN_SCALE)
		return expr_add_scales_root(table->set, whole, stage);
	/* a bare column is decoded into the type of the batch's column */
	if (IsA(expr, Var) && ((Var *) expr)->varattno > 0)
		return expr_add_column_root(table->set, (Var *) expr, output->writer.col->type,
									output->writer.col->scale, stage);
	return expr_add_root(table->set, whole, stage);
}

/*
 * Returns whether dictionary codes of an output are useful. With codes, equal decimals become
 * numerics only once, which matters most for keys.
 */
static bool
wants_codes(const HeapOutput *output, const ExprRoot *root)
{
	return output->wants_codes ||
		(root->vec && root->vec->type == COLUMN_DEC && output->writer.col->type == COLUMN_DATUM);
}

/*
 * Compiles the outputs. Those that may be computed once for each value of a cached column come
 * last, in a stage of their own that can be left out.
 */
static void
add_outputs(HeapFeed *feed, HeapTable *table)
{
	table->noutputs = feed->batch.ncols;
	table->outputs = palloc0(sizeof(HeapRoot) * (table->noutputs + 1));
	for (int last = 0; last < 2; last++)
		for (int c = 0; c < table->noutputs; c++)
		{
			Expr *expr;

			if (feed->outputs[c].constant)
				continue;
			expr = strip_relabels(output_expr(feed, table, feed->outputs[c].resno));
			if (last ==
				(!IsA(expr, Var) && table->scan && !heap_joins_reads_lookups(feed, (Node *) expr) &&
				 heap_memo_serves(table, expr)))
				table->outputs[c].root =
					output_root(feed, table, &feed->outputs[c], table->nquals + last);
			if (table->outputs[c].root && wants_codes(&feed->outputs[c], table->outputs[c].root))
				expr_add_codes(table->set, table->outputs[c].root);
		}
}

/*
 * Marks the outputs whose vectors are computed in the batch's arrays: for each vector the first
 * output of the same type.
 */
static void
redirect_outputs(HeapFeed *feed, HeapTable *table)
{
	for (int c = 0; c < feed->batch.ncols; c++)
	{
		Vec *vec = table->outputs[c].root ? table->outputs[c].root->vec : NULL;
		Column *col = &feed->batch.cols[c];

		if (vec == NULL || vec->constant || vec->stage < table->nquals || vec->type != col->type ||
			vec->scale != col->scale)
			continue;
		table->outputs[c].in_place = true;
		for (int other = 0; other < c; other++)
			if (table->outputs[other].root && table->outputs[other].root->vec == vec)
				table->outputs[c].in_place = false;
	}
}

/*
 * Joins outputs of the same column that core evaluates for every row, such as a key that is also
 * summed.
 */
static void
join_outputs(HeapFeed *feed, HeapTable *table)
{
	for (int c = 0; c < feed->batch.ncols; c++)
	{
		HeapRoot *hroot = &table->outputs[c];
		int previous = feed->outputs[c].previous;

		hroot->next = -1;
		if (previous < 0 || hroot->root->vec || table->outputs[previous].root->vec)
			continue;
		hroot->joined = true;
		table->outputs[previous].next = c;
	}
}

/* Prepares to decode the columns that the compiled expressions read. */
static void
init_columns(HeapFeed *feed, HeapTable *table)
{
	TupleDesc desc = RelationGetDescr(table->scan->rel);
	const HeapColumns *first;
	int last;

	table->decoder = heap_decoder_create(desc);
	table->columns = palloc0(sizeof(HeapColumns) * table->nstages);
	for (int s = 0; s < table->nstages; s++)
		heap_columns_init(table->decoder, &table->columns[s], table->set, s);
	first = &table->columns[0];
	last = first->nattrs > 0 ? first->attrs[first->nattrs - 1] : -1;
	table->scan->ncolumns = first->nvecs;
	table->scan->whole_tuples =
		last >= 0 && last >= desc->natts / 2 && table->decoder->attrs[last].offset < 0;
	table->scan->counts_only = table->nquals == 0 && table->checks == NIL;
	for (int c = 0; c < feed->batch.ncols; c++)
		table->scan->counts_only &= table->outputs[c].root == NULL;
}

/* Adds the table's columns that an expression reads to *attnos. */
static void
add_attnos(const HeapTable *table, const ExprRoot *root, Bitmapset **attnos)
{
	if (root)
		pull_varattnos((Node *) root->expr, ((Scan *) table->scan->node->ps.plan)->scanrelid,
					   attnos);
}

/*
 * Prepares to read the table by way of the column cache, and sets what is known for each qual:
 * closed, rechecks, indexed and memos.
 */
static void
init_cached(HeapFeed *feed, HeapTable *table)
{
	Bitmapset *attnos = NULL;
	ListCell *lc;

	for (int q = 0; q < table->nquals; q++)
		add_attnos(table, table->quals[q], &attnos);
	if (table->joins)
		heap_joins_add_attnos(table, &attnos);
	for (int c = 0; c < feed->batch.ncols; c++)
		add_attnos(table, table->outputs[c].root, &attnos);
	foreach (lc, table->checks)
		add_attnos(table, lfirst(lc), &attnos);
	/* A bitmap or index scan reads selected tuples only, so the cache does not serve it. */
	if (table->cached == NULL && table->scan->bitmap == NULL && table->scan->index == NULL)
		table->cached = heap_cached_create(table->scan, attnos, table->set, &feed->base.stats);
	if (table->cached && table->cached->implied == NULL)
	{
		table->cached->skip = heap_skip_create(&table->scan->node->ps, table->nscan_quals,
											   table->quals, feed->base.guarded);
		table->cached->nquals = table->nquals;
		table->cached->implied = palloc0(sizeof(bool) * (table->nquals + 1));
	}
	if (table->cached && table->joins)
		heap_joins_set_cached_probes(feed, table);
	table->direct = feed->joins == NULL && heap_direct_possible(feed, table);
	table->bounded = heap_bounds_possible(feed, table);
	table->memos = palloc0(sizeof(HeapMemo *) * (table->nquals + 1));
	table->closed = palloc0(sizeof(bool) * (table->nquals + 1));
	table->rechecks = palloc0(sizeof(bool) * (table->nquals + 1));
	table->indexed = palloc0(sizeof(bool) * (table->nquals + 1));
	for (int q = 0; q < table->nscan_quals; q++)
	{
		table->closed[q] = expr_stage_is_closed(table->set, q);
		table->rechecks[q] = heap_is_index_qual(table->scan->node, table->quals[q]->expr);
		table->indexed[q] = table->closed[q] && table->rechecks[q];
	}
	for (int q = 0; table->cached && q < table->nscan_quals; q++)
		table->memos[q] = heap_memo_create(table, q);
	for (int c = 0; table->cached && c < table->noutputs; c++)
	{
		HeapRoot *hroot = &table->outputs[c];

		if (hroot->root == NULL || hroot->joined || hroot->root->stage <= table->nquals)
			continue;
		hroot->memo = heap_memo_create_output(table, hroot->root);
		table->has_memos = true;
	}
}

/*
 * Returns the column of a qual over one column of a by-value type, which may be evaluated for rows
 * that do not pass other quals, as it cannot fail and nobody notices; else 0.
 */
static AttrNumber
quiet_column(const HeapTable *table, Expr *qual)
{
	ScanState *node = table->scan->node;
	Bitmapset *attnos = NULL;
	int attno;

	pull_varattnos((Node *) qual, ((Scan *) node->ps.plan)->scanrelid, &attnos);
	if (!bms_get_singleton_member(attnos, &attno) || contain_subplans((Node *) qual) ||
		heap_is_index_qual(node, qual) ||
		!expr_evaluates_unnoticed((Node *) qual, node->ps.state->es_param_list_info))
		return 0;
	attno += FirstLowInvalidHeapAttributeNumber;
	return attno > 0 && TupleDescAttr(RelationGetDescr(table->scan->rel), attno - 1)->attbyval ?
		attno :
		0;
}

/*
 * Compiles the quals of the scan, each into a stage of its own.  But the bounds of a range
 * (BETWEEN) share one: then the column is read once, and rows are dropped once.
 */
static void
compile_quals(HeapTable *table, List *quals)
{
	AttrNumber before = 0;
	int stage = 0;
	ListCell *lc;

	table->quals = palloc0(sizeof(ExprRoot *) * (table->nquals + 1));
	table->together = palloc0(sizeof(bool) * (table->nquals + 1));
	foreach (lc, quals)
	{
		int q = foreach_current_index(lc);
		AttrNumber attno = quiet_column(table, lfirst(lc));

		table->together[q] = attno != 0 && attno == before;
		if (!table->together[q])
			stage = q;
		table->quals[q] = expr_add_root(table->set, lfirst(lc), stage);
		before = attno;
	}
}

/* Compiles quals and outputs of the table's scan.  cached: NULL, or that of an earlier table */
static void
compile_table(HeapFeed *feed, HeapTable *table, HeapCached *cached)
{
	ScanState *node = table->scan->node;
	List *quals = expr_order_quals(heap_scan_quals(node), node->ps.state->es_param_list_info);
	HeapJoins *joins = feed->joins;
	TupleDesc desc;

	table->nscan_quals = list_length(quals);
	table->nquals = table->nscan_quals + (joins ? heap_joins_count_quals(joins) : 0);
	table->nstages = table->nquals + 2;
	desc = RelationGetDescr(table->scan->rel);
	if (joins)
		desc = heap_joins_desc(joins, desc);
	table->set =
		expr_set_create(joins ? feed->child : &node->ps, desc, table->nstages, feed->base.subplans);
	/* a projection's rescan marks subplans that depend on its parameters; a scan's would not */
	if (feed->result)
		table->set->subplan_parent = &feed->result->ps;
	table->set->load_row = load_row;
	table->set->owner = feed;
	compile_quals(table, quals);
	if (joins)
		heap_joins_add_quals(feed, table, table_targets(table));
	add_checks(feed, table);
	add_outputs(feed, table);
	redirect_outputs(feed, table);
	join_outputs(feed, table);
	if (joins)
		heap_joins_end_table(feed, table);
	init_columns(feed, table);
	if (cached && heap_cached_fits(cached, table->set))
		table->cached = cached;
	if (cached == NULL || table->cached)
		init_cached(feed, table);
}

HeapTable *
heap_table_create(HeapFeed *feed, ScanState *node)
{
	HeapTable *table = palloc0(sizeof(HeapTable));

	table->scan =
		heap_scan_create(node, feed->result == NULL && feed->joins == NULL, feed->base.shared);
	compile_table(feed, table, NULL);
	return table;
}

HeapTable *
heap_table_compile_again(HeapFeed *feed, const HeapTable *from)
{
	HeapTable *table = palloc0(sizeof(HeapTable));

	table->node = from->node;
	table->which = from->which;
	table->source = from->source;
	table->cxt = from->cxt;
	table->scan = from->scan;
	compile_table(feed, table, from->cached);
	/* the cache serves both, or none */
	return (table->cached == NULL) == (from->cached == NULL) ? table : NULL;
}

HeapTable *
heap_table_create_groups(HeapFeed *feed, PlanState *node)
{
	HeapTable *table = heap_groups_begin_table(feed, node);

	add_checks(feed, table);
	add_outputs(feed, table);
	redirect_outputs(feed, table);
	join_outputs(feed, table);
	heap_groups_end_table(feed, table);
	return table;
}
