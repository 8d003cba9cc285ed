/*
 * engine_choice.c
 *	  The choice of the engine, and what it costs to use the GPU.
 */
#include "postgres.h"

#include "engine_cuda/query.h"
#include "engine.h"
#include "engine_cuda/engine_cuda.h"
#include "gpuagg.h"
#include "supervisor/state.h"

double		gpuagg_gpu_startup_cost = 100.0;
double		gpuagg_gpu_column_cost = 0.0001;

/* What the CPU engine's feed pays to sort a row, in slots. */
#define SORT_WORK 16

bool
engine_cuda_usable(const AggSpec *spec, char *reason, size_t reason_size)
{
	const char *why;

	if (!server_ready(reason, reason_size))
		return false;
	if (spec == NULL)
		return true;
	if (spec->ordered_floats)
	{
		strlcpy(reason, "a sum of floats has an order", reason_size);
		return false;
	}
	if (cuda_query_build(spec, &why) != NULL)
		return true;
	strlcpy(reason, why, reason_size);
	return false;
}

/*
 * Would it be cheaper on the GPU, for so many rows?  Without a spec, for a common query.
 *
 * The CPU engine pays for every key and slot of a row, the GPU for every column
 * that is copied, and for a session.
 */
static bool
cheaper_on_gpu(const AggSpec *spec, double rows)
{
	int			columns = spec ? spec->ncols : 2;
	int			work = spec ? spec->nslots + spec->nkeys : 3;
	double		cpu = rows * work * gpuagg_slot_cost;
	double		gpu = gpuagg_gpu_startup_cost + rows * columns * gpuagg_gpu_column_cost;

	if (spec && spec->norder > 0)
		cpu += rows * SORT_WORK * gpuagg_slot_cost;
	return gpu < cpu;
}

/*
 * The engine for a query of so many rows, with the reason or the device for
 * EXPLAIN in `reason` (empty if none is due).  `spec` is NULL before execution,
 * when the aggregates' parts are not known yet.  With in_order groups leave in
 * the order in which their rows come.
 *
 * "cuda" insists on a server, not on every query: what the GPU cannot run goes
 * to the CPU engine, with the reason.
 */
const EngineOps *
gpuagg_choose_engine(const AggSpec *spec, double rows, bool in_order, char *reason,
					 size_t reason_size)
{
	snprintf(reason, reason_size, "%s", "");
	if (gpuagg_engine == GPUAGG_ENGINE_CPU)
		return &engine_cpu_ops;
	if (!server_ready(reason, reason_size))
	{
		if (gpuagg_engine == GPUAGG_ENGINE_CUDA)
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("the CUDA engine is not available"),
					 errdetail("The reason is: %s.", reason),
					 errhint("Set \"%s\" to \"auto\" or \"cpu\".", "gpuagg.engine")));
		return &engine_cpu_ops;
	}
	if (in_order)
	{
		/* groups are expected in that order */
		snprintf(reason, reason_size, "the input is ordered");
		return &engine_cpu_ops;
	}
	if (!engine_cuda_usable(spec, reason, reason_size))
		return &engine_cpu_ops;
	if (gpuagg_engine == GPUAGG_ENGINE_AUTO && !cheaper_on_gpu(spec, rows))
	{
		snprintf(reason, reason_size, "too few rows for the GPU");
		return &engine_cpu_ops;
	}
	server_device_name(reason, reason_size);
	return &engine_cuda_ops;
}
