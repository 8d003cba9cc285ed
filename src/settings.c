/*
 * settings.c
 *	  The settings of the extension: variables and definitions.
 */
#include "postgres.h"

#include <float.h>
#include <limits.h>

#include "miscadmin.h"
#include "utils/guc.h"
#include "utils/plancache.h"

#include "device_list.h"
#include "settings.h"
#include "strategy.h"

/* settings_define() sets the defaults. */
bool gpuagg_enabled;
int gpuagg_engine;
int gpuagg_require;
int gpuagg_strategy;
int gpuagg_feed;
int gpuagg_batch_rows;
bool gpuagg_replace_builtin;
int gpuagg_float_sum;
bool gpuagg_foreign_partial;
bool gpuagg_log_refused;

double gpuagg_startup_cost;
double gpuagg_row_cost;
double gpuagg_slot_cost;
double gpuagg_page_row_cost;
double gpuagg_cache_row_cost;
double gpuagg_worker_cost;
double gpuagg_gpu_startup_cost;
double gpuagg_gpu_column_cost;

bool gpuagg_server;
char *gpuagg_server_program;
char *gpuagg_devices_list;
int gpuagg_device_memory_limit;
int gpuagg_device_cache_memory;
int gpuagg_pinned_memory_limit;
int gpuagg_server_timeout;

int gpuagg_cache;
int gpuagg_cache_memory;
double gpuagg_cache_renew;

static const struct config_enum_entry require_options[] = {{"allow", GPUAGG_ALLOW, false},
														   {"require", GPUAGG_REQUIRE, false},
														   {"forbid", GPUAGG_FORBID, false},
														   {NULL, 0, false}};

static const struct config_enum_entry strategy_options[] = {
	{"auto", STRATEGY_AUTO, false},
	{"single", STRATEGY_SINGLE, false},
	{"segmented", STRATEGY_SEGMENTED, false},
	{"direct", STRATEGY_DIRECT, false},
	{"hash", STRATEGY_HASH, false},
	{"sort", STRATEGY_SORT, false},
	{NULL, 0, false}};

static const struct config_enum_entry feed_options[] = {{"auto", GPUAGG_FEED_AUTO, false},
														{"tuples", GPUAGG_FEED_TUPLES, false},
														{"heap", GPUAGG_FEED_HEAP, false},
														{NULL, 0, false}};

static const struct config_enum_entry float_sum_options[] = {
	{"core", GPUAGG_FLOAT_SUM_CORE, false},
	{"exact", GPUAGG_FLOAT_SUM_EXACT, false},
	{NULL, 0, false}};

static const struct config_enum_entry cache_options[] = {
	{"off", GPUAGG_CACHE_OFF, false},     {"on", GPUAGG_CACHE_ON, false},
	{"eager", GPUAGG_CACHE_EAGER, false}, {"false", GPUAGG_CACHE_OFF, true},
	{"true", GPUAGG_CACHE_ON, true},      {"no", GPUAGG_CACHE_OFF, true},
	{"yes", GPUAGG_CACHE_ON, true},       {"0", GPUAGG_CACHE_OFF, true},
	{"1", GPUAGG_CACHE_ON, true},         {NULL, 0, false}};

/* Check hook of gpuagg.devices. */
static bool
check_devices(char **newval, void **extra, GucSource source)
{
	DeviceList list;
	char wrong[200];

	if (device_list_read(*newval, &list, wrong, sizeof(wrong)))
		return true;
	GUC_check_errdetail("%s", wrong);
	GUC_check_errhint("Valid values are \"all\", \"none\", numbers of GPUs as in \"0,2\", and "
					  "UUIDs as in CUDA_VISIBLE_DEVICES, such as \"GPU-8932f937\".");
	return false;
}

/*
 * Assign hook of gpuagg.float_sum: plans that are cached have other results than new ones, so they
 * are made anew.
 */
static void
assign_float_sum(int newval, void *extra)
{
	if (newval != gpuagg_float_sum)
		ResetPlanCache();
}

/* Assign hook of settings that tell whether core's aggregates of floats are exact. */
static void
assign_applies_to_core(bool newval, void *extra)
{
	if (gpuagg_float_sum == GPUAGG_FLOAT_SUM_EXACT)
		ResetPlanCache();
}

/* Defines the settings of planning and execution. */
static void
define_choices(const struct config_enum_entry *engines)
{
	DefineCustomBoolVariable(
		"gpuagg.enabled", "Lets queries be planned with the GpuAgg custom scan.", NULL,
		&gpuagg_enabled, true, PGC_USERSET, GUC_EXPLAIN, NULL, assign_applies_to_core, NULL);
	DefineCustomEnumVariable("gpuagg.engine", "Chooses the engine that computes aggregates.",
							 "\"auto\" chooses by cost among the engines that are available.",
							 &gpuagg_engine, GPUAGG_ENGINE_AUTO, engines, PGC_USERSET, GUC_EXPLAIN,
							 NULL, NULL, NULL);
	DefineCustomEnumVariable(
		"gpuagg.require", "Requires or forbids the custom scan for queries with gpu_* aggregates.",
		"\"require\" raises an error that says why the custom scan cannot be used.",
		&gpuagg_require, GPUAGG_ALLOW, require_options, PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
	DefineCustomEnumVariable("gpuagg.strategy", "Forces the way groups are reduced.",
							 "A strategy that cannot run a query is ignored for it.",
							 &gpuagg_strategy, STRATEGY_AUTO, strategy_options, PGC_USERSET,
							 GUC_EXPLAIN, NULL, NULL, NULL);
	DefineCustomEnumVariable(
		"gpuagg.feed", "Chooses where the custom scan takes its rows from.",
		"\"auto\" and \"heap\" read tables without the executor where that is possible.",
		&gpuagg_feed, GPUAGG_FEED_AUTO, feed_options, PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
	DefineCustomIntVariable("gpuagg.batch_rows", "Sets the number of rows in a batch.",
							"Batches should fit into the processor's second-level cache.",
							&gpuagg_batch_rows, 4096, 64, 1048576, PGC_USERSET, GUC_EXPLAIN, NULL,
							NULL, NULL);
	DefineCustomBoolVariable("gpuagg.replace_builtin",
							 "Plans PostgreSQL's own aggregates with the custom scan as well.",
							 NULL, &gpuagg_replace_builtin, false, PGC_USERSET, GUC_EXPLAIN, NULL,
							 assign_applies_to_core, NULL);
	DefineCustomEnumVariable("gpuagg.float_sum", "Chooses how aggregates add floats.",
							 "With \"exact\", sums, averages, variances and regression of floats "
							 "are computed exactly and "
							 "rounded once.",
							 &gpuagg_float_sum, GPUAGG_FLOAT_SUM_CORE, float_sum_options,
							 PGC_USERSET, GUC_EXPLAIN, NULL, assign_float_sum, NULL);
	DefineCustomBoolVariable(
		"gpuagg.foreign_partial",
		"Allows partial aggregation on the servers of foreign partitions.",
		"Requires enable_partitionwise_aggregate, and gpuagg in the option \"extensions\" of the "
		"servers.",
		&gpuagg_foreign_partial, true, PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
	DefineCustomBoolVariable("gpuagg.log_refused",
							 "Logs why queries were planned without the custom scan.", NULL,
							 &gpuagg_log_refused, false, PGC_SUSET, 0, NULL, NULL, NULL);
}

/* Defines the settings of the cost model. */
static void
define_costs(void)
{
	DefineCustomRealVariable(
		"gpuagg.startup_cost", "Sets the planner's estimate of the cost of starting a custom scan.",
		NULL, &gpuagg_startup_cost, 30.0, 0, DBL_MAX, PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
	DefineCustomRealVariable(
		"gpuagg.row_cost",
		"Sets the planner's estimate of the cost of putting one row into a batch.", NULL,
		&gpuagg_row_cost, 0.001, 0, DBL_MAX, PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
	DefineCustomRealVariable(
		"gpuagg.slot_cost",
		"Sets the planner's estimate of the cost of one key or aggregate for one row.", NULL,
		&gpuagg_slot_cost, 0.0005, 0, DBL_MAX, PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
	DefineCustomRealVariable(
		"gpuagg.page_row_cost",
		"Sets the planner's estimate of the cost of reading one row from a table's pages.",
		"Replaces cpu_tuple_cost if the custom scan reads the pages itself.", &gpuagg_page_row_cost,
		0.0025, 0, DBL_MAX, PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
	DefineCustomRealVariable(
		"gpuagg.cache_row_cost",
		"Sets the planner's estimate of the cost of reading one row from the column cache.", NULL,
		&gpuagg_cache_row_cost, 0.0005, 0, DBL_MAX, PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
	DefineCustomRealVariable("gpuagg.worker_cost",
							 "Sets the planner's estimate of the cost of each parallel worker that "
							 "scans the column cache.",
							 "It counts as parallel_setup_cost if that is less.",
							 &gpuagg_worker_cost, 400.0, 0, DBL_MAX, PGC_USERSET, GUC_EXPLAIN, NULL,
							 NULL, NULL);
	DefineCustomRealVariable(
		"gpuagg.gpu_startup_cost",
		"Sets the planner's estimate of the cost of a session with the GPU server.", NULL,
		&gpuagg_gpu_startup_cost, 100.0, 0, DBL_MAX, PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
	DefineCustomRealVariable("gpuagg.gpu_column_cost",
							 "Sets the planner's estimate of the cost of sending one value to the "
							 "GPU and reducing it there.",
							 NULL, &gpuagg_gpu_column_cost, 0.0001, 0, DBL_MAX, PGC_USERSET,
							 GUC_EXPLAIN, NULL, NULL, NULL);
}

/* Defines the settings of the GPU server. */
static void
define_server_settings(void)
{
	DefineCustomBoolVariable("gpuagg.server", "Starts the GPU server.", NULL, &gpuagg_server, true,
							 PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomStringVariable(
		"gpuagg.server_program", "Sets the path of the GPU server's program.",
		"If empty, it is gpuagg-server in the directory of the extension's library.",
		&gpuagg_server_program, "", PGC_SIGHUP, GUC_SUPERUSER_ONLY, NULL, NULL, NULL);
	DefineCustomStringVariable(
		"gpuagg.devices", "Sets the GPUs that the GPU server uses.",
		"A comma-separated list of GPU numbers or UUIDs, or \"all\", or \"none\".",
		&gpuagg_devices_list, "all", PGC_SIGHUP, 0, check_devices, NULL, NULL);
	DefineCustomIntVariable(
		"gpuagg.device_memory_limit", "Sets the maximum memory for queries on each GPU.",
		"Zero means four fifths of the memory that other processes do not use.",
		&gpuagg_device_memory_limit, 0, 0, INT_MAX, PGC_SIGHUP, GUC_UNIT_MB, NULL, NULL, NULL);
	DefineCustomIntVariable("gpuagg.device_cache_memory",
							"Sets the maximum memory for copies of cached columns on each GPU.",
							"-1 means half of the memory that other processes do not use.  Zero "
							"disables copies.",
							&gpuagg_device_cache_memory, -1, -1, INT_MAX, PGC_SIGHUP, GUC_UNIT_MB,
							NULL, NULL, NULL);
	DefineCustomIntVariable(
		"gpuagg.pinned_memory_limit",
		"Sets the maximum memory that the GPU server pins for its sessions.",
		"Each session needs 24 MB.  A query whose session does not fit uses the CPU engine.",
		&gpuagg_pinned_memory_limit, 4096, 24, INT_MAX, PGC_SIGHUP, GUC_UNIT_MB, NULL, NULL, NULL);
	DefineCustomIntVariable(
		"gpuagg.server_timeout", "Sets the maximum time to wait for a reply of the GPU server.",
		"After that the query continues with the CPU engine.  Zero disables the timeout.",
		&gpuagg_server_timeout, 60000, 0, INT_MAX, PGC_USERSET, GUC_UNIT_MS, NULL, NULL, NULL);
}

/*
 * Defines the settings of the column cache.
 *
 * The cache is in PostgreSQL's shared memory.  Its default size is an eighth of the memory of the
 * machine or control group, at most 1 GB (AlloyDB Omni uses 1 GB, AlloyDB 30 % of its machine).
 * Memory that is not used yet only takes address space, except with huge pages, which are reserved
 * when the server starts.
 *
 * If the library is not preloaded, there is no cache, and gpuagg.cache_memory has no effect.  It is
 * then PGC_SIGHUP, as a PGC_POSTMASTER setting cannot be defined after the start.
 */
static void
define_cache_settings(void)
{
	DefineCustomEnumVariable(
		"gpuagg.cache", "Enables the column cache.",
		"With \"on\" the second query that reads a column caches it, with \"eager\" the first.",
		&gpuagg_cache, GPUAGG_CACHE_ON, cache_options, PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
	DefineCustomIntVariable(
		"gpuagg.cache_memory", "Sets the shared memory for cached columns.",
		"-1 means one eighth of the machine's memory, at most 1 GB.  Zero disables the cache.",
		&gpuagg_cache_memory, -1, -1, 1000000,
		process_shared_preload_libraries_in_progress ? PGC_POSTMASTER : PGC_SIGHUP, GUC_UNIT_MB,
		NULL, NULL, NULL);
	DefineCustomRealVariable("gpuagg.cache_renew",
							 "Sets the fraction of a table's cached blocks that must change before "
							 "they are cached again.",
							 "A background worker caches them.  Zero disables this.",
							 &gpuagg_cache_renew, 0.1, 0, 1, PGC_SIGHUP, 0, NULL, NULL, NULL);
}

void
settings_define(const struct config_enum_entry *engines)
{
	define_choices(engines);
	define_costs();
	define_server_settings();
	define_cache_settings();
	MarkGUCPrefixReserved("gpuagg");
}
