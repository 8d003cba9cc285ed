/*
 * engine_cuda.c
 *	  The engine that runs on the GPU server.
 *
 * Rows are gathered in the buffers of the arena: the feed writes columns that
 * travel as they are straight into them, others are converted or encoded from
 * the batch.  A full buffer is sent and the next one is filled while the server
 * copies and reduces it.  Groups are fetched in chunks and handed out where they
 * lie in the arena.
 *
 * Core adds floats up in the order of rows, and raises an error if a sum leaves the range of
 * its type on the way; the GPU adds up exactly, in no order, and would not see that.  So it never
 * gets floats that are large enough for it (cuda_query_large): a serial scan starts over, and where that
 * cannot be, as in a parallel one, the merger takes such batches, whose sums then meet as core's workers' do.
 *
 * Whatever goes wrong at the server (it ends, a float sum overflows) is
 * ENGINE_FAILED with the reason: the executor then starts
 * over with the CPU engine, which also raises the error that core would raise.
 *
 * The participants of a parallel scan join one query at the server where they
 * can; the last of them has the groups of all.  Where each has a query of its own
 * (keys that travel as codes of a process's dictionary), their groups meet in a CPU
 * engine, the merger: export writes them as that engine would, import reads
 * them into one that lives inside the importing engine.  The merger also takes
 * the batches that the GPU cannot: those with odd numerics or large floats, those with new
 * keys when the dictionaries of keys have reached their limit, and all from the one on
 * that the server had no room for.  Rows of that one and of others that were under
 * way are read back from the arena, where they lie until the server has taken them.
 */
#include "postgres.h"

#include <math.h>

#include "executor/executor.h"
#include "lib/ilist.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "engine_cpu/merge.h"
#include "engine_cuda/client.h"
#include "engine_cuda/query.h"
#include "engine_cuda/spool.h"
#include "engine_cuda/engine_cuda.h"
#include "supervisor/state.h"

#define MAX_BUFFERS 8

/* Groups handed out at a time. */
#define FETCH_GROUPS 16384

/* ... and brought here at a time, in bytes, when a session is given back. */
#define SPOOL_BYTES (1 << 20)

/* Device memory that is not kept for a rescan when all groups were fetched. */
#define LARGE_QUERY (16 << 20)

typedef struct CudaEngine
{
	Engine		base;
	const AggSpec *spec;
	EngineEnv	env;
	CudaQuery  *query;			/* NULL: failed before it began */
	Client	   *client;			/* NULL: not connected yet, or not any more */
	Client	   *spare;			/* one that was closed */
	dlist_node	node;			/* of `engines` */
	MemoryContextCallback callback;

	MemoryContext group_cxt;	/* of the groups handed out last */
	WireGroups	lent;			/* those groups: their states lie in the arena */
	void	  **lent_slots;		/* ... and are handed out by these; or NULL */

	int			buffer;			/* being filled */
	uint32		rows;			/* in it */
	bool		busy[MAX_BUFFERS];	/* at the server */
	WireBatch	sent[MAX_BUFFERS];	/* what lies in those that are */
	bool		full;			/* the server takes no more batches */

	bool		joined;			/* the server's query is shared */
	bool		owner;			/* ... and its groups are this engine's to fetch */
	bool		finished;
	bool		variants;		/* equal keys that look different were met */
	uint64		next_group;
	CudaSpool  *spool;			/* of groups whose session was given back; or NULL */
	WireFinished result;

	/* where groups meet, and what answers for a query without rows; or NULL */
	Engine	   *merger;

	uint64		rows_given;
	uint64		batches;
	uint64		bytes_from_device;
	uint64		rows_aside;		/* that the merger took as they came */
	EngineStats past;			/* of what was forgotten by reset */
} CudaEngine;

/* Of this process. */
static dlist_head engines = DLIST_STATIC_INIT(engines);

static EngineStatus
fail(CudaEngine *cuda, const char *why)
{
	strlcpy(cuda->base.failure, why, sizeof(cuda->base.failure));
	if (cuda->client)
		client_close(cuda->client);
	return ENGINE_FAILED;
}

static EngineStatus
client_lost(CudaEngine *cuda)
{
	return fail(cuda, cuda->client->failure);
}

/* May the executor start over with the CPU engine?  Rows of a parallel plan, or of volatile functions, come once. */
static bool
can_start_over(const CudaEngine *cuda)
{
	return !cuda->env.parallel && !cuda->env.read_once;
}

/* ---- giving sessions back ---- */

static bool fetch_groups(CudaEngine *cuda, WireGroups *groups, uint32 most);

/* Closes the session; the engine may connect again. */
static void
hang_up(CudaEngine *cuda)
{
	client_close(cuda->client);
	cuda->spare = cuda->client;
	cuda->client = NULL;
}

/* How far the arrays of these groups reach in their buffer. */
static size_t
groups_end(const CudaEngine *cuda, const WireGroups *groups)
{
	const WireQuery *wire = cuda->query->wire;
	size_t		end = groups->keys + (size_t) groups->n * wire->key_bytes;

	for (int s = 0; s < wire->nslots; s++)
		end = Max(end, groups->slots[s] + (size_t) groups->n * wire->slots[s].width *
				  gpuagg_monoids[wire->slots[s].monoid].state_size);
	return end;
}

/* Groups that were handed out stay where the arena is not. */
static void
keep_lent(CudaEngine *cuda)
{
	char	   *copy;

	if (cuda->lent_slots == NULL)
		return;
	copy = MemoryContextAlloc(cuda->group_cxt, groups_end(cuda, &cuda->lent) + 1);
	memcpy(copy, cuda->client->arena, groups_end(cuda, &cuda->lent));
	for (int s = 0; s < cuda->spec->nslots; s++)
		cuda->lent_slots[s] = copy + cuda->lent.slots[s];
	cuda->lent_slots = NULL;
}

/* Brings all groups that are left; false, with the reason, if the server is lost. */
static bool
spool_groups(CudaEngine *cuda)
{
	uint64		next = cuda->next_group;
	uint32		most = Max(SPOOL_BYTES / Max(wire_group_bytes(cuda->query->wire), 1), 1);
	CudaSpool  *spool = cuda_spool_create(cuda->env.cxt, cuda->env.mem_limit / 2);

	while (cuda->next_group < cuda->result.ngroups)
	{
		WireGroups	groups;

		CHECK_FOR_INTERRUPTS();
		if (!fetch_groups(cuda, &groups, most))
		{
			cuda_spool_free(spool);
			client_lost(cuda);
			return false;
		}
		cuda_spool_put(spool, &groups, cuda->client->arena, groups_end(cuda, &groups));
		cuda->next_group += groups.n;
	}
	cuda->next_group = next;
	cuda->spool = spool;
	return true;
}

static bool
has_session(const CudaEngine *cuda)
{
	return cuda->client && cuda->client->sock >= 0;
}

/* Is nothing left at the server that this engine will ask for? */
static bool
is_exhausted(const CudaEngine *cuda)
{
	return cuda->finished && (cuda->merger || cuda->next_group == cuda->result.ngroups);
}

/* Sessions of engines that are done, of whatever query, for another one to have room. */
static void
release_all(void)
{
	dlist_iter	iter;

	dlist_foreach(iter, &engines)
	{
		CudaEngine *cuda = dlist_container(CudaEngine, node, iter.cur);

		if (!has_session(cuda) || !is_exhausted(cuda))
			continue;
		keep_lent(cuda);
		hang_up(cuda);
	}
}

void
engine_cuda_release(EState *estate, bool in_steps)
{
	dlist_iter	iter;

	dlist_foreach(iter, &engines)
	{
		CudaEngine *cuda = dlist_container(CudaEngine, node, iter.cur);
		bool		empty = !cuda->finished && !cuda->joined && cuda->batches == 0 &&
			cuda->rows == 0;

		if (cuda->env.estate != estate || !has_session(cuda))
			continue;
		if (!empty && !cuda->finished)
			continue;
		keep_lent(cuda);
		if (!empty && !is_exhausted(cuda))
		{
			if (!in_steps)
				cuda->next_group = cuda->result.ngroups;
			else if (!spool_groups(cuda))
				continue;
		}
		hang_up(cuda);
	}
}

static void
forget_engine(void *arg)
{
	dlist_delete(&((CudaEngine *) arg)->node);
}

/* ---- opening ---- */

static void
start_over(CudaEngine *cuda)
{
	cuda->buffer = 0;
	cuda->rows = 0;
	memset(cuda->busy, 0, sizeof(cuda->busy));
	cuda->full = false;
	cuda->joined = cuda->owner = false;
	cuda->finished = cuda->variants = false;
	cuda->next_group = 0;
	cuda->lent_slots = NULL;
	if (cuda->spool)
		cuda_spool_free(cuda->spool);
	cuda->spool = NULL;
	memset(&cuda->result, 0, sizeof(cuda->result));
	cuda->rows_given = cuda->rows_aside = cuda->batches = cuda->bytes_from_device = 0;
	if (cuda->merger)
		cuda->merger->ops->reset(cuda->merger);
}

static Engine *
get_merger(CudaEngine *cuda)
{
	EngineEnv	env = cuda->env;

	/* equal keys come from several places */
	env.grouped = false;
	if (cuda->merger == NULL)
		cuda->merger = engine_cpu_ops.open(cuda->spec, &env);
	return cuda->merger;
}

static void
connect_to_server(CudaEngine *cuda)
{
	if (client_full())
		release_all();
	if (cuda->spare)
		client_reconnect(cuda->spare);
	cuda->client = cuda->spare ? cuda->spare : client_connect(cuda->env.cxt);
	cuda->spare = NULL;
}

/*
 * Connects and opens the query at the server: before the first row where that
 * can be, else before the first batch, and again after a reset.
 */
static EngineStatus
ensure_open(CudaEngine *cuda, const Batch *first)
{
	CudaQuery  *query = cuda->query;

	if (query == NULL || (cuda->client && cuda->client->sock < 0))
		return ENGINE_FAILED;
	if (cuda->client)
		return ENGINE_OK;
	if (first && !cuda_query_settle(query, first))
		return fail(cuda, "matrices of a size that the GPU does not have, or none to begin with");
	connect_to_server(cuda);
	if (cuda->client->sock < 0)
		return client_lost(cuda);
	if (cuda->client->welcome.buffers > MAX_BUFFERS || cuda->client->welcome.buffers < 1)
		return fail(cuda, "the GPU server sent what makes no sense");
	query->wire->est_rows = Max(cuda->env.est_rows, 0);
	query->wire->est_groups = Max(cuda->env.est_groups, 0);
	cuda_query_layout(query, cuda->env.cxt, cuda->client->welcome.buffer_bytes,
					  cuda->env.batch_rows, cuda->env.parallel);
	client_prepare(cuda->client, query->buffer_bytes,
				   floor(query->wire->est_rows / query->buffer_rows));
	query->wire->forced = cuda->env.forced;
	if (!client_send(cuda->client, MESSAGE_OPEN, query->wire, query->wire_bytes) ||
		!client_receive(cuda->client, MESSAGE_OPENED, NULL, 0))
		return client_lost(cuda);
	return ENGINE_OK;
}

/* Why rows that come once are not for the GPU: half-way it may find that only the CPU engine has the answer. */
static const char *
too_risky(const CudaEngine *cuda)
{
	const AggSpec *spec = cuda->spec;

	if (can_start_over(cuda))
		return NULL;
	if (cuda_query_multiplies(cuda->query))
		return "whether a product overflows depends on the order of rows, and they come once";
	if (cuda->env.parallel)
		return NULL;
	if (spec->ordered)
		return "rows in order must all have room on the GPU, and they come once";
	for (int k = 0; k < spec->nkeys; k++)
		if (spec->keys[k].varies)
			return "equal keys may look different, and rows come once";
	return NULL;
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
	cuda->callback.func = forget_engine;
	cuda->callback.arg = cuda;
	dlist_push_tail(&engines, &cuda->node);
	MemoryContextRegisterResetCallback(env->cxt, &cuda->callback);
	cuda->query = cuda_query_build(spec, &why);
	if (cuda->query && (why = too_risky(cuda)) != NULL)
		cuda->query = NULL;
	if (cuda->query == NULL)
		fail(cuda, why);
	cuda->group_cxt = AllocSetContextCreate(env->cxt, "GPU groups", ALLOCSET_DEFAULT_SIZES);
	start_over(cuda);
	if (cuda->query && !cuda_query_needs_batch(cuda->query) &&
		!(env->parallel && cuda_query_shareable(cuda->query)))
		ensure_open(cuda, NULL);
	MemoryContextSwitchTo(old);
	return &cuda->base;
}

/* ---- rows ---- */

/*
 * A sum that left its range here might not where all rows are added in order.  Where
 * rows come once the error stands.
 */
static EngineStatus
note_merger_errors(CudaEngine *cuda)
{
	if (cuda->merger->errors != 0 && can_start_over(cuda))
		return fail(cuda, "a sum out of range, which the CPU engine reports");
	cuda->base.errors |= cuda->merger->errors;
	return ENGINE_OK;
}

/* These rows stay with the CPU. */
static EngineStatus
set_aside(CudaEngine *cuda, const Batch *batch)
{
	Engine	   *merger = get_merger(cuda);

	if (cuda->spec->ordered)
		return fail(cuda, "rows that only the CPU can take, among rows in order");
	if (can_start_over(cuda) && cuda_query_batch_zeros(cuda->query, batch))
		return fail(cuda, "a minimum or maximum of -0 and 0 depends on row order");
	cuda->rows_aside += batch->nrows;
	if (merger->ops->add_batch(merger, batch) != ENGINE_OK)
		return fail(cuda, merger->failure);
	return note_merger_errors(cuda);
}

/* The server had no room for the rows of this buffer. */
static EngineStatus
take_back(CudaEngine *cuda, int buffer)
{
	const WireBatch *wire = &cuda->sent[buffer];
	const char *from = cuda->client->arena + (size_t) buffer * cuda->client->welcome.buffer_bytes;
	int			rows = cuda->env.batch_rows / 64 * 64;
	EngineStatus status = ENGINE_OK;
	MemoryContext cxt,
				old;

	if (cuda->spec->ordered)
		return fail(cuda, "the GPU has no room for all rows in order");
	for (int k = 0; k < cuda->spec->nkeys; k++)
		if (cuda->spec->keys[k].varies && can_start_over(cuda))
			return fail(cuda, "no room on the GPU, and equal keys may look different");
	cuda->full = true;
	cuda->rows_given -= wire->nrows;
	cxt = AllocSetContextCreate(cuda->env.cxt, "GPU rows read back", ALLOCSET_DEFAULT_SIZES);
	for (uint32 r = 0; r < wire->nrows && status == ENGINE_OK; r += rows)
	{
		Batch		batch;

		CHECK_FOR_INTERRUPTS();
		old = MemoryContextSwitchTo(cxt);
		cuda_query_unfill(cuda->query, from, wire, r, Min(wire->nrows - r, rows), &batch);
		MemoryContextSwitchTo(old);
		status = set_aside(cuda, &batch);
		MemoryContextReset(cxt);
	}
	MemoryContextDelete(cxt);
	return status;
}

/* Waits for the oldest batch at the server to be taken, or not. */
static EngineStatus
await_done(CudaEngine *cuda)
{
	WireDone	done;

	if (!client_receive(cuda->client, MESSAGE_DONE, &done, sizeof(done)))
		return client_lost(cuda);
	if (done.buffer >= MAX_BUFFERS || !cuda->busy[done.buffer])
		return fail(cuda, "the GPU server sent what makes no sense");
	cuda->busy[done.buffer] = false;
	return done.taken ? ENGINE_OK : take_back(cuda, done.buffer);
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

/* Sends the buffer that was filled, and turns to the next. */
static EngineStatus
send_buffer(CudaEngine *cuda)
{
	WireBatch  *batch = &cuda->sent[cuda->buffer];

	if (cuda->rows == 0)
		return ENGINE_OK;
	cuda_query_describe(cuda->query, cuda->rows, batch);
	batch->buffer = cuda->buffer;
	if (!client_send(cuda->client, MESSAGE_BATCH, batch, sizeof(*batch)))
		return client_lost(cuda);
	cuda->batches++;
	cuda->busy[cuda->buffer] = true;
	cuda->buffer = (cuda->buffer + 1) % cuda->client->welcome.buffers;
	cuda->rows = 0;
	while (cuda->busy[cuda->buffer])
		if (await_done(cuda) != ENGINE_OK)
			return ENGINE_FAILED;
	return ENGINE_OK;
}

/* Rows are written into the buffer at once, where a whole batch has room. */
static void
cuda_bind_buffers(Engine *engine, Batch *batch)
{
	CudaEngine *cuda = (CudaEngine *) engine;
	char	   *buffer = NULL;

	if (cuda->query == NULL)
		return;
	if (has_session(cuda) && !cuda->full &&
		batch->capacity <= cuda->query->buffer_rows - cuda->rows)
		buffer = cuda->client->arena +
			(size_t) cuda->buffer * cuda->client->welcome.buffer_bytes;
	cuda_query_bind_buffers(cuda->query, buffer, cuda->rows, batch);
}

/*
 * Encodes the batch's keys.  *aside: the merger must take it, as it has numerics or
 * NULL keys that the GPU cannot hold, new keys beyond hash memory, or equal keys that look
 * different, which groups must show as their first rows have them.  The last
 * starts over on the CPU engine where it can, since the merger meets rows in
 * another order than they came.  Groups of one key all look as in the dictionary
 * unless the merger has some.
 */
static EngineStatus
encode(CudaEngine *cuda, const Batch *batch, bool *aside)
{
	bool		variants;
	bool		known = cuda_query_encode(cuda->query, batch, cuda->env.mem_limit / 2, &variants);

	*aside = !known || cuda_query_null_keys(cuda->query, batch) || cuda_query_unrepresentable(cuda->query, batch);
	cuda->variants |= variants;
	if (cuda->variants && (*aside || cuda->merger || cuda->spec->nkeys > 1) &&
		can_start_over(cuda))
		return fail(cuda, "equal keys that look different");
	*aside |= variants && cuda->spec->nkeys > 1;
	return ENGINE_OK;
}

static EngineStatus
cuda_add_batch(Engine *engine, const Batch *batch)
{
	CudaEngine *cuda = (CudaEngine *) engine;
	CudaQuery  *query = cuda->query;
	bool		aside,
				large;

	if (!cuda->full && ensure_open(cuda, batch) != ENGINE_OK)
	{
		/* a session that was given back, or lost before a rescan, and there is none now */
		if (can_start_over(cuda))
			return ENGINE_FAILED;
		cuda->base.failure[0] = '\0';
		cuda->full = true;
		return set_aside(cuda, batch);
	}
	large = cuda_query_large(query, batch);
	if (large && can_start_over(cuda))
		return fail(cuda, "floats so large that the order of rows decides on an overflow");
	if (cuda->full)
		return set_aside(cuda, batch);
	if (encode(cuda, batch, &aside) != ENGINE_OK)
		return ENGINE_FAILED;
	if (aside || large)
		return set_aside(cuda, batch);
	for (int from = 0; from < batch->nrows;)
	{
		int			n = Min(batch->nrows - from, (int) (query->buffer_rows - cuda->rows));

		cuda_query_fill(query, cuda->client->arena +
						(size_t) cuda->buffer * cuda->client->welcome.buffer_bytes,
						cuda->rows, batch, from, n);
		if (can_start_over(cuda) && cuda_query_zeros(query))
			return fail(cuda, "a minimum or maximum of -0 and 0 depends on row order");
		if (cuda_query_sizes_differ(query))
			return fail(cuda, "matrices of several sizes");
		from += n;
		cuda->rows += n;
		cuda->rows_given += n;
		if (cuda->rows == query->buffer_rows && send_buffer(cuda) != ENGINE_OK)
			return ENGINE_FAILED;
	}
	return ENGINE_OK;
}

/* All rows are at the server, or with the merger. */
static EngineStatus
flush(CudaEngine *cuda)
{
	if (ensure_open(cuda, NULL) != ENGINE_OK || send_buffer(cuda) != ENGINE_OK)
		return ENGINE_FAILED;
	return await_all(cuda);
}

/* All groups of this engine's rows are known at the server. */
static EngineStatus
finish_device(CudaEngine *cuda)
{
	if (flush(cuda) != ENGINE_OK)
		return ENGINE_FAILED;
	if (!client_send(cuda->client, MESSAGE_FINISH, NULL, 0) ||
		!client_receive(cuda->client, MESSAGE_FINISHED, &cuda->result, sizeof(cuda->result)))
		return client_lost(cuda);
	cuda->result.strategy[sizeof(cuda->result.strategy) - 1] = '\0';
	cuda->next_group = 0;
	if (cuda->result.errors == 0)
		return ENGINE_OK;
	if (can_start_over(cuda))
		return fail(cuda, "a sum out of range, which the CPU engine reports");
	cuda->base.errors |= cuda->result.errors;
	return ENGINE_OK;
}

/* ---- groups ---- */

/* Do keys and states lie in the buffer, aligned, and are the keys of this query? */
static bool
groups_are_sound(const CudaEngine *cuda, const WireGroups *groups)
{
	const WireQuery *wire = cuda->query->wire;
	size_t		room = cuda->client->welcome.buffer_bytes;

	if (groups->keys % WIRE_ALIGN != 0 || groups->keys > room ||
		(size_t) groups->n * wire->key_bytes > room - groups->keys)
		return false;
	for (int s = 0; s < wire->nslots; s++)
	{
		size_t		bytes = (size_t) groups->n * wire->slots[s].width *
			gpuagg_monoids[wire->slots[s].monoid].state_size;

		if (groups->slots[s] % WIRE_ALIGN != 0 || groups->slots[s] > room ||
			bytes > room - groups->slots[s])
			return false;
	}
	return cuda_query_keys_known(cuda->query, cuda->client->arena + groups->keys, groups->n);
}

/*
 * Brings at most so many of the next groups to buffer 0, whose old groups are not
 * needed any more.
 */
static bool
fetch_groups(CudaEngine *cuda, WireGroups *groups, uint32 most)
{
	uint64		left = cuda->result.ngroups - cuda->next_group;
	WireFetch	fetch = {cuda->next_group, Min(left, Min(most, FETCH_GROUPS)), 0};

	if (!client_send(cuda->client, MESSAGE_FETCH, &fetch, sizeof(fetch)) ||
		!client_receive(cuda->client, MESSAGE_GROUPS, groups, sizeof(*groups)))
		return false;
	if (groups->first == fetch.first && groups->n >= 1 && groups->n <= fetch.max &&
		groups_are_sound(cuda, groups))
		return true;
	strlcpy(cuda->client->failure, "the GPU server sent what makes no sense",
			sizeof(cuda->client->failure));
	return false;
}

static void
take_keys(CudaEngine *cuda, const char *packed, GroupBatch *out)
{
	out->keys = palloc(cuda->spec->nkeys * sizeof(Datum *) + 1);
	out->keynulls = palloc(cuda->spec->nkeys * sizeof(bool *) + 1);
	for (int k = 0; k < cuda->spec->nkeys; k++)
	{
		out->keys[k] = palloc(out->ngroups * sizeof(Datum));
		out->keynulls[k] = palloc(out->ngroups * sizeof(bool));
		for (int g = 0; g < out->ngroups; g++)
			out->keys[k][g] = cuda_query_key(cuda->query, k,
											 packed + (size_t) g * cuda->query->wire->key_bytes,
											 &out->keynulls[k][g]);
	}
}

/* Own transitions run over odd rows alone, and a query that got here had none. */
static void
take_fallbacks(CudaEngine *cuda, GroupBatch *out)
{
	out->fallbacks = palloc(cuda->spec->nfallbacks * sizeof(Datum *) + 1);
	out->fallback_nulls = palloc(cuda->spec->nfallbacks * sizeof(bool *) + 1);
	for (int o = 0; o < cuda->spec->nfallbacks; o++)
	{
		out->fallbacks[o] = palloc(out->ngroups * sizeof(Datum));
		out->fallback_nulls[o] = palloc(out->ngroups * sizeof(bool));
		for (int g = 0; g < out->ngroups; g++)
		{
			out->fallbacks[o][g] = cuda->spec->fallbacks[o].initval;
			out->fallback_nulls[o][g] = cuda->spec->fallbacks[o].initnull;
		}
	}
}

/* The next groups of the server; false at their end, or if the engine failed. */
static bool
next_device_groups(CudaEngine *cuda, GroupBatch *out)
{
	WireGroups	groups;
	const char *buffer;
	MemoryContext old;

	cuda->lent_slots = NULL;
	if (cuda->next_group == cuda->result.ngroups)
	{
		if (has_session(cuda) && cuda->result.memory_peak >= LARGE_QUERY)
			hang_up(cuda);
		return false;
	}
	if (cuda->spool)
	{
		if (!cuda_spool_get(cuda->spool, &groups, &buffer))
			elog(ERROR, "groups of the GPU server are missing");
	}
	else if (fetch_groups(cuda, &groups, FETCH_GROUPS))
		buffer = cuda->client->arena;
	else
	{
		client_lost(cuda);
		return false;
	}
	MemoryContextReset(cuda->group_cxt);
	old = MemoryContextSwitchTo(cuda->group_cxt);
	out->ngroups = groups.n;
	take_keys(cuda, buffer + groups.keys, out);
	out->slots = palloc(cuda->spec->nslots * sizeof(void *) + 1);
	for (int s = 0; s < cuda->spec->nslots; s++)
		out->slots[s] = unconstify(char *, buffer) + groups.slots[s];
	take_fallbacks(cuda, out);
	MemoryContextSwitchTo(old);
	cuda->lent = groups;
	cuda->lent_slots = cuda->spool ? NULL : out->slots;
	cuda->next_group += groups.n;
	cuda->bytes_from_device += groups.n * wire_group_bytes(cuda->query->wire);
	return true;
}

/* Has the server groups for this engine to fetch? */
static bool
has_device_groups(const CudaEngine *cuda)
{
	return cuda->joined ? cuda->owner : cuda->rows_given > 0;
}

/* Moves this engine's groups to the merger. */
static EngineStatus
merge_fallback(CudaEngine *cuda)
{
	Engine	   *merger = get_merger(cuda);
	GroupBatch	groups;

	if (!has_device_groups(cuda))
		return ENGINE_OK;
	if (finish_device(cuda) != ENGINE_OK)
		return ENGINE_FAILED;
	while (next_device_groups(cuda, &groups))
	{
		CHECK_FOR_INTERRUPTS();
		cpu_merge_groups(merger, &groups);
	}
	if (cuda->base.failure[0] != '\0')
		return ENGINE_FAILED;
	return note_merger_errors(cuda);
}

static EngineStatus
finish(CudaEngine *cuda)
{
	EngineStatus status;

	if (cuda->query == NULL)
		return ENGINE_FAILED;
	/* rows that come back make a merger */
	if (has_device_groups(cuda) && flush(cuda) != ENGINE_OK)
		return ENGINE_FAILED;
	if (cuda->merger == NULL && has_device_groups(cuda))
	{
		status = finish_device(cuda);
		/* the merger has the group of no rows */
		if (status != ENGINE_OK || cuda->result.ngroups > 0 || !cuda->owner)
			return status;
		cuda->owner = false;
	}
	status = merge_fallback(cuda);
	if (status != ENGINE_OK)
		return status;
	status = cuda->merger->ops->finish(cuda->merger);
	return status == ENGINE_OK ? note_merger_errors(cuda) : fail(cuda, cuda->merger->failure);
}

static EngineStatus
cuda_finish(Engine *engine)
{
	CudaEngine *cuda = (CudaEngine *) engine;
	EngineStatus status = finish(cuda);

	/* not before: functions of the keys' types may run queries, for which sessions are given back */
	cuda->finished = status == ENGINE_OK;
	return status;
}

static bool
cuda_next_groups(Engine *engine, GroupBatch *out)
{
	CudaEngine *cuda = (CudaEngine *) engine;

	if (!cuda->finished)
		return false;
	if (cuda->merger)
	{
		bool		more = cuda->merger->ops->next_groups(cuda->merger, out);

		/* rows that were spilled are combined only now */
		cuda->base.errors |= cuda->merger->errors;
		return more;
	}
	return next_device_groups(cuda, out);
}

static EngineStatus
cuda_export_groups(Engine *engine, GroupSink *sink)
{
	CudaEngine *cuda = (CudaEngine *) engine;

	if (merge_fallback(cuda) != ENGINE_OK)
		return ENGINE_FAILED;
	if (cuda->merger->ops->export_groups(cuda->merger, sink) != ENGINE_OK)
		return fail(cuda, cuda->merger->failure);
	/* what was spilled is combined only now */
	return note_merger_errors(cuda);
}

static EngineStatus
cuda_import_groups(Engine *engine, GroupSource *source)
{
	Engine	   *merger = get_merger((CudaEngine *) engine);

	return merger->ops->import_groups(merger, source);
}

/* ---- one query for several processes ---- */

static bool
cuda_join(Engine *engine, uint64 share)
{
	CudaEngine *cuda = (CudaEngine *) engine;
	MemoryContext old;

	if (cuda->query == NULL || !cuda_query_shareable(cuda->query))
		return false;
	if (cuda->client)
		hang_up(cuda);
	cuda->query->wire->share = share;
	old = MemoryContextSwitchTo(cuda->env.cxt);
	cuda->joined = ensure_open(cuda, NULL) == ENGINE_OK;
	MemoryContextSwitchTo(old);
	return cuda->joined;
}

static EngineStatus
cuda_flush(Engine *engine, bool *alone)
{
	CudaEngine *cuda = (CudaEngine *) engine;

	if (flush(cuda) != ENGINE_OK)
		return ENGINE_FAILED;
	*alone = cuda->merger == NULL;
	if (!client_send(cuda->client, MESSAGE_LEAVE, NULL, 0) ||
		!client_receive(cuda->client, MESSAGE_LEFT, &cuda->result, sizeof(cuda->result)))
		return client_lost(cuda);
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

/* ---- the rest ---- */

static size_t
dictionaries_memory(CudaEngine *cuda)
{
	size_t		bytes = 0;

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

	*stats = cuda->past;
	stats->rows += cuda->rows_given + cuda->rows_aside;
	stats->batches += cuda->batches;
	stats->groups += r->ngroups;
	stats->changes += r->changes;
	if (r->strategy[0] != '\0')
		strlcpy(stats->strategy, r->strategy, sizeof(stats->strategy));
	stats->bytes_to_device += r->bytes_in;
	stats->bytes_from_device += cuda->bytes_from_device;
	stats->copy_ms += r->copy_ms;
	stats->kernel_ms += r->kernel_ms;
	stats->device_memory = Max(stats->device_memory, r->memory_peak);
	stats->retries += r->retries;
	stats->rows_aside += cuda->rows_aside;
	stats->mem_peak = Max(stats->mem_peak, dictionaries_memory(cuda));
	if (cuda->merger)
	{
		EngineStats merger;

		cuda->merger->ops->stats(cuda->merger, &merger);
		stats->mem_peak = Max(stats->mem_peak, dictionaries_memory(cuda) + merger.mem_peak);
		stats->spilled_bytes = Max(stats->spilled_bytes, merger.spilled_bytes);
		stats->spill_partitions = Max(stats->spill_partitions, merger.spill_partitions);
		if (stats->strategy[0] == '\0')
			strlcpy(stats->strategy, merger.strategy, sizeof(stats->strategy));
	}
}

static void
cuda_reset(Engine *engine)
{
	CudaEngine *cuda = (CudaEngine *) engine;
	bool		in_flight = cuda->joined;	/* the next scan joins anew */

	for (int b = 0; b < MAX_BUFFERS; b++)
		in_flight |= cuda->busy[b];
	cuda_stats(engine, &cuda->past);
	start_over(cuda);
	if (cuda->query == NULL)
		return;
	cuda_query_reset(cuda->query);
	cuda->query->wire->share = 0;
	if (cuda->client == NULL)
		return;

	/* a connection in the middle of something is not worth mending */
	if (in_flight || cuda->client->sock < 0 ||
		!client_send(cuda->client, MESSAGE_RESET, NULL, 0) ||
		!client_receive(cuda->client, MESSAGE_OPENED, NULL, 0))
		hang_up(cuda);
}

static void
cuda_close(Engine *engine)
{
	CudaEngine *cuda = (CudaEngine *) engine;

	if (cuda->client)
		client_close(cuda->client);
	if (cuda->spool)
		cuda_spool_free(cuda->spool);
	cuda->spool = NULL;
	if (cuda->merger)
		cuda->merger->ops->close(cuda->merger);
}

const EngineOps engine_cuda_ops = {
	.name = "cuda",
	.open = cuda_open,
	.bind_buffers = cuda_bind_buffers,
	.add_batch = cuda_add_batch,
	.finish = cuda_finish,
	.next_groups = cuda_next_groups,
	.export_groups = cuda_export_groups,
	.import_groups = cuda_import_groups,
	.join = cuda_join,
	.flush = cuda_flush,
	.detach = cuda_detach,
	.reset = cuda_reset,
	.stats = cuda_stats,
	.close = cuda_close,
};
