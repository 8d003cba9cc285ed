/*
 * spread.c
 *	  Queries over stored columns that are spread over several devices; see spread.h.
 *
 * RESIDENT is cut into a message for each device that has rows of it.  First the columns are held
 * everywhere: then all rows are there, or none is reduced.  Each other device has a thread, as
 * looking up keys waits for the device.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "server/resident_plan.h"
#include "server/spread.h"

/* What a message asks of one device. */
typedef struct Share
{
	int device;
	bool any; /* the rest counts: */
	uint32_t nrow_ranges;
	uint32_t nspans;
	WireResident *in;         /* with its spans */
	WireRowRange *row_ranges; /* with the cells */
	uint64_t *lacking;
	StoreHold *hold; /* which the device releases, once it was given */
	DeviceQuery *query;
	Lane *lane;
	Watch watch;
	pthread_t thread;
	bool threaded;
	DeviceStatus status;
	DeviceError error;
} Share;

/* A message that is cut. */
typedef struct Cut
{
	const WireResident *in;
	const WireRowRange *row_ranges;
	bool lost; /* a span stands for row_ranges of several devices, which nobody knows */
	Share share[WIRE_MAX_DEVICES];
} Cut;

#define FLAGS (WIRE_OUTDATED | WIRE_UNSORTED | WIRE_SPREAD)

/* ---- who has what ---- */

/* The device that has all ranges of the span; -1: there are several. */
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

/* ---- cutting a message ---- */

static void
count_shares(Cut *cut)
{
	const WireSpan *spans = wire_spans(cut->in);

	for (uint32_t i = 0; i < cut->in->nrow_ranges; i++)
		cut->share[store_place(cut->in->table, cut->row_ranges[i].range)].nrow_ranges++;
	for (uint32_t i = 0; i < cut->in->nspans; i++)
	{
		int d = span_place(cut->in->table, &spans[i]);

		if (d >= 0)
			cut->share[d].nspans++;
		else if (spans[i].row_range == WIRE_NO_ARRAY)
			cut->lost = true;
	}
}

/* Memory for the messages, which have no row_ranges and spans yet; false: there is none. */
static bool
make_messages(Cut *cut)
{
	const WireResident *in = cut->in;
	size_t cells = wire_cell_states_at(in) + in->ncells - wire_cells_at(in);

	for (int d = 0; d < store_devices(); d++)
	{
		Share *s = &cut->share[d];
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
			   (const char *) cut->row_ranges + wire_cells_at(in), cells);
		s->in->nrow_ranges = s->in->nspans = 0;
	}
	return true;
}

/*
 * Runs and spans, in their order.  Of a list that is sent, all row_ranges are on its span's device,
 * which numbers them anew.
 */
static void
fill_messages(Cut *cut)
{
	const WireSpan *spans = wire_spans(cut->in);
	uint32_t next = 0;

	for (uint32_t i = 0; i <= cut->in->nrow_ranges; i++)
	{
		Share *s;

		for (; next < cut->in->nspans &&
			 (spans[next].row_range == WIRE_NO_ARRAY || spans[next].row_range <= i);
			 next++)
		{
			int d = span_place(cut->in->table, &spans[next]);
			WireSpan *to;

			if (d < 0)
				continue;
			s = &cut->share[d];
			to = (WireSpan *) (s->in + 1) + s->in->nspans++;
			*to = spans[next];
			if (to->row_range != WIRE_NO_ARRAY)
				to->row_range = s->in->nrow_ranges;
		}
		if (i == cut->in->nrow_ranges)
			break;
		s = &cut->share[store_place(cut->in->table, cut->row_ranges[i].range)];
		s->row_ranges[s->in->nrow_ranges++] = cut->row_ranges[i];
	}
}

static void
free_messages(Cut *cut)
{
	for (int d = 0; d < store_devices(); d++)
	{
		free(cut->share[d].in);
		free(cut->share[d].row_ranges);
		free(cut->share[d].lacking);
	}
}

/* What all devices lack, as RESIDED has it. */
static void
join_lacking(Cut *cut, uint64_t *lacking)
{
	const WireSpan *spans = wire_spans(cut->in);
	uint32_t next[WIRE_MAX_DEVICES] = {0};
	uint64_t flags = 0;

	for (int d = 0; d < store_devices(); d++)
		if (cut->share[d].any)
		{
			flags |= cut->share[d].lacking[0] & FLAGS;
			cut->share[d].lacking[0] &= ~FLAGS;
		}
	for (uint32_t i = 0; i < cut->in->nrow_ranges; i++)
	{
		int d = store_place(cut->in->table, cut->row_ranges[i].range);

		lacking[i] = cut->share[d].lacking[next[d]++];
	}
	for (uint32_t i = 0; i < cut->in->nspans; i++)
	{
		int d = span_place(cut->in->table, &spans[i]);
		uint64_t all =
			spans[i].row_range == WIRE_NO_ARRAY ? UINT64_MAX >> (64 - cut->in->nstored) : 0;

		lacking[cut->in->nrow_ranges + i] = d < 0 ? all : cut->share[d].lacking[next[d]++];
	}
	lacking[0] |= flags;
}

/* ---- parts ---- */

/*
 * The query's part on this device, which may be opened; the device is not the query's own, which is
 * not shared.
 */
static DeviceStatus
get_part(SharedQuery *query, int device, PeerQuery **out, DeviceError *error)
{
	PeerQuery *part = query->parts[device];
	DeviceStatus status;

	if (part == NULL && (part = calloc(1, sizeof(*part))) == NULL)
		return device_fail(error, DEVICE_NO_MEMORY, "out of memory in the GPU server");
	query->parts[device] = *out = part;
	if (part->lane == NULL)
	{
		status = device_ops.lane_open(&part->lane, device, query->arena, ARENA_BUFFER_BYTES,
									  ARENA_BUFFERS, error);
		if (status != DEVICE_OK)
			return status;
	}
	if (part->query)
		return DEVICE_OK;
	return device_ops.query_open(&part->query, device, &query->wire, query->thresholds, error);
}

void
spread_close(SharedQuery *query)
{
	for (int d = 0; d < WIRE_MAX_DEVICES; d++)
	{
		PeerQuery *part = query->parts[d];

		if (part == NULL)
			continue;
		if (part->query)
			device_ops.query_close(part->query);
		if (part->lane)
			device_ops.lane_close(part->lane);
		free(part);
		query->parts[d] = NULL;
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
spread_store(SharedQuery *query, Lane *lane, const WireStore *in, bool *kept, DeviceError *error)
{
	int device = store_place(in->table, in->range);
	PeerQuery *part;
	DeviceStatus status;

	*kept = false;
	if (device == query->device)
		return store_put(device, lane, in, use_of(query), kept, error);
	if (query->arena == NULL)
		return DEVICE_OK;
	status = get_part(query, device, &part, error);
	if (status == DEVICE_NO_MEMORY)
		return DEVICE_OK;
	return status == DEVICE_OK ? store_put(device, part->lane, in, use_of(query), kept, error) :
								 status;
}

/* ---- rows ---- */

static void
widen(PeerQuery *part, const WireResident *in)
{
	for (int k = 0; k < WIRE_MAX_KEYS; k++)
	{
		if (!part->reduces || in->key_min[k] < part->key_min[k])
			part->key_min[k] = in->key_min[k];
		if (!part->reduces || in->key_max[k] > part->key_max[k])
			part->key_max[k] = in->key_max[k];
	}
	part->reduces = true;
}

/* Holds the share's columns; *held: all of its rows are there. */
static DeviceStatus
hold_share(SharedQuery *query, Share *s, bool *held)
{
	DeviceStatus status =
		store_hold(s->device, s->in, s->row_ranges, use_of(query), s->lacking, &s->hold, &s->error);

	if (s->hold && !resident_in_order(&query->wire, s->hold, s->lacking))
		s->hold = NULL;
	*held = s->hold != NULL;
	return status;
}

static void
release_holds(Cut *cut)
{
	for (int d = 0; d < store_devices(); d++)
		if (cut->share[d].hold)
			store_release(cut->share[d].hold);
}

/* Where the share is reduced. */
static DeviceStatus
aim(SharedQuery *query, Lane *lane, Share *s)
{
	PeerQuery *part;
	DeviceStatus status;

	s->query = query->query;
	s->lane = lane;
	if (s->device == query->device)
		return DEVICE_OK;
	status = get_part(query, s->device, &part, &s->error);
	s->query = part ? part->query : NULL;
	s->lane = part ? part->lane : NULL;
	/* no memory for this is none for the rows */
	return status == DEVICE_NO_MEMORY ? DEVICE_FULL : status;
}

/* Holds all columns and readies all devices; *held: all rows are there. */
static DeviceStatus
hold_all(SharedQuery *query, Lane *lane, Cut *cut, bool *held, DeviceError *error)
{
	*held = !cut->lost;
	for (int d = 0; d < store_devices(); d++)
	{
		Share *s = &cut->share[d];
		bool is = true;
		DeviceStatus status = s->any ? hold_share(query, s, &is) : DEVICE_OK;

		if (status != DEVICE_OK)
		{
			*error = s->error;
			return status;
		}
		*held = *held && is;
	}
	for (int d = 0; d < store_devices() && *held; d++)
	{
		DeviceStatus status = cut->share[d].any ? aim(query, lane, &cut->share[d]) : DEVICE_OK;

		if (status != DEVICE_OK)
		{
			*error = cut->share[d].error;
			return status;
		}
	}
	return DEVICE_OK;
}

static void *
reduce_share(void *arg)
{
	Share *s = arg;

	watch_begin(&s->watch, s->device);
	s->status = device_ops.resident(s->query, s->lane, s->in, s->row_ranges, s->hold, &s->error);
	s->hold = NULL;
	watch_end(&s->watch);
	return NULL;
}

/* All devices at once; the worst of their statuses. */
static DeviceStatus
reduce_all(SharedQuery *query, Cut *cut, DeviceError *error)
{
	DeviceStatus worst = DEVICE_OK;
	Share *own = NULL;

	for (int d = 0; d < store_devices(); d++)
	{
		Share *s = &cut->share[d];

		if (!s->any)
			continue;
		if (d == query->device)
		{
			own = s;
			continue;
		}
		widen(query->parts[d], cut->in);
		s->threaded = pthread_create(&s->thread, NULL, reduce_share, s) == 0;
		if (!s->threaded)
			reduce_share(s);
	}
	if (own)
		reduce_share(own);
	for (int d = 0; d < store_devices(); d++)
	{
		Share *s = &cut->share[d];

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
 * After DEVICE_FULL of one device, when others may have taken their rows: forgets all of the query,
 * of which nothing may come any more, if these were its first rows.
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
reduce_cut(SharedQuery *query, Lane *lane, Cut *cut, uint64_t *lacking, bool *taken,
		   DeviceError *error)
{
	bool held;
	DeviceStatus status = hold_all(query, lane, cut, &held, error);

	if (status != DEVICE_OK || !held)
	{
		release_holds(cut);
		join_lacking(cut, lacking);
		return status;
	}
	status = reduce_all(query, cut, error);
	*taken = status == DEVICE_OK;
	return status == DEVICE_FULL ? forget_rows(query, error) : status;
}

/* All rows are on the query's own device, or on none. */
static DeviceStatus
reduce_here(SharedQuery *query, Lane *lane, const WireResident *in, const WireRowRange *row_ranges,
			uint64_t *lacking, bool *taken, DeviceError *error)
{
	StoreHold *hold;
	DeviceStatus status =
		store_hold(query->device, in, row_ranges, use_of(query), lacking, &hold, error);

	if (status != DEVICE_OK || hold == NULL || !resident_in_order(&query->wire, hold, lacking))
		return status;
	status = device_ops.resident(query->query, lane, in, row_ranges, hold, error);
	*taken = status == DEVICE_OK;
	return status;
}

/*
 * Has only one device rows of the message?  Lists of spans that are sent are remembered by devices
 * that have all of them.
 */
static bool
is_on_one(const Cut *cut)
{
	int n = 0;

	for (int d = 0; d < store_devices(); d++)
		n += cut->share[d].nrow_ranges + cut->share[d].nspans > 0;
	return n == 1 && !cut->lost;
}

DeviceStatus
spread_resident(SharedQuery *query, Lane *lane, const WireResident *in,
				const WireRowRange *row_ranges, uint64_t *lacking, bool *taken, DeviceError *error)
{
	Cut *cut;
	DeviceStatus status = DEVICE_OK;

	*taken = false;
	/* rows of a shared query that another device has are lacking on its own */
	if (in->nstored == 0 || store_devices() == 1 || query->arena == NULL)
		return reduce_here(query, lane, in, row_ranges, lacking, taken, error);
	if ((cut = calloc(1, sizeof(*cut))) == NULL)
		return device_fail(error, DEVICE_FULL, "out of memory in the GPU server");
	cut->in = in;
	cut->row_ranges = row_ranges;
	count_shares(cut);
	if (is_on_one(cut) && spread_device(in, row_ranges) == query->device)
		status = reduce_here(query, lane, in, row_ranges, lacking, taken, error);
	else if (query->wire.flags & WIRE_ORDERED)
		lacking[0] = WIRE_SPREAD;
	else if (!make_messages(cut))
		status = device_fail(error, DEVICE_FULL, "out of memory in the GPU server");
	else
	{
		fill_messages(cut);
		status = reduce_cut(query, lane, cut, lacking, taken, error);
	}
	free_messages(cut);
	free(cut);
	return status;
}

/* ---- the end ---- */

static DeviceStatus
finish_part(SharedQuery *query, PeerQuery *part, WireFinished *result, DeviceError *error)
{
	WireFinished end = {0};
	double ms = 0;
	DeviceStatus status = device_ops.finish(part->query, NULL, true, &end, error);

	if (status == DEVICE_OK)
		status = device_ops.lane_settle(part->lane, &ms, error);
	if (status != DEVICE_OK)
		return status;
	result->errors |= end.errors;
	result->undetermined += end.undetermined;
	result->changes += end.changes;
	result->retries += end.retries;
	result->memory_peak += end.memory_peak;
	result->kernel_ms += end.kernel_ms + ms;
	result->devices++;
	return device_ops.absorb(query->query, part->query, part->key_min, part->key_max, error);
}

DeviceStatus
spread_finish(SharedQuery *query, WireFinished *result, DeviceError *error)
{
	for (int d = 0; d < WIRE_MAX_DEVICES; d++)
	{
		PeerQuery *part = query->parts[d];
		DeviceStatus status =
			part && part->reduces ? finish_part(query, part, result, error) : DEVICE_OK;

		if (status != DEVICE_OK)
			return status;
	}
	return DEVICE_OK;
}
