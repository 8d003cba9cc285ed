/*
 * refusal.c
 *	  Reasons why a query was not taken, for EXPLAIN (VERBOSE).
 *
 * Planning, where they arise, comes before EXPLAIN prints the query's plan, in a group that it
 * opens and closes.  So they are added behind it: in text format as a line, and in the others in
 * that group, which is opened again.
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
}
