/*
 * interrupt_probe.c
 *	  Measures how long a backend computes without checking for interrupts.
 *
 * A timer of the process's CPU time requests an interrupt, like a signal, and at its next expiry
 * tests whether the request is still pending. ProcessInterrupts() clears a request at once. So a
 * pending request shows how long the process has computed without CHECK_FOR_INTERRUPTS(). Waits and
 * the load of the machine do not count.
 *
 * A process with the setting interrupt_probe.file appends a line to that file when its longest
 * interval so far ends: milliseconds, followed by the addresses of the active functions. Parallel
 * workers inherit the setting from their leader.
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

#define TICK_US 4000 /* interval of the timer: the resolution of most systems' clocks */
#define LEAST_MS 20  /* shorter intervals are not reported */

#define MAX_FRAMES 24

void _PG_init(void);

static char *probe_file;
static double requested_at = -1; /* CPU time of the pending request in ms; -1 if there is none */
static double longest;           /* longest interval, in ms */
static void *frames[MAX_FRAMES]; /* active functions of the longest interval */
static int nframes;

/* Returns the CPU time of the process in ms. */
static double
computed_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

/* Appends the interval that has ended to the file. */
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

/* Handles the timer's signal. */
static void
tick(int signal)
{
	int save_errno = errno;
	double now = computed_ms();

	if (requested_at < 0 || !InterruptPending)
	{
		if (requested_at >= 0 && nframes > 0)
			report(longest);
		nframes = 0;
		requested_at = now;
		InterruptPending = true;
	}
	else if (now - requested_at > Max(longest, LEAST_MS))
	{
		longest = now - requested_at;
		nframes = backtrace(frames, MAX_FRAMES);
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
	requested_at = -1;
	if (file[0] != '\0')
	{
		timer.it_interval.tv_usec = timer.it_value.tv_usec = TICK_US;
		/* the first call loads a library, which a signal handler must not do */
		(void) backtrace(first, 1);
		sigaction(SIGPROF, &action, NULL);
	}
	setitimer(ITIMER_PROF, &timer, NULL);
}

void
_PG_init(void)
{
	DefineCustomStringVariable("interrupt_probe.file",
							   "File for measurements. If empty, nothing is measured.", NULL,
							   &probe_file, "", PGC_SUSET, 0, NULL, assign_file, NULL);
}
