/*
 * reasons.c
 *	  Records why a query has no custom scan: for EXPLAIN (VERBOSE), gpuagg_stats and the log.
 *
 * Most reasons arise when the planner's hooks find that an aggregation is not supported.  One
 * reason is known only after planning: the aggregation had custom paths, but core chose another
 * path.  It is not recorded if a custom scan was chosen for another aggregation of the query with
 * at least as many rows, as in a count of groups.
 *
 * EXPLAIN and the log add which subquery a reason belongs to, by the tables that it selects from.
 * gpuagg_stats counts the reasons without that.
 *
 * EXPLAIN plans a query before it prints the plan, in a group that core opens and closes.  So the
 * reasons are printed after the plan: in text format as a line, in other formats in the same group,
 * which is opened again.
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

/* The reasons so far, while EXPLAIN (VERBOSE) plans a query; else NULL. */
static StringInfo reasons = NULL;

/* The query that EXPLAIN plans.  With ANALYZE, functions of the query plan other queries. */
static Query *explained = NULL;

/* An aggregation that has custom paths, none of which has been chosen yet. */
typedef struct Candidate
{
	const RelOptInfo *rel; /* the result of the aggregation */
	double rows;           /* estimated input rows */
	const char *subquery;  /* see describe_subquery */
} Candidate;

/* The candidates of the query that is being planned. */
static List *candidates = NIL;
/* The largest input of a custom scan that was chosen for it; -1: none. */
static double chosen_rows = -1;

/* True while a plan is made that is only compared with another one: no reason is recorded. */
static bool paused = false;
/* The plan that was made last, outside of pauses, has a custom scan. */
static bool last_is_ours = false;

/* Tables that are named in the description of a subquery. */
#define SUBQUERY_NAMES 3

/* Returns " (subquery of a, b)" for a subquery, and "" for the query itself. */
static const char *
describe_subquery(const PlannerInfo *root)
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
		if (n++ < SUBQUERY_NAMES)
			appendStringInfo(&text, "%s%s", n > 1 ? ", " : "", rte->eref->aliasname);
	}
	return n == 0 ? " (subquery)" :
					psprintf(" (subquery of %s%s)", text.data, n > SUBQUERY_NAMES ? ", ..." : "");
}

/* Records a reason for EXPLAIN, in gpuagg_stats, and in the log if gpuagg.log_refused is on. */
static void
record_reason(int64 query_id, const char *why, const char *subquery)
{
	StatsKey key = {.event = STATS_REFUSED, .reason = why};
	StatsCount count = {.calls = 1, .query_id = query_id};
	const char *text = psprintf("%s%s", why, subquery);

	if (paused)
		return;
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

/* Records a reason why the query of `root`, perhaps a subquery, has no custom path. */
static void
record_for_query(PlannerInfo *root, const char *why)
{
	const char *subquery = describe_subquery(root);

	while (root->parent_root)
		root = root->parent_root;
	record_reason((int64) root->parse->queryId, why, subquery);
}

void
reasons_reject(PlannerInfo *root, bool required, const char *why)
{
	record_for_query(root, why);
	if (required)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("query cannot be executed by the custom scan \"GpuAgg\""),
				 errdetail("The reason is: %s.", why),
				 errhint("Set \"%s\" to \"allow\" to execute it without.", "gpuagg.require")));
	ereport(DEBUG1, (errmsg_internal("gpuagg: not used: %s", why)));
}

void
reasons_add_candidate(PlannerInfo *root, const RelOptInfo *rel, double rows)
{
	Candidate *candidate = palloc(sizeof(Candidate));

	candidate->rel = rel;
	candidate->rows = rows;
	candidate->subquery = describe_subquery(root);
	candidates = lappend(candidates, candidate);
}

void
reasons_note_chosen(const RelOptInfo *rel)
{
	ListCell *lc;

	foreach (lc, candidates)
	{
		Candidate *candidate = lfirst(lc);

		if (candidate->rel != rel)
			continue;
		chosen_rows = Max(chosen_rows, candidate->rows);
		candidates = foreach_delete_current(candidates, lc);
	}
}

/* Records, after planning, that core found cheaper paths for the remaining candidates. */
static void
record_candidates(int64 query_id)
{
	ListCell *lc;

	foreach (lc, candidates)
	{
		Candidate *candidate = lfirst(lc);

		if (candidate->rows > chosen_rows)
			record_reason(query_id, "another plan is estimated to be cheaper", candidate->subquery);
	}
}

bool
reasons_pause(bool pause)
{
	bool before = paused;

	paused = pause;
	return before;
}

void
reasons_note_cheaper(int64 query_id)
{
	if (last_is_ours)
		record_reason(query_id, "another plan is estimated to be cheaper", "");
}

/*
 * The planner hook: plans the query, and records its candidates that were not chosen.  Is called
 * recursively if planning a query evaluates a function that plans another one.
 */
static PlannedStmt *
plan_and_record(COMPAT_PLANNER_PARAMS)
{
	List *outer = candidates;
	double outer_rows = chosen_rows;
	StringInfo outer_reasons = reasons;
	PlannedStmt *result;

	candidates = NIL;
	chosen_rows = -1;
	if (query != explained)
		reasons = NULL;
	PG_TRY();
	{
		result = (prev_planner_hook ? prev_planner_hook : standard_planner)(COMPAT_PLANNER_ARGS);
		/*
		 * Citus plans a distributed query once more as if its tables were local: that plan is not
		 * used
		 */
		if (!citus_distributes())
			record_candidates((int64) result->queryId);
		if (!paused)
			last_is_ours = chosen_rows >= 0;
	}
	PG_FINALLY();
	{
		candidates = outer;
		chosen_rows = outer_rows;
		reasons = outer_reasons;
	}
	PG_END_TRY();
	return result;
}

/* Returns the text that ExplainCloseGroup() appends to close the query's group. */
static char *
group_end(const ExplainState *es)
{
	if (es->format == EXPLAIN_FORMAT_JSON)
		return psprintf("\n%*s}", 2 * es->indent, "");
	if (es->format == EXPLAIN_FORMAT_XML)
		return psprintf("%*s</Query>\n", 2 * es->indent, "");
	return "";
}

/*
 * Opens the query's group again, by removing the text that closes it.  Returns false if the output
 * ends with other text, for example of another extension.
 */
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

/* Prints the reasons after the plan. */
static void
explain_reasons(const char *why, ExplainState *es)
{
	if (es->format == EXPLAIN_FORMAT_TEXT)
		ExplainPropertyText("GpuAgg", psprintf("not used: %s", why), es);
	else if (reopen_group(es))
	{
		ExplainPropertyText("GpuAgg Not Used", why, es);
		ExplainCloseGroup("Query", NULL, true, es);
	}
}

/* The ExplainOneQuery_hook: with VERBOSE, collects reasons while it runs, and prints them. */
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
		explain_reasons(mine->data, es);
}

void
reasons_install_hooks(void)
{
	prev_explain_one_query_hook = ExplainOneQuery_hook;
	ExplainOneQuery_hook = explain_one_query;
	prev_planner_hook = planner_hook;
	planner_hook = plan_and_record;
}
