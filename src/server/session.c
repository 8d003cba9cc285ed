/*
 * session.c
 *	  Session: a thread for each connection. It turns messages into device calls.
 *
 * The copy of a batch to the device is started as soon as the message is read. The batch is reduced
 * when the next message has come, after the copy for that message was started. If no message is
 * waiting, it is reduced at once. So one batch is copied while the one before is reduced. Only the
 * reduction shows whether the device has room for the batch. DONE is sent after it, and until then
 * the client must not change the batch's rows.
 *
 * Rows that are cached on the device need no copy. RESIDED says that they are taken; FINISH waits
 * for them.
 *
 * A session's arena, lane and query are released in session_end(). The thread always ends there.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "server/device_store.h"
#include "server/spread.h"
#include "server/store_entries.h"

#define MAX_SESSIONS 512

/*
 * Time limits for a client: to send HELLO, to read an answer, and to close the socket after a
 * failure.
 */
#define GREET_MS 10000
#define SEND_SECONDS 30
#define END_MS 10000

typedef struct Session
{
	uint64_t number; /* unique, from 1 */
	Stream stream;
	bool greeted;
	bool kept;  /* after CLOSE: the session has neither a query nor an arena */
	int device; /* -1: not attached */
	Arena *arena;
	Lane *lane;
	SharedQuery *query;
	uint64_t bytes_in;
	double copy_ms;
	double kernel_ms;
	/* since the query was opened, without the message that is being handled */
	double server_ms;
	struct timespec since; /* when the message came that is being handled */
	bool taken;            /* the rows of the last RESIDENT were taken */
	bool pending;          /* `batch` has been copied, but not reduced */
	WireBatch batch;
	StoreEntries entries; /* of the range that STORE brings in parts */
	/* dictionaries of the stored columns of the last RESIDENT, if its rows were taken; or NULL */
	Dictionary *dictionaries[WIRE_MAX_STORED_COLS];
	Watch watch;       /* for the message that is being handled */
	DeviceError error; /* of the last device call that failed */
	union
	{
		WireHello hello;
		WireQuery query;
		WireBatch batch;
		WireFetch fetch;
		WireStore store;
		WireDictionary dictionary;
		WireValues values;
		WireList list;
		WirePick pick;
		WireFinish finish;
		WireResident resident; /* followed by up to WIRE_MAX_SPANS of WireSpan, within `bytes` */
		char bytes[sizeof(WireQuery) + WIRE_MAX_THRESHOLDS * sizeof(double)];
	} body;
} Session;

_Static_assert(sizeof(WireResident) + WIRE_MAX_SPANS * sizeof(WireSpan) <=
				   sizeof(WireQuery) + WIRE_MAX_THRESHOLDS * sizeof(double),
			   "spans behind RESIDENT");

int session_most_kept = 512;
int session_keep_ms = 30000;

/* Connections in use, and connections that are kept between queries. */
static atomic_int nsessions;
static atomic_int nkept;

/* ---- failing ---- */

/* Sends FAILED. Always returns false, for "return session_fail(...)": the session ends. */
static bool
session_fail(Session *s, WireFailure failure, const char *text)
{
	WireFailed failed = {.failure = failure};

	snprintf(failed.text, sizeof(failed.text), "%.250s", text);
	budget_count_failure(failure, text);
	stream_send(&s->stream, MESSAGE_FAILED, &failed, sizeof(failed));
	return false;
}

/*
 * Returns true if a device call succeeded, which reports errors in s->error. Else sends FAILED and
 * returns false. Does not return if the device is lost.
 */
static bool
device_ok(Session *s, DeviceStatus status)
{
	switch (status)
	{
		case DEVICE_OK:
			return true;
		case DEVICE_UNSUPPORTED:
			return session_fail(s, FAILURE_UNSUPPORTED, s->error.text);
		case DEVICE_NO_MEMORY:
			return session_fail(s, FAILURE_MEMORY, s->error.text);
		default:
			session_fail(s, FAILURE_DEVICE, s->error.text);
			server_abandon(s->error.text);
	}
}

/* ---- the query ---- */

static void
give_dictionaries(Session *s)
{
	for (int i = 0; i < WIRE_MAX_STORED_COLS; i++)
	{
		dictionary_give(s->dictionaries[i]);
		s->dictionaries[i] = NULL;
	}
}

static void
leave_query(Session *s)
{
	if (s->query)
		shared_query_leave(s->query);
	s->query = NULL;
	s->pending = false;
	store_entries_forget(&s->entries);
	give_dictionaries(s);
	s->bytes_in = 0;
	s->copy_ms = s->kernel_ms = s->server_ms = 0;
}

/* Closes the lane, and detaches the session from its device. */
static void
leave_device(Session *s)
{
	if (s->lane)
		device_ops.lane_close(s->lane);
	s->lane = NULL;
	if (s->device >= 0)
		budget_detach(s->device);
	s->device = -1;
}

static void
move_to_device(Session *s, int device)
{
	leave_device(s);
	s->device = budget_attach(device);
	/* the rest of the message waits for this device */
	watch_end(&s->watch);
	watch_begin(&s->watch, s->device);
}

static bool
open_lane(Session *s)
{
	return s->lane ||
		device_ok(s,
				  device_ops.lane_open(&s->lane, s->device, s->arena->memory, ARENA_BUFFER_BYTES,
									   ARENA_BUFFERS, &s->error));
}

/*
 * Joins the shared query, or creates the query. A shared query may be on another device; the
 * session then moves to that device.
 */
static bool
enter_query(Session *s, const WireQuery *q, const double *thresholds)
{
	if (!device_ok(
			s,
			shared_query_enter(&s->query, s->device, s->arena->memory, q, thresholds, &s->error)))
		return false;
	if (s->query->device != s->device)
		move_to_device(s, s->query->device);
	return true;
}

/*
 * Opens the query, unless it is open. `device`: the device that has the rows which the message
 * names; -1: any device.
 */
static bool
place_query(Session *s, int device)
{
	if (s->query->query && s->lane)
		return true;
	if (device >= 0 && device != s->device && s->query->query == NULL)
		move_to_device(s, device);
	return device_ok(s, shared_query_place(s->query, s->device, &s->error)) && open_lane(s);
}

/* ---- messages ---- */

static bool
on_hello(Session *s, size_t length)
{
	WireWelcome welcome = {.version = GPUAGG_PROTOCOL_VERSION};

	if (length != sizeof(WireHello) || s->body.hello.version != GPUAGG_PROTOCOL_VERSION ||
		s->greeted)
		return session_fail(s, FAILURE_PROTOCOL, "greeting of another version");
	s->arena = arena_take(0, &s->error);
	if (s->arena == NULL)
		return session_fail(s, FAILURE_MEMORY, s->error.text);
	s->greeted = true;
	s->device = budget_attach(-1);
	welcome.device = s->device;
	welcome.arena_bytes = s->arena->bytes;
	welcome.buffer_bytes = ARENA_BUFFER_BYTES;
	welcome.buffers = ARENA_BUFFERS;
	welcome.ndevices = (uint32_t) store_devices();
	welcome.place_ranges = store_place_ranges;
	welcome.keep_ms = (uint32_t) session_keep_ms;
	memcpy(welcome.device_name, budget_device(s->device)->name, sizeof(welcome.device_name));
	return stream_send_fd(&s->stream, MESSAGE_WELCOME, &welcome, sizeof(welcome), s->arena->fd);
}

/*
 * Releases everything but the connection. Returns false if enough other connections are kept
 * already.
 */
static bool
keep_connection(Session *s)
{
	leave_query(s);
	leave_device(s);
	arena_give(s->arena, s->number);
	s->arena = NULL;
	s->kept = atomic_fetch_add(&nkept, 1) < session_most_kept;
	if (s->kept)
		atomic_fetch_sub(&nsessions, 1);
	else
		atomic_fetch_sub(&nkept, 1);
	return s->kept;
}

/*
 * Readies a kept connection for another query. *fd is set to the arena's descriptor if the client
 * does not have this arena mapped, else it stays.
 */
static bool
resume_connection(Session *s, int *fd)
{
	s->kept = false;
	atomic_fetch_sub(&nkept, 1);
	if (atomic_fetch_add(&nsessions, 1) >= MAX_SESSIONS)
		return session_fail(s, FAILURE_BUSY, "too many sessions at the GPU server");
	s->arena = arena_take(s->number, &s->error);
	if (s->arena == NULL)
		return session_fail(s, FAILURE_MEMORY, s->error.text);
	*fd = s->arena->owner == s->number ? -1 : s->arena->fd;
	move_to_device(s, -1);
	return true;
}

static bool
on_open(Session *s, size_t length)
{
	const char *wrong = check_query(&s->body.query, length);
	int fd = -1;

	if (wrong)
		return session_fail(s, FAILURE_PROTOCOL, wrong);
	if (s->kept && !resume_connection(s, &fd))
		return false;
	leave_query(s);
	s->taken = false;
	if (!enter_query(s, &s->body.query, (double *) (&s->body.query + 1)))
		return false;
	/* with one device there is no choice to wait for, and the client can do other work meanwhile */
	if (((s->body.query.flags & WIRE_LATE) == 0 || store_devices() == 1) && !place_query(s, -1))
		return false;
	return fd < 0 ? stream_hold(&s->stream, MESSAGE_OPENED, NULL, 0) :
					stream_send_fd(&s->stream, MESSAGE_OPENED, NULL, 0, fd);
}

static bool
on_close(Session *s, size_t length)
{
	return length == 0 ? keep_connection(s) : session_fail(s, FAILURE_PROTOCOL, "close length");
}

static bool
send_done(Session *s, uint32_t buffer, bool taken)
{
	WireDone done = {buffer, taken};

	return stream_send(&s->stream, MESSAGE_DONE, &done, sizeof(done));
}

static bool
reduce_pending(Session *s)
{
	DeviceStatus status;

	if (!s->pending)
		return true;
	s->pending = false;
	status = shared_query_reduce(s->query, s->lane, &s->batch, &s->error);
	return (status == DEVICE_FULL || device_ok(s, status)) &&
		send_done(s, s->batch.buffer, status == DEVICE_OK);
}

static bool
on_batch(Session *s, size_t length)
{
	WireBatch batch = s->body.batch;
	const char *wrong =
		check_batch(&batch, &s->query->wire, length, ARENA_BUFFER_BYTES, ARENA_BUFFERS);
	double ms = 0;
	size_t bytes = 0;
	DeviceStatus status;
	bool full;

	if (wrong)
		return session_fail(s, FAILURE_PROTOCOL, wrong);
	if (s->pending && s->batch.buffer == batch.buffer && !reduce_pending(s))
		return false;
	/* a batch that will not be taken need not be copied */
	s->taken = false;
	status = shared_query_copy(s->query, s->lane, &batch, &bytes, &s->error);
	full = status == DEVICE_FULL;
	if (!full && !device_ok(s, status))
		return false;
	if (!reduce_pending(s))
		return false;
	if (!full && !device_ok(s, device_ops.copy_wait(s->lane, batch.buffer, &ms, &s->error)))
		return false;
	s->batch = batch;
	s->pending = true;
	s->bytes_in += bytes;
	s->copy_ms += ms;
	return stream_waits(&s->stream) ? true : reduce_pending(s);
}

/* Takes the entries of a coded column, and numbers its values by them if these are all. */
static bool
take_entries(Session *s, const WireStore *in)
{
	char *buffer = s->arena->memory + (size_t) in->buffer * ARENA_BUFFER_BYTES;
	const char *wrong = store_entries_take(&s->entries, in, buffer);

	if (wrong)
		return session_fail(s, FAILURE_PROTOCOL, wrong);
	if (!in->more && !s->entries.refused)
		store_entries_translate(&s->entries, (uint32_t *) (buffer + in->values), in->nrows);
	return true;
}

static bool
on_store(Session *s, size_t length)
{
	WireStore in = s->body.store;
	WireStored stored = {in.buffer, 0};
	const char *wrong = check_store(&in, length, ARENA_BUFFER_BYTES, ARENA_BUFFERS);
	DeviceStatus status = DEVICE_OK;
	bool kept = false;

	if (wrong)
		return session_fail(s, FAILURE_PROTOCOL, wrong);
	if (!reduce_pending(s) || !place_query(s, store_place(in.table, in.range)) ||
		(in.column.coded && !take_entries(s, &in)))
		return false;
	if (!in.column.coded || !s->entries.refused)
		status = shared_query_store(s->query, s->lane, &in,
									in.column.coded ? s->entries.dict : NULL, &kept, &s->error);
	if (!device_ok(s, status))
		return false;
	stored.kept = kept;
	if (!in.more)
		store_entries_forget(&s->entries);
	else if (!kept)
		store_entries_refuse(&s->entries);
	return stream_send(&s->stream, MESSAGE_STORED, &stored, sizeof(stored));
}

static bool
on_list(Session *s, size_t length)
{
	WireListed listed;

	if (length != sizeof(WireList))
		return session_fail(s, FAILURE_PROTOCOL, "list length");
	store_list(&s->body.list, &listed);
	return stream_send(&s->stream, MESSAGE_LISTED, &listed, sizeof(listed));
}

static bool
on_dictionary(Session *s, size_t length)
{
	WireDictionary in = s->body.dictionary;
	const char *wrong = check_dictionary(&in, length, ARENA_BUFFERS);
	WireEntries entries;
	Dictionary *dict;

	if (wrong)
		return session_fail(s, FAILURE_PROTOCOL, wrong);
	if (!reduce_pending(s))
		return false;
	dict = dictionary_take(in.table, &in.column, false);
	dictionary_read(dict, &in, s->arena->memory + (size_t) in.buffer * ARENA_BUFFER_BYTES,
					ARENA_BUFFER_BYTES, &entries);
	dictionary_give(dict);
	return stream_send(&s->stream, MESSAGE_ENTRIES, &entries, sizeof(entries));
}

/* Uses a copy of the codes, which the client cannot change. */
static bool
on_values(Session *s, size_t length)
{
	WireValues in = s->body.values;
	WireValued out = {.buffer = in.buffer};
	const char *wrong = check_values(&in, length, ARENA_BUFFER_BYTES, ARENA_BUFFERS);
	char *buffer = s->arena->memory + (size_t) in.buffer * ARENA_BUFFER_BYTES;
	size_t bytes = in.n * sizeof(uint32_t);
	uint32_t *codes;

	if (wrong == NULL && s->dictionaries[in.stored] == NULL)
		wrong = "values of a column without a dictionary";
	if (wrong)
		return session_fail(s, FAILURE_PROTOCOL, wrong);
	if (!reduce_pending(s))
		return false;
	codes = malloc(bytes);
	if (codes == NULL)
		return session_fail(s, FAILURE_MEMORY, "out of memory in the GPU server");
	memcpy(codes, buffer, bytes);
	out.n = dictionary_values(s->dictionaries[in.stored], codes, in.n, buffer + wire_align(bytes),
							  ARENA_BUFFER_BYTES - wire_align(bytes), &out.bytes);
	free(codes);
	return stream_send(&s->stream, MESSAGE_VALUED, &out, sizeof(out));
}

/*
 * Takes references to the dictionaries of the message's columns, which may be evicted before the
 * client asks for values. They are those that the client knows.
 */
static void
take_dictionaries(Session *s, const WireResident *in)
{
	give_dictionaries(s);
	for (uint32_t i = 0; i < in->nstored; i++)
	{
		Dictionary *dict =
			in->stored[i].coded ? dictionary_take(in->table, &in->stored[i], false) : NULL;

		if (dict && dictionary_id(dict) == in->known[i].id)
			s->dictionaries[i] = dict;
		else
			dictionary_give(dict);
	}
}

/*
 * Reduces rows that are cached on the devices, and sends RESIDED. row_ranges is a copy of the
 * buffer, which the client cannot change.
 */
static bool
reduce_resident(Session *s, const WireResident *in, const WireRowRange *row_ranges,
				uint64_t *lacking)
{
	WireResided resided = {.buffer = in->buffer};
	char *buffer = s->arena->memory + (size_t) in->buffer * ARENA_BUFFER_BYTES;
	size_t bytes = in->nrow_ranges * sizeof(WireRowRange);
	const char *wrong = check_row_ranges(row_ranges, in->nrow_ranges, wire_spans(in), in->nspans);
	DeviceStatus status;

	if (wrong == NULL)
		wrong = check_cells(in, (const char *) row_ranges);
	if (wrong)
		return session_fail(s, FAILURE_PROTOCOL, wrong);
	if (!place_query(s, spread_device(in, row_ranges)))
		return false;
	take_dictionaries(s, in);
	status = shared_query_resident(s->query, s->lane, in, row_ranges, lacking, &resided, &s->error);
	if (status != DEVICE_FULL && !device_ok(s, status))
		return false;
	s->taken = resided.taken;
	if (!s->taken)
	{
		give_dictionaries(s);
		for (int d = 0; d < store_devices(); d++)
			resided.refused[d] = store_refused(d, in);
		memcpy(buffer + wire_align(bytes), lacking,
			   ((size_t) in->nrow_ranges + in->nspans) * sizeof(*lacking));
	}
	return stream_hold(&s->stream, MESSAGE_RESIDED, &resided, sizeof(resided));
}

static bool
on_resident(Session *s, size_t length)
{
	const WireResident *in = &s->body.resident;
	const char *wrong =
		check_resident(in, &s->query->wire, length, ARENA_BUFFER_BYTES, ARENA_BUFFERS);
	WireRowRange *row_ranges;
	uint64_t *lacking;
	size_t bytes;
	bool ok;

	if (wrong)
		return session_fail(s, FAILURE_PROTOCOL, wrong);
	if (!reduce_pending(s))
		return false;
	bytes = wire_cells_end(in);
	row_ranges = malloc(bytes + 1);
	lacking = calloc((size_t) in->nrow_ranges + in->nspans, sizeof(*lacking));
	if (row_ranges == NULL || lacking == NULL)
		ok = session_fail(s, FAILURE_MEMORY, "out of memory in the GPU server");
	else
	{
		memcpy(row_ranges, s->arena->memory + (size_t) in->buffer * ARENA_BUFFER_BYTES, bytes);
		ok = reduce_resident(s, in, row_ranges, lacking);
	}
	free(row_ranges);
	free(lacking);
	return ok;
}

static double
ms_since(const struct timespec *then)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double) (now.tv_sec - then->tv_sec) * 1000 +
		(double) (now.tv_nsec - then->tv_nsec) / 1000000;
}

/* Waits for this connection's own batches. Fills in their bytes and times. */
static bool
settle_batches(Session *s, WireFinished *out)
{
	double ms;

	if (!reduce_pending(s) || !device_ok(s, device_ops.lane_settle(s->lane, &ms, &s->error)))
		return false;
	out->bytes_in = s->bytes_in;
	out->copy_ms = s->copy_ms;
	s->kernel_ms += ms;
	out->kernel_ms += s->kernel_ms;
	out->server_ms = s->server_ms + ms_since(&s->since);
	return true;
}

static bool
on_leave(Session *s, size_t length)
{
	WireFinished left = {0};

	if (length != 0)
		return session_fail(s, FAILURE_PROTOCOL, "leave length");
	/* a failure of another connection may have lost this connection's rows */
	return device_ok(s, shared_query_failure(s->query, &s->error)) && settle_batches(s, &left) &&
		stream_send(&s->stream, MESSAGE_LEFT, &left, sizeof(left));
}

/* Returns the layout of the requested groups, or of as many as fit into the buffer. */
static WireGroups
groups_layout(const WireQuery *q, const WireFetch *fetch)
{
	WireGroups out = {.first = fetch->first, .buffer = fetch->buffer, .ranks = fetch->ranks};
	size_t bytes = wire_fetched_bytes(q, fetch->ranks);
	size_t fits = (ARENA_BUFFER_BYTES - (q->nslots + 1) * WIRE_ALIGN) / (bytes > 0 ? bytes : 1);
	size_t at;

	out.n = fetch->max < fits ? fetch->max : fits;
	out.keys = 0;
	at = wire_align((size_t) out.n * q->key_bytes);
	for (int i = 0; i < q->nslots; i++)
	{
		out.slots[i] = at;
		at += wire_align(out.n * wire_slot_bytes(&q->slots[i], out.ranks));
	}
	return out;
}

static bool
send_groups(Session *s, const WireFetch *fetch)
{
	WireGroups groups = groups_layout(&s->query->wire, fetch);

	return device_ok(s, shared_query_fetch(s->query, s->lane, &groups, &s->error)) &&
		stream_send(&s->stream, MESSAGE_GROUPS, &groups, sizeof(groups));
}

/* Uses a copy of the positions, which the client cannot change. */
static bool
on_pick(Session *s, size_t length)
{
	WirePick in = s->body.pick;
	WirePicked picked = {in.buffer, in.n};
	const char *wrong = check_pick(&in, &s->query->wire, length, ARENA_BUFFER_BYTES, ARENA_BUFFERS);
	int32_t *places;
	bool ok;

	if (wrong)
		return session_fail(s, FAILURE_PROTOCOL, wrong);
	places = malloc(in.n * sizeof(*places));
	if (places == NULL)
		return session_fail(s, FAILURE_MEMORY, "out of memory in the GPU server");
	memcpy(places, s->arena->memory + (size_t) in.buffer * ARENA_BUFFER_BYTES,
		   in.n * sizeof(*places));
	ok = device_ok(s, shared_query_pick(s->query, s->lane, &in, places, &s->error));
	free(places);
	return ok && stream_send(&s->stream, MESSAGE_PICKED, &picked, sizeof(picked));
}

static bool
on_finish(Session *s, size_t length)
{
	WireFinish in = {0};
	WireFinished finished = {0};
	const char *wrong;

	if (length > 0)
		in = s->body.finish;
	wrong = check_finish(&in, &s->query->wire, length, ARENA_BUFFERS);
	if (wrong)
		return session_fail(s, FAILURE_PROTOCOL, wrong);
	if (in.if_taken && !s->taken)
		return true;
	s->query->limited = in.limit.count > 0 || in.limit.nconditions > 0;
	s->query->limit = in.limit;
	if (!reduce_pending(s) || !device_ok(s, shared_query_finish(s->query, &finished, &s->error)) ||
		!settle_batches(s, &finished) ||
		!stream_hold(&s->stream, MESSAGE_FINISHED, &finished, sizeof(finished)))
		return false;
	if (in.first > finished.ngroups)
		in.first = (uint32_t) finished.ngroups;
	return in.first == 0 ||
		send_groups(s, &(WireFetch){.max = in.first, .buffer = in.buffer, .ranks = in.ranks});
}

static bool
on_fetch(Session *s, size_t length)
{
	if (length != sizeof(WireFetch) || s->body.fetch.buffer >= ARENA_BUFFERS ||
		s->body.fetch.ranks > 1)
		return session_fail(s, FAILURE_PROTOCOL, "fetch");
	return send_groups(s, &s->body.fetch);
}

static bool
on_reset(Session *s, size_t length)
{
	WireFinished past = {0};

	if (length != 0 || s->query->wire.shared_id != 0)
		return session_fail(s, FAILURE_PROTOCOL, "reset");
	if (!settle_batches(s, &past))
		return false;
	s->taken = false;
	give_dictionaries(s);
	s->bytes_in = 0;
	s->copy_ms = s->kernel_ms = s->server_ms = 0;
	return device_ok(s, shared_query_reset(s->query, &s->error)) &&
		stream_send(&s->stream, MESSAGE_OPENED, NULL, 0);
}

static bool
on_message(Session *s, const MessageHeader *header)
{
	WireStatus status;

	switch (header->type)
	{
		case MESSAGE_HELLO:
			return on_hello(s, header->length);
		case MESSAGE_STATUS:
			budget_status(&status);
			status.pinned = arena_bytes();
			for (uint32_t d = 0; d < status.ndevices; d++)
				status.devices[d].host = store_host_bytes((int) d);
			return stream_send(&s->stream, MESSAGE_STATUS_REPLY, &status, sizeof(status));
		case MESSAGE_LIST:
			return on_list(s, header->length);
		case MESSAGE_OPEN:
			return s->greeted ? on_open(s, header->length) :
								session_fail(s, FAILURE_PROTOCOL, "query without a greeting");
		default:
			break;
	}
	if (s->query == NULL)
		return session_fail(s, FAILURE_PROTOCOL, "message without a query");
	switch (header->type)
	{
		case MESSAGE_STORE:
			return on_store(s, header->length);
		case MESSAGE_RESIDENT:
			return on_resident(s, header->length);
		case MESSAGE_DICTIONARY:
			return on_dictionary(s, header->length);
		case MESSAGE_VALUES:
			return on_values(s, header->length);
		case MESSAGE_CLOSE:
			return on_close(s, header->length);
		default:
			break;
	}
	if (!place_query(s, -1))
		return false;
	switch (header->type)
	{
		case MESSAGE_BATCH:
			return on_batch(s, header->length);
		case MESSAGE_LEAVE:
			return on_leave(s, header->length);
		case MESSAGE_FINISH:
			return on_finish(s, header->length);
		case MESSAGE_FETCH:
			return on_fetch(s, header->length);
		case MESSAGE_PICK:
			return on_pick(s, header->length);
		case MESSAGE_RESET:
			return on_reset(s, header->length);
		default:
			return session_fail(s, FAILURE_PROTOCOL, "no such message");
	}
}

/* ---- the thread ---- */

/*
 * Waits for the client to close the socket. Until then it may write into the arena, also after a
 * failure. Returns false if the client does not close it within END_MS.
 */
static bool
await_end(int sock)
{
	struct pollfd p = {.fd = sock, .events = POLLIN};
	struct timespec start, now;
	char ignored[4096];
	int left = END_MS;

	shutdown(sock, SHUT_WR);
	clock_gettime(CLOCK_MONOTONIC, &start);
	while (left > 0)
	{
		ssize_t n = recv(sock, ignored, sizeof(ignored), MSG_DONTWAIT);

		if (n == 0)
			return true;
		if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
			return true; /* reset by the peer */
		if (n < 0)
			poll(&p, 1, left);
		clock_gettime(CLOCK_MONOTONIC, &now);
		left =
			END_MS - (now.tv_sec - start.tv_sec) * 1000 - (now.tv_nsec - start.tv_nsec) / 1000000;
	}
	return false;
}

static void
give_unowned(Arena *arena)
{
	arena_give(arena, 0);
}

/*
 * Releases everything. If the session has an arena, waits first for the client to close the socket,
 * because the client may still write into it.
 */
static void
session_end(Session *s)
{
	watch_begin(&s->watch, s->device);
	leave_query(s);
	leave_device(s);
	watch_end(&s->watch);
	if (s->arena)
		(await_end(s->stream.sock) ? give_unowned : arena_discard)(s->arena);
	arena_disown(s->number);
	close(s->stream.sock);
	atomic_fetch_sub(s->kept ? &nkept : &nsessions, 1);
	free(s);
}

/*
 * Returns the time limit for the next message, in ms; -1: none, because cursors may rest for a long
 * time. A client closes a kept connection by itself after session_keep_ms; the limit here is for
 * clients whose timer failed.
 */
static int
receive_timeout_ms(const Session *s)
{
	return s->kept ? 2 * session_keep_ms : s->greeted ? -1 : GREET_MS;
}

static void *
session_main(void *arg)
{
	Session *s = arg;
	MessageHeader header;
	bool garbage = false;
	bool go_on = true;

	while (go_on &&
		   stream_receive(&s->stream, &header, &s->body, sizeof(s->body), receive_timeout_ms(s),
						  &garbage))
	{
		watch_begin(&s->watch, s->device);
		clock_gettime(CLOCK_MONOTONIC, &s->since);
		go_on = on_message(s, &header);
		/* the messages that use the query follow soon */
		s->stream.spins = header.type == MESSAGE_OPEN;
		s->server_ms += ms_since(&s->since);
		watch_end(&s->watch);
	}
	if (garbage)
		session_fail(s, FAILURE_PROTOCOL, "garbage on the socket");
	session_end(s);
	return NULL;
}

/*
 * Sends FAILED to a client that gets no session. Called in the thread that accepts connections,
 * which must not wait for a client.
 */
static void
refuse_connection(int sock, const char *text)
{
	struct
	{
		MessageHeader header;
		WireFailed failed;
	} message = {{GPUAGG_PROTOCOL_MAGIC, MESSAGE_FAILED, sizeof(WireFailed), 0},
				 {.failure = FAILURE_BUSY}};

	snprintf(message.failed.text, sizeof(message.failed.text), "%s", text);
	budget_count_failure(FAILURE_BUSY, text);
	(void) send(sock, &message, sizeof(message), MSG_NOSIGNAL | MSG_DONTWAIT);
	close(sock);
}

bool
thread_start(void *(*main)(void *), void *arg)
{
	pthread_attr_t attr;
	pthread_t thread;
	int err;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	err = pthread_create(&thread, &attr, main, arg);
	pthread_attr_destroy(&attr);
	errno = err;
	return err == 0;
}

void
session_start(int sock)
{
	static atomic_uint_fast64_t number;
	struct timeval patience = {.tv_sec = SEND_SECONDS};
	Session *s = calloc(1, sizeof(*s));
	bool room = atomic_fetch_add(&nsessions, 1) < MAX_SESSIONS && s != NULL;

	if (room)
	{
		s->number = atomic_fetch_add(&number, 1) + 1;
		s->stream.sock = sock;
		s->device = -1;
		setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
		if (thread_start(session_main, s))
			return;
	}
	free(s);
	atomic_fetch_sub(&nsessions, 1);
	refuse_connection(sock,
					  room ? "no thread for another session at the GPU server" :
							 "too many sessions at the GPU server");
}
