/*
 * proxy.c
 *	  Fuzzes the GPU server's clients: a proxy that changes the server's answers.
 *
 * It is installed as gpuagg.server_program. It starts "gpuagg-server.real" of its own directory
 * with its own arguments, accepts connections of backends, and forwards messages in both
 * directions.
 *
 * When a backend connects, the proxy reads the file "gpuagg.fuzz" in the working directory. Without
 * it, answers are not changed. It has one line, "MODE SEED SHARE". SHARE is the fraction of answers
 * that are changed. MODE is one of:
 *
 *		plain		changes that a client must detect: an end at any point, an incomplete message,
 *					another type, length or magic, a failure, no arena or an invalid one, offsets
 *					and numbers of buffers out of range. Also a pause, and a message in single
 *					bytes. The query must give the right answer or a clear error.
 *		any			the same, and any bytes of answers and of the arena. The backend must not crash.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "protocol.h"

#define REAL_SOCKET "gpuagg.real"

/* One connection of a backend. Each has a thread. */
typedef struct Link
{
	int client; /* socket of the backend */
	int server; /* socket of the real server */
	char mode[16];
	double share;    /* fraction of answers that are changed */
	uint64_t random; /* state of the random numbers */
	char *arena;     /* the connection's arena, mapped here as well */

	/* The answer that is being forwarded. */
	MessageHeader header;
	char body[WIRE_MAX_BODY];
	int fd; /* the descriptor that arrived with it, or -1 */
} Link;

static unsigned long connections;

/* Returns 64 random bits of the connection's sequence. */
static uint64_t
random_bits(Link *l)
{
	uint64_t z = (l->random += 0x9E3779B97F4A7C15u);

	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
	z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
	return z ^ (z >> 31);
}

/* Returns a random integer in 0 .. limit - 1. */
static uint32_t
random_below(Link *l, uint32_t limit)
{
	return random_bits(l) % limit;
}

/* Returns a socket that listens at the path or is connected to it, or -1. */
static int
open_socket(const char *path, bool listening)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int rc;

	strncpy(address.sun_path, path, sizeof(address.sun_path) - 1);
	if (listening)
		unlink(path);
	rc = listening ? bind(sock, (struct sockaddr *) &address, sizeof(address)) :
					 connect(sock, (struct sockaddr *) &address, sizeof(address));
	if (rc < 0 || (listening && listen(sock, 128) < 0))
	{
		close(sock);
		return -1;
	}
	return sock;
}

/* Sends all bytes. Returns false if the connection has ended. */
static bool
send_all(int sock, const void *data, size_t length)
{
	const char *at = data;

	while (length > 0)
	{
		ssize_t n = send(sock, at, length, MSG_NOSIGNAL);

		if (n <= 0)
			return false;
		at += n;
		length -= n;
	}
	return true;
}

/* Sends bytes, with the descriptors attached to the first one. */
static bool
send_fds(int sock, const void *data, size_t length, const int *fds, int nfds)
{
	struct iovec iov = {(void *) data, 1};
	char space[CMSG_SPACE(4 * sizeof(int))] = {0};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	if (length == 0 || nfds == 0)
		return send_all(sock, data, length);
	msg.msg_control = space;
	msg.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
	CMSG_FIRSTHDR(&msg)->cmsg_level = SOL_SOCKET;
	CMSG_FIRSTHDR(&msg)->cmsg_type = SCM_RIGHTS;
	CMSG_FIRSTHDR(&msg)->cmsg_len = CMSG_LEN(nfds * sizeof(int));
	memcpy(CMSG_DATA(CMSG_FIRSTHDR(&msg)), fds, nfds * sizeof(int));
	return sendmsg(sock, &msg, MSG_NOSIGNAL) == 1 &&
		send_all(sock, (const char *) data + 1, length - 1);
}

/* Receives exactly `length` bytes from the server, and a descriptor into l->fd. */
static bool
receive_all(Link *l, void *data, size_t length)
{
	char *at = data;

	while (length > 0)
	{
		struct iovec iov = {at, length};
		char space[CMSG_SPACE(sizeof(int))];
		struct msghdr msg = {.msg_iov = &iov,
							 .msg_iovlen = 1,
							 .msg_control = space,
							 .msg_controllen = sizeof(space)};
		ssize_t n = recvmsg(l->server, &msg, MSG_CMSG_CLOEXEC);

		if (n <= 0)
			return false;
		if (CMSG_FIRSTHDR(&msg) && l->fd < 0)
			memcpy(&l->fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(int));
		at += n;
		length -= n;
	}
	return true;
}

/* ---- changes that a client must detect ---- */

/* Returns a descriptor that a client must not accept as an arena. */
static int
make_invalid_arena(Link *l)
{
	int fd;

	if (random_below(l, 4) == 0)
		return open("/dev/null", O_RDWR | O_CLOEXEC);
	fd = memfd_create("unfit", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	/* either large enough and not sealed, or sealed and too small */
	if (random_below(l, 2))
		(void) !ftruncate(fd, (off_t) WIRE_BUFFERS * WIRE_BUFFER_BYTES);
	else
	{
		(void) !ftruncate(fd, random_below(l, 1 << 20));
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	}
	return fd;
}

/* Changes a WELCOME message so that a client must not accept it. */
static void
corrupt_welcome(Link *l)
{
	WireWelcome *w = (WireWelcome *) l->body;

	switch (random_below(l, 6))
	{
		case 0:
			w->buffers = random_below(l, 2) ? 0 : UINT32_MAX;
			break;
		case 1:
			w->buffer_bytes = random_below(l, WIRE_BUFFER_BYTES);
			break;
		case 2:
			w->buffer_bytes += 1 + random_below(l, 60);
			break;
		case 3:
			w->arena_bytes = random_below(l, 2) ? UINT64_MAX : w->arena_bytes + 1;
			break;
		default:
			close(l->fd);
			l->fd = random_below(l, 3) ? make_invalid_arena(l) : -1;
	}
}

/* Changes a GROUPS message so that a client must not accept it. */
static void
corrupt_groups(Link *l)
{
	WireGroups *g = (WireGroups *) l->body;
	uint32_t *offset = random_below(l, 2) ? &g->keys : &g->slots[0];

	switch (random_below(l, 5))
	{
		case 4:
			g->ranks ^= 1 + random_below(l, 2);
			break;
		case 0:
			g->first += 1 + random_below(l, 1000);
			break;
		case 1:
			g->n = random_below(l, 2) ? 0 : UINT32_MAX - random_below(l, 100);
			break;
		case 2:
			*offset = UINT32_MAX - random_below(l, 1000);
			break;
		default:
			*offset += 1 + random_below(l, 63);
	}
}

/* Replaces the message by FAILED. Its text may lack the terminating zero. */
static void
replace_by_failure(Link *l)
{
	WireFailed *failed = (WireFailed *) l->body;

	l->header = (MessageHeader){GPUAGG_PROTOCOL_MAGIC, MESSAGE_FAILED, sizeof(*failed), 0};
	memset(failed, random_below(l, 2) ? 'x' : 0, sizeof(*failed));
	failed->failure = random_below(l, 6);
}

/*
 * Sends the answer with a change that a client must detect. Returns false if the connection must
 * end.
 */
static bool
send_detectable_change(Link *l)
{
	size_t total = sizeof(MessageHeader) + l->header.length;
	char chunk[512];

	switch (random_below(l, 9))
	{
		case 0:
			return false;
		case 1:
			memcpy(chunk, &l->header, sizeof(l->header));
			memcpy(chunk + sizeof(l->header), l->body,
				   l->header.length < 400 ? l->header.length : 400);
			send_all(l->client, chunk, random_below(l, total < 400 ? total : 400));
			return false;
		case 2:
			l->header.magic ^= 1u << random_below(l, 32);
			break;
		case 3:
			l->header.type = (l->header.type + 1 + random_below(l, 100)) % 256;
			if (l->header.type == MESSAGE_FAILED)
				replace_by_failure(l);
			break;
		case 4:
			l->header.length +=
				random_below(l, 2) ? 1 + random_below(l, 64) : -1 - random_below(l, 64);
			send_all(l->client, &l->header, sizeof(l->header));
			return false;
		case 5:
			replace_by_failure(l);
			break;
		case 6:
			usleep(1000 * random_below(l, 100));
			break;
		default:
			if (l->header.type == MESSAGE_WELCOME)
				corrupt_welcome(l);
			else if (l->header.type == MESSAGE_GROUPS)
				corrupt_groups(l);
			else if (l->header.type == MESSAGE_DONE)
				((WireDone *) l->body)->buffer = WIRE_BUFFERS + random_below(l, 1000);
			else
				for (size_t i = 0; i < sizeof(MessageHeader); i++)
				{
					if (!send_all(l->client, (char *) &l->header + i, 1))
						return false;
					usleep(10);
					if (i == sizeof(MessageHeader) - 1)
						return send_all(l->client, l->body, l->header.length);
				}
	}
	return send_fds(l->client, &l->header, sizeof(l->header), &l->fd, l->fd >= 0) &&
		send_all(l->client, l->body, l->header.length);
}

/* ---- any changes ---- */

/* Sends the answer with any bytes changed, in its body and in the arena. */
static bool
send_any_change(Link *l)
{
	static const uint64_t values[] = {
		0, 1, 63, 64, 255, 65535, INT32_MAX, UINT32_MAX, INT64_MAX, UINT64_MAX, WIRE_BUFFER_BYTES};
	int fds[3];
	bool ok;

	for (int n = 1 + random_below(l, 4); n > 0 && l->header.length >= 8; n--)
	{
		uint64_t value = random_below(l, 3) ? values[random_below(l, 11)] : random_bits(l);

		memcpy(l->body + random_below(l, l->header.length / 8) * 8, &value,
			   1 << random_below(l, 4));
	}
	if (l->arena && random_below(l, 2))
		for (int n = random_below(l, 2000); n > 0; n--)
			l->arena[random_below(l, 2) * WIRE_BUFFER_BYTES + random_below(l, 1 << 16)] =
				random_bits(l);
	for (int i = 0; i < 3; i++)
		fds[i] = l->fd >= 0 ? dup(l->fd) : random_below(l, 10) == 0 ? make_invalid_arena(l) : -1;
	ok = send_fds(l->client, &l->header, sizeof(l->header), fds,
				  fds[0] < 0                   ? 0 :
					  fds[1] < 0 || fds[2] < 0 ? 1 :
												 random_below(l, 3) + 1) &&
		send_all(l->client, l->body, l->header.length);
	for (int i = 0; i < 3; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	return ok;
}

/* ---- a connection ---- */

/* Forwards one answer to the client, changed or not. Returns false if the connection must end. */
static bool
forward_answer(Link *l)
{
	bool ok;

	l->fd = -1;
	if (!receive_all(l, &l->header, sizeof(l->header)) || l->header.length > sizeof(l->body) ||
		!receive_all(l, l->body, l->header.length))
		return false;
	if (l->fd >= 0 && l->arena == NULL)
	{
		l->arena = mmap(NULL, (size_t) WIRE_BUFFERS * WIRE_BUFFER_BYTES, PROT_READ | PROT_WRITE,
						MAP_SHARED, l->fd, 0);
		if (l->arena == MAP_FAILED)
			l->arena = NULL;
	}
	if (l->mode[0] == '\0' || random_bits(l) >> 11 > l->share * 0x1p53)
		ok = send_fds(l->client, &l->header, sizeof(l->header), &l->fd, l->fd >= 0) &&
			send_all(l->client, l->body, l->header.length);
	else if (strcmp(l->mode, "any") == 0 && random_below(l, 4))
		ok = send_any_change(l);
	else
		ok = send_detectable_change(l);
	if (l->fd >= 0)
		close(l->fd);
	return ok;
}

/* Forwards messages in both directions until the connection ends. */
static void
forward_messages(Link *l)
{
	char chunk[65536];

	for (;;)
	{
		struct pollfd p[2] = {{.fd = l->client, .events = POLLIN},
							  {.fd = l->server, .events = POLLIN}};

		if (poll(p, 2, -1) < 0)
			return;
		if (p[0].revents)
		{
			ssize_t n = recv(l->client, chunk, sizeof(chunk), 0);

			if (n <= 0 || !send_all(l->server, chunk, n))
				return;
		}
		if (p[1].revents && !forward_answer(l))
			return;
	}
}

/* Thread of a connection: forwards its messages, then closes it. */
static void *
link_thread_main(void *arg)
{
	Link *l = arg;

	forward_messages(l);
	if (l->arena)
		munmap(l->arena, (size_t) WIRE_BUFFERS * WIRE_BUFFER_BYTES);
	close(l->client);
	close(l->server);
	free(l);
	return NULL;
}

/* Reads the file gpuagg.fuzz, and seeds the random numbers of the connection. */
static void
read_mode(Link *l)
{
	FILE *f = fopen("gpuagg.fuzz", "r");
	unsigned long seed = 0;

	if (f == NULL)
		return;
	if (fscanf(f, "%15s %lu %lf", l->mode, &seed, &l->share) != 3)
		l->mode[0] = '\0';
	fclose(f);
	l->random = seed * 1000003 + connections++;
}

/* Connects a new client to the real server, in a thread of its own. */
static void
start_link(int client)
{
	Link *l = calloc(1, sizeof(*l));
	pthread_attr_t attr;
	pthread_t thread;

	l->client = client;
	l->server = open_socket(REAL_SOCKET, false);
	if (l->server < 0)
	{
		close(client);
		free(l);
		return;
	}
	read_mode(l);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&thread, &attr, link_thread_main, l) != 0)
		abort();
	pthread_attr_destroy(&attr);
}

/* Handles SIGCHLD: the real server has ended. */
static void
exit_with_server(int signal)
{
	(void) signal;
	_exit(3);
}

/* Starts the real server with this program's arguments and another socket. */
static void
start_real_server(int argc, char **argv)
{
	char path[4096];
	char *args[argc + 3];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 32);
	pid_t parent = getpid();

	if (n < 0)
		exit(1);
	strcpy(path + n, ".real");
	memcpy(args, argv, argc * sizeof(char *));
	args[argc] = "--socket";
	args[argc + 1] = REAL_SOCKET;
	args[argc + 2] = NULL;
	signal(SIGCHLD, exit_with_server);
	if (fork() == 0)
	{
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() == parent)
			execv(path, args);
		_exit(127);
	}
	/* only the real server may hold its end of the supervisor's pipe */
	for (int i = 1; i + 1 < argc; i++)
		if (strcmp(argv[i], "--control") == 0)
			close(atoi(argv[i + 1]));
}

int
main(int argc, char **argv)
{
	int sock = open_socket(GPUAGG_SOCKET_NAME, true);

	if (sock < 0)
		return 1;
	start_real_server(argc, argv);
	for (;;)
	{
		int client = accept4(sock, NULL, NULL, SOCK_CLOEXEC);

		if (client >= 0)
			start_link(client);
	}
}
