/*
 * main.c
 *	  gpuagg-server: the process that owns the GPUs.
 *
 *	gpuagg-server [--devices LIST] [--memory-limit BYTES] [--control FD] [--socket PATH]
 *
 * Started by the supervisor in the data directory, with a socket pair as
 * --control: the server says over it that it is ready, or why it cannot be, and
 * takes settings from it.  End of file there means that the supervisor is gone.
 * Without --control it runs by hand, for debuggers, and logs to standard error.
 *
 * Exit status: 0 when told to stop or when no device can be used (said over
 * the pipe), anything else is a failure after which the supervisor starts it
 * again.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "server.h"

typedef struct Options
{
	const char *devices;
	const char *socket;
	uint64_t	memory_limit;
} Options;

static int	control = -1;
static pthread_mutex_t control_lock = PTHREAD_MUTEX_INITIALIZER;

static void
tell(MessageType type, const void *body, size_t length)
{
	pthread_mutex_lock(&control_lock);
	if (control >= 0)
		wire_send(control, type, body, length);
	else if (type == MESSAGE_LOG || type == MESSAGE_UNAVAILABLE)
		fprintf(stderr, "gpuagg-server: %.*s\n", (int) length, (const char *) body);
	pthread_mutex_unlock(&control_lock);
}

void
server_log(const char *format,...)
{
	char		text[512];
	va_list		args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	tell(MESSAGE_LOG, text, strlen(text));
}

void
server_abandon(const char *reason)
{
	server_log("ending because of a device error: %s", reason);
	_exit(2);
}

static Options
read_options(int argc, char **argv)
{
	Options		options = {"all", GPUAGG_SOCKET_NAME, 0};

	for (int i = 1; i < argc; i += 2)
	{
		if (i + 1 >= argc)
		{
			fprintf(stderr, "gpuagg-server: %s needs a value\n", argv[i]);
			exit(1);
		}
		if (strcmp(argv[i], "--devices") == 0)
			options.devices = argv[i + 1];
		else if (strcmp(argv[i], "--socket") == 0)
			options.socket = argv[i + 1];
		else if (strcmp(argv[i], "--memory-limit") == 0)
			options.memory_limit = strtoull(argv[i + 1], NULL, 10);
		else if (strcmp(argv[i], "--control") == 0)
			control = atoi(argv[i + 1]);
		else
		{
			fprintf(stderr, "gpuagg-server: unknown option %s\n", argv[i]);
			exit(1);
		}
	}
	return options;
}

/* A socket that only this user may connect to. */
static int
listen_at(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int			sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	mode_t		mask;
	bool		ok;

	if (sock < 0 || strlen(path) >= sizeof(address.sun_path))
		return -1;
	strcpy(address.sun_path, path);
	unlink(path);
	mask = umask(0177);
	ok = bind(sock, (struct sockaddr *) &address, sizeof(address)) == 0;
	umask(mask);
	if (!ok || listen(sock, 128) < 0)
	{
		close(sock);
		return -1;
	}
	return sock;
}

/* False when the supervisor is gone. */
static bool
on_control(void)
{
	MessageHeader header;
	WireSettings settings;
	bool		garbage;

	if (!wire_receive(control, &header, &settings, sizeof(settings), &garbage))
		return false;
	if (header.type == MESSAGE_SETTINGS && header.length == sizeof(settings))
		budget_set_limit(settings.memory_limit);
	return true;
}

static void
serve(int sock)
{
	for (;;)
	{
		struct pollfd p[2] = {{.fd = sock,.events = POLLIN}, {.fd = control,.events = POLLIN}};

		int			n = poll(p, 2, arena_idle_seconds * 1000 / 4);

		if (n < 0)
		{
			if (errno == EINTR)
				continue;
			return;
		}
		if (n == 0)
			arena_trim();
		if (p[1].revents && !on_control())
			return;
		if (p[0].revents)
		{
			int			client = accept4(sock, NULL, NULL, SOCK_CLOEXEC);

			if (client >= 0)
				session_start(client);
			else if (errno == EMFILE || errno == ENFILE)
				usleep(10000);
		}
	}
}

/* One row through one query: count(*). */
static DeviceStatus
run_once(Lane *lane, int device, DeviceError *error)
{
	WireQuery	q = {.nslots = 1};
	WireBatch	batch = {.nrows = 1};
	WireFinished finished = {0};
	Query	   *query = NULL;
	DeviceStatus status;
	size_t		bytes;

	q.slots[0].monoid = MONOID_COUNT;
	q.slots[0].col[0] = q.slots[0].col[1] = q.slots[0].filter = -1;
	q.slots[0].width = 1;
	status = device_ops.query_open(&query, device, &q, NULL, error);
	if (status == DEVICE_OK)
		status = device_ops.copy(lane, &batch, &bytes, error);
	if (status == DEVICE_OK)
		status = device_ops.reduce(query, lane, &batch, error);
	if (status == DEVICE_OK)
		status = device_ops.finish(query, &finished, error);
	if (query)
		device_ops.query_close(query);
	return status;
}

/*
 * Whatever a device does late (loading kernels, growing its pool) it does
 * here, not in the first query.
 */
static bool
warm_up(const WireStatus *devices, DeviceError *error)
{
	Arena	   *arena = arena_take(error);
	DeviceStatus status = DEVICE_OK;

	if (arena == NULL)
		return false;
	for (uint32_t d = 0; d < devices->ndevices && status == DEVICE_OK; d++)
	{
		Lane	   *lane = NULL;

		status = device_ops.lane_open(&lane, d, arena->memory, ARENA_BUFFER_BYTES, ARENA_BUFFERS,
									  error);
		if (status == DEVICE_OK)
			status = run_once(lane, d, error);
		if (lane)
			device_ops.lane_close(lane);
	}
	arena_give(arena);
	/* a memory limit too low for this, say, is the queries' trouble */
	return status != DEVICE_LOST;
}

int
main(int argc, char **argv)
{
	Options		options = read_options(argc, argv);
	WireStatus	status = {0};
	DeviceError error = {""};
	DeviceStatus started;
	int			sock;

	signal(SIGPIPE, SIG_IGN);
	started = device_ops.start(options.devices, &status, &error);
	if (started != DEVICE_OK)
	{
		tell(started == DEVICE_UNSUPPORTED ? MESSAGE_UNAVAILABLE : MESSAGE_LOG, error.text,
			 strlen(error.text));
		return started == DEVICE_UNSUPPORTED ? 0 : 1;
	}
	budget_start(&status);
	budget_set_limit(options.memory_limit);
	if (!arena_prepare(ARENAS_AHEAD, &error))
	{
		server_log("%s", error.text);
		return 1;
	}
	if (!warm_up(&status, &error))
	{
		server_log("%s", error.text);
		return 1;
	}
	if (!watchdog_start())
	{
		server_log("could not start a thread");
		return 1;
	}
	sock = listen_at(options.socket);
	if (sock < 0)
	{
		server_log("could not listen at \"%s\": %s", options.socket, strerror(errno));
		return 1;
	}
	budget_status(&status);
	tell(MESSAGE_READY, &status, sizeof(status));
	serve(sock);
	unlink(options.socket);
	/* threads and contexts end with the process; running their destructors may block */
	_exit(0);
}
