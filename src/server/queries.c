/*
 * queries.c
 *	  Queries, and the connections that share them.
 *
 * A query that is not shared is in the list as well, with one user.
 */
#include <stdlib.h>
#include <string.h>

#include "server.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;	/* of the list and of users */
static OpenQuery *queries;

static bool
same_query(const OpenQuery *query, const WireQuery *wire, const double *thresholds)
{
	return memcmp(&query->wire, wire, sizeof(*wire)) == 0 &&
		memcmp(query->thresholds, thresholds, wire->nthresholds * sizeof(double)) == 0;
}

static OpenQuery *
make_query(int device, const WireQuery *wire, const double *thresholds)
{
	OpenQuery  *query = calloc(1, sizeof(*query));
	size_t		bytes = wire->nthresholds * sizeof(double);

	if (query == NULL || (query->thresholds = malloc(bytes + 1)) == NULL)
	{
		free(query);
		return NULL;
	}
	query->device = device;
	query->wire = *wire;
	memcpy(query->thresholds, thresholds, bytes);
	pthread_mutex_init(&query->lock, NULL);
	return query;
}

/*
 * The query of that number with one more user, or a new one, which *is_new says:
 * its lock is then held, so that others wait until it is open.
 */
static OpenQuery *
find_or_make(int device, const WireQuery *wire, const double *thresholds, bool *is_new)
{
	OpenQuery  *query = NULL;

	pthread_mutex_lock(&lock);
	if (wire->share != 0)
		for (query = queries; query && query->wire.share != wire->share; query = query->next)
			;
	*is_new = query == NULL;
	if (query == NULL && (query = make_query(device, wire, thresholds)) != NULL)
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

DeviceStatus
query_enter(OpenQuery **out, int device, const WireQuery *wire, const double *thresholds,
			DeviceError *error)
{
	DeviceStatus status = DEVICE_OK;
	bool		is_new;
	OpenQuery  *query = find_or_make(device, wire, thresholds, &is_new);

	if (query == NULL)
		return device_say(error, DEVICE_NO_MEMORY, "out of memory in the GPU server");
	if (is_new)
	{
		budget_count_query();
		status = device_ops.query_open(&query->query, device, &query->wire, query->thresholds, error);
	}
	else
	{
		pthread_mutex_lock(&query->lock);
		if (query->query == NULL)
			status = device_say(error, DEVICE_NO_MEMORY, "the query that is shared could not be opened");
		else if (!same_query(query, wire, thresholds))
			status = device_say(error, DEVICE_UNSUPPORTED, "another query has that number");
	}
	pthread_mutex_unlock(&query->lock);
	if (status == DEVICE_OK)
		*out = query;
	else
		query_leave(query);
	return status;
}

void
query_leave(OpenQuery *query)
{
	bool		last;

	pthread_mutex_lock(&lock);
	last = --query->users == 0;
	if (last)
	{
		OpenQuery **at = &queries;

		while (*at != query)
			at = &(*at)->next;
		*at = query->next;
	}
	pthread_mutex_unlock(&lock);
	if (!last)
		return;
	if (query->query)
		device_ops.query_close(query->query);
	pthread_mutex_destroy(&query->lock);
	free(query->thresholds);
	free(query);
}
