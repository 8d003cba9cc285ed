/*
 * faults.c
 *	  The test server's table of device functions: the CUDA device layer over the stub of the CUDA
 *	  run time, which fails on request.
 *
 * The linker replaces device_ops by the table here (--wrap), which calls the real one. It counts
 * the batches and fetches of each query, and the open lanes. For a fault it arms the stub, so that
 * CUDA calls of this thread fail (stub_arm).
 *
 * The file "gpuagg.fault" in the working directory requests a fault. It is read at each batch,
 * RESIDENT, fetch and opened lane. It has a word and, optionally, the number of the batch, fetch or
 * open lane from which on the fault occurs (default: 1).
 *
 *		slow		a kernel of each batch takes 20 ms
 *		slower		a kernel of each batch takes a second
 *		hang		a kernel of each batch takes a minute
 *		segv, abort	the process is killed by that signal in a batch's first launch
 *		fault		a batch's first launch returns cudaErrorIllegalAddress: the device is lost
 *		memory		all allocations for a batch fail; a query's scratch memory was released before,
 *					so that each batch needs some
 *		launch		a kernel that changes states of groups cannot be launched
 *		fetch		the process aborts at the first CUDA call of a fetch
 *		keys		a fetch returns keys that no client sent
 *		replaced	a client that has read a part of a dictionary finds another one, once
 *		lane		no stream can be created for a lane, as there is no memory
 *		lost		no stream can be created for a lane, as the device is lost
 *
 * Environment variables:
 *		GPUAGG_STUB_DEVICES	number of devices (default 2; 0: none)
 *		GPUAGG_STUB_SKIPPED	there is one more device, which is too old
 *		GPUAGG_STUB_MEMORY	bytes of memory of each device (default 1 GB)
 *		GPUAGG_STUB_SHARED	a file by which servers share the memory of devices (stub_share)
 *		GPUAGG_STUB_RANGES	value of store_place_ranges
 *		GPUAGG_STUB_IDLE	value of arena_idle_seconds
 *		GPUAGG_STUB_KEPT	value of session_most_kept
 *		GPUAGG_STUB_KEEP_MS	value of session_keep_ms
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cuda_stub.h"
#include "device_cuda/device_internal.h"
#include "server/column_dictionary.h"
#include "server/server.h"

extern const DeviceOps __real_device_ops;

/* ---- the start ---- */

static void
read_number(const char *name, int *number)
{
	const char *value = getenv(name);

	if (value)
		*number = atoi(value);
}

static DeviceStatus
start(const char *list, WireStatus *status, DeviceError *error)
{
	const char *memory = getenv("GPUAGG_STUB_MEMORY");
	const char *shared = getenv("GPUAGG_STUB_SHARED");
	int ranges = (int) store_place_ranges;

	stub_devices = 2;
	read_number("GPUAGG_STUB_DEVICES", &stub_devices);
	read_number("GPUAGG_STUB_IDLE", &arena_idle_seconds);
	read_number("GPUAGG_STUB_KEPT", &session_most_kept);
	read_number("GPUAGG_STUB_KEEP_MS", &session_keep_ms);
	read_number("GPUAGG_STUB_RANGES", &ranges);
	store_place_ranges = (uint32_t) ranges;
	if (getenv("GPUAGG_STUB_SKIPPED") && stub_devices < STUB_MAX_DEVICES)
		stub_capability[stub_devices++] = 70;
	if (memory)
		stub_memory_bytes = strtoull(memory, NULL, 10);
	if (shared && !stub_share(shared))
		return device_fail(error, DEVICE_UNSUPPORTED, "GPUAGG_STUB_SHARED cannot be used");
	return __real_device_ops.start(list, status, error);
}

/* ---- faults ---- */

/* Reads the fault requested for the event of this number; an empty word: none. */
static void
read_fault(char word[32], int number)
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

/* Ends the process without a core file, as test/run.sh reports core files as crashes. */
static void
crash(int signal)
{
	static const struct rlimit none = {0, 0};

	setrlimit(RLIMIT_CORE, &none);
	raise(signal);
}

static void
crash_by_segv(void)
{
	crash(SIGSEGV);
}

static void
crash_by_abort(void)
{
	crash(SIGABRT);
}

static void
take_20_ms(void)
{
	usleep(20000);
}

static void
take_a_second(void)
{
	sleep(1);
}

static void
take_a_minute(void)
{
	sleep(60);
}

static const struct
{
	const char *word;
	StubCall call;
	cudaError_t err;
	void (*effect)(void);
} batch_faults[] = {
	{"slow", STUB_LAUNCH, cudaSuccess, take_20_ms},
	{"slower", STUB_LAUNCH, cudaSuccess, take_a_second},
	{"hang", STUB_LAUNCH, cudaSuccess, take_a_minute},
	{"segv", STUB_LAUNCH, cudaSuccess, crash_by_segv},
	{"abort", STUB_LAUNCH, cudaSuccess, crash_by_abort},
	{"fault", STUB_LAUNCH, cudaErrorIllegalAddress, NULL},
	{"memory", STUB_ALLOC, cudaErrorMemoryAllocation, NULL},
	{"launch", STUB_UPDATE, cudaErrorLaunchOutOfResources, NULL},
};

/* Arms the fault requested for the query's batch of this number. */
static void
arm_batch(DeviceQuery *query, int number)
{
	char word[32];

	read_fault(word, number);
	for (size_t i = 0; i < sizeof(batch_faults) / sizeof(batch_faults[0]); i++)
	{
		if (strcmp(word, batch_faults[i].word) != 0)
			continue;
		if (batch_faults[i].call == STUB_ALLOC)
			device_query_release_scratch(query);
		stub_arm(batch_faults[i].call, batch_faults[i].err, batch_faults[i].effect);
	}
}

/* ---- events of a query ---- */

typedef struct Events
{
	const DeviceQuery *query;
	int batches;
	int fetches;
	struct Events *next;
} Events;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Events *all_events;

/* Returns the events of a query. Its calls are serialized. */
static Events *
events_of(const DeviceQuery *query)
{
	Events *e;

	pthread_mutex_lock(&lock);
	for (e = all_events; e->query != query; e = e->next)
		;
	pthread_mutex_unlock(&lock);
	return e;
}

static DeviceStatus
query_open(DeviceQuery **query, int device, const WireQuery *q, const double *thresholds,
		   DeviceError *error)
{
	DeviceStatus status = __real_device_ops.query_open(query, device, q, thresholds, error);
	Events *e;

	if (status != DEVICE_OK)
		return status;
	e = calloc(1, sizeof(*e));
	e->query = *query;
	pthread_mutex_lock(&lock);
	e->next = all_events;
	all_events = e;
	pthread_mutex_unlock(&lock);
	return DEVICE_OK;
}

static void
query_close(DeviceQuery *query)
{
	Events **at = &all_events;
	Events *e;

	pthread_mutex_lock(&lock);
	while ((*at)->query != query)
		at = &(*at)->next;
	e = *at;
	*at = e->next;
	pthread_mutex_unlock(&lock);
	free(e);
	__real_device_ops.query_close(query);
}

static DeviceStatus
reset(DeviceQuery *query, DeviceError *error)
{
	Events *e = events_of(query);

	/* grouped rows: a reset follows each batch */
	if (!(query->q->flags & WIRE_GROUPED))
		e->batches = e->fetches = 0;
	return __real_device_ops.reset(query, error);
}

static DeviceStatus
reduce(DeviceQuery *query, Lane *lane, const WireBatch *batch, DeviceError *error)
{
	DeviceStatus status;

	/* the server's own first batch has a row and no columns */
	if (batch->nrows > 1 || batch->bytes > 0)
		arm_batch(query, ++events_of(query)->batches);
	status = __real_device_ops.reduce(query, lane, batch, error);
	stub_disarm();
	return status;
}

static DeviceStatus
resident(DeviceQuery *query, Lane *lane, const WireResident *in, const WireRowRange *row_ranges,
		 struct StoreHold *hold, DeviceError *error)
{
	DeviceStatus status;

	arm_batch(query, ++events_of(query)->batches);
	status = __real_device_ops.resident(query, lane, in, row_ranges, hold, error);
	stub_disarm();
	return status;
}

static DeviceStatus
fetch(DeviceQuery *query, Lane *lane, const WireGroups *out, DeviceError *error)
{
	char word[32];
	DeviceStatus status;

	read_fault(word, ++events_of(query)->fetches);
	if (strcmp(word, "fetch") == 0)
		stub_arm(STUB_ANY, cudaSuccess, crash_by_abort);
	status = __real_device_ops.fetch(query, lane, out, error);
	stub_disarm();
	if (status == DEVICE_OK && strcmp(word, "keys") == 0)
		memset(lane->arena + out->buffer * lane->buffer_bytes + out->keys, 0x6f,
			   (size_t) out->n * query->q->key_bytes);
	return status;
}

/* ---- dictionaries ---- */

extern void __real_dictionary_read(Dictionary *dict, const WireDictionary *known, char *to,
								   size_t room, WireEntries *out);
extern void __wrap_dictionary_read(Dictionary *dict, const WireDictionary *known, char *to,
								   size_t room, WireEntries *out);

void
__wrap_dictionary_read(Dictionary *dict, const WireDictionary *known, char *to, size_t room,
					   WireEntries *out)
{
	char word[32];

	__real_dictionary_read(dict, known, to, room, out);
	if (known->nentries == 0 || known->most == 0)
		return;
	read_fault(word, 1);
	if (strcmp(word, "replaced") != 0)
		return;
	unlink("gpuagg.fault");
	*out = (WireEntries){.id = known->id + 1, .buffer = known->buffer};
}

/* ---- lanes ---- */

static atomic_int open_lanes;

/*
 * Opens a lane that must be made: lanes that the device layer keeps for reuse are taken until there
 * is none, and given back.
 */
static DeviceStatus
open_new_lane(Lane **lane, int device, char *arena, size_t buffer_bytes, int buffers,
			  DeviceError *error)
{
	Lane *kept[64];
	int n = 0;
	DeviceStatus status;

	while ((status = __real_device_ops.lane_open(&kept[n], device, arena, buffer_bytes, buffers,
												 error)) == DEVICE_OK &&
		   n + 1 < (int) (sizeof(kept) / sizeof(kept[0])))
		n++;
	if (status == DEVICE_OK)
		*lane = kept[n];
	while (n > 0)
		__real_device_ops.lane_close(kept[--n]);
	return status;
}

static DeviceStatus
lane_open(Lane **lane, int device, char *arena, size_t buffer_bytes, int buffers,
		  DeviceError *error)
{
	char word[32];
	DeviceStatus status;

	read_fault(word, atomic_fetch_add(&open_lanes, 1) + 1);
	if (strcmp(word, "lane") == 0 || strcmp(word, "lost") == 0)
	{
		stub_arm(STUB_OTHER, word[1] == 'a' ? cudaErrorMemoryAllocation : cudaErrorIllegalAddress,
				 NULL);
		status = open_new_lane(lane, device, arena, buffer_bytes, buffers, error);
		stub_disarm();
	}
	else
		status = __real_device_ops.lane_open(lane, device, arena, buffer_bytes, buffers, error);
	if (status != DEVICE_OK)
		atomic_fetch_sub(&open_lanes, 1);
	return status;
}

static void
lane_close(Lane *lane)
{
	atomic_fetch_sub(&open_lanes, 1);
	__real_device_ops.lane_close(lane);
}

/* ---- the table ---- */

/* Also writes the device's budget into the file that servers share, for tests to read. */
static bool
available(int device, bool idle, uint64_t *bytes)
{
	const WireDevice *d = budget_device(device);

	if (!__real_device_ops.available(device, idle, bytes))
		return false;
	stub_share_budget(cuda_ordinals[device], d->used, d->limit);
	return true;
}

DeviceOps __wrap_device_ops;

/* Runs before main(). */
__attribute__((constructor)) static void
fill_table(void)
{
	__wrap_device_ops = __real_device_ops;
	__wrap_device_ops.start = start;
	__wrap_device_ops.available = available;
	__wrap_device_ops.lane_open = lane_open;
	__wrap_device_ops.lane_close = lane_close;
	__wrap_device_ops.query_open = query_open;
	__wrap_device_ops.query_close = query_close;
	__wrap_device_ops.reset = reset;
	__wrap_device_ops.reduce = reduce;
	__wrap_device_ops.resident = resident;
	__wrap_device_ops.fetch = fetch;
}
