/*
 * supervisor.c
 *	  The background worker that keeps the GPU server running.
 *
 * It starts gpuagg-server with fork and exec, reads what the server says over a
 * socket pair, tells backends through shared memory, and starts it again when
 * it dies: at once the first time, then with growing pauses while it dies young.
 * A server that finds no device is not started again before settings are
 * reloaded.
 *
 * The server's life is tied to this process by PR_SET_PDEATHSIG, and this
 * process ends with the postmaster.  It exits with status 0 or 1 only: anything else
 * would make the postmaster restart the cluster.  It touches no database.
 */
#include "postgres.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "protocol.h"
#include "server_state.h"
#include "supervisor.h"

/* A server that lived this long did not die of its start. */
#define LONG_LIFE_MS 5000
#define FIRST_PAUSE_MS 200
/* Between starts of servers that die young: having been ready, and without that. */
#define LONGEST_READY_PAUSE_MS 1000
#define LONGEST_PAUSE_MS 30000

typedef struct Child
{
	pid_t		pid;			/* 0: none */
	int			sock;
	TimestampTz started;
	char		devices[256];	/* as it was started with */
	int			filled;			/* bytes of the message that is arriving */
	union
	{
		MessageHeader header;
		char		bytes[sizeof(MessageHeader) + sizeof(WireStatus)];
		uint64		align;			/* of the body, after a header of 16 bytes */
	}			in;
} Child;

static Child child;
static int	pause_ms;

PGDLLEXPORT void gpuagg_supervisor_main(Datum arg);

void
supervisor_register(void)
{
	BackgroundWorker worker = {0};

	strlcpy(worker.bgw_name, "gpuagg supervisor", BGW_MAXLEN);
	strlcpy(worker.bgw_type, "gpuagg supervisor", BGW_MAXLEN);
	strlcpy(worker.bgw_library_name, "gpuagg", BGW_MAXLEN);
	strlcpy(worker.bgw_function_name, "gpuagg_supervisor_main", BGW_MAXLEN);
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS;
	worker.bgw_start_time = BgWorkerStart_PostmasterStart;
	worker.bgw_restart_time = 1;
	RegisterBackgroundWorker(&worker);
}

/* ---- starting and ending ---- */

static void
program_path(char *path)
{
	char		dir[MAXPGPATH];

	if (gpuagg_server_program[0] != '\0')
	{
		strlcpy(path, gpuagg_server_program, MAXPGPATH);
		return;
	}
	get_pkglib_path(my_exec_path, dir);
	snprintf(path, MAXPGPATH, "%s/gpuagg-server", dir);
}

/* In the forked child: nothing of PostgreSQL may run here. */
static void
run_server(const char *path, int sock, pid_t parent)
{
	char		limit[32];
	char		fd[16];
	const char *argv[] = {"gpuagg-server", "--devices", gpuagg_devices_list, "--memory-limit",
	limit, "--control", fd, NULL};
	sigset_t	none;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
	setsid();
	for (int s = 1; s < NSIG; s++)
		signal(s, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	for (int i = 3; i < 4096; i++)
		if (i != sock)
			close(i);
	snprintf(limit, sizeof(limit), "%lld", (long long) gpuagg_device_memory_limit << 20);
	snprintf(fd, sizeof(fd), "%d", sock);
	execv(path, (char *const *) argv);
	_exit(127);
}

static void
give_up(const char *reason)
{
	ServerSnapshot before;

	server_snapshot(&before);
	if (before.state != SERVER_UNAVAILABLE || strcmp(before.reason, reason) != 0)
		ereport(LOG, (errmsg("gpuagg runs without a GPU: %s", reason)));
	server_set_state(SERVER_UNAVAILABLE, reason);
}

static void
start_server(void)
{
	char		path[MAXPGPATH];
	char		reason[256];
	int			pair[2];
	pid_t		parent = getpid();

	program_path(path);
	if (access(path, X_OK) != 0)
	{
		snprintf(reason, sizeof(reason), "could not execute \"%.150s\": %m", path);
		give_up(reason);
		return;
	}
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
		ereport(ERROR,
				(errcode_for_socket_access(),
				 errmsg("could not create a socket pair: %m")));
	fcntl(pair[0], F_SETFL, O_NONBLOCK);
	strlcpy(child.devices, gpuagg_devices_list, sizeof(child.devices));
	child.started = GetCurrentTimestamp();
	child.sock = pair[0];
	child.filled = 0;
	server_set_state(SERVER_STARTING, NULL);
	child.pid = fork();
	if (child.pid == 0)
		run_server(path, pair[1], parent);
	close(pair[1]);
	if (child.pid < 0)
	{
		close(pair[0]);
		child.pid = 0;
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_RESOURCES),
				 errmsg("could not fork the GPU server: %m")));
	}
}

/* Ends the server if it runs; whoever used it sees end of file. */
static void
stop_server(void)
{
	if (child.pid == 0)
		return;
	kill(child.pid, SIGKILL);
	while (waitpid(child.pid, NULL, 0) < 0 && errno == EINTR)
		;
	close(child.sock);
	child.pid = 0;
	unlink(GPUAGG_SOCKET_NAME);
}

static void
stop_at_exit(int code, Datum arg)
{
	stop_server();
	server_set_state(SERVER_RESTARTING, "the supervisor ended");
}

/* The socket pair is closed: collects the dead server and decides what next. */
static void
bury_server(void)
{
	int			status = 0;
	bool		young = !TimestampDifferenceExceeds(child.started, GetCurrentTimestamp(),
													LONG_LIFE_MS);
	ServerSnapshot snapshot;
	char		reason[256];

	/* whoever closed the pipe without dying is no use either */
	kill(child.pid, SIGKILL);
	while (waitpid(child.pid, &status, 0) < 0 && errno == EINTR)
		;
	close(child.sock);
	child.pid = 0;
	unlink(GPUAGG_SOCKET_NAME);
	server_snapshot(&snapshot);
	if (snapshot.state == SERVER_UNAVAILABLE)
		return;
	if (WIFSIGNALED(status))
		snprintf(reason, sizeof(reason), "the GPU server was terminated by signal %d: %s",
				 WTERMSIG(status), pg_strsignal(WTERMSIG(status)));
	else
		snprintf(reason, sizeof(reason), "the GPU server exited with status %d",
				 WEXITSTATUS(status));
	ereport(LOG, (errmsg("%s", reason)));
	pause_ms = young && pause_ms > 0 ? 2 * pause_ms : FIRST_PAUSE_MS;
	pause_ms = Min(pause_ms, snapshot.state == SERVER_READY ? LONGEST_READY_PAUSE_MS :
				   LONGEST_PAUSE_MS);
	server_set_state(SERVER_RESTARTING, reason);
	server_count_restart();
}

/* ---- messages ---- */

static void
on_message(const MessageHeader *header, const char *body)
{
	char		text[256];
	size_t		length = Min(header->length, sizeof(text) - 1);

	memcpy(text, body, length);
	text[length] = '\0';
	switch (header->type)
	{
		case MESSAGE_READY:
			if (header->length == sizeof(WireStatus))
			{
				const WireStatus *status = (const WireStatus *) body;

				server_set_ready(status);
				ereport(LOG, (errmsg("GPU server is ready with %u device(s), the first is %s",
									 status->ndevices, status->devices[0].name)));
			}
			break;
		case MESSAGE_UNAVAILABLE:
			give_up(text);
			break;
		case MESSAGE_LOG:
			server_note_error(text);
			ereport(LOG, (errmsg("GPU server: %s", text)));
			break;
		default:
			break;
	}
}

/* Takes what has arrived; false at the end of file or of sense. */
static bool
read_messages(void)
{
	for (;;)
	{
		size_t		want = sizeof(MessageHeader);
		ssize_t		n;

		if (child.filled >= (int) sizeof(MessageHeader))
		{
			want += child.in.header.length;
			if (child.in.header.magic != GPUAGG_PROTOCOL_MAGIC ||
				want > sizeof(child.in))
				return false;
		}
		if (child.filled == (int) want)
		{
			on_message(&child.in.header, child.in.bytes + sizeof(MessageHeader));
			child.filled = 0;
			continue;
		}
		n = recv(child.sock, child.in.bytes + child.filled, want - child.filled, 0);
		if (n > 0)
			child.filled += n;
		else if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return true;
		else if (n == 0 || errno != EINTR)
			return false;
	}
}

static void
send_settings(void)
{
	struct
	{
		MessageHeader header;
		WireSettings settings;
	}			message = {{GPUAGG_PROTOCOL_MAGIC, MESSAGE_SETTINGS, sizeof(WireSettings), 0},
	{(uint64) gpuagg_device_memory_limit << 20}};

	/* a server that takes no 24 bytes is about to be found dead */
	(void) send(child.sock, &message, sizeof(message), MSG_NOSIGNAL);
}

/* ---- the loop ---- */

static void
reload(void)
{
	char		program[MAXPGPATH];
	ServerSnapshot snapshot;

	strlcpy(program, gpuagg_server_program, sizeof(program));
	ProcessConfigFile(PGC_SIGHUP);
	server_snapshot(&snapshot);
	if (child.pid != 0 &&
		(!gpuagg_server || strcmp(child.devices, gpuagg_devices_list) != 0 ||
		 strcmp(program, gpuagg_server_program) != 0))
	{
		stop_server();
		pause_ms = 0;
	}
	else if (child.pid != 0)
		send_settings();
	if (!gpuagg_server)
		server_set_state(SERVER_OFF, "");
	else if (child.pid == 0)
		server_set_state(SERVER_STARTING, "");
}

/* Starts a server if one is due; else how long to wait for that, or -1. */
static long
start_if_due(void)
{
	ServerSnapshot snapshot;
	long		waited;

	server_snapshot(&snapshot);
	if (child.pid != 0 || snapshot.state == SERVER_OFF || snapshot.state == SERVER_UNAVAILABLE)
		return -1;
	waited = TimestampDifferenceMilliseconds(child.started, GetCurrentTimestamp());
	if (child.started != 0 && waited < pause_ms)
		return pause_ms - waited;
	start_server();
	return -1;
}

void
gpuagg_supervisor_main(Datum arg)
{
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	pqsignal(SIGCHLD, SIG_DFL);
	BackgroundWorkerUnblockSignals();
	before_shmem_exit(stop_at_exit, 0);

	server_set_state(gpuagg_server ? SERVER_STARTING : SERVER_OFF, "");
	while (!ShutdownRequestPending)
	{
		long		timeout = start_if_due();
		int			events = WL_LATCH_SET | WL_EXIT_ON_PM_DEATH |
			(timeout >= 0 ? WL_TIMEOUT : 0) | (child.pid != 0 ? WL_SOCKET_READABLE : 0);
		int			rc = WaitLatchOrSocket(MyLatch, events,
										   child.pid != 0 ? child.sock : PGINVALID_SOCKET,
										   timeout, PG_WAIT_EXTENSION);

		if (rc & WL_LATCH_SET)
			ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			reload();
		}
		if (child.pid != 0 && (rc & WL_SOCKET_READABLE) && !read_messages())
			bury_server();
	}
	/* so that it is started again, unless the cluster shuts down */
	proc_exit(1);
}
