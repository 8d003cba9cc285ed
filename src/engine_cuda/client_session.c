/*
 * client_session.c
 *	  Sessions of the CUDA engine with the GPU server (client side; server/session.c is the
 *	  other side).
 *
 * An engine has a session from its first batch on, or earlier where possible, until it has fetched
 * its last group. The server has room for a limited number of sessions, and so has a process. So an
 * engine gives back a session that it does not need any more.
 */
#include "postgres.h"

#include "engine_cuda/cuda_engine.h"

dlist_head cuda_engines = DLIST_STATIC_INIT(cuda_engines);

EngineStatus
cuda_fail(CudaEngine *cuda, const char *why)
{
	strlcpy(cuda->base.failure, why, sizeof(cuda->base.failure));
	if (cuda->client)
		client_close(cuda->client);
	return ENGINE_FAILED;
}

EngineStatus
cuda_fail_client(CudaEngine *cuda)
{
	return cuda_fail(cuda, cuda->client->failure);
}

/* Gives the session back. The engine may open another one. */
void
cuda_end_session(CudaEngine *cuda)
{
	client_end(cuda->client);
	cuda->spare = cuda->client;
	cuda->client = NULL;
}

/* Returns the offset in the buffer where the arrays of these groups end. */
size_t
cuda_groups_end(const CudaEngine *cuda, const WireGroups *groups)
{
	const WireQuery *wire = cuda->query->wire;
	size_t end = groups->keys + (size_t) groups->n * wire->key_bytes;

	for (int s = 0; s < wire->nslots; s++)
		end = Max(end,
				  groups->slots[s] + groups->n * wire_slot_bytes(&wire->slots[s], groups->ranks));
	return end;
}

/* Copies the states that the caller still reads in the arena. Called before the session ends. */
void
cuda_keep_returned(CudaEngine *cuda)
{
	char *copy;

	if (cuda->returned_slots == NULL)
		return;
	copy = MemoryContextAlloc(cuda->group_cxt, cuda_groups_end(cuda, &cuda->returned) + 1);
	memcpy(copy, cuda->client->arena, cuda_groups_end(cuda, &cuda->returned));
	for (int s = 0; s < cuda->spec->nslots; s++)
		if (cuda->query->sum[s] < 0)
			cuda->returned_slots[s] = copy + cuda->returned.slots[cuda->query->slot[s]];
	cuda->returned_slots = NULL;
}

bool
cuda_has_session(const CudaEngine *cuda)
{
	return cuda->client && cuda->client->sock >= 0;
}

/* Returns whether this engine needs nothing more from the server. */
bool
cuda_is_exhausted(const CudaEngine *cuda)
{
	return cuda->finished && (cuda->cpu_fallback || cuda->next_group == cuda->result.ngroups);
}

/*
 * Ends the sessions of engines that need nothing more, of any query, to make room for another
 * session.
 */
static void
end_exhausted_sessions(void)
{
	dlist_iter iter;

	dlist_foreach(iter, &cuda_engines)
	{
		CudaEngine *cuda = dlist_container(CudaEngine, node, iter.cur);

		if (!cuda_has_session(cuda) || !cuda_is_exhausted(cuda))
			continue;
		cuda_keep_returned(cuda);
		cuda_end_session(cuda);
	}
}

static void
forget_engine(void *arg)
{
	dlist_delete(&((CudaEngine *) arg)->node);
}

/* Adds the engine to cuda_engines, until its memory context ends. */
void
cuda_register(CudaEngine *cuda)
{
	dlist_push_tail(&cuda_engines, &cuda->node);
	cuda->callback.func = forget_engine;
	cuda->callback.arg = cuda;
	MemoryContextRegisterResetCallback(cuda->env.cxt, &cuda->callback);
}

static void
connect_to_server(CudaEngine *cuda)
{
	if (client_full())
		end_exhausted_sessions();
	cuda->client = cuda->spare ? cuda->spare : client_create(cuda->env.cxt);
	cuda->spare = NULL;
	client_connect(cuda->client, cuda->query->wire, cuda->query->wire_bytes);
}

/*
 * Called before the first row where possible, else with the first batch, which determines the size
 * of matrices, and again after a reset that ended the session.
 */
EngineStatus
cuda_begin_open(CudaEngine *cuda, const Batch *first)
{
	CudaQuery *query = cuda->query;
	instr_time since;

	if (query == NULL || (cuda->client && cuda->client->sock < 0))
		return ENGINE_FAILED;
	if (cuda->client)
		return ENGINE_OK;
	if (first && !cuda_query_settle(query, first))
		return cuda_fail(cuda,
						 "matrices of a size that the GPU does not have, or none to begin with");
	since = cuda_clock();
	query->wire->est_rows = Max(cuda->env.est_rows, 0);
	query->wire->est_groups = Max(cuda->env.est_groups, 0);
	query->wire->forced = cuda->env.forced;
	query->wire->flags &= ~WIRE_LATE;
	/*
	 * rows that arrive grouped are never cached on a device, and OPENED says whether the GPU takes
	 * them
	 */
	if (cuda_can_start_over(cuda) && query->wire->shared_id == 0 && cuda->sorted == NULL)
		query->wire->flags |= WIRE_LATE;
	connect_to_server(cuda);
	if (cuda->client->sock < 0)
		return cuda_fail_client(cuda);
	/* the server's buffers have at least this size */
	cuda_query_layout(query, cuda->env.cxt, WIRE_BUFFER_BYTES, cuda->env.batch_rows,
					  cuda->env.input.parallel);
	cuda->prepared = false;
	cuda_add_time(&cuda->times.open_ms, since);
	return ENGINE_OK;
}

EngineStatus
cuda_ensure_open(CudaEngine *cuda, const Batch *first)
{
	instr_time since;

	if (cuda_begin_open(cuda, first) != ENGINE_OK)
		return ENGINE_FAILED;
	if (!cuda->client->opening)
		return ENGINE_OK;
	since = cuda_clock();
	if (!client_opened(cuda->client))
		return cuda_fail_client(cuda);
	cuda_add_time(&cuda->times.open_ms, since);
	return ENGINE_OK;
}
