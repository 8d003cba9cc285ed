/*
 * refusal.c
 *	  Reasons why a query was not taken, for EXPLAIN (VERBOSE).
 */
#include "postgres.h"

#include "commands/explain.h"
#include "lib/stringinfo.h"

#include "common/compat.h"
#include "plan/refusal.h"

static ExplainOneQuery_hook_type prev_explain_one_query_hook;

/* While EXPLAIN (VERBOSE) plans a query: the reasons so far.  NULL otherwise. */
static StringInfo refusals = NULL;

void
refusal_note(const char *why)
{
	if (refusals && strstr(refusals->data, why) == NULL)
		appendStringInfo(refusals, "%s%s", refusals->len > 0 ? "; " : "", why);
}

/*
 * In text format alone: in the others the query's group is closed after planning and
 * printing, and readers expect nothing behind it.
 */
static void
explain_one_query(Query *query, int cursorOptions, IntoClause *into, ExplainState *es,
				  const char *queryString, ParamListInfo params, QueryEnvironment *queryEnv)
{
	StringInfo	outer = refusals;
	StringInfo	mine = es->verbose && es->format == EXPLAIN_FORMAT_TEXT ? makeStringInfo() : NULL;

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
		ExplainPropertyText("GpuAgg", psprintf("not used: %s", mine->data), es);
}

void
refusal_install_hooks(void)
{
	prev_explain_one_query_hook = ExplainOneQuery_hook;
	ExplainOneQuery_hook = explain_one_query;
}
