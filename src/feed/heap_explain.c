/*
 * heap_explain.c
 *	  What EXPLAIN shows of the feed.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "utils/rel.h"
#include "utils/ruleutils.h"

#include "common/compat.h"
#include "feed/heap.h"
#include "feed/heap_joins_internal.h"

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

/* ---- joins ---------------------------------------------------------------------------- */

/* Returns the word of EXPLAIN for a type of join. */
static const char *
join_name(JoinType type)
{
	switch (type)
	{
		case JOIN_LEFT:
			return "left";
		case JOIN_SEMI:
			return "semi";
		case JOIN_ANTI:
			return "anti";
		default:
			return "inner";
	}
}

/* Returns the keys of a join. */
static char *
join_keys(PlanState *node, ExplainState *es)
{
	const HashJoin *plan = (const HashJoin *) node->plan;
	List *context = set_deparse_context_plan(es->deparse_cxt, node->plan, NIL);
	Node *keys = list_length(plan->hashclauses) == 1 ? linitial(plan->hashclauses) :
													   (Node *) make_andclause(plan->hashclauses);

	return deparse_expression(keys, context, true, false);
}

/* Appends what the GPU has read of a lookup. */
static void
describe_cells(const LookupCells *cells, bool timing, StringInfo buf)
{
	if (cells->kept + cells->sent == 0)
		return;
	appendStringInfo(buf, "%s, GPU cells:", cells->hashed ? ", GPU hash table" : "");
	if (cells->kept > 0)
		appendStringInfo(buf, " " UINT64_FORMAT " kB kept", (cells->kept + 1023) / 1024);
	if (cells->sent > 0)
		appendStringInfo(buf, "%s " UINT64_FORMAT " kB sent", cells->kept > 0 ? "," : "",
						 (cells->sent + 1023) / 1024);
	if (cells->sent > 0 && timing)
		appendStringInfo(buf, ", written in %.3f ms", cells->write_ms);
}

/* Returns whether this process has looked rows up; else the GPU has found all that there are. */
static bool
is_probed(const HeapJoin *join)
{
	return join->probed > 0 || join->cells.kept + join->cells.sent == 0;
}

/* Returns whether a bitmap of keys stands before what finds the rows. */
static bool
has_bitmap(const Lookup *lookup)
{
	return lookup->bits != NULL && lookup->form != LOOKUP_BITS;
}

/* Returns what stands before what finds the rows. */
static const char *
behind(const Lookup *lookup)
{
	return has_bitmap(lookup) ? " behind a bitmap" : lookup->filter.used ? " behind a filter" : "";
}

/* Prints the line of a lookup.  join: NULL before execution */
static void
explain_lookup_line(PlanState *node, const HeapJoin *join, ExplainState *es)
{
	StringInfoData buf;

	initStringInfo(&buf);
	appendStringInfo(&buf, "%s join, %s", join_name(((HashJoin *) node->plan)->join.jointype),
					 join_keys(node, es));
	if (join)
		appendStringInfo(&buf, ", %s%s of %u rows%s%s, " UINT64_FORMAT " kB",
						 join->lookup.kept ? "kept " : "", lookup_form_name(join->lookup.form),
						 join->lookup.nrows, behind(&join->lookup),
						 join->lookup.next ? " with equal keys" : "",
						 (uint64) (join->lookup.bytes + 1023) / 1024);
	if (join && join->builds > 0 && es->timing)
	{
		appendStringInfoString(&buf, ", built ");
		if (join->builds > 1)
			appendStringInfo(&buf, UINT64_FORMAT " times ", join->builds);
		appendStringInfo(&buf, "in %.3f ms", INSTR_TIME_GET_MILLISEC(join->build_time));
	}
	if (join && is_probed(join))
		appendStringInfo(&buf, ", found " UINT64_FORMAT " of " UINT64_FORMAT, join->found,
						 join->probed);
	if (join)
		describe_cells(&join->cells, es->timing, &buf);
	ExplainPropertyText("Lookup", buf.data, es);
}

/* Prints the properties of a lookup.  join: NULL before execution */
static void
explain_lookup_properties(PlanState *node, const HeapJoin *join, ExplainState *es)
{
	ExplainPropertyText("Join Type", join_name(((HashJoin *) node->plan)->join.jointype), es);
	ExplainPropertyText("Keys", join_keys(node, es), es);
	if (join == NULL)
		return;
	ExplainPropertyText("Form", lookup_form_name(join->lookup.form), es);
	ExplainPropertyBool("Bitmap Filter", has_bitmap(&join->lookup), es);
	ExplainPropertyBool("Bloom Filter", join->lookup.filter.used, es);
	ExplainPropertyBool("Kept", join->lookup.kept, es);
	ExplainPropertyUInteger("Rows", NULL, join->lookup.nrows, es);
	ExplainPropertyBool("Equal Keys", join->lookup.next != NULL, es);
	ExplainPropertyUInteger("Memory", "kB", (join->lookup.bytes + 1023) / 1024, es);
	ExplainPropertyUInteger("Builds", NULL, join->builds, es);
	if (es->timing)
		ExplainPropertyFloat("Build Time", "ms", INSTR_TIME_GET_MILLISEC(join->build_time), 3, es);
	if (is_probed(join))
	{
		ExplainPropertyUInteger("Rows Probed", NULL, join->probed, es);
		ExplainPropertyUInteger("Rows Found", NULL, join->found, es);
	}
	if (join->cells.kept + join->cells.sent == 0)
		return;
	ExplainPropertyBool("GPU Hash Table", join->cells.hashed, es);
	ExplainPropertyUInteger("GPU Cells Kept", "kB", (join->cells.kept + 1023) / 1024, es);
	ExplainPropertyUInteger("GPU Cells Sent", "kB", (join->cells.sent + 1023) / 1024, es);
	if (es->timing)
		ExplainPropertyFloat("GPU Cells Write Time", "ms", join->cells.write_ms, 3, es);
}

static void explain_joins(PlanState *child, const HeapJoins *joins, bool volatile_query,
						  ExplainState *es);

/* Prints the lookups of a join's inner side, if a feed of its own reads it. */
static void
explain_inner_side(PlanState *node, const HeapJoin *join, bool volatile_query, ExplainState *es)
{
	PlanState *inner = outerPlanState(innerPlanState(node));
	const HeapFeed *feed = join ? (const HeapFeed *) join->lookup.feed : NULL;

	if (join == NULL &&
		(!heap_joins_has_column_keys((HashJoinState *) node) ||
		 feed_pages_unsupported_reason(inner, volatile_query) != NULL))
		return;
	if (join && feed == NULL)
		return;
	if (feed && feed->no_lookups && es->verbose)
		ExplainPropertyText("Join Not a Lookup", feed->no_lookups, es);
	if (feed == NULL || feed->joins)
		explain_joins(heap_below_limit(inner), feed ? feed->joins : NULL, volatile_query, es);
}

/* Prints a lookup, and those of its inner side.  join: NULL if the feed is not open */
static void
explain_lookup(PlanState *node, const HeapJoin *join, bool volatile_query, ExplainState *es)
{
	const HeapJoin *executed = es->analyze && join && join->built ? join : NULL;

	if (es->format == EXPLAIN_FORMAT_TEXT)
	{
		explain_lookup_line(node, executed, es);
		es->indent++;
		explain_inner_side(node, join, volatile_query, es);
		es->indent--;
		return;
	}
	ExplainOpenGroup("Lookup", NULL, true, es);
	explain_lookup_properties(node, executed, es);
	explain_inner_side(node, join, volatile_query, es);
	ExplainCloseGroup("Lookup", NULL, true, es);
}

/*
 * Prints the lookups of a tree of joins in the order in which they were probed last.  joins: NULL
 * if the feed is not open
 */
static void
explain_joins(PlanState *child, const HeapJoins *joins, bool volatile_query, ExplainState *es)
{
	List *nodes = NIL;
	ListCell *lc;

	check_stack_depth();
	if (!IsA(child, HashJoinState))
		return;
	ExplainOpenGroup("Lookups", "Lookups", false, es);
	for (int i = 0; joins && i < joins->n; i++)
	{
		const HeapJoin *join = &joins->joins[joins->order[i]];

		explain_lookup(&join->node->js.ps, join, volatile_query, es);
	}
	for (PlanState *node = child; joins == NULL && IsA(node, HashJoinState);
		 node = outerPlanState(node))
		nodes = lcons(node, nodes);
	foreach (lc, nodes)
		explain_lookup(lfirst(lc), NULL, volatile_query, es);
	ExplainCloseGroup("Lookups", "Lookups", false, es);
}

/* ---- the feed ------------------------------------------------------------------------- */

/* Prints the lines of feed_describe().  joins: those of the feed, if it is open. */
static void
describe(PlanState *child, bool pages, bool volatile_query, const HeapJoins *joins,
		 const FeedStats *stats, ExplainState *es)
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
	explain_joins(top, joins, volatile_query, es);
}

void
feed_describe(PlanState *child, bool pages, bool volatile_query, const FeedStats *stats,
			  ExplainState *es)
{
	describe(child, pages, volatile_query, NULL, stats, es);
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
	describe(feed->child, !feed->executes_child, feed->volatile_query,
			 feed->base.guarded ? NULL : feed->joins, stats, es);
	if (es->verbose && feed->no_lookups && !feed->base.guarded)
		ExplainPropertyText("Join Not a Lookup", feed->no_lookups, es);
	if (es->verbose)
		explain_row_by_row(feed, es);
}
