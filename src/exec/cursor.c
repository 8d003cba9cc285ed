/*
 * cursor.c
 *	  Cursors hold no session of the GPU server while they rest.
 *
 * Between two fetches a cursor may rest for as long as its transaction.  After
 * each run of the executor for a portal, engines of that query give back what they
 * hold at the server, and keep here the groups that are still to be returned.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "tcop/pquery.h"
#include "utils/portal.h"

#include "common/compat.h"
#include "exec/cursor.h"
#include "engine_cuda/engine_cuda.h"

static ExecutorRun_hook_type previous_run;

static void
run_and_release(COMPAT_EXECUTOR_RUN_PARAMS)
{
	if (previous_run)
		previous_run(COMPAT_EXECUTOR_RUN_ARGS);
	else
		standard_ExecutorRun(COMPAT_EXECUTOR_RUN_ARGS);

	/*
	 * With a count there may be another run, and a cursor that can go back may do
	 * so.  Otherwise there is none that goes on, and groups that a LIMIT did not
	 * ask for are forgotten.
	 */
	if (ActivePortal && ActivePortal->queryDesc == query && query->estate)
		engine_cuda_release(query->estate, count > 0 ||
							(ActivePortal->cursorOptions & CURSOR_OPT_SCROLL) != 0);
}

void
cursor_install_hooks(void)
{
	previous_run = ExecutorRun_hook;
	ExecutorRun_hook = run_and_release;
}
