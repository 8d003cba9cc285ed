/*
 * main.c
 *	  gpuagg-server: the process that owns the GPUs.
 *
 * 	gpuagg-server [--devices LIST] [--memory-limit BYTES] [--pinned-limit BYTES]
 * 				  [--cache-limit BYTES] [--control FD] [--socket PATH]
 *
 * The supervisor starts the server in the data directory. --control is one end of a socket pair:
 * the server sends READY, or the reason why it cannot serve, and receives settings and pings
 * (control.c). End of file means that the supervisor is gone. Without --control, in a debugger for
 * example, the server logs to standard error.
 *
 * Exit status: 0 if the supervisor has closed the pipe or no device can be used
 * (MESSAGE_UNAVAILABLE). After any other status the supervisor starts the server again.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "server/server.h"
#include "server/device_store.h"

/* Time limit for the exit of an earlier server. */
#define PREDECESSOR_MS 30000

typedef struct Options
{
	const char *devices;
	const char *socket;
	uint64_t memory_limit;
	uint64_t pinned_limit;
	uint64_t cache_limit;
	int control;
} Options;

static Options
read_options(int argc, char **argv)
{
	Options options = {"all", GPUAGG_SOCKET_NAME, 0, UINT64_MAX, UINT64_MAX, -1};

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
		else if (strcmp(argv[i], "--pinned-limit") == 0)
			options.pinned_limit = strtoull(argv[i + 1], NULL, 10);
		else if (strcmp(argv[i], "--cache-limit") == 0)
			options.cache_limit = strtoull(argv[i + 1], NULL, 10);
		else if (strcmp(argv[i], "--control") == 0)
			options.control = atoi(argv[i + 1]);
		else
		{
			fprintf(stderr, "gpuagg-server: unknown option %s\n", argv[i]);
			exit(1);
		}
	}
	return options;
}

/* ---- an earlier server of this cluster ---- */

/* Reads the first line of a file, without its newline. Returns false if there is none. */
static bool
read_line(const char *path, char *line, size_t size)
{
	FILE *f = fopen(path, "r");
	bool ok;

	if (f == NULL)
		return false;
	ok = fgets(line, size, f) != NULL;
	fclose(f);
	if (ok)
		line[strcspn(line, "\n")] = '\0';
	return ok;
}

/* Returns whether the process is a server of this data directory that has not exited yet. */
static bool
still_runs(int pid)
{
	char path[64];
	char line[64];
	char own[32];
	const char *name;
	const char *end;
	struct stat here, there;

	/*
	 * another directory means another cluster; a process that is exiting has no directory any more
	 */
	snprintf(path, sizeof(path), "/proc/%d/cwd", pid);
	if (stat(".", &here) == 0 && stat(path, &there) == 0 &&
		(here.st_dev != there.st_dev || here.st_ino != there.st_ino))
		return false;
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (!read_line("/proc/self/comm", own, sizeof(own)) || !read_line(path, line, sizeof(line)))
		return false;

	/* the line is like "1234 (gpuagg-server) S ..."; a zombie holds no memory */
	name = strchr(line, '(');
	end = strrchr(line, ')');
	if (name == NULL || end == NULL || end < name || strlen(end) < 3)
		return false;
	return (size_t) (end - name - 1) == strlen(own) && strncmp(name + 1, own, strlen(own)) == 0 &&
		end[2] != 'Z' && end[2] != 'X';
}

/*
 * Waits for an earlier server of this cluster to exit, and writes the file with this server's pid.
 *
 * After a crash of the cluster the earlier server may still be exiting. It holds memory of the
 * devices, whose free memory this server is about to measure. The wait is bounded: a process in a
 * driver that hangs cannot exit.
 */
static void
await_predecessor(const char *socket)
{
	char path[128];
	char line[32];
	int pid = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s.pid", socket);
	if (read_line(path, line, sizeof(line)))
		pid = atoi(line);
	for (int ms = 0; pid > 0 && pid != getpid() && still_runs(pid); ms += 20)
	{
		if (ms >= PREDECESSOR_MS)
		{
			server_log("the previous server, process %d, does not end", pid);
			break;
		}
		usleep(20000);
	}
	if ((f = fopen(path, "w")) == NULL || fprintf(f, "%d\n", (int) getpid()) < 0)
		server_log("could not write \"%s\": %s", path, strerror(errno));
	if (f)
		fclose(f);
}

/* ---- connections ---- */

/* Creates the socket's directory, which may be missing in a data directory that was copied. */
static void
make_directory(const char *socket)
{
	const char *end = strrchr(socket, '/');
	char path[128];

	if (end && end > socket && (size_t) (end - socket) < sizeof(path))
	{
		snprintf(path, sizeof(path), "%.*s", (int) (end - socket), socket);
		/* errors are ignored: it usually exists, and listen_at reports if it does not */
		(void) mkdir(path, 0700);
	}
}

/* Returns a listening socket that only this user may connect to; -1, with errno, on failure. */
static int
listen_at(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int sock;
	mode_t mask;
	bool ok;

	if (strlen(path) >= sizeof(address.sun_path))
	{
		errno = ENAMETOOLONG;
		return -1;
	}
	strcpy(address.sun_path, path);
	sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (sock < 0)
		return -1;
	unlink(path);
	mask = umask(0177);
	ok = bind(sock, (struct sockaddr *) &address, sizeof(address)) == 0;
	umask(mask);
	if (!ok || listen(sock, 128) < 0)
	{
		int err = errno;

		close(sock);
		errno = err;
		return -1;
	}
	return sock;
}

/* Accepts connections. Returns, with errno, when no more can be accepted. */
static void
serve(int sock)
{
	for (;;)
	{
		int client = accept4(sock, NULL, NULL, SOCK_CLOEXEC);

		if (client >= 0)
			session_start(client);
		else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
			usleep(10000);
		else if (errno != EINTR && errno != ECONNABORTED && errno != EAGAIN)
			return;
	}
}

/*
 * Adapts the limits to what other processes leave of the devices, servers of other clusters for
 * example. So the limits fit together without communication: if n servers would fill the memory
 * with copies, each ends with 1 / (n + 1) of it.
 */
static void
share_devices(void)
{
	WireStatus status;
	uint64_t bytes;

	budget_status(&status);
	for (uint32_t d = 0; d < status.ndevices; d++)
		if (device_ops.available(d, status.devices[d].used == status.devices[d].stored, &bytes))
			budget_set_available(d, bytes);
}

/*
 * Main function of a thread that frees idle arenas, and stored columns beyond their limit. It is a
 * thread because unpinning may take long.
 */
static void *
trim_main(void *arg)
{
	for (;;)
	{
		usleep(arena_idle_seconds * 1000000LL / 4);
		arena_trim();
		share_devices();
		store_trim();
	}
	return arg;
}

/* ---- the start ---- */

/* Raises the soft limit of open files, which is often 1,024: a session needs two descriptors. */
static void
raise_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
	{
		limit.rlim_cur = limit.rlim_max;
		(void) setrlimit(RLIMIT_NOFILE, &limit);
	}
}

/* Reduces one row in a query that counts it. */
static DeviceStatus
run_once(DeviceQuery *query, Lane *lane, DeviceError *error)
{
	WireBatch batch = {.nrows = 1};
	WireFinished finished = {0};
	size_t bytes;
	DeviceStatus status = device_ops.copy(lane, &batch, &bytes, error);

	if (status == DEVICE_OK)
		status = device_ops.reduce(query, lane, &batch, error);
	return status == DEVICE_OK ? device_ops.finish(query, NULL, false, &finished, error) : status;
}

/* Opens as many queries as there are arenas: their streams and events are kept for clients. */
static DeviceStatus
warm_device(int device, Arena *arena, DeviceError *error)
{
	WireQuery q = {.nslots = 1};
	Lane *lanes[ARENAS_AHEAD] = {NULL};
	DeviceQuery *queries[ARENAS_AHEAD] = {NULL};
	DeviceStatus status = DEVICE_OK;

	q.slots[0].monoid = MONOID_COUNT;
	q.slots[0].col[0] = q.slots[0].col[1] = q.slots[0].filter = -1;
	q.slots[0].width = 1;
	for (int i = 0; i < ARENAS_AHEAD && status == DEVICE_OK; i++)
	{
		status = device_ops.lane_open(&lanes[i], device, arena->memory, ARENA_BUFFER_BYTES,
									  ARENA_BUFFERS, error);
		if (status == DEVICE_OK)
			status = device_ops.query_open(&queries[i], device, &q, NULL, error);
	}
	if (status == DEVICE_OK)
		status = run_once(queries[0], lanes[0], error);
	for (int i = 0; i < ARENAS_AHEAD; i++)
	{
		if (queries[i])
			device_ops.query_close(queries[i]);
		if (lanes[i])
			device_ops.lane_close(lanes[i]);
	}
	return status;
}

/*
 * Runs a query on each device. So the work of the first use (loading kernels, growing the memory
 * pool) does not delay the first client.
 */
static bool
warm_up(const WireStatus *devices, DeviceError *error)
{
	Arena *arena = arena_take(0, error);
	DeviceStatus status = DEVICE_OK;

	if (arena == NULL)
		return false;
	for (uint32_t d = 0; d < devices->ndevices && status == DEVICE_OK; d++)
		status = warm_device((int) d, arena, error);
	arena_give(arena, 0);
	/* queries will report other failures, such as a memory limit that is too low */
	return status != DEVICE_LOST;
}

/* Logs the devices' notes: why a device is not used, or what could be better. */
static void
log_notes(const WireDevice *devices, uint32_t n)
{
	for (uint32_t d = 0; d < n; d++)
		if (devices[d].note[0] != '\0')
			server_log("GPU %d (%s): %s", devices[d].ordinal, devices[d].name, devices[d].note);
}

/* Opens the devices and readies them for sessions. Returns NULL, or what went wrong. */
static const char *
open_devices(const Options *options, WireStatus *status, DeviceError *error)
{
	DeviceStatus started = device_ops.start(options->devices, status, error);

	log_notes(status->devices, status->ndevices);
	log_notes(status->skipped, status->nskipped);
	if (started == DEVICE_UNSUPPORTED)
	{
		control_tell(MESSAGE_UNAVAILABLE, error->text, strlen(error->text));
		server_end(0);
	}
	if (started != DEVICE_OK)
		return error->text;
	budget_start(status);
	if (!arena_prepare(ARENAS_AHEAD, error) || !warm_up(status, error))
		return error->text;
	return NULL;
}

int
main(int argc, char **argv)
{
	Options options = read_options(argc, argv);
	WireStatus status = {0};
	DeviceError error = {""};
	const char *wrong;
	char build[128];
	int sock;

	signal(SIGPIPE, SIG_IGN);
	raise_file_limit();
	budget_set_limit(options.memory_limit);
	arena_set_limit(options.pinned_limit);
	store_set_limit(options.cache_limit);
	control_init(options.control, options.socket);
	device_ops.build(build, sizeof(build));
	control_tell(MESSAGE_BUILD, build, strlen(build));
	if (options.control >= 0 && !thread_start(control_main, NULL))
		server_end(1);
	make_directory(options.socket);
	await_predecessor(options.socket);
	wrong = open_devices(&options, &status, &error);
	if (wrong)
	{
		server_log("%s", wrong);
		server_end(1);
	}
	sock = listen_at(options.socket);
	if (sock < 0)
	{
		server_log("could not listen at \"%s\": %s", options.socket, strerror(errno));
		server_end(1);
	}
	if (!thread_start(trim_main, NULL))
	{
		server_log("could not start a thread: %s", strerror(errno));
		server_end(1);
	}
	budget_status(&status);
	status.version = GPUAGG_PROTOCOL_VERSION;
	control_tell(MESSAGE_READY, &status, sizeof(status));
	serve(sock);
	server_log("could not accept connections: %s", strerror(errno));
	server_end(1);
}
