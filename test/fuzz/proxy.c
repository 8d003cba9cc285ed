/*
 * proxy.c
 *	  Fuzzes the GPU server's clients: a proxy, for gpuagg.server_program, that changes answers.
 *
 * It starts "gpuagg-server.real" in its own directory, with its own arguments, accepts
 * backends' connections in its place and forwards messages in both directions.  Answers of the
 * server are changed as the file "gpuagg.fuzz" in the working directory says when a connection is
 * made, "MODE SEED SHARE" (share: of answers that are changed), or not at all without it:
 *
 *		plain		changes that a client must detect: an end at any point, half a message, another
 *					type, length or magic, a failure, no arena or an invalid one, offsets and
 *					numbers of buffers out of range, a pause, bytes that come one by one.  Its
 *					query must give the right answer or a clear error
 *		any			any bytes of answers and of the arena as well.  The backend must not crash
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

typedef struct Link
{
	int client;
	int server;
	char mode[16];
	double share;
	uint64_t random;
	char *arena; /* the real one, mapped here too */
	MessageHeader header;
	char body[WIRE_MAX_BODY];
	int fd; /* came with the message, or -1 */
} Link;

static unsigned long connections;

static uint64_t
draw(Link *l)
{
	uint64_t z = (l->random += 0x9E3779B97F4A7C15u);

	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
	z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
	return z ^ (z >> 31);
}

static uint32_t
below(Link *l, uint32_t limit)
{
	return draw(l) % limit;
}

static int
socket_at(const char *path, bool listening)
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

/* The first byte of the message takes the descriptors along. */
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

/* ---- what a client must notice ---- */

/* A descriptor that is no arena. */
static int
unfit_arena(Link *l)
{
	int fd;

	if (below(l, 4) == 0)
		return open("/dev/null", O_RDWR | O_CLOEXEC);
	fd = memfd_create("unfit", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	/* large enough and not sealed, or sealed and too small */
	if (below(l, 2))
		(void) !ftruncate(fd, (off_t) WIRE_BUFFERS * WIRE_BUFFER_BYTES);
	else
	{
		(void) !ftruncate(fd, below(l, 1 << 20));
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	}
	return fd;
}

static void
spoil_welcome(Link *l)
{
	WireWelcome *w = (WireWelcome *) l->body;

	switch (below(l, 6))
	{
		case 0:
			w->buffers = below(l, 2) ? 0 : UINT32_MAX;
			break;
		case 1:
			w->buffer_bytes = below(l, WIRE_BUFFER_BYTES);
			break;
		case 2:
			w->buffer_bytes += 1 + below(l, 60);
			break;
		case 3:
			w->arena_bytes = below(l, 2) ? UINT64_MAX : w->arena_bytes + 1;
			break;
		default:
			close(l->fd);
			l->fd = below(l, 3) ? unfit_arena(l) : -1;
	}
}

static void
spoil_groups(Link *l)
{
	WireGroups *g = (WireGroups *) l->body;
	uint32_t *offset = below(l, 2) ? &g->keys : &g->slots[0];

	switch (below(l, 5))
	{
		case 4:
			g->ranks ^= 1 + below(l, 2);
			break;
		case 0:
			g->first += 1 + below(l, 1000);
			break;
		case 1:
			g->n = below(l, 2) ? 0 : UINT32_MAX - below(l, 100);
			break;
		case 2:
			*offset = UINT32_MAX - below(l, 1000);
			break;
		default:
			*offset += 1 + below(l, 63);
	}
}

/* Replaces the message by "failed", whose text may have no end. */
static void
put_failure(Link *l)
{
	WireFailed *failed = (WireFailed *) l->body;

	l->header = (MessageHeader){GPUAGG_PROTOCOL_MAGIC, MESSAGE_FAILED, sizeof(*failed), 0};
	memset(failed, below(l, 2) ? 'x' : 0, sizeof(*failed));
	failed->failure = below(l, 6);
}

/* False: the connection ends here. */
static bool
spoil_plainly(Link *l)
{
	size_t total = sizeof(MessageHeader) + l->header.length;
	char piece[512];

	switch (below(l, 9))
	{
		case 0:
			return false;
		case 1:
			memcpy(piece, &l->header, sizeof(l->header));
			memcpy(piece + sizeof(l->header), l->body,
				   l->header.length < 400 ? l->header.length : 400);
			send_all(l->client, piece, below(l, total < 400 ? total : 400));
			return false;
		case 2:
			l->header.magic ^= 1u << below(l, 32);
			break;
		case 3:
			l->header.type = (l->header.type + 1 + below(l, 100)) % 256;
			if (l->header.type == MESSAGE_FAILED)
				put_failure(l);
			break;
		case 4:
			l->header.length += below(l, 2) ? 1 + below(l, 64) : -1 - below(l, 64);
			send_all(l->client, &l->header, sizeof(l->header));
			return false;
		case 5:
			put_failure(l);
			break;
		case 6:
			usleep(1000 * below(l, 100));
			break;
		default:
			if (l->header.type == MESSAGE_WELCOME)
				spoil_welcome(l);
			else if (l->header.type == MESSAGE_GROUPS)
				spoil_groups(l);
			else if (l->header.type == MESSAGE_DONE)
				((WireDone *) l->body)->buffer = WIRE_BUFFERS + below(l, 1000);
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

/* ---- anything ---- */

static bool
spoil(Link *l)
{
	static const uint64_t values[] = {
		0, 1, 63, 64, 255, 65535, INT32_MAX, UINT32_MAX, INT64_MAX, UINT64_MAX, WIRE_BUFFER_BYTES};
	int fds[3];
	bool ok;

	for (int n = 1 + below(l, 4); n > 0 && l->header.length >= 8; n--)
	{
		uint64_t value = below(l, 3) ? values[below(l, 11)] : draw(l);

		memcpy(l->body + below(l, l->header.length / 8) * 8, &value, 1 << below(l, 4));
	}
	if (l->arena && below(l, 2))
		for (int n = below(l, 2000); n > 0; n--)
			l->arena[below(l, 1 << 16)] = draw(l);
	for (int i = 0; i < 3; i++)
		fds[i] = l->fd >= 0 ? dup(l->fd) : below(l, 10) == 0 ? unfit_arena(l) : -1;
	ok = send_fds(l->client, &l->header, sizeof(l->header), fds,
				  fds[0] < 0                   ? 0 :
					  fds[1] < 0 || fds[2] < 0 ? 1 :
												 below(l, 3) + 1) &&
		send_all(l->client, l->body, l->header.length);
	for (int i = 0; i < 3; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	return ok;
}

/* ---- a connection ---- */

/* Brings one answer to the client; false at the end. */
static bool
pass_answer(Link *l)
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
	if (l->mode[0] == '\0' || draw(l) >> 11 > l->share * 0x1p53)
		ok = send_fds(l->client, &l->header, sizeof(l->header), &l->fd, l->fd >= 0) &&
			send_all(l->client, l->body, l->header.length);
	else if (strcmp(l->mode, "any") == 0 && below(l, 4))
		ok = spoil(l);
	else
		ok = spoil_plainly(l);
	if (l->fd >= 0)
		close(l->fd);
	return ok;
}

static void
run_link(Link *l)
{
	char piece[65536];

	for (;;)
	{
		struct pollfd p[2] = {{.fd = l->client, .events = POLLIN},
							  {.fd = l->server, .events = POLLIN}};

		if (poll(p, 2, -1) < 0)
			return;
		if (p[0].revents)
		{
			ssize_t n = recv(l->client, piece, sizeof(piece), 0);

			if (n <= 0 || !send_all(l->server, piece, n))
				return;
		}
		if (p[1].revents && !pass_answer(l))
			return;
	}
}

static void *
link_main(void *arg)
{
	Link *l = arg;

	run_link(l);
	if (l->arena)
		munmap(l->arena, (size_t) WIRE_BUFFERS * WIRE_BUFFER_BYTES);
	close(l->client);
	close(l->server);
	free(l);
	return NULL;
}

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

static void
start_link(int client)
{
	Link *l = calloc(1, sizeof(*l));
	pthread_attr_t attr;
	pthread_t thread;

	l->client = client;
	l->server = socket_at(REAL_SOCKET, false);
	if (l->server < 0)
	{
		close(client);
		free(l);
		return;
	}
	read_mode(l);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&thread, &attr, link_main, l) != 0)
		abort();
	pthread_attr_destroy(&attr);
}

static void
on_child(int signal)
{
	(void) signal;
	_exit(3);
}

/* The real server, with the arguments that this program got. */
static void
start_real(int argc, char **argv)
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
	signal(SIGCHLD, on_child);
	if (fork() == 0)
	{
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() == parent)
			execv(path, args);
		_exit(127);
	}
	/* the supervisor is to see the real server's end of its pipe */
	for (int i = 1; i + 1 < argc; i++)
		if (strcmp(argv[i], "--control") == 0)
			close(atoi(argv[i + 1]));
}

int
main(int argc, char **argv)
{
	int sock = socket_at(GPUAGG_SOCKET_NAME, true);

	if (sock < 0)
		return 1;
	start_real(argc, argv);
	for (;;)
	{
		int client = accept4(sock, NULL, NULL, SOCK_CLOEXEC);

		if (client >= 0)
			start_link(client);
	}
}
