/*
 * standin_device.c
 *	  A device layer that computes on the host, for tests of the server; standin.h says where its
 * parts are.
 *
 * It fulfils the contract of device.h (memory budget, copies before reductions, groups by
 * packed key) with the operators of monoid.h, and fails on request: the file "gpuagg.fault"
 * in the working directory, read at every batch and RESIDENT, has a word and, optionally, the
 * number of the batch of a query from which on it applies (default: the first)
 *
 *		slow		each batch takes 20 ms
 *		slower		each batch takes a second
 *		hang		each batch takes a minute
 *		segv, abort	the process is killed by that signal
 *		fault		the device is lost
 *		memory		there is no memory for the batch
 *		launch		a kernel cannot be launched, when states have changed
 *		fetch		the process aborts when groups are fetched; the number counts fetches
 *		keys		groups are returned with keys that no client sent
 *		lane		there is no memory for a lane; the number counts open lanes
 *		lost		the device is lost when a lane is opened, likewise
 *
 * Environment variables: GPUAGG_STANDIN_DEVICES is the number of devices (default 2; 0: none),
 * GPUAGG_STANDIN_RANGES the number of ranges of a table that follow each other on one of them
 * (default: as on GPUs), GPUAGG_STANDIN_SKIPPED the note of another one that cannot be used,
 * GPUAGG_STANDIN_IDLE the seconds after which idle arenas are freed, GPUAGG_STANDIN_KEPT the most
 * connections that are kept between queries, GPUAGG_STANDIN_KEEP_MS the milliseconds for which a
 * client keeps one, GPUAGG_STANDIN_SHARED a file in which the servers that share the devices say
 * how much memory they have.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "device_list.h"
#include "standin.h"

static void
standin_build(char *text, size_t size)
{
	snprintf(text, size, "stand-in, without CUDA");
}

/* Device d has the UUID GPU-0000000d-0000-0000-0000-000000000000. */
static bool
is_named(const DeviceList *list, int d)
{
	char uuid[64];

	if (list->kind != DEVICES_IDS)
		return device_list_has(list, d);
	snprintf(uuid, sizeof(uuid), "GPU-%08x-0000-0000-0000-000000000000", d);
	for (const char *at = list->ids; *at != '\0';
		 at += strcspn(at, ",") + (at[strcspn(at, ",")] != '\0'))
		if (strncmp(at, uuid, strcspn(at, ",")) == 0)
			return true;
	return false;
}

/* ---- memory that other processes have ---- */

#define SHARING 16

typedef struct Sharer
{
	_Atomic int32_t pid;
	_Atomic uint64_t used[WIRE_MAX_DEVICES];
	_Atomic uint64_t limit[WIRE_MAX_DEVICES]; /* for tests to read */
} Sharer;

static Sharer *sharers;

static void
join_sharers(void)
{
	const char *path = getenv("GPUAGG_STANDIN_SHARED");
	int fd = path ? open(path, O_RDWR | O_CREAT, 0666) : -1;

	if (fd < 0 || ftruncate(fd, SHARING * sizeof(Sharer)) != 0)
		return;
	sharers = mmap(NULL, SHARING * sizeof(Sharer), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	for (int i = 0; i < SHARING; i++)
	{
		int32_t pid = sharers[i].pid;

		if ((pid == 0 || (kill(pid, 0) != 0 && errno == ESRCH)) &&
			atomic_compare_exchange_strong(&sharers[i].pid, &pid, (int32_t) getpid()))
			return;
	}
}

bool
standin_available(int device, bool idle, uint64_t *bytes)
{
	(void) idle;
	*bytes = budget_device(device)->memory;
	for (int i = 0; sharers && i < SHARING; i++)
	{
		int32_t pid = sharers[i].pid;

		if (pid == getpid())
		{
			sharers[i].used[device] = budget_device(device)->used;
			sharers[i].limit[device] = budget_device(device)->limit;
		}
		else if (pid != 0 && (kill(pid, 0) == 0 || errno != ESRCH))
			*bytes -= sharers[i].used[device] < *bytes ? sharers[i].used[device] : *bytes;
	}
	return true;
}

static DeviceStatus
standin_start(const char *names, WireStatus *status, DeviceError *error)
{
	const char *n = getenv("GPUAGG_STANDIN_DEVICES");
	const char *seconds = getenv("GPUAGG_STANDIN_IDLE");
	const char *ranges = getenv("GPUAGG_STANDIN_RANGES");
	const char *most_kept = getenv("GPUAGG_STANDIN_KEPT");
	const char *keep_ms = getenv("GPUAGG_STANDIN_KEEP_MS");
	const char *note;
	DeviceList list;
	int count = n ? atoi(n) : 2;

	if (seconds)
		arena_idle_seconds = atoi(seconds);
	if (most_kept)
		session_most_kept = atoi(most_kept);
	if (keep_ms)
		session_keep_ms = atoi(keep_ms);
	if (ranges)
		store_place_ranges = (uint32_t) atoi(ranges);
	if (!device_list_read(names, &list, error->text, sizeof(error->text)))
		return DEVICE_UNSUPPORTED;
	if (count == 0)
		return device_fail(error, DEVICE_UNSUPPORTED, "no CUDA device found");
	status->driver = 13000;
	if ((note = getenv("GPUAGG_STANDIN_SKIPPED")) != NULL)
	{
		status->nskipped = 1;
		status->skipped[0].ordinal = 7;
		snprintf(status->skipped[0].name, sizeof(status->skipped[0].name), "stand-in");
		snprintf(status->skipped[0].note, sizeof(status->skipped[0].note), "%s", note);
	}
	for (int d = 0; d < count; d++)
	{
		WireDevice *dev = &status->devices[status->ndevices];

		if (!is_named(&list, d))
			continue;
		status->ndevices++;
		dev->ordinal = d;
		dev->major = 9;
		dev->processors = 132;
		dev->threads = 132 * 2048;
		dev->memory = (uint64_t) 1 << 30;
		dev->limit = dev->memory / 5 * 4;
		dev->l2_bytes = 50 << 20;
		dev->shared_bytes = 227 << 10;
		snprintf(dev->name, sizeof(dev->name), "stand-in");
	}
	if (status->ndevices == 0)
		return device_fail(error, DEVICE_UNSUPPORTED, "gpuagg.devices names no device");
	standin_store_start((int) status->ndevices);
	join_sharers();
	return DEVICE_OK;
}

static DeviceStatus
standin_pin(void *memory, size_t bytes, DeviceError *error)
{
	(void) memory, (void) bytes, (void) error;
	return DEVICE_OK;
}

static void
standin_unpin(void *memory)
{
	(void) memory;
}

void
standin_requested_fault(char word[32], int number)
{
	int from = 1;
	FILE *f = fopen("gpuagg.fault", "r");

	word[0] = '\0';
	if (f == NULL)
		return;
	if (fscanf(f, "%31s %d", word, &from) < 1 || number < from)
		word[0] = '\0';
	fclose(f);
}

void
standin_crash(int signal)
{
	static const struct rlimit none = {0, 0};

	setrlimit(RLIMIT_CORE, &none);
	raise(signal);
}

DeviceStatus
standin_provoke(int batch, DeviceError *error)
{
	char word[32];

	standin_requested_fault(word, batch);
	if (strcmp(word, "slow") == 0)
		usleep(20000);
	else if (strcmp(word, "slower") == 0)
		sleep(1);
	else if (strcmp(word, "hang") == 0)
		sleep(60);
	else if (strcmp(word, "segv") == 0)
		standin_crash(SIGSEGV);
	else if (strcmp(word, "abort") == 0)
		standin_crash(SIGABRT);
	else if (strcmp(word, "fault") == 0)
		return device_fail(error, DEVICE_LOST, "an illegal memory access was encountered");
	else if (strcmp(word, "memory") == 0)
		return device_fail(error, DEVICE_FULL, "device memory limit reached");
	else if (strcmp(word, "launch") == 0)
		return device_fail(error, DEVICE_UNSUPPORTED, "too many resources requested for launch");
	return DEVICE_OK;
}

static atomic_int lanes; /* that are open */

static DeviceStatus
standin_lane_open(Lane **lane, int device, char *arena, size_t buffer_bytes, int buffers,
				  DeviceError *error)
{
	Lane *l = calloc(1, sizeof(*l));
	char word[32];

	standin_requested_fault(word, atomic_fetch_add(&lanes, 1) + 1);
	if (strcmp(word, "lane") == 0 || strcmp(word, "lost") == 0)
	{
		free(l);
		atomic_fetch_sub(&lanes, 1);
		return word[1] == 'a' ?
			device_fail(error, DEVICE_NO_MEMORY, "device memory limit reached") :
			device_fail(error, DEVICE_LOST, "an illegal memory access was encountered");
	}
	if (l == NULL || (l->memory = malloc(buffer_bytes * buffers)) == NULL)
		return device_fail(error, DEVICE_NO_MEMORY, "out of memory");
	l->device = device;
	l->arena = arena;
	l->buffer_bytes = buffer_bytes;
	*lane = l;
	return DEVICE_OK;
}

static void
standin_lane_close(Lane *lane)
{
	free(lane->memory);
	free(lane);
	atomic_fetch_sub(&lanes, 1);
}

static DeviceStatus
standin_copy(Lane *lane, const WireBatch *batch, size_t *bytes, DeviceError *error)
{
	size_t at = batch->buffer * lane->buffer_bytes;

	(void) error;
	memcpy(lane->memory + at, lane->arena + at, batch->bytes);
	*bytes = batch->bytes;
	return DEVICE_OK;
}

static DeviceStatus
standin_copy_wait(Lane *lane, int buffer, double *ms, DeviceError *error)
{
	(void) lane, (void) buffer, (void) error;
	*ms = 0;
	return DEVICE_OK;
}

static DeviceStatus
standin_lane_settle(Lane *lane, double *kernel_ms, DeviceError *error)
{
	(void) lane, (void) error;
	*kernel_ms = 0;
	return DEVICE_OK;
}

const DeviceOps device_ops = {
	.build = standin_build,
	.start = standin_start,
	.available = standin_available,
	.pin = standin_pin,
	.unpin = standin_unpin,
	.lane_open = standin_lane_open,
	.lane_close = standin_lane_close,
	.copy = standin_copy,
	.copy_wait = standin_copy_wait,
	.lane_settle = standin_lane_settle,
	.query_open = standin_query_open,
	.query_close = standin_query_close,
	.reduce = standin_reduce,
	.resident = standin_resident,
	.absorb = standin_absorb,
	.finish = standin_finish,
	.fetch = standin_fetch,
	.pick = standin_pick,
	.reset = standin_reset,
};
