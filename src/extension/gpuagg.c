/*
 * gpuagg.c
 *	  _PG_init(): defines settings and installs hooks.
 *
 * The library may be loaded by shared_preload_libraries, by session_preload_libraries, or by the
 * first call of one of its functions.  PostgreSQL calls _PG_init() in all cases.
 */
#include "postgres.h"

#include "fmgr.h"

#include "cache/store.h"
#include "common/progress.h"
#include "common/stats.h"
#include "engines/engines.h"
#include "exec/cursor.h"
#include "exec/exec.h"
#include "exec/top_rows.h"
#include "plan/build_node.h"
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
	top_rows_register();
	build_node_register();
	plan_install_hooks();
	cursor_install_hooks();
}
