/*
 * reasons.c
 *	  Reasons why a query was not taken: for EXPLAIN (VERBOSE), gpuagg_stats and the log.
 *
 * One reason is known when the query has been planned: there were custom paths, and others were
 * chosen.  That is no refusal where another aggregation of the query was taken that has at least as
 * many rows, as in a count of groups.
 *
 * EXPLAIN and the log say which subquery a reason is of, by what it selects from.  gpuagg_stats
 * counts reasons alone.
 *
 * Planning, where they arise, comes before EXPLAIN prints the query's plan, in a group that it
 * opens and closes.  So they are added behind it: in text format as a line, and in the others in
 * that group, which is opened again.
 */
#include "postgres.h"

#include "commands/explain.h"
#include "lib/stringinfo.h"
#include "optimizer/planner.h"

#include "common/compat.h"
#include "common/stats.h"
#include "plan/citus.h"
#include "plan/reasons.h"
#include "settings.h"

static ExplainOneQuery_hook_type prev_explain_one_query_hook;
static planner_hook_type prev_planner_hook;

/* While EXPLAIN (VERBOSE) plans a query: the reasons so far.  NULL otherwise. */
static StringInfo reasons = NULL;

/* Which query that is: with ANALYZE functions of the query plan others. */
static Query *explained = NULL;

/* An aggregation that has custom paths. */
typedef struct Offer
{
	const RelOptInfo *rel;
	double rows;
	const char *level;
} Offer;

/*
 * Of the query that is planned: those that were not chosen, yet; and the most rows of one that was.
 */
static List *offers = NIL;
static double taken_rows = -1;

/* Most names of what a subquery selects from. */
#define LEVEL_NAMES 3

/* " (subquery of a, b)"; empty for the query itself. */
static const char *
describe_level(const PlannerInfo *root)
{
	StringInfoData text;
	int n = 0;
	ListCell *lc;

	if (root->parent_root == NULL)
		return "";
	initStringInfo(&text);
	foreach (lc, root->parse->rtable)
	{
		RangeTblEntry *rte = lfirst_node(RangeTblEntry, lc);

		if (!rte->inFromCl || rte->rtekind == RTE_JOIN || rte->eref == NULL)
			continue;
		if (n++ < LEVEL_NAMES)
			appendStringInfo(&text, "%s%s", n > 1 ? ", " : "", rte->eref->aliasname);
	}
	return n == 0 ? " (subquery)" :
					psprintf(" (subquery of %s%s)", text.data, n > LEVEL_NAMES ? ", ..." : "");
}

static void
note(int64 query_id, const char *why, const char *level)
{
	StatsKey key = {.event = STATS_REFUSED, .reason = why};
	StatsCount count = {.calls = 1, .query_id = query_id};
	const char *text = psprintf("%s%s", why, level);

	if (reasons && strstr(reasons->data, text) == NULL)
		appendStringInfo(reasons, "%s%s", reasons->len > 0 ? "; " : "", text);
	stats_add(&key, &count);
	if (gpuagg_log_refused)
		ereport(
			LOG,
			(errmsg("gpuagg: query not taken: %s", text),
			 query_id != 0 ? errdetail("Its query identifier is " INT64_FORMAT ".", query_id) : 0,
			 debug_query_string ? errcontext("statement: %s", debug_query_string) : 0,
			 errhidestmt(true)));
}

void
reasons_note(PlannerInfo *root, const char *why)
{
	const char *level = describe_level(root);

	while (root->parent_root)
		root = root->parent_root;
	note((int64) root->parse->queryId, why, level);
}

void
reasons_note_offered(PlannerInfo *root, const RelOptInfo *rel, double rows)
{
	Offer *offer = palloc(sizeof(Offer));

	offer->rel = rel;
	offer->rows = rows;
	offer->level = describe_level(root);
	offers = lappend(offers, offer);
}

void
reasons_note_chosen(const RelOptInfo *rel)
{
	ListCell *lc;

	foreach (lc, offers)
	{
		Offer *offer = lfirst(lc);

		if (offer->rel != rel)
			continue;
		taken_rows = Max(taken_rows, offer->rows);
		offers = foreach_delete_current(offers, lc);
	}
}

/* The query is planned, and these were not chosen. */
static void
note_offers(int64 query_id)
{
	ListCell *lc;

	foreach (lc, offers)
	{
		Offer *offer = lfirst(lc);

		if (offer->rows > taken_rows)
			note(query_id, "another plan is estimated to be cheaper", offer->level);
	}
}

static PlannedStmt *
plan(Query *query, const char *query_string, int cursor_options, ParamListInfo params)
{
	List *outer = offers;
	double outer_rows = taken_rows;
	StringInfo outer_reasons = reasons;
	PlannedStmt *result;

	offers = NIL;
	taken_rows = -1;
	if (query != explained)
		reasons = NULL;
	PG_TRY();
	{
		result = (prev_planner_hook ? prev_planner_hook : standard_planner)(query, query_string,
																			cursor_options, params);
		/* Citus plans a query as if its tables had the rows, for what it learns of it on the way */
		if (!citus_distributes())
			note_offers((int64) result->queryId);
	}
	PG_FINALLY();
	{
		offers = outer;
		taken_rows = outer_rows;
		reasons = outer_reasons;
	}
	PG_END_TRY();
	return result;
}

/* The text with which ExplainCloseGroup() has ended the query's group. */
static char *
group_end(const ExplainState *es)
{
	if (es->format == EXPLAIN_FORMAT_JSON)
		return psprintf("\n%*s}", 2 * es->indent, "");
	if (es->format == EXPLAIN_FORMAT_XML)
		return psprintf("%*s</Query>\n", 2 * es->indent, "");
	return "";
}

/* False if something else stands at the end, of another extension say. */
static bool
reopen_group(ExplainState *es)
{
	char *end = group_end(es);
	int length = strlen(end);

	if (es->str->len < length || strcmp(es->str->data + es->str->len - length, end) != 0)
		return false;
	es->str->len -= length;
	es->str->data[es->str->len] = '\0';
	es->indent++;
	/* there are properties before the next one */
	if (es->format != EXPLAIN_FORMAT_XML)
		es->grouping_stack = lcons_int(1, es->grouping_stack);
	return true;
}

static void
explain_refusals(const char *why, ExplainState *es)
{
	if (es->format == EXPLAIN_FORMAT_TEXT)
		ExplainPropertyText("GpuAgg", psprintf("not used: %s", why), es);
	else if (reopen_group(es))
	{
		ExplainPropertyText("GpuAgg Not Used", why, es);
		ExplainCloseGroup("Query", NULL, true, es);
	}
}

static void
explain_one_query(Query *query, int cursorOptions, IntoClause *into, ExplainState *es,
				  const char *queryString, ParamListInfo params, QueryEnvironment *queryEnv)
{
	StringInfo outer = reasons;
	Query *outer_query = explained;
	StringInfo mine = es->verbose ? makeStringInfo() : NULL;

	reasons = mine;
	explained = query;
	PG_TRY();
	{
		if (prev_explain_one_query_hook)
			prev_explain_one_query_hook(query, cursorOptions, into, es, queryString, params,
										queryEnv);
		else
			compat_explain_one_query(query, cursorOptions, into, es, queryString, params, queryEnv);
	}
	PG_FINALLY();
	{
		reasons = outer;
		explained = outer_query;
	}
	PG_END_TRY();
	if (mine && mine->len > 0)
		explain_refusals(mine->data, es);
}

void
reasons_install_hooks(void)
{
	prev_explain_one_query_hook = ExplainOneQuery_hook;
	ExplainOneQuery_hook = explain_one_query;
	prev_planner_hook = planner_hook;
	planner_hook = plan;
}
