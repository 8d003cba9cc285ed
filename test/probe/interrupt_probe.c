/*
 * interrupt_probe.c
 *	  Measures how long a backend computes without looking for interrupts.
 *
 * A timer of the processor time that the process uses asks for interrupts, as a signal would, and
 * sees whether the request is still there when it expires again.  ProcessInterrupts() forgets a
 * request at once, so that one that stays tells how long the process has computed without
 * CHECK_FOR_INTERRUPTS().  Waits do not count, and neither does what else the machine has to do.
 *
 * Processes that have interrupt_probe.file set, which parallel workers take over from their leader,
 * append a line to that file when the longest stretch so far ends: milliseconds, and addresses of
 * the functions that were active then.
 */
#include "postgres.h"

#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "fmgr.h"
#include "miscadmin.h"
#include "utils/guc.h"

PG_MODULE_MAGIC;

/* What the system's clock tells apart, on most systems, and what is worth a line. */
#define TICK_US 4000
#define LEAST_MS 20

#define MOST_FRAMES 24

void _PG_init(void);

static char *probe_file;
static double asked_at = -1; /* -1: there is no request */
static double longest;
static void *frames[MOST_FRAMES];
static int nframes;

static double
computed_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

/* The stretch that began with the request has ended. */
static void
report(double ms)
{
	char line[64];
	int file = open(probe_file, O_WRONLY | O_CREAT | O_APPEND, 0600);

	if (file < 0)
		return;
	if (write(file, line, snprintf(line, sizeof(line), "%.0f ms\n", ms)) > 0)
		backtrace_symbols_fd(frames, nframes, file);
	close(file);
}

static void
tick(SIGNAL_ARGS)
{
	int save_errno = errno;
	double now = computed_ms();

	if (asked_at < 0 || !InterruptPending)
	{
		if (asked_at >= 0 && nframes > 0)
			report(longest);
		nframes = 0;
		asked_at = now;
		InterruptPending = true;
	}
	else if (now - asked_at > Max(longest, LEAST_MS))
	{
		longest = now - asked_at;
		nframes = backtrace(frames, MOST_FRAMES);
	}
	errno = save_errno;
}

static void
assign_file(const char *file, void *extra)
{
	struct itimerval timer = {{0}};
	struct sigaction action = {.sa_handler = tick, .sa_flags = SA_RESTART};
	void *first[1];

	longest = 0;
	nframes = 0;
	asked_at = -1;
	if (file[0] != '\0')
	{
		timer.it_interval.tv_usec = timer.it_value.tv_usec = TICK_US;
		/* its first call loads a library */
		(void) backtrace(first, 1);
		sigaction(SIGPROF, &action, NULL);
	}
	setitimer(ITIMER_PROF, &timer, NULL);
}

void
_PG_init(void)
{
	DefineCustomStringVariable("interrupt_probe.file",
							   "Where to report; empty: nothing is measured.", NULL, &probe_file,
							   "", PGC_SUSET, 0, NULL, assign_file, NULL);
}
