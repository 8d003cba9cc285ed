/*
 * cursor.c
 *	  Releases sessions of the GPU server between two fetches of a cursor.
 *
 * A cursor may be idle until its transaction ends.  After each run of the executor for a portal,
 * the engines of that query release what other queries may need.  They keep the groups that are
 * still to be returned in this process.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "tcop/pquery.h"
#include "utils/portal.h"

#include "common/compat.h"
#include "exec/cursor.h"
#include "engines/engines.h"

static ExecutorRun_hook_type previous_run;

/*
 * ExecutorRun_hook: runs the executor, then releases what the query's engines hold, if a portal
 * runs it.
 */
static void
run_and_release(COMPAT_EXECUTOR_RUN_PARAMS)
{
	if (previous_run)
		previous_run(COMPAT_EXECUTOR_RUN_ARGS);
	else
		standard_ExecutorRun(COMPAT_EXECUTOR_RUN_ARGS);

	/*
	 * With a count, or in a scrollable cursor, another run may continue this one.  Otherwise groups
	 * that a LIMIT left unread are dropped.
	 */
	if (ActivePortal && ActivePortal->queryDesc == query && query->estate)
		engines_release(query->estate,
						count > 0 || (ActivePortal->cursorOptions & CURSOR_OPT_SCROLL) != 0);
}

void
cursor_install_hooks(void)
{
	previous_run = ExecutorRun_hook;
	ExecutorRun_hook = run_and_release;
}
