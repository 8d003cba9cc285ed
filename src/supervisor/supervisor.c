/*
 * supervisor.c
 *	  The supervisor: a background worker that keeps the GPU server running.
 *
 * It starts gpuagg-server with fork and exec, reads the server's messages from a socket pair, and
 * publishes its state in shared memory. When the server ends, it starts another one: at once the
 * first time, then with growing pauses while servers end soon after their start. After a server
 * that found no device, or of another build than this library, none is started until the settings
 * are reloaded.
 *
 * The supervisor runs only if it has something to do. With gpuagg.server off, or without a program,
 * it frees its slot of max_worker_processes. When settings want a server again, the next session
 * that needs one starts a supervisor as a dynamic background worker.
 *
 * A server is killed if it does not answer pings, or if it reports that a device has completed
 * nothing for a long time. The next server is started when the process no longer exists, and so has
 * no device memory. The supervisor never blocks until then: a process that is stuck in a driver
 * cannot be killed.
 *
 * PR_SET_PDEATHSIG lets the kernel kill the server when this process ends. This process ends with
 * the postmaster. Its exit status is 0 or 1, because with any other one the postmaster would
 * restart the cluster. With 0 it frees its slot; with 1 it is started again. It connects to no
 * database, but it is a backend, so that pg_stat_activity shows it and its state.
 */
#include "postgres.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "miscadmin.h"
#include "pgstat.h"
#include "portability/instr_time.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/sinval.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/memutils.h"

#include "common/compat.h"
#include "device_list.h"
#include "protocol.h"
#include "settings.h"
#include "supervisor/state.h"
#include "supervisor/supervisor.h"

/* A server that ran at least so long did not fail to start. */
#define SETTLED_MS 5000
#define FIRST_PAUSE_MS 200
/*
 * Longest pauses between starts of servers that end early: if they were ready before, and if not.
 */
#define LONGEST_READY_PAUSE_MS 1000
#define LONGEST_PAUSE_MS 30000
/* After so many early ends in a row, the pauses are those of servers that were not ready. */
#define MANY_EARLY_ENDS 20

/*
 * Interval of pings, and the number of intervals without an answer after which the server counts as
 * hung. Intervals are counted instead of measuring time. So a pause of the whole machine does not
 * count: this process does not run then, either.
 */
#define PING_MS 1000
#define MISSED_PINGS 10
#define FEWEST_PINGS 3 /* if gpuagg.server_timeout is shorter than MISSED_PINGS intervals */

/* A device counts as hung only after it has completed nothing for so long. */
#define LEAST_STALL_MS 10000

/* Intervals of waitpid() for a killed process: at first, and when it takes long. */
#define REAP_MS 10
#define SLOW_REAP_MS 500
/*
 * Time that a killed process may take before that is logged, and before an exiting supervisor stops
 * waiting for it.
 */
#define KILL_MS 5000

#define SUPERVISOR_MAIN "gpuagg_supervisor_main"

/* Reasons why there is no server, in states without a supervisor. */
#define NO_PROGRAM "built without CUDA"
#define OTHER_BUILD "the GPU server is of another build than the library"
#define NO_SLOT "no worker slot was free, see max_worker_processes"

/* The server process. */
typedef struct Child
{
	pid_t pid;     /* 0: none */
	int sock;      /* -1: closed, because the process was killed */
	int64 started; /* time of the start, and of the kill, as now_ms() */
	int64 killed;
	int64 next_ping;
	int unanswered;                  /* number of ping intervals since the last answer */
	bool wanted;                     /* it was killed, but not because of settings */
	bool slow;                       /* it was killed and takes long to end; this was logged */
	bool was_ready;                  /* it was ready when it was killed */
	char verdict[160];               /* how it hung, if it was killed for that; else empty */
	char devices[DEVICE_LIST_BYTES]; /* gpuagg.devices when it was started */
	int filled;                      /* bytes of the message in `in` */
	union
	{
		MessageHeader header;
		char bytes[sizeof(MessageHeader) + sizeof(WireStatus)];
		uint64 align; /* aligns the body, which follows a header of 16 bytes */
	} in;
} Child;

static Child child = {.sock = -1};
static int pause_ms;
static int early_ends; /* number of early ends in a row */
/* The reason that was logged last, with its detail. Empty since a server was ready. */
static char last_logged[MAXPGPATH + 512];

PGDLLEXPORT void gpuagg_supervisor_main(Datum arg);

static int64
now_ms(void)
{
	instr_time now;

	INSTR_TIME_SET_CURRENT(now);
	return (int64) INSTR_TIME_GET_MILLISEC(now);
}

/* ---- starting and ending ---- */

static void
program_path(char *path)
{
	char dir[MAXPGPATH];

	if (gpuagg_server_program[0] != '\0')
	{
		strlcpy(path, gpuagg_server_program, MAXPGPATH);
		return;
	}
	get_pkglib_path(my_exec_path, dir);
	snprintf(path, MAXPGPATH, "%s/gpuagg-server", dir);
}

/* If gpuagg.server_program names a program that cannot be executed, start_server() reports it. */
bool
supervisor_has_program(void)
{
	char path[MAXPGPATH];

	program_path(path);
	return gpuagg_server_program[0] != '\0' || access(path, F_OK) == 0;
}

/* Executes the server in the forked child, where no PostgreSQL code may run. */
static void
run_server(const char *path, int sock, pid_t parent)
{
	char limit[32];
	char pinned[32];
	char cache[32];
	char fd[16];
	const char *argv[] = {"gpuagg-server",
						  "--devices",
						  gpuagg_devices_list,
						  "--memory-limit",
						  limit,
						  "--pinned-limit",
						  pinned,
						  "--cache-limit",
						  cache,
						  "--control",
						  fd,
						  NULL};
	sigset_t none;

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
	snprintf(pinned, sizeof(pinned), "%lld", (long long) gpuagg_pinned_memory_limit << 20);
	snprintf(cache, sizeof(cache), "%llu",
			 gpuagg_device_cache_memory < 0 ?
				 (unsigned long long) PG_UINT64_MAX :
				 (unsigned long long) gpuagg_device_cache_memory << 20);
	snprintf(fd, sizeof(fd), "%d", sock);
	execv(path, (char *const *) argv);
	_exit(127);
}

/* Publishes the state, for all sessions and for pg_stat_activity. */
static void
enter_state(ServerState state, const char *reason)
{
	ServerSnapshot now;
	char text[512];

	server_set_state(state, reason);
	server_snapshot(&now);
	if (state == SERVER_READY)
		snprintf(text, sizeof(text), "GPU server: ready, process %d, %u device(s)", now.status.pid,
				 now.status.ndevices);
	else
		snprintf(text, sizeof(text), "GPU server: %s%s%s", server_state_name(state),
				 now.reason[0] ? ", " : "", now.reason);
	pgstat_report_activity(
		state == SERVER_STARTING || state == SERVER_RESTARTING ? STATE_RUNNING : STATE_IDLE, text);
}

static void
log_unavailable(const char *reason, const char *detail)
{
	char text[sizeof(last_logged)];

	snprintf(text, sizeof(text), "%s %s", reason, detail ? detail : "");
	if (strcmp(last_logged, text) != 0)
		ereport(LOG,
				(errmsg("gpuagg runs without a GPU: %s", reason),
				 detail ? errdetail("%s", detail) : 0));
	strlcpy(last_logged, text, sizeof(last_logged));
}

static void
report_unavailable(const char *reason, const char *detail)
{
	log_unavailable(reason, detail);
	enter_state(SERVER_UNAVAILABLE, reason);
}

static void
start_server(void)
{
	char path[MAXPGPATH];
	char detail[MAXPGPATH + 32];
	char reason[256];
	DeviceList list;
	int pair[2];
	pid_t parent = getpid();

	if (device_list_read(gpuagg_devices_list, &list, reason, sizeof(reason)) &&
		list.kind == DEVICES_NONE)
	{
		report_unavailable("gpuagg.devices is none", NULL);
		return;
	}
	if (!supervisor_has_program())
	{
		report_unavailable(NO_PROGRAM, NULL);
		return;
	}
	program_path(path);
	if (access(path, X_OK) != 0)
	{
		/* all users may read the reason, but not all may read gpuagg.server_program */
		snprintf(reason, sizeof(reason), "could not execute the program of the GPU server: %m");
		snprintf(detail, sizeof(detail), "The program is \"%s\".", path);
		report_unavailable(reason, detail);
		return;
	}
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
		ereport(ERROR, (errcode_for_socket_access(), errmsg("could not create a socket pair: %m")));
	fcntl(pair[0], F_SETFL, O_NONBLOCK);
	strlcpy(child.devices, gpuagg_devices_list, sizeof(child.devices));
	child.started = now_ms();
	child.next_ping = child.started + PING_MS;
	child.sock = pair[0];
	child.filled = 0;
	child.unanswered = 0;
	child.wanted = child.slow = false;
	child.verdict[0] = '\0';
	enter_state(SERVER_STARTING, NULL);
	child.pid = fork();
	if (child.pid == 0)
		run_server(path, pair[1], parent);
	close(pair[1]);
	if (child.pid < 0)
	{
		close(pair[0]);
		child.sock = -1;
		child.pid = 0;
		ereport(
			ERROR,
			(errcode(ERRCODE_INSUFFICIENT_RESOURCES), errmsg("could not fork the GPU server: %m")));
	}
}

/*
 * Kills the server. Backends that use it read end of file. try_reap() reaps the process. `verdict`
 * says how the server hung; NULL if it has closed the socket pair, or if settings have changed,
 * with `wanted` false.
 */
static void
kill_server(const char *verdict, bool wanted)
{
	ServerSnapshot snapshot;

	if (child.sock < 0)
		return;
	kill(child.pid, SIGKILL);
	close(child.sock);
	child.sock = -1;
	child.killed = now_ms();
	child.wanted = wanted;
	unlink(GPUAGG_SOCKET_NAME);
	strlcpy(child.verdict, verdict ? verdict : "", sizeof(child.verdict));
	if (verdict)
		ereport(LOG, (errmsg("gpuagg: %s, and is killed", verdict)));
	server_snapshot(&snapshot);
	child.was_ready = snapshot.state == SERVER_READY;
	if (wanted && snapshot.state != SERVER_UNAVAILABLE)
		enter_state(SERVER_RESTARTING, verdict ? verdict : "the GPU server ended");
}

/* Handles the end of the process: decides when the next one is started. */
static void
on_server_exit(int status)
{
	bool early = now_ms() - child.started < SETTLED_MS;
	ServerSnapshot snapshot;
	char reason[256];

	child.pid = 0;
	server_snapshot(&snapshot);
	if (!child.wanted || snapshot.state == SERVER_UNAVAILABLE || snapshot.state == SERVER_OFF)
		return;
	if (child.verdict[0] != '\0')
		snprintf(reason, sizeof(reason), "%s, and was killed", child.verdict);
	else if (WIFSIGNALED(status))
		snprintf(reason, sizeof(reason), "the GPU server was terminated by signal %d: %s",
				 WTERMSIG(status), pg_strsignal(WTERMSIG(status)));
	else
		snprintf(reason, sizeof(reason), "the GPU server exited with status %d",
				 WEXITSTATUS(status));
	ereport(LOG, (errmsg("gpuagg: %s", reason)));
	early_ends = early ? early_ends + 1 : 0;
	pause_ms = early && pause_ms > 0 ? 2 * pause_ms : FIRST_PAUSE_MS;
	pause_ms = Min(pause_ms,
				   child.was_ready && early_ends < MANY_EARLY_ENDS ? LONGEST_READY_PAUSE_MS :
																	 LONGEST_PAUSE_MS);
	enter_state(SERVER_RESTARTING, reason);
	server_count_restart();
}

/* Returns whether the killed server has ended. Logs if it takes long. */
static bool
try_reap(int *status)
{
	pid_t pid = waitpid(child.pid, status, WNOHANG);
	char reason[256];

	if (pid == child.pid || (pid < 0 && errno == ECHILD))
		return true;
	if (!child.slow && now_ms() - child.killed > KILL_MS)
	{
		child.slow = true;
		snprintf(reason, sizeof(reason), "the GPU server, process %d, was killed but does not end",
				 (int) child.pid);
		ereport(LOG,
				(errmsg("gpuagg: %s", reason), errhint("It may be stuck in the driver of a GPU.")));
		server_note_error(reason);
	}
	return false;
}

static void
stop_at_exit(int code, Datum arg)
{
	int status = 0;

	kill_server(NULL, false);
	while (child.pid != 0 && !try_reap(&status) && now_ms() - child.killed <= KILL_MS)
		pg_usleep(REAP_MS * 1000L);
	child.pid = 0;
	server_resign(code == 0);
}

/* ---- messages ---- */

static void
on_pong(const WirePong *pong)
{
	/* twice the timeout: backends that waited for the device have given up by then */
	uint64 limit = Max(2 * (uint64) gpuagg_server_timeout, LEAST_STALL_MS);
	char verdict[160];

	child.unanswered = 0;
	if (gpuagg_server_timeout == 0 || pong->stalled_ms < limit)
		return;
	snprintf(verdict, sizeof(verdict), "a GPU has completed nothing for %d s",
			 (int) Min(pong->stalled_ms / 1000, INT_MAX));
	kill_server(verdict, true);
}

/*
 * Kills a server with another version of the protocol.  Another start would not help: its program
 * was replaced after the postmaster had loaded this library.
 */
static void
refuse_build(void)
{
	report_unavailable(OTHER_BUILD,
					   "After an installation, PostgreSQL must be restarted. If it was, "
					   "\"gpuagg.server_program\" names the program of another installation.");
	kill_server(NULL, false);
}

static void
on_ready(const WireStatus *status)
{
	server_set_ready(status);
	last_logged[0] = '\0';
	enter_state(SERVER_READY, NULL);
	ereport(LOG,
			(errmsg("gpuagg: the GPU server is ready with %u device(s), the first is %s",
					status->ndevices, status->devices[0].name)));
}

static void
on_message(const MessageHeader *header, const char *body)
{
	char text[256];
	size_t length = Min(header->length, sizeof(text) - 1);

	memcpy(text, body, length);
	text[length] = '\0';
	switch (header->type)
	{
		case MESSAGE_READY:
			if (header->length == sizeof(WireStatus) &&
				((const WireStatus *) body)->version == GPUAGG_PROTOCOL_VERSION)
				on_ready((const WireStatus *) body);
			else
				refuse_build();
			break;
		case MESSAGE_UNAVAILABLE:
			report_unavailable(text, NULL);
			break;
		case MESSAGE_PONG:
			if (header->length == sizeof(WirePong))
				on_pong((const WirePong *) body);
			break;
		case MESSAGE_LOG:
			server_note_error(text);
			ereport(LOG, (errmsg("gpuagg: GPU server: %s", text)));
			break;
		case MESSAGE_BUILD:
			server_set_build(text);
			break;
		default:
			break;
	}
}

/*
 * Processes the messages that have arrived. Returns false at end of file, or if they are not valid.
 */
static bool
read_messages(void)
{
	while (child.sock >= 0)
	{
		size_t want = sizeof(MessageHeader);
		ssize_t n;

		if (child.filled >= (int) sizeof(MessageHeader))
		{
			want += child.in.header.length;
			if (child.in.header.magic != GPUAGG_PROTOCOL_MAGIC)
				return false;
			if (want > sizeof(child.in) && child.in.header.type == MESSAGE_READY)
			{
				refuse_build();
				return true;
			}
			if (want > sizeof(child.in))
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
	return true;
}

static void
send_settings(void)
{
	struct
	{
		MessageHeader header;
		WireSettings settings;
	} message = {{GPUAGG_PROTOCOL_MAGIC, MESSAGE_SETTINGS, sizeof(WireSettings), 0},
				 {(uint64) gpuagg_device_memory_limit << 20,
				  (uint64) gpuagg_pinned_memory_limit << 20,
				  gpuagg_device_cache_memory < 0 ? PG_UINT64_MAX :
												   (uint64) gpuagg_device_cache_memory << 20}};

	/* if this fails, the server has ended or hangs, which pings will detect */
	(void) send(child.sock, &message, sizeof(message), MSG_NOSIGNAL);
}

/*
 * At each interval, sends a ping unless one is unanswered. Kills a server that has not answered for
 * too long.
 */
static void
ping_server(void)
{
	static const MessageHeader ping = {GPUAGG_PROTOCOL_MAGIC, MESSAGE_PING, 0, 0};
	int most = MISSED_PINGS;
	char verdict[160];

	if (child.sock < 0 || now_ms() < child.next_ping)
		return;
	child.next_ping = now_ms() + PING_MS;
	if (gpuagg_server_timeout > 0)
		most = Min(most, Max(gpuagg_server_timeout / PING_MS, FEWEST_PINGS));
	if (child.unanswered >= most)
	{
		snprintf(verdict, sizeof(verdict), "the GPU server did not answer for %d s",
				 most * PING_MS / 1000);
		kill_server(verdict, true);
		return;
	}
	if (child.unanswered++ == 0)
		(void) send(child.sock, &ping, sizeof(ping), MSG_NOSIGNAL);
}

/* ---- the loop ---- */

static void
reload(void)
{
	char program[MAXPGPATH];
	bool changed;

	strlcpy(program, gpuagg_server_program, sizeof(program));
	ProcessConfigFile(PGC_SIGHUP);
	if (strcmp(child.devices, gpuagg_devices_list) != 0)
		server_forget_devices();
	changed = strcmp(child.devices, gpuagg_devices_list) != 0 ||
		strcmp(program, gpuagg_server_program) != 0;
	/* a start that failed may succeed now */
	if (!gpuagg_server || changed)
		pause_ms = 0;
	if (child.sock >= 0 && (!gpuagg_server || changed))
		kill_server(NULL, false);
	else if (child.sock >= 0)
		send_settings();
	if (!gpuagg_server)
		enter_state(SERVER_OFF, "");
	else if (child.sock < 0)
		enter_state(SERVER_STARTING, "");
}

/* Starts a server if its time has come. Returns the ms until then, or -1. */
static long
start_if_due(void)
{
	ServerSnapshot snapshot;
	int64 waited;

	server_snapshot(&snapshot);
	if (child.pid != 0 || snapshot.state == SERVER_OFF || snapshot.state == SERVER_UNAVAILABLE)
		return -1;
	waited = now_ms() - child.started;
	if (child.started != 0 && waited < pause_ms)
		return pause_ms - waited;
	start_server();
	return -1;
}

/*
 * Pings, reaps and starts the server when the time has come. Returns the ms until the next action,
 * or -1.
 */
static long
run_due_actions(void)
{
	int status = 0;
	long timeout;

	ping_server();
	if (child.pid != 0 && child.sock < 0)
	{
		if (!try_reap(&status))
			return child.slow ? SLOW_REAP_MS : REAP_MS;
		on_server_exit(status);
	}
	timeout = start_if_due();
	return child.sock >= 0 ? Max(child.next_ping - now_ms(), 0) : timeout;
}

static void
wait_for_events(long timeout)
{
	int events = WL_LATCH_SET | WL_EXIT_ON_PM_DEATH | (timeout >= 0 ? WL_TIMEOUT : 0) |
		(child.sock >= 0 ? WL_SOCKET_READABLE : 0);
	int rc = WaitLatchOrSocket(MyLatch, events, child.sock >= 0 ? child.sock : PGINVALID_SOCKET,
							   timeout, PG_WAIT_EXTENSION);

	if (rc & WL_LATCH_SET)
		ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
	ProcessCatchupInterrupt();
}

void
gpuagg_supervisor_main(Datum arg)
{
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	pqsignal(SIGCHLD, COMPAT_SIG_DFL);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);
	pgstat_report_appname("gpuagg supervisor");
	if (!server_claim())
		proc_exit(0);
	before_shmem_exit(stop_at_exit, 0);

	enter_state(gpuagg_server ? SERVER_STARTING : SERVER_OFF, "");
	while (!ShutdownRequestPending)
	{
		long timeout = run_due_actions();

		/* without a server to run, other workers may have the slot */
		if (child.pid == 0 && (!gpuagg_server || !supervisor_has_program()))
		{
			/*
			 * the program may have been removed between two starts; the state would stay "starting"
			 */
			if (gpuagg_server)
				report_unavailable(NO_PROGRAM, NULL);
			proc_exit(0);
		}
		wait_for_events(timeout);
		/* before pings are counted: an answer may be waiting for this process */
		if (child.sock >= 0 && !read_messages())
			kill_server(NULL, true);
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			reload();
		}
	}
	/* with status 1 the postmaster starts the supervisor again, unless the cluster shuts down */
	proc_exit(1);
}

/* ---- registration ---- */

static void
describe_worker(BackgroundWorker *worker)
{
	memset(worker, 0, sizeof(*worker));
	strlcpy(worker->bgw_name, "gpuagg supervisor", BGW_MAXLEN);
	strlcpy(worker->bgw_type, "gpuagg supervisor", BGW_MAXLEN);
	strlcpy(worker->bgw_library_name, "gpuagg", BGW_MAXLEN);
	strlcpy(worker->bgw_function_name, SUPERVISOR_MAIN, BGW_MAXLEN);
	worker->bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker->bgw_start_time = BgWorkerStart_ConsistentState;
	worker->bgw_restart_time = 1;
}

/*
 * Returns the first state. Called in the postmaster when the shared memory is created, at the start
 * and after a crash.
 */
static ServerState
first_state(char *reason, size_t size)
{
	if (!gpuagg_server)
		return SERVER_OFF;
	if (supervisor_has_program() && compat_worker_is_registered(SUPERVISOR_MAIN))
		return SERVER_STARTING;
	strlcpy(reason, supervisor_has_program() ? NO_SLOT : NO_PROGRAM, size);
	log_unavailable(reason, NULL);
	return SERVER_UNAVAILABLE;
}

void
supervisor_init(void)
{
	BackgroundWorker worker;

	if (!process_shared_preload_libraries_in_progress)
		return;
	server_state_init(first_state);
	if (!gpuagg_server || !supervisor_has_program())
		return;
	describe_worker(&worker);
	RegisterBackgroundWorker(&worker);
}

void
supervisor_ensure(void)
{
	BackgroundWorker worker;

	if (!gpuagg_server || !server_is_orphaned() || !supervisor_has_program())
		return;
	describe_worker(&worker);
	/* set before the worker runs: later this would overwrite the worker's own state */
	server_set_state(SERVER_STARTING, "");
	if (!RegisterDynamicBackgroundWorker(&worker, NULL))
		server_set_state(SERVER_UNAVAILABLE, NO_SLOT);
}
