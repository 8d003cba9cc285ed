/*
 * shared_query.c
 *	  Queries that sessions may share: their list, and device calls on them.
 *
 * SharedQuery (server.h) wraps a device's Query with a lock and a status. A query of one session
 * alone is such a query with one user.
 */
#include <stdlib.h>
#include <string.h>

#include "server/spread.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects the list and `users` */
static SharedQuery *queries;

static bool
same_query(const SharedQuery *query, const WireQuery *wire, const double *thresholds)
{
	return memcmp(&query->wire, wire, sizeof(*wire)) == 0 &&
		memcmp(query->thresholds, thresholds, wire->nthresholds * sizeof(double)) == 0;
}

static SharedQuery *
make_query(int device, char *arena, const WireQuery *wire, const double *thresholds)
{
	SharedQuery *query = calloc(1, sizeof(*query));
	size_t bytes = wire->nthresholds * sizeof(double);

	if (query == NULL || (query->thresholds = malloc(bytes + 1)) == NULL)
	{
		free(query);
		return NULL;
	}
	query->device = device;
	query->arena = wire->shared_id == 0 ? arena : NULL;
	query->wire = *wire;
	memcpy(query->thresholds, thresholds, bytes);
	pthread_mutex_init(&query->lock, NULL);
	return query;
}

/*
 * Returns the query with this shared_id, with one more user; creates the query if there is none.
 * Returns NULL if there is no memory. If *is_new is set, the query is new and locked for the
 * caller. Other sessions then wait until it is open on the device.
 */
static SharedQuery *
find_or_make_query(int device, char *arena, const WireQuery *wire, const double *thresholds,
				   bool *is_new)
{
	SharedQuery *query = NULL;

	pthread_mutex_lock(&lock);
	if (wire->shared_id != 0)
		for (query = queries; query && query->wire.shared_id != wire->shared_id;
			 query = query->next)
			;
	*is_new = query == NULL;
	if (query == NULL && (query = make_query(device, arena, wire, thresholds)) != NULL)
	{
		pthread_mutex_lock(&query->lock);
		query->next = queries;
		queries = query;
	}
	if (query)
		query->users++;
	pthread_mutex_unlock(&lock);
	return query;
}

/*
 * Returns the status and text of the device call that failed, or DEVICE_OK. The query must be
 * locked.
 */
static DeviceStatus
earlier_failure(const SharedQuery *query, DeviceError *error)
{
	if (query->failed != DEVICE_OK)
		*error = query->failure;
	return query->failed;
}

DeviceStatus
shared_query_enter(SharedQuery **out, int device, char *arena, const WireQuery *wire,
				   const double *thresholds, DeviceError *error)
{
	DeviceStatus status = DEVICE_OK;
	bool is_new;
	SharedQuery *query = find_or_make_query(device, arena, wire, thresholds, &is_new);

	if (query == NULL)
		return device_fail(error, DEVICE_NO_MEMORY, "out of memory in the GPU server");
	if (is_new)
	{
		budget_count_query();
		if (wire->shared_id != 0)
			status = device_ops.query_open(&query->query, device, &query->wire, query->thresholds,
										   error);
	}
	else
	{
		pthread_mutex_lock(&query->lock);
		if (query->query == NULL)
			status = device_fail(error, DEVICE_NO_MEMORY,
								 "the query that is shared could not be opened");
		else if (!same_query(query, wire, thresholds))
			status = device_fail(error, DEVICE_UNSUPPORTED, "another query has that number");
		else
			status = earlier_failure(query, error);
	}
	pthread_mutex_unlock(&query->lock);
	if (status == DEVICE_OK)
		*out = query;
	else
		shared_query_leave(query);
	return status;
}

DeviceStatus
shared_query_place(SharedQuery *query, int device, DeviceError *error)
{
	if (query->query)
		return DEVICE_OK;
	query->device = device;
	return device_ops.query_open(&query->query, device, &query->wire, query->thresholds, error);
}

void
shared_query_leave(SharedQuery *query)
{
	bool last;

	pthread_mutex_lock(&lock);
	last = --query->users == 0;
	if (last)
	{
		SharedQuery **at = &queries;

		while (*at != query)
			at = &(*at)->next;
		*at = query->next;
	}
	pthread_mutex_unlock(&lock);
	if (!last)
		return;
	if (query->query)
		device_ops.query_close(query->query);
	spread_close(query);
	pthread_mutex_destroy(&query->lock);
	free(query->thresholds);
	free(query);
}

DeviceStatus
shared_query_failure(SharedQuery *query, DeviceError *error)
{
	DeviceStatus status;

	pthread_mutex_lock(&query->lock);
	status = earlier_failure(query, error);
	pthread_mutex_unlock(&query->lock);
	return status;
}

/* ---- device calls ---- */

/*
 * Locks the query for a device call. Fails, without the lock, if an earlier call failed, or if
 * query->finished differs from `finished`.
 */
static DeviceStatus
lock_query(SharedQuery *query, bool finished, const char *out_of_order, DeviceError *error)
{
	DeviceStatus status;

	pthread_mutex_lock(&query->lock);
	status = earlier_failure(query, error);
	if (status == DEVICE_OK && query->finished != finished)
		status = device_fail(error, DEVICE_UNSUPPORTED, out_of_order);
	if (status != DEVICE_OK)
		pthread_mutex_unlock(&query->lock);
	return status;
}

/* Unlocks the query after a device call. Records a failure: all later calls then fail. */
static DeviceStatus
unlock_query(SharedQuery *query, DeviceStatus status, const DeviceError *error)
{
	if (status == DEVICE_FULL)
		atomic_store(&query->full, true);
	else if (status != DEVICE_OK)
	{
		query->failed = status;
		query->failure = *error;
	}
	pthread_mutex_unlock(&query->lock);
	return status;
}

DeviceStatus
shared_query_copy(SharedQuery *query, Lane *lane, const WireBatch *batch, size_t *bytes,
				  DeviceError *error)
{
	DeviceStatus status;

	if (atomic_load(&query->full))
		return DEVICE_FULL;
	status = device_ops.copy(lane, batch, bytes, error);
	if (status != DEVICE_NO_MEMORY)
		return status;
	budget_count_failure(FAILURE_MEMORY, error->text);
	atomic_store(&query->full, true);
	return DEVICE_FULL;
}

DeviceStatus
shared_query_reduce(SharedQuery *query, Lane *lane, const WireBatch *batch, DeviceError *error)
{
	DeviceStatus status = lock_query(query, false, "batch after the end", error);

	if (status != DEVICE_OK)
		return status;
	if (atomic_load(&query->full))
		status = DEVICE_FULL;
	else
	{
		status = device_ops.reduce(query->query, lane, batch, error);
		if (status == DEVICE_FULL)
			budget_count_failure(FAILURE_MEMORY, error->text);
		query->rows = true;
	}
	return unlock_query(query, status, error);
}

DeviceStatus
shared_query_store(SharedQuery *query, Lane *lane, const WireStore *in, struct Dictionary *dict,
				   bool *kept, DeviceError *error)
{
	DeviceStatus status = lock_query(query, false, "column after the end", error);

	if (status != DEVICE_OK)
		return status;
	status = spread_store(query, lane, in, dict, kept, error);
	return unlock_query(query, status, error);
}

DeviceStatus
shared_query_resident(SharedQuery *query, Lane *lane, const WireResident *in,
					  const WireRowRange *row_ranges, uint64_t *lacking, WireResided *resided,
					  DeviceError *error)
{
	DeviceStatus status = lock_query(query, false, "rows after the end", error);

	if (status != DEVICE_OK)
		return status;
	if (atomic_load(&query->full))
		status = DEVICE_FULL;
	else
	{
		status = spread_resident(query, lane, in, row_ranges, lacking, resided, error);
		if (status == DEVICE_FULL)
			budget_count_failure(FAILURE_MEMORY, error->text);
		query->rows |= resided->taken != 0;
	}
	return unlock_query(query, status, error);
}

static void
add_peers(WireFinished *result, const WireFinished *peers)
{
	result->errors |= peers->errors;
	result->undetermined += peers->undetermined;
	result->changes += peers->changes;
	result->retries += peers->retries;
	result->memory_peak += peers->memory_peak;
	result->kernel_ms += peers->kernel_ms;
	result->devices = peers->devices;
}

DeviceStatus
shared_query_finish(SharedQuery *query, WireFinished *result, DeviceError *error)
{
	WireFinished peers = {0};
	DeviceStatus status = lock_query(query, false, "a second end", error);

	if (status != DEVICE_OK)
		return status;
	query->finished = true;
	peers.devices = 1;
	status = spread_finish(query, &peers, error);
	if (status == DEVICE_OK)
		status = device_ops.finish(query->query, query->limited ? &query->limit : NULL, false,
								   result, error);
	add_peers(result, &peers);
	spread_close(query);
	return unlock_query(query, status, error);
}

DeviceStatus
shared_query_fetch(SharedQuery *query, Lane *lane, const WireGroups *out, DeviceError *error)
{
	DeviceStatus status = lock_query(query, true, "fetch before the end", error);

	if (status != DEVICE_OK)
		return status;
	status = device_ops.fetch(query->query, lane, out, error);
	return unlock_query(query, status, error);
}

DeviceStatus
shared_query_pick(SharedQuery *query, Lane *lane, const WirePick *in, const int32_t *places,
				  DeviceError *error)
{
	DeviceStatus status = lock_query(query, true, "pick before the end", error);

	if (status != DEVICE_OK)
		return status;
	status = device_ops.pick(query->query, lane, in, places, error);
	return unlock_query(query, status, error);
}

DeviceStatus
shared_query_reset(SharedQuery *query, DeviceError *error)
{
	DeviceStatus status;

	pthread_mutex_lock(&query->lock);
	status = earlier_failure(query, error);
	if (status == DEVICE_OK)
	{
		query->finished = query->rows = false;
		query->use = 0;
		spread_close(query);
		atomic_store(&query->full, false);
		status = device_ops.reset(query->query, error);
	}
	return unlock_query(query, status, error);
}
