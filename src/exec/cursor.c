/*
 * cursor.c
 *	  Between two fetches a cursor holds no session of the GPU server.
 *
 * A cursor may be idle for as long as its transaction lasts.  After each run of the
 * executor for a portal, engines of that query give back what others may need, and
 * keep in this process the groups that are still to be returned.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "tcop/pquery.h"
#include "utils/portal.h"

#include "common/compat.h"
#include "exec/cursor.h"
#include "engines/engines.h"

static ExecutorRun_hook_type previous_run;

static void
run_and_release(COMPAT_EXECUTOR_RUN_PARAMS)
{
	if (previous_run)
		previous_run(COMPAT_EXECUTOR_RUN_ARGS);
	else
		standard_ExecutorRun(COMPAT_EXECUTOR_RUN_ARGS);

	/*
	 * With a count another run may continue this one, and so may a cursor that can
	 * scroll.  Otherwise none does, and groups that a LIMIT left unread are forgotten.
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
