/*
 * gpuagg.c
 *	  Library entry: settings and hooks.
 *
 * The library may be loaded by shared_preload_libraries, by
 * session_preload_libraries, or by the first use of one of its functions; all
 * three come through _PG_init.
 */
#include "postgres.h"

#include <limits.h>

#include "fmgr.h"
#include "utils/guc.h"

#include "exec/cursor.h"
#include "engine_cuda/engine_cuda.h"
#include "exec/exec.h"
#include "gpuagg.h"
#include "plan/plan.h"
#include "common/progress.h"
#include "supervisor/state.h"
#include "strategy.h"

PG_MODULE_MAGIC;

bool		gpuagg_enabled = true;
int			gpuagg_engine = GPUAGG_ENGINE_AUTO;
int			gpuagg_require = GPUAGG_ALLOW;
int			gpuagg_strategy = STRATEGY_AUTO;
int			gpuagg_feed = GPUAGG_FEED_AUTO;
int			gpuagg_batch_rows = 4096;
bool		gpuagg_replace_builtin = false;
double		gpuagg_startup_cost = 30.0;
double		gpuagg_row_cost = 0.001;
double		gpuagg_slot_cost = 0.0005;
double		gpuagg_page_row_cost = 0.0025;

static const struct config_enum_entry engine_options[] = {
	{"auto", GPUAGG_ENGINE_AUTO, false},
	{"cuda", GPUAGG_ENGINE_CUDA, false},
	{"cpu", GPUAGG_ENGINE_CPU, false},
	{NULL, 0, false}
};

static const struct config_enum_entry require_options[] = {
	{"allow", GPUAGG_ALLOW, false},
	{"require", GPUAGG_REQUIRE, false},
	{"forbid", GPUAGG_FORBID, false},
	{NULL, 0, false}
};

static const struct config_enum_entry strategy_options[] = {
	{"auto", STRATEGY_AUTO, false},
	{"single", STRATEGY_SINGLE, false},
	{"segmented", STRATEGY_SEGMENTED, false},
	{"direct", STRATEGY_DIRECT, false},
	{"hash", STRATEGY_HASH, false},
	{"sort", STRATEGY_SORT, false},
	{NULL, 0, false}
};

static const struct config_enum_entry feed_options[] = {
	{"auto", GPUAGG_FEED_AUTO, false},
	{"tuples", GPUAGG_FEED_TUPLES, false},
	{"heap", GPUAGG_FEED_HEAP, false},
	{NULL, 0, false}
};

/* Settings that say what is done. */
static void
define_choices(void)
{
	DefineCustomBoolVariable("gpuagg.enabled",
							 "Lets queries be planned with the GpuAgg custom scan.",
							 NULL, &gpuagg_enabled, true,
							 PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
	DefineCustomEnumVariable("gpuagg.engine",
							 "Chooses the engine that computes aggregates.",
							 "\"auto\" takes the GPU where there is one.",
							 &gpuagg_engine, GPUAGG_ENGINE_AUTO, engine_options,
							 PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
	DefineCustomEnumVariable("gpuagg.require",
							 "Requires or forbids the custom scan for queries with gpu_* aggregates.",
							 "\"require\" raises an error with the reason where it cannot be used.",
							 &gpuagg_require, GPUAGG_ALLOW, require_options,
							 PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
	DefineCustomEnumVariable("gpuagg.strategy",
							 "Forces the way groups are reduced.",
							 "A strategy that cannot run a query is ignored for it.",
							 &gpuagg_strategy, STRATEGY_AUTO, strategy_options,
							 PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
	DefineCustomEnumVariable("gpuagg.feed",
							 "Chooses where the custom scan takes its rows from.",
							 "\"heap\", and \"auto\" as well, reads tables without the executor where it can.",
							 &gpuagg_feed, GPUAGG_FEED_AUTO, feed_options,
							 PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
	DefineCustomIntVariable("gpuagg.batch_rows",
							"Sets the number of rows in a batch.",
							"Batches should fit into the processor's second-level cache.",
							&gpuagg_batch_rows, 4096, 64, 1048576,
							PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
	DefineCustomBoolVariable("gpuagg.replace_builtin",
							 "Plans PostgreSQL's own aggregates with the custom scan as well.",
							 NULL, &gpuagg_replace_builtin, false,
							 PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
}

/* Settings of the cost model. */
static void
define_costs(void)
{
	DefineCustomRealVariable("gpuagg.startup_cost",
							 "Sets the planner's estimate of the cost of starting a custom scan.",
							 NULL, &gpuagg_startup_cost, 30.0, 0, DBL_MAX,
							 PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
	DefineCustomRealVariable("gpuagg.row_cost",
							 "Sets the planner's estimate of the cost of putting one row into a batch.",
							 NULL, &gpuagg_row_cost, 0.001, 0, DBL_MAX,
							 PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
	DefineCustomRealVariable("gpuagg.slot_cost",
							 "Sets the planner's estimate of the cost of one key or aggregate for one row.",
							 NULL, &gpuagg_slot_cost, 0.0005, 0, DBL_MAX,
							 PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
	DefineCustomRealVariable("gpuagg.page_row_cost",
							 "Sets the planner's estimate of the cost of reading one row from a table's pages.",
							 "Takes the place of cpu_tuple_cost where the custom scan reads the pages itself.",
							 &gpuagg_page_row_cost, 0.0025, 0, DBL_MAX,
							 PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
	DefineCustomRealVariable("gpuagg.gpu_startup_cost",
							 "Sets the estimate of the cost of a session with the GPU server.",
							 NULL, &gpuagg_gpu_startup_cost, 100.0, 0, DBL_MAX,
							 PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
	DefineCustomRealVariable("gpuagg.gpu_column_cost",
							 "Sets the estimate of the cost of bringing one value to the GPU and reducing it there.",
							 NULL, &gpuagg_gpu_column_cost, 0.0001, 0, DBL_MAX,
							 PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
}

void		_PG_init(void);

void
_PG_init(void)
{
	define_choices();
	define_costs();
	server_state_init();
	progress_init();
	MarkGUCPrefixReserved("gpuagg");

	exec_register();
	plan_install_hooks();
	cursor_install_hooks();
}
