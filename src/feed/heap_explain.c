/*
 * heap_explain.c
 *	  What EXPLAIN shows of the feed.
 */
#include "postgres.h"

#include "utils/rel.h"
#include "utils/ruleutils.h"

#include "common/compat.h"
#include "feed/heap.h"

/* Prints how the blocks of the column cache were read. */
static void
explain_proofs(const FeedStats *stats, ExplainState *es)
{
	if (es->format == EXPLAIN_FORMAT_TEXT)
		ExplainPropertyText(
			"Cached Blocks",
			psprintf("visibility map=" UINT64_FORMAT " lsn=" UINT64_FORMAT " skipped=" UINT64_FORMAT
					 " changed=" UINT64_FORMAT " built=" UINT64_FORMAT,
					 stats->by_map, stats->by_lsn, stats->skipped, stats->stale, stats->built),
			es);
	else
	{
		ExplainPropertyUInteger("Cached Blocks", NULL, stats->cached, es);
		ExplainPropertyUInteger("Cached Blocks Proved by Visibility Map", NULL, stats->by_map, es);
		ExplainPropertyUInteger("Cached Blocks Proved by LSN", NULL, stats->by_lsn, es);
		ExplainPropertyUInteger("Cached Blocks Skipped", NULL, stats->skipped, es);
		ExplainPropertyUInteger("Cached Blocks Changed", NULL, stats->stale, es);
		ExplainPropertyUInteger("Cached Blocks Built", NULL, stats->built, es);
	}
}

/* Appends how the subplans of an Append are read. */
static void
describe_subplans(AppendState *append, StringInfo buf)
{
	int nexecuted = 0;
	int ngroups = 0;
	int nheap;

	for (int i = 0; i < append->as_nplans; i++)
	{
		PlanState *node = append->appendplans[i];

		if (heap_subplan_unsupported_reason(node, false) != NULL)
			nexecuted++;
		else if (heap_groups_scan(node) != NULL)
			ngroups++;
	}
	nheap = append->as_nplans - nexecuted - ngroups;
	if (nheap > 0 || ngroups == 0)
		appendStringInfo(buf, "heap pages of %d tables", nheap);
	if (ngroups > 0)
		appendStringInfo(buf, "%sgroups of %d subplans", nheap > 0 ? ", " : "", ngroups);
	if (nexecuted > 0)
		appendStringInfo(buf, ", tuples of %d subplans", nexecuted);
}

/* Prints the lines of feed_describe().  joins: those of the feed, if it is open. */
static void
describe(PlanState *child, bool pages, const HeapJoins *joins, const FeedStats *stats,
		 ExplainState *es)
{
	PlanState *top = child;
	AppendState *append = heap_find_append(heap_below_joins(child));
	StringInfoData buf;

	if (!pages)
	{
		ExplainPropertyText("Feed", "tuples from the child plan", es);
		return;
	}
	child = heap_below_joins(heap_below_limit(child));
	if (heap_groups_scan(child))
	{
		ExplainPropertyText("Feed", "groups of the child plan (columns)", es);
		return;
	}
	initStringInfo(&buf);
	if (stats && stats->resident > 0)
	{
		appendStringInfo(&buf, "GPU memory (" UINT64_FORMAT " of " UINT64_FORMAT " blocks",
						 stats->resident, stats->blocks);
		if (append)
			appendStringInfo(&buf, ", " UINT64_FORMAT " of %d tables", stats->resident_tables,
							 append->as_nplans);
		appendStringInfoString(&buf, "), ");
	}
	if (stats && stats->blocks > 0 && (stats->cached > stats->resident || stats->resident == 0))
		appendStringInfo(&buf, "column cache (" UINT64_FORMAT " of " UINT64_FORMAT " blocks), ",
						 stats->cached - stats->resident, stats->blocks);
	if (append)
		describe_subplans(append, &buf);
	else
		appendStringInfo(&buf, "heap pages of %s",
						 RelationGetRelationName(((ScanState *) child)->ss_currentRelation));
	ExplainPropertyText("Feed", buf.data, es);
	if (stats && stats->blocks > 0)
		explain_proofs(stats, es);
	heap_joins_explain(top, joins, es);
}

void
feed_describe(PlanState *child, bool pages, const FeedStats *stats, ExplainState *es)
{
	describe(child, pages, NULL, stats, es);
}

/* Adds the expression to the list if it has no vector form: core evaluates it for every row. */
static List *
add_row_by_row(List *list, const ExprRoot *root, List *context)
{
	if (root == NULL || root->vec != NULL)
		return list;
	return lappend(list, deparse_expression((Node *) root->expr, context, false, false));
}

/* For VERBOSE: prints the expressions without a vector form, of the first table that was read. */
static void
explain_row_by_row(HeapFeed *feed, ExplainState *es)
{
	int ntables = feed->append ? feed->append->as_nplans : 1;
	HeapTable *table = NULL;
	List *context;
	List *list = NIL;

	for (int p = 0; p < ntables && table == NULL; p++)
		if (feed->joins == NULL && feed->subplans[p].table && feed->subplans[p].table->scan)
			table = feed->subplans[p].table;
	if (table == NULL)
		return;
	context = set_deparse_context_plan(es->deparse_cxt, table->scan->node->ps.plan, NIL);
	for (int q = 0; q < table->nquals; q++)
		list = add_row_by_row(list, table->quals[q], context);
	for (int c = 0; c < feed->batch.ncols; c++)
		list = add_row_by_row(list, table->outputs[c].root, context);
	if (list != NIL)
		ExplainPropertyList("Row by Row", list, es);
}

void
heap_explain(Feed *base, const FeedStats *stats, ExplainState *es)
{
	HeapFeed *feed = (HeapFeed *) base;

	/* in guarded plans counts are not shown */
	describe(feed->child, !feed->executes_child, feed->base.guarded ? NULL : feed->joins, stats,
			 es);
	if (es->verbose && feed->no_lookups && !feed->base.guarded)
		ExplainPropertyText("Join Not a Lookup", feed->no_lookups, es);
	if (es->verbose)
		explain_row_by_row(feed, es);
}
