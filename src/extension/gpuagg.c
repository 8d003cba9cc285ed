/*
 * gpuagg.c
 *	  Library entry: settings, hooks and registrations.
 *
 * The library may be loaded by shared_preload_libraries, by
 * session_preload_libraries, or by the first use of one of its functions; all
 * three come through _PG_init.
 */
#include "postgres.h"

#include "fmgr.h"

#include "cache/store.h"
#include "common/progress.h"
#include "common/stats.h"
#include "engines/engines.h"
#include "exec/cursor.h"
#include "exec/exec.h"
#include "plan/plan.h"
#include "settings.h"
#include "supervisor/supervisor.h"

PG_MODULE_MAGIC;

void _PG_init(void);

void
_PG_init(void)
{
	settings_define(engines_options());

	supervisor_init();
	progress_init();
	stats_init();
	cache_store_init();

	exec_register();
	plan_install_hooks();
	cursor_install_hooks();
}
