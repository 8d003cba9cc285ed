/*
 * spread.c
 *	  Queries over stored columns that are distributed over several devices; see spread.h.
 *
 * RESIDENT is split into a message for each device that has rows of it. First the columns are held
 * on all devices, so that either all rows are there or none is reduced. Then each device reduces
 * its rows in a thread of its own, because the lookup of keys waits for the device.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "server/resident_plan.h"
#include "server/spread.h"

/* The rows of a split message that one device has. */
typedef struct DeviceMessage
{
	int device;
	bool any; /* the device has rows; else the rest is unused */
	uint32_t nrow_ranges;
	uint32_t nspans;
	WireResident *in;         /* followed by its spans */
	WireRowRange *row_ranges; /* followed by the cells of lookup tables */
	uint64_t *lacking;
	uint32_t lacking_cells;
	StoreHold *hold; /* the device releases it, once it was passed on */
	DeviceQuery *query;
	Lane *lane;
	Watch watch;
	pthread_t thread;
	bool threaded;
	DeviceStatus status;
	DeviceError error;
} DeviceMessage;

/* A RESIDENT that is split by devices. */
typedef struct SplitMessage
{
	const WireResident *in;
	const WireRowRange *row_ranges;
	/* a span without its list is on several devices, so that no device can know its list */
	bool lost;
	DeviceMessage message[WIRE_MAX_DEVICES];
} SplitMessage;

#define LACKING_FLAGS (WIRE_OUTDATED | WIRE_UNSORTED | WIRE_SPREAD)

/* ---- devices of ranges ---- */

/* Returns the device that stores all ranges of the span; -1 if there are several. */
static int
span_place(WireTableKey table, const WireSpan *span)
{
	int first = store_place(table, span->first);

	return span->nranges <= store_place_ranges &&
			store_place(table, span->first + span->nranges - 1) == first ?
		first :
		-1;
}

int
spread_device(const WireResident *in, const WireRowRange *row_ranges)
{
	if (in->nstored == 0)
		return -1;
	return store_place(in->table,
					   in->nrow_ranges > 0 ? row_ranges[0].range : wire_spans(in)[0].first);
}

/* ---- splitting a message ---- */

static void
count_messages(SplitMessage *split)
{
	const WireSpan *spans = wire_spans(split->in);

	for (uint32_t i = 0; i < split->in->nrow_ranges; i++)
		split->message[store_place(split->in->table, split->row_ranges[i].range)].nrow_ranges++;
	for (uint32_t i = 0; i < split->in->nspans; i++)
	{
		int d = span_place(split->in->table, &spans[i]);

		if (d >= 0)
			split->message[d].nspans++;
		else if (spans[i].row_range == WIRE_NO_ARRAY)
			split->lost = true;
	}
}

/* Allocates the messages, without row ranges and spans. Returns false if there is no memory. */
static bool
make_messages(SplitMessage *split)
{
	const WireResident *in = split->in;
	size_t cells = in->cell_bytes;

	for (int d = 0; d < store_devices(); d++)
	{
		DeviceMessage *s = &split->message[d];
		size_t row_ranges = wire_align(s->nrow_ranges * sizeof(WireRowRange));

		s->device = d;
		s->any = s->nrow_ranges + s->nspans > 0;
		if (!s->any)
			continue;
		s->in = malloc(sizeof(WireResident) + s->nspans * sizeof(WireSpan));
		s->row_ranges = malloc(row_ranges + cells + 1);
		s->lacking = calloc((size_t) s->nrow_ranges + s->nspans, sizeof(uint64_t));
		if (s->in == NULL || s->row_ranges == NULL || s->lacking == NULL)
			return false;
		*s->in = *in;
		memcpy((char *) s->row_ranges + row_ranges,
			   (const char *) split->row_ranges + wire_cells_at(in), cells);
		s->in->nrow_ranges = s->in->nspans = 0;
	}
	return true;
}

/*
 * Fills in row ranges and spans, in their order. The list of a span goes with the span, because all
 * its row ranges are on one device. The span's index of its list is adjusted.
 */
static void
fill_messages(SplitMessage *split)
{
	const WireSpan *spans = wire_spans(split->in);
	uint32_t next = 0;

	for (uint32_t i = 0; i <= split->in->nrow_ranges; i++)
	{
		DeviceMessage *s;

		for (; next < split->in->nspans &&
			 (spans[next].row_range == WIRE_NO_ARRAY || spans[next].row_range <= i);
			 next++)
		{
			int d = span_place(split->in->table, &spans[next]);
			WireSpan *to;

			if (d < 0)
				continue;
			s = &split->message[d];
			to = (WireSpan *) (s->in + 1) + s->in->nspans++;
			*to = spans[next];
			if (to->row_range != WIRE_NO_ARRAY)
				to->row_range = s->in->nrow_ranges;
		}
		if (i == split->in->nrow_ranges)
			break;
		s = &split->message[store_place(split->in->table, split->row_ranges[i].range)];
		s->row_ranges[s->in->nrow_ranges++] = split->row_ranges[i];
	}
}

static void
free_messages(SplitMessage *split)
{
	for (int d = 0; d < store_devices(); d++)
	{
		free(split->message[d].in);
		free(split->message[d].row_ranges);
		free(split->message[d].lacking);
	}
}

/* Combines what the devices lack, in the order of the message, as RESIDED needs it. */
static void
join_lacking(SplitMessage *split, uint64_t *lacking, WireResided *resided)
{
	const WireSpan *spans = wire_spans(split->in);
	uint32_t next[WIRE_MAX_DEVICES] = {0};
	uint64_t flags = 0;

	for (int d = 0; d < store_devices(); d++)
		if (split->message[d].any)
		{
			flags |= split->message[d].lacking[0] & LACKING_FLAGS;
			split->message[d].lacking[0] &= ~LACKING_FLAGS;
			resided->lacking_cells |= split->message[d].lacking_cells;
		}
	for (uint32_t i = 0; i < split->in->nrow_ranges; i++)
	{
		int d = store_place(split->in->table, split->row_ranges[i].range);

		lacking[i] = split->message[d].lacking[next[d]++];
	}
	for (uint32_t i = 0; i < split->in->nspans; i++)
	{
		int d = span_place(split->in->table, &spans[i]);
		uint64_t all =
			spans[i].row_range == WIRE_NO_ARRAY ? UINT64_MAX >> (64 - split->in->nstored) : 0;

		lacking[split->in->nrow_ranges + i] = d < 0 ? all : split->message[d].lacking[next[d]++];
	}
	lacking[0] |= flags;
}

/* ---- peers ---- */

/*
 * Returns in *out the query's peer on this device, which is opened if necessary. Not for shared
 * queries, nor for the query's own device.
 */
static DeviceStatus
get_peer(SharedQuery *query, int device, PeerQuery **out, DeviceError *error)
{
	PeerQuery *peer = query->peers[device];
	DeviceStatus status;

	if (peer == NULL && (peer = calloc(1, sizeof(*peer))) == NULL)
		return device_fail(error, DEVICE_NO_MEMORY, "out of memory in the GPU server");
	query->peers[device] = *out = peer;
	if (peer->lane == NULL)
	{
		status = device_ops.lane_open(&peer->lane, device, query->arena, ARENA_BUFFER_BYTES,
									  ARENA_BUFFERS, error);
		if (status != DEVICE_OK)
			return status;
	}
	if (peer->query)
		return DEVICE_OK;
	return device_ops.query_open(&peer->query, device, &query->wire, query->thresholds, error);
}

void
spread_close(SharedQuery *query)
{
	for (int d = 0; d < WIRE_MAX_DEVICES; d++)
	{
		PeerQuery *peer = query->peers[d];

		if (peer == NULL)
			continue;
		if (peer->query)
			device_ops.query_close(peer->query);
		if (peer->lane)
			device_ops.lane_close(peer->lane);
		free(peer);
		query->peers[d] = NULL;
	}
}

static uint64_t
use_of(SharedQuery *query)
{
	if (query->use == 0)
		query->use = store_use();
	return query->use;
}

DeviceStatus
spread_store(SharedQuery *query, Lane *lane, const WireStore *in, struct Dictionary *dict,
			 bool *kept, DeviceError *error)
{
	int device = store_place(in->table, in->range);
	PeerQuery *peer;
	DeviceStatus status;

	*kept = false;
	if (device == query->device)
		return store_put(device, lane, in, dict, use_of(query), kept, error);
	if (query->arena == NULL)
		return DEVICE_OK;
	status = get_peer(query, device, &peer, error);
	if (status == DEVICE_NO_MEMORY)
		return DEVICE_OK;
	return status == DEVICE_OK ?
		store_put(device, peer->lane, in, dict, use_of(query), kept, error) :
		status;
}

/* ---- rows ---- */

static void
widen_key_bounds(PeerQuery *peer, const WireResident *in)
{
	for (int k = 0; k < WIRE_MAX_KEYS; k++)
	{
		if (!peer->reduces || in->key_min[k] < peer->key_min[k])
			peer->key_min[k] = in->key_min[k];
		if (!peer->reduces || in->key_max[k] > peer->key_max[k])
			peer->key_max[k] = in->key_max[k];
	}
	peer->reduces = true;
}

/* Holds the columns of a device's rows. Sets *held if all rows are stored there. */
static DeviceStatus
hold_message(SharedQuery *query, DeviceMessage *s, bool *held)
{
	DeviceStatus status = store_hold(s->device, s->in, s->row_ranges, use_of(query), s->lacking,
									 &s->lacking_cells, &s->hold, &s->error);

	if (s->hold && !resident_in_order(&query->wire, s->hold, s->lacking))
		s->hold = NULL;
	*held = s->hold != NULL;
	return status;
}

static void
release_holds(SplitMessage *split)
{
	for (int d = 0; d < store_devices(); d++)
		if (split->message[d].hold)
			store_release(split->message[d].hold);
}

/* Finds the query and the lane that reduce the rows of this device. */
static DeviceStatus
find_target(SharedQuery *query, Lane *lane, DeviceMessage *s)
{
	PeerQuery *peer;
	DeviceStatus status;

	s->query = query->query;
	s->lane = lane;
	if (s->device == query->device)
		return DEVICE_OK;
	status = get_peer(query, s->device, &peer, &s->error);
	s->query = peer ? peer->query : NULL;
	s->lane = peer ? peer->lane : NULL;
	/* without memory for a peer there is no room for its rows */
	return status == DEVICE_NO_MEMORY ? DEVICE_FULL : status;
}

/* Holds all columns, and readies the peers. Sets *held if all rows are stored. */
static DeviceStatus
hold_all(SharedQuery *query, Lane *lane, SplitMessage *split, bool *held, DeviceError *error)
{
	*held = !split->lost;
	for (int d = 0; d < store_devices(); d++)
	{
		DeviceMessage *s = &split->message[d];
		bool is = true;
		DeviceStatus status = s->any ? hold_message(query, s, &is) : DEVICE_OK;

		if (status != DEVICE_OK)
		{
			*error = s->error;
			return status;
		}
		*held = *held && is;
	}
	for (int d = 0; d < store_devices() && *held; d++)
	{
		DeviceStatus status =
			split->message[d].any ? find_target(query, lane, &split->message[d]) : DEVICE_OK;

		if (status != DEVICE_OK)
		{
			*error = split->message[d].error;
			return status;
		}
	}
	return DEVICE_OK;
}

static void *
reduce_message(void *arg)
{
	DeviceMessage *s = arg;

	watch_begin(&s->watch, s->device);
	s->status = device_ops.resident(s->query, s->lane, s->in, s->row_ranges, s->hold, &s->error);
	s->hold = NULL;
	watch_end(&s->watch);
	return NULL;
}

/* Reduces the rows of all devices at once. Returns the worst of the statuses. */
static DeviceStatus
reduce_all(SharedQuery *query, SplitMessage *split, DeviceError *error)
{
	DeviceStatus worst = DEVICE_OK;
	DeviceMessage *own = NULL;

	for (int d = 0; d < store_devices(); d++)
	{
		DeviceMessage *s = &split->message[d];

		if (!s->any)
			continue;
		if (d == query->device)
		{
			own = s;
			continue;
		}
		widen_key_bounds(query->peers[d], split->in);
		s->threaded = pthread_create(&s->thread, NULL, reduce_message, s) == 0;
		if (!s->threaded)
			reduce_message(s);
	}
	if (own)
		reduce_message(own);
	for (int d = 0; d < store_devices(); d++)
	{
		DeviceMessage *s = &split->message[d];

		if (s->threaded)
			pthread_join(s->thread, NULL);
		if (s->any && s->status > worst)
		{
			worst = s->status;
			*error = s->error;
		}
	}
	return worst;
}

/*
 * Called after DEVICE_FULL of one device, when others may have reduced their rows. Drops all rows
 * of the query if these were its first. Else the query fails: its earlier rows cannot be separated
 * from these.
 */
static DeviceStatus
forget_rows(SharedQuery *query, DeviceError *error)
{
	DeviceStatus status;

	if (query->rows)
		return device_fail(error, DEVICE_NO_MEMORY, "no room on one of several devices");
	spread_close(query);
	status = device_ops.reset(query->query, error);
	return status == DEVICE_OK ? DEVICE_FULL : status;
}

static DeviceStatus
reduce_split(SharedQuery *query, Lane *lane, SplitMessage *split, uint64_t *lacking,
			 WireResided *resided, DeviceError *error)
{
	bool held;
	DeviceStatus status = hold_all(query, lane, split, &held, error);

	if (status != DEVICE_OK || !held)
	{
		release_holds(split);
		join_lacking(split, lacking, resided);
		return status;
	}
	status = reduce_all(query, split, error);
	resided->taken = status == DEVICE_OK;
	return status == DEVICE_FULL ? forget_rows(query, error) : status;
}

/* Reduces rows that are all on the query's own device, or a message that reads no columns. */
static DeviceStatus
reduce_here(SharedQuery *query, Lane *lane, const WireResident *in, const WireRowRange *row_ranges,
			uint64_t *lacking, WireResided *resided, DeviceError *error)
{
	StoreHold *hold;
	DeviceStatus status = store_hold(query->device, in, row_ranges, use_of(query), lacking,
									 &resided->lacking_cells, &hold, error);

	if (status != DEVICE_OK || hold == NULL || !resident_in_order(&query->wire, hold, lacking))
		return status;
	status = device_ops.resident(query->query, lane, in, row_ranges, hold, error);
	resided->taken = status == DEVICE_OK;
	return status;
}

/*
 * Returns whether only one device has rows of the message. A device remembers a list only if it has
 * all ranges of its span.
 */
static bool
is_on_one(const SplitMessage *split)
{
	int n = 0;

	for (int d = 0; d < store_devices(); d++)
		n += split->message[d].nrow_ranges + split->message[d].nspans > 0;
	return n == 1 && !split->lost;
}

DeviceStatus
spread_resident(SharedQuery *query, Lane *lane, const WireResident *in,
				const WireRowRange *row_ranges, uint64_t *lacking, WireResided *resided,
				DeviceError *error)
{
	SplitMessage *split;
	DeviceStatus status = DEVICE_OK;

	/* a shared query has no peers: rows on other devices are reported as lacking */
	if (in->nstored == 0 || store_devices() == 1 || query->arena == NULL)
		return reduce_here(query, lane, in, row_ranges, lacking, resided, error);
	if ((split = calloc(1, sizeof(*split))) == NULL)
		return device_fail(error, DEVICE_FULL, "out of memory in the GPU server");
	split->in = in;
	split->row_ranges = row_ranges;
	count_messages(split);
	if (is_on_one(split) && spread_device(in, row_ranges) == query->device)
		status = reduce_here(query, lane, in, row_ranges, lacking, resided, error);
	else if (query->wire.flags & WIRE_ORDERED)
		lacking[0] = WIRE_SPREAD;
	else if (!make_messages(split))
		status = device_fail(error, DEVICE_FULL, "out of memory in the GPU server");
	else
	{
		fill_messages(split);
		status = reduce_split(query, lane, split, lacking, resided, error);
	}
	free_messages(split);
	free(split);
	return status;
}

/* ---- the end ---- */

static DeviceStatus
finish_peer(SharedQuery *query, PeerQuery *peer, WireFinished *result, DeviceError *error)
{
	WireFinished end = {0};
	double ms = 0;
	DeviceStatus status = device_ops.finish(peer->query, NULL, true, &end, error);

	if (status == DEVICE_OK)
		status = device_ops.lane_settle(peer->lane, &ms, error);
	if (status != DEVICE_OK)
		return status;
	result->errors |= end.errors;
	result->undetermined += end.undetermined;
	result->changes += end.changes;
	result->retries += end.retries;
	result->memory_peak += end.memory_peak;
	result->kernel_ms += end.kernel_ms + ms;
	result->devices++;
	return device_ops.absorb(query->query, peer->query, peer->key_min, peer->key_max, error);
}

DeviceStatus
spread_finish(SharedQuery *query, WireFinished *result, DeviceError *error)
{
	for (int d = 0; d < WIRE_MAX_DEVICES; d++)
	{
		PeerQuery *peer = query->peers[d];
		DeviceStatus status =
			peer && peer->reduces ? finish_peer(query, peer, result, error) : DEVICE_OK;

		if (status != DEVICE_OK)
			return status;
	}
	return DEVICE_OK;
}
