/*
 * client.c
 *	  A backend's connection to the GPU server.
 *
 * The socket does not block. Every wait also waits for the latch, so that cancel, timeouts and the
 * postmaster's death are handled at once. Every wait ends after gpuagg.server_timeout. If the
 * server exits, the client reads end of file.
 *
 * No function here raises an error for a failure of the server: callers get false and continue
 * without it. Sizes of memory that the server sends are checked before use.
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "access/xact.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/fd.h"
#include "storage/latch.h"
#include "utils/memutils.h"
#include "utils/timeout.h"

#include "common/compat.h"
#include "engine_cuda/client.h"
#include "settings.h"
#include "supervisor/state.h"

/*
 * Most sessions of this process. A plan with a thousand partitions has as many custom scans; those
 * beyond the limit use the CPU engine.
 */
#define MOST_SESSIONS 16

/* Time limit for the server's status, for which the server calls no device. */
#define STATUS_PATIENCE_MS 5000

static int nsessions;

bool
client_fail(Client *client, const char *failure)
{
	strlcpy(client->failure, failure, sizeof(client->failure));
	server_note_error(failure);
	if (client->failing)
		client->failing(client->failing_arg);
	client_close(client);
	return false;
}

/*
 * Closes the connection, but leaves the state of the query: another connection may replace this
 * one.
 */
static void
hang_up(Client *client)
{
	if (client->mapped)
		munmap(client->mapped, client->welcome.arena_bytes);
	client->arena = client->mapped = NULL;
	if (client->arena_fd >= 0)
		close(client->arena_fd);
	client->arena_fd = -1;
	if (client->waits)
		FreeWaitEventSet(client->waits);
	client->waits = NULL;
	if (client->sock >= 0)
	{
		close(client->sock);
		ReleaseExternalFD();
		nsessions--;
	}
	client->sock = -1;
	client->from = client->to = 0;
}

void
client_close(Client *client)
{
	hang_up(client);
	client->opening = client->greeting = client->reused = false;
	client->sent = 0;
	resetStringInfo(&client->out);
}

static void
close_callback(void *arg)
{
	hang_up(arg);
}

/* ---- sending and receiving ---- */

/* Returns the ms that the answer may still take; -1: no limit. */
static long
time_left(Client *client)
{
	instr_time now;

	if (client->patience == 0)
		return -1;
	INSTR_TIME_SET_CURRENT(now);
	if (!client->waiting)
		client->since = now;
	client->waiting = true;
	INSTR_TIME_SUBTRACT(now, client->since);
	return Max(client->patience - (long) INSTR_TIME_GET_MILLISEC(now), 0);
}

#define SOCKET_EVENT 2

/*
 * Creates the set of events that all waits use. A set for each wait would open a descriptor each
 * time.
 */
static void
make_waits(Client *client)
{
	client->waits = compat_create_wait_event_set(3);
	AddWaitEventToSet(client->waits, WL_EXIT_ON_PM_DEATH, PGINVALID_SOCKET, NULL, NULL);
	AddWaitEventToSet(client->waits, WL_LATCH_SET, PGINVALID_SOCKET, MyLatch, NULL);
	AddWaitEventToSet(client->waits, WL_SOCKET_READABLE, client->sock, NULL, NULL);
	client->waits_for = WL_SOCKET_READABLE;
}

/*
 * Waits for the event or the latch. After the time limit, closes the connection and returns false.
 */
static bool
wait_for(Client *client, int event)
{
	long left = time_left(client);
	WaitEvent occurred;
	char failure[64];

	if (left == 0)
	{
		snprintf(failure, sizeof(failure), "the GPU server did not answer within %d ms",
				 client->patience);
		return client_fail(client, failure);
	}
	if (client->waits == NULL)
		make_waits(client);
	if (client->waits_for != event)
		ModifyWaitEvent(client->waits, SOCKET_EVENT, event, NULL);
	client->waits_for = event;
	if (WaitEventSetWait(client->waits, left, &occurred, 1, PG_WAIT_EXTENSION) > 0 &&
		(occurred.events & WL_LATCH_SET))
		ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
	return true;
}

static bool
would_block(void)
{
	return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

/* Reads bytes that have come. Returns false if there are not enough. */
static bool
read_available(Client *client, void *data, size_t length)
{
	char *at = data;

	while (length > 0)
	{
		size_t n = Min(client->to - client->from, length);
		ssize_t got;

		memcpy(at, client->in + client->from, n);
		client->from += n;
		at += n;
		length -= n;
		if (length == 0)
			break;
		client->from = client->to = 0;
		got = recv(client->sock, client->in, sizeof(client->in), MSG_DONTWAIT);
		if (got <= 0)
			return false;
		client->to = got;
	}
	return true;
}

/*
 * Called after the server has closed the connection. Fails with the text of FAILED, if that is the
 * last message, after answers that were not waited for.
 */
static bool
fail_after_hang_up(Client *client)
{
	MessageHeader header;
	union
	{
		WireFailed failed;
		char bytes[4096];
	} body;

	while (read_available(client, &header, sizeof(header)) &&
		   header.magic == GPUAGG_PROTOCOL_MAGIC && header.length <= sizeof(body) &&
		   read_available(client, &body, header.length))
		if (header.type == MESSAGE_FAILED && header.length == sizeof(WireFailed) &&
			body.failed.text[0] != '\0')
		{
			body.failed.text[sizeof(body.failed.text) - 1] = '\0';
			return client_fail(client, body.failed.text);
		}
	return client_fail(client, "the GPU server ended");
}

static bool redial(Client *client);

/*
 * Handles a lost connection. A connection that was kept may have been lost long ago: then another
 * one replaces it, and all messages are sent again, because the server has had nothing of this
 * query.
 */
static bool
handle_lost(Client *client)
{
	return client->opening && client->reused ? redial(client) : fail_after_hang_up(client);
}

static bool
send_all(Client *client, const char *data, size_t length, size_t *sent)
{
	while (*sent < length)
	{
		ssize_t n = send(client->sock, data + *sent, length - *sent, MSG_NOSIGNAL);

		if (n >= 0)
			*sent += n;
		else if (!would_block())
			return false;
		else if (!wait_for(client, WL_SOCKET_WRITEABLE))
			return false;
	}
	return true;
}

/* Sends the queued messages. */
static bool
send_queued(Client *client)
{
	if (send_all(client, client->out.data, client->out.len, &client->sent))
		return true;
	return client->sock >= 0 && handle_lost(client);
}

bool
client_queue(Client *client, MessageType type, const void *body, size_t length)
{
	MessageHeader header = {GPUAGG_PROTOCOL_MAGIC, type, length, 0};

	if (client->sock < 0)
		return false;
	client->midway = true;
	/* until OPENED has come, the messages may have to be sent again */
	if (!client->opening && client->sent == (size_t) client->out.len)
	{
		resetStringInfo(&client->out);
		client->sent = 0;
	}
	appendBinaryStringInfo(&client->out, (char *) &header, sizeof(header));
	appendBinaryStringInfo(&client->out, body, length);
	return true;
}

bool
client_send(Client *client, MessageType type, const void *body, size_t length)
{
	client->waiting = false;
	return client_queue(client, type, body, length) && send_queued(client);
}

/*
 * Stores the descriptor that came with a message in *client at once. All later steps may be
 * cancelled, and then the client's callback closes it.
 */
static void
take_fd(Client *client, struct msghdr *msg)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c))
	{
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		if (client->arena_fd >= 0)
			close(client->arena_fd);
		memcpy(&client->arena_fd, CMSG_DATA(c), sizeof(int));
	}
}

/* Like recv(); also takes a descriptor that comes with the bytes. */
static ssize_t
receive_some(Client *client, void *to, size_t size)
{
	struct iovec iov = {to, size};
	union
	{
		char space[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	/* without padding, so that there is no room for a second descriptor */
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.space,
		.msg_controllen = CMSG_LEN(sizeof(int)),
	};
	ssize_t n = recvmsg(client->sock, &msg, MSG_CMSG_CLOEXEC);

	if (n > 0)
		take_fd(client, &msg);
	return n;
}

/* Receives bytes: first those that were read ahead. Reads ahead as many as fit into client->in. */
static bool
receive_all(Client *client, void *data, size_t length)
{
	char *at = data;

	while (length > 0)
	{
		size_t n = Min(client->to - client->from, length);
		ssize_t got;

		if (n > 0)
		{
			memcpy(at, client->in + client->from, n);
			client->from += n;
			at += n;
			length -= n;
			continue;
		}
		client->from = client->to = 0;
		got = receive_some(client, client->in, sizeof(client->in));
		if (got > 0)
			client->to = got;
		else if (got < 0 && would_block())
		{
			if (!wait_for(client, WL_SOCKET_READABLE))
				return false;
		}
		else if (at != data || !client->opening || !client->reused)
			return client_fail(client, "the GPU server ended");
		else if (!redial(client))
			return false;
	}
	return true;
}

static bool
receive_failed(Client *client, size_t length)
{
	WireFailed failed;
	char text[256];

	if (length != sizeof(failed))
		return client_fail(client, "the GPU server sent an invalid answer");
	if (!receive_all(client, &failed, sizeof(failed)))
		return false;
	failed.text[sizeof(failed.text) - 1] = '\0';
	/* an empty text would mean that nothing failed */
	strlcpy(text, failed.text[0] != '\0' ? failed.text : "the GPU server failed without a reason",
			sizeof(text));
	return client_fail(client, text);
}

static bool
receive(Client *client, MessageType type, void *body, size_t length)
{
	MessageHeader header;

	client->waiting = false;
	if (client->sock < 0 || !receive_all(client, &header, sizeof(header)))
		return false;
	if (header.magic == GPUAGG_PROTOCOL_MAGIC && header.type == MESSAGE_FAILED)
		return receive_failed(client, header.length);
	if (header.magic != GPUAGG_PROTOCOL_MAGIC || header.type != type || header.length != length)
		return client_fail(client, "the GPU server sent an invalid answer");
	return length == 0 || receive_all(client, body, length);
}

bool
client_receive(Client *client, MessageType type, void *body, size_t length)
{
	return client_opened(client) && receive(client, type, body, length);
}

/* ---- connecting ---- */

/* Number of tries, and ms between them, while the socket's queue of connections is full. */
#define DIAL_TRIES 20
#define DIAL_MS 5

/* Like connect(), but waits for a busy server, and handles the latch. */
static bool
dial_socket(Client *client, const struct sockaddr_un *address)
{
	for (int i = 0; i < DIAL_TRIES; i++)
	{
		if (connect(client->sock, (const struct sockaddr *) address, sizeof(*address)) == 0)
			return true;
		if (!would_block())
			return client_fail(client, "could not connect to the GPU server");
		if (WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, DIAL_MS,
					  PG_WAIT_EXTENSION) &
			WL_LATCH_SET)
			ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
	return client_fail(client, "the GPU server is busy");
}

static bool
dial(Client *client)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	if (!AcquireExternalFD())
		return client_fail(client, "too many open files");
	client->sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (client->sock < 0)
	{
		ReleaseExternalFD();
		return client_fail(client, "could not create a socket");
	}
	nsessions++;
	strcpy(address.sun_path, GPUAGG_SOCKET_NAME);
	return dial_socket(client, &address);
}

/* ---- a connection that is kept between queries ---- */

/*
 * A connection is kept for the next query of this process, for as long as the server allows:
 * connecting takes longer than many a query. At the server it has neither device memory nor an
 * arena. But this process has an arena mapped, whose memory stays allocated if the server ends; so
 * the time is limited.
 */
#define MOST_KEEP_MS 30000

static Client kept = {.sock = -1};
static volatile sig_atomic_t has_kept; /* cleared by expire_kept(), which closes the connection */
static bool keeps_fd;                  /* `kept` is counted as an external descriptor */

/* Closes the kept connection. Called in a signal handler. */
static void
expire_kept(void)
{
	if (!has_kept)
		return;
	munmap(kept.mapped, kept.welcome.arena_bytes);
	close(kept.sock);
	kept.mapped = NULL;
	kept.sock = -1;
	has_kept = false;
}

static TimeoutId alarm_id = MAX_TIMEOUTS;

static void
set_alarm(void)
{
	if (alarm_id == MAX_TIMEOUTS)
		alarm_id = RegisterTimeout(USER_TIMEOUT, expire_kept);
	enable_timeout_after(alarm_id, kept.welcome.keep_ms);
}

/* Sets the alarm unless it is still set. So errors do not extend the time of the connection. */
static void
set_alarm_again(void *arg)
{
	if (has_kept && !get_timeout_active(alarm_id))
		set_alarm();
}

/*
 * Sets the alarm again after an error, because core has disabled all timeouts. Core does so again
 * for each failed statement of the transaction or subtransaction, so that the alarm is also set
 * when that ends.
 */
static void
restore_alarm(void)
{
	MemoryContextCallback *at_end;

	if (!has_kept)
		return;
	set_alarm_again(NULL);
	at_end = MemoryContextAllocExtended(CurTransactionContext, sizeof(MemoryContextCallback),
										MCXT_ALLOC_NO_OOM | MCXT_ALLOC_ZERO);
	if (at_end == NULL)
		return;
	at_end->func = set_alarm_again;
	MemoryContextRegisterResetCallback(CurTransactionContext, at_end);
}

static void
after_abort(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_ABORT)
		restore_alarm();
}

static void
after_abort_sub(SubXactEvent event, SubTransactionId sub, SubTransactionId parent, void *arg)
{
	if (event == SUBXACT_EVENT_ABORT_SUB)
		restore_alarm();
}

static void
move_link(Client *to, Client *from)
{
	to->sock = from->sock;
	to->mapped = from->mapped;
	to->welcome = from->welcome;
	to->waits = from->waits;
	to->waits_for = from->waits_for;
	from->sock = -1;
	from->mapped = NULL;
	from->waits = NULL;
}

/* Releases what is left of an expired connection. */
static void
tidy_kept(void)
{
	if (has_kept || !keeps_fd)
		return;
	if (kept.waits)
		FreeWaitEventSet(kept.waits);
	kept.waits = NULL;
	ReleaseExternalFD();
	keeps_fd = false;
}

/* Moves the kept connection to the client. Returns false if there is none. */
static bool
take_kept(Client *client)
{
	bool found = has_kept;

	/* from here on the connection does not expire */
	has_kept = false;
	pg_compiler_barrier();
	if (!found || kept.sock < 0)
	{
		tidy_kept();
		return false;
	}
	move_link(client, &kept);
	keeps_fd = false;
	nsessions++;
	return true;
}

void
client_end(Client *client)
{
	static bool registered = false;
	MessageHeader header = {GPUAGG_PROTOCOL_MAGIC, MESSAGE_CLOSE, 0, 0};

	tidy_kept();
	if (client->sock < 0 || client->midway || client->opening || client->from < client->to ||
		client->arena_fd >= 0 || keeps_fd ||
		send(client->sock, &header, sizeof(header), MSG_NOSIGNAL) != sizeof(header))
	{
		client_close(client);
		return;
	}
	if (!registered)
	{
		RegisterXactCallback(after_abort, NULL);
		RegisterSubXactCallback(after_abort_sub, NULL);
	}
	registered = true;
	client->arena = NULL;
	move_link(&kept, client);
	nsessions--;
	keeps_fd = true;
	pg_compiler_barrier();
	has_kept = true;
	set_alarm();
	client_close(client);
}

/* Returns whether the server's WELCOME is valid. */
static bool
is_valid_welcome(const WireWelcome *welcome)
{
	return welcome->buffers > 0 && welcome->buffers <= WIRE_BUFFERS &&
		welcome->buffer_bytes >= WIRE_BUFFER_BYTES && welcome->buffer_bytes % WIRE_ALIGN == 0 &&
		welcome->ndevices > 0 && welcome->ndevices <= WIRE_MAX_DEVICES &&
		welcome->place_ranges > 0 &&
		welcome->buffers <= welcome->arena_bytes / welcome->buffer_bytes;
}

/*
 * Maps the arena that was received, if it is as large as the server has said, and sealed against
 * shrinking.
 */
static bool
map_arena(Client *client)
{
	struct stat st;
	int seals = fcntl(client->arena_fd, F_GET_SEALS);
	void *arena;

	if (client->mapped)
		munmap(client->mapped, client->welcome.arena_bytes);
	client->mapped = NULL;
	if (fstat(client->arena_fd, &st) != 0 || seals < 0 || (seals & F_SEAL_SHRINK) == 0 ||
		client->welcome.arena_bytes > (uint64) st.st_size)
		return client_fail(client, "the GPU server sent an invalid answer");
	arena = mmap(NULL, client->welcome.arena_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
				 client->arena_fd, 0);
	if (arena == MAP_FAILED)
		return client_fail(client, "could not map the GPU server's memory");
	client->mapped = arena;
	close(client->arena_fd);
	client->arena_fd = -1;
	return true;
}

/* Waits for the answer to HELLO, and maps the arena that comes with it. */
static bool
receive_welcome(Client *client)
{
	WireWelcome welcome;

	if (!receive(client, MESSAGE_WELCOME, &welcome, sizeof(welcome)))
		return false;
	client->greeting = false;
	welcome.device_name[sizeof(welcome.device_name) - 1] = '\0';
	if (!is_valid_welcome(&welcome))
		return client_fail(client, "the GPU server sent an invalid answer");
	welcome.keep_ms = Min(Max(welcome.keep_ms, 1), MOST_KEEP_MS);
	client->welcome = welcome;
	if (client->arena_fd < 0)
		return client_fail(client, "the GPU server sent no memory");
	return map_arena(client);
}

/* Opens another connection, and sends HELLO and then the queued messages again. */
static bool
redial(Client *client)
{
	uint32 buffers = client->welcome.buffers;
	uint32 buffer_bytes = client->welcome.buffer_bytes;
	struct
	{
		MessageHeader header;
		WireHello hello;
	} message = {{GPUAGG_PROTOCOL_MAGIC, MESSAGE_HELLO, sizeof(WireHello), 0},
				 {GPUAGG_PROTOCOL_VERSION, MyProcPid}};
	size_t sent = 0;

	hang_up(client);
	client->reused = false;
	client->sent = 0;
	if (!dial(client))
		return false;
	if (!send_all(client, (char *) &message, sizeof(message), &sent))
		return client->sock >= 0 && fail_after_hang_up(client);
	if (!send_queued(client) || !receive_welcome(client))
		return false;
	return (client->welcome.buffers == buffers && client->welcome.buffer_bytes == buffer_bytes) ||
		client_fail(client, "another GPU server has taken the place of the first one");
}

Client *
client_create(MemoryContext cxt)
{
	MemoryContext old = MemoryContextSwitchTo(cxt);
	Client *client = palloc0(sizeof(Client));

	client->sock = client->arena_fd = -1;
	initStringInfo(&client->out);
	client->callback.func = close_callback;
	client->callback.arg = client;
	MemoryContextRegisterResetCallback(cxt, &client->callback);
	MemoryContextSwitchTo(old);
	return client;
}

void
client_connect(Client *client, const void *open, size_t length)
{
	WireHello hello = {GPUAGG_PROTOCOL_VERSION, MyProcPid};

	Assert(client->sock < 0);
	client->patience = gpuagg_server_timeout;
	client->failure[0] = '\0';
	/* without client_fail(): this is not an error of the server */
	if (client_full())
	{
		strlcpy(client->failure, "this process has too many sessions at the GPU server",
				sizeof(client->failure));
		return;
	}
	client->reused = take_kept(client);
	if (!client->reused && !dial(client))
		return;
	client->opening = true;
	client->greeting = !client->reused;
	client->waiting = false;
	if ((!client->greeting || client_queue(client, MESSAGE_HELLO, &hello, sizeof(hello))) &&
		client_queue(client, MESSAGE_OPEN, open, length))
		send_queued(client);
}

bool
client_opened(Client *client)
{
	if (!client->opening)
		return true;
	if ((client->greeting && !receive_welcome(client)) ||
		!receive(client, MESSAGE_OPENED, NULL, 0) || (client->arena_fd >= 0 && !map_arena(client)))
		return false;
	client->opening = client->reused = false;
	client->arena = client->mapped;
	return true;
}

bool
client_full(void)
{
	return nsessions >= MOST_SESSIONS;
}

/*
 * Avoids a page fault for each page of the buffers. Kernels before 5.14 lack MADV_POPULATE_WRITE;
 * the page faults happen then.
 */
void
client_prepare(Client *client, size_t bytes, double buffers)
{
#ifdef MADV_POPULATE_WRITE
	for (int b = 0; b < client->welcome.buffers && b < buffers; b++)
		(void) madvise(client->arena + (size_t) b * client->welcome.buffer_bytes, bytes,
					   MADV_POPULATE_WRITE);
#endif
}

static void
end_texts(WireDevice *device)
{
	device->name[sizeof(device->name) - 1] = '\0';
	device->note[sizeof(device->note) - 1] = '\0';
}

/*
 * Returns a client for a status request. A server that hangs does not answer it within
 * STATUS_PATIENCE_MS.
 */
static Client *
create_for_status(void)
{
	MemoryContext cxt =
		AllocSetContextCreate(CurrentMemoryContext, "GPU server status", ALLOCSET_SMALL_SIZES);

	Client *client = client_create(cxt);

	client->patience = gpuagg_server_timeout > 0 ? Min(gpuagg_server_timeout, STATUS_PATIENCE_MS) :
												   STATUS_PATIENCE_MS;
	return client;
}

bool
client_status(WireStatus *status)
{
	Client *client = create_for_status();
	bool ok = dial(client) && client_send(client, MESSAGE_STATUS, NULL, 0) &&
		client_receive(client, MESSAGE_STATUS_REPLY, status, sizeof(*status)) &&
		status->ndevices <= WIRE_MAX_DEVICES && status->nskipped <= WIRE_MAX_DEVICES;
	status->last_error[sizeof(status->last_error) - 1] = '\0';
	for (int d = 0; d < WIRE_MAX_DEVICES; d++)
	{
		end_texts(&status->devices[d]);
		end_texts(&status->skipped[d]);
	}
	MemoryContextDelete(GetMemoryChunkContext(client));
	return ok;
}

WireListedColumn *
client_list(int *n)
{
	Client *client = create_for_status();
	WireListed *listed = palloc(sizeof(WireListed));
	WireListedColumn *columns = palloc(sizeof(WireListedColumn));
	WireList next = {0};
	bool ok = dial(client);

	*n = 0;
	do
	{
		CHECK_FOR_INTERRUPTS();
		ok = ok && client_send(client, MESSAGE_LIST, &next, sizeof(next)) &&
			client_receive(client, MESSAGE_LISTED, listed, sizeof(*listed)) &&
			listed->n <= WIRE_MAX_LISTED;
		if (!ok || listed->n == 0)
			break;
		columns = repalloc_huge(columns, (*n + listed->n) * sizeof(WireListedColumn));
		memcpy(columns + *n, listed->columns, listed->n * sizeof(WireListedColumn));
		*n += listed->n;
		/* tables come in the order of their ids, else the loop might not end */
		ok = listed->next.device > next.device ||
			(listed->next.device == next.device && listed->next.after > next.after);
		next = listed->next;
	} while (ok);
	pfree(listed);
	MemoryContextDelete(GetMemoryChunkContext(client));
	return ok ? columns : NULL;
}
