/*
 * rows.c
 *	  Rows of the CUDA engine: sends them to the server, or passes them to the CPU fallback.
 *
 * Rows are collected in the buffers of the arena. The feed writes columns that are sent unchanged
 * directly into them; other columns are converted or encoded from the batch. A full buffer is sent,
 * and the next one is filled while the server copies and reduces it.
 */
#include "postgres.h"

#include <math.h>

#include "miscadmin.h"
#include "utils/memutils.h"

#include "engine_cpu/engine_cpu.h"
#include "engine_cuda/cuda_engine.h"

Engine *
cuda_get_cpu_fallback(CudaEngine *cuda)
{
	EngineEnv env = cuda->env;

	env.input.grouped = cuda->sorted != NULL;
	env.early_sink = NULL;
	if (cuda->cpu_fallback == NULL)
		cuda->cpu_fallback = cuda->idle_cpu_fallback ? cuda->idle_cpu_fallback :
													   engine_cpu_ops.open(cuda->spec, &env);
	cuda->idle_cpu_fallback = NULL;
	return cuda->cpu_fallback;
}

/*
 * Handles error bits of the CPU fallback. A sum that overflowed there might not overflow if all
 * rows were added in order, so the executor starts over with the CPU engine. Where rows come once,
 * the error is raised.
 */
EngineStatus
cuda_note_cpu_fallback_errors(CudaEngine *cuda)
{
	if (cuda->cpu_fallback->errors != 0 && cuda_can_start_over(cuda))
		return cuda_fail(cuda, "a sum is out of range, which the CPU engine reports");
	cuda->base.errors |= cuda->cpu_fallback->errors;
	return ENGINE_OK;
}

/* Gives the rows to the CPU fallback. */
static EngineStatus
add_to_cpu_fallback(CudaEngine *cuda, const Batch *batch)
{
	Engine *cpu_fallback;

	if (cuda->spec->ordered)
		return cuda_fail(cuda, "some of the ordered rows can only be computed on the CPU");
	if (spec_has_sets(cuda->spec))
		return cuda_fail(cuda,
						 "some of the distinct or ordered values can only be computed on the CPU");
	if (spec_has_tallies(cuda->spec))
		return cuda_fail(cuda, "some of the counted values can only be computed on the CPU");
	cpu_fallback = cuda_get_cpu_fallback(cuda);
	cuda_query_note_negative_zero(cuda->query, batch);
	if (cuda_can_start_over(cuda) && cuda->query->negative_zero)
		return cuda_fail(cuda, "a minimum or maximum of -0 and 0 depends on row order");
	cuda->cpu_fallback_rows += batch->nrows;
	if (cpu_fallback->ops->add_batch(cpu_fallback, batch) != ENGINE_OK)
		return cuda_fail(cuda, cpu_fallback->failure);
	return cuda_note_cpu_fallback_errors(cuda);
}

/*
 * Reads the rows of this buffer back from the arena, for the CPU fallback. The server had no room
 * for them, and will have none for others.
 */
static EngineStatus
read_back(CudaEngine *cuda, int buffer)
{
	const WireBatch *wire = &cuda->sent[buffer];
	const char *from = cuda->client->arena + (size_t) buffer * cuda->client->welcome.buffer_bytes;
	int rows = cuda->env.batch_rows / 64 * 64;
	EngineStatus status = ENGINE_OK;
	MemoryContext cxt, old;

	if (cuda->spec->ordered)
		return cuda_fail(cuda, "the ordered rows do not fit into GPU memory");
	if (spec_has_sets(cuda->spec))
		return cuda_fail(cuda, "the distinct or ordered values do not fit into GPU memory");
	if (spec_has_tallies(cuda->spec))
		return cuda_fail(cuda, "the counted values do not fit into GPU memory");
	for (int k = 0; k < cuda->spec->nkeys; k++)
		if (cuda->spec->keys[k].varies && cuda_can_start_over(cuda))
			return cuda_fail(
				cuda,
				"the groups do not fit into GPU memory, and equal keys may print differently");
	cuda->full = true;
	cuda->rows_given -= wire->nrows;
	cxt = AllocSetContextCreate(cuda->env.cxt, "GPU rows read back", ALLOCSET_DEFAULT_SIZES);
	for (uint32 r = 0; r < wire->nrows && status == ENGINE_OK; r += rows)
	{
		Batch batch;

		CHECK_FOR_INTERRUPTS();
		old = MemoryContextSwitchTo(cxt);
		cuda_query_unfill(cuda->query, from, wire, r, Min(wire->nrows - r, rows), &batch);
		MemoryContextSwitchTo(old);
		status = add_to_cpu_fallback(cuda, &batch);
		MemoryContextReset(cxt);
	}
	MemoryContextDelete(cxt);
	return status;
}

/* Waits for the answer to the oldest batch. */
static EngineStatus
await_done(CudaEngine *cuda)
{
	WireDone done;

	if (!client_receive(cuda->client, MESSAGE_DONE, &done, sizeof(done)))
		return cuda_fail_client(cuda);
	if (done.buffer >= MAX_BUFFERS || !cuda->busy[done.buffer])
		return cuda_fail(cuda, "the GPU server sent an invalid answer");
	cuda->busy[done.buffer] = false;
	return done.taken ? ENGINE_OK : read_back(cuda, done.buffer);
}

static EngineStatus
await_all(CudaEngine *cuda)
{
	for (int b = 0; b < MAX_BUFFERS;)
	{
		if (!cuda->busy[b])
			b++;
		else if (await_done(cuda) != ENGINE_OK)
			return ENGINE_FAILED;
	}
	return ENGINE_OK;
}

/* Sends the buffer that was filled, and waits until the next buffer is free. */
static EngineStatus
send_buffer(CudaEngine *cuda)
{
	WireBatch *batch = &cuda->sent[cuda->buffer];

	if (cuda->rows == 0)
		return ENGINE_OK;
	cuda_query_describe(cuda->query, cuda->rows, batch);
	batch->buffer = cuda->buffer;
	if (!client_send(cuda->client, MESSAGE_BATCH, batch, sizeof(*batch)))
		return cuda_fail_client(cuda);
	cuda->batches++;
	cuda->busy[cuda->buffer] = true;
	cuda->buffer = (cuda->buffer + 1) % cuda->client->welcome.buffers;
	cuda->rows = 0;
	while (cuda->busy[cuda->buffer])
		if (await_done(cuda) != ENGINE_OK)
			return ENGINE_FAILED;
	return ENGINE_OK;
}

/* Lets the feed write into the buffer if a whole batch has room there, else into its own memory. */
void
cuda_bind_buffers(Engine *engine, Batch *batch)
{
	CudaEngine *cuda = (CudaEngine *) engine;
	char *buffer = NULL;

	if (cuda->query == NULL)
		return;
	if (cuda_has_session(cuda) && cuda->client->arena && !cuda->full &&
		batch->capacity <= cuda->query->buffer_rows - cuda->rows)
		buffer = cuda->client->arena + (size_t) cuda->buffer * cuda->client->welcome.buffer_bytes;
	cuda_query_bind_buffers(cuda->query, buffer, cuda->rows, batch);
}

/*
 * Encodes the batch's keys with their dictionaries. *for_cpu: the CPU fallback must take the batch,
 * for one of these reasons:
 *
 * - unrepresentable numerics;
 * - floats that do not fit into the integers of exact sums;
 * - new keys when the dictionaries have reached their limit;
 * - equal keys that look different (1.0 and 1.00), if there are several keys;
 * - rows at the server have the codes of stored columns, or ranks of their values.
 *
 * A group must show its keys as its first row has them. A dictionary keeps the look of the first
 * value. That is right for a single key, unless the CPU fallback has rows as well: it does not see
 * rows in their order. Where that matters, and the executor can start over, the engine fails.
 */
static EngineStatus
encode_keys(CudaEngine *cuda, const Batch *batch, bool *for_cpu)
{
	bool variants;
	bool known;

	/* its keys have codes of their own; groups of both meet in the CPU fallback, by value */
	*for_cpu = cuda_query_has_column_codes(cuda->query) || cuda_query_has_ranks(cuda->query);
	if (*for_cpu)
		return ENGINE_OK;
	known = cuda_query_encode(cuda->query, batch, cuda->env.mem_limit / 2, &variants);

	*for_cpu = !known || cuda_query_unrepresentable(cuda->query, batch) ||
		!cuda_query_split(cuda->query, batch);
	cuda->variants |= variants;
	if (cuda->variants &&
		(*for_cpu || cuda->cpu_fallback || cuda->spec->nkeys > 1 || cuda->rows_resident > 0) &&
		cuda_can_start_over(cuda))
		return cuda_fail(cuda, "equal keys print differently");
	*for_cpu |= variants && cuda->spec->nkeys > 1;
	return ENGINE_OK;
}

EngineStatus
cuda_add_batch(Engine *engine, const Batch *batch)
{
	CudaEngine *cuda = (CudaEngine *) engine;
	CudaQuery *query = cuda->query;
	bool for_cpu, large;

	if (cuda->ending)
		return cuda_fail(cuda, "rows came after the end of the input");
	if (!cuda->full && cuda_ensure_open(cuda, batch) != ENGINE_OK)
	{
		/*
		 * the session was given back or lost, and there is no other one: the CPU fallback takes all
		 * rows
		 */
		if (cuda_can_start_over(cuda))
			return ENGINE_FAILED;
		cuda->base.failure[0] = '\0';
		cuda->full = true;
		return add_to_cpu_fallback(cuda, batch);
	}
	large = cuda_query_large(query, batch);
	if (large && cuda_can_start_over(cuda))
		return cuda_fail(cuda, "floats are so large that overflow depends on row order");
	if (cuda->full)
		return add_to_cpu_fallback(cuda, batch);
	if (encode_keys(cuda, batch, &for_cpu) != ENGINE_OK)
		return ENGINE_FAILED;
	if (for_cpu || large)
		return add_to_cpu_fallback(cuda, batch);
	/* only now, because most queries over rows cached on the devices send no rows */
	if (!cuda->prepared)
		client_prepare(cuda->client, query->buffer_bytes,
					   floor(query->wire->est_rows / query->buffer_rows));
	cuda->prepared = true;
	for (int from = 0; from < batch->nrows;)
	{
		int n = Min(batch->nrows - from, (int) (query->buffer_rows - cuda->rows));

		cuda_query_fill(
			query, cuda->client->arena + (size_t) cuda->buffer * cuda->client->welcome.buffer_bytes,
			cuda->rows, batch, from, n);
		if (cuda_can_start_over(cuda) && query->negative_zero)
			return cuda_fail(cuda, "a minimum or maximum of -0 and 0 depends on row order");
		if (query->unusual_floats)
			return cuda_fail(cuda, "the n best are of floats with -0 or unusual NaNs");
		if (query->sizes_differ)
			return cuda_fail(cuda, "matrices have different sizes");
		from += n;
		cuda->rows += n;
		cuda->rows_given += n;
		if (cuda->rows == query->buffer_rows && send_buffer(cuda) != ENGINE_OK)
			return ENGINE_FAILED;
	}
	return ENGINE_OK;
}

/*
 * Sends all rows, and waits for all answers. After it the server or the CPU fallback has taken all
 * rows.
 */
EngineStatus
cuda_send_all(CudaEngine *cuda)
{
	if (cuda_ensure_open(cuda, NULL) != ENGINE_OK || send_buffer(cuda) != ENGINE_OK)
		return ENGINE_FAILED;
	return await_all(cuda);
}
