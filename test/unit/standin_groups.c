/*
 * standin_groups.c
 *	  The stand-in's groups, by packed key in a hash table: made, limited, fetched; see standin.h.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "operators/hll.h"
#include "limit_host.h"
#include "standin.h"

static uint64_t
hash_key(const char *key, int bytes)
{
	uint64_t h = 0x9e3779b97f4a7c15ULL;

	for (int i = 0; i < bytes; i++)
		h = (h ^ (unsigned char) key[i]) * 0x100000001b3ULL;
	return h ^ h >> 29;
}

size_t
standin_slot_bytes(const DeviceQuery *query, int s)
{
	const WireSlot *slot = &query->q->slots[s];

	return (size_t) slot->width * gpuagg_monoids[slot->monoid].state_size;
}

static uint64_t
bytes_for(const DeviceQuery *query, uint64_t capacity)
{
	return capacity * (wire_group_bytes(query->q) + 2 * sizeof(uint64_t));
}

static uint64_t
probe(const DeviceQuery *query, const char *key)
{
	int width = query->q->key_bytes;
	uint64_t mask = 2 * query->capacity - 1;
	uint64_t at = hash_key(key, width) & mask;

	while (query->table[at] != 0 &&
		   memcmp(query->keys + (query->table[at] - 1) * width, key, width) != 0)
		at = (at + 1) & mask;
	return at;
}

static DeviceStatus
resize(DeviceQuery *query, uint64_t capacity, DeviceError *error)
{
	int width = query->q->key_bytes;
	uint64_t bytes = bytes_for(query, capacity);
	uint64_t left;

	while (!budget_take(query->device, bytes - query->bytes))
		if (!store_yield(query->device, bytes - query->bytes))
			return device_fail(error, DEVICE_NO_MEMORY, "device memory limit reached");
	if (!standin_available(query->device, false, &left) ||
		budget_device(query->device)->used > left)
	{
		budget_give(query->device, bytes - query->bytes);
		return device_fail(error, DEVICE_NO_MEMORY, "other processes have the device's memory");
	}
	query->bytes = bytes;
	query->peak = bytes > query->peak ? bytes : query->peak;
	query->capacity = capacity;
	query->keys = realloc(query->keys, capacity * width + 1);
	free(query->table);
	query->table = calloc(2 * capacity, sizeof(uint64_t));
	for (uint64_t g = 0; g < query->ngroups; g++)
		query->table[probe(query, query->keys + g * width)] = g + 1;
	for (int s = 0; s < query->q->nslots; s++)
	{
		const WireSlot *slot = &query->q->slots[s];

		query->slots[s] = realloc(query->slots[s], capacity * standin_slot_bytes(query, s));
		standin_operators[slot->monoid].fill(query->slots[s] +
												 query->ngroups * standin_slot_bytes(query, s),
											 (capacity - query->ngroups) * slot->width);
	}
	return DEVICE_OK;
}

DeviceStatus
standin_reset(DeviceQuery *query, DeviceError *error)
{
	query->ngroups = query->q->nkeys == 0 ? 1 : 0;
	query->errors = query->retries = 0;
	/* of grouped rows each batch is followed by a reset */
	if (!(query->q->flags & WIRE_GROUPED))
		query->given = query->fetched = 0;
	query->undetermined = 0;
	standin_forget_rows(query);
	standin_forget_values(query);
	standin_release_holds(query);
	if (query->capacity > 0)
		memset(query->table, 0, 2 * query->capacity * sizeof(uint64_t));
	for (int s = 0; s < query->q->nslots && query->capacity > 0; s++)
		standin_operators[query->q->slots[s].monoid].fill(
			query->slots[s], query->capacity * query->q->slots[s].width);
	if (query->capacity == 0)
	{
		uint64_t ngroups = query->ngroups;
		DeviceStatus status;

		/* nothing to keep: every state is the identity */
		query->ngroups = 0;
		status = resize(query, 64, error);
		query->ngroups = ngroups;
		return status;
	}
	return DEVICE_OK;
}

void
standin_query_close(DeviceQuery *query)
{
	budget_give(query->device, query->bytes);
	standin_forget_rows(query);
	standin_forget_values(query);
	standin_release_holds(query);
	free(query->kept);
	for (int s = 0; s < query->q->nslots; s++)
		free(query->slots[s]);
	free(query->keys);
	free(query->table);
	free(query);
}

DeviceStatus
standin_query_open(DeviceQuery **query, int device, const WireQuery *q, const double *thresholds,
				   DeviceError *error)
{
	DeviceQuery *made = calloc(1, sizeof(*made));
	DeviceStatus status;

	made->device = device;
	made->q = q;
	made->thresholds = thresholds;
	status = standin_reset(made, error);
	if (status == DEVICE_OK)
		*query = made;
	else
		standin_query_close(made);
	return status;
}

DeviceStatus
standin_group_of_key(DeviceQuery *query, const char *key, uint64_t *group, DeviceError *error)
{
	const WireQuery *q = query->q;
	uint64_t at;

	*group = 0;
	if (q->nkeys == 0)
		return DEVICE_OK;
	if (query->ngroups == query->capacity)
	{
		DeviceStatus status = resize(query, 2 * query->capacity, error);

		if (status != DEVICE_OK)
			return status;
		query->retries++;
	}
	at = probe(query, key);
	if (query->table[at] == 0)
	{
		memcpy(query->keys + query->ngroups * q->key_bytes, key, q->key_bytes);
		query->table[at] = ++query->ngroups;
	}
	*group = query->table[at] - 1;
	return DEVICE_OK;
}

void
standin_forget_groups(DeviceQuery *query, uint64_t ngroups)
{
	memset(query->table, 0, 2 * query->capacity * sizeof(uint64_t));
	query->ngroups = ngroups;
	for (uint64_t g = 0; g < ngroups; g++)
		query->table[probe(query, query->keys + g * query->q->key_bytes)] = g + 1;
}

/* ---- results ---- */

/* Groups and a limit on them. */
typedef struct Limited
{
	const DeviceQuery *query;
	LimitPlan plan;
} Limited;

/* LimitKey */
static const char *
key_within(const void *arg, int64_t g, char *space)
{
	const Limited *limited = arg;
	const char *key = limited->query->keys + g * limited->query->q->key_bytes;

	(void) space;
	return limit_passes(&limited->plan, g, key) ? key : NULL;
}

/* Moves the groups that a limit leaves together. */
static void
apply_limit(DeviceQuery *query, const WireLimit *limit, WireFinished *result)
{
	const size_t width = query->q->key_bytes;
	Limited limited = {query, limit_plan(query->q, limit, (const void *const *) query->slots)};
	uint8_t *left = calloc(1, query->ngroups + 1);
	LimitSearch search;
	uint64_t kept = 0;

	for (uint64_t g = 0; g < query->ngroups; g++)
		result->failed += key_within(&limited, g, NULL) == NULL;
	limit_search(&limited.plan, key_within, &limited, query->ngroups,
				 query->ngroups - result->failed, &search);
	for (uint64_t g = 0; g < query->ngroups; g++)
	{
		const char *key = key_within(&limited, g, NULL);

		left[g] = key && limit_has(&limited.plan, &search, g, key);
	}
	for (uint64_t g = 0; g < query->ngroups; g++)
	{
		if (!left[g])
			continue;
		memmove(query->keys + kept * width, query->keys + g * width, width);
		for (int s = 0; s < query->q->nslots; s++)
			memmove(query->slots[s] + kept * standin_slot_bytes(query, s),
					query->slots[s] + g * standin_slot_bytes(query, s),
					standin_slot_bytes(query, s));
		kept++;
	}
	query->ngroups = kept;
	free(left);
}

DeviceStatus
standin_finish(DeviceQuery *query, const WireLimit *limit, bool part, WireFinished *result,
			   DeviceError *error)
{
	(void) error;
	standin_reduce_kept(query);
	if (!part)
		standin_finish_sets(query);
	result->allgroups = query->ngroups;
	if (limit)
		apply_limit(query, limit, result);
	result->ngroups = query->ngroups;
	result->errors = query->errors;
	result->retries = query->retries;
	result->undetermined = query->undetermined;
	standin_release_holds(query);
	result->memory_peak = query->peak;
	snprintf(result->strategy, sizeof(result->strategy), "%s (stand-in)",
			 query->q->nkeys == 0               ? "single" :
				 query->q->flags & WIRE_GROUPED ? "segmented" :
												  "hash");
	return DEVICE_OK;
}

DeviceStatus
standin_absorb(DeviceQuery *query, DeviceQuery *part, const int64_t *key_min,
			   const int64_t *key_max, DeviceError *error)
{
	uint64_t *groups = malloc(part->ngroups * sizeof(*groups) + 1);
	DeviceStatus status = DEVICE_OK;

	(void) key_min, (void) key_max;
	for (uint64_t g = 0; g < part->ngroups && status == DEVICE_OK; g++)
	{
		uint64_t group;

		status = standin_group_of_key(query, part->keys + g * query->q->key_bytes, &group, error);
		groups[g] = group;
		for (int s = 0; s < query->q->nslots && status == DEVICE_OK; s++)
		{
			const WireSlot *slot = &query->q->slots[s];
			size_t size = gpuagg_monoids[slot->monoid].state_size;

			for (int w = 0; w < slot->width; w++)
				query->errors |= standin_operators[slot->monoid].combine(
					query->slots[s] + group * standin_slot_bytes(query, s) + w * size,
					part->slots[s] + g * standin_slot_bytes(query, s) + w * size);
		}
	}
	if (status == DEVICE_OK)
		standin_bring_values(query, part, groups);
	free(groups);
	return status;
}

DeviceStatus
standin_fetch(DeviceQuery *query, Lane *lane, const WireGroups *out, DeviceError *error)
{
	char *base = lane->arena + out->buffer * lane->buffer_bytes;
	const WireQuery *q = query->q;
	char word[32];

	standin_requested_fault(word, ++query->fetched);
	if (strcmp(word, "fetch") == 0)
		standin_crash(SIGABRT);
	if (out->first > query->ngroups || out->n > query->ngroups - out->first)
		return device_fail(error, DEVICE_UNSUPPORTED, "no such groups");
	memcpy(base + out->keys, query->keys + out->first * q->key_bytes,
		   (size_t) out->n * q->key_bytes);
	if (strcmp(word, "keys") == 0)
		memset(base + out->keys, 0x6f, (size_t) out->n * q->key_bytes);
	for (int s = 0; s < q->nslots; s++)
	{
		const char *from = query->slots[s] + out->first * standin_slot_bytes(query, s);

		if (!wire_has_ranks(&q->slots[s], out->ranks))
			memcpy(base + out->slots[s], from, out->n * standin_slot_bytes(query, s));
		for (uint32_t g = 0; wire_has_ranks(&q->slots[s], out->ranks) && g < out->n; g++)
			gpuagg_hll_count_ranks((const int32_t *) (from + g * standin_slot_bytes(query, s)),
								   (int32_t *) (base + out->slots[s]) +
									   (size_t) g * GPUAGG_HLL_RANKS);
	}
	return DEVICE_OK;
}
