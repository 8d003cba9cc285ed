/*
 * client.c
 *	  A backend's connection to the GPU server.
 *
 * The socket does not block: every wait is on the latch as well, so that cancel, timeouts
 * and the postmaster's death are handled at once, and ends after gpuagg.server_timeout.  A
 * server that exits is an end of file here.  Nothing here raises an error for what the
 * server does: callers get false and go on without it.  Sizes of memory that the server
 * sends are checked before they are used.
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "miscadmin.h"
#include "pgstat.h"
#include "storage/fd.h"
#include "storage/latch.h"
#include "utils/memutils.h"

#include "engine_cuda/client.h"
#include "settings.h"
#include "supervisor/state.h"

/*
 * The most sessions of this process: a plan with a thousand partitions has as many custom
 * scans, and those beyond the limit use the CPU engine.
 */
#define MOST_SESSIONS 16

/* No device is called for the server's status. */
#define STATUS_PATIENCE_MS 5000

static int	nsessions;

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

void
client_close(Client *client)
{
	if (client->arena)
		munmap(client->arena, client->welcome.arena_bytes);
	client->arena = NULL;
	if (client->arena_fd >= 0)
		close(client->arena_fd);
	client->arena_fd = -1;
	if (client->sock >= 0)
	{
		close(client->sock);
		ReleaseExternalFD();
		nsessions--;
	}
	client->sock = -1;
}

static void
close_callback(void *arg)
{
	client_close(arg);
}

/* ---- sending and receiving ---- */

/* How many ms the answer may still take; -1: no limit. */
static long
time_left(Client *client)
{
	instr_time	now;

	if (client->patience == 0)
		return -1;
	INSTR_TIME_SET_CURRENT(now);
	if (!client->waiting)
		client->since = now;
	client->waiting = true;
	INSTR_TIME_SUBTRACT(now, client->since);
	return Max(client->patience - (long) INSTR_TIME_GET_MILLISEC(now), 0);
}

/* Waits for the event or the latch.  False, with the connection closed, after the time limit. */
static bool
wait_for(Client *client, int event)
{
	long		left = time_left(client);
	char		failure[64];
	int			rc;

	if (left == 0)
	{
		snprintf(failure, sizeof(failure), "the GPU server did not answer within %d ms",
				 client->patience);
		return client_fail(client, failure);
	}
	rc = WaitLatchOrSocket(MyLatch, WL_LATCH_SET | WL_EXIT_ON_PM_DEATH | event |
						   (left > 0 ? WL_TIMEOUT : 0),
						   client->sock, left, PG_WAIT_EXTENSION);
	if (rc & WL_LATCH_SET)
		ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
	return true;
}

static bool
would_block(void)
{
	return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

/* The server closed the connection: reports its last message, if that is FAILED. */
static bool
hung_up(Client *client)
{
	struct
	{
		MessageHeader header;
		WireFailed	failed;
	}			last;

	if (recv(client->sock, &last, sizeof(last), MSG_DONTWAIT) != sizeof(last) ||
		last.header.magic != GPUAGG_PROTOCOL_MAGIC || last.header.type != MESSAGE_FAILED ||
		last.failed.text[0] == '\0')
		return client_fail(client, "the GPU server ended");
	last.failed.text[sizeof(last.failed.text) - 1] = '\0';
	return client_fail(client, last.failed.text);
}

static bool
send_all(Client *client, const void *data, size_t length)
{
	const char *at = data;

	while (length > 0)
	{
		ssize_t		n = send(client->sock, at, length, MSG_NOSIGNAL);

		if (n >= 0)
		{
			at += n;
			length -= n;
		}
		else if (!would_block())
			return hung_up(client);
		else if (!wait_for(client, WL_SOCKET_WRITEABLE))
			return false;
	}
	return true;
}

/* A short message is sent in one piece, so that the server wakes up once. */
bool
client_send(Client *client, MessageType type, const void *body, size_t length)
{
	MessageHeader header = {GPUAGG_PROTOCOL_MAGIC, type, length, 0};
	char		piece[4096];

	if (client->sock < 0)
		return false;
	client->waiting = false;
	if (length > sizeof(piece) - sizeof(header))
		return send_all(client, &header, sizeof(header)) && send_all(client, body, length);
	memcpy(piece, &header, sizeof(header));
	if (length > 0)
		memcpy(piece + sizeof(header), body, length);
	return send_all(client, piece, sizeof(header) + length);
}

/*
 * Stores the descriptor that came with a message in *client at once, since whatever follows
 * may be cancelled, and the client's callback closes it then.
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

/* Receives bytes and, with `fd`, a file descriptor if one comes along. */
static bool
receive_all(Client *client, void *data, size_t length, bool fd)
{
	char	   *at = data;

	while (length > 0)
	{
		struct iovec iov = {at, length};
		union
		{
			char		space[CMSG_SPACE(sizeof(int))];
			struct cmsghdr align;
		}			control;
		struct msghdr msg = {.msg_iov = &iov,.msg_iovlen = 1};
		ssize_t		n;

		if (fd)
		{
			msg.msg_control = control.space;
			msg.msg_controllen = sizeof(control.space);
		}
		n = recvmsg(client->sock, &msg, MSG_CMSG_CLOEXEC);
		if (n < 0 && would_block())
		{
			if (!wait_for(client, WL_SOCKET_READABLE))
				return false;
			continue;
		}
		if (n <= 0)
			return client_fail(client, "the GPU server ended");
		if (fd)
			take_fd(client, &msg);
		at += n;
		length -= n;
	}
	return true;
}

static bool
receive_failed(Client *client, size_t length)
{
	WireFailed	failed;
	char		text[256];

	if (length != sizeof(failed))
		return client_fail(client, "the GPU server sent what makes no sense");
	if (!receive_all(client, &failed, sizeof(failed), false))
		return false;
	failed.text[sizeof(failed.text) - 1] = '\0';
	/* an empty text would mean that nothing failed */
	strlcpy(text, failed.text[0] != '\0' ? failed.text : "the GPU server failed without a reason", sizeof(text));
	return client_fail(client, text);
}

static bool
receive(Client *client, MessageType type, void *body, size_t length, bool fd)
{
	MessageHeader header;

	client->waiting = false;
	if (client->sock < 0 || !receive_all(client, &header, sizeof(header), fd))
		return false;
	if (header.magic == GPUAGG_PROTOCOL_MAGIC && header.type == MESSAGE_FAILED)
		return receive_failed(client, header.length);
	if (header.magic != GPUAGG_PROTOCOL_MAGIC || header.type != type || header.length != length)
		return client_fail(client, "the GPU server sent what makes no sense");
	return length == 0 || receive_all(client, body, length, false);
}

bool
client_receive(Client *client, MessageType type, void *body, size_t length)
{
	return receive(client, type, body, length, false);
}

/* ---- connecting ---- */

/* A socket whose queue of connections is full is tried again so often. */
#define DIAL_TRIES 20
#define DIAL_MS 5

/* As connect, but waits for a busy server, and for the latch. */
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
					  PG_WAIT_EXTENSION) & WL_LATCH_SET)
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

/* Is the memory as large as the server says, and sealed against shrinking, and does the rest make sense? */
static bool
arena_is_sound(const WireWelcome *welcome, int fd)
{
	struct stat st;
	int			seals = fcntl(fd, F_GET_SEALS);

	return fstat(fd, &st) == 0 && seals >= 0 && (seals & F_SEAL_SHRINK) != 0 &&
		welcome->arena_bytes <= (uint64) st.st_size &&
		welcome->buffers > 0 && welcome->buffer_bytes >= WIRE_BUFFER_BYTES &&
		welcome->buffer_bytes % WIRE_ALIGN == 0 &&
		welcome->ndevices > 0 && welcome->ndevices <= WIRE_MAX_DEVICES && welcome->place_ranges > 0 &&
		welcome->buffers <= welcome->arena_bytes / welcome->buffer_bytes;
}

static bool
greet(Client *client, const void *open, size_t length)
{
	WireHello	hello = {GPUAGG_PROTOCOL_VERSION, MyProcPid};
	WireWelcome *welcome = &client->welcome;
	void	   *arena;

	if (!client_send(client, MESSAGE_HELLO, &hello, sizeof(hello)) ||
		!client_send(client, MESSAGE_OPEN, open, length) ||
		!receive(client, MESSAGE_WELCOME, welcome, sizeof(*welcome), true))
		return false;
	if (client->arena_fd < 0)
		return client_fail(client, "the GPU server sent no memory");
	if (!arena_is_sound(welcome, client->arena_fd))
		return client_fail(client, "the GPU server sent what makes no sense");
	arena = mmap(NULL, welcome->arena_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
				 client->arena_fd, 0);
	if (arena == MAP_FAILED)
		return client_fail(client, "could not map the GPU server's memory");
	client->arena = arena;
	close(client->arena_fd);
	client->arena_fd = -1;
	welcome->device_name[sizeof(welcome->device_name) - 1] = '\0';
	return true;
}

Client *
client_create(MemoryContext cxt)
{
	Client	   *client = MemoryContextAllocZero(cxt, sizeof(Client));

	client->sock = client->arena_fd = -1;
	client->callback.func = close_callback;
	client->callback.arg = client;
	MemoryContextRegisterResetCallback(cxt, &client->callback);
	return client;
}

void
client_connect(Client *client, const void *open, size_t length)
{
	Assert(client->sock < 0);
	client->patience = gpuagg_server_timeout;
	client->failure[0] = '\0';
	/* not by client_fail: this is no error of the server */
	if (client_full())
		strlcpy(client->failure, "this process has too many sessions at the GPU server",
				sizeof(client->failure));
	else if (dial(client))
		greet(client, open, length);
}

bool
client_full(void)
{
	return nsessions >= MOST_SESSIONS;
}

/*
 * Writing to the buffers would take a page fault for each page.  Kernels before 5.14 lack
 * MADV_POPULATE_WRITE; the faults happen then.
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

/* For questions of people, which a server that hangs answers with nothing. */
static Client *
create_for_status(void)
{
	MemoryContext cxt = AllocSetContextCreate(CurrentMemoryContext, "GPU server status", ALLOCSET_SMALL_SIZES);

	Client	   *client = client_create(cxt);

	client->patience = gpuagg_server_timeout > 0 ?
		Min(gpuagg_server_timeout, STATUS_PATIENCE_MS) : STATUS_PATIENCE_MS;
	return client;
}

bool
client_status(WireStatus *status)
{
	Client	   *client = create_for_status();
	bool		ok = dial(client) && client_send(client, MESSAGE_STATUS, NULL, 0) &&
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
	Client	   *client = create_for_status();
	WireListed *listed = palloc(sizeof(WireListed));
	WireListedColumn *columns = palloc(sizeof(WireListedColumn));
	WireList	next = {0};
	bool		ok = dial(client);

	*n = 0;
	do
	{
		CHECK_FOR_INTERRUPTS();
		ok = ok && client_send(client, MESSAGE_LIST, &next, sizeof(next)) &&
			client_receive(client, MESSAGE_LISTED, listed, sizeof(*listed)) && listed->n <= WIRE_MAX_LISTED;
		if (!ok || listed->n == 0)
			break;
		columns = repalloc_huge(columns, (*n + listed->n) * sizeof(WireListedColumn));
		memcpy(columns + *n, listed->columns, listed->n * sizeof(WireListedColumn));
		*n += listed->n;
		/* tables come in the order of their numbers */
		ok = listed->next.device > next.device || (listed->next.device == next.device && listed->next.after > next.after);
		next = listed->next;
	} while (ok);
	pfree(listed);
	MemoryContextDelete(GetMemoryChunkContext(client));
	return ok ? columns : NULL;
}
