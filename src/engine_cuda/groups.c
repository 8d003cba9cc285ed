/*
 * groups.c
 *	  Fetches groups of the GPU server, in chunks.
 *
 * A chunk's states are not copied: they are returned where they are in the arena, or in the spool
 * if the session was given back.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "engine_cuda/cuda_engine.h"
#include "groups/record.h"

/* Bytes of a chunk that is spooled. */
#define SPOOL_BYTES (1 << 20)

/*
 * A query with at least so many bytes of device memory is ended when all its groups were fetched.
 * Others are kept for a rescan.
 */
#define LARGE_QUERY (16 << 20)

bool
cuda_groups_fit(const CudaEngine *cuda, const WireGroups *groups)
{
	const WireQuery *wire = cuda->query->wire;
	size_t room = cuda->client->welcome.buffer_bytes;

	if (groups->ranks != cuda->ranks || groups->keys % WIRE_ALIGN != 0 || groups->keys > room ||
		(size_t) groups->n * wire->key_bytes > room - groups->keys)
		return false;
	for (int s = 0; s < wire->nslots; s++)
	{
		size_t bytes = (size_t) groups->n * wire_slot_bytes(&wire->slots[s], groups->ranks);

		if (groups->slots[s] % WIRE_ALIGN != 0 || groups->slots[s] > room ||
			bytes > room - groups->slots[s])
			return false;
	}
	return true;
}

/*
 * Checks the server's message. Returns whether keys and states are aligned, within the buffer, and
 * the keys are valid for this query.
 */
static bool
are_valid_groups(const CudaEngine *cuda, const WireGroups *groups)
{
	return cuda_groups_fit(cuda, groups) &&
		cuda_query_keys_known(cuda->query, cuda->client->arena + groups->keys, groups->n);
}

/*
 * Describes a value for the server. Returns false if the server has no integer that compares like
 * it.
 */
static bool
describe_value(const CudaEngine *cuda, const EngineValue *value, WireValue *out)
{
	const CudaQuery *query = cuda->query;
	const WireSlot *slot;

	*out = (WireValue){.slot = -1, .counted = -1};
	if (value->slot < 0)
	{
		const CudaColumn *col = &query->cols[query->keycol[value->key]];

		out->key = value->key;
		return col->travel == TRAVEL_KEY_CODES ||
			(col->travel == TRAVEL_VALUES && column_is_integer(cuda->spec->cols[col->col].type));
	}
	out->slot = query->slot[value->slot];
	if (query->sum[value->slot] >= 0)
	{
		out->counted = out->slot;
		out->slot = query->sum[value->slot];
		out->mean = 1;
	}
	else if (value->counted >= 0)
		out->counted = query->slot[value->counted];
	slot = &query->wire->slots[out->slot];
	return wire_limit_takes(slot->monoid) && slot->bin_kind == WIRE_BIN_NONE &&
		(out->counted < 0 || query->wire->slots[out->counted].monoid == MONOID_COUNT);
}

/*
 * Describes a bound in 64 bits. Returns false if it is too large: the server's values are clamped
 * to 64 bits, and would not compare right.
 */
static bool
describe_bound(gpuagg_i128 bound, int64 *out)
{
	*out = bound == ENGINE_NO_MIN ? PG_INT64_MIN :
		bound == ENGINE_NO_MAX    ? PG_INT64_MAX :
									(int64) bound;
	return bound == ENGINE_NO_MIN || bound == ENGINE_NO_MAX ||
		(bound > PG_INT64_MIN && bound < PG_INT64_MAX);
}

/*
 * Describes the limit for the server, or the part of it that can be described. All zeros: no limit.
 */
static void
describe_limit(const CudaEngine *cuda, WireLimit *out)
{
	const EngineLimit *limit = &cuda->limit;

	/* fractions of groups that are left out may be invalid, too, and must raise an error */
	if (cuda->joined || cuda->spec->nordered_sets > 0)
		return;
	for (int c = 0; c < limit->nconditions; c++)
	{
		const EngineCondition *condition = &limit->conditions[c];
		WireCondition *to = &out->conditions[out->nconditions];

		out->nconditions += describe_value(cuda, &condition->value, &to->value) &&
			describe_bound(condition->min, &to->min) && describe_bound(condition->max, &to->max);
	}
	if (out->nconditions < limit->nconditions || limit->count == 0)
		return;
	while (out->nsort < Min(limit->nsort, WIRE_MAX_SORT) &&
		   describe_value(cuda, &limit->by[out->nsort].value, &out->by[out->nsort].value))
	{
		out->by[out->nsort].descending = limit->by[out->nsort].descending;
		out->by[out->nsort].nulls_first = limit->by[out->nsort].nulls_first;
		out->nsort++;
	}
	if (out->nsort > 0)
		out->count = limit->count;
	out->ties = limit->ties || out->nsort < limit->nsort;
}

bool
cuda_send_finish(CudaEngine *cuda, bool final, bool if_taken)
{
	WireFinish finish = {.if_taken = if_taken, .first = FETCH_GROUPS};

	cuda->ranks = finish.ranks = final && cuda->env.ranks;
	if (final)
		describe_limit(cuda, &finish.limit);
	cuda->asked = finish.limit;
	return client_send(cuda->client, MESSAGE_FINISH, &finish, sizeof(finish));
}

static bool
fail_invalid(CudaEngine *cuda)
{
	strlcpy(cuda->client->failure, "the GPU server sent an invalid answer",
			sizeof(cuda->client->failure));
	return false;
}

bool
cuda_receive_finished(CudaEngine *cuda)
{
	WireGroups *ahead = &cuda->ahead;

	ahead->n = 0;
	if (!client_receive(cuda->client, MESSAGE_FINISHED, &cuda->result, sizeof(cuda->result)))
		return false;
	if (cuda->result.ngroups > 0 &&
		!client_receive(cuda->client, MESSAGE_GROUPS, ahead, sizeof(*ahead)))
		return false;
	client_settle(cuda->client);
	if (cuda->result.ngroups == 0)
		return true;
	return (ahead->first == 0 && ahead->n >= 1 && ahead->n <= FETCH_GROUPS &&
			ahead->n <= cuda->result.ngroups && are_valid_groups(cuda, ahead)) ||
		fail_invalid(cuda);
}

/*
 * Fetches at most `most` of the next groups to buffer 0, where they replace the chunk before. The
 * first groups came with FINISHED.
 */
static bool
fetch_groups(CudaEngine *cuda, WireGroups *groups, uint32 most)
{
	uint64 left = cuda->result.ngroups - cuda->next_group;
	WireFetch fetch = {
		.first = cuda->next_group, .max = Min(left, Min(most, FETCH_GROUPS)), .ranks = cuda->ranks};
	instr_time since = cuda_clock();

	if (cuda->ahead.n > 0)
	{
		*groups = cuda->ahead;
		cuda->ahead.n = 0;
		return true;
	}
	if (!client_send(cuda->client, MESSAGE_FETCH, &fetch, sizeof(fetch)) ||
		!client_receive(cuda->client, MESSAGE_GROUPS, groups, sizeof(*groups)))
		return false;
	client_settle(cuda->client);
	cuda_add_time(&cuda->times.fetch_ms, since);
	if (groups->first == fetch.first && groups->n >= 1 && groups->n <= fetch.max &&
		are_valid_groups(cuda, groups))
		return true;
	return fail_invalid(cuda);
}

/* Fetches all remaining groups into a spool. Returns false if the engine failed. */
static bool
spool_groups(CudaEngine *cuda)
{
	uint64 next = cuda->next_group;
	uint32 most = Max(SPOOL_BYTES / Max(wire_fetched_bytes(cuda->query->wire, cuda->ranks), 1), 1);
	CudaSpool *spool = cuda_spool_create(cuda->env.cxt, cuda->env.mem_limit / 2);

	while (cuda->next_group < cuda->result.ngroups)
	{
		WireGroups groups;

		CHECK_FOR_INTERRUPTS();
		if (!fetch_groups(cuda, &groups, most))
		{
			cuda_spool_free(spool);
			cuda_fail_client(cuda);
			return false;
		}
		cuda_spool_put(spool, &groups, cuda->client->arena, cuda_groups_end(cuda, &groups));
		cuda->next_group += groups.n;
	}
	cuda->next_group = next;
	cuda->spool = spool;
	return true;
}

/*
 * Copies the keys of out->ngroups groups. Values that are fetched may have *left bytes, see
 * cuda_fetch_keys(). Returns false if the session is lost.
 */
static bool
copy_keys(CudaEngine *cuda, const char *packed, size_t *left, GroupBatch *out)
{
	for (int k = 0; k<cuda->spec->nkeys && * left> 0; k++)
		if (cuda->query->cols[cuda->query->keycol[k]].stored < 0)
			cuda_query_keys(cuda->query, k, packed, out->ngroups, out->keys[k], out->keynulls[k]);
		else if (!cuda_fetch_keys(cuda, k, packed, out->ngroups, left, out->keys[k],
								  out->keynulls[k]))
			return false;
	return true;
}

/* Returns how many groups of a chunk have states of exact aggregates that fit into `room` bytes. */
static uint32
most_exact_groups(const CudaEngine *cuda, uint32 n, size_t room)
{
	size_t bytes = cuda_query_exact_bytes(cuda->query);

	/* chunks of a spool are small, and are not divided */
	return bytes == 0 || cuda->spool ? n : Min(n, Max(room / bytes, 1));
}

/*
 * Makes a batch of a chunk's groups, or of the first ones if the values of their keys, their n
 * best, or their states of counted values or exact aggregates have too many bytes: *groups has only
 * these then, and the next chunk begins with the others. Returns false if the session is lost.
 */
static bool
copy_groups(CudaEngine *cuda, WireGroups *groups, const char *buffer, GroupBatch *out)
{
	const size_t room = Max(cuda->env.mem_limit / 2, WIRE_BUFFER_BYTES);
	const uint32 most = most_exact_groups(cuda, FETCH_GROUPS, room);
	size_t left = 0;

	for (uint32 n = Min(Min(cuda_top_n_fitting(cuda, groups, buffer, room),
							cuda_tallies_fitting(cuda, groups, buffer, room)),
						most);
		 left == 0; n = (n + 1) / 2)
	{
		MemoryContextReset(cuda->group_cxt);
		group_batch_init(out, cuda->spec, n, false);
		out->ngroups = groups->n = n;
		left = n > 1 ? room : SIZE_MAX;
		if (!copy_keys(cuda, buffer + groups->keys, &left, out) ||
			!cuda_fetch_ranked(cuda, groups, buffer, &left, out))
			return false;
	}
	cuda->most_groups = left > room / 2 ? Min(2 * groups->n, most) : groups->n;
	out->matrix_size = cuda->query->matrix_size;
	out->ranks = groups->ranks;
	cuda_set_states(cuda, groups, buffer, 0, out);
	return true;
}

/*
 * Makes the states of exact aggregates, and sets those of other fallback aggregates to their
 * initial values. These exist here only for unrepresentable numerics, which no row has that the
 * server got. Fallback aggregates of ordered sets, the n best and counted values get their states
 * later; those of texts by rank have them, if the server has rows.
 */
static void
set_fallbacks(CudaEngine *cuda, const WireGroups *groups, const char *buffer, uint32 from,
			  GroupBatch *out)
{
	for (int o = 0; o < cuda->spec->nfallbacks; o++)
		if (cuda->query->exact[o].kind != 0)
			cuda_query_exact_states(cuda->query, o, groups, buffer, from, out);
		else if (cuda->query->ranked[o].order == NULL)
			for (int g = 0; g < out->ngroups; g++)
			{
				out->fallbacks[o][g] = cuda->spec->fallbacks[o].initval;
				out->fallback_nulls[o][g] = cuda->spec->fallbacks[o].initnull;
			}
}

/*
 * Makes the engines' states of means from counts and sums. Squared deviations are 0, because
 * nothing reads them. A sum of negative zeros is -0, but 0 in a mean.
 */
static char *
make_means(const CudaEngine *cuda, const WireGroups *groups, const char *buffer, uint32 from, int n,
		   int s)
{
	const int64 *count = cuda_slot_numbers(groups, buffer, cuda->query->slot[s]) + from;
	const double *sum = (const double *) (buffer + groups->slots[cuda->query->sum[s]]) + from;
	gpuagg_accum *means = palloc(n * sizeof(gpuagg_accum));

	for (int g = 0; g < n; g++)
		means[g] = (gpuagg_accum){(double) count[g], count[g] > 0 ? sum[g] + 0.0 : 0, 0};
	return (char *) means;
}

void
cuda_set_states(CudaEngine *cuda, const WireGroups *groups, const char *buffer, uint32 from,
				GroupBatch *out)
{
	const CudaQuery *query = cuda->query;

	for (int s = 0; s < cuda->spec->nslots; s++)
	{
		const WireSlot *slot = &query->wire->slots[query->slot[s]];

		out->slots[s] = query->sum[s] >= 0 ?
			make_means(cuda, groups, buffer, from, out->ngroups, s) :
			unconstify(char *, buffer) + groups->slots[query->slot[s]] +
				(size_t) from * slot->width * gpuagg_monoids[slot->monoid].state_size;
	}
	set_fallbacks(cuda, groups, buffer, from, out);
}

/* Returns the server's next groups; false at the end, or if the engine failed. */
bool
cuda_next_device_groups(CudaEngine *cuda, GroupBatch *out)
{
	WireGroups groups;
	const char *buffer;
	MemoryContext old;

	cuda->returned_slots = NULL;
	if (cuda->next_group == cuda->result.ngroups)
	{
		if (cuda_has_session(cuda) && cuda->result.memory_peak >= LARGE_QUERY)
			cuda_end_session(cuda);
		return false;
	}
	if (cuda->spool)
	{
		if (!cuda_spool_get(cuda->spool, &groups, &buffer))
			elog(ERROR, "groups of the GPU server are missing");
	}
	else if (fetch_groups(cuda, &groups, cuda->most_groups ? cuda->most_groups : FETCH_GROUPS))
		buffer = cuda->client->arena;
	else
	{
		cuda_fail_client(cuda);
		return false;
	}
	old = MemoryContextSwitchTo(cuda->group_cxt);
	if (!copy_groups(cuda, &groups, buffer, out) ||
		!cuda_pick_ordered_sets(cuda, &groups, buffer, out) ||
		!cuda_pick_top_n(cuda, &groups, buffer, out) ||
		!cuda_make_tallies(cuda, &groups, buffer, out))
	{
		MemoryContextSwitchTo(old);
		cuda_fail_client(cuda);
		return false;
	}
	MemoryContextSwitchTo(old);
	cuda->returned = groups;
	cuda->returned_slots = cuda->spool ? NULL : out->slots;
	cuda->next_group += groups.n;
	cuda->bytes_from_device += groups.n * wire_fetched_bytes(cuda->query->wire, groups.ranks);
	return true;
}

/* EngineOps.release: gives back sessions that have had no rows yet, or that need no more rows. */
void
cuda_release(EState *estate, bool in_steps)
{
	dlist_iter iter;

	dlist_foreach(iter, &cuda_engines)
	{
		CudaEngine *cuda = dlist_container(CudaEngine, node, iter.cur);
		bool empty = !cuda->finished && !cuda->joined && cuda->batches == 0 && cuda->rows == 0;

		if (cuda->env.estate != estate || !cuda_has_session(cuda))
			continue;
		if (!empty && !cuda->finished)
			continue;
		cuda_keep_returned(cuda);
		if (!empty && !cuda_is_exhausted(cuda))
		{
			if (!in_steps)
				cuda->next_group = cuda->result.ngroups;
			/* these need the server while groups are fetched */
			else if (cuda->query->wire->nsets > 0 || cuda_query_has_column_codes(cuda->query))
				continue;
			else if (!spool_groups(cuda))
				continue;
		}
		cuda_end_session(cuda);
	}
}
