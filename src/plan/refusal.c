/*
 * refusal.c
 *	  Reasons why a query was not taken: for EXPLAIN (VERBOSE), gpuagg_stats and the log.
 *
 * One reason is known when the query has been planned: there were custom paths, and others were chosen.
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
#include "plan/refusal.h"
#include "settings.h"

static ExplainOneQuery_hook_type prev_explain_one_query_hook;
static planner_hook_type prev_planner_hook;

/* While EXPLAIN (VERBOSE) plans a query: the reasons so far.  NULL otherwise. */
static StringInfo refusals = NULL;

/* Of the query that is planned: aggregations with custom paths that were not chosen, yet. */
static int	offers = 0;

static void
note(int64 query_id, const char *why)
{
	StatsKey	key = {.event = STATS_REFUSED,.reason = why};
	StatsCount	count = {.calls = 1,.query_id = query_id};

	if (refusals && strstr(refusals->data, why) == NULL)
		appendStringInfo(refusals, "%s%s", refusals->len > 0 ? "; " : "", why);
	stats_add(&key, &count);
	if (gpuagg_log_refused)
		ereport(LOG,
				(errmsg("gpuagg: query not taken: %s", why),
				 query_id != 0 ? errdetail("Its query identifier is " INT64_FORMAT ".", query_id) : 0,
				 debug_query_string ? errcontext("statement: %s", debug_query_string) : 0,
				 errhidestmt(true)));
}

void
refusal_note(PlannerInfo *root, const char *why)
{
	while (root->parent_root)
		root = root->parent_root;
	note((int64) root->parse->queryId, why);
}

void
refusal_offered(void)
{
	offers++;
}

void
refusal_chosen(void)
{
	offers--;
}

static PlannedStmt *
plan(Query *query, const char *query_string, int cursor_options, ParamListInfo params)
{
	int			outer = offers;
	PlannedStmt *result;

	offers = 0;
	PG_TRY();
	{
		result = (prev_planner_hook ? prev_planner_hook : standard_planner) (query, query_string, cursor_options, params);
		/* Citus plans a query as if its tables had the rows, for what it learns of it on the way */
		if (offers > 0 && !citus_distributes())
			note((int64) result->queryId, "another plan is estimated to be cheaper");
	}
	PG_FINALLY();
	{
		offers = outer;
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
	char	   *end = group_end(es);
	int			length = strlen(end);

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
	StringInfo	outer = refusals;
	StringInfo	mine = es->verbose ? makeStringInfo() : NULL;

	refusals = mine;
	PG_TRY();
	{
		if (prev_explain_one_query_hook)
			prev_explain_one_query_hook(query, cursorOptions, into, es, queryString, params,
										queryEnv);
		else
			compat_explain_one_query(query, cursorOptions, into, es, queryString, params,
									 queryEnv);
	}
	PG_FINALLY();
	{
		refusals = outer;
	}
	PG_END_TRY();
	if (mine && mine->len > 0)
		explain_refusals(mine->data, es);
}

void
refusal_install_hooks(void)
{
	prev_explain_one_query_hook = ExplainOneQuery_hook;
	ExplainOneQuery_hook = explain_one_query;
	prev_planner_hook = planner_hook;
	planner_hook = plan;
}
