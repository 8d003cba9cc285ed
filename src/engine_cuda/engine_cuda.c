/*
 * engine_cuda.c
 *	  The engine that runs on the GPU server.
 *
 * Floats: core adds them in the order of rows, and raises an error if a sum leaves the range of its
 * type on the way. The GPU adds them exactly, in no order, and would not notice. So floats large
 * enough for that (cuda_query_large) are never sent. A serial scan starts over with the CPU engine.
 * Where rows come only once, as in a parallel scan, the CPU fallback takes such batches; its sums
 * are then combined with the others as core combines those of its workers.
 *
 * Failures: whatever goes wrong at the server (it ends, or a sum leaves its range) is ENGINE_FAILED
 * with the reason. The executor then starts over with the CPU engine, which also raises the error
 * that core would raise.
 *
 * Parallel scans: the participants share one query at the server where they can. They cannot if
 * keys are sent as codes of a process's own dictionary. Each then has a query of its own, and their
 * groups are exchanged: export writes them in the CPU engine's form, through the CPU fallback, and
 * import reads them into it.
 *
 * CPU fallback: it also takes batches that the server cannot take. These are batches with
 * unrepresentable numerics or large floats, batches with new keys when the dictionaries have
 * reached their limit, and all batches from the first one that the server had no room for. Rows
 * that were sent are then read back from the arena, where they stay until the server has taken
 * them.
 *
 * Rows that arrive grouped, and whose groups leave in their order, are handled in sorted.c.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "engine_cpu/engine_cpu.h"
#include "engine_cuda/cuda_engine.h"
#include "engine_cuda/engine_cuda.h"
#include "settings.h"
#include "supervisor/state.h"
#include "supervisor/supervisor.h"

/* ---- opening ---- */

/* Returns the engine to its state after opening. The session stays as it is. */
static void
forget_rows(CudaEngine *cuda)
{
	cuda->buffer = 0;
	cuda->rows = 0;
	memset(cuda->busy, 0, sizeof(cuda->busy));
	cuda->full = false;
	cuda->joined = cuda->owner = false;
	cuda->finished = cuda->variants = cuda->ending = false;
	cuda->next_group = cuda->ahead.n = 0;
	cuda->returned_slots = NULL;
	cuda->limit.count = cuda->limit.nconditions = 0;
	cuda->asked.count = 0;
	cuda->base.left_out = cuda->base.failed = 0;
	if (cuda->spool)
		cuda_spool_free(cuda->spool);
	cuda->spool = NULL;
	memset(&cuda->result, 0, sizeof(cuda->result));
	cuda->rows_given = cuda->cpu_fallback_rows = cuda->batches = cuda->bytes_from_device = 0;
	cuda->rows_resident = cuda->uploaded = cuda->cells_sent = cuda->cells_kept = 0;
	cuda->passes = 0;
	cuda->not_resident = NULL;
	memset(&cuda->times, 0, sizeof(cuda->times));
	/* a CPU fallback in cuda->cpu_fallback would count as one with groups */
	if (cuda->cpu_fallback)
	{
		cuda->cpu_fallback->ops->reset(cuda->cpu_fallback);
		cuda->idle_cpu_fallback = cuda->cpu_fallback;
		cuda->cpu_fallback = NULL;
	}
}

/*
 * Returns why the query cannot run where rows come only once, or NULL. With some queries the engine
 * may find half-way that only the CPU engine has the right answer.
 */
static const char *
single_pass_unsupported_reason(const AggSpec *spec, const CudaQuery *query,
							   const EngineInput *input)
{
	if (!engine_reads_once(input) || engine_returns_in_order(spec, input))
		return NULL;
	if (cuda_query_multiplies(query))
		return "overflow of a product depends on row order, and the input cannot be read twice";
	if (input->parallel)
		return NULL;
	if (spec->ordered)
		return "all ordered rows must fit into GPU memory, and the input cannot be read twice";
	if (query->wire->nsets > 0)
		return "all distinct or ordered values must fit into GPU memory, and the input cannot be "
			   "read twice";
	for (int k = 0; k < spec->nkeys; k++)
		if (spec->keys[k].varies)
			return "equal keys may print differently, and the input cannot be read twice";
	return NULL;
}

/* Returns the query, or NULL, with the reason in *why, if the GPU cannot run it. */
static CudaQuery *
build_query(const AggSpec *spec, const EngineInput *input, const char **why)
{
	CudaQuery *query = cuda_query_build(spec, engine_returns_in_order(spec, input), why);

	return query && (*why = single_pass_unsupported_reason(spec, query, input)) != NULL ? NULL :
																						  query;
}

/*
 * Opens the session before the first row, which gives the server time for OPEN. If the executor
 * cannot start over, the engine must know before the first row whether there is a session.
 */
static void
open_early(CudaEngine *cuda)
{
	const char *why;

	if (!cuda->sorted && cuda_can_start_over(cuda))
		cuda_begin_open(cuda, NULL);
	else if (cuda_ensure_open(cuda, NULL) == ENGINE_OK && cuda->sorted &&
			 (why = cuda_sorted_begin(cuda)) != NULL)
		cuda_fail(cuda, why);
}

static Engine *
cuda_open(const AggSpec *spec, const EngineEnv *env)
{
	MemoryContext old = MemoryContextSwitchTo(env->cxt);
	CudaEngine *cuda = palloc0(sizeof(CudaEngine));
	const char *why = NULL;

	cuda->base.ops = &engine_cuda_ops;
	cuda->spec = spec;
	cuda->env = *env;
	cuda->env.input.grouped = engine_returns_in_order(spec, &env->input);
	cuda_register(cuda);
	cuda->query = build_query(spec, &env->input, &why);
	if (cuda->query == NULL)
		cuda_fail(cuda, why);
	cuda->group_cxt = AllocSetContextCreate(env->cxt, "GPU groups", ALLOCSET_DEFAULT_SIZES);
	forget_rows(cuda);
	if (cuda->query && cuda->env.input.grouped)
		cuda->sorted = cuda_sorted_create(cuda);
	if (cuda->query && !cuda_query_needs_batch(cuda->query) &&
		!(env->input.parallel && cuda_query_shareable(cuda->query)))
		open_early(cuda);
	MemoryContextSwitchTo(old);
	return &cuda->base;
}

static EngineStatus
add_batch(Engine *engine, const Batch *batch)
{
	CudaEngine *cuda = (CudaEngine *) engine;

	return cuda->sorted ? cuda_sorted_add(cuda, batch) : cuda_add_batch(engine, batch);
}

/* ---- groups ---- */

/* EngineOps.limit */
static void
cuda_limit(Engine *engine, const EngineLimit *limit)
{
	((CudaEngine *) engine)->limit = *limit;
}

/*
 * Lets the server finish its groups, which can be fetched afterwards. For `final` see
 * cuda_send_finish().
 */
static EngineStatus
finish_device(CudaEngine *cuda, bool final)
{
	instr_time since;

	if (cuda_send_all(cuda) != ENGINE_OK)
		return ENGINE_FAILED;
	since = cuda_clock();
	if ((!cuda->ending && !cuda_send_finish(cuda, final, false)) || !cuda_receive_finished(cuda))
		return cuda_fail_client(cuda);
	cuda_add_time(&cuda->times.finish_ms, since);
	cuda->result.strategy[sizeof(cuda->result.strategy) - 1] = '\0';
	cuda->next_group = 0;
	cuda->base.left_out =
		cuda->result.allgroups - Min(cuda->result.ngroups, cuda->result.allgroups);
	cuda->base.failed = Min(cuda->result.failed, cuda->base.left_out);
	if (cuda->result.undetermined > 0)
		return cuda_fail(cuda, "a row needs the CPU, for an error or an unusual value");
	if (cuda->result.errors == 0)
		return ENGINE_OK;
	if (cuda_can_start_over(cuda))
		return cuda_fail(cuda, "a sum is out of range, which the CPU engine reports");
	cuda->base.errors |= cuda->result.errors;
	return ENGINE_OK;
}

/* Returns whether this engine must fetch groups of the server. */
static bool
has_device_groups(const CudaEngine *cuda)
{
	return cuda->joined ? cuda->owner : cuda->rows_given > 0;
}

/* Moves this engine's groups from the server to the CPU fallback. */
static EngineStatus
move_device_groups(CudaEngine *cuda)
{
	Engine *cpu_fallback = cuda_get_cpu_fallback(cuda);
	GroupBatch groups;

	if (!has_device_groups(cuda))
		return ENGINE_OK;
	if (finish_device(cuda, false) != ENGINE_OK)
		return ENGINE_FAILED;
	while (cuda_next_device_groups(cuda, &groups))
	{
		CHECK_FOR_INTERRUPTS();
		cpu_combine_groups(cpu_fallback, &groups);
	}
	if (cuda->base.failure[0] != '\0')
		return ENGINE_FAILED;
	return cuda_note_cpu_fallback_errors(cuda);
}

static EngineStatus
finish_groups(CudaEngine *cuda)
{
	EngineStatus status;

	if (cuda->query == NULL)
		return ENGINE_FAILED;
	/* rows that the server has no room for create the CPU fallback */
	if (has_device_groups(cuda) && cuda_send_all(cuda) != ENGINE_OK)
		return ENGINE_FAILED;
	if (cuda->cpu_fallback == NULL && has_device_groups(cuda))
	{
		bool maybe_none = cuda->owner || cuda->rows_resident > 0;

		status = finish_device(cuda, true);
		/*
		 * There were no rows at all (of a shared query, or after a condition). The CPU fallback
		 * makes the one group of a query without keys.
		 */
		if (status != ENGINE_OK || cuda->result.ngroups > 0 || cuda->result.allgroups > 0 ||
			!maybe_none)
			return status;
		cuda->owner = false;
		cuda->rows_given = 0;
		cuda_get_cpu_fallback(cuda);
	}
	/* with distinct and ordered values, this is the only case of a CPU fallback */
	if (cuda->spec->nkeys == 0)
		cuda_check_fractions(cuda);
	status = move_device_groups(cuda);
	if (status != ENGINE_OK)
		return status;
	status = cuda->cpu_fallback->ops->finish(cuda->cpu_fallback);
	return status == ENGINE_OK ? cuda_note_cpu_fallback_errors(cuda) :
								 cuda_fail(cuda, cuda->cpu_fallback->failure);
}

static EngineStatus
cuda_finish(Engine *engine)
{
	CudaEngine *cuda = (CudaEngine *) engine;
	EngineStatus status;

	if (cuda->sorted)
	{
		cuda_sorted_finish(cuda);
		return ENGINE_OK;
	}
	status = finish_groups(cuda);

	/*
	 * Set only now. finish_groups() may call functions of the keys' types, which may run queries,
	 * and these end sessions of finished engines.
	 */
	cuda->finished = status == ENGINE_OK;
	return status;
}

static bool
cuda_next_groups(Engine *engine, GroupBatch *out)
{
	CudaEngine *cuda = (CudaEngine *) engine;

	if (cuda->sorted)
		return cuda_sorted_next(cuda, out);
	if (!cuda->finished)
		return false;
	if (cuda->cpu_fallback)
	{
		bool more = cuda->cpu_fallback->ops->next_groups(cuda->cpu_fallback, out);

		/* spilled rows are combined only now */
		cuda->base.errors |= cuda->cpu_fallback->errors;
		return more;
	}
	return cuda_next_device_groups(cuda, out);
}

static EngineStatus
cuda_export_groups(Engine *engine, GroupSink *sink)
{
	CudaEngine *cuda = (CudaEngine *) engine;

	if (move_device_groups(cuda) != ENGINE_OK)
		return ENGINE_FAILED;
	if (cuda->cpu_fallback->ops->export_groups(cuda->cpu_fallback, sink) != ENGINE_OK)
		return cuda_fail(cuda, cuda->cpu_fallback->failure);
	/* spilled groups are combined only now */
	return cuda_note_cpu_fallback_errors(cuda);
}

static EngineStatus
cuda_import_groups(Engine *engine, GroupSource *source)
{
	Engine *cpu_fallback = cuda_get_cpu_fallback((CudaEngine *) engine);

	return cpu_fallback->ops->import_groups(cpu_fallback, source);
}

/* ---- a shared query ---- */

static bool
cuda_join(Engine *engine, uint64 share)
{
	CudaEngine *cuda = (CudaEngine *) engine;
	MemoryContext old;

	if (cuda->query == NULL || !cuda_query_shareable(cuda->query))
		return false;
	if (cuda->client)
		cuda_end_session(cuda);
	cuda->query->wire->shared_id = share;
	old = MemoryContextSwitchTo(cuda->env.cxt);
	cuda->joined = cuda_ensure_open(cuda, NULL) == ENGINE_OK;
	MemoryContextSwitchTo(old);
	return cuda->joined;
}

static EngineStatus
cuda_flush(Engine *engine, bool *complete)
{
	CudaEngine *cuda = (CudaEngine *) engine;

	if (cuda_send_all(cuda) != ENGINE_OK)
		return ENGINE_FAILED;
	*complete = cuda->cpu_fallback == NULL;
	if (!client_send(cuda->client, MESSAGE_LEAVE, NULL, 0) ||
		!client_receive(cuda->client, MESSAGE_LEFT, &cuda->result, sizeof(cuda->result)))
		return cuda_fail_client(cuda);
	cuda->result.strategy[sizeof(cuda->result.strategy) - 1] = '\0';
	return ENGINE_OK;
}

static void
cuda_detach(Engine *engine, bool owner)
{
	CudaEngine *cuda = (CudaEngine *) engine;

	cuda->owner = owner;
	if (!owner)
		client_close(cuda->client);
}

/* ---- statistics and the end ---- */

/* Returns the memory of this process, without the CPU fallback's. */
static size_t
own_memory(const CudaEngine *cuda)
{
	size_t bytes = 0;

	if (cuda->sorted)
		return cuda_sorted_memory(cuda);
	for (int c = 0; cuda->query && c < cuda->query->ncols; c++)
		if (cuda->query->cols[c].dict)
			bytes += dictionary_memory(cuda->query->cols[c].dict);
	return bytes;
}

static void
cuda_stats(Engine *engine, EngineStats *stats)
{
	CudaEngine *cuda = (CudaEngine *) engine;
	const WireFinished *r = &cuda->result;
	size_t memory = own_memory(cuda);

	*stats = cuda->past;
	stats->rows += cuda->rows_given + cuda->cpu_fallback_rows;
	stats->batches += cuda->batches;
	stats->groups += Max(r->ngroups, r->allgroups);
	stats->changes += r->changes;
	if (r->strategy[0] != '\0')
		strlcpy(stats->strategy, r->strategy, sizeof(stats->strategy));
	else if (cuda->sorted && cuda->cpu_fallback == NULL)
		strlcpy(stats->strategy, "segmented (rows arrive grouped)", sizeof(stats->strategy));
	stats->device.bytes_to += r->bytes_in;
	stats->device.bytes_from += cuda->bytes_from_device;
	stats->device.copy_ms += r->copy_ms;
	stats->device.kernel_ms += r->kernel_ms;
	stats->device.open_ms += cuda->times.open_ms;
	stats->device.proof_ms += cuda->times.proof_ms;
	stats->device.resident_ms += cuda->times.resident_ms;
	stats->device.finish_ms += cuda->times.finish_ms;
	stats->device.fetch_ms += cuda->times.fetch_ms;
	stats->device.server_ms += r->server_ms;
	stats->device.memory = Max(stats->device.memory, r->memory_peak);
	stats->device.retries += r->retries;
	stats->device.devices = Max(stats->device.devices, (int) r->devices);
	stats->device.cpu_fallback_rows += cuda->cpu_fallback_rows;
	stats->device.rows_resident += cuda->rows_resident;
	stats->device.passes = Max(stats->device.passes, cuda->passes);
	stats->device.uploaded += cuda->uploaded;
	stats->device.cells_sent += cuda->cells_sent;
	stats->device.cells_kept += cuda->cells_kept;
	if (cuda->asked.count > 0)
	{
		stats->device.limit = cuda->asked.count;
		stats->device.limit_keys = cuda->asked.nsort;
		stats->device.limit_ties = cuda->asked.ties != 0;
	}
	if (cuda->not_resident)
		strlcpy(stats->not_resident, cuda->not_resident, sizeof(stats->not_resident));
	stats->mem_peak = Max(stats->mem_peak, memory);
	if (cuda->cpu_fallback)
	{
		EngineStats cpu_fallback;

		cuda->cpu_fallback->ops->stats(cuda->cpu_fallback, &cpu_fallback);
		stats->groups = Max(stats->groups, cpu_fallback.groups);
		stats->mem_peak = Max(stats->mem_peak, memory + cpu_fallback.mem_peak);
		stats->spilled_bytes = Max(stats->spilled_bytes, cpu_fallback.spilled_bytes);
		stats->spill_partitions = Max(stats->spill_partitions, cpu_fallback.spill_partitions);
		if (stats->strategy[0] == '\0')
			strlcpy(stats->strategy, cpu_fallback.strategy, sizeof(stats->strategy));
	}
}

static void
cuda_reset(Engine *engine)
{
	CudaEngine *cuda = (CudaEngine *) engine;
	/* after a shared query the next scan joins another one */
	bool in_flight = cuda->joined || (cuda->ending && !cuda->finished);

	for (int b = 0; b < MAX_BUFFERS; b++)
		in_flight |= cuda->busy[b];
	cuda_stats(engine, &cuda->past);
	/* groups count only for rows since the reset; has_enough_groups() in exec.c asks for them */
	cuda->past.groups = 0;
	forget_rows(cuda);
	if (cuda->query == NULL)
		return;
	if (cuda->sorted)
		in_flight |= cuda_sorted_reset(cuda);
	cuda_query_reset(cuda->query);
	cuda->query->wire->shared_id = 0;
	if (cuda->client == NULL)
		return;

	/*
	 * Closes a session that has not answered everything. With grouped rows, RESET is sent together
	 * with the first batch.
	 */
	if (cuda->sorted && !in_flight && cuda->client->sock >= 0)
		return;
	if (in_flight || cuda->client->sock < 0 || !client_send(cuda->client, MESSAGE_RESET, NULL, 0) ||
		!client_receive(cuda->client, MESSAGE_OPENED, NULL, 0))
		cuda_end_session(cuda);
	else
		client_settle(cuda->client);
}

static void
cuda_close(Engine *engine)
{
	CudaEngine *cuda = (CudaEngine *) engine;

	if (cuda->client)
		client_end(cuda->client);
	if (cuda->spool)
		cuda_spool_free(cuda->spool);
	cuda->spool = NULL;
	if (cuda->cpu_fallback)
		cuda->cpu_fallback->ops->close(cuda->cpu_fallback);
	if (cuda->idle_cpu_fallback)
		cuda->idle_cpu_fallback->ops->close(cuda->idle_cpu_fallback);
}

static void
cuda_explain(const EngineStats *stats, ExplainState *es)
{
	const DeviceStats *device = &stats->device;

	if (device->cpu_fallback_rows > 0)
		ExplainPropertyUInteger("Rows on CPU", NULL, device->cpu_fallback_rows, es);
	if (device->rows_resident > 0)
	{
		ExplainPropertyUInteger("Resident Rows", NULL, device->rows_resident, es);
		if (device->passes > 1)
			ExplainPropertyInteger("Resident Passes", NULL, device->passes, es);
	}
	else if (es->verbose && stats->not_resident[0] != '\0')
		ExplainPropertyText("Resident Rows", psprintf("none: %s", stats->not_resident), es);
	if (device->uploaded > 0)
		ExplainPropertyUInteger("Uploaded", "kB", (device->uploaded + 1023) / 1024, es);
	if (device->cells_sent > 0)
		ExplainPropertyUInteger("Tables Sent", "kB", (device->cells_sent + 1023) / 1024, es);
	if (device->cells_kept > 0)
		ExplainPropertyUInteger("Tables Kept", "kB", (device->cells_kept + 1023) / 1024, es);
	if (device->limit > 0)
		ExplainPropertyText("Device Limit",
							psprintf(INT64_FORMAT " by %d key%s%s", device->limit,
									 device->limit_keys, device->limit_keys == 1 ? "" : "s",
									 device->limit_ties ? ", with ties" : ""),
							es);
	if (device->memory == 0)
		return;
	if (device->devices > 1)
		ExplainPropertyInteger("Devices", NULL, device->devices, es);
	ExplainPropertyUInteger("Device Memory", "kB", (device->memory + 1023) / 1024, es);
	ExplainPropertyUInteger("To Device", "kB", (device->bytes_to + 1023) / 1024, es);
	ExplainPropertyUInteger("From Device", "kB", (device->bytes_from + 1023) / 1024, es);
	if (es->timing)
	{
		ExplainPropertyFloat("Copy Time", "ms", device->copy_ms, 3, es);
		ExplainPropertyFloat("Kernel Time", "ms", device->kernel_ms, 3, es);
		ExplainPropertyFloat("Session Time", "ms", device->open_ms, 3, es);
		if (device->rows_resident > 0)
		{
			ExplainPropertyFloat("Proof Time", "ms", device->proof_ms, 3, es);
			ExplainPropertyFloat("Resident Time", "ms", device->resident_ms, 3, es);
		}
		ExplainPropertyFloat("Finish Time", "ms", device->finish_ms, 3, es);
		ExplainPropertyFloat("Fetch Time", "ms", device->fetch_ms, 3, es);
		ExplainPropertyFloat("Server Time", "ms", device->server_ms, 3, es);
	}
	if (device->retries > 0)
		ExplainPropertyInteger("Retries", NULL, device->retries, es);
}

/* ---- for the choice of an engine ---- */

static bool
cuda_available(char *note, size_t note_size)
{
	supervisor_ensure();
	if (!server_ready(note, note_size))
		return false;
	server_device_name(note, note_size);
	return true;
}

static const char *
cuda_unsupported_reason(const AggSpec *spec, const EngineInput *input)
{
	const char *why;

	return build_query(spec, input, &why) ? NULL : why;
}

/*
 * Cost of grouped rows, in slots, in addition to their boundaries: group numbers, and the groups of
 * each buffer. With three aggregates the engines then cost about the same.
 */
#define GROUPED_SLOTS 2

/*
 * Cost of numbering a value of a key by reference in a parallel plan, in slots: each participant
 * has a dictionary of its own, and their groups meet on the CPU.
 */
#define NUMBERED_SLOTS 4

/*
 * Cost of reading a value that is cached on the GPU, relative to a value that is sent there: 3 TB/s
 * or more against some GB/s.
 */
#define CACHED_VALUE_COST 0.01

/*
 * Cost of a counted value that is returned, in slots: it is copied, and added to its state, which
 * takes as long as the call of a transition function for a row.
 */
#define COUNTED_SLOTS 6

/*
 * Cost of a key of a group that is returned, in slots: it is fetched, found in a dictionary and
 * made a Datum. 50 million groups of six keys took 33 s on an H200, and 15 s on the CPU.
 */
#define RETURNED_SLOTS 2

/*
 * Costs: a session, and each value of a column that is copied. With grouped rows, this process also
 * finds the boundaries.
 */
static Cost
cuda_cost(const EngineWork *work)
{
	int slots = work->boundaries > 0 ? work->boundaries + GROUPED_SLOTS : 0;

	return gpuagg_gpu_startup_cost +
		work->rows * (1 - work->resident) *
		(work->columns * gpuagg_gpu_column_cost +
		 (slots + work->numbered * NUMBERED_SLOTS) * gpuagg_slot_cost) +
		work->scanned * work->columns * gpuagg_gpu_column_cost * CACHED_VALUE_COST +
		(work->counted * COUNTED_SLOTS + work->returned * RETURNED_SLOTS) * gpuagg_slot_cost;
}

const EngineOps engine_cuda_ops = {
	.name = "cuda",
	.place = "the GPU",
	.keeps_order = true,
	.sorts = true,
	.runs_sets = true,
	.support = {.many_bins = true, .matrices = true, .tallies = true},
	.available = cuda_available,
	.unsupported_reason = cuda_unsupported_reason,
	.cost = cuda_cost,
	.open = cuda_open,
	.bind_buffers = cuda_bind_buffers,
	.take_resident = cuda_take_resident,
	.limit = cuda_limit,
	.add_batch = add_batch,
	.finish = cuda_finish,
	.next_groups = cuda_next_groups,
	.export_groups = cuda_export_groups,
	.import_groups = cuda_import_groups,
	.reset = cuda_reset,
	.stats = cuda_stats,
	.close = cuda_close,
	.join = cuda_join,
	.flush = cuda_flush,
	.detach = cuda_detach,
	.explain = cuda_explain,
	.release = cuda_release,
};
