/*
 * session.c
 *	  A thread for each connection: messages to device calls.
 *
 * A batch's copy is started as soon as its message is read, and reduced only
 * when the next message is there or none is waiting: so the copy of one batch
 * runs while the one before it is reduced.
 *
 * Whatever a session holds (arena, lane, its part in a query) is released in
 * session_end(), which every way out of the thread passes.
 */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "server.h"

#define MAX_SESSIONS 512

/* A query and who takes part in it.  The list, refs and token: under list_lock. */
typedef struct SharedQuery
{
	struct SharedQuery *next;
	uint64_t	token;
	int			refs;			/* connections that hold it */
	int			device;
	WireQuery	wire;
	double	   *thresholds;

	pthread_mutex_t lock;		/* the rest */
	Query	   *query;
	bool		broken;			/* a participant was lost with its rows */
	uint64_t	bytes_in;
	double		copy_ms;
} SharedQuery;

typedef struct Session
{
	int			sock;
	int			device;			/* -1: not attached */
	Arena	   *arena;
	Lane	   *lane;
	SharedQuery *shared;
	bool		unfinished;		/* has given rows and not yet left properly */
	bool		pending;		/* `batch` was copied and waits for its reduction */
	WireBatch	batch;
	union
	{
		WireHello	hello;
		WireQuery	query;
		WireBatch	batch;
		WireFetch	fetch;
		char		bytes[sizeof(WireQuery) + WIRE_MAX_THRESHOLDS * sizeof(double)];
	}			body;
} Session;

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static SharedQuery *queries;
static int	nsessions;

/* ---- failing ---- */

static bool
fail(Session *s, WireFailure failure, const char *text)
{
	WireFailed	failed = {.failure = failure};

	snprintf(failed.text, sizeof(failed.text), "%.250s", text);
	budget_count_failure(failure, text);
	wire_send(s->sock, MESSAGE_FAILED, &failed, sizeof(failed));
	return false;
}

/* Always false, for "return device_fail(...)". */
static bool
device_fail(Session *s, DeviceStatus status, const DeviceError *error)
{
	switch (status)
	{
		case DEVICE_UNSUPPORTED:
			return fail(s, FAILURE_UNSUPPORTED, error->text);
		case DEVICE_NO_MEMORY:
			return fail(s, FAILURE_MEMORY, error->text);
		default:
			fail(s, FAILURE_DEVICE, error->text);
			server_abandon(error->text);
	}
}

/* ---- queries ---- */

static void
query_release(SharedQuery *q)
{
	SharedQuery **at;
	bool		last;

	pthread_mutex_lock(&list_lock);
	last = --q->refs == 0;
	if (last)
	{
		for (at = &queries; *at != NULL; at = &(*at)->next)
			if (*at == q)
			{
				*at = q->next;
				break;
			}
	}
	pthread_mutex_unlock(&list_lock);
	if (!last)
		return;
	if (q->query)
		device_ops.query_close(q->query);
	pthread_mutex_destroy(&q->lock);
	free(q->thresholds);
	free(q);
}

static void
leave_query(Session *s)
{
	SharedQuery *q = s->shared;

	if (q == NULL)
		return;
	if (s->unfinished)
	{
		pthread_mutex_lock(&q->lock);
		q->broken = true;
		pthread_mutex_unlock(&q->lock);
	}
	s->shared = NULL;
	s->unfinished = s->pending = false;
	query_release(q);
}

static void
drop_lane(Session *s)
{
	if (s->lane)
		device_ops.lane_close(s->lane);
	s->lane = NULL;
	if (s->device >= 0)
		budget_detach(s->device);
	s->device = -1;
}

/* The open query of this token, with one more reference, or NULL. */
static SharedQuery *
query_find(uint64_t token, const WireQuery *wire)
{
	SharedQuery *q = NULL;

	if (token == 0)
		return NULL;
	for (q = queries; q != NULL; q = q->next)
		if (q->token == token && memcmp(&q->wire, wire, sizeof(*wire)) == 0)
		{
			q->refs++;
			break;
		}
	return q;
}

static SharedQuery *
query_make(const WireQuery *wire, int device)
{
	SharedQuery *q = calloc(1, sizeof(*q));
	size_t		bytes = wire->nthresholds * sizeof(double);

	if (q == NULL || (q->thresholds = malloc(bytes + 1)) == NULL)
	{
		free(q);
		return NULL;
	}
	memcpy(q->thresholds, wire + 1, bytes);
	q->wire = *wire;
	q->token = wire->token;
	q->device = device;
	q->refs = 1;
	pthread_mutex_init(&q->lock, NULL);
	return q;
}

/*
 * Joins the query or opens it.  A new query is put on the list with its lock
 * held, so that who joins waits until the device has opened it.
 */
static bool
enter_query(Session *s, bool *joined)
{
	WireQuery  *wire = &s->body.query;
	DeviceStatus status = DEVICE_OK;
	DeviceError error = {""};
	SharedQuery *q;

	pthread_mutex_lock(&list_lock);
	q = query_find(wire->token, wire);
	*joined = q != NULL;
	if (q == NULL && (q = query_make(wire, s->device)) != NULL)
	{
		pthread_mutex_lock(&q->lock);
		q->next = queries;
		queries = q;
	}
	pthread_mutex_unlock(&list_lock);
	if (q == NULL)
		return fail(s, FAILURE_MEMORY, "out of memory");
	s->shared = q;
	if (*joined)
	{
		pthread_mutex_lock(&q->lock);
		if (q->query == NULL)
		{
			status = DEVICE_NO_MEMORY;
			snprintf(error.text, sizeof(error.text), "the query that was joined could not be opened");
		}
	}
	else
	{
		budget_count_query();
		status = device_ops.query_open(&q->query, q->device, &q->wire, q->thresholds, &error);
	}
	pthread_mutex_unlock(&q->lock);
	return status == DEVICE_OK ? true : device_fail(s, status, &error);
}

static bool
open_lane(Session *s)
{
	DeviceError error = {""};
	DeviceStatus status;

	/* a joined query may live on another device than this connection was given */
	if (s->lane && s->device == s->shared->device)
		return true;
	if (s->lane)
		device_ops.lane_close(s->lane);
	s->lane = NULL;
	budget_move(s->device, s->shared->device);
	s->device = s->shared->device;
	status = device_ops.lane_open(&s->lane, s->shared->device, s->arena->memory,
								  ARENA_BUFFER_BYTES, ARENA_BUFFERS, &error);
	return status == DEVICE_OK ? true : device_fail(s, status, &error);
}

/* ---- messages ---- */

static bool
on_hello(Session *s, size_t length)
{
	WireWelcome welcome = {.version = GPUAGG_PROTOCOL_VERSION};
	DeviceError error = {""};

	if (length != sizeof(WireHello) || s->body.hello.version != GPUAGG_PROTOCOL_VERSION ||
		s->arena != NULL)
		return fail(s, FAILURE_PROTOCOL, "greeting of another version");
	s->arena = arena_take(&error);
	if (s->arena == NULL)
		return fail(s, FAILURE_MEMORY, error.text);
	s->device = budget_attach();
	welcome.device = s->device;
	welcome.arena_bytes = s->arena->bytes;
	welcome.buffer_bytes = ARENA_BUFFER_BYTES;
	welcome.buffers = ARENA_BUFFERS;
	memcpy(welcome.device_name, budget_device(s->device)->name, sizeof(welcome.device_name));
	return wire_send_fd(s->sock, MESSAGE_WELCOME, &welcome, sizeof(welcome), s->arena->fd);
}

static bool
on_open(Session *s, size_t length)
{
	const char *wrong = check_query(&s->body.query, length);
	WireOpened	opened = {0};
	bool		joined;

	if (wrong)
		return fail(s, FAILURE_PROTOCOL, wrong);
	leave_query(s);
	if (!enter_query(s, &joined) || !open_lane(s))
		return false;
	s->unfinished = true;
	opened.joined = joined;
	return wire_send(s->sock, MESSAGE_OPENED, &opened, sizeof(opened));
}

static bool
reduce_pending(Session *s)
{
	SharedQuery *q = s->shared;
	DeviceError error = {""};
	DeviceStatus status;

	if (!s->pending)
		return true;
	s->pending = false;
	pthread_mutex_lock(&q->lock);
	status = device_ops.reduce(q->query, s->lane, &s->batch, &error);
	pthread_mutex_unlock(&q->lock);
	return status == DEVICE_OK ? true : device_fail(s, status, &error);
}

static bool
message_waits(int sock)
{
	struct pollfd p = {.fd = sock,.events = POLLIN};

	return poll(&p, 1, 0) > 0;
}

static bool
on_batch(Session *s, size_t length)
{
	WireBatch	batch = s->body.batch;
	SharedQuery *q = s->shared;
	const char *wrong = check_batch(&batch, &q->wire, length, ARENA_BUFFER_BYTES, ARENA_BUFFERS);
	WireDone	done = {batch.buffer};
	DeviceError error = {""};
	DeviceStatus status;
	double		ms = 0;
	size_t		bytes = 0;

	if (wrong)
		return fail(s, FAILURE_PROTOCOL, wrong);
	if (s->pending && s->batch.buffer == batch.buffer && !reduce_pending(s))
		return false;
	status = device_ops.copy(s->lane, &batch, &bytes, &error);
	if (status != DEVICE_OK)
		return device_fail(s, status, &error);
	if (!reduce_pending(s))
		return false;
	status = device_ops.copy_wait(s->lane, batch.buffer, &ms, &error);
	if (status != DEVICE_OK)
		return device_fail(s, status, &error);
	if (!wire_send(s->sock, MESSAGE_DONE, &done, sizeof(done)))
		return false;
	s->batch = batch;
	s->pending = true;
	pthread_mutex_lock(&q->lock);
	q->bytes_in += bytes;
	q->copy_ms += ms;
	pthread_mutex_unlock(&q->lock);
	return message_waits(s->sock) ? true : reduce_pending(s);
}

static bool
on_finish(Session *s, size_t length)
{
	SharedQuery *q = s->shared;
	WireFinished finished = {0};
	DeviceError error = {""};
	DeviceStatus status;
	bool		broken;

	if (length != 0)
		return fail(s, FAILURE_PROTOCOL, "finish length");
	if (!reduce_pending(s))
		return false;
	pthread_mutex_lock(&q->lock);
	broken = q->broken;
	status = broken ? DEVICE_OK : device_ops.finish(q->query, &finished, &error);
	finished.bytes_in = q->bytes_in;
	finished.copy_ms = q->copy_ms;
	pthread_mutex_unlock(&q->lock);
	if (broken)
		return fail(s, FAILURE_DEVICE, "another participant of the query was lost");
	if (status != DEVICE_OK)
		return device_fail(s, status, &error);
	s->unfinished = false;
	return wire_send(s->sock, MESSAGE_FINISHED, &finished, sizeof(finished));
}

static bool
on_detach(Session *s, size_t length)
{
	SharedQuery *q = s->shared;
	DeviceError error = {""};
	DeviceStatus status;

	if (length != 0)
		return fail(s, FAILURE_PROTOCOL, "detach length");
	if (!reduce_pending(s))
		return false;
	pthread_mutex_lock(&q->lock);
	status = device_ops.sync(q->query, &error);
	pthread_mutex_unlock(&q->lock);
	if (status != DEVICE_OK)
		return device_fail(s, status, &error);
	/* stays a holder until it closes, so that the query outlives the gap to the next one */
	s->unfinished = false;
	return wire_send(s->sock, MESSAGE_DETACHED, NULL, 0);
}

/* Lays out a chunk of groups; `max` lowered to what fits a buffer. */
static WireGroups
groups_layout(const WireQuery *q, const WireFetch *fetch)
{
	WireGroups	out = {.first = fetch->first,.buffer = fetch->buffer};
	size_t		fits = (ARENA_BUFFER_BYTES - (q->nslots + 1) * WIRE_ALIGN) /
		(wire_group_bytes(q) > 0 ? wire_group_bytes(q) : 1);
	size_t		at;

	out.n = fetch->max < fits ? fetch->max : fits;
	out.keys = 0;
	at = wire_align((size_t) out.n * q->key_bytes);
	for (int i = 0; i < q->nslots; i++)
	{
		out.slots[i] = at;
		at += wire_align((size_t) out.n * q->slots[i].width *
						 gpuagg_monoids[q->slots[i].monoid].state_size);
	}
	return out;
}

static bool
on_fetch(Session *s, size_t length)
{
	SharedQuery *q = s->shared;
	WireGroups	groups;
	DeviceError error = {""};
	DeviceStatus status;

	if (length != sizeof(WireFetch) || s->body.fetch.buffer >= ARENA_BUFFERS || s->unfinished)
		return fail(s, FAILURE_PROTOCOL, "fetch");
	groups = groups_layout(&q->wire, &s->body.fetch);
	pthread_mutex_lock(&q->lock);
	status = device_ops.fetch(q->query, s->lane, &groups, &error);
	pthread_mutex_unlock(&q->lock);
	if (status != DEVICE_OK)
		return device_fail(s, status, &error);
	return wire_send(s->sock, MESSAGE_GROUPS, &groups, sizeof(groups));
}

static bool
on_reset(Session *s, size_t length)
{
	SharedQuery *q = s->shared;
	WireOpened	opened = {0};
	DeviceError error = {""};
	DeviceStatus status;

	if (length != 0 || q->token != 0)
		return fail(s, FAILURE_PROTOCOL, "reset");
	s->pending = false;
	pthread_mutex_lock(&q->lock);
	q->bytes_in = 0;
	q->copy_ms = 0;
	status = device_ops.reset(q->query, &error);
	pthread_mutex_unlock(&q->lock);
	if (status != DEVICE_OK)
		return device_fail(s, status, &error);
	s->unfinished = true;
	return wire_send(s->sock, MESSAGE_OPENED, &opened, sizeof(opened));
}

static bool
on_message(Session *s, const MessageHeader *header)
{
	WireStatus	status;

	switch (header->type)
	{
		case MESSAGE_HELLO:
			return on_hello(s, header->length);
		case MESSAGE_STATUS:
			budget_status(&status);
			return wire_send(s->sock, MESSAGE_STATUS_REPLY, &status, sizeof(status));
		case MESSAGE_OPEN:
			return s->arena ? on_open(s, header->length)
				: fail(s, FAILURE_PROTOCOL, "query without a greeting");
		default:
			break;
	}
	if (s->shared == NULL)
		return fail(s, FAILURE_PROTOCOL, "message without a query");
	switch (header->type)
	{
		case MESSAGE_BATCH:
			return s->unfinished ? on_batch(s, header->length)
				: fail(s, FAILURE_PROTOCOL, "batch after the end");
		case MESSAGE_FINISH:
			return on_finish(s, header->length);
		case MESSAGE_FETCH:
			return on_fetch(s, header->length);
		case MESSAGE_DETACH:
			return on_detach(s, header->length);
		case MESSAGE_RESET:
			return on_reset(s, header->length);
		default:
			return fail(s, FAILURE_PROTOCOL, "no such message");
	}
}

/* ---- the thread ---- */

/*
 * After a failure the client may still be sending, and writing into the arena:
 * its end of file says that it has unmapped it.
 */
static void
await_end(int sock)
{
	char		dust[4096];

	shutdown(sock, SHUT_WR);
	while (recv(sock, dust, sizeof(dust), 0) > 0)
		;
}

static void
session_end(Session *s)
{
	leave_query(s);
	drop_lane(s);
	await_end(s->sock);
	if (s->arena)
		arena_give(s->arena);
	close(s->sock);
	free(s);
	pthread_mutex_lock(&list_lock);
	nsessions--;
	pthread_mutex_unlock(&list_lock);
}

static void *
session_main(void *arg)
{
	Session    *s = arg;
	MessageHeader header;
	bool		garbage = false;

	while (wire_receive(s->sock, &header, &s->body, sizeof(s->body), &garbage))
		if (!on_message(s, &header))
			break;
	if (garbage)
		fail(s, FAILURE_PROTOCOL, "garbage on the socket");
	session_end(s);
	return NULL;
}

void
session_start(int sock)
{
	Session    *s = calloc(1, sizeof(*s));
	pthread_attr_t attr;
	pthread_t	thread;
	bool		room;

	pthread_mutex_lock(&list_lock);
	room = s != NULL && nsessions < MAX_SESSIONS;
	nsessions += room;
	pthread_mutex_unlock(&list_lock);
	if (!room)
	{
		free(s);
		close(sock);
		budget_count_failure(FAILURE_BUSY, "too many sessions");
		return;
	}
	s->sock = sock;
	s->device = -1;
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&thread, &attr, session_main, s) != 0)
		session_end(s);
	pthread_attr_destroy(&attr);
}
